"""Control flow with state: JAX's forms, whose functions may read and assign variables.

    @jv.compile
    def train(xs):
        def one(_, x):
            w.assign_add(x)
            return None, w * 2
        return jv.scan(one, None, xs)[1]

Run eagerly they are Python's own `if` and `for`: values are concrete, a tape records each
operation, a breakpoint works. In code that is being staged each is one `jax.lax` operation:
its functions are traced (`stage`), the variables that they touch are found, and are threaded
through it. `autograph.py` turns Python statements into the `named_` forms.

Rules this file keeps:
- a variable that is only read is an operand; one that is assigned is carried, and each
  iteration reads it anew, for a tape (`_reread.py`);
- what the functions closed over becomes an operand, so that a tape follows it;
- eagerly and staged, the same programs are refused for the same reason (`_carry.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp

from jaxvars import _trace
from jaxvars._carry import (
    Carried,
    Names,
    Result,
    Stack,
    Type,
    alike,
    converted,
    count_of,
    described,
    difference,
    index_of,
    joined,
    leading_size,
    parameter_name,
    plainly,
    settled,
    stackable,
    taken_apart,
    truth,
    type_of,
)
from jaxvars._checks import first_failure, without_signals
from jaxvars._frames import LOCAL, CaptureFrame, Owner, moves
from jaxvars._reread import reread
from jaxvars._staging import Rebuild, Staged, stage
from jaxvars._store import Cell
from jaxvars.errors import ControlFlowError, line_of, user_line

Value: TypeAlias = Any

_CREATES = (
    "A branch or the body of a loop tried to create a variable, which would exist on one way only; "
    "create it outside."
)
_RESULT = ("the result",)


# ---------------------------------------------------------------- branches
def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """Run one of two functions, which may read and assign variables.

    Args:
        pred: a scalar: a bool, number, array or variable.
        true_fun: what to run if it holds: takes the operands.
        false_fun: what to run otherwise. In code that is being staged both must return the same
            structure, shapes and dtypes.
        *operands: arrays or pytrees of them; variables and modules are passed as they are.

    Returns:
        What the function returned, numbers as arrays.

    Raises:
        ControlFlowError: when the results differ in form, naming where; or when `pred` is no
            scalar.
        CreationError: when a function that is staged creates variables.

    >>> from jaxvars import Variable, compile
    >>> hits = Variable(0)
    >>> @compile
    ... def score(x):
    ...     return cond(x > 0, lambda: hits.assign_add(1) * 10, lambda: 0)
    >>> [int(score(x)) for x in (2.0, -2.0, 3.0)], int(hits)
    ([10, 0, 20], 2)
    """
    branches = [_alone(true_fun), _alone(false_fun)]
    return _choose(_other(truth(pred)), branches, operands, _RESULT, ("true", "false"))[0]


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Run one of several functions, which may read and assign variables.

    Args:
        index: an integer scalar; one that is too small or large counts as the nearest.
        branches: functions that take the operands, as for `cond`.
        *operands: arrays or pytrees of them; variables and modules are passed as they are.

    Returns:
        What the function returned, numbers as arrays.

    Raises:
        ControlFlowError: when the results differ in form, or `index` is no integer, or there
            are no branches.

    >>> [int(switch(i, [lambda x: x, lambda x: -x], 5)) for i in (0, 1, 7)]
    [5, -5, -5]
    """
    if not branches:
        raise ControlFlowError("jv.switch needs at least one branch.")
    ways = [f"the index is {i}" for i in range(len(branches))]
    chosen = index_of(index, len(branches))
    return _choose(chosen, [_alone(f) for f in branches], operands, _RESULT, ways)[0]


def named_cond(
    pred: Any, branches: Sequence[Callable[[], tuple[Any, ...]]], names: Names
) -> tuple[Any, ...]:
    """Run the first function if `pred` holds, else the second; each returns named values."""
    return _choose(_other(truth(pred)), branches, (), names, ("true", "false"))


def _other(truth: Value) -> Value:
    """Return the opposite: the index of what is to run, the first if it holds."""
    return ~truth if _trace.is_tracer(truth) else not truth


def _alone(fun: Callable[..., Any]) -> Callable[..., tuple[Any]]:
    return functools.wraps(fun)(lambda *args: (fun(*args),))


def _choose(
    index: Value, branches: Sequence[Any], operands: Any, names: Names, ways: Names
) -> tuple[Any, ...]:
    if not _trace.is_tracer(index):
        return _with_arrays(branches[int(index)](*operands))
    given = Rebuild(operands, whole=Owner)
    values, given.arrays = given.arrays, []
    staged = [stage(_applied(branch, given), values, _CREATES) for branch in branches]
    results = alike([s.rebuild for s in staged], list(map(_result_types, staged)))
    types = _joined_results(results, names, ways)
    threads = _Threads(staged)
    runs = [_branch(threads, i, result, types) for i, result in enumerate(results)]
    consts = [program.consts for program in threads.programs]
    outputs, new = jax.lax.switch(
        jnp.asarray(index, jnp.int32), runs, consts, threads.state(), values
    )
    threads.write(new)
    return results[0].form(outputs)


def _branch(threads: _Threads, i: int, result: Result, types: Sequence[Type]) -> Callable[..., Any]:
    def run(consts: Any, state: Any, values: Any) -> Any:
        outputs, new = threads.programs[i](consts[i], state, values)
        arrays = zip(result.arrays(outputs), types, strict=True)
        return [converted(x, t) for x, t in arrays], threads.changed(new)

    return run


def _joined_results(results: Sequence[Result], names: Names, ways: Names) -> Sequence[Type]:
    """Return the types of what all branches return; refuse if they differ."""
    first, *others = results
    types = first.types
    for way, other in zip(ways[1:], others, strict=True):
        found = difference(first.form, other.form, (types, other.types), names)
        if found is not None:
            raise ControlFlowError(
                f"The branches at {user_line()} do not agree: {found.label} is {found.one} if "
                f"{ways[0]}, but {found.other} if {way}. Which one runs is known only at run time, "
                "so that all must give the same structure, shape and dtype. Set it in each "
                "branch, and convert it, for example with x.astype(...)."
            )
        types = [joined(a, b) or a for a, b in zip(types, other.types, strict=True)]
    return types


def _result_types(staged: Staged) -> list[Type]:
    avals = staged.program.out_avals
    return [type_of(aval) for aval in avals[: len(avals) - len(staged.writes)]]


# ---------------------------------------------------------------- loops
def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    *,
    max_iterations: int | None = None,
) -> Any:
    """Run a function again and again as long as a condition holds.

    Both functions may read and assign variables.

    Args:
        cond_fun: takes the value, returns a scalar.
        body_fun: takes the value, returns the next one: same structure, shapes and dtypes.
        init_val: the first value: a pytree of arrays.
        max_iterations: stop after so many in any case. With such a bound the loop can be
            differentiated in reverse in a compiled function; it then takes the memory and nearly
            the time of that many iterations. The condition is asked after the last one, too.

    Returns:
        The last value.

    Raises:
        ControlFlowError: when the body changes structure, a shape or a dtype, naming which.

    >>> steps = while_loop(
    ...     lambda c: c[0] != 1,
    ...     lambda c: (jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1),
    ...     (6, 0),
    ... )[1]
    >>> int(steps)
    8
    """
    name = parameter_name(body_fun, 0)
    return named_while(cond_fun, _alone(body_fun), (init_val,), (name,), max_iterations)[0]


def named_while(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., tuple[Any, ...]],
    init: tuple[Any, ...],
    names: Names,
    max_iterations: int | None = None,
) -> tuple[Any, ...]:
    """Run a loop over named values: both functions take them all, `body_fun` returns them all."""
    carried = Carried(init, names)
    if max_iterations is not None:
        max_iterations = count_of(max_iterations, "max_iterations of a loop")
    if not _is_staged():
        arrays, count = carried.arrays, 0
        while truth(cond_fun(*carried(arrays))) and count != max_iterations:
            arrays = carried.advance(body_fun(*carried(arrays)))
            count += 1
        return carried(arrays)
    body = _stage_body(lambda state, _: (body_fun(*state), ()), carried)
    test = stage(lambda *xs: truth(cond_fun(*carried(xs))), carried.arrays, _CREATES)
    threads = _Threads([body, test])
    loop = _While(threads, carried, cond_fun)
    final = loop.run() if max_iterations is None else loop.run_bounded(max_iterations)
    threads.write(final[0])
    return carried(final[1])


@final
class _While:
    """A loop as `lax` has it, over (values of the cells that change, arrays)."""

    def __init__(self, threads: _Threads, carried: Carried, cond_fun: Any) -> None:
        self._threads = threads
        self._carried = carried
        self._body, self._test = threads.programs
        self._cond_fun = cond_fun
        self._read = threads.rereader()
        self._first = threads.changed(threads.state()), carried.arrays

    def _next(self, carry: Any) -> Any:
        outputs, new = self._body(self._body.consts, self._read(carry[0]), carry[1])
        return self._threads.changed(new), self._carried.cast(outputs)

    def _check(self, carry: Any) -> tuple[Value, Any]:
        (go,), new = self._test(self._test.consts, self._read(carry[0]), carry[1])
        return go, (self._threads.changed(new), carry[1])

    def run(self) -> Any:
        """Run until the condition is false."""
        if self._test.writes:
            return self._run_going(lambda step, c: jax.lax.while_loop(lambda c: c[0], step, c))
        test = _like_users(self._cond_fun, lambda carry: self._check(carry)[0])
        return jax.lax.while_loop(test, self._next, self._first)

    def run_bounded(self, count: int) -> Any:
        """Run a fixed number of iterations, the last ones of which may do nothing."""

        def loop(step: Any, carry: Any) -> Any:
            def one(carry: Any, _: None) -> Any:
                return jax.lax.cond(carry[0], step, lambda same: same, carry), None

            return jax.lax.scan(one, carry, None, length=count)[0]

        return self._run_going(loop)

    def _run_going(self, loop: Callable[[Any, Any], Any]) -> Any:
        """Run a loop that carries whether it goes on: the condition is asked once each time."""
        carry = self._check(self._first)
        return loop(lambda carry: self._check(self._next(carry[1])), carry)[1]


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Run a function for each integer of a range.

    It may read and assign variables.

    Args:
        lower: the first integer.
        upper: the one after the last. If both are known when the program is staged the loop can
            be differentiated in reverse; for traced ones see `while_loop`.
        body_fun: takes the integer, as an array, and the value; returns the next value.
        init_val: the first value: a pytree of arrays.
        unroll: how many iterations to write out one after the other.

    Returns:
        The last value.

    Raises:
        ControlFlowError: when the body changes structure, a shape or a dtype, naming which; or
            when `unroll` is given with traced bounds.

    >>> int(fori_loop(0, 5, lambda i, total: total + i, 0))
    10
    """
    name = parameter_name(body_fun, 1)
    first, last = _integer(lower), _integer(upper)
    if not (_trace.is_tracer(first) or _trace.is_tracer(last)):
        return _counted(first, int(last) - int(first), body_fun, init_val, name, unroll or 1)
    if unroll is not None:
        raise ControlFlowError(
            f"jv.fori_loop at {user_line()} can't be unrolled: how often it runs is not known when "
            "the program is staged. Leave unroll out, or give Python numbers as bounds."
        )
    kind = jnp.promote_types(first.dtype, last.dtype)
    names = ("the counter", "the upper bound", name)
    return named_while(
        functools.wraps(body_fun)(lambda i, end, _: i < end),
        lambda i, end, value: (i + 1, end, body_fun(i, value)),
        (first.astype(kind), last.astype(kind), init_val),
        names,
    )[2]


def _integer(bound: Any) -> Value:
    value = settled(bound)
    if value.shape or not jnp.issubdtype(value.dtype, jnp.integer):
        raise ControlFlowError(
            f"A bound of jv.fori_loop at {user_line()} is an integer, not {type_of(value)}."
        )
    if not _trace.is_tracer(value):
        return value
    return jax.lax.convert_element_type(value, value.dtype)  # not a weak type


def _counted(
    first: Value, count: int, body_fun: Any, init_val: Any, name: str, unroll: int | bool
) -> Any:
    def step(state: Any, _: None) -> Any:
        i, value = state
        return (i + 1, body_fun(i, value)), None

    names = ("the counter", name)
    start = (first, init_val)
    return named_scan(step, start, None, names, length=max(count, 0), unroll=unroll)[0][1]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    *,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Run a function over the first axis of arrays, carrying a value along.

    It may read and assign variables. Can be differentiated in reverse.

    Args:
        f: takes the carry and the next element, returns the next carry and an output.
        init: the first carry: a pytree of arrays.
        xs: arrays of shape [n, ...], or a pytree of them; None with a length.
        length: n.
        reverse: go from the last element to the first; outputs stay in the order of `xs`.
        unroll: how many iterations to write out one after the other.

    Returns:
        The last carry, and the outputs stacked along a first axis of size n.

    Raises:
        ControlFlowError: when `f` changes the carry's structure, a shape or a dtype, naming
            which; or when the sizes of `xs` differ.

    >>> total, sums = scan(lambda c, x: (c + x, c + x), 0.0, jnp.arange(4.0))
    >>> float(total), sums.tolist()
    (6.0, [0.0, 1.0, 3.0, 6.0])
    """
    line = user_line()

    def step(state: Any, x: Any) -> Any:
        result = f(state[0], x)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ControlFlowError(
                f"The function of jv.scan at {line} returns a tuple of two, (carry, output), not "
                f"{described(result)}. Without an output return (carry, None)."
            )
        return (result[0],), result[1]

    names = (parameter_name(f, 0),)
    (carry,), ys = named_scan(
        step, (init,), xs, names, length=length, reverse=reverse, unroll=unroll
    )
    return carry, ys


def named_scan(
    body_fun: Callable[[Any, Any], tuple[tuple[Any, ...], Any]],
    init: tuple[Any, ...],
    xs: Any,
    names: Names,
    *,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[tuple[Any, ...], Any]:
    """Run a loop over arrays: `body_fun(state, x)` takes and returns a tuple of named values."""
    elements = Rebuild(xs)
    arrays, elements.arrays = [jnp.asarray(x) for x in elements.arrays], []
    size = leading_size(arrays, length)
    carried = Carried(init, names)
    if size and not _is_staged():
        order = range(size)[::-1] if reverse else range(size)
        return _python_scan(body_fun, carried, elements, arrays, order)
    box: list[Rebuild] = []

    def one(state: Any, x: Sequence[Value]) -> Any:
        state, y = body_fun(state, elements(x))
        form, ys = stackable(y, carried.line)
        box[:] = [form]
        return state, ys

    specs = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in arrays]
    threads = _Threads([_stage_body(one, carried, specs)])
    (program,), read, n = threads.programs, threads.rereader(), len(carried.arrays)

    def step(carry: Any, x: Any) -> Any:
        outputs, new = program(program.consts, read(carry[0]), [*carry[1], *x])
        return (threads.changed(new), carried.cast(outputs[:n])), outputs[n:]

    first = threads.changed(threads.state()), carried.arrays
    final, ys = jax.lax.scan(step, first, arrays, size, reverse=reverse, unroll=unroll)
    threads.write(final[0])
    return carried(final[1]), box[0](ys)[0]


def _stage_body(
    fn: Callable[..., tuple[tuple[Any, ...], Sequence[Value]]],
    carried: Carried,
    specs: Sequence[Any] = (),
) -> Staged:
    """Trace the body of a loop until it returns what it takes.

    Args:
        fn: takes the carried values and a list of others; returns the former and more outputs.
        carried: what is carried before the loop; takes the types that the body gives it.
        specs: of the other values.
    """
    box: list[Rebuild] = []

    def flat(*leaves: Value) -> list[Value]:
        n = len(carried.arrays)
        state, others = fn(carried(leaves[:n]), leaves[n:])
        form, arrays = taken_apart(state)
        box[:] = [form]
        return [*arrays, *others]

    while True:
        body = stage(flat, [*carried.arrays, *specs], _CREATES)
        n = sum(constant is None for constant in box[0].constants())
        if carried.accept(box[0], _result_types(body)[:n]):
            return body


def _python_scan(
    body_fun: Any, carried: Carried, elements: Rebuild, arrays: Sequence[Value], order: range
) -> tuple[tuple[Any, ...], Any]:
    """Run the iterations one after the other; there is at least one."""
    columns = [list(x) for x in arrays]
    carry, stack = carried.arrays, Stack(carried.line)
    for i in order:
        state, y = body_fun(carried(carry), elements([column[i] for column in columns]))
        carry = carried.advance(state)
        stack.put(i, y)
    return carried(carry), stack.whole()


def map_fn(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Run a function for each element along the first axis of arrays, one after the other.

    It may read and assign variables.

    Args:
        f: takes an element, returns an output.
        xs: arrays of shape [n, ...], or a pytree of them.
        batch_size: run so many elements at once, by `vectorized_map`; `f` may then assign no
            variables.

    Returns:
        The outputs stacked along a first axis of size n.

    Raises:
        ControlFlowError: when the sizes of `xs` differ, or `batch_size` is not positive.

    >>> map_fn(lambda x: x * x, jnp.arange(4)).tolist()
    [0, 1, 4, 9]
    """
    if batch_size is None:
        return named_scan(lambda _, x: ((), f(x)), (), xs, ())[1]
    batch_size = count_of(batch_size, "The batch_size of map_fn", 1)
    size = leading_size(jax.tree.leaves(xs), None)
    whole = size - size % batch_size
    parts: list[Any] = []
    if whole:
        rows = jax.tree.map(
            lambda x: jnp.asarray(x)[:whole].reshape(-1, batch_size, *jnp.shape(x)[1:]), xs
        )
        done = map_fn(lambda batch: vectorized_map(f, batch), rows)
        parts.append(jax.tree.map(lambda y: y.reshape(whole, *y.shape[2:]), done))
    if whole < size or not size:
        parts.append(vectorized_map(f, jax.tree.map(lambda x: jnp.asarray(x)[whole:], xs)))
    return jax.tree.map(lambda *ys: jnp.concatenate(ys), *parts)


def vectorized_map(
    f: Callable[[Any], Any], elems: Any, *, in_axes: Any = 0, out_axes: Any = 0
) -> Any:
    """Run a function for all examples at once: `jax.vmap`, with variables.

    It may read variables, but assign none.

    Args:
        f: takes one example, returns an output.
        elems: arrays with one axis for the examples, or a pytree of them.
        in_axes: which axis that is, None for what is the same for all: a number, or a pytree
            like `elems`.
        out_axes: where the axis is in the outputs.

    Returns:
        The outputs of all examples.

    Raises:
        ControlFlowError: when `f` assigns a variable: each example has a value for it, and it can
            hold one.

    >>> from jaxvars import Variable
    >>> w = Variable(3.0)
    >>> vectorized_map(lambda x: w * x, jnp.arange(3.0)).tolist()
    [0.0, 3.0, 6.0]
    """
    given = Rebuild(elems)
    arrays, given.arrays = [jnp.asarray(x) for x in given.arrays], []
    axes = _axes(in_axes, elems)
    _check_axes(arrays, axes)
    specs = [_example(x, axis) for x, axis in zip(arrays, axes, strict=True)]
    staged = stage(lambda *xs: f(given(xs)), specs, _CREATES)
    if not staged.rebuild.is_plain:
        raise ControlFlowError(
            f"The function of the vectorized_map at {user_line()} returns what is no array: "
            f"{[x() for x in staged.rebuild.constants() if x is not None]}."
        )
    if assigned := without_signals(staged.writes):
        raise _per_example(assigned[0])
    threads = _Threads([staged])
    (program,), state = threads.programs, threads.state()

    def one(values: Sequence[Value]) -> Any:
        outputs, new = program(program.consts, state, values)
        return staged.rebuild(outputs), threads.changed(new)

    result, failures = jax.vmap(one, in_axes=(axes,), out_axes=(out_axes, 0))(arrays)
    threads.write(list(map(first_failure, failures)))
    return result


def _axes(in_axes: Any, elems: Any) -> list[int | None]:
    is_none = lambda x: x is None  # noqa: E731 - one use in two places of a line
    return jax.tree.leaves(jax.tree.broadcast(in_axes, elems, is_leaf=is_none), is_leaf=is_none)


def _check_axes(arrays: Sequence[Value], axes: Sequence[int | None]) -> None:
    """Refuse arrays that do not have one number of examples."""
    sizes: set[int] = set()
    for x, axis in zip(arrays, axes, strict=True):
        if axis is not None and not -x.ndim <= axis < x.ndim:
            raise ControlFlowError(
                f"vectorized_map at {user_line()} goes over axis {axis} of an array of shape "
                f"{list(x.shape)}, which has no such axis."
            )
        sizes |= set() if axis is None else {x.shape[axis]}
    if len(sizes) != 1:
        shapes = [list(x.shape) for x in arrays]
        raise ControlFlowError(
            f"vectorized_map at {user_line()} goes over axes of one size, the number of examples: "
            f"there are arrays of shapes {shapes}, and in_axes {axes}."
        )


def _example(x: Value, axis: int | None) -> Any:
    if axis is None:
        return x
    shape = list(x.shape)
    del shape[axis]
    return jax.ShapeDtypeStruct(tuple(shape), x.dtype)


def _per_example(cell: Cell) -> ControlFlowError:
    return ControlFlowError(
        f"Variable {cell.name!r} is assigned inside the vectorized_map at {user_line()}: each "
        "example has a value for it, but it can hold one only. Return the values and assign what "
        "you make of them, or go through the examples one by one:\n"
        f"    {cell.name}.assign(jv.vectorized_map(f, xs).mean(0))    # or\n"
        "    jv.map_fn(f, xs)"
    )


# ---------------------------------------------------------------- threading
@final
class _Program:
    """A staged function over the values of cells by key."""

    def __init__(self, staged: Staged) -> None:
        self._run, self.consts = _trace.opened(staged.program)
        self._reads = [cell.key for cell in staged.reads]
        self.writes = [cell.key for cell in staged.writes]

    def __call__(
        self, consts: Any, state: dict[int, Value], values: Sequence[Value]
    ) -> tuple[list[Value], dict[int, Value]]:
        """Return the array results, and the values of all cells afterwards."""
        outputs = self._run(consts, [*(state[key] for key in self._reads), *values])
        n = len(outputs) - len(self.writes)
        return outputs[:n], {**state, **dict(zip(self.writes, outputs[n:], strict=True))}


@final
class _Threads:
    """The cells that some programs touch, threaded through one operation."""

    def __init__(self, staged: Sequence[Staged]) -> None:
        self.programs = [_Program(s) for s in staged]
        self._frame = LOCAL.frame
        written = {cell.key: cell for s in staged for cell in s.writes}
        self._cells = {cell.key: cell for s in staged for cell in s.reads} | written
        self._written = list(written.values())
        for cell in self._written:
            self._frame.check_writable(cell)

    def state(self) -> dict[int, Value]:
        """Return the values of all cells now."""
        return {key: self._frame.read(cell) for key, cell in self._cells.items()}

    def changed(self, state: dict[int, Value]) -> list[Value]:
        """Return, of all values, those of the cells that are assigned."""
        return [state[cell.key] for cell in self._written]

    def rereader(self) -> Callable[[Sequence[Value]], dict[int, Value]]:
        """Return what makes all values, as an iteration reads them, of those assigned before it."""
        first = self.state()

        def read(values: Sequence[Value]) -> dict[int, Value]:
            anew = {
                cell.key: reread(x, first[cell.key]) if moves(cell) and not cell.deliver else x
                for cell, x in zip(self._written, values, strict=True)
            }
            return {**first, **anew}

        return read

    def write(self, values: Sequence[Value]) -> None:
        """Assign the cells."""
        self._frame.write_all(self._written, values)


def in_block() -> bool:
    """Tell whether a branch or the body of a loop is being staged."""
    frame = LOCAL.frame
    return isinstance(frame, CaptureFrame) and frame.refuse_creation is _CREATES


def _is_staged() -> bool:
    """Tell whether loops are to be staged rather than run."""
    return _trace.strip(_trace.current()) is not _trace.EVAL


def _applied(fn: Callable[..., Any], given: Rebuild) -> Callable[..., Any]:
    return lambda *values: plainly(fn(*given(values)))


def _with_arrays(result: Any) -> Any:
    """Return a result with arrays for numbers, as one that was staged has them."""
    form = Rebuild(result)
    return form([jnp.asarray(x) for x in form.arrays])


def _like_users(user: Callable[..., Any], fn: Callable[..., Any]) -> Callable[..., Any]:
    """Have JAX call `fn` by the name and line of the user's function, for messages."""
    return functools.wraps(user)(lambda carry: fn(carry))


@contextmanager
def named_conditions() -> Generator[None]:
    """Have a Python `if` on a traced value say what to write instead."""
    try:
        yield
    except jax.errors.TracerBoolConversionError as error:
        message = (
            f"Python's `if`, `while`, `and`, `or` or `not` at {line_of(error)} needs to know a "
            "value that is only known when the compiled function runs. Either have such statements "
            "converted,\n"
            "    @jv.compile(autograph=True)\n"
            "or write what JAX can stage:\n"
            "    y = jv.cond(x > 0, lambda: x, lambda: -x)    # or jnp.where(x > 0, x, -x)\n"
            "    y = jv.while_loop(lambda y: y < 100, lambda y: 2 * y, x)"
        )
        raise ControlFlowError(message).with_traceback(error.__traceback__) from None

"""`while_loop`, `fori_loop` and `scan`: loops whose bodies may read and assign variables.

Eagerly they are Python's own loops; staged, one `jax.lax` operation. `named_while` and `named_scan`
are the same over tuples whose elements have names, for messages; `control/branches.py` has the
rules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, final, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxvars.autodiff.rules import find_paths
from jaxvars.control.arguments import (
    as_concrete,
    check_function,
    count_of,
    leading_size,
    parameter_name,
    truth,
)
from jaxvars.control.carry import Carried, Stack, stackable
from jaxvars.control.forms import Names, describe, flatten_arrays, type_of, without_axis
from jaxvars.control.state_threading import CREATES, Threads, result_types, return_tuple
from jaxvars.core.frames import LOCAL
from jaxvars.core.staging import PyTreeTemplate, Staged, stage
from jaxvars.derivatives.checkpointed_while import while_loop as while_loop_in_reverse
from jaxvars.derivatives.dependencies import depending_p
from jaxvars.errors import ControlFlowError, user_line
from jaxvars.tensors.array_like import unwrap
from jaxvars.tracing import context
from jaxvars.tracing.signals import attempt
from jaxvars.typing import Array, K, PyTree, R, Value


@overload
def while_loop(
    cond_fun: Callable[[Array], Any], body_fun: Callable[[Array], ArrayLike], init_val: ArrayLike,
    *, max_iterations: int | None = None,
) -> Array: ...  # fmt: skip
@overload
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], R], init_val: PyTree,
    *, max_iterations: int | None = None,
) -> R: ...  # fmt: skip
def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: PyTree,
    *,
    max_iterations: int | None = None,
) -> Any:
    """Run a function again and again as long as a condition holds.

    Both functions may read and assign variables.

    Args:
        cond_fun: takes the value, returns a scalar.
        body_fun: takes the value, returns the next one: same structure, shapes and dtypes.
        init_val: the first value: a pytree of arrays.
        max_iterations: stop after so many in any case. A tape can differentiate a loop without
            this bound, too (`derivatives/checkpointed_while.py`); JAX's own `grad` of a pure
            function only one with it. It then takes the memory and nearly the time of that many
            iterations. The condition is evaluated after the last one, too.

    Returns:
        The last value.

    Raises:
        ControlFlowError: when the body changes structure, a shape or a dtype, naming which;
            or when a function does not take the value.

    >>> steps = while_loop(
    ...     lambda c: c[0] != 1,
    ...     lambda c: (jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1),
    ...     (6, 0),
    ... )[1]
    >>> int(steps)
    8
    """
    form = "while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, 2 * c[1]), (0, x))"
    check_function(cond_fun, 1, form)
    check_function(body_fun, 1, form)
    name = parameter_name(body_fun, 0)
    return named_while(cond_fun, return_tuple(body_fun), (init_val,), (name,), max_iterations)[0]


@context.restoring()
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
    if context.is_eager():
        arrays, count = carried.arrays, 0
        while truth(cond_fun(*carried(arrays))) and count != max_iterations:
            arrays = carried.advance(body_fun(*carried(arrays)))
            count += 1
        if not count and LOCAL.frame.observers:
            found = attempt(lambda: _as_if_staged(body_fun, carried))
            arrays = arrays if found is None else found  # a body that cannot be staged need not be
        return carried(arrays)
    body = _stage_body(lambda state, _: (body_fun(*state), ()), carried)
    test = stage(lambda *xs: truth(cond_fun(*carried(xs))), carried.arrays, CREATES)
    threads = Threads([body, test])
    loop = _While(threads, carried, cond_fun)
    final = loop.run() if max_iterations is None else loop.run_bounded(max_iterations)
    threads.write(final[0])
    return carried(final[1])


def _as_if_staged(body_fun: Callable[..., tuple[Any, ...]], carried: Carried) -> list[Array]:
    """Return what a loop that did not run carries, which depends on what its body needs."""
    body = _stage_body(lambda state, _: (body_fun(*state), ()), carried)
    program = Threads([body]).programs[0]
    sources = [*program.consts, *map(LOCAL.frame.read, body.reads), *carried.arrays]
    params = {"body_jaxpr": body.program}
    found = find_paths("while", params, [1 << i for i in range(len(sources))], len(carried.arrays))
    each = [[y for i, y in enumerate(sources) if path >> i & 1] for path in found]
    return [depending_p.bind(x, *ys) for x, ys in zip(carried.arrays, each)]  # noqa: B905 - more paths


@final
class _While:
    """A loop as `lax` has it, over (values of the cells that change, arrays)."""

    def __init__(self, threads: Threads, carried: Carried, cond_fun: Any) -> None:
        self._threads = threads
        self._carried = carried
        self._body, self._test = threads.programs
        self._cond_fun = cond_fun
        self._given = threads.state(), self._body.consts, self._test.consts
        self._first = threads.changed(threads.state()), carried.arrays

    def _next(self, given: Any, carry: Any) -> Any:
        state = self._threads.reread(given[0], carry[0])
        outputs, new = self._body(given[1], state, carry[1])
        return self._threads.changed(new), self._carried.cast(outputs)

    def _check(self, given: Any, carry: Any) -> tuple[Array, Any]:
        state = self._threads.reread(given[0], carry[0])
        (go,), new = self._test(given[2], state, carry[1])
        return go, (self._threads.changed(new), carry[1])

    def run(self) -> Any:
        """Run until the condition is false."""
        if self._test.writes:
            holds = _name_after(self._cond_fun, lambda _, carry: carry[0])
            first = self._check(self._given, self._first)
            return while_loop_in_reverse(holds, self._check_next, self._given, first)[1]
        test = _name_after(self._cond_fun, lambda given, carry: self._check(given, carry)[0])
        return while_loop_in_reverse(test, self._next, self._given, self._first)

    def _check_next(self, given: Any, carry: Any) -> Any:
        return self._check(given, self._next(given, carry[1]))

    def run_bounded(self, count: int) -> Any:
        """Run a fixed number of iterations, the last ones of which may do nothing."""
        step = functools.partial(self._check_next, self._given)

        def one(carry: Any, _: None) -> Any:
            return jax.lax.cond(carry[0], step, lambda same: same, carry), None

        first = self._check(self._given, self._first)
        return jax.lax.scan(one, first, None, length=count)[0][1]


@overload
def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Array, Array], ArrayLike], init_val: ArrayLike,
    *, unroll: int | bool | None = None,
) -> Array: ...  # fmt: skip
@overload
def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Array, Any], R], init_val: PyTree,
    *, unroll: int | bool | None = None,
) -> R: ...  # fmt: skip
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: PyTree,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Run a function for each integer of a range.

    It may read and assign variables.

    Args:
        lower: the first integer.
        upper: the one after the last. If both are known when the program is staged JAX's own
            `grad` can differentiate the loop; for traced ones see `while_loop`.
        body_fun: takes the integer, as an array, and the value; returns the next value. The
            integer is weakly typed, as in JAX, if both bounds are known or the lower is Python's.
        init_val: the first value: a pytree of arrays.
        unroll: how many iterations to write out one after the other.

    Returns:
        The last value.

    Raises:
        ControlFlowError: when the body changes structure, a shape or a dtype, naming which; when
            `unroll` is given with traced bounds; or when the body does not take both values.

    >>> int(fori_loop(0, 5, lambda i, total: total + i, 0))
    10
    """
    check_function(body_fun, 2, "fori_loop(0, 9, lambda i, c: 2 * c, x)")
    name = parameter_name(body_fun, 1)
    first, last = _integer(lower), _integer(upper)
    if not (context.is_tracer(first) or context.is_tracer(last)):
        return _run_range(int(first), int(last), body_fun, init_val, name, unroll or 1)
    if unroll is not None:
        raise ControlFlowError(
            f"jv.fori_loop at {user_line()} can't be unrolled: how often it runs is not known when "
            "the program is staged. Leave unroll out, or give Python numbers as bounds."
        )
    start, end = map(_drop_weak_type, (first, last))
    kind = jnp.promote_types(start.dtype, end.dtype)
    keeps_weak = type(unwrap(lower)) is int and kind == start.dtype
    names = ("the counter", "the upper bound", name)
    return named_while(
        functools.wraps(body_fun)(lambda i, end, _: i < end),
        lambda i, end, value: (i + 1, end, body_fun(i, value)),
        (int(first) if keeps_weak else start.astype(kind), end.astype(kind), init_val),
        names,
    )[2]


def _integer(bound: Any) -> Array:
    value = as_concrete(bound)
    if value.shape or not jnp.issubdtype(value.dtype, jnp.integer):
        raise ControlFlowError(
            f"A bound of jv.fori_loop at {user_line()} is an integer, not {type_of(value)}."
        )
    return value


def _drop_weak_type(bound: Value) -> Value:
    """Return a bound without a weak type; raises OverflowError for one that JAX cannot hold."""
    if context.is_tracer(bound):
        return jax.lax.convert_element_type(bound, bound.dtype)
    return np.asarray(bound.item(), jax.dtypes.canonicalize_dtype(bound.dtype))


def _run_range(
    first: int, last: int, body_fun: Any, init_val: PyTree, name: str, unroll: int | bool
) -> Any:
    def step(state: Any, _: None) -> Any:
        i, value = state
        return (i + 1, body_fun(i, value)), None

    names = ("the counter", name)
    length = max(last - first, 0)
    return named_scan(step, (first, init_val), None, names, length=length, unroll=unroll)[0][1]


def scan(
    f: Callable[[Any, Any], tuple[R, K]],
    init: PyTree,
    xs: PyTree = None,
    length: int | None = None,
    *,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[R, K]:
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
            which; when the sizes of `xs` differ; or when `f` does not take both values.

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
                f"{describe(result)}. Without an output return (carry, None)."
            )
        return (result[0],), result[1]

    check_function(f, 2, "scan(lambda c, x: (c + x, c), 0.0, xs)")
    names = (parameter_name(f, 0),)
    (carry,), ys = named_scan(
        step, (init,), xs, names, length=length, reverse=reverse, unroll=unroll
    )
    return carry, ys


@context.restoring()
def named_scan(
    body_fun: Callable[[Any, Any], tuple[tuple[Any, ...], Any]],
    init: tuple[Any, ...],
    xs: PyTree,
    names: Names,
    *,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[tuple[Any, ...], Any]:
    """Run a loop over arrays: `body_fun(state, x)` takes and returns a tuple of named values."""
    elements = PyTreeTemplate(xs)
    arrays, elements.arrays = [jnp.asarray(x) for x in elements.arrays], []
    size = leading_size(arrays, length)
    carried = Carried(init, names)
    if size and context.is_eager():
        order = range(size)[::-1] if reverse else range(size)
        return _run_in_python(body_fun, carried, elements, arrays, order)
    box: list[PyTreeTemplate] = []

    def one(state: Any, x: Sequence[Array]) -> Any:
        state, y = body_fun(state, elements(x))
        form, ys = stackable(y, carried.line)
        box[:] = [form]
        return state, ys

    specs = [without_axis(x, 0) for x in arrays]
    threads = Threads([_stage_body(one, carried, specs)])
    (program,), given, n = threads.programs, threads.state(), len(carried.arrays)

    def step(carry: Any, x: Any) -> Any:
        outputs, new = program(program.consts, threads.reread(given, carry[0]), [*carry[1], *x])
        return (threads.changed(new), carried.cast(outputs[:n])), outputs[n:]

    first = threads.changed(threads.state()), carried.arrays
    length = None if arrays else size  # an unknown dimension is not to be given
    final, ys = jax.lax.scan(step, first, arrays, length, reverse=reverse, unroll=unroll)
    threads.write(final[0])
    return carried(final[1]), box[0](ys)[0]


def _stage_body(
    fn: Callable[..., tuple[tuple[Any, ...], Sequence[Array]]],
    carried: Carried,
    specs: Sequence[Any] = (),
) -> Staged:
    """Trace the body of a loop, which takes what is carried and a list, until it carries that."""
    box: list[PyTreeTemplate] = []

    def flat(*leaves: Array) -> list[Array]:
        n = len(carried.arrays)
        state, others = fn(carried(leaves[:n]), leaves[n:])
        form, arrays = flatten_arrays(state)
        box[:] = [form]
        return [*arrays, *others]

    while True:
        body = stage(flat, [*carried.arrays, *specs], CREATES)
        n = sum(constant is None for constant in box[0].constants())
        if carried.accept(box[0], result_types(body)[:n]):
            return body


def _run_in_python(
    body_fun: Any, carried: Carried, elements: PyTreeTemplate, arrays: Sequence[Array], order: range
) -> tuple[tuple[Any, ...], Any]:
    """Run the iterations one after the other; there is at least one."""
    columns = [list(x) for x in arrays]
    carry, stack = carried.arrays, Stack(carried.line)
    for i in order:
        state, y = body_fun(carried(carry), elements([column[i] for column in columns]))
        carry = carried.advance(state)
        stack.put(i, y)
    return carried(carry), stack.whole()


def _name_after(user: Callable[..., Any], fn: Callable[..., Any]) -> Callable[..., Any]:
    """Have JAX call `fn` by the name and line of the user's function, for messages."""
    return functools.wraps(user)(lambda *args: fn(*args))

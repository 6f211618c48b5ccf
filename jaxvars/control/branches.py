"""Control flow with state: JAX's forms, whose functions may read and assign variables.

    @jv.compile
    def train(xs):
        def one(_, x):
            w.assign_add(x)
            return None, w * 2
        return jv.scan(one, None, xs)[1]

Run eagerly they are Python's own `if` and `for`: values are concrete, a tape records each
operation, a breakpoint works. In code that is being staged each is one `jax.lax` operation: its
functions are traced (`stage`), the variables that they touch are found, and are threaded through
it. `jaxvars/autograph` turns Python statements into the `named_` forms. The branches are here,
loops in `control/loops.py`, maps in `control/maps.py`, and what they share in
`control/state_threading.py`.

Rules this file keeps:
- a variable that is only read is an operand; one that is assigned is carried, and each
  iteration reads it again, for a tape (`tracing/assigned_read.py`);
- what the functions closed over becomes an operand, so that a tape follows it;
- eagerly and staged, the same programs are refused for the same reason (`control/carry.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxvars.advice import EXPLANATIONS, name_shapes
from jaxvars.control.arguments import check_function, index_of, truth
from jaxvars.control.carry import Result, match_forms
from jaxvars.control.forms import (
    Names,
    Type,
    convert_to_type,
    difference,
    join_all_types,
    read_variables,
)
from jaxvars.control.state_threading import CREATES, Threads, result_types, return_tuple
from jaxvars.core.frame import Owner
from jaxvars.core.frames import LOCAL
from jaxvars.core.staging import PyTreeTemplate, stage
from jaxvars.errors import ControlFlowError, called, line_of, user_line
from jaxvars.tensors.wrapping import is_boxing, words
from jaxvars.tracing import context
from jaxvars.tracing.guards import ask
from jaxvars.typing import Array, R, Ts

_RESULT = ("the result",)


# ---------------------------------------------------------------- branches
@overload
def cond(
    pred: Any,
    true_fun: Callable[[*Ts], ArrayLike],
    false_fun: Callable[[*Ts], ArrayLike],
    *operands: *Ts,
) -> Array: ...
@overload
def cond(
    pred: Any, true_fun: Callable[[*Ts], R], false_fun: Callable[[*Ts], R], *operands: *Ts
) -> R: ...
def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """Run one of two functions, which may read and assign variables.

    A gradient through the function that does not run is None where it runs eagerly, as in
    TensorFlow, and zero where it is staged: which one runs is not known then.

    Args:
        pred: a scalar: a bool, number, array or variable.
        true_fun: what to run if it holds: takes the operands.
        false_fun: what to run otherwise. In code that is being staged both must return the same
            structure, shapes and dtypes.
        *operands: arrays or pytrees of them; variables and modules are passed as they are.

    Returns:
        What the function returned, numbers as arrays.

    Raises:
        ControlFlowError: when the results differ in form, naming where; when `pred` is not
            a scalar; or when a function does not take the operands.
        CreationError: when a function that is staged creates variables.

    >>> from jaxvars import Variable, compile
    >>> hits = Variable(0)
    >>> @compile
    ... def score(x):
    ...     return cond(x > 0, lambda: hits.assign_add(1) * 10, lambda: 0)
    >>> [int(score(x)) for x in (2.0, -2.0, 3.0)], int(hits)
    ([10, 0, 20], 2)
    """
    try:
        branches = [return_tuple(true_fun), return_tuple(false_fun)]
        return _choose(_negate(truth(pred)), branches, operands, _RESULT, ("true", "false"))[0]
    except TypeError:
        _check_branches((true_fun, false_fun), operands, "cond(x > 0, lambda: x, lambda: -x)")
        raise


@overload
def switch(index: Any, branches: Sequence[Callable[[*Ts], ArrayLike]], *operands: *Ts) -> Array: ...
@overload
def switch(index: Any, branches: Sequence[Callable[[*Ts], R]], *operands: *Ts) -> R: ...
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Run one of several functions, which may read and assign variables.

    Args:
        index: an integer scalar; one that is too small or large counts as the nearest.
        branches: functions that take the operands, as for `cond`.
        *operands: arrays or pytrees of them; variables and modules are passed as they are.

    Returns:
        What the function returned, numbers as arrays.

    Raises:
        ControlFlowError: when the results differ in form, `index` is not an integer, there are
            no branches, or one does not take the operands.

    >>> [int(switch(i, [lambda x: x, lambda x: -x], 5)) for i in (0, 1, 7)]
    [5, -5, -5]
    """
    if callable(branches):
        raise ControlFlowError(
            "The functions of jv.switch are one list: jv.switch(i, [lambda: x, lambda: -x])."
        )
    if not branches:
        raise ControlFlowError("jv.switch needs at least one branch.")
    ways = [f"the index is {i}" for i in range(len(branches))]
    chosen = index_of(index, len(branches))
    try:
        return _choose(chosen, [return_tuple(f) for f in branches], operands, _RESULT, ways)[0]
    except TypeError:
        _check_branches(branches, operands, "switch(i, [lambda: x, lambda: -x])")
        raise


def _check_branches(branches: Iterable[object], operands: Sequence[Any], form: str) -> None:
    for branch in branches:
        check_function(branch, len(operands), form)


def named_cond(
    pred: Any, branches: Sequence[Callable[[], tuple[Any, ...]]], names: Names
) -> tuple[Any, ...]:
    """Run the first function if `pred` holds, else the second; each returns named values."""
    return _choose(_negate(truth(pred)), branches, (), names, ("true", "false"))


def _negate(truth: Array | bool) -> Array | bool:
    """Return the opposite: the index of what is to run, the first if it holds."""
    return jnp.logical_not(truth) if context.is_tracer(truth) else not truth


def _choose(
    index: Array | int, branches: Sequence[Any], operands: Any, names: Names, ways: Names
) -> tuple[Any, ...]:
    ask("A function is run by jaxvars")
    if not context.is_tracer(index):
        return _with_arrays(branches[int(index)](*operands))
    given = PyTreeTemplate(operands, whole=Owner, numbers=False)
    values, given.arrays = given.arrays, []
    staged = [stage(_apply_to(branch, given), values, CREATES) for branch in branches]
    results = match_forms([s.rebuild for s in staged], list(map(result_types, staged)))
    types = _join_results(results, names, ways)
    threads = Threads(staged)
    runs = [_make_branch(threads, i, result, types) for i, result in enumerate(results)]
    consts = [program.consts for program in threads.programs]
    outputs, new = jax.lax.switch(
        jnp.asarray(index, jnp.int32), runs, consts, threads.state(), values
    )
    threads.write(new)
    return results[0].form(outputs)


def _make_branch(
    threads: Threads, i: int, result: Result, types: Sequence[Type]
) -> Callable[..., Any]:
    def run(consts: Any, state: Any, values: Any) -> Any:
        outputs, new = threads.programs[i](consts[i], state, values)
        arrays = zip(result.arrays(outputs), types, strict=True)
        return [convert_to_type(x, t) for x, t in arrays], threads.changed(new)

    return run


def _join_results(results: Sequence[Result], names: Names, ways: Names) -> Sequence[Type]:
    """Return the types of what all branches return; refuse if they differ."""
    first, *others = results
    types = first.types
    for way, other in zip(ways[1:], others, strict=True):
        found = difference(first.form, other.form, (types, other.types), names)
        if found is not None:
            pair = [(found.one, ways[0]), (found.other, way)]
            (one, here), (other, there) = (
                pair[::-1] if is_boxing() and found.other == "None" else pair
            )
            raise ControlFlowError(
                f"The branches at {user_line()} do not agree: {found.label} is {one} if {here}, "
                f"but {other} if {there}. Which one runs is known only at run time, so that all "
                f"must {words().alike}. Set it in each branch, and "
                f"convert it, for example with {words().cast}."
            )
        types = join_all_types(types, other.types)
    return types


def _apply_to(fn: Callable[..., Any], given: PyTreeTemplate) -> Callable[..., Any]:
    return lambda *values: read_variables(fn(*given(values)))


def _with_arrays(result: Any) -> Any:
    """Return a result with arrays for numbers, as one that was staged has them."""
    form = PyTreeTemplate(result)
    return form([jnp.asarray(x) for x in form.arrays])


def _explain(error: Exception) -> None:
    """Raise what to write instead, for an error of Python that needs to know a traced value."""
    if isinstance(error, jax.errors.TracerBoolConversionError):
        raise _error_for(_NEEDS_A_BOOL, error) from None
    if isinstance(
        error, jax.errors.ConcretizationTypeError | jax.errors.TracerIntegerConversionError
    ):
        needs = (words for said, words in _NEEDS.items() if said in str(error))
        raise _error_for(next(needs, _NEEDS_A_NUMBER), error) from None
    if isinstance(error, jax.errors.TracerArrayConversionError):
        raise _error_for(_NEEDS_NUMBERS, error) from None
    if isinstance(error, TypeError | ValueError):
        if str(error).startswith("Shapes must be 1D sequences of concrete values"):
            raise _error_for(_NEEDS_A_NUMBER, error) from None
        cells = [(c, c.aval.shape) for c in getattr(LOCAL.frame, "cells", ())]
        name_shapes(error, cells, called)


EXPLANATIONS.append(_explain)


def _error_for(message: str, error: BaseException) -> ControlFlowError:
    new = ControlFlowError(message.format(line=line_of(error)))
    return new.with_traceback(error.__traceback__)


_NEEDS_A_BOOL = (
    "Python's `if`, `while`, `and`, `or`, `not` or `assert` at {line} needs to know a value that "
    "is only known when the compiled function runs. Either have such statements converted,\n"
    "    @jv.compile(autograph=True)\n"
    "or write what JAX can stage:\n"
    "    y = jv.cond(x > 0, lambda: x, lambda: -x)    # or jnp.where(x > 0, x, -x)\n"
    "    y = jv.while_loop(lambda y: y < 100, lambda y: 2 * y, x)"
)
_NEEDS_NUMBERS = (
    "NumPy at {line} needs values that are only known when the compiled function runs: for "
    "`np.sin(x)`, `np.asarray(x)` or `v.numpy()`. Write what JAX stages, or return the value and "
    "use NumPy outside:\n"
    "    y = jnp.sin(x)    # not: np.sin(x)\n"
    "What NumPy alone can do is called back: jax.pure_callback(fn, jax.ShapeDtypeStruct(...), x)."
)
_NEEDS_A_SIZE = (
    "JAX at {line} needs to know how large a result is, which depends on values that are only "
    "known when the compiled function runs. Say how large it may be, or keep the shape:\n"
    "    jnp.nonzero(x > 0, size=2, fill_value=0)    # jnp.unique, jnp.where(c): size=, too\n"
    "    jnp.where(x > 0, x, 0)"
)
_NEEDS_TO_LOOK = (
    "Python at {line} asks for a value that is only known when the compiled function runs: by "
    "`float(x)`, `x.item()` or `x.tolist()`. Compute with the array, return it, and look at it "
    "outside:\n"
    "    return loss    # not: float(loss)\n"
    "    print(float(step(x)))\n"
    'Or jv.print("{{}}", loss) prints it when the function runs. An argument that is always a '
    "number of Python is named in static_argnames."
)
_NEEDS = {
    "size argument": _NEEDS_A_SIZE,
    **dict.fromkeys(["the `float` function", "item() method", "tolist() method"], _NEEDS_TO_LOOK),
}
"""What is said of errors whose messages have these words."""
_NEEDS_A_NUMBER = (
    "Python at {line} needs to know a number that is only known when the compiled function runs: "
    "for `range(n)`, `float(x)`, `x.item()`, `items[i]` or a shape. Either name the argument in "
    "static_argnames, which makes a program for each of its values; or, for a loop,\n"
    "    @jv.compile(autograph=True)    # converts `for i in range(n)`\n"
    "    y = jv.fori_loop(0, n, lambda i, y: 2 * y, x)"
)

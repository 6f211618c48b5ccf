"""`tf.cond`, `tf.case`, `tf.switch_case`, `tf.while_loop`, `tf.Assert` and what orders operations.

Rules this file keeps:
- what Python can decide, Python decides: run eagerly a function is just called;
- in a function that is traced, a condition that is not known makes an operation of the program,
  by `jaxvars.control.branches` and `jaxvars.control.loops`; the user's functions see Tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.control import branches as _control
from jaxvars.control import loops as _loops
from jaxvars.core.checks import require
from jaxvars.tf import nest
from jaxvars.tf.context.scope import executing_eagerly
from jaxvars.tf.tensors.components import take_apart
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.handles import lift
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor, wrap
from jaxvars.tf.variables.variable import Variable
from jaxvars.tracing import context

_SEVERAL = "Input error: exclusive=True: more than 1 conditions hold"
_NO_CASE = "Input error: None of conditions evaluated as True:"


def arrays_of(structure: Any) -> Any:
    """Return a structure with an array for each tensor or number; None and others as they are."""
    return take_apart(structure, _array_of)


def _array_of(leaf: Any) -> Any:
    is_tensor = isinstance(leaf, Tensor | Variable)
    is_other = leaf is None or not (is_tensor or jax.tree_util.all_leaves([leaf]))
    return leaf if is_other else to_array(leaf)


def _check_callable(fn: Any, what: str) -> None:
    if not callable(fn):
        raise TypeError(f"{what} must be callable.")


# ---------------------------------------------------------------- branches
def cond(
    pred: Any, true_fn: Callable[[], Any] | None = None, false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Return what one of two functions returns.

    Args:
        pred: a scalar.
        true_fn: what is called if it holds.
        false_fn: what is called otherwise; returns the same structure, shapes and types.
        name: of no effect.

    Raises:
        TypeError: when a function is missing; or, in a compiled function, when the results differ.

    >>> from jaxvars import tf
    >>> tf.cond(tf.constant(2) > 1, lambda: tf.constant("yes"), lambda: tf.constant("no"))
    <tf.Tensor: shape=(), dtype=string, numpy=b'yes'>

    Differs from TensorFlow: in a compiled function both results must have the same shape.
    """
    if true_fn is None or false_fn is None:
        missing = "true_fn" if true_fn is None else "false_fn"
        raise TypeError(f"cond(): '{missing}' argument required")
    truth = _to_truth(pred)
    if not context.is_tracer(truth):
        return true_fn() if truth else false_fn()
    return wrap(_control.cond(truth, _on_arrays(true_fn), _on_arrays(false_fn)))


def _to_truth(pred: Any) -> Any:
    """Return a condition as a bool, or a traced one; refuse what has several elements."""
    array = to_array(pred)
    if array.size != 1:
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. Use "
            "tf.reduce_any(x) or tf.reduce_all(x)"
        )
    array = array.reshape(())
    return array.astype(bool) if context.is_tracer(array) else bool(array)


def _on_arrays(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for the core, which takes and returns arrays."""
    return lambda *args: nest.map_structure(lift, arrays_of(fn(*map(wrap, args))))


def case(
    pred_fn_pairs: Any, default: Callable[[], Any] | None = None, exclusive: bool = False,
    strict: bool = False, name: str = "case",
) -> Any:  # fmt: skip
    """Return what the function of the first condition that holds returns.

    Args:
        pred_fn_pairs: pairs of a condition and a function.
        default: what is called if none holds.
        exclusive: check that at most one condition holds.
        strict: accepted, and of no effect.
        name: of no effect.

    Raises:
        InvalidArgumentError: when none holds, without a default; or several, if `exclusive`.
        TypeError: when something is not a pair of a condition and a function.
    """
    pairs = _check_pairs(pred_fn_pairs, "pred_fn_pairs")
    truths = [_to_truth(pred) for pred, _ in pairs]
    if exclusive and any(map(context.is_tracer, truths)):
        held = jnp.stack([jnp.asarray(truth) for truth in truths])
        require(held.sum() <= 1, _SEVERAL)
    elif exclusive and sum(truths) > 1:
        raise refused(f"{_SEVERAL}: {truths}")
    if default is None:
        _require_one(truths)
        (*pairs, (_, default)) = pairs
    return _run_first(list(zip(truths, (fn for _, fn in pairs), strict=False)), default)


def _require_one(truths: Sequence[Any]) -> None:
    """Raise InvalidArgumentError, now or when the program runs, unless a condition holds."""
    if any(context.is_tracer(truth) for truth in truths):
        require(jnp.any(jnp.stack([jnp.asarray(t) for t in truths])), _NO_CASE)
    elif not any(truths):
        raise refused(_NO_CASE)


def _run_first(pairs: list[Any], default: Callable[[], Any]) -> Any:
    if not pairs:
        return default()
    (truth, fn), rest = pairs[0], pairs[1:]
    return cond(truth, fn, lambda: _run_first(rest, default))


def _check_pairs(given: Any, what: str) -> list[tuple[Any, Callable[[], Any]]]:
    pairs = list(given.items()) if isinstance(given, dict) else list(given)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in '{what}' must be a 2-tuple. Received {pair}.")
        if not callable(pair[1]):
            raise TypeError(f"fn for {pair[0]} in '{what}' must be callable, got {pair[1]}.")
    if not pairs:
        raise ValueError(f"Must provide at least one item in '{what}'")
    return pairs


def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None,
    name: str = "switch_case",
) -> Any:  # fmt: skip
    """Return what the function of an index returns.

    Args:
        branch_index: an integer scalar.
        branch_fns: functions, or pairs of an index and a function, or a dict of these.
        default: what is called for other indices; the last function if it is None.
        name: of no effect.

    Raises:
        TypeError: when the index is not an integer, or something is not a function.
        ValueError: without functions, or when an index is missing.
    """
    branches = _check_branches(branch_fns)
    count = len(branches)
    branches = [*branches, default or branches[-1]]
    index = to_array(branch_index)
    if not jnp.issubdtype(index.dtype, jnp.integer):
        raise TypeError(f"'branch_index' must be an integer Tensor, got {index.dtype}")
    if not context.is_tracer(index):
        return branches[int(index) if 0 <= int(index) < count else count]()
    inside = (index >= 0) & (index < count)
    which = jnp.where(inside, index, count)
    return wrap(_control.switch(which, [_on_arrays(branch) for branch in branches]))


def _check_branches(given: Any) -> list[Callable[[], Any]]:
    if not isinstance(given, dict) and given and all(map(callable, given)):
        return list(given)
    pairs = _check_pairs(given, "branch_fns")
    for index, _ in pairs:
        if not isinstance(index, int):
            raise TypeError(f"A key of 'branch_fns' must be a Python `int`, got {index!r}.")
    pairs = sorted(pairs, key=lambda pair: pair[0])
    found = [index for index, _ in pairs]
    if found != list(range(len(pairs))):
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(pairs)}) but found "
            f"{{{','.join(map(str, found))}}}"
        )
    return [fn for _, fn in pairs]


# ---------------------------------------------------------------- loops
def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any,
    shape_invariants: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, maximum_iterations: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Call `body` again and again as long as `cond` holds.

    Args:
        cond: takes the loop's variables, returns a scalar.
        body: takes them, returns the next ones.
        loop_vars: a list or tuple of tensors, or structures of them; in a `tf.function` an empty
            one, too, where `body` assigns what `cond` reads.
        shape_invariants: accepted; in a compiled function shapes cannot change.
        parallel_iterations: accepted, and of no effect.
        back_prop: False stops gradients.
        swap_memory: accepted, and of no effect.
        maximum_iterations: stop after so many in any case. In a compiled function, if it is a
            number, the loop takes the time of that many iterations.
        name: of no effect.

    Returns:
        The last values, in the structure of `loop_vars`.

    Raises:
        TypeError: when `cond` or `body` is not a function.
        ValueError: when there are no variables, or the structure, a type or a shape changes.

    Differs from TensorFlow: in a `tf.function` no shape can change, whatever `shape_invariants`
    say: XLA's programs have fixed shapes. What grows is for a `tf.TensorArray` or an eager loop.

    >>> from jaxvars import tf
    >>> i, total = tf.while_loop(lambda i, t: i < 5, lambda i, t: (i + 1, t + i), (0, 0))
    >>> int(total)
    10
    """
    _check_callable(cond, "'cond'")
    _check_callable(body, "'body'")
    has_some = isinstance(loop_vars, list | tuple) and (loop_vars or not executing_eagerly())
    if not has_some:  # in a function variables may be all that changes
        raise ValueError("'loop_vars' must be provided.")
    start = arrays_of(loop_vars)
    loop = _run_in_python if context.is_eager() else _stage_loop
    result = loop(cond, body, start, maximum_iterations)
    return wrap(result if back_prop else jax.lax.stop_gradient(result))


def _run_body(body: Callable[..., Any], state: Any) -> Any:
    """Return what an iteration makes of the variables, in their structure."""
    new = body(*map(wrap, state))
    if len(state) == 1 and not (isinstance(new, list | tuple) and len(new) == 1):
        new = [new]
    if not isinstance(new, list | tuple):
        raise TypeError(f"The body returned {new!r} for {len(state)} loop variables.")
    nest.assert_same_structure(list(map(wrap, state)), list(new))
    made = arrays_of(list(new))
    made = made if context.is_eager() else nest.map_structure(lift, made)
    return made if type(state) is list else nest._like(state, made)


def _run_in_python(cond: Any, body: Any, state: Any, most: Any) -> Any:
    count, most = 0, None if most is None else int(most)
    while (most is None or count < most) and _to_truth(cond(*map(wrap, state))):
        state = _run_body(body, state)
        count += 1
    return state


def _stage_loop(cond: Any, body: Any, state: Any, most: Any) -> Any:
    limit, state = None if most is None else to_array(most), nest.map_structure(lift, state)
    if limit is None or not context.is_tracer(limit):
        return _loops.while_loop(
            lambda state: _to_truth(cond(*map(wrap, state))),
            lambda state: _run_body(body, state),
            state,
            max_iterations=None if limit is None else int(limit),
        )

    def holds(pair: Any) -> Any:
        return jnp.logical_and(pair[0] < limit, _to_truth(cond(*map(wrap, pair[1]))))

    def step(pair: Any) -> Any:
        return pair[0] + 1, _run_body(body, pair[1])

    return _loops.while_loop(holds, step, (jnp.zeros((), limit.dtype), state))[1]


# ---------------------------------------------------------------- order
def Assert(  # noqa: N802 - TensorFlow's name
    condition: Any, data: Any, summarize: int | None = None, name: str | None = None
) -> None:
    """Raise InvalidArgumentError, now or when the program runs, unless a condition holds.

    Args:
        condition: bools.
        data: what the message shows, a list.
        summarize: how many elements of each to show; 3 when None.
        name: of no effect.

    Raises:
        InvalidArgumentError: when it does not hold.
    """
    truth = to_array(condition)
    shown = _summarize(data, 3 if summarize is None else summarize)
    if context.is_tracer(truth):
        require(truth, f"assertion failed: [{shown}]")
    elif not context.is_eager():  # it may be in a branch that is not taken
        require(np.asarray(truth), f"assertion failed: [{shown}]")
    elif not np.all(np.asarray(truth)):
        raise refused(f"Expected '{condition}' to be true. Summarized data: {shown}")


def _summarize(data: Any, most: int) -> str:
    lines: list[str] = []
    for part in data:
        array = to_array(part)
        if context.is_tracer(array):
            lines.append(str(Tensor(array)))
            continue
        flat = np.asarray(array).reshape(-1)
        few = flat if most < 0 else flat[:most]
        lines.append(", ".join([*map(str, few), *(["..."] if len(few) < len(flat) else [])]))
    return "\n".join(lines)


def group(*inputs: Any, **kwargs: Any) -> None:
    """Do nothing: operations run in the order in which they stand.

    Raises:
        ValueError: for other names than `name`.
    """
    kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"Unknown keyword arguments: {list(kwargs)}")


def no_op(name: str | None = None) -> None:
    """Do nothing."""


@contextmanager
def control_dependencies(control_inputs: Any) -> Generator[None]:
    """Do nothing: operations run in the order in which they stand; functions are called first."""
    for given in control_inputs or ():
        if callable(given) and executing_eagerly():
            given()
    yield

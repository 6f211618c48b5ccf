"""`map_fn` and `vectorized_map`: a function for each element, in turn or all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxvars.control.arguments import count_of, leading_size
from jaxvars.control.forms import without_axis
from jaxvars.control.loops import named_scan
from jaxvars.control.state_threading import CREATES, Threads
from jaxvars.control.vmap_index import EXAMPLE, number_example
from jaxvars.core.cells import STREAMS, Cell, without_signals
from jaxvars.core.checks import first_failure
from jaxvars.core.staging import PyTreeTemplate, is_own_array, stage
from jaxvars.errors import ControlFlowError, called, user_line, word_for
from jaxvars.objects.key_order import in_order, map_leaves, ordered_like
from jaxvars.tensors.tensor import as_array
from jaxvars.tracing import context
from jaxvars.typing import Array, PyTree, R

_EXAMPLES = object()  # the name of the axis of examples, used for nothing else


@context.restoring()
def map_fn(f: Callable[[Any], R], xs: PyTree, *, batch_size: int | None = None) -> R:
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
        rows = map_leaves(
            lambda x: as_array(x)[:whole].reshape(-1, batch_size, *jnp.shape(x)[1:]), xs
        )
        done = map_fn(lambda batch: vectorized_map(f, batch), rows)
        parts.append(map_leaves(lambda y: y.reshape(whole, *y.shape[2:]), done))
    if whole < size or not size:
        parts.append(vectorized_map(f, map_leaves(lambda x: as_array(x)[whole:], xs)))
    return ordered_like(parts[0], jax.tree.map(lambda *ys: jnp.concatenate(ys), *parts))


@context.restoring()
def vectorized_map(f: Callable[[Any], R], xs: PyTree, *, in_axes: Any = 0, out_axes: Any = 0) -> R:
    """Run a function for all examples at once: `jax.vmap`, with variables.

    It may read variables, but assign none. It may draw random values: each example draws others,
    and a generator advances by as many draws as one example makes.

    Args:
        f: takes one example, returns an output.
        xs: arrays with one axis for the examples, or a pytree of them.
        in_axes: which axis that is, None for what is the same for all: a number, or a pytree
            like `xs`. Python's numbers and bools that are the same for all stay what they are.
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
    given, axes = _take_apart(xs, in_axes)
    arrays, given.arrays = [jnp.asarray(x) for x in given.arrays], []
    _check_axes(arrays, axes)
    pairs = zip(arrays, axes, strict=True)
    specs = [x if axis is None else without_axis(x, axis) for x, axis in pairs]
    staged = stage(lambda *leaves: f(given(leaves)), specs, CREATES)
    if not staged.rebuild.is_plain:
        raise ControlFlowError(
            f"The function of the vectorized_map at {user_line()} returns what is not an array: "
            f"{[x() for x in staged.rebuild.constants() if x is not None]}."
        )
    for cell in without_signals(staged.writes):
        if cell not in STREAMS:
            raise _assign_error(cell)
    threads = Threads([staged])
    (program,), state = threads.programs, threads.state()

    def one(values: Sequence[Array]) -> Any:
        mine = dict(state)
        if EXAMPLE.key in state:
            index = jax.lax.axis_index(_EXAMPLES)
            mine[EXAMPLE.key] = number_example(state[EXAMPLE.key], index)
        outputs, new = program(program.consts, mine, values)
        return staged.rebuild(outputs), threads.changed(new)

    run = jax.vmap(one, in_axes=(axes,), out_axes=(out_axes, 0), axis_name=_EXAMPLES)
    result, new = run(arrays)
    pairs = zip(threads.written, new, strict=True)
    threads.write([_merge(cell, state[cell.key], values) for cell, values in pairs])
    return in_order(result, staged.rebuild.order)


def _merge(cell: Cell, old: Array, values: Array) -> Array:
    merge = STREAMS.get(cell)
    return first_failure(values) if merge is None else merge(old, values)


def _take_apart(xs: PyTree, in_axes: Any) -> tuple[PyTreeTemplate, list[int | None]]:
    """Return a form for the examples, and the axis of each array in them.

    What has no axis and is a number of Python's stays one.
    """
    is_none = lambda x: x is None  # noqa: E731 - one use in two places of a line
    axes = jax.tree.leaves(jax.tree.broadcast(in_axes, xs, is_leaf=is_none), is_leaf=is_none)
    pairs = zip(jax.tree.leaves(xs), axes, strict=True)
    given = PyTreeTemplate(xs, numbers=any(not (a is None or is_own_array(x)) for x, a in pairs))
    kept = zip(axes, given.constants(), strict=True)
    return given, [axis for axis, constant in kept if constant is None]


def _check_axes(arrays: Sequence[Array], axes: Sequence[int | None]) -> None:
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


def _assign_error(cell: Cell) -> ControlFlowError:
    return ControlFlowError(
        f"Variable {called(cell)!r} is assigned inside the vectorized_map at {user_line()}: each "
        "example has a value for it, but it can hold one only. Return the values and assign what "
        "you make of them, or go through the examples one by one:\n"
        f"    {word_for(cell)}.assign(jv.vectorized_map(f, xs).mean(0))    # or\n"
        "    jv.map_fn(f, xs)"
    )

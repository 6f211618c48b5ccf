"""The check of indices in compiled code: `check_indices`.

JAX does not raise for an index that is out of range: it reads another element and drops a write.
While the check is on, a listener stands on each trace of a compiled function and adds, to every
operation that reads or writes by index, what fails the step if the index is outside.

Rules this file keeps:
- the switch is part of what a program is known by (`compiler/signature.py`): those that were
  compiled without checks are not changed, and are used again when it is off;
- an operation is looked at in whatever it stands: a jitted function is opened; of JAX's own loops
  and branches the bodies are traced again, with checks that call back into Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

import jax
import jax.numpy as jnp

from jaxvars.core.checks import require
from jaxvars.core.frame import Switch
from jaxvars.core.in_place import AROUND_WRITES
from jaxvars.objects.identity import KEY_PARTS, KeyPart
from jaxvars.tracing import context, jaxprs, recorder
from jaxvars.tracing.around import AROUND
from jaxvars.typing import Array

_CHECKED_INDICES = Switch()


def check_indices(enabled: bool = True) -> None:
    """Check the indices in compiled functions, and fail a step in which one is out of range.

    Eagerly, `v[i]` and what writes by index raise IndexError. In compiled code an index is not
    known until it runs, and there JAX clamps: `x[i]` reads another element, and `v[i].assign(y)`
    writes nothing, silently. With this switch the step raises CheckError, and leaves every
    variable as it was. It sees all that reads or writes by index: variables, arrays, `jnp.take`,
    `x.at[i]`, `jax.lax.dynamic_slice`, TensorArrays; also in branches, loops, gradients and `vmap`.

    Functions are compiled again while it is on, with the checks; those without are kept for when
    it is off. It makes calls slower, and is for finding a mistake.

    Args:
        enabled: check (True) or no longer (False), in all threads.

    Indices that are out of range on purpose, for `mode="drop"` or `mode="clip"`, fail too: use
    `jnp.clip` or `jnp.where` on the index. Not looked at: what a plain `jax.jit` compiles outside
    of compiled functions, and the bodies of `jax.custom_jvp`, `jax.custom_vjp` and `jax.shard_map`.

    >>> import jaxvars as jv
    >>> v = jv.Variable([1.0, 2.0, 3.0])
    >>> read = jv.compile(lambda i: v[i] + 0)
    >>> float(read(7))
    3.0
    >>> check_indices(True)
    >>> read(7)
    Traceback (most recent call last):
    jaxvars.errors.CheckError: An index is outside of axis 0, of size 3: index = 7 (...
    >>> check_indices(False)
    """
    _CHECKED_INDICES.set(enabled)


def indices_are_checked() -> bool:
    """Return whether functions that are compiled now check their indices."""
    return _CHECKED_INDICES.on


KEY_PARTS.append(
    KeyPart(indices_are_checked, lambda on: f"indices are {'' if on else 'not '}checked")
)


def check_inside(index: Array, size: Any, what: str) -> None:
    """If indices are checked, have the program fail unless a traced index is in range."""
    if _CHECKED_INDICES.on and context.is_tracer(index):
        _require_inside(index, size, f"An index is outside of {what} of size {size}")


@final
class _Indices(recorder.Watcher):
    """Looks at each operation that reads or writes by index."""

    __slots__ = ()

    def run(self, equation: recorder.Equation, staged: bool) -> list[Array]:
        """Run an operation, and check its indices."""
        if _is_indexing(equation.name):
            for axis, size, extent, index in _axes(equation.name, equation.inputs, equation.params):
                what = "An index" if extent == 1 else f"A slice of {extent}"
                message = f"{what} is outside of axis {axis}, of size {size}"
                _require_inside(index, size - extent + 1, message)
            with jax.named_scope(_CHECKED):
                return list(equation.function(*equation.inputs))
        if any(map(_has_unchecked, jaxprs.inner_jaxprs(equation.params))):
            return _run_inside(equation, self)
        return list(equation.function(*equation.inputs))


_INDICES = _Indices()
_SLICES = ("dynamic_slice", "dynamic_update_slice")
_CALLS = ("jit", "checkpoint", "remat", "remat2")
_CHECKED = "jaxvars.checked"  # the scope of operations that have a check, in programs


def _is_indexing(name: str) -> bool:
    return name in _SLICES or name == "gather" or name.startswith("scatter")


def _has_unchecked(program: Any) -> bool:
    """Return whether a program has an operation that is yet to be checked: twice does no harm."""
    return any(
        _is_indexing(eqn.primitive.name)
        or any(map(_has_unchecked, jaxprs.inner_jaxprs(eqn.params)))
        for eqn in jaxprs.open_jaxpr(program).eqns
        if _CHECKED not in str(eqn.source_info.name_stack)
    )


def _run_inside(equation: recorder.Equation, listener: _Indices) -> list[Array]:
    """Run an operation such that a listener sees what runs inside of it.

    A jitted function becomes a part of the program around it. The blocks of JAX's loops and
    branches are traced again; those of other operations are not seen.
    """
    name, params = equation.name, equation.params
    if name in _CALLS:
        with recorder.recording(listener):
            return jaxprs.evaluate(params["jaxpr"], equation.inputs)
    if name not in ("cond", "scan", "while", "while_save"):
        return list(equation.function(*equation.inputs))

    def trace_again(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(trace_again, value))
        if not hasattr(jaxprs.open_jaxpr(value), "eqns"):
            return value

        def run(*values: Array) -> list[Array]:
            with recorder.recording(listener):
                return jaxprs.evaluate(value, values)

        return jax.make_jaxpr(run)(*value.in_avals)

    params = {name: trace_again(value) for name, value in params.items()}
    return list(equation.function(*equation.inputs, **params))


def _axes(
    name: str, inputs: Sequence[Array], params: dict[str, Any]
) -> Iterator[tuple[int, Any, int, Array]]:
    """Yield for each axis that is indexed: which, its size, how much from the index, the index."""
    shape, writes = jnp.shape(inputs[0]), name not in ("dynamic_slice", "gather")
    if name in _SLICES:
        extents = jnp.shape(inputs[1]) if writes else params["slice_sizes"]
        starts = inputs[2:] if writes else inputs[1:]
        found = zip(range(len(shape)), starts, strict=True)
    else:
        numbers, indices = params["dimension_numbers"], inputs[1]
        axes = numbers.scatter_dims_to_operand_dims if writes else numbers.start_index_map
        extents = _window(numbers, shape, inputs[2]) if writes else params["slice_sizes"]
        found = ((axis, indices[..., i]) for i, axis in enumerate(axes))
    for axis, index in found:
        yield axis, shape[axis], extents[axis], index


def _window(numbers: Any, shape: tuple[int, ...], updates: Array) -> list[int]:
    """Return how much of each axis one update of a scatter covers."""
    single = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    sizes = iter([jnp.shape(updates)[axis] for axis in numbers.update_window_dims])
    return [1 if axis in single else next(sizes) for axis in range(len(shape))]


def _require_inside(index: Array, size: Any, message: str) -> None:
    """Have the program fail unless indices are from 0 to below a size."""
    with jax.named_scope(_CHECKED):
        given = jnp.asarray(index)
        given = given.astype(jnp.promote_types(given.dtype, jnp.int32))  # which can hold the size
        require((given >= 0) & (given < size), message, {"index": given})


def _record_if_checked() -> AbstractContextManager[object]:
    """Return what is entered around code that is traced: more of the same."""
    return recorder.recording(_INDICES) if _CHECKED_INDICES.on else nullcontext()


def _record_writes(value: Array) -> AbstractContextManager[object]:
    """Return what is entered around a write by index: a change is not recorded as its trace is."""
    on = _CHECKED_INDICES.on and context.is_tracer(value)
    return recorder.recording(_INDICES) if on else nullcontext()


AROUND.append(_record_if_checked)
AROUND_WRITES.append(_record_writes)

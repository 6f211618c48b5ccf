"""Writes of rows and elements by index: `scatter_add`, `scatter_nd_update`, ... of a `Variable`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.in_place import Write, widened, write_part
from jaxvars.core.variable import Variable
from jaxvars.errors import NotATensorError, ShapeError, called
from jaxvars.tracing import context
from jaxvars.typing import Array


def _divide(old: Array, rows: Array, by: Array) -> Array:
    """Divide rows, integers towards zero, one after the other: divisors' products may wrap."""
    if not jnp.issubdtype(old.dtype, jnp.integer):
        return write_part("divide", old, rows, by)
    by = jnp.broadcast_to(by, (*rows.shape, *old.shape[1:])).reshape(-1, *old.shape[1:])
    rows = rows.reshape(-1)

    def divide(i: Array, value: Array) -> Array:
        return value.at[rows[i]].set(jax.lax.div(value[rows[i]], by[i]))

    return jax.lax.fori_loop(0, rows.size, divide, old)


_WRITES: dict[str, Write] = {
    "update": partial(write_part, "set"), "add": partial(write_part, "add"),
    "sub": partial(write_part, "subtract"), "mul": partial(write_part, "multiply"), "div": _divide,
    "max": partial(write_part, "max"), "min": partial(write_part, "min"),
}  # fmt: skip


def _rows(variable: Variable, indices: Array) -> Array:
    """Return the index of rows."""
    if not variable.shape:
        raise ShapeError(
            f"Variable {called(variable._cell)!r} is a scalar: it has no rows to scatter to."
        )
    _check_bounds(indices, variable.shape[0], variable._cell)
    return indices


def _parts(variable: Variable, indices: Array) -> tuple[Array, ...]:
    """Return the index of parts, from the last axis."""
    if not indices.ndim or indices.shape[-1] > variable.ndim:
        raise ShapeError(
            f"Cannot update variable {called(variable._cell)!r} of shape {variable.shape}: the "
            f"last axis of the indices, whose shape is {indices.shape}, must have at most "
            f"{variable.ndim} numbers."
        )
    for axis in range(indices.shape[-1]):
        _check_bounds(indices[..., axis], variable.shape[axis], variable._cell)
    return tuple(jnp.moveaxis(indices, -1, 0))


def _rows_of_batches(variable: Variable, rows: Array) -> tuple[Array, ...]:
    """Return the index of rows, batch by batch: `v[b, rows[b, i]]`."""
    dims = variable.shape[: max(rows.ndim - 1, 0)]
    if not 1 <= rows.ndim <= variable.ndim or rows.shape[:-1] != dims:
        raise ShapeError(
            f"Cannot update variable {called(variable._cell)!r} of shape {variable.shape} batch "
            f"by batch: the indices have shape {rows.shape}, and all sizes but the last must be "
            "the first ones of the variable."
        )
    _check_bounds(rows, variable.shape[rows.ndim - 1], variable._cell)
    return (*jnp.indices(rows.shape, sparse=True)[:-1], rows)


def _make_scatter(find: Callable[[Variable, Array], Any], how: str) -> Callable[..., None]:
    @context.restoring()
    def scatter(variable: Variable, indices: Array, updates: Array) -> None:
        index = find(variable, _integers(indices, variable._cell))
        variable._update(_WRITES[how], index, updates)

    return scatter


SCATTERS: dict[str, Callable[[Variable, Array, Array], None]] = {
    **{f"scatter_{how}": _make_scatter(_rows, how) for how in _WRITES},
    **{f"scatter_nd_{how}": _make_scatter(_parts, how)
       for how in ("update", "add", "sub", "max", "min")},
    "batch_scatter_update": _make_scatter(_rows_of_batches, "update"),
}  # fmt: skip
"""What writes to a variable, given indices and updates, by the method's name.

Raises:
    IndexError: when an index is known and out of range. In compiled code JAX drops the update,
        unless `jv.debugging.check_indices()` is on.
"""


def _integers(indices: Array, cell: Any) -> Array:
    if indices.dtype.kind not in "iu":
        raise NotATensorError(
            f"Indices into variable {called(cell)!r} are integers, not {indices.dtype}."
        )
    return widened(indices)


def _check_bounds(indices: Array, size: int, cell: Any) -> None:
    """Refuse indices that JAX would clamp or drop silently."""
    if context.is_tracer(indices) or indices.size == 0:
        return
    known = np.asarray(indices)  # jnp's min would be staged where a function is traced
    low, high = int(known.min()), int(known.max())
    if low < -size or high >= size:
        raise IndexError(
            f"Index {low if low < -size else high} is outside of variable {called(cell)!r}, which "
            f"has {size} rows."
        )

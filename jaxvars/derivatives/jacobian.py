"""Jacobians of what a tape has recorded: the pullbacks of all rows of a unit matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.autodiff.replay import Program
from jaxvars.autodiff.reverse import reverse_through
from jaxvars.autodiff.tape import GradientTape, Sources, UnconnectedGradients
from jaxvars.autodiff.tape_base import flatten
from jaxvars.errors import TapeError
from jaxvars.objects.key_order import ordered_like
from jaxvars.tensors.array_like import unwrap
from jaxvars.typing import Array, PyTree, Value


def jacobian(tape: GradientTape, target: PyTree, sources: PyTree, how: UnconnectedGradients) -> Any:
    """Return what `GradientTape.jacobian` returns."""
    tape._use()
    leaves, treedef = flatten(sources)
    value = _value_of(tape, target)
    with tape._aside():
        values = Sources(tape, leaves)
        program = tape._make_program(values.unique, [value])
        rows = _make_basis(value)
        found = _pull_rows(program, values.unique, rows)
        shaped = [g if g is None else g.reshape(*value.shape, *g.shape[1:]) for g in found]
        grads = values.gather(shaped)
        if how is UnconnectedGradients.ZERO:
            grads = [
                jnp.zeros((*value.shape, *x.shape), x.dtype) if g is None else g
                for x, g in zip(leaves, grads, strict=True)
            ]
    return ordered_like(sources, jax.tree.unflatten(treedef, grads))


def batch_jacobian(
    tape: GradientTape, target: PyTree, source: Any, how: UnconnectedGradients
) -> Any:
    """Return what `GradientTape.batch_jacobian` returns."""
    tape._use()
    value = _value_of(tape, target)
    if not value.shape or not source.shape or value.shape[0] != source.shape[0]:
        raise TapeError(
            f"batch_jacobian needs a target and a source with the same first dimension, not "
            f"{value.shape} and {source.shape}. For a single Jacobian use tape.jacobian."
        )
    with tape._aside():
        values = Sources(tape, [source])
        program = tape._make_program(values.unique, [value])
        inner = value.shape[1:]
        rows = _make_basis(jnp.zeros(inner, value.dtype))
        rows = jnp.broadcast_to(rows[:, None], (rows.shape[0], *value.shape))
        (found,) = values.gather(_pull_rows(program, values.unique, rows))
        if found is not None:
            return jnp.moveaxis(found, 0, 1).reshape(value.shape[0], *inner, *source.shape[1:])
        zero = how is UnconnectedGradients.ZERO
        shape = (*value.shape, *source.shape[1:])
        return jnp.zeros(shape, source.dtype) if zero else None


def _value_of(tape: GradientTape, target: Any) -> Value:
    """Return the value of a target; of a variable that no tape has followed, the one it has."""
    value = tape._target_value(target)
    return unwrap(target) if value is None else value


def _pull_rows(program: Program, sources: Sequence[Array], rows: Array) -> list[Array | None]:
    """Return the pullbacks of many cotangents, None for a source that is not connected."""
    if not any(program.connected):
        return [None] * len(sources)
    function = program.function
    with reverse_through(program):
        _, pull = jax.vjp(lambda *primals: function(primals, program.constants), *sources)
        found = jax.vmap(lambda row: pull([row]))(rows)
    return [g if on else None for g, on in zip(found, program.connected, strict=True)]


def _make_basis(value: Array) -> Array:
    size = int(np.prod(value.shape))
    return jnp.eye(size, dtype=value.dtype).reshape(size, *value.shape)

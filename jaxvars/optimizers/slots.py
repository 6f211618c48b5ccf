"""What ties slots to variables, and how both begin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax.numpy as jnp

from jaxvars.core.cells import STORE, Cell
from jaxvars.core.frames import LOCAL, BoundFrame, CaptureFrame
from jaxvars.core.store import flush
from jaxvars.core.variable import Variable, make_variable
from jaxvars.devices.mesh import replicated_like
from jaxvars.errors import NotATensorError
from jaxvars.modules.module import Module
from jaxvars.objects.traversal import Tie as Tie  # pickles have it from here
from jaxvars.tensors.tensor import to_tensor


def is_lost(cell: Cell) -> bool:
    """Return whether a cell got no value, as the call that made it failed."""
    frame = LOCAL.frame
    if isinstance(frame, BoundFrame) or (
        isinstance(frame, CaptureFrame) and (frame.refuse_creation or cell.key in frame.values)
    ):
        return False
    flush()
    return cell.key not in STORE


def sharding_like(
    owner: Variable | None, others: Iterable[Variable], shape: tuple[int, ...]
) -> Any:
    """Return how a slot is placed: as its owner is, or, without one, whole on the others' mesh."""
    if owner is not None:
        return slot_sharding(owner._cell.sharding, owner.shape, shape)
    return next(filter(None, (replicated_like(v._cell.sharding) for v in others)), None)


def slot_sharding(sharding: Any, shape: tuple[int, ...] | None, slot: tuple[int, ...]) -> Any:
    """Return how a slot of a shape is placed, for a variable of a shape and a sharding."""
    return sharding if slot == shape else replicated_like(sharding)


def as_rate(given: Any, name: str) -> Any:
    """Return a learning rate as a Variable or schedule, or a dict of such; None stays None."""
    if isinstance(given, Mapping):
        return {pattern: as_rate(rate, f"{name}/{pattern}") for pattern, rate in given.items()}
    if given is None or isinstance(given, Variable):
        return given
    if isinstance(given, Module) or (isinstance(given, list | tuple) and given):
        raise NotATensorError(
            f"The first argument of an optimizer is the learning rate, not {type(given).__name__}. "
            "Variables are passed when it is used: optimizer.minimize(loss, model)."
        )
    if callable(given):
        return given
    rate = to_tensor(given, jnp.float32, what="the learning rate")
    return make_variable(rate, name, False, None)

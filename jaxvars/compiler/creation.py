"""The first values of variables that a trace of a function created."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.cells import STORE
from jaxvars.core.frames import LOCAL
from jaxvars.core.staging import Staged
from jaxvars.errors import CompileError, CreationError
from jaxvars.tensors.dtypes import is_string
from jaxvars.tracing import context, jaxprs
from jaxvars.typing import Array


def initialize(staged: Staged, values: Sequence[Array], name: str) -> None:
    """Give the variables that a trace created their first values."""
    for made in staged.created:
        cell = made.ref()
        if cell is None or cell.owner() is None:
            raise CreationError(
                f"{name} creates variable {made.name!r} at {made.line}, but "
                "nothing keeps it: it would be created again by each call. Create it outside, "
                "or keep it, for example as self.w."
            )
    count = sum(made.first is None for made in staged.created)
    program, used = jaxprs.last_outputs(staged.program, count)
    given = [*map(LOCAL.frame.read, staged.reads), *values]
    inputs = list(itertools.compress(given, used))
    if any(isinstance(x, jax.ShapeDtypeStruct) for x in inputs):
        raise CompileError(
            f"{name} creates variables from its arguments: call it once with "
            "real ones before requesting its trace."
        )
    program, is_own = jaxprs.own_outputs(program)
    firsts = jaxprs.jaxpr_function(program)(*inputs)
    owned = (x if own else _own(x) for x, own in zip(firsts, is_own, strict=True))
    for made in staged.created:
        cell, value = made.ref(), next(owned) if made.first is None else made.first
        if cell is not None and cell.key not in STORE:  # one that was assigned meanwhile stays
            LOCAL.frame.create(cell, value)


def _own(value: Array) -> Array:
    """Return a first value in memory that nothing else holds: it may be a constant, of NumPy's."""
    if is_string(value.dtype):
        return np.asarray(value)
    if context.is_tracer(value):
        return value  # which is refused
    return context.copied(value if isinstance(value, jax.Array) else jnp.asarray(value))

"""`reread`: what a variable holds after it was assigned, where a program is differentiated.

Two readers disagree on what the derivative is of a value that was assigned and read again:

- for a tape, an assign is not differentiated, and a read is a source: its tangent is that of the
  variable, not of what it was computed from (as in TensorFlow);
- for a JAX transform of the pure function, and for a tape that goes through assigns, it is simply
  the value that was computed.

So the read is a separate operation in the program, which does nothing when it is run and
has an effect only when it is differentiated.

Rule this file keeps: what JAX remembers of a differentiated program is kept apart for the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import ad, batching, mlir

from jaxvars.errors import TapeError, user_line
from jaxvars.tracing import capture
from jaxvars.typing import Array

_is_for_tape: Any = jax.make_user_context(False)  # has part in the keys of JAX's caches


def reread(value: Array, source: Array) -> Array:
    """Return `value`, which was assigned to a variable that held `source` at first."""
    return reread_p.bind(value, source)


def for_tape(*, through_assigns: bool = False) -> AbstractContextManager[object]:
    """Differentiate, inside, as a tape does; one that goes through assigns is like a transform."""
    return _is_for_tape(not through_assigns)


def is_for_tape() -> bool:
    """Return whether a tape differentiates now."""
    return _is_for_tape.value


def _jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array]:
    value, source = primals
    if _is_for_tape.value and jnp.shape(value) != jnp.shape(source):
        if isinstance(tangents[1], ad.Zero):
            return reread_p.bind(*primals), jnp.zeros_like(value)
        raise TapeError(
            f"A function that is differentiated at {user_line()} assigns a variable of shape "
            f"{source.shape} a value of shape {value.shape} and reads it: the gradient by the "
            "variable has no shape. Assign it before, outside of the tape, or compute with the "
            "value that was assigned:\n"
            "    v.assign(x)\n"
            "    y = f(x)    # not: f(v)"
        )
    return reread_p.bind(*primals), tangents[1] if _is_for_tape.value else tangents[0]


def batch_whole(primitive: Any) -> Any:
    """Return the batching rule of a primitive whose operands have one shape."""

    def vmap(values: Sequence[Array], axes: Sequence[int | None]) -> tuple[Array, int]:
        size = next(jnp.shape(x)[a] for x, a in zip(values, axes, strict=True) if a is not None)
        whole = [
            jnp.broadcast_to(x, (size, *jnp.shape(x))) if axis is None else jnp.moveaxis(x, axis, 0)
            for x, axis in zip(values, axes, strict=True)
        ]
        return primitive.bind(*whole), 0

    return vmap


reread_p = capture.new_primitive("reread")
reread_p.def_impl(lambda value, source: value)
reread_p.def_abstract_eval(lambda value, source: value)
ad.primitive_jvps[reread_p] = _jvp
batching.primitive_batchers[reread_p] = batch_whole(reread_p)
mlir.register_lowering(reread_p, lambda ctx, value, source: [value])

"""A number that cannot be computed: a step that is given it fails as one that has no memory."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

TOO_MUCH = 2**45


def failing_number(size: int) -> Any:
    """Return a number of which it is known later that it cannot be computed.

    Args:
        size: of the matrices that are multiplied before.
    """
    return _never(jnp.ones((size, size)))[1]


@jax.jit
def _never(m: Any) -> Any:
    """Return a number that cannot be computed: large work, so that XLA runs it later."""
    return jnp.zeros(TOO_MUCH, jnp.int8) + (m @ m)[0, 0].astype(jnp.int8), m[0] @ m[0]

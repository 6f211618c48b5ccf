"""Derivatives compared with finite differences, in random directions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.typing import Array

STEPS = (1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6)
_SMALL = (1e-2, 1e-3, 1e-4)  # of which both sides are looked at, too


def random_direction(random: np.random.Generator, start: Array) -> np.ndarray:
    """Return how to move an array, in proportion to it; what is not finite stays."""
    way = random.standard_normal(start.shape)
    if jnp.iscomplexobj(start):
        way = way + 1j * random.standard_normal(start.shape)
    size = np.abs(np.asarray(start))
    return (way * np.where(np.isfinite(size), np.maximum(size, 1.0), 0.0)).astype(start.dtype)


def nearest(
    slope: float, pairs: Sequence[tuple[float, float]], rounding: float
) -> tuple[float, float]:
    """Return the finite difference to compare a slope with, and how far they may be apart.

    Args:
        slope: the derivative.
        pairs: the function's values to both sides, for each step.
        rounding: the relative error of these values.
    """
    found = [(up - down) / (2 * step) for step, (up, down) in zip(STEPS, pairs, strict=True)]
    scale = max(abs(slope), 1e-3 * max(map(abs, found)))
    best = slope, np.inf
    errors = [rounding * max(map(abs, p)) / step for step, p in zip(STEPS, pairs, strict=True)]
    for error, (a, b) in zip(errors[1:], itertools.pairwise(found), strict=True):
        if max(abs(slope - a), abs(slope - b)) <= 0.02 * max(abs(a), abs(b), abs(slope)):
            return b, np.inf  # two steps say so: at others there is a kink, or rounding
        # Two neighbours that are close: neither rounding nor curvature decides there.
        slack = 10 * (abs(a - b) + error) + 0.02 * max(abs(b), scale)
        best = min(best, (b, slack), key=lambda pair: pair[1])
    return best


def sides(middle: float, pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the slopes to the two sides, which stay far apart at a kink."""
    values = dict(zip(STEPS, pairs, strict=True))
    both = [sorted(((values[h][0] - middle) / h, (middle - values[h][1]) / h)) for h in _SMALL]
    return max(low for low, _ in both), min(high for _, high in both)


def slope_of(loss: Callable[..., Array], start: list[Array], way: list[Any]) -> float | None:
    """Return the derivative in a direction; None if JAX has neither way to it."""
    try:
        return float(jax.jvp(loss, start, [jnp.asarray(w) for w in way])[1])
    except TypeError:  # a custom_vjp has no forward mode
        pass
    try:
        _, pull = jax.vjp(loss, *start)
    except ValueError:  # a while loop has no reverse mode
        return None
    return float(sum(jnp.sum(g * w).real for g, w in zip(pull(1.0), way, strict=True)))

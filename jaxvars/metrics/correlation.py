"""How labels and predictions go together: the functions of the correlation metrics."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxvars.losses.inputs import EPSILON
from jaxvars.losses.running import elementwise
from jaxvars.typing import Array


@elementwise()
def pearson_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Array:
    """Return the Pearson correlation of labels and predictions along an axis, from -1 to 1.

    Args:
        y_true: what should come out.
        y_pred: what came out, of the same shape.
        axis: what the correlation is along.

    Returns:
        An array without that axis; NaN where nothing varies.

    >>> round(pearson_correlation([[0.0, 1.0, 2.0]], [[3.0, 2.0, 1.0]]).item(), 4)
    -1.0
    """

    def normal(y: Array) -> Array:
        y = y - y.mean(axis, keepdims=True)
        return y / y.std(axis, keepdims=True)

    return (normal(y_true) * normal(y_pred)).mean(axis)


@elementwise()
def concordance_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Array:
    """Return the concordance correlation of labels and predictions along an axis, from -1 to 1.

    It is 1 only where they are equal, not merely on a line: L. Lin, Biometrics 45 (1989).

    Args:
        y_true: what should come out.
        y_pred: what came out, of the same shape.
        axis: what the correlation is along.

    Returns:
        An array without that axis.

    >>> round(concordance_correlation([[0.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]]).item(), 4)
    0.5714
    """
    true, pred = y_true.mean(axis, keepdims=True), y_pred.mean(axis, keepdims=True)
    spread = y_true.var(axis) + y_pred.var(axis) + jnp.square(true - pred).squeeze(axis)
    return 2 * ((y_true - true) * (y_pred - pred)).mean(axis) / (spread + EPSILON)

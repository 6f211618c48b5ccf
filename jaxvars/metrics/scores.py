"""F-scores of any beta: means of precision and recall."""

from __future__ import annotations

from abc import ABC
from typing import Any, final

import jax
import jax.numpy as jnp

from jaxvars.core.module import Late
from jaxvars.errors import ShapeError
from jaxvars.initializers.initializer import one_of
from jaxvars.losses.inputs import EPSILON, leading, tensor, wide
from jaxvars.metrics.metric import KnownMetric, unseen
from jaxvars.metrics.sums import summed, total
from jaxvars.metrics.tally import Tally, take_all
from jaxvars.typing import Array, DTypeLike

AVERAGES = ("micro", "macro", "weighted")
_KINDS = ("true_positives", "false_positives", "false_negatives", "intermediate_weights")


def checked_table(y_true: Any, y_pred: Any, weight: Any, what: str) -> tuple[Array, Array, Array]:
    """Return labels and predictions of shape [samples, outputs], and weights or None."""
    true, pred = tensor(y_true, f"y_true of {what}"), tensor(y_pred, f"y_pred of {what}")
    if pred.ndim != 2 or true.shape != pred.shape:
        raise ShapeError(
            f"{what} takes labels and predictions of shape [samples, outputs], but y_true has "
            f"shape {true.shape} and y_pred {pred.shape}."
        )
    if weight is not None:
        weight = leading(tensor(weight, f"sample_weight of {what}"), pred.shape, what)
    return true, pred, weight


class FScore(KnownMetric, Late, ABC):
    """What F-scores of any beta share."""

    average: str | None
    threshold: float | None
    beta: float

    def _begin(self, average: str | None, threshold: float | None) -> None:
        self.average = average and one_of(average, "average", AVERAGES)
        if threshold is not None and not 0 < threshold <= 1:
            raise ValueError(f"threshold is above 0 and at most 1, not {threshold!r}.")
        self.threshold = threshold
        self.counts: dict[str, Tally] = {}

    @property
    def is_built(self) -> bool:
        """Whether the state is there."""
        return bool(self.counts)

    def build(self, num_outputs: int) -> None:
        """Make the state for some outputs now, rather than at the first update."""
        shape = () if self.average == "micro" else (num_outputs,)
        self.counts = {kind: self.add_tally(kind, shape) for kind in _KINDS}

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take labels and scores into account.

        Args:
            y_true: labels of 0 and 1, of shape [samples, outputs].
            y_pred: scores, of the same shape.
            sample_weight: a number, or one for each sample.

        Raises:
            ShapeError: when the shapes are others.
        """
        true, pred, weight = checked_table(y_true, y_pred, sample_weight, self.name)
        outputs = pred.shape[1]
        if self.counts and self.counts[_KINDS[0]].shape not in ((), (outputs,)):
            raise ShapeError(
                f"{self.name} was made for {self.counts[_KINDS[0]].shape[0]} outputs, but y_pred "
                f"has shape {pred.shape}."
            )
        if not self.counts:
            self.build(outputs)
        threshold, micro = self.threshold, self.average == "micro"
        found = unseen(lambda: _hits(true, pred, weight, threshold, micro=micro))
        take_all((self.counts[kind], counts) for kind, counts in zip(_KINDS, found, strict=True))

    def result(self) -> Array:
        """Return the score, or one for each output."""
        if not self.counts:
            return jnp.zeros((), self.dtype)
        parts = [self.counts[kind].parts.value for kind in _KINDS]
        return self._rounded(_f_score(parts, self.beta, average=self.average))

    def _merge(self, other: FScore) -> None:
        if not self.counts:
            shape = other.counts[_KINDS[0]].shape
            self.build(shape[0] if shape else 1)
        super()._merge(other)


@jax.jit(static_argnames="micro")
def _hits(true: Array, pred: Array, weight: Array, threshold: Array, micro: bool) -> Any:
    pred = wide(pred)
    if threshold is None:
        chosen = (pred >= pred.max(-1, keepdims=True)) & (jnp.abs(pred) > 1e-9)
    else:
        chosen = pred > threshold
    true, chosen = true.astype(pred.dtype), chosen.astype(pred.dtype)
    weight = jnp.ones((), pred.dtype) if weight is None else weight.astype(pred.dtype)
    axes = None if micro else (0,)
    kinds = (chosen * true, chosen * (1 - true), (1 - chosen) * true, true)
    return tuple(summed(kind * weight, axes) for kind in kinds)


@jax.jit(static_argnames="average")
def _f_score(parts: list[Array], beta: Array, average: str | None) -> Array:
    hits, false, missed, weights = map(total, parts)
    precision, recall = hits / (hits + false + EPSILON), hits / (hits + missed + EPSILON)
    mean = precision * recall / (beta**2 * precision + recall + EPSILON)
    score = mean * (1 + beta**2)
    if average == "weighted":
        return (score * weights / (weights.sum() + EPSILON)).sum()
    return score if average is None else score.mean()


@final
class FBetaScore(FScore):
    """A mean of precision and recall in which recall counts `beta` times as much.

    Args:
        beta: above 0.
        name: what it is called; "fbeta_score" when None.

    Raises:
        ValueError: when an option is none of these.

    Example:
        >>> metric = FBetaScore(beta=2.0, threshold=0.5)
        >>> metric([[1, 1], [1, 0]], [[0.2, 0.6], [0.6, 0.3]]).round(2).tolist() == [
        ...     float(jnp.float32(0.56)),
        ...     1.0,
        ... ]
        True
    """

    def __init__(
        self, average: str | None = None, beta: float = 1.0, threshold: float | None = None,
        name: str | None = "fbeta_score", dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, name)
        if not beta > 0:
            raise ValueError(f"beta is above 0, not {beta!r}.")
        self.beta = float(beta)
        self._begin(average, threshold)


@final
class F1Score(FScore):
    """The harmonic mean of precision and recall.

    Raises:
        ValueError: when an option is none of these.

    Example:
        >>> metric = F1Score(average="macro")
        >>> round(float(metric([[1, 0], [0, 1]], [[0.9, 0.1], [0.2, 0.8]])), 4)
        1.0
    """

    beta = 1.0

    def __init__(
        self, average: str | None = None, threshold: float | None = None, name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, name)
        self._begin(average, threshold)

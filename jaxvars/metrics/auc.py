"""`AUC`: the area under the curve that true and false answers make as the threshold changes."""

from __future__ import annotations

import functools
from typing import Any, final

import jax.numpy as jnp

from jaxvars.errors import ShapeError
from jaxvars.initializers.initializer import one_of
from jaxvars.losses.inputs import EPSILON, checked_count, divide, tensor
from jaxvars.metrics.confusion import KINDS, check_thresholds, count_confusions, inputs
from jaxvars.metrics.metric import LateCounts, describe_update, unseen
from jaxvars.metrics.sums import total
from jaxvars.tensors.quick_jit import quick_jit
from jaxvars.typing import Array, DTypeLike

CURVES = ("ROC", "PR", "PRGAIN")
METHODS = ("interpolation", "majoring", "minoring")


@final
class AUC(LateCounts, kinds=KINDS):
    """The area under a curve of right and wrong answers, by sums at thresholds.

    Formula: `sum((x[:-1] - x[1:]) * (y[:-1] + y[1:]) / 2)` of the curve's points at the thresholds;
    the heights may be taken otherwise, see `summation_method`.

    Args:
        num_thresholds: how many, at equal distances from 0 to 1; more are more exact.
        curve: "ROC" (true against false positive rate), "PR" (precision against recall) or
            "PRGAIN" (their gains: Flach and Kull 2015).
        summation_method: how heights between thresholds are taken: "interpolation" (the mean; for
            "PR" the integral of Davis and Goadrich 2006), "majoring" (the larger) or "minoring".
        thresholds: numbers between 0 and 1 instead of `num_thresholds`; 0 and 1 are added.
        multi_label: whether the last axis is labels with a curve each; the result is the mean of
            their areas.
        num_labels: how many labels; found at the first update when None.
        label_weights: weights of the labels.
        from_logits: whether scores are logits.

    Raises:
        ValueError: when an option is none of these.

    Example:
        >>> metric = AUC()
        >>> metric.update_state([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
        >>> float(metric.result())
        0.75

    Differs from TensorFlow: counts stay exact above 2**24.
    """

    def __init__(
        self, num_thresholds: int = 200, curve: str = "ROC",
        summation_method: str = "interpolation", name: str | None = None,
        dtype: DTypeLike | None = None, thresholds: Any = None, multi_label: bool = False,
        num_labels: int | None = None, label_weights: Any = None, from_logits: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(dtype, name)
        self.curve = one_of(str(curve).upper(), "curve", CURVES)
        self.summation_method = one_of(str(summation_method).lower(), "summation method", METHODS)
        self.thresholds, self.num_thresholds = thresholds, num_thresholds
        self._at = _add_ends(thresholds, num_thresholds)
        if num_labels and not multi_label:
            raise ValueError("num_labels is for multi_label=True: labels with a curve each.")
        self.multi_label, self.num_labels = multi_label, num_labels
        self.label_weights = label_weights
        self.from_logits = from_logits
        if num_labels or not multi_label:
            self.build(num_labels or 1)

    def build(self, num_labels: int) -> None:
        """Make the state for some labels now, rather than at the first update."""
        self._make((len(self._at), num_labels) if self.multi_label else (len(self._at),))

    @describe_update("labels: 0 for no, others for yes.", "scores, of the same shape.")
    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take labels and scores into account."""
        true, pred, weight = inputs(y_true, y_pred, sample_weight, self.name)
        weights = self.label_weights
        if weights is not None:
            weights = tensor(weights, f"label_weights of {self.name}")
        self._check(pred, weights)
        found = unseen(
            lambda: count_confusions(
                true, pred, weight, None if self.multi_label else weights,
                thresholds=self._at, by_label=self.multi_label, from_logits=self.from_logits,
            )
        )  # fmt: skip
        self._take(found)

    def _check(self, pred: Array, weights: Array | None) -> None:
        labels = pred.shape[-1]
        if self.multi_label and pred.ndim != 2:
            raise ShapeError(
                f"{self.name} with multi_label=True takes scores of shape [samples, labels], not "
                f"{pred.shape}."
            )
        known = self.counts[KINDS[0]].shape[1] if self.multi_label and self.counts else labels
        if labels != known:
            raise ShapeError(
                f"{self.name} was made for {known} labels, but y_pred has shape {pred.shape}."
            )
        if weights is not None and weights.shape not in ((), (1,), (labels,)):
            raise ShapeError(
                f"{self.name} has label_weights of shape {weights.shape}, for scores of shape "
                f"{pred.shape}: give one for each label."
            )
        if not self.counts:
            self.build(labels)

    def result(self) -> Array:
        """Return the area; 0 when there is nothing yet."""
        if not self.counts:
            return jnp.zeros((), self.dtype)
        weights = self.label_weights if self.multi_label else None
        found = _area(self._parts(), weights, curve=self.curve, method=self.summation_method)
        return self._to_dtype(found)


def _add_ends(thresholds: Any, count: int) -> tuple[float, ...]:
    """Return thresholds with one below 0 and one above 1, between which all scores are."""
    if thresholds is not None:
        inner = sorted(check_thresholds(thresholds, 0.5)) if len(thresholds) else []
    else:
        last = checked_count(count, "num_thresholds", 2) - 1
        inner = [i / last for i in range(1, last)]
    return (-EPSILON, *inner, 1.0 + EPSILON)


@functools.partial(quick_jit, static_argnames=("curve", "method"))
def _area(parts: list[Array], weights: Array, curve: str, method: str) -> Array:
    counts = tuple(map(total, parts))
    if (curve, method) == ("PR", "interpolation"):
        areas = _interpolate(*counts).sum(0)
    else:
        x, y = {"ROC": _roc, "PR": _pr, "PRGAIN": _gains}[curve](*counts)
        areas = ((x[:-1] - x[1:]) * _find_heights(y, method)).sum(0)
    if weights is None:
        return areas.mean()
    weights = jnp.broadcast_to(jnp.asarray(weights, areas.dtype), areas.shape)
    return divide((areas * weights).sum(), weights.sum())


def _find_heights(y: Array, method: str) -> Array:
    if method == "interpolation":
        return (y[:-1] + y[1:]) / 2.0
    return jnp.minimum(y[:-1], y[1:]) if method == "minoring" else jnp.maximum(y[:-1], y[1:])


def _roc(tp: Array, fp: Array, tn: Array, fn: Array) -> tuple[Array, Array]:
    return divide(fp, fp + tn), divide(tp, tp + fn)


def _pr(tp: Array, fp: Array, tn: Array, fn: Array) -> tuple[Array, Array]:
    return divide(tp, tp + fn), divide(tp, tp + fp)


def _gains(tp: Array, fp: Array, tn: Array, fn: Array) -> tuple[Array, Array]:
    odds = divide(tp + fn, tn + fp)
    recall = jnp.where(tp == 0, 0.0, 1.0 - odds * divide(fn, tp))
    precision = jnp.where(tp == 0, 1.0, 1.0 - odds * divide(fp, tp))
    return jnp.maximum(recall, 0.0), precision


def _interpolate(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    """Return the areas between thresholds, where true positives grow evenly with positives."""
    p = tp + fp
    slope = divide(tp[:-1] - tp[1:], jnp.maximum(p[:-1] - p[1:], 0.0))
    start = tp[1:] - slope * p[1:]
    grown = jnp.where((p[:-1] > 0) & (p[1:] > 0), divide(p[:-1], p[1:]), 1.0)
    area = slope * (tp[:-1] - tp[1:] + start * jnp.log(grown))
    return divide(area, jnp.maximum(tp[1:] + fn[1:], 0.0))

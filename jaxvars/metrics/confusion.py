"""Metrics that count right and wrong answers at thresholds, but for AUC.

Rules this file keeps:
- one threshold gives a scalar, several an array with a value for each, in the order given;
- each count is a Tally of shape [thresholds].
"""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar, final

import jax
import jax.numpy as jnp

from jaxvars.display.docstrings import make_class
from jaxvars.losses.inputs import divide
from jaxvars.metrics.accuracies import checked_k
from jaxvars.metrics.metric import KnownMetric, takes, unseen
from jaxvars.metrics.sums import Tally, take_all, total
from jaxvars.metrics.thresholds import (
    KINDS,
    LEAST,
    check_class,
    checked_thresholds,
    confusions,
    even_thresholds,
    inputs,
)
from jaxvars.tracing import context
from jaxvars.typing import Array, DTypeLike


class Thresholded(KnownMetric, ABC):
    """A metric of counts at thresholds.

    Attributes:
        true_positives: and the others of `KINDS` that `_kinds` names: Tallies.
    """

    _kinds: ClassVar[tuple[str, ...]] = KINDS
    _raises: ClassVar[str] = "ValueError: when a threshold is not from 0 to 1."
    top_k: int | None = None
    class_id: int | None = None

    def __init_subclass__(cls, kinds: tuple[str, ...] = KINDS) -> None:
        super().__init_subclass__(**{"raise": cls._raises})
        cls._kinds = kinds

    def _begin(self, thresholds: tuple[float, ...]) -> None:
        self._at = thresholds
        for kind in self._kinds:
            setattr(self, kind, self.add_tally(kind, (len(self._at),)))

    @takes("labels: 0 for no, others for yes.", "scores from 0 to 1, of the same shape.")
    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take labels and scores into account."""
        given = inputs(y_true, y_pred, sample_weight, self.name)
        chosen: Any = {"top_k": self.top_k, "class_id": self.class_id}
        check_class(given[1], **chosen, what=self.name)
        found = unseen(lambda: confusions(*given, thresholds=self._at, **chosen))
        counts: dict[str, Any] = dict(zip(KINDS, found, strict=True))
        take_all((self._tally(kind), counts[kind]) for kind in self._kinds)

    def _tally(self, kind: str) -> Tally:
        return getattr(self, kind)

    def _parts(self) -> list[Array]:
        return [self._tally(kind).parts.value for kind in self._kinds]

    @context.restoring()
    def _one(self, values: Array) -> Array:
        """Return a value for each threshold, or that of the only one."""
        return self._rounded(values[0] if len(self._at) == 1 else values)


# ---------------------------------------------------------------- counts
class _Count(Thresholded, ABC):
    def __init__(
        self, thresholds: Any = None, name: str | None = None, dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(dtype, name)
        self.thresholds = thresholds
        self._begin(checked_thresholds(thresholds, 0.5))

    def result(self) -> Array:
        """Return the count, or one for each threshold."""
        return self._one(self._tally(self._kinds[0]).value)


def _count(name: str, kind: str, what: str, value: float) -> type[_Count]:
    example = f"float({name}()([0, 1, 0, 1], [0.1, 0.2, 0.8, 0.9]))"
    return make_class(name, _Count, __name__, what, example, value, kinds=(kind,))


TruePositives = _count("TruePositives", "true_positives", "How many yes answers are right.", 1.0)
FalsePositives = _count("FalsePositives", "false_positives", "How many yes answers are wrong.", 1.0)
TrueNegatives = _count("TrueNegatives", "true_negatives", "How many no answers are right.", 1.0)
FalseNegatives = _count("FalseNegatives", "false_negatives", "How many no answers are wrong.", 1.0)


# ---------------------------------------------------------------- precision and recall
@jax.jit
def _share(some: Array, others: Array) -> Array:
    """Return a part of a whole, given the tallies of both parts."""
    return divide(total(some), total(some) + total(others))


class _Share(Thresholded, ABC):
    def __init__(
        self, thresholds: Any = None, top_k: int | None = None, class_id: int | None = None,
        name: str | None = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, name)
        self.thresholds, self.class_id = thresholds, class_id
        self.top_k = None if top_k is None else checked_k(top_k)
        self._begin(checked_thresholds(thresholds, 0.5 if top_k is None else LEAST))

    def result(self) -> Array:
        """Return the part, or one for each threshold; 0 of nothing."""
        return self._one(_share(*self._parts()))


@final
class Precision(_Share, kinds=("true_positives", "false_positives")):
    """Which part of the yes answers is right.

    >>> metric = Precision()
    >>> float(metric([0, 1, 1, 1], [0.6, 0.2, 0.8, 0.9], sample_weight=[2.0, 1.0, 1.0, 1.0]))
    0.5
    """


@final
class Recall(_Share, kinds=("true_positives", "false_negatives")):
    """Which part of what is yes is answered so.

    >>> float(Recall()([1, 1, 1, 1], [0.6, 0.2, 0.8, 0.9]))
    0.75
    """


# ---------------------------------------------------------------- trade-offs
class _At(Thresholded, ABC):
    _raises = "ValueError: when the least is not from 0 to 1, or there are no thresholds."
    _best: ClassVar[str]
    _given: ClassVar[str]

    def __init_subclass__(cls, best: str, given: str) -> None:
        super().__init_subclass__()
        cls._best, cls._given = best, given

    def __init__(
        self, value: float, num_thresholds: int, class_id: int | None, name: Any, dtype: Any
    ) -> None:
        super().__init__(dtype, name)
        if not 0 <= value <= 1:
            raise ValueError(f"{self._given.capitalize()} is from 0 to 1, not {value!r}.")
        setattr(self, self._given, value)
        self.num_thresholds, self.class_id = num_thresholds, class_id
        self._begin(even_thresholds(num_thresholds))

    def result(self) -> Array:
        """Return the best at any threshold; 0 where there is none."""
        least = getattr(self, self._given)
        return self._rounded(_best_at(self._parts(), least, best=self._best, given=self._given))


@jax.jit(static_argnames=("best", "given"))
def _best_at(parts: list[Array], least: Array, best: str, given: str) -> Array:
    tp, fp, tn, fn = map(total, parts)
    shares = {
        "sensitivity": divide(tp, tp + fn),
        "recall": divide(tp, tp + fn),
        "specificity": divide(tn, tn + fp),
        "precision": divide(tp, tp + fp),
    }
    return jnp.max(jnp.where(shares[given] >= least, shares[best], 0.0))


@final
class SensitivityAtSpecificity(_At, best="sensitivity", given="specificity"):
    """The best sensitivity where specificity is at least a number.

    Sensitivity is the part of what is yes that is answered so; specificity that of what is no.

    >>> metric = SensitivityAtSpecificity(0.5)
    >>> float(metric([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8]))
    0.5
    """

    def __init__(
        self, specificity: float, num_thresholds: int = 200, class_id: int | None = None,
        name: str | None = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(specificity, num_thresholds, class_id, name, dtype)


@final
class SpecificityAtSensitivity(_At, best="specificity", given="sensitivity"):
    """The best specificity where sensitivity is at least a number.

    >>> metric = SpecificityAtSensitivity(0.5)
    >>> round(float(metric([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8])), 4)
    0.6667
    """

    def __init__(
        self, sensitivity: float, num_thresholds: int = 200, class_id: int | None = None,
        name: str | None = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(sensitivity, num_thresholds, class_id, name, dtype)


@final
class PrecisionAtRecall(_At, best="precision", given="recall"):
    """The best precision where recall is at least a number.

    >>> metric = PrecisionAtRecall(0.5)
    >>> float(metric([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8]))
    0.5
    """

    def __init__(
        self, recall: float, num_thresholds: int = 200, class_id: int | None = None,
        name: str | None = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(recall, num_thresholds, class_id, name, dtype)


@final
class RecallAtPrecision(_At, best="recall", given="precision"):
    """The best recall where precision is at least a number.

    >>> metric = RecallAtPrecision(0.8)
    >>> float(metric([0, 0, 1, 1], [0.0, 0.5, 0.3, 0.9]))
    0.5
    """

    def __init__(
        self, precision: float, num_thresholds: int = 200, class_id: int | None = None,
        name: str | None = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(precision, num_thresholds, class_id, name, dtype)

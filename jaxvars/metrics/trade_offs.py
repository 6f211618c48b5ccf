"""The best of one share of right answers where another is at least a number."""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar, final

import jax
import jax.numpy as jnp

from jaxvars.losses.inputs import divide
from jaxvars.metrics.confusion import Thresholded
from jaxvars.metrics.sums import total
from jaxvars.metrics.thresholds import even_thresholds
from jaxvars.typing import Array, DTypeLike


class _At(Thresholded, ABC):
    """The best of one share where another is at least a number."""

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
        self.num_thresholds, self.class_id = num_thresholds, class_id
        self._least = value
        self._at = even_thresholds(num_thresholds)
        self._begin()

    def result(self) -> Array:
        """Return the best at any threshold; 0 where there is none."""
        found = _best_at(self._parts(), self._least, best=self._best, given=self._given)
        return self._rounded(found)


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
        self.specificity = specificity


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
        self.sensitivity = sensitivity


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
        self.recall = recall


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
        self.precision = precision

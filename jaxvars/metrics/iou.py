"""Intersection over union: how far predicted regions overlap with the true ones."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.losses.inputs import EPSILON, tensor, wide
from jaxvars.metrics.matrix import MatrixMetric
from jaxvars.metrics.metric import unseen
from jaxvars.metrics.sums import total
from jaxvars.typing import Array, DTypeLike


class _IoU(MatrixMetric, ABC):
    def __init__(self, num_classes: int, *options: Any, targets: Any = None, **named: Any) -> None:
        chosen = tuple(range(num_classes) if targets is None else targets)
        if not chosen or not all(0 <= t < num_classes for t in chosen):
            raise ValueError(
                f"target_class_ids are integers from 0 to below {num_classes}, the number of "
                f"classes, not {list(chosen)}."
            )
        super().__init__(num_classes, *options, **named)
        self._targets = chosen

    def result(self) -> Array:
        """Return the mean over the target classes that there were; 0 when there were none."""
        return self._rounded(_overlap(self.total_cm.parts.value, targets=self._targets))


@jax.jit(static_argnames="targets")
def _overlap(parts: Array, targets: tuple[int, ...]) -> Array:
    matrix, chosen = total(parts), np.array(targets)
    both = jnp.diag(matrix)[chosen]
    either = (matrix.sum(0) + matrix.sum(1))[chosen] - both
    there = either > 1e-9
    overlap = jnp.where(there, both / (either + EPSILON), 0.0)
    return overlap.sum() / (there.sum(dtype=overlap.dtype) + EPSILON)


@final
class IoU(_IoU):
    """The mean, over some classes, of intersection over union of labels and predictions.

    Raises:
        ValueError: when a target is not a class.

    Example:
        >>> metric = IoU(num_classes=2, target_class_ids=[0])
        >>> round(float(metric([0, 0, 1, 1], [0, 1, 0, 1])), 4)
        0.3333

    Differs from TensorFlow: weights that are not integers count as they are.
    """

    def __init__(
        self, num_classes: int, target_class_ids: Sequence[int], name: str | None = None,
        dtype: DTypeLike | None = None, ignore_class: int | None = None, sparse_y_true: bool = True,
        sparse_y_pred: bool = True, axis: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(
            num_classes, name, dtype, ignore_class, sparse_y_true, sparse_y_pred, axis,
            targets=target_class_ids,
        )  # fmt: skip
        self.target_class_ids = target_class_ids


@final
class BinaryIoU(_IoU):
    """The mean intersection over union of yes and no, of scores at a threshold.

    Args:
        target_class_ids: (0, 1), (0,) or (1,): the classes that the mean is of.
        threshold: scores from it on mean 1.

    Raises:
        ValueError: when a target is neither 0 nor 1.

    >>> round(float(BinaryIoU(threshold=0.3)([0, 1, 0, 1], [0.1, 0.2, 0.4, 0.7])), 4)
    0.3333
    """

    def __init__(
        self, target_class_ids: Sequence[int] = (0, 1), threshold: float = 0.5,
        name: str | None = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(2, name, dtype, targets=target_class_ids)
        self.target_class_ids, self.threshold = target_class_ids, threshold

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take labels and scores into account.

        Args:
            y_true: 0 or 1.
            y_pred: scores, of the same shape.
            sample_weight: a number, or weights along the first axes.

        Raises:
            ShapeError: when the shapes do not go together.
        """
        scores = tensor(y_pred, f"y_pred of {self.name}")
        super().update_state(y_true, unseen(lambda: wide(scores) >= self.threshold), sample_weight)


@final
class MeanIoU(_IoU):
    """The mean, over all classes, of intersection over union of labels and predictions.

    Example:
        >>> round(float(MeanIoU(num_classes=2)([0, 0, 1, 1], [0, 1, 0, 1])), 4)
        0.3333

    Differs from TensorFlow: weights that are not integers count as they are.
    """

    def __init__(
        self, num_classes: int, name: str | None = None, dtype: DTypeLike | None = None,
        ignore_class: int | None = None, sparse_y_true: bool = True, sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(num_classes, name, dtype, ignore_class, sparse_y_true, sparse_y_pred, axis)


@final
class OneHotIoU(_IoU):
    """`IoU` of one-hot labels and scores.

    Args:
        axis: the axis of the classes.

    Raises:
        ValueError: when a target is not a class.

    >>> metric = OneHotIoU(num_classes=2, target_class_ids=[0, 1])
    >>> float(metric([[1, 0], [0, 1]], [[0.8, 0.2], [0.7, 0.3]]).round(4))
    0.25
    """

    def __init__(
        self, num_classes: int, target_class_ids: Sequence[int], name: str | None = None,
        dtype: DTypeLike | None = None, ignore_class: int | None = None,
        sparse_y_pred: bool = False, axis: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(
            num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis,
            targets=target_class_ids,
        )  # fmt: skip
        self.target_class_ids = target_class_ids


@final
class OneHotMeanIoU(_IoU):
    """`MeanIoU` of one-hot labels and scores.

    Args:
        axis: the axis of the classes.

    >>> metric = OneHotMeanIoU(num_classes=2)
    >>> float(metric([[1, 0], [0, 1]], [[0.8, 0.2], [0.7, 0.3]]).round(4))
    0.25
    """

    def __init__(
        self, num_classes: int, name: str | None = None, dtype: DTypeLike | None = None,
        ignore_class: int | None = None, sparse_y_pred: bool = False, axis: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)

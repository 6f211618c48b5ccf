"""`Mean`, `Sum`, and the metrics that are the mean of a function: a loss, mostly.

Rules this file keeps:
- each sample counts once, or by its weight; what it has beyond its weights is averaged first
  (summed, in a `Sum`), as Keras does;
- integers without weights are added as they are, and become floats as part of an average only.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, final

import jax.numpy as jnp

from jaxvars import losses
from jaxvars.display.docstrings import add_example, describe_arguments, describe_formula
from jaxvars.errors import ShapeError
from jaxvars.losses.inputs import (
    as_classes,
    check_same_shape,
    divide,
    expand_weight,
    match_shapes,
    reshape_alike,
    tensor,
    wide,
    wide_if_asked,
)
from jaxvars.losses.loss import PlainLoss
from jaxvars.metrics.metric import KnownMetric, arguments_of, describe_update, unseen
from jaxvars.metrics.sums import parts_of, sum_to_parts, take_all, total
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tensors.quick_jit import quick_jit
from jaxvars.tracing import context
from jaxvars.typing import Array, DTypeLike

Weight: TypeAlias = Any


# ---------------------------------------------------------------- sums
@context.restoring()
def align_samples(values: Any, sample_weight: Any, what: str) -> tuple[Array, Weight, int]:
    """Return values and weights with the axes they are multiplied along, and how many these are."""
    values = tensor(values, f"the values of {what}")
    if sample_weight is None:
        return values, None, 0
    weight = tensor(sample_weight, f"sample_weight of {what}")
    sizes, weights = match_shapes(values.shape, weight.shape)
    beside = zip(weights, sizes, strict=False)
    if len(weights) > len(sizes) or not all(w in (1, n) for w, n in beside):
        raise ShapeError(
            f"The sample_weight of {what} has shape {weight.shape}, which fits no first axes of "
            f"the values, of shape {values.shape}: give a number, or one for each sample."
        )
    return values.reshape(sizes), weight.reshape(weights), len(weights)


@functools.partial(quick_jit, static_argnames=("axes", "mean", "dtype"))
def sums(
    values: Array, weight: Weight, axes: int, mean: bool, dtype: DTypeLike
) -> tuple[Array, Array]:
    """Return the parts of the sum of weighted values, and of that of the weights, or samples."""
    if weight is None and not is_inexact(values) and not (mean and values.shape[1:]):
        return sum_to_parts(values, dtype=jnp.promote_types(dtype, jnp.float32)), _count(values)
    values = wide(values, dtype)
    if weight is None:
        return sum_to_parts(_from(1, values, mean)), _count(values)
    values = _from(axes, values, mean)
    weight = jnp.broadcast_to(weight.astype(values.dtype), values.shape)
    return sum_to_parts(_from(1, values * weight, mean)), sum_to_parts(_from(1, weight, mean))


def _count(values: Array) -> Array:
    """Return the parts of the number of samples."""
    return parts_of(jnp.int32(values.shape[0] if values.ndim else 1))


def _from(axis: int, x: Array, mean: bool) -> Array:
    """Return the sum, or mean, of an array along the axes from one on."""
    sizes = x.shape[axis:]
    sum_ = total(sum_to_parts(x, range(axis, x.ndim)))
    return sum_ / math.prod(sizes) if mean and sizes else sum_


@final
class Sum(KnownMetric):
    """The sum of everything given; of integers without weights it is exact up to 2**48.

    Formula: `sum(weights * values)`.

    Example:
        >>> metric = Sum()
        >>> metric.update_state([1.0, 3.0, 5.0, 7.0])
        >>> float(metric([1.0, 1.0], sample_weight=[0.0, 0.5]))
        16.5
    """

    def __init__(self, name: str | None = None, dtype: DTypeLike | None = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_tally("total")

    @describe_update(values="numbers, of any shape.")
    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Add values."""
        given = align_samples(values, sample_weight, self.name)
        self.total.take(unseen(lambda: sums(*given, mean=False, dtype=self.dtype))[0])

    def result(self) -> Array:
        """Return the sum."""
        return self._to_dtype(self.total.value)


class MeanOf(KnownMetric, ABC):
    """A metric that is the mean of something, over all samples so far.

    Attributes:
        total: the weighted sum, a Tally.
        count: the sum of the weights, a Tally.
    """

    def __init__(self, name: str | None = None, dtype: DTypeLike | None = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_tally("total")
        self.count = self.add_tally("count")

    def _take(self, values: Any, sample_weight: Any) -> None:
        given = align_samples(values, sample_weight, self.name)
        all_, count = unseen(lambda: sums(*given, mean=True, dtype=self.dtype))
        take_all([(self.total, all_), (self.count, count)])

    def result(self) -> Array:
        """Return the mean; 0 when there were no samples."""
        return self._to_dtype(self._mean())

    def _mean(self) -> Array:
        return _divide_totals(self.total.parts.value, self.count.parts.value)


@quick_jit
def _divide_totals(a: Array, b: Array) -> Array:
    return divide(total(a), total(b))


@final
class Mean(MeanOf):
    """The mean of everything given.

    Formula: `sum(weights * values) / sum(weights)`.

    Example:
        >>> loss = Mean("loss")
        >>> loss.update_state([1.0, 3.0])
        >>> loss.update_state(8.0)
        >>> float(loss.result())
        4.0
        >>> float(Mean()([1.0, 3.0], sample_weight=[3.0, 1.0]))
        1.5
    """

    @describe_update(values="numbers, of any shape; each along the first axis is one sample.")
    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Take values into account."""
        self._take(values, sample_weight)


class MeanOfFunction(MeanOf, ABC):
    """A metric that is the mean of a function of labels and predictions."""

    @abstractmethod
    def _values(self, y_true: Any, y_pred: Any) -> Array:
        """Return a value for each sample."""

    @describe_update("the labels.", "the predictions.")
    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take labels and predictions into account."""
        self._take(unseen(lambda: self._values(y_true, y_pred)), sample_weight)


class MeanOfKnown(MeanOfFunction, ABC):
    """A metric that is the mean of one of the functions here, whose options are its attributes."""

    _fn: ClassVar[Callable[..., Array]]
    _options: ClassVar[list[str]] = []

    def __init_subclass__(
        cls, fn: Callable[..., Array] | None = None, example: tuple[str, float] | None = None,
        like: type[PlainLoss] | None = None, **docs: str,
    ) -> None:  # fmt: skip
        fn = fn if like is None else like.fn
        example = example if like is None else like.example
        if example is not None:
            add_example(cls, *example)
        super().__init_subclass__(**{**describe_arguments(fn), **describe_formula(fn), **docs})
        if fn is not None:
            cls._fn = staticmethod(fn)
            cls._options = [name for name in arguments_of(cls) if name not in ("name", "dtype")]

    def _values(self, y_true: Any, y_pred: Any) -> Array:
        options = {name: getattr(self, name) for name in self._options}
        return type(self)._fn(y_true, wide_if_asked(y_pred, self.dtype, self.name), **options)


@final
class MeanMetricWrapper(MeanOfFunction):
    """The mean of any function of labels and predictions.

    Formula: `sum(weights * fn(y_true, y_pred)) / sum(weights)`.

    Args:
        fn: returns a value for each sample.
        name: what it is called.
        dtype: of the result, a float; float32 when None.
        **kwargs: options for the function.

    Example:
        >>> off = MeanMetricWrapper(lambda y_true, y_pred: abs(y_true - y_pred) > 1, name="off")
        >>> float(off(jnp.array([1.0, 2.0]), jnp.array([1.5, 4.0])))
        0.5
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, dtype)
        self.fn = fn
        self.kwargs = kwargs

    def _values(self, y_true: Any, y_pred: Any) -> Array:
        return self.fn(y_true, y_pred, **self.kwargs)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return {**super().get_config(), **self.kwargs}


# ---------------------------------------------------------------- means of losses
@final
class CosineSimilarity(MeanOfKnown, fn=losses.cosine_similarity):
    """The mean cosine of the angle between labels and predictions: 1 is the same direction.

    Formula: the mean of `sum(y_true * y_pred) / (norm(y_true) * norm(y_pred))` along the axis.

    >>> float(CosineSimilarity()([[0.0, 2.0]], [[0.0, 3.0]]))
    1.0
    """

    def __init__(
        self, name: str | None = None, dtype: DTypeLike | None = None, axis: int = -1
    ) -> None:
        super().__init__(name, dtype)
        self.axis = axis

    def _values(self, y_true: Any, y_pred: Any) -> Array:
        return -super()._values(y_true, y_pred)


@final
class MeanSquaredError(MeanOfKnown, like=losses.MeanSquaredError):
    """The mean squared error."""


@final
class MeanAbsoluteError(MeanOfKnown, like=losses.MeanAbsoluteError):
    """The mean absolute error."""


@final
class MeanAbsolutePercentageError(MeanOfKnown, like=losses.MeanAbsolutePercentageError):
    """The mean of the errors in per cent of the labels."""


@final
class MeanSquaredLogarithmicError(MeanOfKnown, like=losses.MeanSquaredLogarithmicError):
    """The mean squared error of the logarithms of one more."""


@final
class Poisson(MeanOfKnown, like=losses.Poisson):
    """What the Poisson distribution of rate `y_pred` says of counts `y_true`."""


@final
class KLDivergence(MeanOfKnown, like=losses.KLDivergence):
    """The mean Kullback-Leibler divergence of two distributions."""


@final
class Hinge(MeanOfKnown, like=losses.Hinge):
    """The mean hinge loss of labels -1 and 1, or 0 and 1."""


@final
class SquaredHinge(MeanOfKnown, like=losses.SquaredHinge):
    """The mean squared hinge loss of labels -1 and 1, or 0 and 1."""


@final
class CategoricalHinge(MeanOfKnown, like=losses.CategoricalHinge):
    """The mean hinge loss of one-hot labels."""


@final
class RootMeanSquaredError(MeanOfFunction):
    """The root of the mean squared error of everything so far.

    Formula: `sqrt(mean((y_true - y_pred) ** 2))`.

    >>> float(RootMeanSquaredError()([[0.0], [0.0]], [[1.0], [7.0]]))
    5.0
    """

    def _values(self, y_true: Any, y_pred: Any) -> Array:
        pred = wide_if_asked(y_pred, self.dtype, self.name)
        true, pred = tensor(y_true, "y_true"), tensor(pred, "y_pred")
        check_same_shape(true, pred, self.name)
        return _squares(true, pred)

    def result(self) -> Array:
        """Return the root; 0 when there were no samples."""
        return self._to_dtype(jnp.sqrt(self._mean()))


@quick_jit
def _squares(true: Array, pred: Array) -> Array:
    pred = wide(pred)
    return jnp.square(jnp.subtract(*reshape_alike(true.astype(pred.dtype), pred)))


@final
class BinaryCrossentropy(MeanOfKnown, fn=losses.binary_crossentropy):
    """The mean cross-entropy of two classes.

    >>> float(BinaryCrossentropy(from_logits=True)([[0.0, 1.0]], [[-200.0, 200.0]]))
    0.0
    """

    def __init__(
        self, name: str | None = None, dtype: DTypeLike | None = None, from_logits: bool = False,
        label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(name, dtype)
        self.from_logits, self.label_smoothing = from_logits, label_smoothing


@final
class CategoricalCrossentropy(MeanOfKnown, fn=losses.categorical_crossentropy):
    """The mean cross-entropy of one-hot labels.

    >>> float(CategoricalCrossentropy(from_logits=True)([[1.0, 0.0]], [[0.0, 200.0]]))
    200.0
    """

    def __init__(
        self, name: str | None = None, dtype: DTypeLike | None = None, from_logits: bool = False,
        label_smoothing: float = 0.0, axis: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(name, dtype)
        self.from_logits, self.label_smoothing, self.axis = from_logits, label_smoothing, axis


@final
class SparseCategoricalCrossentropy(
    MeanOfKnown,
    fn=losses.sparse_categorical_crossentropy,
    ignore_class='a label that does not count, like -1 or 255 for "not known".',
):
    """The mean cross-entropy of integer labels.

    Differs from TensorFlow:
        Ignored samples never count; TensorFlow counts them as 0 unless there are weights.

    >>> float(
    ...     SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)(
    ...         [0, -1], [[0.0, 200.0], [0.0, 0.0]]
    ...     )
    ... )
    200.0
    """

    def __init__(
        self, name: str | None = None, dtype: DTypeLike | None = None, from_logits: bool = False,
        ignore_class: int | None = None, axis: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(name, dtype)
        self.from_logits, self.ignore_class, self.axis = from_logits, ignore_class, axis

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        values = unseen(lambda: self._values(y_true, y_pred))
        if self.ignore_class is None:
            self._take(values, sample_weight)
            return
        labels = as_classes(tensor(y_true, "y_true"))
        counted = labels.reshape(values.shape) != self.ignore_class
        if sample_weight is not None:
            weight = tensor(sample_weight, "sample_weight")
            counted = counted * expand_weight(weight, values.shape, self.name)
        self._take(values, counted.astype(jnp.float32))

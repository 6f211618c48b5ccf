"""`Loss`: a function of labels and predictions, and how its values become one number.

Rules this file keeps:
- a loss holds no variables; one that is a function of this package is a frozen dataclass;
- weights go with samples, the first axes, never with the last one that happens to fit;
- the mean of nothing is 0.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, dataclass_transform

import jax
import jax.numpy as jnp

from jaxvars.display.docstrings import add_example, complete, describe_arguments, describe_formula
from jaxvars.display.strings import did_you_mean
from jaxvars.errors import shown
from jaxvars.losses.inputs import divide, expand_weight, float_dtype, tensor, wide, wide_if_asked
from jaxvars.tracing import context
from jaxvars.tracing.guards import ask
from jaxvars.typing import Array, DTypeLike

Reduction: TypeAlias = str | None

MEAN = "sum_over_batch_size"
REDUCTIONS = (MEAN, "mean", "mean_with_sample_weight", "sum", "none")
_DOCS = {
    "reduction": "see `Loss`.",
    "name": "what errors call it.",
    "dtype": "of the result; see `Loss`.",
    "raise": "ValueError: when the reduction is not one of these.",
}


class Loss(ABC):
    """The base of losses: subclass it and write `call`.

    Args:
        name: what errors call it.
        reduction: what becomes of the values:

            - "sum_over_batch_size" or "mean": their mean;
            - "mean_with_sample_weight": their sum by the sum of the weights;
            - "sum": their sum;
            - "none" or None: they are returned as they are.
        dtype: of the result; that of the computation when None, which is float32 or a wider
            float. What is wider than float32 is computed in, too.

    Raises:
        ValueError: when the reduction is not one of these.
        DtypeError: when the dtype is not a float.

    Example:
        >>> class Pinball(Loss):
        ...     def call(self, y_true, y_pred):
        ...         return jnp.maximum(0.9 * (y_true - y_pred), 0.1 * (y_pred - y_true))
        >>> float(Pinball()(jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0])))
        0.5
    """

    name: str | None
    reduction: Reduction
    dtype: Any

    def __init__(
        self, name: str | None = None, reduction: Reduction = MEAN, dtype: DTypeLike | None = None
    ) -> None:
        self.name, self.reduction, self.dtype = name, reduction, dtype
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check what all losses take."""
        if self.reduction is not None and self.reduction not in REDUCTIONS:
            hint = did_you_mean(str(self.reduction), REDUCTIONS) or f" There are: {REDUCTIONS}."
            if hasattr(self.reduction, "shape"):
                hint = f" A loss is made, and then called: {type(self).__name__}()(y_true, y_pred)."
            raise shown(ValueError(f"{self.reduction!r} is not a reduction.{hint}"))
        if self.dtype is not None:
            float_dtype(self.dtype, type(self).__name__)

    @abstractmethod
    def call(self, y_true: Any, y_pred: Any) -> Array:
        """Return the values, one for each sample."""

    @context.restoring()
    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Array:
        """Return the loss.

        Args:
            y_true: the labels.
            y_pred: the predictions.
            sample_weight: a number, or an array whose axes are the first ones of the values: one
                weight for each sample, or for each part of it.

        Returns:
            A scalar; with reduction "none", an array.

        Raises:
            ShapeError: when the shapes do not go together.
        """
        ask("A loss is computed")
        values = jnp.asarray(self.call(y_true, y_pred))
        weight = self._expand_weight(values.shape, sample_weight)
        counted = self._find_counted(y_true, y_pred)
        dtype = float_dtype(self.dtype, "the loss")
        loss = _reduce(values, weight, counted, reduction=self.reduction or "none", dtype=dtype)
        return loss if self.dtype is None else loss.astype(dtype)

    def _expand_weight(self, shape: tuple[int, ...], sample_weight: Any) -> Array | None:
        if sample_weight is None:
            return None
        what = self.name or type(self).__name__
        weight = tensor(sample_weight, f"sample_weight of {what}")
        return expand_weight(weight, shape, what) if shape else weight

    def _find_counted(self, y_true: Any, y_pred: Any) -> Array | None:
        """Return which of the values count in a mean, or None for all."""
        return None

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        if dataclasses.is_dataclass(self):
            return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"name": self.name, "reduction": self.reduction, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Loss:
        """Return the loss with these arguments."""
        return cls(**config)


@jax.jit(static_argnames=("reduction", "dtype"))
def _reduce(
    values: Array, weight: Array | None, counted: Array | None, reduction: str, dtype: Any
) -> Array:
    values = wide(values, dtype)
    if weight is not None:
        weight = weight.astype(values.dtype)
        values = values * weight
    if reduction == "none":
        return values
    if reduction == "sum":
        return values.sum()
    ones = jnp.ones_like(values) if counted is None else counted.astype(values.dtype)
    if reduction == "mean_with_sample_weight" and weight is not None:
        return divide(values.sum(), (ones * weight).sum())
    count = jnp.asarray(values.size, values.dtype) if counted is None else ones.sum()
    return divide(values.sum(), count)


@dataclass_transform(frozen_default=True)
class FunctionLoss(Loss, ABC):
    """A loss that is one of the functions: a frozen dataclass of the function's options."""

    fn: ClassVar[Any]
    example: ClassVar[tuple[str, float] | None] = None

    def __init_subclass__(
        cls, fn: Callable[..., Array] | None = None, example: tuple[str, float] | None = None,
        **docs: str,
    ) -> None:  # fmt: skip
        super().__init_subclass__()
        if example is not None:
            cls.example = example
            add_example(cls, *example)
        if fn is not None and "name" not in cls.__annotations__:
            cls.name, cls.__annotations__["name"] = fn.__name__, "str | None"
        dataclasses.dataclass(frozen=True)(cls)
        if fn is not None:
            cls.fn = staticmethod(fn)
            complete(cls, {**describe_arguments(fn), **describe_formula(fn), **_DOCS, **docs})

    def call(self, y_true: Any, y_pred: Any) -> Array:
        """Return what the function says."""
        options = {name: x for name, x in self.get_config().items() if name not in _DOCS}
        what = self.name or type(self).__name__
        y_pred = wide_if_asked(y_pred, float_dtype(self.dtype, what), what)
        return type(self).fn(y_true, y_pred, **options)


class PlainLoss(FunctionLoss, ABC):
    """A loss that is a function without options, and has its name."""

    reduction: Reduction = MEAN
    name: str | None = None
    dtype: DTypeLike | None = None

"""`tf.keras.losses`: the losses of `jaxvars.losses`, and others of Keras's, of Tensors.

Differs from TensorFlow: `CTC` of labels too long for their frames is about 1e5, as that of
`tf.nn.ctc_loss` is.

>>> from jaxvars import tf
>>> float(tf.keras.losses.MeanSquaredError()([[1.0, 2.0]], [[1.0, 4.0]]))
2.0
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxvars import losses as _core
from jaxvars.tf.attributes import getter
from jaxvars.tf.keras.adapter.facade import (
    array,
    from_configuration,
    interpret,
    made_of,
    to_configuration,
)
from jaxvars.tf.keras.additions import floatx
from jaxvars.tf.keras.spaces import find
from jaxvars.tf.listing import lister
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.tensor import Tensor

_KNOWN: dict[str, Any] = {**_core._BY_NAME, **_core._SHORT}
_SHORT_NAMES = frozenset(_core._SHORT)
_OF_KERAS = (
    "CTC", "CategoricalGeneralizedCrossEntropy", "Circle", "Dice", "Tversky",
    "categorical_generalized_cross_entropy", "circle", "ctc", "dice", "tversky",
)  # fmt: skip
"""Losses that `jaxvars.losses` does not have."""


class Loss:
    """The base of losses: subclass it and write `call`, of Tensors.

    Args:
        name: what it is called.
        reduction: "sum_over_batch_size", "mean", "mean_with_sample_weight", "sum", or "none".
        dtype: to compute in; that of `tf.keras.backend.floatx` when None.

    Differs from TensorFlow: "mean_with_sample_weight" divides by the sum of the weights of all
    values; Keras by that of the weights as they are given, one or many.

    >>> from jaxvars import tf
    >>> class Distance(Loss):
    ...     def call(self, y_true, y_pred):
    ...         return tf.reduce_sum(tf.abs(y_true - y_pred), axis=-1)
    >>> float(Distance()([[1.0, 2.0]], [[2.0, 4.0]]))
    3.0
    """

    made_of: Any = None

    def __init__(
        self, name: str | None = None, reduction: Any = "sum_over_batch_size", dtype: Any = None
    ) -> None:
        self._core: Any = _Written(name, reduction, None)
        self._core.owner = self
        self._dtype = dtype

    name = getter("_core.name", "What it is called.")
    reduction = getter("_core.reduction", "What becomes of the values.")

    @property
    def dtype(self) -> str:
        """The name of the type that it computes in."""
        return floatx() if self._dtype is None else as_dtype(self._dtype).name

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the values, one for each sample."""
        raise NotImplementedError("A Loss has a method call(self, y_true, y_pred).")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """Return the loss."""
        dtype = as_dtype(self.dtype).dtype
        weight: Any = array(sample_weight)
        found = self._core(array(y_true), jnp.asarray(to_array(y_pred), dtype), weight)
        is_column = found.ndim == 1 and jnp.ndim(0 if weight is None else weight) == 2
        return Tensor(found[:, None] if is_column else found)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Loss:
        """Return the loss with these arguments."""
        return cls(**config)


class Reduction:
    """Names of what a loss makes of its values; `AUTO` is one that no loss takes any more."""

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Return the names."""
        return cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE

    @classmethod
    def validate(cls, key: str) -> None:
        """Check that it is one of the names."""
        if key not in cls.all():
            raise ValueError(f'Invalid Reduction Key: {key}. Expected keys are "{cls.all()}"')


class _Written(_core.Loss):
    """A loss whose `call` the user wrote for Tensors."""

    owner: Any = None

    def call(self, y_true: Any, y_pred: Any) -> Any:
        labels = (
            y_true.astype(y_pred.dtype) if jnp.issubdtype(y_pred.dtype, jnp.floating) else y_true
        )
        return to_array(self.owner.call(Tensor(labels), Tensor(y_pred)))


class _Made(Loss):
    """A loss that stands for one of the core's; a subclass may have a `call` of its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._inner = made = self.made_of(*args, **kwargs)
        if type(self).call is _Made.call:
            self._core, self._dtype = made, made.dtype
        else:
            super().__init__(made.name, made.reduction, made.dtype)

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """Return the values, one for each sample."""
        return Tensor(self._inner.call(array(y_true), array(y_pred)))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return self._inner.get_config()


def get(identifier: Any) -> Any:
    """Return a loss by name, configuration, or as it is.

    >>> get("mse")([[1.0]], [[3.0]]).numpy().tolist()
    [4.0]
    """
    known = {*_KNOWN, *_OF_KERAS}
    return interpret(identifier, lambda name: __getattr__(name) if name in known else None, "loss")


def serialize(loss: Any) -> Any:
    """Return a configuration from which `deserialize` makes the same loss."""
    return to_configuration("losses", loss)


def deserialize(name: Any, custom_objects: Any = None) -> Any:
    """Return the loss of a configuration."""
    return from_configuration(name, custom_objects, get)


def __getattr__(name: str) -> Any:
    thing = _KNOWN.get(name) or find(f"losses.{name}")
    globals()[name] = made_of(thing, name, _Made, __name__)
    return globals()[name]


__dir__ = lister(__name__, [*_KNOWN, *_OF_KERAS])

"""`tf.keras.metrics`: the metrics of `jaxvars.metrics`, and others of Keras's, of Tensors.

>>> from jaxvars import tf
>>> mean = tf.keras.metrics.Mean()
>>> mean.update_state([1.0, 3.0])
>>> mean.result()
<tf.Tensor: shape=(), dtype=float32, numpy=2.0>
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from jaxvars import metrics as _core
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.metrics.sums import Tally
from jaxvars.tf.keras.adapter.facade import (
    array,
    arrays,
    from_configuration,
    interpret,
    made_of,
    pair_of,
    to_configuration,
)
from jaxvars.tf.keras.spaces import find
from jaxvars.tf.listing import lister
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.tensor import Tensor, wrap
from jaxvars.tf.variables.variable import face_of

_KNOWN: dict[str, Any] = {
    **_core._BY_NAME,
    **{name: getattr(_core, name) for name in _core.__all__ if name.islower() and name != "get"},
}
_SHORT: dict[str, Any] = {
    name: thing for name, thing in {**_core._SNAKE, **_core._SHORT}.items() if name not in _KNOWN
}  # fmt: skip
_OF_KERAS = (
    "BinaryIoU", "ConcordanceCorrelation", "FBetaScore", "IoU", "LogCoshError", "MeanIoU",
    "OneHotIoU", "OneHotMeanIoU", "PearsonCorrelation", "PrecisionAtRecall", "R2Score",
    "RecallAtPrecision", "SensitivityAtSpecificity", "SpecificityAtSensitivity",
    "concordance_correlation", "pearson_correlation",
)  # fmt: skip
"""Metrics that `jaxvars.metrics` does not have."""


class Metric(_core.Metric):
    """The base of metrics: subclass it and write `update_state` and `result`, of Tensors.

    Args:
        dtype: of the result, a float; float32 when None.
        name: what it is called.

    >>> from jaxvars import tf
    >>> class Largest(Metric):
    ...     def __init__(self, name="largest", **kwargs):
    ...         super().__init__(name=name, **kwargs)
    ...         self.largest = self.add_weight(name="value", initializer="zeros")
    ...
    ...     def update_state(self, values, sample_weight=None):
    ...         self.largest.assign(tf.maximum(self.largest, tf.reduce_max(values)))
    ...
    ...     def result(self):
    ...         return self.largest.value()
    >>> float(Largest()([1.0, 5.0]))
    5.0
    """

    made_of: Any = None

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """Take something into account."""
        raise NotImplementedError("A Metric has a method update_state(self, ...).")

    def result(self) -> Any:
        """Return what comes of everything so far."""
        raise NotImplementedError("A Metric has a method result(self).")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Update, and return the result of everything so far."""
        self.update_state(*args, **kwargs)
        return wrap(arrays(self.result()))

    def reset_state(self) -> None:
        """Forget everything: all variables become zero."""
        for variable in self.variables:
            variable.assign(jnp.zeros(tuple(variable.shape), variable.dtype.dtype))

    @property
    def variables(self) -> Any:
        """All variables, each once."""
        return list(map(face_of, super().variables))

    def add_variable(
        self, shape: Any = (), initializer: Any = "zeros", dtype: Any = None,
        name: str = "variable", **options: Any,
    ) -> Any:  # fmt: skip
        """Make a variable for the state; keep it in an attribute."""
        made = "zeros" if initializer is None else initializer
        made = _of_arrays(made) if callable(made) else made
        return face_of(super().add_variable(tuple(shape), made, dtype, name or "variable"))

    add_weight = add_variable


def _of_arrays(initializer: Callable[..., Any]) -> Callable[..., Any]:
    return lambda shape, dtype=None: to_array(initializer(shape, dtype=dtype))


class _Made(Metric):
    """A metric that stands for one of the core's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._inner = self.made_of(*args, **kwargs)
        super().__init__(name=self._inner.name)
        self.dtype = self._inner.dtype

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Take something into account."""
        given = {k: array(x) for k, x in kwargs.items()}
        first = [given.pop(k) for k in ("y_true", "y_pred")[len(args) :] if k in given]
        given_first = [*map(array, args), *first]
        if len(given_first) > 1:
            given_first[:2] = pair_of(self.made_of.__name__, *given_first[:2])
        self._inner.update_state(*given_first, **given)

    def result(self) -> Any:
        """Return what comes of everything so far."""
        return wrap(self._inner.result())

    def reset_state(self) -> None:
        """Forget everything."""
        self._inner.reset_state()

    def merge_state(self, metrics: Any) -> None:
        """Take into account what other metrics have seen."""
        self._inner.merge_state([metric._inner for metric in metrics])

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return {**self._inner.get_config(), "dtype": as_dtype(self._inner.dtype).name}

    def __getattr__(self, name: str) -> Any:
        # Only reached for attributes that are not found: those of the core's, like `total`.
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._inner, name)
        if isinstance(found, CoreVariable):
            return face_of(found)
        return wrap(found.value) if isinstance(found, Tally) else found

    def __repr__(self) -> str:
        return repr(self._inner)


class MeanMetricWrapper(_Made):
    """The mean of any function of labels and predictions, both Tensors.

    Args:
        fn: returns a value for each sample.
        name: what it is called.
        dtype: of the result.
        **kwargs: options for the function.
    """

    made_of = _core.MeanMetricWrapper

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        def values(y_true: Any, y_pred: Any, **options: Any) -> Any:
            return to_array(fn(Tensor(y_true), Tensor(y_pred), **options))

        super().__init__(values, name=name or getattr(fn, "__name__", None), dtype=dtype, **kwargs)


def get(identifier: Any) -> Any:
    """Return a metric by name, configuration, or as it is.

    >>> get("mse").name
    'mean_squared_error'
    """
    return interpret(identifier, _class_of, "metric")


def _class_of(name: str) -> Any:
    found = {**_core._BY_NAME, **_SHORT, **_core._SNAKE}.get(name)
    theirs = {_core.BORDER.sub("_", each).lower(): each for each in _OF_KERAS}
    named = name if name in _OF_KERAS else found.__name__ if found else theirs.get(name)
    return named and __getattr__(named)


def serialize(metric: Any) -> Any:
    """Return a configuration from which `deserialize` makes the same metric."""
    return to_configuration("metrics", metric)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """Return the metric of a configuration."""
    return from_configuration(config, custom_objects, get)


def __getattr__(name: str) -> Any:
    if name in globals():
        return globals()[name]
    if name not in _KNOWN:
        from jaxvars.tf.keras import losses

        if name in losses._SHORT_NAMES:
            return getattr(losses, name)
    thing = _KNOWN.get(name) or find(f"metrics.{name}")
    globals()[name] = made_of(thing, name, _Made, __name__)
    return globals()[name]


__dir__ = lister(__name__, [*_KNOWN, *_OF_KERAS])

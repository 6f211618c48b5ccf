"""`tf.zeros_initializer` and the like, which TensorFlow has beside Keras's initializers.

Rules this file keeps:
- `partition_shape` is the shape that is made, where it is given; where the part begins is of no
  effect, since no number depends on its place.
"""

from __future__ import annotations

from typing import Any, final

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.arrays.constant import constant
from jaxvars.tf.random import draws as draws
from jaxvars.tf.random.stateless import start_of
from jaxvars.tf.random.streams import source
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.tensor import Tensor

_PARTITION = ("partition_shape", "partition_offset")


class _Initializer:
    """What the initializers share."""

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({given})"

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Return the initializer with these arguments."""
        return cls(**{name: value for name, value in config.items() if name != "dtype"})


class _Filled(_Initializer):
    """One number everywhere."""

    _fill: Any

    def __call__(self, shape: Any, dtype: Any = "float32", **kwargs: Any) -> Tensor:
        """Return a value of a shape and type."""
        kind = as_dtype(dtype)
        if not (kind.is_numeric or kind.is_bool):
            raise ValueError(
                f"Argument `dtype` expected to be numeric or boolean. Received {kind}."
            )
        return Tensor(self._fill(_sizes(shape, kwargs), kind.dtype))


@final
class zeros_initializer(_Filled):  # noqa: N801 - TensorFlow's name
    """Zeros.

    >>> zeros_initializer()((2,)).numpy().tolist()
    [0.0, 0.0]
    """

    _fill = staticmethod(jnp.zeros)


@final
class ones_initializer(_Filled):  # noqa: N801 - TensorFlow's name
    """Ones.

    >>> ones_initializer()((2,), dtype="int32").numpy().tolist()
    [1, 1]
    """

    _fill = staticmethod(jnp.ones)


@final
class constant_initializer(_Initializer):  # noqa: N801 - TensorFlow's name
    """One number everywhere, or given ones.

    Args:
        value: a number, or as many as the shape has, in any form.
        support_partition: whether a part may be requested.

    Raises:
        TypeError: when the value is a tensor or a variable.

    >>> constant_initializer(3.0)((2,)).numpy().tolist()
    [3.0, 3.0]
    """

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, list | tuple | np.ndarray)):
            raise TypeError(
                f"Invalid type for initial value: {type(value).__name__}. Expected Python scalar, "
                "list or tuple of values, or numpy.ndarray."
            )
        self.value, self.support_partition = value, support_partition

    def get_config(self) -> dict[str, Any]:
        """Return the value that it was made with, by name."""
        return {"value": self.value}

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
        """Return a value of a shape, and of a type: that of the value when None.

        Raises:
            TypeError: when there are not as many numbers as the shape has.
            ValueError: when a part is requested without `support_partition`.
        """
        sizes = _sizes(shape, kwargs)
        if kwargs and not self.support_partition:
            raise ValueError("Constant initializer doesn't support partition-related arguments")
        return constant(self.value, dtype=dtype, shape=sizes)


@final
class random_normal_initializer(_Initializer):  # noqa: N801 - TensorFlow's name
    """Normally distributed values, from the streams of `tf.random`.

    Args:
        mean: their mean.
        stddev: their standard deviation.
        seed: for the same values each time; those of `tf.random.set_seed` when None.

    >>> random_normal_initializer()((2, 3)).shape
    TensorShape([2, 3])
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape: Any, dtype: Any = "float32", **kwargs: Any) -> Tensor:
        """Return a value of a shape and floating type."""
        kind = as_dtype(dtype)
        if not kind.is_floating:
            raise ValueError(
                f"Argument `dtype` is expected to be floating point. Received: {kind}."
            )
        sizes = _sizes(shape, kwargs)
        key = _stream(f"RandomStandardNormal {kind.name}", self.seed)
        return draws.normal(key, sizes, self.mean, self.stddev, kind)


@final
class random_uniform_initializer(_Initializer):  # noqa: N801 - TensorFlow's name
    """Uniformly distributed values, from the streams of `tf.random`.

    Args:
        minval: the smallest.
        maxval: the bound above.
        seed: for the same values each time; those of `tf.random.set_seed` when None.

    >>> random_uniform_initializer()((2, 3)).shape
    TensorShape([2, 3])
    """

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: Any = None) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape: Any, dtype: Any = "float32", **kwargs: Any) -> Tensor:
        """Return a value of a shape, and of a floating or integer type."""
        kind, sizes = as_dtype(dtype), _sizes(shape, kwargs)
        if not (kind.is_floating or kind.is_integer):
            raise ValueError(f"Argument `dtype` expected to be float or integer. Received {kind}.")
        key = _stream(f"RandomUniform {kind.name}", self.seed)
        return draws.uniform(key, sizes, self.minval, self.maxval, kind)


def _stream(name: str, seed: Any) -> Any:
    """Return where values come from: with a seed, the same each time."""
    return source(name, None) if seed is None else start_of([seed, 0])


def _sizes(shape: Any, kwargs: dict[str, Any]) -> tuple[int, ...]:
    for name in kwargs:
        if name not in _PARTITION:
            raise TypeError(
                f"Keyword argument should be one of {list(_PARTITION)}. Received: {name}"
            )
    return draws.sizes(kwargs.get("partition_shape") or shape)

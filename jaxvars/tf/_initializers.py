"""`tf.zeros_initializer` and its kin, which TensorFlow has beside Keras's initializers.

Differs from TensorFlow: the numbers are those of `jax.random`.
"""

from __future__ import annotations

import math
from typing import Any, final

import jax.numpy as jnp

from jaxvars.tf import _random_draws as draws
from jaxvars.tf._convert import to_array
from jaxvars.tf._dtypes import as_dtype
from jaxvars.tf._random_streams import source
from jaxvars.tf._tensor import Tensor


class _Initializer:
    """What the initializers share."""

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Return the initializer with these arguments."""
        return cls(**{name: value for name, value in config.items() if name != "dtype"})


@final
class zeros_initializer(_Initializer):  # noqa: N801 - TensorFlow's name
    """Zeros.

    >>> zeros_initializer()((2,)).numpy().tolist()
    [0.0, 0.0]
    """

    def __call__(self, shape: Any, dtype: Any = "float32", **kwargs: Any) -> Tensor:
        """Return a value of a shape and type."""
        return Tensor(jnp.zeros(draws.sizes(shape), as_dtype(dtype).dtype))


@final
class ones_initializer(_Initializer):  # noqa: N801 - TensorFlow's name
    """Ones.

    >>> ones_initializer()((2,), dtype="int32").numpy().tolist()
    [1, 1]
    """

    def __call__(self, shape: Any, dtype: Any = "float32", **kwargs: Any) -> Tensor:
        """Return a value of a shape and type."""
        return Tensor(jnp.ones(draws.sizes(shape), as_dtype(dtype).dtype))


@final
class constant_initializer(_Initializer):  # noqa: N801 - TensorFlow's name
    """One number everywhere, or given ones.

    Args:
        value: a number, or as many as the shape has, in any form.
        support_partition: of no effect.

    >>> constant_initializer(3.0)((2,)).numpy().tolist()
    [3.0, 3.0]
    """

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
        """Return a value of a shape, and of a type: that of the value when None.

        Raises:
            TypeError: when there are not as many numbers as the shape has.
        """
        value = to_array(self.value, None if dtype is None else as_dtype(dtype))
        size = draws.sizes(shape)
        if value.size == 1:
            return Tensor(jnp.broadcast_to(value.reshape(()), size))
        if value.size != math.prod(size):
            raise TypeError(
                f"constant_initializer has {value.size} numbers, and the shape {size} as many as "
                "its product."
            )
        return Tensor(value.reshape(size))


@final
class random_normal_initializer(_Initializer):  # noqa: N801 - TensorFlow's name
    """Normally distributed numbers, from the streams of `tf.random`.

    Args:
        mean: their mean.
        stddev: their standard deviation.
        seed: of the operation; see `tf.random.set_seed`.

    >>> random_normal_initializer()((2, 3)).shape
    TensorShape([2, 3])
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape: Any, dtype: Any = "float32", **kwargs: Any) -> Tensor:
        """Return a value of a shape and floating type."""
        kind = _floating(dtype)
        key = source(f"normal {kind.name}", self.seed)
        return draws.normal(key, shape, self.mean, self.stddev, kind)


@final
class random_uniform_initializer(_Initializer):  # noqa: N801 - TensorFlow's name
    """Uniformly distributed numbers, from the streams of `tf.random`.

    Args:
        minval: the smallest.
        maxval: the bound above.
        seed: of the operation; see `tf.random.set_seed`.

    >>> random_uniform_initializer()((2, 3)).shape
    TensorShape([2, 3])
    """

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: Any = None) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape: Any, dtype: Any = "float32", **kwargs: Any) -> Tensor:
        """Return a value of a shape, and of a floating or integer type."""
        kind = as_dtype(dtype)
        if not (kind.is_floating or kind.is_integer):
            raise ValueError(f"Expected float or integer dtype, got {kind}.")
        key = source(f"uniform {kind.name}", self.seed)
        return draws.uniform(key, shape, self.minval, self.maxval, kind)


def _floating(dtype: Any) -> Any:
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise ValueError(f"Argument `dtype` is a floating type here, not {kind}.")
    return kind

"""Initializers of random values whose variance suits the layer: its inputs and outputs.

Rules this file keeps:
- the fans of a shape are Keras's, for any rank.
"""

from __future__ import annotations

import math
from typing import Any, final

import jax
import jax.numpy as jnp

from jaxvars.errors import DtypeError
from jaxvars.initializers.initializer import Random, Sizes, one_of
from jaxvars.typing import Array

MODES = ("fan_in", "fan_out", "fan_avg", "fan_geo_avg")
DISTRIBUTIONS = ("truncated_normal", "untruncated_normal", "uniform")


class Scaled(Random):
    """An initializer whose variance is a scale by the number of inputs, outputs, or both."""

    scale: float
    mode: str
    distribution: str

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        if not jnp.issubdtype(dtype, jnp.inexact):
            raise DtypeError(
                f"{type(self).__name__} has no values of dtype {dtype}: ask for a float."
            )
        variance = self.scale / max(1.0, _count(self.mode, *fans(shape)))
        kind: Any = self.distribution
        kind = "normal" if kind == "untruncated_normal" else kind  # JAX's name
        # JAX's fans are those of at least two axes: give it one input, and the variance.
        one = jax.nn.initializers.variance_scaling(variance, "fan_in", kind)
        flat = (1, math.prod(shape))
        wide = jnp.promote_types(dtype, jnp.float32)  # in which no variance is too small
        return self._draw(lambda key: one(key, flat, wide), shape, dtype)


def fans(shape: Sizes) -> tuple[int, int]:
    """Return how many inputs and outputs a layer has whose weights have a shape.

    The last two axes are inputs and outputs, those before them a kernel that is moved over an
    image; a vector has as many inputs as outputs.

    >>> fans(()), fans((5,)), fans((3, 4)), fans((3, 3, 8, 16))
    ((1, 1), (5, 5), (3, 4), (72, 144))
    """
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    field = math.prod(shape[:-2])
    return field * shape[-2], field * shape[-1]


def _count(mode: str, fan_in: int, fan_out: int) -> float:
    return {
        "fan_in": fan_in,
        "fan_out": fan_out,
        "fan_avg": (fan_in + fan_out) / 2,
        "fan_geo_avg": math.sqrt(fan_in * fan_out),
    }[mode]


@final
class VarianceScaling(Scaled):
    """Random values of variance `scale / n`, n being the layer's inputs, outputs or both.

    Args:
        scale: a positive number.
        mode: what n is: "fan_in", "fan_out", their mean "fan_avg", or "fan_geo_avg".
        distribution: "truncated_normal", "untruncated_normal" or "uniform"; "normal" is the
            first.
        seed: as for `RandomNormal`.

    Raises:
        ValueError: when there is no such mode or distribution, or the scale is not positive.

    >>> x = VarianceScaling(2.0, mode="fan_out", distribution="uniform", seed=7)((100, 50))
    >>> round(float(x.var()), 2)
    0.04
    """

    def __init__(
        self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal",
        seed: Any = None,
    ) -> None:  # fmt: skip
        if distribution == "normal":  # TensorFlow's older name
            distribution = "truncated_normal"
        if not scale > 0:
            raise ValueError(f"The scale of VarianceScaling is positive, not {scale}.")
        self.scale = scale
        self.mode = one_of(mode, "mode of VarianceScaling", MODES)
        self.distribution = one_of(distribution, "distribution of VarianceScaling", DISTRIBUTIONS)
        super().__init__(seed)


@final
class GlorotNormal(Scaled):
    """Truncated normal, variance 2 / (inputs + outputs).

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural
    networks, 2010.

    >>> GlorotNormal(seed=7)((3, 4)).shape
    (3, 4)
    """

    scale, mode, distribution = 1.0, "fan_avg", "truncated_normal"


@final
class GlorotUniform(Scaled):
    """Uniform, variance 2 / (inputs + outputs): Keras's choice for dense layers.

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural
    networks, 2010.

    >>> bool(jnp.all(jnp.abs(GlorotUniform(seed=7)((3, 3))) <= 1.0))
    True
    """

    scale, mode, distribution = 1.0, "fan_avg", "uniform"


@final
class HeNormal(Scaled):
    """Truncated normal, variance 2 / inputs: for layers followed by a ReLU.

    Source: He et al., Delving deep into rectifiers, 2015 (https://arxiv.org/abs/1502.01852).

    >>> HeNormal(seed=7)((3, 3, 8, 16)).shape
    (3, 3, 8, 16)
    """

    scale, mode, distribution = 2.0, "fan_in", "truncated_normal"


@final
class HeUniform(Scaled):
    """Uniform, variance 2 / inputs: for layers followed by a ReLU.

    Source: He et al., Delving deep into rectifiers, 2015 (https://arxiv.org/abs/1502.01852).

    >>> bool(jnp.all(jnp.abs(HeUniform(seed=7)((6, 3))) <= 1.0))
    True
    """

    scale, mode, distribution = 2.0, "fan_in", "uniform"


@final
class LecunNormal(Scaled):
    """Truncated normal, variance 1 / inputs.

    Source: LeCun et al., Efficient BackProp, 1998.

    >>> LecunNormal(seed=7)((3, 4)).shape
    (3, 4)
    """

    scale, mode, distribution = 1.0, "fan_in", "truncated_normal"


@final
class LecunUniform(Scaled):
    """Uniform, variance 1 / inputs.

    Source: LeCun et al., Efficient BackProp, 1998.

    >>> bool(jnp.all(jnp.abs(LecunUniform(seed=7)((3, 3))) <= 1.0))
    True
    """

    scale, mode, distribution = 1.0, "fan_in", "uniform"

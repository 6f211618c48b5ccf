"""First values for variables: zeros, ones, random ones whose variance suits the layer.

    init = jv.initializers.GlorotUniform(seed=7)
    w = jv.Variable(init((64, 10)))
    w = jv.Variable(lambda: init((64, 10)))      # also on a compiled function's first call

The names and arguments are Keras's, each also in small letters (`glorot_uniform`); `get` finds one
by name. The numbers are those of `jax.nn.initializers`.

Rules this file keeps:
- with an integer as seed each call gives the same numbers; without one they are drawn from
  the global generator, and with a `Generator` from that, so that each call gives others.

>>> init = he_normal(seed=7)
>>> init((3, 4)).tolist() == get("he_normal", seed=7)((3, 4)).tolist()
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.display.repr import did_you_mean
from jaxvars.errors import DtypeError, ShapeError
from jaxvars.initializers.initializer import DISTRIBUTIONS, MODES, Random, Scaled, Sizes, one_of
from jaxvars.initializers.initializer import Initializer as Initializer
from jaxvars.random.stateless import (
    stateless_normal,
    stateless_truncated_normal,
    stateless_uniform,
)
from jaxvars.tensors.tensor import to_tensor

Value: TypeAlias = Any


# ---------------------------------------------------------------- known values
@final
class Zeros(Initializer):
    """Zeros.

    >>> Zeros()((2,), dtype="int32").tolist()
    [0, 0]
    """

    def _make(self, shape: Sizes, dtype: Any) -> Value:
        return jnp.zeros(shape, dtype)


@final
class Ones(Initializer):
    """Ones.

    >>> Ones()((2,)).tolist()
    [1.0, 1.0]
    """

    def _make(self, shape: Sizes, dtype: Any) -> Value:
        return jnp.ones(shape, dtype)


@final
class Constant(Initializer):
    """One number everywhere, or an array.

    Args:
        value: a number, or an array that broadcasts to the shape.

    Raises:
        ShapeError: (from a call) when the value does not broadcast to the shape.
        DtypeError: (from a call) when the dtype cannot hold the value without loss.

    >>> Constant(3)((2, 2)).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value

    def _make(self, shape: Sizes, dtype: Any) -> Value:
        value = to_tensor(self.value, dtype, what="the value of Constant")
        try:
            return jnp.broadcast_to(value, shape)
        except ValueError:
            raise ShapeError(
                f"Constant has a value of shape {value.shape}, which does not broadcast to the "
                f"shape {shape} that was asked for."
            ) from None


@final
class Identity(Initializer):
    """The identity matrix, times a number.

    Args:
        gain: the number.

    Raises:
        ShapeError: (from a call) when the shape is not that of a matrix.

    >>> Identity(2)((2, 3)).tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    """

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def _make(self, shape: Sizes, dtype: Any) -> Value:
        if len(shape) != 2:
            raise ShapeError(f"Identity makes matrices, like (3, 3), not the shape {shape}.")
        return to_tensor(self.gain, dtype, what="the gain of Identity") * jnp.eye(
            *shape, dtype=dtype
        )


# ---------------------------------------------------------------- random ones
@final
class RandomNormal(Random):
    """Normally distributed numbers.

    Args:
        mean: their mean.
        stddev: their standard deviation.
        seed: an integer, two of them, a key of `jax.random` or a `Generator`; the global
            generator when None.

    >>> RandomNormal(mean=5.0, seed=7)((2, 3)).shape
    (2, 3)
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean = mean
        self.stddev = stddev
        super().__init__(seed)

    def _make(self, shape: Sizes, dtype: Any) -> Value:
        return stateless_normal(shape, self._source(), self.mean, self.stddev, dtype)


@final
class RandomUniform(Random):
    """Uniformly distributed numbers: `minval <= x < maxval`.

    Args:
        minval: the smallest.
        maxval: the bound above.
        seed: as for `RandomNormal`.

    >>> RandomUniform(0, 10, seed=7)((3,), dtype="int32").shape
    (3,)
    """

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None) -> None:
        self.minval = minval
        self.maxval = maxval
        super().__init__(seed)

    def _make(self, shape: Sizes, dtype: Any) -> Value:
        return stateless_uniform(shape, self._source(), self.minval, self.maxval, dtype)


@final
class TruncatedNormal(Random):
    """Normally distributed numbers, none further from the mean than two `stddev`.

    Args:
        mean: their mean.
        stddev: the standard deviation before those further away are drawn again.
        seed: as for `RandomNormal`.

    >>> bool(jnp.all(jnp.abs(TruncatedNormal(seed=7)((100,))) <= 0.1))
    True
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean = mean
        self.stddev = stddev
        super().__init__(seed)

    def _make(self, shape: Sizes, dtype: Any) -> Value:
        return stateless_truncated_normal(shape, self._source(), self.mean, self.stddev, dtype)


@final
class Orthogonal(Random):
    """A matrix with orthonormal columns, or rows if there are fewer of them, times a number.

    Shapes of more than two axes are those of a matrix whose columns are the last axis.

    Args:
        gain: the number.
        seed: as for `RandomNormal`.

    Raises:
        ShapeError: (from a call) when the shape has fewer than two axes.

    >>> q = Orthogonal(seed=7)((3, 3))
    >>> bool(jnp.allclose(q.T @ q, jnp.eye(3), atol=1e-6))
    True
    """

    def __init__(self, gain: float = 1.0, seed: Any = None) -> None:
        self.gain = gain
        super().__init__(seed)

    def _make(self, shape: Sizes, dtype: Any) -> Value:
        if len(shape) < 2:
            raise ShapeError(f"Orthogonal makes matrices, like (3, 4), not the shape {shape}.")
        if not jnp.issubdtype(dtype, jnp.inexact):
            raise DtypeError(f"Orthogonal has no values of dtype {dtype}: ask for a float.")
        wide = jnp.promote_types(dtype, jnp.float32)  # LAPACK has no 16-bit numbers
        make = jax.nn.initializers.orthogonal(self.gain)
        return self._draw(lambda key: make(key, shape, wide), shape, dtype)


# ---------------------------------------------------------------- variance by fans
@final
class VarianceScaling(Scaled):
    """Random numbers of variance `scale / n`, n being the layer's inputs, outputs or both.

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
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: Any = None,
    ) -> None:
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

    Args:
        seed: as for `RandomNormal`.

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural
    networks, 2010.

    >>> GlorotNormal(seed=7)((3, 4)).shape
    (3, 4)
    """

    scale = 1.0
    mode = "fan_avg"
    distribution = "truncated_normal"


@final
class GlorotUniform(Scaled):
    """Uniform, variance 2 / (inputs + outputs): Keras's choice for dense layers.

    Args:
        seed: as for `RandomNormal`.

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural
    networks, 2010.

    >>> bool(jnp.all(jnp.abs(GlorotUniform(seed=7)((3, 3))) <= 1.0))
    True
    """

    scale = 1.0
    mode = "fan_avg"
    distribution = "uniform"


@final
class HeNormal(Scaled):
    """Truncated normal, variance 2 / inputs: for layers followed by a ReLU.

    Args:
        seed: as for `RandomNormal`.

    Source: He et al., Delving deep into rectifiers, 2015 (https://arxiv.org/abs/1502.01852).

    >>> HeNormal(seed=7)((3, 3, 8, 16)).shape
    (3, 3, 8, 16)
    """

    scale = 2.0
    mode = "fan_in"
    distribution = "truncated_normal"


@final
class HeUniform(Scaled):
    """Uniform, variance 2 / inputs: for layers followed by a ReLU.

    Args:
        seed: as for `RandomNormal`.

    Source: He et al., Delving deep into rectifiers, 2015 (https://arxiv.org/abs/1502.01852).

    >>> bool(jnp.all(jnp.abs(HeUniform(seed=7)((6, 3))) <= 1.0))
    True
    """

    scale = 2.0
    mode = "fan_in"
    distribution = "uniform"


@final
class LecunNormal(Scaled):
    """Truncated normal, variance 1 / inputs.

    Args:
        seed: as for `RandomNormal`.

    Source: LeCun et al., Efficient BackProp, 1998.

    >>> LecunNormal(seed=7)((3, 4)).shape
    (3, 4)
    """

    scale = 1.0
    mode = "fan_in"
    distribution = "truncated_normal"


@final
class LecunUniform(Scaled):
    """Uniform, variance 1 / inputs.

    Args:
        seed: as for `RandomNormal`.

    Source: LeCun et al., Efficient BackProp, 1998.

    >>> bool(jnp.all(jnp.abs(LecunUniform(seed=7)((3, 3))) <= 1.0))
    True
    """

    scale = 1.0
    mode = "fan_in"
    distribution = "uniform"


# ---------------------------------------------------------------- by name
zeros = Zeros
ones = Ones
constant = Constant
identity = Identity
random_normal = RandomNormal
random_uniform = RandomUniform
truncated_normal = TruncatedNormal
orthogonal = Orthogonal
variance_scaling = VarianceScaling
glorot_normal = GlorotNormal
glorot_uniform = GlorotUniform
he_normal = HeNormal
he_uniform = HeUniform
lecun_normal = LecunNormal
lecun_uniform = LecunUniform

_BY_NAME: dict[str, type[Initializer]] = {
    name: thing
    for name, thing in list(globals().items())
    if isinstance(thing, type) and issubclass(thing, Initializer)
    if thing not in (Initializer, Random, Scaled)
}
_SHORT = {"normal": RandomNormal, "uniform": RandomUniform, "zero": Zeros, "one": Ones}


def get(identifier: Any, **config: Any) -> Callable[..., Value] | None:
    """Return an initializer by name.

    Args:
        identifier: a name like "glorot_uniform" or "GlorotUniform", an initializer, its class, a
            function of shape and dtype, a dict of "class_name" and "config", or None for None.
        **config: arguments for the class.

    Raises:
        ValueError: when there is none of that name, with the nearest.
        TypeError: when the identifier is something else, or the initializer takes no such argument.

    >>> get("he_normal", seed=7)
    HeNormal(seed=7)
    >>> get({"class_name": "Constant", "config": {"value": 2.0}})
    Constant(value=2.0)
    """
    if isinstance(identifier, dict) and "class_name" in identifier:
        return get(identifier["class_name"], **{**identifier.get("config", {}), **config})
    if isinstance(identifier, str):
        return _named(identifier)(**config)
    if isinstance(identifier, type) and issubclass(identifier, Initializer):
        return identifier(**config)
    if identifier is None or (callable(identifier) and not config):
        return identifier
    raise TypeError(
        f"{identifier!r} is no initializer{' that takes arguments' if config else ''}: give a name "
        'like "glorot_uniform", or a function of shape and dtype.'
    )


def _named(name: str) -> type[Initializer]:
    found = {**_SHORT, **_BY_NAME}.get(name)
    if found is None:
        names = sorted(known for known in _BY_NAME if known.islower())
        hint = did_you_mean(name, names) or f" There are: {', '.join(names)}."
        raise ValueError(f"There is no initializer {name!r}.{hint}")
    return found

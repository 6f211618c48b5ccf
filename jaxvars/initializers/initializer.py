"""The initializers: how they are called, and those of random values, scaled to the layer or not.

Rules this file keeps:
- an initializer is a value: its attributes are its arguments, and two with the same are equal;
- shape and dtype are checked before anything is drawn;
- the fans of a shape are Keras's, for any rank.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.display.docstrings import complete
from jaxvars.display.lookup import find_named
from jaxvars.errors import DtypeError, ShapeError
from jaxvars.objects.identity import told_by_pickle
from jaxvars.random import Generator, draws, get_global_generator
from jaxvars.random.seeds import Shape, as_shape, key_of, unseen
from jaxvars.tensors.dtypes import as_dtype, is_key
from jaxvars.tensors.quick_jit import QuickJit
from jaxvars.tracing import context
from jaxvars.tracing.guards import ask
from jaxvars.typing import Array, DTypeLike

Sizes: TypeAlias = tuple[int, ...]


class Initializer(ABC):
    """The base of initializers: called with a shape, they give the first value of a variable.

    >>> class Halves(Initializer):
    ...     def _make(self, shape, dtype):
    ...         return jnp.full(shape, 0.5, dtype)
    >>> Halves()((2,)).tolist()
    [0.5, 0.5]
    """

    def __init_subclass__(cls) -> None:
        told_by_pickle(cls)

    @context.restoring()
    def __call__(self, shape: Shape, dtype: DTypeLike | None = None) -> Array:
        """Return a value.

        Args:
            shape: integers.
            dtype: float32 when None.

        Raises:
            ShapeError: when the shape is none, or none that the initializer has a value for.
            DtypeError: when it has no values of that dtype.
        """
        ask("An initial value is made")
        kind = as_dtype("float32" if dtype is None else dtype)
        return self._make(as_shape(shape), kind)

    @abstractmethod
    def _make(self, shape: Sizes, dtype: Any) -> Array:
        """Return a value of a shape and dtype."""

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """Return the initializer with these arguments."""
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Initializer) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (type(self), *map(_freeze, vars(self).values()))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({arguments})"


def _freeze(value: Any) -> Any:
    """Return what an argument is compared by: of an array its numbers."""
    if isinstance(value, list | tuple):
        return tuple(map(_freeze, value))
    if not isinstance(value, jax.Array | np.ndarray) or context.is_tracer(value):
        return value
    numbers = np.asarray(jax.random.key_data(value) if is_key(value) else value)
    return str(value.dtype), numbers.shape, numbers.tobytes()


class Random(Initializer):
    """An initializer that draws random values, from `seed` or from the global generator."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__doc__:
            complete(cls, {"seed": "as for `RandomNormal`."})

    def __init__(self, seed: Any = None) -> None:
        self.seed = seed

    def _draw(self, draw: Callable[[Array, Any], Array], shape: Sizes, dtype: Any) -> Array:
        """Return what `draw` makes of a key and a wide dtype, as a value of a shape and dtype."""
        if not jnp.issubdtype(dtype, jnp.inexact):
            name = type(self).__name__
            raise DtypeError(f"{name} has no values of dtype {dtype}: ask for a float.")
        key = unseen(lambda: key_of(self._source()))
        if not math.prod(shape):  # which JAX cannot draw
            return jnp.zeros(shape, dtype)
        # LAPACK has no 16-bit numbers, and no variance is too small for float32.
        wide = jnp.promote_types(dtype, jnp.float32)
        return unseen(lambda: draw(key, wide)).reshape(shape).astype(dtype)

    def _source(self) -> Any:
        """Return a seed, or what gives one."""
        if self.seed is None:
            return get_global_generator().next_key
        return self.seed.next_key if isinstance(self.seed, Generator) else self.seed


def one_of(name: str, what: str, known: tuple[str, ...]) -> str:
    """Return a name if it is one of those known; raise ValueError with the nearest otherwise."""
    return find_named(str(name), {each: each for each in known}, what)


MODES = ("fan_in", "fan_out", "fan_avg", "fan_geo_avg")
DISTRIBUTIONS = ("truncated_normal", "untruncated_normal", "uniform")


# ---------------------------------------------------------------- random
class _Normal(Random):
    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean = mean
        self.stddev = stddev
        super().__init__(seed)


@final
class RandomNormal(_Normal):
    """Normally distributed values.

    Args:
        mean: their mean.
        stddev: their standard deviation.
        seed: an integer, two of them, a key of `jax.random` or a `Generator`; the global
            generator when None.

    >>> RandomNormal(mean=5.0, seed=7)((2, 3)).shape
    (2, 3)
    """

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        return draws.normal(self._source(), shape, self.mean, self.stddev, dtype)


@final
class RandomUniform(Random):
    """Uniformly distributed values: `minval <= x < maxval`.

    Args:
        minval: the smallest.
        maxval: the bound above.

    >>> RandomUniform(0, 10, seed=7)((3,), dtype="int32").shape
    (3,)
    """

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None) -> None:
        self.minval = minval
        self.maxval = maxval
        super().__init__(seed)

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        return draws.uniform(self._source(), shape, self.minval, self.maxval, dtype)


@final
class TruncatedNormal(_Normal):
    """Normally distributed values, none further from the mean than two `stddev`.

    Args:
        mean: their mean.
        stddev: the standard deviation before those further away are drawn again.

    >>> bool(jnp.all(jnp.abs(TruncatedNormal(seed=7)((100,))) <= 0.1))
    True
    """

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        return draws.truncated_normal(self._source(), shape, self.mean, self.stddev, dtype)


@final
class Orthogonal(Random):
    """A matrix with orthonormal columns, or rows if there are fewer of them, times a number.

    Source: Saxe, McClelland and Ganguli, Exact solutions to the nonlinear dynamics of learning in
    deep linear neural networks, 2014 (https://arxiv.org/abs/1312.6120).

    Shapes of more than two axes are those of a matrix whose columns are the last axis.

    Args:
        gain: the number.

    Raises:
        ShapeError: (from a call) when the shape has fewer than two axes.

    >>> q = Orthogonal(seed=7)((3, 3))
    >>> bool(jnp.allclose(q.T @ q, jnp.eye(3), atol=1e-6))
    True
    """

    def __init__(self, gain: float = 1.0, seed: Any = None) -> None:
        self.gain = gain
        super().__init__(seed)

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        if len(shape) < 2:
            raise ShapeError(f"Orthogonal makes matrices, like (3, 4), not the shape {shape}.")
        make = jax.nn.initializers.orthogonal(self.gain)
        return self._draw(lambda key, wide: make(key, shape, wide), shape, dtype)


# ---------------------------------------------------------------- scaled to the layer
class Scaled(Random):
    """An initializer whose variance is a scale by the number of inputs, outputs, or both."""

    scale: float
    mode: str
    distribution: str

    def __init_subclass__(
        cls, like: tuple[float, str, str] | None = None, source: str | None = None
    ) -> None:
        if like is not None:
            cls.scale, cls.mode, cls.distribution = like
            example = f">>> {cls.__name__}(seed=7)((3, 4)).shape\n(3, 4)"
            cls.__doc__ = f"{cls.__doc__}\n\nSource: {source}\n\n{example}\n"
        super().__init_subclass__()

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        variance = self.scale / max(1.0, _count(self.mode, *fans(shape)))
        kind: Any = self.distribution
        kind = "normal" if kind == "untruncated_normal" else kind  # JAX's name
        flat = (1, math.prod(shape))

        def draw(key: Array, wide: Any) -> Array:
            if jnp.issubdtype(wide, jnp.floating):
                return _times(_NOISE[kind](key, flat, wide), _deviation(kind, variance, wide))
            # JAX's fans are those of at least two axes: give it one input, and the variance.
            return jax.nn.initializers.variance_scaling(variance, "fan_in", kind)(key, flat, wide)

        return self._draw(draw, shape, dtype)


_NOISE = {
    "uniform": draws.quick_draw(
        lambda key, shape, dtype: jax.random.uniform(key, shape, dtype, -1)
    ),
    "normal": draws.quick_normal,
    "truncated_normal": draws.quick_truncated_normal,
}
_times = QuickJit(jnp.multiply, jnp.multiply)


def _deviation(kind: str, variance: Any, dtype: Any) -> Array:
    """Return what noise of a kind is multiplied by, as `jax.nn.initializers` does it."""
    known = jnp.array(variance, dtype)
    if kind == "uniform":
        return jnp.sqrt(3 * known)  # it is of -1 to 1
    cut = 0.87962566103423978  # the deviation of normal values that are within 2
    return (
        jnp.sqrt(known) / jnp.array(cut, dtype) if kind == "truncated_normal" else jnp.sqrt(known)
    )


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

    Source: the variances of `GlorotNormal` (Glorot and Bengio, 2010), `HeNormal` (He et al., 2015)
    and `LecunNormal` (LeCun et al., 1998).

    Args:
        scale: a positive number.
        mode: what n is: "fan_in", "fan_out", their mean "fan_avg", or "fan_geo_avg".
        distribution: "truncated_normal", "untruncated_normal" or "uniform"; "normal" is the
            first.

    Raises:
        ValueError: when the mode or distribution is unknown, or the scale is not positive.

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


_GLOROT = (
    "Glorot and Bengio, Understanding the difficulty of training deep feedforward neural\n"
    "networks, 2010."
)
_HE = "He et al., Delving deep into rectifiers, 2015 (https://arxiv.org/abs/1502.01852)."
_LECUN = "LeCun et al., Efficient BackProp, 1998."


@final
class GlorotNormal(Scaled, like=(1.0, "fan_avg", "truncated_normal"), source=_GLOROT):
    """Truncated normal, variance 2 / (inputs + outputs)."""


@final
class GlorotUniform(Scaled, like=(1.0, "fan_avg", "uniform"), source=_GLOROT):
    """Uniform, variance 2 / (inputs + outputs): Keras's choice for dense layers."""


@final
class HeNormal(Scaled, like=(2.0, "fan_in", "truncated_normal"), source=_HE):
    """Truncated normal, variance 2 / inputs: for layers followed by a ReLU."""


@final
class HeUniform(Scaled, like=(2.0, "fan_in", "uniform"), source=_HE):
    """Uniform, variance 2 / inputs: for layers followed by a ReLU."""


@final
class LecunNormal(Scaled, like=(1.0, "fan_in", "truncated_normal"), source=_LECUN):
    """Truncated normal, variance 1 / inputs."""


@final
class LecunUniform(Scaled, like=(1.0, "fan_in", "uniform"), source=_LECUN):
    """Uniform, variance 1 / inputs."""

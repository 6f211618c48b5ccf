"""`tf.random.Generator`: a stream of random values whose state is a variable.

Rules this file keeps:
- the state is TensorFlow's: a counter and a key, as a variable;
- the values are TensorFlow's, where they are made of random words by a formula
  (`random/bits.py`).
"""

from __future__ import annotations

import os
import threading
from typing import Any, ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.frames import LOCAL, within
from jaxvars.objects.traversal import Holder
from jaxvars.tensors.dtypes import narrowed
from jaxvars.tf.random import draws as draws
from jaxvars.tf.random.stateless import Algorithm, check_algorithm
from jaxvars.tf.random.streams import SIZE, advance, check_seeded, take_start
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype, int64
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable
from jaxvars.tracing import context
from jaxvars.typing import Array

_SPAN = 2**64


def create_rng_state(seed: Any, alg: Any) -> Tensor:
    """Make the state of a generator: int64[3], a counter and a key.

    Args:
        seed: an integer, or a vector of them.
        alg: an `Algorithm`, its name or number.

    >>> create_rng_state(1234, "philox").numpy().tolist()
    [1234, 0, 0]
    """
    check_algorithm(alg)
    return Tensor(_first_state(seed))


def _first_state(seed: Any) -> Array:
    if isinstance(seed, int | np.integer):
        return to_array([_to_signed(int(seed) >> 64 * i) for i in range(SIZE)], int64)
    numbers = _to_integers(seed).ravel()[:SIZE]
    return jnp.concatenate([jnp.zeros(SIZE - len(numbers), numbers.dtype), numbers])


def _to_signed(number: int) -> int:
    """Return the lower 64 bits of a number as a signed one."""
    return (number + _SPAN // 2) % _SPAN - _SPAN // 2


def _to_integers(value: Any) -> Array:
    """Return integers of 64 bits; those that are too large by their bits."""
    if isinstance(value, list | tuple):
        value = [_to_signed(x) if isinstance(x, int) else x for x in value]
    number = _to_signed(value) if isinstance(value, int) else value
    return to_array(number).astype(narrowed(np.int64))


def _check_shape(array: Any, shape: list[int]) -> Any:
    if list(array.shape) != shape:
        raise ValueError(f"Shapes {TensorShape(array.shape)} and {shape} are incompatible")
    return array


@final
class Generator(Holder):
    """A stream of random values, the same for the same seed.

    In a compiled function each method draws again each time that it is run.

    Args:
        copy_from: a generator whose state to begin with.
        state: a state, with `alg`; if it is a variable, it is used itself.
        alg: an `Algorithm`, its name or number.

    Raises:
        ValueError: for an algorithm or a state that is none.

    >>> g = Generator.from_seed(1234)
    >>> print(g.normal([3]).numpy().round(5))
    [ 0.93566  1.08543 -0.93788]
    >>> g.state.numpy()
    array([2002,    0,    0])

    Differs from TensorFlow: Threefry runs on every device, with other values than XLA's there, and
    `binomial` draws with `jax.random`. In a strategy's scope there is one stream for all devices.
    """

    def __init__(self, copy_from: Any = None, state: Any = None, alg: Any = None) -> None:
        if (copy_from is None) == (state is None) or (copy_from is None) != (alg is not None):
            raise ValueError("A Generator is made of `copy_from`, or of `state` and `alg`.")
        if alg is not None:
            check_algorithm(alg)
        first = state if copy_from is None else copy_from.state
        if copy_from is None and isinstance(first, Variable):
            _check_shape(first, [SIZE])
            self._state_var = first
        else:
            state = _check_shape(_to_integers(first), [SIZE])
            self._state_var = Variable(Tensor(state), trainable=False, name="StateVar")

    # ------------------------------------------------------------ making
    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """Return the generator of a seed, an integer or a vector of them."""
        return cls(state=Tensor(_first_state(seed)), alg=Algorithm.PHILOX if alg is None else alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Return a generator that the operating system has seeded.

        Raises:
            RuntimeError: after `tf.config.experimental.enable_op_determinism`.
        """
        check_seeded("from_non_deterministic_state")
        state = np.frombuffer(os.urandom(8 * SIZE), narrowed(np.int64))[:SIZE]
        return cls(state=Tensor(jnp.asarray(state)), alg=Algorithm.PHILOX if alg is None else alg)

    @classmethod
    def from_state(cls, state: Any, alg: Any) -> Generator:
        """Return a generator that goes on from the `state` of another."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any) -> Generator:
        """Return the generator of a key, and of a counter: two integers for Philox, one else."""
        return cls(state=Tensor(_state_with(key, counter)), alg=alg)

    def split(self, count: int = 1) -> list[Generator]:
        """Return new generators with separate streams."""
        keys = self._keys(int(count))
        zeros = jnp.zeros(SIZE - 1, keys.dtype)
        states = [jnp.concatenate([zeros, keys[i : i + 1]]) for i in range(int(count))]
        return [Generator(state=Tensor(state), alg=Algorithm.PHILOX) for state in states]

    def make_seeds(self, count: int = 1) -> Tensor:
        """Return seeds for stateless functions: int64[2, count], one in each column."""
        keys = self._keys(int(count))
        return Tensor(jnp.stack([keys, jnp.zeros_like(keys)]))

    def _keys(self, count: int) -> Array:
        return self.uniform_full_int([count], int64)._array

    # ------------------------------------------------------------ state
    @property
    def state(self) -> Variable:
        """The variable that holds the counter and the key: int64[3], of Threefry int64[2]."""
        return self._state_var

    @property
    def algorithm(self) -> int:
        """The number of the algorithm."""
        return Algorithm.PHILOX.value

    @property
    def key(self) -> Tensor:
        """The key, one number."""
        return Tensor(to_array(self._state_var)[-1])

    def reset(self, state: Any) -> None:
        """Go on from the `state` of another generator.

        Raises:
            ValueError: when it has another size.
        """
        self._state_var.assign(Tensor(_check_shape(_to_integers(state), [SIZE])))

    def reset_from_seed(self, seed: Any) -> None:
        """Begin the stream of a seed."""
        self._state_var.assign(Tensor(_first_state(seed)))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Begin at a key and a counter."""
        self._state_var.assign(Tensor(_state_with(key, counter)))

    def skip(self, delta: Any) -> Tensor:
        """Advance as if `delta` values had been drawn; return the state that was."""
        olds: list[Array] = []
        count = to_array(delta).astype(narrowed(np.int64))

        def step(old: Array) -> Array:
            olds.append(old)
            return advance(old, count)

        LOCAL.frame.modify(self._state_var.aliased._cell, step)
        return Tensor(olds[0])

    # ------------------------------------------------------------ values
    def _start(self, count: int) -> Array:
        return take_start(self._state_var.aliased, count)

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32",
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Draw normally distributed values."""
        return draws.normal(self._start, shape, mean, stddev, dtype)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32",
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Draw normally distributed values within two deviations of the mean."""
        return draws.truncated_normal(self._start, shape, mean, stddev, dtype)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32",
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Draw uniformly distributed values: `minval <= x < maxval`.

        Raises:
            ValueError: for integers with one bound.
        """
        kind = as_dtype(dtype)
        if kind.is_integer and (minval is None) != (maxval is None):
            raise ValueError(
                f"For integer dtype {kind}, minval and maxval must be both `None` or both "
                f"non-`None`; got minval={minval} and maxval={maxval}"
            )
        return draws.uniform(self._start, shape, minval, maxval, kind)

    def uniform_full_int(
        self, shape: Any, dtype: Any = "uint64", name: str | None = None
    ) -> Tensor:
        """Draw integers of all that the type can hold."""
        return draws.uniform(self._start, shape, None, None, as_dtype(dtype))

    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: Any = "int32", name: str | None = None
    ) -> Tensor:
        """Draw how many of `counts` trials succeed, each with probability `probs`."""
        return draws.binomial(self._start, shape, counts, probs, dtype)


def _state_with(key: Any, counter: Any) -> Array:
    numbers = _check_shape(_to_integers(counter), [SIZE - 1])
    return jnp.concatenate([numbers, _check_shape(_to_integers(key), []).reshape(1)])


# ---------------------------------------------------------------- the global one
@final
class _Global:
    """The generator that is there for all, once there is one."""

    generator: ClassVar[Generator | None] = None
    lock: ClassVar[Any] = threading.RLock()  # a handler of signals or a finalizer may draw, too


def get_global_generator() -> Generator:
    """Return the global generator, made when first requested.

    Raises:
        RuntimeError: after `tf.config.experimental.enable_op_determinism`, if there is none yet.

    >>> get_global_generator() is get_global_generator()
    True
    """
    with _Global.lock:
        if _Global.generator is None:
            check_seeded("get_global_generator")
            with context.at(context.EVAL), jax.default_device(None):
                made = within(LOCAL.eager, Generator.from_non_deterministic_state)
            _Global.generator = _Global.generator or made
        return _Global.generator


def set_global_generator(generator: Any) -> None:
    """Put another generator in the place of the one that is there for all.

    Args:
        generator: the generator; None to have one made when it is requested.

    Raises:
        TypeError: when it is none.

    >>> set_global_generator(Generator.from_seed(7))
    """
    if not isinstance(generator, Generator | None):
        raise TypeError(
            f"{generator!r} is not a Generator: tf.random.Generator.from_seed(7) is one."
        )
    _Global.generator = generator

"""`tf.random.Generator`: a stream of random numbers whose state is a variable.

Rules this file keeps:
- it stands for a `jaxvars.random.Generator`, which what walks objects finds in its place;
- there is one algorithm, Threefry; the names of others are taken and mean it.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars import _trace
from jaxvars._frames import LOCAL, within
from jaxvars._generator import Generator as CoreGenerator
from jaxvars._walk import Alias
from jaxvars.tf import _random_draws as draws
from jaxvars.tf._convert import to_array
from jaxvars.tf._dtypes import as_dtype
from jaxvars.tf._tensor import Tensor
from jaxvars.tf._variable import Variable, face_of

Value: TypeAlias = Any

_MASK = 0xFFFFFFFF


class Algorithm(enum.Enum):
    """The algorithms that TensorFlow has; Threefry stands for all of them here."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def _check_algorithm(alg: Any) -> None:
    name = alg.name.lower() if isinstance(alg, Algorithm) else alg
    known = {None, "philox", "threefry", "auto_select", 1, 2, 3}
    if isinstance(alg, Tensor | Variable):
        name = int(alg)
    if name not in known:
        raise ValueError(
            f"Argument `alg` got unsupported value {alg}: there are 'philox', 'threefry' and "
            "'auto_select'."
        )


def create_rng_state(seed: Any, alg: Any) -> Tensor:
    """Make the state of a generator: uint32[4], a key and a counter.

    >>> Generator.from_state(create_rng_state(7, "threefry"), "threefry").normal([]).shape
    TensorShape([])
    """
    _check_algorithm(alg)
    return Tensor(CoreGenerator(_seed_of(seed)).state.value)


@final
class Generator(Alias):
    """A stream of random numbers, the same for the same seed.

    In a compiled function each method draws anew each time that it is run.

    Args:
        copy_from: a generator whose state to begin with.
        state: a state, with `alg`.
        alg: accepted; there is one algorithm, Threefry.

    >>> one, other = Generator.from_seed(7), Generator.from_seed(7)
    >>> bool(one.normal([]) == other.normal([]))
    True

    Differs from TensorFlow: the state is uint32[4], and the numbers are those of `jax.random`.
    """

    def __init__(self, copy_from: Any = None, state: Any = None, alg: Any = None) -> None:
        _check_algorithm(alg)
        if (copy_from is None) == (state is None):
            raise ValueError("A Generator is made of `copy_from`, or of `state` and `alg`.")
        self._core = CoreGenerator(0)
        self.reset(copy_from.state if state is None else state)

    @property
    def aliased(self) -> CoreGenerator:
        """The `jaxvars.random.Generator` that it stands for."""
        return self._core

    # ------------------------------------------------------------ making
    @classmethod
    def _of(cls, core: CoreGenerator) -> Generator:
        made = object.__new__(cls)
        made._core = core
        return made

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """Return the generator of a seed, an integer or a vector of them."""
        _check_algorithm(alg)
        return cls._of(CoreGenerator(_seed_of(seed)))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Return a generator that the operating system has seeded."""
        _check_algorithm(alg)
        return cls._of(CoreGenerator())

    @classmethod
    def from_state(cls, state: Any, alg: Any) -> Generator:
        """Return a generator that goes on from the `state` of another."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any) -> Generator:
        """Return the generator of a key, and of a counter of draws."""
        _check_algorithm(alg)
        made = cls._of(CoreGenerator(0))
        made.reset_from_key_counter(key, counter)
        return made

    def split(self, count: int = 1) -> list[Generator]:
        """Return new generators with streams of their own."""
        return [Generator._of(core) for core in self._core.split(int(count))]

    def make_seeds(self, count: int = 1) -> Tensor:
        """Return seeds for stateless functions: int64[2, count], one in each column."""
        seeds = jax.random.bits(self._core.next_key(), (2, int(count)), jnp.uint64)
        return Tensor(seeds.astype(jnp.int64))

    # ------------------------------------------------------------ state
    @property
    def state(self) -> Variable:
        """The variable that holds the key and the counter: uint32[4]."""
        return face_of(self._core.state)

    @property
    def algorithm(self) -> int:
        """The number of the algorithm: 2, Threefry."""
        return Algorithm.THREEFRY.value

    @property
    def key(self) -> Tensor:
        """The key, as one number."""
        high, low = self._core.state.value[:2].astype(jnp.uint64)
        return Tensor(((high << 32) | low).astype(jnp.int64))

    def reset(self, state: Any) -> None:
        """Go on from the `state` of another generator.

        Raises:
            ValueError: when it is none.
        """
        words = to_array(state)
        if words.shape != (4,):
            raise ValueError(
                f"The state of a generator has shape (4,), not {words.shape}: take that of a "
                "Generator, or tf.random.create_rng_state(seed, alg)."
            )
        self._core.reset(words.astype(jnp.uint32))

    def reset_from_seed(self, seed: Any) -> None:
        """Begin the stream of a seed."""
        self._core.reset_from_seed(_seed_of(seed))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Begin where a key and a counter say."""
        first = to_array(counter).ravel()[:1]
        numbers = jnp.concatenate([to_array(key).reshape(1), first]).astype(jnp.uint64)
        words = jnp.stack([numbers >> 32, numbers & _MASK], axis=1)
        self._core.reset(words.ravel().astype(jnp.uint32))

    def skip(self, delta: Any) -> Tensor:
        """Move on as if `delta` draws had been made; return the state that was."""
        before = Tensor(self._core.state.value)
        self._core.skip(to_array(delta))
        return before

    # ------------------------------------------------------------ numbers
    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32",
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Draw normally distributed numbers."""
        return draws.normal(self._core.next_key, shape, mean, stddev, dtype)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32",
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Draw normally distributed numbers within two deviations of the mean."""
        return draws.truncated_normal(self._core.next_key, shape, mean, stddev, dtype)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32",
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Draw uniformly distributed numbers: `minval <= x < maxval`.

        Raises:
            ValueError: for integers with one bound.
        """
        kind = as_dtype(dtype)
        if kind.is_integer and (minval is None) != (maxval is None):
            raise ValueError(
                f"For integer dtype {kind}, minval and maxval must be both `None` or both "
                f"non-`None`; got minval={minval} and maxval={maxval}"
            )
        return draws.uniform(self._core.next_key, shape, minval, maxval, kind)

    def uniform_full_int(
        self, shape: Any, dtype: Any = "uint64", name: str | None = None
    ) -> Tensor:
        """Draw integers of all that the type can hold."""
        return draws.uniform(self._core.next_key, shape, None, None, as_dtype(dtype))

    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: Any = "int32", name: str | None = None
    ) -> Tensor:
        """Draw how many of `counts` trials succeed, each with probability `probs`."""
        return draws.binomial(self._core.next_key, shape, counts, probs, dtype)


def _seed_of(seed: Any) -> Any:
    """Return a seed as the core takes it."""
    if isinstance(seed, Sequence | np.ndarray | Tensor | Variable):
        numbers = [int(x) for x in np.ravel(np.asarray(to_array(seed)))]
    else:
        numbers = [int(seed)]
    if len(numbers) == 1:
        return (numbers[0] + 2**63) % 2**64 - 2**63
    mixed = 0
    for number in numbers:
        mixed = (mixed * 0x9E3779B97F4A7C15 + number) & (2**64 - 1)
    return [mixed >> 32, mixed & _MASK]


# ---------------------------------------------------------------- the global one
@final
class _Global:
    """The generator that is there for all, once there is one."""

    generator: ClassVar[Generator | None] = None
    lock: ClassVar[Any] = threading.Lock()


def get_global_generator() -> Generator:
    """Return the generator that is there for all, made when first asked for.

    >>> get_global_generator() is get_global_generator()
    True
    """
    with _Global.lock:
        if _Global.generator is None:
            with _trace.at(_trace.EVAL), jax.default_device(None):
                _Global.generator = Generator._of(within(LOCAL.eager, CoreGenerator))
        return _Global.generator


def set_global_generator(generator: Any) -> None:
    """Put another generator in the place of the one that is there for all.

    Raises:
        TypeError: when it is none.

    >>> set_global_generator(Generator.from_seed(7))
    """
    if not isinstance(generator, Generator):
        raise TypeError(f"{generator!r} is no Generator: tf.random.Generator.from_seed(7) is one.")
    _Global.generator = generator

"""`Generator`: a stream of random values whose state is a variable.

    rng = jv.random.Generator.from_seed(7)
    x = rng.normal((2, 3))          # advances the stream

The state is four 32-bit words: a key of `jax.random` (Threefry) and a counter of 64 bits. Draw
number n uses `jax.random.fold_in(key, n)`. As the state is a Variable, a stream goes on by itself
through compiled functions, staged loops, copies and checkpoints, and is the same in all of them.

Rules this file keeps:
- each draw advances the counter by one, whatever its shape: `skip(n)` is n draws;
- reading and advancing are one step, so that no two threads draw the same;
- a draw that is refused, for its shape or parameters, does not advance the stream;
- in a `vectorized_map` each example draws from a separate key, made of the generator's and the
  number of the example (`control/vmap_index.py`); the counter then advances by as many draws as the
  example made that made most;
- what the first call of a compiled function draws for a variable's first value is drawn before that
  call runs, and with it all that the trace draws: no number is drawn twice; where a checkpoint has
  the values, the stream goes on as it was restored;
- the global generator is made when it is first asked for, outside of whatever is being traced;
  `set_seed` changes it in place, so that compiled functions that use it see that.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Concatenate, ParamSpec, final

import jax
import jax.numpy as jnp
from jax.extend.random import threefry_2x32

from jaxvars.control.vmap_index import EXAMPLE
from jaxvars.core.cells import STREAMS
from jaxvars.core.frames import LOCAL, within
from jaxvars.core.variable import Variable
from jaxvars.modules.module import Module
from jaxvars.random import draws
from jaxvars.random.seeds import IMPL, key_of, unseen, words_of
from jaxvars.tensors.array_like import unwrap
from jaxvars.tracing import context
from jaxvars.typing import Array

P = ParamSpec("P")

_WORDS = 4  # two of the key, then the counter, high word first


def _method(draw: Callable[Concatenate[Any, P], Array]) -> Callable[Concatenate[Any, P], Array]:
    """Return a function of a key as a method of `Generator`, which takes the next key."""

    @functools.wraps(draw)
    def method(self: Generator, *args: P.args, **kwargs: P.kwargs) -> Array:
        return draw(self.next_key, *args, **kwargs)

    signature = inspect.signature(draw)
    first, *others = signature.parameters.values()
    parameters = [first.replace(name="self"), *others]
    vars(method)["__signature__"] = signature.replace(parameters=parameters)
    method.__module__, method.__qualname__ = __name__, f"Generator.{draw.__name__}"
    return method


@final
class Generator(Module):
    """A stream of random values, the same for the same seed.

    Each method that draws advances the stream: in a compiled function, when it is run.

    Args:
        seed: an integer, two of them, or a key of `jax.random`; from the operating system when
            None.
        name: what it is called.

    Attributes:
        state: the Variable that holds the key and the counter, uint32[4], not trainable.

    Raises:
        TypeError: when the seed is something else.
        ValueError: when it has too many bits.

    Example:
        >>> import jaxvars as jv
        >>> rng = Generator(7)
        >>> x, y = rng.normal(3), rng.normal(3)
        >>> again = Generator(7)
        >>> drawn = jv.compile(lambda: again.normal(3))
        >>> x.tolist() == drawn().tolist(), y.tolist() == drawn().tolist()
        (True, True)

    Differs from TensorFlow:
        There is one algorithm, Threefry, and the values are those of `jax.random`. Integers are
        32-bit where none are asked for. In a `vectorized_map` the examples draw differently.
    """

    def __init__(self, seed: Any = None, *, name: str | None = None) -> None:
        super().__init__(name)
        seed = int.from_bytes(os.urandom(8), "big") if seed is None else seed
        self.state = Variable(_make_state(key_of(seed)), trainable=False, name="generator")

    # ------------------------------------------------------------ making
    @classmethod
    def from_seed(cls, seed: Any) -> Generator:
        """Return the generator of a seed.

        >>> int(Generator.from_seed(7).randint((), 0, 100)) == int(Generator(7).randint((), 0, 100))
        True
        """
        if seed is None:
            raise TypeError("from_seed needs a seed; Generator() takes one from the system.")
        return cls(seed)

    @context.restoring()
    def split(self, count: int = 1) -> list[Generator]:
        """Return new generators with separate streams; one draw.

        Args:
            count: how many.

        >>> left, right = Generator(7).split(2)
        """
        keys = jax.random.split(self.next_key(), count)
        return [Generator(keys[i]) for i in range(count)]

    # ------------------------------------------------------------ state
    def next_key(self) -> Array:
        """Return a key for `jax.random`, another one each time; one draw.

        >>> rng = Generator(7)
        >>> bool(rng.next_key() == jax.random.fold_in(jax.random.key(7), 0))
        True
        """
        cell = self.state._cell
        STREAMS[cell] = find_furthest
        drawn: list[Array] = []

        def step(state: Array) -> Array:
            new, words = advance(state, LOCAL.frame.get(EXAMPLE))
            drawn.append(words)
            return new

        LOCAL.frame.modify(cell, step)
        return unseen(lambda: jax.random.wrap_key_data(drawn[0], impl=IMPL))

    def skip(self, delta: Any) -> None:
        """Move on as if `delta` draws had been made.

        Args:
            delta: an integer that is not negative.

        >>> one, other = Generator(7), Generator(7)
        >>> one.skip(2)
        >>> other.normal(1), other.normal(5)
        (Array(...), Array(...))
        >>> one.normal(3).tolist() == other.normal(3).tolist()
        True
        """
        delta = unwrap(delta)
        count = delta if context.is_tracer(delta) else operator.index(delta)
        if not context.is_tracer(delta) and not 0 <= count < 2**64:
            raise ValueError(f"A stream advances by 0 or more draws, not by {count}.")
        words = words_of(count)
        LOCAL.frame.modify(self.state._cell, lambda old: _skip(old, words))

    def reset(self, state: Any) -> None:
        """Go on from another state.

        Args:
            state: uint32[4]: the `state` of a generator, or its value.

        Raises:
            ShapeError: when it has another shape.
            DtypeError: when it has another dtype.
        """
        self.state.assign(state)

    def reset_from_seed(self, seed: Any) -> None:
        """Begin the stream of a seed, as a new generator does.

        >>> rng = Generator(7)
        >>> rng.reset_from_seed(8)
        >>> bool(jnp.all(rng.state == Generator(8).state))
        True
        """
        self.state.assign(_make_state(key_of(seed)))

    # ------------------------------------------------------------ values
    normal = _method(draws.normal)
    truncated_normal = _method(draws.truncated_normal)
    uniform = _method(draws.uniform)
    uniform_full_int = _method(draws.uniform_full_int)
    randint = _method(draws.randint)
    bernoulli = _method(draws.bernoulli)
    binomial = _method(draws.binomial)
    poisson = _method(draws.poisson)
    exponential = _method(draws.exponential)
    gamma = _method(draws.gamma)
    categorical = _method(draws.categorical)
    permutation = _method(draws.permutation)
    shuffle = _method(draws.shuffle)
    choice = _method(draws.choice)


@context.restoring()
def _make_state(key: Array) -> Array:
    words = jax.random.key_data(key)
    if words.shape != (2,):
        raise TypeError(
            f"A Generator takes a Threefry key, not one of {jax.random.key_impl(key)}: make it "
            "with jax.random.key(seed, impl='threefry2x32')."
        )
    return jnp.concatenate([words, jnp.zeros(_WORDS - 2, jnp.uint32)])


@jax.jit
def advance(state: Array, example: Array) -> tuple[Array, Array]:
    """Return the state after a draw, and the key to draw with."""
    key = state[:2] ^ example
    return _skip(state, jnp.array([0, 1], jnp.uint32)), threefry_2x32(tuple(key), state[2:])


@jax.jit
def _skip(state: Array, delta: Array) -> Array:
    """Return the state some draws on: words of a 64-bit sum, and its carry."""
    high, low = state[2] + delta[0], state[3] + delta[1]
    counter = [high + (low < delta[1]).astype(jnp.uint32), low]
    return jnp.concatenate([state[:2], jnp.stack(counter)])


def find_furthest(old: Array, states: Array) -> Array:
    """Return, of the states of a map's examples, the one that is furthest on."""
    rows = jnp.concatenate([old[None], states])
    return rows[jnp.lexsort((rows[:, 3], rows[:, 2]))[-1]]


# ---------------------------------------------------------------- the global generator
@final
class _Global:
    """The generator that is there for all, once there is one."""

    generator: ClassVar[Generator | None] = None
    lock: ClassVar[Any] = threading.RLock()  # a handler of signals or a finalizer may draw, too


def get_global_generator() -> Generator:
    """Return the generator that the functions here draw from.

    The first time it is made, with a seed from the operating system.

    >>> get_global_generator() is get_global_generator()
    True
    """
    with _Global.lock:
        if _Global.generator is None:
            # A compiled function may be the first to ask: the generator is not one that it makes.
            with context.at(context.EVAL), jax.default_device(None):
                made = within(LOCAL.eager, Generator)
            _Global.generator = _Global.generator or made
        return _Global.generator


def set_global_generator(generator: Generator) -> None:
    """Have the functions here draw from another generator.

    Args:
        generator: a `Generator`. Compiled functions that drew from the one before go on with it
            as long as it is referenced.

    Raises:
        TypeError: when it is none.

    >>> set_global_generator(Generator.from_seed(7))
    """
    if not isinstance(generator, Generator):
        raise TypeError(
            f"{generator!r} is not a Generator; for a seed use jv.random.set_seed({generator!r})."
        )
    _Global.generator = generator


def set_seed(seed: Any) -> None:
    """Begin the global generator's stream of a seed.

    Args:
        seed: an integer, two of them, or a key of `jax.random`.

    Raises:
        TypeError: when it is something else.

    >>> set_seed(7)
    >>> x = get_global_generator().uniform(())
    >>> set_seed(7)
    >>> bool(x == get_global_generator().uniform(()))
    True

    Differs from TensorFlow: it has an effect on the global generator, and only on that.
    """
    get_global_generator().reset_from_seed(seed)

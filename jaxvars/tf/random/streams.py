"""The streams that `tf.random`'s functions without a seed in their name draw from.

Rules this file keeps, TensorFlow's:
- with neither a global seed nor one of the operation, each program draws other values;
- with a global seed, a program draws the same each time, and `set_seed` begins all streams again;
- an operation with its own seed has its own stream: eagerly one for each operation, seed
  and type; in a function, each operation that is written there begins that stream;
- eagerly, an operation without one is given the next number of Python's `random`, begun by the
  global seed; in a function its number there: so the values are TensorFlow's, too;
- in the function of a dataset, each operation that is written there has its own stream, which each
  iterator begins again: `zip` pairs what two functions draw with one seed. With a global seed, one
  without a seed of its own has its number there, too, as has a dataset that a function makes. So it
  is for a `tf.function` that draws: a dataset runs its body eagerly;
- a function that is traced after `set_seed` has its own streams, as if it were a program;
- a state is a counter and a key; reading and advancing it are one step, so that no two threads draw
  the same, and a draw of n values advances the counter by 256 n;
- in a `vectorized_map` each example draws from its own key, made of the state's and the number of
  the example; the counter then advances by as much as that of the example that drew most.
"""

from __future__ import annotations

import random as python
import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars import random as core
from jaxvars.control.vmap_index import EXAMPLE
from jaxvars.core.cells import STREAMS, Cell
from jaxvars.core.frames import LOCAL, within
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.random.seeds import unseen
from jaxvars.tensors.dtypes import narrowed
from jaxvars.tf.context import scope as _scope
from jaxvars.tf.random import bits as bits
from jaxvars.tf.random.iteration import CALL, ITERATION, Draws
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

Seed: TypeAlias = tuple[int, int]
Source: TypeAlias = Callable[[int], Value]

_MASK = 0xFFFFFFFF
_MOST = 2**31 - 1


@final
class NeedsStreams(BaseException):
    """Signals that a function that a dataset calls draws from streams; is never seen."""


_GLOBAL_SEED = 87654321  # what stands for the global one where only the operation has a seed


@final
class _Streams:
    """The global seed, and the streams that it has begun.

    Attributes:
        eager: how many counters were used, by operation and seeds.
        mapped: states of those that are used in maps outside of functions.
        traced: states of those in functions, with their seeds.
        numbers: where the seeds of operations come from.
    """

    lock: ClassVar[Any] = threading.RLock()
    seed: ClassVar[int | None] = None
    is_strict: ClassVar[bool] = False
    eager: ClassVar[dict[Any, int]] = {}
    mapped: ClassVar[dict[Any, CoreVariable]] = {}
    traced: ClassVar[list[tuple[CoreVariable, Seed]]] = []
    numbers: ClassVar[Any] = python.Random()


def set_seed(seed: Any) -> None:
    """Set the global seed, and begin all streams again.

    Args:
        seed: an integer; with None, each stream begins again, as if no seed had been set.

    >>> from jaxvars import tf
    >>> set_seed(1234)
    >>> print(tf.random.uniform([1]))
    tf.Tensor([0.5380393], shape=(1,), dtype=float32)

    Differs from TensorFlow: initializers without a seed follow it, too. A `tf.function` has one
    stream wherever it is called, also in another one; and so has a dataset that is in another one
    twice, as in `zip((d, d))`.
    """
    number = python.SystemRandom().getrandbits(63) if seed is None else int(seed)
    with _Streams.lock:
        _Streams.seed = None if seed is None else number
        _Streams.eager.clear()
        _Streams.mapped.clear()
        _Streams.numbers = python.Random(number)
        traced = tuple(_Streams.traced)
    # Without the lock: an assign waits for a step or transaction, which may draw.
    core.set_seed([number >> 32 & _MASK, number & _MASK])
    for state, own in traced:
        with jax.enable_x64(state.dtype.itemsize == 8):  # as when its function was traced
            state.assign(state_of(*own))


def require_seeds() -> None:
    """Refuse from now on to draw without a seed."""
    _Streams.is_strict = True


def check_seeded(what: str) -> None:
    """Raise RuntimeError for what has no seed, where that is refused."""
    if _Streams.is_strict:
        raise RuntimeError(f'"{what}" cannot be called when determinism is enabled.')


def seeds_of(seed: int | None) -> Seed:
    """Return the global seed, and that of an operation, as TensorFlow gives them to its kernels.

    Args:
        seed: of the operation; another one for each operation if None.

    Raises:
        RuntimeError: when there is neither, where `enable_op_determinism` refuses that.
    """
    world = _Streams.seed
    if seed is None and world is None:
        if _Streams.is_strict:
            raise RuntimeError(
                "Random ops require a seed to be set when determinism is enabled. Please set a "
                "seed before running the op, e.g. by calling tf.random.set_seed(1)."
            )
        draws = ITERATION.value if _scope.IN_DATASET.value else None
        return (draws and draws.next_seeds()) or _draw_seeds()
    number = _number_in_call() if seed is None else int(seed)
    return _truncate(world, _Streams.numbers.randint(0, _MOST) if number is None else number)


def begin_draws(parts: Sequence[Any], named: Sequence[Cell]) -> Draws:
    """Return the streams of an iterator over a dataset; see `Draws`."""
    return Draws(parts, _draw_seeds() if _Streams.seed is None else None, named)


def _draw_seeds() -> Seed:
    return _Streams.numbers.getrandbits(63), _Streams.numbers.getrandbits(63)


def _number_in_call() -> int | None:
    """Return the number of an operation without a seed in the function of a dataset that runs."""
    call = CALL.value if _scope.IN_DATASET.value else None
    if call is None:
        return None
    call[1][None] = call[1].get(None, -1) + 1
    return call[1][None]


def _truncate(world: int | None, seed: int) -> Seed:
    both = (_GLOBAL_SEED if world is None else world) % _MOST, seed % _MOST
    return (0, _MOST) if both == (0, 0) else both


# ---------------------------------------------------------------- sources
def source(op: str, seed: Any) -> Source:
    """Return what gives an operation its start, when it is passed how many values.

    Args:
        op: the operation and its type, which have a separate stream for each seed.
        seed: that of the operation; None if it has none.
    """
    inside = not _scope.executing_eagerly()
    is_mapped = (
        LOCAL.frame is not LOCAL.eager or context.strip(context.current()) is not context.EVAL
    )
    with _Streams.lock:
        if inside and (seed is not None or _Streams.seed is not None):
            return _of_function(seed)
        if not inside and not is_mapped:
            return lambda count: _next(op, seed, count)
        if _scope.IN_DATASET.value and ITERATION.value is not None:
            ITERATION.value.note_untold(op)
        if seed is None:
            seeds_of(None) if _Streams.is_strict else None
            return lambda _: _of_key(core.get_global_generator().next_key())
        return _of_map(op, seed)


def key(op: str, seed: Any) -> Array:
    """Return a key of `jax.random` for an operation; see `source`."""
    return unseen(lambda: bits.key_of(source(op, seed)(1)))


def _next(op: str, seed: Any, count: int) -> np.ndarray:
    """Return the start of an operation that runs eagerly."""
    with _Streams.lock:
        call = CALL.value if _scope.IN_DATASET.value else None
        seeds = seeds_of(seed)
        if seed is None and (call is None or _Streams.seed is None):  # no other will have these
            return bits.of_seeds(*seeds)
        counters, place = _Streams.eager, (op, seeds)
        if call is not None and ITERATION.value is not None:
            counters, drawn = ITERATION.value.used, call[1]
            drawn[place] = number = drawn.get(place, -1) + 1
            place = call[0], number, place
        used = counters.get(place, 0)
        counters[place] = used + bits.SKIP * count
        return bits.of_seeds(*seeds, used)


def _of_key(key: Array) -> Array:
    return jnp.concatenate([jax.random.key_data(key), jnp.zeros(4, jnp.uint32)])


def _of_function(seed: Any) -> Source:
    """Return the source of an operation in the function that is being traced.

    Raises:
        NeedsStreams: when a dataset calls that.
    """
    note_streams()
    if seed is None:
        notes = _scope.notes_of_trace()
        seed = notes["draws"] = notes.get("draws", -1) + 1
    seeds = _truncate(_Streams.seed, int(seed))
    state = _make_state(seeds)
    _Streams.traced.append((state, seeds))  # which must be kept
    return lambda count: take_start(state, count)


def note_streams() -> None:
    """Note that the function that is being traced draws from streams."""
    if _scope.IN_DATASET.value:
        raise NeedsStreams
    _scope.notes_of_trace()["streams"] = True


def _of_map(op: str, seed: Any) -> Source:
    """Return the source of an operation in a map that runs outside of functions."""
    place = op, _truncate(_Streams.seed, int(seed))
    if place not in _Streams.mapped:
        _Streams.mapped[place] = _make_state(place[1])
    state = _Streams.mapped[place]
    return lambda count: take_start(state, count)


def _make_state(seeds: Seed) -> CoreVariable:
    # A function that is traced may get here: the variable is not one that it makes.
    with context.at(context.EVAL), jax.default_device(None):
        return within(
            LOCAL.eager, lambda: CoreVariable(state_of(*seeds), trainable=False, name="stream")
        )


# ---------------------------------------------------------------- states
SIZE = 3
"""How many integers a state has: the counter's two, and the key."""


def state_of(key: int, high: int) -> np.ndarray:
    """Return the state of Philox for a key, and the high half of a counter."""
    return np.array([0, high, key], np.int64)


def take_start(state: CoreVariable, count: int) -> Array:
    """Return the start for a draw of some values, and advance the state, a variable."""
    STREAMS[state._cell] = _find_furthest
    is_open = not isinstance(count, int)
    number = jnp.asarray(count, narrowed(np.int64)) if is_open else np.int64(count)
    drawn: list[Array] = []

    def step(old: Array) -> Array:
        new, start = _advance_state(old, number, LOCAL.frame.get(EXAMPLE))
        drawn.append(start)
        return new

    LOCAL.frame.modify(state._cell, step)
    return unseen(lambda: drawn[0])


@jax.jit
def _advance_state(old: Array, count: Array, example: Array) -> tuple[Array, Array]:
    """Return the state after a draw, and the start to draw with."""
    words = bits.words_of(old)
    return advance(old, count), jnp.concatenate([words[-2:] ^ example, words[:-2]])


def advance(old: Array, count: Array) -> Array:
    """Return a state whose counter is past the draw of some values."""
    count = count.astype(old.dtype)
    delta = bits.SKIP * count
    low = old[0] + delta
    carry = (_to_unsigned(low) < _to_unsigned(delta)).astype(old.dtype)
    if old.dtype.itemsize == 4:  # as where 64-bit numbers are off: delta has more bits
        carry += count // (2**32 // bits.SKIP)
    return jnp.stack([low, old[1] + carry, old[2]])


def _to_unsigned(x: Array) -> Array:
    return x.astype(f"uint{8 * x.dtype.itemsize}")


def _find_furthest(old: Array, states: Array) -> Array:
    """Return, of the states of a map's examples, the one that is furthest on."""
    rows = jnp.concatenate([old[None], states])
    low, high = _to_unsigned(rows[:, 0]), _to_unsigned(rows[:, 1])
    return rows[jnp.lexsort((low, high) if len(old) == 3 else (low,))[-1]]

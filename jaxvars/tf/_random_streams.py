"""The streams that `tf.random`'s functions without a seed in their name draw from.

Rules this file keeps, TensorFlow's:
- with neither a global seed nor one of the operation, each program draws other numbers;
- with a global seed, a program draws the same each time, and `set_seed` begins all streams anew;
- an operation with a seed of its own has a stream of its own: eagerly one for each operation, seed
  and type; in a function, each operation that is written there begins that stream;
- a function that is traced after `set_seed` has a stream of its own, as if it were a program.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, final

import jax

from jaxvars import _trace
from jaxvars import random as core
from jaxvars._frames import LOCAL, within
from jaxvars._generator import Generator
from jaxvars.tf import _scope

Value: TypeAlias = Any
Seed: TypeAlias = tuple[int, int]

_MASK = 0xFFFFFFFF
_GLOBAL_SEED = 87654321  # what stands for the global one where only the operation has a seed


@final
class _Streams:
    """The global seed, and the streams that it has begun."""

    lock: ClassVar[Any] = threading.Lock()
    seed: ClassVar[int | None] = None
    eager: ClassVar[dict[Any, Generator]] = {}
    traced: ClassVar[list[tuple[Generator, Seed]]] = []


def set_seed(seed: Any) -> None:
    """Set the global seed, and begin all streams anew.

    Args:
        seed: an integer.

    >>> from jaxvars import tf
    >>> set_seed(7)
    >>> x = tf.random.uniform([])
    >>> set_seed(7)
    >>> bool(x == tf.random.uniform([]))
    True

    Differs from TensorFlow: the numbers are those of `jax.random`. Initializers without a seed
    follow it, too.
    """
    number = int(seed)
    with _Streams.lock:
        _Streams.seed = number
        _Streams.eager.clear()
        core.set_seed([number >> 32 & _MASK, number & _MASK])
        for generator, own in _Streams.traced:
            generator.reset_from_seed(own)


def source(op: str, seed: Any) -> Callable[[], Value]:
    """Return what gives an operation its next key.

    Args:
        op: the operation and its type, which have a stream of their own for each seed.
        seed: that of the operation; None if it has none.
    """
    inside = not _scope.executing_eagerly()
    if seed is None:
        if _Streams.seed is None or not inside:
            return core.get_global_generator().next_key
        return _of_trace().next_key
    with _Streams.lock:
        if inside:
            return _begun(_words(seed)).next_key
        key = (op, int(seed))
        if key not in _Streams.eager:
            _Streams.eager[key] = _made(_words(seed))
        return _Streams.eager[key].next_key


def _words(seed: Any) -> Seed:
    world = _GLOBAL_SEED if _Streams.seed is None else _Streams.seed
    number = int(seed)
    return (world ^ world >> 32) & _MASK, (number ^ number >> 32) & _MASK


def _of_trace() -> Generator:
    """Return the stream of the function that is being traced."""
    notes = _scope.notes_of_trace()
    if "stream" not in notes:
        with _Streams.lock:
            notes["stream"] = _begun(_words(0))
    return notes["stream"]


def _begun(words: Seed) -> Generator:
    """Return a stream for a compiled function, which needs somebody to keep it."""
    made = _made(words)
    _Streams.traced.append((made, words))
    return made


def _made(words: Seed) -> Generator:
    # A function that is traced may ask: the generator is not one that it makes.
    with _trace.at(_trace.EVAL), jax.default_device(None):
        return within(LOCAL.eager, lambda: Generator(words))

"""The state of a stream: a variable of a counter and a key, which advances with each draw.

Rules this file keeps:
- reading and advancing are one step, so that no two threads draw the same;
- a draw of n values advances the counter by 256 n, as TensorFlow's do;
- in a `vectorized_map` each example draws from its own key, made of the state's and the number
  of the example; the counter then advances by as much as that of the example that drew most.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.control.vmap_index import EXAMPLE, merged_by
from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.random.seeds import unseen
from jaxvars.tf.random import bits as bits
from jaxvars.typing import Array


def size_of(alg: int) -> int:
    """Return how many integers the state of an algorithm has: the counter's, and the key."""
    return 2 if alg == bits.THREEFRY else 3


def state_of(key: int, high: int) -> np.ndarray:
    """Return the state of Philox for a key, and the high half of a counter."""
    return np.array([0, high, key], np.int64)


def taken(state: CoreVariable, count: int, alg: int = bits.PHILOX) -> Array:
    """Return the start for a draw of some values, and advance the state, a variable."""
    merged_by(state._cell, _furthest)
    is_open = not isinstance(count, int)
    delta = bits.SKIP * (jnp.asarray(count, jnp.int64) if is_open else np.int64(count))
    drawn: list[Array] = []

    def step(old: Array) -> Array:
        new, start = _stepped(old, delta, LOCAL.frame.get(EXAMPLE), alg)
        drawn.append(start)
        return new

    LOCAL.frame.modify(state._cell, step)
    return unseen(lambda: drawn[0])


@functools.partial(jax.jit, static_argnames="alg")
def _stepped(old: Array, delta: Array, example: Array, alg: int) -> tuple[Array, Array]:
    """Return the state after a draw, and the start to draw with."""
    words = bits.words_of(old)
    counter, key = words[:-2], words[-2:] ^ example
    rest = jnp.zeros(bits.WORDS - len(words), jnp.uint32)
    return moved(old, delta), jnp.concatenate([key, counter, rest])


def moved(old: Array, delta: Array) -> Array:
    """Return a state whose counter is some numbers on."""
    low = old[0] + delta.astype(old.dtype)
    if len(old) == 2:
        return jnp.stack([low, old[1]])
    carry = _unsigned(low) < _unsigned(delta.astype(old.dtype))
    return jnp.stack([low, old[1] + carry.astype(old.dtype), old[2]])


def _unsigned(x: Array) -> Array:
    return x.astype(f"uint{8 * x.dtype.itemsize}")


def _furthest(old: Array, states: Array) -> Array:
    """Return, of the states of a map's examples, the one that is furthest on."""
    rows = jnp.concatenate([old[None], states])
    low, high = _unsigned(rows[:, 0]), _unsigned(rows[:, 1])
    return rows[jnp.lexsort((low, high) if len(old) == 3 else (low,))[-1]]

"""The random bits of TensorFlow: Philox, so that the same seed gives TensorFlow's values.

A start is six 32-bit words: two of a key, and four of a counter, the low word first. From it come
blocks of four words, one for each counter that follows.

Sources: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011; Box,
Muller, "A Note on the Generation of Random Normal Deviates", 1958. How TensorFlow makes numbers of
words was read off its results.

Rules this file keeps:
- pure functions of arrays, each one program, but `on_host`, which runs at once;
- what is drawn for n values does not depend on their shape.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.random.seeds import IMPL
from jaxvars.tensors.dtypes import narrowed
from jaxvars.tensors.quick_jit import QuickJit, draws_few, quick_jit
from jaxvars.typing import Array, Value

Shape: TypeAlias = tuple[int, ...]

WORDS = 6  # of a start
SKIP = 256  # counters for each number, whether it needs them or not

_FACTORS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_SCRAMBLER = np.array([0x3EC8F720, 0x02461E29], np.uint32)
_LEAST = 1e-7  # what a logarithm is taken of
_BOUND = 2.0  # deviations of truncated values


# ---------------------------------------------------------------- words
def words(start: Array, count: int) -> Array:
    """Return 32-bit words of a start, uint32[6]."""
    if not isinstance(count, int):
        return words_at(start, jnp.arange(count, dtype=jnp.uint32))
    return blocks(start, -(-count // 4)).ravel()[:count]


def words_at(start: Array, index: Array) -> Array:
    """Return some words, for a count that is not known: each is made separately."""
    found = philox(start[:2], _plus(start[2:], index // 4))
    return jnp.take_along_axis(found, (index % 4).astype(jnp.int32)[:, None], axis=1)[:, 0]


def blocks(start: Array, count: int) -> Array:
    """Return Philox blocks, uint32[count, 4]."""
    return philox(start[:2], _plus(start[2:], jnp.arange(count, dtype=jnp.uint32)))


def _plus(counter: Iterable[Value], delta: Value) -> list[Value]:
    """Return the words of a counter plus each of some numbers of 32 bits."""
    found: list[Value] = []
    for word in counter:
        found.append(word + delta)
        delta = (found[-1] < delta).astype(jnp.uint32)  # the carry
    return found


def philox(key: Value, counter: Any) -> Array:
    """Return the words that Philox4x32-10 makes of a key and four arrays: along a last axis."""
    # Without the barrier XLA would do all the rounds for each of the four words.
    return jnp.stack(jax.lax.optimization_barrier(_rounds(*map(jnp.asarray, key), *counter)), -1)


def _rounds(k0: Value, k1: Value, c0: Value, c1: Value, c2: Value, c3: Value) -> list[Value]:
    for _ in range(_ROUNDS):
        (high0, low0), (high1, low1) = _product(c0, _FACTORS[0]), _product(c2, _FACTORS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + np.uint32(_STEPS[0]), k1 + np.uint32(_STEPS[1])
    return [c0, c1, c2, c3]


def on_host(start: np.ndarray, count: int) -> np.ndarray:
    """Return Philox blocks as `blocks` does, by NumPy."""
    counter = _plus(start[2:], np.arange(count, dtype=np.uint32))
    return np.stack(_rounds(start[:1], start[1:2], *counter), -1)


def _product(x: Array, factor: int) -> tuple[Array, Array]:
    """Return both words of a product."""
    if isinstance(x, np.ndarray) or narrowed(np.uint64) == np.uint64:
        whole = x.astype(np.uint64) * np.uint64(factor)
        return (whole >> np.uint64(32)).astype(np.uint32), whole.astype(np.uint32)
    half = np.uint32(0xFFFF)  # without numbers of 64 bits: in halves
    low, high = np.uint32(factor & 0xFFFF), np.uint32(factor >> 16)
    first, second = (x & half) * low, (x >> 16) * low
    third = (x & half) * high + (first >> 16)
    middle = second + (third & half)
    return (x >> 16) * high + (third >> 16) + (middle >> 16), x * np.uint32(factor)


# ---------------------------------------------------------------- starts
def of_seeds(key: int, high: int, low: int = 0) -> np.ndarray:
    """Return the start of a key, and of the two halves of a counter: integers of 64 bits."""
    parts = [half for number in (key, low, high) for half in (number, number >> 32)]
    return np.array([part & 0xFFFFFFFF for part in parts], np.uint32)


@quick_jit
def scramble(seed: Array) -> Array:
    """Return the start of two integers, as a stateless operation takes them."""
    mix = philox(_SCRAMBLER, words_of(seed))
    zero = jnp.zeros(2, jnp.uint32)
    return jnp.concatenate([mix[:2], zero, mix[2:]])


def words_of(numbers: Array) -> Array:
    """Return the words of integers, two of each, the low one first."""
    low = numbers.astype(jnp.uint32)
    if numbers.dtype.itemsize == 8:
        high = (numbers >> 32).astype(jnp.uint32)
    else:
        negative = numbers < 0 if jnp.issubdtype(numbers.dtype, jnp.signedinteger) else False
        high = jnp.where(negative, np.uint32(0xFFFFFFFF), np.uint32(0)) * jnp.ones_like(low)
    return jnp.stack([low, high], axis=-1).ravel()


def key_of(start: Array) -> Array:
    """Return a key of `jax.random` for what is drawn otherwise."""
    return jax.random.wrap_key_data(_pair_of(start), impl=IMPL)


@quick_jit
def _pair_of(start: Array) -> Array:
    return philox(start[:2], start[2:])[:2]


# ---------------------------------------------------------------- values
def _draw(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function compiled for each shape and dtype, its last two arguments."""
    static: Any = {"static_argnames": ("shape", "dtype")}
    return QuickJit(function, jax.jit(function, **static), draws_few, **static)


@_draw
def full_int(start: Array, shape: Shape, dtype: Any) -> Array:
    """Return integers, each that the type can hold as likely as the others."""
    return _bits(start, shape, np.dtype(dtype).itemsize).astype(dtype)


def _bits(start: Array, shape: Shape, size: int) -> Array:
    """Return unsigned integers of four or eight bytes."""
    count = math.prod(shape)
    if size < 8:
        return words(start, count).reshape(shape)
    pairs = words(start, 2 * count).reshape(*shape, 2).astype(jnp.uint64)
    return pairs[..., 0] | pairs[..., 1] << 32


@_draw
def between(start: Array, low: Array, high: Array, shape: Shape, dtype: Any) -> Array:
    """Return integers: `low <= x < high`; as in TensorFlow, slightly more of the lower ones."""
    bits = _bits(start, shape, np.dtype(dtype).itemsize)
    span = (high - low).astype(bits.dtype)
    return low + (bits % span).astype(dtype)


@_draw
def uniform(start: Array, shape: Shape, dtype: Any) -> Array:
    """Return floats: `0 <= x < 1`."""
    kind = np.dtype(dtype)
    count = math.prod(shape)
    if kind.itemsize == 8:
        return _unit64(words(start, 2 * count).reshape(*shape, 2))
    return _unit(words(start, count).reshape(shape), kind)


def _unit(bits: Array, kind: Any) -> Array:
    """Return the float of the low bits of a word."""
    size = jnp.finfo(kind).nmant
    whole = jnp.uint32 if kind.itemsize == 4 else jnp.uint16
    one = jnp.ones((), kind).view(whole)
    found = (bits & np.uint32((1 << size) - 1)).astype(whole) | one
    return jax.lax.bitcast_convert_type(found, kind) - jnp.ones((), kind)


def _unit64(pairs: Array) -> Array:
    """Return the float64 of two words; without numbers of 64 bits the first 23 of its bits."""
    if narrowed(np.uint64) != np.uint64:
        return _unit(pairs[..., 0] << 3 | pairs[..., 1] >> 29, np.dtype("float32"))
    high = (pairs[..., 0] & np.uint32(0xFFFFF)).astype(jnp.uint64)
    mantissa = high << 32 | pairs[..., 1].astype(jnp.uint64)
    one = np.uint64(1023) << np.uint64(52)
    return jax.lax.bitcast_convert_type(mantissa | one, jnp.float64) - 1.0


@_draw
def normal(start: Array, shape: Shape, dtype: Any) -> Array:
    """Return normally distributed values."""
    count = math.prod(shape)
    size = 4 if np.dtype(dtype).itemsize == 8 else 2  # words for two numbers
    if not isinstance(count, int):
        index = jnp.arange(count, dtype=jnp.uint32)
        rows = [words_at(start, index // 2 * size + np.uint32(i)) for i in range(size)]
        pairs = _normals(jnp.stack(rows, axis=-1))
        return jnp.where(index % 2 == 0, pairs[:, 0], pairs[:, 1]).reshape(shape).astype(dtype)
    found = _normals(words(start, -(-count // 2) * size).reshape(-1, size))
    return found.ravel()[:count].reshape(shape).astype(dtype)


def _normals(bits: Array) -> Array:
    """Return two numbers for each row of two words; float64 for each of four."""
    if bits.shape[-1] == 4:
        first, second = _unit64(bits[..., :2]), _unit64(bits[..., 2:])
    else:
        first, second = (_unit(bits[..., i], np.dtype("float32")) for i in (0, 1))
    radius = jnp.sqrt(-2 * jnp.log(jnp.maximum(first, first.dtype.type(_LEAST))))
    angle = first.dtype.type(2 * math.pi) * second
    return jnp.stack([jnp.sin(angle) * radius, jnp.cos(angle) * radius], axis=-1)


@_draw
def truncated_normal(start: Array, shape: Shape, dtype: Any) -> Array:
    """Return normally distributed values within two deviations: others are drawn again.

    Each group of values has its own counters, and takes the first that will do.
    """
    size = 2 if np.dtype(dtype).itemsize == 8 else 4
    count = math.prod(shape)
    is_open = not isinstance(count, int)
    if not is_open and not count:
        return jnp.zeros(shape, dtype)
    index = jnp.arange(count if is_open else -(-count // size), dtype=jnp.uint32)
    groups = index // size if is_open else index
    counter = _plus(start[2:], groups * np.uint32(size * SKIP // 4))

    def step(carry: Any) -> Any:
        tries, filled, found = carry
        rows = philox(start[:2], _plus(counter, tries)).reshape(len(groups), -1, 8 // size)
        for value in _normals(rows).reshape(len(groups), size).T:
            good = jnp.abs(value) < _BOUND
            found = [jnp.where(good & (filled == i), value, x) for i, x in enumerate(found)]
            filled = filled + good
        return tries + np.uint32(1), filled, found

    kind = jnp.float64 if size == 2 else jnp.float32
    empty = [jnp.zeros(len(groups), kind) for _ in range(size)]
    first = jnp.zeros((), jnp.uint32), jnp.zeros(len(groups), jnp.int32), empty
    _, _, found = jax.lax.while_loop(lambda carry: jnp.any(carry[1] < size), step, first)
    rows = jnp.stack(found, axis=-1)
    if is_open:
        place = (index % size).astype(jnp.int32)
        return jnp.take_along_axis(rows, place[:, None], axis=1).reshape(shape).astype(dtype)
    return rows.ravel()[:count].reshape(shape).astype(dtype)


@functools.partial(quick_jit, static_argnames=("count", "dtype"))
def categorical(start: Array, logits: Array, count: int, dtype: Any) -> Array:
    """Return classes for each row of logits, [rows, count]: where a sum of weights is passed."""
    wide = logits.astype(narrowed(np.float64))
    good = jnp.isfinite(wide)
    most = jnp.max(jnp.where(good, wide, -jnp.inf), axis=-1, keepdims=True)
    sums = jnp.cumsum(jnp.where(good, jnp.exp(wide - most), 0.0), axis=-1)
    bits = words(start, 2 * len(logits) * count).reshape(len(logits), count, 2)
    wanted = _unit64(bits) * sums[:, -1:]
    find = functools.partial(jnp.searchsorted, side="right")
    return jax.vmap(find)(sums, wanted).astype(dtype)

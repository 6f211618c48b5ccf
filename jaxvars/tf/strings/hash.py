"""Hashes of strings, which are TensorFlow's: for buckets of `tf.strings` and tables of `tf.lookup`.

Source: https://github.com/google/farmhash (farmhashna::Hash64); Appleby, MurmurHash64A; Aumasson,
Bernstein, "SipHash: a fast short-input PRF", 2012.
"""

from __future__ import annotations

from collections.abc import Iterable

_MASK = 0xFFFFFFFFFFFFFFFF
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_MURMUR = 0xC6A4A7935BD1E995
_MURMUR_SEED = 0xDECAFCAFFE


def _word(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _rotate(x: int, by: int) -> int:
    """Return 64 bits turned to the right."""
    return (x >> by | x << (64 - by)) & _MASK


def _fold_bits(x: int) -> int:
    return x ^ x >> 47


def _both(u: int, v: int, factor: int) -> int:
    a = (u ^ v) * factor & _MASK
    a ^= a >> 47
    b = (v ^ a) * factor & _MASK
    b ^= b >> 47
    return b * factor & _MASK


# ---------------------------------------------------------------- FarmHash
def fast(data: bytes) -> int:
    """Return the hash of `to_hash_bucket_fast`.

    >>> fast(b"Hello") % 10, fast(b"TensorFlow") % 10
    (1, 4)
    """
    size = len(data)
    if size <= 16:
        return _short(data)
    if size <= 32:
        return _middle(data)
    return _longer(data) if size <= 64 else _long(data)


def _short(data: bytes) -> int:
    size = len(data)
    if size >= 8:
        factor = _K2 + size * 2
        a, b = _word(data, 0) + _K2 & _MASK, _word(data, size - 8)
        c = _rotate(b, 37) * factor + a & _MASK
        d = (_rotate(a, 25) + b) * factor & _MASK
        return _both(c, d, factor)
    if size >= 4:
        factor = _K2 + size * 2
        return _both(size + (_word(data, 0, 4) << 3), _word(data, size - 4, 4), factor)
    if size:
        y = data[0] + (data[size >> 1] << 8)
        z = size + (data[size - 1] << 2)
        return _fold_bits(y * _K2 & _MASK ^ z * _K0 & _MASK) * _K2 & _MASK
    return _K2


def _middle(data: bytes) -> int:
    size = len(data)
    factor = _K2 + size * 2
    a, b = _word(data, 0) * _K1 & _MASK, _word(data, 8)
    c, d = _word(data, size - 8) * factor & _MASK, _word(data, size - 16) * _K2 & _MASK
    return _both(
        _rotate(a + b & _MASK, 43) + _rotate(c, 30) + d & _MASK,
        a + _rotate(b + _K2 & _MASK, 18) + c & _MASK,
        factor,
    )


def _longer(data: bytes) -> int:
    size = len(data)
    factor = _K2 + size * 2
    a, b = _word(data, 0) * _K2 & _MASK, _word(data, 8)
    c, d = _word(data, size - 8) * factor & _MASK, _word(data, size - 16) * _K2 & _MASK
    y = _rotate(a + b & _MASK, 43) + _rotate(c, 30) + d & _MASK
    z = _both(y, a + _rotate(b + _K2 & _MASK, 18) + c & _MASK, factor)
    e, f = _word(data, 16) * factor & _MASK, _word(data, 24)
    g = (y + _word(data, size - 32)) * factor & _MASK
    h = (z + _word(data, size - 24)) * factor & _MASK
    return _both(
        _rotate(e + f & _MASK, 43) + _rotate(g, 30) + h & _MASK,
        e + _rotate(f + a & _MASK, 18) + g & _MASK,
        factor,
    )


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(data, at + i) for i in (0, 8, 16, 24))
    a = a + w & _MASK
    b = _rotate(b + a + z & _MASK, 21)
    c = a
    a = a + x + y & _MASK
    b = b + _rotate(a, 44) & _MASK
    return a + z & _MASK, b + c & _MASK


def _long(data: bytes) -> int:
    size, seed = len(data), 81
    x, y = seed, seed * _K1 + 113 & _MASK
    z = _fold_bits(y * _K2 + 113 & _MASK) * _K2 & _MASK
    v = w = (0, 0)
    x = x * _K2 + _word(data, 0) & _MASK
    end = (size - 1) // 64 * 64
    last = end + (size - 1 & 63) - 63
    for at in range(0, end, 64):
        x = _rotate(x + y + v[0] + _word(data, at + 8) & _MASK, 37) * _K1 & _MASK
        y = _rotate(y + v[1] + _word(data, at + 48) & _MASK, 42) * _K1 & _MASK
        x ^= w[1]
        y = y + v[0] + _word(data, at + 40) & _MASK
        z = _rotate(z + w[0] & _MASK, 33) * _K1 & _MASK
        v = _weak(data, at, v[1] * _K1 & _MASK, x + w[0] & _MASK)
        w = _weak(data, at + 32, z + w[1] & _MASK, y + _word(data, at + 16) & _MASK)
        z, x = x, z
    factor = _K1 + ((z & 0xFF) << 1) & _MASK
    w = (w[0] + (size - 1 & 63) & _MASK, w[1])
    v = (v[0] + w[0] & _MASK, v[1])
    w = (w[0] + v[0] & _MASK, w[1])
    x = _rotate(x + y + v[0] + _word(data, last + 8) & _MASK, 37) * factor & _MASK
    y = _rotate(y + v[1] + _word(data, last + 48) & _MASK, 42) * factor & _MASK
    x ^= w[1] * 9 & _MASK
    y = y + v[0] * 9 + _word(data, last + 40) & _MASK
    z = _rotate(z + w[0] & _MASK, 33) * factor & _MASK
    v = _weak(data, last, v[1] * factor & _MASK, x + w[0] & _MASK)
    w = _weak(data, last + 32, z + w[1] & _MASK, y + _word(data, last + 16) & _MASK)
    z, x = x, z
    return _both(
        _both(v[0], w[0], factor) + _fold_bits(y) * _K0 + z & _MASK,
        _both(v[1], w[1], factor) + x & _MASK,
        factor,
    )


# ---------------------------------------------------------------- others
def cross(values: Iterable[bytes | int]) -> int:
    """Return the hash of strings and integers together, as `tf.sparse.cross_hashed` has it.

    >>> cross([b"A", 101]) % 5
    1
    """
    made = _MURMUR_SEED
    for value in values:
        found = (fast(value) if isinstance(value, bytes) else value) * _MURMUR & _MASK
        made = made ^ _MURMUR ^ _fold_bits(found) * _MURMUR & _MASK
        made = _fold_bits(made * _MURMUR & _MASK) * _MURMUR & _MASK
        made = _fold_bits(made)
    return made


def strong(data: bytes, key: tuple[int, int]) -> int:
    """Return SipHash, with two integers as the key: that of layers with a salt, or unknown words.

    >>> strong(b"Hello", (1, 2)) % 2**60
    102834517472048538
    """
    first, second = (number & _MASK for number in key)
    v = [
        first ^ 0x736F6D6570736575, second ^ 0x646F72616E646F6D,
        first ^ 0x6C7967656E657261, second ^ 0x7465646279746573,
    ]  # fmt: skip
    whole = len(data) // 8 * 8
    words = [_word(data, at) for at in range(0, whole, 8)]
    words.append((len(data) & 0xFF) << 56 | _word(data[whole:], 0))
    for word in words:
        v[3] ^= word
        _round(v)
        _round(v)
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        _round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _round(v: list[int]) -> None:
    v[0] = v[0] + v[1] & _MASK
    v[1] = _rotate(v[1], 51) ^ v[0]
    v[0] = _rotate(v[0], 32)
    v[2] = v[2] + v[3] & _MASK
    v[3] = _rotate(v[3], 48) ^ v[2]
    v[0] = v[0] + v[3] & _MASK
    v[3] = _rotate(v[3], 43) ^ v[0]
    v[2] = v[2] + v[1] & _MASK
    v[1] = _rotate(v[1], 47) ^ v[2]
    v[2] = _rotate(v[2], 32)

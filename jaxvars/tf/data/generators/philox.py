"""The random numbers of TensorFlow's datasets: Philox, so that the order of a shuffle is the same.

Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

import numpy as np

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_FACTORS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_STEPS = (0x9E3779B9, 0xBB67AE85)
_BLOCKS = 64


@final
class Philox:
    """A stream of 32-bit numbers.

    Args:
        seeds: two integers, of 64 bits.
        drawn: how many numbers were drawn before.
    """

    __slots__ = ("_rest", "drawn", "seeds")

    def __init__(self, seeds: tuple[int, int], drawn: int = 0) -> None:
        self.seeds = seeds
        self.drawn = drawn
        self._rest: Iterator[int] = iter(())

    def next(self) -> int:
        """Return the next number."""
        for number in self._rest:
            self.drawn += 1
            return number
        first = self.drawn // 4
        numbers = _blocks(self.seeds, first, _BLOCKS)
        self._rest = iter(numbers[self.drawn - 4 * first :])
        return self.next()

    def below(self, limit: int) -> int:
        """Return a number that is less than another one."""
        return self.next() % limit

    def unit(self) -> float:
        """Return a float in [0, 1)."""
        return self.next() / 2**32


def _blocks(seeds: tuple[int, int], first: int, count: int) -> list[int]:
    """Return the numbers of some blocks, four of each."""
    key, high = (seed % 2**64 for seed in seeds)
    counts = np.arange(first, first + count, dtype=np.uint64)
    words: list[Any] = [counts & _MASK, counts >> _HALF]
    words += [np.full(count, half, np.uint64) for half in (high % 2**32, high >> 32)]
    keys = [key % 2**32, key >> 32]
    for _ in range(10):
        a, b = words[0] * _FACTORS[0], words[2] * _FACTORS[1]
        words = [
            (b >> _HALF) ^ words[1] ^ np.uint64(keys[0]), b & _MASK,
            (a >> _HALF) ^ words[3] ^ np.uint64(keys[1]), a & _MASK,
        ]  # fmt: skip
        keys = [(k + step) % 2**32 for k, step in zip(keys, _STEPS, strict=True)]
    return np.stack(words, 1).ravel().tolist()


@final
class Seeds:
    """The pairs of seeds of a dataset's iterations.

    Args:
        seeds: of the dataset.
        changing: whether each iteration has others.
    """

    __slots__ = ("_source", "changing", "seeds")

    def __init__(self, seeds: tuple[int, int], changing: bool) -> None:
        self.seeds = seeds
        self.changing = changing
        self._source = Philox(seeds)

    def next(self) -> tuple[int, int]:
        """Return those of an iteration."""
        if not self.changing:
            return self.seeds
        return self._source.next(), self._source.next()

    def rewind(self, drawn: int) -> None:
        """Go on as after a number of draws."""
        self._source = Philox(self.seeds, drawn)

    @property
    def drawn(self) -> int:
        """How many numbers were drawn."""
        return self._source.drawn

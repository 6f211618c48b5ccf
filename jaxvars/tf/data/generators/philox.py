"""The random values of TensorFlow's datasets, by Philox: a shuffle has TensorFlow's order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

from jaxvars.tf.data.generators.cursor import Shared
from jaxvars.tf.random.bits import of_seeds, on_host
from jaxvars.tracing import context

_BLOCKS = 64

PEEKING = context.Scoped(False)
"""Whether an element is read to find a spec with: the iterations that follow do not see it."""


@final
class Philox:
    """A stream of 32-bit numbers, of which some were drawn before."""

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
        numbers = on_host(of_seeds(*self.seeds, first), _BLOCKS).ravel().tolist()
        self._rest = iter(numbers[self.drawn - 4 * first :])
        return self.next()

    def unit(self) -> float:
        """Return a float in [0, 1)."""
        return self.next() / 2**32


@final
class Seeds(Shared):
    """The pairs of seeds of a dataset's iterations: others for each if they are changing."""

    __slots__ = ("_source", "changing", "seeds")

    def __init__(self, seeds: tuple[int, int], changing: bool) -> None:
        self.seeds = seeds
        self.changing = changing
        self._source = Philox(seeds)

    def next(self) -> tuple[int, int]:
        """Return those of an iteration."""
        if not self.changing:
            return self.seeds
        drawn = self._source.drawn
        source = Philox(self.seeds, drawn) if PEEKING.value else self._source
        return source.next(), source.next()

    def begin_stream(self, kept: dict[str, Any]) -> Philox:
        """Return the stream of an iteration, from where a step's memory says that it is."""
        if "seeds" not in kept:
            kept["seeds"] = list(self.next())
        first, second = kept["seeds"]
        return Philox((first, second), kept.get("drawn", 0))

    def save(self) -> list[int]:
        """Return the seeds, and how many values were drawn."""
        return [*self.seeds, self._source.drawn]

    def load(self, state: list[int]) -> None:
        """Go on as after a number of draws."""
        first, second, drawn = state
        self.seeds = first, second
        self._source = Philox(self.seeds, drawn)

"""Random values for linen modules: keys that come from Generators, and go back if not used.

Linen takes a key for each of its streams ("dropout", ...) with each call, whether it needs it or
not. Here a stream is a `Generator`, and a call is one draw from those that it used.

Rules this file keeps:
- a stream that a call did not use does not move: flax counts, in the scope of the call, how often
  a stream was asked for a key;
- nor does one if the call raises;
- eagerly, no two threads are given the same key;
- where a generator must not be written (under a plain `jax.grad`), a call that does not use it
  works all the same.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.control.vmap_index import EXAMPLE
from jaxvars.core.cells import STREAMS, Cell
from jaxvars.core.frames import LOCAL, lifted
from jaxvars.errors import InteropError
from jaxvars.random import get_global_generator
from jaxvars.random.generator import Generator, advance, find_furthest
from jaxvars.random.seeds import IMPL, key_of, unseen
from jaxvars.tracing import context
from jaxvars.typing import Array

PARAMS, DROPOUT = "params", "dropout"


class Seed(NamedTuple):
    """A key of `jax.random`, as what can be pickled."""

    words: np.ndarray
    impl: str

    def key(self) -> Array:
        """Return the key."""
        return jax.random.wrap_key_data(jnp.asarray(self.words), impl=self.impl)


Source: TypeAlias = Seed | Generator


def streams_of(rngs: Any) -> tuple[dict[str, Source], dict[str, Generator]]:
    """Return what initial keys are made of, and the generator of each stream."""
    if not isinstance(rngs, Mapping):
        source = source_of(rngs)
        return {PARAMS: source}, {DROPOUT: generator_of(source)}
    sources = {str(name): source_of(given) for name, given in rngs.items()}
    streams = {name: generator_of(s) for name, s in sources.items() if name != PARAMS}
    if PARAMS not in sources:
        sources[PARAMS] = source_of(None)
    return sources, streams


def first_keys(sources: Mapping[str, Source]) -> dict[str, Array]:
    """Return the keys to initialize with: a seed's own, and one draw of each generator."""
    return {
        name: lifted(source.next_key) if isinstance(source, Generator) else source.key()
        for name, source in sources.items()
    }


def source_of(given: Any) -> Source:
    """Return a Generator as it is, and a seed as a Seed; of None, a draw of the global one."""
    if isinstance(given, Generator):
        return given

    def seed() -> Seed:
        key = get_global_generator().next_key() if given is None else key_of(given)
        return Seed(np.asarray(jax.random.key_data(key)), str(jax.random.key_impl(key)))

    return lifted(seed)


def generator_of(source: Source) -> Generator:
    """Return a generator: the one that is given, or that of a seed."""
    return source if isinstance(source, Generator) else Generator(source.key())


@final
class Draws:
    """The keys of one call, by stream.

    Eagerly they are taken, and given back if not used: so no two threads have the same. In a
    program, which one thread writes, they are looked at, and taken if used: so a program that
    uses none does not write a generator.
    """

    def __init__(self, streams: Mapping[str, Generator]) -> None:
        self.keys: dict[str, Array] = {}
        self._steps: list[tuple[str, Cell, Array, Array]] = []
        frame = LOCAL.frame
        self._taken = frame is LOCAL.eager and context.strip(context.current()) is frame.trace
        for name, generator in streams.items():
            self._draw(name, generator.state._cell)

    def keep_used(self, used: set[str]) -> None:
        """Leave the streams that were used advanced, and the others where they were."""
        if self._taken:
            for name, cell, before, after in reversed(self._steps):
                if name not in used:
                    LOCAL.frame.modify(cell, functools.partial(_take_back, before, after))
            return
        firsts = {cell: before for _, cell, before, _ in reversed(self._steps)}
        lasts = {cell: after for name, cell, _, after in self._steps if name in used}
        for cell, after in lasts.items():
            _check_unmoved(cell, firsts[cell])
            LOCAL.frame.write_all([cell], [after])

    def _draw(self, name: str, cell: Cell) -> None:
        STREAMS[cell] = find_furthest
        example = LOCAL.frame.get(EXAMPLE)
        made: list[Array] = []

        def step(old: Array) -> Array:
            new, words = advance(old, example)
            made[:] = [old, new, words]
            return new

        if self._taken:
            LOCAL.frame.modify(cell, step)
        else:
            ahead = [after for _, other, _, after in self._steps if other is cell]
            now = ahead[-1] if ahead else LOCAL.frame.get(cell)
            unseen(lambda: step(now))
        self._steps.append((name, cell, made[0], made[1]))
        self.keys[name] = unseen(lambda: jax.random.wrap_key_data(made[2], impl=IMPL))


def _take_back(before: Array, after: Array, state: Array) -> Array:
    """Return the state before a draw, unless there was another one since."""
    return before if state is after else state


def _check_unmoved(cell: Cell, before: Array) -> None:
    if LOCAL.frame.get(cell) is not before:
        raise InteropError(
            f"The flax module draws from generator {cell.name!r}, which is one of its streams, "
            "too: both would get the same values. Give from_flax another one in rngs=."
        )

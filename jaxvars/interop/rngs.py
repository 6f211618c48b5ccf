"""Random values for linen modules: keys that come from Generators, and go back if not used.

Linen takes a key for each of its streams ("dropout", ...) with each call, whether it needs it or
not. Here a stream is a `Generator`, and a call is one draw from those that it used.

Rules this file keeps:
- a stream that a call did not use does not move: flax counts, in the scope of the call, how often
  a stream was asked for a key;
- nor does one if the call raises;
- a stream that was not named is found among the variables if the code of the module can ask for it,
  else from when it does;
- eagerly, no two threads are given the same key;
- where a generator must not be written (under a plain `jax.grad`), a call that does not use it
  works all the same.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.control.vmap_index import EXAMPLE
from jaxvars.core.cells import STREAMS, Cell
from jaxvars.core.frames import LOCAL, lifted
from jaxvars.errors import InteropError, called
from jaxvars.modules.module import Late
from jaxvars.objects.traversal import HIDING
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


class Streams(dict[str, Generator], Late):
    """The generators of streams, by name; and spare ones, which are not found until asked for."""

    __slots__ = ("__spare",)

    def __init__(self, made: Mapping[str, Generator], spare: Mapping[str, Generator]) -> None:
        super().__init__(made)
        self.__spare = dict(spare)

    def __missing__(self, name: str) -> Generator:
        self[name] = self.__spare.pop(name)
        return self[name]

    def all(self) -> dict[str, Generator]:
        """Return all of them."""
        return {**self.__spare, **self}

    def note_used(self, names: Iterable[str]) -> None:
        """Have the streams that were asked for found."""
        for name in self.__spare.keys() & names:
            self[name]

    @property
    def is_built(self) -> bool:
        """Whether none is spare."""
        return not self.__spare

    def build(self, size: int, /) -> None:
        """Have all of them found, as a checkpoint holds one."""
        self.note_used(list(self.__spare))


HIDING.add(Streams)


def streams_of(rngs: Any, module: Any) -> tuple[dict[str, Source], Streams]:
    """Return what initial keys are made of, and the generator of each stream of a module."""
    if not isinstance(rngs, Mapping):
        source = source_of(rngs)
        streams = {DROPOUT: generator_of(source)}
        return {PARAMS: source}, Streams(*((streams, {}) if can_draw(module) else ({}, streams)))
    sources = {str(name): source_of(given) for name, given in rngs.items()}
    streams = {name: generator_of(s) for name, s in sources.items() if name != PARAMS}
    if PARAMS not in sources:
        sources[PARAMS] = source_of(None)
    return sources, Streams(streams, {})


def can_draw(module: Any) -> bool:
    """Return whether the code of a module asks for keys, or of one that it names or holds.

    It is a guess, as a part may be made of what is computed: then the first call that draws tells.

    >>> import flax.linen as nn
    >>> can_draw(nn.Sequential([nn.Dense(2), nn.relu])), can_draw(nn.Sequential([nn.Dropout(0.1)]))
    (False, True)
    """
    todo, seen = [module], set[int]()
    while todo:
        part = todo.pop()
        if id(part) not in seen:
            seen.add(id(part))
            codes = list(_codes_of(part))
            if any("make_rng" in code.co_names for code, _ in codes):
                return True
            todo += [x for code, space in codes for x in _modules_named(code.co_names, space)]
            todo += _parts_of(part)
    return False


def _codes_of(part: Any) -> Iterator[tuple[CodeType, dict[str, Any]]]:
    """Yield the codes of a function, or of the methods of a linen class, and their globals."""
    from flax import linen

    if isinstance(part, FunctionType):
        fn = inspect.unwrap(part)
        codes = [fn.__code__]
        for code in codes:
            yield code, fn.__globals__
            codes += [x for x in code.co_consts if isinstance(x, CodeType)]
    elif isinstance(part, type) and issubclass(part, linen.Module):
        for base in part.__mro__[: part.__mro__.index(linen.Module)]:
            for held in vars(base).values():
                yield from _codes_of(held) if isinstance(held, FunctionType) else ()


def _modules_named(names: Iterable[str], space: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the classes of modules, and the functions, that code names."""
    from flax import linen

    spaces = [vars(x) for name in names if isinstance(x := space.get(name), ModuleType)]
    for name in names:
        for found in (each.get(name) for each in [space, *spaces]):
            if isinstance(found, type) and issubclass(found, linen.Module):
                yield found
        if isinstance(space.get(name), FunctionType):
            yield space[name]


def _parts_of(part: Any) -> Iterable[Any]:
    """Return what a module, a list of them or a partial holds."""
    from flax import linen

    if isinstance(part, linen.Module):
        return [type(part), *vars(part).values()]
    if isinstance(part, functools.partial):
        return [part.func, *part.args, *part.keywords.values()]
    if isinstance(part, Mapping):
        return part.values()
    return part if isinstance(part, list | tuple) else ()


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
            f"The flax module draws from generator {called(cell)!r}, which is one of its streams, "
            "too: both would get the same values. Give from_flax another one in rngs=."
        )

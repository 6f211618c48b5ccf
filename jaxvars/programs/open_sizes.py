"""A call some of whose sizes are open: one trace serves all sizes.

Rules this file keeps:
- sizes that are equal in the first such call, at the same place in a shape, are one symbol: a trace
  serves those calls in which they are equal again;
- 0 is never open: JAX takes a symbol for 1 or more.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, final

import jax

from jaxvars.compiler.creation import ProgramSource
from jaxvars.compiler.function import Function
from jaxvars.compiler.signature import Call, Traced
from jaxvars.core.staging import Staged
from jaxvars.symbolic.propagate import follow_sizes
from jaxvars.symbolic.sizes import with_compared_sizes
from jaxvars.symbolic.specialize import at_sizes, is_open, symbol
from jaxvars.tracing.signals import attempt

_Resolve: TypeAlias = Callable[[Staged], tuple[Staged, list[Any]]]
Axes: TypeAlias = Sequence[Sequence[bool]]
"""For each traced leaf, and each of its sizes, whether it is open."""


@final
class OpenCalls(ProgramSource):
    """The programs of calls with unknown dimensions, at known sizes.

    Args:
        axes: returns which sizes of a call are open; None where none are.
    """

    def __init__(self, axes: Callable[[Call], Axes | None] = lambda _: None) -> None:
        self._axes = axes
        self._closed: set[Any] = set()  # keys with symbols for which there can be no trace

    def begin(self) -> None:
        """Forget which calls can have no unknown dimensions."""
        self._closed.clear()

    def tracing(self, call: Call) -> AbstractContextManager[Sequence[Any]]:
        """Trace a call with symbols as one whose sizes are compared for all sizes at once."""
        return _compared(call) if _is_symbolic(call) else super().tracing(call)

    def find(self, call: Call, stage: Callable[[Call], Staged]) -> Staged | None:
        """Return the program of a call made of one with unknown dimensions, if there can be one."""
        axes = self._axes(call)
        if axes is None:
            return None
        for everywhere in (False, True):
            found = open_call(call, axes, everywhere=everywhere)
            if found is not None and found[0].key not in self._closed:
                staged = attempt(partial(stage, found[0]))
                if staged is not None:
                    return found[1](staged)[0]
                self._closed.add(found[0].key)  # the trace for known sizes will say what it is
        return None


def open_call(call: Call, axes: Axes, *, everywhere: bool = False) -> tuple[Call, _Resolve] | None:
    """Return a call with symbols for its unknown dimensions, and its `resolve`, if any.

    Args:
        call: it.
        axes: which sizes are open.
        everywhere: have equal sizes be one symbol wherever they are in their shapes.
    """
    traced = [leaf for leaf in call.key.leaves if isinstance(leaf, Traced)]
    sizes: dict[str, int] = {}
    shapes = [
        tuple(
            symbol(_name(0 if everywhere else axis, size, sizes))
            if open_ and _can_be_open(size)
            else size
            for axis, (size, open_) in enumerate(zip(leaf.shape, flags, strict=True))
        )
        for leaf, flags in zip(traced, axes, strict=True)
    ]
    if not sizes or _is_symbolic(call):
        return None
    new = iter(leaf._replace(shape=shape) for leaf, shape in zip(traced, shapes, strict=True))
    leaves = tuple(next(new) if isinstance(leaf, Traced) else leaf for leaf in call.key.leaves)
    specs = [
        jax.ShapeDtypeStruct(shape, leaf.dtype, weak_type=leaf.weak)
        for leaf, shape in zip(traced, shapes, strict=True)
    ]

    def resolve(staged: Staged) -> tuple[Staged, list[Any]]:
        return replace(staged, program=at_sizes(staged.program, sizes)), call.values

    key = call.key._replace(leaves=leaves)
    return call._replace(key=key, values=specs, resolve=resolve), resolve


def _is_symbolic(call: Call) -> bool:
    """Return whether a call has symbols in the place of sizes."""
    shapes = [leaf.shape for leaf in call.key.leaves if isinstance(leaf, Traced)]
    return any(is_open(size) for shape in shapes for size in shape)


def name_of_size(axis: int) -> str:
    """Return what the first unknown dimension at a place in a shape is called."""
    return "batch" if axis == 0 else f"size_{axis}"


def _name(axis: int, size: int, sizes: dict[str, int]) -> str:
    """Return the name of a size, and note it."""
    name, count = name_of_size(axis), 0
    while sizes.setdefault(name, size) != size:
        count += 1
        name = f"{name_of_size(axis)}_{count}"
    return name


def _can_be_open(size: Any) -> bool:
    return type(size) is int and size > 0


@contextmanager
def _compared(call: Call) -> Generator[Sequence[Any]]:
    """Trace with sizes that are compared for all sizes at once, and followed."""
    with follow_sizes():
        yield list(map(with_compared_sizes, call.values))


def install() -> None:
    """Let calls with unknown dimensions be traced as such."""
    Function.source = OpenCalls()

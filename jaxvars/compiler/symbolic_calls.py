"""A call some of whose sizes are open: one trace serves all sizes.

Rules this file keeps:
- sizes that are equal in the first such call, at the same place in a shape, are one symbol: a trace
  serves those calls in which they are equal again;
- 0 is never open: JAX takes a symbol for 1 or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import jax

from jaxvars.compiler.leaves import Traced
from jaxvars.compiler.signature import Call
from jaxvars.core.staging import Staged
from jaxvars.symbolic.specialize import at_sizes, is_open, symbol

Axes: TypeAlias = Sequence[Sequence[bool]]
"""For each traced leaf, and each of its sizes, whether it is open."""


class Opened(NamedTuple):
    """A call with symbols in the place of sizes.

    Attributes:
        call: it.
        sizes: what the symbols stand for.
        values: the traced leaves of the call that was made.
    """

    call: Call
    sizes: dict[str, int]
    values: list[Any]

    def filled(self, staged: Staged) -> Staged:
        """Return what was traced for the symbols for what they stand for."""
        return replace(staged, program=at_sizes(staged.program, self.sizes))


def opened(call: Call, axes: Axes, *, everywhere: bool = False) -> Opened | None:
    """Return a call with symbols for its unknown dimensions; None if there are none.

    Args:
        call: it.
        axes: which sizes are open.
        everywhere: have equal sizes be one symbol wherever they are in their shapes.
    """
    traced = [leaf for leaf in call.key[1] if isinstance(leaf, Traced)]
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
    if not sizes or is_symbolic(call):
        return None
    new = iter(leaf._replace(shape=shape) for leaf, shape in zip(traced, shapes, strict=True))
    leaves = tuple(next(new) if isinstance(leaf, Traced) else leaf for leaf in call.key[1])
    specs = [
        jax.ShapeDtypeStruct(shape, leaf.dtype, weak_type=leaf.weak)
        for leaf, shape in zip(traced, shapes, strict=True)
    ]
    return Opened(
        call._replace(key=(call.key[0], leaves, *call.key[2:]), values=specs), sizes, call.values
    )


def is_symbolic(call: Call) -> bool:
    """Return whether a call has symbols in the place of sizes."""
    shapes = [leaf.shape for leaf in call.key[1] if isinstance(leaf, Traced)]
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

"""Which sizes of a `tf.function`'s arguments are open: one trace serves all of them.

Open is what is None in `input_signature` or in a spec that `get_concrete_function` was given, and,
with `reduce_retracing`, what has differed between calls. A call is served by the most special trace
that fits; this is consulted only for calls that are like none before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, final

import jax

from jaxvars.compiler.signature import Call, Key, Traced
from jaxvars.programs.open_sizes import Axes
from jaxvars.symbolic.specialize import is_open
from jaxvars.tf.functions.arguments import is_spec

Sizes: TypeAlias = tuple[int | None, ...]


class Kind(NamedTuple):
    """A kind of call: a key of the core without sizes, and the sizes, None for open ones."""

    rest: Any
    shapes: tuple[Sizes, ...]

    def holds(self, other: Kind) -> bool:
        """Return whether each call of another kind is one of this."""
        return self.rest == other.rest and all(
            len(a) == len(b) and all(m is None or m == n for m, n in zip(a, b, strict=True))
            for a, b in zip(self.shapes, other.shapes, strict=True)
        )

    def join(self, other: Kind) -> Kind | None:
        """Return the kind of both, with the ranks of the other one; None if there is none."""
        if self.rest != other.rest:
            return None
        pairs = zip(self.shapes, other.shapes, strict=True)
        return Kind(self.rest, tuple(_join_sizes(a, b) for a, b in pairs))

    @property
    def axes(self) -> Axes:
        """Which sizes are open."""
        return [[size is None for size in shape] for shape in self.shapes]

    @property
    def openness(self) -> int:
        """How many sizes are open."""
        return sum(map(sum, self.axes))


def _join_sizes(old: Sizes, new: Sizes) -> Sizes:
    """Return sizes with those open that have differed: all of them, where the ranks have."""
    if len(old) != len(new):
        return (None,) * len(new)
    return tuple(m if m == n else None for m, n in zip(old, new, strict=True))


def kind_of(key: Key) -> Kind:
    """Return the kind of a key; its symbols are unknown dimensions."""
    rest = tuple(
        leaf._replace(shape=()) if isinstance(leaf, Traced) else leaf for leaf in key.leaves
    )
    shapes = tuple(
        tuple(None if is_open(size) else size for size in leaf.shape)
        for leaf in key.leaves
        if isinstance(leaf, Traced)
    )
    return Kind(key._replace(leaves=rest), shapes)


@final
class OpenSizes:
    """Specifies for the core which sizes are open."""

    def __init__(self, specs: Sequence[Any] | None, *, reduces: bool) -> None:
        self._specs = None if specs is None else jax.tree.leaves(list(specs), is_leaf=is_spec)
        self._reduces = reduces
        self._kinds: list[Kind] = []

    def add(self, key: Any) -> None:
        """Take note of a trace with unknown dimensions."""
        kind = kind_of(key)
        if kind.openness and kind not in self._kinds:
            self._kinds.append(kind)

    def __call__(self, call: Call) -> Axes | None:
        """Return which sizes of a call are open."""
        if self._specs is not None:
            return self._axes_by_specs(call)
        if not self._reduces and not self._kinds:
            return None
        kind = kind_of(call.key)
        if kind.openness:
            return None  # it is traced for symbols
        fits = [known for known in self._kinds if known.holds(kind)]
        if fits:
            return min(fits, key=lambda known: known.openness).axes
        return self._relax(kind).axes if self._reduces else None

    def _relax(self, kind: Kind) -> Kind:
        for known in self._kinds:
            kind = known.join(kind) or kind
        self._kinds.append(kind)
        return kind

    def _axes_by_specs(self, call: Call) -> Axes | None:
        shapes = [leaf.shape for leaf in call.key.leaves if isinstance(leaf, Traced)]
        specs = [spec for spec in self._specs or () if is_spec(spec)]
        if len(specs) > len(shapes):
            return None
        axes: list[list[bool]] = []
        for i, shape in enumerate(shapes):
            known = specs[i].shape if i < len(specs) else shape
            is_unknown = getattr(known, "rank", 0) is None
            sizes = (None,) * len(shape) if is_unknown else tuple(known)
            if len(sizes) != len(shape):
                return None
            axes.append([size is None for size in sizes])
        return axes

"""Which programs depend on whether a variable is trainable: a part of what they are known by.

And on its shape, of one that may have several.

Rules this file keeps:
- a program is found by the flags and shapes of the variables that its function asked for, and by no
  others;
- a fast path, which looks at no flag, is forgotten when one is set that its function asked for; jit
  looks at the shapes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Set
from typing import Any, final

from jaxvars.compiler.signature import Key
from jaxvars.core.cells import ASKED, FLAG_SET, Cell, untrainable


@final
class Flags:
    """The variables of which one function asks whether they are trainable, by signature.

    Args:
        cool: forgets the function's fast paths.
    """

    def __init__(self, cool: Callable[[], None]) -> None:
        self._cool = cool
        self._asked: dict[Key, frozenset[int]] = {}  # keys of cells
        self._open: dict[Key, frozenset[weakref.ref[Cell]]] = {}
        number = id(self)
        FLAG_SET[number] = weakref.WeakMethod(self._set, lambda _: FLAG_SET.pop(number, None))

    def _set(self, cell: int) -> None:
        if any(cell in asked for asked in list(self._asked.values())):
            self._cool()

    def extend(self, key: Key) -> Key:
        """Return the key of a signature with the variables not trainable now, and with shapes."""
        return self._extend(key, {})

    def _extend(self, key: Key, known: Mapping[Cell, tuple[int, ...]]) -> Key:
        cells = [cell for ref in self._open.get(key, ()) if (cell := ref()) is not None]
        shapes = [(c.key, known.get(c, c.aval.shape)) for c in cells]
        flags = untrainable(self._asked.get(key, frozenset()))
        return Key(key.form, key.leaves, key.settings, key.parts, key.order,
                   flags, frozenset(shapes))  # fmt: skip

    def hold(self, key: Key) -> bool:
        """Return whether an extended key is that of now."""
        return self.extend(key.signature) == key

    def note(self, key: Key, asked: Set[int] | None, shapes: Mapping[Cell, tuple[int, ...]]) -> Key:
        """Take note of what a trace asked for, and of shapes in it; return the extended key."""
        self._asked[key] = self._asked.get(key, frozenset()) | frozenset(asked or ())
        if shapes:
            self._open[key] = self._open.get(key, frozenset()).union(map(weakref.ref, shapes))
        return self._extend(key, shapes)

    def ask_again(self, key: Key) -> None:
        """Tell the function that is traced now what the one that it called had asked for."""
        if ASKED.value is not None:
            ASKED.value.update(self._asked.get(key.signature, ()))

    def forget(self, key: Key, programs: dict[Key, Any]) -> None:
        """Forget the programs of an extended key and of other flags: what they asked for goes."""
        mine = key.signature
        for other in [each for each in list(programs) if each.signature == mine]:
            programs.pop(other, None)
        self._asked.pop(mine, None)
        self._open.pop(mine, None)

"""Which programs depend on whether a variable is trainable: a part of what they are known by.

Rules this file keeps:
- a program is found by the flags of the variables that its function asked for, and by no others;
- a hot path, which looks at no flag, is forgotten when one is set that its function asked for.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Set
from typing import Any, final

from jaxvars.core.cells import ASKED, FLAG_SET, untrainable


@final
class Flags:
    """The variables of which one function asks whether they are trainable, by signature.

    Args:
        cool: forgets the function's hot paths.
    """

    def __init__(self, cool: Callable[[], None]) -> None:
        self._cool = cool
        self._asked: dict[Any, frozenset[int]] = {}  # keys of cells
        number = id(self)
        FLAG_SET[number] = weakref.WeakMethod(self._set, lambda _: FLAG_SET.pop(number, None))

    def _set(self, cell: int) -> None:
        if any(cell in asked for asked in list(self._asked.values())):
            self._cool()

    def extend(self, key: Any) -> Any:
        """Return the key of a signature with those variables that are not trainable now."""
        return (*key, untrainable(self._asked.get(key, frozenset())))

    def hold(self, key: Any) -> bool:
        """Return whether an extended key is that of now."""
        return self.extend(key[:-1]) == key

    def note(self, key: Any, asked: Set[int] | None) -> Any:
        """Take note of what a trace asked for; return the extended key."""
        self._asked[key] = self._asked.get(key, frozenset()) | frozenset(asked or ())
        return self.extend(key)

    def ask_again(self, key: Any) -> None:
        """Tell the function that is traced now what the one that it called had asked for."""
        if ASKED.value is not None:
            ASKED.value.update(self._asked.get(key, ()))

    def forget(self, key: Any, programs: dict[Any, Any]) -> None:
        """Forget the programs of an extended key and of other flags: what they asked for goes."""
        for other in [each for each in list(programs) if each[:-1] == key[:-1]]:
            programs.pop(other, None)
        self._asked.pop(key[:-1], None)

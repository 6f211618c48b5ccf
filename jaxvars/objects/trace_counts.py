"""How often a function has been traced where one trace would have done, if it were called alike.

Traces are alike if they are of the same variables and owners: Modules, and the object that a method
belongs to, may have a trace each. Other objects have not: there may be a new one at each call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, final

from jaxvars.objects.identity import Same, Weak


@final
class TraceCounts:
    """The counts of one function.

    >>> counts, model = TraceCounts(), {1.0}
    >>> counts.add({1}, [model]), counts.add({1}, [model]), counts.add({2}, [model])
    (1, 2, 1)
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[frozenset[Hashable], tuple[Any, ...]]] = Counter()

    def add(self, variables: Iterable[Hashable], owners: Sequence[object]) -> int:
        """Count a trace; return how many there are that are alike."""
        alike = frozenset(variables), tuple(map(_reference, owners))
        self._counts[alike] += 1
        return self._counts[alike]

    def let_go(self) -> None:
        """Forget owners that are gone."""
        for alike in tuple(self._counts):
            if any(isinstance(x, Weak) and x() is None for x in alike[1]):
                del self._counts[alike]


def _reference(owner: object) -> Hashable:
    try:
        return Weak(owner)
    except TypeError:  # it has no weak references
        return Same(owner)

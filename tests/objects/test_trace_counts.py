"""Traces for which one would have done."""

from __future__ import annotations

from jaxvars.objects.trace_counts import TraceCounts


class Owner:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


class Slotted:
    __slots__ = ()


def test_traces_of_the_same_variables_count_together():
    counts = TraceCounts()
    assert [counts.add([2, 1], []), counts.add([1, 2], []), counts.add([1], [])] == [1, 2, 1]


def test_owners_count_apart_and_are_not_kept():
    counts, one, other, slotted = TraceCounts(), Owner(), Owner(), Slotted()
    found = [counts.add([], [x]) for x in (one, other, slotted, Slotted(), slotted, one)]
    assert found == [1, 1, 1, 1, 2, 2]
    del one
    counts.let_go()
    assert len(counts._counts) == 3
    assert [counts.add([], [x]) for x in (Owner(), other, slotted)] == [1, 2, 3]

"""How many elements the datasets have that steps make."""

from __future__ import annotations

from collections.abc import Iterable

INFINITE, UNKNOWN = -1, -2


def endless(count: int) -> int:
    """Return how many elements are made of some, if all that is known is that they never end."""
    return INFINITE if count == INFINITE else UNKNOWN


def product(count: int, times: int) -> int:
    """Return the number of elements after repeating: INFINITE if `times` is negative."""
    if times == 0 or count == 0:
        return 0
    return INFINITE if times < 0 else count if count < 0 else count * times


def total(first: int, second: int) -> int:
    """Return the number of elements of two datasets, one after the other."""
    if INFINITE in (first, second):
        return INFINITE
    return UNKNOWN if UNKNOWN in (first, second) else first + second


def fewest(counts: Iterable[int]) -> int:
    """Return the number of elements of datasets side by side."""
    given = list(counts)
    if UNKNOWN in given:
        return UNKNOWN
    return min((n for n in given if n != INFINITE), default=INFINITE)


def count_groups(count: int, size: int, drop: bool) -> int:
    """Return the number of groups."""
    if count < 0:
        return count
    return count // size if drop else -(-count // size)


def sizes_of_groups(count: int, size: int) -> list[int | None]:
    """Return the sizes of groups, of which the last may be smaller; None for any."""
    if count == UNKNOWN:
        return [None]
    if count == INFINITE:
        return [size]
    return [n for n in (min(count, size), count % size if count > size else 0) if n] or [size]

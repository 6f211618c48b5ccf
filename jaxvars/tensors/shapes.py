"""Patterns that shapes are matched against: ("batch", None, 3), (..., "n"), "NHWC".

Rules this file keeps:
- a size is a number, a name (the same size wherever it stands), or None or "." for any;
- `...` or "*", first or last, stands for any number of sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

Sizes: TypeAlias = dict[str, tuple[int, str]]  # by name: the size, and where it was found

_REST = (..., "*")
_ANY = (None, ".")


def misfit(what: str, shape: tuple[int, ...], pattern: Sequence[Any], sizes: Sizes) -> str | None:
    """Return why a shape does not match a pattern; None if it does.

    Args:
        what: what has the shape.
        shape: the shape.
        pattern: the pattern.
        sizes: the sizes of the names found so far; new ones are added.

    Raises:
        TypeError: when it is not a pattern.

    >>> sizes = {}
    >>> misfit("x", (8, 3), ("batch", "n"), sizes), sizes["n"]
    (None, (3, 'dimension 1 of x'))
    >>> misfit("y", (4, 5), (..., "n"), sizes)
    'n is 3 (dimension 1 of x), but dimension 1 of y is 5'
    >>> misfit("y", (4, 5), (4,), sizes)
    'it should have rank 1'
    """
    pattern = tuple(pattern)
    opens, ends = pattern[:1] and pattern[0] in _REST, pattern[1:] and pattern[-1] in _REST
    known = pattern[bool(opens) : len(pattern) - bool(ends)]
    _check(pattern, known, bool(opens and ends))
    if len(shape) < len(known) or (len(shape) > len(known) and not (opens or ends)):
        return f"it should have rank {len(known)}" + (" or more" if opens or ends else "")
    start = len(shape) - len(known) if opens else 0
    for i, wanted in enumerate(known, start):
        where = f"dimension {i} of {what}"
        if wanted not in _ANY and (problem := _compare(shape[i], wanted, where, sizes)):
            return problem
    return None


def _compare(size: int, wanted: Any, where: str, sizes: Sizes) -> str | None:
    if isinstance(wanted, str):
        known, there = sizes.setdefault(wanted, (size, where))
        return None if known == size else f"{wanted} is {known} ({there}), but {where} is {size}"
    return None if wanted == size else f"{where} should be {wanted}"


def _check(pattern: Sequence[Any], known: Sequence[Any], both: bool) -> None:
    wrong = [size for size in known if size in _REST or not isinstance(size, int | str | None)]
    if wrong or both:
        raise TypeError(
            f"{pattern!r} is not a pattern of a shape: sizes are numbers, names, or None; `...` or "
            '"*" may stand first or last.'
        )

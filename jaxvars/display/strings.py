"""Short strings for values: arrays and bytes.

Rules this file keeps:
- nothing here runs a JAX operation: values are read through NumPy, so a tape or a trace around
  it sees nothing, and an array without a known value shows its type;
- a string does not depend on the terminal or on NumPy's print options.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from unicodedata import east_asian_width

import jax
import numpy as np

from jaxvars.advice import did_you_mean as did_you_mean

SMALL = 6  # elements that are shown in full
_FEW, _SHORT = 20, 80  # elements that a variable by itself shows, if they take no more columns
_LONG = 200  # characters of other elements
_NAMES = 6  # that are listed
_LARGE = 1 << 24  # elements above which to fetch them and their statistics would take too long

_FIXED: dict[str, Any] = {
    "edgeitems": 3, "suppress": False, "sign": "-", "nanstr": "nan", "infstr": "inf",
    "floatmode": "maxprec", "formatter": None, "legacy": False,
}  # fmt: skip


def array_text(x: Any) -> str:
    """Return an array in short: all of a small one, statistics of another.

    >>> array_text(np.array([1.0, 2.0])), array_text(np.arange(12).reshape(3, 4))
    ('[1. 2.]', 'int64[3,4] mean=5.5 min=0 max=11')
    >>> array_text(np.array([[0.0] * 4, [np.nan] * 4], np.float32))
    'float32[2,4] mean=0 min=0 max=0 nan=4'
    """
    known = known_value(x)
    if known is not None and 0 < known.size <= SMALL:
        return _format(known)
    return f"{type_text(x)} {statistics(x, known)}".strip()


def type_text(x: Any) -> str:
    """Return dtype and shape.

    >>> type_text(np.zeros((2, 3), np.int8))
    'int8[2,3]'
    """
    is_text = isinstance(x.dtype, np.dtype) and x.dtype.kind in "OSTU"  # a key's dtype has kind O
    name = "string" if is_text else str(x.dtype)
    return f"{name}[{','.join(map(str, x.shape))}]"


def has_numbers(x: np.ndarray[Any, Any]) -> bool:
    """Return whether an array's elements are numbers, not strings, objects, dates or records."""
    return x.dtype.kind not in "OSTUMm" and x.dtype.type is not np.void


def is_array(value: Any) -> bool:
    """Return whether a value is shown as an array."""
    return isinstance(value, (jax.Array, np.ndarray, np.generic))


def brief_text(x: Any) -> str:
    """Return the values of an array, without its type: all on one short line, or statistics.

    >>> brief_text(np.eye(2)), brief_text(np.arange(32.0))
    ('[[1. 0.] [0. 1.]]', 'mean=15.5 min=0 max=31')
    """
    known = known_value(x)
    return full_text(known) or statistics(x, known)


def full_text(x: np.ndarray[Any, Any] | None) -> str:
    """Return all values of an array on one line; nothing if that would be a long one."""
    if x is None or x.size > _FEW:
        return ""
    with np.printoptions(**_FIXED, precision=8, linewidth=10**6, threshold=10**6):
        string = re.sub(r"\n\s*", " ", np.array2string(x, separator=" "))
    return string if len(string) <= _SHORT else ""


def known_value(x: Any) -> np.ndarray[Any, Any] | None:
    """Return an array as NumPy has it; None if it is not known here, or too large to look at."""
    if x.size > _LARGE:
        return None
    try:
        return np.asarray(x)
    except (TypeError, ValueError, RuntimeError):  # traced, deleted, on other hosts, or a key
        return None


def statistics(x: Any, known: np.ndarray[Any, Any] | None) -> str:
    if x.size == 0 or x.size > _LARGE:
        return ""
    if known is None:
        return "(value not known here)" if isinstance(x.dtype, np.dtype) else ""
    if not has_numbers(known):
        return first_elements(known)
    if known.dtype.kind == "b":
        return f"true={np.count_nonzero(known)}"
    return _describe_numbers(known)


def _describe_numbers(known: np.ndarray[Any, Any]) -> str:
    """Return statistics of the finite elements, and how many are not."""
    known = known.astype(np.float64) if known.dtype.kind == "V" else known  # bfloat16, int4, ...
    size, bar = (np.abs(known), "|") if known.dtype.kind == "c" else (known, "")
    wide = np.complex128 if known.dtype.kind == "c" else np.float64
    finite, nan = np.isfinite(known), np.count_nonzero(np.isnan(known))
    inf, parts = known.size - np.count_nonzero(finite) - nan, list[str]()
    if nan + inf < known.size:
        with np.errstate(all="ignore"):
            mean = known.mean(dtype=wide, where=finite).item()
        low, high = size[finite].min().item(), size[finite].max().item()
        parts = [f"mean={mean:.4g}", f"{bar}min{bar}={low:.4g}", f"{bar}max{bar}={high:.4g}"]
    parts += [f"{name}={count}" for name, count in (("nan", nan), ("inf", inf)) if count]
    return " ".join(parts)


def _format(x: np.ndarray[Any, Any]) -> str:
    """Return the elements on one line."""
    string = numpy_text(x if x.ndim else x[()], precision=4, threshold=10**6, linewidth=10**6)
    return string if x.ndim == 0 else re.sub(r"\n\s*", " ", string)


def numpy_text(x: Any, **options: Any) -> str:
    """Return an array as NumPy writes it with these options, whatever else is set."""
    with np.printoptions(**_FIXED | options):
        return str(x)


def first_elements(x: np.ndarray[Any, Any]) -> str:
    """Return some elements that are not numbers, however long they are, on one line."""
    string = f"{_format(x.ravel()[:SMALL])[:-1]} ...]" if x.size > SMALL else _format(x)
    return string if len(string) <= _LONG else string[: _LONG - 1] + "…"


# ---------------------------------------------------------------- words
def join_names(names: Sequence[str], others: Sequence[str] = ()) -> str:
    """Return some names, how many more there are, and others.

    >>> join_names(list("abcdefgh"), ["1 array"])
    'a, b, c, d, e, f, 2 more, 1 array'
    """
    more = [f"{len(names) - _NAMES} more"] if len(names) > _NAMES else []
    return ", ".join([*names[:_NAMES], *more, *others])


def count_text(count: int, noun: str) -> str:
    """Return how many things there are.

    >>> count_text(1, "trace"), count_text(1200, "trace")
    ('1 trace', '1200 traces')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def human_bytes(count: float) -> str:
    """Return a number of bytes as people say it.

    >>> human_bytes(0), human_bytes(1023), human_bytes(1229), human_bytes(3 << 30)
    ('0 B', '1023 B', '1.2 KiB', '3.0 GiB')
    """
    if abs(count) < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        count /= 1024
        if abs(count) < 1023.95:  # what would be printed as 1024.0
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} PiB"


def rate_text(rate: float | None) -> str:
    """Return a rate, or what it is the reciprocal of.

    >>> rate_text(1234.5), rate_text(0.25)
    ('1,234 it/s', '4 s/it')
    """
    if rate is None:
        return ""
    if rate < 1:
        return f"{1 / rate:.3g} s/it"
    return f"{rate:,.0f} it/s" if rate >= 100 else f"{rate:.3g} it/s"


def cells(string: str) -> int:
    """Return how many columns a fixed-width font needs for a string.

    >>> cells("wx"), cells("重み")
    (2, 4)
    """
    return len(string) + sum(east_asian_width(c) in "WF" for c in string)

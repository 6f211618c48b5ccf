"""`diff`: which variables changed between two states, and by how much.

Rule this file keeps: what changed is decided by bits, so that -0.0 differs from 0.0, and NaN is
equal to the same NaN; how much, in float64, or exactly for integers.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.display.repr import Table
from jaxvars.interop.state import state_of, to_array
from jaxvars.modules.state import State
from jaxvars.tensors.dtypes import is_key, is_string

_COLUMNS = ("path", "change", "elements", "of", "max abs", "max rel", "new NaN")


def diff(before: Any, after: Any) -> Table:
    """Make a table of the variables that differ between two states.

    Args:
        before: a State, or anything that `State.of` takes: a Module, a Variable, a dict of them.
        after: the same, with the same paths.

    Returns:
        A row for each path that differs; empty, and so false, if none does. `change` is "value",
        or how the shapes or dtypes differ, or that a path is in one of them only. `elements` is
        how many of the elements differ in any bit; `max abs` the largest |after - before|, exact
        for integers; `max rel` the largest such difference divided by the larger of the two
        magnitudes; `new NaN` how many elements became NaN, which have no part in the two before.

    Raises:
        StateError: when it holds no variable, or paths do not tell variables apart.

    >>> import jaxvars as jv
    >>> model = {"w": jv.Variable([1.0, 2.0, 4.0]), "b": jv.Variable(0.0)}
    >>> before = jv.State.of(model)
    >>> _ = model["w"][2].assign(5.0)
    >>> print(diff(before, model))
    path            change  elements  of  max abs  max rel  new NaN
    --------------  ------  --------  --  -------  -------  -------
    w               value          1   3        1      0.2        0
    --------------  ------  --------  --  -------  -------  -------
    1 of 2 changed
    """
    old, new = state_of(before), state_of(after)
    paths = [*old, *(path for path in new if path not in old)]
    found = [_compare(path, old, new) for path in paths]
    rows = [row for row in found if row is not None]
    empty = (None,) * (len(_COLUMNS) - 1)
    return Table("", _COLUMNS, rows, footer=[(f"{len(rows)} of {len(paths)} changed", *empty)])


def _compare(path: str, old: State, new: State) -> tuple[Any, ...] | None:
    if path not in new or path not in old:
        where, value = ("before", old[path]) if path in old else ("after", new[path])
        return path, f"only {where}", None, value.size, None, None, None
    a, b = old[path], new[path]
    kinds = [("shape", a.shape, b.shape), ("dtype", str(a.dtype), str(b.dtype))]
    if others := [f"{name} {x} -> {y}" for name, x, y in kinds if x != y]:
        return path, ", ".join(others), None, b.size, None, None, None
    one, other = to_array(a), to_array(b)
    changed = _bits_differ(one, other, a.size)
    if not (count := int(np.count_nonzero(changed))):
        return None
    is_other = is_string(a.dtype) or is_key(a) or a.dtype == bool
    sizes = (None, None, None) if is_other else _sizes(one.ravel(), other.ravel(), changed)
    return path, "value", count, a.size, *sizes


def _bits_differ(a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
    """Return for each element whether the two differ in a bit."""
    if is_string(a.dtype) or not size:
        return np.ravel(a != b)
    parts = [np.frombuffer(x.tobytes(), np.uint8).reshape(size, -1) for x in (a, b)]
    return (parts[0] != parts[1]).any(axis=1)


def _sizes(a: np.ndarray, b: np.ndarray, changed: np.ndarray) -> tuple[Any, Any, int]:
    """Return the largest difference, the largest relative one, and how many became NaN."""
    a, b = a[changed], b[changed]
    if jnp.issubdtype(a.dtype, jnp.integer):
        gaps = np.where(a > b, _word(a) - _word(b), _word(b) - _word(a))  # exact modulo 2**64
        most = np.maximum(np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64)))
        return int(gaps.max()), float((gaps / most).max()), 0
    wide = np.complex128 if jnp.issubdtype(a.dtype, jnp.complexfloating) else np.float64
    a, b = a.astype(wide), b.astype(wide)
    new = np.isnan(b) & ~np.isnan(a)
    known = ~(np.isnan(a) | np.isnan(b))
    with np.errstate(all="ignore"):
        gaps = np.abs(b - a)[known]
        rates = gaps / np.maximum(np.abs(a), np.abs(b))[known]
    rates[gaps == 0], rates[np.isinf(gaps)] = 0, np.inf
    most, rate = (float(x.max()) if x.size else None for x in (gaps, rates))
    return most, rate, int(new.sum())


def _word(x: np.ndarray) -> np.ndarray:
    return x.astype(np.int64 if jnp.issubdtype(x.dtype, jnp.signedinteger) else np.uint64).view(
        "u8"
    )

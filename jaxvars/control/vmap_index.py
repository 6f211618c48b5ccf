"""Which example of a `vectorized_map` it is: by that, random draws in it tell examples apart.

What a `vectorized_map` runs is staged once for all examples. A value that differs between them
without being an argument is read from a separate cell, `EXAMPLE`. It is zero, and a constant
of a compiled program, everywhere but in a `vectorized_map`, which gives each example its number.

What is assigned in a `vectorized_map` is assigned by each example. A cell that is to hold one
value all the same says how that is made of the examples' values: see `set_merge`.

Rules this file keeps:
- `EXAMPLE` is never written: a map puts another value in its place in the program that it runs;
- the numbers of examples in nested maps are hashed to one, so that all of them differ.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TypeAlias

import jax
import numpy as np

from jaxvars.core.cells import STREAMS, Cell
from jaxvars.core.frame import Signal
from jaxvars.typing import Array

Merge: TypeAlias = Callable[[Array, Array], Array]

NO_EXAMPLE = np.zeros(2, np.uint32)

_MERGES: weakref.WeakKeyDictionary[Cell, Merge] = weakref.WeakKeyDictionary()


def _keep(_: Array) -> None:
    """Take what is written to the cell: a map's own number, which has done its work."""


_EXAMPLE = Signal("the number of the example", NO_EXAMPLE, _keep)
EXAMPLE = _EXAMPLE._cell


def number_example(outer: Array, index: Array) -> Array:
    """Return what `EXAMPLE` is for the example of an index; `outer` is what it is outside."""
    key = jax.random.wrap_key_data(outer, impl="threefry2x32")
    return jax.random.key_data(jax.random.fold_in(key, index))


def set_merge(cell: Cell, merge: Merge) -> None:
    """Let the state of a stream of random numbers be assigned in a `vectorized_map`.

    Args:
        cell: of the state, which each draw advances.
        merge: takes the value before the map, and the values that the examples assigned, stacked
            along a first axis, which may be empty; returns the one value.
    """
    if _MERGES.get(cell) is not merge:
        _MERGES[cell] = merge
        STREAMS.add(cell)


def merge_of(cell: Cell) -> Merge | None:
    """Return how the examples' values of a cell become one; None if no merge is set for it."""
    return _MERGES.get(cell)

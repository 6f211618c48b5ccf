"""Which example of a `vectorized_map` it is: by that, random draws in it tell examples apart.

What a `vectorized_map` runs is staged once for all examples. A value that differs between them
without being an argument is read from a separate cell, `EXAMPLE`. It is zero, and a constant
of a compiled program, everywhere but in a `vectorized_map`, which gives each example its number.

What is assigned in a `vectorized_map` is assigned by each example. The state of a stream of random
numbers holds one value all the same: `STREAMS` says how that is made of the examples' values.

Rules this file keeps:
- `EXAMPLE` is never written: a map puts another value in its place in the program that it runs;
- the numbers of examples in nested maps are hashed to one, so that all of them differ.
"""

from __future__ import annotations

import jax
import numpy as np

from jaxvars.core.frame import Signal
from jaxvars.typing import Array

NO_EXAMPLE = np.zeros(2, np.uint32)


def _keep(_: Array) -> None:
    """Take what is written to the cell: a map's own number, which has done its work."""


_EXAMPLE = Signal("the number of the example", NO_EXAMPLE, _keep)
EXAMPLE = _EXAMPLE._cell


def number_example(outer: Array, index: Array) -> Array:
    """Return what `EXAMPLE` is for the example of an index; `outer` is what it is outside."""
    key = jax.random.wrap_key_data(outer, impl="threefry2x32")
    return jax.random.key_data(jax.random.fold_in(key, index))

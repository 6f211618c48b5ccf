"""What converted code calls in place of operations whose results would have no fixed shape.

`tf.range(n)`, where n is only known when the function runs, is not a tensor here: XLA's shapes are
fixed. A `for` can go through it all the same.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxvars.autograph.calls import overload
from jaxvars.autograph.operators.sequences import Sequential
from jaxvars.tf.arrays.ranges import range_
from jaxvars.tf.tensors.convert import CONVERSIONS, match_dtypes
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.static import is_known, is_size, refused


def _range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: Any = None
) -> Any:
    ends = (start, limit, delta)
    if all(x is None or is_known(x) or is_size(x) for x in ends):
        return range_(start, limit, delta, dtype)
    bounds = (0, start, delta) if limit is None else ends
    first, end, step = match_dtypes(bounds, "Range")
    if dtype is not None:
        kind = as_dtype(dtype).dtype
        first, end, step = (x.astype(kind) for x in (first, end, step))
    distance = end - first
    if jnp.issubdtype(first.dtype, jnp.floating):
        length = jnp.ceil(distance / step).astype(jnp.int32)
    else:
        length = -((-distance) // step)
    length = jnp.maximum(length, 0)
    return Sequential(length, lambda i: first + jnp.asarray(i, first.dtype) * step, None)


def _refuse(value: Sequential, **_: Any) -> Any:
    raise refused(
        "A range whose end is known when the function runs has no fixed shape, which XLA needs: it "
        "is for a `for` statement. Where its length is fixed, write start + tf.range(length)."
    )


overload(range_, _range)
CONVERSIONS.append((0, (Sequential,), _refuse))

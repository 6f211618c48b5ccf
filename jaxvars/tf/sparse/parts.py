"""The parts of sparse tensors, and sparse tensors made of parts."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.tensors.sparse_tensor import (
    SparseTensor,
    check_sparse,
    elements_at,
    host_array,
    indices_of,
    of_host,
)
from jaxvars.tf.tensors.static import not_too_many


def parts_of(sp_input: Any, op: str) -> tuple[np.ndarray, Any, tuple[int, ...]]:
    """Return the places, the elements and the sizes of what must be a sparse tensor."""
    sparse = check_sparse(sp_input)
    return places_of(sparse, op), sparse.values._array, sizes_of(sparse, op)


def places_of(sparse: SparseTensor, op: str) -> np.ndarray:
    return host_array(indices_of(sparse, op), f"sparse.{op}")


def sizes_of(sparse: SparseTensor, op: str) -> tuple[int, ...]:
    return tuple(host_array(sparse.dense_shape._array, f"sparse.{op}").tolist())


def scatter(sparse: SparseTensor, op: str, onto: Any = None) -> Any:
    """Return a whole tensor with the elements added to it; those of one place add up."""
    values = sparse.values._array
    sizes = not_too_many(sizes_of(sparse, op))
    whole = jnp.zeros(sizes, values.dtype) if onto is None else onto
    return whole.at[tuple(indices_of(sparse, op).T)].add(values)


def sorted_of(places: np.ndarray, values: Any, sizes: Any) -> SparseTensor:
    order = np.lexsort(places.T[::-1]) if places.shape[1] else np.arange(len(places))
    return of_host(places[order], elements_at(values, order), sizes)

"""The parts of sparse tensors, and sparse tensors made of parts."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.sparse_tensor import SparseTensor, elements_at, host_array, indices_of
from jaxvars.tf.tensors.tensor import Tensor


def places_of(sparse: SparseTensor, op: str) -> np.ndarray:
    return host_array(indices_of(sparse, op), f"sparse.{op}")


def sizes_of(sparse: SparseTensor, op: str) -> tuple[int, ...]:
    return tuple(host_array(sparse.dense_shape._array, f"sparse.{op}").tolist())


def scatter(sparse: SparseTensor, op: str, onto: Any = None) -> Any:
    """Return a whole tensor with the elements added to it; those of one place add up."""
    values = sparse.values._array
    whole = jnp.zeros(sizes_of(sparse, op), values.dtype) if onto is None else onto
    return whole.at[tuple(indices_of(sparse, op).T)].add(values)


def made_of(places: Any, values: Any, sizes: Any) -> SparseTensor:
    rank = len(sizes)
    indices = np.asarray(places, np.int64).reshape(-1, rank)
    return SparseTensor(indices, Tensor(to_array(values)), np.asarray(sizes, np.int64))


def sorted_of(places: np.ndarray, values: Any, sizes: Any) -> SparseTensor:
    order = np.lexsort(places.T[::-1]) if places.shape[1] else np.arange(len(places))
    return made_of(places[order], elements_at(values, order), sizes)

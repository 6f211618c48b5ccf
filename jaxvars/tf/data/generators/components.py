"""What an element consists of in a file: arrays, and a description of its specs for JSON.

A tensor is one array; a ragged one its values and the splits of its rows, from the outermost; a
sparse one its indices, values and shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from jaxvars.tf import nest
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.elements import Element, leaves, map_leaves, to_host, to_ragged, to_tensor
from jaxvars.tf.tensors.ragged_spec import RaggedTensorSpec
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.specs import SparseTensorSpec, TensorSpec


# ---------------------------------------------------------------- arrays
def arrays_of(element: Element) -> list[np.ndarray]:
    """Return the arrays of an element."""
    parts = (nest.flatten(leaf, expand_composites=True) for leaf in leaves(element))
    return [to_host(part) for each in parts for part in each]


def is_same(one: Element, other: Element) -> bool:
    """Return whether two elements of one spec have the same values."""
    return all(map(_is_same_array, arrays_of(one), arrays_of(other)))


def _is_same_array(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype == object:
        return one.tolist() == other.tolist()
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def element_of(spec: Any, arrays: Iterable[np.ndarray]) -> Element:
    """Return the element of some specs that consists of arrays."""
    given = iter(arrays)
    return map_leaves(lambda leaf: _leaf_of(leaf, given), spec)


def _leaf_of(spec: Any, given: Iterator[np.ndarray]) -> Any:
    if isinstance(spec, SparseTensorSpec):
        return SparseTensor(*(to_tensor(next(given)) for _ in range(3)))
    first = next(given)
    if not isinstance(spec, RaggedTensorSpec):
        return first
    splits = [next(given) for _ in range(spec.ragged_rank)]
    if not splits:
        return to_ragged(first)
    return RaggedTensor.from_nested_row_splits(to_tensor(first), splits, validate=False)


# ---------------------------------------------------------------- specs
def spec_to_json(spec: Any) -> Any:
    """Return the specs of an element as what JSON can represent."""
    if isinstance(spec, dict):
        return {"dict": {key: spec_to_json(part) for key, part in spec.items()}}
    if isinstance(spec, tuple):
        return {"tuple": list(map(spec_to_json, spec))}
    shape = None if spec.shape.rank is None else spec.shape.as_list()
    facts = {"shape": shape, "dtype": spec.dtype.name}
    if isinstance(spec, RaggedTensorSpec):
        return {**facts, "ragged_rank": spec.ragged_rank, "splits": spec._serialize()[3].name}
    return {**facts, "is_sparse": True} if isinstance(spec, SparseTensorSpec) else facts


def spec_from_json(data: Any) -> Any:
    """Return the specs that `spec_to_json` has returned."""
    if "dict" in data:
        return {key: spec_from_json(part) for key, part in data["dict"].items()}
    if "tuple" in data:
        return tuple(map(spec_from_json, data["tuple"]))
    shape, dtype = data["shape"], as_dtype(data["dtype"])
    if "ragged_rank" in data:
        return RaggedTensorSpec(shape, dtype, data["ragged_rank"], as_dtype(data["splits"]))
    return (SparseTensorSpec if "is_sparse" in data else TensorSpec)(shape, dtype)

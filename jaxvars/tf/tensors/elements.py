"""Elements of datasets: structures of tensors, on the host until they are requested.

Rules this file keeps:
- tuples and dicts are structures; a list is a tensor, as everywhere in `tf.data`; None is a
  structure of nothing;
- a leaf is a NumPy array (strings: of bytes), a Tensor that a function returned, or a Dataset;
- arrays that were put into a dataset are never written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np

from jaxvars.tf import nest
from jaxvars.tf.errors import DataLossError
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.python_values import fitting
from jaxvars.tf.tensors.ragged_base import DISPATCH
from jaxvars.tf.tensors.ragged_spec import RaggedTensorSpec
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor, flat_of, make, parts_of, unflatten
from jaxvars.tf.tensors.sparse_tensor import SparseTensor, row_of, stack_rows, whole_of
from jaxvars.tf.tensors.specs import SparseTensorSpec, TensorSpec
from jaxvars.tf.tensors.static import refused, require_known
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context

Element: TypeAlias = Any
Leaf: TypeAlias = Any


def is_structure(value: Any) -> bool:
    """Return whether a value is a structure, not a tensor."""
    return isinstance(value, tuple | Mapping)


def leaves(structure: Any) -> list[Any]:
    """Return the leaves of a structure."""
    if not is_structure(structure):
        return [] if structure is None else [structure]
    return [leaf for part in nest._parts(structure) for leaf in leaves(part)]


def map_leaves(func: Callable[..., Any], *structures: Any) -> Any:
    """Return a structure of what a function makes of the leaves of others of its form."""
    first = structures[0]
    if not is_structure(first):
        return None if first is None else func(*structures)
    parts = [nest._parts(x) if is_structure(x) else [] for x in structures]
    if any(len(each) != len(parts[0]) for each in parts):
        raise ValueError(f"The two structures don't have the same nested structure: {structures}.")
    return nest._like(first, [map_leaves(func, *each) for each in zip(*parts, strict=True)])


def pack_leaves(structure: Any, values: Sequence[Any]) -> Any:
    """Return a structure with other leaves."""
    given = iter(values)
    return map_leaves(lambda _: next(given), structure)


# ---------------------------------------------------------------- leaves
def to_stored(value: Any) -> Any:
    """Return what was given to a dataset as an array that nothing else writes to, or a tape has."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return fitting(value).copy()
    if hasattr(value, "element_spec"):
        return value
    if isinstance(value, RaggedTensor):
        flat = require_known(value.flat_values, "What a dataset is made of")
        return value.with_flat_values(to_tensor(flat))
    if isinstance(value, SparseTensor):
        return value.with_values(
            to_tensor(require_known(value.values, "What a dataset is made of"))
        )
    return require_known(_convert.to_array(value), "What a dataset is made of")


def to_host(leaf: Leaf) -> Any:
    """Return a leaf as a NumPy array; a ragged one as it is."""
    return np.asarray(leaf._array) if isinstance(leaf, Tensor) else leaf


def to_tensor(leaf: Leaf) -> Any:
    """Return a leaf as what a program sees."""
    if not isinstance(leaf, np.ndarray):
        return make(leaf._flat, leaf._parts) if isinstance(leaf, RaggedTensor) else leaf
    if _convert.is_text(leaf):
        return Tensor(leaf)
    with context.at(context.EVAL):
        return Tensor(jnp.asarray(fitting(leaf)))


def to_tensors(element: Element) -> Element:
    """Return an element as what a program sees."""
    return to_tensor(element) if not is_structure(element) else map_leaves(to_tensor, element)


def to_numpy(element: Element) -> Element:
    """Return an element as NumPy arrays and scalars; strings as bytes."""
    return map_leaves(_leaf_to_numpy, element)


def _leaf_to_numpy(leaf: Leaf) -> Any:
    if isinstance(leaf, SparseTensor):
        return whole_of(leaf)
    return leaf.numpy() if isinstance(leaf, RaggedTensor) else to_host(leaf)[()]


def key_of(element: Element) -> Any:
    """Return what two tensors have in common only if they are equal."""
    array = to_host(element)
    return array.tobytes() if array.dtype != object else tuple(array.ravel())


def to_ragged(leaf: Leaf) -> Leaf:
    """Return a leaf as the row of a ragged tensor, which may have no partitions itself."""
    found = leaf if isinstance(leaf, RaggedTensor | Tensor) else Tensor(np.asarray(leaf))
    return unflatten(parts_of(found), (flat_of(found),))


def _row(leaf: Any, i: int) -> Leaf:
    if isinstance(leaf, SparseTensor):
        return row_of(leaf, i)
    if not isinstance(leaf, RaggedTensor):
        return leaf[i, ...]
    found = to_tensor(leaf)
    return to_host(found[i]) if isinstance(found, Tensor) else to_ragged(found[i])


# ---------------------------------------------------------------- several at once
def slice_rows(structure: Any) -> tuple[int, Callable[[int], Element]]:
    """Return the number of slices along the first dimension, and what takes one."""
    flat = [to_host(leaf) for leaf in leaves(structure)]
    if not flat:
        raise ValueError("There must be at least one tensor to slice.")
    if any(not len(leaf.shape) for leaf in flat):
        raise ValueError("Unbatching a tensor is only supported for rank >= 1")
    size = flat[0].shape[0]
    for leaf in flat:
        if leaf.shape[0] != size:
            raise ValueError(f"Dimensions {size} and {leaf.shape[0]} are not compatible")
    if not is_structure(structure):
        return size, lambda i: _row(flat[0], i)
    return size, lambda i: pack_leaves(structure, [_row(leaf, i) for leaf in flat])


def batch_elements(elements: Sequence[Element]) -> Element:
    """Return some elements as one, with a new first dimension."""
    columns = [[to_host(leaf) for leaf in leaves(element)] for element in elements]
    stacks = [_stack(i, column) for i, column in enumerate(zip(*columns, strict=True))]
    return pack_leaves(elements[0], stacks)


def _stack(component: int, column: Sequence[Any]) -> Any:
    if isinstance(column[0], SparseTensor):
        return stack_rows(column)
    if isinstance(column[0], RaggedTensor):
        return DISPATCH["stack"](None, {"values": list(map(to_tensor, column)), "axis": 0})
    first = column[0].shape
    for i, leaf in enumerate(column):
        if leaf.shape != first:
            raise refused(
                f"Cannot batch tensors with different shapes in component {component}. First "
                f"element had shape {list(first)} and element {i} had shape {list(leaf.shape)}. "
                "[Op:IteratorGetNext] name: "
            )
    return np.stack(column)


def pad(elements: Sequence[Element], shapes: Any, values: Any) -> Element:
    """Return some elements as one, each padded to the size of the largest.

    `shapes` are in the structure of an element, with None or -1 for the largest size; `values`, to
    pad with, too, or one for all, or None for zeros and empty strings.
    """
    pairs = check_padding(map_leaves(open_spec_of, elements[0]), shapes, values)
    columns = zip(*([to_host(x) for x in leaves(element)] for element in elements), strict=True)
    made = [_pad_column(column, *pair) for column, pair in zip(columns, pairs, strict=True)]
    return pack_leaves(elements[0], made)


def check_padding(spec: Any, shapes: Any, values: Any) -> list[tuple[Any, Any]]:
    """Return the shape and value for each leaf; raise an error if they do not fit: see `pad`."""
    flat = leaves(spec)
    wanted = [None] * len(flat) if shapes is None else shapes_of(spec, shapes)
    fillers = shapes_of(spec, values) if is_structure(values) else [values] * len(flat)
    pairs = list(zip(wanted, fillers, strict=True))
    for leaf, pair in zip(flat, pairs, strict=True):
        _check_padded(leaf, *pair)
    return pairs


def _check_padded(spec: Any, shape: Any, value: Any) -> None:
    if type(spec) is not TensorSpec:
        is_ragged = isinstance(spec, RaggedTensorSpec)
        raise TypeError(
            "`padded_batch` is only supported for datasets that produce tensor elements but "
            "type spec of elements in the input dataset is not a subclass of TensorSpec: "
            f"`{spec}`. Write batch(n), and "
            f"{'x.to_tensor()' if is_ragged else 'tf.sparse.to_dense(x)'} for each."
        )
    if shape is not None:
        given = [-1 if n is None else n for n in shape]
        array = np.asarray(given) if given else np.zeros(0, np.int64)
        must = f"Padded shape {shape} must be a `tf.int64` vector tensor, but its"
        if array.ndim != 1:
            raise ValueError(f"{must} shape was {array.shape}.")
        if array.dtype.kind not in "iu":
            raise TypeError(f"{must} element type was {array.dtype.name}.")
        sizes = spec.shape.as_list() if spec.shape.rank is not None else array
        if len(sizes) != len(array) or any(
            n is not None and -1 < most < n for n, most in zip(sizes, array.tolist(), strict=True)
        ):
            raise ValueError(
                f"The padded shape {tuple(array.tolist())} is not compatible with the shape "
                f"{spec.shape} of the corresponding input component."
            )
    if value is None:
        return
    fill, wrong = _convert.to_array(value), "Invalid `padding_values`. `padding_values` values"
    if fill.ndim:
        raise ValueError(f"{wrong} should be scalars, but got {fill.shape}.")
    if _convert.dtype_of(fill) != spec.dtype:
        raise TypeError(
            f"{wrong} type {_convert.dtype_of(fill)!r} does not match type {spec.dtype!r} of the "
            "corresponding input component."
        )


def pad_spec(spec: Any, shape: Any) -> Any:
    """Return the spec of tensors that are padded to a shape."""
    sizes = [None if n is None or n == -1 else int(n) for n in shape]
    return TensorSpec(sizes, spec.dtype)


def shapes_of(element: Element, shapes: Any) -> list[Any]:
    """Return the shapes to pad to, one for each leaf: a shape may be a tuple itself."""
    if not is_structure(element):
        return [] if element is None else [shapes]
    if isinstance(element, Mapping):
        pairs = [(element[key], shapes[key]) for key in sorted(element)]
    else:
        pairs = list(zip(element, shapes, strict=True))
    return [found for part, shape in pairs for found in shapes_of(part, shape)]


def _pad_column(column: Sequence[np.ndarray], shape: Any, value: Any) -> np.ndarray:
    largest = np.max([leaf.shape for leaf in column], axis=0).astype(int).tolist()
    given = largest if shape is None else [-1 if n is None else int(n) for n in shape]
    sizes = [most if n == -1 else n for n, most in zip(given, largest, strict=True)]
    if any(most > size for size, most in zip(sizes, largest, strict=True)):
        raise DataLossError(
            message="Attempted to pad to a smaller size than the input element: "
            f"{largest} to {sizes} [Op:IteratorGetNext] name: "
        )
    dtype = column[0].dtype
    empty = b"" if _convert.is_text(column[0]) else 0
    filler = empty if value is None else require_known(value, "padding_values")[()]
    made = np.full((len(column), *sizes), filler, dtype)
    for i, leaf in enumerate(column):
        made[(i, *map(slice, leaf.shape))] = leaf[()]  # of a string without dimensions, itself
    return made


# ---------------------------------------------------------------- specs
def spec_of(leaf: Leaf) -> Any:
    """Return the spec of a leaf."""
    if hasattr(leaf, "element_spec"):
        return DatasetSpec(leaf.element_spec)
    if isinstance(leaf, RaggedTensor):
        return RaggedTensorSpec.from_value(leaf)
    if isinstance(leaf, SparseTensor):
        return SparseTensorSpec.from_value(leaf)
    array = to_host(leaf)
    return TensorSpec(array.shape, _convert.dtype_of(array))


def open_spec_of(leaf: Leaf) -> Any:
    """Return the spec of a leaf with sizes that may be others in the next element."""
    spec = spec_of(leaf)
    if type(spec) is RaggedTensorSpec:
        return RaggedTensorSpec([None] * len(spec.shape), spec.dtype, spec.ragged_rank)
    if not isinstance(spec, TensorSpec | SparseTensorSpec):
        return spec
    return type(spec)([None] * len(spec.shape), spec.dtype)


def add_dimension(spec: Any, size: int | None) -> Any:
    """Return the spec of tensors with one more dimension in front."""
    if spec.shape.rank is None:
        return spec
    sizes = [size, *spec.shape.as_list()]
    if isinstance(spec, RaggedTensorSpec):
        sizes = [size, None, *spec.shape.as_list()[1:]]
        return RaggedTensorSpec(sizes, spec.dtype, spec.ragged_rank + 1)
    return type(spec)(sizes, spec.dtype)


def drop_dimension(spec: Any) -> Any:
    """Return the spec of tensors without their first dimension."""
    if isinstance(spec, RaggedTensorSpec) and spec.ragged_rank:
        return RaggedTensorSpec(spec.shape.as_list()[1:], spec.dtype, spec.ragged_rank - 1)
    kind = SparseTensorSpec if isinstance(spec, SparseTensorSpec) else TensorSpec
    return kind(spec.shape.as_list()[1:], spec.dtype) if spec.shape.rank else spec


def merge_specs(spec: Any, other: Any) -> Any:
    """Return the spec of what is one or the other: sizes that differ are open."""
    if not isinstance(spec, TensorSpec | SparseTensorSpec) or spec == other:
        return spec
    shape = spec.shape.most_specific_compatible_shape(other.shape)
    return type(spec)(shape, spec.dtype)


def to_leaf(value: Any, dtype: Any) -> Leaf:
    """Return a value as a leaf of a type."""
    return np.asarray(_convert.to_array(value, as_dtype(dtype)))


class PlainSpec:
    """A spec that is compared by its attributes."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(str(vars(self)))


class DatasetSpec(PlainSpec):
    """The spec of a dataset that is an element of another one.

    Args:
        element_spec: of its elements.
        dataset_shape: of no effect.
    """

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self.element_spec = element_spec

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r}, TensorShape([]))"

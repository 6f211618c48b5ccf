"""`tf.io.parse_example`: tensors from `tf.train.Example`s, as bytes.

Rules this file keeps:
- a feature of a fixed length is a tensor, one of a length that differs a `tf.SparseTensor`,
  a ragged tensor, or a tensor that is padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxvars.tf.messages import parse
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import as_dtype, host_dtype, int32, int64
from jaxvars.tf.tensors.elements import to_stored
from jaxvars.tf.tensors.ragged_base import Partition
from jaxvars.tf.tensors.ragged_tensor import make
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor

Feature: TypeAlias = "tuple[str, list[Any]] | None"

_KINDS = {"bytes_list": "string", "float_list": "float32", "int64_list": "int64"}


class FixedLenFeature(NamedTuple):
    """A feature with as many values in each example.

    Attributes:
        shape: of its values.
        dtype: string, float32 or int64.
        default_value: what it is where an example has none; it must have one if None.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature with a number of rows that differs between examples, padded to the largest.

    Attributes:
        shape: of a row.
        dtype: string, float32 or int64.
        allow_missing: must be true: an example without it has no rows.
        default_value: what shorter ones are padded with; zeros and empty strings if None.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class RaggedFeature(NamedTuple):
    """A feature with a number of values that differs between examples, as rows.

    Attributes:
        dtype: string, float32 or int64.
        value_key: the name of the feature in the examples; that in the dict when None.
        partitions: must be empty: rows of rows are made of two features, with
            `tf.RaggedTensor.from_row_lengths` and others.
        row_splits_dtype: `tf.int32` or `tf.int64`.
        validate: of no effect.
    """

    dtype: Any
    value_key: str | None = None
    partitions: Any = ()
    row_splits_dtype: Any = int32
    validate: bool = False


class SparseFeature(NamedTuple):
    """Some elements of a tensor, in two features or more: where they are, and what they are.

    Attributes:
        index_key: the name of the feature with the indices, int64; a list of several dimensions'.
        value_key: the name of the feature with the elements.
        dtype: of the elements: string, float32 or int64.
        size: of the dimension; a list where `index_key` is one.
        already_sorted: leave the elements in their order.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class VarLenFeature(NamedTuple):
    """A feature with a number of values that differs between examples.

    Attributes:
        dtype: string, float32 or int64.
    """

    dtype: Any


_FEATURES = FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, RaggedFeature, SparseFeature


def parse_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Return tensors from serialized examples, by the names of the features.

    Args:
        serialized: strings, a vector; a scalar as for `parse_single_example`.
        features: what each is: FixedLenFeature, FixedLenSequenceFeature, VarLenFeature,
            RaggedFeature or SparseFeature.
        example_names: what the examples are called in messages.
        name: of no effect.

    Raises:
        InvalidArgumentError: when an example lacks a feature, or has other values.

    Example:
        >>> from jaxvars.tf.train import Example, Feature, Features, Int64List
        >>> feature = {"a": Feature(int64_list=Int64List(value=[5, 7]))}
        >>> example = Example(features=Features(feature=feature)).SerializeToString()
        >>> parse_example([example], {"a": FixedLenFeature([2], "int64")})["a"].numpy().tolist()
        [[5, 7]]
    """
    strings = to_stored(serialized)
    names = None if example_names is None else to_stored(example_names).reshape(-1)
    if not _convert.is_text(strings) or strings.ndim > 1:
        raise refused(f"Expected serialized to be a scalar or vector, got shape {strings.shape}.")
    _check(features)
    found = [_parse_features(string) for string in strings.reshape(-1)]
    made: dict[str, Any] = {}
    for key in sorted(features):
        feature, is_single = features[key], strings.ndim == 0
        if isinstance(feature, SparseFeature):
            made[key] = _merge_sparse(found, feature, is_single)
        else:
            values = [each.get(getattr(feature, "value_key", None) or key) for each in found]
            made[key] = _parse_feature(key, values, feature, names, is_single)
    return made


def parse_single_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Return tensors from a serialized example, by the names of the features.

    Args:
        serialized: a string, a scalar.
        features: as for `parse_example`.
        example_names: what the example is called in messages.
        name: of no effect.

    Raises:
        ValueError: when there are no features.
        InvalidArgumentError: when the example lacks a feature, or has other values.
    """
    if not features:
        raise ValueError("Missing features.")
    string = to_stored(serialized)
    if string.ndim:
        raise refused(f"Input serialized must be a scalar, got shape {list(string.shape)}.")
    return parse_example(string, features, example_names)


def _check(features: Any) -> None:
    if not features:
        raise ValueError(f"Missing: features was {features}.")
    for key, feature in features.items():
        if not isinstance(feature, _FEATURES):
            raise ValueError(f"Invalid feature {key}:{feature}.")
        if host_dtype(feature.dtype).name not in _KINDS.values():
            raise TypeError(f"Feature {key!r} must be of string, float32 or int64.")
        for part in ("index_key", "value_key"):
            if isinstance(feature, SparseFeature) and not getattr(feature, part):
                raise ValueError(f"Missing {part} for SparseFeature {feature}.")
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise ValueError(
                "Unsupported: FixedLenSequenceFeature requires allow_missing to be True."
            )
        if isinstance(feature, RaggedFeature) and feature.partitions:
            raise ValueError(
                f"Feature {key!r} has partitions, which are not read here. Read values and lengths "
                "as two RaggedFeatures, and put them together:\n"
                "    rows = tf.RaggedTensor.from_row_lengths(values.values, lengths.values)\n"
                "    rows = tf.RaggedTensor.from_row_lengths(rows, lengths.row_lengths())"
            )


def _parse_features(string: bytes) -> dict[str, Feature]:
    """Return the features of an example: kind and values, by name."""
    found: dict[str, Feature] = {}
    for key, feature in parse("Example", string).features.feature.items():
        kind = feature.WhichOneof("kind")
        found[key] = kind and (_KINDS[kind], list(getattr(feature, kind).value))
    return found


def _make_ragged(key: str, found: Sequence[Feature], feature: Any, is_single: bool) -> Any:
    """Return the values of examples as rows; those of a single one as a vector."""
    dtype = host_dtype(feature.dtype)
    rows = [_check_values(key, i, given, dtype, "<unknown>") for i, given in enumerate(found)]
    flat = Tensor(_convert.to_array([value for row in rows for value in row], dtype))
    kind = as_dtype(feature.row_splits_dtype).dtype
    return flat if is_single else make(flat, [Partition.of_lengths(list(map(len, rows)), kind)])


def _merge_sparse(
    examples: Sequence[dict[str, Feature]], feature: SparseFeature, is_single: bool
) -> SparseTensor:
    """Return the elements of examples in the places that other features say."""
    is_list = isinstance(feature.index_key, list | tuple)
    if is_list is not isinstance(feature.size, list | tuple):
        raise TypeError(f"index_key and size are both lists, or neither: {feature}.")
    keys = [*feature.index_key] if is_list else [feature.index_key]
    sizes = [*feature.size] if is_list else [feature.size]
    rows = [
        (i, *row)
        for i, example in enumerate(examples)
        for row in _elements_of(i, example, keys, feature)
    ]
    places, shape = [row[:-1] for row in rows], [len(examples), *map(int, sizes)]
    return _sparse(places, [row[-1] for row in rows], shape, feature.dtype, is_single)


def _elements_of(
    i: int, example: dict[str, Feature], keys: Sequence[str], feature: SparseFeature
) -> list[tuple[Any, ...]]:
    """Return the elements in an example, each after its indices."""
    whole, dtype = int64, host_dtype(feature.dtype)
    wanted = [*((key, whole) for key in keys), (feature.value_key, dtype)]
    columns = [_check_values(key, i, example.get(key), kind, "<unknown>") for key, kind in wanted]
    if len({len(column) for column in columns}) > 1:
        raise refused(
            f"Example {i} has {len(columns[-1])} values in {feature.value_key!r}, and "
            f"{[len(column) for column in columns[:-1]]} indices in {keys}: each value has one."
        )
    rows = list(zip(*columns, strict=True))
    return rows if feature.already_sorted else sorted(rows, key=lambda row: row[:-1])


def _make_sparse(key: str, found: Sequence[Feature], dtype: Any, is_single: bool) -> SparseTensor:
    """Return the values of examples, each as many as it has."""
    rows = [_check_values(key, i, given, dtype, "<unknown>") for i, given in enumerate(found)]
    places = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    shape = [len(rows), max(map(len, rows), default=0)]
    return _sparse(places, [value for row in rows for value in row], shape, dtype, is_single)


def _sparse(
    places: Sequence[Any], values: list[Any], shape: list[int], dtype: Any, is_single: bool
) -> SparseTensor:
    """Return elements of examples; of a single one, without the first dimension."""
    first, indices = int(is_single), np.array(places, np.int64).reshape(-1, len(shape))
    sizes = np.array(shape[first:], np.int64)
    return SparseTensor(indices[:, first:], _to_row(values, host_dtype(dtype)), sizes)


def _to_row(values: list[Any], dtype: Any) -> np.ndarray:
    made = np.empty(len(values), object if dtype.is_string else dtype.dtype)
    made[:] = values
    return made


def _check_values(key: str, i: int, given: Feature, dtype: Any, who: str) -> list[Any]:
    """Return the values of a feature in an example."""
    if given is None:
        return []
    if given[1] and given[0] != dtype.name:
        raise refused(
            f"Name: {who}, Key: {key}, Index: {i}.  Data types don't match. Data type: "
            f"{given[0]} but expected type: {dtype.name}"
        )
    return given[1]


def _parse_feature(
    key: str, found: Sequence[Feature], feature: Any, names: Any, is_single: bool
) -> Any:
    dtype = host_dtype(feature.dtype)
    if isinstance(feature, VarLenFeature):
        return _make_sparse(key, found, dtype, is_single)
    if isinstance(feature, RaggedFeature):
        return _make_ragged(key, found, feature, is_single)
    shape = tuple(int(n or 0) for n in TensorShape(feature.shape).as_list())
    size = int(np.prod(shape))
    rows: list[np.ndarray] = []
    for i, given in enumerate(found):
        who = "<unknown>" if names is None else names[i].decode()
        _check_values(key, i, given, dtype, who)
        rows.append(_make_row(key, given, feature, shape, size, f"Name: {who}, Feature: {key}"))
    whole = _pad_rows(rows, shape, feature, dtype)
    return Tensor(_convert.to_array(whole[0] if is_single else whole))


def _make_row(
    key: str, given: Feature, feature: Any, shape: tuple[int, ...], size: int, who: str
) -> np.ndarray:
    dtype = host_dtype(feature.dtype)
    is_sequence = isinstance(feature, FixedLenSequenceFeature)
    if given is None and not is_sequence:
        if feature.default_value is None:
            raise refused(f"{who} (data type: {dtype.name}) is required but could not be found.")
        default = to_stored(_convert.to_array(feature.default_value, dtype))
        return np.broadcast_to(default.reshape(shape) if default.size > 1 else default, shape)
    values = [] if given is None else given[1]
    if is_sequence and size and len(values) % size == 0:
        shape = (len(values) // size, *shape)
    elif len(values) != size:
        raise refused(
            f"Key: {key}, {who}. Number of {dtype.name} values != expected.  Values size: "
            f"{len(values)} but output shape: {list(shape)}"
        )
    return _to_row(values, dtype).reshape(shape)


def _pad_rows(
    rows: list[np.ndarray], shape: tuple[int, ...], feature: Any, dtype: Any
) -> np.ndarray:
    kind = np.dtype(object) if dtype.is_string else dtype.dtype
    if not isinstance(feature, FixedLenSequenceFeature):
        return np.stack(rows) if rows else np.empty((0, *shape), kind)
    most = max((len(row) for row in rows), default=0)
    filler: Any = b"" if dtype.is_string else 0
    if feature.default_value is not None:
        filler = to_stored(_convert.to_array(feature.default_value, dtype))[()]
    whole = np.full((len(rows), most, *shape), filler, kind)
    for i, row in enumerate(rows):
        whole[i, : len(row)] = row
    return whole

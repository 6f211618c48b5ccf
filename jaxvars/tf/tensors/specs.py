"""`tf.TypeSpec` and its kinds, like `tf.TensorSpec`: what is known of a value before there is one.

A spec is made of a few parts, by which it is compared, hashed, copied and shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias, final

from jaxvars.objects.identity import told_by_pickle
from jaxvars.tf.attributes import getter
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype, float32, int64
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.slices import IndexedSlices
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.tensor import Tensor

Parts: TypeAlias = tuple[Any, ...]


class TypeSpec(ABC):
    """The base of what describes values: `tf.TensorSpec`, `tf.IndexedSlicesSpec`, ..."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        told_by_pickle(cls)

    @property
    @abstractmethod
    def value_type(self) -> type:
        """The class of the values."""

    @abstractmethod
    def _serialize(self) -> Parts:
        """Return the arguments that it was made with."""

    @classmethod
    @abstractmethod
    def _of(cls, value: Any) -> Any:
        """Return the spec of a value."""

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Return whether a value, or one of another spec, can be one of this spec."""
        other = spec_or_tensor
        if isinstance(other, self.value_type):
            other = self._of(other)
        if type(other) is not type(self):
            return False
        pairs = zip(self._serialize(), other._serialize(), strict=True)
        return all(
            a.is_compatible_with(b) if isinstance(a, TensorShape) else a == b for a, b in pairs
        )

    def is_subtype_of(self, other: Any) -> bool:
        """Return whether each value of this spec is one of another, too."""
        if type(other) is not type(self):
            return False
        pairs = zip(self._serialize(), other._serialize(), strict=True)
        return all(a.is_subtype_of(b) if isinstance(a, TensorShape) else a == b for a, b in pairs)

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        """Return the most specific spec that this and others fit; None if there is none."""
        if any(type(other) is not type(self) for other in others):
            return None
        columns = zip(*(spec._serialize() for spec in (self, *others)), strict=True)
        try:
            return type(self)(*map(_merge, columns))
        except ValueError:
            return None

    def most_specific_compatible_type(self, other: Any) -> Any:
        """Return the most specific spec that this and another one fit.

        Raises:
            ValueError: when there is none.
        """
        found = self.most_specific_common_supertype([other])
        if found is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return found

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._serialize() == other._serialize()

    def __hash__(self) -> int:
        return hash((type(self), str(self._serialize())))

    def __reduce__(self) -> Any:
        return type(self), self._serialize()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._serialize()))})"


def _merge(column: tuple[Any, ...]) -> Any:
    first = column[0]
    if isinstance(first, TensorShape):
        for other in column[1:]:
            first = first.most_specific_compatible_shape(other)
        return first
    if any(other != first for other in column):
        raise ValueError(f"{column} differ")
    return first


@final
class TensorSpec(TypeSpec):
    """The shape and type of a tensor, for `input_signature` and `get_concrete_function`.

    Args:
        shape: sizes, None for one that is open; or None, if nothing is known.
        dtype: the type of the elements.
        name: what it is called.

    >>> TensorSpec([None, 2])
    TensorSpec(shape=(None, 2), dtype=tf.float32, name=None)
    """

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape: Any, dtype: Any = float32, name: str | None = None) -> None:
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._name = name

    shape = getter("_shape", "The sizes of the dimensions.")
    dtype = getter("_dtype", "The type of the elements.")
    name = getter("_name", "What it is called.")

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """Return a spec like another one, with another name if one is given."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """Return the spec of a tensor.

        Raises:
            ValueError: when it is none.
        """
        if not hasattr(tensor, "shape") or not hasattr(tensor, "dtype"):
            raise ValueError(f"`tensor` should be a tf.Tensor, but got type {type(tensor)}.")
        return cls(tensor.shape, tensor.dtype, name)

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Return whether a tensor, or one of another spec, can have this type and shape."""
        other = spec_or_tensor
        if not hasattr(other, "shape") or not hasattr(other, "dtype"):
            other = Tensor(to_array(other))
        same = as_dtype(other.dtype) == self._dtype
        return same and self._shape.is_compatible_with(other.shape)

    def is_subtype_of(self, other: Any) -> bool:
        """Return whether each tensor of this spec is one of another, too."""
        is_same = isinstance(other, TensorSpec) and other._dtype == self._dtype
        return (
            is_same
            and self._name in (None, "", other._name)
            and self._shape.is_subtype_of(other._shape)
        )

    @property
    def value_type(self) -> type:
        """Tensor."""
        return Tensor

    @classmethod
    def _of(cls, value: Any) -> TensorSpec:
        return cls.from_tensor(value)

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._name

    def __repr__(self) -> str:
        shape = self._shape if self._shape.rank is None else tuple(self._shape)
        return f"TensorSpec(shape={shape}, dtype={self._dtype!r}, name={self._name!r})"


@final
class IndexedSlicesSpec(TypeSpec):
    """What is known of `tf.IndexedSlices`.

    Args:
        shape: of the whole tensor.
        dtype: of the rows.
        indices_dtype: of the indices.
        dense_shape_dtype: of the dense shape; None if there is none.
        indices_shape: of the indices.

    >>> IndexedSlicesSpec([3, 2])
    IndexedSlicesSpec(TensorShape([3, 2]), tf.float32, tf.int64, None, TensorShape([None]))
    """

    __slots__ = ("_parts",)

    def __init__(
        self, shape: Any = None, dtype: Any = float32, indices_dtype: Any = int64,
        dense_shape_dtype: Any = None, indices_shape: Any = None,
    ) -> None:  # fmt: skip
        self._parts: Parts = (
            TensorShape(shape),
            as_dtype(dtype),
            as_dtype(indices_dtype),
            None if dense_shape_dtype is None else as_dtype(dense_shape_dtype),
            TensorShape([None] if indices_shape is None else indices_shape),
        )

    @property
    def value_type(self) -> type:
        """IndexedSlices."""
        return IndexedSlices

    @classmethod
    def _of(cls, value: IndexedSlices) -> IndexedSlicesSpec:
        indices, dense = Tensor(to_array(value.indices)), value.dense_shape
        kind = None if dense is None else Tensor(to_array(dense)).dtype
        return cls(value.shape, value.dtype, indices.dtype, kind, indices.shape)

    def _serialize(self) -> Parts:
        return self._parts


@final
class SparseTensorSpec(TypeSpec):
    """What is known of a `tf.SparseTensor`.

    Args:
        shape: of the whole tensor.
        dtype: of the elements.

    >>> SparseTensorSpec([None, 3])
    SparseTensorSpec(TensorShape([None, 3]), tf.float32)
    """

    __slots__ = ("_parts",)

    def __init__(self, shape: Any = None, dtype: Any = float32) -> None:
        self._parts: Parts = TensorShape(shape), as_dtype(dtype)

    shape = property(lambda self: self._parts[0], doc="The shape of the whole tensor.")
    dtype = property(lambda self: self._parts[1], doc="The type of the elements.")

    @property
    def value_type(self) -> type:
        """SparseTensor."""
        return SparseTensor

    @classmethod
    def from_value(cls, value: SparseTensor) -> SparseTensorSpec:
        """Return the spec of a sparse tensor."""
        return cls(value.shape, value.dtype)

    @classmethod
    def _of(cls, value: Any) -> SparseTensorSpec:
        return cls.from_value(value)

    def _serialize(self) -> Parts:
        return self._parts


@final
class NoneTensorSpec(TypeSpec):
    """What is known of None.

    >>> NoneTensorSpec()
    NoneTensorSpec()
    """

    __slots__ = ()

    @property
    def value_type(self) -> type:
        """The class of None."""
        return type(None)

    @classmethod
    def _of(cls, value: Any) -> NoneTensorSpec:
        return cls()

    def _serialize(self) -> Parts:
        return ()

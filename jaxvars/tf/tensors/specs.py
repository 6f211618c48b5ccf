"""`tf.TensorSpec`: the shape and type of a tensor, without a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import DType, as_dtype, float32
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.tensors.type_specs import TypeSpec


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

    @property
    def shape(self) -> TensorShape:
        """The sizes of the dimensions."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """What it is called."""
        return self._name

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
        if not isinstance(other, TensorSpec) or other._dtype != self._dtype:
            return False
        if other._shape.rank is None:
            return True
        if self._shape.rank != other._shape.rank:
            return False
        pairs = zip(tuple(self._shape), tuple(other._shape), strict=True)
        return all(theirs is None or mine == theirs for mine, theirs in pairs)

    @property
    def value_type(self) -> type:
        """Tensor."""
        return Tensor

    def most_specific_common_supertype(self, others: Sequence[Any]) -> TensorSpec | None:
        """Return the most specific spec that this and others fit; None if there is none."""
        shape, name = self._shape, self._name
        for other in others:
            if not isinstance(other, TensorSpec) or other._dtype != self._dtype:
                return None
            shape = shape.most_specific_compatible_shape(other._shape)
            name = name if other._name == name else None
        return TensorSpec(shape, self._dtype, name)

    @classmethod
    def _of(cls, value: Any) -> TensorSpec:
        return cls.from_tensor(value)

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._name

    def _key(self) -> Any:
        rank = self._shape.rank
        return (None if rank is None else tuple(self._shape)), self._dtype, self._name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash((self._key()[0], self._dtype.name))

    def __repr__(self) -> str:
        shape = None if self._shape.rank is None else tuple(self._shape)
        text = TensorShape(self._shape) if shape is None else shape
        return f"TensorSpec(shape={text}, dtype={self._dtype!r}, name={self._name!r})"

"""`tf.type_spec_from_value`, and the spec of arrays that are written element by element."""

from __future__ import annotations

from typing import Any, final

from jaxvars.tf.control.tensor_array import TensorArray
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype, float32
from jaxvars.tf.tensors.ragged_spec import RaggedTensorSpec
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.specs import (
    IndexedSlicesSpec,
    NoneTensorSpec,
    Parts,
    SparseTensorSpec,
    TensorSpec,
    TypeSpec,
)
from jaxvars.tf.tensors.tensor import Tensor


@final
class TensorArraySpec(TypeSpec):
    """What is known of a `tf.TensorArray`.

    Args:
        element_shape: of the elements.
        dtype: of the elements.
        dynamic_size: whether it may grow.
        infer_shape: whether all elements have one shape.

    >>> TensorArraySpec([2])
    TensorArraySpec(TensorShape([2]), tf.float32, False, True)
    """

    __slots__ = ("_parts",)

    def __init__(
        self, element_shape: Any = None, dtype: Any = float32, dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:  # fmt: skip
        shape = TensorShape(element_shape)
        self._parts: Parts = (shape, as_dtype(dtype), dynamic_size, infer_shape)

    @classmethod
    def from_value(cls, value: Any) -> TensorArraySpec:
        """Return the spec of a `tf.TensorArray`."""
        return cls(value.element_shape, value.dtype, value.dynamic_size)

    @classmethod
    def _of(cls, value: Any) -> TensorArraySpec:
        return cls.from_value(value)

    @property
    def value_type(self) -> type:
        """TensorArray."""
        return TensorArray

    def _serialize(self) -> Parts:
        return self._parts


def type_spec_from_value(value: Any) -> Any:
    """Return the spec of a value.

    Args:
        value: a tensor, or what becomes one; a dataset, TensorArray, IndexedSlices, SparseTensor,
            RaggedTensor, ExtensionType; None.

    Raises:
        TypeError: when it has none.

    >>> type_spec_from_value([1.0, 2.0])
    TensorSpec(shape=(2,), dtype=tf.float32, name=None)
    """
    from jaxvars.tf.data import Dataset, DatasetSpec

    if isinstance(value, Dataset):
        return DatasetSpec(value.element_spec)
    own = getattr(type(value), "Spec", None)
    if own is not None and hasattr(own, "from_value"):  # an ExtensionType
        return own.from_value(value)
    plain = NoneTensorSpec(), IndexedSlicesSpec(), TensorArraySpec(), SparseTensorSpec()
    for spec in (*plain, RaggedTensorSpec(ragged_rank=1)):
        if isinstance(value, spec.value_type):
            return spec._of(value)
    try:
        return TensorSpec.from_tensor(Tensor(to_array(value)))
    except (TypeError, ValueError):
        raise TypeError(
            f"Could not build a TypeSpec for {value!r} of unsupported type {type(value)}."
        ) from None

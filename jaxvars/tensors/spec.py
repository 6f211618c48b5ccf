"""`TensorSpec`: the shape and dtype of a tensor, without a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from jaxvars.tensors.dtypes import as_dtype
from jaxvars.tensors.foreign_arrays import in_numpy, is_foreign_array
from jaxvars.typing import DTypeLike


@final
@dataclass(frozen=True)
class TensorSpec:
    """Describe a tensor: shape, dtype and a name.

    Args:
        shape: sizes; None for a size that may differ between calls.
        dtype: a dtype or its name.
        name: what errors and concrete functions call it.

    >>> import jax.numpy as jnp
    >>> TensorSpec((None, 3)).matches(jnp.ones((5, 3)))
    True
    """

    shape: tuple[int | None, ...]
    dtype: DTypeLike = np.dtype("float32")
    name: str | None = None

    def __post_init__(self) -> None:
        shape = (self.shape,) if isinstance(self.shape, int) else tuple(self.shape)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", as_dtype(self.dtype))

    @classmethod
    def of(cls, value: Any, name: str | None = None) -> TensorSpec:
        """Return the spec of an array."""
        is_other = not hasattr(value, "__jax_array__") and is_foreign_array(value)
        value = in_numpy(value) if is_other else value
        return cls(tuple(value.shape), value.dtype, name)

    def matches(self, value: Any) -> bool:
        """Return whether an array has this shape and dtype."""
        return value.dtype == self.dtype and self.accepts_shape(value.shape)

    def accepts_shape(self, shape: Sequence[int]) -> bool:
        """Return whether `shape` is one of those described."""
        pairs = zip(self.shape, shape, strict=False)
        return len(shape) == len(self.shape) and all(want in (None, have) for want, have in pairs)

    @property
    def is_static(self) -> bool:
        """Return whether every size is known."""
        return None not in self.shape

    def __str__(self) -> str:
        sizes = ",".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.dtype}[{sizes}]"

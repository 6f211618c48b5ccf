"""`tf.experimental.dlpack`: arrays shared with other libraries, without a copy where that works."""

from __future__ import annotations

from typing import Any, final

import jax
import jax.numpy as jnp

from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor

_CPU = (1, 0)


def to_dlpack(tf_tensor: Any) -> Any:
    """Return a tensor as a DLPack capsule, which another library takes once.

    >>> from jaxvars import tf
    >>> from_dlpack(to_dlpack(tf.constant([1, 2])))
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>
    """
    return jnp.asarray(to_array(tf_tensor)).__dlpack__()


def from_dlpack(dlcapsule: Any) -> Tensor:
    """Return what a DLPack capsule, or an array of another library, holds.

    Args:
        dlcapsule: a capsule of memory of the CPU; or an object with `__dlpack__`, of any device.
    """
    given = dlcapsule if hasattr(dlcapsule, "__dlpack__") else _Holder(dlcapsule)
    return Tensor(jax.dlpack.from_dlpack(given))


@final
class _Holder:
    """What gives a capsule to JAX."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU

"""`tf.keras.backend`: the few settings that programs read.

>>> epsilon(), floatx()
(1e-07, 'float32')
"""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from jaxvars.tf.arrays.constant import convert_to_tensor
from jaxvars.tf.keras.adapter.facade import elsewhere
from jaxvars.tf.listing import lister
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.tensor import Tensor


@final
class _Settings:
    epsilon: ClassVar[float] = 1e-7
    floatx: ClassVar[str] = "float32"


def epsilon() -> float:
    """Return the small number that keeps from dividing by zero."""
    return _Settings.epsilon


def set_epsilon(value: float) -> None:
    """Set the small number of `epsilon`; losses and metrics keep theirs."""
    _Settings.epsilon = float(value)


def floatx() -> str:
    """Return the name of the type of floats where none is given."""
    return _Settings.floatx


def set_floatx(value: str) -> None:
    """Set the type of floats where none is given.

    Raises:
        ValueError: when it is not a floating type.
    """
    accepted = ("bfloat16", "float16", "float32", "float64")
    if value not in accepted:
        raise ValueError(f"Unknown `floatx` value: {value}. Expected one of {accepted}")
    _Settings.floatx = value


def image_data_format() -> str:
    """Return where channels are: "channels_last"."""
    return "channels_last"


def cast_to_floatx(x: Any) -> Any:
    """Return a tensor or array in the type of floats."""
    dtype = as_dtype(floatx()).dtype
    if isinstance(x, Tensor):
        return Tensor(x._array.astype(dtype))
    return np.asarray(x, dtype=dtype)


def get_value(x: Any) -> Any:
    """Return the value of a variable or tensor as a NumPy array."""
    return convert_to_tensor(x).numpy()


def set_value(x: Any, value: Any) -> None:
    """Assign a variable."""
    x.assign(to_array(value).astype(x.dtype.dtype))


def clear_session(free_memory: bool = True) -> None:
    """Do nothing: there is no session, and names begin again automatically."""


def __getattr__(name: str) -> Any:
    return elsewhere("backend", name, globals())


__dir__ = lister(__name__)

"""`tf.dtypes`: types, and conversion between them."""

from __future__ import annotations

from typing import Any

from jaxvars.tf.arrays import creation as _creation
from jaxvars.tf.dtypes import experimental as experimental
from jaxvars.tf.registry.rows import find, operations
from jaxvars.tf.tensors.dtypes import DTYPES, EXPERIMENTAL
from jaxvars.tf.tensors.dtypes import DType as DType
from jaxvars.tf.tensors.dtypes import as_dtype as as_dtype

cast = _creation.cast
QUANTIZED_DTYPES = frozenset(dtype for dtype in DTYPES.values() if dtype.is_quantized)
globals().update({name: dtype for name, dtype in DTYPES.items() if name not in EXPERIMENTAL})
globals().update(half=DTYPES["float16"], double=DTYPES["float64"])

_OTHERS = {*DTYPES, "bitcast", "complex", "double", "half", "saturate_cast", "QUANTIZED_DTYPES"}
_elsewhere = operations(__name__, sorted(_OTHERS - set(EXPERIMENTAL)))


def __getattr__(name: str) -> Any:
    if name in ("bitcast", "complex", "saturate_cast"):  # tf.complex and others
        found = find(name)
        if found is not None:
            return found
    return _elsewhere(name)

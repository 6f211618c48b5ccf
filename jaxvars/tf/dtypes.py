"""`tf.dtypes`: types, and conversion between them."""

from __future__ import annotations

from typing import Any

from jaxvars.tf import _creation
from jaxvars.tf._dtypes import DTYPES
from jaxvars.tf._dtypes import DType as DType
from jaxvars.tf._dtypes import as_dtype as as_dtype
from jaxvars.tf._rows import find, operations

cast = _creation.cast
globals().update(DTYPES)

_elsewhere = operations(__name__, [], ["DType", "as_dtype", "cast", *DTYPES])


def __getattr__(name: str) -> Any:
    if name in ("bitcast", "complex", "saturate_cast"):  # tf.complex and others
        found = find(name)
        if found is not None:
            return found
    return _elsewhere(name)

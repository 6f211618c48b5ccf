"""The memory that a variable has."""

from __future__ import annotations

from jaxvars import Variable
from jaxvars.core.cells import CURRENT, STORE


def address(v: Variable) -> int:
    """Return where the value of `v` lies, in the store or not written back yet."""
    write_back, key = CURRENT[0], v._cell.key
    is_pending = write_back and key in write_back.keys
    held = write_back.values[write_back.keys.index(key)] if is_pending else STORE[key]
    return held.unsafe_buffer_pointer()

"""The socket for rules of some operations: by default JAX says all, once a program is replayed.

Rules this file keeps:
- what is registered here comes from higher packages as they are imported, and is only added to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import jax

from jaxvars.tracing.operations import Operation

_is_reverse: Any = jax.make_user_context(False)  # has part in the keys of JAX's caches


def in_reverse(is_reverse: bool = True) -> AbstractContextManager[object]:
    """Differentiate in reverse inside."""
    return _is_reverse(is_reverse)


def is_in_reverse() -> bool:
    """Return whether a tape differentiates in reverse now."""
    return _is_reverse.value


Refusal: TypeAlias = Callable[[ValueError, Sequence[Operation]], str | None]

REFUSALS: list[Refusal] = []
"""What says why some operations cannot be differentiated; None of an error that it is not for."""


def explain_error(error: ValueError, operations: Sequence[Operation]) -> str | None:
    """Return what to say instead of an error that JAX raised as it differentiated operations."""
    return next(filter(None, (refusal(error, operations) for refusal in REFUSALS)), None)

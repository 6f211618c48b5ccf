"""Arrays of the golden files, and how they are compared."""

from __future__ import annotations

from typing import Any

import numpy as np


def array(x: Any) -> Any:
    """Return an array, of float32 where it is of floats; None for None."""
    if x is None:
        return None
    found = np.asarray(x)
    return found.astype(np.float32) if found.dtype.kind == "f" else found


def close(found: Any, expected: Any, **tolerance: float) -> None:
    """Check that numbers are the same, but for rounding."""
    np.testing.assert_allclose(found, expected, **{"rtol": 1e-5, "atol": 2e-6, **tolerance})

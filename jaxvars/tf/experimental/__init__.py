"""`tf.experimental`: NumPy's names."""

from __future__ import annotations

from typing import Any

from jaxvars.tf.experimental import numpy as numpy

__all__ = ["numpy"]


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"tf.experimental has no attribute {name!r}: there is tf.experimental.numpy."
    )

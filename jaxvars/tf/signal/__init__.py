"""`tf.signal`: signals.

fourier   Fourier and cosine transforms
frames    windows, frames, spectrograms, the mel scale
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxvars.tf.registry.rows import operations
from jaxvars.tf.signal import fourier, frames

_PARTS = (fourier, frames)
"""Imported: their operations are in the table."""

if TYPE_CHECKING:
    from jaxvars.tf.signal.operations import *  # noqa: F403
else:
    __getattr__ = operations(__name__)

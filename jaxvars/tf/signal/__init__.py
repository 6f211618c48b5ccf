"""`tf.signal`: signals.

fourier   Fourier and cosine transforms
frames    windows, frames, spectrograms, the mel scale
"""

from __future__ import annotations

from jaxvars.tf.registry.rows import operations
from jaxvars.tf.signal import fourier, frames
from jaxvars.tf.signal.fourier import fftnd as fftnd
from jaxvars.tf.signal.fourier import ifftnd as ifftnd
from jaxvars.tf.signal.fourier import irfftnd as irfftnd
from jaxvars.tf.signal.fourier import rfftnd as rfftnd

_PARTS = (fourier, frames)
"""Imported: their operations are in the table."""

__getattr__ = operations(__name__, others=("fftnd", "ifftnd", "irfftnd", "rfftnd"))

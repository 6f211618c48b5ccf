"""`tf.signal`: signals.

_signal_fourier   Fourier and cosine transforms
_signal_windows   windows, the mel scale
_signal_frames    frames, spectrograms
"""

from __future__ import annotations

from jaxvars.tf import _signal_fourier, _signal_frames, _signal_windows
from jaxvars.tf._signal_fourier import fftnd as fftnd
from jaxvars.tf._signal_fourier import ifftnd as ifftnd
from jaxvars.tf._signal_fourier import irfftnd as irfftnd
from jaxvars.tf._signal_fourier import rfftnd as rfftnd
from jaxvars.tf.registry.rows import operations

ROWS = [*_signal_fourier.ROWS, *_signal_windows.ROWS, *_signal_frames.ROWS]

__getattr__ = operations(__name__, ROWS, others=("fftnd", "ifftnd", "irfftnd", "rfftnd"))

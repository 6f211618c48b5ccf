"""`tf.signal`: signals.

_signal_fourier   Fourier and cosine transforms
_signal_windows   windows, the mel scale
_signal_frames    frames, spectrograms
"""

from __future__ import annotations

from jaxvars.tf.registry.rows import operations
from jaxvars.tf.signal import fourier as _signal_fourier
from jaxvars.tf.signal import frames as _signal_frames
from jaxvars.tf.signal import windows as _signal_windows
from jaxvars.tf.signal.fourier import fftnd as fftnd
from jaxvars.tf.signal.fourier import ifftnd as ifftnd
from jaxvars.tf.signal.fourier import irfftnd as irfftnd
from jaxvars.tf.signal.fourier import rfftnd as rfftnd

ROWS = [*_signal_fourier.ROWS, *_signal_windows.ROWS, *_signal_frames.ROWS]

__getattr__ = operations(__name__, ROWS, others=("fftnd", "ifftnd", "irfftnd", "rfftnd"))

"""The part of `tf.signal` about windows, and the mel scale.

Rules this file keeps:
- a window is a function of its length and a dtype, as `tf.signal.hann_window`, or its name;
- windows are computed on the host, in 64 bits: their lengths are known.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.typing import Array


def number(value: Any) -> int:
    """Return a size as a Python number."""
    return operator.index(np.asarray(value)[()])


# ---------------------------------------------------------------- windows
def _cosine_window(base: float, length: Any, periodic: Any, dtype: Any) -> Array:
    size = number(length)
    # As in TensorFlow, odd lengths are symmetric even if a periodic window is requested.
    steps = size - 1 + (bool(periodic) and size % 2 == 0)
    angles = 2 * np.pi * np.arange(size) / max(steps, 1)
    values = base - (1 - base) * np.cos(angles) if size > 1 else np.ones(size)
    return to_array(values, as_dtype(dtype))


@op("signal.hann_window", op="Cos", example="4")
def hann_window(window_length: Any, periodic: Any = True, dtype: Any = "float32") -> Array:
    """Return the window of Hann, of raised cosines."""
    return _cosine_window(0.5, window_length, periodic, dtype)


@op("signal.hamming_window", op="Cos", example="4")
def hamming_window(window_length: Any, periodic: Any = True, dtype: Any = "float32") -> Array:
    """Return the window of Hamming, of raised cosines."""
    return _cosine_window(0.54, window_length, periodic, dtype)


@op("signal.kaiser_window", example="5")
def kaiser_window(window_length: Any, beta: Any = 12.0, dtype: Any = "float32") -> Array:
    """Return the window of Kaiser."""
    return to_array(np.kaiser(number(window_length), float(beta)), as_dtype(dtype))


@op("signal.kaiser_bessel_derived_window", example="6")
def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = "float32"
) -> Array:
    """Return the window of Kaiser, made such that shifted squares add up to 1."""
    sums = np.cumsum(np.kaiser(number(window_length) // 2 + 1, float(beta)))
    half = np.sqrt(sums[:-1] / sums[-1])
    return to_array(np.concatenate([half, half[::-1]]), as_dtype(dtype))


@op("signal.vorbis_window", example="4")
def vorbis_window(window_length: Any, dtype: Any = "float32") -> Array:
    """Return the window of Vorbis."""
    size = number(window_length)
    inner = np.sin(np.pi / size * (np.arange(size) + 0.5))
    return to_array(np.sin(np.pi / 2 * inner**2), as_dtype(dtype))


def window(window_fn: Any, length: int, dtype: Any) -> Array:
    """Return the window that a function, or a name, gives."""
    wanted = as_dtype(dtype)
    if window_fn == "hann_window":
        return _cosine_window(0.5, length, True, wanted)
    if window_fn == "vorbis_window":
        return vorbis_window.__wrapped__(length, wanted)
    return to_array(window_fn(length, dtype=wanted), wanted)


# ---------------------------------------------------------------- mel scale
def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)


@op("signal.linear_to_mel_weight_matrix", example="3, 5")
def linear_to_mel_weight_matrix(
    num_mel_bins: Any = 20, num_spectrogram_bins: Any = 129, sample_rate: Any = 8000,
    lower_edge_hertz: float = 125.0, upper_edge_hertz: float = 3800.0, dtype: Any = "float32",
) -> Array:  # fmt: skip
    """Return the matrix that turns a spectrogram to the mel scale."""
    count, size, rate = number(num_mel_bins), number(num_spectrogram_bins), float(sample_rate)
    _check_mel(count, float(lower_edge_hertz), float(upper_edge_hertz), rate)
    frequencies = _mel(np.linspace(0.0, rate / 2, size))[1:, None]
    edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), count + 2)
    rising = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
    weights = np.maximum(0.0, np.minimum(rising, falling))
    return to_array(np.pad(weights, [(1, 0), (0, 0)]), as_dtype(dtype))


def _check_mel(count: int, lower: float, upper: float, rate: float) -> None:
    wrong = ""
    if count <= 0:
        wrong = f"num_mel_bins must be positive. Got: {count}"
    elif lower < 0:
        wrong = f"lower_edge_hertz must be non-negative. Got: {lower}"
    elif lower >= upper:
        wrong = f"lower_edge_hertz {lower} >= upper_edge_hertz {upper}"
    elif rate <= 0 or upper > rate / 2:
        wrong = f"upper_edge_hertz must not be larger than the Nyquist frequency. Got: {upper}"
    if wrong:
        raise Refused(ValueError(wrong))

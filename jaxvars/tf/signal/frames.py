"""The part of `tf.signal` about pieces of signals: windows, frames, spectrograms, the mel scale.

Rules this file keeps:
- signals are the last axis; the others are a batch;
- a window is a function of its length and a dtype, as `tf.signal.hann_window`, or its name;
- windows are computed on the host, in 64 bits: their lengths are known.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.signal.fourier import check_kind, dct
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import DType, as_dtype
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


def number(value: Any) -> int:
    """Return a size as a Python number."""
    return operator.index(np.asarray(value)[()])


def _floating(dtype: Any) -> DType:
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise Refused(ValueError(f"dtype must be a floating point type. Found {kind!r}"))
    return kind


# ---------------------------------------------------------------- windows
def _cosine_window(base: float, length: Any, periodic: Any, dtype: Any) -> Array:
    size = number(length)
    # As in TensorFlow, odd lengths are symmetric even if a periodic window is requested.
    steps = size - 1 + (bool(periodic) and size % 2 == 0)
    angles = 2 * np.pi * np.arange(size) / max(steps, 1)
    values = base - (1 - base) * np.cos(angles) if size > 1 else np.ones(size)
    return to_array(values, _floating(dtype))


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
    return to_array(np.kaiser(number(window_length), float(beta)), _floating(dtype))


def window(window_fn: Any, length: int, dtype: Any) -> Array:
    """Return the window that a function, or a name, gives."""
    wanted = _floating(dtype)
    if window_fn == "hann_window":
        return _cosine_window(0.5, length, True, wanted)
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
    return to_array(np.pad(weights, [(1, 0), (0, 0)]), _floating(dtype))


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


# ---------------------------------------------------------------- frames
@op("signal.frame", "signal", example="r(2, 7), 3, 2")
def frame(
    signal: Array, frame_length: Any, frame_step: Any, pad_end: bool = False, pad_value: Any = 0,
    axis: Any = -1,
) -> Array:  # fmt: skip
    """Cut a signal in frames that may overlap."""
    length, step, place = number(frame_length), number(frame_step), number(axis)
    if not -signal.ndim <= place < signal.ndim:
        raise Refused(ValueError(f"axis {place} out of bounds for rank {signal.ndim}"))
    place %= signal.ndim
    size = signal.shape[place]
    count = -(-size // step) if pad_end else max(0, 1 + (size - length) // step)
    missing = max(0, (count - 1) * step + length - size) if pad_end else 0
    return _cut_frames(signal, pad_value, length, step, count, missing, place)


@functools.partial(jax.jit, static_argnums=(2, 3, 4, 5, 6))
def _cut_frames(
    signal: Array, pad_value: Any, length: int, step: int, count: int, missing: int, place: int
) -> Array:
    ends = [(0, missing if i == place else 0) for i in range(signal.ndim)]
    padded = jnp.pad(signal, ends, constant_values=pad_value) if missing else signal
    index = np.arange(count)[:, None] * step + np.arange(length)
    shape = (*signal.shape[:place], count, length, *signal.shape[place + 1 :])
    return jnp.take(padded, index, axis=place).reshape(shape)  # of nothing it has no new axis


@op("signal.overlap_and_add", "signal", example="r(2, 3, 4), 2")
def overlap_and_add(signal: Array, frame_step: Any) -> Array:
    """Put frames together again, and add up where they overlap."""
    if signal.ndim < 2:
        raise Refused(ValueError("signal must have rank of 2 or more, of frames"))
    return _overlap(signal, number(frame_step))


@functools.partial(jax.jit, static_argnums=1)
def _overlap(signal: Array, step: int) -> Array:
    frames, length = signal.shape[-2:]
    index = np.arange(frames)[:, None] * step + np.arange(length)
    size = (frames - 1) * step + length
    return jnp.zeros((*signal.shape[:-2], size), signal.dtype).at[..., index].add(signal)


# ---------------------------------------------------------------- spectrograms
@op("signal.stft", "signals", op="RFFT", kinds="float", example="r(10), 4, 2")
def stft(
    signals: Array, frame_length: Any, frame_step: Any, fft_length: Any = None,
    window_fn: Any = "hann_window", pad_end: bool = False,
) -> Array:  # fmt: skip
    """Return the Fourier transforms of the frames of a signal."""
    length = number(frame_length)
    pieces = frame.__wrapped__(signals, length, frame_step, pad_end, 0, -1)
    if window_fn is not None:
        pieces = pieces * window(window_fn, length, signals.dtype)
    return jnp.fft.rfft(pieces, n=_power(length) if fft_length is None else number(fft_length))


def _power(length: int) -> int:
    """Return the least power of two that is not less."""
    return 1 << max(length - 1, 0).bit_length()


@op("signal.inverse_stft", "stfts", op="IRFFT", example="z(3, 3), 4, 2")
def inverse_stft(
    stfts: Array, frame_length: Any, frame_step: Any, fft_length: Any = None,
    window_fn: Any = "hann_window",
) -> Array:  # fmt: skip
    """Return a signal of the Fourier transforms of its frames."""
    check_kind(stfts, 1, False)
    length = number(frame_length)
    size = _power(length) if fft_length is None else number(fft_length)
    pieces = _restore_frames(stfts, size, length)
    if window_fn is not None:
        pieces = pieces * window(window_fn, length, pieces.dtype)
    return overlap_and_add.__wrapped__(pieces, frame_step)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _restore_frames(stfts: Array, size: int, length: int) -> Array:
    pieces = jnp.fft.irfft(stfts, n=size)[..., :length]
    ends = [(0, 0)] * (pieces.ndim - 1) + [(0, length - pieces.shape[-1])]
    return jnp.pad(pieces, ends)


@op("signal.inverse_stft_window_fn", example="2)(4, dtype=tf.float32")
def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Any = "hann_window"
) -> Callable[..., Tensor]:
    """Return the window function with which `inverse_stft` reconstructs what `stft` got."""
    step = number(frame_step)

    def inverse_window(frame_length: Any, dtype: Any) -> Tensor:
        """Return the window of the inverse transform."""
        length = number(frame_length)
        forward = window(forward_window_fn, length, dtype)
        overlaps = -(-length // step)
        squares = jnp.pad(jnp.square(forward), (0, overlaps * step - length))
        total = jnp.tile(jnp.sum(squares.reshape(overlaps, step), 0), overlaps)
        return Tensor(forward / total[:length])

    return inverse_window


@op("signal.mfccs_from_log_mel_spectrograms", "log_mel_spectrograms", op="FFT", kinds="float")
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Array) -> Array:
    """Return the mel-frequency cepstral coefficients.

    Example: `tf.signal.mfccs_from_log_mel_spectrograms(r(2, 4))`.
    """
    if not log_mel_spectrograms.shape[-1]:
        raise Refused(ValueError("num_mel_bins must be positive. Got: 0"))
    scale = np.sqrt(0.5 / log_mel_spectrograms.shape[-1]).astype(log_mel_spectrograms.dtype)
    return dct.__wrapped__(log_mel_spectrograms, 2, None, -1, None) * scale

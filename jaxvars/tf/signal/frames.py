"""The part of `tf.signal` about pieces of signals: frames, spectrograms.

Rules this file keeps:
- signals are the last axis; the others are a batch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.signal.fourier import dct, idct
from jaxvars.tf.signal.windows import number, window
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


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
    return _framed(signal, pad_value, length, step, count, missing, place)


@functools.partial(jax.jit, static_argnums=(2, 3, 4, 5, 6))
def _framed(
    signal: Array, pad_value: Any, length: int, step: int, count: int, missing: int, place: int
) -> Array:
    ends = [(0, missing if i == place else 0) for i in range(signal.ndim)]
    padded = jnp.pad(signal, ends, constant_values=pad_value) if missing else signal
    index = np.arange(count)[:, None] * step + np.arange(length)
    return jnp.take(padded, index, axis=place)


@op("signal.overlap_and_add", "signal", example="r(2, 3, 4), 2")
def overlap_and_add(signal: Array, frame_step: Any) -> Array:
    """Put frames together again, and add up where they overlap."""
    if signal.ndim < 2:
        raise Refused(ValueError("signal must have rank of 2 or more, of frames"))
    return _overlapped(signal, number(frame_step))


@functools.partial(jax.jit, static_argnums=1)
def _overlapped(signal: Array, step: int) -> Array:
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


@op("signal.inverse_stft", "stfts", op="IRFFT", kinds="complex", example="z(3, 3), 4, 2")
def inverse_stft(
    stfts: Array, frame_length: Any, frame_step: Any, fft_length: Any = None,
    window_fn: Any = "hann_window",
) -> Array:  # fmt: skip
    """Return a signal of the Fourier transforms of its frames."""
    length = number(frame_length)
    size = _power(length) if fft_length is None else number(fft_length)
    pieces = _restored(stfts, size, length)
    if window_fn is not None:
        pieces = pieces * window(window_fn, length, pieces.dtype)
    return overlap_and_add.__wrapped__(pieces, frame_step)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _restored(stfts: Array, size: int, length: int) -> Array:
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


@op("signal.mdct", "signals", op="FFT", kinds="float", example="r(8), 4")
def mdct(
    signals: Array, frame_length: Any, window_fn: Any = "vorbis_window", pad_end: bool = False,
    norm: Any = None,
) -> Array:  # fmt: skip
    """Return the modified cosine transforms of frames."""
    length = number(frame_length)
    if length % 4:
        raise Refused(ValueError("frame_length must be an integer multiple of 4."))
    pieces = frame.__wrapped__(signals, length, length // 2, pad_end, 0, -1)
    return _folded(pieces, _mdct_window(window_fn, length, pieces.dtype), norm)


@functools.partial(jax.jit, static_argnums=2)
def _folded(pieces: Array, factors: Array, norm: Any) -> Array:
    pieces = pieces * factors
    a, b, c, d = jnp.split(pieces, 4, -1)
    folded = jnp.concatenate([-c[..., ::-1] - d, a - b[..., ::-1]], -1)
    return dct.__wrapped__(folded, 4, None, -1, norm)


@op("signal.inverse_mdct", "mdcts", op="FFT", kinds="float", example="r(3, 4)")
def inverse_mdct(mdcts: Array, window_fn: Any = "vorbis_window", norm: Any = None) -> Array:
    """Return a signal of the modified cosine transforms of its frames."""
    return _unfolded(mdcts, _mdct_window(window_fn, 2 * mdcts.shape[-1], mdcts.dtype), norm)


@functools.partial(jax.jit, static_argnums=2)
def _unfolded(mdcts: Array, factors: Array, norm: Any) -> Array:
    half = mdcts.shape[-1]
    made = idct.__wrapped__(mdcts, 4, None, -1, norm)
    if norm is None:
        made = made * (0.5 / half)
    first, second = jnp.split(made, 2, -1)
    parts = [second, -second[..., ::-1], -first[..., ::-1], -first]
    return _overlapped(jnp.concatenate(parts, -1) * factors, half)


def _mdct_window(window_fn: Any, length: int, dtype: Any) -> Array:
    if window_fn is None:
        return jnp.asarray(np.sqrt(0.5), dtype)
    return window(window_fn, length, dtype)


@op("signal.mfccs_from_log_mel_spectrograms", "log_mel_spectrograms", op="FFT", kinds="float")
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Array) -> Array:
    """Return the mel-frequency cepstral coefficients.

    Example: `tf.signal.mfccs_from_log_mel_spectrograms(r(2, 4))`.
    """
    if not log_mel_spectrograms.shape[-1]:
        raise Refused(ValueError("num_mel_bins must be positive. Got: 0"))
    scale = np.sqrt(0.5 / log_mel_spectrograms.shape[-1]).astype(log_mel_spectrograms.dtype)
    return dct.__wrapped__(log_mel_spectrograms, 2, None, -1, None) * scale

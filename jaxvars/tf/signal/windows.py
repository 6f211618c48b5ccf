"""The part of `tf.signal` about windows, and the mel scale.

Rules this file keeps:
- a window is a function of its length and a dtype, as `tf.signal.hann_window`, or its name;
- windows are computed on the host, in 64 bits: their lengths are known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.registry.rows import Refused, Row
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype

Value: TypeAlias = Any


def number(value: Any) -> int:
    """Return a size as a Python number."""
    return operator.index(np.asarray(value)[()])


# ---------------------------------------------------------------- windows
def _cosine_window(base: float) -> Callable[[Any, bool, Any], Value]:
    def made(length: Any, periodic: bool, dtype: Any) -> Value:
        size = number(length)
        # As in TensorFlow, odd lengths are symmetric even if a periodic window is asked for.
        steps = size - 1 + (bool(periodic) and size % 2 == 0)
        angles = 2 * np.pi * np.arange(size) / max(steps, 1)
        values = base - (1 - base) * np.cos(angles) if size > 1 else np.ones(size)
        return to_array(values, as_dtype(dtype))

    return made


def _kaiser_window(length: Any, beta: Any, dtype: Any) -> Value:
    return to_array(np.kaiser(number(length), float(beta)), as_dtype(dtype))


def _kaiser_bessel_derived_window(length: Any, beta: Any, dtype: Any) -> Value:
    sums = np.cumsum(np.kaiser(number(length) // 2 + 1, float(beta)))
    half = np.sqrt(sums[:-1] / sums[-1])
    return to_array(np.concatenate([half, half[::-1]]), as_dtype(dtype))


def _vorbis_window(length: Any, dtype: Any) -> Value:
    size = number(length)
    inner = np.sin(np.pi / size * (np.arange(size) + 0.5))
    return to_array(np.sin(np.pi / 2 * inner**2), as_dtype(dtype))


def window(window_fn: Any, length: int, dtype: Any) -> Value:
    """Return the window that a function, or a name, gives."""
    wanted = as_dtype(dtype)
    if window_fn == "hann_window":
        return _HANN(length, True, wanted)
    if window_fn == "vorbis_window":
        return _vorbis_window(length, wanted)
    return to_array(window_fn(length, dtype=wanted), wanted)


_HANN = _cosine_window(0.5)


# ---------------------------------------------------------------- mel scale
def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)


def _linear_to_mel_weight_matrix(
    bins: Any, spectrogram_bins: Any, rate: Any, lower: float, upper: float, dtype: Any
) -> Value:
    count, size, rate = number(bins), number(spectrogram_bins), float(rate)
    _check_mel(count, float(lower), float(upper), rate)
    frequencies = _mel(np.linspace(0.0, rate / 2, size))[1:, None]
    edges = np.linspace(_mel(lower), _mel(upper), count + 2)
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


def _cosine_row(name: str, base: float) -> Row:
    return Row(
        name, "", "window_length, periodic=True, dtype='float32'", _cosine_window(base), op="Cos",
        doc=f"Return the window of {name.partition('_')[0].title()}, of raised cosines.",
        examples=(
            f"signal.{name}(4)", f"signal.{name}(5, periodic=False)",
            f"signal.{name}(1, dtype=tf.float64)",
        ),
    )  # fmt: skip


ROWS = [
    _cosine_row("hann_window", 0.5),
    _cosine_row("hamming_window", 0.54),
    Row(
        "kaiser_window", "", "window_length, beta=12.0, dtype='float32'", _kaiser_window,
        doc="Return the window of Kaiser.",
        examples=(
            "signal.kaiser_window(5)", "signal.kaiser_window(4, 2.0)", "signal.kaiser_window(1)",
        ),
    ),
    Row(
        "kaiser_bessel_derived_window", "", "window_length, beta=12.0, dtype='float32'",
        _kaiser_bessel_derived_window,
        doc="Return the window of Kaiser, made such that shifted squares add up to 1.",
        examples=(
            "signal.kaiser_bessel_derived_window(6)", "signal.kaiser_bessel_derived_window(4, 2.0)",
            "signal.kaiser_bessel_derived_window(2)",
        ),
    ),
    Row(
        "vorbis_window", "", "window_length, dtype='float32'", _vorbis_window,
        doc="Return the window of Vorbis.",
        examples=(
            "signal.vorbis_window(4)", "signal.vorbis_window(3, dtype=tf.float64)",
            "signal.vorbis_window(1)",
        ),
    ),
    Row(
        "linear_to_mel_weight_matrix", "",
        "num_mel_bins=20, num_spectrogram_bins=129, sample_rate=8000, lower_edge_hertz=125.0, "
        "upper_edge_hertz=3800.0, dtype='float32'",
        _linear_to_mel_weight_matrix,
        doc="Return the matrix that turns a spectrogram to the mel scale.",
        examples=(
            "signal.linear_to_mel_weight_matrix(3, 5)",
            "signal.linear_to_mel_weight_matrix(2, 9, 16000, 20.0, 7000.0, tf.float64)",
            "signal.linear_to_mel_weight_matrix(3, 5, lower_edge_hertz=-1.0)",
        ),
    ),
]  # fmt: skip

"""The part of `tf.signal` about transforms: Fourier's, and those of cosines.

Rules this file keeps:
- transforms are over the last axes; the others are a batch;
- float32 becomes complex64, float64 complex128, and back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors.static import axes_of
from jaxvars.typing import Array


# ---------------------------------------------------------------- Fourier
def _complex_transform(x: Array, rank: int, transform: Callable[..., Array]) -> Array:
    _check_rank(x, rank)
    return transform(x, axes=tuple(range(-rank, 0)))


def _real_transform(x: Array, rank: int, forward: bool, fft_length: Any) -> Array:
    check_kind(x, rank, forward)
    _check_rank(x, rank)
    sizes = None if fft_length is None else [int(n) for n in np.asarray(fft_length).reshape(-1)]
    if sizes is not None and len(sizes) != rank:
        raise ValueError(f"fft_length must have {rank} elements, not {len(sizes)}")
    transform = jnp.fft.rfftn if forward else jnp.fft.irfftn
    return transform(x, s=sizes, axes=tuple(range(-rank, 0)))


def check_kind(x: Array, rank: int, forward: bool) -> None:
    """Raise TensorFlow's ValueError unless a transform of real numbers, or back, is of the type."""
    if forward and x.dtype.name not in ("float32", "float64"):
        name = "RFFT" if rank == 1 else f"RFFT{rank}D"
        raise Refused(
            ValueError(f"{name} requires tf.float32 or tf.float64 inputs, got: {x.dtype}")
        )
    if not forward and x.dtype.kind != "c":
        name = "IRFFT" if rank == 1 else f"IRFFT{rank}D"
        raise Refused(
            ValueError(f"{name} requires tf.complex64 or tf.complex128 inputs, got: {x.dtype}")
        )


def _check_rank(x: Array, rank: int) -> None:
    if x.ndim < rank:
        raise ValueError(f"Input must have rank of at least {rank} but got: {list(x.shape)}")


@op("signal.fft", "input", op="FFT", kinds="complex", default="complex64", example="z(3)")
def fft(input: Array) -> Array:
    """Return the Fourier transform over the last axis."""
    return _complex_transform(input, 1, jnp.fft.fftn)


@op("signal.fft2d", "input", op="FFT2D", kinds="complex", default="complex64", example="z(2, 3)")
def fft2d(input: Array) -> Array:
    """Return the Fourier transform over the last two axes."""
    return _complex_transform(input, 2, jnp.fft.fftn)


@op("signal.fft3d", "input", op="FFT3D", kinds="complex", default="complex64", example="z(2, 2, 2)")
def fft3d(input: Array) -> Array:
    """Return the Fourier transform over the last three axes."""
    return _complex_transform(input, 3, jnp.fft.fftn)


@op("signal.ifft", "input", op="IFFT", kinds="complex", default="complex64", example="z(3)")
def ifft(input: Array) -> Array:
    """Return the inverse Fourier transform over the last axis."""
    return _complex_transform(input, 1, jnp.fft.ifftn)


@op("signal.ifft2d", "input", op="IFFT2D", kinds="complex", default="complex64", example="z(2, 3)")
def ifft2d(input: Array) -> Array:
    """Return the inverse Fourier transform over the last two axes."""
    return _complex_transform(input, 2, jnp.fft.ifftn)


@op(
    "signal.ifft3d", "input", op="IFFT3D", kinds="complex", default="complex64",
    example="z(2, 2, 2)",
)  # fmt: skip
def ifft3d(input: Array) -> Array:
    """Return the inverse Fourier transform over the last three axes."""
    return _complex_transform(input, 3, jnp.fft.ifftn)


@op("signal.rfft", "input_tensor", op="RFFT", example="r(4)")
def rfft(input_tensor: Array, fft_length: Any = None) -> Array:
    """Return the Fourier transform of real numbers, axis."""
    return _real_transform(input_tensor, 1, True, fft_length)


@op("signal.rfft2d", "input_tensor", op="RFFT2D", example="r(2, 4)")
def rfft2d(input_tensor: Array, fft_length: Any = None) -> Array:
    """Return the Fourier transform of real numbers, two axes."""
    return _real_transform(input_tensor, 2, True, fft_length)


@op("signal.rfft3d", "input_tensor", op="RFFT3D", example="r(2, 2, 3)")
def rfft3d(input_tensor: Array, fft_length: Any = None) -> Array:
    """Return the Fourier transform of real numbers, three axes."""
    return _real_transform(input_tensor, 3, True, fft_length)


@op("signal.irfft", "input_tensor", op="IRFFT", example="z(4)")
def irfft(input_tensor: Array, fft_length: Any = None) -> Array:
    """Return the inverse Fourier transform of real numbers, axis."""
    return _real_transform(input_tensor, 1, False, fft_length)


@op("signal.irfft2d", "input_tensor", op="IRFFT2D", example="z(2, 4)")
def irfft2d(input_tensor: Array, fft_length: Any = None) -> Array:
    """Return the inverse Fourier transform of real numbers, two axes."""
    return _real_transform(input_tensor, 2, False, fft_length)


@op("signal.irfft3d", "input_tensor", op="IRFFT3D", example="z(2, 2, 3)")
def irfft3d(input_tensor: Array, fft_length: Any = None) -> Array:
    """Return the inverse Fourier transform of real numbers, three axes."""
    return _real_transform(input_tensor, 3, False, fft_length)


@op("signal.fftshift", "x", op="Roll", example="r(5)")
def fftshift(x: Array, axes: Any = None) -> Array:
    """Move the zero frequency to the middle."""
    return jnp.fft.fftshift(x, axes=axes_of(axes))


@op("signal.ifftshift", "x", op="Roll", example="r(5)")
def ifftshift(x: Array, axes: Any = None) -> Array:
    """Move the zero frequency from the middle to the start."""
    return jnp.fft.ifftshift(x, axes=axes_of(axes))


# ---------------------------------------------------------------- cosines
@op("signal.dct", "input", op="FFT", example="r(2, 3)")
def dct(
    input: Array, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the cosine transform of type 1, 2, 3 or 4 of the last axis."""
    _check_cosines(input, type, axis, norm)
    if n is not None:
        size = int(n)
        if size < 1:
            raise Refused(ValueError("n should be a positive integer or None"))
        input = input[..., :size]
        input = jnp.pad(input, [(0, 0)] * (input.ndim - 1) + [(0, size - input.shape[-1])])
    if type == 1 and input.shape[-1] < 2:
        raise Refused(ValueError("Dimension must be greater than one for Type-I DCT."))
    return _cosines(input, type, norm)


def _check_cosines(x: Array, kind: int, axis: int, norm: str | None) -> None:
    if axis != -1:
        raise Refused(NotImplementedError("axis must be -1. Got: %s" % axis))  # noqa: UP031
    if kind not in (1, 2, 3, 4):
        raise Refused(ValueError("Types I, II, III and IV (I)DCT are supported."))
    if norm not in (None, "ortho"):
        raise Refused(ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}"))
    if kind == 1 and norm is not None:
        raise Refused(ValueError("Normalization is not supported for the Type-I DCT."))
    if x.dtype.kind in "iub":
        raise Refused(TypeError(f"Cannot convert 0.0 to EagerTensor of dtype {x.dtype}"))


@functools.partial(jax.jit, static_argnums=(1, 2))
def _cosines(x: Array, kind: int, norm: str | None) -> Array:
    size = x.shape[-1]
    if kind == 1:
        return jnp.fft.rfft(jnp.concatenate([x, x[..., -2:0:-1]], -1)).real
    k = np.arange(size)
    scale = 1.0 if norm is None else np.sqrt(0.5 / size)
    if kind == 2:
        weights = np.where((k == 0) & (norm is not None), np.sqrt(0.5), 1.0) * 2 * scale
        return _transform_twice(x, np.ones(size), weights * np.exp(-0.5j * np.pi * k / size))
    if kind == 3:
        first = 1.0 if norm is None else np.sqrt(1.0 / size)
        weights = np.where(k == 0, first, 2 * scale)
        return _transform_twice(x, weights * np.exp(-0.5j * np.pi * k / size), np.ones(size))
    after = 2 * scale * np.exp(-0.25j * np.pi * (2 * k + 1) / size)
    return _transform_twice(x, np.exp(-0.5j * np.pi * k / size), after)


def _transform_twice(x: Array, before: np.ndarray, after: np.ndarray) -> Array:
    """Return the real part of a Fourier transform of twice the length, with factors."""
    kind = np.complex64 if x.dtype == np.float32 else np.complex128
    size = x.shape[-1]
    made = jnp.fft.fft(x * before.astype(kind), n=2 * size)[..., :size]
    return (made * after.astype(kind)).real


_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


@op("signal.idct", "input", op="FFT", example="r(2, 3)")
def idct(
    input: Array, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the inverse cosine transform of the last axis, up to a factor."""
    return dct.__wrapped__(input, _INVERSE.get(type, type), n, axis, norm)

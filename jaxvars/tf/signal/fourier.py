"""The part of `tf.signal` about transforms: Fourier's, and those of cosines.

Rules this file keeps:
- transforms are over the last axes; the others are a batch;
- float32 becomes complex64, float64 complex128, and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.fft
import numpy as np

from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors.static import axes_of
from jaxvars.typing import Array


# ---------------------------------------------------------------- Fourier
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


_AXES = {1: "the last axis", 2: "the last two axes", 3: "the last three axes"}


def _make_complex(name: str, rank: int, transform: Callable[..., Array], example: str) -> Any:
    """Return the operation of a transform of complex numbers."""

    def call(input: Array) -> Array:
        _check_rank(input, rank)
        return transform(input, axes=tuple(range(-rank, 0)))

    inverse = "inverse " if name[0] == "i" else ""
    call.__name__ = name
    call.__doc__ = f"Return the {inverse}Fourier transform over {_AXES[rank]}."
    kind: Any = {"op": name.upper(), "kinds": "complex", "default": "complex64"}
    return op(f"signal.{name}", "input", **kind, example=example)(call)


def _make_real(name: str, rank: int, example: str) -> Any:
    """Return the operation of a transform of real numbers, or back."""
    forward = name[0] == "r"
    transform = jnp.fft.rfftn if forward else jnp.fft.irfftn

    def call(input_tensor: Array, fft_length: Any = None) -> Array:
        check_kind(input_tensor, rank, forward)
        _check_rank(input_tensor, rank)
        sizes = None if fft_length is None else [int(n) for n in np.asarray(fft_length).reshape(-1)]
        if sizes is not None and len(sizes) != rank:
            raise ValueError(f"fft_length must have {rank} elements, not {len(sizes)}")
        return transform(input_tensor, s=sizes, axes=tuple(range(-rank, 0)))

    inverse = "" if forward else "inverse "
    call.__name__ = name
    call.__doc__ = f"Return the {inverse}Fourier transform of real numbers over {_AXES[rank]}."
    return op(f"signal.{name}", "input_tensor", op=name.upper(), example=example)(call)


fft = _make_complex("fft", 1, jnp.fft.fftn, "z(3)")
fft2d = _make_complex("fft2d", 2, jnp.fft.fftn, "z(2, 3)")
fft3d = _make_complex("fft3d", 3, jnp.fft.fftn, "z(2, 2, 2)")
ifft = _make_complex("ifft", 1, jnp.fft.ifftn, "z(3)")
ifft2d = _make_complex("ifft2d", 2, jnp.fft.ifftn, "z(2, 3)")
ifft3d = _make_complex("ifft3d", 3, jnp.fft.ifftn, "z(2, 2, 2)")
rfft, irfft = _make_real("rfft", 1, "r(4)"), _make_real("irfft", 1, "z(4)")
rfft2d, irfft2d = _make_real("rfft2d", 2, "r(2, 4)"), _make_real("irfft2d", 2, "z(2, 4)")
rfft3d, irfft3d = _make_real("rfft3d", 3, "r(2, 2, 3)"), _make_real("irfft3d", 3, "z(2, 2, 3)")


@op("signal.fftshift", "x", op="Roll", example="r(5)")
def fftshift(x: Array, axes: Any = None) -> Array:
    """Move the zero frequency to the middle."""
    return jnp.fft.fftshift(x, axes=axes_of(axes))


@op("signal.ifftshift", "x", op="Roll", example="r(5)")
def ifftshift(x: Array, axes: Any = None) -> Array:
    """Move the zero frequency from the middle to the start."""
    return jnp.fft.ifftshift(x, axes=axes_of(axes))


# ---------------------------------------------------------------- cosines
_OTHER_TYPES = "the types 1, 3 and 4 are not there."


@op("signal.dct", "input", op="FFT", example="r(2, 3)", differs=_OTHER_TYPES)
def dct(
    input: Array, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the cosine transform, of type 2, of the last axis."""
    return jax.scipy.fft.dct(input, n=_check_cosines(input, type, n, axis, norm), norm=norm)


@op("signal.idct", "input", op="FFT", example="r(2, 3)", differs=_OTHER_TYPES)
def idct(
    input: Array, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the inverse cosine transform, of type 2, of the last axis, up to a factor."""
    made = jax.scipy.fft.idct(input, n=_check_cosines(input, type, n, axis, norm), norm=norm)
    return made if norm else made * (2 * made.shape[-1])


def _check_cosines(x: Array, kind: int, n: Any, axis: int, norm: str | None) -> int | None:
    """Return the size of a transform as JAX takes it."""
    if axis != -1:
        raise Refused(NotImplementedError(f"axis must be -1. Got: {axis}"))
    if kind != 2:
        raise Refused(ValueError(f"Only type 2 of cosine transforms is supported. Got: {kind}"))
    if norm not in (None, "ortho"):
        raise Refused(ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}"))
    if n is not None and int(n) < 1:
        raise Refused(ValueError("n should be a positive integer or None"))
    if x.dtype.kind in "iub":
        raise Refused(TypeError(f"Cannot convert 0.0 to EagerTensor of dtype {x.dtype}"))
    return None if n is None else int(n)

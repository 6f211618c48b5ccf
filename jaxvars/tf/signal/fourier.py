"""The part of `tf.signal` about transforms: Fourier's, and those of cosines.

Rules this file keeps:
- transforms are over the last axes; the others are a batch;
- float32 becomes complex64, float64 complex128, and back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.registry.rows import Refused, Row, axes, function_of

Value: TypeAlias = Any


# ---------------------------------------------------------------- Fourier
def _complex_transform(rank: int, transform: Callable[..., Value]) -> Callable[[Value], Value]:
    over = tuple(range(-rank, 0))

    def transformed(x: Value) -> Value:
        _check_rank(x, rank)
        return transform(x, axes=over)

    return transformed


def _real_transform(rank: int, forward: bool) -> Callable[[Value, Any], Value]:
    transform = jnp.fft.rfftn if forward else jnp.fft.irfftn
    over = tuple(range(-rank, 0))

    def transformed(x: Value, fft_length: Any) -> Value:
        _check_kind(x, rank, forward)
        _check_rank(x, rank)
        sizes = None if fft_length is None else [int(n) for n in np.asarray(fft_length).reshape(-1)]
        if sizes is not None and len(sizes) != rank:
            raise ValueError(f"fft_length must have {rank} elements, not {len(sizes)}")
        return transform(x, s=sizes, axes=over)

    return transformed


def _check_kind(x: Value, rank: int, forward: bool) -> None:
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


def _check_rank(x: Value, rank: int) -> None:
    if x.ndim < rank:
        raise ValueError(f"Input must have rank of at least {rank} but got: {list(x.shape)}")


def _shift(shift: Callable[..., Value]) -> Callable[[Value, Any], Value]:
    return lambda x, over: shift(x, axes=axes(over))


def _over_axes(transform: Callable[..., Value]) -> Callable[..., Value]:
    def transformed(x: Value, fft_length: Any, over: Any, norm: Any) -> Value:
        sizes = None if fft_length is None else [int(n) for n in np.asarray(fft_length)]
        places = None if over is None else [int(n) for n in np.asarray(over)]
        return transform(x, s=sizes, axes=places, norm=norm)

    return transformed


# ---------------------------------------------------------------- cosines
def dct(x: Value, kind: int, n: Any, axis: int, norm: str | None) -> Value:
    """Return a transform of cosines of the last axis."""
    _check_cosines(x, kind, axis, norm)
    if n is not None:
        size = int(n)
        if size < 1:
            raise Refused(ValueError("n should be a positive integer or None"))
        x = x[..., :size]
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])])
    if kind == 1 and x.shape[-1] < 2:
        raise Refused(ValueError("Dimension must be greater than one for Type-I DCT."))
    return _cosines(x, kind, norm)


def _check_cosines(x: Value, kind: int, axis: int, norm: str | None) -> None:
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
def _cosines(x: Value, kind: int, norm: str | None) -> Value:
    size = x.shape[-1]
    if kind == 1:
        return jnp.fft.rfft(jnp.concatenate([x, x[..., -2:0:-1]], -1)).real
    k = np.arange(size)
    scale = 1.0 if norm is None else np.sqrt(0.5 / size)
    if kind == 2:
        weights = np.where((k == 0) & (norm is not None), np.sqrt(0.5), 1.0) * 2 * scale
        return _turned(x, np.ones(size), weights * np.exp(-0.5j * np.pi * k / size))
    if kind == 3:
        first = 1.0 if norm is None else np.sqrt(1.0 / size)
        weights = np.where(k == 0, first, 2 * scale)
        return _turned(x, weights * np.exp(-0.5j * np.pi * k / size), np.ones(size))
    after = 2 * scale * np.exp(-0.25j * np.pi * (2 * k + 1) / size)
    return _turned(x, np.exp(-0.5j * np.pi * k / size), after)


def _turned(x: Value, before: np.ndarray, after: np.ndarray) -> Value:
    """Return the real part of a Fourier transform of twice the length, with factors."""
    kind = np.complex64 if x.dtype == np.float32 else np.complex128
    size = x.shape[-1]
    made = jnp.fft.fft(x * before.astype(kind), n=2 * size)[..., :size]
    return (made * after.astype(kind)).real


_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def idct(x: Value, kind: int, n: Any, axis: int, norm: str | None) -> Value:
    """Return the inverse of a transform of cosines, up to a factor."""
    return dct(x, _INVERSE.get(kind, kind), n, axis, norm)


# ---------------------------------------------------------------- rows
def _complex_row(rank: int, forward: bool) -> Row:
    name = ("fft" if forward else "ifft") + ("" if rank == 1 else f"{rank}d")
    transform = jnp.fft.fftn if forward else jnp.fft.ifftn
    shape = ("3", "2, 3", "2, 2, 2")[rank - 1]
    return Row(
        name, "input", "input", _complex_transform(rank, transform), op=name.upper(),
        kinds="complex", doc=f"Return the {_WORDS[forward]} over the last {_AXES[rank]}.",
        examples=(
            f"signal.{name}(z({shape}))", f"signal.{name}(z(2, {shape}))",
            f"signal.{name}(r({shape}))",
        ),
    )  # fmt: skip


def _real_row(rank: int, forward: bool) -> Row:
    name = ("rfft" if forward else "irfft") + ("" if rank == 1 else f"{rank}d")
    shape, lengths = (("4", "[6]"), ("2, 4", "[3, 3]"), ("2, 2, 3", "[1, 2, 4]"))[rank - 1]
    letter, other = ("r", "i") if forward else ("z", "r")
    return Row(
        name, "input_tensor", "input_tensor, fft_length=None", _real_transform(rank, forward),
        op=name.upper(), doc=f"Return the {_WORDS[forward]} of real numbers, {_AXES[rank]}.",
        examples=(
            f"signal.{name}({letter}({shape}))", f"signal.{name}({letter}({shape}), {lengths})",
            f"signal.{name}({other}({shape}))",
        ),
    )  # fmt: skip


_WORDS = {True: "Fourier transform", False: "inverse Fourier transform"}
_AXES = {1: "axis", 2: "two axes", 3: "three axes"}

ROWS = [
    *[_complex_row(rank, forward) for rank in (1, 2, 3) for forward in (True, False)],
    *[_real_row(rank, forward) for rank in (1, 2, 3) for forward in (True, False)],
    Row(
        "fftshift", "x", "x, axes=None", _shift(jnp.fft.fftshift), op="Roll",
        doc="Move the zero frequency to the middle.",
        examples=(
            "signal.fftshift(r(5))", "signal.fftshift(i(2, 3), axes=1)", "signal.fftshift(r(2, 3))",
        ),
    ),
    Row(
        "ifftshift", "x", "x, axes=None", _shift(jnp.fft.ifftshift), op="Roll",
        doc="Move the zero frequency from the middle to the start.",
        examples=(
            "signal.ifftshift(r(5))", "signal.ifftshift(i(2, 3), axes=[1])",
            "signal.ifftshift(r(2, 3))",
        ),
    ),
    Row(
        "dct", "input", "input, type=2, n=None, axis=-1, norm=None", dct, op="FFT",
        doc="Return the cosine transform of type 1, 2, 3 or 4 of the last axis.",
        examples=(
            "signal.dct(r(2, 3))", "signal.dct(r(3), type=1)", "signal.dct(r(3), 3, norm='ortho')",
            "signal.dct(r(3), 4, n=5)", "signal.dct(r(3), 2, 2, norm='ortho')",
            "signal.dct(r(3), 5)", "signal.dct(i(3))",
        ),
    ),
    Row(
        "idct", "input", "input, type=2, n=None, axis=-1, norm=None", idct, op="FFT",
        doc="Return the inverse cosine transform of the last axis, up to a factor.",
        examples=(
            "signal.idct(r(2, 3))", "signal.idct(r(3), 3, norm='ortho')", "signal.idct(r(3), 4)",
            "signal.idct(r(2), type=1, norm='ortho')",
        ),
    ),
]  # fmt: skip


def _unlisted(name: str, transform: Callable[..., Value], doc: str) -> Callable[..., Any]:
    """Return a function without a row: TensorFlow has none of these for the CPU to compare to."""
    signature = "input_tensor, fft_length=None, axes=None, norm=None"
    row = Row(name, "input_tensor", signature, _over_axes(transform), op=name.upper(), doc=doc)
    return function_of(row, "jaxvars.tf.signal")


fftnd = _unlisted("fftnd", jnp.fft.fftn, "Return the Fourier transform over any axes.")
ifftnd = _unlisted("ifftnd", jnp.fft.ifftn, "Return the inverse Fourier transform over any axes.")
rfftnd = _unlisted("rfftnd", jnp.fft.rfftn, "Return the Fourier transform of real numbers.")
irfftnd = _unlisted("irfftnd", jnp.fft.irfftn, "Return the inverse Fourier transform to real ones.")

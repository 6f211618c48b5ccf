"""Other sizes of images: `tf.image.resize` and the like.

Source of the kernels: Keys, "Cubic convolution interpolation for digital image processing", 1981;
Mitchell, Netravali, "Reconstruction filters in computer graphics", 1988.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.image.places import check_rank
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors.static import not_too_many, one_int, refused, require_known
from jaxvars.typing import Array


class ResizeMethod:
    """The names of the methods of `tf.image.resize`."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


@op("image.resize", "images", kinds="float int", example="r(2, 3, 1), [4, 5]")
def resize(
    images: Array, size: Any, method: Any = "bilinear", preserve_aspect_ratio: Any = False,
    antialias: Any = False,
) -> Array:  # fmt: skip
    """Resize images to a height and width."""
    check_rank(images)
    height, width = _new_size(images, size, preserve_aspect_ratio)
    if method not in METHODS:
        raise Refused(ValueError(f"Resize method is not implemented: {method}"))
    shape = not_too_many((*images.shape[:-3], height, width, images.shape[-1]))
    axes = [
        (axis, images.shape[axis], shape[axis])
        for axis in (len(shape) - 3, len(shape) - 2)
        if images.shape[axis] != shape[axis] or method in _BLURS
    ]
    if method == "nearest":
        return _take(images, axes)
    x = images if images.dtype == np.float32 else images.astype(np.float32)
    return _weigh(x, axes, method, bool(antialias))


def _new_size(images: Array, size: Any, keeps_ratio: Any) -> tuple[int, int]:
    given = require_known(size, "size")
    if given.shape != (2,) or given.dtype.kind not in "iu":
        raise refused("'size' must be a 1-D int32 Tensor of 2 elements: new_height, new_width")
    height, width = map(int, given)
    if height < 1 or width < 1:
        raise refused("output dimensions must be positive")
    if not keeps_ratio:
        return height, width
    old_height, old_width = images.shape[-3:-1]
    scale = min(np.float32(height / old_height), np.float32(width / old_width))
    return round(float(scale * old_height)), round(float(scale * old_width))


# ---------------------------------------------------------------- weights
Axes: TypeAlias = list[tuple[int, int, int]]  # each with its old size and its new one


def _take(x: Array, axes: Axes) -> Array:
    """Return images whose rows and columns are the nearest ones of others."""
    for axis, size, new in axes:
        places = np.floor((np.arange(new) + 0.5) * (size / new)).astype(np.int32)
        x = jnp.take(x, places, axis, mode="clip")
    return x


def _weigh(x: Array, axes: Axes, method: str, antialias: bool) -> Array:
    """Return images whose rows and columns are sums of those of others.

    The weights are constants, made by NumPy: with 64-bit numbers on, JAX would compute them in
    float64 when the program runs.
    """
    for axis, size, new in axes:
        weights = _weights(size, new, method, antialias)
        summed = jnp.tensordot(x, weights, ((axis,), (1,)), precision="highest")
        x = jnp.moveaxis(summed, -1, axis)
    return x


@functools.lru_cache(maxsize=64)
def _weights(size: int, new: int, method: str, antialias: bool) -> np.ndarray:
    """Return how much each old place counts in each new one: [new, size]."""
    scale = size / new
    if method == "area":
        starts = np.arange(new)[:, None] * scale
        places = np.arange(size)
        parts = np.minimum(places + 1, starts + scale) - np.maximum(places, starts)
        made = np.clip(parts, 0, None)
    else:
        width = max(scale, 1.0) if antialias else 1.0
        middles = (np.arange(new)[:, None] + 0.5) * scale
        made = _KERNELS[method](np.abs(np.arange(size) + 0.5 - middles) / width)
    return (made / made.sum(axis=1, keepdims=True)).astype(np.float32)


def _linear(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - x, 0)


def _cubic(x: np.ndarray) -> np.ndarray:
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _lanczos(x: np.ndarray, radius: int) -> np.ndarray:
    return np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0)


def _gaussian(x: np.ndarray) -> np.ndarray:
    return np.where(x < 1.5, np.exp(-x * x / (2 * 0.5**2)), 0)


def _mitchell(x: np.ndarray) -> np.ndarray:
    near = ((7 / 6) * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x < 1, near, np.where(x < 2, far, 0))


_KERNELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "bilinear": _linear,
    "bicubic": _cubic,
    "lanczos3": functools.partial(_lanczos, radius=3),
    "lanczos5": functools.partial(_lanczos, radius=5),
    "gaussian": _gaussian,
    "mitchellcubic": _mitchell,
}
_BLURS = {"gaussian", "mitchellcubic"}  # images of the size that they have, too
METHODS = frozenset({"nearest", "area", *_KERNELS})
"""All names of methods."""


# ---------------------------------------------------------------- with a border
@op("image.resize_with_pad", "image", kinds="float int", example="r(2, 4, 1), 4, 4")
def resize_with_pad(
    image: Array, target_height: Any, target_width: Any, method: Any = "bilinear",
    antialias: Any = False,
) -> Array:  # fmt: skip
    """Resize to a height and width, with a border to keep the ratio."""
    check_rank(image)
    sizes = [one_int(n, "a size") for n in (target_height, target_width)]
    if min(sizes) <= 0:
        which = "height" if sizes[0] <= 0 else "width"
        raise Refused(ValueError(f"target_{which} must be > 0."))
    old = image.shape[-3:-1]
    ratio = max(n / target for n, target in zip(old, sizes, strict=True))
    new = [n / ratio for n in old]
    small = resize.__wrapped__(image, [math.floor(n) for n in new], method, False, antialias)
    not_too_many((*image.shape[:-3], *sizes, image.shape[-1]))
    pads = [(0, 0)] * image.ndim
    for i, (target, exact) in enumerate(zip(sizes, new, strict=True)):
        before = max(0, math.floor((target - exact) / 2))
        axis = image.ndim - 3 + i
        pads[axis] = (before, target - before - small.shape[axis])
    return jnp.pad(small, pads)

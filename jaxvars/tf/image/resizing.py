"""Other sizes of images: `tf.image.resize` and the like.

Source of the kernels: Keys, "Cubic convolution interpolation for digital image processing", 1981;
Mitchell, Netravali, "Reconstruction filters in computer graphics", 1988.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.image.places import check_rank
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors.static import not_too_many, one_int, refused, require_known
from jaxvars.typing import Array

_METHODS = {
    "bilinear": "linear", "nearest": "nearest", "bicubic": "cubic", "lanczos3": "lanczos3",
    "lanczos5": "lanczos5",
}  # fmt: skip
_OWN = {"area", "gaussian", "mitchellcubic"}


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
    if method not in _METHODS and method not in _OWN:
        raise Refused(ValueError(f"Resize method is not implemented: {method}"))
    shape = not_too_many((*images.shape[:-3], height, width, images.shape[-1]))
    is_exact = method == "nearest"
    x = images if is_exact or images.dtype == np.float32 else images.astype(np.float32)
    if shape == x.shape and method not in _KERNELS:  # those blur
        return x
    if method in _OWN:
        return _weigh(x, height, width, method, bool(antialias))
    exactly = jax.lax.Precision.HIGHEST
    return jax.image.resize(
        x, shape, _METHODS[method], antialias=bool(antialias), precision=exactly
    )


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
def _weigh(x: Array, height: int, width: int, method: str, antialias: bool) -> Array:
    """Return images whose rows and columns are sums of those of others."""
    down, across = (
        _weights(size, new, method, antialias)
        for size, new in ((x.shape[-3], height), (x.shape[-2], width))
    )
    return jnp.einsum("...hwc,Hh,Ww->...HWc", x, down, across, precision="highest")


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


def _gaussian(x: np.ndarray) -> np.ndarray:
    return np.where(x < 1.5, np.exp(-x * x / (2 * 0.5**2)), 0)


def _mitchell(x: np.ndarray) -> np.ndarray:
    near = ((7 / 6) * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x < 1, near, np.where(x < 2, far, 0))


_KERNELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gaussian": _gaussian,
    "mitchellcubic": _mitchell,
}


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

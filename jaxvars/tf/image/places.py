"""Where the pixels of images are, for `tf.image`: flip, crop, pad."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors.static import ints, not_too_many, one_int, refused, require_known
from jaxvars.typing import Array


def check_rank(image: Array) -> None:
    """Raise unless something is an image, or a batch of them."""
    if not 3 <= image.ndim <= 4:
        few = "must be at least three-dimensional: it " if image.ndim < 3 else ""
        raise refused(f"'image' (shape {image.shape}) {few}must have either 3 or 4 dimensions.")
    if 0 in image.shape[-3:]:
        raise refused(f"inner 3 dims of 'image.shape' must be > 0: {image.shape}")


# ---------------------------------------------------------------- turning
@op("image.flip_left_right", "image", op="ReverseV2", example="r(2, 3, 1)")
def flip_left_right(image: Array) -> Array:
    """Exchange left and right."""
    check_rank(image)
    return jnp.flip(image, -2)


@op("image.flip_up_down", "image", op="ReverseV2", example="r(2, 3, 1)")
def flip_up_down(image: Array) -> Array:
    """Exchange top and bottom."""
    check_rank(image)
    return jnp.flip(image, -3)


@op("image.rot90", "image", example="r(2, 3, 1)")
def rot90(image: Array, k: Any = 1) -> Array:
    """Rotate by 90 degrees, against the clock, `k` times."""
    check_rank(image)
    return jnp.rot90(image, one_int(k, "k"), axes=(-3, -2))


@op("image.transpose", "image", example="r(2, 3, 1)")
def transpose(image: Array) -> Array:
    """Exchange rows and columns."""
    check_rank(image)
    return jnp.swapaxes(image, -3, -2)


# ---------------------------------------------------------------- cutting
@op("image.central_crop", "image", op="Slice", example="r(4, 5, 1), 0.5")
def central_crop(image: Array, central_fraction: Any) -> Array:
    """Cut out the middle."""
    check_rank(image)
    part = float(require_known(central_fraction, "central_fraction"))
    if not 0 < part <= 1:
        raise refused("central_fraction must be within (0, 1]")
    (top, height), (left, width) = (_middle(n, part) for n in image.shape[-3:-1])
    return crop(image, top, left, height, width)


def _middle(size: int, part: float) -> tuple[int, int]:
    start = int((size - size * part) / 2)
    return start, size - 2 * start


def crop(image: Array, top: int, left: int, height: int, width: int) -> Array:
    """Return a part of an image."""
    return image[..., top : top + height, left : left + width, :]


def _box(image: Array, *numbers: Any) -> list[int]:
    check_rank(image)
    return [one_int(n, "a size") for n in numbers]


@op("image.crop_to_bounding_box", "image", example="r(3, 4, 1), 1, 0, 2, 3")
def crop_to_bounding_box(
    image: Array, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Array:
    """Cut out a box."""
    top, left, height, width = _box(image, offset_height, offset_width, target_height, target_width)
    for name, offset, target in (("height", top, height), ("width", left, width)):
        if offset < 0:
            raise refused(f"offset_{name} must be >= 0.")
        if target < 1:
            raise refused(f"target_{name} must be > 0.")
    if image.shape[-2] < left + width:
        raise refused("width must be >= target + offset.")
    if image.shape[-3] < top + height:
        raise refused("height must be >= target + offset.")
    return crop(image, top, left, height, width)


@op("image.pad_to_bounding_box", "image", example="r(2, 1, 1), 1, 0, 4, 2")
def pad_to_bounding_box(
    image: Array, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Array:
    """Put into a larger image of zeros."""
    top, left, height, width = _box(image, offset_height, offset_width, target_height, target_width)
    below, right = height - top - image.shape[-3], width - left - image.shape[-2]
    for name, before, after in (("height", top, below), ("width", left, right)):
        if before < 0:
            raise refused(f"offset_{name} must be >= 0")
        if after < 0:
            raise refused(f"{name} must be <= target - offset")
    not_too_many((*image.shape[:-3], height, width, image.shape[-1]))
    return jnp.pad(image, [(0, 0)] * (image.ndim - 3) + [(top, below), (left, right), (0, 0)])


@op("image.resize_with_crop_or_pad", "image", example="r(2, 5, 1), 5, 2")
def resize_with_crop_or_pad(image: Array, target_height: Any, target_width: Any) -> Array:
    """Cut or pad around the middle to a height and width."""
    check_rank(image)
    sizes = [one_int(target, "a size") for target in (target_height, target_width)]
    not_too_many((*image.shape[:-3], *sizes, image.shape[-1]))
    for axis, size in zip((-3, -2), sizes, strict=True):
        if size < 1:
            raise refused(f"target_{'height' if axis == -3 else 'width'} must be > 0.")
        image = _fit(image, image.ndim + axis, size)
    return image


def _fit(image: Array, axis: int, size: int) -> Array:
    excess = image.shape[axis] - size
    if excess > 0:
        return jax.lax.slice_in_dim(image, excess // 2, excess // 2 + size, axis=axis)
    widths = [(0, 0)] * image.ndim
    widths[axis] = (-excess // 2, -excess - -excess // 2)
    return jnp.pad(image, widths)


def corner(shape: tuple[int, ...], size: Any) -> tuple[int, ...]:
    """Return the size of a random crop, checked."""
    sizes = ints(size, "size")
    if len(sizes) != len(shape) or any(n > most for n, most in zip(sizes, shape, strict=True)):
        raise refused(f"Need value.shape >= size, got {list(shape)} {list(sizes)}")
    return sizes

"""Where the pixels of images are, for `tf.image`: flip, crop, pad."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from jaxvars.tf.registry.rows import Row
from jaxvars.tf.tensors.static import ints, known, one_int, refused

Value: TypeAlias = Any


def check_rank(image: Value, least: int = 3) -> None:
    """Raise unless something is an image, or a batch of them."""
    if not least <= image.ndim <= 4:
        raise refused(f"'image' (shape {image.shape}) must have either 3 or 4 dimensions.")


# ---------------------------------------------------------------- turning
def flip_left_right(image: Value) -> Value:
    """Return an image with left and right exchanged."""
    check_rank(image)
    return jnp.flip(image, -2)


def flip_up_down(image: Value) -> Value:
    """Return an image with top and bottom exchanged."""
    check_rank(image)
    return jnp.flip(image, -3)


def _rot90(image: Value, k: Any) -> Value:
    check_rank(image)
    return jnp.rot90(image, one_int(k, "k"), axes=(-3, -2))


def _transpose(image: Value) -> Value:
    check_rank(image)
    return jnp.swapaxes(image, -3, -2)


# ---------------------------------------------------------------- cutting
def _central_crop(image: Value, central_fraction: Any) -> Value:
    check_rank(image)
    part = float(known(central_fraction, "central_fraction"))
    if not 0 < part <= 1:
        raise refused("central_fraction must be within (0, 1]")
    (top, height), (left, width) = (_middle(n, part) for n in image.shape[-3:-1])
    return crop(image, top, left, height, width)


def _middle(size: int, part: float) -> tuple[int, int]:
    start = int((size - size * part) / 2)
    return start, size - 2 * start


def crop(image: Value, top: int, left: int, height: int, width: int) -> Value:
    """Return a part of an image."""
    return image[..., top : top + height, left : left + width, :]


def _crop(
    image: Value, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Value:
    check_rank(image)
    top, left, height, width = (
        one_int(n, "a size") for n in (offset_height, offset_width, target_height, target_width)
    )
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


def _pad(
    image: Value, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Value:
    check_rank(image)
    top, left, height, width = (
        one_int(n, "a size") for n in (offset_height, offset_width, target_height, target_width)
    )
    below, right = height - top - image.shape[-3], width - left - image.shape[-2]
    for name, before, after in (("height", top, below), ("width", left, right)):
        if before < 0:
            raise refused(f"offset_{name} must be >= 0")
        if after < 0:
            raise refused(f"{name} must be <= target - offset")
    return jnp.pad(image, [(0, 0)] * (image.ndim - 3) + [(top, below), (left, right), (0, 0)])


def _fit(image: Value, target_height: Any, target_width: Any) -> Value:
    check_rank(image)
    for axis, target in ((-3, target_height), (-2, target_width)):
        size = one_int(target, "a size")
        if size < 1:
            raise refused(f"target_{'height' if axis == -3 else 'width'} must be > 0.")
        image = _fitted(image, image.ndim + axis, size)
    return image


def _fitted(image: Value, axis: int, size: int) -> Value:
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


ROWS = [
    Row(
        "flip_left_right", "image", "image", flip_left_right, doc="Exchange left and right.",
        examples=(
            "image.flip_left_right(r(2, 3, 1))", "image.flip_left_right(i(2, 1, 2, 1))",
            "image.flip_left_right(b(1, 2, 1))",
        ),
    ),
    Row(
        "flip_up_down", "image", "image", flip_up_down, doc="Exchange top and bottom.",
        examples=(
            "image.flip_up_down(r(2, 3, 1))", "image.flip_up_down(i(2, 2, 1, 1))",
            "image.flip_up_down(b(2, 1, 1))",
        ),
    ),
    Row(
        "rot90", "image", "image, k=1", _rot90,
        doc="Rotate by 90 degrees, against the clock, `k` times.",
        examples=(
            "image.rot90(r(2, 3, 1))", "image.rot90(i(1, 2, 3, 1), k=3)",
            "image.rot90(i(2, 3, 1), 6)",
        ),
    ),
    Row(
        "transpose", "image", "image", _transpose, doc="Exchange rows and columns.",
        examples=(
            "image.transpose(r(2, 3, 1))", "image.transpose(i(1, 2, 3, 1))",
            "image.transpose(b(1, 2, 1))",
        ),
    ),
    Row(
        "central_crop", "image", "image, central_fraction", _central_crop,
        doc="Cut out the middle.",
        examples=(
            "image.central_crop(r(4, 5, 1), 0.5)", "image.central_crop(i(1, 5, 3, 1), 0.4)",
            "image.central_crop(i(2, 2, 1), 1.0)",
        ),
    ),
    Row(
        "crop_to_bounding_box", "image",
        "image, offset_height, offset_width, target_height, target_width", _crop,
        doc="Cut out a box.",
        examples=(
            "image.crop_to_bounding_box(r(3, 4, 1), 1, 0, 2, 3)",
            "image.crop_to_bounding_box(i(2, 3, 2, 1), 0, 1, 1, 1)",
            "image.crop_to_bounding_box(i(2, 2, 1), 0, 0, 2, 2)",
        ),
    ),
    Row(
        "pad_to_bounding_box", "image",
        "image, offset_height, offset_width, target_height, target_width", _pad,
        doc="Put into a larger image of zeros.",
        examples=(
            "image.pad_to_bounding_box(r(2, 1, 1), 1, 0, 4, 2)",
            "image.pad_to_bounding_box(i(1, 1, 2, 1), 0, 1, 2, 4)",
            "image.pad_to_bounding_box(i(2, 2, 1), 0, 0, 2, 2)",
        ),
    ),
    Row(
        "resize_with_crop_or_pad", "image", "image, target_height, target_width", _fit,
        doc="Cut or pad around the middle to a height and width.",
        examples=(
            "image.resize_with_crop_or_pad(r(2, 5, 1), 5, 2)",
            "image.resize_with_crop_or_pad(i(1, 3, 3, 1), 2, 4)",
            "image.resize_with_crop_or_pad(i(2, 2, 1), 2, 2)",
        ),
    ),
]  # fmt: skip

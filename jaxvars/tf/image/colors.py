"""Colors and types of images, for `tf.image`.

Rules this file keeps:
- what takes many steps is one program for each shape, which outside of a `tf.function` is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.math.elements import magnitude
from jaxvars.tf.math.slopes import root
from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import as_dtype, widen
from jaxvars.tf.tensors.static import refused
from jaxvars.tracing import context
from jaxvars.typing import Array

_GRAY = np.array([0.2989, 0.587, 0.114], np.float32)
_FLOAT = np.dtype(np.float32)


def is_float(dtype: Any) -> bool:
    """Return whether a type is one of real numbers."""
    return jnp.issubdtype(dtype, jnp.floating)


# ---------------------------------------------------------------- types
@op("image.convert_image_dtype", "image", kinds="float int")
def convert_image_dtype(image: Array, dtype: Any, saturate: Any = False) -> Array:
    """Convert to another type, with its range: floats are from 0 to 1.

    Example: `tf.image.convert_image_dtype(p(2, 2, 1), tf.uint8, saturate=True)`.
    """
    return convert_type(image, dtype, saturate)


def convert_type(image: Array, dtype: Any, saturate: Any = False) -> Array:
    """Return an image of another type, with its range."""
    wanted = as_dtype(dtype).dtype
    if image.dtype == wanted:
        return image
    if is_float(image.dtype) and is_float(wanted):
        return image.astype(wanted)
    if is_float(wanted):
        return image.astype(wanted) * np.asarray(1.0 / np.iinfo(image.dtype).max, wanted)
    if is_float(image.dtype):
        scaled = image * np.asarray(np.iinfo(wanted).max + 0.5, image.dtype)
        return _cast(scaled, wanted, saturate)
    return _between_integers(image, wanted, saturate)


def _between_integers(image: Array, wanted: Any, saturate: Any) -> Array:
    old, new = int(np.iinfo(image.dtype).max), int(np.iinfo(wanted).max)
    if old > new:
        return _cast(image // np.asarray((old + 1) // (new + 1), image.dtype), wanted, saturate)
    return _cast(image, wanted, saturate) * np.asarray((new + 1) // (old + 1), wanted)


def _cast(x: Array, wanted: Any, saturate: Any) -> Array:
    if not saturate:
        return x.astype(wanted)
    limits = np.iinfo(wanted)
    if is_float(x.dtype):
        return jnp.clip(x, limits.min, limits.max).astype(wanted)
    own = np.iinfo(x.dtype)
    return jnp.clip(x, max(limits.min, own.min), min(limits.max, own.max)).astype(wanted)


def in_floats(image: Array, func: Callable[[Array], Array], saturate: bool = True) -> Array:
    """Return what a function makes of an image as floats, as the type of the image."""
    if is_float(image.dtype):
        return func(image)
    return convert_type(func(convert_type(image, _FLOAT)), image.dtype, saturate)


# ---------------------------------------------------------------- brightness
@op("image.adjust_brightness", "image", op="AddV2", kinds="float int", example="p(2, 2, 1), 0.1")
def adjust_brightness(image: Array, delta: Any) -> Array:
    """Add a number, on the scale of 0 to 1."""
    return in_floats(image, lambda x: x + jnp.asarray(_plain(delta), x.dtype))


@op("image.adjust_contrast", "images", op="AdjustContrastv2", kinds="float int")
def adjust_contrast(images: Array, contrast_factor: Any) -> Array:
    """Multiply the distance of each channel from its mean.

    Example: `tf.image.adjust_contrast(p(2, 2, 2), 2.0)`.
    """
    if images.ndim < 3:
        raise refused(f"input must be at least 3-D, got shape{list(images.shape)}")

    factor = _scalar(contrast_factor, "contrast_factor")
    return in_floats(images, lambda x: _scale_contrast(x, jnp.asarray(factor, x.dtype)))


@jax.jit
def _scale_contrast(x: Array, factor: Array) -> Array:
    mean = jnp.mean(widen(x), axis=(-3, -2), keepdims=True).astype(x.dtype)
    return (x - mean) * factor + mean


@op("image.adjust_gamma", "image", kinds="float int", example="p(2, 2, 1), 2.0, 3")
def adjust_gamma(image: Array, gamma: Any = 1, gain: Any = 1) -> Array:
    """Raise to a power, and multiply."""
    power, factor = _plain(gamma), _plain(gain)
    if context.is_known(power) and np.any(np.asarray(power) < 0):
        raise refused("Gamma should be a non-negative real number.")
    return in_floats(
        image, lambda x: jnp.asarray(factor, x.dtype) * x ** jnp.asarray(power, x.dtype)
    )


def _plain(number: Any) -> Any:
    return number if isinstance(number, int | float) else _convert.to_array(number)


def _scalar(number: Any, name: str) -> Any:
    found = _plain(number)
    if np.ndim(found):
        raise refused(f"{name} must be scalar: {list(found.shape)}")
    return found


@op("image.per_image_standardization", "image", kinds="float int", example="p(2, 2, 1)")
@jax.jit
def per_image_standardization(image: Array) -> Array:
    """Subtract the mean of each image, and divide by its standard deviation."""
    x = image.astype(np.float32)
    mean = jnp.mean(x, axis=(-3, -2, -1), keepdims=True)
    deviation = root(jnp.var(x, axis=(-3, -2, -1), keepdims=True))
    least = np.asarray(1.0 / np.sqrt(max(np.prod(x.shape[-3:]), 1)), x.dtype)
    return (x - mean) / jnp.maximum(deviation, least)


# ---------------------------------------------------------------- colors
@op("image.rgb_to_grayscale", "images", kinds="float int", example="p(2, 2, 3)")
def rgb_to_grayscale(images: Array) -> Array:
    """Weigh the three colors to one."""
    if images.shape[-1:] != (3,):
        raise refused(f"The last dimension of an RGB image is 3, not {images.shape[-1:]}")

    def gray(x: Array) -> Array:
        exactly = jax.lax.Precision.HIGHEST
        return jnp.tensordot(x, _GRAY.astype(x.dtype), 1, precision=exactly)[..., None]

    return in_floats(images, gray, saturate=False)


@op("image.grayscale_to_rgb", "images", example="p(2, 2, 1)")
def grayscale_to_rgb(images: Array) -> Array:
    """Repeat the only channel three times."""
    if images.ndim < 2:
        raise refused(f"A grayscale image (shape {images.shape}) must be at least two-dimensional.")
    if images.shape[-1] != 1:
        raise refused("Last dimension of a grayscale image should be size 1.")
    return jnp.repeat(images, 3, axis=-1)


@op("image.rgb_to_hsv", "images", op="RGBToHSV", kinds="float", example="p(1, 1, 3)")
@jax.jit
def rgb_to_hsv(images: Array) -> Array:
    """Convert to hue, saturation and value.

    Differs from TensorFlow: Where two of the colours are equal, they share the gradient.
    """
    r, g, b = (images[..., i] for i in range(3))
    high, low = images.max(-1), images.min(-1)
    width = high - low
    safe = jnp.where(width > 0, width, 1) * 6
    third = np.asarray(1 / 3, images.dtype)
    hue = jnp.where(
        r == high,
        (g - b) / safe,
        jnp.where(g == high, (b - r) / safe + third, (r - g) / safe + 2 * third),
    )
    hue = jnp.where(width > 0, hue, 0)
    hue = jnp.where(hue < 0, hue + 1, hue)
    saturation = jnp.where(high > 0, width / jnp.where(high > 0, high, 1), 0)
    return jnp.stack([hue, saturation, high], -1)


@op(
    "image.hsv_to_rgb", "images", op="HSVToRGB", kinds="float",
    example="tf.constant([[[0.1, 0.5, 0.3]]])",
)  # fmt: skip
@jax.jit
def hsv_to_rgb(images: Array) -> Array:
    """Convert from hue, saturation and value."""
    hue, saturation, value = images[..., 0] * 6, images[..., 1], images[..., 2]
    parts = [jnp.abs(hue - 3) - 1, 2 - jnp.abs(hue - 2), 2 - jnp.abs(hue - 4)]
    return jnp.stack(
        [(1 - saturation + saturation * jnp.clip(part, 0, 1)) * value for part in parts], -1
    )


@op("image.adjust_hue", "image", kinds="float int", example="p(1, 1, 3), 0.1")
def adjust_hue(image: Array, delta: Any) -> Array:
    """Turn the hue; 1 is all around."""
    if isinstance(delta, int | float) and not -1 <= delta <= 1:
        raise refused("delta must be in the interval [-1, 1]")

    turn = _scalar(delta, "delta")
    return in_floats(image, lambda x: _turn_hue(x, jnp.asarray(turn, x.dtype)))


@jax.jit
def _turn_hue(x: Array, delta: Array) -> Array:
    hsv = rgb_to_hsv.__wrapped__(x)
    return hsv_to_rgb.__wrapped__(hsv.at[..., 0].set((hsv[..., 0] + delta) % 1))


@op("image.adjust_saturation", "image", kinds="float int", example="p(1, 1, 3), 0.5")
def adjust_saturation(image: Array, saturation_factor: Any) -> Array:
    """Multiply the saturation."""
    factor = _scalar(saturation_factor, "scale")
    return in_floats(image, lambda x: _scale_saturation(x, jnp.asarray(factor, x.dtype)))


@jax.jit
def _scale_saturation(x: Array, factor: Array) -> Array:
    hsv = rgb_to_hsv.__wrapped__(x)
    return hsv_to_rgb.__wrapped__(hsv.at[..., 1].set(jnp.clip(hsv[..., 1] * factor, 0, 1)))


# ---------------------------------------------------------------- numbers
@op("image.psnr", "a b", kinds="float int", example="p(2, 2, 1), p(2, 2, 1), 1.0")
def psnr(a: Array, b: Array, max_val: Any) -> Array:
    """Return the ratio of the largest value and the error of images, in decibels."""
    top = convert_type(jnp.asarray(_plain(max_val)).astype(a.dtype), _FLOAT)
    x, y = convert_type(a, _FLOAT), convert_type(b, _FLOAT)
    return _decibels(top, x, y)


@jax.jit
def _decibels(top: Array, x: Array, y: Array) -> Array:
    error = jnp.mean((x - y) ** 2, axis=(-3, -2, -1))
    return 20 * jnp.log10(top) - 10 * jnp.log10(error)


@op("image.total_variation", "images", kinds="float int", example="p(2, 3, 2)")
@jax.jit
def total_variation(images: Array) -> Array:
    """Add up the differences of neighboring pixels."""
    down = magnitude(images[..., 1:, :, :] - images[..., :-1, :, :])
    across = magnitude(images[..., :, 1:, :] - images[..., :, :-1, :])
    axes = (-3, -2, -1)
    total = widen(down).sum(axes) + widen(across).sum(axes)
    return total.astype(images.dtype)


# ---------------------------------------------------------------- YUV
_SPACES = {
    "rgb_to_yuv": [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512],
                   [0.114, 0.43601035, -0.10001026]],
    "yuv_to_rgb": [[1.0, 1.0, 1.0], [0.0, -0.394642334, 2.03206185],
                   [1.13988303, -0.58062185, 0.0]],
}  # fmt: skip
"""What each axis is of each, as TensorFlow has it."""


def _multiply(images: Array, name: str) -> Array:
    if images.shape[-1:] != (3,):
        raise refused(f"The last dimension must be 3, not {images.shape[-1:]}")
    matrix = np.asarray(_SPACES[name], images.dtype)
    return jnp.tensordot(images, matrix, 1, precision=jax.lax.Precision.HIGHEST)


@op("image.rgb_to_yuv", "images", kinds="float", example="p(1, 2, 3)")
def rgb_to_yuv(images: Array) -> Array:
    """Convert from RGB to YUV."""
    return _multiply(images, "rgb_to_yuv")


@op("image.yuv_to_rgb", "images", kinds="float", example="p(1, 2, 3)")
def yuv_to_rgb(images: Array) -> Array:
    """Convert from YUV to RGB."""
    return _multiply(images, "yuv_to_rgb")

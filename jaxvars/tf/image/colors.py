"""Colors and types of images, for `tf.image`.

Rules this file keeps:
- what takes many steps is one program for each shape, which outside of a `tf.function` is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.math.elements import magnitude
from jaxvars.tf.registry.rows import Row
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.static import refused

Value: TypeAlias = Any

_GRAY = np.array([0.2989, 0.587, 0.114], np.float32)
_FLOAT = np.dtype(np.float32)


def is_float(dtype: Any) -> bool:
    """Tell whether a type is one of real numbers."""
    return jnp.issubdtype(dtype, jnp.floating)


# ---------------------------------------------------------------- types
def convert_image_dtype(image: Value, dtype: Any, saturate: Any = False) -> Value:
    """Return an image as another type, with its range: floats are from 0 to 1."""
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


def _between_integers(image: Value, wanted: Any, saturate: Any) -> Value:
    old, new = int(np.iinfo(image.dtype).max), int(np.iinfo(wanted).max)
    if old > new:
        return _cast(image // np.asarray((old + 1) // (new + 1), image.dtype), wanted, saturate)
    return _cast(image, wanted, saturate) * np.asarray((new + 1) // (old + 1), wanted)


def _cast(x: Value, wanted: Any, saturate: Any) -> Value:
    if not saturate:
        return x.astype(wanted)
    limits = np.iinfo(wanted)
    if is_float(x.dtype):
        return jnp.clip(x, limits.min, limits.max).astype(wanted)
    own = np.iinfo(x.dtype)
    return jnp.clip(x, max(limits.min, own.min), min(limits.max, own.max)).astype(wanted)


def in_floats(image: Value, func: Callable[[Value], Value], saturate: bool = True) -> Value:
    """Return what a function makes of an image as floats, as the type of the image."""
    if is_float(image.dtype):
        return func(image)
    return convert_image_dtype(func(convert_image_dtype(image, _FLOAT)), image.dtype, saturate)


# ---------------------------------------------------------------- brightness
def adjust_brightness(image: Value, delta: Any) -> Value:
    """Return an image with a number added."""
    return in_floats(image, lambda x: x + jnp.asarray(_plain(delta), x.dtype))


def adjust_contrast(images: Value, factor: Any) -> Value:
    """Return images with each channel's distance from its mean multiplied."""
    if images.ndim < 3:
        raise refused(f"input must be at least 3-D, got shape{list(images.shape)}")

    return in_floats(images, lambda x: _spread(x, jnp.asarray(_plain(factor), x.dtype)))


@jax.jit
def _spread(x: Value, factor: Value) -> Value:
    mean = jnp.mean(x, axis=(-3, -2), keepdims=True, dtype=x.dtype)
    return (x - mean) * factor + mean


def _adjust_gamma(image: Value, gamma: Any, gain: Any) -> Value:
    if isinstance(gamma, int | float) and gamma < 0:
        raise refused("Gamma should be a non-negative real number.")
    power, factor = _plain(gamma), _plain(gain)
    return in_floats(
        image, lambda x: jnp.asarray(factor, x.dtype) * x ** jnp.asarray(power, x.dtype)
    )


def _plain(number: Any) -> Any:
    return number if isinstance(number, int | float) else _convert.to_array(number)


@jax.jit
def _standardized(image: Value) -> Value:
    x = image if image.dtype == np.float16 else image.astype(np.float32)
    mean = jnp.mean(x, axis=(-3, -2, -1), keepdims=True)
    spread = jnp.std(x, axis=(-3, -2, -1), keepdims=True)
    least = np.asarray(1.0 / np.sqrt(max(np.prod(x.shape[-3:]), 1)), x.dtype)
    return (x - mean) / jnp.maximum(spread, least)


# ---------------------------------------------------------------- colors
def _to_gray(images: Value) -> Value:
    if images.shape[-1:] != (3,):
        raise refused(f"The last dimension of an RGB image is 3, not {images.shape[-1:]}")

    def gray(x: Value) -> Value:
        exactly = jax.lax.Precision.HIGHEST
        return jnp.tensordot(x, _GRAY.astype(x.dtype), 1, precision=exactly)[..., None]

    return in_floats(images, gray, saturate=False)


def _from_gray(images: Value) -> Value:
    if images.shape[-1:] != (1,):
        raise refused("Last dimension of a grayscale image should be size 1.")
    return jnp.repeat(images, 3, axis=-1)


@jax.jit
def _to_hsv(images: Value) -> Value:
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


@jax.jit
def _from_hsv(images: Value) -> Value:
    hue, saturation, value = images[..., 0] * 6, images[..., 1], images[..., 2]
    parts = [jnp.abs(hue - 3) - 1, 2 - jnp.abs(hue - 2), 2 - jnp.abs(hue - 4)]
    return jnp.stack(
        [(1 - saturation + saturation * jnp.clip(part, 0, 1)) * value for part in parts], -1
    )


def adjust_hue(image: Value, delta: Any) -> Value:
    """Return an image with its hue turned by a number, where 1 is all around."""
    if isinstance(delta, int | float) and not -1 <= delta <= 1:
        raise refused("delta must be in the interval [-1, 1]")

    return in_floats(image, lambda x: _turned(x, jnp.asarray(_plain(delta), x.dtype)))


@jax.jit
def _turned(x: Value, delta: Value) -> Value:
    hsv = _to_hsv(x)
    return _from_hsv(hsv.at[..., 0].set((hsv[..., 0] + delta) % 1))


def adjust_saturation(image: Value, factor: Any) -> Value:
    """Return an image with its saturation multiplied."""
    return in_floats(image, lambda x: _saturated(x, jnp.asarray(_plain(factor), x.dtype)))


@jax.jit
def _saturated(x: Value, factor: Value) -> Value:
    hsv = _to_hsv(x)
    return _from_hsv(hsv.at[..., 1].set(jnp.clip(hsv[..., 1] * factor, 0, 1)))


# ---------------------------------------------------------------- numbers
def _psnr(a: Value, b: Value, max_val: Any) -> Value:
    top = convert_image_dtype(jnp.asarray(_plain(max_val)).astype(a.dtype), _FLOAT)
    x, y = convert_image_dtype(a, _FLOAT), convert_image_dtype(b, _FLOAT)
    return _decibels(top, x, y)


@jax.jit
def _decibels(top: Value, x: Value, y: Value) -> Value:
    error = jnp.mean((x - y) ** 2, axis=(-3, -2, -1))
    return 20 * jnp.log10(top) - 10 * jnp.log10(error)


@jax.jit
def _variation(images: Value) -> Value:
    down = magnitude(images[..., 1:, :, :] - images[..., :-1, :, :])
    across = magnitude(images[..., :, 1:, :] - images[..., :, :-1, :])
    axes = (-3, -2, -1)
    return down.sum(axes, dtype=images.dtype) + across.sum(axes, dtype=images.dtype)


ROWS = [
    Row(
        "convert_image_dtype", "image", "image, dtype, saturate=False", convert_image_dtype,
        kinds="float int", doc="Convert to another type, with its range: floats are from 0 to 1.",
        examples=(
            "image.convert_image_dtype(p(2, 2, 1), tf.uint8, saturate=True)",
            "image.convert_image_dtype(tf.constant([[[0], [51], [255]]], tf.uint8), tf.float32)",
            "image.convert_image_dtype(tf.constant([256, 65535], tf.uint16), tf.uint8)",
            "image.convert_image_dtype(tf.constant([3], tf.uint8), tf.int32)",
        ),
    ),
    Row(
        "adjust_brightness", "image", "image, delta", adjust_brightness, kinds="float int",
        doc="Add a number, on the scale of 0 to 1.",
        examples=(
            "image.adjust_brightness(p(2, 2, 1), 0.1)",
            "image.adjust_brightness(tf.constant([[[0, 100, 250]]], tf.uint8), 0.1)",
            "image.adjust_brightness(tf.constant([[[0, 100, 250]]], tf.uint8), -0.5)",
        ),
    ),
    Row(
        "adjust_contrast", "images", "images, contrast_factor", adjust_contrast,
        op="AdjustContrastv2",
        kinds="float int", doc="Multiply the distance of each channel from its mean.",
        examples=(
            "image.adjust_contrast(p(2, 2, 2), 2.0)", "image.adjust_contrast(p(2, 2), 2.0)",
            "image.adjust_contrast(tf.constant([[[0], [100]], [[60], [250]]], tf.uint8), 0.5)",
        ),
    ),
    Row(
        "adjust_gamma", "image", "image, gamma=1, gain=1", _adjust_gamma, kinds="float int",
        doc="Raise to a power, and multiply.",
        examples=(
            "image.adjust_gamma(p(2, 2, 1), 2.0, 3)", "image.adjust_gamma(tf.ones([2, 2, 1]))",
            "image.adjust_gamma(tf.constant([[[0, 100, 250]]], tf.uint8), 0.5)",
        ),
    ),
    Row(
        "adjust_hue", "image", "image, delta", adjust_hue, kinds="float int",
        doc="Turn the hue; 1 is all around.",
        examples=(
            "image.adjust_hue(p(1, 1, 3), 0.1)",
            "image.adjust_hue(tf.constant([[[0.1, 0.5, 0.3]]]), -0.4)",
            "image.adjust_hue(tf.constant([[[0, 100, 250]]], tf.uint8), 0.1)",
        ),
    ),
    Row(
        "adjust_saturation", "image", "image, saturation_factor", adjust_saturation,
        kinds="float int",
        doc="Multiply the saturation.",
        examples=(
            "image.adjust_saturation(p(1, 1, 3), 0.5)",
            "image.adjust_saturation(tf.constant([[[0.1, 0.5, 0.3]]]), 2.0)",
            "image.adjust_saturation(tf.constant([[[0, 100, 250]]], tf.uint8), 0.5)",
        ),
    ),
    Row(
        "per_image_standardization", "image", "image", _standardized, kinds="float int",
        doc="Subtract the mean of each image, and divide by its standard deviation.",
        examples=(
            "image.per_image_standardization(p(2, 2, 1))",
            "image.per_image_standardization(i(2, 2, 1, 3))",
            "image.per_image_standardization(tf.zeros([2, 2, 1]))",
        ),
    ),
    Row(
        "rgb_to_grayscale", "images", "images", _to_gray, kinds="float int",
        doc="Weigh the three colors to one.",
        examples=(
            "image.rgb_to_grayscale(p(2, 2, 3))", "image.rgb_to_grayscale(p(1, 2, 1, 3))",
            "image.rgb_to_grayscale(tf.constant([[[0, 100, 250]]], tf.uint8))",
            "image.rgb_to_grayscale(p(2, 2))",
        ),
    ),
    Row(
        "grayscale_to_rgb", "images", "images", _from_gray,
        doc="Repeat the only channel three times.",
        examples=(
            "image.grayscale_to_rgb(p(2, 2, 1))", "image.grayscale_to_rgb(i(1, 2, 1, 1))",
            "image.grayscale_to_rgb(i(0, 2, 1))",
        ),
    ),
    Row(
        "rgb_to_hsv", "images", "images", _to_hsv, kinds="float",
        doc="Convert to hue, saturation and value.",
        examples=(
            "image.rgb_to_hsv(p(1, 1, 3))", "image.rgb_to_hsv(tf.zeros([1, 1, 3]))",
            "image.rgb_to_hsv(tf.constant([[[0.1, 0.5, 0.3]]]))",
        ),
    ),
    Row(
        "hsv_to_rgb", "images", "images", _from_hsv, kinds="float",
        doc="Convert from hue, saturation and value.",
        examples=(
            "image.hsv_to_rgb(tf.constant([[[0.1, 0.5, 0.3]]]))",
            "image.hsv_to_rgb(tf.zeros([1, 1, 3]))",
            "image.hsv_to_rgb(tf.constant([[0.9, 1.0, 2.0]]))",
        ),
    ),
    Row(
        "psnr", "a b", "a, b, max_val", _psnr, kinds="float int",
        doc="Return the ratio of the largest value and the error of images, in decibels.",
        examples=(
            "image.psnr(p(2, 2, 1), p(2, 2, 1), 1.0)",
            "image.psnr(tf.ones([2, 2, 1]), tf.ones([2, 2, 1]), 1.0)",
            "image.psnr(*[tf.constant([[[n]]], tf.uint8) for n in (9, 12)], max_val=255)",
        ),
    ),
    Row(
        "total_variation", "images", "images", _variation, kinds="float int",
        doc="Add up the differences of neighboring pixels.",
        examples=(
            "image.total_variation(p(2, 3, 2))", "image.total_variation(i(2, 2, 2, 1))",
            "image.total_variation(tf.ones([1, 1, 1]))",
        ),
    ),
]  # fmt: skip

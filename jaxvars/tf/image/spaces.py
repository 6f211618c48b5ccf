"""Spaces of colors whose axes are sums of others', for `tf.image`: YIQ and YUV."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors.static import refused
from jaxvars.typing import Array

_SPACES = {
    "rgb_to_yiq": [
        [0.299, 0.59590059, 0.2115],
        [0.587, -0.27455667, -0.52273617],
        [0.114, -0.32134392, 0.31119955],
    ],
    "yiq_to_rgb": [
        [1.0, 1.0, 1.0],
        [0.95598634, -0.27201283, -1.10674021],
        [0.6208248, -0.64720424, 1.70423049],
    ],
    "rgb_to_yuv": [
        [0.299, -0.14714119, 0.61497538],
        [0.587, -0.28886916, -0.51496512],
        [0.114, 0.43601035, -0.10001026],
    ],
    "yuv_to_rgb": [
        [1.0, 1.0, 1.0],
        [0.0, -0.394642334, 2.03206185],
        [1.13988303, -0.58062185, 0.0],
    ],
}
"""What each axis is of each, as TensorFlow has it."""


def _converted(images: Array, name: str) -> Array:
    if images.shape[-1:] != (3,):
        raise refused(f"The last dimension must be 3, not {images.shape[-1:]}")
    matrix = np.asarray(_SPACES[name], images.dtype)
    return jnp.tensordot(images, matrix, 1, precision=jax.lax.Precision.HIGHEST)


@op("image.rgb_to_yiq", "images", kinds="float")
def rgb_to_yiq(images: Array) -> Array:
    """Convert from RGB to YIQ.

    Example: `tf.image.rgb_to_yiq(p(1, 2, 3))`.
    """
    return _converted(images, "rgb_to_yiq")


@op("image.yiq_to_rgb", "images", kinds="float")
def yiq_to_rgb(images: Array) -> Array:
    """Convert from YIQ to RGB.

    Example: `tf.image.yiq_to_rgb(p(1, 2, 3))`.
    """
    return _converted(images, "yiq_to_rgb")


@op("image.rgb_to_yuv", "images", kinds="float")
def rgb_to_yuv(images: Array) -> Array:
    """Convert from RGB to YUV.

    Example: `tf.image.rgb_to_yuv(p(1, 2, 3))`.
    """
    return _converted(images, "rgb_to_yuv")


@op("image.yuv_to_rgb", "images", kinds="float")
def yuv_to_rgb(images: Array) -> Array:
    """Convert from YUV to RGB.

    Example: `tf.image.yuv_to_rgb(p(1, 2, 3))`.
    """
    return _converted(images, "yuv_to_rgb")

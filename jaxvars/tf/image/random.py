"""Random changes of images, for `tf.image`: the same seeds give TensorFlow's.

Rules this file keeps:
- what is drawn is what `tf.random.uniform` and `tf.random.stateless_uniform` draw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf import random as _random
from jaxvars.tf.image import colors as colors
from jaxvars.tf.image import files as files
from jaxvars.tf.image import places as places
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors.static import one_int
from jaxvars.typing import Array

Draw: TypeAlias = Callable[..., Array]

_NUMBERS = "float int"
_INT32 = np.iinfo(np.int32).max
_STREAMS = (
    "the values of a seed are TensorFlow's if the streams are begun again by `tf.random.set_seed`."
)


def _draw(shape: Any, low: Any, high: Any, dtype: str, seed: Any) -> Array:
    return _random.uniform(shape, low, high, dtype, seed)._array


def _draw_of_seed(shape: Any, low: Any, high: Any, dtype: str, seed: Any) -> Array:
    return _random.stateless_uniform(shape, seed, low, high, dtype)._array


# ---------------------------------------------------------------- flips
def _flip(turn: Callable[[Array], Array], draw: Draw, image: Array, seed: Any) -> Array:
    turned = turn(image)
    if image.ndim == 3:
        return jnp.where(draw([], 0, 1.0, "float32", seed) < 0.5, turned, image)
    size = image.shape[:-3]
    chosen = jnp.round(draw(list(size), 0, 1.0, "float32", seed)).reshape(*size, 1, 1, 1)
    return jnp.where(chosen > 0, turned, image)


@op("image.random_flip_left_right", "image", example="tf.ones([2, 3, 1]), seed=1", differs=_STREAMS)
def random_flip_left_right(image: Array, seed: Any = None) -> Array:
    """Exchange left and right of every second image, by chance."""
    return _flip(places.flip_left_right.__wrapped__, _draw, image, seed)


@op("image.stateless_random_flip_left_right", "image", example="tf.ones([2, 3, 1]), seed=(1, 5)")
def stateless_random_flip_left_right(image: Array, seed: Any) -> Array:
    """Exchange left and right of every second image, by chance, by a seed."""
    return _flip(places.flip_left_right.__wrapped__, _draw_of_seed, image, seed)


@op("image.random_flip_up_down", "image", example="tf.ones([2, 3, 1]), seed=1", differs=_STREAMS)
def random_flip_up_down(image: Array, seed: Any = None) -> Array:
    """Exchange top and bottom of every second image, by chance."""
    return _flip(places.flip_up_down.__wrapped__, _draw, image, seed)


@op("image.stateless_random_flip_up_down", "image", example="tf.ones([2, 3, 1]), seed=(1, 5)")
def stateless_random_flip_up_down(image: Array, seed: Any) -> Array:
    """Exchange top and bottom of every second image, by chance, by a seed."""
    return _flip(places.flip_up_down.__wrapped__, _draw_of_seed, image, seed)


# ---------------------------------------------------------------- colors
def _delta(draw: Draw, max_delta: Any, seed: Any) -> Array:
    if max_delta < 0:
        raise Refused(ValueError("max_delta must be non-negative."))
    return draw([], -max_delta, max_delta, "float32", seed)


@op("image.random_brightness", "image", kinds=_NUMBERS, differs=_STREAMS)
def random_brightness(image: Array, max_delta: Any, seed: Any = None) -> Array:
    """Add a random value.

    Example: `tf.image.random_brightness(p(2, 2, 1), 1e-9, seed=1)`.
    """
    return colors.adjust_brightness.__wrapped__(image, _delta(_draw, max_delta, seed))


@op("image.stateless_random_brightness", "image", kinds=_NUMBERS)
def stateless_random_brightness(image: Array, max_delta: Any, seed: Any) -> Array:
    """Add a random number, by a seed.

    Example: `tf.image.stateless_random_brightness(p(2, 2, 1), 1e-9, seed=(1, 5))`.
    """
    return colors.adjust_brightness.__wrapped__(image, _delta(_draw_of_seed, max_delta, seed))


def _hue(draw: Draw, image: Array, max_delta: Any, seed: Any) -> Array:
    if max_delta > 0.5:
        raise Refused(ValueError("max_delta must be <= 0.5."))
    return colors.adjust_hue.__wrapped__(image, _delta(draw, max_delta, seed))


@op("image.random_hue", "image", kinds=_NUMBERS, differs=_STREAMS)
def random_hue(image: Array, max_delta: Any, seed: Any = None) -> Array:
    """Turn the hue by a random value.

    Example: `tf.image.random_hue(tf.ones([1, 1, 3]), 0.5, seed=1)`.
    """
    return _hue(_draw, image, max_delta, seed)


@op("image.stateless_random_hue", "image", kinds=_NUMBERS)
def stateless_random_hue(image: Array, max_delta: Any, seed: Any) -> Array:
    """Turn the hue by a random number, by a seed.

    Example: `tf.image.stateless_random_hue(tf.ones([1, 1, 3]), 0.5, seed=(1, 5))`.
    """
    return _hue(_draw_of_seed, image, max_delta, seed)


@op("image.random_contrast", "image", kinds=_NUMBERS, differs=_STREAMS)
def random_contrast(image: Array, lower: Any, upper: Any, seed: Any = None) -> Array:
    """Multiply the distance of each channel from its mean by a random value.

    Example: `tf.image.random_contrast(tf.ones([2, 2, 1]), 0.5, 2.0, seed=1)`.
    """
    return colors.adjust_contrast.__wrapped__(image, _factor(_draw, lower, upper, seed))


@op("image.stateless_random_contrast", "image", kinds=_NUMBERS)
def stateless_random_contrast(image: Array, lower: Any, upper: Any, seed: Any) -> Array:
    """Multiply the distance of each channel from its mean by a random number, by a seed.

    Example: `tf.image.stateless_random_contrast(tf.ones([2, 2, 1]), 0.5, 2.0, seed=(1, 5))`.
    """
    return colors.adjust_contrast.__wrapped__(image, _factor(_draw_of_seed, lower, upper, seed))


@op("image.random_saturation", "image", kinds=_NUMBERS, differs=_STREAMS)
def random_saturation(image: Array, lower: Any, upper: Any, seed: Any = None) -> Array:
    """Multiply the saturation by a random value.

    Example: `tf.image.random_saturation(tf.ones([1, 1, 3]), 0.5, 2.0, seed=1)`.
    """
    return colors.adjust_saturation.__wrapped__(image, _factor(_draw, lower, upper, seed))


@op("image.stateless_random_saturation", "image", kinds=_NUMBERS)
def stateless_random_saturation(image: Array, lower: Any, upper: Any, seed: Any = None) -> Array:
    """Multiply the saturation by a random number, by a seed.

    Example: `tf.image.stateless_random_saturation(tf.ones([1, 1, 3]), 0.5, 2.0, seed=(1, 5))`.
    """
    return colors.adjust_saturation.__wrapped__(image, _factor(_draw_of_seed, lower, upper, seed))


def _factor(draw: Draw, lower: Any, upper: Any, seed: Any) -> Array:
    if upper <= lower:
        raise Refused(ValueError("upper must be > lower."))
    if lower < 0:
        raise Refused(ValueError("lower must be non-negative."))
    return draw([], lower, upper, "float32", seed)


def _quality(draw: Draw, image: Array, low: Any, high: Any, seed: Any) -> Array:
    least, most = one_int(low, "min_jpeg_quality"), one_int(high, "max_jpeg_quality")
    if least < 0 or most < 0 or least > 100 or most > 100:
        raise Refused(ValueError("jpeg encoding range must be between 0 and 100."))
    if least >= most:
        raise Refused(ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`."))
    return files.adjust_jpeg_quality.__wrapped__(image, draw([], least, most, "int32", seed), "")


@op("image.random_jpeg_quality", "image", kinds=_NUMBERS, eager_only=files.HOST, differs=_STREAMS)
def random_jpeg_quality(
    image: Array, min_jpeg_quality: Any, max_jpeg_quality: Any, seed: Any = None
) -> Array:
    """Lose what JPEG loses, at a random quality.

    Example: `tf.image.random_jpeg_quality(tf.zeros([8, 8, 3]), 99, 100, seed=1)`.
    """
    return _quality(_draw, image, min_jpeg_quality, max_jpeg_quality, seed)


@op("image.stateless_random_jpeg_quality", "image", kinds=_NUMBERS, eager_only=files.HOST)
def stateless_random_jpeg_quality(
    image: Array, min_jpeg_quality: Any, max_jpeg_quality: Any, seed: Any
) -> Array:
    """Lose what JPEG loses, at a random quality, by a seed.

    Example: `tf.image.stateless_random_jpeg_quality(tf.zeros([8, 8, 3]), 99, 100, seed=(1, 5))`.
    """
    return _quality(_draw_of_seed, image, min_jpeg_quality, max_jpeg_quality, seed)


# ---------------------------------------------------------------- crops
def _crop(draw: Draw, value: Array, size: Any, seed: Any) -> Array:
    sizes = places.corner(value.shape, size)
    limits = jnp.array([n - m + 1 for n, m in zip(value.shape, sizes, strict=True)], jnp.int32)
    starts = draw([len(sizes)], 0, _INT32, "int32", seed) % limits
    return jax.lax.dynamic_slice(value, list(starts), sizes)


@op("image.random_crop", "value", example="tf.ones([3, 3, 1]), [2, 2, 1], seed=1", differs=_STREAMS)
def random_crop(value: Array, size: Any, seed: Any = None) -> Array:
    """Cut out a random part."""
    return _crop(_draw, value, size, seed)


@op("image.stateless_random_crop", "value", example="tf.ones([3, 3, 1]), [2, 2, 1], seed=(1, 5)")
def stateless_random_crop(value: Array, size: Any, seed: Any) -> Array:
    """Cut out a random part, by a seed."""
    return _crop(_draw_of_seed, value, size, seed)

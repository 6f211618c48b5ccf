"""`tf.image`: resize, flip, crop and color images: [height, width, channels], or batches of them.

Rules this file keeps:
- random changes draw from the streams of `tf.random`, each image of a batch for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from jaxvars.tf import _convert
from jaxvars.tf import _image_colors as colors
from jaxvars.tf import _image_places as places
from jaxvars.tf import _random_streams as streams
from jaxvars.tf._image_places import ResizeMethod as ResizeMethod
from jaxvars.tf._rows import Row, operations
from jaxvars.tf._static import refused

Value: TypeAlias = Any

_NUMBERS = "the random numbers are those of `jax.random`."


def _key(seed: Any) -> Value:
    return streams.source("RandomUniform", seed)()


def _stateless(seed: Any) -> Value:
    words = jnp.asarray(_convert.to_array(seed)).astype(jnp.uint32)
    if words.shape != (2,):
        raise refused(f"seed must have shape [2], got shape {list(words.shape)}")
    return jax.random.wrap_key_data(words, impl="threefry2x32")


# ---------------------------------------------------------------- flips
def _flip(image: Value, key: Value, turn: Callable[[Value], Value]) -> Value:
    turned = turn(image)
    size = image.shape[:-3]
    chosen = jax.random.bernoulli(key, 0.5, size).reshape(*size, 1, 1, 1)
    return jnp.where(chosen, turned, image)


def _left_right(image: Value, seed: Any) -> Value:
    return _flip(image, _key(seed), places.flip_left_right)


def _up_down(image: Value, seed: Any) -> Value:
    return _flip(image, _key(seed), places.flip_up_down)


def _stateless_left_right(image: Value, seed: Any) -> Value:
    return _flip(image, _stateless(seed), places.flip_left_right)


def _stateless_up_down(image: Value, seed: Any) -> Value:
    return _flip(image, _stateless(seed), places.flip_up_down)


# ---------------------------------------------------------------- colors
def _between(key: Value, low: Any, high: Any) -> Value:
    return jax.random.uniform(key, (), jnp.float32, low, high)


def _brightness(image: Value, max_delta: Any, seed: Any) -> Value:
    if max_delta < 0:
        raise refused("max_delta must be non-negative.")
    return colors.adjust_brightness(image, _between(_key(seed), -max_delta, max_delta))


def _hue(image: Value, max_delta: Any, seed: Any) -> Value:
    if not 0 <= max_delta <= 0.5:
        raise refused(
            "max_delta must be <= 0.5." if max_delta > 0 else "max_delta must be non-negative."
        )
    return colors.adjust_hue(image, _between(_key(seed), -max_delta, max_delta))


def _contrast(image: Value, lower: Any, upper: Any, seed: Any) -> Value:
    return colors.adjust_contrast(image, _factor(lower, upper, seed))


def _saturation(image: Value, lower: Any, upper: Any, seed: Any) -> Value:
    return colors.adjust_saturation(image, _factor(lower, upper, seed))


def _factor(lower: Any, upper: Any, seed: Any) -> Value:
    if lower < 0:
        raise refused("lower must be non-negative.")
    if upper <= lower:
        raise refused("upper must be > lower.")
    return _between(_key(seed), lower, upper)


# ---------------------------------------------------------------- crops
def _cropped(value: Value, size: Any, key: Value) -> Value:
    sizes = places.corner(value.shape, size)
    limits = jnp.array([n - m + 1 for n, m in zip(value.shape, sizes, strict=True)])
    starts = jax.random.randint(key, (len(sizes),), 0, limits)
    return jax.lax.dynamic_slice(value, list(starts), sizes)


def _crop(value: Value, size: Any, seed: Any) -> Value:
    return _cropped(value, size, _key(seed))


def _stateless_crop(value: Value, size: Any, seed: Any) -> Value:
    return _cropped(value, size, _stateless(seed))


RANDOM = [
    Row(
        "random_flip_left_right", "image", "image, seed=None", _left_right, differs=_NUMBERS,
        doc="Exchange left and right of every second image, by chance.",
        examples=(
            "image.random_flip_left_right(tf.ones([2, 3, 1]))",
            "image.random_flip_left_right(i(2, 1, 1), seed=3)",
            "image.random_flip_left_right(tf.ones([1, 2, 3, 1]), 1)",
        ),
    ),
    Row(
        "random_flip_up_down", "image", "image, seed=None", _up_down, differs=_NUMBERS,
        doc="Exchange top and bottom of every second image, by chance.",
        examples=(
            "image.random_flip_up_down(tf.ones([2, 3, 1]))",
            "image.random_flip_up_down(i(1, 2, 1), seed=3)",
            "image.random_flip_up_down(tf.ones([1, 2, 3, 1]), 1)",
        ),
    ),
    Row(
        "stateless_random_flip_left_right", "image", "image, seed", _stateless_left_right,
        doc="Exchange left and right of every second image, by a seed.", differs=_NUMBERS,
        examples=(
            "image.stateless_random_flip_left_right(tf.ones([2, 3, 1]), (1, 2))",
            "image.stateless_random_flip_left_right(i(2, 1, 1), [3, 4])",
            "image.stateless_random_flip_left_right(i(2, 2, 1, 1), (5, 6))",
        ),
    ),
    Row(
        "stateless_random_flip_up_down", "image", "image, seed", _stateless_up_down,
        doc="Exchange top and bottom of every second image, by a seed.", differs=_NUMBERS,
        examples=(
            "image.stateless_random_flip_up_down(tf.ones([2, 3, 1]), (1, 2))",
            "image.stateless_random_flip_up_down(i(1, 2, 1), [3, 4])",
            "image.stateless_random_flip_up_down(i(2, 1, 2, 1), (5, 6))",
        ),
    ),
    Row(
        "random_brightness", "image", "image, max_delta, seed=None", _brightness, kinds="float int",
        doc="Add a random number.", differs=_NUMBERS,
        examples=(
            "image.random_brightness(p(2, 2, 1), 1e-9)",
            "image.random_brightness(tf.ones([2, 2, 1]), 1e-9, seed=1)",
            "image.random_brightness(tf.ones([1, 2, 2, 1]), 1e-9)",
        ),
    ),
    Row(
        "random_contrast", "image", "image, lower, upper, seed=None", _contrast, kinds="float int",
        doc="Multiply the distance of each channel from its mean by a random number.",
        differs=_NUMBERS,
        examples=(
            "image.random_contrast(tf.ones([2, 2, 1]), 0.5, 2.0)",
            "image.random_contrast(tf.ones([2, 2, 1]), 0.5, 2.0)",
            "image.random_contrast(tf.ones([1, 2, 2, 1]), 0.99999999, 1.0, seed=1)",
        ),
    ),
    Row(
        "random_saturation", "image", "image, lower, upper, seed=None", _saturation,
        kinds="float int",
        doc="Multiply the saturation by a random number.", differs=_NUMBERS,
        examples=(
            "image.random_saturation(tf.ones([1, 1, 3]), 0.5, 2.0)",
            "image.random_saturation(tf.zeros([1, 1, 3]), 0.5, 2.0)",
            "image.random_saturation(tf.ones([1, 1, 1, 3]), 0.5, 1.0, seed=1)",
        ),
    ),
    Row(
        "random_hue", "image", "image, max_delta, seed=None", _hue, kinds="float int",
        doc="Turn the hue by a random number.", differs=_NUMBERS,
        examples=(
            "image.random_hue(tf.ones([1, 1, 3]), 0.5)",
            "image.random_hue(tf.zeros([1, 1, 3]), 0.1)",
            "image.random_hue(tf.ones([1, 1, 1, 3]), 0.5, seed=1)",
        ),
    ),
    Row(
        "random_crop", "value", "value, size, seed=None", _crop, doc="Cut out a random part.",
        differs=_NUMBERS,
        examples=(
            "image.random_crop(tf.ones([3, 3, 1]), [2, 2, 1])",
            "image.random_crop(tf.ones([3, 3, 1]), [2, 2, 1], seed=1)",
            "image.random_crop(r(2, 2), [3, 2])",
        ),
    ),
    Row(
        "stateless_random_crop", "value", "value, size, seed", _stateless_crop,
        doc="Cut out a random part, by a seed.", differs=_NUMBERS,
        examples=(
            "image.stateless_random_crop(tf.ones([3, 3, 1]), [2, 2, 1], (1, 2))",
            "image.stateless_random_crop(tf.ones([3, 3, 1]), [2, 2, 1], [3, 4])",
            "image.stateless_random_crop(r(2, 2), [3, 2], (5, 6))",
        ),
    ),
]  # fmt: skip

ROWS = [*places.ROWS, *colors.ROWS, *RANDOM]

__getattr__ = operations(__name__, ROWS, ("ResizeMethod",))

"""Random changes of images, for `tf.image`: the same seeds give TensorFlow's.

Rules this file keeps:
- what is drawn is what `tf.random.uniform` and `tf.random.stateless_uniform` draw.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf import random as _random
from jaxvars.tf.image import colors as colors
from jaxvars.tf.image import files as files
from jaxvars.tf.image import places as places
from jaxvars.tf.registry.rows import Refused, Row
from jaxvars.tf.tensors.static import one_int

Value: TypeAlias = Any
Draw: TypeAlias = Callable[..., Value]

_INT32 = np.iinfo(np.int32).max


def _drawn(shape: Any, low: Any, high: Any, dtype: str, seed: Any) -> Value:
    return _random.uniform(shape, low, high, dtype, seed)._array


def _of_seed(shape: Any, low: Any, high: Any, dtype: str, seed: Any) -> Value:
    return _random.stateless_uniform(shape, seed, low, high, dtype)._array


# ---------------------------------------------------------------- flips
def _flip(turn: Callable[[Value], Value], draw: Draw, image: Value, seed: Any) -> Value:
    turned = turn(image)
    if image.ndim == 3:
        return jnp.where(draw([], 0, 1.0, "float32", seed) < 0.5, turned, image)
    size = image.shape[:-3]
    chosen = jnp.round(draw(list(size), 0, 1.0, "float32", seed)).reshape(*size, 1, 1, 1)
    return jnp.where(chosen > 0, turned, image)


# ---------------------------------------------------------------- colors
def _between(draw: Draw, low: Any, high: Any, seed: Any) -> Value:
    return draw([], low, high, "float32", seed)


def _brightness(draw: Draw, image: Value, max_delta: Any, seed: Any) -> Value:
    if max_delta < 0:
        raise Refused(ValueError("max_delta must be non-negative."))
    return colors.adjust_brightness(image, _between(draw, -max_delta, max_delta, seed))


def _hue(draw: Draw, image: Value, max_delta: Any, seed: Any) -> Value:
    if max_delta > 0.5:
        raise Refused(ValueError("max_delta must be <= 0.5."))
    if max_delta < 0:
        raise Refused(ValueError("max_delta must be non-negative."))
    return colors.adjust_hue(image, _between(draw, -max_delta, max_delta, seed))


def _contrast(draw: Draw, image: Value, lower: Any, upper: Any, seed: Any) -> Value:
    return colors.adjust_contrast(image, _factor(draw, lower, upper, seed))


def _saturation(draw: Draw, image: Value, lower: Any, upper: Any, seed: Any) -> Value:
    return colors.adjust_saturation(image, _factor(draw, lower, upper, seed))


def _factor(draw: Draw, lower: Any, upper: Any, seed: Any) -> Value:
    if upper <= lower:
        raise Refused(ValueError("upper must be > lower."))
    if lower < 0:
        raise Refused(ValueError("lower must be non-negative."))
    return _between(draw, lower, upper, seed)


def _quality(draw: Draw, image: Value, low: Any, high: Any, seed: Any) -> Value:
    least, most = one_int(low, "min_jpeg_quality"), one_int(high, "max_jpeg_quality")
    if least < 0 or most < 0 or least > 100 or most > 100:
        raise Refused(ValueError("jpeg encoding range must be between 0 and 100."))
    if least >= most:
        raise Refused(ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`."))
    return files.adjust_jpeg_quality(image, draw([], least, most, "int32", seed), "")


# ---------------------------------------------------------------- crops
def _crop(draw: Draw, value: Value, size: Any, seed: Any) -> Value:
    sizes = places.corner(value.shape, size)
    limits = jnp.array([n - m + 1 for n, m in zip(value.shape, sizes, strict=True)], jnp.int32)
    starts = draw([len(sizes)], 0, _INT32, "int32", seed) % limits
    return jax.lax.dynamic_slice(value, list(starts), sizes)


def _pair(
    name: str,
    call: Callable[..., Value],
    arguments: str,
    doc: str,
    examples: tuple[str, ...],
    default: str = "",
    **facts: Any,
) -> list[Row]:
    """Return the rows of a random change, with a seed of an operation and with one for each call.

    Args:
        name: of the operation.
        call: what does it, from what draws numbers and the arguments.
        arguments: the signature without the seed.
        doc: what it does.
        examples: calls without the seed, whose results do not depend on it, unless in the second.
        default: of the seed for each call.
        **facts: for the rows.
    """
    tensor, calls = arguments.partition(",")[0], examples
    return [
        Row(
            name, tensor, f"{arguments}, seed=None", functools.partial(call, _drawn), doc=doc,
            examples=tuple(f"image.{name}({each}, seed={i + 1})" for i, each in enumerate(calls)),
            differs="the numbers of a seed are TensorFlow's if the streams are begun anew by "
            "`tf.random.set_seed`.",
            **facts,
        ),
        Row(
            f"stateless_{name}", tensor, f"{arguments}, seed{default}",
            functools.partial(call, _of_seed), doc=f"{doc[:-1]}, by a seed.",
            examples=tuple(
                f"image.stateless_{name}({each}, seed=({i + 1}, 5))" for i, each in enumerate(calls)
            ),
            **facts,
        ),
    ]  # fmt: skip


ROWS = [
    *_pair(
        "random_flip_left_right", functools.partial(_flip, places.flip_left_right), "image",
        "Exchange left and right of every second image, by chance.",
        ("tf.ones([2, 3, 1])", "tf.ones([2, 1, 1])", "tf.ones([1, 2, 3, 1])"),
    ),
    *_pair(
        "random_flip_up_down", functools.partial(_flip, places.flip_up_down), "image",
        "Exchange top and bottom of every second image, by chance.",
        ("tf.ones([2, 3, 1])", "tf.ones([1, 2, 1])", "tf.ones([1, 2, 3, 1])"),
    ),
    *_pair(
        "random_brightness", _brightness, "image, max_delta", "Add a random number.",
        ("p(2, 2, 1), 1e-9", "tf.ones([2, 2, 1]), 1e-9", "tf.ones([2, 2, 1]), -1.0"),
        kinds="float int",
    ),
    *_pair(
        "random_contrast", _contrast, "image, lower, upper",
        "Multiply the distance of each channel from its mean by a random number.",
        ("tf.ones([2, 2, 1]), 0.5, 2.0", "tf.ones([1, 2, 2, 1]), 0.5, 2.0",
         "tf.ones([1, 2, 2, 1]), 2.0, 1.0"),
        kinds="float int",
    ),
    *_pair(
        "random_saturation", _saturation, "image, lower, upper",
        "Multiply the saturation by a random number.",
        ("tf.ones([1, 1, 3]), 0.5, 2.0", "tf.zeros([1, 1, 3]), 0.5, 2.0",
         "tf.ones([1, 1, 1, 3]), -1.0, 1.0"),
        "=None", kinds="float int",
    ),
    *_pair(
        "random_hue", _hue, "image, max_delta", "Turn the hue by a random number.",
        ("tf.ones([1, 1, 3]), 0.5", "tf.zeros([1, 1, 3]), 0.1", "tf.ones([1, 1, 1, 3]), 0.6"),
        kinds="float int",
    ),
    *_pair(
        "random_jpeg_quality", _quality, "image, min_jpeg_quality, max_jpeg_quality",
        "Lose what JPEG loses, at a random quality.",
        ("tf.zeros([8, 8, 3]), 99, 100", "tf.zeros([8, 8, 3], tf.uint8), 99, 100",
         "tf.zeros([8, 8, 3]), 80, 20"),
        kinds="float int", eager_only=files.HOST,
    ),
    *_pair(
        "random_crop", _crop, "value, size", "Cut out a random part.",
        ("tf.ones([3, 3, 1]), [2, 2, 1]", "tf.ones([3, 3, 1]), [3, 3, 1]", "tf.ones([2]), [3]"),
    ),
]  # fmt: skip

"""Pieces of images: patches, boxes and glimpses, for `tf.image`."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.errors import OutOfRangeError
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import ints, not_too_many, refused
from jaxvars.tracing import context
from jaxvars.typing import Array


# ---------------------------------------------------------------- patches
@op("image.extract_patches", "images", op="ExtractImagePatches", kinds="float int bool")
def extract_patches(images: Array, sizes: Any, strides: Any, rates: Any, padding: str) -> Array:
    """Take all patches of a size, side by side as channels.

    Example:
    `tf.image.extract_patches(r(1, 4, 5, 2), [1, 2, 3, 1], [1, 2, 1, 1], [1, 1, 1, 1], 'VALID')`.
    """
    if images.ndim != 4:
        raise refused(f"input must be 4-dimensional, not of shape {list(images.shape)}")
    (high, wide), steps, gaps = (ints(x, "a size")[1:3] for x in (sizes, strides, rates))
    spans = [(n - 1) * gap + 1 for n, gap in zip((high, wide), gaps, strict=True)]
    places = [_places(*each, padding) for each in zip(images.shape[1:3], spans, steps, strict=True)]
    (top, rows), (left, columns) = places
    whole = jnp.pad(images, [(0, 0), (top, spans[0]), (left, spans[1]), (0, 0)])
    parts = [
        whole[:, i : i + rows * steps[0] : steps[0], j : j + columns * steps[1] : steps[1]]
        for i in range(0, high * gaps[0], gaps[0])
        for j in range(0, wide * gaps[1], gaps[1])
    ]
    return jnp.concatenate(parts, -1)


def _places(size: int, span: int, step: int, padding: str) -> tuple[int, int]:
    """Return how much is padded before, and how many patches there are."""
    if padding == "VALID":
        return 0, max(0, -(-(size - span + 1) // step))
    if padding != "SAME":
        raise refused(f"Value for attr 'padding' of {padding} is not one of SAME and VALID")
    count = -(-size // step)
    return max(0, (count - 1) * step + span - size) // 2, count


# ---------------------------------------------------------------- boxes
@op("image.crop_and_resize", "image boxes box_indices", kinds="float int")
def crop_and_resize(
    image: Array, boxes: Array, box_indices: Array, crop_size: Any, method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Array:  # fmt: skip
    """Cut boxes out of images, and resize them to one size.

    Example:
    `tf.image.crop_and_resize(r(2, 4, 5, 1), [[0.0, 0.1, 0.9, 1.0], [0.2, 0.5, 0.1, 1.2]], [1, 0],
    [2, 3])`.
    """
    if method not in ("bilinear", "nearest"):
        raise refused(f"method must be 'bilinear' or 'nearest', not {method!r}")
    if image.ndim != 4 or boxes.ndim != 2 or boxes.shape[1] != 4:
        raise refused("image must be 4-D, and boxes must be [num_boxes, 4]")
    _check_indices(box_indices, image.shape[0])
    height, width = ints(crop_size, "crop_size")
    not_too_many((boxes.shape[0], height, width, image.shape[-1]))
    box = boxes.astype(np.float32)
    down = _lines(box[:, 0], box[:, 2], image.shape[1], height)
    across = _lines(box[:, 1], box[:, 3], image.shape[2], width)
    return _crop(image, down, across, box_indices, np.float32(extrapolation_value), method)


@functools.partial(jax.jit, static_argnums=5)
def _crop(
    image: Array, lines: Any, others: Any, box_indices: Array, outside: Any, method: str
) -> Array:
    """Return the pixels of images where lines of boxes cross."""
    (ys, up), (xs, left) = lines, others
    x = image.astype(np.float32)
    where = box_indices[:, None, None]

    def at(rows: Array, columns: Array) -> Array:
        return x[where, rows[:, :, None], columns[:, None, :]]

    def edge(places: Array, size: int, up: bool) -> Array:
        return jnp.clip((jnp.ceil if up else jnp.floor)(places).astype(int), 0, size - 1)

    if method == "nearest":
        nearest = [
            jnp.clip(jnp.floor(p + 0.5).astype(int), 0, n - 1)
            for p, n in zip((ys, xs), image.shape[1:3], strict=True)
        ]
        made = at(*nearest)
    else:
        y0, y1 = (edge(ys, image.shape[1], up) for up in (False, True))
        x0, x1 = (edge(xs, image.shape[2], up) for up in (False, True))
        down, across = (
            (ys - jnp.floor(ys))[:, :, None, None],
            (xs - jnp.floor(xs))[:, None, :, None],
        )
        top = at(y0, x0) + (at(y0, x1) - at(y0, x0)) * across
        bottom = at(y1, x0) + (at(y1, x1) - at(y1, x0)) * across
        made = top + (bottom - top) * down
    return jnp.where(up[:, :, None, None] & left[:, None, :, None], made, outside)


def _check_indices(indices: Array, count: int) -> None:
    if context.is_known(indices) and indices.size:
        found = np.asarray(indices)
        if found.min() < 0 or found.max() >= count:
            raise Refused(OutOfRangeError(message="box_index has values outside [0, batch_size)"))


def _lines(start: Array, end: Array, size: int, count: int) -> tuple[Array, Array]:
    """Return the places of the lines of boxes in an image, and whether they are in it."""
    last = size - 1
    if count > 1:
        step = (end - start) * last / (count - 1)
        places = start[:, None] * last + jnp.arange(count, dtype=np.float32) * step[:, None]
    else:
        places = (0.5 * (start + end) * last)[:, None]
    return places, (places >= 0) & (places <= last)


_TABLE = np.array(
    [
        [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1], [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1],
    ],
    np.float32,
)  # fmt: skip


@op("image.draw_bounding_boxes", "images boxes", kinds="float")
def draw_bounding_boxes(images: Array, boxes: Array, colors: Any) -> Array:
    """Draw the borders of boxes into images.

    Example:
    `tf.image.draw_bounding_boxes(tf.zeros([1, 4, 4, 3]), [[[0.0, 0.0, 0.7, 0.7], [0.4, -0.5, 1.5,
    0.9]]], None)`.
    """
    if images.ndim != 4 or boxes.ndim != 3 or boxes.shape[2] != 4:
        raise refused("images must be 4-D, and boxes must be [batch, num_boxes, 4]")
    height, width, depth = images.shape[1:]
    table = jnp.asarray(_TABLE if colors is None else _convert.to_array(colors))
    if not table.size:
        table = jnp.asarray(_TABLE)
    if depth == 1 and colors is None:
        table = table.at[:, 0].set(1)
    if table.shape[1] < depth:
        raise refused(f"colors must have {depth} channels, not {table.shape[1]}")
    scale = np.array([height - 1, width - 1] * 2, np.float32)
    corners = (boxes.astype(np.float32) * scale).astype(int)
    for i in range(boxes.shape[1]):
        images = _draw(images, corners[:, i], table[i % len(table), :depth])
    return images


@jax.jit
def _draw(images: Array, corners: Array, color: Array) -> Array:
    """Draw the border of a box into each image."""
    border = jax.vmap(lambda box: _border(box, *images.shape[1:3]))(corners)
    return jnp.where(border[..., None], color.astype(images.dtype), images)


def _border(box: Array, height: int, width: int) -> Array:
    """Return which pixels are on the border of a box."""
    rows, columns = jnp.arange(height)[:, None], jnp.arange(width)
    top, left, bottom, right = box
    in_rows, in_columns = (rows >= top) & (rows <= bottom), (columns >= left) & (columns <= right)
    sides = in_rows & ((columns == left) | (columns == right))
    ends = in_columns & ((rows == top) | (rows == bottom))
    return (sides | ends) & (top <= bottom) & (left <= right)


# ---------------------------------------------------------------- glimpses

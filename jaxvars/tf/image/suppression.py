"""Boxes: which of those that overlap are kept, and random ones; for `tf.image`.

Source of the softer way: Bodla, Singh, Chellappa, Davis, "Soft-NMS", 2017.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf import random as _random
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import one_int, refused, require_known
from jaxvars.typing import Array

_SIZE = "how many boxes are kept depends on values; `non_max_suppression_padded` is compiled"


class CombinedNonMaxSuppression(NamedTuple):
    """What `combined_non_max_suppression` returns."""

    nmsed_boxes: Any
    nmsed_scores: Any
    nmsed_classes: Any
    valid_detections: Any


class SampleDistortedBoundingBoxV2(NamedTuple):
    """What `sample_distorted_bounding_box` returns."""

    begin: Any
    size: Any
    bboxes: Any


# ---------------------------------------------------------------- one after another
def _choose(
    overlap: Callable[[int, int], float], scores: np.ndarray, size: int, limit: float,
    least: float, sigma: float = 0.0,
) -> tuple[list[int], list[float]]:  # fmt: skip
    """Return the indices and scores of the boxes that are kept, the best first."""
    queue = [(-float(s), i, 0) for i, s in enumerate(scores) if s > least]
    heapq.heapify(queue)
    kept: list[int] = []
    found: list[float] = []
    while queue and len(kept) < size:
        negative, i, seen = heapq.heappop(queue)
        score = before = -negative
        for j in reversed(kept[seen:]):
            share = overlap(i, j)
            if share > limit and not sigma:
                score = -math.inf
            elif sigma:
                score *= math.exp(-0.5 / sigma * share * share)
            if score <= least:
                break
        if score == before:
            kept.append(i)
            found.append(score)
        elif score > least:
            heapq.heappush(queue, (-score, i, len(kept)))
    return kept, found


@op(
    "image.non_max_suppression", "boxes scores", op="NonMaxSuppressionV3", kinds="float",
    eager_only=_SIZE,
)  # fmt: skip
def non_max_suppression(
    boxes: Array, scores: Array, max_output_size: Any, iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
) -> Array:  # fmt: skip
    """Return the indices of the best boxes, without those that overlap better ones.

    Example:
    `tf.image.non_max_suppression(tf.constant([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3], [1, 0, 0,
    0.4]]), tf.constant([0.9, 0.8, 0.7, 0.95]), 3)`.
    """
    return non_max_suppression_with_scores.__wrapped__(
        boxes, scores, max_output_size, iou_threshold, score_threshold, 0.0
    )[0]


@op(
    "image.non_max_suppression_with_scores", "boxes scores", op="NonMaxSuppressionV5",
    kinds="float", eager_only=_SIZE,
)  # fmt: skip
def non_max_suppression_with_scores(
    boxes: Array, scores: Array, max_output_size: Any, iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"), soft_nms_sigma: Any = 0.0,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the indices and scores of the best boxes; those that overlap score less.

    Example:
    `tf.image.non_max_suppression_with_scores(tf.constant([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3,
    3], [1, 0, 0, 0.4]]), tf.constant([0.9, 0.8, 0.7, 0.95]), 4, soft_nms_sigma=0.5,
    iou_threshold=1.0)`.
    """
    given, points = require_known(boxes, "boxes"), require_known(scores, "scores")
    if given.ndim != 2 or given.shape[1] != 4:
        raise refused(f"boxes must be 2-D, and must have 4 columns: {list(given.shape)}")
    if points.shape != given.shape[:1]:
        raise refused(f"scores must be 1-D, one for each box: {list(points.shape)}")
    for name, value in (("max_output_size", max_output_size), ("iou_threshold", iou_threshold)):
        if np.ndim(value):
            raise refused(f"{name} must be 0-D, got shape {list(np.shape(value))}")
    limit, least, sigma = map(_number, (iou_threshold, score_threshold, soft_nms_sigma))
    if not 0 <= limit <= 1:
        raise refused("iou_threshold must be in [0, 1]")
    corners = _sort_corners(given.astype(np.float32))
    size = one_int(max_output_size, "max_output_size")
    kept, found = _choose(
        lambda i, j: _share(corners[i], corners[j]), points, size, limit, least, sigma
    )
    return (
        _convert.to_array(np.array(kept, np.int32)),
        _convert.to_array(np.array(found, points.dtype)),
    )


def _number(value: Any) -> float:
    return (
        float(require_known(value, "a threshold")) if not isinstance(value, int | float) else value
    )


def _sort_corners(boxes: np.ndarray) -> list[Any]:
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    return np.concatenate([low, high], 1).tolist()


def _share(a: list[float], b: list[float]) -> float:
    """Return the area that two boxes share, as a part of what they cover."""
    areas = [(x[2] - x[0]) * (x[3] - x[1]) for x in (a, b)]
    if min(areas) <= 0:
        return 0.0
    height, width = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(height, 0.0) * max(width, 0.0)
    return both / (sum(areas) - both)


# ---------------------------------------------------------------- in programs
@functools.partial(jax.jit, static_argnums=2)
def _choose_in_batch(
    boxes: Array, scores: Array, size: int, limit: Array, least: Array
) -> tuple[Array, Array]:
    return jax.vmap(lambda b, s: _choose_in_program(b, s, size, limit, least))(boxes, scores)


def _choose_in_program(
    boxes: Array, scores: Array, size: int, limit: Array, least: Array
) -> tuple[Array, Array]:
    """Return the indices of the boxes that are kept, filled up with 0, and how many they are."""
    low = jnp.minimum(boxes[:, :2], boxes[:, 2:])
    high = jnp.maximum(boxes[:, :2], boxes[:, 2:])
    areas = jnp.prod(high - low, -1)

    def turn(i: Array, state: tuple[Array, Array, Array]) -> Any:
        live, found, count = state
        best = jnp.argmax(live)
        there = live[best] > -jnp.inf
        both = jnp.prod(
            jnp.maximum(jnp.minimum(high, high[best]) - jnp.maximum(low, low[best]), 0), -1
        )
        total = areas + areas[best] - both
        share = jnp.where((areas > 0) & (areas[best] > 0), both / jnp.where(total > 0, total, 1), 0)
        after = jnp.where(share > limit, -jnp.inf, live).at[best].set(-jnp.inf)
        found = found.at[i].set(jnp.where(there, best, 0).astype(jnp.int32))
        return jnp.where(there, after, live), found, count + there.astype(jnp.int32)

    start = jnp.where(scores > least, scores, -jnp.inf)
    if not len(scores):
        return jnp.zeros(size, jnp.int32), jnp.zeros((), jnp.int32)
    state = (start, jnp.zeros(size, jnp.int32), jnp.zeros((), jnp.int32))
    return jax.lax.fori_loop(0, size, turn, state)[1:]


@op("image.non_max_suppression_padded", "boxes scores", kinds="float")
def non_max_suppression_padded(
    boxes: Array, scores: Array, max_output_size: Any, iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"), pad_to_max_output_size: bool = False,
    sorted_input: bool = False, canonicalized_coordinates: bool = False, tile_size: int = 512,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the indices of the best boxes, filled up with zeros, and how many they are.

    Example:
    `tf.image.non_max_suppression_padded(tf.constant([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3],
    [1, 0, 0, 0.4]]), tf.constant([0.9, 0.8, 0.7, 0.95]), 5, pad_to_max_output_size=True)`.

    Differs from TensorFlow: inside a `tf.function` there must be `pad_to_max_output_size=True`.
    """
    size = one_int(max_output_size, "max_output_size")
    if not pad_to_max_output_size:
        if boxes.ndim != 2 or sorted_input or canonicalized_coordinates:
            raise Refused(
                ValueError("'pad_to_max_output_size' (value False) must be True for batched input")
            )
        kept = non_max_suppression.__wrapped__(boxes, scores, size, iou_threshold, score_threshold)
        return kept, jnp.asarray(len(kept), jnp.int32)
    batch = scores.shape[:-1]
    flat = boxes.reshape(-1, *boxes.shape[-2:]), scores.reshape(-1, scores.shape[-1])
    found, counts = _choose_in_batch(*flat, size, iou_threshold, score_threshold)
    return found.reshape(*batch, size), counts.reshape(batch)


@op("image.combined_non_max_suppression", "boxes scores", kinds="float")
def combined_non_max_suppression(
    boxes: Array, scores: Array, max_output_size_per_class: Any, max_total_size: Any,
    iou_threshold: Any = 0.5, score_threshold: Any = float("-inf"), pad_per_class: bool = False,
    clip_boxes: bool = True,
) -> Any:  # fmt: skip
    """Keep the best boxes of each class, and of those the best.

    Example:
    `tf.image.combined_non_max_suppression(tf.constant([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3],
    [1, 0, 0, 0.4]])[None, :, None], tf.stack([tf.constant([0.9, 0.8, 0.7, 0.95]),
    1 - tf.constant([0.9, 0.8, 0.7, 0.95])], -1)[None], 2, 3)`.
    """
    each = one_int(max_output_size_per_class, "max_output_size_per_class")
    most = one_int(max_total_size, "max_total_size")
    if boxes.ndim != 4 or scores.ndim != 3 or boxes.shape[2] not in (1, scores.shape[2]):
        raise refused("boxes must be [batch, n, 1 or classes, 4], and scores [batch, n, classes]")
    if most <= 0:
        raise refused("max_total_size must be > 0")
    classes = scores.shape[2]
    total = min(most, each * classes) if pad_per_class else most
    wide = jnp.broadcast_to(boxes, (*boxes.shape[:2], classes, 4))
    made, values, kinds, count = _combine(wide, scores, each, total, iou_threshold, score_threshold)
    return CombinedNonMaxSuppression(
        jnp.clip(made, 0, 1) if clip_boxes else made, values, kinds, count
    )


@functools.partial(jax.jit, static_argnums=(2, 3))
def _combine(
    boxes: Array, scores: Array, each: int, total: int, limit: Array, least: Array
) -> tuple[Array, ...]:
    """Return the best boxes of all classes, with scores and classes, and how many they are."""
    classes = scores.shape[2]

    def of_class(corners: Array, points: Array) -> Any:
        found, count = _choose_in_program(corners, points, each, limit, least)
        there = jnp.arange(each) < count
        return corners[found], jnp.where(there, points[found], -jnp.inf)

    def of_image(corners: Array, points: Array) -> Any:
        found, values = jax.vmap(of_class, in_axes=1)(corners, points)
        kinds = jnp.repeat(jnp.arange(classes, dtype=np.float32), each)
        found, values = found.reshape(-1, 4), values.reshape(-1)
        order = jnp.argsort(-values, stable=True)[:total]
        missing = max(total - len(order), 0)
        there = values[order] > -jnp.inf
        parts = (found[order], values[order], kinds[order])
        kept = [jnp.where(there[:, None] if x.ndim > 1 else there, x, 0) for x in parts]
        pads = [jnp.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1)) for x in kept]
        return *pads, there.sum().astype(jnp.int32)

    return jax.vmap(of_image)(boxes, scores)


# ---------------------------------------------------------------- random boxes
def _sample_box(
    image_size: Any, bounding_boxes: Array, draw: Callable[[int], Any],
    min_object_covered: Any, aspect_ratio_range: Any, area_range: Any, max_attempts: Any,
    use_image_if_no_bounding_boxes: Any,
) -> Any:  # fmt: skip
    height, width, _ = require_known(image_size, "image_size").tolist()
    boxes = require_known(bounding_boxes, "bounding_boxes").reshape(-1, 4)
    if not len(boxes):
        if not use_image_if_no_bounding_boxes:
            raise refused(
                "No bounding boxes provided as input. One must enable "
                "use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes."
            )
        boxes = np.array([[0, 0, 1, 1]])
    least = _number(min_object_covered)
    ratios = list(map(float, (0.75, 1.33) if aspect_ratio_range is None else aspect_ratio_range))
    areas = list(map(float, (0.05, 1.0) if area_range is None else area_range))
    numbers = np.asarray(draw(4 * int(max_attempts or 100))._array).reshape(-1, 4)
    found = (0, 0, height, width)
    for row in numbers:
        box = _crop_of(row, height, width, ratios, areas)
        if box is not None and _covers(box, boxes * [height, width, height, width], least):
            found = box
            break
    top, left, rows, columns = found
    ends = [top / height, left / width, (top + rows) / height, (left + columns) / width]
    kind = _convert.to_array(image_size).dtype
    return SampleDistortedBoundingBoxV2(
        _convert.to_array(np.array([top, left, 0], kind)),
        _convert.to_array(np.array([rows, columns, -1], kind)),
        _convert.to_array(np.array([[ends]], np.float32)),
    )


def _crop_of(
    row: np.ndarray, height: int, width: int, ratios: list[float], areas: list[float]
) -> tuple[int, int, int, int] | None:
    """Return a random box of an area and ratio that are allowed; None if it is too large."""
    ratio = ratios[0] + row[0] * (ratios[1] - ratios[0])
    area = (areas[0] + row[1] * (areas[1] - areas[0])) * height * width
    rows, columns = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
    if not (0 < rows <= height and 0 < columns <= width):
        return None
    top, left = int(row[2] * (height - rows + 1)), int(row[3] * (width - columns + 1))
    return top, left, rows, columns


def _covers(box: tuple[int, int, int, int], boxes: np.ndarray, least: float) -> bool:
    """Return whether a box covers enough of one of others."""
    top, left, rows, columns = box
    for y0, x0, y1, x1 in boxes.tolist():
        area = (y1 - y0) * (x1 - x0)
        high = max(0, min(y1, top + rows) - max(y0, top))
        wide = max(0, min(x1, left + columns) - max(x0, left))
        if area > 0 and high * wide >= least * area:
            return True
    return False


@op(
    "image.sample_distorted_bounding_box", "bounding_boxes", kinds="float",
    op="SampleDistortedBoundingBoxV2",
    eager_only="a box is drawn on the host, by trial",
)  # fmt: skip
def sample_distorted_bounding_box(
    image_size: Any, bounding_boxes: Array, seed: Any = 0, min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None, area_range: Any = None, max_attempts: Any = None,
    use_image_if_no_bounding_boxes: Any = None,
) -> Any:  # fmt: skip
    """Draw a box that covers enough of one of others.

    Example:
    `tf.image.sample_distorted_bounding_box([4, 4, 3], [[[0.0, 0.0, 1.0, 1.0]]], 1,
    min_object_covered=1.0, area_range=(1.0, 1.0), aspect_ratio_range=(1.0, 1.0))`.

    Differs from TensorFlow: the boxes are others.
    """
    return _sample_box(
        image_size, bounding_boxes, lambda n: _random.uniform([n], seed=seed or None),
        min_object_covered, aspect_ratio_range, area_range, max_attempts,
        use_image_if_no_bounding_boxes,
    )  # fmt: skip


@op(
    "image.stateless_sample_distorted_bounding_box", "bounding_boxes", kinds="float",
    eager_only="a box is drawn on the host, by trial",
)  # fmt: skip
def stateless_sample_distorted_bounding_box(
    image_size: Any, bounding_boxes: Array, seed: Any, min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None, area_range: Any = None, max_attempts: Any = None,
    use_image_if_no_bounding_boxes: Any = None,
) -> Any:  # fmt: skip
    """Draw a box that covers enough of one of others, by a seed.

    Example:
    `tf.image.stateless_sample_distorted_bounding_box([4, 4, 3], [[[0.0, 0.0, 1.0, 1.0]]], (1, 2),
    min_object_covered=1.0, area_range=(1.0, 1.0), aspect_ratio_range=(1.0, 1.0))`.

    Differs from TensorFlow: the boxes are others.
    """
    return _sample_box(
        image_size, bounding_boxes, lambda n: _random.stateless_uniform([n], seed),
        min_object_covered, aspect_ratio_range, area_range, max_attempts,
        use_image_if_no_bounding_boxes,
    )  # fmt: skip

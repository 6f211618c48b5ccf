"""What is computed of values on the host: `tf.edit_distance`, `tf.fingerprint`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxvars.tf.registry.rows import op
from jaxvars.tf.strings.hash import fast
from jaxvars.tf.tensors.convert import is_text, to_array
from jaxvars.tf.tensors.sparse_tensor import SparseTensor, on_host
from jaxvars.tf.tensors.static import refused, require_known
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


def edit_distance(
    hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """Return how many elements must be inserted, deleted or replaced to make one row of another.

    Args:
        hypothesis: a `tf.SparseTensor` with the sequences in its last dimension.
        truth: another one, of the same type and rank.
        normalize: divide by the length of `truth`: what is not empty is `inf` from an empty one.
        name: of no effect.

    Raises:
        TypeError: when one of them is not a sparse tensor.
        InvalidArgumentError: when their types or ranks differ.

    >>> from jaxvars import tf
    >>> spoken, written = tf.sparse.from_dense([[1, 2, 3]]), tf.sparse.from_dense([[1, 3]])
    >>> edit_distance(spoken, written).numpy().tolist()
    [0.5]

    Differs from TensorFlow: inside a `tf.function` both must be known.
    """
    for sparse, what in (hypothesis, "Hypothesis"), (truth, "Truth"):
        if not isinstance(sparse, SparseTensor):
            raise TypeError(f"{what} must be a SparseTensor, not {sparse!r}")
        if len(sparse.dense_shape) < 2:
            raise refused(
                f"Input {what} SparseTensors must have rank at least 2, but {what.lower()}_shape "
                f"rank is: {len(sparse.dense_shape)}"
            )
    (rows, shape), (others, other) = map(_rows_of, (hypothesis, truth))
    if len(shape) != len(other) or hypothesis.dtype != truth.dtype:
        raise refused(
            f"hypothesis of {hypothesis.dtype!r}, rank {len(shape)}, and truth of "
            f"{truth.dtype!r}, rank {len(other)}, must be of one type and rank"
        )
    made = np.zeros(np.maximum(shape[:-1], other[:-1]), np.float32)
    for place in {*rows, *others}:
        made[place] = _count_edits(rows[place], others[place])
        if normalize:
            made[place] = made[place] / len(others[place]) if others[place] else np.inf
    return Tensor(to_array(made))


def _rows_of(sparse: SparseTensor) -> tuple[defaultdict[Any, list[Any]], tuple[int, ...]]:
    indices, values, shape = on_host(sparse, "edit_distance")
    leading = indices[:, :-1]
    if ((leading < 0) | (leading >= np.asarray(shape[:-1]))).any():
        raise refused(f"indices must be inside of the shape {list(shape)}: {indices.tolist()}")
    rows: defaultdict[Any, list[Any]] = defaultdict(list)
    for index, value in zip(indices.tolist(), values.tolist(), strict=True):
        rows[tuple(index[:-1])].append(value)
    return rows, shape


def _count_edits(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return the Levenshtein distance of two sequences."""
    last = list(range(len(b) + 1))
    for i, x in enumerate(a):
        row = [i + 1]
        for j, y in enumerate(b):
            row.append(min(last[j] + (x != y), last[j + 1] + 1, row[j] + 1))
        last = row
    return last[-1]


@op("fingerprint", "data", text=True, is_listed=False, example='["a", "b"]')
def fingerprint(data: Array, method: Any = "farmhash64") -> Array:
    """Return 8 bytes for each row, FarmHash's of its bytes.

    Differs from TensorFlow: inside a `tf.function` the data must be known.
    """
    if to_array(method)[()] != b"farmhash64":
        raise refused(f"Unsupported fingerprint method: {method}. There is 'farmhash64'.")
    if not data.ndim:
        raise refused("data must have at least one dimension")
    rows = require_known(data, "data").reshape(data.shape[0], math.prod(data.shape[1:]))
    if not is_text(data):
        codes = [fast(row.tobytes()) for row in rows]
    elif rows.shape[1] == 1:
        codes = [fast(row[0]) for row in rows]
    else:
        codes = [fast(b"".join(fast(x).to_bytes(8, "little") for x in row)) for row in rows]
    return np.array(codes, "<u8").view(np.uint8).reshape(-1, 8)

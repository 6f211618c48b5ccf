"""Labels of sequences, for CTC: joined by `nn.py`."""

from __future__ import annotations

import jax.numpy as jnp

from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors.sparse_tensor import host_array
from jaxvars.typing import Array


@op("nn.ctc_unique_labels", "labels", kinds="int")
def ctc_unique_labels(labels: Array) -> tuple[Array, Array]:
    """Return the labels of each row once, and where each label is among them.

    Example: `tf.nn.ctc_unique_labels([[1, 2, 3, 3], [4, 4, 5, 0]])`.
    """
    same = labels[:, :, None] == labels[:, None, :]
    first = jnp.argmax(same, 2)  # where the label came first
    is_first = first == jnp.arange(labels.shape[1])
    number = jnp.cumsum(is_first, 1) - 1
    found = jnp.take_along_axis(number, first, 1).astype(jnp.int32)
    places = jnp.where(is_first, number, labels.shape[1])
    rows = jnp.arange(len(labels))[:, None]
    padded = jnp.zeros((len(labels), labels.shape[1] + 1), jnp.int64)
    unique = padded.at[rows, places].set(labels.astype(jnp.int64))
    return unique[:, :-1], found


@op(
    "nn.collapse_repeated", "labels seq_length", kinds="int",
    eager_only="How many are left depends on values.",
)  # fmt: skip
def collapse_repeated(labels: Array, seq_length: Array) -> tuple[Array, Array]:
    """Return labels with neighbours that are the same taken as one, and how many are left.

    Example: `tf.nn.collapse_repeated([[1, 1, 2, 2, 1], [3, 3, 3, 1, 1]], [5, 4])`.
    """
    known = host_array(seq_length, "nn.collapse_repeated")
    changes = jnp.pad(labels[:, 1:] != labels[:, :-1], ((0, 0), (1, 0)), constant_values=True)
    keep = changes & (jnp.arange(labels.shape[1]) < jnp.asarray(known)[:, None])
    counts = jnp.sum(keep, 1, dtype=jnp.int32)
    size = int(host_array(jnp.max(counts), "nn.collapse_repeated"))
    places = jnp.where(keep, jnp.cumsum(keep, 1) - 1, size)
    made = jnp.zeros((len(labels), size + 1), labels.dtype)
    return made.at[jnp.arange(len(labels))[:, None], places].set(labels)[:, :size], counts

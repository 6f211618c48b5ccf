"""Losses of `tf.nn`, one for each example, and labels of sequences.

Rules this file keeps:
- they are computed from logits, so that no logarithm of 0 comes up;
- 16-bit floats are computed with in float32.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tensors.dtypes import narrowed
from jaxvars.tensors.quick_jit import quick_jit
from jaxvars.tf.arrays.gather import rows_at
from jaxvars.tf.nn.norm import table_of
from jaxvars.tf.nn.shapes import refused_value
from jaxvars.tf.random.candidates import LEAST, log_uniform_candidate_sampler
from jaxvars.tf.registry.rows import format_shape, op
from jaxvars.tf.tensors.convert import to_array, to_operand
from jaxvars.tf.tensors.dtypes import widen
from jaxvars.tf.tensors.sparse_tensor import DISPATCH, check_inside, host_array
from jaxvars.tf.tensors.static import checkable, refused
from jaxvars.tf.tensors.tensor import Tensor, pair_typed
from jaxvars.tracing import context
from jaxvars.typing import Array


def _check_same_shape(logits: Array, labels: Array) -> None:
    if logits.shape != labels.shape:
        raise refused_value(
            "`logits` and `labels` must have the same shape, received "
            f"({logits.shape} vs {labels.shape})."
        )


@op(
    "nn.sigmoid_cross_entropy_with_logits", "labels logits", op="LogisticLoss", same=True,
    kinds="float", pairing=pair_typed, example="labels=p(2, 3), logits=r(2, 3)",
)  # fmt: skip
@quick_jit
def sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None) -> Array:
    """Return the cross entropy of labels from 0 to 1 and the sigmoid of logits."""
    _check_same_shape(logits, labels)
    positive = logits >= 0  # not jnp.abs, whose derivative at 0 is another
    relu = jnp.where(positive, logits, jnp.zeros_like(logits))
    negative = jnp.where(positive, -logits, logits)
    return relu - logits * labels + jnp.log1p(jnp.exp(negative))


@op(
    "nn.weighted_cross_entropy_with_logits", "labels logits pos_weight", op="LogisticLoss",
    same=True, kinds="float", example="p(2, 3), r(2, 3), 2.5",
)  # fmt: skip
@quick_jit
def weighted_cross_entropy_with_logits(labels: Array, logits: Array, pos_weight: Array) -> Array:
    """Return the cross entropy of a sigmoid, with a weight for positive labels.

    Differs from TensorFlow: the derivative at a logit of 0 is that of the formula.
    """
    _check_same_shape(logits, labels)
    weight = 1 + (pos_weight - 1) * labels
    tail = jnp.log1p(jnp.exp(-jnp.abs(logits))) + jax.nn.relu(-logits)
    return (1 - labels) * logits + weight * tail


@op(
    "nn.softmax_cross_entropy_with_logits", "labels logits", op="SoftmaxCrossEntropyWithLogits",
    kinds="float int", example="labels=p(2, 3), logits=r(2, 3)",
)  # fmt: skip
def softmax_cross_entropy_with_logits(labels: Array, logits: Array, axis: int = -1) -> Array:
    """Return the cross entropy of rows of probabilities and the softmax of logits."""
    wide = widen(_check_floats(logits))
    try:
        np.broadcast_shapes(labels.shape, logits.shape)
    except ValueError:
        raise refused(
            f"logits and labels must be broadcastable: logits_size={format_shape(logits)} "
            f"labels_size={format_shape(labels)} [Op:SoftmaxCrossEntropyWithLogits] name: "
        ) from None
    return _cross_entropy_of(labels, wide, int(axis)).astype(logits.dtype)


@functools.partial(quick_jit, static_argnums=2)
def _cross_entropy_of(labels: Array, logits: Array, axis: int) -> Array:
    return _cross_entropy(labels.astype(logits.dtype), logits, axis)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _cross_entropy(labels: Array, logits: Array, axis: int) -> Array:
    return -jnp.sum(labels * jax.nn.log_softmax(logits, axis=axis), axis=axis)


@_cross_entropy.defjvp
def _cross_entropy_jvp(axis: int, given: Any, tangents: Any) -> tuple[Array, Array]:
    """Return the value and TensorFlow's derivative, which takes labels to add up to 1."""
    labels, logits = given
    by_logits = (jax.nn.softmax(logits, axis=axis) - labels) * tangents[1]
    by_labels = -jax.nn.log_softmax(logits, axis=axis) * tangents[0]
    return _cross_entropy(labels, logits, axis), jnp.sum(by_logits + by_labels, axis=axis)


@op(
    "nn.sparse_softmax_cross_entropy_with_logits", "labels logits",
    op="SparseSoftmaxCrossEntropyWithLogits", kinds="int", example="labels=[2, 0], logits=r(2, 3)",
)  # fmt: skip
def sparse_softmax_cross_entropy_with_logits(labels: Array, logits: Array) -> Array:
    """Return the cross entropy of classes, as integers, and the softmax of logits.

    Differs from TensorFlow: on a GPU and in compiled functions a label that is not a class gives
    NaN, and on a CPU InvalidArgumentError.
    """
    _check_sparse(labels, _check_floats(logits))
    return _sparse_cross_entropy(labels, logits)


@quick_jit
def _sparse_cross_entropy(labels: Array, logits: Array) -> Array:
    wide = widen(logits)
    classes = logits.shape[-1]
    labels = labels.astype(jnp.promote_types(labels.dtype, jnp.int32))
    log_p = jax.nn.log_softmax(wide, axis=-1)
    wanted = jnp.clip(labels, 0, max(classes - 1, 0))[..., None]
    loss = -jnp.take_along_axis(log_p, wanted.astype(jnp.int32), axis=-1)[..., 0]
    known = (labels >= 0) & (labels < classes)
    return jnp.where(known, loss, jnp.nan).astype(logits.dtype)


def _check_floats(logits: Array) -> Array:
    if not jnp.issubdtype(logits.dtype, jnp.floating):
        raise refused(f"logits must be floating, not {logits.dtype.name}: tf.cast converts them")
    return logits


def _check_sparse(labels: Array, logits: Array) -> None:
    if logits.ndim == 0:
        raise refused_value("`logits` cannot be a scalar. Received logits of shape ().")
    if labels.ndim != logits.ndim - 1:
        raise refused_value(
            "`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: "
            f"labels.shape={labels.shape} of rank {labels.ndim} and logits.shape="
            f"{logits.shape} of rank {logits.ndim}"
        )
    if labels.shape != logits.shape[:-1]:
        raise refused_value(
            "`labels.shape` must equal `logits.shape` except for the last dimension. "
            f"Received: labels.shape={labels.shape} and logits.shape={logits.shape}"
        )
    _check_labels(labels, logits.shape[-1])


def _check_labels(labels: Array, classes: int) -> None:
    """Raise for labels that are not classes, where that is known without waiting for a device."""
    if context.is_tracer(labels) or next(iter(labels.devices())).platform != "cpu":
        return
    known = np.asarray(labels)
    wrong = known[(known < 0) | (known >= classes)]
    if wrong.size:
        raise refused(
            f"Received a label value of {wrong[0]} which is outside the valid range of "
            f"[0, {classes}).  Label values: {' '.join(map(str, known.ravel()))} "
            "[Op:SparseSoftmaxCrossEntropyWithLogits] name: "
        )


@op("nn.l2_loss", "t", kinds="float", example="r(2, 3)")
@quick_jit
def l2_loss(t: Array) -> Array:
    """Return half of the sum of squares."""
    return (jnp.sum(jnp.square(widen(t))) / 2).astype(t.dtype)


@op("nn.compute_average_loss", "per_example_loss sample_weight?", kinds="float", example="r(4)")
def compute_average_loss(
    per_example_loss: Array, sample_weight: Array | None = None, global_batch_size: Any = None
) -> Array:
    """Return the sum of losses, divided by the size of the whole batch.

    Differs from TensorFlow: without `global_batch_size` the batch given is the whole one.
    """
    if per_example_loss.ndim == 0:
        raise refused_value(
            "Invalid value passed for `per_example_loss`. Expected a tensor with rank at least 1."
        )
    size = per_example_loss.shape[0] if global_batch_size is None else global_batch_size
    return _average(per_example_loss, sample_weight, to_operand(size, per_example_loss.dtype))


@quick_jit
def _average(losses: Array, sample_weight: Array | None, size: Array) -> Array:
    if sample_weight is not None:
        weight = sample_weight.astype(losses.dtype)
        losses = losses * weight.reshape(weight.shape + (1,) * (losses.ndim - weight.ndim))
    return jnp.sum(losses) / size


@op("nn.ctc_loss", "labels logits label_length logit_length", op="CTCLoss", kinds="int")
def ctc_loss(
    labels: Array, logits: Array, label_length: Array, logit_length: Array,
    logits_time_major: Any = True, unique: Any = None, blank_index: Any = None,
) -> Array:  # fmt: skip
    """Return the loss of label sequences whose times are not known.

    Example: `tf.nn.ctc_loss([[1, 2], [2, 0]], r(4, 2, 3), [2, 1], [4, 3])`.

    Differs from TensorFlow: `unique` has no effect. A sequence too long for its frames costs about
    1e5, not infinity, or 709 where the labels are dense. Computed by optax.
    """
    batch = jnp.swapaxes(logits, 0, 1) if logits_time_major else logits
    if checkable(label_length) and (np.asarray(label_length) > labels.shape[-1]).any():
        raise refused(f"label_length must not be more than the {labels.shape[-1]} labels of a row")
    index = int(blank_index or 0)
    index = index + batch.shape[2] if index < 0 else index
    return _ctc(labels, batch, label_length, logit_length, index)


@functools.partial(quick_jit, static_argnums=4)
def _ctc(
    labels: Array, batch: Array, label_length: Array, logit_length: Array, index: int
) -> Array:
    from optax import ctc_loss

    frames = jnp.arange(batch.shape[1]) >= logit_length[:, None]
    symbols = jnp.arange(labels.shape[1]) >= label_length[:, None]
    paddings = frames.astype(batch.dtype), symbols.astype(batch.dtype)
    labels = labels.astype(np.int32)
    with jax.enable_x64(batch.dtype.itemsize == 8):  # or optax would make float64 of float32
        loss = ctc_loss(batch, paddings[0], labels, paddings[1], blank_id=index)
    return loss.astype(batch.dtype)


def _ctc_of_sparse(row: Any, given: dict[str, Any]) -> Any:
    """Return the loss of labels in a `tf.SparseTensor`, of which the rows have their lengths."""
    labels = given["labels"]
    if given["blank_index"] is None:
        raise ValueError("Argument `blank_index` must be provided when labels is a SparseTensor.")
    sizes = tuple(host_array(labels.dense_shape._array, "nn.ctc_loss").tolist())
    indices, values = labels.indices._array, labels.values._array
    if checkable(indices):
        check_inside(np.asarray(indices), sizes, True, "CTCLoss")
    if checkable(values) and (np.asarray(values) < 0).any():
        raise refused("All labels must be nonnegative integers", "CTCLoss")
    rows = indices[:, 0]
    places = jnp.arange(rows.size) - jnp.searchsorted(rows, rows)  # in the row: there are no holes
    found = {
        "labels": jnp.zeros(sizes, values.dtype).at[rows, places].set(values),
        "label_length": jnp.bincount(rows, length=sizes[0]),
    }
    return row.function(**given | found)


DISPATCH["nn.ctc_loss"] = _ctc_of_sparse


@op("nn.scale_regularization_loss", "regularization_loss", kinds="float", example="r(4)")
def scale_regularization_loss(regularization_loss: Array) -> Array:
    """Return the sum of losses, for one replica."""
    return jnp.sum(regularization_loss)


# ---------------------------------------------------------------- samples of very many classes
def nce_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int,
    num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = False,
    name: str = "nce_loss",
) -> Tensor:  # fmt: skip
    """Return the loss of telling true classes from others that were drawn.

    Args:
        weights: of shape [num_classes, dim], or a list of parts of them.
        biases: of shape [num_classes], or a list of parts of them.
        labels: the true classes: int64 of shape [batch, num_true].
        inputs: of shape [batch, dim].
        num_sampled: how many classes are drawn.
        num_classes: how many there are.
        num_true: how many true ones each example has.
        sampled_values: what a sampler gave; `tf.random.log_uniform_candidate_sampler` when None.
        remove_accidental_hits: do not count true classes that were drawn.
        name: of no effect.

    Returns:
        The loss of each example, of shape [batch].

    Source: http://proceedings.mlr.press/v9/gutmann10a.html
    """
    logits, labels = _logits(
        weights, biases, labels, inputs, (num_sampled, num_classes, num_true), sampled_values,
        remove_accidental_hits, None,
    )  # fmt: skip
    return Tensor(jnp.sum(sigmoid_cross_entropy_with_logits.__wrapped__(labels, logits), 1))


def sampled_softmax_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int,
    num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = True,
    seed: int | None = None, name: str = "sampled_softmax_loss",
) -> Tensor:  # fmt: skip
    """Return the cross-entropy of the softmax of true classes and others that were drawn.

    The arguments are as for `nce_loss`, and with `seed` the classes are the same each time.

    Source: https://arxiv.org/abs/1412.2007
    """
    logits, labels = _logits(
        weights, biases, labels, inputs, (num_sampled, num_classes, num_true), sampled_values,
        remove_accidental_hits, seed,
    )  # fmt: skip
    return Tensor(-jnp.sum(labels * jax.nn.log_softmax(logits, 1), 1))


def _logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, counts: tuple[int, int, int],
    sampled: Any, removes: bool, seed: Any,
) -> tuple[Array, Array]:  # fmt: skip
    """Return logits of the true classes and those that were drawn, and what they should be."""
    table, bias, x = table_of(weights), table_of(biases), to_array(inputs)
    num_sampled, num_classes, num_true = counts
    true = to_array(labels).astype(narrowed(np.int64)).reshape(-1, num_true)
    if sampled is None:
        sampled = log_uniform_candidate_sampler(
            Tensor(true), num_true, num_sampled, True, num_classes, seed
        )
    drawn, of_true, of_drawn = (jax.lax.stop_gradient(to_array(part)) for part in sampled)
    own = jnp.einsum("bd,btd->bt", x, rows_at(table, true)) + rows_at(bias, true) - jnp.log(of_true)
    others = x @ rows_at(table, drawn).T + rows_at(bias, drawn) - jnp.log(of_drawn)
    if removes:
        hits = jnp.sum(true[:, :, None] == drawn, 1)
        others = others + hits.astype(x.dtype) * jnp.asarray(LEAST, x.dtype)
    wanted = jnp.concatenate([jnp.ones_like(own) / num_true, jnp.zeros_like(others)], 1)
    return jnp.concatenate([own, others], 1), wanted

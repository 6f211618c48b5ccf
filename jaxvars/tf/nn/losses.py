"""Losses of `tf.nn`, one for each example, joined by `nn.py`.

Rules this file keeps:
- they are computed from logits, so that no logarithm of 0 comes up;
- 16-bit floats are computed with in float32.
"""

from __future__ import annotations

import functools
import math
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.errors import InvalidArgumentError
from jaxvars.tf.registry.rows import Refused, Row, shape_text
from jaxvars.tf.tensors.convert import as_given
from jaxvars.tracing import context

Value: TypeAlias = Any


def _check_same_shape(logits: Value, labels: Value) -> None:
    if logits.shape != labels.shape:
        raise Refused(
            ValueError(
                "`logits` and `labels` must have the same shape, received "
                f"({logits.shape} vs {labels.shape})."
            )
        )


@jax.jit
def sigmoid_cross_entropy(labels: Value, logits: Value) -> Value:
    _check_same_shape(logits, labels)
    positive = logits >= 0  # not jnp.abs, whose derivative at 0 is another
    relu = jnp.where(positive, logits, jnp.zeros_like(logits))
    negative = jnp.where(positive, -logits, logits)
    return relu - logits * labels + jnp.log1p(jnp.exp(negative))


@jax.jit
def _weighted_cross_entropy(labels: Value, logits: Value, pos_weight: Value) -> Value:
    _check_same_shape(logits, labels)
    weight = 1 + (pos_weight - 1) * labels
    tail = jnp.log1p(jnp.exp(-jnp.abs(logits))) + jax.nn.relu(-logits)
    return (1 - labels) * logits + weight * tail


def _wide(logits: Value) -> Value:
    return logits.astype(jnp.float32) if logits.dtype.itemsize == 2 else logits


def _softmax_cross_entropy(labels: Value, logits: Value, axis: int) -> Value:
    wide = _wide(logits)
    try:
        np.broadcast_shapes(labels.shape, logits.shape)
    except ValueError:
        raise InvalidArgumentError(
            None,
            None,
            f"logits and labels must be broadcastable: logits_size={shape_text(logits)} "
            f"labels_size={shape_text(labels)} [Op:SoftmaxCrossEntropyWithLogits] name: ",
        ) from None
    return _cross_entropy_of(labels, wide, int(axis)).astype(logits.dtype)


@functools.partial(jax.jit, static_argnums=2)
def _cross_entropy_of(labels: Value, logits: Value, axis: int) -> Value:
    return _cross_entropy(labels.astype(logits.dtype), logits, axis)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _cross_entropy(labels: Value, logits: Value, axis: int) -> Value:
    return -jnp.sum(labels * jax.nn.log_softmax(logits, axis=axis), axis=axis)


@_cross_entropy.defjvp
def _cross_entropy_jvp(axis: int, given: Any, tangents: Any) -> tuple[Value, Value]:
    """Return the value and TensorFlow's derivative, which takes labels to add up to 1."""
    labels, logits = given
    by_logits = (jax.nn.softmax(logits, axis=axis) - labels) * tangents[1]
    by_labels = -jax.nn.log_softmax(logits, axis=axis) * tangents[0]
    return _cross_entropy(labels, logits, axis), jnp.sum(by_logits + by_labels, axis=axis)


def _sparse_softmax_cross_entropy(labels: Value, logits: Value) -> Value:
    _check_sparse(labels, logits)
    return _sparse_cross_entropy(labels, logits)


@jax.jit
def _sparse_cross_entropy(labels: Value, logits: Value) -> Value:
    wide = _wide(logits)
    classes = logits.shape[-1]
    labels = labels.astype(jnp.promote_types(labels.dtype, jnp.int32))
    log_p = jax.nn.log_softmax(wide, axis=-1)
    wanted = jnp.clip(labels, 0, max(classes - 1, 0))[..., None]
    loss = -jnp.take_along_axis(log_p, wanted.astype(jnp.int32), axis=-1)[..., 0]
    known = (labels >= 0) & (labels < classes)
    return jnp.where(known, loss, jnp.nan).astype(logits.dtype)


def _check_sparse(labels: Value, logits: Value) -> None:
    if logits.ndim == 0:
        raise Refused(ValueError("`logits` cannot be a scalar. Received logits of shape ()."))
    if labels.ndim != logits.ndim - 1:
        raise Refused(
            ValueError(
                "`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: "
                f"labels.shape={labels.shape} of rank {labels.ndim} and logits.shape="
                f"{logits.shape} of rank {logits.ndim}"
            )
        )
    if labels.shape != logits.shape[:-1]:
        raise Refused(
            ValueError(
                "`labels.shape` must equal `logits.shape` except for the last dimension. "
                f"Received: labels.shape={labels.shape} and logits.shape={logits.shape}"
            )
        )
    _check_labels(labels, logits.shape[-1])


def _check_labels(labels: Value, classes: int) -> None:
    """Raise for labels that are no classes, where that is known without waiting for a device."""
    if context.is_tracer(labels) or next(iter(labels.devices())).platform != "cpu":
        return
    known = np.asarray(labels)
    wrong = known[(known < 0) | (known >= classes)]
    if wrong.size:
        raise InvalidArgumentError(
            None,
            None,
            f"Received a label value of {wrong[0]} which is outside the valid range of "
            f"[0, {classes}).  Label values: {' '.join(map(str, known.ravel()))} "
            "[Op:SparseSoftmaxCrossEntropyWithLogits] name: ",
        )


@jax.jit
def _l2_loss(t: Value) -> Value:
    return jnp.sum(jnp.square(t), dtype=t.dtype) / jnp.asarray(2, t.dtype)


def _log_poisson_loss(targets: Value, log_input: Value, compute_full_loss: Any) -> Value:
    return _poisson(targets, log_input, bool(compute_full_loss))


@functools.partial(jax.jit, static_argnums=2)
def _poisson(targets: Value, log_input: Value, compute_full_loss: bool) -> Value:
    result = jnp.exp(log_input) - log_input * targets
    if compute_full_loss:
        safe = jnp.where(targets > 1, targets, 1)
        stirling = safe * jnp.log(safe) - safe + 0.5 * jnp.log(2 * math.pi * safe)
        result += jnp.where((targets >= 0) & (targets <= 1), 0, stirling).astype(result.dtype)
    return result


def _average_loss(losses: Value, sample_weight: Value | None, global_batch_size: Any) -> Value:
    if losses.ndim == 0:
        raise Refused(
            ValueError("Invalid value passed for `per_example_loss`. Expected a tensor with rank "
                       "at least 1.")
        )  # fmt: skip
    size = losses.shape[0] if global_batch_size is None else global_batch_size
    return _average(losses, sample_weight, as_given(size, losses.dtype))


@jax.jit
def _average(losses: Value, sample_weight: Value | None, size: Value) -> Value:
    if sample_weight is not None:
        weight = sample_weight.astype(losses.dtype)
        losses = losses * weight.reshape(weight.shape + (1,) * (losses.ndim - weight.ndim))
    return jnp.sum(losses) / size


def _ctc_loss(
    labels: Value, logits: Value, label_length: Value, logit_length: Value,
    time_major: Any, unique: Any, blank: Any,
) -> Value:  # fmt: skip
    batch = jnp.swapaxes(logits, 0, 1) if time_major else logits
    index = int(blank or 0)
    index = index + batch.shape[2] if index < 0 else index
    return _ctc(labels, batch, label_length, logit_length, index)


@functools.partial(jax.jit, static_argnums=4)
def _ctc(
    labels: Value, batch: Value, label_length: Value, logit_length: Value, index: int
) -> Value:
    from optax import ctc_loss

    frames = jnp.arange(batch.shape[1]) >= logit_length[:, None]
    symbols = jnp.arange(labels.shape[1]) >= label_length[:, None]
    paddings = frames.astype(batch.dtype), symbols.astype(batch.dtype)
    loss = ctc_loss(batch, paddings[0], labels, paddings[1], blank_id=index)
    return loss.astype(batch.dtype)


ROWS = [
    Row(
        "sigmoid_cross_entropy_with_logits", "labels logits", "labels=None, logits=None",
        sigmoid_cross_entropy, op="LogisticLoss", same=True, kinds="float",
        doc="Return the cross entropy of labels from 0 to 1 and the sigmoid of logits.",
        examples=(
            "nn.sigmoid_cross_entropy_with_logits(labels=p(2, 3), logits=r(2, 3))",
            "nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 0.0], logits=[0.0, -90.0])",
            "nn.sigmoid_cross_entropy_with_logits(labels=p(3), logits=r(2))",
        ),
    ),
    Row(
        "weighted_cross_entropy_with_logits", "labels logits pos_weight",
        "labels, logits, pos_weight", _weighted_cross_entropy, op="LogisticLoss", same=True,
        kinds="float",
        doc="Return the cross entropy of a sigmoid, with a weight for positive labels.",
        examples=(
            "nn.weighted_cross_entropy_with_logits(p(2, 3), r(2, 3), 2.5)",
            "nn.weighted_cross_entropy_with_logits(labels=p(2), logits=r(2), pos_weight=p(2))",
            "nn.weighted_cross_entropy_with_logits(p(2), r(3), 2.0)",
        ),
    ),
    Row(
        "softmax_cross_entropy_with_logits", "labels logits", "labels, logits, axis=-1",
        _softmax_cross_entropy, op="SoftmaxCrossEntropyWithLogits", kinds="float int",
        doc="Return the cross entropy of rows of probabilities and the softmax of logits.",
        examples=(
            "nn.softmax_cross_entropy_with_logits(labels=p(2, 3), logits=r(2, 3))",
            "nn.softmax_cross_entropy_with_logits(p(3, 2), r(3, 2), axis=0)",
            "nn.softmax_cross_entropy_with_logits(p(2, 3), tf.cast(r(2, 3), 'float16'))",
            "nn.softmax_cross_entropy_with_logits(p(2, 3), r(2, 4))",
        ),
    ),
    Row(
        "sparse_softmax_cross_entropy_with_logits", "labels logits", "labels, logits",
        _sparse_softmax_cross_entropy, op="SparseSoftmaxCrossEntropyWithLogits", kinds="int",
        doc="Return the cross entropy of classes, as integers, and the softmax of logits.",
        differs="on a GPU and in compiled functions a label that is no class gives NaN, and on a "
        "CPU InvalidArgumentError.",
        examples=(
            "nn.sparse_softmax_cross_entropy_with_logits(labels=[2, 0], logits=r(2, 3))",
            "nn.sparse_softmax_cross_entropy_with_logits(labels=[[0, 1]], logits=r(1, 2, 2))",
            "nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 3], logits=r(2, 3))",
            "nn.sparse_softmax_cross_entropy_with_logits(labels=i(2, 3), logits=r(2, 3))",
        ),
    ),
    Row(
        "log_poisson_loss", "targets log_input", "targets, log_input, compute_full_loss=False",
        _log_poisson_loss, same=True, kinds="float",
        doc="Return the loss of counts whose distribution is Poisson's, of mean exp(log_input).",
        examples=(
            "nn.log_poisson_loss(p(4), r(4))", "nn.log_poisson_loss(3.0 * p(4), r(4), True)",
            "nn.log_poisson_loss(p(0), r(0))",
        ),
    ),
    Row(
        "l2_loss", "t", "t", _l2_loss, op="L2Loss", kinds="float",
        doc="Return half of the sum of squares.",
        examples=("nn.l2_loss(r(2, 3))", "nn.l2_loss(r(0))", "nn.l2_loss(3.0)"),
    ),
    Row(
        "compute_average_loss", "per_example_loss sample_weight?",
        "per_example_loss, sample_weight=None, global_batch_size=None", _average_loss,
        kinds="float", doc="Return the sum of losses, divided by the size of the whole batch.",
        differs="without `global_batch_size` the batch given is the whole one.",
        examples=(
            "nn.compute_average_loss(r(4))", "nn.compute_average_loss(r(4), p(4), 8)",
            "nn.compute_average_loss(r(2, 2), global_batch_size=2)",
        ),
    ),
    Row(
        "scale_regularization_loss", "regularization_loss", "regularization_loss", jnp.sum,
        kinds="float", doc="Return the sum of losses, for one replica.",
        examples=(
            "nn.scale_regularization_loss(r(4))", "nn.scale_regularization_loss(2.0)",
            "nn.scale_regularization_loss([1.0, 2.0])",
        ),
    ),
    Row(
        "ctc_loss", "labels logits label_length logit_length",
        "labels, logits, label_length, logit_length, logits_time_major=True, unique=None, "
        "blank_index=None", _ctc_loss, op="CTCLoss", kinds="int",
        doc="Return the loss of label sequences whose times are not known.",
        differs="`labels` are a dense array; `unique` has no effect. A sequence too long for its "
        "frames costs about 1e5, not infinity. Computed by optax.",
        examples=(
            "nn.ctc_loss([[1, 2], [2, 0]], r(4, 2, 3), [2, 1], [4, 3])",
            "nn.ctc_loss([[1, 0]], r(1, 3, 3), [2], [3], logits_time_major=False, blank_index=-1)",
            "nn.ctc_loss([[1, 1]], r(3, 1, 2), [2], [3], blank_index=0)",
        ),
    ),
]  # fmt: skip

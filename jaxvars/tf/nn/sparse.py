"""Parts of `tf.nn` that take or give `tf.SparseTensor`: lookups, CTC's decoders.

Rules this file keeps:
- how many rows or labels there are depends on values: it is found on the host, and refused in
  compiled functions; derivatives go to the embeddings.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.arrays.gather import BAD, check_indices
from jaxvars.tf.errors import FailedPreconditionError
from jaxvars.tf.nn.norm import table_of
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.sparse_tensor import SparseTensor, host_array, of_host, on_host
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array

Prefix: TypeAlias = tuple[int, ...]

_COMBINERS = ("mean", "sqrtn", "sum")


# ---------------------------------------------------------------- lookups
def embedding_lookup_sparse(
    params: Any, sp_ids: Any, sp_weights: Any, combiner: str | None = None,
    max_norm: float | None = None, name: str | None = None, allow_fast_lookup: bool = False,
) -> Tensor:  # fmt: skip
    """Return a mean, or sum, of embeddings for each row of ids.

    Args:
        params: the embeddings, of shape [classes, ...], or a list of parts of them.
        sp_ids: a `tf.SparseTensor`, or ragged one, of integers, of shape [rows, any].
        sp_weights: one like it with a weight for each; or None, for ones.
        combiner: "mean" (also when None), "sqrtn" (the sum over the root of the weights' squares)
            or "sum".
        max_norm: to what length longer embeddings are cut.
        name: of no effect.
        allow_fast_lookup: accepted, and of no effect.

    Raises:
        TypeError: when the ids are not a sparse tensor.
        ValueError: for another combiner, or when there is not a weight for each id.
        InvalidArgumentError: when an id has no embedding.

    >>> from jaxvars import tf
    >>> ids = tf.SparseTensor([[0, 0], [0, 1]], [1, 2], [1, 2])
    >>> table = tf.constant([[0.0], [1.0], [3.0]])
    >>> embedding_lookup_sparse(table, ids, None).numpy().tolist()
    [[2.0]]
    """
    how = _combiner(combiner)
    ids, given = _ids_and_weights(sp_ids, sp_weights, ("sp_ids", "sp_weights"))
    indices, ids, _ = on_host(ids, "nn.embedding_lookup_sparse")
    rows = indices[:, 0]
    if (np.diff(rows) < 0).any():
        raise refused("segment ids are not increasing: tf.sparse.reorder sorts them")
    weights = None if given is None else to_array(given.values)
    count = int(rows[-1]) + 1 if len(rows) else 0
    return Tensor(_combine(table_of(params), ids, rows, weights, count, how, max_norm))


def safe_embedding_lookup_sparse(
    embedding_weights: Any, sparse_ids: Any, sparse_weights: Any = None, combiner: str = "mean",
    default_id: int | None = None, max_norm: float | None = None, name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:  # fmt: skip
    """Return what `embedding_lookup_sparse` does, also where there are no ids, or wrong ones.

    Args:
        embedding_weights: the embeddings, of shape [classes, ...], or a list of parts of them.
        sparse_ids: a `tf.SparseTensor`, or ragged one, of integers; those below 0 do not count.
        sparse_weights: one like it with a weight for each; those of 0 and less do not count, but
            for "sum".
        combiner: "mean", "sqrtn" or "sum".
        default_id: what counts where there is none; zeros when None.
        max_norm: to what length longer embeddings are cut.
        name: of no effect.
        allow_fast_lookup: accepted, and of no effect.

    Raises:
        TypeError: when the ids are not a sparse tensor.
        ValueError: for another combiner.
    """
    how, table = _combiner(combiner), table_of(embedding_weights)
    names = ("sparse_ids", "sparse_weights")
    ids, sparse_weights = _ids_and_weights(sparse_ids, sparse_weights, names)
    indices, ids, sizes = on_host(ids, "nn.safe_embedding_lookup_sparse")
    steps = [int(np.prod(sizes[i + 1 : -1])) for i in range(len(sizes) - 1)]
    rows = indices[:, :-1] @ np.array(steps, np.int64)
    keep, weights = ids >= 0, None
    if sparse_weights is not None:
        given = to_array(sparse_weights.values)
        if how != "sum":
            keep = keep & (host_array(given, "nn.safe_embedding_lookup_sparse") > 0)
        weights = given[keep]
    count = int(np.prod(sizes[:-1]))
    rows = rows[keep]
    made = _combine(table, ids[keep], rows, weights, count, how, max_norm)
    if default_id is not None:
        known = jnp.asarray(np.isin(np.arange(count), rows)).reshape(-1, *[1] * (table.ndim - 1))
        made = jnp.where(known, made, _cut(table[default_id][None], max_norm))
    return Tensor(made.reshape(*sizes[:-1], *made.shape[1:]))


def _ids_and_weights(ids: Any, weights: Any, names: tuple[str, str]) -> list[Any]:
    """Return sparse ids and weights, of sparse or ragged ones; the weights may be None."""
    found: list[Any] = []
    for name, given in zip(names, (ids, weights), strict=True):
        sparse = given.to_sparse() if isinstance(given, RaggedTensor) else given
        if not isinstance(sparse, SparseTensor) and (given is ids or given is not None):
            raise TypeError(f"{name} must be SparseTensor or RaggedTensor, got {type(given)}")
        found.append(sparse)
    sizes = [sparse.values.shape for sparse in found if sparse is not None]
    if sizes[0] != sizes[-1]:
        raise ValueError(f"Shapes {sizes[0]} and {sizes[1]} are incompatible: a weight for each id")
    return found


def _combiner(name: str | None) -> str:
    found = "mean" if name is None else name
    if found not in _COMBINERS:
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {name}")
    return found


def _cut(x: Array, max_norm: float | None) -> Array:
    if max_norm is None:
        return x
    norm = jnp.linalg.norm(x.reshape(len(x), -1), axis=-1).reshape(-1, *[1] * (x.ndim - 1))
    return x * jnp.minimum(1, max_norm / jnp.where(norm == 0, 1, norm)).astype(x.dtype)


def _combine(
    table: Array, ids: np.ndarray, rows: np.ndarray, given: Any, count: int, how: str,
    max_norm: float | None,
) -> Array:  # fmt: skip
    check_indices(ids, table.shape, words=BAD)
    found = _cut(table[ids], max_norm)
    weights = jnp.ones(len(ids), table.dtype) if given is None else given.astype(table.dtype)
    columns = weights.reshape(-1, *[1] * (table.ndim - 1))
    total = jax.ops.segment_sum(found * columns, rows, count)
    if how == "sum":
        return total
    scale = columns if how == "mean" else jnp.square(columns)
    size = jax.ops.segment_sum(scale, rows, count)
    size = size if how == "mean" else jnp.sqrt(size)
    return jnp.where(size == 0, 0, total / jnp.where(size == 0, 1, size))


# ---------------------------------------------------------------- CTC
def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: int | None = None
) -> tuple[list[SparseTensor], Tensor]:
    """Return the labels of the best class at each time, without blanks.

    Args:
        inputs: logits of shape [time, batch, classes].
        sequence_length: how long each example is: int32 of shape [batch].
        merge_repeated: take neighbours of one label as one.
        blank_index: which class is the blank: the last one when None; below 0 from the end.

    Returns:
        A list of the labels, a `tf.SparseTensor` of shape [batch, longest]; and the negative sum of
        the best logits, of shape [batch, 1].

    Raises:
        FailedPreconditionError: when the lengths do not fit.
        InvalidArgumentError: when there is no class `blank_index`.
    """
    logits, lengths = _sequences(inputs, sequence_length, "CTCGreedyDecoder")
    classes = logits.shape[2]
    blank = classes - 1 if blank_index is None else blank_index
    if not -classes <= blank < classes:
        raise refused(f"blank_index must be from {-classes} to {classes - 1}, not {blank}")
    blank %= classes
    labels, scores = [], np.zeros((logits.shape[1], 1), logits.dtype)
    for example, length in enumerate(lengths):
        best = logits[:length, example].argmax(-1)
        scores[example] = -logits[:length, example].max(-1).sum()
        changes = np.append(True, best[1:] != best[:-1])[: len(best)]
        keep = (best != blank) & (changes | (not merge_repeated))
        labels.append(best[keep].tolist())
    return [_sparse(labels)], Tensor(jnp.asarray(scores))


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """Return the most probable labels, by a search that follows the best few.

    Args:
        inputs: logits of shape [time, batch, classes]; the last class is the blank.
        sequence_length: how long each example is: int32 of shape [batch].
        beam_width: how many are followed.
        top_paths: how many are returned, no more than `beam_width`.

    Returns:
        A list of `top_paths` of labels, each a `tf.SparseTensor` of shape [batch, longest]; and
        the logarithms of their probabilities, of shape [batch, top_paths].

    Raises:
        FailedPreconditionError: when the lengths do not fit.
        InvalidArgumentError: when there are more paths than `beam_width`.

    Source: https://distill.pub/2017/ctc
    """
    logits, lengths = _sequences(inputs, sequence_length, "CTCBeamSearchDecoder")
    if not 1 <= top_paths <= beam_width:
        raise refused(f"requested more paths than the beam width: {top_paths} > {beam_width}")
    wide = logits.astype(np.float64)
    shifted = wide - wide.max(-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    found = [
        _beam(logs[:length, example], int(beam_width), int(top_paths))
        for example, length in enumerate(lengths)
    ]
    paths = [_sparse([best[i][0] for best in found]) for i in range(top_paths)]
    scores = np.array([[best[i][1] for i in range(top_paths)] for best in found], logits.dtype)
    return paths, Tensor(jnp.asarray(scores))


def _sequences(inputs: Any, sequence_length: Any, op: str) -> tuple[np.ndarray, np.ndarray]:
    logits = host_array(to_array(inputs), op)
    lengths = host_array(to_array(sequence_length), op)
    if lengths.shape != logits.shape[1:2]:
        raise FailedPreconditionError(
            message=f"len(sequence_length) != batch_size.  len(sequence_length):  "
            f"{len(lengths)} batch_size: {logits.shape[1]} [Op:{op}]"
        )
    for i in np.flatnonzero(lengths > len(logits))[:1]:
        raise FailedPreconditionError(message=f"sequence_length({i}) <= {len(logits)} [Op:{op}]")
    return logits, lengths


def _sparse(labels: list[Any]) -> SparseTensor:
    indices = [(i, j) for i, row in enumerate(labels) for j in range(len(row))]
    values = np.array([label for row in labels for label in row], np.int64)
    return of_host(indices, values, (len(labels), max(map(len, labels), default=0)))


def _beam(logs: np.ndarray, width: int, paths: int) -> list[tuple[Prefix, float]]:
    """Return the best labels of one example, with the logarithms of their probabilities."""
    beams: dict[Prefix, tuple[float, float]] = {(): (0.0, -np.inf)}  # ends in blank, in a label
    for row in logs:
        new: dict[Prefix, tuple[float, float]] = {}
        for prefix, (blank, label) in beams.items():
            total = np.logaddexp(blank, label)
            _add(new, prefix, total + row[-1], -np.inf)
            if prefix:
                _add(new, prefix, -np.inf, label + row[prefix[-1]])
            for i, score in enumerate(row[:-1]):
                start = blank if prefix and prefix[-1] == i else total
                _add(new, (*prefix, i), -np.inf, start + score)
        best = sorted(new, key=lambda p: -np.logaddexp(*new[p]))[:width]
        beams = {prefix: new[prefix] for prefix in best}
    ranked = sorted(beams, key=lambda p: -np.logaddexp(*beams[p]))
    found = [(p, float(np.logaddexp(*beams[p]))) for p in ranked[:paths]]
    return found + [((), -np.inf)] * (paths - len(found))


def _add(
    new: dict[Prefix, tuple[float, float]], prefix: Prefix, blank: float, label: float
) -> None:
    known = new.get(prefix, (-np.inf, -np.inf))
    new[prefix] = (np.logaddexp(known[0], blank), np.logaddexp(known[1], label))

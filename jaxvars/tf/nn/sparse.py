"""CTC's greedy decoder, which gives a `tf.SparseTensor`.

How many labels there are depends on values: it is found on the host, and refused in compiled
functions.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.errors import FailedPreconditionError
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.sparse_tensor import SparseTensor, host_array, of_host
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor


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
        InvalidArgumentError: when `blank_index` is not the number of a class.
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

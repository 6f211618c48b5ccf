"""Checkpoints of TensorFlow 1 before its second format: tables of tensors' slices.

A table, in the form of `train/bundle.py`'s index, has the types and shapes under its first key, and
under each other key a slice of a tensor, as a message. There is one file, or one for each shard:
`<prefix>-00000-of-00003` and so on, whose prefix TensorFlow calls `<prefix>-?????-of-00003`.

Source: https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/util/saved_tensor_slice.proto
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from jaxvars.tf.io.tensors import read_values
from jaxvars.tf.messages import parse
from jaxvars.tf.tensors.dtypes import any_dtype

Table = Callable[[bytes], Iterable[tuple[bytes, bytes]]]


def read_slices(path: Path, read_table: Table) -> dict[str, np.ndarray]:
    """Return all values of a checkpoint, strings as bytes; raise ValueError if it is damaged.

    Args:
        path: of the file, or of its first shard.
        read_table: returns the keys and values of a table.
    """
    shards = sorted(path.parent.glob(re.sub(r"-\d{5}-of-", "-?????-of-", path.name)))
    if found := re.search(r"-of-(\d{5})$", path.name):
        if len(shards) != int(found[1]):
            raise ValueError(f"there are {len(shards)} of its {int(found[1])} files")
    else:
        shards = [path]
    messages = [
        parse("SavedTensorSlices", data)
        for shard in shards
        for _, data in read_table(shard.read_bytes())
    ]
    kinds = {tensor.name: tensor for x in messages for tensor in x.meta.tensor}
    values = {name: _empty(tensor) for name, tensor in kinds.items()}
    left = {name: value.size for name, value in values.items()}
    for saved in (x.data for x in messages if x.HasField("data")):
        whole = values[saved.name]
        place = tuple(map(_slice_of, saved.slice.extent)) if whole.shape else ()
        part = read_values(saved.data, any_dtype(kinds[saved.name].type))
        whole[place] = part.reshape(whole[place].shape)
        left[saved.name] -= part.size
    if lost := [name for name, count in left.items() if count]:
        raise ValueError(f"{lost[0]} is not whole")
    return values


def _empty(tensor: Any) -> np.ndarray:
    shape = tuple(dim.size for dim in tensor.shape.dim)
    if any(n < 0 for n in shape) or math.prod(shape) > 2**40:
        raise ValueError(f"{tensor.name} has the shape {shape}")
    return np.empty(shape, any_dtype(tensor.type).as_numpy_dtype)


def _slice_of(extent: Any) -> slice:
    has_length = extent.WhichOneof("has_length")
    return slice(extent.start, extent.start + extent.length if has_length else None)

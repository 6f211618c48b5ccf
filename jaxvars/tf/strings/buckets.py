"""Hashes of strings, n-grams, and strings of segments, for `tf.strings`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.registry.rows import HOST, Refused, op
from jaxvars.tf.strings import hash as hashes
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import one_int, refused, require_known

Text: TypeAlias = np.ndarray


# ---------------------------------------------------------------- buckets
def _buckets(input: Text, count: Any, of: Callable[[bytes], int]) -> Any:
    size = one_int(count, "num_buckets")
    if size < 1:
        raise refused(f"Value for attr 'num_buckets' of {size} must be at least minimum 1")
    found = [of(text) % size for text in input.ravel()]
    return _convert.to_array(np.array(found, np.int64).reshape(input.shape))


@op(
    "strings.to_hash_bucket", "input", op="StringToHashBucket", kinds="string", text=True,
    eager_only=HOST, example="['Hello', 'TensorFlow', ''], 1000000",
)  # fmt: skip
def to_hash_bucket(input: Text, num_buckets: Any) -> Any:
    """Return the index of the bucket of each string, by its hash."""
    return _buckets(input, num_buckets, hashes.plain)


@op(
    "strings.to_hash_bucket_fast", "input", op="StringToHashBucketFast", kinds="string", text=True,
    eager_only=HOST,
)  # fmt: skip
def to_hash_bucket_fast(input: Text, num_buckets: Any) -> Any:
    """Return the index of the bucket of each string, by a hash that is fast.

    Example:
    `tf.strings.to_hash_bucket_fast(['a' * n for n in (0, 3, 7, 15, 31, 63, 64, 65, 129)],
    1 << 60)`.
    """
    return _buckets(input, num_buckets, hashes.fast)


@op(
    "strings.to_hash_bucket_strong", "input", op="StringToHashBucketStrong", kinds="string",
    text=True, eager_only=HOST, example="['Hello', 'TF', ''], 1 << 60, [1, 2]",
)  # fmt: skip
def to_hash_bucket_strong(input: Text, num_buckets: Any, key: Sequence[int]) -> Any:
    """Return the index of the bucket of each string, by a hash that takes a key."""
    if len(key) != 2:
        raise refused("Key must have 2 elements")
    pair = int(key[0]), int(key[1])
    return _buckets(input, num_buckets, lambda text: hashes.strong(text, pair))


# ---------------------------------------------------------------- n-grams
@op("strings.ngrams", "data", kinds="string", text=True, eager_only=HOST)
def ngrams(
    data: Text, ngram_width: Any, separator: str = " ", pad_values: Any = None,
    padding_width: Any = None, preserve_short_sequences: bool = False,
) -> Text:  # fmt: skip
    """Join each few strings that follow one another.

    Example: `tf.strings.ngrams(['a', 'b', 'c'], [1, 2], separator='|')`.
    """
    widths = list(ngram_width) if isinstance(ngram_width, list | tuple) else [ngram_width]
    if not data.ndim:
        raise Refused(ValueError("data must have rank>0"))
    if padding_width is not None and pad_values is None:
        raise Refused(ValueError("pad_values must be provided if padding_width is set."))
    if any(width < 1 for width in widths):
        raise Refused(ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}"))
    pads = ("", "") if pad_values is None else pad_values
    left, right = (pads, pads) if isinstance(pads, str) else pads
    limit = 0 if pad_values is None else padding_width
    between = separator.encode()
    rows = data.reshape(-1, data.shape[-1])
    made = [
        [
            between.join(part)
            for part in _parts(list(row), widths, left.encode(), right.encode(), limit,
                               preserve_short_sequences)
        ]
        for row in rows
    ]  # fmt: skip
    size = len(made[0]) if made else 0
    whole = np.empty((len(made), size), object)
    for i, row in enumerate(made):
        whole[i] = row
    return whole.reshape(*data.shape[:-1], size)


def _parts(
    row: list[bytes], widths: list[int], left: bytes, right: bytes, limit: int | None, short: bool
) -> Iterator[list[bytes]]:
    """Yield the strings of each n-gram of a row."""
    is_empty = True
    for width in widths:
        pad = width - 1 if limit is None else min(limit, width - 1)
        padded = [left] * pad + row + [right] * pad
        for i in range(len(padded) - width + 1):
            is_empty = False
            yield padded[i : i + width]
    if is_empty and short and row and limit is not None:
        yield [left] * limit + row + [right] * limit


# ---------------------------------------------------------------- segments
@op("strings.unsorted_segment_join", "inputs", kinds="string", text=True, eager_only=HOST)
def unsorted_segment_join(
    inputs: Text, segment_ids: Any, num_segments: Any, separator: str = ""
) -> Text:
    """Join the strings of each segment.

    Example: `tf.strings.unsorted_segment_join(['a', 'b', 'c'], [1, 0, 1], 3, '-')`.
    """
    ids = require_known(_convert.to_array(segment_ids), "segment_ids")
    count = one_int(num_segments, "num_segments")
    if inputs.shape[: ids.ndim] != ids.shape:
        raise refused(
            f"segment_ids shape must be a prefix of input shape: {ids.shape} vs. {inputs.shape}"
        )
    if ids.size and not 0 <= ids.min() <= ids.max() < count:
        raise refused(
            "segment_ids are not allowed to exceed num_segments or to have negative values."
        )
    rest = inputs.shape[ids.ndim :]
    made = np.empty((count, *rest), object)
    for place in np.ndindex(made.shape):
        chosen = inputs[(*np.nonzero(ids == place[0]), *place[1:])]
        made[place] = separator.encode().join(chosen.tolist())
    return made

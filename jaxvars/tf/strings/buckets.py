"""Buckets of strings, by their hashes, for `tf.strings`."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.registry.rows import HOST, op
from jaxvars.tf.strings import hash as hashes
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import one_int, refused

Text: TypeAlias = np.ndarray


@op(
    "strings.to_hash_bucket_fast", "input", op="StringToHashBucketFast", kinds="string",
    strings=True, eager_only=HOST,
)  # fmt: skip
def to_hash_bucket_fast(input: Text, num_buckets: Any) -> Any:
    """Return the index of the bucket of each string, by a hash that is fast.

    Example:
    `tf.strings.to_hash_bucket_fast(['a' * n for n in (0, 3, 7, 15, 31, 63, 64, 65, 129)],
    1 << 60)`.
    """
    size = one_int(num_buckets, "num_buckets")
    if size < 1:
        raise refused(f"Value for attr 'num_buckets' of {size} must be at least minimum 1")
    found = [hashes.fast(string) % size for string in input.ravel()]
    return _convert.to_array(np.array(found, np.int64).reshape(input.shape))


# ---------------------------------------------------------------- n-grams
# ---------------------------------------------------------------- segments

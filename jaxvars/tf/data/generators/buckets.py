"""What `bucket_by_sequence_length` makes of elements: which bucket, and its batches."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any, final

from jaxvars.tf.tensors.elements import leaves, pack_leaves
from jaxvars.tf.tensors.static import refused


@final
@dataclass(frozen=True)
class Buckets:
    """What is to become of elements by their lengths; see `bucket_by_sequence_length`."""

    boundaries: tuple[int, ...]
    sizes: tuple[int, ...]
    padded_shapes: Any
    padding_values: Any
    to_boundary: bool
    is_unpadded: bool
    drops: bool

    def __post_init__(self) -> None:
        if len(self.sizes) != len(self.boundaries) + 1:
            raise ValueError(
                "`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but "
                f"`len(bucket_batch_sizes)={len(self.sizes)}` and "
                f"`len(bucket_boundaries)={len(self.boundaries)}`."
            )

    def number(self, length: int) -> int:
        """Return the number of the bucket of a length."""
        found = bisect.bisect_right(self.boundaries, length)
        if self.to_boundary and found == len(self.boundaries):
            raise refused(
                "When pad_to_bucket_boundary=True, elements must have length < "
                f"max(bucket_boundaries): {length} is not less than {self.boundaries[-1]}."
            )
        return found

    def batched(self, number: int, group: Any, spec: Any) -> Any:
        """Return the elements of a bucket, a dataset of a spec, as one of batches."""
        size = self.sizes[number]
        if self.is_unpadded:
            return group.batch(size, drop_remainder=self.drops)
        shapes = self.padded_shapes
        if shapes is None:
            shapes = pack_leaves(spec, [leaf.shape.as_list() for leaf in leaves(spec)])
        if self.to_boundary:
            shapes = self._close_shapes(shapes, self.boundaries[number] - 1)
        return group.padded_batch(size, shapes, self.padding_values, self.drops)

    def _close_shapes(self, shapes: Any, size: int) -> Any:
        """Return shapes with a size where they are open."""
        if isinstance(shapes, dict):
            return {key: self._close_shapes(shape, size) for key, shape in shapes.items()}
        if isinstance(shapes, tuple) and any(isinstance(x, tuple | list | dict) for x in shapes):
            return tuple(self._close_shapes(shape, size) for shape in shapes)
        return [size if n is None or n == -1 else n for n in shapes]

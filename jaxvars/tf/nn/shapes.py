"""What convolutions and pools share: strides, windows, paddings and layouts, as JAX takes them.

Rules this file keeps:
- a window, stride or dilation is a number, one for each spatial axis, or one for each axis;
- axes before the last `n + 1` beyond one are all batch axes, where channels come last.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from jaxvars.tf.registry.rows import Refused
from jaxvars.tf.tensors.static import refused
from jaxvars.typing import Array

_LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def refused_value(message: str) -> Refused:
    """Return what makes an operation raise ValueError."""
    return Refused(ValueError(message))


@final
@dataclass(frozen=True)
class Layout:
    """Where the axes are: the number of spatial ones, and whether channels come first."""

    spatial: int
    channels_first: bool

    @property
    def axes(self) -> range:
        """The spatial axes."""
        return range(2, 2 + self.spatial) if self.channels_first else range(1, 1 + self.spatial)

    @property
    def channels(self) -> int:
        """The axis of the channels."""
        return 1 if self.channels_first else self.spatial + 1

    def names(self) -> tuple[str, str, str]:
        """Return the axes of the input, the filters and the output, as JAX names them."""
        letters = _LETTERS[self.spatial]
        data = f"NC{letters}" if self.channels_first else f"N{letters}C"
        return data, f"{letters}IO", data

    def everywhere(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return sizes of the spatial axes with 1 for the others."""
        full = [1] * (self.spatial + 2)
        for axis, size in zip(self.axes, sizes, strict=True):
            full[axis] = size
        return tuple(full)


def layout(spatial: int, data_format: Any) -> Layout:
    """Return the layout that a name like "NHWC" stands for; channels last for None."""
    letters = _LETTERS.get(spatial)
    if letters is None:
        raise refused_value(f"There are 1 to 3 spatial axes, not {spatial}.")
    name = f"N{letters}C" if data_format is None else data_format
    known = {f"N{letters}C": False, f"NC{letters}": True}
    if name not in known:
        raise refused_value(
            f"data_format must be one of {', '.join(known)}. Received: {data_format}"
        )
    return Layout(spatial, known[name])


def numbers(value: Any, where: Layout, name: str) -> tuple[int, ...]:
    """Return one number for each spatial axis; 1 for None."""
    given = np.asarray(1 if value is None else value).ravel().tolist()
    n = where.spatial
    if len(given) == 1:
        return tuple(given * n)
    if len(given) == n:
        return tuple(given)
    if len(given) != n + 2:
        raise refused_value(
            f"{name} should be of length 1, {n} or {n + 2}. Received: {name}={value} of length "
            f"{len(given)}"
        )
    if given[0] != 1 or given[where.channels] != 1:
        raise refused_value(
            f"{name} along the batch and channel axes must be 1. Received: {name}={value}"
        )
    return tuple(given[axis] for axis in where.axes)


def paddings(
    padding: Any, sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int],
    where: Layout,
) -> list[tuple[int, int]]:  # fmt: skip
    """Return how much is added before and after each spatial axis, for windows of some reach."""
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return [(0, 0)] * len(sizes)
        if padding.upper() == "SAME":
            return [_same(*axis) for axis in zip(sizes, windows, strides, strict=True)]
        raise refused(f"padding must be 'SAME' or 'VALID'. Received: {padding!r}")
    pairs = [(int(low), int(high)) for low, high in padding]
    if any(min(pair) < 0 for pair in pairs):
        raise refused_value(f"Explicit padding must not be negative. Received: {padding}")
    if len(pairs) == where.spatial:
        return pairs
    if len(pairs) != where.spatial + 2 or pairs[0] != (0, 0) or pairs[where.channels] != (0, 0):
        raise refused_value(
            "Explicit padding has a pair for each axis, and (0, 0) for the batch and the "
            f"channels. Received: {padding}"
        )
    return [pairs[axis] for axis in where.axes]


def _same(size: int, window: int, stride: int) -> tuple[int, int]:
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return total // 2, total - total // 2


def reach(windows: Sequence[int], dilations: Sequence[int]) -> list[int]:
    """Return how far windows reach when they are dilated."""
    return [(size - 1) * d + 1 for size, d in zip(windows, dilations, strict=True)]


def as_one_batch(x: Array, where: Layout) -> tuple[Array, tuple[int, ...]]:
    """Return an input with one batch axis, and the batch axes that it had."""
    extra = x.ndim - (where.spatial + 2)
    if extra < 0 or (extra and where.channels_first):
        raise refused_value(
            f"`input` must have {where.spatial + 2} axes. Received a tensor of shape {x.shape}"
        )
    if not extra:
        return x, x.shape[:1]
    return x.reshape(-1, *x.shape[extra + 1 :]), x.shape[: extra + 1]


def places_in(
    x: Array, sizes: Sequence[int], steps: Sequence[int], gaps: Sequence[int]
) -> Iterator[Array]:
    """Yield, for each place in the windows over the axes after the first, what they have there."""
    counts = [
        max((n - far) // step + 1, 0)
        for n, far, step in zip(x.shape[1:], reach(sizes, gaps), steps, strict=False)
    ]
    for place in itertools.product(*map(range, sizes)):
        yield x[
            :,
            *(
                slice(i * gap, i * gap + count * step, step)
                for i, gap, count, step in zip(place, gaps, counts, steps, strict=True)
            ),
        ]

"""`TensorShape`: sizes of dimensions, some of which may be unknown, as TensorFlow has them.

It compares and unpacks like the tuple of its sizes; one whose rank is unknown has none.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any, final

from jaxvars.objects.identity import told_by_pickle
from jaxvars.symbolic.specialize import is_open


def _combine(compute: Callable[[int, int], Any], *, is_size: bool = True) -> Any:
    """Return an operator of sizes; of an unknown one it returns an unknown one, or None."""

    def combined(self: Dimension, other: Any) -> Any:
        if not isinstance(other, Dimension | int | None):
            return NotImplemented
        x, y = self.value, Dimension(other).value
        found = None if x is None or y is None else compute(x, y)
        return Dimension(found) if is_size else found

    return combined


@final
class Dimension:
    """A size, or None if it is unknown: what `TensorShape.dims` has.

    >>> Dimension(3) + 1, Dimension(3) == 3, Dimension(None) == 3
    (Dimension(4), True, None)
    """

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value._value if isinstance(value, Dimension) else _to_size(value)

    value = property(lambda self: self._value, doc="The number, or None.")
    __add__ = __radd__ = _combine(operator.add)
    __mul__ = __rmul__ = _combine(operator.mul)
    __sub__, __rsub__ = _combine(operator.sub), _combine(lambda x, y: y - x)
    __floordiv__, __rfloordiv__ = _combine(operator.floordiv), _combine(lambda x, y: y // x)
    __mod__, __rmod__ = _combine(operator.mod), _combine(lambda x, y: y % x)
    __eq__, __ne__ = _combine(operator.eq, is_size=False), _combine(operator.ne, is_size=False)
    __lt__, __le__ = _combine(operator.lt, is_size=False), _combine(operator.le, is_size=False)
    __gt__, __ge__ = _combine(operator.gt, is_size=False), _combine(operator.ge, is_size=False)
    __hash__ = None  # type: ignore[assignment]

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether it may be another one: it is equal, or one is unknown."""
        return (self == Dimension(other)) is not False

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise ValueError unless it may be another one."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {Dimension(other)} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """Return what is known of two that may be the same."""
        self.assert_is_compatible_with(other)
        return Dimension(other) if self.value is None else self

    def __index__(self) -> int:
        return operator.index(self._value)  # pyright: ignore[reportArgumentType] - None raises

    __int__ = __index__

    def __bool__(self) -> bool:
        return bool(self._value)

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"


@final
@told_by_pickle
class TensorShape:
    """The sizes of a tensor's dimensions.

    Args:
        dims: a size, a list of sizes or None for unknown ones, or another shape; None for an
            unknown rank.

    Raises:
        TypeError: when it is something else.
        ValueError: when a size is negative.

    >>> shape = TensorShape([None, 3])
    >>> shape, str(shape), shape.as_list(), shape.rank, shape == (None, 3)
    (TensorShape([None, 3]), '(None, 3)', [None, 3], 2, True)
    >>> rows, columns = TensorShape([2, 3])
    >>> rows + columns
    5
    """

    __slots__ = ("_sizes",)

    def __init__(self, dims: Any) -> None:
        is_open = dims is None or (isinstance(dims, TensorShape) and not dims)
        self._sizes: tuple[int | None, ...] | None = None if is_open else _to_sizes(dims)

    @property
    def rank(self) -> int | None:
        """The number of dimensions; None when it is unknown."""
        return None if self._sizes is None else len(self._sizes)

    ndims = rank

    @property
    def dims(self) -> list[Dimension] | None:
        """The sizes as Dimensions, or None when even their number is unknown."""
        return None if self._sizes is None else list(map(Dimension, self._sizes))

    def as_list(self) -> list[int | None]:
        """Return the sizes as a list.

        Raises:
            ValueError: when the rank is unknown.
        """
        if self._sizes is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._sizes)

    def num_elements(self) -> int | None:
        """Return the number of elements; None when a size is unknown."""
        return math.prod(self._known_sizes()) if self.is_fully_defined() else None

    def is_fully_defined(self) -> bool:
        """Return whether all sizes are known."""
        return self._sizes is not None and None not in self._sizes

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether there is a shape that both could be."""
        other = as_shape(other)
        if self._sizes is None or other._sizes is None:
            return True
        return len(self._sizes) == len(other._sizes) and all(
            a is None or b is None or a == b for a, b in zip(self._sizes, other._sizes, strict=True)
        )

    def is_subtype_of(self, other: Any) -> bool:
        """Return whether each shape that this could be is one that `other` could be."""
        other = as_shape(other)
        if other._sizes is None or self._sizes is None:
            return other._sizes is None
        return len(self._sizes) == len(other._sizes) and all(
            b is None or a == b for a, b in zip(self._sizes, other._sizes, strict=True)
        )

    def merge_with(self, other: Any) -> TensorShape:
        """Return the shape with the sizes that either has.

        Raises:
            ValueError: when they contradict each other.
        """
        other = as_shape(other)
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are not compatible")
        if self._sizes is None or other._sizes is None:
            return other if self._sizes is None else self
        pairs = zip(self._sizes, other._sizes, strict=True)
        return TensorShape([b if a is None else a for a, b in pairs])

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """Return the shape with the sizes that are equal in both; the others are open."""
        other = as_shape(other)
        if self._sizes is None or other._sizes is None or self.rank != other.rank:
            return TensorShape(None)
        pairs = zip(self._sizes, other._sizes, strict=True)
        return TensorShape([a if a == b else None for a, b in pairs])

    def most_specific_common_supertype(self, others: Any) -> TensorShape:
        """Return the shape with the sizes that are equal in all."""
        return functools.reduce(TensorShape.most_specific_compatible_shape, others, self)

    def concatenate(self, other: Any) -> TensorShape:
        """Return the sizes of this shape and then those of another."""
        other = as_shape(other)
        if self._sizes is None or other._sizes is None:
            return TensorShape(None)
        return TensorShape(self._sizes + other._sizes)

    def with_rank(self, rank: int) -> TensorShape:
        """Return the shape, with this rank if it was unknown.

        Raises:
            ValueError: when it has another rank.
        """
        self.assert_has_rank(rank)
        return TensorShape([None] * rank) if self._sizes is None else self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """Return the shape; raise ValueError when it has fewer dimensions."""
        is_right = self._sizes is None or len(self._sizes) >= rank
        return self._require(is_right, f"must have rank at least {rank}")

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """Return the shape; raise ValueError when it has more dimensions."""
        is_right = self._sizes is None or len(self._sizes) <= rank
        return self._require(is_right, f"must have rank at most {rank}")

    def assert_has_rank(self, rank: int) -> None:
        """Raise ValueError when the rank is another one."""
        self._require(self.rank in (None, rank), f"must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        """Raise ValueError when both ranks are known and differ."""
        other = as_shape(other)
        if None not in (self.rank, other.rank) and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise ValueError when no shape could be both."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def assert_is_fully_defined(self) -> None:
        """Raise ValueError when a size is unknown."""
        self._require(self.is_fully_defined(), "is not fully defined")

    def _require(self, is_right: bool, expected: str) -> TensorShape:
        if not is_right:
            raise ValueError(f"Shape {self} {expected}")
        return self

    def _known_sizes(self) -> tuple[Any, ...]:
        if self._sizes is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return self._sizes

    def __len__(self) -> int:
        return len(self._known_sizes())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._known_sizes())

    def __bool__(self) -> bool:
        return self._sizes is not None

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return TensorShape(_unknown(key) if self._sizes is None else self._sizes[key])
        return None if self._sizes is None else self._sizes[key]

    def __eq__(self, other: object) -> bool:
        try:
            return self._sizes == as_shape(other)._sizes
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return hash(self._sizes)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __reduce__(self) -> Any:
        return TensorShape, (self._sizes,)

    def __str__(self) -> str:
        return "<unknown>" if self._sizes is None else str(self._sizes)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._sizes is None else [*self._sizes]})"


def _unknown(key: slice) -> list[None] | None:
    """Return the part of a shape of unknown rank: sizes are unknown, and their number may be."""
    first, stop = key.start or 0, key.stop
    if stop is None or stop < 0 or first < 0 or key.step not in (None, 1):
        return None
    return [None] * max(0, stop - first)


def as_shape(shape: Any) -> TensorShape:
    """Return a TensorShape of what stands for one."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def _to_sizes(dims: Any) -> tuple[int | None, ...] | None:
    if isinstance(dims, TensorShape):
        return dims._known_sizes()
    if isinstance(dims, str):
        raise TypeError(
            f"Failed to convert '{dims!r}' to a shape: '{dims!r}'could not be converted to a "
            "dimension. A shape should either be single dimension (e.g. 10), or an iterable of "
            "dimensions (e.g. [1, 10, None])."
        )
    try:
        parts = list(dims)
    except TypeError:
        parts = [dims]
    return tuple(map(_to_size, parts))


def _to_size(part: Any) -> int | None:
    part = part.value if isinstance(part, Dimension) else part
    if part is None:
        return None
    try:
        size = operator.index(part)
    except TypeError:
        if is_open(part):  # open, while a function is traced to be saved
            return None
        raise TypeError(
            "Dimension value must be integer or None or have an __index__ method, got value "
            f"'{part!r}' with type '{type(part)!r}'"
        ) from None
    if size < 0:
        raise ValueError(f"Dimension {size} must be >= 0")
    return size

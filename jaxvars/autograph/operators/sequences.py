"""What a staged `for` iterates over: traced arrays, ranges to a traced end, zips of them, ...

Rules this file keeps:
- whatever Python can go through by itself stays Python's: this file makes a `Sequential` only
  if something traced is in it;
- one of a known length is an array of items (a scan iterates over it); any has items by index.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.errors import ControlFlowError, user_line
from jaxvars.objects.key_order import map_leaves
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.tensor import as_array
from jaxvars.tensors.wrapping import is_box, type_for
from jaxvars.tracing import context
from jaxvars.typing import Array


@final
class OneOfTwo(NamedTuple):
    """An item that has one of two shapes: `first`, where `truth` holds, or `second`."""

    truth: Array
    first: Any
    second: Any


def change_item(change: Callable[[Any], Any], item: Any) -> Any:
    """Return what a function makes of an item."""
    if isinstance(item, OneOfTwo):
        return OneOfTwo(item.truth, change(item.first), change(item.second))
    return change(item)


@final
class Sequential:
    """Items by index.

    Attributes:
        length: how many; traced, or known.
        item: returns an item.
        stacked: returns all, as a pytree of arrays, where the length is known.
        more: says whether there is an item of an index, where the length is None; it is called
            once for each, in order, before the item.
    """

    def __init__(
        self,
        length: Any,
        item: Callable[[Any], Any],
        stacked: Callable[[], Any] | None,
        more: Callable[[Any], Any] | None = None,
    ) -> None:
        self.length = length
        self.item = item
        self.stacked = stacked
        self.more = more

    def __len__(self) -> int:
        if not isinstance(self.length, int):
            self._refuse()
        return self.length

    def all(self) -> Any:
        """Return all items, as a pytree of arrays."""
        return self.stacked() if self.stacked else self._refuse()

    def __iter__(self) -> Iterator[Any]:
        return map(self.item, builtins.range(len(self)))

    def _refuse(self, *_: Any) -> NoReturn:
        raise ControlFlowError(
            f"A range whose end is a traced value is used at {user_line()} where its length must "
            "be known. Only a `for` statement in a converted function can go through it."
        )

    # It is not an array, and equal to nothing: both would be taken for an answer.
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __abs__ = __getitem__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _refuse
    __hash__ = object.__hash__


SEQUENTIALS: dict[type, Callable[[Any], Sequential | None]] = {}
"""What makes a Sequential of something of a type, or None where Python is to go through it."""


def sequential(values: Any) -> Sequential | None:
    """Return what a staged loop iterates over; None for what is Python's."""
    if isinstance(values, Sequential):
        return values
    if type(values) in SEQUENTIALS:
        return SEQUENTIALS[type(values)](values)
    array = unwrap(values)
    if (context.is_known(array) and not is_box(values)) or not jnp.ndim(array):
        return None
    return _of_array(array)


def _of_array(array: Array) -> Sequential:
    return Sequential(array.shape[0], lambda i: array[i], lambda: array)


def of_range(numbers: builtins.range) -> Sequential:
    """Return a Python range as something that a staged loop iterates over."""
    start, step = numbers.start, numbers.step
    return Sequential(
        len(numbers), lambda i: start + i * step, lambda: start + _count_from_0(len(numbers)) * step
    )


def _count_from_0(length: int) -> Array:
    """Return the integers from 0, typed as Python's are where users see arrays."""
    kind = type_for(int, None)
    if kind is not None:
        return jnp.arange(length, dtype=kind)
    return jax.lax.cumsum(jnp.broadcast_to(1, (length,))) - 1


def range(*bounds: Any) -> Any:
    """Return Python's range, or one to a traced end."""
    if all(context.is_known(unwrap(bound)) for bound in bounds):
        known = builtins.range(*bounds)
        return of_range(known) if any(map(is_box, bounds)) else known
    start, stop, step = _bounds(*map(unwrap, bounds))
    if isinstance(start, int) and isinstance(step, int) and (start, step) == (0, 1):
        return Sequential(jnp.maximum(0, stop), lambda i: i, None)
    return Sequential(_count_range(start, stop, step), lambda i: start + i * step, None)


def _count_range(first: Array | int, last: Array | int, by: Array | int) -> Array:
    """Return how many integers a range has, whose ends may be apart by more than their dtype."""
    start, stop, step = jnp.broadcast_arrays(first, last, by)
    unsigned = jnp.dtype(f"uint{8 * start.dtype.itemsize}")
    rises = step > 0
    way = jnp.where(rises, stop - start, start - stop).astype(unsigned)
    size = jnp.maximum(jnp.abs(step).astype(unsigned), 1)
    length = jnp.minimum((way - 1) // size, jnp.iinfo(start.dtype).max - 1).astype(start.dtype) + 1
    return jnp.where(jnp.where(rises, stop > start, stop < start), length, 0)


def _bounds(*bounds: Array) -> tuple[Array | int, Array | int, Array | int]:
    for bound in bounds:
        if jnp.ndim(bound) or not jnp.issubdtype(jnp.result_type(bound), jnp.integer):
            raise TypeError(
                f"range() takes integers; at {user_line()} it is given "
                f"{jnp.result_type(bound)}{list(jnp.shape(bound))}"
            )
    known = [_widen(x) if not context.is_known(x) else int(x) for x in bounds]
    return (0, known[0], 1) if len(known) == 1 else (known[0], known[1], (*known[2:], 1)[0])


def _widen(bound: Array) -> Array:
    """Return a traced bound as a signed integer of 32 bits at least."""
    if bound.dtype.itemsize < 4:
        return bound.astype(jnp.int32)
    signed = jnp.dtype(f"int{8 * bound.dtype.itemsize}")
    if bound.dtype == signed:
        return bound
    return jnp.minimum(bound, jnp.iinfo(signed).max).astype(signed)


def enumerate(values: Iterable[Any], start: Any = 0) -> Any:
    """Count the items."""
    items = sequential(values)
    if items is None:
        return builtins.enumerate(values, start)
    start = start if context.is_known(unwrap(start)) else _widen(unwrap(start))
    return Sequential(
        items.length,
        lambda i: change_item(lambda x: (start + i, x), items.item(i)),
        items.stacked
        and (lambda: change_item(lambda x: (start + _count_from_0(len(items)), x), items.all())),
        items.more,
    )


def reversed(values: Any) -> Any:
    """Go through the items from the last to the first."""
    items = sequential(values)
    if items is None:
        return builtins.reversed(values)
    return Sequential(
        items.length,
        lambda i: items.item(items.length - 1 - i),
        items.stacked and (lambda: map_leaves(lambda x: x[::-1], items.all())),
    )


def zip(*values: Any, strict: bool = False) -> Any:
    """Go through several things at once."""
    found = [sequential(x) for x in values]
    if all(x is None for x in found):
        return builtins.zip(*values, strict=strict)
    parts = [_sequential_of(x) if part is None else part for x, part in builtins.zip(values, found)]  # noqa: B905 - equal
    items = [part for part in parts if part is not None]
    if len(items) < len(parts):
        return builtins.zip(*values, strict=strict)  # a list, a generator: Python unrolls it
    if any(part.more for part in items):
        return Sequential(None, lambda i: _items(items, i), None, lambda i: _all_have(items, i))
    lengths = [part.length for part in items]
    if all(isinstance(n, int) for n in lengths):
        if strict and len(set(lengths)) > 1:
            raise ValueError(f"zip() arguments have different lengths: {lengths}")
        n = min(lengths)
        return Sequential(
            n,
            lambda i: tuple(part.item(i) for part in items),
            lambda: map_leaves(lambda x: x[:n], tuple(part.all() for part in items)),
        )
    n = functools.reduce(jnp.minimum, lengths)
    return Sequential(n, lambda i: tuple(part.item(i) for part in items), None)


def _items(parts: list[Sequential], i: Any) -> tuple[Any, ...]:
    found = tuple(part.item(i) for part in parts)
    if any(isinstance(item, OneOfTwo) for item in found):
        raise ControlFlowError(
            f"zip() at {user_line()} goes through a dataset whose last batch has another size. "
            "Write dataset.batch(n, drop_remainder=True), or zip the datasets first."
        )
    return found


def _all_have(parts: list[Sequential], i: Any) -> Any:
    return functools.reduce(
        jnp.logical_and, (part.more(i) if part.more else i < part.length for part in parts)
    )


def _sequential_of(values: Any) -> Sequential | None:
    if isinstance(values, builtins.range):
        return of_range(values)
    array = unwrap(values)
    if isinstance(array, jax.Array | np.ndarray) and array.ndim:
        return _of_array(as_array(array))
    return None

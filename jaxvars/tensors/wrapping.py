"""What converted code and control flow pass to the user's code: arrays, or what stands for them.

`jaxvars.tf` has converted functions see its Tensors. Where the core gives an array to code that it
converted it says `boxed(array)`, which is the array itself unless `boxing` is on.

Rules this file keeps:
- without `boxing` each function here returns what it is given, at the cost of one comparison;
- what is boxing is so in one thread, and while one function is traced.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxvars.objects.key_order import map_leaves
from jaxvars.tensors.array_like import BOXES
from jaxvars.tracing.context import Scoped


class ErrorVocabulary(NamedTuple):
    """What error messages say of arrays.

    Attributes:
        cast: how to convert one.
        zeros: how to make one, with places for a shape and a dtype.
        alike: what the results of branches must be.
        truth: what one may be asked in place of whether it is true.
    """

    cast: str = "x.astype(...)"
    zeros: str = "jnp.zeros({shape}, jnp.{dtype})"
    alike: str = "give the same structure, shape and dtype"
    truth: str = "jnp.any(x), jnp.all(x), x.size > 0"


class TensorWrapping(NamedTuple):
    """How a package has its users see arrays.

    Attributes:
        box: takes a structure with arrays, returns one with boxes.
        array: takes a Python number, or strings of NumPy, returns an array of JAX.
        words: how error messages name things.
    """

    box: Callable[[Any], Any]
    array: Callable[[Any], Any]
    words: ErrorVocabulary = ErrorVocabulary()


_CURRENT: Scoped[TensorWrapping | None] = Scoped(None)
_PLAIN = ErrorVocabulary()


def boxing(semantics: TensorWrapping | None) -> AbstractContextManager[object]:
    """Have boxes in place of arrays inside, or arrays again (None)."""
    return _CURRENT.set(semantics)


def is_boxing() -> bool:
    """Return whether users see boxes now."""
    return _CURRENT.value is not None


def words() -> ErrorVocabulary:
    """Return how error messages speak of arrays now."""
    return _PLAIN if _CURRENT.value is None else _CURRENT.value.words


def boxed(value: Any) -> Any:
    """Return a structure with boxes for the arrays in it, if users are to see these.

    >>> boxed(1.0)
    1.0
    """
    return value if _CURRENT.value is None else _CURRENT.value.box(value)


def is_box(value: Any) -> bool:
    """Return whether a value is a box with numbers, and users see boxes now."""
    if _CURRENT.value is None or type(value) not in BOXES:
        return False
    return isinstance(BOXES[type(value)](value), jax.Array)


def settled_numbers(value: Any) -> Any:
    """Return a structure with arrays for numbers of Python and strings, if users see boxes now."""
    semantics = _CURRENT.value
    if semantics is None:
        return value

    def settled(x: Any) -> Any:
        has_strings = isinstance(x, np.ndarray) and x.dtype.hasobject
        return semantics.array(x) if has_strings or type(x) in (int, float) else x

    return map_leaves(settled, value)


def box_array(value: Any) -> Any:
    """Return an array of a number or string, as users who see boxes are to have it."""
    return value if _CURRENT.value is None else _CURRENT.value.array(value)


def type_for(kind: type, dtype: Any) -> Any:
    """Return the dtype that Python's numbers of a kind have; `dtype` if users see arrays."""
    return dtype if _CURRENT.value is None else _CURRENT.value.array(kind()).dtype

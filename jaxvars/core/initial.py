"""The first value of a variable: what it may be made of, in memory that nothing else holds.

And its cell, which may be one for values of several shapes. Each of these has programs of its own:
a program is known by the shapes that its inputs had, and jit checks them at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import jax.numpy as jnp
import numpy as np

from jaxvars.advice import takes
from jaxvars.core.cells import Cell, FixedCell
from jaxvars.core.frame import form_of
from jaxvars.core.frames import LOCAL, lifted
from jaxvars.devices.mesh import on_mesh, sharding_for
from jaxvars.errors import ShapeError, UninitializedError, user_line
from jaxvars.tensors.array_like import ArrayProxy, unwrap
from jaxvars.tensors.dtypes import is_string
from jaxvars.tensors.tensor import broadcasts, is_host, to_tensor
from jaxvars.tracing import context
from jaxvars.typing import Array, Aval


@final
class Open(NamedTuple):
    """A shape with sizes that are not fixed, None; `sizes` is None for any number of them."""

    sizes: tuple[int | None, ...] | None

    def takes(self, shape: Sequence[int]) -> bool:
        """Return whether a shape is one of these."""
        if self.sizes is None:
            return True
        pairs = zip(self.sizes, shape, strict=False)
        return len(self.sizes) == len(shape) and all(a is None or a == b for a, b in pairs)


@final
class OpenCell(Cell):
    """A cell whose values may have several shapes.

    Attributes:
        first: shape and dtype of the first value.
        shapes: those that the values may have.
    """

    __slots__ = ("first", "shapes")
    is_open = True

    def __init__(self, shapes: Open, *args: Any) -> None:
        self.shapes = shapes
        super().__init__(*args)

    @property
    def declared(self) -> Sequence[int | None] | None:
        """The sizes that all values have."""
        return self.shapes.sizes

    @property
    def aval(self) -> Aval:
        """Shape and dtype of the value now; a function that is traced depends on it then."""
        return self.form(LOCAL.frame)

    @aval.setter
    def aval(self, first: Aval) -> None:
        self.first = first

    def takes(self, shape: Sequence[int]) -> bool:
        """Return whether its value may have a shape."""
        return self.shapes.takes(shape)

    def form(self, frame: Any) -> Aval:
        """Return the shape and dtype of its value now in a frame; if it has none, of the first."""
        try:
            return frame.form(self)
        except UninitializedError:
            return self.first


def make_cell(owner: object, value: Array, name: str, sharding: Any, shape: Any) -> Cell:
    """Return the cell of a variable with this first value, and this `shape` argument."""
    sharding = None if is_string(value.dtype) else sharding_for(sharding, value, name)
    given = owner, form_of(value), name, sharding
    return OpenCell(shape, *given) if isinstance(shape, Open) else FixedCell(*given)


def check_arguments(name: Any, initial_value: Any, more: tuple[Any, ...]) -> None:
    if not isinstance(name, str | None):
        raise TypeError(f"The name of a variable is a string, not {name!r}.")
    if more:
        raise TypeError(
            f"A variable has one value; {1 + len(more)} are given at {user_line()}. "
            f"{_as_one(initial_value, more)}"
        )


def _as_one(first: Any, more: tuple[Any, ...]) -> str:
    """Return what to write instead of several values."""
    values = (first, *more)
    if all(type(value) in (list, tuple, int, float, complex) for value in values):
        return f"Write one list: jv.Variable([{', '.join(map(repr, values))}])."
    keyword = {bool: "trainable=", str: "name="}.get(type(more[0]), "dtype=")
    return f"Everything else is named, like jv.Variable(value, {keyword}...)."


def initial(given: Any, dtype: Any, shape: int | tuple[int, ...] | Open | None, name: str) -> Array:
    """Return the first value, in memory that nothing else holds."""
    what = f"the initial value of variable {name!r}"
    if callable(given) and not isinstance(given, ArrayProxy):
        value = lifted(lambda: _to_owned(unwrap(_call(given, what)), dtype, what))
    else:
        value = _to_owned(unwrap(given), dtype, what)
    if shape is None or isinstance(shape, Open):
        return value
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if None in sizes:
        raise ShapeError(
            f"The shape {sizes} of variable {name!r} has an unknown size, None: a variable has one "
            f"shape, which it keeps. Write the sizes, or leave `shape` out: it is {value.shape}."
        )
    return _broadcast(value, sizes, name)


def _call(given: Callable[[], Any], what: str) -> Any:
    try:
        return given()
    except TypeError as error:
        if takes(given, 0):
            raise
        raise TypeError(
            f"{what[0].upper()}{what[1:]} is computed by a function of no arguments, and this "
            f"{type(given).__name__} takes some ({error}). Call it with what it needs, like "
            "jv.Variable(lambda: initializer((2, 3)))."
        ) from None


def _to_owned(given: Any, dtype: Any, what: str) -> Array:
    """Return a value as a tensor, in memory that no other code can donate."""
    value = to_tensor(given, dtype, what=what)
    return value if is_host(given) else context.fresh(on_mesh(value))


def _broadcast(value: Array, shape: tuple[int, ...], name: str) -> Array:
    if not broadcasts(value.shape, shape):
        raise ShapeError(
            f"The initial value of variable {name!r} has shape {value.shape}, which does not "
            f"broadcast to the requested shape, {shape}."
        )
    return (np if isinstance(value, np.ndarray) else jnp).broadcast_to(value, shape).copy()

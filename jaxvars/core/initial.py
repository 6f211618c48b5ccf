"""The first value of a variable: what it may be made of, in memory that nothing else holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, final

import jax.numpy as jnp
import numpy as np

from jaxvars.advice import takes
from jaxvars.core.cells import Cell, FixedCell, Shapes
from jaxvars.core.frame import form_of
from jaxvars.core.frames import lifted
from jaxvars.errors import ShapeError, shown, string_in_program_error, user_line
from jaxvars.tensors.array_like import ArrayProxy, unwrap
from jaxvars.tensors.tensor import broadcasts, is_host, to_tensor
from jaxvars.tracing import context
from jaxvars.typing import Array, Value


class Places(NamedTuple):
    """Where variables are put: nowhere in particular, unless other places are plugged in.

    Attributes:
        put: returns a first value where it can be computed with.
        choose: returns the sharding of a variable, by the one requested, if any, its first value
            and its name.
        dump: returns a sharding as what can be pickled.
        load: returns the sharding that `dump` described.
    """

    put: Callable[[Array], Array] = lambda value: value
    choose: Callable[[Any, Array, str], Any] = lambda sharding, value, name: sharding
    dump: Callable[[Any], tuple[Any, ...] | None] = lambda sharding: None
    load: Callable[[tuple[Any, ...] | None], Any] = lambda dumped: None


PLACES: list[Places] = [Places()]
"""The one in use."""


@final
class HostCell(FixedCell):
    """A cell whose values are on the host, as strings are, which no program of JAX has."""

    __slots__ = ()

    def check_staged(self) -> None:
        """Refuse."""
        raise string_in_program_error(self)


def make_cell(
    owner: object, value: Array | np.ndarray, name: str, sharding: Any, shape: Any
) -> Cell:
    """Return the cell of a variable with this first value, and this `shape` argument."""
    on_host = isinstance(value, np.ndarray)
    sharding = None if on_host else PLACES[0].choose(sharding, value, name)
    given = owner, form_of(value), name, sharding
    if isinstance(shape, Shapes):
        return shape.make_cell(*given)
    return HostCell(*given) if on_host else FixedCell(*given)


def check_arguments(name: Any, initial_value: Any, more: tuple[Any, ...]) -> None:
    if not isinstance(name, str | None):
        raise TypeError(f"The name of a variable is a string, not {name!r}.")
    if more:
        n, cure = 1 + len(more), _as_one(initial_value, more)
        raise shown(TypeError(f"A variable has one value; {n} are given at {user_line()}. {cure}"))


def _as_one(first: Any, more: tuple[Any, ...]) -> str:
    """Return what to write instead of several values."""
    values = (first, *more)
    if all(type(value) in (list, tuple, int, float, complex) for value in values):
        return f"Write one list: jv.Variable([{', '.join(map(repr, values))}])."
    keyword = {bool: "trainable=", str: "name="}.get(type(more[0]), "dtype=")
    return f"Everything else is named, like jv.Variable(value, {keyword}...)."


def initial(
    given: Any, dtype: Any, shape: int | tuple[int, ...] | Shapes | None, name: str
) -> Value:
    """Return the first value, in memory that nothing else holds."""
    what = f"the initial value of variable {name!r}"
    if callable(given) and not isinstance(given, ArrayProxy):
        value = lifted(lambda: _to_owned(unwrap(_call(given, what)), dtype, what))
    else:
        value = _to_owned(unwrap(given), dtype, what)
    if shape is None or isinstance(shape, Shapes):
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


def _to_owned(given: Any, dtype: Any, what: str) -> Value:
    """Return a value as a tensor, in memory that no other code can donate."""
    value = to_tensor(given, dtype, what=what)
    return value if is_host(given) else context.fresh(PLACES[0].put(value))


def _broadcast(value: Value, shape: tuple[int, ...], name: str) -> Value:
    if not broadcasts(value.shape, shape):
        raise ShapeError(
            f"The initial value of variable {name!r} has shape {value.shape}, which does not "
            f"broadcast to the requested shape, {shape}."
        )
    return (np if isinstance(value, np.ndarray) else jnp).broadcast_to(value, shape).copy()

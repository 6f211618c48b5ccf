"""What random functions are given: seeds, shapes, dtypes and parameters, checked.

Rules this file keeps:
- a Python integer is a seed by its 64 bits, whether JAX has 64-bit numbers on or off;
- a parameter broadcasts to the shape, never the other way round, for then one random number would
  be used twice;
- what is only known when a program runs is taken as it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.errors import DtypeError, ShapeError
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.dtypes import as_dtype, is_key
from jaxvars.tensors.tensor import refuse_masked
from jaxvars.tracing import context
from jaxvars.tracing.guards import ask
from jaxvars.typing import Array, DTypeLike, Value

Shape: TypeAlias = int | Sequence[int] | Any

IMPL = "threefry2x32"
_MASK = 0xFFFFFFFF
_SEED_CURE = "A seed is an integer, a pair of them like [1, 2], or a key of jax.random."


@context.restoring()
def key_of(seed: Any) -> Array:
    """Return the key of a seed: an integer, two of 32 bits, a key, or a function that gives one.

    >>> bool(key_of(7) == jax.random.key(7)), bool(key_of([0, 7]) == jax.random.key(7))
    (True, True)
    """
    seed = unwrap(seed() if callable(seed) else seed)
    if isinstance(seed, jax.Array) and is_key(seed):
        if seed.shape:
            raise ShapeError(
                f"A seed is one key, not keys of shape {seed.shape}: take one of them."
            )
        return seed
    return jax.random.wrap_key_data(words_of(seed), impl=IMPL)


def words_of(seed: Any) -> Value:
    if context.is_tracer(seed):
        return _split_traced(seed)
    refuse_masked([seed], "a seed")
    numbers = np.asarray(seed)
    if numbers.dtype.kind == "O" and not numbers.shape and isinstance(seed, int):
        raise ValueError(f"The seed {seed} has more than 64 bits. {_SEED_CURE}")
    if numbers.dtype.kind not in "iu" or numbers.shape not in ((), (2,)):
        raise TypeError(f"{seed!r} is not a seed. {_SEED_CURE}")
    if not numbers.shape:
        number = int(numbers)
        return np.array([number >> 32 & _MASK, number & _MASK], np.uint32)
    pair = [int(x) for x in numbers]
    if not all(-(2**31) <= x < 2**32 for x in pair):
        raise ValueError(f"The seed {pair} has numbers of more than 32 bits. {_SEED_CURE}")
    return np.array([x & _MASK for x in pair], np.uint32)


def _split_traced(seed: Array) -> Array:
    if not jnp.issubdtype(seed.dtype, jnp.integer) or seed.shape not in ((), (2,)):
        raise TypeError(f"{seed.dtype}{list(seed.shape)} is not a seed. {_SEED_CURE}")
    if seed.shape:
        return seed.astype(jnp.uint32)
    is_wide = seed.dtype.itemsize == 8
    high = seed >> 32 if is_wide else jnp.where(seed < 0, np.uint32(_MASK), np.uint32(0))
    return jnp.stack([high.astype(jnp.uint32), seed.astype(jnp.uint32)])


def as_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of Python integers; raise ShapeError where it is not known."""
    shape = unwrap(shape)
    if any(map(context.is_tracer, jax.tree.leaves(shape))):
        raise ShapeError(
            f"The shape {shape} is only known when the compiled function runs, and a program has "
            "fixed shapes. Use x.shape, or name the argument in static_argnames."
        )
    try:
        sizes = (shape,) if np.ndim(shape) == 0 else tuple(shape)
        found = tuple(map(operator.index, sizes))
    except (TypeError, ValueError):
        if (open_shape := _as_open_shape(shape)) is not None:
            return open_shape
        if is_key(shape):
            raise ShapeError(
                "The first argument is a shape, not a key: functions of jv.random draw from a "
                "generator, jv.random.normal((2, 3)). jax.random.normal(key, (2, 3)) takes a key."
            ) from None
        raise ShapeError(f"{shape!r} is not a shape: write integers, for example (2, 3).") from None
    if any(size < 0 for size in found):
        raise ShapeError(f"The shape {found} has a negative size.")
    return found


def _as_open_shape(shape: Any) -> tuple[int, ...] | None:
    """Return a shape in which some sizes are symbols, as in a program to be saved."""
    from jax import export

    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    known = [isinstance(size, int) or export.is_symbolic_dim(size) for size in sizes]
    return tuple(sizes) if all(known) else None


def check_dtype(dtype: DTypeLike | None, kind: Any, what: str, example: str) -> Any:
    found = as_dtype(dtype)
    if not jnp.issubdtype(found, kind):
        raise DtypeError(f"{what} cannot have dtype {found}. Ask for another, like {example}.")
    return found


def floating(dtype: DTypeLike | None, what: str) -> Any:
    return check_dtype(dtype, jnp.floating, what, "jnp.float32")


def check_fit(shape: tuple[int, ...], **parameters: Any) -> list[Array]:
    """Return parameters as plain values, if each broadcasts to the shape."""
    values = {name: unwrap(value) for name, value in parameters.items()}
    for name, value in values.items():
        own = np.shape(value)
        try:
            fits = jnp.broadcast_shapes(own, shape) == shape  # jnp's knows unknown dimensions
        except ValueError:
            fits = False
        if not fits:
            raise ShapeError(
                f"{name} of shape {own} does not broadcast to the shape {shape} that was asked "
                f"for. The shape is that of the whole result, for example {(*shape, *own)}."
            )
    return list(values.values())


def numbers(dtype: DTypeLike | None, values: Sequence[Array]) -> list[Array]:
    ask("Random values are drawn")
    return [jnp.asarray(value).astype(dtype) for value in values]


def unseen(draw: Callable[[], Any]) -> Any:
    """Draw without a tape taking note of it."""
    return context.unseen(draw, "Random values are drawn")


def is_number(value: Any, number: int) -> bool:
    return isinstance(value, int | float) and value == number


def known(*values: Array) -> bool:
    return not any(map(context.is_tracer, values))


def check_range(low: Array, high: Array, dtype: DTypeLike | None) -> None:
    if any(jnp.issubdtype(jnp.result_type(x), jnp.inexact) for x in (low, high)):
        raise DtypeError(f"The range of {dtype} values is given by integers, not {low} and {high}.")
    if not known(low, high):
        return
    if np.any(np.asarray(low) >= np.asarray(high)):
        raise ValueError(f"No integer exists from minval {low} to maxval {high}, exclusive.")
    info: Any = jnp.iinfo(dtype)
    if np.any(np.asarray(low) < info.min) or np.any(np.asarray(high) > int(info.max) + 1):
        raise DtypeError(f"{dtype} does not reach from {low} to {high}: ask for a wider dtype.")


def check_probability(p: Array, name: str) -> None:
    if known(p) and not np.all((np.asarray(p) >= 0) & (np.asarray(p) <= 1)):
        raise ValueError(f"{name} is a probability, from 0 to 1, not {p}.")

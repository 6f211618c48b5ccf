"""What all initializers share: how they are called, their configuration.

Rules this file keeps:
- an initializer is a value: its attributes are its arguments, and two with the same are equal;
- shape and dtype are checked before anything is drawn.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.display.docstrings import complete
from jaxvars.display.text import did_you_mean
from jaxvars.random import Generator, get_global_generator
from jaxvars.random.seeds import Shape, as_shape, key_of, unseen
from jaxvars.tensors.dtypes import as_dtype
from jaxvars.tracing import context
from jaxvars.tracing.fork import refuse_if_forked
from jaxvars.tracing.identity import told_by_pickle
from jaxvars.typing import Array, DTypeLike

Sizes: TypeAlias = tuple[int, ...]


class Initializer(ABC):
    """The base of initializers: called with a shape, they give the first value of a variable."""

    def __init_subclass__(cls) -> None:
        told_by_pickle(cls)

    @context.restoring()
    def __call__(self, shape: Shape, dtype: DTypeLike | None = None) -> Array:
        """Return a value.

        Args:
            shape: integers.
            dtype: float32 when None.

        Raises:
            ShapeError: when the shape is none, or none that the initializer has a value for.
            DtypeError: when it has no values of that dtype.
        """
        refuse_if_forked("An initial value is made")
        kind = as_dtype("float32" if dtype is None else dtype)
        return self._make(as_shape(shape), kind)

    @abstractmethod
    def _make(self, shape: Sizes, dtype: Any) -> Array:
        """Return a value of a shape and dtype."""

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """Return the initializer with these arguments."""
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Initializer) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (type(self), *map(_freeze, vars(self).values()))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({arguments})"


def _freeze(value: Any) -> Any:
    """Return what an argument is compared by: of an array its numbers."""
    if isinstance(value, list | tuple):
        return tuple(map(_freeze, value))
    if not isinstance(value, jax.Array) or context.is_tracer(value):
        return value
    is_key = jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    numbers = np.asarray(jax.random.key_data(value) if is_key else value)
    return str(value.dtype), numbers.shape, numbers.tobytes()


class Random(Initializer):
    """An initializer that draws random values, from `seed` or from the global generator."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__doc__:
            complete(cls, {"seed": "as for `RandomNormal`."})

    def __init__(self, seed: Any = None) -> None:
        self.seed = seed

    def _draw(self, draw: Callable[[Array], Array], shape: Sizes, dtype: Any) -> Array:
        """Return what `draw` makes of a key, as a value of a shape and dtype."""
        key = unseen(lambda: key_of(self._source()))
        if not math.prod(shape):  # which JAX cannot draw
            return jnp.zeros(shape, dtype)
        return unseen(lambda: draw(key)).reshape(shape).astype(dtype)

    def _source(self) -> Any:
        """Return a seed, or what gives one."""
        if self.seed is None:
            return get_global_generator().next_key
        return self.seed.next_key if isinstance(self.seed, Generator) else self.seed


def one_of(name: str, what: str, known: tuple[str, ...]) -> str:
    """Return a name if it is one of those known; raise ValueError with the nearest otherwise."""
    if name in known:
        return name
    hint = did_you_mean(str(name), known) or f" There are: {', '.join(known)}."
    raise ValueError(f"There is no {what} {name!r}.{hint}")

"""How a class of linear operators is declared: its hints, its parameters, what it is for JAX.

Rules this file keeps:
- flattened, an operator is its tensors; what is left counts for the signature of a `tf.function`;
- a parameter that is a variable stays one, in compiled functions, too.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import numpy as np

from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.tf.attributes import getter
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import DType, as_dtype
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.module import Module
from jaxvars.tf.variables.variable import Variable, face_of
from jaxvars.typing import Array

Hint: TypeAlias = bool | None
Hints: TypeAlias = dict[str, Any]

HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")
_ARGUMENTS = {  # their types, and what they are
    "is_non_singular": ("Hint", "whether it has an inverse."),
    "is_self_adjoint": ("Hint", "whether it equals its adjoint."),
    "is_positive_definite": ("Hint", "whether it is positive definite."),
    "is_square": ("Hint", "whether it has as many rows as columns."),
    "assert_proper_shapes": ("bool", "accepted; shapes are always checked."),
    "name": ("str | None", "what it is called."),
}


def accept_hints(**defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a constructor: its `**hints` become arguments, which may be given by position.

    Args:
        defaults: those of the hints that are not None, and that of the name if it is not the name
            of the class.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function)
        own = list(signature.parameters.values())[:-1]
        name = {"name": function.__qualname__.partition(".")[0]}
        given: dict[str, Any] = dict.fromkeys(HINTS) | name | defaults
        more = [
            inspect.Parameter(name, own[0].kind, default=given[name], annotation=kind)
            for name, (kind, _) in _ARGUMENTS.items()
            if name in given
        ]
        signature = signature.replace(parameters=[*own, *more])

        @functools.wraps(function)
        def start(*args: Any, **kwargs: Any) -> None:
            found = signature.bind(*args, **kwargs)
            found.apply_defaults()
            function(**found.arguments)

        vars(start)["__signature__"] = signature
        return start

    return decorate


def document(kind: type) -> None:
    """Add the hints to the arguments in a class's docstring, but those it has itself."""
    head, end, rest = inspect.cleandoc(kind.__doc__ or "").partition("\n\nRaises:")
    others: list[str] = []
    documented: dict[str, str] = {}
    for line in head.split("\n"):
        name = line.strip().partition(":")[0]
        if name in _ARGUMENTS:
            documented[name] = line
        else:
            others.append(line)
    names = [name for name in inspect.signature(kind).parameters if name in _ARGUMENTS]
    lines = [documented.get(name, f"    {name}: {_ARGUMENTS[name][1]}") for name in names]
    kind.__doc__ = "\n".join([*others, *lines]) + end + rest


def always(hint: Hint, message: str) -> bool:
    """Return True; raise ValueError if a hint is False."""
    if hint is False:
        raise ValueError(message)
    return True


def imply(hints: Hints, name: str, message: str) -> None:
    """Make a hint True; raise ValueError if it is False."""
    hints[name] = always(hints[name], message)


C = TypeVar("C", bound=type)

_CLASSES: set[type] = set()


class _Rest(NamedTuple):
    """What is static of an operator: its class, the names of its tensors, and other attributes."""

    kind: type
    names: tuple[str, ...]
    others: tuple[tuple[str, Any], ...]


def parameter(value: Any, dtype: Any = None) -> Any:
    """Return a parameter: a variable as it is, something else as a tensor."""
    if isinstance(value, Variable):
        return value
    return Tensor(array_of(value, None if dtype is None else as_dtype(dtype)))


def array_of(value: Any, dtype: DType | None = None) -> Array:
    """Return the array of a parameter, an argument or a result, of a type if it has none."""
    return value if isinstance(value, jax.Array) else to_array(value, hint=dtype)


def square_shape(value: Any) -> tuple[int, ...]:
    """Return the shape of the square matrices that a parameter gives a row each."""
    sizes = tuple(value.shape.as_list())
    return (*sizes, sizes[-1])


def parameters(operator: Any) -> dict[str, Any]:
    """Return the arguments that an operator was made of, by name."""
    names = list(inspect.signature(type(operator).__init__).parameters)[1:]
    return {name: getattr(operator, f"_{name}", None) for name in names}


def register(kind: C) -> C:
    """Decorate a class of operators: its docs have the hints, compiled functions take it apart."""
    document(kind)
    _CLASSES.add(kind)
    jax.tree_util.register_pytree_node(kind, _flatten, _unflatten)
    return kind


def _flatten(operator: Any) -> tuple[tuple[Any, ...], _Rest]:
    found = vars(operator)
    names = found.get("_changing")  # what stands for tensors may be anything while JAX looks at it
    if names is None:
        names = tuple(name for name in sorted(found) if _is_changing(found[name]))
    rest = sorted(found.keys() - {*names, "_changing", "_name_scope"})  # those of no matter
    others = tuple((name, found[name]) for name in rest)
    return tuple(_outside(found[name]) for name in names), _Rest(type(operator), names, others)


def _unflatten(rest: _Rest, children: Any) -> Any:
    made = object.__new__(rest.kind)
    vars(made).update(rest.others, _changing=rest.names)
    values = map(_inside, children)
    vars(made).update(zip(rest.names, values, strict=True))
    return made


def _is_changing(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_changing, value))
    return type(value) in _CLASSES or isinstance(
        value, Tensor | Variable | CoreVariable | jax.Array | np.ndarray
    )


def _outside(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_outside, value))
    if isinstance(value, Variable):
        return value.aliased
    return value._array if isinstance(value, Tensor) else value


def _inside(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_inside, value))
    if isinstance(value, CoreVariable):
        return face_of(value)
    return Tensor(value) if isinstance(value, jax.Array | np.ndarray) else value


class Described(Module, ABC):
    """What is known of an operator without its elements."""

    _dtype: Any
    _is_square: Hint

    @abstractmethod
    def _shape(self) -> Any:
        """Return the shape: (..., m, n)."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape as numbers."""
        return tuple(int(size or 0) for size in self.shape)

    dtype = getter("_dtype", "The type of the elements.")

    @property
    def parameters(self) -> dict[str, Any]:
        """What it was made of, by the names of the arguments."""
        return parameters(self)

    @property
    def graph_parents(self) -> list[Any]:
        """An empty list: there is no graph."""
        return []

    @property
    def shape(self) -> TensorShape:
        """The shape of the dense matrix."""
        return TensorShape(self._shape())

    @property
    def batch_shape(self) -> TensorShape:
        """The shape without the last two axes."""
        return self.shape[:-2]

    @property
    def tensor_rank(self) -> int:
        """The number of axes."""
        return len(self.sizes)

    @property
    def domain_dimension(self) -> int:
        """The size of what it is applied to."""
        return self.sizes[-1]

    @property
    def range_dimension(self) -> int:
        """The size of what comes out."""
        return self.sizes[-2]

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """Return `shape` as a tensor."""
        return Tensor(np.asarray(self.sizes, np.int32))

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """Return `batch_shape` as a tensor."""
        return Tensor(np.asarray(self.sizes[:-2], np.int32))

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """Return `tensor_rank` as a tensor."""
        return Tensor(np.asarray(self.tensor_rank, np.int32))

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """Return `domain_dimension` as a tensor."""
        return Tensor(np.asarray(self.domain_dimension, np.int32))

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """Return `range_dimension` as a tensor."""
        return Tensor(np.asarray(self.range_dimension, np.int32))

    is_non_singular = getter(
        "_is_non_singular", "Whether it has an inverse; None when that is not known."
    )
    is_self_adjoint = getter(
        "_is_self_adjoint", "Whether it equals its adjoint; None when that is not known."
    )
    is_positive_definite = getter(
        "_is_positive_definite", "Whether it is positive definite; None when that is not known."
    )

    @property
    def is_square(self) -> Hint:
        """Whether it has as many rows as columns.

        Raises:
            ValueError: when the hint contradicts it.
        """
        found = self.domain_dimension == self.range_dimension
        if self._is_square is not None and self._is_square != found:
            raise ValueError(
                f"User set is_square hint to {self._is_square}, but the operator was {found}."
            )
        return found

    def _hints(self) -> dict[str, Hint]:
        """Return the hints, but whether it is square, for an operator made of this one."""
        return {name: getattr(self, name) for name in HINTS[:3]}

"""`tf.types.experimental`: what functions and arguments are, for `isinstance` and annotations."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from jaxvars.objects.identity import told_by_equality
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable

TensorLike: TypeAlias = (
    Tensor | Variable | int | float | bool | str | bytes | complex
    | tuple | list  # pyright: ignore[reportMissingTypeArgument] - for isinstance, without arguments
    | np.ndarray | np.generic
)  # fmt: skip

FunctionType = inspect.Signature


class TraceType(ABC):
    """What a call of a `tf.function` is compiled for: calls of equal types share a program.

    An object gives its type by a method `__tf_tracing_type__(self, context)`; the body sees what
    `placeholder_value` returns.

    >>> from jaxvars import tf
    >>> class Kind(tf.types.experimental.TraceType):
    ...     def __init__(self, fruit):
    ...         self.fruit = fruit
    ...
    ...     def is_subtype_of(self, other):
    ...         return self == other
    ...
    ...     def most_specific_common_supertype(self, others):
    ...         return self if all(self == other for other in others) else None
    ...
    ...     def placeholder_value(self, placeholder_context):
    ...         return self.fruit
    ...
    ...     def __eq__(self, other):
    ...         return isinstance(other, Kind) and type(other.fruit) is type(self.fruit)
    ...
    ...     def __hash__(self):
    ...         return hash(type(self.fruit))
    >>> class Fruit:
    ...     def __tf_tracing_type__(self, context):
    ...         return Kind(self)
    >>> @tf.function
    ... def price(fruit):
    ...     return tf.constant(2)
    >>> price(Fruit()), price(Fruit()), price.experimental_get_tracing_count()
    (<tf.Tensor: shape=(), dtype=int32, numpy=2>, <tf.Tensor: shape=(), dtype=int32, numpy=2>, 1)

    Differs from TensorFlow: a program is used again for an equal type, not for a subtype.
    """

    def __init_subclass__(cls) -> None:
        told_by_equality(cls)

    @abstractmethod
    def is_subtype_of(self, other: TraceType) -> bool:
        """Return whether each value of this type is one of another, too."""

    @abstractmethod
    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TraceType | None:
        """Return the narrowest type of which this one and others are subtypes; None if none is."""

    @abstractmethod
    def placeholder_value(self, placeholder_context: Any) -> Any:
        """Return what the body of a function sees in place of a value of this type."""

    @abstractmethod
    def __eq__(self, other: object) -> bool: ...

    @abstractmethod
    def __hash__(self) -> int: ...


@runtime_checkable
class SupportsTracingProtocol(Protocol):
    """An object that specifies its `TraceType`."""

    def __tf_tracing_type__(self, context: Any) -> TraceType:
        """Return the type."""
        ...


class Callable(ABC):
    """What can be called with tensors: a `tf.function`, or a program of one."""

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""


class ConcreteFunction(Callable):
    """A program for one signature, as `get_concrete_function` returns it."""


class AtomicFunction(Callable):
    """A program that cannot be differentiated: there are none."""


class PolymorphicFunction(Callable):
    """What `tf.function` returns."""

    @abstractmethod
    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the program for one signature."""


GenericFunction = PolymorphicFunction

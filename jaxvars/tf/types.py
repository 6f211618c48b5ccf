"""`tf.types`: what functions and arguments are."""

from __future__ import annotations

from jaxvars.tf import _types_experimental as experimental
from jaxvars.tf._concrete_function import ConcreteFunction
from jaxvars.tf._function import BoundFunction, Function
from jaxvars.tf._listing import lister

__all__ = ["experimental"]

experimental.ConcreteFunction.register(ConcreteFunction)
experimental.PolymorphicFunction.register(Function)
experimental.PolymorphicFunction.register(BoundFunction)


__dir__ = lister(__name__)

"""`tf.types`: what functions and arguments are."""

from __future__ import annotations

from jaxvars.tf.functions import protocols as experimental
from jaxvars.tf.functions.concrete_function import ConcreteFunction
from jaxvars.tf.functions.function import BoundFunction, Function
from jaxvars.tf.listing import lister

__all__ = ["experimental"]

experimental.ConcreteFunction.register(ConcreteFunction)
experimental.PolymorphicFunction.register(Function)
experimental.PolymorphicFunction.register(BoundFunction)


__dir__ = lister(__name__)

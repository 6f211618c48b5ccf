"""jaxvars: TensorFlow 2's variable programming model for JAX."""

from __future__ import annotations

from jaxvars._compile import compile as compile
from jaxvars._compile import run_eagerly as run_eagerly
from jaxvars._module import Module as Module
from jaxvars._state import State as State
from jaxvars._state import functionalize as functionalize
from jaxvars._tape import ForwardAccumulator as ForwardAccumulator
from jaxvars._tape import GradientTape as GradientTape
from jaxvars._tape import UnconnectedGradients as UnconnectedGradients
from jaxvars._tape import custom_gradient as custom_gradient
from jaxvars._tape import recompute_grad as recompute_grad
from jaxvars._tape import stop_gradient as stop_gradient
from jaxvars._tensor import TensorSpec as TensorSpec
from jaxvars._placement import device as device
from jaxvars._variable import Variable as Variable
from jaxvars._variable import name_scope as name_scope

"""`tf.autodiff`: derivatives, backward and forward."""

from __future__ import annotations

from jaxvars.tf.autodiff.tape import ForwardAccumulator as ForwardAccumulator
from jaxvars.tf.autodiff.tape import GradientTape as GradientTape
from jaxvars.tf.listing import lister

__dir__ = lister(__name__)

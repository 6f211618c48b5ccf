"""Operations of networks that TensorFlow has at the top level only."""

from __future__ import annotations

from jaxvars.tf.nn import morphology as _nn_morphology
from jaxvars.tf.registry.rows import operations

ROWS = _nn_morphology.SPACE

__getattr__ = operations(__name__, ROWS, space="")

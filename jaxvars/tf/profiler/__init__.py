"""`tf.profiler`: where the time goes, over `jax.profiler`."""

from __future__ import annotations

from jaxvars.tf.listing import namespace
from jaxvars.tf.profiler import experimental as experimental

__getattr__, __dir__ = namespace(__name__)

"""`tf.profiler`: where the time goes, over `jax.profiler`."""

from __future__ import annotations

from jaxvars.tf.listing import namespace
from jaxvars.tf.profiler import experimental as experimental

__all__ = ["experimental"]


_ABSENT = dict.fromkeys(
    ["ProfileOptionBuilder", "Profiler", "advise", "profile"],
    "there is tf.profiler.experimental; jv.profiler.profile shows where the time of a step goes",
)

__getattr__, __dir__ = namespace(__name__, _ABSENT)

"""`tf.profiler`: where the time goes, over `jax.profiler`."""

from __future__ import annotations

from typing import NoReturn

from jaxvars.tf.listing import lister
from jaxvars.tf.profiler import experimental as experimental

__all__ = ["experimental"]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"tf.profiler has no attribute {name!r}. There is tf.profiler.experimental; "
        "jv.profiler.profile shows where the time of a step goes."
    )


__dir__ = lister(__name__)

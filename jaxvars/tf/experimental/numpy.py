"""`tf.experimental.numpy`: the functions of `jax.numpy`, which take and give Tensors.

    import jaxvars.tf.experimental.numpy as tnp

    tnp.sum(tnp.ones((2, 3)), axis=0)

What they take, their types and their derivatives are those of `jax.numpy`: int32 and float32 make
float32, where NumPy makes float64; a list is not taken where `jax.numpy` takes arrays alone.
"""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.display.strings import did_you_mean
from jaxvars.tf import nest
from jaxvars.tf.experimental import numpy_random as _numpy_random
from jaxvars.tf.experimental.numpy_semantics import (
    experimental_enable_numpy_behavior as experimental_enable_numpy_behavior,
)
from jaxvars.tf.experimental.numpy_semantics import plain
from jaxvars.tf.listing import lister
from jaxvars.tf.tensors.tensor import Tensor, wrap

ndarray = Tensor
random = _numpy_random
newaxis = None


@functools.cache
def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    scalar = getattr(np, name, None)
    if isinstance(scalar, type) and issubclass(scalar, np.generic):
        return scalar
    found = getattr(jnp, name, None)
    if found is None:
        hint = did_you_mean(name, dir(jnp))
        raise AttributeError(f"tf.experimental.numpy has no attribute {name!r}.{hint}")
    if not callable(found):
        return found

    @functools.wraps(found)
    def call(*args: Any, **kwargs: Any) -> Any:
        listed, named = nest.map_structure(plain, (list(args), kwargs))
        return wrap(found(*listed, **named))

    return call


__dir__ = lister(__name__)

"""`tf.experimental.numpy`: NumPy's names, those of `jax.numpy`, with Tensors as results.

    import jaxvars.tf.experimental.numpy as tnp

    tnp.sum(tnp.ones((2, 3)), axis=0)

Rules this file keeps:
- nothing is written here: each function is that of `jax.numpy`, which takes and gives Tensors.

Differs from TensorFlow: the types of results are JAX's: int32 with float32 gives float32, as does
the mean of int32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars._display import did_you_mean
from jaxvars.tf import nest
from jaxvars.tf._dtypes import DType
from jaxvars.tf._tensor import Tensor, TensorLike, wrap

ndarray = Tensor
newaxis = None

_REFUSED = {
    "random": "Use tf.random.",
    "experimental_enable_numpy_behavior": (
        "Tensors have no methods of NumPy: write jnp.asarray(x).T, or tnp.transpose(x)."
    ),
}
_MADE: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    if name in _MADE:
        return _MADE[name]
    if name.startswith("_"):
        raise AttributeError(name)
    found = getattr(np, name, None)
    if isinstance(found, type) and issubclass(found, np.generic):
        return found
    found = getattr(jnp, name, None)
    if found is None or name in _REFUSED:
        words = _REFUSED.get(name) or did_you_mean(name, dir(jnp))
        raise AttributeError(
            f"tf.experimental.numpy has no attribute {name!r}.{words and ' ' + words}"
        )
    if callable(found):
        _MADE[name] = found = _with_tensors(found)
    return found


def _with_tensors(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of `jax.numpy` that takes and gives Tensors."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = nest.map_structure(_plain, (list(args), kwargs))
        return wrap(func(*given[0], **given[1]))

    return wrapped


def _plain(value: Any) -> Any:
    if isinstance(value, TensorLike):
        return jnp.asarray(value)
    return value.dtype if isinstance(value, DType) else value

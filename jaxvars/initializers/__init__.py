"""First values for variables: zeros, ones, random ones whose variance suits the layer.

    init = jv.initializers.GlorotUniform(seed=7)
    w = jv.Variable(init((64, 10)))
    w = jv.Variable(lambda: init((64, 10)))      # also on a compiled function's first call

The names and arguments are Keras's, each also in small letters (`glorot_uniform`); `get` finds one
by name. The values are those of `jax.nn.initializers`.

Rules this file keeps:
- with an integer as seed each call gives the same values; without one they are drawn from
  the global generator, and with a `Generator` from that, so that each call gives others.

>>> init = he_normal(seed=7)
>>> init((3, 4)).tolist() == get("he_normal", seed=7)((3, 4)).tolist()
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jaxvars.display.lookup import find, namespace
from jaxvars.initializers.constant import Constant, Identity, Ones, Zeros
from jaxvars.initializers.initializer import (
    GlorotNormal,
    GlorotUniform,
    HeNormal,
    HeUniform,
    Initializer,
    LecunNormal,
    LecunUniform,
    Orthogonal,
    RandomNormal,
    RandomUniform,
    TruncatedNormal,
    VarianceScaling,
)
from jaxvars.typing import Array

__all__ = [
    "Constant", "GlorotNormal", "GlorotUniform", "HeNormal", "HeUniform", "Identity",
    "Initializer", "LecunNormal", "LecunUniform", "Ones", "Orthogonal", "RandomNormal",
    "RandomUniform", "TruncatedNormal", "VarianceScaling", "Zeros", "constant", "get",
    "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "identity", "lecun_normal",
    "lecun_uniform", "ones", "orthogonal", "random_normal", "random_uniform",
    "truncated_normal", "variance_scaling", "zeros",
]  # fmt: skip

zeros, ones, constant, identity = Zeros, Ones, Constant, Identity
random_normal, truncated_normal, random_uniform = RandomNormal, TruncatedNormal, RandomUniform
orthogonal, variance_scaling = Orthogonal, VarianceScaling
glorot_normal, glorot_uniform = GlorotNormal, GlorotUniform
he_normal, he_uniform = HeNormal, HeUniform
lecun_normal, lecun_uniform = LecunNormal, LecunUniform

_BY_NAME: dict[str, type[Initializer]] = {
    name: globals()[name] for name in __all__ if name not in ("Initializer", "get")
}
_LOWER = {name: thing for name, thing in _BY_NAME.items() if name.islower()}
_SHORT = {"normal": RandomNormal, "uniform": RandomUniform, "zero": Zeros, "one": Ones}


def get(identifier: Any, **config: Any) -> Callable[..., Array] | None:
    """Return an initializer by name.

    Args:
        identifier: a name like "glorot_uniform" or "GlorotUniform", an initializer, its class, a
            function of shape and dtype, a dict of "class_name" and "config", or None for None.
        **config: arguments for the class.

    Raises:
        ValueError: when there is none of that name, with the nearest.
        TypeError: when the identifier is something else, or the initializer takes no such argument.

    >>> get("he_normal", seed=7)
    HeNormal(seed=7)
    >>> get({"class_name": "Constant", "config": {"value": 2.0}})
    Constant(value=2.0)
    """
    return find(
        identifier, Initializer, "initializer", _LOWER, {**_SHORT, **_BY_NAME},
        like='"glorot_uniform", or a function of shape and dtype', **config,
    )  # fmt: skip


if not TYPE_CHECKING:  # a checker would take any name for an attribute
    __getattr__, __dir__ = namespace(__name__, __all__)

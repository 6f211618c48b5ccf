"""What turns the core's losses, metrics and optimizers into TensorFlow's.

Rules this file keeps:
- what goes in becomes arrays by TensorFlow's rules (Python's floats are float32), and what comes
  out is Tensors;
- a class here is made when it is first requested, and stands for one of the core's.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from jaxvars.tf import nest
from jaxvars.tf.keras.adapter.logits import by_logits
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import wrap


def array(value: Any) -> Any:
    """Return a tensor, number or list as an array; None as it is."""
    return None if value is None else to_array(value)


def arrays(value: Any) -> Any:
    """Return a structure with an array in place of each tensor."""
    return nest.map_structure(array, value)


_BROADCAST = frozenset(
    "hinge squared_hinge categorical_hinge kl_divergence poisson Hinge SquaredHinge "  # noqa: SIM905 - shorter
    "CategoricalHinge KLDivergence Poisson".split()
)
"""Functions and metrics, not losses, that compare (n,) and (n, 1) as (n, n), as Keras's do."""


def pair_of(name: str, y_true: Any, y_pred: Any) -> list[Any]:
    """Return labels and predictions as arrays, in the shapes that TensorFlow compares them in."""
    pair = [array(y_true), array(y_pred)]
    is_uneven = name in _BROADCAST and pair[0].ndim != pair[1].ndim
    return jnp.broadcast_arrays(*pair) if is_uneven else pair


def function_of(fn: Callable[..., Any], name: str, module: str) -> Callable[..., Any]:
    """Return a function of labels and predictions that takes and returns Tensors."""
    compute = by_logits(fn)

    @functools.wraps(fn)
    def call(y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
        return wrap(compute(*pair_of(name, y_true, y_pred), *args, **kwargs))

    call.__name__, call.__module__, call.__doc__ = name, module, _description(fn)
    return call


def class_of(core: type, base: type, module: str) -> type:
    """Return the class that stands for one of the core's, below a base that knows how."""
    space = {"made_of": by_logits(core), "__doc__": _description(core), "__module__": module}
    return type(core.__name__, (base,), space)


def _description(core: Any) -> str:
    """Return the docstring of something of the core's, without its examples, which have arrays."""
    parts = (core.__doc__ or "").split("\n\n")
    return "\n\n".join(part for part in parts if ">>>" not in part).rstrip() + "\n"


def made_of(thing: Any, name: str, base: type, module: str) -> Any:
    """Return the class or function that stands for one of the core's."""
    is_class = isinstance(thing, type)
    return class_of(thing, base, module) if is_class else function_of(thing, name, module)


def to_configuration(space: str, thing: Any) -> Any:
    """Return a configuration: Keras's name of a class and its arguments, or that of a function."""
    if isinstance(thing, types.FunctionType):
        return thing.__name__
    kind = type(thing)
    is_ours = kind.__module__.startswith("jaxvars.")
    return {
        "module": f"keras.{space}" if is_ours else kind.__module__,
        "class_name": kind.__name__,
        "config": thing.get_config(),
        "registered_name": None if is_ours else kind.__name__,
    }


def interpret(identifier: Any, known: Callable[[str], Any], what: str) -> Any:
    """Return what an identifier means: a name, a configuration, a class, or the thing itself.

    Args:
        identifier: any of these.
        known: returns the class or function of a name; None if there is none.
        what: a "metric", for messages.

    Raises:
        ValueError: for a name that is not known.
    """
    if not isinstance(identifier, str | dict):
        return identifier() if isinstance(identifier, type) else identifier
    name, config = named(identifier)
    thing = known(name)
    if thing is None:
        raise ValueError(f"Could not interpret {what} identifier: {identifier}")
    return thing.from_config(config) if isinstance(thing, type) else thing


def from_configuration(config: Any, custom_objects: Any, get: Callable[[Any], Any]) -> Any:
    """Return what a configuration describes: one of some classes, or what `get` makes of it."""
    name, arguments = named(config)
    mine = (custom_objects or {}).get(name)
    if mine is None:
        return get(config)
    return mine.from_config(arguments) if isinstance(config, dict) else mine


def named(config: Any) -> tuple[str, dict[str, Any]]:
    """Return the class name and the arguments of an identifier: a name, or a dict of both."""
    if isinstance(config, str):
        return config, {}
    return config["class_name"], dict(config.get("config", {}))

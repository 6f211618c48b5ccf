"""The namespaces of Keras as `tf.keras` has them; Keras is imported when a name is needed."""

from __future__ import annotations

import types
from typing import Any

from jaxvars.objects.interpreter import load

SPACES = tuple(
    "activations applications backend callbacks config constraints datasets distribution "  # noqa: SIM905 - shorter
    "dtype_policies export initializers layers legacy mixed_precision models ops "
    "optimizers.schedules preprocessing quantizers random regularizers saving tree utils "
    "visualization wrappers".split()
)


class Space(types.ModuleType):
    """A namespace of Keras whose layers, models and functions take and return Tensors.

    Args:
        path: its name behind `keras`: "layers", "optimizers.schedules".
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"jaxvars.tf.keras.{path}", f"`keras.{path}`, of Tensors.")
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        vars(self)[name] = made = find(f"{self._path}.{name}")
        return made

    def __dir__(self) -> list[str]:
        return dir(_bridge().of_keras(self._path))


def find(path: str) -> Any:
    """Return what `tf.keras` has under a name that is Keras's, like "layers.Dense".

    Raises:
        AttributeError: when there is nothing, or Keras is not installed.
    """
    try:
        return _bridge().find(path)
    except ImportError as error:
        raise AttributeError(f"tf.keras.{path}: {error}") from error


def _bridge() -> Any:
    return load(f"{__package__}.layer_bridge")  # which imports this file

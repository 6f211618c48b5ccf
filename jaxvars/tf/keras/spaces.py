"""The namespaces of Keras as `tf.keras` has them."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.keras.layer_bridge import handed_out


@functools.cache
def find(name: str) -> Any:
    """Return what Keras has under a name.

    Raises:
        AttributeError: when there is nothing.
    """
    thing = getattr(keras(), name)
    return Space(thing) if isinstance(thing, types.ModuleType) else handed_out(thing)


class Space(types.ModuleType):
    """A namespace of Keras whose layers, models and functions take and return Tensors."""

    def __init__(self, theirs: Any) -> None:
        name = f"jaxvars.tf.{theirs.__name__}"
        super().__init__(name, theirs.__doc__)
        self._theirs = theirs
        sys.modules.setdefault(name, self)

    def __getattr__(self, name: str) -> Any:
        thing = getattr(self._theirs, name)
        made = Space(thing) if isinstance(thing, types.ModuleType) else handed_out(thing)
        if not name.startswith("_"):
            vars(self)[name] = made
        return made

    def __dir__(self) -> list[str]:
        return dir(self._theirs)

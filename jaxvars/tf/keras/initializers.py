"""`tf.keras.initializers`: the initializers of `jaxvars.initializers`, which give Tensors.

Differs from TensorFlow: the values are those of `jax.random`. Without a seed each call draws
other values, which follow `tf.random.set_seed`.

>>> from jaxvars import tf
>>> tf.keras.initializers.Constant(3.0)((2,))
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 3.], dtype=float32)>
"""

from __future__ import annotations

from typing import Any

from jaxvars import initializers as _core
from jaxvars.tf.keras import backend as _backend
from jaxvars.tf.keras.adapter.facade import class_of, elsewhere, interpret, revived, serialized
from jaxvars.tf.listing import lister
from jaxvars.tf.random.draws import sizes
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.tensor import Tensor

_LONG = {"IdentityInitializer": "Identity", "OrthogonalInitializer": "Orthogonal"}
_SHORT = {"normal": "RandomNormal", "uniform": "RandomUniform", "zero": "Zeros", "one": "Ones"}
_KNOWN: dict[str, Any] = {
    **_core._BY_NAME, **{long: _core._BY_NAME[name] for long, name in _LONG.items()},
}  # fmt: skip


class Initializer:
    """The base of initializers: called with a shape, they give the first value of a variable."""

    made_of: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if self.made_of is not None:
            given = {k: _plain(x) for k, x in kwargs.items()}
            self._core = self.made_of(*map(_plain, args), **given)

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        """Return a value.

        Args:
            shape: of the value.
            dtype: that of `tf.keras.backend.floatx` when None.
            **kwargs: of no effect.
        """
        if self.made_of is None:
            raise NotImplementedError("An Initializer has a method __call__(self, shape, dtype).")
        kind = as_dtype(_backend.floatx() if dtype is None else dtype)
        return Tensor(self._core(sizes(shape), kind.dtype))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return {} if self.made_of is None else self._core.get_config()

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """Return the initializer with these arguments."""
        return cls(**config)

    def clone(self) -> Initializer:
        """Return another one with the same arguments."""
        return type(self).from_config(self.get_config())


def _plain(value: Any) -> Any:
    """Return an argument as the core takes it."""
    return to_array(value) if isinstance(value, Tensor) else value


def get(identifier: Any) -> Any:
    """Return an initializer by name, configuration, or as it is.

    >>> get("ones")((2,)).numpy().tolist()
    [1.0, 1.0]
    """
    return interpret(identifier, _class_of, "initializer")


def _class_of(name: str) -> Any:
    name = _SHORT.get(name, name)
    return __getattr__(name) if name in _KNOWN else None


def serialize(initializer: Any) -> Any:
    """Return a configuration from which `deserialize` makes the same initializer."""
    return serialized("initializers", initializer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """Return the initializer of a configuration."""
    return revived(config, custom_objects, get)


def __getattr__(name: str) -> Any:
    if name not in _KNOWN:
        return elsewhere("initializers", name, _KNOWN)
    thing = _KNOWN[name]
    made = globals().get(thing.__name__) or class_of(thing, Initializer, __name__)
    globals()[thing.__name__] = globals()[name] = made
    return made


__dir__ = lister(__name__, _KNOWN)

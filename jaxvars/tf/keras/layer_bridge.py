"""Layers and models of Keras that take and return Tensors: the classes that `tf.keras` returns.

For a class of Keras, `faced` makes one below it, and below those made for its bases, so that
`isinstance` says what TensorFlow does. Methods that the user writes get Tensors; those of Keras get
arrays (`adapter/semantics.py`).

Rules this file keeps:
- Keras's own classes are not changed, and a model of Keras's is never copied: `adopted` gives it,
  and the layers in it, the class made for theirs;
- what is saved is what Keras saves: its names and configurations.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, cast

from jaxvars.core.frames import LOCAL
from jaxvars.tf.keras.adapter import shared as _shared
from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.keras.adapter.semantics import PLACE, boxed, into_keras, of_user, unwrap
from jaxvars.tf.keras.metrics import Metric
from jaxvars.tf.keras.theirs import theirs
from jaxvars.tf.keras.training import Trained
from jaxvars.tracing.around import around

_BY_THE_USER = ("call", "build", "compute_loss", "compute_metrics", "train_step", "test_step")
_BY_KERAS = ("call", "compute_mask", "get_initial_state", "adapt")


class ArrayProxy:
    """What the classes of layers have in common: Tensors outside, arrays inside."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_of_keras" not in vars(cls):  # a class of the user's
            for name in (*_BY_THE_USER, "predict_step"):
                if callable(vars(cls).get(name)):
                    setattr(cls, name, of_user(vars(cls)[name]))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the layer: Tensors come out."""
        layer: Any = super()
        if LOCAL.frame is LOCAL.eager and not LOCAL.frame.observers:
            return into_keras(layer.__call__, args, kwargs)
        return around([_shared.scope], lambda: into_keras(layer.__call__, args, kwargs))

    def add_weight(self, *args: Any, **kwargs: Any) -> Any:
        """Make a variable of the layer."""
        layer: Any = super()
        made = layer.add_weight(*theirs(list(args)), **theirs(kwargs))
        if made._value is not None:
            _shared.shared(made)
        return made

    def add_loss(self, loss: Any) -> None:
        """Add a tensor to `losses`, in `call`."""
        layer: Any = super()
        layer.add_loss(unwrap(loss))
        if _shared.is_in_scope():  # which keeps losses, but not longer than it lasts
            this: Any = self
            this._losses.extend(keras().tree.flatten(unwrap(loss)))

    @property
    def losses(self) -> list[Any]:
        """The losses of the last call, and those of the weights."""
        layer: Any = super()
        return unwrap(layer.losses) if PLACE.is_in_keras else boxed(unwrap(layer.losses))

    @property
    def metrics(self) -> list[Any]:
        """The metrics of the layer, and of those in it: of Keras, and of `tf.keras`."""
        layer, this = cast(Any, super()), cast(Any, self)
        parts = [part for one in this._flatten_layers() for part in vars(one).values()]
        return [*layer.metrics, *(part for part in parts if isinstance(part, Metric))]


def is_layer(cls: Any) -> bool:
    """Return whether a class is one of layers of Keras."""
    return isinstance(cls, type) and issubclass(cls, keras().Layer)


@functools.cache
def faced(cls: Any) -> Any:
    """Return the class that stands for one of layers of Keras."""
    if issubclass(cls, ArrayProxy):
        return cls
    space = {"_of_keras": cls, "__doc__": cls.__doc__, "__module__": _home(cls)}
    for name in _BY_KERAS:
        if name in vars(cls):
            space[name] = _method(vars(cls)[name])
    if "__init__" in vars(cls):
        space["__init__"] = _initializer(cls)
    return types.new_class(cls.__name__, (*_bases(cls), cls), exec_body=lambda ns: ns.update(space))


def _bases(cls: Any) -> tuple[Any, ...]:
    if cls is keras().Layer:
        return (ArrayProxy,)
    above = tuple(faced(base) for base in cls.__bases__ if is_layer(base))
    return (Trained, *above) if cls is keras().Model else above


def _home(cls: Any) -> str:
    """Return the module that Keras looks for the class in."""
    for space in ("models", "layers"):
        if getattr(getattr(keras(), space), cls.__name__, None) is cls:
            return f"keras.{space}"
    return cls.__module__


def _method(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return into_keras(functools.partial(fn, self), args, kwargs)

    return call


def _initializer(cls: Any) -> Callable[..., None]:
    """Return an `__init__` that takes what belongs to `tf`, too."""
    is_model = cls is keras().Model

    @functools.wraps(cls.__init__)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        if is_model and _is_functional(args, kwargs) and not isinstance(self, _functional()):
            self.__class__ = _made_functional(type(self))
            self.__class__._of_graph(self, *args, **kwargs)
        else:
            cls.__init__(self, *theirs(list(args)), **theirs(kwargs))

    setattr(__init__, "__signature__", inspect.signature(cls.__init__))  # noqa: B010 - Keras reads it
    return __init__


def adopted(layer: Any) -> Any:
    """Give a layer, or model, of Keras and all that are in it the classes made for theirs."""
    if isinstance(layer, keras().Layer):
        for one in layer._flatten_layers():
            if not isinstance(one, ArrayProxy):
                one.__class__ = faced(type(one))
    return layer


# ---------------------------------------------------------------- models of inputs and outputs
def _functional() -> Any:
    """Return Keras's class of models that are made of inputs and outputs."""
    return _functional_class()


@functools.cache
def _functional_class() -> Any:
    x = keras().Input((1,))
    return type(keras().Model(x, x))


def _is_functional(args: Any, kwargs: Any) -> bool:
    """Return whether a model is made of inputs and outputs, by the arguments."""
    return len(args) >= 2 or (len(args) == 1 and "outputs" in kwargs) or (
        "inputs" in kwargs and "outputs" in kwargs
    )  # fmt: skip


@functools.cache
def _made_functional(cls: Any) -> Any:
    """Return the class of a model that is made of inputs and outputs."""
    graph = faced(_functional())

    def _of_graph(self: Any, *args: Any, **kwargs: Any) -> None:
        _functional().__init__(self, *args, **kwargs)
        adopted(self)

    if cls is faced(keras().Model):
        graph._of_graph = _of_graph
        return graph
    space = {"_of_keras": cls, "_of_graph": _of_graph, "__module__": cls.__module__}
    space["__qualname__"] = cls.__qualname__
    return types.new_class(cls.__name__, (cls, graph), exec_body=lambda ns: ns.update(space))


def handed_out(thing: Any) -> Any:
    """Return something of Keras as `tf.keras` has it."""
    if is_layer(thing):
        return faced(thing)
    if isinstance(thing, types.FunctionType):
        return _function(thing)
    return thing


def _function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of Keras that takes what belongs to `tf`, and makes what does."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return adopted(into_keras(fn, theirs(list(args)), theirs(kwargs)))

    return call

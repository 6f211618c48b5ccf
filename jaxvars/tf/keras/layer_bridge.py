"""What is Keras's, as `tf.keras` has it: classes, models and functions of Tensors.

For a class of Keras, `face_class` makes one below it, and below those made for its bases, so that
`isinstance` says what TensorFlow does. Methods that the user writes get Tensors; those of Keras get
arrays (`adapter/semantics.py`).

Rules this file keeps:
- Keras's own classes are not changed, and a model of Keras's is never copied: `adopt` gives it,
  and the layers in it, the class made for theirs;
- what is saved is what Keras saves: its names and configurations.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
import sys
import types
from collections.abc import Callable
from typing import Any, ClassVar, cast

import numpy as np

from jaxvars.display.strings import did_you_mean
from jaxvars.interop import keras as _shared
from jaxvars.tf.keras import optimizers
from jaxvars.tf.keras.adapter.inference import is_as_eager
from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.keras.adapter.logits import keep_logits, remember
from jaxvars.tf.keras.adapter.operators import BOXED
from jaxvars.tf.keras.adapter.semantics import PLACE, box_arrays, into_keras, of_user, unwrap
from jaxvars.tf.keras.additions import ADDED, CALLS, as_array, follow_seed
from jaxvars.tf.keras.bridges import OfTensors, bridge_loaded, to_keras
from jaxvars.tf.keras.data import windows_of
from jaxvars.tf.keras.directories import (
    images_of_directory,
    sounds_of_directory,
    strings_of_directory,
)
from jaxvars.tf.keras.hash_layers import HashedCrossing, Hashing
from jaxvars.tf.keras.lookup_layers import IndexLookup
from jaxvars.tf.keras.metrics import Metric
from jaxvars.tf.keras.spaces import Space
from jaxvars.tf.keras.tensorboard import tensorboard_class
from jaxvars.tf.keras.text_layer import TextVectorization
from jaxvars.tf.keras.training import Trained
from jaxvars.tf.registry.absent import reason
from jaxvars.tf.tensors.convert import is_text, to_array
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context
from jaxvars.tracing.around import around

_BY_THE_USER = ("call", "build", "compute_loss", "compute_metrics", "train_step", "test_step")
_BY_KERAS = ("call", "compute_mask", "get_initial_state")
_CALLED = (
    "initializers.Initializer",
    "regularizers.Regularizer",
    "constraints.Constraint",
    "optimizers.schedules.LearningRateSchedule",
)
"""The classes of Keras, but layers, whose objects are called with tensors."""


class Face:
    """What all classes have in common: Tensors outside, arrays inside."""

    _by_the_user: ClassVar[tuple[str, ...]] = ("__call__",)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_of_keras" not in vars(cls):  # a class of the user's
            for name in cls._by_the_user:
                if callable(vars(cls).get(name)):
                    setattr(cls, name, of_user(vars(cls)[name]))


class Called(Face):
    """What initializers, regularizers, constraints and schedules have in common."""

    def __reduce__(self) -> Any:
        if "_of_keras" in vars(type(self)):  # found by Keras's class, which pickle can import
            return _revive, (vars(type(self))["_of_keras"], vars(self))
        return object.__reduce_ex__(self, 2)


def _revive(cls: Any, attributes: dict[str, Any]) -> Any:
    made = object.__new__(face_class(cls))
    vars(made).update(attributes)
    return made


class ArrayProxy(Face):
    """What layers have in common."""

    _by_the_user = (*_BY_THE_USER, "predict_step")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the layer: Tensors come out."""
        layer: Any = super()
        if args and isinstance(args[0], RaggedTensor) and self._is_of(keras().layers.Embedding):
            return args[0].with_flat_values(self(args[0].flat_values, *args[1:], **kwargs))
        args = self._take_strings(*args) if args else args
        if is_as_eager():
            return into_keras(layer.__call__, args, kwargs)
        return around([_shared.scope], lambda: into_keras(layer.__call__, args, kwargs))

    def _is_of(self, kind: Any) -> bool:
        """Return whether it is a layer of Keras of a class, not one of the user's."""
        return isinstance(self, kind) and "_of_keras" in vars(type(self))

    def _take_strings(self, inputs: Any, *others: Any) -> tuple[Any, ...]:
        """Have Keras convert nothing where strings are among the inputs; it takes NumPy's then.

        Nor what is ragged, which a layer of the user's may take.
        """
        this: Any = self
        parts = [_strings_of(part) for part in keras().tree.flatten(unwrap(inputs))]
        ragged = [isinstance(part, RaggedTensor) for part in parts]
        if any(ragged) and self._is_of(object):
            raise TypeError(
                f"{type(self).__name__} takes no ragged tensors. Give it x.to_tensor(), or, if it "
                "treats each value alone, use tf.ragged.map_flat_values(layer, x)."
            )
        if any(ragged) or any(map(is_text, parts)):
            this._convert_input_args, this._allow_non_tensor_positional_args = False, True
            parts = [
                x if is_ragged or not context.is_known(x) else np.asarray(x)
                for x, is_ragged in zip(parts, ragged, strict=True)
            ]
            inputs = keras().tree.pack_sequence_as(inputs, parts)
        return (inputs, *others)

    def add_weight(self, *args: Any, **kwargs: Any) -> Any:
        """Make a variable of the layer."""
        layer: Any = super()
        made = layer.add_weight(*to_keras(list(args)), **to_keras(kwargs))
        made._operators = BOXED
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
        return unwrap(layer.losses) if PLACE.is_in_keras else box_arrays(unwrap(layer.losses))

    @property
    def metrics(self) -> list[Any]:
        """The metrics of the layer, also in lists, and of the layers in it."""
        layer = cast(Any, super())
        held = keras().tree.flatten(list(vars(self).values()))
        found = {id(part): part for part in held if isinstance(part, Metric)}
        return [*layer.metrics, *found.values()]


def _strings_of(part: Any) -> Any:
    """Return strings of NumPy, or of a table's column, as a Tensor has them; others as they are."""
    array = part.to_numpy() if hasattr(part, "to_numpy") else part
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "OSU":
        return part
    is_string = all(isinstance(x, str | bytes) for x in array.ravel())
    return to_array(array) if is_string else part


@functools.cache
def _bases_of_keras() -> tuple[Any, ...]:
    return keras().Layer, *(operator.attrgetter(path)(keras()) for path in _CALLED)


@functools.cache
def face_class(cls: Any) -> Any:
    """Return the class that stands for one of Keras."""
    if issubclass(cls, Face):
        return cls
    space = {"_of_keras": cls, "__doc__": cls.__doc__, "__module__": _module_of(cls)}
    if issubclass(cls, keras().Layer):
        space.update({name: _method(vars(cls)[name]) for name in _BY_KERAS if name in vars(cls)})
        space.update({name: of(cls) for name, of in _OVER_KERAS.items() if name in vars(cls)})
        if cls is keras().Sequential:
            space["build"] = _adopt_when_built(cls)
        if cls is keras().layers.Normalization:
            space.update(mean=_tensor_of("mean"), variance=_tensor_of("variance"))
        if cls is keras().layers.Softmax:
            space["call"] = _method(_softmax_of(cls))
    elif "__call__" in vars(cls):
        space["__call__"] = _method(_call_of(cls))
    if "__init__" in vars(cls):
        space["__init__"] = _initializer(cls)
    return types.new_class(cls.__name__, (*_bases(cls), cls), exec_body=lambda ns: ns.update(space))


def _bases(cls: Any) -> tuple[Any, ...]:
    if cls in _bases_of_keras():
        return (ArrayProxy if cls is keras().Layer else Called,)
    above = tuple(face_class(base) for base in cls.__bases__ if issubclass(base, _bases_of_keras()))
    return (Trained, *above) if cls is keras().Model else above


def _tensor_of(name: str) -> Any:
    """Return the property for an array in an attribute: the user's code gets a Tensor."""

    def get(self: Any) -> Any:
        value = vars(self).get(name)
        return value if PLACE.is_in_keras else box_arrays(value)

    def put(self: Any, value: Any) -> None:
        vars(self)[name] = unwrap(value)

    return property(get, put)


def _softmax_of(cls: Any) -> Callable[..., Any]:
    """Return the `call` of a layer that is a softmax: without a mask, its logits are known."""

    @functools.wraps(cls.call)
    def call(self: Any, inputs: Any, mask: Any = None) -> Any:
        found = cls.call(self, inputs, mask)
        return found if mask is not None else remember(found, inputs)

    return call


def _module_of(cls: Any) -> str:
    """Return the module that Keras looks for the class in."""
    for path in ("models", "layers", *(path.rpartition(".")[0] for path in _CALLED)):
        if getattr(operator.attrgetter(path)(keras()), cls.__name__, None) is cls:
            return f"keras.{path}"
    return cls.__module__


def _call_of(cls: Any) -> Callable[..., Any]:
    """Return what stands for `__call__`, by TensorFlow's types and slopes."""
    fn: Any = CALLS.get(f"{_module_of(cls)}.{cls.__name__}", cls.__call__)
    if issubclass(cls, keras().initializers.Initializer):
        return fn
    is_rate = issubclass(cls, keras().optimizers.schedules.LearningRateSchedule)

    @functools.wraps(fn)
    def call(self: Any, value: Any) -> Any:
        found = fn(self, as_array(value))
        return found.astype("float32") if is_rate else found

    return call


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
            self.__class__ = _functional_class(type(self))
            self.__class__._of_graph(self, *args, **kwargs)
        else:
            cls.__init__(self, *to_keras(list(args)), **to_keras(kwargs))
            follow_seed(self)
            keep_logits(self)

    setattr(__init__, "__signature__", inspect.signature(cls.__init__))  # noqa: B010 - Keras reads it
    return __init__


def _convert_all_but_strings(cls: Any) -> Callable[..., Any]:
    def convert(self: Any, inputs: Any) -> Any:
        alone = [types.SimpleNamespace(_inputs=[part]) for part in self._inputs]
        return [
            (x[..., None] if x.ndim < len(one._inputs[0].shape) else x)
            if is_text(x)
            else cls._convert_inputs_to_tensors(one, [x])[0]
            for x, one in zip(inputs, alone, strict=True)
        ]

    return convert


def _adopt_when_built(cls: Any) -> Callable[..., Any]:
    def build(self: Any, input_shape: Any = None) -> None:
        cls.build(self, input_shape)
        adopt(self)

    return functools.wraps(cls.build)(build)


def _adapt_to_arrays(cls: Any) -> Callable[..., Any]:
    """Return `adapt` of Keras's, which knows datasets of TensorFlow alone."""

    @functools.wraps(cls.adapt)
    def adapt(self: Any, data: Any, *args: Any, **kwargs: Any) -> None:
        if hasattr(data, "__iter__") and not isinstance(data, np.ndarray | Tensor | list | tuple):
            steps = kwargs.pop("steps", None)
            batches = [part[0] if isinstance(part, tuple) else part
                       for part in itertools.islice(data, steps)]  # fmt: skip
            data = np.concatenate([np.atleast_1d(np.asarray(part)) for part in batches])
        into_keras(functools.partial(cls.adapt, self), (data, *args), kwargs)

    return adapt


_OVER_KERAS = {"_convert_inputs_to_tensors": _convert_all_but_strings, "adapt": _adapt_to_arrays}
"""What stands for methods of Keras's that know strings, or datasets, of TensorFlow alone."""


def adopt(thing: Any) -> Any:
    """Give a layer or model of Keras, all that are in it, or another object, its faced class."""
    parts = [*thing._flatten_layers()] if isinstance(thing, keras().Layer) else [thing]
    parts += [one._functional for one in parts if getattr(one, "_functional", None)]
    for one in parts:  # and what a Sequential runs
        if isinstance(one, _bases_of_keras()) and not isinstance(one, Face):
            one.__class__ = face_class(type(one))
            keep_logits(one)
            bridge_loaded(one)
    return thing


# ---------------------------------------------------------------- models of inputs and outputs
@functools.cache
def _functional() -> Any:
    """Return Keras's class of models that are made of inputs and outputs."""
    x = keras().Input((1,))
    return type(keras().Model(x, keras().layers.Identity()(x)))


def _is_functional(args: Any, kwargs: Any) -> bool:
    """Return whether a model is made of inputs and outputs, by the arguments."""
    return len(args) >= 2 or (len(args) == 1 and "outputs" in kwargs) or (
        "inputs" in kwargs and "outputs" in kwargs
    )  # fmt: skip


@functools.cache
def _functional_class(cls: Any) -> Any:
    """Return the class of a model that is made of inputs and outputs."""
    graph = face_class(_functional())

    def _of_graph(self: Any, *args: Any, **kwargs: Any) -> None:
        _functional().__init__(self, *args, **kwargs)
        adopt(self)

    if cls is face_class(keras().Model):
        graph._of_graph = _of_graph
        return graph
    space = {"_of_keras": cls, "_of_graph": _of_graph, "__module__": cls.__module__}
    space["__qualname__"] = cls.__qualname__
    return types.new_class(cls.__name__, (cls, graph), exec_body=lambda ns: ns.update(space))


# ---------------------------------------------------------------- layers of strings
@functools.cache
def _instead() -> dict[str, Any]:
    """Return what stands for layers and functions of Keras that need TensorFlow, by name."""
    of_integers = {"vocabulary_dtype": "int64", "_default_oov": -1}
    made: dict[str, Any] = {}
    for name, base, own in (
        ("StringLookup", IndexLookup, {}),
        ("IntegerLookup", IndexLookup, of_integers),
        ("TextVectorization", TextVectorization, {}),
        ("Hashing", Hashing, {}),
        ("HashedCrossing", HashedCrossing, {}),
    ):
        space = {"__module__": "keras.layers", "__doc__": base.__doc__, **own}
        made[name] = type(name, (base, face_class(keras().Layer)), space)
    keras().saving.get_custom_objects().update(made)  # for what is saved
    spaces = ("utils", "preprocessing")
    return {
        **{f"layers.{name}": kind for name, kind in made.items()},
        **{f"{space}.timeseries_dataset_from_array": windows_of for space in spaces},
        **{f"{space}.text_dataset_from_directory": strings_of_directory for space in spaces},
        **{f"{space}.image_dataset_from_directory": images_of_directory for space in spaces},
        "utils.audio_dataset_from_directory": sounds_of_directory,
        "callbacks.TensorBoard": tensorboard_class(),
    }


# ---------------------------------------------------------------- names
def of_keras(path: str) -> Any:
    """Return what Keras has under a name."""
    return operator.attrgetter(path)(keras())


def find(path: str) -> Any:
    """Return what `tf.keras` has under a name.

    Raises:
        AttributeError: when there is nothing; names the nearest.
    """
    keras()
    if path == "mixed_precision.LossScaleOptimizer":
        return optimizers.LossScaleOptimizer
    added = ADDED.get(path) or _instead().get(path)
    if added is not None:
        return added
    space, _, name = path.rpartition(".")
    where = of_keras(space) if space else keras()
    if not hasattr(where, name) and (why := reason(f"keras.{path}")):
        raise AttributeError(f"jaxvars.tf has no tf.keras.{path}: {why}")
    if not hasattr(where, name):
        hint = did_you_mean(name, dir(where))
        raise AttributeError(f"tf.keras{space and '.'}{space} has no attribute {name!r}.{hint}")
    return _face(getattr(where, name), path)


def _face(thing: Any, path: str) -> Any:
    """Return something of Keras as `tf.keras` has it."""
    if isinstance(thing, types.ModuleType):
        return sys.modules.setdefault(f"jaxvars.tf.keras.{path}", Space(path))
    if isinstance(thing, type) and issubclass(thing, _bases_of_keras()):
        return face_class(thing)
    return _function(thing, path) if isinstance(thing, types.FunctionType) else thing


def _function(fn: Callable[..., Any], path: str) -> Callable[..., Any]:
    """Return a function of Keras that takes what belongs to `tf`, and makes what does."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = map(as_array, args) if path.startswith("activations.") else args
        return _face_result(into_keras(fn, to_keras(list(given)), to_keras(kwargs)))

    call.__module__, _, call.__qualname__ = f"jaxvars.tf.keras.{path}".rpartition(".")
    setattr(call, "_of_keras", fn)  # noqa: B010 - pyright knows no attributes of functions
    return call


def _face_result(thing: Any) -> Any:
    """Return what a function of Keras has made or found as `tf.keras` has it."""
    if isinstance(thing, OfTensors):
        return thing.__wrapped__
    is_function = isinstance(thing, types.FunctionType)
    is_of_keras = is_function and str(thing.__module__).startswith("keras.")
    if is_of_keras and hasattr(keras().activations, thing.__name__):
        return find(f"activations.{thing.__name__}")
    return adopt(thing)

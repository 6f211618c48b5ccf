"""Arguments of `tf` and `tf.keras` as Keras takes them.

Rules this file keeps:
- one optimizer or metric has one state: what Keras is given passes everything on to it;
- what is saved are Keras's own of the same name and configuration.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.interop.keras import bind
from jaxvars.tf.keras import losses, metrics, optimizers
from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.keras.adapter.logits import CROSS_ENTROPIES, by_logits
from jaxvars.tf.keras.adapter.operators import BOXED
from jaxvars.tf.keras.adapter.semantics import PLACE, into_user, unwrap
from jaxvars.tf.variables.variable import Variable


# ---------------------------------------------------------------- any argument
def to_keras(value: Any) -> Any:
    """Return an argument as Keras takes it.

    A `tf.DType`, Tensor or `tf.TensorShape` becomes a name, an array, a tuple; a function of `tf`
    Keras's activation of that name; any other function is called with Tensors.
    """
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(map(to_keras, value))
    if type(value) is dict:
        return {key: to_keras(part) for key, part in value.items()}
    return _function_of_keras(value) if isinstance(value, types.FunctionType) else unwrap(value)


def _function_of_keras(fn: Any) -> Callable[..., Any]:
    if hasattr(fn, "_of_keras"):
        return fn._of_keras
    home = str(fn.__module__)  # which may be None
    if home.startswith("keras."):
        return fn
    found = getattr(keras().activations, fn.__name__, None)
    return found if found and home.startswith("jaxvars.") else OfTensors(fn)


class OfTensors:
    """A function of the user's that Keras calls."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.__wrapped__, self.__name__ = fn, fn.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with Tensors."""
        return into_user(self.__wrapped__, args, kwargs)


# ---------------------------------------------------------------- arguments of `compile`
def bridge(value: Any) -> Any:
    """Return an argument of `compile` as Keras takes it; cross-entropies take known logits."""
    if isinstance(value, list | tuple | dict):
        return _of_each(bridge, value)
    is_name = isinstance(value, str) and value in CROSS_ENTROPIES
    made = keras().losses.get(value) if is_name else _bridge(value)
    if isinstance(made, keras().losses.Loss | keras().metrics.Metric):
        for name in {"fn", "_fn"} & vars(made).keys():
            setattr(made, name, by_logits(getattr(made, name)))
    return by_logits(made)


_COMPILED = {
    "_compile_loss": ("_user_loss",),
    "_compile_metrics": ("_user_metrics", "_user_weighted_metrics"),
}


def bridge_loaded(model: Any) -> None:
    """Bridge what Keras compiled a model with when it loaded it."""
    for part, names in _COMPILED.items():
        made = vars(model).get(part)
        for name in names if made is not None else ():
            setattr(made, name, bridge(getattr(made, name)))


def _bridge(value: Any) -> Any:
    if isinstance(value, losses.Loss):
        return _loss()(value) if value.made_of is None else named(value)
    if isinstance(value, optimizers.Optimizer):
        return _optimizer(type(value).__name__)(value, learning_rate=0.0)
    if isinstance(value, metrics.Metric):
        return _metric()(value)
    if isinstance(value, types.FunctionType) and str(value.__module__).startswith("jaxvars."):
        return getattr(keras().losses, value.__name__, None) or to_keras(value)
    return to_keras(value)


def scaled(optimizer: Any, policy: str) -> Any:
    """Return an optimizer as a model of a policy needs it: one that scales the loss for float16."""
    if policy != "mixed_float16" or optimizer is None:
        return optimizer
    found = optimizers.get(optimizer)
    if isinstance(found, keras().optimizers.Optimizer):
        check_scale(found)
    is_scaled = isinstance(found, optimizers.LossScaleOptimizer)
    return found if is_scaled else optimizers.LossScaleOptimizer(found, name="loss_scale_optimizer")


def check_scale(optimizer: Any) -> None:
    """Raise TypeError for an optimizer of Keras's own that is to scale a loss."""
    if not isinstance(optimizer, _Optimizer):
        raise TypeError(
            f"{type(optimizer)} of Keras cannot scale the loss of float16 here, since it assigns "
            "in a branch. Compile the model, also after it was loaded, with an optimizer of "
            "tf.keras; or use the policy 'mixed_bfloat16', which needs no scale."
        )


def named(value: Any) -> Any:
    """Return an argument of `compile` with what Keras has under the name of each thing in it."""
    if isinstance(value, list | tuple | dict):
        return _of_each(named, value)
    for kind, space in _SPACES.items():
        if isinstance(value, kind):
            own = type(value).__module__ == f"jaxvars.tf.keras.{space}"  # and not the user's
            found = getattr(getattr(keras(), space), type(value).__name__, None) if own else None
            return value if found is None else found.from_config(value.get_config())
    return bridge(value)


_SPACES = {losses.Loss: "losses", optimizers.Optimizer: "optimizers", metrics.Metric: "metrics"}


def _of_each(fn: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, dict):
        return {key: fn(part) for key, part in value.items()}
    return list(map(fn, value))


def variable_of(variable: Any) -> Any:
    """Return a variable of Keras that has its value in a tf.Variable, or one of jaxvars."""
    core = variable.aliased if isinstance(variable, Variable) else variable
    if not isinstance(core, CoreVariable):
        return core  # Keras's own
    made = keras().Variable(core.value, trainable=core.trainable, name=core.name.replace("/", "_"))
    made._operators = BOXED
    bind(made, core)
    return made


def _variables_of(owner: Any, known: dict[int, Any]) -> list[Any]:
    for variable in owner.variables:
        if id(variable.aliased) not in known:
            known[id(variable.aliased)] = variable_of(variable)
    return [known[id(variable.aliased)] for variable in owner.variables]


class _Wrapper:
    """What Keras is given: it passes everything on to what it wraps."""

    def __init__(self, wrapped: Any, **options: Any) -> None:
        above: Any = super()
        above.__init__(name=wrapped.name, **options)
        self.wrapped = wrapped
        self._known: dict[int, Any] = {}  # variables of Keras, by the id of ours

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return self.wrapped.get_config()


@functools.cache
def _loss() -> Any:
    class Loss(_Wrapper, keras().losses.Loss):
        """A loss of `tf.keras`."""

        def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            """Return the loss."""
            return into_user(self.wrapped, (y_true, y_pred, sample_weight), {})

        def call(self, y_true: Any, y_pred: Any) -> Any:
            """Return the loss of each sample."""
            return into_user(self.wrapped.call, (y_true, y_pred), {})

    return Loss


@functools.cache
def _metric() -> Any:
    class Metric(_Wrapper, keras().metrics.Metric):
        """A metric of `tf.keras`."""

        def __init__(self, wrapped: Any, **options: Any) -> None:
            super().__init__(wrapped, **options)
            found = getattr(wrapped, "_direction", None) or _direction_of(wrapped)
            if found is not None:  # which way is better, for callbacks that monitor it
                self._direction = found

        def update_state(self, *args: Any, **kwargs: Any) -> None:
            """Take something into account."""
            into_user(self.wrapped.update_state, args, kwargs)

        def result(self) -> Any:
            """Return what comes of everything so far."""
            return into_user(self.wrapped.result, (), {})

        def reset_state(self) -> None:
            """Forget everything."""
            self.wrapped.reset_state()

        @property
        def variables(self) -> list[Any]:
            """Its variables."""
            return _variables_of(self.wrapped, self._known)

    return Metric


def _direction_of(metric: Any) -> str | None:
    """Return "up" or "down", which is better for a metric that Keras has, too; None for others."""
    if type(metric).__module__ != "jaxvars.tf.keras.metrics":
        return None
    found: Any = getattr(keras().metrics, type(metric).__name__, None)
    try:
        return getattr(found.from_config(metric.get_config()), "_direction", None)
    except (AttributeError, TypeError, ValueError):  # it has none, or other arguments
        return None


def _pass_on(name: str, doc: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.wrapped, name)(*args, **kwargs)

    call.__name__, call.__doc__ = name, doc
    return call


class _Optimizer(_Wrapper):
    """An optimizer of `tf.keras`, above Keras's base class."""

    def __init__(self, wrapped: Any, **options: Any) -> None:
        super().__init__(wrapped, **options)
        for name in wrapped.aliased._list_options() & vars(self).keys():
            vars(self)[name] = getattr(wrapped, name)  # in the place of what Keras's base has set

    def __setattr__(self, name: str, value: Any, /) -> None:
        if "wrapped" in vars(self) and name in self.wrapped.aliased._list_options():
            setattr(self.wrapped, name, value)
        super().__setattr__(name, value)

    def build(self, variables: Any) -> None:
        """Make the slots of variables now."""
        self.wrapped.build(variables)
        self.built = True

    apply = _pass_on("apply", "Update variables by their gradients.")
    apply_gradients = _pass_on("apply_gradients", "Update variables by their gradients.")
    scale_loss = _pass_on("scale_loss", "Return the loss by what the gradients are divided by.")
    finalize_variable_values = _pass_on(
        "finalize_variable_values", "Make the averages of variables their values."
    )
    exclude_from_weight_decay = _pass_on(
        "exclude_from_weight_decay", "Keep weight decay from some variables."
    )

    @property
    def variables(self) -> list[Any]:
        """Its variables, in Keras's order: the slots of one variable after those of another."""
        core = self.wrapped.aliased
        own: dict[str, Any] = vars(core).get("slots", {})  # and not those inside
        slots = [id(slot) for one in own.values() for slot in one.values()]
        order = {key: i for i, key in enumerate(slots)}
        found = _variables_of(self.wrapped, self._known)
        return sorted(found, key=lambda v: order.get(id(v._cell_variable), -1))

    iterations = property(lambda self: self.wrapped.iterations)

    def set_weights(self, weights: Any) -> None:
        """Assign all variables."""
        for variable, weight in zip(self.variables, weights, strict=True):
            variable.assign(weight)

    def __getattr__(self, name: str) -> Any:
        if name[0] == "_" or "wrapped" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.wrapped, name)

    @property
    def learning_rate(self) -> Any:
        """The learning rate now: an array for Keras, else what the optimizer has."""
        rate = self.wrapped.learning_rate
        return unwrap(rate) if PLACE.is_in_keras else rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.wrapped.learning_rate = value


@functools.cache
def _optimizer(name: str) -> Any:
    """Return the class with the name of that which it wraps, by which what is saved names it."""
    return type(name, (_Optimizer, keras().optimizers.Optimizer), {"__module__": __name__})

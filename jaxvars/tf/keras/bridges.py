"""Optimizers, losses and metrics of `tf.keras` as those of Keras, for `model.compile`.

Rules this file keeps:
- one optimizer or metric has one state: what Keras is given passes everything on to it;
- what is saved are Keras's own of the same name and configuration.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.tf.keras import losses, metrics, optimizers
from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.keras.adapter.semantics import into_user, unwrap
from jaxvars.tf.keras.adapter.shared import bound
from jaxvars.tf.keras.theirs import theirs
from jaxvars.tf.variables.variable import Variable


def bridged(value: Any) -> Any:
    """Return an argument of `compile` as Keras takes it."""
    if isinstance(value, list | tuple):
        return [bridged(part) for part in value]
    if isinstance(value, dict):
        return {key: bridged(part) for key, part in value.items()}
    if isinstance(value, losses.Loss):
        return _loss()(value) if value.made_of is None else named(value)
    for kind, made in ((optimizers.Optimizer, _optimizer), (metrics.Metric, _metric)):
        if isinstance(value, kind):
            return made()(value)
    if isinstance(value, types.FunctionType) and value.__module__.startswith("jaxvars."):
        return getattr(keras().losses, value.__name__, None) or theirs(value)
    return theirs(value)


def named(value: Any) -> Any:
    """Return an argument of `compile` with what Keras has under the name of each thing in it."""
    if isinstance(value, list | tuple):
        return [named(part) for part in value]
    if isinstance(value, dict):
        return {key: named(part) for key, part in value.items()}
    for kind, space in (
        (losses.Loss, "losses"),
        (optimizers.Optimizer, "optimizers"),
        (metrics.Metric, "metrics"),
    ):
        if isinstance(value, kind):
            found = getattr(getattr(keras(), space), type(value).__name__, None)
            return value if found is None else found.from_config(value.get_config())
    return bridged(value)


def variable_of(variable: Any) -> Any:
    """Return a variable of Keras that has its value in a tf.Variable, or one of jaxvars."""
    core = variable.aliased if isinstance(variable, Variable) else variable
    if not isinstance(core, CoreVariable):
        return core  # Keras's own
    made = keras().Variable(core.value, trainable=core.trainable, name=core.name.replace("/", "_"))
    bound(made, core)
    return made


def _variables_of(owner: Any, known: dict[int, Any]) -> list[Any]:
    for variable in owner.variables:
        if id(variable.aliased) not in known:
            known[id(variable.aliased)] = variable_of(variable)
    return [known[id(variable.aliased)] for variable in owner.variables]


@functools.cache
def _loss() -> Any:
    class Loss(keras().losses.Loss):
        """A loss of `tf.keras`."""

        def __init__(self, loss: Any) -> None:
            super().__init__(name=loss.name)
            self.wrapped = loss

        def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            """Return the loss."""
            return into_user(self.wrapped, (y_true, y_pred, sample_weight), {})

        def call(self, y_true: Any, y_pred: Any) -> Any:
            """Return the loss of each sample."""
            return into_user(self.wrapped.call, (y_true, y_pred), {})

        def get_config(self) -> dict[str, Any]:
            """Return the arguments that it was made with, by name."""
            return self.wrapped.get_config()

    return Loss


@functools.cache
def _metric() -> Any:
    class Metric(keras().metrics.Metric):
        """A metric of `tf.keras`."""

        def __init__(self, metric: Any) -> None:
            super().__init__(name=metric.name)
            self.wrapped = metric
            self._known: dict[int, Any] = {}

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

        def get_config(self) -> dict[str, Any]:
            """Return the arguments that it was made with, by name."""
            return self.wrapped.get_config()

    return Metric


class _Optimizer:
    """An optimizer of `tf.keras`, above Keras's base class."""

    def __init__(self, optimizer: Any) -> None:
        above: Any = super()
        above.__init__(learning_rate=0.0, name=optimizer.name)
        self.wrapped = optimizer
        self._known: dict[int, Any] = {}

    def build(self, variables: Any) -> None:
        """Make the slots of variables now."""
        self.wrapped.build(variables)
        self.built = True

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Update variables by their gradients."""
        self.wrapped.apply(grads, trainable_variables)

    def apply_gradients(self, grads_and_vars: Any) -> Any:
        """Update variables by their gradients."""
        return self.wrapped.apply_gradients(grads_and_vars)

    def scale_loss(self, loss: Any) -> Any:
        """Return the loss times what the gradients will be divided by."""
        return self.wrapped.scale_loss(loss)

    def finalize_variable_values(self, var_list: Any) -> None:
        """Make the averages of variables their values."""
        self.wrapped.finalize_variable_values(var_list)

    @property
    def variables(self) -> list[Any]:
        """Its variables, in Keras's order: the slots of one variable after those of another."""
        core = self.wrapped.aliased
        slots = [id(slot) for one in core.slots.values() for slot in one.values()]
        order = {key: i for i, key in enumerate(slots)}
        found = _variables_of(self.wrapped, self._known)
        return sorted(found, key=lambda v: order.get(id(v._cell_variable), -1))

    @property
    def learning_rate(self) -> Any:
        """The learning rate now."""
        return unwrap(self.wrapped.learning_rate)

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.wrapped.learning_rate = value

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return self.wrapped.get_config()


@functools.cache
def _optimizer() -> Any:
    class Optimizer(_Optimizer, keras().optimizers.Optimizer):
        """An optimizer of `tf.keras`."""

    return Optimizer

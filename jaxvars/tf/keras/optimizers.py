"""`tf.keras.optimizers`: the optimizers of `jaxvars.optimizers`, of Tensors and tf.Variables.

    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables))

Differs from TensorFlow: `minimize` is there, too; slots are made when a variable is first updated,
or by `build`; `tf.IndexedSlices` are made dense.

>>> from jaxvars import tf
>>> v = tf.Variable([1.0, 2.0])
>>> optimizer = tf.keras.optimizers.SGD(learning_rate=0.5)
>>> _ = optimizer.apply_gradients([(tf.constant([1.0, 1.0]), v)])
>>> v.numpy().tolist()
[0.5, 1.5]
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from jaxvars import optimizers as _core
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.errors import CreationError
from jaxvars.modules.module import BORDER
from jaxvars.objects.traversal import resolve_proxy
from jaxvars.optimizers.checks import Options
from jaxvars.tf.attributes import getter
from jaxvars.tf.autodiff.tape import GradientTape
from jaxvars.tf.context.scope import init_scope
from jaxvars.tf.keras.adapter.facade import (
    array,
    class_of,
    from_configuration,
    interpret,
    to_configuration,
)
from jaxvars.tf.keras.adapter.semantics import into_user
from jaxvars.tf.keras.adapter.steps import Bare, Steps, list_written, refuse_uncalled
from jaxvars.tf.keras.spaces import find
from jaxvars.tf.listing import lister
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor, TensorLike
from jaxvars.tf.variables.variable import Variable, count_of, face_of

_KNOWN: dict[str, Any] = {
    name: getattr(_core, name) for name in _core.__all__ if name != "Optimizer"
}


_FIRST = ("step_counter", "dynamic_scale", "iterations", "learning_rate")
"""The variables before the slots, in Keras's order."""


class Optimizer(Steps):
    """The base of optimizers; a class of yours below it, or below one of them, may update itself.

    Differs from TensorFlow: rows of `tf.IndexedSlices` with the same index are added up first. With
    `gradient_accumulation_steps`, `use_ema` averages once for each update, not at every call; a
    class with an `update_step` of its own takes neither.

    The arguments are those of the class of the same name in `jaxvars.optimizers`; the learning rate
    is a number, a tf.Variable, a schedule, or a function without arguments.

    >>> from jaxvars import tf
    >>> class Sign(tf.keras.optimizers.SGD):
    ...     def update_step(self, gradient, variable, learning_rate):
    ...         self.assign_sub(variable, learning_rate * tf.sign(gradient))
    >>> v = tf.Variable([1.0, 2.0])
    >>> _ = Sign(0.5).apply_gradients([(tf.constant([3.0, -4.0]), v)])
    >>> v.numpy().tolist()
    [0.5, 2.5]
    """

    made_of: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if type(self) is Optimizer:
            raise TypeError(
                "Optimizer is a base: use one like tf.keras.optimizers.Adam, or write a class that "
                "is made from it, and has update_step(self, gradient, variable, learning_rate)."
            )
        refuse_uncalled(type(self))
        if self.made_of is None:
            self.made_of = Bare
            kwargs["name"] = kwargs.get("name") or BORDER.sub("_", type(self).__name__).lower()
        bound = inspect.signature(self.made_of.__init__).bind(None, *args, **kwargs)
        bound.apply_defaults()
        inner = bound.arguments.get("inner_optimizer")  # of a LossScaleOptimizer
        if isinstance(inner, Optimizer):
            _refuse_around(self, inner)
            bound.arguments["inner_optimizer"], self.inner_optimizer = inner._core, inner
        rate = bound.arguments.get("learning_rate")
        self._first_scale = bound.arguments.get("initial_scale")
        self._schedule = rate if _is_schedule(rate) else None
        if "learning_rate" in bound.arguments:
            bound.arguments["learning_rate"] = _rate(rate)
        self._core = self.made_of(*bound.args[1:], **bound.kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return an option, like `clipnorm`."""
        if self._is_option(name):
            return getattr(self._core, name)
        return object.__getattribute__(self, name)  # it raises

    def __setattr__(self, name: str, value: Any, /) -> None:
        if self._is_option(name):
            setattr(self._core, name, resolve_proxy(value))
        if not self._is_option(name) or name in vars(self):
            super().__setattr__(name, value)

    def _is_option(self, name: str) -> bool:
        return "_core" in vars(self) and name in self._core._list_options()

    @property
    def aliased(self) -> Any:
        """The optimizer of `jaxvars.optimizers` that it stands for."""
        return self._core

    # ------------------------------------------------------------ what it is
    name = getter("_core.name", "What it is called.")
    iterations = getter("_core.iterations", "The variable that counts the updates.", count_of)

    @property
    def learning_rate(self) -> Any:
        """The variable with the learning rate, or the schedule's current value; assign it any time.

        Raises:
            TypeError: on assigning, when it was made with a schedule.
        """
        rate = self._core.learning_rate
        return face_of(rate) if isinstance(rate, CoreVariable) else Tensor(to_array(rate))

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if not isinstance(self._core.learning_rate, CoreVariable):
            raise TypeError(
                "This optimizer was created with a `LearningRateSchedule` object as its "
                "`learning_rate` constructor argument, hence its learning rate is not settable. If "
                "you need the learning rate to be settable, you should instantiate the optimizer "
                "with a float `learning_rate` argument."
            )
        self._core.learning_rate = to_array(value).astype("float32")

    @property
    def variables(self) -> list[Variable]:
        """All its variables: the count, the learning rate, the slots."""
        first = [getattr(self._core, name, None) for name in _FIRST]
        begun = [v for v in first if isinstance(v, CoreVariable)]
        slots = [v for v in self._core.variables if not any(v is w for w in begun)]
        count = self.iterations  # whose face the list has, too
        return [count if v is count.aliased else face_of(v) for v in (*begun, *slots)]

    dynamic_scale = getter("_core.dynamic_scale", "What the loss is multiplied by.", face_of)
    step_counter = getter("_core.step_counter", "Steps since the scale has changed.", face_of)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        if hasattr(self, "inner_optimizer"):
            steps = self._core.dynamic_growth_steps
            return {"name": self.name, "inner_optimizer": serialize(self.inner_optimizer),
                    "initial_scale": self._first_scale, "dynamic_growth_steps": steps}  # fmt: skip
        names = [*inspect.signature(self.made_of.__init__).parameters][1:-1]
        options = [*Options.__annotations__, "weight_decay"]
        known = dict.fromkeys(name for name in (*names, *options) if name != "learning_rate")
        config = {name: getattr(self._core, name) for name in known if hasattr(self._core, name)}
        rate = self._schedule and find("optimizers.schedules.serialize")(self._schedule)
        return {**config, "learning_rate": rate or float(self.learning_rate)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Optimizer:
        """Return the optimizer with these arguments."""
        given = dict(config)
        if "inner_optimizer" in given:
            given["inner_optimizer"] = deserialize(given["inner_optimizer"], custom_objects)
        if isinstance(given.get("learning_rate"), dict):
            revive = find("optimizers.schedules.deserialize")
            given["learning_rate"] = revive(given["learning_rate"], custom_objects)
        return cls(**given)

    # ------------------------------------------------------------ updating
    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], name: str | None = None, **kwargs: Any
    ) -> Variable:
        """Update variables by their gradients.

        Args:
            grads_and_vars: pairs, like `zip(gradients, variables)`.
            name: of no effect.
            **kwargs: of no effect.

        Returns:
            `iterations`.

        Raises:
            ValueError: when there are no gradients, or a gradient does not have the shape of its
                variable.
        """
        pairs = list(grads_and_vars)
        self.apply([gradient for gradient, _ in pairs], [variable for _, variable in pairs])
        return self.iterations

    def _apply(self, pairs: list[tuple[Any, Any]], extra: dict[str, Any]) -> Variable:
        plain = [(array(g), resolve_proxy(v)) for g, v in pairs]
        if pairs and all(gradient is None for gradient, _ in pairs):
            raise ValueError("No gradients provided for any variable.")
        if written := list_written(self):
            self._apply_by_steps(plain, written)
        else:
            self._apply_by_core(plain, extra)
        for _, variable in pairs:
            constraint = getattr(variable, "constraint", None)
            if constraint is not None:
                variable.assign(constraint(variable))
        return self.iterations

    def _apply_by_core(self, pairs: list[tuple[Any, Any]], extra: dict[str, Any]) -> None:
        try:
            self._core.apply_gradients(pairs, **extra)
        except CreationError:  # in the body of a loop: the slots are made outside of the function
            with init_scope():
                self._core.build([variable for _, variable in pairs])
            self._core.apply_gradients(pairs, **extra)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        """Update variables by their gradients, both lists of the same order.

        Args:
            grads: the gradients.
            trainable_variables: the variables; those that it was built with when None.
        """
        if trainable_variables is None:
            trainable_variables = [face_of(variable) for variable, _ in self._core._list_slots()]
        if len(grads) != len(trainable_variables):
            raise ValueError(
                f"There are {len(grads)} gradients for {len(trainable_variables)} variables."
            )
        self._apply(list(zip(grads, trainable_variables, strict=True)), {})

    def minimize(self, loss: Any, var_list: Any, tape: Any = None) -> Variable:
        """Update variables so that a loss becomes smaller.

        Args:
            loss: a function without arguments, or a tensor with the `tape` that saw it.
            var_list: the variables, or a function that returns them.
            tape: what has recorded the loss.

        Raises:
            ValueError: when the loss is a tensor, without a tape.
        """
        if not callable(loss) and tape is None:
            raise ValueError("`tape` is required when a `Tensor` loss is passed.")
        with tape or GradientTape() as recorder:
            value = loss() if callable(loss) else loss
            scaled = self.scale_loss(value)
        given: Any = var_list() if callable(var_list) else var_list
        variables = list(given)
        gradients = recorder.gradient(scaled, variables)
        again = (lambda: to_array(loss())) if callable(loss) else None
        extra = self._core._list_extra(to_array(value), again)
        pairs = list(zip(gradients, variables, strict=True))
        return self._apply(pairs, extra) if extra else self.apply_gradients(pairs)

    def scale_loss(self, loss: Any) -> Any:
        """Return the loss times what the gradients will be divided by."""
        factor = getattr(self._core, "loss_scale_factor", None)
        if factor is None and type(self._core).scale_loss is _core.Optimizer.scale_loss:
            return loss
        return Tensor(self._core.scale_loss(to_array(loss)))

    def finalize_variable_values(self, var_list: Iterable[Any]) -> None:
        """Make the averages of variables their values, with `use_ema=True`."""
        known = {id(variable) for variable, _ in self._core._list_slots()}
        found = [v for v in map(resolve_proxy, var_list) if id(v) in known]  # others never changed
        if self._core.use_ema and found:
            self._core.finalize_variable_values(found)

    def exclude_from_weight_decay(
        self, var_list: Sequence[Any] | None = None, var_names: Sequence[str] | None = None
    ) -> None:
        """Keep weight decay from some variables; call it before the first update."""
        plain = None if var_list is None else list(map(resolve_proxy, var_list))
        self._core.exclude_from_weight_decay(plain, var_names)

    def __repr__(self) -> str:
        return f"<tf.keras.optimizers.{type(self).__name__} {self.name!r}>"


def _refuse_around(scaling: Optimizer, inner: Optimizer) -> None:
    """Raise TypeError where an optimizer that scales the loss would pass over what is written."""
    own = ["apply"] if type(inner).apply is not Optimizer.apply else []
    written = [*list_written(scaling), *list_written(inner), *own]
    if written:
        raise TypeError(
            f"A LossScaleOptimizer around {type(inner).__name__} would not call {written}, which "
            "its class has written. Use the inner optimizer alone, as in a model of the policy "
            "'mixed_bfloat16', which needs no scale."
        )


def _rate(given: Any) -> Any:
    """Return a learning rate as the core takes it."""
    if isinstance(given, Variable):
        return given.aliased
    if _is_schedule(given):
        return lambda step: to_array(into_user(given, (Tensor(to_array(step)),), {}))
    if callable(given) and not inspect.signature(given).parameters:
        return lambda _: to_array(given())
    return to_array(given) if isinstance(given, TensorLike) else given


def _is_schedule(rate: Any) -> bool:
    if not callable(rate) or "keras" not in sys.modules:
        return False
    return isinstance(rate, find("optimizers.schedules.LearningRateSchedule"))


def get(identifier: Any) -> Any:
    """Return an optimizer by name, configuration, or as it is.

    >>> get("adam").name
    'adam'
    """
    return interpret(identifier, _class_of, "optimizer")


def _class_of(name: str) -> Any:
    found = {known.lower(): known for known in _KNOWN if known != "Optax"}.get(name.lower())
    return found and __getattr__(found)


def serialize(optimizer: Any) -> Any:
    """Return a configuration from which `deserialize` makes the same optimizer."""
    return to_configuration("optimizers", optimizer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """Return the optimizer of a configuration."""
    return from_configuration(config, custom_objects, get)


def __getattr__(name: str) -> Any:
    if name not in _KNOWN:
        return find(f"optimizers.{name}")
    globals()[name] = class_of(_KNOWN[name], Optimizer, __name__)
    return globals()[name]


__dir__ = lister(__name__, {*_KNOWN, "schedules"})

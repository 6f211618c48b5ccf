"""The parts of an update that the class of a user's optimizer may write, in Keras's order.

    apply_gradients, apply      the optimizer's own
      build                     once, for the variables of the first update
      _backend_apply_gradients
        _clip_gradients
        _apply_weight_decay
        _backend_update_step
          update_step           for each variable

Rules this file keeps:
- a class that writes none of them is updated by the core, all variables at once;
- one that writes some has these called with Tensors and tf.Variables, and the core's rule for the
  rest; what can have no part in that is refused, and never passed over;
- variables that a class makes for its state are in `shared` of the core's optimizer, by name, where
  checkpoints find them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from jaxvars import optimizers as _core
from jaxvars.errors import CreationError
from jaxvars.modules.state import unique
from jaxvars.objects.traversal import Proxy, resolve_proxy
from jaxvars.optimizers.checks import checked_pairs
from jaxvars.optimizers.rules import Transformation
from jaxvars.tf.context.scope import init_scope
from jaxvars.tf.keras.adapter.facade import array
from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable, face_of

_WRITTEN = (
    "build", "_backend_apply_gradients", "_clip_gradients", "_apply_weight_decay",
    "_backend_update_step", "update_step",
)  # fmt: skip
_NOT_CALLED = (
    "_clip_by_norm", "_filter_empty_gradients", "_get_current_learning_rate", "_use_weight_decay",
    "_overwrite_model_variables_with_average_value", "_update_model_variables_moving_average",
    "_resource_apply_dense", "_resource_apply_sparse", "_create_slots", "_compute_gradients",
)  # fmt: skip
"""What Keras, or versions of it before 3, would call of a class, and nothing here does."""


class Bare(_core.Optimizer):
    """The count, learning rate and options of an optimizer that a program writes from the base."""

    def _transformation(self) -> Any:
        return Transformation(lambda _: (), _refuse_to_update)


def _refuse_to_update(*_: Any, **__: Any) -> NoReturn:
    raise NotImplementedError(
        "An optimizer that is made from tf.keras.optimizers.Optimizer has a method "
        "update_step(self, gradient, variable, learning_rate), which assigns the variable: "
        "self.assign_sub(variable, learning_rate * gradient)."
    )


class Steps(Proxy):
    """What an optimizer of a program's own may write, and what it may call there."""

    _core: Any
    learning_rate: Any
    built = False

    # ------------------------------------------------------------ what may be written
    def build(self, var_list: Iterable[Any]) -> None:
        """Make the slots of variables now."""
        variables: list[Any] = list(map(resolve_proxy, var_list))
        self._core.build(variables)
        self._places = {v._cell.key: i for i, v in enumerate(variables)}
        self.built = True

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one variable; assign it by `assign`, `assign_add` or `assign_sub`."""
        _, recipe = self._core._prepare([resolve_proxy(variable)])
        if any(owner is None for owner, _ in recipe.leaves):
            raise NotImplementedError(
                f"{type(self._core).__name__} keeps state of all variables together, so none is "
                "updated alone: write apply(self, grads, trainable_variables), and call "
                "super().apply there."
            )
        self._update([gradient], [variable], learning_rate)

    def _backend_apply_gradients(self, grads: Any, trainable_variables: Any) -> None:
        clipped = self._clip_gradients(grads)
        self._apply_weight_decay(trainable_variables)
        self._backend_update_step(clipped, trainable_variables, self.learning_rate)

    def _clip_gradients(self, grads: Any) -> list[Any]:
        _, recipe = self._core._prepare([variable for variable, _ in self._core._list_slots()])
        return list(map(Tensor, recipe._clip(dict(enumerate(map(array, grads)))).values()))

    def _apply_weight_decay(self, variables: Any) -> None:
        names, recipe = self._core._prepare(list(map(resolve_proxy, variables)))
        pairs = dict(zip(names, variables, strict=True))
        values = {name: array(v) for name, v in pairs.items() if name in recipe._decays}
        for name, value in recipe._decay(values, array(self.learning_rate)).items():
            self.assign(pairs[name], value)

    def _backend_update_step(
        self, grads: Any, trainable_variables: Any, learning_rate: Any
    ) -> None:
        if not _is_written(self, "update_step"):
            self._update(grads, trainable_variables, learning_rate)
            return
        for gradient, variable in zip(grads, trainable_variables, strict=True):
            self.update_step(gradient, variable, learning_rate)

    # ------------------------------------------------------------ what may be called there
    def assign(self, variable: Any, value: Any) -> None:
        """Assign a variable, a value in its type."""
        face = _face(variable)
        face.assign(array(value).astype(face.dtype.dtype))

    def assign_add(self, variable: Any, value: Any) -> None:
        """Add to a variable."""
        face = _face(variable)
        face.assign_add(array(value).astype(face.dtype.dtype))

    def assign_sub(self, variable: Any, value: Any) -> None:
        """Subtract from a variable."""
        face = _face(variable)
        face.assign_sub(array(value).astype(face.dtype.dtype))

    def add_variable(
        self, shape: Any, initializer: Any = "zeros", dtype: Any = None, aggregation: Any = "none",
        layout: Any = None, name: str | None = None,
    ) -> Variable:  # fmt: skip
        """Make a variable for the state; keep it in an attribute."""
        label = unique(name or "variable", self._core.shared)
        dtype = keras().backend.floatx() if dtype is None else as_dtype(dtype).name
        value = keras().initializers.get(initializer)(tuple(shape), dtype=dtype)
        made = Variable(value, trainable=False, name=f"{self._core.name}/{label}")
        self._core.shared[label] = made.aliased
        return made

    def add_variable_from_reference(
        self, reference_variable: Any, name: str | None = None, initializer: Any = "zeros"
    ) -> Variable:
        """Make a variable of the shape and type of another one."""
        face = _face(reference_variable)
        label = f"{face.aliased.name.replace('/', '_')}_{name or 'var'}"
        return self.add_variable(face.shape, initializer, face.dtype, name=label)

    def add_optimizer_variables(
        self, trainable_variables: Iterable[Any], name: Any, initializer: Any = "zeros"
    ) -> Any:
        """Make a variable for each of some; lists of them, if there are several names."""
        if isinstance(name, str):
            add = self.add_variable_from_reference
            return [add(v, name, initializer) for v in trainable_variables]
        listed = initializer if isinstance(initializer, list | tuple) else [initializer] * len(name)
        variables, pairs = list(trainable_variables), zip(name, listed, strict=True)
        return tuple(self.add_optimizer_variables(variables, *pair) for pair in pairs)

    def _get_variable_index(self, variable: Any) -> int:
        core: Any = resolve_proxy(variable)
        if core._cell.key not in vars(self).get("_places", {}):
            raise ValueError(
                f"Unknown variable: {core.name}. This optimizer can only be called for the "
                "variables it was originally built with. When working with a new set of "
                "variables, you should recreate a new optimizer instance."
            )
        return self._places[core._cell.key]

    # ------------------------------------------------------------ how it is done
    def _apply_by_steps(self, pairs: Sequence[tuple[Any, Any]], written: list[str]) -> None:
        """Update variables by the parts that the class has written, and the core's for the rest."""
        self._check_options(written)
        given = checked_pairs(pairs)
        if not self.built:
            self._build_once([face_of(variable) for _, variable in pairs])
        factor = self._core.loss_scale_factor
        grads = [Tensor(g if factor is None else g / factor) for g, _ in given]
        self._backend_apply_gradients(grads, [face_of(variable) for _, variable in given])
        self._core.iterations.assign_add(1)

    def _build_once(self, variables: list[Variable]) -> None:
        try:
            self.build(variables)
        except CreationError:  # in the body of a loop: made outside of the function
            self.built = False
            with init_scope():
                self.build(variables)
        self.built = True

    def _check_options(self, written: list[str]) -> None:
        options = ("use_ema", "gradient_accumulation_steps")
        if found := [name for name in options if getattr(self._core, name)]:
            raise NotImplementedError(
                f"{type(self).__name__} writes {written} itself, and has {found}, of "
                "which no such part would know. Leave the option out, or write "
                "apply_gradients(self, grads_and_vars), and call super().apply_gradients there."
            )

    def _update(self, grads: Any, variables: Any, learning_rate: Any) -> None:
        """Update variables by the core's rule alone."""
        names, recipe = self._core._prepare(list(map(resolve_proxy, variables)))
        slots = [self._core._holder(name)[slot] for name, slot in recipe.leaves]
        state = [slot.value for slot in slots]
        params = dict(zip(names, map(array, variables), strict=True))
        given = dict(zip(names, map(array, grads), strict=True))
        now = {"learning_rate": array(learning_rate), "step": self._core.iterations.value}
        updates, state = recipe.apply_rule(state, given, params, now)
        for name, variable in zip(names, variables, strict=True):
            self.assign_add(variable, updates[name])
        for slot, value in zip(slots, state, strict=True):
            slot.assign(value)


def refuse_uncalled(kind: type) -> None:
    """Raise TypeError for a class of optimizers that has what nothing here calls."""
    if found := [name for name in _NOT_CALLED if hasattr(kind, name)]:
        raise TypeError(
            f"{kind.__name__} has {found}, which nothing calls here. Write update_step(self, "
            "gradient, variable, learning_rate), which assigns one variable, or "
            "apply(self, grads, trainable_variables), which calls super().apply with others."
        )


def list_written(optimizer: Steps) -> list[str]:
    """Return the parts of an update that an optimizer has of its own."""
    return [name for name in _WRITTEN if _is_written(optimizer, name)]


def _is_written(optimizer: Steps, name: str) -> bool:
    return getattr(getattr(optimizer, name), "__func__", None) is not getattr(Steps, name)


def _face(variable: Any) -> Variable:
    core: Any = resolve_proxy(variable)
    return face_of(core)

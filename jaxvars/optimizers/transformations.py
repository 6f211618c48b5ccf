"""Transformations like optax's, of a rule for each variable or in another dtype.

A transformation here is given `learning_rate`, a scalar, and `step`, the number of updates so
far, with each update; what it returns is added to the variables.

Rules this file keeps:
- formulas are computed in float32 at least: in bfloat16, 0.999 is 1 and `1 - 0.999` zero. Slots
  have the dtypes of their variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from jaxvars.typing import Array

Slots: TypeAlias = dict[str, Any]

Rule: TypeAlias = Callable[..., tuple[Any, Slots]]


def per_variable(first: Callable[[Array], Slots], rule: Rule) -> Any:
    """Return a transformation from a rule for one variable.

    Args:
        first: the first slots of a variable of a value.
        rule: `rule(gradient, value, slots, rate, count)` returns what to add and the new slots;
            the rate and the count of this update, from 1, have the dtype of the others.
    """
    import optax

    def init(params: Any) -> Any:
        return _by_slot({name: first(param) for name, param in params.items()})

    def update(grads: Any, state: Any, params: Any, *, learning_rate: Array, step: Array,
               **_: Any) -> Any:  # fmt: skip
        deltas: Slots = {}
        news: Slots = {}
        for name, grad in grads.items():
            slots = {slot: values[name] for slot, values in state.items() if name in values}
            dtype = jnp.promote_types(grad.dtype, jnp.float32)
            given = (grad, params[name], slots, learning_rate, step)
            wide = jax.tree.map(lambda x, dtype=dtype: jnp.asarray(x, dtype), given)
            deltas[name], new = rule(*wide[:-1], wide[-1] + 1)
            news[name] = {slot: new[slot].astype(old.dtype) for slot, old in slots.items()}
        return deltas, _by_slot(news)

    made: Any = optax.GradientTransformationExtraArgs  # its types know nothing of extra arguments
    return made(init, update)


def in_float32(transformation: Any) -> Any:
    """Return a transformation of optax's that computes in float32 at least."""
    import optax

    run: Any = optax.with_extra_args_support(transformation)

    def widened(tree: Any) -> Any:
        return jax.tree.map(lambda x: x.astype(wide(x)), tree)

    def update(grads: Any, state: Any, params: Any, **given: Any) -> Any:
        with jax.numpy_dtype_promotion("standard"):  # optax mixes floats and counts
            return run.update(widened(grads), widened(state), widened(params), **given)

    made: Any = optax.GradientTransformationExtraArgs
    return made(run.init, update)


def from_optax(name: str) -> Callable[..., Any]:
    """Return a function that makes one of optax's transformations, and multiplies by the rate."""

    def make(*options: Any) -> Any:
        import optax

        return in_float32(optax.chain(getattr(optax, name)(*options), by_rate()))

    return make


def in_own_dtype(transformation: Any) -> Any:
    """Return a transformation that is given gradients in the dtypes of the variables."""
    import optax

    run: Any = optax.with_extra_args_support(transformation)

    def update(grads: Any, state: Any, params: Any, **given: Any) -> Any:
        grads = {name: grad.astype(params[name].dtype) for name, grad in grads.items()}
        return run.update(grads, state, params, **given)

    made: Any = optax.GradientTransformationExtraArgs
    return made(run.init, update)


def wide(x: Array) -> Any:
    """Return a dtype to compute in: float32 at least; for integers their own."""
    floats = jnp.issubdtype(x.dtype, jnp.inexact)
    return jnp.promote_types(x.dtype, jnp.float32) if floats else x.dtype


def _by_slot(slots: dict[str, Slots]) -> dict[str, Slots]:
    """Return values by slot and variable, from values by variable and slot."""
    turned: dict[str, Slots] = {}
    for name, values in slots.items():
        for slot, value in values.items():
            turned.setdefault(slot, {})[name] = value
    return turned


def zeros(*slots: str) -> Callable[[Array], Slots]:
    """Return a function that makes slots of zeros."""
    return lambda param: {slot: jnp.zeros_like(param) for slot in slots}


def by_rate() -> Any:
    """Return a transformation that multiplies by minus the learning rate."""
    return per_variable(zeros(), lambda grad, _param, _slots, rate, _count: (-rate * grad, {}))

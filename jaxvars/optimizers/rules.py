"""What each optimizer does with a gradient, as transformations like optax's.

A transformation here is given `learning_rate`, a scalar or one for each variable, and `step`, the
number of updates so far, with each update; what it returns is added to the variables.

Rules this file keeps:
- the formulas are those that TensorFlow documents, also in where epsilon stands; where optax
  computes the same formula its transformation is used;
- formulas are computed in float32 at least: in bfloat16, 0.999 is 1 and `1 - 0.999` zero. Slots
  have the dtypes of their variables.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from jaxvars.tensors.dtypes import is_inexact
from jaxvars.typing import Array

Slots: TypeAlias = dict[str, Any]

Rule: TypeAlias = Callable[..., tuple[Any, Slots]]


class Transformation(NamedTuple):
    """A transformation that takes extra arguments; for it alone optax is not imported."""

    init: Callable[..., Any]
    update: Callable[..., Any]


def rate_of(rate: Any, name: str) -> Array:
    """Return the learning rate of one variable."""
    return rate[name] if isinstance(rate, dict) else rate


def chain(*parts: Any) -> Any:
    """Return transformations, one after the other."""
    import optax

    made: Any = optax.GradientTransformationExtraArgs  # its types know nothing of extra arguments
    return optax.chain(*[made(*x) if isinstance(x, Transformation) else x for x in parts])


def per_variable(first: Callable[[Array], Slots], rule: Rule) -> Any:
    """Return a transformation from the first slots of a value, and a rule for one variable.

    `rule(gradient, value, slots, rate, count)` returns what to add and the new slots; the rate
    and the count of this update, from 1, have the dtype of the others.
    """

    def init(params: Any) -> Any:
        return _by_slot({name: first(param) for name, param in params.items()})

    def update(grads: Any, state: Any, params: Any, *, learning_rate: Array, step: Array,
               **_: Any) -> Any:  # fmt: skip
        deltas: Slots = {}
        news: Slots = {}
        for name, grad in grads.items():
            slots = {slot: values[name] for slot, values in state.items() if name in values}
            dtype = jnp.promote_types(grad.dtype, jnp.float32)
            given = (grad, params[name], slots, rate_of(learning_rate, name), step)
            wide = jax.tree.map(lambda x, dtype=dtype: jnp.asarray(x, dtype), given)
            deltas[name], new = rule(*wide[:-1], wide[-1] + 1)
            news[name] = {slot: new[slot].astype(old.dtype) for slot, old in slots.items()}
        return deltas, _by_slot(news)

    return Transformation(init, update)


def in_float32(transformation: Any) -> Any:
    """Return a transformation of optax's that computes in float32 at least."""
    import optax

    run: Any = optax.with_extra_args_support(transformation)

    def widened(tree: Any) -> Any:
        return jax.tree.map(lambda x: x.astype(wide(x)), tree)

    def update(grads: Any, state: Any, params: Any, **given: Any) -> Any:
        with jax.numpy_dtype_promotion("standard"):  # optax mixes floats and counts
            return run.update(widened(grads), widened(state), widened(params), **given)

    return Transformation(run.init, update)


def from_optax(name: str) -> Callable[..., Any]:
    """Return a function that makes one of optax's transformations, and multiplies by the rate."""

    def make(*options: Any) -> Any:
        import optax

        return in_float32(chain(getattr(optax, name)(*options), by_rate()))

    return make


def in_own_dtype(transformation: Any) -> Any:
    """Return a transformation that is given gradients in the dtypes of the variables."""
    import optax

    run: Any = optax.with_extra_args_support(transformation)

    def update(grads: Any, state: Any, params: Any, **given: Any) -> Any:
        grads = {name: grad.astype(params[name].dtype) for name, grad in grads.items()}
        return run.update(grads, state, params, **given)

    return Transformation(run.init, update)


def wide(x: Any) -> Any:
    """Return a dtype to compute in: float32 at least; for integers their own."""
    floats = is_inexact(x)
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


# ---------------------------------------------------------------- rules
def _move_average(average: Array, value: Array, part: float) -> Array:
    """Return an average after another value."""
    return average + (value - average) * (1 - part)


def sgd(momentum: float, nesterov: bool) -> Any:
    """Return gradient descent; the learning rate is in the momentum, if there is one."""
    if not momentum:
        return by_rate()

    def rule(grad: Array, _: Array, slots: Slots, rate: Array, count: Array) -> Any:
        velocity = slots["momentum"] * momentum - grad * rate
        delta = velocity * momentum - grad * rate if nesterov else velocity
        return delta, {"momentum": velocity}

    return per_variable(zeros("momentum"), rule)


def adam(beta_1: float, beta_2: float, epsilon: float, amsgrad: bool) -> Any:
    """Return Adam; epsilon is added before the bias is corrected."""

    def rule(grad: Array, _: Array, slots: Slots, rate: Array, count: Array) -> Any:
        rate = rate * jnp.sqrt(1 - beta_2**count) / (1 - beta_1**count)
        mean = _move_average(slots["momentum"], grad, beta_1)
        square = _move_average(slots["velocity"], jnp.square(jnp.abs(grad)), beta_2)
        new = {"momentum": mean, "velocity": square}
        if amsgrad:
            square = new["velocity_hat"] = jnp.maximum(slots["velocity_hat"], square)
        return -(mean * rate) / (jnp.sqrt(square) + epsilon), new

    return per_variable(zeros("momentum", "velocity", *["velocity_hat"] * amsgrad), rule)


def adamax(beta_1: float, beta_2: float, epsilon: float) -> Any:
    """Return Adamax; epsilon is added to the norm."""

    def rule(grad: Array, _: Array, slots: Slots, rate: Array, count: Array) -> Any:
        mean = _move_average(slots["momentum"], grad, beta_1)
        norm = jnp.maximum(beta_2 * slots["norm"], jnp.abs(grad))
        delta = -(rate * mean) / ((1 - beta_1**count) * (norm + epsilon))
        return delta, {"momentum": mean, "norm": norm}

    return per_variable(zeros("momentum", "norm"), rule)


def lamb(beta_1: float, beta_2: float, epsilon: float) -> Any:
    """Return Adam whose step for each variable has the size of the variable."""
    import optax

    adam = optax.scale_by_adam(beta_1, beta_2, epsilon)
    return in_float32(chain(adam, optax.scale_by_trust_ratio(), by_rate()))


def rmsprop(rho: float, momentum: float, epsilon: float, centered: bool) -> Any:
    """Return steps of the gradient over the root of its mean square, or standard deviation."""
    import optax

    scale = optax.scale_by_stddev if centered else optax.scale_by_rms
    parts = [scale(decay=rho, eps=epsilon), by_rate()]
    return in_float32(chain(*parts, *[optax.trace(momentum)] * bool(momentum)))


class NadamState(NamedTuple):
    """The product of the momenta so far, and the slots."""

    product: Array
    slots: Any


def nadam(beta_1: float, beta_2: float, epsilon: float) -> Any:
    """Return Adam with Nesterov momentum that grows as 0.96 ** count falls."""

    def part(count: Array) -> Array:
        return beta_1 * (1 - 0.5 * 0.96**count)

    def rule(grad: Array, _: Array, slots: Slots, rate: Array, count: Array, product: Any) -> Any:
        now, after = part(count), part(count + 1)
        mean = _move_average(slots["momentum"], grad, beta_1)
        square = _move_average(slots["velocity"], jnp.square(jnp.abs(grad)), beta_2)
        ahead = after * mean / (1 - product * after) + (1 - now) * grad / (1 - product)
        root = jnp.sqrt(square / (1 - beta_2**count))
        return -(ahead * rate) / (root + epsilon), {"momentum": mean, "velocity": square}

    first = per_variable(zeros("momentum", "velocity"), rule).init

    def init(params: Any) -> NadamState:
        return NadamState(jnp.ones((), jnp.float32), first(params))

    def update(grads: Any, state: NadamState, params: Any, *, step: Array, **rest: Any) -> Any:
        product = state.product * part(jnp.asarray(step, jnp.float32) + 1)
        run = per_variable(zeros(), functools.partial(rule, product=product))
        deltas, slots = run.update(grads, state.slots, params, step=step, **rest)
        return deltas, NadamState(product, slots)

    return Transformation(init, update)


def ftrl(power: float, first: float, l1: float, l2: float, shrinkage: float, beta: float) -> Any:
    """Return Follow The Regularized Leader."""

    def rule(grad: Array, param: Array, slots: Slots, rate: Array, count: Array) -> Any:
        old = slots["accumulator"]
        new = old + jnp.square(jnp.abs(grad))
        sigma = (new**-power - old**-power) / rate
        linear = slots["linear"] + grad + 2 * shrinkage * param - sigma * param
        quadratic = new**-power / rate + 2 * (l2 + beta / (2 * rate))
        target = (jnp.clip(linear, -l1, l1) - linear) / quadratic
        return target - param, {"accumulator": new, "linear": linear}

    def slots(param: Array) -> Slots:
        return {"accumulator": jnp.full_like(param, first), "linear": jnp.zeros_like(param)}

    return per_variable(slots, rule)


def adafactor(decay: float, epsilon_1: float, epsilon_2: float, clip_threshold: float) -> Any:
    """Return Adafactor, with the last two dimensions of a variable factored."""

    def second_moment(square: Array, slots: Slots, part: Array) -> tuple[Array, Slots]:
        def mixed(slot: str, value: Array) -> Array:
            return part * slots[slot] + (1 - part) * value

        if square.ndim < 2:
            velocity = mixed("velocity", square)
            return velocity, {"velocity": velocity}
        row, column = mixed("row", square.mean(-1)), mixed("column", square.mean(-2))
        scaled = row / row.mean(-1, keepdims=True)
        return scaled[..., None] * column[..., None, :], {"row": row, "column": column}

    def rule(grad: Array, param: Array, slots: Slots, rate: Array, count: Array) -> Any:
        rate = jnp.minimum(rate, 1 / jnp.sqrt(count)) * jnp.maximum(epsilon_2, _rms(param))
        moment, new = second_moment(jnp.square(jnp.abs(grad)) + epsilon_1, slots, 1 - count**decay)
        delta = grad / jnp.sqrt(moment)
        return -rate * delta / jnp.maximum(1, _rms(delta) / clip_threshold), new

    return per_variable(_factors, rule)


def _factors(param: Array) -> Slots:
    if param.ndim < 2:
        return {"velocity": jnp.zeros_like(param)}
    whole = jax.eval_shape(lambda x: (x.mean(-1), x.mean(-2)), param)
    row, column = (jnp.zeros(x.shape, x.dtype) for x in whole)
    return {"row": row, "column": column}


def _rms(x: Array) -> Array:
    return jnp.sqrt(jnp.mean(jnp.square(jnp.abs(x))))

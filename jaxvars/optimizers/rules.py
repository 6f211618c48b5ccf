"""What each optimizer does with a gradient, as transformations (`optimizers/transformations.py`).

Rules this file keeps:
- the formulas are those that TensorFlow documents, also in where epsilon stands;
- where optax computes the same formula its transformation is used.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from jaxvars.optimizers.transformations import per_variable, zeros
from jaxvars.typing import Array

Slots: TypeAlias = dict[str, Any]


def moved(average: Array, value: Array, part: float) -> Array:
    """Return an average after another value."""
    return average + (value - average) * (1 - part)


def momentum_sgd(momentum: float, nesterov: bool) -> Any:
    """Return gradient descent with momentum; the learning rate is in the momentum."""

    def rule(grad: Array, _: Array, slots: Slots, rate: Array, count: Array) -> Any:
        velocity = slots["momentum"] * momentum - grad * rate
        delta = velocity * momentum - grad * rate if nesterov else velocity
        return delta, {"momentum": velocity}

    return per_variable(zeros("momentum"), rule)


def adam(beta_1: float, beta_2: float, epsilon: float, amsgrad: bool) -> Any:
    """Return Adam; epsilon is added before the bias is corrected."""

    def rule(grad: Array, _: Array, slots: Slots, rate: Array, count: Array) -> Any:
        rate = rate * jnp.sqrt(1 - beta_2**count) / (1 - beta_1**count)
        mean = moved(slots["momentum"], grad, beta_1)
        square = moved(slots["velocity"], jnp.square(jnp.abs(grad)), beta_2)
        new = {"momentum": mean, "velocity": square}
        if amsgrad:
            square = new["velocity_hat"] = jnp.maximum(slots["velocity_hat"], square)
        return -(mean * rate) / (jnp.sqrt(square) + epsilon), new

    return per_variable(zeros("momentum", "velocity", *["velocity_hat"] * amsgrad), rule)


def adamax(beta_1: float, beta_2: float, epsilon: float) -> Any:
    """Return Adamax; epsilon is added to the norm."""

    def rule(grad: Array, _: Array, slots: Slots, rate: Array, count: Array) -> Any:
        mean = moved(slots["momentum"], grad, beta_1)
        norm = jnp.maximum(beta_2 * slots["norm"], jnp.abs(grad))
        delta = -(rate * mean) / ((1 - beta_1**count) * (norm + epsilon))
        return delta, {"momentum": mean, "norm": norm}

    return per_variable(zeros("momentum", "norm"), rule)


class NadamState(NamedTuple):
    """The product of the momenta so far, and the slots."""

    product: Array
    slots: Any


def nadam(beta_1: float, beta_2: float, epsilon: float) -> Any:
    """Return Adam with Nesterov momentum that grows as 0.96 ** count falls."""
    import optax

    def part(count: Array) -> Array:
        return beta_1 * (1 - 0.5 * 0.96**count)

    def rule(grad: Array, _: Array, slots: Slots, rate: Array, count: Array, product: Any) -> Any:
        now, after = part(count), part(count + 1)
        mean = moved(slots["momentum"], grad, beta_1)
        square = moved(slots["velocity"], jnp.square(jnp.abs(grad)), beta_2)
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

    made: Any = optax.GradientTransformationExtraArgs  # its types know nothing of extra arguments
    return made(init, update)


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

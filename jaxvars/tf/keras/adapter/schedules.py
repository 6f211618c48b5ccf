"""`tf.keras.optimizers.schedules`: learning rates that depend on the step.

>>> float(ExponentialDecay(0.5, decay_steps=10, decay_rate=0.5)(10))
0.25
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import jax.numpy as jnp

from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


class LearningRateSchedule(ABC):
    """The base of schedules: called with a step, they return a learning rate."""

    @abstractmethod
    def __call__(self, step: Any) -> Any:
        """Return the learning rate of a step."""

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return {name: value for name, value in vars(self).items() if name[0] != "_"}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LearningRateSchedule:
        """Return the schedule with these arguments."""
        return cls(**config)


def _float(value: Any) -> Array:
    return to_array(value).astype(jnp.float32)


def _whole_if(staircase: bool, part: Array) -> Array:
    return jnp.floor(part) if staircase else part


@final
class ExponentialDecay(LearningRateSchedule):
    """A rate that is multiplied by a number every so many steps.

    Args:
        initial_learning_rate: the first rate.
        decay_steps: after how many steps it is multiplied.
        decay_rate: by what.
        staircase: whether it stays the same in between.
        name: of no effect.
    """

    def __init__(
        self, initial_learning_rate: Any, decay_steps: int, decay_rate: float,
        staircase: bool = False, name: str = "ExponentialDecay",
    ) -> None:  # fmt: skip
        _check_steps("decay_steps", decay_steps)
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.decay_rate, self.staircase, self.name = decay_rate, staircase, name

    def __call__(self, step: Any) -> Tensor:
        """Return the learning rate of a step."""
        part = _whole_if(self.staircase, _float(step) / self.decay_steps)
        return Tensor(_float(self.initial_learning_rate) * _float(self.decay_rate) ** part)


@final
class InverseTimeDecay(LearningRateSchedule):
    """A rate that falls as one by the number of steps.

    Args:
        initial_learning_rate: the first rate.
        decay_steps: after how many steps the divisor has grown by `decay_rate`.
        decay_rate: how much.
        staircase: whether it stays the same in between.
        name: of no effect.
    """

    def __init__(
        self, initial_learning_rate: Any, decay_steps: int, decay_rate: float,
        staircase: bool = False, name: str = "InverseTimeDecay",
    ) -> None:  # fmt: skip
        _check_steps("decay_steps", decay_steps)
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.decay_rate, self.staircase, self.name = decay_rate, staircase, name

    def __call__(self, step: Any) -> Tensor:
        """Return the learning rate of a step."""
        part = _whole_if(self.staircase, _float(step) / self.decay_steps)
        return Tensor(_float(self.initial_learning_rate) / (1 + _float(self.decay_rate) * part))


@final
class PiecewiseConstantDecay(LearningRateSchedule):
    """A rate that is another one after each of some steps.

    Args:
        boundaries: the last steps of each rate, growing.
        values: the rates, one more.
        name: of no effect.
    """

    def __init__(
        self, boundaries: Sequence[Any], values: Sequence[Any], name: str = "PiecewiseConstant"
    ) -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError(
                "The length of boundaries should be 1 less than the length of values. Received: "
                f"boundaries={boundaries} of length {len(boundaries)}, and values={values} of "
                f"length {len(values)}."
            )
        self.boundaries, self.values, self.name = boundaries, values, name

    def __call__(self, step: Any) -> Tensor:
        """Return the learning rate of a step."""
        ends = jnp.stack(list(map(to_array, self.boundaries)))
        at = jnp.sum(to_array(step) > ends)
        return Tensor(jnp.stack(list(map(_float, self.values)))[at])


@final
class PolynomialDecay(LearningRateSchedule):
    """A rate that falls to another one as a power of the steps that are left.

    Args:
        initial_learning_rate: the first rate.
        decay_steps: after how many steps it is the last one.
        end_learning_rate: the last rate.
        power: the power.
        cycle: whether it begins again, over more steps each time.
        name: of no effect.
    """

    def __init__(
        self, initial_learning_rate: Any, decay_steps: int, end_learning_rate: float = 0.0001,
        power: float = 1.0, cycle: bool = False, name: str = "PolynomialDecay",
    ) -> None:  # fmt: skip
        _check_steps("decay_steps", decay_steps)
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.end_learning_rate, self.power = end_learning_rate, power
        self.cycle, self.name = cycle, name

    def __call__(self, step: Any) -> Tensor:
        """Return the learning rate of a step."""
        now, steps = _float(step), _float(self.decay_steps)
        if self.cycle:
            steps = steps * jnp.where(now == 0, 1.0, jnp.ceil(now / steps))
        else:
            now = jnp.minimum(now, steps)
        last = _float(self.end_learning_rate)
        fall = (_float(self.initial_learning_rate) - last) * (1 - now / steps) ** self.power
        return Tensor((fall + last).astype(jnp.float32))


@final
class CosineDecay(LearningRateSchedule):
    """A rate that rises to a target, if there is one, and then falls as half a cosine.

    Args:
        initial_learning_rate: the first rate.
        decay_steps: over how many steps it falls.
        alpha: the last rate, as a part of that from which it falls.
        name: of no effect.
        warmup_target: the rate to rise to first.
        warmup_steps: over how many steps.
    """

    def __init__(
        self, initial_learning_rate: Any, decay_steps: int, alpha: float = 0.0,
        name: str = "CosineDecay", warmup_target: Any = None, warmup_steps: int = 0,
    ) -> None:  # fmt: skip
        _check_steps("decay_steps", decay_steps)
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.alpha, self.name = alpha, name
        self.warmup_target, self.warmup_steps = warmup_target, warmup_steps

    def __call__(self, step: Any) -> Tensor:
        """Return the learning rate of a step."""
        first, now = _float(self.initial_learning_rate), _float(step)
        if self.warmup_target is None:
            return Tensor(self._fallen(now, first))
        top = _float(self.warmup_target)
        rising = first + (top - first) * now / max(self.warmup_steps, 1)
        falling = self._fallen(now - self.warmup_steps, top)
        return Tensor(jnp.where(now < self.warmup_steps, rising, falling).astype(jnp.float32))

    def _fallen(self, step: Array, top: Array) -> Array:
        part = jnp.minimum(step, self.decay_steps) / self.decay_steps
        wave = 0.5 * (1 + jnp.cos(math.pi * part))
        return (top * ((1 - self.alpha) * wave + self.alpha)).astype(jnp.float32)


@final
class CosineDecayRestarts(LearningRateSchedule):
    """A rate that falls as half a cosine again and again.

    Args:
        initial_learning_rate: the first rate.
        first_decay_steps: over how many steps it falls the first time.
        t_mul: by what these are multiplied each time.
        m_mul: by what the first rate is multiplied each time.
        alpha: the last rate, as a part of the first.
        name: of no effect.

    Source: Loshchilov and Hutter, SGDR, 2016 (https://arxiv.org/abs/1608.03983).
    """

    def __init__(
        self, initial_learning_rate: Any, first_decay_steps: int, t_mul: float = 2.0,
        m_mul: float = 1.0, alpha: float = 0.0, name: str = "SGDRDecay",
    ) -> None:  # fmt: skip
        _check_steps("first_decay_steps", first_decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.first_decay_steps = first_decay_steps
        self.t_mul, self.m_mul, self.alpha, self.name = t_mul, m_mul, alpha, name

    def __call__(self, step: Any) -> Tensor:
        """Return the learning rate of a step."""
        done = _float(step) / self.first_decay_steps
        times = jnp.floor(done)
        part = done - times
        if self.t_mul != 1.0:
            times = jnp.floor(jnp.log(1 - done * (1 - self.t_mul)) / math.log(self.t_mul))
            before = (1 - self.t_mul**times) / (1 - self.t_mul)
            part = (done - before) / self.t_mul**times
        wave = 0.5 * self.m_mul**times * (1 + jnp.cos(math.pi * part))
        found = _float(self.initial_learning_rate) * ((1 - self.alpha) * wave + self.alpha)
        return Tensor(found.astype(jnp.float32))


def _check_steps(name: str, steps: Any) -> None:
    if isinstance(steps, int | float) and steps <= 0:
        raise ValueError(f"Argument `{name}` must be > 0. Received: {name}={steps}")


def serialize(learning_rate_schedule: LearningRateSchedule) -> dict[str, Any]:
    """Return a schedule as its class name and arguments."""
    kind = type(learning_rate_schedule).__name__
    return {"class_name": kind, "config": learning_rate_schedule.get_config()}


def deserialize(config: dict[str, Any], custom_objects: Any = None) -> LearningRateSchedule:
    """Return the schedule that `serialize` has described."""
    known = {**globals(), **(custom_objects or {})}
    return known[config["class_name"]].from_config(config["config"])

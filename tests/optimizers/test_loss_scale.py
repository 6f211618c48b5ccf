"""A wrapper has what the optimizer inside has: every public name, one after the other."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars import optimizers
from jaxvars.optimizers.checks import list_options

OPTIONS: dict[str, Any] = {
    "weight_decay": 0.5, "use_ema": True, "ema_momentum": 0.25, "gradient_accumulation_steps": 2,
    "clipnorm": 3.0,
}  # fmt: skip


def inner() -> optimizers.SGD:
    return optimizers.SGD(0.125, momentum=0.5, **OPTIONS)


def wrapped() -> optimizers.LossScaleOptimizer:
    return optimizers.LossScaleOptimizer(inner(), 1.0, 10_000)


def variables() -> list[jv.Variable]:
    return [jv.Variable([1.0, -2.0], name="v"), jv.Variable(3.0, name="w")]


def train(optimizer: optimizers.Optimizer, some: list[jv.Variable]) -> None:
    for _ in range(4):
        optimizer.apply_gradients([(v.value * 2, v) for v in some])


def averages(optimizer: optimizers.Optimizer, some: list[jv.Variable]) -> Any:
    with optimizer.averaged():
        return [v.numpy().tolist() for v in some]


def swapped(optimizer: optimizers.Optimizer, some: list[jv.Variable]) -> Any:
    optimizer.swap_averages()
    return [v.numpy().tolist() for v in some]


def finalized(optimizer: optimizers.Optimizer, some: list[jv.Variable]) -> Any:
    optimizer.finalize_variable_values(some)
    return [v.numpy().tolist() for v in some]


def built(optimizer: optimizers.Optimizer, some: list[jv.Variable]) -> Any:
    late = jv.Variable(5.0, name="late")
    optimizer.build({"late": late})
    return sorted(optimizer.get_slot(late, kind).name for kind in ("momentum", "average"))


def undecayed(optimizer: optimizers.Optimizer, some: list[jv.Variable]) -> Any:
    with pytest.raises(ValueError, match="before the first update"):
        optimizer.exclude_from_weight_decay(some)


def rates(optimizer: optimizers.Optimizer, some: list[jv.Variable]) -> Any:
    before, optimizer.learning_rate = float(optimizer.learning_rate), 0.5
    train(optimizer, some)
    return before, float(optimizer.learning_rate), [v.numpy().tolist() for v in some]


def minimized(optimizer: optimizers.Optimizer, some: list[jv.Variable]) -> Any:
    losses = [float(optimizer.minimize(lambda: (some[0] * some[1]).sum(), some)) for _ in range(3)]
    return losses, [v.numpy().tolist() for v in some]


LOOKS: dict[str, Callable[[Any, list[jv.Variable]], Any]] = {
    "apply_gradients": lambda o, some: [train(o, some), [v.numpy().tolist() for v in some]],
    "averaged": averages,
    "build": built,
    "exclude_from_weight_decay": undecayed,
    "finalize_variable_values": finalized,
    "get_slot": lambda o, some: [o.get_slot(v, "momentum").numpy().tolist() for v in some],
    "iterations": lambda o, some: int(o.iterations),
    "learning_rate": rates,
    "minimize": minimized,
    "scale_loss": lambda o, some: float(o.scale_loss(jnp.float32(2.0))),
    "shared": lambda o, some: {name: int(v) for name, v in o.shared.items()},
    "slots": lambda o, some: {
        name: {kind: v.numpy().tolist() for kind, v in each.items()}
        for name, each in o.slots.items()
    },
    "swap_averages": swapped,
}
OWN = {"inner_optimizer", "dynamic_growth_steps", "dynamic_scale", "step_counter"}


def public_names(optimizer: optimizers.Optimizer) -> set[str]:
    of_modules = {"name", *dir(jv.Module())}
    return {name for name in dir(optimizer) if name[0] != "_"} - of_modules


def test_every_public_name_is_looked_at() -> None:
    options = list_options(optimizers.SGD)
    assert public_names(inner()) == LOOKS.keys() | options
    assert public_names(wrapped()) - OWN <= LOOKS.keys() | options


def test_a_wrapped_optimizer_does_what_it_does_alone() -> None:
    pairs = [(inner(), variables()), (wrapped(), variables())]
    for optimizer, some in pairs:
        train(optimizer, some)
    for name, look in LOOKS.items():
        alone, around = (look(optimizer, some) for optimizer, some in pairs)
        assert alone == around, name


def test_options_of_a_wrapped_optimizer_are_those_of_the_inner_one() -> None:
    optimizer, some = wrapped(), variables()
    for name in list_options(optimizers.SGD):
        assert getattr(optimizer, name) == getattr(inner(), name)
        given: Any = {"clipnorm": 0.5, "gradient_accumulation_steps": 3}
        setattr(optimizer, name, given.get(name, getattr(optimizer, name)))
        assert getattr(optimizer.inner_optimizer, name) == getattr(optimizer, name)
        assert name not in vars(optimizer)
    assert (optimizer.inner_optimizer.clipnorm, optimizer.clipnorm) == (0.5, 0.5)
    optimizer.build(some)
    with pytest.raises(ValueError, match=r"SGD\.clipnorm is set to 5 at .*after the first update"):
        optimizer.clipnorm = 5
    with pytest.raises(ValueError, match=r"LossScaleOptimizer\.dynamic_growth_steps is set to 5"):
        optimizer.dynamic_growth_steps = 5


def test_a_wrapper_of_another_optimizer_goes_by_that() -> None:
    optimizer, (v, _) = wrapped(), variables()
    optimizer.inner_optimizer = optimizers.SGD(0.5)
    optimizer.learning_rate = 0.25
    optimizer.apply_gradients([([4.0, 0.0], v)])
    assert (v.numpy()[0], int(optimizer.iterations)) == (0.0, 1)


def test_a_loss_is_scaled_once() -> None:
    optimizer, (v, _) = optimizers.LossScaleOptimizer(optimizers.SGD(0.5)), variables()
    optimizer.loss_scale_factor = 2.0
    with pytest.raises(ValueError, match=r"no loss_scale_factor itself: .* divided by 2\.0, too"):
        optimizer.minimize(lambda: v.sum(), [v])
    assert v.numpy().tolist() == [1.0, -2.0]
    with pytest.raises(ValueError, match="dynamic_growth_steps is at least 1, not 0"):
        optimizers.LossScaleOptimizer(optimizers.SGD(0.5), dynamic_growth_steps=0)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_is_a_wrapper_too(copied: Any) -> None:
    optimizer, some = optimizers.LossScaleOptimizer(optimizers.SGD(0.5, 0.5)), variables()
    train(optimizer, some)
    twin, twins = copied((optimizer, some))
    train(optimizer, some)
    train(twin, twins)
    assert [v.numpy().tolist() for v in twins] == [v.numpy().tolist() for v in some]
    with pytest.raises(AttributeError, match="'LossScaleOptimizer' object has no attribute 'bet"):
        _ = twin.bet
    with pytest.raises(AttributeError, match="apply_gradients"):
        _ = twin.step


@pytest.mark.parametrize("make", [inner, wrapped])
def test_slots_are_divided_as_their_variables(make: Callable[[], optimizers.Optimizer]) -> None:
    mesh, optimizer, v = jv.mesh({"data": 8}), make(), jv.Variable(np.zeros((16, 2)), name="v")
    optimizer.build([v])
    jv.place(v, jv.parallel.fully_sharded("data"), mesh=mesh, optimizer=optimizer)
    specs = {kind: slot.sharding for kind, slot in optimizer.slots["v"].items()}
    whole = jax.NamedSharding(mesh, jax.P())
    assert specs.pop("window") == whole
    assert set(specs.values()) == {v.sharding} != {whole}
    assert {x.sharding for x in optimizer.variables if x.shape == ()} == {whole}

"""Every optimizer, loss, metric, draw, initializer and control flow, lowered for accelerators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from lowering import calls_host, unknown_calls

import jaxvars as jv

KINDS = ("optimizers", "losses", "metrics", "initializers")
CLASSES = {
    f"{kind}.{name}": found
    for kind in KINDS
    for name, found in vars(getattr(jv, kind)).items()
    if isinstance(found, type)
    and found.__module__.startswith("jaxvars")
    and name not in ("Loss", "Metric", "Optimizer", "Initializer")
}
Program = Callable[[Any], Any]
X = jnp.linspace(0.1, 0.9, 12).reshape(4, 3)


def optimizer(made: Any) -> Program:
    w = jv.Variable(jnp.ones((3, 3)))
    return lambda x: made.minimize(lambda: jnp.sum((x @ w) ** 2), [w])


def loss(made: Any) -> Program:
    is_sparse = "Sparse" in type(made).__name__
    labels = jnp.arange(4) % 3 if is_sparse else jax.nn.one_hot(jnp.arange(4) % 3, 3)
    return jax.value_and_grad(lambda x: jnp.sum(made(labels, x)))


def metric(made: Any) -> Program:
    name = type(made).__name__

    def program(x: Any) -> Any:
        one = jax.nn.one_hot(jnp.arange(4) % 3, 3)
        labels = jnp.arange(4) % 3 if "Sparse" in name or name == "ConfusionMatrix" else one
        guess = jnp.argmax(x, -1) if name == "ConfusionMatrix" else x
        given = (x,) if name in ("Mean", "Sum") else (labels, guess)
        made.update_state(*given)
        return made.result()

    return program


def initializer(made: Any) -> Program:
    return lambda x: made(x.shape if "Identity" not in type(made).__name__ else (3, 3))


MORE = {
    "optimizers.Optax": lambda: jv.optimizers.Optax(__import__("optax").adam(0.1)),
    "optimizers.LossScaleOptimizer": lambda: jv.optimizers.LossScaleOptimizer(
        jv.optimizers.SGD(0.1)
    ),
    "initializers.Constant": lambda: jv.initializers.Constant(2.0),
    "metrics.MeanMetricWrapper": lambda: jv.metrics.MeanMetricWrapper(jv.losses.mean_squared_error),
    "metrics.ConfusionMatrix": lambda: jv.metrics.ConfusionMatrix(3),
}  # fmt: skip
MAKERS = {"optimizers": optimizer, "losses": loss, "metrics": metric, "initializers": initializer}


def check(program: Program) -> None:
    concrete = jv.compile(program).trace(X)
    assert not calls_host(concrete)
    assert unknown_calls(concrete) == {}


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_lowered_for_accelerators(name):
    made = MORE.get(name, CLASSES[name])()
    check(MAKERS[name.split(".")[0]](made))


def draws() -> dict[str, Program]:
    """Return what draws, by name."""
    found = jv.random
    return {
        "normal": lambda x: found.normal(x.shape),
        "uniform": lambda x: found.uniform(x.shape),
        "truncated_normal": lambda x: found.truncated_normal(x.shape),
        "randint": lambda x: found.randint(x.shape, 0, 9),
        "bernoulli": lambda x: found.bernoulli(x.shape),
        "categorical": lambda x: found.categorical(x, 5),
        "permutation": lambda x: found.permutation(x),
        "shuffle": lambda x: found.shuffle(x),
        "choice": lambda x: found.choice(x[0]),
        "gamma": lambda x: found.gamma(x.shape, x),
        "poisson": lambda x: found.poisson(x.shape, x),
        "binomial": lambda x: found.binomial(x.shape, 5, x),
        "exponential": lambda x: found.exponential(x.shape),
    }


@pytest.mark.parametrize("name", draws())
def test_a_draw_is_lowered_for_accelerators(name):
    check(draws()[name])


total = jv.Variable(0.0)


def add(x: Any) -> Any:
    total.assign_add(jnp.sum(x))
    return x * total


FLOW: dict[str, Program] = {
    "cond": lambda x: jv.cond(x.sum() > 1, lambda: add(x), lambda: x),
    "switch": lambda x: jv.switch(jnp.argmax(x[0]), [lambda: add(x), lambda: x]),
    "while_loop": lambda x: jv.while_loop(lambda y: y.sum() < 9, add, x),
    "fori_loop": lambda x: jv.fori_loop(0, 3, lambda _, y: add(y), x),
    "scan": lambda x: jv.scan(lambda c, y: (add(c), y), x[0], x),
    "map_fn": lambda x: jv.map_fn(add, x),
    "vectorized_map": lambda x: jv.vectorized_map(lambda y: y * total, x),
    "recompute": lambda x: jax.grad(lambda y: jnp.sum(jv.recompute(jnp.sin)(y) * total))(x),
    "checks": lambda x: (jv.debugging.assert_positive(x), add(x))[1],
}  # fmt: skip


@pytest.mark.parametrize("name", FLOW)
def test_control_flow_is_lowered_for_accelerators(name):
    check(FLOW[name])

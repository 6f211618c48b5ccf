"""`minimize` tells a transformation of optax what the loss is, and how to compute it elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxvars as jv
from jaxvars.errors import ControlFlowError
from jaxvars.optimizers import LossScaleOptimizer, Optax

TRANSFORMATIONS: dict[str, Callable[[], Any]] = {
    "reduce_on_plateau": lambda: optax.chain(
        optax.sgd(0.3), optax.contrib.reduce_on_plateau(factor=0.5, patience=1, rtol=0.9)
    ),
    "line_search": lambda: optax.chain(
        optax.sgd(1.0), optax.scale_by_backtracking_linesearch(max_backtracking_steps=5)
    ),
}


def loss_of(params: Any, scale: Any) -> Any:
    return scale * ((params["w"] - 1) ** 4).sum()


def model_of() -> tuple[jv.Variable, jv.Variable]:
    return jv.Variable([3.0, 0.0], name="w"), jv.Variable(2.0, name="scale", trainable=False)


def steps_of(transformation: Any, count: int) -> list[Any]:
    """Return what optax does by itself."""
    params = {"w": jnp.asarray([3.0, 0.0])}
    state, seen = transformation.init(params), []
    for _ in range(count):
        value, grad = jax.value_and_grad(loss_of)(params, 2.0)
        given = {"value": value, "grad": grad, "value_fn": lambda p: loss_of(p, 2.0)}
        updates, state = transformation.update(grad, state, params, **given)
        params = optax.apply_updates(params, updates)
        seen.append(params["w"])
    return seen


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize("how", ["eager", "compiled", "pure", "scaled"])
def test_minimize_tells_the_loss(name: str, how: str) -> None:
    w, scale = model_of()
    optimizer: Any = Optax(TRANSFORMATIONS[name]())
    optimizer = LossScaleOptimizer(optimizer, 4.0) if how == "scaled" else optimizer

    def body() -> Any:
        return optimizer.minimize(lambda: loss_of({"w": w}, scale), [w])

    def run_pure() -> None:
        state = jv.State.of(w=w, scale=scale, optimizer=optimizer)
        jax.jit(jv.functionalize(body))(state)[1].commit()

    optimizer.build([w])
    step: Any = {"eager": body, "pure": run_pure}.get(how) or jv.compile(body)
    for wanted in steps_of(TRANSFORMATIONS[name](), 3):
        step()
        np.testing.assert_allclose(w.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_lbfgs_finds_the_minimum() -> None:
    w, scale = model_of()
    optimizer = Optax(optax.lbfgs())
    step = jv.compile(lambda: optimizer.minimize(lambda: scale * ((w - 1) ** 2).sum(), [w]))
    losses = [float(step()) for _ in range(3)]
    assert (losses[0], losses[2]) == (10.0, 0.0)


def test_the_loss_is_traced_again_where_a_transformation_asks_alone() -> None:
    for transformation, count in ((optax.sgd(0.1), 1), (TRANSFORMATIONS["line_search"](), 2)):
        (w, scale), runs = model_of(), []

        def loss(w: Any = w, scale: Any = scale, runs: list[None] = runs) -> Any:
            runs.append(None)
            return loss_of({"w": w}, scale)

        optimizer = Optax(transformation)
        optimizer.build([w])
        step = jv.compile(lambda optimizer=optimizer, loss=loss, w=w: optimizer.minimize(loss, [w]))
        step(), step()
        assert len(runs) == count * step.trace_count


def test_a_loss_that_assigns_is_not_searched() -> None:
    w, count = model_of()
    optimizer = Optax(TRANSFORMATIONS["line_search"]())

    def loss() -> Any:
        count.assign_add(1)
        return loss_of({"w": w}, 2.0)

    for step in (
        lambda: optimizer.minimize(loss, [w]),
        jv.compile(lambda: optimizer.minimize(loss, [w])),
    ):
        with pytest.raises(
            ControlFlowError, match=r"test_objective.py:\d+.*assigns variable 'scale'"
        ):
            step()
    assert (w.numpy().tolist(), int(optimizer.iterations)) == ([3.0, 0.0], 0)


def test_a_loss_without_its_function_is_a_value() -> None:
    w, _ = model_of()

    def step(optimizer: Optax) -> None:
        with jv.GradientTape() as tape:
            loss = loss_of({"w": w}, 2.0)
        optimizer.minimize(loss, [w], tape)

    step(Optax(optax.polyak_sgd()))
    np.testing.assert_allclose(w.numpy(), steps_of(optax.polyak_sgd(), 1)[0], rtol=1e-6)
    with pytest.raises(TypeError, match="give minimize a function that computes the loss"):
        step(Optax(TRANSFORMATIONS["line_search"]()))


def test_one_loss_of_several_is_not_that_of_the_mean_gradient() -> None:
    w, _ = model_of()
    optimizer = Optax(optax.polyak_sgd(), gradient_accumulation_steps=2)
    with pytest.raises(TypeError, match="value"):
        optimizer.minimize(lambda: loss_of({"w": w}, 2.0), [w])

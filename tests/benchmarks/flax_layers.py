"""What a training step of flax layers costs in jaxvars, over the same hand-written step.

    python tests/benchmarks/flax_layers.py     # about two minutes

The step is that of a multilayer perceptron with batch normalization and dropout, with optax's
adam: small, so that the time is that of the call, and wider, so that it computes. The others are
`jax.jit` of a function over donated trees of linen's arrays, and `nnx.jit` of an nnx module and
`nnx.Optimizer`, donated, plain and in flax's ways to call it faster: `nnx.cached_partial`, and
`nnx.jit_partial` where flax has it. Each one's loss after the same number of steps is shown: they
differ by the draws of dropout.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from measuring import Effort, Row, compared, nnx_ways, run_jobs

import jaxvars as jv

SIZES = {"small": (4, 16, 8), "wide": (4, 512, 128)}  # layers, features, examples


class Linen(nn.Module):
    layers: int
    features: int

    @nn.compact
    def __call__(self, x: Any, train: bool = False) -> Any:
        for _ in range(self.layers):
            x = nn.relu(nn.BatchNorm(use_running_average=not train)(nn.Dense(self.features)(x)))
        return nn.Dense(10)(nn.Dropout(0.1, deterministic=not train)(x))


class Nnx(nnx.Module):
    def __init__(self, layers: int, features: int, rngs: nnx.Rngs) -> None:
        self.dense = nnx.List([nnx.Linear(features, features, rngs=rngs) for _ in range(layers)])
        self.norm = nnx.List([nnx.BatchNorm(features, rngs=rngs) for _ in range(layers)])
        self.drop = nnx.Dropout(0.1, rngs=rngs)
        self.out = nnx.Linear(features, 10, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        for dense, norm in zip(self.dense, self.norm, strict=True):
            x = nn.relu(norm(dense(x)))
        return self.out(self.drop(x))


def loss_of(logits: Any, y: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def by_hand(layers: int, features: int, x: Any, y: Any) -> Callable[[], Any]:
    net, tx = Linen(layers, features), optax.adam(1e-3)
    variables = jax.jit(net.init)(jax.random.key(0), x)

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any, x: Any, y: Any) -> Any:
        params, stats, opt, key = state
        key, dropout = jax.random.split(key)

        def loss(params: Any) -> Any:
            logits, new = net.apply(
                {"params": params, "batch_stats": stats},
                x, train=True, rngs={"dropout": dropout}, mutable=["batch_stats"],
            )  # fmt: skip
            return loss_of(logits, y), new["batch_stats"]

        (value, stats), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        updates, opt = tx.update(gradients, opt, params)
        return value, (optax.apply_updates(params, updates), stats, opt, key)

    params = variables["params"]
    state = (params, variables["batch_stats"], tx.init(params), jax.random.key(1))

    def run() -> Any:
        nonlocal state
        loss, state = step(state, x, y)
        return loss

    return run


def jaxvars(model: Any, x: Any, y: Any, **mode: Any) -> Callable[[], Any]:
    optimizer = jv.optimizers.Optax(optax.adam(1e-3))

    @jv.compile
    def step(x: Any, y: Any) -> Any:
        with jv.GradientTape() as tape:
            loss = loss_of(model(x, **mode), y)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    return lambda: step(x, y)


def by_nnx(layers: int, features: int, x: Any, y: Any, way: str) -> Callable[[], Any]:
    net = Nnx(layers, features, nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.adam(1e-3), wrt=nnx.Param)

    def step(net: Any, optimizer: Any, x: Any, y: Any) -> Any:
        value, gradients = nnx.value_and_grad(lambda net: loss_of(net(x), y))(net)
        optimizer.update(net, gradients)
        return value

    run = nnx_ways()[way](step, net, optimizer)
    return lambda: run(x, y)


def candidates(layers: int, features: int, examples: int) -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(examples, features)), jnp.float32)
    y = jnp.asarray(rng.integers(0, 10, examples))
    net = Linen(layers, features)
    linen = jv.interop.from_flax(net, x, rngs=0)
    theirs = jv.interop.from_flax(Nnx(layers, features, nnx.Rngs(0)))
    return {
        "linen, hand-written jax.jit": by_hand(layers, features, x, y),
        "jaxvars, from_flax(linen)": jaxvars(linen, x, y, train=True),
        "jaxvars, from_flax(nnx)": jaxvars(theirs, x, y),
        **{way: by_nnx(layers, features, x, y, way) for way in nnx_ways()},
    }


def flax_layers(effort: Effort) -> list[Row]:
    """Return what a step of each size takes each way, and the loss after as many steps."""
    rows: list[Row] = []
    for size, shape in list(SIZES.items())[: (2, 2, 1)[effort]]:
        steps = candidates(*shape)
        found = compared(steps, *((41, 30), (15, 30), (1, 1))[effort])
        rows += [{"size": size, **row, "loss": float(steps[row["way"]]())} for row in found]
    return rows


if __name__ == "__main__":
    run_jobs(__doc__, {"flax layers": flax_layers})

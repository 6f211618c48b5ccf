"""A small transformer block, trained by jaxvars and in hand-written JAX, on any mesh."""

from __future__ import annotations

import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxvars as jv

WIDTH, HEADS, LENGTH, BATCH = 16, 4, 4, 8
P = jax.P

SHAPES = {
    "attention/q": (WIDTH, WIDTH), "attention/k": (WIDTH, WIDTH), "attention/v": (WIDTH, WIDTH),
    "attention/out": (WIDTH, WIDTH), "mlp/up": (WIDTH, 4 * WIDTH), "mlp/bias": (4 * WIDTH,),
    "mlp/down": (4 * WIDTH, WIDTH), "scale": (WIDTH,),
}  # fmt: skip

TENSOR_PARALLEL = [
    (re.compile(r"(q|k|v|up)$"), P(None, "model")),
    (re.compile(r"(out|down)$"), P("model", None)),
    ("**/bias", P("model")),
    ("**", P()),
]

LAYOUTS = {
    "data": ({"data": 8}, [("**", P())]),
    "fsdp": ({"data": 8}, [("**", jv.parallel.fully_sharded("data"))]),
    "tensor": ({"data": 2, "model": 4}, TENSOR_PARALLEL),
}


def first_values():
    rng = np.random.default_rng(0)
    return {
        path: (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)
        for path, shape in SHAPES.items()
    }


def batch(step=0):
    rng = np.random.default_rng(100 + step)
    x, y = rng.normal(size=(2, BATCH, LENGTH, WIDTH)).astype(np.float32)
    return x, y


def forward(params, x):
    def heads(name):
        return (x @ params[f"attention/{name}"]).reshape(*x.shape[:2], HEADS, WIDTH // HEADS)

    logits = jnp.einsum("bqhd,bkhd->bhqk", heads("q"), heads("k"))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(logits), heads("v")).reshape(x.shape)
    x = x + mixed @ params["attention/out"]
    x = x * params["scale"] / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-6)
    return x + jax.nn.relu(x @ params["mlp/up"] + params["mlp/bias"]) @ params["mlp/down"]


def loss_of(params, x, y):
    return jnp.mean((forward(params, x) - y) ** 2)


class Block(jv.Module):
    def __init__(self):
        self.params = {path: jv.Variable(x, name=path) for path, x in first_values().items()}


def make_step(model, optimizer, **options):
    """The step as one writes it; it knows nothing of meshes."""

    @jv.compile(**options)
    def step(x, y):
        with jv.GradientTape() as tape:
            loss = loss_of(model.params, x, y)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step


def by_hand(shardings, mesh):
    """The same step as one writes it with jax.jit and optax."""
    rule = optax.adam(0.01)
    state = jax.eval_shape(rule.init, {path: jnp.zeros(s) for path, s in SHAPES.items()})
    whole = jax.sharding.NamedSharding(mesh, P())
    moments = {"mu": dict(shardings), "nu": dict(shardings)}
    state_shardings = (state[0]._replace(count=whole, **moments), *state[1:])
    data = jax.sharding.NamedSharding(mesh, P("data"))

    def step(params, state, x, y):
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        updates, state = rule.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    jitted = jax.jit(
        step,
        donate_argnums=(0, 1),
        in_shardings=(shardings, state_shardings, data, data),
        out_shardings=(shardings, state_shardings, None),
    )
    params = {path: jax.ShapeDtypeStruct(s, jnp.float32) for path, s in SHAPES.items()}
    return jitted.lower(params, state, *batch()).compile().as_text()


_COLLECTIVE = re.compile(
    r" (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\("
)


def collectives(text):
    """How often each collective operation stands in a compiled program."""
    return Counter(_COLLECTIVE.findall(text))

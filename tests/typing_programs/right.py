"""A training loop as people write it: no type checker finds an error, and it runs."""

from __future__ import annotations

from typing import assert_type

import jax
import jax.numpy as jnp
import numpy as np

import jaxvars as jv


class Linear(jv.Module):
    def __init__(self, n_in: int, n_out: int, *, name: str | None = None) -> None:
        super().__init__(name)
        self.w = jv.Variable(jv.initializers.GlorotUniform(seed=1)((n_in, n_out)), name="w")
        self.b = jv.Variable(jnp.zeros(n_out), name="b")
        self.calls = jv.Variable(0, trainable=False)

    @jv.compile
    def __call__(self, x: jax.Array) -> jax.Array:
        self.calls += 1
        assert_type(self.calls, jv.Variable)
        return jax.nn.relu(x @ self.w + self.b)

    @jv.compile(static_argnames="axis", autograph=True)
    def norm(self, axis: int | None = None) -> jax.Array:
        return jnp.sqrt(jnp.sum(self.w * self.w, axis=axis))


model = Linear(3, 2)
optimizer = jv.optimizers.Adam(0.1)
mean = jv.metrics.Mean("loss")
scale = jv.Variable([1.0, 2.0])


@jv.compile
def step(x: jax.Array, y: jax.Array, *, rate: float = 1.0) -> jax.Array:
    with jv.GradientTape() as tape:
        loss = rate * jnp.mean((model(x) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    assert_type(gradients, tuple[jax.Array, ...])
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    mean.update_state(loss)
    return jv.cond(loss > 1, lambda: loss / 2, lambda: 0.0)


@jv.compile(donate=False, guard="finite")
def double(x: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
    scale.assign(x).assign_add(scale)
    return scale + 1, {"sum": scale.sum(), "max": jnp.max(scale)}


def add(carry: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    scale[0].assign(x)
    return carry + x, scale.at[0].set(carry)


def grow(n: jax.Array) -> jax.Array:
    return n + 2


def minimum(i: jax.Array, n: jax.Array) -> jax.Array:
    return jnp.minimum(n, i)


x, y = jnp.ones((4, 3)), jnp.zeros((4, 2))
for _ in range(3):
    assert_type(step(x, y, rate=0.5), jax.Array)
print(float(mean.result()), float(mean(2.0)), step.trace_count, step.trace(x, y).captured)

assert_type(model(x), jax.Array)
assert_type(model.norm(axis=0), jax.Array)
pair = double(jnp.ones(2))
assert_type(pair, tuple[jax.Array, dict[str, jax.Array]])

with jv.GradientTape(persistent=True) as tape:
    loss = (
        jnp.sum(scale * scale) + model.w.mean() + (2 - scale[0]) + jnp.matmul(x[:2, :2], scale)[0]
    )
assert_type(tape.gradient(loss, scale), jax.Array)
assert_type(tape.gradient(loss, [scale, model.w]), list[jax.Array])
assert_type(tape.gradient(loss, {"w": model.w}, unconnected_gradients="zero"), dict[str, jax.Array])
scale -= 0.1 * tape.gradient(loss, scale)

assert_type(scale + 1, jax.Array)
assert_type(1 / scale, jax.Array)
assert_type(scale == 1, jax.Array)
assert_type(scale.value, jax.Array)
assert_type(scale.numpy(), np.ndarray)
assert_type(jv.scan(add, jnp.float32(0), scale), tuple[jax.Array, jax.Array])
assert_type(jv.fori_loop(0, 3, minimum, 0), jax.Array)
assert_type(jv.while_loop(lambda n: n < 9, grow, 1.5), jax.Array)
assert_type(jv.switch(1, [grow, jnp.sum], x), jax.Array)
print(jv.fori_loop(0, 3, lambda i, n: n + i, 0) + jv.switch(0, [lambda a: a, lambda a: -a], 1.0))
assert_type(jv.vectorized_map(jnp.sum, x), jax.Array)

pure = jv.functionalize(step)
result, state = pure(jv.State.of(model, optimizer, mean), x, y)
assert_type(result, jax.Array)
state.commit()
known: dict[jv.Variable, str] = {v: v.name for v in model.variables}
compiled: jv.Function[[jax.Array], jax.Array] = jv.compile(jnp.sum, donate=False)
print(compiled(x), known, jax.vmap(compiled)(x).shape, model.named_variables["w"].shape)

"""Every public object in every situation, and a check that the list is complete."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threads import run_in_threads

import jaxvars as jv


class Model(jv.Module):
    """Two variables, one of them not trainable."""

    def __init__(self) -> None:
        self.w = jv.Variable(jnp.array([1.0, 2.0]), name="w")
        self.count = jv.Variable(0.0, trainable=False, name="count")


def variable(m: Model, x: Any) -> Any:
    m.count.assign_add(1.0)
    m.w[0].assign(x * 2.0)
    return m.w * m.count


def module(m: Model, x: Any) -> Any:
    for v in m.variables:
        v.assign(v * x)
    return sum(jnp.sum(v.value) for v in m.trainable_variables)


def gradient_tape(m: Model, x: Any) -> Any:
    with jv.GradientTape() as tape:
        loss = jnp.sum(jnp.sin(m.w * x))
    grad = tape.gradient(loss, m.w)
    m.w.assign_sub(0.1 * grad)
    return grad


def select(m: Model, x: Any) -> Any:
    for v in m.select("*", trainable=False).values():
        v.assign_add(x)
    return sum(jnp.sum(v.value) for v in jv.select(m, "w", "count").values())


def freeze(m: Model, x: Any) -> Any:
    with jv.freeze(m.select("w")), jv.GradientTape() as tape:
        y = jnp.sum(m.w * x)
        m.count.assign_add(y)
    grad = tape.gradient(y, m.w, unconnected_gradients="zero")
    return grad, gradient_tape(m, x)


def forward_accumulator(m: Model, x: Any) -> Any:
    with jv.ForwardAccumulator(m.w, jnp.array([1.0, 0.5])) as accumulator:
        y = jnp.cos(m.w * x)
    return accumulator.jvp(y)


def unconnected_gradients(m: Model, x: Any) -> Any:
    with jv.GradientTape() as tape:
        y = x * 2.0
    return tape.gradient(y, m.w, unconnected_gradients="zero")


def compiled(m: Model, x: Any) -> Any:
    return INNER(m, x) * 2.0


def function(m: Model, x: Any) -> Any:
    assert isinstance(INNER, jv.Function)
    return INNER(m, x=x)


INNER = jv.compile(variable)


def functionalize(m: Model, x: Any) -> Any:
    result, state = jv.functionalize(variable)(jv.State.of(m), m, x)
    state.commit()
    return result


def state(m: Model, x: Any) -> Any:
    taken = jv.State.of(m)
    taken.replace({"w": taken["w"] * x}).commit()
    return taken["w"]


def stop_gradient(m: Model, x: Any) -> Any:
    with jv.GradientTape() as tape:
        y = jnp.sum(m.w * jv.stop_gradient(m.w) * x)
    return tape.gradient(y, m.w)


tripled = jv.custom_gradient(lambda x: (x, lambda upstream: 3.0 * upstream))


def custom_gradient(m: Model, x: Any) -> Any:
    with jv.GradientTape() as tape:
        y = jnp.sum(tripled(m.w * x))
    return tape.gradient(y, m.w)


def device(m: Model, x: Any) -> Any:
    with jv.device("CPU:0"):
        return m.w * x


def name_scope(m: Model, x: Any) -> Any:
    with jv.name_scope("outer"):
        m.w.assign(m.w + x)
    return m.w.value


def recompute(m: Model, x: Any) -> Any:
    with jv.GradientTape() as tape:
        y = jnp.sum(jv.recompute(lambda z: jnp.cos(m.w * z))(x))
    return tape.gradient(y, m.w)


def cond(m: Model, x: Any) -> Any:
    return jv.cond(x > 0, lambda y: m.count.assign_add(y) * 2.0, lambda y: y, x)


def switch(m: Model, x: Any) -> Any:
    def second(y: Any) -> Any:
        m.w.assign_sub(y)
        return m.w.value

    return jv.switch(jnp.int32(x * 2), [lambda y: m.w * y, second], x)


def while_loop(m: Model, x: Any) -> Any:
    def body(y: Any) -> Any:
        m.w[1].assign(y)
        return y * 2.0

    return jv.while_loop(lambda y: y < m.w[0] * 4.0, body, x)


def fori_loop(m: Model, x: Any) -> Any:
    with jv.GradientTape() as tape:
        y = jv.fori_loop(0, 3, lambda i, y: y * m.w[1] + i.astype(y.dtype), x)
    m.count.assign(y)
    return tape.gradient(y, m.w)


def scan(m: Model, x: Any) -> Any:
    def one(total: Any, element: Any) -> Any:
        m.count.assign_add(element)
        return total + m.count, total

    return jv.scan(one, x, jnp.arange(3.0))


def map_fn(m: Model, x: Any) -> Any:
    return jv.map_fn(lambda y: m.count.assign_add(x) * y, m.w)


def vectorized_map(m: Model, x: Any) -> Any:
    return jv.vectorized_map(lambda y: jnp.sum(m.w * y) * x, jnp.arange(3.0))


def autograph(m: Model, x: Any) -> Any:
    def until(limit: Any) -> Any:
        steps = 0
        while x * m.w[0] < limit:
            m.w[0].assign(m.w[0] * 2.0)
            if m.w[0] > 4.0:
                m.count.assign_add(1.0)
            steps += 1
        return jnp.asarray(steps)

    return jv.autograph.convert(until)(5.0)


def tensor_array(m: Model, x: Any) -> Any:
    ta = jv.TensorArray(jnp.float32, size=3)
    for i in range(3):
        ta = ta.write(i, m.w * x * i)
    return ta.stack(), ta.read(2)


def printed(m: Model, x: Any) -> Any:
    m.count.assign_add(x)
    jv.print("{x}", x=x)
    jv.print(m)
    return m.count.value


def debugging(m: Model, x: Any) -> Any:
    m.count.assign_add(x)
    jv.debugging.assert_greater(m.count, 0.0)
    return jv.debugging.check_numerics(m.w * x)


def random(m: Model, x: Any) -> Any:
    noise = jax.random.normal(jax.random.key(1), (2,))
    m.w.assign_add(noise)
    return m.w * x


def summary(m: Model, x: Any) -> Any:
    m.count.assign_add(x)
    jv.tensorboard.scalar("x", 0.5, step=1)
    return m.count.value


def initializers(m: Model, x: Any) -> Any:
    return jv.initializers.GlorotUniform(seed=3)((2, 2)) @ m.w * x


def losses(m: Model, x: Any) -> Any:
    with jv.GradientTape() as tape:
        loss = jv.losses.Huber(delta=0.5)(m.w, m.w * x, sample_weight=2.0)
    m.count.assign(loss)
    return tape.gradient(loss, m.w)


def interop(m: Model, x: Any) -> Any:
    values = jv.interop.to_dict(m)
    jv.interop.from_dict(m, {**values, "w": values["w"] * x}).commit()
    return values["w"] + m.w


PROGRAMS: dict[str, Callable[[Model, Any], Any]] = {
    "Variable": variable, "Module": module, "GradientTape": gradient_tape,
    "ForwardAccumulator": forward_accumulator, "GradientTape.gradient": unconnected_gradients,
    "compile": compiled, "Function": function, "functionalize": functionalize, "State": state,
    "stop_gradient": stop_gradient, "custom_gradient": custom_gradient,
    "device": device, "name_scope": name_scope,
    "recompute": recompute, "cond": cond, "switch": switch, "while_loop": while_loop,
    "fori_loop": fori_loop, "scan": scan, "map_fn": map_fn, "vectorized_map": vectorized_map,
    "autograph": autograph, "TensorArray": tensor_array, "print": printed, "debugging": debugging,
    "random": random, "initializers": initializers, "losses": losses, "tensorboard": summary,
    "interop": interop, "select": select, "freeze": freeze,
}  # fmt: skip
NOT_A_PROGRAM = {
    "ConcreteFunction", "TensorSpec", "errors", "config", "abstract", "plan", "place",
    "checkpoint", "export", "progress", "profiler", "transaction", "diff",  # done outside
    "variables",  # Variables, in a tree
    "metrics", "optimizers",  # they hold variables, and have their own tests
    "mesh", "use_mesh", "shard", "parallel",  # on several devices: tests/devices/test_mesh.py
}  # fmt: skip


def test_the_list_is_complete():
    names = {name.partition(".")[0] for name in PROGRAMS}
    assert set(dir(jv)) == names | NOT_A_PROGRAM


def eagerly(program: Any, m: Model, x: Any) -> Any:
    return program(m, x)


def in_compile(program: Any, m: Model, x: Any) -> Any:
    return jv.compile(program)(m, x)


def in_nested_compile(program: Any, m: Model, x: Any) -> Any:
    inner = jv.compile(program)
    return jv.compile(lambda m, x: inner(m, x))(m, x)


def as_pure(program: Any, m: Model, x: Any) -> Any:
    pure = jv.functionalize(program)
    result, after = jax.jit(lambda s, x: pure(s, m, x))(jv.State.of(m), x)
    after.commit()
    return result


def as_pure_of_many(program: Any, m: Model, x: Any) -> Any:
    pure = jv.functionalize(program)
    many = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), jv.State.of(m))
    result, after = jax.vmap(lambda s: pure(s, m, x))(many)
    jax.tree.map(lambda leaf: leaf[1], after).commit()
    return jax.tree.map(lambda leaf: leaf[0], result)


def under_a_tape(program: Any, m: Model, x: Any) -> Any:
    with jv.GradientTape():
        return program(m, x)


def in_a_thread(program: Any, m: Model, x: Any) -> Any:
    return run_in_threads(lambda: program(m, x))[0]


def with_autograph(program: Any, m: Model, x: Any) -> Any:
    return jv.compile(program, autograph=True)(m, x)


def with_a_guard(program: Any, m: Model, x: Any) -> Any:
    return jv.compile(program, guard="finite")(m, x)


def in_a_branch(program: Any, m: Model, x: Any) -> Any:
    run = jv.compile(lambda i: jv.switch(i, [lambda: program(m, x), lambda: program(m, x)]))
    return run(1)


def in_a_scan(program: Any, m: Model, x: Any) -> Any:
    run = jv.compile(lambda x: jv.scan(lambda _, x: (None, program(m, x)), None, x[None])[1])
    return jax.tree.map(lambda y: y[0], run(x))


def in_a_while(program: Any, m: Model, x: Any) -> Any:
    first = jax.tree.map(jnp.zeros_like, program(copy.deepcopy(m), x))

    @jv.compile
    def run(x: Any) -> Any:
        return jv.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, program(m, x)), (0, first))[1]

    return run(x)


def run_eagerly(program: Any, m: Model, x: Any) -> Any:
    jv.config.run_eagerly(True)
    try:
        return jv.compile(program)(m, x)
    finally:
        jv.config.run_eagerly(False)


def run_on(other: Model, program: Any, m: Model, x: Any) -> Any:
    found = program(other, x)
    np.testing.assert_array_equal(m.w, [1.0, 2.0])  # the original is left alone
    jv.State.of(m).replace(dict(jv.State.of(other))).commit()
    return found


def with_a_copy(program: Any, m: Model, x: Any) -> Any:
    return run_on(copy.deepcopy(m), program, m, x)


def with_a_pickle(program: Any, m: Model, x: Any) -> Any:
    return run_on(pickle.loads(pickle.dumps(m)), program, m, x)


SITUATIONS = [
    in_compile, in_nested_compile, with_autograph, with_a_guard, in_a_branch, in_a_scan, in_a_while,
    as_pure, as_pure_of_many, under_a_tape, in_a_thread, run_eagerly, with_a_copy, with_a_pickle,
]  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.__name__)
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_does_the_same_as_eagerly(name, situation):
    program, x = PROGRAMS[name], jnp.float32(0.5)
    plain, there = Model(), Model()
    expected = eagerly(program, plain, x)
    found = situation(program, there, x)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, expected)
    for one, other in zip(there.variables, plain.variables, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)

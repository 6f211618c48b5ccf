"""GradientTape within itself, in compiled functions and transforms, and over any JAX code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx
from tape_programs import both_ways, derivatives

import jaxvars as jv
from jaxvars.errors import ForeignTransformError


# ---------------------------------------------------------------- nesting
@both_ways
def test_nested_tapes_of_order_four(way: Callable[..., Any]) -> None:
    w = jv.Variable(2.0)
    assert way(lambda: derivatives(w, lambda w: w**5, 4)) == [32.0, 80.0, 160.0, 240.0, 240.0]
    x = jnp.asarray(2.0)
    assert way(lambda: derivatives(x, lambda x: x**5, 4)) == [32.0, 80.0, 160.0, 240.0, 240.0]


def test_nested_tapes_equal_nested_grads() -> None:
    x = jnp.asarray(0.3)
    grads = [jnp.tanh]
    for _ in range(4):
        grads.append(jax.grad(grads[-1]))
    found = derivatives(x, jnp.tanh, 4)
    assert np.allclose(found, [g(x) for g in grads], rtol=1e-6)


@both_ways
def test_a_persistent_tape_records_its_own_gradients(way: Callable[..., Any]) -> None:
    w = jv.Variable(3.0)

    def program() -> list[Any]:
        with jv.GradientTape(persistent=True) as tape:
            y = w**4
            first = tape.gradient(y, w)
            second = tape.gradient(first, w)
            third = tape.gradient(second, w)
        return [first, second, third]

    assert way(program) == [108.0, 108.0, 72.0]


@both_ways
def test_tapes_around_a_shard_map(way: Callable[..., Any]) -> None:
    w, b = jv.Variable(jnp.arange(1.0, 5.0)), jv.Variable(2.0)
    auto = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((4,), ("i",), axis_types=auto, devices=jax.devices()[:4])

    def total(w: Any, b: Any) -> Any:  # one variable is an argument, the other is closed over
        part = lambda w: jax.lax.psum(jnp.sum(w**2 * b**3), "i")  # noqa: E731 - one use
        return jax.shard_map(part, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P())(w)

    def program() -> Any:
        with jv.ForwardAccumulator(b, 1.0) as forward, jv.GradientTape(persistent=True) as tape:
            held = b * 1.0
            y = total(w.value, held)
            first = tape.gradient(y, [w, b])
        return first, tape.gradient(first[1], [w, b]), tape.jacobian(y, w), forward.jvp(y)

    first, second, jacobian, pushed = way(program)
    values = (w.value, b.value)
    assert np.allclose(first[0], jax.grad(total)(*values))
    assert np.allclose(jacobian, first[0])
    assert [first[1], pushed] == [360.0, 360.0]
    assert np.allclose(second[0], jax.grad(jax.grad(total, 1))(*values))
    assert second[1] == 360.0


def test_a_tape_that_is_not_persistent_does_not_record_its_own_gradient() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape() as outer, jv.GradientTape() as tape:
        y = w**3
        grad = tape.gradient(y, w)
        z = grad * w
    assert outer.gradient(z, w) == 27.0 + 3.0 * 18.0


def test_two_tapes_side_by_side() -> None:
    a, b = jv.Variable(2.0), jv.Variable(3.0)
    with jv.GradientTape() as one, jv.GradientTape() as two:
        y, z = a * b, a + 5 * b
    assert one.gradient(y, [a, b]) == [3.0, 2.0]
    assert two.gradient(z, [a, b]) == [1.0, 5.0]


def test_a_penalty_on_the_gradient() -> None:
    model, x = jv.Variable(jnp.ones((3, 1))), jnp.ones((4, 3))
    with jv.GradientTape() as outer:
        with jv.GradientTape() as inner:
            inner.watch(x)
            score = jnp.tanh(x @ model)
        penalty = jnp.sum(inner.gradient(score, x) ** 2)

    def by_jax(m: Any) -> Any:
        return jnp.sum(jax.grad(lambda x: jnp.sum(jnp.tanh(x @ m)))(x) ** 2)

    assert np.allclose(outer.gradient(penalty, model), jax.grad(by_jax)(model.value))


# ---------------------------------------------------------------- compiled functions


def test_a_tape_across_a_compiled_function_that_assigns() -> None:
    w, count = jv.Variable(3.0), jv.Variable(0.0, trainable=False)

    @jv.compile
    def f(x: Any) -> Any:
        count.assign_add(1.0)
        return w * x * count

    for n in (1.0, 2.0, 3.0):
        with jv.GradientTape() as tape:
            y = f(5.0)
        assert tape.gradient(y, w) == 5.0 * n
    assert (count == 3.0, f.trace_count) == (True, 1)


def test_a_compiled_function_assigns_a_trainable_variable_under_a_tape() -> None:
    w = jv.Variable(3.0)

    @jv.compile
    def f() -> Any:
        before = w * 10.0
        w.assign_add(1.0)
        return before

    with jv.GradientTape() as tape:
        y = f() + w * w
    assert tape.gradient(y, w) == 10.0 + 8.0


def test_tape_outside_and_inside_a_compiled_function() -> None:
    w = jv.Variable(2.0)

    @jv.compile
    def slope() -> Any:
        with jv.GradientTape() as tape:
            y = w**3
        return tape.gradient(y, w)

    with jv.GradientTape() as outer:
        first = slope()
    assert first == 12.0
    assert outer.gradient(first, w) == 12.0


def test_a_watched_argument_of_a_compiled_function() -> None:
    f = jv.compile(lambda x, scale=2.0: {"y": x * scale, "x": x})
    x = jnp.asarray(3.0)
    with jv.GradientTape() as tape:
        tape.watch(x)
        out = f(x)
        y = out["y"] + 10.0 * out["x"]
    assert tape.gradient(y, x) == 12.0


def test_a_value_of_a_tape_closed_over_by_a_compiled_function() -> None:
    w = jv.Variable(2.0)
    with jv.GradientTape() as tape:
        h = w * 3.0
        y = jv.compile(lambda x: x * h)(5.0)
    assert tape.gradient(y, w) == 15.0


def test_a_tape_as_opened_outside_may_not_be_asked_inside() -> None:
    w = jv.Variable(2.0)
    with jv.GradientTape(persistent=True) as tape:
        y = w * w
    ask = jv.compile(lambda: tape.gradient(y, w))
    assert ask() == 4.0  # the recorded values are constants of the program


# ---------------------------------------------------------------- in other transforms
def slope_of_cube(x: Any) -> Any:
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = x**3
    return tape.gradient(y, x)


def test_a_tape_in_jit_vmap_grad_and_scan() -> None:
    xs = jnp.arange(3.0)
    want = [0.0, 3.0, 12.0]
    assert jax.jit(slope_of_cube)(2.0) == 12.0
    assert jax.vmap(slope_of_cube)(xs).tolist() == want
    assert jax.jit(jax.vmap(slope_of_cube))(xs).tolist() == want
    assert jax.grad(slope_of_cube)(2.0) == 12.0
    assert jax.lax.scan(lambda _, x: (0.0, slope_of_cube(x)), 0.0, xs)[1].tolist() == want
    assert jax.lax.map(slope_of_cube, xs).tolist() == want
    assert jax.jvp(slope_of_cube, (2.0,), (1.0,))[1] == 12.0


def test_a_tape_in_a_branch() -> None:
    branch = lambda x: jax.lax.cond(x > 0, slope_of_cube, lambda x: x, x)  # noqa: E731 - one use
    assert [branch(x) for x in (2.0, -2.0)] == [12.0, -2.0]


def test_a_tape_in_vmap_gives_each_example_its_gradient() -> None:
    w = jv.Variable(2.0)

    def loss_gradient(x: Any) -> Any:
        with jv.GradientTape() as tape:
            y = (w * x) ** 2
        return tape.gradient(y, w)

    assert jax.vmap(loss_gradient)(jnp.asarray([1.0, 2.0])).tolist() == [4.0, 16.0]


def test_a_tape_outside_of_vmap_and_scan() -> None:
    w = jv.Variable(2.0)
    with jv.GradientTape(persistent=True) as tape:
        h = w * 1.0
        mapped = jnp.sum(jax.vmap(lambda x: jnp.sin(x * h))(jnp.arange(3.0)))
        scanned, _ = jax.lax.scan(lambda c, x: (c * h + x, None), 1.0, jnp.arange(3.0))
    want = jax.grad(lambda h: jnp.sum(jnp.sin(jnp.arange(3.0) * h)))(2.0)
    assert np.isclose(tape.gradient(mapped, w), want)
    assert tape.gradient(scanned, w) == jax.grad(lambda h: ((h * h) * h + h) + 2)(2.0)


def test_writes_in_foreign_transforms_are_refused_under_a_tape_too() -> None:
    w = jv.Variable(3.0, name="w")
    with jv.GradientTape(), pytest.raises(ForeignTransformError, match="'w' is written"):
        jax.vmap(lambda x: w.assign(x))(jnp.ones(2))
    assert w == 3.0


# ---------------------------------------------------------------- JAX code of all kinds
doubled_slope = jax.custom_jvp(lambda x: jnp.sin(x))

doubled_slope.defjvp(lambda x, dx: (jnp.sin(x[0]), 2.0 * jnp.cos(x[0]) * dx[0]))

tripled_slope = jax.custom_vjp(lambda x: jnp.sin(x))

tripled_slope.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (3.0 * jnp.cos(x) * g,))


@both_ways
@pytest.mark.parametrize("f", [jax.nn.relu, tripled_slope, doubled_slope])
def test_a_function_with_a_rule_on_what_turns_out_to_be_a_constant(way: Any, f: Any) -> None:
    w, frozen = jv.Variable(3.0), jax.jit(jax.lax.stop_gradient)

    def program() -> Any:
        with jv.GradientTape(persistent=True) as tape:
            y = f(frozen(w * 2.0)) + w  # the tape cannot know that it is constant
        return [tape.gradient(y, w), tape.gradient(y, w)]

    assert way(program) == [1.0, 1.0]


@pytest.mark.parametrize("f", [jax.nn.relu, tripled_slope, doubled_slope])
def test_a_function_with_a_rule_for_batches_of_many_sizes(f: Any) -> None:
    w = jv.Variable(0.5)
    for n in (3, 3, 4, 4, 5, 3):
        with jv.GradientTape() as tape:
            y = jnp.sum(f(w * jnp.ones(n)))
        assert np.isclose(tape.gradient(y, w), n * jax.grad(f)(0.5))


def test_an_array_of_the_tape_closed_over_by_any_transform() -> None:
    w = jv.Variable(3.0)
    uses: dict[str, Callable[[Any], Any]] = {
        "jit": lambda h: jax.jit(lambda x: x * h)(1.0),
        "nested jit": lambda h: jax.jit(lambda x: jax.jit(lambda z: z * h)(x))(1.0),
        "vmap": lambda h: jnp.sum(jax.vmap(lambda x: x * h)(jnp.asarray([0.5, 0.5]))),
        "jit of vmap": lambda h: jnp.sum(jax.jit(jax.vmap(lambda x: x * h))(jnp.full(2, 0.5))),
        "grad": lambda h: jax.grad(lambda x: x * h)(2.0),
        "cond": lambda h: jax.lax.cond(h > 0, lambda x: x * h, lambda x: x, 1.0),
        "scan": lambda h: jax.lax.scan(lambda c, _: (c + h, None), 0.0, None, length=1)[0],
        "fori": lambda h: jax.lax.fori_loop(0, 1, lambda _, c: c + h, 0.0),
        "checkpoint": lambda h: jax.checkpoint(lambda x: x * h)(1.0),
        "custom_vjp in jit": lambda h: jax.jit(lambda x: jax.nn.relu(x * h))(1.0),
    }
    for name, use in uses.items():
        with jv.GradientTape() as tape:
            y = use(w * 2.0)
        assert tape.gradient(y, w) == 2.0, name


def test_a_known_array_hidden_in_a_jit_in_a_loop_is_refused() -> None:
    w, inner = jv.Variable(3.0), lambda h: jax.jit(lambda z: z * h)
    with jv.GradientTape() as tape:
        h = w * 2.0
        with pytest.raises(NotImplementedError, match=r"(?s)inside a scan closes over.*x, h:"):
            jax.lax.scan(lambda c, _: (inner(h)(c), None), 1.0, None, length=2)
        y = jax.lax.scan(lambda c, _: (inner(5.0)(c) * h, None), 1.0, None, length=2)[0]
    assert tape.gradient(y, w) == 2 * 25 * 6.0 * 2.0


def test_a_loop_of_unknown_length_has_no_reverse_but_a_forward() -> None:
    w = jv.Variable(3.0)

    def power() -> Any:
        h = w * 1.0
        return jax.lax.while_loop(lambda c: c < 50, lambda c: c * h, 1.0)

    with jv.GradientTape() as tape:
        y = power()
    with pytest.raises(ValueError, match=r"(?s)number of iterations .*max_iterations="):
        tape.gradient(y, w)
    with jv.ForwardAccumulator(w, jnp.asarray(1.0)) as forward:
        y = power()
    assert (y, forward.jvp(y)) == (81.0, 4 * 27.0)


# ---------------------------------------------------------------- other libraries
OPTAX_LOSSES = {
    "softmax": lambda z, y: optax.softmax_cross_entropy_with_integer_labels(z, y),
    "sigmoid": lambda z, y: optax.sigmoid_binary_cross_entropy(z, jax.nn.one_hot(y, 3)),
    "huber": lambda z, y: optax.huber_loss(z, jax.nn.one_hot(y, 3)),
    "l2": lambda z, y: optax.l2_loss(z, jax.nn.one_hot(y, 3)),
    "cosine": lambda z, y: optax.cosine_distance(z, jax.nn.one_hot(y, 3), epsilon=1e-6),
}


@pytest.mark.parametrize("name", OPTAX_LOSSES)
def test_losses_of_optax(name: str) -> None:
    loss = OPTAX_LOSSES[name]
    x, y = jax.random.normal(jax.random.key(0), (4, 5)), jnp.asarray([0, 2, 1, 2])
    w = jv.Variable(jax.random.normal(jax.random.key(1), (5, 3)))
    with jv.GradientTape() as tape:
        value = jnp.mean(loss(x @ w, y))
    want = jax.grad(lambda w: jnp.mean(loss(x @ w, y)))(w.value)
    assert np.allclose(tape.gradient(value, w), want, rtol=1e-6, atol=1e-7)


class Net(linen.Module):
    @linen.compact
    def __call__(self, x: Any) -> Any:
        x = linen.relu(linen.LayerNorm()(linen.Dense(8)(x)))
        x = linen.Conv(4, (3,))(x[..., None]).reshape(x.shape[0], -1)
        return linen.Dense(3)(x)


def test_a_linen_module_under_a_tape() -> None:
    x, net = jax.random.normal(jax.random.key(0), (4, 5)), Net()
    params = net.init(jax.random.key(1), x)
    weights = jax.tree.map(jv.Variable, params)
    with jv.GradientTape() as tape:
        loss = jnp.sum(net.apply(jax.tree.map(lambda v: v, weights), x) ** 2)
    want = jax.grad(lambda p: jnp.sum(net.apply(p, x) ** 2))(params)
    grads = tape.gradient(loss, weights)
    jax.tree.map(lambda g, w: np.testing.assert_allclose(g, w, 1e-5, 1e-6), grads, want)


def test_an_nnx_module_under_a_tape() -> None:
    net = nnx.Sequential(
        nnx.Linear(5, 8, rngs=nnx.Rngs(0)), nnx.relu, nnx.Linear(8, 3, rngs=nnx.Rngs(1))
    )
    x = jax.random.normal(jax.random.key(0), (4, 5))
    graph, params = nnx.split(net)
    weights = jax.tree.map(jv.Variable, params)
    with jv.GradientTape() as tape:
        loss = jnp.sum(nnx.merge(graph, jax.tree.map(lambda v: v, weights))(x) ** 2)
    want = jax.grad(lambda p: jnp.sum(nnx.merge(graph, p)(x) ** 2))(params)
    grads = tape.gradient(loss, jax.tree.leaves(weights, is_leaf=lambda v: type(v) is jv.Variable))
    for grad, one in zip(grads, jax.tree.leaves(want), strict=True):
        assert np.allclose(grad, one, rtol=1e-5, atol=1e-6)


def test_an_nnx_module_s_input_is_watched() -> None:
    net, x = nnx.Linear(5, 3, rngs=nnx.Rngs(0)), jnp.ones((2, 5))
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = jnp.sum(net(x))
    assert np.array_equal(tape.gradient(y, x), jax.grad(lambda x: jnp.sum(net(x)))(x))

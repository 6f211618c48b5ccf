"""What a tape keeps and how it is replayed: the same values as jax.grad, at the same cost."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.autodiff import reverse
from jaxvars.autodiff.recording import Record
from jaxvars.autodiff.reverse import add_up
from jaxvars.errors import TapeError
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tracing.recorder import recording

pytestmark = pytest.mark.usefixtures("nothing_seen")

X = jax.random.normal(jax.random.key(0), (4, 6))
M = jax.random.normal(jax.random.key(1), (6, 6)) / 3

clip_gradient = jax.custom_vjp(lambda x: jnp.sin(x))

clip_gradient.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (jnp.clip(g, -0.1, 0.1) * x,))

own_tangent = jax.custom_jvp(lambda x: jnp.sin(x))

own_tangent.defjvp(lambda x, dx: (jnp.sin(x[0]), 2.0 * jnp.cos(x[0]) * dx[0]))

jitted = jax.jit(lambda x: jnp.tanh(x @ M) * jnp.sum(x))


def layer_norm(x: Any) -> Any:
    mean = jnp.mean(x, -1, keepdims=True)
    return (x - mean) / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-5)


def convolve(x: Any) -> Any:
    return jax.lax.conv_general_dilated(x[None, None], M[None, None, :3, :3], (1, 1), "SAME")


def loop_body(carry: Any, row: Any) -> tuple[Any, Any]:
    carry = jnp.tanh(carry @ M + row)
    return carry, carry


def nested_body(carry: Any, row: Any) -> tuple[Any, Any]:
    carry, rows = jax.lax.scan(loop_body, carry, jnp.stack([row, 2 * row]))
    return carry, jnp.sum(rows)


def branching_body(carry: Any, row: Any) -> tuple[Any, Any]:
    carry = jax.lax.cond(jnp.sum(row) > 0, lambda c: jnp.sin(c @ M), lambda c: c * row, carry)
    return carry, carry


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "polynomial": lambda x: x**3 - 2 * x / (1 + x**2), "matmul": lambda x: jnp.tanh(x @ M) @ M,
    "einsum": lambda x: jnp.einsum("ij,kj->ik", x, x), "relu": jax.nn.relu, "gelu": jax.nn.gelu,
    "silu": jax.nn.silu, "softmax": jax.nn.softmax,
    "logsumexp": lambda x: jax.nn.logsumexp(x, axis=0), "layer norm": layer_norm,
    "convolution": convolve, "gather": lambda x: x[jnp.asarray([0, 2, 2]), 1:3],
    "scatter": lambda x: jnp.zeros((8, 6)).at[jnp.asarray([1, 1, 3, 5])].add(x),
    "sort": lambda x: jnp.sort(x, axis=1) * jnp.arange(6.0),
    "where": lambda x: jnp.where(x > 0, jnp.log1p(jnp.abs(x)), x**2),
    "cumsum": lambda x: jnp.cumsum(x, 1) * x,
    "cholesky": lambda x: jnp.linalg.cholesky(x.T @ x + jnp.eye(6)),
    "dropout": lambda x: x * jax.random.bernoulli(jax.random.key(3), 0.5, x.shape),
    "vmap": lambda x: jax.vmap(lambda row: jnp.outer(row, jnp.sin(row)))(x),
    "jit": jitted,
    "checkpoint": jax.checkpoint(lambda x: jnp.sin(jnp.sin(x @ M))),
    "scan": lambda x: jax.lax.scan(loop_body, x[0], x)[1],
    "nested scan": lambda x: jax.lax.scan(nested_body, x[0], x)[1],
    "cond in scan": lambda x: jax.lax.scan(branching_body, x[0], x)[1],
    "fori": lambda x: jax.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * x, x),
    "cond": lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "map": lambda x: jax.lax.map(lambda row: jnp.sin(row) @ M, x),
    "custom_jvp": own_tangent, "custom_vjp": clip_gradient,
    "custom_vjp in jit": jax.jit(clip_gradient), "custom_vjp in vmap": jax.vmap(clip_gradient),
    "grad": lambda x: jax.grad(lambda z: jnp.sum(jnp.sin(z) ** 2))(x),
}  # fmt: skip


def loss_of(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: jnp.sum(f(x) * 1.5)


def taped(f: Callable[[Any], Any], w: jv.Variable) -> Any:
    with jv.GradientTape() as tape:
        loss = f(w.value)
    return loss, tape.gradient(loss, w)


# ---------------------------------------------------------------- the same values
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_equal_jax_grad(name: str) -> None:
    f, w = loss_of(FUNCTIONS[name]), jv.Variable(X)
    found, want = taped(f, w), jax.grad(f)(X)
    assert np.array_equal(found[0], f(X))
    assert np.allclose(found[1], want, rtol=2e-5, atol=2e-6)  # as a whole XLA may round otherwise
    is_compiled = seen() == (1, 1)
    again = taped(f, w)[1]
    assert np.array_equal(again, found[1]) or not (is_compiled and seen() == (1, 1))
    reverse._SEEN.clear()
    reverse._ANSWERS.clear()
    assert np.array_equal(taped(f, w)[1], want) or seen()[1]  # bit for bit


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_gradients_equal_jitted_ones(name: str) -> None:
    f, w = loss_of(FUNCTIONS[name]), jv.Variable(X)
    found = jv.compile(lambda: taped(f, w))()
    want = jax.jit(jax.value_and_grad(f))(X)
    assert np.array_equal(found[0], want[0])
    assert np.array_equal(found[1], want[1])


# ---------------------------------------------------------------- the same cost
def inner_loop_gradients(x: Any) -> Any:
    """A scan whose body takes a gradient: here by jax.grad, below by a tape."""

    def body(carry: Any, row: Any) -> tuple[Any, Any]:
        return carry - 0.1 * jax.grad(lambda c: jnp.sum(jnp.tanh(c @ M - row) ** 2))(carry), None

    return jax.lax.scan(body, x[0], x)[0]


COSTED = [
    "layer norm", "convolution", "scan", "nested scan", "cond in scan", "fori", "custom_vjp",
    "custom_jvp", "checkpoint", "sort", "gelu",
]  # fmt: skip
LOOPS: dict[str, Callable[[Any], Any]] = {name: FUNCTIONS[name] for name in COSTED} | {
    "two scans": lambda x: FUNCTIONS["scan"](jax.lax.scan(loop_body, x[1], x)[1]),
    "scan in jit": jax.jit(FUNCTIONS["scan"]),
    "scan in vmap": jax.vmap(lambda row: jax.lax.scan(loop_body, row, X)[0]),
    "scan with custom_vjp": lambda x: jax.lax.scan(
        lambda c, row: (clip_gradient(c @ M + row), None), x[0], x
    )[0],
    "checkpointed scan": lambda x: jax.lax.scan(jax.checkpoint(loop_body), x[0], x)[0],
    "gradient in scan": inner_loop_gradients,
    "deep": lambda x: functools.reduce(
        lambda h, _: layer_norm(jax.nn.gelu(h @ M) + h), range(4), x
    ),
    "singular values": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "top k": lambda x: jax.lax.top_k(x, 2)[0],
    "running sum of exponentials": jax.lax.cumlogsumexp,
}


def loops_and_flops(compiled: Any) -> tuple[int, float, int]:
    flops = (compiled.cost_analysis() or {}).get("flops", 0.0)
    text = compiled.as_text()
    return text.count(" while("), flops, text.count(" custom-call(")


def compiled_tape(f: Callable[[Any], Any], w: jv.Variable) -> Any:
    run = jax.jit(lambda state: jv.functionalize(lambda: taped(f, w))(state)[0])
    return run.lower(jv.State.of(w)).compile()


@pytest.mark.parametrize("name", LOOPS)
def test_a_tape_costs_what_value_and_grad_costs(name: str) -> None:
    f, w = loss_of(LOOPS[name]), jv.Variable(X)
    by_jax = jax.jit(jax.value_and_grad(f)).lower(X).compile()
    assert loops_and_flops(compiled_tape(f, w)) == loops_and_flops(by_jax)


@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_drawn_under_a_tape_is_drawn_once(compiled: bool) -> None:
    w, scaled = jv.Variable(2.0), jax.jit(lambda x: x * jax.lax.rng_uniform(1.0, 2.0, ()))
    step = jv.compile(lambda: taped(scaled, w)) if compiled else lambda: taped(scaled, w)
    for _ in range(3):  # the second time an eager gradient is compiled
        loss, slope = step()
        assert slope * 2.0 == loss


@pytest.mark.parametrize("name", ["deep", "cond in scan", "custom_vjp"])
def test_a_tape_in_a_compiled_function_costs_no_more(name: str) -> None:
    f, w = loss_of(LOOPS[name]), jv.Variable(X)
    by_jax = jax.jit(jax.value_and_grad(f)).lower(X).compile()
    assert jv.compile(lambda: taped(f, w)).trace().cost["flops"] == loops_and_flops(by_jax)[1]


def test_the_loops_of_a_compiled_step_are_counted() -> None:
    w = jv.Variable(X)
    f = loss_of(LOOPS["scan"])

    def step() -> Any:
        loss, grad = taped(f, w)
        w.assign_sub(0.1 * grad)
        return loss

    def by_jax(x: Any) -> Any:
        loss, grad = jax.value_and_grad(f)(x)
        return loss, x - 0.1 * grad

    text = jax.jit(jv.functionalize(step)).lower(jv.State.of(w)).compile().as_text()
    assert text.count(" while(") == 2
    assert loops_and_flops(jax.jit(by_jax).lower(X).compile())[0] == 2


def test_a_loop_whose_length_is_not_known_runs_once() -> None:
    w = jv.Variable(3.0)

    @jv.compile
    def f() -> Any:
        with jv.GradientTape() as tape:
            power = jax.lax.while_loop(lambda c: c < 50, lambda c: c * w.value, 1.0)
            y = w * jax.lax.stop_gradient(power)
        return tape.gradient(y, w)

    assert f() == 81.0
    text = jax.jit(jv.functionalize(f)).lower(jv.State.of(w)).compile().as_text()
    assert text.count(" while(") == 1


def test_a_tape_in_the_body_of_a_scan_costs_what_grad_costs_there() -> None:
    def body(carry: Any, row: Any) -> tuple[Any, Any]:
        with jv.GradientTape() as tape:
            tape.watch(carry)
            loss = jnp.sum(jnp.tanh(carry @ M - row) ** 2)
        return carry - 0.1 * tape.gradient(loss, carry), None

    found = jax.jit(lambda x: jax.lax.scan(body, x[0], x)[0]).lower(X).compile()
    want = jax.jit(inner_loop_gradients).lower(X).compile()
    assert loops_and_flops(found) == loops_and_flops(want)
    assert np.array_equal(found(X), want(X))


def test_a_compiled_function_under_a_tape_in_a_compiled_function_runs_its_loop_once() -> None:
    w = jv.Variable(X)
    inner = jv.compile(lambda: jnp.sum(jax.lax.scan(loop_body, w[0], w.value)[1]))

    @jv.compile
    def outer() -> Any:
        with jv.GradientTape() as tape:
            y = inner()
        return y, tape.gradient(y, w)

    def by_jax(x: Any) -> Any:
        return jnp.sum(jax.lax.scan(loop_body, x[0], x)[1])

    found = jax.jit(jv.functionalize(outer)).lower(jv.State.of(w)).compile()
    want = jax.jit(jax.value_and_grad(by_jax)).lower(X).compile()
    assert found.as_text().count(" while(") == want.as_text().count(" while(") == 2
    assert outer.trace().cost["flops"] == loops_and_flops(want)[1]


@pytest.mark.parametrize("name", ["cond in scan", "layer norm", "sort"])
def test_derivatives_of_second_order_through_what_runs_once(name: str) -> None:
    f, w = loss_of(FUNCTIONS[name]), jv.Variable(X)

    def penalty() -> Any:
        with jv.GradientTape() as outer:
            _, grad = taped(f, w)
            size = jnp.sum(grad**2)
        return outer.gradient(size, w, unconnected_gradients="zero")  # the slope of a sort is flat

    want = jax.jit(jax.grad(lambda x: jnp.sum(jax.grad(f)(x) ** 2)))(X)
    assert np.allclose(jv.compile(penalty)(), want, rtol=1e-4, atol=1e-4)
    assert np.allclose(penalty(), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["cond in scan", "layer norm", "sort"])
def test_jacobians_and_tangents_through_what_runs_once(name: str) -> None:
    f, w = FUNCTIONS[name], jv.Variable(X)

    @jv.compile
    def program() -> Any:
        with jv.ForwardAccumulator(w, jnp.ones_like(X)) as forward, jv.GradientTape() as tape:
            y = jnp.sum(f(w.value), -1)
        return forward.jvp(y), tape.jacobian(y, w)

    tangent, jacobian = program()
    by_jax = lambda x: jnp.sum(f(x), -1)  # noqa: E731 - one use
    assert np.allclose(tangent, jax.jvp(by_jax, (X,), (jnp.ones_like(X),))[1], atol=1e-5)
    assert np.allclose(jacobian, jax.jacrev(by_jax)(X), atol=1e-5)


@pytest.mark.parametrize("name", ["cond in scan", "layer norm", "sort"])
def test_other_transforms_over_a_tape_over_what_runs_once(name: str) -> None:
    f, xs = loss_of(FUNCTIONS[name]), jnp.stack([X, -X])

    def slope(x: Any) -> Any:
        with jv.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return jnp.sum(tape.gradient(y, x) ** 2)

    by_jax = lambda x: jnp.sum(jax.grad(f)(x) ** 2)  # noqa: E731 - one use
    assert np.allclose(jax.vmap(slope)(xs), jax.vmap(by_jax)(xs), rtol=1e-4)
    assert np.allclose(jax.grad(slope)(X), jax.grad(by_jax)(X), rtol=1e-4, atol=1e-4)
    assert np.allclose(jax.jvp(slope, (X,), (X,))[1], jax.jvp(by_jax, (X,), (X,))[1], rtol=1e-3)


OWN_RULES: dict[str, Callable[[Any], Any]] = {
    "custom_vjp": clip_gradient,
    "custom_jvp": own_tangent,
    "in jit": jax.jit(lambda x: jnp.tanh(own_tangent(jnp.exp(-x)) * x / 2)),
    "in scan": lambda x: jax.lax.scan(lambda c, _: (clip_gradient(c), None), x, None, length=2)[0],
}


@pytest.mark.parametrize("name", OWN_RULES)
def test_the_value_under_a_tape_keeps_its_rule_for_every_derivative(name: str) -> None:
    f, w = OWN_RULES[name], jv.Variable(2.0, name="w")

    def value_and_slope() -> Any:
        with jv.GradientTape() as tape:
            y = f(w * 1.0)
        return y + tape.gradient(y, w)

    def program() -> Any:
        with jv.GradientTape() as outer:
            z = value_and_slope()
        return outer.gradient(z, w)

    want = jax.grad(lambda x: f(x) + jax.grad(f)(x))(2.0)
    assert np.allclose([program(), program(), jv.compile(program)()], want)
    pure = jv.functionalize(value_and_slope)
    assert np.allclose(jax.grad(lambda state: pure(state)[0])(jv.State.of(w))["w"], want)


# ---------------------------------------------------------------- compiled from the second time
def seen() -> tuple[int, int]:
    """How many structures have been seen, and how many of them are compiled."""
    return len(reverse._SEEN), sum(known is not None for known in reverse._SEEN.values())


REPEATED = [
    "polynomial", "matmul", "relu", "gelu", "silu", "softmax", "layer norm", "convolution",
    "gather", "where", "dropout", "jit", "cond",
]  # fmt: skip


@pytest.mark.parametrize("name", REPEATED)
def test_a_replay_of_operations_met_before_is_compiled_from_the_second_time(name: str) -> None:
    f, w = loss_of(FUNCTIONS[name]), jv.Variable(X)
    taped(f, w)
    reverse._SEEN.clear()
    reverse._ANSWERS.clear()
    counts = []
    for _ in range(4):
        taped(f, w)
        counts.append(seen())
    assert counts == [(1, 0), (1, 1), (1, 1), (1, 1)]


@pytest.mark.parametrize("name", [name for name in REPEATED if name != "jit"])  # it holds arrays
def test_a_replay_of_new_operations_is_compiled_at_once(name: str) -> None:
    f, w = loss_of(FUNCTIONS[name]), jv.Variable(X)
    for _ in range(3):
        taped(f, w)
        assert seen() == (1, 1)


def test_a_replay_of_few_new_operations_is_not_compiled_at_once() -> None:
    w = jv.Variable(X)
    for length in (4, 3, 2, 5, 6):  # of a Python loop
        taped(lambda x, n=length: functools.reduce(lambda h, _: jnp.sin(h) * x, range(n), x), w)
    assert seen() == (5, 0)


def test_a_replay_on_inputs_of_other_shapes_is_new() -> None:
    for count in (1, 2, 3):
        taped(lambda x: jnp.sum(jnp.sin(x)), jv.Variable(X[:count]))
        assert seen() == (count, count)


@pytest.mark.parametrize("name", ["custom_jvp", "custom_vjp"])
def test_a_replay_that_runs_a_users_rule_is_not_compiled(name: str) -> None:
    f, w = loss_of(FUNCTIONS[name]), jv.Variable(X)
    for _ in range(3):
        taped(f, w)
    assert seen() == (0, 0)


@pytest.mark.parametrize("kind", ["custom_jvp", "defjvps", "custom_vjp", "argument"])
@pytest.mark.parametrize("where", ["global", "attribute", "variable"])
def test_an_eager_rule_reads_what_is_there_each_time(kind: str, where: str) -> None:
    slope, holder, w = jv.Variable(0.0, trainable=False), SimpleNamespace(), jv.Variable(3.0)
    read = {
        "global": lambda: globals()["SLOPE"],
        "attribute": lambda: holder.slope,
        "variable": lambda: slope.value,
    }[where]
    f = ruled(kind, lambda given: given * read())
    found = []
    for i in range(4):
        slope.assign(float(i))
        holder.slope = globals()["SLOPE"] = float(i)
        found.append(taped(lambda x: f(x * 1.0), w)[1])
    assert found == [0.0, 1.0, 2.0, 3.0]


def ruled(kind: str, rule: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function whose derivative is what a function makes of a tangent or cotangent."""
    if kind == "argument":  # of a function that is no more JAX's for being called by JAX's
        given = jax.custom_vjp(lambda rule, x: x * 2.0, nondiff_argnums=(0,))
        given.defvjp(lambda rule, x: (x * 2.0, None), lambda rule, _, ct: (rule(ct),))
        return lambda x: given(rule, x)
    f: Any = getattr(jax, kind.replace("defjvps", "custom_jvp"))(lambda x: x * 2.0)
    if kind == "custom_jvp":
        f.defjvp(lambda primals, tangents: (primals[0] * 2.0, rule(tangents[0])))
    elif kind == "defjvps":
        f.defjvps(lambda tangent, result, x: rule(tangent))
    else:
        f.defvjp(lambda x: (x * 2.0, None), lambda _, cotangent: (rule(cotangent),))
    return f


@pytest.mark.usefixtures("empty_jit_cache")
def test_a_training_loop_pays_the_compiler_once() -> None:
    w = jv.Variable(X)

    def step(scale: float) -> None:
        with jv.GradientTape() as tape:
            loss = jnp.mean(jax.nn.relu(w * scale) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))

    step(1.0)
    step(1.0)
    (replay,) = reverse._SEEN.values()
    for _ in range(5):
        step(1.0)
    assert seen() == (1, 1)
    replayed: Any = replay
    assert replayed.quick._cache_size() == 1


def test_other_numbers_are_the_same_structure_and_other_operations_are_not() -> None:
    w = jv.Variable(X)
    for scale in (1.0, 2.0, 3.0):
        grad = taped(lambda x, scale=scale: jnp.sum(x * jnp.asarray(scale)), w)[1]
        assert np.all(grad == scale)
    assert seen() == (1, 1)
    taped(lambda x: jnp.sum(x + 1.0), w)
    assert seen() == (2, 1)


def test_closed_over_tables_are_not_a_reason_to_compile_again() -> None:
    table = jnp.arange(6.0)
    use_table = jax.jit(lambda x: jnp.sin(x) * table)
    w = jv.Variable(X)
    for _ in range(3):
        _, grad = taped(lambda x: jnp.sum(use_table(x * 2)), w)
    assert seen() == (1, 1)
    assert np.allclose(grad, 2 * jnp.cos(2 * X) * table, atol=1e-6)


def test_a_known_table_is_an_input_of_the_replay() -> None:
    w = jv.Variable(2.0)
    for value in (1.0, 2.0, 3.0):
        w.assign(value)
        with jv.GradientTape() as tape:
            h = w * w
            y = jax.jit(lambda x, h=h: x * h)(5.0) + jax.jit(lambda x: x * h)(5.0)  # noqa: B023
        assert tape.gradient(y, w) == 20.0 * value


def test_the_replay_of_a_changed_closure_is_another_one() -> None:
    w = jv.Variable(2.0)
    for value in (1.0, 2.0, 3.0):
        f = jax.custom_jvp(lambda x, value=value: x * value)
        f.defjvp(lambda x, dx, value=value: (x[0] * value, dx[0] * value))
        assert taped(f, w) == (2.0 * value, value)


def test_what_is_remembered_is_limited() -> None:
    w = jv.Variable(2.0)
    for i in range(reverse._SEEN_LIMIT + 5):
        reverse._SEEN[i] = None
    for i in range(reverse._MET_LIMIT + 5):
        reverse._MET[i] = None
    taped(lambda x: x * 2, w)
    assert len(reverse._SEEN) == reverse._SEEN_LIMIT
    assert len(reverse._MET) == reverse._MET_LIMIT


# ---------------------------------------------------------------- memory
def closing_jit(w: Any, x: Any) -> Any:
    return jax.jit(lambda z: z * x)(w)


def closing_nested_jit(w: Any, x: Any) -> Any:
    return jax.jit(lambda q: jax.jit(lambda z: z * x)(q))(w)


def closing_custom_vjp(w: Any, x: Any) -> Any:
    f = jax.custom_vjp(lambda z: z * x)
    f.defvjp(lambda z: (z * x, None), lambda _, g: (g * x,))
    return f(w)


def closing_custom_jvp(w: Any, x: Any) -> Any:
    f = jax.custom_jvp(lambda z: z * x)
    f.defjvp(lambda z, dz: (z[0] * x, dz[0] * x))
    return f(w)


USES: dict[str, Callable[[Any, Any], Any]] = {
    "operation": lambda w, x: w * x,
    "jit": closing_jit,
    "nested jit": closing_nested_jit,
    "custom_vjp": closing_custom_vjp,
    "custom_jvp": closing_custom_jvp,
    "scan": lambda w, x: jax.lax.scan(lambda c, _: (c * x, None), w, None, length=2)[0],
    "custom_gradient": lambda w, x: jv.custom_gradient(lambda z: (z * x, lambda up: up * x))(w),
    "recompute_grad": lambda w, x: jv.recompute(lambda z: jnp.sin(z * x))(w),
    "compile": lambda w, x: jv.compile(lambda z: w * z)(x),
}


@pytest.mark.parametrize("name", USES)
def test_no_array_is_kept_alive(name: str) -> None:
    w = jv.Variable(jnp.ones(3))
    for _ in range(3):
        x = jnp.arange(3.0)
        with jv.GradientTape(persistent=True) as tape:
            h = jnp.sin(w * 2)
            y = jnp.sum(USES[name](h, x))
        grad = tape.gradient(y, w)
        assert grad is not None
        held = [weakref.ref(value) for value in (x, h, y, grad)]
        del x, h, y, grad, tape
        gc.collect()
        assert [ref() for ref in held] == [None] * 4


def test_a_tape_frees_its_values_without_the_garbage_collector() -> None:
    w = jv.Variable(jnp.ones(3))
    gc.collect()
    gc.disable()
    try:
        with jv.GradientTape() as tape:
            h = jnp.sin(w * 2)
            y = jnp.sum(h)
        tape.gradient(y, w)
        held = weakref.ref(h), weakref.ref(tape)
        del h, y, tape
        assert [ref() for ref in held] == [None, None]
    finally:
        gc.enable()


def test_reset_frees_the_values() -> None:
    w = jv.Variable(jnp.ones(3))
    with jv.GradientTape(persistent=True) as tape:
        held = weakref.ref(jnp.sin(w * 2))
        assert held() is not None  # only the tape holds it
        tape.reset()
        assert held() is None


# ---------------------------------------------------------------- the record itself
def test_only_what_depends_on_a_watched_value_is_recorded() -> None:
    record, x, other = Record(), jnp.asarray(2.0), jnp.asarray(3.0)
    record.watch(x)
    with recording(record):
        y = x * other
        z = other * 5.0
    assert (record.knows(x), record.knows(y), record.knows(other), record.knows(z)) == (
        True, True, False, False,
    )  # fmt: skip
    assert sum(any(value is y for value in node.outputs) for node in record.nodes) == 1


def test_a_program_is_only_what_is_between() -> None:
    record, x = Record(), jnp.asarray(2.0)
    record.watch(x)
    with recording(record):
        a = jnp.sin(x)
        b = jnp.cos(a)
        jnp.tanh(a)
        jnp.exp(x)
    program = record.make_program([a], [b], replay_loops=True)
    assert program.connected == [True]
    assert np.allclose(program.function([jnp.asarray(1.0)], program.constants)[0], np.cos(1.0))
    assert record.make_program([b], [a], replay_loops=True).connected == [False]


def test_what_has_gradients() -> None:
    values = [1.0, jnp.asarray(1.0), jnp.asarray(1), jnp.asarray(1j), np.float32(1), "a", None]
    assert [is_inexact(x) for x in values] == [False, True, False, True, True, False, False]


def test_total_of_one_is_that_one() -> None:
    x = jnp.asarray(1.0)
    assert add_up([x]) is x
    assert add_up([x, x, x]) == 3.0


def through_refs(x: Any) -> Any:
    ref = jax.new_ref(jnp.zeros(2))
    ref[0] = x * x
    return ref[...].sum()


def of_a_new_ref(x: Any) -> Any:
    return jax.freeze(jax.new_ref(x * x))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", [through_refs, of_a_new_ref])
def test_what_is_written_to_a_ref_is_refused(f: Any, compiled: bool) -> None:
    v = jv.Variable(3.0)

    def slope(f: Any) -> Any:
        with jv.GradientTape() as tape:
            y = f(v.value) + v
        return tape.gradient(y, v)

    run = jv.compile(slope, static_argnames="f") if compiled else slope
    with pytest.raises(TapeError, match=r"written to a jax\.Ref.*jv\.stop_gradient"):
        run(f)
    assert float(run(jax.jit(of_a_new_ref))) == 7.0  # the cures that it names
    assert float(run(stopped)) == 1.0


def stopped(x: Any) -> Any:
    return through_refs(jv.stop_gradient(x))


@pytest.mark.parametrize("decorate", [jv.compile, lambda f: f])
def test_a_loop_that_calls_the_host_in_order_calls_in_each_iteration(decorate: Any) -> None:
    w, calls = jv.Variable(2.0), []

    @decorate
    def power() -> Any:
        def body(carry: Any, _: None) -> Any:
            jax.experimental.io_callback(lambda: calls.append(1), None, ordered=True)
            return carry * w, None

        return jv.scan(body, jnp.ones(()), None, length=3)[0]

    @decorate
    def beside() -> Any:
        def body(carry: Any, _: None) -> Any:
            jax.experimental.io_callback(lambda: calls.append(1), None, ordered=True)
            return carry, None

        jv.scan(body, (), None, length=3)
        return w * w

    with jv.GradientTape(persistent=True) as tape:
        y, z = power(), beside()
    jax.effects_barrier()
    assert (float(y), float(z), len(calls)) == (8.0, 4.0, 6)
    assert float(tape.gradient(z, w)) == 4.0
    if decorate is jv.compile:
        with pytest.raises(TapeError, match="calls the host in each iteration"):
            tape.gradient(y, w)
    else:
        assert float(tape.gradient(y, w)) == 12.0

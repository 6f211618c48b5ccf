"""stop_gradient, custom_gradient, recompute_grad and ForwardAccumulator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tape_programs import both_ways, derivatives

import jaxvars as jv
from jaxvars.errors import GradientWarning, TapeError


def vector() -> jax.Array:
    return jnp.asarray([1.0, -2.0, 3.0])


# ---------------------------------------------------------------- rules that read variables
SLOPE = jv.Variable(0.0, name="slope", trainable=False)
W = jv.Variable(3.0)
TABLE = jnp.asarray([1.0, 2.0, 3.0])

by_tangent = jax.custom_jvp(lambda x: x * 2.0)

by_tangent.defjvp(lambda primals, tangents: (by_tangent(*primals), tangents[0] * SLOPE))

by_forward = jax.custom_vjp(lambda x: x * 2.0)

by_forward.defvjp(lambda x: (by_forward(x), SLOPE.value), lambda kept, ct: (ct * kept,))

by_backward = jax.custom_vjp(lambda x: x * 2.0)

by_backward.defvjp(lambda x: (by_backward(x), None), lambda _, ct: (ct * SLOPE,))

RULED = [by_tangent, by_forward, by_backward]
BODIES: dict[str, Callable[[Any], Any]] = {
    "call": lambda f: f(W * 1.0),
    "scan": lambda f: jv.scan(lambda c, _: (f(c), None), W * 1.0, length=1)[0],
    "while": lambda f: jv.while_loop(lambda c: c < 5.0, f, W * 1.0),
    "cond": lambda f: jv.cond(W > 0, lambda: f(W * 1.0), lambda: W * 1.0),
    "compiled": lambda f: jv.compile(lambda: f(W * 1.0))(),
    "vmap": lambda f: jnp.sum(jax.vmap(f)(W * jnp.ones(1))),
    "recomputed": lambda f: jv.recompute(lambda x: f(x * 1.0))(W * 1.0),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("f", RULED, ids=lambda f: f.__name__)
def test_a_rule_reads_the_variable_as_it_is_each_time(f: Any, name: str) -> None:
    body = BODIES[name]

    def slope(body: Callable[[Any], Any]) -> Any:
        with jv.GradientTape() as tape:
            y = body(f)
        return tape.gradient(y, W)

    compiled = jv.compile(lambda: body(f))
    ways = [
        lambda: slope(body),
        jv.compile(lambda: slope(body)),
        lambda: slope(lambda _: compiled()),
    ]
    for value in (1.0, 2.0, 3.0):
        SLOPE.assign(value)
        assert [way() for way in ways] == [value] * 3


def test_a_rule_that_jax_would_keep_may_read_no_variable() -> None:
    def body(c: Any, _: None) -> tuple[Any, None]:
        return by_backward(c), None

    loop = jv.compile(lambda: jax.lax.scan(body, W * 1.0, None, length=2)[0])
    with jv.GradientTape() as tape:
        y = loop()
    with pytest.raises(TapeError, match=r"'slope' is read at .* by the rule .*jv\.scan"):
        tape.gradient(y, W)


INNER: dict[str, Callable[[Any], Any]] = {
    "jit": lambda f: jax.jit(f)(W * 1.0),
    "scan": lambda f: jax.lax.scan(lambda c, _: (f(c), None), W * 1.0, None, length=2)[0],
}


@pytest.mark.parametrize("name", INNER)
def test_a_rule_in_a_function_of_jax_s_own_is_refused_under_an_inner_tape(name: str) -> None:
    @jv.compile
    def slope() -> Any:
        with jv.GradientTape() as tape:
            y = INNER[name](by_backward)
        return tape.gradient(y, W)

    with pytest.raises(TapeError, match=r"'slope' is read at .* by the rule .*jv\.scan"):
        slope()


def test_a_rule_may_not_read_what_the_function_around_it_assigns() -> None:
    @jv.compile
    def step() -> Any:
        y = by_tangent(W * 1.0)
        SLOPE.assign_add(1.0)
        return y

    with jv.GradientTape() as tape:
        y = step()
    with pytest.raises(TapeError, match=r"(?s)reads the variables \['slope'\], which .* assigns"):
        tape.gradient(y, W)


@pytest.mark.parametrize("reads", [False, True])
def test_a_function_with_a_rule_closes_over_a_table(reads: bool) -> None:
    scaled = jax.custom_vjp(lambda x: x * TABLE)
    scaled.defvjp(
        lambda x: (x * TABLE, None),
        lambda _, upstream: (upstream * TABLE * (SLOPE.value if reads else 2.0),),
    )
    SLOPE.assign(2.0)
    for model in (
        jv.compile(lambda: scaled(W * jnp.ones(3))),
        jv.compile(lambda: jv.compile(scaled)(W * jnp.ones(3))),
        jv.recompute(lambda: scaled(W * jnp.ones(3))),
        lambda: scaled(W * jnp.ones(3)),
    ):
        with jv.GradientTape() as tape:
            y = model()
        assert float(tape.gradient(y, W)) == 12.0


# ---------------------------------------------------------------- functions with custom rules
@both_ways
def test_stop_gradient(way: Callable[..., Any]) -> None:
    w = jv.Variable(3.0)

    def program() -> Any:
        with jv.GradientTape(persistent=True) as tape:
            mixed = w * jv.stop_gradient(w)
            stopped = jv.stop_gradient({"a": w * 1.0})["a"] * 2
        return tape.gradient(mixed, w), tape.gradient(stopped, w)

    with pytest.warns(GradientWarning, match=r"tape\.explain"):
        assert way(program) == (3.0, None)


@both_ways
def test_custom_gradient(way: Callable[..., Any]) -> None:
    @jv.custom_gradient
    def clipped(x: Any) -> Any:
        return x * 1.0, lambda upstream: jnp.clip(upstream, -1.0, 1.0)

    w = jv.Variable(3.0)

    def program() -> Any:
        with jv.GradientTape() as tape:
            y = clipped(w) * 100.0
        return y, tape.gradient(y, w)

    assert way(program) == (300.0, 1.0)


def test_custom_gradient_of_several_arguments_and_results() -> None:
    @jv.custom_gradient
    def f(x: Any, *, scale: float, y: Any = None) -> Any:
        return (x * scale, x + 1), lambda up1, up2: 10.0 * up1 + up2

    x = jnp.asarray(2.0)
    with jv.GradientTape() as tape:
        tape.watch(x)
        a, b = f(x, scale=3.0)
        z = a * 2.0 + b
    assert (a, b) == (6.0, 3.0)
    assert tape.gradient(z, x) == 21.0


def test_custom_gradient_with_none_and_pytrees() -> None:
    @jv.custom_gradient
    def f(pair: Any, flag: Any) -> Any:
        def grad(upstream: Any) -> Any:
            return {"a": upstream * 7.0, "b": upstream * 9.0}, None

        return pair["a"] * pair["b"] if flag else pair["a"], grad

    x = {"a": jnp.asarray(2.0), "b": jnp.asarray(3.0)}
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = f(x, True)
    assert tape.gradient(y, x) == {"a": 7.0, "b": 9.0}


@both_ways
def test_custom_gradient_with_variables(way: Callable[..., Any]) -> None:
    w = jv.Variable(2.0, name="w")

    @jv.custom_gradient
    def f(x: Any) -> Any:
        def grad(upstream: Any, variables: Any = None) -> Any:
            assert [v.name for v in variables] == ["w"]
            return upstream * 10.0, [upstream * 100.0]

        return x * w, grad

    x = jnp.asarray(3.0)

    def program() -> Any:
        with jv.GradientTape() as tape:
            tape.watch(x)
            y = f(x) * 2.0
        return y, tape.gradient(y, [x, w])

    y, (dx, dw) = way(program)
    assert (y, dx, dw) == (12.0, 20.0, 200.0)


def test_custom_gradient_must_account_for_the_variables_it_reads() -> None:
    w = jv.Variable(2.0, name="w")
    f = jv.custom_gradient(lambda x: (x * w, lambda upstream: upstream))
    with jv.GradientTape() as tape:
        y = f(jnp.asarray(1.0))
    message = r"(?s)reads the trainable variables \['w'\].*variables=None"
    with pytest.raises(TapeError, match=message):
        tape.gradient(y, w)


@both_ways
def test_variables_that_only_the_gradient_function_reads_are_not_asked_for(way: Any) -> None:
    x = jnp.asarray(2.0)
    lam, w = jv.Variable(3.0, name="lam"), jv.Variable(5.0, name="w")
    reversal = jv.custom_gradient(lambda x: (x * 1.0, lambda upstream: -lam * upstream))

    @jv.custom_gradient
    def scaled(x: Any) -> Any:
        def grad(upstream: Any, variables: Any = None) -> Any:
            return upstream * lam, [upstream for _ in variables]

        return x * w, grad

    def program() -> Any:
        with jv.GradientTape() as tape:
            tape.watch(x)
            y = reversal(x) + scaled(x)
        return tape.gradient(y, [x, w, lam])

    assert way(program) == [0.0, 1.0, None]


def test_custom_gradient_may_read_variables_that_are_not_trainable() -> None:
    frozen = jv.Variable(2.0, trainable=False)
    f = jv.custom_gradient(lambda x: (x * frozen, lambda upstream: upstream * frozen * 10.0))
    w = jv.Variable(1.0)
    with jv.GradientTape() as tape:
        y = f(w)
    assert tape.gradient(y, w) == 20.0


def test_custom_gradient_reads_variables_in_its_gradient_anew_each_time() -> None:
    w, scale = jv.Variable(1.0), jv.Variable(2.0, trainable=False)
    f = jv.custom_gradient(lambda x: (x * 1.0, lambda upstream: upstream * scale))
    for value in (2.0, 3.0, 4.0, 5.0):  # the replay is compiled from the second time
        scale.assign(value)
        with jv.GradientTape() as tape:
            y = f(w)
        assert tape.gradient(y, w) == value


def test_custom_gradient_may_have_a_gradient_that_raises() -> None:
    @jv.custom_gradient
    def f(x: Any) -> Any:
        def grad(upstream: Any) -> Any:
            raise NotImplementedError("no gradient of f")

        return x * 2.0, grad

    w = jv.Variable(1.0)
    with jv.GradientTape() as tape:
        y = f(w)
    assert y == 2.0
    with pytest.raises(NotImplementedError, match="no gradient of f"):
        tape.gradient(y, w)


def test_custom_gradient_refuses_assignments() -> None:
    w = jv.Variable(2.0, name="w")

    @jv.custom_gradient
    def f(x: Any) -> Any:
        w.assign(x)
        return x, lambda upstream: upstream

    with pytest.raises(TapeError, match=r"custom_gradient function f assigns \['w'\]"):
        f(jnp.asarray(1.0))
    assert w == 2.0


def test_custom_gradient_counts_the_gradients() -> None:
    @jv.custom_gradient
    def f(x: Any, y: Any) -> Any:
        return x * y, lambda upstream: upstream

    w = jv.Variable(1.0)
    with jv.GradientTape() as tape:
        y = f(w, jnp.asarray(2.0))
    with pytest.raises(TapeError, match="of f returned 1 gradients for 2 arguments"):
        tape.gradient(y, w)


def test_custom_gradient_works_in_all_of_jax() -> None:
    @jv.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = jnp.exp(x)
        return jnp.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    assert jax.grad(log1pexp)(100.0) == 1.0
    assert jax.jit(jax.vmap(jax.grad(log1pexp)))(jnp.full(2, 100.0)).tolist() == [1.0, 1.0]
    assert log1pexp(0.0) == jnp.log(2.0)


@pytest.mark.parametrize(
    "after",
    [
        jax.nn.softmax,
        lambda v: 1 / (2 + v),
        lambda v: jax.lax.scan(lambda c, e: (jnp.sin(c + e), c), 0.1, v)[1],
    ],
)
@pytest.mark.parametrize("decorate", [lambda f: f, jv.compile])
def test_a_rule_that_is_not_the_derivative_in_nested_tapes_is_jax_s(after: Any, decorate: Any):
    scaled = jax.custom_vjp(lambda v: jnp.sin(v))
    scaled.defvjp(lambda v: (jnp.sin(v), v), lambda v, g: (g * jnp.cos(v) * 0.9,))
    w = jv.Variable([0.1, 0.4, -0.3])

    @decorate
    def twice() -> Any:
        with jv.GradientTape() as outer:
            with jv.GradientTape() as tape:
                loss = jnp.sum(after(scaled(w.value)) * jnp.arange(3.0))
            total = jnp.sum(tape.gradient(loss, w) ** 2)
        return outer.gradient(total, w)

    slope = jax.grad(lambda v: jnp.sum(after(scaled(v)) * jnp.arange(3.0)))
    want = jax.grad(lambda v: jnp.sum(slope(v) ** 2))(w.value)
    np.testing.assert_allclose(twice(), want, rtol=1e-5)


def test_custom_gradient_of_second_order() -> None:
    cube = jv.custom_gradient(lambda x: (x**3, lambda upstream: upstream * 3 * x**2))
    assert derivatives(jnp.asarray(2.0), cube, 2) == [8.0, 12.0, 12.0]


def closes_over(y: Any, b: Any) -> Any:
    return jv.custom_gradient(lambda y: (y * y * b, lambda upstream: upstream * y * b * 5.0))(y)


def closes_over_an_intermediate(y: Any, b: Any) -> Any:
    @jv.custom_gradient
    def f(y: Any) -> Any:
        z = y * b
        return z * y, lambda upstream: upstream * z * 5.0

    return f(y)


def closes_over_in_the_gradient(y: Any, b: Any) -> Any:
    return jv.custom_gradient(lambda y: (y * y, lambda upstream: upstream * y * b))(y)


WHERE: dict[str, Callable[..., Any]] = {
    "eager": lambda twice, f: twice(f),
    "tapes outside": lambda twice, f: twice(jv.compile(f)),
    "tapes inside": lambda twice, f: jv.compile(lambda: twice(f))(),
    "within": lambda twice, f: jv.compile(lambda: twice(jv.compile(f)))(),
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(
    ("f", "power", "first", "second"),
    [  # as in TensorFlow: the upstream gradient 2 * f is differentiated by the rule, not as f is
        (closes_over, 2, 720.0, [2160.0, 240.0]),
        (closes_over_an_intermediate, 2, 720.0, [2160.0, 240.0]),
        (closes_over_in_the_gradient, 1, 6.0, [3.0, 2.0]),
    ],
    ids=["closes over", "an intermediate", "in the gradient"],
)
def test_a_custom_gradient_that_closes_over_something_differentiable(
    f: Any, power: int, first: float, second: list[float], where: str
) -> None:
    w, x = jv.Variable(2.0), jv.Variable(3.0)

    def twice(f: Callable[..., Any]) -> Any:
        with jv.GradientTape() as outer, jv.ForwardAccumulator([w, x], [1.0, 1.0]) as forward:
            a, b = w * 1.0, x * 1.0
            with jv.GradientTape() as tape:
                tape.watch([a, b])
                y = f(a, b) ** power
            grads = tape.gradient(y, [a, b])
        return grads, outer.gradient(grads[0], [w, x]), forward.jvp(grads[0])

    found, again, pushed = WHERE[where](twice, f)
    assert found == [first, None]
    assert again == second
    assert pushed == sum(second)


@both_ways
def test_recompute_grad(way: Callable[..., Any]) -> None:
    w, calls = jv.Variable(2.0), jv.Variable(0.0, trainable=False)

    @jv.recompute
    def block(x: Any, *, scale: float) -> Any:
        calls.assign_add(1.0)
        return jnp.sin(w * x) * scale * calls

    def program() -> Any:
        with jv.GradientTape() as tape:
            y = block(3.0, scale=2.0)
        return y, tape.gradient(y, w)

    y, grad = way(program)
    assert np.allclose([y, grad], [2 * np.sin(6.0), 6 * np.cos(6.0)])
    assert calls == 1.0
    assert np.isclose(way(program)[1], 12 * np.cos(6.0))
    assert calls == 2.0


def test_recompute_grad_keeps_no_intermediate_value() -> None:
    w = jv.Variable(jnp.ones(8))

    def chain(x: Any) -> Any:
        for _ in range(5):
            x = jnp.sin(x * w)
        return jnp.sum(x)

    def text(f: Callable[..., Any]) -> str:
        def step(x: Any) -> Any:
            with jv.GradientTape() as tape:
                y = f(x)
            return tape.gradient(y, w)

        return str(jv.compile(step).trace(jv.TensorSpec((8,))).jaxpr)

    assert "prevent_cse=True" in text(jv.recompute(chain))
    assert "prevent_cse" not in text(chain)


def test_recompute_grad_refuses_to_create_variables() -> None:
    kept = []

    @jv.recompute
    def f(x: Any) -> Any:
        kept.append(jv.Variable(1.0, name="late"))
        return x

    with pytest.raises(ValueError, match=r"recomputed function tried to create.*'late'"):
        f(1.0)


# ---------------------------------------------------------------- forward mode
def test_forward_accumulator() -> None:
    w, b = jv.Variable(vector()), jv.Variable(1.0)
    direction = jnp.asarray([1.0, 0.0, 2.0])
    with jv.ForwardAccumulator(w, direction) as acc:
        y = w**2 * b
        z = b * 2
    assert acc.jvp(y).tolist() == [2.0, 0.0, 12.0]
    assert acc.jvp(y).tolist() == [2.0, 0.0, 12.0]  # as often as you like
    assert acc.jvp(z) is None
    assert acc.jvp(z, unconnected_gradients="zero") == 0.0
    assert acc.jvp({"y": y, "z": [z]})["z"] == [None]


def test_forward_accumulator_of_several_primals() -> None:
    a, x = jv.Variable(2.0), jnp.asarray(3.0)
    with jv.ForwardAccumulator([a, x], [jnp.asarray(1.0), jnp.asarray(10.0)]) as acc:
        y = a * x
    assert acc.jvp(y) == 3.0 + 20.0


def test_forward_accumulator_differentiates_a_variable_that_is_not_trainable() -> None:
    frozen = jv.Variable(2.0, trainable=False)
    with jv.ForwardAccumulator(frozen, jnp.asarray(1.0)) as acc:
        y = frozen**2
    assert acc.jvp(y) == 4.0


def test_forward_accumulator_checks_the_tangents() -> None:
    w = jv.Variable(vector())
    with pytest.raises(TapeError, match=r"tangent has shape \(2,\), its primal \(3,\)"):
        jv.ForwardAccumulator(w, jnp.ones(2))
    with pytest.raises(TapeError, match="There are 1 primals, but 2 tangents"):
        jv.ForwardAccumulator(w, [jnp.ones(3), jnp.ones(3)])


@both_ways
def test_hessian_vector_product_forward_over_reverse(way: Callable[..., Any]) -> None:
    w, direction = jv.Variable(vector()), jnp.asarray([1.0, 1.0, 0.0])

    def loss(w: Any) -> Any:
        return jnp.sum(w**3) + w[0] * w[1]

    def program() -> Any:
        with jv.ForwardAccumulator(w, direction) as acc:
            with jv.GradientTape() as tape:
                y = loss(w)
            grad = tape.gradient(y, w)
        return acc.jvp(grad)

    assert np.allclose(way(program), jax.hessian(loss)(w.value) @ direction)


def test_forward_in_forward() -> None:
    w = jv.Variable(2.0)
    one = jnp.asarray(1.0)
    with jv.ForwardAccumulator(w, one) as outer:
        with jv.ForwardAccumulator(w, one) as inner:
            y = w**3
        first = inner.jvp(y)
    assert (first, outer.jvp(first)) == (12.0, 12.0)
    assert outer.jvp(inner.jvp(y)) == 12.0


# ---------------------------------------------------------------- loops and assigns
def below_100(c: Any) -> Any:
    return c < 100.0


def test_a_gradient_through_an_open_loop_of_jax_says_where_it_is_and_how_to_bound_it() -> None:
    w = jv.Variable(2.0, name="w")

    def gradient(x: Any, bound: int | None) -> Any:
        with jv.GradientTape() as tape:
            y = jv.while_loop(below_100, lambda c: c * w, x, max_iterations=bound)
        return tape.gradient(y, w)

    def gradient_of_jaxs(x: Any) -> Any:
        with jv.GradientTape() as tape:
            y = jax.lax.while_loop(below_100, lambda c: c * 2, x * w)
        return tape.gradient(y, w)

    assert float(gradient(1.0, None)) == 448.0  # eagerly: Python's own loop
    assert float(jv.compile(lambda x: gradient(x, None))(1.0)) == 448.0
    with pytest.raises(jv.errors.TapeError) as caught:
        jv.compile(gradient_of_jaxs)(1.0)
    message = str(caught.value)
    assert "number of iterations is only known when" in message
    assert "below_100 at " in message
    assert "test_tape_rules.py:" in message
    assert "max_iterations=100" in message
    assert float(jv.compile(lambda x: gradient(x, 20))(1.0)) == 448.0


def test_the_open_loop_is_found_inside_other_programs() -> None:
    w = jv.Variable(2.0)
    loop = jv.compile(lambda x: jax.lax.while_loop(below_100, lambda c: c * 2, x * w))
    branch = jv.compile(lambda x: jv.cond(x > 0, lambda: loop(x), lambda: x))
    for program in (loop, branch):
        with jv.GradientTape() as tape:
            y = program(1.0)
        with pytest.raises(jv.errors.TapeError, match=r"below_100 at .*test_tape_rules\.py"):
            tape.gradient(y, w)


def test_a_range_with_a_traced_end_that_prints_names_the_body() -> None:
    @jv.compile
    def power(x: Any, n: Any) -> Any:
        def times(i: Any, y: Any) -> Any:
            jv.print(i)
            return y * x

        with jv.GradientTape() as tape:
            tape.watch(x)
            y = jv.fori_loop(0, n, times, 1.0)
        return tape.gradient(y, x)

    with pytest.raises(jv.errors.TapeError, match=r"times at .*test_tape_rules\.py"):
        power(2.0, 3)


def test_another_value_error_of_a_gradient_is_left_as_it_is() -> None:
    f = jax.custom_vjp(lambda x: x)

    def backward(_: Any, upstream: Any) -> Any:
        raise ValueError("of the rule's own")

    f.defvjp(lambda x: (x, None), backward)
    x = jnp.asarray(1.0)
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    with pytest.raises(ValueError, match="of the rule's own"):
        tape.gradient(y, x)


def test_the_pure_function_is_differentiated_through_its_assigns() -> None:
    v = jv.Variable(2.0, name="v")

    @jv.compile
    def f(x: Any) -> Any:
        v.assign(v * x)
        return v * 3.0

    pure = jv.functionalize(f)
    of_state, of_x = jax.grad(lambda s, x: pure(s, x)[0], argnums=(0, 1))(jv.State.of(v), 5.0)
    assert (float(of_state["v"]), float(of_x)) == (15.0, 6.0)


def test_a_rule_may_index_a_constant_of_the_program() -> None:
    first_of = jax.custom_vjp(lambda x, table: x * table[0])

    def backward(saved: Any, upstream: Any) -> Any:
        x, table = saved
        return upstream * table[jnp.int32(x > 1e9)], None

    first_of.defvjp(lambda x, table: (first_of(x, table), (x, table)), backward)
    inner = jv.compile(lambda: first_of(W.value, jnp.array([4, 5])))

    def slope() -> Any:
        with jv.GradientTape() as tape:
            y = inner()
        return tape.gradient(y, W)

    assert float(slope()) == float(jv.compile(slope)()) == 4.0


@pytest.mark.parametrize(
    "leaks", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "checking leaks"]
)
def test_custom_gradients_in_nested_tapes_and_forward_mode_compiled_as_eagerly(leaks: bool) -> None:
    w = jv.Variable(2.0, name="w")

    @jv.custom_gradient
    def custom(x: Any) -> Any:
        e = jnp.exp(x * w)
        return e, lambda upstream, variables=None: (upstream * e * w, [upstream * e * x])

    saved = jv.recompute(lambda x: jnp.sin(x * w))

    def second(fn: Any, x: Any) -> Any:
        with jv.GradientTape() as outer:
            with jv.GradientTape() as inner:
                y = fn(x) * w**3
            g = inner.gradient(y, w)
        return outer.gradient(g, w)

    def forward_over_reverse(x: Any) -> Any:
        with jv.ForwardAccumulator(w, jnp.asarray(1.0)) as acc:
            with jv.GradientTape() as tape:
                y = saved(x) * w
            g = tape.gradient(y, w)
        return acc.jvp(g)

    def all_of_them(x: Any) -> Any:
        return second(custom, x), second(saved, x), forward_over_reverse(x)

    with jax.checking_leaks() if leaks else contextlib.nullcontext():
        np.testing.assert_allclose(jv.compile(all_of_them)(1.0), all_of_them(1.0), rtol=1e-6)


# ---------------------------------------------------------------- what is not an array stays
def _repeated(x: Any, how: Any) -> Any:
    for _ in range(how):
        x = x * 3.0
    return x


KINDS_OF_ARGUMENTS: dict[str, tuple[Any, Any]] = {
    "bool": (lambda x, how: x * 3.0 if how else x, True),
    "bool of NumPy": (lambda x, how: x * 3.0 if how else x, np.bool_(True)),
    "float": (lambda x, how: x if how > 0.5 else -x, 0.7),
    "count": (_repeated, 2),
    "count of NumPy": (_repeated, np.int64(2)),
    "axis": (lambda x, how: x.sum(how), 1),
    "shape": (lambda x, how: x.reshape(how)[0], (3, 2)),
    "list": (lambda x, how: x * sum(k for k in how if k > 1), [1, 2.5]),
    "dict": (lambda x, how: x * how["by"] if how["on"] else x, {"by": 2.0, "on": True}),
    "string": (lambda x, how: x if how == "same" else -x, "same"),
    "array of NumPy": (lambda x, how: x * how, np.full((2, 3), 2.0, np.float32)),
}
FORMS: dict[str, Callable[[Any], Any]] = {
    "recompute": jv.recompute,
    "recompute by name": lambda f: lambda x, how: jv.recompute(f)(x, how=how),
    "custom_gradient": lambda f: jv.custom_gradient(
        lambda x, how: (f(x, how), lambda up: [up * jax.grad(f)(x, how), *jax.tree.leaves(how)])
    ),
    "cond": lambda f: lambda x, how: jv.cond(x.sum() > 0, f, lambda x, _: x.sum(), x, how),
    "switch": lambda f: lambda x, how: jv.switch(jnp.int32(x.sum()), [f, f], x, how),
    "vectorized_map": lambda f: (
        lambda x, how: jv.vectorized_map(
            lambda parts: f(*parts), (x[None], how), in_axes=(0, None)
        )[0]
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KINDS_OF_ARGUMENTS)
def test_what_is_no_array_stays_what_it_is(name: str, form: str) -> None:
    fn, how = KINDS_OF_ARGUMENTS[name]
    x = jnp.arange(6.0).reshape(2, 3)

    def summed(x: Any, how: Any) -> Any:
        return jnp.sum(fn(x, how) ** 2)

    def program(x: Any) -> Any:
        with jv.GradientTape() as tape:
            tape.watch(x)
            y = FORMS[form](summed)(x, how)
        return y, tape.gradient(y, x)

    expected = jax.value_and_grad(summed)(x, how)
    for found in (program(x), jv.compile(program)(x)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("form", ["recompute", "custom_gradient"])
def test_a_decision_by_an_array_names_the_function_and_the_argument(form: str) -> None:
    def positive(x: Any, sign: Any) -> Any:
        return x if sign > 0 else -x

    def with_gradient(x: Any, sign: Any) -> Any:
        return positive(x, sign), lambda upstream: (upstream, None)

    fn = positive if form == "recompute" else with_gradient
    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        getattr(jv, form)(fn)(jnp.ones(2), jnp.float32(1.0))
    for part in (
        f"function {fn.__name__} at test_tape_rules.py:",
        f"jv.{form}",
        "argument args[1]",
    ):
        assert part in str(caught.value)
    if form == "recompute":
        with pytest.raises(
            jax.errors.TracerBoolConversionError, match=r"argument kwargs\['sign'\]"
        ):
            jv.recompute(positive)(jnp.ones(2), sign=jnp.float32(1.0))

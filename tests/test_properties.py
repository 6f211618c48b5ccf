"""The promise that all others rest on: eager(p) == compiled(p) == pure(p) for every program p.

A program is a list of statements over three variables and an argument. It is run eagerly,
compiled, and as a pure function under `jax.jit`; outputs, final values and gradients agree.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import jaxvars as jv

NAMES = ("a", "b", "c")
names = st.sampled_from(NAMES)
numbers = st.sampled_from([-1.5, -0.5, 0.25, 1.0, 2.0])

expressions: st.SearchStrategy[Any] = st.recursive(
    st.one_of(names, st.just("x"), numbers),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*"]), inner, inner),
        st.tuples(st.sampled_from(["tanh", "sin", "sum", "reverse"]), inner),
    ),
    max_leaves=5,
)
statements = st.one_of(
    st.tuples(st.just("assign"), names, expressions),
    st.tuples(st.just("assign_add"), names, expressions),
    st.tuples(st.just("assign_part"), names, st.integers(0, 2), expressions),
    st.tuples(st.just("descend"), names, expressions),
    st.tuples(st.just("call"), names, expressions),
    st.tuples(st.just("scan"), names, expressions),
    st.tuples(st.just("if"), st.booleans(), names, expressions),
)
programs = st.lists(statements, min_size=1, max_size=5)


def value_of(expression: Any, variables: dict[str, jv.Variable], x: Any) -> Any:
    if isinstance(expression, float):
        return jnp.full(3, expression)
    if isinstance(expression, str):
        return x if expression == "x" else variables[expression].value
    operator, *inner = expression
    left, *right = [value_of(e, variables, x) for e in inner]
    match operator:
        case "+":
            return left + right[0]
        case "-":
            return left - right[0]
        case "*":
            return left * right[0]
        case "sum":
            return jnp.full(3, jnp.sum(left) / 3)
        case "reverse":
            return left[::-1]
        case _:
            return getattr(jnp, operator)(left)


def bounded(value: Any) -> Any:
    return jnp.tanh(value)  # so that nothing overflows, however long the program


def adding(step: Any) -> Any:
    return lambda carry, _: (bounded(carry + step), carry[0])


def run(program: Any, variables: dict[str, jv.Variable], inner: Any, x: Any) -> Any:
    """Run a program; return what it computed on the way."""
    outputs = []
    for kind, *rest in program:
        match kind:
            case "assign":
                variables[rest[0]].assign(bounded(value_of(rest[1], variables, x)))
            case "assign_add":
                variables[rest[0]].assign_add(bounded(value_of(rest[1], variables, x)))
            case "assign_part":
                value = bounded(value_of(rest[2], variables, x))
                variables[rest[0]][rest[1]].assign(value[0])
            case "descend":
                with jv.GradientTape() as tape:
                    loss = jnp.sum(bounded(value_of(rest[1], variables, x)) ** 2)
                grad = tape.gradient(loss, variables[rest[0]], unconnected_gradients="zero")
                variables[rest[0]].assign_sub(0.5 * grad)
                outputs.append(grad)
            case "call":
                outputs.append(inner(variables[rest[0]], value_of(rest[1], variables, x)))
            case "scan":
                step = value_of(rest[1], variables, x)
                start = variables[rest[0]].value
                outputs.extend(jax.lax.scan(adding(step), start, None, length=3))
            case _:
                if rest[0]:
                    variables[rest[1]].assign(bounded(value_of(rest[2], variables, x)))
        outputs.append(variables["a"].value)
    return outputs


def fresh() -> dict[str, jv.Variable]:
    return {n: jv.Variable(jnp.arange(3.0) / 4 + i, name=n) for i, n in enumerate(NAMES)}


def nudge(variable: jv.Variable, by: Any) -> Any:
    variable.assign_add(0.1 * bounded(by))
    return variable * 2.0


def agree(one: Any, other: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5), one, other)


@given(programs)
def test_eager_is_compiled_is_pure(program):
    x = jnp.array([0.5, -1.0, 2.0])
    eager, compiled, pure = fresh(), fresh(), fresh()

    expected = [run(program, eager, nudge, x) for _ in range(2)]
    inner = jv.compile(nudge)
    step = jv.compile(lambda x: run(program, compiled, inner, x))
    agree([step(x) for _ in range(2)], expected)
    agree({n: v.value for n, v in compiled.items()}, {n: v.value for n, v in eager.items()})
    assert step.trace_count == 1

    transformed = jax.jit(jv.functionalize(lambda x: run(program, pure, nudge, x)))
    state = jv.State.of(pure)
    outputs = []
    for _ in range(2):
        result, state = transformed(state, x)
        outputs.append(result)
    agree(outputs, expected)
    agree(dict(state), {n: v.value for n, v in eager.items()})


@given(expressions, names)
def test_the_tape_is_jax_grad(expression, name):
    x = jnp.array([0.5, -1.0, 2.0])
    variables = fresh()

    def loss() -> Any:
        return jnp.sum(bounded(value_of(expression, variables, x)))

    with jv.GradientTape() as tape:
        value = loss()
    found = tape.gradient(value, variables[name], unconnected_gradients="zero")
    pure, state = jv.functionalize(loss), jv.State.of(variables)
    agree(found, jax.grad(lambda s: pure(s)[0])(state)[name])

    @jv.compile
    def compiled() -> Any:
        with jv.GradientTape() as tape:
            value = loss()
        return tape.gradient(value, variables[name], unconnected_gradients="zero")

    agree(compiled(), found)

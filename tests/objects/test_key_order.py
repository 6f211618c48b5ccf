"""Dicts keep the order of their keys: what a compiled function is given, and what it returns."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxvars as jv
from jaxvars.objects.key_order import in_order, is_sorted, order_of, order_test


class Pair(NamedTuple):
    first: Any
    second: Any


class Names(list[Any]):
    """A leaf to JAX, since JAX does not know its class."""


def ordered(tree: Any) -> str:
    """Return a tree as a string, in the order in which Python gives it."""
    if isinstance(tree, dict):
        return f"{{{', '.join(f'{key}: {ordered(x)}' for key, x in tree.items())}}}"
    if isinstance(tree, list | tuple):
        return f"[{', '.join(map(ordered, tree))}]"
    return str(float(tree))


TREES = st.recursive(
    st.integers(0, 9).map(float),
    lambda inner: (
        st.dictionaries(st.sampled_from("badc"), inner, max_size=4)
        | st.dictionaries(st.sampled_from([3, 1, 2]), inner, max_size=3).map(
            lambda d: defaultdict(list, d)
        )
        | st.lists(inner, max_size=3)
        | st.tuples(inner, inner).map(lambda pair: Pair(*pair))
    ),
    max_leaves=8,
)


@given(TREES)
def test_any_tree_is_put_in_order_again(tree: Any):
    sorted_by_jax = jax.tree.map(lambda x: x, tree)
    again = in_order(sorted_by_jax, order_of(tree))
    assert ordered(again) == ordered(tree)
    assert jax.tree.structure(again) == jax.tree.structure(tree)
    assert is_sorted(order_of(tree)) is (ordered(sorted_by_jax) == ordered(tree))
    if (is_same := order_test(order_of(tree))) is not None:
        assert is_same(tree)
        assert is_same(sorted_by_jax) is (ordered(sorted_by_jax) == ordered(tree))


@given(TREES)
def test_a_compiled_function_sees_and_returns_what_python_would(tree: Any):
    seen: list[str] = []

    def body(x: Any) -> Any:
        seen.append(_keys(x))
        return x

    step = jv.compile(body)
    for _ in range(3):
        assert ordered(step(tree)) == ordered(tree)
    assert seen == [_keys(tree)]


def _keys(tree: Any) -> str:
    if isinstance(tree, dict):
        return str([(key, _keys(x)) for key, x in tree.items()])
    return str(list(map(_keys, tree))) if isinstance(tree, list | tuple) else ""


def test_another_order_is_another_signature_and_each_is_hot():
    last = jv.Variable(jnp.zeros(2))
    step = jv.compile(lambda batch: last.assign(jnp.stack(list(batch.values()))).value)
    for _ in range(4):
        assert step({"y": 1.0, "x": 2.0}).tolist() == [1.0, 2.0]
        assert step({"x": 1.0, "y": 2.0}).tolist() == [1.0, 2.0]
    assert step.trace_count == 2
    assert step.traces.rows[1][1] == "another order of the keys of a dict"
    assert step._paths.tree(({"y": 1.0, "x": 5.0},), {}).tolist() == [1.0, 5.0]
    assert step._paths.tree(({"x": 1.0, "y": 5.0},), {}).tolist() == [1.0, 5.0]


def test_results_beside_what_is_not_an_array_and_in_other_functions():
    v = jv.Variable(1.0)
    inner = jv.compile(lambda x: {"loss": v.assign_add(x) * 2, "acc": {"n": "text", "b": x}})
    outer = jv.compile(lambda x: list(inner(x)) + list(inner(x)["acc"]))
    for _ in range(3):
        result = inner(1.0)
        assert [*result] == ["loss", "acc"]
        assert [*result["acc"]] == ["n", "b"]
    assert outer(1.0) == ["loss", "acc", "n", "b"]
    with jv.GradientTape() as tape:
        loss, _ = inner(v.value).values()
    assert float(tape.gradient(loss, v)) == 2.0


def test_classes_made_of_lists_are_left_alone():
    names = Names([{"b": 1, "a": 2}])
    step = jv.compile(lambda x: (x, names))
    for _ in range(2):
        assert step(1.0)[1] is names


def test_keywords_are_not_a_dict_but_what_they_hold_is():
    step = jv.compile(lambda *, k, **rest: (list(k.values()), sorted(rest)))
    for _ in range(3):
        assert ordered(step(k={"z": 1.0, "a": 2.0}, q=0.0, b=0.0)[0]) == "[1.0, 2.0]"
        assert ordered(step(b=0.0, q=0.0, k={"z": 1.0, "a": 2.0})[0]) == "[1.0, 2.0]"
    assert step.trace_count == 1


def test_a_concrete_function_takes_any_order_for_the_one_that_it_was_traced_with():
    concrete = jv.compile(lambda d: jnp.stack(list(d.values()))).trace({"b": 1.0, "a": 2.0})
    assert concrete({"b": 1.0, "a": 2.0}).tolist() == [1.0, 2.0]
    assert concrete({"a": 2.0, "b": 1.0}).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_eager_compiled_and_pure_agree(kind: Any):
    def body(d: Any) -> Any:
        return kind([("z", sum(x * 10**i for i, x in enumerate(d.values()))), ("a", 1.0)])

    given = kind([("b", 1.0), ("a", 2.0)])
    assert ordered(jv.compile(body)(given)) == ordered(body(given)) == "{z: 21.0, a: 1.0}"
    pure, _ = jv.functionalize(body)(jv.State.of(), given)
    assert ordered(pure) == ordered(body(given))


@pytest.mark.parametrize("act", [
    lambda d: jv.map_fn(lambda x: x, d), lambda d: jv.map_fn(lambda x: x, d, batch_size=2),
    lambda d: jv.vectorized_map(lambda x: x, d),
    lambda d: jv.cond(True, lambda x: x, lambda x: x, d),
    lambda d: jv.while_loop(lambda _: False, lambda x: x, d),
    lambda d: jv.fori_loop(0, 2, lambda _, x: x, d),
    lambda d: jv.scan(lambda c, x: (c, x), 0.0, d)[1],
    lambda d: jv.scan(lambda c, x: (c, x), d, jnp.ones(2))[0],
    lambda d: jv.functionalize(lambda x: x)(jv.State.of(), d)[0],
    jv.stop_gradient, jv.recompute(lambda x: x),
    jv.custom_gradient(lambda x: (x, lambda *upstream: upstream)),
])  # fmt: skip
def test_what_takes_and_returns_trees(act: Any):
    for keys in ("za", "az"):
        tree = {key: jnp.ones(3) for key in keys}
        assert [*act(tree)] == [*keys]
        assert [*jv.compile(act)(tree)] == [*keys]


def test_gradients_come_in_the_order_of_the_sources():
    sources = {"z": jv.Variable(1.0), "a": jv.Variable(2.0)}
    with jv.GradientTape(persistent=True) as tape:
        y = 3.0 * sources["z"] + 5.0 * sources["a"]
    for found in (tape.gradient(y, sources), tape.jacobian(y, sources)):
        assert [*map(float, found.values())] == [3.0, 5.0]
    with jv.ForwardAccumulator([sources["z"]], [jnp.ones(())]) as forward:
        made = {"z": sources["z"] * 2, "a": sources["z"] * 4}
    assert [*map(float, forward.jvp(made).values())] == [2.0, 4.0]


def _in_a_branch(x: Any) -> Any:
    d = {"z": x, "a": x * 2}
    if x > 0:
        d = {"z": d["z"] + 1, "a": d["a"]}
    return list(d.values())


def _in_a_while_loop(x: Any) -> Any:
    d, i = {"z": x, "a": x * 2}, 0
    while i < 2 * x:
        d = {"z": d["z"] + 1, "a": d["a"]}
        i += 1
    return list(d.values())


def _in_a_for_loop(x: Any) -> Any:
    d, rows = {"z": x, "a": x}, []
    for row in jnp.arange(3.0) * x:
        d = {"z": d["z"] + row, "a": d["a"] - row}
        rows.append(d)
    return [*d.values(), *rows[2].values()]


@pytest.mark.parametrize("body", [_in_a_branch, _in_a_while_loop, _in_a_for_loop])
@pytest.mark.parametrize("x", [1.0, -1.0])
def test_in_control_flow_that_autograph_stages(body: Any, x: float):
    assert ordered(jv.compile(body, autograph=True)(x)) == ordered(body(jnp.float32(x)))

"""A large graph is shown folded: equal operations once, groups as boxes, loops that open."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.graph.graph import Graph, graph_of
from jaxvars.graph.groups import ROOM, STEPS, cut_runs, find_groups, fold, sort_nodes
from jaxvars.graph.jaxpr import Edge, Node

zeros = jnp.zeros


def trace(fn: Any, *args: Any, **options: Any) -> Graph:
    return graph_of(jax.make_jaxpr(fn)(*args), **options)


def labels(graph: Graph) -> list[str]:
    return [node.label for node in graph.nodes if node.kind in STEPS]


class Layer(jv.Module):
    def __init__(self, size: int, units: int) -> None:
        self.w, self.b = jv.Variable(zeros((size, units))), jv.Variable(zeros(units))

    def __call__(self, x: Any) -> Any:
        return x @ self.w + self.b


class Net(jv.Module):
    def __init__(self) -> None:
        self.layers = [Layer(8, 6), Layer(6, 5), Layer(5, 3)]

    def __call__(self, x: Any) -> Any:
        for i, layer in enumerate(self.layers):
            with jax.named_scope(f"layer{i}"):
                x = jax.nn.relu(layer(x))
        return x


@pytest.fixture(scope="module")
def step_graph() -> Graph:
    model, optimizer = Net(), jv.optimizers.Adam(0.1)

    @jv.compile
    def step(x: Any) -> Any:
        with jv.GradientTape() as tape:
            loss = jnp.mean(model(x) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        return loss

    return step.trace(jv.TensorSpec((4, 8))).graph


# ---------------------------------------------------------------- what stands twice
def test_what_stands_twice_is_drawn_once(step_graph: Graph) -> None:
    counts = Counter(node.name for node in step_graph.nodes)
    assert counts["dot_general"] == 3 + 5, "three layers forward, and five products backward"
    assert counts["pow"] == 2, "of the step's number, for all variables"


@pytest.mark.parametrize(("fn", "names"), [
    (lambda x: jnp.sin(x) + jnp.sin(x), ["sin", "add"]),
    (lambda x: x * 0.1 + x * 0.1000001, ["mul 0.1", "mul 0.1", "add"]),
    (lambda x: x * 1.0 + x * np.float32(1), ["mul 1", "add"]),
    (lambda x: jnp.sum(x, 0) + jnp.sum(x, 1), ["reduce_sum", "reduce_sum", "add"]),
])  # fmt: skip
def test_only_what_is_equal_is_merged(fn: Any, names: list[str]) -> None:
    assert labels(trace(fn, zeros((2, 2)))) == names


def test_effects_are_not_merged() -> None:
    def twice(x: jax.Array) -> jax.Array:
        jax.debug.print("{}", x)
        jax.debug.print("{}", x)
        return x

    assert len(labels(trace(twice, 1.0))) == 2


# ---------------------------------------------------------------- groups
def test_phases_scopes_and_updates_are_groups(step_graph: Graph) -> None:
    groups = find_groups(step_graph.nodes, step_graph.edges)
    named = dict(zip(step_graph.nodes, groups, strict=True))
    by_name = {(node.name, group[:1]) for node, group in named.items() if node.kind in STEPS}
    assert ("dot_general", ("forward",)) in by_name
    assert ("dot_general", ("backward",)) in by_name
    assert ("dot_general", ()) not in by_name
    assert ("sqrt", ("optimizer",)) in by_name
    assert ("forward", "layer1") in groups
    first = "update of model/layers/0", "update of model/layers/0/w"
    assert ("optimizer", *first) in groups


def test_without_a_derivative_there_is_no_forward_pass() -> None:
    graph = trace(lambda x: jax.jvp(jnp.sin, (x,), (x,)), 1.0)
    assert set(find_groups(graph.nodes, graph.edges)) == {()}


def test_hand_written_updates_are_groups_too() -> None:
    w, b = jv.Variable(zeros(3), name="w"), jv.Variable(zeros(3), name="b")

    @jv.compile
    def step(g: Any) -> None:
        w.assign_sub(0.1 * jnp.tanh(g))
        b.assign_sub(0.2 * jnp.sin(g))

    graph = step.trace(jv.TensorSpec((3,))).graph
    groups = find_groups(graph.nodes, graph.edges)
    found = {n.name: g for n, g in zip(graph.nodes, groups, strict=True) if n.kind in STEPS}
    assert (found["tanh"], found["sin"]) == (("update of w",), ("update of b",))


@pytest.mark.parametrize("seed", range(20))
def test_any_graph_is_folded_without_a_circle(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(4, 120))
    paths = [
        tuple(str(p) for p in random.integers(0, 3, random.integers(0, 4))) for _ in range(count)
    ]
    kinds: list[Any] = ["variable"] * 3 + ["operation"] * count
    nodes = [Node(i, kinds[i], "n", "f32[]", group=paths[i]) for i in range(count)]
    pairs = {(int(a), int(b)) for a, b in random.integers(0, count, (3 * count, 2)) if a < b > 2}
    edges = [Edge(a, b, "f32[]") for a, b in sorted(pairs)]
    order = sort_nodes(nodes, edges, paths)
    assert sorted(order) == list(range(count))
    places = {node: place for place, node in enumerate(order)}
    assert all(places[a] < places[b] for a, b in pairs)
    steps = [i for i in order if i > 2]
    drawn, arrows, groups, _ = fold(nodes, edges, cut_runs(steps, paths), steps, 0)
    assert all(arrow.source < arrow.target for arrow in arrows)
    shown = [i for n, node in enumerate(drawn) for i in (groups[n][1] if n in groups else [])]
    assert len(shown) == len(set(shown))
    single = sum(node.kind == "operation" for node in drawn)
    assert len(shown) + single == count - 3, "each operation is in one box"


# ---------------------------------------------------------------- the page
def sizes(html: str) -> list[tuple[float, float]]:
    found = re.findall(r'class="jaxvars-graph" width="([\d.]+)" height="([\d.]+)"', html)
    return [(float(width), float(height)) for width, height in found]


def test_a_training_step_fits_a_page_and_opens(step_graph: Graph) -> None:
    html = step_graph._repr_html_()
    assert sizes(html)[0][0] < 1700
    for group in ("forward", "backward", "optimizer"):
        assert group in html
    assert "19 written variables" in html
    assert "update of model/layers/0" in html
    assert html.count("<style>") == 1, "one for all pictures"
    assert "max-width:100%" in html


def test_loops_and_branches_open() -> None:
    def loops(x: jax.Array) -> Any:
        carry, _ = jax.lax.scan(lambda c, a: (c + jnp.sin(a), None), 0.0, x)
        return jax.lax.cond(carry > 0, jnp.exp, lambda a: jnp.tan(a) + 2, carry)

    html = trace(loops, zeros(9))._repr_html_()
    assert html.count("<details") == 2
    assert html.count("<svg") == 1 + 1 + 2
    for inside in (">sin<", ">exp<", ">tan<", ">branch 1<"):
        assert inside in html


@pytest.mark.parametrize("name", ["operation", "variable", "group", "control"])
def test_a_scope_may_have_any_name(name: str) -> None:
    def scoped(x: jax.Array) -> jax.Array:
        for scope in ("first", name):
            with jax.named_scope(scope):
                for _ in range(40):
                    x = jnp.tanh(x)
        return x

    html = trace(scoped, 1.0)._repr_html_()
    assert re.findall("<summary>(.*?)</summary>", html) == [f"{name} · 40 operations"]


def test_long_runs_are_cut_into_parts() -> None:
    def deep(x: jax.Array) -> jax.Array:
        for _ in range(3 * ROOM):
            x = jnp.tanh(x)
        return x.sum()

    html = trace(jax.value_and_grad(deep), zeros(3))._repr_html_()
    assert "forward, part 1 of" in html
    assert max(height for _, height in sizes(html)) < 8000


def test_what_cannot_be_drawn_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from jaxvars.graph import graph as module

    def fail(*_: Any, **__: Any) -> str:
        raise RuntimeError

    graph = trace(jnp.sin, 1.0)
    monkeypatch.setattr(module, "draw", fail)
    assert "1 argument, 1 operation" in graph._repr_html_()


def test_the_theme_of_the_notebook_wins(step_graph: Graph) -> None:
    style = step_graph.svg.split("<style>")[1].split("</style>")[0]
    for name in ("--jp-layout-color1", "--vscode-editor-background", "--jp-content-font-color1"):
        assert f"var({name}" in style
    assert "@media (prefers-color-scheme:dark)" in style

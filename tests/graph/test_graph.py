"""A jaxpr becomes nodes and edges, and these a picture that can be read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxvars.graph.graph import Graph, graph_of
from jaxvars.graph.layout import Layout, arrange, layers
from jaxvars.graph.svg import MAX_CHARS, Box, draw, shorten

zeros = jnp.zeros
SVG = "{http://www.w3.org/2000/svg}"


def trace(fn: Callable[..., Any], *args: Any, **options: Any) -> Graph:
    return graph_of(jax.make_jaxpr(fn)(*args), **options)


def labels(graph: Graph, *kinds: str) -> list[str]:
    return [node.label for node in graph.nodes if not kinds or node.kind in kinds]


def joined(graph: Graph) -> list[tuple[str, str]]:
    return [(graph.nodes[e.source].label, graph.nodes[e.target].label) for e in graph.edges]


def line_step(w: jax.Array, b: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    def loss(w: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.mean((x @ w + b - y) ** 2)

    value, (dw, db) = jax.value_and_grad(loss, (0, 1))(w, b)
    return value, w - 0.1 * dw, b - 0.1 * db


LINE = (zeros((3, 1)), zeros(1), zeros((32, 3)), zeros((32, 1)))


def line_graph() -> Graph:
    inputs, outputs = ["w: f32[3,1]", " b: f32[1]", "x", "y"], ["loss", "w", "b"]
    names: dict[str, Any] = {"inputs": inputs, "outputs": outputs, "title": "one step"}
    return trace(line_step, *LINE, variables=2, written=2, **names)


def mlp_graph(layers: int = 3) -> Graph:
    sizes = itertools.pairwise([64, *[32] * (layers - 1), 10])
    params = [(zeros(shape), zeros(shape[1])) for shape in sizes]

    def step(params: Any, x: jax.Array, y: jax.Array) -> Any:
        def loss(params: Any) -> jax.Array:
            h = x
            for w, b in params[:-1]:
                h = jax.nn.relu(h @ w + b)
            logits = h @ params[-1][0] + params[-1][1]
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1))

        value, grads = jax.value_and_grad(loss)(params)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    count = 2 * layers
    x, y = zeros((128, 64)), zeros(128, int)
    return trace(step, params, x, y, variables=count, written=count, title="mlp")


def loops(x: jax.Array, n: jax.Array) -> Any:
    carry, ys = jax.lax.scan(lambda c, a: (c * 0.9 + jnp.sin(a), c), x[0], x, length=100)
    picked = jax.lax.cond(carry > 0, jnp.exp, lambda a: a * 2, carry)
    grown = jax.lax.while_loop(lambda s: s < 9, lambda s: s * 1.5, picked)
    return jax.lax.switch(n, [jnp.sin, jnp.cos, jnp.tan], grown), ys


# ---------------------------------------------------------------- nodes and edges
def test_kinds_names_and_types() -> None:
    graph = line_graph()
    assert [(n.name, n.type) for n in graph.nodes if n.kind == "variable"] == [
        ("w", "f32[3,1]"),
        ("b", "f32[1]"),
    ]
    assert labels(graph, "argument") == ["x", "y"]
    assert labels(graph, "result") == ["loss"]
    assert labels(graph, "written") == ["w", "b"]
    assert repr(graph) == (
        "Graph('one step': 2 variables, 2 arguments, 21 operations, 1 result, "
        f"2 written variables, {len(graph.edges)} edges)"
    )
    assert all(node.id == i for i, node in enumerate(graph.nodes))
    assert all(edge.source < edge.target for edge in graph.edges)


def test_each_operation_has_its_operands_as_edges() -> None:
    graph = trace(lambda x, y: jnp.dot(x, y) - y, zeros((4, 4)), zeros((4, 4)))
    assert joined(graph) == [
        ("x", "dot_general"),
        ("y", "dot_general"),
        ("dot_general", "sub"),
        ("y", "sub"),
        ("sub", "result"),
    ]
    assert {edge.type for edge in graph.edges} == {"f32[4,4]"}


@pytest.mark.parametrize(("fn", "label"), [
    (lambda x: x * 0.1, "mul 0.1"), (lambda x: 0.1 * x, "mul 0.1"), (lambda x: 1 - x, "sub(1, ·)"),
    (lambda x: x - 1, "sub 1"), (lambda x: x / 6.0, "div 6"), (lambda x: x**2, "integer_pow 2"),
    (lambda x: jnp.maximum(x, 0), "max 0"),
    (lambda x: jnp.where(x > 0, 0.0, x), "select_n(·, ·, 0)"),
    (lambda x: x + jnp.full(3, 1e-7), "add 1e-07"), (lambda x: x + jnp.inf, "add inf"),
])  # fmt: skip
def test_literals_stand_in_the_label(fn: Callable[[Any], Any], label: str) -> None:
    assert labels(trace(fn, zeros(3)), "operation")[-1] == label


def test_an_operation_on_literals_alone_is_written_as_a_call() -> None:
    graph = trace(jax.grad(lambda x: x.mean()), zeros(32))
    assert "div(1, 32)" in labels(graph)


def test_integer_and_bool_literals_are_plain() -> None:
    graph = trace(lambda i: (i + 7) & True, jnp.int32(1))
    assert labels(graph, "operation")[0] == "add 7"
    assert "Typed" not in str(graph)


def test_calls_are_opened() -> None:
    @jax.custom_vjp
    def double(x: jax.Array) -> jax.Array:
        return x + x

    double.defvjp(lambda x: (double(x), None), lambda _, g: (g,))

    @jax.jit
    def inner(x: jax.Array) -> jax.Array:
        return jax.nn.relu(double(x))

    graph = trace(lambda x: jax.checkpoint(inner)(x) * inner(x + 1), zeros(3))
    assert labels(graph, "operation") == ["add", "max 0", "add 1", "add", "max 0", "mul"]
    assert [node.scope for node in graph.nodes if node.name == "max"] == ["inner/relu"] * 2


def test_a_function_called_twice_keeps_its_calls_apart() -> None:
    inner = jax.jit(lambda a, b: a - b)
    graph = trace(lambda x, y: inner(inner(x, y), x), 1.0, 2.0)
    assert str(graph).splitlines() == [
        "%0 = argument x: f32[]",
        "%1 = argument y: f32[]",
        "%2 = sub(%0, %1): f32[]",
        "%3 = sub(%2, %0): f32[]",
        "result result: %3: f32[]",
    ]


def test_loops_and_branches_are_one_node_each() -> None:
    graph = trace(loops, zeros(100), 1)
    control = [node for node in graph.nodes if node.kind == "control"]
    assert [(node.label, node.detail) for node in control] == [
        ("scan ×100", "3 ops inside"),
        ("cond", "2 branches, 2 ops inside"),
        ("while", "2 ops inside"),
        ("cond", "3 branches, 3 ops inside"),
    ]
    assert "4 loops or branches" in repr(graph)
    second = [edge for edge in graph.edges if edge.output == 1]
    assert [edge.type for edge in second] == ["f32[100]"], "scan's second output"
    assert f"%{second[0].source}:1" in str(graph)


def test_nested_loops_are_counted_through() -> None:
    def outer(c: jax.Array, _: None) -> Any:
        c = jax.lax.fori_loop(0, 3, lambda i, a: jax.nn.relu(a) * 2, c)
        return c + 1, None

    graph = trace(lambda x: jax.lax.scan(outer, x, None, length=7)[0], 1.0)
    (node,) = [node for node in graph.nodes if node.kind == "control"]
    assert node.label == "scan ×7"
    inside = int(node.detail.split()[0])
    assert inside == 5, "add, the inner loop, and in it: max, mul, and the counter"


def test_scatter_and_reductions_are_operations() -> None:
    graph = trace(lambda x: x.at[0].add(1.0), zeros(3))
    assert "control" not in {node.kind for node in graph.nodes}


def test_what_reaches_no_output_is_left_out() -> None:
    graph = trace(lambda x, y, z: (jnp.exp(y), x * 2)[1], 1.0, 2.0, 3.0)
    assert labels(graph) == ["x", "mul 2", "result"]
    assert graph.unused == ("y", "z")
    assert "not used: y, z" in str(graph)
    assert "not used: y, z" in graph.svg


def test_side_effects_stay() -> None:
    def shout(x: jax.Array) -> jax.Array:
        jax.debug.print("{}", x * 3)
        return x

    graph = trace(shout, 1.0)
    assert "mul 3" in labels(graph, "operation")
    assert len(labels(graph, "operation")) == 2


def test_captured_arrays_are_constants() -> None:
    table, scale = jnp.arange(5.0), np.float32(2.5)
    graph = trace(lambda x: jax.jit(lambda a: a + table)(x) * table * scale, zeros(5))
    (node,) = [node for node in graph.nodes if node.kind == "constant"]
    assert node.type == "f32[5]"
    assert sum(edge.source == node.id for edge in graph.edges) == 2, "one array, one node"
    assert "mul 2.5" in labels(graph)


def test_outputs_that_are_inputs_or_literals() -> None:
    graph = trace(lambda x: (x, 3.0, x), 1.0)
    assert labels(graph, "result") == ["result[0]", "result[1] = 3", "result[2]"]
    assert joined(graph) == [("x", "result[0]"), ("x", "result[2]")]


def test_copies_are_passed_through() -> None:
    graph = trace(lambda x: jnp.array(x, copy=True) + 1, 1.0)
    assert labels(graph) == ["x", "add 1", "result"]


def test_short_dtypes() -> None:
    args = [zeros(2, d) for d in ("bfloat16", "float16", "uint8", "int32", "bool", "complex64")]
    graph = trace(lambda *a: a, *args, jax.random.key(0))
    assert [node.type for node in graph.nodes if node.kind == "argument"] == [
        "bf16[2]", "f16[2]", "u8[2]", "i32[2]", "bool[2]", "c64[2]", "key<fry>[]",
    ]  # fmt: skip


def test_axes_are_told() -> None:
    graph = trace(lambda x: x.sum(1), zeros((2, 3)))
    assert [node.detail for node in graph.nodes if node.name == "reduce_sum"] == ["axes 1"]


def test_default_names_are_those_of_the_function() -> None:
    graph = trace(lambda left, right: {"sum": left + right}, 1.0, 2.0)
    assert labels(graph, "argument") == ["left", "right"]
    assert labels(graph, "result") == ["result['sum']"]


def test_wrong_counts_are_refused() -> None:
    closed = jax.make_jaxpr(lambda x, y: x + y)(1.0, 2.0)
    with pytest.raises(ValueError, match="got 1 names in inputs=, and the jaxpr has 2 inputs"):
        graph_of(closed, inputs=["x"])
    with pytest.raises(ValueError, match=r"got 2 names in outputs=.*leave outputs= out"):
        graph_of(closed, outputs=["a", "b"])
    with pytest.raises(ValueError, match="got variables=3, and the jaxpr has only 2"):
        graph_of(closed, variables=3)
    with pytest.raises(ValueError, match="got written=2, and the jaxpr has only 1"):
        graph_of(closed, written=2)


def test_an_open_jaxpr_works_too() -> None:
    closed = jax.make_jaxpr(lambda x: x + 1)(1.0)
    assert labels(graph_of(getattr(closed, "jaxpr", closed))) == ["x", "add 1", "result"]


# ---------------------------------------------------------------- the picture
def rects(group: ET.Element) -> tuple[float, ...]:
    rect = group.find(f"{SVG}rect")
    assert rect is not None
    return tuple(float(rect.attrib[name]) for name in ("x", "y", "width", "height"))


def groups(svg: str) -> list[ET.Element]:
    """The drawn boxes, without the legend's."""
    found = [g for g in ET.fromstring(svg).iter(f"{SVG}g") if g.attrib["class"][:2] == "n "]
    return [g for g in found if rects(g)[3] > 20]


MADE: dict[str, Callable[[], Graph]] = {
    "line": line_graph,
    "mlp": mlp_graph,
    "loops": lambda: trace(loops, zeros(100), 1),
    "tiny": lambda: trace(lambda x: (x, 3.0, x * x), 1.0),
    "empty": lambda: trace(lambda: ()),
}


@pytest.fixture(params=MADE)
def graph(request: pytest.FixtureRequest) -> Graph:
    return MADE[request.param]()


def test_boxes_do_not_overlap_and_text_stays_inside(graph: Graph) -> None:
    boxes = groups(graph.svg)
    assert len(boxes) >= len(graph.nodes)
    places = [rects(box) for box in boxes]
    for (x, y, w, h), (x2, y2, w2, h2) in itertools.combinations(places, 2):
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
    for box, (_, _, width, _) in zip(boxes, places, strict=True):
        for text in box.findall(f"{SVG}text"):
            size = 12 if text.attrib["class"] == "b" else 10.5
            assert len(text.text or "") * size * 0.62 <= width - 16


def test_everything_is_inside_the_picture(graph: Graph) -> None:
    root = ET.fromstring(graph.svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for x, y, w, h in map(rects, groups(graph.svg)):
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height
    numbers = [p.attrib["d"] for p in root.iter(f"{SVG}path") if p.attrib["class"] == "l"]
    for path in numbers:
        points = [float(n) for n in re.findall(r"(?<=M)[\d.]+", path)]
        assert all(0 <= x <= width for x in points)


def test_every_edge_has_an_arrow_head(graph: Graph) -> None:
    root = ET.fromstring(graph.svg)
    heads = [p.attrib["d"].count("M") for p in root.iter(f"{SVG}path") if p.attrib["class"] == "h"]
    assert sum(heads) == len({(edge.source, edge.target) for edge in graph.edges})


def test_arrows_lead_down_and_pass_through_no_box(graph: Graph) -> None:
    root = ET.fromstring(graph.svg)
    boxes = [rects(box) for box in groups(graph.svg)]
    for path in root.iter(f"{SVG}path"):
        if path.attrib["class"] != "l":
            continue
        for x, top, end in re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", path.attrib["d"]):
            assert float(top) < float(end)
            for left, y, w, h in boxes:
                inside = left < float(x) < left + w and y < (float(top) + float(end)) / 2 < y + h
                assert not inside


def test_the_same_graph_gives_the_same_picture() -> None:
    assert mlp_graph().svg == mlp_graph().svg


def test_the_picture_does_not_depend_on_hash_seeds(run_python: Callable[..., Any]) -> None:
    code = (
        "import jax, hashlib; from jaxvars.graph.graph import graph_of;"
        "f = jax.value_and_grad(lambda w, x: jax.nn.relu(jax.nn.relu(x @ w) @ w).sum());"
        "g = graph_of(jax.make_jaxpr(f)(jax.numpy.eye(3), jax.numpy.eye(3)));"
        "print(hashlib.sha256((g.svg + str(g)).encode()).hexdigest())"
    )
    first = run_python("-c", code, PYTHONHASHSEED="1")
    assert len(first.stdout) == 65, first.stderr
    assert run_python("-c", code, PYTHONHASHSEED="2").stdout == first.stdout


def test_names_are_escaped() -> None:
    nasty = '<a href="x">&\'\x00\x1b\ud800'
    graph = trace(lambda x: x, 1.0, inputs=[nasty], title=nasty)
    root = ET.fromstring(graph.svg)
    assert root.attrib["aria-label"].startswith('<a href="x">&\'')
    assert any((t.text or "").startswith("<a href=") for t in root.iter(f"{SVG}text"))
    graph.svg.encode("utf-8")


def test_long_names_are_cut_and_whole_in_the_tooltip() -> None:
    name = "model.encoder.layers.11.attention.query_projection.kernel"
    graph = trace(lambda x: x, 1.0, inputs=[name])
    root = ET.fromstring(graph.svg)
    assert name not in [text.text for text in root.iter(f"{SVG}text")]
    assert any(name in (title.text or "") for title in root.iter(f"{SVG}title"))
    assert len(shorten(name)) == MAX_CHARS
    assert shorten(name).endswith("…")


def test_the_legend_names_the_kinds_in_use() -> None:
    texts = [t.text for t in ET.fromstring(line_graph().svg).iter(f"{SVG}text")]
    legend = {"variable", "argument", "operation", "result", "written variable", "shown again"}
    assert legend <= set(texts)
    assert "loop or branch" not in texts
    assert "one step" in texts


def test_far_readers_get_the_box_again() -> None:
    svg = mlp_graph().svg
    again = [g for g in groups(svg) if g.attrib["class"].endswith(" again")]
    assert len(again) >= 6, "each variable is read again where it is written"
    marks = {text for g in again if "operation" in g.attrib["class"] for text in texts_of(g)}
    first = {t for g in groups(svg) if "again" not in g.attrib["class"] for t in texts_of(g)}
    named = {text for text in marks if "%" in text}
    assert named
    assert named <= first, "the first one carries the same mark"


def texts_of(group: ET.Element) -> list[str]:
    return [text.text or "" for text in group.findall(f"{SVG}text")]


def test_a_picture_can_stand_beside_others_on_a_page() -> None:
    svg = line_graph().svg
    assert " id=" not in svg
    assert "<script" not in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    style = svg.split("<style>")[1].split("</style>")[0]
    rules = [line for line in style.splitlines() if line not in ("", "}") and line[0] != "@"]
    assert all(line.startswith(".jaxvars-graph ") for line in rules)
    assert "@media (prefers-color-scheme:dark)" in style


def test_save(tmp_path: Path) -> None:
    graph = line_graph()
    path = graph.save(tmp_path / "step")
    assert path == tmp_path / "step.svg"
    assert path.read_text(encoding="utf-8") == graph.svg == graph._repr_svg_()
    assert graph.save(str(tmp_path / "v1.2.svg")).name == "v1.2.svg"
    assert graph.save(tmp_path / "v1.2").name == "v1.2.svg"


def test_three_hundred_nodes_stay_readable() -> None:
    graph = mlp_graph(layers=12)
    assert len(graph.nodes) > 250
    root = ET.fromstring(graph.svg)
    assert float(root.attrib["width"]) < 7500


def test_a_small_network_fits_a_page() -> None:
    root = ET.fromstring(mlp_graph().svg)
    assert float(root.attrib["width"]) < 1400


def test_a_very_deep_program_is_drawn() -> None:
    def deep(ws: list[jax.Array], x: jax.Array) -> jax.Array:
        for w in ws:
            x = jnp.tanh(x @ w)
        return x.sum()

    graph = trace(jax.grad(deep), [zeros((2, 2))] * 60, zeros((2, 2)))
    ET.fromstring(graph.svg)
    assert graph.count("operation") > 400


# ---------------------------------------------------------------- the layout
def laid_out(count: int, arrows: Iterable[tuple[int, int]]) -> Layout:
    arrows = sorted(arrows)
    return arrange([60.0] * count, arrows, layers(count, arrows))


def test_a_source_stands_right_above_its_first_reader() -> None:
    assert layers(5, [(0, 1), (1, 2), (2, 4), (3, 4)]) == [0, 1, 2, 2, 3]


def test_a_chain_follows_its_end() -> None:
    chain = [(0, 1), (1, 2), (2, 3), (3, 6), (4, 5), (5, 6)]
    assert layers(7, chain) == [0, 1, 2, 3, 2, 3, 4]


def test_crossings_are_removed() -> None:
    plan = laid_out(6, [(0, 5), (1, 4), (2, 3)])
    assert plan.rows[0] == [{3: 2, 4: 1, 5: 0}[target] for target in plan.rows[1]]


def test_long_arrows_are_straight() -> None:
    plan = laid_out(7, [(i, i + 1) for i in range(6)] + [(0, 6)])
    bends = [plan.x[i] for i in range(7, len(plan.layer))]
    assert len(bends) == 5
    assert max(bends) - min(bends) < 0.01


def test_unconnected_parts_stand_side_by_side() -> None:
    plan = laid_out(6, [(0, 2), (1, 2), (3, 5), (4, 5)])
    assert max(plan.x[:3]) < min(plan.x[3:])
    assert max(plan.x) - min(plan.x) == pytest.approx(3 * 78), "four boxes wide, no gap"


def test_parts_are_pushed_together() -> None:
    plan = laid_out(7, [(0, 1), (0, 2), (0, 3), (1, 4), (5, 6)])
    assert max(plan.x) - min(plan.x) == pytest.approx(3 * 78), "the second beside three boxes"


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_are_laid_out_without_overlap(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 40))
    arrows = {(int(a), int(b)) for a, b in random.integers(0, count, (2 * count, 2)) if a < b}
    plan = laid_out(count, arrows)
    for row in plan.rows:
        for left, right in itertools.pairwise(row):
            assert plan.x[right] - plan.x[left] >= plan.distance(left, right) - 1e-3
    assert all(plan.layer[a] < plan.layer[b] for a, b in arrows)
    assert all(plan.layer[lower] - plan.layer[upper] == 1 for upper, lower in plan.links)
    assert sorted(i for row in plan.rows for i in row) == list(range(len(plan.layer)))


def test_drawing_alone() -> None:
    boxes = [Box("argument", "a"), Box("operation", "b", "c"), Box("result", "d")]
    assert len(groups(draw(boxes, [(0, 1), (1, 2)]))) == 3


def test_a_picture_is_made_when_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    from jaxvars.graph import graph as _graph

    calls: list[int] = []
    monkeypatch.setattr(_graph, "draw", lambda *_, **__: calls.append(1) or "<svg/>")
    graph = line_graph()
    assert str(graph)
    assert calls == []
    assert graph.svg == graph.svg == "<svg/>"
    assert calls == [1]

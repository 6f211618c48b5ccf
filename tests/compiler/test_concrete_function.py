"""One signature of a compiled function, to look into and to call."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import jax
import jax.numpy as jnp
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars.errors import CompileError


@pytest.fixture
def parts() -> tuple[jv.Variable, jv.Variable, jv.Variable, jv.Function, list[None]]:
    """A step that reads `w`, reads and writes `b`, and only writes `last`."""
    w = jv.Variable(jnp.ones((3, 2)), name="w")
    b = jv.Variable(jnp.zeros(2), name="b")
    last = jv.Variable(0.0, name="last", trainable=False)
    runs: list[None] = []

    @jv.compile
    def step(x: jax.Array, scale: float = 2.0) -> dict[str, jax.Array]:
        runs.append(None)
        y = scale * (x @ w) + b
        b.assign_add(jnp.ones(2))
        last.assign(y.sum())
        return {"y": y, "n": y.sum()}

    return w, b, last, step, runs


def test_tracing_runs_nothing_and_a_call_traces_no_more(parts):
    _, b, last, step, runs = parts
    concrete = step.trace(jv.TensorSpec((4, 3)))
    assert b.numpy().tolist() == [0.0, 0.0]
    assert float(last) == 0.0
    step(jnp.ones((4, 3)))
    assert len(runs) == 1
    assert step.trace(jnp.ones((4, 3))).jaxpr is concrete.jaxpr
    assert len(runs) == 1


def test_get_concrete_function_is_the_same(parts):
    *_, step, runs = parts
    step(jnp.ones((4, 3)))
    shape = jax.ShapeDtypeStruct((4, 3), jnp.float32)
    for concrete in (step.trace(shape), step.trace(jv.TensorSpec((4, 3)), 1.0)):
        assert [v.name for v in concrete.captured] == ["w", "b", "last"]
    assert len(runs) == 1


def test_paths_beside_a_module_of_another_library():
    nnx = pytest.importorskip("flax.nnx")
    parts = {"a": nnx.Linear(1, 1, rngs=nnx.Rngs(0)), "w": jv.Variable(2.0)}
    assert jv.compile(lambda x: parts["w"] * x).trace(1.0).capture_paths == ["parts/w"]


def test_captured_is_the_variables_themselves(parts):
    w, b, last, step, _ = parts
    assert step.trace(jv.TensorSpec((4, 3))).captured == (w, b, last)


def test_a_variable_that_is_written_before_it_is_read_is_not_an_input():
    v = jv.Variable(1.0, name="v")

    @jv.compile
    def step(x: float) -> jax.Array:
        v.assign(x)
        return v * 2

    concrete = step.trace(3.0)
    assert concrete.captured == (v,)
    assert len(concrete.jaxpr.in_avals) == 1


def test_two_variables_with_one_array_are_two_captures():
    x = jnp.ones(2)
    a, b = jv.Variable(0 * x), jv.Variable(0 * x)
    a.assign(x)
    b.assign(x)
    assert jv.compile(lambda: a + b).trace().captured == (a, b)


def test_jaxpr_has_the_variables_first(parts):
    *_, step, _ = parts
    concrete = step.trace(jv.TensorSpec((4, 3)))
    assert [a.str_short() for a in concrete.jaxpr.in_avals][:3] == [
        "float32[3,2]",
        "float32[2]",
        "float32[4,3]",
    ]
    assert "dot_general" in str(concrete.jaxpr)
    assert "read_variable" not in str(concrete.jaxpr)


def test_stablehlo_is_named_and_donates(parts):
    *_, step, _ = parts
    text = step.trace(jv.TensorSpec((4, 3))).stablehlo
    assert "module @jit_step" in text
    assert "stablehlo.dot_general" in text
    assert text.count("tf.aliasing_output") == 1  # b, the one read and written


def test_cost_counts_flops():
    w = jv.Variable(jnp.ones((64, 32)))
    cost = jv.compile(lambda x: x @ w).trace(jv.TensorSpec((16, 64))).cost
    by_hand = jax.jit(lambda w, x: x @ w).lower(w.value, jnp.ones((16, 64))).compile()
    assert cost["flops"] == by_hand.cost_analysis()["flops"]
    assert cost["bytes accessed"] > 0


def test_structured_outputs_have_the_results_form(parts):
    *_, step, _ = parts
    outputs = step.trace(jv.TensorSpec((4, 3))).structured_outputs
    assert outputs == {
        "y": jax.ShapeDtypeStruct((4, 2), jnp.float32),
        "n": jax.ShapeDtypeStruct((), jnp.float32),
    }


def test_structured_outputs_keep_what_is_not_an_array():
    out = jv.compile(lambda x: (x, "text", None)).trace(1.0).structured_outputs
    assert out[1:] == ("text", None)


def test_calling_it_is_calling_the_function(parts):
    _, b, last, step, runs = parts
    concrete = step.trace(jv.TensorSpec((1, 3)))
    result = concrete(jnp.ones((1, 3)), 2.0)
    assert result["y"].tolist() == [[6.0, 6.0]]
    assert b.numpy().tolist() == [1.0, 1.0]
    assert float(last) == 12.0
    assert concrete(x=jnp.ones((1, 3)))["y"].tolist() == [[7.0, 7.0]]
    assert len(runs) == 1


def test_another_signature_is_refused(parts):
    *_, step, _ = parts
    concrete = step.trace(jv.TensorSpec((1, 3)))
    with pytest.raises(TypeError, match=r"step takes \(x: float32\[1,3\].*other types"):
        concrete(jnp.ones((2, 3)))


def test_calls_from_many_threads_lose_no_update():
    count = jv.Variable(0)
    concrete = jv.compile(lambda n: count.assign_add(n)).trace(1)

    def work() -> None:
        for _ in range(50):
            concrete(1)

    run_in_threads(*[work] * 4)
    assert int(count) == 200


def test_it_works_inside_a_compiled_function_and_under_a_tape(parts):
    w, b, _, step, _ = parts
    concrete = step.trace(jv.TensorSpec((1, 3)))
    outer = jv.compile(lambda x: concrete(x)["n"] + 1)
    assert float(outer(jnp.ones((1, 3)))) == 13.0
    assert b.numpy().tolist() == [1.0, 1.0]
    with jv.GradientTape() as tape:
        y = concrete(jnp.ones((1, 3)))["n"]
    assert tape.gradient(y, w).tolist() == [[2.0, 2.0]] * 3


def test_methods_can_be_traced():
    class Scale(jv.Module):
        def __init__(self) -> None:
            self.w = jv.Variable(3.0, name="w")

        @jv.compile
        def __call__(self, x: jax.Array) -> jax.Array:
            return self.w * x

        call = __call__

    model = Scale()
    concrete = model.call.trace(jv.TensorSpec(()))
    assert concrete.captured == (model.w,)
    assert float(model(2.0)) == 6.0


def test_tracing_needs_no_arguments_where_there_is_an_input_signature():
    step = jv.compile(lambda x, y: x + y, input_signature=[jv.TensorSpec((2,)), jv.TensorSpec(())])
    concrete = step.trace()
    assert concrete.structured_outputs.shape == (2,)
    assert concrete([1, 2], 3).tolist() == [4.0, 5.0]


def test_an_open_size_is_refused_with_the_cure():
    step = jv.compile(lambda x: x)
    with pytest.raises(
        CompileError, match=r"float32\[\?,3\] has an unknown dimension.*TensorSpec\(\(1, 3"
    ):
        step.trace(jv.TensorSpec((None, 3)))


def test_variables_may_be_created_by_tracing():
    made: list[jv.Variable] = []

    @jv.compile
    def step(x: jax.Array) -> jax.Array:
        if not made:
            made.append(jv.Variable(jnp.full(2, 3.0)))
        return made[0] * x

    assert step.trace(jv.TensorSpec((2,))).captured == (made[0],)
    assert made[0].numpy().tolist() == [3.0, 3.0]


def test_variables_made_of_arguments_want_real_ones():
    made: list[jv.Variable] = []

    @jv.compile
    def step(x: jax.Array) -> jax.Array:
        if not made:
            made.append(jv.Variable(x))
        return made[0] * x

    with pytest.raises(CompileError, match="step creates variables from its arguments: call it"):
        step.trace(jv.TensorSpec((2,)))


def test_repr_says_what_it_takes_and_captures(parts):
    *_, step, _ = parts
    concrete = step.trace(jv.TensorSpec((4, 3)))
    assert repr(concrete) == (
        "<ConcreteFunction step(x: float32[4,3], scale: float32[]) captures [w, b, last]>"
    )


def test_the_graph_is_svg_that_names_variables_arguments_and_operations(parts, tmp_path: Path):
    *_, step, _ = parts
    graph = step.trace(jv.TensorSpec((4, 3))).graph
    svg = graph._repr_svg_() if hasattr(graph, "_repr_svg_") else graph.svg
    root = ET.fromstring(svg)
    assert root.tag.endswith("svg")
    text = "".join(root.itertext())
    for word in ("w", "b", "x", "scale", "dot_general"):
        assert word in text, word
    graph.save(tmp_path / "step.svg")
    assert (tmp_path / "step.svg").read_text().lstrip().startswith("<")

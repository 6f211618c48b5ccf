"""What notebooks show of variables, modules, optimizers, states, functions and tapes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pages import Page

import jaxvars as jv
from jaxvars import sketches
from jaxvars.core.cells import SHARED
from jaxvars.display import strings
from jaxvars.display.html import card, device_grid, picture
from jaxvars.display.repr import html_repr, text_repr

V = jv.Variable


def page(shown: Any) -> Page:
    return Page(shown._repr_html_())


def wide(rows: int = 64, columns: int = 10) -> jax.Array:
    return jnp.linspace(-1.0, 1.0, rows * columns).reshape(rows, columns)


class Dense(jv.Module):
    def __init__(self, size: int, units: int) -> None:
        self.w, self.b = V(wide(size, units), name="w"), V(jnp.zeros(units), name="b")

    def __call__(self, x: Any) -> Any:
        return x @ self.w + self.b


class Net(jv.Module):
    def __init__(self) -> None:
        self.layers = [Dense(6, 5), Dense(5, 1)]
        self.steps = V(0, name="steps", trainable=False)

    def __call__(self, x: Any) -> Any:
        return self.layers[1](jax.nn.relu(self.layers[0](x)))


class Broken(jv.Module):
    @property
    def variables(self) -> Any:
        raise RuntimeError

    def __rich_repr__(self) -> Any:
        raise RuntimeError("<no>")


# ---------------------------------------------------------------- variables
@pytest.mark.parametrize(("variable", "shown", "has_picture"), [
    (lambda: V(jnp.eye(64, 10) * 0 + jnp.array([0, 1.0] * 5), name="w"),
     "Variable 'w' float32[64,10] · mean=0.5 min=0 max=1 · trainable · cpu:0 · 2.5 KiB", True),
    (lambda: V(7, trainable=False, name="n"),
     "Variable 'n' int32[] = 7 · not trainable · cpu:0 · 4 B", False),
    (lambda: V(jnp.zeros((0, 3)), name="e"),
     "Variable 'e' float32[0,3] = [] · trainable · cpu:0", False),
    (lambda: V("a<b>", name="s"), "Variable 's' string[] = 'a<b>' · trainable · host", False),
    (lambda: V([1.0, np.nan, np.inf] * 9, name="x"),
     "Variable 'x' float32[27] · mean=1 min=1 max=1 nan=9 inf=9 · trainable · cpu:0", False),
    (lambda: V(jnp.full((3, 4), np.nan), name="x"),
     "Variable 'x' float32[3,4] = [[nan nan nan nan] [nan nan nan nan] [nan nan nan nan]]", True),
    (lambda: V(jnp.full((5, 5), 3 + 4j), name="c"),
     "Variable 'c' complex64[5,5] · mean=3+4j |min|=5 |max|=5 · trainable · cpu:0 · 200 B", True),
    (lambda: V(jnp.ones((8, 8), jnp.bfloat16), name="h"),
     "Variable 'h' bfloat16[8,8] · mean=1 min=1 max=1 · trainable · cpu:0 · 128 B", True),
    (lambda: V(jnp.ones((1000, 1000)), name="m"),
     "Variable 'm' float32[1000,1000] · mean=1 min=1 max=1 · trainable · cpu:0 · 3.8 MiB", True),
    (lambda: V(jax.random.key(0), name="k"), "Variable 'k' key<fry>[] = [0 0] · trainable", False),
    (lambda: jv.abstract(lambda: V(wide(), name="a")),
     "Variable 'a' float32[64,10] without a value · trainable · 2.5 KiB", False),
])  # fmt: skip
def test_a_variable_is_one_line_and_a_picture(
    variable: Callable[[], Any], shown: str, has_picture: bool
) -> None:
    html = page(variable())
    assert re.sub(r"(heat map|histogram).*", "", html.text).startswith(shown)
    assert ("svg" in html.tags) == has_picture


def test_a_variable_in_a_program_shows_no_value() -> None:
    v, shown = V(wide(), name="v"), []
    jv.compile(lambda: shown.append(page(v).text))()
    assert shown == ["Variable 'v' float32[64,10] (traced) · trainable · 2.5 KiB"]


def test_items_of_a_list_are_inside_of_it() -> None:
    html = Net()._repr_html_()
    items = html[html.index(">layers<") : html.rindex("<details", 0, html.index(">steps<"))]
    assert ">[1]<" in items
    assert items.count("</details>") == items.count("<details") + 1, "the list is closed"


def test_a_value_that_is_donated_while_it_is_looked_at_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    v, known = V([1.0, 2.0], name="v"), strings.known_value
    step = jv.compile(lambda: v.assign_add([1.0, 1.0], read_value=False))
    step()

    def look_late(value: Any) -> Any:
        monkeypatch.undo()
        step()
        value.delete()  # if the step did not
        return known(value)

    monkeypatch.setattr(sketches, "known_value", look_late)
    assert repr(v) == "<Variable 'v' float32[2] [3. 4.]>"


def test_names_cannot_become_html() -> None:
    nasty = "<script>alert('&')</script>"
    model = jv.Module()
    vars(model)[nasty] = V(wide(), name=nasty)
    step = jv.compile(lambda: vars(model)[nasty] * 2)
    with jv.GradientTape() as tape:
        _ = vars(model)[nasty] * 2
    for shown in (vars(model)[nasty], model, step.trace(), tape, jv.State.of(model)):
        html = page(shown)
        assert "script" not in html.tags
        assert nasty in html.text


def test_pictures_are_small_and_of_few_cells() -> None:
    random = np.random.default_rng(0).normal(size=(1000, 1000))
    assert len(picture(random)) < 5000
    assert "16 of 1000 rows, 32 of 1000 columns" in picture(random)
    assert picture(random.reshape(10, 10, -1)).count("<path") == 1, "a histogram"
    assert picture(np.ones(100)) == picture(np.eye(2)) == picture(np.array(["a"] * 9)) == ""
    assert picture(np.full((3, 3), np.nan)).count("<path") == 1
    cells = 'd="M0 0.5h2"', 'd="M2 1.5h1"'
    assert all(cell in picture(np.array([[-1.0, -1, 0, 0], [0, 0, 1, 0]])) for cell in cells)


def test_parts_are_shown_where_they_are() -> None:
    halves = {0: (slice(0, 2), slice(None)), 1: (slice(2, 4), slice(None))}
    assert Page(device_grid((4, 6), halves)).tags.count("tr") == 2, "rows"
    columns = {0: (slice(None), slice(0, 3)), 1: (slice(None), slice(3, 6))}
    assert Page(device_grid((4, 6), columns)).tags.count("tr") == 1
    assert Page(device_grid((4,), {0: (slice(0, 2),), 1: (slice(2, 4),)})).text.endswith("part01")
    assert Page(device_grid((4,), {0: (slice(None),), 1: (slice(None),)})).text.endswith("0, 1")
    assert device_grid((100,), {i: (slice(i, i + 1),) for i in range(100)}) == "", "too many"


def test_a_large_value_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    v, model = V(wide(), name="v"), jv.Module()
    model.v = v
    monkeypatch.setattr(strings, "_LARGE", 600)
    monkeypatch.setattr(np, "asarray", lambda *_, **__: pytest.fail("the value is fetched"))
    assert repr(v) == "<Variable 'v' float32[64,10]>"
    assert page(v).text == "Variable 'v' float32[64,10] · trainable · cpu:0 · 2.5 KiB"
    assert "v float32[64,10]" in page(model).text


def shown_by_rich(value: Any) -> str:
    from rich.pretty import pretty_repr

    return pretty_repr(value)


def shown_by_treescope(value: Any) -> str:
    import treescope

    return treescope.render_to_html(value)


@pytest.mark.parametrize(
    "show", [repr, str, lambda x: x._repr_html_(), shown_by_rich, shown_by_treescope]
)
def test_what_is_shown_is_not_marked_as_handed_out(show: Callable[[Any], object]) -> None:
    net = Net()
    for v in net.variables:
        v.assign(v.numpy() + 1)
    before = set(SHARED)
    show(net)
    for v in net.variables:
        show(v)
    assert set(SHARED) - before == set()


# ---------------------------------------------------------------- modules
def test_a_module_tells_its_parts_in_folded_lines() -> None:
    text = page(Net()).text
    assert text.startswith("Net 'net' · 41 parameters · 5 variables · 168 B")
    assert "[0] Dense · 35 parameters" in text
    assert "[1] Dense · 6 parameters" in text
    assert "steps int32[] = 0" in text


def test_a_model_is_printed_in_few_lines() -> None:
    class CNN(jv.Module):
        def __init__(self) -> None:
            shapes = [(3, 3, 1, 16), (3, 3, 16, 32), (3, 3, 32, 64), (576, 10)]
            self.layers = [Conv(shape) for shape in shapes]

    class Conv(jv.Module):
        def __init__(self, shape: tuple[int, ...]) -> None:
            self.kernel = V(jnp.ones(shape), name="kernel")
            self.bias = V(jnp.ones(shape[-1]), name="bias")

    lines = str(CNN()).splitlines()
    assert len(lines) < 25
    assert max(map(len, lines)) <= 100
    assert "kernel=<Variable 'kernel' float32[3,3,1,16]>" in str(CNN())


def test_an_optimizer_shows_settings_and_a_table_of_slots() -> None:
    net, optimizer = Net(), jv.optimizers.Adam(0.1)
    optimizer.build(net)
    html = page(optimizer)
    assert "slots momentum, velocity of 4 variables" in html.text
    assert "layers/0/w/momentum(6, 5)float32" in html.text
    assert "clipnorm" not in html.text
    assert "  slots=momentum, velocity of 4 variables,\n" in repr(optimizer)
    assert len(repr(optimizer).splitlines()) < 12


def test_what_is_broken_is_shown_as_that() -> None:
    model = jv.Module()
    model.part = Broken()
    assert repr(Broken()) == text_repr(Broken()) == "Broken(cannot be shown: RuntimeError)"
    assert "part Broken cannot be shown: RuntimeError" in page(model).text
    assert html_repr(Broken()) == Broken()._repr_html_()

    class Unprintable:
        def __repr__(self) -> str:
            raise ValueError

    model.part = Unprintable()
    assert repr(model) == "Module(part=<Unprintable cannot be shown: ValueError>)"
    assert "<Unprintable cannot be shown: ValueError>" in page(model).text


# ---------------------------------------------------------------- states, functions, tapes
def test_a_state_is_a_card_and_a_long_one_is_cut() -> None:
    html = page(jv.State.of(Net()))
    assert html.text.startswith("State · 5 values · 168 B")
    assert "layers/0/w=float32[6,5] · mean=" in html.text
    long = jv.State.of([V(float(i), name=f"v{i}") for i in range(40)])
    assert repr(long).splitlines()[-2:] == ["  ... 16 more", ")"]
    assert "... 16 more" in page(long).text


def test_a_state_of_other_things_is_shown() -> None:
    places = jax.tree.map(lambda _: jax.P("data"), jv.State.of(Net()))
    assert "  steps: P('data',)" in repr(places)
    assert "steps=P('data',)" in page(places).text


def test_a_compiled_function_shows_its_traces() -> None:
    step = jv.compile(lambda x: x * 2)
    assert page(step).text == "compiled <lambda> · 0 traces"
    step(1.0)
    assert "compiled <lambda> · 1 trace" in page(step).text
    assert "first call" in page(step).text


def test_a_concrete_function_shows_captures_by_path_and_its_graph() -> None:
    model, optimizer = Net(), jv.optimizers.SGD(0.1)

    @jv.compile
    def step(x: Any) -> Any:
        with jv.GradientTape() as tape:
            loss = jnp.sum(model(x) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        model.steps.assign_add(1)
        return loss

    concrete = step.trace(jv.TensorSpec((3, 6)))
    assert repr(concrete) == (
        "<ConcreteFunction step(x: float32[3,6]) captures [model/layers/0/w, model/layers/0/b, "
        "model/layers/1/w, model/layers/1/b, optimizer/learning_rate, optimizer/iterations, "
        "1 more]>"
    )
    html = page(concrete)
    assert html.text.startswith("ConcreteFunction step(x: float32[3,6]) → float32[] · ")
    assert re.search(r"· \d+ operations · [\d,]+ flops", html.text)
    assert "7 captured variables" in html.text
    assert "model/layers/0/wfloat32[6,5]read and written120 B" in html.text
    assert "optimizer/learning_ratefloat32[]read4 B" in html.text
    assert "svg" in html.tags


def test_paths_begin_at_the_object_or_argument_that_has_the_variable() -> None:
    class Model(Net):
        @jv.compile
        def predict(self, x: Any) -> Any:
            return self(x)

    spec = jv.TensorSpec((2, 6))
    paths = [f"layers/{i}/{name}" for i in (0, 1) for name in "wb"]
    assert Model().predict.trace(spec).capture_paths == paths
    assert jv.compile(Net()).trace(spec).capture_paths == paths
    outer = jv.compile(lambda net, x: net(x))
    assert outer.trace(Net(), spec).capture_paths == [f"net/{path}" for path in paths]


def test_only_what_a_program_uses_is_looked_for() -> None:
    class Data(dict[str, Any]):
        def items(self) -> Any:
            pytest.fail("it is walked")

    w, data = V(1.0, name="w"), Data()
    assert jv.compile(lambda: len(data) * w).trace().capture_paths == ["w"]
    assert jv.compile(lambda: len(data)).trace().capture_paths == []


@pytest.mark.parametrize(("options", "shown"), [
    ({}, "GradientTape(2 operations, watching w, 1 array)"),
    ({"persistent": True}, "GradientTape(2 operations, watching w, 1 array; persistent)"),
])  # fmt: skip
def test_a_tape_says_what_it_has_seen(options: Any, shown: str) -> None:
    w, x = V(2.0, name="w"), jnp.float32(3.0)
    with jv.GradientTape(**options) as tape:
        tape.watch(x)
        y = w * x + 1.0
    assert repr(tape) == shown
    tape.gradient(y, w)
    assert repr(tape) == shown[:-1] + (", used)" if options else "; used)")
    assert page(tape).text.startswith("GradientTape · 2 operations, watching w")
    assert repr(jv.GradientTape()) == "GradientTape(0 operations, watching nothing)"


def test_a_card_without_rows_does_not_unfold() -> None:
    assert "details" not in Page(card("t", ["a", "", "b"], [""])).tags
    assert Page(card("t", ["a", "", "b"], [""])).text == "t a · b"


# ---------------------------------------------------------------- whatever is shown
@pytest.mark.parametrize("value", [
    np.array(["2020-01-01"] * 10, "M8[D]"), np.zeros(10, "m8[s]"), np.zeros(10, [("a", int)]),
    np.zeros(10, "V3"), np.array([-1e308, 1e308] * 30), np.array([1e16, 1e16 + 2] * 30),
    np.array([5e-324, 0.0] * 30), np.full(40, np.inf), np.float64([1e300] * 39 + [1.1e300]),
    np.array([np.iinfo(np.int64).min, 5] * 30),
], ids=lambda x: str(x.dtype))  # fmt: skip
def test_no_array_breaks_what_it_is_in(value: Any) -> None:
    model = jv.Module()
    model.a, model.ok = value, 1
    for text in (repr(model), page(model).text):
        assert "ok=1" in text
        assert "cannot" not in text


def nested(depth: int, width: int) -> Any:
    return [nested(depth - 1, width) for _ in range(width)] if depth else 0.5


def shared(depth: int) -> jv.Module:
    model = jv.Module()
    if depth:
        model.left = model.right = shared(depth - 1)
    return model


def chain(depth: int) -> jv.Module:
    model = jv.Module()
    for _ in range(depth):
        outer = jv.Module()
        outer.inner, outer.w = model, V(1.0)
        model = outer
    return model


@pytest.mark.parametrize("value", [nested(4, 24), shared(18), chain(300)], ids=["l", "s", "c"])
def test_what_is_deep_or_met_again_is_shown_in_part(value: Any) -> None:
    model = jv.Module()
    model.value = value
    for text in (repr(model), page(model).text):
        assert "..." in text
        assert len(text) < 600_000


def test_long_strings_are_cut() -> None:
    v = V(["x" * 10_000] * 50)
    assert max(len(repr(v)), len(page(v).text)) < 300


def test_a_circle_of_lists_and_modules_ends() -> None:
    model = jv.Module()
    vars(model)["parts"] = parts = [jv.Module()]
    parts.append(parts)  # pyright: ignore[reportArgumentType]
    assert page(model).text.endswith("[1]...")


def test_only_what_is_shown_of_a_container_is_looked_at() -> None:
    looked = []

    class Part:
        def __getattr__(self, name: str) -> Any:
            looked.append(name)
            raise AttributeError(name)

    model = jv.Module()
    vars(model)["parts"] = [Part() for _ in range(1000)]
    _ = model._repr_html_()
    assert looked.count("__rich_repr__") <= 100

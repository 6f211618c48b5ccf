"""Objects show themselves as text, HTML, treescope and rich from one protocol; tables; phrases."""

from __future__ import annotations

import io
import re
import sys
import types
from collections import OrderedDict, namedtuple
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from pages import Page

import jaxvars as jv
from jaxvars.display import table as tables
from jaxvars.display.parts import Field, Shown, fields_of
from jaxvars.display.repr import (
    Table,
    array_text,
    did_you_mean,
    html_repr,
    human_bytes,
    text_repr,
    treescope_repr,
    type_text,
    value_text,
)

WIDE = jnp.linspace(-1.0, 1.0, 640).reshape(64, 10)


class Box:
    """Yields whatever it was made of."""

    __repr__ = text_repr
    _repr_html_ = html_repr
    __treescope_repr__ = treescope_repr

    def __init__(self, *items: Any) -> None:
        self.items: list[Any] = list(items)
        self.weights = WIDE

    def __rich_repr__(self) -> Iterator[Any]:
        yield from self.items


# ---------------------------------------------------------------- arrays
@pytest.mark.parametrize(
    ("x", "text"),
    [
        (jnp.array([1.0, 2.0]), "[1. 2.]"),
        (jnp.array(3.0), "3.0"),
        (jnp.array(0.1), "0.1"),
        (np.float32(2.5), "2.5"),
        (jnp.array([[1, 2], [3, 4]]), "[[1 2] [3 4]]"),
        (jnp.array([True, False]), "[ True False]"),
        (jnp.array([1.0, 1.5], jnp.bfloat16), "[1 1.5]"),
        (np.array(["a b", "c"]), "['a b' 'c']"),
        (jnp.zeros((0, 3)), "float32[0,3]"),
        (jnp.arange(12).reshape(3, 4), "int32[3,4] mean=5.5 min=0 max=11"),
        (jnp.ones(8, jnp.bfloat16), "bfloat16[8] mean=1 min=1 max=1"),
        (np.arange(-8, 8).astype(ml_dtypes.int4), "int4[16] mean=-0.5 min=-8 max=7"),
        (jnp.arange(9) > 2, "bool[9] true=6"),
        (jnp.full(7, 3 + 4j), "complex64[7] mean=3+4j |min|=5 |max|=5"),
        (np.array([0, 3.0, np.nan, np.inf] * 2), "float64[8] mean=1.5 min=0 max=3 nan=2 inf=2"),
        (jnp.full(7, jnp.nan), "float32[7] nan=7"),
        (np.array(list("abcdefgh")), "string[8] ['a' 'b' 'c' 'd' 'e' 'f' ...]"),
        (jax.random.split(jax.random.key(0), 3), "key<fry>[3]"),
    ],
)  # fmt: skip
def test_array_text(x: Any, text: str) -> None:
    assert array_text(x) == text


def test_array_text_ignores_print_options() -> None:
    x = np.array([1 / 3, 1e-7])
    before = array_text(x)
    with np.printoptions(precision=1, linewidth=5, sign="+", formatter={"float": lambda _: "?"}):
        assert array_text(x) == before
    with np.printoptions(legacy="1.13"):
        assert array_text(np.float64(0.1)) == "0.1"
        assert array_text(x) == before


def test_statistics_of_huge_values_do_not_warn() -> None:
    assert array_text(np.full(8, 1e308)) == "float64[8] mean=inf min=1e+308 max=1e+308"


def test_a_traced_array_shows_its_type_and_is_not_touched() -> None:
    seen: list[str] = []

    def f(x: jax.Array) -> jax.Array:
        seen.append(array_text(x))
        return x

    jaxpr = jax.make_jaxpr(f)(jnp.zeros((3, 4)))
    assert seen == ["float32[3,4] (value not known here)"]
    assert "eqn" not in str(jaxpr)
    assert len(getattr(jaxpr, "jaxpr", jaxpr).eqns) == 0


def test_a_deleted_array_shows_its_type() -> None:
    x = jnp.zeros(9) + 1
    x.delete()
    assert array_text(x) == "float32[9] (value not known here)"


def test_no_jax_operation_runs() -> None:
    x = jnp.arange(100.0)
    with jax.disable_jit(), jax.log_compiles(False):
        jaxpr = jax.make_jaxpr(lambda: [array_text(x), html_repr(Box(("x", x)))] and 1)()
    assert len(getattr(jaxpr, "jaxpr", jaxpr).eqns) == 0


def test_type_text_of_strings() -> None:
    assert type_text(np.array([["abc"]])) == "string[1,1]"
    assert type_text(np.array([["abc"]], object)) == "string[1,1]"


# ---------------------------------------------------------------- the protocol
def test_fields_in_all_forms() -> None:
    box = Box(1, (2,), ("a", 3), ("b", 4, 4), ("c", 5, 6), (None, 7))
    expected = [("", 1), ("", 2), ("a", 3), ("c", 5), ("", 7)]
    assert fields_of(box) == [Field(*item) for item in expected]
    assert isinstance(box, Shown)
    assert not isinstance(3, Shown)


def test_a_default_is_compared_without_broadcasting() -> None:
    ones = np.ones(3)
    box = Box(
        ("same", ones, ones), ("other", np.ones(3), ones), ("type", 1, True), ("list", [1], [1])
    )
    assert [field.name for field in fields_of(box)] == ["other", "type"]


def test_text_is_one_line_if_it_fits() -> None:
    assert repr(Box(1, ("w", np.arange(3)), ("s", "a'b"))) == 'Box(1, w=[0 1 2], s="a\'b")'
    assert repr(Box()) == "Box()"


def test_text_has_a_line_for_each_field_if_not() -> None:
    inner = Box(("kernel", np.zeros((64, 10))), ("bias", np.zeros(10)), ("activation", jax.nn.relu))
    outer = repr(Box(("name", "model"), ("layers", [inner, inner])))
    assert outer.splitlines() == [
        "Box(",
        "  name='model',",
        "  layers=[",
        "    Box(",
        "      kernel=float64[64,10] mean=0 min=0 max=0,",
        "      bias=float64[10] mean=0 min=0 max=0,",
        "      activation=relu,",
        "    ),",
        "    Box(",
        "      kernel=float64[64,10] mean=0 min=0 max=0,",
        "      bias=float64[10] mean=0 min=0 max=0,",
        "      activation=relu,",
        "    ),",
        "  ],",
        ")",
    ]


def test_circles_end() -> None:
    box = Box(("n", 1))
    box.items.append(("me", [box]))
    assert repr(box) == "Box(n=1, me=[Box(...)])"
    assert "Box(...)" in Page(html_repr(box)).text
    loop: list[Any] = [1]
    loop.append(loop)
    assert value_text(loop) == "[1, [...]]"
    assert repr(Box(("a", loop), ("b", loop))) == "Box(a=[1, [...]], b=[1, [...]])", "not a circle"


Pair = namedtuple("Pair", ["mu", "nu"])  # what optax's states are


@pytest.mark.parametrize(("value", "text"), [
    ((1,), "(1,)"), ((), "()"), ({"b", "a"}, "{'a', 'b'}"), (set(), "set()"),
    ({1: jnp.zeros(2)}, "{1: [0. 0.]}"), (OrderedDict(a=1), "OrderedDict({'a': 1})"),
    (frozenset({1}), "frozenset({1})"), (frozenset(), "frozenset()"),
    (Pair(jnp.zeros(2), None), "Pair(mu=[0. 0.], nu=None)"),
    (np.dtype("int32"), "int32"), (jnp.tanh, "tanh"), (int, "int"), (object(), "<object object>"),
    ("x" * 300, "'" + "x" * 198 + "…"),
])  # fmt: skip
def test_value_text(value: Any, text: str) -> None:
    assert value_text(value) == text


def test_long_containers_are_cut() -> None:
    text = value_text(list(range(1000)))
    assert text.endswith("... 976 more,\n]")
    assert len(text) < 250


# ---------------------------------------------------------------- notebooks
def test_html_is_well_formed_and_escaped() -> None:
    box = Box(("<script>", "<b>&"), ("w", WIDE), ("inner", Box(("x", jnp.arange(3)))))
    html = html_repr(box)
    text = Page(html).text
    assert "<script>" not in html
    assert "<script>='<b>&'" in text
    assert "w=float32[64,10]" in text
    assert "max=1" in text
    assert "x=int32[3] = [0 1 2]" in text
    assert html.count("<details") == 2


def test_html_has_no_colour_that_one_theme_cannot_carry() -> None:
    html = html_repr(Box(("w", WIDE))) + Table("t", ["a"], [(1,)])._repr_html_()
    assert re.findall(r"(?:#[0-9a-f]{3,6}|black|white(?!-))\b", html) == []


def test_html_stays_small() -> None:
    box = Box(*((f"f{i}", [WIDE] * 1000) for i in range(500)))
    html = html_repr(box)
    assert len(html) < 80_000
    assert "... 476 more" in Page(html).text


def test_html_opens_containers_of_objects() -> None:
    html = html_repr(Box(("layers", [Box(("a", 1)), Box(("a", 2))]), ("by", {"k": Box(("a", 3))})))
    text = Page(html).text
    assert html.count("<details") == 6, "four boxes and two containers"
    assert "[0] Box" in text
    assert "k Box" in text


def test_treescope_shows_the_fields() -> None:
    treescope = pytest.importorskip("treescope")
    box = Box(("weights", WIDE), ("inner", Box(("units", 2))))
    text = treescope.render_to_text(box)
    assert "Box(" in text
    assert "weights=" in text
    assert "units=2" in text
    assert "float32" in text
    assert "64" in treescope.render_to_html(box)


def test_rich_reads_the_protocol() -> None:
    from rich.pretty import pretty_repr

    assert pretty_repr(Box(("units", 2), ("bias", True, True))) == "Box(units=2)"


# ---------------------------------------------------------------- tables
def table() -> Table:
    return Table(
        "Dense 'm'",
        ["path", "shape", "trainable", "bytes"],
        [("dense.kernel", (64, 10), True, 2560), ("dense.重み", (10,), False, None)],
        footer=[("total", None, None, 2600), ("trainable", None, None, 2560)],
        formats={"bytes": human_bytes},
    )


def test_table_text_is_aligned() -> None:
    assert str(table()).splitlines() == [
        "Dense 'm'",
        "path          shape     trainable    bytes",
        "------------  --------  ---------  -------",
        "dense.kernel  (64, 10)  yes        2.5 KiB",
        "dense.重み    (10,)     no",
        "------------  --------  ---------  -------",
        "total                              2.5 KiB",
        "trainable                          2.5 KiB",
    ]
    assert repr(table()) == str(table())


def test_a_table_looks_at_each_value_once_and_not_once_for_each_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[Any] = []
    real = tables._is_numeric
    monkeypatch.setattr(
        tables, "_is_numeric", lambda values: looked_at.extend(values) or real(values)
    )
    table = Table("", ["path", "bytes"], [(f"v{i}", i) for i in range(50)])
    assert "v0        0" in str(table)
    assert "v49" in table._repr_html_()
    assert len(looked_at) == 100


def test_table_is_a_sequence_of_values() -> None:
    rows = table()
    assert len(rows) == 2
    assert rows[0] == ("dense.kernel", (64, 10), True, 2560)
    assert rows[-1][0] == "dense.重み"
    assert rows[:1] == (rows[0],)
    assert [row[3] for row in rows] == rows.column("bytes") == [2560, None]
    assert rows[0] in rows
    assert next(reversed(rows)) == rows[1]
    with pytest.raises(IndexError):
        rows[2]


def test_table_refuses_what_does_not_fit() -> None:
    with pytest.raises(
        ValueError, match=r"'t' has 2 columns \(a, b\), and a row has 1 values: \(1,\)"
    ):
        Table("t", ["a", "b"], [(1,)])
    with pytest.raises(ValueError, match=r"2 columns .* 3 values"):
        Table("t", ["a", "b"], [], footer=[(1, 2, 3)])
    with pytest.raises(
        ValueError, match=r"no column 'bites'\. Did you mean 'bytes'\? Its columns: path"
    ):
        table().column("bites")
    with pytest.raises(ValueError, match=r"no column 'size'"):
        Table("t", ["a"], [], formats={"size": str})


def test_an_empty_table_shows_its_headers() -> None:
    assert str(Table("", ["a", "bb"], [])) == "a  bb\n-  --"
    assert "<th" in Table("", ["a"], [])._repr_html_()


def test_numpys_truth_is_shown_as_pythons() -> None:
    assert str(Table("", ["a"], [(np.True_,), (False,)])).splitlines()[2:] == ["yes", "no"]


def test_table_html() -> None:
    html = Table("<t>", ["p&q", "n"], [("<w>", 1), ("v", 2.5)], footer=[("sum", 3.5)])._repr_html_()
    tags = Page(html)
    assert tags.text == "<t>p&qn<w>1v2.5sum3.5"
    assert html.count("text-align:right") == 4, "numbers, their header and their total"


def test_table_in_rich() -> None:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=100).print(
        Table("t [1,2]", ["a [b]"], [("f32[64,10]",)], footer=[("[red]x",)])
    )
    shown = out.getvalue()
    for text in ("t [1,2]", "a [b]", "f32[64,10]", "[red]x"):
        assert text in shown, "brackets are text, not markup"


def test_show_prints_plain_text_to_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    table().show()
    assert capsys.readouterr().out == f"{table()}\n"


def test_show_breaks_what_is_wide_over_lines(capsys: pytest.CaptureFixture[str]) -> None:
    wide = Table("t", ["a", "n", "why"], [("x", 1, "word " * 30), ("y" * 90, 22, "z")])
    wide.show()
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) == 80
    assert " ".join(lines).count("word") == 30
    assert "".join(line.split("  ")[0] for line in lines).count("y") == 90
    assert [line for line in lines if line.split()[1:2] == ["22"]]
    assert len(str(wide).splitlines()) == 5, "as a string it is not broken"


def test_show_uses_rich_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    import rich
    from rich.console import Console

    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(rich, "get_console", lambda: Console(file=out, width=80))
    table().show()
    assert "┃" in out.getvalue()
    assert "dense.kernel" in out.getvalue()


def test_show_displays_html_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    fake: Any = types.ModuleType("IPython")
    fake.get_ipython = object
    fake.display = types.SimpleNamespace(display=shown.append)
    monkeypatch.setitem(sys.modules, "IPython", fake)
    rows = table()
    rows.show()
    assert shown == [rows]


# ---------------------------------------------------------------- in programs
class Net(jv.Module):
    def __init__(self) -> None:
        self.w, self.b = jv.Variable([1.0, 2.0], name="w"), [jv.Variable(3.0, name="b")]

    def __call__(self, x: Any) -> Any:
        return x * self.w + self.b[0]


def shown_by_rich(value: Any) -> str:
    from rich.console import Console

    with (console := Console(width=200)).capture() as capture:
        console.print(value)
    return capture.get()


def shown_by_treescope(value: Any) -> str:
    import treescope

    return treescope.render_to_text(value)


def optimizer() -> jv.optimizers.Optimizer:
    made, v = jv.optimizers.Adam(jv.Variable(0.5)), jv.Variable(1.0)
    made.apply_gradients([(jnp.float32(1.0), v)])
    return made


SHOWN = [
    Net(), Net().w, [Net().w], optimizer(), jv.metrics.Mean(), jv.random.Generator(7),
    jv.checkpoint.Checkpoint(net=Net()),
]  # fmt: skip
SHOWS = [
    repr, str, "{}".format, shown_by_rich, shown_by_treescope, lambda x: x._repr_html_(),
    lambda x: x.table(), lambda x: (x.sharding, x.device),
]  # fmt: skip


@pytest.mark.parametrize("show", SHOWS)
@pytest.mark.parametrize("value", SHOWN, ids=lambda value: type(value).__name__)
def test_what_is_shown_is_not_read(show: Any, value: Any) -> None:
    def showing() -> None:
        with suppress(AttributeError):  # not each has each
            show(value)

    assert not jv.compile(showing).trace().captured
    jax.jit(showing)()  # does not warn that a variable was read
    with jv.GradientTape() as tape:
        showing()
    assert not tape.watched_variables()


def test_what_is_shown_in_a_program_is_what_is_known() -> None:
    net = Net()

    @jv.compile
    def texts() -> list[str]:
        before = repr(net.w)
        net.w.assign([3.0, 4.0])
        return [before, repr(net.w), repr(net.b[0].assign_add(1.0))]

    assert texts() == [
        "<Variable 'w' float32[2] (traced)>",
        "<Variable 'w' float32[2] (traced)>",
        "<Variable 'b' float32[] (traced)>",
    ]
    pure = jv.functionalize(lambda: repr(net.w.assign_add(1.0)))
    assert pure(jv.State.of(net.w))[0] == "<Variable 'w' float32[2] [4. 5.]>"
    assert pure(jv.State.of(net))[0] == "<Variable 'w' float32[2] [4. 5.]>"


def test_a_module_is_mapped_and_jitted_without_a_warning() -> None:
    net = Net()
    states = jax.tree.map(lambda x: jnp.stack([x, x]), jv.State.of(net))
    mapped = jax.vmap(jv.functionalize(net), in_axes=(0, None))
    assert jax.jit(mapped)(states, 2.0)[0].tolist() == [[5.0, 7.0]] * 2


# ---------------------------------------------------------------- phrases
@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1229, "1.2 KiB"),
        (1024**2 - 1, "1.0 MiB"), (5 * 1024**3, "5.0 GiB"), (2 * 1024**5, "2.0 PiB"),
        (3000 * 1024**5, "3000.0 PiB"),
    ],
)  # fmt: skip
def test_human_bytes(count: int, text: str) -> None:
    assert human_bytes(count) == text


def test_did_you_mean() -> None:
    assert did_you_mean("kernal", ["kernel", "bias"]) == " Did you mean 'kernel'?"
    assert did_you_mean("ADAM", ["Adam"]) == " Did you mean 'Adam'?"
    assert did_you_mean("layer_1", ["layer_2", "bias", "layer_3"]) == (
        " Did you mean 'layer_3' or 'layer_2'?"
    )
    assert did_you_mean("zzz", ["kernel"]) == ""
    assert did_you_mean("launch", ["plan", "scan"]) == "", "nothing that is not close"
    assert did_you_mean("x", []) == ""

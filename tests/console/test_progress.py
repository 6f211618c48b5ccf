"""`jv.progress`: what it counts and shows, that it never waits, and what it leaves behind."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import jaxvars as jv
from jaxvars.console import progress as _progress
from jaxvars.console import progress_display as _progress_display
from jaxvars.errors import CompileError

CURSOR_OFF, CURSOR_ON = "\x1b[?25l", "\x1b[?25h"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def pipe() -> Console:
    return Console(file=io.StringIO(), width=40)


def terminal(**options) -> Console:
    return Console(file=Terminal(), force_terminal=True, width=120, **options)


FAINT = {"30", "33", "36", "37", "90", "93", "96", "97"}
"""Black, yellow, cyan and white, and their bright ones: unreadable on some terminals."""


def seen(console: Console) -> str:
    """What was drawn, without colours and cursor moves."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert not _progress_display._DISPLAYS
    for thread in threading.enumerate():
        if type(thread).__name__ == "_RefreshThread":
            thread.join(timeout=10)  # it was told to end
            assert not thread.is_alive()


# ---------------------------------------------------------------- counting
def test_it_yields_what_it_is_given_and_counts_what_is_done():
    bar = jv.progress("abc", console=pipe())
    counted = [(item, bar.completed) for item in bar]
    assert counted == [("a", 0), ("b", 1), ("c", 2)]
    assert (bar.completed, bar.total) == (3, 3)


def test_no_colour_is_unreadable_on_a_white_or_black_terminal():
    console = terminal(color_system="256")
    list(jv.progress("abc", console=console))
    colours = ";".join(re.findall(r"\x1b\[([\d;]+)m", console.file.getvalue())).split(";")
    assert "38" in colours  # the bar has one
    assert FAINT.isdisjoint(colours)


def test_a_number_is_a_range():
    assert list(jv.progress(3, enabled=False)) == [0, 1, 2]
    assert list(jv.progress(np.int64(2), enabled=False)) == [0, 1]


@pytest.mark.parametrize(
    ("source", "total", "expected"),
    [
        ([1, 2], None, 2), (range(5), 3, 3), ((i for i in "ab"), None, None), (None, 7, 7),
        (0, None, 0),
    ],
)  # fmt: skip
def test_how_many_there_will_be(source, total, expected):
    assert jv.progress(source, total=total, enabled=False).total == expected


def test_by_hand():
    with jv.progress(total=10, enabled=False) as bar:
        bar.advance()
        bar.advance(4)
    assert bar.completed == 5


def test_a_step_that_is_broken_off_is_not_done():
    for i in (bar := jv.progress(10, console=pipe())):
        if i == 4:
            break
    assert bar.completed == 4
    assert "4/10" in bar.line()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: jv.progress(3.5), TypeError, "something to iterate over, or a number of steps"),
        (lambda: jv.progress(-1), ValueError, "number of steps is -1, below zero"),
        (lambda: jv.progress(total=-2), ValueError, "number of steps is -2, below zero"),
        (lambda: iter(jv.progress(total=3)), TypeError, r"count the steps by bar\.advance\(\)"),
    ],
)
def test_mistakes(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_bar_is_for_one_loop():
    bar = jv.progress(2, enabled=False)
    list(bar)
    with pytest.raises(RuntimeError, match="make one for each loop"):
        iter(bar)


# ---------------------------------------------------------------- values
class Late:
    """Stands for an array that is still being computed: reading it would wait."""

    def __init__(self):
        self.ready, self.read = False, 0

    def look(self, value, *, wait):
        if not (self.ready or wait):
            return None
        self.read += 1
        return "1.5"


def test_values_that_are_still_computed_are_passed_over(monkeypatch):
    late = Late()
    monkeypatch.setattr(_progress, "_format_value", late.look)
    bar = jv.progress(total=2, enabled=False)
    bar.show(loss=0)
    assert bar.shown == "loss=..."
    assert late.read == 0
    late.ready = True
    assert bar.shown == "loss=1.5"
    late.ready = False
    assert bar.shown == "loss=1.5", "the last that was known stays"


def test_the_last_values_are_waited_for_at_the_end(monkeypatch):
    late = Late()
    monkeypatch.setattr(_progress, "_format_value", late.look)
    for _ in (bar := jv.progress(3, console=pipe())):
        bar.show(loss=0)
    assert late.read == 1
    assert bar._strings == {"loss": "1.5"}


class InFlight:
    """An array that is being computed until it is waited for."""

    shape, dtype, size = (), np.dtype(np.float32), 1
    is_fully_addressable = True

    def __init__(self):
        self.ready = False

    def is_ready(self):
        return self.ready

    def is_deleted(self):
        return False

    def __array__(self, *_, **__):
        self.ready = True
        return np.asarray(1.5, np.float32)


def test_an_array_in_flight_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(_progress, "jax", types.SimpleNamespace(Array=InFlight))
    x = InFlight()
    assert _progress._format_value(x, wait=False) is None
    assert not x.ready
    assert _progress._format_value(x, wait=True) == "1.5"
    assert _progress._format_value(x, wait=False) == "1.5"


def test_how_values_look():
    v = jv.Variable(2.5, name="v")
    bar = jv.progress(total=1, enabled=False)
    bar.show(v=v, n=1234, name="a", array=jnp.ones((2, 3)), x=np.float32(1 / 3))
    assert bar.shown == "v=2.5 n=1,234 name=a array=[[1. 1. 1.] [1. 1. 1.]] x=0.3333"
    v.assign(3.5)
    bar.show(n=2)
    assert bar.shown.startswith("v=3.5 n=2 name=a"), "a Variable is read when it is drawn"


def test_a_value_that_was_donated_is_gone_and_no_error():
    x = jnp.ones(1)
    bar = jv.progress(total=1, enabled=False)
    bar.show(x=x)
    assert bar.shown == "x=1"
    x.delete()
    assert bar.shown == "x=1"


def test_there_are_no_values_where_a_function_is_traced():
    bar = jv.progress(total=1, enabled=False)
    with pytest.raises(
        CompileError, match=r"bar\.show\(loss=\.\.\.\) at test_progress\.py:.*traced"
    ):
        jv.compile(lambda x: bar.show(loss=x))(1.0)


def test_what_goes_wrong_in_a_value_does_not_disturb_the_display(monkeypatch):
    def broken(value, *, wait):
        raise RuntimeError("the program failed")

    monkeypatch.setattr(_progress, "_format_value", broken)
    console = terminal()
    bar = jv.progress(2, console=console)
    bar.show(loss=0)
    with pytest.raises(RuntimeError, match="the program failed"):
        list(bar)
    assert console.file.getvalue().endswith(CURSOR_ON)


# ---------------------------------------------------------------- where nothing is animated
def test_a_pipe_gets_one_line_at_the_end():
    console = pipe()
    for i in (bar := jv.progress(3, "training [a]", console=console)):
        assert console.file.getvalue() == ""
        bar.show(loss=0.5 / (i + 1), something_long="x" * 60)
    assert re.fullmatch(
        r"training \[a\] 3/3 in 0:00:00, [\d,.]+ it/s, loss=0\.1667 something_long=x{60}\n",
        console.file.getvalue(),
    )


def test_of_nested_loops_in_a_pipe_the_outermost_tells():
    console = pipe()
    for _ in jv.progress(2, "epochs", console=console):
        list(jv.progress(3, "steps", console=console))
    assert re.fullmatch(r"epochs 2/2 in .*\n", console.file.getvalue())


def test_a_forced_colour_makes_no_terminal_of_a_file():
    console = Console(file=io.StringIO(), force_terminal=True)
    list(jv.progress(3, console=console))
    assert CURSOR_OFF not in console.file.getvalue()
    assert console.file.getvalue().count("\n") == 1


def test_nothing_is_shown_when_it_is_off(capsys):
    list(jv.progress(3, enabled=False))
    assert capsys.readouterr() == ("", "")


def test_it_prints_to_stdout_by_itself(capsys):
    list(jv.progress(3, "steps"))
    assert capsys.readouterr().out.startswith("steps 3/3 in 0:00:00")


# ---------------------------------------------------------------- where it is
def test_a_terminal_sees_it_move():
    console = terminal()
    with jv.progress(2, "training [x]", console=console) as bar:
        for _ in bar:
            bar.show(loss=0.5)
            bar.display.refresh()
    text = seen(console)
    assert re.search(r"training \[x\] ━+ 0/2 .*loss=0\.5", text)
    assert re.search(r"training \[x\] ━+ 2/2 .*it/s +loss=0\.5\s*$", text)
    raw = console.file.getvalue()
    assert raw.count(CURSOR_OFF) == raw.count(CURSOR_ON) == 1


def test_a_total_that_is_not_known():
    console = terminal()
    list(jv.progress((i for i in range(3)), console=console))
    assert "3/?" in seen(console)


def test_inner_bars_vanish():
    console = terminal()
    with jv.progress(2, "epochs", console=console) as outer:
        for epoch in outer:
            with jv.progress(3, f"epoch {epoch}", console=console) as inner:
                assert inner.display is outer.display
                inner.display.refresh()
                list(inner)
            outer.display.refresh()
    last = seen(console).rsplit("epochs", 1)[1]
    assert "epoch 0" in seen(console)
    assert "epoch" not in last


def test_print_goes_above(monkeypatch):
    console = terminal()
    monkeypatch.setattr(sys, "stdout", console.file)
    for _ in jv.progress(1, "steps", console=console):
        print("a line")
    assert re.search(r"a line\nsteps ━+ 0/1", seen(console))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("opened", [True, False])
def test_an_exception_leaves_the_terminal_clean(error, opened):
    console = terminal()

    bar = jv.progress(5, console=console)

    def loop():
        with bar if opened else contextlib.nullcontext():
            for i in bar:
                if i == 2:
                    raise error

    with pytest.raises(error):
        loop()
    assert bar.display is None
    assert console.file.getvalue().endswith(CURSOR_ON)
    assert "2/5" in seen(console)


def test_ctrl_c_while_it_opens_leaves_the_terminal_clean(monkeypatch):
    console = terminal()

    def interrupted(self, **_):
        self.console.show_cursor(False)
        raise KeyboardInterrupt

    monkeypatch.setattr("rich.live.Live.start", interrupted)
    with pytest.raises(KeyboardInterrupt), jv.progress(3, console=console):
        pass
    assert not _progress_display._DISPLAYS


def test_bars_of_several_threads_share_a_display():
    console = terminal()

    def work(n):
        list(jv.progress(20, f"thread {n}", console=console))

    with jv.progress(total=1, console=console), ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert console.file.getvalue().count(CURSOR_OFF) == 1


def test_jupyter_without_widgets_gets_the_line(monkeypatch):
    monkeypatch.setattr(_progress_display.importlib.util, "find_spec", lambda name: None)
    console = terminal()
    console.is_jupyter = True
    assert not _progress_display._can_animate(console)


def test_jupyter_with_widgets_sees_the_end(monkeypatch):
    drawn = []

    class Output:
        def clear_output(self, wait):
            drawn.append(bar.completed)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(_progress_display.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "ipywidgets", types.SimpleNamespace(Output=Output))
    monkeypatch.setattr("IPython.display.display", lambda *_, **__: None)
    console = Console(file=io.StringIO(), force_jupyter=True)
    for _ in (bar := jv.progress(3, console=console)):
        pass
    assert (drawn[0], drawn[-1]) == (0, 3)


# ---------------------------------------------------------------- rate
def test_the_rate_leaves_out_the_first_step(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.time, "perf_counter", lambda: now[0])
    with jv.progress(5, enabled=False) as bar:
        for i in bar:
            now[0] += 100.0 if i == 0 else 0.25
            if i == 0:
                assert bar.rate is None
        assert bar.rate == pytest.approx(4.0)
    now[0] += 50
    assert bar.elapsed == 101.0
    assert bar.rate == pytest.approx(4.0)
    assert repr(bar) == "<progress: 5/5 in 0:01:41, 4 it/s>"

"""`jv.profiler`: steps have names in the trace, a report is right, and nothing is changed."""

from __future__ import annotations

import gzip
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars import profiler
from jaxvars.errors import CompileError
from jaxvars.profiler import longest


class Model(jv.Module):
    def __init__(self):
        self.w = jv.Variable(jnp.eye(8), name="w")
        self.steps = jv.Variable(0, trainable=False, name="steps")


def make_step(m):
    @jv.compile
    def train_step(x):
        m.steps.assign_add(1)
        m.w.assign(jnp.tanh(m.w @ x))
        return jnp.sum(m.w.value)

    return train_step


X = np.full((8, 8), 0.1, np.float32)


def events(folder) -> list[dict]:
    (file,) = folder.rglob("*.trace.json.gz")
    with gzip.open(file) as opened:
        return json.load(opened)["traceEvents"]


# ---------------------------------------------------------------- around a loop
def test_steps_have_their_names_and_numbers(tmp_path):
    f = jax.jit(jnp.sin)
    with profiler.trace(tmp_path / "logs") as folder:
        for i in range(3):
            with profiler.step(i + 7, "valid"):
                f(1.0).block_until_ready()
    assert folder == tmp_path / "logs"
    named = [e for e in events(folder) if e.get("name") == "valid"]
    assert [e["args"]["step_num"] for e in named] == ["7", "8", "9"]


def test_a_step_outside_of_a_trace_is_nothing():
    with profiler.step(0):
        pass
    with pytest.raises((TypeError, ValueError)):
        profiler.step("one")


def test_python_calls_are_recorded_when_asked_for(tmp_path):
    def a_function_of_mine():
        return jnp.ones(1) + 1

    def found(python):
        with profiler.trace(tmp_path / str(python), python=python) as folder:
            a_function_of_mine()
        return any("a_function_of_mine" in e.get("name", "") for e in events(folder))

    assert found(True)
    assert not found(False)


# ---------------------------------------------------------------- in one call
def test_a_report(tmp_path):
    m = Model()
    report = profiler.profile(make_step(m), X, steps=4, logdir=tmp_path)
    assert report.name == "train_step"
    assert len(report.seconds) == 4
    assert 0 < min(report.seconds) <= report.median <= max(report.seconds) < report.first_call
    assert report.path.parent == report.folder
    assert report.folder.is_relative_to(tmp_path)
    named = [e for e in events(tmp_path) if e.get("name") == "train_step"]
    assert [e["args"]["step_num"] for e in named] == ["0", "1", "2", "3"]
    text = str(report)
    assert re.search(r"profile of train_step\n.*\n.*\nsteps +4\n", text)
    assert re.search(r"first call +[\d,.]+ ms", text)
    assert str(report.path) in text
    assert "operations" in text
    assert report._repr_html_().count("<table") == 2
    assert repr(report).startswith("<profile of train_step: ")


def test_the_operations_are_those_of_the_program(tmp_path):
    report = profiler.profile(make_step(Model()), X, steps=3, logdir=tmp_path, top=3)
    assert 1 <= len(report.ops) <= 3
    assert set(report.ops.column("program")) == {"train_step"}
    times = report.ops.column("ms a step")
    assert times == sorted(times, reverse=True)
    assert all(0 < part <= 1 for part in report.ops.column("part"))
    assert all(calls % 3 == 0 for calls in report.ops.column("calls"))


def event(name, start, end, line=1, process=7):
    facts = {"hlo_op": name, "hlo_module": "jit_f"} if name else {}
    return {"ph": "X", "name": name, "pid": process, "tid": line, "ts": start, "dur": end - start,
            "args": facts}  # fmt: skip


def written(folder, found):
    with gzip.open(folder / "a.trace.json.gz", "wt") as file:
        json.dump({"traceEvents": found}, file)
    return folder


def test_a_loop_is_without_what_runs_in_it(tmp_path):
    line = [event("in2", 30, 50), event("while", 0, 100), event("in1", 10, 30), event("", 0, 99),
            event("deep", 32, 40), event("after", 100, 110),
            event("in1", 60, 64, line=2)]  # fmt: skip
    rows = longest(written(tmp_path, line), steps=2)
    assert [(op, program, calls, round(1e3 * ms, 6)) for op, program, calls, ms, _ in rows] == [
        ("while", "f", 1, 30), ("in1", "f", 2, 12), ("in2", "f", 1, 6), ("after", "f", 1, 5),
        ("deep", "f", 1, 4),
    ]  # fmt: skip
    assert sum(row[-1] for row in rows) == pytest.approx(1.0)


def test_an_operation_that_a_device_has_on_two_lines_counts_once(tmp_path):
    named = {"ph": "M", "name": "thread_name", "pid": 7, "tid": 2, "args": {"name": "XLA Ops"}}
    found = [event("a", 0, 10), named, event("a", 0, 10, line=2), event("b", 0, 5, process=8)]
    rows = longest(written(tmp_path, found), steps=1)
    assert [(row[0], row[2]) for row in rows] == [("a", 1), ("b", 1)]


def test_a_trace_without_operations(tmp_path):
    assert longest(written(tmp_path, [event("", 0, 1)]), steps=1) == []


def test_the_variables_are_put_back(tmp_path):
    m = Model()
    step = make_step(m)
    step(X)
    before, x = m.w.numpy(), m.steps.value
    profiler.profile(step, X, steps=2, logdir=tmp_path)
    np.testing.assert_array_equal(m.w, before)
    assert int(m.steps) == int(x) == 1
    step(X)
    assert int(m.steps) == 2


def test_the_variables_are_put_back_after_an_exception(tmp_path):
    m, calls = Model(), []
    step = make_step(m)

    def failing():
        calls.append(step(X))
        if len(calls) == 3:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        profiler.profile(failing, restore=m, logdir=tmp_path)
    assert int(m.steps) == 0
    profiler.profile(make_step(m), X, steps=1, logdir=tmp_path)  # no trace is left open


def test_what_is_put_back_can_be_said(tmp_path):
    m, other = Model(), jv.Variable(0, name="other")
    step = make_step(m)

    def both(x):
        other.assign_add(1)
        step(x)

    with pytest.raises(
        TypeError, match=r"'both' was not made by jv\.compile.*restore=\(model, opt"
    ):
        profiler.profile(both, X, logdir=tmp_path)
    profiler.profile(both, X, steps=2, warmup=1, restore=(m,), logdir=tmp_path / "a")
    assert (int(m.steps), int(other)) == (0, 3)
    profiler.profile(both, x=X, steps=2, warmup=1, restore=False, logdir=tmp_path / "b")
    assert (int(m.steps), int(other)) == (3, 6)


def test_variables_that_the_first_call_creates(tmp_path):
    class Lazy(jv.Module):
        w = None

        @jv.compile
        def __call__(self, x):
            if self.w is None:
                self.w = jv.Variable(jnp.zeros(3), name="w")
            self.w.assign_add(x)

    lazy = Lazy()
    profiler.profile(lazy.__call__, jnp.ones(3), steps=1, logdir=tmp_path)
    np.testing.assert_array_equal(lazy.w, [0, 0, 0])


def test_a_separate_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(profiler.tempfile, "tempdir", str(tmp_path))
    report = profiler.profile(jv.compile(jnp.sin), 1.0, steps=1)
    assert report.folder.is_relative_to(tmp_path)


@pytest.mark.parametrize("options", [{"steps": 0}, {"warmup": 0}])
def test_numbers_that_are_too_small(options):
    with pytest.raises(ValueError, match="must be at least 1"):
        profiler.profile(jv.compile(jnp.sin), 1.0, **options)


def test_not_inside_a_compiled_function():
    with pytest.raises(CompileError, match=r"profile is called at test_profiler\.py:\d+.*outside"):
        jv.compile(lambda: profiler.profile(jnp.sin, 1.0, restore=False))()


def test_memory_is_what_the_devices_tell(monkeypatch):
    class Device:
        platform, id = "gpu", 0

        def __init__(self, facts):
            self.facts = facts

        def memory_stats(self):
            return self.facts

    devices = [Device({"peak_bytes_in_use": 2048}), Device(None)]
    monkeypatch.setattr(profiler.jax, "local_devices", lambda: devices[:1])
    assert profiler._read_memory() == {"gpu:0": 2048}
    monkeypatch.setattr(profiler.jax, "local_devices", lambda: devices[1:])
    assert profiler._read_memory() == {}

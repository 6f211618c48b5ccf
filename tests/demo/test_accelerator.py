"""`python -m jaxvars check-accelerator`: what holds is said, and what does not, however it ends."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars import __main__
from jaxvars.demo import accelerator, checks
from jaxvars.demo.accelerator import FAILED, INFO, OK, PARTS, SKIPPED, Part

DEVICE = PARTS[0]._replace(limit=100)

# Parts that go wrong, and what their rows say.
BAD = """
import os, time
from jaxvars.demo.accelerator import judge

def raises(quick):
    yield judge("before", "reported", True)
    raise ValueError("two\\nlines | and a bar")

def crashes(quick):
    yield judge("before", "reported", True)
    os.abort()

def hangs(quick):
    yield judge("before", "reported", True)
    time.sleep(600)

def leaves(quick):
    os.write(2, b"the last words")
    os._exit(3)

def is_silent(quick):
    return ()

def finds(quick):
    yield judge("sum", "3, not 4", False)
"""
LIMIT = 15
SAID = {
    "raises": "line 7: ValueError: two lines | and a bar",
    "crashes": "crashed (SIGABRT), in line 11 of bad.py (crashes)",
    "hangs": f"did not end within {LIMIT} s, and was stopped, in line 15 of bad.py (hangs)",
    "leaves": "ended with status 3: the last words",
    "is_silent": "ended with status 0",
    "finds": "3, not 4",
}


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set what is run: parts of `BAD` by their names, or others."""
    (tmp_path / "bad.py").write_text(BAD)
    monkeypatch.chdir(tmp_path)

    def use(*wanted: str | Part) -> None:
        made = [Part(x, f"bad:{x}", LIMIT) if isinstance(x, str) else x for x in wanted]
        monkeypatch.setattr(accelerator, "PARTS", made)

    return use


def rows_of(markdown: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in markdown.splitlines()[4:]]


def test_it_says_what_holds_and_what_does_not(
    parts: Callable[..., None], capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    parts(DEVICE, "raises", "crashes")
    out = tmp_path / "found.md"
    assert __main__.main(["check-accelerator", "--out", str(out)]) == 1
    rows = rows_of(out.read_text())
    assert rows[0] == ["device", f"{len(jv.config.list_logical_devices())} x cpu (cpu)", INFO]
    reported = ["before", "reported", OK]
    raised = ["raises", SAID["raises"].replace("|", "\\|"), FAILED]
    assert rows[-4:] == [reported, raised, reported, ["crashes", SAID["crashes"], FAILED]]
    shown, told = capsys.readouterr()
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.splitlines()[-1].split() == ["2", "ok,", "2", "FAILED"]
    assert "crashes: at most" in told


@pytest.mark.parametrize("name", ["hangs", "leaves", "is_silent", "finds"])
def test_a_part_that_goes_wrong_is_a_row(parts: Callable[..., None], name: str):
    parts(name)
    *before, (_, found, result) = accelerator._run(accelerator.PARTS[0], "cpu", True)
    assert (found, result) == (SAID[name], FAILED)
    assert before == [("before", "reported", OK)] * (name == "hangs")


@pytest.mark.parametrize("part", PARTS[:-1], ids=lambda part: part.name)
def test_a_part_of_the_check_finds_nothing_wrong(part: Part):
    rows = accelerator._run(part._replace(limit=300), "cpu", True)
    assert rows
    assert {result for *_, result in rows} <= {OK, INFO, SKIPPED}, rows


def test_all_parts_together_take_ten_minutes_at_most():
    assert accelerator._ASKED + sum(part.limit for part in PARTS) <= 600


def test_a_part_has_what_those_before_it_have_left(monkeypatch: pytest.MonkeyPatch):
    now, limits = [0.0], []

    def run(part: Part, *_: object) -> list[accelerator.Row]:
        limits.append(part.limit)
        now[0] += {"short": 3, "stuck": 25, "last": 0}[part.name]  # stopped late
        return []

    parts = [Part("short", "", 10), Part("stuck", "", 5), Part("last", "", 20)]
    monkeypatch.setattr(accelerator, "PARTS", parts)
    monkeypatch.setattr(accelerator, "_run", run)
    monkeypatch.setattr(accelerator, "_find_platform", lambda: "cpu")
    monkeypatch.setattr(accelerator, "time", SimpleNamespace(monotonic=lambda: now[0]))
    assert accelerator.check(quick=True, out=None) == 0
    assert limits == [10, 12, 7]


def test_a_platform_that_is_not_there_is_a_row(
    parts: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    parts(DEVICE)
    monkeypatch.setenv("JAX_PLATFORMS", "abacus")
    assert accelerator.check(quick=True, out=tmp_path / "found.md") == 1
    ((_, found, result),) = rows_of((tmp_path / "found.md").read_text())
    assert "Unable to initialize backend 'abacus'" in found
    assert result == FAILED


# ---------------------------------------------------------------- the table
def test_a_table_of_anything_fits_80_columns():
    rows = [("check" * 20, "x" * 300, FAILED), ("a", "long words " * 40, SKIPPED), ("b", "", OK)]
    lines = str(accelerator.make_table("title", rows)).splitlines()
    assert max(map(len, lines)) <= 80
    shown = "".join("".join(lines).split())
    assert "x" * 300 in "".join(line[24:71].strip() for line in lines)
    assert shown.count("longwords") == 40
    assert len(accelerator.shorten("word " * 1000)) < 600


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "x.md"], "--out belongs to check-accelerator"),
        (["check-accelerator", "--out", "no/such/folder/x.md"], "cannot write"),
    ],
)
def test_a_file_that_will_not_be_written_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        __main__.main(arguments)
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- the checks can fail
def test_a_step_that_donates_nothing_is_seen(monkeypatch: pytest.MonkeyPatch):
    compile_ = jv.compile
    monkeypatch.setattr(jv, "compile", lambda fn: compile_(fn, donate=False))
    rows = {check: (found, result) for check, found, result in checks.donation(True)}
    assert rows["old values deleted"] == ("0 of 8 after a step", FAILED)
    assert rows["values in place"] == ("0 of 8 where they were", FAILED)


@pytest.fixture
def counted() -> tuple[Any, Any]:
    counters, step = checks._count_in_steps(is_checked=False)
    step(1)
    return counters, step


def test_a_failure_that_tears_is_seen(counted: Any):
    counters, _ = counted

    def tear() -> None:
        counters[0].assign_add(jnp.ones(1000))
        raise RuntimeError

    told = "RuntimeError; all as after it and as before; then the step works"
    assert checks._fail("x", tear, *counted, 1) == ("x", told, FAILED)
    counters[0][3].assign(7.0)
    assert checks._read(counters, 1) == "WRONG and as before"


def test_a_call_that_does_not_fail_is_seen(counted: Any):
    told = "no error; all as after it; then the step works"
    assert checks._fail("x", lambda: counted[1](1), *counted, 1) == ("x", told, FAILED)


def test_memory_that_runs_out(run_python: Callable[..., Any]):
    program = """
        import resource
        import jax.numpy as jnp
        from jaxvars.demo import checks

        room = 2**30
        _, step = checks._count_in_steps(is_checked=False)
        for size in (1, 1, room // 4):
            step(size).block_until_ready()
        now = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (now + room, resource.RLIM_INFINITY))
        for check, found, result in checks.run_out(room):
            print(check, found, result, sep="; ")
    """
    done = run_python("-c", textwrap.dedent(program), XLA_FLAGS="")
    first, later = done.stdout.splitlines()
    assert first == (
        "out of memory, first run; ExecutionError; all as before; then the step works; ok"
    ), done.stderr[-3000:]
    assert later.startswith("out of memory, later; ")
    assert later.endswith("; all lost, as their reads say; then the step works; ok")


# ---------------------------------------------------------------- the tests of the core
@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a clone that has no tests yet, and return where one may be."""
    monkeypatch.setattr(jv, "__file__", str(tmp_path / "jaxvars" / "__init__.py"))
    (tmp_path / "tests" / "core").mkdir(parents=True)
    return tmp_path / "tests" / "core" / "test_frames.py"


def test_tests_of_the_core_are_run(clone: Path):
    clone.write_text("def test_a(): pass\ndef test_b(): assert False\n")
    ((_, found, result),) = checks.core_tests(True)
    assert found.startswith("1 failed, 1 passed")
    assert found.endswith("tests/core/test_frames.py::test_b")
    assert result == FAILED


def test_without_a_clone_they_are_not(clone: Path, monkeypatch: pytest.MonkeyPatch):
    assert not clone.exists()
    skipped = "tests of the core", "no clone of the repository", SKIPPED
    assert list(checks.core_tests(True)) == [skipped]
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    assert next(checks.core_tests(True))[1] == "not installed: pytest, hypothesis"

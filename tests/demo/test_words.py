"""`python -m jaxvars tour`: each program is shown, runs, and prints what its text says."""

from __future__ import annotations

import io
import sys

import jax
import pytest
from rich.console import Console

from jaxvars import __main__
from jaxvars.demo import words


@pytest.fixture
def shown() -> io.StringIO:
    return io.StringIO()


def test_all_of_it_runs(shown: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    words.run(Console(file=shown, width=79))  # a terminal's 80: longer lines are cut off
    printed, text = capsys.readouterr().out, shown.getvalue()
    lines = [line.strip() for line in text.splitlines()]
    for stop in words.STOPS:
        assert f": {stop.word}" in text
        assert {line.strip() for line in stop.program.splitlines()} <= set(lines)
    assert "<Variable 'w' float32[2] [11. 12.]>\n46.0\n" in printed
    assert printed.count("tracing") == 1
    assert "['offset', 'slope']" in printed
    assert "111 <Variable 'rises' int32[] 41>" in printed
    assert f"step on {min(2, jax.device_count())} devices (figures per device)" in printed


def test_a_terminal_waits_for_enter(
    shown: io.StringIO, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(words, "STOPS", words.STOPS[:2])
    asked: list[str] = []
    console = Console(file=shown, force_terminal=True)
    monkeypatch.setattr(console, "input", lambda prompt: asked.append(capsys.readouterr().out))
    words.run(console)
    assert ["46.0" in before for before in asked] == [False, True]  # each before its program


def test_it_is_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "run", lambda: called.append(1))
    called: list[int] = []
    assert __main__.main(["tour"]) == 0
    assert called

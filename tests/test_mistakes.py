"""Typical mistakes: what is raised, the words that teach, and a traceback of the user's lines.

Each program runs as a cell of IPython, as in a notebook: what it shows there is what counts.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from mistake_programs import MISTAKES, SETUP

from jaxvars import errors

MOST_LINES = 25

_RUN = """
import contextlib, io, json, re, sys
from IPython.core.interactiveshell import InteractiveShell

setup, programs = json.load(sys.stdin)
shell, shown = InteractiveShell.instance(colors="nocolor"), {}
for name, program in programs.items():
    shell.run_cell(setup)
    shell.execution_count = 1
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        result = shell.run_cell(program, store_history=False)
    error = result.error_in_exec
    shown[name] = type(error).__name__, str(error), re.sub(r"\\x1b.*?m", "", out.getvalue())
print(json.dumps(shown))
"""


@pytest.fixture(scope="module")
def shown() -> dict[str, list[str]]:
    """For each mistake: the exception, its message, and what IPython shows."""
    programs = {name: mistake.program for name, mistake in MISTAKES.items()}
    cures = {f"{name}, cured": mistake.cure for name, mistake in MISTAKES.items() if mistake.cure}
    return run({}, {**programs, **cures})


def run(environment: dict[str, str], programs: dict[str, str]) -> dict[str, Any]:
    found = subprocess.run(
        [sys.executable, "-c", _RUN],
        input=json.dumps([SETUP, programs]),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(found.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(name: str, shown: dict[str, list[str]]) -> None:
    error, message, text = shown[name]
    assert error == MISTAKES[name].error
    if error in errors.__all__:
        assert f'help("jaxvars.errors.{error}")' in text
    for words in MISTAKES[name].words:
        assert words in message or words in text  # notes are shown below the message


@pytest.mark.parametrize(
    "name", [name for name in MISTAKES if name != "leaked tracer"]
)  # JAX's own
def test_the_users_lines_are_shown(name: str, shown: dict[str, list[str]]) -> None:
    _, _, text = shown[name]
    assert len(text.splitlines()) <= MOST_LINES
    assert "Cell In[1], line" in text
    for internal in ("staging.py", "leaves[0]", "function.py", "contextlib"):
        assert internal not in text


@pytest.mark.parametrize("name", [name for name, mistake in MISTAKES.items() if mistake.cure])
def test_a_cure_runs(name: str, shown: dict[str, list[str]]) -> None:
    error, message, _ = shown[f"{name}, cured"]
    assert (error, message) == ("NoneType", "None")


def test_what_cell_magics_and_await_run_is_shown_as_well() -> None:
    programs = {
        "await": "async def f():\n    v.assign(x[:2])\nawait f()",
        "time": "%%time\nv.assign(x[:2])",
    }
    for _, message, text in run({}, programs).values():
        assert message.startswith("Cannot assign a value of shape (2,)")
        assert len(text.splitlines()) <= MOST_LINES
        assert ".py" not in text


def test_all_lines_are_shown_when_asked_for() -> None:
    found = run({"JAXVARS_TRACEBACK": "full"}, {"if": MISTAKES["if"].program})
    _, _, text = found["if"]
    assert len(text.splitlines()) > 60
    assert re.search(r"staging.py", text)

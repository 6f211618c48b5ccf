"""Typical mistakes: what is raised, the words that teach, and a traceback of the user's lines.

Each program runs as a cell of IPython, as in a notebook: what it shows there is what counts.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from mistake_programs import MISTAKES, SETUP, Mistake

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


def run(environment: dict[str, str], programs: dict[str, str]) -> dict[str, Any]:
    found = subprocess.run(
        [sys.executable, "-c", _RUN],
        input=json.dumps([SETUP, programs]),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    shown = json.loads(found.stdout.splitlines()[-1])
    return {name: tuple(each) for name, each in shown.items()}


OTHER_WAYS = {  # to run a program in a cell
    "await": "async def f():\n    v.assign(x[:2])\nawait f()",
    "time": "%%time\nv.assign(x[:2])",
}
INTERNAL = ("staging.py", "leaves[0]", "function.py", "contextlib", "/jaxvars/")


def explanation_lacks(mistake: Mistake, error: str, message: str, text: str) -> Iterator[str]:
    if error != mistake.error:
        yield f"{error} is raised"
    said = f'help("jaxvars.errors.{error}")'
    if error in errors.__all__ and said not in text:
        yield said
    # Notes are shown below the message.
    yield from (words for words in mistake.words if words not in message and words not in text)


def traceback_lacks(text: str) -> Iterator[str]:
    if len(text.splitlines()) > MOST_LINES:
        yield "it is long"
    if "Cell In[1], line" not in text:
        yield "the line of the user's"
    yield from (f"it shows {internal}" for internal in INTERNAL if internal in text)


def test_mistakes_are_explained_in_the_users_lines_and_the_cures_run() -> None:
    programs = {name: mistake.program for name, mistake in MISTAKES.items()}
    cures = {f"{name}, cured": mistake.cure for name, mistake in MISTAKES.items() if mistake.cure}
    shown = run({}, {**programs, **cures, **OTHER_WAYS})
    lacking: dict[str, list[str]] = {}
    for name, mistake in MISTAKES.items():
        lacking[name] = [*explanation_lacks(mistake, *shown[name])]
        if name != "leaked tracer":  # JAX's own
            lacking[name] += traceback_lacks(shown[name][2])
    assert {name: found for name, found in lacking.items() if found} == {}
    assert [name for name in cures if shown[name][:2] != ("NoneType", "None")] == []
    for name in OTHER_WAYS:
        _, message, text = shown[name]
        assert message.startswith("Cannot assign a value of shape (2,)")
        assert len(text.splitlines()) <= MOST_LINES
        assert ".py" not in text


def test_all_lines_are_shown_when_asked_for() -> None:
    found = run({"JAXVARS_TRACEBACK": "full"}, {"if": MISTAKES["if"].program})
    _, _, text = found["if"]
    assert len(text.splitlines()) > 60
    assert re.search(r"staging.py", text)

"""Programs as text, run by TensorFlow and by `jaxvars.tf` alike, line by line.

`programs/<name>.txt` holds statements, a line `---`, and then expressions, one a line, which are
evaluated in turn. What each gives is text: its repr, or the type and message of what it raises. An
expression that begins with `~` raises something with a message of jaxvars: only its type counts.

`programs/<name>.script` is a whole program; what it prints is compared.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in (HERE / "programs").glob("*.txt"))
SCRIPTS = sorted(path.stem for path in (HERE / "programs").glob("*.script"))
_NODE = re.compile(r"\{\{function_node [^}]*\}\} ")


def run(tf: Any, name: str) -> dict[str, str]:
    """Return what each expression of a program gives, by the expression."""
    setup, _, expressions = (HERE / "programs" / f"{name}.txt").read_text().partition("\n---\n")
    space: dict[str, Any] = {"tf": tf, "np": np, "__name__": name}
    _execute(setup, name, space)
    return {line: _text(line, space) for line in expressions.strip().split("\n")}


def printed_by(tf: Any, name: str) -> list[str]:
    """Return the lines that a script prints."""
    text = (HERE / "programs" / f"{name}.script").read_text()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        _execute(text, name, {"tf": tf, "np": np, "__name__": name})
    return printed.getvalue().splitlines()


def _execute(text: str, name: str, space: dict[str, Any]) -> None:
    file = f"<{name}>"  # in the cache of lines, since autograph reads sources
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), space)


def _text(line: str, space: dict[str, Any]) -> str:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            made = repr(eval(line.removeprefix("~"), space))
    except Exception as error:  # noqa: BLE001 - what it raises is the result
        kind = type(error).__name__
        return kind if line.startswith("~") else f"{kind}: {_words(str(error))}"
    return printed.getvalue() + made


def _words(message: str) -> str:
    """Return a message without what only TensorFlow has: nodes, and names of operations."""
    first = message.split("; NodeDef:")[0]
    return re.sub(r" name: .*$", "", _NODE.sub("", first)).strip()

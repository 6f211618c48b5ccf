"""Programs as text, run by TensorFlow and by `jaxvars.tf` alike, line by line.

`programs/<name>.txt` holds statements, a line `---`, and then expressions, one a line, which are
evaluated in turn. What each gives is text: its repr, or the type and words of what it raises. An
expression that begins with `~` raises something whose words are our own: only its type counts.
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
_NODE = re.compile(r"\{\{function_node [^}]*\}\} ")


def run(tf: Any, name: str) -> dict[str, str]:
    """Return what each expression of a program gives, by the expression."""
    setup, _, expressions = (HERE / "programs" / f"{name}.txt").read_text().partition("\n---\n")
    space: dict[str, Any] = {"tf": tf, "np": np, "__name__": name}
    file = f"<{name}>"  # in the cache of lines, since autograph reads sources
    linecache.cache[file] = (len(setup), None, setup.splitlines(keepends=True), file)
    exec(compile(setup, file, "exec"), space)
    return {line: _text(line, space) for line in expressions.strip().split("\n")}


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

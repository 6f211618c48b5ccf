"""Programs and notebooks: reading them, changing their imports, running them.

Rules this file keeps:
- only imports are changed, all else stays byte for byte; a notebook whose JSON could not be written
  as it was is refused.
"""

from __future__ import annotations

import ast
import codecs
import functools
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from jaxvars.tf.check.names import path_of

_LINE_MAGIC = re.compile(rb"(?m)^([ \t]*)(?:[%!][^\s(](?:\\\n|.)*|\?.*|[\w.%]+\?\??[ \t]*)$")
_ASSIGNED_MAGIC = re.compile(rb"(?m)^([ \t]*[\w., ]+= *)(?:%\w|!).*$")
_CELL_MAGIC = re.compile(rb"\s*%%(\w+).*")
_OF_PYTHON = {b"time", b"timeit", b"capture", b"prun"}  # magics whose cell is Python


class Part(NamedTuple):
    """A program, or a cell of a notebook: as it is, and as Python without magics."""

    label: str
    source: bytes
    plain: bytes
    tree: ast.Module


def files_in(path: Path) -> list[Path]:
    """Return a file, or the programs and notebooks in and below a folder, sorted.

    Those of hidden folders, virtual environments and `__pycache__` are left out.
    """
    if not path.is_dir():
        return [path]
    found: list[Path] = []
    for folder, names, files in os.walk(path):
        here = Path(folder)
        names[:] = [
            x for x in names
            if x[0] != "." and x != "__pycache__" and not (here / x / "pyvenv.cfg").exists()
        ]  # fmt: skip
        found += [here / x for x in files if x[0] != "." and x.endswith((".py", ".ipynb"))]
    return sorted(found)


def read(path: Path) -> list[Part]:
    """Return the parts of a file; raise ValueError if it is not Python, with the line."""
    data = path.read_bytes()
    with warnings.catch_warnings(action="ignore"):  # of strings like "\d"
        if path.suffix != ".ipynb":
            source = data.removeprefix(codecs.BOM_UTF8)
            return [_part("", source, source)]
        cells = [(i, "".join(x["source"]).encode()) for i, x in _code_cells(json.loads(data))]
        return [_part(f"cell {i}, line ", source, _without_magics(source)) for i, source in cells]


def _code_cells(notebook: Any) -> list[tuple[int, Any]]:
    if not isinstance(notebook, dict) or "cells" not in notebook:
        raise ValueError("it is not a notebook of format 4")
    return [(i, x) for i, x in enumerate(notebook["cells"], 1) if x["cell_type"] == "code"]


def _part(label: str, source: bytes, plain: bytes) -> Part:
    flags = ast.PyCF_ONLY_AST | (ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if label else 0)
    try:
        return Part(label, source, plain, compile(plain, "<program>", "exec", flags))
    except SyntaxError as error:
        place = f"{label or 'line '}{error.lineno}"
        raise ValueError(f"it is not Python 3: {place}: {error.msg}") from None


def _without_magics(source: bytes) -> bytes:
    """Return a cell as Python, with as many lines."""
    if found := _CELL_MAGIC.match(source):
        rest, above = source[found.end() :], b"\n" * found[0].count(b"\n")
        keep = found[1] in _OF_PYTHON
        return above + (_without_magics(rest) if keep else b"\n" * rest.count(b"\n"))
    try:
        ast.parse(source)
    except SyntaxError:
        source = _ASSIGNED_MAGIC.sub(rb"\1None", source)
        return _LINE_MAGIC.sub(lambda x: x[1] + b"pass" + b"\n" * x[0].count(b"\n"), source)
    return source


def rewrite(tree: ast.Module, source: bytes, is_there: Callable[[str], bool]) -> tuple[bytes, int]:
    """Return a program with jaxvars.tf in the place of TensorFlow, and how many imports changed."""
    lines = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
    places: list[tuple[int, int, str, bool]] = []  # a bare one is `import tensorflow.keras`
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            places += [(x.lineno, x.col_offset, x.name, x.asname is None) for x in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            places.append((node.lineno, node.col_offset, node.module or "", False))
    paths = {name: path_of(name, ["tensorflow"]) for _, _, name, _ in places}
    known = {name for name, path in paths.items() if path is not None and is_there(path)}
    changed = sorted(place for place in places if place[2] in known)
    for line, column, name, is_bare in reversed(changed):
        old = re.escape(name.encode()) if is_bare else b"tensorflow"
        form = re.compile(rb"(?:from[\s\\]+)?(" + old + rb")\b")
        match = form.match(source, lines[line - 1] + column)
        if match is None:
            raise ValueError(f"the import in line {line} is written in an unusual way")
        new = b"jaxvars.tf as tensorflow" if is_bare else b"jaxvars.tf"
        source = source[: match.start(1)] + new + source[match.end(1) :]
    return source, len(changed)


def write(path: Path, is_there: Callable[[str], bool]) -> int:
    """Change the imports in a file; return how many."""
    data, parts = path.read_bytes(), read(path)
    made = [rewrite(part.tree, part.source, is_there) for part in parts]
    count = sum(n for _, n in made)
    if path.suffix != ".ipynb":
        new = data[: len(data) - len(parts[0].source)] + made[0][0]  # a mark of UTF-8 may be first
    else:
        notebook, how = json.loads(data), _style_of(data)
        for (_, cell), (source, n) in zip(_code_cells(notebook), made, strict=True):
            if n:
                is_list, string = isinstance(cell["source"], list), source.decode()
                cell["source"] = re.findall(r"[^\n]*\n|[^\n]+", string) if is_list else string
        new = how(notebook)
    if count:
        path.write_bytes(new)
    return count


def _style_of(data: bytes) -> Callable[[Any], bytes]:
    """Return what writes JSON as it was written; raise ValueError if it is not known."""
    value = json.loads(data)
    for indent, is_ascii, end in itertools.product((1, 2, 4, None, 0), (False, True), ("\n", "")):
        write = functools.partial(json.dumps, indent=indent, ensure_ascii=is_ascii)
        if (write(value) + end).encode() == data:
            return lambda value, write=write, end=end: (write(value) + end).encode()
    raise ValueError("its JSON could not be written as it was: open and save it in Jupyter first")


def run(path: Path, parts: list[Part], is_there: Callable[[str], bool]) -> str:
    """Run a program with its imports changed; return where it failed and why, "" if it did not."""
    sources = [rewrite(part.tree, part.plain, is_there)[0] for part in parts]
    lines = zip(parts, sources, strict=True)
    places = [f"{x.label or 'line '}{i + 1}" for x, s in lines for i in range(s.count(b"\n") + 1)]
    homes = [path.parent.resolve(), Path(__file__).parents[3], os.environ.get("PYTHONPATH")]
    settings = {"PYTHONPATH": os.pathsep.join(str(x) for x in homes if x), "MPLBACKEND": "Agg"}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_bytes(b"\n".join(sources))
        done = subprocess.run(
            [sys.executable, str(program)], cwd=path.parent, env=os.environ | settings,
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
    said = done.stderr.decode(errors="replace")
    if not done.returncode:
        return ""
    found = re.findall(rf'File "{re.escape(str(program))}", line (\d+)', said)
    place = places[int(found[-1]) - 1] if found else f"exit status {done.returncode}"
    after = said[said.rfind('  File "') :] if found else said
    message = [line for line in after.splitlines() if line[:1].strip()]
    return f"{place}: {message[0 if found else -1] if message else 'no message'}"

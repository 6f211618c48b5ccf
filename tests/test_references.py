"""Files that docstrings, comments and pages name exist: `core/cells.py`, or `cells.py` alone.

A path is looked for from the root, from `jaxvars` and `tests`, and from the folders around the file
that names it.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("jaxvars", "tests", "notebooks", ".github", ".docs")

_KINDS = r"\.(?:py|md|ipynb|svg|png|toml)\b"
_PATH = re.compile(rf"(?<![\w.:/-])(?:\*/)?((?:[\w.-]+/)+[\w.-]+{_KINDS})")
_NAME = re.compile(rf"`([\w-]+{_KINDS})`")


def prose(path: Path) -> Iterator[str]:
    """What a file says to people: comments and docstrings of a program, all of another file."""
    text = path.read_text(encoding="utf-8")
    if not (_PATH.search(text) or _NAME.search(text)):  # few files have to be parsed
        return
    if path.suffix == ".ipynb":
        yield from ("".join(cell["source"]) for cell in json.loads(text)["cells"])
    elif path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        yield from (token.string for token in tokens if token.type == tokenize.COMMENT)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                yield str(node.value.value)
    else:
        yield text


def missing(path: Path, root: Path) -> list[str]:
    """The files that a file names and that do not exist."""
    said = "\n".join(prose(path))
    around = [folder for folder in path.parents if folder.is_relative_to(root)]
    places = [root / "jaxvars", root / "tests", *around]
    paths = [
        found for found in _PATH.findall(said) if not any((p / found).exists() for p in places)
    ]
    names = _NAME.findall(said) if around[-2:][0] == root / "jaxvars" else []
    return paths + [name for name in names if not any(any(p.rglob(name)) for p in around)]


def pages() -> list[Path]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    written = [path for path in found if path.suffix in {".py", ".md", ".ipynb"}]
    return sorted([*written, ROOT / "README.md", ROOT / "pyproject.toml"])


def test_files_that_are_named_exist() -> None:
    found = {path.relative_to(ROOT).as_posix(): missing(path, ROOT) for path in pages()}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('"""See `core/gone.py`, not `core/cells.py`."""', ["core/gone.py"]),
        ("x = 1  # as `loops.py` has it, and `cells.py`", ["loops.py"]),
        ("x = \"core/gone.py\"\nopen('/tmp/folder/gone.py')  # https://a.b/c.md", []),
    ],
)
def test_a_file_that_is_not_there_is_seen(tmp_path: Path, text: str, names: list[str]) -> None:
    folder = tmp_path / "jaxvars" / "core"
    folder.mkdir(parents=True)
    for name in ("cells.py", "user.py"):
        (folder / name).write_text(text, encoding="utf-8")
    assert missing(folder / "user.py", tmp_path) == names

"""Measure the package in figures, which `.ci/run` prints: `python tests/measure_house.py`.

`--base REF` prints the same for another git ref beside it. No figure is a limit: they are read
together, so that one cannot be made better by splitting a file, or by moving code next door.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from test_layers import ROOT, import_uses

SPINE = ("core", "tracing", "compiler", "autodiff")
STARTS = ("compiler/function.py", "core/variable.py")

# Concerns that should plug into the spine from outside, and the names of each in its code.
CONCERNS = {
    "forked processes": r"(?i)fork",
    "restores that wait": r"PENDING|NEW_CELLS|PendingRestore|\b_?seek",
    "strings": r"is_string",
    "unknown dimensions": (
        r"cell\.is_open|OpenCell|\bOpen\b(?! a)|\bOpened\b|open_axes|symbolic|specialize"
        r"|follow_sizes|compared"
    ),
    "display": r"(?i)display|sketch|html_repr|treescope|rich_repr|short_repr|_repr_html",
}
# Those that tests/test_prose.py bans already are not among them.
WORDS = re.compile(r"\b(texts?|lest)\b|\bis no [a-z]|[Tt]ell whether|in a hurry|told by\b")
AIMS = {
    "code lines outside of tf": 23_500,
    "code lines in tf": 23_000,
    "raw lines of the spine": 7_500,
    "raw lines of the reading path": 5_500,
    "files that compiler/function.py imports": 45,
    "files that core/variable.py imports": 24,
    "raw lines of tests": 62_000,
    "frames of jaxvars above a body in its first call": 10,
}
_PROBE = """
import sys, jaxvars as jv
from pathlib import Path
package, v = str(Path(jv.__file__).parent), jv.Variable(1.0)
def body(x):
    frame, found = sys._getframe(), 0
    while frame is not None:
        found, frame = found + frame.f_code.co_filename.startswith(package), frame.f_back
    print(found)
    return v.assign_add(x)
jv.compile(body)(1.0)
"""

Figures: TypeAlias = "dict[str, int | None]"


class Source(NamedTuple):
    """A file of the package: its path in the package, and its text."""

    path: str
    text: str

    @property
    def folder(self) -> str:
        return self.path.split("/")[0]

    @property
    def module(self) -> str:
        name = self.path.removesuffix(".py").removesuffix("/__init__").removesuffix("__init__")
        return ".".join(filter(None, ["jaxvars", *name.split("/")]))


# ---------------------------------------------------------------- lines
def lines_of_docstrings(tree: ast.Module) -> set[int]:
    """The lines of all strings that are statements, which is what docstrings are."""
    strings = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
    return {line for node in strings for line in _lines(node)}


def lines_of_imports(tree: ast.Module) -> set[int]:
    found = (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return {line for node in found for line in _lines(node)}


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def code(text: str, *, imports: bool = False) -> Iterator[str]:
    """The lines of code: no docstrings, comments, blank lines, nor imports unless asked for."""
    tree = ast.parse(text)
    left_out = lines_of_docstrings(tree) | (set() if imports else lines_of_imports(tree))
    for number, line in enumerate(text.splitlines(), 1):
        if number not in left_out and line.strip() and not line.strip().startswith("#"):
            yield line


def raw_lines(texts: Iterable[str]) -> int:
    return sum(text.count("\n") for text in texts)


def reading_path(contributing: str) -> list[str]:
    """The package's files in the first numbered list of CONTRIBUTING.md's "Find your way"."""
    section = contributing.partition("## Find your way")[2]
    (steps, *_) = re.findall(r"(?m)(?:^\d+\. .*\n(?:   .*\n)*)+", section) or [""]
    return [name for name in re.findall(r"`([\w/]+\.py)`", steps) if not name.startswith("tests/")]


# ---------------------------------------------------------------- dependencies
def imports(source: Source, known: Iterable[str]) -> set[str]:
    """The modules, of those known, that importing a file imports: not what a function would."""
    inside = source.module if source.path.endswith("__init__.py") else _parent(source.module)
    tree = ast.Module(list(run_at_import(ast.parse(source.text).body)), [])
    names = {use.name for use in import_uses(tree, inside)}
    return (names | {_parent(name) for name in names}) & set(known)


def _parent(module: str) -> str:
    return module.rpartition(".")[0]


def run_at_import(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The import statements of a body that run, also in `if`, `try` and `with`."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from run_at_import(node.orelse)
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
            for field in ("body", "handlers", "orelse", "finalbody"):
                yield from run_at_import(getattr(node, field, ()))


def reach(start: str, sources: dict[str, Source]) -> set[str]:
    """The modules that importing one of them loads, itself among them."""
    found, left = set[str](), [start]
    while left:
        module = left.pop()
        if module not in found:
            found.add(module)
            left += imports(sources[module], sources)
    return found


def mentions(text: str, pattern: str) -> int:
    """How many lines of code, imports among them, have a name that a pattern is for."""
    return sum(bool(re.search(pattern, line)) for line in code(text, imports=True))


def positional_uses(text: str) -> int:
    """How often a part of a program's key is taken by its position: `key[1]`, `old[:-2]`."""
    return sum(
        isinstance(node, ast.Subscript) and _is_key(node.value) and _is_position(node.slice)
        for node in ast.walk(ast.parse(text))
    )


def _is_key(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "key") or (
        isinstance(node, ast.Attribute) and node.attr == "key"
    )


def _is_position(node: ast.expr) -> bool:
    ends = (node.lower, node.upper) if isinstance(node, ast.Slice) else (node,)
    return all(end is None or re.fullmatch(r"-?\d+", ast.unparse(end)) for end in ends)


# ---------------------------------------------------------------- the table
def frames_of_a_first_call(root: Path) -> int | None:
    """How many frames of the package are above a compiled function's body when it is traced."""
    environment = {**os.environ, "PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(
        [sys.executable, "-c", _PROBE], env=environment, cwd=root, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return int(ran.stdout) if ran.returncode == 0 else None


def read(folder: Path) -> list[Source]:
    paths = sorted(folder.rglob("*.py"))
    return [Source(p.relative_to(folder).as_posix(), p.read_text(encoding="utf-8")) for p in paths]


def measure(root: Path) -> Figures:
    """The figures of a source tree."""
    package = read(root / "jaxvars")
    by_module, by_path = ({getattr(s, k): s for s in package} for k in ("module", "path"))
    spine = [source.text for source in package if source.folder in SPINE]
    lines = {source: sum(1 for _ in code(source.text)) for source in package}
    in_tf = sum(count for source, count in lines.items() if source.folder == "tf")
    path = reading_path((root / ".github/CONTRIBUTING.md").read_text(encoding="utf-8"))
    figures: Figures = {
        "code lines outside of tf": sum(lines.values()) - in_tf,
        "code lines in tf": in_tf,
        "raw lines of the spine": raw_lines(spine),
        "raw lines of the reading path": raw_lines(by_path[name].text for name in path),
    }
    for start in STARTS:
        found = reach(by_path[start].module, by_module) if start in by_path else None
        figures[f"files that {start} imports"] = None if found is None else len(found)
    for concern, pattern in CONCERNS.items():
        figures[f"lines of the spine on {concern}"] = sum(mentions(t, pattern) for t in spine)
    figures["positional uses of a program's key"] = sum(map(positional_uses, spine))
    figures["raw lines of tests"] = raw_lines(source.text for source in read(root / "tests"))
    figures["frames of jaxvars above a body in its first call"] = frames_of_a_first_call(root)
    figures["words to replace"] = sum(len(WORDS.findall(source.text)) for source in package)
    return figures


def measure_ref(ref: str) -> Figures:
    """The figures of a git ref, from a copy in a temporary folder."""
    archive = subprocess.run(
        ["git", "archive", ref], cwd=ROOT, stdout=subprocess.PIPE, check=True
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            packed.extractall(folder, filter="data")
        return measure(Path(folder))


def table(columns: dict[str, Figures]) -> str:
    """The figures as columns of a table, by the name of each, and what is aimed at."""
    names = list(next(iter(columns.values())))
    aims: Figures = {name: AIMS.get(name, 0) for name in names}
    rows = [["", *columns, "aim"]]
    for name in names:
        known = [figures.get(name) for figures in (*columns.values(), aims)]
        rows.append([name, *("-" if count is None else f"{count:,}" for count in known)])
    first, *rest = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join(
        "  ".join([row[0].ljust(first), *map(str.rjust, row[1:], rest)]).rstrip() for row in rows
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Print the package in figures.")
    parser.add_argument("--base", metavar="REF", help="a git ref to print beside it")
    base = parser.parse_args(arguments).base
    columns = {base: measure_ref(base)} if base else {}
    print(table({**columns, "now": measure(ROOT)}))


if __name__ == "__main__":
    main()

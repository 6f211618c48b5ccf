"""Notebooks as tests: each is run from the top, and prints what is saved in it.

Numbers may differ, as times and last digits do; words may not. Those in Korean are not run: they
have the same cells and outputs (tests/test_notebooks_ko.py).
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
import pytest

collect_ignore = ["conftest.py"]  # for examples: it has none, and tests/ has one of this name
SAVED_WITH = "0.10.2"  # other versions of JAX print programs in other words
SECONDS = 300  # for a cell
_OF_TESTS = {"JAX_ENABLE_X64", "MPLBACKEND", "XLA_FLAGS"}  # set by tests/conftest.py
_HERE = Path(__file__).parent
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d[\d.,_]*(?:e[-+]?\d+)?\s*(?:us|µs|ms|s|min|%|[kKMGT]i?B)?\b")
_SPEED = re.compile(r"it/s|s/it")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".ipynb" and file_path.parent == _HERE:
        return Notebook.from_parent(parent, path=file_path)
    return None


class Notebook(pytest.File):
    """A notebook, with one test in it."""

    def collect(self) -> Iterator[pytest.Item]:
        yield Run.from_parent(self, name=self.path.stem)


class Run(pytest.Item):
    """The test that a notebook runs and prints what is saved."""

    def runtest(self) -> None:
        from nbclient import NotebookClient

        saved = nbformat.read(self.path, as_version=4)
        made = copy.deepcopy(saved)
        client = NotebookClient(made, timeout=SECONDS, resources={"metadata": {"path": _HERE}})
        client.execute(env=environment())
        if version("jax") == SAVED_WITH and (found := "\n\n".join(differences(saved, made))):
            pytest.fail(f"run it again and save it, as it prints something else:\n{found}", False)


def environment() -> dict[str, str]:
    """Return the environment of a user who has this copy of the package."""
    kept = {k: v for k, v in os.environ.items() if k not in _OF_TESTS}
    return kept | {"PYTHONPATH": os.pathsep.join([str(_HERE.parent), kept.get("PYTHONPATH", "")])}


def differences(saved: Any, made: Any) -> Iterator[str]:
    """Yield the cells that print something else than what is saved, with both."""
    for old, new in zip(saved.cells, made.cells, strict=True):
        before, now = printed(old), printed(new)
        if before != now:
            yield f"cell {old.id} has saved\n{before}\nand prints\n{now}"


def printed(cell: Any) -> str:
    """Return the words of what a cell shows, less pictures, numbers and white space."""
    strings: list[str] = []
    for out in cell.get("outputs", ()):
        shown = sorted(out.get("data", {}).items())
        if "image/png" not in dict(shown):
            strings += [out.get("text", ""), *out.get("traceback", ()), *(str(x) for _, x in shown)]
    words = _SPEED.sub("", _COLORS.sub("", "".join(strings)))
    return re.sub(r"\s", "", _NUMBERS.sub("#", words))

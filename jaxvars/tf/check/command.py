"""What is said of the names in programs: `python -m jaxvars.tf check PATHS...`."""

from __future__ import annotations

import argparse
import re
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import get_console
from rich.table import Column, Table
from rich.text import Text

from jaxvars import tf
from jaxvars.display.strings import did_you_mean
from jaxvars.tf.check import programs
from jaxvars.tf.check.names import Names
from jaxvars.tf.page import differs

_NOT = "not there"
_PACKAGE = (
    f"{_NOT}: a package that needs TensorFlow itself. What it makes is taken as NumPy arrays."
)
_PACKAGES = {
    "tensorflow_addons": "Its layers, losses and optimizers are in tf.keras, and in optax.",
    "tensorflow_hub": "Models of the package keras_hub run on JAX.",
    "tensorflow_probability": "On JAX: from tensorflow_probability.substrates import jax as tfp.",
}
"""What to use instead of a package that is made for TensorFlow."""
_OPEN = (
    types.ModuleType,
    types.SimpleNamespace,
    type,
)  # whose attributes are names of TensorFlow's
_WHERE = re.compile(r"^\S+ has no (?:attribute '\w+'[.:]|\S+:)\s*")


def main(arguments: Sequence[str]) -> int:
    """Check files; return the exit status: 1 when something is not there, or fails."""
    parser = argparse.ArgumentParser(
        "python -m jaxvars.tf check",
        description="Say which of TensorFlow's names in programs and notebooks are there.",
    )
    parser.add_argument("files", nargs="+", type=Path, help="or folders: all in and below them")
    parser.add_argument("--rewrite", action="store_true", help="change the imports in the files")
    parser.add_argument("--run", action="store_true", help="run each, and say where it fails")
    given = parser.parse_args(arguments)
    known: dict[str, str] = {}
    files = [file for path in given.files for file in programs.files_in(path)]
    results = [_check(path, given, known) for path in files]
    there = sum(not what.startswith(_NOT) for what in known.values())
    if not files:
        _say("There is no .py or .ipynb file in it.")
    _say(f"{there} of {len(known)} names are there.")
    return int(not files or not all(results) or there < len(known))


def _check(path: Path, given: Any, known: dict[str, str]) -> bool:
    """Say what is in a file; return whether nothing failed."""
    try:
        parts = programs.read(path)
        rows = _rows(Names([(part.label, part.tree) for part in parts]))
        columns = [Column(head, overflow="fold") for head in ("name", "lines", "here")]
        table = Table(*columns, title=Text(str(path)), title_justify="left")
        for row in rows:
            table.add_row(*map(Text, row))
        get_console().print(table if rows else Text(f"{path}: no name of TensorFlow's"))
        known |= {name: what for name, _, what in rows}
        if given.rewrite:
            _say(f"{path}: imports changed: {programs.write(path, is_there)}")
        failed = programs.run(path, parts, is_there) if given.run else ""
    except (OSError, ValueError) as error:
        failed = str(error)
    if failed or given.run:
        _say(f"{path}: {failed or 'runs'}")
    return not failed


def _say(string: str) -> None:
    get_console().print(Text(string), soft_wrap=True)


def _rows(names: Names) -> list[tuple[str, str, str]]:
    """Return the names, what is not there first: where each is, and whether it is there."""
    found: dict[str, tuple[str, list[str]]] = {}
    stars = [star for star in names.stars if star is not None]
    for path, place in names.uses:
        ways = [f"{star}.{path[1:]}".lstrip(".") for star in stars] if path[0] == "?" else [path]
        name, what = look_up(next(filter(is_there, ways), ways[0]))
        if path[0] != "?" or None not in names.stars or not what.startswith(_NOT):
            found.setdefault(f"tf.{name}", (what, []))[1].append(place)
    for package, place in names.packages:
        cure = " ".join(filter(None, [_PACKAGE, _PACKAGES.get(package)]))
        found.setdefault(package, (cure, []))[1].append(place)
    order = [_NOT, "differs", "there"]
    rows = [(name, ", ".join(dict.fromkeys(at)), what) for name, (what, at) in found.items()]
    return sorted(rows, key=lambda row: (order.index(row[2].partition(":")[0]), row[0]))


def is_there(path: str) -> bool:
    """Return whether there is a name, or a module."""
    return not path or not look_up(path)[1].startswith(_NOT)


def look_up(path: str) -> tuple[str, str]:
    """Return a name, as far as it is one of TensorFlow's, and whether it is there.

    >>> look_up("nn.relu"), look_up("float32.max")
    (('nn.relu', 'there'), ('float32', 'there'))
    >>> look_up("set_random_seed")[1]
    'not there: use tf.random.set_seed.'
    """
    parts, value = path.split("."), tf
    if parts[:2] == ["compat", "v1"] and parts[2:] and parts[2] not in dir(tf.compat.v1):
        name, what = look_up(".".join(parts[2:]))
        return f"compat.v1.{name}", what if what.startswith(_NOT) else f"{_NOT}: use tf.{name}"
    for i, part in enumerate(parts):
        if not isinstance(value, _OPEN):
            path = ".".join(parts[:i])
            break
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError) as error:
            why = _WHERE.sub("", str(error)) or did_you_mean(part, dir(value)).strip()
            return ".".join(parts[: i + 1]), f"{_NOT}: {why}" if why else _NOT
    return path, f"differs: {found}" if (found := differs(value)) else "there"

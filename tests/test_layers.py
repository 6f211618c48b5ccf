"""The package is built in layers, and this file holds the table of layers against the code.

Rules checked here, from the syntax tree, so that an import inside a function counts too:
- every file has a layer, and imports only from its own package or a lower layer;
- the heart loads nothing that plugs into it, and has no name of it;
- no import cycles, not even through a function or under TYPE_CHECKING;
- no folder of more than 16 files, no underscore in a file's name;
- no `jax._src` anywhere; `jax.core` and `jax.extend.core` in `tracing/` alone;
- no `assert`: a user's mistake raises an error that teaches, and `python -O` drops asserts.
"""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "jaxvars"

# The lowest first. A row names packages (with a dot, one inside another) and single files.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("requirements", "tracebacks", "advice", "objects"),
    ("typing", "errors", "display"),
    ("views",),
    ("tracing",),
    ("tensors", "symbolic"),
    ("devices", "graph"),
    ("core",),
    ("modules",),
    ("autodiff",),
    ("derivatives",),
    ("control", "console"),
    ("autograph.rewrite",),
    ("autograph.operators",),
    ("autograph",),
    ("compiler",),
    ("sketches", "programs", "foreign"),
    ("leaks",),
    ("config", "debugging", "profiler", "planning", "preemption"),
    ("checkpoint", "random", "losses", "optimizers"),
    ("initializers", "interop", "tensorboard", "parallel"),
    ("metrics", "export"),
    ("tf.attributes", "tf.registry.absent"),
    ("tf.listing",),
    ("tf.errors", "tf.nest", "tf.version"),
    ("tf.messages",),
    ("tf.tensors", "tf.profiler"),
    ("tf.context", "tf.registry", "tf.compat"),
    ("tf.variables", "tf.bitwise", "tf.sets", "tf.signal"),
    ("tf.strings", "tf.audio", "tf.summary", "tf.keras.adapter"),
    ("tf.arrays", "tf.autodiff"),
    ("tf.math", "tf.random", "tf.dtypes", "tf.autograph", "tf.control", "tf.sparse"),
    ("tf.functions", "tf.debugging", "tf.config", "tf.linalg.matrices", "tf.nn", "tf.image"),
    ("tf.io", "tf.ragged"),
    ("tf.train", "tf.types", "tf.distribute", "tf.test"),
    ("tf.linalg", "tf.saved_model", "tf.data.generators"),
    ("tf.data", "tf.lookup", "tf.experimental", "tf.compat.v1"),
    ("tf.keras",),
    ("tf",),
    ("tf.page",),
    ("tf.check",),
    ("__init__", "tf.__main__"),
    ("demo",),  # a user's program: it imports the public face
    ("__main__",),
)
MOST_FILES = 16

# What plugs into the heart stands above it, or beside it: the heart loads no more than this.
HEART = ("core", "tracing", "compiler", "autodiff")
BELOW_THE_HEART = ("objects", "tensors", "advice", "errors", "tracebacks", "typing", "views")
MOST_LOADED = {"jaxvars.compiler.function": 45, "jaxvars.core.variable": 30}

BANNED_EVERYWHERE = ("jax._src",)
TRACING_MACHINERY = ("jax.core", "jax.extend.core")
TRACING_PACKAGE = "tracing/"


class Use(NamedTuple):
    """A dotted name that a file imports or reaches, and the line where it does."""

    name: str
    line: int


def files(package: Path) -> list[str]:
    """The package's Python files, as paths relative to it."""
    return sorted(path.relative_to(package).as_posix() for path in package.rglob("*.py"))


def package_of(file: str, layers: tuple[tuple[str, ...], ...] = LAYERS) -> str:
    """The name in the table that a file goes by: its own, or that of its folder."""
    parts = file.removesuffix(".py").split("/")
    module = ".".join(parts[:-1] if parts[-1] == "__init__" and parts[1:] else parts)
    return module if any(module in row for row in layers) else ".".join(parts[:-1])


def layer_of(file: str, layers: tuple[tuple[str, ...], ...] = LAYERS) -> int | None:
    package = package_of(file, layers)
    return next((layer for layer, row in enumerate(layers) if package in row), None)


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def import_uses(tree: ast.Module, inside: str) -> Iterator[Use]:
    """Everything that is imported, by absolute dotted name.

    Args:
        tree: The file's syntax tree.
        inside: The dotted name of the package the file is in, for relative imports.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Use(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute("." * node.level + (node.module or ""), inside)
            yield from (Use(f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and (name := name_in_import_call(node)):
            yield Use(absolute(name, inside), node.lineno)


def absolute(name: str, inside: str) -> str:
    dots = len(name) - len(name.lstrip("."))
    if not dots:
        return name
    parts = inside.split(".")
    return ".".join(filter(None, [*parts[: len(parts) - dots + 1], name[dots:]]))


def name_in_import_call(call: ast.Call) -> str | None:
    """The module that `importlib.import_module("...")` names, if it names one literally."""
    func = call.func.attr if isinstance(call.func, ast.Attribute) else dotted_name(call.func)
    if func not in {"import_module", "__import__"} or not call.args:
        return None
    first = call.args[0]
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def attribute_uses(tree: ast.Module) -> Iterator[Use]:
    """Every `a.b.c` whose `a` is an imported name, spelled out: `jex.core` is `jax.extend.core`."""
    names = imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (dotted := dotted_name(node)):
            head, _, rest = dotted.partition(".")
            if head in names:
                yield Use(f"{names[head]}.{rest}", node.lineno)


def imported_names(tree: ast.Module) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := dotted_name(node.value)):
        return f"{base}.{node.attr}"
    return None


def target_file(name: str, package: Path) -> str | None:
    """The file of the package that importing `name` reads, or None for another package.

    `jaxvars.modules.state.State` is `modules/state.py`; `jaxvars.Variable` is `__init__.py`.
    """
    first, *parts = name.split(".")
    if first != package.name:
        return None
    while parts:
        path = package.joinpath(*parts)
        if path.with_suffix(".py").is_file():
            return path.with_suffix(".py").relative_to(package).as_posix()
        if (path / "__init__.py").is_file():
            return (path / "__init__.py").relative_to(package).as_posix()
        parts.pop()
    return "__init__.py"


@functools.cache
def edges(package: Path) -> dict[str, dict[str, int]]:
    """For every file, the package's files that it imports, and the line of the first import."""
    graph: dict[str, dict[str, int]] = {}
    for file in files(package):
        inside = ".".join([package.name, *Path(file).parts[:-1]])
        found = graph.setdefault(file, {})
        for use in import_uses(parse(package / file), inside):
            target = target_file(use.name, package)
            if target is not None and target != file:
                found.setdefault(target, use.line)
    return graph


def without_a_layer(package: Path, layers: tuple[tuple[str, ...], ...] = LAYERS) -> list[str]:
    return [file for file in files(package) if layer_of(file, layers) is None]


def upward_imports(package: Path, layers: tuple[tuple[str, ...], ...] = LAYERS) -> list[str]:
    return [
        f"{file}:{line} (layer {own}) imports {target} (layer {other})"
        for file, targets in edges(package).items()
        for target, line in targets.items()
        if package_of(file, layers) != package_of(target, layers)
        and (own := layer_of(file, layers)) is not None
        and (other := layer_of(target, layers)) is not None
        and other >= own
    ]


def crowded_folders(package: Path, most: int = MOST_FILES) -> dict[str, int]:
    counts = Counter(Path(file).parent.as_posix() for file in files(package))
    return {folder: count for folder, count in counts.items() if count > most}


def import_cycle(package: Path) -> list[str]:
    try:
        TopologicalSorter(edges(package)).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def with_word(folder: Path, *words: str) -> Iterator[tuple[str, ast.Module]]:
    """The files in whose text one of the words is, and their trees: few have to be parsed."""
    for file in files(folder):
        text = (folder / file).read_text(encoding="utf-8")
        if any(word in text for word in words):
            yield file, ast.parse(text, filename=str(folder / file))


def banned_names(folder: Path, banned: tuple[str, ...]) -> list[str]:
    """Uses of a banned module, or of anything in it, as `file:line name`."""
    found: set[str] = set()
    for file, tree in with_word(folder, *(name.rpartition(".")[2] for name in banned)):
        for use in (*import_uses(tree, folder.name), *attribute_uses(tree)):
            if any(f"{use.name}.".startswith(f"{name}.") for name in banned):
                found.add(f"{file}:{use.line} {use.name}")
    return sorted(found)


def asserts(package: Path) -> list[str]:
    return [
        f"{file}:{node.lineno}"
        for file, tree in with_word(package, "assert")
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
    ]


def test_every_file_has_a_layer() -> None:
    assert without_a_layer(PACKAGE) == [], "name the package in LAYERS"


def test_every_name_in_the_table_is_there_once() -> None:
    names = sorted(name for row in LAYERS for name in row)
    assert names == sorted({package_of(file) for file in files(PACKAGE)})


def test_no_file_imports_from_a_higher_layer() -> None:
    assert upward_imports(PACKAGE) == []


def test_the_heart_loads_nothing_that_plugs_into_it() -> None:
    import measure_house  # which imports this file

    sources = {source.module: source for source in measure_house.read(PACKAGE)}
    known = {*HEART, *BELOW_THE_HEART}
    for start in (*MOST_LOADED, "jaxvars.autodiff.tape"):
        loaded = measure_house.reach(start, sources) - {"jaxvars"}
        assert {name for name in loaded if name.split(".")[1] not in known} == set()
        assert len(loaded) <= MOST_LOADED.get(start, len(loaded))


def test_the_heart_names_nothing_that_plugs_into_it() -> None:
    import measure_house

    spine = [source for source in measure_house.read(PACKAGE) if source.folder in HEART]
    for concern in ("forked processes", "restores that wait"):
        pattern = measure_house.CONCERNS[concern]
        named = [source.path for source in spine if measure_house.mentions(source.text, pattern)]
        assert not named, f"{concern} are named"


def test_no_folder_is_crowded() -> None:
    assert crowded_folders(PACKAGE) == {}


def test_a_name_begins_with_an_underscore_in_no_package() -> None:
    private = [file for file in files(PACKAGE) if re.search(r"(^|/)_[^_]", file)]
    assert private == [], "users import jaxvars and jaxvars.tf only: no file needs an underscore"


def test_no_import_cycles() -> None:
    assert import_cycle(PACKAGE) == []


def test_no_private_jax() -> None:
    assert banned_names(PACKAGE, BANNED_EVERYWHERE) == []
    assert banned_names(ROOT / "tests", BANNED_EVERYWHERE) == []


def test_only_one_package_touches_the_tracing_machinery() -> None:
    found = banned_names(PACKAGE, TRACING_MACHINERY)
    assert [use for use in found if not use.startswith(TRACING_PACKAGE)] == []


def test_no_assert_in_the_package() -> None:
    assert asserts(PACKAGE) == [], "raise an error that says what to do instead"


def test_every_file_says_its_rules_at_the_top() -> None:
    assert [file for file in files(PACKAGE) if not ast.get_docstring(parse(PACKAGE / file))] == []


def test_the_picture_of_the_packages_is_that_of_the_code() -> None:
    from draw_packages import PICTURE, picture

    made = "run: python tests/draw_packages.py"
    assert PICTURE.read_text(encoding="utf-8") == picture(), made


# The checks themselves must be able to fail: each is shown a small package that breaks its rule.

SMALL = (("low",), ("middle", "beside"), ("sub",), ("__init__",))


def upward(package: Path) -> list[str]:
    return upward_imports(package, SMALL)


def write(folder: Path, sources: dict[str, str]) -> Path:
    package = folder / "toy"
    for name, source in ({"__init__.py": "", "low.py": "", "middle.py": ""} | sources).items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")
    return package


@pytest.mark.parametrize("source", [
    "import toy.middle", "import toy.middle as m", "from toy import middle",
    "from toy.middle import thing", "from . import middle", "from .middle import thing",
    "def f():\n    from toy.middle import thing",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from toy import middle",
    "import importlib\nimportlib.import_module('toy.middle')",
])  # fmt: skip
def test_an_upward_import_is_seen(tmp_path: Path, source: str) -> None:
    (found,) = upward(write(tmp_path, {"low.py": source}))
    assert found.startswith("low.py:")
    assert found.endswith("(layer 0) imports middle.py (layer 1)")


INSIDE = {"sub/__init__.py": "", "sub/leaf.py": "from .. import low",
          "low.py": "from .sub import leaf"}  # fmt: skip
CIRCLE = {
    "sub/one.py": "def f():\n    from . import two",
    "sub/two.py": "from toy.sub.one import f",
}
DOWN = {"beside.py": "from toy import low\nimport toy.low", "low.py": "import os"}
FACE = ["middle.py:1 (layer 1) imports __init__.py (layer 3)"]
LOOK_ALIKE = """
    import jax
    import flax.core
    from jax import core_other
    class A:
        jax = 1
    A.jax.core, self.core, jax.cores
"""
SEEN: dict[str, tuple[Callable[[Path], Any], dict[str, str], Any]] = {
    "the public face": (upward, {"middle.py": "import toy"}, FACE),
    "a name of it": (upward, {"middle.py": "from toy import thing"}, FACE),
    "a name of it by a dot": (upward, {"middle.py": "from . import thing"}, FACE),
    "a folder": (upward, INSIDE, ["low.py:1 (layer 0) imports sub/leaf.py (layer 2)"]),
    "a folder's layer": (lambda package: without_a_layer(package, SMALL), INSIDE, []),
    "downward": (lambda package: upward(package) + import_cycle(package), DOWN, []),
    "the same layer": (upward, {"beside.py": "from toy import middle"},
                       ["beside.py:1 (layer 1) imports middle.py (layer 1)"]),
    "a cycle within a package": (lambda package: (upward(package), {*import_cycle(package)}),
                                 CIRCLE, ([], CIRCLE.keys())),
    "a crowded folder": (lambda package: crowded_folders(package, 2), {"low.py": "x = 1"},
                         {".": 3}),
    "no layer": (lambda package: without_a_layer(package, SMALL), {"new.py": ""}, ["new.py"]),
    "what only looks like it": (lambda package: banned_names(package, TRACING_MACHINERY),
                                {"low.py": LOOK_ALIKE}, []),
    "an assert": (asserts, {"low.py": "def f(x):\n    assert x"}, ["low.py:2"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_what_breaks_a_rule_is_seen_and_nothing_else(tmp_path: Path, name: str) -> None:
    check, sources, found = SEEN[name]
    assert check(write(tmp_path, sources)) == found


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import jax.core", "jax.core"),
        ("from jax import core", "jax.core"),
        ("from jax.core import Trace", "jax.core.Trace"),
        ("import jax\njax.core.Tracer", "jax.core.Tracer"),
        ("import jax.extend as jex\njex.core.Primitive", "jax.extend.core.Primitive"),
        ("from jax import extend\nextend.core.Primitive", "jax.extend.core.Primitive"),
        ("def f():\n    from jax.extend.core import Primitive", "jax.extend.core.Primitive"),
    ],
)
def test_the_tracing_machinery_is_seen(tmp_path: Path, source: str, name: str) -> None:
    found = banned_names(write(tmp_path, {"low.py": source}), TRACING_MACHINERY)
    assert any(use.endswith(f" {name}") for use in found)


def test_private_jax_is_seen(tmp_path: Path) -> None:
    source = "import jax\ndef f():\n    return jax._src.core.Trace"
    found = banned_names(write(tmp_path, {"low.py": source}), BANNED_EVERYWHERE)
    assert "low.py:3 jax._src" in found

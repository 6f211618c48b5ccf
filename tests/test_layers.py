"""The package is built in layers, and this file holds the table of layers against the code.

Rules checked here, from the syntax tree, so that an import inside a function counts too:
- every file of the package has a level, and imports only from its own level or a lower one;
- no import cycles, not even through a function or under TYPE_CHECKING;
- no `jax._src` anywhere; `jax.core` and `jax.extend.core` in `tracing/trace.py` alone;
- no `assert`: a user's mistake raises an error that teaches, and `python -O` drops asserts.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "jaxvars"

# A name ending in "/" is a folder whose files all have its level. A file may be named here
# before it is written.
LEVELS: dict[int, tuple[str, ...]] = {
    0: (
        "errors.py",
        "demo/__init__.py",
        "parallel/__init__.py",
        "launch/__init__.py",
        "summary/__init__.py",
        "profiler/__init__.py",
        "debugging/__init__.py",
        "interop/__init__.py",
        "saved/__init__.py",
        "optimizers/__init__.py",
        "metrics/__init__.py",
        "losses/__init__.py",
        "checkpoint/__init__.py",
        "initializers/__init__.py",
        "random/__init__.py",
        "compiler/__init__.py",
        "graph/__init__.py",
        "autograph/operators/__init__.py",
        "autograph/rewrite/__init__.py",
        "autograph/__init__.py",
        "console/__init__.py",
        "control/__init__.py",
        "autodiff/__init__.py",
        "core/__init__.py",
        "devices/__init__.py",
        "tensors/__init__.py",
        "display/__init__.py",
        "symbolic/__init__.py",
        "tracing/__init__.py",
        "tracing/around.py",
        "display/repr.py",
        "display/text.py",
        "tracing/identity.py",
        "core/foreign.py",
        "tracing/fork.py",
        "tracing/interruption.py",
        "tracing/key_order.py",
        "symbolic/sizes.py",
        "symbolic/specialize.py",
        "symbolic/propagate.py",
        "tracing/dependencies.py",
        "display/pretty.py",
        "tracing/assigned_read.py",
        "tracing/checkpointed_while.py",
        "tensors/shapes.py",
        "display/table.py",
        "console/template.py",
        "tracing/trace.py",
        "core/traversal.py",
        "launch/guard.py",
        "launch/options.py",
        "launch/output.py",
        "launch/report.py",
        "launch/signals.py",
        "launch/supervisor.py",
        "launch/worker.py",
        "launch.py",
    ),
    1: (
        "tensors/tensor.py",
        "devices/mesh.py",
        "devices/device.py",
        "tensors/array_like.py",
        "tensors/wrapping.py",
    ),
    2: (
        "core/store.py",
        "core/frames.py",
        "core/staging.py",
        "core/state.py",
        "core/checks.py",
        "core/indices.py",
        "compiler/colocation.py",
        "control/vmap_index.py",
    ),
    3: ("core/variable.py",),
    4: (
        "core/abstract.py",
        "core/module.py",
        "control/carry.py",
        "control/branches.py",
        "control/loops.py",
        "control/maps.py",
        "control/state_threading.py",
        "autodiff/sparse_rows.py",
        "autodiff/recording.py",
        "autodiff/tape.py",
        "autodiff/custom_gradient.py",
        "console/print.py",
        "control/elements.py",
        "debugging/numerics.py",
        "debugging/placement_log.py",
        "debugging/listeners.py",
        "console/progress.py",
        "console/progress_display.py",
        "control/tensor_array.py",
    ),
    5: (
        "autograph.py",
        "autograph/rewrite/blocks.py",
        "autograph/operators/branches.py",
        "autograph/operators/builtins.py",
        "autograph/calls.py",
        "autograph/rewrite/expressions.py",
        "autograph/operators/lists.py",
        "autograph/rewrite/liveness.py",
        "autograph/operators/logic.py",
        "autograph/operators/loops.py",
        "autograph/operators/places.py",
        "autograph/rewrite/prepare.py",
        "autograph/rewrite/rewrite.py",
        "autograph/operators/sequences.py",
        "autograph/rewrite/source.py",
        "autograph/operators/state.py",
        "autograph/operators/values.py",
        "autograph/operators/watch.py",
        "autograph/operators/world.py",
        "config.py",
    ),
    6: (
        "compiler/input_shardings.py",
        "compiler/function.py",
        "compiler/concrete_function.py",
        "compiler/executable.py",
        "graph/graph.py",
        "graph/jaxpr.py",
        "graph/layout.py",
        "graph/place.py",
        "graph/svg.py",
        "compiler/fast_path.py",
        "compiler/symbolic_calls.py",
        "compiler/signature.py",
    ),
    7: (
        "compiler/hlo.py",
        "compiler/plan.py",
        "debugging/alarm.py",
        "debugging/verification.py",
        "debugging.py",
        "parallel/batches.py",
        "random/generator.py",
        "initializers/initializer.py",
        "parallel/placement.py",
        "random/seeds.py",
        "random/stateless.py",
        "checkpoint/checkpoint.py",
        "checkpoint/background.py",
        "checkpoint/directory.py",
        "checkpoint/files.py",
        "checkpoint/kept.py",
        "checkpoint/restore.py",
        "checkpoint/together.py",
        "checkpoint/trees.py",
        "checkpoint/view.py",
        "checkpoint/manager.py",
        "checkpoint/retention.py",
        "checkpoint/checksum.py",
        "checkpoint.py",
        "distribute.py",
        "losses/loss.py",
        "losses/classification.py",
        "losses/inputs.py",
        "losses/regression.py",
        "losses/structured.py",
        "losses/classification_classes.py",
        "losses/regression_classes.py",
        "losses/structured_classes.py",
        "metrics/sums.py",
        "metrics/metric.py",
        "metrics/accuracies.py",
        "metrics/auc.py",
        "metrics/confusion.py",
        "metrics/correlation.py",
        "metrics/iou.py",
        "metrics/mean.py",
        "metrics/rows.py",
        "metrics/scores.py",
        "metrics/tally.py",
        "metrics/thresholds.py",
        "losses.py",
        "metrics.py",
        "optimizers/loss_scale.py",
        "optimizers/optimizer.py",
        "optimizers/checks.py",
        "optimizers/options.py",
        "optimizers/rules.py",
        "optimizers/slots.py",
        "optimizers/step.py",
        "optimizers/adam.py",
        "optimizers/sgd.py",
        "initializers.py",
        "distributed.py",
        "interop.py",
        "interop/form.py",
        "interop/linen.py",
        "interop/module.py",
        "interop/nnx.py",
        "interop/rngs.py",
        "interop/state.py",
        "optimizers.py",
        "profiler/ops.py",
        "profiler.py",
        "summary/call.py",
        "summary/defaults.py",
        "summary/writer.py",
        "summary.py",
        "random.py",
        "saved/serialize.py",
        "saved/files.py",
        "saved/forms.py",
        "saved/functions.py",
        "saved/loaded.py",
        "saved/program.py",
        "saved.py",
    ),
    8: ("tf/", "demo/digits.py"),
    # `demo/train.py` is a user's program: it imports the package's public face.
    9: ("__init__.py", "__main__.py", "demo/train.py", "demo/picture.py"),
}

BANNED_EVERYWHERE = ("jax._src",)
TRACING_MACHINERY = ("jax.core", "jax.extend.core")
TRACING_FILE = "tracing/trace.py"


class Use(NamedTuple):
    """A dotted name that a file imports or reaches, and the line where it does."""

    name: str
    line: int


def files(package: Path) -> list[str]:
    """The package's Python files, as paths relative to it."""
    return sorted(path.relative_to(package).as_posix() for path in package.rglob("*.py"))


def level_of(file: str, levels: dict[int, tuple[str, ...]] = LEVELS) -> int | None:
    for level, names in levels.items():
        if any(file == name or (name[-1] == "/" and file.startswith(name)) for name in names):
            return level
    return None


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def import_uses(tree: ast.Module, inside: str) -> Iterator[Use]:
    """Everything that is imported, by absolute dotted name.

    Args:
        tree: The file's syntax tree.
        inside: The dotted name of the package the file lies in, for relative imports.
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
    """The module that `importlib.import_module("...")` names, if it names one in plain text."""
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

    `jaxvars.core.state.State` is `core/state.py`; `jaxvars.Variable` is `__init__.py`.
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


def without_a_level(package: Path, levels: dict[int, tuple[str, ...]] = LEVELS) -> list[str]:
    return [file for file in files(package) if level_of(file, levels) is None]


def upward_imports(package: Path, levels: dict[int, tuple[str, ...]] = LEVELS) -> list[str]:
    return [
        f"{file}:{line} (level {level_of(file, levels)}) imports {target} (level {above})"
        for file, targets in edges(package).items()
        for target, line in targets.items()
        if (own := level_of(file, levels)) is not None
        and (above := level_of(target, levels)) is not None
        and above > own
    ]


def import_cycle(package: Path) -> list[str]:
    try:
        TopologicalSorter(edges(package)).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def banned_names(folder: Path, banned: tuple[str, ...]) -> list[str]:
    """Uses of a banned module, or of anything in it, as `file:line name`."""
    found: set[str] = set()
    for file in files(folder):
        tree = parse(folder / file)
        for use in (*import_uses(tree, folder.name), *attribute_uses(tree)):
            if any(f"{use.name}.".startswith(f"{name}.") for name in banned):
                found.add(f"{file}:{use.line} {use.name}")
    return sorted(found)


def asserts(package: Path) -> list[str]:
    return [
        f"{file}:{node.lineno}"
        for file in files(package)
        for node in ast.walk(parse(package / file))
        if isinstance(node, ast.Assert)
    ]


def test_every_file_has_a_level() -> None:
    assert without_a_level(PACKAGE) == [], "name the file in LEVELS, at the level of its job"


def test_no_file_has_two_levels() -> None:
    names = [name for level in LEVELS.values() for name in level]
    assert sorted(names) == sorted(set(names))


def test_no_file_imports_from_a_higher_level() -> None:
    assert upward_imports(PACKAGE) == []


def test_no_import_cycles() -> None:
    assert import_cycle(PACKAGE) == []


def test_no_private_jax() -> None:
    assert banned_names(PACKAGE, BANNED_EVERYWHERE) == []
    assert banned_names(ROOT / "tests", BANNED_EVERYWHERE) == []


def test_only_one_file_touches_the_tracing_machinery() -> None:
    found = banned_names(PACKAGE, TRACING_MACHINERY)
    assert [use for use in found if not use.startswith(f"{TRACING_FILE}:")] == []


def test_no_assert_in_the_package() -> None:
    assert asserts(PACKAGE) == [], "raise an error that says what to do instead"


def test_every_file_says_its_rules_at_the_top() -> None:
    assert [file for file in files(PACKAGE) if not ast.get_docstring(parse(PACKAGE / file))] == []


# The checks themselves must be able to fail: each is shown a small package that breaks its rule.

SMALL = {0: ("low.py",), 1: ("middle.py", "beside.py"), 2: ("sub/",), 9: ("__init__.py",)}


def write(folder: Path, sources: dict[str, str]) -> Path:
    package = folder / "toy"
    for name, source in ({"__init__.py": "", "low.py": "", "middle.py": ""} | sources).items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")
    return package


@pytest.mark.parametrize(
    "source",
    [
        "import toy.middle",
        "import toy.middle as m",
        "from toy import middle",
        "from toy.middle import thing",
        "from . import middle",
        "from .middle import thing",
        "def f():\n    from toy.middle import thing",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from toy import middle",
        "import importlib\nimportlib.import_module('toy.middle')",
    ],
)
def test_an_upward_import_is_seen(tmp_path: Path, source: str) -> None:
    (found,) = upward_imports(write(tmp_path, {"low.py": source}), SMALL)
    assert found.startswith("low.py:")
    assert found.endswith("(level 0) imports middle.py (level 1)")


@pytest.mark.parametrize("source", ["import toy", "from toy import thing", "from . import thing"])
def test_the_public_face_is_the_highest_level(tmp_path: Path, source: str) -> None:
    package = write(tmp_path, {"middle.py": source})
    assert upward_imports(package, SMALL) == ["middle.py:1 (level 1) imports __init__.py (level 9)"]


def test_a_folder_gives_its_files_its_level(tmp_path: Path) -> None:
    package = write(
        tmp_path,
        {
            "sub/__init__.py": "",
            "sub/leaf.py": "from .. import low",
            "low.py": "from .sub import leaf",
        },
    )
    assert without_a_level(package, SMALL) == []
    assert upward_imports(package, SMALL) == ["low.py:1 (level 0) imports sub/leaf.py (level 2)"]


def test_downward_and_level_imports_are_allowed(tmp_path: Path) -> None:
    package = write(
        tmp_path,
        {"beside.py": "from toy import low, middle\nimport toy.low", "low.py": "import os"},
    )
    assert upward_imports(package, SMALL) == []
    assert import_cycle(package) == []


def test_a_cycle_within_a_level_is_seen(tmp_path: Path) -> None:
    package = write(
        tmp_path,
        {
            "middle.py": "def f():\n    from . import beside",
            "beside.py": "from toy.middle import f",
        },
    )
    assert set(import_cycle(package)) == {"middle.py", "beside.py"}


def test_a_file_without_a_level_is_seen(tmp_path: Path) -> None:
    assert without_a_level(write(tmp_path, {"new.py": ""}), SMALL) == ["new.py"]


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


def test_names_that_only_look_like_it_are_not(tmp_path: Path) -> None:
    source = """
        import jax
        import flax.core
        from jax import core_other
        class A:
            jax = 1
        A.jax.core, self.core, jax.cores
    """
    assert banned_names(write(tmp_path, {"low.py": source}), TRACING_MACHINERY) == []


def test_private_jax_is_seen(tmp_path: Path) -> None:
    source = "import jax\ndef f():\n    return jax._src.core.Trace"
    found = banned_names(write(tmp_path, {"low.py": source}), BANNED_EVERYWHERE)
    assert "low.py:3 jax._src" in found


def test_an_assert_is_seen(tmp_path: Path) -> None:
    assert asserts(write(tmp_path, {"low.py": "def f(x):\n    assert x"})) == ["low.py:2"]

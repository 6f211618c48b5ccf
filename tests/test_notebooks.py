"""Every notebook has the same form: an aim, a body that was run, exercises, and where to go next.

That the cells run, and print what is saved, is tested by notebooks/conftest.py; this file is about
what a reader finds.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import nbformat
import pytest
from test_readme import links

import jaxvars as jv

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
KOREAN = sorted((FOLDER / "ko").glob("*.ipynb"))  # the same cells: test_notebooks_ko.py
MOST_KIB = 200
INSTALL = '# In a clone: pip install ".[notebooks]"\n'
SOLUTION = "# @title Solution\n"
OWN = {"self", "cls"}  # may have private attributes
MACHINE = re.compile(
    r"(?<![\w.])/(?:tmp|home|root|work|Users|private|var|usr|opt|mnt)/|ipykernel_\d"
)


class Words(NamedTuple):
    """What stands at the places of a notebook; patterns, but for the headings."""

    goals: str
    needs: str
    exercises: str
    next: str
    folder: Path


WORDS = {
    "en": Words(
        r"\*\*You will learn:?\*\*:?", r"\bneeds\b.*\bruns\s+in\s+about\s.*\son\s+two\s+cores",
        "## Exercises", "## Next", FOLDER,
    ),
    "ko": Words(
        r"\*\*배울 내용\*\*", r"필요한 것:.*\s코어\s+두\s+개에서\s+약\s+\d+초",
        "## 연습문제", "## 다음", FOLDER / "ko",
    ),
}  # fmt: skip

Cell: TypeAlias = Any  # nbformat's cells are dicts with attributes
Found: TypeAlias = Iterator[str]
"""What is wrong, one sentence each."""


def markdown(nb: Any) -> list[Cell]:
    return [cell for cell in nb.cells if cell.cell_type == "markdown"]


def code(nb: Any) -> list[Cell]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def words(nb: Any) -> Words:
    return WORDS["ko" if re.search("[가-힣]", nb.cells[0].source) else "en"]


def tags(cell: Cell) -> list[str]:
    return cell.metadata.get("tags", [])


# ---------------------------------------------------------------- what is checked
def the_first_cell_says_what_it_is_about(nb: Any) -> Found:
    head, said = nb.cells[0], words(nb)
    _, goals, *_ = (*re.split(rf"{said.goals}\s*\n", head.source), "")
    count = len(re.findall(r"(?m)^[-*] ", goals))
    if head.cell_type != "markdown" or not re.match(r"# \S.*\n\n\S", head.source):
        yield "it does not begin with a title and two sentences"
    if not 3 <= count <= 6:
        yield f"'You will learn' has {count} bullets, not 3 to 6"
    if not re.search(said.needs, goals, re.I | re.S):
        yield "the needs and the time it takes are not said"


def the_second_cell_installs(nb: Any) -> Found:
    if nb.cells[1].cell_type != "code" or not f"{nb.cells[1].source}\n".startswith(INSTALL):
        yield "its second cell is not the one that installs"


def exercises_have_folded_solutions(nb: Any) -> Found:
    title = words(nb).exercises
    starts = [i for i, cell in enumerate(nb.cells) if re.search(rf"(?m)^{title}$", cell.source)]
    if len(starts) != 1 or nb.cells[starts[0]].cell_type != "markdown":
        yield f"it has no cell {title!r}"
        return
    solutions = [i for i, cell in enumerate(nb.cells) if "solution" in tags(cell)]
    if not 2 <= len(solutions) <= 4 or solutions[0] < starts[0]:
        yield f"it has {len(solutions)} solutions after {title!r}, not 2 to 4"
    for i in solutions:
        cell = nb.cells[i]
        is_folded = cell.metadata.get("jupyter", {}).get("source_hidden")
        if not is_folded or cell.metadata.get("cellView") != "form":
            yield f"solution {cell.id} is not folded"
        if not cell.source.startswith(SOLUTION) or nb.cells[i - 1].cell_type != "markdown":
            yield f"solution {cell.id} has no title, or no exercise before it"


def the_last_cell_leads_on(nb: Any) -> Found:
    last, title = nb.cells[-1], words(nb).next
    onward = [path for path in links(last.source) if path.endswith(".ipynb")]
    if last.cell_type != "markdown" or not last.source.startswith(f"{title}\n"):
        yield f"its last cell is not {title!r}"
    if not 2 <= len(onward) <= 4:
        yield f"its last cell links to {len(onward)} notebooks, not 2 to 4"


def links_lead_somewhere(nb: Any) -> Found:
    paths = links("\n\n".join(cell.source for cell in markdown(nb)))
    yield from (f"there is no {path}" for path in paths if not (words(nb).folder / path).exists())


def it_was_run_from_the_top(nb: Any) -> Found:
    counts = [cell.execution_count for cell in code(nb)]
    if counts != list(range(1, len(counts) + 1)):
        yield f"its cells were not run once each, in order: {counts}"
    for cell in code(nb):
        raised = [out.ename for out in cell.outputs if out.output_type == "error"]
        if bool(raised) != ("raises-exception" in tags(cell)):
            yield f"cell {cell.id} raised {raised}, and is tagged {tags(cell)}"


def nothing_is_of_one_machine(nb: Any) -> Found:
    for cell in nb.cells:
        for said in (cell.source, *shown(cell)):
            if found := MACHINE.search(said):
                yield f"cell {cell.id} has the path {said[found.start() : found.end() + 30]!r}"


def shown(cell: Cell) -> Iterator[str]:
    """What a reader sees of a cell's outputs, but for pixels."""
    for out in cell.get("outputs", ()):
        yield out.get("text", "")
        yield re.sub(r"\x1b\[[\d;]*m", "", "\n".join(out.get("traceback", ())))
        yield from (str(x) for kind, x in out.get("data", {}).items() if kind != "image/png")


def it_uses_public_names(nb: Any) -> Found:
    lines = (line for cell in code(nb) for line in f"{cell.source}\n".splitlines())
    tree = ast.parse("\n".join(line for line in lines if not re.match(r"\s*[%!]", line)))
    for node in ast.walk(tree):
        yield from (f"{name} is private" for name in used(node) if not is_public(name))


def used(node: ast.AST) -> Iterator[str]:
    """The dotted names that an import or an attribute uses."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Attribute) and (owner := ast.unparse(node.value)) not in OWN:
        dotted = f"{owner}.{node.attr}" if re.fullmatch(r"[\w.]+", owner) else node.attr
        yield re.sub(r"^jv\b", "jaxvars", dotted)


def is_public(dotted: str) -> bool:
    """Whether no part of a name is private, and those that begin at jaxvars are listed there."""
    first, *rest = dotted.split(".")
    if any(re.match(r"_(?!_)", part) for part in (first, *rest)):
        return False
    owner: Any = jv if first == "jaxvars" else None
    for part in rest:
        if not isinstance(owner, ModuleType):
            return True
        if part not in dir(owner) and dotted[:10] != "jaxvars.tf":  # which is not listed
            return part.startswith("__") or not is_there(owner, part)
        owner = getattr(owner, part)
    return True


def is_there(module: ModuleType, name: str) -> bool:
    """Whether a module has a name: one that it has not got may be shown as a mistake."""
    if name in vars(module):
        return True
    return hasattr(module, "__path__") and find_spec(f"{module.__name__}.{name}") is not None


def it_is_small(nb: Any) -> Found:
    size = len(nbformat.writes(nb).encode()) / 1024
    if size > MOST_KIB:
        yield f"it has {size:.0f} KiB, more than {MOST_KIB}"


CHECKS: dict[str, Callable[[Any], Found]] = {
    check.__name__: check
    for check in (
        the_first_cell_says_what_it_is_about, the_second_cell_installs,
        exercises_have_folded_solutions, the_last_cell_leads_on, links_lead_somewhere,
        it_was_run_from_the_top, nothing_is_of_one_machine, it_uses_public_names, it_is_small,
    )
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS + KOREAN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_notebook_has_the_form(path: Path) -> None:
    nb = nbformat.read(path, as_version=4)
    nbformat.validate(nb)
    assert [wrong for check in CHECKS.values() for wrong in check(nb)] == []


def test_the_names_are_numbered_from_one() -> None:
    numbers = [int(path.stem.partition("_")[0]) for path in PATHS]
    assert numbers == list(range(1, len(PATHS) + 1))


# ---------------------------------------------------------------- each check sees what is wrong
def _set(index: int, source: str, **more: Any) -> Callable[[Any], None]:
    def change(nb: Any) -> None:
        nb.cells[index].update(source=source, **more)

    return change


def _say(text: str) -> Callable[[Any], None]:
    def change(nb: Any) -> None:
        code(nb)[1].outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]

    return change


def _swap(nb: Any) -> None:
    first, second = code(nb)[:2]
    first.execution_count, second.execution_count = 2, 1


def _raise(nb: Any) -> None:
    code(nb)[1].outputs = [nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])]


def _unfold(nb: Any) -> None:
    next(cell for cell in code(nb) if "solution" in tags(cell)).metadata.pop("jupyter")


def _drop_solutions(nb: Any) -> None:
    nb.cells = [cell for cell in nb.cells if "solution" not in tags(cell)]


BROKEN: list[tuple[str, Callable[[Any], None], str]] = [
    ("the_first_cell_says_what_it_is_about", _set(0, "Variables"), "does not begin with a title"),
    ("the_first_cell_says_what_it_is_about", _set(0, "# T\n\nTwo."), "0 bullets"),
    ("the_second_cell_installs", _set(1, "import jax"), "not the one that installs"),
    ("exercises_have_folded_solutions", _unfold, "is not folded"),
    ("exercises_have_folded_solutions", _drop_solutions, "0 solutions"),
    ("the_last_cell_leads_on", _set(-1, "Bye"), "not '## Next'"),
    ("links_lead_somewhere", _set(-1, "## Next\n\n- [a](none.ipynb)"), "there is no none.ipynb"),
    ("it_was_run_from_the_top", _swap, "not run once each, in order"),
    ("it_was_run_from_the_top", _raise, r"raised \['E'\]"),
    ("nothing_is_of_one_machine", _say("saved to /tmp/x/y"), "has the path '/tmp/x/y'"),
    ("it_uses_public_names", _set(1, "from jaxvars.core import cells"), "jaxvars.core.cells"),
    ("it_uses_public_names", _set(1, "import jaxvars.demo.train"), "jaxvars.demo.train"),
    ("it_uses_public_names", _set(1, "jv.core.cells.NAMES"), "jaxvars.core.cells.NAMES"),
    ("it_uses_public_names", _set(1, "jv.errors.user_line()"), "jaxvars.errors.user_line"),
    ("it_uses_public_names", _set(1, "f(x)[0]._cell"), "_cell is private"),
    ("it_is_small", _say("x" * 2**18), "more than 200"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "break_it", "said"), BROKEN)
def test_what_lacks_the_form_is_found(
    check: str, break_it: Callable[[Any], None], said: str
) -> None:
    nb = copy.deepcopy(nbformat.read(PATHS[0], as_version=4))
    break_it(nb)
    assert re.search(said, "\n".join(CHECKS[check](nb)))


# ---------------------------------------------------------------- what is printed
def _cell(text: str, **data: str) -> Cell:
    outputs = [nbformat.v4.new_output("stream", text=text)]
    outputs += [nbformat.v4.new_output("display_data", data=data)] if data else []
    return nbformat.v4.new_code_cell("x", outputs=outputs)


@pytest.mark.parametrize(("saved", "made", "differs"), [
    (_cell("loss 0.5, 12.1 us"), _cell("loss  0.25, 9 ms"), False),
    (_cell("<Net object at 0x7f2a>"), _cell("<Net object at 0xa1>"), False),
    (_cell("", **{"image/png": "a", "text/plain": "<Figure>"}), _cell(""), False),
    (_cell("tf.ragged is not there"), _cell("tf.raw_ops is not there"), True),
    (_cell("v"), _cell("v\nStaleReadWarning"), True),
    (_cell("", **{"text/html": "<b>1</b>"}), _cell("", **{"text/html": "<i>1</i>"}), True),
])  # fmt: skip
def test_what_a_cell_prints_is_compared_by_its_words(
    saved: Cell, made: Cell, differs: bool
) -> None:
    from notebooks.conftest import differences

    old, new = (nbformat.v4.new_notebook(cells=[cell]) for cell in (saved, made))
    made.id = saved.id
    assert bool([*differences(old, new)]) is differs

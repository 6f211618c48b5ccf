"""A Korean notebook is the English one: the same cells and outputs, with Korean Markdown.

Its form is tested with that of the others, in test_notebooks.py.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from test_notebooks import FOLDER, KOREAN, Cell, Found, code, markdown
from test_readme import blocks, links

NAMES = {path.name for path in KOREAN}
SHOWS_A_MESSAGE = re.compile(r"as error:|caught\[0\]|^@attempt$|^attempt\(", re.M)
GLOSS = re.compile(r"> \*\*(오류|경고|설명|안내) 메시지:\*\* .*[가-힣]")


def pairs(en: Any, ko: Any) -> list[tuple[Cell, Cell]]:
    """The Markdown cells, side by side."""
    return list(zip(markdown(en), markdown(ko), strict=False))


def headings(source: str) -> list[str]:
    return re.findall(r"(?m)^#+(?= )", re.sub(r"(?s)```.*?```", "", source))


# ---------------------------------------------------------------- what is checked
def the_cells_are_as_many_and_in_order(en: Any, ko: Any) -> Found:
    kinds = [[(cell.cell_type, cell.id) for cell in nb.cells] for nb in (en, ko)]
    if kinds[0] != kinds[1]:
        yield "the cells, or their ids, are not those of the English notebook"


def the_code_is_the_same(en: Any, ko: Any) -> Found:
    for a, b in zip(code(en), code(ko), strict=False):
        if (a.source, a.metadata) != (b.source, b.metadata):
            yield f"cell {b.id} is not that of the English notebook"
        elif a != b:
            yield f"the output of {b.id} is not that of the English notebook: copy it from there"


def the_markdown_is_korean(en: Any, ko: Any) -> Found:
    yield from (
        f"{b.id} is not in Korean" for b in markdown(ko) if not re.search("[가-힣]", b.source)
    )


def headings_and_programs_are_the_same(en: Any, ko: Any) -> Found:
    for a, b in pairs(en, ko):
        if headings(a.source) != headings(b.source):
            yield f"{b.id} has other headings than the English cell"
        if [block.text for block in blocks(a.source)] != [block.text for block in blocks(b.source)]:
            yield f"{b.id} has another program than the English cell"


def links_lead_to_korean_notebooks(en: Any, ko: Any) -> Found:
    for a, b in pairs(en, ko):
        expected = [path if path in NAMES else f"../{path}" for path in links(a.source)]
        if sorted(expected) != links(b.source):
            yield f"{b.id} should link to {sorted(expected)}"


def messages_have_a_gloss(en: Any, ko: Any) -> Found:
    shown = ""  # the cell whose message the next Markdown cell explains
    for cell in ko.cells:
        if cell.cell_type == "code":
            has_message = cell.outputs and SHOWS_A_MESSAGE.search(cell.source)
            is_error = any(out.output_type == "error" for out in cell.outputs)
            shown = cell.id if has_message or is_error else shown
        else:
            if shown and not GLOSS.match(cell.source):
                yield f"{cell.id} does not begin with the meaning of the message of {shown}"
            shown = ""


def glosses_are_of_what_is_printed(en: Any, ko: Any) -> Found:
    """What a gloss quotes as code is in the cells since the last one, or in what they print."""
    above = ""
    for cell in ko.cells:
        if cell.cell_type == "code":
            above += _bare(cell.source + str(cell.outputs))
        elif gloss := re.match(r"> \*\*\w+ 메시지:.*\n(?:>.*\n?)*", cell.source + "\n"):
            quoted = re.findall(r"`([^`]+)`", gloss[0].replace("\n>", ""))
            yield from (f"{cell.id} quotes {x!r}" for x in quoted if _bare(x) not in above)
            above = ""


def _bare(text: str) -> str:
    return re.sub(r"""\\n|\\x1b\[[\d;]*m|[\s'"`\\]""", "", text)


CHECKS: dict[str, Callable[[Any, Any], Found]] = {
    check.__name__: check
    for check in (
        the_cells_are_as_many_and_in_order, the_code_is_the_same, the_markdown_is_korean,
        headings_and_programs_are_the_same, links_lead_to_korean_notebooks, messages_have_a_gloss,
        glosses_are_of_what_is_printed,
    )
}  # fmt: skip


def read(path: Path) -> tuple[Any, Any]:
    english = nbformat.read(FOLDER / path.name, as_version=4)
    return english, nbformat.read(path, as_version=4)


@pytest.mark.parametrize("path", KOREAN, ids=lambda path: path.stem)
def test_a_korean_notebook_is_the_english_one(path: Path) -> None:
    both = read(path)
    assert [wrong for check in CHECKS.values() for wrong in check(*both)] == []


def test_the_contents_list_every_notebook() -> None:
    listed = links((FOLDER / "ko" / "README.md").read_text(encoding="utf-8"))
    english = {f"../{path.name}" for path in FOLDER.glob("*.ipynb") if path.name not in NAMES}
    assert {path for path in listed if path.endswith(".ipynb")} == NAMES | english


# ---------------------------------------------------------------- each check sees what is wrong
def _say(index: int, source: str) -> Callable[[Any], None]:
    def change(nb: Any) -> None:
        nb.cells[index].source = source

    return change


def _drop_glosses(nb: Any) -> None:
    for cell in markdown(nb):
        cell.source = cell.source.replace("메시지", "")


def _quote(nb: Any) -> None:
    gloss = next(cell for cell in markdown(nb) if GLOSS.match(cell.source))
    gloss.source = gloss.source.replace("메시지:**", "메시지:** `x.other`", 1)


def _print(nb: Any) -> None:
    code(nb)[2].outputs = []


BROKEN: list[tuple[str, Callable[[Any], None], str]] = [
    ("the_cells_are_as_many_and_in_order", lambda nb: nb.cells.pop(4), "not those of the English"),
    ("the_code_is_the_same", _say(1, "x = 1"), "not that of the English"),
    ("the_code_is_the_same", _print, "copy it from there"),
    ("the_markdown_is_korean", _say(0, "# Variables"), "not in Korean"),
    ("headings_and_programs_are_the_same", _say(0, "## 변수"), "other headings"),
    ("headings_and_programs_are_the_same", _say(-1, "## 다음\n```\nx\n```"), "another program"),
    ("links_lead_to_korean_notebooks", _say(-1, "## 다음"), "should link to"),
    ("glosses_are_of_what_is_printed", _quote, "quotes 'x.other'"),
    ("messages_have_a_gloss", _drop_glosses, "the meaning of the message"),
]


@pytest.mark.parametrize(("check", "break_it", "said"), BROKEN)
def test_what_differs_is_found(check: str, break_it: Callable[[Any], None], said: str) -> None:
    english, korean = read(KOREAN[0])
    korean = copy.deepcopy(korean)
    break_it(korean)
    assert re.search(said, "\n".join(CHECKS[check](english, korean)))

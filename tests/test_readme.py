"""The Python of the README and of the pages it links runs as written, and its commands exist.

A block that cannot run here stands under a comment that says why: `<!-- no-run: reason -->`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
PAGES = [README, *sorted((README.parent / "notebooks").rglob("*.md"))]
MOST_LINES = 160

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```", re.M | re.S
)
_NO_RUN = re.compile(r"<!--\s*no-run:\s*(?P<reason>\S.*?)-->\s*\Z", re.S)
_LINK = re.compile(r"\]\((?!\w+:|#)(?P<path>[^)#\s]+)")
_SHELLS = {"bash", "console", "sh", "shell"}
_PROGRAM = ["python", "-m", "jaxvars"]


class Block(NamedTuple):
    """A fenced block: its language, its text, the line it starts on, whether it is to be run."""

    language: str
    text: str
    line: int
    run: bool


def blocks(markdown: str) -> list[Block]:
    return [
        Block(
            match["language"],
            match["body"],
            markdown.count("\n", 0, match.start("body")) + 1,
            _NO_RUN.search(markdown[: match.start()]) is None,
        )
        for match in _FENCE.finditer(markdown)
    ]


def run_python_blocks(markdown: str, filename: str) -> dict[str, Any]:
    """Run the Python blocks in one namespace; a traceback shows the file's own lines."""
    namespace: dict[str, Any] = {"__name__": "readme"}
    for block in blocks(markdown):
        if block.language == "python" and block.run:
            padded = "\n" * (block.line - 1) + block.text
            exec(compile(padded, filename, "exec"), namespace)
    return namespace


def commands(markdown: str) -> list[list[str]]:
    """The README's shell commands, one list of words each, split at `&&`."""
    lines = [
        line.strip().removeprefix("$ ")
        for block in blocks(markdown)
        if block.language in _SHELLS
        for line in block.text.splitlines()
    ]
    inline = re.findall(r"`(python -m jaxvars[^`]*)`", _FENCE.sub("", markdown))
    parts = [part for line in (*lines, *inline) for part in line.split("&&")]
    return [words for part in parts if (words := shlex.split(part, comments=True))]


def links(markdown: str) -> list[str]:
    """The relative paths that a page links to."""
    return sorted({match["path"] for match in _LINK.finditer(_FENCE.sub("", markdown))})


@pytest.fixture(scope="module")
def readme() -> str:
    return README.read_text(encoding="utf-8")


@pytest.fixture(params=PAGES, ids=lambda path: path.stem)
def page(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_python_blocks_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_python_blocks(page.read_text(encoding="utf-8"), str(page))


def test_the_readme_is_read_in_one_go(readme: str) -> None:
    assert len(readme.splitlines()) <= MOST_LINES
    assert any(block.language == "python" and block.run for block in blocks(readme))


def test_the_two_commands_of_a_newcomer_are_there(readme: str) -> None:
    shell = "".join(block.text for block in blocks(readme) if block.language in _SHELLS)
    assert "pip install . && python -m jaxvars" in shell
    assert 'pip install ".[test]" && pytest' in shell


def test_every_option_in_a_command_exists(
    readme: str, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    ours = [words for words in commands(readme) if words[:3] == _PROGRAM]
    assert ours
    shown = run_python("-m", "jaxvars", "--help")
    assert shown.returncode == 0, shown.stderr
    known = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", shown.stdout))
    used = {word.partition("=")[0] for words in ours for word in words[3:] if word[0] == "-"}
    assert used <= known


def test_links_into_the_project_lead_somewhere(page: Path) -> None:
    paths = links(page.read_text(encoding="utf-8"))
    assert [path for path in paths if not (page.parent / path).exists()] == []


# The extraction itself, shown small pages.

PAGE = """\
Text.

```python
x = 1
```

<!-- no-run: needs eight machines -->
```python
x = 99
```

```python
y = x + 1
```

```bash
$ pip install . && python -m jaxvars --save "a b.png"  # draws
```
Then `python -m jaxvars --quick`.
"""


def test_blocks_share_a_namespace_and_marked_ones_are_skipped() -> None:
    namespace = run_python_blocks(PAGE, "page.md")
    assert (namespace["x"], namespace["y"]) == (1, 2)


def test_a_failing_block_names_its_line_in_the_page() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_python_blocks("Text.\n\n```python\n1 / 0\n```\n", "page.md")
    assert (caught.traceback[-1].path, caught.traceback[-1].lineno + 1) == ("page.md", 4)


def test_a_skipped_block_must_say_why() -> None:
    (block,) = blocks("<!-- no-run: -->\n```python\n1 / 0\n```\n")
    assert block.run


def test_commands_are_split_into_words() -> None:
    assert commands(PAGE) == [
        ["pip", "install", "."],
        ["python", "-m", "jaxvars", "--save", "a b.png"],
        ["python", "-m", "jaxvars", "--quick"],
    ]

"""The words of the field, and none of a private dialect, in code, messages and documentation."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

BANNED = {
    r"nobody|somebody|whoever": "the passive voice, or who it is",
    r"anew": "again",
    r"to the bit": "bit for bit, or bitwise identical",
    r"by hand": "manually, or hand-written",
    r"tells? whether": "return whether",
    r"manners": "semantics",
    r"open sizes?": "unknown dimension",
    r"of one's own": "custom, or the user's",
}
WRITTEN = (".py", ".md", ".ipynb", ".toml")


@functools.cache
def written() -> dict[Path, str]:
    """The files that people read, with what they say."""
    folders = ("jaxvars", "tests", "notebooks", ".github")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    found += [ROOT / "README.md", ROOT / "pyproject.toml"]
    own = Path(__file__).resolve()
    read = (path for path in found if path.suffix in WRITTEN and path != own)
    return {path: path.read_text(encoding="utf-8") for path in read}


def uses(text: str, banned: str) -> list[int]:
    """The lines that use a banned word, also where it stands at the end of a line and the next."""
    broken = banned.replace(" ", r"[\s#]+")
    spaced = re.compile(rf"\b({broken})\b", re.IGNORECASE)
    return [text[: found.start()].count("\n") + 1 for found in spaced.finditer(text)]


@pytest.mark.parametrize("banned", BANNED)
def test_a_banned_word_is_used_nowhere(banned: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path, text in written().items()
        for line in uses(text, banned)
    ]
    assert found == [], f"instead: {BANNED[banned]}"


def test_a_banned_word_is_seen() -> None:
    assert uses("x\nNobody knows", r"nobody|somebody|whoever") == [2]
    assert uses("equal to\n    # the bit", "to the bit") == [1]
    assert uses("tells   whether", "tells? whether") == [1]
    assert uses("a nobodyish manner", "nobody|manners") == []

"""The figures of `measure_house.py`: each is counted on a small source."""

from __future__ import annotations

import textwrap

import measure_house
from measure_house import CONCERNS, Source, code, mentions, positional_uses, reach, reading_path

SOURCE = textwrap.dedent('''
    """A docstring,
    of two lines."""

    from typing import (
        Any,
        TYPE_CHECKING,
    )

    # a comment
    def f(key: Any) -> Any:  # another
        """Return a part."""
        fork = key[1], key[:-2], self.key[0]
        return key[name], other[1]
''')


def test_code_is_counted_without_docstrings_comments_blanks_and_imports():
    assert [line.split()[0] for line in code(SOURCE)] == ["def", "fork", "return"]
    assert [line.split()[0] for line in code(SOURCE, imports=True)][:2] == ["from", "Any,"]


def test_a_part_of_a_key_by_position_is_seen():
    assert positional_uses(SOURCE) == 3


def test_a_line_that_names_a_concern_is_seen():
    assert mentions(SOURCE, CONCERNS["forked processes"]) == 1
    assert mentions("cell.is_open\nlink.is_open", CONCERNS["unknown dimensions"]) == 1
    assert mentions('"""Display."""\n# display', CONCERNS["display"]) == 0


def test_imports_are_followed_that_run_with_the_module():
    texts = {
        "a/__init__.py": "",
        "a/one.py": "from jaxvars.a import two\nimport os",
        "a/two.py": """
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                import jaxvars.a.typed
            else:
                import jaxvars.three
            def f():
                import jaxvars.late
            """,
        "a/typed.py": "", "three.py": "try:\n    from .a import one\nexcept ImportError: ...",
        "late.py": "",
    }  # fmt: skip
    sources = [Source(path, textwrap.dedent(text)) for path, text in texts.items()]
    found = reach("jaxvars.a.one", {source.module: source for source in sources})
    assert found == {"jaxvars.a", "jaxvars.a.one", "jaxvars.a.two", "jaxvars.three"}


def test_the_reading_path_is_the_first_list():
    page = """
        ## Set up
        1. `no.py`
        ## Find your way
        The core:

        1. The README, then `tests/test_tour.py` (20).
        2. `core/cells.py`,
           `core/store.py`.

        The life of a call:

        1. `other.py`
        """
    assert reading_path(textwrap.dedent(page)) == ["core/cells.py", "core/store.py"]
    own = (measure_house.ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "compiler/function.py" in reading_path(own)


def test_columns_stand_side_by_side():
    name = "code lines in tf"
    lines = measure_house.table({"main": {name: 1234}, "now": {name: None}}).splitlines()
    assert [line.split() for line in lines] == [
        ["main", "now", "aim"],
        [*name.split(), "1,234", "-", "23,000"],
    ]

"""The table of sweeps names tests that there are."""

from __future__ import annotations

import re

from sweeps import ROOT, SWEEPS


def test_each_name_is_that_of_a_test() -> None:
    files = (ROOT / "tests").rglob("test_*.py")
    found = re.findall(r"(?m)^(?:def )?(test_\w+)(?:\(| =)", "".join(f.read_text() for f in files))
    assert {*SWEEPS} - {*found} == set()

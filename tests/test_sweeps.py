"""The table of sweeps names tests that there are."""

from __future__ import annotations

import re

from sweeps import ROOT, SWEEPS


def test_each_name_is_that_of_a_test() -> None:
    for file, names in SWEEPS.items():
        found = re.findall(r"(?m)^(?:def )?(test_\w+)(?:\(| =)", (ROOT / file).read_text())
        assert {*names.split()} - {*found} == set(), file

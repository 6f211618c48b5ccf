"""The table of sweeps names tests that there are."""

from __future__ import annotations

import re

import pytest
from sweeps import ROOT, SWEEPS


@pytest.mark.parametrize("file", SWEEPS)
def test_each_name_is_that_of_a_test(file: str) -> None:
    found = re.findall(
        r"^(?:def )?(test_\w+)(?:\(| =)", (ROOT / file).read_text(), flags=re.MULTILINE
    )
    assert set(SWEEPS[file].split()) <= {*found}

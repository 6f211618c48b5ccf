"""Programs as text: each line prints what TensorFlow prints, or raises what it raises.

The goldens were computed by TensorFlow; see `tests/goldens/make_tf_texts.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import texts

from jaxvars import tf

GOLDENS = Path(__file__).parent.parent / "goldens" / "tf_texts"


@pytest.mark.parametrize("name", texts.NAMES)
def test_each_line_says_what_tensorflow_says(name, recwarn):
    wanted = json.loads((GOLDENS / f"{name}.json").read_text())
    got = texts.run(tf, name)
    assert list(got) == list(wanted), "run make_tf_texts.py"
    assert {line: got[line] for line in got if got[line] != wanted[line]} == {}, name


LONG = {"gan", "gp", "newton", "pinn", "rnn_scan"}  # they compile most


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in texts.SCRIPTS]
)
def test_a_script_prints_what_tensorflow_prints(name):
    wanted = (GOLDENS / f"{name}.out").read_text().splitlines()
    assert texts.printed_by(tf, name) == wanted

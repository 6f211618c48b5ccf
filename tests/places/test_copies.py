"""Two copies of jaxvars in one process, and what is open when the interpreter exits."""

from __future__ import annotations

import pytest

TWICE = """
import sys
from importlib import import_module

def fresh():
    for name in [name for name in sys.modules if name.partition(".")[0] == "jaxvars"]:
        del sys.modules[name]
    return import_module("jaxvars")

first, second = fresh(), fresh()
for old, new in ((first, second), (second, first)):
    v = old.Variable(1.0, name="v")
    for act in (lambda: v * 2.0, lambda: v.assign(2.0)):
        try:
            print(new.compile(act)())
        except Exception as error:
            print(type(error).__name__, error)
    print(float(new.compile(lambda x: x * 2.0)(v)), float(old.compile(lambda: v * 3.0)()))
"""

OPEN = """
import sys
import jaxvars as jv

v = jv.Variable(1.0)
kinds = {
    "tape": jv.GradientTape, "persistent tape": lambda: jv.GradientTape(persistent=True),
    "transaction": jv.transaction, "freeze": lambda: jv.freeze(v),
    "scope": lambda: jv.name_scope("s"), "device": lambda: jv.device("cpu"),
}

def held():
    with kinds[sys.argv[1]]():
        yield v * 2.0

left_open = held()
next(left_open)
"""


def test_a_variable_of_another_copy_is_named_as_such(run_python):
    done = run_python("-W", "ignore", "-c", TWICE)
    *said, last = done.stdout.splitlines()
    assert len(said) == 5, done
    for line in (*said[:2], *said[3:]):
        assert line.startswith("ForeignTransformError Variable 'v' is used at <string>:"), line
        assert "by a function of another copy of jaxvars: it has been imported twice" in line
    assert said[2] == last == "2.0 3.0"


@pytest.mark.parametrize(
    "kind", ["tape", "persistent tape", "transaction", "freeze", "scope", "device"]
)
def test_a_block_that_a_generator_has_open_at_the_end_says_nothing(run_python, kind):
    done = run_python("-W", "ignore", "-c", OPEN, kind)
    assert (done.returncode, done.stderr) == (0, "")

"""`tracing/around.py`: what stands around code while it is traced or recorded."""

from __future__ import annotations

import contextlib
from typing import ClassVar

import pytest
from interrupts import sweep

import jaxvars as jv
from jaxvars.autodiff import tape_base
from jaxvars.core import staging as _staging
from jaxvars.tracing import around as _around
from jaxvars.tracing.around import AROUND, around


def test_contexts_are_made_anew_and_left_in_reverse(monkeypatch):
    seen = []

    @contextlib.contextmanager
    def note(name):
        seen.append(f"in {name}")
        try:
            yield
        finally:
            seen.append(f"out {name}")

    makers = [lambda: note("a"), lambda: note("b")]
    with contextlib.suppress(ZeroDivisionError):
        around(makers, lambda: 1 / 0)
    assert around(makers, lambda: 1) == 1
    assert seen == ["in a", "in b", "out b", "out a"] * 2


class Switch:
    """A context that keeps the rule of `tracing/around.py`."""

    entered: ClassVar[set[object]] = set()

    def __enter__(self):
        self.entered.add(self)

    def __exit__(self, *error):
        self.entered.discard(self)


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"  # a generator is interrupted as it is closed
)
@pytest.mark.parametrize("which", ["AROUND", "RECORDING"])
def test_what_is_entered_is_left_wherever_it_is_interrupted(monkeypatch, which):
    monkeypatch.setattr(_around, which, [Switch, Switch])
    for module in (_staging, tape_base):
        if hasattr(module, which):
            monkeypatch.setattr(module, which, [Switch, Switch])
    v = jv.Variable(1.0)

    def act():
        with jv.GradientTape() as tape:
            y = jv.compile(lambda: v * 2.0)()
        tape.gradient(y, v)

    def check():
        assert not Switch.entered

    assert sweep(check, act, check, count=40, among="jaxvars") >= 40


def test_the_check_of_numerics_is_one():
    import jaxvars.debugging.watchers

    assert jaxvars.debugging.watchers._enter_around in AROUND

"""`_around.py`: what stands around code while it is traced."""

from __future__ import annotations

import contextlib

from jaxvars._around import AROUND, around


def test_contexts_are_made_anew_and_left_in_reverse(monkeypatch):
    seen = []

    @contextlib.contextmanager
    def note(name):
        seen.append(f"in {name}")
        try:
            yield
        finally:
            seen.append(f"out {name}")

    monkeypatch.setattr("jaxvars._around.AROUND", [lambda: note("a"), lambda: note("b")])
    with contextlib.suppress(ValueError), around():
        raise ValueError
    with around():
        pass
    assert seen == ["in a", "in b", "out b", "out a"] * 2


def test_the_check_of_numerics_is_one():
    import jaxvars._numerics

    assert jaxvars._numerics._around in AROUND

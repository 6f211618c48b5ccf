"""What the tests of the tape share: ways to run a program, and derivatives of any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jaxvars as jv


def run_eagerly(fn: Callable[[], Any]) -> Any:
    return fn()


def run_compiled(fn: Callable[[], Any]) -> Any:
    return jv.compile(fn)()


both_ways = pytest.mark.parametrize("way", [run_eagerly, run_compiled], ids=["eager", "compiled"])


def derivatives(x: Any, f: Callable[[Any], Any], order: int) -> list[Any]:
    """Return f(x) and its derivatives, by tapes within tapes."""
    if order == 0:
        return [f(x)]
    with jv.GradientTape() as tape:
        if not isinstance(x, jv.Variable):
            tape.watch(x)
        lower = derivatives(x, f, order - 1)
    return [*lower, tape.gradient(lower[-1], x)]

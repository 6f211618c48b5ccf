"""Calls that follow a program, and what else may follow one."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars.console.host_calls import HostCall
from jaxvars.core import staging


def calling(seen: list[Any]) -> Any:
    """A compiled function that has its argument seen, and whether the program waits for it."""

    def run(x: Any, *, in_program: bool) -> None:
        seen.append((float(x), in_program))

    def over_examples(*_: Any) -> None:
        raise NotImplementedError

    @jv.compile
    def step(x: Any) -> Any:
        HostCall("a note", run, [x * 2.0], over_examples).make()
        return x + 1.0

    return step


def test_a_call_follows_the_program() -> None:
    seen: list[Any] = []
    step = calling(seen)
    assert [float(step(1.0)), float(step(2.0))] == [2.0, 3.0]
    assert seen == [(2.0, False), (4.0, False)]


def test_a_program_makes_its_calls_where_nothing_may_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(staging, "AFTER", [])
    seen: list[Any] = []
    step = calling(seen)
    assert float(step(1.0)) == 2.0
    jax.effects_barrier()
    assert seen == [(2.0, True)]


class Doubled:
    """Follows each run with twice what the body has noted."""

    noted: list[Any]
    got: list[Any]

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.names: list[str] = []

    def during(self) -> Any:
        type(self).noted = []
        return nullcontext()

    def take_values(self) -> list[Any]:
        traced = [x * 2 for x in self.noted]
        self.calls = self.names = ["doubled"] * len(traced)
        self.noted.clear()
        return traced

    def run(self, traced: Any) -> None:
        self.got.append([float(x) for x in traced])


def test_what_follows_a_program_gets_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "AFTER", [Doubled])
    Doubled.got = []
    v = jv.Variable(1.0)

    @jv.compile
    def step(x: Any, note: bool) -> Any:
        if note:
            Doubled.noted.extend([x, jnp.sin(x) * 0.0])
        return v.assign_add(x) * 1.0

    assert float(step(1.0, True)) == 2.0
    assert float(step(2.0, True)) == 4.0
    assert float(step(3.0, False)) == 7.0
    assert Doubled.got == [[2.0, 0.0], [4.0, 0.0]]

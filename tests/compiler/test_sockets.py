"""What plugs into the compiler from outside: each socket empty, and with something in it."""

from __future__ import annotations

import copy
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding

import jaxvars as jv
from jaxvars.advice import EXPLANATIONS
from jaxvars.compiler.program import Placement
from jaxvars.compiler.signature import leaf_of
from jaxvars.core.frame import FastPathBlocker
from jaxvars.core.staging import INLINED, Staged
from jaxvars.errors import ControlFlowError, TapeError
from jaxvars.objects.identity import KEY_PARTS, SIZES, KeyPart


@contextmanager
def holding(socket: list[Any], *plugged: Any) -> Generator[None]:
    """Have only this in a socket."""
    before, socket[:] = list(socket), plugged
    try:
        yield
    finally:
        socket[:] = before


# ---------------------------------------------------------------- errors of traced bodies
def choose(x: Any) -> Any:
    return 1.0 if x > 0 else 2.0


def test_an_error_of_a_body_is_what_it_is_where_nothing_explains_it() -> None:
    with pytest.raises(ControlFlowError, match="Python's `if`"):
        jv.compile(choose)(1.0)
    with holding(EXPLANATIONS), pytest.raises(jax.errors.TracerBoolConversionError):
        jv.compile(choose)(1.0)


def test_the_first_explanation_that_raises_is_raised() -> None:
    seen: list[Exception] = []

    def refuse(error: Exception) -> None:
        raise TapeError("clearer") from error

    with holding(EXPLANATIONS, seen.append, refuse, seen.append):
        with pytest.raises(TapeError, match="clearer") as raised:
            jv.compile(choose)(1.0)
        assert float(jv.compile(lambda x: x + 1)(1.0)) == 2.0
    assert [type(x) for x in seen] == [jax.errors.TracerBoolConversionError]
    assert raised.value.__cause__ is seen[0]


# ---------------------------------------------------------------- programs that are inlined
def test_a_program_is_inlined_as_it_is_where_no_pass_changes_it() -> None:
    v = jv.Variable(2.0)
    double = jv.compile(lambda x: v * x)
    with holding(INLINED):
        assert float(jv.compile(lambda x: double(x) + 1)(3.0)) == 7.0


def test_passes_see_a_program_that_is_inlined_once_and_none_that_is_only_run() -> None:
    v, seen = jv.Variable(2.0), list[Staged]()

    def note(staged: Staged) -> Staged:
        seen.append(staged)
        return replace(staged)

    double = jv.compile(lambda x: v * x)
    with holding(INLINED, note):
        assert float(double(3.0)) == 6.0
        assert not seen
        assert jax.grad(double)(3.0) == 2.0
        assert float(jv.compile(lambda x: double(x) + 1)(3.0)) == 7.0
    (staged,) = seen
    assert [cell.name for cell in staged.reads] == [v.name]


# ---------------------------------------------------------------- sizes that are not numbers
def test_a_size_stands_in_a_key_as_its_class_says(monkeypatch: pytest.MonkeyPatch) -> None:
    class Size(int):
        """A size that is not equal to itself, as one that is not known may be."""

        __hash__ = int.__hash__

        def __eq__(self, other: object) -> bool:
            return False

    spec = jax.ShapeDtypeStruct((2,), "float32")
    strange = jax.ShapeDtypeStruct((Size(2),), "float32")
    assert leaf_of(strange) != leaf_of(spec)
    monkeypatch.setitem(SIZES, Size, int)
    assert leaf_of(strange) == leaf_of(spec)


# ---------------------------------------------------------------- placement
def test_without_a_placement_values_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jv.Function, "placement", Placement)
    mesh = jv.mesh({"data": 2}, jax.devices()[:2])
    v = jv.Variable([1.0, 2.0], sharding=NamedSharding(mesh, jax.P("data")))
    w = jv.Variable(1.0)
    step = jv.compile(lambda x: (v * w * x).sum(), in_shardings=0)  # of which nothing is known
    assert [float(step(1.0)), float(step(jnp.ones(2)))] == [3.0, 3.0]
    assert w.sharding.device_set == {jax.devices()[0]}
    monkeypatch.undo()
    assert float(jv.compile(lambda x: (v * w * x).sum())(1.0)) == 3.0
    assert w.sharding.device_set == set(jax.devices()[:2])


def test_a_placement_is_asked_before_a_program_is_compiled_and_off_the_fast_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log: list[str] = []

    class Noted(Placement):
        @staticmethod
        def check(given: Any, names: Any, function: str) -> None:
            log.append(f"check {given} of {list(names)}")

        def for_jit(self, staged: Any, inputs: Any, outputs: Any) -> Any:
            log.append(f"for jit {len(inputs)}, {[cell.name for cell in outputs]}")
            return super().for_jit(staged, inputs, outputs)

        def arrange(self, cells: Any, leaves: Any) -> Any:
            log.append(f"arrange {[cell.name for cell in cells]}, {leaves}")
            return []  # so that it is compiled again

        def put(self, leaves: Any) -> Any:
            log.append("put")
            return [x + 1 for x in leaves]

        def constrain(self, cells: Any, leaves: Any) -> Any:
            log.append("constrain")
            return [x + 2 for x in leaves]

    def taken() -> list[str]:
        found, log[:] = list(log), []
        return found

    monkeypatch.setattr(jv.Function, "placement", Noted)
    v, w = jv.Variable(0.0, name="v"), jv.Variable(1.0, name="w")

    @jv.compile(in_shardings="any")
    def step(x: Any) -> Any:
        return v.assign_add(w * x)

    assert float(step(1.0)) == 2.0
    made = "for jit 2, ['v']"
    assert taken() == ["check any of ['x']", made, "arrange ['v', 'w'], (1.0,)", made, "put"]
    assert float(step(1.0)) == 4.0  # when the values come from the store
    assert taken() == ["put"]
    assert float(step(1.0)) == 5.0  # on the fast path
    assert taken() == []
    assert float(jv.compile(lambda: step(1.0))()) == 8.0
    assert taken()[:3] == ["check None of []", "constrain", made]


# ---------------------------------------------------------------- keys
def test_a_program_is_known_by_the_settings_that_plug_in() -> None:
    now, total = [0], jv.Variable(0.0)
    step = jv.compile(lambda x: total.assign_add(x + now[0]))
    part = KeyPart(lambda: now[0], lambda value: f"the setting is {value}")
    with holding(KEY_PARTS):
        assert [float(step(1.0)) for _ in range(3)] == [1.0, 2.0, 3.0]
    with holding(KEY_PARTS, part):
        blocker = FastPathBlocker()
        blocker.begin()
        for now[0] in (0, 10, 0, 10):
            step(1.0)
        blocker.end()
    assert float(total) == 3.0 + 1.0 + 11.0 + 1.0 + 11.0
    assert step.traces.column("why")[2:] == ["the setting is 10"]
    with holding(KEY_PARTS, part):
        now[0] = 10
        step._slow_call(1.0)  # of which no fast path is made
        now[0] = 0
        step(1.0)
    assert float(total) == 27.0 + 11.0 + 1.0
    assert step.trace_count == 3


def test_a_guard_stands_after_the_body() -> None:
    seen: list[tuple[str, str]] = []
    options: Any = {"static_argnames": (), "donate": "auto", "input_signature": None}
    step = jv.Function(
        choose_none, **options, in_shardings=None, guard=lambda *about: seen.append(about)
    )
    assert float(step(2.0)) == 2.0
    assert float(copy.deepcopy(step)(2.0)) == 2.0
    (name, line), again = seen
    assert (name, again) == ("choose_none", (name, line))
    assert line.startswith("test_sockets.py:")


def choose_none(x: Any) -> Any:
    return x

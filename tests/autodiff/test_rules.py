"""Where rules plug into a tape: what one does, and what holds without any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars.autodiff import rules
from jaxvars.errors import GradientWarning, TapeError

X, Y = jnp.asarray(2.0), jnp.asarray(3.0)


def gradients_of_first(fn: Any) -> list[Any]:
    """The gradients of the first result of a function of X and Y, by both."""
    with jv.GradientTape() as tape:
        tape.watch([X, Y])
        first, _ = fn(X, Y)
    return tape.gradient(first, [X, Y])


def new_pair() -> Any:
    """A new function with two results, each of one argument, of which nothing is known."""
    return jax.jit(lambda x, y: (x * 2.0, y * 3.0))


def test_by_default_each_result_depends_on_all_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gradients_of_first(new_pair()) == [2.0, None]
    monkeypatch.setattr(rules, "PATHS", {})
    assert gradients_of_first(new_pair()) == [2.0, 0.0]


def test_a_rule_says_what_depends_on_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rules.PATHS, "jit", lambda params, given, count, through: [given[1]] * 2)
    assert gradients_of_first(new_pair()) == [None, 0.0]


class Tripled:
    """Says that what runs in a compiled function is three times what it is."""

    def __init__(self, *, reverse: bool, through_assigns: bool) -> None:
        self.options = reverse, through_assigns

    def __call__(self, equation: Any, active: dict[int, Any], staged: bool) -> Any:
        if equation.name != "sin":
            return None
        assert staged
        assert self.options == (True, False)
        assert id(equation.inputs[0]) in active

        def again(outputs: Sequence[Any], x: Any) -> list[Any]:
            return [outputs[0] + 3.0 * (x - jax.lax.stop_gradient(x))]

        return [equation.inputs[0] * 3.0], again


def slope_of_sine(x: Any) -> tuple[Any, Any]:
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = jax.lax.sin(x) * 1.0
    return y, tape.gradient(y, x)


def test_a_rule_runs_an_operation_once_and_does_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "RUN_ONCE", [*rules.RUN_ONCE, Tripled])
    assert jv.compile(slope_of_sine)(X) == (6.0, 3.0)
    assert slope_of_sine(X) == (jnp.sin(X), jnp.cos(X))  # what is not staged may run again


def test_by_default_an_operation_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def looped(x: Any) -> Any:
        with jv.GradientTape() as tape:
            tape.watch(x)
            y = jax.lax.scan(lambda c, _: (c * x, ()), x, length=3)[0]
        return tape.gradient(y, x)

    def count_loops(fn: Any) -> int:
        return str(jax.make_jaxpr(fn)(X)).count("scan[")

    once = count_loops(looped)
    monkeypatch.setattr(rules, "RUN_ONCE", [])
    assert count_loops(lambda x: looped(x)) == once + 1
    assert jv.compile(lambda x: looped(x))(X) == 32.0


def gradient_through_a_loop() -> Any:
    with jv.GradientTape() as tape:
        tape.watch(X)
        y = jax.lax.while_loop(lambda c: c < 10.0, lambda c: c * X, X)
    return tape.gradient(y, X)


def test_a_rule_says_what_an_error_of_jax_means(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TapeError, match="How long it goes on is decided by"):
        gradient_through_a_loop()
    monkeypatch.setattr(rules, "REFUSALS", [lambda error, operations: operations[0].name])
    with pytest.raises(TapeError, match=r"^while"):
        gradient_through_a_loop()


def test_by_default_an_error_of_jax_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "REFUSALS", [])
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work") as caught:
        gradient_through_a_loop()
    assert not isinstance(caught.value, TapeError)


def test_notes_warn_and_without_any_nothing_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def unconnected() -> Any:
        v = jv.Variable(1.0)
        with jv.GradientTape() as tape:
            v.assign(X * 2.0)
        return tape.gradient(X, v)

    with pytest.warns(GradientWarning, match="All gradients are None"):
        assert unconnected() is None
    monkeypatch.setattr(rules, "NOTES", [])
    assert unconnected() is None


def test_gradients_go_through_assigns_without_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "NOTES", [])
    v = jv.Variable(1.0)
    with jv.GradientTape(through_assigns=True) as tape:
        v.assign_add(v * 2.0)
        y = v * 1.0
    assert tape.gradient(y, v) == 3.0


def test_methods_of_a_tape_do_what_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rules.VERBS, "explain", lambda tape, target, source: "because")
    with jv.GradientTape() as tape:
        pass
    assert tape.explain(X, Y) == "because"

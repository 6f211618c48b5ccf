"""What a GradientTape does not connect, and why; reads before and after assigns; aliases."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tape_programs import both_ways

import jaxvars as jv
from jaxvars.errors import GradientWarning

pytestmark = pytest.mark.filterwarnings("ignore:All gradients are None")


def vector() -> jax.Array:
    return jnp.asarray([1.0, -2.0, 3.0])


# ---------------------------------------------------------------- not connected
def test_unconnected_is_none_or_zero() -> None:
    w, other = jv.Variable(3.0), jv.Variable([[1.0, 2.0]])
    with jv.GradientTape(persistent=True) as tape:
        y = w * 2
        _ = other * 2
    assert tape.gradient(y, other) is None
    assert tape.gradient(y, [w, other]) == [2.0, None]
    grad = tape.gradient(y, other, unconnected_gradients="zero")
    assert (grad.tolist(), grad.dtype) == ([[0.0, 0.0]], jnp.float32)
    assert tape.gradient(y, w, unconnected_gradients="zero") == 2.0


def test_an_unknown_string_for_unconnected_is_refused() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape() as tape:
        y = w * 2
    with pytest.raises(ValueError, match="'zeros' is not a valid UnconnectedGradients"):
        tape.gradient(y, w, unconnected_gradients="zeros")


def test_zero_times_is_connected() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape() as tape:
        y = w * 0.0
    assert tape.gradient(y, w) == 0.0


def unconnected(how: str) -> tuple[jv.GradientTape, Any, Any]:
    """Return a tape, and a target that does not depend on a source."""
    w, b = jv.Variable(3.0, name="w"), jv.Variable(1.0, name="b")
    frozen, count = jv.Variable(2.0, name="frozen", trainable=False), jv.Variable(2, name="count")
    x = jnp.asarray(1.0)
    outside = w * 2
    with jv.GradientTape(persistent=True) as tape:
        y = w * frozen + x
        stopped = jv.stop_gradient(w * 2) * 3
        rounded = jnp.asarray(jnp.round(w.value).astype(jnp.int32), jnp.float32)
        through_numpy = jnp.asarray(np.asarray(w.value) * 2)
        counted = count * 2
    pairs = {
        "frozen": (y, frozen), "unread": (y, b), "unwatched": (y, x), "outside": (outside, w),
        "stopped": (stopped, w), "rounded": (rounded, w), "numpy": (through_numpy, w),
        "integer source": (counted * 1.0, count), "integer target": (counted, w),
        "variable target": (b, w), "frozen target": (frozen, w), "swapped": (w, y),
    }  # fmt: skip
    return tape, *pairs[how]


WHY = {
    "frozen": r"'frozen' is not trainable.*tape\.watch\(frozen\)",
    "unread": "'b' was not read while the tape recorded",
    "unwatched": r"array that the tape does not know: call tape\.watch\(x\) before",
    "outside": "not computed from anything watched.*outside of the `with`",
    "stopped": "not computed from anything watched|stop_gradient",
    "rounded": "not computed from anything watched.*rounded to integers",
    "numpy": "not computed from anything watched.*with NumPy",
    "integer source": "'count' has dtype int32; only floats have gradients",
    "integer target": "target has dtype int32; only floating point",
    "variable target": "No recorded operation leads from the source to the target",
    "frozen target": "target is a variable that was not read",
    "swapped": r"source was computed from the target\. The target comes first",
}


@pytest.mark.parametrize("how", WHY)
def test_none_can_be_explained(how: str) -> None:
    tape, target, source = unconnected(how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GradientWarning)
        assert tape.gradient(target, source) is None
    with pytest.raises(AssertionError, match=WHY[how]):
        raise AssertionError(tape.explain(target, source))


def test_a_connection_is_explained_too_and_explaining_does_not_use_up_the_tape() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape() as tape:
        y = w * 2
    assert tape.explain(y, w) == "The target depends on the source."
    assert tape.gradient(y, w) == 2.0


def test_no_path_between_two_known_values_is_explained() -> None:
    a, b = jv.Variable(2.0), jv.Variable(3.0)
    with jv.GradientTape() as tape:
        y, _ = a * 2, b * 2
    assert "No recorded operation leads from the source to the target" in tape.explain(y, b)


def test_a_number_of_python_is_no_source() -> None:
    w = jv.Variable(2.0)
    with jv.GradientTape(persistent=True) as tape:
        y = w * 3.0
    for ask in (tape.gradient, tape.jacobian, tape.explain):
        with pytest.raises(jv.errors.TapeError, match=r"float \(2\.0\).*x = jnp\.asarray\(x\)"):
            ask(y, 2.0)


def test_integer_sources_are_explained_by_a_warning() -> None:
    count = jv.Variable(3, name="count")
    with jv.GradientTape(persistent=True) as tape:
        y = count * 2.0
    message = "Variable 'count', a source, has dtype int32: only floating point"
    with pytest.warns(GradientWarning, match=message):
        assert tape.gradient(y, count) is None


def test_integer_targets_are_explained_by_a_warning() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape() as tape:
        y = (w * 2).astype(jnp.int32)
    with pytest.warns(GradientWarning, match="A target of the gradient has dtype int32"):
        assert tape.gradient(y, w) is None


# ---------------------------------------------------------------- reads and assigns
@both_ways
def test_what_is_read_after_an_assign_starts_anew(way: Callable[..., Any]) -> None:
    w = jv.Variable(3.0)

    def program() -> Any:
        with jv.GradientTape(persistent=True) as tape:
            before = w * w  # 9, gradient 6
            w.assign(2.0 * w)
            after = w * 1.0
        return before, after, tape.gradient(before, w), tape.gradient(after, w)

    assert way(program) == (9.0, 6.0, 6.0, 1.0)


@both_ways
def test_the_gradient_is_the_sum_over_the_reads(way: Callable[..., Any]) -> None:
    w = jv.Variable(3.0)

    def program() -> Any:
        with jv.GradientTape() as tape:
            y = w * 10.0
            w.assign_add(1.0)
            y = y + w * w
        return tape.gradient(y, w)

    assert way(program) == 10.0 + 2 * 4.0


@both_ways
def test_slice_and_scatter_assigns_are_not_differentiated(way: Callable[..., Any]) -> None:
    a, b = jv.Variable(3.0), jv.Variable(vector())

    def program() -> Any:
        with jv.GradientTape() as tape:
            b[0].assign(a * 5.0)
            b[1].assign_add(a * 1.0)
            y = b * 2.0
        return tape.gradient(y, [a, b])

    da, db = way(program)
    assert da is None
    assert db.tolist() == [2.0, 2.0, 2.0]


def test_two_variables_with_one_array_have_separate_gradients() -> None:
    x, a, b = jnp.asarray(2.0), jv.Variable(0.0), jv.Variable(0.0)
    a.assign(x)
    b.assign(x)
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = 2.0 * a + 3.0 * b + 5.0 * x
    assert tape.gradient(y, [a, b, x]) == [2.0, 3.0, 5.0]


@pytest.mark.parametrize("order", ["watch first", "read first"])
def test_watching_the_array_that_a_variable_holds_is_not_watching_the_variable(order: str) -> None:
    x, a = jnp.asarray(2.0), jv.Variable(0.0, trainable=False)
    a.assign(x)
    with jv.GradientTape() as tape:
        y = a * 1.0 if order == "read first" else 0.0
        tape.watch(x)
        y = y + a * 3.0
    assert tape.gradient(y, x) is None
    assert "not computed from anything watched" in tape.explain(y, x)


def test_assigning_a_recorded_value_makes_no_connection() -> None:
    w, a = jv.Variable(2.0), jv.Variable(0.0)
    with jv.GradientTape(persistent=True) as tape:
        h = w * 3.0
        a.assign(h)
        y = a * 5.0
    assert tape.gradient(y, w) is None
    assert tape.gradient(y, h) is None
    assert tape.gradient(y, a) == 5.0
    assert tape.gradient(h, w) == 3.0


def test_operations_that_change_nothing_are_not_an_alias() -> None:
    w = jv.Variable(vector())
    with jv.GradientTape(persistent=True) as tape:
        h = w * 1.0
        same = jax.jit(lambda x: x)(h).reshape(3).astype(jnp.float32)
        y = same * 2.0 + h * 3.0
    assert tape.gradient(y, h).tolist() == [5.0, 5.0, 5.0]
    assert tape.gradient(y, w).tolist() == [5.0, 5.0, 5.0]


def test_equal_constants_are_not_sources() -> None:
    one, other = jnp.asarray(1.0), jnp.asarray(1.0)
    with jv.GradientTape() as tape:
        tape.watch(one)
        y = one * 2.0 + other * 3.0
    assert tape.gradient(y, one) == 2.0

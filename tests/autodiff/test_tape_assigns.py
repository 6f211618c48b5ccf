"""Tapes and assigns: what stops there says so, and `through_assigns=True` goes on.

A program makes its variables and returns a function, its arguments, the variables, and the names
of those to differentiate by. What is right is `jax.grad` of the pure function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.errors import GradientWarning


class Program(NamedTuple):
    run: Callable[..., Any]
    args: tuple[Any, ...]
    variables: dict[str, Any]
    sources: str


def pendulum(loop: Callable[[Callable[[], None]], None]) -> Program:
    position, speed, pull = jv.Variable(1.0), jv.Variable(0.5), jv.Variable(2.0)

    def run(dt: Any) -> Any:
        def step() -> None:
            speed.assign_sub(pull * jnp.sin(position) * dt)
            position.assign(position + speed * dt)

        loop(step)
        return position.value**2

    return Program(run, (0.1,), {"p": position, "s": speed, "k": pull}, "psk")


def simulation() -> Program:
    def loop(step: Callable[[], None]) -> None:
        for _ in range(3):
            step()

    return pendulum(loop)


def simulation_in_a_scan() -> Program:
    return pendulum(lambda step: jv.scan(lambda _, i: (step(), i), None, jnp.arange(3)))


def simulation_in_a_while_loop() -> Program:
    def loop(step: Callable[[], None]) -> None:
        def body(i: Any) -> Any:
            step()
            return i + 1

        jv.while_loop(lambda i: i < 3, body, 0, max_iterations=4)

    return pendulum(loop)


def branches_in_nested_loops() -> Program:
    a, b = jv.Variable(0.5), jv.Variable(0.3)

    def outer(_: Any, y: Any) -> Any:
        def inner(i: Any, c: Any) -> Any:
            a.assign(a * b + y * c)
            return c + a

        z = jv.fori_loop(0, 2, inner, 0.1)
        b.assign_add(0.1 * z)
        jv.cond(a > 0.1, lambda: a.assign_sub(b).value, lambda: a.assign_add(b).value)
        return None, z

    def run(xs: Any) -> Any:
        return jv.scan(outer, None, xs)[1].sum() + a + b

    return Program(run, (jnp.array([0.1, 0.2]),), {"a": a, "b": b}, "ab")


def unrolled_optimizer() -> Program:
    w, rate = jv.Variable([1.0, -2.0]), jv.Variable(0.1)
    momentum = jv.Variable(jnp.zeros(2), trainable=False)

    def run(x: Any) -> Any:
        for _ in range(2):
            with jv.GradientTape() as tape:
                loss = jnp.sum((w - x) ** 2 * jnp.sin(w))
            momentum.assign(0.9 * momentum + tape.gradient(loss, w))
            w.assign_sub(rate * momentum)
        return jnp.sum(w**2)

    return Program(run, (jnp.array([0.3, 0.4]),), {"w": w, "r": rate, "m": momentum}, "wr")


def unrolled_adam() -> Program:
    w, adam = jv.Variable([1.0, -2.0]), jv.optimizers.Adam(0.1)
    adam.build([w])

    def run(x: Any) -> Any:
        for _ in range(2):
            with jv.GradientTape() as tape:
                loss = jnp.sum((w - x) ** 4)
            adam.apply_gradients([(tape.gradient(loss, w), w)])
        return jnp.sum(w**2)

    return Program(run, (jnp.array([0.3, 0.4]),), {"w": w, "adam": adam}, "w")


def parts_of_a_variable() -> Program:
    a, b = jv.Variable(jnp.arange(4.0)), jv.Variable(3.0)

    def run(x: Any) -> Any:
        a[1].assign(b * x)
        a[2].assign_add(a[1] * a[0])
        a[3].assign_add(b)
        return jnp.sum(a**2)

    return Program(run, (0.5,), {"a": a, "b": b}, "ab")


def nested_compiled_functions() -> Program:
    a, b = jv.Variable(2.0), jv.Variable(3.0)

    @jv.compile
    def inner(x: Any) -> Any:
        a.assign(jv.recompute(lambda x: jnp.sin(a * x) * b)(x))
        return a * x

    def run(x: Any) -> Any:
        b.assign(inner(x) + b)
        return inner(x) * b

    return Program(run, (0.5,), {"a": a, "b": b}, "ab")


def swapped_and_assigned_to_itself() -> Program:
    a, b = jv.Variable(2.0), jv.Variable(3.0)

    def run(x: Any) -> Any:
        old = a.value
        a.assign(b)
        b.assign(old)
        a.assign(a)
        return a * 10 + b * b * x

    return Program(run, (0.5,), {"a": a, "b": b}, "ab")


PROGRAMS = [
    simulation, simulation_in_a_scan, simulation_in_a_while_loop, branches_in_nested_loops,
    unrolled_optimizer, unrolled_adam, parts_of_a_variable, nested_compiled_functions,
    swapped_and_assigned_to_itself,
]  # fmt: skip


def taped(run: Callable[..., Any], sources: list[Any]) -> Callable[..., Any]:
    def gradients(*args: Any) -> Any:
        with jv.GradientTape(through_assigns=True) as tape:
            loss = run(*args)
        return tape.gradient(loss, sources)

    return gradients


WAYS: dict[str, Callable[..., Any]] = {
    "eager": taped,
    "inside": lambda run, sources: jv.compile(taped(run, sources)),
    "around": lambda run, sources: taped(jv.compile(run), sources),
    "both": lambda run, sources: jv.compile(taped(jv.compile(run), sources)),
}


@pytest.mark.parametrize(
    "way", ["eager", "inside", "around", pytest.param("both", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("make", PROGRAMS)
def test_through_assigns_is_the_gradient_of_the_pure_function(
    make: Callable[[], Program], way: str
) -> None:
    run, args, variables, names = make()
    state = jv.State.of(variables)
    pure = jv.functionalize(run)
    expected = jax.grad(lambda values: pure(state.replace(values), *args)[0])(
        {name: state[name] for name in names}
    )
    found = WAYS[way](run, [variables[name] for name in names])(*args)
    for name, gradient in zip(names, found, strict=True):
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-5)


def test_through_assigns_again() -> None:
    a, x = jv.Variable(2.0), jnp.asarray(3.0)
    with jv.GradientTape(through_assigns=True) as outer:
        with jv.GradientTape(through_assigns=True) as inner:
            a.assign(a**3)
            y = a**2
        first = inner.gradient(y, a)
    assert (first, outer.gradient(first, a)) == (6 * 2.0**5, 30 * 2.0**4)
    with jv.GradientTape(through_assigns=True, persistent=True) as tape:
        tape.watch(x)
        a.assign(x * x)
        y = a * a
    assert (tape.gradient(y, x), tape.gradient(a, x), tape.jacobian(y, x)) == (108.0, 6.0, 108.0)
    with pytest.warns(GradientWarning, match="was not read while the tape recorded"):
        assert tape.gradient(y, a) is None  # what it held before plays no part


def test_what_was_assigned_before_the_tape_or_while_it_paused_is_a_constant() -> None:
    w, a = jv.Variable(3.0), jv.Variable(1.0, trainable=False)
    with jv.GradientTape(through_assigns=True, persistent=True) as tape:
        value = w * w
        with tape.stop_recording():
            a.assign(value)
        y = a * w
    assert tape.gradient(y, w) == 9.0
    with jv.GradientTape(through_assigns=True) as tape:
        y = a * w
    assert tape.gradient(y, w) == 9.0


# ---------------------------------------------------------------- why there is none
def test_an_assign_is_the_reason() -> None:
    w, h = jv.Variable(2.0, name="w"), jv.Variable(1.0, name="h")
    with jv.GradientTape(persistent=True) as tape:
        h.assign(w * 3.0)
        y = h * h
        h.assign_add(w)
        z = h * 1.0
        h.assign(5.0)
        k = h * 2.0
    first = test_an_assign_is_the_reason.__code__.co_firstlineno
    for target, line in ((y, first + 3), (z, first + 5)):
        said = tape.explain(target, w)
        assert f"'h' held after it was assigned at test_tape_assigns.py:{line}, in test_an" in said
        assert "jv.GradientTape(through_assigns=True)" in said
    assert "assign" not in tape.explain(k, w)


def test_an_assign_to_what_is_not_watched_may_be_the_reason() -> None:
    w, kept = jv.Variable(2.0), jv.Variable(0.0, name="kept", trainable=False)
    with jv.GradientTape(persistent=True) as tape:
        before = kept * 1.0
        kept.assign(w * w * before)
        y = kept * 2.0
    for target in (y, kept):
        assert "Or from 'kept', assigned at test_tape_assigns.py:" in tape.explain(target, w)
    with jv.GradientTape(persistent=True) as tape:
        kept.assign(w * w)
        y = kept * 2.0
    assert "what 'kept' held after it was assigned at test_tape_ass" in tape.explain(y, w)
    assert "Or from 'kept', assigned at test_tape_assigns.py:" in tape.explain(kept, w)


# ---------------------------------------------------------------- what is missing in part
def programs_that_keep(w: Any, kept: Any, other: Any) -> dict[str, Callable[[], Any]]:  # noqa: C901 - of many functions
    table = jv.Variable(jnp.zeros(4), trainable=False, name="kept")

    def added() -> Any:
        kept.assign_add(w * w)
        return w * kept

    def several_added() -> Any:
        kept.assign(0.0)
        kept.assign_add(w * w)
        kept.assign_sub(1.0)
        return w + kept

    def operator() -> Any:
        nonlocal kept
        kept *= w * w
        return w + kept

    def buffer() -> Any:
        table.assign(table.value.at[1].set(w * w))
        return w * table.value.sum()

    def buffer_in_slices() -> Any:
        table.assign(jax.lax.dynamic_update_slice(table.value, (w * w).reshape(1), (1,)))
        return w * table.value.sum()

    def part() -> Any:
        table[1].assign(w * w)
        return w * table.value.sum()

    def row() -> Any:
        table[1].assign_add(w * w)
        return w * table.value.sum()

    def sum_of_losses() -> Any:
        kept.assign(w * w)
        return w * 3.0 + kept

    def twice() -> Any:
        total = w * 1.0
        for i in range(2):
            kept.assign(w * i)
            total = total + jnp.sin(kept)
        return total

    def by_way_of_another() -> Any:
        kept.assign(w * w)
        other.assign(kept + 1.0)
        return w * 3.0 + other

    def in_a_product() -> Any:
        kept.assign(jnp.exp(w))
        return w * kept

    found = (
        added, several_added, operator, buffer, buffer_in_slices, part, row, sum_of_losses, twice,
        by_way_of_another, in_a_product,
    )  # fmt: skip
    return {f.__name__: f for f in found}


def programs_that_go_on(w: Any, kept: Any, other: Any) -> dict[str, Callable[[], Any]]:  # noqa: C901 - of many functions
    count, mean = jv.Variable(0, name="count"), jv.metrics.Mean()
    adam, table = jv.optimizers.Adam(0.1), jv.Variable(jnp.zeros(4), trainable=False)

    def average() -> Any:
        kept.assign(0.9 * kept + 0.1 * w)
        return w / kept

    def statistics_of_two_batches() -> Any:
        total = 0.0
        for x in (1.0, 2.0):
            y = w * x
            total = total + y - jv.stop_gradient(kept)
            kept.assign_add(0.1 * (y - kept))
        return total

    def state_that_begins_anew() -> Any:
        kept.assign(0.0)
        total = 0.0
        for x in (1.0, 2.0):
            kept.assign(jnp.tanh(w * x + kept))
            total = total + kept * w
        return total

    def metrics() -> Any:
        loss = w * w
        mean.update_state(loss)
        count.assign_add(1)
        kept.assign(loss)
        other.assign(mean.result() + kept)
        return loss

    def target_network() -> Any:
        kept.assign(w)
        return (w - kept) * w

    def slow_target_network() -> Any:
        kept.assign(0.9 * kept + 0.1 * w)
        return (w - kept) * w

    def constants() -> Any:
        kept.assign(jv.stop_gradient(w * w))
        other.assign(7.0)
        return w * kept * other

    def weights_that_are_assigned() -> Any:
        w.assign(w / jnp.abs(w))
        return w * 3.0

    def baseline() -> Any:
        loss = w * (w - jv.stop_gradient(kept))
        kept.assign_add(0.1 * (w - kept))
        return loss * kept

    def sum_of_weights() -> Any:
        kept.assign_add(w)
        return (w - kept) * w

    def buffer_of_constants() -> Any:
        table[1].assign(jv.stop_gradient(w * w))
        table.assign(table.value.at[2].set(7.0))
        return w * table.value.sum()

    def buffer_for_later() -> Any:
        loss = w * table.value.sum()
        table[1].assign(w * w)
        return loss

    def optimizer_inside() -> Any:
        with jv.GradientTape() as tape:
            loss = w * w
        adam.apply_gradients([(tape.gradient(loss, w), w)])
        return w * 2.0

    def assigned_last() -> Any:
        loss = w * 3.0 + kept
        kept.assign(w * w)
        return loss

    found = (
        average, statistics_of_two_batches, state_that_begins_anew, metrics, target_network,
        slow_target_network, constants, weights_that_are_assigned, baseline, sum_of_weights,
        buffer_of_constants, buffer_for_later, optimizer_inside, assigned_last,
    )  # fmt: skip
    return {f.__name__: f for f in found}


def variables_to_keep_in() -> tuple[jv.Variable, ...]:
    names = ("w", "kept", "other")
    return tuple(jv.Variable(2.0, name=name, trainable=name == "w") for name in names)


def slope(body: Callable[[], Any], w: Any, **options: Any) -> Any:
    with jv.GradientTape(**options) as tape:
        loss = body()
    return tape.gradient(loss, w)


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile])
@pytest.mark.parametrize("name", programs_that_keep(*variables_to_keep_in()))
def test_a_part_that_is_missing_is_told(name: str, wrap: Any) -> None:
    w, *others = variables_to_keep_in()
    body = programs_that_keep(w, *others)[name]
    which = "other" if name == "by_way_of_another" else "kept"
    message = (
        rf"A part of the gradient is missing: .* from what '({which}|kept)' held after it was "
        rf"assigned at test_tape_assigns.py:\d+, in {name}, .*"
        r"through_assigns=True\) goes .* assign jv.stop_gradient\(value\)"
    )
    with pytest.warns(GradientWarning, match=message) as told:
        found = wrap(lambda: slope(body, w))()
    assert len(told) == 1
    assert found != wrap(lambda: slope(body, w, through_assigns=True))()


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile])
@pytest.mark.parametrize("name", programs_that_go_on(*variables_to_keep_in()))
def test_what_goes_on_from_step_to_step_is_not_told(name: str, wrap: Any) -> None:
    w, *others = variables_to_keep_in()
    body = programs_that_go_on(w, *others)[name]
    step = wrap(lambda: slope(body, w))
    assert [step() is not None for _ in range(2)] == [True] * 2  # without a warning


def test_a_part_that_a_watched_array_has_is_told() -> None:
    x, kept = jnp.asarray(3.0), jv.Variable(0.0, name="kept", trainable=False)
    with jv.GradientTape(persistent=True) as tape:
        tape.watch(x)
        kept.assign(x)
        y, z = kept * x, x * 2.0
    with pytest.warns(GradientWarning, match="A part .*'kept'"):
        assert tape.gradient(y, x) == 3.0
    assert tape.gradient(z, x) == 2.0  # without a warning: of another target


def test_a_warning_when_no_source_has_a_gradient() -> None:
    w, h = jv.Variable(2.0, name="w"), jv.Variable(1.0, name="h")
    with jv.GradientTape(persistent=True) as tape:
        h.assign(w * 3.0)
        y = h * h
    with pytest.warns(GradientWarning, match=r"All gradients .*'h' held .*`tape.explain\(target"):
        assert tape.gradient(y, [w]) == [None]
    assert tape.gradient(y, [w, h]) == [None, 12.0]  # without a warning, as what follows
    assert tape.gradient(y, [w], unconnected_gradients="zero") == [0.0]
    assert tape.gradient(y, []) == []


@pytest.mark.parametrize(
    ("through", "slopes"), [(False, [[None, 3.0]] * 2), (True, [[6.0, 9.0], [36.0, 27.0]])]
)
def test_what_an_assign_cuts_off_has_no_gradient_around_a_compiled_function_either(
    through: bool, slopes: Any
) -> None:
    v, x = jv.Variable(2.0), jnp.asarray(3.0)

    def f(x: Any) -> Any:
        v.assign(v * x)
        return v * 3.0

    def loop(x: Any) -> Any:
        return jv.fori_loop(0, 2, lambda i, y: f(x) + y * 0.0, 0.0)

    for bodies, wanted in zip([(f, jv.compile(f)), (loop, jv.compile(loop))], slopes, strict=True):
        for body in bodies:
            v.assign(2.0)
            with jv.GradientTape(through_assigns=through) as tape:
                tape.watch(x)
                y = body(x)
            assert tape.gradient(y, [x, v]) == wanted


def test_variables_of_one_name_are_named_once_for_a_line():
    model = [jv.Variable(1.0, name="w") for _ in range(3)]
    with jv.GradientTape() as tape:
        for w in model:
            w.assign(w * 2.0)
    assert tape.explain(jnp.ones(()), model[0]).count("'w', assigned at") == 1

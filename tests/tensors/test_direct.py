"""Functions of arrays that a recorder sees as one operation each."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.tensors import direct
from jaxvars.tensors.direct import Direct
from jaxvars.tracing.context import EVAL, current
from jaxvars.tracing.operations import FEW, Operation
from jaxvars.tracing.recorder import Equation, recording

X = jnp.arange(1.0, 4.0)
TABLE = jnp.ones(3)


class Log:
    """A listener that keeps what it is told of, if it is asked of active arrays."""

    def __init__(self, *active: Any) -> None:
        self.active = active
        self.found: list[tuple[Operation, list[Any]]] = []

    def wants(self, inputs: Sequence[Any]) -> bool:
        return not self.active or any(x is one for x in inputs for one in self.active)

    def run(self, equation: Equation, staged: bool) -> list[Any]:
        outputs = list(equation.function(*equation.inputs))
        self.found.append((equation.operation, [*equation.inputs, *outputs]))
        return outputs


class Watch(Log):
    """One for which each primitive is of interest, by itself."""

    follows = False


def operations_of(function: Direct, *calls: tuple[Any, ...], log: Log | None = None) -> list[Any]:
    log = log or Log()
    with recording(log):
        for call in calls:
            function(*call)
    return [operation for operation, _ in log.found]


def scaled(x: Any, by: Any = 2.0, axis: Any = None) -> Any:
    return jnp.sum(x * by, axis=axis)


# ---------------------------------------------------------------- what is the same
def test_a_call_is_one_operation_and_is_found_again() -> None:
    first, again, other = operations_of(Direct(scaled, [0]), (X, 2.0), (X + 1, 2.0), (X, 3.0))
    assert first is again
    assert first is not other
    assert [first.name, first.is_light, first.is_single] == ["jit", True, False]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((X, 1), (X, True)),
        ((X, 1), (X, 1.0)),
        ((X, 0.0), (X, -0.0)),
        ((X, 1.0, 0), (X, 1.0, (0,))),
        ((X, 1.0), (X.astype(jnp.bfloat16), 1.0)),
        ((X, 1.0), (X[:2], 1.0)),
        ((jnp.ones(()), 1.0), (jnp.asarray(1.0), 1.0)),  # weakly typed
        ((np.ones(3, np.float32), 1.0), (np.ones(2, np.float32), 1.0)),
    ],
)
def test_arguments_that_differ_are_told_apart(one: Any, other: Any) -> None:
    function = Direct(scaled, [0])
    assert len(set(operations_of(function, one, other, one, other))) == 2


def test_settings_are_told_apart() -> None:
    function = Direct(jnp.matmul, [0, 1])
    square = jnp.ones((2, 2))
    (one,) = operations_of(function, (square, square))
    with jax.default_matmul_precision("highest"):
        (other,) = operations_of(function, (square, square))
    assert one is not other
    assert ["HIGHEST" in str(each.params["jaxpr"]) for each in (one, other)] == [False, True]
    assert operations_of(function, (square, square)) == [one]


def test_numbers_in_the_place_of_arrays_are_known_by_their_type() -> None:
    function = Direct(jax.jit(jnp.multiply), [0, 1], numbers=True)
    one, same, other = operations_of(function, (X, 2.0), (X, 3.0), (X, 2))
    assert one is same
    assert one is not other
    assert one.function(X, 3.0)[0].tolist() == [3.0, 6.0, 9.0]


def test_functions_are_told_apart() -> None:
    by = 2.0
    first = Direct(lambda x: x * by, [0])
    by = 3.0
    second = Direct(lambda x: x * by, [0])
    assert operations_of(first, (X,)) != operations_of(second, (X,))


# ---------------------------------------------------------------- what goes its usual way
ruled = jax.custom_jvp(lambda x: jnp.sin(x))

ruled.defjvp(lambda xs, dxs: (ruled(*xs), dxs[0]))


@pytest.mark.parametrize(
    ("function", "others"),
    [
        (lambda x: x * TABLE, ()),
        (lambda x: ruled(x) * 2.0, ()),
        (lambda x: x[jnp.asarray([0, 1])], ()),  # a look-up
        (lambda x: x, ()),
        (jnp.copy, ()),
        (lambda x: x.astype(jnp.float16), ()),
        (lambda x: [x := x + i for i in range(FEW + 1)][-1], ()),
        (lambda x: (jnp.sin(x), jnp.cos(x)), ()),
        (lambda x: jnp.sin(x) if float(x[0]) else jnp.cos(x), ()),
        (lambda x: x * 2 if current() is EVAL else (x * 2)[None], ()),
        (lambda x: jax.lax.fori_loop(0, 3, lambda _, x: x * 2.0, x), ()),
        (lambda x: x + jax.lax.rng_uniform(0.0, 1.0, (3,)), ()),
        (lambda x: [jax.debug.callback(lambda _: None, x), x * 2][1], ()),
        (scaled, (2.0, [0])),
        (scaled, (2.0, ([0],))),
        (scaled, (np.float32(2.0),)),
    ],
)
def test_it_goes_its_usual_way(function: Callable[..., Any], others: tuple[Any, ...]) -> None:
    made = Direct(function, [0])
    first, again = Log(), Log()
    for log in (first, again):
        with recording(log):
            try:
                result = made(X, *others)
            except TypeError:
                continue
    plain = Log()
    with recording(plain):
        try:
            wanted = function(X, *others)
        except TypeError:
            return
    names = [operation.name for operation, _ in plain.found]
    assert [operation.name for operation, _ in again.found] == names
    if not any("rng" in name for name in names):
        assert jax.tree.all(jax.tree.map(np.array_equal, result, wanted))


def test_no_more_kinds_of_arguments_are_learned_than_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "_LEARNED", 2)
    traced = list[float]()

    def times(x: Any, by: float) -> Any:
        traced.append(by)
        return x * by

    function = Direct(times, [0])
    operations_of(function, *[(X, float(i)) for i in range(4)])
    assert [traced.count(float(i)) for i in range(4)] == [3, 3, 1, 1]  # traced, tried, run; or run


def test_primitives_are_seen_by_watchers_inner_tapes_and_traces() -> None:
    function, inner = Direct(scaled, [0]), Log()
    assert len(operations_of(function, (X,), log=Watch())) > 1
    with recording(Log()):
        assert len(operations_of(function, (X,), log=inner)) > 1
    traced = jax.make_jaxpr(lambda x: operations_of(function, (x,), log=inner) and x)(X)
    assert [eqn.primitive.name for eqn in traced.eqns][-1] != "jit"


# ---------------------------------------------------------------- what runs
def test_the_function_itself_runs_where_no_recorder_is() -> None:
    places = list[Any]()

    def checked(x: Any, y: Any) -> Any:
        places.append(current())
        if current() is EVAL and not y.all():
            raise ZeroDivisionError("y is 0")
        return x / y

    function = Direct(checked, [0, 1])
    operations_of(function, (X, X), (X, X))
    assert places[0] is not EVAL  # traced once
    assert places[1:] == [EVAL] * 3
    with pytest.raises(ZeroDivisionError, match="y is 0"):
        operations_of(function, (X, X * 0))


def test_what_is_not_of_interest_runs_where_no_recorder_is() -> None:
    places = list[Any]()

    def seen(x: Any) -> Any:
        places.append(current())
        return x * 2

    assert operations_of(Direct(seen, [0]), (X,), log=Log(TABLE)) == []
    assert places == [EVAL]


def test_no_array_is_kept() -> None:
    array = jnp.arange(5.0)
    gone = weakref.ref(array)
    operations_of(Direct(scaled, [0]), (array, 2.0))
    del array
    gc.collect()
    assert gone() is None


def test_numpy_arrays_are_copied() -> None:
    log, given = Log(), np.ones(3, np.float32)
    with recording(log):
        Direct(scaled, [0])(given)
    given[:] = 7
    assert log.found[0][1][0].tolist() == [1, 1, 1]


def test_an_argument_that_is_returned_is_another_object_on_the_tape() -> None:
    with jv.GradientTape() as tape:
        tape.watch(X)
        y = Direct(lambda x: x if current() is EVAL else x * 1, [0])(X)
        z = y * y
    assert y is not X
    assert tape.gradient(z, X).tolist() == (2 * X).tolist()


# ---------------------------------------------------------------- derivatives
@pytest.fixture(params=["first", "again"])
def known(request: pytest.FixtureRequest) -> Direct:
    function = Direct(lambda x, y: jnp.tanh(x) * y, [0, 1])
    if request.param == "again":
        operations_of(function, (X, X))
    return function


def test_gradients(known: Direct) -> None:
    with jv.GradientTape() as tape:
        tape.watch(X)
        z = known(known(X, TABLE), X)
    wanted = jax.grad(lambda x: jnp.sum(jnp.tanh(jnp.tanh(x) * TABLE) * x))(X)
    np.testing.assert_allclose(tape.gradient(z, X), wanted, rtol=1e-6)


def test_second_derivatives(known: Direct) -> None:
    with jv.GradientTape() as outer:
        outer.watch(X)
        with jv.GradientTape() as inner:
            inner.watch(X)
            z = known(X, X)
        first = inner.gradient(z, X)
    wanted = jax.vmap(jax.grad(jax.grad(lambda x: jnp.tanh(x) * x)))(X)
    np.testing.assert_allclose(outer.gradient(first, X), wanted, rtol=1e-5)


def test_a_gradient_of_the_gradient_on_the_same_tape(known: Direct) -> None:
    with jv.GradientTape(persistent=True) as tape:
        tape.watch(X)
        first = tape.gradient(known(X, X), X)
    wanted = jax.vmap(jax.grad(jax.grad(lambda x: jnp.tanh(x) * x)))(X)
    np.testing.assert_allclose(tape.gradient(first, X), wanted, rtol=1e-5)


def test_tangents(known: Direct) -> None:
    with jv.ForwardAccumulator(X, TABLE) as forward:
        z = known(X, X)
    wanted = jax.vmap(jax.grad(lambda x: jnp.tanh(x) * x))(X)
    np.testing.assert_allclose(forward.jvp(z), wanted, rtol=1e-5)


def test_an_array_among_the_other_arguments_is_seen() -> None:
    log = Log(X)
    function = Direct(lambda mask, x: jnp.where(mask, x, 0.0), [0])
    (operation,) = operations_of(function, (X > 1.0, X), log=log)
    assert operation.key is not None
    assert any(x is X for x in log.found[0][1])

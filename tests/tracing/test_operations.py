"""What is known of an operation besides its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxvars.tracing import operations
from jaxvars.tracing.operations import Operation
from jaxvars.tracing.recorder import Equation, recording

X = jnp.arange(3.0)
TABLE = jnp.ones(3)


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """Let no test find the operations of another one."""
    operations._KNOWN.clear()
    yield
    operations._KNOWN.clear()


class Log:
    """A listener that keeps the operations, and does not follow what they closed over."""

    follows = False

    def __init__(self) -> None:
        self.found: list[Operation] = []

    def wants(self, inputs: Sequence[Any]) -> bool:
        return True

    def run(self, equation: Equation, staged: bool) -> list[Any]:
        self.found.append(equation.operation)
        return list(equation.function(*equation.inputs))


def operations_of(f: Callable[[Any], Any]) -> list[Operation]:
    log = Log()
    with recording(log):
        f(X)
    return log.found


ruled = jax.custom_jvp(lambda x: jnp.sin(x))

ruled.defjvp(lambda xs, dxs: (ruled(*xs), dxs[0]))
by_table = jax.jit(lambda x: x * TABLE)
by_hidden_table = jax.jit(lambda x: by_table(x) + 1.0)
with_rule = jax.jit(lambda x: ruled(x) * 2.0)
large = jax.jit(lambda x: [x := x + i for i in range(operations.FEW + 1)])
looping = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, x: x * 2.0, x))
placed = jax.jit(jnp.sin, out_shardings=jax.sharding.SingleDeviceSharding(jax.devices()[0]))


@pytest.mark.parametrize("f", [jnp.tanh, jax.nn.gelu, jax.lax.sin, lambda x: x.reshape(3, 1)])
def test_an_operation_is_found_again(f: Callable[[Any], Any]) -> None:
    first, again = operations_of(f), operations_of(f)
    assert [one is other for one, other in zip(first, again, strict=True)] == [True] * len(first)


@pytest.mark.parametrize(
    "f",
    [by_table, by_hidden_table, with_rule, large, looping, placed,
     lambda x: jax.lax.cond(True, jnp.sin, jnp.cos, x)],
)  # fmt: skip
def test_what_holds_more_than_a_few_operations_of_jaxs_own_is_not_kept(f: Any) -> None:
    (first,), (again,) = operations_of(f), operations_of(f)
    assert first is not again
    assert not operations._KNOWN


def test_the_donation_of_a_jitted_function_is_kept() -> None:
    given = X + 1.0
    (operation,) = operations_of(lambda _: jax.jit(jnp.sin, donate_argnums=0)(given))
    assert operation not in operations._KNOWN.values()
    assert given.is_deleted()


def test_parameters_that_python_takes_for_equal_are_told_apart() -> None:
    kinds = [1, 1.0, True]
    found = [operations.known(jax.lax.neg_p, {"kind": kind}) for kind in kinds]
    assert len({operation.key for operation in found if operation}) == len(kinds)
    assert operations.known(jax.lax.neg_p, {"kind": 1}) is found[0]
    assert operations.known(jax.lax.neg_p, {"kind": object()}) is None
    assert operations.known(jax.lax.neg_p, {"kind": jnp.sin}) is None


def test_what_is_forgotten_leaves_its_key_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "_KNOWN_LIMIT", 2)
    functions = [jnp.sin, jnp.cos, jnp.sin, jnp.tanh, jnp.sin, jnp.cos]
    keys = [operations_of(f)[0].key for f in functions]
    assert len(operations._KNOWN) == 2
    assert keys[0] == keys[2] == keys[4]  # the one that was used last stays
    assert len(set(keys)) == 4


# ---------------------------------------------------------------- often called
@pytest.mark.usefixtures("empty_jit_cache")
@pytest.mark.parametrize(
    "f",
    [jnp.tanh, jax.nn.silu, lambda x: x * 2.0, lambda x: jnp.add(np.ones(3, "f4"), x),
     lambda x: jnp.divmod(x, 2.0), lambda x: jnp.multiply(2.0, 3.0), jnp.isfinite],
)  # fmt: skip
def test_an_operation_that_is_called_often_is_the_same(
    f: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "_OFTEN", 2)
    with recording(Log()):
        made = [f(X) for _ in range(4)]
    wanted = [jax.tree.map(jax.typeof, f(X))] * 4
    assert [jax.tree.map(jax.typeof, value) for value in made] == wanted
    assert all(jax.tree.all(jax.tree.map(np.array_equal, value, f(X))) for value in made)
    (operation,) = operations._KNOWN.values()
    assert operation.function._compiled._cache_size() == 1


def test_programs_are_made_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "_OFTEN", 3)
    monkeypatch.setattr(operations, "_SINCE", [0])
    counts = []
    with recording(Log()):
        for _ in range(5):
            jnp.sin(X), jnp.cos(X)
            programs = [each.function._compiled for each in operations._KNOWN.values()]
            counts.append(sum(program is not None for program in programs))
    assert counts == [0, 0, 1, 1, 2]


def test_what_is_called_often_obeys_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "_OFTEN", 1)
    with recording(Log()):
        for _ in range(3):
            jnp.log(X - 1.0)
        with jax.debug_nans(True), pytest.raises(FloatingPointError):
            jnp.log(X - 1.0)


def test_a_transform_inside_sees_the_operation_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "_OFTEN", 1)
    with recording(Log()):
        for _ in range(3):
            jnp.tanh(X)
            program = jax.make_jaxpr(operations_of(jnp.tanh)[0].function)(X)
    assert [eqn.primitive.name for eqn in program.eqns] == ["tanh"]  # as JAX inlines it

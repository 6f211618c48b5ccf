"""The one file that touches JAX's tracing machinery: where we are, capture, the Recorder."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxvars import _trace
from jaxvars._trace import EVAL, Equation, Recorder, recording


class Log:
    """A listener that wants everything, or what has one of some values in it."""

    def __init__(self, *values: Any) -> None:
        self.values = values
        self.equations: list[Equation] = []
        self.staged: list[bool] = []

    def wants(self, inputs: Sequence[Any]) -> bool:
        return not self.values or any(x is value for x in inputs for value in self.values)

    def run(self, equation: Equation, staged: bool) -> list[Any]:
        self.equations.append(equation)
        self.staged.append(staged)
        return list(equation.function(*equation.inputs))

    @property
    def names(self) -> list[str]:
        return [equation.name for equation in self.equations]


# ---------------------------------------------------------------- where we are
def test_the_bottom_is_the_trace_that_runs_things() -> None:
    assert _trace.current() is EVAL
    assert not _trace.is_staging()


@pytest.mark.parametrize("transform", ["jit", "scan", "vmap", "grad", "jvp", "eval_shape"])
def test_transforms_are_told_apart(transform: str) -> None:
    seen: list[tuple[bool, bool]] = []

    def look(x: Any) -> Any:
        seen.append((_trace.current() is not EVAL, _trace.is_staging()))
        return x * 2.0

    run: dict[str, Any] = {
        "jit": lambda: jax.jit(look)(1.0),
        "scan": lambda: jax.lax.scan(lambda c, x: (look(c), x), 1.0, jnp.ones(2)),
        "vmap": lambda: jax.vmap(look)(jnp.ones(2)),
        "grad": lambda: jax.grad(look)(1.0),
        "jvp": lambda: jax.jvp(look, (1.0,), (1.0,)),
        "eval_shape": lambda: jax.eval_shape(look, 1.0),
    }
    run[transform]()
    assert seen[0] == (True, transform in ("jit", "scan", "eval_shape"))
    assert _trace.current() is EVAL


def test_what_is_recorded_differentiated_or_batched_is_told() -> None:
    seen: list[bool] = []

    def look(x: Any) -> Any:
        seen.append(_trace.is_differentiated())
        return x * 1.0

    look(1.0)
    jax.jit(look)(1.0)
    jax.grad(look)(1.0)
    jax.vmap(look)(jnp.ones(2))
    with recording(Log()):
        look(1.0)
    assert seen == [False, False, True, True, True]


def test_recorders_are_stripped() -> None:
    with recording(Log()):
        assert isinstance(_trace.current(), Recorder)
        assert _trace.strip(_trace.current()) is EVAL
        assert not _trace.is_staging()
        with recording(Log()):
            assert _trace.strip(_trace.current()) is EVAL
    assert _trace.current() is EVAL


def test_an_operation_is_bound_under_the_trace_that_is_asked_for() -> None:
    found: list[Any] = []

    def f(x: Any) -> Any:
        with _trace.at(EVAL):
            found.append(jnp.asarray(2.0) * 3.0)
        return x

    jax.jit(f)(1.0)
    assert not _trace.is_tracer(found[0])
    assert found[0] == 6.0


def test_fresh_is_the_same_value_as_another_object() -> None:
    x = jnp.arange(3.0)
    y = _trace.fresh(x)
    assert y is not x
    assert y.tolist() == x.tolist()
    assert y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


def test_abstract_values_are_strongly_typed() -> None:
    weak = jnp.asarray(1.0) if jax.typeof(jnp.asarray(1.0)).weak_type else jnp.add(1.0, 1.0)
    assert jax.typeof(weak).weak_type
    assert not _trace.aval_of(weak).weak_type
    assert _trace.aval_of(np.ones((2, 3), np.float32)).shape == (2, 3)


# ---------------------------------------------------------------- capture
def read(index: int, *, shape: tuple[int, ...] = ()) -> Any:
    aval = _trace.aval_of(jnp.zeros(shape))
    return _trace.read_variable(_trace.strip(_trace.current()), index, aval)


def test_reads_become_the_first_inputs_in_order() -> None:
    closed, indices = _trace.capture(lambda x: (read(7) - x, read(3) * 2.0), [1.0])
    assert indices == [7, 3]
    run = _trace.jaxpr_function(closed)
    assert run(10.0, 4.0, 1.0) == [9.0, 8.0]


def test_a_read_in_a_scan_is_hoisted() -> None:
    def f(x: Any) -> Any:
        outside = _trace.strip(_trace.current())
        aval = _trace.aval_of(jnp.zeros(()))

        def body(carry: Any, _: Any) -> Any:
            return carry + _trace.read_variable(outside, 0, aval), None

        return jax.lax.scan(body, x, None, length=3)[0]

    closed, indices = _trace.capture(f, [jnp.asarray(1.0)])
    assert set(indices) == {0}
    assert "read_variable" not in _trace.primitives_in(closed)
    assert _trace.jaxpr_function(closed)(*[10.0] * len(indices), 1.0) == [31.0]


def count(closed: Any, name: str) -> int:
    return sum(eqn.primitive.name == name for eqn in _trace.open_jaxpr(closed).eqns)


def test_what_stands_there_twice_is_merged_and_what_nobody_needs_dropped() -> None:
    def f(x: Any) -> Any:
        jnp.exp(x)
        return jnp.sin(x) + jnp.sin(x), _trace.fresh(x)

    closed, _ = _trace.capture(f, [jnp.asarray(1.0)])
    assert (count(closed, "sin"), count(closed, "exp"), count(closed, "copy_p")) == (1, 0, 0)
    found = _trace.jaxpr_function(closed)(1.0)
    assert np.allclose(found, [2 * np.sin(1.0), 1.0])


def test_zeros_of_both_signs_are_not_merged() -> None:
    closed, _ = _trace.capture(lambda x: (jax.lax.mul(x, 0.0), jax.lax.mul(x, -0.0)), [1.0])
    found = _trace.jaxpr_function(closed)(1.0)
    assert [bool(jnp.signbit(x)) for x in found] == [False, True]


def test_effects_are_neither_merged_nor_dropped() -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        jax.debug.callback(lambda v: seen.append(float(v)), x)
        jax.debug.callback(lambda v: seen.append(float(v)), x)
        return x

    closed, _ = _trace.capture(f, [1.0])
    _trace.jaxpr_function(closed)(2.0)
    jax.effects_barrier()
    assert seen == [2.0, 2.0]


def test_the_last_outputs_need_only_some_inputs() -> None:
    closed = jax.make_jaxpr(lambda a, b, c: (a + b, c * 2.0))(1.0, 2.0, 3.0)
    sliced, needed = _trace.last_outputs(closed, 1)
    assert needed == [False, False, True]
    assert _trace.jaxpr_function(sliced)(0.0, 0.0, 5.0) == [10.0]


def test_a_closure_is_taken_apart() -> None:
    table = jnp.arange(3.0)
    run, consts = _trace.closure(lambda x: [x * table], [jnp.zeros(3)])
    assert len(consts) == 1
    assert run([jnp.full(3, 2.0)], [jnp.ones(3)])[0].tolist() == [2.0, 2.0, 2.0]


def test_primitives_are_found_inside_of_others() -> None:
    closed = jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c), c), x, None, 2))(1.0)
    assert {"scan", "sin"} <= _trace.primitives_in(closed)


# ---------------------------------------------------------------- the recorder
def test_a_listener_hears_every_operation_and_values_stay_plain() -> None:
    log, x = Log(), jnp.asarray(2.0)
    with recording(log):
        y = jax.lax.mul(x, x)
        z = jax.lax.sin(y)
    assert log.names == ["mul", "sin"]
    assert log.staged == [False, False]
    assert not _trace.is_tracer(z)
    assert log.equations[1].inputs[0] is y
    jax.lax.cos(z)
    assert log.names == ["mul", "sin"]


def test_what_a_listener_does_not_want_runs_all_the_same() -> None:
    x, other = jnp.asarray(2.0), jnp.asarray(3.0)
    log = Log(x)
    with recording(log):
        assert jax.lax.mul(other, other) == 9.0
        jax.lax.mul(other, x)
    assert log.names == ["mul"]


def test_operations_staged_in_a_program_are_told() -> None:
    log = Log()

    def f(x: Any) -> Any:
        with recording(log):
            return jax.lax.sin(x)

    jax.jit(f)(1.0)
    assert (log.names, log.staged) == (["sin"], [True])


def test_calls_are_heard_as_a_whole() -> None:
    log, x = Log(), jnp.asarray(2.0)
    with recording(log):
        jax.jit(lambda x: jnp.sin(x) * 2)(x)
        jax.nn.relu(x)
        jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=2)
    assert log.names == ["jit", "custom_jvp_call", "scan"]


def test_an_equation_is_a_pure_function_of_its_inputs() -> None:
    log = Log()
    with recording(log):
        jax.nn.relu(jnp.asarray(2.0))
        jax.lax.scan(lambda c, _: (c * 2.0, None), jnp.asarray(1.0), None, length=3)
    relu, scan = log.equations
    assert relu.function(jnp.asarray(-1.0)) == [0.0]
    assert relu.function(jnp.asarray(2.0)) == [2.0]  # as often as you like
    assert jax.grad(lambda x: relu.function(x)[0])(0.0) == jax.grad(jax.nn.relu)(0.0)
    assert scan.function(jnp.asarray(2.0)) == [16.0]


def test_nested_recorders_both_hear() -> None:
    outer, inner = Log(), Log()
    with recording(outer):
        with recording(inner):
            jax.lax.sin(jnp.asarray(1.0))
        jax.lax.cos(jnp.asarray(1.0))
    assert (inner.names, outer.names) == (["sin"], ["sin", "cos"])


def test_an_exception_ends_the_recording() -> None:
    log = Log()
    with pytest.raises(KeyError), recording(log):
        raise KeyError
    jax.lax.sin(jnp.asarray(1.0))
    assert log.names == []
    assert _trace.current() is EVAL


def test_recorders_are_used_again_and_keep_no_listener() -> None:
    log = Log()
    with recording(log):
        first = _trace.current()
    with recording(Log()):
        assert _trace.current() is first
        with recording(Log()):
            second = _trace.current()
    with recording(Log()), recording(Log()):
        assert _trace.current() is second
    held = weakref.ref(log)
    del log
    gc.collect()
    assert held() is None


def test_each_thread_has_its_own() -> None:
    log, names = Log(), []

    def work() -> None:
        jax.lax.sin(jnp.asarray(1.0))
        names.append(_trace.current() is EVAL)

    with recording(log):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert (log.names, names) == ([], [True])


def test_an_eager_shard_map_is_refused_with_the_cure() -> None:
    auto = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((2,), ("i",), axis_types=auto, devices=jax.devices()[:2])
    spec = jax.sharding.PartitionSpec("i")
    f = jax.shard_map(lambda x: x * 2.0, mesh=mesh, in_specs=spec, out_specs=spec)
    with recording(Log()):
        with pytest.raises(NotImplementedError, match=r"(?s)called eagerly.*jax\.jit"):
            f(jnp.ones(2))
        assert jax.jit(f)(jnp.ones(2)).tolist() == [2.0, 2.0]


# ---------------------------------------------------------------- closed over arrays
def test_an_array_a_jit_closed_over_is_an_input_if_it_matters() -> None:
    table, x = jnp.arange(3.0), jnp.ones(3)
    f = jax.jit(lambda x: x * table)
    log = Log(table)
    with recording(log):
        f(x)
    (equation,) = log.equations
    assert equation.inputs[0] is table
    assert equation.function(2 * table, x)[0].tolist() == [0.0, 2.0, 4.0]
    indifferent = Log(x)
    with recording(indifferent):
        f(x)
    assert [len(e.inputs) for e in indifferent.equations] == [1]


def test_an_array_hidden_deeper_is_found() -> None:
    table, x = jnp.arange(3.0), jnp.ones(3)
    inner = jax.jit(lambda x: x * table)
    log = Log(table)
    with recording(log):
        y = jax.jit(lambda x: inner(x) + 1.0)(x)
    assert y.tolist() == [1.0, 2.0, 3.0]
    assert log.equations[0].inputs[0] is table


# ---------------------------------------------------------------- keys
def keys_of(f: Any, *args: Any) -> list[Any]:
    log = Log()
    with recording(log):
        f(*args)
    return [equation.key() for equation in log.equations]


@jax.custom_vjp
def ruled(x: Any) -> Any:
    return jnp.sin(x)


ruled.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * x,))


@jax.custom_jvp
def tangled(x: Any) -> Any:
    return jnp.sin(x)


tangled.defjvp(lambda x, dx: (jnp.sin(x[0]), dx[0]))


def body(carry: Any, _: Any) -> Any:
    return jnp.sin(carry), None


@pytest.mark.parametrize(
    "f",
    [
        jnp.sin,
        jax.nn.relu,
        jax.nn.gelu,
        ruled,
        tangled,
        lambda x: jnp.sum(x, axis=0),
        lambda x: jax.lax.scan(body, x, None, length=2),
        lambda x: x @ x,
    ],
)
def test_the_same_operation_has_the_same_key(f: Any) -> None:
    x = jnp.ones((3, 3))
    first = keys_of(f, x)
    assert first
    assert keys_of(f, 2 * x) == first


def test_other_operations_have_other_keys() -> None:
    x = jnp.ones((3, 3))
    uses: list[Any] = [
        jnp.sin, jnp.cos, jax.nn.relu, ruled, tangled,
        lambda x: jnp.sum(x, axis=0), lambda x: jnp.sum(x, axis=1),
        lambda x: jax.lax.scan(body, x, None, length=2),
        lambda x: jax.lax.scan(body, x, None, length=3),
    ]  # fmt: skip
    keys = [tuple(keys_of(f, x)) for f in uses]
    assert len(set(keys)) == len(uses)


def test_a_key_keeps_no_function_alive() -> None:
    def make(scale: float) -> Any:
        f = jax.custom_jvp(lambda x: x * scale)
        f.defjvp(lambda x, dx: (x[0] * scale, dx[0] * scale))
        return f

    one, other = make(2.0), make(3.0)
    first, second = keys_of(one, 1.0), keys_of(other, 1.0)
    assert first != second
    held = weakref.ref(one)
    del one
    gc.collect()
    assert held() is None
    assert first != keys_of(make(2.0), 1.0)


# ---------------------------------------------------------------- flat functions
def test_a_flat_function_runs_what_stands_twice_once():
    inner = jax.jit(lambda x: jnp.sin(x) * 2.0)

    def f(x, y):
        return inner(x) + jnp.sin(x), inner(y), jnp.sin(y)

    closed = jax.make_jaxpr(f)(1.0, 2.0)
    flat = jax.make_jaxpr(_trace.flat_function(closed))(1.0, 2.0)
    assert (count(flat, "sin"), count(flat, "jit")) == (2, 0)
    expected = f(0.3, 0.4)
    for got, wanted in zip(_trace.flat_function(closed)(0.3, 0.4), expected, strict=True):
        assert float(got) == float(wanted)


def test_a_flat_function_keeps_effects_and_inner_shardings():
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    inner = jax.jit(lambda x: x * 2.0, out_shardings=spread)

    def f(x):
        jax.debug.callback(lambda: None)
        jax.debug.callback(lambda: None)
        return inner(x)

    flat = jax.make_jaxpr(_trace.flat_function(jax.make_jaxpr(f)(jnp.ones(2))))(jnp.ones(2))
    assert (count(flat, "debug_callback"), count(flat, "jit")) == (2, 1)


def test_a_flat_function_tells_literals_apart():
    def f(x):
        return x * 0.0, x * -0.0, x * 2.0, x * 2.0

    closed = jax.make_jaxpr(f)(3.0)
    flat = jax.make_jaxpr(_trace.flat_function(closed))(3.0)
    assert count(flat, "mul") == 3
    assert [float(x) for x in _trace.flat_function(closed)(3.0)] == [0.0, -0.0, 6.0, 6.0]

"""The one package that touches JAX's tracing machinery: where we are, capture, the Recorder."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Generator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars.programs.flat import flat_function
from jaxvars.random import draws
from jaxvars.tracing import capture, context, jaxprs
from jaxvars.tracing.context import EVAL, Scoped
from jaxvars.tracing.operations import Operation
from jaxvars.tracing.recorder import Equation, Recorder, recording


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
    assert context.current() is EVAL
    assert not context.is_staging()


@pytest.mark.parametrize("transform", ["jit", "scan", "vmap", "grad", "jvp", "eval_shape"])
def test_transforms_are_told_apart(transform: str) -> None:
    seen: list[tuple[bool, bool]] = []

    def look(x: Any) -> Any:
        seen.append((context.current() is not EVAL, context.is_staging()))
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
    assert context.current() is EVAL


def test_what_is_recorded_differentiated_or_batched_is_told() -> None:
    seen: list[bool] = []

    def look(x: Any) -> Any:
        seen.append(context.is_differentiated())
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
        assert isinstance(context.current(), Recorder)
        assert context.strip(context.current()) is EVAL
        assert not context.is_staging()
        with recording(Log()):
            assert context.strip(context.current()) is EVAL
    assert context.current() is EVAL


def test_a_trace_that_is_over_is_put_back_to_the_one_before() -> None:
    left: list[Any] = []
    jax.jit(lambda x: left.append(context.current()) or x)(1.0)
    v = jv.Variable(1.0)
    context.at(left[0]).__enter__()  # as when Ctrl-C comes while JAX leaves it
    assert float(v) == 1.0
    assert context.current() is EVAL
    with recording(Log()) as _, recording(Log()):
        inner = context.current()
        context.at(left[0]).__enter__()
        assert context.put_back()
        assert context.current() is inner


class Incomparable:
    error: BaseException | None = None

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        if self.error is not None:
            raise self.error
        return self is other


class OfTwoPartsError(Exception):
    def __init__(self, one: str, other: str) -> None:
        super().__init__(one, other)


@pytest.mark.parametrize(
    ("error", "found", "message"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
        (TimeoutError("too late"), TimeoutError, "^too late$"),
        (OfTwoPartsError("a", "b"), ValueError, "should be comparable using __eq__"),
    ],
)
def test_what_is_raised_while_jax_compares_is_raised(
    error: Any, found: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = jax.jit(lambda x, option: x, static_argnums=1)
    f(1.0, Incomparable())
    monkeypatch.setattr(Incomparable, "error", error)
    with pytest.raises(found, match=message), context.restoring():
        f(1.0, Incomparable())


@pytest.mark.parametrize(
    "text",
    [
        "Equality of global cache key led to an exception. The error was:\n{}",
        "Exception raised in callback: Traceback (most recent call last):\n  File ...\n\n{}",
        "Exception raised in callback: {}",
    ],
)
@pytest.mark.parametrize("name", ["TimeoutError", "builtins.TimeoutError"])
def test_what_is_raised_in_what_jax_calls_is_raised(text: str, name: str) -> None:
    @context.restoring()
    def run() -> None:
        raise RuntimeError(text.format(f"{name}: too late"))

    with pytest.raises(TimeoutError, match=r"^too late$"):
        run()


@pytest.mark.parametrize(
    ("error", "found", "made_of"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, ()),
        (SystemExit(3), SystemExit, (3,)),
        (SystemExit("stop"), SystemExit, ("stop",)),
        (TimeoutError("mine"), (ValueError, RuntimeError), None),  # JAX's: it shows the callback
    ],
)
def test_what_ends_the_program_in_a_callback_ends_it(error: Any, found: Any, made_of: Any) -> None:
    n, raised = jv.Variable(0), [error]

    def call(x: Any) -> Any:
        if raised:
            raise raised.pop()
        return x

    step = jv.compile(lambda: n.assign_add(jax.pure_callback(call, n.value, n.value) + 1))
    with pytest.raises(found) as caught:
        step()
    assert made_of in (caught.value.args, None)
    assert int(n) == 0
    assert int(step()) == 1


def _left_none(*_: Any, **__: Any) -> Any:
    """Leave no trace current, as an interrupt does in the middle of a bind."""
    context.at(None).__enter__()  # pyright: ignore[reportArgumentType] - as JAX does
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("where", "action"),
    [
        ("jnp.array", lambda: jv.Variable(0.0).assign_add(1.0)),
        ("jnp.array", lambda: jv.metrics.Mean().update_state([1.0])),
        ("lax.stop_gradient", lambda: jv.metrics.Mean().update_state(jnp.ones(2))),
        ("random.normal", lambda: draws.normal(1, (2,))),
        ("random.wrap_key_data", lambda: jv.random.Generator(1).normal((2,))),
        ("nn.relu", lambda: _Relu()(jnp.ones(2), jnp.ones(2))),
        ("vjp", lambda: _gradient(lambda tape, y, x: tape.gradient(y, x))),
        ("vjp", lambda: _gradient(lambda tape, y, x: tape.jacobian(y, x))),
        ("nn.relu", lambda: _gradient(lambda *_: None)),
    ],
)
def test_an_interrupt_leaves_no_trace_of_jaxs(
    where: str, action: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"jax.{where}".replace("jax.jnp", "jax.numpy"), _left_none)
    with context.at(EVAL):  # whatever comes of it
        with pytest.raises(KeyboardInterrupt):
            action()
        assert context.place(None) is EVAL


class _Relu(jv.losses.Loss):
    def call(self, y_true: Any, y_pred: Any) -> Any:
        return jax.nn.relu(y_true - y_pred)


def _gradient(ask: Any) -> Any:
    x = jnp.ones(2)
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        if ask(tape, y, x) is None:
            jax.nn.relu(x)


def test_settings_are_forgotten_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    step = jv.compile(lambda x: x * 2)
    assert step(1.0) == 2.0
    first = context.settings()
    assert context.settings() == first
    monkeypatch.setattr(context, "_KEPT", 1)
    with jax.default_matmul_precision("BF16_BF16_F32_X3"), jax.numpy_rank_promotion("warn"):
        assert context.settings() > first
    assert context.settings() > first
    assert step(1.0) == 2.0


def test_an_operation_is_bound_under_the_trace_that_is_asked_for() -> None:
    found: list[Any] = []

    def f(x: Any) -> Any:
        with context.at(EVAL):
            found.append(jnp.asarray(2.0) * 3.0)
        return x

    jax.jit(f)(1.0)
    assert not context.is_tracer(found[0])
    assert found[0] == 6.0


def test_fresh_is_the_same_value_as_another_object() -> None:
    x = jnp.arange(3.0)
    y = context.fresh(x)
    assert y is not x
    assert y.tolist() == x.tolist()
    assert y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


def test_abstract_values_are_strongly_typed() -> None:
    weak = jnp.asarray(1.0) if jax.typeof(jnp.asarray(1.0)).weak_type else jnp.add(1.0, 1.0)
    assert jax.typeof(weak).weak_type
    assert not context.aval_of(weak).weak_type
    assert context.aval_of(np.ones((2, 3), np.float32)).shape == (2, 3)


# ---------------------------------------------------------------- capture
def read(index: int, *, shape: tuple[int, ...] = ()) -> Any:
    aval = context.aval_of(jnp.zeros(shape))
    return capture.read_variable(context.strip(context.current()), index, aval)


def test_reads_become_the_first_inputs_in_order() -> None:
    closed, indices = capture.variables_first(
        jax.make_jaxpr(lambda x: (read(7) - x, read(3) * 2.0))(1.0)
    )
    assert indices == [7, 3]
    run = jaxprs.jaxpr_function(closed)
    assert run(10.0, 4.0, 1.0) == [9.0, 8.0]


def test_a_read_in_a_scan_is_hoisted() -> None:
    def f(x: Any) -> Any:
        outside = context.strip(context.current())
        aval = context.aval_of(jnp.zeros(()))

        def body(carry: Any, _: Any) -> Any:
            return carry + capture.read_variable(outside, 0, aval), None

        return jax.lax.scan(body, x, None, length=3)[0]

    closed, indices = capture.variables_first(jax.make_jaxpr(f)(jnp.asarray(1.0)))
    assert set(indices) == {0}
    assert "read_variable" not in jaxprs.primitives_in(closed)
    assert jaxprs.jaxpr_function(closed)(*[10.0] * len(indices), 1.0) == [31.0]


def count(closed: Any, name: str) -> int:
    return sum(eqn.primitive.name == name for eqn in jaxprs.open_jaxpr(closed).eqns)


def test_what_is_not_needed_is_dropped_and_the_rest_left_to_xla() -> None:
    def f(x: Any) -> Any:
        jnp.exp(x)
        return jnp.sin(x) + jnp.sin(x)

    closed, _ = capture.variables_first(jax.make_jaxpr(f)(jnp.asarray(1.0)))
    assert (count(closed, "sin"), count(closed, "exp")) == (2, 0)


TWINS: list[tuple[Any, Any]] = [
    (np.float32(1e-4), np.float32(3e-4)),
    (np.float32(0.00012345), np.float32(0.000123451)),
    (0.0, -0.0),
    (np.float32(2.0), np.float16(2.0)),
]
"""Constants that print alike with few digits, or are equal to `==`."""


@pytest.mark.parametrize("twins", TWINS)
@pytest.mark.parametrize("run", [jaxprs.jaxpr_function, flat_function])
def test_constants_are_not_told_apart_by_how_they_print(run: Any, twins: Any) -> None:
    def f(x: Any) -> Any:
        return [jax.lax.mul(x.astype(jnp.asarray(c).dtype), c) for c in twins]

    with np.printoptions(precision=1, suppress=True):
        closed, _ = capture.variables_first(jax.make_jaxpr(f)(np.float16(-1.0)))
        found = run(closed)(np.float16(-1.0))
    want = f(np.float16(-1.0))
    assert [(x.dtype, np.asarray(x).tobytes()) for x in found] == [
        (x.dtype, np.asarray(x).tobytes()) for x in want
    ]


@pytest.mark.parametrize("inside", [lambda f: f, jax.jit, lambda f: lambda: scanned(f)])
def test_what_draws_runs_as_often_as_it_stands_there(inside: Any) -> None:
    drawn = inside(lambda: jax.lax.rng_uniform(0.0, 1.0, (4,)))
    closed, _ = capture.variables_first(jax.make_jaxpr(lambda: [drawn(), drawn()])())
    for run in (jaxprs.jaxpr_function(closed), flat_function(closed)):
        one, other = jax.jit(run)()
        assert not np.array_equal(one, other)


def scanned(draw: Any) -> Any:
    return jax.lax.scan(lambda c, _: (c, draw()), 0.0, None, 1)[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (1, True), (0.0, -0.0), ((1, (0.0,)), (1, (-0.0,))), (np.float32(1), np.float64(1))],
)
def test_parameters_of_an_operation_are_told_apart(one: Any, other: Any) -> None:
    first, second = (Operation("pad", lambda x: [x], {"with": x}) for x in (one, other))
    assert first.key != second.key
    assert first.key == Operation("pad", lambda x: [x], {"with": one}).key


class Unreferable:
    """A function that a weak reference cannot be made to."""

    __slots__ = ()

    def __call__(self, x: Any) -> Any:
        return x


def test_functions_that_cannot_be_referred_to_weakly_are_told_apart() -> None:
    one, other = Unreferable(), Unreferable()
    keys = [Operation("f", lambda x: [x], {"rule": rule}).key for rule in (one, one, other)]
    assert keys[0] == keys[1] != keys[2]


def test_effects_are_neither_merged_nor_dropped() -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        jax.debug.callback(lambda v: seen.append(float(v)), x)
        jax.debug.callback(lambda v: seen.append(float(v)), x)
        return x

    closed, _ = capture.variables_first(jax.make_jaxpr(f)(1.0))
    jaxprs.jaxpr_function(closed)(2.0)
    jax.effects_barrier()
    assert seen == [2.0, 2.0]


def test_the_last_outputs_have_the_inputs_that_they_need() -> None:
    closed = jax.make_jaxpr(lambda a, b, c: (a + b, c * 2.0))(1.0, 2.0, 3.0)
    sliced, needed = jaxprs.some_outputs(closed, [-1])
    assert needed == [False, False, True]
    assert jaxprs.jaxpr_function(sliced)(5.0) == [10.0]


def test_a_closure_is_taken_apart() -> None:
    table = jnp.arange(3.0)
    run, consts = jaxprs.take_out_constants(jax.make_jaxpr(lambda x: [x * table])(jnp.zeros(3)))
    assert len(consts) == 1
    assert run([jnp.full(3, 2.0)], [jnp.ones(3)])[0].tolist() == [2.0, 2.0, 2.0]


def test_primitives_are_found_inside_of_others() -> None:
    closed = jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c), c), x, None, 2))(1.0)
    assert {"scan", "sin"} <= jaxprs.primitives_in(closed)


# ---------------------------------------------------------------- the recorder
def test_a_listener_hears_every_operation_and_values_stay_plain() -> None:
    log, x = Log(), jnp.asarray(2.0)
    with recording(log):
        y = jax.lax.mul(x, x)
        z = jax.lax.sin(y)
    assert log.names == ["mul", "sin"]
    assert log.staged == [False, False]
    assert not context.is_tracer(z)
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
    assert context.current() is EVAL


def test_recorders_are_used_again_and_keep_no_listener() -> None:
    log = Log()
    with recording(log):
        first = context.current()
    with recording(Log()):
        assert context.current() is first
        with recording(Log()):
            second = context.current()
    with recording(Log()), recording(Log()):
        assert context.current() is second
    held = weakref.ref(log)
    del log
    gc.collect()
    assert held() is None


def test_each_thread_has_its_own() -> None:
    log = Log()

    def work() -> bool:
        jax.lax.sin(jnp.asarray(1.0))
        return context.current() is EVAL

    with recording(log):
        assert run_in_threads(work) == [True]
    assert log.names == []


def shard_mapped(f: Callable[..., Any], *specs: Any) -> Callable[..., Any]:
    """Return a function of parts, on two devices, as one of whole arrays."""
    auto = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((2,), ("i",), axis_types=auto, devices=jax.devices()[:2])
    *given, made = specs
    return jax.shard_map(f, mesh=mesh, in_specs=tuple(given), out_specs=made)


def test_an_eager_shard_map_is_one_operation_over_what_it_closed_over() -> None:
    x, table = jnp.ones(2), jnp.asarray(3.0)
    f = shard_mapped(lambda x: {"a": x * table, "b": (x,)}, jax.P("i"), jax.P("i"))
    log = Log(table)
    with recording(log):
        assert jax.tree.map(np.asarray, f(x))["a"].tolist() == [3.0, 3.0]
    (equation,) = log.equations
    assert [equation.inputs[0] is table, equation.inputs[1] is x] == [True, True]
    assert equation.function(2 * table, x)[0].tolist() == [6.0, 6.0]


# ---------------------------------------------------------------- closed over arrays
def test_an_array_a_jit_closed_over_is_an_input_if_it_matters() -> None:
    table, x = jnp.arange(3.0), jnp.ones(3)
    f = jax.jit(lambda x: x * table)
    log = Log(table)
    with recording(log):
        f(x)
        f(x)
    equation, again = log.equations
    assert equation.inputs[0] is table
    assert equation.function(2 * table, x)[0].tolist() == [0.0, 2.0, 4.0]
    assert again.operation.key == equation.operation.key
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


def test_an_interrupted_search_for_hidden_arrays_is_made_again(monkeypatch: Any) -> None:
    table, x = jnp.arange(3.0), jnp.ones(3)
    inner = jax.jit(lambda x: x * table)
    f = jax.jit(lambda x: inner(x) + 1.0)
    search = jaxprs.inner_jaxprs

    def interrupt(params: Any) -> Any:
        monkeypatch.setattr(jaxprs, "inner_jaxprs", search)
        raise KeyboardInterrupt

    monkeypatch.setattr(jaxprs, "inner_jaxprs", interrupt)
    closed = jax.make_jaxpr(f)(x)
    with pytest.raises(KeyboardInterrupt):
        jaxprs.hidden_arrays(closed)
    assert [y is table for y in jaxprs.hidden_arrays(closed)] == [True]


# ---------------------------------------------------------------- scoped values
def test_generators_that_overlap_each_with_the_next_leave_nothing_behind() -> None:
    depth = Scoped(0)

    def stage() -> Generator[None]:
        with depth.change(lambda n: n + 1):
            yield

    def links() -> int:
        link, count = depth._last.get(), 0
        while link is not None:
            link, count = link.outer, count + 1
        return count

    last = stage()
    next(last)
    for _ in range(50):
        new = stage()
        next(new)
        assert depth.value == 2
        last.close()
        last = new
    assert (depth.value, links()) == (1, 1)
    last.close()


# ---------------------------------------------------------------- keys
def keys_of(f: Any, *args: Any) -> list[Any]:
    log = Log()
    with recording(log):
        f(*args)
    return [equation.operation.key for equation in log.equations]


ruled = jax.custom_vjp(lambda x: jnp.sin(x))

ruled.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * x,))

tangled = jax.custom_jvp(lambda x: jnp.sin(x))

tangled.defjvp(lambda x, dx: (jnp.sin(x[0]), dx[0]))


def body(carry: Any, _: Any) -> Any:
    return jnp.sin(carry), None


@pytest.mark.parametrize("f", [
    jnp.sin, jax.nn.relu, jax.nn.gelu, ruled, tangled, lambda x: jnp.sum(x, axis=0),
    lambda x: jax.lax.scan(body, x, None, length=2), lambda x: x @ x,
])  # fmt: skip
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

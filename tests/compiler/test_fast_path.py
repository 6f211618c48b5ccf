"""The third call is like the first: a hot path only ever does what the slow way would do.

Rules of this file:
- `hot` makes a compiled function hot before it is tested;
- each test ends with the values that the Python function would give.
"""

from __future__ import annotations

import dis
import enum
import functools
import gc
import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.compiler import fast_path as _hotpath
from jaxvars.compiler.fast_path import is_traced
from jaxvars.core import cells, failures
from jaxvars.errors import DtypeError, ForeignTransformError, RetraceWarning
from jaxvars.tracing import jaxprs
from tests.threads import run_in_threads


def hot(step: jv.Function, *args: Any, times: int = 3) -> jv.Function:
    """Call a function until its hot path answers."""
    for _ in range(times):
        step(*args)
    call_hot(step, *args)
    return step


def call_hot(step: jv.Function, *args: Any) -> Any:
    """Call a function; fail if that is not by a hot path."""

    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("there is no hot path for this call")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jv.Function, "_slow_call", refuse)
        return step(*args)


def counter() -> tuple[jv.Variable, jv.Function, list[None]]:
    total = jv.Variable(0.0, name="total")
    runs: list[None] = []

    def body(x: Any = 1.0, option: Any = None) -> Any:
        runs.append(None)
        return total.assign_add(jnp.sum(jnp.asarray(x)) if x is not None else 0.0)

    return total, jv.compile(body), runs


# ---------------------------------------------------------------- which arguments are alike
SAMPLES: list[Any] = [
    1, 2, 1.0, 2.0, np.float32(1), np.float64(2), np.int32(1), np.ones(3, np.float32), np.ones(3),
    np.ones(2), np.ones(3, np.int32), np.bool_(True), True, False, np.array([True, False]),
]  # fmt: skip


def test_any_sequence_of_arguments_gives_what_python_gives():
    arrays = [jnp.ones(3), jnp.ones(2), jnp.float32(1), jnp.asarray(1.0), jnp.int32(4)]
    random = np.random.default_rng(0)
    samples = [*SAMPLES, *arrays]
    kinds: list[Any] = []
    step = jv.compile(lambda x: kinds.append(type(x)) or jnp.asarray(x) * 2)
    warnings.simplefilter("ignore", RetraceWarning)
    for i in random.integers(len(samples), size=300):
        got, want = step(samples[i]), jnp.asarray(samples[i]) * 2
        assert got.dtype == want.dtype, samples[i]
        np.testing.assert_array_equal(got, want)
    assert len(kinds) <= 14


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize("values", [
    (True, False, 1, 0), ("a", "b", "a"), (None, 1.0, None), (Color.RED, Color.BLUE),
    (jnp.sin, jnp.cos), (np.array(["a", "b"]), np.ones(2), np.array(["c"])),
    (np.ones(2), np.array(["a", "b"]), np.ones(2)), (np.array([None]), np.ones(1)),
    ((), (1.0,), ()), ([1.0], [1.0, 2.0]), ({}, {"a": 1.0}),
])  # fmt: skip
def test_options_of_all_kinds_are_told_apart(values: tuple[Any, ...]):
    def body(x: Any, option: Any) -> Any:
        leaf = option[0] if isinstance(option, (list, tuple)) and option else option
        kind = leaf if isinstance(leaf, (bool, str, enum.Enum, type(None))) else type(leaf).__name__
        if callable(leaf):
            kind = leaf.__name__
        return x, str(kind if not hasattr(leaf, "aval") else "traced")

    step = jv.compile(body)
    expected = [step(1.0, value)[1] for value in values]
    for _ in range(3):
        for value, want in zip(values, expected, strict=True):
            for _ in range(3):
                assert step(1.0, value)[1] == want


def test_defaults_and_the_number_of_arguments():
    total, step, runs = counter()
    hot(step)
    assert float(total) == 4.0
    hot(step, 2.0)
    step()
    step(2.0)
    assert float(total) == 15.0
    assert len(runs) == 1


def test_a_default_array_is_passed_on():
    table = np.arange(3.0)
    step = jv.compile(lambda i, table=table: jnp.asarray(table)[i])
    assert [float(step(i)) for i in (0, 1, 2, 2, 1)] == [0.0, 1.0, 2.0, 2.0, 1.0]


def test_static_positions_are_compared_with_their_types():
    step = jv.compile(lambda x, n: x * n, static_argnames="n")
    x = jnp.ones(2, jnp.int32)
    for _ in range(3):
        for n, kind in ((2, "i"), (2.0, "f"), (True, "i")):
            for _ in range(3):
                assert step(x, n).dtype.kind == kind


@pytest.mark.parametrize(
    "numbers", [[0.0, -0.0, float("nan"), -float("nan")], [0.0, 0j, complex(-0.0, 0.0)]], ids=repr
)
def test_static_numbers_are_told_apart_by_their_bits(numbers: list[complex]):
    def shown(n: complex) -> str:
        return f"{n!r} {math.copysign(1.0, n.real)}"

    step = jv.compile(shown, static_argnames="n")
    for _ in range(3):
        for n in numbers:
            for _ in range(3):
                assert step(n) == shown(n)
    assert step.trace_count == len(numbers)


def test_two_models_take_turns():
    class Model(jv.Module):
        def __init__(self, value: float) -> None:
            self.w = jv.Variable(value)

    step = jv.compile(lambda model, x: model.w.assign_add(x))
    models = [Model(float(i)) for i in range(6)]
    for _ in range(5):
        for model in models:
            step(model, 1.0)
    assert [float(model.w) for model in models] == [5.0 + i for i in range(6)]


# ---------------------------------------------------------------- many programs of one function
def shapes_in_turn(form: Callable[[Any], Any]) -> tuple[jv.Variable, jv.Function, list[Any]]:
    """Return a variable, a step that adds its argument's sum, and arguments of 20 shapes."""
    total = jv.Variable(0.0)
    step = jv.compile(lambda x: total.assign_add(sum(leaf.sum() for leaf in jax.tree.leaves(x))))
    return total, step, [form(jnp.ones(n)) for n in range(1, 21)]


_FORMS = pytest.mark.parametrize("form", [lambda x: x, lambda x: {"a": x, "b": [x + 1]}])


@_FORMS
@pytest.mark.filterwarnings("ignore::jaxvars.errors.RetraceWarning")
def test_each_of_many_shapes_has_a_hot_path_and_the_values_stay_with_the_step(form: Any):
    total, step, batches = shapes_in_turn(form)
    for batch in [*batches, *batches]:
        step(batch)
    places = set()
    for batch in reversed(batches):
        call_hot(step, batch)
        places.add(cells.CURRENT[0])
    assert len(places) == 1
    assert None not in places
    assert float(total) == 3 * sum(float(x.sum()) for x in jax.tree.leaves(batches))
    assert step.trace_count == 20


@pytest.mark.filterwarnings("ignore::jaxvars.errors.RetraceWarning")
def test_many_shapes_in_any_order_between_reads_writes_and_cleared_caches():
    total, step, batches = shapes_in_turn(lambda x: x)
    other = jv.compile(lambda: total.assign(total * 1))
    random, expected = np.random.default_rng(0), 0.0
    acts = [other, jax.clear_caches, lambda: total.value, lambda: float(total), gc.collect]
    for i in random.integers(8, size=100):
        if i % 4 == 0:
            acts[random.integers(len(acts))]()
        if i % 7 == 0:
            total.assign_sub(1.0)
            expected -= 1
        step(batches[i])
        expected += i + 1
    assert float(total) == expected
    assert step.trace_count == 8


def test_programs_of_one_function_that_assign_other_variables():
    a, b = jv.Variable(0.0), jv.Variable(0.0)

    @jv.compile
    def step(x: Any, which: Any) -> None:
        for variable in which:
            variable.assign_add(x)

    for _ in range(6):
        for which in ([a], [b], [a, b], [b, a]):
            step(1.0, which)
    assert [float(a), float(b)] == [18.0, 18.0]


def test_many_models_take_turns():
    step = jv.compile(lambda v, x: v.assign_add(x))
    variables = [jv.Variable(0.0) for _ in range(20)]
    with warnings.catch_warnings(action="ignore"):
        for v in variables * 3:
            step(v, 1.0)
    for v in variables:
        call_hot(step, v, 1.0)
    assert {float(v) for v in variables} == {4.0}
    keep = variables[::2]
    del variables, v
    gc.collect()
    for v in keep:
        step(v, 1.0)
    assert {float(v) for v in keep} == {5.0}


@pytest.mark.filterwarnings("ignore::jaxvars.errors.RetraceWarning")
def test_threads_with_batches_of_several_shapes_lose_no_update():
    total, step, batches = shapes_in_turn(lambda x: x)

    def work(turn: int) -> None:
        for batch in (batches[turn:] + batches[:turn]) * 10:
            step(batch)

    run_in_threads(*[functools.partial(work, 5 * i) for i in range(4)])
    assert float(total) == 4 * 10 * 210


def test_a_program_is_looked_through_once(monkeypatch: pytest.MonkeyPatch):
    real, count = jaxprs.largest_value, []
    monkeypatch.setattr(jaxprs, "largest_value", lambda x: count.append(x) or real(x))
    _, step, _ = counter()
    for _ in range(5):
        step._slow_call(1.0)
    assert len(count) == 1


def test_another_shape_while_the_values_are_with_another_step():
    factor, (_, step, _) = jv.Variable(2.0), counter()
    scaled = hot(jv.compile(lambda x: x * factor), jnp.ones(2))
    hot(step, 1.0)
    assert scaled(jnp.ones(3)).tolist() == [2.0] * 3
    assert scaled.trace_count == 2


def test_the_same_cell_in_two_programs():
    v = jv.Variable(jnp.zeros(4))
    add, double = jv.compile(lambda x: v.assign_add(x)), jv.compile(lambda: v.assign(v * 2))
    read = jv.compile(lambda: v * 1)
    for _ in range(5):
        add(1.0)
        double()
        assert read().tolist() == v.numpy().tolist()
    assert v.numpy().tolist() == [62.0] * 4


def test_an_array_that_can_say_whether_a_step_has_run_is_chosen():
    key, x = jax.random.key(0), jnp.ones(2)
    assert failures.one_of([key, x]) is (key if hasattr(key, "is_ready") else x)
    assert failures.one_of([key]) is key
    assert failures.one_of([]) is None


def test_random_keys_are_arguments_in_trees():
    draw = jv.compile(lambda tree: jax.random.normal(tree["key"], (2,)) * tree["scale"])
    for seed in range(4):
        key = jax.random.key(seed)
        expected = jax.random.normal(key, (2,)) * seed
        np.testing.assert_array_equal(draw({"key": key, "scale": float(seed)}), expected)
    assert draw.trace_count == 1
    draw({"key": jax.random.key(0, impl="rbg"), "scale": 1.0})
    assert draw.trace_count == 2


def test_random_keys_are_arguments_and_variables():
    key = jv.Variable(jax.random.key(0))

    @jv.compile
    def draw(other: Any) -> Any:
        new, now = jax.random.split(key.value)
        key.assign(new)
        return jax.random.normal(now), jax.random.normal(other)

    drawn = [float(draw(jax.random.key(i))[0]) for i in range(5)]
    assert len(set(drawn)) == 5
    want = jax.random.key(0)
    for value in drawn:
        want, now = jax.random.split(want)
        assert value == float(jax.random.normal(now))


def test_a_number_too_large_changes_nothing():
    total = jv.Variable(0)
    step = hot(jv.compile(lambda n: total.assign_add(n)), 1)
    before = int(total)
    with pytest.raises(DtypeError, match=r"argument n of .* is 1099511627776, outside of int32"):
        step(2**40)
    assert int(total) == before
    step(1)
    assert int(total) == before + 1


# ---------------------------------------------------------------- where a program may run
def cases(step: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
    """Return the ways to call a step inside a transform that knows nothing of variables."""
    xs = jnp.ones(3)
    return {
        "jit": lambda: jax.jit(lambda x: (step(), x)[1])(xs),
        "vmap": lambda: jax.vmap(lambda x: (step(), x)[1])(xs),
        "grad": lambda: jax.grad(lambda x: (step(), x)[1])(1.0),
        "scan": lambda: jax.lax.scan(lambda c, x: (step(), (c, x))[1], 0.0, xs),
        "eval_shape": lambda: jax.eval_shape(lambda x: (step(), x)[1], xs),
        "jvp": lambda: jax.jvp(lambda x: (step(), x)[1], (1.0,), (1.0,)),
        "linearize": lambda: jax.linearize(lambda x: (step(), x)[1], 1.0),
        "checkpoint": lambda: jax.grad(jax.checkpoint(lambda x: (step(), x)[1]))(1.0),
    }


STAGING = ("jit", "scan", "eval_shape", "checkpoint")


@pytest.mark.parametrize(
    ("times", "where"),
    [
        *((n, case) for n in (0, 1) for case in cases(lambda: None)),
        *((3, case) for case in STAGING),
    ],
)
def test_writing_inside_a_foreign_transform_is_refused(where: str, times: int):
    total, step, _ = counter()
    for _ in range(times):
        step()  # and no look at `total`, which would take the values out of the hot path
    with pytest.raises(ForeignTransformError, match=r"'total' is written at test_fast_path\.py"):
        cases(step)[where]()
    assert float(total) == times
    step()
    assert float(total) == times + 1


def test_a_program_that_only_assigns_is_refused_too():
    last = jv.Variable(0.0, name="last")
    step = jv.compile(lambda x: last.assign(x))
    for where in STAGING:
        hot(step, 1.0)
        with pytest.raises(ForeignTransformError, match="'last' is written"):
            cases(lambda: step(2.0))[where]()
        assert float(last) == 1.0


def test_a_hot_step_that_is_given_nothing_transformed_runs_once_or_is_refused():
    """A vmap or grad of other values lets it run: what it assigns does not leak out of it."""
    total, step, _ = counter()
    for where in cases(step):
        for _ in range(3):
            step()
        before = float(total)
        step()
        try:
            cases(step)[where]()
        except ForeignTransformError:
            assert float(total) == before + 1
        else:
            assert where not in STAGING
            assert float(total) == before + 2


@pytest.mark.parametrize("transform", [jax.vmap, jax.grad, jax.jit])
def test_a_hot_step_that_is_given_something_transformed_is_refused(transform: Any):
    total, step, _ = counter()
    x = jnp.ones(3) if transform is jax.vmap else 1.0
    hot(step, 1.0)
    with pytest.raises(ForeignTransformError, match="'total' is written"):
        transform(step)(x)
    assert float(total) == 4.0


def test_reading_inside_vmap_and_grad_is_fine():
    w = jv.Variable(3.0)
    read = hot(jv.compile(lambda x: w * x), 1.0)
    assert jax.vmap(read)(jnp.arange(3.0)).tolist() == [0.0, 3.0, 6.0]
    assert float(jax.grad(read)(1.0)) == 3.0
    constant = hot(jv.compile(lambda: w * 2))
    assert jax.vmap(lambda x: x + constant())(jnp.arange(2.0)).tolist() == [6.0, 7.0]


def test_a_tape_sees_a_hot_function():
    w = jv.Variable(3.0)
    step = hot(jv.compile(lambda x: w * x), 2.0)
    with jv.GradientTape() as tape:
        y = step(2.0)
    assert float(tape.gradient(y, w)) == 2.0
    assert float(step(2.0)) == 6.0


def test_a_bound_state_takes_the_place_of_the_variables():
    total, step, _ = counter()
    hot(step)
    before = float(total)
    pure = jv.functionalize(step)
    _, state = pure(jax.tree.map(lambda x: x * 0 + 100.0, jv.State.of(total)))
    assert float(state["total"]) == 101.0
    assert float(total) == before


def test_disable_jit_changes_nothing_but_the_speed():
    total, step, _ = counter()
    hot(step)
    before = float(total)
    with jax.disable_jit():
        assert float(step()) == before + 1
    assert float(step()) == before + 2


@pytest.mark.parametrize("when", ["before", "after the first call", "while it is hot"])
@pytest.mark.parametrize(("check", "x"), [(jax.debug_nans, 0.0), (jax.debug_infs, 1.0)])
def test_a_failed_check_of_numbers_leaves_the_variables(check: Any, x: float, when: str):
    total, other = jv.Variable(jnp.zeros(3)), jv.Variable(jnp.ones(3))

    @jv.compile
    def step(x: Any, y: Any) -> None:
        total.assign_add(x / y)
        other.assign(other * x)

    one = jnp.ones(3)
    if when != "before":
        step(one, one)
    if when == "while it is hot":
        hot(step, one, one)
    with check(True):
        hot(step, one, one)
        before = total.numpy(), other.numpy()
        for _ in range(2):
            with pytest.raises(FloatingPointError):
                step(x * one, 0 * one)
            np.testing.assert_array_equal((total.numpy(), other.numpy()), before)
    step(one, one)
    np.testing.assert_array_equal(total.numpy(), before[0] + 1)


# ---------------------------------------------------------------- results
class Boxed:
    """A result whose unflattening can fail."""

    fails = False

    def __init__(self, x: Any) -> None:
        self.x = x


def _open_box(_: Any, children: Any) -> Boxed:
    if Boxed.fails:
        raise KeyError("box")
    return Boxed(*children)


jax.tree_util.register_pytree_node(Boxed, lambda box: ((box.x,), None), _open_box)


def test_a_result_that_cannot_be_built_runs_the_step_once():
    total = jv.Variable(0.0)
    step = hot(jv.compile(lambda: (Boxed(total.assign_add(1.0).value), "text")))
    before = float(total)
    Boxed.fails = True
    try:
        with pytest.raises(KeyError, match="box"):
            step()
    finally:
        Boxed.fails = False
    assert float(total) == before + 1
    assert float(step()[0].x) == before + 2


# ---------------------------------------------------------------- the written code itself
def test_there_is_no_call_where_an_interrupt_would_tear():
    """Between the donating call and the last store, and between test and set, no call."""
    _, step, _ = counter()
    hot(step)
    path = step.__call__
    names = [i.opname for i in dis.get_instructions(path) if i.opname != "CACHE"]
    store = names.index("STORE_ATTR")
    last_call = max(i for i, name in enumerate(names[:store]) if name.startswith("CALL"))
    assert names[last_call + 1] == "UNPACK_SEQUENCE"  # which runs the map, and so the program
    assert not any("JUMP_BACKWARD" in name for name in names[last_call:store])
    taken = names.index("STORE_SUBSCR")
    test = max(i for i, name in enumerate(names[:taken]) if name == "IS_OP")
    branch = names.index("RETURN_VALUE", test)  # where the test leads elsewhere
    assert branch < taken
    assert not any(name.startswith("CALL") for name in names[branch:taken])


def test_nothing_stands_between_a_call_and_its_hot_path():
    def body(x: Any, self: Any = 5.0) -> Any:  # no name of an argument is taken
        return x * self

    step = jv.compile(body)
    hot(step, 1.0)
    first = step.__call__
    hot(step, jnp.ones(2))
    assert step.__call__ is not first
    assert call_hot(step, 1.0) == 5.0
    assert step(3.0, self=2.0) == 6.0
    path, names = step.__call__, []
    while path.__code__.co_filename == cells.HOT_PATH_FILE:
        names.append(path.__globals__["miss"])
        path = names[-1]
    assert [getattr(name, "__func__", None) for name in names] == [None, jv.Function._call]
    assert inspect.getdoc(jv.Function.__call__) == "Call the function."


def test_a_call_with_names_that_the_hot_path_cannot_run_takes_the_slow_way():
    total, step, runs = counter()
    for _ in range(3):
        step(x=1.0)
    with jax.default_matmul_precision("float32"):
        step(x=1.0)
    assert float(total) == 4.0
    assert len(runs) == 2
    with jv.GradientTape():
        assert step(x=2.0) == 6.0
    huge = jv.compile(lambda n: total.assign_add(n * 1.0))
    for _ in range(3):
        huge(n=1)
    with pytest.raises(DtypeError, match="int32"):
        huge(n=2**40)
    assert float(total) == 9.0


def test_which_types_are_traced():
    assert all(map(is_traced, (int, float, complex, np.ndarray, np.float32, type(jnp.ones(1)))))
    assert not any(map(is_traced, (bool, str, np.bool_, np.str_, object, jv.Variable)))


# ---------------------------------------------------------------- settings that come and go
def test_each_setting_keeps_its_hot_path():
    total, step, runs = counter()
    hot(step, 1.0)
    for _ in range(150):
        with jax.default_matmul_precision("float32"):
            step(1.0)
        step(1.0)
    call_hot(step, 1.0)
    assert float(total) == 305
    assert len(runs) == 2
    assert step._paths._written <= 4
    with jax.default_matmul_precision("float32"):
        step(1.0)
        call_hot(step, 1.0)


def test_writing_hot_paths_stops_when_calls_differ_and_goes_on_when_they_do_not(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_hotpath, "perf_counter", lambda: now[0])
    monkeypatch.setattr(_hotpath, "_WRITTEN", 2)
    real = _hotpath.write

    def write_slowly(*args: Any, **options: Any) -> Any:
        now[0] += 1.0
        return real(*args, **options)

    monkeypatch.setattr(_hotpath, "write", write_slowly)
    step = jv.compile(lambda x: x * 2)
    for n in range(1, 5):
        for _ in range(3):
            step(jnp.ones(n))
    assert step._paths._written == 3
    now[0] += 1000.0
    hot(step, jnp.ones(9))

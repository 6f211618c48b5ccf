"""State that is not in a Variable: an error or a warning once the function has been traced."""

from __future__ import annotations

import copy
import functools
import gc
import threading
import warnings
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars import tf
from jaxvars.errors import CompileError, LeakWarning
from jaxvars.tracing import context

MEAN: Any = 0.0
CACHE: dict[str, Any] = {}
KEPT: list[Any] = []


class Average(jv.Module):
    """A Module that keeps state in attributes."""

    ema: Any
    total: Any = 0.0

    def __init__(self) -> None:
        self.ema = 0.0
        self.cache: dict[str, Any] = {}
        self.w = jv.Variable(1.0)
        self.state: Any = optax.sgd(0.1, momentum=0.9).init({"w": jnp.ones(2)})

    @jv.compile
    def step(self, x: Any) -> Any:
        self.w.assign_add(1.0)
        self.ema = 0.9 * self.ema + 0.1 * x
        return self.ema

    @jv.compile
    def scan(self, x: Any, scan: Any = jv.scan) -> Any:
        def body(c: Any, y: Any) -> Any:
            self.ema = c
            return c + y, y

        return scan(body, 0.0, x)[0]

    @jv.compile
    def branch(self, x: Any) -> Any:
        def yes() -> Any:
            self.ema = x * 2
            return x

        return jv.cond(x > 0, yes, lambda: -x)

    @jv.compile
    def loop(self, x: Any) -> Any:
        def body(y: Any) -> Any:
            self.ema = y
            return y * 2

        return jv.while_loop(lambda y: y < 10, body, x)

    @functools.cached_property
    def table(self) -> Any:
        return jnp.arange(3.0) * 2


X = jnp.float32(1.0)


def test_an_attribute_of_a_module_is_an_error_that_shows_the_cure():
    model = Average()
    with pytest.raises(CompileError) as found:
        model.step(X)
    first, *cure = str(found.value).splitlines()
    assert first.startswith("self.ema of Average is assigned at test_watch.py:")
    assert ", in step, in a compiled function: it would stay what it was at the first call" in first
    value = "0.9 * self.ema + 0.1 * x"
    assert cure[:2] == [
        "    self.ema = jv.Variable(0.0)    # in __init__",
        f"    self.ema.assign({value})    # not: self.ema = {value}",
    ]
    assert (model.ema, float(model.w)) == (0.0, 1.0)
    with pytest.raises(CompileError, match=r"self\.ema of Average"):
        model.step(X)  # again: it has no program
    assert model.step.trace_count == 0


def test_the_cure_computes_what_python_does():
    model = Average()
    model.ema = jv.Variable(0.0)

    @jv.compile
    def step(x: Any) -> Any:
        model.ema.assign(0.9 * model.ema + 0.1 * x)
        return model.ema.value

    np.testing.assert_allclose([step(X) for _ in range(3)], [0.1, 0.19, 0.271], rtol=1e-5)


@pytest.mark.parametrize("way", ["scan", "branch", "loop"])
def test_what_escapes_from_a_body_is_found(way: str):
    model = Average()
    with pytest.raises(CompileError, match=r"self.ema of Average is assigned at test_watch.py:\d+"):
        getattr(model, way)(jnp.ones(3) if way == "scan" else X)
    assert model.ema == 0.0


def test_what_escapes_from_a_scan_of_jax_is_found():
    model = Average()
    scan = jv.compile(lambda x: Average.scan.python_function(model, x, jax.lax.scan))
    with pytest.raises(CompileError, match=r"self\.ema of Average"):
        scan(jnp.ones(3))
    assert model.ema == 0.0


def test_a_container_in_a_module_still_holds_it_and_the_message_says_so():
    model = Average()

    @jv.compile
    def keep(x: Any) -> Any:
        model.cache["x"] = x * 2
        return x

    with pytest.raises(CompileError) as found:
        keep(X)
    assert "    model.cache['x'].assign(x * 2)    # not: model.cache['x'] = x * 2" in str(
        found.value
    )
    assert "These still hold what was traced, set them again: model.cache['x']." in str(found.value)
    model.cache["x"] = jv.Variable(0.0)
    with pytest.raises(CompileError, match=r"model\.cache"):
        keep(X)  # replaces the Variable
    model.cache.clear()


def test_a_state_of_optax_is_kept_by_variables():
    model, rule = Average(), optax.sgd(0.1, momentum=0.9)

    @jv.compile
    def update(g: Any) -> Any:
        updates, model.state = rule.update(g, model.state)
        return updates

    before = model.state
    with pytest.raises(CompileError, match=r"model.state of Average is assigned at") as found:
        update({"w": jnp.ones(2)})
    assert "model.state = jv.variables(optax.sgd(0.1, momentum=0.9).init(" in str(found.value)
    assert model.state is before


@pytest.mark.parametrize(
    ("first", "value", "made"),
    [
        (lambda m: setattr(m, "total", 0), jnp.float32(1), "0.0"),
        (lambda m: setattr(m, "total", None), jnp.int32(1), "0"),
        (lambda m: setattr(m, "total", None), jnp.ones(3), "jnp.zeros((3,))"),
        (
            lambda m: setattr(m, "total", None),
            jnp.ones((2, 1), jnp.bfloat16),
            "jnp.zeros((2, 1), 'b",
        ),
        (lambda m: setattr(m, "total", None), jnp.bool_(1), "False"),
    ],
)
def test_a_variable_is_made_with_the_shape_and_dtype_that_it_needs(
    first: Any, value: Any, made: str
):
    model = Average()
    first(model)
    with pytest.raises(CompileError) as found:
        jv.compile(lambda x: setattr(model, "total", x))(value)
    assert f"self.total = jv.Variable({made}" in str(found.value)


def test_a_variable_is_made_of_what_init_has():
    class Model(jv.Module):
        def __init__(self) -> None:
            self.start, self.mean = 1, jnp.zeros(3)
            self.one = 1

        @jv.compile
        def step(self, x: Any) -> Any:
            self.mean = self.mean + x
            return x

        @jv.compile
        def grow(self, x: Any) -> Any:
            self.one = self.one * x
            return x

        @jv.compile
        def start_again(self, x: Any) -> Any:
            self.start *= x
            return x

    model = Model()
    with pytest.raises(CompileError, match=r"self.mean = jv.Variable\(jnp.zeros\(\(3,\)\)\)"):
        model.step(jnp.ones(3))
    with pytest.raises(CompileError, match=r"self.one = jv.Variable\(jnp.full\(\(3,\), 1.0\)\)"):
        model.grow(jnp.ones(3))
    with pytest.raises(
        CompileError, match=r"self.start.assign\(self.start \* x\)    # not: self.st"
    ):
        model.start_again(X)
    assert model.start == 1


def test_an_attribute_that_was_not_there_is_taken_away_and_slots_are_set_back():
    class Slotted(jv.Module):
        __slots__ = ("held",)
        held: Any

    class Plain(jv.Module):
        new: Any

    slotted, plain = Slotted(), Plain()
    slotted.held = 2.0

    def assign(model: Any, name: str) -> Any:
        with pytest.raises(CompileError, match=f"self.{name} of"):
            jv.compile(lambda x: setattr(model, name, x * 2))(X)

    assign(slotted, "held")
    assign(plain, "new")
    assert slotted.held == 2.0
    assert not hasattr(plain, "new")


def test_a_property_is_what_its_setter_sets():
    class Model(jv.Module):
        _mean: Any = 1.0

        @property
        def mean(self) -> Any:
            return self._mean

        @mean.setter
        def mean(self, value: Any) -> None:
            self._mean = value

    model = Model()
    with pytest.raises(CompileError, match=r"self\._mean of Model is assigned"):
        jv.compile(lambda x: setattr(model, "mean", x * 2))(X)
    assert (model.mean, "_mean" in vars(model)) == (1.0, False)


def test_a_module_of_tensorflow_and_its_function():
    class Mean(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ema: Any = 0.0

        @tf.function
        def step(self, x: Any) -> Any:
            self.ema = 0.9 * self.ema + 0.1 * x
            return self.ema

    model = Mean()
    with pytest.warns(LeakWarning, match=r"self.ema = tf.Variable\(0.0\)    # in __init__"):
        assert float(model.step(tf.constant(1.0))) == np.float32(0.1)  # as TensorFlow does it
    assert context.is_tracer(model.ema._array)


def test_what_a_failed_trace_has_assigned_is_set_back():
    model = Average()

    @jv.compile
    def fail(x: Any) -> None:
        model.ema = x * 2
        model.cache = {"known": 1.0}
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail(X)
    assert (model.ema, model.cache) == (0.0, {"known": 1.0})


def test_in_the_first_call_that_creates_variables():
    class Lazy(jv.Module):
        w: Any = None
        seen: Any = 0.0

        @jv.compile
        def step(self, x: Any) -> Any:
            if self.w is None:
                self.w = jv.Variable(x * 2)
            self.seen = self.seen + x
            return self.w * x

    model = Lazy()
    with pytest.raises(CompileError, match=r"self\.seen of Lazy is assigned"):
        model.step(X)
    assert "seen" not in vars(model)
    assert float(model.w) == 2.0


# ---------------------------------------------------------------- warnings
def test_a_global_a_dict_and_a_list_are_warned_of():
    @jv.compile
    def step(x: Any) -> Any:
        global MEAN
        MEAN = 0.9 * MEAN + 0.1 * x
        CACHE["x"] = x * 2
        KEPT.append(x)
        return x

    with pytest.warns(LeakWarning) as found:
        step(X)
    said = str(found[0].message)
    assert found[0].filename == __file__
    assert "The global MEAN is assigned at test_watch.py:" in said
    assert "    MEAN = jv.Variable(0.0)    # outside\n    MEAN.assign(0.9 * MEAN + 0.1 * x)" in said
    assert "The global CACHE['x'] is assigned at" in said
    assert "The global KEPT is changed at" in said
    assert "Return the value, and do it outside: KEPT.append(x)" in said
    CACHE.clear()
    KEPT.clear()
    globals()["MEAN"] = 0.0


def make_counter() -> Any:
    count: Any = 0.0

    def step(x: Any) -> Any:
        nonlocal count
        count += x
        return x

    return step


def test_a_variable_around_a_function_is_warned_of_once_in_nested_functions():
    inner = jv.compile(make_counter())
    with pytest.warns(
        LeakWarning, match=r"count, a variable around make_counter.<locals>.step, is"
    ) as found:
        jv.compile(lambda x: inner(x) + 1)(X)
    assert len(found) == 1
    assert "count.assign_add(x)    # not: count += x" in str(found[0].message)


def test_objects_classes_functions_and_defaults_are_warned_of():
    class Plain:
        total: Any = 0.0

    plain = Plain()

    def helper(x: Any) -> Any:
        helper.last = x  # pyright: ignore[reportFunctionMemberAccess]
        return x

    def with_default(x: Any, seen: Any = []) -> Any:  # noqa: B006 - it is what is tested
        seen.append(x)
        return x

    def assign(x: Any) -> None:
        Plain.total = x * 2

    for fn, said in (
        (lambda x: setattr(plain, "mean", x), "mean of Plain holds a value"),
        (assign, "Plain.total is assigned at"),
        (helper, "helper.last is assigned at"),
        (lambda x: with_default(x), "seen, a default argument of .*with_default, is changed"),
    ):
        with pytest.warns(LeakWarning, match=said):
            jv.compile(fn)(X)


def test_caches_of_functools_are_warned_of():
    @functools.lru_cache
    def mask(n: int) -> Any:
        return jnp.ones(n)

    with pytest.warns(LeakWarning, match="What functools keeps of mask .* Compute it before"):
        assert jv.compile(lambda x: x * mask(3))(X).shape == (3,)
    model = Average()
    with pytest.warns(LeakWarning, match=r"self\.table of Average was computed while"):
        jv.compile(lambda x: x * model.table)(X)


def test_a_warning_that_is_an_error_comes_before_the_program_runs():
    model, kept = Average(), []

    @jv.compile
    def step(x: Any) -> None:
        model.w.assign_add(x)
        kept.append(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakWarning)
        for _ in range(2):
            with pytest.raises(LeakWarning, match="kept"):
                step(X)
    assert float(model.w) == 1.0


def test_a_pure_function_under_jit_is_warned_of():
    model = Average()
    pure = jv.functionalize(Average.step.python_function)
    state = jv.State.of(model)
    with pytest.warns(LeakWarning, match=r"self\.ema of Average is assigned at"):
        jax.jit(lambda s, x: pure(s, model, x))(state, X)
    model.ema = 0.0
    for _ in range(2):
        pure(state, model, X)
    assert float(model.ema) == pytest.approx(0.19)


# ---------------------------------------------------------------- no false alarms
@jax.custom_jvp
def twice(x: Any) -> Any:
    return 2 * x


twice.defjvps(lambda t, _, __: 2 * t)


def in_custom_jvp(x: Any) -> Any:
    held = [x * 3]

    @jax.custom_jvp
    def scale(y: Any) -> Any:
        return y * held[0]

    scale.defjvps(lambda t, _, __: t * held[0])
    return twice(scale(x)) + jax.jit(lambda y: y * held[0])(x)


def in_cycle(x: Any) -> Any:
    loop: list[Any] = [x]
    loop.append(loop)
    return x


def in_generator(x: Any) -> Any:
    GENERATORS.append(y for y in [x * 2, x] if y is not None)
    next(GENERATORS[-1])
    return x


GENERATORS: list[Any] = []


def in_attribute_for_a_while(x: Any) -> Any:
    MODEL.ema = x * 2
    KEPT.append(x)
    result = MODEL.ema + KEPT.pop()
    MODEL.ema = 0.0
    return result


def in_error(x: Any) -> Any:
    try:
        raise KeyError(x)
    except KeyError as error:
        return x + len(error.args)


def in_tape(x: Any) -> Any:
    with jv.GradientTape(persistent=True) as MODEL.tape:
        MODEL.tape.watch(x)
        y = x * x
    return MODEL.tape.gradient(y, x)


MODEL: Any = Average()


@pytest.mark.parametrize(
    "fn", [in_custom_jvp, in_cycle, in_generator, in_attribute_for_a_while, in_error, in_tape]
)
def test_what_is_no_state_is_passed_over(fn: Any):
    gc.disable()
    try:
        step = jv.compile(fn)
        for size in (1, 3):
            step(jnp.ones(size))
            jv.compile(lambda x: step(x) + 1)(jnp.ones(size))
            jax.jit(lambda x: step(x) + 1)(jnp.ones(size))
    finally:
        gc.enable()


def test_a_tracer_of_the_function_around_is_not_the_inner_ones():
    inner = jv.compile(lambda x: x + 1)

    @jv.compile
    def outer(x: Any) -> Any:
        MODEL.ema = x * 2
        y = inner(x) + MODEL.ema
        MODEL.ema = 0.0
        return y

    assert float(outer(X)) == 4.0


def test_threads_that_trace_at_a_time_are_told_apart():
    models = [Average() for _ in range(4)]
    found: list[str] = []

    def run(model: Any) -> None:
        try:
            model.step(X)
        except CompileError as error:
            found.append(str(error)[:8])

    threads = [threading.Thread(target=run, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found, [m.ema for m in models]) == (["self.ema"] * 4, [0.0] * 4)


@pytest.mark.parametrize("set_in_branch", [
    lambda model: object.__setattr__(model, "ema", 7.0),
    lambda model: run_in_threads(lambda: setattr(model, "ema", 7.0)),
], ids=["object", "thread"])  # fmt: skip
def test_an_attribute_that_is_set_unseen_in_a_branch_has_its_old_value_again(set_in_branch):
    model, put = Average(), jv.autograph.do_not_convert(set_in_branch)

    @jv.compile(autograph=True)
    def step(x: Any) -> Any:
        y = x
        if x > 0:
            put(model)
            y = x * model.ema
        return y

    with pytest.raises(CompileError, match=r"ema of Average holds a value"):
        step(X)
    assert model.ema == 0.0


def test_nothing_is_kept_of_a_trace_and_a_copy_is_another_module():
    model = Average()
    with pytest.raises(CompileError):
        model.step(X)
    other = copy.deepcopy(model)
    ref = weakref.ref(model)
    with pytest.raises(CompileError):
        other.step(X)
    del model
    gc.collect()
    assert ref() is None


def test_no_code_of_the_user_runs_in_the_search():
    class Strict:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = None  # pyright: ignore[reportAssignmentType]

    class Loud(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError

        def __iter__(self) -> Any:
            raise AssertionError

    odd, loud, kept = Strict(), Loud(), []
    dict.__setitem__(loud, "x", 1)

    @jv.compile
    def step(x: Any) -> Any:
        kept.append((x, odd, loud) if x is not None else ())
        return x

    with pytest.warns(LeakWarning, match="kept, a variable around"):
        step(X)


def test_a_module_that_nothing_keeps_is_not_kept():
    class Lost(jv.Module):
        def __init__(self) -> None:
            self.w = jv.Variable(1.0)

    with pytest.raises(jv.errors.CreationError, match="nothing keeps it"):
        jv.compile(lambda x: x * Lost().w)(X)


def test_a_module_that_is_false_and_one_with_the_id_of_another():
    class Empty(jv.Module):
        mean: Any = 0.0

        def __len__(self) -> int:
            return 0

    def step(x: Any) -> Any:
        for _ in range(100):
            Empty().mean = x
        kept[0].mean = x
        return x

    kept = [Empty()]
    with pytest.raises(CompileError, match="mean of Empty is assigned"):
        jv.compile(step)(X)
    assert kept[0].mean == 0.0


# ---------------------------------------------------------------- verify
def test_verify_explains_state_that_is_not_in_variables():
    model, kept = Average(), []
    with pytest.raises(CompileError, match=r"self\.ema\.assign"):
        jv.debugging.verify(model.step, X)
    step = jv.compile(lambda x: kept.append(x) or sum(kept))
    for _ in range(2):
        with pytest.raises(jv.errors.CheckError, match=r"verify\(.*\): kept, a variable around"):
            jv.debugging.verify(step, X)

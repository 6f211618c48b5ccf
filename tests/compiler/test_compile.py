"""`jv.compile`: one trace for each signature, variables captured, created and kept, errors.

Rules of this file:
- Python runs once for a trace, so a list that a body appends to counts the traces;
- whatever raises, the function is used again afterwards.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import gc
import inspect
import threading
import weakref
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.errors import CheckError, CompileError, CreationError, StringVariableError


class Dense(jv.Module):
    def __init__(self, value: float = 2.0) -> None:
        self.w = jv.Variable(value, name="w")
        self.runs: list[None] = []

    @jv.compile
    def __call__(self, x: Any) -> Any:
        self.runs.append(None)
        return self.w * x

    @jv.compile
    def grow(self, x: Any = 1.0) -> Any:
        self.runs.append(None)
        return self.w.assign_add(x)


# ---------------------------------------------------------------- capture
def test_variables_are_found_in_one_trace():
    w, b = jv.Variable([1.0, 2.0], name="w"), jv.Variable(1.0, name="b")
    runs: list[None] = []

    @jv.compile
    def step(x: Any) -> Any:
        runs.append(None)
        with jv.GradientTape() as tape:
            loss = jnp.sum((w * x + b) ** 2)
        gw, gb = tape.gradient(loss, [w, b])
        w.assign_sub(0.1 * gw)
        b.assign_sub(0.1 * gb)
        return loss

    eager = jv.State.of(w=w, b=b)
    for _ in range(4):
        step(jnp.array([1.0, -1.0]))
    got = w.numpy(), b.numpy()
    eager.commit()
    for _ in range(4):
        step.python_function(jnp.array([1.0, -1.0]))
    np.testing.assert_allclose(got[0], w.numpy(), rtol=1e-5)
    np.testing.assert_allclose(got[1], b.numpy(), rtol=1e-5)
    assert len(runs) == 1 + 4
    assert [v.name for v in step.trace(jnp.array([1.0, -1.0])).captured] == ["w", "b"]


def test_reads_inside_control_flow_and_inner_transforms_are_found():
    a, b, c, d = (jv.Variable(float(i), name=f"v{i}") for i in (2, 3, 5, 7))

    @jv.compile
    def step(x: Any) -> Any:
        x, _ = jax.lax.scan(lambda s, _: (s * a.value, None), x, None, length=2)
        x = jax.lax.cond(x > 0, lambda x: x + b.value, lambda x: x, x)
        x = x + jax.grad(lambda y: y * c.value)(x)
        return jax.vmap(lambda y: y * d)(jnp.stack([x, x]))

    for _ in range(3):
        assert step(1.0).tolist() == [84.0, 84.0]
    d.assign(1.0)
    assert step(1.0).tolist() == [12.0, 12.0]
    assert step.trace_count == 1


def test_module_level_bodies_that_read_variables_can_be_used_again():
    """JAX remembers traces by function; a trace must not outlive the values that it read."""
    w = jv.Variable(2.0)

    def body(carry: Any, _: Any) -> Any:
        return carry * w.value, None

    jitted, saved = jax.jit(lambda x: x * w.value), jax.checkpoint(lambda x: x * w.value)

    def all_of_them(x: Any) -> Any:
        y, _ = jax.lax.scan(body, x, None, length=1)
        return jnp.stack([y, jitted(x), saved(x)])

    @jv.compile
    def step(x: Any, other: Any) -> Any:
        before = all_of_them(x)
        w.assign(w * 5.0)
        return before, all_of_them(x) + 0 * jnp.sum(other)

    for other in (1.0, jnp.ones(2), jnp.ones(3)):
        w.assign(2.0)
        before, after = step(1.0, other)
        assert before.tolist() == [2.0] * 3
        assert after.tolist() == [10.0] * 3
    with jv.GradientTape() as tape:
        y = step(1.0, 1.0)[1].sum()
    assert float(tape.gradient(y, w)) == 3.0  # what was assigned is read again, as eagerly


def test_module_level_bodies_in_a_function_that_creates_variables():
    made: list[jv.Variable] = []

    def body(carry: Any, _: Any) -> Any:
        return carry * made[0].value, None

    @jv.compile
    def step(x: Any) -> Any:
        if not made:
            made.append(jv.Variable(3.0))
        return jax.lax.scan(body, x, None, length=2)[0]

    assert [float(step(1.0)), float(step(2.0))] == [9.0, 18.0]


def test_module_level_bodies_in_pure_functions():
    w = jv.Variable(2.0)
    jitted = jax.jit(lambda x: x * w.value)
    pure = jv.functionalize(lambda x: jitted(x))
    state = jv.State.of(w)
    tenfold = jax.tree.map(lambda x: 10 * x, state)
    assert [float(pure(s, 1.0)[0]) for s in (state, tenfold, state)] == [2.0, 20.0, 2.0]
    compiled = jax.jit(pure)
    assert [float(compiled(s, 1.0)[0]) for s in (state, tenfold)] == [2.0, 20.0]
    assert jax.vmap(pure, (0, None))(jax.tree.map(lambda *x: jnp.stack(x), state, tenfold), 1.0)[
        0
    ].tolist() == [2.0, 20.0]


def test_a_variable_returned_is_its_value():
    v = jv.Variable([1.0, 2.0])
    step = jv.compile(lambda: {"v": v, "new": v.assign_add([1.0, 1.0]), "part": v[0]})
    result = step()
    assert isinstance(result["v"], jax.Array)
    assert result["new"].tolist() == [2.0, 3.0]
    assert step()["new"].tolist() == [3.0, 4.0]


def test_results_that_are_not_arrays_are_kept():
    step = jv.compile(lambda x: (x, "text", None, [jnp.sin], {"n": 3}))
    for _ in range(3):
        x, text, none, functions, n = step(2.0)
        assert (float(x), text, none, functions, int(n["n"])) == (2.0, "text", None, [jnp.sin], 3)


def test_python_side_effects_happen_once_for_each_trace(capsys: pytest.CaptureFixture[str]):
    @jv.compile
    def step(x: Any) -> Any:
        print("tracing")
        return x + 1

    for x in (1.0, 2.0, jnp.ones(2), 3.0, jnp.ones(2)):
        step(x)
    assert capsys.readouterr().out == "tracing\n" * 2


def test_a_variable_that_is_replaced_is_traced_anew():
    holder = {"w": jv.Variable(2.0)}
    runs: list[None] = []

    @jv.compile
    def step(x: Any) -> Any:
        runs.append(None)
        return holder["w"] * x

    assert [float(step(1.0)) for _ in range(3)] == [2.0] * 3
    del holder["w"]
    holder["w"] = jv.Variable(7.0)
    assert [float(step(1.0)) for _ in range(3)] == [7.0] * 3
    assert len(runs) == 2
    assert "gone" in step.traces[1][1]


def test_a_variable_that_is_deleted_is_missed():
    holder = {"w": jv.Variable(2.0)}
    step = jv.compile(lambda x: holder["w"] * x)
    step(1.0)
    step(1.0)
    del holder["w"]
    with pytest.raises(KeyError, match="w"):
        step(1.0)


# ---------------------------------------------------------------- what can be compiled
def test_objects_with_variables_are_arguments():
    class Plain:
        def __init__(self) -> None:
            self.v = jv.Variable(10.0)

    @jv.compile
    def step(model: Dense, v: jv.Variable, plain: Plain, many: list[jv.Variable], x: Any) -> Any:
        v.assign_add(x)
        plain.v.assign_add(v)
        many[1].assign(many[0] + 1)
        return model.w * x

    model, v, plain, many = Dense(), jv.Variable(0.0), Plain(), [jv.Variable(5.0), jv.Variable(0.0)]
    for _ in range(3):
        assert float(step(model, v, plain, many, 2.0)) == 4.0
    assert (float(v), float(plain.v), float(many[1])) == (6.0, 22.0, 6.0)
    other = jv.Variable(100.0)
    step(model, other, plain, many, 2.0)
    assert (float(v), float(other)) == (6.0, 102.0)
    assert step.trace_count == 2


def test_methods_are_compiled_for_each_object():
    a, b = Dense(2.0), Dense(3.0)
    for _ in range(3):
        assert (float(a(1.0)), float(b(1.0))) == (2.0, 3.0)
    assert (len(a.runs), len(b.runs)) == (1, 1)
    assert float(a.grow()) == 3.0
    assert float(a.grow(x=1.0)) == 4.0
    assert len(a.runs) == 2
    assert float(b.w) == 3.0


def test_a_bound_method_looks_like_the_function():
    model = Dense()
    model(1.0)
    assert model.grow.__self__ is model
    assert isinstance(Dense.grow, jv.Function)
    assert Dense.grow.__name__ == "grow"
    assert float(model.grow.python_function(1.0).value) == 3.0
    assert "grow" in repr(model.grow)
    assert model.grow.trace_count == Dense.grow.trace_count
    assert len(model.grow.traces) == len(Dense.grow.traces)
    assert model.grow.__name__ == "grow"
    assert model.grow.__qualname__ == Dense.grow.__qualname__
    assert list(inspect.signature(model.grow).parameters) == ["x"]
    with pytest.raises(AttributeError, match="'BoundFunction' object has no attribute 'other'"):
        model.grow.other  # noqa: B018 - it raises
    half = jv.compile(lambda model, x, mode: x * (0.5 if mode == "half" else 2.0))
    jitted = jax.jit(half.__get__(model), static_argnames="mode")
    assert [float(jitted(3.0, mode)) for mode in ("half", "twice")] == [1.5, 6.0]


def test_compiling_a_bound_method_a_callable_object_and_a_compiled_function():
    class Twice:
        def __init__(self) -> None:
            self.v = jv.Variable(2.0)

        def __call__(self, x: Any) -> Any:
            return self.v * x

        def other(self, x: Any) -> Any:
            return self.v + x

    twice = Twice()
    for compiled, result in (
        (jv.compile(twice), 6.0),
        (jv.compile(twice.other), 5.0),
        (jv.compile(jv.compile(twice.other)), 5.0),
    ):
        assert [float(compiled(3.0)) for _ in range(3)] == [result] * 3


def test_static_and_class_methods():
    class C:
        scale = 3.0

        @staticmethod
        @jv.compile
        def double(x: Any) -> Any:
            return 2 * x

        @classmethod
        @jv.compile
        def scaled(cls, x: Any) -> Any:
            return cls.scale * x

    for _ in range(3):
        assert (float(C.double(2.0)), float(C().double(2.0))) == (4.0, 4.0)
        assert (float(C.scaled(2.0)), float(C().scaled(2.0))) == (6.0, 6.0)


def test_partials():
    v = jv.Variable(1.0)

    def step(scale: Any, v: jv.Variable, x: Any, *, shift: Any = 0.0) -> Any:
        v.assign_add(x)
        return scale * v + shift

    bound = jv.compile(functools.partial(step, 2.0, v, shift=5.0))
    assert [float(bound(1.0)) for _ in range(3)] == [9.0, 11.0, 13.0]
    assert float(bound(1.0, shift=0.0)) == 10.0
    assert bound.trace_count == 1
    assert repr(bound) == "<compiled step, 1 trace>"


def test_decorator_forms():
    assert float(jv.compile()(lambda x: x + 1)(1.0)) == 2.0
    assert float(jv.compile(donate=False)(lambda x: x + 1)(1.0)) == 2.0

    @jv.compile
    def documented(x: Any) -> Any:
        """Say something."""
        return x

    assert documented.__doc__ == "Say something."
    assert documented.__name__ == "documented"


def test_what_is_not_a_function_is_refused():
    with pytest.raises(CompileError, match="takes a function, not int 3"):
        jv.compile(3)
    with pytest.raises(CompileError, match="donate is True, False or \"auto\", not 'yes'"):
        jv.compile(donate="yes")


# ---------------------------------------------------------------- nothing is kept alive
def test_objects_are_freed_with_what_was_compiled_for_them():
    gc.collect()
    arrays = len(jax.live_arrays())
    models = [Dense(float(i)) for i in range(10)]
    for model in models:
        for _ in range(3):
            model.grow(1.0)
    refs = [weakref.ref(model) for model in models]
    variables = [weakref.ref(model.w) for model in models]
    entries = len(Dense.grow._entries)
    del models, model
    gc.collect()
    assert [ref() for ref in (*refs, *variables)] == [None] * 20
    assert len(Dense.grow._entries) == entries - 10
    gc.collect()
    assert len(jax.live_arrays()) <= arrays


def test_a_method_that_returns_self_does_not_keep_it():
    class Builder(jv.Module):
        def __init__(self) -> None:
            self.v = jv.Variable(0.0)

        @jv.compile
        def add(self, x: Any) -> Builder:
            self.v.assign_add(x)
            return self

    builder = Builder()
    assert float(builder.add(1.0).add(2.0).add(3.0).v) == 6.0
    ref = weakref.ref(builder)
    del builder
    gc.collect()
    assert ref() is None


def test_a_new_object_at_the_address_of_an_old_one_is_new():
    step = jv.compile(lambda m, x: m.w * x)
    for i in range(50):
        model = Dense(float(i))
        assert [float(step(model, 1.0)) for _ in range(3)] == [float(i)] * 3
        del model
    assert len(step._entries) <= 1


def test_an_object_that_cannot_be_weakly_referred_to():
    class Slotted:
        __slots__ = ("w",)

        def __init__(self, value: float) -> None:
            self.w = jv.Variable(value)

    step = jv.compile(lambda m, x: m.w * x)
    for i in range(20):
        model = Slotted(float(i))
        assert [float(step(model, 1.0)) for _ in range(3)] == [float(i)] * 3


# ---------------------------------------------------------------- nested
def test_compiled_functions_in_compiled_functions():
    v = jv.Variable(1.0)
    runs: list[str] = []

    @jv.compile
    def inner(x: Any) -> Any:
        runs.append("inner")
        v.assign_add(x)
        return v * 2

    @jv.compile
    def outer(x: Any) -> Any:
        runs.append("outer")
        first = inner(x)
        v.assign(v * 10)
        return first + inner(x)

    assert float(outer(1.0)) == 4.0 + 42.0
    assert float(v) == 21.0
    assert float(inner(1.0)) == 44.0
    assert float(outer(1.0)) == 46.0 + 462.0
    assert runs == ["outer", "inner"]
    assert outer.trace(1.0).captured == (v,)


def test_endless_recursion_is_refused():
    @jv.compile
    def factorial(n: Any) -> Any:
        return n * factorial(n - 1)

    with pytest.raises(CompileError, match=r"factorial calls itself .*\(n: int32\[\]\).*static_"):
        factorial(3)
    with pytest.raises(CompileError, match="calls itself"):
        factorial(3)


def test_endless_recursion_through_another_function_is_refused():
    @jv.compile
    def even(n: Any) -> Any:
        return odd(n - 1)

    @jv.compile
    def odd(n: Any) -> Any:
        return even(n - 1)

    with pytest.raises(CompileError, match="even calls itself"):
        even(4)


def test_recursion_on_a_static_number_ends():
    compiled = jv.compile(lambda n: 1 if n == 0 else n * compiled(n - 1), static_argnames="n")
    assert [int(compiled(4)) for _ in range(3)] == [24] * 3
    assert compiled.trace_count == 5


def test_recursion_on_a_structure_ends():
    total = jv.compile(lambda t: t[0] + (total(t[1]) if len(t) > 1 else 0.0))
    assert float(total((1.0, (2.0, (3.0,))))) == 6.0
    assert total.trace_count == 3


# ---------------------------------------------------------------- creating variables
class Lazy(jv.Module):
    """Creates its variables on the first call, as layers do."""

    def __init__(self) -> None:
        self.w: jv.Variable | None = None
        self.runs: list[None] = []

    @jv.compile
    def __call__(self, x: Any) -> Any:
        self.runs.append(None)
        if self.w is None:
            self.w = jv.Variable(jnp.ones(x.shape[-1]) * 3, name="w")
        self.w.assign_add(jnp.ones(x.shape[-1]))
        return x * self.w


def test_variables_are_created_on_the_first_call():
    layer = Lazy()
    assert layer(jnp.ones(2)).tolist() == [4.0, 4.0]
    assert layer(jnp.ones(2)).tolist() == [5.0, 5.0]
    assert layer.w.numpy().tolist() == [5.0, 5.0]
    assert len(layer.runs) == 2
    assert layer(jnp.ones((3, 2))).shape == (3, 2)
    assert len(layer.runs) == 3


def test_each_object_has_a_first_call():
    first, second = Lazy(), Lazy()
    first(jnp.ones(2))
    assert second(jnp.ones(3)).tolist() == [4.0] * 3


def test_the_first_value_may_be_computed_from_arguments_and_variables():
    made: dict[str, jv.Variable] = {}
    base = jv.Variable(10.0)

    @jv.compile
    def step(x: Any, y: Any) -> Any:
        if not made:
            made["mean"] = jv.Variable(x.mean() + base, name="mean")
            made["copy"] = jv.Variable(made["mean"], name="copy")
            base.assign_add(1.0)
            made["later"] = jv.Variable(base * 2, name="later")
        made["mean"].assign_add(y)
        return made["mean"] * 1

    assert float(step(jnp.array([1.0, 3.0]), 1.0)) == 13.0
    assert float(made["mean"]) == 13.0
    assert float(made["copy"]) == 12.0
    assert float(made["later"]) == 22.0
    assert float(base) == 10.0  # the call that is kept is the second trace, which creates nothing
    assert float(step(jnp.array([0.0, 0.0]), 1.0)) == 14.0


def test_a_callable_initial_value_is_drawn_once():
    made: list[jv.Variable] = []
    draws: list[None] = []

    @jv.compile
    def step() -> Any:
        if not made:
            made.append(jv.Variable(lambda: draws.append(None) or jnp.ones(2)))
        return made[0].value

    assert step().tolist() == [1.0, 1.0]
    assert len(draws) == 1


def test_strings_and_constants_are_created_on_the_first_call():
    kept = []

    @jv.compile
    def step():
        if not kept:
            kept.extend([jv.Variable("a label", name="label"), jv.Variable(np.ones(2), name="w")])
        return kept[1] * 2

    assert step().tolist() == [2, 2]
    assert kept[0].numpy() == "a label"
    assert kept[0].value.dtype == np.dtypes.StringDType()
    kept[0].assign("another")
    assert kept[0].item() == "another"


def test_variables_are_created_in_nested_functions():
    made: list[jv.Variable] = []

    @jv.compile
    def inner(x: Any) -> Any:
        if not made:
            made.append(jv.Variable(x * 2))
        return made[0] * x

    outer = jv.compile(lambda x: inner(x) + 1)
    assert [float(outer(3.0)) for _ in range(3)] == [19.0] * 3
    assert float(made[0]) == 6.0
    assert float(inner(1.0)) == 6.0


def test_creating_later_is_refused_with_the_line():
    made: list[jv.Variable] = []

    @jv.compile
    def step(x: Any, more: bool = False) -> Any:
        if not made or more:
            made.append(jv.Variable(x, name="extra"))
        return made[0] * x

    step(1.0)
    with pytest.raises(ValueError, match="tried to create variables on non-first call") as caught:
        step(1.0, more=True)
    assert isinstance(caught.value, CreationError)
    line = step.python_function.__code__.co_firstlineno + 3
    assert f"Variable 'extra': test_compile.py:{line}, in step" in str(caught.value)
    assert "if self.w is None" in str(caught.value)
    assert float(step(2.0)) == 2.0
    with pytest.raises(ValueError, match="non-first call"):
        step(1.0, more=True)


def test_a_variable_without_a_reference_is_refused_with_advice():
    @jv.compile
    def step(x: Any) -> Any:
        w = jv.Variable(1.0, name="w")
        return w * x

    line = step.python_function.__code__.co_firstlineno + 2
    for _ in range(2):
        with pytest.raises(
            ValueError, match=rf"creates variable 'w' at test_compile.py:{line}.*nothing keeps it"
        ) as caught:
            step(1.0)
        assert "self.w" in str(caught.value)


def test_an_exception_after_creation_keeps_the_first_values():
    layer = Lazy()
    broken = [True]

    @jv.compile
    def step(x: Any) -> Any:
        y = layer.__call__(x) if layer.w is not None else None
        if layer.w is None:
            layer.w = jv.Variable(x * 2, name="w")
        layer.w.assign(x)
        if broken:
            raise RuntimeError("broken")
        return y

    with pytest.raises(RuntimeError, match="broken"):
        step(jnp.ones(2))
    assert layer.w.numpy().tolist() == [2.0, 2.0]
    broken.clear()
    step(jnp.ones(2))
    assert layer.w.numpy().tolist() == [1.0, 1.0]


def test_a_first_call_that_fails_before_it_creates_may_create_the_next_time():
    made: list[jv.Variable] = []
    broken = [True]

    @jv.compile
    def step(x: Any) -> Any:
        if broken:
            raise RuntimeError("broken")
        if not made:
            made.append(jv.Variable(x))
        return made[0] * 2

    with pytest.raises(RuntimeError, match="broken"):
        step(1.0)
    broken.clear()
    assert float(step(1.0)) == 2.0


def test_creating_inside_an_inner_transform_is_refused():
    made: list[jv.Variable] = []

    @jv.compile
    def step(xs: Any) -> Any:
        def body(carry: Any, x: Any) -> Any:
            made.append(jv.Variable(x, name="inner"))
            return carry, x

        return jax.lax.scan(body, 0.0, xs)

    with pytest.raises(CreationError, match=r"'inner' is created at test_compile\.py") as caught:
        step(jnp.ones(3))
    assert "scan" in str(caught.value)


@pytest.mark.parametrize(("transform", "result"), [(jax.grad, [2.0, 2.0]), (jax.vmap, [4.0, 4.0])])
def test_a_variable_made_of_what_a_transform_traces_is_named_with_its_line(
    transform: Any, result: Any
):
    class Scaled(jv.Module):
        w: jv.Variable | None = None

        @jv.compile
        def scale(self, x: Any) -> Any:
            if self.w is None:
                self.w = jv.Variable(x + 1, name="w")
            return (self.w * x).sum()

    line = inspect.getsourcelines(Scaled.scale.python_function)[1] + 3
    with pytest.raises(CreationError) as caught:
        transform(Scaled().scale)(jnp.ones(2))
    assert str(caught.value).startswith(
        "scale is called for the first time in a JAX transform (grad, vmap, ...), and creates "
        f"variable 'w' at test_compile.py:{line}, in scale: its first value would be made of what "
        "the transform traces. Call scale once with real arguments before, "
    )
    layer = Scaled()
    layer.scale(jnp.ones(2))  # as it says
    assert transform(layer.scale)(jnp.ones(2)).tolist() == result


def test_in_a_creating_function_the_other_variables_change_once():
    count = jv.Variable(0)
    layer = Lazy()

    @jv.compile
    def step(x: Any) -> Any:
        count.assign_add(1)
        return layer(x)

    for _ in range(3):
        step(jnp.ones(2))
    assert int(count) == 3
    assert layer.w.numpy().tolist() == [6.0, 6.0]


# ---------------------------------------------------------------- errors leave nothing changed
def test_an_exception_leaves_every_variable_and_no_entry():
    a, b = jv.Variable(1.0), jv.Variable([1.0, 2.0])
    broken = [True]

    @jv.compile
    def step(x: Any) -> Any:
        a.assign_add(x)
        b.assign(b * 2)
        if broken:
            raise RuntimeError("broken")
        return a + b

    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken"):
            step(1.0)
        assert float(a) == 1.0
        assert b.numpy().tolist() == [1.0, 2.0]
    assert step.trace_count == 0
    broken.clear()
    assert step(1.0).tolist() == [4.0, 6.0]


def test_wrong_assignments_are_found_while_tracing():
    v = jv.Variable([1.0, 2.0], name="v")
    step = jv.compile(lambda x: v.assign(x))
    with pytest.raises(ValueError, match=r"shape \(3,\) to variable 'v' of shape \(2,\)"):
        step(jnp.ones(3))
    with pytest.raises(TypeError, match="int32 to variable 'v' of dtype float32"):
        step(jnp.ones(2, jnp.int32))
    assert step(jnp.ones(2)).tolist() == [1.0, 1.0]


def test_an_error_that_jax_finds_leaves_the_function_usable():
    v = jv.Variable(jnp.ones(2))
    step = jv.compile(lambda x: v.assign_add(v @ x))
    with pytest.raises(TypeError, match="dot_general"):
        step(jnp.ones(3))
    assert step(jnp.ones(2)).tolist() == [3.0, 3.0]


def test_string_variables_are_refused_inside():
    text = jv.Variable("hello", name="text")
    with pytest.raises(
        StringVariableError, match="'text' holds strings and is used at test_compile"
    ):
        jv.compile(lambda: text.value)()
    with pytest.raises(StringVariableError, match="Read it outside and pass the string"):
        jv.compile(lambda: text.assign("x"))()
    assert jv.compile(lambda t, x: x if t == "hello" else -x)(text.item(), 2.0) == 2.0


def test_bool_of_a_traced_variable_is_refused():
    v = jv.Variable(1.0)
    with pytest.raises(jv.errors.ControlFlowError, match="only known when the compiled function"):
        jv.compile(lambda: 1 if v > 0 else 2)()


# ---------------------------------------------------------------- looking inside, modes
def test_traces_is_a_table_with_reasons():
    step = jv.compile(lambda x, flag=True: x)
    step(1.0)
    step(1.0)
    step(jnp.ones(3), False)
    table = step.traces
    assert table.columns == ("signature", "why", "seconds")
    assert table[0][:2] == ("x: float32[], flag: True", "first call")
    assert table[1][1] == "x: float32[] -> float32[3]; flag: True -> False"
    assert all(isinstance(row[2], float) and row[2] > 0 for row in table)
    assert str(table).startswith("traces of <lambda>")


def test_run_eagerly_runs_python_each_time():
    v = jv.Variable(1.0)
    runs: list[None] = []

    @jv.compile
    def step(x: Any) -> Any:
        runs.append(None)
        if v > 2:  # Python control flow on values works
            return v * 100
        return v.assign_add(x)

    jv.config.run_eagerly(True)
    try:
        for _ in range(4):
            result = step(1.0)
        assert float(result) == 300.0
        assert len(runs) == 4
    finally:
        jv.config.run_eagerly(False)
    jv.config.run_eagerly(False)  # twice is once
    with pytest.raises(jv.errors.ControlFlowError, match="in step needs to know a value"):
        step(1.0)


def test_a_module_with_compiled_functions_is_copied_and_its_copy_stands_alone():
    import copy

    class Trainer(jv.Module):
        def __init__(self) -> None:
            self.v = jv.Variable(0.0)
            self.step = jv.compile(self.update)

        def update(self, x: Any) -> Any:
            return self.v.assign_add(x)

    trainer = Trainer()
    trainer.step(1.0)
    other = copy.deepcopy(trainer)
    other.step(10.0)
    assert (float(trainer.v), float(other.v)) == (1.0, 11.0)
    assert len(trainer.variables) == 1


def test_no_tracer_leaks():
    layer = Lazy()
    v = jv.Variable(1.0)

    @jv.compile
    def step(x: Any) -> Any:
        with jv.GradientTape() as tape:
            y = jnp.sum(layer(x)) * v
        v.assign_sub(tape.gradient(y, v))
        return y, "text"

    with jax.checking_leaks():
        for _ in range(3):
            step(jnp.ones(2))


# ---------------------------------------------------------------- JAX's settings
SETTINGS: dict[str, tuple[Any, Any]] = {
    "jax_enable_x64": (jax.enable_x64, True),
    "jax_default_matmul_precision": (jax.default_matmul_precision, "highest"),
    "jax_threefry_partitionable": (jax.threefry_partitionable, False),
    "jax_default_prng_impl": (jax.default_prng_impl, "rbg"),
    "jax_numpy_dtype_promotion": (jax.numpy_dtype_promotion, "strict"),
    "jax_numpy_rank_promotion": (jax.numpy_rank_promotion, "raise"),
    "jax_default_device": (jax.default_device, jax.devices()[-1]),
}


@contextlib.contextmanager
def updated(name: str, value: Any) -> Generator[None]:
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, before)


@contextlib.contextmanager
def set_mesh(_: Any) -> Generator[None]:
    with jax.set_mesh(jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))):
        yield


OF_JIT = SETTINGS.keys() - {"jax_default_prng_impl"}  # which jit forgets
WAYS = [
    *(pytest.param(*SETTINGS[name], id=name) for name in sorted(OF_JIT)),
    *(
        pytest.param(functools.partial(updated, name), SETTINGS[name][1], id=f"update {name}")
        for name in sorted(OF_JIT)
    ),
    pytest.param(set_mesh, None, id="set_mesh"),
]


@pytest.mark.parametrize(("setting", "value"), WAYS)
def test_under_another_setting_another_program_runs(setting: Any, value: Any):
    w, seen = jv.Variable([1.0, 2.0]), []

    def look() -> Any:
        mesh = jax.sharding.get_abstract_mesh()
        return [str(getattr(jax.config, name)) for name in OF_JIT], mesh.axis_names

    @jv.compile
    def step(x: Any) -> Any:
        seen.append(None)
        w.assign_add(x)
        return look()

    def run() -> None:
        for _ in range(3):  # the hot path too
            assert step(np.float32(1.0)) == look()
            with jv.GradientTape():  # and in what goes on
                assert step(np.float32(1.0)) == look()

    def run_all() -> None:
        run()
        for _ in range(2):
            with setting(value):
                run()
            run()

    # Ctrl-C in a trace, in a test before, may leave a setting of JAX's fixed for its thread.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(run_all).result()
    assert (len(seen), float(w[0])) == (2, 31.0)
    assert step.traces.rows[1][1] == "JAX's settings changed"


def test_a_setting_gives_the_numbers_of_a_function_that_never_saw_another():
    programs = {
        "dtype": lambda x: jnp.asarray(np.float64(0.1)) + x,
        "key": lambda x: jax.random.key_data(jax.random.key(0)),
        "bits": lambda x: jax.random.bits(jax.random.key(1), (3,)),
        "raw key": lambda x: jax.random.bits(jax.random.PRNGKey(2), (3,)),
    }
    for name, program in programs.items():
        for with_, value in SETTINGS.values():
            step, x = jv.compile(program), np.zeros(2)
            for _ in range(3):
                step(x)
            with with_(value):
                found, want = [step(x) for _ in range(3)], jv.compile(program)(x)
            assert all(y.dtype == want.dtype and np.array_equal(y, want) for y in found), name


@pytest.mark.parametrize("makes", [False, True], ids=["", "makes a variable"])
@pytest.mark.parametrize("values", [["highest"], ["highest", None]], ids=["set", "set and unset"])
def test_a_setting_that_the_body_changes_as_it_is_traced(values: list[str | None], makes: bool):
    kept, runs = [] if makes else [jv.Variable(0.0)], []

    @jv.compile
    def step(x: Any) -> Any:
        if not kept:
            kept.append(jv.Variable(0.0))
        if len(runs) < len(values):  # as a library does that is imported here
            jax.config.update("jax_default_matmul_precision", values[len(runs)])
        runs.append(None)
        return kept[0].assign_add(x)

    found: list[float] = []

    def run() -> None:
        with updated("jax_default_matmul_precision", None):
            found.extend(float(step(1.0)) for _ in range(4))

    thread = threading.Thread(target=run, daemon=True)  # it was an endless loop
    thread.start()
    thread.join(60)
    assert found == [1.0, 2.0, 3.0, 4.0]
    assert step.trace_count <= 2


def test_a_setting_of_one_thread_is_its_own():
    step = jv.compile(lambda: jnp.ones(()).dtype.name)
    for _ in range(3):
        assert step() == "float32"

    def other() -> list[str]:
        with jax.enable_x64(True):
            return [step() for _ in range(3)]

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(other).result() == ["float64"] * 3
    assert step() == "float32"
    assert step.trace_count == 2


def test_a_named_axis_is_part_of_what_a_program_is_known_by():
    scaled = jv.compile(lambda x: x * jax.lax.axis_size("i"))
    for n in (2, 3, 2):
        found = jax.vmap(scaled, axis_name="i")(jnp.ones(n))
        assert found.tolist() == [float(n)] * n


def test_a_concrete_function_is_refused_under_other_settings():
    step = jv.compile(lambda x: x * 2.0)
    concrete, x = step.trace(jnp.ones(2)), jnp.ones(2)
    assert concrete(x).tolist() == [2.0, 2.0]
    with jax.enable_x64(True):
        for use in (lambda: concrete(x), concrete.lower, lambda: concrete.cost):
            with pytest.raises(
                CompileError, match=r"traced under other settings of JAX.*fn\.trace"
            ):
                use()
        assert step.trace(x)(x).tolist() == [2.0, 2.0]
    assert concrete(x).tolist() == [2.0, 2.0]
    assert step.trace_count == 2


def test_the_trace_survives_clear_caches_and_x64():
    v = jv.Variable([1.0, 2.0])
    runs: list[None] = []

    @jv.compile
    def step(x: Any) -> Any:
        runs.append(None)
        return v.assign_add(x)

    x = jnp.ones(2)
    for _ in range(3):
        step(x)
    jax.clear_caches()
    for _ in range(3):
        step(x)
    assert len(runs) == 1
    with jax.enable_x64(True):
        for _ in range(3):
            step(x)
        jax.clear_caches()
        step(x)
    assert step(x).dtype == jnp.float32
    assert v.numpy().tolist() == [12.0, 13.0]
    assert len(runs) == 2
    assert step(1.0).tolist() == [13.0, 14.0]
    with jax.enable_x64(True):
        assert [step(1.0).dtype for _ in range(3)] == [jnp.float32] * 3
    assert step(1.0).tolist() == [17.0, 18.0]


def test_a_new_function_for_each_call_is_freed():
    gc.collect()
    before = len(jax.live_arrays())
    v = jv.Variable(jnp.zeros(8))
    for i in range(10):
        jv.compile(lambda x, i=i: v.assign_add(x * i))(1.0)
    gc.collect()
    assert v.numpy()[0] == 45.0
    assert len(jax.live_arrays()) <= before + 2


# ---------------------------------------------------------------- Python's if on a traced value
def refusal_of(fn: Any, x: Any) -> str:
    """Return the message, which names the line, of the error that a traced value causes."""
    with pytest.raises(jv.errors.ControlFlowError) as caught:
        jv.compile(fn)(x)
    assert isinstance(caught.value, TypeError), "as JAX's own"
    message = str(caught.value)
    assert f"test_compile.py:{fn.__code__.co_firstlineno}, in <lambda>" in message
    return message


@pytest.mark.parametrize("fn", [
    lambda x: 1 if x > 0 else 2, lambda x: x > 0 and x < 1, lambda x: not x,
    lambda x: jv.cond(x > 0, lambda: 1 if x > 5 else 2, lambda: 3),
], ids=["if", "and", "not", "in a branch"])  # fmt: skip
def test_a_python_condition_on_a_traced_value_names_the_line_and_both_cures(fn):
    message = refusal_of(fn, 1.0)
    assert "@jv.compile(autograph=True)" in message
    assert "jv.cond(" in message
    assert "jv.while_loop(" in message


def test_a_guard_is_finite_or_none():
    with pytest.raises(jv.errors.CompileError, match="guard is None or \"finite\", not 'nan'"):
        jv.compile(lambda: 1, guard="nan")


@pytest.mark.parametrize(
    ("fn", "cure"),
    [
        (lambda n: list(range(n)), "jv.fori_loop(0, n"),
        (lambda n: float(n), "return loss    # not: float(loss)"),
        (lambda n: n.item(), "print(float(step(x)))"),
    ],
    ids=["range", "float", "item"],
)
def test_a_number_that_python_needs_is_named_by_its_line_with_the_cures(fn, cure):
    message = refusal_of(fn, 3)
    assert "static_argnames" in message
    assert cure in message


# ---------------------------------------------------------------- what can be used once
def test_functions_whose_body_runs_later_are_refused():
    def items():
        yield 1

    async def wait():
        return 1

    for fn in (items, wait):
        with pytest.raises(CompileError, match=f"{fn.__name__} is a generator or coroutine"):
            jv.compile(fn)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # JAX's, of iterators as leaves
def test_iterators_are_neither_taken_nor_returned():
    first = jv.compile(lambda it: next(it) * 1.0)
    for it in (iter([1.0, 2.0]), (x for x in (1.0, 2.0)), map(float, [1, 2])):
        with pytest.raises(CompileError, match=r"an iterator: .* step\(next\(iterator\)\)"):
            first(it)
    for make in (lambda: iter([1]), lambda: (1, map(str, [1])), lambda: {"a": iter([1])}):
        with pytest.raises(CompileError, match="which can be used once"):
            jv.compile(lambda x, make=make: make())(1.0)
    assert float(jv.compile(lambda xs: sum(xs))([1.0, 2.0])) == 3.0


@pytest.mark.parametrize("how", ["hot", "by name", "under a tape", "concrete"])
def test_a_numpy_array_may_be_written_to_when_the_call_has_returned(how: str, batch: Any):
    v = jv.Variable(jnp.ones(2**20))

    @jv.compile
    def step(x: Any) -> None:
        v.assign(v * 0 + x + 1)

    run: Any = {"by name": lambda x: step(x=x), "concrete": step.trace(v.value)}.get(how, step)
    for n in range(40):
        batch[:] = n
        with jv.GradientTape() if how == "under a tape" else contextlib.nullcontext():
            run(batch)
        batch[:] = -9
        assert set(v.numpy()[[0, -1]].tolist()) == {n + 1.0}


def test_an_abstract_method_stays_one():
    class Layer(abc.ABC):
        @jv.compile
        @abc.abstractmethod
        def call(self, x: float) -> Any: ...

    class Double(Layer):
        @jv.compile
        def call(self, x: float) -> Any:
            return 2 * x

    with pytest.raises(TypeError, match="abstract"):
        Layer()  # pyright: ignore[reportAbstractUsage] - that is what is tested
    assert float(Double().call(3.0)) == 6.0


@pytest.mark.parametrize("kind", [classmethod, staticmethod])
def test_a_method_of_the_class_is_compiled_below_its_decorator(kind: Any):
    said = f"is a {kind.__name__} already. Let @{kind.__name__} be the first line"
    with pytest.raises(CompileError, match=said):
        jv.compile(kind(lambda *args: args[-1]))

    class Doubling:
        double = kind(jv.compile(lambda *args: args[-1] * 2))

    assert float(Doubling.double(3.0)) == float(Doubling().double(3.0)) == 6.0


def test_a_compiled_function_keeps_its_options_when_it_is_compiled_again():
    v = jv.Variable(1.0, name="v")

    @jv.compile(guard="finite", static_argnames="power")
    def step(x: Any, power: int) -> None:
        v.assign(v / x**power)

    for again in (jv.compile(step), jv.compile(donate=False)(step)):
        with pytest.raises(CheckError, match="'v' not finite"):
            again(jnp.float32(0.0), 1)
        for power in (1, 2):
            again(jnp.float32(1.0), power)
        assert again.trace_count == 2
    assert float(v) == 1.0
    other = jv.compile(step, static_argnames=())
    assert other.traces is not step.traces


@pytest.mark.filterwarnings("ignore:.*callback:UserWarning")
@pytest.mark.parametrize("context", [contextlib.nullcontext, jv.transaction, jv.GradientTape])
def test_a_check_in_a_transform_of_jax_fails_a_call_in_any_block(context: Any):
    n = jv.Variable(0)

    @jv.compile
    def step(x: Any) -> Any:
        n.assign_add(1)
        return jax.jit(lambda y: (jv.debugging.assert_positive(y), y)[1])(x)

    with context(), pytest.raises(CheckError, match="x > 0 does not hold"):
        step(jnp.float32(-1.0))
    assert int(n) == 0

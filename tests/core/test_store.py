"""Values between the runs of a step: looked at, taken and replaced where they are."""

from __future__ import annotations

import _thread
import operator
import signal
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars.core.cells import CURRENT, SHARED
from jaxvars.core.failures import is_ready
from jaxvars.errors import ForeignTransformError
from jaxvars.tensors.array_like import ArrayProxy
from jaxvars.tracing import signals


def steps(n: int = 3, size: Any = ()) -> tuple[list[jv.Variable], Callable[[], Any]]:
    """Return variables and a step that adds one to each, whose values are in its write-back."""
    variables = [jv.Variable(jnp.full(size, float(i)), name=f"v{i}") for i in range(n)]

    @jv.compile
    def step() -> Any:
        for variable in variables:
            variable.assign_add(jnp.ones(size))
        return variables[0] * 1

    for _ in range(3):
        step()
    assert CURRENT[0] is not None
    return variables, step


def pointer(variable: jv.Variable) -> int:
    return variable._look().unsafe_buffer_pointer()


LOOKS = {
    "float": float, "int": int, "bool": bool, "complex": complex, "item": lambda v: v.item(),
    "numpy": lambda v: v.numpy(), "copy": lambda v: np.array(v, copy=True), "repr": repr,
    "format": lambda v: f"{v:.1f}", "operator": lambda v: v * 2, "reflected": lambda v: 2 - v,
    "comparison": lambda v: v == 3, "both": lambda v: v + v, "sharding": lambda v: v.sharding,
}  # fmt: skip


@pytest.mark.parametrize("how", LOOKS)
def test_what_only_looks_leaves_the_values_with_the_step_and_unmarked(how: str):
    (v, *_), step = steps()
    held = CURRENT[0]
    LOOKS[how](v)
    assert CURRENT[0] is held
    assert v._cell.key not in SHARED
    before = pointer(v)
    step()
    assert pointer(v) == before  # donated, not copied


BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
          operator.mod, divmod, operator.pow, operator.and_, operator.or_, operator.xor,
          operator.lshift, operator.rshift, operator.eq, operator.lt, operator.matmul]  # fmt: skip


@pytest.mark.parametrize("compute", BINARY)
@pytest.mark.parametrize(
    "start", [jnp.arange(1.0, 5.0), jnp.arange(1, 5), jnp.array([True, False])]
)
def test_no_operator_returns_the_memory_of_a_variable(compute: Any, start: jax.Array):
    v = jv.Variable(start)
    for other in (0, 1, 1.0, True, v, jnp.ones((), start.dtype), jnp.ones_like(start)):
        for first, second in ((v, other), (other, v)):
            try:
                results = jax.tree.leaves(compute(first, second))
            except (TypeError, ValueError):
                continue
            own = {pointer(v), v.value.unsafe_buffer_pointer()}
            assert not own & {x.unsafe_buffer_pointer() for x in results if x.shape == v.shape}


@pytest.mark.parametrize("start", [jnp.ones(3), jnp.ones(3, bool), jnp.ones(3, "uint8")])
def test_signs_and_complements_leave_the_memory_to_the_next_step(start: jax.Array):
    v = jv.Variable(start)
    for compute in (operator.neg, operator.invert):
        try:
            result = compute(v)
        except TypeError:
            continue
        assert result.unsafe_buffer_pointer() != pointer(v)
        assert v._cell.key not in SHARED
        assert (result == compute(start)).all()


def test_a_look_that_another_thread_s_step_overtakes_is_taken_again():
    (v, *_), step = steps()

    class Late(ArrayProxy):
        @property
        def value(self) -> Any:
            step()
            return jnp.ones(())

    late = Late()
    late._look = lambda: late.value  # pyright: ignore[reportAttributeAccessIssue]
    assert float(v + late) in (5.0, 6.0)  # of the value after the first or the second step
    calls: list[None] = []

    def convert(value: Any) -> float:
        if not calls:
            calls.append(None)
            step()
        return float(value)

    assert v._to_host(convert) == v.item()


def test_an_error_of_what_is_computed_is_raised_once():
    (v, *_), _ = steps(size=(2,))
    with pytest.raises(TypeError, match="add got incompatible shapes"):
        v + jnp.ones(3)
    with pytest.raises(TypeError, match=r"[Oo]nly (scalar|length-1|0-dimensional)"):
        float(v)


# ---------------------------------------------------------------- assigned between steps
ASSIGNS = {
    "assign": (lambda v: v.assign(jnp.full(v.shape, 9.0)), 9.0),
    "number": (lambda v: v.assign(9.0), 9.0),
    "add": (lambda v: v.assign_add(jnp.ones(())), 4.0),
    "sub": (lambda v: v.assign_sub(1.0), 2.0),
    "in place": (lambda v: v.__imul__(2.0), 6.0),
}


@pytest.mark.parametrize("how", ASSIGNS)
def test_an_assignment_leaves_the_values_with_the_step(how: str):
    (v, *others), step = steps()
    held, before = CURRENT[0], [pointer(x) for x in others]
    assign, value = ASSIGNS[how]
    assign(v)
    assert CURRENT[0] is held
    assert [pointer(x) for x in others] == before
    assert float(v) == value
    step()
    assert [float(x) for x in (v, *others)] == [value + 1, 5.0, 6.0]


def test_an_array_that_was_assigned_is_not_donated():
    (v, *_), step = steps()
    mine = jnp.full((), 7.0)
    v.assign(mine)
    step()
    assert float(mine) == 7.0
    assert float(v) == 8.0


def test_other_variables_are_read_and_assigned_while_the_values_stay_with_the_step():
    _, step = steps()
    rate, held = jv.Variable(0.5), CURRENT[0]
    rate.assign(0.25)
    rate.assign_add(0.25)
    taken = rate.value
    rate.assign(2.0)
    assert (float(taken), float(rate)) == (0.5, 2.0)
    assert CURRENT[0] is held
    step()


def test_an_assignment_that_is_refused_changes_nothing():
    (v, *_), step = steps()
    held = CURRENT[0]
    with pytest.raises(jv.errors.ShapeError, match="'v0'"):
        v.assign(jnp.ones(3))
    with pytest.raises(jv.errors.DtypeError, match="'v0'"):
        v.assign(jnp.ones((), jnp.int32))
    assert CURRENT[0] is held
    step()
    assert float(v) == 4.0


# ---------------------------------------------------------------- copies
def test_values_that_are_held_at_each_step_are_copied_by_one_program():
    variables, step = steps(n=20, size=(3,))
    kept = [[v.value for v in variables] for _ in range(3) if step() is not None]
    for n, values in enumerate(kept):
        assert [float(x[0]) for x in values] == [i + 4.0 + n for i in range(20)]
    assert not SHARED.isdisjoint(v._cell.key for v in variables)


def test_large_and_small_values_that_are_held():
    v, w = jv.Variable(jnp.zeros(2**15)), jv.Variable(jnp.zeros(3))
    step = jv.compile(lambda: (v.assign_add(jnp.ones(2**15)), w.assign_add(jnp.ones(3)))[0] * 1)
    kept = [(v.value, w.value) for _ in range(4) if step() is not None]
    assert [(float(x[7]), float(y[2])) for x, y in kept] == [(n, n) for n in (1.0, 2.0, 3.0, 4.0)]


# ---------------------------------------------------------------- the first run
def test_the_first_run_uses_the_memory_of_the_variables():
    v = jv.Variable(jnp.zeros(100))
    step = jv.compile(lambda: v.assign_add(jnp.ones(100)) * 1)
    before = pointer(v)
    step()
    assert pointer(v) == before


def test_the_first_run_of_what_it_creates_and_of_what_is_read_is_right():
    made: list[jv.Variable] = []
    start = jnp.arange(3.0)
    kept: list[Any] = []

    @jv.compile
    def step(x: Any) -> Any:
        if not made:
            made.extend((jv.Variable(start), jv.Variable(lambda: start), jv.Variable(x),
                         jv.Variable(jnp.zeros(3)), jv.Variable(np.ones(3, np.float32)),
                         jv.Variable(made_once), jv.Variable(made_once)))  # fmt: skip
            kept.append(start)
        for v in made:
            v.assign_add(jnp.ones(3))
        return made[0] * 1

    made_once, x = jnp.full(3, 2.0), jnp.full(3, 5.0)
    for _ in range(2):
        step(x)
    assert [v.numpy()[1] for v in made] == [3, 3, 7, 2, 3, 4, 4]
    assert [float(a[1]) for a in (start, x, made_once, *kept)] == [1, 5, 2, 1]


def test_ctrl_c_in_the_first_run_comes_after_it(monkeypatch: pytest.MonkeyPatch):
    v = jv.Variable(jnp.zeros(3))
    step = jv.compile(lambda: v.assign_add(jnp.ones(3)) * 1)
    entered = signals.deferred_signals.__enter__

    def enter(self: Any) -> None:
        entered(self)
        if signals.DEFERRING:  # not while the function is traced
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(signals.deferred_signals, "__enter__", enter)
    with pytest.raises(KeyboardInterrupt):
        step()
    monkeypatch.undo()
    assert v.numpy().tolist() == [1, 1, 1]
    step()
    assert v.numpy().tolist() == [2, 2, 2]


def test_a_deleted_array_is_ready():
    array = jnp.ones(3)
    array.delete()
    assert is_ready(array)  # JAX's own answer ends the process


# ---------------------------------------------------------------- threads
class Lazy(jv.Module):
    """A layer whose first value is drawn as its first call is traced."""

    def __init__(self, before: Callable[[], Any]) -> None:
        self.w: Any = None
        self._before, self._generator = before, jv.random.Generator(7)

    @jv.compile
    def __call__(self, x: Any) -> Any:
        self._before()
        if self.w is None:
            self.w = jv.Variable(lambda: self._generator.normal((2,)))
        return x * self.w


def test_an_eager_update_that_traces_does_not_wait_for_one_who_traces_and_draws():
    updating, tracing = threading.Event(), threading.Event()
    clip = jv.compile(lambda g: jnp.clip(g, -1.0, 1.0))

    def update(gradients: Any, state: Any, params: Any = None) -> Any:
        updating.set()
        tracing.wait(0.5)
        return jax.tree.map(clip, gradients), state

    w = jv.Variable([1.0, 2.0])
    optimizer = jv.optimizers.Optax(optax.GradientTransformation(lambda _: (), update))
    optimizer.build([w])
    layer = Lazy(lambda: (tracing.set(), updating.wait(0.5)))
    run_in_threads(
        lambda: optimizer.apply_gradients([(jnp.full(2, 5.0), w)]), lambda: layer(jnp.ones(2))
    )
    assert w.numpy().tolist() == [2.0, 3.0]


@pytest.mark.filterwarnings("ignore:.*callback:UserWarning")
def test_a_first_call_in_a_callback_is_refused_while_another_thread_traces():
    called, tracing = threading.Event(), threading.Event()
    first = jv.compile(lambda g: g * 2.0)
    w, said = jv.Variable(1.0), list[str]()

    def call_back(x: Any) -> None:
        called.set()
        tracing.wait(0.5)
        with pytest.raises(ForeignTransformError, match="by a callback or signal handler"):
            first(np.float32(1.0))
        said.append("refused")

    @jv.compile
    def step(x: Any) -> Any:
        w.assign_add(x)
        jax.debug.callback(call_back, x)
        return x + w

    layer = Lazy(lambda: (tracing.set(), called.wait(0.5)))
    run_in_threads(lambda: step(1.0), lambda: (called.wait(60), layer(jnp.ones(2))))
    assert said == ["refused"]


def test_a_thread_that_python_did_not_begin_waits_as_others_do():
    v, done = jv.Variable(0.0), threading.Event()

    def assign() -> None:
        v.assign(5.0)
        done.set()

    with jv.transaction():
        _thread.start_new_thread(assign, ())
        assert not done.wait(0.2)
    assert done.wait(60)
    assert float(v) == 5.0

"""`NanAlarm` and `nonfinite`: what they tell, when, and that a step costs no wait."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.core.cells import SHARED
from jaxvars.debugging import NanAlarm, nonfinite
from jaxvars.errors import CheckError, CompileError, StateError

NAN, INF = float("nan"), float("inf")


class Model(jv.Module):
    def __init__(self):
        self.w = jv.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
        self.b = jv.Variable([1.0, 2.0, 3.0], dtype="bfloat16", name="b")
        self.count = jv.Variable(0, name="count")
        self.label = jv.Variable("text", name="label")


class Result:
    """A look's result that is there when the test says so."""

    def __init__(self, counts):
        self.counts, self.ready, self.read = np.asarray(counts), False, 0

    def is_ready(self):
        return self.ready

    def __array__(self, *_, **__):
        self.read += 1
        return self.counts


# ---------------------------------------------------------------- the alarm
def test_each_wrong_variable_is_named_and_the_steps_between():
    m = Model()
    alarm = NanAlarm(m, every=2)
    for _ in range(4):
        alarm.step()
    jax.block_until_ready(alarm._pending)
    m.w.assign([[NAN, INF], [-INF, 4.0]])
    m.b[1].assign(NAN)
    alarm.step(), alarm.step()
    with pytest.raises(CheckError) as caught:
        alarm.check()  # which looks at what was found first
    text = str(caught.value)
    assert text.startswith(
        "After step 6, 2 of 2 variables are not finite, and all was well after step 4.\n"
        "  b bfloat16[3]: 1 of 3 elements are NaN\n"
        "  w float32[2,2]: 1 of 4 elements are NaN, 2 of 4 elements are infinite\n"
        "These steps are done: go back to a checkpoint of step 4 or before."
    )
    assert 'guard="finite"' in text
    assert "count" not in text
    assert "label" not in text


@pytest.fixture
def looks(monkeypatch):
    """The looks that alarms have begun, which find nothing."""
    found = []

    def look():
        found.append(Result([[0, 0]]))
        return found[-1]

    monkeypatch.setattr("jaxvars.compiler.decorator.compile", lambda fn: look)
    return found


def test_a_look_is_begun_every_so_many_steps_and_judged_when_it_is_there(looks):
    alarm = NanAlarm(Model(), every=3)
    for _ in range(3):
        alarm.step()
    assert len(looks) == 1
    alarm.step(), alarm.step()
    assert looks[0].read == 0, "it isn't there yet, and nothing waits"
    looks[0].ready = True
    alarm.step()
    assert looks[0].read == 1
    assert len(looks) == 2
    looks[1].ready = True
    for _ in range(2):
        alarm.step()
    assert looks[1].read == 1, "read once"
    assert alarm.steps == 8


def test_a_look_that_takes_longer_than_the_steps_is_waited_for(looks):
    alarm = NanAlarm(Model(), every=2)
    for _ in range(4):
        alarm.step()
    assert [result.read for result in looks] == [1, 0]


def test_it_goes_on_after_it_was_raised():
    w = jv.Variable([1.0, NAN], name="w")
    alarm = NanAlarm(w, every=1)
    alarm.step()
    for _ in range(3):
        jax.block_until_ready(alarm._pending)
        with pytest.raises(CheckError, match=r"w float32\[2\]: 1 of 2 elements are NaN"):
            alarm.step(), alarm.step()
    w.assign([1.0, 2.0])
    alarm._pending = None
    alarm.check()
    alarm.step()


def test_with_looks_once_more_at_the_end_unless_something_else_went_wrong():
    w = jv.Variable(NAN, name="w")
    told = r"After step 1, a variable is not finite\.\n  w float32\["
    with pytest.raises(CheckError, match=told), NanAlarm(w, every=100) as alarm:
        alarm.step()
    with pytest.raises(ZeroDivisionError), NanAlarm(w):
        1 / 0  # noqa: B018


def test_slots_that_come_with_the_first_step_are_seen():
    model = Model()
    optimizer = jv.optimizers.SGD(0.1, momentum=0.9)
    alarm = NanAlarm(model, optimizer, every=10)
    optimizer.apply_gradients([(jnp.full((2, 2), NAN), model.w)])
    with pytest.raises(CheckError) as caught:
        alarm.check()
    assert "  model/w float32[2,2]: 4 of 4" in str(caught.value)
    assert "  sgd/" in str(caught.value)


def test_many_findings_are_cut():
    with pytest.raises(CheckError) as caught:
        NanAlarm([jv.Variable(INF, name=f"v{i}") for i in range(13)]).check()
    assert "13 of 13 variables are not finite" in str(caught.value)
    assert "\n  ... and 3 more\n" in str(caught.value)


def test_a_look_leaves_donation_as_it_is():
    w = jv.Variable(jnp.ones(1000), name="w")
    step = jv.compile(lambda: w.assign_add(1.0, read_value=False))
    alarm = NanAlarm(w, every=1)
    step(), step(), alarm.step(), step(), step()
    SHARED.discard(w._cell.key)  # as if it had never been read
    alarm.step()
    assert w._cell.key not in SHARED, "so the next step copies nothing"
    step()
    assert float(w.value[0]) == 6.0


def test_integers_are_finite():
    with NanAlarm(jv.Variable(1, name="n"), every=1) as alarm:
        alarm.step()
    assert alarm.steps == 1


def test_the_program_is_made_once():
    alarm = NanAlarm(jv.Variable(1.0, name="w"), every=1)
    for _ in range(5):
        alarm.step()
    assert alarm._look.trace_count == 1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (NanAlarm, TypeError, "needs something with variables"),
        (lambda: NanAlarm(Model(), every=0), ValueError, "every is a number of steps, not 0"),
        (lambda: NanAlarm([1, 2]).check(), StateError, "There is no Variable in this list"),
        (lambda: nonfinite({}), StateError, "There is no Variable in this dict"),
    ],
)
def test_mistakes(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("call", ["step", "check"])
def test_inside_a_compiled_function_there_is_nothing_to_look_at(call):
    model = Model()
    alarm = NanAlarm(model)
    with pytest.raises(
        CompileError, match=rf"alarm\.{call}\(\) at test_alarm\.py:.*check_numerics"
    ):
        jv.compile(lambda: getattr(alarm, call)())()
    with pytest.raises(CompileError, match=r"nonfinite\(\.\.\.\) at test_alarm\.py"):
        jv.compile(lambda: nonfinite(model))()


# ---------------------------------------------------------------- the table
def test_the_table():
    m = Model()
    m.w.assign([[NAN, INF], [-INF, -7.0]])
    (row,) = nonfinite(m)
    assert row == ("w", (2, 2), "float32", 1, 2, 7.0)
    table = nonfinite(m, everything=True)
    assert table.columns == ("path", "shape", "dtype", "NaN", "infinite", "largest")
    assert list(table) == [("b", (3,), "bfloat16", 0, 0, 3.0), row]


def test_odd_variables():
    empty = jv.Variable(jnp.zeros((0, 3)), name="e")
    assert nonfinite(empty, everything=True)[0][1:] == ((0, 3), "float32", 0, 0, 0.0)
    NanAlarm(empty).check()
    number = jv.Variable(jnp.asarray([complex(0, INF), 3 + 4j]), name="c")
    assert nonfinite(number)[0][2:] == ("complex64", 0, 1, 5.0)

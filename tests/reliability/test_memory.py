"""What a program that fails while XLA runs it leaves behind: memory that cannot be had.

Rules of this file:
- a value that could not be computed is passed to a step as an argument: it fails like one that
  has no memory, later than its call, and costs nothing;
- what really runs out of memory runs in a separate process, whose address space is limited.
"""

from __future__ import annotations

import contextlib
import gc
import textwrap
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from failing import failing_number

import jaxvars as jv
from jaxvars.compiler import program
from jaxvars.core import cells
from jaxvars.errors import ExecutionError

SLOW = pytest.mark.slow


def failed_number() -> Any:
    """Return a number whose computation has failed."""
    number = failing_number(300)
    with pytest.raises(jax.errors.JaxRuntimeError, match="Out of memory"):
        number.block_until_ready()
    return number


def failing(step: Callable[..., Any], number: Any = None) -> Any:
    """Call a step with a number whose computation has failed."""
    number = failed_number() if number is None else number
    try:
        return step(number)
    except (ValueError, RuntimeError) as error:  # pytest would show the number, and wait for it
        raise error.with_traceback(None) from None


def counters(**options: Any) -> tuple[jv.Variable, jv.Variable, Callable[..., Any]]:
    a, b = jv.Variable(jnp.zeros(3), name="a"), jv.Variable(jnp.ones(2), name="b")

    @jv.compile(**options)
    def step(x: Any) -> Any:
        a.assign_add(x * jnp.ones(3))
        b.assign_add(x * jnp.ones(2))
        return a.value.sum()

    for _ in range(3):
        step(1.0)
        step(jnp.float32(1.0))
    return a, b, step


LOST = "step failed when it ran: .*Out of memory.* have no value any more: 'a', 'b'. Assign them"
KEPT = "step failed when it ran: .*Out of memory.* No variable was changed"


def is_right(a: jv.Variable, b: jv.Variable, step: Callable[..., Any], value: float) -> None:
    """Check that all works, and that no doubt is left."""
    np.testing.assert_array_equal(a, np.full(3, value, np.float32))
    np.testing.assert_array_equal(b, np.full(2, value + 1, np.float32))
    assert float(step(1.0)) == 3 * value + 3
    assert a.numpy()[0] == value + 1
    assert not cells.UNPROVEN


READS = {
    "value": lambda a: a.value, "numpy": lambda a: a.numpy(), "float": lambda a: float(a[0]),
    "repr": repr, "operator": lambda a: a + 1, "State.of": jv.State.of,
    "assign_add": lambda a: a.assign_add(jnp.ones(3)), "part": lambda a: a[0].assign(1.0),
    "compiled": lambda a: jv.compile(lambda: a * 2)(),
}  # fmt: skip


@pytest.mark.parametrize("how", READS)
def test_the_next_touch_of_a_lost_variable_says_what_failed(how: str):
    a, b, step = counters()
    failing(step)
    for _ in range(2):
        with pytest.raises(ExecutionError, match=LOST):
            READS[how](a)
    with pytest.raises(ExecutionError, match=LOST):
        step(1.0)
    a.assign(jnp.zeros(3))
    with pytest.raises(ExecutionError, match=LOST):
        step(1.0)
    b.assign(jnp.ones(2))
    is_right(a, b, step, 0.0)


@pytest.mark.parametrize("first", [0, 1])
def test_what_was_assigned_since_is_not_lost(first: int):
    *variables, step = counters()
    failing(step)
    variables[first].assign(jnp.full(variables[first].shape, float(first)))
    other = variables[1 - first]
    with pytest.raises(ExecutionError, match=f"no value any more: '{other.name}'. Assign them"):
        other.numpy()
    other.assign(jnp.full(other.shape, 1.0 - first))
    is_right(*variables, step, 0.0)


@pytest.mark.parametrize("how", READS)
def test_what_is_not_donated_is_not_lost(how: str):
    a, b, step = counters(donate=False)
    failing(step)
    with pytest.raises(ExecutionError, match=KEPT):
        READS[how](a)
    is_right(a, b, step, 6.0)


def test_the_next_call_of_what_is_not_donated_reports_the_failure():
    a, b, step = counters(donate=False)
    failing(step)
    with pytest.raises(ExecutionError, match=KEPT):
        step(1.0)
    is_right(a, b, step, 6.0)


@pytest.mark.parametrize(("donate", "message"), [("auto", LOST), (False, KEPT)])
def test_a_guarded_call_reports_its_own_failure(donate: Any, message: str):
    a, b, step = counters(donate=donate, guard="finite")
    with pytest.raises(ExecutionError, match=message):
        failing(step)
    a.assign(jnp.full(3, 6.0))
    b.assign(jnp.full(2, 7.0))
    is_right(a, b, step, 6.0)


def test_a_first_call_that_fails_changes_nothing():
    a = jv.Variable(jnp.zeros(3), name="a")

    @jv.compile
    def first(x: Any) -> Any:
        a.assign_add(x * jnp.ones(3))
        return a * 1

    for _ in range(2):
        with pytest.raises(ExecutionError, match=r"first failed when it ran: .*No variable was"):
            failing(first)
        np.testing.assert_array_equal(a, np.zeros(3))
    assert first(1.0).tolist() == [1.0, 1.0, 1.0]


def test_a_large_step_looks_at_each_call_whether_the_last_one_failed():
    a = jv.Variable(jnp.zeros(3), name="a")

    @jv.compile
    def large(x: Any) -> Any:
        a.assign_add(x * jnp.ones(3))
        return (jnp.zeros(2**24) + a.value[0]).sum() * 0 + x

    for _ in range(3):
        large(jnp.float32(1.0))
    lost = failing(large)
    with pytest.raises(jax.errors.JaxRuntimeError, match="Out of memory"):
        lost.block_until_ready()  # a call before it has failed goes through, and the next one looks
    with pytest.raises(ExecutionError, match=r"large failed when it ran: .* no value .*: 'a'"):
        large(jnp.float32(1.0))
    a.assign(jnp.zeros(3))
    assert float(large(jnp.float32(1.0))) == 1.0


def test_a_failure_that_went_through_two_functions_names_both():
    a, b, step = counters()
    double = jv.compile(lambda: a.assign(a * 2))
    for _ in range(3):
        double()
    failing(step)
    with contextlib.suppress(ExecutionError):  # if it is known already that the step has failed
        double()
    with pytest.raises(ExecutionError, match=r"step.* failed when it ran: .* no value .*'a'"):
        a.numpy()
    with pytest.raises(ExecutionError, match=r"step.* failed when it ran: .* no value .*'b'"):
        b.numpy()
    a.assign(jnp.zeros(3))
    b.assign(jnp.ones(2))
    is_right(a, b, step, 0.0)


@pytest.mark.parametrize("donates", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_failure_is_told_of_every_variable_whichever_is_read_first(order: str, donates: Any):
    a, b = jv.Variable(jnp.zeros(3), name="a"), jv.Variable(jnp.zeros(3), name="b")
    m = jnp.eye(1200)

    @jv.compile(donate=donates[0])
    def step(x: Any) -> None:
        row = ((m * x) @ m)[0, :3]
        b.assign_add(row)
        a.assign_add(row)

    @jv.compile(donate=donates[1])
    def double() -> None:
        a.assign(a * 2 + (m @ m @ m)[5, :3])

    for _ in range(3):
        step(jnp.float32(0.0))
        double()
    number = failing_number(1500)  # not computed yet, so that calls go through
    with contextlib.suppress(ExecutionError):  # where nothing is donated, the next call waits
        for _ in range(3):
            step(number)
            double()
    variables = {"a": a, "b": b}
    for name in order * 2:
        if donates[0]:
            lost = (
                rf"^(step|double)( or step| or double)? failed when it ran: .* no value .*'{name}'"
            )
            with pytest.raises(ExecutionError, match=lost):
                variables[name].numpy()
        else:
            np.testing.assert_array_equal(variables[name], np.zeros(3))
    a.assign(jnp.zeros(3))
    b.assign(jnp.zeros(3))
    step(jnp.float32(1.0))
    np.testing.assert_array_equal((a, b), [[1.0, 0, 0]] * 2)
    assert not cells.UNPROVEN


@pytest.mark.parametrize("donate", [True, False])
def test_a_failure_is_left_to_its_thread_until_its_variables_are_touched(donate: bool):
    _, _, step = counters(donate=donate)
    own = jv.Variable(jnp.zeros(3), name="own")
    count = jv.compile(lambda: own.assign_add(jnp.ones(3)))
    told: list[str] = []

    def fail_and_go_on(go_on: bool) -> None:
        number = failing_number(1500)
        try:
            for _ in range(1 + go_on):
                step(number)
        except ExecutionError as error:
            told.append(str(error))

    for go_on in (True, False):
        thread = threading.Thread(target=fail_and_go_on, args=[go_on])
        thread.start()
        thread.join()
        for _ in range(5):
            count()
    assert own.numpy().tolist() == [10.0] * 3
    assert [text.startswith("step failed when it ran") for text in told] == [True]
    with pytest.raises(ExecutionError, match=LOST if donate else KEPT):
        step(1.0)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_failure_is_not_that_of_a_step_before_it(order: str):
    variables = {name: jv.Variable(jnp.zeros(3), name=name) for name in "ab"}

    @jv.compile
    def slow(m: Any) -> None:
        for v in variables.values():
            v.assign_add((m @ m @ m @ m)[0, :3])

    @jv.compile
    def after(x: Any) -> None:
        variables["a"].assign(x * jnp.ones(3))

    m = jnp.eye(1500)
    for _ in range(3):
        slow(m)
        after(jnp.float32(1.0))
    number = failed_number()
    slow(m)
    failing(after, number)
    lost = r"after.* failed when it ran: .* no value any more: 'a'\. Assign"
    for name in order:
        if name == "a":
            with pytest.raises(ExecutionError, match=lost):
                variables["a"].numpy()
        else:
            np.testing.assert_array_equal(variables["b"], np.array([4.0, 0, 0], np.float32))
    variables["a"].assign(jnp.zeros(3))
    assert not cells.UNPROVEN


def test_a_variable_that_is_gone_is_not_named():
    models = {name: jv.Variable(jnp.zeros(3), name=name) for name in "ab"}
    step = jv.compile(lambda x: [v.assign_add(x * jnp.ones(3)) for v in models.values()])
    for _ in range(3):
        step(jnp.float32(1.0))
    failing(step)
    del models["b"]
    gc.collect()
    with pytest.raises(ExecutionError, match=r"no value any more: 'a'. Assign them"):
        models["a"].numpy()


def test_what_others_hold_and_other_variables_stay():
    a, b, step = counters()
    rate = jv.Variable(0.5, name="rate")
    held, state = a.value, jv.State.of(a=a, b=b)
    failing(step)
    assert float(rate) == 0.5
    with pytest.raises(ExecutionError, match=LOST):
        a.numpy()
    assert held.tolist() == [6.0, 6.0, 6.0]
    state.commit()
    is_right(a, b, step, 6.0)


_EXHAUSTED = """
    import faulthandler, resource, sys, time
    faulthandler.dump_traceback_later(90, exit=True)
    import jax, jax.numpy as jnp, numpy as np, jaxvars as jv
    from jaxvars.errors import ExecutionError

    def limited(extra):
        now = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (now + extra, resource.RLIM_INFINITY))

    def failure(call):
        kept = []
        for n in range(99):  # what was freed before may be enough for a first one
            try:
                kept.append(call())
                time.sleep(0.1)
            except ExecutionError as error:
                return n, str(error)

    def program(options, *, later):
        w = jv.Variable(jnp.arange(4.0), name="w")
        m = jv.Variable(jnp.ones((300, 300)), name="m", trainable=False)

        @jv.compile(**options)
        def step(x, size=0):
            w.assign_add(x * jnp.ones(4))
            work = (m.value @ m.value).sum() * 0 if later else 0  # XLA runs this one later
            return jnp.zeros(size, jnp.int8) + (work + w.value[0]).astype(jnp.int8)

        return w, jv.compile(step, static_argnames=("size",), **options)

    every = [{}, {"donate": False}, {"guard": "finite"}]
    for options in every:
        for later in (False, True):
            w, step = program(options, later=later)
            step(1.0, size=3)
            n, message = failure(lambda: step(1.0, size=2**44))
            assert "No variable was changed" in message, message
            assert w.numpy().tolist() == [1.0, 2.0, 3.0, 4.0], w
            step(1.0, size=3)
            assert w.numpy().tolist() == [2.0, 3.0, 4.0, 5.0], w
    print("first")
    if sys.argv[1:] == ["first"]:
        sys.exit()

    warm = [(options, *program(options, later=True)) for options in every]
    for *_, w, step in warm:
        for _ in range(3):
            step(1.0, size=2**28).block_until_ready()
        w.numpy()
    limited(2**26)
    for options, w, step in warm:
        n, message = failure(lambda: step(1.0, size=2**28))
        assert message.startswith("step failed when it ran: "), message
        if options == {"donate": False}:
            assert "No variable was changed" in message
            done = w.numpy() - np.arange(4)  # of n calls the last one may have failed afterwards
            assert done.tolist() in ([n + 3] * 4, [n + 2] * 4), (n, w)
        else:
            assert "no value any more: 'w'" in message
            w.assign(jnp.arange(4.0))
        step(1.0, size=3)
        w.numpy()
    print("later")
"""


_FULL = """
    import resource, sys
    import jax.numpy as jnp, jaxvars as jv
    from jaxvars.errors import ExecutionError

    v = jv.Variable(jnp.zeros(3), name="v")

    @jv.compile
    def step(size):
        v.assign_add(jnp.ones(3))
        return jnp.zeros(size, jnp.int8)

    step = jv.compile(step, static_argnames="size")
    for size in (2, 2**30) * 3:  # both are compiled while there is memory
        step(size)
    if sys.argv[1] == "read":
        v.numpy()
    now = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (now + 2**26, resource.RLIM_INFINITY))
    for call in (lambda: step(2**30), lambda: v.numpy(), lambda: step(2**30)):
        try:
            call()
        except ExecutionError as error:
            assert "Out of memory" in str(error), error
            assert "no value any more: 'v'. Assign" in str(error), error
            print("told")
    v.assign(jnp.zeros(3))
    step(2)
    print(v.numpy().tolist())
"""


@pytest.mark.parametrize("before", ["read", "not read"])  # else the step has the values
def test_a_step_that_finds_no_memory_where_jit_is_fast(run_python: Callable[..., Any], before: str):
    done = run_python("-c", textwrap.dedent(_FULL), before, XLA_FLAGS="")
    assert done.stdout.split("\n")[:-1] == ["told"] * 3 + ["[1.0, 1.0, 1.0]"], done.stderr[-3000:]


@pytest.mark.parametrize("wanted", [["first"], pytest.param(["first", "later"], marks=SLOW)])
def test_steps_that_run_out_of_memory(run_python: Callable[..., Any], wanted: list[str]):
    done = run_python("-c", textwrap.dedent(_EXHAUSTED), *wanted, XLA_FLAGS="")
    assert done.stdout.split() == wanted, done.stderr[-3000:]


def test_each_large_result_is_looked_for_room_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    zeros = program.jnp.zeros

    def note(shape: Any, dtype: Any = None, **options: Any) -> Any:
        if dtype is jnp.int8:  # what asks for room
            found.append(shape)
        return zeros(shape, dtype, **options)

    size = 5 * 2**20
    v = jv.Variable(jnp.zeros(size))  # 20 MiB, donated: takes none
    step = jv.compile(lambda x: (v.assign_add(x), x * 2, x + 1, x[:7], jnp.sum(x))[1:])
    monkeypatch.setattr(program.jnp, "zeros", note)
    step(jnp.ones(size))
    monkeypatch.undo()
    assert found[1:] == [4 * size, 4 * size]
    assert 8 * 4 <= found[0] < 2**20  # the small ones, and temporaries
    assert v.numpy()[0] == 1

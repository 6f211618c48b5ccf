"""`control/index_checks.py`: an index out of range fails the step, if indices are checked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.compiler.creation import ProgramSource
from jaxvars.core.frame import FAST_PATH_BLOCKERS
from jaxvars.core.in_place import AROUND_WRITES
from jaxvars.debugging import check_indices
from jaxvars.errors import CheckError

ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)
v = jv.Variable(ROWS, name="v")
count = jv.Variable(0, name="count")


@pytest.fixture
def checked() -> Iterator[None]:
    check_indices(True)
    yield
    check_indices(False)


def taped(i):
    with jv.GradientTape() as tape:
        y = v[i] ** 2
    return tape.gradient(y, v)


def array():
    return jv.TensorArray(jnp.float32, size=3).unstack(ROWS[:, 0])


def called(i):
    return inner(i)


inner = jv.compile(lambda i: v[i] + 0)
AXIS = "An index is outside of axis 0, of size 3: "
ONE = AXIS + "index = 3"
SECOND = AXIS + "1 of 2 elements, the first at [1]: index = 3"
ARRAY = "An index is outside of a TensorArray of size 3: "
PAIR, WRONG = np.int32([0, 2]), np.int32([0, 3])

# what is done, an index that is right, one that is not, and what is said of that
PROGRAMS = {
    "v[i]": (lambda i: v[i] + 0, 2, 3, ONE),
    "v[-i]": (lambda i: v[i] + 0, -3, -4, AXIS + "index = -1"),
    "v[:, i]": (lambda i: v[:, i] + 0, 3, 4, "An index is outside of axis 1, of size 4: index = 4"),
    "v[[i, j]]": (lambda i: v[i] + 0, PAIR, WRONG, SECOND),
    "take": (lambda i: jnp.take(v.value, i, axis=0), PAIR, WRONG, SECOND),
    "dynamic_slice": (lambda i: jax.lax.dynamic_slice_in_dim(v.value, i, 2), 1, 2,
                      "A slice of 2 is outside of axis 0, of size 3: index = 2"),
    "uint8": (lambda i: jnp.arange(300)[i], np.uint8(255), None, None),
    "assign": (lambda i: v[i].assign(1.0).value, 2, 3, ONE),
    "v[i] = x": (lambda i: v.__setitem__((i, 0), 1.0), 2, 3, ONE),
    "assign_add": (lambda i: v[i].assign_add(1.0).value, PAIR, WRONG, SECOND),
    "add": (lambda i: v[i].assign_add(np.ones((2, 4))).value, PAIR, WRONG, SECOND),
    "elements": (lambda i: v[i[0], i[1]].assign([9.0]).value, np.int32([[2], [3]]),
                 np.int32([[3], [3]]), AXIS + "1 of 1 elements, the first at [0]: index = 3"),
    "at": (lambda i: v.value.at[i].set(0.0), 2, 3, ONE),
    "dynamic_update_slice": (lambda i: jax.lax.dynamic_update_slice(v.value, v.value[:2], (i, 0)),
                             1, 2, "A slice of 2 is outside of axis 0, of size 3: index = 2"),
    "jit": (lambda i: jax.jit(lambda x, i: x[i])(v.value, i), 2, 3, ONE),
    "vmap": (lambda i: jax.vmap(lambda j: v.value[j])(i), PAIR, WRONG, SECOND),
    "grad": (lambda i: jax.grad(lambda x: x[i].sum())(v.value), 2, 3, ONE),
    "checkpoint": (lambda i: jax.checkpoint(lambda x, i: x[i])(v.value, i), 2, 3, ONE),
    "tape": (taped, 2, 3, ONE),
    "compiled": (called, 2, 3, ONE),
    "cond": (lambda i: jv.cond(i > 0, lambda: v[i] + 0, lambda: v[0] + 0), 2, 3, ONE),
    "scan": (lambda i: jv.scan(lambda c, j: (c, v[j].assign(1.0).value), 0, i), PAIR, WRONG, ONE),
    "while_loop": (lambda n: jv.while_loop(lambda i: i < n, lambda i: (v[i].assign(0), i + 1)[1],
                                            0), 3, 4, ONE),
    "map": (lambda i: jv.vectorized_map(lambda j: v.value[j], i), PAIR, WRONG, ONE),
    "lax.scan": (lambda i: jax.lax.scan(lambda c, j: (c, ROWS_[j]), 0, i), PAIR, WRONG, ONE),
    "lax.cond": (lambda i: jax.lax.cond(i > 0, lambda: ROWS_[i], lambda: ROWS_[0]), 2, 3, ONE),
    "lax.while": (lambda n: jax.lax.while_loop(
        lambda i: (ROWS_[i, 0] < 99) & (i < n), lambda i: i + 1, 0), 2, 3, ONE),
    "grad of lax.scan": (lambda i: jax.grad(lambda x: jax.lax.scan(
        lambda c, j: (c + x[j].sum(), None), 0.0, i)[0])(v.value), PAIR, WRONG, ONE),
    "write": (lambda i: array().write(i, 1.0).stack(), 2, -1, ARRAY + "index = -1"),
    "read": (lambda i: array().read(i), 2, 3, ARRAY + "index = 3"),
    "gather": (lambda i: array().gather(i), PAIR, WRONG, ARRAY + "1 of 2 elements"),
    "scatter": (lambda i: array().scatter(i, [1.0, 2.0]).stack(), PAIR, -WRONG, ARRAY + "1 of 2"),
    "writes": (lambda n: jv.fori_loop(0, n, lambda i, a: a.write(i, 1.0), array()).stack(), 3, 4,
               ARRAY + "index = 3"),
}  # fmt: skip
ROWS_ = jnp.asarray(ROWS)


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize(("program", "right", "wrong", "message"), PROGRAMS.values(), ids=PROGRAMS)
def test_an_index_out_of_range_fails_the_step(program, right, wrong, message):
    step = jv.compile(lambda i: (count.assign_add(1), program(i))[1])
    v.assign(ROWS)
    step(right)
    before = count.numpy(), v.numpy()
    if wrong is None:
        return
    with pytest.raises(CheckError) as caught:
        step(wrong)
    assert str(caught.value).startswith(message)
    assert "(test_index_checks.py:" in str(caught.value)
    assert (count.numpy(), v.numpy().tolist()) == (before[0], before[1].tolist())
    step(right)


def test_programs_with_and_without_checks_are_kept_apart():
    v.assign(ROWS)
    read = jv.compile(lambda i: v[i, 0] + 0)
    concrete = read.trace(0)
    assert [float(read(i)) for i in (1, 7, 7)] == [4, 8, 8]  # clamped
    for _ in range(2):
        check_indices(True)
        check_indices(True)
        for _ in range(3):
            assert read(1) == 4
            with pytest.raises(CheckError, match="index = 7"):
                read(7)
        assert concrete(7) == 8
        check_indices(False)
        check_indices(False)
        assert not FAST_PATH_BLOCKERS
        assert [float(read(i)) for i in (1, 7, 7)] == [4, 8, 8]
    assert read.traces.column("why")[1:] == ["indices are checked"]


def test_why_it_was_traced_when_indices_are_checked_no_more():
    read = jv.compile(lambda i: jnp.arange(3)[i])
    check_indices(True)
    try:
        read(1)
    finally:
        check_indices(False)
    read(1)
    assert read.traces.column("why")[1:] == ["indices are not checked"]


@pytest.mark.usefixtures("checked")
def test_blocks_are_not_checked_twice():
    step = jv.compile(lambda i: jv.scan(lambda c, j: (c, v[j].assign_add(1.0).value), 0, i))
    assert "callback" not in step.trace(PAIR).stablehlo  # as that of JAX's own loops would have


@pytest.mark.usefixtures("checked")
def test_what_only_jax_can_look_into_runs_as_it_is():
    scale = jv.compile(
        lambda b, i: jax.lax.custom_linear_solve(
            lambda x: x * v[i, 0], b, lambda _, b: b / v[i, 0].value
        )
    )
    assert scale(jnp.full(2, 8.0), 1).tolist() == [2.0, 2.0]


@pytest.mark.usefixtures("checked")
def test_what_is_not_wrong():
    key, labels = jax.random.key(0), jnp.arange(8) % 6
    x = jax.random.normal(key, (8, 6))

    @jv.compile
    def many(x, labels):
        return [
            jnp.sort(x), jnp.median(x), jnp.cumsum(x), jnp.roll(x, labels[0]), jax.lax.top_k(x, 2),
            jnp.take_along_axis(x, labels[:, None], axis=1), jax.nn.one_hot(labels, 6),
            jax.ops.segment_sum(x, labels, num_segments=6), jnp.bincount(labels, length=6),
            jax.random.choice(key, 6, (3,)), jnp.pad(x, 1, mode="reflect"),
            jv.losses.sparse_categorical_crossentropy(labels, x, from_logits=True),
        ]  # fmt: skip

    many(x, labels)


def test_writes_by_index_are_watched_where_something_is_placed_around_them():
    seen: list[Any] = []

    def around(value: Any) -> Any:
        seen.append(value.shape)
        return nullcontext()

    v = jv.Variable([1.0, 2.0])
    kept = AROUND_WRITES[:]
    try:
        AROUND_WRITES[:] = []
        v[0].assign(3.0)
        AROUND_WRITES[:] = [around]
        v[1].assign_add(1.0)
    finally:
        AROUND_WRITES[:] = kept
    assert seen == [(2,)]
    assert v.numpy().tolist() == [3.0, 3.0]


def test_a_program_that_was_traced_as_another_thread_set_the_switch_is_not_kept():
    w = jv.Variable([1.0, 2.0, 3.0])

    class Setting(ProgramSource):
        def find(self, call, stage):  # the key is made, and the trace has not begun
            thread = threading.Thread(target=check_indices, args=(read.trace_count == 0,))
            thread.start()
            thread.join()

    read = jv.compile(lambda i: w[i] + 0)
    read.source = Setting()
    with pytest.raises(CheckError):
        read(7)
    check_indices(False)
    assert read(7) == read(7) == 3.0
    assert read.trace_count == 2

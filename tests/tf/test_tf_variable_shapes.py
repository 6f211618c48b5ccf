"""Variables of `jaxvars.tf` with unknown sizes: each shape of a value has its program."""

from __future__ import annotations

import copy
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars import tf
from jaxvars.core.cells import FixedCell
from jaxvars.errors import CompileError, RetraceWarning, ShapeError
from jaxvars.tf.variables.open_shapes import Open, OpenCell

pytestmark = pytest.mark.filterwarnings(f"ignore::{RetraceWarning.__module__}.RetraceWarning")


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def of_any_shape(value: Any) -> tf.Variable:
    return tf.Variable(value, shape=tf.TensorShape(None))


def growing(v: tf.Variable) -> Any:
    @tf.function
    def grow() -> Any:
        v.assign(tf.concat([v, v], 0))
        return tf.size(v)

    return grow


# ---------------------------------------------------------------- the kind of cell
def test_a_shape_makes_the_cell_of_a_variable():
    v, w = jv.Variable([1.0, 2.0], shape=Open((None,))), jv.Variable([1.0, 2.0])
    assert (type(v._cell), type(w._cell)) == (OpenCell, FixedCell)
    assert (v._cell.is_open, w._cell.is_open) == (True, False)
    assert (v._cell.declared, w._cell.declared) == ((None,), (2,))
    assert v.assign([3.0]).shape == (1,)
    for variable in (v, w):
        with pytest.raises(ShapeError):
            variable.assign([[3.0]])


def test_a_sum_does_not_change_a_shape_that_another_thread_has_changed():
    variable = jv.Variable(ones(2), shape=Open(None))
    summand = variable._summand

    def meanwhile(value):
        given = summand(value)
        run_in_threads(lambda: variable.assign(5 * ones(1)))
        return given

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jv.Variable, "_summand", lambda _, value: meanwhile(value))
        with pytest.raises(ShapeError, match="Another thread gave variable"):
            variable.assign_add(ones(2))
    assert variable.numpy().tolist() == [5.0]


# ---------------------------------------------------------------- eager
def test_a_value_of_another_shape_is_assigned():
    v = of_any_shape([1.0, 2.0])
    v.assign([[1.0, 2.0, 3.0]])
    assert v.shape.rank is None
    assert v.read_value().shape == v.value().shape == (1, 3)
    assert tf.shape(v).numpy().tolist() == [1, 3]
    assert v.assign_add([[1.0, 1.0, 1.0]]).numpy().tolist() == [[2.0, 3.0, 4.0]]
    assert v[0, 1].assign(9.0).numpy().tolist() == [[2.0, 9.0, 4.0]]
    assert v.scatter_nd_update([[0, 0]], [5.0]).numpy().tolist() == [[5.0, 9.0, 4.0]]


def test_known_sizes_of_a_partly_unknown_shape_hold():
    v = tf.Variable(ones(1, 2), shape=[None, 2])
    v.assign(ones(3, 2))
    assert v.shape.as_list() == [None, 2]
    for wrong in (ones(2), ones(1, 3)):
        words = rf"The variable shape \(None, 2\), and the assigned value shape .{wrong.shape[0]},"
        with pytest.raises(ValueError, match=words):
            v.assign(wrong)
    with pytest.raises(tf.errors.InvalidArgumentError, match="shapes must be equal"):
        v.assign_add(ones(1, 2))
    assert v.numpy().shape == (3, 2)


def test_a_copy_has_the_shape_of_the_value():
    v = of_any_shape([1.0, 2.0])
    made = copy.deepcopy(v)
    assert made.shape == (2,)
    with pytest.raises(ValueError, match="Shape mismatch"):
        made.assign([1.0])


def test_strings_of_another_shape_are_assigned():
    assert of_any_shape("a").assign(["b", "c"]).numpy().tolist() == [b"b", b"c"]


# ---------------------------------------------------------------- compiled
def test_each_shape_has_its_program_on_hot_paths_too():
    v, total = of_any_shape([1.0, 2.0]), tf.Variable(0.0)

    @tf.function
    def add(k: Any) -> Any:
        total.assign_add(k * tf.reduce_sum(v))
        v.assign(v + 1.0)
        return tf.reduce_sum(v), tf.size(v)

    @tf.function
    def double() -> Any:
        v.assign(v * 2.0)

    expected, sum_, rng = np.float32([1, 2]), 0.0, np.random.default_rng(0)
    for i in range(60):
        if i % 6 == 5:
            expected = ones(*rng.integers(1, 4, size=rng.integers(0, 3)))
            v.assign(expected)
        if i % 4 == 3:
            expected = expected * 2
            double()
        sum_ += 2 * expected.sum()
        expected = expected + 1
        found, size = add(tf.constant(2.0))
        assert (found.numpy(), size.numpy()) == (expected.sum(), expected.size)
        assert v.numpy().tolist() == expected.tolist()
        assert total.numpy() == sum_


def test_a_function_that_asks_for_the_shape_alone_follows_it():
    v, n = of_any_shape([1.0, 2.0]), tf.Variable(0.0)

    @tf.function
    def count() -> Any:
        n.assign(tf.cast(tf.size(v), tf.float32))
        return n * 2.0

    for size in (2, 2, 2, 3, 3, 2, 5, 5, 5):
        v.assign(ones(size))
        assert count().numpy() == 2 * size
        assert n.numpy() == size


def test_a_function_that_only_assigns_is_traced_once_for_each_shape_it_assigns():
    v = of_any_shape([1.0, 2.0])

    @tf.function
    def put(x: Any) -> None:
        v.assign(x)

    for size in (1, 2, 3, 3, 2, 1):
        put(tf.constant(ones(size)))
        assert v.numpy().shape == (size,)
    assert put.experimental_get_tracing_count() <= 3


@pytest.mark.parametrize("known", [True, False])
def test_a_function_may_change_the_shape(known: bool):
    v = of_any_shape([1.0])
    spec = [tf.TensorSpec([1 if known else None], tf.float32)]

    @tf.function(input_signature=spec)
    def append(x: Any) -> Any:
        v.assign(tf.concat([v, x], 0))
        return tf.size(v)

    assert [append(tf.constant([x])).numpy() for x in (2.0, 3.0, 4.0)] == [2, 3, 4]
    assert v.numpy().tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_value_taken_before_stays_readable():
    v = of_any_shape([1.0, 2.0])
    grow, double = growing(v), tf.function(lambda: v.assign(v * 2.0))
    double()
    taken = v.read_value()
    double()
    grow()
    grow()
    assert taken.numpy().tolist() == [2.0, 4.0]
    assert v.numpy().tolist() == [4.0, 8.0] * 4


def test_a_function_in_another_one_follows_what_that_assigned():
    v = of_any_shape([1.0, 2.0])
    inner = tf.function(lambda: tf.reduce_sum(v) * tf.cast(tf.size(v), tf.float32))

    @tf.function
    def outer(x: Any) -> Any:
        before = inner()
        v.assign(x)
        return before, inner()

    assert [x.numpy() for x in outer(tf.constant([1.0]))] == [6.0, 1.0]
    assert [x.numpy() for x in outer(tf.constant([1.0, 1.0, 1.0]))] == [1.0, 9.0]
    assert [x.numpy() for x in outer(tf.constant([2.0]))] == [9.0, 2.0]
    assert inner().numpy() == 2.0


def test_a_concrete_function_follows_the_shape():
    v = tf.Variable([1.0, 2.0], shape=[None])
    concrete = tf.function(lambda: tf.reduce_sum(v)).get_concrete_function()
    assert concrete().numpy() == 3.0
    v.assign([1.0, 2.0, 3.0])
    assert concrete().numpy() == 6.0


def test_a_function_that_creates_the_variable():
    made: list[tf.Variable] = []

    @tf.function
    def append(x: Any) -> Any:
        if not made:
            made.append(of_any_shape(x))
        made[0].assign(tf.concat([made[0], x], 0))
        return tf.size(made[0])

    assert [append(tf.constant([1.0])).numpy() for _ in range(3)] == [2, 3, 4]


# ---------------------------------------------------------------- control flow
def test_branches_may_assign_one_other_shape_and_no_several():
    v = of_any_shape([1.0, 2.0])

    @tf.function
    def same(c: Any) -> Any:
        if c:
            v.assign([5.0, 6.0, 7.0])
        else:
            v.assign([1.0, 1.0, 1.0])
        return tf.reduce_sum(v)

    @tf.function
    def several(c: Any) -> None:
        if c:
            v.assign([1.0])

    @tf.function
    def loop(n: Any) -> None:
        for _ in tf.range(n):
            v.assign(tf.concat([v, [1.0]], 0))

    assert [same(tf.constant(c)).numpy() for c in (True, False)] == [18.0, 3.0]
    for refused, given in ((several, True), (loop, 3)):
        with pytest.raises(jv.errors.ControlFlowError, match=r"one of the shapes \(\d,\), \(\d,\)"):
            refused(tf.constant(given))
    assert v.numpy().tolist() == [1.0, 1.0, 1.0]


def test_a_check_needs_the_shape_to_stay():
    v = of_any_shape([1.0, 2.0])

    @tf.function
    def put(x: Any) -> None:
        tf.debugging.assert_positive(x)
        v.assign(x)

    put(tf.constant([3.0, 4.0]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        put(tf.constant([-3.0, 4.0]))
    with pytest.raises(jv.errors.CompileError, match="value of another shape to variable"):
        put(tf.constant([1.0]))
    assert v.numpy().tolist() == [3.0, 4.0]


# ---------------------------------------------------------------- gradients
def test_gradients_have_the_shape_of_the_value():
    v = of_any_shape([1.0, 2.0])

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v)
        grad = tape.gradient(loss, v)
        v.assign_sub(0.5 * grad)
        return grad

    for value in ([1.0, 2.0], [1.0, 2.0, 3.0], [[4.0]], [1.0, 2.0]):
        v.assign(value)
        np.testing.assert_array_equal(step(), 2 * np.array(value))
        assert not v.numpy().any()


@pytest.mark.parametrize(("first", "then"), [([1.0], ones(3)), (ones(3), [1.0])])
def test_a_gradient_by_a_variable_read_with_several_shapes_is_refused(first: Any, then: Any):
    v, w = of_any_shape(first), tf.Variable(2.0)

    def f() -> Any:
        before = tf.reduce_sum(v)
        v.assign(then)
        return w * tf.reduce_sum(v * v) + before

    with tf.GradientTape() as tape:
        y = f()
    with pytest.raises(jv.errors.TapeError, match="read with several shapes"):
        tape.gradient(y, v)
    v.assign(first)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.function(f)()
    assert tape.gradient(y, w).numpy() == np.size(then)
    with pytest.raises(jv.errors.TapeError, match="gradient by the variable has no shape"):
        tape.gradient(y, v)


@pytest.mark.parametrize("first", [[1.0], [1.0, 2.0]])
def test_an_optimizer_with_slots_refuses_another_shape(first: Any):
    v, optimizer = of_any_shape(first), tf.keras.optimizers.Adam(0.1)

    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])

    step()
    v.assign(ones(3))
    with pytest.raises(jv.errors.ShapeError, match="made for other shapes than variable"):
        step()
    assert v.numpy().tolist() == [1.0, 1.0, 1.0]


# ---------------------------------------------------------------- states
def test_pure_functions_and_states():
    v = of_any_shape([1.0, 2.0])
    pure, state = jv.functionalize(growing(v)), jv.State.of(v)
    size, new = jax.jit(pure)(state)
    assert (int(size), new["Variable"].shape, v.numpy().shape) == (4, (4,), (2,))
    new.commit()
    assert v.numpy().tolist() == [1.0, 2.0, 1.0, 2.0]
    state.commit()
    assert v.numpy().tolist() == [1.0, 2.0]
    weigh = jv.functionalize(lambda: tf.reduce_sum(v) * tf.cast(tf.size(v), tf.float32))
    many = jax.tree.map(lambda x: jnp.stack([x, x + 1]), state)
    assert jax.vmap(lambda s: jax.numpy.asarray(weigh(s)[0]))(many).tolist() == [6.0, 10.0]


def test_a_transaction_takes_the_shape_back():
    v = of_any_shape([1.0, 2.0])
    grow = growing(v)

    def fail() -> None:
        with jv.transaction():
            assert grow().numpy() == 4
            v.assign([1.0])
            assert grow().numpy() == 2
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert v.numpy().tolist() == [1.0, 2.0]
    assert grow().numpy() == 4


def test_checkpoints_restore_the_shape(tmp_path: Any):
    v = tf.Variable(ones(3, 2), shape=[None, 2])
    path = tf.train.Checkpoint(v=v).write(str(tmp_path / "c"))
    v.assign(ones(1, 2))
    total = tf.function(lambda: tf.reduce_sum(v))
    assert total().numpy() == 2.0
    tf.train.Checkpoint(v=v).read(path)
    assert (v.numpy().shape, total().numpy()) == ((3, 2), 6.0)
    other = tf.Variable(ones(1, 3), shape=[None, 3])
    with pytest.raises(ValueError, match=r"variable with shape \(None, 3\)"):
        tf.train.Checkpoint(v=other).read(path)


def test_other_threads_may_change_the_shape():
    v, wrong = of_any_shape([1.0]), list[Any]()
    mean = tf.function(lambda: tf.reduce_sum(v) / tf.cast(tf.size(v), tf.float32))

    @tf.function
    def turn() -> Any:
        v.assign(v + 1.0)
        v.assign(v - 1.0)
        return tf.reduce_sum(v) / tf.cast(tf.size(v), tf.float32)

    def run(act: Any) -> None:
        try:
            for i in range(60):
                act(i)
        except BaseException as error:  # noqa: BLE001 - it is looked at below
            wrong.append(error)

    def check(f: Any) -> Any:
        return lambda _: wrong.extend([x] if (x := f().numpy()) != 1.0 else [])

    acts = [lambda i: v.assign(ones(1 + i % 3)), check(mean), check(turn)]
    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_concrete_function_of_jaxvars_is_refused_for_another_shape():
    v = tf.Variable([1.0, 2.0], shape=[None], name="v")
    total = jv.compile(lambda x: jnp.sum(v.value()) * x)
    concrete = total.trace(2.0)
    assert float(concrete(2.0)) == 6.0
    v.assign([1.0, 2.0, 3.0])
    for _ in range(2):
        with pytest.raises(CompileError, match=r"with 'v' of shape \(2,\).*Call the compiled"):
            concrete(2.0)
    assert float(total(2.0)) == 12.0
    v.assign([4.0, 5.0])
    assert float(concrete(2.0)) == 18.0

"""`tf.py_function` and `tf.numpy_function`: what their functions are given, and raise."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import jaxvars.tf as tf


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TypeError("bad"), tf.errors.InvalidArgumentError),
        (StopIteration("bad"), tf.errors.OutOfRangeError),
        (NotImplementedError("bad"), tf.errors.UnimplementedError),
        (KeyError("bad"), tf.errors.UnknownError),
        (tf.errors.NotFoundError(None, None, "bad"), tf.errors.NotFoundError),
    ],
)
def test_what_is_raised_is_tensorflows(error: Exception, kind: Any) -> None:
    v = tf.Variable(0.0)

    def fail(x: Any) -> None:
        if float(x) > 1:
            raise error

    @tf.function
    def program(x: Any) -> None:
        v.assign_add(1.0)
        tf.py_function(fail, [x], [])

    program(tf.constant(1.0))
    with pytest.raises(kind, match="bad"):
        program(tf.constant(2.0))
    assert v.numpy() == 1.0
    with pytest.raises(kind, match="bad"):
        tf.py_function(fail, [2.0], [])
    with pytest.raises(type(error), match="bad"):  # TensorFlow calls these as they are
        tf.numpy_function(fail, [2.0], [])


def test_strings_are_given_to_a_python_function():
    def joined(x, n):
        return x.numpy() * int(n)

    assert tf.py_function(joined, [tf.constant("ab"), 2], tf.string).numpy() == b"abab"
    found = tf.data.Dataset.from_tensor_slices((["a", "b"], [1, 2])).map(
        lambda x, n: tf.py_function(joined, (x, n), tf.string)
    )
    assert list(found.as_numpy_iterator()) == [b"a", b"bb"]


def test_strings_of_a_variable_are_read_while_a_program_runs():
    # Differs from TensorFlow: as numbers are, those from before the call.
    v, n, seen = tf.Variable("a"), tf.Variable(1), []

    @tf.function
    def step():
        v.assign("b")
        n.assign(2)
        tf.py_function(lambda: seen.append((v.numpy(), n.numpy())), [], [])

    step()
    assert (seen, v.numpy(), n.numpy()) == ([(b"a", 1)], b"b", 2)


def test_where_tensorflow_traces_arrays_without_axes_are_numbers_and_bytes():
    seen: list[Any] = []

    def note(text: Any, number: Any, numbers: Any) -> Any:
        seen[:] = [type(text), type(number), type(numbers)]
        return np.int32(number)

    def call(text: Any, number: Any, numbers: Any) -> Any:
        return tf.numpy_function(note, [text, number, numbers], tf.int32)

    given = (tf.constant("a"), tf.constant(2), tf.constant([3]))
    scalars, arrays = [bytes, np.int32, np.ndarray], [np.ndarray] * 3
    for run, types in (
        (lambda: call(*given), arrays),
        (lambda: tf.function(call)(*given), scalars),
        (lambda: next(iter(tf.data.Dataset.from_tensors(given).map(call))), scalars),
        (lambda: tf.py_function(lambda: call(*given), [], tf.int32), arrays),
    ):
        seen.clear()
        assert (int(run()), seen) == (2, types)


def test_files_are_loaded_by_numpy_in_a_dataset(tmp_path: Any) -> None:
    np.save(tmp_path / "a.npy", np.float32([1, 2]))

    def load(path: Any) -> Any:
        return np.load(path.decode())

    data = tf.data.Dataset.from_tensor_slices([str(tmp_path / "a.npy")])
    loaded = data.map(lambda path: tf.numpy_function(load, [path], tf.float32))
    assert next(iter(loaded)).numpy().tolist() == [1, 2]


def test_arguments_and_results_that_consist_of_tensors() -> None:
    ragged = tf.ragged.constant([[1, 2], [3]])
    assert tf.py_function(tf.reduce_sum, [ragged], tf.int32).numpy() == 6
    spec = tf.RaggedTensorSpec([None, None], tf.int32)
    assert tf.py_function(lambda x: x + 1, [ragged], spec).to_list() == [[2, 3], [4]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="expects RaggedTensorSpec"):
        tf.py_function(lambda x: tf.cast(x, tf.float32), [ragged], spec)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must know the shapes"):
        tf.function(lambda: tf.py_function(lambda: ragged, [], spec))()


def test_decorators_and_keywords() -> None:
    @tf.py_function(Tout=tf.float32)
    def huber(x: Any, m: Any) -> Any:
        return x**2 if tf.abs(x) <= m else m**2 * (1 - 2 * tf.math.log(m) + tf.math.log(x**2))

    x, m = tf.constant(1.0), tf.constant(2.0)
    assert (huber.__name__, huber(x, m).numpy()) == ("huber", 1.0)
    program = tf.function(lambda x: huber(x, tf.constant(2.0)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = program(x)
    assert (y.numpy(), tape.gradient(y, x).numpy()) == (1.0, 2.0)
    assert tf.py_function(Tout=tf.float32, inp=[x, m], func=huber).numpy() == 1.0
    add = functools.partial(tf.py_function, lambda x: x + 1.0, Tout=tf.float32)
    assert (add([x]).numpy(), add(inp=x).numpy()) == (2.0, 2.0)

    @tf.numpy_function(Tout=[tf.float32, tf.float32], stateful=False)
    def both(x: Any) -> Any:
        return x, x + np.float32(1)

    assert [part.numpy() for part in tf.function(both)(x)] == [1.0, 2.0]


@pytest.mark.parametrize("function", [tf.py_function, tf.numpy_function])
def test_arguments_that_are_missing(function: Any) -> None:
    with pytest.raises(TypeError, match=r"'Tout', the type of what tf\..*_function returns"):
        function(lambda x: x, [1.0])  # its result was None
    with pytest.raises(TypeError, match=r"Missing argument `inp`: tf\..*\(func, \[x\]"):
        functools.partial(function, Tout=tf.float32)(lambda x: x)
    with pytest.raises(TypeError, match="Missing argument `func`"):
        function(inp=[1.0], Tout=tf.float32)


class _Environment:
    """What is stepped by an action, as those of gym are: its state is in attributes."""

    def __init__(self) -> None:
        self.x, self.seen = 0.0, []

    def step(self, action: Any) -> np.float32:
        self.steps = getattr(self, "steps", 0) + 1
        self.seen.append(int(action))
        self.x += float(action)
        return np.float32(self.x)


def test_tracing_leaves_the_objects_of_a_callback_as_they_are():
    environment = _Environment()

    @tf.function
    def step(action: Any) -> Any:
        return tf.numpy_function(environment.step, [action], tf.float32)

    found = [step(tf.constant(i)).numpy() for i in (2, 3)]
    assert (found, environment.seen, environment.steps) == ([2.0, 5.0], [2, 3], 2)


def test_a_loop_steps_an_environment():
    environment, w = _Environment(), tf.Variable(2.0)

    @tf.function
    def episode() -> Any:
        with tf.GradientTape() as tape:
            state, loss = tf.constant(0.0), 0.0
            for i in tf.range(3):
                loss += state * w
                state = tf.numpy_function(environment.step, [i + 1], tf.float32)
                state.set_shape([])
                if state > 100.0:
                    break
        return state, tape.gradient(loss, w)

    assert [x.numpy() for x in episode()] == [6.0, 4.0]
    assert [x.numpy() for x in episode()] == [12.0, 16.0]
    assert (environment.x, environment.seen) == (12.0, [1, 2, 3] * 2)


_SEEN: list[float] = []


def _note(x: Any) -> np.float32:
    _SEEN.append(float(x))
    return np.float32(x)


def _noted(x: Any, **options: Any) -> Any:
    found = tf.numpy_function(_note, [x], tf.float32, **options)
    found.set_shape([])
    return found


def _seen_at_second_call(function: Any, *args: Any) -> list[float]:
    function(*args)
    _SEEN.clear()
    function(*args)
    return list(_SEEN)


def test_what_is_called_back_is_called_each_time_and_in_order():
    x = tf.constant(2.0)

    @tf.function
    def unused(x: Any) -> Any:
        _noted(x)
        tf.py_function(lambda y: _note(y.numpy()), [x + 1.0], tf.float32)
        return x + 2.0

    @tf.function
    def swapped(x: Any) -> Any:
        first, second = _noted(x), _noted(x + 1.0)
        return second, first

    @tf.function
    def branch(x: Any) -> Any:
        if x > 1.0:
            _noted(x)
        return x

    @tf.function
    def loops(x: Any) -> Any:
        for i in tf.range(2):
            _noted(x + tf.cast(i, tf.float32))
        while x > 0.0:
            _noted(x)
            x -= 1.0
        return x

    assert _seen_at_second_call(unused, x) == [2.0, 3.0]
    assert _seen_at_second_call(swapped, x) == [2.0, 3.0]
    assert _seen_at_second_call(branch, x) == [2.0]
    assert _seen_at_second_call(loops, x) == [2.0, 3.0, 2.0, 1.0]
    assert _seen_at_second_call(tf.function(lambda x: unused(unused(x))), x) == [2.0, 3.0, 4.0, 5.0]
    rows = tf.function(lambda xs: tf.map_fn(lambda x: unused(x) * 1.0, xs))
    assert _seen_at_second_call(rows, tf.constant([1.0, 5.0])) == [1.0, 2.0, 5.0, 6.0]


def test_a_function_without_state_need_not_be_called():
    @tf.function
    def program(x: Any) -> Any:
        _noted(x, stateful=False)
        return x

    assert _seen_at_second_call(program, tf.constant(2.0)) == []


def test_what_fails_in_a_callback_whose_result_is_unused_undoes_the_step():
    v = tf.Variable(0.0)

    def fail(x: Any) -> np.float32:
        if x > 2.0:
            raise ValueError("too large")
        return np.float32(x)

    @tf.function
    def step(x: Any) -> None:
        v.assign_add(1.0)
        tf.numpy_function(fail, [x], tf.float32)

    step(tf.constant(1.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
        step(tf.constant(3.0))
    assert (v.numpy(), step.experimental_get_tracing_count()) == (1.0, 1)


def test_gradients_go_beside_what_is_called_back_in_a_loop():
    w, x = tf.Variable(3.0), tf.constant(2.0)

    @tf.function
    def scanned() -> Any:
        total, ones = 0.0, tf.ones(3)
        for i in tf.range(3):
            total += _noted(total) * w + w * tf.gather(ones, i)
        return total

    @tf.function
    def repeated(x: Any) -> Any:
        total = 0.0
        while x > 0.0:
            total += _noted(total) * w + w
            x -= 1.0
        return total

    def slope(function: Any, *args: Any) -> Any:
        with tf.GradientTape() as tape:
            y = function(*args)
        return y, tape.gradient(y, w)

    assert _seen_at_second_call(scanned) == [0.0, 3.0, 15.0]
    for run in (slope, tf.function(slope)):
        assert [part.numpy() for part in run(scanned)] == [63.0, 21.0]
        assert [part.numpy() for part in run(repeated, x)] == [15.0, 5.0]


def test_gradients_of_python_functions_in_a_program():
    x = tf.constant(2.0)

    @tf.function
    def slopes(x: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y, n = tf.py_function(lambda x: (x * x, 1), [x], [tf.float32, tf.int32])
            y.set_shape([])
            z = _noted(x) * x
        return y, n, tape.gradient(y, x), tape.gradient(z, x)

    assert [part.numpy() for part in slopes(x)] == [4.0, 1, 4.0, 2.0]


def test_a_custom_gradient_that_calls_back():
    @tf.custom_gradient
    def doubled(x: Any) -> Any:
        return _noted(x), lambda upstream: _noted(x) * upstream

    @tf.recompute_grad
    def product(x: Any) -> Any:
        return _noted(x) * x

    @tf.function
    def slopes(x: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y, z = doubled(x), product(x)
        return y, z, tape.gradient(y, x), tape.gradient(z, x)

    assert [part.numpy() for part in slopes(tf.constant(3.0))] == [3.0, 9.0, 3.0, 3.0]

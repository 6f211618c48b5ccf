"""The log of placements, in TensorFlow's words: what its guides show, and TensorFlow 2.21 wrote."""

from __future__ import annotations

import jax.numpy as jnp
import pytest
from threads import run_in_threads

import jaxvars as jv
import jaxvars.tf as tf
from jaxvars.tf.debugging import placement
from jaxvars.tf.registry.rows import INSTEAD, WRITTEN

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
NEW = ["VarHandleOp", "AssignVariableOp"]


@pytest.fixture
def log(capfd):
    """Switch the log on; return a function that takes the operations written since."""
    tf.debugging.set_log_device_placement(True)

    def operations(but="_EagerConst"):
        lines = capfd.readouterr().err.splitlines()
        assert all(line.startswith("Executing op ") for line in lines)
        assert all(line.endswith(f" in device {CPU}") for line in lines)
        return [op for line in lines if (op := line.split()[2]) != but]

    yield operations
    tf.debugging.set_log_device_placement(False)


def test_the_guide_of_variables(log):
    my_tensor = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert log(but="") == ["_EagerConst"]
    my_variable = tf.Variable(my_tensor)
    assert log(but="") == NEW
    tf.Variable([False, False, False, True])
    assert log(but="") == ["_EagerConst", *NEW]
    assert (my_variable.shape, my_variable.dtype, log()) == ((2, 2), tf.float32, [])
    my_variable.numpy()
    assert log() == ["ReadVariableOp"]
    assert "numpy=" in repr(my_variable)
    assert log() == ["ReadVariableOp"]
    tf.convert_to_tensor(my_variable)
    assert log() == ["ReadVariableOp"]
    tf.math.argmax(my_variable)
    assert log() == ["ReadVariableOp", "ArgMax"]
    tf.reshape(my_variable, [1, 4])
    assert log() == ["ReadVariableOp", "Reshape"]
    tf.constant(my_variable) == tf.convert_to_tensor(my_variable)  # noqa: B015
    assert log() == ["ReadVariableOp", "ReadVariableOp", "Equal"]


def test_what_is_assigned(log):
    a = tf.Variable([2.0, 3.0])
    tf.Variable(a)
    assert log() == [*NEW, "ReadVariableOp", *NEW]
    a.assign([1, 2])
    assert log(but="") == ["_EagerConst", "AssignVariableOp"]
    with pytest.raises(ValueError, match="Shape mismatch"):
        a.assign([1.0, 2.0, 3.0])
    a.assign_add([2, 3]).numpy()
    assert log() == ["AssignAddVariableOp", "ReadVariableOp"]
    a.assign_sub([2, 3], read_value=False)
    a[0].assign(7.0)
    assert log() == [
        "AssignSubVariableOp", "ReadVariableOp", "StridedSlice", "ResourceStridedSliceAssign",
    ]  # fmt: skip
    a.scatter_nd_add([[0]], [1.0])
    a.scatter_update(tf.IndexedSlices([1.0], [0]))
    assert log() == ["ResourceScatterNdAdd", "ResourceScatterUpdate"]


def test_what_is_placed(log):
    with tf.device("CPU:0"):
        a = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        c = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        log()
        tf.matmul(a, c)
        assert log() == ["ReadVariableOp", "MatMul"]
    a * tf.constant([[1.0, 2.0, 3.0]])
    a + 1
    assert log() == ["ReadVariableOp", "Mul", "ReadVariableOp", "AddV2"]


def test_another_device_is_named(capfd, log):
    if len(jv.config.list_devices("cpu")) < 4:
        pytest.skip("needs 4 CPU devices: see conftest.py")
    with tf.device("CPU:3"):
        tf.add(tf.zeros([2]), tf.ones([2]))
    assert capfd.readouterr().err.count("device:CPU:3") == 3


def test_operations_on_the_host_and_of_others(log):
    tf.strings.join(["a", "b"])
    tf.shape(tf.zeros([2]))
    assert log() == ["StringJoin", "Fill", "Shape"]
    tf.nn.moments(tf.ones([2, 2]), [0])
    tf.linalg.norm(tf.ones([2]))  # one line each, though others are called for them
    assert log() == ["Fill", "Moments", "Fill", "Sqrt"]
    tf.Variable(lambda: tf.zeros([2]))
    assert log() == ["Fill", *NEW]


def test_a_function_is_one_operation(log):
    v = tf.Variable(1.0)

    @tf.function
    def double(x):
        v.assign(x)
        return tf.matmul([[x]], [[2.0]]) + v

    double(tf.constant(1.0))
    log()
    double(tf.constant(2.0))
    assert log() == ["double"]


def test_plain_code_and_gradients_have_lines(log):
    jnp.sin(jnp.float32(1.0))
    assert log()[-1] == "sin"
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.square(v)
    assert log() == [*NEW, "ReadVariableOp", "Square"]
    assert float(tape.gradient(y, v)) == 4.0
    assert log()


def test_of_this_thread_alone(log):
    run_in_threads(lambda: tf.square(tf.Variable(2.0)))
    assert log() == []


def test_off_is_off(capfd):
    codes = {row: row.function.__code__ for row in WRITTEN}
    read, assign = vars(tf.Variable)["value"], tf.Variable.assign
    tf.debugging.set_log_device_placement(True)
    tf.debugging.set_log_device_placement(True)
    assert tf.debugging.get_log_device_placement()
    assert tf.Variable.assign is not assign
    tf.math.bessel_i0(1.0)  # called for the first time, perhaps
    tf.debugging.set_log_device_placement(False)
    tf.debugging.set_log_device_placement(False)
    assert not tf.debugging.get_log_device_placement()
    assert {row: row.function.__code__ for row in codes} == codes == {k: WRITTEN[k] for k in codes}
    assert all(row.function.__code__ is code for row, code in WRITTEN.items())
    assert (INSTEAD, tf.Variable.assign, vars(tf.Variable)["value"]) == ([], assign, read)
    capfd.readouterr()
    tf.square(tf.Variable(2.0)).numpy()
    assert capfd.readouterr().err == ""


def test_a_thread_that_ends_with_its_log_on_leaves_nothing():
    tf.square(2.0)
    code = tf.square.__code__
    run_in_threads(lambda: tf.debugging.set_log_device_placement(True))
    assert tf.square.__code__ is not code
    tf.square(2.0)
    assert (tf.square.__code__, INSTEAD) == (code, [])


def test_operations_are_called_for_the_first_time_while_the_log_is_switched(monkeypatch):
    class Switched:
        """A row, and its function; another one is called as the code of this one is set."""

        function = property(lambda self: self)

        def __setattr__(self, name, code):
            written[Switched()] = code

    written = {**WRITTEN, Switched(): None}
    monkeypatch.setattr(placement, "WRITTEN", written)
    tf.debugging.set_log_device_placement(True)
    tf.debugging.set_log_device_placement(False)
    assert len(written) == len(WRITTEN) + 4


def test_refused_inside_a_tape():
    with tf.GradientTape(), pytest.raises(RuntimeError, match="log of placement is enabled inside"):
        tf.debugging.set_log_device_placement(True)
    assert INSTEAD == []

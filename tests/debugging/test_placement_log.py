"""The log of placement in `debugging/watchers.py`.

A line for each operation, in this thread, until off.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from threads import run_in_threads

import jaxvars as jv
from jaxvars.debugging import (
    disable_check_numerics,
    enable_check_numerics,
    get_log_device_placement,
    set_log_device_placement,
)
from jaxvars.errors import CheckError

pytestmark = pytest.mark.skipif(
    len(jv.config.list_devices("cpu")) < 8, reason="needs 8 CPU devices: see conftest.py"
)
CPU = "/job:localhost/replica:0/task:0/device:CPU"


@pytest.fixture
def log(capfd):
    """Switch the log on; return a function that takes what has been written since."""
    set_log_device_placement(True)

    def lines():
        out, err = capfd.readouterr()
        assert out == ""
        return err.splitlines()

    yield lines
    set_log_device_placement(False)


def test_an_operation_is_written_where_it_ran(log):
    with jv.device("CPU:3"):
        x = jnp.ones((2, 2))
        log()
        jnp.matmul(x, x)
    assert log() == [f"Executing op matmul in device {CPU}:3"]


def test_variables_are_written_when_they_are_created_and_assigned(log):
    with jv.device("CPU:2"):
        v = jv.Variable([1.0, 2.0], name="weights")
    assert log()[-1] == f"Variable 'weights' created in device {CPU}:2"
    v.assign([3.0, 4.0])
    assert log()[-1] == f"Variable 'weights' assigned in device {CPU}:2"
    v.assign_add([1.0, 1.0])
    assert log()[-1] == f"Variable 'weights' assigned in device {CPU}:2"
    v[0].assign(7.0)
    assert log()[-1] == f"Variable 'weights' assigned in device {CPU}:2"


def test_a_compiled_function_is_one_operation(log):
    v = jv.Variable(0.0, name="total")

    @jv.compile
    def add(x):
        v.assign_add(jnp.sin(x) * 2.0)
        return v.value

    add(1.0)
    log()
    add(2.0)
    assert log() == [
        f"Executing op add in device {CPU}:0",
        f"Variable 'total' assigned in device {CPU}:0",
    ]


def test_a_mesh_is_written_as_such(log):
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(jnp.ones(8), NamedSharding(mesh, PartitionSpec("x")))
    log()
    x * 2
    assert log() == ["Executing op multiply in 8 devices, CPU:0 to CPU:7"]


def test_what_is_only_traced_is_not_written(log):
    jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    assert log() == []


def test_gradients_are_the_same_with_the_log(log):
    v = jv.Variable(0.5)
    with jv.GradientTape() as tape:
        y = jnp.sin(v) * 2
    assert float(tape.gradient(y, v)) == pytest.approx(2 * jnp.cos(0.5).item())
    assert any("Executing op sin" in line for line in log())


def test_off_is_off(log, capfd):
    assert get_log_device_placement()
    set_log_device_placement(True)  # once is enough
    set_log_device_placement(False)
    log()
    jv.Variable(1.0).assign(2.0)
    assert capfd.readouterr().err == ""
    assert not get_log_device_placement()
    set_log_device_placement(False)


def test_other_threads_are_not_written(log):
    run_in_threads(lambda: jv.Variable(1.0).assign(jnp.sin(2.0)))
    assert log() == []


def test_not_inside_a_tape():
    with (
        jv.GradientTape(),
        pytest.raises(RuntimeError, match=r"log of placement is enabled inside"),
    ):
        set_log_device_placement(True)


@pytest.mark.parametrize("log_first", [True, False])
def test_two_listeners_come_and_go_in_any_order(log, log_first):
    enable_check_numerics()
    try:
        with pytest.raises(CheckError, match="log gave a number that is not finite"):
            jnp.log(jnp.float32(0.0))
        if log_first:
            set_log_device_placement(False)
            with pytest.raises(CheckError):
                jnp.log(jnp.float32(0.0))
        log()
    finally:
        disable_check_numerics()
    jnp.log(jnp.float32(0.0))
    assert bool(log()) is not log_first

"""`tf.config` and `tf.device`: settings before the start, in a separate process; devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jaxvars import tf

BEFORE_THE_START = """
from jaxvars import tf
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_visible_devices([], "GPU")
three = [tf.config.LogicalDeviceConfiguration()] * 3
try:
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration(memory_limit=100)]
    )
except ValueError as error:
    print(error)
tf.config.experimental.set_virtual_device_configuration(cpu, three)
tf.config.threading.set_intra_op_parallelism_threads(2)
print(tf.config.get_logical_device_configuration(cpu) == three)
print([device.name for device in tf.config.list_logical_devices()])
for late in (
    lambda: tf.config.set_logical_device_configuration(cpu, three[:2]),
    lambda: tf.config.threading.set_intra_op_parallelism_threads(4),
):
    try:
        late()
    except RuntimeError as error:
        print(str(error).partition(".")[0])
with tf.device("/CPU:2"):
    v = tf.Variable([1.0])
print(v.device, (v + 1).numpy())
"""


def test_settings_before_the_start_and_after():
    env = {k: v for k, v in os.environ.items() if not k.startswith(("XLA", "JAX"))}
    env |= {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(Path(tf.__file__).parents[2])}
    program = [sys.executable, "-c", BEFORE_THE_START]
    ran = subprocess.run(program, env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [
        "Setting memory limit on CPU is currently not supported",
        "True",
        "['/device:CPU:0', '/device:CPU:1', '/device:CPU:2']",
        "Virtual devices cannot be modified after being initialized",
        "Intra op parallelism cannot be modified after initialization",
        "/job:localhost/replica:0/task:0/device:CPU:2 [2.]",
    ]


def test_a_gpu_cannot_be_split():
    gpu = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
    with pytest.raises(ValueError, match="set_memory_fraction"):
        tf.config.set_logical_device_configuration(
            gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=1024)]
        )


def test_visible_devices_that_change_nothing_are_never_too_late():
    tf.config.set_visible_devices(tf.config.list_physical_devices("CPU"), "CPU")
    tf.config.set_visible_devices([], "GPU")


def test_functions_run_as_python():
    seen = []

    @tf.function
    def program(x):
        seen.append(tf.executing_eagerly())
        return x + 1

    program(tf.constant(1))
    program(tf.constant(1))
    tf.config.run_functions_eagerly(True)
    try:
        assert tf.config.functions_run_eagerly()
        program(tf.constant(1))
        program(tf.constant(1))
    finally:
        tf.config.run_functions_eagerly(False)
    assert seen == [False, True, True]


def test_precision_of_products():
    assert tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    try:
        assert not tf.config.experimental.tensor_float_32_execution_enabled()
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(True)


# ---------------------------------------------------------------- devices
def test_variables_of_several_devices_work_together():
    with tf.device("CPU:1"):
        a, x = tf.Variable([1.0, 2.0]), tf.constant([1.0, 1.0])
    with tf.device(tf.DeviceSpec(device_type="CPU", device_index=2)):
        b = tf.Variable([3.0, 4.0])
        assert (a * b).device.endswith("CPU:2")
    assert [y.device[-1] for y in (a, b, x)] == ["1", "2", "1"]
    np.testing.assert_array_equal(a + b + x, [5.0, 7.0])
    a.assign(b)
    assert a.device.endswith("CPU:1")


def test_a_device_that_does_not_exist():
    tf.config.set_soft_device_placement(False)
    try:
        with (
            pytest.raises(tf.errors.InvalidArgumentError, match="does not exist"),
            tf.device("GPU:7"),
        ):
            pass
    finally:
        tf.config.set_soft_device_placement(True)
    with pytest.raises(ValueError, match="Unknown attribute 'nowhere'"), tf.device("nowhere"):
        pass
    with pytest.raises(RuntimeError, match="does not support functions"):
        tf.device(lambda op: "CPU:0")


def test_scopes_without_a_device_or_a_kind():
    with tf.device("CPU:3"), tf.device(None):
        assert tf.constant(1).device.endswith("CPU:0")
    with tf.device("/job:localhost"):
        assert tf.constant(1).device.endswith("CPU:0")


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match=r"jaxvars\.parallel\.initialize"):
        tf.config.experimental.ClusterDeviceFilters  # noqa: B018 - it raises


def test_names_of_devices_are_spelled_as_tensorflow_does() -> None:
    spec = tf.DeviceSpec(job="foo", task=3, device_type="cpu", device_index=0)
    assert spec.to_string() == "/job:foo/task:3/device:CPU:0"
    own = tf.DeviceSpec.from_string("/job:foo/device:MyDevice:2")
    assert spec.make_merged_spec(own).to_string() == "/job:foo/task:3/device:MyDevice:2"
    assert spec.replace(device_type="gpu", device_index=None).to_string().endswith("/device:GPU:*")
    with pytest.raises(ValueError, match="Multiple device types are not allowed"):
        tf.DeviceSpec.from_string("/job:muu/device:GPU:2/cpu:0")

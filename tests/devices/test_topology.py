"""`devices/topology.py`: devices that this machine does not have."""

from __future__ import annotations

from importlib.util import find_spec

import jax
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.devices import topology
from jaxvars.errors import DeviceError

HAS_LIBTPU = find_spec("libtpu") is not None
needs_libtpu = pytest.mark.skipif(not HAS_LIBTPU, reason='needs pip install "jaxvars[tpu]"')


@pytest.mark.skipif(HAS_LIBTPU, reason="libtpu is installed")
def test_without_the_compiler_the_error_names_what_to_install():
    with pytest.raises(DeviceError, match=r'needs .* libtpu.*pip install "jaxvars\[tpu\]"'):
        jv.mesh({"data": -1}, "v5e:2x2")
    with pytest.raises(DeviceError, match=r"The topology 'v5e:2x2' needs"):
        jv.plan(jv.compile(lambda x: x), 1.0, topology="v5e:2x2")


@pytest.mark.skipif(find_spec("jax_cuda12_plugin") is not None, reason="it is installed")
def test_without_the_compiler_for_gpus_the_error_names_what_to_install():
    with pytest.raises(
        DeviceError, match=r"'h100:8' needs .*\"jaxvars\[plan-gpu\]\", with JAX_PLA"
    ):
        jv.mesh({"data": -1}, "h100:8")


def test_the_description_of_a_gpu_has_what_xla_asks_for():
    text = topology._target(topology.GPUS["h100"])
    assert "core_count: 132" in text
    assert "cuda_compute_capability { major: 9 feature_extension: ACCELERATED_FEATURES }" in text
    assert 'device_description_str: "NVIDIA H100 80GB HBM3"' in text


def test_devices_of_this_machine_are_present():
    assert all(map(topology.is_present, jax.devices()))
    topology.check_present(jax.devices(), "A value")
    topology.check_present([], "A value")


class Absent:
    """A device that programs can be compiled for."""

    platform, device_kind, client = "cpu", "TPU v5 lite", object()


class Unknown(Absent):
    platform = "no such platform"


@pytest.mark.parametrize("device", [Absent(), Unknown()])
def test_what_cannot_be_on_a_device_is_refused_by_name(device):
    assert not topology.is_present(device)
    message = r"Variable 'w' cannot be on TPU v5 lite devices.*jv\.abstract.*jv\.plan\(step, x, top"
    with pytest.raises(DeviceError, match=message):
        topology.check_present([device], "Variable 'w'")


# ---------------------------------------------------------------- with the compiler
@pytest.fixture(scope="module")
def mesh():
    return jv.mesh({"data": 2, "model": 2}, "v5e:2x2")


@needs_libtpu
@pytest.mark.topology
def test_a_mesh_of_a_topology(mesh):
    assert dict(mesh.shape) == {"data": 2, "model": 2}
    assert {device.device_kind for device in mesh.devices.flat} == {"TPU v5 lite"}
    assert jv.mesh({"data": -1}, "v5e:2x4").shape == {"data": 8}
    with pytest.raises(DeviceError, match=r"has 3 devices, and 'v5e:2x2' has 4"):
        jv.mesh({"data": 3}, "v5e:2x2")
    with pytest.raises(DeviceError, match=r"does not know the topology 'v5e:3'.* as in 'v5e:4x4'"):
        jv.mesh({"data": 3}, "v5e:3")


@needs_libtpu
@pytest.mark.topology
def test_values_are_refused_on_a_topology(mesh):
    w = jv.Variable(np.ones((4, 4), np.float32), name="w")
    sharded = jax.sharding.NamedSharding(mesh, jax.P("data"))
    with pytest.raises(DeviceError, match=r"Variable 'w' cannot be on TPU v5 lite"):
        jv.place({"w": w}, jax.P("data"), mesh=mesh)
    with pytest.raises(DeviceError, match=r"Variable 'new' cannot be on TPU v5 lite"):
        jv.Variable(np.ones(4), sharding=sharded, name="new")
    with pytest.raises(DeviceError, match=r"array cannot be on TPU v5 lite"):
        jv.shard(np.ones(4), jax.P("data"), mesh=mesh)
    with pytest.raises(DeviceError, match=r"computed outside of programs"), jv.use_mesh(mesh):
        jv.Variable(np.ones(4))
    with pytest.raises(AttributeError, match="other"), jv.use_mesh(mesh):
        raise AttributeError("other")
    assert float(w.value.sum()) == 16

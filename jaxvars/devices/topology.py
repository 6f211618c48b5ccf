"""Devices that this machine does not have: programs are compiled for them, and do not run.

mesh = jv.mesh({"data": 16, "model": 16}, "v5e:16x16")
mesh = jv.mesh({"data": 8}, "h100:8")
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any, NamedTuple

import jax
from jax.experimental import topologies
from jax.extend.backend import get_backend

from jaxvars.errors import DeviceError

COMPILE_ONLY = ("compile-only client", "has no attribute 'local_devices'")
"""What JAX says of values and computations on a topology."""


class _GPU(NamedTuple):
    """What XLA asks of a GPU before it compiles for it.

    Source: the data sheets of NVIDIA, and the CUDA programming guide's table of compute
    capabilities; memory and bandwidth are those that the driver tells.
    """

    name: str
    capability: int
    cores: int
    units: int  # of each core, for float32
    shared: int  # bytes of memory of each core
    block: int  # bytes of it that a block may have
    cache: int  # bytes
    clock: float  # GHz
    memory: int  # bytes
    bandwidth: int  # bytes in a second


_SM80, _SM90 = (167936, 166912), (233472, 232448)
GPUS = {
    "a100": _GPU(
        "NVIDIA A100-SXM4-80GB", 8, 108, 64, *_SM80, 40 * 2**20, 1.41, 85100068864, 2039040000000
    ),
    "h100": _GPU(
        "NVIDIA H100 80GB HBM3", 9, 132, 128, *_SM90, 50 * 2**20, 1.98, 84942979072, 3352320000000
    ),
    "h200": _GPU(
        "NVIDIA H200 141GB HBM3e", 9, 132, 128, *_SM90, 50 * 2**20, 1.98, 151397597184, 4800 * 10**9
    ),
    "b200": _GPU(
        "NVIDIA B200", 10, 148, 128, *_SM90, 132644864, 1.965, 191514411008, 7672320000000
    ),
}
_PER_HOST = 8
_EXAMPLES = "'v5e:4x4', 'v6e:16x16', 'v5p:2x2x2', 'h100:8' or 'a100:16'"


def devices_of(name: str) -> list[Any]:
    """Return the devices of a topology, known by its name.

    Args:
        name: of TPUs the kind of the chips, and how many along each dimension, "v5e:16x16"; of
            GPUs the kind and how many, "h100:8", of which eight are in a machine.

    Raises:
        DeviceError: when the topology is not known, or no compiler for it is installed.
    """
    gpu = re.fullmatch(rf"({'|'.join(GPUS)}):(\d+)", name)
    try:
        found = _list_gpus(gpu[1], int(gpu[2])) if gpu else _list_tpus(name)
        return list(found.devices)
    except (jax.errors.JaxRuntimeError, NotImplementedError, ValueError) as error:
        if isinstance(error, DeviceError):
            raise
        raise DeviceError(
            f"XLA does not know the topology {name!r}. Write the kind of the devices and how many "
            f"there are along each dimension, as in {_EXAMPLES}: {error}"
        ) from error


def _list_tpus(name: str) -> Any:
    if find_spec("libtpu") is None:
        raise DeviceError(
            f"The topology {name!r} needs the compiler for TPUs, libtpu, which is not installed: "
            'pip install "jaxvars[tpu]". It runs without a TPU.'
        )
    return topologies.get_topology_desc(platform="tpu", topology_name=name)


def _list_gpus(kind: str, count: int) -> Any:
    hosts, each = (1, count) if count <= _PER_HOST else (count // _PER_HOST, _PER_HOST)
    if not count or hosts * each != count:
        raise DeviceError(
            f"There is no topology {kind}:{count}: say 1 to 8 of them, or a multiple of 8."
        )
    if find_spec("jax_cuda12_plugin") is None:
        raise DeviceError(
            f"The topology '{kind}:{count}' needs the compiler for GPUs, which is not installed: "
            'pip install "jaxvars[plan-gpu]", with JAX_PLATFORMS=cpu in the environment. It runs '
            "without a GPU."
        )
    config, shape = _target(GPUS[kind]), f"1x{hosts}x{each}"
    return topologies.get_topology_desc("", "cuda", target_config=config, topology=shape)


def _target(gpu: _GPU) -> str:
    """Return XLA's description of a GPU (a GpuTargetConfigProto), as protobuf writes it."""
    fields = {
        "threads_per_block_limit": 1024, "threads_per_warp": 32, "threads_per_core_limit": 2048,
        "block_dim_limit_x": 2**31 - 1, "block_dim_limit_y": 65535, "block_dim_limit_z": 65535,
        "thread_dim_limit_x": 1024, "thread_dim_limit_y": 1024, "thread_dim_limit_z": 64,
        "registers_per_core_limit": 65536, "registers_per_block_limit": 65536,
        "shared_memory_per_block": 49152, "shared_memory_per_core": gpu.shared,
        "shared_memory_per_block_optin": gpu.block, "core_count": gpu.cores,
        "fpus_per_core": gpu.units, "l2_cache_size": gpu.cache, "clock_rate_ghz": gpu.clock,
        "memory_bandwidth": gpu.bandwidth, "device_memory_size": gpu.memory,
    }  # fmt: skip
    extension = "ACCELERATED_FEATURES" if gpu.capability >= 9 else "NONE"
    capability = f"{{ major: {gpu.capability} feature_extension: {extension} }}"
    rows = [f"{name}: {value}" for name, value in fields.items()]
    return (
        f"gpu_device_info {{ {' '.join(rows)} cuda_compute_capability {capability} }} "
        f'platform_name: "CUDA" device_description_str: "{gpu.name}"'
    )


def check_present(devices: Iterable[Any], what: object) -> None:
    """Raise DeviceError for devices that values cannot be on; `what` would be."""
    device = next(iter(devices), None)
    if device is not None and not is_present(device):
        raise DeviceError(
            f"{what} cannot be on {device.device_kind} devices, which this machine does not have: "
            "a topology is there to compile for. Make a model without values, "
            "jv.abstract(lambda: Model()), or leave it where it is and have it planned elsewhere: "
            'jv.plan(step, x, topology="v5e:4x4", mesh={"data": 16}).'
        )


def is_present(device: Any) -> bool:
    """Return whether values can be on a device: of this process, or of another in its group."""
    try:
        return device.client is get_backend(device.platform)
    except RuntimeError:  # no such backend
        return False

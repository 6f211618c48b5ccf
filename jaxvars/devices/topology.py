"""Devices that this machine does not have: programs are compiled for them, and do not run.

mesh = jv.mesh({"data": 16, "model": 16}, "v5e:16x16")
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import jax
from jax.experimental import topologies
from jax.extend.backend import get_backend

from jaxvars.errors import DeviceError

COMPILE_ONLY = ("compile-only client", "has no attribute 'local_devices'")
"""What JAX says of values and computations on a topology."""


def devices_of(name: str) -> list[Any]:
    """Return the devices of a topology, known by its name.

    Args:
        name: the kind of the chips, and how many along each dimension: "v5e:16x16", "v5p:4x4x4".

    Raises:
        DeviceError: when there is no such topology, or no compiler for it is installed.
    """
    if find_spec("libtpu") is None:
        raise DeviceError(
            f"The topology {name!r} needs the compiler for TPUs, libtpu, which is not installed: "
            'pip install "jaxvars[tpu]". It runs without a TPU.'
        )
    try:
        return list(topologies.get_topology_desc(platform="tpu", topology_name=name).devices)
    except (jax.errors.JaxRuntimeError, NotImplementedError, ValueError) as error:
        raise DeviceError(
            f"{name!r} is no topology that libtpu knows. Write the kind of the chips and how many "
            f"there are along each dimension, as in 'v5e:4x4', 'v6e:16x16' or 'v5p:2x2x2': {error}"
        ) from error


def check_present(devices: Iterable[Any], what: str) -> None:
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

"""`tf.config`: devices, and how functions run; over `jaxvars.config`.

Rules this file keeps:
- what comes too late is a RuntimeError; a device that does not exist, a ValueError;
- what JAX has not got is refused, but for hints that change no result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from jaxvars import config as _config
from jaxvars.compiler import function as _functions
from jaxvars.config import LogicalDevice as LogicalDevice
from jaxvars.config import PhysicalDevice as PhysicalDevice
from jaxvars.config import get_soft_device_placement as get_soft_device_placement
from jaxvars.config import get_visible_devices as get_visible_devices
from jaxvars.config import list_physical_devices as list_physical_devices
from jaxvars.config import set_soft_device_placement as set_soft_device_placement
from jaxvars.devices.device import short_name
from jaxvars.errors import DeviceError
from jaxvars.tf.config import experimental as experimental
from jaxvars.tf.config import optimizer as optimizer
from jaxvars.tf.config import threading as threading
from jaxvars.tf.listing import lister


@final
@dataclass(frozen=True)
class LogicalDeviceConfiguration:
    """What a logical device is to have.

    Args:
        memory_limit: megabytes; of a GPU.
        experimental_priority: must be None.
        experimental_device_ordinal: must be None.
    """

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


_CONFIGURED: dict[str, list[LogicalDeviceConfiguration]] = {}
"""The configurations of physical devices, by name."""


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Return the devices that this process computes on; starts JAX.

    Args:
        device_type: "CPU", "GPU" or "TPU"; all when None.

    >>> list_logical_devices("CPU")[0]
    LogicalDevice(name='/device:CPU:0', device_type='CPU')
    """
    kind = None if device_type is None else device_type.lower()
    devices: Any = _config.list_devices(kind)
    return [LogicalDevice(f"/device:{short_name(d)}", d.platform.upper()) for d in devices]


def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration]
) -> None:
    """Split a physical device into several.

    Args:
        device: of `list_physical_devices()`.
        logical_devices: a configuration for each.

    Raises:
        RuntimeError: when JAX has started.
        ValueError: when a CPU is to have a memory limit, or a GPU several parts or a limit, which
            JAX has not got.

    Differs from TensorFlow: a GPU cannot be split or limited to megabytes;
    `jaxvars.config.set_memory_fraction` limits all GPUs.
    """
    count = len(logical_devices)
    if device.device_type == "CPU" and any(c.memory_limit is not None for c in logical_devices):
        raise ValueError("Setting memory limit on CPU is currently not supported")
    if device.device_type == "CPU":
        _apply_in_time("Virtual devices", lambda: _config.set_logical_devices(count))
    elif count != 1 or logical_devices[0].memory_limit is not None:
        raise ValueError(
            f"JAX can't split {device.name} or limit it to megabytes. To limit the memory of all "
            "GPUs write jaxvars.config.set_memory_fraction(0.5); to try several devices, split "
            "the CPU."
        )
    _CONFIGURED[device.name] = list(logical_devices)


def get_logical_device_configuration(
    device: PhysicalDevice,
) -> list[LogicalDeviceConfiguration] | None:
    """Return how a device was split; None if it was not."""
    return _CONFIGURED.get(device.name)


def set_visible_devices(
    devices: PhysicalDevice | Sequence[PhysicalDevice], device_type: str | None = None
) -> None:
    """Choose the processors that JAX may use.

    Args:
        devices: of `list_physical_devices()`; an empty list for none.
        device_type: what they are chosen among; all when None.

    Raises:
        RuntimeError: when JAX has started with others.
        ValueError: for a device that does not exist or is not of the type, and where JAX can't
            hide one: the CPU, some of several TPUs.
    """
    chosen = [devices] if isinstance(devices, PhysicalDevice) else list(devices)
    if chosen != get_visible_devices(device_type):
        _apply_in_time("Visible devices", lambda: _config.set_visible_devices(chosen, device_type))


def _apply_in_time(what: str, change: Callable[[], None]) -> None:
    """Make a change; raise RuntimeError where it comes too late."""
    try:
        change()
    except DeviceError as error:
        if _config.has_started():
            raise RuntimeError(f"{what} cannot be modified after being initialized. {error}") from error  # fmt: skip  # noqa: E501
        raise ValueError(str(error)) from error


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Run the Python bodies of `tf.function`s (True), or the compiled programs (False).

    >>> run_functions_eagerly(True)
    >>> functions_run_eagerly()
    True
    >>> run_functions_eagerly(False)
    """
    _functions.run_eagerly(bool(run_eagerly))


def functions_run_eagerly() -> bool:
    """Return whether `tf.function`s run as Python."""
    return _functions.EAGER.on


experimental_run_functions_eagerly = run_functions_eagerly
experimental_functions_run_eagerly = functions_run_eagerly

experimental._add_older_names(
    get_visible_devices=get_visible_devices, list_logical_devices=list_logical_devices,
    list_physical_devices=list_physical_devices, set_visible_devices=set_visible_devices,
    set_virtual_device_configuration=set_logical_device_configuration,
    get_virtual_device_configuration=get_logical_device_configuration,
    VirtualDeviceConfiguration=LogicalDeviceConfiguration,
)  # fmt: skip


__dir__ = lister(__name__)

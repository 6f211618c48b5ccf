"""`tf.config.experimental`: memory of devices, precision, and older names."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import jax

from jaxvars import config as _config
from jaxvars.config import PhysicalDevice
from jaxvars.devices.device import list_devices
from jaxvars.errors import DeviceError
from jaxvars.tf.config.devices import DeviceSpec
from jaxvars.tf.errors import UnimplementedError
from jaxvars.tf.listing import namespace
from jaxvars.tf.random.streams import require_seeds

Device: TypeAlias = Any  # a jax.Device: a value to type checkers, not a type

_DETERMINISM = "--xla_gpu_deterministic_ops=true"


_OLDER: dict[str, Any] = {}


def _add_older_names(**names: Any) -> None:  # pyright: ignore[reportUnusedFunction] - tf.config calls it
    """Give older names to functions of `tf.config`, which imports this file."""
    _OLDER.update(names)
    globals().update(names)


# ---------------------------------------------------------------- memory
def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Choose whether GPU memory is taken as it is needed, or most of it at the start.

    Args:
        device: a GPU. JAX has one setting, for all of them.
        enable: take it as it is needed (True).

    Raises:
        ValueError: for a CPU.
        RuntimeError: when JAX has started.
    """
    if device.device_type == "CPU":
        raise ValueError("Cannot set memory growth on non-GPU and non-Pluggable devices")
    try:
        _config.set_memory_growth(device, enable)
    except DeviceError as error:
        problem = "Physical devices cannot be modified after being initialized"
        raise RuntimeError(f"{problem}. {error}") from error


def get_memory_growth(device: PhysicalDevice) -> bool:
    """Return whether the memory of a GPU is taken as it is needed; ValueError for a CPU."""
    return _config.get_memory_growth(device)


def get_memory_info(device: str) -> dict[str, int]:
    """Return how much memory a device uses.

    Args:
        device: like "GPU:0".

    Returns:
        `current` and `peak`, in bytes; 0 for a CPU, which does not count it.

    Raises:
        ValueError: when the device does not exist.
    """
    found = _find_device(device)
    if found.platform == "cpu":
        return {"current": 0, "peak": 0}
    return _config.get_memory_info(found)


def get_memory_usage(device: str) -> int:
    """Return the bytes that a device uses now; see `get_memory_info`."""
    return get_memory_info(device)["current"]


def reset_memory_stats(device: str) -> None:
    """Do nothing for a CPU, which does not count its memory.

    Raises:
        ValueError: when the device does not exist.
        UnimplementedError: for other devices, whose peak JAX cannot reset.
    """
    if _find_device(device).platform != "cpu":
        raise UnimplementedError(
            None, None, f"JAX cannot reset the peak of {device}: compare two peaks instead."
        )


def get_device_details(device: PhysicalDevice) -> dict[str, Any]:
    """Return `device_name` and `compute_capability` of a GPU; nothing of a CPU."""
    if device.device_type != "GPU":
        return {}
    found = _find_device(device.name.removeprefix("/physical_device:"))
    details: dict[str, Any] = {"device_name": found.device_kind}
    if version := getattr(found, "compute_capability", None):
        details["compute_capability"] = tuple(map(int, version.split(".")))
    return details


def _find_device(name: str) -> Device:
    spec = DeviceSpec.from_string(name)
    devices = list_devices(spec.device_type or "")
    index = spec.device_index or 0
    if index >= len(devices):
        raise ValueError(f"No matching devices found for {name!r}")
    return devices[index]


# ---------------------------------------------------------------- precision, order
def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Allow (True) or forbid float32 products of less precision, on devices that have them.

    >>> enable_tensor_float_32_execution(False)
    >>> tensor_float_32_execution_enabled()
    False
    >>> enable_tensor_float_32_execution(True)
    """
    jax.config.update("jax_default_matmul_precision", None if enabled else "float32")


def tensor_float_32_execution_enabled() -> bool:
    """Return whether float32 products may have less precision."""
    precision: Any = jax.config.values["jax_default_matmul_precision"]
    return precision not in ("float32", "highest")


def enable_op_determinism() -> None:
    """Have operations give the same result each time: those on GPUs, as those on CPUs do.

    Random values without a seed are refused from then on.

    Raises:
        RuntimeError: when JAX has started with GPUs.
    """
    require_seeds()
    flags = os.environ.get("XLA_FLAGS", "")
    if _DETERMINISM in flags:
        return
    if _config.has_started() and list_devices("gpu"):
        raise RuntimeError("Op determinism must be enabled before JAX has started: call it first.")
    os.environ["XLA_FLAGS"] = f"{flags} {_DETERMINISM}".strip()


__getattr__, __dir__ = namespace(__name__, _OLDER)

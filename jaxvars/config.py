"""What the process computes on: devices, their memory, and what is done without them.

    jv.config.set_logical_devices(4)             # four CPU devices, to try a mesh on any machine
    jv.config.set_visible_devices([], "GPU")     # compute on the CPU
    jv.config.list_logical_devices()
    jv.config.compilation_cache()                # compile once, for all processes

JAX looks at its settings once, when its backend starts, and that is with the first operation.

Rules this file keeps:
- a setting that comes too late is refused, and so is one that JAX has not got: none is ignored;
- listing *physical* devices does not start JAX.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import re
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, final

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from jaxvars.compiler.function import run_eagerly
from jaxvars.devices.device import (
    device_name,
    find_device,
    get_soft_device_placement,
    list_devices,
    set_soft_device_placement,
)
from jaxvars.display.lookup import namespace
from jaxvars.errors import DeviceError

__all__ = [
    "LogicalDevice",
    "PhysicalDevice",
    "compilation_cache",
    "get_memory_growth",
    "get_memory_info",
    "get_soft_device_placement",
    "get_visible_devices",
    "has_started",
    "list_devices",
    "list_logical_devices",
    "list_physical_devices",
    "run_eagerly",
    "set_logical_devices",
    "set_memory_fraction",
    "set_memory_growth",
    "set_soft_device_placement",
    "set_visible_devices",
]

Device: TypeAlias = Any  # a jax.Device: a value to type checkers, not a type

_ASKING = threading.RLock()  # JAX is asked whether it has started, or told how many devices
_NUMBER = re.compile(r":(\d+)$")
_PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
_FRACTION = "XLA_CLIENT_MEM_FRACTION"


@final
@dataclass(frozen=True)
class PhysicalDevice:
    """A processor of this machine.

    Attributes:
        name: like `/physical_device:GPU:0`.
        device_type: "CPU", "GPU" or "TPU".
    """

    name: str
    device_type: str


@final
@dataclass(frozen=True)
class LogicalDevice:
    """A device that JAX computes on.

    Attributes:
        name: in TensorFlow's full form; `jv.device` takes it.
        device_type: "CPU", "GPU" or "TPU".
    """

    name: str
    device_type: str


if not TYPE_CHECKING:  # a checker would take any name for an attribute
    __getattr__, __dir__ = namespace(__name__, __all__)


# ---------------------------------------------------------------- listing
def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the processors of this machine; JAX is not started by it.

    The CPU is one, whatever virtual devices it has. Before JAX has started, GPUs are those that
    the driver shows, if the JAX that is installed can use them, and TPUs are not known.

    Args:
        device_type: "CPU", "GPU" or "TPU"; all when None.

    >>> list_physical_devices("CPU")
    [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    found = [("CPU", 1), ("GPU", _count("gpu")), ("TPU", _count("tpu"))]
    return [
        PhysicalDevice(f"/physical_device:{kind}:{i}", kind)
        for kind, count in found
        if device_type is None or kind == device_type.upper()
        for i in range(count)
    ]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Return the devices that this process computes on; starts JAX.

    Args:
        device_type: "CPU", "GPU" or "TPU"; all when None.

    >>> list_logical_devices("CPU")[0]
    LogicalDevice(name='/job:localhost/replica:0/task:0/device:CPU:0', device_type='CPU')
    """
    kind = None if device_type is None else device_type.lower()
    return [LogicalDevice(device_name(d), d.platform.upper()) for d in list_devices(kind)]


# ---------------------------------------------------------------- before the start
def set_logical_devices(count: int, device_type: str = "CPU") -> None:
    """Have this process see its CPU as several devices.

    Args:
        count: how many, at least 1.
        device_type: "CPU": JAX splits nothing else.

    Raises:
        DeviceError: when JAX has started with another number, or for another type.

    >>> set_logical_devices(len(list_devices("cpu")))  # as many as there are is never too late

    Differs from TensorFlow: `set_logical_device_configuration` also splits GPUs; JAX can't.
    """
    if device_type.upper() != "CPU":
        raise DeviceError(
            f"JAX has no virtual {device_type.upper()} devices: each one is a device. To try a "
            "program on several, use virtual CPUs: jv.config.set_logical_devices(4)."
        )
    if count < 1:
        raise DeviceError(f"A process has at least one CPU device, not {count}.")
    with _ASKING:
        if not has_started():
            jax.config.update("jax_num_cpu_devices", count)
            return
    have = len(list_devices("cpu"))
    _refuse_late(count != have, f"{count} CPU devices", f"it has {have}")


def set_visible_devices(
    devices: PhysicalDevice | str | Iterable[PhysicalDevice | str], device_type: str | None = None
) -> None:
    """Choose the processors that JAX may use.

    Args:
        devices: of `list_physical_devices()`, or their names; an empty list for none.
        device_type: what they are chosen among: "CPU", "GPU" or "TPU"; all when None.

    Raises:
        DeviceError: when JAX has started, for a device that does not exist, and when the CPU or
            some of several TPUs would be hidden, which JAX can't.

    >>> if not has_started():
    ...     set_visible_devices([], "GPU")
    """
    is_one = isinstance(devices, PhysicalDevice | str)
    chosen = [_find_physical(device) for device in ([devices] if is_one else devices)]
    among = [device_type.upper()] if device_type else ["CPU", "GPU", "TPU"]
    for device in chosen:
        if device.device_type not in among:
            raise DeviceError(f"{device.name!r} is not a {among[0]}.")
    _refuse_late(has_started(), "other visible devices", "they are fixed")
    if "CPU" in among and not any(d.device_type == "CPU" for d in chosen):
        raise DeviceError("JAX always has its CPU: list it, or choose among the others, 'GPU'.")
    for kind in among:
        if kind != "CPU":
            _set_visible(kind, [d for d in chosen if d.device_type == kind])


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the processors that JAX may use.

    Args:
        device_type: "CPU", "GPU" or "TPU"; all when None.

    >>> get_visible_devices("CPU")
    [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    listed = list_physical_devices(device_type)
    return [device for device in listed if _is_usable(device)]


def set_memory_growth(device: PhysicalDevice | str, enable: bool) -> None:
    """Choose whether GPU memory is taken as it is needed, or most of it at the start.

    Args:
        device: a GPU. JAX has one setting, for all of them.
        enable: take it as it is needed (True), or most of it at the start, JAX's default (False).

    Raises:
        DeviceError: when JAX has started, and for a CPU, whose memory always grows.
    """
    _refuse_cpu(_find_physical(device))
    _refuse_late(has_started(), "another use of memory", "it is fixed")
    os.environ[_PREALLOCATE] = "false" if enable else "true"


def get_memory_growth(device: PhysicalDevice | str) -> bool:
    """Return whether the memory of a GPU is taken as it is needed.

    Args:
        device: a GPU.

    Raises:
        DeviceError: for a CPU, whose memory always grows.
    """
    _refuse_cpu(_find_physical(device))
    return os.environ.get(_PREALLOCATE, "").lower() in {"false", "0"}


def set_memory_fraction(fraction: float) -> None:
    """Choose how much of each GPU's memory JAX may take.

    Args:
        fraction: of the whole, more than 0, at most 1. JAX's default is 0.75.

    Raises:
        DeviceError: when JAX has started, or for another number.
    """
    if not 0 < fraction <= 1:
        raise DeviceError(f"A fraction of memory is more than 0 and at most 1, not {fraction}.")
    _refuse_late(has_started(), "another use of memory", "it is fixed")
    os.environ[_FRACTION] = str(fraction)


# ---------------------------------------------------------------- while it runs
def get_memory_info(device: str | Device) -> dict[str, int]:
    """Return how much memory a device uses.

    Args:
        device: a name as `jv.device` takes it, or a `jax.Device`.

    Returns:
        `current` and `peak`, in bytes.

    Raises:
        DeviceError: for a device that does not count it, like a CPU.
    """
    found: Any = find_device(device) if isinstance(device, str) else device
    stats = found.memory_stats()
    if not stats:
        raise DeviceError(
            f"{device_name(found)} does not count its memory. What arrays take is "
            "sum(x.nbytes for x in jax.live_arrays())."
        )
    return {"current": stats["bytes_in_use"], "peak": stats["peak_bytes_in_use"]}


def has_started() -> bool:
    """Return whether JAX has started, so that settings of devices come too late.

    >>> isinstance(has_started(), bool)
    True
    """
    with _ASKING:
        known: Any = jax.config.values["jax_num_cpu_devices"]
        asked = _Asked(known)
        try:  # JAX refuses another number once it has started, and has no other way to ask
            jax.config.update("jax_num_cpu_devices", asked)
        except RuntimeError:
            return True
        asked.is_another = False
        jax.config.update("jax_num_cpu_devices", known)
        return False


def compilation_cache(
    folder: str | os.PathLike[str] | None = "~/.cache/jaxvars", *, most_bytes: int = 1 << 30
) -> None:
    """Keep compiled programs in a folder, so that other processes need not compile them again.

    A process traces its functions, and reads what XLA has compiled before: the same program, with
    the same versions and settings. XLA runs whatever is there: share it with those you trust.
    A file that is damaged is warned of, and its program compiled.

    Args:
        folder: where; it is made if it is not there. XLA compiles to the instructions of this CPU,
            so the programs are in a folder of it for each kind of CPU and version of jaxlib: it may
            be on a disk that machines share. None to keep programs in memory only, as JAX does by
            default.
        most_bytes: the size beyond which this call deletes what has not been used for longest.

    Raises:
        OSError: when the folder can't be made or written to.

    >>> compilation_cache(None)

    With JAX 0.10, programs that print or call Python are compiled by each process, and a folder
    that has been moved is a new one. On some CPUs XLA logs an error for each program that it reads,
    about `prefer-no-gather` (https://github.com/jax-ml/jax/issues/38445): they run all the same,
    but this is why no folder is used before you ask for one.
    """
    path = None
    if folder is not None:
        whole = Path(folder).expanduser().absolute()
        path = str(_make_writable(whole / f"xla-{_kind_of_machine()}"))
        _delete_oldest(whole.glob("xla-*/*-cache"), most_bytes)
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jax.config.update("jax_compilation_cache_dir", path)
    reset_cache()  # JAX opens a folder once


# ---------------------------------------------------------------- helpers
@final
class _Asked(int):
    """The number that JAX has, which seems to be another one while that is needed.

    JAX may start in another thread meanwhile, and must find the right number.
    """

    is_another = True

    def __eq__(self, other: object) -> bool:
        return not self.is_another and int(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__


def _make_writable(folder: Path) -> Path:
    """Return a folder in which files can be made; JAX would only warn, at each program."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise OSError(f"Programs can't be kept in {str(folder)!r}: {error.strerror}.") from error


def _kind_of_machine() -> str:
    """Return a hash of what a program for this CPU depends on: instructions and compiler."""
    found = [platform.machine(), platform.processor(), importlib.metadata.version("jaxlib")]
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        found += sorted({x for x in lines if x.startswith(("model name", "flags", "Features"))})
    except OSError:
        found.append(platform.node())
    return hashlib.sha256(repr(found).encode()).hexdigest()[:12]


def _delete_oldest(files: Iterable[Path], most_bytes: int) -> None:
    """Delete the files that were used longest ago, beyond so many bytes of newer ones."""
    known: list[tuple[float, int, Path]] = []
    for file in files:
        with contextlib.suppress(OSError):  # another process has deleted it
            stat = file.stat()
            known.append((max(stat.st_atime, stat.st_mtime), stat.st_size, file))
    for _, size, file in sorted(known, reverse=True):
        most_bytes -= size
        if most_bytes < 0:
            with contextlib.suppress(OSError):
                file.unlink()


def _count(kind: str) -> int:
    if has_started():
        return len(list_devices(kind))
    return _count_driver_gpus() if kind == "gpu" else 0


def _count_driver_gpus() -> int:
    """Return how many GPUs the driver shows, if JAX has a plugin for them."""
    plugins = {point.name for point in importlib.metadata.entry_points(group="jax_plugins")}
    if not any(re.search("cuda|rocm", name) for name in plugins):
        return 0
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is not None:
        return len([number for number in allowed.split(",") if number.strip() not in {"", "-1"}])
    return sum(1 for path in Path("/dev").glob("nvidia*") if path.name[6:].isdigit())


def _find_physical(device: PhysicalDevice | str) -> PhysicalDevice:
    """Return the physical device of a name; raise DeviceError if there is none."""
    have = list_physical_devices()
    name = device.name if isinstance(device, PhysicalDevice) else device
    for known in have:
        if known.name == name or known.name.removeprefix("/physical_device:") == name.upper():
            return known
    names = ", ".join(known.name for known in have)
    raise DeviceError(f"Device {name!r} does not exist; there are: {names}.")


def _set_visible(kind: str, chosen: list[PhysicalDevice]) -> None:
    """Have JAX use these devices of a kind and no others."""
    if len(chosen) == _count(kind.lower()) and chosen:
        return
    if not chosen:
        platforms = _list_platforms() or (["cpu"] if list_physical_devices(kind) else [])
        kept = [name for name in platforms if not _is_of_kind(name, kind)]
        if platforms:
            jax.config.update("jax_platforms", ",".join(kept) or "cpu")
    elif kind == "GPU":
        numbers = ",".join(str(_parse_number(device)) for device in chosen)
        jax.config.update("jax_cuda_visible_devices", numbers)
    else:
        raise DeviceError(f"JAX can't use some of several {kind}s. Choose all of them, or none.")


def _list_platforms() -> list[str]:
    platforms: Any = jax.config.values["jax_platforms"]
    return [name for name in (platforms or "").split(",") if name]


def _is_of_kind(platform: str, kind: str) -> bool:
    return platform == kind.lower() or (kind == "GPU" and platform in {"cuda", "rocm"})


def _is_usable(device: PhysicalDevice) -> bool:
    platforms, kind = _list_platforms(), device.device_type
    if platforms and not any(_is_of_kind(name, kind) for name in platforms):
        return False
    allowed: Any = jax.config.values["jax_cuda_visible_devices"]
    return kind != "GPU" or allowed == "all" or str(_parse_number(device)) in allowed.split(",")


def _parse_number(device: PhysicalDevice) -> int:
    found = _NUMBER.search(device.name)
    return int(found[1]) if found else 0


def _refuse_late(late: bool, what: str, but: str) -> None:
    if late:
        raise DeviceError(
            f"JAX has started and can't get {what} any more: {but}. Set it right after "
            "`import jaxvars`, before the first operation and before devices are listed."
        )


def _refuse_cpu(device: PhysicalDevice) -> None:
    if device.device_type == "CPU":
        raise DeviceError("The memory of a CPU always grows as it is needed; this is for GPUs.")

"""Where a value is placed: devices by name, device scopes and soft placement.

Rules this file keeps:
- a scope is `jax.default_device` and nothing else, so that JAX places what is computed in it;
- JAX keeps what it was set to before, in a thread: so scopes end in the reverse order (`in_order`);
- a variable that was placed on another device is read as a copy on the scope's, and stays there;
- names are TensorFlow's: "CPU:0", "/GPU:0", "gpu:1", "/job:x/replica:0/task:0/device:GPU:0".
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias, final

import jax
import numpy as np

from jaxvars.errors import ContextError, DeviceError, out_of_order_error, user_line
from jaxvars.tensors.tensor import is_elsewhere
from jaxvars.tracing.guards import READ_AS

Device: TypeAlias = Any  # a jax.Device: a value to type checkers, not a type

_NAME = re.compile(
    r"^/?(?:job:\w+/)?(?:replica:\d+/)?(?:task:\d+/)?(?:device:)?"
    r"(?P<kind>[a-z]+)(?::(?P<index>\d+|\*))?$",
    re.IGNORECASE,
)
_KINDS = {"CPU", "GPU", "CUDA", "ROCM", "TPU", "METAL"}  # what may be missing
_soft = True
_told: set[str] = set()


def list_devices(kind: str | None = None) -> list[Device]:
    """Return the devices of this process, or those of one kind.

    Args:
        kind: "cpu", "gpu" or "tpu"; all when None.

    >>> list_devices("cpu")[0].platform
    'cpu'
    """
    if kind is None:
        kinds = dict.fromkeys((jax.default_backend(), "cpu"))
        return [device for name in kinds for device in jax.local_devices(backend=name)]
    try:
        return jax.local_devices(backend=kind.lower())
    except RuntimeError:
        return []


def set_soft_device_placement(enabled: bool) -> None:
    """Choose what happens when a device does not exist.

    Args:
        enabled: fall back to JAX's default device (True), or raise DeviceError (False).

    >>> set_soft_device_placement(True)
    """
    global _soft
    _soft = enabled


def get_soft_device_placement() -> bool:
    """Return whether a device that does not exist is replaced by JAX's default device.

    >>> get_soft_device_placement()
    True
    """
    return _soft


@contextmanager
def device(name: str | Device | None) -> Generator[Device | None]:
    """Create variables and run operations on one device.

    Variables that are placed elsewhere are read as copies on this device.

    A compiled function is one program on one set of devices: it runs where its variables and the
    explicitly placed arguments are, else in the scope that it is called in. A scope inside
    of it places the variables that it creates, and no operations.

    Args:
        name: "CPU:0", "/GPU:1", TensorFlow's full form, a `jax.Device`, or None for JAX's
            default device.

    Yields:
        The device, which is another one than requested under soft placement; None for None.

    Raises:
        DeviceError: when the name is malformed, or the device does not exist and soft placement
            is off.

    >>> import jaxvars as jv
    >>> with jv.device("CPU:0"):
    ...     v = jv.Variable(1.0)
    >>> v.device.platform
    'cpu'
    """
    found = name if name is None or isinstance(name, jax.Device) else find_device(name)
    with in_order(f"jv.device({name!r})", jax.default_device(found)):
        READ_AS.append(_read_in_scope)
        try:
            yield found
        finally:
            READ_AS.remove(_read_in_scope)


@final
class _Open(threading.local):
    """The settings of JAX that scopes have made in each thread, innermost last."""

    def __init__(self) -> None:
        self.settings: list[AbstractContextManager[object]] = []


_OPEN = _Open()
_MINE: ContextVar[tuple[object, ...]] = ContextVar("mine", default=())
"""Those that this thread or coroutine has made."""


@contextmanager
def in_order(what: str, setting: AbstractContextManager[object]) -> Generator[None]:
    """Make a setting of JAX inside, which is one of the thread, and undo it.

    Args:
        what: how the block is written.
        setting: what makes it.

    Raises:
        ContextError: at the end, when another thread has made it, or when others have been made in
            it that have not been undone. All of these are undone, and the end of each raises.
    """
    settings = _OPEN.settings
    setting.__enter__()
    settings.append(setting)
    _MINE.set((*_MINE.get(), setting))
    try:
        yield
    except BaseException:
        _undo(settings, setting)
        raise
    finally:
        _MINE.set(tuple(known for known in _MINE.get() if known is not setting))
    if not _undo(settings, setting):
        raise out_of_order_error(what)


def check_coroutine() -> None:
    """Raise ContextError if JAX's setting for the thread is not that of this coroutine."""
    if _OPEN.settings[-1:] != list(_MINE.get()[-1:]):
        raise ContextError(
            f"A value is placed at {user_line()}, where the last `with jv.use_mesh(...):` or "
            "`with jv.device(...):` that is open in this thread is not the one that this code is "
            "in: another coroutine has opened one and waits in it, or the one that this code is in "
            "was opened in another thread or has ended. Open it in the thread that places values, "
            "and wait before the block or after it:\n"
            "    x = await fetch()\n    with jv.use_mesh(mesh):\n        step(x)"
        )


def _undo(settings: list[Any], setting: AbstractContextManager[object]) -> bool:
    """Undo a setting, and first those made in it; return whether it was the last one."""
    if settings is not _OPEN.settings or setting not in settings:
        return False
    was_last = settings[-1] is setting
    while setting in settings:
        settings.pop().__exit__(None, None, None)
    return was_last


def find_device(name: str) -> Device:
    """Return the device with a name, or what soft placement puts in its place."""
    match = _NAME.match(name) if isinstance(name, str) else None
    if match is None:
        raise DeviceError(f"{name!r} is not a device name; write 'CPU:0', 'GPU:1' or '/GPU:0'.")
    index = 0 if match["index"] in (None, "*") else int(match["index"])
    devices = list_devices(match["kind"])
    if not devices and match["kind"].upper() not in _KINDS:
        raise DeviceError(f"{name!r} names no kind of device; there are: {_name_all()}.")
    return devices[index] if index < len(devices) else _fall_back(name)


def _name_all() -> str:
    return ", ".join(map(short_name, list_devices()))


def _fall_back(name: str) -> Device:
    have = _name_all()
    if not _soft:
        raise DeviceError(
            f"Device {name!r} does not exist; there are: {have}. Use one of these, or let "
            "jaxvars choose with jv.config.set_soft_device_placement(True)."
        )
    default = jax.local_devices()[0]
    if name not in _told:
        _told.add(name)
        warnings.warn(
            f"Device {name!r} does not exist; there are: {have}. Using "
            f"{short_name(default)} (soft placement).",
            stacklevel=5,
        )
    return default


def scope_sharding() -> Any:
    """Return the sharding that the current device scope requests, or None outside of one."""
    check_coroutine()
    chosen: Any = getattr(jax.config, "jax_default_device", None)
    if chosen is None or isinstance(chosen, str):
        return None
    return jax.sharding.SingleDeviceSharding(chosen)


def device_name(device: Device) -> str:
    """Return a device's name in TensorFlow's full form.

    >>> device_name(list_devices("cpu")[0])
    '/job:localhost/replica:0/task:0/device:CPU:0'
    """
    return f"/job:localhost/replica:0/task:{device.process_index}/device:{short_name(device)}"


def short_name(device: Device) -> str:
    """Return a name like `CPU:0`, as `jv.device` takes it in the device's own process."""
    mine = jax.local_devices(backend=device.platform)
    index = mine.index(device) if device in mine else device.id
    return f"{device.platform.upper()}:{index}"


def describe_devices(value: jax.Array) -> str:
    """Return an array's placement: `device ...:CPU:0`, or `8 devices, CPU:0 to CPU:7`."""
    devices = sorted(value.sharding.device_set, key=lambda device: device.id)
    if len(devices) == 1:
        return f"device {device_name(devices[0])}"
    names = [short_name(device) for device in devices]
    return f"{len(devices)} devices, {names[0]} to {names[-1]}"


def _read_in_scope(cell: Any, value: Any) -> Any:
    """Return the value of a variable that was placed on the device of the current scope."""
    sharding = None if cell.sharding is None else scope_sharding()
    moves = sharding is not None and is_elsewhere(value, sharding)
    return jax.device_put(value, sharding) if moves else value


# ---------------------------------------------------------------- pickling
def dump_sharding(sharding: Any) -> tuple[Any, ...] | None:
    """Return a sharding as names that can be pickled (JAX's devices cannot)."""
    if sharding is None:
        return None
    if isinstance(sharding, jax.sharding.NamedSharding):
        mesh: Any = sharding.mesh
        ids = [(d.platform, d.id) for d in mesh.devices.flat]
        names, shape = mesh.axis_names, mesh.devices.shape
        return "mesh", names, mesh.axis_types, shape, ids, sharding.spec, sharding.memory_kind
    (device,) = sharding.device_set
    return "device", (device.platform, device.id), sharding.memory_kind


def load_sharding(dumped: tuple[Any, ...] | None) -> Any:
    """Return the sharding that `dump_sharding` described.

    Raises:
        DeviceError: when this process has not got its devices.
    """
    if dumped is None:
        return None
    if dumped[0] == "device":
        return jax.sharding.SingleDeviceSharding(_find_by_id(*dumped[1]), memory_kind=dumped[2])
    _, names, types, shape, ids, spec, memory = dumped
    devices = np.array([_find_by_id(*one) for one in ids]).reshape(shape)
    mesh = jax.sharding.Mesh(devices, names, axis_types=types)
    return jax.sharding.NamedSharding(mesh, spec, memory_kind=memory)


def _find_by_id(platform: str, number: int) -> Device:
    for device in list_devices(platform):
        if device.id == number:
            return device
    raise DeviceError(
        f"The value was saved on device {platform.upper()}:{number}, which is not in this process."
    )

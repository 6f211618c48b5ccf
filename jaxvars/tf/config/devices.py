"""`tf.device` and `tf.DeviceSpec`: devices by name, as TensorFlow writes them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, final

from jaxvars.devices.device import device as _core_device
from jaxvars.devices.device import find_device
from jaxvars.errors import DeviceError
from jaxvars.tf.context.scope import Reusable
from jaxvars.tf.tensors.static import refused


@final
@dataclass(frozen=True, repr=False)
class DeviceSpec:
    """The name of a device, in parts; those that are None are open.

    Args:
        job: like "worker".
        replica: a number.
        task: a number.
        device_type: "CPU", "GPU" or "TPU".
        device_index: a number.

    >>> DeviceSpec(job="worker", device_type="GPU", device_index=1).to_string()
    '/job:worker/device:GPU:1'
    >>> DeviceSpec.from_string("/job:worker/task:3/CPU:0").task
    3
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    def __post_init__(self) -> None:
        if self.device_type is not None:
            kind = self.device_type.upper()  # as it is written, if it is known
            object.__setattr__(self, "device_type", kind if kind in _KINDS else self.device_type)

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Read a name.

        Raises:
            ValueError: when it is none.
        """
        parts: dict[str, Any] = {}
        for word in filter(None, spec.split("/")):
            read = _read(word.split(":"), spec)
            if "device_type" in parts and "device_type" in read:
                raise ValueError(
                    f"Multiple device types are not allowed while parsing the device spec: {spec}."
                )
            parts |= read
        return cls(**parts)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Read a name; see `from_string`."""
        return self.from_string(spec)

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """Return the name with the parts of another one in place of its own."""
        given = {f.name: getattr(dev, f.name) for f in fields(dev)}
        return replace(self, **{name: x for name, x in given.items() if x is not None})

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """Return the name with other parts."""
        return replace(self, **kwargs)

    def to_string(self) -> str:
        """Return the name as a string."""
        parts = [f"/{k}:{x}" for k in ("job", "replica", "task") if (x := getattr(self, k)) is not None]  # fmt: skip  # noqa: E501
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            parts.append(f"/device:{self.device_type}:{index}")
        return "".join(parts)

    def __repr__(self) -> str:
        parts = ", ".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self))
        return f"<DeviceSpec({parts})>"


def _read(parts: list[str], spec: str) -> dict[str, Any]:
    """Return the parts of a DeviceSpec that a word of a name specifies."""
    match parts:
        case ["job", name]:
            return {"job": name}
        case [("replica" | "task") as part, number] if number.isdigit():
            return {part: int(number)}
        case ["device", kind, index] if index == "*" or index.isdigit():
            return _device_fields(kind, index)
        case [kind, index] if kind.upper() in _KINDS and (index == "*" or index.isdigit()):
            return _device_fields(kind, index)
        case [kind] if kind.upper() in _KINDS:
            return {"device_type": kind.upper()}
        case ["device", kind]:
            return {"device_type": kind}
        case _:
            raise ValueError(
                f"Unknown attribute {parts[0]!r} is encountered while parsing the device spec: "
                f"{spec!r}."
            )


_KINDS = ("CPU", "GPU", "TPU")


def _device_fields(kind: str, index: str) -> dict[str, Any]:
    return {"device_type": kind, "device_index": None if index == "*" else int(index)}


@final
class device(Reusable):  # noqa: N801 - TensorFlow's name
    """A context in which variables are made and operations run on one device.

    Args:
        device_name: like "/CPU:0" or "GPU:1", a DeviceSpec, or None for JAX's default device.

    Raises:
        ValueError: when entered with what is not a name.
        InvalidArgumentError: when entered, if the device does not exist and soft placement is off.

    >>> from jaxvars import tf
    >>> with tf.device("/CPU:0"):
    ...     x = tf.constant(1.0)
    >>> x.device
    '/job:localhost/replica:0/task:0/device:CPU:0'
    """

    def __init__(self, device_name: str | DeviceSpec | Callable[..., Any] | None) -> None:
        if callable(device_name):
            raise RuntimeError("tf.device does not support functions.")
        super().__init__()
        self._name = device_name

    @contextmanager
    def _open(self) -> Generator[None]:
        name = self._name
        spec = DeviceSpec.from_string(name) if isinstance(name, str) else name
        kind = None if spec is None else spec.device_type
        device_name = None if kind is None or spec is None else f"{kind}:{spec.device_index or 0}"
        try:
            found = device_name and find_device(device_name)
        except DeviceError as error:
            raise refused(str(error)) from error
        with _core_device(found):
            yield

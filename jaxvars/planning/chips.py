"""What chips can do at most, and what a step takes on them at least.

Peak arithmetic is of bfloat16, on dense matrices; the network's bandwidth is the sum of a chip's
links, in one direction (between machines GPUs have less).

Sources: Cloud TPU documentation, "TPU v4", "TPU v5e", "TPU v5p", "TPU v6e", "TPU7x"
(https://docs.cloud.google.com/tpu/docs/system-architecture-tpu-vm); NVIDIA's data sheets of the
A100 80GB SXM, H100 SXM, H200 SXM and DGX B200.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jaxvars.devices.topology import GPUS
from jaxvars.planning.hlo import Collective


class Chip(NamedTuple):
    """What a device can do.

    Attributes:
        flops: floating point operations in a second.
        bandwidth: bytes of its memory that it reads or writes in a second.
        network: bytes that it sends to other devices in a second.
        memory: bytes that it has; None where XLA tells itself whether a program fits.
    """

    flops: float
    bandwidth: float
    network: float
    memory: float | None = None


_CHIPS = {  # by JAX's `device_kind`
    "TPU v4": Chip(275e12, 1200e9, 300e9),
    "TPU v5 lite": Chip(197e12, 819e9, 200e9),
    "TPU v5": Chip(459e12, 2765e9, 600e9),
    "TPU v6 lite": Chip(918e12, 1640e9, 400e9),
    "TPU7x": Chip(2307e12, 7380e9, 600e9),
    **{
        GPUS[kind].name: Chip(flops, GPUS[kind].bandwidth, network, GPUS[kind].memory)
        for kind, flops, network in [
            ("a100", 312e12, 300e9), ("h100", 989.4e12, 450e9), ("h200", 989.4e12, 450e9),
            ("b200", 2250e12, 900e9),
        ]
    },
}  # fmt: skip
# What of the bytes of a collective among n devices each of them sends, at least.
_SENT = {
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "all-gather": lambda n: (n - 1) / n,
    "reduce-scatter": lambda n: (n - 1) / n,
    "all-to-all": lambda n: (n - 1) / n,
    "collective-permute": lambda n: 1.0,
}


def chip_of(devices: Sequence[Any]) -> Chip | None:
    """Return what each device of a topology can do; None where no figures are known.

    Where a chip is several devices, each has its part of it.
    """
    chip = _CHIPS.get(devices[0].device_kind) if devices else None
    if chip is None or chip.memory is not None:
        return chip
    part = len({tuple(device.coords) for device in devices}) / len(devices)
    return Chip(chip.flops * part, chip.bandwidth * part, chip.network * part)


def least_seconds(
    chip: Chip, flops: float, moved: float, collectives: Mapping[Collective, int]
) -> dict[str, float]:
    """Return how long a step takes at least, for each of the things that it may wait for.

    Args:
        chip: that each device is.
        flops: floating point operations on a device.
        moved: bytes of memory that it reads and writes at least.
        collectives: what devices exchange, and how often.
    """
    sent = sum(
        _SENT.get(one.kind, lambda _: 0.0)(one.devices or 1) * one.bytes * count
        for one, count in collectives.items()
    )
    return {
        "arithmetic": flops / chip.flops,
        "memory": moved / chip.bandwidth,
        "communication": sent / chip.network,
    }

"""`planning/chips.py`: how long a step takes at least."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from jaxvars.planning.chips import Chip, chip_of, least_seconds
from jaxvars.planning.hlo import Collective


class Device(NamedTuple):
    device_kind: str
    coords: tuple[int, ...]


def test_a_device_has_its_part_of_a_chip():
    two = [Device("TPU7x", (0, 0, 0)), Device("TPU7x", (0, 0, 0))]
    whole = chip_of([Device("TPU7x", (0, 0, 0)), Device("TPU7x", (1, 0, 0))])
    assert whole is not None
    assert chip_of(two) == Chip(whole.flops / 2, whole.bandwidth / 2, whole.network / 2)
    assert chip_of([Device("another", (0,))]) is None
    assert chip_of([]) is None


@pytest.mark.parametrize(
    ("kind", "devices", "sent"),
    [
        ("all-reduce", 4, 2 * 3 / 4), ("all-gather", 4, 3 / 4), ("reduce-scatter", 8, 7 / 8),
        ("all-to-all", 2, 1 / 2), ("collective-permute", None, 1), ("another", 4, 0),
        ("all-reduce", None, 0), ("all-reduce", 1, 0),
    ],
)  # fmt: skip
def test_what_is_sent(kind, devices, sent):
    chip = Chip(flops=1e12, bandwidth=1e9, network=1e6)
    least = least_seconds(chip, 2e12, 3e9, {Collective(kind, devices, 1000): 5})
    assert least == pytest.approx(
        {"arithmetic": 2.0, "memory": 3.0, "communication": sent * 5000 / 1e6}
    )

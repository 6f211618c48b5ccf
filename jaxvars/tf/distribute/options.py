"""Options of strategies: they are kept, can be read back, and change no result: XLA chooses."""

from __future__ import annotations

import enum
from abc import ABC
from collections.abc import Callable
from typing import Any, NamedTuple, final


class CrossDeviceOps(ABC):  # noqa: B024 - a mark, without methods
    """How values of several devices are made one: XLA chooses."""


class _Packed(CrossDeviceOps):
    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            raise ValueError(f"num_packs must be greater or equal to 0, not {num_packs}.")
        self.num_packs = num_packs


@final
class NcclAllReduce(_Packed):
    """Accepted, and of no effect: XLA uses NCCL where there is one.

    Args:
        num_packs: of no effect.

    >>> NcclAllReduce(num_packs=2).num_packs
    2
    """


@final
class HierarchicalCopyAllReduce(_Packed):
    """Accepted, and of no effect: XLA chooses.

    Args:
        num_packs: of no effect.
    """


@final
class ReductionToOneDevice(CrossDeviceOps):
    """Accepted, and of no effect: XLA chooses.

    Args:
        reduce_to_device: of no effect.
        accumulation_fn: of no effect.
    """

    def __init__(
        self, reduce_to_device: str | None = None, accumulation_fn: Callable[..., Any] | None = None
    ) -> None:
        self.reduce_to_device, self.accumulation_fn = reduce_to_device, accumulation_fn


@final
class InputOptions(NamedTuple):
    """How batches come to devices; of no effect.

    >>> InputOptions().experimental_fetch_to_device
    True
    """

    experimental_fetch_to_device: bool = True
    experimental_replication_mode: Any = "PER_WORKER"
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


@final
class RunOptions(NamedTuple):
    """How a step runs; of no effect.

    >>> RunOptions().experimental_bucketizing_dynamic_shape
    False
    """

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None


class CommunicationImplementation(enum.Enum):
    """How processes talk to each other: XLA chooses."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


@final
class CommunicationOptions:
    """How processes talk to each other; of no effect.

    Args:
        bytes_per_pack: of no effect.
        timeout_seconds: of no effect.
        implementation: of no effect.
    """

    def __init__(
        self, bytes_per_pack: int = 0, timeout_seconds: float | None = None,
        implementation: Any = CommunicationImplementation.AUTO,
    ) -> None:  # fmt: skip
        self.bytes_per_pack, self.timeout_seconds = bytes_per_pack, timeout_seconds
        self.implementation = CommunicationImplementation(implementation)

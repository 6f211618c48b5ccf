"""`tf.data.Options`: options of how a dataset is to run.

Rules this file keeps:
- elements are made one after another in one thread, always in the same order: so options are
  checked, kept and merged as in TensorFlow, and change nothing.
"""

from __future__ import annotations

import enum
from typing import Any, ClassVar


class AutoShardPolicy(enum.IntEnum):
    """How a dataset would be sharded among workers."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class AutotuneAlgorithm(enum.Enum):
    """How the number of threads would be chosen."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class ExternalStatePolicy(enum.Enum):
    """What becomes of state outside of a dataset that is saved."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class _Options:
    """Attributes of certain types, None until they are set."""

    _types: ClassVar[dict[str, type]] = {}
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        for name, kind in self._types.items():
            made = kind() if issubclass(kind, _Options) else self._defaults.get(name)
            object.__setattr__(self, name, made)

    def __setattr__(self, name: str, value: Any) -> None:
        # No tracking: a name that is not an option is refused, and so is a value of another type.
        if name == "experimental_deterministic":
            name = "deterministic"
        if name == "experimental_threading":
            name = "threading"
        if name not in self._types:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        kind = self._types[name]
        if value is not None and not isinstance(value, kind):
            raise TypeError(
                f'Property "{name}" must be of type {kind}, got: {value} (type: {type(value)})'
            )
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # pyright: ignore[reportAssignmentType] - they change

    def _merge_set(self, other: Any) -> Any:
        made = type(self)()
        for name in self._types:
            mine, its = getattr(self, name), getattr(other, name)
            nested = isinstance(mine, _Options)
            is_set = its is not None and its != self._defaults.get(name)
            found = mine._merge_set(its) if nested else its if is_set else mine
            object.__setattr__(made, name, found)
        return made


class AutotuneOptions(_Options):
    """Options of how TensorFlow would choose the number of threads; of no effect."""

    _types: ClassVar[dict[str, type]] = {
        "enabled": bool, "cpu_budget": int, "ram_budget": int,
        "autotune_algorithm": AutotuneAlgorithm, "initial_parallelism": int, "min_parallelism": int,
    }  # fmt: skip


class DistributeOptions(_Options):
    """Options of how a dataset would be sharded among workers; of no effect."""

    _types: ClassVar[dict[str, type]] = {"auto_shard_policy": AutoShardPolicy, "num_devices": int}
    _defaults: ClassVar[dict[str, Any]] = {"auto_shard_policy": AutoShardPolicy.AUTO}


class OptimizationOptions(_Options):
    """Options of how TensorFlow would rewrite a dataset; of no effect."""

    _types: ClassVar[dict[str, type]] = dict.fromkeys(
        [
            "apply_default_optimizations", "filter_fusion", "filter_parallelization",
            "inject_prefetch", "map_and_batch_fusion", "map_and_filter_fusion", "map_fusion",
            "map_parallelization", "noop_elimination", "parallel_batch", "seq_interleave_prefetch",
            "shuffle_and_repeat_fusion",
        ],
        bool,
    )  # fmt: skip


class ThreadingOptions(_Options):
    """Options of the threads that TensorFlow would use; of no effect."""

    _types: ClassVar[dict[str, type]] = {
        "max_intra_op_parallelism": int, "private_threadpool_size": int,
    }  # fmt: skip


class ServiceOptions(_Options):
    """Options of TensorFlow's service of datasets; of no effect."""

    _types: ClassVar[dict[str, type]] = {"pinned": bool}


class Options(_Options):
    """Options of how a dataset is to run, for `Dataset.with_options`.

    >>> options = Options()
    >>> options.deterministic = False
    >>> options.deterministic
    False

    Differs from TensorFlow: they change nothing. Elements are made one after another, in order.
    """

    _types: ClassVar[dict[str, type]] = {
        "autotune": AutotuneOptions, "dataset_name": str, "deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": ExternalStatePolicy,
        "experimental_optimization": OptimizationOptions, "experimental_service": ServiceOptions,
        "experimental_slack": bool, "experimental_symbolic_checkpoint": bool,
        "experimental_warm_start": bool, "framework_type": list, "threading": ThreadingOptions,
    }  # fmt: skip

    @property
    def experimental_deterministic(self) -> Any:
        """An older name of `deterministic`."""
        return vars(self)["deterministic"]

    @property
    def experimental_threading(self) -> Any:
        """An older name of `threading`."""
        return vars(self)["threading"]

    def merge(self, options: Options) -> Options:
        """Return these options with those that are set in others in their place."""
        return self._merge_set(options)

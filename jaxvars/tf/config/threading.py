"""`tf.config.threading`: how many threads work on the CPU; of no effect: XLA has its own pool."""

from __future__ import annotations

from jaxvars import config as _config

_NUMBERS = {"inter": 0, "intra": 0}


def get_inter_op_parallelism_threads() -> int:
    """Return what was set; 0, the default, leaves it to the system."""
    return _NUMBERS["inter"]


def get_intra_op_parallelism_threads() -> int:
    """Return what was set; 0, the default, leaves it to the system."""
    return _NUMBERS["intra"]


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Remember a number, which XLA has no use for; RuntimeError when JAX has started."""
    _set("inter", num_threads)


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Remember a number, which XLA has no use for; RuntimeError when JAX has started."""
    _set("intra", num_threads)


def _set(which: str, num_threads: int) -> None:
    if num_threads != _NUMBERS[which] and _config.has_started():
        raise RuntimeError(
            f"{which.title()} op parallelism cannot be modified after initialization."
        )
    _NUMBERS[which] = num_threads

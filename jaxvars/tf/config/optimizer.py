"""`tf.config.optimizer`: hints for TensorFlow's graph optimizer, of no effect: XLA has its own."""

from __future__ import annotations

from typing import Any, final


@final
class _Hints:
    """What was requested."""

    jit: Any = ""
    options: dict[str, bool] = {"disable_model_pruning": False, "disable_meta_optimizer": False}  # noqa: RUF012 - one for the process


def set_jit(enabled: bool | str) -> None:
    """Do nothing but remember: every `tf.function` is compiled by XLA."""
    _Hints.jit = "autoclustering" if enabled else ""


def get_jit() -> str:
    """Return what was set: "autoclustering" or ""."""
    return _Hints.jit


def set_experimental_options(options: dict[str, bool]) -> None:
    """Do nothing but remember: XLA has no such options."""
    _Hints.options = {**_Hints.options, **options}


def get_experimental_options() -> dict[str, bool]:
    """Return the options that were set.

    >>> get_experimental_options()["disable_meta_optimizer"]
    False
    """
    return dict(_Hints.options)

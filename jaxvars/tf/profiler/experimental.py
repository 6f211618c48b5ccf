"""`tf.profiler.experimental`: record what runs, for TensorBoard's profile plugin."""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple, final

import jax

from jaxvars.tf.errors import AlreadyExistsError, UnavailableError


@final
class ProfilerOptions(NamedTuple):
    """What is recorded.

    Args:
        host_tracer_level: 0 nothing of the host, 1 what programs mark, 2 and 3 more.
        python_tracer_level: 1 records each call of a Python function.
        device_tracer_level: 0 nothing of devices, where JAX can leave them out.
        delay_ms: must be None.

    >>> ProfilerOptions(python_tracer_level=1).host_tracer_level
    2
    """

    host_tracer_level: int = 2
    python_tracer_level: int = 0
    device_tracer_level: int = 1
    delay_ms: int | None = None


def start(logdir: str | PathLike[str], options: ProfilerOptions | None = None) -> None:
    """Begin to record what runs.

    Args:
        logdir: the folder to write to; TensorBoard is given it.
        options: what is recorded.

    Raises:
        tf.errors.AlreadyExistsError: when something is recorded already.
    """
    asked = options or ProfilerOptions()
    if asked.delay_ms is not None:
        raise ValueError("ProfilerOptions(delay_ms=...) is not there: it begins at once.")
    given = jax.profiler.ProfileOptions()
    given.host_tracer_level = asked.host_tracer_level
    given.python_tracer_level = asked.python_tracer_level
    if hasattr(given, "device_tracer_level"):  # newer versions of JAX have none
        given.device_tracer_level = asked.device_tracer_level
    try:
        jax.profiler.start_trace(logdir, profiler_options=given)
    except RuntimeError as error:
        raise AlreadyExistsError(None, None, f"Another profiler is running. ({error})") from error


def stop(save: bool = True) -> None:
    """End recording, and write what was recorded.

    Args:
        save: accepted; it is always written.

    Raises:
        tf.errors.UnavailableError: when nothing is recorded.
    """
    try:
        jax.profiler.stop_trace()
    except RuntimeError as error:
        raise UnavailableError(
            None, None, "Cannot export profiling results. No profiler is running."
        ) from error


@final
class Profile:
    """A context in which what runs is recorded.

    Args:
        logdir: the folder to write to.
        options: what is recorded.
    """

    def __init__(self, logdir: str | PathLike[str], options: ProfilerOptions | None = None) -> None:
        self._logdir, self._options = logdir, options

    def __enter__(self) -> None:
        start(self._logdir, self._options)

    def __exit__(self, *error: object) -> None:
        stop()


@final
class Trace:
    """A context that names what runs in it, in what is recorded.

    Args:
        name: what it is called.
        **kwargs: numbers or strings to show; `step_num=3, _r=1` makes it a training step.

    >>> with Trace("train", step_num=1, _r=1):
    ...     pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        is_step = kwargs.pop("_r", 0) and "step_num" in kwargs
        kind = jax.profiler.StepTraceAnnotation if is_step else jax.profiler.TraceAnnotation
        self._annotation = kind(name, **{key: _number(x) for key, x in kwargs.items()})

    def __enter__(self) -> Trace:
        self._annotation.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._annotation.__exit__(*error)

    def set_metadata(self, **kwargs: Any) -> None:
        """Accept more to show; what is shown is what it was made with."""


def _number(value: Any) -> Any:
    return int(value) if hasattr(value, "dtype") else value

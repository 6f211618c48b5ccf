"""`tf.summary`: what TensorBoard shows, over `jaxvars.tensorboard`.

    writer = tf.summary.create_file_writer("logs")
    with writer.as_default():
        tf.summary.scalar("loss", 0.5, step=1)
    writer.flush()

It needs an extra: `pip install "jaxvars[tensorboard]"`.
"""

from __future__ import annotations

from typing import Any

import jax

from jaxvars import tensorboard as _core
from jaxvars.tensorboard import SummaryWriter as SummaryWriter
from jaxvars.tensorboard import create_noop_writer as create_noop_writer
from jaxvars.tf.listing import namespace
from jaxvars.tf.summary import experimental as experimental
from jaxvars.tf.summary.values import as_value
from jaxvars.tf.summary.values import record as _record_audio
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable

_TRACES: list[str | None] = []
"""Where the trace that is recorded goes; None where none is written."""


def create_file_writer(
    logdir: Any, max_queue: int | None = None, flush_millis: int | None = None,
    filename_suffix: str | None = None, name: str | None = None,
    experimental_trackable: bool = False, experimental_mesh: Any = None,
) -> SummaryWriter:  # fmt: skip
    """Return a writer to a new event file in a folder.

    Args:
        logdir: the folder, which is made if it isn't there.
        max_queue: how many summaries may wait to be written.
        flush_millis: milliseconds after which what was written is flushed to the disk.
        filename_suffix: the end of the file's name.
        name: of no effect.
        experimental_trackable: of no effect.
        experimental_mesh: of no effect.

    Raises:
        ModuleNotFoundError: when tensorboardX is not installed.
    """
    given = {"max_queue": max_queue, "flush_millis": flush_millis}
    asked = {key: int(value) for key, value in given.items() if value is not None}
    return _core.create_file_writer(
        as_value(logdir), **asked, filename_suffix=filename_suffix or ""
    )


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """Write a number, if there is a default writer.

    Args:
        name: the tag; open name scopes come before it.
        data: a scalar tensor, variable or number.
        step: the step; the default one when None.
        description: of no effect.

    Returns:
        Whether it was written.

    Raises:
        ValueError: without a step, or when the data is not a scalar.

    >>> scalar("loss", 0.5, step=1)
    False
    """
    _core.scalar(name, as_value(data), as_value(step))
    return _is_written()


def histogram(
    name: str, data: Any, step: Any = None, buckets: int | None = None, description: Any = None
) -> bool:
    """Write the distribution of the elements of a tensor; see `scalar`.

    Args:
        name: the tag.
        data: a tensor.
        step: the step; the default one when None.
        buckets: how many intervals; 30 when None.
        description: of no effect.
    """
    _core.histogram(name, to_array(data), as_value(step), 30 if buckets is None else buckets)
    return _is_written()


def image(
    name: str, data: Any, step: Any = None, max_outputs: int = 3, description: Any = None
) -> bool:
    """Write pictures; see `scalar`.

    Args:
        name: the tag.
        data: shape [count, height, width, channels]; uint8, or floats from 0 to 1.
        step: the step; the default one when None.
        max_outputs: how many to write, at most.
        description: of no effect.
    """
    _core.image(name, to_array(data), as_value(step), max_outputs)
    return _is_written()


def audio(
    name: str, data: Any, sample_rate: Any, step: Any = None, max_outputs: int = 3,
    encoding: str | None = None, description: Any = None,
) -> bool:  # fmt: skip
    """Write sound; see `scalar`.

    Args:
        name: the tag.
        data: shape [clips, frames, channels], floats from -1 to 1.
        sample_rate: frames in a second.
        step: the step; the default one when None.
        max_outputs: how many clips to write, at most.
        encoding: "wav", or None for the same.
        description: of no effect.

    Raises:
        ValueError: for another encoding or shape.

    >>> audio("beep", [[[0.0], [0.5]]], 8000, step=1)
    False
    """
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}; there is 'wav'.")
    _record_audio(name, data, sample_rate, step, max_outputs)
    return _is_written()


def text(name: str, data: Any, step: Any = None, description: Any = None) -> bool:
    """Write a string, which TensorBoard shows as Markdown; see `scalar`.

    Args:
        name: the tag.
        data: a string, or a tensor of one or more.
        step: the step; the default one when None.
        description: of no effect.
    """
    _core.text(name, _words(data), as_value(step))
    return _is_written()


def _words(data: Any) -> str:
    if isinstance(data, Tensor | Variable | list | tuple):
        parts = to_array(data).ravel().tolist()
        return "\n\n".join(
            part.decode() if isinstance(part, bytes) else str(part) for part in parts
        )
    return data.decode() if isinstance(data, bytes) else data


def _is_written() -> bool:
    return bool(_core.should_record_summaries() is not False)


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Wait until everything is in the file of a writer; of the default one when None."""
    _core.flush(writer)


def record_if(condition: Any) -> Any:
    """Return a context in which summaries are written only where a condition holds.

    Args:
        condition: a bool, a tensor or variable of one, or a function that returns one.
    """
    return _core.record_if(
        (lambda: as_value(condition())) if callable(condition) else as_value(condition)
    )


def should_record_summaries() -> Any:
    """Return whether a summary would be written now.

    >>> should_record_summaries()
    False
    """
    found = _core.should_record_summaries()
    return Tensor(found) if isinstance(found, jax.Array) else found


# ---------------------------------------------------------------- traces
def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Begin to record: what runs, if `profiler` is True.

    Args:
        graph: accepted, and of no effect: the graph of a function is
            `fn.get_concrete_function(...).graph`.
        profiler: record what runs on the host and on devices.
        profiler_outdir: the folder for that.

    Raises:
        ValueError: when `profiler` is True, without a folder for it.

    Differs from TensorFlow: no graph is written for TensorBoard.
    """
    if _TRACES:
        return
    if profiler and profiler_outdir is None:
        raise ValueError(
            "trace_on(profiler=True) needs the folder to write to: profiler_outdir='logs'."
        )
    folder = str(profiler_outdir) if profiler else None
    if folder is not None:
        jax.profiler.start_trace(folder)
    _TRACES.append(folder)


def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """Write what was recorded since `trace_on`, and end that.

    Args:
        name: of no effect.
        step: of no effect.
        profiler_outdir: of no effect: the folder is that of `trace_on`.

    Raises:
        ValueError: when nothing is recorded.
    """
    if not _TRACES:
        raise ValueError("Must enable trace before export through tf.summary.trace_on.")
    trace_off()


def trace_off() -> None:
    """End what `trace_on` began.

    >>> trace_off()
    """
    if _TRACES and _TRACES.pop() is not None:
        jax.profiler.stop_trace()


__getattr__, __dir__ = namespace(__name__)

"""Numbers, histograms, images and strings for TensorBoard: TensorFlow's `tf.summary`.

    writer = jv.tensorboard.create_file_writer("logs")
    with writer.as_default():
        for i, batch in enumerate(batches):
            loss = step(*batch)
            jv.tensorboard.scalar("loss", loss, step=i)
    writer.close()

It needs an extra: `pip install "jaxvars[tensorboard]"`. (`model.summary()`, a method of
every Module, says what layers and parameters a model has.)

A call passes its array on and returns: a thread of the writer waits for the device. In a function
that is compiled the array is one more result of the program, and is passed on after each run.

Rules this file keeps:
- a mistake in the call raises where the call is, though the value is not known yet;
- without a default writer nothing is written, and nothing is refused;
- writing changes no value and no derivative, and a tape does not see it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.errors import DtypeError, NotATensorError, ShapeError, user_line
from jaxvars.tensorboard.writer import (
    CONDITION,
    STEP,
    WRITER,
    SummaryWriter,
    check_condition,
    check_step,
    write,
)
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.dtypes import is_string
from jaxvars.tensors.tensor import to_tensor
from jaxvars.typing import Value

__all__ = [
    "SummaryWriter", "create_file_writer", "create_noop_writer", "flush", "get_step", "histogram",
    "image", "record_if", "scalar", "set_step", "should_record_summaries", "text",
]  # fmt: skip


# ---------------------------------------------------------------- writers
def create_file_writer(
    logdir: str | PathLike[str],
    max_queue: int = 1000,
    flush_millis: int = 120_000,
    filename_suffix: str = "",
) -> SummaryWriter:
    """Return a writer to a new event file in a folder.

    Args:
        logdir: the folder, made if it isn't there; TensorBoard is given it, or one above.
        max_queue: how many summaries may wait to be written (and 256 MiB of them); then a call
            waits, too. What a loop or branch of a program passes on beyond ten times as much is
            dropped; a RuntimeWarning says how much.
        flush_millis: milliseconds after which what was written is flushed to the disk.
        filename_suffix: the end of the file's name.

    Returns:
        A `SummaryWriter`; `close` it, or what is still in the queue is written only when
        it is collected, or Python ends.

    Raises:
        ModuleNotFoundError: when tensorboardX is not installed.
        ValueError: when a number is not positive.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> folder = tempfile.mkdtemp()
        >>> writer = create_file_writer(folder)
        >>> with writer.as_default():
        ...     scalar("loss", 0.5, step=1)
        >>> writer.close()
        >>> len(list(Path(folder).glob("events*")))
        1

    Of several processes let one write, and give the others `create_noop_writer()`.

    Differs from TensorFlow: `max_queue` bounds what waits; TensorFlow flushes by it.
    """
    if max_queue < 1 or flush_millis <= 0:
        raise ValueError(f"max_queue={max_queue} and flush_millis={flush_millis} must be positive.")
    return SummaryWriter(
        logdir, max_queue=max_queue, flush_millis=flush_millis, filename_suffix=filename_suffix
    )


def create_noop_writer() -> SummaryWriter:
    """Return a writer that writes nothing.

    >>> with create_noop_writer().as_default():
    ...     scalar("loss", 0.5, step=1)
    """
    return SummaryWriter(None, max_queue=1, flush_millis=1, filename_suffix="")


def flush(writer: SummaryWriter | None = None) -> None:
    """Wait until everything is in the file.

    Args:
        writer: the default one when None; nothing is done if there is none.

    Raises:
        RuntimeError: when writing has failed.

    >>> flush()
    """
    writer = WRITER.setting.value if writer is None else writer
    if writer is not None:
        writer.flush()


# ---------------------------------------------------------------- step and condition
def set_step(step: Any) -> None:
    """Set the default step.

    Args:
        step: an integer; a Variable, which is read each time; None for no default.

    Raises:
        CompileError: inside a compiled function.

    >>> set_step(7)
    >>> get_step()
    7
    >>> set_step(None)
    """
    check_step(step)
    STEP.set(step)


def get_step() -> Any:
    """Return the default step as it was set; None if there is none.

    >>> get_step() is None
    True
    """
    return STEP.setting.value


@contextmanager
def record_if(condition: Any) -> Generator[None]:
    """Write inside only where a condition holds; one inside of another takes its place.

    Args:
        condition: a bool, an array or Variable of one, or a function without arguments that
            returns one and is called for each summary. An array is not waited for.

    Raises:
        TypeError: when it is something else.

    >>> set_step(20)
    >>> with record_if(lambda: get_step() % 10 == 0):
    ...     scalar("loss", 0.5)
    >>> set_step(None)
    """
    if not callable(condition):
        check_condition(condition)
    with CONDITION.set_to(condition):
        yield


def should_record_summaries() -> Any:
    """Return whether a summary would be written now: False without a default writer.

    Returns:
        A bool, or an array of one if `record_if` was given one.

    >>> should_record_summaries()
    False
    """
    if WRITER.setting.value is None:
        return False
    return check_condition(CONDITION.setting.value)


# ---------------------------------------------------------------- summaries
def scalar(name: str, data: Any, step: Any = None) -> None:
    """Write a number.

    Reads no value: an array may still be computed. In a compiled function it is written each time
    the program has run. (In a loop's body, a branch, or under `jax.grad` in it, the program calls
    back into Python: its variables are not donated, and a call waits until it has finished.)

    Args:
        name: the tag; open name scopes come before it. "/" makes groups in TensorBoard.
        data: a number, an array of shape () or a Variable.
        step: an integer, an array or Variable of one; the default step when None.

    Raises:
        ShapeError: when it has another shape.
        DtypeError: when it is complex.
        NotATensorError: when it is not a number.
        ValueError: when no step is set, or the value differs between the examples of a `vmap`.
        TypeError: when the name or the step are of the wrong kind.
        RuntimeError: when the writer is closed, or has failed before; the message names the folder.

    >>> with create_noop_writer().as_default():
    ...     scalar("train/loss", jnp.float32(0.5), step=1)

    Differs from TensorFlow: returns None; has no `description`.
    """
    value = _as_number(data, f"scalar {name!r}")
    if value.shape != ():
        raise ShapeError(
            f"scalar {name!r} has shape {value.shape} at {user_line()}, and a scalar has (): "
            "write its mean, or a histogram."
        )

    def build(tag: str, x: np.ndarray) -> Iterator[Any]:
        from tensorboardX import summary

        yield summary.scalar(tag, x.astype(np.float64))

    write("scalar", name, build, [value], step)


def histogram(name: str, data: Any, step: Any = None, buckets: int = 30) -> None:
    """Write the distribution of numbers, such as those of a variable or a gradient.

    Args:
        name: see `scalar`.
        data: an array of any shape, or a Variable. What is not finite is left out; if nothing is
            left, nothing is written.
        step: see `scalar`.
        buckets: how many intervals of equal width.

    Raises:
        ValueError: when `buckets` is not positive; and as for `scalar`.
        DtypeError: when it is complex.
        NotATensorError: when it is not an array of numbers.

    >>> with create_noop_writer().as_default():
    ...     histogram("kernel", jnp.ones((8, 8)), step=1)
    """
    if buckets < 1:
        raise ValueError(f"histogram {name!r}: buckets={buckets} must be positive.")
    value = _as_number(data, f"histogram {name!r}")

    def build(tag: str, x: np.ndarray) -> Iterator[Any]:
        from tensorboardX import summary

        finite = x.astype(np.float64).ravel()
        finite = finite[np.isfinite(finite)]
        if finite.size:
            yield summary.histogram(tag, finite, buckets)

    write("histogram", name, build, [value], step)


def image(name: str, data: Any, step: Any = None, max_outputs: int = 3) -> None:
    """Write pictures.

    Args:
        name: see `scalar`; with several pictures "/0", "/1", ... follow it.
        data: shape [count, height, width, channels] with 1, 3 or 4 channels; uint8, or floats from
            0 to 1, which are cut off there.
        step: see `scalar`.
        max_outputs: how many of them to write, at most.

    Raises:
        ShapeError: when it has another shape.
        DtypeError: when it has another dtype.
        ValueError: when `max_outputs` is not positive; and as for `scalar`.

    >>> with create_noop_writer().as_default():
    ...     image("digits", jnp.zeros((1, 8, 8, 1)), step=1)
    """
    if max_outputs < 1:
        raise ValueError(f"image {name!r}: max_outputs={max_outputs} must be positive.")
    value = _as_number(data, f"image {name!r}")
    _check_image(name, value.shape, value.dtype)

    def build(tag: str, x: np.ndarray) -> Iterator[Any]:
        from tensorboardX import summary

        for i, picture in enumerate(x):
            one = tag if len(x) == 1 else f"{tag}/{i}"
            yield summary.image(one, _to_uint8(picture), dataformats="HWC")

    few = value[:max_outputs] if len(value) > max_outputs else value
    write("image", name, build, [few], step)


def text(name: str, data: str, step: Any = None) -> None:
    """Write a string, which TensorBoard shows as Markdown.

    Args:
        name: see `scalar`.
        data: the string, or a Variable of one.
        step: see `scalar`.

    Raises:
        NotATensorError: when it is not a string.
        ValueError: as for `scalar`.

    >>> with create_noop_writer().as_default():
    ...     text("options", "learning rate **0.1**", step=0)
    """
    known = unwrap(data)
    if isinstance(known, np.ndarray) and is_string(known.dtype) and not known.shape:
        known = str(known.item())
    if not isinstance(known, str):
        raise NotATensorError(f"text {name!r} is not a string at {user_line()}, but {known!r}.")

    def build(tag: str) -> Iterator[Any]:
        from tensorboardX import summary

        yield summary.text(tag, known)

    write("text", name, build, [], step)


# ---------------------------------------------------------------- what is written
def _to_uint8(picture: np.ndarray) -> np.ndarray:
    """Return a picture as uint8, as TensorFlow converts one."""
    if picture.dtype == np.uint8:
        return picture
    scaled = np.clip(np.nan_to_num(picture.astype(np.float32)), 0, 1) * 255.5
    return np.minimum(scaled, 255).astype(np.uint8)


def _check_image(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    if len(shape) != 4 or shape[-1] not in (1, 3, 4):
        raise ShapeError(
            f"image {name!r} has shape {shape} at {user_line()}; [count, height, width, channels] "
            "with 1, 3 or 4 channels is needed: x[None, :, :, None] is one grey picture."
        )
    if dtype != jnp.uint8 and not jnp.issubdtype(dtype, jnp.floating):
        raise DtypeError(f"image {name!r} is {dtype}: uint8, or floats from 0 to 1 are needed.")


def _as_number(data: Any, what: str) -> Value:
    value = unwrap(data)
    if isinstance(value, int | float):
        return np.float64(value)
    value = value if isinstance(value, jax.Array) else to_tensor(value, what=what)
    if is_string(value.dtype):
        raise NotATensorError(
            f"{what} is a string at {user_line()}; jv.tensorboard.text writes strings."
        )
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        raise DtypeError(f"{what} is {value.dtype} at {user_line()}: write a real number of it.")
    return value


def __dir__() -> list[str]:
    return __all__

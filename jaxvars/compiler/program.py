"""A program as jit calls it, and what jit raises through it: this call is not for this program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, TypeAlias, final

import jax

from jaxvars.core.cells import CALLBACKS, HOT_PATH_FILE, STORE, Cell, WriteBack
from jaxvars.core.checks import FAILURE, calling_back, raise_if_failed, without_signals
from jaxvars.core.frame import FAST_PATH_BLOCKERS
from jaxvars.core.frames import LOCAL
from jaxvars.core.staging import PyTreeTemplate, Staged
from jaxvars.core.store import stored
from jaxvars.tracing import context
from jaxvars.typing import Array

Leaves: TypeAlias = Sequence[Array]


@final
class NotTopLevel(Exception):  # noqa: N818 - a signal between us, not an error
    """The call is made inside a transform, a tape or another function."""


class SignatureMismatch(Exception):  # noqa: N818 - a signal between us, not an error
    """The arguments, or JAX's settings, are not those that a program was made for."""


@final
class ShapeMismatch(SignatureMismatch):
    """It is the arguments."""


@final
class Program:
    """A function for jit, which says when jit leaves its fast path, for free while it does not.

    There jit looks the function up in dicts, and so computes its hash, before anything else:
    with settings, placements or kinds of arguments that are new to it, after
    `jax.clear_caches()`, and where its cache was full.
    """

    def __init__(self, run: Callable[..., Any], name: str, leaving: Callable[[], None]) -> None:
        self._run = run
        self._leaving = leaving
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args: Array) -> Any:
        return self._run(*args)

    def __hash__(self) -> int:
        self._leaving()
        return id(self)


def check_top_level() -> None:
    if context.current() is not context.EVAL:
        context.put_back()
    if (
        FAST_PATH_BLOCKERS and LOCAL.frame is not LOCAL.eager
    ) or context.current() is not context.EVAL:
        raise NotTopLevel


def copy_all(values: Leaves) -> Leaves:
    with context.at(context.EVAL):
        return list(map(context.fresh, values))


@final
class Layout:
    """Which values a program takes and returns, and in which order jit has them.

    Attributes:
        donated: cells whose values are donated, since they are returned changed.
        readonly: cells whose values are read only.
        write_back: for the cells that are assigned, those of `donated` first.
        is_checked: whether a check may fail: then the old values are returned.
        idle: values of the signals, which are constants of a program by itself.
        input_order: for each input of the program, which of donated, readonly and idle it is.
        output_order: for each cell of the write-back, which output of the program it is.
    """

    def __init__(self, staged: Staged, name: str) -> None:
        reads, writes = map(without_signals, (staged.reads, staged.writes))
        written = {cell.key for cell in writes}
        self.donated = [cell for cell in reads if cell.key in written]
        self.readonly = [cell for cell in reads if cell.key not in written]
        donated = {cell.key for cell in self.donated}
        self.write_back = WriteBack(
            [*self.donated, *(x for x in writes if x.key not in donated)], name
        )
        self.is_checked = FAILURE in staged.writes
        if self.is_checked:
            self.donated = list(self.write_back.cells)
        signals = [cell for cell in staged.reads if cell.deliver is not None]
        self.idle = [STORE[cell.key] for cell in signals]
        inputs = [cell.key for cell in [*self.donated, *self.readonly, *signals]]
        outputs = [cell.key for cell in staged.writes]
        self.input_order = [inputs.index(cell.key) for cell in staged.reads]
        self.output_order = [outputs.index(key) for key in self.write_back.keys]


def finisher(rebuild: PyTreeTemplate, is_checked: bool) -> Callable[[Any], Any] | None:
    """Return what makes the function's result of the program's, unless that is the same."""
    if not is_checked:
        return None if rebuild.fits_jit else rebuild

    def finish(result: Any) -> Any:
        raise_if_failed(result[-1])
        return rebuild(result[:-1])

    return finish


def call_back(run: Callable[..., Any], *inputs: Any) -> Any:
    """Run a program that calls back into Python, and wait until it has finished."""

    def run_and_wait() -> Any:
        outputs = jax.block_until_ready(run(*inputs))
        jax.effects_barrier()
        return outputs

    CALLBACKS.append(None)
    try:
        return calling_back(run_and_wait)
    finally:
        CALLBACKS.pop()


def gather_values(cells: Sequence[Cell]) -> tuple[Array, ...]:
    """Return the values of cells from the store."""
    try:
        return tuple([STORE[cell.key] for cell in cells])
    except KeyError:
        return tuple(map(stored, cells))  # says which one has no value


def named(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function under a name, which XLA's programs and errors show."""

    def called(*args: Array) -> Any:
        return fn(*args)

    called.__name__ = called.__qualname__ = name
    return called


def is_hot(frame: FrameType, write_back: WriteBack) -> bool:
    """Return whether a frame is a hot path's to the program whose values are in a write-back."""
    return frame.f_code.co_filename == HOT_PATH_FILE and frame.f_globals["write_back"] is write_back

"""A program as jit calls it, and what jit raises through it: this call is not for this program."""

from __future__ import annotations

import enum
import weakref
from abc import ABC
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp

from jaxvars.compiler.signature import Traced
from jaxvars.core.cells import (
    CALLBACKS,
    HOT_PATH_FILE,
    SHARED,
    STORE,
    Cell,
    WriteBack,
    without_signals,
)
from jaxvars.core.checks import FAILURE, calling_back, report
from jaxvars.core.frame import FAST_PATH_BLOCKERS
from jaxvars.core.frames import LOCAL
from jaxvars.core.staging import Staged
from jaxvars.core.store import stored
from jaxvars.errors import CompileError, JaxvarsError, called
from jaxvars.tensors.array_like import is_deleted
from jaxvars.tensors.dtypes import bytes_per_device
from jaxvars.tracing import context
from jaxvars.typing import Array

Leaves: TypeAlias = Sequence[Array]

_SMALL = 2**16  # bytes: to copy it takes less than to call a program
_ROOM = 2**24  # bytes that a program may need and that are not asked for before


class Mode(enum.Enum):
    """How a program runs the next time.

    mode | XLA is given          | waits for its end | commits                  | then
    -----|-----------------------|-------------------|--------------------------|-------------
    COLD | as one of these, once it is compiled                         | one of these
    WARM | the variables' memory | no                | to a write-back, at once | WARM
         | copies, where it      | yes               | to the store, at the end | WARM
         | calls back to Python  |                   |                          |
    PURE | arguments alone       | no                | nothing                  | PURE

    `Executable.renew` makes any of them COLD: a variable has been placed elsewhere. In another
    function, under a tape or a transform a program is not run but inlined, in any mode.
    """

    COLD = enum.auto()
    WARM = enum.auto()
    PURE = enum.auto()


@final
class NotTopLevel(Exception):  # noqa: N818 - a signal between us, not an error
    """The call is made inside a transform, a tape or another function."""


class SignatureMismatch(Exception):  # noqa: N818 - a signal between us, not an error
    """Arguments, shapes of variables or JAX's settings are not what a program was made for."""


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


class Placement(ABC):  # noqa: B024 - what is not overridden leaves all where it is
    """Where the values of a program are to be: here, where they are, on one device.

    `Function.placement` is the class that is in use.

    Args:
        given: the function's `in_shardings`.
        names: for each traced argument that which it is a part of, and what it is called itself.
        leaves: what the key keeps of them.

    Attributes:
        shardings: where the arguments are to be, once that is known; None: wherever they are.
    """

    def __init__(
        self, given: Any, names: Sequence[tuple[str, str]], leaves: Sequence[Traced]
    ) -> None:
        self._leaves = leaves
        self.shardings: Sequence[Any] | None = None

    @staticmethod  # noqa: B027 - any do
    def check(given: Any, names: Sequence[str], function: str) -> None:
        """Raise CompileError for `in_shardings` that do not fit a function's arguments."""

    @staticmethod
    def is_about(error: BaseException) -> bool:
        """Return whether JAX refused arguments for where they are placed."""
        return False

    def for_jit(
        self, staged: Staged, inputs: Sequence[Sequence[Cell]], outputs: Sequence[Cell]
    ) -> tuple[Callable[..., list[Array]], dict[str, Any]]:
        """Return the program as a function, and jit's options for where its values are.

        Args:
            staged: the program.
            inputs: the cells whose values it takes, as jit has them in groups.
            outputs: those whose values it returns.
        """
        return staged.function(), {}

    def arrange(self, cells: Sequence[Cell], leaves: Leaves) -> Sequence[Cell] | None:
        """Place a program's cells and arguments, before it is compiled.

        While the values are in `STORE` and no other thread touches them.

        Returns:
            The cells that are elsewhere now; None if `for_jit` returns what it did before.
        """
        return None

    def specs(self, leaves: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
        """Return what stands for the arguments of a call, where they are."""
        return [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak) for x in self._leaves]

    def planned(
        self, cells: Sequence[Cell], specs: Sequence[jax.ShapeDtypeStruct]
    ) -> tuple[Placement, Sequence[jax.ShapeDtypeStruct]]:
        """Return what a program is lowered with for such arguments, as they will be; none moves."""
        return self, specs

    def place_of(self, cell: Cell) -> Any:
        """Return where a program is lowered to have the value of a cell; None: anywhere."""
        return cell.sharding

    def put(self, leaves: Leaves) -> Leaves:
        """Return the arguments of a call where they are to be."""
        return leaves

    def constrain(self, cells: Sequence[Cell], leaves: Leaves) -> Leaves:
        """Return the arguments where they are to be: inside of other functions."""
        return leaves

    def explain(  # noqa: B027 - not known
        self, error: Exception, cells: Sequence[Cell], leaves: Sequence[Any]
    ) -> None:
        """Raise what says why an error came, if it `is_about` places; of arguments or specs."""


def is_about_deleted(error: BaseException) -> bool:
    """Return whether JAX refused an array that has been deleted."""
    return "has been deleted" in str(error) and not isinstance(error, JaxvarsError)


def check_top_level() -> None:
    if context.current() is not context.EVAL:
        context.put_back()
    if (
        FAST_PATH_BLOCKERS and LOCAL.frame is not LOCAL.bottom
    ) or context.current() is not context.EVAL:
        raise NotTopLevel


def check_room(compiled: Any, donated: Leaves, others: Sequence[Any]) -> None:
    """Raise what running a program would: if arguments could not be computed, or memory lacks.

    For a first run, which fails more often than others, before it is given what would be lost.
    """
    jax.block_until_ready([x for x in others if not is_deleted(x)])
    sizes = compiled.memory_analysis()
    devices = {device for value in donated for device in value.sharding.addressable_devices}
    if sizes is None or not devices:
        return
    blocks = _blocks(sizes.temp_size_in_bytes, compiled, donated)
    if sum(blocks) > _ROOM:
        jax.block_until_ready([jnp.zeros(n, jnp.int8, device=d) for n in blocks for d in devices])


def _blocks(temporary: int, compiled: Any, donated: Leaves) -> list[int]:
    """Return what a program allocates on a device: outputs for which nothing is donated, apart.

    A pool in pieces may hold each of them where it has no piece for their sum.
    """
    outputs = Counter(map(bytes_per_device, jax.tree.leaves(compiled.out_info)))
    new = [*(outputs - Counter(map(bytes_per_device, donated))).elements()]
    large = [n for n in new if n > _ROOM]
    return [temporary + sum(new) - sum(large), *large]  # the small ones in one


def copy_shared(cells: Sequence[Cell], before: Sequence[int]) -> Sequence[int]:
    """Copy the values that may be referenced elsewhere; return the keys of the small ones.

    What is small in one program, if the same was copied before. Else one after the other, so that
    the memory of each is free before the next is copied, if nothing holds it.
    """
    keys = [cell.key for cell in cells if cell.key in SHARED]
    small = keys if keys == before else [key for key in keys if STORE[key].nbytes <= _SMALL]
    at_once = small if small == before else []
    if at_once:
        STORE.update(zip(at_once, context.copied_all([STORE[key] for key in at_once]), strict=True))
    for key in set(keys).difference(at_once):
        STORE[key] = jax.block_until_ready(context.copied(STORE[key]))
    SHARED.difference_update(keys)
    return small


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

    def __init__(self, staged: Staged, name: str, *, is_shared: bool) -> None:
        reads, writes = map(without_signals, (staged.reads, staged.writes))
        written = {cell.key for cell in writes}
        self.donated = [cell for cell in reads if cell.key in written]
        self.readonly = [cell for cell in reads if cell.key not in written]
        donated = {cell.key for cell in self.donated}
        cells = [*self.donated, *(cell for cell in writes if cell.key not in donated)]
        self.write_back = _shared_write_back(cells, name) if is_shared else WriteBack(cells, name)
        self.is_checked = FAILURE in staged.writes
        if self.is_checked and staged.reshaped:
            raise CompileError(
                f"{name} assigns a value of another shape to variable "
                f"{called(staged.reshaped[0])!r}, and checks values: if a check fails the old "
                "value must stay, but a program has fixed shapes. Assign, or check, outside of it."
            )
        if self.is_checked:
            self.donated = list(self.write_back.cells)
        signals = [cell for cell in staged.reads if cell.deliver is not None]
        self.idle = [STORE[cell.key] for cell in signals]
        inputs = [cell.key for cell in [*self.donated, *self.readonly, *signals]]
        outputs = [cell.key for cell in staged.writes]
        self.input_order = [inputs.index(cell.key) for cell in staged.reads]
        self.output_order = [outputs.index(key) for key in self.write_back.keys]


_WRITE_BACKS: weakref.WeakValueDictionary[tuple[str, tuple[int, ...]], WriteBack] = (
    weakref.WeakValueDictionary()
)


def _shared_write_back(cells: Sequence[Cell], name: str) -> WriteBack:
    """Return the write-back of all programs of one name that assign the same cells.

    So a step that is called with arguments of several shapes hands over its values as if it had one
    program. Not for programs that keep the values before, or check whether the last run failed.
    """
    key = name, tuple(cell.key for cell in cells)
    return _WRITE_BACKS.setdefault(key, WriteBack(cells, name))


def finisher(staged: Staged, is_checked: bool) -> Callable[[Any], Any] | None:
    """Return what makes the function's result of the program's, unless that is the same."""
    if not is_checked:
        return None if staged.fits_jit else staged.finish

    def finish(result: Any) -> Any:
        try:
            return staged.finish(result[:-1])
        finally:
            report(result[-1])  # one that touches no variable runs in traces, too

    return finish


def call_back(run: Callable[..., Any], *inputs: Any) -> Any:
    """Run a program that calls back into Python, and wait until it has finished."""

    def run_and_wait() -> Any:
        outputs = jax.block_until_ready(run(*inputs))
        jax.effects_barrier()
        return outputs

    try:
        CALLBACKS.append(None)  # in here: Ctrl-C may come as it returns
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


def is_fast_path(frame: FrameType, write_back: WriteBack) -> bool:
    """Return whether a frame is a fast path's to the program whose values are in a write-back."""
    return frame.f_code.co_filename == HOT_PATH_FILE and frame.f_globals["write_back"] is write_back

"""`SummaryWriter`: writes events for TensorBoard in a separate thread; and the calls that it takes.

The caller passes the arrays as they are. The thread waits for them, makes numbers of them, and
writes; so a training loop never waits for the device. A call is written now, or each time a
compiled program has run: what it takes is a result of the program, which so calls nothing back. (In
a loop's body, a branch or a plain `jax.jit` the program itself calls.) What it says, and what a
`with` inside of the traced function sets, belongs to the program; the other defaults (writer, step,
condition) are those of the moment when it runs: a step writes what it would write eagerly.

Rules this file keeps:
- events are in the file in the order in which they were passed;
- a call waits while too much is queued, so that nothing is lost; but not one that a program makes,
  because what the thread waits for may be the result of a program that comes after it. Beyond ten
  times as much, what such a program passes on is dropped, and a warning says once how much;
- an error of the thread, of the disk too, is raised by the next call of the writer, once; the
  summary of that call is queued nevertheless;
- what is dropped without `close` is closed when it is collected, at the latest when Python ends;
- tensorboardX, an extra, is imported when a writer is made;
- a default is the process's, not a thread's: a callback of a compiled program, which runs in a
  thread of XLA's, finds the one that its caller has;
- a value that differs between the examples of a `vmap` is refused.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, final

import jax.numpy as jnp
import numpy as np

from jaxvars.console.host_calls import HostCall, drop_gradient, runs_now
from jaxvars.core.cells import NAMES
from jaxvars.core.frames import is_staged
from jaxvars.errors import CompileError, JaxvarsError, user_line, warn_user
from jaxvars.tensors.array_like import unwrap
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

Build: TypeAlias = Callable[..., Iterable[Any]]
"""Takes arrays of NumPy; returns tensorboardX's `Summary` messages."""


class Record(NamedTuple):
    """What is to be written."""

    what: str
    build: Build
    values: Sequence[Array]
    step: Array
    condition: Array
    seconds: float
    nbytes: int


class WriteError(JaxvarsError, RuntimeError):
    """What was to be written is not in the file."""


@final
class SummaryWriter:
    """A writer of events: made by `jv.tensorboard.create_file_writer`.

    It belongs to one process, and any thread may use it.

    Attributes:
        logdir: the folder; None for a writer that writes nothing.
    """

    def __init__(
        self,
        logdir: str | PathLike[str] | None,
        *,
        max_queue: int,
        flush_millis: int,
        filename_suffix: str,
    ) -> None:
        self.logdir = None if logdir is None else str(logdir)
        self._file: _File | None = None
        if self.logdir is not None:
            self._file = _File(self.logdir, max_queue, flush_millis / 1e3, filename_suffix)
            self._finalizer = weakref.finalize(self, self._file.finish)

    @contextmanager
    def as_default(self, step: Any = None) -> Generator[SummaryWriter]:
        """Have what is written inside go here.

        Args:
            step: the default step inside; that of before when None.

        Yields:
            The writer.
        """
        with WRITER.set_to(self):
            if step is None:
                yield self
            else:
                with STEP.set_to(step):
                    yield self

    def set_as_default(self, step: Any = None) -> None:
        """Have what is written from now on go here.

        Args:
            step: the default step from now on; that of before when None.

        Raises:
            CompileError: inside a compiled function.
        """
        WRITER.set(self)
        if step is not None:
            STEP.set(step)

    def flush(self) -> None:
        """Wait until everything is in the file.

        Raises:
            RuntimeError: when writing has failed.
        """
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Write what is left, and close the file. The second time, do nothing.

        Raises:
            RuntimeError: when writing has failed.
        """
        if self._file is not None and self._finalizer.detach() is not None:
            self._file.finish()

    def put(self, record: Record, *, may_wait: bool) -> None:
        """Queue what is to be written.

        Args:
            record: what.
            may_wait: wait while too much is queued.

        Raises:
            RuntimeError: when writing has failed before, or the writer is closed.
        """
        if self._file is not None:
            self._file.put(record, may_wait=may_wait)

    def __repr__(self) -> str:
        return f"<summary writer to {self.logdir or 'nowhere'}>"


# ---------------------------------------------------------------- the file and its thread
_COUNT = itertools.count()
_MOST_BYTES = 2**28  # queued


@final
class _File:
    """An event file and the thread that writes it. It knows no writer, so that one may go."""

    def __init__(self, logdir: str, max_queue: int, every: float, suffix: str) -> None:
        event_file, protocol = _import_tensorboardx()
        event_file.directory_check(logdir)
        # The name has the second in it: two files of one folder must not be one.
        self._unique = f".{os.getpid()}.{next(_COUNT)}{suffix}"
        self._events = event_file.EventsWriter(str(Path(logdir) / "events"), self._unique)
        self._events.flush()
        self._event = protocol.Event
        self._logdir = logdir
        self._every = every
        self._errors: list[tuple[str, Exception]] = []
        self._dropped = 0
        self._room = max_queue
        self._bytes = self._done = 0
        self._lock = threading.RLock()
        self._queue: queue.SimpleQueue[Record | threading.Event | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="jaxvars summary", daemon=True)
        self._is_closed = False
        self._thread.start()

    def put(self, record: Record, *, may_wait: bool) -> None:
        """Queue what is to be written."""
        with self._lock:
            if self._is_closed or not self._thread.is_alive():
                state = "closed" if self._is_closed else "of the process that was forked"
                raise RuntimeError(
                    f"The summary writer to {self._logdir} is {state}, and {record.what} cannot be "
                    "written: make another one by jv.tensorboard.create_file_writer."
                )
            if not may_wait and self._is_full(10):
                self._dropped += 1
                return
            self._bytes += record.nbytes
            self._queue.put(record)
        wait = may_wait and self._is_full(1)
        while wait and self._is_full(0.5) and self._thread.is_alive():
            time.sleep(1e-3)
        if may_wait:
            self._say()

    def _is_full(self, times: float) -> bool:
        return (
            self._queue.qsize() > times * self._room
            or self._bytes - self._done > times * _MOST_BYTES
        )

    def flush(self) -> None:
        """Wait until everything is in the file."""
        done = threading.Event()
        self._queue.put(done)
        while self._thread.is_alive() and not done.wait(1.0):
            pass
        self._say()

    def finish(self) -> None:
        """Write what is left, and close."""
        with self._lock:
            self._is_closed = True
            self._queue.put(None)
        if threading.current_thread() is not self._thread:  # collected by it
            self._thread.join()
        self._say()

    def _say(self) -> None:
        """Raise what went wrong in the thread, and warn of what was dropped: once."""
        if self._errors:
            (what, error), others = self._errors[0], len(self._errors) - 1
            self._errors.clear()
            more = f" (and {others} more)" if others else ""
            raise WriteError(
                f"Writing {what}{more} to {self._logdir} failed: {type(error).__name__}: {error}"
            ) from error
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            warn_user(
                f"{dropped} summaries to {self._logdir} were dropped: a loop, branch or jax.jit "
                "passed on more than is written meanwhile. Write fewer, or have the loop return "
                "them; max_queue is how many may wait.",
                RuntimeWarning,
            )

    def _run(self) -> None:
        due = time.monotonic() + self._every
        while (item := self._next(due)) is not None:
            if isinstance(item, Record):
                self._try(item.what, lambda record=item: self._write(record))
                self._done += item.nbytes
            is_due = time.monotonic() >= due
            if is_due or isinstance(item, threading.Event):
                self._try("what was queued", self._flush)
            if is_due:
                due = time.monotonic() + self._every
            if isinstance(item, threading.Event):
                item.set()
            del item  # while it waits for the next
        self._try("what was queued", self._flush)
        self._try("the end", self._events.close)

    def _next(self, due: float) -> Record | threading.Event | bool | None:
        """Return the next record, None at the end, or False when it is time to flush."""
        try:
            return self._queue.get(timeout=max(due - time.monotonic(), 0.0))
        except queue.Empty:
            return False

    def _try(self, what: str, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception as error:  # noqa: BLE001 - raised where the next call is
            self._errors.append((what, error))

    def _flush(self) -> None:
        self._events.flush()
        if not any(file.name.endswith(self._unique) for file in Path(self._logdir).iterdir()):
            raise FileNotFoundError("the event file has been removed")

    def _write(self, record: Record) -> None:
        if not bool(np.asarray(record.condition)):
            return
        step = int(np.asarray(record.step))
        for summary in record.build(*map(np.asarray, record.values)):
            event = self._event(wall_time=record.seconds, step=step, summary=summary)
            self._events.write_event(event)


def _import_tensorboardx() -> tuple[Any, Any]:
    try:
        from tensorboardX import event_file_writer
        from tensorboardX.proto import event_pb2
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "jv.tensorboard writes with tensorboardX, which is an extra: "
            'pip install "jaxvars[tensorboard]"',
            name=error.name,
        ) from error
    return event_file_writer, event_pb2


# ---------------------------------------------------------------- defaults
class Setting(NamedTuple):
    """A value of a default; `traced` if a `with` in a traced function set it."""

    value: Any
    traced: bool


@final
class Default:
    """A default: one value for the process, and those of the open `with`s above it.

    A thread or coroutine has that of its own last `with`. One that has none, as a thread in which
    XLA calls back, has that of the others' innermost ones, if they agree.
    """

    __slots__ = ("_here", "_levels", "_process", "_what")

    def __init__(self, what: str, value: Any) -> None:
        self._what = what
        self._process = [Setting(value, False)]  # lists, which are told apart by identity
        self._levels: dict[
            int, tuple[list[Setting] | None, list[Setting]]
        ] = {}  # by id, after the outer one
        self._here: context.Scoped[list[Setting] | None] = context.Scoped(None)

    @property
    def setting(self) -> Setting:
        """What it is now."""
        here = self._here.value
        return (self._find_of_others() if here is None else here)[0]

    def _find_of_others(self) -> list[Setting]:
        known = tuple(self._levels.values())
        outer = {id(around) for around, _ in known}
        found = [level for _, level in known if id(level) not in outer]  # the innermost ones
        if any(level[0].value is not found[0][0].value for level in found[1:]):
            raise ValueError(
                f"Several threads or coroutines have set a default {self._what}, and {user_line()} "
                "is in one that has set none, or a compiled function calls back: it cannot be told "
                "whose summary that is. Set one default for all of them, outside of them."
            )
        return found[-1] if found else self._process

    def set(self, value: Any) -> None:
        """Set it until it is set again, or until the open `with` ends; not in a traced function."""
        if is_staged():
            raise CompileError(
                f"The default {self._what} is set at {user_line()} while a function is traced: "
                "that would happen once, and not each time the program runs. Set it outside, or "
                "say it in the call: jv.tensorboard.scalar(name, value, step=step)."
            )
        here = self._here.value
        (self._process if here is None else here)[0] = Setting(value, False)

    @contextmanager
    def set_to(self, value: Any) -> Generator[None]:
        """Set it inside of a `with`."""
        level = [Setting(value, is_staged())]
        self._levels[id(level)] = self._here.value, level
        try:
            with self._here.set(level):
                yield
        finally:
            del self._levels[id(level)]


WRITER = Default("writer", None)
STEP = Default("step", None)
CONDITION = Default("condition", True)


# ---------------------------------------------------------------- calls
def write(kind: str, name: Any, build: Build, values: Sequence[Array], step: Any) -> None:
    """Write a summary now, or have the program that is being traced write it.

    `build` makes messages of tensorboardX of the tag and the `values`, as arrays of NumPy.
    """
    if not isinstance(name, str):
        raise TypeError(f"The name of a summary is a string, not {name!r} ({user_line()}).")
    tag = "/".join((*NAMES.value, name))
    if WRITER.setting.value is None and not is_staged():
        return
    call = _Call(f"{kind} {name!r}", user_line, lambda *x: build(tag, *x))
    steps = STEP.setting if step is None else Setting(step, True)
    step, condition = check_step(steps.value), check_condition(CONDITION.setting.value)
    operands = list(map(drop_gradient, (*values, step, condition)))
    if runs_now(operands):
        call.put(WRITER.setting.value, operands, may_wait=True)
    else:
        _stage(call, steps, operands)


class _Call(NamedTuple):
    """What a call says that is not an array."""

    what: str
    line: Callable[[], str]
    build: Build

    def put(self, writer: SummaryWriter | None, operands: Sequence[Any], *, may_wait: bool) -> None:
        """Pass a summary to a writer, if there is one."""
        *values, step, condition = operands
        if writer is None or condition is False:
            return
        if step is None:
            raise ValueError(
                f"{self.what} has no step ({self.line()}): jv.tensorboard.scalar(name, value, "
                "step=i), or a default by jv.tensorboard.set_step(i)."
            )
        size = sum(getattr(x, "nbytes", 0) for x in values)
        record = Record(self.what, self.build, values, step, condition, time.time(), size)
        writer.put(record, may_wait=may_wait)


def _stage(call: _Call, steps: Setting, operands: list[Any]) -> None:
    """Make a summary a part of the program."""
    line = user_line()
    call = call._replace(line=lambda: line)
    writers, conditions = WRITER.setting, CONDITION.setting
    looks_up_step = not steps.traced and not context.is_tracer(operands[-2])
    looks_up_condition = not conditions.traced and not context.is_tracer(operands[-1])

    def run(*operands: Array, in_program: bool) -> None:
        *values, step, condition = operands
        if looks_up_step:
            step = check_step(STEP.setting.value)
        if looks_up_condition:
            condition = check_condition(CONDITION.setting.value)
        writer = writers.value if writers.traced else WRITER.setting.value
        call.put(writer, [*values, step, condition], may_wait=not in_program)

    def over_examples(count: int, *_: object) -> None:
        raise ValueError(
            f"{call.what} is written inside a vmap ({call.line()}), where it has {count} values, "
            "one for each example. Return it, and write a mean or a histogram outside."
        )

    HostCall(call.what, run, operands, over_examples).make()


# ---------------------------------------------------------------- steps and conditions
def check_step(step: Any) -> Any:
    """Return a step's value: an integer, an array of one, or None; else raise TypeError."""
    value = unwrap(step)
    if value is None or type(value) is int:
        return value
    kind = getattr(value, "dtype", np.dtype(object))
    if np.shape(value) != () or not jnp.issubdtype(kind, jnp.integer):
        raise TypeError(f"A step is an integer, not {step!r} ({user_line()}).")
    return value


def check_condition(condition: Any) -> Value:
    """Return what a condition says: a bool, or an array of one; else raise TypeError."""
    value = unwrap(condition() if callable(condition) else condition)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if np.shape(value) != () or getattr(value, "dtype", None) != np.bool_:
        raise TypeError(
            f"jv.tensorboard.record_if takes a bool, or a function that returns one, not {value!r} "
            f"({user_line()})."
        )
    return value

"""Where the time of a step goes: `profile` in one call, or `trace` and `step` around a loop.

    print(jv.profiler.profile(train_step, images, labels))

    with jv.profiler.trace("logs"):
        for i, batch in enumerate(batches):
            with jv.profiler.step(i):
                train_step(*batch)

Traces are those of `jax.profiler`. TensorBoard shows them with its profile plugin, and
https://ui.perfetto.dev opens the `.trace.json.gz` in the folder.

Rules this file keeps:
- `profile` puts the variables back, whatever happens, or is told which it should leave;
- each step is waited for: on the result, which comes with the variables of the same program;
- a trace is read as JSON: JAX's own reader of the binary form ends the process where it fails.
"""

from __future__ import annotations

import gzip
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, final

import jax

from jaxvars.compiler.function import BoundFunction, Function
from jaxvars.core.frame import cells_in
from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable
from jaxvars.display.repr import Table, human_bytes
from jaxvars.errors import CompileError, user_line
from jaxvars.modules.state import State, require_values

__all__ = ["Profile", "profile", "step", "trace"]

Folder: TypeAlias = str | PathLike[str]


# ---------------------------------------------------------------- around a loop
@contextmanager
def trace(logdir: Folder, *, python: bool = False) -> Generator[Path]:
    """Record what runs inside, on the host and on devices.

    Changes no variable. Wait for the last result before the end (`float(loss)`), or its program
    is cut off.

    Args:
        logdir: the folder to write to; each trace gets a separate one below `plugins/profile`.
        python: record every call of a Python function, too, which makes them slow.

    Yields:
        `logdir` as a path.

    Raises:
        RuntimeError: when a trace is being recorded already.

    Example:
        >>> import jax.numpy as jnp
        >>> with tempfile.TemporaryDirectory() as logdir:
        ...     with trace(logdir):
        ...         for i in range(3):
        ...             with step(i):
        ...                 _ = jnp.ones(3).sum().block_until_ready()
        ...     len(list(Path(logdir).rglob("*.trace.json.gz")))
        1
    """
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = int(python)
    folder = Path(logdir).expanduser()
    with jax.profiler.trace(folder, profiler_options=options):
        yield folder


def step(number: int, name: str = "train") -> jax.profiler.StepTraceAnnotation:
    """Name what runs inside as one step, in a trace that is being recorded.

    Outside of `trace` it costs next to nothing.

    Args:
        number: of the step.
        name: of the loop.

    Returns:
        A context manager.

    Example:
        >>> with step(0):
        ...     pass
    """
    return jax.profiler.StepTraceAnnotation(name, step_num=int(number))


# ---------------------------------------------------------------- in one call
@final
@dataclass(repr=False, eq=False)
class Profile:
    """What `profile` found out; `print` it, or look at its tables.

    Attributes:
        name: of the function.
        seconds: that each step took, until its result was there.
        first_call: seconds of the first call, in which it is compiled unless it was before.
        ops: operations of the devices, the longest first: op, program, calls, ms per step, and
            the part of all operations' time. A loop's time is without what runs in it. A Table.
        memory: the most memory that was in use on each device since the process began, in bytes;
            empty where the device doesn't tell (a CPU).
        folder: where the trace is.
    """

    name: str
    seconds: Sequence[float]
    first_call: float
    ops: Table
    memory: dict[str, int]
    folder: Path

    @property
    def median(self) -> float:
        """The median time of a step, in seconds."""
        return statistics.median(self.seconds)

    @property
    def path(self) -> Path:
        """The file to open in https://ui.perfetto.dev."""
        return max(self.folder.rglob("*.trace.json.gz"))

    @property
    def overview(self) -> Table:
        """The figures as a table."""
        rows = [
            ("steps", str(len(self.seconds))),
            ("time of a step, median", _format_ms(self.median)),
            ("from, to", f"{_format_ms(min(self.seconds))}, {_format_ms(max(self.seconds))}"),
            ("first call", _format_ms(self.first_call)),
            *[(f"most memory on {d}", human_bytes(n)) for d, n in self.memory.items()],
            ("trace", str(self.path)),
        ]
        return Table(f"profile of {self.name}", ("what", "value"), rows)

    def __str__(self) -> str:
        return f"{self.overview}\n\n{self.ops}"

    def __repr__(self) -> str:
        return f"<profile of {self.name}: {_format_ms(self.median)} a step, {self.folder}>"

    def _repr_html_(self) -> str:  # pyright: ignore[reportUnusedFunction] - notebooks call it
        return self.overview._repr_html_() + self.ops._repr_html_()


def profile(
    fn: Callable[..., Any],
    *args: Any,
    steps: int = 10,
    warmup: int = 2,
    logdir: Folder | None = None,
    restore: Any = True,
    top: int = 10,
    **kwargs: Any,
) -> Profile:
    """Run a step some times, record a trace of it, and say where the time goes.

    The steps are real ones: they assign variables. Afterwards these have the values that they had
    before, as `restore` says, so that a profile in the middle of a training run changes nothing.

    Args:
        fn: the step. It should return something of its program, as the loss, to be waited for.
        *args: what to call it with.
        steps: how many to record, each with its number.
        warmup: how many to run before; the first one compiles.
        logdir: the folder for the trace; a new temporary one when None.
        restore: True for all variables that a compiled function touches; an object, or a tuple
            of some, with the variables to put back; False for none.
        top: how many operations to list.
        **kwargs: more for `fn`.

    Returns:
        A `Profile`.

    Raises:
        TypeError: when `restore` is True and `fn` was not made by `jv.compile`: which variables
            it touches is not known.
        ValueError: when a number is too small.
        CompileError: inside a compiled function.
        RuntimeError: when a trace is being recorded already.

    Example:
        >>> import jaxvars as jv
        >>> import jax.numpy as jnp
        >>> w = jv.Variable(jnp.ones((8, 8)), name="w")
        >>> @jv.compile
        ... def double(x):
        ...     w.assign_add(w)
        ...     return jnp.sum(w @ x)
        >>> with tempfile.TemporaryDirectory() as logdir:
        ...     report = profile(double, jnp.ones(8), steps=3, logdir=logdir)
        >>> len(report.seconds), report.ops.columns
        (3, ('op', 'program', 'calls', 'ms a step', 'part'))
        >>> float(w[0, 0])
        1.0
    """
    if LOCAL.frame is not LOCAL.eager:
        raise CompileError(
            f"jv.profiler.profile is called at {user_line()} inside a compiled function: it runs "
            "programs and looks at a clock. Call it outside."
        )
    if steps < 1 or warmup < 1:
        raise ValueError(f"profile: steps={steps} and warmup={warmup} must be at least 1.")
    start = time.perf_counter()
    touched = _find_touched(fn, args, kwargs, restore)
    before = require_values(State.of(touched)) if touched else None
    run = _wait_after(lambda: fn(*args, **kwargs), touched)
    try:
        run()
        first_call = time.perf_counter() - start
        for _ in range(warmup - 1):
            run()
        name = getattr(fn, "__name__", type(fn).__name__)
        folder, seconds = _record(run, name, steps, logdir)
    finally:
        if before is not None:
            try:
                before.commit()
            except BaseException:  # Ctrl-C: again
                before.commit()
                raise
    columns = ("op", "program", "calls", "ms a step", "part")
    rows = longest(folder, steps)[:top]
    ops = Table("operations", columns, rows, formats={"part": "{:.1%}".format})
    return Profile(name, seconds, first_call, ops, _read_memory(), folder)


def _find_touched(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], restore: Any
) -> list[Variable]:
    """Return the variables to put back."""
    if restore is False:
        return []
    if restore is not True:
        owners = [cell.owner() for _, cell in cells_in(restore)]
        return [owner for owner in owners if isinstance(owner, Variable)]
    if not isinstance(fn, Function | BoundFunction):
        raise TypeError(
            f"profile: {getattr(fn, '__name__', fn)!r} was not made by jv.compile, so it is not "
            "known which variables it touches. Say which should be put back afterwards: "
            "restore=(model, optimizer), or restore=False."
        )
    return list(fn.trace(*args, **kwargs).captured)


def _wait_after(run: Callable[[], Any], touched: Sequence[Variable]) -> Callable[[], None]:
    """Return what runs a step and waits for it."""
    least = min(touched, key=lambda v: v.size, default=None)

    def wait() -> None:
        result = jax.tree.leaves(run())
        if not any(isinstance(x, jax.Array) for x in result) and least is not None:
            result = least.value  # which is copied for it by the next step: so the smallest one
        jax.block_until_ready(result)

    return wait


def _record(
    run: Callable[[], None], name: str, steps: int, logdir: Folder | None
) -> tuple[Path, tuple[float, ...]]:
    seconds: list[float] = []
    with trace(logdir or tempfile.mkdtemp(prefix="jaxvars-profile-")) as logs:
        for i in range(steps):
            with step(i, name):
                start = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - start)
    return max((logs / "plugins" / "profile").iterdir()), tuple(seconds)  # named by the time


def _read_memory() -> dict[str, int]:
    found = {f"{d.platform}:{d.id}": d.memory_stats() for d in jax.local_devices()}
    return {name: facts["peak_bytes_in_use"] for name, facts in found.items()
            if facts and "peak_bytes_in_use" in facts}  # fmt: skip


def _format_ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.3f} ms"


# ---------------------------------------------------------------- the operations in a trace
def longest(folder: Path, steps: int) -> list[tuple[str, str, int, float, float]]:
    """Return a row for each operation in a trace, the longest first; time is counted once."""
    spent: dict[tuple[str, str], list[int]] = defaultdict(list)
    for file in folder.glob("*.trace.json.gz"):
        with gzip.open(file) as opened:
            operations = _find_operations(json.load(opened)["traceEvents"])
        for event, own in zip(operations, _subtract_inner(operations), strict=True):
            program = str(event["args"].get("hlo_module", "")).removeprefix("jit_")
            spent[event["args"]["hlo_op"], program].append(own)
    total = sum(map(sum, spent.values())) or 1
    rows = [(*op, len(own), sum(own) / steps / 1e6, sum(own) / total) for op, own in spent.items()]
    return sorted(rows, key=lambda row: row[3], reverse=True)


def _find_operations(events: list[Any]) -> list[Any]:
    """Return the events that are operations of programs, line by line, outer ones first."""
    named = (e for e in events if e.get("name") == "thread_name")
    lines = {(e["pid"], e["tid"]) for e in named if e["args"]["name"] == "XLA Ops"}
    alone = {pid for pid, _ in lines}  # devices that have each operation on other lines, too
    found = [
        e
        for e in events
        if e.get("ph") == "X"
        and "hlo_op" in e.get("args", {})
        and (e["pid"] not in alone or (e["pid"], e["tid"]) in lines)
    ]
    return sorted(found, key=lambda e: (e["pid"], e["tid"], e["ts"], -e["dur"]))


def _subtract_inner(operations: list[Any]) -> list[int]:
    """Return the nanoseconds of each operation: a loop's are without those of what runs in it."""
    own: list[int] = []
    around: list[tuple[int, Any, int]] = []  # what is running: its index, line and end
    for i, event in enumerate(operations):
        line, start = (event["pid"], event["tid"]), round(1e3 * event["ts"])
        own.append(round(1e3 * event["dur"]))
        end = start + own[i]
        while around and (around[-1][1] != line or around[-1][2] <= start):
            around.pop()
        if around and end <= around[-1][2]:
            own[around[-1][0]] -= own[i]
        around.append((i, line, end))
    return own


def __dir__() -> list[str]:
    return __all__

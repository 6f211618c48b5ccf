"""Stage a function: trace it once into a program over the cells that it touches.

Compiled functions, branches, loops, recomputed functions are all clients of `stage`.

Rule this file keeps: no tracer outlives the trace that it belongs to.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, final

import jax
import numpy as np

from jaxvars.core.cells import STREAMS, Cell
from jaxvars.core.frame import reshaped_error
from jaxvars.core.frames import LOCAL, CaptureFrame, Created, outside, within
from jaxvars.objects.identity import SIZES
from jaxvars.objects.key_order import in_order, is_sorted, order_of
from jaxvars.tensors.tensor import check_uncut
from jaxvars.tracing import capture, context, jaxprs
from jaxvars.tracing.around import AROUND, around
from jaxvars.tracing.assigned_read import reread_p
from jaxvars.tracing.guards import ask
from jaxvars.tracing.signals import deferred_signals
from jaxvars.typing import Array

T = TypeVar("T")

INLINED: list[Callable[[Staged], Staged]] = []
"""Passes over a program before it runs as a part of another one, or is differentiated."""


@final
class PyTreeTemplate:
    """Takes a result apart into arrays and the rest, and puts it together again.

    Args:
        result: to be taken apart.
        whole: objects of this type are left as they are.
        numbers: Python's and NumPy's numbers are arrays, too; else they are left as they are.

    >>> rebuild = PyTreeTemplate({"loss": 1.0, "note": "first"})
    >>> rebuild.arrays, rebuild([2.0])
    ([1.0], {'loss': 2.0, 'note': 'first'})
    """

    __slots__ = ("_is_sorted", "_rest", "arrays", "order", "treedef")

    def __init__(self, result: object, *, whole: type | None = None, numbers: bool = True) -> None:
        ask("A function is run by jaxvars")
        is_leaf = None if whole is None else lambda x: isinstance(x, whole)
        leaves, self.treedef = jax.tree.flatten(result, is_leaf=is_leaf)
        self._rest: list[Callable[[], object] | None]
        is_array = _is_array if numbers else is_own_array
        self._rest = [None if is_array(leaf) else _Constant(leaf) for leaf in leaves]
        kept = (x for x, rest in zip(leaves, self._rest, strict=True) if rest is None)
        self.arrays = list(map(_own, kept))
        self.order = order_of(result)
        self._is_sorted = is_sorted(self.order)

    def __call__(self, arrays: Sequence[Any]) -> Any:
        """Return a result of the same form with these arrays, or what stands for them, in it."""
        values = iter(arrays)
        leaves = [next(values) if rest is None else rest() for rest in self._rest]
        result = jax.tree.unflatten(self.treedef, leaves)
        return result if self._is_sorted else in_order(result, self.order)

    def constants(self) -> Sequence[Callable[[], object] | None]:
        """Return for each part of the result None, or what gives the part that is not an array."""
        return self._rest

    def weaken(self, objects: Sequence[object]) -> None:
        """Refer only weakly to what is one of some objects: the arguments of the function."""
        for i, rest in enumerate(self._rest):
            if rest is not None and any(rest() is x for x in objects):
                self._rest[i] = _weak(rest())

    @property
    def is_plain(self) -> bool:
        """Whether the result consists of arrays only."""
        return all(rest is None for rest in self._rest)

    @property
    def fits_jit(self) -> bool:
        """Return whether jit can return the result: arrays only, and dicts as JAX sorts them."""
        return self.is_plain and self._is_sorted


def _own(array: Array) -> Array:
    """Return an array that the caller does not write to: of NumPy's a copy."""
    if not isinstance(array, np.ndarray | np.generic):
        return array
    check_uncut(array, "a value that becomes a tensor")
    return array.copy()


@final
class _Constant:
    """A part of a result that is the same each time."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def __call__(self) -> object:
        return self.held


def _weak(held: object) -> Callable[[], object]:
    try:
        return weakref.ref(held)
    except TypeError:
        return _Constant(held)


def _is_array(leaf: object) -> bool:
    if isinstance(leaf, np.generic):
        return leaf.dtype.kind not in "OSUT"
    return isinstance(leaf, bool | int | float | complex) or is_own_array(leaf)


def is_own_array(leaf: object) -> bool:
    """Return whether something is an array, and no number, which Python may decide by."""
    if isinstance(leaf, (jax.Array, *SIZES)):
        return True
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind not in "OSUT"


class Following(Protocol):
    """What follows each run of a program; it may take values that the program returns for it.

    Attributes:
        names: of the values that it takes.
    """

    names: list[str]

    @property
    def calls(self) -> Sequence[Any]:
        """What it does, each time; it is dropped if that is nothing."""
        ...

    def during(self) -> AbstractContextManager[object]:
        """Return the context in which the function is traced."""
        ...

    def take_values(self) -> list[Array]:
        """Return the traced values that it takes, once the function has been traced."""
        ...

    def run(self, traced: Iterable[Array]) -> None:
        """Do it, with what the program has returned."""
        ...


AFTER: list[Callable[[], Following]] = []
"""What makes that which follows a program: the last one."""


@final
@dataclass
class Staged:
    """A function as a program over the cells that it touches.

    Attributes:
        program: a closed jaxpr. Inputs: the cells read, then the arguments. Outputs: the
            array results, then what `after` takes, then the cells written, then the first values
            of the cells created that are not known before.
        reads: the cells read, in order.
        writes: the cells written, in order.
        created: the cells created, in order.
        rebuild: makes the function's result from the list of array results.
        after: what follows each run, if anything does.
    """

    program: Any
    reads: list[Cell]
    writes: list[Cell]
    created: list[Created]
    rebuild: PyTreeTemplate
    after: Following | None = None

    def function(self) -> Callable[..., list[Array]]:
        """Return the program as a function of flat inputs."""
        return jaxprs.jaxpr_function(self.program)

    def split(self, outputs: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
        """Return what of the program's outputs are results, and what the cells written."""
        n = len(outputs) - len(self.writes)
        return outputs[:n], outputs[n:]

    def finish(self, results: Sequence[Array]) -> Any:
        """Do what follows a run; return the function's result."""
        if self.after is not None:
            self.after.run(results[len(results) - len(self.after.names) :])
        return self.rebuild(results)

    @property
    def taken(self) -> list[str]:
        """What the last of the results are for, which are not the function's but of `after`."""
        return [] if self.after is None else self.after.names

    @functools.cached_property
    def shapes(self) -> dict[Cell, tuple[int, ...]]:
        """The shapes of the values that it reads, of cells whose values may have several."""
        pairs = zip(self.reads, self.program.in_avals, strict=False)
        return {cell: aval.shape for cell, aval in pairs if cell.is_open}

    @property
    def reshaped(self) -> list[Cell]:
        """The cells of variables that have another shape afterwards, of those that it reads."""
        pairs = zip(self.writes, self.split(self.program.out_avals)[1], strict=True)
        read = [(c, aval.shape) for c, aval in pairs if c in self.shapes]
        return [c for c, new in read if str(self.shapes[c]) != str(new)]  # sizes may be open

    @property
    def fits_jit(self) -> bool:
        """Whether jit can return the function's result, and nothing follows."""
        return self.rebuild.fits_jit and self.after is None

    def apply(self, run: Callable[..., Sequence[Array]], values: Sequence[Array]) -> Any:
        """Run as part of what goes on in the current frame; return the function's result.

        Args:
            run: the program, of a list of the cells' values and one of the arguments.
            values: the arguments.
        """
        frame = LOCAL.frame
        for cell in self.writes:
            frame.check_writable(cell)
        read = frame.read_all(self.reads)
        for cell, value in zip(self.reads, read, strict=True):
            if cell in self.shapes and str(value.shape) != str(self.shapes[cell]):
                raise reshaped_error(cell)
        results, new = self.split(run(read, values))
        frame.write_all(self.writes, new, [*read, *values])  # JAX passes on what it was given
        return self.finish(results)

    def to_run(self) -> Staged:
        """Return the same without what only matters when it is differentiated."""
        if self.shapes:
            return self  # it is known by them, so that these inputs stay
        program, kept = jaxprs.without(self.program, reread_p, len(self.reads))
        return replace(self, program=program, reads=list(itertools.compress(self.reads, kept)))


def stage(
    fn: Callable[..., Any],
    specs: Sequence[Any],
    refuse_creation: str | None,
    broken_off: list[BrokenOff] | None = None,
    *,
    is_whole: bool = False,
) -> Staged:
    """Trace `fn` once, in a separate capture frame.

    Args:
        fn: takes values like `specs`, positionally.
        specs: arrays, numbers or `jax.ShapeDtypeStruct`.
        refuse_creation: why `fn` may not create variables, or None.
        broken_off: what the caller needs if this raises is put into it.
        is_whole: something may follow a run.
    """
    ask("A function is run by jaxvars")
    found: dict[str, Any] = {}
    kept = [] if broken_off is None else broken_off
    here = context.current()

    def flat(*leaves: Array) -> list[list[Array]]:
        frame = CaptureFrame(refuse_creation, here)
        after = AFTER[-1]() if is_whole and AFTER else None
        kept.append(BrokenOff(frame))
        run = functools.partial(_run_captured, fn, leaves, frame, found, after)
        outputs = within(frame, run)
        if jax.config.jax_check_tracer_leaks:  # pyright: ignore[reportAttributeAccessIssue]
            kept.clear()
        return outputs

    capture.describe_like(flat, fn)
    signals = deferred_signals(ctrl_c=False, run=outside)
    try:
        with signals, context.restoring():
            program, indices = capture.variables_first(jax.make_jaxpr(flat)(*specs))
    finally:
        signals.restore()
    cells = found.pop("cells")
    return Staged(program=program, reads=[cells[i] for i in indices], **found)


def _run_captured(
    fn: Callable[..., Any], leaves: Sequence[Array], frame: CaptureFrame, found: dict[str, Any],
    after: Following | None,
) -> list[list[Array]]:  # fmt: skip
    with contextlib.nullcontext() if after is None else after.during():
        rebuild = PyTreeTemplate(around(AROUND, functools.partial(fn, *leaves)))
    arrays, rebuild.arrays = rebuild.arrays, []  # no tracer outlives the trace
    if after is not None:
        arrays += after.take_values()
        found["after"] = after if after.calls else None
    writes = list(frame.written.values())
    if any(cell.deliver for cell in writes):  # if a check fails, each keeps the value it had
        for cell in filter(lambda cell: cell.is_open, writes):
            frame._input(cell)
    created = [made for made, _ in frame.created]
    found.update(cells=frame.cells, writes=writes, created=created, rebuild=rebuild)
    firsts = [value for made, value in frame.created if made.first is None]
    return [arrays, [frame.values[cell.key] for cell in writes], firsts]


@final
class BrokenOff:
    """A trace that something may interrupt, before or after its body has run."""

    def __init__(self, frame: CaptureFrame) -> None:
        self._frame = frame
        self._resumed = capture.Resumed(frame.trace)

    def created(self) -> Staged:
        """Return what makes the first values of the variables that have none."""
        frame = self._frame
        kept = [(made, x) for made, x in frame.created if made.is_wanting()]
        drawn = [cell for cell in frame.written.values() if cell in STREAMS]
        outputs = [frame.values[cell.key] for cell in drawn]
        outputs += [x for made, x in kept if made.first is None]
        program, indices = self._resumed.capture(outputs)
        reads, created = [frame.cells[i] for i in indices], [made for made, _ in kept]
        return Staged(
            program=program, reads=reads, writes=drawn, created=created, rebuild=PyTreeTemplate(())
        )

"""What both kinds of tapes share: a recorder on the current trace, and a Record that listens."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, NamedTuple, Self, TypeAlias, final

import jax
import numpy as np

from jaxvars.autodiff import rules
from jaxvars.autodiff.recording import Record
from jaxvars.core.cells import Cell
from jaxvars.core.frame import Frame
from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable
from jaxvars.errors import GradientWarning, TapeError, called, user_line, warn_user
from jaxvars.objects.traversal import resolve_proxy
from jaxvars.tensors.array_like import ArrayProxy, unwrap
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tracing import context, recorder
from jaxvars.tracing.around import RECORDING, Around
from jaxvars.tracing.recorder import recording
from jaxvars.typing import Array, Value
from jaxvars.views import Viewed


class Assign(NamedTuple):
    """What was assigned to a variable while a tape recorded.

    Attributes:
        value: None if that is not known.
        note: what notes keep of it.
    """

    value: Array | None
    note: Any


_Opened: TypeAlias = tuple[recording, Frame, Around, Frame]


# ---------------------------------------------------------------- recording
class TapeBase(Viewed, ABC):
    """A Record and the frames and recorders through which it listens: common to both modes."""

    def __init__(
        self,
        *,
        watch_accessed_variables: bool,
        reverse: bool,
        everything: bool = False,
        through_assigns: bool = False,
    ) -> None:
        self._watch_accessed = watch_accessed_variables
        self.through_assigns = through_assigns
        self._reverse = reverse
        self._everything = everything
        self._open: list[_Opened] = []
        self._place: Any = None
        self._clear()

    def _clear(self) -> None:
        self._record = Record(
            reverse=self._reverse, everything=self._everything, through_assigns=self.through_assigns
        )
        self._assigns: dict[int, Assign] = {}
        self._reads: dict[int, list[Array]] = {}
        self._variables: dict[int, Variable] = {}
        self._chosen: set[int] = set()
        self._notes = rules.NOTES[-1]() if rules.NOTES else None

    def __enter__(self) -> Self:
        self._place = context.strip(context.current())
        placed, frame, others = recording(RecorderListener(self)), LOCAL.frame, Around(RECORDING)
        opened = placed, frame, others, LOCAL.bottom  # which each thread has one of
        self._open.append(opened)
        try:
            others.enter()
            placed.__enter__()
            frame.observe(self)
        except BaseException:  # pragma: no cover - sweeps of interrupts take coverage's place
            self._close(opened)
            raise
        return self

    def _close(self, opened: _Opened, *error: Any) -> None:
        """Undo what `__enter__` has done, and what of that has not been undone."""
        placed, frame, others, _ = opened
        frame.unobserve(self)
        placed.__exit__(*error)
        others.leave()
        if opened in self._open:  # pragma: no branch - it is closed again after Ctrl-C
            self._open.remove(opened)

    def __exit__(self, *error: Any) -> None:
        if context.restoring is None:  # pyright: ignore[reportUnnecessaryComparison] - at
            return  # interpreter exit, where a module that is gone has None for all of its names
        if not self._open or self._open[-1][3] is not LOCAL.bottom:
            raise _closing_error(bool(self._open))
        opened = self._open[-1]
        try:
            self._close(opened, *error)
        # Ctrl-C: again, or the tape would stay open
        except BaseException:  # pragma: no cover - sweeps of interrupts take coverage's place
            self._close(opened, *error)
            raise
        context.restoring().__exit__(*error or (None,))
        if not opened[0].in_order and error[:1] == (None,):
            raise TapeError(
                f"A tape is closed at {user_line()} out of order: tapes that are open in a thread "
                "at the same time must be closed in the reverse order of opening. That is not so "
                "for tapes that stay open over an `await` or `yield`, while other code opens one. "
                "Compute under the tape without `await` or `yield`, and wait before or after it:\n"
                "    x = await fetch()\n"
                "    with jv.GradientTape() as tape:\n"
                "        loss = model(x)"
            )

    # A frame calls these.
    def _saw(self, cell: Cell, value: Array) -> None:
        """Take note of a read."""
        known = self._reads.get(cell.key)
        if known and known[-1] is value and cell.key not in self._assigns:
            return
        variable = cell.owner()
        if self._record.paused or not isinstance(variable, Variable):
            return
        assign = self._assigns.get(cell.key) if is_inexact(value) else None
        if self._notes is not None:
            self._notes.saw(self, cell, value)
        if assign is not None and self.through_assigns:
            self._record.link(assign.value, value)
            return
        by_itself = self._everything or (self._watch_accessed and variable.trainable)
        if not (by_itself or cell.key in self._chosen):
            return
        self._variables[cell.key] = variable
        reads = self._reads.setdefault(cell.key, [])
        if not any(value is known for known in reads):
            reads.append(value)
            if is_inexact(value):
                self._record.watch(value)

    def _wrote(self, cells: Sequence[Cell], values: Sequence[Any], is_partial: bool) -> None:
        """Take note of assigns: of values, or of functions that made them of those before."""
        floats = [x for x in zip(cells, values, strict=True) if is_inexact(x[0].aval)]
        notes = [None] * len(floats)
        if self._notes is not None:
            notes = self._notes.wrote(self, floats, is_partial)
        for (cell, value), note in zip(floats, notes, strict=True):
            known = None if self._record.paused or callable(value) else value
            self._assigns[cell.key] = Assign(known, note)

    def _watch(self, tensor: Any) -> None:
        for leaf in flatten(tensor)[0]:
            if isinstance(leaf, Variable):
                self._chosen.add(leaf._cell.key)
                self._variables[leaf._cell.key] = leaf
            else:
                self._watch_value(leaf)

    def _watch_value(self, value: Any) -> None:
        value = unwrap(value)
        if not isinstance(value, jax.Array):
            raise TapeError(
                f"Cannot watch a {type(value).__name__}: what is computed from it cannot be "
                "followed. Make it an array first and use that: x = jnp.asarray(x); tape.watch(x)."
            )
        if not is_inexact(value):
            warn(
                f"A value of dtype {value.dtype} is watched, but only floating point values have "
                "gradients: convert it first, x = x.astype(jnp.float32)."
            )
        else:
            self._record.watch(value)

    def _values_of(self, source: Any) -> list[Array]:
        """Return the known values that a source stands for."""
        if isinstance(source, Variable):
            reads = [x for x in self._reads.get(source._cell.key, []) if self._record.knows(x)]
            if len(shapes := {x.shape for x in reads}) > 1:
                raise TapeError(
                    f"Variable {called(source._cell)!r} was read with several shapes under the "
                    f"tape ({', '.join(map(str, shapes))}), so its gradient at {user_line()} has "
                    "no shape. Open a tape for each shape, or take the gradient by the values that "
                    "were read."
                )
            return reads
        value = source.value if isinstance(source, ArrayProxy) else source
        if not hasattr(value, "dtype"):
            raise _source_error(value)
        if self._everything and is_inexact(value):
            self._record.watch(value)
        return [value] if self._record.knows(value) else []

    def _target_value(self, target: Any) -> Value | None:
        value = self._find_target(target)
        if isinstance(value, jax.Array) and is_inexact(value) and _is_cut(value):
            raise TapeError(
                f"The target has dtype {value.dtype}, and 64-bit values are off at {user_line()}: "
                "compute its gradient where they are on, as where it was computed:\n"
                "    with jax.enable_x64(True):\n"
                "        grad = tape.gradient(loss, w)"
            )
        return value

    def _find_target(self, target: Any) -> Value | None:
        target = resolve_proxy(target)
        if isinstance(target, Variable):
            if self.through_assigns and target._cell.key in self._assigns:
                return self._assigns[target._cell.key].value
            if target._cell.key not in self._reads:  # itself, as it is: its gradient by itself is 1
                value = target.value  # which is a read, where it is seen
                if target._cell.key not in self._reads:
                    self._saw(target._cell, context.fresh(value))
            reads = self._reads.get(target._cell.key)
            return reads[-1] if reads else None
        value = unwrap(target)
        if not isinstance(value, jax.Array | np.ndarray | np.generic):
            raise TapeError(
                f"The target is a {type(value).__name__} ({value!r}), not the array that was "
                "computed: take the gradient of the array, and convert it afterwards."
            )
        return value

    def _refuse_inside(self, what: str) -> None:
        """Refuse what has no effect where a function is staged that the tape sees whole."""
        if self._open and context.strip(context.current()) is not self._place:
            raise TapeError(
                f"{what} is called at {user_line()} in a loop, branch or compiled function that "
                "the tape is around: the tape sees that as one operation. Open a tape inside, or "
                "make a value a constant with jv.stop_gradient(x)."
            )


def _source_error(value: object) -> TapeError:
    if isinstance(value, int | float | complex):
        return TapeError(
            f"A source is a {type(value).__name__} ({value!r}): only arrays and variables can "
            "be followed. Make it an array first and use that: x = jnp.asarray(x); "
            "tape.watch(x)."
        )
    return TapeError(
        f"A source is a {type(value).__name__}, neither a Variable nor an array. Of a model, take "
        "its variables: tape.gradient(loss, model.trainable_variables)."
    )


def _closing_error(is_open: bool) -> TapeError:
    where = ", and stays open in the one that has" if is_open else ""
    return TapeError(
        f"A tape is closed at {user_line()} in a thread that has not opened it{where}. A tape sees "
        "what its own thread computes: open and close it there, each time once, by a `with` "
        "statement."
    )


@final
class RecorderListener:
    """Passes what a Recorder tells to the record that is current: `reset` starts a new one."""

    __slots__ = ("recording",)

    def __init__(self, recording: TapeBase) -> None:
        self.recording = recording

    def wants(self, inputs: Sequence[Array]) -> bool:
        """Return whether an operation is of interest."""
        return self.recording._record.wants(inputs)

    def run(self, equation: recorder.Equation, staged: bool) -> list[Array]:
        """Run an operation of interest."""
        return self.recording._record.run(equation, staged)


def _is_cut(value: Array) -> bool:
    """Return whether JAX would make a new array of this dtype a narrower one."""
    return jax.dtypes.canonicalize_dtype(value.dtype) != value.dtype


def _is_array_like(x: object) -> bool:
    return isinstance(resolve_proxy(x), ArrayProxy)


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return arrays and variables, for what stands for one, too, and the structure."""
    leaves, treedef = jax.tree.flatten(tree, is_leaf=_is_array_like)
    return list(map(resolve_proxy, leaves)), treedef


def warn(message: str) -> None:
    warn_user(message, GradientWarning)

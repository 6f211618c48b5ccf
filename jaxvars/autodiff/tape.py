"""`GradientTape` and its relatives: differentiate what was recorded.

    with jv.GradientTape() as tape:
        loss = jnp.mean((x @ w - y) ** 2)
    grad = tape.gradient(loss, w)

A tape opens a `Recorder` on the current trace and a `Record` listens. Asked for a gradient,
it replays the operations between sources and target through `jax.vjp`: all derivatives are
JAX's own. Values inside the `with` are concrete, ordinary Python control flow works.

Rules this file keeps:
- a read of a variable is a source; an assign is not differentiated (as in TensorFlow), unless the
  tape is told to: what is read after it starts anew. The gradient is the sum over the reads;
- no connection is None (or zeros on request), never silently zeros;
- run eagerly, a replay is compiled from the second time its structure is seen.
"""

from __future__ import annotations

import enum
from abc import ABC
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.autodiff.recording import Program, Record, is_inexact
from jaxvars.autodiff.sparse_rows import Rows, rows_of, summed
from jaxvars.core.frames import LOCAL, Frame, is_interrupting_trace, moves
from jaxvars.core.store import Cell
from jaxvars.core.traversal import behind
from jaxvars.core.variable import Variable
from jaxvars.errors import GradientWarning, TapeError, user_line, warn_user
from jaxvars.tensors.array_like import Face, plain
from jaxvars.tensors.tensor import refuse_masked
from jaxvars.tracing import context, recorder
from jaxvars.tracing.around import RECORDING, Around
from jaxvars.tracing.assigned_read import for_tape
from jaxvars.tracing.checkpointed_while import TooManyLoopsError, in_reverse
from jaxvars.tracing.fork import refuse_if_forked
from jaxvars.tracing.key_order import ordered_like
from jaxvars.tracing.recorder import recording

Value: TypeAlias = Any


class UnconnectedGradients(enum.Enum):
    """What the gradient of an unconnected source is."""

    NONE = "none"
    ZERO = "zero"


class _Assign(NamedTuple):
    """What was assigned to a variable while a tape recorded: None if that is not known."""

    value: Value
    name: str
    line: str


_Opened: TypeAlias = tuple[recording, Frame, Around, Frame]


# ---------------------------------------------------------------- recording
class _Recording(ABC):  # noqa: B024 - not of use by itself, but it has all its methods
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
            reverse=self._reverse,
            everything=self._everything,
            through_assigns=self.through_assigns,
        )
        self._assigns: dict[int, _Assign] = {}
        self._after: dict[int, tuple[Value, _Assign]] = {}
        self._reads: dict[int, list[Value]] = {}
        self._variables: dict[int, Variable] = {}
        self._chosen: set[int] = set()

    def __enter__(self) -> Self:
        if is_interrupting_trace():  # it reads variables outside, where no tape is
            raise TapeError(
                f"A tape is opened at {user_line()} by a signal handler or finalizer that came "
                "while a function was traced, and operations there would be part of it. Call a "
                "@jv.compile'd function that has the tape in it, or set a flag and compute after "
                "the call."
            )
        self._place = context.strip(context.current())
        placed, frame, others = recording(_Relay(self)), LOCAL.frame, Around(RECORDING)
        opened = placed, frame, others, LOCAL.eager  # which each thread has one of
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
        if not self._open or self._open[-1][3] is not LOCAL.eager:
            raise _closed_elsewhere(bool(self._open))
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
    def saw(self, cell: Cell, value: Value) -> None:
        """Take note of a read."""
        variable = cell.owner()
        if self._record.paused or not isinstance(variable, Variable):
            return
        if cell.key in self._assigns and is_inexact(value):
            assign = self._assigns[cell.key]
            self._after[id(value)] = value, assign
            if self.through_assigns:
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

    def wrote(self, cells: Sequence[Cell], values: Sequence[Value]) -> None:
        """Take note of assigns."""
        line = user_line()
        for cell, value in zip(cells, values, strict=True):
            if moves(cell):
                known = None if self._record.paused else value
                self._assigns[cell.key] = _Assign(known, cell.name, line)

    def _watch(self, tensor: Any) -> None:
        for leaf in _flat(tensor)[0]:
            if isinstance(leaf, Variable):
                self._chosen.add(leaf.cell.key)
                self._variables[leaf.cell.key] = leaf
            else:
                self._watch_value(leaf)

    def _watch_value(self, value: Any) -> None:
        value = plain(value)
        if not isinstance(value, jax.Array):
            raise TapeError(
                f"Cannot watch a {type(value).__name__}: what is computed from it cannot be "
                "followed. Make it an array first and use that: x = jnp.asarray(x); tape.watch(x)."
            )
        if not is_inexact(value):
            _warn(
                f"A value of dtype {value.dtype} is watched, but only floating point values have "
                "gradients: convert it first, x = x.astype(jnp.float32)."
            )
        else:
            self._record.watch(value)

    def _values_of(self, source: Any) -> list[Value]:
        """Return the known values that a source stands for."""
        if isinstance(source, Variable):
            return [x for x in self._reads.get(source.cell.key, []) if self._record.knows(x)]
        value = source.value if isinstance(source, Face) else source
        if self._everything and is_inexact(value):
            self._record.watch(value)
        return [value] if self._record.knows(value) else []

    def _target_value(self, target: Any) -> Value:
        value = self._value_of_target(target)
        if isinstance(value, jax.Array) and is_inexact(value) and _is_cut(value):
            raise TapeError(
                f"The target has dtype {value.dtype}, and 64-bit values are off at {user_line()}: "
                "ask for its gradient where they are on, as where it was computed:\n"
                "    with jax.enable_x64(True):\n"
                "        grad = tape.gradient(loss, w)"
            )
        return value

    def _value_of_target(self, target: Any) -> Value:
        target = behind(target)
        if isinstance(target, Variable):
            if self.through_assigns and target.cell.key in self._assigns:
                return self._assigns[target.cell.key].value
            if target.cell.key not in self._reads:  # itself, as it is: its gradient by itself is 1
                value = target.value  # which is a read, where it is seen
                if target.cell.key not in self._reads:
                    self.saw(target.cell, context.fresh(value))
            reads = self._reads.get(target.cell.key)
            return reads[-1] if reads else None
        value = plain(target)
        if not isinstance(value, jax.Array | np.ndarray | np.generic):
            raise TapeError(
                f"The target is a {type(value).__name__} ({value!r}), not the array that was "
                "computed: ask for the gradient of the array, and convert it afterwards."
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

    @contextmanager
    def _pause(self) -> Generator[None]:
        was, self._record.paused = self._record.paused, True
        try:
            yield
        finally:
            self._record.paused = was


def _closed_elsewhere(is_open: bool) -> TapeError:
    where = ", and stays open in the one that has" if is_open else ""
    return TapeError(
        f"A tape is closed at {user_line()} in a thread that has not opened it{where}. A tape sees "
        "what its own thread computes: open and close it there, each time once, by a `with` "
        "statement."
    )


@final
class _Relay:
    """Passes what a Recorder tells to the record that is current: `reset` starts a new one."""

    __slots__ = ("recording",)

    def __init__(self, recording: _Recording) -> None:
        self.recording = recording

    def wants(self, inputs: Sequence[Value]) -> bool:
        """Tell whether an operation is of interest."""
        return self.recording._record.wants(inputs)

    def run(self, equation: recorder.Equation, staged: bool) -> list[Value]:
        """Run an operation of interest."""
        return self.recording._record.run(equation, staged)


def _is_cut(value: Value) -> bool:
    """Return whether JAX would make a new array of this dtype a narrower one."""
    return jax.dtypes.canonicalize_dtype(value.dtype) != value.dtype


def _is_face(x: object) -> bool:
    return isinstance(behind(x), Face)


def _flat(tree: Any) -> tuple[list[Any], Any]:
    """Return arrays and variables, for what stands for one, too, and the structure."""
    leaves, treedef = jax.tree.flatten(tree, is_leaf=_is_face)
    return list(map(behind, leaves)), treedef


def _warn(message: str) -> None:
    warn_user(message, GradientWarning)


# ---------------------------------------------------------------- reverse mode
_SEEN: OrderedDict[Any, Callable[..., Any] | None] = OrderedDict()
_SEEN_LIMIT = 256


@final
class GradientTape(_Recording):
    """Record operations, and differentiate them in reverse.

    Trainable variables are watched as soon as they are read; other values with `watch`.
    Reads no state of its own and changes no variable.

    Args:
        persistent: allow more than one gradient; the recorded values are then kept until the
            tape is gone.
        watch_accessed_variables: watch trainable variables without being asked.
        everything: watch all floats that anything is computed from, so that each of them may be a
            source without having been watched.
        through_assigns: follow what is assigned to a variable to where it is read again, as
            `jax.grad` of the pure function does: simulations, unrolled optimizers, losses that a
            model keeps. A variable is then a source as it was before the first assign.

    Example:
        >>> w = Variable(3.0)
        >>> with GradientTape() as tape:
        ...     y = w * w
        >>> tape.gradient(y, w)
        Array(6., dtype=float32)
        >>> position, speed = Variable(0.0), Variable(2.0)
        >>> with GradientTape(through_assigns=True) as tape:
        ...     for _ in range(3):
        ...         _ = position.assign_add(speed * 0.5)
        >>> tape.gradient(position, speed)
        Array(1.5, dtype=float32)

    Differs from TensorFlow: operations are JAX's primitives, so any JAX code is recorded;
    gradients of complex values follow JAX's convention. Where the rule of a `jax.custom_vjp` is
    not its derivative, as in a straight-through estimator, second derivatives are those of the
    rule's code, as in JAX; in a compiled function so are those, by a tape around it, of whatever a
    tape in it has watched.

    Source: Griewank and Walther, Evaluating Derivatives, 2008, chapter 3 (reverse mode).
    """

    def __init__(
        self,
        persistent: bool = False,
        watch_accessed_variables: bool = True,
        *,
        everything: bool = False,
        through_assigns: bool = False,
    ) -> None:
        super().__init__(
            watch_accessed_variables=watch_accessed_variables,
            reverse=True,
            everything=everything,
            through_assigns=through_assigns,
        )
        self._persistent = persistent
        self._used = False

    def watch(self, tensor: Any) -> None:
        """Follow what is computed from an array, a variable, or each of a pytree of them.

        An array is watched, and not those equal to it: an argument of a compiled function, or of a
        loop's or branch's function when compiled, is another array than the one that was passed.

        Args:
            tensor: to be watched before it is computed with.

        Raises:
            TapeError: for a Python number or NumPy array, which cannot be followed; and in the
                body of a staged loop or branch that the tape is around.

        >>> x = jnp.asarray(2.0)
        >>> with GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x**3
        >>> float(tape.gradient(y, x))
        12.0
        """
        self._refuse_inside("tape.watch")
        self._watch(tensor)

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the variables watched so far, in the order in which they were first seen."""
        return tuple(self._variables.values())

    def stop_recording(self) -> Any:
        """Return a context in which nothing is recorded.

        >>> w = Variable(3.0)
        >>> with GradientTape() as tape:
        ...     y = w * w
        ...     with tape.stop_recording():
        ...         norm = w * 100.0
        >>> tape.gradient(norm, w, unconnected_gradients="zero")
        Array(0., dtype=float32)

        Raises:
            TapeError: in the body of a staged loop or branch that the tape is around.
        """
        self._refuse_inside("tape.stop_recording")
        return self._pause()

    def reset(self) -> None:
        """Forget everything recorded and watched; an open tape goes on recording."""
        self._clear()
        self._used = False

    @context.restoring()
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """Return the gradient of the sum of the targets with respect to each source.

        Args:
            target: an array, or a pytree of arrays.
            sources: a variable, a watched or computed array, or a pytree of them.
            output_gradients: what each target's gradient is multiplied with, of its shape;
                ones when None.
            unconnected_gradients: "none" or "zero": what a source gets that no target
                depends on.

        Returns:
            A pytree like `sources`.

        Raises:
            TapeError: at the second call, unless the tape is persistent; or for a target
                that is no array.

        Warns:
            GradientWarning: when all gradients are None, with the reason for the first source.
        """
        leaves, treedef = _flat(sources)
        how = UnconnectedGradients(unconnected_gradients)
        found = self._gradients(target, leaves, output_gradients, how)
        if leaves and all(x is None for x in found):
            self._explain_all(target, leaves)
        return ordered_like(sources, jax.tree.unflatten(treedef, found))

    @context.restoring()
    def row_gradients(
        self,
        target: Any,
        sources: Sequence[Any],
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        stops: Sequence[Any] = (),
        *,
        by_rows: bool = True,
    ) -> list[Any]:
        """Return gradients as `gradient` does; that of a table that was only looked up in as Rows.

        It does not warn when all are None.

        Args:
            target: an array, or a pytree of arrays.
            sources: variables, watched or computed arrays.
            output_gradients: what each target's gradient is multiplied with.
            unconnected_gradients: "none" or "zero".
            stops: variables and arrays that count as constants, unless they are sources.
            by_rows: whether to return Rows.

        Raises:
            TapeError: as `gradient`.
        """
        how = UnconnectedGradients(unconnected_gradients)
        return self._gradients(target, sources, output_gradients, how, stops, by_rows=by_rows)

    def _gradients(
        self,
        target: Any,
        sources: Sequence[Any],
        output_gradients: Any,
        unconnected: UnconnectedGradients,
        stops: Sequence[Any] = (),
        *,
        by_rows: bool = False,
    ) -> list[Any]:
        self._use()
        targets = [self._target_value(t) for t in _flat(target)[0]]
        with self._aside():
            values = _Sources(self, sources)
            pairs = zip(targets, _cotangents(targets, output_gradients), strict=True)
            moving = [(t, c) for t, c in pairs if is_inexact(t)]
            constants = [value for stop in stops for value in self._values_of(stop)]
            question = _Question(self, [t for t, _ in moving], [c for _, c in moving], constants)
            grads = values.gather(question.answer(values.unique, by_rows=by_rows))
            if unconnected is UnconnectedGradients.ZERO:
                grads = [_zeros(x) if g is None else g for x, g in zip(sources, grads, strict=True)]
        self._explain_integers(sources, targets)
        return grads

    @context.restoring()
    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        **_: Any,
    ) -> Any:
        """Return the derivative of each element of a target by each element of the sources.

        Args:
            target: an array.
            sources: a variable, a watched or computed array, or a pytree of them.
            unconnected_gradients: "none" or "zero".

        Returns:
            A pytree like `sources` of arrays of shape `target.shape + source.shape`.

        >>> w = Variable([1.0, 2.0])
        >>> with GradientTape() as tape:
        ...     y = w * w
        >>> tape.jacobian(y, w).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
        """
        self._use()
        leaves, treedef = _flat(sources)
        value = self._target_value(target)
        with self._aside():
            values = _Sources(self, leaves)
            program = self._program(values.unique, [value])
            rows = _basis(value)
            found = _rows(program, values.unique, rows)
            shaped = [g if g is None else g.reshape(*value.shape, *g.shape[1:]) for g in found]
            grads = values.gather(shaped)
            if UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO:
                grads = [
                    jnp.zeros((*value.shape, *x.shape), x.dtype) if g is None else g
                    for x, g in zip(leaves, grads, strict=True)
                ]
        return ordered_like(sources, jax.tree.unflatten(treedef, grads))

    @context.restoring()
    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        **_: Any,
    ) -> Any:
        """Return the Jacobian of each example, where `target[i]` depends on `source[i]` only.

        Args:
            target: an array of shape [batch, ...].
            source: a watched or computed array, or a variable, of shape [batch, ...].
            unconnected_gradients: "none" or "zero".

        Returns:
            An array of shape `[batch, *target.shape[1:], *source.shape[1:]]`.

        Raises:
            TapeError: when the batch sizes differ.

        >>> x = jnp.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> with GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.batch_jacobian(y, x).tolist()
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
        self._use()
        value = self._target_value(target)
        if not value.shape or not source.shape or value.shape[0] != source.shape[0]:
            raise TapeError(
                f"batch_jacobian needs a target and a source with the same first dimension, not "
                f"{value.shape} and {source.shape}. For a single Jacobian use tape.jacobian."
            )
        with self._aside():
            values = _Sources(self, [source])
            program = self._program(values.unique, [value])
            inner = value.shape[1:]
            rows = _basis(jnp.zeros(inner, value.dtype))
            rows = jnp.broadcast_to(rows[:, None], (rows.shape[0], *value.shape))
            (found,) = values.gather(_rows(program, values.unique, rows))
            if found is not None:
                return jnp.moveaxis(found, 0, 1).reshape(value.shape[0], *inner, *source.shape[1:])
            zero = UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO
            shape = (*value.shape, *source.shape[1:])
            return jnp.zeros(shape, source.dtype) if zero else None

    def explain(self, target: Any, source: Any) -> str:
        """Say whether a target depends on a source on this tape, and if not, why not.

        Does not count as a use of the tape.

        Args:
            target: a computed array, or a variable.
            source: a variable, or an array.

        >>> w = Variable(1.0, name="w", trainable=False)
        >>> with GradientTape() as tape:
        ...     y = w * 2.0
        >>> print(tape.explain(y, w))
        Variable 'w' is not trainable, so it is not watched by itself: call tape.watch(w) first.
        """
        return (
            _why_source(self, source) or self._why_target(target) or self._why_path(target, source)
        )

    # ------------------------------------------------------------ parts
    def _use(self) -> None:
        refuse_if_forked("A gradient is asked for")
        if self._used and not self._persistent:
            raise TapeError(
                "A non-persistent GradientTape can only be used once, to compute one set of "
                "gradients (or Jacobians). Use jv.GradientTape(persistent=True), or one call "
                "with all sources: tape.gradient(loss, [w, b])."
            )
        self._used = True

    @contextmanager
    def _aside(self) -> Generator[None]:
        """Compute without recording it here, unless a persistent tape is still open."""
        if not self._open or self._persistent:
            yield
        else:
            with self._pause():
                yield

    def _program(
        self, sources: Sequence[Value], targets: Sequence[Value], stops: Sequence[Value] = ()
    ) -> Program:
        again = bool(self._open) and not self._record.paused  # the replay itself is recorded
        return self._record.program(sources, targets, replay_loops=again, stops=stops)

    def _explain_all(self, target: Any, sources: Sequence[Any]) -> None:
        """Say why no source has a gradient, unless that has been said: of integers."""
        targets = _flat(target)[0]
        if targets and all(map(is_inexact, (self._target_value(targets[0]), *sources))):
            _warn(
                f"All gradients are None. {self.explain(targets[0], sources[0])} "
                "`tape.explain(target, source)` says this of each source."
            )

    def _explain_integers(self, sources: Sequence[Any], targets: Sequence[Value]) -> None:
        for what, values in (("source", sources), ("target", targets)):
            for value in values:
                if value is not None and not is_inexact(value):
                    name = getattr(value, "name", None)
                    which = f"Variable {name!r}, a {what}," if name else f"A {what} of the gradient"
                    _warn(f"{which} has dtype {value.dtype}: only floating point values have "
                          "gradients, so this one is None. Convert it before the computation, "
                          "for example to jnp.float32.")  # fmt: skip

    def _why_target(self, target: Any) -> str | None:
        value = self._target_value(target)
        if value is None:
            why = "The target is a variable that was not read while the tape recorded."
            return why + self._why_assigned()
        if not is_inexact(value):
            return f"The target has dtype {value.dtype}; only floating point values have gradients."
        if not self._record.knows(value):
            return (
                "The target was not computed from anything watched while the tape recorded. Was "
                "it computed outside of the `with`, or with NumPy, or rounded to integers?"
                f"{self._why_assigned()}"
            )
        return None

    def _why_assigned(self) -> str:
        """Return the assigns of values that were recorded, as a possible reason."""
        found = [x for x in self._assigns.values() if self._record.knows(x.value)]
        names = " or ".join(f"{x.name!r}, assigned at {x.line}" for x in found)
        return f" Or from {names}? {_STOPS}" if names else ""

    def _why_path(self, target: Any, source: Any) -> str:
        values = self._values_of(source)
        program = self._record.program(values, [self._target_value(target)], replay_loops=True)
        if any(program.connected):
            return "The target depends on the source."
        if assign := self._assign_between(values, self._target_value(target)):
            return (
                f"The target was computed from what {assign.name!r} held after it was assigned at "
                f"{assign.line}. {_STOPS}"
            )
        return (
            "No recorded operation leads from the source to the target: the path ends at a "
            "stop_gradient or a conversion to integers or to NumPy, or there never was one."
        )

    def _assign_between(self, values: Sequence[Value], target: Value) -> _Assign | None:
        """Return an assign through which a path leads from some values to the target, if any."""
        known = set(map(id, values))
        while True:
            _, reached = self._record.reached(known)
            new = [
                (value, assign)
                for value, assign in self._after.values()
                if id(value) not in known and (assign.value is None or id(assign.value) in reached)
            ]
            for value, assign in new:
                if id(target) in self._record.reached({id(value)})[1]:
                    return assign
            if not new:
                return None
            known.update(id(value) for value, _ in new)


_STOPS = (
    "A tape does not go through an assign: what is read after it starts anew. "
    "jv.GradientTape(through_assigns=True) goes through the assigns that are made under it."
)


def _why_source(tape: GradientTape, source: Any) -> str | None:
    if not isinstance(source, Variable):
        if tape._values_of(source):
            return None
        return (
            "The source is an array that the tape does not know: call tape.watch(x) before the "
            "computation, and compute with that very object."
        )
    if not is_inexact(source):
        return f"Variable {source.name!r} has dtype {source.dtype}; only floats have gradients."
    if tape._values_of(source):
        return None
    if not source.trainable and source.cell.key not in tape._chosen:
        return (
            f"Variable {source.name!r} is not trainable, so it is not watched by itself: call "
            f"tape.watch({source.name}) first."
        )
    return f"Variable {source.name!r} was not read while the tape recorded."


@final
class _Question:
    """Which gradients are asked for: of what, multiplied with what, and what counts as constant."""

    def __init__(
        self,
        tape: GradientTape,
        targets: list[Value],
        cotangents: list[Value],
        stops: Sequence[Value],
    ) -> None:
        self._tape = tape
        self._targets = targets
        self._cotangents = cotangents
        self._stops = stops

    def answer(self, sources: Sequence[Value], *, by_rows: bool) -> list[Value | Rows | None]:
        """Return the gradient of each source; from those of its look-ups, if that is all."""
        program = self._tape._program(sources, self._targets, self._stops)
        uses = program.uses(sources, self._targets) if by_rows else None
        lookups = [uses.lookups(x) if uses else [] for x in sources]
        if not any(lookups):
            return _vjp(program, sources, self._cotangents)
        asked = [x for x, parts in zip(sources, lookups, strict=True) if not parts]
        asked += [result for parts in lookups for result, _ in parts]
        unique = list({id(x): x for x in asked}.values())
        found = self.answer(unique, by_rows=False)
        by_id = dict(zip(map(id, unique), found, strict=True))
        return [
            rows_of([(by_id[id(y)], i) for y, i in parts], x) if parts else by_id[id(x)]
            for x, parts in zip(sources, lookups, strict=True)
        ]


@final
class _Sources:
    """The known values that sources stand for, each once, and their gradients put together."""

    def __init__(self, tape: _Recording, sources: Sequence[Any]) -> None:
        self._values = [tape._values_of(source) for source in sources]
        by_id = {id(x): x for values in self._values for x in values}
        self.unique = list(by_id.values())
        self._index = {key: i for i, key in enumerate(by_id)}

    def gather(self, found: Sequence[Value | None]) -> list[Value | None]:
        """Return a gradient for each source: the sum over its values, None if there is none."""
        return [self._sum(found, values) for values in self._values]

    def _sum(self, found: Sequence[Value | None], values: Sequence[Value]) -> Value | None:
        grads = [g for x in values if (g := found[self._index[id(x)]]) is not None]
        return summed(grads) if grads else None


def _zeros(source: Any) -> Value:
    return jnp.zeros(source.shape, source.dtype if is_inexact(source) else jnp.float32)


def _cotangents(targets: Sequence[Value], given: Any) -> list[Value]:
    if given is None:
        return [jnp.ones(t.shape, t.dtype) if is_inexact(t) else None for t in targets]
    leaves = jax.tree.leaves(given, is_leaf=lambda x: x is None or isinstance(x, Face))
    if len(leaves) != len(targets):
        raise TapeError(f"There are {len(targets)} targets, but {len(leaves)} output_gradients.")
    return [_cotangent(t, g) for t, g in zip(targets, leaves, strict=True)]


def _cotangent(target: Value, given: Any) -> Value:
    if given is None or target is None:
        return None if target is None else jnp.ones(target.shape, target.dtype)
    given = given.value if isinstance(given, Face) else given
    if isinstance(given, np.ma.MaskedArray):
        raise TapeError("An output_gradient is a masked array, and a tensor has no mask.")
    given = jnp.asarray(given, target.dtype)
    if given.shape != target.shape:
        raise TapeError(
            f"An output_gradient has shape {given.shape}, its target {target.shape}: they must "
            "be equal."
        )
    return given


def _basis(value: Value) -> Value:
    size = int(np.prod(value.shape))
    return jnp.eye(size, dtype=value.dtype).reshape(size, *value.shape)


def _vjp(
    program: Program, sources: Sequence[Value], cotangents: Sequence[Value]
) -> list[Value | None]:
    """Return the gradient of each source, None where it is not connected."""
    if not any(program.connected):
        return [None] * len(sources)
    with _in_reverse(program):
        found = _backward(program)(list(sources), program.constants, list(cotangents))
    return [g if on else None for g, on in zip(found, program.connected, strict=True)]


@contextmanager
def _in_reverse(program: Program) -> Generator[None]:
    """Differentiate a program in reverse, and say what to do about a loop that forbids it."""
    try:
        with for_tape(through_assigns=program.through_assigns), in_reverse():
            yield
    except ValueError as error:
        if isinstance(error, TooManyLoopsError):
            raise TapeError(_TOO_DEEP.format(line=user_line())) from None
        if not str(error).startswith("Reverse-mode differentiation does not work"):
            raise
        loops = "\n".join(f"    {line}" for line in program.while_loops())
        raise TapeError(_NOT_REVERSIBLE.format(loops=loops)) from None


_TOO_DEEP = (
    "The gradient asked for at {line} goes through loops in loops, or is of high order through a "
    "loop, whose number of iterations is only known when the program runs. Each order makes about "
    "seven loops of one: XLA would compile this one for an hour. With a bound a loop has "
    "derivatives of any order:\n"
    "    jv.while_loop(cond, body, init, max_iterations=100)"
)
_NOT_REVERSIBLE = (
    "The target depends on the source through a loop whose number of iterations is only known when "
    "the program runs. Its gradient needs the values of each iteration, and a compiled program "
    "must know beforehand how many to keep. How long it goes on is decided by\n{loops}\n"
    "jaxvars keeps what is needed of its own loops, but not of `jax.lax.while_loop`, and of loops "
    "that print, call back or are mapped. Give it a bound:\n"
    "    jv.while_loop(cond, body, init, max_iterations=100)\n"
    "    jv.autograph.set_loop_options(max_iterations=100)    # first line of a converted loop\n"
    "or loop over an array or a range of known length: jv.scan, jv.fori_loop(0, 100, ...)."
)


def _backward(program: Program) -> Callable[..., list[Value]]:
    """Return the pullback as a function; compiled if its structure has been seen before.

    With a compiled function inside it is compiled at once: to run it operation by operation would
    compile that function's two halves, each for this one time.
    """
    function = program.function

    def backward(sources: Any, constants: Any, cotangents: Any) -> list[Value]:
        _, pull = jax.vjp(lambda *moving: function(moving, constants), *sources)
        return list(pull(cotangents))

    if context.current() is not context.EVAL or not program.is_pure:
        return backward
    key = program.key()
    known = _SEEN.get(key)
    if known is None:
        is_worth_it = key in _SEEN or program.holds_programs()
        known = _SEEN[key] = jax.jit(backward) if is_worth_it else None
    _SEEN.move_to_end(key)
    while len(_SEEN) > _SEEN_LIMIT:
        _SEEN.popitem(last=False)
    return known or backward


def _rows(program: Program, sources: Sequence[Value], rows: Value) -> list[Value | None]:
    """Return the pullbacks of many cotangents, None for a source that is not connected."""
    if not any(program.connected):
        return [None] * len(sources)
    function = program.function
    with _in_reverse(program):
        _, pull = jax.vjp(lambda *moving: function(moving, program.constants), *sources)
        found = jax.vmap(lambda row: pull([row]))(rows)
    return [g if on else None for g, on in zip(found, program.connected, strict=True)]


# ---------------------------------------------------------------- forward mode
@final
class ForwardAccumulator(_Recording):
    """Record operations, and differentiate them forward: Jacobian-vector products.

    Args:
        primals: a variable or array, or a pytree of them, to move.
        tangents: the directions, a pytree like `primals` of arrays of their shapes.

    Raises:
        TapeError: when primals and tangents do not match.

    Example:
        >>> w = Variable([1.0, 2.0])
        >>> with ForwardAccumulator(w, jnp.asarray([1.0, 0.0])) as acc:
        ...     y = w * w
        >>> acc.jvp(y).tolist()
        [2.0, 0.0]

    Source: Griewank and Walther, Evaluating Derivatives, 2008, chapter 3 (forward mode).
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        super().__init__(watch_accessed_variables=False, reverse=False)
        self._primals = _flat(primals)[0]
        refuse_masked(given := jax.tree.leaves(tangents), "a tangent")
        self._tangents = [x.copy() if isinstance(x, np.ndarray) else x for x in given]
        if len(self._primals) != len(self._tangents):
            raise TapeError(
                f"There are {len(self._primals)} primals, but {len(self._tangents)} tangents."
            )
        for primal, tangent in zip(self._primals, self._tangents, strict=True):
            if primal.shape != jnp.shape(tangent):
                raise TapeError(
                    f"A tangent has shape {jnp.shape(tangent)}, its primal {primal.shape}."
                )
            self._watch(primal)

    @context.restoring()
    def jvp(
        self,
        primals: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """Return how computed arrays move with the primals.

        Args:
            primals: what was computed from the accumulator's primals: an array, or a pytree.
            unconnected_gradients: "none" or "zero": what there is for an array that does not
                move.

        Returns:
            A pytree like `primals`.

        Raises:
            TapeError: for what is no array.
        """
        refuse_if_forked("A tangent is asked for")
        leaves, treedef = _flat(primals)
        targets = [self._target_value(leaf) for leaf in leaves]
        found = [self._tangent(target) for target in targets]
        if UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO:
            found = [_zeros(x) if g is None else g for x, g in zip(leaves, found, strict=True)]
        return ordered_like(primals, jax.tree.unflatten(treedef, found))

    def _tangent(self, target: Value) -> Value | None:
        pairs = {
            id(value): (value, jnp.asarray(tangent, value.dtype))
            for primal, tangent in zip(self._primals, self._tangents, strict=True)
            for value in self._values_of(primal)
        }
        values = [value for value, _ in pairs.values()]
        if not values or target is None or not is_inexact(target):
            return None
        with self._pause():
            program = self._record.program(values, [target], replay_loops=False)
            if not any(program.connected):
                return None
            run = lambda *moving: program.function(moving, program.constants)[0]  # noqa: E731 - one use
            with for_tape():
                push = _pulled_twice if program.knows_pullback_alone() else _pushed
                return push(run, values, [tangent for _, tangent in pairs.values()])


def _pushed(run: Callable[..., Value], values: list[Value], tangents: list[Value]) -> Value:
    return jax.jvp(run, values, tangents)[1]


def _pulled_twice(run: Callable[..., Value], values: list[Value], tangents: list[Value]) -> Value:
    """Return how the result of a function moves, from its pullback.

    That is linear in the cotangent, so its own pullback takes tangents forward.
    """
    result, pull = jax.vjp(run, *values)
    (moved,) = jax.vjp(pull, jnp.ones_like(result))[1](tuple(tangents))
    return moved

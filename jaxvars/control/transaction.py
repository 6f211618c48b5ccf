"""`transaction`: eager assigns that happen all in one instant, or not at all.

    with jv.transaction():
        source.assign_sub(amount)
        target.assign_add(amount)
        check(source)            # may raise: then neither has changed

What is assigned is kept in a frame on top of the thread's eager one; reads in the thread find it
there, all others what is in the store. At the end it is put into the store by one write.

Rules this file keeps:
- the block holds the two locks under which variables are written and functions traced, in this
  order, so that no other thread's change comes between a read and the commit;
- a value is in the store only once it is known that all of them could be computed;
- an inner transaction keeps what it began with and goes back to that if it fails;
- compiled functions are run as under a tape: compiled, without donating, on the frame's values;
- `with` calls C functions alone, which go on with a generator. CPython looks for signals as a
  Python function begins, so one could end before its first line; a generator goes on inside of
  its `try`. Between the assignment that opens a transaction and the `yield` there is no call.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from functools import partial
from typing import Any, final

from jaxvars.autodiff.tape_base import TapeBase
from jaxvars.core.cells import TRANSACTIONS, Cell
from jaxvars.core.failures import execution_error, failure_of, prove
from jaxvars.core.frame import TRACING, Change, FastPathBlocker, Frame, to_sharding
from jaxvars.core.frames import LOCAL, EagerFrame, is_traced
from jaxvars.core.store import alone, commit, exclusively
from jaxvars.errors import ForeignTransformError, user_line
from jaxvars.tracing import context
from jaxvars.tracing.fork import refuse_if_forked
from jaxvars.typing import Array

_EVAL = context.EVAL


@final
class transaction:  # noqa: N801 - used as a statement, `with transaction()`
    """Make all assigns in a `with` block in one instant at its end, or none if it raises.

    Code in the block reads what was assigned in it. Other threads, and functions compiled or not
    that run in them, read the values from before until the block has ended; if they assign, they
    wait for the end. So `v.assign(v + 1)` in a transaction loses no update of another thread, and
    the block must not wait for another thread, nor contain `await` or `yield`.

    An exception, Ctrl-C included, undoes all assigns in the block. A transaction in a transaction
    is part of the outer one: if it raises and that is caught, only its own assigns are undone.
    Optimizers, generators, metrics, `State.commit` and `Checkpoint.restore` assign variables, so
    they are undone, too. Python objects are not; a variable created in the block stays, with its
    first value.

    A compiled function that is called in the block reads and assigns the same values. It runs as
    one XLA program, as under a tape: without donation, so that memory is needed for both the old
    and the new values. A signal handler that runs in the block is part of it, as is a callback of
    a program in this thread; in another thread a callback reads the values from before, and is
    refused if it assigns.

    Raises:
        ForeignTransformError: in a compiled function or a JAX transform: a compiled call as a
            whole is all-or-nothing already. In a callback or signal handler that comes while a step
            runs, too.
        ExecutionError: (at the end) when a value could not be computed.

    Example:
        >>> import jaxvars as jv
        >>> a, b = jv.Variable(10.0), jv.Variable(0.0)
        >>> try:
        ...     with transaction():
        ...         a.assign_sub(20.0)
        ...         b.assign_add(20.0)
        ...         if a < 0:
        ...             raise ValueError("too much")
        ... except ValueError:
        ...     print(float(a), float(b))
        <Variable 'Variable' float32[] -10.>
        <Variable 'Variable' float32[] 20.>
        10.0 0.0
    """

    __slots__ = {"__enter__": "Begin.", "__exit__": "Commit, or undo after an exception."}
    __enter__: Any
    __exit__: Any

    def __init__(self) -> None:
        run: Any = _run()
        self.__enter__ = partial(next, run)
        # Sends False, and then the three arguments of `__exit__`. The least of their keys is that
        # of the first, so False is returned: an exception goes on.
        self.__exit__ = partial[Any](min, False, key=run.send)


def _run() -> Generator[int | None, Any, None]:
    if is_traced():
        raise ForeignTransformError(
            f"jv.transaction() is opened at {user_line()} while a function is traced. A call of a "
            "compiled function is all-or-nothing as a whole: open the transaction around it."
        )
    refuse_if_forked("A transaction is opened")
    before = LOCAL.eager
    is_inner = isinstance(before, TransactionFrame)
    with TRACING, alone():
        frame = before if is_inner else TransactionFrame(before)
        was, is_whole = frame.written.copy(), False
        seen = [
            (tape, tape._assigns.copy()) for tape in before.observers if isinstance(tape, TapeBase)
        ]
        try:
            if not is_inner:
                exclusively(lambda: prove(None))  # all values are in the store, and computed
                TRANSACTIONS.append(None)
                frame.blocker.begin()
            LOCAL.eager = LOCAL.frame = frame
            yield None
            failed = yield 0
            is_whole = failed is None
            if is_whole and not is_inner:
                frame.finish()
        finally:
            if not is_whole:
                frame.written = was
            LOCAL.eager = LOCAL.frame = before
            if not is_inner:
                TRANSACTIONS[:] = ()  # there is one at a time
                frame.blocker.end()
            if not is_whole:
                for tape, assigns in seen:
                    tape._assigns = assigns
    yield 1
    yield 1
    yield 1
    raise RuntimeError("A transaction is used once: write `with jv.transaction():` each time.")


@final
class TransactionFrame(EagerFrame):
    """Holds what is assigned until the end of the transaction.

    Args:
        below: the thread's eager frame; tapes that are open in one listen to both.
    """

    def __init__(self, below: EagerFrame) -> None:
        super().__init__()
        self.observers, self._seen, self._detour = below.observers, below._seen, below._detour
        self.written: dict[int, tuple[Cell, Array]] = {}
        self.blocker = FastPathBlocker()

    def finish(self) -> None:
        """Make what was assigned the values, if all of it could be computed."""
        new = {cell.key: _placed(cell, value) for cell, value in self.written.values()}
        if problem := next(filter(None, map(failure_of, new.values())), None):
            raise execution_error("The transaction", problem, ()) from problem
        if new:
            commit(new, set(new))  # code in the block may hold any of them

    def get(self, cell: Cell) -> Array:
        """Return what was assigned, or the value in the store."""
        found = self.written.get(cell.key)
        if found is None:
            return super().get(cell)
        if context.current() is not _EVAL:
            super().get(cell)  # warns where it would become a constant
        return found[1]

    def look(self, cell: Cell, *, wait: bool = True) -> Array:
        """Return what `read` does."""
        return self.read(cell)

    def peek(self, cell: Cell, *, keep: bool = False) -> Array | None:
        """Return what was assigned, or the value in the store."""
        found = self.written.get(cell.key)
        return super().peek(cell, keep=keep) if found is None else found[1]

    def take_all(self, cells: Collection[Cell]) -> list[Array]:  # pyright: ignore[reportIncompatibleMethodOverride] - the same
        """Return the values, which no other thread changes."""
        return list(map(self.get, cells))

    def is_shared(self, cell: Cell) -> bool:
        """Return True: what was assigned may be in the store, too, soon."""
        return True

    modify = Frame.modify

    def _replace(self, *changes: Change) -> None:
        refuse_if_forked("A variable is written in a transaction")
        with context.at(context.EVAL):
            new = {cell.key: to_sharding(cell, change(self.get(cell))) for cell, change in changes}
        self._commit([cell for cell, _ in changes], new, set())

    def _commit(self, cells: Sequence[Cell], new: dict[int, Array], kept: set[int]) -> None:
        self.written.update({cell.key: (cell, new[cell.key]) for cell in cells})


def _placed(cell: Cell, value: Array) -> Array:
    """Return the value where its variable is, which may have been placed again meanwhile."""
    is_there = cell.sharding is None or cell.sharding == value.sharding
    return value if is_there else to_sharding(cell, value)

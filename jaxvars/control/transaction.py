"""`transaction`: eager assigns that happen all in one instant, or not at all.

    with jv.transaction():
        source.assign_sub(amount)
        target.assign_add(amount)
        check(source)            # may raise: then neither has changed

What is assigned is kept in a frame over the thread's eager one (`control/overlay.py`); reads in the
thread find it there, all others what is in the store. At the end it is put into the store by one
write.

Rules this file keeps:
- the block holds the two locks under which variables are written and functions traced, in this
  order, so that no other thread's change comes between a read and the commit;
- a value is in the store only once it is known that all of them could be computed;
- an inner transaction is a frame over the outer one's, to which it commits;
- compiled functions are run as under a tape: compiled, without donating, on the frame's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, final

from jaxvars.autodiff.tape_base import TapeBase
from jaxvars.control.overlay import Block, Overlay, stack, statement
from jaxvars.core.cells import TRANSACTIONS, Cell
from jaxvars.core.failures import execution_error, failure_of, prove
from jaxvars.core.frame import TRACING, Change, to_sharding
from jaxvars.core.frames import is_traced
from jaxvars.core.store import alone, exclusively
from jaxvars.errors import ForeignTransformError, out_of_order_error, user_line
from jaxvars.tracing import context
from jaxvars.tracing.guards import ask
from jaxvars.typing import Array


def transaction() -> AbstractContextManager[None]:
    """Make all assigns in a `with` block in one instant at its end, or none if it raises.

    Code in the block reads what was assigned in it. Other threads, and functions compiled or not
    that run in them, read the values from before until the block has ended; if they assign, they
    wait for the end. So `v.assign(v + 1)` in a transaction loses no update of another thread, and
    the block must not wait for another thread, nor contain `await` or `yield`.

    An exception, Ctrl-C included, undoes all assigns in the block. A transaction in a transaction
    is part of the outer one: if it raises and that is caught, only its own assigns are undone.
    Optimizers, generators, metrics, `State.commit` and `Checkpoint.restore` assign variables, so
    they are undone, too; a checkpoint is restored only where no value waits for a variable. Python
    objects are not undone; a variable created in the block stays, with its first value.

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
        ContextError: (at the end) in another thread, or where another block is still open in it;
            nothing is assigned. And at once, for the code of another coroutine.

    Example:
        >>> import jaxvars as jv
        >>> a, b = jv.Variable(10.0), jv.Variable(0.0)
        >>> try:
        ...     with transaction():
        ...         a.assign_sub(20.0)
        ...         b.assign_add(20.0)
        ...         if a < 0:
        ...             raise ValueError
        ... except ValueError:
        ...     print(float(a), float(b))
        <Variable 'Variable' float32[] -10.>
        <Variable 'Variable' float32[] 20.>
        10.0 0.0
    """
    return statement("jv.transaction()", _run())


def _run() -> Block:
    if is_traced():
        raise ForeignTransformError(
            f"jv.transaction() is opened at {user_line()} while a function is traced. A call of a "
            "compiled function is all-or-nothing as a whole: open the transaction around it."
        )
    ask("A transaction is opened")
    frame, lock = None, alone()
    try:
        with TRACING, lock:
            frame = TransactionFrame()
            yield from _commit_or_undo(frame)
    except RuntimeError:
        if frame is None or frame.is_here():
            raise
        _release(lock)
        _release(TRACING)
        raise out_of_order_error(frame.what) from None


def _release(lock: Any) -> None:
    """Release once a lock that another thread has: the methods that `threading.Condition` calls."""
    with suppress(AttributeError, RuntimeError):  # one that is none, or that refuses
        count, owner = lock._release_save()
        if count > 1:
            lock._acquire_restore((count - 1, owner))


def _commit_or_undo(frame: TransactionFrame) -> Block:
    seen = [(tape, tape._assigns.copy()) for tape in frame.observers if isinstance(tape, TapeBase)]
    try:
        if not frame.is_inner:
            exclusively(lambda: prove(None))  # all values are in the store, and computed
            TRANSACTIONS.append(None)
        yield from frame.run()
    finally:
        if not frame.is_inner:
            TRANSACTIONS[:] = ()  # there is one at a time
        if not frame.is_whole:
            for tape, assigns in seen:
                tape._assigns = assigns


@final
class TransactionFrame(Overlay):
    """Holds what is assigned until the end of the transaction.

    Attributes:
        is_inner: whether it is part of another transaction.
        is_whole: whether it has been committed.
    """

    what = "jv.transaction()"

    def __init__(self) -> None:
        super().__init__()
        self.is_inner = any(isinstance(frame, TransactionFrame) for frame in stack(self.below))
        self.is_whole = False

    def finish(self) -> None:
        """Make what was assigned the values, if all of it could be computed."""
        new = {cell.key: _placed(cell, value) for cell, value in self.values.values()}
        problem = None if self.is_inner else next(filter(None, map(failure_of, new.values())), None)
        if problem:
            raise execution_error(["The transaction"], problem, ()) from problem
        if new:  # code in the block may hold any of them
            self.below._commit([cell for cell, _ in self.values.values()], new, set(new))
        self.is_whole = True

    def _replace(self, *changes: Change) -> None:
        ask("A variable is written in a transaction")
        with context.at(context.EVAL):
            new = {cell.key: to_sharding(cell, change(self.get(cell))) for cell, change in changes}
        self._commit([cell for cell, _ in changes], new, set())

    def _commit(self, cells: Sequence[Cell], new: dict[int, Array], kept: set[int]) -> None:
        self.values.update({cell.key: (cell, new[cell.key]) for cell in cells})


def _placed(cell: Cell, value: Array) -> Array:
    """Return the value where its variable is, which may have been placed again meanwhile."""
    is_there = cell.sharding is None or cell.sharding == value.sharding
    return value if is_there else to_sharding(cell, value)

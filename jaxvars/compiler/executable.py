"""One compiled program, and how it is run: values from the store, through XLA, and back.

Rules this file keeps (`core/store.py` and `compiler/fast_path.py` have those of the common case):
- from the moment a value is donated until the new one is in a write-back that is `CURRENT`
  nothing can interrupt; so a step happens or does not;
- what is both read and assigned is donated, and copied before if it may be referenced elsewhere;
- off jit's fast path Python runs between execution and return, where an exception would lose what
  was donated: copies take its place before (`Program`). At the first run, which is off it, the
  program is compiled before anything is donated, and signals wait until it has returned: copies
  would take as much memory again as the variables do;
- only what was assigned is returned: XLA copies what passes through unchanged;
- a program that calls back into Python donates nothing and commits when it has finished, so
  that an error in the callback changes nothing;
- what is assigned comes back where it was placed: a program is then compiled once, and not
  again for its own results. If a variable is placed again, `renew_users` has it compiled again.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, final

import jax

from jaxvars.compiler.fast_path import Parts
from jaxvars.compiler.program import (
    Layout,
    Leaves,
    Mode,
    Placement,
    Program,
    ShapeMismatch,
    SignatureMismatch,
    call_back,
    check_room,
    check_top_level,
    copy_all,
    copy_shared,
    finisher,
    gather_values,
    is_about_deleted,
    is_fast_path,
    named,
)
from jaxvars.compiler.signature import Key, Traced, leaf_of
from jaxvars.core.cells import CURRENT, SHARED, STORE, UNPROVEN, Cell, WriteBack, without_signals
from jaxvars.core.checks import FAILURE, calling_back
from jaxvars.core.failures import doubt, prove
from jaxvars.core.frames import LOCAL
from jaxvars.core.staging import INLINED, Staged
from jaxvars.core.store import exclusively, fail, flush, has_failed, stored
from jaxvars.errors import CompileError
from jaxvars.tracing import context, jaxprs
from jaxvars.tracing.signals import deferred_signals
from jaxvars.typing import Array

_LARGE = 2**26  # bytes: a step that computes as much takes far longer than to check if one failed
CALLBACK_PRIMITIVES = frozenset({"pure_callback", "io_callback", "debug_callback", "debug_print"})
_KEYS = frozenset({"random_seed", "random_wrap"})  # what default_prng_impl matters to


_EXECUTABLES: weakref.WeakSet[Executable] = weakref.WeakSet()


@final
class Executable:
    """A compiled program over some cells.

    Attributes:
        key: the signature it was traced for.
        staged: the program and the cells it touches.
        run: takes the traced arguments to the function's result, updating the variables.
        broke_off: an exception may have ended a call while jit was on its slow path.
    """

    def __init__(
        self, key: Key, staged: Staged, name: str, *,
        donate: bool, place: Callable[[Sequence[Traced]], Placement],
    ) -> None:  # fmt: skip
        self.key = key
        self.staged = staged.to_run()
        self._whole = staged
        self.name = name
        self.is_stale = False
        self.broke_off = False
        primitives = jaxprs.primitives_in(staged.program)
        self.has_callbacks = bool(CALLBACK_PRIMITIVES & primitives)
        self._makes_keys = bool(_KEYS & primitives)
        # A check of numbers fails after the program has run, when donated values are gone.
        checked = context.numbers_are_checked()
        self._donates = donate and not (self.has_callbacks or checked or self.staged.reshaped)
        self._specs = tuple(leaf for leaf in key.leaves if isinstance(leaf, Traced))
        self._placement = place(self._specs)
        self._layout = Layout(self.staged, name, is_shared=self._donates and not self._is_large)
        self._donated, self._readonly = self._layout.donated, self._layout.readonly
        self._write_back, self._is_checked = self._layout.write_back, self._layout.is_checked
        self._cells = [*self._write_back.cells, *self._readonly]
        self._jitted = self._jit(self._placement)
        self._inlined: tuple[Staged, Callable[..., Any]] | None = None
        self._finish = finisher(self.staged, self._is_checked)
        self._owners: list[Callable[[], object]] = []
        self._shared: Sequence[int] = ()  # keys of what was copied last
        self._array: type | None = None  # what values are when they are not tracers
        self._cool: Callable[[], Callable[[], None] | None] = lambda: None
        self._enter(Mode.COLD)
        _EXECUTABLES.add(self)

    def __del__(self, flush: Callable[[], None] = flush) -> None:
        flush()  # so that its write-back lets go of the values

    def watch(
        self,
        objects: Sequence[object],
        evict: Callable[[Executable], None],
        cool: Callable[[], None],
    ) -> None:
        """Call `evict` when one of some objects, or a variable used, is gone.

        Args:
            objects: what the function was called with.
            evict: forgets this entry.
            cool: forgets the fast paths to it.
        """
        self._cool = weakref.WeakMethod(cool)  # fast paths hold this entry
        this = weakref.ref(self)

        def gone(_: object, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
            entry = this()
            if entry is not None and not is_ending():  # pragma: no branch - then modules are gone
                entry.is_stale = True
                evict(entry)
                flush()  # so that its write-back lets go of the values

        for owner in [*objects, *(cell.owner() for cell in cells_of(self))]:
            try:
                self._owners.append(weakref.ref(owner, gone))
            except TypeError:  # it has no weak references: kept, so that its id is not used again
                self._owners.append(lambda owner=owner: owner)

    # ------------------------------------------------------------ building
    def _jit(self, placement: Placement) -> Any:
        donated = {"donate_argnums": 0} if self._donates else {}
        place = placement.for_jit
        flat, options = place(self.staged, self._groups(), self._write_back.cells)
        run = functools.partial(self._run_grouped, flat)
        program = Program(run, self.name, self._leave_fast_path)
        return jax.jit(program, **donated, **options)

    def _groups(self) -> list[list[Cell]]:
        """Return the cells whose values jit is given, as it has them."""
        return [self._donated, self._readonly] if self._readonly else [self._donated]

    def _run_grouped(self, flat: Callable[..., list[Array]], donated: Any, *rest: Any) -> Any:
        """Run the program, `flat`, on cells as dispatch groups them; traced by jit."""
        readonly, leaves = (rest[0], rest[1:]) if self._readonly else ((), rest)
        if context.settings() != self.key.settings:  # jit is here whenever they are new to it
            raise SignatureMismatch
        if tuple(map(leaf_of, leaves)) != self._specs:
            raise ShapeMismatch
        layout = self._layout
        values = [*donated, *readonly, *layout.idle]
        reads = [values[i] for i in layout.input_order]
        if any(
            x.shape != a.shape for x, a in zip(reads, self.staged.program.in_avals, strict=False)
        ):
            raise SignatureMismatch
        outputs = flat(*reads, *leaves)
        results, written = self.staged.split(outputs)
        new = tuple(written[i] for i in layout.output_order)
        result: Any = tuple(results)
        if self._is_checked:
            failure = written[self.staged.writes.index(FAILURE)]
            new = tuple(map(functools.partial(jax.lax.select, failure[0] > 0), donated, new))
            result = (*result, failure)
        elif self.staged.fits_jit:
            result = self.staged.rebuild(result)
        return (new, result) if new else result  # new first: XLA gives them the old ones' memory

    # ------------------------------------------------------------ running
    def _leave_fast_path(self) -> None:
        """Prepare for an exception at any place in jit's Python; called by jit on its way there.

        Copies take the place of what is about to be donated.
        """
        if self.broke_off:
            self.broke_off = False
            self._jitted.clear_cache()  # or jit would never use its fast path for such a call
        is_first = self.mode is Mode.COLD  # signals are deferred
        frame = sys._getframe(1) if self._donates and not is_first else None
        new = self._write_back
        while frame is not None:
            if frame.f_code is _DONATING and frame.f_locals["self"] is self:
                old = frame.f_locals.get("old")  # none if nothing is written
                if old and STORE.get(new.keys[0]) is old[0]:
                    STORE.update(zip(new.keys, copy_all(old), strict=False))
            elif is_fast_path(frame, new) and new.values is frame.f_locals.get("old"):
                old, n = new.values, len(self._donated)
                new.values = (*copy_all(old[:n]), *old[n:])
            frame = frame.f_back

    def _enter(self, mode: Mode) -> None:
        self.mode = mode
        self.run: Callable[[Leaves], Any] = MethodType(_RUNNERS[mode], self)

    def _run_first(self, leaves: Leaves) -> Any:
        """Compile and run."""
        check_top_level()
        result = exclusively(functools.partial(self._warm_up, leaves))
        flush()  # the next call, which may take a fast path, checks in what trace it is made
        touches = self._write_back.keys or self._readonly or self._placement.shardings
        self._enter(Mode.WARM if touches or self.has_callbacks else Mode.PURE)
        return self._make_result(result)

    def _warm_up(self, leaves: Leaves) -> Any:
        """Place together what the program uses, and run it."""
        moved = self._placement.arrange(self._cells, leaves)
        if moved is not None:
            self._jitted = self._jit(self._placement)
            renew_users(moved, but=self)
        leaves = self._placement.put(leaves)
        if self.has_callbacks:
            return self._run_copied(leaves)
        donated, others = gather_values(self._donated), [*self._readonly_args(), *leaves]
        check_room(self._jitted.lower(donated, *others).compile(), donated, leaves)
        del donated
        with deferred_signals():
            return self._run_donating(leaves)

    def renew(self) -> None:
        """Compile the program again at the next call: a variable has been placed again."""
        flush()
        self._jitted = self._jit(self._placement)
        self._enter(Mode.COLD)
        cool = self._cool()
        if cool is not None:  # pragma: no branch - the function lives as long as this
            cool()

    def explain(self, error: Exception, leaves: Leaves) -> None:
        """Raise an error that names the variables because of which JAX refused a call."""
        if is_about_deleted(error):
            exclusively(lambda: list(map(stored, cells_of(self))))  # says which one has no value
        else:
            self._placement.explain(error, self._cells, leaves)
            fail(self.name, error)

    @property
    def parts(self) -> Parts | None:
        """What a fast path needs of the program; None where there can be none."""
        if self.has_callbacks or self.is_stale:
            return None
        return Parts(
            jitted=self._jitted,
            write_back=self._write_back if self._write_back.keys else None,
            array=self._array,
            donated=len(self._donated),
            readonly=tuple(cell.key for cell in self._readonly),
            finish=self._finish,
            failed=self._failure_check(),
            keeps=not self._donates,
            keys=context.key_maker() if self._makes_keys else None,
            careful=self._run_exclusively,
        )

    @functools.cached_property
    def _is_large(self) -> bool:
        return jaxprs.largest_value(self.staged.program) >= _LARGE

    @functools.cached_property
    def cell_keys(self) -> frozenset[int]:
        """The keys of the cells that the program reads or assigns."""
        return frozenset(cell.key for cell in cells_of(self))

    def _failure_check(self) -> Callable[[WriteBack], bool] | None:
        """Return what says whether the last run failed, if it is to be checked at each call."""
        if self._donates and not self._is_large:
            return None
        return functools.partial(has_failed, wait=not self._donates)

    def _run_pure(self, leaves: Leaves) -> Any:
        """Run a program that touches no variable."""
        return self._make_result(self._call((), *leaves))

    def _call(self, *inputs: Any) -> Any:
        try:
            return self._jitted(*inputs)
        except SignatureMismatch:
            raise
        except BaseException:
            self.broke_off = True
            raise

    def _run_exclusively(self, leaves: Leaves) -> Any:
        """Run where a fast path may not: in turn, and copying what may be referenced elsewhere."""
        check_top_level()
        run = self._run_copied if self.has_callbacks else self._run_donating
        leaves = self._placement.put(leaves)
        return self._make_result(exclusively(functools.partial(run, leaves)))

    def _make_result(self, result: Any) -> Any:
        return result if self._finish is None else self._finish(result)

    def _run_donating(self, leaves: Leaves) -> Any:
        write_back = self._write_back
        if UNPROVEN:
            prove(used=self.cell_keys)
            if not self._donates:
                prove(write_back.keys)  # a value that is kept must be one
        if not write_back.keys:
            return self._call((), *self._readonly_args(), *leaves)
        if self._donates and not SHARED.isdisjoint(write_back.keys):
            self._shared = copy_shared(self._donated, self._shared)
        old = gather_values(self._donated)
        inputs = [(x,) for x in (old, *self._readonly_args(), *leaves)]
        write_back.before = () if self._donates else tuple(map(STORE.get, write_back.keys))
        before = [name for step in UNPROVEN.values() for name in step.names]
        write_back.names = tuple(dict.fromkeys((self.name, *before)))
        try:
            ((write_back.values, result),) = map(self._jitted, *inputs)
            CURRENT[0] = write_back  # no call since the values were donated: see `core/store.py`
            self._array = type(write_back.values[0])
        except SignatureMismatch:
            raise
        except BaseException:
            self.broke_off = True
            doubt(write_back)  # XLA may have the values that it was given
            raise
        return result

    def _run_copied(self, leaves: Leaves) -> Any:
        """Run what calls back into Python: donate nothing, and commit when all is done."""
        donated = tuple(copy_all(gather_values(self._donated)))
        outputs = call_back(self._call, donated, *self._readonly_args(), *leaves)
        if not self._write_back.keys:
            return outputs
        new, result = outputs
        STORE.update(zip(self._write_back.keys, new, strict=True))
        return result

    def _readonly_args(self) -> list[tuple[Array, ...]]:
        """Return the values of the read-only cells, as an argument if there are any."""
        return [gather_values(self._readonly)] if self._readonly else []

    def inline(self, leaves: Leaves) -> Any:
        """Run as part of what goes on: in another function, under a tape or a transform."""
        leaves = self._placement.constrain(self._cells, leaves)
        if self._inlined is None:
            self._inlined = self._to_inline()
        staged, run = self._inlined
        if self.has_callbacks:  # which may wait for other threads
            return calling_back(lambda: staged.apply(run, list(leaves)))
        if not self._write_back.keys:
            return staged.apply(run, list(leaves))
        with LOCAL.frame.alone():
            return staged.apply(run, list(leaves))

    def _to_inline(self) -> tuple[Staged, Callable[..., Any]]:
        """Return the program as it may be differentiated, and what runs it."""
        staged = functools.reduce(lambda staged, change: change(staged), INLINED, self._whole)
        inner = staged.function()
        return staged, jax.jit(named(self.name, lambda reads, leaves: inner(*reads, *leaves)))

    def check_settings(self) -> None:
        """Raise CompileError if JAX's settings are others than it was traced under."""
        if context.settings() != self.key.settings:
            raise CompileError(
                f"{self.name} was traced under other settings of JAX (jax.enable_x64, "
                "jax.default_matmul_precision, jax.set_mesh, ...) than those of now, and can only "
                "run under these. Go back to them, or trace it for those of now: fn.trace(...)."
            )

    def specs(self, leaves: Leaves | None = None) -> list[jax.ShapeDtypeStruct]:
        """Return what stands for the arguments of a call, where they are, or of any call."""
        return self._placement.specs([None] * len(self._specs) if leaves is None else leaves)

    def lower(
        self, specs: Sequence[jax.ShapeDtypeStruct], move: Callable[[Placement], Placement]
    ) -> Any:
        """Return the program lowered for arguments like these, where its variables are by now.

        Args:
            specs: of the arguments.
            move: returns where they and the variables are instead.

        Raises:
            CompileError: under other settings of JAX.
            ShardingError: when it cannot be so placed.
        """
        self.check_settings()
        placement, specs = move(self._placement).planned(self._cells, specs)
        jitted = self._jitted if placement is self._placement else self._jit(placement)
        place = placement.place_of
        variables = [
            tuple(
                jax.ShapeDtypeStruct(c.aval.shape, c.aval.dtype, sharding=place(c)) for c in cells
            )
            for cells in self._groups()
        ]
        try:
            return jitted.lower(*variables, *specs)
        except ValueError as error:
            placement.explain(error, self._cells, specs)
            raise


_DONATING = Executable._run_donating.__code__
_RUNNERS: dict[Mode, Callable[[Executable, Leaves], Any]] = {
    Mode.COLD: Executable._run_first,
    Mode.WARM: Executable._run_exclusively,
    Mode.PURE: Executable._run_pure,
}


def renew_users(cells: Sequence[Cell], *, but: Executable | None = None) -> None:
    """Compile all programs again that use some cells: these are placed elsewhere."""
    keys = {cell.key for cell in cells}
    for entry in _all_entries():
        if entry is not but and not keys.isdisjoint(entry.cell_keys):
            entry.renew()


def _all_entries() -> list[Executable]:
    while True:
        try:
            return list(_EXECUTABLES)
        except RuntimeError:  # pragma: no cover - another thread has added one meanwhile
            continue


def cells_of(entry: Executable) -> list[Cell]:
    """Return the cells that a program reads, then those that it only assigns."""
    reads, writes = map(without_signals, (entry.staged.reads, entry.staged.writes))
    known = {cell.key for cell in reads}
    return [*reads, *(cell for cell in writes if cell.key not in known)]

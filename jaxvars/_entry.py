"""One compiled program, and how it is run: values from the store, through XLA, and back.

Rules this file keeps (`_store.py` and `_hotpath.py` have those of the common case):
- from the moment a value is donated until the new one is in a tray that is in `HAND` nothing
  can interrupt; so a step happens or does not;
- what is both read and assigned is donated, and copied before if somebody may hold it;
- the first run, which compiles, is given copies: it may be interrupted anywhere;
- only what was assigned is returned: XLA copies what passes through unchanged;
- a program that calls back into Python donates nothing and commits when it has finished, so
  that an error in the callback changes nothing;
- what is assigned comes back where it was placed: a program is then compiled once, and not
  again for its own results. If a variable is placed anew, `renew_users` has it compiled anew.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import jax

from jaxvars import _trace
from jaxvars._arrivals import Arrivals, lowered_like
from jaxvars._checks import FAILURE, calling_back, raise_if_failed, without_signals
from jaxvars._frames import DETOUR, LOCAL
from jaxvars._homes import apart, gather, home_now, is_about_places, mesh_of, placed
from jaxvars._hotpath import Parts
from jaxvars._signature import Traced, leaf_of
from jaxvars._staging import Staged
from jaxvars._store import CALLBACKS, HAND, SHARED, STORE, Cell, Tray, exclusively, settle, stored

Value: TypeAlias = Any
Leaves: TypeAlias = Sequence[Value]

_CALLBACKS = frozenset({"pure_callback", "io_callback", "debug_callback", "debug_print"})


@final
class Elsewhere(Exception):  # noqa: N818 - a signal between us, not an error
    """The call is made inside a transform, a tape or another function."""


@final
class Miss(Exception):  # noqa: N818 - a signal between us, not an error
    """The arguments are not those that a program was made for."""


_ENTRIES: weakref.WeakSet[Entry] = weakref.WeakSet()


@final
class Entry:
    """A compiled program over some cells.

    Attributes:
        key: the signature it was traced for.
        staged: the program and the cells it touches.
        run: takes the traced arguments to the function's result, updating the variables.
    """

    def __init__(
        self,
        key: Any,
        staged: Staged,
        name: str,
        *,
        donate: bool,
        arrivals: Arrivals,
        values: Leaves,
    ) -> None:
        self.key = key
        self.staged = staged.to_run()
        self._whole = staged
        self.name = name
        self.is_stale = False
        self.run: Callable[[Leaves], Any] = self._first_run
        self.has_callbacks = bool(_CALLBACKS & _trace.primitives_in(staged.program))
        # A check of numbers fails after the program has run, when donated values are gone.
        checked = any(getattr(jax.config, name) for name in ("jax_debug_nans", "jax_debug_infs"))
        self._donates = donate and not self.has_callbacks and not checked
        self._specs = tuple(leaf for leaf in key[1] if isinstance(leaf, Traced))
        self._arrivals = arrivals
        self._lowered = list(map(lowered_like, self._specs, values))
        self._group_cells()
        self._jitted = self._jit()
        inner = staged.function()
        self._inner = jax.jit(self._named(lambda reads, leaves: inner(*reads, *leaves)))
        self._finish = self._finisher()
        self._owners: list[Callable[[], object]] = []
        self._array: type | None = None  # what values are when they are no tracers
        self._cool: Callable[[], Callable[[], None] | None] = lambda: None
        _ENTRIES.add(self)

    def __del__(self, settle: Callable[[], None] = settle) -> None:
        settle()  # so that its tray lets go of the values

    def watch(
        self, objects: Sequence[object], evict: Callable[[Entry], None], cool: Callable[[], None]
    ) -> None:
        """Have `evict` called when one of some objects, or a variable used, is gone.

        Args:
            objects: what the function was called with.
            evict: forgets this entry.
            cool: forgets the hot paths to it.
        """
        self._cool = weakref.WeakMethod(cool)  # hot paths hold this entry
        this = weakref.ref(self)

        def gone(_: object, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
            if (entry := this()) is not None and not is_ending():  # then modules are gone, too
                entry.is_stale = True
                evict(entry)
                settle()  # so that its tray lets go of the values

        for owner in [*objects, *(cell.owner() for cell in cells_of(self))]:
            try:
                self._owners.append(weakref.ref(owner, gone))
            except TypeError:  # cannot be referred to weakly: keep it, lest its id be used again
                self._owners.append(lambda owner=owner: owner)

    # ------------------------------------------------------------ building
    def _group_cells(self) -> None:
        """Group the cells: given ones come back changed, kept ones are only lent to XLA."""
        self._is_checked = FAILURE in self.staged.writes
        reads, writes = map(without_signals, (self.staged.reads, self.staged.writes))
        written = {cell.key for cell in writes}
        self._given = [cell for cell in reads if cell.key in written]
        self._kept = [cell for cell in reads if cell.key not in written]
        given = {cell.key for cell in self._given}
        self._tray = Tray([*self._given, *(cell for cell in writes if cell.key not in given)])
        if self._is_checked:  # a failed check gives back what was there
            self._given = list(self._tray.cells)
        signals = [cell for cell in self.staged.reads if cell.deliver is not None]
        self._idle = [STORE[cell.key] for cell in signals]  # constants of a program by itself
        inputs = [cell.key for cell in [*self._given, *self._kept, *signals]]
        outputs = [cell.key for cell in self.staged.writes]
        self._input_order = [inputs.index(cell.key) for cell in self.staged.reads]
        self._output_order = [outputs.index(key) for key in self._tray.keys]

    def _jit(self) -> Any:
        options: dict[str, Any] = {"donate_argnums": 0} if self._donates else {}
        known = [*(cell.home for cell in cells_of(self)), *(self._arrivals.shardings or ())]
        on_mesh = mesh_of(known) is not None
        program = self.staged.program
        self._flat = _trace.flat_function(program) if on_mesh else self.staged.function()
        homes = tuple(cell.home for cell in self._tray.cells)
        if any(homes):
            options["out_shardings"] = (homes, None)
        if self._arrivals.shardings is not None:
            groups = [self._given, self._kept] if self._kept else [self._given]
            lent = [tuple(cell.home for cell in cells) for cells in groups]
            options["in_shardings"] = (*lent, *self._arrivals.shardings)
        return jax.jit(self._named(self._run_grouped), **options)

    def _named(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def named(*args: Value) -> Any:
            return fn(*args)

        named.__name__ = named.__qualname__ = self.name
        return named

    def _run_grouped(self, given: Any, *rest: Any) -> Any:
        """Run the program on cells as dispatch groups them; traced by jit."""
        kept, leaves = (rest[0], rest[1:]) if self._kept else ((), rest)
        if tuple(map(leaf_of, leaves)) != self._specs:
            raise Miss
        values = [*given, *kept, *self._idle]
        outputs = self._flat(*[values[i] for i in self._input_order], *leaves)
        results, written = self.staged.split(outputs)
        new = tuple(written[i] for i in self._output_order)
        result: Any = tuple(results)
        if self._is_checked:
            failure = written[self.staged.writes.index(FAILURE)]
            new = tuple(map(functools.partial(jax.lax.select, failure[0] > 0), given, new))
            result = (*result, failure)
        elif self.staged.rebuild.is_plain:
            result = self.staged.rebuild(result)
        return (new, result) if new else result  # new first: XLA gives them the old ones' memory

    def _finisher(self) -> Callable[[Any], Any] | None:
        """Return what makes the function's result of the program's, unless that is the same."""
        rebuild = self.staged.rebuild
        if not self._is_checked:
            return None if rebuild.is_plain else rebuild

        def finish(result: Any) -> Any:
            raise_if_failed(result[-1])
            return rebuild(result[:-1])

        return finish

    # ------------------------------------------------------------ running
    def _first_run(self, leaves: Leaves) -> Any:
        """Run once on copies, so that jit has compiled before anything is donated."""
        _check_place()
        try:
            result = exclusively(lambda: self._first_flight(leaves))
        except (Miss, Elsewhere):
            raise
        except BaseException:
            self._jitted.clear_cache()  # or jit would stay on its slow path
            raise
        touches = self._tray.keys or self._kept or self._arrivals.shardings
        steady = self._run_carefully if touches else self._run_pure
        self.run = self._run_on_copies if self.has_callbacks else steady
        return self._finished(result)

    def _first_flight(self, leaves: Leaves) -> Any:
        """Bring together what the program uses, and run it."""
        cells = [*self._tray.cells, *self._kept]
        moved = gather(cells, [] if self._arrivals.wanted else self._named_leaves(leaves))
        self._settle(leaves)
        if moved or self._arrivals.shardings is not None:
            self._jitted = self._jit()
            renew_users(moved, but=self)
        return self._fly_on_copies(self._arrivals.bring(leaves))

    def _settle(self, leaves: Leaves) -> None:
        """Find out where the arguments are to be."""
        cells = [*self._tray.cells, *self._kept]
        places = [*map(home_now, cells), *map(placed, leaves)]
        self._arrivals.settle([leaf.shape for leaf in self._specs], mesh_of(places))

    def _named_leaves(self, leaves: Leaves) -> list[tuple[str, Value]]:
        names = [f"Argument {name}" for name in self._arrivals.names]
        return list(zip(names, leaves, strict=True))

    def renew(self) -> None:
        """Have the program compiled anew at the next call: a variable has been placed anew."""
        settle()
        self._jitted = self._jit()
        self.run = self._first_run
        if (cool := self._cool()) is not None:
            cool()

    def explain(self, error: ValueError, leaves: Leaves) -> None:
        """Raise ShardingError if JAX refused a call because things do not lie together."""
        if is_about_places(error):
            cells = [*self._tray.cells, *self._kept]
            homes = exclusively(lambda: [(f"Variable {c.name!r}", home_now(c)) for c in cells])
            given = [(name, placed(value)) for name, value in self._named_leaves(leaves)]
            raise apart(homes, given) from error

    @property
    def parts(self) -> Parts | None:
        """What a hot path needs of the program; None where there can be none."""
        if self.has_callbacks or self.is_stale or (self._tray.keys and self._array is None):
            return None
        return Parts(
            jitted=self._jitted,
            tray=self._tray if self._tray.keys else None,
            array=self._array,
            elsewhere=Elsewhere,
            given=len(self._given),
            kept=tuple(cell.key for cell in self._kept),
            finish=self._finish,
            careful=self._run_carefully,
        )

    def _run_pure(self, leaves: Leaves) -> Any:
        """Run a program that touches no variable."""
        return self._finished(self._jitted((), *leaves))

    def _run_carefully(self, leaves: Leaves) -> Any:
        """Run where a hot path may not: in turn, and copying what somebody else may hold."""
        _check_place()
        leaves = self._arrivals.bring(leaves)
        return self._finished(exclusively(lambda: self._fly(leaves)))

    def _finished(self, result: Any) -> Any:
        return result if self._finish is None else self._finish(result)

    def _fly(self, leaves: Leaves) -> Any:
        tray = self._tray
        if not tray.keys:
            return self._jitted((), *self._lend(), *leaves)
        if self._donates and not SHARED.isdisjoint(tray.keys):
            shared = SHARED.intersection([cell.key for cell in self._given])
            STORE.update([(key, _trace.fresh(STORE[key])) for key in shared])
            SHARED.difference_update(shared)
        inputs = [(x,) for x in (self._gather(self._given), *self._lend(), *leaves)]
        ((tray.values, result),) = map(self._jitted, *inputs)
        HAND[0] = tray  # no call since the values were donated: see `_store.py`
        return result

    def _run_on_copies(self, leaves: Leaves) -> Any:
        """Run without donating anything, and commit when all is done."""
        _check_place()
        leaves = self._arrivals.bring(leaves)
        return self._finished(exclusively(lambda: self._fly_on_copies(leaves)))

    def _fly_on_copies(self, leaves: Leaves) -> Any:
        given = tuple(map(_trace.fresh, self._gather(self._given)))
        run = self._call_back if self.has_callbacks else self._jitted
        outputs = run(given, *self._lend(), *leaves)
        if not self._tray.keys:
            return outputs
        new, result = outputs
        self._array = type(new[0])
        STORE.update(zip(self._tray.keys, new, strict=True))
        return result

    def _gather(self, cells: Sequence[Cell]) -> tuple[Value, ...]:
        try:
            return tuple([STORE[cell.key] for cell in cells])
        except KeyError:
            return tuple(map(stored, cells))  # says which one has no value

    def _lend(self) -> list[tuple[Value, ...]]:
        """Return the values of the kept cells, as an argument if there are any."""
        return [self._gather(self._kept)] if self._kept else []

    def _call_back(self, *inputs: Any) -> Any:
        """Run a program that calls back into Python, and wait until it has finished."""
        CALLBACKS.append(None)
        try:
            return calling_back(lambda: self._run_and_wait(*inputs))
        finally:
            CALLBACKS.pop()

    def _run_and_wait(self, *inputs: Any) -> Any:
        outputs = self._jitted(*inputs)
        jax.block_until_ready(outputs)
        jax.effects_barrier()
        return outputs

    def inline(self, leaves: Leaves) -> Any:
        """Run as part of what goes on: in another function, under a tape or a transform."""
        if self._arrivals.wanted:
            self._settle(leaves)
            leaves = self._arrivals.constrain(leaves)
        return self._whole.apply(self._inner, list(leaves))

    # ------------------------------------------------------------ looking inside
    def lower(self) -> Any:
        """Return the lowered program."""
        if self._arrivals.wanted and self._arrivals.shardings is None:
            self._settle(())
            self._jitted = self._jit()
        groups = [self._given, self._kept] if self._kept else [self._given]
        specs = [
            tuple(jax.ShapeDtypeStruct(c.aval.shape, c.aval.dtype, sharding=c.home) for c in cells)
            for cells in groups
        ]
        return self._jitted.lower(*specs, *self._lowered)


def renew_users(cells: Sequence[Cell], *, but: Entry | None = None) -> None:
    """Have all programs that use some cells compiled anew: the cells have new homes."""
    keys = {cell.key for cell in cells}
    for entry in _all_entries() if keys else ():
        if entry is not but and not keys.isdisjoint(cell.key for cell in cells_of(entry)):
            entry.renew()


def _all_entries() -> list[Entry]:
    while True:
        try:
            return list(_ENTRIES)
        except RuntimeError:  # another thread has added one meanwhile
            continue


def _check_place() -> None:
    if (DETOUR and LOCAL.frame is not LOCAL.eager) or _trace.current() is not _trace.EVAL:
        raise Elsewhere


def cells_of(entry: Entry) -> list[Cell]:
    """Return the cells that a program reads, then those that it only assigns."""
    reads, writes = map(without_signals, (entry.staged.reads, entry.staged.writes))
    known = {cell.key for cell in reads}
    return [*reads, *(cell for cell in writes if cell.key not in known)]

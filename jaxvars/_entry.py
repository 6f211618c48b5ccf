"""One compiled program, and how it is run: values from `STORE`, through XLA, and back.

Rules this file keeps (`_hotpath.py` has those of the common case):
- from the moment a value is donated until the new one is in `STORE` nothing can interrupt:
  gather, call and commit are one C call over iterators; so a step happens or does not;
- a step puts itself into `FLIGHT` (see `_state.py`), so that no other thread reads what is
  being donated and no update is lost;
- only what is both read and written is donated, and what somebody may hold (`SHARED`) is
  copied before;
- the first run, which compiles, is given copies: it may be interrupted anywhere;
- only what was written is returned: XLA copies what passes through unchanged;
- a program that calls back into Python donates nothing and commits when it has finished, so
  that an error in the callback changes nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, TypeAlias, final

import jax

from jaxvars import _trace
from jaxvars._hotpath import Parts, write
from jaxvars._signature import Traced, leaf_of
from jaxvars._state import (
    CALLBACKS,
    DETOUR,
    LOCAL,
    SHARED,
    STORE,
    Cell,
    Staged,
    exclusively,
)

Value: TypeAlias = Any
Leaves: TypeAlias = Sequence[Value]

_RESULT = 0  # the key of `STORE` through which a result passes; cells count from 1
_CALLBACKS = frozenset({"pure_callback", "io_callback", "debug_callback", "debug_print"})


@final
class Elsewhere(Exception):  # noqa: N818 - a signal between us, not an error
    """The call is made inside a transform, a tape or another function."""


@final
class Miss(Exception):  # noqa: N818 - a signal between us, not an error
    """The arguments, or the variables, are not those that a program was made for."""


@final
class Entry:
    """A compiled program over some cells.

    Attributes:
        key: the signature it was traced for.
        staged: the program and the cells it touches.
        run: takes the traced arguments to the function's result, updating `STORE`.
    """

    def __init__(self, key: Any, staged: Staged, name: str, *, donate: bool) -> None:
        self.key = key
        self.staged = staged
        self.name = name
        self.is_stale = False
        self._specs = tuple(leaf for leaf in key[1] if isinstance(leaf, Traced))
        self._flat = staged.function()
        self.has_callbacks = bool(_CALLBACKS & _trace.primitives_in(staged.program))
        self.donates = donate and not self.has_callbacks
        self._split_cells()
        self._jitted = self._jit()
        self._inner = jax.jit(self._named(self._run_flat))
        self._finish = None if staged.rebuild.is_plain else staged.rebuild
        self.run: Callable[[Sequence[Value]], Any] = self._first_run
        self._owners: list[weakref.ref[object]] = []

    def watch(self, objects: Sequence[object], evict: Callable[[Entry], None]) -> None:
        """Have `evict` called when one of some objects, or a variable used, is gone."""
        this = weakref.ref(self)

        def gone(_: object) -> None:
            if (entry := this()) is not None:
                entry.is_stale = True
                evict(entry)

        owners = [cell.owner() for cell in {*self.staged.reads, *self.staged.writes}]
        for owner in [*objects, *owners]:
            try:
                self._owners.append(weakref.ref(owner, gone))
            except TypeError:  # cannot be referred to weakly: keep it, lest its id be used again
                self._owners.append(lambda owner=owner: owner)  # pyright: ignore[reportArgumentType] - a strong "reference"

    # ------------------------------------------------------------ building
    def _split_cells(self) -> None:
        """Group the cells: donated ones are given to XLA, kept ones lent."""
        reads, writes = self.staged.reads, self.staged.writes
        written = {cell.key for cell in writes}
        self._donated = [c for c in reads if c.key in written and self.donates]
        self._kept = [c for c in reads if not (c.key in written and self.donates)]
        order = [cell.key for cell in [*self._donated, *self._kept]]
        self._order = [order.index(cell.key) for cell in reads]
        self._donated_keys = tuple(cell.key for cell in self._donated)
        self._out_keys = ((_RESULT, *(cell.key for cell in writes)),)
        self._gather_donated = _gatherer(self._donated_keys)
        self._gather_kept = _gatherer([cell.key for cell in self._kept])

    def _jit(self) -> Any:
        homes = [cell.home for cell in self.staged.writes]
        pinned: dict[str, Any] = {"out_shardings": (None, *homes)} if any(homes) else {}
        return jax.jit(self._named(self._run_grouped), donate_argnums=0, **pinned)

    def _named(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def named(*args: Value) -> Any:
            return fn(*args)

        named.__name__ = named.__qualname__ = self.name
        return named

    def _run_grouped(self, donated: Any, *rest: Any) -> tuple[Any, ...]:
        """Run the program on cells as dispatch groups them; traced by jit."""
        kept, leaves = (rest[0], rest[1:]) if self._kept else ((), rest)
        if tuple(map(leaf_of, leaves)) != self._specs:
            raise Miss
        values = [*donated, *kept]
        outputs = self._flat(*[values[i] for i in self._order], *leaves)
        n = len(outputs) - len(self.staged.writes)
        rebuild = self.staged.rebuild
        result = rebuild(outputs[:n]) if rebuild.is_plain else tuple(outputs[:n])
        return (result, *outputs[n:])

    def _run_flat(self, reads: Any, leaves: Any) -> list[Value]:
        return self._flat(*reads, *leaves)

    # ------------------------------------------------------------ running
    def _first_run(self, leaves: Leaves) -> Any:
        """Run once on copies, so that jit has compiled before anything is donated."""
        try:
            result = self._run_on_copies(leaves)
        except (Miss, Elsewhere):
            raise
        except BaseException:
            self._jitted.clear_cache()  # or jit would stay on its slow path
            raise
        self.run = self._steady()
        return result

    def _steady(self) -> Callable[[Leaves], Any]:
        if self.has_callbacks:
            return self._run_on_copies
        touches = self.staged.reads or self.staged.writes
        return self._run_carefully if touches else self._run_pure

    def hot_path(
        self, args: Sequence[Any], values: Leaves, static: frozenset[int], *, by_shape: bool
    ) -> Callable[..., Any] | None:
        """Return a function that runs the program for calls like this one, if there can be one."""
        if self.has_callbacks or self.is_stale:
            return None
        parts = Parts(
            jitted=self._jitted,
            donated=self._donated_keys,
            kept=tuple(cell.key for cell in self._kept),
            written=self._out_keys[0][1:],
            finish=self._finish,
            careful=self._run_carefully,
            check_place=_check_place,
            undo=_undo,
        )
        return write(parts, args, values, static, by_shape=by_shape)

    def _run_carefully(self, leaves: Leaves) -> Any:
        """Run where a hot path may not: in turn, and copying what somebody else may hold."""
        _check_place()
        result = exclusively(lambda: self._fly(leaves))
        return result if self._finish is None else self._finish(result)

    def _fly(self, leaves: Leaves) -> Any:
        if not SHARED.isdisjoint(self._donated_keys):
            shared = SHARED.intersection(self._donated_keys)
            STORE.update([(key, _trace.fresh(STORE[key])) for key in shared])
            SHARED.difference_update(shared)
        inputs = [(x,) for x in (self._gather_donated(STORE), *self._lend(), *leaves)]
        STORE.update(*map(zip, self._out_keys, map(self._jitted, *inputs)))
        return STORE.pop(_RESULT)

    def _run_on_copies(self, leaves: Leaves) -> Any:
        """Run without donating anything, and commit when all is done."""
        _check_place()
        result = exclusively(lambda: self._fly_on_copies(leaves))
        return result if self._finish is None else self._finish(result)

    def _fly_on_copies(self, leaves: Leaves) -> Any:
        copies = tuple(map(_trace.fresh, self._gather_donated(STORE)))
        run = self._call_back if self.has_callbacks else self._jitted
        result, *new = run(copies, *self._lend(), *leaves)
        STORE.update(zip(self._out_keys[0][1:], new, strict=True))
        return result

    def _lend(self) -> list[tuple[Value, ...]]:
        """Return the values of the kept cells, as an argument if there are any."""
        return [self._gather_kept(STORE)] if self._kept else []

    def _call_back(self, *inputs: Any) -> Any:
        """Run a program that calls back into Python, and wait until it has finished."""
        CALLBACKS.append(None)
        try:
            outputs = self._jitted(*inputs)
            jax.block_until_ready(outputs)
            jax.effects_barrier()
        finally:
            CALLBACKS.pop()
        return outputs

    def _run_pure(self, leaves: Leaves) -> Any:
        """Run a program that touches no variable."""
        (result,) = self._jitted((), *leaves)
        return result if self._finish is None else self._finish(result)

    def inline(self, leaves: Sequence[Value]) -> Any:
        """Run as part of what goes on: in another function, under a tape or a transform."""
        frame, staged = LOCAL.frame, self.staged
        for cell in staged.writes:
            frame.check_writable(cell)
        outputs = self._inner([frame.read(cell) for cell in staged.reads], list(leaves))
        n = len(outputs) - len(staged.writes)
        frame.write_all(staged.writes, outputs[n:])
        return staged.rebuild(outputs[:n])

    # ------------------------------------------------------------ looking inside
    def lower(self) -> Any:
        """Return the lowered program."""
        leaves = [jax.ShapeDtypeStruct(s.shape, s.dtype, weak_type=s.weak) for s in self._specs]
        groups = ([cell.aval for cell in cells] for cells in (self._donated, self._kept))
        donated, kept = (tuple(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in g) for g in groups)
        return self._jitted.lower(donated, *([kept] if kept else []), *leaves)


def _check_place() -> None:
    if (DETOUR and LOCAL.frame is not LOCAL.eager) or _trace.current() is not _trace.EVAL:
        raise Elsewhere


def _undo(keys: Sequence[int], old: Sequence[Value]) -> None:
    """Take back a step that a foreign transform staged instead of running."""
    STORE.update(zip(keys, old, strict=True))
    raise Elsewhere


def _gatherer(keys: Sequence[int]) -> Callable[[dict[int, Value]], tuple[Value, ...]]:
    """Return a function that takes these keys' values from a dict, as a tuple, in C."""
    if not keys:
        return lambda _: ()
    if len(keys) == 1:
        (key,) = keys
        return lambda store: (store[key],)
    return itemgetter(*keys)


def cells_of(entry: Entry) -> list[Cell]:
    """Return the cells that a program reads, then those that it only writes."""
    reads = entry.staged.reads
    known = {cell.key for cell in reads}
    return [*reads, *(cell for cell in entry.staged.writes if cell.key not in known)]

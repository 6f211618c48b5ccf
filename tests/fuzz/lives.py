"""Random lives of a model's whole state, beside a model of it in plain NumPy.

    python -m tests.fuzz --lives --minutes 10 --seed 1

A life is a sequence of statements (`lives_moves.py`) over a few small modules (`lives_world.py`):
modules are edited, frozen, trained, copied, saved, restored. After each statement every variable,
slot, average and counter is compared with `lives_model.py`. Where jaxvars may refuse, it must have
changed nothing. A sequence that fails is made small and printed as a program.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import random
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental.compilation_cache import compilation_cache

import jaxvars as jv

from . import lives_world
from .lives_elsewhere import Elsewhere
from .lives_model import AVERAGE, MOMENTUM, SUM, Cell, Either, File, Life, Maybe, Options
from .lives_moves import BLOCKS, MOVES, Move, Skip, World, at

_FORGET_EVERY = 40  # lives: what JAX keeps of each would fill the memory
_INSIDE = {
    "averaged": ["evaluate", "assign", "step", "save", "duplicate", "restore", "fresh", "flag"]
}  # what may be in a block; all if it says nothing
_ALWAYS = ("step", "fresh", "save", "restore")
_AFTER = {  # what often comes next
    "fresh": ("restore",), "fresh_opt": ("restore",), "restore": ("add", "flag", "save", "tie"),
    "add_part": ("trace",), "trace": ("touch",), "add_wide": ("bump",), "flag": ("step",),
}  # fmt: skip
_REFUSALS = (jv.errors.JaxvarsError, ValueError)


class Difference(Exception):  # noqa: N818 - what is looked for
    """Something is not as in the model.

    Attributes:
        kind: what stays the same while a sequence is made smaller.
    """

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind

    def bare(self) -> Difference:
        """Return it without what keeps the objects of its life alive."""
        self.__cause__ = self.__context__ = None
        return self.with_traceback(None)


@dataclass(frozen=True)
class Act:
    """One statement of a sequence: its kind, the names that were chosen, and a block.

    Attributes:
        is_watched: whether all values are looked at after it.
    """

    kind: str
    chosen: tuple[str, ...]
    inner: tuple[Act, ...] = ()
    is_watched: bool = True


Acts = tuple[Act, ...]


def options_of(chooser: random.Random) -> Options:
    rates = {"enc/**": 0.25, "**": 0.5} if chooser.random() < 0.15 else None
    calls = 2 if chooser.random() < 0.35 else None
    return Options(chooser.random() < 0.5, calls, rates, chooser.random() < 0.2)


ELSEWHERE = Elsewhere()


class Run:
    """One sequence, being made or repeated."""

    def __init__(self, options: Options, folder: str) -> None:
        self.world = World(options)
        self.names: dict[str, Any] = {**vars(lives_world), "folder": folder, "__name__": "life"}
        self.names["elsewhere"] = ELSEWHERE
        self.lines: list[str] = []
        self.indent = 0
        self.folder = Path(folder)

    # ------------------------------------------------------------ running
    def statement(self, move: Move) -> None:
        """Run one, and compare what it returns."""
        self.write(move.source)
        try:
            exec(compile(move.source, "<life>", "exec"), self.names)
        except _REFUSALS as error:
            if not move.refusal:
                raise Difference(*_raised(error)) from error
            self.refused(move.source, error)
            move.refused()
            self.look()
            return
        except Exception as error:
            raise Difference(*_raised(error)) from error
        if move.must:
            raise Difference("not refused", move.refusal)
        out = move.effect()
        if out is not None:
            self.compare("out", self.names["out"], out)

    def refused(self, source: str, error: Exception) -> None:
        del self.lines[-1]
        self.write("try:")
        self.write(f"    {source}")
        self.write(f"except Exception: pass  # {type(error).__name__}: {str(error)[:60]!r}")

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def block(self, move: Move, run: Callable[[], None], *, fails: bool) -> None:
        """Run a block, which may end by an exception."""
        if fails:
            self.write("with contextlib.suppress(Boom):")
            self.indent += 1
        self.write(f"with {move.source}:")
        self.indent += 1
        try:
            manager = eval(move.source, self.names)
            manager.__enter__()
        except Exception as error:
            raise Difference(*_raised(error)) from error
        boom = lives_world.Boom() if fails else None
        move.effect()
        try:
            run()
            self.write("raise Boom" if fails else "pass")
        except BaseException as error:
            with contextlib.suppress(BaseException):
                manager.__exit__(type(error), error, error.__traceback__)
            raise
        self.indent -= 1 + fails
        try:
            manager.__exit__(boom and type(boom), boom, None)
        except lives_world.Boom:
            pass
        except Exception as error:
            raise Difference(*_raised(error)) from error
        if move.close is not None:
            move.close(fails)

    # ------------------------------------------------------------ comparing
    def look(self) -> None:
        """Compare everything with the model."""
        for life in self.world.lives.values():
            self._look_at(life)
        for file in self.world.files.values():
            if not hasattr(file, "was_read"):
                self._read(file)
                file.was_read = True  # pyright: ignore[reportAttributeAccessIssue]

    def _look_at(self, life: Life) -> None:
        for path, cell in life.net.everywhere():
            name = at(life, path)
            found = eval(name, self.names)
            if found.trainable != (cell.trainable and cell not in self.world.held()):
                raise Difference("flag", f"{name}.trainable is {found.trainable}")
            if self.world.shown(cell) is cell.value:
                self.settle("value", name, found, cell)
            else:
                self.compare("average", found.value, self.world.shown(cell), name)
        self._look_at_shared(life)
        for path, cell in life.net.walk():
            for kind, slot in life.opt.slots.get(cell, {}).items():
                if life.opt.tells(cell, kind):
                    self._look_at_slot(life, at(life, path), kind, slot)

    def _look_at_shared(self, life: Life) -> None:
        opt = self.names[f"opt{life.number}"]
        inner = getattr(opt, "inner_optimizer", opt)
        rates = opt.learning_rate if life.opt.options.rates else {"": opt.learning_rate}
        held = {f"learning_rate/{k}".rstrip("/"): r for k, r in rates.items()}
        held |= {f"{life.opt.options.inner}shared/{k}": v for k, v in inner.shared.items()}
        for path, cell in life.opt.shared().items():
            found = held[path] if path in held else getattr(opt, path)
            self.compare(f"opt.{path}", found.value, cell.value)

    def _look_at_slot(self, life: Life, owner: str, kind: str, slot: Cell) -> None:
        name = f'opt{life.number}.get_slot({owner}, "{kind}")'
        try:
            found = eval(name, self.names)
        except Exception as error:
            raise Difference(*_raised(error)) from error
        self.settle(f"slot {kind}", name, found, slot)
        variable = eval(owner, self.names)
        is_placed = variable.value.committed  # else each may be where it was computed
        if is_placed and not found.sharding.is_equivalent_to(
            variable.sharding, len(variable.shape)
        ):
            raise Difference("sharding", f"{name}: {found.sharding}, {variable.sharding}")

    def settle(self, kind: str, name: str, variable: Any, cell: Cell) -> None:
        """Compare a variable; where several values are right, take the one that was found."""
        try:
            found = np.asarray(variable.value)
        except Exception as error:
            raise Difference(*_raised(error)) from error
        cell.value = self.compare(kind, found, cell.value, name)
        if isinstance(cell.first, Either):  # or it has been changed since
            cell.first = next((x for x in cell.first.values if _are_close(found, x)), cell.first)

    def compare(self, kind: str, found: Any, expected: Any, name: str = "") -> Any:
        """Return the value that was found, if it is right; raise Difference else."""
        if isinstance(expected, Maybe):
            expected = expected.value
        if isinstance(expected, list):
            return [self.compare(kind, *each) for each in zip(found, expected, strict=True)]
        found = np.asarray(found)
        able = expected.values if isinstance(expected, Either) else (expected,)
        fits = [x for x in able if _are_close(found, np.asarray(x))]
        if not fits:
            wanted = " or ".join(str(np.asarray(x).tolist()) for x in able)
            types = {str(np.asarray(x).dtype) for x in able} | {str(found.dtype)}
            more = f" ({', '.join(sorted(types))})" if len(types) > 1 else ""
            text = f"{name or kind} is {found.tolist()}, not {wanted}{more}"
            raise Difference(kind, text)
        return fits[0]

    def _read(self, file: File) -> None:
        """Compare a file with the model; take over what may be in it."""
        found = jv.checkpoint.load(self.folder / file.name)
        file.window |= _late_in_window(file, found)
        for path, value in file.net.items():
            file.net[path] = self._entry(found, f"net/{path}", value)
        for path, value in file.shared.items():
            file.shared[path] = self._entry(found, f"opt/{path}", value)
        for path, slots in file.slots.items():
            for kind, value in slots.items():
                self._read_slot(file, found, path, kind, value)
        for path in [p for p in found if p.startswith(("net/", file.slots_at))]:
            self._extra(file, path, found.pop(path))

    def _read_slot(
        self, file: File, found: dict[str, Any], path: str, kind: str, value: Any
    ) -> None:
        at = f"{file.slots_at}/{path}/{kind}"
        if isinstance(value, Maybe):
            file.maybe[at] = value
        elif kind == AVERAGE and path not in file.started:
            found.pop(at, None)
        elif kind == SUM and path not in file.window:
            file.slots[path][kind] = found.pop(at, value)
        else:
            file.slots[path][kind] = self._entry(found, at, value)

    def _entry(self, found: dict[str, Any], path: str, value: Any) -> Any:
        if path not in found:
            raise Difference(f"file lacks {path.split('/')[-1]}", path)
        return self.compare("file", found.pop(path), value, path)

    def _extra(self, file: File, path: str, value: Any) -> None:
        owner, _, kind = path.removeprefix(f"{file.slots_at}/").rpartition("/")
        if not path.startswith("net/") and kind not in (MOMENTUM, AVERAGE, SUM):
            return  # something that the model knows nothing of
        if (kind == AVERAGE and owner not in file.started) or (
            kind == SUM and owner not in file.window
        ):
            return
        if path not in file.maybe:
            raise Difference(f"file has {path.split('/')[-1]}", path)
        if file.maybe[path] is None:
            return  # whatever it is, it has not begun
        self.compare("file", value, file.maybe[path], path)
        if path.startswith("net/"):
            file.net[path.removeprefix("net/")] = value
            file.paths[path.removeprefix("net/")] = path.removeprefix("net/")
        else:
            file.slots.setdefault(owner, {})[kind] = value
            file.started |= {owner} if kind == AVERAGE else set()


def _late_in_window(file: File, found: dict[str, Any]) -> set[str]:
    """Return the paths of what waits for variables that is in the window that is open."""
    shared = f"{file.slots_at.removesuffix('slots/net')}shared/windows"
    ends = {p: p.removeprefix(f"{file.slots_at}/").removesuffix("/window") for p in found}
    late = {p: end for p, end in ends.items() if p.endswith("/window") and end not in file.paths}
    return {end for p, end in late.items() if found[p] == found.get(shared)}


def _raised(error: BaseException) -> tuple[str, str]:
    words = " ".join(w for w in str(error).split() if w.isalpha())
    return f"raised {type(error).__name__} {words[:30]}", str(error)[:700]


def _are_close(one: Any, other: Any) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype == np.float32:
        return bool(np.allclose(one, other, rtol=1e-4, atol=1e-4))
    return bool(np.all(one == other))


# ---------------------------------------------------------------- sequences
class Maker:
    """Makes a sequence as it runs."""

    def __init__(self, run: Run, chooser: random.Random, without: Collection[str]) -> None:
        self.run, self.chooser, self.without = run, chooser, without
        self.acts: list[Act] = []
        self.blocks: list[str] = []

    def make(self, size: int) -> None:
        """Run `size` random statements; what was run is in `acts`, also when one fails.

        They are of some kinds alone, in each life of others: what is rare meets more often.
        """
        kinds = [k for k in MOVES if k in _ALWAYS or self.chooser.random() < 0.4]
        kinds = [k for k in kinds if k not in self.without]
        self.blocks = [k for k in BLOCKS if self.chooser.random() < 0.5]
        self._sequence(size, self.acts, 0, kinds)

    def _sequence(self, size: int, acts: list[Act], depth: int, kinds: list[str]) -> None:
        after: tuple[str, ...] = ()
        for _ in range(size):
            able = {k: MOVES[k][1] for k in kinds}
            if depth < 2 and not self.run.world.averaged:
                able |= {k: BLOCKS[k][1] for k in self.blocks}
            kind = self.chooser.choices(list(able), list(able.values()))[0]
            if (after := tuple(k for k in after if k in kinds)) and self.chooser.random() < 0.5:
                kind = self.chooser.choice(after)
            with contextlib.suppress(Skip):
                self._one(kind, acts, depth, kinds)
            after = _AFTER.get(kind, ())

    def _one(self, kind: str, acts: list[Act], depth: int, kinds: list[str]) -> None:
        chosen: list[str] = []
        watched = self.chooser.random() < 0.6

        def pick(names: Iterable[str]) -> str:
            able = list(names)
            if not able:
                raise Skip
            biased = able[0] if self.chooser.random() < 0.3 else self.chooser.choice(able)
            chosen.append(biased)
            return biased

        if kind in MOVES:
            move = MOVES[kind][0](self.run.world, pick)
            acts.append(Act(kind, tuple(chosen), (), watched))
            self.run.statement(move)
        else:
            move = BLOCKS[kind][0](self.run.world, pick)
            fails = self.chooser.random() < 0.4
            inner: list[Act] = []
            acts.append(Act(kind, tuple(chosen), (), watched))
            here, size = len(acts) - 1, self.chooser.randint(1, 3)
            try:
                within = _INSIDE.get(kind, kinds)
                self.run.block(
                    move, lambda: self._sequence(size, inner, depth + 1, within), fails=fails
                )
            finally:
                names = (*chosen, "raise") if fails else tuple(chosen)
                acts[here] = Act(kind, names, tuple(inner), watched)
        if watched or _is_open(self.run.world):
            self.run.look()


def _is_open(world: World) -> bool:
    """Return whether some values are not known: they are looked at before anything else."""
    if any(file.maybe and not hasattr(file, "was_read") for file in world.files.values()):
        return True
    return any(isinstance(c.value, Either) for life in world.lives.values() for c in life.cells())


def repeat(run: Run, acts: Acts) -> None:
    """Run a sequence again; leave out what cannot be run."""
    for act in acts:
        with contextlib.suppress(Skip):
            _repeat_one(run, act)


def _repeat_one(run: Run, act: Act) -> None:
    left = list(act.chosen)

    def pick(names: Iterable[str]) -> str:
        able = list(names)
        is_new = able[:1] and able[0].startswith("#")  # a number that nothing has
        if not left or not (left[0] in able or is_new):
            raise Skip
        return left.pop(0)

    if act.kind in MOVES:
        run.statement(MOVES[act.kind][0](run.world, pick))
    else:
        fails = act.chosen[-1:] == ("raise",)
        move = BLOCKS[act.kind][0](run.world, pick)
        run.block(move, lambda: repeat(run, act.inner), fails=fails)
    if act.is_watched or _is_open(run.world):
        run.look()


HEAD = "from tests.fuzz.lives_world import *  # in the root of the repository"
START: Acts = (Act("fresh", ("#0",)),)
_SAVED: Acts = (*START, Act("step", ("0", "eager", "1.0")), Act("save", ("0", "both", "#1")))
_RESTORED: Acts = (*_SAVED, Act("fresh", ("#2",)), Act("restore", ("2", "1.npz", "both")))
STARTS = [  # many lives begin with what is then seldom met by chance
    START, START, _SAVED, _RESTORED, _RESTORED,
    (*START, Act("build", ("0",)), Act("flag", ("0", "enc/w", "False"))),
    (*START, Act("add_part", ("0", "part", "Lazy()"))),
    (*_SAVED, Act("place", ("0", "2"))),
]  # fmt: skip


@contextlib.contextmanager
def quiet() -> Iterator[str]:
    """Warn of nothing, and give a folder for checkpoints."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        yield folder


def fate(options: Options, acts: Acts) -> tuple[Difference | None, list[str]]:
    """Return how a sequence fails, and its lines."""
    with quiet() as folder:
        run = Run(options, folder)
        try:
            repeat(run, acts)
            run.look()
        except Difference as difference:
            return difference.bare(), run.lines
    return None, run.lines


def born(
    seed: str, size: int = 18, without: Collection[str] = ()
) -> tuple[Options, Acts, Difference | None]:
    """Return a random sequence of at most so many statements, and how it fails."""
    chooser = random.Random(f"life {seed}")
    options, start = options_of(chooser), chooser.choice(STARTS)
    with quiet() as folder:
        run = Run(options, folder)
        maker = Maker(run, chooser, without)
        found: Difference | None = None
        try:
            repeat(run, start)
            maker.make(chooser.randint(4, size))
            run.look()
        except Difference as difference:
            found = difference.bare()
    return options, (*start, *maker.acts), found


# ---------------------------------------------------------------- smaller sequences
def smaller(acts: Acts, first: int = 0) -> Iterator[Acts]:
    """Yield sequences with less in them; the `first` statements stay."""
    size = len(acts) // 2
    while size > 1:
        for i in range(first, len(acts), size):
            yield acts[:i] + acts[i + size :]
        size //= 2
    for i, act in reversed(list(enumerate(acts))):
        if i < first:
            return
        yield acts[:i] + acts[i + 1 :]
        if act.inner:
            yield acts[:i] + act.inner + acts[i + 1 :]
            for inner in smaller(act.inner):
                yield (*acts[:i], replace(act, inner=inner), *acts[i + 1 :])
        if act.chosen[-1:] == ("raise",):
            yield (*acts[:i], replace(act, chosen=act.chosen[:-1]), *acts[i + 1 :])


_SIMPLER = {"compiled": "eager", "pure": "eager", "jitted": "eager", "again": "copied"}


def plainer(acts: Acts) -> Iterator[Acts]:
    for i, act in enumerate(acts):
        for j, name in enumerate(act.chosen):
            if name in _SIMPLER:
                chosen = (*act.chosen[:j], _SIMPLER[name], *act.chosen[j + 1 :])
                yield (*acts[:i], replace(act, chosen=chosen), *acts[i + 1 :])


def fewer(acts: Acts) -> Iterator[Acts]:
    """Yield sequences in which what happened to one life happens to the first one."""
    for i, act in enumerate(acts[1:], 1):
        if act.kind in ("fresh", "duplicate"):
            rest = acts[:i] + acts[i + 1 :]
            yield _renamed(rest, act.chosen[-1].removeprefix("#"), "0")


def _renamed(acts: Acts, old: str, new: str) -> Acts:
    return tuple(
        replace(
            act,
            chosen=tuple(new if name == old else name for name in act.chosen),
            inner=_renamed(act.inner, old, new),
        )
        for act in acts
    )


def shrunk(options: Options, acts: Acts, kind: str, seconds: float) -> tuple[Options, Acts]:
    """Return a small sequence that fails in the same way."""
    until = time.monotonic() + seconds

    def fails(options: Options, acts: Acts) -> bool:
        found, _ = fate(options, acts)
        return found is not None and found.kind == kind

    for change in ({"scaled": False}, {"rates": None}, {"calls": None}, {"ema": False}):
        if replace(options, **change) != options and fails(replace(options, **change), acts):
            options = replace(options, **change)
    while True:
        for candidate in (*smaller(acts, 1), *fewer(acts), *plainer(acts)):
            if time.monotonic() > until:
                return options, acts
            if candidate and fails(options, candidate):
                acts = candidate
                break
        else:
            return options, acts


def report(seed: str, options: Options, acts: Acts, difference: Difference) -> str:
    """Return a failing sequence, made small, as a program."""
    options, acts = shrunk(options, acts, difference.kind, seconds=30)
    found, lines = fate(options, acts)
    text = "\n".join(lines)
    return f"\n--- life {seed}: {found or difference}\n{HEAD}\n{text}\n"


def search(options: argparse.Namespace, share: int) -> Counter[str]:
    """Run one of `options.jobs` shares of all lives; return how many there were."""
    warnings.simplefilter("ignore")
    jax.config.update("jax_disable_most_optimizations", True)
    with compiled_cheaply():
        try:
            return _search(options, share)
        finally:
            ELSEWHERE.close()


@contextlib.contextmanager
def compiled_cheaply() -> Iterator[None]:
    """Compile what one life has compiled not again for another."""
    with tempfile.TemporaryDirectory() as cache:
        settings = {
            "jax_compilation_cache_dir": cache,
            "jax_persistent_cache_min_compile_time_secs": 0.0,
            "jax_persistent_cache_min_entry_size_bytes": -1,
        }
        before = {name: getattr(jax.config, name) for name in settings}
        for name, value in settings.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        try:
            yield
        finally:
            for name, value in before.items():
                jax.config.update(name, value)
            compilation_cache.reset_cache()


def _search(options: argparse.Namespace, share: int) -> Counter[str]:
    end, counts, kinds = time.monotonic() + 60 * options.minutes, Counter[str](), Counter[str]()
    number = share
    while time.monotonic() < end or options.only:
        seed = options.only or f"{options.seed}:{number}"
        made, acts, found = born(seed)
        counts["programs"] += 1
        counts["statements"] += len(acts)
        if found is not None:
            counts["failed"] += 1
            kinds[found.kind] += 1
            if kinds[found.kind] <= 3:
                print(report(seed, made, acts, found), flush=True)
        number += options.jobs
        if options.only:
            break
        if counts["programs"] % _FORGET_EVERY == 0:
            jax.clear_caches()
            gc.collect()
    for kind, n in kinds.most_common():
        print(f"{n:5} {kind}", flush=True)
    return counts

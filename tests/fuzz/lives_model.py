"""The whole state of a model and its optimizer in plain NumPy: what a life must be.

Rules this file keeps:
- nothing of jaxvars is imported: an array belongs to a `Cell`, which is known by identity;
- what waits for a variable belongs to that variable, and what waits for a path to the first
  variable that is made there;
- where two answers are right a value is an `Either`, and what is found decides.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Slots = dict[str, Any]
SUM, AVERAGE, MOMENTUM = "gradient_accumulator", "average", "momentum"


def _on_each(operation: Callable[[Any, Any], Any]) -> Any:
    """Return a method that computes with each value."""
    return lambda one, other: either(*(operation(x, y) for x in one.values for y in _each(other)))


@dataclass(frozen=True)
class Either:
    """Values of which any one is right; what is computed with it is one, too."""

    values: tuple[Any, ...]

    __array_ufunc__ = None  # NumPy's arrays leave arithmetic to it
    __add__ = __radd__ = _on_each(operator.add)
    __mul__ = __rmul__ = _on_each(operator.mul)
    __sub__ = _on_each(operator.sub)
    __rsub__ = _on_each(lambda x, y: y - x)
    __truediv__ = _on_each(operator.truediv)

    def astype(self, dtype: Any) -> Any:
        return either(*(x.astype(dtype) for x in self.values))

    @property
    def dtype(self) -> Any:
        return self.values[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values[0].shape


def _each(value: Any) -> tuple[Any, ...]:
    return value.values if isinstance(value, Either) else (value,)


def zeros_of(value: Any) -> Any:
    return np.zeros_like(_each(value)[0])


def either(*values: Any) -> Any:
    """Return an Either of values, some of which may be one."""
    return Either(tuple(x for value in values for x in _each(value)))


@dataclass(frozen=True)
class Maybe:
    """A value that may wait for something, or not."""

    value: Any


class Cell:
    """A variable: its value, and what is fixed."""

    def __init__(self, value: Any, *, trainable: bool = True) -> None:
        self.value: Any = np.asarray(value)
        self.first = self.value
        self.trainable = trainable
        self.given: tuple[Any, str] = (None, "")  # by which file, and its path there

    @property
    def is_trained(self) -> bool:
        return self.trainable and self.value.dtype == np.float32


class Node(dict[str, Any]):
    """A module, or a list, by the names of what is in it.

    Attributes:
        kind: "Net", "Part", "Lazy" or "list".
    """

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def __init__(self, kind: str, **parts: Any) -> None:
        super().__init__(parts)
        self.kind = kind

    def __reduce__(self) -> Any:
        return _node, (self.kind,), None, None, iter(self.items())

    def walk(self) -> Iterator[tuple[str, Cell]]:
        """Yield each variable under its first path, in the order of jaxvars."""
        seen: set[int] = set()
        holders: list[tuple[str, Node]] = [("", self)]
        while holders:
            path, node = holders.pop(0)
            inner: list[tuple[str, Node]] = []
            yield from node._walk(path, seen, inner)
            holders[:0] = inner

    def _walk(
        self, path: str, seen: set[int], inner: list[tuple[str, Node]]
    ) -> Iterator[tuple[str, Cell]]:
        if id(self) in seen:
            return
        seen.add(id(self))
        for name, child in sorted(self.items()):
            at = f"{path}/{name}".lstrip("/")
            if isinstance(child, Cell) and id(child) not in seen:
                seen.add(id(child))
                yield at, child
            elif isinstance(child, Node) and child.kind == "list":
                yield from child._walk(at, seen, inner)
            elif isinstance(child, Node):
                inner.append((at, child))

    def everywhere(self, path: str = "") -> Iterator[tuple[str, Cell]]:
        """Yield each variable under each of its paths."""
        for name, child in sorted(self.items()):
            at = f"{path}/{name}".lstrip("/")
            if isinstance(child, Node):
                yield from child.everywhere(at)
            else:
                yield at, child

    def nodes(self, path: str = "") -> Iterator[tuple[str, Node]]:
        """Yield all modules and lists below, by path."""
        for name, child in sorted(self.items()):
            if isinstance(child, Node):
                at = f"{path}/{name}".lstrip("/")
                yield at, child
                yield from child.nodes(at)


def _node(kind: str) -> Node:
    return Node(kind)


@dataclass(frozen=True)
class Options:
    """What an optimizer is made with."""

    ema: bool = False
    calls: int | None = None  # gradients that are accumulated
    rates: dict[str, float] | None = None
    scaled: bool = False  # in a LossScaleOptimizer

    def source(self) -> str:
        rate = repr(self.rates).replace("'", '"') if self.rates else "0.5"
        ema = ", use_ema=True, ema_momentum=0.5" if self.ema else ""
        calls = f", gradient_accumulation_steps={self.calls}" if self.calls else ""
        made = f"jv.optimizers.SGD({rate}, momentum=0.5{ema}{calls})"
        scaled = f"jv.optimizers.LossScaleOptimizer({made}, 4.0, dynamic_growth_steps=3)"
        return scaled if self.scaled else made

    @property
    def inner(self) -> str:
        """Where the slots are, in the paths of a checkpoint."""
        return "inner_optimizer/" if self.scaled else ""


@dataclass
class File:
    """What a checkpoint holds, by the paths of variables in the model.

    Attributes:
        has_net, has_opt: what was saved.
        paths: all paths of the variables, and the first ones.
        started: whose averages have begun.
        window: who is in the window of accumulation.
    """

    name: str
    has_net: bool
    has_opt: bool
    slots_at: str = "opt/slots/net"
    net: dict[str, Any] = field(default_factory=dict)
    slots: dict[str, Slots] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    window: set[str] = field(default_factory=set)
    shared: dict[str, Any] = field(default_factory=dict)
    maybe: dict[str, Any] = field(default_factory=dict)

    def slots_begun(self, path: str) -> Slots:
        """Return the slots of a variable, less an average that has not begun."""
        begun = path in self.started
        return {k: v for k, v in self.slots[path].items() if begun or k != AVERAGE}


class Opt:
    """An optimizer: SGD with momentum, perhaps with averages and accumulation."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.iterations = Cell(np.int32(0))
        self.rate = {k: Cell(np.float32(r)) for k, r in (options.rates or {"": 0.5}).items()}
        self.accumulated = Cell(np.int32(0)) if options.calls else None
        self.scale = [Cell(np.float32(4)), Cell(np.int32(0))] if options.scaled else []
        self.slots: dict[Cell, dict[str, Cell]] = {}
        self.waiting: dict[Cell, Slots] = {}
        self.started: set[Cell] = set()
        self.window: set[Cell] = set()
        self.tried: set[Cell] = set()  # there may be slots of them: a step was refused
        self.rules: dict[Cell, str] = {}
        self.begun: tuple[set[Cell], set[Cell]] = set(), set()  # when it was made
        self.alone: File | None = None  # restored by a Checkpoint of its own, before the model's

    def shared(self) -> dict[str, Cell]:
        """Return what belongs to no variable, by path in a checkpoint."""
        found = {"iterations": self.iterations}
        if self.accumulated is not None:
            found[f"{self.options.inner}shared/accumulated"] = self.accumulated
        found |= dict(zip(("dynamic_scale", "step_counter"), self.scale, strict=False))
        at = {k: f"learning_rate/{k}".rstrip("/") for k in self.rate}
        return found | {at[k]: cell for k, cell in self.rate.items()}

    def kinds(self) -> list[str]:
        both = [AVERAGE] * self.options.ema + [SUM] * bool(self.options.calls)
        return [MOMENTUM, *both]

    def meet(self, cell: Cell) -> None:
        """Make the slots of a variable that is new to it; they take what waits."""
        if cell in self.slots:
            return
        zeros = zeros_of(cell.value)
        made = {k: Cell(cell.value if k == AVERAGE else zeros) for k in self.kinds()}
        for kind, value in self.waiting.pop(cell, {}).items():
            if isinstance(value, Maybe):
                value = either(made[kind].value, value.value)
            made[kind].value = made[kind].first = value
            if kind == AVERAGE:
                self.started.add(cell)
        self.slots[cell] = made

    def tells(self, cell: Cell, kind: str) -> bool:
        """Return whether it is said what is in a slot: not before something has begun."""
        begun = {AVERAGE: self.started, SUM: self.window}
        return kind == MOMENTUM or cell in begun[kind]

    def rate_of(self, cell: Cell) -> Any:
        return self.rate[self.rules.get(cell, "**") if self.options.rates else ""].value

    def average_of(self, cell: Cell) -> Any:
        """Return what a variable is inside of `averaged()`."""
        if cell in self.slots and cell in self.started:
            return self.slots[cell][AVERAGE].value
        return cell.value

    # ------------------------------------------------------------ steps
    def is_other_window(self, trained: Iterable[Cell]) -> bool:
        """Return whether a step is in the middle of a window of other variables."""
        at = self.accumulated
        return at is not None and int(at.value) != 0 and set(trained) != self.window

    def step(self, trained: list[Cell], x: float) -> None:
        """Update some variables by the gradients of the loss."""
        for cell in trained:
            self.meet(cell)
        for scale, number in [self.scale] if self.scale else []:
            is_grown = int(number.value) == 2
            scale.value = np.float32(scale.value * (2 if is_grown else 1))
            number.value = np.int32(0 if is_grown else number.value + 1)
        grads = {cell: (cell.value - np.float32(x)).astype(np.float32) for cell in trained}
        calls = self.options.calls
        if calls is None or self.accumulated is None:
            self._update(grads)
            return
        if int(self.accumulated.value) == 0:
            self.window = set(trained)
            self._forget_sums()
        known, self.window = self.window, set(trained)
        sums = {c: g + (self.slots[c][SUM].value if c in known else 0) for c, g in grads.items()}
        count = (int(self.accumulated.value) + 1) % calls
        self.accumulated.value = np.int32(count)
        for cell, value in sums.items():
            self.slots[cell][SUM].value = zeros_of(value) if count == 0 else value
        if count == 0:
            self._update({cell: g / np.float32(calls) for cell, g in sums.items()})

    def _forget_sums(self) -> None:
        for slots in self.slots.values():
            slots[SUM].value = zeros_of(slots[SUM].value)
        for waits in self.waiting.values():
            waits.pop(SUM, None)

    def _update(self, grads: dict[Cell, Any]) -> None:
        is_first = int(self.iterations.value) == 0
        for cell, grad in grads.items():
            slots, old = self.slots[cell], cell.value
            velocity = slots[MOMENTUM].value * np.float32(0.5) - grad * self.rate_of(cell)
            slots[MOMENTUM].value = velocity.astype(np.float32)
            cell.value = (old + velocity).astype(np.float32)
            if self.options.ema:
                slots[AVERAGE].value = self._averaged(cell, old, is_first)
                self.started.add(cell)
        self.iterations.value = np.int32(self.iterations.value + 1)

    def _averaged(self, cell: Cell, old: Any, is_first: bool) -> Any:
        new, half = cell.value, np.float32(0.5)
        if is_first:
            return new
        if cell not in self.started:
            return either(half * old + half * new, new)
        return half * self.slots[cell][AVERAGE].value + half * new


class Life:
    """A model, its optimizer, and what waits for variables that there are not."""

    def __init__(self, number: int, options: Options) -> None:
        f32 = np.float32
        self.number = number
        self.net = Node(
            "Net",
            a=Cell(np.array([1, 2], f32)),
            enc=Node("Part", w=Cell(np.array([3, 4], f32))),
            head=Node("Part", w=Cell(np.array([5, 6], f32))),
        )
        self.opt = Opt(options)
        self.pending: dict[str, Any] = {}
        self.pending_slots: dict[str, Slots] = {}
        self.program: str | None = None  # its compiled step
        self.doubtful = False  # a first call of a lazy module was refused

    def trained(self, frozen: set[Cell]) -> list[Cell]:
        return [c for _, c in self.net.walk() if c.is_trained and c not in frozen]

    def cells(self) -> Iterator[Cell]:
        """Yield all that has a value."""
        yield from (cell for _, cell in self.net.walk())
        yield from self.opt.shared().values()
        yield from (c for slots in self.opt.slots.values() for c in slots.values())

    def loss(self, x: float) -> Any:
        cells = [c for _, c in self.net.walk() if c.value.dtype == np.float32]
        if any(isinstance(c.value, Either) for c in cells):
            return None  # not compared
        return sum(np.sum((c.value - np.float32(x)) ** 2) for c in cells) / 2

    def tidy(self) -> None:
        """Forget variables that are not in the model any more."""
        there = {cell for _, cell in self.net.everywhere()}
        opt = self.opt
        opt.slots = {c: s for c, s in opt.slots.items() if c in there}
        opt.waiting = {c: s for c, s in opt.waiting.items() if c in there}
        opt.started, opt.window = opt.started & there, opt.window & there
        opt.tried &= there

    def welcome(self, path: str, cell: Cell) -> None:
        """Give a new variable what waits for its path."""
        if path not in self.pending:
            return
        waits = self.pending.pop(path)
        slots = self.pending_slots.pop(path, {})
        is_certain = not isinstance(waits, Maybe)
        cell.value = cell.first = waits if is_certain else either(cell.value, waits.value)
        if slots:
            self.opt.waiting[cell] = slots

    # ------------------------------------------------------------ checkpoints
    def save(self, name: str, has_net: bool, has_opt: bool) -> File:
        opt = self.opt
        file = File(name, has_net, has_opt, f"opt/{opt.options.inner}slots/net")
        firsts = {cell: path for path, cell in self.net.walk()}
        file.paths = {path: firsts[cell] for path, cell in self.net.everywhere()}
        file.net = {path: cell.value for cell, path in firsts.items()}
        if has_opt:
            file.shared = {path: cell.value for path, cell in opt.shared().items()}
            for cell, path in firsts.items():
                self._save_slots(file, cell, path)
            file.window = {firsts[c] for c in opt.window if c in firsts}
        maybe = {f"net/{p}": v for p, v in self.pending.items()}
        for path, slots in self.pending_slots.items():
            at = f"opt/{opt.options.inner}slots/net/{path}"
            maybe |= {f"{at}/{k}": v for k, v in slots.items()}
        tried = {firsts[c]: c for c in opt.tried - opt.slots.keys() if c in firsts and has_opt}
        for path in tried:
            at = f"{file.slots_at}/{path}"
            maybe |= {f"{at}/{kind}": None for kind in (MOMENTUM, SUM, AVERAGE)}
            maybe[f"{at}/{MOMENTUM}"] = zeros_of(tried[path].value)
        file.maybe = maybe
        return file

    def _save_slots(self, file: File, cell: Cell, path: str) -> None:
        known = self.opt.slots.get(cell)
        slots = {k: c.value for k, c in known.items()} if known else self.opt.waiting.get(cell, {})
        if slots:
            file.slots[path] = dict(slots)
        if cell in self.opt.started or (not known and AVERAGE in slots):
            file.started.add(path)

    def has_half_begun(self, file: File) -> bool:
        """Return whether of the averages for a variable in a file some have begun."""
        begun: dict[Cell, set[bool]] = {}
        for path, cell in self.owners(file).items() if file.started else ():
            if path in file.net:
                begun.setdefault(cell, set()).add(path in file.started)
        return any(len(each) > 1 for each in begun.values())

    def has_foreign_sums(self, file: File) -> bool:
        """Return whether sums of a window would be left in the middle of one of a file."""
        there = self.owners(file)
        known = {there[path] for path in file.slots if path in there}
        is_open = any(path.endswith("accumulated") and x for path, x in file.shared.items())
        left = self.opt.window & {*self.opt.slots, *self.opt.waiting}
        return is_open and not left <= known

    def has_moved(self, file: File) -> bool:
        """Return whether a variable has moved since it was given a value of a file."""
        paths: dict[Cell, set[str]] = {}
        for path, cell in self.net.everywhere():
            paths.setdefault(cell, set()).add(path)
        return any(c.given[0] is file and c.given[1] not in at for c, at in paths.items())

    def is_ambiguous(self, file: File) -> bool:
        """Return whether a variable had other paths when a file was written."""
        there = {path: cell for path, cell in self.net.everywhere() if path in file.paths}
        firsts = {(cell, file.paths[path]) for path, cell in there.items()}
        return len(firsts) != len(set(there.values())) or len(firsts) != len({f for _, f in firsts})

    def misfits(self, file: File) -> set[bool]:
        """Return, for each variable with a value that does not fit, whether another one does."""
        there = self.owners(file)
        fits: dict[Cell, set[bool]] = {}
        for path, value in file.net.items():
            if path in there:
                now = there[path].value
                is_fit = now.shape == value.shape and now.dtype == value.dtype
                fits.setdefault(there[path], set()).add(is_fit)
        return {True in each for each in fits.values() if False in each}

    def owners(self, file: File) -> dict[str, Cell]:
        """Return the variables by path: also by one in a file, of what had several when saved."""
        there = dict(self.net.everywhere())
        known = {there[path] for path in file.net if path in there}
        heirs: dict[str, set[Cell]] = {}
        for path, first in file.paths.items():
            if path in there and there[path] not in known and first not in there:
                heirs.setdefault(first, set()).add(there[path])
        several = [cell for cells in heirs.values() for cell in cells]
        one = {first: cells.pop() for first, cells in heirs.items() if len(cells) == 1}
        return there | {first: cell for first, cell in one.items() if several.count(cell) == 1}

    def restore(self, file: File, has_net: bool, has_opt: bool) -> None:
        there = self.owners(file)
        has_net, has_opt = has_net and file.has_net, has_opt and file.has_opt
        if has_net:
            self._restore_net(file, there)
        if not has_opt:
            self._meet_again(file, there)
            return
        for path, cell in self.opt.shared().items():
            cell.value = file.shared[path]
        found = self._find_slots(file, there)
        for path, first in file.paths.items():  # it has a value by another path, perhaps slots
            cell, slots = there.get(path), file.slots.get(first, {})
            is_known = cell is None or cell in found or cell in self.opt.slots or first in there
            if cell is not None and not is_known and MOMENTUM in slots:
                self.opt.waiting[cell] = {MOMENTUM: Maybe(slots[MOMENTUM])}
        for cell, each in found.items():
            self._restore_slots(cell, _any_of(each))
        self.opt.window = {there[p] for p in file.window if p in there}

    def _meet_again(self, file: File, there: dict[str, Cell]) -> None:
        """Let slots of a file wait on, that an optimizer was given without its variables.

        They are of any variable that the same file is restored into, and of none if that is gone.
        """
        for path in file.slots if self.opt.alone is file else ():
            cell = there.get(path)
            if cell is not None and not {*self.opt.slots, *self.opt.waiting} & {cell}:
                self.opt.waiting[cell] = {k: Maybe(v) for k, v in file.slots_begun(path).items()}

    def _find_slots(self, file: File, there: dict[str, Cell]) -> dict[Cell, list[Slots]]:
        """Return the slots in a file for each variable; note those that wait."""
        found: dict[Cell, list[Slots]] = {}
        for path in file.slots:
            slots = file.slots_begun(path)
            if path in there:
                found.setdefault(there[path], []).append(slots)
            else:
                self.pending_slots[path] = slots
        without = {there[path] for path in file.net.keys() & there.keys() - file.slots.keys()}
        for cell in without & found.keys():  # it was several variables, one without slots
            found[cell] = [{k: Maybe(v) for k, v in _any_of(found[cell]).items()}]
        for path in file.slots:  # of the others some may go on to wait
            if path in there and len(found[there[path]]) > 1:
                self.pending_slots[path] = {k: Maybe(v) for k, v in file.slots_begun(path).items()}
        return found

    def _restore_net(self, file: File, there: dict[str, Cell]) -> None:
        found: dict[Cell, list[Any]] = {}
        for path, value in file.net.items():
            if path in there:
                found.setdefault(there[path], []).append(value)
            else:
                self.pending[path] = value
        for path in file.net.keys() & there.keys():
            there[path].given = file, path
        for cell, values in found.items():
            cell.value = values[0] if len(values) == 1 else either(*values)
        for path, value in file.net.items():  # of the others one may go on to wait
            if len(found.get(there.get(path), ())) > 1:
                self.pending[path] = Maybe(value)
        for first in file.net.keys() & self.pending.keys() & there.keys():  # another takes it
            self.pending[first] = Maybe(_value_of(self.pending[first]))
        for path, first in file.paths.items():  # it was the same variable, and is not any more
            cell = there.get(path)
            if cell is not None and there.get(first) is not cell and first in file.net:
                cell.value = either(cell.value, file.net[first])

    def _restore_slots(self, cell: Cell, slots: Slots) -> None:
        opt = self.opt
        if cell not in opt.slots:
            opt.waiting[cell] = slots
            return
        for kind, value in slots.items():
            is_sure = not isinstance(value, Maybe)
            known = opt.slots[cell][kind]
            known.value = value if is_sure else either(known.value, value.value)
        if AVERAGE not in slots:
            opt.started.discard(cell)
        else:
            opt.started.add(cell)


def _value_of(waits: Any) -> Any:
    return waits.value if isinstance(waits, Maybe) else waits


def _any_of(each: list[Slots]) -> Slots:
    """Return slots of which any are right."""
    if len(each) == 1:
        return each[0]
    kinds = {kind for slots in each for kind in slots}
    return {k: either(*(slots[k] for slots in each if k in slots)) for k in kinds}

"""What can happen in a life: the line of Python, and what it does to the model in NumPy.

A move is a function of the world and of `pick`, which chooses among names; that it chooses names,
and not numbers of something in a list, lets a sequence be replayed with parts left out. The first
name is the simplest.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from .lives_model import Cell, File, Life, Maybe, Node, Options, zeros_of

Pick = Callable[[Iterable[str]], str]


AVERAGED = "averages are shown"


class Skip(Exception):  # noqa: N818 - no error: the move cannot be made here
    """A move that cannot be made now."""


@dataclass
class Move:
    """One statement.

    Attributes:
        source: the Python.
        effect: does the same to the model in NumPy; returns what the variable `out` is.
        refusal: why jaxvars may refuse, and change nothing; "" where it may not.
        must: whether it must refuse.
        close: for a block, what its end does; it is told whether an exception ended it.
    """

    source: str
    effect: Callable[[], Any] = lambda: None
    refusal: str = ""
    must: bool = False
    close: Callable[[bool], None] | None = None
    refused: Callable[[], None] = lambda: None


@dataclass
class World:
    """All lives, and what is open around a statement."""

    options: Options
    lives: dict[int, Life] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)
    frozen: list[set[Cell]] = field(default_factory=list)
    averaged: list[tuple[Life, dict[Cell, Any]]] = field(default_factory=list)
    wide: int = 0
    numbers: Any = field(default_factory=count)
    transactions: int = 0  # that are open

    def life(self, pick: Pick, able: Callable[[Life], Any] | None = None) -> Life:
        """Return one of the lives, the newest first, that are able to do something."""
        able = able or (lambda life: not life.doubtful)
        return self.lives[int(pick(str(n) for n, x in reversed(self.lives.items()) if able(x)))]

    def number(self, pick: Pick) -> int:
        """Return a number that nothing has; it stays the same when a sequence is repeated."""
        return int(pick([f"#{next(self.numbers)}"])[1:])

    def held(self) -> set[Cell]:
        return set().union(*self.frozen)

    def shown(self, cell: Cell) -> Any:
        """Return what a variable is seen as: its average inside of `averaged()`."""
        return next((x[cell] for _, x in reversed(self.averaged) if cell in x), cell.value)

    def is_averaged(self, life: Life) -> bool:
        return any(x is life for x, _ in self.averaged)

    def unknown(self, life: Life) -> bool:
        """Return whether a step would meet variables that the optimizer does not know."""
        return any(c not in life.opt.slots for c in life.trained(self.held()))


def at(life: Life, path: str) -> str:
    """Return the Python for something in a model."""
    parts = (f"[{p}]" if p.isdigit() else f".{p}" for p in path.split("/") if p)
    return f"net{life.number}" + "".join(parts)


def both(life: Life) -> str:
    return f"net=net{life.number}, opt=opt{life.number}"


def array_of(values: list[float]) -> str:
    return f"np.array({values if len(values) > 1 else values[0]}, np.float32)"


def holder(life: Life, path: str) -> Node:
    found: Any = life.net
    for part in filter(None, path.split("/")):
        found = found[part]
    return found


def floats(life: Life) -> list[str]:
    return [p for p, c in life.net.walk() if c.value.dtype == np.float32]


def lazies(life: Life) -> list[tuple[str, Node]]:
    return [(p, n) for p, n in life.net.nodes() if n.kind == "Lazy" and "w" not in n]


def wake(life: Life) -> None:
    """Make the variables of lazy modules, as their first call does."""
    for path, node in lazies(life):
        node["w"] = Cell(np.array([8, 9], np.float32))
        life.welcome(f"{path}/w", node["w"])
    life.doubtful = False


def _edited(life: Life) -> None:
    life.program = None
    life.tidy()


# ---------------------------------------------------------------- values
def assign(w: World, pick: Pick) -> Move:
    life = w.life(pick)
    path = pick(floats(life))
    cell = dict(life.net.walk())[path]
    value = np.array([0.25, -3.0], np.float32) if cell.value.shape else np.float32(0.25)

    def effect() -> None:
        cell.value = value

    given = array_of(np.atleast_1d(value).tolist())
    return Move(f"{at(life, path)}.assign({given})", effect, AVERAGED * w.is_averaged(life))


def bump(w: World, pick: Pick) -> Move:
    """Add to a variable of 64 bits."""
    life = w.life(pick, lambda x: "wide" in x.net and not x.doubtful)
    path = pick(p for p, c in life.net.walk() if c.value.dtype.itemsize == 8)
    cell = dict(life.net.walk())[path]

    def effect() -> None:
        cell.value = cell.value + cell.value.dtype.type(1)

    why = "" if w.wide else "64 bits are off"
    return Move(f"{at(life, path)}.assign_add(1)", effect, why)


def evaluate(w: World, pick: Pick) -> Move:
    life = w.life(pick)
    way = pick(["values({})", "jv.compile(values)({})"])

    def effect() -> list[Any]:
        cells = [c for _, c in life.net.walk() if c.value.dtype == np.float32]
        return [w.shown(c) for c in cells]

    return Move(f"out = {way.format(f'net{life.number}')}", effect)


# ---------------------------------------------------------------- steps
WAYS = ("eager", "compiled", "pure", "jitted")


def step(w: World, pick: Pick) -> Move:
    life, way, x = w.life(pick), pick(WAYS), pick(["1.0", "-2.0"])
    trained = life.trained(w.held())
    if not trained:
        raise Skip
    n = life.number
    call = f"net{n}, opt{n}, {x}"
    source = {
        "eager": f"out = step({call})",
        "compiled": f"out = step{n}({call})",
        "pure": f"out, s = jv.functionalize(step)(jv.State.of({both(life)}), {call})",
        "jitted": f"out, s = jax.jit(jv.functionalize(lambda x: step(net{n}, opt{n}, x)))"
        f"(jv.State.of({both(life)}), {x})",
    }[way]
    if way in ("pure", "jitted"):
        source += "; s.commit()"
    if way == "compiled" and life.program is None:
        source = f"step{n} = jv.compile(step); {source}"
    is_first = bool(life.opt.options.rates) and not life.opt.slots and not _rules(life)[1]
    if is_first:  # rules are by path
        source = f"opt{n}.build(net{n}); {source}"

    def effect() -> Any:
        if is_first:
            _built(life, trained)
        wake(life)
        out = life.loss(float(x))
        life.opt.step(trained, float(x))
        life.program = life.program or ("compiled" if way == "compiled" else None)
        return out

    def refused() -> None:
        life.opt.tried |= set(trained)
        life.doubtful = bool(lazies(life))
        if way == "compiled":
            life.program = "compiled"

    return Move(source, effect, _why_refused(w, life, way, trained), refused=refused)


def _why_refused(w: World, life: Life, way: str, trained: list[Cell]) -> str:
    """Return why a step may be refused; "" when it must not be."""
    if w.is_averaged(life):
        return AVERAGED
    is_pure = way in ("pure", "jitted")
    rules = life.opt.options.rates and any(c not in life.opt.rules for c in trained)
    is_first = rules and not life.opt.slots and not _rules(life)[1]
    late = w.unknown(life) and not is_first and (is_pure or (way == "compiled" and life.program))
    reasons = {
        "another window": life.opt.is_other_window(trained),
        "created too late": late or (way != "eager" and lazies(life)),
        "no path": rules and not is_first,
        "64 bits are off": is_pure and not w.wide and "wide" in life.net,
    }
    return next((why for why, holds in reasons.items() if holds), "")


def plan(w: World, pick: Pick) -> Move:
    """Trace a step, and come to nothing."""
    life = w.life(pick)
    n = life.number
    if not life.trained(w.held()):
        raise Skip
    call = f"net{n}, opt{n}, 1.0"
    source = pick([
        f"jv.plan(jv.compile(step), {call})", f"jax.jit(lambda x: step(net{n}, opt{n}, x))(1.0)",
        f"jv.functionalize(step)(jv.State.of({both(life)}), {call})",
        f"jax.eval_shape(jv.functionalize(step), jv.State.of({both(life)}), {call})",
    ])  # fmt: skip

    def effect() -> None:
        life.opt.tried |= set(life.trained(w.held()))
        life.doubtful = bool(lazies(life))

    return Move(source, effect, "in a trace", refused=effect)


# ---------------------------------------------------------------- what is trained
def flag(w: World, pick: Pick) -> Move:
    life = w.life(pick)
    path, new = pick(floats(life)), pick(["False", "True"])
    cell = dict(life.net.walk())[path]

    def effect() -> None:
        cell.trainable = new == "True"

    return Move(f"{at(life, path)}.trainable = {new}", effect)


def freeze(w: World, pick: Pick) -> Move:
    life = w.life(pick)
    names = [n for n, node in life.net.items() if isinstance(node, Node) and node]
    name = pick(sorted(names))
    found = {c for p, c in life.net.everywhere() if p.startswith(f"{name}/")}
    if not found:
        raise Skip
    n = life.number
    what = pick([f"net{n}.{name}", f'net{n}.select("{name}/**")'])
    return Move(
        f"jv.freeze({what})", lambda: w.frozen.append(found), close=lambda _: _pop(w.frozen)
    )


def _pop(items: list[Any]) -> None:
    items.pop()


# ---------------------------------------------------------------- the model
def add(w: World, pick: Pick) -> Move:
    """Put a new variable somewhere, in the place of another one or of nothing."""
    life = w.life(pick)
    where = pick(["", *(p for p, n in life.net.nodes() if n.kind == "Part")])
    node = holder(life, where)
    name = pick([*(n for n, child in node.items() if isinstance(child, Cell)), "extra"])
    values = {"two": [7.0, 7.5], "one": [0.75]}[pick(["two", "one"])]
    named = pick(["", ', name="w"'])
    path = f"{where}/{name}".lstrip("/")
    cell = Cell(np.array(values if len(values) > 1 else values[0], np.float32))

    def effect() -> None:
        node[name] = cell
        life.welcome(path, cell)
        _edited(life)

    source = f"{at(life, path)} = jv.Variable({array_of(values)}{named})"
    return Move(source, effect, _what_waits(life, path, cell))


def _what_waits(life: Life, path: str, cell: Cell) -> str:
    """Return why what waits for a new variable may be refused; Skip where it does not fit."""
    if path not in life.pending:
        return ""
    waits = life.pending[path]
    value = zeros_of(waits.value if isinstance(waits, Maybe) else waits)
    if (value.shape, value.dtype) != (cell.value.shape, cell.value.dtype):
        raise Skip
    return "does not fit"


def add_part(w: World, pick: Pick) -> Move:
    life = w.life(pick)
    name = pick(n for n in ["part", "head", "enc"] if not isinstance(life.net.get(n), Cell))
    kind = pick(["Part(7.0, 8.0)", "Lazy()", "Lazy(jax.numpy.array)"])
    cell = Cell(np.array([7, 8], np.float32))

    def effect() -> None:
        waits = life.pending.get(f"{name}/w")
        if name in life.net and waits is not None:  # it may wait for the old part's
            life.pending[f"{name}/w"] = _maybe(waits)
        life.net[name] = Node("Lazy") if kind[:4] == "Lazy" else Node("Part", w=cell)
        if kind[:4] != "Lazy":
            life.welcome(f"{name}/w", cell)
        _edited(life)

    why = _what_waits(life, f"{name}/w", cell)
    return Move(f"net{life.number}.{name} = {kind}", effect, why)


def add_wide(w: World, pick: Pick) -> Move:
    if not w.wide:
        raise Skip
    life = w.life(pick)
    made = pick(["np.int64(2**40 + 1)", "np.float64(0.1)"])
    cell = Cell(eval(made, {"np": np}), trainable=False)

    def effect() -> None:
        life.net["wide"] = cell
        life.welcome("wide", cell)
        _edited(life)

    source = f"net{life.number}.wide = jv.Variable({made}, trainable=False)"
    return Move(source, effect, _what_waits(life, "wide", cell))


def tie(w: World, pick: Pick) -> Move:
    """Give a variable, or a module, another path."""
    life = w.life(pick)
    net, n = life.net, life.number
    parts = sorted(k for k, node in net.items() if isinstance(node, Node) and node.kind == "Part")
    source = pick(parts)
    form = pick(["weight", "module", "list"])
    if form == "weight":
        target = pick(p for p in ["head", "enc", "part"] if p in parts and p != source)
        node, name, child = net[target], "w", net[source].get("w")
        text = f"net{n}.{target}.w = net{n}.{source}.w"
    elif form == "module":
        node, name, child = net, "copy", net[source]
        text = f"net{n}.copy = net{n}.{source}"
    else:
        node, name, child = net, "all", Node("list", **{"0": net[source]})
        text = f"net{n}.all = [net{n}.{source}]"
    if child is None or type(node.get(name, child)) is not type(child):
        raise Skip
    if any(path.startswith(f"{source}/") for path in life.pending):
        raise Skip  # what waits in the module is known by another path, too

    def effect() -> None:
        node[name] = child
        _edited(life)

    return Move(text, effect)


def remove(w: World, pick: Pick) -> Move:
    life = w.life(pick)
    cells = [p for p, _ in life.net.everywhere() if not p.split("/")[-1].isdigit()]
    path = pick([*life.net, *(p for p in cells if "/" in p and "all/" not in p)])
    where, _, name = path.rpartition("/")
    node = holder(life, where)
    kept = {c for p, c in life.net.everywhere() if p != path and not p.startswith(f"{path}/")}
    if not any(c.is_trained for c in kept):
        raise Skip

    def effect() -> None:
        del node[name]
        _edited(life)

    return Move(f"del {at(life, path)}", effect)


def touch(w: World, pick: Pick) -> Move:
    """Call lazy modules, which makes their variables."""
    life = w.life(pick, lazies)
    n = life.number
    way = pick([f"loss(net{n}, 1.0)", f"jv.compile(loss)(net{n}, 1.0)"])

    def effect() -> Any:
        wake(life)
        life.program = None
        return life.loss(1.0)

    return Move(f"out = {way}", effect)


TRACES = (
    "jax.jit({0})()",
    "jv.functionalize({0})(jv.State.of({1}))",
    "jax.grad(lambda x: ({0}() * x).sum())(1.0)",
    "jv.vectorized_map(lambda x: {0}() * x, np.ones(2, np.float32))",
    "jv.recompute({0})()",
    "jv.cond(True, {0}, lambda: np.zeros(2, np.float32))",
    "jv.compile(lambda p: jv.cond(p, {0}, lambda: np.zeros(2, np.float32)))(True)",
    "jv.scan(lambda c, _: (c + {0}(), None), np.zeros(2, np.float32), None, length=2)",
    "jv.custom_gradient(lambda x: ({0}() * x, lambda up: up))(np.ones(2, np.float32))",
    "jax.vmap(lambda x: {0}() * x)(np.ones(2, np.float32))",
    "jax.eval_shape({0})",
    "jv.compile(lambda: [{0}(), fail()])()",
    "jax.jit(lambda: [{0}(), fail()])()",
)


def trace(w: World, pick: Pick) -> Move:
    """Call a lazy module for the first time in a trace; that may be refused."""
    life = w.life(pick, lazies)
    path = pick(p for p, _ in lazies(life))
    form = pick(TRACES)

    def effect() -> None:
        life.doubtful = True

    source = form.format(at(life, path), f"net{life.number}")
    return Move(source, effect, "in a trace", refused=effect)


# ---------------------------------------------------------------- the optimizer
def fresh_opt(w: World, pick: Pick) -> Move:
    life = w.life(pick)

    def effect() -> None:
        life.opt = type(life.opt)(w.options)
        life.pending_slots = {}
        life.program = None

    return Move(f"opt{life.number} = {w.options.source()}", effect)


def build(w: World, pick: Pick) -> Move:
    life = w.life(pick)
    trained = life.trained(w.held())
    if not trained:
        raise Skip
    doubt = "known by another name" if life.opt.slots else "rules" if _rules(life)[1] else ""
    why = doubt or ("traced before" if life.opt.tried else "")
    source = f"opt{life.number}.build(net{life.number})"
    return Move(source, lambda: _built(life, trained), why)


def _built(life: Life, trained: list[Cell]) -> None:
    rules, _ = _rules(life)
    life.opt.rules |= {c: r for c, r in rules.items() if c in trained}
    for cell in trained:
        life.opt.meet(cell)


def _rules(life: Life) -> tuple[dict[Cell, str], bool]:
    """Return the first rule for each variable, and whether there is a doubt."""
    if not life.opt.options.rates:
        return {}, False
    each: dict[Cell, set[str]] = {}
    for path, cell in life.net.everywhere():
        rule = next(r for r in life.opt.rate if r == "**" or path.startswith(r[:-2]))
        each.setdefault(cell, set()).add(rule)
    first = {c: next(r for r in life.opt.rate if r in found) for c, found in each.items()}
    is_idle = set(first.values()) != set(life.opt.rate)
    return first, is_idle or any(len(found) > 1 for found in each.values())


def set_rate(w: World, pick: Pick) -> Move:
    life = w.life(pick)
    if life.opt.options.rates:
        raise Skip

    def effect() -> None:
        life.opt.rate[""].value = np.float32(0.25)

    return Move(f"opt{life.number}.learning_rate = 0.25", effect)


def swap(w: World, pick: Pick) -> Move:
    """Evaluate with the averages."""
    if not w.options.ema:
        raise Skip
    # Where averages wait it is refused.
    life = w.life(pick, lambda x: x.opt.slots and not x.doubtful and not x.opt.waiting)

    def effect() -> None:
        w.averaged.append((life, {cell: life.opt.average_of(cell) for cell in life.opt.started}))

    return Move(f"opt{life.number}.averaged()", effect, close=lambda _: _pop(w.averaged))


# ---------------------------------------------------------------- lives
def _begin(w: World, life: Life) -> None:
    w.lives[life.number] = life
    while len(w.lives) > 2:
        del w.lives[next(iter(w.lives))]


def _dropped(w: World) -> str:
    oldest = list(w.lives)[:-1] if len(w.lives) > 1 else []
    return "".join(f"; del net{n}, opt{n}" for n in oldest)


def fresh(w: World, pick: Pick) -> Move:
    n = w.number(pick)
    life = Life(n, w.options)
    source = f"net{n}, opt{n} = Net(), {w.options.source()}{_dropped(w)}"
    return Move(source, lambda: _begin(w, life))


def duplicate(w: World, pick: Pick) -> Move:
    life = w.life(pick)
    way, what = pick(["copied", "again"]), pick(["net"] if w.is_averaged(life) else ["both", "net"])
    n = w.number(pick)

    def effect() -> None:
        made = copy.deepcopy(life)
        made.number, made.program, made.opt.alone = n, None, life.opt.alone
        for cell in made.cells():
            cell.first = cell.value
        made.pending = {p: _maybe(v) for p, v in made.pending.items()}
        made.pending_slots = {
            p: {k: _maybe(v) for k, v in slots.items()} for p, slots in made.pending_slots.items()
        }
        if what == "net":
            for (_, cell), (_, new) in zip(life.net.walk(), made.net.walk(), strict=True):
                new.value = new.first = w.shown(cell)
            made.opt, made.pending_slots = type(life.opt)(w.options), {}
        made.opt.begun = set(made.opt.started), set(made.opt.window)
        _begin(w, made)

    o = life.number
    source = (
        f"net{n}, opt{n} = {way}((net{o}, opt{o}))"
        if what == "both"
        else f"net{n}, opt{n} = {way}(net{o}), {w.options.source()}"
    )
    return Move(source + _dropped(w), effect)


def _maybe(value: Any) -> Any:
    return value if isinstance(value, Maybe) else Maybe(value)


def place(w: World, pick: Pick) -> Move:
    life, size = w.life(pick), pick(["2", "4"])
    n = life.number
    rule = 'jv.parallel.fully_sharded("data")'
    return Move(f"jv.place(net{n}, {rule}, mesh=mesh({size}), optimizer=opt{n})")


# ---------------------------------------------------------------- checkpoints
def save(w: World, pick: Pick) -> Move:
    life = w.life(pick)
    what = pick(["net"] if w.is_averaged(life) else ["both", "net"])
    name = f"{w.number(pick)}.npz"
    objects = both(life) if what == "both" else f"net=net{life.number}"

    def effect() -> None:
        w.files[name] = file = life.save(name, True, what == "both")
        file.net = {path: w.shown(cell) for path, cell in life.net.walk()}

    source = f'jv.checkpoint.Checkpoint({objects}).write(folder + "/{name}")'
    return Move(source, effect)


def restore(w: World, pick: Pick) -> Move:
    life = w.life(pick)
    name = pick(reversed(w.files))
    file, n = w.files[name], life.number
    parts = pick(["both", "net", "net, opt", "opt, net"])
    has_opt = parts != "net"
    misfits = life.misfits(file)
    is_simple = not (misfits or w.transactions or w.is_averaged(life)) and file.has_opt
    if "," in parts and not is_simple:
        raise Skip
    if has_opt and (life.has_half_begun(file) or life.has_foreign_sums(file)):
        raise Skip
    if parts == "opt, net" and life.has_moved(file):
        raise Skip
    each = {"net": f"net=net{n}", "opt": f"opt=opt{n}", "both": both(life)}
    ck = [f"jv.checkpoint.Checkpoint({each[p]})" for p in parts.split(", ")]
    source = "; ".join(f'{c}.restore(folder + "/{name}").expect_partial()' for c in ck)

    def effect() -> None:
        life.restore(file, has_net=True, has_opt=has_opt)
        if has_opt:
            life.opt.alone = file if parts == "opt, net" else None

    why = "two values for one" if life.is_ambiguous(file) else ""
    if "," in parts:
        why = "each by itself"
    why = "what waits is not undone" if w.transactions else why
    why = AVERAGED if w.is_averaged(life) else why

    def refused() -> None:
        if parts == "net, opt":
            life.restore(file, has_net=True, has_opt=False)

    return Move(source, effect, "misfits" if misfits else why, False in misfits, refused=refused)


def elsewhere(w: World, pick: Pick) -> Move:
    """Go on from a checkpoint in another process, with a model that is alike, and save again."""
    life = w.life(pick)
    name, way, n = pick(reversed(w.files)), pick(["step", "jv.compile(step)"]), w.number(pick)
    times = int(pick(["1", "0", "3"]))
    if "wide" in life.net or w.options.rates or not life.trained(set()):
        raise Skip
    lines = [f"folder = {{folder!r}}; net, opt = Net(), {w.options.source()}"]
    lines += ["del net.a, net.enc, net.head"]
    other = Life(n, w.options)
    other.net = copy.deepcopy(life.net)
    _build(other.net, "net", {}, lines)
    file = w.files[name]
    if times and not other.trained(set()):
        raise Skip
    if other.misfits(file) or other.is_ambiguous(file) or other.has_half_begun(file):
        raise Skip
    objects = "jv.checkpoint.Checkpoint(net=net, opt=opt)"
    lines.append(f'{objects}.restore(folder + "/{name}").expect_partial()')
    lines += [f"run = {way}"] + ["run(net, opt, 1.0)"] * times
    lines.append(f'{objects}.write(folder + "/{n}.npz")')

    def effect() -> None:
        other.restore(file, has_net=True, has_opt=True)
        for _ in range(times):
            trained = other.trained(set())
            wake(other)
            other.opt.step(trained, 1.0)
        w.files[f"{n}.npz"] = other.save(f"{n}.npz", has_net=True, has_opt=True)

    source = "\n".join(lines)
    is_late = way != "step" and lazies(other)
    return Move(f"elsewhere(f'''{source}''')", effect, "created too late" if is_late else "")


def _build(node: Node, at: str, known: dict[int, str], lines: list[str]) -> None:
    """Write the lines that make what is in a module, all of it zero."""
    for name, child in sorted(node.items()):
        place = f"{at}[{name}]" if node.kind == "list" else f"{at}.{name}"
        if id(child) in known:
            if node.kind != "list":
                lines.append(f"{place} = {known[id(child)]}")
            continue
        known[id(child)] = place
        if isinstance(child, Cell):
            child.value = np.zeros_like(child.value)
            value = f"np.zeros({child.value.shape}, np.float32)"
            lines.append(f"{place} = jv.Variable({value}, trainable={child.trainable})")
        elif child.kind == "list":
            inside = known.get(id(child["0"]), "Part(0.0)")
            lines.append(f"{place} = [{inside}]")
            _build(child, place, known, lines)
        elif child.kind == "Lazy":
            child.clear()
            lines.append(f"{place} = Lazy()")
        else:
            lines.append(
                f"{place} = Part(0.0); del {place}.w" if node.kind != "list" else f"del {place}.w"
            )
            _build(child, place, known, lines)


# ---------------------------------------------------------------- blocks
def transaction(w: World, pick: Pick) -> Move:
    pick([""])
    if any(w.averaged):
        raise Skip
    before: list[Any] = []

    def effect() -> None:
        w.transactions += 1
        before.append({c: c.value for life in w.lives.values() for c in life.cells()})
        before.append(
            {id(x.opt): (set(x.opt.started), set(x.opt.window)) for x in w.lives.values()}
        )

    def close(is_failed: bool) -> None:
        w.transactions -= 1
        if is_failed:
            _undo(w, *before)

    return Move("jv.transaction()", effect, close=close)


def _undo(w: World, values: dict[Cell, Any], sets: dict[int, Any]) -> None:
    for life in w.lives.values():
        for cell in life.cells():
            cell.value = values.get(cell, cell.first)
        opt = life.opt
        opt.started, opt.window = map(set, sets.get(id(opt), opt.begun))


def wide(w: World, pick: Pick) -> Move:
    pick([""])

    def effect() -> None:
        w.wide += 1

    def close(_: bool) -> None:
        w.wide -= 1

    return Move("jax.enable_x64(True)", effect, close=close)


MOVES: dict[str, tuple[Callable[[World, Pick], Move], float]] = {
    "step": (step, 8), "assign": (assign, 1), "evaluate": (evaluate, 0.5), "flag": (flag, 2),
    "add": (add, 1.5), "add_part": (add_part, 1.5), "add_wide": (add_wide, 2), "bump": (bump, 2),
    "tie": (tie, 1), "remove": (remove, 1), "touch": (touch, 2), "trace": (trace, 3),
    "plan": (plan, 0.5), "fresh_opt": (fresh_opt, 0.7), "build": (build, 1),
    "set_rate": (set_rate, 0.3), "fresh": (fresh, 1.5), "duplicate": (duplicate, 1.5),
    "place": (place, 0.5), "save": (save, 3), "restore": (restore, 4),
    "elsewhere": (elsewhere, 0.5),
}  # fmt: skip

BLOCKS: dict[str, tuple[Callable[[World, Pick], Move], float]] = {
    "freeze": (freeze, 2), "averaged": (swap, 1.5), "transaction": (transaction, 1),
    "wide": (wide, 0.7),
}  # fmt: skip

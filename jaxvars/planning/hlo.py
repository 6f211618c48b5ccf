"""What XLA writes of a compiled program: what its devices exchange, and what its loops repeat.

Rules this file keeps:
- its form has no promise of stability: what is not understood is left out or said to be unknown,
  not guessed;
- an operation in a loop counts as often as it runs. XLA writes that for a CPU; else it is found
  from the loop's condition: a counter from one constant to another, by a third.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

_KINDS = (
    "all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|"
    "collective-broadcast"
)
_HEADER = re.compile(r"^(ENTRY )?%?(?P<name>[\w.\-]+) \(.*\{$")
_LINE = re.compile(
    r"^\s+(?P<root>ROOT )?%?(?P<name>[\w.\-]+) = (?P<type>.*?) (?P<op>[\w\-]+)\((?P<rest>.*)$"
)
_COMMENT = re.compile(r"/\*.*?\*/")
_COLLECTIVE = re.compile(rf"^(?P<kind>{_KINDS})(?:-start)?$")
_ARRAY = re.compile(r"\b(?P<dtype>[a-z]+\d*\w*)\[(?P<sizes>[\d,]*)\]")
_PART = re.compile(r"\bcalls=%?([\w.\-]+)")  # of fusions, and of what runs beside the rest
_CALLED = re.compile(r"\b(?:to_apply|true_computation|false_computation)=%?([\w.\-]+)")
_LOOP = re.compile(r"\b(condition|body)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"\bbranch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_UNKNOWN = re.compile(r'custom_call_target="__(?:cudnn|onednn)')
_CHANNEL = re.compile(r"\bchannel_id=(\d+)")


class Collective(NamedTuple):
    """An operation in which devices exchange data.

    Attributes:
        kind: XLA's name for it, like "all-reduce".
        devices: how many take part in each group; None if that is not known.
        bytes: what goes in, or comes out if that is more, on each device.
        is_repeated: it is in a loop whose length is not known, one pass of which is counted.
    """

    kind: str
    devices: int | None
    bytes: int
    is_repeated: bool = False


class _Instruction(NamedTuple):
    name: str
    type: str
    op: str
    rest: str
    is_root: bool

    @property
    def operands(self) -> list[str]:
        return re.findall(r"%?([\w.\-]+)", self.rest.partition(")")[0])

    def number(self, field: str) -> int | None:
        """Return the number that a field has."""
        found = re.search(rf"\b{field}=(\d+)", self.rest)
        return int(found[1]) if found else None


_Body: TypeAlias = Mapping[str, _Instruction]


class Pass(NamedTuple):
    """A computation that runs: the body of a loop, say.

    Attributes:
        bodies: it, and its fusions.
        times: how often it runs.
        is_exact: whether that is known; else it is one for each loop that it is not known of.
        is_chosen: whether it is a branch of a condition, or in one.
    """

    bodies: list[_Body]
    times: int
    is_exact: bool
    is_chosen: bool


def collectives_in(passes: Sequence[Pass]) -> Counter[Collective]:
    """Return the collectives that a run of a program executes, and how often each.

    >>> hlo = '''ENTRY %main (p: f32[8]) -> f32[8] {
    ...   %p = f32[8]{0} parameter(0)
    ...   ROOT %r = f32[8]{0} all-reduce(%p), replica_groups=[1,4]<=[4], to_apply=%add
    ... }'''
    >>> collectives_in(passes_of(hlo))
    Counter({Collective(kind='all-reduce', devices=4, bytes=32, is_repeated=False): 1})
    """
    found: Counter[Collective] = Counter()
    for each in passes:
        channels = set[str]()  # a TPU's programs write one in several fusions, as it goes on
        for body in each.bodies:
            for line in body.values():
                kind = _COLLECTIVE.match(line.op)
                channel = _CHANNEL.search(line.rest)
                if kind and not (channel and channel[1] in channels):
                    channels |= {channel[1]} if channel else set()
                    found[_collective(kind["kind"], line, body, not each.is_exact)] += each.times
    return found


def has_choices(passes: Sequence[Pass]) -> bool:
    """Return whether conditions decide which products are computed, or what is exchanged."""
    return any(
        each.is_chosen and (_flops_of(body) or any(_COLLECTIVE.match(x.op) for x in body.values()))
        for each in passes
        for body in each.bodies
    )


class Products(NamedTuple):
    """The floating point operations of matrix products and convolutions.

    Attributes:
        all: as often as they run.
        once: each as often as it is written.
        is_exact: whether the lengths of the loops with some of them are known.
        is_all: whether none is in a library of which it is not known what it computes.
    """

    all: int
    once: int
    is_exact: bool
    is_all: bool


def count_products(passes: Sequence[Pass]) -> Products:
    """Return the floating point operations of matrix products and convolutions in a program."""
    counts = [sum(map(_flops_of, each.bodies)) for each in passes]
    return Products(
        sum(each.times * count for each, count in zip(passes, counts, strict=True)),
        sum(counts),
        all(each.is_exact or not count for each, count in zip(passes, counts, strict=True)),
        not any(_UNKNOWN.search(x.rest) for p in passes for b in p.bodies for x in b.values()),
    )


def nbytes(shape: str) -> int:
    """Return the bytes of an array type, or of a tuple of them, as XLA writes it.

    >>> nbytes("(f32[2,3]{1,0}, bf16[4], pred[])")
    33
    """
    sizes = ((math.prod(_sizes(array[0])), array["dtype"]) for array in _ARRAY.finditer(shape))
    return sum(math.ceil(size * _bits(dtype) / 8) for size, dtype in sizes)


def _sizes(shape: str) -> list[int]:
    array = _ARRAY.search(shape)
    return [int(size) for size in array["sizes"].split(",") if size] if array else []


def _bits(dtype: str) -> int:
    number = re.search(r"\d+", dtype)  # f32, bf16, s4, c64, f8e4m3fn
    return 8 if dtype == "pred" else int(number[0]) if number else 0


# ---------------------------------------------------------------- what runs, and how often
def passes_of(hlo: str) -> list[Pass]:
    """Return each computation of a program that runs, where it runs."""
    bodies, entry = _bodies(hlo)
    found, todo = list[Pass](), [(entry, 1, True, False)]
    while todo:
        name, times, is_exact, is_chosen = todo.pop()
        group = list(_with_fusions(name, bodies))
        found.append(Pass(group, times, is_exact, is_chosen))
        for body in group:
            for line in body.values():
                trips = _trips(line, body, bodies) if line.op == "while" else 1
                inner = times * (1 if trips is None else trips), is_exact and trips is not None
                inner = (*inner, is_chosen or line.op == "conditional")
                todo += [(called, *inner) for called in _list_called(line.rest) if called in bodies]
    return found


def _bodies(hlo: str) -> tuple[dict[str, dict[str, _Instruction]], str]:
    """Return the instructions of each computation by name, and the name of the first to run."""
    bodies: dict[str, dict[str, _Instruction]] = {}
    entry, body = "", dict[str, _Instruction]()
    for line in hlo.splitlines():
        if header := _HEADER.match(line):
            body = bodies.setdefault(header["name"], {})
            entry = header["name"] if line.startswith("ENTRY") else entry
        elif found := _LINE.match(_COMMENT.sub("", line)):
            name, kind, op, rest = found.group("name", "type", "op", "rest")
            body[name] = _Instruction(name, kind, op, rest, bool(found["root"]))
    return bodies, entry


def _with_fusions(name: str, bodies: Mapping[str, _Body]) -> Iterator[_Body]:
    todo = [name]
    while todo:
        body = bodies.get(todo.pop(), {})
        yield body
        todo += [part for line in body.values() for part in _PART.findall(line.rest)]


def _list_called(rest: str) -> list[str]:
    branches = _BRANCHES.search(rest)
    names = re.findall(r"[\w.\-]+", branches[1]) if branches else []
    return [*_CALLED.findall(rest), *(name for _, name in _LOOP.findall(rest)), *names]


def _trips(loop: _Instruction, around: _Body, bodies: Mapping[str, _Body]) -> int | None:
    """Return how often a loop runs, or None."""
    if known := _TRIPS.search(loop.rest):
        return int(known[1])
    parts = {kind: bodies.get(name, {}) for kind, name in _LOOP.findall(loop.rest)}
    first = _settle(loop.operands[0], around)
    test, last = _root(parts.get("condition", {})), _root(parts.get("body", {}))
    if not (first and test and last and first.op == last.op == "tuple" and test.op == "compare"):
        return None
    counter, end = (_settle(name, parts["condition"]) for name in test.operands)
    i = counter.number("index") if counter and counter.op == "get-tuple-element" else None
    if i is None or "direction=LT" not in test.rest:
        return None
    start, stop = _constant(_settle(first.operands[i], around)), _constant(end)
    step = _step(_settle(last.operands[i], parts["body"]), i, parts["body"])
    if start is None or stop is None or not step:
        return None
    return max(0, -((start - stop) // step))


def _step(line: _Instruction | None, i: int, body: _Body) -> int | None:
    """Return what the next value of a loop's counter has more than the last one, or None."""
    if line is None or line.op != "add":
        return None
    old, more = (_settle(name, body) for name in line.operands)
    is_counter = old and old.op == "get-tuple-element" and old.number("index") == i
    step = _constant(more) if is_counter else None
    return step if step and step > 0 else None


def _root(body: _Body) -> _Instruction | None:
    return next((line for line in body.values() if line.is_root), None)


def _settle(name: str, body: _Body) -> _Instruction | None:
    """Return what a value is, looked for through copies."""
    line = body.get(name)
    while line is not None and line.op in ("copy", "bitcast"):
        line = body.get(line.operands[0])
    return line


def _constant(line: _Instruction | None) -> int | None:
    found = re.match(r"(-?\d+)\)", line.rest) if line and line.op == "constant" else None
    return int(found[1]) if found else None


# ---------------------------------------------------------------- of one operation
def _collective(kind: str, line: _Instruction, body: _Body, is_repeated: bool) -> Collective:
    given = sum(nbytes(body[name].type) for name in line.operands if name in body)
    total = nbytes(line.type)
    is_started = line.op.endswith("-start") and total > given  # its type lists operands, too
    if is_started and kind == "collective-permute":  # and what devices wait with, on a TPU
        total -= sum(map(nbytes, re.findall(r"\bu32\[\]", line.type)))
    size = max(given, total - given * is_started)
    is_scattered = kind == "all-reduce" and _is_cut(line, body)
    return Collective(
        "reduce-scatter" if is_scattered else kind, _group_size(line.rest), size, is_repeated
    )


def _is_cut(line: _Instruction, body: _Body) -> bool:
    """Return whether a fusion keeps only a part of a result."""
    root = _root(body)
    return root is not None and root.op == "dynamic-slice" and root.operands[0] == line.name


def _group_size(rest: str) -> int | None:
    """Return how many devices exchange data with each other."""
    if listed := re.search(r"replica_groups=\{\{([\d,]*)\}", rest):
        return len(listed[1].split(","))
    if tiled := re.search(r"replica_groups=\[\d+,(\d+)\]<=", rest):
        return int(tiled[1])
    if meshed := re.search(r"replica_groups=mesh\[(.*?)\].*?\{([^}]*)\}", rest):
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", meshed[1])}
        return math.prod(sizes.get(name, 1) for name in re.findall(r"'(\w+)'", meshed[2]))
    return None


def _flops_of(body: _Body) -> int:
    return sum(
        2 * _COUNTS[line.op](line, [_sizes(body[name].type) for name in line.operands])
        for line in body.values()
        if line.op in _COUNTS and all(name in body for name in line.operands)
    )


def _count_product(line: _Instruction, operands: list[list[int]]) -> int:
    """Return the multiplications of a matrix product."""
    axes = re.search(r"\blhs_contracting_dims=\{([\d,]*)\}", line.rest)
    inner = [operands[0][int(axis)] for axis in axes[1].split(",") if axis] if axes else []
    return math.prod(_sizes(line.type)) * math.prod(inner)


def _count_convolution(line: _Instruction, operands: list[list[int]]) -> int:
    """Return the multiplications of a convolution that are not with padding.

    A TPU's matrix products are convolutions, and most of what some of them add up is padding.
    """
    labels = re.search(r"\bdim_labels=(\w+)_(\w+)->(\w+)", line.rest)
    if labels is None:
        return 0
    sizes = (*operands, _sizes(line.type))
    inputs, kernel, output = (
        dict(zip(names, each, strict=True))
        for names, each in zip(labels.groups(), sizes, strict=True)
    )
    axes = [(inputs[x], kernel[x], output[x]) for x in sorted(output) if x.isdigit()]
    pairs = [_count_pairs(*each, _window(line.rest, i)) for i, each in enumerate(axes)]
    groups = line.number("batch_group_count") or 1
    return math.prod([inputs["b"] // groups, kernel["i"], kernel["o"], *pairs])


def _window(rest: str, axis: int) -> dict[str, int]:
    """Return how a window goes along an axis: what is not written is 1, or no padding."""
    found = re.search(r"\bwindow=\{([^}]*)\}", rest)
    fields = dict(field.split("=") for field in found[1].split()) if found else {}
    return {name: int(each.split("x")[axis].split("_")[0]) for name, each in fields.items()}


def _count_pairs(inputs: int, kernel: int, output: int, window: Mapping[str, int]) -> int:
    """Return how often an element of a kernel meets one of the input, along an axis."""
    starts = np.arange(output)[:, None] * window.get("stride", 1) - window.get("pad", 0)
    places = starts + np.arange(kernel) * window.get("rhs_dilate", 1)
    apart = window.get("lhs_dilate", 1)
    return int(np.sum((places >= 0) & (places < inputs * apart) & (places % apart == 0)))


def _count_library_call(line: _Instruction, operands: list[list[int]]) -> int:
    """Return the multiplications of a matrix product by cuBLAS."""
    axes = re.search(r'"lhs_contracting_dimensions":\[([\d",]*)\]', line.rest)
    if axes is None or '"__cublas$' not in line.rest:
        return 0
    inner = [operands[0][int(axis)] for axis in re.findall(r"\d+", axes[1])]
    return math.prod(_sizes(line.type)) * math.prod(inner)


_COUNTS: dict[str, Callable[[_Instruction, list[list[int]]], int]] = {
    "custom-call": _count_library_call,
    "dot": _count_product,
    "convolution": _count_convolution,
}

"""A part of what was recorded, as a pure function: run again, differentiated, or compiled.

Why it is built so: a loop in Python records the same structure at each step, and to differentiate
it operation by operation compiles four programs for each that is new. So recorded values become
numbered inputs, a program is known by its operations and how they are wired (`key`), and one that
returns is compiled as a whole. A `Question` is known by the structure of the whole record: asked
again, the program need not be found again.

What does not work: what is kept as a linear map holds values, and a rule of a user's may read what
it likes. The key of such a program does not say all of it, so that it is never compiled for others
(`is_pure`). To compile a program that runs once costs more than it saves, but for one of mostly
new operations (`autodiff/reverse.py`).

Rule this file keeps: a source that is itself computed from others gets the derivative by its value,
and what it was computed from has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from functools import partial
from typing import Any, final

import jax

from jaxvars.autodiff.rules import Again, look_up_paths
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tracing.operations import Operation
from jaxvars.tracing.recorder import Equation
from jaxvars.typing import Array, Value


@final
class Node:
    """A recorded operation.

    Attributes:
        equation: what ran.
        outputs: what came out.
        again: if there is one, does it without running it again.
        floats: the outputs that have a derivative, and the inputs that each depends on, as bits.
    """

    __slots__ = ("again", "equation", "floats", "outputs")

    def __init__(
        self,
        equation: Equation,
        outputs: list[Array],
        again: Again | None,
        *,
        through_assigns: bool = False,
    ) -> None:
        self.equation = equation
        self.outputs = outputs
        self.again = again
        paths = look_up_paths(
            equation.operation, len(equation.inputs), len(outputs), through_assigns=through_assigns
        )
        self.floats = [(x, path) for x, path in zip(outputs, paths, strict=True) if is_inexact(x)]

    def active_outputs(self, known: Container[int]) -> list[Array]:
        """Return the float outputs that depend on known inputs."""
        active, bit = 0, 1
        for x in self.equation.inputs:
            if id(x) in known:
                active |= bit
            bit <<= 1
        return [x for x, path in self.floats if path & active] if active else []

    def needed_inputs(self, known: Container[int]) -> list[Array]:
        """Return the inputs that known float outputs depend on."""
        path = 0
        for x, each in self.floats:
            if id(x) in known:
                path |= each
        return [x for i, x in enumerate(self.equation.inputs) if path >> i & 1] if path else []


# ---------------------------------------------------------------- programs
@jax.custom_jvp
def _alias_source(value: Array, source: Array) -> Array:
    """Return `value`, which is also to have the tangent of `source`."""
    return value  # pragma: no cover - what runs a program differentiates it: see the rule


@_alias_source.defjvp  # pyright: ignore[reportFunctionMemberAccess] - custom_jvp makes it an object
def _alias_source_rule(primals: Any, tangents: Any) -> tuple[Array, Array]:  # pyright: ignore[reportUnusedFunction] - the rule of `_alias_source`
    return primals[0], tangents[0] + tangents[1]


def can_be_compiled(nodes: Sequence[Node]) -> bool:
    """Return whether to differentiate operations runs no code that reads what it likes."""
    return not any(node.equation.operation.runs_users_code for node in nodes)


@final
class Program:
    """The operations between sources and targets.

    Attributes:
        function: takes sources and constants to targets; holds no recorded value.
        nodes: the operations, in order.
        constants: the other values that the operations need.
        connected: for each source, whether a target depends on it.
        is_pure: whether `key` says all of the function, so that it may stand for another one.
        through_assigns: whether its loops and branches are differentiated through assigns.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        sources: Sequence[Array],
        targets: Sequence[Value],
        needed: set[int],
        *,
        replay_loops: bool,
        through_assigns: bool,
    ) -> None:
        self.through_assigns = through_assigns
        again = [None if replay_loops else node.again for node in nodes]
        self.is_pure = not any(again) and can_be_compiled(nodes)
        self.connected = [id(x) in needed for x in sources]
        self.constants: list[Array] = []
        self.nodes = nodes
        self._slots = {id(x): i for i, x in enumerate(sources)}
        made = {id(x) for node in nodes for x in node.outputs}
        tapped = {key: i for key, i in self._slots.items() if key in made}
        for key in tapped:  # a source that is a result gets a slot when it is made
            del self._slots[key]
        self._next = len(sources)
        self._wires = [self._wire(node) for node in nodes]
        self.function = SlotProgram(
            [
                (node.equation.function if way is None else partial(way, node.outputs), *wire)
                for node, way, wire in zip(nodes, again, self._wires, strict=True)
            ],
            {self._slots[key]: i for key, i in tapped.items()},
            tuple(map(self._slot, targets)),
        )

    def holds_programs(self) -> bool:
        """Return whether an operation is a whole program: a call of a compiled function."""
        return not all(node.equation.operation.is_light for node in self.nodes)

    def holds_arrays(self) -> bool:
        """Return whether an operation has closed over arrays: who keeps one keeps the others."""
        return any(node.equation.operation.holds_arrays for node in self.nodes)

    @property
    def operations(self) -> list[Operation]:
        """The operations, in order."""
        return [node.equation.operation for node in self.nodes]

    def named_operations(self) -> list[Hashable]:
        """Return what names each operation on such inputs."""
        equations = [node.equation for node in self.nodes]
        return [(each.operation.key, *map(jax.typeof, each.inputs)) for each in equations]

    def _wire(self, node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
        inputs = tuple(map(self._slot, node.equation.inputs))
        return inputs, tuple(map(self._new_slot, node.outputs))

    def _slot(self, value: Array) -> int:
        if id(value) not in self._slots:
            self.constants.append(value)
            self._slots[id(value)] = -len(self.constants)
        return self._slots[id(value)]

    def _new_slot(self, value: Array) -> int:
        self._slots[id(value)] = slot = self._next
        self._next += 1
        return slot

    def key(self) -> Hashable:
        """Return what names the function: equal keys, same function."""
        equations = tuple(node.equation.operation.key for node in self.nodes)
        return equations, tuple(self._wires), self.function.taps, self.function.targets


@final
class SlotProgram:
    """Operations on numbered values: sources count from 0, constants down from -1."""

    __slots__ = ("_steps", "_tapped", "targets")

    def __init__(
        self,
        steps: list[tuple[Callable[..., list[Array]], tuple[int, ...], tuple[int, ...]]],
        tapped: dict[int, int],
        targets: tuple[int, ...],
    ) -> None:
        self._steps = steps
        self._tapped = tapped
        self.targets = targets

    @property
    def taps(self) -> tuple[tuple[int, int], ...]:
        """The results that are sources too: slot and source."""
        return tuple(self._tapped.items())

    def __call__(self, sources: Sequence[Array], constants: Sequence[Array]) -> list[Array]:
        """Return the targets."""
        values: dict[int, Array] = dict(enumerate(sources))
        values.update((-1 - i, x) for i, x in enumerate(constants))
        for run, inputs, outputs in self._steps:
            results = run(*[values[slot] for slot in inputs])
            for slot, result in zip(outputs, results, strict=True):
                tap = self._tapped.get(slot)
                values[slot] = result if tap is None else _alias_source(result, sources[tap])
        return [values[slot] for slot in self.targets]


@final
class Question:
    """What is asked of a record: how some of its values depend on others.

    Args:
        nodes: the record's operations; programs of all of them can be compiled.
        asked: the values.
        options: what the answer depends on besides.

    Attributes:
        key: equal for questions that programs of the same structure answer.
        values: all values, the same ones at the same places where the key is equal.
    """

    __slots__ = ("key", "values")

    def __init__(
        self, nodes: Sequence[Node], asked: Sequence[Sequence[Array]], options: Hashable
    ) -> None:
        self.values = values = list[Array]()
        parts: list[Hashable] = [options, len(nodes)]
        for node in nodes:
            inputs, outputs, floats = node.equation.inputs, node.outputs, node.floats
            parts += node.equation.operation.key, len(inputs), len(outputs), len(floats)
            values += inputs
            values += outputs
            if len(floats) < len(outputs):
                values += [x for x, _ in floats]
        for each in asked:
            parts.append(len(each))
            values += each
        numbers: dict[int, int] = {}
        same = [numbers.setdefault(i, len(numbers)) for i in map(id, values)]
        self.key: Hashable = (*parts, *same)

    def places(self, values: Sequence[Array]) -> list[int]:
        """Return where some values are among its own."""
        known = {id(x): i for i, x in enumerate(self.values)}
        return [known[id(x)] for x in values]

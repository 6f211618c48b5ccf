"""Record what ran, and replay it as a pure function.

A `Record` listens to a `Recorder` (`tracing/trace.py`) and keeps each operation whose inputs depend
on a watched value. To differentiate, `autodiff/tape.py` asks for the `Program` between sources and
targets: those operations, as a function that JAX can differentiate.

Rules this file keeps:
- values are known by identity, and kept alive as long as they are known;
- an operation's output is never the object that went in (else it would be known as both);
- integers and `stop_gradient` end a path;
- in code that is being staged, an operation with a loop, a sort or a larger function inside is
  linearized as it is recorded: XLA merges a replayed matmul with the recorded one, but not two
  loops, nor two functions that JAX differentiates into something that looks different.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import jax
import jax.numpy as jnp

from jaxvars.autodiff.sparse_rows import Uses, is_lookup
from jaxvars.errors import TapeError
from jaxvars.tracing import context, jaxprs
from jaxvars.tracing.assigned_read import for_tape
from jaxvars.tracing.checkpointed_while import in_reverse
from jaxvars.tracing.dependencies import paths
from jaxvars.tracing.recorder import Equation

Value: TypeAlias = Any

_NOT_MERGED = frozenset(
    {"scan", "while", "cond", "sort", "custom_vjp_call", "pure_callback", "io_callback"}
    | {"eigh", "eig", "svd", "top_k", "approx_top_k"}  # their derivatives want more of them
    | {"cumlogsumexp", "cummax", "cummin", "cumprod"}
    | {"div", "sqrt"}  # x / sqrt(y) becomes x * rsqrt(y) before XLA merges anything
)
_PULLS = "custom_vjp_call"  # what knows its pullback alone
_REF_WRITES = frozenset({"new_ref", "swap", "addupdate"})
_REF_WRITTEN = (
    "A value that depends on what the tape watches is written to a jax.Ref, where the tape cannot "
    "follow it. Make the Ref in a function under jax.jit, and return what is read from it; or, if "
    "there is to be no gradient through it, write jv.stop_gradient(x)."
)
_LARGE = 4  # a function of more kinds of operations than this is not left to XLA


@final
class Node:
    """A recorded operation.

    Attributes:
        equation: what ran.
        outputs: what came out.
        paths: for each output, the inputs that it depends on, as bits.
        linear: if there is one, does it without running it again.
    """

    __slots__ = ("equation", "linear", "outputs", "paths")

    def __init__(
        self,
        equation: Equation,
        outputs: list[Value],
        linear: Linear | None,
        *,
        through_assigns: bool = False,
    ) -> None:
        self.equation = equation
        self.outputs = outputs
        self.linear = linear
        each = [1 << i for i in range(len(equation.inputs))]
        self.paths = paths(
            equation.name, equation.params, each, len(outputs), through_assigns=through_assigns
        )

    def moved(self, known: Container[int]) -> list[Value]:
        """Return the float outputs that depend on known inputs."""
        moving = sum(1 << i for i, x in enumerate(self.equation.inputs) if id(x) in known)
        pairs = zip(self.outputs, self.paths, strict=True)
        return [x for x, path in pairs if path & moving and is_inexact(x)]

    def needed(self, known: Container[int]) -> list[Value]:
        """Return the inputs that known float outputs depend on."""
        pairs = zip(self.outputs, self.paths, strict=True)
        asked = [path for x, path in pairs if id(x) in known and is_inexact(x)]
        path = functools.reduce(operator.or_, asked, 0)
        return [x for i, x in enumerate(self.equation.inputs) if path >> i & 1]


@final
class Record:
    """What a tape has seen: a `Listener`.

    Args:
        reverse: whether programs will be differentiated in reverse only.
        everything: follow what is computed from any float, watched or not.
        through_assigns: whether the value of a variable moves with what was assigned to it.

    Attributes:
        active: the values that depend on a watched one, by identity.
        nodes: the operations on them, in order.
        paused: do not listen for now.
    """

    def __init__(
        self, *, reverse: bool = False, everything: bool = False, through_assigns: bool = False
    ) -> None:
        self._reverse = reverse
        self._everything = everything
        self.through_assigns = through_assigns
        self.active: dict[int, Value] = {}
        self.nodes: list[Node] = []
        self.paused = False
        self._after_rule = False

    def watch(self, value: Value) -> None:
        """Follow what is computed from `value`."""
        self.active[id(value)] = value

    def link(self, value: Value, again: Value) -> None:
        """Follow what is computed from `again`, which is `value` under another name."""
        if self.knows(value) and not self.knows(again):
            self.watch(again)
            self.nodes.append(Node(Equation("again", _same, [value], {}), [again], None))

    def knows(self, value: Value) -> bool:
        """Tell whether `value` is a watched one or was computed from one."""
        return id(value) in self.active

    def wants(self, inputs: Sequence[Value]) -> bool:
        """Tell whether an operation on `inputs` is of interest."""
        if self._everything and not self.paused:
            self.active.update((id(x), x) for x in inputs if is_inexact(x))
        return not self.paused and any(id(x) in self.active for x in inputs)

    def run(self, equation: Equation, staged: bool) -> list[Value]:
        """Run the operation and keep it."""
        if equation.name in _REF_WRITES:  # what is read from it later would count as constant
            raise TapeError(_REF_WRITTEN)
        linear, outputs = None, None
        # After such a rule all runs again if it is differentiated again, as in JAX.
        self._after_rule |= staged and context.is_differentiated() and _has_users_rule(equation)
        twice = staged and not self._after_rule and _runs_twice(equation, reverse=self._reverse)
        if twice or jaxprs.is_single(equation.name, _shown_params(equation)):
            with for_tape(through_assigns=self.through_assigns):
                outputs, linear = _linearize(equation, self.active, reverse=self._reverse)
        if outputs is None:
            outputs = list(equation.function(*equation.inputs))
        given = set(map(id, equation.inputs))
        outputs = [context.fresh(x) if id(x) in given else x for x in outputs]
        node = Node(equation, outputs, linear, through_assigns=self.through_assigns)
        if followed := node.moved(self.active):
            self.active.update((id(x), x) for x in followed)
            self.nodes.append(node)
        return outputs

    def program(
        self,
        sources: Sequence[Value],
        targets: Sequence[Value],
        *,
        replay_loops: bool,
        stops: Sequence[Value] = (),
    ) -> Program:
        """Return the operations between some values as a function.

        Args:
            sources: known values.
            targets: known values.
            replay_loops: run loops again rather than use what was linearized as they were
                recorded; needed where the replay itself is being recorded.
            stops: known values that count as constants, unless they are sources.
        """
        forward, reached = self.reached(set(map(id, sources)), set(map(id, stops)))
        needed = set(map(id, targets))
        between: list[Node] = []
        for node in reversed(forward):
            if inputs := node.needed(needed):
                between.append(node)
                needed.update(id(x) for x in inputs if id(x) in reached)
        program = Program(between[::-1], sources, targets, needed, replay_loops=replay_loops)
        program.through_assigns = self.through_assigns
        return program

    def reached(
        self, known: Iterable[int], stops: Collection[int] = frozenset()
    ) -> tuple[list[Node], set[int]]:
        """Return the operations on some values and what was computed from them, and all of that.

        Args:
            known: the values, by identity.
            stops: values that count as constants.
        """
        forward: list[Node] = []
        reached = set(known)
        for node in self.nodes:
            if stops and any(id(x) in stops for x in node.outputs):
                continue
            if moved := node.moved(reached):
                forward.append(node)
                reached.update(id(x) for x in moved)
        return forward, reached


def _same(value: Value) -> list[Value]:
    return [value]


def is_inexact(value: Value) -> bool:
    """Tell whether a value has gradients: a float or a complex number."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jnp.inexact)


# ---------------------------------------------------------------- loops
class Linear(NamedTuple):
    """A linearized operation.

    Attributes:
        positions: which of its inputs move.
        map: takes tangents of these inputs to those of the float outputs, or, if
        is_pullback: takes cotangents of the float outputs to those of the inputs.
    """

    positions: tuple[int, ...]
    map: Callable[..., Any]
    is_pullback: bool


def _runs_twice(equation: Equation, *, reverse: bool) -> bool:
    """Tell whether the operation would be run a second time when it is replayed.

    Linearized, a function with a rule of its own becomes what its rule computes. Whoever
    differentiates that again would miss the rule, so there it may run twice; and so may one that
    knows its pullback alone where tangents are to be pushed forward.
    """
    inside = [jaxprs.primitives_in(jaxpr) for jaxpr in _inner_jaxprs(equation)]
    names = {equation.name}.union(*inside)
    if not reverse and _PULLS in names:
        return False
    if not jaxprs.CUSTOM.isdisjoint(names) and context.is_differentiated():
        return False
    large = equation.name == "jit" and sum(map(len, inside)) > _LARGE
    return large or not _NOT_MERGED.isdisjoint(names)


def _has_users_rule(equation: Equation) -> bool:
    inside = map(jaxprs.has_users_rule, _inner_jaxprs(equation))
    return jaxprs.runs_users_code(equation) or any(inside)


def _inner_jaxprs(equation: Equation) -> Iterable[Any]:
    return jaxprs.inner_jaxprs(_shown_params(equation))


def _shown_params(equation: Equation) -> dict[str, Any]:
    return {k: v for k, v in equation.params.items() if k != "subfuns"}


def _branches_in_loop(equation: Equation) -> bool:
    """Tell whether JAX would split the loop again to transpose its linear map.

    It does so for a cond in a scan, and the loop would run once more. A pullback that is made
    at once has no such loop; but it takes zeros for outputs that nobody uses.
    """
    inside = map(jaxprs.primitives_in, _inner_jaxprs(equation))
    return any({"cond", "scan"} <= {equation.name, *names} for names in inside)


def _linearize(
    equation: Equation, active: dict[int, Value], *, reverse: bool
) -> tuple[list[Value] | None, Linear | None]:
    """Run an operation once, keeping its linear map; (None, None) if JAX cannot."""
    pull = reverse and _branches_in_loop(equation)
    positions = tuple(i for i, x in enumerate(equation.inputs) if id(x) in active)
    moving = [equation.inputs[i] for i in positions]

    def run(*moving: Value) -> tuple[list[Value], list[Value]]:
        outputs = list(equation.function(*_put(equation.inputs, positions, moving)))
        floats = [x for x in outputs if is_inexact(x)]
        return floats, [None if is_inexact(x) else x for x in outputs]

    try:
        with in_reverse(reverse):
            floats, linear, others = (jax.vjp if pull else jax.linearize)(
                run, *moving, has_aux=True
            )
    except (NotImplementedError, TypeError, ValueError):
        return None, None  # the replay will say why, if a gradient is asked for at all
    values = iter(floats)
    inside = map(jaxprs.primitives_in, _inner_jaxprs(equation))
    if reverse and not pull and any(_PULLS in names for names in inside):
        linear, pull = _pulled(linear, moving), True
    return [next(values) if x is None else x for x in others], Linear(positions, linear, pull)


def _pulled(push: Callable[..., Any], moving: Sequence[Value]) -> Callable[..., Any]:
    """Return the pullback of a linear map, as a whole.

    JAX would not transpose the part of it whose tangents are zeros, but run that: for a rule that
    knows its pullback alone it cannot.
    """
    return lambda given: jax.linear_transpose(push, *moving)(given)


def _put(values: Sequence[Value], where: Sequence[int], new: Sequence[Value]) -> list[Value]:
    out = list(values)
    for i, value in zip(where, new, strict=True):
        out[i] = value
    return out


def _run_linear(node: Node, linear: Linear, inputs: Sequence[Value]) -> list[Value]:
    """Give the recorded outputs again, moving with the inputs as the linear map says."""
    floats = [x for x in node.outputs if is_inexact(x)]
    again: Any
    if linear.is_pullback:
        again = jax.custom_vjp(lambda *_: floats)
        again.defvjp(lambda *_: (floats, None), lambda _, given: linear.map(list(given)))
    else:
        again = jax.custom_jvp(lambda *_: floats)
        again.defjvp(lambda _, tangents: (floats, linear.map(*tangents)))
    moved = iter(again(*[inputs[i] for i in linear.positions]))
    return [next(moved) if is_inexact(x) else x for x in node.outputs]


# ---------------------------------------------------------------- programs
@jax.custom_jvp
def _tap(value: Value, source: Value) -> Value:
    """Return `value`, which is also to move with `source`."""
    return value  # pragma: no cover - whoever runs a program differentiates it: see the rule


@_tap.defjvp  # pyright: ignore[reportFunctionMemberAccess] - custom_jvp makes it an object
def _tap_rule(primals: Any, tangents: Any) -> tuple[Value, Value]:  # pyright: ignore[reportUnusedFunction] - the rule of `_tap`
    return primals[0], tangents[0] + tangents[1]


_FEW = 20  # operations of what JAX compiles itself, like `jnp.mean`


@final
class Program:
    """The operations between sources and targets.

    Attributes:
        function: takes sources and constants to targets; holds no recorded value.
        constants: the other values that the operations need.
        connected: for each source, whether a target depends on it.
        is_pure: whether `key` says all of the function, so that it may stand for another one.
        through_assigns: whether its loops and branches are differentiated through assigns.
    """

    through_assigns = False

    def __init__(
        self,
        nodes: Sequence[Node],
        sources: Sequence[Value],
        targets: Sequence[Value],
        needed: set[int],
        *,
        replay_loops: bool,
    ) -> None:
        linear = [None if replay_loops else node.linear for node in nodes]
        self.is_pure = not any(linear) and not any(
            jaxprs.runs_users_code(node.equation) for node in nodes
        )
        self.connected = [id(x) in needed for x in sources]
        self.constants: list[Value] = []
        self._nodes = nodes
        self._slots = {id(x): i for i, x in enumerate(sources)}
        made = {id(x) for node in nodes for x in node.outputs}
        tapped = {key: i for key, i in self._slots.items() if key in made}
        for key in tapped:  # a source that is a result gets a slot when it is made
            del self._slots[key]
        self._next = len(sources)
        self._wires = [self._wire(node) for node in nodes]
        self.function = Wired(
            [
                (_runner(node, line), *wire)
                for node, line, wire in zip(nodes, linear, self._wires, strict=True)
            ],
            {self._slots[key]: i for key, i in tapped.items()},
            tuple(map(self._slot, targets)),
        )

    def uses(self, tables: Sequence[Value], targets: Sequence[Value]) -> Uses | None:
        """Return what it does with some values; None if there are no look-ups."""
        if not any(is_lookup(node.equation) for node in self._nodes):
            return None
        return Uses(((node.equation, node.outputs) for node in self._nodes), tables, targets)

    def knows_pullback_alone(self) -> bool:
        """Tell whether an operation can't be differentiated forward, by JAX."""
        return any(node.equation.name == _PULLS for node in self._nodes) or any(
            _PULLS in jaxprs.primitives_in(program) for program in self._inner()
        )

    def holds_programs(self) -> bool:
        """Tell whether an operation is a whole program: a call of a compiled function."""
        return not all(jaxprs.is_light(program, _FEW) for program in self._inner())

    def _inner(self) -> Iterable[Any]:
        """Return the programs that operations hold."""
        return itertools.chain(*(_inner_jaxprs(node.equation) for node in self._nodes))

    def while_loops(self) -> list[str]:
        """Return where the while loops are that it depends on."""
        equations = [node.equation for node in self._nodes]
        found = [jaxprs.while_loops(e.name, _shown_params(e)) for e in equations]
        return list(dict.fromkeys(itertools.chain(*found)))

    def _wire(self, node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
        inputs = tuple(map(self._slot, node.equation.inputs))
        return inputs, tuple(map(self._new_slot, node.outputs))

    def _slot(self, value: Value) -> int:
        if id(value) not in self._slots:
            self.constants.append(value)
            self._slots[id(value)] = -len(self.constants)
        return self._slots[id(value)]

    def _new_slot(self, value: Value) -> int:
        self._slots[id(value)] = slot = self._next
        self._next += 1
        return slot

    def key(self) -> Hashable:
        """Return what names the function: equal keys, same function."""
        equations = tuple(node.equation.key() for node in self._nodes)
        return equations, tuple(self._wires), self.function.taps, self.function.targets


@final
class Wired:
    """Operations on numbered values: sources count from 0, constants down from -1."""

    __slots__ = ("_steps", "_tapped", "targets")

    def __init__(
        self,
        steps: list[tuple[Callable[..., list[Value]], tuple[int, ...], tuple[int, ...]]],
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

    def __call__(self, sources: Sequence[Value], constants: Sequence[Value]) -> list[Value]:
        """Return the targets."""
        values: dict[int, Value] = dict(enumerate(sources))
        values.update((-1 - i, x) for i, x in enumerate(constants))
        for run, inputs, outputs in self._steps:
            results = run(*[values[slot] for slot in inputs])
            for slot, result in zip(outputs, results, strict=True):
                tap = self._tapped.get(slot)
                values[slot] = result if tap is None else _tap(result, sources[tap])
        return [values[slot] for slot in self.targets]


def _runner(node: Node, linear: Linear | None) -> Callable[..., list[Value]]:
    if linear is None:
        return node.equation.function
    return lambda *inputs: _run_linear(node, linear, inputs)

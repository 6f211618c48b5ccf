"""Record what ran, and replay it as a pure function.

A `Record` listens to a `Recorder` (`tracing/recorder.py`) and keeps each operation whose inputs
depend on a watched value. To differentiate, `autodiff/tape.py` takes the `Program` between sources
and targets: those operations, as a function that JAX can differentiate.

Why it is built so: no operation has a derivative of ours. `jax.vjp` of the replay has those of all
primitives and all rules of users, of any order, and in a compiled function XLA merges the replay
with what has run. Values are known by identity, since values that are equal may be of different
variables; so each output must be an object of its own, though JAX returns its argument from a
reshape or cast that does nothing, and what a compiled function was given if it passes it on.

What does not work: XLA does not merge what stands twice if it is a loop, a sort or a function with
a rule (three loops where two will do): rules in `RUN_ONCE` run such operations once. What runs
inside a staged loop or branch is one operation here, and what was written to a `jax.Ref` is not
followed, but refused.

Rules this file keeps:
- values are known by identity, and kept alive as long as they are known;
- an operation's output is never the object that went in (else it would be known as both);
- integers and `stop_gradient` end a path.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import final

from jaxvars.autodiff import rules
from jaxvars.autodiff.replay import Node, Program
from jaxvars.errors import TapeError
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tracing import context
from jaxvars.tracing.operations import Operation
from jaxvars.tracing.recorder import Equation
from jaxvars.typing import Array, Value

_REF_WRITES = frozenset({"new_ref", "swap", "addupdate"})
_REF_WRITTEN = (
    "A value that depends on what the tape watches is written to a jax.Ref, where the tape cannot "
    "follow it. Make the Ref in a function under jax.jit, and return what is read from it; or, if "
    "there is to be no gradient through it, write jv.stop_gradient(x)."
)
_AGAIN = Operation("again", lambda value: [value], {})


@final
class Record:
    """What a tape has seen: a `Listener`.

    Args:
        reverse: whether programs will be differentiated in reverse only.
        everything: follow what is computed from any float, watched or not.
        through_assigns: whether gradients go through what was assigned to a variable.

    Attributes:
        active: the values that depend on a watched one, by identity.
        nodes: the operations on them, in order.
    """

    def __init__(
        self, *, reverse: bool = False, everything: bool = False, through_assigns: bool = False
    ) -> None:
        self._reverse = reverse
        self._everything = everything
        self.through_assigns = through_assigns
        self.active: dict[int, Array] = {}
        self.nodes: list[Node] = []
        self._pauses: list[list[bool]] = []

    @property
    def paused(self) -> bool:
        """Whether not to listen for now: what the last `pause` says that has not ended."""
        open_ones = self._pauses and [said for said in self._pauses if said]
        return bool(open_ones) and open_ones[-1][0]

    @contextmanager
    def pause(self, paused: bool = True) -> Generator[None]:
        """Do not listen inside, or do; several may end in any order."""
        mine = [paused]
        try:
            self._pauses.append(mine)
            yield
        finally:
            mine.clear()  # first: Ctrl-C may come below
            self._pauses[:] = [said for said in self._pauses if said]

    def watch(self, value: Array) -> None:
        """Follow what is computed from `value`."""
        self.active[id(value)] = value

    def link(self, value: Array | None, again: Array) -> None:
        """Follow what is computed from `again`, which is `value`, if known, under another name."""
        if value is not None and self.knows(value) and not self.knows(again):
            self.watch(again)
            self.nodes.append(Node(Equation(_AGAIN, [value]), [again], None))

    def knows(self, value: Array) -> bool:
        """Return whether `value` is a watched one or was computed from one."""
        return id(value) in self.active

    def wants(self, inputs: Sequence[Array]) -> bool:
        """Return whether an operation on `inputs` is of interest."""
        if self._everything and not self.paused:
            self.active.update((id(x), x) for x in inputs if is_inexact(x))
        if not self.paused:
            for x in inputs:
                if id(x) in self.active:
                    return True
        return False

    def run(self, equation: Equation, staged: bool) -> list[Array]:
        """Run the operation and keep it."""
        operation, inputs = equation.operation, equation.inputs
        if operation.name in _REF_WRITES:  # what is read from it later would count as constant
            raise TapeError(_REF_WRITTEN)
        ran = self._run_once(equation, staged) if staged or operation.is_single else None
        outputs, again = ran or (list(operation.function(*inputs)), None)
        given = set(map(id, inputs))
        outputs = [context.fresh(x) if id(x) in given else x for x in outputs]
        node = Node(equation, outputs, again, through_assigns=self.through_assigns)
        if followed := node.active_outputs(self.active):
            for x in followed:
                self.active[id(x)] = x
            self.nodes.append(node)
        return outputs

    @functools.cached_property
    def _once(self) -> list[rules.RunOnce]:
        options = {"reverse": self._reverse, "through_assigns": self.through_assigns}
        return [make(**options) for make in rules.RUN_ONCE]

    def _run_once(self, equation: Equation, staged: bool) -> rules.Ran | None:
        """Run what is not to run again, by the first rule for it."""
        return next(filter(None, (run(equation, self.active, staged) for run in self._once)), None)

    def make_program(
        self,
        sources: Sequence[Array],
        targets: Sequence[Value],
        *,
        replay_loops: bool,
        stops: Sequence[Array] = (),
    ) -> Program:
        """Return the operations between some values as a function.

        Args:
            sources: known values.
            targets: known values.
            replay_loops: run loops again rather than use what was linearized as they were
                recorded; needed where the replay itself is being recorded.
            stops: known values that count as constants, unless they are sources.
        """
        forward, reached = self.find_reached(set(map(id, sources)), set(map(id, stops)))
        needed = set(map(id, targets))
        between: list[Node] = []
        for node in reversed(forward):
            if inputs := node.needed_inputs(needed):
                between.append(node)
                needed.update(id(x) for x in inputs if id(x) in reached)
        return Program(
            between[::-1], sources, targets, needed,
            replay_loops=replay_loops, through_assigns=self.through_assigns,
        )  # fmt: skip

    def find_reached(
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
            if active := node.active_outputs(reached):
                forward.append(node)
                reached.update(id(x) for x in active)
        return forward, reached

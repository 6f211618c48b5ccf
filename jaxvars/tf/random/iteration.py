"""What the functions of a dataset draw while it is gone through: where their streams are.

Rules this file keeps:
- a function is known by its place among the parts of the dataset, so that another program that has
  made the same dataset goes on with its streams;
- what has no seed at all has those of the iterator, which are saved with it;
- a function that is called again, to open the dataset that it had returned, draws the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, final

from jaxvars.core.cells import Cell
from jaxvars.core.frame import PLACED
from jaxvars.tf.errors import FailedPreconditionError
from jaxvars.tracing import context
from jaxvars.typing import Array

T = TypeVar("T")


@final
class Draws:
    """How far the streams of an iterator are.

    Args:
        parts: those of the dataset, functions among them.
        base: seeds for what has none; None where there is a global one.
        named: the cells of generators that the functions name.

    Attributes:
        used: how many counters were used, by function, number of the operation and its seeds.
        assigned: the cells of variables that were assigned for elements, as by generators.
    """

    def __init__(
        self, parts: Sequence[Any], base: tuple[int, int] | None, named: Sequence[Cell] = ()
    ) -> None:
        self._parts, self._base, self._count = parts, base, 0
        self.used: dict[Any, int] = {}
        self._named = {cell.key: cell for cell in named}
        self.assigned = dict(self._named)
        if _note_assigned not in PLACED:
            PLACED.append(_note_assigned)

    def next_seeds(self) -> tuple[int, int] | None:
        """Return seeds that no other operation has; None where there is a global one."""
        if self._base is None:
            return None
        self._count += 1
        return self._base[0], self._base[1] + self._count

    def note_untold(self, op: str) -> None:
        """Note that an operation has drawn from a stream that no other program can go on with."""
        self.used[None, 0, (op, (0, 0))] = 0

    def place(self) -> list[Any]:
        """Return where the streams are, but for those of functions in functions."""
        numbers = {id(part): i for i, part in enumerate(self._parts)}
        used = [
            [numbers[who], number, op, *seeds, count]
            for (who, number, (op, seeds)), count in self.used.items() if who in numbers
        ]  # fmt: skip
        return [self._count, used]

    def go_to(self, place: Sequence[Any]) -> None:
        """Have the streams go on from a place."""
        self._count, used = place
        self.used = {
            (id(self._parts[i]), number, (op, (first, second))): count
            for i, number, op, first, second, count in used if i < len(self._parts)
        }  # fmt: skip

    def save(self) -> list[Any]:
        """Return what they are made of.

        Raises:
            FailedPreconditionError: when another program could not go on with them.
        """
        place = self.place()
        if len(place[1]) < len(self.used):
            known = set(map(id, self._parts))
            raise _refuse_saving(next(op for who, _, (op, _) in self.used if who not in known))
        return [self._base and list(self._base), *place]

    def load(self, state: Sequence[Any] | None) -> None:
        """Become what was saved."""
        base, *place = state or [None, 0, []]
        self._base = tuple(base) if base else self._base
        self.go_to(place)
        self.assigned = dict(self._named)


ITERATION: context.Scoped[Draws | None] = context.Scoped(None)
"""The streams of the iterator that makes an element."""
CALL: context.Scoped[tuple[Any, dict[Any, int]] | None] = context.Scoped(None)
"""Which function of a dataset is called, and how often each operation drew in this call."""


def place_of_draws() -> list[Any]:
    """Return where the streams are before a function is called, for `call_again`."""
    return ITERATION.value.place() if ITERATION.value else [0, []]


def call_again(place: Sequence[Any], make: Callable[..., T], *args: Any) -> T:
    """Call a function for it to return what it had returned at a place, if one is known."""
    draws = ITERATION.value
    if draws is None or not place:
        return make(*args)
    now = draws._count, draws.used
    draws.go_to(place[0])
    try:
        return make(*args)
    finally:
        draws._count, draws.used = now


def _note_assigned(cell: Cell, value: Array, verb: str) -> None:
    if verb == "assigned" and (draws := ITERATION.value) is not None:
        draws.assigned[cell.key] = cell


def _refuse_saving(op: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        message=f"An iterator cannot be saved once {op.split()[0]} has drawn in a function that is "
        "in a function of its dataset, or in a map or loop there: where that stream of random "
        "numbers is cannot be told to another program, and others would come. Draw in the "
        "outermost function, or have the seeds come with the elements:\n"
        "    seeds = tf.data.Dataset.random(seed=1).batch(2)\n"
        "    dataset = tf.data.Dataset.zip((dataset, seeds)).map(\n"
        "        lambda x, seed: x + tf.random.stateless_uniform([], seed)\n"
        "    )"
    )

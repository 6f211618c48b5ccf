"""Which states of a loop are kept while it runs, and how to go back through its iterations.

A fixed number of checkpoints is kept, whatever the number of iterations: at first of each, then of
each second, each fourth, ... On the way back the iterations between two checkpoints are run again,
a segment at a time.

Rule this file keeps: a checkpoint that stays is not moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp

from jaxvars.tracing import jaxprs
from jaxvars.typing import Array

Values: TypeAlias = Sequence[Array]

_BITS = 6
CHECKPOINTS = 1 << _BITS  # iterations that are kept
_SEGMENT = 64  # iterations that are run again together


def store_at(slot: Array, rows: Values, values: Values) -> list[Array]:
    """Return arrays with a value at a slot of each."""
    put = jax.lax.dynamic_update_index_in_dim
    return [put(row, x, slot, 0) for row, x in zip(rows, values, strict=True)]


def load_at(slot: Array, rows: Values) -> list[Array]:
    return [jax.lax.dynamic_index_in_dim(row, slot, 0, keepdims=False) for row in rows]


def _count_halvings(n: Array) -> Array:
    """Return how often every second state has been dropped when state n is kept."""
    return jnp.maximum(32 - jax.lax.clz(n) - _BITS, 0)


def slot(n: Array) -> Array:
    """Return the slot of the checkpoint of state n; the one after the last if there is none."""
    halvings = _count_halvings(n)
    is_kept = (n & ((1 << halvings) - 1)) == 0
    return jnp.where(is_kept, _slot_of(n >> halvings, halvings), CHECKPOINTS)


def _slot_of(number: Array, halvings: Array) -> Array:
    """Return the slot of the checkpoint of a number.

    What is kept stays where it is, and the slots of what is dropped are used again. So the slots
    are the numbers with their bits rotated.
    """
    by = halvings % _BITS
    return ((number << by) | (number >> (_BITS - by))) & (CHECKPOINTS - 1)


# ---------------------------------------------------------------- the way back
@final
class Walk:
    """Goes back through the iterations of a loop.

    Args:
        body_fun: of the loop: takes the other values and the state, returns the next state.
        floats: which values of the state have cotangents.
        consts: which of the others have.
        while_loop: runs a loop.
    """

    def __init__(
        self,
        body_fun: Callable[..., list[Array]],
        floats: Sequence[int],
        consts: Sequence[int],
        while_loop: Callable[..., Any],
    ) -> None:
        self._body_fun, self._while_loop = body_fun, while_loop
        self._floats, self._consts = floats, consts

    def back(self, n: Array, checkpoints: list[Array], consts: list[Array], start: Any) -> Any:
        """Return the cotangents before the first iteration, of those after the last."""
        halvings = _count_halvings(jnp.maximum(n - 1, 0))
        size = jnp.minimum(1 << halvings, _SEGMENT)
        given = (n, halvings, size, checkpoints, consts)
        last = (n - 1) // size
        return self._while_loop(
            lambda given, state: state[0] >= 0,
            lambda given, state: (state[0] - 1, self._segment_back(given, *state)),
            given,
            (last, start),
        )[1]

    def _segment_back(self, given: Any, number: Array, cotangents: Any) -> Any:
        """Go back through a segment of iterations, whose states are computed again first."""
        n, halvings, size, checkpoints, consts = given
        start = number * size
        end = jnp.minimum(start + size, n)
        kept = start >> halvings
        state = load_at(_slot_of(kept, halvings), checkpoints)
        states = self._states(kept << halvings, start, end, consts, state)
        return self._while_loop(
            lambda given, at: at[0] >= given[0],
            lambda given, at: (at[0] - 1, self._pull(given, *at)),
            (start, consts, states),
            (end - 1, cotangents),
        )[1]

    def _states(
        self, first: Array, start: Array, end: Array, consts: list[Array], state: list[Array]
    ) -> Any:
        """Return the states of a segment, given one that may be before it."""
        kept = [jnp.broadcast_to(x, (_SEGMENT + 1, *jnp.shape(x))) for x in state]

        def slot(start: Array, at: Array) -> Array:
            return jnp.where(at < start, _SEGMENT, at - start)  # the last for those before it

        def step(given: Any, carry: Any) -> Any:
            (start, _, consts), (at, kept, state) = given, carry
            return at + 1, store_at(slot(start, at), kept, state), self._body_fun(*consts, *state)

        at, kept, state = self._while_loop(
            lambda given, carry: carry[0] < given[1],
            step,
            (start, end - 1, consts),
            (first, kept, state),
        )
        return store_at(slot(start, at), kept, state)

    def _pull(self, given: Any, at: Array, cotangents: Any) -> Any:
        """Go back through one iteration."""
        start, consts, states = given
        of_state, of_consts = cotangents
        state = load_at(at - start, states)

        def moved(values: list[Array], others: list[Array]) -> list[Array]:
            made = self._body_fun(
                *jaxprs.replace_values(consts, self._consts, others),
                *jaxprs.replace_values(state, self._floats, values),
            )
            return [made[i] for i in self._floats]

        values = [state[i] for i in self._floats]
        _, pull = jax.vjp(moved, values, [consts[i] for i in self._consts])
        before, more = pull(of_state)
        return before, [a + b for a, b in zip(of_consts, more, strict=True)]

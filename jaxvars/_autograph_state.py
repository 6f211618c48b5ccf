"""The names that a staged block assigns: what they are before, in and after it.

Rules this file keeps:
- a Variable under one of the names stays itself, unless the block gives the name another value;
- what has no value on some way through a block can be carried only if it has a form: the value
  to be returned is zeros until there is one (malt guards it by a flag); what a loop sets that
  may run zero times is checked when it is read; what one branch alone sets must not be read;
- these things are found out while the block is traced: it is then traced again, knowing them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars._autograph_values import (
    KEEP,
    Nothing,
    NoValue,
    OneBranch,
    Perhaps,
    Undefined,
    UndefinedReturnValue,
)
from jaxvars._boxing import boxed, settled_numbers, words
from jaxvars._face import Face, plain
from jaxvars._variable import Variable
from jaxvars._walk import Alias
from jaxvars.errors import ControlFlowError, user_line


@final
class _Again(Exception):  # noqa: N818 - a signal between us, not an error
    """Something about a name has been found out: trace the block once more."""


@final
class _Held:
    """A Variable, as a leaf of the state that is no array."""

    __slots__ = ("variable",)

    def __init__(self, variable: Variable) -> None:
        self.variable = variable

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.variable is self.variable

    def __hash__(self) -> int:
        return id(self.variable)

    def __repr__(self) -> str:
        return repr(self.variable)


_FILL, _PERHAPS, _REFUSE = "fill", "perhaps", "refuse"


class _Plan(NamedTuple):
    """How to carry what has a value on some ways through a block only.

    Attributes:
        kind: zeros where there is none; the value and whether there is one; not at all.
        form: shapes and dtypes.
        missing: the branch that gives none.
    """

    kind: str
    form: Any
    missing: str = ""


_NO_PLAN = _Plan("", None)


@final
class Block:
    """The state of an `if` or a loop that is being staged.

    Args:
        names: as they stand in the source.
        get_state: returns their values.
        set_state: assigns them.
        lenient: whether what has no value at first may have one later: in loops.

    Attributes:
        names: for messages.
        start: the values before the block.
    """

    def __init__(
        self,
        names: Sequence[str],
        get_state: Callable[[], tuple[Any, ...]],
        set_state: Callable[[Any], None],
        *,
        lenient: bool,
    ) -> None:
        _refuse_globals(names)
        self.names = tuple(map(_said, names))
        self._get = get_state
        self.start = self._values()
        self._set = set_state
        self._lenient = lenient
        self._line = user_line()
        self._plans: dict[int, _Plan] = {}
        self._as_values: set[int] = set()
        self._absent = {i for i, value in enumerate(self.start) if _is_absent(value)}
        for i, value in enumerate(self.start):
            if isinstance(value, Perhaps):
                self._plan(i, value)

    def attempt(self, stage: Callable[[], Sequence[Any]]) -> None:
        """Stage the block, as often as it takes; then give the names their new values."""
        while True:
            try:
                results = stage()
                break
            except _Again:
                self._set(self.start)
            except BaseException:
                self._set(self.start)
                raise
        rest = self.start[len(results) :]
        new = map(self._unpacked, range(len(results)), results)
        self._set((*map(_part, self.names, new), *rest))

    def packed_start(self) -> tuple[Any, ...]:
        """Return the values before the block, as they are handed to `_control`."""
        return tuple(map(self._packed, range(len(self.start)), self.start))

    def enter(self, state: Sequence[Any] | None = None) -> None:
        """Give the names the values that `_control` hands us, or those from before the block."""
        if state is None:
            self._set(self.start)
        else:
            self._set(tuple(map(self._unpacked, range(len(state)), state)))

    def leave(
        self, other: Sequence[Any] | None, *, raised: bool = False
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the values now, as they are and as they are handed to `_control`.

        Args:
            other: the values on the other way through the block, if they are known.
            raised: whether the way ends in an error, so that its values do not matter.
        """
        values = self._values()
        if raised:
            values = tuple(x if x is KEEP else Nothing(name) for name, x in self._named(values))
        for i, (mine, theirs) in enumerate(zip(values, other or (), strict=False)):
            self._compare(i, mine, theirs)
        return values, tuple(map(self._packed, range(len(values)), values))

    def _named(self, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        return zip(self.names, values, strict=True)

    def _values(self) -> tuple[Any, ...]:
        """Return the values now, `KEEP` for a part of a Variable."""
        pairs = self._named(self._get())
        return tuple(KEEP if _is_slice(x) and name.endswith("]") else x for name, x in pairs)

    # ------------------------------------------------------------ finding out
    def _compare(self, i: int, mine: Any, theirs: Any) -> None:
        """Trace the block again if the two ways through it differ in a way that we can mend."""
        if _is_absent(mine) and _is_absent(theirs):
            self._absent.add(i)
            return
        self._absent.discard(i)
        values = (mine, theirs)
        if any(isinstance(x, NoValue) for x in values):
            if i not in self._plans:
                self._plan(i, *values)
                raise _Again
        elif i not in self._as_values and _variables(mine) != _variables(theirs):
            self._as_values.add(i)
            raise _Again

    def _plan(self, i: int, *values: Any) -> None:
        """Decide how to carry what has a value on some ways only."""
        value = next(x for x in values if not _is_absent(x))
        missing = "else" if _is_absent(values[0]) else "main"
        if isinstance(value, Perhaps):
            value, kind = value.value, _PERHAPS
        elif any(isinstance(x, UndefinedReturnValue | Nothing) for x in values):
            kind = _FILL
        else:
            kind = _PERHAPS if self._lenient else _REFUSE
        if kind == _REFUSE and not self.names[i].isidentifier():
            raise ControlFlowError(
                f"'{self.names[i]}' must also be initialized in the {missing} branch of the `if` "
                f"at {self._line}, or before it: which branch runs is a traced value."
            )
        self._plans[i] = _Plan(kind, jax.tree.map(_form, settled_numbers(value)), missing)
        self._absent.discard(i)

    # ------------------------------------------------------------ to and from _control
    def _packed(self, i: int, value: Any) -> Any:
        if i in self._plans:
            return self._packed_by_plan(self._plans[i], value)
        if _is_absent(value) or value is KEEP:
            return None
        if _is_slice(value):
            return value.value
        return settled_numbers(_map_variables(plain if i in self._as_values else _Held, value))

    def _packed_by_plan(self, plan: _Plan, value: Any) -> Any:
        if plan.kind == _REFUSE:
            return None
        if isinstance(value, Perhaps):
            return value.value, value.given
        given = not _is_absent(value)
        filled = settled_numbers(_map_variables(plain, value)) if given else _zeros(plan.form)
        return (filled, given) if plan.kind == _PERHAPS else filled

    def _unpacked(self, i: int, value: Any) -> Any:
        if self.start[i] is KEEP:
            return KEEP
        if value is None and i in self._absent:
            start = self.start[i]
            return start if _is_absent(start) else Undefined(self.names[i])
        plan = self._plans.get(i, _NO_PLAN)
        if plan.kind == _PERHAPS:
            pair: Any = value
            filled, given = pair
            return Perhaps(self.names[i], self._line, boxed(filled), given)
        if plan.kind == _REFUSE:
            return OneBranch(self.names[i], self._line, plan.missing, _example(plan.form))
        return boxed(
            jax.tree.map(
                lambda x: x.variable if isinstance(x, _Held) else x,
                value,
                is_leaf=lambda x: isinstance(x, _Held),
            )
        )


def _said(name: str) -> str:
    return "the returned value" if name.startswith("retval_") else name


def _part(name: str, value: Any) -> Any:
    """Return the value of a name; that of a part, like `self.x`, has to be there."""
    return value.read() if isinstance(value, Perhaps) and not name.isidentifier() else value


def _is_absent(value: Any) -> bool:
    return isinstance(value, NoValue) and not isinstance(value, Perhaps)


def _is_slice(value: object) -> bool:
    return isinstance(value, Face) and not isinstance(value, Variable)


def _is_variable(value: object) -> bool:
    return isinstance(value, Variable | Alias)


def _map_variables(change: Callable[[Variable], Any], value: Any) -> Any:
    return jax.tree.map(lambda x: change(x) if _is_variable(x) else x, value, is_leaf=_is_variable)


def _variables(value: Any) -> list[int]:
    leaves = jax.tree.leaves(value, is_leaf=_is_variable)
    return [id(leaf) for leaf in leaves if _is_variable(leaf)]


def _form(leaf: Any) -> Any:
    """Return the shape and dtype of an array or number; other leaves as they are."""
    if isinstance(leaf, jax.Array | np.ndarray | np.generic | bool | int | float | complex):
        return jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf))
    return leaf


def _is_form(leaf: object) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def _zeros(form: Any) -> Any:
    return jax.tree.map(
        lambda s: jnp.zeros(s.shape, s.dtype) if _is_form(s) else s, form, is_leaf=_is_form
    )


def _example(form: Any) -> str:
    if _is_form(form):
        return words().zeros.format(shape=form.shape, dtype=form.dtype)
    return "..."


def _refuse_globals(names: Sequence[str]) -> None:
    for said in names:
        _, is_global, name = said.rpartition("global ")
        if is_global:
            raise ControlFlowError(
                f"The global {name!r} is assigned at {user_line()} in a branch or loop on a traced "
                "value: it would keep a value that has no meaning outside of the program. Use a "
                f"variable, {name} = jv.Variable(...), and {name}.assign(...)."
            )

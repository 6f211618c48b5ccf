"""Which types a traced value may have where Python runs the function: for `is`, `isinstance`, ...

A branch or loop that becomes an operation of the program makes traced values of what its names
hold: of `done = False`, of a counter. A question about the object is answered for what Python would
have there:

    while done is not True:    # a bool in each iteration: `not done`
    isinstance(n, int)         # True, if each way through the block leaves an int

Rules this file keeps:
- an answer is given where all types that the value may have agree on it; else the line is refused;
- what is computed from such values is of unknown type where it looks like a number of Python;
- a loop is traced again if its body leaves a type that an answer in it did not know of;
- what the function is called with is what it is: traced, an array.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn, final

import jax
import jax.numpy as jnp

from jaxvars.advice import EXPLANATIONS
from jaxvars.autograph.operators.values import MaybeUndefined, NoValue, is_variable
from jaxvars.autograph.operators.values import in_place as in_place_of_array
from jaxvars.core.frames import LOCAL, Frame
from jaxvars.core.variable import Variable
from jaxvars.errors import ControlFlowError, line_of, user_line
from jaxvars.tensors.array_like import BOXES
from jaxvars.tensors.tensor import is_weak
from jaxvars.tensors.wrapping import boxed, is_boxing
from jaxvars.tracing import context

_PYTHON = {"b": bool, "i": int, "f": float, "c": complex}


@final
class Origin:
    """The types that a value may have.

    Attributes:
        kinds: the types; `jax.Array` for all arrays of JAX.
        sources: what these were found in: for the values of blocks.
    """

    __slots__ = ("_asked", "kinds", "sources")

    def __init__(self, *kinds: type) -> None:
        self.kinds = set(kinds)
        self.sources: list[Origin] = []
        self._asked = False

    def ask(self) -> set[type]:
        """Return the types, for an answer."""
        if not self._asked:
            self._asked = True
            for source in self.sources:
                source.ask()
        return self.kinds

    def join(self, other: Origin) -> bool:
        """Take in the types of another way; return whether an answer did not know of them."""
        if other is self:
            return False
        is_new = not other.kinds <= self.kinds
        self.kinds |= other.kinds
        self.sources.append(other)
        if self._asked:
            other.ask()
        return is_new and self._asked


_ORIGINS: dict[int, tuple[weakref.ref[Any], Origin]] = {}  # by id of a tracer
_WITH_BLOCKS: weakref.WeakSet[Frame] = weakref.WeakSet()  # where a block has been staged


def _leaves(value: Any) -> list[Any]:
    value = value.value if isinstance(value, MaybeUndefined) else value
    return [] if isinstance(value, NoValue) else jax.tree.leaves(value, is_leaf=is_variable)


def origins_in(value: Any) -> list[Origin]:
    """Return what is known of each leaf of a value."""
    return list(map(_origin_of, _leaves(value)))


def join(known: list[Origin], value: Any) -> bool:
    """Take in what a value says; return whether an answer did not know of it."""
    found = origins_in(value)
    known += [Origin() for _ in found[len(known) :]]
    return sum(old.join(new) for old, new in zip(known, found, strict=False)) > 0


def mark(value: Any, known: Sequence[Origin]) -> None:
    """Note what is known of the leaves of a value that a block has made traced."""
    for leaf, origin in zip(_leaves(value), known, strict=False):
        if context.is_tracer(leaf):
            number = id(leaf)
            gone = lambda _, number=number: _ORIGINS.pop(number, None)  # noqa: E731 - of one leaf
            _ORIGINS[number] = weakref.ref(leaf, gone), origin


def note_block() -> None:
    """Note that the function that is traced has a block, from which other values may come."""
    if LOCAL.frame is not LOCAL.eager:
        _WITH_BLOCKS.add(LOCAL.frame)


def mark_arguments(*values: Any) -> None:
    """Note that what is traced in some values is an array: the arguments of a function."""
    with suppress(TypeError, ValueError):  # keys that JAX cannot sort: then it traces none of them
        mark(values, [Origin(jax.Array) for _ in _leaves(values)])


def _origin_of(leaf: Any) -> Origin:
    if context.is_known(leaf):
        return Origin(jax.Array if isinstance(leaf, jax.Array) else type(leaf))
    if id(leaf) in _ORIGINS:
        return _ORIGINS[id(leaf)][1]
    is_like_python = not leaf.shape and (is_weak(leaf) or leaf.dtype == bool) and _has_blocks()
    return Origin(jax.Array, *([_PYTHON[leaf.dtype.kind]] if is_like_python else ()))


def _has_blocks() -> bool:
    frame: Any = LOCAL.frame
    while frame is not None:
        if frame in _WITH_BLOCKS:
            return True
        frame = getattr(frame, "parent", None)
    return False


# ---------------------------------------------------------------- questions
def is_(left: Any, right: Any) -> Any:
    """Return `left is right`."""
    one, other = map(_array_of, (left, right))
    if one is other or (context.is_known(one) and context.is_known(other)):
        return left is right
    origins = _origin_of(one), _origin_of(other)
    common = origins[0].ask() & origins[1].ask()
    if common == {jax.Array} and not any(origin.sources for origin in origins):
        return False
    if not common or jnp.shape(one) != jnp.shape(other):
        return False
    if origins[0].kinds == origins[1].kinds == {bool}:
        return boxed(one == other)
    raise ControlFlowError(
        f"`is` at {user_line()} compares a value that a branch or loop has made traced, of type "
        f"{_names(*origins)} where Python runs it: a program carries values, not objects, so that "
        "it is not known which object it would be. Compare the value: `if done:` or "
        "`if not done:`, `n == 3`, jnp.array_equal(x, y)."
    )


def _array_of(value: Any) -> Any:
    return BOXES[type(value)](value) if is_boxing() and type(value) in BOXES else value


def isinstance_(value: Any, kinds: Any, /) -> bool:
    """Return `isinstance(value, kinds)`."""
    if is_boxing() or context.is_known(value):
        return isinstance(value, kinds)
    origin = _origin_of(value)
    answers = {
        isinstance(value, kinds) if kind is jax.Array else issubclass(kind, kinds)
        for kind in origin.ask()
    }
    return answers.pop() if len(answers) == 1 else _refuse_type("isinstance()", origin)


def type_(*args: Any, **kwargs: Any) -> Any:
    """Return `type(value)`."""
    if len(args) != 1 or is_boxing() or context.is_known(args[0]):
        return type(*args, **kwargs)
    origin = _origin_of(args[0])
    (kind, *others) = origin.ask()
    if others:
        _refuse_type("type()", origin)
    return type(args[0]) if kind is jax.Array else kind


def _refuse_type(what: str, origin: Origin) -> NoReturn:
    raise ControlFlowError(
        f"{what} at {user_line()} is asked about a value that a branch or loop has made traced, or "
        f"that is computed from one: where Python runs it, its type is {_names(origin)}, which is "
        "not known while the function is traced, and the answers differ. Decide before the block, "
        "or make it an array before, n = jnp.asarray(n), and ask for x.dtype."
    )


def shown(value: Any) -> Any:
    """Return what is to become a part of a string."""
    if is_boxing() or context.is_known(value):
        return value
    origin = _origin_of(value)
    if origin.ask() != {jax.Array} or origin.sources:
        raise ControlFlowError(
            f"A value is made a string at {user_line()} that a branch or loop has made traced, or "
            f"that is computed from one. Where Python runs it, its type is {_names(origin)}; here "
            f"the string would be {str(value)!r}, whatever the value is. Strings are not part of a "
            'program: print("step", n) prints the value when it runs; else return the value, and '
            "make the string outside."
        )
    return value


# ---------------------------------------------------------------- a Variable that was chosen
def in_place(value: Any) -> None:
    """Refuse `value += ...` and `value.sort()` for what is not the object that Python has."""
    in_place_of_array(value)
    if _may_be_variable(value):
        raise _chosen_error(user_line())


def _may_be_variable(value: Any) -> bool:
    """Return whether a value of a block is, in Python, a Variable on one of the ways."""
    is_noted = context.is_tracer(value) and id(value) in _ORIGINS and not is_boxing()
    return is_noted and any(issubclass(kind, Variable) for kind in _origin_of(value).ask())


def _explain(error: Exception) -> None:
    """Raise what to write for `value.assign(...)`."""
    if not isinstance(error, AttributeError) or not hasattr(Variable, error.name or ""):
        return
    if _may_be_variable(error.obj):
        raise _chosen_error(line_of(error)).with_traceback(error.__traceback__) from None


EXPLANATIONS.append(_explain)


def _chosen_error(line: str) -> ControlFlowError:
    return ControlFlowError(
        f"A Variable is assigned, or asked for what an array has not, at {line}, that a branch or "
        "loop on a traced value has chosen: a program chooses values, not objects, so that it has "
        "the Variable's value there, and no Variable would be assigned. Assign to each in its own "
        "branch,\n"
        "    if ...:\n"
        "        first.assign_add(x)\n"
        "    else:\n"
        "        second.assign_add(x)\n"
        "or make a new value: y = y + x."
    )


def _names(*origins: Origin) -> str:
    kinds = {kind for origin in origins for kind in origin.kinds}
    return " or ".join(sorted("jax.Array" if k is jax.Array else k.__name__ for k in kinds))

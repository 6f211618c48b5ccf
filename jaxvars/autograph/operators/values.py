"""What stands in for a value that there is not, or perhaps not: of a name, or in a list that grows.

Rules this file keeps:
- what has no value says so when it is read, and not before;
- the message names the name, the line that reads it and the line that may not have set it;
- an iteration is traced once for all, so that it does not see what others appended to a list: it
  must not read that, or how many there are.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.checks import require
from jaxvars.core.variable import Variable
from jaxvars.errors import ControlFlowError, user_line
from jaxvars.objects.key_order import map_leaves
from jaxvars.objects.traversal import Proxy
from jaxvars.tensors.array_like import ArrayProxy, unwrap
from jaxvars.tensors.wrapping import boxed, settled_numbers, words
from jaxvars.tracing import context


@dataclass(slots=True, eq=False)
class NoValue(ABC):
    """Stands in for the value of a name that has none, or perhaps none."""

    name: str

    @abstractmethod
    def read(self) -> Any:
        """Return the value after all, or raise."""


@final
class Undefined(NoValue):
    """Nothing has been assigned to the name."""

    __slots__ = ()

    def read(self) -> Any:
        raise UnboundLocalError(
            f"cannot access local variable {self.name!r} where it is not associated with a value: "
            f"{self.name!r} is used before assignment"
        )


@final
class Nothing(NoValue):
    """The value does not matter: nothing has been returned yet, or the branch ends in an error."""

    __slots__ = ()

    def read(self) -> Any:
        return None


@final
@dataclass(slots=True, eq=False)
class OneBranch(NoValue):
    """One branch of a staged `if` assigned the name, and the other did not."""

    line: str
    missing: str
    example: str

    def read(self) -> Any:
        raise ControlFlowError(
            f"{self.name!r} is used at {user_line()}, but of the two branches of the `if` at "
            f"{self.line} only one sets it, and the condition is a traced value: there is no "
            f"telling now which one will run. {self.name!r} must also be initialized in the "
            f"{self.missing} branch, or before:\n"
            f"    {self.name} = {self.example}\n"
            f"    if ...:\n"
            f"        {self.name} = ..."
        )


@final
@dataclass(slots=True, eq=False)
class MaybeUndefined(NoValue):
    """A name that a staged loop assigns, if it runs at all."""

    line: str
    value: Any
    given: Any

    def read(self) -> Any:
        """Return the value, and have the step fail if there is none when it runs."""
        require(
            self.given,
            f"{self.name!r} has no value: only the loop at {self.line} sets it, and did not do so. "
            f"The loop must iterate at least once to initialize {self.name}; or give it a value "
            "before",
        )
        return self.value


def ld(value: Any) -> Any:
    """Read a name."""
    return value.read() if isinstance(value, NoValue) else value


# ---------------------------------------------------------------- how a form stands in
FILL, PERHAPS, REFUSE = "fill", "perhaps", "refuse"


class Plan(NamedTuple):
    """How to carry what has a value on some ways through a block only."""

    kind: str  # zeros where there is none; the value and whether there is one; not at all
    form: Any
    missing: str  # the branch that gives none

    def pack(self, value: Any) -> Any:
        """Return what is passed to `control`."""
        if self.kind == REFUSE:
            return None
        if isinstance(value, MaybeUndefined):
            return value.value, value.given
        given = not is_absent(value)
        filled = settled_numbers(map_variables(unwrap, value)) if given else _zeros(self.form)
        return (filled, given) if self.kind == PERHAPS else filled

    def unpack(self, name: str, line: str, value: Any) -> Any:
        """Return what is passed by `control`, as it stands for a name of the block at a line."""
        if self.kind == REFUSE:
            return OneBranch(name, line, self.missing, _example(self.form))
        if self.kind == FILL:
            return boxed(value)
        filled, given = value
        return MaybeUndefined(name, line, boxed(filled), given)


def is_absent(value: Any) -> bool:
    """Return whether a name or place has no value at all."""
    return isinstance(value, NoValue) and not isinstance(value, MaybeUndefined)


def is_slice(value: object) -> bool:
    """Return whether a value stands for a part of a Variable."""
    return isinstance(value, ArrayProxy) and not isinstance(value, Variable)


def is_variable(value: object) -> bool:
    """Return whether a value is a Variable, or another name of one."""
    return isinstance(value, Variable | Proxy)


def map_variables(change: Callable[[Variable], Any], value: Any) -> Any:
    """Return a value with something else for each Variable in it."""
    return map_leaves(lambda x: change(x) if is_variable(x) else x, value, is_leaf=is_variable)


def variables_in(value: Any) -> list[int]:
    """Return the identities of the Variables in a value."""
    leaves = jax.tree.leaves(value, is_leaf=is_variable)
    return [id(leaf) for leaf in leaves if is_variable(leaf)]


def drop_tracers(value: Any) -> Any:
    """Return a value with forms for what is traced, which must not outlive its trace."""
    if isinstance(value, MaybeUndefined):
        return MaybeUndefined(value.name, value.line, drop_tracers(value.value), None)
    change = lambda x: form_of(x) if context.is_tracer(x) else x  # noqa: E731 - said once
    return map_leaves(change, value, is_leaf=is_variable)


def form_of(leaf: Any) -> Any:
    """Return the shape and dtype of an array or number; other leaves as they are."""
    if isinstance(leaf, jax.Array | np.ndarray | np.generic | bool | int | float | complex):
        return jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf))
    return leaf


def _is_form(leaf: object) -> bool:
    """Return whether a leaf is a shape and dtype."""
    return isinstance(leaf, jax.ShapeDtypeStruct)


def _zeros(form: Any) -> Any:
    """Return a value of a form, with zeros."""
    return map_leaves(
        lambda s: jnp.zeros(s.shape, s.dtype) if _is_form(s) else s, form, is_leaf=_is_form
    )


def _example(form: Any) -> str:
    """Return code that makes a value of a form."""
    if _is_form(form):
        return words().zeros.format(shape=form.shape, dtype=form.dtype)
    return "..."


# ---------------------------------------------------------------- arrays that are changed in place
_STAND_INS: dict[int, tuple[Any, str]] = {}  # for arrays of NumPy, in the body of a loop


def stand_in(value: Any, old: Any, name: str) -> list[int]:
    """Note that a value stands in for an array of NumPy; return what `forget` takes."""
    if not isinstance(old, np.ndarray) and id(old) not in _STAND_INS:
        return []
    _STAND_INS[id(value)] = value, name
    return [id(value)]


def forget(keys: list[int]) -> None:
    """Forget what stood in for arrays."""
    while keys:
        _STAND_INS.pop(keys.pop(), None)


def in_place(value: Any) -> None:
    """Refuse `value += ...` and `value.sort()` for what stands in for an array of NumPy."""
    if id(value) in _STAND_INS:
        _, name = _STAND_INS[id(value)]
        raise ControlFlowError(
            f"{name!r} is a NumPy array before a loop on traced values, and is changed in place in "
            f"it at {user_line()}, for all that hold it: a program carries values, not objects. "
            f"Make a new array, {name} = {name} + ..., or have one of JAX before the loop, {name} "
            "= jnp.asarray(...)."
        )


# ---------------------------------------------------------------- lists that grow in staged code
@final
class Later:
    """Stands in a list for what the iterations before have appended: it must not be used."""

    __slots__ = ("_list",)

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_list", name)

    def __getattr__(self, _: str) -> NoReturn:
        refuse_reading(object.__getattribute__(self, "_list"))


def _use(self: Later, *_: Any) -> NoReturn:
    refuse_reading(object.__getattribute__(self, "_list"))


for _name in dir(operator):  # arithmetic, comparisons, indexing
    if _name[:2] == "__" and callable(getattr(operator, _name)) and hasattr(operator, _name[2:-2]):
        setattr(Later, _name, _use)
        setattr(Later, f"__r{_name[2:]}", _use)
for _name in ("__bool__", "__float__", "__int__", "__iter__", "__len__", "__jax_array__"):
    setattr(Later, _name, _use)


def check_size(values: Any) -> Any:
    """Return the argument, unless it is a list that is longer than can be said."""
    if type(values) is list and values and type(values[-1]) is Later:
        _use(values[-1])
    return values


def refuse_reading(name: str) -> NoReturn:
    """Raise the error for a list that an iteration appends to, and another one looks at."""
    raise ControlFlowError(
        f"The list {name!r} grows in a loop that is one operation of the program, and is read in "
        f"it at {user_line()}: all iterations are traced as one, which can't see what others have "
        "appended. Keep what the next one needs in a separate name:\n"
        "    last = ...\n"
        "    for x in xs:\n"
        "        last = last + x\n"
        "        out.append(last)"
    )


def uneven_error(name: str, if_so: int, if_not: int) -> ControlFlowError:
    """Return the error for branches that append different numbers of items to a list."""
    return ControlFlowError(
        f"The list {name!r} grows in a branch at {user_line()} whose condition is a traced value, "
        f"by {if_so} items if it holds and by {if_not} if not, so its length would be "
        "traced: a Python list cannot be so long as a value says. Use an array of the greatest "
        "length and a counter, or a jv.TensorArray:\n"
        "    out = jv.TensorArray(jnp.float32, size=n)\n"
        "    out = out.write(i, x)"
    )


def unknown_length_error(name: str) -> ControlFlowError:
    """Return the error for a list that grows in a loop whose number of iterations is traced."""
    return ControlFlowError(
        f"The list {name!r} grows in the loop at {user_line()}, whose number of iterations is a "
        "traced value, so its length would be traced too. Loop over an array or a range of a known "
        "length, or use a jv.TensorArray, which has a size:\n"
        "    out = jv.TensorArray(jnp.float32, size=100)    # the most there can be\n"
        "    for ...:\n"
        "        out = out.write(i, x)\n"
        "    out.stack()"
    )

"""What branches return and loops carry: its form is one, whatever way a program goes.

A value is taken apart (`PyTreeTemplate`) into arrays and a form: the structure, and parts that are
not arrays. The forms must be equal; so must shapes; dtypes must be equal or one of them a Python
number's, which takes the other's. What differs is refused by the name of the Python variable.

Rule this file keeps: eagerly and staged, the same values are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp

from jaxvars.control.forms import (
    Difference,
    Names,
    Type,
    convert_to_type,
    difference,
    flatten_arrays,
    join_all_types,
    type_of,
)
from jaxvars.core.staging import PyTreeTemplate
from jaxvars.errors import ControlFlowError, user_line
from jaxvars.objects.key_order import map_leaves
from jaxvars.tensors.wrapping import box_array, is_boxing, words
from jaxvars.typing import Array


# ---------------------------------------------------------------- branches
@final
class Result(NamedTuple):
    """What a branch returns."""

    form: PyTreeTemplate
    types: Sequence[Type]
    arrays: Callable[[Sequence[Array]], Sequence[Array]]  # takes what the branch's program gives


def match_forms(forms: Sequence[PyTreeTemplate], types: Sequence[Sequence[Type]]) -> list[Result]:
    """Return what branches return, with values that know how to in the form of the others'.

    A TensorArray that was not written in one branch takes the element shape it has in another, and
    a string of Python is an array where it is one in another.
    """
    pairs = list(zip(forms, types, strict=True))
    if all(_outline(form) == _outline(forms[0]) for form in forms):
        return [Result(form, kinds, list) for form, kinds in pairs]
    others = [form(kinds) for form, kinds in pairs]
    return [_match_all(form, kinds, others) for form, kinds in pairs]


def _match_all(form: PyTreeTemplate, types: Sequence[Type], others: Sequence[Any]) -> Result:
    box: list[PyTreeTemplate] = []

    def arrays(values: Sequence[Array]) -> list[Array]:
        value = form(values)
        for other in others:
            value = _match_tree(value, other)
        new, arrays = flatten_arrays(value)
        box[:] = [new]
        return arrays

    new_types = list(map(type_of, jax.eval_shape(arrays, list(types))))
    return Result(box[0], new_types, arrays)


def _match_tree(value: Any, other: Any) -> Any:
    """Return a value whose parts that know how to have the form of another's."""
    try:
        return map_leaves(_match_leaf, value, other, is_leaf=_takes_form)
    except ValueError:  # structures differ elsewhere, too
        return value


def _outline(form: PyTreeTemplate) -> tuple[Any, list[bool]]:
    """Return the structure of a form, and which of its parts are arrays."""
    return form.treedef, [rest is None for rest in form.constants()]


def _takes_form(value: Any) -> bool:
    return hasattr(value, "__carry_like__")


def _match_leaf(value: Any, other: Any) -> Any:
    is_extended = isinstance(other, Type) and jnp.issubdtype(other.dtype, jax.dtypes.extended)
    if is_extended and type(value) in (str, bytes):
        return box_array(value)
    return value.__carry_like__(other) if _takes_form(value) else value


# ---------------------------------------------------------------- loops
@final
class Carried:
    """The values that a loop carries from one iteration to the next: a tuple, and its names."""

    def __init__(self, values: tuple[Any, ...], names: Names) -> None:
        self._names = names
        self.line = user_line()
        self._take(values)

    def _take(self, values: tuple[Any, ...]) -> None:
        self._form, arrays = flatten_arrays(values)
        self.arrays = [jnp.asarray(x) for x in arrays]
        self._types = [type_of(x) for x in self.arrays]

    def __call__(self, arrays: Sequence[Array]) -> tuple[Any, ...]:
        """Return the values with these arrays in them."""
        return self._form(arrays)

    def accept(self, form: PyTreeTemplate, types: Sequence[Type]) -> bool:
        """Check what an iteration returned; return False if it is to be traced again."""
        if _outline(form) != _outline(self._form) and self._reshape(form, types):
            return False
        if (found := difference(self._form, form, (self._types, types), self._names)) is not None:
            raise self._error_for(found)
        new = join_all_types(self._types, types)
        if new == self._types:
            return True
        self.arrays = self.cast(self.arrays, new)
        self._types = list(map(type_of, self.arrays))
        return False

    def cast(self, arrays: Sequence[Array], types: Sequence[Type] | None = None) -> list[Array]:
        """Return arrays, of types that were accepted, as those that are carried."""
        return [convert_to_type(x, t) for x, t in zip(arrays, types or self._types, strict=True)]

    def advance(self, values: Any) -> list[Array]:
        """Return the arrays for the next iteration, of one that was run."""
        form, arrays = flatten_arrays(values)
        arrays = [jnp.asarray(x) for x in arrays]
        self.accept(form, list(map(type_of, arrays)))
        return self.cast(arrays)

    def _reshape(self, form: PyTreeTemplate, types: Sequence[Type]) -> bool:
        """Let values that know how to (TensorArrays) take the form of what was returned."""
        old = _outline(self._form)
        self._take(_match_tree(self._form(self.arrays), form(types)))
        return _outline(self._form) != old

    def _error_for(self, found: Difference) -> ControlFlowError:
        say = _describe_boxed_change if is_boxing() else _describe_change
        return ControlFlowError(
            f"{say(found, self.line)} "
            "what a loop carries keeps its structure, shape and dtype. Make it so before the loop, "
            f"or convert it at the end of the body, for example with {words().cast} or reshape."
        )


def _describe_change(found: Difference, line: str) -> str:
    change = f"changes {found.label} from {found.one} to {found.other} in an iteration"
    return f"The loop at {line} {change}, but"


def _describe_boxed_change(found: Difference, line: str) -> str:
    """Return what changes, as shapes and dtypes of tensors."""
    if found.types is None:
        change = f"does not have the same nested structure: it is {found.one}"
        return f"{found.label} {change} before the loop, and {found.other} after it ({line}):"
    what = "dtype" if found.types[0].dtype != found.types[1].dtype else "shape"
    one, other = (f"{what} {getattr(kind, what)}" for kind in found.types)
    return f"{found.label} has {one} before the loop, but {other} after one iteration ({line}):"


def stackable(y: Any, line: str) -> tuple[PyTreeTemplate, list[Array]]:
    """Take the output of an iteration apart, as a tuple of one; refuse what can't be stacked."""
    form, arrays = flatten_arrays((y,))
    if not form.is_plain:
        raise ControlFlowError(
            f"An output of the loop at {line} holds a non-array, and can't be stacked: {y!r}."
        )
    return form, arrays


@final
class Stack:
    """The outputs of the iterations of a loop."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._rows: dict[int, Sequence[Array]] = {}
        self._form = PyTreeTemplate(None)
        self._types: Sequence[Type] = ()

    def put(self, i: int, y: Any) -> None:
        """Take the output of iteration i; refuse one that differs in form from another's."""
        form, arrays = stackable(y, self._line)
        types = list(map(type_of, arrays))
        if not self._rows:
            self._form, self._types = form, types
        found = difference(self._form, form, (self._types, types), ("the output",))
        if found is not None:
            raise ControlFlowError(
                f"The outputs of the loop at {self._line} can't be stacked: {found.label} is "
                f"{found.one} in one iteration and {found.other} in another."
            )
        self._types = join_all_types(self._types, types)
        self._rows[i] = arrays

    def whole(self) -> Any:
        """Return the outputs of all iterations; there is at least one."""
        rows = [self._rows[i] for i in range(len(self._rows))]
        columns = zip(zip(*rows, strict=True), self._types, strict=True)
        return self._form([jnp.stack([convert_to_type(x, t) for x in xs]) for xs, t in columns])[0]

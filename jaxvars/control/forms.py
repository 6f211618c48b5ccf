"""Values taken apart into arrays and a form, the types of the arrays, and how two differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.staging import PyTreeTemplate
from jaxvars.errors import ControlFlowError, user_line
from jaxvars.objects.identity import Same, exact, leaf_paths
from jaxvars.objects.key_order import map_leaves
from jaxvars.tensors.tensor import is_weak
from jaxvars.tracing import context
from jaxvars.typing import Array

_KINDS = (jnp.bool_, jnp.integer, jnp.floating, jnp.complexfloating)


Names: TypeAlias = Sequence[str]


@final
class Type(jax.ShapeDtypeStruct):
    """The type of an array: a weak one, of a Python number, takes the dtype of others."""

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    __str__ = __repr__


def type_of(value: Any) -> Type:
    """Return the type of an array, a tracer, a number or an abstract value."""
    if not hasattr(value, "dtype"):
        value = jax.typeof(value)
    return Type(value.shape, value.dtype, weak_type=is_weak(value))


def without_axis(x: Array, axis: int) -> Type:
    """Return the type of what is left of an array at one place of an axis."""
    shape = (*x.shape[:axis], *x.shape[axis % x.ndim + 1 :])
    return Type(shape, x.dtype, weak_type=type_of(x).weak_type)


def join_types(one: Type, other: Type) -> Type | None:
    """Return the type for values of either type; None if there is none."""
    if one.shape != other.shape:
        return None
    if one.dtype == other.dtype:
        return one if other.weak_type else other
    for weak, strong in ((one, other), (other, one)):
        if weak.weak_type and _rank(weak.dtype) <= _rank(strong.dtype):
            return strong
    return None


def join_all_types(ones: Sequence[Type], others: Sequence[Type]) -> list[Type]:
    """Return the types for values of either types, which do not differ."""
    pairs = zip(ones, others, strict=True)
    return [one if (both := join_types(one, other)) is None else both for one, other in pairs]


def _rank(dtype: Any) -> int:
    return next((i for i, kind in enumerate(_KINDS) if jnp.issubdtype(dtype, kind)), -1)


def convert_to_type(value: Array, kind: Type) -> Array:
    """Return a value as an array of a type that was joined from its type; refuse an overflow."""
    array = jnp.asarray(value)
    have = type_of(array)
    if have.dtype == kind.dtype and have.weak_type == kind.weak_type:
        return array
    if not context.is_tracer(value) and jnp.issubdtype(kind.dtype, jnp.integer):
        _check_fits(np.asarray(value), kind)
    return jax.lax.convert_element_type(array, kind.dtype)


def _check_fits(value: Any, kind: Type) -> None:
    info: Any = jnp.iinfo(kind.dtype)
    if value.size and not info.min <= value.min() <= value.max() <= info.max:
        raise ControlFlowError(
            f"At {user_line()} {value} is to be a {kind.dtype}, as the other branch or the next "
            f"iteration has it, but that holds {info.min} to {info.max}. Convert the other one to "
            "a wider dtype."
        )


def read_variables(value: Any) -> Any:
    """Return a value with arrays for the variables in it: what they hold now."""
    return map_leaves(lambda x: x, value)


def flatten_arrays(value: Any) -> tuple[PyTreeTemplate, list[Array]]:
    """Return a value's form, which holds no arrays, and its arrays."""
    form = PyTreeTemplate(read_variables(value))
    arrays, form.arrays = form.arrays, []
    return form, arrays


# ---------------------------------------------------------------- what differs, for messages
@final
class Difference(NamedTuple):
    """Where two values differ: in what, how each is there, and their types if these differ."""

    label: str
    one: str
    other: str
    types: tuple[Type, Type] | None = None


def difference(
    one: PyTreeTemplate, other: PyTreeTemplate, types: Sequence[Sequence[Type]], names: Names
) -> Difference | None:
    """Return the first difference of two tuples, whose elements have names; None if none."""
    if one.treedef != other.treedef:
        return _different_structure(one, other, types, names)
    arrays = zip(*types, strict=False)
    for i, (a, b) in enumerate(zip(one.constants(), other.constants(), strict=True)):
        if a is None and b is None:
            x, y = next(arrays)
            if join_types(x, y) is None:
                return Difference(_label(one.treedef, i, names), str(x), str(y), (x, y))
        elif a is None or b is None or not _is_same(a(), b()):
            pair = [_format_part(rebuild, i, kinds) for rebuild, kinds in zip((one, other), types)]  # noqa: B905 - two each
            shown = f"another {pair[1]}" if pair[0] == pair[1] else pair[1]
            return Difference(_label(one.treedef, i, names), pair[0], shown)
    return None


def _different_structure(
    one: PyTreeTemplate, other: PyTreeTemplate, types: Sequence[Sequence[Type]], names: Names
) -> Difference:
    trees = [rebuild(list(kinds)) for rebuild, kinds in zip((one, other), types, strict=True)]
    for name, a, b in zip(names, *trees, strict=False):
        if jax.tree.structure(a) != jax.tree.structure(b):
            return Difference(_quote_name(name), repr(a), repr(b))
    return Difference(_RESULT, repr(trees[0]), repr(trees[1]))


def describe(value: Any) -> str:
    """Return the repr of a value, with types for arrays."""
    form, arrays = flatten_arrays(value)
    return repr(form(list(map(type_of, arrays))))


_RESULT = "the result"


def _quote_name(name: str) -> str:
    return name if name.startswith("the ") else repr(name)


def _format_part(rebuild: PyTreeTemplate, i: int, types: Sequence[Type]) -> str:
    constant = rebuild.constants()[i]
    if constant is not None:
        return repr(constant())
    return str(types[sum(c is None for c in rebuild.constants()[:i])])


def _is_same(one: object, other: object) -> bool:
    """Return whether two parts are one object, or values that nothing tells apart."""
    try:
        return one is other or bool(exact(one, Same) == exact(other, Same))
    except Exception:  # noqa: BLE001 - an == that fails says that they are not the same
        return False


def _label(treedef: Any, i: int, names: Names) -> str:
    path = leaf_paths(treedef)[i]
    place = int(path[0].idx) if path else len(names)
    name = names[place] if place < len(names) else _RESULT
    return _quote_name(name + jax.tree_util.keystr(path[1:]))

"""What differs between two values of branches or iterations, as messages name it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, final

import jax

from jaxvars.control.forms import Type, flatten_arrays, joined, type_of
from jaxvars.core.staging import PyTreeTemplate
from jaxvars.tracing.identity import Same, exact

Names: TypeAlias = Sequence[str]


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
            if joined(x, y) is None:
                return Difference(_label(one.treedef, i, names), str(x), str(y), (x, y))
        elif a is None or b is None or not _is_same(a(), b()):
            text = [_text(rebuild, i, kinds) for rebuild, kinds in zip((one, other), types)]  # noqa: B905 - two each
            said = f"another {text[1]}" if text[0] == text[1] else text[1]
            return Difference(_label(one.treedef, i, names), text[0], said)
    return None


def _different_structure(
    one: PyTreeTemplate, other: PyTreeTemplate, types: Sequence[Sequence[Type]], names: Names
) -> Difference:
    trees = [rebuild(list(kinds)) for rebuild, kinds in zip((one, other), types, strict=True)]
    for name, a, b in zip(names, *trees, strict=False):
        if jax.tree.structure(a) != jax.tree.structure(b):
            return Difference(_said(name), repr(a), repr(b))
    return Difference(_RESULT, repr(trees[0]), repr(trees[1]))


def described(value: Any) -> str:
    """Return the repr of a value, with types for arrays."""
    form, arrays = flatten_arrays(value)
    return repr(form(list(map(type_of, arrays))))


_RESULT = "the result"


def _said(name: str) -> str:
    return name if name.startswith("the ") else repr(name)


def _text(rebuild: PyTreeTemplate, i: int, types: Sequence[Type]) -> str:
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
    numbered = jax.tree.unflatten(treedef, range(treedef.num_leaves))
    path = jax.tree_util.tree_flatten_with_path(numbered)[0][i][0]
    place = int(path[0].idx) if path else len(names)
    name = names[place] if place < len(names) else _RESULT
    return _said(name + jax.tree_util.keystr(path[1:]))

"""`tf.nest`: structures of lists, tuples and dicts, with everything else as leaves.

Rules this file keeps:
- dicts are visited by sorted keys; None, strings, tensors, variables and sets are leaves;
- objects with `__tf_flatten__` and `__tf_unflatten__` consist of what these say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jaxvars.tf.listing import lister

COMPOSITES: dict[type, tuple[Callable[[Any], Sequence[Any]], Callable[..., Any]]] = {}
"""Classes of tensors that consist of others: what returns these, and what makes one of them, with
one as a model."""


def is_nested(structure: Any) -> bool:
    """Return whether something is a list, a tuple, a dict or of their kind.

    >>> is_nested([1]), is_nested(1)
    (True, False)
    """
    if isinstance(structure, list | tuple | dict):
        return True
    is_text = isinstance(structure, str | bytes | bytearray)
    is_more = isinstance(structure, Sequence | Mapping) or _is_custom(structure)
    return not is_text and is_more


def _is_custom(structure: Any) -> bool:
    return hasattr(type(structure), "__tf_flatten__")


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """Return the leaves of a structure as a list.

    >>> flatten({"b": [1, (2,)], "a": None})
    [None, 1, 2]
    """
    if expand_composites:
        structure = _expand(structure)
    if not is_nested(structure):
        return [structure]
    return [leaf for part in _parts(structure) for leaf in flatten(part)]


def _expand(structure: Any) -> Any:
    """Return a structure with the tensors that composite ones consist of, in their places."""
    if is_nested(structure):
        return _like(structure, list(map(_expand, _parts(structure))))
    known = COMPOSITES.get(type(structure))
    return structure if known is None else list(map(_expand, known[0](structure)))


def _collapse(structure: Any, expanded: Any) -> Any:
    """Return what `_expand` makes such tensors of, with those of a structure as models."""
    if is_nested(structure):
        pairs = zip(_parts(structure), _parts(expanded), strict=True)
        return _like(structure, [_collapse(*pair) for pair in pairs])
    known = COMPOSITES.get(type(structure))
    if known is None:
        return expanded
    return known[1](structure, *map(_collapse, known[0](structure), expanded))


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Return a structure of what a function makes of the leaves of others of its form.

    Raises:
        ValueError: without structures, or when their forms differ.
        TypeError: when their types differ.

    >>> map_structure(lambda x, y: x + y, {"a": [1, 2]}, {"a": [10, 20]})
    {'a': [11, 22]}
    """
    if not structure:
        raise ValueError("Must provide at least one structure")
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    check_types = kwargs.pop("check_types", True)
    expands = kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(
            "Only valid keyword arguments are `check_types` and `expand_composites`, not: "
            f"`{'`, `'.join(kwargs)}`"
        )
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, expands)
    if expands:
        return _collapse(structure[0], _map(func, tuple(map(_expand, structure))))
    return _map(func, structure)


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raise unless two structures have the same form.

    Raises:
        ValueError: when the number of parts or the keys differ.
        TypeError: when the types of the containers differ.
    """
    one, other = map(_expand, (nest1, nest2)) if expand_composites else (nest1, nest2)
    try:
        _compare(one, other, check_types)
    except (TypeError, ValueError) as why:
        raise type(why)(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: {_describe(nest1)}\n\nSecond structure: {_describe(nest2)}\n\n"
            f"More specifically: {why}\n"
            "Entire first structure:\n"
            f"{_dots(nest1)}\nEntire second structure:\n{_dots(nest2)}"
        ) from None


def _compare(one: Any, other: Any, check_types: bool) -> None:
    if is_nested(one) != is_nested(other):
        nested, leaf = (one, other) if is_nested(one) else (other, one)
        raise ValueError(
            f'Substructure "{_describe(nested)}" is a sequence, while substructure '
            f'"{_describe(leaf)}" is not'
        )
    if not is_nested(one):
        return
    if check_types and _kind(one) != _kind(other):
        raise TypeError(
            "The two structures don't have the same sequence type. First structure has type "
            f"{type(one)}, while second structure has type {type(other)}."
        )
    mappings = isinstance(one, Mapping) and isinstance(other, Mapping)
    if check_types and mappings and set(one) != set(other):
        raise ValueError(
            "The two dictionaries don't have the same set of keys. First structure has keys "
            f"{list(one)}, while second structure has keys {list(other)}"
        )
    for mine, theirs in zip(_parts(one), _parts(other), strict=False):
        _compare(mine, theirs, check_types)
    if len(_parts(one)) != len(_parts(other)):
        raise ValueError(
            "The two structures don't have the same number of elements. First structure: "
            f"{_describe(one)}. Second structure: {_describe(other)}"
        )


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """Return a structure with the leaves of a list in place of its own.

    Raises:
        ValueError: when there are more or fewer of them.
        TypeError: when they are in no list.

    >>> pack_sequence_as({"a": [0, 0]}, [1, 2])
    {'a': [1, 2]}
    """
    if not is_nested(flat_sequence):
        raise TypeError(
            f"Attempted to pack value:\n  {flat_sequence}\ninto a structure, but found "
            f"incompatible type `{type(flat_sequence)}` instead."
        )
    leaves = list(flat_sequence)
    count = len(flatten(structure, expand_composites))
    if len(leaves) != count:
        raise ValueError(
            f"Could not pack sequence. Structure had {count} atoms, but "
            f"flat_sequence had {len(leaves)} items.  Structure: {structure}, flat_sequence: "
            f"{leaves}."
        )
    if expand_composites:
        return _collapse(structure, _pack(_expand(structure), iter(leaves)))
    return _pack(structure, iter(leaves))


def _pack(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    return _like(structure, [_pack(part, leaves) for part in _parts(structure)])


def _map(func: Callable[..., Any], structures: tuple[Any, ...]) -> Any:
    first = structures[0]
    if not is_nested(first):
        return func(*structures)
    rows = zip(*map(_parts, structures), strict=True)
    return _like(first, [_map(func, row) for row in rows])


def _parts(structure: Any) -> list[Any]:
    if type(structure) in (list, tuple):
        return list(structure)
    if _is_custom(structure):
        return list(structure.__tf_flatten__()[1])
    return (
        [structure[key] for key in _keys(structure)]
        if isinstance(structure, Mapping)
        else list(structure)
    )


def _keys(structure: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(structure)
    except TypeError:
        raise TypeError(
            f"nest only supports dicts with sortable keys. Error: the keys are {list(structure)}"
        ) from None


def _like(structure: Any, parts: Sequence[Any]) -> Any:
    """Return a container like another one, with other parts."""
    if _is_custom(structure):
        return type(structure).__tf_unflatten__(structure.__tf_flatten__()[0], tuple(parts))
    if isinstance(structure, Mapping):
        made = dict(zip(_keys(structure), parts, strict=True))
        ordered = {key: made[key] for key in structure}
        if type(structure) is dict:
            return ordered
        if isinstance(structure, defaultdict):
            return defaultdict(structure.default_factory, ordered)
        return type(structure)(ordered)  # pyright: ignore[reportCallIssue] - other mappings take one
    if hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return list(parts) if isinstance(structure, range) else type(structure)(parts)


def _kind(structure: Any) -> Any:
    if hasattr(structure, "_fields"):  # named tuples are the same by their names
        return type(structure).__name__, structure._fields
    return dict if isinstance(structure, Mapping) else type(structure)


def _describe(structure: Any) -> str:
    return f"type={type(structure).__name__} str={structure}"


def _dots(structure: Any) -> str:
    """Return a structure as a string, with a dot for each leaf."""
    if not is_nested(structure):
        return "."
    if isinstance(structure, Mapping):
        return f"{{{', '.join(f'{k!r}: {_dots(structure[k])}' for k in _keys(structure))}}}"
    inner = ", ".join(map(_dots, _parts(structure)))
    return f"[{inner}]" if isinstance(structure, list) else f"({inner})"


__dir__ = lister(__name__)

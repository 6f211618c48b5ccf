"""`tf.nest`: structures of lists, tuples and dicts, with everything else as leaves.

Rules this file keeps:
- dicts are visited by sorted keys; None, tensors, variables and sets are leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any


def is_nested(structure: Any) -> bool:
    """Tell whether something is a list, a tuple or a dict.

    >>> is_nested([1]), is_nested(1)
    (True, False)
    """
    return isinstance(structure, list | tuple | Mapping)


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """Return the leaves of a structure as a list.

    >>> flatten({"b": [1, (2,)], "a": None})
    [None, 1, 2]
    """
    if not is_nested(structure):
        return [structure]
    return [leaf for part in _parts(structure) for leaf in flatten(part)]


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Return a structure of what a function makes of the leaves of others of its form.

    Raises:
        ValueError: when there is no structure, or their forms differ.
        TypeError: when their types differ.

    >>> map_structure(lambda x, y: x + y, {"a": [1, 2]}, {"a": [10, 20]})
    {'a': [11, 22]}
    """
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = kwargs.pop("check_types", True)
    kwargs.pop("expand_composites", None)
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types=check_types)
    return _mapped(func, structure, kwargs)


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raise unless two structures have the same form.

    Raises:
        ValueError: when the number of parts or the keys differ.
        TypeError: when the types of the containers differ.
    """
    if is_nested(nest1) != is_nested(nest2):
        raise ValueError(_differ(nest1, nest2, "one of them is nested and the other is not"))
    if not is_nested(nest1):
        return
    if check_types and _kind(nest1) is not _kind(nest2):
        raise TypeError(_differ(nest1, nest2, f"their types are {type(nest1)} and {type(nest2)}"))
    if len(nest1) != len(nest2):
        raise ValueError(_differ(nest1, nest2, f"they have {len(nest1)} and {len(nest2)} parts"))
    if isinstance(nest1, Mapping) and set(nest1) != set(nest2):
        raise ValueError(_differ(nest1, nest2, f"their keys are {set(nest1)} and {set(nest2)}"))
    for part, other in zip(_parts(nest1), _parts(nest2), strict=True):
        assert_same_structure(part, other, check_types)


def pack_sequence_as(
    structure: Any, flat_sequence: Iterable[Any], expand_composites: bool = False
) -> Any:
    """Return a structure with the leaves of a list in place of its own.

    Raises:
        ValueError: when there are more or fewer of them.

    >>> pack_sequence_as({"a": [0, 0]}, [1, 2])
    {'a': [1, 2]}
    """
    leaves = list(flat_sequence)
    if len(leaves) != len(flatten(structure)):
        raise ValueError(
            f"Could not pack sequence. Structure had {len(flatten(structure))} atoms, but "
            f"flat_sequence had {len(leaves)} items. Structure: {structure}, flat_sequence: "
            f"{leaves}."
        )
    return _packed(structure, iter(leaves))


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    return _like(structure, [_packed(part, leaves) for part in _parts(structure)])


def _mapped(func: Callable[..., Any], structures: tuple[Any, ...], kwargs: Any) -> Any:
    first = structures[0]
    if not is_nested(first):
        return func(*structures, **kwargs)
    rows = zip(*map(_parts, structures), strict=True)
    return _like(first, [_mapped(func, row, kwargs) for row in rows])


def _parts(structure: Any) -> list[Any]:
    if isinstance(structure, Mapping):
        return [structure[key] for key in sorted(structure)]
    return list(structure)


def _like(structure: Any, parts: list[Any]) -> Any:
    """Return a container like another one, with other parts."""
    if isinstance(structure, Mapping):
        made = dict(zip(sorted(structure), parts, strict=True))
        ordered = {key: made[key] for key in structure}
        return ordered if type(structure) is dict else type(structure)(ordered)  # pyright: ignore[reportCallIssue] - other mappings take one
    if hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return type(structure)(parts)


def _kind(structure: Any) -> type:
    return dict if isinstance(structure, Mapping) else type(structure)


def _differ(nest1: Any, nest2: Any, how: str) -> str:
    return (
        "The two structures don't have the same nested structure.\n\n"
        f"First structure: {nest1}\n\nSecond structure: {nest2}\n\nMore specifically: {how}."
    )

"""Find objects of one kind inside others, by path and in a stable order.

Rules this file keeps:
- attributes and dict entries are visited sorted by name, sequences by position; what is in
  a `Holder` (a Module) comes after its siblings that are not, as TensorFlow orders variables;
- the attributes of what has entries, a Module that is a Mapping or a subclass of dict, come after
  all else: what has been found by then keeps its paths, and has no other by them;
- every object is visited once, under the first path that reaches it, so cycles end; the other paths
  are made of the places where it was met again, and none leads through an object twice;
- what cannot hold variables is not entered: a variable, arrays of numbers, strings, numbers,
  functions, classes (nor their attributes, through an instance), modules of Python; nor are slots
  of the classes in `HIDING` whose names begin with two underscores.
"""

from __future__ import annotations

import copy
import functools
import heapq
import itertools
import operator
import re
import weakref
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias, TypeVar, final

import jax
import numpy as np

T = TypeVar("T")

CLOSED_TYPES = (
    str, bytes, int, float, complex, bool, type(None), type, np.ndarray, np.generic, jax.Array,
    ModuleType, FunctionType, MethodType, BuiltinFunctionType,
)  # fmt: skip

Path: TypeAlias = tuple[str, ...]
Seen: TypeAlias = dict[int, tuple[Path, object]]

_MOST_PATHS, _MOST_STEPS = 64, 4096  # for one object: there may be exponentially many

_BOXES = (dict, list, tuple, deque, set, frozenset)

Pattern: TypeAlias = str | re.Pattern[str] | Callable[[str, Any], bool]
_GLOB = {"**/": "(?:.+/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


class Holder(ABC):  # noqa: B024 - a mark, without methods
    """An object whose own contents are listed before those of the holders in it."""


class Tied(str):
    """A part of a path that stands for an object found elsewhere, such as a slot's variable.

    Args:
        name: what the object is called here.
        tie: returns the object, or None if it is gone.
        is_path: whether the name is a path that the user gave, rather than the object's name.
    """

    __slots__ = ("is_path", "tie")

    def __new__(cls, name: str, tie: Callable[[], object], is_path: bool = False) -> Tied:
        made = super().__new__(cls, name)
        made.tie, made.is_path = tie, is_path
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.tie, self.is_path


@final
class Tie:
    """A weak reference to an object that copies and pickles along with it.

    Copied without the object it refers to the original, and unpickled without it `is_lost`: if
    nothing has kept the object's copy when the reference is first followed.
    """

    __slots__ = ("_instead", "_ref")

    def __init__(self, held: object, instead: Callable[[], Any] | None = None) -> None:
        self._ref: Callable[[], Any] = _find_nothing if held is None else weakref.ref(held)
        self._instead = instead

    def __call__(self) -> Any:
        if (instead := self._instead) is not None:
            self._ref = instead if self._ref() is None else self._ref
            self._instead = None  # last: another thread may be here, too
        return self._ref()

    @property
    def is_lost(self) -> bool:
        """Whether it was unpickled without its object."""
        return self() is None and self._ref is _find_lost

    def __deepcopy__(self, memo: dict[int, Any]) -> Tie:
        return Tie(copy.deepcopy(self(), memo), self._ref)

    def __reduce__(self) -> tuple[type[Tie], tuple[Any, Callable[[], Any]]]:
        held = self()
        return Tie, (held, _find_nothing if held is None and not self.is_lost else _find_lost)


def _find_nothing() -> None:
    """Stand for an object that is gone."""


def _find_lost() -> None:
    """Stand for an object that was not pickled with what is tied to it."""


class Proxy(ABC):
    """An object that stands for another one, which is found in its place, under its path."""

    __slots__ = ()

    @property
    @abstractmethod
    def aliased(self) -> object:
        """The other one."""


PROXIES: dict[type, Callable[[Any], object]] = {}
"""Classes that are not an Alias but stand for another object, and what returns that."""

ATOMS: set[type] = {Tie}
"""Classes whose own objects hold nothing; those of classes below may have other attributes."""

PARTS: dict[type, Callable[[Any], Iterable[tuple[str, object]]]] = {}
"""Classes whose objects, and those of classes below, hold other things than their attributes."""


HIDING: set[type] = set()
"""Classes whose slots that begin with two underscores are passed over, as not their own."""


WALKS: list[Callable[[object, Any], Iterator[tuple[Path, Any]]]] = []
"""What walks instead of `walk` where variables are looked for: it may refuse what it meets."""


def walk_known(root: object, kind: type[T]) -> Iterator[tuple[Path, T]]:
    """Yield what `walk` yields, unless there is something that it would pass over in silence."""
    return (WALKS[0] if WALKS else walk)(root, kind)


def resolve_proxy(value: object) -> object:
    """Return what an object stands for; itself, if for nothing else."""
    if isinstance(value, Proxy):
        return value.aliased
    find = PROXIES.get(type(value))
    return value if find is None else find(value)


def walk(
    root: object, kind: type[T] | tuple[type[T], ...], *,
    seen: Seen | None = None, met: list[tuple[Path, object]] | None = None,
) -> Iterator[tuple[Path, T]]:  # fmt: skip
    """Yield each object of `kind` below `root` (or `root` itself), with its path.

    An object of `kind` is entered too, so that modules within modules are found.

    Args:
        root: where it begins.
        kind: which objects.
        seen: is given what was visited, with its path, by id.
        met: is given what was met again, with its other path.

    >>> list(walk({"b": [2.0, "x"], "a": "y"}, list))
    [(('b',), [2.0, 'x'])]
    """
    seen = {} if seen is None else seen
    holders: list[tuple[Path, object]] = [((), root)]
    beside: list[tuple[Path, object]] = []
    while holders or beside:
        if not holders:
            holders, met = [beside.pop(0)], None
        path, holder = holders.pop(0)
        inner: list[tuple[Path, object]] = []
        yield from _walk(holder, kind, path, seen, inner, beside, met)
        holders[:0] = inner


def walk_again(root: object, kind: type[T] | tuple[type[T], ...]) -> Iterator[tuple[Path, T]]:
    """Yield the other paths of what `walk` yields, the short ones of an object first.

    >>> shared = [2.0]
    >>> list(walk_again({"a": {"b": shared}, "c": shared}, list))
    [(('c',), [2.0])]
    """
    seen: Seen = {}
    met: list[tuple[Path, object]] = []
    found = list(walk(root, kind, seen=seen, met=met))
    others: dict[Path, list[Path]] = {}
    untold = _find_untold(seen) if met else set[Path]()
    for path, value in met:
        if path and (first := seen[id(value)][0]) not in untold:
            others.setdefault(first, []).append(path)
    for first, value in found if others else ():
        yield from ((path, value) for path in itertools.islice(_others(first, others), _MOST_PATHS))


def _find_untold(seen: Seen) -> set[Path]:
    """Return the paths that several objects have, as in a set."""
    boxes = [(p, box) for p, box in seen.values() if isinstance(box, set | frozenset | Mapping)]
    counts = Counter((*path, name) for path, box in boxes for name, _ in children_of(box))
    return {path for path, count in counts.items() if count > 1}


def _others(first: Path, known: Mapping[Path, Sequence[Path]]) -> Iterator[Path]:
    """Yield the other paths of an object, from there to the root, short ones first.

    Args:
        first: the path under which it was visited.
        known: the places at which objects were met again, by the paths under which they were.
    """
    left: list[tuple[float, int, float, Path, Path, frozenset[Path]]]
    left = [(len(first), len(first), 0, first, (), frozenset([first]))]
    for i in range(1, _MOST_STEPS):
        if not left:
            return
        *_, place, rest, passed = heapq.heappop(left)
        if not place and rest != first:
            yield rest
        for j, met in enumerate((place, *known.get(place, ())) if place else ()):
            holder, new = met[:-1], (met[-1], *rest)
            if holder not in passed:
                step = len(holder) + len(new), len(holder), i + j / _MOST_STEPS
                heapq.heappush(left, (*step, holder, new, passed | {holder}))


def _walk(
    value: object,
    kind: type[T] | tuple[type[T], ...],
    path: Path,
    seen: Seen,
    holders: list[tuple[Path, object]],
    beside: list[tuple[Path, object]],
    met: list[tuple[Path, object]] | None,
) -> Iterator[tuple[Path, T]]:
    if isinstance(value, CLOSED_TYPES) and not holds_objects(value):
        return
    if id(value) in seen:
        if met is not None:
            met.append((path, value))
        return
    seen[id(value)] = path, value  # kept: a Mapping may make its parts as they are read
    if isinstance(value, kind):
        yield path, value
    for name, child in children_of(value):
        if isinstance(child, Holder):
            holders.append(((*path, name), child))
        else:
            below = (*path, name) if name else path
            yield from _walk(child, kind, below, seen, holders, beside, met)
    beside += [((*path, name), child) for name, child in _list_beside(value)]


def reaches(root: object, is_wanted: Callable[[object], bool]) -> bool:
    """Return whether an object that is wanted is `root` or below it.

    >>> reaches({"a": [1, deque(["x"])]}, lambda value: value == "x")
    True
    """
    seen: dict[int, object] = {}
    left = [root]
    while left:
        value = left.pop()
        if is_wanted(value):
            return True
        if id(value) not in seen and (not isinstance(value, CLOSED_TYPES) or holds_objects(value)):
            seen[id(value)] = value
            left.extend(child for _, child in (*children_of(value), *_list_beside(value)))
    return False


def children_of(value: object) -> Iterable[tuple[str, object]]:
    if type(value) in ATOMS:
        return ()
    other = resolve_proxy(value)
    if other is not value:
        return [("", other)]
    if isinstance(value, Mapping):
        return sorted(((_part(key), child) for key, child in value.items()), key=lambda kv: kv[0])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return zip(value._fields, value, strict=True)  # pyright: ignore[reportAttributeAccessIssue] - a named tuple
    if isinstance(value, functools.partial):
        return [("args", value.args), ("func", value.func), ("keywords", value.keywords)]
    if isinstance(value, np.ndarray):
        return [("/".join(map(str, i)), child) for i, child in np.ndenumerate(value)]
    if isinstance(value, list | tuple | deque | ValuesView):
        return [(str(i), child) for i, child in enumerate(value)]
    if isinstance(value, set | frozenset):
        return [("0", child) for child in value]  # a set has no order to number them by
    return next(filter(None, map(PARTS.get, type(value).__mro__)), _list_attributes)(value)


def _list_beside(value: object) -> Sequence[tuple[str, object]]:
    """Return the attributes of an object that `children_of` lists the entries of."""
    is_box = isinstance(value, _BOXES) or (isinstance(value, Holder) and isinstance(value, Mapping))
    return _list_attributes(value) if is_box and type(value) not in _BOXES else ()


def holds_objects(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.hasobject


def matcher(pattern: Pattern) -> Callable[[str, Any], bool]:
    """Return what says whether a pattern fits a path, and what is there.

    Args:
        pattern: a glob for the whole path, where `*` and `?` stand for characters of one part of
            it and `**` for any parts; a compiled regular expression, to be found in the path; or a
            function of the path and what is there.

    Raises:
        ValueError: when a string is a regular expression rather than a glob.
        TypeError: when it is none of these.

    >>> fits = matcher("layers/*/bias")
    >>> fits("layers/0/bias", None), fits("layers/0/norm/bias", None)
    (True, False)
    >>> [matcher("**/bias")(path, None) for path in ("bias", "layers/0/bias", "layers/0/w")]
    [True, True, False]
    """
    if isinstance(pattern, re.Pattern):
        return lambda path, _: pattern.search(path) is not None
    if type(pattern).__module__ == "flax.nnx.filterlib":  # it is called with other arguments
        raise TypeError(f"{pattern!r} is a filter of nnx: give a class, as nnx.Param, and but=.")
    if callable(pattern):
        return pattern
    if not isinstance(pattern, str):
        raise TypeError(
            "A pattern is a string, a compiled regular expression or a function of a path and a "
            f"variable, not {type(pattern).__name__}."
        )
    if re.search(r"[$^|\\+]|\.\*", pattern):
        raise ValueError(
            f"{pattern!r} is a regular expression, and a pattern that is a string is a glob for "
            f'the whole path, like "**/kernel". Write re.compile({pattern!r}), which is searched.'
        )
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    fits = re.compile("".join(_GLOB.get(part, re.escape(part)) for part in parts)).fullmatch
    return lambda path, _: fits(path) is not None


def first_of(
    rules: Iterable[tuple[Pattern, T]], are_equal: Callable[[T, T], object] = operator.eq
) -> Callable[[Sequence[str], Any], T]:
    """Return what finds the first of some rules whose pattern fits one of the paths of an object.

    It raises LookupError where none fits; and where another rule is the first for another of the
    paths, does not fit this one, and is not equal. A pattern that is a path decides.
    """
    known = [(pattern, matcher(pattern), rule) for pattern, rule in rules]

    def find(paths: Sequence[str], value: Any) -> T:
        fit = {p: [i for i, (_, fits, _) in enumerate(known) if fits(p, value)] for p in paths}
        firsts = sorted((found[0], path) for path, found in fit.items() if found)
        if not firsts:
            patterns = [pattern for pattern, *_ in known]
            raise LookupError(f'has no rule: its path matches none of {patterns}; "**" fits all')
        first, path = firsts[0]
        pattern, _, rule = known[first]
        for i, another in () if pattern in paths else firsts:
            if i not in fit[path] and not are_equal(rule, known[i][2]):
                raise LookupError(
                    f"has several paths, and rules that differ: {pattern!r} for {path!r}, "
                    f"{known[i][0]!r} for {another!r}. Put a rule before them whose pattern is one "
                    "of these paths"
                )
        return rule

    return find


def _part(key: object) -> str:
    return key if isinstance(key, str) else str(key)


def _list_attributes(value: object) -> list[tuple[str, object]]:
    return sorted(attributes_of(value).items())


def attributes_of(value: object) -> dict[str, object]:
    found = dict(getattr(value, "__dict__", {}))
    for owner in type(value).__mro__:
        slots = owner.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            name = slot
            if slot.startswith("__") and not slot.endswith("__"):  # as Python renames it
                name = slot if owner in HIDING else f"_{owner.__name__.lstrip('_')}{slot}"
            if not name.startswith("__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found

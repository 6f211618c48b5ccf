"""Lists and dicts that a block returns: copies, where Python would have one of several objects.

    dst = big if x > 0 else small     # the values of the one or the other, in a new list
    dst[0] += x                       # Python would change `big` or `small`: refused

Rules this file keeps:
- a copy and what it may be in Python can be read; if one of them is changed, it is refused when
  the trace of the function, branch or iteration ends: the others would not follow;
- what no name or object of the user's holds any more cannot be changed, or read;
- two copies that may be one object belong together like a copy and what it may be.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import takewhile
from traceback import walk_stack
from types import FrameType, FunctionType
from typing import Any, NamedTuple, TypeAlias, final

from jaxvars.autograph.operators.places import Kept
from jaxvars.autograph.operators.values import MaybeUndefined
from jaxvars.autograph.operators.world import World, is_users
from jaxvars.errors import ControlFlowError, package_of
from jaxvars.objects.identity import are_same

Path: TypeAlias = tuple[Any, ...]
Container: TypeAlias = "list[Any] | dict[Any, Any]"

_KINDS = frozenset({list, dict, defaultdict, OrderedDict})  # of which JAX makes new ones


@final
class Copy(NamedTuple):
    """A list or dict that a block has made, and others, each with what was in it."""

    made: Container
    others: list[Container]
    before: list[list[Any]]
    name: str
    line: str

    def among(self, world: World) -> Copy | None:
        """Return the same of what can be reached, if it is more than one of them."""
        pairs = zip(self.others, self.before[1:], strict=True)
        found = [pair for pair in pairs if world.holds(pair[0])]
        if not found or not world.holds(self.made):
            return None
        others, before = map(list, zip(*found, strict=True))
        return self._replace(others=others, before=[self.before[0], *before])

    def check(self) -> None:
        """Refuse that one of them has changed since."""
        now = map(content, (self.made, *self.others))
        if not all(map(are_same, now, self.before)):
            raise copied_error(self.made, self.name, self.line)


@final
class _Local(threading.local):
    """Of each thread: the copies of the function that is traced, and the frame that called it."""

    copies: list[Copy] | None = None
    frame: FrameType | None = None


_LOCAL = _Local()


@final
class Watched:
    """A block in which a function is run that is traced as a whole."""

    def __enter__(self) -> None:
        self._outer = _LOCAL.copies, _LOCAL.frame
        _LOCAL.copies, _LOCAL.frame = [], sys._getframe(1)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        found = _LOCAL.copies or ()
        _LOCAL.copies, _LOCAL.frame = self._outer
        del self._outer
        for copy in found if kind is None else ():
            copy.check()


def count() -> int:
    """Return how many copies there are, for `check` and `forget`."""
    return len(_LOCAL.copies or ())


def check(start: int) -> None:
    """Refuse changes of what has been noted since there were so many copies."""
    for copy in (_LOCAL.copies or [])[start:]:
        copy.check()


def forget(start: int) -> None:
    """Forget what has been noted since: it belongs to a trace that ends."""
    del (_LOCAL.copies or [])[start:]


def settle(start: int, roots: Sequence[Any]) -> None:
    """Check what has been noted since, by a call; forget what is in no one's hands after it.

    Args:
        start: how many copies there were before.
        roots: the function, and what it has returned.
    """
    if _LOCAL.copies is not None and start < len(_LOCAL.copies):
        check(start)
        world = _world_of(roots)
        found = [copy.among(world) for copy in _LOCAL.copies[start:]]
        _LOCAL.copies[start:] = [copy for copy in found if copy is not None]


def note(made: Container, others: Sequence[Any], name: str, line: str) -> None:
    """Note what a block has made, and what it may be in Python."""
    if _LOCAL.copies is not None:
        before = list(map(content, (made, *others)))
        _LOCAL.copies.append(Copy(made, list(others), before, name, line))


def content(container: Container) -> list[Any]:
    """Return what is in a list or dict, to be compared by `are_same`."""
    return [*container, *(container.values() if isinstance(container, dict) else ())]


def copied_error(container: Container, name: str, line: str) -> ControlFlowError:
    """Return the error for a change of a copy, or of what it is a copy of."""
    return ControlFlowError(
        f"{name!r} is a copy after the branch or loop at {line}, on a traced value: a program "
        "chooses values, not objects. It is changed in place later, or what it would be in Python "
        f"is: a {type(container).__name__} that others hold, too, and they would not follow. "
        "Choose between copies,\n"
        "    rows = first.copy() if ... else second.copy()\n"
        "or change each in its own branch:\n"
        "    if ...:\n"
        "        first[0] += x\n"
        "    else:\n"
        "        second[0] += x"
    )


# ---------------------------------------------------------------- lists and dicts in values
def is_container(value: Any) -> bool:
    """Return whether a value is a list or dict that comes back from a block as another one."""
    return type(value) in _KINDS


def containers(value: Any, path: Path = ()) -> Iterator[tuple[Path, Container]]:
    """Return the lists and dicts in a value, each with where it is."""
    if isinstance(value, MaybeUndefined):
        value = value.value
    if is_container(value):
        yield path, value
    if is_container(value) or _is_tuple(value):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in pairs:
            yield from containers(item, (*path, key))


def shared(one: Any, other: Any, path: Path = ()) -> Iterator[Path]:
    """Return where two values are, or tuples in them have, the same list or dict."""
    if one is other and is_container(one):
        yield path
    elif _is_tuple(one) and _is_tuple(other):
        for i, pair in enumerate(zip(one, other, strict=False)):
            yield from shared(*pair, (*path, i))


def keep(value: Any, paths: Collection[Path]) -> Any:
    """Return a value with what is at some paths as itself, not as what it holds."""
    return change(value, lambda x, path: Kept(x) if path in paths else x)


def change(value: Any, how: Callable[[Any, Path], Any], path: Path = ()) -> Any:
    """Return what a function makes of a value, or of each item if it is a tuple."""
    if not _is_tuple(value):
        return how(value, path)
    parts = [change(x, how, (*path, i)) for i, x in enumerate(value)]
    return value._make(parts) if hasattr(value, "_make") else tuple(parts)


def _is_tuple(value: Any) -> bool:
    return type(value) is tuple or (isinstance(value, tuple) and hasattr(value, "_fields"))


# ---------------------------------------------------------------- of a block
@final
class Ways:
    """What the lists and dicts that a block returns are at the end of the ways through it.

    Args:
        is_old: says whether an object was there before the block.
    """

    def __init__(self, is_old: Callable[[Any], bool]) -> None:
        self._is_old = is_old
        self._known = count()
        self._sources: dict[Path, list[Container]] = {}
        self._groups: list[list[Path]] = []  # of what are one object on some way

    def note(self, values: Sequence[Any]) -> None:
        """Note the values at the end of a way."""
        groups: dict[int, list[Path]] = {}
        for path, part in containers(tuple(values)):
            groups.setdefault(id(part), []).append(path)
            self._sources.setdefault(path, []).extend(self._sources_of(part))
        self._groups += [paths for paths in groups.values() if len(paths) > 1]

    def _sources_of(self, container: Container) -> Iterator[Container]:
        """Return what a list or dict may be of what was there before: itself, if it was."""
        yield from filter(self._is_old, [container])
        for i, copy in enumerate(_LOCAL.copies or ()):
            if copy.made is container:
                yield from (x for x in copy.others if i < self._known or self._is_old(x))

    def sources(self, i: int) -> list[Container]:
        """Return what was there before of what the lists and dicts in a value may be."""
        return [x for path, some in self._sources.items() if path[0] == i for x in some]

    def note_copies(
        self, made: dict[int, Any], names: Sequence[str], line: str, roots: Sequence[Any]
    ) -> None:
        """Note the copies in the new values of names, by index."""
        found = {(i, *path): x for i, value in made.items() for path, x in containers(value)}
        olds = {
            path: [x for x in self._sources.get(path, ()) if x is not found[path]] for path in found
        }
        is_asked = _LOCAL.copies is not None and any(olds.values())
        world = _world_of(roots) if is_asked else None
        for path, part in found.items():
            others = [x for x in olds[path] if world and world.holds(x)]
            others += [found[twin] for twin in self._twins(path) if twin in found]
            if new := {id(x): x for x in others if x is not part}:
                note(part, list(new.values()), names[path[0]], line)

    def _twins(self, path: Path) -> list[Path]:
        return [other for group in self._groups if path in group for other in group]


def _world_of(roots: Sequence[Any]) -> World:
    """Return what some functions, and the frames of the traced function's code, can reach."""
    callers = {package_of(fn.__globals__) for fn in roots if isinstance(fn, FunctionType)}
    frames = (frame for frame, _ in walk_stack(sys._getframe()))
    inside = takewhile(lambda frame: frame is not _LOCAL.frame, frames)
    users = [f for f in inside if is_users(f.f_globals, f.f_code.co_filename, callers)]
    spaces = [{k: x for k, x in f.f_locals.items() if k != "ag__"} for f in users]
    return World([*roots, *spaces])

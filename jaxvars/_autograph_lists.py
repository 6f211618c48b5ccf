"""Python lists that grow in staged code: each run of a block appends as many items as another.

Rules this file keeps:
- a list made inside of a block is its own affair; one from outside is left by the tracing of the
  block as it was before, and then given the items that the staged operation returns;
- what else is done to a list from outside would be done once, while tracing: it is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from types import BuiltinMethodType
from typing import Any, Self, TypeAlias, final

from jaxvars.errors import ControlFlowError, user_line

Value: TypeAlias = Any

_CHANGES = frozenset({"clear", "insert", "pop", "remove", "reverse", "sort"})


@final
class _Open(threading.local):
    """The blocks that each thread is tracing, outermost first."""

    def __init__(self) -> None:
        self.blocks: list[Appended] = []


_OPEN = _Open()


@final
class Appended:
    """Notes which lists from outside grow while a block is traced."""

    def __init__(self) -> None:
        self._own: dict[int, list[Any]] = {}
        self._grown: dict[int, tuple[list[Any], int]] = {}

    def __enter__(self) -> Self:
        _OPEN.blocks.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _OPEN.blocks.pop()
        for target, size in self._grown.values():
            del target[size:]

    def take(self) -> tuple[list[list[Any]], list[tuple[Value, ...]]]:
        """Return the lists that grew, and what was appended to each."""
        grown = self._grown.values()
        return [target for target, _ in grown], [tuple(target[size:]) for target, size in grown]

    def own(self, items: list[Any]) -> None:
        """Take note of a list that the block makes."""
        self._own[id(items)] = items

    def grows(self, target: list[Any]) -> None:
        """Take note that a list is about to grow."""
        if id(target) not in self._own:
            self._grown.setdefault(id(target), (target, len(target)))

    def is_own(self, target: list[Any]) -> bool:
        """Tell whether the block made a list."""
        return id(target) in self._own


def new_list(items: list[Any]) -> list[Any]:
    """Take note of a list display or comprehension."""
    if _OPEN.blocks:
        _OPEN.blocks[-1].own(items)
    return items


def extend(target: list[Any], items: Iterable[Any]) -> None:
    """Append items to a list."""
    if _OPEN.blocks:
        _OPEN.blocks[-1].grows(target)
    target.extend(items)


def is_list_method(f: object) -> bool:
    """Tell whether `f` is a method of a list, and a block is being traced."""
    return bool(_OPEN.blocks) and type(f) is BuiltinMethodType and type(f.__self__) is list


def call_list_method(f: Any, args: Sequence[Any], words: dict[str, Any]) -> Any:
    """Call a method of a list; refuse what the block would do once instead of each time."""
    target: list[Any] = f.__self__
    if f.__name__ in ("append", "extend"):
        return extend(target, args if f.__name__ == "append" else args[0])
    if f.__name__ in _CHANGES and not _OPEN.blocks[-1].is_own(target):
        raise ControlFlowError(
            f"list.{f.__name__} is called at {user_line()} in a branch or loop on a traced value, "
            "for a list that was made outside of it. A staged block runs its Python once, while it "
            "is traced, so the list would change once. Use an array and an index, or a "
            "jv.TensorArray."
        )
    return f(*args, **words)


def same_lists(first: list[list[Any]], second: list[list[Any]]) -> bool:
    """Tell whether two ways through a block made the same lists grow."""
    return [id(x) for x in first] == [id(x) for x in second]


def uneven(counts: Sequence[int]) -> ControlFlowError:
    """Return the error for branches that append different numbers of items to a list."""
    return ControlFlowError(
        f"A list grows in a branch at {user_line()} whose condition is a traced value, by "
        f"{counts[0]} items if it holds and by {counts[1]} if not, so its length would be "
        "traced: a Python list cannot be so long as a value says. Use an array of the greatest "
        "length and a counter, or a jv.TensorArray:\n"
        "    out = jv.TensorArray(jnp.float32, size=n)\n"
        "    out = out.write(i, x)"
    )


def unknown_length() -> ControlFlowError:
    """Return the error for a list that grows in a loop whose number of iterations is traced."""
    return ControlFlowError(
        f"A list grows in the loop at {user_line()}, whose number of iterations is a traced "
        "value, so its length would be traced too. Loop over an array or a range of a known "
        "length, or use a jv.TensorArray, which has a size:\n"
        "    out = jv.TensorArray(jnp.float32, size=100)    # the most there can be\n"
        "    for ...:\n"
        "        out = out.write(i, x)\n"
        "    out.stack()"
    )

"""What a saved folder holds of objects: a tree of names, values and functions, as a string.

Rules this file keeps:
- it is made of numbers and strings only;
- variables are named as in checkpoints (`train/graph.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, final

from jaxvars.core.traversal import Holder
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.tf.variables.variable import face_of

KINDS = {"object", "list", "tuple", "dict", "variable", "asset"}


@final
@dataclass
class Item:
    """An object, in a list of them.

    Attributes:
        kind: "object", "list", "tuple", "dict", "variable" or "asset".
        children: the numbers of what is in it, by name.
        value: the path of a variable, the name of an asset.
        functions: its functions by name; what they are called in the file, or None for one that
            was never traced.
    """

    kind: str
    children: dict[str, int] = field(default_factory=dict)
    value: str = ""
    functions: dict[str, str | None] = field(default_factory=dict)


@final
@dataclass
class Tree:
    """Objects, of which the first is the root.

    Attributes:
        items: the objects.
        signatures: functions by the names that they are served under.
    """

    items: list[Item]
    signatures: dict[str, str]

    def to_text(self) -> str:
        """Return it as a string."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Tree:
        """Return the tree that a string holds.

        Raises:
            ValueError: when it is none.
        """
        words: Any = json.loads(text)
        tree = cls([Item(**item) for item in words["items"]], dict(words["signatures"]))
        sound = all(
            item.kind in KINDS
            and all(0 < child < len(tree.items) for child in item.children.values())
            for item in tree.items
        )
        if not sound or not tree.items:
            raise ValueError("it holds no objects that could be made")
        return tree


@final
class LoadedObject(Holder):
    """An object that was saved: its variables, functions and other objects are attributes."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function `__call__` that was saved with it.

        Raises:
            TypeError: when there was none.
        """
        function = vars(self).get("__call__")
        if function is None:
            raise TypeError("The object was saved without a tf.function `__call__`.")
        return function(*args, **kwargs)


def rebuilt(
    tree: Tree,
    variables: Mapping[str, CoreVariable],
    function: Callable[[str | None], Any],
    asset: Callable[[str], Any],
) -> Any:
    """Return the root of a tree, with what belongs to it.

    Args:
        tree: the tree.
        variables: by path.
        function: makes one of what it is called in the file.
        asset: makes one of its name.
    """
    made: dict[int, Any] = {}
    valued: dict[str, Callable[[str], Any]] = {
        "variable": lambda path: face_of(variables[path]),
        "asset": asset,
    }

    def make(number: int) -> Any:
        if number not in made:
            item = tree.items[number]
            is_valued = item.kind in valued
            made[number] = valued[item.kind](item.value) if is_valued else _EMPTY[item.kind]()
            if item.kind == "tuple":  # it cannot be filled afterwards
                made[number] = tuple(make(child) for child in item.children.values())
            _fill(made[number], item, make)
            if item.kind == "object":
                functions = {name: function(word) for name, word in item.functions.items()}
                vars(made[number]).update(functions)
        return made[number]

    return make(0)


_EMPTY: dict[str, Callable[[], Any]] = {
    "object": LoadedObject,
    "list": list,
    "dict": dict,
    "tuple": tuple,
}


def _fill(value: Any, item: Item, make: Callable[[int], Any]) -> None:
    if item.kind == "list":
        value.extend(make(child) for child in item.children.values())
    elif item.kind == "dict":
        value.update({name: make(child) for name, child in item.children.items()})
    elif item.kind == "object":
        vars(value).update({name: make(child) for name, child in item.children.items()})

"""What a saved folder holds of objects: a tree of names, values and functions, and files.

Rules this file keeps:
- the tree is a string, made of numbers and strings only;
- a file is copied once, under its own name, with a number where two have one name.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.objects.traversal import Holder
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.train.graph import Node
from jaxvars.tf.variables.variable import face_of

KINDS = {"object", "list", "tuple", "dict", "variable", "asset"}


@final
@dataclass
class Item:
    """An object, in a list of them."""

    kind: str  # one of KINDS
    children: dict[str, int] = field(default_factory=dict)  # the numbers of its parts, by name
    value: str = ""  # the path of a variable, the name of an asset
    functions: dict[str, str | None] = field(default_factory=dict)  # in the file; None: not traced


@final
@dataclass
class Tree:
    """Objects, of which the first is the root."""

    items: list[Item]
    signatures: dict[str, str]  # functions by the names that they are served under

    def to_string(self) -> str:
        """Return it as a string."""
        return json.dumps(asdict(self))

    @classmethod
    def from_string(cls, string: str) -> Tree:
        """Return the tree that a string holds.

        Raises:
            ValueError: when it is none.
        """
        data: Any = json.loads(string)
        tree = cls([Item(**item) for item in data["items"]], dict(data["signatures"]))
        sound = all(
            item.kind in KINDS
            and all(0 <= child < len(tree.items) for child in item.children.values())
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


def rebuild(
    tree: Tree, variables: Mapping[str, CoreVariable], function: Callable[[str | None], Any],
    asset: Callable[[str], Any],
) -> Any:  # fmt: skip
    """Return the root of a tree, with what belongs to it."""
    made: dict[int, Any] = {}
    valued: dict[str, Callable[[str], Any]] = {
        "variable": lambda path: face_of(variables[path]),
        "asset": asset,
    }

    def make(number: int) -> Any:
        """Return an object, without its parts, which may lead back to it; a tuple with them."""
        item = tree.items[number]
        if number not in made:
            if item.kind in valued:
                made[number] = valued[item.kind](item.value)
            elif item.kind == "tuple":
                made[number] = tuple(map(make, item.children.values()))
            else:
                made[number] = _EMPTY[item.kind]()
        return made[number]

    for number, item in enumerate(tree.items):
        value, parts = make(number), {name: make(child) for name, child in item.children.items()}
        if item.kind == "list":
            value.extend(parts.values())
        elif item.kind == "dict":
            value.update(parts)
        elif item.kind == "object":
            vars(value).update(parts)
            vars(value).update({name: function(word) for name, word in item.functions.items()})
    return make(0)


_EMPTY: dict[str, Any] = {"object": LoadedObject, "list": list, "dict": dict}


# ---------------------------------------------------------------- files
DIRECTORY = "assets"


@final
class Asset(Node):
    """A file that is saved with the object that has it as an attribute.

    Args:
        path: of the file.

    >>> Asset("vocabulary.txt").asset_path.numpy()
    b'vocabulary.txt'

    Differs from TensorFlow: a function cannot be saved that works with the path, which is a string.
    """

    def __init__(self, path: Any) -> None:
        self._path = path.numpy().decode() if isinstance(path, Tensor) else os.fspath(path)

    @property
    def asset_path(self) -> Tensor:
        """Where the file is, once it was loaded: in the folder that it was loaded from."""
        return Tensor(to_array(self._path))


@final
class Assets:
    """The files of what is saved."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / DIRECTORY
        self._names: dict[str, str] = {}

    def name(self, asset: Asset) -> str:
        """Return what a file is called among them."""
        source = os.path.realpath(asset._path)
        if source not in self._names:
            if not Path(source).is_file():
                raise FileNotFoundError(
                    f"The file {asset._path}, to be saved as an asset, does not exist."
                )
            self._names[source] = self._free_name(Path(source).name)
        return self._names[source]

    def _free_name(self, name: str) -> str:
        taken, number, found = set(self._names.values()), 1, name
        while found in taken:
            found, number = f"{name}_{number}", number + 1
        return found

    def write(self) -> None:
        """Copy them."""
        for source, name in self._names.items():
            self._folder.mkdir(parents=True, exist_ok=True)
            if os.path.realpath(self._folder / name) != source:
                shutil.copyfile(source, self._folder / name)

    def load(self, name: str) -> Asset:
        """Return a file that was saved."""
        if not name or Path(name).name != name:
            raise ValueError(f"an asset is called {name!r}")
        return Asset(self._folder / name)

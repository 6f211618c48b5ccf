"""`tf.saved_model.Asset`: files that are saved with an object.

Rules this file keeps:
- a file is copied into the folder `assets` of what is saved, once, under its own name, with a
  number where two have one name.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, final

from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.train.graph import Node

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
    """The files of what is saved.

    Args:
        folder: what is saved is in it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / DIRECTORY
        self._names: dict[str, str] = {}

    def name(self, asset: Asset) -> str:
        """Return what a file is called among them.

        Raises:
            FileNotFoundError: when there is no such file.
        """
        source = os.path.realpath(asset._path)
        if source not in self._names:
            if not Path(source).is_file():
                raise FileNotFoundError(f"There is no file {asset._path} to be saved as an asset.")
            self._names[source] = self._free(Path(source).name)
        return self._names[source]

    def _free(self, name: str) -> str:
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
        """Return a file that was saved.

        Raises:
            ValueError: when its name leads elsewhere.
        """
        if not name or Path(name).name != name:
            raise ValueError(f"an asset is called {name!r}")
        return Asset(self._folder / name)

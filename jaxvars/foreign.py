"""Modules of flax, equinox and Keras as parts of other objects: refused, with the line that adapts.

Their state is not in Variables. Looking for variables would pass over it silently.

Rules this file keeps:
- a library counts if it has been imported, and a module by its class, not by a name;
- a module of arrays in which all are Variables has been adapted, and a layer in which one is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, TypeVar
from weakref import ref

import jax
import numpy as np

from jaxvars.errors import InteropError
from jaxvars.modules.module import SET
from jaxvars.objects.traversal import WALKS, Path, walk

T = TypeVar("T")

_BASES = {
    ("flax.linen", "Module"): "flax linen",
    ("flax.nnx", "Optimizer"): "nnx.Optimizer",
    ("flax.nnx", "Pytree"): "flax nnx",
    ("flax.nnx", "Variable"): "nnx.Variable",
    ("equinox", "Module"): "equinox",
    ("keras", "Layer"): "Keras",
}
_CURES = {
    "flax linen": "jv.interop.from_flax({name}, example_input); or keep its function alone, "
    "self.apply = {name}.apply",
    "flax nnx": "jv.interop.from_flax({name})",
    "nnx.Optimizer": "jv.optimizers.Optax(transformation)",
    "nnx.Variable": "jv.Variable({name}[...])",
    "equinox": "jv.interop.from_equinox({name})",
    "Keras": "jv.interop.from_keras({name})",
}
_LIBRARIES: dict[int, tuple[ref[type], str | None]] = {}  # by id: a class may have any `==`


def walk_known(root: object, kind: type[T]) -> Iterator[tuple[Path, T]]:
    """Yield what `walk` yields.

    Raises:
        InteropError: at a module of another library that holds state, but no variables.
    """
    bases = _bases()
    for path, found in walk(root, (kind, *bases)):
        if isinstance(found, kind):
            yield path, found
        else:
            library = _library_of(type(found))
            is_one_enough = library in ("flax linen", "Keras")
            is_adapted = is_one_enough and any(walk(found, kind))
            if library and _holds_state(found, library, kind) and not is_adapted:
                raise InteropError(_refusal(found, library, path))


def refuse_flax(name: str, value: object) -> None:
    """Raise InteropError for a module of flax's with state, which is set as an attribute."""
    library = _library_of(type(value))
    if library and library not in ("equinox", "Keras") and _holds_state(value, library):
        raise InteropError(_refusal(value, library, (name,)))


def is_foreign(value: object) -> bool:
    """Return whether a value is a module of another library that is changed in place."""
    return _library_of(type(value)) not in (None, "equinox", "nnx.Variable")


def _library_of(kind: type) -> str | None:
    """Return whose module a class is; looked up once, since its bases were there before it."""
    key = id(kind)
    known = _LIBRARIES.get(key)
    if known is None or known[0]() is not kind:
        found = (library for base, library in _bases().items() if issubclass(kind, base))
        own = ref(kind, lambda _: _LIBRARIES.pop(key, None))
        known = _LIBRARIES[key] = own, next(found, None)
    return known[1]


def _bases() -> dict[type, str]:
    """Return the classes of modules of the libraries that have been imported."""
    found = {_base(*place): library for place, library in _BASES.items()}
    return {base: library for base, library in found.items() if isinstance(base, type)}


def _base(library: str, name: str) -> Any:
    return getattr(sys.modules.get(library), name, None)


def _holds_state(module: object, library: str, kind: Any = ()) -> bool:
    """Return whether a module holds arrays; those in what is of `kind` do not count."""
    if library == "Keras":
        return bool(getattr(module, "variables", True))
    if library == "flax linen":
        return True
    try:
        leaves = jax.tree.leaves(module, is_leaf=lambda x: isinstance(x, kind))
    except (ValueError, TypeError, RecursionError):  # a graph of nnx that is not a tree
        return True
    return any(isinstance(leaf, jax.Array | np.ndarray) for leaf in leaves)


def _refusal(module: object, library: str, path: Path) -> str:
    name = path[-1] if path and path[-1].isidentifier() else "module"
    place = f" at {'/'.join(path)!r}" if path else ""
    return (
        f"The {type(module).__name__}{place}, of {library}, keeps its state outside of Variables: "
        "it would not be trained, saved or restored with them. Adapt it: "
        f"{_CURES[library].format(name=name)}."
    )


def install() -> None:
    """Have these modules refused wherever variables are looked for, and as attributes."""
    WALKS.append(walk_known)
    SET.append(refuse_flax)

"""Modules of flax, equinox and Keras as parts of other objects: refused, with the line that adapts.

Their state is not in Variables. Looking for variables would pass over it silently.

Rules this file keeps:
- a library counts if it has been imported, and a module by its class, not by a name;
- a module in which there are Variables has been adapted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, TypeVar

import jax
import numpy as np

from jaxvars.core.traversal import Path, walk
from jaxvars.errors import InteropError

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
    "equinox": "jv.interop.from_pytree({name})",
    "Keras": "from jaxvars import tf; tf.keras.layers, which are Keras's own, and from then on "
    "their variables are found",
}


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
            library = next(name for base, name in bases.items() if isinstance(found, base))
            if _holds_state(found, library) and not any(True for _ in walk(found, kind)):
                raise InteropError(_refusal(found, library, path))


def is_foreign(value: object) -> bool:
    """Return whether a value is a module of another library that is changed in place."""
    kinds = [b for b, library in _bases().items() if library not in ("equinox", "nnx.Variable")]
    return isinstance(value, tuple(kinds))


def _bases() -> dict[type, str]:
    """Return the classes of modules of the libraries that have been imported."""
    found = {_base(*place): library for place, library in _BASES.items()}
    return {base: library for base, library in found.items() if isinstance(base, type)}


def _base(library: str, name: str) -> Any:
    return getattr(sys.modules.get(library), name, None)


def _holds_state(module: object, library: str) -> bool:
    if library == "Keras":
        return bool(getattr(module, "variables", True))
    if library == "flax linen":
        return True
    try:
        leaves = jax.tree.leaves(module)
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

"""Modules of flax, equinox and Keras as parts of other objects: refused, with the line that adapts.

Their state is not in Variables. Looking for variables would pass over it silently.

Rules this file keeps:
- a library counts if it has been imported, and a module by its class, not by a name;
- a module of arrays in which all are Variables has been adapted, and a layer in which one is.

Also: names that objects of other libraries have, on ours, say what to write instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeVar
from weakref import ref

import jax
import numpy as np

from jaxvars.advice import INSTEAD, instead_of
from jaxvars.core.traversal import Path, walk
from jaxvars.errors import ForeignTransformError, InteropError, user_line
from jaxvars.tracebacks import JAX_FOLDER

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


# ---------------------------------------------------------------- names of other libraries
class Absent:
    """A name that objects of other libraries have: who asks for it is told what to write.

    What another base class has by that name is found.
    """

    def __init__(self, owner: type, name: str, cure: str) -> None:
        self._owner, self._name, self._cure = owner, name, cure
        self.__module__ = owner.__module__  # for tools that ask where it is defined

    def is_hiding(self, kind: type) -> bool:
        """Return whether a base class that comes after the owner has the name."""
        after = kind.__mro__[kind.__mro__.index(self._owner) + 1 :]
        found = [vars(base)[self._name] for base in after if self._name in vars(base)]
        return not all(isinstance(each, Absent) for each in found)

    def __get__(self, instance: object, kind: type) -> Any:
        __tracebackhide__ = True  # IPython and pytest leave the frame out
        if self.is_hiding(kind):
            return getattr(super(self._owner, kind if instance is None else instance), self._name)
        if self._name == "__jax_array__" and instance is not None and _is_jax(sys._getframe(1)):
            raise _in_transform_error(kind.__name__)
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if self._name == "inference" and caller.startswith("equinox."):
            raise InteropError(
                f"At {user_line()} equinox is given a Module, and would do nothing:{self._cure}"
            )
        message = f"{kind.__name__!r} object has no attribute {self._name!r}.{self._cure}"
        raise AttributeError(message, name=self._name, obj=instance)


def _is_jax(frame: FrameType) -> bool:
    """Return whether JAX asks, and not for an operator, which the other operand may have."""
    file = frame.f_code.co_filename
    return file.startswith(JAX_FOLDER) and not file.endswith("array_methods.py")


def _in_transform_error(kind: str) -> ForeignTransformError:
    return ForeignTransformError(
        f"A {kind} is passed at {user_line()} to a plain JAX transform or function, which takes "
        "arrays: a Module is not one, nor a pytree. Use @jv.compile instead of jax.jit; for the "
        "others transform a pure function of its values:\n"
        "    pure = jv.functionalize(lambda x: model(x))\n"
        "    result, state = jax.jit(pure)(jv.State.of(model), x)"
    )


def advised(owner: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator of classes whose objects say what to write for other libraries' names.

    These are attributes, and not a `__getattr__`, which makes every attribute slower.
    """

    def advise(kind: type[T]) -> type[T]:
        for name in INSTEAD[owner]:
            if name not in vars(kind):
                setattr(kind, name, Absent(kind, name, instead_of(name, owner)))
        return kind

    return advise

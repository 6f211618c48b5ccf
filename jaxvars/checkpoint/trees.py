"""Arrays in the pytrees that a Checkpoint was given: found by path, restored into fresh trees.

Rules this file keeps:
- a tree is entered as `jax.tree` does; a Variable, a Module and any other object that is not a
  pytree is a leaf of it: variables in it are found by walking, its own arrays are constants;
- what is saved are the arrays, and Python's numbers and strings beside them, as beside Variables;
  other data, such as bytes, is refused; functions, and objects of other classes, are constants;
- no tree is changed: the restored one takes its place as an attribute of the Checkpoint, with the
  same structure, and each array where the one before it was;
- what a Checkpoint was given and could not keep is refused, before anything is written or changed;
  what may still get its variables, such as a layer that makes them in its first call, when it is
  saved.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import AbstractContextManager
from enum import Enum
from numbers import Number
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.checkpoint.checksum import dtype_name
from jaxvars.core.frame import Owner
from jaxvars.errors import CheckpointError, user_line
from jaxvars.foreign import is_foreign
from jaxvars.modules.module import WAITING, Module, variables_in
from jaxvars.objects.traversal import CLOSED_TYPES, Holder, Path, Proxy, resolve_proxy, walk
from jaxvars.tensors.dtypes import is_string, string
from jaxvars.tensors.tensor import is_weak
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

_PLAIN = {bool: "b", int: "iu", float: "f", complex: "c", str: "T"}
_DATA = (Number, str, bytes, bytearray, Enum)  # of _PLAIN, or else refused
_BOXES = (list, tuple, deque, Set, Mapping)  # those that are not pytrees


@final
class Leaf:
    """An array in a tree, or a number or string of Python's."""

    __slots__ = ("dtype", "shape", "value")

    def __init__(self, value: Array) -> None:
        self.value = value
        self.shape = tuple(value.shape) if _is_array(value) else ()
        self.dtype = dtype_name(value.dtype) if _is_array(value) else type(value).__name__

    def snapshot(self, path: str, copy: bool) -> Value:
        """Return what is to be written, which no longer changes."""
        value = self.value
        if type(value) in _PLAIN:
            array = np.asarray(value, string if isinstance(value, str) else None)
        elif isinstance(value, jax.Array):
            if value.is_deleted():
                raise CheckpointError(
                    f"The array at {path} was donated to a compiled function and is gone. A "
                    "Checkpoint holds the tree that it was given: assign the new one before it is "
                    f"saved, checkpoint.{path.partition('/')[0]} = new_tree."
                )
            return context.fresh(value) if copy else value
        elif isinstance(value, jax.ShapeDtypeStruct):
            raise CheckpointError(f"{path} has no value yet, only its shape: {value}.")
        elif why := _explain_refusal(value):
            raise CheckpointError(f"The value at {path} is {value!r}, {why}")
        else:
            array = np.array(value)
        if not _is_saved_dtype(array.dtype):
            raise CheckpointError(
                f"The value at {path} is {value!r}, whose dtype is not saved. Make it an array of "
                "numbers, or of strings with dtype np.dtypes.StringDType(), or leave it out."
            )
        return array

    def takes(self, name: str) -> bool:
        """Return whether a value of a dtype of this name fits."""
        mine: Any = type(self.value)
        if mine not in _PLAIN:
            return name == self.dtype
        kind = "T" if name == "string" else "k" if name.startswith("key<") else _kind(name)
        return kind in _PLAIN[mine]

    def place(self, value: Value) -> Value:
        """Return a value that was read as a leaf like this one, in separate memory."""
        mine = self.value
        if type(mine) in _PLAIN:
            new = type(mine)(value.item())
            return mine if repr(new) == repr(mine) else new
        if isinstance(mine, np.ndarray | np.generic):
            return np.array(value) if isinstance(mine, np.ndarray) else value[()]
        with as_wide_as(value):
            if is_weak(mine):  # else results of other dtypes would follow
                value = _make_weak(np.asarray(value))
            if mine.sharding is not None and getattr(mine, "committed", True):
                return jax.device_put(value, mine.sharding, may_alias=False)
            return jnp.array(value)


def _explain_refusal(value: Array) -> str:
    """Return why a value of a tree cannot be saved with all that it is, or nothing."""
    kind = type(value)
    if isinstance(value, np.ma.MaskedArray):
        return "a masked array: its mask would be lost. Save x.filled(0), and x.mask beside it."
    if isinstance(value, np.ndarray) and kind not in (np.ndarray, np.memmap):
        return f"and more than the numbers of a {kind.__name__} is not saved: give np.asarray(x)."
    if _is_array(value):
        return ""
    return (
        f"a {kind.__name__}, which is not saved: make it a bool, int, float, complex, str or array "
        "(bytes: np.frombuffer(x, np.uint8)), or leave it out."
    )


def _is_saved_dtype(dtype: np.dtype[Any]) -> bool:
    """Return whether values of a dtype are saved; of the kind V are those of JAX, like bfloat16."""
    if is_string(dtype):
        return True
    unknown = dtype.hasobject or dtype.kind in "MmSU"
    is_long = dtype.type in (np.longdouble, np.clongdouble)
    return not (unknown or is_long or (dtype.kind == "V" and not jnp.issubdtype(dtype, np.number)))


def as_wide_as(value: Array) -> AbstractContextManager[None]:
    """Return a context in which JAX makes arrays of a value's dtype: else it cuts 64 bits."""
    wide = value.dtype.name in ("int64", "uint64", "float64", "complex128")
    return jax.enable_x64(wide)


def _make_weak(value: np.ndarray) -> jax.Array:
    """Return a value as an array of a weak type, as numbers of Python and `jnp.full` make them."""
    zeros = jnp.broadcast_to(jnp.asarray(value.dtype.type(0).item()), value.shape)
    return zeros.at[...].set(value) if zeros.dtype == value.dtype else jnp.array(value)


@final
class Trees:
    """The trees that are attributes of some Checkpoints, and their `leaves` by path."""

    def __init__(self, found: Iterable[tuple[Path, Any]] = (), *, is_saving: bool = False) -> None:
        self._holders: list[tuple[dict[str, Any], str, Path]] = []
        self._kept: list[tuple[Path, Array]] = []
        for path, holder in found:
            for name, value in holder._roots().items():
                place, is_root = (*path, name or "root"), name is None
                self._kept += find_kept(place, value, is_root=is_root, is_saving=is_saving)
                if name is not None:
                    self._holders.append((vars(holder), name, place))

    @functools.cached_property
    def leaves(self) -> dict[str, Leaf]:
        """The arrays, and the data beside them, by path."""
        found: dict[str, Leaf] = {}
        for parts, leaf in self._kept:
            if (path := "/".join(parts)) in found:
                raise CheckpointError(
                    f"Two arrays have the path {path!r}, as in a dict with the keys 1 and '1', or "
                    "'a/b' and 'a': one could be given the other's value. Use keys that are "
                    "strings without /."
                )
            found[path] = Leaf(leaf)
        return found

    def with_values(self, values: Mapping[str, Array]) -> Callable[[], None]:
        """Return what puts trees with these leaves in the place of the trees."""
        parts = [path.split("/") for path in values]
        inside = {"/".join(part[:i]) for part in parts for i in range(1, len(part) + 1)}
        made = [
            (holder, name, _rebuild(holder[name], path, values, inside))
            for holder, name, path in self._holders
        ]

        def put() -> None:
            for holder, name, tree in made:
                holder[name] = tree

        return put


def _leaves(value: object, path: Path, within: tuple[int, ...]) -> Iterator[tuple[Path, Any]]:
    children = _children(value)
    if children is None:
        yield path, value
    elif id(value) not in within:
        for name, child in children:
            yield from _leaves(child, (*path, name), (*within, id(value)))


def _rebuild(value: Any, path: Path, values: Mapping[str, Array], inside: Set[str]) -> Any:
    """Return a tree with some leaves replaced; itself where there are none of them inside."""
    if (place := "/".join(path)) not in inside:
        return value
    children = _children(value)
    if children is None:
        return values.get(place, value) if _is_saved(value) else value
    new = [_rebuild(child, (*path, name), values, inside) for name, child in children]
    if all(child is old for child, (_, old) in zip(new, children, strict=True)):
        return value  # its holder may go on to add to it
    if type(value) is dict:
        return dict(zip(value, new, strict=True))  # pyright: ignore[reportUnknownArgumentType] - a dict
    return jax.tree.unflatten(jax.tree.structure(value, is_leaf=_make_child_test()), new)


def _children(value: Any) -> list[tuple[str, Any]] | None:
    """Return the children of a node, with their names; None for a leaf."""
    if (
        isinstance(value, Owner | Holder | Proxy)
        or resolve_proxy(value) is not value
        or is_foreign(value)
    ):
        return None
    if type(value) is dict:  # of any keys, in any order
        return [(str(key), child) for key, child in value.items()]
    found = jax.tree_util.tree_flatten_with_path(value, is_leaf=_make_child_test())[0]
    if any(not path for path, _ in found):
        return None
    return [(jax.tree_util.keystr(path, simple=True), child) for path, child in found]


def _make_child_test() -> Callable[[object], bool]:
    """Return a function that is False of the first object, the node, and True of its children."""
    first = iter([False])
    return lambda _: next(first, True)


def _is_array(value: object) -> bool:
    return isinstance(value, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct)


def _is_saved(value: object) -> bool:
    """Return whether a leaf is data, rather than a constant of the program like a function."""
    if isinstance(value, _BOXES) and not is_foreign(value):
        return all(isinstance(x, _BOXES + _DATA) for _, x in walk(value, object))
    return _is_array(value) or isinstance(value, _DATA)


def _waits(found: Iterable[tuple[Path, Any]]) -> bool:
    """Return whether values wait in something that has no Variable yet."""
    modules = (module for _, leaf in found for _, module in walk(leaf, Module))
    return any(held.values for module in modules for held in vars(module).get(WAITING, ()))


def _kind(name: str) -> str:
    dtype = jnp.dtype(name)
    for kind, parent in (("b", jnp.bool_), ("iu", jnp.integer), ("f", jnp.floating)):
        if jnp.issubdtype(dtype, parent):
            return kind
    return "c"


def find_kept(
    path: Path, value: object, *, is_root: bool = False, is_saving: bool
) -> list[tuple[Path, Array]]:
    """Return the arrays in what a Checkpoint was given, and the data beside them or Variables.

    Raises:
        CheckpointError: when it would be lost.
    """
    if is_root and value is None:
        return []
    found = list(_leaves(value, path, ()))
    arrays = any(_is_array(leaf) for _, leaf in found)
    if arrays and is_root:
        raise CheckpointError(
            f"The root of a Checkpoint is a {type(value).__name__} with arrays, at {user_line()}, "
            "and where the restored one is to be found was not said. Give it a name, "
            "Checkpoint(params=tree); after restore it is checkpoint.params."
        )
    variables = [v for _, leaf in found if not _is_saved(leaf) for _, v in variables_in(leaf)]
    if not (arrays or variables or _waits(found)) and (
        is_saving or isinstance(value, CLOSED_TYPES)
    ):
        is_empty = value is None or (type(value) in (dict, list, tuple) and not value)
        if is_empty or found:
            raise CheckpointError(_describe_refusal("/".join(path), value))
    if is_root or not (arrays or any(any(walk(leaf, (Owner, Holder))) for _, leaf in found)):
        return []
    return [(place, leaf) for place, leaf in found if _is_saved(leaf)]


def _describe_refusal(name: str, value: object) -> str:
    kind = type(value).__name__
    shown = f"{kind} {value!r}" if isinstance(value, CLOSED_TYPES) else f"{kind} object"
    why = f"The Checkpoint at {user_line()} would save nothing of {name!r} ({shown}): "
    if isinstance(value, int | float | complex | str | bytes):
        return (
            f"{why}it is neither a Variable nor an array. Make it one, "
            f"{name}=jv.Variable({value!r})."
        )
    if isinstance(value, type):
        return f"{why}it is a class. Give what it makes, {name}={value.__name__}(...)."
    if isinstance(value, CLOSED_TYPES):
        return f"{why}there is no Variable and no array in it. Leave it out."
    return (
        f"{why}there is no Variable and no array in it. If its layers make their variables when "
        "they are first called, call it before. An array that is an attribute of a Module or of "
        "another object that is not a pytree is a constant: make it a jv.Variable, or give the "
        "pytree itself, as in Checkpoint(params=params)."
    )

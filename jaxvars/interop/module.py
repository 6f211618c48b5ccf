"""`FlaxModule`, what the Modules around linen and nnx modules have in common, and `Form`.

Flax keeps state in trees: linen in a dict of collections, nnx in a State. A `Form` knows such a
tree's structure, and where the variable of each leaf is.

Rules this file keeps:
- variables are attributes, in dicts in dicts, under the leaf's path;
- boxes, which flax puts around leaves to say more about them (`nn.Partitioned`, `nnx.Param`), are
  part of the structure: they are not in paths, and are there again in a tree that is built;
- the key and the count of a stream of nnx's are one `Generator`;
- a new variable is where its box says, if that names a mesh, and stays there;
- what a call changed is checked, and then written, all of it or nothing; the rest is not written;
- what is flax's is `Kept`: it is neither copied nor searched for variables.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Generator as Generated
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, cast, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.control.vmap_index import EXAMPLE
from jaxvars.core.cells import STREAMS, Cell
from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable
from jaxvars.derivatives.explain import forget_reads
from jaxvars.errors import CreationError, InteropError, user_line
from jaxvars.modules.module import WAITING, Module
from jaxvars.objects.traversal import HIDING, Proxy
from jaxvars.random.generator import Generator, find_furthest
from jaxvars.random.seeds import IMPL, unseen
from jaxvars.tensors.dtypes import is_key
from jaxvars.tensors.tensor import fit
from jaxvars.typing import Array

_OWN = {"_name", "_flax", "_forms", "_method", "_parts", "_sources", WAITING}


class FlaxModule(Module, ABC):
    """A flax module whose state is variables: what `interop.from_flax` makes.

    Its variables are attributes, with flax's own paths. Methods and fields of the flax module
    are reached through it: `model.encode(x)` is `model.call("encode", x)`.
    """

    @property
    def name(self) -> str:
        """What it is called: the flax module's class, in small letters."""
        return self._kind().__name__.lower()

    @abstractmethod
    def _kind(self) -> type:
        """Return the class of the flax module."""

    @abstractmethod
    def call(self, method: str | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the flax module, by name, or a function of it.

        Args:
            method: a name like "encode", or a function that takes the flax module first.
            *args: passed on.
            **kwargs: passed on.

        Returns:
            The result; this model where it is the nnx module itself.
        """

    @abstractmethod
    def to_flax(self, *, bound: bool = False) -> Any:
        """Return the state as flax has it; see `interop.to_flax`."""

    @abstractmethod
    def _field(self, name: str) -> Any:
        """Return an attribute of the flax module that is not a method, or raise AttributeError."""

    def _explain_refusal(self, name: str) -> str | None:
        """Return why an attribute of the flax module cannot be reached, or None."""
        return None

    def __getitem__(self, name: str) -> Any:
        """Return the variable, or what has variables in it, of a name."""
        tops = self._tops()
        if name not in tops:
            raise KeyError(f"This model has no {name!r}; there are {sorted(tops)}.")
        return tops[name]

    def __getattr__(self, name: str) -> Any:
        # Only reached when no attribute and no variables have the name.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
        kind = self._kind()
        if reason := self._explain_refusal(name):
            raise AttributeError(reason)
        if callable(getattr(kind, name, None)):
            return functools.partial(type(self).call, self, name)  # it may have a field "call"
        try:
            return self._field(name)
        except AttributeError:
            mode = " The mode of linen is an argument of the call: model(x, train=False)."
            raise AttributeError(
                f"Neither this model nor its {kind.__name__} has an attribute {name!r}; its "
                f"variables are under {sorted(self._tops())}."
                f"{mode if name in ('train', 'eval') else ''}"
            ) from None

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *dir(self._kind()), *self._tops()})

    def __rich_repr__(self) -> Iterator[Any]:
        yield self._kind().__name__
        for name, held in sorted(self._tops().items()):
            yield name, dict(held) if isinstance(held, dict) else held

    def _tops(self) -> dict[str, Any]:
        """Return what there is with variables in it, by name."""
        if isinstance(self, Proxy):
            return dict(cast("Any", self.aliased))
        held = vars(self).items()
        return {name: x for name, x in held if name not in _OWN and (x or name != "rngs")}


@contextmanager
def explaining_maps() -> Generated[None]:
    """Say what to write instead where a model is made inside of a plain JAX transform."""
    try:
        yield
    except (CreationError, jax.errors.TracerArrayConversionError) as error:
        raise InteropError(
            f"from_flax makes variables, at {user_line()}, in a function that a plain JAX "
            "transform traces, such as jax.vmap. Many models of nnx are one, with one more axis:\n"
            "    make = nnx.vmap(lambda key: Net(nnx.Rngs(key)))\n"
            "    models = jv.interop.from_flax(make(jax.random.split(jax.random.key(0), 5)))\n"
            "    y = models.call(nnx.vmap(lambda net, x: net(x), in_axes=(0, None)), x)\n"
            "Of linen, or of any Module, the pure function is mapped, and a stack of States:\n"
            "    made = [jv.interop.from_flax(Net(), x, rngs=seed) for seed in range(5)]\n"
            "    states = [jv.State.of(made[0]).replace(jv.State.of(each)) for each in made]\n"
            "    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)\n"
            "    y, stack = jax.vmap(jv.functionalize(made[0]), in_axes=(0, None))(stack, x)"
        ) from error


def check_tops(paths: Iterable[Path], *own: str) -> None:
    """Refuse paths whose first name a model needs for itself."""
    for path in paths:
        if not path or path[0] in {*_OWN, *own}:
            raise InteropError(
                f"The flax module has state called {path[0] if path else ''!r}, a name that the "
                "jaxvars Module around it needs for itself. Call it something else."
            )


# ---------------------------------------------------------------- trees of flax's
Path: TypeAlias = tuple[str, ...]
Tree: TypeAlias = dict[str, Any]  # dicts in dicts, with Variables and Generators in them

VARIABLE, CONSTANT, KEY, COUNT = "variable", "constant", "key", "count"


@final
class Kept:
    """Keeps an object that is flax's: copies share it, and no variables are looked for in it."""

    __slots__ = ("__held",)

    def __init__(self, held: Any) -> None:
        self.__held = held

    def __call__(self) -> Any:
        """Return the object."""
        return self.__held

    def __deepcopy__(self, memo: dict[int, Any]) -> Kept:
        return self

    def __reduce__(self) -> tuple[type[Kept], tuple[Any]]:
        return Kept, (self.__held,)


HIDING.add(Kept)


def seal(value: Any) -> Any:
    """Return lists as tuples and dicts as read-only: what is put in them would be lost.

    >>> seal({"a": [1]})
    mappingproxy({'a': (1,)})
    """
    if isinstance(value, dict):
        return MappingProxyType({name: seal(x) for name, x in value.items()})
    is_plain = isinstance(value, list) or type(value) is tuple
    return tuple(map(seal, value)) if is_plain else value


class Leaf(NamedTuple):
    """A leaf of a tree: its path, what it is, the box around it (or None) and its value."""

    path: Path
    part: str
    box: Any
    value: Any

    @property
    def holder(self) -> Path:
        """The path of the variable or generator that the leaf belongs to."""
        return self.path[:-1] if self.part in (KEY, COUNT) else self.path


def leaves_of(tree: Any, is_box: Callable[[object], bool], start: Path = ()) -> list[Leaf]:
    """Return the leaves of a tree of flax's, with paths that begin with `start`."""
    leaves: list[Leaf] = []
    for keys, box in jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_box)[0]:
        path = (*start, *map(_name_of_key, keys))
        if not is_box(box):
            leaves.append(Leaf(path, _find_part(box), None, box))
            continue
        for more, value in jax.tree_util.tree_flatten_with_path(box)[0]:
            inner = map(_name_of_key, more[1:])  # the first says how the box calls what is in it
            leaves.append(Leaf((*path, *inner), _find_part(value), box, value))
    return leaves


def pair_streams(leaves: Sequence[Leaf]) -> list[Leaf]:
    """Mark keys and counts of random values that a Generator can hold, by twos."""
    keys = [leaf for leaf in leaves if leaf.path[-1:] == (KEY,) and _is_threefry(leaf.value)]
    counts = [leaf for leaf in leaves if leaf.path[-1:] == (COUNT,) and _is_count(leaf)]
    both = {leaf.path[:-1] for leaf in keys} & {leaf.path[:-1] for leaf in counts}
    return [
        leaf._replace(part=leaf.path[-1])
        if leaf.path[:-1] in both and leaf.path[-1] in (KEY, COUNT)
        else leaf
        for leaf in leaves
    ]


@final
class Form:
    """The structure of a tree, and what its leaves are; it holds no values but constants."""

    __slots__ = ("_leaves", "_treedef")

    def __init__(self, tree: Any, leaves: Sequence[Leaf]) -> None:
        self._treedef = jax.tree.structure(tree)
        self._leaves = [
            leaf._replace(
                box=leaf.box is not None, value=leaf.value if leaf.part == CONSTANT else None
            )
            for leaf in leaves
        ]

    @property
    def holders(self) -> set[Path]:
        """The paths of the variables and generators."""
        return {leaf.holder for leaf in self._leaves if leaf.part != CONSTANT}

    def find(self, root: Tree) -> list[Any]:
        """Return the variable or generator of each leaf."""
        return [
            leaf.value if leaf.part == CONSTANT else find(root, leaf.holder)
            for leaf in self._leaves
        ]

    def read(self, root: Tree, inside: Container[int] | None = None) -> list[Array]:
        """Return the leaves as they are now; those of which are inside, by id, if it is given."""
        return [_read_part(root, leaf, inside) for leaf in self._leaves]

    def build(self, values: Sequence[Array]) -> Any:
        """Return the tree with these leaves."""
        return jax.tree.unflatten(self._treedef, values)

    def by_path(self, values: Sequence[Array]) -> dict[Path, Array]:
        """Return the leaves by path."""
        return {leaf.path: value for leaf, value in zip(self._leaves, values, strict=True)}


def write_changes(
    root: Tree,
    leaves: Sequence[Leaf],
    old: Mapping[Path, Array],
    is_trainable: Callable[[Leaf], bool],
) -> None:
    """Write the leaves that a call changed from `old`, all or none; make those that are new."""
    changed = [
        leaf
        for leaf in leaves
        if leaf.part != CONSTANT and leaf.path in old and old[leaf.path] is not leaf.value
    ]
    writes: dict[Cell, Array] = {}
    for leaf in changed:
        cell = _find_cell(root, leaf)
        writes[cell] = _change(cell, leaf, writes)
    if writes:
        forget_reads(writes)  # the call was given all values, whether it reads them or not
        LOCAL.frame.write_all(list(writes), list(writes.values()))
    create(root, [leaf for leaf in leaves if leaf.path not in old], is_trainable)


def create(root: Tree, leaves: Sequence[Leaf], is_trainable: Callable[[Leaf], bool]) -> None:
    """Make a variable of each leaf, and a generator of each stream."""
    keys = {leaf.holder: leaf.value for leaf in leaves if leaf.part == KEY}
    for leaf in leaves:
        if leaf.part == VARIABLE:
            value, name = _place(leaf), _join_path(leaf.path)
            put(root, leaf.path, Variable(value, trainable=is_trainable(leaf), name=name))
        elif leaf.part == COUNT:
            generator = Generator(keys[leaf.holder])
            generator.reset(_join_state(jax.random.key_data(keys[leaf.holder]), leaf.value))
            put(root, leaf.holder, generator)


def put(root: Tree, path: Path, made: Any) -> None:
    """Put a variable or generator at a path.

    Raises:
        InteropError: when something else is there.
    """
    holder = root
    for name in path[:-1]:
        holder = holder.setdefault(name, {})
    if path[-1] in holder:
        raise InteropError(f"Two leaves of the flax tree have one path, {'/'.join(path)!r}.")
    holder[path[-1]] = made


def find(root: Tree, path: Path) -> Any:
    """Return what is at a path.

    Raises:
        InteropError: when nothing is.
    """
    found: Any = root
    for name in path:
        if not isinstance(found, dict) or name not in found:
            raise InteropError(
                f"There is nothing at {'/'.join(path)!r}, where a variable has been."
            )
        found = found[name]
    return found


def forget(root: Tree, paths: set[Path]) -> None:
    """Take away what is at some paths."""
    for path in paths:
        find(root, path[:-1]).pop(path[-1])


# ---------------------------------------------------------------- one leaf
def _find_cell(root: Tree, leaf: Leaf) -> Cell:
    found = find(root, leaf.holder)
    cell = getattr(found if leaf.part == VARIABLE else found.state, "_cell", None)
    if cell is None:
        raise InteropError(
            f"At {_join_path(leaf.holder)!r} of the model there is {type(found).__name__}, where "
            "a Variable has been. Put another Variable there, or assign to the one that is: "
            'model.params["kernel"].assign(value).'
        )
    return cell


@final
class _Outside:
    """Stands for the value of a leaf that a part has nothing to do with."""

    def __init__(self, part: str) -> None:
        self.part = part


def _read_part(root: Tree, leaf: Leaf, inside: Container[int] | None) -> Any:
    if leaf.part == CONSTANT:
        return leaf.value
    if inside is not None and id(find(root, leaf.holder)) not in inside:
        return _Outside(leaf.part) if leaf.box else np.empty(0)  # nnx looks for bare arrays
    return _read(root, leaf)


def _read(root: Tree, leaf: Leaf) -> Array:
    cell = _find_cell(root, leaf)
    if leaf.part == VARIABLE:
        return LOCAL.frame.read(cell)
    state = LOCAL.frame.get(cell)
    if leaf.part == COUNT:
        return unseen(lambda: state[3])
    example = LOCAL.frame.get(EXAMPLE)  # each example of a map has a separate key
    return unseen(lambda: jax.random.wrap_key_data(state[:2] ^ example, impl=IMPL))


def _change(cell: Cell, leaf: Leaf, writes: Mapping[Cell, Array]) -> Array:
    if leaf.part == VARIABLE:
        return fit(leaf.value, cell.aval.shape, cell.aval.dtype, cell)
    STREAMS[cell] = find_furthest
    state = writes[cell] if cell in writes else LOCAL.frame.get(cell)
    if leaf.part == COUNT:
        return unseen(lambda: state.at[3].set(leaf.value))
    return unseen(lambda: _join_state(jax.random.key_data(leaf.value), state[3]))


def _join_state(words: Array, count: Array) -> Array:
    return jnp.concatenate([words, jnp.stack([jnp.uint32(0), count.astype(jnp.uint32)])])


def _place(leaf: Leaf) -> Array:
    """Return the value where its box says that it is to be, if it names a mesh."""
    mesh = getattr(leaf.box, "mesh", None)
    if not isinstance(mesh, jax.sharding.Mesh) or not hasattr(leaf.box, "get_sharding"):
        return leaf.value
    return jax.device_put(leaf.value, leaf.box.get_sharding(mesh))


def _find_part(value: object) -> str:
    if isinstance(value, _Outside):
        return value.part
    if isinstance(value, jax.Array | bool | int | float | complex):
        return VARIABLE
    numbers = isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "OSUTV"
    return VARIABLE if numbers else CONSTANT


def _is_threefry(value: Any) -> bool:
    """Return whether a value is one key of Threefry, as Generators have."""
    if not isinstance(value, jax.Array) or not is_key(value):
        return False
    return value.shape == () and str(jax.random.key_impl(value)) == IMPL


def _is_count(leaf: Leaf) -> bool:
    return getattr(leaf.value, "shape", None) == () and leaf.value.dtype == jnp.uint32


def _name_of_key(key: Any) -> str:
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            return str(getattr(key, name))
    raise InteropError(f"{key!r}, in a tree of flax's, is not a key that has a name.")


def _join_path(path: Path) -> str:
    return "/".join(path[1:] if path[0] == "params" and len(path) > 1 else path)

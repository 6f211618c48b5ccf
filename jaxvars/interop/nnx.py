"""Nnx modules as Modules: a call merges the module, calls it, and takes it apart again.

Rules this file keeps:
- a module is merged for each call, inside whatever is being traced; when a function is compiled
  that happens once, and its calls cost what jaxvars' cost;
- a module and its parts are one `_Core`: a part is a place in it, and always the same object;
- Params are trainable, all other state is not; streams of random values are Generators that
  go on where nnx's were, with the same values;
- what is not state, such as a mode, is part of what a compiled function depends on;
- what a call sows is not state: it is there until the next call, where the call was made;
- nothing changes if a call raises.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, final

import jax
import numpy as np

from jaxvars.core.cells import ASKED, STORE, Cell, FixedCell, is_trainable, set_trainable
from jaxvars.core.frame import Frame
from jaxvars.core.frames import LOCAL, lifted
from jaxvars.core.variable import Variable
from jaxvars.errors import InteropError, user_line
from jaxvars.interop.module import (
    KEY,
    FlaxModule,
    Form,
    Leaf,
    Tree,
    create,
    find,
    forget,
    leaves_of,
    pair_streams,
    seal,
    write_changes,
)
from jaxvars.interop.rngs import generator_of, source_of
from jaxvars.modules.module import Module
from jaxvars.objects.traversal import Proxy, reaches, walk
from jaxvars.random.generator import Generator
from jaxvars.tensors.spec import TensorSpec

Steps: TypeAlias = tuple[Any, ...]  # names of attributes, and indices in lists

_DEFAULT = "default"


@final
class _Core:
    """What a model and its parts share: variables, and the module without them."""

    def __init__(self, graph: Any, form: Form, tree: Tree) -> None:
        self.graph, self.form, self.tree = graph, form, tree
        # What calls have sown, by frame: values of a program end with it.
        self.sown: weakref.WeakKeyDictionary[Frame, Any] = weakref.WeakKeyDictionary()
        self.parts: weakref.WeakValueDictionary[Steps, NnxModule] = weakref.WeakValueDictionary()
        # Graphs that traces have seen, with cells: that of the graph of now is not trainable.
        self._modes: list[tuple[Any, Cell]] = []
        self._nodes: tuple[Any, dict[int, Steps]] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> _Core:
        memo[id(self)] = other = _Core(self.graph, self.form, copy.deepcopy(self.tree, memo))
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        return _Core, (self.graph, self.form, self.tree)

    def part(self, at: Steps) -> NnxModule:
        """Return the part at a place."""
        if (found := self.parts.get(at)) is None:
            self.parts[at] = found = NnxModule(self, at)
        return found

    def nodes(self) -> tuple[Any, dict[int, Steps]]:
        """Return the module with variables in the place of values, and where its nodes are."""
        self.ask()
        if self._nodes is None:
            top = _merge(self.graph, self.form.build(self.form.find(self.tree)))
            self._nodes = top, _places(top)
        return self._nodes

    def merge(self, part: NnxModule) -> tuple[Any, list[Any]]:
        """Return the module as it is now, with the values of a part alone, and these."""
        self.ask()
        inside = {id(x) for _, x in walk(part, (Variable, Generator))} if part._at else None
        values = self.form.read(self.tree, inside)
        return _merge(self.graph, self.form.build(values)), values

    def update(
        self, last: Any, known: Form, graph: Any, form: Form, leaves: list[Leaf], old: Sequence[Any]
    ) -> None:
        """Take over what a call changed; the rest may have been changed by others meanwhile."""
        write_changes(self.tree, leaves, known.by_path(old), _is_trainable)
        forget(self.tree, known.holders - form.holders)
        if graph != last or self.form is known:
            self.form = form
        if graph != last:
            self.graph, self._nodes = graph, None
            for then, mode in self._modes:
                set_trainable(mode, then != graph)

    def ask(self) -> None:
        """Make the function that is traced depend on the graph, as on what is trainable."""
        if ASKED.value is None:
            return
        if all(known != self.graph for known, _ in self._modes):
            mode = FixedCell(self, TensorSpec((), bool), "mode", None)
            STORE[mode.key] = np.True_  # it is there
            self._modes.append((self.graph, mode))
            set_trainable(mode, False)
        for _, mode in self._modes:
            is_trainable(mode)


class NnxModule(FlaxModule, Proxy):
    """An nnx module whose state is variables: what `interop.from_flax` makes of one.

    It has what the module has: `model.encoder(x)`, `model.encoder.kernel` (a Variable),
    `model.layers[0]`, `model.rate`, which can be set. Streams of random values are Generators.
    `train()` and `eval()` set the mode; compiled functions follow, and pure ones under `jax.jit`.
    """

    def __init__(self, core: _Core, at: Steps) -> None:
        own: dict[str, Any] = {"_core": core, "_at": at, "_held": {}}
        vars(self).update(own)
        hidden = [name for name in self._fields() if hasattr(type(self), name)]
        vars(self).update({name: self._wrap(name) for name in hidden})

    def __deepcopy__(self, memo: dict[int, Any]) -> NnxModule:
        return copy.deepcopy(self._core, memo).part(self._at)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Core.part, (self._core, self._at)

    # ------------------------------------------------------------ state
    @property
    def aliased(self) -> dict[str, Any]:
        """Its variables and parts, by name."""
        found = {name: self._wrap(name) for name in self._fields()}
        kinds = Variable | Module
        return {n: x for n, x in found.items() if reaches(x, lambda x: isinstance(x, kinds))}

    def to_flax(self, *, bound: bool = False) -> Any:
        """Return the state as an `nnx.State`, or the module; see `interop.to_flax`."""
        from flax import nnx

        module = _reach(self._core.merge(self)[0], self._at)
        return module if bound else nnx.split(module, graph=True)[1]

    def reseed(self, keys: Sequence[Leaf], rngs: Any) -> None:
        """Begin the streams again, each with a key that is drawn for it."""
        given = rngs if isinstance(rngs, Mapping) else {_DEFAULT: rngs}
        sources = {str(tag): generator_of(source_of(source)) for tag, source in given.items()}
        tags = {leaf.holder: str(leaf.box.get_metadata("tag", _DEFAULT)) for leaf in keys}
        unknown = sorted(set(sources) - {*tags.values(), _DEFAULT})
        if unknown or not tags:
            raise InteropError(
                f"rngs= is for the streams {unknown or sorted(sources)}, and the streams of this "
                f"{self._kind().__name__} are {sorted(set(tags.values()))}."
            )
        for holder, tag in tags.items():
            source = sources.get(tag, sources.get(_DEFAULT))
            if source is not None:
                stream: Generator = find(self._core.tree, holder)
                stream.reset_from_seed(lifted(source.next_key))

    @property
    def sown(self) -> Any:
        """The `nnx.Intermediate`s of the last call: a State of nnx's, as `nnx.pop` returns it.

        Those of a call in a compiled function are there in that function only: return them.

        Raises:
            InteropError: where the last call that sowed was traced in a compiled function.
        """
        found = self._core.sown.get(LOCAL.frame, {})
        if found is None:
            raise InteropError(
                f"What is read at {user_line()} was sown in a compiled function: it is a value of "
                "that program only. Return it there: return y, model.sown"
            )
        for step in self._at:
            found = found.get(step, {})
        return found

    # ------------------------------------------------------------ calls
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module, and write back what it changes."""
        return NnxModule.call(self, "__call__", *args, **kwargs)  # it may have a field "call"

    def call(self, method: str | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        from flax import nnx

        core = self._core
        last, known = core.graph, core.form
        top, values = core.merge(self)
        module = _reach(top, self._at)
        bound = getattr(module, method) if isinstance(method, str) else None
        result = bound(*args, **kwargs) if bound else method(module, *args, **kwargs)  # pyright: ignore[reportCallIssue] - not a string
        sown = nnx.pop(top, nnx.Intermediate)
        graph, form, leaves = _take_apart(top)
        if LOCAL.frame is not LOCAL.eager:
            if graph != last and form.holders == known.holders:
                raise InteropError(
                    f"{method} at {user_line()} sets an attribute of the module in a function that "
                    "is compiled: it would happen once, when this is traced. A mode is set before, "
                    "outside: compiled functions follow. Or call there "
                    "model.view(deterministic=True)(x). What each call is to change, like a "
                    "counter, is an nnx.Variable."
                )
            if sown:
                core.sown[LOCAL.eager] = None
        core.update(last, known, graph, form, leaves, values)
        core.sown[LOCAL.frame] = sown
        at = _places(top).get(id(result)) if isinstance(result, nnx.Pytree) else None
        return result if at is None else self._hold(at)

    def view(self, **attributes: Any) -> NnxModule:
        """Return a model with the same variables and other attributes, as `nnx.view` sets them.

        Args:
            **attributes: of the modules inside, like `deterministic=True`.

        Raises:
            ValueError: when no module inside has an attribute.
        """
        from flax import nnx

        graph, _, _ = _take_apart(nnx.view(self._core.merge(self)[0], **attributes))
        return _Core(graph, self._core.form, self._core.tree).part(self._at)

    # ------------------------------------------------------------ attributes
    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and name in self._fields():
            return self._wrap(name)
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any, /) -> None:
        if isinstance(value, Variable | Module) or isinstance(self._wrap(name), Variable | Module):
            raise AttributeError(
                f"{name} of this {self._kind().__name__} is set at {user_line()}, and is or has "
                f"variables: assign to these, model.{name}.assign(value). To have others, change "
                "the module of nnx, net = jv.interop.to_flax(model, bound=True), and adopt it."
            )
        NnxModule.call(self, "__setattr__", name, value)

    def _kind(self) -> type:
        return type(self._node())

    def _node(self) -> Any:
        return _reach(self._core.nodes()[0], self._at)

    def _fields(self) -> dict[str, Any]:
        """Return what the module has as attributes, with variables for values."""
        return {n: x for n, x in vars(self._node()).items() if not n.startswith("_pytree__")}

    def _wrap(self, name: str) -> Any:
        """Return an attribute, with Variables, Generators and parts for what nnx has."""
        return self._adapt(self._fields().get(name))

    def _adapt(self, value: Any) -> Any:
        from flax import nnx

        if isinstance(value, nnx.Variable):
            return value.get_raw_value()
        if isinstance(value, nnx.RngStream) and isinstance(value.key.get_raw_value(), Generator):
            return value.key.get_raw_value()
        if isinstance(value, nnx.Dict):
            return seal({name: self._adapt(x) for name, x in value.items()})
        value = list(value) if isinstance(value, nnx.List) else value
        if isinstance(value, nnx.Pytree):
            return self._hold(self._core.nodes()[1][id(value)])
        if isinstance(value, list | tuple | dict):
            return seal(jax.tree.map(self._adapt, value, is_leaf=_is_node))
        return value

    def _hold(self, at: Steps) -> NnxModule:
        """Return a part, which is there as long as this one."""
        self._held[at] = found = self._core.part(at)
        return found

    def _field(self, name: str) -> Any:
        if self._core.sown.get(LOCAL.frame) and name in self.sown:
            return self.sown[name]
        return getattr(self.to_flax(bound=True), name)

    def _parts_of(self, kind: type) -> Iterator[object]:
        from flax import nnx

        if issubclass(self._kind(), kind):
            yield self
        for value in self._fields().values():
            if isinstance(value, nnx.Variable) and isinstance(value, kind):
                yield value.get_raw_value()


def adapt(module: Any, rngs: Any = None) -> NnxModule:
    """Make a Module of an nnx module."""
    graph, form, leaves = _take_apart(module)
    _refuse_references(leaves, type(module))
    tree: Tree = {}
    create(tree, leaves, _is_trainable)
    made = _Core(graph, form, tree).part(())
    if rngs is not None:
        made.reseed([leaf for leaf in leaves if leaf.part == KEY], rngs)
    return made


def _reach(module: Any, at: Steps) -> Any:
    """Return what is at a place of a module."""
    from flax import nnx

    try:
        for step in at:
            named = isinstance(module, nnx.Pytree) and not isinstance(module, nnx.List)
            module = vars(module)[step] if named else module[step]  # pyright: ignore[reportIndexIssue] - a list
    except LookupError:
        raise InteropError(f"The model has no part {'/'.join(map(str, at))!r} any more.") from None
    return module


def _places(module: Any) -> dict[int, Steps]:
    """Return where the nodes of a module are, by id: each at its first place."""
    from flax import nnx

    return {id(x): path for path, x in nnx.iter_graph(module) if _is_node(x)}


def _is_node(value: object) -> bool:
    from flax import nnx

    return isinstance(value, nnx.Pytree | nnx.Variable | Variable)


def _take_apart(module: Any) -> tuple[Any, Form, list[Leaf]]:
    from flax import nnx

    graph, state = nnx.split(module, graph=True)
    leaves = pair_streams(leaves_of(state, _is_box))
    return graph, Form(state, leaves), leaves


def _merge(graph: Any, state: Any) -> Any:
    from flax import nnx

    return nnx.merge(graph, state)


def _is_box(value: object) -> bool:
    from flax import nnx

    return isinstance(value, nnx.Variable)


def _is_trainable(leaf: Leaf) -> bool:
    from flax import nnx

    return isinstance(leaf.box, nnx.Param)


def _refuse_references(leaves: Sequence[Leaf], kind: type) -> None:
    for leaf in leaves:
        if leaf.box is not None and (leaf.box.ref or leaf.box.hijax):
            raise InteropError(
                f"{'/'.join(leaf.path)} of this {kind.__name__} is a mutable array of JAX's (made "
                "with ref=True or hijax=True), which lives outside of any State. Make the module "
                "with nnx.var_defaults(ref=False, hijax=False)."
            )

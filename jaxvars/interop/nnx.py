"""Nnx modules as Modules: a call merges the module, calls it, and takes it apart again.

Rules this file keeps:
- a module is merged for each call, inside whatever is being traced; when a function is compiled
  that happens once, and its calls cost what jaxvars' cost;
- Params are trainable, all other state is not; streams of random values are Generators that
  go on where nnx's were, with the same values;
- what a call sows is not state: it is there until the next call, where the call was made;
- nothing changes if a call raises.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from jaxvars.core.frame import Frame
from jaxvars.core.frames import LOCAL, lifted
from jaxvars.errors import InteropError
from jaxvars.interop.module import (
    KEY,
    FlaxModule,
    Form,
    Kept,
    Leaf,
    check_tops,
    create,
    find,
    forget,
    leaves_of,
    pair_streams,
    write_changes,
)
from jaxvars.interop.rngs import generator_of, source_of
from jaxvars.random.generator import Generator

_DEFAULT = "default"


@final
class _Sown:
    """What calls have sown, by frame: values of a program end with it, and are not copied."""

    __slots__ = ("__by_frame",)  # a walk passes over a name like this

    def __init__(self) -> None:
        self.__by_frame: weakref.WeakKeyDictionary[Frame, Any] = weakref.WeakKeyDictionary()

    def put(self, state: Any) -> None:
        self.__by_frame[LOCAL.frame] = state

    def get(self) -> Any:
        return self.__by_frame.get(LOCAL.frame, {})

    def __deepcopy__(self, memo: dict[int, Any]) -> _Sown:
        return _Sown()

    def __reduce__(self) -> tuple[type[_Sown], tuple[()]]:
        return _Sown, ()


@final
class NnxModule(FlaxModule):
    """An nnx module whose state is variables: what `interop.from_flax` makes of one.

    Its variables are attributes, as those of the module: `model.linear["kernel"]`; streams of
    random values are Generators. `train()` and `eval()` set the mode of the model. As all that
    is not a variable, a compiled function reads the mode when it is traced: one that is called in
    both modes takes `view`s of the model.
    """

    def __init__(self, module: Any, rngs: Any = None) -> None:
        super().__init__(type(module))
        graph, form, leaves = _take_apart(module)
        check_tops(leaf.path for leaf in leaves)
        _refuse_references(leaves, type(module))
        create(vars(self), leaves, _is_trainable)
        self._forms = Kept((graph, form))
        self._sown = _Sown()
        if rngs is not None:
            self._reseed([leaf for leaf in leaves if leaf.part == KEY], rngs)

    # ------------------------------------------------------------ state
    def to_flax(self, *, bound: bool = False) -> Any:
        """Return the state as an `nnx.State`, or the module; see `interop.to_flax`."""
        graph, form = self._forms()
        state = form.build(form.read(vars(self)))
        return _merge(graph, state) if bound else state

    def _reseed(self, keys: Sequence[Leaf], rngs: Any) -> None:
        """Begin the streams again, each with a key that is drawn for it."""
        given = rngs if isinstance(rngs, Mapping) else {_DEFAULT: rngs}
        sources = {str(tag): generator_of(source_of(source)) for tag, source in given.items()}
        tags = {leaf.holder: str(leaf.box.get_metadata("tag", _DEFAULT)) for leaf in keys}
        unknown = sorted(set(sources) - {*tags.values(), _DEFAULT})
        if unknown or not tags:
            raise InteropError(
                f"rngs= is for the streams {unknown or sorted(sources)}, and the streams of this "
                f"{self._flax().__name__} are {sorted(set(tags.values()))}."
            )
        for holder, tag in tags.items():
            source = sources.get(tag, sources.get(_DEFAULT))
            if source is not None:
                stream: Generator = find(vars(self), holder)
                stream.reset_from_seed(lifted(source.next_key))

    @property
    def sown(self) -> Any:
        """The `nnx.Intermediate`s of the last call: a State of nnx's, as `nnx.pop` returns it.

        Those of a call in a compiled function are there in that function only: return them.
        """
        return vars(self).get("sown", self._sown.get())

    # ------------------------------------------------------------ calls
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module, and write back what it changes."""
        return self.call("__call__", *args, **kwargs)

    def call(self, method: str | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        from flax import nnx

        graph, form = self._forms()
        values = form.read(vars(self))
        module = _merge(graph, form.build(values))
        bound = getattr(module, method) if isinstance(method, str) else None
        result = bound(*args, **kwargs) if bound else method(module, *args, **kwargs)  # pyright: ignore[reportCallIssue] - not a string
        self._sown.put(nnx.pop(module, nnx.Intermediate))
        graph, new, leaves = _take_apart(module)
        write_changes(vars(self), leaves, form.by_path(values), _is_trainable)
        forget(vars(self), form.holders - new.holders)
        self._forms = Kept((graph, new))
        return self if result is module else result

    def view(self, **attributes: Any) -> NnxModule:
        """Return a model with the same variables and other attributes, as `nnx.view` sets them.

        Args:
            **attributes: of the modules inside, like `deterministic=True`.

        Raises:
            ValueError: when no module inside has an attribute.
        """
        from flax import nnx

        graph, form = self._forms()
        module = nnx.view(self.to_flax(bound=True), **attributes)
        other = object.__new__(NnxModule)
        vars(other).update(vars(self))
        graph, _, _ = _take_apart(module)
        other._forms = Kept((graph, form))
        return other

    # ------------------------------------------------------------ attributes
    def _kind(self) -> type:
        return self._flax()

    def _field(self, name: str) -> Any:
        if name in (sown := self._sown.get()):
            return sown[name]
        return getattr(self.to_flax(bound=True), name)


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

"""Linen modules as Modules: collections are dicts of variables, a call is `module.apply`.

Rules this file keeps:
- a call is one `apply` with the values of the moment; what it changed is written back;
- the streams of random values that a call used advance, the others do not (`interop/rngs.py`);
- a module is initialized once: by `from_flax`, or by the first call;
- nothing changes if a call raises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.frame import TRACING
from jaxvars.core.frames import lifted
from jaxvars.core.store import BUSY, CURRENT
from jaxvars.errors import InteropError
from jaxvars.interop.module import (
    FlaxModule,
    Form,
    Kept,
    Leaf,
    check_tops,
    create,
    forget,
    leaves_of,
    seal,
    write_changes,
)
from jaxvars.interop.rngs import PARAMS, Draws, first_keys, streams_of
from jaxvars.objects.traversal import HIDING, Proxy
from jaxvars.tensors.spec import TensorSpec
from jaxvars.tracing import context
from jaxvars.typing import Array

Method: TypeAlias = str | Callable[..., Any] | None

_CURES = {
    "InvalidRngError": (
        "A stream of random values is missing. Name all that the module uses: "
        'interop.from_flax(module, x, rngs={"params": 0, "dropout": 1, "noise": 2}).'
    ),
    "ScopeParamShapeError": (
        "The module was initialized with inputs of other sizes. Make another from_flax for these."
    ),
    "ModifyScopeVariableError": (
        "The call writes a collection that the model does not keep, or that mutable= leaves out. "
        'Ask for it, y, made = model(x, mutable=["that collection"]), or have it made when the '
        "model is initialized."
    ),
    **dict.fromkeys(
        ("ScopeParamNotFoundError", "ScopeCollectionNotFound", "ScopeVariableNotFoundError"),
        "The model was initialized without it. Give from_flax the inputs, keyword arguments and "
        "method of a call that needs all of the module's state; weights that are there already "
        'go in as variables={"params": weights}.',
    ),
}


class LinenModule(FlaxModule):
    """A linen module whose collections are variables: what `interop.from_flax` makes of one.

    Attributes:
        params: the trainable variables: `model.params["Dense_0"]["kernel"]`.
        rngs: the generator of each stream of random values, by name.

    The other collections are attributes of their names, too: `model.batch_stats`; and so are the
    parts that `setup` makes: `model.encoder(x)`.
    """

    _whole: Any = None
    _at: tuple[Any, ...] = ()  # attributes, and indices in lists and dicts

    def __init__(self, module: Any, rngs: Any, method: Method) -> None:
        if module.scope is not None:
            raise InteropError(
                f"This {type(module).__name__} is bound to variables already. Take them apart: "
                "module, variables = bound.unbind(); interop.from_flax(module, variables=variables)"
            )
        super().__init__()
        self._flax = Kept(module)
        self._method = Kept(method)
        self._forms: Kept | None = None
        self._parts = _Parts()
        self._sources, self.rngs = streams_of(rngs, module)

    # ------------------------------------------------------------ state
    def initialize(self, args: tuple[Any, ...], kwargs: dict[str, Any], method: Method) -> None:
        """Make the variables, unless they are there."""
        if self._forms is None:
            with TRACING:  # another thread may have been first
                if self._forms is None:
                    self.fill(self._make_first(args, kwargs, method or self._method()))

    def fill(self, variables: Mapping[str, Any]) -> None:
        """Make the variables of a dict of collections."""
        from flax import core

        if not all(isinstance(tree, Mapping) for tree in variables.values()):
            raise InteropError(
                'variables= is a dict of collections, {"params": {"Dense_0": ...}, ...}, and not '
                f"{ {name: type(tree).__name__ for name, tree in variables.items()} }."
            )
        variables = {PARAMS: {}, **core.unfreeze(dict(variables))}
        trees = {name: leaves_of(tree, _is_box, (name,)) for name, tree in variables.items()}
        check_tops([(name,) for name in trees], "rngs")
        for name, leaves in trees.items():
            vars(self)[name] = {}
            create(vars(self), leaves, _is_trainable)
        self._forms = Kept({name: Form(variables[name], trees[name]) for name in trees})
        self._sources = {}

    def to_flax(self, *, bound: bool = False) -> Any:
        """Return the variables as a dict of collections; see `interop.to_flax`."""
        forms = self._get_forms()
        variables = {name: form.build(form.read(vars(self))) for name, form in forms.items()}
        variables = {name: tree for name, tree in variables.items() if tree or name == PARAMS}
        return self._flax().bind(variables) if bound else variables

    def _get_forms(self) -> dict[str, Form]:
        if self._forms is None:
            raise InteropError(
                f"The state of this {type(self._flax()).__name__} is made by its first call. Call "
                "it, or give from_flax an example of its input: interop.from_flax(module, x)."
            )
        return self._forms()

    def _make_first(self, args: tuple[Any, ...], kwargs: dict[str, Any], method: Method) -> Any:
        keys = first_keys(self._sources)

        def init(*args: Any, **kwargs: Any) -> Any:
            return self._flax().init(keys, *args, method=method, **kwargs)

        def again(variables: Any, name: str) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                options = {"rngs": dict.fromkeys([*self.rngs.all(), PARAMS], keys[PARAMS])}
                options |= {"method": method, "mutable": [n for n in variables if n != PARAMS]}
                return self._flax().apply(variables, *args, **options, **kwargs)[1][name]

            return jax.eval_shape(*_split_arrays(call, args, kwargs))

        run, arrays = _split_arrays(init, args, kwargs)
        traced = any(map(context.is_tracer, arrays))

        def first() -> Any:
            made = run(arrays) if traced else _compile_or_run(run, arrays)
            return {n: tree for n, tree in made.items() if not _is_sown(n, made, again)}

        return first() if traced else lifted(first)

    # ------------------------------------------------------------ calls
    def __call__(
        self,
        *args: Any,
        method: Method = None,
        mutable: Any = None,
        capture_intermediates: Any = False,
        rngs: Mapping[str, Array] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call the module, and write back what it changes.

        Args:
            *args: passed on.
            method: another method, by name, or a function that takes the module first.
            mutable: which collections may be written, as `apply` has it; when None, all that the
                model keeps, less the params.
            capture_intermediates: as `apply` has it.
            rngs: keys for streams, to use instead of draws from the generators.
            **kwargs: passed on: `train=True`.

        Returns:
            The result; with `mutable` or `capture_intermediates` also a dict of the collections
            that were written.

        Raises:
            InteropError: when a stream, a parameter or a collection is missing, with the cure.
        """
        self.initialize(args, kwargs, method)
        wanted = _choose_mutable(mutable, self._get_forms(), capture=bool(capture_intermediates))
        options = {"mutable": wanted, "capture_intermediates": capture_intermediates}
        run = _Run(self._flax(), method or self._method())
        result, new = self._apply(run, args, kwargs, dict(rngs or {}), options)
        if mutable is None and capture_intermediates:
            return result, {"intermediates": new.get("intermediates", {})}
        return result if mutable is None or wanted is False else (result, new)

    def call(self, method: str | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return self(*args, method=method, **kwargs)

    def _apply(
        self,
        run: _Run,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        rngs: dict[str, Array],
        options: dict[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        """Return the result of a call, and the collections it wrote, which are written back."""
        from flax import linen

        forms, used = self._get_forms(), set[str]()
        values = {name: form.read(vars(self)) for name, form in forms.items()}
        variables = {name: form.build(values[name]) for name, form in forms.items()}
        draws = Draws({name: g for name, g in self.rngs.all().items() if name not in rngs})
        try:
            apply: Any = linen.apply(run.call, cast("Any", run), **options)
            result = apply(variables, *args, rngs={**draws.keys, **rngs}, **kwargs)
            result, new = (result, {}) if options["mutable"] is False else result
            self._write_changes(forms, values, new)
            used = run.used()
        except Exception as error:
            ours = type(error).__module__ == "flax.errors"
            if ours and (cure := _CURES.get(type(error).__name__)):
                raise InteropError(f"{error}\n{cure}") from error
            raise
        finally:
            self.rngs.note_used(used)
            draws.keep_used(used)
        return result, new

    def _write_changes(
        self, forms: dict[str, Form], values: Mapping[str, list[Array]], new: Mapping[str, Any]
    ) -> None:
        trees = {name: tree for name, tree in new.items() if name in forms}
        leaves = {name: leaves_of(tree, _is_box, (name,)) for name, tree in trees.items()}
        old = {p: v for name in trees for p, v in forms[name].by_path(values[name]).items()}
        write_changes(vars(self), [x for one in leaves.values() for x in one], old, _is_trainable)
        changed = {name: Form(tree, leaves[name]) for name, tree in trees.items()}
        for name, form in changed.items():
            forget(vars(self), forms[name].holders - form.holders)
        self._forms = Kept({**forms, **changed})

    # ------------------------------------------------------------ attributes
    def _kind(self) -> type:
        return type(self._flax())

    def _explain_refusal(self, name: str) -> str | None:
        from flax import linen

        if not hasattr(linen.Module, name):
            late = self._forms is None and not hasattr(self._flax(), name)
            return f"There is no {name!r} yet: the first call makes the parts." if late else None
        return (
            f"{name!r} is for linen's own use of a module. Call this one, and take the variables "
            f"with interop.to_flax(model): module.{name}(...) works with them as ever."
        )

    def _field(self, name: str) -> Any:
        if name in (tops := self._tops()):
            return tops[name]
        bound = self._flax() if self._forms is None else self.to_flax(bound=True)
        return self._adapt(getattr(bound, name), (*self._at, name))

    def _adapt(self, value: Any, at: tuple[Any, ...]) -> Any:
        """Return parts for bound modules."""
        if isinstance(value, list | tuple):
            return tuple(self._adapt(x, (*at, i)) for i, x in enumerate(value))
        if isinstance(value, Mapping):
            return seal({key: self._adapt(x, (*at, key)) for key, x in value.items()})
        whole = self._whole or self
        return whole._parts(whole, at) if hasattr(value, "scope") else value


@final
class LinenPart(LinenModule, Proxy):
    """A part of a linen module, with its share of each collection: `model.encoder.params`."""

    def __init__(self, whole: LinenModule, at: tuple[Any, ...]) -> None:
        self._whole, self._at = whole, at

    @property
    def _forms(self) -> Kept | None:  # pyright: ignore[reportIncompatibleVariableOverride] - never set
        return self._whole._forms

    @property
    def aliased(self) -> dict[str, Any]:
        """The share of each collection, by name."""
        found = self._whole._tops()
        for step in self._path:
            found = {n: x[step] for n, x in found.items() if isinstance(x, dict) and step in x}
        return found

    @functools.cached_property
    def _path(self) -> tuple[str, ...]:
        """Where its share is, which takes the values of the variables to find out once."""
        if CURRENT[0] is BUSY:  # a message looks for the path of a variable
            raise InteropError("The values are in use.")
        return self.to_flax(bound=True).scope.path

    def to_flax(self, *, bound: bool = False) -> Any:
        part = _reach(self._whole.to_flax(bound=True), self._at)
        return part if bound else part.variables

    def __call__(self, *args: Any, method: Method = None, **kwargs: Any) -> Any:
        def run(top: Any, *args: Any, **kwargs: Any) -> Any:
            return _call(_reach(top, self._at), method, args, kwargs)

        return self._whole(*args, method=run, **kwargs)

    def _kind(self) -> type:
        return type(self.to_flax(bound=True))


@final
class _Parts:
    """The parts of a module: always the same objects, as compiled functions know them by that."""

    __slots__ = ("__held",)

    def __init__(self) -> None:
        self.__held: dict[tuple[Any, ...], LinenPart] = {}

    def __call__(self, whole: LinenModule, at: tuple[Any, ...]) -> LinenPart:
        """Return the part at a place."""
        return self.__held.setdefault(at, LinenPart(whole, at))

    def __reduce__(self) -> tuple[Any, ...]:  # a copy has parts of its own
        return _Parts, ()


HIDING.add(_Parts)


@final
class _Run:
    """A module and method for `nn.apply`, which clones it into a scope that counts streams."""

    def __init__(self, module: Any, method: Method) -> None:
        self._module = module
        self._method = method
        self._scope: Any = None

    def clone(self, *, parent: Any, **options: Any) -> Any:
        """Return a clone of the module in a scope, and remember that."""
        self._scope = parent
        return self._module.clone(parent=parent, **options)

    def call(self, module: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call the method of the bound module."""
        return _call(module, self._method, args, kwargs)

    def used(self) -> set[str]:
        """Return which streams were asked for a key; one that `nn.jit` was given counts, too."""
        from flax.traverse_util import flatten_dict

        counters = flatten_dict(self._scope.rng_counters)  # in the scopes inside, too
        return {path[-1] for path, count in counters.items() if count}


def _call(module: Any, method: Method, args: Any, kwargs: Any) -> Any:
    if method is None:
        return module(*args, **kwargs)
    if isinstance(method, str):
        return getattr(module, method)(*args, **kwargs)
    return getattr(method, "__func__", method)(module, *args, **kwargs)


def _reach(module: Any, at: tuple[Any, ...]) -> Any:
    for step in at:
        module = module[step] if isinstance(module, tuple | Mapping) else getattr(module, step)
    return module


def _is_sown(name: str, variables: Any, again: Callable[[Any, str], Any]) -> bool:
    """Return whether each call adds to a collection, as `sow` does: it is not one to keep."""
    parts = jax.tree.leaves(variables[name], is_leaf=lambda x: isinstance(x, tuple))
    if name == PARAMS or not any(isinstance(part, tuple) for part in parts):
        return False
    return jax.tree.structure(again(variables, name)) != jax.tree.structure(variables[name])


def _is_box(value: object) -> bool:
    from flax.core import meta

    return isinstance(value, meta.AxisMetadata)


def _is_trainable(leaf: Leaf) -> bool:
    return leaf.path[0] == PARAMS


def _choose_mutable(given: Any, forms: Mapping[str, Form], *, capture: bool) -> Any:
    if given is not None:
        return given
    names = [name for name in forms if name != PARAMS] + ["intermediates"] * capture
    return names or False


# ---------------------------------------------------------------- example inputs
def _split_arrays(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[[list[Array]], Any], list[Array]]:
    """Return a call as a function of the arrays in it, and these; specs are filled with zeros."""
    leaves, treedef = jax.tree.flatten((args, kwargs), is_leaf=_is_spec)
    arrays = [x for x in leaves if _is_array(x)]

    def run(arrays: list[Array]) -> Any:
        given = iter(arrays)
        filled = [
            next(given) if _is_array(x) else jnp.zeros(x.shape, x.dtype) if _is_spec(x) else x
            for x in leaves
        ]
        args, kwargs = jax.tree.unflatten(treedef, filled)
        return fn(*args, **kwargs)

    return run, arrays


def _compile_or_run(run: Callable[[list[Array]], Any], arrays: list[Array]) -> Any:
    try:
        return jax.jit(run)(arrays)  # a third of the time that it takes eagerly
    except (TypeError, IndexError):  # a module that looks at values, or keeps what is not an array
        return run(arrays)


def _is_array(x: object) -> bool:
    return isinstance(x, jax.Array | np.ndarray)


def _is_spec(x: object) -> bool:
    return isinstance(x, TensorSpec | jax.ShapeDtypeStruct)

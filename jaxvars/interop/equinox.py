"""Equinox modules as Modules: a call reads the Variables, and calls the module of their values.

Rules this file keeps:
- what the module computes with are arrays, never Variables: equinox asks what is an array;
- state is in the `init` of its `StateIndex`, as before `eqx.nn.make_with_state` takes it out; what
  a call did not change is not written;
- all else never changes, as equinox has it: a compiled function may rely on it.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any, final

import jax

from jaxvars.core.module import Module
from jaxvars.errors import ForeignTransformError, InteropError, user_line
from jaxvars.interop.module import Kept
from jaxvars.interop.trees import VariableTree, adapt, is_variable
from jaxvars.tracing.key_order import map_leaves


def from_equinox(module: Any, state: Any = None, *, filter: Any = None) -> EquinoxModule:
    """Make a Module of an equinox module: each of its arrays becomes a Variable.

    Args:
        module: whose arrays are copied, and which is not changed.
        state: its `eqx.nn.State`: `from_equinox(*eqx.nn.make_with_state(CNN)(key))`.
        filter: which arrays of floating dtypes are trainable: a function of a leaf, or a tree of
            booleans and such functions, as `eqx.filter` takes; all when None. The other arrays,
            and the state, are Variables that are not trainable; what is no array stays.

    Returns:
        A Module to call like the equinox module. A method that takes a `state` is given it when
        the call has none; the new one, which it returns last, is then kept, and not returned.

    Raises:
        InteropError: when it is not an equinox module, or its state is missing.

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> model = from_equinox(eqx.nn.MLP(2, 1, 8, 1, key=jax.random.key(0)))
    >>> list(model.named_variables)
    ['layers/0/bias', 'layers/0/weight', 'layers/1/bias', 'layers/1/weight']
    >>> jax.vmap(model)(jnp.ones((4, 2))).shape
    (4, 1)

    Differs from equinox: the model is no pytree. Equinox's own functions take `model.value`.
    """
    eqx: Any = sys.modules.get("equinox")  # where there is a module of equinox, it was imported
    if eqx is None or not isinstance(module, eqx.Module):
        raise InteropError(
            f"from_equinox takes a module of equinox, at {user_line()} it is given "
            f'{type(module).__name__} {module!r}. See also: pip install "jaxvars[equinox]".'
        )
    try:
        state = eqx.nn.State(module) if state is None else state.substate(module)
    except (ValueError, KeyError, AttributeError) as error:
        raise InteropError(
            f"The {type(module).__name__} given to from_equinox at {user_line()} has its state in "
            "the eqx.nn.State that was made with it: from_equinox(module, state)."
        ) from error
    chosen = eqx.filter(module, eqx.is_inexact_array if filter is None else filter)
    trained = {_name(path) for path, _ in jax.tree_util.tree_flatten_with_path(chosen)[0]}
    return EquinoxModule(_hold(module, lambda path: path in trained, state.get))


def to_equinox(model: EquinoxModule) -> Any:
    """Return the equinox module of a model, with the values of now.

    Args:
        model: made by `from_equinox`, or a part of one.

    Returns:
        `model.value`; of a model with state `(module, state)`, as from `eqx.nn.make_with_state`.

    >>> import equinox as eqx, jax
    >>> linear = eqx.nn.Linear(2, 3, key=jax.random.key(0))
    >>> bool(eqx.tree_equal(to_equinox(from_equinox(linear)), linear))
    True
    """
    if not isinstance(model, EquinoxModule):
        raise InteropError(f"to_equinox takes what from_equinox made, not {type(model).__name__}.")
    module, state = model._split()
    return (module, state) if model._kept()[1] else module


@final
class EquinoxModule(Module):
    """An equinox module whose arrays are Variables: what `interop.from_equinox` makes.

    It has the module's attributes and methods, modules inside are such Modules. Of a name that
    Modules have, too, the module's is `model["name"]`. What is not a Variable cannot be set.
    """

    _kept: Kept

    def __init__(self, tree: Any) -> None:
        indices = [x for x in jax.tree.leaves(tree, is_leaf=_is_leaf) if not is_variable(x)]
        state = {index.marker: index.init for index in indices if _is_index(index)}
        slots = jax.tree.leaves(list(state.values()), is_leaf=is_variable)
        own = {"_name": type(tree).__name__.lower(), "_kept": Kept((VariableTree(tree), slots))}
        vars(self).update({name: _wrap(value) for name, value in vars(tree).items()} | own)

    @property
    def value(self) -> Any:
        """The equinox module with the values of now, read at one moment."""
        return self._split()[0]

    def view(self, change: Callable[[Any], Any]) -> EquinoxModule:
        """Return a model of the same Variables, of a module that is made of this one.

        Args:
            change: takes the module, with opaque leaves for Variables, and returns a module, like
                `eqx.nn.inference_mode`. Arrays that it puts in become new Variables.

        >>> import equinox as eqx
        >>> from_equinox(eqx.nn.Dropout(0.5)).view(eqx.nn.inference_mode).inference
        True
        """
        made = change(jax.tree.map(Kept, self._kept()[0].tree, is_leaf=is_variable))
        made = jax.tree.map(lambda x: x() if isinstance(x, Kept) else x, made)
        return EquinoxModule(_hold(made, lambda _: True, lambda index: index.init))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module, and keep its new state."""
        return self._call("__call__", *args, **kwargs)

    def with_state(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return `fn(module, state, *args)`, less the new state, which is kept.

        Args:
            fn: takes the equinox module and its `eqx.nn.State`; returns `(..., new_state)`.
            *args: passed on.
            **kwargs: passed on.

        >>> import equinox as eqx, jax, jax.numpy as jnp
        >>> model = from_equinox(eqx.nn.BatchNorm(2, "batch", mode="batch"))
        >>> def mapped(module, state, xs):
        ...     run = jax.vmap(module, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
        ...     return run(xs, state)
        >>> model.with_state(mapped, jnp.ones((4, 2))).shape, int(model.batch_counter.init)
        ((4, 2), 1)
        """
        module, state = self._split()
        old, form = jax.tree.flatten(state)
        result = fn(module, state, *args, **kwargs)
        if not isinstance(result, tuple) or [jax.tree.structure(x) for x in result[-1:]] != [form]:
            raise InteropError(
                f"What is called with the state of this {self.name} at {user_line()} "
                f"must return (result, new_state); it returned a {type(result).__name__}."
            )
        pairs = zip(self._kept()[1], old, jax.tree.leaves(result[-1]), strict=True)
        changed = [(slot, x) for slot, before, x in pairs if x is not before]
        try:
            VariableTree([v for v, _ in changed]).assign([x for _, x in changed])
        except ForeignTransformError as error:
            error.add_note("In jax.vmap, map what model.with_state(fn) calls: see its example.")
            raise
        return result[0] if len(result) == 2 else result[:-1]

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        held, slots = self._kept()
        if not slots or not _wants_state(getattr(held.tree, method), args, kwargs):
            return getattr(self.value, method)(*args, **kwargs)
        return self.with_state(lambda m, state: getattr(m, method)(*args, state=state, **kwargs))

    def _split(self) -> tuple[Any, Any]:
        """Return the module and its state, with the values of now."""
        (held, slots), nn = self._kept(), sys.modules["equinox"].nn
        full = held.value
        return (nn.delete_init_state(full) if slots else full), nn.State(full)

    def __getitem__(self, key: Any) -> Any:
        """Return an attribute of the module, by name, or what the module has at an index."""
        if not isinstance(key, str):
            return _wrap(self._kept()[0].tree[key])
        return vars(self)[key] if key in vars(self) else self.__getattr__(key)

    def __getattr__(self, name: str) -> Any:
        # Only reached when there is no such attribute.
        if name == "inference" and sys._getframe(1).f_globals["__name__"].startswith("equinox."):
            raise InteropError(
                f"At {user_line()} equinox looks for modules to change in a Module that was made "
                "of one. Write model.view(eqx.nn.inference_mode)."
            )
        kind = type(self._kept()[0].tree) if "_kept" in vars(self) else object
        if name.startswith("__") or not hasattr(kind, name):
            raise AttributeError(f"Neither this model nor its module has an attribute {name!r}.")
        is_method = callable(getattr(kind, name))
        return functools.partial(self._call, name) if is_method else getattr(self.value, name)

    def __setattr__(self, name: str, value: Any, /) -> None:
        if vars(self).get(name, self) is not value:  # what model.bias += 1 sets is there
            raise AttributeError(
                f"A module of equinox never changes, at {user_line()} its {name!r} is set. Assign to "
                f"a Variable, model.{name}.assign(value); or make another model of the Variables: "
                f"model.view(lambda module: eqx.tree_at(lambda m: m.{name}, module, value))."
            )

    def __deepcopy__(self, memo: dict[int, Any]) -> EquinoxModule:
        return EquinoxModule(copy.deepcopy(self._kept()[0], memo).tree)

    def __rich_repr__(self) -> Iterator[Any]:
        yield self.name
        yield from ((k, v) for k, v in vars(self).items() if k not in ("_kept", "_name"))


def _hold(module: Any, is_trained: Callable[[str], bool], state_of: Callable[[Any], Any]) -> Any:
    """Return a module with a Variable for each array, and for those of its state."""
    made: dict[Any, Any] = {}  # by the marker of a StateIndex, which may be in several places

    def hold(path: Any, leaf: Any) -> Any:
        if not _is_index(leaf):
            return adapt(_name(path), leaf, is_trained(_name(path)))
        if leaf.marker not in made:
            start = (*path, jax.tree_util.GetAttrKey("init"))
            made[leaf.marker] = jax.tree_util.tree_map_with_path(
                lambda more, x: adapt(_name((*start, *more)), x, False),
                state_of(leaf),
                is_leaf=is_variable,
            )
        index = type(leaf)(made[leaf.marker])
        object.__setattr__(index, "marker", leaf.marker)  # as equinox does
        return index

    return jax.tree_util.tree_map_with_path(hold, module, is_leaf=_is_leaf)


def _wrap(value: Any) -> Any:
    """Return a value with a Module for each module of equinox in it."""
    base = sys.modules["equinox"].Module
    return map_leaves(
        lambda x: EquinoxModule(x) if isinstance(x, base) else x,
        value,
        is_leaf=lambda x: isinstance(x, base) or is_variable(x),
    )


def _wants_state(method: Any, args: Any, kwargs: Any) -> bool:
    """Return whether a method takes a `state` that is not among the arguments."""
    try:
        bound = inspect.signature(method).bind_partial(*args, **kwargs)
    except (TypeError, ValueError):  # the call says what is wrong
        return False
    return "state" in bound.signature.parameters and "state" not in bound.arguments


def _is_index(value: object) -> bool:
    return isinstance(value, sys.modules["equinox"].nn.StateIndex)


def _is_leaf(value: object) -> bool:
    return _is_index(value) or is_variable(value)


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")

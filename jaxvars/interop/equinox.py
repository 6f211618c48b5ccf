"""Equinox modules as Modules: a call reads the Variables, and calls the module of their values.

Rules this file keeps:
- what a module computes with are arrays, never Variables, and all else in it never changes;
- state is in the `init` of its `StateIndex`, as before `eqx.nn.make_with_state` takes it out;
- what a call did not change is not written.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, final

import jax
from jax.tree_util import tree_flatten_with_path, tree_map_with_path

from jaxvars.core.variable import Variable
from jaxvars.errors import InteropError, user_line
from jaxvars.interop.module import Kept, seal
from jaxvars.interop.trees import VariableTree, adapt, is_variable, path_of
from jaxvars.modules.module import Module
from jaxvars.objects.key_order import map_leaves


def from_equinox(module: Any, state: Any = None, *, filter: Any = None) -> EquinoxModule:
    """Make a Module of an equinox module: each of its arrays becomes a Variable.

    Args:
        module: whose arrays are copied, and which is not changed.
        state: its `eqx.nn.State`: `from_equinox(*eqx.nn.make_with_state(CNN)(key))`.
        filter: what `eqx.filter` takes: which arrays of floating dtypes are trainable. The others,
            and the state, are Variables that are not; what is not an array stays.

    Returns:
        A Module to call like the equinox module. A method that takes a `state` is given it when
        the call has none; the new one, which it returns last, is then kept, and not returned.

    Raises:
        InteropError: when it is not an equinox module, or its state is missing.

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> model = from_equinox(eqx.nn.MLP(2, 1, 8, 1, key=jax.random.key(0)))
    >>> jax.vmap(model)(jnp.ones((4, 2))).shape, list(model.named_variables)[:2]
    ((4, 1), ['layers/0/bias', 'layers/0/weight'])

    Differs from equinox: the model is not a pytree, equinox's own functions take `model.value`; and
    weak types are not kept.
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
    trained = {path_of(path) for path, _ in tree_flatten_with_path(chosen)[0]}
    return EquinoxModule(_hold(module, lambda path: path in trained, state.get))


def to_equinox(model: EquinoxModule) -> Any:
    """Return the equinox module of a model, with the values of now.

    Args:
        model: made by `from_equinox`, or a part of one.

    Returns:
        `model.value`; of a model with state `(module, state)`, as from `eqx.nn.make_with_state`.

    Raises:
        InteropError: when it was not made by `from_equinox`.

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

    It has the module's attributes and methods, and modules inside are such Modules. What is not a
    Variable cannot be set. A field with a name that Modules have, too, is `vars(model)[name]`.
    """

    _kept: Kept

    def __init__(self, tree: Any) -> None:
        eqx, leaves = sys.modules["equinox"], jax.tree.leaves(tree, is_leaf=_is_leaf)
        state = {x.marker: x.init for x in leaves if isinstance(x, eqx.nn.StateIndex)}
        slots = jax.tree.leaves(list(state.values()), is_leaf=is_variable)
        wrap: Any = lambda x: EquinoxModule(x) if isinstance(x, eqx.Module) else x  # noqa: E731
        is_part: Any = lambda x: isinstance(x, eqx.Module | Variable)  # noqa: E731
        parts = {name: seal(map_leaves(wrap, x, is_leaf=is_part)) for name, x in vars(tree).items()}
        own = {"_name": type(tree).__name__.lower(), "_kept": Kept((VariableTree(tree), slots))}
        vars(self).update(own | parts)

    @property
    def value(self) -> Any:
        """The equinox module with the values of now, read at one moment."""
        return self._split()[0]

    def view(self, change: Callable[[Any], Any]) -> EquinoxModule:
        """Return a model of the same Variables, of a module that is made of this one.

        Args:
            change: takes the module, with opaque leaves for Variables, and returns a module, like
                `eqx.nn.inference_mode`. New arrays in it become new Variables.
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
        >>> fn = lambda m, s, xs: jax.vmap(m, (0, None), (0, None), axis_name="batch")(xs, s)
        >>> model.with_state(fn, jnp.ones((4, 2))).shape, int(model.batch_counter.init)
        ((4, 2), 1)
        """
        module, state = self._split()
        old, form = jax.tree.flatten(state)
        result = fn(module, state, *args, **kwargs)
        if not isinstance(result, tuple) or [jax.tree.structure(x) for x in result[-1:]] != [form]:
            raise InteropError(
                f"What is called with the state of this {self.name} at {user_line()} "
                f"must return (result, new_state); it returned {type(result).__name__}."
            )
        pairs = zip(self._kept()[1], old, jax.tree.leaves(result[-1]), strict=True)
        changed = [(slot, x) for slot, before, x in pairs if x is not before]
        VariableTree([v for v, _ in changed]).assign([x for _, x in changed])
        return result[0] if len(result) == 2 else result[:-1]

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        (held, slots), lacking = self._kept(), set[str]()
        with suppress(TypeError, ValueError):  # the call says what is wrong
            bound = inspect.signature(getattr(held.tree, method)).bind_partial(*args, **kwargs)
            lacking = bound.signature.parameters.keys() - bound.arguments
        if not slots or "state" not in lacking:
            return getattr(self.value, method)(*args, **kwargs)
        return self.with_state(lambda m, state: getattr(m, method)(*args, state=state, **kwargs))

    def _split(self) -> tuple[Any, Any]:
        (held, slots), nn = self._kept(), sys.modules["equinox"].nn
        full = held.value
        return (nn.delete_init_state(full) if slots else full), nn.State(full)

    def _parts_of(self, kind: type) -> Iterator[object]:
        if isinstance(self._kept()[0].tree, kind):
            yield self

    def __getattr__(self, name: str) -> Any:
        # Only reached for a missing attribute.
        kind = type(self._kept()[0].tree) if "_kept" in vars(self) else object
        if name.startswith("__") or not hasattr(kind, name):
            mode = " For another mode: model.view(eqx.nn.inference_mode)."
            raise AttributeError(
                f"Neither this model nor its module has an attribute {name!r}."
                f"{mode if name in ('train', 'eval') else ''}"
            )
        is_method = callable(getattr(kind, name))
        return functools.partial(self._call, name) if is_method else getattr(self.value, name)

    def __setattr__(self, name: str, value: Any, /) -> None:
        if vars(self).get(name, self) is not value:  # what model.bias += 1 sets is there
            raise AttributeError(
                f"{name!r} of an equinox module is set at {user_line()}. Assign to Variables, or "
                f"make a view: model.view(lambda m: eqx.tree_at(lambda m: m.{name}, m, value))."
            )

    def __delattr__(self, name: str) -> None:
        setattr(self, name, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return EquinoxModule, (self._kept()[0].tree,)

    def __deepcopy__(self, memo: dict[int, Any]) -> EquinoxModule:
        return EquinoxModule(copy.deepcopy(self._kept()[0], memo).tree)

    def __rich_repr__(self) -> Iterator[Any]:
        yield self.name
        yield from ((k, v) for k, v in vars(self).items() if k not in ("_kept", "_name"))


def _hold(module: Any, is_trained: Callable[[str], bool], state_of: Callable[[Any], Any]) -> Any:
    made: dict[Any, Any] = {}  # by the marker of a StateIndex, which may be in several places

    def hold(path: Any, leaf: Any) -> Any:
        if is_variable(leaf) or not _is_leaf(leaf):
            return adapt(path_of(path), leaf, is_trained(path_of(path)))
        if leaf.marker not in made:
            start = (*path, jax.tree_util.GetAttrKey("init"))
            put: Any = lambda more, x: adapt(path_of((*start, *more)), x, False)  # noqa: E731
            made[leaf.marker] = tree_map_with_path(put, state_of(leaf), is_leaf=is_variable)
        index = type(leaf)(made[leaf.marker])
        object.__setattr__(index, "marker", leaf.marker)  # as equinox does
        return index

    return tree_map_with_path(hold, module, is_leaf=_is_leaf)


def _is_leaf(value: object) -> bool:
    return isinstance(value, sys.modules["equinox"].nn.StateIndex | Variable)

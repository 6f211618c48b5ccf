"""Equinox modules as Modules: a call reads the Variables, and calls the module of their values.

Rules this file keeps:
- what the module computes with are arrays, never Variables: equinox asks what is an array;
- a module is a tree of Variables in the attributes that equinox has, children are Modules, too;
- state is in the `init` of its `StateIndex`, as before `eqx.nn.make_with_state` took it out; what a
  call did not change is not written;
- the rest of a module never changes, as equinox has it: a compiled function may rely on it.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

import jax

from jaxvars.core.module import Module
from jaxvars.core.variable import Variable
from jaxvars.errors import ForeignTransformError, InteropError, user_line
from jaxvars.interop.module import Kept
from jaxvars.interop.trees import VariableTree, adapt, is_variable
from jaxvars.tracing.key_order import map_leaves


def from_equinox(module: Any, state: Any = None, *, filter: Any = None) -> EquinoxModule:  # noqa: A002 - as jax and equinox say
    """Make a Module of an equinox module: each of its arrays becomes a Variable.

    Args:
        module: whose arrays are copied, and which is not changed.
        state: the `eqx.nn.State` of a stateful one: `from_equinox(*eqx.nn.make_with_state(CNN)(key))`.
            When None, the state begins with what the layers begin with.
        filter: which arrays are trainable, those of floating dtypes only: a function of a leaf, or
            a tree of booleans and such functions, as for `eqx.partition`; `eqx.is_inexact_array`
            when None. The others are Variables, too, as is the state. What is no array stays.

    Returns:
        A Module to call like the equinox module. A method that takes a `state` is given it when
        the call has none, and then what it returns last becomes the state.

    Raises:
        InteropError: when it is not an equinox module, or the state is missing or of another one.

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> model = from_equinox(eqx.nn.MLP(2, 1, 8, 1, key=jax.random.key(0)))
    >>> list(model.named_variables)
    ['layers/0/bias', 'layers/0/weight', 'layers/1/bias', 'layers/1/weight']
    >>> jax.vmap(model)(jnp.ones((4, 2))).shape
    (4, 1)

    Differs from equinox: the model is no pytree. Give equinox's functions `model.value`.
    """
    eqx = sys.modules.get("equinox")  # where there is a module of equinox, it was imported
    if eqx is None or not isinstance(module, eqx.Module):
        kind = f"the class {module!r}" if isinstance(module, type) else f"a {type(module).__name__}"
        raise InteropError(
            f"from_equinox takes a module of equinox, and at {user_line()} it is given {kind}. "
            'Equinox is installed by: pip install "jaxvars[equinox]".'
        )
    state = _checked_state(eqx, module, state)
    chosen = eqx.filter(module, eqx.is_inexact_array if filter is None else filter)
    trained = {_name(path) for path, _ in jax.tree_util.tree_flatten_with_path(chosen)[0]}
    return EquinoxModule(_hold(module, lambda path: path in trained, state.get))


def to_equinox(model: EquinoxModule) -> Any:
    """Return the equinox module of a model, with the values of now; and its state if it has one.

    Args:
        model: made by `from_equinox`, or a part of one.

    Returns:
        A module of the same class; of a stateful model `(module, state)`, like
        `eqx.nn.make_with_state`. The module alone is `model.value`.

    Raises:
        InteropError: when it was not made by `from_equinox`.

    >>> import equinox as eqx, jax
    >>> linear = eqx.nn.Linear(2, 3, key=jax.random.key(0))
    >>> bool(eqx.tree_equal(to_equinox(from_equinox(linear)), linear))
    True
    """
    if not isinstance(model, EquinoxModule):
        raise InteropError(
            f"to_equinox takes what from_equinox made, not {type(model).__name__}. The values of "
            "any Module's variables are in interop.to_dict(model)."
        )
    module, state = model._split()
    return (module, state) if model._slots else module


@final
class EquinoxModule(Module):
    """An equinox module whose arrays are Variables: what `interop.from_equinox` makes.

    It has the module's attributes and methods; of a name that Modules have, too, the module's is
    `model["name"]`. Modules inside are such Modules; `model.layers[0].weight` is a Variable. What
    is not a Variable cannot be set: `view` gives another model with the same Variables.
    """

    _kept: Kept

    def __init__(self, tree: Any) -> None:
        parts = jax.tree.leaves(tree, is_leaf=_is_index_or_variable)
        state = {part.marker: part.init for part in parts if _is_index(part)}
        slots = jax.tree.leaves(list(state.values()), is_leaf=is_variable)
        vars(self)["_kept"] = Kept((VariableTree(tree), slots))
        taken = [x for x in vars(tree) if x in _KEPT or callable(getattr(EquinoxModule, x, None))]
        if taken:
            raise InteropError(
                f"{type(tree).__name__} has a field {taken[0]!r}, a name that the jaxvars Module "
                "around it needs for a method. Call the field something else."
            )
        vars(self).update({name: _wrap(value) for name, value in vars(tree).items()})

    # ------------------------------------------------------------ values
    @property
    def value(self) -> Any:
        """The equinox module with the values of now, read at one moment."""
        return self._split()[0]

    def assign(self, module: Any, state: Any = None) -> EquinoxModule:
        """Assign the arrays of an equinox module of the same structure, all of them or nothing.

        Args:
            module: such as `eqx.tree_deserialise_leaves(path, model.value)` returns.
            state: an `eqx.nn.State`; as it is when None.

        Raises:
            StateError: listing all that does not fit, or when the structure is another one.
        """
        state = self._split()[1] if state is None else state
        full = jax.tree.map(
            lambda x: _with_init(x, state.get(x)) if _is_index(x) else x, module, is_leaf=_is_index
        )
        self._tree.assign(full)
        return self

    def view(self, change: Callable[[Any], Any]) -> EquinoxModule:
        """Return a model of the same Variables, of a module that is made of this one.

        Args:
            change: a function that takes the module and returns a module, like
                `eqx.nn.inference_mode`. Arrays that it puts in become new Variables; it cannot
                compute with the Variables, which are in the module as opaque leaves.

        >>> import equinox as eqx
        >>> model = from_equinox(eqx.nn.Dropout(0.5))
        >>> model.view(eqx.nn.inference_mode).inference
        True
        """
        closed = jax.tree.map(Kept, self._tree.tree, is_leaf=is_variable)
        made = jax.tree.map(lambda x: x() if isinstance(x, Kept) else x, change(closed))
        return EquinoxModule(_hold(made, lambda _: True, lambda index: index.init))

    # ------------------------------------------------------------ calls
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module, and write back its state."""
        return self._call("__call__", *args, **kwargs)

    def with_state(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return `fn(module, state, *args)`, less the state that it returns last, which is kept.

        So is a stateful model mapped over examples; and so runs a function as equinox has it.

        Args:
            fn: takes the equinox module and its `eqx.nn.State`; returns `(..., new_state)`.
            *args: passed on.
            **kwargs: passed on.

        >>> import equinox as eqx, jax, jax.numpy as jnp
        >>> model = from_equinox(eqx.nn.BatchNorm(2, "batch", mode="batch"))
        >>> def mapped(module, state, xs):
        ...     run = jax.vmap(module, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
        ...     return run(xs, state)
        >>> model.with_state(mapped, jnp.ones((4, 2))).shape
        (4, 2)
        >>> int(model.batch_counter.init)
        1
        """
        module, state = self._split()
        old, structure = jax.tree.flatten(state)
        result = fn(module, state, *args, **kwargs)
        if not isinstance(result, tuple) or jax.tree.structure(result[-1:]) != jax.tree.structure(
            (jax.tree.unflatten(structure, old),)
        ):
            raise InteropError(
                f"What is called with the state of this {self._kind.__name__} at {user_line()} "
                f"must return (result, new_state); it returned {type(result).__name__}."
            )
        self._write(old, jax.tree.leaves(result[-1]))
        return result[0] if len(result) == 2 else result[:-1]

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        def run(module: Any, state: Any, *args: Any) -> Any:
            return getattr(module, method)(*args, state=state, **kwargs)

        if self._slots and _wants_state(getattr(self._tree.tree, method), args, kwargs):
            return self.with_state(run, *args)
        return getattr(self.value, method)(*args, **kwargs)

    def _write(self, old: list[Any], new: list[Any]) -> None:
        changed = [(v, y) for v, x, y in zip(self._slots, old, new, strict=True) if x is not y]
        try:
            if changed:
                VariableTree([v for v, _ in changed]).assign([y for _, y in changed])
        except ForeignTransformError as error:
            error.add_note(
                "Of an equinox module with state, map a function of both:\n"
                "    run = lambda module, state: jax.vmap(module, axis_name='batch', "
                "in_axes=(0, None), out_axes=(0, None))(xs, state)\n    model.with_state(run)"
            )
            raise

    # ------------------------------------------------------------ attributes
    @property
    def name(self) -> str:
        """What it is called: the equinox module's class, in small letters."""
        return self._kind.__name__.lower()

    @property
    def _tree(self) -> VariableTree:
        return self._kept()[0]

    @property
    def _slots(self) -> list[Variable]:
        return self._kept()[1]

    @property
    def _kind(self) -> type:
        return type(self._tree.tree)

    def _split(self) -> tuple[Any, Any]:
        """Return the module and its state, with the values of now."""
        import equinox as eqx

        full = self._tree.value
        return eqx.nn.delete_init_state(full) if self._slots else full, eqx.nn.State(full)

    def __getitem__(self, key: Any) -> Any:
        """Return an attribute of the module, by name, or what the module has at an index."""
        if not isinstance(key, str):
            return _wrap(self._tree.tree[key])
        return vars(self)[key] if key in vars(self) else self._find(key)

    def __getattr__(self, name: str) -> Any:
        # Only reached when there is no such attribute.
        if name == "inference" and sys._getframe(1).f_globals["__name__"].startswith("equinox."):
            raise InteropError(
                f"eqx.nn.inference_mode takes a module of equinox, at {user_line()} it is given "
                "the Module of one. Write model.view(eqx.nn.inference_mode)."
            )
        if "_kept" not in vars(self) or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
        return self._find(name)

    def _find(self, name: str) -> Any:
        found = inspect.getattr_static(self._kind, name, None)
        if found is None:
            raise AttributeError(
                f"Neither this model nor its {self._kind.__name__} has an attribute {name!r}; the "
                f"module has {sorted(vars(self._tree.tree))}."
            )
        if callable(getattr(self._kind, name)) and not isinstance(found, property):
            return functools.partial(self._call, name)
        return getattr(self.value, name)

    def __setattr__(self, name: str, value: Any, /) -> None:
        if vars(self).get(name, self) is not value:  # what model.bias += 1 sets is there
            raise AttributeError(
                f"A module of equinox never changes, and at {user_line()} its {name!r} is set. "
                f"Assign to a Variable, model.{name}.assign(value); or make another model of them: "
                f"model.view(lambda module: eqx.tree_at(lambda m: m.{name}, module, value))."
            )

    def __deepcopy__(self, memo: dict[int, Any]) -> EquinoxModule:
        return EquinoxModule(copy.deepcopy(self._tree, memo).tree)

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *dir(self._kind)})

    def __rich_repr__(self) -> Iterator[Any]:
        yield self._kind.__name__
        yield from ((name, value) for name, value in vars(self).items() if name not in _KEPT)


_KEPT = {"_kept", "_name"}


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
        return _with_init(leaf, made[leaf.marker])

    return jax.tree_util.tree_map_with_path(hold, module, is_leaf=_is_index_or_variable)


def _wrap(value: Any) -> Any:
    """Return a value with a Module for each module of equinox in it."""
    base = sys.modules["equinox"].Module
    return map_leaves(
        lambda x: EquinoxModule(x) if isinstance(x, base) else x,
        value,
        is_leaf=lambda x: isinstance(x, base | Variable),
    )


def _checked_state(eqx: Any, module: Any, state: Any) -> Any:
    try:
        state = eqx.nn.State(module) if state is None else state
        own = jax.tree.leaves(state.substate(module))
    except (ValueError, KeyError, AttributeError):
        own = None
    if own is None or len(own) != len(jax.tree.leaves(state)):
        raise InteropError(
            f"The {type(module).__name__} given to from_equinox at {user_line()} has its state in "
            "the eqx.nn.State that was made with it: from_equinox(module, state)."
        )
    return state


def _wants_state(method: Any, args: Any, kwargs: Any) -> bool:
    """Return whether a method takes a `state`, which is not among the arguments."""
    try:
        return "state" not in inspect.signature(method).bind_partial(
            *args, **kwargs
        ).arguments and ("state" in inspect.signature(method).parameters)
    except (TypeError, ValueError):  # not its arguments, or not a function of Python
        return False


def _with_init(index: Any, init: Any) -> Any:
    """Return a StateIndex with the value of its state in it; equinox makes its others so, too."""
    made = type(index)(init)
    object.__setattr__(made, "marker", index.marker)
    return made


def _is_index(value: object) -> bool:
    return isinstance(value, sys.modules["equinox"].nn.StateIndex)


def _is_index_or_variable(value: object) -> bool:
    return _is_index(value) or is_variable(value)


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")

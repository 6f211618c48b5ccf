"""Which programs of an object are saved: what its compiled functions were traced for, or are now.

Rules this file keeps:
- what was traced already is not traced again;
- an unknown dimension is the same symbol in each save, so that saving again traces nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, final

import jax

from jaxvars.compiler.concrete_function import ConcreteFunction
from jaxvars.compiler.decorator import compile as compiled
from jaxvars.compiler.executable import Executable
from jaxvars.compiler.function import BoundFunction, Function
from jaxvars.compiler.signature import Itself, Signature, name_of
from jaxvars.core.frame import Owner
from jaxvars.errors import SavedError, line_of
from jaxvars.export.forms import CALL
from jaxvars.export.loaded import Loaded, SavedFunction
from jaxvars.modules.module import Module
from jaxvars.objects.key_order import ordered_like
from jaxvars.symbolic.specialize import symbol
from jaxvars.tensors.spec import TensorSpec

_OF_OPEN_SIZES = ("OpenSize", "symbolic", "polymorphism", "non-constant", "process_primitive")
"""What an error says that is about one: Python's, ours, JAX's (the last of `for row in x`)."""


class Known(NamedTuple):
    """A program of a function, and what takes its calls apart."""

    binder: Signature
    entry: Executable


@final
class Found(NamedTuple):
    """The programs of each function that is saved, and the names of unknown functions."""

    programs: dict[str, list[Known]]
    unsaved: list[str]


def programs_of(root: Any, signatures: Any) -> Found:
    """Return what `jv.export.save` saves of an object; raise SavedError if it is unknown."""
    root = _unwrap(root)
    if signatures is None:
        return _find_known(root)
    if not isinstance(signatures, Mapping):
        signatures = {CALL: signatures}
    return Found({name: _find_given(root, name, what) for name, what in signatures.items()}, [])


def _find_known(root: Any) -> Found:
    functions = _list_functions(root)
    programs = {name: _list_traces(function) for name, function in functions.items()}
    found = {name: some for name, some in programs.items() if some}
    if not found:
        raise SavedError(_describe_unknown(root, list(functions)))
    return Found(found, [name for name in functions if name not in found])


def _unwrap(what: Any) -> Any:
    return what.function if isinstance(what, SavedFunction) else what


def _list_functions(root: Any) -> dict[str, Any]:
    """Return the compiled functions of an object by name: its methods, or it alone."""
    if isinstance(root, Function | BoundFunction | ConcreteFunction):
        return {CALL: root}
    if isinstance(root, Loaded):
        return {name: saved.function for name, saved in root.signatures.items()}
    if not isinstance(root, Module) and callable(root):
        return {}
    names = [name for name in dir(type(root)) if name == CALL or not name.startswith("_")]
    methods = [n for n in names if isinstance(inspect.getattr_static(type(root), n), Function)]
    own = getattr(root, "__dict__", {})
    attributes = [n for n, x in own.items() if isinstance(x, Function | BoundFunction)]
    return {n: getattr(root, n) for n in [*methods, *attributes] if n == CALL or n[0] != "_"}


def _list_traces(what: Any) -> list[Known]:
    """Return what is known of a function: its input signature, or what it was traced for."""
    if isinstance(what, ConcreteFunction):
        bind: Any = what._bind
        return [Known(bind.__self__, what._executable)]
    fn, given = _take_apart(what)
    if fn._signature.specs is not None:
        return [trace(what, (), {})]
    return traces_of(fn, given)


def _take_apart(
    what: Function[..., Any] | BoundFunction[..., Any],
) -> tuple[Function[..., Any], tuple[Any, ...]]:
    if isinstance(what, BoundFunction):
        return what.function, (what.__self__,)
    return what, ()


def traces_of(fn: Function[..., Any], given: tuple[Any, ...]) -> list[Known]:
    """Return what a function was traced for, with some objects as its first arguments."""
    wanted = [id(x) for x in given]

    def begins_with_them(entry: Executable) -> bool:
        first = entry.key.leaves[: len(given)]
        return [leaf.number for leaf in first if isinstance(leaf, Itself)] == wanted

    return [
        Known(fn._signature, entry)
        for entry in list(fn._entries.values())
        if not entry.is_stale and fn._flags.hold(entry.key) and begins_with_them(entry)
    ]


# ---------------------------------------------------------------- signatures that are given
def _find_given(root: Any, name: str, what: Any) -> list[Known]:
    what = _unwrap(what)
    if isinstance(what, list):
        return [known for one in what for known in _find_given(root, name, one)]
    if isinstance(what, ConcreteFunction):
        return _list_traces(what)
    if isinstance(what, Function | BoundFunction):
        return _list_traces(what) or _refuse_unknown(name, what)
    function = _find_function(root, name)
    if isinstance(what, Mapping):
        return [trace(function, (), dict(what))]
    return [trace(function, what if isinstance(what, tuple) else (what,), {})]


def _find_function(root: Any, name: str) -> Any:
    functions = _list_functions(root)
    if name in functions:
        return functions[name]
    alone = name == CALL and callable(root) and not isinstance(root, Module)
    found = root if alone else getattr(root, name, None)
    if not callable(found):
        raise SavedError(
            f"This {type(root).__name__} has no function {name!r}: signatures has the "
            f"names of methods, like {sorted(functions) or [CALL]}, or functions themselves, as "
            'signatures={"' + name + '": fn.trace(...)}.'
        )
    return compiled(found)


def _refuse_unknown(name: str, what: Any) -> list[Known]:
    raise SavedError(
        f"{what!r} has no signature to be saved as {name!r}: it was never called. Say which, "
        f'signatures={{"{name}": fn.trace(jv.TensorSpec(...))}}, or call it first.'
    )


def trace(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Known:
    fn, given = _take_apart(function)
    numbers = iter(range(1, 1000))
    whole = fn._signature.completed((*given, *args)), kwargs
    is_leaf = lambda x: isinstance(x, TensorSpec | Owner | Module)  # noqa: E731
    specs = jax.tree.map(lambda x: _spec(x, numbers), whole, is_leaf=is_leaf)
    args, kwargs = ordered_like(whole, specs)
    call = fn._signature.bind(args, kwargs)
    try:
        return Known(fn._signature, fn._executable(call))
    except Exception as error:
        what = (str(error).splitlines() or [""])[0]
        known = isinstance(error, jax.errors.InconclusiveDimensionOperation)
        if not known and not any(word in what for word in _OF_OPEN_SIZES):
            raise
        line = line_of(error)
        what = what if line in what else f"{what.rstrip('.')} ({line})."
        raise SavedError(
            f"{fn._signature.name} cannot be traced with an unknown dimension: {what} What "
            "depends on a "
            "size must hold for all of them; else save the sizes apart, as in "
            "signatures=[(jv.TensorSpec((1, 3)),), (jv.TensorSpec((32, 3)),)]."
        ) from error


def _spec(x: Any, numbers: Any) -> Any:
    if not isinstance(x, TensorSpec):
        return x
    sizes = tuple(
        size if size is not None else symbol("batch" if axis == 0 else f"size_{next(numbers)}")
        for axis, size in enumerate(x.shape)
    )
    return jax.ShapeDtypeStruct(sizes, x.dtype)


def _describe_unknown(root: Any, names: Sequence[str]) -> str:
    if isinstance(root, str | PathLike):
        return f"What is saved comes first, then the path: jv.export.save(fn, {str(root)!r})."
    if not names and (isinstance(root, Module) or not callable(root)):
        return (
            f"{type(root).__name__} has no compiled method to save. Decorate one with @jv.compile, "
            'or say what to save: signatures={"__call__": (jv.TensorSpec((None, 3)),)}. '
            "Variables alone are saved by jv.checkpoint."
        )
    is_one = not isinstance(root, Module)
    what = name_of(root) if is_one else f"{type(root).__name__} ({', '.join(names)})"
    return (
        f"It is not known what arguments {what} takes: it has no input_signature, and was not "
        'called yet. Call it first, or say: signatures={"__call__": (jv.TensorSpec((None, 3)),)}.'
    )

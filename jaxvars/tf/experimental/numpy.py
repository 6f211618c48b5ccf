"""`tf.experimental.numpy`: the functions of `jax.numpy`, with Tensors as results.

    import jaxvars.tf.experimental.numpy as tnp

    tnp.sum(tnp.ones((2, 3)), axis=0)

Derivatives where there are several, as of `abs` at 0 or `maximum` of equal numbers, are JAX's, and
not those of `tf.abs`. Operands of two types get the type that NumPy gives them, and integers become
float64 where there is a function of floats; all other types are those of `jax.numpy`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.display.text import did_you_mean
from jaxvars.tf import nest
from jaxvars.tf.experimental import numpy_random as _numpy_random
from jaxvars.tf.experimental.numpy_semantics import (
    experimental_enable_numpy_behavior as experimental_enable_numpy_behavior,
)
from jaxvars.tf.experimental.numpy_semantics import plain, promoted_type
from jaxvars.tf.listing import lister
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.tensor import Tensor, wrap

ndarray = Tensor
random = _numpy_random
newaxis = None

_FLOATING = frozenset({
    "divide", "true_divide", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh",
    "arcsinh", "arccosh", "arctanh", "mean", "average", "var", "std", "hypot", "cbrt",
    "logaddexp", "nanmean",
})  # fmt: skip
"""Those that make float64 of integers and bools."""

_PROMOTED = _FLOATING | {
    "add", "subtract", "multiply", "floor_divide", "mod", "remainder", "power", "maximum",
    "minimum", "where", "concatenate", "stack", "vstack", "hstack", "dot", "matmul", "inner",
    "outer", "tensordot", "equal", "less", "greater", "append", "vdot", "kron", "cross", "einsum",
    "clip",
}  # fmt: skip
"""Those whose operands get the type that NumPy gives them."""

_ARRAYS = frozenset({
    "a", "a1", "a2", "A", "ar", "ar1", "ar2", "args", "arr", "array", "ary", "arys", "b",
    "condition", "element", "fill_value", "fp", "indices", "m", "max", "min", "object", "operands",
    "p", "prototype", "q", "sample", "start", "stop", "test_elements", "u", "v", "val", "values",
    "weights", "x", "x1", "x2", "xi", "xp", "y", "z",
})  # fmt: skip
"""Parameters for which a list is an array; `shape`, `axis` and the like stay lists."""

_ARRAY_LISTS = frozenset({"arrays", "choicelist", "condlist", "tup"})
"""Parameters that are lists of arrays."""

_MADE: dict[str, Any] = {
    "promote_types": lambda type1, type2: promoted_type(plain(type1), plain(type2)),
    "result_type": lambda *given: as_dtype(promoted_type(*map(_type_of, given))),
}


def __getattr__(name: str) -> Any:
    if name in _MADE:
        return _MADE[name]
    if name.startswith("_"):
        raise AttributeError(name)
    scalar = getattr(np, name, None)
    if isinstance(scalar, type) and issubclass(scalar, np.generic):
        return scalar
    found = getattr(jnp, name, None)
    if found is None:
        hint = did_you_mean(name, dir(jnp))
        raise AttributeError(f"tf.experimental.numpy has no attribute {name!r}.{hint}")
    if callable(found):
        _MADE[name] = found = _with_tensors(found, name)
    return found


def _with_tensors(func: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function of `jax.numpy` that takes and gives Tensors."""
    names = _names_of(func)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        listed, named = nest.map_structure(plain, (list(args), kwargs))
        positional = [_of_list(x, names(i)) for i, x in enumerate(listed)]
        given = positional, {key: _of_list(x, key) for key, x in named.items()}
        if name in _PROMOTED:
            given = _of_one_type(given, name in _FLOATING)
        return wrap(func(*given[0], **given[1]))

    return wrapped


def _names_of(func: Callable[..., Any]) -> Callable[[int], str]:
    """Return what gives the name of a positional argument; "" where it is not known."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):  # a class
        return lambda number: ""
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    many = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
    return lambda number: plain[number] if number < len(plain) else many


def _of_list(value: Any, name: str) -> Any:
    """Return the array of a list that is given for one, or the arrays of a list of them.

    Python's numbers become an array of NumPy's: they are as wide as what they meet.
    """
    if not isinstance(value, list | tuple):
        return value
    if name in _ARRAY_LISTS:
        return [_of_list(part, "a") for part in value]
    if name not in _ARRAYS:
        return value
    has_arrays = any(isinstance(x, jax.Array) for x in nest.flatten(value))
    return jnp.asarray(value) if has_arrays else np.asarray(value)


def _of_one_type(given: Any, floating: bool) -> Any:
    """Return arguments whose arrays have the one type that NumPy gives them."""
    flat = nest.flatten(given)
    known = {x.dtype for x in flat if isinstance(x, jax.Array)} - {np.dtype(bool)}
    listed = {x.dtype for x in flat if isinstance(x, np.ndarray)}
    types = [*known, *(x.type(0).item() for x in listed)] if known else list(listed)
    if not types and not floating:
        return given
    common = promoted_type(*types, *([1.0] if floating else []))

    def of_type(x: Any) -> Any:
        is_number = isinstance(x, jax.Array | np.ndarray) and (floating or x.dtype != bool)
        return x.astype(common) if is_number else x

    return nest.map_structure(of_type, given)


def _type_of(value: Any) -> Any:
    found = plain(value)
    return found.dtype if isinstance(found, jax.Array) else found


__dir__ = lister(__name__)

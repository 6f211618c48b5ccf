"""`tf.experimental.numpy`: NumPy's names, those of `jax.numpy`, with Tensors as results.

    import jaxvars.tf.experimental.numpy as tnp

    tnp.sum(tnp.ones((2, 3)), axis=0)

Rules this file keeps:
- each function is that of `jax.numpy`, which takes and gives Tensors: slopes where there are
  several, as of `abs` at 0 or `maximum` of equal numbers, are JAX's, and not those of `tf.abs`;
- bfloat16 stays so with a Python number, and `angle` and `linspace(dtype=)` have the type that
  NumPy gives them, which they have not in TensorFlow;
- operands of two types are promoted as NumPy does it, and integers become float64 where it does.
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
from jaxvars.tf.experimental.numpy_semantics import promoted_type
from jaxvars.tf.listing import lister
from jaxvars.tf.tensors.dtypes import DType, as_dtype
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.tensor import Tensor, TensorLike, wrap

ndarray = Tensor
random = _numpy_random
newaxis = None

_PROMOTED = frozenset({
    "add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "mod", "remainder",
    "power", "maximum", "minimum", "where", "concatenate", "stack", "vstack", "hstack", "dot",
    "matmul", "inner", "outer", "tensordot", "equal", "less", "greater", "append", "hypot",
    "vdot", "kron", "cross", "einsum", "clip",
})  # fmt: skip
"""Those whose operands get the type that NumPy gives them."""

_FLOATING = frozenset({
    "divide", "true_divide", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh",
    "arcsinh", "arccosh", "arctanh", "mean", "average", "var", "std", "hypot", "cbrt",
    "logaddexp", "nanmean",
})  # fmt: skip
"""Those that make float64 of integers and bools."""

_SAME = {"fabs": "abs", "fix": "trunc", "float_power": "power"}
"""Those that are others in TensorFlow."""

_TYPES = {"float_": np.float64, "int_": np.int64, "string_": np.bytes_, "unicode_": np.str_}

_RESULTS: dict[str, Callable[[Any], Any]] = {"shape": TensorShape, "size": np.int64}
"""What the results of some are."""

_ARRAYS = frozenset({
    "a", "a1", "a2", "A", "ar", "ar1", "ar2", "args", "arr", "array", "ary", "arys", "b",
    "condition", "element", "fill_value", "fp", "indices", "m", "max", "min", "object", "operands",
    "p", "prototype", "q", "sample", "start", "stop", "test_elements", "u", "v", "val", "values",
    "weights", "x", "x1", "x2", "xi", "xp", "y", "z",
})  # fmt: skip
"""Parameters for which a list is an array; `shape`, `axis` and the like stay lists."""

_TYPED: dict[str, Any] = {"values": int | float | complex | np.generic}
"""What has a type where a parameter is called so, as that of `append`."""

_ARRAY_LISTS = frozenset({"arrays", "choicelist", "condlist", "tup"})
"""Parameters that are lists of arrays."""

_MADE: dict[str, Any] = {
    "promote_types": lambda type1, type2: promoted_type(_plain(type1), _plain(type2)),
    "result_type": lambda *given: as_dtype(promoted_type(*map(_type_of, given))),
}


def __getattr__(name: str) -> Any:
    if name in _MADE:
        return _MADE[name]
    if name.startswith("_"):
        raise AttributeError(name)
    found = _TYPES.get(name) or getattr(np, name, None)
    if isinstance(found, type) and issubclass(found, np.generic):
        return found
    found = getattr(jnp, _SAME.get(name, name), None)
    if found is None:
        hint = did_you_mean(name, dir(jnp))
        raise AttributeError(
            f"tf.experimental.numpy has no attribute {name!r}.{hint and ' ' + hint}"
        )
    if callable(found):
        _MADE[name] = found = _with_tensors(found, name)
    return found


def _with_tensors(func: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function of `jax.numpy` that takes and gives Tensors."""
    names = _names_of(func)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = nest.map_structure(_plain, (list(args), kwargs))
        others = _types_in(given) if name in _PROMOTED else set()
        given = (
            [_of_list(x, names(i), others) for i, x in enumerate(given[0])],
            {key: _of_list(x, key, others) for key, x in given[1].items()},
        )
        if name in _PROMOTED:
            given = _of_one_type(given)
        if name in _CONVERTED:
            given = nest.map_structure(_CONVERTED[name], given)
        if name == "tri" and len(args) < 4:
            given[1].setdefault("dtype", np.float64)
        result = func(*given[0], **given[1])
        return _RESULTS[name](result) if name in _RESULTS else wrap(result)

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


def _of_list(value: Any, name: str, others: set[Any]) -> Any:
    """Return the array of a list that is given for one, or the arrays of a list of them.

    Its numbers are as wide as arrays of some other types need.
    """
    if name in _ARRAYS and isinstance(value, _TYPED.get(name, np.generic)):
        return np.asarray(value)  # its type counts, a Python number's does not
    if not isinstance(value, list | tuple):
        return value
    if name in _ARRAY_LISTS:
        return [_of_list(part, "a", others) for part in value]
    if name not in _ARRAYS:
        return value
    if _types_in(value) or not others:
        return jnp.asarray(value)
    made = np.asarray(value)
    if made.dtype.kind not in "iufc":
        return made
    return made.astype(promoted_type(*others, made.dtype.type(0).item()))


def _types_in(given: Any) -> set[Any]:
    """Return the types of arrays in a structure, apart from bool."""
    found = {x.dtype for x in nest.flatten(given) if isinstance(x, jax.Array | np.ndarray)}
    return found - {np.dtype(bool)}


def _of_one_type(given: Any) -> Any:
    dtypes = _types_in(given)
    if len(dtypes) < 2:
        return given
    common = promoted_type(*dtypes)
    return nest.map_structure(lambda x: _of_type(x, common), given)


def _to(x: Any, wide: Any, kinds: str, narrow: Any = None) -> Any:
    """Return an array of some kinds in another type: of one or two bytes in a narrow one."""
    if not isinstance(x, jax.Array | np.ndarray) or x.dtype.kind not in kinds:
        return x
    return x.astype(narrow if narrow and x.dtype.kind != "b" and x.dtype.itemsize < 4 else wide)


_CONVERTED: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_FLOATING, lambda x: _to(x, np.float64, "iub")),
    **dict.fromkeys(["divide", "true_divide"], lambda x: _to(x, np.float64, "iub", np.float32)),
    **dict.fromkeys(["cumsum", "cumprod"], lambda x: _to(x, np.int64, "iub")),
}
"""What becomes of the arguments of some."""


def _of_type(x: Any, dtype: Any) -> Any:
    is_number = isinstance(x, jax.Array | np.ndarray) and x.dtype != bool
    return x.astype(dtype) if is_number else x


def _plain(value: Any) -> Any:
    if isinstance(value, TensorLike):
        return jnp.asarray(value)
    return value.dtype if isinstance(value, DType) else value


def _type_of(value: Any) -> Any:
    plain = _plain(value)
    return plain.dtype if isinstance(plain, jax.Array | np.ndarray | np.generic) else plain


__dir__ = lister(__name__)

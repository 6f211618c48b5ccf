"""Forms: what the arguments and results of a saved program look like, as data.

A form is lists, tuples, dicts, named tuples and None, with a `Tensor`, `Static`, `Strings` or
`Baked` in place of each leaf. It is written as JSON, printed as a signature, and compared with the
arguments of a call.

Rules this file keeps:
- nothing of a file is run: a named tuple is made from the names of its fields;
- what a file cannot hold is refused when it is saved, with the name of the argument;
- arguments are converted as `input_signature` does it, or refused; integers keep their value.
"""

from __future__ import annotations

import base64
import functools
import math
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.errors import DtypeError, NotATensorError, SavedError
from jaxvars.objects.identity import exact, held
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.tensor import array_of, is_weak, to_tensor
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

Form: TypeAlias = Any
Json: TypeAlias = dict[str, Any]  # of the manifest, as JSON has them
Size: TypeAlias = int | str

CALL = "__call__"
"""The name of the function that is the object itself."""

STATICS = (bool, int, float, str)
"""Types of which a file holds the values of static arguments."""


@final
@dataclass(frozen=True)
class Tensor:
    """An array: which one, its sizes (a name for one that may differ), its dtype by name.

    A weak dtype, that of a Python number, gives way to others.
    """

    index: int
    shape: tuple[Size, ...]
    dtype: str
    weak: bool = False

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@final
@dataclass(frozen=True)
class Static:
    """A Python value that is part of the program."""

    value: Any

    def __str__(self) -> str:
        return repr(self.value)


@final
@dataclass(frozen=True)
class Strings:
    """An array of strings, as bytes, that the program returns."""

    values: tuple[bytes, ...]
    shape: tuple[int, ...]
    dtype = "string"

    def __str__(self) -> str:
        return f"string[{','.join(map(str, self.shape))}]"


@final
@dataclass(frozen=True)
class Baked:
    """An object that is part of the program, and cannot be given to it any more."""

    kind: str


LEAVES = (Tensor, Static, Strings, Baked)


def is_named(value: object) -> bool:
    """Return whether a value is a named tuple."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def leaves_of(form: Form) -> Iterator[Any]:
    """Yield the leaves of a form."""
    if isinstance(form, LEAVES):
        yield form
    elif form is not None:
        for child in form.values() if isinstance(form, Mapping) else form:
            yield from leaves_of(child)


@functools.cache
def named_tuple(kind: str, fields: tuple[str, ...]) -> Any:
    """Return the class of named tuples with these fields."""
    make: Any = namedtuple
    return make(kind, fields)


# ---------------------------------------------------------------- as JSON
def to_json(form: Form, what: str) -> Any:
    """Return a form as JSON's; SavedError, about `what`, of something no file can hold."""
    kind: Any = type(form)
    if form is None:
        return None
    if kind is Tensor:
        weak = {"weak": True} if form.weak else {}
        return {"tensor": form.index, "shape": list(form.shape), "dtype": form.dtype} | weak
    if kind is Static:
        return {"static": form.value}
    if kind is Strings:
        words = [base64.b64encode(word).decode() for word in form.values]
        return {"strings": words, "shape": list(form.shape)}
    if is_named(form):
        pairs = zip(form._fields, form, strict=True)
        return {"named": kind.__name__, "items": _items(pairs, what)}
    if kind in (list, tuple):
        return {kind.__name__: [to_json(child, what) for child in form]}
    if isinstance(form, dict) and all(type(key) in (str, int) for key in form):
        return {"ordered" if kind is OrderedDict else "dict": _items(form.items(), what)}
    found = form.kind if isinstance(form, Baked) else kind.__name__
    raise SavedError(
        f"{what} holds a {found}, which a file cannot hold: there are arrays, numbers, strings "
        "and None, in lists, tuples, named tuples, and dicts with strings or numbers as keys."
    )


def _items(pairs: Any, what: str) -> list[list[Any]]:
    return [[key, to_json(child, what)] for key, child in pairs]


def from_json(data: Any) -> Form:
    """Return the form that was written; raise ValueError when it is none."""
    if data is None:
        return None
    for name, read in _READERS.items():
        if isinstance(data, dict) and name in data:
            return read(data)
    raise ValueError("no form")


def _tensor(data: Any) -> Tensor:
    index, shape, dtype = data["tensor"], data["shape"], data["dtype"]
    sizes = all(type(x) is str or (type(x) is int and x >= 0) for x in shape)
    if type(index) is not int or index < 0 or not sizes or type(dtype) is not str:
        raise ValueError("no tensor")
    return Tensor(index, tuple(shape), dtype, data.get("weak") is True)


def _static(data: Any) -> Static:
    if not isinstance(data["static"], STATICS):
        raise ValueError("no constant")
    return Static(data["static"])


def _strings(data: Any) -> Strings:
    values, shape = tuple(map(base64.b64decode, data["strings"])), tuple(data["shape"])
    if not all(type(x) is int and x >= 0 for x in shape) or math.prod(shape) != len(values):
        raise ValueError("no strings")
    return Strings(values, shape)


def _named(data: Any) -> Any:
    pairs = _pairs(data.get("items", ()))
    kind = named_tuple(data["named"], tuple(key for key, _ in pairs))
    return kind(*(child for _, child in pairs))


def _pairs(items: Any) -> list[tuple[Any, Form]]:
    if any(type(key) not in (str, int) for key, _ in items):
        raise ValueError("no key")
    return [(key, from_json(child)) for key, child in items]


_READERS: dict[str, Callable[[Any], Form]] = {
    "tensor": _tensor,
    "static": _static,
    "strings": _strings,
    "named": _named,
    "list": lambda data: list(map(from_json, data["list"])),
    "tuple": lambda data: tuple(map(from_json, data["tuple"])),
    "dict": lambda data: dict(_pairs(data["dict"])),
    "ordered": lambda data: OrderedDict(_pairs(data["ordered"])),
}


# ---------------------------------------------------------------- as a string
def describe(form: Form) -> str:
    """Return a form as a reader would write it.

    >>> describe({"x": Tensor(0, ("batch", 3), "float32"), "training": Static(True)})
    "{'x': float32[batch,3], 'training': True}"
    """
    if isinstance(form, Mapping):
        return f"{{{', '.join(f'{key!r}: {describe(child)}' for key, child in form.items())}}}"
    if is_named(form):
        pairs = zip(form._fields, form, strict=True)
        return f"{type(form).__name__}({', '.join(f'{k}={describe(x)}' for k, x in pairs)})"
    if isinstance(form, list):
        return f"[{', '.join(map(describe, form))}]"
    if isinstance(form, tuple):
        return f"({', '.join(map(describe, form))}{',' if len(form) == 1 else ''})"
    return str(form)


def fill(form: Form, values: Sequence[Any]) -> Any:
    """Return what a form describes, with these arrays in it."""
    kind: Any = type(form)
    if isinstance(form, Tensor):
        return values[form.index]
    if isinstance(form, Static):
        return form.value
    if isinstance(form, Strings):
        return np.array(form.values, object).reshape(form.shape)
    if form is None:
        return None
    if isinstance(form, Mapping):
        return kind((key, fill(child, values)) for key, child in form.items())
    children = [fill(child, values) for child in form]
    return kind(*children) if is_named(form) else kind(children)


# ---------------------------------------------------------------- the arguments of a call
@final
class Mismatch(Exception):  # noqa: N818 - a signal between us, not an error
    """Arguments that do not have a form, and why."""


def fit(form: Form, value: Any, closeness: int) -> list[Array]:
    """Return the arrays among arguments, a dict by name, in order; else raise Mismatch.

    With a `closeness` of 0, arrays and numbers of the very dtype are taken, of 1 those that JAX
    makes that dtype of, of 2 those of dtypes that it holds, of 3 all whose values it holds.
    """
    return _Fitting(closeness).all(form, value)


@final
class _Fitting:
    """One comparison of arguments with a form."""

    def __init__(self, closeness: int) -> None:
        self._exactly = closeness == 0
        self._closeness = closeness
        self._found: dict[int, Array] = {}
        self._sizes: dict[str, tuple[int, str]] = {}

    def all(self, form: Form, value: Any) -> list[Array]:
        for name, child in form.items():
            self._fit(child, value[name], name)
        return [self._found[i] for i in sorted(self._found)]

    def _fit(self, form: Form, value: Any, path: str) -> None:
        if isinstance(form, Tensor):
            self._found[form.index] = self._array(form, value, path)
        elif isinstance(form, Static):
            if exact(value, held) != exact(form.value):
                raise Mismatch(f"{path} is {_show(value)}, not {form.value!r}")
        elif form is None:
            if value is not None:
                raise Mismatch(f"{path} is {_show(value)}, not None")
        else:
            for child, part, name in _parts(form, value, path):
                self._fit(child, part, name)

    def _array(self, form: Tensor, value: Any, path: str) -> Array:
        value = unwrap(value)
        if self._exactly and _type_of(value) != (form.dtype, form.weak):
            raise Mismatch(f"{path} is {_show(value)}, not {form}")
        array = value
        if not (self._exactly and hasattr(value, "dtype")):
            array = _convert(form, value, path, self._closeness)
        if self._exactly and form.weak:
            array = jnp.asarray(value)  # still weak
        if len(array.shape) != len(form.shape):
            raise Mismatch(f"{path} is {_show(array)}, not {form}")
        for axis, (want, have) in enumerate(zip(form.shape, array.shape, strict=True)):
            self._check_size(want, have, f"{path}.shape[{axis}]")
        return array

    def _check_size(self, want: Size, have: Any, path: str) -> None:
        if isinstance(want, int):
            if have != want:
                raise Mismatch(f"{path} is {have}, not {want}")
        elif want.isidentifier():  # of others, like "2*n", JAX takes care
            if isinstance(have, int) and have < 1:
                raise Mismatch(f"{path} is {have}, and must be 1 or more")
            known, where = self._sizes.setdefault(want, (have, path))
            if known != have:
                raise Mismatch(f"{path} is {have}, but {where} is {known}, and both are {want}")


def _keys(mapping: Mapping[Any, Any]) -> set[Hashable]:
    return {exact(key, held) for key in mapping}


def _parts(form: Form, value: Any, path: str) -> list[tuple[Form, Any, str]]:
    """Return the parts of a form, of a value, and what they are called."""
    if isinstance(form, Mapping):
        if not isinstance(value, Mapping) or _keys(value) != _keys(form):
            raise Mismatch(f"{path} is {_show(value)}, not a dict of {list(form)}")
        if OrderedDict in (type(form), type(value)) and list(value) != list(form):
            raise Mismatch(f"{path} is {_show(value)}, in another order than {list(form)}")
        return [(child, value[key], f"{path}[{key!r}]") for key, child in form.items()]
    if is_named(form):
        if not is_named(value) or value._fields != form._fields:
            raise Mismatch(f"{path} is {_show(value)}, not a named tuple of {form._fields}")
        names = [f"{path}.{field}" for field in form._fields]
    else:
        kind = list if isinstance(form, list) else tuple
        if not isinstance(value, kind) or is_named(value) or len(value) != len(form):
            raise Mismatch(f"{path} is {_show(value)}, not a {kind.__name__} of {len(form)}")
        names = [f"{path}[{i}]" for i in range(len(form))]
    return list(zip(form, value, names, strict=True))


def _convert(form: Tensor, value: Any, path: str, closeness: int) -> Array:
    if value is None or isinstance(value, Mapping):
        raise Mismatch(f"{path} is {_show(value)}, not {form}")
    if form.dtype.startswith("key<"):
        if str(getattr(value, "dtype", None)) != form.dtype:
            raise Mismatch(f"{path} is {_show(value)}, not {form}")
        return value
    try:
        given = array_of(value, path)
        if not _is_close(given, form.dtype, closeness):
            raise Mismatch(f"{path} is {_show(value)}, not {form}")
        array = to_tensor(given, form.dtype, what=path)
    except (NotATensorError, DtypeError) as error:
        raise Mismatch(str(error).rstrip(".")) from None
    if jnp.issubdtype(given.dtype, jnp.integer):
        _check_integers(given, array.dtype, path)
    return array


def _is_close(given: Value, dtype: str, closeness: int) -> bool:
    """Return whether JAX gives an array a dtype (1), or one that the dtype holds (2)."""
    if closeness not in (1, 2) or getattr(given.dtype, "kind", "O") in "OSUT":
        return True
    mine: Any = jax.dtypes.canonicalize_dtype(given.dtype)
    if closeness == 1:
        return str(mine) == dtype
    want = jnp.dtype(dtype)
    return np.can_cast(mine, want) and (mine.kind == "c") == (want.kind == "c")


def _check_integers(given: Value, dtype: Any, path: str) -> None:
    """Raise Mismatch unless a dtype holds integers as they are."""
    mine: Any = jax.dtypes.canonicalize_dtype(given.dtype)
    if context.is_tracer(given):
        if not _holds_all(dtype, mine):
            cure = f"Convert it where it is known to fit, with .astype({str(dtype)!r})"
            raise Mismatch(f"{path} is {mine}, and {dtype} may not hold it. {cure}")
        return
    numbers: Any = np.asarray(given)
    for want in (mine, dtype):
        with np.errstate(all="ignore"):
            lost = numbers[numbers.astype(want).real.astype(numbers.dtype) != numbers]
        if lost.size:
            of_jax = "" if mine == given.dtype else f" (JAX makes {mine} of {given.dtype})"
            raise Mismatch(f"{path} holds {lost[0]}, which {want} cannot hold{of_jax}")


def _holds_all(dtype: Any, other: Any) -> bool:
    """Return whether a dtype holds all integers of another one; floats round, and hold them."""
    if not jnp.issubdtype(dtype, jnp.integer):
        return True
    mine, its = jnp.iinfo(dtype), jnp.iinfo(other)
    return mine.min <= its.min and its.max <= mine.max


def _type_of(value: Any) -> tuple[str, bool] | None:
    """Return the dtype of a value, and whether it is weak; None if it has none."""
    if type(value) in (int, float, complex):
        return str(jax.dtypes.canonicalize_dtype(type(value))), True
    dtype = getattr(value, "dtype", None)
    return None if dtype is None else (str(dtype), is_weak(value))


def _show(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, Mapping):
        return f"a dict of {list(value)}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return repr(value) if isinstance(value, (*STATICS, type(None))) else f"a {type(value).__name__}"

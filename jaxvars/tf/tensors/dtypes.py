"""`DType`: the types of elements, one object each, which equals its name and the type of NumPy."""

from __future__ import annotations

from typing import Any, NoReturn, final

import jax
import ml_dtypes
import numpy as np
from jax.extend.random import define_prng_impl

from jaxvars.objects.identity import told_by_pickle
from jaxvars.tensors.dtypes import as_dtype as _core_dtype
from jaxvars.tensors.dtypes import narrowed
from jaxvars.tensors.dtypes import string as _text
from jaxvars.tf.attributes import getter
from jaxvars.tf.messages import TYPES

_ALIASES = {"half": "float16", "float": "float32", "double": "float64"}
_NARROW = {"int64": "int32", "uint64": "uint32"}


@final
@told_by_pickle
class DType:
    """The type of a tensor's elements.

    Attributes:
        name: like "float32".
        dtype: the NumPy dtype; JAX and NumPy look for this attribute.

    >>> float32, str(float32), float32 == "float32", float32 == np.float32
    (tf.float32, "<dtype: 'float32'>", True, True)
    >>> np.zeros(2, float32).dtype
    dtype('float32')

    Differs from TensorFlow: `dtype` is there, and a DType may be used as NumPy's.
    """

    __slots__ = (
        "_bool", "_complex", "_floating", "_integer", "_numeric", "_quantized", "_string",
        "_unsigned", "dtype", "name",
    )  # fmt: skip
    is_string = getter("_string", "Whether it is of strings.")
    is_bool = getter("_bool", "Whether it is bool.")
    is_floating = getter("_floating", "Whether it is a float of any size.")
    is_complex = getter("_complex", "Whether it is complex.")
    is_integer = getter("_integer", "Whether it is an integer, signed or not.")
    is_unsigned = getter("_unsigned", "Whether it is an unsigned integer.")
    is_quantized = getter(
        "_quantized", "Whether it is one of TensorFlow's quantized types, which are names only."
    )
    is_numeric = getter("_numeric", "Whether it is a number.")

    def __init__(self, name: str, dtype: Any) -> None:
        self.name, self.dtype = name, dtype
        self._string, self._bool = name == "string", name == "bool"
        self._floating, self._complex = "float" in name, name.startswith("complex")
        self._unsigned, self._quantized = name.startswith("uint"), name.startswith("q")
        self._integer = self._unsigned or name.startswith("int")
        self._numeric = not self._string and not self._bool

    @property
    def as_numpy_dtype(self) -> Any:
        """NumPy's type for one element; `object` for strings."""
        if self.is_quantized:
            return self.dtype
        return object if self.is_string else self.dtype.type

    base_dtype = property(lambda self: self, doc="The type itself: there are no reference types.")
    is_numpy_compatible = property(lambda self: True, doc="Whether NumPy has it: yes.")
    as_datatype_enum = getter("name", "TensorFlow's number for the type.", lambda x: TYPES[x])

    @property
    def real_dtype(self) -> DType:
        """The type of the real part."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def size(self) -> int:
        """Bytes of one element: 1 for types of less, 0 for strings."""
        return 0 if self.is_string else self.dtype.itemsize

    @property
    def min(self) -> Any:
        """The smallest finite number.

        Raises:
            TypeError: for bool, strings and complex numbers.
        """
        return self._info("minimum").min

    @property
    def max(self) -> Any:
        """The largest finite number.

        Raises:
            TypeError: for bool, strings and complex numbers.
        """
        return self._info("maximum").max

    @property
    def limits(self) -> tuple[Any, Any]:
        """The interval that images of the type are in.

        Raises:
            ValueError: for a type without one.
        """
        if self.name in {"float32", "float64"}:
            return (0, 1)
        if self.is_bool:
            return (0, True)
        if self.is_integer:
            return (0, self.max)
        raise ValueError(f"{self} does not have defined limits.")

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether a value of another type may be used as this one: whether they are one."""
        return self == as_dtype(other)

    is_subtype_of = is_compatible_with

    def most_specific_common_supertype(self, others: Any) -> DType | None:
        """Return the type, if all others are this one; else None."""
        return self if all(map(self.is_subtype_of, others)) else None

    def _info(self, what: str) -> Any:
        if self.is_quantized:
            raise TypeError(f"Cannot find {what} value of {self} with quantized type {self}.")
        if self.is_integer:
            return ml_dtypes.iinfo(self.dtype)
        if self.is_floating:
            return ml_dtypes.finfo(self.dtype)
        raise TypeError(f"Cannot find {what} value of {self} with type {self}.")

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if other is None or isinstance(other, DType):
            return False
        try:
            return any_dtype(other) is self
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __reduce__(self) -> Any:
        return any_dtype, (self.name,)

    def __str__(self) -> str:
        return f"<dtype: '{self.name}'>"

    def __repr__(self) -> str:
        return f"tf.{self.name}"


_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_EXTENDED = (
    "bfloat16", "float4_e2m1fn", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "int2", "int4", "uint2", "uint4",
)  # fmt: skip

DTYPES: dict[str, DType] = {
    **{name: DType(name, np.dtype(name)) for name in _NAMES},
    **{name: DType(name, np.dtype(getattr(ml_dtypes, name))) for name in _EXTENDED},
    "string": DType("string", _text),
    **{
        f"q{kind}{8 * size}": DType(
            f"q{kind}{8 * size}", np.dtype([(f"q{kind}{8 * size}", f"{kind[0]}{size}")])
        )
        for kind, size in (("int", 1), ("int", 2), ("int", 4), ("uint", 1), ("uint", 2))
    },
}
"""All types by name."""

EXPERIMENTAL = frozenset(_EXTENDED) - {"bfloat16"}
"""The types that are in `tf.dtypes.experimental` and not in `tf`."""

_BY_NUMPY = {made.dtype: made for made in DTYPES.values() if made.name != "string"}

bool_ = DTYPES["bool"]
int32, int64 = DTYPES["int32"], DTYPES["int64"]
float16, float32, float64 = DTYPES["float16"], DTYPES["float32"], DTYPES["float64"]
bfloat16 = DTYPES["bfloat16"]
complex64, complex128 = DTYPES["complex64"], DTYPES["complex128"]
string = DTYPES["string"]


def _refuse_strings(*_: Any, **__: Any) -> NoReturn:
    raise TypeError("A tensor of strings is not a random key.")


IMPL: Any = define_prng_impl(
    key_shape=(3,), seed=_refuse_strings, split=_refuse_strings, random_bits=_refuse_strings,
    fold_in=_refuse_strings, name="string", tag="string",
)  # fmt: skip
HANDLE: Any = jax.eval_shape(
    lambda data: jax.random.wrap_key_data(data, impl=IMPL), jax.ShapeDtypeStruct((3,), np.uint32)
).dtype
"""The type of strings in a program of JAX; see `handles.py`."""

_PYTHON = {float: float32, bool: bool_, object: string, int: None, complex: None, str: None}


def as_dtype(type_value: Any) -> DType:
    """Return the DType that a name, a NumPy or JAX type, or a Python type stands for.

    Args:
        type_value: like "float32", `np.float32`, `jnp.bfloat16`, `float`.

    Raises:
        TypeError: when it stands for none.
        DtypeError: for float64 and complex128, while JAX's 64-bit numbers are off.

    >>> as_dtype("half"), as_dtype(np.int64), as_dtype(float)
    (tf.float16, tf.int64, tf.float32)

    Differs from TensorFlow: While JAX's 64-bit numbers are off, int64 is int32, and uint64 uint32.
    """
    found = any_dtype(type_value)
    if found.size < 8 or narrowed(found.dtype) == found.dtype:
        return found
    return any_dtype(_NARROW.get(found.name) or _core_dtype(found.dtype))  # which refuses it


def host_dtype(type_value: Any) -> DType:
    """Return what `as_dtype` does, with all bits of integers: of numbers that are made by NumPy."""
    as_dtype(type_value)  # which refuses float64 where there is none
    return any_dtype(type_value)


def any_dtype(type_value: Any) -> DType:
    """Return what `as_dtype` does, whatever JAX's settings are: of an array that is there."""
    if isinstance(type_value, DType):
        return type_value
    if isinstance(type_value, np.dtype) and (known := _BY_NUMPY.get(type_value)):
        return known  # what is asked most: the type of an array
    if type(type_value) is int:
        found = next((d for d in DTYPES.values() if TYPES[d.name] == type_value), None)
    elif isinstance(type_value, str):
        found = DTYPES.get(_ALIASES.get(type_value, type_value))
    elif isinstance(type_value, type) and type_value in _PYTHON:  # np.dtype(float) == float
        found = _PYTHON[type_value]
    else:
        found = None if type_value is None else _of_numpy(type_value)
    if found is None:
        raise TypeError(
            f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType."
        )
    return found


def _of_numpy(type_value: Any) -> DType | None:
    if isinstance(type_value, tuple | list | bytes):
        return None
    try:
        dtype = np.dtype(type_value)
    except (TypeError, ValueError):  # an array, or an object whose `dtype` is a name
        if type(type_value) is type(HANDLE) and type_value == HANDLE:
            return string
        inner = getattr(type_value, "dtype", None)
        return None if inner is None else _of_numpy(inner)
    if dtype.kind == "O" and isinstance(type_value, type) and type_value is not np.object_:
        return None  # to NumPy each other class is one of objects
    return string if dtype.kind in "SUTO" else _BY_NUMPY.get(dtype.newbyteorder("="))


def widen(x: Any) -> Any:
    """Return an array in a type that can be added up in: 16-bit floats as float32."""
    return x.astype(np.float32) if x.dtype.kind in "fV" and x.dtype.itemsize < 4 else x


def divisible(x: Any) -> Any:
    """Return an array in the type that it is divided in: integers as floats."""
    if x.dtype.kind not in "iu":
        return x
    return x.astype(narrowed(np.float32 if x.dtype.itemsize < 4 else np.float64))

"""`tf.experimental.ExtensionType`: custom types made of tensors.

Rules this file keeps:
- an object never changes once it is made, and each field has the type that its annotation says;
- it is a pytree of its tensors; what is not a tensor counts for the signature.
"""

from __future__ import annotations

import collections.abc
import contextlib
import enum
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.objects.identity import exact, held
from jaxvars.tf import nest
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import DType
from jaxvars.tf.tensors.ragged_spec import RaggedTensorSpec
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.specs import SparseTensorSpec, TensorSpec
from jaxvars.tf.tensors.tensor import OPERATIONS, Tensor
from jaxvars.tf.variables.fields import ImmutableDict, Static
from jaxvars.tf.variables.variable import Variable, face_of

_PLAIN = (int, float, str, bytes, bool, type(None), DType, TensorShape)
_SPECS = {SparseTensor: SparseTensorSpec, RaggedTensor: RaggedTensorSpec}
_RESERVED = frozenset({"self", "Spec"})
_IMMUTABLE = "Cannot mutate attribute `{}` outside the custom constructor of ExtensionType."


class Field(NamedTuple):
    """A field of an extension type."""

    name: str
    kind: Any  # its annotation
    default: Any


class ExtensionType:
    """The base class of custom types made of tensors.

    A class says its fields by annotations: `tf.Tensor`, a `tf.TensorSpec`, other extension types,
    numbers, strings, `tf.DType`, `tf.TensorShape`, enums, and `tuple[...]`, `typing.Mapping[...]`,
    `X | None` of them. A method `__validate__` may check them.

    Raises:
        TypeError: when an annotation is not of such a type, or a value not of its type.

    >>> from jaxvars import tf
    >>> class Masked(tf.experimental.ExtensionType):
    ...     values: tf.Tensor
    ...     mask: tf.Tensor
    ...
    ...     def total(self):
    ...         return tf.reduce_sum(tf.where(self.mask, self.values, 0))
    >>> @tf.function
    ... def twice(x):
    ...     return Masked(x.values * 2, x.mask)
    >>> twice(Masked([1, 2, 3], [True, False, True])).total()
    <tf.Tensor: shape=(), dtype=int32, numpy=8>

    Differs from TensorFlow: operations are not dispatched to it; give it methods.
    """

    _fields: ClassVar[tuple[Field, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = [_make_field(cls, name, kind) for name, kind in _read_annotations(cls).items()]
        inherited = [f for f in cls._fields if f.name not in {o.name for o in own}]
        cls._fields = (*inherited, *own)
        needed = [f.default is inspect.Parameter.empty for f in cls._fields]
        if sorted(needed, reverse=True) != needed and "__init__" not in vars(cls):
            raise ValueError(
                f"In {cls.__name__}, a field without a default comes after one that has one."
            )
        made = vars(cls).get("__init__")
        cls.__init__ = _make_constructor(cls, made)  # pyright: ignore[reportAttributeAccessIssue]
        cls.Spec = type(f"{cls.__name__}.Spec", (ExtensionTypeSpec,), {"value_type": cls})
        jax.tree_util.register_pytree_node(cls, _flatten, _unflatten)
        nest.COMPOSITES[cls] = _parts, _with_parts

    def __setattr__(self, name: str, value: Any) -> None:
        if "_is_open" not in vars(self):
            raise AttributeError(_IMMUTABLE.format(name))
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(_IMMUTABLE.format(name))

    def __validate__(self) -> None:
        """Check the fields; a class may have more to say."""

    def __eq__(self, other: object) -> Any:
        if type(self) is not type(other):
            return False
        (mine, form), (theirs, other_form) = jax.tree.flatten(self), jax.tree.flatten(other)
        same = form == other_form and all(
            x.shape == y.shape and x.dtype == y.dtype for x, y in zip(mine, theirs, strict=True)
        )
        if not same:
            return False
        found = [OPERATIONS["eq"](*map(Tensor, pair)) for pair in zip(mine, theirs, strict=True)]
        whole = np.all if all(isinstance(x._array, np.ndarray) for x in found) else jax.numpy.all
        return Tensor(functools.reduce(lambda x, y: x & y, [whole(x._array) for x in found]))

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        return OPERATIONS["invert"](same) if isinstance(same, Tensor) else not same

    __hash__: Any = None

    def __repr__(self) -> str:
        parts = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in self._fields)
        return f"{type(self).__name__}({parts})"


class ExtensionTypeSpec:
    """The types of the fields of an extension type: `MyType.Spec(values=tf.TensorSpec(...))`."""

    value_type: ClassVar[Any] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        bound = _make_signature(self.value_type).bind(*args, **kwargs)
        bound.apply_defaults()
        self._parts = dict(bound.arguments)

    @classmethod
    def from_value(cls, value: ExtensionType) -> ExtensionTypeSpec:
        """Return the spec of an object."""
        return cls(**{f.name: spec_of(getattr(value, f.name)) for f in value._fields})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._parts:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}.")
        return self._parts[name]

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Return whether an object, or one of another spec, can have these types."""
        other = spec_of(spec_or_value)
        return type(other) is type(self) and all(
            part.is_compatible_with(other._parts[name])
            if isinstance(part, TensorSpec | ExtensionTypeSpec)
            else part == other._parts[name]
            for name, part in self._parts.items()
        )

    def is_subtype_of(self, other: Any) -> bool:
        """Return whether each object of these types is one of another spec, too."""
        return type(other) is type(self) and other.is_compatible_with(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExtensionTypeSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> Any:
        return type(self), exact(self._parts, held)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={part!r}" for name, part in self._parts.items())
        return f"{type(self).__name__}({parts})"


def spec_of(value: Any) -> Any:
    """Return the spec of a tensor, an extension type or a structure of them; others themselves.

    >>> from jaxvars import tf
    >>> spec_of(tf.constant([1.0]))
    TensorSpec(shape=(1,), dtype=tf.float32, name=None)
    """
    if isinstance(value, Tensor | Variable):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, ExtensionType):
        return type(value).Spec.from_value(value)  # pyright: ignore[reportAttributeAccessIssue]
    if type(value) in _SPECS:
        return _SPECS[type(value)].from_value(value)
    if isinstance(value, tuple):
        return tuple(map(spec_of, value))
    if isinstance(value, ImmutableDict):
        return ImmutableDict({key: spec_of(part) for key, part in value.items()})
    return value


def as_dict(value: ExtensionType) -> dict[str, Any]:
    """Return the fields of an extension type by name."""
    return {f.name: getattr(value, f.name) for f in value._fields}


# ---------------------------------------------------------------- classes
def _read_annotations(cls: type) -> dict[str, Any]:
    """Return the annotations of a class alone, with those that are strings evaluated."""
    own = inspect.get_annotations(cls)
    if any(map(_has_names, own.values())):
        frame = inspect.currentframe()
        while frame is not None and frame.f_globals is globals():
            frame = frame.f_back
        local = {} if frame is None else {**frame.f_globals, **frame.f_locals}
        with contextlib.suppress(NameError):  # they are evaluated when an object is made
            own = _evaluate(cls, own, local)
    return {name: kind for name, kind in own.items() if typing.get_origin(kind) is not ClassVar}


def _evaluate(cls: type, annotations: dict[str, Any], local: dict[str, Any]) -> dict[str, Any]:
    alone = type("", (), {"__annotations__": annotations, "__module__": cls.__module__})
    return typing.get_type_hints(alone, localns={**local, cls.__name__: cls})


def _name_kinds(cls: Any) -> None:
    """Evaluate what annotations could not be when the class was made; TypeError if not now."""
    named = {f.name: f.kind for f in cls._fields if _has_names(f.kind)}
    try:
        kinds = _evaluate(cls, named, {}) if named else {}
    except NameError as why:
        raise TypeError(f"An annotation of extension type '{cls.__name__}': {why}") from None
    if named:
        cls._fields = tuple(f._replace(kind=kinds.get(f.name, f.kind)) for f in cls._fields)


def _has_names(kind: Any) -> bool:
    """Return whether an annotation is a string, or has one inside: `tuple["Node", ...]`."""
    is_name = isinstance(kind, str | typing.ForwardRef)
    return is_name or any(map(_has_names, typing.get_args(kind)))


def _make_field(cls: type, name: str, kind: Any) -> Field:
    if name in _RESERVED or name.startswith("_tf_"):
        raise ValueError(f"The field name '{name}' is reserved.")
    if not _is_field_type(kind):
        raise TypeError(
            f"In field '{name}' of extension type '{cls.__name__}': Unsupported type annotation "
            f"{kind!r}"
        )
    default = vars(cls).get(name, inspect.Parameter.empty)
    if default is not inspect.Parameter.empty and not _has_names(kind):
        default = _convert(default, kind, name)
    return Field(name, kind, default)


def _is_field_type(kind: Any) -> bool:
    """Return whether fields may be annotated so."""
    if kind is None or kind is Tensor or isinstance(kind, TensorSpec) or _has_names(kind):
        return True
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return True
    if origin is not None:
        known = (tuple, collections.abc.Mapping, typing.Union, types.UnionType)
        parts = [part for part in inner if part is not Ellipsis]
        return origin in known and all(map(_is_field_type, parts))
    classes = (*_PLAIN, ExtensionType, *_SPECS, Variable, enum.Enum, TensorSpec)
    return isinstance(kind, type) and issubclass(kind, classes)


def _make_signature(cls: Any) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [inspect.Parameter(f.name, kind, default=f.default) for f in cls._fields]
    )


def _make_constructor(cls: type[ExtensionType], made: Callable[..., None] | None) -> Any:
    """Return the `__init__` of a class: its own one, or one that takes the fields."""
    signature = None if made is not None else _make_signature(cls)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it becomes that
        vars(self)["_is_open"] = True
        if made is not None:
            made(self, *args, **kwargs)
        elif signature is not None:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            vars(self).update(bound.arguments)
        if type(self) is cls:  # not by super().__init__()
            _finish(self)

    if made is not None:
        functools.update_wrapper(__init__, made)
    return __init__


def _finish(made: Any) -> None:
    """Convert and check the fields of an object; it does not change from here on."""
    _name_kinds(type(made))
    for field in made._fields:
        if field.name not in vars(made):
            raise ValueError(f"ExtensionType {type(made).__name__} is missing field {field.name}.")
    unknown = vars(made).keys() - {f.name for f in made._fields} - {"_is_open"}
    for name in sorted(unknown):
        raise ValueError(f"ExtensionType {type(made).__name__} has no field {name}.")
    new = {f.name: _convert(vars(made)[f.name], f.kind, f.name) for f in made._fields}
    vars(made).clear()
    vars(made).update(new)
    made.__validate__()


# ---------------------------------------------------------------- values
def _convert(value: Any, kind: Any, name: str) -> Any:
    """Return a value as a field of a type holds it."""
    if kind is Tensor:
        return _to_tensor(value, None, name)
    if isinstance(kind, TensorSpec):
        return _to_tensor(value, kind, name)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and isinstance(value, tuple | list):
        return _convert_tuple(value, inner, name)
    if origin is collections.abc.Mapping and isinstance(value, Mapping):
        return ImmutableDict(
            {key: _convert(part, inner[1], f"{name}[{key!r}]") for key, part in value.items()}
        )
    if origin in (typing.Union, types.UnionType):
        return _convert_union(value, inner, name)
    if origin is typing.Literal and value in inner:
        return value
    wanted = type(None) if kind is None else kind
    if origin is None and isinstance(value, wanted):
        return value
    expected = getattr(kind, "__name__", str(kind))
    raise TypeError(f"{name}: expected '{expected}', got {type(value).__name__!r}")


def _to_tensor(value: Any, spec: TensorSpec | None, name: str) -> Any:
    if isinstance(value, Variable):
        return value
    try:
        tensor = Tensor(to_array(value, None if spec is None else spec.dtype))
    except (TypeError, ValueError) as why:
        raise TypeError(f"{name}: expected a Tensor, got {type(value).__name__!r}: {why}") from None
    if spec is not None and not spec.is_compatible_with(tensor):
        raise TypeError(f"{name}: expected a tensor of {spec}, got {spec_of(tensor)}")
    return tensor


def _convert_tuple(value: Any, inner: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else list(inner)
    if len(kinds) != len(value):
        raise TypeError(f"{name}: expected a tuple of {len(kinds)} elements, got {len(value)}")
    pairs = enumerate(zip(value, kinds, strict=True))
    return tuple(_convert(part, kind, f"{name}[{i}]") for i, (part, kind) in pairs)


def _convert_union(value: Any, kinds: tuple[Any, ...], name: str) -> Any:
    """Return a value as one of some types: tensors come last, as almost all becomes one."""
    for kind in sorted(kinds, key=lambda kind: kind is Tensor or isinstance(kind, TensorSpec)):
        try:
            return _convert(value, kind, name)
        except TypeError:
            continue
    expected = " | ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
    raise TypeError(f"{name}: expected one of {expected}, got {type(value).__name__!r}")


def _parts(value: Any) -> list[Any]:
    """Return the tensors of an object, and what consists of some."""
    return nest.flatten([x for x in vars(value).values() if _holds_tensors(x)])


def _with_parts(value: Any, *parts: Any) -> Any:
    names = [name for name, x in vars(value).items() if _holds_tensors(x)]
    fields = nest.pack_sequence_as([vars(value)[name] for name in names], parts)
    made = object.__new__(type(value))
    vars(made).update(vars(value) | dict(zip(names, fields, strict=True)))
    return made


# ---------------------------------------------------------------- pytrees
class _Rest(NamedTuple):
    """What is static: the class, the fields with tensors (where not), and the other fields."""

    kind: type
    masks: tuple[tuple[str, Any], ...]
    others: tuple[tuple[str, Any], ...]


def _flatten(value: Any) -> tuple[tuple[Any, ...], _Rest]:
    found = dict(vars(value))
    masks = found.pop("_changing", None)  # what stands for tensors may be anything for a while
    if masks is None:
        names = [name for name in sorted(found) if _holds_tensors(found[name])]
        masks = tuple((name, _mask_of(found[name])) for name in names)
    others = tuple((name, found[name]) for name in sorted(found.keys() - set(dict(masks))))
    parts = tuple(_to_core(found[name], mask) for name, mask in masks)
    return parts, _Rest(type(value), masks, others)


def _unflatten(rest: _Rest, children: Any) -> Any:
    made = object.__new__(rest.kind)
    vars(made).update(rest.others, _changing=rest.masks)
    vars(made).update(zip(dict(rest.masks), map(_to_body, children), strict=True))
    return made


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_holds_tensors, value))
    if isinstance(value, ImmutableDict):
        return any(map(_holds_tensors, value.values()))
    return isinstance(value, (Tensor, Variable, ExtensionType, *_SPECS))


def _mask_of(value: Any) -> Any:
    """Return which parts of a field hold no tensor."""
    if isinstance(value, tuple):
        return tuple(map(_mask_of, value))
    if isinstance(value, ImmutableDict):
        return tuple((key, _mask_of(value[key])) for key in sorted(value))
    return not _holds_tensors(value)


def _to_core(value: Any, mask: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_to_core, value, mask))
    if isinstance(value, ImmutableDict):
        masks = dict(mask)
        return {key: _to_core(part, masks[key]) for key, part in value.items()}
    if mask is True:
        return Static(value)
    if isinstance(value, Variable):
        return value.aliased
    return value._array if isinstance(value, Tensor) else value


def _to_body(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_to_body, value))
    if isinstance(value, dict):
        return ImmutableDict({key: _to_body(part) for key, part in value.items()})
    if isinstance(value, CoreVariable):
        return face_of(value)
    if isinstance(value, Static):
        return value.value
    return Tensor(value) if isinstance(value, jax.Array | np.ndarray) else value

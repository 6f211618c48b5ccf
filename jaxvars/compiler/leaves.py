"""What one argument or result is to the cache: traced, static, or the object itself."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import operator
from collections.abc import Callable, Coroutine, Hashable, Iterator, Mapping
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias, final

import jax
import numpy as np

from jaxvars.core.frame import Owner, cells_in
from jaxvars.core.traversal import Holder, reaches
from jaxvars.errors import CompileError
from jaxvars.tensors.spec import TensorSpec
from jaxvars.tensors.tensor import is_weak
from jaxvars.tracing import context
from jaxvars.tracing.identity import SIZES, Inexact, Same, Weak, attributes, exact

NUMBERS = (int, float, complex)
_FIXED = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, Owner, Holder)
_REFUSED = (set, bytearray, memoryview)
STAGED_ITERATORS: set[type] = set()
"""Iterators whose next item a program takes when it runs."""


class Traced(NamedTuple):
    """What the key keeps of a traced leaf."""

    shape: tuple[int, ...]
    dtype: Any
    weak: bool

    def __str__(self) -> str:
        sizes = ",".join(map(str, self.shape))
        return f"{self.dtype}[{sizes}]"


@final
class Static:
    """What the key keeps of a static leaf; raises Inexact if that can't be told by its value."""

    __slots__ = ("_key", "kind", "value")

    def __init__(self, value: Any) -> None:
        self._key = exact(value, _function_itself)
        self.kind = type(value)
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return repr(self.value)

    @property
    def has_changed(self) -> bool:
        """Whether the value, which a function may have been given, is another one by now."""
        try:
            return exact(self.value, _function_itself) != self._key
        except Inexact:
            return True


class Itself(NamedTuple):
    """What the key keeps of an object that stays itself, and of what it holds if that may change.

    Attributes:
        content: what a dataclass or the like holds now, which Python may change; else None.
    """

    kind: type
    number: int
    content: Hashable = None

    def __str__(self) -> str:
        return f"<{self.kind.__name__} object {self.number:#x}>"


def _function_itself(value: Any) -> Same:
    """Return what stands for a function, like `jnp.tanh`; of an object with variables, none is."""
    if _has_no_value(type(value)) and callable(value) and not any(cells_in(value)):
        return Same(value)
    raise Inexact


def content_of(value: Any) -> Hashable:
    """Return what stands for what an object holds now; None if that can't be told, or won't change.

    An array of JAX never changes and counts by identity, one of NumPy by its numbers; a Module or
    an object of another class that is not told by what it holds counts by identity, too.
    """
    try:
        return exact(value, _content_of_part)
    except Exception:  # noqa: BLE001 - it may be anything: an object says itself what it holds
        return None


def _content_of_part(value: Any) -> Hashable:
    kind = type(value)
    if context.is_tracer(value):
        raise Inexact
    if isinstance(value, jax.Array):
        return Same(value)
    if kind.__hash__ is not None or isinstance(value, Owner | Holder):
        return Weak(value)
    if dataclasses.is_dataclass(value):
        return (kind, *[exact(part, _content_of_part) for part in attributes(value, kind).items()])
    parts = [list(x) if isinstance(x, Iterator) else x for x in value.__reduce_ex__(4)]
    return kind, exact(parts, _content_of_part)


Leaf: TypeAlias = Traced | Static | Itself


def leaf_of(value: Any) -> Leaf:
    """Return what the key keeps of a leaf.

    >>> str(leaf_of(np.ones((2, 3), np.float32))), str(leaf_of("relu"))
    ('float32[2,3]', "'relu'")
    """
    if isinstance(value, jax.Array | jax.ShapeDtypeStruct):
        shape = [SIZES[type(n)](n) if type(n) in SIZES else n for n in value.shape]
        return Traced(tuple(shape), value.dtype, is_weak(value))
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "OSUT":
        return Traced(value.shape, jax.dtypes.canonicalize_dtype(value.dtype), weak=False)
    kind = type(value)
    if kind in NUMBERS:
        return Traced((), jax.dtypes.canonicalize_dtype(kind), weak=True)
    if isinstance(value, _REFUSED):
        raise CompileError(
            f"An argument is a {kind.__name__}, which can be neither traced nor part of the "
            "cache key: pass a tuple or a frozenset."
        )
    if isinstance(value, Iterator) and kind not in STAGED_ITERATORS:
        raise CompileError(
            f"An argument is a {kind.__name__}, an iterator: its items would be taken while the "
            "function is traced, and be the same in all calls. Take them outside, and pass them: "
            "step(next(iterator)), or for batch in iterator: step(batch)."
        )
    if isinstance(value, Owner) or (_has_no_value(kind) and not isinstance(value, enum.Enum)):
        return _itself(value)
    return _static(value)


class Conditions(NamedTuple):
    """What a hot path checks besides its arguments: Python's tests, and the names in them.

    A test is None if there can be no hot path. The settings are JAX's, as a number.
    """

    guards: list[str | None]
    names: dict[str, Any]
    settings: int


@final
class Source:
    """The code and the defaults that a Python function has, which may be replaced in place."""

    def __init__(self, fn: Any) -> None:
        while isinstance(fn, functools.partial) or hasattr(fn, "__wrapped__"):
            fn = fn.func if isinstance(fn, functools.partial) else fn.__wrapped__
        fn = fn if hasattr(fn, "__code__") else type(fn).__call__
        self.function: Any = getattr(fn, "__func__", fn)
        self.code, self._defaults, self._by_name = self._now()

    def _now(self) -> tuple[Any, ...]:
        names = "__code__", "__defaults__", "__kwdefaults__"
        return tuple(getattr(self.function, name, None) for name in names)

    @property
    def is_current(self) -> bool:
        """Whether they are those that it has now."""
        known = self.code, self._defaults, self._by_name
        return all(map(operator.is_, self._now(), known))


def check_function(fn: Callable[..., Any]) -> None:
    """Raise CompileError for a function whose body runs after the call."""
    if any(is_late(fn) for is_late in _LATE):
        raise CompileError(
            f"{name_of(fn)} is a generator or coroutine function, whose body runs after the call: "
            "jv.compile would trace nothing. Compile what one step does, and yield or await "
            "around it."
        )
    if isinstance(fn, type) and issubclass(fn, Holder):
        raise CompileError(
            f"{fn.__name__} is a class, whose call makes an object. Compile its method,\n"
            "    @jv.compile\n"
            "    def __call__(self, x): ...\n"
            f"or an object: model = jv.compile({fn.__name__}(...))."
        )


_LATE = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)


def check_result(result: Any, name: str) -> None:
    """Raise CompileError for a result that is of no use, as all calls return the traced one."""
    parts = result.values() if isinstance(result, Mapping) else result
    inner = parts if isinstance(result, tuple | list | Mapping) else ()
    for value in (result, *inner):
        if isinstance(value, Iterator | Coroutine) and type(value) not in STAGED_ITERATORS:
            raise CompileError(
                f"{name} returns a {type(value).__name__}, which can be used once, but all calls "
                "return what the traced one returned. Return a list or a tuple."
            )
    for leaf in jax.tree.leaves(result):
        if not isinstance(leaf, jax.Array | Owner) and reaches(leaf, context.is_tracer):
            raise CompileError(
                f"{name} returns a {type(leaf).__name__} that holds traced values. JAX does not "
                "know its parts, so that they would have no values outside. Return a tuple, list, "
                "dict or named tuple, or register the class, for example with "
                "jax.tree_util.register_dataclass."
            )


def _static(value: Any) -> Leaf:
    try:
        return Static(value)
    except (Inexact, RecursionError):
        return _itself(value)


def _itself(value: Any) -> Itself:
    kind = type(value)
    may_tell = kind.__eq__ is not object.__eq__ or kind is functools.partial
    content = content_of(value) if may_tell and not isinstance(value, Owner) else None
    return Itself(kind, id(value), None if isinstance(content, Weak) else content)


def may_change(default: Any) -> bool:
    """Return whether a default may be changed in place; an array counts as fixed: it is read."""
    if type(default) is tuple:
        return any(map(may_change, default))
    is_read = isinstance(default, np.ndarray) and default.dtype.kind not in "OSUT"
    is_fixed = is_read or isinstance(default, _FIXED)
    return not (is_fixed or isinstance(content_of(default), Same | Weak))


def _has_no_value(kind: type) -> bool:
    return kind.__eq__ is object.__eq__ or kind.__hash__ is None


def counts_as_itself(value: Any) -> bool:
    """Return whether an argument is a leaf that is keyed by identity."""
    return find_itself(value) is not None


def find_itself(value: Any) -> Itself | None:
    """Return what the key keeps of an argument that is a leaf keyed by identity; of others None."""
    is_leaf = isinstance(value, Owner) or jax.tree_util.all_leaves([value])
    leaf = leaf_of(value) if is_leaf and not isinstance(value, _REFUSED) else None
    return leaf if isinstance(leaf, Itself) else None


def is_leaf(value: object) -> bool:
    return isinstance(value, Owner)


def name_of(fn: Any) -> str:
    """Return what a function is called.

    >>> import functools
    >>> name_of(functools.partial(max, 1))
    'max'
    """
    fn = getattr(fn, "func", fn)
    return getattr(fn, "__name__", type(fn).__name__)


class Key(NamedTuple):
    """What names a program of a function.

    Attributes:
        form: the structure of the arguments.
        leaves: what is kept of each.
        settings: JAX's.
        checks_indices: whether indices are checked.
        order: that of the keys of dicts.
        untrainable: which variables, of those that the function asks for, are not trainable.
        shapes: the shapes of variables that may have several.
    """

    form: Any
    leaves: tuple[Leaf, ...]
    settings: int
    checks_indices: bool
    order: Any
    untrainable: frozenset[int] = frozenset()
    shapes: frozenset[tuple[int, tuple[int, ...]]] = frozenset()

    @property
    def signature(self) -> Key:
        """What a call has, before it is known what the function asks for."""
        return Key(self.form, self.leaves, self.settings, self.checks_indices, self.order)


def object_ids(key: Key) -> tuple[int, ...]:
    """Return which objects a key is about."""
    return tuple(leaf.number for leaf in key.leaves if isinstance(leaf, Itself))


def holder_ids(key: Key) -> tuple[int, ...]:
    """Return which objects a key is about, less functions: there may be a new one each time."""
    leaves = (leaf for leaf in key.leaves if isinstance(leaf, Itself))
    return tuple(leaf.number for leaf in leaves if not issubclass(leaf.kind, FunctionType))


def is_spec(x: object) -> bool:
    return isinstance(x, TensorSpec | Owner)


def lower_spec(x: Any) -> Any:
    if not isinstance(x, TensorSpec):
        return x
    if not x.is_static:
        raise CompileError(
            f"{x} has an unknown dimension: a program has fixed shapes. Trace it for one, for "
            f"example jv.TensorSpec({tuple(size or 1 for size in x.shape)})."
        )
    return jax.ShapeDtypeStruct(x.shape, x.dtype)

"""What a call looks like to the cache: which arguments are traced, which are part of the key.

| an argument, or a leaf of one | is |
|---|---|
| array (of JAX, NumPy or another library), Python number | traced: shape, dtype and weak type |
| Variable, Module, an object without a custom `==` | itself, keyed by identity |
| dataclass or the like that Python may change | itself, and what it holds when it is called |
| bool, str, None, enum, tuples and frozen dataclasses of such | static: type and value count |
| a number named in `static_argnames` | static: type and value count |
| an object that its content does not identify | itself, keyed by identity |
| set, bytearray and other unhashable builtins | refused |

Rules this file keeps:
- an argument counts the same whether it is passed by position, by name, or by default;
- nothing is compared by its own `==`, which may say too much (`objects/identity.py`);
- JAX's settings are part of a key;
- a key never keeps an object alive that is keyed by identity.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
from collections.abc import Callable, Coroutine, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, final

import jax
import numpy as np

from jaxvars.core.frame import Owner, cells_in
from jaxvars.core.staging import Staged
from jaxvars.errors import CompileError, DtypeError, NotATensorError, user_line
from jaxvars.objects.identity import (
    KEY_PARTS,
    SIZES,
    Inexact,
    Same,
    Weak,
    are_same,
    attributes,
    code_parts,
    exact,
    form_of,
    leaf_paths,
)
from jaxvars.objects.key_order import in_order, order_of
from jaxvars.objects.traversal import Holder, reaches
from jaxvars.tensors.foreign_arrays import in_numpy, is_foreign_array, refuse_grad, with_numbers
from jaxvars.tensors.spec import TensorSpec
from jaxvars.tensors.tensor import check_argument, is_endless, is_weak, numbers_of, to_tensor
from jaxvars.tracing import context
from jaxvars.typing import Array

T = TypeVar("T")

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
    """What the key keeps of a static leaf; raises Inexact if its value is not enough."""

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
    """Return what stands for what an object holds now; None if it won't change or is not known.

    An array of JAX never changes and counts by identity, one of NumPy by its numbers; a Module or
    an object of another class that its content does not identify counts by identity, too.
    """
    try:
        return exact(value, _content_of_part)
    except Exception:  # noqa: BLE001 - it may be anything: an object says itself what it holds
        return None


def full_content_of(value: Any) -> Hashable:
    """Return what `content_of` does, with the numbers of foreign arrays; no fast path does so."""
    return with_numbers(content_of(value))


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
    if is_foreign_array(value):
        return leaf_of(in_numpy(value))
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
    """What a fast path checks besides its arguments: Python's tests, and the names in them.

    A test is None if there can be no fast path. The settings are JAX's, as a number.
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
        self._parts = code_parts(self.function)

    @property
    def code(self) -> Any:
        """The code; None of what is not written in Python."""
        return self._parts[0]

    @property
    def is_current(self) -> bool:
        """Whether they are those that it has now."""
        return are_same(code_parts(self.function), self._parts)


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
    content = full_content_of(value) if may_tell and not isinstance(value, Owner) else None
    return Itself(kind, id(value), None if isinstance(content, Weak) else content)


def may_change(default: Any) -> bool:
    """Return whether a default may be changed in place; an array counts as fixed: it is read."""
    if type(default) is tuple:
        return any(map(may_change, default))
    is_read = isinstance(default, np.ndarray) and default.dtype.kind not in "OSUT"
    is_fixed = is_read or isinstance(default, _FIXED)
    return not (is_fixed or isinstance(content_of(default), Same | Weak))


def _has_no_value(kind: type) -> bool:
    is_mutable = kind.__hash__ is None and kind is not slice  # which has none before Python 3.12
    return kind.__eq__ is object.__eq__ or is_mutable


def counts_as_itself(value: Any) -> bool:
    """Return whether an argument is a leaf that is keyed by identity."""
    return find_itself(value) is not None


def find_itself(value: Any) -> Itself | None:
    """Return what the key keeps of an argument that is a leaf keyed by identity; of others None."""
    is_leaf = isinstance(value, Owner) or jax.tree_util.all_leaves([value])
    is_other = not is_leaf or isinstance(value, _REFUSED) or is_foreign_array(value)
    leaf = None if is_other else leaf_of(value)
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
        parts: those of `KEY_PARTS`.
        order: that of the keys of dicts.
        untrainable: which variables, of those that the function asks for, are not trainable.
        shapes: the shapes of variables that may have several.
    """

    form: Any
    leaves: tuple[Leaf, ...]
    settings: int
    parts: tuple[Hashable, ...]
    order: Any
    untrainable: frozenset[int] = frozenset()
    shapes: frozenset[tuple[int, tuple[int, ...]]] = frozenset()

    @property
    def signature(self) -> Key:
        """What a call has, before it is known what the function asks for."""
        return Key(self.form, self.leaves, self.settings, self.parts, self.order)


def object_ids(key: Key) -> tuple[int, ...]:
    """Return which objects a key is about."""
    return tuple(leaf.number for leaf in key.leaves if isinstance(leaf, Itself))


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


# ---------------------------------------------------------------- calls
_REST, _NAMED = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
_ANY = inspect.Signature([inspect.Parameter("args", _REST), inspect.Parameter("kwargs", _NAMED)])


class Call(NamedTuple):
    """A call, taken apart.

    Attributes:
        key: names the signature.
        values: the traced leaves.
        objects: the leaves that stay themselves, to be referred to weakly.
        rebuild: makes `(args, kwargs)` from new traced leaves.
        resolve: returns what was traced for this call as a program of the one in whose place it
            is, with the traced leaves of that; None where it is in no other's place.
        is_foreign: whether arrays of other libraries are among the leaves: no fast path takes them.
    """

    key: Key
    values: list[Array]
    objects: list[Any]
    rebuild: Callable[[Sequence[Array]], tuple[tuple[Any, ...], dict[str, Any]]]
    resolve: Callable[[Staged], tuple[Staged, list[Any]]] | None = None
    is_foreign: bool = False

    def settled(self) -> Call:
        """Return it with what its objects hold now: the function may have changed that."""
        objects = iter(self.objects)
        leaves = [_itself(next(objects)) if isinstance(x, Itself) else x for x in self.key.leaves]
        return self._replace(key=self.key._replace(leaves=tuple(leaves)))

    def given(self) -> tuple[Array, ...]:
        """Return the values for XLA, which may read a NumPy array when the call has returned.

        The caller may write to the array by then, so it is a copy.
        """
        return tuple([x.copy() if isinstance(x, np.ndarray) else x for x in self.values])


def ask_parts() -> tuple[Hashable, ...]:
    """Return what the settings that plug in are now."""
    return tuple([part.now() for part in KEY_PARTS])


@final
class Signature:
    """Takes calls of one Python function apart."""

    def __init__(
        self,
        fn: Callable[..., Any],
        static_argnames: Sequence[str],
        input_signature: Sequence[TensorSpec] | None,
    ) -> None:
        self.name = name_of(fn)
        self.source = Source(fn)
        self.static = frozenset(static_argnames)
        self.specs = None if input_signature is None else tuple(map(as_spec, input_signature))
        try:
            self._signature = inspect.signature(fn)
        except (TypeError, ValueError):  # some builtins have none
            self._signature = _ANY
        defaults = {name: p.default for name, p in self._signature.parameters.items()}
        self._changing = {name: x for name, x in defaults.items() if may_change(x)}
        self._check_names()

    def completed(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments to trace for: the input signature where none are given."""
        given = 1 if args and counts_as_itself(args[0]) else 0  # a method's object
        return (*args, *self.specs) if self.specs and len(args) == given else args

    @property
    def is_plain(self) -> bool:
        """Return whether arguments are traced as they are, without being converted first."""
        return self.specs is None

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Take a call apart.

        Raises:
            CompileError: when the arguments do not fit the function, or one can be neither
                traced nor keyed, or does not fit the input signature.
        """
        args, kwargs = self._canonical(args, kwargs)
        if self.specs is not None:
            args = self._fit_all(args, self.specs)
        if is_endless(args) or is_endless(kwargs):
            raise CompileError(
                f"An argument of {self.name} is a list or dict that contains itself, or is nested "
                f"too deeply ({user_line()}): pass the arrays in it."
            )
        leaves, treedef = jax.tree.flatten((args, kwargs), is_leaf=is_leaf)
        order = order_of((args, dict(sorted(kwargs.items()))))  # of keywords it does not matter
        static = self._static_flags(args, kwargs) if self.static else [False] * len(leaves)
        foreign = [i for i, x in enumerate(leaves) if not static[i] and is_foreign_array(x)]
        for i in foreign:
            leaves[i] = self._named(numbers_of, leaves[i], treedef, i)
        keys = tuple(map(_key_of, leaves, static))
        traced = [isinstance(key, Traced) for key in keys]
        for i, leaf in enumerate(leaves):
            if traced[i] and isinstance(leaf, int | np.ndarray | np.generic):
                self._named(check_argument, leaf, treedef, i)

        def rebuild(values: Sequence[Array]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            new = iter(values)
            merged = [next(new) if t else x for x, t in zip(leaves, traced, strict=True)]
            return in_order(jax.tree.unflatten(treedef, merged), order)

        values = [x for x, t in zip(leaves, traced, strict=True) if t]
        objects = [x for x, key in zip(leaves, keys, strict=True) if isinstance(key, Itself)]
        key = Key(form_of(treedef), keys, context.settings(), ask_parts(), order)
        return Call(key, values, objects, rebuild, is_foreign=bool(foreign))

    def conditions(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], settings: int
    ) -> Conditions:
        """Return what a fast path for calls like this one checks besides its arguments."""
        guards, names = list[str | None](), dict[str, Any]()
        if self.source.code is not None:
            names.update(user=self.source.function, code=self.source.code)
            guards.append("user.__code__ is code")
        given = self._signature.bind(*args, **kwargs).arguments if self._changing else ()
        taken = tuple(x for name, x in self._changing.items() if name not in given)
        if taken:
            content = content_of(taken)
            is_known = content is not None and content == full_content_of(taken)
            names.update(content_of=content_of, defaults=taken, content=content)
            guards.append("content_of(defaults) == content" if is_known else None)
        return Conditions(guards, names, settings)

    def _named(self, take: Callable[[Any, str, str], T], leaf: Any, treedef: Any, i: int) -> T:
        """Return what `take` makes of a leaf; if it refuses, have it say which argument that is."""
        try:
            return take(leaf, "", "")
        except (NotATensorError, DtypeError):
            name = self._names(treedef)[i]
            return take(leaf, f"argument {name} of {self.name}", name)

    def difference(self, old: Key, new: Key) -> str:
        """Say what changed from one key to another."""
        if old.form != new.form:
            return self._describe_structures(old, new)
        if old.settings != new.settings:
            return "JAX's settings changed"
        names = self._names(tree_of(new))
        changes = [
            f"{name}: {_arrow(before, after)}"
            for name, before, after in zip(names, old.leaves, new.leaves, strict=True)
            if before != after
        ]
        parts = zip(KEY_PARTS, old.parts, new.parts, strict=False)
        changes += [part.describe(after) for part, before, after in parts if before != after]
        if old.order != new.order:
            changes.append("another order of the keys of a dict")
        if old.untrainable != new.untrainable:
            changes.append("other variables are trainable")
        if old.shapes != new.shapes:
            changes.append("another shape of a variable")
        pairs = zip(names, new.leaves, strict=True)
        objects = [name for name, leaf in pairs if isinstance(leaf, Itself)]
        gone = " or ".join([*objects, "a variable"])
        return "; ".join(changes) or f"the program was dropped: {gone} of the last call is gone"

    def _describe_structures(self, old: Key, new: Key) -> str:
        before, after = self._structures(old), self._structures(new)
        same = {name for name in before if name in after and before[name] == after[name]}
        changed = [name for name in {**before, **after} if name not in same]
        return "; ".join(f"{name}: the structure changed" for name in changed)

    def _structures(self, key: Key) -> dict[str, Any]:
        args, kwargs = jax.tree.unflatten(tree_of(key), range(len(key.leaves)))
        named = {self._positional_name(i): x for i, x in enumerate(args)} | kwargs
        return {name: form_of(jax.tree.structure(x)) for name, x in named.items()}

    def describe(self, key: Key) -> str:
        """Return a signature as a string."""
        pairs = zip(self._names(tree_of(key)), key.leaves, strict=True)
        return ", ".join(f"{name}: {leaf}" for name, leaf in pairs) or "()"

    def _names(self, treedef: Any) -> list[str]:
        return list(map(self._path_name, leaf_paths(treedef)))

    def traced_names(self, key: Key) -> list[tuple[str, str]]:
        """Return for each traced leaf the argument that it is in, and what it is called itself."""
        return [
            (self._argument(path), self._path_name(path))
            for path, leaf in zip(leaf_paths(tree_of(key)), key.leaves, strict=True)
            if isinstance(leaf, Traced)
        ]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the arguments; none where they are not known, or any will do."""
        return () if self._rest_of_names else tuple(self._signature.parameters)

    def owners(self, key: Key, objects: Sequence[Any]) -> list[Any]:
        """Return which objects may have traces of their own: Modules, and that of a method."""
        place = getattr(self.source.function, "__qualname__", "").rpartition("<locals>.")[2]
        is_own = "." in place and isinstance(next(iter(key.leaves), None), Itself)
        return [x for i, x in enumerate(objects) if is_own > i or isinstance(x, Owner | Holder)]

    @property
    def _rest_of_names(self) -> str | None:
        """The name of `**kwargs`, if the function has it."""
        found = self._signature.parameters.values()
        return next((p.name for p in found if p.kind is _NAMED), None)

    def _path_name(self, path: tuple[Any, ...]) -> str:
        return f"{self._argument(path)}{jax.tree_util.keystr(tuple(path[2:]))}"

    def _argument(self, path: tuple[Any, ...]) -> str:
        which, first, *_ = path  # of (args, kwargs)
        return first.key if which.idx == 1 else self._positional_name(first.idx)

    def _positional_name(self, i: int) -> str:
        parameter, place = self._positional(i)
        return f"{parameter.name}[{place}]" if parameter.kind is _REST else parameter.name

    def _positional(self, i: int) -> tuple[inspect.Parameter, int]:
        """Return the parameter that takes an argument, and the argument's place in `*args`."""
        parameters = list(self._signature.parameters.values())
        kinds = [parameter.kind for parameter in parameters]
        first = kinds.index(_REST) if _REST in kinds else i
        return parameters[min(i, first)], i - first

    def _canonical(self, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise CompileError(f"{self.name}{self._signature}: {error}.") from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _static_flags(self, args: Any, kwargs: Any) -> list[bool]:
        known, rest = self._signature.parameters, self._rest_of_names in self.static
        by_position = [self._positional(i)[0].name in self.static for i in range(len(args))]
        by_name = [name in self.static or (rest and name not in known) for name in kwargs]
        flags = (
            tuple(map(_repeat_flag, args, by_position)),
            dict(zip(kwargs, map(_repeat_flag, kwargs.values(), by_name), strict=True)),
        )
        return jax.tree.leaves(flags)

    def _fit_all(self, args: tuple[Any, ...], specs: tuple[TensorSpec, ...]) -> tuple[Any, ...]:
        method = len(args) > len(specs) and counts_as_itself(args[0])
        own, rest = args[: int(method)], args[int(method) :]
        if len(rest) < len(specs) or not self._are_defaults(args, len(own) + len(specs)):
            raise CompileError(
                f"{self.name} has an input_signature of {len(specs)} tensors, but was called "
                f"with {len(rest)} arguments."
            )
        for i, x in enumerate(rest):
            if is_foreign_array(x):
                name = self._positional_name(len(own) + i)
                refuse_grad(x, f"argument {name} of {self.name}", name)
        fitted = (
            self._fit(i, x, spec) for i, (x, spec) in enumerate(zip(rest, specs, strict=False))
        )
        return (*own, *fitted, *rest[len(specs) :])

    def _are_defaults(self, args: tuple[Any, ...], start: int) -> bool:
        return all(args[i] is self._positional(i)[0].default for i in range(start, len(args)))

    def _fit(self, i: int, value: Any, spec: TensorSpec) -> Any:
        if isinstance(value, TensorSpec | jax.ShapeDtypeStruct):
            array = value
        else:
            array = to_tensor(value, spec.dtype, what=f"argument {i} of {self.name}")
        if not spec.matches(array):
            raise CompileError(
                f"Argument {i} of {self.name} is {array.dtype}{list(array.shape)}, but its "
                f"input_signature says {spec}."
            )
        return array

    def _check_names(self) -> None:
        known = list(self._signature.parameters)
        unknown = sorted(self.static - set(known))
        if unknown and not self._rest_of_names:
            raise CompileError(
                f"static_argnames names {unknown}, but {self.name} has the arguments {known}."
            )


def _key_of(leaf: Any, static: bool) -> Leaf:
    if not static or isinstance(leaf, Owner):
        return leaf_of(leaf)
    try:
        hash([] if is_foreign_array(leaf) else leaf)  # its numbers may change
    except TypeError:
        raise CompileError(
            f"A static argument holds {type(leaf).__name__}, which is not hashable: pass a tuple, "
            "a frozen dataclass or another hashable value. Arrays are not static: leave them out."
        ) from None
    return _static(leaf)


def tree_of(key: Key) -> Any:
    """Return the structure of the arguments that a key is for."""
    return getattr(key.form, "treedef", key.form)


def _arrow(before: Leaf, after: Leaf) -> str:
    if str(before) != str(after):
        return f"{before} -> {after}"
    if isinstance(after, Itself):
        return f"{after} was changed"
    if not isinstance(after, Traced):
        return f"{before} -> {after} (another one that prints the same)"
    return f"{before} -> {after} ({'weakly typed' if after.weak else 'strongly typed'})"


def _repeat_flag(value: Any, flag: bool) -> Any:
    return jax.tree.map(lambda _: flag, value, is_leaf=is_leaf)


def as_spec(spec: Any) -> TensorSpec:
    """Return a spec, or an array's spec, as a TensorSpec."""
    if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
        raise CompileError(
            f"input_signature has a TensorSpec for each argument, and not a {type(spec).__name__}."
        )
    return spec if isinstance(spec, TensorSpec) else TensorSpec.of(spec)

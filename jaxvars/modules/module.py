"""`Module`: an object with variables, found by walking its attributes.

    class Linear(jv.Module):
        def __init__(self, n_in, n_out):
            self.w = jv.Variable(jnp.zeros((n_in, n_out)))
            self.b = jv.Variable(jnp.zeros(n_out))

        def __call__(self, x):
            return x @ self.w + self.b

Nothing is registered: variables are found on demand, in attributes, lists, tuples, dicts,
dataclasses and other objects, each once, a module's own before those of its submodules,
attributes sorted by name. A module that is a Mapping, list or dict has its entries, and after all
else its attributes. `super().__init__()` is only needed to give a name. An attribute that
is a Variable stays one: it is assigned (`model.b.assign(x)`, `model.b += x`), replaced by another
Variable, or deleted.
"""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from functools import wraps
from inspect import getattr_static
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeAlias, TypeVar

import jax.numpy as jnp

from jaxvars.advice import did_you_mean
from jaxvars.core.cells import name_scope, trainable_flag
from jaxvars.core.variable import Variable, make_variable
from jaxvars.errors import DtypeError, StateError, shown, user_line
from jaxvars.modules.absent import Absent, advised
from jaxvars.modules.state import cells_by_path
from jaxvars.objects.traversal import (
    Holder,
    Path,
    Pattern,
    Tied,
    matcher,
    resolve_proxy,
    walk,
    walk_again,
    walk_known,
)
from jaxvars.tensors.dtypes import is_of_kind
from jaxvars.tensors.dtypes import nbytes as nbytes
from jaxvars.typing import DTypeLike
from jaxvars.views import Structured, Table, view

P = ParamSpec("P")
T = TypeVar("T")
Selector: TypeAlias = Pattern | type


class Late(ABC):
    """A Module that makes its Variables when it sees its first data, or a checkpoint."""

    @property
    @abstractmethod
    def is_built(self) -> bool:
        """Whether the Variables are there."""

    @abstractmethod
    def build(self, size: int, /) -> None:
        """Make the Variables, whose last axis has this size."""


WAITING = "_values_that_wait"  # an attribute, of a Module that has no variables for them yet
SET: list[Callable[[str, object], None]] = []
"""What may refuse an attribute that is set."""
SETTING: list[Callable[[Module, str], None]] = []
"""What is told of an attribute before it is set."""
_LISTED = 6  # paths in an error
_REPLACED = """\
{kind}.{name} is a Variable, and at {line} it is set to {value}: the module would lose the variable.
Assign to it:
    self.{name}.assign(value)    # not: self.{name} = value
or, to take it out of the module, delete it first: del self.{name}."""
_FLAG = """\
{kind}.trainable is set at {line}: a module has no such flag, and its variables would be trained as
before. Set theirs, for the whole run:
    for v in model.variables:
        v.trainable = False
or freeze them for a while, `with jv.freeze(model): ...`. A flag of your own has another name."""
_LISTS = """\
{kind}.{name} is set at {line}: a module finds its variables itself, in all its attributes, and
model.{name} lists them. Give the attribute another name:
    self.parts = ...    # not: self.{name} = ..."""
_OWN = {
    "name": """\
{kind}.name is set at {line}: a module gets its name when it is made.
    super().__init__(name="me")    # not: self.name = "me\"""",
    "submodules": _LISTS,
    "variables": _LISTS,
    "named_variables": _LISTS,
    "trainable_variables": _LISTS,
    "non_trainable_variables": _LISTS,
}
"""What is said of a property that is set, by name."""
_OF_THE_CLASS = """\
in the body of the class: all its objects would share the variables, and none would find them to
train or save. Make them for each object:
    def __init__(self):
        self.{name} = ...    # not: {name} = ... in the class
or, in a dataclass, {name}: ... = dataclasses.field(default_factory=lambda: ...). What is to be
shared is made outside of the class, and set in __init__."""
BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # My|HTTP|Net


@advised("Module")
class Module(Structured, Holder):
    """The base of objects with variables.

    Args:
        name: what it is called; the class name in snake case when None.

    Raises:
        ValueError: when the name has other characters than letters, digits, _ and /.

    >>> class Scale(Module):
    ...     def __init__(self):
    ...         self.factor = Variable(2.0, name="factor")
    >>> model = Scale()
    >>> model.variables
    (<Variable 'factor' float32[] 2.>,)
    >>> model.name
    'scale'
    """

    _name: str | None = None
    _takes_any_name = False
    _has_slots = False  # which it makes when it meets the variables that they are of

    def __init__(self, name: str | None = None) -> None:
        if name is not None and not (self._takes_any_name or name.replace("/", "_").isidentifier()):
            raise ValueError(f"{name!r} is not a module name: use letters, digits and underscores.")
        self._name = name

    def _describe_slots(self) -> Mapping[str, str]:
        """Return what slots are, by name, where the name does not say it."""
        return {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, value in vars(cls).items():
            if _holds_variables(value):
                line = f"{cls.__name__}.{name} is made at {user_line()}"
                raise shown(TypeError(f"{line} {_OF_THE_CLASS.format(name=name)}"))

    if not TYPE_CHECKING:  # a checker would take any name to set

        def __setattr__(self, name: str, value: Any, /) -> None:
            held, new = resolve_proxy(_find_replaced(self, name)), resolve_proxy(value)
            if isinstance(held, Variable) and not isinstance(new, Variable):
                raise _set_error(_REPLACED, self, name, value)
            if name == "trainable" and not hasattr(type(self), name) and self.variables:
                raise _set_error(_FLAG, self, name, value)
            if name in _OWN and getattr(getattr(type(self), name), "fset", name) is None:
                raise _set_error(_OWN[name], self, name, value)
            for check in SET:
                check(name, value)
            for tell in SETTING:
                tell(self, name)
            super().__setattr__(name, value)

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name or BORDER.sub("_", type(self).__name__).lower()

    def __dir__(self) -> Iterable[str]:
        return [name for name in super().__dir__() if not self._is_absent(name)]

    def _is_absent(self, name: str) -> bool:
        found = getattr_static(self, name, None)
        return isinstance(found, Absent) and not found.is_hiding(type(self))

    @property
    def name_scope(self) -> AbstractContextManager[str]:
        """A context in which new variables' names begin with the module's."""
        return name_scope(self.name)

    @staticmethod
    def with_name_scope(method: Callable[P, T]) -> Callable[P, T]:
        """Decorate a method to run in its module's name scope."""

        @wraps(method)
        def scoped(*args: P.args, **kwargs: P.kwargs) -> T:
            with args[0].name_scope:  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - self
                return method(*args, **kwargs)

        return scoped

    @property
    def named_variables(self) -> dict[str, Variable]:
        """All variables by path, like `layers/0/w`; a module of flax that is not adapted raises."""
        return named_variables(self)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, each once."""
        return tuple(variable for _, variable in self._find_variables())

    def _find_variables(self) -> Iterator[tuple[Path, Variable]]:
        return walk_known(self, Variable)

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The variables that a GradientTape watches by itself."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        """The other variables."""
        return tuple(v for v in self.variables if not v.trainable)

    def select(
        self, *patterns: Selector, but: Selector | Iterable[Selector] = (),
        trainable: bool | None = None, dtype: DTypeLike | None = None,
    ) -> dict[str, Variable]:  # fmt: skip
        """Return the variables whose paths match a pattern, by path; see `jv.select`."""
        return select(self, *patterns, but=but, trainable=trainable, dtype=dtype)

    def astype(
        self, dtype: DTypeLike, *patterns: Selector, but: Selector | Iterable[Selector] = ()
    ) -> Self:
        """Return a copy whose floating-point variables have another dtype.

        As `copy.deepcopy`: what is shared in the module is shared in the copy. A variable's dtype
        is for life, so this module stays as it is.

        Args:
            dtype: a floating-point one, like `jnp.bfloat16`.
            *patterns: for which variables, as for `jv.select`; all when there are none.
            but: less these, such as the statistics of a normalization.

        Raises:
            DtypeError: when the dtype is not a floating-point one, or what holds a variable copies
                itself, as layers of Keras do.
            StateError: when a pattern matches nothing.

        >>> class Net(Module):
        ...     def __init__(self):
        ...         self.w, self.mean = Variable([1.0]), Variable([0.0])
        >>> half = Net().astype("bfloat16", but="**/mean")
        >>> str(half.w.dtype), str(half.mean.dtype)
        ('bfloat16', 'float32')
        """
        if not jnp.issubdtype(jnp.dtype(dtype), jnp.floating):
            raise DtypeError(
                f"astype takes a floating-point dtype, like jnp.bfloat16, not {jnp.dtype(dtype)}: "
                "it converts weights. Other variables are made again, jv.Variable(v.astype(dtype))."
            )
        found = select(self, *patterns, but=but, dtype=jnp.floating)
        memo: dict[int, Any] = {
            id(v): make_variable(
                v.value.astype(dtype), v.name, trainable_flag(v._cell), v._cell.sharding
            )
            for v in found.values()
        }
        made = copy.deepcopy(self, dict(memo))
        there = {id(v) for v in made.variables}
        if lost := [path for path, v in found.items() if id(memo[id(v)]) not in there]:
            raise DtypeError(
                f"astype cannot convert {lost[:_LISTED]}: what holds them copies itself, as layers "
                "of Keras do. Make it with the dtype: keras.layers.Dense(3, dtype='bfloat16')."
            )
        return made

    def _parts_of(self, kind: type) -> Iterable[object]:
        """Return what stands for objects of another library's class here."""
        return ()

    @property
    def submodules(self) -> tuple[Module, ...]:
        """All modules inside, each once, without this one."""
        return tuple(module for _, module in walk(self, Module) if module is not self)

    def summary(self) -> None:
        """Print a table of the variables: path, shape, dtype, trainable, device, bytes.

        Where some are on a mesh: how each is sharded, and the bytes on each device, too. In a
        notebook it is shown as HTML. `table()` returns it.
        """
        view(self, "table").show()

    def table(self) -> Table:
        """Return what `summary` prints, as a sequence of rows."""
        return view(self, "table")


def variables_in(root: object) -> Iterator[tuple[Path, Variable]]:
    """Yield all variables in an object, with their paths.

    Raises:
        InteropError: at a module of another library that holds state, but no variables.
    """
    return root._find_variables() if isinstance(root, Module) else walk_known(root, Variable)


def named_variables(root: object) -> dict[str, Variable]:
    """Return all variables in an object by path; slots are under the paths of their variables.

    Raises:
        InteropError: at a module of another library that holds state, but no variables.
    """
    found = list(variables_in(root))
    owners = {variable._cell.key: variable for _, variable in found}
    cells = cells_by_path((path, variable._cell) for path, variable in found)
    return {path: owners[cell.key] for path, cell in cells.items()}


def all_paths(root: object, named: Mapping[str, Variable]) -> dict[str, list[str]]:
    """Return all paths of the variables in an object, by the path that each is listed under.

    A variable that is shared, or in something shared, has several.
    """
    names = {v._cell.key: path for path, v in named.items()}
    found = {path: [path] for path in named}
    for path, variable in other_paths(root, names):
        if path not in named and variable._cell.key in names:
            found[names[variable._cell.key]].append(path)
    return found


def other_paths(root: object, names: Mapping[int, str]) -> Iterator[tuple[str, Variable]]:
    """Yield the further paths of variables; slots are under the `names` of theirs, by cell key."""

    def name(part: str) -> str:
        owner = part.tie() if isinstance(part, Tied) else None
        return names.get(owner._cell.key, part) if isinstance(owner, Variable) else part

    return (("/".join(map(name, parts)), v) for parts, v in walk_again(root, Variable))


def select(
    root: object, *patterns: Selector, but: Selector | Iterable[Selector] = (),
    trainable: bool | None = None, dtype: DTypeLike | None = None,
) -> dict[str, Variable]:  # fmt: skip
    """Return the variables of an object that match a pattern, by path.

    The dict goes where variables do: `optimizer.minimize(loss, found)`, `jv.State.of(found)`,
    `jv.freeze(found)`, `jv.place(found, spec)`, a checkpoint; `list(found.values())` is a list.

    Args:
        root: a Module, or anything with Variables in it.
        *patterns: each a glob for the whole path, like "encoder/**" or "**/kernel", where `*` and
            `?` stand for characters of one part and `**` for any parts; or a compiled regular
            expression, which is searched in the path; or a function of path and variable; or a
            class, for the variables of its objects. All variables when there are none. A variable
            that has several paths, as it is shared, is matched by each of them.
        but: one such pattern or several: these variables are left out.
        trainable: those only that are trainable, or that are not.
        dtype: those only of this dtype, or kind of dtypes, like `jnp.floating`.

    Raises:
        StateError: when a pattern matches nothing, or nothing is left.
        ValueError: when a string is a regular expression rather than a glob.
        TypeError: when a pattern is something else.

    >>> import jaxvars as jv
    >>> layer = {"kernel": jv.Variable([[1.0]]), "bias": jv.Variable([0.0])}
    >>> model = {"encoder": [layer], "head": jv.Variable([2.0])}
    >>> list(select(model, "encoder/**", "head"))
    ['encoder/0/bias', 'encoder/0/kernel', 'head']
    >>> list(select(model, but="**/bias"))
    ['encoder/0/kernel', 'head']
    >>> list(select(model, lambda path, v: v.ndim == 2))
    ['encoder/0/kernel']
    """
    named = named_variables(root)
    if not named:
        raise StateError(
            f"This {type(root).__name__} has no Variable to select at {user_line()}: if "
            "its layers make them when they are first called, call it once before."
        )
    left_out = (but,) if isinstance(but, str | re.Pattern) or callable(but) else but
    paths = all_paths(root, named)
    wanted, unwanted = (
        {path for pattern in given for path in _match(root, named, paths, pattern)}
        for given in (patterns or ("**",), left_out)
    )
    found = {
        path: v
        for path, v in named.items()
        if path in wanted - unwanted
        and trainable in (None, v.trainable)
        and (dtype is None or is_of_kind(v.dtype, dtype))
    }
    if not found:
        given = {"but": but or None, "trainable": trainable, "dtype": dtype}
        said = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        raise StateError(f"None of the variables at {sorted(wanted)[:_LISTED]} is left by {said}.")
    return found


def _match(
    root: object, named: Mapping[str, Variable], paths: Mapping[str, list[str]], pattern: Selector
) -> list[str]:
    """Return the first paths of what a pattern matches; raise StateError if there is nothing."""
    if isinstance(pattern, type):
        parts = [
            part
            for _, found in walk(root, (pattern, Module))
            for part in ([found] if isinstance(found, pattern) else found._parts_of(pattern))
        ]
        inside = {id(v) for part in parts for _, v in variables_in(part)}
        found = [path for path, v in named.items() if id(v) in inside]
    else:
        fits = matcher(pattern)
        found = [name for name, v in named.items() if any(fits(path, v) for path in paths[name])]
    if found:
        return found
    what = f"class {pattern.__name__}" if isinstance(pattern, type) else repr(pattern)
    known = [path for each in paths.values() for path in each]
    near = did_you_mean(pattern.replace("*", ""), known) if isinstance(pattern, str) else ""
    raise StateError(
        f"No variable matches {what} at {user_line()}."
        f"{near or f' The paths begin with {known[:_LISTED]}.'}"
    )


def _holds_variables(value: Any) -> bool:
    """Return whether what a class has is a variable, or holds one: a module, or a list or dict."""
    inner = value.values() if isinstance(value, dict) else value
    parts: Iterable[Any] = inner if isinstance(value, dict | list | tuple) else [value]
    return any(x.variables if isinstance(x, Module) else isinstance(x, Variable) for x in parts)


def _set_error(words: str, module: Module, name: str, value: object) -> AttributeError:
    kind, given = type(module).__name__, type(value).__name__
    return shown(AttributeError(words.format(kind=kind, name=name, value=given, line=user_line())))


def _find_replaced(module: Module, name: str) -> Any:
    """Return what setting an attribute replaces; None where its class decides what setting means.

    It does not call `__getattr__`, which a class may have.
    """
    declared = getattr(type(module), name, None)
    if isinstance(declared, MemberDescriptorType):
        with suppress(AttributeError):
            return declared.__get__(module)
        return None
    return None if hasattr(declared, "__set__") else vars(module).get(name, declared)

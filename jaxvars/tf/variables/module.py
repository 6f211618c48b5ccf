"""`tf.Module`: a `jaxvars.Module` that lists what is in it by TensorFlow's rules.

Rules this file keeps:
- attributes are listed by name, with lists and dicts within them, a module's own variables before
  those of its submodules; other objects are not entered;
- a variable of jaxvars is shown as the `tf.Variable` that stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jaxvars.autograph.operators.world import BARE
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.modules.module import SETTING
from jaxvars.modules.module import Module as CoreModule
from jaxvars.tf.context.scope import name_scope, whole_scope
from jaxvars.tf.nest import is_nested
from jaxvars.tf.variables.variable import Variable, face_of

Path = tuple[Any, ...]


class Module(CoreModule):
    """The base of objects with variables.

    Args:
        name: what it is called; the class name in snake case when None.

    Raises:
        ValueError: when the name is not a Python identifier.

    >>> from jaxvars import tf
    >>> class Scale(tf.Module):
    ...     def __init__(self, name=None):
    ...         super().__init__(name=name)
    ...         with self.name_scope:
    ...             self.factor = tf.Variable(2.0, name="factor")
    >>> scale = Scale()
    >>> scale.name, scale.variables
    ('scale', (<tf.Variable 'scale/factor:0' shape=() dtype=float32, numpy=2.0>,))

    Differs from TensorFlow: its name is there without `super().__init__()`, too.
    """

    _TF_MODULE_IGNORED_PROPERTIES: frozenset[str] = frozenset()
    _name_scope: name_scope

    def __init__(self, name: str | None = None) -> None:
        if name is not None and not name.isidentifier():
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python "
                "identifiers (e.g. a valid class name)."
            )
        super().__init__(name)
        self._name_scope = name_scope(f"{whole_scope()}{self.name}/")

    def __setattr__(self, name: str, value: Any, /) -> None:
        for tell in SETTING:
            tell(self, name)
        object.__setattr__(self, name, value)  # a variable may be replaced by anything, as there

    def __rich_repr__(self) -> Iterator[Any]:
        yield from (part for part in super().__rich_repr__() if part[0] != "_name_scope")

    @property
    def name_scope(self) -> name_scope:
        """A context in which new variables' names begin with the module's, wherever it is used."""
        return self._name_scope

    @property
    def variables(self) -> tuple[Variable, ...]:  # pyright: ignore[reportIncompatibleMethodOverride] - faces
        """All variables, each once, in a fixed order."""
        return _variables_of(self)

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:  # pyright: ignore[reportIncompatibleMethodOverride] - faces
        """The variables that a GradientTape watches automatically."""
        return tuple(v for v in _variables_of(self) if v.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:  # pyright: ignore[reportIncompatibleMethodOverride] - faces
        """The other variables."""
        return tuple(v for v in _variables_of(self) if not v.trainable)

    @property
    def submodules(self) -> tuple[CoreModule, ...]:
        """All modules inside, each once, without this one."""
        return tuple(self._flatten(predicate=lambda leaf: isinstance(leaf, CoreModule)))

    def _flatten(
        self,
        recursive: bool = True,
        predicate: Callable[[Any], bool] | None = None,
        attribute_traversal_key: Callable[[str], Any] | None = None,
        with_path: bool = False,
        expand_composites: bool = False,
    ) -> Iterator[Any]:
        """Yield what is in the attributes, and in those of the modules among them.

        Args:
            recursive: enter the modules that are found.
            predicate: what to yield; everything when None.
            attribute_traversal_key: what attributes' names are sorted by.
            with_path: yield pairs of a path and the object, which may be there by several paths.
            expand_composites: of no effect.
        """
        seen = None if with_path else {id(self): self}
        found = _flatten_module(self, (), recursive, attribute_traversal_key, seen)
        for path, leaf in found:
            if predicate is None or predicate(leaf):
                yield (path, leaf) if with_path else leaf


def _variables_of(module: Module) -> tuple[Variable, ...]:
    """Return the variables, whatever a subclass makes of `variables`."""
    found = module._flatten(predicate=lambda leaf: isinstance(leaf, Variable | CoreVariable))
    return tuple(v if isinstance(v, Variable) else face_of(v) for v in found)


def _flatten_module(
    module: CoreModule,
    path: Path,
    recursive: bool,
    key: Callable[[str], Any] | None,
    seen: dict[int, Any] | None,
    outer: tuple[CoreModule, ...] = (),
) -> Iterator[tuple[Path, Any]]:
    inner: list[tuple[Path, CoreModule]] = []
    ignored = getattr(module, "_TF_MODULE_IGNORED_PROPERTIES", frozenset[str]())
    for name in sorted(vars(module), key=key):
        if name in ignored:
            continue
        for leaf_path, leaf in _property_leaves(module, (*path, name)):
            if seen is not None:
                if id(leaf) in seen:
                    continue
                seen[id(leaf)] = leaf  # kept, so that no other one is taken for it
            yield leaf_path, leaf
            is_around = any(leaf is one for one in (module, *outer))
            if recursive and isinstance(leaf, CoreModule) and not is_around:
                inner.append((leaf_path, leaf))
    for below, submodule in inner:
        yield from _flatten_module(submodule, below, recursive, key, seen, (*outer, module))


def _property_leaves(module: CoreModule, path: Path) -> list[tuple[Path, Any]]:
    name = path[-1]
    try:
        return list(_leaves(vars(module)[name], path))
    except TypeError as error:
        raise ValueError(
            f"Error processing property {name!r} of {type(module).__name__}: the keys of a dict "
            f"must be sortable ({error})."
        ) from error


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if not is_nested(value):
        yield path, value
        return
    if isinstance(value, Mapping):
        parts: Any = [(name, value[name]) for name in sorted(value)]
    elif hasattr(value, "_fields"):
        parts = zip(value._fields, value, strict=True)
    else:
        parts = enumerate(value)
    for name, part in parts:
        yield from _leaves(part, (*path, name))


BARE.add(Module)

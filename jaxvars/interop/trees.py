"""`variables`: a Variable for each array of a pytree, read and assigned as a whole.

Rules this file keeps:
- what is not an array stays as it is, and cannot be assigned;
- a tree is read at one moment, and assigned all or nothing: one error lists all that does not fit;
- variables are found where the tree has them; in classes whose attributes do not hold them, under
  the paths that JAX gives them.
"""

from __future__ import annotations

import copy
from typing import Any, final

import jax
import numpy as np

from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable
from jaxvars.errors import JaxvarsError, StateError, user_line
from jaxvars.modules.state import unique
from jaxvars.objects.key_order import ordered_like
from jaxvars.objects.traversal import Proxy, reaches, walk
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tensors.tensor import fit

_CONSTANTS = (bool, int, float, complex, str, bytes)  # known by type and repr


def variables(tree: Any) -> VariableTree:
    """Make a Variable of each array in a pytree: of parameters, optax states, equinox modules.

    Args:
        tree: any pytree, whose arrays (JAX's or NumPy's) are copied. What else it has stays:
            Python's numbers, None, strings, functions, and Variables.

    Returns:
        The tree as one thing: its `value`, `assign(tree)`, and the Variables in their places,
        `tree`. As an attribute of a Module, or in a list or dict, its variables are found by
        `State`, `Checkpoint`, `place` and `Module.variables`, under the tree's own paths. Those
        of floating dtypes are trainable.

    >>> import jax.numpy as jnp, optax
    >>> import jaxvars as jv
    >>> params = variables({"w": jnp.ones(2), "layers": [0.5, None]})
    >>> params.tree["w"].assign([2.0, 3.0])
    <Variable 'w' float32[2] [2. 3.]>
    >>> params.value
    {'w': Array([2., 3.], dtype=float32), 'layers': [0.5, None]}
    >>> state = variables(optax.adam(0.1).init({"w": jnp.ones(2)}))
    >>> list(jv.State.of(state))
    ['0/count', '0/mu/w', '0/nu/w']
    """
    return VariableTree(tree)


@final
class VariableTree(Proxy):
    """A pytree of Variables: what `jv.variables` makes.

    Attributes:
        tree: of the same structure, with the Variables in it.
    """

    __slots__ = ("__weakref__", "_found", "_paths", "_structure", "tree")

    def __init__(self, tree: Any) -> None:
        given, self._structure = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_variable)
        self._paths = [path_of(path) for path, _ in given]
        leaves = [adapt(p, x) for p, (_, x) in zip(self._paths, given, strict=True)]
        self.tree = ordered_like(tree, jax.tree.unflatten(self._structure, leaves))
        known = {id(v) for _, v in walk(self.tree, Variable)}
        self._found: Any = self.tree
        if not known >= {id(x) for x in leaves if is_variable(x)}:
            self._found = {}
            for path, leaf in zip(self._paths, leaves, strict=True):
                self._found[unique(path, self._found)] = leaf

    @property
    def aliased(self) -> Any:
        """What is found in its place."""
        return self._found

    @property
    def value(self) -> Any:
        """The tree with the values of now, read at one moment."""
        leaves = self._leaves()
        owners = [x for x in leaves if isinstance(x, Variable)]
        values = iter(LOCAL.frame.read_all([v._cell for v in owners]))
        made = [next(values) if isinstance(x, Variable) else x for x in leaves]
        return ordered_like(self.tree, jax.tree.unflatten(self._structure, made))

    def assign(self, tree: Any) -> VariableTree:
        """Assign a tree of the same structure, all of it or nothing.

        Args:
            tree: with values of the variables' shapes and dtypes, which are copied; what is not an
                array must be as it was.

        Raises:
            StateError: listing all that does not fit, or when the structure is another one.
        """
        given = tree.value if isinstance(tree, VariableTree) else tree
        values, structure = jax.tree.flatten(given, is_leaf=is_variable)
        if structure != self._structure:
            raise StateError(
                f"The tree assigned at {user_line()} has another structure:\n  {structure}\n"
                f"and the variables have\n  {self._structure}"
            )
        new, problems = [], []
        for path, old, value in zip(self._paths, self._leaves(), values, strict=True):
            try:
                new += _fit(old, value)
            except (JaxvarsError, TypeError, ValueError) as error:
                problems.append(f"{path}: {error}")
        if problems:
            raise StateError("Nothing was assigned:\n  " + "\n  ".join(problems))
        LOCAL.frame.write_all([v._cell for v, _ in new], [x for _, x in new])
        return self

    def _leaves(self) -> list[Any]:
        return jax.tree.leaves(self.tree, is_leaf=is_variable)

    def __reduce__(self) -> tuple[Any, ...]:
        return VariableTree, (self.tree,)  # a structure that was pickled may be another one

    def __deepcopy__(self, memo: dict[int, Any]) -> VariableTree:
        made = [copy.deepcopy(x, memo) if reaches(x, is_variable) else x for x in self._leaves()]
        return VariableTree(ordered_like(self.tree, jax.tree.unflatten(self._structure, made)))

    def __repr__(self) -> str:
        return f"variables({self.tree!r})"


def adapt(path: str, leaf: Any, trainable: bool = True) -> Any:
    """Return a Variable of an array, trainable if it is inexact; what is not an array, as it is."""
    if not isinstance(leaf, jax.Array | np.ndarray | np.generic):
        return leaf
    return Variable(leaf, trainable=trainable and is_inexact(leaf), name=path or None)


def _fit(old: Any, value: Any) -> list[tuple[Variable, Any]]:
    if isinstance(old, Variable):
        cell = old._cell
        return [(old, fit(unwrap(value), cell.aval.shape, cell.aval.dtype, cell))]
    same = type(old) is type(value) and type(old) in _CONSTANTS and repr(old) == repr(value)
    if not same and old is not value:
        raise StateError(f"it is {old!r}, not an array, and so cannot become {value!r}")
    return []


def path_of(keys: Any) -> str:
    return jax.tree_util.keystr(keys, simple=True, separator="/")


def is_variable(value: object) -> bool:
    return isinstance(value, Variable)

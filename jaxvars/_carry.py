"""What branches return and loops carry: its form is one, whatever way a program goes.

A value is taken apart (`Rebuild`) into arrays and a form: the structure, and parts that are no
arrays. The forms must be equal; so must shapes; dtypes must be equal or one of them a Python
number's, which takes the other's. What differs is refused by the name of the Python variable.

Rule this file keeps: eagerly and staged, the same values are refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars import _trace
from jaxvars._frames import Rebuild
from jaxvars.errors import ControlFlowError, user_line

Value: TypeAlias = Any
Names: TypeAlias = Sequence[str]

_KINDS = "biufc"


@final
class Type(NamedTuple):
    """The type of an array: a weak one, of a Python number, takes the dtype of others."""

    shape: tuple[int, ...]
    dtype: Any
    weak: bool

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def type_of(value: Any) -> Type:
    """Return the type of an array, a tracer, a number or an abstract value."""
    if not hasattr(value, "dtype"):
        value = jax.typeof(value)
    return Type(tuple(value.shape), value.dtype, bool(getattr(value, "weak_type", False)))


def joined(one: Type, other: Type) -> Type | None:
    """Return the type for values of either type; None if there is none."""
    if one.shape != other.shape:
        return None
    if one.dtype == other.dtype:
        return one._replace(weak=one.weak and other.weak)
    for weak, strong in ((one, other), (other, one)):
        if weak.weak and _rank(weak.dtype) <= _rank(strong.dtype):
            return strong
    return None


def _rank(dtype: Any) -> int:
    kind = np.dtype(dtype).kind if not jnp.issubdtype(dtype, jax.dtypes.extended) else "-"
    kind = "f" if kind == "V" else kind.replace("u", "i")  # bfloat16 and its kin
    return _KINDS.find(kind)


def converted(value: Value, kind: Type) -> Value:
    """Return a value as an array of a type that was joined from its own."""
    value = jnp.asarray(value)
    have = type_of(value)
    if have.dtype == kind.dtype and have.weak == kind.weak:
        return value
    return jax.lax.convert_element_type(value, kind.dtype)


# ---------------------------------------------------------------- comparing
@final
class Difference(NamedTuple):
    """Where two values differ: in what, and how each is there."""

    label: str
    one: str
    other: str


def difference(
    one: Rebuild, other: Rebuild, types: Sequence[Sequence[Type]], names: Names
) -> Difference | None:
    """Return the first difference of two tuples, whose elements have names; None if none."""
    if one.treedef != other.treedef:
        return _different_structure(one, other, types, names)
    arrays = zip(*types, strict=False)
    for i, (a, b) in enumerate(zip(one.constants(), other.constants(), strict=True)):
        if a is None and b is None:
            x, y = next(arrays)
            if joined(x, y) is None:
                return Difference(_label(one.treedef, i, names), str(x), str(y))
        elif a is None or b is None or not _is_same(a(), b()):
            text = [_text(rebuild, i, kinds) for rebuild, kinds in zip((one, other), types)]  # noqa: B905 - two each
            return Difference(_label(one.treedef, i, names), *text)
    return None


def _different_structure(
    one: Rebuild, other: Rebuild, types: Sequence[Sequence[Type]], names: Names
) -> Difference:
    trees = [
        rebuild(list(map(str, kinds)))
        for rebuild, kinds in zip((one, other), types, strict=True)
    ]
    for name, a, b in zip(names, *trees, strict=False):
        if jax.tree.structure(a) != jax.tree.structure(b):
            return Difference(repr(name), described(a), described(b))
    return Difference("the result", described(trees[0]), described(trees[1]))


def described(tree: Any) -> str:
    """Return a tree, whose arrays were replaced by the text of their types, as text."""
    return str(tree) if isinstance(tree, str) else repr(tree).replace("'", "")


def _text(rebuild: Rebuild, i: int, types: Sequence[Type]) -> str:
    constant = rebuild.constants()[i]
    if constant is not None:
        return repr(constant())
    return str(types[sum(c is None for c in rebuild.constants()[:i])])


def _is_same(one: object, other: object) -> bool:
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # noqa: BLE001 - an == that fails says that they are not the same
        return False


def _label(treedef: Any, i: int, names: Names) -> str:
    numbered = jax.tree.unflatten(treedef, range(treedef.num_leaves))
    path = jax.tree_util.tree_flatten_with_path(numbered)[0][i][0]
    name = names[path[0].idx] if path and path[0].idx < len(names) else "the result"
    return repr(name + jax.tree_util.keystr(path[1:]))


# ---------------------------------------------------------------- loops
@final
class Carried:
    """The values that a loop carries from one iteration to the next.

    Args:
        values: before the first iteration, a tuple.
        names: of its elements.

    Attributes:
        arrays: those of the values that are arrays.
    """

    def __init__(self, values: tuple[Any, ...], names: Names) -> None:
        self._names = names
        self._line = user_line()
        self._take(values)

    def _take(self, values: tuple[Any, ...]) -> None:
        self._form = Rebuild(values)
        self.arrays = [jnp.asarray(x) for x in self._form.arrays]
        self._form.arrays = []
        self._types = [type_of(x) for x in self.arrays]

    def __call__(self, arrays: Sequence[Value]) -> tuple[Any, ...]:
        """Return the values with these arrays in them."""
        return self._form(arrays)

    def accept(self, form: Rebuild, types: Sequence[Type]) -> bool:
        """Check what an iteration returned; return False if it is to be traced once more.

        That is with the arrays that are here now: a Python number has taken another type.

        Raises:
            ControlFlowError: when it can be carried in no way.
        """
        if form.treedef != self._form.treedef and self._reshape(form, types):
            return False
        if (found := difference(self._form, form, (self._types, types), self._names)) is not None:
            raise self._change(found)
        both = zip(self._types, types, strict=True)
        new = [joined(a, b) or a for a, b in both]
        if new == self._types:
            return True
        self.arrays = self.cast(self.arrays, new)
        self._types = new
        return False

    def cast(self, arrays: Sequence[Value], types: Sequence[Type] | None = None) -> list[Value]:
        """Return arrays, of types that were accepted, as those that are carried."""
        return [converted(x, t) for x, t in zip(arrays, types or self._types, strict=True)]

    def advance(self, values: Any) -> list[Value]:
        """Return the arrays for the next iteration, of one that was run."""
        form = Rebuild(values)
        arrays = [jnp.asarray(x) for x in form.arrays]
        form.arrays = []
        self.accept(form, list(map(type_of, arrays)))
        return self.cast(arrays)

    def _reshape(self, form: Rebuild, types: Sequence[Type]) -> bool:
        """Let values that know how to (TensorArrays) take the form of what was returned."""
        specs = form([jax.ShapeDtypeStruct(t.shape, t.dtype) for t in types])
        try:
            values = jax.tree.map(_like, self._form(self.arrays), specs, is_leaf=_takes_form)
        except ValueError:  # structures differ elsewhere, too
            return False
        if jax.tree.structure(values) == self._form.treedef:
            return False
        self._take(values)
        return True

    def _change(self, found: Difference) -> ControlFlowError:
        return ControlFlowError(
            f"The loop at {self._line} changes {found.label} from {found.one} to {found.other} in "
            "an iteration, but what a loop carries keeps its structure, shape and dtype. Make it "
            "so before the loop, or convert it at the end of the body, for example with "
            "x.astype(...) or reshape."
        )


def _takes_form(value: Any) -> bool:
    return hasattr(value, "__carry_like__")


def _like(value: Any, other: Any) -> Any:
    return value.__carry_like__(other) if _takes_form(value) else value


# ---------------------------------------------------------------- arguments
def truth(pred: Any) -> Value:
    """Return a condition as a bool, or a traced scalar one.

    Raises:
        ControlFlowError: when it is no scalar.
    """
    if isinstance(pred, bool):
        return pred
    value = jnp.asarray(pred)
    if value.shape:
        raise ControlFlowError(
            f"The condition at {user_line()} has shape {list(value.shape)}: is it to hold for "
            "all elements, or for any? Write jnp.all(...) or jnp.any(...)."
        )
    value = value if value.dtype == bool else value != 0
    return value if _trace.is_tracer(value) else bool(value)


def index_of(index: Any, count: int) -> Value:
    """Return the index of a branch, clamped, as an int or a traced one.

    Raises:
        ControlFlowError: when it is no integer scalar.
    """
    value = jnp.asarray(index)
    if value.shape or not jnp.issubdtype(value.dtype, jnp.integer):
        raise ControlFlowError(
            f"The index of a branch at {user_line()} is an integer, not {type_of(value)}."
        )
    if _trace.is_tracer(value):
        return jnp.clip(value, 0, count - 1)
    return min(max(int(value), 0), count - 1)


def leading_size(arrays: Iterable[Any], length: int | None) -> int:
    """Return the size of the first axis of all arrays.

    Raises:
        ControlFlowError: when they have none, or different ones, or not `length`.
    """
    shapes = [jnp.shape(x) for x in arrays]
    sizes = {shape[0] if shape else None for shape in shapes} | ({length} - {None})
    if len(sizes) != 1 or None in sizes:
        raise ControlFlowError(
            f"What is looped over at {user_line()} must have one size along its first axis, "
            f"{'' if length is None else f'and length={length} must be the same: '}"
            f"there are arrays of shapes {[list(shape) for shape in shapes]}."
            if sizes
            else f"The loop at {user_line()} has neither arrays to go over nor a length."
        )
    return int(next(iter(sizes)))  # pyright: ignore[reportArgumentType] - not None


def parameter_name(fn: Callable[..., Any], i: int) -> str:
    """Return the name of a parameter, for messages."""
    try:
        return list(inspect.signature(fn).parameters)[i]
    except (TypeError, ValueError, IndexError):
        return "the carry"

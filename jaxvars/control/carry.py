"""What branches return and loops carry: its form is one, whatever way a program goes.

A value is taken apart (`Rebuild`) into arrays and a form: the structure, and parts that are no
arrays. The forms must be equal; so must shapes; dtypes must be equal or one of them a Python
number's, which takes the other's. What differs is refused by the name of the Python variable.

Rule this file keeps: eagerly and staged, the same values are refused.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.staging import Rebuild
from jaxvars.errors import ControlFlowError, user_line
from jaxvars.tensors.array_like import plain
from jaxvars.tensors.tensor import refuse_masked
from jaxvars.tensors.wrapping import is_boxing, words
from jaxvars.tracing import context
from jaxvars.tracing.identity import Same, exact
from jaxvars.tracing.key_order import map_leaves

Value: TypeAlias = Any
Names: TypeAlias = Sequence[str]

_LARGEST = np.iinfo(np.int64).max
_KINDS = (jnp.bool_, jnp.integer, jnp.floating, jnp.complexfloating)


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


def all_joined(ones: Sequence[Type], others: Sequence[Type]) -> list[Type]:
    """Return the types for values of either types, which do not differ."""
    return [joined(one, other) or one for one, other in zip(ones, others, strict=True)]


def _rank(dtype: Any) -> int:
    return next((i for i, kind in enumerate(_KINDS) if jnp.issubdtype(dtype, kind)), -1)


def converted(value: Value, kind: Type) -> Value:
    """Return a value as an array of a type that was joined from its own.

    Raises:
        ControlFlowError: when it is a known integer that the type does not hold.
    """
    array = jnp.asarray(value)
    have = type_of(array)
    if have.dtype == kind.dtype and have.weak == kind.weak:
        return array
    if not context.is_tracer(value) and jnp.issubdtype(kind.dtype, jnp.integer):
        _check_fits(np.asarray(value), kind)
    return jax.lax.convert_element_type(array, kind.dtype)


def _check_fits(value: Any, kind: Type) -> None:
    info: Any = jnp.iinfo(kind.dtype)
    if value.size and not info.min <= value.min() <= value.max() <= info.max:
        raise ControlFlowError(
            f"At {user_line()} {value} is to be a {kind.dtype}, as the other branch or the next "
            f"iteration has it, but that holds {info.min} to {info.max}. Convert the other one to "
            "a wider dtype."
        )


def plainly(value: Any) -> Any:
    """Return a value with arrays for the variables in it: what they hold now."""
    return map_leaves(lambda x: x, value)


def taken_apart(value: Any) -> tuple[Rebuild, list[Value]]:
    """Return a value's form, which holds no arrays, and its arrays."""
    form = Rebuild(plainly(value))
    arrays, form.arrays = form.arrays, []
    return form, arrays


# ---------------------------------------------------------------- comparing
@final
class Difference(NamedTuple):
    """Where two values differ: in what, how each is there, and their types if these differ."""

    label: str
    one: str
    other: str
    types: tuple[Type, Type] | None = None


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
                return Difference(_label(one.treedef, i, names), str(x), str(y), (x, y))
        elif a is None or b is None or not _is_same(a(), b()):
            text = [_text(rebuild, i, kinds) for rebuild, kinds in zip((one, other), types)]  # noqa: B905 - two each
            said = f"another {text[1]}" if text[0] == text[1] else text[1]
            return Difference(_label(one.treedef, i, names), text[0], said)
    return None


def _different_structure(
    one: Rebuild, other: Rebuild, types: Sequence[Sequence[Type]], names: Names
) -> Difference:
    trees = [
        rebuild(list(map(_Shown, kinds)))
        for rebuild, kinds in zip((one, other), types, strict=True)
    ]
    for name, a, b in zip(names, *trees, strict=False):
        if jax.tree.structure(a) != jax.tree.structure(b):
            return Difference(_said(name), repr(a), repr(b))
    return Difference(_RESULT, repr(trees[0]), repr(trees[1]))


def described(value: Any) -> str:
    """Return a value as text, with types for arrays."""
    form, arrays = taken_apart(value)
    return repr(form([_Shown(type_of(x)) for x in arrays]))


@final
class _Shown:
    """Stands for an array in the text of a structure."""

    __slots__ = ("_type",)

    def __init__(self, kind: Type) -> None:
        self._type = kind

    def __repr__(self) -> str:
        return str(self._type)


_RESULT = "the result"


def _said(name: str) -> str:
    return name if name.startswith("the ") else repr(name)


def _text(rebuild: Rebuild, i: int, types: Sequence[Type]) -> str:
    constant = rebuild.constants()[i]
    if constant is not None:
        return repr(constant())
    return str(types[sum(c is None for c in rebuild.constants()[:i])])


def _is_same(one: object, other: object) -> bool:
    """Return whether two parts are one object, or values that nothing tells apart."""
    try:
        return one is other or bool(exact(one, Same) == exact(other, Same))
    except Exception:  # noqa: BLE001 - an == that fails says that they are not the same
        return False


def _label(treedef: Any, i: int, names: Names) -> str:
    numbered = jax.tree.unflatten(treedef, range(treedef.num_leaves))
    path = jax.tree_util.tree_flatten_with_path(numbered)[0][i][0]
    place = int(path[0].idx) if path else len(names)
    name = names[place] if place < len(names) else _RESULT
    return _said(name + jax.tree_util.keystr(path[1:]))


# ---------------------------------------------------------------- branches
@final
class Result(NamedTuple):
    """What a branch returns.

    Attributes:
        form: of the result.
        types: of its arrays.
        arrays: takes the arrays that the branch's program gives to these.
    """

    form: Rebuild
    types: Sequence[Type]
    arrays: Callable[[Sequence[Value]], Sequence[Value]]


def alike(forms: Sequence[Rebuild], types: Sequence[Sequence[Type]]) -> list[Result]:
    """Return what branches return, with values that know how to in the form of the others'.

    A TensorArray that was not written in one branch takes the element shape it has in another.
    """
    same = all(form.treedef == forms[0].treedef for form in forms)
    pairs = list(zip(forms, types, strict=True))
    if same:
        return [Result(form, kinds, list) for form, kinds in pairs]
    specs = [_specs(kinds) for kinds in types]
    others = [form(structs) for form, structs in zip(forms, specs, strict=True)]
    return [_like_all(form, kinds, others) for form, kinds in zip(forms, specs, strict=True)]


def _like_all(form: Rebuild, specs: Sequence[Any], others: Sequence[Any]) -> Result:
    box: list[Rebuild] = []

    def arrays(values: Sequence[Value]) -> list[Value]:
        value = form(values)
        for other in others:
            value = _tree_like(value, other)
        new, arrays = taken_apart(value)
        box[:] = [new]
        return arrays

    types = list(map(type_of, jax.eval_shape(arrays, list(specs))))
    return Result(box[0], types, arrays)


def _specs(types: Sequence[Type]) -> list[Any]:
    return [jax.ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak) for t in types]


def _tree_like(value: Any, other: Any) -> Any:
    """Return a value whose parts that know how to have the form of another's."""
    try:
        return map_leaves(_like, value, other, is_leaf=_takes_form)
    except ValueError:  # structures differ elsewhere, too
        return value


def _takes_form(value: Any) -> bool:
    return hasattr(value, "__carry_like__")


def _like(value: Any, other: Any) -> Any:
    return value.__carry_like__(other) if _takes_form(value) else value


# ---------------------------------------------------------------- loops
@final
class Carried:
    """The values that a loop carries from one iteration to the next.

    Args:
        values: before the first iteration, a tuple.
        names: of its elements.

    Attributes:
        arrays: those of the values that are arrays.
        line: of the loop.
    """

    def __init__(self, values: tuple[Any, ...], names: Names) -> None:
        self._names = names
        self.line = user_line()
        self._take(values)

    def _take(self, values: tuple[Any, ...]) -> None:
        self._form, arrays = taken_apart(values)
        self.arrays = [jnp.asarray(x) for x in arrays]
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
        new = all_joined(self._types, types)
        if new == self._types:
            return True
        self.arrays = self.cast(self.arrays, new)
        self._types = list(map(type_of, self.arrays))
        return False

    def cast(self, arrays: Sequence[Value], types: Sequence[Type] | None = None) -> list[Value]:
        """Return arrays, of types that were accepted, as those that are carried."""
        return [converted(x, t) for x, t in zip(arrays, types or self._types, strict=True)]

    def advance(self, values: Any) -> list[Value]:
        """Return the arrays for the next iteration, of one that was run."""
        form, arrays = taken_apart(values)
        arrays = [jnp.asarray(x) for x in arrays]
        self.accept(form, list(map(type_of, arrays)))
        return self.cast(arrays)

    def _reshape(self, form: Rebuild, types: Sequence[Type]) -> bool:
        """Let values that know how to (TensorArrays) take the form of what was returned."""
        values = _tree_like(self._form(self.arrays), form(_specs(types)))
        if jax.tree.structure(values) == self._form.treedef:
            return False
        self._take(values)
        return True

    def _change(self, found: Difference) -> ControlFlowError:
        return ControlFlowError(
            f"{_boxed_change(found, self.line) if is_boxing() else _change(found, self.line)} "
            "what a loop carries keeps its structure, shape and dtype. Make it so before the loop, "
            f"or convert it at the end of the body, for example with {words().cast} or reshape."
        )


def _change(found: Difference, line: str) -> str:
    change = f"changes {found.label} from {found.one} to {found.other} in an iteration"
    return f"The loop at {line} {change}, but"


def _boxed_change(found: Difference, line: str) -> str:
    """Return what changes, as shapes and dtypes of tensors."""
    if found.types is None:
        said = f"does not have the same nested structure: it is {found.one}"
        return f"{found.label} {said} before the loop, and {found.other} after it ({line}):"
    what = "dtype" if found.types[0].dtype != found.types[1].dtype else "shape"
    one, other = (f"{what} {getattr(kind, what)}" for kind in found.types)
    return f"{found.label} has {one} before the loop, but {other} after one iteration ({line}):"


def stackable(y: Any, line: str) -> tuple[Rebuild, list[Value]]:
    """Take the output of an iteration apart, as a tuple of one; refuse what can't be stacked."""
    form, arrays = taken_apart((y,))
    if not form.is_plain:
        raise ControlFlowError(
            f"An output of the loop at {line} holds what is no array, and can't be stacked: {y!r}."
        )
    return form, arrays


@final
class Stack:
    """The outputs of the iterations of a loop."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._rows: dict[int, Sequence[Value]] = {}
        self._form = Rebuild(None)
        self._types: Sequence[Type] = ()

    def put(self, i: int, y: Any) -> None:
        """Take the output of iteration i.

        Raises:
            ControlFlowError: when it is no array, or differs in form from that of another.
        """
        form, arrays = stackable(y, self._line)
        types = list(map(type_of, arrays))
        if not self._rows:
            self._form, self._types = form, types
        found = difference(self._form, form, (self._types, types), ("the output",))
        if found is not None:
            raise ControlFlowError(
                f"The outputs of the loop at {self._line} can't be stacked: {found.label} is "
                f"{found.one} in one iteration and {found.other} in another."
            )
        self._types = all_joined(self._types, types)
        self._rows[i] = arrays

    def whole(self) -> Any:
        """Return the outputs of all iterations; there is at least one."""
        rows = [self._rows[i] for i in range(len(self._rows))]
        columns = zip(zip(*rows, strict=True), self._types, strict=True)
        return self._form([jnp.stack([converted(x, t) for x in xs]) for xs, t in columns])[0]


# ---------------------------------------------------------------- arguments
def settled(value: Any) -> Value:
    """Return a value as an array: if it is known NumPy's, which no trace makes its own.

    Known integers are as wide as they were given.
    """
    value = plain(value)
    if context.is_tracer(value):
        return value
    if type(value) is int:  # of any size: NumPy's largest one stands for what is larger
        value = max(min(value, _LARGEST), -_LARGEST)
    refuse_masked([value], "a condition, an index or a bound")
    array = np.asarray(value)
    if array.dtype.kind in "OSUT":
        raise ControlFlowError(
            f"A number or an array is needed at {user_line()}, not {type(value).__name__} "
            f"{value!r}. What is no tensor may be asked by Python: `if`, `while`."
        )
    if jnp.issubdtype(array.dtype, jnp.integer):  # 2**32 is not false
        return array
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype))


def truth(pred: Any) -> Value:
    """Return a condition as a bool, or a traced scalar one.

    Raises:
        ControlFlowError: when it is no scalar.
    """
    if isinstance(pred, bool):
        return pred
    value = settled(pred)
    if value.shape:
        raise ControlFlowError(
            f"The condition at {user_line()} has shape {list(value.shape)}: is it to hold for "
            "all elements, or for any? Write jnp.all(...) or jnp.any(...)."
        )
    value = value if value.dtype == bool else value != 0
    return value if context.is_tracer(value) else bool(value)


def index_of(index: Any, count: int) -> Value:
    """Return the index of a branch, clamped, as an int or a traced one.

    Raises:
        ControlFlowError: when it is no integer scalar.
    """
    value = settled(index)
    if value.shape or not jnp.issubdtype(value.dtype, jnp.integer):
        raise ControlFlowError(
            f"The index of a branch at {user_line()} is an integer, not {type_of(value)}."
        )
    if context.is_tracer(value):
        return jnp.clip(value, 0, min(count - 1, jnp.iinfo(value.dtype).max))
    return min(max(int(value), 0), count - 1)


def leading_size(arrays: Iterable[Any], length: int | None) -> int:
    """Return the size of the first axis of all arrays.

    Raises:
        ControlFlowError: when they have none, or different ones, or not `length`.
    """
    length = None if length is None else count_of(length, "The length of a loop")
    shapes = [jnp.shape(x) for x in arrays]
    sizes = {shape[0] if shape else None for shape in shapes} | ({length} - {None})
    if len(sizes) != 1 or None in sizes:
        raise ControlFlowError(
            f"What is looped over at {user_line()} must have one size along its first axis"
            f"{'' if length is None else f', and length={length} must be the same'}: "
            f"there are arrays of shapes {[list(shape) for shape in shapes]}."
            if sizes
            else f"The loop at {user_line()} has neither arrays to go over nor a length."
        )
    return next(iter(sizes))  # pyright: ignore[reportReturnType] - not None; maybe an open size


def count_of(value: Any, what: str, least: int = 0) -> int:
    """Return a number of iterations or elements.

    Raises:
        ControlFlowError: when it is no whole number that is known, or less than the least.
    """
    try:
        count = operator.index(value)
    except TypeError:  # a tracer's, too
        count = None
    if count is None or count < least:
        given = value if isinstance(value, int | float) else described(value)
        raise ControlFlowError(
            f"{what} at {user_line()} is a whole number, {least} or larger, that is known when the "
            f"program is staged, not {given}."
        )
    return count


def parameter_name(fn: Callable[..., Any], i: int) -> str:
    """Return the name of a parameter, for messages."""
    try:
        return list(inspect.signature(fn).parameters)[i]
    except (TypeError, ValueError, IndexError):
        return "the carry"

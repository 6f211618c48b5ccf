"""`Variable`: a cell with a face.

    w = jv.Variable([[1.0, 2.0]], name="w")
    w.assign_add([[0.5, 0.5]])       # changes it in place
    y = w @ x                        # reads it, like an array

The verbs: **read** (`value`, operators, indexing, any jnp function), **assign** (the whole, or
`w[1:3].assign(...)` a part).

Rules this file keeps:
- shape and dtype are for life, but of `Shapes`; a value that does not fit raises and changes
  nothing;
- every read and write goes through the current frame (`core/frame.py`), so that the same code
  runs eagerly, compiled and as a pure function;
- flattening as a pytree reads, unflattening gives the plain array: JAX never sees a Variable.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.cells import NAMES, Shapes, is_trainable, set_trainable, trainable_flag
from jaxvars.core.frame import FRESH, TRACING
from jaxvars.core.frames import LOCAL, is_traced
from jaxvars.core.in_place import InPlace, check_index, plain_index, write_part
from jaxvars.core.initial import PLACES, check_arguments, initial, make_cell
from jaxvars.errors import UninitializedError, called, flag_set_in_trace_error, shown, user_line
from jaxvars.objects.traversal import ATOMS
from jaxvars.tensors.array_like import ArrayProxy, unwrap, whole
from jaxvars.tensors.dtypes import is_key, keeping
from jaxvars.tensors.tensor import fit, is_host
from jaxvars.tracing import context
from jaxvars.tracing.guards import SHOW, ask
from jaxvars.typing import Array, ArrayLike, DTypeLike, Value
from jaxvars.views import Structured, view

# Without NumPy's way of calling them, which takes longer than a small sum.
_add, _subtract = jax.jit(jnp.add, inline=True), jax.jit(jnp.subtract, inline=True)

_set, _add_to, _subtract_from = (partial(write_part, how) for how in ("set", "add", "subtract"))

DEFAULT_NAME = "Variable"
"""What a variable is called that was given no name."""

NOTHING: Any = None  # returned with read_value=False, whatever the annotation


@final
class Variable(Structured, InPlace):
    """A value that can be assigned: the one mutable thing in jaxvars.

    Reads as an array everywhere: operators, indexing, `jnp`, `jax.nn`, optax (`jax.lax`
    functions called directly take `v.value`). `==` is elementwise; hashing and `is` go by
    identity. `v += x` and the like assign: `v` stays the variable.

    Args:
        initial_value: a number, string, (nested) list, NumPy or JAX array, another Variable
            (its value is copied), or a callable that returns one of these.
        *more: nothing; several values are refused with advice.
        trainable: whether a GradientTape watches it by itself.
        name: any string; need not be unique. Open name scopes come before it.
        dtype: as inferred when None: 3.14 is float32, [1, 2] int32, "abc" string.
        shape: what the initial value is broadcast to, when given.
        sharding: its fixed placement: a `PartitionSpec` over the mesh in force (`jv.use_mesh`),
            a `jax.sharding.Sharding` or a `jax.Device`. When None, replicated over the mesh in
            force, or on the device of the open `jv.device` scope.

    Raises:
        NotATensorError: when the initial value is None, a dict or another object.
        DtypeError: when it cannot have the dtype, or 64-bit is requested and is off.
        ShardingError: when it cannot be sharded as requested.
        CreationError: inside a compiled function, on any call but the first.
        TypeError: when the name is not a string.

    Example:
        >>> v = Variable([1.0, 2.0], name="v")
        >>> v.assign_add([1.0, 1.0]).numpy()
        array([2., 3.], dtype=float32)
        >>> v[0].assign(7.0)
        <Variable 'v' float32[2] [7. 3.]>

    Differs from TensorFlow:
        `assign` returns the variable itself. Names get no ":0". `shape` does not relax
        shapes. NumPy's float64 and int64 arrays become 32-bit while JAX's 64-bit is off.
    """

    __slots__ = ("__weakref__", "_cell")

    def __init__(
        self,
        initial_value: ArrayLike | Callable[[], ArrayLike],
        *more: NoReturn,
        trainable: bool = True,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        shape: int | tuple[int, ...] | Shapes | None = None,
        sharding: Any = None,
    ) -> None:
        check_arguments(name, initial_value, more)
        ask("A variable is created")
        name = "/".join((*NAMES.value, name or DEFAULT_NAME))
        with context.restoring(), context.evaluating():
            value = initial(initial_value, dtype, shape, name)
        self._cell = make_cell(self, value, name, sharding, shape)
        set_trainable(self._cell, bool(trainable))
        LOCAL.frame.create(self._cell, value)

    # ------------------------------------------------------------ what it is
    @property
    def name(self) -> str:
        """The name, with the scopes it was created in."""
        return self._cell.name

    @name.setter
    def name(self, new: NoReturn) -> NoReturn:
        raise shown(self._fixed("name", "make a new one, jv.Variable(v, name=name)"))

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions, for life."""
        return self._cell.aval.shape

    @shape.setter
    def shape(self, new: NoReturn) -> NoReturn:
        raise shown(self._fixed("shape", "make a new one, jv.Variable(jnp.reshape(v, shape))"))

    @property
    def dtype(self) -> Any:
        """The type of the elements, for life."""
        return self._cell.dtype

    @dtype.setter
    def dtype(self, new: NoReturn) -> NoReturn:
        raise shown(self._fixed("dtype", "make a new one, jv.Variable(v.astype(dtype))"))

    @property
    def trainable(self) -> bool:
        """Whether tapes watch it by themselves; set outside of compiled functions (`jv.freeze`)."""
        LOCAL.frame.note_inner_read()
        return is_trainable(self._cell)

    @trainable.setter
    def trainable(self, new: bool) -> None:
        if is_traced():
            raise flag_set_in_trace_error(self._cell)
        with TRACING:  # not while a function is traced in another thread
            set_trainable(self._cell, bool(new))

    @property
    def value(self) -> Array:
        """The value now: a `jax.Array` (a tracer in compiled code), or NumPy strings.

        The array shares its memory with the variable until that is assigned: donate a copy of it
        (`jnp.copy(v.value)`) to a `jax.jit` with `donate_argnums`, or the variable has no value.
        """
        return LOCAL.frame.read(self._cell)

    @value.setter
    def value(self, new: NoReturn) -> NoReturn:
        raise shown(self._fixed("value", "write v.assign(new)"))

    def _fixed(self, what: str, cure: str) -> AttributeError:
        name, line = called(self._cell), user_line()
        return AttributeError(
            f"The {what} of variable {name!r} cannot be set at {line} like this: {cure}."
        )

    def _look(self) -> Array:
        return LOCAL.frame.look(self._cell)

    def _peek(self, *, keep: bool = False) -> Array:
        if keep:
            return LOCAL.frame.read(self._cell, SHOW)
        return LOCAL.frame.look(self._cell, wait=False)

    def read_value(self) -> Array:
        """Return the value now; TensorFlow's word for `value`."""
        return self.value

    @property
    def sharding(self) -> Any:
        """How the value is placed on devices; None for strings and in compiled code.

        Of a variable without a value, where it was placed.
        """
        try:
            value = LOCAL.frame.peek(self._cell)  # not copied to the device of a scope
        except UninitializedError:
            return self._cell.sharding  # where it will be
        return None if context.is_tracer(value) else getattr(value, "sharding", None)

    @property
    def device(self) -> Any:
        """The device of the value; None when it is on several, in compiled code, for strings."""
        sharding = self.sharding
        devices = [] if sharding is None else list(sharding.device_set)
        return devices[0] if len(devices) == 1 else None

    # ------------------------------------------------------------ writing
    def assign(self, value: ArrayLike, *, read_value: bool = True) -> Variable:
        """Make `value` the value.

        Args:
            value: of the variable's shape and dtype; Python numbers and lists of them are
                converted to the dtype when it can hold them. It is copied.
            read_value: return the variable (True) or nothing.

        Raises:
            ShapeError: when its shape is another one.
            DtypeError: when its dtype is another one.
            ForeignTransformError: inside a plain `jax.jit`, `grad`, `vmap` or scan body.

        >>> v = Variable([1.0, 2.0])
        >>> v.assign([3, 4]).numpy()
        array([3., 4.], dtype=float32)
        """
        cell, given = self._cell, unwrap(value)
        new = fit(given, cell.admit(given), cell.dtype, cell)
        LOCAL.frame.write_all([cell], [new], FRESH if is_host(given) else None)
        return self if read_value else NOTHING

    def assign_add(self, delta: ArrayLike, *, read_value: bool = True) -> Variable:
        """Add `delta` to the value; no other thread's change is lost.

        Args:
            delta: of the variable's dtype, and of its shape or one that broadcasts to it.
            read_value: return the variable (True) or nothing.

        Raises:
            ShapeError: when its shape does not broadcast to the variable's.
            DtypeError: when its dtype is another one.

        Differs from TensorFlow: a scalar may be added to a tensor.

        >>> Variable([1.0, 2.0]).assign_add(1).numpy()
        array([2., 3.], dtype=float32)
        """
        change = self._summand(delta)
        LOCAL.frame.modify(self._cell, lambda old: _add(old, change))
        return self if read_value else NOTHING

    def assign_sub(self, delta: ArrayLike, *, read_value: bool = True) -> Variable:
        """Subtract `delta` from the value; like `assign_add`.

        >>> Variable([1.0, 2.0]).assign_sub([0.5, 0.5]).numpy()
        array([0.5, 1.5], dtype=float32)
        """
        change = self._summand(delta)
        LOCAL.frame.modify(self._cell, lambda old: _subtract(old, change))
        return self if read_value else NOTHING

    def __getitem__(self, index: Any) -> Slice:
        return Slice(self, index)

    def __setitem__(self, index: Any, value: ArrayLike) -> None:
        """Assign a part: `v[1:3] = x` is `v[1:3].assign(x)`."""
        Slice(self, index).assign(value)

    # ------------------------------------------------------------ copies
    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        """Return a separate variable with the same value, name and placement."""
        flag = trainable_flag(self._cell)
        copied = make_variable(self.value, self.name, flag, self._cell.sharding)
        memo[id(self)] = copied
        return copied

    def __copy__(self) -> Variable:
        """Return a separate variable, as `copy.deepcopy` does."""
        return self.__deepcopy__({})

    def __reduce__(self) -> tuple[Callable[..., Variable], tuple[Any, ...]]:
        place = PLACES[0].dump(self._cell.sharding or _chosen_sharding(self._peek()))
        flag = trainable_flag(self._cell)
        return _unpickle, (*_dump(self._peek(keep=True)), self.name, flag, place)

    # ------------------------------------------------------------ display
    def __short_repr__(self) -> str:
        return view(self, "short")


@final
class Slice(ArrayProxy):
    """A part of a variable, `v[index]`: reads as an array, and can be assigned.

    Its value is that of the moment it was taken. An index that is known and out of range raises
    IndexError. One that is traced, in compiled code, does not: JAX reads another element and drops
    a write, unless `jv.debugging.check_indices()` makes the step fail.

    >>> v = Variable([1.0, 2.0, 3.0])
    >>> part = v[1:]
    >>> v[1:].assign([7.0, 8.0])
    <Variable 'Variable' float32[3] [1. 7. 8.]>
    >>> (part + 0).tolist()
    [2.0, 3.0]
    """

    __slots__ = ("_taken", "_whole", "index", "variable")

    def __init__(self, variable: Variable, index: Any) -> None:
        self.variable = variable
        self.index = plain_index(index)
        check_index(variable._cell, variable.shape, self.index)
        self._whole = variable.value
        self._taken: Array | None = None

    @property
    @context.restoring()
    def value(self) -> Array:
        """The part, as an array."""
        if self._taken is None:
            self._taken = self._whole[self.index]
        return self._taken

    def assign(self, value: ArrayLike, *, read_value: bool = True) -> Variable:
        """Make `value`, or what it broadcasts to, the value of this part of the variable."""
        whole = self.variable._update(_set, self.index, value)
        return whole if read_value else NOTHING

    def assign_add(self, delta: ArrayLike, *, read_value: bool = True) -> Variable:
        """Add to this part of the variable."""
        whole = self.variable._update(_add_to, self.index, delta)
        return whole if read_value else NOTHING

    def assign_sub(self, delta: ArrayLike, *, read_value: bool = True) -> Variable:
        """Subtract from this part of the variable."""
        whole = self.variable._update(_subtract_from, self.index, delta)
        return whole if read_value else NOTHING

    def __getitem__(self, index: Any) -> Array:
        return self.value[plain_index(index)]

    def __repr__(self) -> str:
        return repr(self.value)

    def __str__(self) -> str:  # `print(v[0])` prints what an array prints
        return str(self.value)


ATOMS.add(Variable)
_unflatten: Callable[[None, Any], Any] = lambda _, new: new[0]  # noqa: E731
jax.tree_util.register_pytree_node(Variable, lambda v: ((v.value,), None), _unflatten)
jax.tree_util.register_pytree_node(Slice, lambda s: ((s.value,), None), _unflatten)


# ---------------------------------------------------------------- helpers
def _chosen_sharding(value: Array) -> Any:
    """Return the sharding that was chosen explicitly for a value, or None."""
    return value.sharding if isinstance(value, jax.Array) and value.committed else None


def make_variable(value: Value, name: str, trainable: bool, sharding: Any) -> Variable:
    with NAMES.set(()):
        return Variable(value, name=name, trainable=trainable, sharding=sharding)


def _dump(value: Array) -> tuple[Any, str | None]:
    """Return the value as NumPy, and the kind of random key that it is, if it is one."""
    if is_key(value):
        return np.asarray(jax.random.key_data(value)), str(jax.random.key_impl(value))
    return np.asarray(whole(value)), None


def _unpickle(data: Any, key: str | None, name: str, trainable: bool, sharding: Any) -> Variable:
    value = data if key is None else jax.random.wrap_key_data(data, impl=key)
    with keeping(value.dtype):
        return make_variable(value, name, trainable, PLACES[0].load(sharding))

"""`tf.Variable`: a variable with TensorFlow's manners, over `jaxvars.Variable`.

Rules this file keeps:
- it holds a `jaxvars.Variable` and nothing else that counts: what walks objects (State,
  checkpoints, placement) finds that one in its place;
- reading it gives a Tensor; what is assigned is converted by TensorFlow's rules.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, final

import jax
import numpy as np

from jaxvars import _trace
from jaxvars._face import BOXES
from jaxvars._placement import device_name
from jaxvars._tensor import is_string
from jaxvars._variable import Variable as CoreVariable
from jaxvars._walk import Alias
from jaxvars.errors import JaxvarsError
from jaxvars.tf import _convert
from jaxvars.tf._convert import is_tensor_like, to_array
from jaxvars.tf._dtypes import DType, as_dtype, string
from jaxvars.tf._shapes import TensorShape
from jaxvars.tf._tensor import OPERATIONS, Reference, Tensor, TensorLike, described_value
from jaxvars.tf._variable_options import (
    CREATORS,
    VariableAggregation,
    VariableSynchronization,
)
from jaxvars.tf.errors import InvalidArgumentError, OutOfRangeError

Value: TypeAlias = Any

_FACES: weakref.WeakValueDictionary[int, Variable] = weakref.WeakValueDictionary()
"""By the key of the cell."""


@final
class Variable(TensorLike, Alias):
    """A tensor that can be assigned.

    Args:
        initial_value: a tensor, or what becomes one, or a function without arguments that returns
            one.
        trainable: whether a GradientTape watches it by itself; True when None.
        validate_shape: must be True.
        caching_device: accepted, and of no effect.
        name: what it is called; open name scopes come before it.
        variable_def: must be None.
        dtype: the type to give, if the value is no tensor of another one.
        import_scope: must be None.
        constraint: a function that an optimizer applies to the value after each update.
        synchronization: accepted, and of no effect.
        aggregation: accepted, and of no effect.
        shape: what its `shape` says; must be compatible with that of the value, which is kept.
        experimental_enable_variable_lifting: accepted, and of no effect.

    Raises:
        ValueError: when there is no initial value, or inside a `tf.function` after its first call.

    >>> from jaxvars import tf
    >>> tf.Variable([1.0, 2.0])
    <tf.Variable 'Variable:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>

    Differs from TensorFlow: a `shape` with open sizes does not let the variable change its shape.
    """

    __slots__ = (
        "__weakref__", "_aggregation", "_constraint", "_is_unread", "_static_shape",
        "_synchronization", "_variable",
    )  # fmt: skip

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Callable[[Any], Any] | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> None:
        if CREATORS.open:
            given = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
            self._become(_created(given))
            return
        if initial_value is None:
            raise ValueError(
                "The `initial_value` arg to `tf.Variable` must be specified: tf.Variable([1.0, "
                "2.0]), or a function that returns a value."
            )
        wanted = None if dtype is None else as_dtype(dtype)
        first = _first_value(initial_value, wanted)
        if trainable is None:
            trainable = synchronization is not VariableSynchronization.ON_READ
        self._variable = CoreVariable(first, trainable=trainable, name=name)
        self._is_unread = False
        self._constraint = constraint
        self._synchronization = synchronization or VariableSynchronization.AUTO
        self._aggregation = aggregation or VariableAggregation.NONE
        self._static_shape = None if shape is None else TensorShape(shape)
        if self._static_shape is not None and not self._static_shape.is_compatible_with(
            self._variable.shape
        ):
            raise ValueError(
                "In this `tf.Variable` creation, the initial value's shape "
                f"({TensorShape(self._variable.shape)}) is not compatible with the explicitly "
                f"supplied `shape` argument ({shape})."
            )
        _FACES[self._variable.cell.key] = self

    def _become(self, other: Any) -> None:
        """Stand for what another variable stands for."""
        if not isinstance(other, Variable):
            raise TypeError(f"A variable creator returned {other!r}, which is no tf.Variable.")
        for name in Variable.__slots__[1:]:
            setattr(self, name, getattr(other, name))
        _FACES[self._variable.cell.key] = self

    @property
    def aliased(self) -> CoreVariable:
        """The `jaxvars.Variable` that it stands for."""
        return self._variable

    # ------------------------------------------------------------ what it is
    @property
    def name(self) -> str:
        """The name, with its scopes, and ":0"."""
        return f"{self._variable.name}:0"

    @property
    def trainable(self) -> bool:
        """Whether a GradientTape watches it by itself."""
        return self._variable.trainable

    @property
    def shape(self) -> TensorShape:
        """The sizes of the dimensions, as they were stated."""
        stated = self._static_shape
        return TensorShape(self._variable.cell.aval.shape) if stated is None else stated

    def get_shape(self) -> TensorShape:
        """Return the sizes of the dimensions."""
        return self.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        dtype = self._variable.cell.aval.dtype
        return string if is_string(dtype) else as_dtype(dtype)

    @property
    def device(self) -> str:
        """The name of the device that it is on, in TensorFlow's full form."""
        found = self._variable.device
        return device_name(jax.local_devices(backend="cpu")[0] if found is None else found)

    @property
    def constraint(self) -> Callable[[Any], Any] | None:
        """The function that an optimizer applies to the value after each update."""
        return self._constraint

    @property
    def synchronization(self) -> VariableSynchronization:
        """What was asked for when it was made."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """What was asked for when it was made."""
        return self._aggregation

    @property
    def initializer(self) -> None:
        """None: it has its value."""
        return None

    @property
    def initial_value(self) -> Any:
        """Raise RuntimeError: the first value is not kept."""
        raise RuntimeError("This property is not supported when eager execution is enabled.")

    @property
    def handle(self) -> Variable:
        """The variable itself: there are no resources."""
        return self

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Tell whether it has a value: True."""
        return Tensor(to_array(True))

    def set_shape(self, shape: Any) -> None:
        """State the shape; raise ValueError when it is another one."""
        self._static_shape = self.shape.merge_with(shape)

    # ------------------------------------------------------------ reading
    def value(self) -> Tensor:
        """Return the value."""
        return Tensor(_read(self))

    def read_value(self) -> Tensor:
        """Return the value."""
        return self.value()

    def numpy(self) -> Any:
        """Return the value as a NumPy array, or scalar."""
        return self.value().numpy()

    def ref(self) -> Reference:
        """Return what can be hashed in its place: a key of a dict or element of a set."""
        return Reference(self)

    experimental_ref = ref

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Return rows by index."""
        return OPERATIONS["gather"](self, indices)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """Return parts by index."""
        return OPERATIONS["gather_nd"](self, indices)

    # ------------------------------------------------------------ writing
    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Make `value` the value.

        Raises:
            ValueError: when it has another shape, or is a tensor of another type.
            TypeError: when it cannot be converted to the type.
        """
        array = to_array(value, self.dtype)
        shape = self._variable.cell.aval.shape
        if array.shape != shape:
            raise ValueError(
                f"Cannot assign value to variable ' {self.name}': Shape mismatch.The variable "
                f"shape {TensorShape(shape)}, and the assigned value shape "
                f"{TensorShape(array.shape)} are incompatible."
            )
        self._variable.assign(_text_or(array))
        return self._unread() if read_value else None

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Add `delta` to the value."""
        self._variable.assign_add(self._delta(delta, "AssignAddVariableOp"))
        return self._unread() if read_value else None

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Subtract `delta` from the value."""
        self._variable.assign_sub(self._delta(delta, "AssignSubVariableOp"))
        return self._unread() if read_value else None

    def load(self, value: Any, session: Any = None) -> None:
        """Make `value` the value."""
        self.assign(value)

    def count_up_to(self, limit: int) -> Tensor:
        """Add 1, and return the value before.

        Raises:
            OutOfRangeError: when it has reached `limit`.
        """
        before = self.value()
        if int(before) >= limit:
            raise OutOfRangeError(None, None, f"Reached limit of {limit} [Op:ResourceCountUpTo]")
        self.assign_add(1)
        return before

    def _delta(self, delta: Any, op: str) -> Value:
        """Return what is added, of the variable's shape."""
        array = to_array(delta, self.dtype)
        shape = self._variable.cell.aval.shape
        if array.shape != shape:
            raise InvalidArgumentError(
                None,
                None,
                f"Cannot update variable with shape {list(shape)} using a Tensor with shape "
                f"{list(array.shape)}, shapes must be equal. [Op:{op}] name: ",
            )
        return array

    def _unread(self) -> Variable:
        """Return what assigning gives: the variable, under TensorFlow's name for that."""
        made = object.__new__(Variable)
        made._variable, made._static_shape = self._variable, self._static_shape
        made._constraint, made._synchronization = self._constraint, self._synchronization
        made._aggregation, made._is_unread = self._aggregation, True
        return made

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Replace rows by those of `tf.IndexedSlices`."""
        return self._scatter("update", sparse_delta)

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Add `tf.IndexedSlices`."""
        return self._scatter("add", sparse_delta)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Subtract `tf.IndexedSlices`."""
        return self._scatter("sub", sparse_delta)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Multiply by `tf.IndexedSlices`."""
        return self._scatter("mul", sparse_delta)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Divide by `tf.IndexedSlices`."""
        return self._scatter("div", sparse_delta)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Take the larger of rows and `tf.IndexedSlices`."""
        return self._scatter("max", sparse_delta)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Take the smaller of rows and `tf.IndexedSlices`."""
        return self._scatter("min", sparse_delta)

    def batch_scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: Any = None
    ) -> Any:
        """Replace rows batch by batch by those of `tf.IndexedSlices`."""
        indices, values = to_array(sparse_delta.indices), to_array(sparse_delta.values, self.dtype)
        with _scattering("batch_scatter_update"):
            self._variable.batch_scatter_update(indices, values)
        return self._unread()

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replace parts by index."""
        return self._scatter_nd("update", indices, updates)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Add to parts by index."""
        return self._scatter_nd("add", indices, updates)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtract from parts by index."""
        return self._scatter_nd("sub", indices, updates)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Take the larger of parts and updates."""
        return self._scatter_nd("max", indices, updates)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Take the smaller of parts and updates."""
        return self._scatter_nd("min", indices, updates)

    def _scatter(self, how: str, sparse_delta: Any) -> Variable:
        if not hasattr(sparse_delta, "indices"):
            raise TypeError(
                "Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: "
                f"{sparse_delta}"
            )
        indices, values = to_array(sparse_delta.indices), to_array(sparse_delta.values, self.dtype)
        with _scattering(f"ResourceScatter{how.title()}"):
            getattr(self._variable, f"scatter_{how}")(indices, values)
        return self._unread()

    def _scatter_nd(self, how: str, indices: Any, updates: Any) -> Variable:
        new = to_array(updates, self.dtype)
        with _scattering(f"ResourceScatterNd{how.title()}"):
            getattr(self._variable, f"scatter_nd_{how}")(to_array(indices), new)
        return self._unread()

    def __getitem__(self, key: Any) -> Any:
        return OPERATIONS["getitem"](self, key)

    def assign_part(self, key: Any, value: Any, name: str | None = None) -> Variable:
        """Make `value`, or what it broadcasts to, the value of a part: `v[key].assign(value)`."""
        array = to_array(value, self.dtype)
        shape = self._variable.cell.aval.shape
        index = OPERATIONS["index_of"](key, shape)
        with _scattering("ResourceStridedSliceAssign"):
            self._variable[index].assign(array)
        return self._unread()

    # ------------------------------------------------------------ conversion
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.numpy(), dtype=dtype)

    def __jax_array__(self) -> Value:
        return _read(self)

    def __bool__(self) -> bool:
        return bool(self.value())

    def __int__(self) -> int:
        return int(self.value())

    def __float__(self) -> float:
        return float(self.value())

    def __complex__(self) -> complex:
        return complex(self.value())

    def __index__(self) -> int:
        return self.value().__index__()

    def __len__(self) -> int:
        return len(self.value())

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.value())

    def __hash__(self) -> int:
        raise TypeError(
            f"Variable is unhashable. Instead, use variable.ref() as the key. (Variable: {self!r})"
        )

    def __copy__(self) -> Variable:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        made = face_of(self._variable.__deepcopy__({}))
        made._static_shape, made._constraint = self._static_shape, self._constraint
        memo[id(self)] = made
        return made

    def __reduce__(self) -> Any:
        return face_of, (self._variable,)

    # ------------------------------------------------------------ display
    def __repr__(self) -> str:
        name = "UnreadVariable" if self._is_unread else self.name
        words = f"tf.Variable {name!r} shape={self.shape} dtype={self.dtype.name}"
        try:
            value = self.value()
        except JaxvarsError:
            return f"<{words}>"
        known = not _trace.is_tracer(value._array)
        return f"<{words}, numpy={described_value(value)}>" if known else f"<{words}>"

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec) if spec else str(self)


def face_of(variable: CoreVariable) -> Variable:
    """Return the `tf.Variable` that stands for a variable of jaxvars; make one if there is none."""
    made = _FACES.get(variable.cell.key)
    if made is None:
        made = object.__new__(Variable)
        made._variable, made._constraint, made._static_shape = variable, None, None
        made._synchronization = VariableSynchronization.AUTO
        made._aggregation, made._is_unread = VariableAggregation.NONE, False
        _FACES[variable.cell.key] = made
    return made


def _created(given: dict[str, Any]) -> Any:
    """Return what the creators of the open scopes make of the arguments of `tf.Variable`."""
    creators, CREATORS.open = CREATORS.open, ()
    make: Callable[..., Any] = Variable
    for creator in creators:
        make = functools.partial(creator, make)
    try:
        return make(**given)
    finally:
        CREATORS.open = creators


@contextmanager
def _scattering(op: str) -> Generator[None]:
    """Raise what TensorFlow raises where jaxvars refuses."""
    try:
        yield
    except (JaxvarsError, IndexError) as error:
        raise InvalidArgumentError(None, None, f"{error} [Op:{op}] name: ") from error


def _read(variable: Variable) -> Value:
    value = variable._variable.value
    return _convert.text_array(value) if type(value) is np.ndarray else value


def _first_value(initial_value: Any, dtype: DType | None) -> Any:
    """Return what the variable of jaxvars is made from."""
    if not callable(initial_value):
        try:
            return _text_or(to_array(initial_value, dtype))
        except ValueError as error:
            if is_tensor_like(initial_value):
                raise ValueError(f"initial_value: {error}") from None
            raise

    def made() -> Any:
        return _text_or(to_array(initial_value(), dtype))

    return made


def _text_or(array: Value) -> Value:
    """Return an array as jaxvars keeps it: text not as bytes."""
    if not _convert.is_text(array):
        return array
    return np.vectorize(bytes.decode, otypes=[object])(array) if array.size else array


BOXES[Variable] = _read
jax.tree_util.register_pytree_node(
    Variable, lambda variable: ((_read(variable),), None), lambda _, children: children[0]
)

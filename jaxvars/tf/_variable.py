"""`tf.Variable`: a variable with TensorFlow's manners, over `jaxvars.Variable`.

Rules this file keeps:
- it holds a `jaxvars.Variable` and nothing else that counts: what walks objects (State,
  checkpoints, placement) finds that one in its place;
- reading it gives a Tensor; what is assigned is converted by TensorFlow's rules.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
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
from jaxvars.tf._convert import to_array
from jaxvars.tf._dtypes import DType, as_dtype, string
from jaxvars.tf._shapes import TensorShape
from jaxvars.tf._tensor import OPERATIONS, Reference, Tensor, TensorLike, described_value

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

    __slots__ = ("__weakref__", "_constraint", "_static_shape", "_variable")

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
        if initial_value is None:
            raise ValueError(
                "Argument `initial_value` must not be None: tf.Variable([1.0, 2.0]), or a function "
                "that returns a value."
            )
        wanted = None if dtype is None else as_dtype(dtype)
        first = _first_value(initial_value, wanted)
        self._variable = CoreVariable(first, trainable=trainable is not False, name=name)
        self._constraint = constraint
        self._static_shape = None if shape is None else TensorShape(shape)
        if self._static_shape is not None and not self._static_shape.is_compatible_with(
            self._variable.shape
        ):
            raise ValueError(
                f"The initial value's shape ({TensorShape(self._variable.shape)}) is not "
                f"compatible with the explicitly supplied `shape` argument ({self._static_shape})."
            )
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
        return self._static_shape or TensorShape(self._variable.cell.aval.shape)

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
    def handle(self) -> Variable:
        """The variable itself: there are no resources."""
        return self

    def is_initialized(self, name: str | None = None) -> bool:
        """Tell whether it has a value: True."""
        return True

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
        return self if read_value else None

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Add `delta` to the value."""
        self._variable.assign_add(to_array(delta, self.dtype))
        return self if read_value else None

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Subtract `delta` from the value."""
        self._variable.assign_sub(to_array(delta, self.dtype))
        return self if read_value else None

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
        self._variable.batch_scatter_update(indices, values)
        return self

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
            raise TypeError(f"sparse_delta is not IndexedSlices: {sparse_delta}")
        indices, values = to_array(sparse_delta.indices), to_array(sparse_delta.values, self.dtype)
        getattr(self._variable, f"scatter_{how}")(indices, values)
        return self

    def _scatter_nd(self, how: str, indices: Any, updates: Any) -> Variable:
        new = to_array(updates, self.dtype)
        getattr(self._variable, f"scatter_nd_{how}")(to_array(indices), new)
        return self

    def __getitem__(self, key: Any) -> Any:
        return OPERATIONS["getitem"](self, key)

    def _assign_part(self, key: Any, value: Any, name: str | None = None) -> Variable:
        """Make `value`, or what it broadcasts to, the value of a part: `v[key].assign(value)`."""
        array = to_array(value, self.dtype)
        self._variable[key].assign(array)
        return self

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
        words = f"tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}"
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
        _FACES[variable.cell.key] = made
    return made


def _read(variable: Variable) -> Value:
    value = variable._variable.value
    return _convert.text_array(value) if is_string(variable._variable.cell.aval.dtype) else value


def _first_value(initial_value: Any, dtype: DType | None) -> Any:
    """Return what the variable of jaxvars is made from."""
    if not callable(initial_value):
        return _text_or(to_array(initial_value, dtype))

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

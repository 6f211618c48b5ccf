"""`Tensor`: an array with TensorFlow's semantics.

Rules this file keeps:
- it never changes;
- flattened as a pytree it is the plain array, and unflattened it stays one: `jnp`, optax and flax
  take a Tensor and give arrays;
- its array is JAX's; strings are NumPy's, on the host, and so are sizes and what is computed of
  them alone: they are known while a function is traced;
- its operators are the operations of `tf.math`, by TensorFlow's rules for types.
"""

from __future__ import annotations

import functools
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.devices.device import device_name
from jaxvars.tensors.array_like import BOXES
from jaxvars.tf.attributes import getter
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.convert import dtype_of
from jaxvars.tf.tensors.dtypes import DType
from jaxvars.tf.tensors.shapes import Dimension, TensorShape
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

OPERATIONS: dict[str, Callable[..., Any]] = {}
"""What operators and indexing call, by the name of the method without underscores."""

NUMPY_METHODS: dict[str, Callable[[Any], Any]] = {}
"""NumPy's methods by name, once a program has requested them; see `numpy_semantics`."""


OUT_OF_SCOPE = (
    "A tensor of a function that has been traced is out of scope and cannot be used here. Use "
    "return values, explicit Python locals or TensorFlow collections to access it. Please see "
    "https://www.tensorflow.org/guide/function#all_outputs_of_a_tffunction_must_be_return_values "
    "for more information."
)


_PLAIN = {"builtins", "numpy"}
"""Where the classes are whose own operators are not called with a tensor."""


def _name_method(method: Any, name: str) -> Any:
    method.__name__, method.__qualname__ = name, f"TensorLike.{name}"
    return method


def _make_unary(name: str) -> Callable[[Any], Any]:
    return _name_method(lambda self: OPERATIONS[name](self), f"__{name}__")


def _make_binary(name: str) -> Callable[[Any, Any], Any]:
    turned = f"__r{name}__"

    def operator(self: Any, other: Any) -> Any:
        try:
            return OPERATIONS[name](self, other)
        except (TypeError, ValueError):  # of a class that knows what to do with tensors, as there
            if getattr(self, "_is_count", False):
                return OPERATIONS[name](*OPERATIONS["as_one_type"](self, other))
            if type(other).__module__ in _PLAIN or not hasattr(type(other), turned):
                raise
            if isinstance(other, Operators):
                raise
            made = getattr(other, turned)(self)
            if made is NotImplemented:
                raise
            return made

    return _name_method(operator, f"__{name}__")


def _make_reflected(name: str) -> Callable[[Any, Any], Any]:
    return _name_method(lambda self, other: OPERATIONS[name](other, self), f"__r{name}__")


class Operators:
    """The operators of what operations take."""

    __slots__ = ()
    __array_priority__ = 100

    __add__, __radd__ = _make_binary("add"), _make_reflected("add")
    __sub__, __rsub__ = _make_binary("sub"), _make_reflected("sub")
    __mul__, __rmul__ = _make_binary("mul"), _make_reflected("mul")
    __truediv__, __rtruediv__ = _make_binary("truediv"), _make_reflected("truediv")
    __floordiv__, __rfloordiv__ = _make_binary("floordiv"), _make_reflected("floordiv")
    __mod__, __rmod__ = _make_binary("mod"), _make_reflected("mod")
    __pow__, __rpow__ = _make_binary("pow"), _make_reflected("pow")
    __matmul__, __rmatmul__ = _make_binary("matmul"), _make_reflected("matmul")
    __and__, __rand__ = _make_binary("and"), _make_reflected("and")
    __or__, __ror__ = _make_binary("or"), _make_reflected("or")
    __xor__, __rxor__ = _make_binary("xor"), _make_reflected("xor")
    __neg__, __abs__, __invert__ = _make_unary("neg"), _make_unary("abs"), _make_unary("invert")
    __lt__, __le__, __gt__, __ge__ = map(_make_binary, ("lt", "le", "gt", "ge"))
    __eq__, __ne__ = _make_binary("eq"), _make_binary("ne")
    __hash__: Any = None  # each class says what to use instead


class TensorLike(Operators):
    """What Tensor and Variable share."""

    __slots__ = ()

    if TYPE_CHECKING:  # what operators return, which are ragged tensors of others

        def __add__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __eq__(self, other: Any) -> Tensor: ...  # pyright: ignore[reportIncompatibleMethodOverride]
        def __ne__(self, other: Any) -> Tensor: ...  # pyright: ignore[reportIncompatibleMethodOverride]

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __pow__ = __rpow__ = __add__
        __mod__ = __rmod__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __add__
        __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __add__
        __rxor__ = __lt__ = __le__ = __gt__ = __ge__ = __add__
        __abs__ = __invert__ = __neg__

    # ------------------------------------------------------------ conversion
    @property
    @abstractmethod
    def shape(self) -> TensorShape: ...

    @property
    @abstractmethod
    def dtype(self) -> DType: ...

    @abstractmethod
    def numpy(self) -> Any: ...

    @abstractmethod
    def _scalar(self) -> Array:
        """Return the array; raise TypeError if it is not a scalar."""

    def get_shape(self) -> TensorShape:
        """Return the sizes of the dimensions."""
        return self.shape

    def ref(self) -> Reference:
        """Return what can be hashed in its place: a key of a dict or element of a set."""
        return Reference(self)

    @property
    def __numpy_dtype__(self) -> np.dtype:
        """What NumPy, and with it `jnp.result_type` and optax, read as the type."""
        return np.dtype(self.dtype.as_numpy_dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        value = self.numpy()
        is_string = isinstance(value, bytes) and dtype is None
        return np.array(value, dtype=object if is_string else dtype)

    def __int__(self) -> int:
        return int(self._scalar())

    def __float__(self) -> float:
        return float(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        return self._scalar().__index__()

    def __getitem__(self, key: Any) -> Tensor:
        return OPERATIONS["getitem"](self, key)


@final
class Tensor(TensorLike):
    """An array that does not change; made by `tf.constant` and by operations.

    Differs from TensorFlow: it stands for a `jax.Array`, which `jnp.asarray` returns. `memoryview`
    takes it from Python 3.12 on; before, `memoryview(x.numpy())`.
    """

    __slots__ = ("__weakref__", "_array", "_name", "_part")

    def __init__(self, array: Value) -> None:
        self._array: Value = array

    # ------------------------------------------------------------ what it is
    @property
    def shape(self) -> TensorShape:
        """The sizes of the dimensions."""
        return TensorShape(self._array.shape)

    def set_shape(self, shape: Any) -> None:
        """Check the shape: it is always known here.

        Raises:
            ValueError: when it is another one.
        """
        if not self.shape.is_compatible_with(shape):
            raise ValueError(
                f"Tensor's shape {self.shape} is not compatible with supplied shape "
                f"{TensorShape(shape)}."
            )

    ndim = getter("_array.ndim", "The number of dimensions.")

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return dtype_of(self._array)

    @property
    def device(self) -> str:
        """The name of the device that it is on, in TensorFlow's full form."""
        if isinstance(self._array, np.ndarray):
            return device_name(jax.local_devices(backend="cpu")[0])
        if context.is_tracer(self._array):
            return ""
        return device_name(min(self._array.devices(), key=lambda device: device.id))

    backing_device = getter("device", "The name of the device whose memory it is in: `device`.")

    # ------------------------------------------------------------ conversion
    def numpy(self) -> Any:
        """Return the value as a NumPy array, or scalar; strings as bytes.

        Raises:
            AttributeError: in a function that is traced, where values are not known.
        """
        if context.is_tracer(self._array):
            raise AttributeError(
                "'SymbolicTensor' object has no attribute 'numpy': its value is known when the "
                "function runs, not while it is traced. Return it, and look at the result."
            )
        made = np.array(self._array)
        return made[()] if made.ndim == 0 else made

    def __jax_array__(self) -> Array:
        return jnp.asarray(self._array) if isinstance(self._array, np.ndarray) else self._array

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.__array__()).toreadonly()  # Python asks for it from 3.12 on

    def __bool__(self) -> bool:
        if self._array.size > 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use "
                "tf.reduce_any(x) or tf.reduce_all(x)"
            )
        return bool(self._array.size) and bool(self._array.reshape(()))

    def _scalar(self) -> Array:
        if self._array.ndim:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        return self._array

    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("Scalar tensor has no `len()`")
        return self._array.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise TypeError("Cannot iterate over a scalar tensor.")
        array = self._array
        if isinstance(array, np.ndarray):  # of strings, whose rows may be bytes
            return (Tensor(array[i, ...]) for i in range(len(array)))
        return map(Tensor, iter(array))

    @property
    def _keras_mask(self) -> Any:
        """The mask that Keras keeps with an array."""
        array: Any = self._array
        return array._keras_mask

    @_keras_mask.setter
    def _keras_mask(self, mask: Any) -> None:
        array: Any = self._array
        array._keras_mask = mask

    @_keras_mask.deleter
    def _keras_mask(self) -> None:
        array: Any = self._array
        del array._keras_mask

    def __hash__(self) -> int:
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self

    def __reduce__(self) -> Any:
        return _unpickled, (self.numpy(), self.dtype.name)

    if TYPE_CHECKING:
        name: str
        graph: Any
        op: Any
        assign: Callable[..., Any]  # of a part of a variable
    else:

        def __getattr__(self, name: str) -> Any:
            # Only reached for attributes that are not found: say what to write instead.
            if name.startswith("__"):
                raise AttributeError(name)
            if name == "assign":
                return self._assign()
            if name in NUMPY_METHODS:
                return NUMPY_METHODS[name](self)
            if name in {"graph", "op", "name", "value_index"}:
                if name == "name" and (found := _name_of(self)):
                    return found
                if (found := _find_in_trace(self)) is not None:
                    return getattr(found, name)
                raise AttributeError(f"Tensor.{name} is undefined when eager execution is enabled.")
            hint = f" Did you mean jnp.asarray(x).{name}?" if hasattr(jnp.ndarray, name) else ""
            raise AttributeError(f"'Tensor' object has no attribute {name!r}.{hint}")

    def _assign(  # pyright: ignore[reportUnusedFunction] - `assign` is this
        self,
    ) -> Callable[[Any], Any]:
        """Return what assigns the part of a variable that it was taken from."""
        try:
            variable, key = object.__getattribute__(self, "_part")
        except AttributeError:
            raise AttributeError(
                "'Tensor' object has no attribute 'assign': it does not change. A tf.Variable "
                "does, and so does a part of one: v[0].assign(value)."
            ) from None
        return functools.partial(variable.assign_part, key)

    # ------------------------------------------------------------ display
    def __repr__(self) -> str:
        name = _name_of(self)
        if not context.is_tracer(self._array):
            return f"<tf.Tensor: {_describe(self)}, numpy={describe_value(self)}>"
        if not name:
            return f"<tf.Tensor: {_describe(self)}>"
        return f"<tf.Tensor {name!r} shape={self.shape} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        if context.is_tracer(self._array):
            name = _name_of(self)
            return f"Tensor({f'{chr(34)}{name}{chr(34)}, ' if name else ''}{_describe(self)})"
        value = self.numpy()
        string = repr(value) if isinstance(value, bytes) else str(value)
        return f"tf.Tensor({_break_line(string)}, {_describe(self)})"

    def __format__(self, spec: str) -> str:
        if context.is_tracer(self._array):
            return super().__format__(spec)  # of the name; a spec for numbers is refused
        return format(self.numpy(), spec)


def _name_of(x: Tensor) -> str:
    """Return the name in a function that is being traced; an empty string outside of one."""
    try:
        return object.__getattribute__(x, "_name")
    except AttributeError:
        found = _find_in_trace(x)
        return "" if found is None else found.name


def _find_in_trace(x: Tensor) -> Any:
    """Return what shows a tensor in the graph of the function that is being traced, so far."""
    find = OPERATIONS.get("trace")
    return find(x) if find is not None and context.is_tracer(x._array) else None


def _describe(x: Any) -> str:
    return f"shape={x.shape}, dtype={x.dtype.name}"


def describe_value(x: Tensor) -> str:
    """Return the value as it stands in a repr."""
    value = x.numpy()
    if isinstance(value, np.ndarray):
        return _break_line(repr(value))
    return repr(value.item() if isinstance(value, np.generic) else value)


def _break_line(string: str) -> str:
    return "\n" + string if "\n" in string else string


def _unpickled(value: Any, dtype: str) -> Tensor:
    return Tensor(_convert.to_array(value, _convert.as_dtype(dtype)))


@final
class Reference:
    """Stands for a Tensor or Variable where something hashable is needed."""

    __slots__ = ("_identity", "_referred")

    def __init__(self, referred: Any, identity: Any = None) -> None:
        self._referred = referred
        self._identity = referred if identity is None else identity

    def deref(self) -> Any:
        """Return what it stands for."""
        return self._referred

    def __hash__(self) -> int:
        return id(self._identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._identity is self._identity

    def __lt__(self, other: Reference) -> bool:
        return id(self._identity) < id(other._identity)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._referred!r}>"


ARRAYS: set[type] = {np.ndarray}
"""The classes of arrays that have been met: asking JAX whether something is one takes longer."""


WRAPPERS: dict[type, Callable[[Any, Callable[[Any], Any]], Any]] = {
    bytes: lambda value, _: Tensor(np.array(value, object))  # an element of an array of strings
}
"""What makes something with Tensors of other structures: of one, and of what wraps its parts."""


def wrap(value: Any) -> Any:
    """Return a structure with a Tensor in place of each array."""
    if isinstance(value, jax.Array | np.ndarray):
        ARRAYS.add(type(value))
        return Tensor(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(wrap, value))
    if isinstance(value, list | tuple):
        return type(value)(map(wrap, value))
    if isinstance(value, dict):
        return {key: wrap(part) for key, part in value.items()}
    other = WRAPPERS.get(type(value))
    return value if other is None else other(value, wrap)


def typed(value: Any) -> Any:
    """Return what is NumPy's as a Tensor, whose type others must have; the rest as it is."""
    is_numpy = isinstance(value, np.ndarray | np.generic)
    return Tensor(_convert.to_array(value)) if is_numpy else value


def pair_typed(x: Any, y: Any, op: str) -> tuple[Array, Array]:
    """Return two operands as arrays, of which those of NumPy have their own types.

    Raises:
        InvalidArgumentError: when the types differ.
    """
    return _convert.pair(typed(x), typed(y), op)


BOXES[Tensor] = lambda tensor: tensor._array
BOXES[Dimension] = lambda size: np.array(operator.index(size), np.int32)


def only_child(_: None, children: Any) -> Any:
    """Return the array of a pytree node that stands for one."""
    return children[0]


jax.tree_util.register_pytree_node(Tensor, lambda tensor: ((tensor._array,), None), only_child)

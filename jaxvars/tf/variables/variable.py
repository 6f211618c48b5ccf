"""`tf.Variable`: a variable with TensorFlow's semantics, over `jaxvars.Variable`.

Rules this file keeps:
- it holds a `jaxvars.Variable` and nothing else that counts: what walks objects (State,
  checkpoints, placement) finds that one in its place;
- reading it gives a Tensor; what is assigned is converted by TensorFlow's rules.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.devices.device import device_name
from jaxvars.display.repr import SMALL, Sketch, html_repr
from jaxvars.errors import JaxvarsError
from jaxvars.objects.traversal import Proxy
from jaxvars.tensors.array_like import BOXES
from jaxvars.tensors.dtypes import is_string
from jaxvars.tf.attributes import getter
from jaxvars.tf.tensors.convert import is_tensor_like, to_array
from jaxvars.tf.tensors.dtypes import DType, as_dtype, string
from jaxvars.tf.tensors.handles import is_handles
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.tensor import OPERATIONS, Reference, Tensor, describe_value, only_child
from jaxvars.tf.variables.open_shapes import Open
from jaxvars.tf.variables.options import (
    CREATORS,
    VariableAggregation,
    VariableOptions,
    VariableSynchronization,
    check_options,
    create_variable,
)
from jaxvars.tf.variables.strings import from_core_strings, is_on_host, stage_read, to_core_strings
from jaxvars.tf.variables.updates import Updates
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

_FACES: weakref.WeakValueDictionary[int, Variable] = weakref.WeakValueDictionary()
"""By the key of the cell."""


@final
class Variable(Updates, Proxy):
    """A tensor that can be assigned.

    Args:
        initial_value: a tensor, or what becomes one, or a function without arguments that returns
            one.
        trainable: whether a GradientTape watches it automatically; True when None.
        validate_shape: must be True.
        caching_device: accepted, and of no effect.
        name: what it is called; open name scopes come before it.
        variable_def: must be None.
        dtype: the type to give, if the value is not a tensor of another one.
        import_scope: must be None.
        constraint: a function that an optimizer applies to the value after each update.
        synchronization: accepted, and of no effect.
        aggregation: accepted, and of no effect.
        shape: what its `shape` says; must be compatible with that of the value. If it has unknown
            sizes, a value of any shape that is compatible with it can be assigned.
        experimental_enable_variable_lifting: accepted, and of no effect.

    Raises:
        ValueError: without an initial value, for an unknown option, or inside a `tf.function`
            after its first call.

    >>> from jaxvars import tf
    >>> tf.Variable([1.0, 2.0])
    <tf.Variable 'Variable:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>

    Differs from TensorFlow: a `tf.function` is traced for each shape that a variable with unknown
    sizes has, and its branches cannot assign different shapes; if it holds strings, it is not read
    there. Strings that a `tf.function` assigns are in the variable when the call has ended.
    """

    __slots__ = (
        "__dict__", "__weakref__", "_is_unread", "_options", "_static_shape", "_variable",
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
        synchronization: VariableSynchronization | None = VariableSynchronization.AUTO,
        aggregation: VariableAggregation | None = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> None:
        if CREATORS.value and type(self) is Variable:
            given = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
            self._become(create_variable(Variable, given))
            return
        if initial_value is None:
            raise ValueError(
                "The `initial_value` arg to `tf.Variable` must be specified: tf.Variable([1.0, "
                "2.0]), or a function that returns a value."
            )
        check_options(name, constraint, synchronization, aggregation)
        wanted = None if dtype is None else as_dtype(dtype)
        first = _first_value(initial_value, wanted)
        if trainable is None:
            trainable = synchronization is not VariableSynchronization.ON_READ
        stated = None if shape is None else TensorShape(shape)
        sizes = None if stated is None or stated.is_fully_defined() else _open_sizes(stated)
        self._variable = CoreVariable(first, trainable=trainable, name=name, shape=sizes)
        self._is_unread = False
        self._options = VariableOptions(
            constraint, synchronization or VariableSynchronization.AUTO,
            aggregation or VariableAggregation.NONE,
        )  # fmt: skip
        self._static_shape = stated
        if stated is not None and not stated.is_compatible_with(self._variable.shape):
            raise ValueError(
                "In this `tf.Variable` creation, the initial value's shape "
                f"({TensorShape(self._variable.shape)}) is not compatible with the explicitly "
                f"supplied `shape` argument ({shape})."
            )
        _FACES[self._variable._cell.key] = self

    def _become(self, other: Any) -> None:
        """Stand for what another variable stands for."""
        if not isinstance(other, Variable):
            raise TypeError(f"A variable creator returned {other!r}, which is not a tf.Variable.")
        self.__dict__ = vars(other)  # pyright: ignore[reportGeneralTypeIssues, reportAttributeAccessIssue] - it is shared
        if type(other) is not Variable:  # a class of the user's, which may hold something else
            self.__class__ = type(other)
            return
        for name in Variable.__slots__[2:]:
            setattr(self, name, getattr(other, name))
        _FACES[self._variable._cell.key] = self

    @property
    def aliased(self) -> CoreVariable:
        """The `jaxvars.Variable` that it stands for."""
        return self._variable

    # ------------------------------------------------------------ what it is
    @property
    def name(self) -> str:
        """The name, with its scopes, and ":0"; of what assigning gives: UnreadVariable."""
        return "UnreadVariable" if self._is_unread else f"{self._variable.name}:0"

    trainable = getter("_variable.trainable", "Whether a GradientTape watches it automatically.")
    constraint = getter(
        "_options.constraint", "What an optimizer applies to the value after each update."
    )
    synchronization = getter("_options.synchronization", "What was requested when it was made.")
    aggregation = getter("_options.aggregation", "What was requested when it was made.")
    initializer = property(lambda self: None, doc="None: it has its value.")
    handle = property(lambda self: self, doc="The variable itself: there are no resources.")

    @property
    def shape(self) -> TensorShape:
        """The sizes of the dimensions, as they were stated."""
        stated = self._static_shape
        return TensorShape(self._variable._cell.declared) if stated is None else stated

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        shown = self._options.shown
        dtype = self._variable._cell.dtype if shown is None else shown
        return string if is_string(dtype) else as_dtype(dtype)

    @property
    def device(self) -> str:
        """The name of the device that it is on, in TensorFlow's full form."""
        found = self._variable.device
        return device_name(jax.local_devices(backend="cpu")[0] if found is None else found)

    @property
    def initial_value(self) -> Any:
        """Raise RuntimeError: the first value is not kept."""
        raise RuntimeError("This property is not supported when eager execution is enabled.")

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Return whether it has a value: True."""
        return Tensor(to_array(True))

    @property
    def _is_count(self) -> bool:
        """Whether it is an optimizer's count, whose operators take other types, as Keras's do."""
        return self._options.shown is not None

    def set_shape(self, shape: Any) -> None:
        """State the shape; raise ValueError when it is another one."""
        self._static_shape = self.shape.merge_with(shape)

    # ------------------------------------------------------------ reading
    def value(self) -> Tensor:
        """Return the value."""
        return Tensor(_read(self))

    read_value = value

    def numpy(self) -> Any:
        """Return the value as a NumPy array, or scalar."""
        return self.value().numpy()

    def ref(self) -> Reference:
        """Return what can be hashed in its place: a key of a dict or element of a set."""
        return Reference(self, vars(self))  # a creator's variable has the attributes of this one

    experimental_ref = ref

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Return rows by index."""
        return OPERATIONS["gather"](self, indices)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """Return parts by index."""
        return OPERATIONS["gather_nd"](self, indices)

    def _kept(self, array: Array) -> Array:
        return array if self._options.shown is None else array.astype(self._variable._cell.dtype)

    def _unread(self) -> Variable:
        """Return what assigning gives: the variable, under TensorFlow's name for that."""
        made = object.__new__(Variable)
        made._variable, made._static_shape = self._variable, self._static_shape
        made._options, made._is_unread = self._options, True
        return made

    # ------------------------------------------------------------ conversion
    def __jax_array__(self) -> Array:
        return _read(self)

    def __bool__(self) -> bool:
        return bool(self.value())

    def _scalar(self) -> Array:
        return self.value()._scalar()

    def __len__(self) -> int:
        return len(self.value())

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.value())

    if not TYPE_CHECKING:  # a checker would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            # Only reached for a missing attribute.
            if name in {"graph", "op"}:
                raise AttributeError(f"Tensor.{name} is undefined when eager execution is enabled.")
            if name in {"eval", "to_proto", "initialized_value"}:
                raise AttributeError(
                    f"'Variable' object has no attribute {name!r}: that is TensorFlow 1. A "
                    "variable has its value from the start: read it with v.numpy() or v.value()."
                )
            raise AttributeError(f"'Variable' object has no attribute {name!r}")

    def __hash__(self) -> int:
        raise TypeError(
            f"Variable is unhashable. Instead, use variable.ref() as the key. (Variable: {self!r})"
        )

    def __copy__(self) -> Variable:
        return self  # as in TensorFlow: a copy of a model shares its variables

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        made = face_of(self._variable.__deepcopy__({}))
        made._options = self._options
        for name, value in vars(self).items():
            setattr(made, name, copy.deepcopy(value, memo))
        memo[id(self)] = made
        return made

    def __reduce__(self) -> Any:
        return face_of, (self._variable,)

    # ------------------------------------------------------------ display
    def __repr__(self) -> str:
        summary = f"tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}"
        try:
            value = _peek(self)
        except JaxvarsError:
            return f"<{summary}>"
        if value is None or context.is_tracer(value):
            return f"<{summary}>"
        return f"<{summary}, numpy={describe_value(Tensor(_from_core(value)))}>"

    def __short_repr__(self) -> str:
        """Return the repr in a module's: without the values, unless there are few."""
        if self._variable.size <= SMALL:
            return repr(self)
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}>"

    def __sketch__(self) -> Sketch:
        return self._variable.__sketch__()._replace(title=f"tf.Variable {self.name!r}")

    _repr_html_ = html_repr

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec) if spec else str(self)


def face_of(variable: CoreVariable) -> Variable:
    """Return the `tf.Variable` that stands for a variable of jaxvars; make one if there is none."""
    made = _FACES.get(variable._cell.key)
    if made is None:
        made = object.__new__(Variable)
        made._variable, made._static_shape = variable, None
        made._options, made._is_unread = VariableOptions(), False
        _FACES[variable._cell.key] = made
    return made


def count_of(variable: CoreVariable) -> Variable:
    """Return what stands for a count of int32: one of int64, as TensorFlow's, where there are any.

    What it holds, and what is saved, stays int32.
    """
    made, is_wide = face_of(variable), jax.dtypes.canonicalize_dtype(np.int64) == np.int64
    made._options = made._options._replace(shown=np.dtype(np.int64) if is_wide else None)
    return made


def _as_one_type(*values: Any) -> list[Tensor]:
    arrays = list(map(to_array, values))
    dtype = jnp.promote_types(*[array.dtype for array in arrays])
    return [Tensor(array.astype(dtype)) for array in arrays]


def _open_sizes(shape: TensorShape) -> Open:
    """Return a shape with unknown sizes as jaxvars has it."""
    return Open(None if shape.rank is None else tuple(shape.as_list()))


def _read(variable: Variable) -> Value:
    core, shown = variable._variable, variable._options.shown
    value = stage_read(core) if is_on_host(core) else _from_core(core.value)
    return value if shown is None else value.astype(shown)


def _peek(variable: Variable) -> Value | None:
    """Return what is shown of a value, None where there is none yet."""
    return LOCAL.frame.peek(variable._variable._cell)


def _from_core(value: Value) -> Value:
    return from_core_strings(value) if type(value) is np.ndarray else value


def _first_value(initial_value: Any, dtype: DType | None) -> Any:
    """Return what the variable of jaxvars is made from."""
    if not callable(initial_value):
        try:
            return _to_known(to_array(initial_value, dtype))
        except ValueError as error:
            if is_tensor_like(initial_value):
                raise ValueError(f"initial_value: {error}") from None
            raise

    def made() -> Any:
        return _to_known(to_array(initial_value(), dtype))

    return made


def _to_known(array: Array) -> Array:
    if is_handles(array):
        raise ValueError(
            "A tf.Variable is created in a tf.function with a string that is known when the "
            'function runs. Create it with one that is known now, tf.Variable(""), and assign it.'
        )
    return to_core_strings(array)


BOXES[Variable] = _read
OPERATIONS["as_one_type"] = _as_one_type
jax.tree_util.register_pytree_node(Variable, lambda v: ((_read(v),), None), only_child)

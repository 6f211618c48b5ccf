"""The face of an array: operators and conversions for objects that stand for a value.

Rules this file keeps:
- every operator works on `.value` and gives a plain array;
- `==` is elementwise, so hashing is by identity;
- a conversion that has no single answer (`bool` of a vector) is refused with advice.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.advice import add_note, did_you_mean, instead_of
from jaxvars.errors import DistributedError, shown
from jaxvars.tensors.direct import Direct
from jaxvars.tensors.quick_jit import QuickJit
from jaxvars.tensors.tensor import check_uncut, own_copy
from jaxvars.tracebacks import shorten
from jaxvars.tracing import context
from jaxvars.tracing.context import EVAL, place
from jaxvars.typing import Array, DTypeLike, Value

T = TypeVar("T")

if TYPE_CHECKING:
    _Base = jax.Array  # what it reads as
else:
    _Base = object

BOXES: dict[type, Callable[[Any], Value]] = {}
"""Classes that are not a Face and stand for an array, and what returns that: `tf.Tensor` is one."""

_PLAIN: set[type] = {int, float}
"""What operators run compiled, without what `jnp` asks of its operands: Python's and JAX's own."""

_OF_ARRAYS_ALONE = frozenset(
    {"block_until_ready", "clone", "devices", "is_ready", "on_device_size_in_bytes", "platform"}
    | {"tobytes", "tolist"}
)
"""What arrays have beside what `jax.Array` declares, but for what JAX knows its own arrays by."""


def unwrap(value: Any) -> Any:
    """Return the array that a Variable, a part of one or a box stands for; others as they are."""
    if isinstance(value, ArrayProxy):
        return value.value
    return BOXES[type(value)](value) if type(value) in BOXES else value


def _operand(value: Any) -> Any:
    """Return what an operator is given; a copy of what the caller may write to while it runs.

    Raises:
        DtypeError: when JAX would cut NumPy's integers: `v == np.int64(2**32)` is True of 0 then.
    """
    if type(value) in _PLAIN:
        return value
    value = value._look() if isinstance(value, ArrayProxy) else unwrap(value)
    if isinstance(value, jax.Array):
        if not context.is_tracer(value) and isinstance(value.dtype, np.dtype):  # not of keys
            _PLAIN.add(type(value))
        return value
    value = own_copy(value, "an operand")
    if isinstance(value, np.ndarray | np.generic):
        check_uncut(value, "an operand")
    return value


_COMPILED = frozenset({"add", "sub", "mul", "truediv", "matmul", "lt", "le", "gt", "ge"})
_SAME = " == compares elements; whether two are one variable is `a is b`."


def _operator(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the method of an operator."""
    is_compiled = compute.__name__ in _COMPILED
    run: Any = QuickJit(compute, jax.jit(compute, inline=True), inline=True)
    record = Direct(run, (0, 1), numbers=True)

    def method(self: ArrayProxy, other: Any) -> Any:
        value, operand = self._look(), _operand(other)
        try:
            if is_compiled and type(value) in _PLAIN and type(operand) in _PLAIN:
                return (run.quick if place(None) is EVAL else record)(value, operand)
            return compute(value, operand)
        except (RuntimeError, TypeError, ValueError) as error:
            if not (is_deleted(value) or is_deleted(operand)):
                from jaxvars.display.strings import type_text

                name = f" {name!r}" if (name := getattr(self, "name", None)) else ""
                more = _SAME if compute in (operator.eq, operator.ne) else ""
                add_note(error, f"The {type(self).__name__}{name} is {type_text(self)}.{more}")
                shorten(error)
                shown(error)
                raise
        return compute(self.value, _operand(unwrap(other)))

    return method


def _reflect(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the method of an operator for an object on its right."""

    def reflected(value: Any, other: Any) -> Any:
        return compute(other, value)

    reflected.__name__ = compute.__name__  # which profiles show
    return _operator(reflected)


def _unary(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the method of an operator that never returns its operand's memory."""

    def method(self: ArrayProxy) -> Any:
        value = self._look()
        try:
            return compute(value)
        except RuntimeError:
            if not is_deleted(value):
                raise
        return compute(self.value)

    return method


_equal, _unequal = _operator(operator.eq), _operator(operator.ne)


def is_deleted(value: object) -> bool:
    """Return whether a value was donated: by another thread's step, since it was looked at."""
    return isinstance(value, jax.Array) and not context.is_tracer(value) and value.is_deleted()


def processes_of(value: Array) -> int:
    """Return over how many processes a value is sharded, if this one has not all of it; else 1."""
    known = isinstance(value, jax.Array) and not context.is_tracer(value)
    if not known or value.is_fully_addressable or value.is_fully_replicated:
        return 1
    return len({device.process_index for device in value.sharding.device_set})


def whole(value: Array) -> Array:
    """Return the value; raise DistributedError if this process has only a part of it."""
    count = processes_of(value)
    if count > 1:
        raise DistributedError(
            f"This value of shape {value.shape} is sharded over {count} processes; this one has "
            "only a part of it. jv.parallel.all_gather(v), called by all of them, returns it all; "
            "v.value.addressable_shards are the parts that are here."
        )
    return value


class ArrayProxy(ABC, _Base):
    """An object that reads as an array."""

    __slots__ = ()
    __array_priority__ = 200  # so that numpy_array + variable is ours to answer

    @property
    @abstractmethod
    def value(self) -> Array:
        """The array it stands for now."""

    def _look(self) -> Array:
        """Return the value to be used at once: the next step may donate it."""
        return self.value

    def _peek(self, *, keep: bool = False) -> Array:
        """Return the value for Python or NumPy, not to compute with it; at once, unless kept."""
        return self.value

    def _to_host(self, convert: Callable[[Any], T]) -> T:
        """Return what Python or NumPy makes of the value."""
        value = self._peek()
        try:
            return convert(value)
        except Exception:  # noqa: BLE001 - it was donated since it was looked at, or is not computed
            pass
        __tracebackhide__ = True  # IPython and pytest leave the frame out
        try:
            return convert(self._peek(keep=True))
        except (TypeError, ValueError) as error:
            shown(error)
            raise

    # ------------------------------------------------------------ shape and type
    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self.value.shape

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements."""
        return self.value.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    @property
    def T(self) -> Array:  # noqa: N802 - NumPy's name
        """The transposed array."""
        return self.value.T

    # ------------------------------------------------------------ conversion
    def numpy(self) -> np.ndarray:
        """Return the value as a separate NumPy array (it may be changed)."""
        return self._to_host(lambda value: np.array(whole(value)))

    def item(self, *args: int) -> Any:
        """Return the value of a scalar, or of one element, as a Python number or string."""
        return self._to_host(lambda value: value.item(*args))

    def astype(self, *args: Any, **options: Any) -> Array:
        """Return the value converted to another dtype."""
        return self.value.astype(*args, **options)

    def reshape(self, *shape: Any, **options: Any) -> Array:
        """Return the value in another shape."""
        return self.value.reshape(*shape, **options)  # jnp.reshape calls this, with `order`

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - NumPy knows no `context`
        if copy:
            return self._to_host(lambda value: np.array(whole(value), dtype=dtype))
        return np.array(whole(self._peek(keep=True)), dtype=dtype, copy=copy)

    def __jax_array__(self) -> Array:
        return self.value

    def __dlpack__(self, *, copy: bool | None = None, **options: Any) -> Any:
        """Return a copy for another library, which may write to it; with copy=False the value."""
        value = whole(self.value)
        is_shared = copy is False or context.is_tracer(value)  # which has no memory
        return (value if is_shared else context.copied(value)).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return whole(self.value).__dlpack_device__()  # pyright: ignore[reportAttributeAccessIssue] - JAX's stub of jax.Array leaves it out

    def __bool__(self) -> bool:
        if self.size != 1:
            raise shown(
                ValueError(
                    f"The truth value of a variable of shape {self.shape} is ambiguous. Say what "
                    "is meant: jnp.any(v), jnp.all(v), v.size > 0, or `v is not None`."
                )
            )
        return self._to_host(bool)

    def __int__(self) -> int:
        return self._to_host(int)

    def __float__(self) -> float:
        return self._to_host(float)

    def __complex__(self) -> complex:
        return self._to_host(complex)

    def __index__(self) -> int:
        return self._to_host(operator.index)

    def __len__(self) -> int:
        if not self.shape:
            raise shown(TypeError("A scalar variable has no len()."))
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise shown(TypeError("A scalar variable cannot be iterated over."))
        return iter(whole(self.value))

    def __contains__(self, item: Any) -> bool:
        return bool(jnp.any(self.value == unwrap(item)))

    def __format__(self, spec: str) -> str:
        return self._to_host(lambda value: format(value, spec)) if spec else str(self)

    def _refuse_flag(self, flag: object) -> NoReturn:
        hint = instead_of("requires_grad", "Variable")
        raise shown(
            AttributeError(f"{type(self).__name__} has no attribute 'requires_grad'.{hint}")
        )

    requires_grad = property(None, _refuse_flag)

    def __dir__(self) -> list[str]:
        public = (name for name in dir(jax.Array) if name[0] != "_")
        refused = {"flat", "requires_grad"}
        return sorted({*super().__dir__(), *public, *_OF_ARRAYS_ALONE} - refused)

    # ------------------------------------------------------------ operators
    if TYPE_CHECKING:  # which knows them of arrays, and that these have no hash

        def __hash__(self) -> int: ...

    else:

        def __getattr__(self, name: str) -> Any:
            # Only reached for a missing attribute: the array's, or say what to write instead.
            kind = type(self).__name__
            if name.startswith("_"):  # looked up by code, and often: no hint, which takes time
                raise AttributeError(f"{kind} has no attribute {name!r}.")
            if hasattr(jax.Array, name) or name in _OF_ARRAYS_ALONE:
                return getattr(self.value, name)
            hint = instead_of(name, "Variable") or did_you_mean(name, dir(type(self)))
            raise shown(AttributeError(f"{kind} has no attribute {name!r}.{hint}"))

        __hash__ = object.__hash__

        def __eq__(self, other: object) -> Any:
            if other is None:
                return False
            return _equal(self, other)

        def __ne__(self, other: object) -> Any:
            if other is None:
                return True
            return _unequal(self, other)

        __lt__ = _operator(operator.lt)
        __le__ = _operator(operator.le)
        __gt__ = _operator(operator.gt)
        __ge__ = _operator(operator.ge)
        __add__, __radd__ = _operator(operator.add), _reflect(operator.add)
        __sub__, __rsub__ = _operator(operator.sub), _reflect(operator.sub)
        __mul__, __rmul__ = _operator(operator.mul), _reflect(operator.mul)
        __truediv__, __rtruediv__ = _operator(operator.truediv), _reflect(operator.truediv)
        __floordiv__, __rfloordiv__ = _operator(operator.floordiv), _reflect(operator.floordiv)
        __mod__, __rmod__ = _operator(operator.mod), _reflect(operator.mod)
        __divmod__, __rdivmod__ = _operator(divmod), _reflect(divmod)
        __pow__, __rpow__ = _operator(operator.pow), _reflect(operator.pow)
        __matmul__, __rmatmul__ = _operator(operator.matmul), _reflect(operator.matmul)
        __and__, __rand__ = _operator(operator.and_), _reflect(operator.and_)
        __or__, __ror__ = _operator(operator.or_), _reflect(operator.or_)
        __xor__, __rxor__ = _operator(operator.xor), _reflect(operator.xor)
        __lshift__, __rlshift__ = _operator(operator.lshift), _reflect(operator.lshift)
        __rshift__, __rrshift__ = _operator(operator.rshift), _reflect(operator.rshift)

        __neg__, __invert__ = _unary(operator.neg), _unary(operator.invert)

    def __pos__(self) -> Array:
        return +self.value

    def __abs__(self) -> Array:
        return abs(self.value)

    def __round__(self, digits: int | None = None) -> Array:
        return round(self.value, *() if digits is None else (digits,))

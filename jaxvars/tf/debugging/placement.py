"""The log of placement: TensorFlow's lines of where each operation ran.

Rules this file keeps:
- an operation of the table is one line, whatever it consists of, once it has run; what no
  operation of `tf` computes has a line with JAX's name for it;
- while no living thread has the log on, nothing here is called by anything.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from functools import partial, wraps
from types import FrameType, FunctionType
from typing import Any, final

import jax

from jaxvars.core.cells import STORE, Cell
from jaxvars.core.frame import CREATED
from jaxvars.debugging.watchers import StandingWatcher, log
from jaxvars.devices.device import describe_devices, device_name, scope_sharding
from jaxvars.errors import is_library
from jaxvars.tensors.array_like import BOXES
from jaxvars.tf.context.scope import executing_eagerly
from jaxvars.tf.registry.rows import INSTEAD, WRITTEN, Row, name_of
from jaxvars.tf.tensors.convert import CONVERSIONS, holds_tensors
from jaxvars.tf.tensors.tensor import OPERATIONS
from jaxvars.tf.variables import variable as variables
from jaxvars.tf.variables.updates import Updates
from jaxvars.tracing import context, recorder
from jaxvars.typing import Array

_PARTS = ("jaxvars.core.variable", "jaxvars.tf.tensors.convert", "jaxvars.tf.variables.")
"""Where constants and the values of variables are computed, which have lines of their own."""

_WRITES = {
    **{f"assign{how}": f"Assign{how[1:].title()}VariableOp" for how in ("", "_add", "_sub")},
    "assign_part": "ResourceStridedSliceAssign", "batch_scatter_update": "ResourceScatterNdUpdate",
    **{
        name: f"Resource{name.title().replace('_', '')}"
        for name in vars(Updates) if name.startswith("scatter")
    },
}  # fmt: skip
"""TensorFlow's operation for each method of `tf.Variable`."""


def set_log_device_placement(enabled: bool) -> None:
    """Choose whether this thread writes where each operation ran, to stderr.

    An operation of `tf` has TensorFlow's name; a constant is `_EagerConst`, a new variable
    `VarHandleOp` and `AssignVariableOp`, a read `ReadVariableOp`.

    Args:
        enabled: write lines (True) or no more (False).

    Raises:
        RuntimeError: inside a tape, a compiled function or a transform.

    >>> from jaxvars import tf
    >>> set_log_device_placement(True)
    >>> x = tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]))  # Executing op MatMul in device ...
    >>> set_log_device_placement(False)

    Differs from TensorFlow: it holds for the thread, and from the moment that it is set. What
    TensorFlow composes of several operations is one line, and so is a `tf.function`, with its name.
    Gradients and plain `jnp` code have JAX's names; random draws have no line, nor have shapes and
    axes, which are no tensors here.
    """
    if enabled:
        _LOG.stand()
        _begin()
    else:
        _LOG.leave()
        _end()


def get_log_device_placement() -> bool:
    """Return whether this thread writes where each operation ran.

    >>> get_log_device_placement()
    False
    """
    return _LOG.stands()


@final
class _Log(StandingWatcher):
    __slots__ = ()

    def look(self, name: str, equation: recorder.Equation, outputs: list[Array]) -> None:
        """Write where what has no line of its own ran."""
        if not _is_part(sys._getframe(1), _PARTS):
            log(f"Executing op {name}", [*outputs, *equation.inputs])


_LOG = _Log("The log of placement")
_ON: set[threading.Thread] = set()
"""The threads whose log is on."""

_SWITCHING = threading.RLock()


def _begin() -> None:
    """Be told of operations, of constants, and of what is done to variables."""
    with _SWITCHING:
        if _CODE not in INSTEAD:
            INSTEAD.append(_CODE)
            CREATED.append(_log_new)
            CONVERSIONS.insert(0, (-math.inf, object, _log_constant))
            for put, instead, _ in _PLACES:
                put(instead)
            for row in tuple(WRITTEN):  # another thread may call an operation for the first time
                row.function.__code__ = _CODE
        _ON.add(threading.current_thread())


def _end() -> None:
    """Be told no more, if no other living thread is to be."""
    with _SWITCHING:
        _ON.intersection_update(threading.enumerate())  # those that live
        _ON.discard(threading.current_thread())
        if not _ON and _CODE in INSTEAD:
            INSTEAD.remove(_CODE)
            CREATED.remove(_log_new)
            CONVERSIONS[:] = [one for one in CONVERSIONS if one[2] is not _log_constant]
            for put, _, own in _PLACES:
                put(own)
            for row, code in tuple(WRITTEN.items()):
                row.function.__code__ = code


def _write(op: str, value: Any = None) -> None:
    """Write a line, with the device of a value; without an array, that of what is made now."""
    if isinstance(value, Updates):
        value = STORE.get(value.aliased._cell.key)
    array = next((x for x in jax.tree.leaves(value) if isinstance(x, jax.Array)), None)
    if _LOG.stands() and executing_eagerly() and not context.is_tracer(array):
        where = f"device {device_name(_find_here())}" if array is None else describe_devices(array)
        sys.stderr.write(f"Executing op {op} in {where}\n")


def _find_here() -> Any:
    """Return the device of the scope, or the first."""
    scope = scope_sharding()
    return jax.local_devices()[0] if scope is None else next(iter(scope.device_set))


# ---------------------------------------------------------------- operations
def run(op: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call what is an operation, and write its line, unless it is a part of another one."""
    result = function(*args, **kwargs)
    if not _is_part(sys._getframe(1)):
        _write(op, args[0] if result is None else result)
    return result


def _is_part(frame: FrameType | None, modules: tuple[str, ...] = ("?",)) -> bool:
    """Return whether an operation, or a file of some modules, runs it, with no user in between."""
    while frame is not None and is_library(frame.f_globals, frame.f_code.co_filename):
        module = str(frame.f_globals.get("__name__"))
        if frame.f_code is run.__code__ or module.startswith(modules):
            return True
        frame = frame.f_back
    return False


def _call_operation(*args: Any, **kwargs: Any) -> Any:
    """Call the operation whose globals these are."""
    from jaxvars.tf.debugging.placement import run_row

    return run_row(globals()["row"], *args, **kwargs)


_CODE = _call_operation.__code__


def run_row(row: Row, /, *args: Any, **kwargs: Any) -> Any:
    """Call an operation of the table by the code that it has."""
    if not _LOG.stands():
        _end()  # if the threads whose log is on have ended
    function = row.function
    own = FunctionType(WRITTEN[row], function.__globals__, None, function.__defaults__)
    own.__kwdefaults__ = function.__kwdefaults__
    return run(name_of(row), own, *args, **kwargs)


# ---------------------------------------------------------------- constants and variables
def _log_constant(value: Any, **_: Any) -> Any:
    if not holds_tensors(value):
        _write("_EagerConst")
    return NotImplemented


def _log_new(cell: Cell) -> None:
    for op in ("VarHandleOp", "AssignVariableOp"):
        _write(op, STORE.get(cell.key))


def _reading(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read_and_log(variable: Any) -> Any:
        value = read(variable)
        _write("ReadVariableOp", value)
        return value

    return read_and_log


def _logged(op: str, function: Callable[..., Any]) -> Callable[..., Any]:
    return wraps(function)(lambda *args, **kwargs: run(op, function, *args, **kwargs))


_READ, _PEEK = _reading(variables._read), _reading(variables._peek)
_PLACES: list[tuple[Callable[[Any], object], Callable[..., Any], Callable[..., Any]]] = [
    (partial(BOXES.__setitem__, variables.Variable), _READ, variables._read),
    (partial(setattr, variables, "_read"), _READ, variables._read),
    (partial(setattr, variables, "_peek"), _PEEK, variables._peek),
    *(
        (partial(OPERATIONS.__setitem__, name), _logged(op, OPERATIONS[name]), OPERATIONS[name])
        for name, op in {"getitem": "StridedSlice", "eq": "Equal", "ne": "NotEqual"}.items()
    ),
    *(
        (partial(setattr, Updates, name), _logged(op, own), own)
        for name, op in _WRITES.items() if (own := getattr(Updates, name))
    ),
]  # fmt: skip
"""Where to put what writes a line, and what was there."""

"""Variables of strings: as bytes, and in a `tf.function`, whose program calls the host for them.

Rules this file keeps:
- a program reads and assigns them in its order, in loops and branches, too;
- what a call assigns is in its table, where its later reads find it, and in the variables when the
  program has run: a call that fails changes none.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable
from jaxvars.tensors.dtypes import is_string, string
from jaxvars.tf.errors import InvalidArgumentError
from jaxvars.tf.tensors.handles import SCOPE, Table, is_text, lift, require_scope, stage, table_of
from jaxvars.tf.tensors.python_values import to_bytes, to_text
from jaxvars.tracing import context
from jaxvars.typing import Array, Value


def to_core_strings(array: Value) -> Value:
    """Return an array as jaxvars keeps it: strings not as bytes."""
    if not is_text(array):
        return array
    return np.array(list(map(to_text, array.ravel())), string).reshape(array.shape)


def from_core_strings(array: Value) -> np.ndarray:
    """Return strings that jaxvars keeps as bytes."""
    made = np.empty(array.size, object)
    made[:] = list(map(to_bytes, array.ravel()))
    return made.reshape(array.shape)


def with_part(strings: Array, index: Any, new: Array) -> Array:
    """Return strings with others, or what these broadcast to, in a part."""
    if any(map(context.is_tracer, index)) or not (is_text(strings) and is_text(new)):
        return lift(strings).at[index].set(lift(new))
    made = strings.copy()
    made[index] = new if new.ndim else new.item()
    return made


def part_shape(shape: Sequence[int], index: Any) -> tuple[int, ...]:
    """Return the shape of a part; raise IndexError for a known index that is out of range."""
    if any(map(context.is_tracer, index)):
        return jax.eval_shape(lambda: jnp.empty(shape, bool)[index]).shape
    return np.empty(shape, bool)[index].shape


# ---------------------------------------------------------------- in a program
def is_on_host(variable: Variable) -> bool:
    """Return whether the program that is traced calls the host for a variable."""
    is_in_program = LOCAL.frame is not LOCAL.eager and SCOPE.value is not False
    return is_in_program and is_string(variable._cell.dtype)


def stage_read(variable: Variable) -> Array:
    """Have the program read a variable.

    Raises:
        InvalidArgumentError: when it has unknown sizes.
    """
    if variable._cell.is_open:
        raise InvalidArgumentError(
            message=f"Variable '{variable.name}' holds strings and has unknown sizes: it cannot be "
            "read in a tf.function, as XLA compiles for fixed shapes. Give the function its value, "
            "step(v.value()), or the variable all sizes."
        )
    like = np.full(variable._cell.aval.shape, b"", object)
    read = functools.partial(_read, weakref.ref(variable))
    return stage(read, require_scope(), ordered=True, like=like)


def stage_assign(variable: Variable, array: Array) -> None:
    """Have the program assign a variable."""
    assign = functools.partial(_assign, weakref.ref(variable))
    stage(assign, require_scope(), array, ordered=True, like=np.zeros((), bool))


def _read(ref: weakref.ref[Variable], scope: np.ndarray) -> np.ndarray:
    table, cell = table_of(scope), _find(ref)._cell
    if cell.key not in table.assigned:
        value: Any = table.frame.peek(cell)
        return from_core_strings(value)
    return table.assigned[cell.key][1]


def _assign(ref: weakref.ref[Variable], scope: np.ndarray, array: np.ndarray) -> np.ndarray:
    variable = _find(ref)
    table_of(scope).assigned[variable._cell.key] = variable, array
    return np.zeros((), bool)


def _find(ref: weakref.ref[Variable]) -> Variable:
    variable = ref()
    if variable is None:
        raise RuntimeError("A tf.Variable of strings that the tf.function uses is gone.")
    return variable


# ---------------------------------------------------------------- around a call
def commit(table: Table) -> None:
    """Give variables what a call has assigned."""
    if table.assigned:
        variables, arrays = zip(*table.assigned.values(), strict=True)
        values = list(map(to_core_strings, arrays))
        LOCAL.eager.write_all([variable._cell for variable in variables], values, ())

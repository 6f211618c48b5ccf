"""Functions of arrays that a recorder sees as one operation each, at nearly their usual speed.

Under a recorder each of JAX's functions takes its slow path in Python, to become a primitive that
the recorder is told of. What depends on its arguments alone need not: outside of the recorder it
runs at full speed, and the program that it is differentiated as is known after one such call.

Rules this file keeps:
- what computes is the function itself, as without a recorder; its program, traced once for each
  kind of arguments, serves derivatives alone;
- arguments are of the same kind if the arrays, and the numbers in the place of one, have the same
  types and all others, which cannot change, are equal in each bit, under the same settings of JAX;
- a program is used if it has few operations, closes over no array, has neither effects nor rules of
  a user's, and gives the type of array that the function gave. Else the call takes its usual way;
- look-ups stay visible, and copies and casts, which pass on what is looked up: the gradient may be
  sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, final

import jax
import numpy as np

from jaxvars.objects.identity import exact
from jaxvars.tracing import jaxprs
from jaxvars.tracing.context import EVAL, Tracer, at, place, table_for_settings
from jaxvars.tracing.operations import Operation, is_small, new_key
from jaxvars.tracing.recorder import Recorder
from jaxvars.typing import Array

_PLAIN = frozenset({type(None), bool, int, float, str})
_PASSING = frozenset({"copy", "convert_element_type", "jit"})
_LEARNED = 128  # kinds of arguments of one function: to trace takes milliseconds
_CONCRETE: set[type] = {np.ndarray}
_NUMBERS = frozenset({int, float})


@final
class Direct:
    """A function whose results depend on its arguments alone, recorded as one operation.

    Args:
        call: takes arrays and other arguments, all by position; returns an array.
        arrays: the positions of the arrays.
        numbers: whether the function takes a Python number for an array, and traces it.
    """

    def __init__(
        self, call: Callable[..., Any], arrays: Sequence[int], *, numbers: bool = False
    ) -> None:
        self._call = call
        self._arrays = tuple(arrays)
        self._is_array = _is_array_or_number if numbers else _is_array
        self._learned = 0

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        recorder = place(None)
        if recorder.__class__ is Recorder and recorder.parent is EVAL:
            listener = recorder.listener
            inputs, others = args, ()
            if len(args) > len(self._arrays):
                inputs = [args[i] for i in self._arrays]
                others = [x for i, x in enumerate(args) if i not in self._arrays]
            is_known = all(map(self._is_array, inputs)) and all(map(_is_plain, others))
            if getattr(listener, "follows", listener is not None) and is_known:
                with at(EVAL):
                    if not listener.wants(inputs):
                        return self._call(*args)
                    operation = self._find(inputs, args, others)
                    if operation is not None:
                        return recorder.tell(operation, inputs)[0]
        return self._call(*args)

    def _find(
        self, inputs: Sequence[Array], args: Sequence[Any], others: Sequence[Any]
    ) -> Operation | None:
        """Return what a call with such arguments is; None if it is to take its usual way."""
        key = (self, *map(_type_of, inputs), *map(exact, others))
        table = table_for_settings()
        if key not in table and self._learned < _LEARNED:
            self._learned += 1
            table[key] = self._learn(inputs, args)
        return table.get(key)

    def _learn(self, inputs: Sequence[Array], args: Sequence[Any]) -> Operation | None:
        others: list[Any] = [
            None if i in self._arrays else x for i, x in enumerate(args)
        ]  # and no array

        def call(*values: Array) -> Any:
            return self._call(*jaxprs.replace_values(others, self._arrays, values))

        call = call if len(args) > len(inputs) else self._call
        try:
            program, form = jax.make_jaxpr(call, return_shape=True)(*inputs)
            if not isinstance(form, jax.ShapeDtypeStruct) or not _is_simple(program):
                return None
            result = call(*inputs)
        except Exception:  # noqa: BLE001 - the call itself will say what is wrong, if anything is
            return None
        if not isinstance(result, jax.Array) or jax.typeof(result) != program.out_avals[0]:
            return None

        def run(*values: Array) -> list[Array]:
            return [call(*values)] if place(None) is EVAL else jaxprs.evaluate(program, values)

        operation = Operation("jit", run, {"jaxpr": program})
        operation.key = new_key()
        return operation


def _is_array(value: Any) -> bool:
    kind = value.__class__
    if kind not in _CONCRETE and isinstance(value, jax.Array) and not isinstance(value, Tracer):
        _CONCRETE.add(kind)
    return kind in _CONCRETE


def _is_array_or_number(value: Any) -> bool:
    return value.__class__ in _NUMBERS or _is_array(value)


def _is_plain(value: Any) -> bool:
    kind = value.__class__
    return kind in _PLAIN or (kind is tuple and all(map(_is_plain, value)))


def _type_of(value: Array) -> Hashable:
    if value.__class__ in _NUMBERS:
        return value.__class__
    return (value.shape, value.dtype) if isinstance(value, np.ndarray) else value.aval


def _is_simple(program: Any) -> bool:
    inside = jaxprs.primitives_in(program)
    return (
        is_small(program)
        and not jaxprs.is_single("jit", {"jaxpr": program})
        and "gather" not in inside
        and not inside <= _PASSING
    )

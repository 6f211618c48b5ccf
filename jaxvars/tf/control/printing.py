"""`tf.print`: show values as TensorFlow does, when the code runs.

Rules this file keeps:
- what is not known while a function is traced is passed to a callback (`jaxvars.console.print`);
- numbers are as short as they can be read back; strings in tensors have quotes, but not if they
  are all that is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import numpy as np

from jaxvars.console.print import Options, emit, find_writer
from jaxvars.tf import nest
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.handles import taker, to_data
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable
from jaxvars.tracing import context
from jaxvars.typing import Array

_OPTIONS = ("output_stream", "end", "sep", "summarize", "name")


def print(*inputs: Any, **kwargs: Any) -> None:
    """Print values as they are at this point, eagerly and in compiled functions.

    Args:
        *inputs: tensors, variables, structures of them, and anything else.
        **kwargs: `output_stream` is where to, `sys.stderr`, an open file, or a string such as
            "file:///path"; `sep` stands between two values, `end` at the end; `summarize` is how
            many elements of each dimension to show at its beginning and end, -1 for all.

    Raises:
        ValueError: for another name.

    >>> import sys
    >>> from jaxvars import tf
    >>> print("x:", tf.constant([1.0, 2.5]), output_stream=sys.stdout)
    x: [1 2.5]
    """
    unknown = [name for name in kwargs if name not in _OPTIONS]
    if unknown:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {unknown}")
    stream = kwargs.get("output_stream")
    sep, end = kwargs.get("sep", " "), kwargs.get("end", "\n")
    few = kwargs.get("summarize")
    few = 3 if few is None else int(few)
    arrays: list[Array] = []
    parts = [_format_value(value, arrays, few, quoted=len(inputs) > 1) for value in inputs]
    _send(
        lambda known: sep.join(part(known) for part in parts) + end, arrays, _choose_writer(stream)
    )


def _choose_writer(stream: Any) -> Callable[[str, bool], None]:
    if stream in ("stderr", "tf.logging.INFO") or stream is None:
        return find_writer(sys.stderr)
    return find_writer(sys.stdout if stream == "stdout" else stream)


Part: TypeAlias = Callable[[list[np.ndarray]], str]


def _format_value(value: Any, arrays: list[Array], few: int, *, quoted: bool = True) -> Part:
    """Return what makes a string of a value, once its arrays are known; these are noted."""
    if isinstance(value, Tensor | Variable | jax.Array | np.ndarray):
        place = len(arrays)
        arrays.append(to_array(value))
        return lambda known: format_tensor(known[place], few, quoted=quoted)
    if not nest.is_nested(value):
        return lambda known: value if isinstance(value, str) else repr(value)
    return _format_structure(value, arrays, few)


def _format_structure(value: Any, arrays: list[Array], few: int) -> Part:
    def part(x: Any) -> Part:
        if isinstance(x, str | bytes):
            return lambda known: repr(x)
        return _format_value(x, arrays, few)

    if isinstance(value, Mapping):
        pairs = [(key, part(value[key])) for key in sorted(value)]
        return lambda known: f"{{{', '.join(f'{k!r}: {p(known)}' for k, p in pairs)}}}"
    parts = [part(x) for x in value]
    left, right = "()" if isinstance(value, tuple) else "[]"
    tail = "," if isinstance(value, tuple) and len(value) == 1 else ""
    return lambda known: f"{left}{', '.join(p(known) for p in parts)}{tail}{right}"


def format_tensor(array: np.ndarray, few: int, *, quoted: bool = False) -> str:
    """Return an array as a string; strings as its elements in quotes, or only where it is in a row.

    >>> format_tensor(np.arange(10), 3)
    '[0 1 2 ... 7 8 9]'
    """
    if not array.ndim:
        return _format_number(array[()], quoted=quoted)
    return _format_rows(array, few, 1)


def _format_rows(array: np.ndarray, few: int, depth: int) -> str:
    if array.ndim == 0:
        return _format_number(array[()], quoted=True)
    cut = few >= 0 and len(array) > 2 * few
    rows = [np.asarray(row, array.dtype) for row in array]
    shown = [_format_rows(row, few, depth + 1) for row in (rows[:few] if cut else rows)]
    if cut:
        shown += ["...", *(_format_rows(row, few, depth + 1) for row in rows[len(rows) - few :])]
    glue = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * depth
    return f"[{glue.join(shown)}]"


_DIGITS = {2: (6, 9), 4: (6, 9), 8: (15, 17)}


def _format_number(value: Any, *, quoted: bool) -> str:
    if isinstance(value, bytes | str):
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        return f'"{text}"' if quoted else text
    dtype = np.asarray(value).dtype
    if dtype.kind == "b":
        return str(int(value))
    if dtype.kind == "c":
        real, imag = (_format_number(x, quoted=False) for x in (value.real, value.imag))
        return f"({real},{imag})"
    if dtype.kind in "iu":
        return str(int(value))
    short, long = _DIGITS.get(dtype.itemsize, (6, 9))
    text = f"{float(value):.{short}g}"
    exact = np.asarray(float(text), np.float64 if dtype.itemsize == 8 else np.float32)
    same = exact == np.asarray(value, exact.dtype) or np.isnan(float(value))
    return text if same else f"{float(value):.{long}g}"


def _send(
    text: Callable[[list[np.ndarray]], str], arrays: list[Array], write: Callable[[str, bool], None]
) -> None:
    """Print now if all is known and nothing is being staged; else when the program runs."""
    take, data = taker(arrays), map(to_data, arrays)
    values = [x if context.is_tracer(x) else np.asarray(x) for x in data]
    emit(lambda *known: text(take(known)), values, Options(write, True, 3, True))

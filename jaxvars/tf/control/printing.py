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
from jaxvars.tf.strings.conversion import format_tensor
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


def _send(
    format_all: Callable[[list[np.ndarray]], str],
    arrays: list[Array],
    write: Callable[[str, bool], None],
) -> None:
    """Print now if all is known and nothing is being staged; else when the program runs."""
    take, data = taker(arrays), map(to_data, arrays)
    values = [x if context.is_tracer(x) else np.asarray(x) for x in data]
    emit(lambda *known: format_all(take(known)), values, Options(write, True, 3, True, "tf.print"))

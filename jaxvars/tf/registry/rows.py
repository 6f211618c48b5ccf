"""The table of operations: a row says TensorFlow's name and signature, and what is called.

    ROWS = [
        Row("add", "x y", "x, y", jnp.add, op="AddV2", same=True,
            doc="Add, element by element.",
            examples=("math.add(r(2, 3), r(3))", "math.add(i(4), 2)", "math.add(r(0), 1.0)")),
    ]
    __getattr__ = operations(__name__, ROWS)

From it come the functions, their docstrings, the page "what there is and what differs", and the
tests: each example is run eagerly, compiled and differentiated, and compared with TensorFlow's.

Rules this file keeps:
- a function is written when it is first asked for, with TensorFlow's signature, so that a call
  costs little more than that of JAX's function;
- tensors among the arguments are converted by TensorFlow's rules (`tensors/convert.py`), results
  are Tensors;
- what JAX refuses is raised as what TensorFlow raises.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import jax
import numpy as np

from jaxvars.display.repr import did_you_mean
from jaxvars.errors import JaxvarsError
from jaxvars.tf.errors import InvalidArgumentError, OpError
from jaxvars.tf.listing import HOMES, lister
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import DType
from jaxvars.tf.tensors.slices import IndexedSlices
from jaxvars.tf.tensors.tensor import ARRAYS, OUT_OF_SCOPE, Tensor, wrap
from jaxvars.tracing import context

Value: TypeAlias = Any

TABLE: dict[str, Row] = {}
"""All rows, by full name: "math.add", or "concat" for those of a file with an underscore."""

_KINDS: dict[str, Callable[[DType], bool]] = {
    "float": lambda d: d.is_floating,
    "complex": lambda d: d.is_complex,
    "int": lambda d: d.is_integer,
    "bool": lambda d: d.is_bool,
    "string": lambda d: d.is_string,
}

_TEMPLATE = """
def {name}({signature}):
{conversions}
    try:
        result = {fold}call({arguments})
    except REFUSED as refused:
        raise refused.error from None
    except ERRORS as error:
        raise translated(error, {op!r}, {operands}) from error
    return Tensor(result) if class_of(result) in ARRAYS else wrap(result)
"""


@final
class Refused(Exception):  # noqa: N818 - it says what was done, and users never see it
    """What an operation raises for TensorFlow's exception to be raised as it is.

    Args:
        error: the exception; other ones of `call` are raised as InvalidArgumentError.

    Wrong, in a function that a row calls: `raise TypeError("...")`. Cure: `raise
    Refused(TypeError("..."))`.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


@final
@dataclass(frozen=True)
class Row:
    """An operation.

    Args:
        name: TensorFlow's, within its namespace.
        tensors: which arguments are tensors, in words: "x y". One with a star, "values*", is a list
            of tensors. One with a question mark, "bias?", may be None.
        signature: TensorFlow's, as written there, without `name=None`, which is added.
        call: what does it: takes arrays for the tensors and the other arguments as they are, all by
            position, and returns an array or a structure of arrays.
        op: what TensorFlow calls the operation in its messages; `name` in capitals if empty.
        same: the tensors must be of one type; what is no tensor is converted to it.
        pairing: what makes arrays of one type of two tensors, if it is not `_convert.pair`.
        kinds: which types the first tensor may have, in words: "float complex"; all if empty.
        examples: calls as one writes them after `tf.`, three or more, edge cases among them.
            `r(2, 3)` is a float32 array of random numbers, `p(2, 3)` of positive ones, `i(4)` of
            integers, `b(4)` of bools, `z(2)` of complex numbers. TensorFlow ran each once.
        doc: what it does, in one imperative sentence.
        differs: what is not as in TensorFlow, in a sentence.
        aliases: other full names, like "add" of `tf.add`.
        text: `call` takes text (NumPy arrays of bytes objects), too.
        by_rows: the argument that may be `tf.IndexedSlices`, and then the result is, too.
        eager_only: why it can't be part of a compiled function: the size of its result depends on
            values.
    """

    name: str
    tensors: str
    signature: str
    call: Callable[..., Any]
    op: str = ""
    same: bool = False
    kinds: str = ""
    examples: tuple[str, ...] = ()
    doc: str = ""
    differs: str = ""
    aliases: tuple[str, ...] = ()
    text: bool = False
    eager_only: str = ""
    pairing: Callable[[Any, Any, str], tuple[Value, Value]] | None = None
    by_rows: str = ""


def operations(
    module: str, rows: Sequence[Row], others: Sequence[str] = (), space: str | None = None
) -> Callable[[str], Any]:
    """Return a module's `__getattr__`, which makes the functions of a table when asked for.

    Args:
        module: its `__name__`.
        rows: the table.
        others: names that are there without a row, for the hint.
        space: the namespace, if it is not that of the file: "math.special".
    """
    space = module.removeprefix("jaxvars.tf.") if space is None else space
    by_name = {row.name: row for row in rows}
    for row in rows:
        full = f"{space}.{row.name}" if space else row.name
        TABLE[full] = row
        HOMES.update(dict.fromkeys([full, *row.aliases], f"{module}:{row.name}"))

    setattr(sys.modules[module], "__dir__", lister(module, others, space))  # noqa: B010 - pyright knows no such name

    def attribute(name: str) -> Any:
        if name not in by_name:
            if name == "__all__":
                return sorted([*by_name, *others])
            if space and (elsewhere := find(f"{space}.{name}")) is not None:
                return elsewhere
            hint = did_you_mean(name, [*by_name, *others])
            where = f"tf.{space}" if space else "tf"
            raise AttributeError(f"{where} has no attribute {name!r}.{hint}")
        made = function_of(by_name[name], module)
        setattr(sys.modules[module], name, made)
        return made

    return attribute


def function_of(row: Row, module: str) -> Callable[..., Any]:
    """Return the function that a row describes."""
    names: dict[str, Any] = {
        "call": row.call, "Tensor": Tensor, "wrap": wrap, "to_array": _convert.to_array,
        "pair": row.pairing or _convert.pair, "alike": _convert.alike, "checked": _checked,
        "ERRORS": (TypeError, ValueError, JaxvarsError, NotImplementedError, IndexError),
        "translated": _translated, "row": row, "listed": _listed, "REFUSED": Refused,
        "static": _static, "is_static": _convert.is_static, "ndarray": np.ndarray,
        "ARRAYS": ARRAYS, "allowed": set(), "class_of": type,  # `type` may be an argument
        "IndexedSlices": IndexedSlices,
    }  # fmt: skip
    parameters = _parameters(row.signature)
    source = _TEMPLATE.format(
        name=row.name,
        signature=", ".join(filter(None, [row.signature, "name=None"])),
        conversions="\n".join(f"    {line}" for line in _conversions(row)) or "    pass",
        arguments=", ".join(parameters),
        op=row.op or row.name.title().replace("_", ""),
        fold=_fold(row, parameters),
        operands=f"({', '.join(row.tensors.split())})" if _is_pair(row) else "()",
    )
    exec(compile(source, f"<tf.{row.name}>", "exec"), names)
    made = names[row.name]
    made.__module__, made.__qualname__, made.__doc__ = module, row.name, docstring(row)
    return made


def _fold(row: Row, parameters: list[str]) -> str:
    """Return what comes before the call: the choice of computing with sizes on the host."""
    words = [word for word in row.tensors.split() if word[-1] != "?"]
    given = ", ".join(parameters)
    if not words or row.text:
        return ""
    if any(word[-1] == "*" for word in words):
        lists = " and ".join(f"is_static({word[:-1]})" for word in words if word[-1] == "*")
        return f"static(call, {given}) if {lists} else "
    known = " and ".join(f"class_of({word}) is ndarray" for word in words)
    return f"static(call, {given}) if {known} else "


def _static(call: Callable[..., Any], *arguments: Any) -> Any:
    """Compute with sizes, which are known: while a function is traced, too."""
    with context.at(context.EVAL):
        return jax.tree.map(np.asarray, call(*arguments))


def _is_pair(row: Row) -> bool:
    words = row.tensors.split()
    return row.same and len(words) == 2 and all(word[-1] not in "*?" for word in words)


def _conversions(row: Row) -> list[str]:
    """Return the lines that make arrays of the tensors."""
    words = row.tensors.split()
    op = row.op or row.name.title().replace("_", "")
    plain = [word for word in words if word[-1] not in "*?"]
    lines = _rows_apart(row)
    if _is_pair(row):
        x, y = plain
        both = f"class_of({x}) is Tensor and class_of({y}) is Tensor"
        lines.append(f"if {both} and {x}._array.dtype is {y}._array.dtype:")
        lines.append(f"    {x}, {y} = {x}._array, {y}._array")
        lines.append(f"else: {x}, {y} = pair({x}, {y}, {op!r})")
    elif row.same and len(plain) > 1:
        lines.append(f"{', '.join(plain)} = alike(({', '.join(plain)}), {op!r})")
    else:
        lines += [f"{x} = {x}._array if class_of({x}) is Tensor else to_array({x})" for x in plain]
    for word in words:
        x = word[:-1]
        if word.endswith("*"):
            lines.append(f"{x} = listed({x}, {op!r}, {row.same})")
        elif word.endswith("?"):
            lines.append(f"{x} = None if {x} is None else to_array({x})")
    if plain and (row.kinds or not row.text):
        lines.append(f"if {plain[0]}.dtype not in allowed:")
        lines.append(f"    allowed.add(checked({plain[0]}, row, {op!r}))")
    return lines


def _rows_apart(row: Row) -> list[str]:
    """Return the lines that do with the rows of `tf.IndexedSlices` what is done with a tensor."""
    x = row.by_rows
    given = ", ".join(f"{p}.values" if p == x else p for p in _parameters(row.signature))
    line = f"if class_of({x}) is IndexedSlices: return {x}.with_values({row.name}({given}))"
    return [line] if x else []


def _listed(values: Any, op: str, same: bool) -> list[Value]:
    if isinstance(values, Tensor) or not isinstance(values, list | tuple):
        values = list(Tensor(_convert.to_array(values)))
    return _convert.alike(values, op) if same else list(map(_convert.to_array, values))


def _checked(array: Value, row: Row, op: str) -> Any:
    """Return a type; raise InvalidArgumentError if the operation is not there for it."""
    dtype = _convert.dtype_of(array)
    kinds = row.kinds.split() or ["float", "complex", "int", "bool"]
    if not any(_KINDS[kind](dtype) for kind in kinds):
        raise InvalidArgumentError(
            None,
            None,
            f"Value for attr 'T' of {dtype.name} is not in the list of allowed values: "
            f"{', '.join(kinds)} [Op:{op}] name: ",
        )
    return array.dtype


def _parameters(signature: str) -> list[str]:
    """Return the names of the parameters in a signature."""
    arguments = ast.parse(f"def f({signature}): pass").body[0].args  # pyright: ignore[reportAttributeAccessIssue] - a function
    return [arg.arg for arg in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]


def _translated(error: Exception, op: str, operands: tuple[Value, ...]) -> Exception:
    """Return what TensorFlow raises where JAX, NumPy or jaxvars refuse."""
    if isinstance(error, OpError):
        return error
    if isinstance(error, jax.errors.UnexpectedTracerError):
        return TypeError(OUT_OF_SCOPE)
    words = str(error)
    if operands and not _broadcast(*operands):
        words = "Incompatible shapes: {} vs. {}".format(*map(shape_text, operands))
    return InvalidArgumentError(None, None, f"{words} [Op:{op}] name: ")


def _broadcast(x: Value, y: Value) -> bool:
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except (TypeError, ValueError):  # TypeError: sizes are open
        return False
    return True


def shape_text(array: Value) -> str:
    """Return the shape of an array as TensorFlow's messages write it: [2,3]."""
    return f"[{','.join(map(str, array.shape))}]"


def axes(axis: Any) -> int | tuple[int, ...] | None:
    """Return an axis argument, a number, a tensor or a list of them, as JAX takes it."""
    if axis is None or type(axis) is int:
        return axis
    given = np.asarray(axis)
    return int(given) if given.ndim == 0 else tuple(map(int, given))


def find(name: str) -> Any:
    """Return the function of a full name or alias; None if there is none."""
    module, _, operation = HOMES.get(name, "").partition(":")
    return getattr(importlib.import_module(module), operation) if module else None


def docstring(row: Row) -> str:
    """Return the docstring of an operation, made of its row."""
    parts = [row.doc]
    if row.examples:
        parts.append(f"Example: `tf.{row.examples[0]}`.")
    if row.differs:
        parts.append(f"Differs from TensorFlow: {row.differs}")
    return "\n\n".join(parts) + "\n"

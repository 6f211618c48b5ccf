"""The table of operations: `op`, above a function of arrays, makes TensorFlow's operation of it.

    @op("math.add", "x y", same=True, op="AddV2", aliases=("add",))
    def add(x: Array, y: Array) -> Array:
        '''Add, element by element.'''
        return jnp.add(x, y)

What the name stands for then takes tensors, and an argument `name`, which is ignored; the function
of arrays is its `__wrapped__`. From the table come the namespaces and the page "what there is and
what differs".

Rules this file keeps:
- what converts the arguments is written as code when an operation is first called, so that a call
  costs little more than that of JAX's function;
- tensors among the arguments are converted by TensorFlow's rules (`tensors/convert.py`), results
  are Tensors;
- what JAX refuses is raised as what TensorFlow raises.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence, Set, ValuesView
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, ParamSpec, Protocol, cast, final

import jax
import numpy as np

from jaxvars.errors import JaxvarsError
from jaxvars.objects.interpreter import load, parse_source
from jaxvars.tensors.direct import Direct
from jaxvars.tensors.dtypes import note_platform
from jaxvars.tensors.quick_jit import QuickJit
from jaxvars.tensors.wrapping import is_boxing
from jaxvars.tf.errors import OpError
from jaxvars.tf.listing import HOMES, lister, not_there
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import DTYPES, DType, as_dtype
from jaxvars.tf.tensors.handles import on_strings
from jaxvars.tf.tensors.slices import IndexedSlices
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import ARRAYS, OUT_OF_SCOPE, Tensor, wrap
from jaxvars.tracing import context
from jaxvars.tracing.context import EVAL, place
from jaxvars.typing import Array

P = ParamSpec("P")

TABLE: dict[str, Row] = {}
"""All rows, by full name: "math.add", or "concat" for `tf.concat`."""

WRITTEN: dict[Row, CodeType] = {}
"""The code of the operations that have been called."""

INSTEAD: list[CodeType] = []
"""What operations run instead of it for a while, with their globals."""

_KINDS: dict[str, Callable[[DType], bool]] = {
    "float": lambda d: d.is_floating,
    "complex": lambda d: d.is_complex,
    "int": lambda d: d.is_integer,
    "bool": lambda d: d.is_bool,
    "string": lambda d: d.is_string,
}

_ONLY = {name: DTYPES[name] for name in ("bool", "float32")}

HOST = "strings are on the host, which a `tf.function` calls: their sizes must be known"
"""Why an operation on strings is not part of a compiled function."""

_PURE = {"jaxvars.tf", "jaxvars.tf.math", "jaxvars.tf.nn", "jaxvars.tf.linalg"}
"""Namespaces whose operations depend on their arguments alone."""

_TEMPLATE = """
def op{signature}:
    try:
{conversions}
        try:
            result = {fold}call({arguments})
        except REFUSED as refused:
            raise refused.error from None
        except NOT_DENSE:
            raise
        except ERRORS as error:
            raise translated(error, {op!r}, {operands}) from error
    except NOT_DENSE as found:
        return found.dispatch(row, {given})
    return Tensor(result) if class_of(result) in ARRAYS else wrap(result)
"""


class Operation(Protocol[P]):
    """What `op` makes of a function of arrays."""

    __wrapped__: Callable[P, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...  # tensors where that takes arrays


@final
class Refused(Exception):  # noqa: N818 - it says what was done, and users never see it
    """What an operation raises for TensorFlow's exception to be raised as it is.

    Args:
        error: the exception; other ones of `call` are raised as InvalidArgumentError.

    Below `op` write `raise Refused(TypeError("..."))`, not `raise TypeError("...")`.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


@final
@dataclass(frozen=True, eq=False)
class Row:
    """An operation in the table; for what is not said here see `op`."""

    call: Callable[..., Any]
    function: Any
    tensors: str
    op: str
    same: bool
    kinds: str
    aliases: tuple[str, ...]
    strings: bool
    eager_only: str
    pairing: Callable[..., tuple[Array, ...]]
    by_rows: str
    default: str


def op(
    name: str, tensors: str = "", *, op: str = "", same: bool = False, kinds: str = "",
    aliases: tuple[str, ...] = (), strings: bool = False, eager_only: str = "",
    pairing: Callable[..., tuple[Array, ...]] = _convert.pair, by_rows: str = "",
    default: str = "", is_listed: bool = True, example: str = "", differs: str = "",
) -> Callable[[Callable[P, Any]], Operation[P]]:  # fmt: skip
    """Return a decorator of functions that take arrays for tensors: it makes an operation of one.

    The function's parameters are TensorFlow's without `name`, which is added. Its docstring says
    what it does, in one imperative sentence, and has a paragraph "Differs from TensorFlow: ..." if
    something does.

    Args:
        name: TensorFlow's, in full: "math.add".
        tensors: which arguments are tensors, in words: "x y". One with a star, "values*", is a list
            of tensors. One with a question mark, "bias?", may be None.
        op: what TensorFlow calls the operation in its messages; the name in capitals if empty.
        same: the tensors must be of one type; what is not a tensor is converted to it.
        kinds: which types the first tensor may have, in words: "float complex"; all if empty. Of
            a single one, "bool" or "float32", all tensors are.
        aliases: other full names, like "add" of `tf.add`.
        strings: the function takes strings (NumPy arrays of bytes objects), too.
        eager_only: why it can't be part of a compiled function: the size of its result depends on
            values.
        pairing: what makes arrays of one type of the tensors.
        by_rows: the argument that may be `tf.IndexedSlices`, and then the result is, too.
        default: the type that TensorFlow gives numbers of other kinds, where the operation has one.
        is_listed: it is in the table.
        example: the arguments of the example in its docstring, if that has none itself.
        differs: what differs from TensorFlow, the same way.
    """
    space, _, short = name.rpartition(".")

    def made(call: Callable[P, Any]) -> Operation[P]:
        below: Any = inspect.unwrap(call)
        signature = inspect.signature(below)
        parameters = [*signature.parameters.values()]
        name_too = inspect.Parameter("name", parameters[-1].kind, default=None)
        module = f"jaxvars.tf.{space}" if space else "jaxvars.tf"
        names: dict[str, Any] = {"__name__": module, "written": _write_operation}
        function: Any = FunctionType(_FIRST_CALL, names, short)
        function.__module__, function.__qualname__ = module, short
        function.__doc__, function.__wrapped__ = _compose_doc(call, name, example, differs), call
        function.__signature__ = signature.replace(parameters=[*parameters, name_too])
        if below.__kwdefaults__:
            function.__defaults__ = below.__defaults__
            function.__kwdefaults__ = {**below.__kwdefaults__, "name": None}
        else:
            function.__defaults__ = (*(below.__defaults__ or ()), None)
        names["row"] = row = Row(
            call, function, tensors, op, same, kinds, aliases, strings, eager_only, pairing,
            by_rows, default,
        )  # fmt: skip
        if is_listed:
            TABLE[name] = row
            HOMES.update(dict.fromkeys([name, *aliases], f"{call.__module__}:{call.__name__}"))
        return cast(Operation[P], function)

    return made


def elementwise(
    name: str, function: Callable[..., Array], doc: str, aliases: str = "", *, tensors: str = "x",
    kinds: str = "float complex", example: str = "r(2, 3)", differs: str = "", title: str = "",
    space: str = "math", module: str,
) -> Any:  # fmt: skip
    """Return the operation of a function that needs a row and no other code.

    Args:
        name: that of the variable that holds it, and TensorFlow's in the namespace.
        function: of one array, or of two.
        doc: the docstring.
        aliases: other full names, in words.
        tensors: "x" or "x y".
        kinds: see `op`.
        example: see `op`.
        differs: see `op`.
        title: see `op`'s own argument `op`.
        space: the namespace.
        module: where the variable is.
    """
    call: Any = (lambda x: function(x)) if tensors == "x" else (lambda x, y: function(x, y))
    if function.__module__.startswith("jax."):  # no code of ours, which may run on the host
        run = QuickJit(function, function)
        call = (
            (lambda x: (run.quick if place(None) is EVAL else function)(x))
            if tensors == "x"
            else (lambda x, y: (run.quick if place(None) is EVAL else function)(x, y))
        )
    call.__module__, call.__name__, call.__doc__ = module, name, doc
    return op(
        f"{space}.{name}", tensors, op=title, same=tensors != "x", kinds=kinds,
        aliases=tuple(aliases.split()), example=example, differs=differs,
    )(call)  # fmt: skip


def _compose_doc(call: Callable[..., Any], name: str, example: str, differs: str) -> str:
    """Return the docstring of an operation: the example follows what it does."""
    parts = inspect.cleandoc(call.__doc__ or "").split("\n\n")
    if example:
        parts.insert(1, f"Example: `tf.{name}({example})`.")
    if differs:
        parts.append(f"Differs from TensorFlow: {differs}")
    return "\n\n".join(parts)


def _write_and_call(*args: Any, **kwargs: Any) -> Any:
    """Write the code of the operation whose globals these are, and call it."""
    names = globals()
    return names["written"](names["row"])(*args, **kwargs)


_FIRST_CALL = _write_and_call.__code__.replace(co_name="a tf operation")  # no def has this name


def operations(module: str, others: Sequence[str] = ()) -> Callable[[str], Any]:
    """Return a namespace's `__getattr__`, which finds operations where they are defined.

    Args:
        module: its `__name__`.
        others: names that are there and not in the table, for the hint.
    """
    space, listed = module.removeprefix("jaxvars.tf."), lister(module, others)
    setattr(sys.modules[module], "__dir__", listed)  # noqa: B010 - pyright knows no such name

    def attribute(name: str) -> Any:
        found = find(f"{space}.{name}")
        if found is None:
            if name == "__all__":
                return listed()
            raise not_there(f"tf.{space}", name, listed)
        setattr(sys.modules[module], name, found)
        return found

    return attribute


def _write_operation(row: Row) -> Any:
    """Return the operation of a row, with code that converts its arguments."""
    note_platform(jax.default_backend())  # not at the import, which must start no backend
    names: dict[str, Any] = {
        "call": _call_of(row), "Tensor": Tensor, "wrap": wrap,
        "to_array": functools.partial(_to_default, row) if row.default else _convert.to_array,
        "pair": row.pairing, "alike": _convert.match_dtypes, "checked": _check_dtype,
        "ERRORS": (
            TypeError, ValueError, JaxvarsError, NotImplementedError, IndexError, ZeroDivisionError,
        ),
        "translated": _translate_error, "row": row, "listed": _to_list, "REFUSED": Refused,
        "static": compute_static, "is_static": _convert.is_static, "ndarray": np.ndarray,
        "ARRAYS": ARRAYS, "allowed": set(), "class_of": type,  # `type` may be an argument
        "IndexedSlices": IndexedSlices, "function": row.function, "NOT_DENSE": _convert.NotDense,
        "only": _convert.to_operand_of, "DTYPE": _ONLY.get(row.kinds),
    }  # fmt: skip
    function, below, given = row.function, inspect.unwrap(row.call), _format_arguments(row)
    signature = inspect.signature(function)
    plain = [p.replace(annotation=p.empty, default=p.empty) for p in signature.parameters.values()]
    source = _TEMPLATE.format(
        signature=inspect.Signature(plain),
        conversions="\n".join(f"        {line}" for line in _write_conversions(row)),
        arguments=given,
        given=f"{{{', '.join(f'{p.name!r}: {p.name}' for p in plain)}}}",
        op=name_of(row),
        fold=_fold(row, given),
        operands=f"({', '.join(row.tensors.split())})" if _is_pair(row) else "()",
    )
    function.__globals__.update(names)
    name = f"{function.__module__}.{function.__name__}".removeprefix("jaxvars.")
    WRITTEN[row] = code = _compile_code(source, below.__code__).replace(co_name=name)
    function.__code__ = INSTEAD[-1] if INSTEAD else code
    return function


def _call_of(row: Row) -> Callable[..., Any]:
    """Return the function of arrays, recorded as one operation if it depends on them alone."""
    if row.eager_only == HOST:
        return on_strings(row.call)
    kinds = {p.name: p.kind for p in inspect.signature(row.call).parameters.values()}
    names, words = list(kinds), row.tensors.split()
    is_pure = row.function.__module__ in _PURE and not row.eager_only
    by_position = all(kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for kind in kinds.values())
    if not (words and is_pure and by_position and set(words) <= set(names)):
        return row.call
    return Direct(row.call, [names.index(word) for word in words])


def _format_arguments(row: Row, apart: str = "") -> str:
    """Return the arguments of a call of `row.call`; of one, `apart`, its values."""
    return ", ".join(
        (f"{p.name}=" if p.kind is p.KEYWORD_ONLY else "")
        + (f"{p.name}.values" if p.name == apart else p.name)
        for p in inspect.signature(row.call).parameters.values()
    )


def _compile_code(source: str, below: CodeType) -> CodeType:
    """Return the code of a function, all of it where another one is defined, for tracebacks."""
    line = below.co_firstlineno
    place = ast.Pass(lineno=line, end_lineno=line, col_offset=-1, end_col_offset=-1)
    tree = parse_source(source)
    for node in ast.walk(tree):
        ast.copy_location(node, place)
    return compile(tree, below.co_filename, "exec").co_consts[0]


def _fold(row: Row, given: str) -> str:
    """Return what comes before the call: the choice of computing with sizes on the host."""
    names = [word for word in row.tensors.split() if word[-1] != "?"]
    if not names or (row.strings and row.op != "AddV2"):
        return ""
    if any(word[-1] == "*" for word in names):
        lists = " and ".join(f"is_static({word[:-1]})" for word in names if word[-1] == "*")
        return f"static(call, {given}) if {lists} else "
    also = " and {}.dtype.kind in 'iub'" if row.strings else ""  # strings are NumPy's, too
    known = " and ".join(f"class_of({word}) is ndarray{also.format(word)}" for word in names)
    return f"static(call, {given}) if {known} else "


def compute_static(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Compute with sizes, which are known: while a function is traced, too."""
    with context.at(context.EVAL):
        return jax.tree.map(np.asarray, call(*args, **kwargs))


def name_of(row: Row) -> str:
    """Return what TensorFlow calls an operation."""
    return row.op or "".join(map(str.capitalize, row.function.__name__.split("_")))


def _is_pair(row: Row) -> bool:
    names = row.tensors.split()
    return row.same and len(names) == 2 and all(word[-1] not in "*?" for word in names)


def _write_conversions(row: Row) -> list[str]:
    """Return the lines that make arrays of the tensors."""
    names, op = row.tensors.split(), name_of(row)
    plain = [word for word in names if word[-1] not in "*?"]
    lines = _write_rows_code(row)
    if row.kinds in _ONLY:
        lines += [f"{x} = only(DTYPE, {x}, {op!r}, {i})" for i, x in enumerate(plain)]
    elif _is_pair(row):
        x, y = plain
        both = f"class_of({x}) is Tensor and class_of({y}) is Tensor"
        lines.append(f"if {both} and {x}._array.dtype is {y}._array.dtype:")
        lines.append(f"    {x}, {y} = {x}._array, {y}._array")
        lines.append(f"else: {x}, {y} = pair({x}, {y}, {op!r})")
    elif row.same and len(plain) > 1:
        all_, is_usual = ", ".join(plain), row.pairing is _convert.pair
        made = f"alike(({all_}), {op!r})" if is_usual else f"pair({all_}, {op!r})"
        lines.append(f"{all_} = {made}")
    else:
        for x in plain:
            lines.append(f"{x} = {x}._array if class_of({x}) is Tensor else to_array({x})")
    for word in names:
        x = word[:-1]
        if word.endswith("*"):
            lines.append(f"{x} = listed({x}, {op!r}, {row.same})")
        elif word.endswith("?"):
            lines.append(f"{x} = None if {x} is None else to_array({x})")
    if plain and row.kinds not in _ONLY and (row.kinds or not row.strings):
        lines.append(f"if {plain[0]}.dtype not in allowed:")
        lines.append(f"    allowed.add(checked({plain[0]}, row, {op!r}))")
    return lines


def _write_rows_code(row: Row) -> list[str]:
    """Return the lines that do with the rows of `tf.IndexedSlices` what is done with a tensor."""
    x = row.by_rows
    values = f"function({_format_arguments(row, x)})"
    return [f"if class_of({x}) is IndexedSlices: return {x}.with_values({values})"] if x else []


def _to_default(row: Row, value: Any) -> Array:
    """Return an array; of what is not a tensor, and of another kind, one of the default type."""
    made = _convert.to_array(value)
    is_one = _convert.is_tensor_like(value) or _KINDS[row.kinds](_convert.dtype_of(made))
    return made if is_one else _convert.to_array(value, hint=as_dtype(row.default))


def _to_list(values: Any, op: str, same: bool) -> list[Array]:
    values = list_of(values)
    return _convert.match_dtypes(values, op) if same else list(map(_convert.to_array, values))


def list_of(values: Any) -> list[Any] | tuple[Any, ...]:
    """Return a list of what may be tensors: of a tensor its rows."""
    if isinstance(values, Iterator | Set | ValuesView):
        return list(values)
    if isinstance(values, Tensor) or not isinstance(values, list | tuple):
        return list(Tensor(_convert.to_array(values)))
    return values


def _check_dtype(array: Array, row: Row, op: str) -> Any:
    """Return a type; raise InvalidArgumentError if the operation is not there for it."""
    dtype = _convert.dtype_of(array)
    kinds = row.kinds.split() or ["float", "complex", "int", "bool"]
    if not any(_KINDS[kind](dtype) for kind in kinds):
        if is_boxing():  # TensorFlow's class in a function
            raise TypeError(
                f"Value passed to {op} has DataType {dtype.name} not in list of allowed values: "
                f"{', '.join(kinds)}"
            )
        raise refused(
            f"Value for attr 'T' of {dtype.name} is not in the list of allowed values: "
            f"{', '.join(kinds)} [Op:{op}] name: "
        )
    return array.dtype


def _translate_error(error: Exception, op: str, operands: tuple[Array, ...]) -> Exception:
    """Return what TensorFlow raises where JAX, NumPy or jaxvars refuse."""
    if isinstance(error, OpError):
        return error
    if isinstance(error, jax.errors.UnexpectedTracerError):
        return TypeError(OUT_OF_SCOPE)
    message = str(error)
    if isinstance(error, TypeError) and message.startswith(("Cannot convert ", "Input #")):
        return error  # of `tensors/convert.py`, before there is an operation
    if operands and not _broadcast(*operands):
        message = "Incompatible shapes: {} vs. {}".format(*map(format_shape, operands))
    return refused(message, op)


def _broadcast(x: Array, y: Array) -> bool:
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except (TypeError, ValueError):  # TypeError: sizes are open
        return False
    return True


def format_shape(array: Array) -> str:
    """Return the shape of an array as TensorFlow's messages write it: [2,3]."""
    return f"[{','.join(map(str, array.shape))}]"


def find(name: str) -> Any:
    """Return the function of a full name or alias; None if there is none."""
    module, _, operation = HOMES.get(name, "").partition(":")
    return getattr(load(module), operation) if module else None

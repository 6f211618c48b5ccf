"""`print`: show values as they are when the code runs, eagerly and in compiled code.

What is not known while a function is traced is passed to a callback, which JAX runs in the
order of the program. All else is resolved at once: the structure, the template, the strings.

Rules this file keeps:
- a mistake in the call raises where the call is, before anything runs; so does a value that a
  template does not use;
- one call writes once, so that lines of several threads stay whole.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from jaxvars.console.host_calls import call_on_host, drop_gradient, runs_now
from jaxvars.display.pretty import Layout, Node, Planner
from jaxvars.tensors.array_like import unwrap
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

Pieces: TypeAlias = list[str | Node]
Render: TypeAlias = Callable[..., str]

_FIELD = re.compile(r"(?P<head>\d+|[^\W\d]\w*)?(?P<rest>[.\[].*)?")
_CONVERSIONS = {"s": str, "r": repr, "a": ascii}


def print(
    *values: Any,
    sep: str | None = " ",
    end: str | None = "\n",
    file: Any = None,
    flush: bool = False,
    summarize: int = 3,
    ordered: bool = True,
    **fields: Any,
) -> None:
    """Print values as they are at this point, eagerly and in compiled code.

    In compiled code they are printed each time the program runs, in the order of the program,
    inside loops and branches too. Variables are read; nothing is changed.

    If the first value is a string with fields like `{}`, `{0}`, `{name}`, `{name.attribute:.3f}`,
    and there are other values, then it is a template, as for `str.format`: every other value must
    be used by it. A number's format applies to each element of an array, and to each number in a
    structure. Braces in a template are doubled: `{{`. All other calls print as Python's `print`.

    Arrays are printed as NumPy does, short in the middle. Structures (lists, dicts, dataclasses,
    Modules, States, all pytrees) are printed with what is in them, wrapped at 88 columns. A value
    that is not an array is printed as Python has it while the function is traced.

    Args:
        *values: anything; a template first, or not.
        sep: what is printed between two values; not used by a template.
        end: what is printed at the end.
        file: where to: `sys.stdout` when None, looked up when it is printed; anything with a
            `write` method; a `pathlib.Path` or "file://..." to append to.
        flush: flush the file afterwards.
        summarize: how many elements of each dimension of an array to print at its beginning and
            at its end; all for -1.
        ordered: keep the order of the program. A program that runs on several devices needs
            False: JAX refuses order there (inside `jax.shard_map` it is off by itself).
        **fields: the named values of a template.

    Raises:
        ValueError: when a template has a field without a value, or a value has no field, or a
            format does not suit a value.
        TypeError: when an argument is of the wrong kind, or a name is given without a template.

    Under `jax.vmap` and `jv.vectorized_map`, a call prints once for each example, in their order;
    one that depends on no example prints once. Under a tape or `jax.grad` it prints values, not
    derivatives. A compiled function that prints waits until all has been printed, and gives its
    variables no memory that is used again. (A plain `jax.jit` does not wait:
    `jax.effects_barrier()` does.)

    Example:
        >>> import jaxvars as jv
        >>> w = jv.Variable([1.0, 2.0], name="w")
        >>> @jv.compile
        ... def step(x):
        ...     w.assign_add(x)
        ...     jv.print("step {step}: w={w:.2f}", w=w, step=7)
        ...     jv.print("all:", {"w": w, "name": "w"})
        >>> step(0.5)
        step 7: w=[1.50 2.50]
        all: {'w': [1.5 2.5], 'name': 'w'}

    Differs from TensorFlow: prints to stdout, not stderr; has templates; strings in structures have
    quotes; `file` is TensorFlow's `output_stream`.
    """
    planner = Planner(unwrap)
    if (fields or len(values) > 1) and is_template(values[0] if values else None):
        pieces = Filling(planner, values[0], values[1:], fields).pieces()
    elif fields:
        raise TypeError(_describe_misuse(list(fields)))
    else:
        pieces = _separate(planner, values, sep)
    options = Options(find_writer(file), flush, _check_few(summarize), ordered)
    _send(planner.arrays, [*pieces, _glue(end, "end", "\n")], options)


def print_values(*values: Any, sep: Any = " ", end: Any = "\n", file: Any = None,
                 flush: bool = False) -> None:  # fmt: skip
    """Print values as Python's `print` would, whatever the first one is: no templates.

    >>> print_values("{}", 1)
    {} 1
    """
    planner = Planner(unwrap)
    options = Options(find_writer(file), flush, 3, True)
    pieces = _separate(planner, values, sep)
    _send(planner.arrays, [*pieces, _glue(end, "end", "\n")], options)


# ---------------------------------------------------------------- what the call says
class Options(NamedTuple):
    """How a message is printed."""

    write: Callable[[str, bool], None]
    flush: bool
    summarize: int
    ordered: bool
    what: str = "jv.print"


def _separate(planner: Planner, values: Sequence[Any], sep: Any) -> Pieces:
    sep = _glue(sep, "sep", " ")
    return [piece for value in values for piece in (sep, planner.top(value))][1:]


def _glue(given: Any, name: str, default: str) -> str:
    if given is None:
        return default
    if not isinstance(given, str):
        raise TypeError(f"jv.print: {name} is a string or None, not {type(given).__name__}.")
    return given


def _check_few(summarize: Any) -> int:
    if isinstance(summarize, bool) or not isinstance(summarize, int) or summarize < -1:
        raise TypeError(
            f"jv.print: summarize is a number of elements, or -1 for all, not {summarize!r}."
        )
    return summarize


def find_writer(file: Any) -> Callable[[str, bool], None]:
    """Return what writes to a file; the standard streams are looked up each time."""
    if isinstance(file, str) and file.startswith("file://"):
        file = Path(file.removeprefix("file://"))
    if isinstance(file, Path):
        return lambda string, flush: _append(file, string)
    for name in ("stdout", "stderr"):
        if file is getattr(sys, name) or (file is None and name == "stdout"):
            return lambda string, flush, name=name: _write(getattr(sys, name), string, flush)
    if not hasattr(file, "write"):
        raise TypeError(
            f"jv.print: file is {file!r}, which cannot be written to. Give an open file, "
            'sys.stderr, a pathlib.Path or "file:///path/to/file".'
        )
    return lambda string, flush: _write(file, string, flush)


def _write(file: Any, string: str, flush: bool) -> None:
    if file is not None:  # a program without a console has no stdout
        file.write(string)
        if flush:
            file.flush()


def _append(path: Path, string: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(string)


# ---------------------------------------------------------------- templates
def is_template(template: object) -> bool:
    """Return whether a value is a string with fields like `{}`, `{0}`, `{name}`, `{name.part:.2f}`.

    >>> is_template("loss {:.2f}"), is_template("{'a': 1}"), is_template("{ "), is_template("x")
    (True, False, False, False)
    """
    if not isinstance(template, str):
        return False
    try:
        names = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    except ValueError:  # a brace without its other one
        return False
    return bool(names) and all(_FIELD.fullmatch(name) for name in names)


@final
class Filling:
    """One use of a template."""

    def __init__(
        self, planner: Planner, template: str, values: Sequence[Any], fields: Mapping[str, Any]
    ) -> None:
        self._planner = planner
        self._template = template
        self._given: dict[int | str, Any] = {**dict(enumerate(values)), **fields}
        self._used: set[int | str] = set()
        self._next = itertools.count()

    def pieces(self) -> Pieces:
        """Return all pieces, in order."""
        pieces: Pieces = []
        for literal, name, spec, conversion in Formatter().parse(self._template):
            pieces.append(literal)
            if name is not None:
                pieces.append(self._plan_field(name, spec or "", conversion))
        unused = [_describe_argument(key) for key in self._given if key not in self._used]
        if unused:
            raise self._error_for(
                f"has no field for {', '.join(unused)}", "Add one, or leave it out"
            )
        return pieces

    def _plan_field(self, name: str, spec: str, conversion: str | None) -> Node:
        value = self._find_value(name)
        if "{" in spec:
            spec = re.sub(r"\{([^{}]*)\}", lambda found: str(self._find_value(found[1])), spec)
        if conversion and conversion not in _CONVERSIONS:
            raise self._error_for(f"has the conversion !{conversion}", "There are !s, !r and !a")
        if conversion and isinstance(value, str):
            value = _CONVERSIONS[conversion](value)
        try:
            return self._planner.top(value, spec)
        except (ValueError, TypeError) as error:
            raise self._error_for(
                f"has the format {spec!r} for the field {{{name}}}: {error}",
                "See Python's format specification",
            ) from None

    def _find_value(self, name: str) -> Any:
        found = _FIELD.fullmatch(name)
        head, rest = (found["head"] or "", found["rest"] or "") if found else (name, "")
        key = self._parse_key(head)
        if key not in self._given:
            what = f"has the field {{{name}}}, but there is no {_describe_argument(key)}"
            raise self._error_for(what, "Give it, or double the braces that are not fields: {{ }}")
        self._used.add(key)
        try:
            return Formatter().get_field(f"value{rest}", (), {"value": self._given[key]})[0]
        except (AttributeError, LookupError, TypeError) as error:
            raise self._error_for(
                f"has the field {{{name}}}, which cannot be looked up "
                f"({type(error).__name__}: {error})",
                f"Pass the value itself, {_describe_argument(key)}{rest}",
            ) from None

    def _parse_key(self, head: str) -> int | str:
        if head:
            return int(head) if head.isdigit() else head
        return next(self._next)

    def _error_for(self, what: str, cure: str) -> ValueError:
        return ValueError(f"jv.print: the template {self._template!r} {what}. {cure}.")


def _describe_argument(key: int | str) -> str:
    return f"value number {key}" if isinstance(key, int) else f"{key}="


# ---------------------------------------------------------------- now or when it runs
def _send(arrays: Sequence[Array], message: Pieces, options: Options) -> None:
    """Print a message now if all its arrays are known and nothing is being staged."""
    values = [x if context.is_tracer(x) else np.array(x) for x in map(drop_gradient, arrays)]
    emit(lambda *known: Layout(known, options.summarize).join(message), values, options)


def emit(render: Render, values: Sequence[Value], options: Options) -> None:
    """Print what is made of values: now if all are known, else when the program runs."""

    def write(*values: Array) -> None:
        options.write(render(*map(np.asarray, values)), options.flush)

    def over_examples(count: int, batched: Sequence[bool], values: Sequence[Array]) -> None:
        def render_each(*values: Array) -> str:
            rows = zip(values, batched, strict=True)
            each = [[x[i] if has_axis else x for i in range(count)] for x, has_axis in rows]
            return "".join(render(*example) for example in zip(*each, strict=True))

        emit(render_each, values, options)

    if runs_now(values):
        write(*values)
    else:
        call_on_host(
            write, values, over_examples, ordered=options.ordered, what=options.what
        )  # fmt: skip


# ---------------------------------------------------------------- messages
def _describe_misuse(names: list[str]) -> str:
    return (
        f"jv.print got {', '.join(f'{name}=' for name in names)}, but the first argument is "
        "not a template that could use it. Its own options are sep, end, file, flush, summarize "
        f'and ordered; a template has fields: jv.print("... {{{names[0]}}}", {names[0]}=...).'
    )

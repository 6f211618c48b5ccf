"""How compiled functions show themselves, and by which paths they reach their variables."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import jax

from jaxvars.advice import instead_of
from jaxvars.compiler.executable import Executable, cells_of
from jaxvars.core.module import nbytes, variables_in
from jaxvars.core.traversal import Holder
from jaxvars.core.variable import Variable
from jaxvars.display.html import card
from jaxvars.display.repr import Sketch, Table, human_bytes, type_text

_CLOSED = (type, FunctionType, BuiltinFunctionType, ModuleType)
_LARGE = 3000  # equations of a program whose arithmetic is not counted for a card


def no_attribute(fn: Any, name: str) -> AttributeError:
    """Return the error for an attribute that a compiled function does not have."""
    hint = instead_of(name, "Function")
    return AttributeError(f"{type(fn).__name__!r} object has no attribute {name!r}.{hint}")


def paths_from(fn: Any, arguments: Mapping[str, object], entry: Executable) -> dict[int, str]:
    """Return the paths of the variables that a function's program uses, by their cells' keys.

    Those of its own object begin at it; others with the name of an argument or global, as in
    `model/layers/0/w`. A variable that has a name there is known by the name that it was given.
    Modules are looked through first, and no more when all are found.
    """
    while isinstance(fn, functools.partial):
        fn = fn.func
    found, left = dict[int, str](), {cell.key for cell in cells_of(entry)}
    own: dict[str, object] = {"": getattr(fn, "__self__", fn), **arguments}
    names: dict[str, object] = {}
    with suppress(TypeError, ValueError):  # not written in Python, or a cell is still empty
        known = inspect.getclosurevars(inspect.unwrap(fn))
        names = {**known.globals, **known.nonlocals}
    roots = {**own, **names, **own}.items()  # its own are first, and win
    for name, root in sorted(roots, key=lambda item: not isinstance(item[1], Holder | Variable)):
        if not left:
            break
        if not isinstance(root, _CLOSED):
            with suppress(Exception):  # it cannot be walked
                _find_paths(name, root, left, found)
    return found


def _find_paths(name: str, root: object, left: set[int], found: dict[int, str]) -> None:
    for path, variable in variables_in(root):
        if (key := variable._cell.key) in left:
            start = (name,) if name not in ("self", "") and path else ()
            found[key] = "/".join((*start, *path)) or variable.name
            left.remove(key)
        if not left:
            return


# ---------------------------------------------------------------- cards
def describe_function(fn: Any) -> tuple[str, str]:
    """Return what a compiled function is called, and how often it was traced."""
    name, count = getattr(fn, "function", fn)._signature.name, fn.trace_count
    return f"compiled {name}", f"{count} trace{'' if count == 1 else 's'}"


def sketch_function(fn: Any) -> Sketch:
    """Return what a compiled function shows in a notebook."""
    title, count = describe_function(fn)
    table = (fn.traces._repr_html_(),) if fn.trace_count else ()
    return Sketch(title, title, f"· {count}", fields=(), rows=table)


def sketch_concrete(fn: Any) -> Sketch:
    """Return what a concrete function shows in a notebook."""
    table, graph = captures_of(fn), fn.graph
    made = jax.tree.leaves(fn.structured_outputs)
    outputs = ", ".join(type_text(x) for x in made if isinstance(x, jax.ShapeDtypeStruct))
    facts = [f"{graph.count('operation') + graph.count('control'):,} operations"]
    with suppress(Exception):  # JAX cannot tell, as of devices that are not there
        cost = fn.lower().cost_analysis() if len(fn.jaxpr.eqns) <= _LARGE else {}
        facts.append(f"{cost['flops']:,.0f} flops")
    plural = "" if len(table) == 1 else "s"
    rows = [
        card("", [f"{len(table)} captured variable{plural}"], [table._repr_html_()]),
        card("", ["graph"], [graph._repr_html_()]),
    ]
    title = f"ConcreteFunction {fn.name}({fn.signature})"
    return Sketch(title, title, f"→ {outputs or 'None'}", tuple(facts), fields=(), rows=tuple(rows))


def captures_of(fn: Any) -> Table:
    """Return the variables that a concrete function uses, by path, and what it does with them."""
    staged = fn._executable.staged
    used = {"read": {*staged.reads}, "written": {*staged.writes}}
    rows = [
        (
            path,
            type_text(v),
            " and ".join(verb for verb in used if v._cell in used[verb]),
            nbytes(v),
        )
        for path, v in zip(fn.capture_paths, fn.captured, strict=True)
    ]
    formats = {"bytes": human_bytes}
    return Table("", ("path", "type", "use", "bytes"), rows, formats=formats)

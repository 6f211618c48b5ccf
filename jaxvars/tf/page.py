"""The page "what there is and what differs" (`NAMES.md`), made of the table and of docstrings.

    python -m jaxvars.tf            print the page
    python -m jaxvars.tf concat     print the lines whose name holds a word

Rules this file keeps:
- every public name is on it, once in each namespace that has it;
- what it says of a name stands in its docstring.
"""

from __future__ import annotations

import enum
import inspect
import re
import types
from typing import Any

from jaxvars import tf
from jaxvars.tf.keras.spaces import Space
from jaxvars.tf.listing import HOMES, lister, operations_in
from jaxvars.tf.registry.absent import WHY
from jaxvars.tf.registry.rows import TABLE, find

_HEAD = """# TensorFlow's names in `jaxvars.tf`: what there is, and what differs

Made by `python -m jaxvars.tf`, from the table of operations and the docstrings;
`python -m jaxvars.tf concat` prints the lines whose name holds a word. Signatures and results are
TensorFlow's, but for what follows *Differs*.

Everywhere: everything is compiled by XLA, for fixed shapes; strings are on the host; there are no
sessions, and little of `tf.compat.v1`; `tf.random` draws TensorFlow's values for the same seeds,
unless it is stated otherwise.

With `JAX_ENABLE_X64=0` in the environment, or after `jax.config.update("jax_enable_x64", False)`:
int64 is int32, and uint64 uint32, also what TensorFlow documents as int64 (`argmax`, `argmin`,
`where`, `math.count_nonzero`, `unique`, sizes, cardinalities, row splits, indices of sparse tensors
and of tables); an integer that does not fit is refused. What is requested as float64 or complex128
is refused: `tf.timestamp`, too. NumPy's float64 becomes float32, as in JAX, and quotients of
integers are float32. Streams of `tf.random` have TensorFlow's float32 values for the first
8,388,608; integers are drawn of 32 bits, and `categorical` compares float32.
"""
_DIFFERS = re.compile(r"Differs from TensorFlow:\s*(.*?)(?:\n\s*\n|\Z)", re.DOTALL)


def page() -> str:
    """Return the page, as Markdown."""
    spaces = namespaces()
    sections = [_section(space, spaces[space]) for space in sorted(spaces)]
    absent = [f"- `tf.{name}`: {why}" for name, why in sorted(WHY.items())]
    return "\n".join([_HEAD, *sections, "## What is not there, and why\n", *absent, ""])


def lines_with(word: str) -> list[str]:
    """Return the lines of the page whose name holds a word."""
    lines = [line for line in page().splitlines() if line.startswith("- `tf.")]
    return [line for line in lines if word in re.split(r"[(`]", line[3:])[0]]


def namespaces() -> dict[str, Any]:
    """Return the modules by their name behind `tf`: "" for `tf` itself, "math", "keras.losses"."""
    found: dict[str, Any] = {}
    pending: list[Any] = [tf]
    while pending:
        module = pending.pop()
        found[module.__name__.removeprefix("jaxvars.tf").removeprefix(".")] = module
        pending += [getattr(module, name) for name in dir(module) if _is_namespace(module, name)]
    for name in HOMES:  # `math.special` is not a separate module
        space = name.rpartition(".")[0]
        if space not in found:
            found[space] = None
    return found


def _is_namespace(module: Any, name: str) -> bool:
    """Return whether a name is a namespace in a module, and not another name of one elsewhere."""
    value = getattr(module, name, None)  # nothing, where it is Keras's and that is not installed
    return type(value) is types.ModuleType and value.__name__ == f"{module.__name__}.{name}"


def _section(space: str, module: Any) -> str:
    names = _names(space, module)
    title = f"tf.{space}" if space else "tf"
    lines = [line for name in names for line in _lines(space, name, module)]
    return f"## `{title}`\n\n" + "\n".join(lines) + "\n"


def _names(space: str, module: Any) -> list[str]:
    if module is None:
        return operations_in(space)
    own = vars(module).get("__dir__")
    return own() if own else lister(module.__name__)()


def _lines(space: str, name: str, module: Any) -> list[str]:
    full = f"{space}.{name}" if space else name
    if full in HOMES:
        return [_line_of_operation(full)]
    value = getattr(module, name, None)
    if isinstance(value, types.SimpleNamespace):
        return [_line(f"{full}.{key}", part) for key, part in sorted(vars(value).items())]
    if isinstance(value, Space):
        return [f"- `tf.{full}`: {' '.join((value.__doc__ or '').split())}"]
    return [] if inspect.ismodule(value) else [_line(full, value)]


def _line_of_operation(full: str) -> str:
    """Return the line of an operation, or that it has another name, under which it stands."""
    first = next(name for name in [*TABLE, *HOMES] if HOMES[name] == HOMES[full])
    if first != full:
        return f"- `tf.{full}`: `tf.{first}`."
    return _line(full, find(full)).replace("=-inf", "=float('-inf')")


def _line(full: str, value: Any) -> str:
    first = ((inspect.getdoc(value) if callable(value) else "") or "").split("\n\n")[0]
    line = ": ".join(filter(None, [f"- `tf.{full}{_signature(value)}`", " ".join(first.split())]))
    return f"{line} *Differs: {found}*" if (found := differs(value)) else line


def differs(value: Any) -> str:
    """Return how a function or class differs from TensorFlow's; nothing where it does not."""
    found = _DIFFERS.search((inspect.getdoc(value) if callable(value) else "") or "")
    return " ".join(found.group(1).split()) if found else ""


def _signature(value: Any) -> str:
    """Return the parameters of a function or class, without types; nothing for what has none."""
    if not callable(value) or (inspect.isclass(value) and issubclass(value, enum.Enum)):
        return ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = [each.replace(annotation=each.empty) for each in found.parameters.values()]
    string = str(found.replace(parameters=plain, return_annotation=found.empty))
    return "" if " at 0x" in string or "<" in string else string

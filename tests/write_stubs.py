"""Write what type checkers know of TensorFlow's operations: `python tests/write_stubs.py`.

A namespace of `jaxvars.tf` finds its operations when they are first used, which no type checker
does. `operations.pyi` lists them, with the types of their results. `tests/test_typing.py` holds the
files against the code.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jaxvars.tf as tf
from jaxvars.tf.listing import list_defined, operations_in
from jaxvars.tf.registry.rows import find
from jaxvars.tf.tensors.dtypes import DType

NAMESPACES = ("tf", "tf.image", "tf.linalg", "tf.math", "tf.nn", "tf.signal")
KINDS = {DType: "DType", str: "builtins.str"}
BUILTINS = re.compile(r"\b(bool|int|float|str|list|tuple)\b")  # some are names of TensorFlow's, too
HEAD = """\
# Written by tests/write_stubs.py: what type checkers know of {namespace}.
import builtins
from typing import Any

from jaxvars.tf.tensors.tensor import Tensor
"""
DTYPE = "from jaxvars.tf.tensors.dtypes import DType as DType"


class Written(str):
    """An annotation or default that is written as it is."""

    __repr__ = str.__str__


def stub(namespace: str) -> str:
    """The stub of a namespace."""
    space = namespace.removeprefix("tf").removeprefix(".")
    known = list_defined(f"jaxvars.{namespace}")
    names = [name for name in operations_in(space) if name not in known]
    others = [] if space else sorted({*dir(tf)} - known - {*names, "__version__"})
    lines = [DTYPE] * (not space) + [constant(name, getattr(tf, name)) for name in others]
    lines += [function(name, find(f"{space}.{name}".strip("."))) for name in names]
    return "\n".join([HEAD.format(namespace=namespace), *lines, ""])


def file_of(namespace: str) -> Path:
    """Where the stub of a namespace is."""
    module = importlib.import_module(f"jaxvars.{namespace}")
    return Path(str(module.__file__)).with_name("operations.pyi")


def constant(name: str, found: Any) -> str:
    """The line for a name that is no operation."""
    if isinstance(found, types.ModuleType):
        module, _, name_there = found.__name__.rpartition(".")
        return f"from {module} import {name_there} as {name}"
    if isinstance(found, type | types.FunctionType) and found.__name__ == name:
        return f"from {found.__module__} import {found.__name__} as {name}"
    return f"{name}: {KINDS.get(type(found), 'Any')}"


def function(name: str, made: Callable[..., Any]) -> str:
    """The line for an operation, with the first paragraph of its docstring."""
    signature = inspect.signature(made)
    written = signature.replace(
        parameters=[
            p.replace(
                annotation=Written(parameter_type(p)),
                default=p.empty if p.default is p.empty else Written("..."),
            )
            for p in signature.parameters.values()
        ],
        return_annotation=Written(result_type(inspect.signature(inspect.unwrap(made)))),
    )
    doc = inspect.cleandoc(made.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    return f'def {name}{written}: """{doc}"""'


def parameter_type(parameter: inspect.Parameter) -> str:
    """What may be passed: anything, but where it is said to be a number or string of Python."""
    said = "str | None" if parameter.name == "name" else str(parameter.annotation)
    is_plain = {*said.split(" | ")} <= {"bool", "int", "float", "str", "None"}
    return BUILTINS.sub(r"builtins.\1", said) if is_plain else "Any"


def result_type(signature: inspect.Signature) -> str:
    """What comes back: a tensor for each array."""
    said = re.sub(r"\b(Array|Text|Value)\b", "Tensor", str(signature.return_annotation))
    if signature.return_annotation is signature.empty:
        return "Tensor"
    is_known = {*re.findall(r"\w+", said)} <= {"Tensor", "list", "tuple", "Any"}
    return BUILTINS.sub(r"builtins.\1", said) if is_known else "Any"


if __name__ == "__main__":
    for namespace in NAMESPACES:
        file_of(namespace).write_text(stub(namespace), encoding="utf-8")

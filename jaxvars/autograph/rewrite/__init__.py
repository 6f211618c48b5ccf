"""Rewrite a function: its `if`, `while`, `for`, `and`, calls, ... become calls of operators.

| step | file |
|---|---|
| the source is read | `autograph/rewrite/source.py` |
| what would mean something else in a new function is rewritten | `autograph/rewrite/prepare.py` |
| `break`, `continue` and early `return` become flags | `autograph/rewrite/jumps.py` |
| expressions become operators | `autograph/rewrite/expressions.py` |
| `if` and loops become operators on the names they assign | `autograph/rewrite/blocks.py` |
| which names these are | `autograph/rewrite/liveness.py` |
| the tree is compiled | `autograph/rewrite/source.py` |
"""

from __future__ import annotations

import ast
from types import CodeType, FunctionType
from typing import Any

from jaxvars.autograph.rewrite.blocks import convert_blocks
from jaxvars.autograph.rewrite.expressions import Expressions, Reads
from jaxvars.autograph.rewrite.jumps import remove_jumps
from jaxvars.autograph.rewrite.prepare import Prepare
from jaxvars.autograph.rewrite.source import code_of, parse


def rewrite(fn: FunctionType, directive: object) -> CodeType:
    """Return a function's new code, to be given its closure, and the operators as `ag__`."""
    return code_of(_convert(fn, directive), fn)


def source(fn: FunctionType, directive: object) -> str:
    """Return the new code of a function, for reading."""
    return ast.unparse(ast.fix_missing_locations(_convert(fn, directive)))


def _convert(fn: FunctionType, directive: object) -> Any:
    node = Prepare(fn, directive).visit(parse(fn))
    if isinstance(node, ast.FunctionDef):
        node.name = f"ag__{node.name}"
        remove_jumps(node)
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.Lambda):
            setattr(part, "is_inner", part is not node)  # noqa: B010 - a note of ours
    node = Expressions().visit(node)
    if undefined := convert_blocks(node):
        node = Reads(undefined).visit(node)
    if isinstance(node, ast.FunctionDef):
        return node
    return ast.Assign([ast.Name("ag__lambda", ast.Store())], node)

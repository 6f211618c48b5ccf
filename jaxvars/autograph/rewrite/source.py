"""The source of a function as a tree, and a tree as code that seems to stand in the user's file.

Rules this file keeps:
- a function is found by its code, so that decorators, doctests and notebooks do not matter, and
  of several lambdas in a line the right one is taken; a file that was edited since it was imported
  is not its source;
- every node of the user's has the line that it came from, in `line`; new ones take that of what
  stands around them. So tracebacks, warnings and debuggers show the user's lines.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import contextlib
import functools
import inspect
import linecache
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, final

from jaxvars.autograph.rewrite.liveness import walk_own
from jaxvars.objects.interpreter import parse_source
from jaxvars.objects.sending import SOURCES

_UNSUPPORTED = (
    ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Match, ast.TryStar,
)  # fmt: skip


@final
class Unsupported(Exception):  # noqa: N818 - a signal between us, not an error
    """The function cannot be converted: it has no source, or something in it."""


# ---------------------------------------------------------------- reading
def _find_unsupported(node: ast.FunctionDef | ast.Lambda) -> Any:
    """Return what we cannot convert in a function, without those in it."""
    body = node.body if isinstance(node.body, list) else [node.body]
    return next((part for part in walk_own(body) if isinstance(part, _UNSUPPORTED)), None)


def _add_article(node: ast.AST) -> str:
    name = type(node).__name__.removesuffix("Def").lower()
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def parse(fn: FunctionType) -> Any:
    """Return a function's node; its statements and expressions have a `line`, that of the file.

    Raises:
        Unsupported: when the source is not available, or has a part that we cannot convert.
    """
    node, first_line = _node_of(fn)
    for part in ast.walk(node):
        if isinstance(part, ast.expr | ast.stmt):
            setattr(part, "line", first_line + part.lineno - 1)  # noqa: B010 - a note of ours
        if isinstance(part, ast.FunctionDef | ast.Lambda) and (found := _find_unsupported(part)):
            if part is node:
                line = first_line + found.lineno - 1
                raise Unsupported(f"it has {_add_article(found)} in line {line}")
            setattr(part, "is_kept", True)  # noqa: B010 - the same
    return node


def _node_of(fn: FunctionType) -> tuple[Any, int]:
    """Return a function's node, its lines counted from 1, and the line of the file that 1 is."""
    try:
        return _read_node(fn)
    except Unsupported:
        linecache.checkcache(fn.__code__.co_filename)  # of a module that has been loaded again
        return _read_node(fn)


def _read_node(fn: FunctionType) -> tuple[Any, int]:
    code = fn.__code__
    lines = _sent_lines(code) or linecache.getlines(code.co_filename, fn.__globals__)
    if len(lines) < code.co_firstlineno:
        raise Unsupported("its source is not available")
    try:
        if _is_edited(fn, "".join(lines)):
            raise StopIteration
        if code.co_name == "<lambda>":
            return _find_lambda(code, lines), 1
        return _parse_def(code, lines)
    except (SyntaxError, StopIteration):
        raise Unsupported("its source has changed since it was read") from None


def _sent_lines(code: CodeType) -> list[str]:
    """Return the lines of the file of a function that another process has sent, if it has."""
    for lines in reversed(tuple(SOURCES)):
        with contextlib.suppress(SyntaxError):  # a cell of a notebook may `await`
            if code in _all_codes("".join(lines), code.co_filename):
                return list(lines)
    return []


def _is_edited(fn: FunctionType, source: str) -> bool:
    """Return whether a function that was imported is none that the file of its code has now."""
    file, loader = fn.__code__.co_filename, fn.__globals__.get("__loader__")
    is_read = type(loader) is SourceFileLoader and loader.path == file
    is_shipped = type(loader) is SourcelessFileLoader or not Path(file).is_absolute()  # frozen
    if not (is_read or (is_shipped and file[:1] != "<")):
        return False  # others may compile something else than the source, as pytest does
    return fn.__code__ not in _all_codes(source, file)


@functools.lru_cache(maxsize=64)
def _all_codes(source: str, filename: str) -> frozenset[CodeType]:
    """Return the code of all functions in a file."""
    found = [builtins.compile(source, filename, "exec", dont_inherit=True)]
    for code in found:  # which grows
        found += _codes(code)
    return frozenset(found)


def _parse_def(code: CodeType, lines: Sequence[str]) -> tuple[ast.stmt, int]:
    block = inspect.getblock(list(lines[code.co_firstlineno - 1 :]))
    is_indented = block[0][:1].isspace()
    module = parse_source("".join(["if True:\n", *block] if is_indented else block))
    node = module.body[0].body[0] if isinstance(module.body[0], ast.If) else module.body[0]
    if getattr(node, "name", None) != code.co_name:
        raise StopIteration
    return node, code.co_firstlineno - is_indented


def _find_lambda(code: CodeType, lines: Sequence[str]) -> ast.Lambda:
    """Return the lambda whose body covers the positions of the code, among all of the file."""
    spans = {(start, left, end, right) for start, end, left, right in code.co_positions()}
    found = [
        node
        for node in ast.walk(parse_source("".join(lines)))
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
    ]
    exact = [node for node in found if _find_span(node.body) in spans]
    if not exact and len(found) > 1:  # no instruction is all of `a if b else c`
        exact = [node for node in found if _has_code(node, code)]
    chosen = {ast.dump(node): node for node in exact or found}
    if len(chosen) > 1:
        raise Unsupported("there are several lambdas on its line: write them on separate lines")
    return next(iter(chosen.values()))


def _has_code(node: ast.Lambda, code: CodeType) -> bool:
    """Return whether all instructions of a lambda's code are in its body."""
    places = [p for p in code.co_positions() if None not in p]
    inside = [
        (node.body.lineno, node.body.col_offset) <= (start, left)
        and (end, right) <= (node.body.end_lineno or 0, node.body.end_col_offset or 0)
        for start, end, left, right in places
        if (start, left) != (end, right)
    ]
    return bool(inside) and all(inside)


def _find_span(node: ast.expr) -> tuple[Any, ...]:
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


# ---------------------------------------------------------------- writing
def code_of(node: Any, fn: FunctionType) -> CodeType:
    """Compile a converted function as if it stood in the file of the original."""
    cells = [*fn.__code__.co_freevars, "ag__"]
    given = [ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None)) for name in cells]
    outer: Any = parse_source("def ag__outer(): pass").body[0]
    outer.body = [*given, node]
    module = ast.Module([outer], [])
    _set_lines(module, fn.__code__.co_firstlineno)
    flags = fn.__code__.co_flags & __future__.annotations.compiler_flag
    compiled = builtins.compile(module, fn.__code__.co_filename, "exec", flags, dont_inherit=True)
    (outside,) = _codes(compiled)
    (code,) = _codes(outside)
    return _rename_code(code, fn.__code__.co_name, fn.__code__.co_qualname)


def _set_lines(node: Any, line: int) -> None:
    """Give each node the line that it came from, or else that of what stands around it."""
    line = getattr(node, "line", line)
    if "lineno" in node._attributes:
        node.lineno = node.end_lineno = line
        node.col_offset = node.end_col_offset = -1  # unknown
    for _, value in ast.iter_fields(node):  # a debugger's own attributes may point upwards
        if isinstance(value, ast.AST):
            _set_lines(value, line)
        elif isinstance(value, list):
            _set_all_lines(value, line)


def _set_all_lines(nodes: list[Any], line: int) -> None:
    for node in reversed(nodes):  # what was put before a statement belongs to that
        if isinstance(node, ast.AST):
            _set_lines(node, line)
            if isinstance(node, ast.stmt):
                line = getattr(node, "line", line)


def _codes(code: CodeType) -> list[CodeType]:
    return [const for const in code.co_consts if isinstance(const, CodeType)]


def _rename_code(code: CodeType, name: str, path: str) -> CodeType:
    """Name the code as the original was; the functions of its blocks are parts of it."""
    consts: list[object] = []
    for const in code.co_consts:
        if isinstance(const, CodeType):
            inner = name if const.co_name.startswith("ag__") else const.co_name
            inner_path = path if inner == name else f"{path}.<locals>.{inner}"
            const = _rename_code(const, inner, inner_path)
        consts.append(const)
    return code.replace(co_name=name, co_qualname=path, co_consts=tuple(consts))

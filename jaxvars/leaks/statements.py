"""Which statement of the user's has put a value where it is, and the same statement for a Variable.

Rule this file keeps: what it shows is the user's own code, or nothing.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeAlias, final

from jaxvars.leaks.holders import Place, codes_of
from jaxvars.objects.interpreter import parse_source
from jaxvars.tracebacks import line_in

Line: TypeAlias = tuple[CodeType, int]

_MOST = 3  # lines that are named
_ADDING = {"append", "appendleft", "extend", "insert", "add", "update", "setdefault"}
_VERBS: dict[type, str] = {ast.Add: "assign_add", ast.Sub: "assign_sub"}


@final
class Statement(NamedTuple):
    """What puts a value in a place: an assignment, or a call such as `kept.append(x)`.

    Attributes:
        line: "f.py:9, in step".
        node: its tree.
        base: the name or attribute that has the place.
        target: what is assigned: that, or an entry of it.
    """

    line: str
    node: Any
    base: ast.expr
    target: ast.expr

    @property
    def is_call(self) -> bool:
        """Whether it calls a method of a list, a set or a dict."""
        return isinstance(self.node, ast.Call)

    @property
    def code(self) -> str:
        """What it is, on one line."""
        return show(self.node)

    @property
    def value(self) -> ast.expr | None:
        """What is assigned; None where that is a part of what stands there."""
        is_alone = not self.is_call and _targets_of(self.node) == [self.target]
        return self.node.value if is_alone else None

    def for_variable(self) -> str | None:
        """Return it as it is for a Variable; None if something else is assigned, too."""
        if self.value is None:
            return None
        verb, value = "assign", self.value
        if isinstance(self.node, ast.AugAssign):
            verb = _VERBS.get(type(self.node.op), verb)
            if verb == "assign":
                value = ast.BinOp(self.target, self.node.op, self.node.value)
        return f"{show(self.target)}.{verb}({show(value)})"


def find(
    place: Place, functions: Sequence[FunctionType], at: Line | None = None
) -> Statement | None:
    """Return the statement that puts something in a place; None without the source.

    Where there are several it is the first, whose `line` has the lines of others, too.

    Args:
        place: it.
        functions: where to look; first what is compiled.
        at: the code, and its line, where that was, if it is known.
    """
    if at is not None:
        return next((x for x in _find_in(at[0], None, place) if _covers(x.node, at[1])), None)
    codes = ((fn.__code__, fn.__globals__) for fn in _likely(place, functions))
    known = (x for code, namespace in codes for x in _find_in(code, namespace, place))
    found = [x for x in known if not isinstance(getattr(x.node, "value", None), ast.Constant)]
    lines = list(dict.fromkeys(x.line for x in found))[:_MOST]
    return found[0]._replace(line=" or ".join(lines)) if found else None


def _likely(place: Place, functions: Sequence[FunctionType]) -> list[FunctionType]:
    """Return the functions that may have put something in a place, the likely ones first."""
    if isinstance(place.owner, FunctionType):
        return [place.owner, *(fn for fn in functions if fn is not place.owner)]
    owner = place.owner if isinstance(place.owner, type) else type(place.owner)
    own = [fn for fn in functions[1:] if fn.__qualname__.startswith(f"{owner.__qualname__}.")]
    return list(dict.fromkeys([*functions[:1], *own, *functions]))


def _find_in(code: CodeType, namespace: dict[str, Any] | None, place: Place) -> Iterator[Statement]:
    """Yield the statements of a function that put something in a place."""
    if place.kind == "attribute" and code.co_name == "__init__":
        return
    for node in _nodes_of(code, namespace):
        base = _find_base(node, place, code)
        if base is not None:
            target = next((t for t in _targets_of(node) if _base_of(t) is base), base)
            yield Statement(line_in(code, node.lineno), node, base, target)


def first_value(place: Place, functions: Sequence[FunctionType]) -> str | None:
    """Return what is in a place at first, as `__init__` or the file of a global has it."""
    init = getattr(type(place.owner), "__init__", None)
    codes = [fn.__code__ for fn in functions[:1]]
    if place.kind == "attribute":
        codes = [init.__code__] if isinstance(init, FunctionType) else []
    elif place.kind != "global":
        return None
    for code in codes:
        nodes = _nodes_of(code) if place.kind == "attribute" else _statements(_read(code))
        for node in nodes:
            if place.kind == "global" and node.col_offset:
                continue
            named = [t for t in _targets_of(node) if _is_named(t, place)]
            value = Statement("", node, named[0], named[0]).value if named else None
            if value is not None:
                return show(value)
    return None


def show(node: ast.AST) -> str:
    """Return code on one line."""
    return " ".join(ast.unparse(node).split())


def _covers(node: Any, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _read(code: CodeType, namespace: dict[str, Any] | None = None) -> str:
    return "".join(linecache.getlines(code.co_filename, namespace))


def _nodes_of(code: CodeType, namespace: dict[str, Any] | None = None) -> Iterator[Any]:
    """Yield the statements and calls in a function, by line."""
    lines = [line for each in codes_of(code) for *_, line in each.co_lines() if line]
    inside = range(min(lines, default=0), max(lines, default=-1) + 1)
    return (node for node in _statements(_read(code, namespace)) if node.lineno in inside)


@functools.lru_cache(maxsize=16)
def _statements(source: str) -> list[Any]:
    kinds = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.Call
    try:
        found = [node for node in ast.walk(parse_source(source)) if isinstance(node, kinds)]
    except SyntaxError:  # it has been edited
        return []
    return sorted(found, key=lambda node: node.lineno)


def _targets_of(node: Any) -> list[Any]:
    """Return what a statement assigns."""
    given = getattr(node, "targets", None) or [getattr(node, "target", None)]
    return [x for t in given for x in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]


def _base_of(target: Any) -> Any:
    """Return the name or attribute of which a target is an entry, or itself."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


def _find_base(node: Any, place: Place, code: CodeType) -> ast.expr | None:
    """Return the name or attribute in a statement that is a place, if something is put there."""
    if isinstance(node, ast.Call):
        called: Any = node.func
        is_adding = isinstance(called, ast.Attribute) and called.attr in _ADDING
        bases = [_base_of(called.value)] if is_adding and place.path else []
    else:
        targets = [t for t in _targets_of(node) if place.path or not isinstance(t, ast.Subscript)]
        bases = [_base_of(t) for t in targets]
    return next((x for x in bases if _is_named(x, place) and _is_shared(x, place, code)), None)


def _is_named(base: Any, place: Place) -> bool:
    name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", None)
    is_attribute = place.kind == "attribute" or isinstance(base, ast.Attribute)
    return name == place.name and is_attribute is isinstance(base, ast.Attribute)


def _is_shared(base: Any, place: Place, code: CodeType) -> bool:
    """Return whether a name in a function is the global, or the variable around it."""
    if isinstance(base, ast.Attribute):
        return True
    if place.kind == "default":
        return code is place.owner.__code__
    return any(
        place.name in (each.co_names if place.kind == "global" else each.co_freevars)
        for each in codes_of(code)
    )

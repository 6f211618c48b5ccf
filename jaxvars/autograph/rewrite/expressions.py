"""Calls, indexing, ternaries, `and`, `or`, `not`, `in`, `a < b < c` and `assert` become operators.

Rules this file keeps:
- a new node has the line of the one it takes the place of, in `line`; what the user did not
  write has none, and is left as it is;
- operands that Python may leave out become functions, unless they bind a name with `:=`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, final

from jaxvars.objects.interpreter import parse_source

_AT_ONCE = frozenset({"breakpoint", "dir", "eval", "exec", "globals", "locals", "super", "vars"})
"""Builtins that look at the frame that calls them."""
_STRINGS = frozenset({"format", "repr", "str"})


def at(origin: ast.AST, node: Any) -> Any:
    """Let a new node come from the line of another one."""
    if (line := getattr(origin, "line", None)) is not None:
        node.line = line
    return node


def thunk(node: ast.expr) -> ast.expr:
    """Return `lambda: node`."""
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), node)


def _evaluated(node: ast.expr) -> ast.expr:
    """Return a function of what is evaluated now: what binds a name with `:=` binds it here."""
    if not has_walrus(node):
        return thunk(node)
    own, name = [ast.arg("ag__value")], ast.Name("ag__value", ast.Load())
    return ast.Lambda(ast.arguments([], own, None, [], [], None, [node]), name)


def operator(origin: ast.AST, name: str, args: Sequence[ast.expr]) -> Any:
    """Return a call of one of our operators."""
    func = ast.Attribute(ast.Name("ag__", ast.Load()), name, ast.Load())
    return at(origin, ast.Call(func, list(args), []))


def has_walrus(node: ast.AST) -> bool:
    """Return whether a node binds a name with `:=`."""
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))


def place_of(part: ast.expr) -> Any:
    """Return what returns the place of something like `self.x` or `d["k"]`; None for others."""
    if isinstance(part, ast.Name) or not _is_simple(part):
        return None
    found: Any = part
    name = "attribute" if isinstance(part, ast.Attribute) else "item"
    key = ast.Constant(found.attr) if isinstance(part, ast.Attribute) else found.slice
    owner, source = ast.unparse(found.value), ast.unparse(part)
    call: Any = parse_source(f"ag__.{name}(lambda: {owner}, {ast.unparse(key)}, {source!r})").body[
        0
    ]
    return call.value


def _in_place(origin: ast.stmt, target: ast.expr) -> list[ast.stmt]:
    """Return what looks at the value of a target."""
    if isinstance(target, ast.Name):
        old: Any = ast.Name(target.id, ast.Load())
    elif (place := place_of(target)) is not None:
        old = operator(origin, "look", [place])
    else:
        return []
    return [at(origin, ast.Expr(operator(origin, "in_place", [old])))]


def _is_simple(node: ast.expr) -> bool:
    """Return whether a target is made of names, attributes, constants and single indices."""
    if isinstance(node, ast.Attribute):
        return _is_simple(node.value)
    if isinstance(node, ast.Subscript):
        return _is_simple(node.value) and isinstance(node.slice, ast.Constant | ast.Name)
    return isinstance(node, ast.Name)


@final
class Expressions(ast.NodeTransformer):
    """Converts the expressions of a function, and its asserts."""

    def __init__(self) -> None:
        self._in_error = False  # in what is raised

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Look at what may be changed in place."""
        check = _in_place(node, node.target)
        self.generic_visit(node)
        return [*check, node]

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Look at what `x.sort()` changes in place: arrays of JAX have that method, too."""
        func: Any = getattr(node.value, "func", None)
        is_sort = isinstance(func, ast.Attribute) and func.attr == "sort"
        check = _in_place(node, func.value) if is_sort else []
        self.generic_visit(node)
        return [*check, node]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Leave the annotation of a class's field, which may be read as a string."""
        node.value = node.value and self.visit(node.value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Look at what `"%s" % x` makes a string of."""
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and _is_string(node.left) and not self._in_error:
            if isinstance(node.right, ast.Tuple):
                node.right.elts = list(map(_shown, node.right.elts))
            else:
                node.right = _shown(node.right)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        self.generic_visit(node)
        node.value = node.value if self._in_error else _shown(node.value)
        return node

    def visit_Raise(self, node: ast.Raise) -> Any:
        """Leave the strings in it: what they say of traced values is a note for people."""
        outer, self._in_error = self._in_error, True
        self.generic_visit(node)
        self._in_error = outer
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        source = ast.Constant(ast.unparse(node.test))
        node.test = self.visit(node.test)
        node.msg = node.msg and self.visit_Raise(ast.Raise(node.msg)).exc
        message = ast.Tuple([node.msg] if node.msg else [], ast.Load())
        call = operator(node, "assert_stmt", [_evaluated(node.test), thunk(message), source])
        return at(node, ast.Expr(call))

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        node.ifs = [operator(test, "known", [test]) for test in node.ifs]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if getattr(node, "is_kept", False):  # a generator, for example
            return node
        self.generic_visit(node)
        if getattr(node, "is_inner", False):
            mark = ast.Attribute(ast.Name("ag__", ast.Load()), "leave_alone", ast.Load())
            node.decorator_list.append(mark)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self.generic_visit(node)
        return operator(node, "leave_alone", [node]) if getattr(node, "is_inner", False) else node

    def visit_With(self, node: ast.With) -> Any:
        node.body = [new for part in node.body for new in _to_list(self.visit(part))]
        return node

    def visit_For(self, node: Any) -> Any:
        self.generic_visit(node)
        if extra := getattr(node, "extra_test", None):
            node.extra_test = self.visit(extra)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        kinds = ast.Constant | ast.Slice | ast.UnaryOp
        if isinstance(node.slice, kinds) or not isinstance(node.ctx, ast.Load):
            return node
        if isinstance(node.slice, ast.Tuple):
            node.slice.elts = [_slice(part) for part in node.slice.elts]
        if isinstance(node.value, ast.Attribute) and node.value.attr == "at":
            return operator(node, "get_at", [node.value.value, node.slice])
        return operator(node, "get_item", [node.value, node.slice])

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        at_once = name in _AT_ONCE or (self._in_error and name in _STRINGS)
        if at_once or not hasattr(node, "line"):
            return node
        if isinstance(node.func, ast.Attribute) and _is_string(node.func.value):
            node.args = node.args if self._in_error else list(map(_shown, node.args))
        given = [node.func, ast.Tuple(node.args, ast.Load())]
        if node.keywords:
            names: list[Any] = [word.arg and ast.Constant(word.arg) for word in node.keywords]
            given.append(ast.Dict(names, [word.value for word in node.keywords]))
        return operator(node, "converted_call", given)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        source = ast.Constant(ast.unparse(node))
        self.generic_visit(node)
        if has_walrus(node.body) or has_walrus(node.orelse):
            return node
        return operator(node, "if_exp", [node.test, thunk(node.body), thunk(node.orelse), source])

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        first, *rest = node.values
        if any(map(has_walrus, rest)):
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return operator(node, name, [first, *map(thunk, rest)])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return operator(node, "not_", [node.operand]) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        is_plain = len(node.ops) == 1 and not isinstance(node.ops[0], ast.In | ast.NotIn)
        if is_plain and isinstance(node.ops[0], ast.Is | ast.IsNot):
            is_plain = any(ast.unparse(x) == "None" for x in (node.left, *node.comparators))
        first, *rest = node.comparators
        if is_plain or any(map(has_walrus, rest)):
            return node
        steps: list[ast.expr] = []
        rights = [_evaluated(first), *map(thunk, rest)]
        for op, right in zip(node.ops, rights, strict=True):
            steps += [ast.Constant(type(op).__name__), right]
        return operator(node, "compare", [node.left, *steps])


def _slice(node: ast.expr) -> ast.expr:
    """Return what makes the slice that `a:b` stands for in an index."""
    if not isinstance(node, ast.Slice):
        return node
    ends = (node.lower, node.upper, node.step)
    return operator(node, "slice", [end or ast.Constant(None) for end in ends])


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _shown(node: ast.expr) -> ast.expr:
    """Return what looks at a value that becomes a part of a string."""
    return node if isinstance(node, ast.Starred) else operator(node, "shown", [node])


def _to_list(node: Any) -> list[Any]:
    return node if isinstance(node, list) else [node]


@final
class Reads(ast.NodeTransformer):
    """Reads of names that may have no value go through `ld`, which says so."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> Any:
        is_read = isinstance(node.ctx, ast.Load) and hasattr(node, "line")
        return operator(node, "ld", [node]) if is_read and node.id in self.names else node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        target = node.target
        if not (isinstance(target, ast.Name) and target.id in self.names):
            return node
        read = operator(node, "ld", [ast.Name(target.id, ast.Load())])
        return [at(node, ast.Assign([ast.Name(target.id, ast.Store())], read)), node]

    def visit_Delete(self, node: ast.Delete) -> Any:
        return [self._delete_target(node, target) for target in node.targets]

    def _delete_target(self, node: ast.Delete, target: ast.expr) -> Any:
        if isinstance(target, ast.Name) and target.id in self.names:
            nothing = operator(node, "Undefined", [ast.Constant(target.id)])
            return at(node, ast.Assign([ast.Name(target.id, ast.Store())], nothing))
        return at(node, ast.Delete([target]))

"""The first change to a function's tree: what would not mean the same in a new function.

That is `:=` in a loop's test, `self.__private`, `super()`, annotations, `set_loop_options`, and
the end of a function that returns values, which is a `return None`. Decorators and default values
were evaluated when the original was made.
"""

from __future__ import annotations

import ast
from types import CellType, FunctionType
from typing import Any, final

from jaxvars.autograph.rewrite.expressions import at, has_walrus
from jaxvars.autograph.rewrite.jumps import always_leaves, is_endless
from jaxvars.autograph.rewrite.liveness import walk_own
from jaxvars.autograph.rewrite.source import Unsupported


@final
class Prepare(ast.NodeTransformer):
    """Prepares a function; `directive` is what gives options to a loop."""

    def __init__(self, fn: FunctionType, directive: object) -> None:
        self.globals = fn.__globals__
        self.cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        self.directive = directive
        self.private = _class_name(fn)
        self.depth = 0
        self.first_argument: list[str | None] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if not self.depth:
            node.decorator_list = []
            node.returns = None
            for arg in ast.walk(node.args):
                if isinstance(arg, ast.arg):
                    arg.annotation = None
        setattr(node, "type_params", [])  # noqa: B010 - new in Python 3.12
        self._visit_inside(node)
        returns = any(isinstance(s, ast.Return) and s.value for s in walk_own(node.body))
        if returns and not _ends(node.body):
            node.body.append(at(node.body[-1], ast.Return(ast.Constant(None))))
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        outer, self.private = self.private, None  # the compiler sees to the names of this one
        for part in node.body:
            if isinstance(part, ast.AnnAssign):
                setattr(part, "is_field", True)  # noqa: B010 - a note of ours
        self.generic_visit(node)
        self.private = outer
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return self._visit_inside(node)

    def _visit_inside(self, node: Any) -> Any:
        if not self.depth:
            node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
            node.args.kw_defaults = [x and ast.Constant(None) for x in node.args.kw_defaults]
        names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
        self.first_argument.append(names[0] if names else None)
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1
        self.first_argument.pop()
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        if hasattr(node, "is_field"):  # which dataclasses and named tuples are made of
            return node
        if node.value is None:
            return at(node, ast.Pass())
        return at(node, ast.Assign([node.target], node.value))

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        node.attr = self._mangle(node.attr)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        node.id = self._mangle(node.id)
        return node

    def _mangle(self, name: str) -> str:
        is_private = name.startswith("__") and not name.endswith("__")
        return f"_{self.private}{name}" if is_private and self.private else name

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super"
        if is_super and not node.args and (first := self.first_argument[-1]):
            names = ("__class__", first)
            node.args = [at(node, ast.Name(name, ast.Load())) for name in names]
        return node

    def visit_While(self, node: ast.While) -> Any:
        self._take_options(node)
        if is_endless(node):
            node.test = at(node.test, ast.Constant(True))
        if has_walrus(node.test) and node.orelse:
            raise Unsupported(f"it has a `while` with `:=` and `else`: {ast.unparse(node.test)}")
        if has_walrus(node.test):
            stop = at(node.test, ast.UnaryOp(ast.Not(), node.test))
            leave = at(node.test, ast.If(stop, [at(node.test, ast.Break())], []))
            node.test, node.body = at(node.test, ast.Constant(True)), [leave, *node.body]
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> Any:
        self._take_options(node)
        return self.generic_visit(node)

    def _take_options(self, loop: ast.While | ast.For) -> None:
        """Take the call of the directive out of the loop's body, and note its arguments."""
        call = getattr(loop.body[0], "value", None)
        meant = self._means(call.func) if isinstance(call, ast.Call) else None
        if meant is None or not isinstance(call, ast.Call):
            return
        if meant is self.directive:
            options = {word.arg: word.value for word in call.keywords}
            options |= dict(zip(("max_iterations",), call.args, strict=False))
        elif names := getattr(meant, "loop_options", None):  # another package's, by our names
            options = {names[w.arg]: w.value for w in call.keywords if w.arg in names}
        else:
            return
        setattr(loop, "options", options)  # noqa: B010 - a note of ours
        loop.body[0] = at(loop.body[0], ast.Pass())

    def _means(self, node: ast.expr) -> object:
        """Return what a dotted name stands for when the function is converted."""
        if isinstance(node, ast.Name):
            cell = self.cells.get(node.id)
            return self.globals.get(node.id) if cell is None else _content(cell)
        if isinstance(node, ast.Attribute):
            return getattr(self._means(node.value), node.attr, None)
        return None


def _class_name(fn: FunctionType) -> str | None:
    """Return the name of the class that a method was written in, as private names have it."""
    parts = fn.__qualname__.split(".")[:-1]
    inner = parts[-1] if parts else "<locals>"
    return None if inner == "<locals>" else inner.lstrip("_")


def _ends(body: list[ast.stmt]) -> bool:
    """Return whether a function's last statement returns or raises, perhaps within a `with`."""
    while isinstance(body[-1], ast.With):
        body = body[-1].body
    return always_leaves(body, (ast.Return, ast.Raise))


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None

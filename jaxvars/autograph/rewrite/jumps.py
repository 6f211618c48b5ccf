"""`break`, `continue`, and `return` in the middle of a function, become flags.

    while x < 9:                  ag__break1 = False
        if x == y:                while not ag__break1 and x < 9:
            break          ->         if x == y:
        x += 1                            ag__break1 = True
                                      else:
                                          x += 1

Rules this file keeps:
- what follows an `if` that always jumps becomes its `else`, so that the value of each way is known;
  what follows any other statement that may jump is guarded by the flags;
- a `with` may end what is raised in it: one that ends in a jump may go on after it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, final

from jaxvars.autograph.rewrite.expressions import at
from jaxvars.autograph.rewrite.liveness import walk_own
from jaxvars.objects.interpreter import parse_source

Flags: TypeAlias = frozenset[str]

_NONE: Flags = frozenset()
_JUMPS = ast.Return, ast.Break, ast.Continue


def remove_jumps(node: ast.AST) -> None:
    """Rewrite the jumps of a function, and of those in it, in place."""
    if getattr(node, "is_kept", False):
        return
    if isinstance(node, ast.FunctionDef):
        node.body = _Jumps().function(node.body)
    for part in ast.iter_child_nodes(node):
        remove_jumps(part)


def always_leaves(body: Sequence[ast.stmt], kinds: tuple[type, ...] = _JUMPS) -> bool:
    """Return whether the end of some statements is never reached, by jumps of these kinds."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return always_leaves(last.body, kinds) and always_leaves(last.orelse, kinds)
    if isinstance(last, ast.Try):
        tried = always_leaves(last.body, kinds) or always_leaves(last.orelse, kinds)
        handled = all(always_leaves(handler.body, kinds) for handler in last.handlers)
        return (tried and handled) or always_leaves(last.finalbody, kinds)
    if isinstance(last, ast.While):
        return is_endless(last) and not any(map(_breaks, last.body))
    return isinstance(last, kinds)


def is_endless(node: ast.While) -> bool:
    return isinstance(node.test, ast.Constant) and bool(node.test.value)


def _breaks(node: ast.AST) -> bool:
    """Return whether a statement of a loop's body leaves the loop by a `break`."""
    if isinstance(node, ast.While | ast.For):  # those in its body leave that one
        return any(map(_breaks, node.orelse))
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
        return False
    return isinstance(node, ast.Break) or any(map(_breaks, ast.iter_child_nodes(node)))


@final
class _Jumps:
    """Rewrites the jumps of one function. Statements are returned with the flags they may set."""

    def __init__(self) -> None:
        self._loops: list[tuple[str, str]] = []  # the flags of those around: `break`, `continue`
        self._count = 0

    def function(self, body: list[ast.stmt]) -> list[ast.stmt]:
        returns = [part for part in walk_own(body) if isinstance(part, ast.Return)]
        if returns in ([], body[-1:]):
            new, _ = self._statements(body[: len(body) - len(returns)])
            return [*new, *returns]
        new, _ = self._statements(body)
        start = parse_source(
            "ag__returns = False\nag__result = ag__.Nothing('the returned value')"
        ).body
        return [*start, *new, ast.Return(parse_source("ag__.ld(ag__result)", mode="eval").body)]

    def _statements(self, body: Sequence[ast.stmt]) -> tuple[list[ast.stmt], Flags]:
        new: list[ast.stmt] = []
        for i, node in enumerate(body):
            rest = list(body[i + 1 :])
            if isinstance(node, ast.If) and always_leaves(node.body):
                node.orelse, rest = [*node.orelse, *rest], []
            elif isinstance(node, ast.If) and always_leaves(node.orelse):
                node.body, rest = [*node.body, *rest], []
            made, flags = self._statement(node)
            new += made
            if not rest:
                return new, flags
            if flags:
                guarded, more = self._statements(rest)
                return [*new, at(node, ast.If(_none_of(flags), guarded, []))], flags | more
        return new, _NONE

    def _statement(self, node: Any) -> tuple[list[ast.stmt], Flags]:
        if isinstance(node, ast.Return):
            value = node.value or ast.Constant(None)
            result = at(node, ast.Assign([ast.Name("ag__result", ast.Store())], value))
            return [result, _assign("ag__returns", True, node)], frozenset({"ag__returns"})
        if isinstance(node, ast.Break | ast.Continue):
            flag = self._loops[-1][isinstance(node, ast.Continue)]
            return [_assign(flag, True, node)], frozenset({flag})
        if isinstance(node, ast.While | ast.For):
            return self._loop(node)
        if isinstance(node, ast.If | ast.With):
            return [node], self._inside(node, "body") | self._inside(node, "orelse")
        return [node], self._try(node) if isinstance(node, ast.Try) else _NONE

    def _inside(self, node: Any, name: str) -> Flags:
        """Rewrite the statements in an attribute of a node, if it has any."""
        if not getattr(node, name, None):
            return _NONE
        new, flags = self._statements(getattr(node, name))
        setattr(node, name, new)
        return flags

    def _try(self, node: ast.Try) -> Flags:
        flags = self._inside(node, "body")
        after = self._inside(node, "orelse")
        if flags and node.orelse:
            node.orelse = [at(node, ast.If(_none_of(flags), node.orelse, []))]
        handled = [self._inside(handler, "body") for handler in node.handlers]
        return flags.union(after, self._inside(node, "finalbody"), *handled)

    def _loop(self, node: ast.While | ast.For) -> tuple[list[ast.stmt], Flags]:
        self._count += 1
        broken, skipped = f"ag__break{self._count}", f"ag__continue{self._count}"
        self._loops.append((broken, skipped))
        flags = self._inside(node, "body")
        self._loops.pop()
        if skipped in flags:
            node.body.insert(0, _assign(skipped, False))
        ends = flags - {skipped}
        if ends and isinstance(node, ast.While):
            test = _as_bool(node.test)
            node.test = at(node.test, ast.BoolOp(ast.And(), [_none_of(ends), test]))
        elif ends:
            setattr(node, "extra_test", _none_of(ends))  # noqa: B010 - a note of ours
        new: list[ast.stmt] = [_assign(broken, False), node] if broken in flags else [node]
        after, orelse = self._inside(node, "orelse"), node.orelse
        node.orelse = []
        new += [ast.If(_none_of(ends), orelse, [])] if ends and orelse else orelse
        return new, flags & {"ag__returns"} | after


def _assign(flag: str, value: bool, origin: ast.AST | None = None) -> ast.stmt:
    node = ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(value))
    return node if origin is None else at(origin, node)


def _none_of(flags: Iterable[str]) -> ast.expr:
    return parse_source(f"not ({' or '.join(sorted(flags))})", mode="eval").body


def _as_bool(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.Compare | ast.BoolOp | ast.Constant):
        return test
    return at(test, ast.UnaryOp(ast.Not(), at(test, ast.UnaryOp(ast.Not(), test))))

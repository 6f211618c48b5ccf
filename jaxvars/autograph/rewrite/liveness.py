"""Which names does a statement read and write, and which are read after it?

The code has no `break`, `continue` or `return` in the middle any more, so that a walk from the
last statement to the first answers it.

Rules this file keeps:
- when in doubt, a name is alive: to carry it needlessly is right, to drop it is not;
- reading the name of an inner function is reading what that closes over, and writing what it
  declares nonlocal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, final

Names: TypeAlias = frozenset[str]
Function: TypeAlias = ast.FunctionDef | ast.Lambda

NONE: Names = frozenset()
BLOCKS = (ast.If, ast.While, ast.For)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Use(NamedTuple):
    """Names read, and names written."""

    reads: Names
    writes: Names


def union(uses: Iterable[Use]) -> Use:
    """Return what several parts use together."""
    found = list(uses)
    reads, writes = [use.reads for use in found], [use.writes for use in found]
    return Use(NONE.union(*reads), NONE.union(*writes))


def uses(node: ast.AST) -> Use:
    """Return the names that a node uses, whole statements with all that is in them."""
    known: Use | None = getattr(node, "uses", None)  # found out once, before anything is changed
    if known is None:
        known = _uses(node)
        node.uses = known  # pyright: ignore[reportAttributeAccessIssue]
    return known


def _uses(node: ast.AST) -> Use:
    if isinstance(node, ast.Name):
        own = frozenset((node.id,))
        if isinstance(node.ctx, ast.Load):
            return Use(own, NONE)
        return Use(own if isinstance(node.ctx, ast.Del) else NONE, own)
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        return _function_use(node)
    parts = union(map(uses, ast.iter_child_nodes(node)))
    if isinstance(node, _COMPREHENSIONS):
        targets = union(uses(part.target) for part in node.generators).writes
        return Use(parts.reads - targets, parts.writes - targets)
    if isinstance(node, ast.AugAssign):
        return Use(parts.reads | uses(node.target).writes, parts.writes)
    if isinstance(node, ast.ClassDef):
        methods = union(free_use(part) for part in node.body if isinstance(part, ast.FunctionDef))
        return Use(parts.reads | methods.reads, frozenset((node.name,)))
    if isinstance(node, ast.Import | ast.ImportFrom):
        found = [name.asname or name.name.partition(".")[0] for name in node.names]
        return Use(NONE, frozenset(found))
    return parts


def _function_use(node: Function) -> Use:
    arguments = node.args
    outside = [*arguments.defaults, *arguments.kw_defaults, *getattr(node, "decorator_list", [])]
    use = union(uses(part) for part in outside if part is not None)
    if isinstance(node, ast.FunctionDef):
        return Use(use.reads, use.writes | {node.name})
    return Use(use.reads | free_use(node).reads, use.writes)


def free_use(node: Function) -> Use:
    """Return the names of the outside that a function reads and writes when it runs."""
    body = node.body if isinstance(node.body, list) else [node.body]
    inside = union(map(uses, body))
    nested = [part for part in walk_own(body) if isinstance(part, ast.FunctionDef)]
    deeper = union(map(free_use, nested))
    own = (inside.writes | parameters(node)) - outside_names(body)
    shared = outside_names(body, ast.Nonlocal) & inside.writes
    return Use((inside.reads | deeper.reads) - own, shared | deeper.writes - own)


def parameters(node: Function) -> Names:
    """Return the names of a function's arguments."""
    return frozenset(part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg))


def outside_names(body: Sequence[ast.AST], kind: Any = (ast.Global, ast.Nonlocal)) -> Names:
    """Return the names that a function declares global or nonlocal."""
    found: list[Any] = [part for part in walk_own(body) if isinstance(part, kind)]
    return frozenset(name for part in found for name in part.names)


def walk_own(body: Sequence[ast.AST]) -> Iterable[ast.AST]:
    """Yield all nodes of a function's body, without what is in functions in it."""
    todo = list(body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(node))


class Alive(NamedTuple):
    """The names whose values are read at the start of a block or in it, and after it."""

    before: Names
    after: Names


@final
class Liveness:
    """Finds the names that are alive around each block of a function."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self.alive: dict[ast.AST, Alive] = {}
        self._closures = _closures(node.body)
        self._always = NONE  # what a handler around us reads, whenever it is entered
        self._walk(node.body, outside_names(node.body))

    def use(self, node: ast.AST) -> Use:
        """Return the names that a node uses, those by way of inner functions included."""
        use = uses(node)
        return union([use, *(self._closures[name] for name in use.reads & self._closures.keys())])

    def _walk(self, body: Sequence[ast.stmt], after: Names) -> Names:
        for node in reversed(body):
            after = self._before(node, after) | self._always
        return after

    def _before(self, node: Any, after: Names) -> Names:
        if isinstance(node, BLOCKS):
            return self._before_block(node, after)
        if isinstance(node, ast.With):
            items = union(map(self.use, node.items))
            return items.reads | (self._walk(node.body, after) - items.writes)
        if isinstance(node, ast.Try):
            return self._before_try(node, after)
        use = self.use(node)
        if isinstance(node, ast.Return | ast.Raise):
            return use.reads
        return use.reads | (after - uses(node).writes)

    def _before_block(self, node: Any, after: Names) -> Names:
        if isinstance(node, ast.If):
            test = self.use(node.test)
            inner = self._walk(node.body, after) | self._walk(node.orelse, after)
            self.alive[node] = Alive(test.reads | inner, after)
            return test.reads | (inner - test.writes)
        before = self._before_loop(node, after)
        self.alive[node] = Alive(before, after | _outliving_reads(node.body))
        return before

    def _before_loop(self, node: Any, after: Names) -> Names:
        if isinstance(node, ast.While):
            head, targets = self.use(node.test).reads, NONE
        else:
            extra = loop_test(node)
            head = self.use(extra).reads if extra else NONE
            targets = uses(node.target).writes
        before = head | after
        while True:
            inner = self._walk(node.body, before) - targets
            if inner <= before:
                break
            before |= inner
        return before | self.use(node.iter).reads if isinstance(node, ast.For) else before

    def _before_try(self, node: ast.Try, after: Names) -> Names:
        after = self._walk(node.finalbody, after)
        handlers = [self._walk(handler.body, after) for handler in node.handlers]
        kinds = [self.use(handler.type).reads for handler in node.handlers if handler.type]
        caught = frozenset().union(*handlers, *kinds, after if node.finalbody else NONE)
        outer, self._always = self._always, self._always | caught
        before = self._walk(node.body, self._walk(node.orelse, after))
        self._always = outer
        return before | caught


def loop_test(node: ast.For) -> ast.expr | None:
    """Return the condition under which a `for` continues, if it may end early."""
    return getattr(node, "extra_test", None)


def _lambdas(value: ast.AST) -> Iterable[ast.Lambda]:
    """Yield the lambdas that may be a value or in it, not those that are passed to a call."""
    if isinstance(value, ast.Lambda) and hasattr(value, "is_inner"):  # the user's
        yield value
    elif not isinstance(value, ast.Call) or ast.unparse(value.func).startswith("ag__."):
        for part in ast.iter_child_nodes(value):
            yield from _lambdas(part)


def _outliving_reads(body: Sequence[ast.AST]) -> Names:
    """Return what the inner functions of a loop read that may outlive an iteration.

    They are to see what the last iteration left, as Python's do.
    """
    found = NONE
    for node in walk_own(body):
        if isinstance(node, ast.FunctionDef) and hasattr(node, "is_inner"):
            found |= free_use(node).reads
        elif isinstance(node, ast.Assign | ast.AugAssign) or _is_keeping(node):
            found |= union(map(free_use, _lambdas(node))).reads
    return found


def _is_keeping(node: ast.AST) -> bool:
    """Return whether a call, once converted, is that of a method that keeps its arguments."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "ag__.converted_call":
        return False
    return getattr(node.args[0], "attr", None) in _KEEPERS


_KEEPERS = ("append", "appendleft", "extend", "insert", "add", "setdefault", "update")


def _closures(body: Sequence[ast.AST]) -> dict[str, Use]:
    """Return what each inner function uses of the outside, by its name."""
    found: dict[str, Use] = {}
    for node in walk_own(body):
        if isinstance(node, ast.FunctionDef):
            found[node.name] = union([found.get(node.name, Use(NONE, NONE)), free_use(node)])
        elif isinstance(node, ast.Assign) and (lambdas := list(_lambdas(node.value))):
            for name in uses(node).writes:
                found[name] = union([found.get(name, Use(NONE, NONE)), *map(free_use, lambdas)])
    for _ in found:  # one may call another
        for name, use in found.items():
            found[name] = union([use, *(found[other] for other in use.reads & found.keys())])
    return found

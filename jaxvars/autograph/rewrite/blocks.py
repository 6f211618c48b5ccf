"""`if`, `while` and `for` become operators: their bodies functions, their names a state.

    if x > 0:                     def ag__get(): return (y,)
        y = x                     def ag__set(ag__state): nonlocal y; (y,) = ag__state
    else:                   ->    def ag__then(): nonlocal y; y = x
        y = -x                    def ag__else(): nonlocal y; y = -x
                                  ag__.if_stmt(x > 0, ag__then, ag__else, ag__get, ...)

Rules this file keeps:
- the state of a block is what it writes and is read, in it or after it; all else is local
  to the functions of the block;
- it includes `self.x` and `d["k"]` where the block assigns them;
- a name that may be without a value when the block starts is `Undefined` then.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, NamedTuple, final

from jaxvars.autograph.rewrite.expressions import at, place_of, thunk
from jaxvars.autograph.rewrite.liveness import (
    BLOCKS,
    Liveness,
    Names,
    loop_test,
    outside_names,
    parameters,
    union,
    uses,
    walk_own,
)
from jaxvars.objects.interpreter import parse_source


def convert_blocks(node: Any) -> set[str]:
    """Turn a function's blocks into operators; return the names that may be without a value."""
    undefined: set[str] = set()
    _convert_all(node, undefined)
    return undefined


def _convert_all(node: ast.AST, undefined: set[str]) -> None:
    if getattr(node, "is_kept", False):
        return
    inner = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.FunctionDef) and hasattr(node, "is_inner"):  # the user's, not ours
        _Function(node, undefined).convert()
    for part in inner:
        _convert_all(part, undefined)


class _State(NamedTuple):
    """The state of a block.

    Attributes:
        names: that are read after it, too.
        inputs: names that are not read after it.
        parts: things like `self.x`.
        local: names that are not read outside of it.
    """

    names: list[str]
    inputs: list[str]
    parts: list[ast.Attribute | ast.Subscript]
    local: Names

    @property
    def all(self) -> list[str]:
        """What the accessors get and set, in order."""
        return [*self.names, *self.inputs]


@final
class _Function:
    """Converts the blocks of one function, without those of functions in it."""

    def __init__(self, node: ast.FunctionDef, undefined: set[str]) -> None:
        self.node = node
        self.undefined = undefined
        self.liveness = Liveness(node)
        self.globals = outside_names(node.body, ast.Global)
        written = union(map(uses, node.body)).writes
        self.local = written - outside_names(node.body)

    def convert(self) -> None:
        """Convert the function in place."""
        self.node.body, _ = self._statements(self.node.body, parameters(self.node))

    def _statements(self, body: Sequence[ast.stmt], bound: Names) -> tuple[list[ast.stmt], Names]:
        """Return statements converted, and the names bound after them, of those bound before."""
        new: list[ast.stmt] = []
        for node in body:
            if isinstance(node, BLOCKS):
                state = self._state(node)
                carried = frozenset((*state.names, *state.inputs))
                new += self._define(carried, bound)
                new += self._block(node, state, (bound | carried) - state.local)
                bound |= carried
                continue
            if isinstance(node, ast.Try) or any(
                isinstance(x, ast.NamedExpr) for x in walk_own([node])
            ):
                new += self._define(uses(node).writes, bound)
                bound |= uses(node).writes
            bound = self._inside(node, bound)
            new.append(node)
        return new, bound

    def _inside(self, node: Any, bound: Names) -> Names:
        """Convert what is inside of a `with` or `try`; return the names that are bound after it."""
        if isinstance(node, ast.With):
            items = union(map(uses, node.items)).writes
            node.body, bound = self._statements(node.body, bound | items)
            return bound
        if isinstance(node, ast.Try):
            for name in ("body", "orelse", "finalbody"):
                setattr(node, name, self._statements(getattr(node, name), bound)[0])
            for handler in node.handlers:
                handler.body = self._statements(handler.body, bound)[0]
            return bound
        if isinstance(node, ast.Delete):
            self.undefined.update(uses(node).writes)
            return bound - uses(node).writes
        return bound | uses(node).writes

    def _define(self, names: Names, bound: Names) -> list[ast.stmt]:
        new = sorted((names & self.local) - bound)
        self.undefined.update(new)
        return parse_source("\n".join(f"{name} = ag__.Undefined({name!r})" for name in new)).body

    # ------------------------------------------------------------ the state of a block
    def _state(self, node: Any) -> _State:
        alive = self.liveness.alive[node]
        inner = [*node.body, *getattr(node, "orelse", ()), *_targets(node)]
        writes = union(map(self.liveness.use, inner)).writes
        carried = {name for name in writes if name in alive.before | alive.after}
        carried |= writes - self.local  # nonlocal and global names are read elsewhere
        inputs = {name for name in carried & self.local if name not in alive.after}
        parts = [part for part in _parts(inner) if uses(part).reads <= alive.before - writes]
        loop = not isinstance(node, ast.If)
        return _State(
            names=sorted(carried if loop else carried - inputs),
            parts=parts,
            local=writes - carried,
            inputs=[] if loop else sorted(inputs),
        )

    # ------------------------------------------------------------ writing the block
    def _block(self, node: Any, state: _State, bound: Names) -> list[ast.stmt]:
        accessors = self._accessors(state)
        if isinstance(node, ast.If):
            functions = [
                self._body("ag__then()", node.body, state, bound),
                self._body("ag__else()", node.orelse, state, bound),
            ]
            given = f"{self._state_arg(state)}, {len(state.names)}"
            call = f"ag__.if_stmt(0, ag__then, ag__else, {given})"
            args = [node.test]
        elif isinstance(node, ast.While):
            functions = [self._body("ag__body()", node.body, state, bound)]
            call = f"ag__.while_stmt(0, ag__body, {self._state_arg(state)})"
            args = [thunk(node.test)]
        else:
            take = ast.Assign([node.target], ast.Name("ag__item", ast.Load()))
            functions = [self._body("ag__body(ag__item)", [take, *node.body], state, bound)]
            call = f"ag__.for_stmt(0, 0, ag__body, {self._state_arg(state)})"
            extra = loop_test(node)
            args = [node.iter, thunk(extra) if extra else ast.Constant(None)]
        statement: Any = parse_source(call).body[0]
        statement.value.args[: len(args)] = args
        options = getattr(node, "options", None) or {}
        statement.value.keywords = [ast.keyword(name, value) for name, value in options.items()]
        new = [*accessors, *functions, statement]
        return [at(node, part) for part in new]

    def _body(
        self, head: str, body: Sequence[ast.stmt], state: _State, bound: Names
    ) -> ast.FunctionDef:
        (function,) = parse_source(f"def {head}: {self._declaration(state)}").body
        if not isinstance(function, ast.FunctionDef):
            raise TypeError(head)
        if body:
            function.body += self._statements(body, bound)[0]
        return function

    def _declaration(self, state: _State) -> str:
        declared = {"global": [], "nonlocal": []}
        for name in state.all:
            declared["global" if name in self.globals else "nonlocal"].append(name)
        lines = [f"{word} {', '.join(some)}" for word, some in declared.items() if some]
        return "; ".join(lines) or "pass"

    def _state_arg(self, state: _State) -> str:
        names = [f"global {name}" if name in self.globals else name for name in state.all]
        parts = ", ".join(ast.unparse(place_of(part)) for part in state.parts)
        quoted = "".join(f"{name!r}, " for name in names)
        return f"ag__.State(({quoted}), ag__get, ag__set, lambda: [{parts}])"

    def _accessors(self, state: _State) -> list[ast.stmt]:
        """Return the functions that get and set the state."""
        names = "".join(f"{name}, " for name in state.all)
        source = f"""
def ag__get():
    return ({names})
def ag__set(ag__state):
    {self._declaration(state)}
    ({names}) = ag__state"""
        return parse_source(source).body


def _targets(node: Any) -> list[ast.expr]:
    return [node.target] if isinstance(node, ast.For) else []


def _parts(inner: Sequence[ast.AST]) -> list[ast.Attribute | ast.Subscript]:
    """Return the things like `self.x` and `d["k"]` that are assigned."""
    found: dict[str, ast.Attribute | ast.Subscript] = {}
    for node in walk_own(inner):
        is_part = isinstance(node, ast.Attribute | ast.Subscript)
        if is_part and not isinstance(node.ctx, ast.Load) and place_of(node):
            found[ast.unparse(node)] = node
    return [found[source] for source in sorted(found)]

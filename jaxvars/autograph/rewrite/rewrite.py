"""Rewrite a function: its `if`, `while`, `for`, `and`, calls, ... become calls of operators.

| step | file |
|---|---|
| the source is read | `autograph/rewrite/source.py` |
| what malt does not take is rewritten | `autograph/rewrite/prepare.py` |
| `break`, `continue` and early `return` become flags: diastatic-malt's part | here |
| expressions become operators | `autograph/rewrite/expressions.py` |
| `if` and loops become operators on the names they assign | `autograph/rewrite/blocks.py` |
| which names these are | `autograph/rewrite/liveness.py` |
| the tree is compiled | `autograph/rewrite/source.py` |

Of malt the transformers of jumps are used. Its analysis of names takes six times as long as all
of this together, so they are passed what they need of it.

Rules this file keeps:
- malt is imported here alone, and this file only when a function is first converted;
- the code of one function is written once; it is instantiated for each closure.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple, final

from malt.converters import break_statements, continue_statements, return_statements
from malt.core import converter
from malt.pyct import anno, inspect_utils, naming, transformer
from malt.pyct.static_analysis.annos import NodeAnno

from jaxvars.autograph.rewrite.blocks import convert_blocks
from jaxvars.autograph.rewrite.expressions import Expressions, Reads
from jaxvars.autograph.rewrite.prepare import Prepare, own_statements
from jaxvars.autograph.rewrite.source import code_of, parse


def rewrite(fn: FunctionType, directive: object) -> CodeType:
    """Return the new code of a function, to be given its closure, and the operators as `ag__`.

    Args:
        fn: a function or lambda.
        directive: the function whose call, first in a loop's body, gives options to the loop.

    Raises:
        Unsupported: when it cannot be; the message says why.
    """
    return code_of(_converted(fn, directive), fn)


def source(fn: FunctionType, directive: object) -> str:
    """Return the new code of a function, for reading."""
    return ast.unparse(ast.fix_missing_locations(_converted(fn, directive)))


def _converted(fn: FunctionType, directive: object) -> Any:
    namespace = inspect_utils.getnamespace(fn)
    node = Prepare(fn, namespace, directive).visit(parse(fn))
    if isinstance(node, ast.FunctionDef):
        node.name = f"ag__{node.name}"
        node = _without_jumps(node, fn, namespace)
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.Lambda):
            setattr(part, "is_inner", part is not node)  # noqa: B010 - a note of ours
    node = Expressions().visit(node)
    if undefined := convert_blocks(node):
        node = Reads(undefined).visit(node)
    return node if isinstance(node, ast.FunctionDef) else _assigned(node)


def _assigned(node: ast.Lambda) -> ast.stmt:
    return ast.Assign([ast.Name("ag__lambda", ast.Store())], node)


# ---------------------------------------------------------------- jumps
_OPTIONS = converter.ProgramContext(options=converter.STANDARD_OPTIONS)


class _Scope(NamedTuple):
    """What malt's analysis would say of a block, as far as it is needed."""

    referenced: frozenset[str]


def _without_jumps(node: Any, fn: FunctionType, namespace: dict[str, Any]) -> Any:
    """Have malt turn `break`, `continue` and `return` into flags."""
    info = transformer.EntityInfo(node.name, "", fn.__code__.co_filename, (), namespace)
    context = transformer.Context(info, naming.Namer(namespace), _OPTIONS)
    parts = list(ast.walk(node))
    _give_notes(parts)
    scope = _Scope(frozenset(part.id for part in parts if isinstance(part, ast.Name)))
    steps: list[Any] = [return_statements.ConditionalReturnRewriter, _Returns]
    jumps = (ast.Break, ast.Continue)
    if any(isinstance(part, jumps) or getattr(part, "orelse", None) for part in parts):
        steps.insert(0, continue_statements.ContinueCanonicalizationTransformer)
        steps.insert(0, break_statements.BreakTransformer)
    for step in steps:
        for part in ast.walk(node):
            if isinstance(part, ast.FunctionDef | ast.While | ast.For):
                anno.setanno(part, NodeAnno.BODY_SCOPE, scope)
        node = step(context).visit(node)
    _take_notes(node)
    return node


@final
class _Returns(return_statements.ReturnStatementsTransformer):
    """Turns the returns of a function into flags, unless there is but one, at the end."""

    def __init__(self, context: Any) -> None:
        super().__init__(context, allow_missing_return=True)

    def visit_FunctionDef(self, node: Any) -> Any:  # noqa: N802 - ast's name
        returns = [s for s in own_statements(node.body) if isinstance(s, ast.Return)]
        if returns in ([], node.body[-1:]):
            body, node.body = node.body, [*node.body[: -len(returns) or None], ast.Pass()]
            node = super().visit_FunctionDef(node)
            node.body = [*node.body[:-1], *body[len(body) - len(returns) :]]
            return node
        scope = ast.withitem(ast.Name("ag__", ast.Load()))
        node.body = [ast.With([scope], node.body)]  # malt looks for one
        anno.setanno(node, "function_context_name", "ag__")
        node = super().visit_FunctionDef(node)
        node.body = node.body[0].body
        return node


def _give_notes(parts: Sequence[ast.AST]) -> None:
    """Make our notes malt's, which it carries along when it copies nodes."""
    for part in parts:
        for name, key in _NOTES.items():
            if (note := getattr(part, name, None)) is not None:
                anno.setanno(part, key, note)


def _take_notes(node: ast.AST) -> None:
    """Make malt's notes ours: plain attributes of the nodes."""
    for part in ast.walk(node):
        for name, key in {**_NOTES, "extra_test": anno.Basic.EXTRA_LOOP_TEST}.items():
            if (note := anno.getanno(part, key, default=None)) is not None:
                setattr(part, name, note)


_NOTES = {
    "is_kept": anno.Basic.SKIP_PROCESSING,
    "line": anno.Basic.ORIGIN,
    "options": anno.Basic.DIRECTIVES,
}

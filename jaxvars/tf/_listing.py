"""Which names a module makes public: what `dir` lists, for completion, and the page of names shows.

Rules this file keeps:
- public is what a module defines, or hands on with `from x import name as name`;
- what a module imports for itself is not, nor are its tables.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys


@functools.cache
def defined(module: str) -> frozenset[str]:
    """Return the names that a module makes public itself.

    Args:
        module: its `__name__`.

    >>> import jaxvars.tf.version
    >>> sorted(defined("jaxvars.tf.version"))[-1]
    'VERSION'
    """
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    found = {name for node in tree.body for name in _named(node)}
    return frozenset(name for name in found if not name.startswith("_"))


def _named(node: ast.stmt) -> list[str]:
    """Return the names that a statement makes public."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.ImportFrom):
        return [alias.name for alias in node.names if alias.asname == alias.name]
    if isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        is_constant = isinstance(node.value, ast.Constant)
        return [name for name in names if is_constant or not name.isupper()]
    return []

"""Which of TensorFlow's names a program uses, found by its syntax: nothing is run.

Rules this file keeps:
- what an import calls `tf` is TensorFlow wherever no argument or local variable has that name;
- `layers = tf.keras.layers` is an import, too.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from typing import Any, final

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef,
           ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)  # fmt: skip


def path_of(module: str, roots: Iterable[str] = ("tensorflow", "jaxvars.tf")) -> str | None:
    """Return what is behind `tf` in the name of a module; None if it is none of TensorFlow's.

    >>> path_of("tensorflow.keras.layers"), path_of("tensorflow"), path_of("tensorflow_hub")
    ('keras.layers', '', None)
    """
    found = [root for root in roots if f"{module}.".startswith(f"{root}.")]
    return module[len(found[0]) + 1 :] if found else None


def imports_of(node: ast.AST) -> Iterator[tuple[str | None, str | None, str]]:
    """Yield what an import names: the name behind `tf`, and what is called how."""
    if isinstance(node, ast.Import):
        for x in node.names:
            first = x.name.partition(".")[0]
            yield path_of(x.name), path_of(x.name if x.asname else first), x.asname or first
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for x in node.names:
            path = path_of(module if x.name == "*" else f"{module}.{x.name}")
            yield path, path, x.asname or x.name


@final
class Names(ast.NodeVisitor):
    """The names that a program uses.

    Attributes:
        uses: the names, without `tf.`, and where they are; "?" is before those that nothing in the
            program defines, where there is a star import.
        packages: others that are made for TensorFlow, as tensorflow_datasets, and where they are.
        stars: the modules of star imports; None for those that are not TensorFlow's.
    """

    def __init__(self, parts: list[tuple[str, ast.AST]]) -> None:
        self.uses: list[tuple[str, str]] = []
        self.packages: list[tuple[str, str]] = []
        self.stars: list[str | None] = []
        self._known: dict[str, str] = {}  # what is imported
        self._bound: set[str] = set()
        self._aliases: set[ast.Name] = set()
        self._hidden: set[str] = set()  # arguments and local variables
        nodes = [node for _, tree in parts for node in ast.walk(tree)]
        for node in nodes:
            self._learn(node)
        imports = [row for node in nodes for row in imports_of(node)]
        self.stars = [path for path, _, name in imports if name == "*"]
        self._bound = {name for x in nodes for name in _bound_by(x)} | {row[2] for row in imports}
        assigned = {x.id for x in self._aliases}
        for label, tree in parts:
            self._label, self._hidden = label, assigned & set(self._list_locals(tree))
            self.visit(tree)

    def _learn(self, node: ast.AST) -> None:
        for _, path, name in imports_of(node):
            if path is not None and name != "*":
                self._known[name] = path
        if isinstance(node, ast.Assign) and (path := self._find(node.value)) is not None:
            names = [x for x in node.targets if isinstance(x, ast.Name)]
            self._known |= dict.fromkeys([x.id for x in names], path)
            self._aliases |= set(names)

    def visit(self, node: Any) -> None:
        """Note the names in a node."""
        if isinstance(node, _SCOPES):
            self._visit_scope(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for path, _, name in imports_of(node):
                self._use(None if name == "*" else path, node)
            place = f"{self._label}{node.lineno}"
            self.packages += [(name, place) for name in _list_packages(node)]
        elif not isinstance(node, ast.Name | ast.Attribute) or (path := self._find(node)) is None:
            self.generic_visit(node)
        elif isinstance(node.ctx, ast.Load):
            self._use(path, node)

    def _visit_scope(self, node: Any) -> None:
        inside = ("body",) if hasattr(node, "body") else node._fields
        for fields, hidden in (
            ([x for x in node._fields if x not in inside], set[str]()),
            (inside, set() if isinstance(node, ast.ClassDef) else set(self._list_locals(node))),
        ):  # functions do not see the names of a class around them
            before, self._hidden = self._hidden, self._hidden | hidden
            for part in (getattr(node, field) for field in fields):
                for each in part if isinstance(part, list) else [part]:
                    if isinstance(each, ast.AST):
                        self.visit(each)
            self._hidden = before

    def _list_locals(self, scope: ast.AST) -> Iterator[str]:
        waiting, declared = [*ast.iter_child_nodes(scope)], set[str]()
        found: list[str] = []
        while waiting:
            node = waiting.pop()
            found += [] if node in self._aliases else _bound_by(node)
            if isinstance(node, ast.Global | ast.Nonlocal):
                declared |= set(node.names)
            declared |= {name for _, path, name in imports_of(node) if path is not None}
            if not isinstance(node, _SCOPES):
                waiting += ast.iter_child_nodes(node)
        return (name for name in found if name not in declared)

    def _find(self, node: ast.AST) -> str | None:
        """Return the name of TensorFlow's that an expression is; None if it is none."""
        if isinstance(node, ast.Attribute):
            path = self._find(node.value)
            return None if path is None else f"{path}.{node.attr}".lstrip(".")
        if not isinstance(node, ast.Name) or node.id in self._hidden:
            return None
        is_free = not (node.id in self._bound or hasattr(builtins, node.id) or node.id[:2] == "__")
        has_star = any(x is not None for x in self.stars)
        return self._known.get(node.id, f"?{node.id}" if is_free and has_star else None)

    def _use(self, path: str | None, node: Any) -> None:
        if path:
            self.uses.append((path, f"{self._label}{node.lineno}"))


def _bound_by(node: Any) -> list[str]:
    """Return the names that a node gives to something, unless it imports."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    name = node.arg if isinstance(node, ast.arg) else getattr(node, "name", None)
    return [name] if isinstance(name, str) and not isinstance(node, ast.alias) else []


def _list_packages(node: Any) -> list[str]:
    """Return the packages beside TensorFlow from which an import takes something."""
    is_own = getattr(node, "level", 0) > 0
    modules = [x.name for x in node.names] if isinstance(node, ast.Import) else [node.module]
    packages = {str(module).partition(".")[0] for module in modules if not is_own}
    return sorted(name for name in packages if name.startswith("tensorflow_"))

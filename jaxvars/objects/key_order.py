"""The order of dicts' keys, which JAX sorts and Python keeps.

Dicts in lists, tuples and dicts are meant, and defaultdicts: those that JAX sorts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax

T = TypeVar("T")

Order: TypeAlias = Any
"""`Keys` for a dict, a tuple of such for a list or tuple with dicts in it, None for the rest."""


class Keys(NamedTuple):
    """The keys of a dict in their order, each with the order of what it has."""

    items: tuple[tuple[Any, Order], ...]


def order_of(tree: Any) -> Order:
    """Return the keys of the dicts in a tree, in the order that JAX does not keep.

    >>> in_order({"a": 1, "b": 2}, order_of({"b": 0, "a": 0}))
    {'b': 2, 'a': 1}
    """
    if type(tree) in (dict, defaultdict):
        return Keys(tuple((key, order_of(child)) for key, child in tree.items()))
    parts = tuple(map(order_of, tree)) if _is_sequence(tree) else ()
    return parts if any(part is not None for part in parts) else None


def in_order(tree: Any, order: Order) -> Any:
    """Return a tree with the keys of its dicts in an order that `order_of` gave."""
    if isinstance(order, Keys):
        made = tree.copy()
        made.clear()  # a defaultdict keeps what it makes values with
        made.update((key, in_order(tree[key], child)) for key, child in order.items)
        return made
    if order is None:
        return tree
    parts = [in_order(*pair) for pair in zip(tree, order, strict=True)]
    return tree._make(parts) if hasattr(tree, "_make") else type(tree)(parts)


def ordered_like(tree: Any, made: T) -> T:
    """Return what was made of a tree with its keys in the order that the tree has them."""
    return in_order(made, order_of(tree))


def map_leaves(
    fn: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Do what `jax.tree.map` does, and keep the order that the keys have in the first tree."""
    return ordered_like(tree, jax.tree.map(fn, tree, *rest, is_leaf=is_leaf))


def is_sorted(order: Order) -> bool:
    """Return whether JAX gives the dicts back in this order."""
    if isinstance(order, Keys):
        keys = [key for key, _ in order.items]
        same = keys == [*jax.tree.map(id, dict.fromkeys(keys, 0))]
        return same and all(is_sorted(child) for _, child in order.items)
    return order is None or all(map(is_sorted, order))


def order_test(order: Order) -> Callable[[Any], bool] | None:
    """Return what tells quickly whether a tree of the same structure has this order.

    >>> is_same = order_test(order_of(({"b": 0, "a": 0}, 1)))
    >>> is_same(({"b": 2, "a": 1}, 3)), is_same(({"a": 1, "b": 2}, 3))
    (True, False)
    """
    names: dict[str, Any] = {}
    tests = _tests(order, "tree", names)
    return eval(f"lambda tree: {' and '.join(tests)}", names) if tests else None


def _tests(order: Order, tree: str, names: dict[str, Any]) -> list[str]:
    """Return conditions in Python, the outer ones first; put what they name into `names`."""
    if order is None:
        return []
    if not isinstance(order, Keys):
        parts = ((str(i), part) for i, part in enumerate(order))
        return [test for i, part in parts for test in _tests(part, f"{tree}[{i}]", names)]
    keys, tests = [], []
    for key, child in order.items:
        name = f"k{len(names)}"
        names[name] = key
        keys.append(name)
        tests += _tests(child, f"{tree}[{name}]", names)
    return [f"[*{tree}] == [{', '.join(keys)}]", *tests]


def _is_sequence(tree: Any) -> bool:
    """Return whether JAX takes a tree for a list or tuple: other classes of these are leaves."""
    return type(tree) in (list, tuple) or (isinstance(tree, tuple) and hasattr(tree, "_fields"))

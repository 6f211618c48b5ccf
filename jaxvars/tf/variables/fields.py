"""What fields of extension types hold: mappings that do not change, and what is not a tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, final

import jax


@final
class ImmutableDict(Mapping[Any, Any]):
    """A dict that does not change: what a field of the type `typing.Mapping` holds."""

    def __init__(self, items: Any = ()) -> None:
        self._items = dict(items)

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"ImmutableDict({self._items})"


@final
class Static:
    """A value that is not a tensor, beside tensors: a pytree without leaves."""

    def __init__(self, value: Any) -> None:
        self.value = value


jax.tree_util.register_pytree_node(
    Static, lambda x: ((), (type(x.value), x.value)), lambda known, _: Static(known[1])
)

"""`tf.name_scope`: what the names of new variables begin with.

Rules this file keeps:
- a name that ends with "/" is a whole scope, entered from anywhere; other names are added to the
  scopes that are open;
- one object may be entered by several threads: which scopes were open before is known to each.
"""

from __future__ import annotations

from typing import Any, final

from jaxvars.core.cells import NAMES
from jaxvars.tracing.context import Scoped

_OUTER: Scoped[tuple[tuple[str, ...], ...]] = Scoped(())
"""The scopes that were open before each of those that are."""


@final
class name_scope:  # noqa: N801 - TensorFlow's name
    """A context in which the names of new variables begin with `name/`.

    Args:
        name: the string; "" for no scope; ending with "/" for a whole scope.

    Raises:
        ValueError: when it is not a string.

    >>> from jaxvars import tf
    >>> with tf.name_scope("block") as scope:
    ...     tf.Variable(0.0, name="bias").name, scope
    ('block/bias:0', 'block/')

    Differs from TensorFlow: operations have no names.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        self._name = name

    @property
    def name(self) -> str:
        """The string it was made with."""
        return self._name

    def __enter__(self) -> str:
        outer = NAMES.value
        _OUTER.value = (*_OUTER.value, outer)
        words = tuple(filter(None, self._name.split("/")))
        is_whole = not self._name or self._name.endswith("/")
        NAMES.value = words if is_whole else (*outer, *words)
        return whole_scope()

    def __exit__(self, *error: Any) -> None:
        *outer, NAMES.value = _OUTER.value
        _OUTER.value = tuple(outer)


def whole_scope() -> str:
    """Return the scopes that are open, as one name that ends with "/"; "" for none."""
    return "".join(f"{word}/" for word in NAMES.value)

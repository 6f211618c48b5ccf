"""`tf.experimental.Optional`: a value, or none; what an iterator returns that may be at its end."""

from __future__ import annotations

from typing import Any, final

import jax

from jaxvars.core.checks import require
from jaxvars.tf.attributes import getter
from jaxvars.tf.tensors.components import Made
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.elements import PlainSpec, map_leaves, spec_of
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context

_NONE = "The given optional does not have a value."


@final
class OptionalSpec(PlainSpec):
    """The spec of an Optional.

    Args:
        value_spec: of its value.
    """

    def __init__(self, value_spec: Any) -> None:
        self._value_spec = value_spec

    def __repr__(self) -> str:
        return f"OptionalSpec({self._value_spec!r})"


@final
class Optional:
    """A value, or none; made by `Iterator.get_next_as_optional`, `from_value` and `empty`.

    >>> found = Optional.from_value(1)
    >>> bool(found.has_value()), int(found.get_value())
    (True, 1)
    """

    def __init__(self, spec: Any, values: list[Any], has: Any = None) -> None:
        self._spec, self._values = spec, values
        self._has = bool(values) if has is None else has

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """Return one without a value."""
        return Optional(element_spec, [])

    @staticmethod
    def from_value(value: Any) -> Optional:
        """Return one with a value: a tensor, or a structure of them."""
        made = map_leaves(lambda x: x if isinstance(x, Tensor) else Tensor(to_array(x)), value)
        return Optional(map_leaves(spec_of, made), [made])

    def has_value(self, name: str | None = None) -> Tensor:
        """Return whether there is a value."""
        return Tensor(to_array(self._has))

    def get_value(self, name: str | None = None) -> Any:
        """Return the value.

        Raises:
            InvalidArgumentError: when there is none; from a compiled function, when it is run.
        """
        if self._values and context.is_tracer(self._has):
            require(self._has, _NONE)
        elif self._is_empty():
            raise refused(f"{_NONE} [Op:OptionalGetValue] name: ")
        return self._values[0]

    def __tf_flatten__(self) -> tuple[Any, tuple[Any, ...]]:
        return self._spec, (self._has, self._values)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: tuple[Any, ...]) -> Optional:
        has, values = components
        return cls(metadata, values, has._array if type(has) is Tensor else has)

    def _is_empty(self) -> bool:
        return not self._values or not (context.is_tracer(self._has) or self._has)

    element_spec = getter("_spec", "The specs of the value's tensors, in its structure.")

    def __repr__(self) -> str:
        if self._is_empty():
            return f"Optional.empty({self._spec!r})"
        return f"Optional.from_value({self._values[0]!r})"


jax.tree_util.register_pytree_node(  # what a loop carries
    Optional,
    lambda optional: (optional.__tf_flatten__()[1], Made(Optional, optional._spec)),
    lambda made, parts: Optional.__tf_unflatten__(made.metadata, tuple(parts)),
)

"""`tf.experimental.Optional`: a value, or none; what an iterator returns that may be at its end."""

from __future__ import annotations

from typing import Any, final

from jaxvars.tf.attributes import getter
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.elements import PlainSpec, map_leaves, spec_of
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor


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

    def __init__(self, spec: Any, values: list[Any]) -> None:
        self._spec, self._values = spec, values

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
        return Tensor(to_array(bool(self._values)))

    def get_value(self, name: str | None = None) -> Any:
        """Return the value.

        Raises:
            InvalidArgumentError: when there is none.
        """
        if not self._values:
            raise refused("The given optional does not have a value. [Op:OptionalGetValue] name: ")
        return self._values[0]

    element_spec = getter("_spec", "The specs of the value's tensors, in its structure.")

    def __repr__(self) -> str:
        if not self._values:
            return f"Optional.empty({self._spec!r})"
        return f"Optional.from_value({self._values[0]!r})"

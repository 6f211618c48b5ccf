"""The operators of variables of Keras: they give Tensors in the user's code, arrays in Keras's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxvars.tf.keras.adapter.semantics import PLACE
from jaxvars.tf.tensors.tensor import OPERATIONS

_TWO_SIDED = "add sub mul truediv floordiv mod pow matmul and or xor".split()  # noqa: SIM905 - shorter
_ONE_SIDED = "neg abs invert".split()  # noqa: SIM905
_COMPARED = "lt le gt ge eq ne getitem".split()  # noqa: SIM905


class Boxed:
    """The operators, above those of Keras."""

    __hash__ = object.__hash__


def _operator(name: str, method: str, *, swapped: bool = False) -> Callable[..., Any]:
    def operate(self: Any, *other: Any) -> Any:
        if PLACE.is_in_keras:
            return getattr(super(Boxed, self), method)(*other)
        return OPERATIONS[name](*other, self) if swapped else OPERATIONS[name](self, *other)

    operate.__name__ = method
    return operate


for _name in (*_TWO_SIDED, *_ONE_SIDED, *_COMPARED):
    setattr(Boxed, f"__{_name}__", _operator(_name, f"__{_name}__"))
for _name in _TWO_SIDED:
    setattr(Boxed, f"__r{_name}__", _operator(_name, f"__r{_name}__", swapped=True))

"""The operators of Keras's variables: Tensors in the user's code, arrays in Keras's.

The variables are those of `interop/keras.py`.

Rules this file keeps:
- variables of `tf.keras` have them, and not those that `interop.from_keras` has adopted;
- tapes go on watching the variables of a layer whose `trainable` is set to False, as in TensorFlow:
  that is about the lists of variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxvars.interop.keras import MADE, watch
from jaxvars.tf.context.scope import init_scope
from jaxvars.tf.keras.adapter.semantics import PLACE
from jaxvars.tf.tensors.tensor import OPERATIONS

_TWO_SIDED = "add sub mul truediv floordiv mod pow matmul and or xor".split()  # noqa: SIM905 - shorter
_ONE_SIDED = "neg abs invert".split()  # noqa: SIM905
_COMPARED = "lt le gt ge eq ne getitem".split()  # noqa: SIM905


class Boxed:
    """The operators: they give Tensors in the user's code, arrays in Keras's."""

    __hash__ = object.__hash__

    @property
    def trainable(self) -> bool:
        """Whether it is in the lists of what is trained."""
        return self._trainable

    @trainable.setter
    def trainable(self, new: bool) -> None:
        self._trainable = bool(new)


BOXED = (Boxed,)


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


def _run_eagerly(fn: Callable[[], Any]) -> Any:
    with init_scope():
        return fn()


def box_variables() -> None:
    """Give the variables that Keras makes and meets when `tf.keras` calls it these operators."""
    watch()
    MADE.operators, MADE.run_eagerly = lambda: BOXED if PLACE.is_in_keras else (), _run_eagerly

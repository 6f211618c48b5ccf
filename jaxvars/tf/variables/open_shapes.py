"""Variables with unknown sizes: cells for values of several shapes.

Each of these shapes has programs of its own: a program is known by the shapes that its inputs had,
and jit checks them at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from jaxvars.core.cells import Cell, Shapes
from jaxvars.core.frame import reshaped_error
from jaxvars.core.frames import LOCAL
from jaxvars.errors import UninitializedError, string_in_program_error
from jaxvars.tensors.dtypes import is_string
from jaxvars.typing import Array, Aval


@final
@dataclass(frozen=True)
class Open(Shapes):
    """A shape with sizes that are not fixed, None; `sizes` is None for any number of them."""

    sizes: tuple[int | None, ...] | None

    def takes(self, shape: Sequence[int]) -> bool:
        """Return whether a shape is one of these."""
        if self.sizes is None:
            return True
        pairs = zip(self.sizes, shape, strict=False)
        return len(self.sizes) == len(shape) and all(a is None or a == b for a, b in pairs)

    def make_cell(self, owner: object, aval: Aval, name: str, sharding: Any) -> Cell:
        """Return the cell of a variable with such values."""
        return OpenCell(self, owner, aval, name, sharding)


@final
class OpenCell(Cell):
    """A cell whose values may have several shapes.

    Attributes:
        first: shape and dtype of the first value.
        shapes: those that the values may have.
    """

    __slots__ = ("first", "shapes")

    def __init__(self, shapes: Open, *args: Any) -> None:
        self.shapes = shapes
        super().__init__(*args)

    @property
    def declared(self) -> Sequence[int | None] | None:
        """The sizes that all values have."""
        return self.shapes.sizes

    @property
    def aval(self) -> Aval:
        """Shape and dtype of the value now; a function that is traced depends on it then."""
        return self.form(LOCAL.frame)

    @aval.setter
    def aval(self, first: Aval) -> None:
        self.first = first

    def takes(self, shape: Sequence[int]) -> bool:
        """Return whether its value may have a shape."""
        return self.shapes.takes(shape)

    def admit(self, value: Any) -> tuple[int, ...]:
        """Return the shape of a value, if it may be assigned; else that of the value now."""
        shape = np.shape(value)
        return shape if self.takes(shape) else self.aval.shape

    def form(self, frame: Any) -> Aval:
        """Return the shape and dtype of its value now in a frame; if it has none, of the first."""
        try:
            return frame.form(self)
        except UninitializedError:
            return self.first

    def keep_shape(self, change: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """Return a change of its value that raises if another thread has changed its shape."""

        def changed(old: Array) -> Array:
            new = change(old)
            if new.shape != old.shape:
                raise reshaped_error(self)
            return new

        return changed

    def check_staged(self) -> None:
        """Refuse strings."""
        if is_string(self.dtype):
            raise string_in_program_error(self)

"""The losses that are one of the functions: frozen dataclasses, equal when their options are."""

from __future__ import annotations

import dataclasses
from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar, dataclass_transform

from jaxvars.display.docstrings import complete, described
from jaxvars.losses.loss import MEAN, Loss, Reduction
from jaxvars.typing import Array, DTypeLike

_WORDS = {
    "reduction": "see `Loss`.",
    "name": "what errors call it.",
    "dtype": "of the result; see `Loss`.",
}


@dataclass_transform(frozen_default=True)
class FunctionLoss(Loss, ABC):
    """A loss that is one of the functions: a frozen dataclass of the function's options."""

    fn: ClassVar[Any]

    def __init_subclass__(cls, fn: Callable[..., Array] | None = None, **words: str) -> None:
        super().__init_subclass__()
        if fn is not None and "name" not in cls.__annotations__:
            cls.name, cls.__annotations__["name"] = fn.__name__, "str | None"
        dataclasses.dataclass(frozen=True)(cls)
        if fn is not None:
            cls.fn = staticmethod(fn)
            complete(cls, {**described(fn), **_WORDS, **words})

    def call(self, y_true: Any, y_pred: Any) -> Array:
        """Return what the function says."""
        options = {name: x for name, x in self.get_config().items() if name not in _WORDS}
        return type(self).fn(y_true, y_pred, **options)


class PlainLoss(FunctionLoss, ABC):
    """A loss that is a function without options, and has its name."""

    reduction: Reduction = MEAN
    name: str | None = None
    dtype: DTypeLike | None = None

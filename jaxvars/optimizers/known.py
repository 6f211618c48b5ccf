"""What the optimizers of this package share: their docstrings, and rules of their options."""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar

from jaxvars.display.docstrings import complete
from jaxvars.optimizers.optimizer import Optimizer
from jaxvars.optimizers.options import WORDS, Options


class KnownOptimizer(Optimizer, ABC):
    """An optimizer of this package, whose docstring is completed by what many of them take."""

    _rule: ClassVar[Callable[..., Any] | None] = None
    _arguments: ClassVar[list[str]]

    def __init_subclass__(cls, rule: Callable[..., Any] | None = None) -> None:
        super().__init_subclass__()
        complete(cls, WORDS)
        cls._rule = None if rule is None else staticmethod(rule)
        others = {"learning_rate", *Options.__annotations__, "weight_decay", "options"}
        cls._arguments = [name for name in inspect.signature(cls).parameters if name not in others]

    def _transformation(self) -> Any:
        if self._rule is None:
            raise NotImplementedError
        return self._rule(*(getattr(self, name) for name in self._arguments))

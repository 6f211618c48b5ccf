"""Gradient descent, and optimizers whose rate falls or adapts to the gradients' sizes."""

from __future__ import annotations

from typing import Any, Unpack, final

from jaxvars.optimizers import rules as _rules
from jaxvars.optimizers.known import KnownOptimizer
from jaxvars.optimizers.options import Options, Rate
from jaxvars.optimizers.transformations import by_rate, in_float32


@final
class SGD(KnownOptimizer):
    """Gradient descent, with momentum if that is not zero.

    Args:
        learning_rate: a number, which can be assigned later; a Variable; or a function of the
            number of updates so far, like an optax schedule.
        nesterov: whether the gradient is that of the place where momentum leads.

    Raises:
        ValueError: when the momentum is not between 0 and 1, or an option is out of range.

    Example:
        >>> import jaxvars as jv
        >>> w = jv.Variable(1.0)
        >>> optimizer = SGD(0.5)
        >>> optimizer.apply_gradients([(1.0, w)])
        <Variable 'sgd/iterations' int32[] trainable=False 1>
        >>> optimizer.learning_rate = 0.25
        >>> _ = optimizer.apply_gradients([(1.0, w)])
        >>> float(w)
        0.25

    Differs from optax:
        The learning rate is in the momentum, which matters when it changes.
    """

    def __init__(
        self, learning_rate: Rate = 0.01, momentum: float = 0.0, nesterov: bool = False,
        **options: Unpack[Options],
    ) -> None:  # fmt: skip
        if not 0 <= momentum <= 1:
            raise ValueError(f"The momentum is between 0 and 1, not {momentum}.")
        super().__init__(learning_rate, **options)
        self.momentum, self.nesterov = momentum, nesterov

    def _transformation(self) -> Any:
        if not self.momentum:
            return by_rate()
        return _rules.momentum_sgd(self.momentum, self.nesterov)


@final
class RMSprop(KnownOptimizer):
    """Steps of the gradient over the root of its mean square.

    Args:
        rho: how much of the mean square is kept.
        epsilon: what is added to the mean square.
        centered: whether to divide by the standard deviation instead.

    >>> import jaxvars as jv
    >>> w = jv.Variable(1.0)
    >>> _ = RMSprop(0.1, rho=0.75).apply_gradients([(2.0, w)])
    >>> round(float(w), 4)
    0.8

    Differs from optax: its `rmsprop` keeps 0.9 too, but adds 1e-8.
    """

    def __init__(
        self, learning_rate: Rate = 0.001, rho: float = 0.9, momentum: float = 0.0,
        epsilon: float = 1e-7, centered: bool = False, **options: Unpack[Options],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **options)
        self.rho, self.momentum = rho, momentum
        self.epsilon, self.centered = epsilon, centered

    def _transformation(self) -> Any:
        import optax

        scale = optax.scale_by_stddev if self.centered else optax.scale_by_rms
        parts = [scale(decay=self.rho, eps=self.epsilon), by_rate()]
        momentum = [optax.trace(self.momentum)] * bool(self.momentum)
        return in_float32(optax.chain(*parts, *momentum))

"""Adam and its relatives: a mean gradient over a measure of its size."""

from __future__ import annotations

from typing import Any, Unpack, final

from jaxvars.optimizers import rules as _rules
from jaxvars.optimizers.known import KnownOptimizer
from jaxvars.optimizers.options import Options, OptionsButDecay, Rate
from jaxvars.optimizers.transformations import by_rate, from_optax, in_float32


class _AdamLike(KnownOptimizer):
    """What Adam and AdamW share."""

    def __init__(
        self, learning_rate: Rate, beta_1: float, beta_2: float, epsilon: float, amsgrad: bool,
        **options: Unpack[Options],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2 = beta_1, beta_2
        self.epsilon, self.amsgrad = epsilon, amsgrad


@final
class Adam(_AdamLike, rule=_rules.adam):
    """Adam: steps of the mean gradient over the root of its mean square.

    Args:
        learning_rate: a number, which can be assigned later; a Variable; or a function of the
            number of updates so far, like an optax schedule.

    Example:
        >>> import jaxvars as jv
        >>> w = jv.Variable([1.0, 2.0], name="w")
        >>> optimizer = Adam(0.1)
        >>> @jv.compile
        ... def step():
        ...     return optimizer.minimize(lambda: (w * w).sum(), [w])
        >>> [round(float(step()), 3) for _ in range(3)]
        [5.0, 4.42, 3.881]
        >>> list(jv.State.of(optimizer))
        ['iterations', 'learning_rate', 'slots/w/momentum', 'slots/w/velocity']

    Differs from optax:
        Epsilon is added before the bias is corrected, as TensorFlow does, and is 1e-7.
    """

    def __init__(
        self, learning_rate: Rate = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float = 1e-7, amsgrad: bool = False, **options: Unpack[Options],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, **options)


@final
class AdamW(_AdamLike, rule=_rules.adam):
    """Adam with weight decay.

    Args:
        weight_decay: each update first shrinks the variables by this times the learning rate.

    >>> import jaxvars as jv
    >>> w = jv.Variable(1.0)
    >>> _ = AdamW(0.1, weight_decay=0.5).apply_gradients([(0.0, w)])
    >>> round(float(w), 4)
    0.95
    """

    def __init__(
        self, learning_rate: Rate = 0.001, weight_decay: float = 0.004, beta_1: float = 0.9,
        beta_2: float = 0.999, epsilon: float = 1e-7, amsgrad: bool = False,
        **options: Unpack[OptionsButDecay],
    ) -> None:  # fmt: skip
        given: Options = {**options, "weight_decay": weight_decay}
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, **given)


class _TwoMoments(KnownOptimizer):
    """What Adamax, Nadam and Lamb share."""

    def __init__(
        self, learning_rate: Rate = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float = 1e-7, **options: Unpack[Options],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon


@final
class Adamax(_TwoMoments, rule=_rules.adamax):
    """Adam with the largest recent gradient in place of the mean square.

    Args:
        beta_2: how much of the largest gradient is kept.
        epsilon: what is added to that.

    >>> import jaxvars as jv
    >>> w = jv.Variable(1.0)
    >>> _ = Adamax(0.1).apply_gradients([(2.0, w)])
    >>> round(float(w), 4)
    0.9

    Differs from optax: epsilon is added to the norm, not to the gradient.
    """


@final
class Nadam(_TwoMoments, rule=_rules.nadam):
    """Adam with Nesterov momentum.

    Args:
        beta_1: how much of the mean is kept, in the end.

    >>> import jaxvars as jv
    >>> w = jv.Variable(1.0)
    >>> _ = Nadam(0.1).apply_gradients([(2.0, w)])
    >>> float(w) < 1.0
    True

    Differs from optax: the momentum grows with the number of updates.
    """


@final
class Lamb(_TwoMoments):
    """Adam whose step for each variable has the size of the variable.

    >>> import jaxvars as jv
    >>> w = jv.Variable([3.0, 4.0])
    >>> _ = Lamb(0.1).apply_gradients([([1.0, 0.0], w)])
    >>> w.numpy().round(3)
    array([2.5, 4. ], dtype=float32)

    Differs from optax: weight decay is not part of the step whose size is adapted.
    """

    def _transformation(self) -> Any:
        import optax

        adam = optax.scale_by_adam(self.beta_1, self.beta_2, self.epsilon)
        parts = [adam, optax.scale_by_trust_ratio(), by_rate()]
        return in_float32(optax.chain(*parts))


@final
class Lion(KnownOptimizer, rule=from_optax("scale_by_lion")):
    """Steps of one size, in the direction of the sign of the mean gradient.

    Args:
        learning_rate: as for `Adam`; a tenth of Adam's is a good beginning.
        beta_1: how much the mean counts in the step.
        beta_2: how much of the mean is kept.

    >>> import jaxvars as jv
    >>> w = jv.Variable([1.0, 1.0])
    >>> _ = Lion(0.25).apply_gradients([([9.0, -0.1], w)])
    >>> w.numpy()
    array([0.75, 1.25], dtype=float32)
    """

    def __init__(
        self, learning_rate: Rate = 0.001, beta_1: float = 0.9, beta_2: float = 0.99,
        **options: Unpack[Options],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2 = beta_1, beta_2

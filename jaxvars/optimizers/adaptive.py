"""Optimizers whose rate falls or adapts to the gradients' sizes."""

from __future__ import annotations

from typing import Unpack, final

from jaxvars.optimizers import rules as _rules
from jaxvars.optimizers.known import KnownOptimizer
from jaxvars.optimizers.options import Options, Rate
from jaxvars.optimizers.transformations import from_optax


@final
class Adagrad(KnownOptimizer, rule=from_optax("scale_by_rss")):
    """Steps of the gradient over the root of the sum of its squares.

    Args:
        initial_accumulator_value: where the sum begins.
        epsilon: what is added to the sum.

    >>> import jaxvars as jv
    >>> w = jv.Variable(1.0)
    >>> _ = Adagrad(0.5, initial_accumulator_value=0.0).apply_gradients([(2.0, w)])
    >>> round(float(w), 4)
    0.5
    """

    def __init__(
        self, learning_rate: Rate = 0.001, initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7, **options: Unpack[Options],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **options)
        self.initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon


@final
class Adadelta(KnownOptimizer, rule=from_optax("scale_by_adadelta")):
    """Steps of the size of the recent ones, in the direction of the gradient.

    Args:
        learning_rate: as for `Adam`; 1.0 is that of the paper.
        rho: how much of the mean squares is kept.
        epsilon: what is added to them.

    >>> import jaxvars as jv
    >>> w = jv.Variable(1.0)
    >>> _ = Adadelta(1.0).apply_gradients([(2.0, w)])
    >>> float(w) < 1.0
    True
    """

    def __init__(
        self, learning_rate: Rate = 0.001, rho: float = 0.95, epsilon: float = 1e-7,
        **options: Unpack[Options],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **options)
        self.rho, self.epsilon = rho, epsilon


@final
class Ftrl(KnownOptimizer, rule=_rules.ftrl):
    """Follow The Regularized Leader, for sparse linear models.

    Args:
        learning_rate_power: how the learning rate falls; -0.5 is by the root, 0 not at all.
        initial_accumulator_value: where the sum of squared gradients begins.
        l1_regularization_strength: of what makes weights zero.
        l2_regularization_strength: of what makes weights small.
        l2_shrinkage_regularization_strength: the same, in the loss.
        beta: what is added to the root of the sum.

    Raises:
        ValueError: when the power is positive, or another number is negative.

    >>> import jaxvars as jv
    >>> w = jv.Variable(0.0)
    >>> _ = Ftrl(0.1, l1_regularization_strength=1.0).apply_gradients([(0.5, w)])
    >>> float(w)
    0.0
    """

    def __init__(
        self, learning_rate: Rate = 0.001, learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1, l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0, l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0, **options: Unpack[Options],
    ) -> None:  # fmt: skip
        l1, l2 = l1_regularization_strength, l2_regularization_strength
        shrinkage = l2_shrinkage_regularization_strength
        if learning_rate_power > 0 or min(initial_accumulator_value, l1, l2, shrinkage, beta) < 0:
            raise ValueError(
                "Ftrl takes a learning_rate_power of at most 0, and no other negative numbers."
            )
        super().__init__(learning_rate, **options)
        self.learning_rate_power = learning_rate_power
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength, self.l2_regularization_strength = l1, l2
        self.l2_shrinkage_regularization_strength, self.beta = shrinkage, beta


@final
class Adafactor(KnownOptimizer, rule=_rules.adafactor):
    """Steps relative to the variable's size, with little memory for matrices.

    Args:
        learning_rate: the largest relative step; it falls as 1 / sqrt(updates).
        beta_2_decay: how the part of the mean square that is kept grows.
        epsilon_1: what is added to squared gradients.
        epsilon_2: the least size of a variable that counts.
        clip_threshold: of the root mean square of a step.

    >>> import jaxvars as jv
    >>> optimizer, w = Adafactor(0.1), jv.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> _ = optimizer.apply_gradients([(w.value, w)])
    >>> optimizer.get_slot(w, "row").shape, optimizer.get_slot(w, "column").shape
    ((2,), (3,))

    Differs from TensorFlow: there is no `relative_step`, which has no effect on its formula.
    Differs from optax: matrices of any size are factored.
    """

    def __init__(
        self, learning_rate: Rate = 0.001, beta_2_decay: float = -0.8, epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3, clip_threshold: float = 1.0, **options: Unpack[Options],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **options)
        self.beta_2_decay, self.clip_threshold = beta_2_decay, clip_threshold
        self.epsilon_1, self.epsilon_2 = epsilon_1, epsilon_2

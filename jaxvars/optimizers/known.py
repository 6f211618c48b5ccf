"""The optimizers: gradient descent, Adam and its relatives, and any transformation of optax."""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Unpack, final

from jaxvars.display.docstrings import complete
from jaxvars.optimizers import rules as _rules
from jaxvars.optimizers.checks import Decay, Options, OptionsButDecay, Rate
from jaxvars.optimizers.optimizer import Optimizer

_WORDS = {
    "learning_rate": "see `Optimizer`.",
    "beta_1": "how much of the mean is kept.",
    "beta_2": "how much of the mean square is kept.",
    "epsilon": "what is added to the root.",
    "amsgrad": "whether to divide by the largest mean square so far.",
    "momentum": "the part of the last step that is made again.",
    "options": "see `Optimizer`.",
}
_MEAN, _STEP = "the mean gradient", "the last step"


class KnownOptimizer(Optimizer, ABC):
    """An optimizer with a rule of its options; its docstring is completed by what many take."""

    _rule: ClassVar[Callable[..., Any]]
    _arguments: ClassVar[list[str]]
    _momentum: ClassVar[str] = ""  # what the slot of this name is

    def __init_subclass__(cls, rule: Callable[..., Any] | None = None) -> None:
        super().__init_subclass__()
        if rule is None:
            return
        complete(cls, _WORDS)
        cls._rule = staticmethod(rule)
        others = {"learning_rate", *Options.__annotations__, "options"}
        cls._arguments = [name for name in inspect.signature(cls).parameters if name not in others]

    def _transformation(self) -> Any:
        return type(self)._rule(*(getattr(self, name) for name in self._arguments))

    def _describe_slots(self) -> Mapping[str, str]:
        is_kept = self._momentum and getattr(self, "momentum", True)
        return {"momentum": self._momentum} if is_kept else {}


class _TwoMoments(KnownOptimizer, ABC):
    def __init__(
        self, learning_rate: Rate = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float = 1e-7, **options: Unpack[Options],
    ) -> None:  # fmt: skip
        __tracebackhide__ = True
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon


@final
class Adam(_TwoMoments, rule=_rules.adam):
    """Adam: steps of the mean gradient over the root of its mean square.

    Source: Kingma and Ba, Adam: A method for stochastic optimization, 2015
    (https://arxiv.org/abs/1412.6980); `amsgrad`: Reddi, Kale and Kumar, On the convergence of Adam
    and beyond, 2018.

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

    _momentum = _MEAN

    def __init__(
        self, learning_rate: Rate = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float = 1e-7, amsgrad: bool = False, **options: Unpack[Options],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **options)
        self.amsgrad = amsgrad


@final
class AdamW(_TwoMoments, rule=_rules.adam):
    """Adam with weight decay.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization, 2019
    (https://arxiv.org/abs/1711.05101).

    Args:
        weight_decay: each update first shrinks the variables by this times the learning rate.

    >>> import jaxvars as jv
    >>> w = jv.Variable(1.0)
    >>> _ = AdamW(0.1, weight_decay=0.5).apply_gradients([(0.0, w)])
    >>> round(float(w), 4)
    0.95
    """

    _momentum = _MEAN

    def __init__(
        self, learning_rate: Rate = 0.001, weight_decay: Decay = 0.004, beta_1: float = 0.9,
        beta_2: float = 0.999, epsilon: float = 1e-7, amsgrad: bool = False,
        **options: Unpack[OptionsButDecay],
    ) -> None:  # fmt: skip
        given: Options = {**options, "weight_decay": weight_decay}
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **given)
        self.amsgrad = amsgrad


@final
class Adamax(_TwoMoments, rule=_rules.adamax):
    """Adam with the largest recent gradient in place of the mean square.

    Source: Kingma and Ba, section 7.1 of the paper of `Adam`, 2015.

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

    _momentum = _MEAN


@final
class Nadam(_TwoMoments, rule=_rules.nadam):
    """Adam with Nesterov momentum.

    Source: Dozat, Incorporating Nesterov momentum into Adam, 2016.

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
class Lamb(_TwoMoments, rule=_rules.lamb):
    """Adam whose step for each variable has the size of the variable.

    Source: You et al., Large batch optimization for deep learning: Training BERT in 76 minutes,
    2020 (https://arxiv.org/abs/1904.00962).

    >>> import jaxvars as jv
    >>> w = jv.Variable([3.0, 4.0])
    >>> _ = Lamb(0.1).apply_gradients([([1.0, 0.0], w)])
    >>> w.numpy().round(3)
    array([2.5, 4. ], dtype=float32)

    Differs from optax: weight decay is not part of the step whose size is adapted.
    """


@final
class Lion(KnownOptimizer, rule=_rules.from_optax("scale_by_lion")):
    """Steps of one size, in the direction of the sign of the mean gradient.

    Source: Chen et al., Symbolic discovery of optimization algorithms, 2023
    (https://arxiv.org/abs/2302.06675).

    Args:
        learning_rate: see `Optimizer`; a tenth of Adam's is a good beginning.
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


@final
class SGD(KnownOptimizer, rule=_rules.sgd):
    """Gradient descent, with momentum if that is not zero.

    Source: Robbins and Monro, A stochastic approximation method, 1951; momentum: Polyak, Some
    methods of speeding up the convergence of iteration methods, 1964; `nesterov`: Sutskever et al.,
    On the importance of initialization and momentum in deep learning, 2013.

    Args:
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

    _momentum = _STEP

    def __init__(
        self, learning_rate: Rate = 0.01, momentum: float = 0.0, nesterov: bool = False,
        **options: Unpack[Options],
    ) -> None:  # fmt: skip
        if not 0 <= momentum <= 1:
            raise ValueError(f"The momentum is between 0 and 1, not {momentum}.")
        super().__init__(learning_rate, **options)
        self.momentum, self.nesterov = momentum, nesterov


@final
class RMSprop(KnownOptimizer, rule=_rules.rmsprop):
    """Steps of the gradient over the root of its mean square.

    Source: Tieleman and Hinton, Neural Networks for Machine Learning, lecture 6.5, 2012;
    `centered`: Graves, Generating sequences with recurrent neural networks, 2013
    (https://arxiv.org/abs/1308.0850).

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


@final
class Adagrad(KnownOptimizer, rule=_rules.from_optax("scale_by_rss")):
    """Steps of the gradient over the root of the sum of its squares.

    Source: Duchi, Hazan and Singer, Adaptive subgradient methods for online learning and stochastic
    optimization, 2011.

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
class Adadelta(KnownOptimizer, rule=_rules.from_optax("scale_by_adadelta")):
    """Steps of the size of the recent ones, in the direction of the gradient.

    Source: Zeiler, ADADELTA: An adaptive learning rate method, 2012
    (https://arxiv.org/abs/1212.5701).

    Args:
        learning_rate: see `Optimizer`; 1.0 is that of the paper.
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

    Source: McMahan et al., Ad click prediction: a view from the trenches, 2013.

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

    Source: Shazeer and Stern, Adafactor: Adaptive learning rates with sublinear memory cost, 2018
    (https://arxiv.org/abs/1804.04235).

    Args:
        learning_rate: the largest relative step; each takes at most 1 / sqrt(updates).
        beta_2_decay: how the part of the mean square that is kept grows.
        epsilon_1: what is added to squared gradients.
        epsilon_2: the least size of a variable that counts.
        clip_threshold: of the root mean square of a step.

    >>> import jaxvars as jv
    >>> optimizer, w = Adafactor(0.1), jv.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> _ = optimizer.apply_gradients([(w.value, w)])
    >>> optimizer.get_slot(w, "row").shape, optimizer.get_slot(w, "column").shape
    ((2,), (3,))

    Differs from TensorFlow: without `relative_step`, which has no effect on its formula.
    Differs from optax: matrices of any size are factored.
    """

    def __init__(
        self, learning_rate: Rate = 0.001, beta_2_decay: float = -0.8, epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3, clip_threshold: float = 1.0, **options: Unpack[Options],
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **options)
        self.beta_2_decay, self.clip_threshold = beta_2_decay, clip_threshold
        self.epsilon_1, self.epsilon_2 = epsilon_1, epsilon_2


@final
class Optax(Optimizer):
    """An optimizer around any optax transformation.

    The variables are given to it as a dict by name, so that masks and labels go by name; by path
    after `build(model)`, as in `mask=lambda params: {p: p.endswith("kernel") for p in params}`.
    `minimize` gives it the loss as `value` and `value_fn`, but not where gradients accumulate.

    Args:
        transformation: an `optax.GradientTransformation`.
        learning_rate: None where the transformation has its own, as `optax.adam(1e-3)`. Else its
            updates are multiplied by minus this: a number, a Variable, or a function of the step.
        **options: see `Optimizer`.

    Raises:
        TypeError: when it is not a transformation.
        ValueError: when there is weight decay but no learning rate.

    Example:
        >>> import optax
        >>> import jaxvars as jv
        >>> w = jv.Variable([1.0, 2.0], name="w")
        >>> optimizer = Optax(optax.chain(optax.clip(0.5), optax.sgd(1.0, momentum=0.9)))
        >>> optimizer.apply_gradients([([0.25, 9.0], w)])
        <Variable 'optax/iterations' int32[] trainable=False 1>
        >>> w.numpy()
        array([0.75, 1.5 ], dtype=float32)

    Differs from optax:
        The state is made of Variables, and is found by walking: `slots`, `shared`. Transformations
        are closures, which pickle refuses; save `jv.State.of(optimizer)` instead.
    """

    _takes_loss = True

    def __init__(
        self, transformation: Any, learning_rate: Rate | None = None, **options: Unpack[Options]
    ) -> None:
        if not (hasattr(transformation, "init") and hasattr(transformation, "update")):
            raise TypeError(
                f"Optax takes a transformation like optax.adam(1e-3), not {transformation!r}."
            )
        if learning_rate is None and options.get("weight_decay") is not None:
            raise ValueError(
                "weight_decay is times the learning rate, which is in the transformation: use "
                "optax.add_decayed_weights, or Optax(transformation, learning_rate, ...)."
            )
        super().__init__(learning_rate, **options)
        self.transformation = transformation

    def _transformation(self) -> Any:
        given = _rules.in_own_dtype(self.transformation)
        return given if self._rate is None else _rules.chain(given, _rules.by_rate())

"""Optimizers: Modules that update variables by gradients.

    optimizer = jv.optimizers.Adam(1e-3)

    @jv.compile
    def step(x, y):
        with jv.GradientTape() as tape:
            loss = loss_of(model(x), y)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

The classes have the names, arguments and formulas of TensorFlow's Keras; `Optax` takes any optax
transformation. Two of them go into one step, as for a generator and a discriminator:

    @jv.compile
    def step(real, noise):
        with jv.GradientTape(persistent=True) as tape:
            fake = generator(noise)
            real_score, fake_score = discriminator(real), discriminator(fake)
            to_judge = (jax.nn.softplus(-real_score) + jax.nn.softplus(fake_score)).mean()
            to_fool = jax.nn.softplus(-fake_score).mean()
        for loss, model, optimizer in (
            (to_judge, discriminator, d_optimizer), (to_fool, generator, g_optimizer),
        ):
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return to_judge, to_fool

optax is imported when the first optimizer updates, not with this file.

Options that all optimizers take, besides their own arguments:

- `weight_decay`: each update first shrinks the variables by this part times the learning rate;
- `clipnorm`, `clipvalue`, `global_clipnorm`: clip each gradient's norm, its elements, or the norm
  of all of them, one of the three;
- `use_ema`, `ema_momentum`, `ema_overwrite_frequency`: keep a moving average of each variable
  (`averaged`, `swap_averages`), which every so many updates becomes its value;
- `loss_scale_factor`: gradients are divided by it; `scale_loss` multiplies;
- `gradient_accumulation_steps`: update on every n-th call, by the mean of n gradients; give the
  same variables each time;
- `name`.

They and the other arguments, but for the learning rate, are read when a variable is first met.
"""

from __future__ import annotations

from typing import Any, Unpack, final

from jaxvars.optimizers import rules as _rules
from jaxvars.optimizers.adam import Adam as Adam
from jaxvars.optimizers.adam import Adamax as Adamax
from jaxvars.optimizers.adam import AdamW as AdamW
from jaxvars.optimizers.adam import Lamb as Lamb
from jaxvars.optimizers.adam import Lion as Lion
from jaxvars.optimizers.adam import Nadam as Nadam
from jaxvars.optimizers.loss_scale import LossScaleOptimizer as LossScaleOptimizer
from jaxvars.optimizers.optimizer import Optimizer as Optimizer
from jaxvars.optimizers.options import Options as Options
from jaxvars.optimizers.options import Rate as Rate
from jaxvars.optimizers.sgd import SGD as SGD
from jaxvars.optimizers.sgd import Adadelta as Adadelta
from jaxvars.optimizers.sgd import Adafactor as Adafactor
from jaxvars.optimizers.sgd import Adagrad as Adagrad
from jaxvars.optimizers.sgd import Ftrl as Ftrl
from jaxvars.optimizers.sgd import RMSprop as RMSprop


@final
class Optax(Optimizer):
    """An optimizer around any optax transformation.

    The variables are given to it as a dict by name, so that masks and labels go by name; by path
    after `build(model)`, as in `mask=lambda params: {p: p.endswith("kernel") for p in params}`.

    Args:
        transformation: an `optax.GradientTransformation`.
        learning_rate: None where the transformation has its own, as `optax.adam(1e-3)`. Else its
            updates are multiplied by minus this: a number, a Variable, or a function of the step.
        **options: see `jaxvars.optimizers`.

    Raises:
        TypeError: when it is no transformation.
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

    def __init__(
        self, transformation: Any, learning_rate: Rate = None, **options: Unpack[Options]
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
        if self._rate is None:
            return given
        import optax

        return optax.chain(given, _rules.by_rate())

"""`Optax`: an optimizer around any optax transformation."""

from __future__ import annotations

from typing import Any, Unpack, final

from jaxvars.optimizers.optimizer import Optimizer
from jaxvars.optimizers.options import Options, Rate
from jaxvars.optimizers.transformations import by_rate, in_own_dtype


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
        given = in_own_dtype(self.transformation)
        if self._rate is None:
            return given
        import optax

        return optax.chain(given, by_rate())

"""`LossScaleOptimizer`: another optimizer, for gradients in float16.

Gradients of float16 that are too small become zero. Times a large loss they do not; and when it
was too large, so that a gradient is infinite or no number, the step is not made and the scale is
halved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, final

import jax.numpy as jnp

from jaxvars.core.cells import Cell
from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable, make_variable
from jaxvars.modules.module import Module
from jaxvars.optimizers.checks import Pairs, checked_pairs
from jaxvars.optimizers.optimizer import Optimizer
from jaxvars.optimizers.rules import wide
from jaxvars.typing import Array


@final
class LossScaleOptimizer(Optimizer):
    """An optimizer that scales the loss, and skips steps whose gradients are not finite.

    Source: Micikevicius et al., Mixed precision training, 2018 (https://arxiv.org/abs/1710.03740).

    `minimize` scales by itself; with a tape, take the gradient of `scale_loss(loss)`. Options, like
    `clipnorm`, are those of the inner optimizer.

    Args:
        inner_optimizer: the optimizer that updates.
        initial_scale: what the loss is multiplied by at first.
        dynamic_growth_steps: after so many finite steps the scale is doubled.
        name: what it is called.

    Attributes:
        dynamic_scale: the Variable that the loss is multiplied by, float32.
        step_counter: the Variable that counts the steps since the scale has changed, int32.

    Raises:
        TypeError: when it is given no optimizer.
        ValueError: when `dynamic_growth_steps` is below 1, or the inner optimizer has a
            `loss_scale_factor`.

    Example:
        >>> import jaxvars as jv
        >>> w = jv.Variable(1.0)
        >>> optimizer = LossScaleOptimizer(jv.optimizers.SGD(0.5), initial_scale=4.0)
        >>> optimizer.apply_gradients([(float("inf"), w)])
        <Variable 'sgd/iterations' int32[] trainable=False 0>
        >>> float(w), float(optimizer.dynamic_scale)
        (1.0, 2.0)
        >>> float(optimizer.minimize(lambda: w * w, [w])), float(w)
        (1.0, 0.0)
    """

    def __init__(
        self, inner_optimizer: Optimizer, initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000, *, name: str | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(inner_optimizer, Optimizer):
            raise TypeError(
                f"LossScaleOptimizer is put around another optimizer, not {inner_optimizer!r}."
            )
        if dynamic_growth_steps < 1:
            raise ValueError(f"dynamic_growth_steps is at least 1, not {dynamic_growth_steps}.")
        _check_unscaled(inner_optimizer)
        Module.__init__(self, name)
        self.inner_optimizer = inner_optimizer
        self.dynamic_growth_steps = dynamic_growth_steps
        scale = jnp.asarray(initial_scale, jnp.float32)
        self.dynamic_scale = make_variable(scale, f"{self.name}/dynamic_scale", False, None)
        self.step_counter = self._make_counter("step_counter")

    def __getattr__(self, name: str) -> Any:
        """Return what the inner optimizer has: an option, or `slots` and `shared`."""
        if self._is_inner(name):
            return getattr(self.inner_optimizer, name)
        return object.__getattribute__(self, name)  # it raises, with advice

    def __setattr__(self, name: str, value: Any, /) -> None:
        if self._is_inner(name):
            setattr(self.inner_optimizer, name, value)
        else:
            super().__setattr__(name, value)
            if name == "inner_optimizer":  # under the names that walking shows
                vars(self).update(iterations=value.iterations, learning_rate=value._rate)

    def _is_inner(self, name: str) -> bool:
        mine = vars(self)
        theirs = vars(mine["inner_optimizer"]) if "inner_optimizer" in mine else {}
        return name[0] != "_" and name in theirs.keys() - mine.keys()

    def _list_options(self) -> frozenset[str]:
        return super()._list_options() | self.inner_optimizer._list_options()

    def _has_begun(self) -> bool:
        return "inner_optimizer" in vars(self) and self.inner_optimizer._has_begun()

    def _list_slots(self) -> Iterator[tuple[Variable, dict[str, Variable]]]:
        return self.inner_optimizer._list_slots()

    def build(self, variables: object) -> None:
        """Make the state for some variables, or those of an object, now."""
        self.inner_optimizer.build(variables)

    def get_slot(self, variable: Variable, slot_name: str) -> Variable:
        """Return a variable that the inner optimizer made."""
        return self.inner_optimizer.get_slot(variable, slot_name)

    def _averages(self) -> list[tuple[Cell, Cell]]:
        return self.inner_optimizer._averages()

    def exclude_from_weight_decay(
        self, var_list: Sequence[Variable] | None = None, var_names: Sequence[str] | None = None
    ) -> None:
        """Keep the inner optimizer's weight decay from some variables."""
        self.inner_optimizer.exclude_from_weight_decay(var_list, var_names)

    def scale_loss(self, loss: Array) -> Array:
        """Return the loss times the scale, in its own dtype."""
        loss = jnp.asarray(loss)
        return loss * self.dynamic_scale.value.astype(loss.dtype)

    def apply_gradients(self, grads_and_vars: Pairs, *more: NoReturn, **extra: Any) -> Variable:
        """Update variables if all gradients are finite; adapt the scale.

        Args:
            grads_and_vars: pairs of a gradient of the scaled loss and a variable.
            *more: nothing; variables that are a second argument are refused with advice.
            **extra: what the inner optimizer takes.

        Returns:
            `iterations`, which counts no skipped steps.
        """
        _check_unscaled(self.inner_optimizer)
        pairs = checked_pairs(grads_and_vars, *more)
        with LOCAL.frame.alone():
            scale, count = self.dynamic_scale.value, self.step_counter.value
            unscaled = [(g.astype(wide(v)) / scale, v) for g, v in pairs]
            finite = jnp.stack([jnp.isfinite(g).all() for g, _ in unscaled]).all()
            grown = finite & (count + 1 >= self.dynamic_growth_steps)
            factor = jnp.where(finite, jnp.where(grown, 2.0, 1.0), 0.5)
            changed = scale * factor.astype(scale.dtype)
            # beyond float32 or below 1 it would be of no use any more
            bounded = jnp.isfinite(changed) & ((changed >= 1) | (factor >= 1))
            scale = jnp.where(bounded, changed, scale)
            count = jnp.where(finite & ~grown, count + 1, 0)
            also = [(self.dynamic_scale._cell, scale), (self.step_counter._cell, count)]
            self.inner_optimizer._apply(unscaled, extra, finite, also)
        return self.iterations

    def _list_extra(self, value: Any, loss: Any) -> dict[str, Any]:
        return self.inner_optimizer._list_extra(value, loss)

    def _transformation(self) -> Any:
        return self.inner_optimizer._transformation()


def _check_unscaled(optimizer: Optimizer) -> None:
    if optimizer.loss_scale_factor is not None:
        raise ValueError(
            "LossScaleOptimizer is put around an optimizer that has no loss_scale_factor itself: "
            f"gradients would be divided by {optimizer.loss_scale_factor}, too."
        )

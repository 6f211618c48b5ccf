"""`Optimizer`: an optax transformation whose state is variables (`optimizers/keeper.py`).

Rules this file keeps:
- a step is one pure function, of the values of all the variables it touches to their new ones
  (`optimizers/step.py`): it is compiled where gradients are applied eagerly, and all is
  written at once.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import jax.numpy as jnp

from jaxvars.autodiff.tape import GradientTape
from jaxvars.control.overlay import statement
from jaxvars.core.frames import LOCAL
from jaxvars.core.store import Cell
from jaxvars.core.variable import Variable
from jaxvars.errors import DtypeError, StateError, called
from jaxvars.modules.module import WAITING
from jaxvars.objects.traversal import Holder
from jaxvars.optimizers.averaged import WHAT, show_averages
from jaxvars.optimizers.checks import (
    Decay,
    Pairs,
    check_options,
    checked_loss,
    checked_pairs,
    checked_variables,
    is_list,
    list_options,
    refuse_late_option,
    refuse_options,
    refuse_unknown,
    same_shapes,
    trainable_in,
    warn_missing,
)
from jaxvars.optimizers.keeper import Keeper
from jaxvars.optimizers.objective import Objective
from jaxvars.optimizers.step import AVERAGE, exchange, run_step
from jaxvars.tracing import context
from jaxvars.typing import Array


class Optimizer(Keeper, ABC):
    """The base of the optimizers, and what all of them take.

    All but the learning rate is read when a variable is first met, and cannot be set after that.
    Copied with `copy.deepcopy` together with its model, an optimizer is one for the copied
    variables; copied alone, for the same ones. Pickle both together, like (model, optimizer).

    Args:
        learning_rate: a number, which can be assigned later; a Variable; or a function of the
            number of updates so far, like an optax schedule. Or a dict of these by pattern, like
            {"head/**": 1e-2, "**": 1e-4}: the first that fits a variable's path holds (see
            `jv.select`), and `build(model)` comes before the first update.
        weight_decay: each update first shrinks the variables by this times the learning rate; a
            number, or a dict of numbers by pattern.
        clipnorm: the largest norm of a gradient.
        clipvalue: the largest element of a gradient.
        global_clipnorm: the largest norm of all gradients together; one of the three.
        use_ema: whether to keep a moving average of each variable, in float32 at least, that
            begins with what the variable is when it is first updated: `averaged`, `swap_averages`.
        ema_momentum: how much of the average is kept.
        ema_overwrite_frequency: after so many updates the average becomes the variable's value.
        loss_scale_factor: what gradients are divided by; `scale_loss` multiplies.
        gradient_accumulation_steps: update on every n-th call, by the mean of n gradients; give the
            same variables each time. One that takes no part in some calls, as it is frozen, has
            zeros there; with none in the last call it is not updated.
        name: what it is called; that of the class when None.
        **others: nothing; what other libraries call options is refused with advice.

    Raises:
        ValueError: when an option is out of range, or two of the three clip.
        TypeError: for an option that does not exist.

    Attributes:
        iterations: the Variable that counts the updates, int32.
        slots: the variables made for each variable, by its name and theirs.
        shared: the state that belongs to no single variable, by name.
    """

    _takes_any_name = True
    _takes_loss = False

    def __init__(
        self, learning_rate: Any, *, weight_decay: Decay = None,
        clipnorm: float | None = None, clipvalue: float | None = None,
        global_clipnorm: float | None = None, use_ema: bool = False, ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None, loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None, name: str | None = None, **others: Any,
    ) -> None:  # fmt: skip
        __tracebackhide__ = True
        refuse_options(type(self), others)
        super().__init__(name)
        rules = dict(weight_decay) if isinstance(weight_decay, Mapping) else weight_decay
        self.weight_decay, self.loss_scale_factor = rules, loss_scale_factor
        self.clipnorm, self.clipvalue = clipnorm, clipvalue
        self.global_clipnorm = global_clipnorm
        self.use_ema, self.ema_momentum = use_ema, ema_momentum
        self.ema_overwrite_frequency = ema_overwrite_frequency
        self.gradient_accumulation_steps = gradient_accumulation_steps
        check_options(vars(self))
        self._start(learning_rate)

    if not TYPE_CHECKING:  # a checker would take any name to set

        def __setattr__(self, name: str, value: Any, /) -> None:
            is_made = "_ties" in vars(self)
            if is_made and type(self).__module__.startswith("jaxvars.") and not hasattr(self, name):
                refuse_unknown(self, name)
            if name in list_options(type(self)):
                if self._has_begun():
                    refuse_late_option(type(self).__name__, name, value, getattr(self, name, None))
                if is_made:
                    check_options({**vars(self), name: value})
            super().__setattr__(name, value)

    def _list_options(self) -> frozenset[str]:
        """Return the names of what is set before the first update, also by an inner one."""
        return list_options(type(self))

    # ------------------------------------------------------------ updating
    @context.restoring()
    def apply_gradients(self, grads_and_vars: Pairs, *more: NoReturn, **extra: Any) -> Variable:
        """Update variables by their gradients, all of them or none.

        Assigns the variables, their slots and `iterations`. Variables that are not given, or
        whose gradient is None, keep their values and slots.

        Args:
            grads_and_vars: pairs, like `zip(gradients, variables)`; a gradient has the shape
                of its variable, and any floating dtype. For a complex variable it is, as for
                optax, the conjugate of what JAX and a tape call the gradient.
            *more: nothing; variables that are a second argument are refused with advice.
            **extra: what the optax transformation takes, like `value`.

        Returns:
            `iterations`.

        Raises:
            ValueError: when there are no pairs, no gradients, or a variable comes twice.
            TypeError: when what should be a variable is none.
            ShapeError: when a gradient does not have the shape of its variable.
            DtypeError: when a variable is not of a floating dtype.
            StateError: when the optimizer was unpickled without the variables that it is for.
            CreationError: in a compiled function, for a variable it meets for the first time on
                another than its first call; `build` before that.
        """
        return self._apply(checked_pairs(grads_and_vars, *more), extra, None)

    @context.restoring()
    def minimize(
        self, loss: Any, var_list: Sequence[Variable] | Holder, tape: GradientTape | None = None
    ) -> Array:
        """Update variables so that a loss becomes smaller.

        Args:
            loss: a function of no arguments that computes it, or the loss and its `tape`.
            var_list: the variables, or a model: those that can be trained.
            tape: what has recorded the loss.

        Returns:
            The loss, as it was before the update.

        Raises:
            TypeError: when the loss is not a function, and no tape is given.

        >>> import jaxvars as jv
        >>> w = jv.Variable(3.0)
        >>> optimizer = jv.optimizers.SGD(0.5)
        >>> float(optimizer.minimize(lambda: (w - 1) ** 2, [w])), float(w)
        (4.0, 1.0)

        Differs from TensorFlow: returns the loss.
        """
        found = var_list if is_list(var_list) else trainable_in(var_list).values()
        variables = checked_variables(found)
        if tape is None:
            if not callable(loss):
                raise TypeError(
                    "minimize takes a function that computes the loss, "
                    "`minimize(lambda: ..., variables)`, or the loss and the tape that saw it."
                )
            with GradientTape() as tape:
                value = checked_loss(loss())
                scaled = self.scale_loss(value)
        else:
            with tape:
                value, scaled = loss, self.scale_loss(loss)
        gradients = tape.gradient(scaled, variables)
        pairs = list(zip(map(_conjugate, gradients), variables, strict=True))
        missing = [v for gradient, v in pairs if gradient is None]
        if 0 < len(missing) < len(pairs):
            warn_missing(missing, f"Of the first: {tape.explain(scaled, missing[0])}")
            pairs = [pair for pair in pairs if pair[0] is not None]
        self.apply_gradients(pairs, **self._list_extra(value, loss))
        return value

    def _list_extra(self, value: Any, loss: Any) -> dict[str, Any]:
        """Return what `minimize` knows of the loss, if the transformation may take it."""
        if not self._takes_loss or self.gradient_accumulation_steps:  # it is one of several then
            return {}
        objective = {"value_fn": Objective(loss)} if callable(loss) else {}
        return {"value": jnp.asarray(value), **objective}

    def scale_loss(self, loss: Array) -> Array:
        """Return the loss times what the gradients will be divided by."""
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    @context.restoring()
    def _apply(
        self, pairs: list[tuple[Any, Variable]], extra: Any, accept: Any,
        also: Sequence[tuple[Cell, Array]] = (),
    ) -> Variable:  # fmt: skip
        """Update, if `accept` is None or holds, and write other cells `also` in any case."""
        names, recipe = self._prepare([variable for _, variable in pairs])
        grads = {name: grad for name, (grad, _) in zip(names, pairs, strict=True)}
        cells = self._list_cells(names, [variable for _, variable in pairs], recipe)
        for objective in (x for x in extra.values() if isinstance(x, Objective)):
            objective.cells = cells["params"]
        frame = LOCAL.frame
        leaves, form = jax.tree.flatten(cells)
        given = (grads, self._read_rate(names), accept, extra)
        with frame.alone():
            carry = form.unflatten(frame.read_all(leaves))
            new = jax.tree.leaves(same_shapes(leaves, lambda: run_step(recipe, carry, *given)))
            leaves, new = [*leaves, *(c for c, _ in also)], [*new, *(x for _, x in also)]
            frame.write_all(leaves, new, jax.tree.leaves((carry, given)))
        return self.iterations

    # ------------------------------------------------------------ averages
    def finalize_variable_values(self, var_list: Sequence[Variable]) -> None:
        """Make the averages of variables their values.

        Args:
            var_list: variables that have been updated, with `use_ema=True`.

        Raises:
            StateError: when one has no average.
        """
        variables = checked_variables(var_list)
        averages = [self.get_slot(v, AVERAGE).value for v in variables]
        values = [exchange(v.value, x)[0] for v, x in zip(variables, averages, strict=True)]
        LOCAL.frame.write_all([v._cell for v in variables], values)

    def swap_averages(self) -> None:
        """Exchange the values of all known variables with their averages.

        Raises:
            ValueError: when the optimizer was made without `use_ema=True`.
            DtypeError: when a variable is narrower than its average, which it would round.
            StateError: when averages that were restored wait: call `build(model)` before.
        """
        pairs = self._averages()
        for cell, average in pairs:
            if average.dtype != cell.dtype:
                raise DtypeError(
                    f"Variable {called(cell)!r} is {cell.dtype}, and its average {average.dtype}: "
                    "exchanged, it would be rounded for good. Evaluate in "
                    "`with optimizer.averaged():`; at the end of training call "
                    "optimizer.finalize_variable_values(variables)."
                )
        frame, cells = LOCAL.frame, [cell for pair in pairs for cell in pair]
        with frame.alone():
            values = frame.read_all(cells)
            both = zip(values[::2], values[1::2], strict=True)
            frame.write_all(cells, [x for pair in both for x in exchange(*pair)], ())

    def _averages(self) -> list[tuple[Cell, Cell]]:
        """Return the cells of the variables that there are, each with that of its average."""
        if not self.use_ema:
            raise ValueError(
                f"Optimizer {self.name!r} keeps no averages: make it with use_ema=True."
            )
        known = [(v, slots.get(AVERAGE)) for v, slots in self._list_slots()]
        pairs = [(v._cell, average._cell) for v, average in known if average is not None]
        met = {cell.key for cell, _ in pairs}
        held = vars(self).get(WAITING, ())
        owners = [each for waiting in held for each in waiting.list_owners(AVERAGE)]
        if left := [
            called(vs[0]._cell) for vs in owners if vs and met.isdisjoint(v._cell.key for v in vs)
        ]:
            raise StateError(
                f"Averages of {left} have been restored, and wait until optimizer {self.name!r} "
                "updates these variables: their values would stand for them. Call "
                "optimizer.build(model) before, while they can be trained."
            )
        return pairs

    def averaged(self) -> AbstractContextManager[None]:
        """Show the averages as the values of the variables in a `with` block.

        They are those of the beginning of the block, for the code in it. Nothing is assigned:
        other threads go on with the variables. A variable that is shown as its average cannot be
        assigned in the block. Compiled functions run there as under a tape.

        Raises:
            ValueError: when the optimizer was made without `use_ema=True`.
            StateError: when averages that were restored wait: call `build(model)` before. And in
                the block, when a variable is assigned that has an average.
            ContextError: (at the end) in another thread, or where another block is still open in
                it. And at once, for the code of another coroutine.

        >>> import jaxvars as jv
        >>> w = jv.Variable(0.0)
        >>> optimizer = jv.optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
        >>> for _ in range(2):
        ...     _ = optimizer.apply_gradients([(-1.0, w)])
        >>> with optimizer.averaged():
        ...     float(w)
        1.5
        >>> float(w)
        2.0
        """
        return statement(WHAT, show_averages(self._averages()))


def _conjugate(gradient: Array) -> Array:
    """Return the direction in which a real loss grows, of what a tape calls its gradient."""
    is_complex = jnp.issubdtype(getattr(gradient, "dtype", bool), jnp.complexfloating)
    return jnp.conj(gradient) if is_complex else gradient

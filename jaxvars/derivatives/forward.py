"""`ForwardAccumulator`: derivatives along a tangent, by `jax.jvp`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Self, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.autodiff.recording import Record
from jaxvars.autodiff.reverse import make_zeros
from jaxvars.autodiff.tape import UnconnectedGradients
from jaxvars.autodiff.tape_base import TapeBase, flatten
from jaxvars.core.frames import LOCAL
from jaxvars.derivatives.linearize import PULLS
from jaxvars.errors import TapeError
from jaxvars.objects.key_order import ordered_like
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tensors.tensor import refuse_masked
from jaxvars.tracing import context
from jaxvars.tracing.assigned_read import for_tape
from jaxvars.tracing.guards import ask
from jaxvars.tracing.jaxprs import primitives_in
from jaxvars.tracing.operations import Operation
from jaxvars.tracing.recorder import recording
from jaxvars.typing import Array, PyTree, Value


# ---------------------------------------------------------------- forward mode
@final
class ForwardAccumulator(TapeBase):
    """Record operations, and differentiate them forward: Jacobian-vector products.

    Tangents belong to the operations: the tapes see them that were open around the accumulator.

    Args:
        primals: a variable or array, or a pytree of them, to differentiate along.
        tangents: the directions, a pytree like `primals` of arrays of their shapes.

    Raises:
        TapeError: when primals and tangents do not match.

    Example:
        >>> import jaxvars as jv
        >>> w = jv.Variable([1.0, 2.0])
        >>> with ForwardAccumulator(w, jnp.asarray([1.0, 0.0])) as acc:
        ...     y = w * w
        >>> acc.jvp(y).tolist()
        [2.0, 0.0]

    Source: Griewank and Walther, Evaluating Derivatives, 2008, chapter 3 (forward mode).
    """

    def __init__(self, primals: PyTree, tangents: PyTree) -> None:
        super().__init__(watch_accessed_variables=False, reverse=False)
        self._primals = flatten(primals)[0]
        refuse_masked(given := jax.tree.leaves(tangents), "a tangent")
        self._tangents = [x.copy() if isinstance(x, np.ndarray) else x for x in given]
        if len(self._primals) != len(self._tangents):
            raise TapeError(
                f"There are {len(self._primals)} primals, but {len(self._tangents)} tangents."
            )
        for primal, tangent in zip(self._primals, self._tangents, strict=True):
            if primal.shape != jnp.shape(tangent):
                raise TapeError(
                    f"A tangent has shape {jnp.shape(tangent)}, its primal {primal.shape}."
                )
            self._watch(primal)
        self._around: list[Record] = []

    def __enter__(self) -> Self:
        around = [tape._record for tape in LOCAL.frame.observers]
        super().__enter__()
        self._around = around
        return self

    @context.restoring()
    def jvp(
        self,
        primals: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """Return the tangents of computed arrays.

        Args:
            primals: what was computed from the accumulator's primals: an array, or a pytree.
            unconnected_gradients: "none" or "zero": what there is for an array that does not
                depend on them.

        Returns:
            A pytree like `primals`.

        Raises:
            TapeError: for what is not an array.
        """
        ask("A tangent is requested")
        leaves, treedef = flatten(primals)
        targets = [self._target_value(leaf) for leaf in leaves]
        with self._let_hear():
            found = [self._push_tangent(target) for target in targets]
        if UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO:
            found = [make_zeros(x) if g is None else g for x, g in zip(leaves, found, strict=True)]
        return ordered_like(primals, jax.tree.unflatten(treedef, found))

    def _let_hear(self) -> ExitStack:
        """Return a context that the tapes around this one see, closed or not, and no others."""
        listening = ExitStack()
        if context.strip(context.current()) is self._place:
            now = [tape._record for tape in LOCAL.frame.observers]
            for record in [*now, *self._around]:
                listening.enter_context(record.pause(record not in self._around))
            for record in self._around:
                if record not in now:
                    listening.enter_context(recording(record))
        return listening

    def _push_tangent(self, target: Value | None) -> Array | None:
        pairs = {
            id(value): (value, jnp.asarray(tangent, value.dtype))
            for primal, tangent in zip(self._primals, self._tangents, strict=True)
            for value in self._values_of(primal)
        }
        values = [value for value, _ in pairs.values()]
        if not values or target is None or not is_inexact(target):
            return None
        with self._record.pause():
            program = self._record.make_program(values, [target], replay_loops=False)
            if not any(program.connected):
                return None
            run = lambda *primals: program.function(primals, program.constants)[0]  # noqa: E731 - one use
            with for_tape():
                push = _pull_twice if any(map(_is_pullback, program.operations)) else _push
                return push(run, values, [tangent for _, tangent in pairs.values()])


def _is_pullback(operation: Operation) -> bool:
    """Return whether an operation can't be differentiated forward, by JAX."""
    return PULLS in {operation.name}.union(*map(primitives_in, operation.inner))


def _push(run: Callable[..., Array], values: list[Array], tangents: list[Array]) -> Array:
    return jax.jvp(run, values, tangents)[1]


def _pull_twice(run: Callable[..., Array], values: list[Array], tangents: list[Array]) -> Array:
    """Return the tangent of a function's result, from its pullback.

    That is linear in the cotangent, so its own pullback takes tangents forward.
    """
    result, pull = jax.vjp(run, *values)
    (moved,) = jax.vjp(pull, jnp.ones_like(result))[1](tuple(tangents))
    return moved

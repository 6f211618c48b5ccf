"""A function with a custom gradient, called where operations run at once.

It sees tensors with values, as in TensorFlow, and so does its gradient function.

Rules this file keeps:
- a tape takes the result for that of one operation, on the arguments and on the variables that
  were read; what was computed inside leads nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import jax
import jax.numpy as jnp

from jaxvars.core.cells import Cell
from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tf import nest
from jaxvars.tf.autodiff.tape import conjugate
from jaxvars.tf.context.scope import executing_eagerly
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor, wrap
from jaxvars.tf.variables.variable import Variable, face_of
from jaxvars.tracing import context, recorder
from jaxvars.typing import Array


def runs_now(leaves: list[Any]) -> bool:
    """Return whether a call on some arguments runs at once, with values."""
    return executing_eagerly() and context.is_eager() and not any(map(context.is_tracer, leaves))


@final
class _Reads:
    """The trainable variables that are read, but for some, and what they held at first."""

    through_assigns = False

    def __init__(self, taken: Sequence[Variable]) -> None:
        self._taken = set(map(id, taken))
        self.values: dict[int, tuple[CoreVariable, Array]] = {}

    def knows(self, value: Array) -> bool:
        """Return whether a value must not be that of another variable."""
        return False

    def _wrote(self, *_: Any) -> None:  # pyright: ignore[reportUnusedFunction] - frames call it
        """Take no note of assigns."""

    def _saw(self, cell: Cell, value: Array) -> None:  # pyright: ignore[reportUnusedFunction] - the same
        """Take note of a read."""
        variable = cell.owner()
        if not isinstance(variable, CoreVariable) or id(face_of(variable)) in self._taken:
            return
        if variable.trainable and is_inexact(value):
            self.values.setdefault(cell.key, (variable, value))


def call_now(
    f: Callable[..., Any], args: tuple[Any, ...], given: tuple[Any, ...], kwargs: Any,
    with_variables: Callable[..., Any],
) -> Any:  # fmt: skip
    """Return the result of a function that returns `(result, grad)`; given are values of args.

    It takes the variables among its arguments as they are, and may assign them.
    """
    taken = [x for x in nest.flatten(args) if isinstance(x, Variable)]
    reads, frame = _Reads(taken), LOCAL.frame
    frame.observe(reads)
    try:
        result, grad = f(*map(_to_argument, args, given), **kwargs)
    finally:
        frame.unobserve(reads)
    arrays = [to_array(x) for x in nest.flatten(result)]
    if isinstance(context.current(), recorder.Recorder):
        pullback = _Pullback(grad, nest.flatten(given), reads, arrays, with_variables)
        arrays = pullback.attach(arrays)
    return nest.pack_sequence_as(result, list(map(Tensor, arrays)))


def _to_argument(arg: Any, given: Any) -> Any:
    pick = lambda x, value: x if isinstance(x, Variable) else wrap(value)  # noqa: E731 - one use
    return nest.map_structure(pick, arg, given, check_types=False)


@final
class _Pullback:
    """A gradient function, with what it is of: cotangents of floats to those of floats."""

    def __init__(
        self, grad: Callable[..., Any], leaves: list[Any], reads: _Reads, arrays: list[Array],
        with_variables: Callable[..., Any],
    ) -> None:  # fmt: skip
        self._grad, self._with_variables = grad, with_variables
        self._count = len(leaves)
        self._differentiable = [i for i, x in enumerate(leaves) if is_inexact(x)]
        self._faces = [face_of(variable) for variable, _ in reads.values.values()]
        values = [value for _, value in reads.values.values()]
        self._inputs = [leaves[i] for i in self._differentiable] + values
        self._floats = [i for i, x in enumerate(arrays) if is_inexact(x)]
        self._zeros = [(x.shape, x.dtype) for x in arrays]

    def attach(self, arrays: list[Array]) -> list[Array]:
        """Return the results, those of floats as results of one operation with this pullback."""
        if not self._inputs or not self._floats:
            return arrays
        made = list(arrays)
        found = _with_pullback([arrays[i] for i in self._floats], self._inputs, self._pull)
        for i, x in zip(self._floats, found, strict=True):
            made[i] = x
        return made

    def _pull(self, *upstream: Array) -> list[Array | None]:
        given = dict(zip(self._floats, upstream, strict=True))
        zeros = enumerate(self._zeros)
        whole = [given[i] if i in given else jnp.zeros(*zero) for i, zero in zeros]
        found, others = self._call_grad([Tensor(conjugate(x)) for x in whole])
        flat = nest.flatten(found)
        if len(flat) != self._count:
            raise ValueError(
                f"custom_gradient function expected to return {self._count} gradients, but "
                f"returned {len(flat)} instead."
            )
        pairs = zip([*(flat[i] for i in self._differentiable), *others], self._inputs, strict=True)
        return [None if g is None else conjugate(to_array(g)).astype(x.dtype) for g, x in pairs]

    def _call_grad(self, ups: list[Tensor]) -> tuple[Any, list[Any]]:
        if not self._faces:
            return self._grad(*ups), []
        found, others = self._with_variables(self._grad, ups, self._faces)
        return found, list(others)


def _with_pullback(
    values: Sequence[Array], inputs: Sequence[Array], pull: Callable[..., Sequence[Array | None]]
) -> list[Array]:
    """Return what has been computed as the results of one operation, whose pullback is known.

    Args:
        values: the results.
        inputs: floats that they count as computed from.
        pull: takes a cotangent for each result, returns one for each input, or None.
    """

    @jax.custom_vjp
    def rule(*_: Array) -> list[Array]:
        return list(map(context.fresh, values))

    def forward(*again: Array) -> tuple[list[Array], None]:
        return (rule(*again) if context.is_differentiated() else list(values)), None

    rule.defvjp(forward, lambda _, upstream: tuple(pull(*upstream)))
    return rule(*inputs)

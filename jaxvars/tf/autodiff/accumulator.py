"""`tf.autodiff.ForwardAccumulator`, over `jaxvars.autodiff`'s."""

from __future__ import annotations

from typing import Any, final

from jaxvars.autodiff.forward import ForwardAccumulator as CoreAccumulator
from jaxvars.errors import TapeError
from jaxvars.tf import nest
from jaxvars.tf.autodiff.tape import UnconnectedGradients, core_of
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import wrap


@final
class ForwardAccumulator:
    """Record what runs, to differentiate it forward: Jacobian-vector products.

    Args:
        primals: a tensor, variable, or structure of them, to differentiate with respect to.
        tangents: the directions, in the same structure.

    Raises:
        ValueError: when they do not match.

    >>> from jaxvars import tf
    >>> v = tf.Variable([1.0, 2.0])
    >>> with tf.autodiff.ForwardAccumulator(v, tf.constant([1.0, 0.0])) as acc:
    ...     y = v * v
    >>> acc.jvp(y).numpy().tolist()
    [2.0, 0.0]
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        nest.assert_same_structure(primals, tangents, check_types=False)
        moved = [core_of(x) for x in nest.flatten(primals)]
        given = [to_array(x) for x in nest.flatten(tangents)]
        if len(set(map(id, moved))) < len(moved):
            raise ValueError(
                "ForwardAccumulator was asked to watch one tensor multiple times. Sum its tangents "
                "first: ForwardAccumulator(x, tangent_1 + tangent_2)."
            )
        for x, tangent in zip(moved, given, strict=True):
            if x.dtype != tangent.dtype:
                raise ValueError(f"A tangent is {tangent.dtype}, its primal {x.dtype}.")
        try:
            self._core = CoreAccumulator(moved, given)
        except TapeError as error:
            raise ValueError(str(error)) from None
        self._is_open = False

    def __enter__(self) -> ForwardAccumulator:
        if self._is_open:
            raise ValueError("Accumulator is already recording.")
        self._core.__enter__()
        self._is_open = True
        return self

    def __exit__(self, *error: Any) -> None:
        if self._is_open:
            self._is_open = False
            self._core.__exit__(*error)

    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """Return the tangents of tensors; None where they do not depend on the primals.

        Args:
            primals: what was computed: a tensor, or a structure of them.
            unconnected_gradients: "none", or "zero" for zeros in place of None.
        """
        flat = [core_of(x) for x in nest.flatten(primals)]
        found = self._core.jvp(flat, unconnected_gradients=unconnected_gradients)
        return nest.pack_sequence_as(primals, [None if x is None else wrap(x) for x in found])

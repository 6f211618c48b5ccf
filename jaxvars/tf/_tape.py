"""`tf.GradientTape`, over `jaxvars.GradientTape`: Tensors and Variables in, Tensors out."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, final

from jaxvars._tape import GradientTape as CoreTape
from jaxvars._tape import UnconnectedGradients as UnconnectedGradients
from jaxvars.tf import nest
from jaxvars.tf._convert import to_array
from jaxvars.tf._tensor import Tensor, wrap
from jaxvars.tf._variable import Variable, face_of


@final
class GradientTape:
    """Record what runs, to differentiate it.

    Args:
        persistent: allow more than one gradient to be asked for.
        watch_accessed_variables: watch trainable variables as they are read.

    >>> from jaxvars import tf
    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x)
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._tape = CoreTape(
            persistent=persistent, watch_accessed_variables=watch_accessed_variables
        )

    def __enter__(self) -> GradientTape:
        self._tape.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._tape.__exit__(*error)

    def watch(self, tensor: Any) -> None:
        """Watch a tensor, a variable, or a structure of them.

        Raises:
            ValueError: when it is something else.
        """
        for leaf in nest.flatten(tensor):
            if not isinstance(leaf, Tensor | Variable):
                raise ValueError(
                    f"Passed in object {leaf!r} of type '{type(leaf).__name__}', not tf.Tensor or "
                    "tf.Variable."
                )
            self._tape.watch(_core(leaf))

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """Return the gradient of a target with respect to each source; None where there is none.

        Raises:
            RuntimeError: when the tape is not persistent and has been asked.
        """
        return self._asked(
            self._tape.gradient, target, sources, output_gradients, unconnected_gradients
        )

    def _asked(
        self, ask: Callable[..., Any], target: Any, sources: Any, output: Any, unconnected: Any
    ) -> Any:
        flat = [_core(x) for x in nest.flatten(sources)]
        targets = [_core(x) for x in nest.flatten(target)]
        given = None if output is None else [to_array(x) for x in nest.flatten(output)]
        found = ask(targets, flat, output_gradients=given, unconnected_gradients=unconnected)
        return nest.pack_sequence_as(sources, [None if g is None else wrap(g) for g in found])

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return the derivative of each element of the target by each of each source."""
        flat = [_core(x) for x in nest.flatten(sources)]
        found = self._tape.jacobian(
            _core(target), flat, unconnected_gradients=unconnected_gradients
        )
        return nest.pack_sequence_as(sources, [None if j is None else wrap(j) for j in found])

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return the derivatives of each example of the target by the same one of the source."""
        found = self._tape.batch_jacobian(
            _core(target), _core(source), unconnected_gradients=unconnected_gradients
        )
        return None if found is None else wrap(found)

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the variables that have been watched, in the order of their first use."""
        return tuple(map(face_of, self._tape.watched_variables()))

    @contextmanager
    def stop_recording(self) -> Generator[None]:
        """Record nothing inside."""
        with self._tape.stop_recording():
            yield

    def reset(self) -> None:
        """Forget what was recorded."""
        self._tape.reset()


def _core(x: Any) -> Any:
    return x.aliased if isinstance(x, Variable) else to_array(x)

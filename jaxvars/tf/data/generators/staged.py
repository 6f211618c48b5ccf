"""Datasets inside of a `tf.function`: a program that requests elements when it runs.

Rules this file keeps:
- each loop begins again each time the program runs; an iterator goes on from where it is;
- elements are made on the host, by callbacks that come in the program's order;
- XLA must know the shapes of what comes: those of the `element_spec`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import jax
import jax.experimental
import numpy as np

from jaxvars.core.checks import Raised
from jaxvars.core.frames import LOCAL, entered
from jaxvars.tf.context.scope import outside_functions
from jaxvars.tf.errors import OutOfRangeError
from jaxvars.tf.tensors.elements import Element, leaves, pack_leaves, to_host
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context
from jaxvars.typing import Array


def at_once(run: Callable[[], Any]) -> Any:
    """Return what a function returns that runs now, eagerly, whatever is traced."""
    with context.at(context.EVAL), entered(LOCAL.eager), outside_functions():
        return run()


@final
class Feed:
    """What a program requests elements from: "A dataset" or "An iterator", for messages."""

    def __init__(self, begin: Callable[[], Iterator[Element]], spec: Any, what: str) -> None:
        self._begin = begin
        self._rest: Iterator[Element] = iter(())
        self._ahead: Element = None
        self._spec = spec
        self._structs = [_struct(leaf, spec, what) for leaf in leaves(spec)]

    # ------------------------------------------------------------ while a function is traced
    def begin(self) -> None:
        """Have the program begin with the first element."""
        _call_host(self._restart, [])

    def more(self) -> Array:
        """Have the program make the next element; return whether there is one."""
        return _call_host(self._has_more, [jax.ShapeDtypeStruct((), np.bool_)])[0]

    def item(self) -> Any:
        """Return the element that was made."""
        return self._pack_tensors(_call_host(self._take_ahead, self._structs))

    def next(self) -> Any:
        """Have the program make the next element; return it."""
        return self._pack_tensors(_call_host(self._next, self._structs))

    def _pack_tensors(self, arrays: list[Array]) -> Any:
        return pack_leaves(self._spec, list(map(Tensor, arrays)))

    # ------------------------------------------------------------ when the program runs
    def _restart(self) -> list[np.ndarray]:
        self._rest = self._begin()
        return []

    def _has_more(self) -> list[np.ndarray]:
        for element in self._rest:
            self._ahead = element
            return [np.asarray(True)]
        return [np.asarray(False)]

    def _take_ahead(self) -> list[np.ndarray]:
        element, self._ahead = self._ahead, None
        return self._arrays(element)

    def _next(self) -> list[np.ndarray]:
        for element in self._begin():
            return self._arrays(element)
        raise OutOfRangeError(message="End of sequence [Op:IteratorGetNext] name: ")

    def _arrays(self, element: Element) -> list[np.ndarray]:
        arrays = [to_host(leaf) for leaf in leaves(element)]
        for array, struct in zip(arrays, self._structs, strict=True):
            if array.shape != struct.shape or array.dtype != struct.dtype:
                raise refused(
                    f"The dataset gave a tensor of shape {array.shape} and type {array.dtype}, "
                    f"where its element_spec says {struct.shape} and {struct.dtype}."
                )
        return arrays


def _struct(leaf: Any, spec: Any, what: str) -> Any:
    if not isinstance(leaf, TensorSpec) or leaf.dtype.is_string:
        raise refused(
            f"{what} of {leaf!r} cannot be gone through inside a tf.function: XLA's programs have "
            "numbers only. Put the loop outside:\n"
            "    for batch in dataset:\n"
            "        step(batch)  # the tf.function"
        )
    if not leaf.shape.is_fully_defined():
        raise refused(
            f"{what} of {spec!r} cannot be gone through inside a tf.function: XLA compiles for "
            "fixed shapes, and a size is open. Write dataset.batch(n, drop_remainder=True) or "
            "padded_batch with padded_shapes, or put the loop outside:\n"
            "    for batch in dataset:\n"
            "        step(batch)  # the tf.function"
        )
    return jax.ShapeDtypeStruct(tuple(leaf.shape), leaf.dtype.dtype)


def _call_host(run: Callable[[], list[np.ndarray]], structs: list[Any]) -> list[Array]:
    def on_host() -> list[np.ndarray]:
        try:
            return at_once(run)
        except Exception as error:
            Raised.error = error
            raise

    return jax.experimental.io_callback(on_host, structs, ordered=True)

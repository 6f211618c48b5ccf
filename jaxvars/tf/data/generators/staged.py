"""Datasets inside of a `tf.function`: a program that requests elements when it runs.

Rules this file keeps:
- each loop begins again each time the program runs; an iterator goes on from where it is;
- elements are made on the host, by callbacks that come in the program's order;
- XLA must know the shapes of what comes: those of the `element_spec`, or two, where only the last
  batch is smaller.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, final

import jax
import jax.experimental
import numpy as np

from jaxvars.autograph.operators.sequences import OneOfTwo
from jaxvars.core.checks import Raised
from jaxvars.core.frames import LOCAL, entered
from jaxvars.tf.context.scope import outside_functions
from jaxvars.tf.data.generators.counts import UNKNOWN
from jaxvars.tf.errors import OutOfRangeError
from jaxvars.tf.tensors.convert import dtype_of, to_array
from jaxvars.tf.tensors.elements import (
    Element,
    leaves,
    map_leaves,
    pack_leaves,
    slice_rows,
    spec_of,
    to_host,
    to_stored,
)
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context
from jaxvars.typing import Array

_OPEN = (
    "{what} of {spec} cannot be gone through inside a tf.function: XLA compiles for fixed shapes, "
    "and a size is open. Write dataset.batch(n, drop_remainder=True) or padded_batch with "
    "padded_shapes, or put the loop outside:\n"
    "    for batch in dataset:\n"
    "        step(batch)  # the tf.function"
)


def at_once(run: Callable[[], Any]) -> Any:
    """Return what a function returns that runs now, eagerly, whatever is traced."""
    with context.at(context.EVAL), entered(LOCAL.eager), outside_functions():
        return run()


@final
class Feed:
    """What a program requests elements from: "A dataset" or "An iterator", for messages."""

    def __init__(
        self,
        begin: Callable[[], Iterator[Element]],
        forms: list[Any],
        what: str,
        sources: tuple[Source, ...] = (),
    ) -> None:
        self._begin, self._sources = begin, sources
        self._rest: Iterator[Element] = iter(())
        self._ahead: deque[Element] = deque()
        self._forms = list(dict.fromkeys(forms)) if len(forms) > 1 else forms
        self._structs = [[_struct(leaf, x, what) for leaf in leaves(x)] for x in self._forms]
        self._what = what
        self._require_at_most(2)

    def _require_at_most(self, count: int) -> None:
        if len(self._forms) > count:
            raise refused(_OPEN.format(what=self._what, spec=" or ".join(map(repr, self._forms))))

    # ------------------------------------------------------------ while a function is traced
    def begin(self) -> None:
        """Have the program begin with the first element."""
        arrays = [array for source in self._sources for array in source.traced]
        _call_host(self._restart, [], *arrays)

    def more(self) -> Array:
        """Have the program make the next element; return whether there is one."""
        return _call_host(self._has_more, [jax.ShapeDtypeStruct((), np.bool_)])[0]

    def item(self) -> Any:
        """Return the element that was made."""
        if len(self._forms) == 1:
            return self._pack_tensors(_call_host(self._take_ahead, self._structs[0]))
        truth = jax.ShapeDtypeStruct((), np.bool_)
        first, second = self._structs
        is_first, *arrays = _call_host(self._take_either, [truth, *first, *second])
        ways = arrays[: len(first)], arrays[len(first) :]
        return OneOfTwo(is_first, self._pack_tensors(ways[0]), self._pack_tensors(ways[1], 1))

    def next(self) -> Any:
        """Have the program make the next element; return it."""
        self._require_at_most(1)
        return self._pack_tensors(_call_host(self._next, self._structs[0]))

    def _pack_tensors(self, arrays: list[Array], form: int = 0) -> Any:
        return pack_leaves(self._forms[form], list(map(Tensor, arrays)))

    # ------------------------------------------------------------ when the program runs
    def _restart(self, *arrays: np.ndarray) -> list[np.ndarray]:
        given = iter(arrays)
        for source in self._sources:
            source.values = [np.array(next(given)) for _ in source.traced]
        self._rest, self._ahead = self._begin(), deque()
        return []

    def _has_more(self) -> list[np.ndarray]:
        for element in self._rest:
            self._ahead.append(element)
            return [np.asarray(True)]
        return [np.asarray(False)]

    def _take_ahead(self) -> list[np.ndarray]:
        return self._arrays(self._ahead.popleft())[1]

    def _take_either(self) -> list[np.ndarray]:
        form, arrays = self._arrays(self._ahead.popleft())
        ways = [[np.zeros(x.shape, x.dtype) for x in structs] for structs in self._structs]
        ways[form] = arrays
        return [np.asarray(form == 0), *ways[0], *ways[1]]

    def _next(self) -> list[np.ndarray]:
        for element in self._begin():
            return self._arrays(element)[1]
        raise OutOfRangeError(message="End of sequence [Op:IteratorGetNext] name: ")

    def _arrays(self, element: Element) -> tuple[int, list[np.ndarray]]:
        """Return which spec an element has, and its arrays."""
        arrays = [to_host(leaf) for leaf in leaves(element)]
        found = [(array.shape, array.dtype) for array in arrays]
        for form, structs in enumerate(self._structs):
            if found == [(struct.shape, struct.dtype) for struct in structs]:
                return form, arrays
        array, struct = next(
            (a, s) for a, s in zip(arrays, self._structs[0], strict=True)
            if (a.shape, a.dtype) != (s.shape, s.dtype)
        )  # fmt: skip
        raise refused(
            f"The dataset gave a tensor of shape {array.shape} and type {array.dtype}, "
            f"where its element_spec says {struct.shape} and {struct.dtype}."
        )


@final
class Source:
    """Tensors that a dataset is made of; those of a program have values when a loop begins.

    Attributes:
        traced: the arrays of a program; empty where the values are known.
        values: all of them, as arrays.
        spec: of each, in their structure.
        if_traced: itself, in a tuple, if there are such.
    """

    def __init__(self, tensors: Any) -> None:
        dense = [leaf for leaf in leaves(tensors) if not isinstance(leaf, RaggedTensor)]
        given = [to_array(leaf) for leaf in dense] if context.is_staging() else []
        self.traced: list[Any] = given if any(map(context.is_tracer, given)) else []
        self.values: list[Any] = []
        self._tensors = tensors if self.traced else map_leaves(to_stored, tensors)
        self._kinds = self.traced or list(map(to_host, leaves(self._tensors)))
        self.spec = pack_leaves(tensors, [_spec_of(x) for x in self._kinds])
        self.if_traced = (self,) if self.traced else ()

    def count(self) -> int:
        """Return the number of slices along the first dimension."""
        size, _ = slice_rows(tuple(self._kinds))
        return size if isinstance(size, int) else UNKNOWN

    def whole(self) -> Any:
        """Return the values, in their structure."""
        if not self.traced:
            return self._tensors
        if not self.values:
            raise refused(
                "A dataset of a tensor whose value is not known while the function is traced is "
                "for a `for` statement in that function, or for reduce. Make it outside:\n"
                "    for x in tf.data.Dataset.from_tensor_slices(values):\n"
                "        step(x)  # the tf.function"
            )
        return pack_leaves(self._tensors, self.values)


def _spec_of(x: Any) -> Any:
    return spec_of(x) if isinstance(x, RaggedTensor) else TensorSpec(x.shape, dtype_of(x))


def _struct(leaf: Any, spec: Any, what: str) -> Any:
    if not isinstance(leaf, TensorSpec) or leaf.dtype.is_string:
        raise refused(
            f"{what} of {leaf!r} cannot be gone through inside a tf.function: XLA's programs have "
            "numbers only. Put the loop outside:\n"
            "    for batch in dataset:\n"
            "        step(batch)  # the tf.function"
        )
    if not leaf.shape.is_fully_defined():
        raise refused(_OPEN.format(what=what, spec=repr(spec)))
    return jax.ShapeDtypeStruct(tuple(leaf.shape), leaf.dtype.dtype)


def _call_host(
    run: Callable[..., list[np.ndarray]], structs: list[Any], *arrays: Array
) -> list[Array]:
    def on_host(*given: np.ndarray) -> list[np.ndarray]:
        try:
            return at_once(functools.partial(run, *given))
        except Exception as error:
            Raised.error = error
            raise

    return jax.experimental.io_callback(on_host, structs, *arrays, ordered=True)


def reduce_in_program(items: Any, initial: Any, func: Callable[..., Any]) -> Any:
    """Reduce the elements that a program requests."""
    from jaxvars.tf.arrays.constant import convert_to_tensor
    from jaxvars.tf.control.branches import cond, while_loop

    def turn(_: Any, state: Any) -> Any:
        item = items.item(None)
        if isinstance(item, OneOfTwo):
            ways = (lambda: func(state, item.first), lambda: func(state, item.second))
            after = cond(item.truth, *ways)
        else:
            after = func(state, item)
        return items.more(None), after

    start = map_leaves(convert_to_tensor, initial)
    return while_loop(lambda go, _: go, turn, (items.more(None), start))[1]

"""Datasets inside of a `tf.function`: a program that requests elements when it runs.

Rules this file keeps:
- each loop begins again each time the program runs; an iterator goes on from where it is;
- elements are made on the host, by callbacks that come in the program's order;
- XLA must know the shapes of what comes: those of the `element_spec`, or two, where only the last
  batch is smaller;
- a loop that a tape is around needs its elements twice: they are made before it, if it is known how
  many there are, so that it is a scan.
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, final

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np

from jaxvars.autograph.operators.sequences import OneOfTwo, Sequential, change_item
from jaxvars.core.checks import Raised
from jaxvars.core.frames import LOCAL, entered
from jaxvars.objects.key_order import map_leaves as map_arrays
from jaxvars.tf.context.scope import outside_functions
from jaxvars.tf.data.generators.counts import UNKNOWN
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
from jaxvars.tf.tensors.handles import (
    from_data,
    is_text,
    require_scope,
    struct_of,
    table_of,
    taker,
    to_data,
)
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.static import end_of_sequence, refused
from jaxvars.tf.tensors.tensor import Tensor, wrap
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
        self, begin: Callable[[], Iterator[Element]], forms: list[Any], what: str,
        sources: Sequence[Source] = (),
    ) -> None:  # fmt: skip
        self._begin, self._sources = begin, sources
        self._rest: Iterator[Element] = iter(())
        self._ahead: deque[Element] = deque()
        self._forms = list(dict.fromkeys(forms)) if len(forms) > 1 else forms
        self._ways = [[_blank(leaf, x, what) for leaf in leaves(x)] for x in self._forms]
        self._blanks = self._ways[0]  # what an element is in the program
        if len(self._forms) > 1:
            self._blanks = [_TRUTH, *itertools.chain(*self._ways)]
        self._what = what
        self._require_at_most(2)

    def _require_at_most(self, count: int) -> None:
        if len(self._forms) > count:
            raise refused(_OPEN.format(what=self._what, spec=" or ".join(map(repr, self._forms))))

    # ------------------------------------------------------------ while a function is traced
    def begin(self) -> None:
        """Have the program begin with the first element."""
        _call_host(self._restart, [], *self._given())

    def more(self) -> Array:
        """Have the program make the next element; return whether there is one."""
        return _call_host(self._has_more, [_TRUTH])[0]

    def item(self) -> Any:
        """Return the element that was made."""
        return self._pack(map(Tensor, _call_host(self._take_ahead, self._blanks)))

    def all(self, count: int) -> Sequential | None:
        """Have the program make that many elements; None if they take more than 1 GiB."""
        rows = [np.broadcast_to(x, (count, *x.shape)) for x in self._blanks]
        if sum(x.nbytes for x in rows) > 1 << 30:
            return None
        made = self._pack(
            _call_host(functools.partial(self._take_all, count), rows, *self._given())
        )
        more = None if len(self._forms) == 1 else lambda i: jnp.less(i, count)
        item = lambda i: map_arrays(lambda x: x[i], made)  # noqa: E731 - one use
        return Sequential(count, item, lambda: made, more)

    def next(self) -> Any:
        """Have the program make the next element; return it."""
        self._require_at_most(1)
        return self._pack(map(Tensor, _call_host(self._next, self._blanks)))

    def next_or_none(self) -> tuple[Array, Any]:
        """Have the program make the next element; return whether there is one, and it."""
        self._require_at_most(1)
        has, *arrays = _call_host(self._next_or_blanks, [_TRUTH, *self._blanks])
        return has, self._pack(map(Tensor, arrays))

    def _given(self) -> list[Array]:
        return [array for source in self._sources for array in source.traced]

    def _pack(self, given: Iterable[Any]) -> Any:
        arrays = list(given)
        if len(self._forms) == 1:
            return pack_leaves(self._forms[0], arrays)
        end = 1 + len(self._ways[0])
        ways = arrays[1:end], arrays[end:]
        return OneOfTwo(arrays[0], *map(pack_leaves, self._forms, ways))

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
        return self._row(self._ahead.popleft())

    def _take_all(self, count: int, *arrays: np.ndarray) -> list[np.ndarray]:
        self._restart(*arrays)
        rows = list(map(self._row, itertools.islice(self._rest, count + 1)))
        if len(rows) != count:
            raise refused(f"The cardinality of the dataset is {count}, which is not so.")
        return list(map(np.stack, zip(*rows, strict=True))) or [x[None][:0] for x in self._blanks]

    def _row(self, element: Element) -> list[np.ndarray]:
        form, arrays = self._arrays(element)
        if len(self._forms) == 1:
            return arrays
        ways = [*self._ways[:form], arrays, *self._ways[form + 1 :]]
        return [np.asarray(form == 0), *itertools.chain(*ways)]

    def _next(self) -> list[np.ndarray]:
        for element in self._begin():
            return self._row(element)
        raise end_of_sequence()

    def _next_or_blanks(self) -> list[np.ndarray]:
        for element in self._begin():
            return [np.asarray(True), *self._row(element)]
        return [np.asarray(False), *self._blanks]

    def _arrays(self, element: Element) -> tuple[int, list[np.ndarray]]:
        """Return which spec an element has, and its arrays."""
        arrays = [to_host(leaf) for leaf in leaves(element)]
        found = [(array.shape, array.dtype) for array in arrays]
        for form, blanks in enumerate(self._ways):
            if found == [(blank.shape, blank.dtype) for blank in blanks]:
                return form, arrays
        array, blank = next(
            (a, s) for a, s in zip(arrays, self._ways[0], strict=True)
            if (a.shape, a.dtype) != (s.shape, s.dtype)
        )  # fmt: skip
        raise refused(
            f"The dataset gave a tensor of shape {array.shape} and type {array.dtype}, "
            f"where its element_spec says {blank.shape} and {blank.dtype}."
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
        dense = [leaf for leaf in leaves(tensors) if not _is_whole(leaf)]
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
    return spec_of(x) if _is_whole(x) else TensorSpec(x.shape, dtype_of(x))


def _is_whole(x: Any) -> bool:
    return isinstance(x, RaggedTensor | SparseTensor) or hasattr(x, "element_spec")


_TRUTH = np.asarray(False)


def _blank(leaf: Any, spec: Any, what: str) -> np.ndarray:
    """Return an array of a shape and type, which takes no memory."""
    if not isinstance(leaf, TensorSpec):
        raise refused(
            f"{what} of {leaf!r} cannot be gone through inside a tf.function: XLA's programs have "
            "tensors of fixed shapes only. Put the loop outside:\n"
            "    for batch in dataset:\n"
            "        step(batch)  # the tf.function"
        )
    if not leaf.shape.is_fully_defined():
        raise refused(_OPEN.format(what=what, spec=repr(spec)))
    one = np.asarray(b"", object) if leaf.dtype.is_string else np.zeros((), leaf.dtype.dtype)
    return np.broadcast_to(one, tuple(leaf.shape))


def _call_host(
    run: Callable[..., list[np.ndarray]], blanks: Sequence[np.ndarray], *arrays: Array
) -> list[Any]:
    """Have a function called that returns arrays like some; strings get numbers in the program."""
    take, has_strings = taker(arrays), any(map(is_text, blanks))
    scope = [require_scope()] if has_strings else []

    def on_host(*given: np.ndarray) -> list[np.ndarray]:
        try:
            made = at_once(functools.partial(run, *take(given[len(scope) :])))
            return [table_of(given[0]).put(x) if is_text(x) else x for x in made]
        except Exception as error:
            Raised.error = error
            raise

    structs = list(map(struct_of, blanks))
    data = [*scope, *map(to_data, arrays)]
    found = jax.experimental.io_callback(on_host, structs, *data, ordered=True)
    return [from_data(x) if is_text(b) else x for x, b in zip(found, blanks, strict=True)]


def reduce_in_program(items: Any, initial: Any, func: Callable[..., Any]) -> Any:
    """Reduce the elements that a program requests."""
    from jaxvars.tf.arrays.constant import convert_to_tensor
    from jaxvars.tf.control.branches import cond, while_loop

    def more(i: Any) -> Any:
        return items.more(i) if items.more else i < items.length

    def turn(i: Any, _: Any, state: Any) -> Any:
        item = change_item(wrap, items.item(to_array(i)))
        if isinstance(item, OneOfTwo):
            ways = (lambda: func(state, item.first), lambda: func(state, item.second))
            after = cond(item.truth, *ways)
        else:
            after = func(state, item)
        return i + 1, more(to_array(i) + 1), after

    start = map_leaves(convert_to_tensor, (0, more(0), initial))
    return while_loop(lambda i, go, _: go, turn, start)[2]

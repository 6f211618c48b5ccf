"""`tf.map_fn`, `tf.scan`, `tf.foldl` and the like: the loops of jaxvars, over rows of Tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.control import loops as _loops
from jaxvars.control import maps as _maps
from jaxvars.tf import nest, sparse
from jaxvars.tf.context.scope import executing_eagerly
from jaxvars.tf.control.branches import arrays_of
from jaxvars.tf.errors import OutOfRangeError
from jaxvars.tf.functions.arguments import is_spec
from jaxvars.tf.tensors.convert import dtype_of, is_tensor_like, is_text, to_array
from jaxvars.tf.tensors.dtypes import DType, as_dtype
from jaxvars.tf.tensors.ragged_base import DISPATCH
from jaxvars.tf.tensors.ragged_spec import RaggedTensorSpec
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor, convert, flat_of, make, parts_of
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.specs import SparseTensorSpec
from jaxvars.tf.tensors.static import refused, refusing
from jaxvars.tf.tensors.tensor import Tensor, wrap
from jaxvars.typing import Array, Value

_COMPOSITE = RaggedTensor | RaggedTensorSpec | SparseTensor | SparseTensorSpec


def _take_rows(elems: Any) -> tuple[Any, int]:
    """Return what is looped over, as arrays, and how many rows there are."""
    arrays = arrays_of(elems)
    flat = jax.tree.leaves(arrays)
    if not flat:
        raise ValueError(
            "elems must be a Tensor or (possibly nested) sequence of Tensors. Got "
            f"{elems}, which does not contain any Tensors."
        )
    if any(not x.shape for x in flat):
        raise ValueError("Elements in elems must be 1+ dimensional Tensors, not scalars")
    sizes = [x.shape[0] for x in flat]
    for size in sizes:
        if size != sizes[0]:
            raise ValueError(f"Dimensions {sizes[0]} and {size} are not compatible")
    return arrays, sizes[0]


def map_fn(
    fn: Callable[[Any], Any], elems: Any, dtype: Any = None, parallel_iterations: int | None = None,
    back_prop: bool = True, swap_memory: bool = False, infer_shape: bool = True,
    name: str | None = None, fn_output_signature: Any = None,
) -> Any:  # fmt: skip
    """Call a function with each row, and stack what it returns.

    Args:
        fn: takes a row, or a structure of rows.
        elems: tensors of shape [n, ...].
        dtype: an older name of `fn_output_signature`.
        parallel_iterations: accepted, and of no effect.
        back_prop: False stops gradients.
        swap_memory: accepted, and of no effect.
        infer_shape: accepted: all results have one shape.
        name: of no effect.
        fn_output_signature: types, or specs, of what `fn` returns; those of `elems` when None.

    Returns:
        Tensors of shape [n, ...].

    Raises:
        ValueError: when there is nothing to loop over, or the results have another structure.
        InvalidArgumentError: when a result has another type.

    >>> from jaxvars import tf
    >>> tf.map_fn(lambda x: x * x, tf.constant([1, 2, 3])).numpy().tolist()
    [1, 4, 9]
    """
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {fn!r}.")
    signature = fn_output_signature if fn_output_signature is not None else dtype
    if any(isinstance(x, _COMPOSITE) for x in nest.flatten((elems, signature))):
        return _map_composite(fn, elems, signature)
    arrays, _ = _take_rows(elems)
    wanted = signature if signature is not None else nest.map_structure(dtype_of, wrap(arrays))

    def step(_: None, row: Any) -> tuple[None, Any]:
        result = fn(wrap(row))
        nest.assert_same_structure(wanted, result)
        return None, arrays_of(nest.map_structure(_to_array, result, wanted, check_types=False))

    if any(map(_is_string, (*jax.tree.leaves(arrays), *nest.flatten(wanted)))):
        return _map_strings(lambda row: step(None, row)[1], arrays, wanted)
    return _wrap(_loops.scan(step, None, arrays)[1], back_prop)


def _map_composite(fn: Callable[[Any], Any], elems: Any, signature: Any) -> Any:
    """Call a function with each row of ragged or sparse tensors, or for such rows."""
    given = nest.map_structure(_convert, elems)
    wanted = nest.map_structure(_spec_of, given) if signature is None else signature
    columns = [
        _sparse_rows(x) if isinstance(x, SparseTensor) else [*x] for x in nest.flatten(given)
    ]
    rows = [nest.pack_sequence_as(given, row) for row in zip(*columns, strict=True)]
    results = [nest.map_structure(_to_row, wanted, fn(row), check_types=False) for row in rows]
    if not results:
        return nest.map_structure(lambda x: _convert(_make_empty(x)), wanted)
    return nest.map_structure(_stack_rows, wanted, *results, check_types=False)


def _convert(x: Any) -> Any:
    return x if isinstance(x, SparseTensor) else convert(x)


def _sparse_rows(x: SparseTensor) -> list[SparseTensor]:
    count, *sizes = x.shape.as_list()
    starts = [0] * len(sizes)
    rows = (sparse.slice(x, [i, *starts], [1, *sizes]) for i in range(count or 0))
    return [sparse.reshape(row, sizes) for row in rows]


def _spec_of(x: Any) -> Any:
    """Return what is known of a row."""
    if isinstance(x, SparseTensor):
        return SparseTensorSpec(x.shape[1:], x.dtype)
    if not isinstance(x, RaggedTensor):
        return x.dtype
    return RaggedTensorSpec(x.shape[1:], x.dtype, len(parts_of(x)) - 1)


def _to_row(wanted: Any, leaf: Any) -> Any:
    if isinstance(wanted, SparseTensorSpec):
        if not wanted.is_compatible_with(leaf):
            raise ValueError(f"fn returns {leaf}, not what fn_output_signature={wanted} says")
        return leaf
    made = make(_to_array(flat_of(convert(leaf, _dtype_of(wanted))), wanted), parts_of(leaf))
    rank = wanted.shape.rank if isinstance(wanted, RaggedTensorSpec) else None
    if rank not in (None, len(made.shape)) or (rank is None and parts_of(made)):
        raise ValueError(f"fn returns {made}, not what fn_output_signature={wanted} says")
    return made


def _stack_rows(wanted: Any, *parts: Any) -> Any:
    if isinstance(wanted, SparseTensorSpec):
        return sparse.concat(0, [sparse.expand_dims(x, 0) for x in parts])
    if isinstance(wanted, RaggedTensorSpec):
        return DISPATCH["stack"](None, {"values": parts, "axis": 0})
    return Tensor(_stack(*(x._array for x in parts)))


def _is_string(part: Any) -> bool:
    """Return whether an array is of strings, or a type or spec is."""
    return is_text(part) if isinstance(part, np.ndarray | jax.Array) else _dtype_of(part).is_string


def _dtype_of(wanted: Any) -> DType:
    """Return the type that a type or a spec says."""
    return as_dtype(wanted.dtype if is_spec(wanted) else wanted)


def _map_strings(fn: Callable[[Any], Any], arrays: Any, wanted: Any) -> Any:
    """Call a function with each row; strings are on the host, so that it is not a program."""
    size = len(nest.flatten(arrays)[0])
    rows = [nest.map_structure(lambda x: _take_row(x, i), arrays) for i in range(size)]  # noqa: B023 - used at once
    results = [fn(row) for row in rows]
    if not results:
        return wrap(nest.map_structure(_make_empty, wanted))
    return wrap(nest.map_structure(_stack, *results, check_types=False))


def _take_row(array: Value, i: int) -> Value:
    return np.asarray(array[i], object) if is_text(array) else array[i]


def _make_empty(wanted: Any) -> Any:
    if isinstance(wanted, RaggedTensorSpec):
        return RaggedTensor.from_row_splits(_make_empty(wanted.dtype), [0])
    shape = tuple(wanted.shape) if is_spec(wanted) and wanted.shape.rank is not None else ()
    if isinstance(wanted, SparseTensorSpec):
        sizes = [0, *(n or 0 for n in shape)]
        return SparseTensor(np.zeros((0, len(sizes))), _make_empty(wanted.dtype), sizes)
    if _is_string(wanted):
        return np.zeros((0, *shape), object)
    return jnp.zeros((0, *shape), _dtype_of(wanted).dtype)


def _stack(*parts: Value) -> Value:
    return np.stack(parts) if is_text(parts[0]) else jnp.stack(parts)


def _to_array(leaf: Any, wanted: Any) -> Array:
    dtype = _dtype_of(wanted)
    if isinstance(leaf, Tensor) and leaf.dtype != dtype:
        raise refused(
            f"TensorArray dtype is {dtype.name} but Op is trying to write dtype {leaf.dtype.name}"
            ": say fn_output_signature="
        )
    return to_array(leaf, dtype)


def _wrap(arrays: Any, back_prop: bool) -> Any:
    return wrap(arrays if back_prop else jax.lax.stop_gradient(arrays))


def vectorized_map(
    fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """Call a function once for all rows, and return what it returns for each, stacked.

    Args:
        fn: takes a row, or a structure of rows.
        elems: tensors of shape [n, ...]; of size 1 for what is the same for all.
        fallback_to_while_loop: accepted, and of no effect.
        warn: accepted, and of no effect.

    Raises:
        ValueError: when sizes differ.

    >>> from jaxvars import tf
    >>> tf.vectorized_map(lambda x: x * x, tf.constant([1, 2, 3])).numpy().tolist()
    [1, 4, 9]
    """
    arrays = nest.map_structure(to_array, elems)
    flat = nest.flatten(arrays)
    sizes = {x.shape[0] for x in flat} - {1}
    size = next(iter(sizes)) if sizes else 1
    if len(sizes) > 1:
        raise ValueError(f"The sizes of elems differ: {sorted(sizes)}.")
    wide = nest.map_structure(lambda x: jnp.broadcast_to(x, (size, *x.shape[1:])), arrays)
    with refusing():
        return wrap(
            _maps.vectorized_map(lambda row: arrays_of(_require_dense(fn(wrap(row)))), wide)
        )


def _require_dense(result: Any) -> Any:
    """Return the result of a row; refuse ragged and sparse tensors, whose parts are not stacked."""
    if any(isinstance(x, RaggedTensor | SparseTensor) for x in nest.flatten(result)):
        raise NotImplementedError(
            "tf.vectorized_map cannot stack ragged or sparse tensors. Return x.to_tensor(), or "
            "tf.sparse.to_dense(x); tf.map_fn stacks ragged ones."
        )
    return result


def scan(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None,
    parallel_iterations: int = 10, back_prop: bool = True, swap_memory: bool = False,
    infer_shape: bool = True, reverse: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """Carry a value over the rows, and return all of its values, stacked.

    Args:
        fn: takes the value and a row, returns the next value.
        elems: tensors of shape [n, ...].
        initializer: the first value; the first row when None.
        parallel_iterations: accepted, and of no effect.
        back_prop: False stops gradients.
        swap_memory: accepted, and of no effect.
        infer_shape: accepted: a value keeps its shape.
        reverse: go from the last row to the first.
        name: of no effect.

    Raises:
        ValueError: when there is nothing to loop over, or a value changes its form.

    >>> from jaxvars import tf
    >>> tf.scan(lambda total, x: total + x, tf.constant([1, 2, 3])).numpy().tolist()
    [1, 3, 6]
    """
    return _wrap(_scan_rows(fn, elems, initializer, reverse=reverse)[1], back_prop)


def _fold(name: str, summary: str, *, reverse: bool) -> Callable[..., Any]:
    def fold(
        fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None,
        parallel_iterations: int = 10, back_prop: bool = True, swap_memory: bool = False,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        if initializer is not None and executing_eagerly():
            initializer, elems = _fold_first(fn, initializer, elems, reverse)
        return _wrap(_scan_rows(fn, elems, initializer, reverse=reverse)[0], back_prop)

    fold.__name__ = fold.__qualname__ = name
    fold.__doc__ = f"Carry a value over the rows, {summary}, and return its last value; see `scan`."
    return fold


foldl = _fold("foldl", "from the first on", reverse=False)
foldr = _fold("foldr", "from the last on", reverse=True)


def _fold_first(fn: Any, initializer: Any, elems: Any, reverse: bool) -> tuple[Any, Any]:
    """Return a first value and the rows to go on with: `fn` is given a number of Python itself."""
    rows, size = _take_rows(elems)
    if not callable(fn) or all(map(is_tensor_like, nest.flatten(initializer))):
        return initializer, elems
    if not size:
        return initializer, elems
    at, rest = (-1, slice(-1)) if reverse else (0, slice(1, None))
    made = fn(initializer, wrap(nest.map_structure(lambda x: x[at], rows)))
    nest.assert_same_structure(initializer, made, check_types=False)
    return made, nest.map_structure(lambda x: x[rest], rows)


def _scan_rows(fn: Any, elems: Any, initializer: Any, *, reverse: bool) -> tuple[Any, Any]:
    """Return the last value, and all of them."""
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {fn!r}.")
    rows, size = _take_rows(elems)
    first = None if initializer is None else nest.map_structure(to_array, initializer)
    if first is None:
        if not size:
            raise OutOfRangeError(None, None, "Tried to read from index 0 but array size is: 0")
        start = -1 if reverse else 0
        first = nest.map_structure(lambda x: x[start], rows)
        rows = nest.map_structure(lambda x: x[:-1] if reverse else x[1:], rows)

    elif type(size) is int and not size and executing_eagerly():  # `fn` is not called
        return first, nest.map_structure(lambda x: x[None][:0], first)

    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        new = fn(wrap(carry), wrap(row))
        nest.assert_same_structure(first, new, check_types=False)
        made = nest.map_structure(lambda x, old: to_array(x, hint=dtype_of(old)), new, first)
        return made, made

    last, values = _loops.scan(step, first, rows, reverse=reverse)
    if initializer is None:
        values = nest.map_structure(
            lambda x, ys: jnp.concatenate([ys, x[None]] if reverse else [x[None], ys]),
            first,
            values,
        )
    return last, values

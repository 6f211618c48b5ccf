"""Calls of the functions that are given to a dataset.

Rules this file keeps:
- a function is called for each element, with Tensors on the CPU: Python's `if` and `print` and what
  has no fixed shape work. One that is a `tf.function` is compiled;
- what it returns is kept as it is until it is batched or requested.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from types import CellType, CodeType, FunctionType
from typing import Any
from weakref import WeakSet

import jax
import numpy as np

from jaxvars.core.staging import stage
from jaxvars.tf.context.scope import IN_DATASET
from jaxvars.tf.random.iteration import CALL, ITERATION
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.convert import dtype_of
from jaxvars.tf.tensors.dtypes import HANDLE, bool_
from jaxvars.tf.tensors.elements import (
    Element,
    leaves,
    map_leaves,
    merge_specs,
    spec_of,
    to_tensors,
)
from jaxvars.tf.tensors.handles import SCOPE, SCOPE_SPEC
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.tensor import Tensor


def call_function(func: Callable[..., Any], *elements: Element) -> Element:
    """Return what a function makes of an element; a tuple gives several arguments."""
    is_inner = type(func) is FunctionType and func in _INNER
    known_by = func.__code__ if is_inner else id(func)
    with _on_the_cpu(), IN_DATASET.set(True), CALL.set((known_by, {})):
        return _result(func(*_arguments(elements)))


_INNER: WeakSet[FunctionType] = WeakSet()
"""Those given to a dataset that is made for each element of another: one function, many times."""


def truth(predicate: Callable[..., Any], element: Element) -> bool:
    """Return the result of a condition for an element; raise ValueError unless it is a bool."""
    found = call_function(predicate, element)
    if not isinstance(found, Tensor) or found.dtype != bool_ or found.shape.rank:
        raise ValueError(
            "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its "
            f"return type is {map_leaves(spec_of, found)}."
        )
    return bool(np.asarray(found._array))


def check_function(func: Any) -> Any:
    """Return a function; raise ValueError for what is none."""
    if not callable(func):
        raise ValueError(
            f"Argument `func` must be a callable. Received func={func} (of type {type(func)})"
        )
    if type(func) is not FunctionType:  # each step has streams of its own
        return func if IN_DATASET.value else functools.partial(func)
    kept = _keep_names(func)
    if IN_DATASET.value:
        _INNER.add(kept)
    return kept


def named_in(func: Any) -> Iterator[Any]:
    """Yield the values that a function of a dataset names, in one order in all programs."""
    func = getattr(func, "func", func)  # of a partial
    func = getattr(func, "python_function", func)
    if type(func) is FunctionType:
        for cell in func.__closure__ or ():
            with suppress(ValueError):  # it is empty
                yield cell.cell_contents
        names = {name for part in _parts_of(func.__code__) for name in part.co_names}
        yield from (func.__globals__[name] for name in sorted(names) if name in func.__globals__)


def _keep_names(func: FunctionType) -> FunctionType:
    """Return a function for which names stay what they are now: TensorFlow traces it now.

    One that assigns to names of outer scopes, or calls `globals()` or `eval`, keeps these scopes.
    """
    code = func.__code__
    parts = list(_parts_of(code))
    if any(map(_needs_scopes, parts)):
        return func
    cells = tuple(map(_copy_cell, func.__closure__ or ()))
    # Of the globals, others need not live as long.
    used = {"__builtins__", "__name__"}.union(*(part.co_names for part in parts))
    known = {name: value for name, value in func.__globals__.items() if name in used}
    made = FunctionType(code, known, func.__name__, func.__defaults__, cells)
    made.__kwdefaults__, made.__qualname__ = func.__kwdefaults__, func.__qualname__
    made.__dict__.update(func.__dict__)
    return made


def _parts_of(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of those that are defined in it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _parts_of(part)


def _needs_scopes(code: CodeType) -> bool:
    needing = {("STORE_DEREF", name) for name in code.co_freevars}
    needing |= {("LOAD_GLOBAL", name) for name in ("globals", "eval", "exec")}
    return any(
        (each.opname, each.argval) in needing or each.opname == "STORE_GLOBAL"
        for each in dis.get_instructions(code)
    )


def _copy_cell(cell: CellType) -> CellType:
    try:
        return CellType(cell.cell_contents)
    except ValueError:  # it is empty yet
        return cell


def _arguments(elements: tuple[Element, ...]) -> Any:
    given = [to_tensors(element) for element in elements]
    return given[0] if len(given) == 1 and type(given[0]) is tuple else given


def _result(result: Any) -> Element:
    if isinstance(result, list):
        result = tuple(result)
    return _leaf(result) if not isinstance(result, tuple | dict) else map_leaves(_leaf, result)


def _leaf(value: Any) -> Any:
    if isinstance(value, Tensor | RaggedTensor | SparseTensor) or hasattr(value, "element_spec"):
        return value
    if value is None:
        raise TypeError("The function of a dataset returned None: let it return tensors.")
    return Tensor(_convert.to_array(value))


def _on_the_cpu() -> AbstractContextManager[Any]:
    if jax.default_backend() == "cpu":
        return nullcontext()
    return jax.default_device(jax.local_devices(backend="cpu")[0])


# ---------------------------------------------------------------- specs without values
def result_spec(func: Callable[..., Any], specs: tuple[Any, ...]) -> Any:
    """Return the spec of what a function makes of elements of some specs; None if it needs values.

    It is traced twice if there are unknown dimensions, with different ones: sizes of the result
    that differ are open, too.
    """
    flat = [spec for each in specs for spec in leaves(each)]
    usable = [isinstance(s, TensorSpec) and s.shape.rank is not None for s in flat]
    if not all(usable):
        return None
    try:
        first = _trace_specs(func, specs, 5)
        is_open = any(None in spec.shape.as_list() for spec in flat)
        return map_leaves(merge_specs, first, _trace_specs(func, specs, 7)) if is_open else first
    except Exception:  # noqa: BLE001 - whatever the function needs: then an element is read
        return None


def _trace_specs(func: Callable[..., Any], specs: tuple[Any, ...], size: int) -> Any:
    """Return the spec of a result; what the function assigns, layers of Keras too, is dropped."""
    found: list[Any] = []

    def run(scope: Any, *arrays: Any) -> None:
        given = iter(arrays)
        elements = [map_leaves(lambda _: Tensor(next(given)), spec) for spec in specs]
        with SCOPE.set(scope), ITERATION.set(None):
            result = _result(func(*_arguments(tuple(elements))))
        found.append(map_leaves(lambda leaf: TensorSpec(leaf.shape, dtype_of(leaf._array)), result))

    flat = [spec for each in specs for spec in leaves(each)]
    shapes = [[size if n is None else n for n in spec.shape.as_list()] for spec in flat]
    structs = [
        jax.ShapeDtypeStruct(shape, HANDLE if spec.dtype.is_string else spec.dtype.dtype)
        for shape, spec in zip(shapes, flat, strict=True)
    ]
    stage(run, [SCOPE_SPEC, *structs], "an element of the dataset shows what it returns")
    return found[0]

"""Where elements come from that are not tensors: Python generators, as generators over elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from jaxvars.tf.data.generators.cursor import Memory
from jaxvars.tf.tensors.elements import Element, is_structure, mapped, typed
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.static import refused


def indexed(memory: Memory, size: int | None, item: Callable[[int], Element]) -> Iterator[Element]:
    """Yield items by index; indefinitely if there is no size."""
    first = memory.values.get("i", 0)
    for i in itertools.count(first) if size is None else range(first, size):
        memory.values["i"] = i + 1
        yield item(i)


def numbered(memory: Memory, read: Callable[[int], Iterable[Element]]) -> Iterator[Element]:
    """Yield elements that can be read from a number on."""
    first = memory.values.get("i", 0)
    for i, element in enumerate(read(first), first):
        memory.values["i"] = i + 1
        yield element


def generated(memory: Memory, values: Callable[[], Iterable[Any]], spec: Any) -> Iterator[Element]:
    """Yield what a Python generator does, as elements of a spec.

    Raises:
        InvalidArgumentError: when a value has another structure, shape or type.
    """
    first = memory.values.get("i", 0)
    for i, value in enumerate(values()):
        if i >= first:
            memory.values["i"] = i + 1
            yield _fitted(value, spec)


def _fitted(value: Any, spec: Any) -> Element:
    try:
        return mapped(_fitted_leaf, spec, value)
    except ValueError as error:
        if "structure" not in str(error):
            raise
        raise refused(
            "TypeError: `generator` yielded an element that did not match the expected structure. "
            f"The expected structure was {spec}, but the yielded element was {value}."
        ) from None


def _fitted_leaf(spec: Any, value: Any) -> np.ndarray:
    try:
        made = typed(value, spec.dtype)
    except (TypeError, ValueError):
        raise refused(
            "TypeError: `generator` yielded an element that could not be converted to the expected "
            f"type. The expected type was {spec.dtype.name}, but the yielded element was {value}."
        ) from None
    if not spec.shape.is_compatible_with(made.shape):
        raise refused(
            f"TypeError: `generator` yielded an element of shape {made.shape} where an element of "
            f"shape {spec.shape} was expected."
        )
    return made


def signature(types: Any, shapes: Any, given: Any) -> Any:
    """Return the spec that the arguments of `from_generator` specify.

    Raises:
        TypeError: when they specify nothing, or it twice.
    """
    if given is not None:
        if types is not None or shapes is not None:
            raise TypeError(
                "The `output_types` and `output_shapes` arguments cannot be used together with "
                "the `output_signature` argument."
            )
        return given
    if types is None:
        raise TypeError(
            "To specify the output signature you need to provide either the `output_signature` "
            "argument or the `output_types` argument."
        )
    types = tuple(types) if isinstance(types, list) else types
    if shapes is None:
        return mapped(lambda dtype: TensorSpec(None, dtype), types)
    return _paired(types, shapes)


def _paired(types: Any, shapes: Any) -> Any:
    """Return specs; a shape may be a tuple, as the structure is."""
    if not is_structure(types):
        return TensorSpec(TensorShape(shapes), types)
    if isinstance(types, dict):
        return {key: _paired(types[key], shapes[key]) for key in types}
    return type(types)(_paired(a, b) for a, b in zip(types, shapes, strict=True))

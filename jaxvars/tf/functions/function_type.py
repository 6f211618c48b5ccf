"""`function_type` of a concrete function: its parameters and its result, with their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Parameter(NamedTuple):
    """A parameter.

    Attributes:
        name: what it is called.
        kind: how it is given, by the name that `inspect.Parameter` has for that.
        type_constraint: what may be given: a `tf.TensorSpec`, a value, or a structure of them.
        optional: whether it may be left out.
    """

    name: str
    kind: str
    type_constraint: Any
    optional: bool


class FunctionType(NamedTuple):
    """What a concrete function takes and returns.

    Attributes:
        parameters: by name.
        output: the result, with a `tf.TensorSpec` for each tensor.
    """

    parameters: Mapping[str, Parameter]
    output: Any

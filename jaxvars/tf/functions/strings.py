"""Strings among the arguments and results of a `tf.function`: its program has numbers for them.

A function that meets strings is traced once more, with the table of the call as an argument; if
that fails, with the strings as constants.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from jaxvars.symbolic.specialize import is_open
from jaxvars.tf.context.scope import executing_eagerly
from jaxvars.tf.functions.arguments import to_core
from jaxvars.tf.functions.signature import with_defaults
from jaxvars.tf.tensors.components import Components
from jaxvars.tf.tensors.convert import is_text
from jaxvars.tf.tensors.handles import (
    SCOPE,
    TABLES,
    NeedsKnown,
    NeedsStrings,
    from_data,
    is_handles,
    new_table,
    require_scope,
    taker,
)
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tracing import context

SCOPE_NAME = "table_of_strings"
SCOPE_SPEC = jax.ShapeDtypeStruct((2,), np.uint32)
_PARAMETER = inspect.Parameter(SCOPE_NAME, inspect.Parameter.KEYWORD_ONLY, default=None)


def _map_leaves(change: Callable[[Any], Any], given: Any) -> Any:
    kinds = (list, tuple, dict, Components, RaggedTensor, SparseTensor)
    return jax.tree.map(change, given, is_leaf=lambda x: not isinstance(x, kinds))


def refuse_strings(scope: Any, given: Any) -> None:
    """Raise NeedsStrings for strings among the arguments, unless the function is in a program."""
    if scope is None and SCOPE.value is False and any(map(is_text, jax.tree.leaves(given))):
        raise NeedsStrings


def core_signature(signature: inspect.Signature, *, has_strings: bool) -> inspect.Signature:
    """Return the signature of what the core compiles; with strings it takes their table, too."""
    made = with_defaults(signature, to_core)
    parameters = list(made.parameters.values())
    count = len(parameters) - any(p.kind is p.VAR_KEYWORD for p in parameters)
    more = [_PARAMETER] if has_strings else []
    return made.replace(parameters=[*parameters[:count], *more, *parameters[count:]])


@contextmanager
def tracing(scope: Any, given: Any) -> Generator[None]:
    """Have the number of a table while a function is traced, if it was given one."""
    shapes = [getattr(x, "shape", ()) for x in jax.tree.leaves(given)]
    with SCOPE.set(scope if scope is not None or SCOPE.value is None else True):
        try:
            yield
        except Exception as error:
            if scope is None or any(map(is_open, itertools.chain(*shapes))):
                raise  # it is traced for certain sizes
            raise NeedsKnown(error) from None


def call_with_strings(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call what takes the number of a table, and returns it with the result.

    What cannot be traced for all strings of a shape is traced for each tensor, as a constant.
    """
    call = function._core
    if SCOPE.value is not False and SCOPE.value is not None and not executing_eagerly():
        return call(*args, **kwargs, **{SCOPE_NAME: require_scope()})[0]
    if function.must_know_strings or not context.is_eager():
        with SCOPE.set(None):
            return call(*args, **kwargs)
    try:
        return _call_with_table(call, args, kwargs)
    except NeedsKnown as why:
        error = why.error
    try:
        with SCOPE.set(None):
            result = call(*args, **kwargs)
    except Exception:  # noqa: BLE001 - the first one says what cannot be
        raise error from None
    function.must_know_strings = True
    return result


def _call_with_table(call: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    table, scope = new_table()

    def put(leaf: Any) -> Any:
        return from_data(table.put(leaf)) if is_text(leaf) else leaf

    def take(leaf: Any) -> Any:
        return taker([leaf])([jax.random.key_data(leaf)])[0] if is_handles(leaf) else leaf

    with context.at(context.EVAL):
        args, kwargs = _map_leaves(put, (args, kwargs))
    try:
        result, _ = jax.block_until_ready(call(*args, **kwargs, **{SCOPE_NAME: scope}))
    except BaseException:  # which keeps what was called
        TABLES.pop(table.number, None)
        raise
    with context.at(context.EVAL):
        return _map_leaves(take, result)

"""Strings among the arguments and results of a `tf.function`: its program has numbers for them.

A function that meets strings is traced once more, with the table of the call as an argument. If
that fails it is traced for each combination of the sizes that depend on strings, as those of their
words; if that fails, too, with the strings as constants.
"""

from __future__ import annotations

import inspect
import itertools
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, final

import jax
import numpy as np

from jaxvars.compiler.signature import counts_as_itself
from jaxvars.objects.key_order import map_leaves
from jaxvars.symbolic.specialize import is_open
from jaxvars.tf.context.scope import executing_eagerly
from jaxvars.tf.errors import InvalidArgumentError
from jaxvars.tf.functions.arguments import default_to_core
from jaxvars.tf.functions.signature import with_defaults
from jaxvars.tf.tensors.components import Components
from jaxvars.tf.tensors.convert import is_text
from jaxvars.tf.tensors.handles import (
    RECORDING,
    SCOPE,
    TABLES,
    NeedsKnown,
    NeedsStrings,
    Recording,
    Sizes,
    from_data,
    is_handles,
    new_table,
    require_scope,
    taker,
)
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.variables.strings import commit
from jaxvars.tracing import context
from jaxvars.tracing.guards import GUARDS

SCOPE_NAME = "table_of_strings"
SIZES_NAME = "sizes_of_strings"
_PARAMETERS = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
    for name in (SCOPE_NAME, SIZES_NAME)
]
ANY, SIZED, CONSTANT = range(3)
"""What a program is for: strings of a shape, those with parts of some sizes, these strings."""


@final
class Programs:
    """What the programs of a function are made for.

    Attributes:
        made_for: the last of these that one has served.
        lock: held while sizes are looked for; not in a call, which waits for other threads.
    """

    def __init__(self) -> None:
        self.made_for = ANY
        self.lock = threading.RLock()
        self._sizes: dict[int, list[Sizes]] = {}

    def sizes_for(self, args: Any) -> list[Sizes]:
        """Return the sizes that there are programs for; those of a method belong to its object."""
        number = id(args[0]) if args and counts_as_itself(args[0]) else 0
        if number and number not in self._sizes:
            weakref.finalize(args[0], self._sizes.pop, number, None).atexit = False
        return self._sizes.setdefault(number, [])

    def take_sizes(self, args: Any, strings: list[np.ndarray]) -> Sizes:
        """Return sizes that strings have parts of, which no other call uses; new ones else."""
        with self.lock:
            known = self.sizes_for(args)
            free = (x for x in known if not x.is_taken and x.fit(strings))
            if (sizes := next(free, None)) is None:
                known.append(sizes := Sizes(f"#{len(known)}"))
            sizes.is_taken = True
            return sizes


def _map_leaves(change: Callable[[Any], Any], given: Any) -> Any:
    kinds = (list, tuple, dict, Components, RaggedTensor, SparseTensor)
    return map_leaves(change, given, is_leaf=lambda x: not isinstance(x, kinds))


def refuse_strings(scope: Any, given: Any) -> None:
    """Raise NeedsStrings for strings among the arguments, unless the function is in a program."""
    if scope is None and SCOPE.value is False and any(map(is_text, jax.tree.leaves(given))):
        raise NeedsStrings


def core_signature(signature: inspect.Signature, *, has_strings: bool) -> inspect.Signature:
    """Return the signature of what the core compiles; with strings it takes their table, too."""
    made = with_defaults(signature, default_to_core)
    parameters = list(made.parameters.values())
    count = len(parameters) - any(p.kind is p.VAR_KEYWORD for p in parameters)
    more = _PARAMETERS if has_strings else []
    return made.replace(parameters=[*parameters[:count], *more, *parameters[count:]])


@contextmanager
def tracing(scope: Any, given: Any) -> Generator[None]:
    """Have the number of a table while a function is traced, if it was given one."""
    arrays = jax.tree.leaves(given)
    shapes = [getattr(x, "shape", ()) for x in arrays]
    recording = RECORDING.value
    if scope is None or recording is None or not recording.start([*filter(is_handles, arrays)]):
        recording = None
    table = scope if scope is not None or SCOPE.value is None else True
    with SCOPE.set(table), RECORDING.set(recording):
        try:
            yield
        except Exception as error:
            if scope is None or any(map(is_open, itertools.chain(*shapes))):
                raise  # it is traced for certain sizes
            raise NeedsKnown(error) from None


def call_with_strings(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call what takes the number of a table, and returns it with the result."""
    call = function._core
    if SCOPE.value is not False and SCOPE.value is not None and not executing_eagerly():
        call = call if RECORDING.value is None else function._body  # as part of its caller
        return call(*args, **kwargs, **{SCOPE_NAME: require_scope()})[0]
    if not context.is_eager():
        with SCOPE.set(None):
            return call(*args, **kwargs)
    if kwargs and function._signature is not None:  # in the order of the body's parameters
        bound = function._signature.bind(*args, **kwargs)
        args, kwargs = bound.args, bound.kwargs
    error: Any = None
    programs = function._strings
    for program_for in range(programs.made_for, CONSTANT + 1):
        try:
            result = _call_with_table(function, program_for, args, kwargs)
        except NeedsKnown as why:
            error = error or why.error  # the first one says what cannot be
        except InvalidArgumentError as found:
            if program_for != ANY or not found.experimental_payloads:
                raise
            error = found  # of a program for all strings, though it depends on them
        else:
            programs.made_for = max(program_for, programs.made_for)
            return result
    raise error


def _call_with_table(function: Any, program_for: int, args: Any, kwargs: dict[str, Any]) -> Any:
    table, scope = new_table()
    strings: list[np.ndarray] = []

    def put(leaf: Any) -> Any:
        if not is_text(leaf):
            return leaf
        strings.append(leaf)
        return from_data(table.put(leaf))

    def take(leaf: Any) -> Any:
        return taker([leaf])([jax.random.key_data(leaf)])[0] if is_handles(leaf) else leaf

    if program_for != CONSTANT:
        with context.at(context.EVAL):
            args, kwargs = _map_leaves(put, (args, kwargs))
    call = _call_for_sizes if program_for == SIZED else _call
    try:
        if GUARDS:  # a callback could not have them looked for
            _settle()
        result, _ = call(function, args, {**kwargs, SCOPE_NAME: scope}, strings)
        commit(table)
    except BaseException:  # which keeps what was called
        TABLES.pop(table.number, None)
        raise
    with context.at(context.EVAL):
        return _map_leaves(take, result)


def _settle() -> None:
    """Have new variables take the values of checkpoints that wait for them."""
    from jaxvars.checkpoint.waiting import settle

    settle()


def _call(
    function: Any, args: Any, kwargs: dict[str, Any], strings: Any, recording: Any = None
) -> Any:
    with RECORDING.set(recording):
        return jax.block_until_ready(function._core(*args, **kwargs))


def _call_for_sizes(function: Any, args: Any, kwargs: dict[str, Any], strings: Any) -> Any:
    """Call a program that was traced for the sizes that these strings have parts of."""
    recording = Recording(strings)
    sizes = function._strings.take_sizes(args, strings)
    try:
        named = {**kwargs, SIZES_NAME: sizes.name}
        return _call(function, args, named, strings, recording)
    finally:  # it may have been traced, and then failed
        sizes.traces += [recording.steps] if recording.steps else []
        sizes.is_taken = False

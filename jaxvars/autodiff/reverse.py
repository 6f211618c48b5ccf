"""From a recorded program to its derivatives, by `jax.vjp`: compiled unless it may never return.

To differentiate operations one by one compiles about four programs for each that is new. So a
program of mostly new ones is compiled as a whole at once; any other when its structure returns.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.autodiff.replay import Program, Question
from jaxvars.autodiff.rules import explain_error, in_reverse
from jaxvars.errors import TapeError
from jaxvars.tensors.array_like import ArrayProxy
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tensors.quick_jit import QuickJit, are_small
from jaxvars.tracing import context
from jaxvars.tracing.assigned_read import for_tape
from jaxvars.typing import Array, Value

# ---------------------------------------------------------------- reverse mode
_SEEN: OrderedDict[Any, Callable[..., Any] | None] = OrderedDict()
_ANSWERS: OrderedDict[Any, _Answer] = OrderedDict()
_SEEN_LIMIT = 256
_MET: OrderedDict[Any, None] = OrderedDict()  # operations that have been differentiated
_MET_LIMIT = 4096


class _Answer(NamedTuple):
    """How a question is answered that has been asked before.

    Attributes:
        backward: the compiled pullback.
        constants: where among the question's values those are that it needs.
        connected: for each source, whether a target depends on it.
        through_assigns: whether it goes through assigns.
    """

    backward: Callable[..., list[Array]]
    constants: list[int]
    connected: list[bool]
    through_assigns: bool


def answer(
    question: Question, sources: Sequence[Array], cotangents: Sequence[Array | None]
) -> list[Array | None] | None:
    """Return the gradient of each source if that was asked before, of a record like this one."""
    known = _ANSWERS.get(question.key)
    if known is None:
        return None
    _remember(_ANSWERS, question.key, known)
    constants = [question.values[i] for i in known.constants]
    with for_tape(through_assigns=known.through_assigns), in_reverse():
        try:
            found = known.backward(list(sources), constants, list(cotangents))
        except ValueError:
            if _are_together([*sources, *constants]):
                raise
            return None
    return _drop_unconnected(found, known.connected)


def _are_together(values: Sequence[Array]) -> bool:
    """Return whether one program can take values: they are not on devices that differ."""
    arrays = (x for x in values if isinstance(x, jax.Array) and not context.is_tracer(x))
    return len({frozenset(x.devices()) for x in arrays if x.committed}) < 2


def vjp(
    program: Program,
    sources: Sequence[Array],
    cotangents: Sequence[Array | None],
    question: Question | None = None,
) -> list[Array | None]:
    """Return the gradient of each source, None where it is not connected.

    Args:
        program: takes the sources to targets.
        sources: the values that it is applied to.
        cotangents: one for each target; None stands for ones.
        question: what is to have this answer from now on.
    """
    if not any(program.connected):
        return [None] * len(sources)
    with reverse_through(program):
        backward, is_compiled = _make_backward(program, sources)
        found = backward(list(sources), program.constants, list(cotangents))
    if question is not None and is_compiled:
        places = question.places(program.constants)
        known = _Answer(backward, places, program.connected, program.through_assigns)
        _remember(_ANSWERS, question.key, known)
    return _drop_unconnected(found, program.connected)


def _drop_unconnected(found: Sequence[Array], connected: Sequence[bool]) -> list[Array | None]:
    return [g if on else None for g, on in zip(found, connected, strict=True)]


def _remember(known: OrderedDict[Any, Any], key: Any, value: Any, limit: int = _SEEN_LIMIT) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > limit:
        known.popitem(last=False)


@contextmanager
def reverse_through(program: Program) -> Generator[None]:
    """Differentiate a program in reverse, and say why where that cannot be."""
    try:
        with for_tape(through_assigns=program.through_assigns), in_reverse():
            yield
    except TapeError as error:  # a rule's, in front of which JAX puts a traceback of its own
        raise error.with_traceback(None) from None
    except ValueError as error:
        if why := explain_error(error, program.operations):
            raise TapeError(why) from None
        raise


def _make_backward(
    program: Program, sources: Sequence[Array]
) -> tuple[Callable[..., list[Array]], bool]:
    """Return the pullback as a function, and whether it is compiled.

    It is if its structure returned, or if to run it operation by operation would compile more:
    with a compiled function inside its two halves, each for this one time. It is not for values
    on several devices.
    """
    function = program.function

    def backward(sources: Any, constants: Any, cotangents: Any) -> list[Array]:
        outputs, pull = jax.vjp(lambda *primals: function(primals, constants), *sources)
        pairs = zip(outputs, cotangents, strict=True)
        return list(pull([jnp.ones(y.shape, y.dtype) if c is None else c for y, c in pairs]))

    together = program.is_pure and _are_together([*sources, *program.constants])
    if context.current() is not context.EVAL or not together:
        return backward, False
    key = program.key()
    known = _SEEN.get(key)
    if known is None:
        is_new = _is_mostly_new(program)  # in any case: its operations have been met now
        is_worth_it = is_new or key in _SEEN or program.holds_programs()
        known = QuickJit(backward, jax.jit(backward), _are_small) if is_worth_it else None
    _remember(_SEEN, key, known)
    return known or backward, known is not None


def _are_small(sources: Sequence[Array], constants: Sequence[Array], _: object) -> bool:
    return are_small(map(np.shape, (*sources, *constants)))  # constants may be numbers


def _is_mostly_new(program: Program) -> bool:
    """Return whether most operations are met for the first time.

    Each is new only once, so programs that never return do not go on being compiled.
    """
    operations = program.named_operations()
    new = {each for each in operations if each not in _MET}
    for each in operations:
        _remember(_MET, each, None, _MET_LIMIT)
    return 2 * len(new) > len(operations) and not program.holds_arrays()


def make_zeros(source: Any) -> Array:
    return jnp.zeros(source.shape, source.dtype if is_inexact(source) else jnp.float32)


def add_up(values: Iterable[Array]) -> Array:
    """Return the sum of one or more values."""
    first, *rest = values
    for value in rest:
        first = first + value
    return first


def check_cotangents(targets: Sequence[Value | None], given: Any) -> list[Array | None]:
    """Return what each target's gradient is multiplied with; None stands for ones."""
    if given is None:
        return [None] * len(targets)
    leaves = jax.tree.leaves(given, is_leaf=lambda x: x is None or isinstance(x, ArrayProxy))
    if len(leaves) != len(targets):
        raise TapeError(f"There are {len(targets)} targets, but {len(leaves)} output_gradients.")
    return [_cotangent(t, g) for t, g in zip(targets, leaves, strict=True)]


def _cotangent(target: Value | None, given: Any) -> Array | None:
    if given is None or target is None:
        return None
    given = given.value if isinstance(given, ArrayProxy) else given
    if isinstance(given, np.ma.MaskedArray):
        raise TapeError("An output_gradient is a masked array, and a tensor has no mask.")
    given = jnp.asarray(given, target.dtype)
    if given.shape != target.shape:
        raise TapeError(
            f"An output_gradient has shape {given.shape}, its target {target.shape}: they must "
            "be equal."
        )
    return given

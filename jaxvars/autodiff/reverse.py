"""From a recorded program to its derivatives, by `jax.vjp`: compiled once its structure returns."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.autodiff.replay import Program
from jaxvars.errors import TapeError, user_line
from jaxvars.tensors.array_like import ArrayProxy
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tracing import context
from jaxvars.tracing.assigned_read import for_tape
from jaxvars.tracing.checkpointed_while import TooManyLoopsError, in_reverse
from jaxvars.typing import Array

# ---------------------------------------------------------------- reverse mode
_SEEN: OrderedDict[Any, Callable[..., Any] | None] = OrderedDict()
_SEEN_LIMIT = 256


def vjp(
    program: Program, sources: Sequence[Array], cotangents: Sequence[Array]
) -> list[Array | None]:
    """Return the gradient of each source, None where it is not connected."""
    if not any(program.connected):
        return [None] * len(sources)
    with _in_reverse(program):
        found = _backward(program)(list(sources), program.constants, list(cotangents))
    return [g if on else None for g, on in zip(found, program.connected, strict=True)]


@contextmanager
def _in_reverse(program: Program) -> Generator[None]:
    """Differentiate a program in reverse, and say what to do about a loop that forbids it."""
    try:
        with for_tape(through_assigns=program.through_assigns), in_reverse():
            yield
    except ValueError as error:
        if isinstance(error, TooManyLoopsError):
            raise TapeError(_TOO_DEEP.format(line=user_line())) from None
        if not str(error).startswith("Reverse-mode differentiation does not work"):
            raise
        loops = "\n".join(f"    {line}" for line in program.while_loops())
        raise TapeError(_NOT_REVERSIBLE.format(loops=loops)) from None


_TOO_DEEP = (
    "The gradient requested at {line} goes through loops in loops, or is of high order through a "
    "loop, whose number of iterations is only known when the program runs. Each order makes about "
    "seven loops of one: XLA would compile this one for an hour. With a bound a loop has "
    "derivatives of any order:\n"
    "    jv.while_loop(cond, body, init, max_iterations=100)"
)
_NOT_REVERSIBLE = (
    "The target depends on the source through a loop whose number of iterations is only known when "
    "the program runs. Its gradient needs the values of each iteration, and a compiled program "
    "must know beforehand how many to keep. How long it goes on is decided by\n{loops}\n"
    "jaxvars keeps what is needed of its own loops, but not of `jax.lax.while_loop`, and of loops "
    "that print, call back or are mapped. Give it a bound:\n"
    "    jv.while_loop(cond, body, init, max_iterations=100)\n"
    "    jv.autograph.set_loop_options(max_iterations=100)    # first line of a converted loop\n"
    "or loop over an array or a range of known length: jv.scan, jv.fori_loop(0, 100, ...)."
)


def _backward(program: Program) -> Callable[..., list[Array]]:
    """Return the pullback as a function; compiled if its structure has been seen before.

    With a compiled function inside it is compiled at once: to run it operation by operation would
    compile that function's two halves, each for this one time.
    """
    function = program.function

    def backward(sources: Any, constants: Any, cotangents: Any) -> list[Array]:
        _, pull = jax.vjp(lambda *primals: function(primals, constants), *sources)
        return list(pull(cotangents))

    if context.current() is not context.EVAL or not program.is_pure:
        return backward
    key = program.key()
    known = _SEEN.get(key)
    if known is None:
        is_worth_it = key in _SEEN or program.holds_programs()
        known = _SEEN[key] = jax.jit(backward) if is_worth_it else None
    _SEEN.move_to_end(key)
    while len(_SEEN) > _SEEN_LIMIT:
        _SEEN.popitem(last=False)
    return known or backward


def rows_gradients(program: Program, sources: Sequence[Array], rows: Array) -> list[Array | None]:
    """Return the pullbacks of many cotangents, None for a source that is not connected."""
    if not any(program.connected):
        return [None] * len(sources)
    function = program.function
    with _in_reverse(program):
        _, pull = jax.vjp(lambda *primals: function(primals, program.constants), *sources)
        found = jax.vmap(lambda row: pull([row]))(rows)
    return [g if on else None for g, on in zip(found, program.connected, strict=True)]


def zeros_of(source: Any) -> Array:
    return jnp.zeros(source.shape, source.dtype if is_inexact(source) else jnp.float32)


def cotangents_of(targets: Sequence[Array], given: Any) -> list[Array]:
    if given is None:
        return [jnp.ones(t.shape, t.dtype) if is_inexact(t) else None for t in targets]
    leaves = jax.tree.leaves(given, is_leaf=lambda x: x is None or isinstance(x, ArrayProxy))
    if len(leaves) != len(targets):
        raise TapeError(f"There are {len(targets)} targets, but {len(leaves)} output_gradients.")
    return [_cotangent(t, g) for t, g in zip(targets, leaves, strict=True)]


def _cotangent(target: Array, given: Any) -> Array:
    if given is None or target is None:
        return None if target is None else jnp.ones(target.shape, target.dtype)
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

"""`functionalize`: code on variables as mathematics.

pure = jv.functionalize(step)
loss, state = jax.jit(pure)(jv.State.of(model=model, optimizer=optimizer), x, y)
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Concatenate

from jaxvars.core.cells import ASKED
from jaxvars.core.frames import LOCAL, BoundFrame, within
from jaxvars.errors import StateError, called, user_line
from jaxvars.modules.state import State, unique, values_by_key, with_values
from jaxvars.objects.key_order import map_leaves
from jaxvars.tracing.guards import ask
from jaxvars.typing import P, R

PURE: list[Callable[[Any], AbstractContextManager[object]]] = [lambda _: nullcontext()]
"""What stands around a function that runs as a pure one."""


PURE_FUNCTIONS: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()
"""What `functionalize` has returned."""


def functionalize(fn: Callable[P, R]) -> Callable[Concatenate[State, P], tuple[R, State]]:
    """Make a function of variables a pure function of their State.

    `pure(state, *args)` runs `fn(*args)` with the variables bound to the values in `state`,
    and returns its result and the State after it. The variables themselves do not change,
    so `pure` works under `jax.jit`, `vmap`, `grad`, `lax.scan`, `shard_map`, export.

    Args:
        fn: reads and writes variables; plain or `jv.compile`d.

    Returns:
        `pure(state, *args, **kwargs) -> (result, new_state)`.

    Raises:
        StateError: (from `pure`) when `fn` writes a variable that the state does not hold, or reads
            only such ones: the state is that of another model.
        CreationError: (from `pure`) when `fn` creates a variable.

    >>> import jaxvars as jv
    >>> count = jv.Variable(0, name="count")
    >>> def add(n):
    ...     count.assign_add(n)
    ...     return count * 10
    >>> result, state = functionalize(add)(State.of(count), 2)
    >>> int(result), int(state["count"]), int(count)
    (20, 2, 0)
    """

    @functools.wraps(fn)
    def pure(state: State, /, *args: P.args, **kwargs: P.kwargs) -> tuple[R, State]:
        return _run(fn, state, args, kwargs)

    PURE_FUNCTIONS.add(pure)
    with suppress(ValueError, TypeError):  # no signature, as of some functions of C
        setattr(pure, "__signature__", _with_state(inspect.signature(fn)))  # noqa: B010 - pyright knows no such name
    return pure


def _run(fn: Callable[..., Any], state: State, args: Any, kwargs: Any) -> tuple[Any, State]:
    """Run a function with variables bound to the values of a State.

    A function of this module, which cloudpickle sends by name: what it uses is this process's.
    """
    if not isinstance(state, State):
        raise StateError(
            f"The first argument must be a State, not {type(state).__name__}: "
            "pure(jv.State.of(model), *args)."
        )
    ask("A function is run by jaxvars")
    frame = BoundFrame(values_by_key(state), LOCAL.frame)

    def run() -> Any:
        return map_leaves(lambda x: x, fn(*args, **kwargs))  # reads returned Variables

    with ASKED.set(set()) as asked, PURE[0](fn):  # what JAX may keep a program of
        result = within(frame, run)
    state._layout.note(asked or set())
    if ASKED.value is not None:
        ASKED.value.update(asked or ())
    _check_used(frame, state)
    return result, with_values(state, frame.values)


def _check_used(frame: BoundFrame, state: State) -> None:
    """Raise StateError if all variables that a function used are others than the State's."""
    used = [cell for cell in frame.used.values() if cell.deliver is None]
    if state and used and frame.used.keys().isdisjoint(frame.values):
        raise StateError(
            f"The State passed to a functionalized function at {user_line()} holds none of the "
            f"variables that it reads, such as {called(used[0])!r}, but others: "
            f"{', '.join(map(repr, [*state][:3]))}. To give it the values of another model "
            "that is alike: jv.State.of(model).replace(jv.State.of(other))."
        )


def _with_state(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature with a State before it: JAX finds places of arguments by their names."""
    name = unique("state", signature.parameters)
    state = inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY)
    return inspect.Signature([state, *signature.parameters.values()])

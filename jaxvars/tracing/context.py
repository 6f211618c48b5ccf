"""Which trace code runs under, the settings that it is traced with, and JAX restored after errors.

JAX keeps one *current trace* per thread: it decides what binding a primitive means (run it, stage
it, differentiate it, batch it). `current`, `strip`, `is_staging` and `at` read and set it. Frames
(`core/frames.py`) compare traces by identity to tell their own from a foreign transform.

Rules this package keeps:
- nothing from `jax._src`; `jax.core` and `jax.extend.core` are imported here and nowhere else;
- five conventions of JAX that its documentation does not promise are used: `subfuns=` in the bind
  of custom-derivative calls, `requires_low = False` on a pass-through trace, that a
  staging trace has a frame that makes a jaxpr of equations and constants, that a trace has the one
  around it as `parent_trace`, and that `jax.clear_caches()` clears a `linear_util.cache` by its
  `cache_clear`.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import Any, Generic, ParamSpec, TypeVar, final

import jax
import jax.core
import numpy as np
from jax.extend import core as jex
from jax.extend import linear_util
from jax.extend.core.primitives import copy_p

from jaxvars.advice import explain
from jaxvars.tracebacks import package_of, shorten
from jaxvars.tracing.guards import ask
from jaxvars.typing import Array, Aval

P = ParamSpec("P")
T = TypeVar("T")
Tracer = jax.core.Tracer
Trace = jax.core.Trace


place = jex.find_top_trace  # `place(None)` is `current()`, for where a call less counts


def current() -> Trace:
    """Return the trace that binds primitives in this thread now."""
    trace = place(None)
    return EVAL if trace is None else trace  # None: a signal handler, in the middle of a bind


with jax.core.eval_context():
    EVAL: Trace = current()  # the trace that just runs things


at = jex.set_current_trace  # a context manager: bind under that trace


class PassThrough(Trace):
    """A trace that runs everything under `parent`: what a recorder is to those who look past it."""

    __slots__ = ("child", "listener", "parent")

    def __init__(self, parent: Trace) -> None:
        super().__init__()
        self.parent = parent
        self.listener: Any = None
        self.child: PassThrough | None = None


@final
class _Link(Generic[T]):
    """What one `with` statement makes of the value outside of it, until it ends."""

    __slots__ = ("change", "is_open", "outer")

    def __init__(self, change: Callable[[T], T], outer: _Link[T] | None) -> None:
        self.change = change
        self.outer = outer
        self.is_open = True


@final
class Scoped(Generic[T]):
    """A value that `with` statements replace, each in its own thread and coroutine.

    A statement is in force until it ends, wherever and in whichever order statements end: those
    of coroutines and generators need not end in the reverse order of opening. So the value is that
    of the statements that are open now, and not one that was kept to be put back.

    >>> depth = Scoped(0)
    >>> with depth.set(1):
    ...     depth.value
    1
    >>> depth.value
    0
    """

    __slots__ = ("_first", "_last")

    def __init__(self, value: T) -> None:
        self._first = value
        self._last: ContextVar[_Link[T] | None] = ContextVar("scoped", default=None)

    @property
    def value(self) -> T:
        """The value here and now."""
        link = self._last.get()
        if link is None:
            return self._first
        changes: list[Callable[[T], T]] = []
        while link is not None:
            if link.is_open:
                changes.append(link.change)
            link = link.outer
        value = self._first
        for change in reversed(changes):
            value = change(value)
        return value

    def set(self, value: T) -> AbstractContextManager[T]:
        """Have another value inside."""
        return self.change(lambda _: value)

    @contextmanager
    def change(self, change: Callable[[T], T]) -> Generator[T]:
        """Have inside what a function makes of the value outside."""
        link = _Link(change, self._find_open())
        try:
            self._last.set(link)
            yield self.value
        finally:
            link.is_open = False  # first: Ctrl-C may come in the call below
            self._last.set(self._find_open())

    def _find_open(self) -> _Link[T] | None:
        """Return the last statement of this coroutine that has not ended."""
        link = self._last.get()
        while link is not None and not link.is_open:
            link = link.outer
        # Those of generators that overlap, each with the next, would add up.
        while link is not None and link.outer is not None and not link.outer.is_open:
            link.outer = link.outer.outer
        return link


@final
class _Roots(threading.local):
    """The recorder that each thread puts directly on `EVAL`."""

    recorder: PassThrough | None = None

    def innermost(self) -> Trace:
        """Return the last recorder in use, or `EVAL`."""
        trace, found = EVAL, self.recorder
        while found is not None and found.listener is not None:
            trace, found = found, found.child
        return trace


ROOTS = _Roots()


def strip(trace: Trace) -> Trace:
    """Return `trace` without the recorders around it."""
    while isinstance(trace, PassThrough):
        trace = trace.parent
    return trace


def is_eager() -> bool:
    """Return whether operations are run, and perhaps recorded: outside of JAX's transforms."""
    return strip(current()) is EVAL


def is_staging() -> bool:
    """Return whether operations are being staged into a program instead of run."""
    if is_eager() or put_back():
        return False
    return isinstance(copy_p.bind(0.0), Tracer)


def put_back() -> bool:
    """Return whether JAX was left in a trace that is over, and make the one before current again.

    An exception that comes while JAX enters or leaves a trace (Ctrl-C does) can leave it current.
    A trace is over if no function of JAX is under way.
    """
    trace, frame = place(None), sys._getframe(1)
    if strip(trace) is EVAL:
        return False
    while frame is not None:
        if package_of(frame.f_globals) == "jax":
            return False
        frame = frame.f_back
    at(ROOTS.innermost()).__enter__()
    return True


def restored(error: BaseException) -> BaseException:
    """Return what was raised, and leave no trace of JAX's behind that it broke off.

    JAX makes another error of whatever is raised while it compares what it knows programs by,
    or calls back to compile one, such as a KeyboardInterrupt: that is returned instead. So is what
    ends the program in a callback of the user's; JAX's error is as good for other exceptions.
    """
    put_back()
    if isinstance(error, ValueError | RuntimeError) and any(x in str(error) for x in _SWALLOWING):
        last = str(error).rstrip().rpartition("\n")[2].removeprefix(_SWALLOWING[-1])
        name, _, message = last.partition(":")
        name = name.rpartition(".")[2]
        kinds = [kind for kind in _kinds(BaseException) if kind.__name__ == name]
        if _CALLED_BACK in str(error):
            kinds = [kind for kind in kinds if not issubclass(kind, Exception)]
        with suppress(TypeError):  # one that is not made of a message
            return (
                kinds[0](*filter(None, [_parse_message(kinds[0], message.strip())]))
                if kinds
                else error
            )
    return error


def _parse_message(kind: type[BaseException], message: str) -> Any:
    """Return what an exception was made of, by its message: `sys.exit(3)` of a number."""
    is_code = issubclass(kind, SystemExit) and message.lstrip("-").isdigit()
    return int(message) if is_code else message


_CALLED_BACK = "error calling callback: "
_SWALLOWING = (
    _CALLED_BACK,
    "should be comparable using __eq__",
    "Equality of global cache key led to an exception",
    "Exception raised in callback: ",
)


def _kinds(kind: type[BaseException]) -> Iterator[type[BaseException]]:
    for known in kind.__subclasses__():
        yield known
        yield from _kinds(known)


@final
class restoring:  # noqa: N801 - used as a statement, `with restoring()`
    """Have what is raised go through `restored`: by a statement, or by a function."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None = None, *__: object) -> None:
        if error is None:
            return
        if (found := restored(error)) is not error:
            raise found from error
        explain(error)
        shorten(error)

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return the function with this around it."""

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            __tracebackhide__ = True  # IPython and pytest leave the frame out
            with self:
                return function(*args, **kwargs)

        return called


def evaluating() -> AbstractContextManager[object]:
    """Return a context in which a signal handler computes that came in the middle of a bind."""
    return at(EVAL) if place(None) is None else nullcontext()


def is_differentiated() -> bool:
    """Return whether what runs now is itself recorded, or differentiated or batched as it runs."""
    return isinstance(current(), PassThrough) or (current() is not EVAL and not is_staging())


def is_tracer(value: object) -> bool:
    """Return whether `value` stands for a value that is not known yet."""
    return isinstance(value, Tracer)


def is_of(value: object, traces: Sequence[Trace]) -> bool:
    """Return whether `value` is a tracer of one of some traces, or of a trace inside of one."""
    trace = value._trace if isinstance(value, Tracer) else None
    while trace is not None:
        if any(trace is each for each in traces):
            return True
        trace = getattr(trace, "parent_trace", None)
    return False


def is_known(value: object) -> bool:
    """Return whether Python can decide by `value`: it is not a tracer, or one with a value."""
    return not isinstance(value, Tracer) or value.to_concrete_value() is not None


@restoring()
def fresh(value: Array | np.generic) -> Array:
    """Return the same value as a new object: a copy when run, free in a compiled program."""
    return _copy(value) if place(None) is EVAL else copy_p.bind(value)


_copy = jax.jit(copy_p.bind)  # JAX runs it faster than the operation alone


_copy_all = jax.jit(lambda *values: list(map(copy_p.bind, values)))


def copied_all(values: Sequence[Array]) -> Sequence[Array]:
    """Return values in separate memory, by one program, compiled for that many of such shapes."""
    with at(EVAL):
        return _copy_all(*values)


def copied(value: Array) -> Array:
    """Return a value that is known in separate memory; strings, which never change, as it is."""
    if not isinstance(value, jax.Array):
        return value
    with at(EVAL):  # unseen by tapes
        return _copy(value)


@restoring()
def unseen(compute: Callable[[], Array], what: str) -> Array:
    """Compute without a tape taking note of it; what is done, errors say in a forked process."""
    ask(what)
    with at(strip(current())):
        return compute()


def aval_of(value: Array | np.ndarray) -> Aval:
    """Return the abstract value of `value`, as a strongly typed one."""
    aval = jax.typeof(value)
    return aval.update(weak_type=False) if getattr(aval, "weak_type", False) else aval


# Made at import: a new context changes the keys of all that is jitted, whatever its default, so
# that functions which ran before are traced once more. Later, those would be more, operations that
# ran eagerly among them, and no other thread may use JAX while a context is made.
trace_cache_key = jax.make_user_context(None)
"""A context manager: what JAX remembers of inner functions under one key is used under no other.

JAX keeps the traces of jitted and checkpointed functions and of scan bodies by function and
shapes. Such a trace holds the values of variables that were read in it, as constants.
"""


_KEPT = 4096  # settings that are known at a time
_FUNCTION = linear_util.wrap_init(
    lambda: None, debug_info=jex.DebugInfo("settings", "settings", (), None)
)
_SETTING = threading.RLock()  # so that two threads give the same settings the same number


def _one_for_settings(make: Callable[[], T]) -> Any:
    """Return a function that gives what `make` made for JAX's settings and what else it is told."""
    made = itertools.count(1)

    def new(*_: Any) -> T:
        if next(made) % _KEPT == 0:
            forget()
        return make()

    found: Any = linear_util.cache(new)  # JAX keeps one for each state of its settings
    forget = found.cache_clear
    return found


_number = _one_for_settings(itertools.count(1).__next__)
_number.cache_clear = lambda: None  # `jax.clear_caches()` keeps them
_table = _one_for_settings(dict[Any, Any])


def settings() -> int:
    """Return a number for all that `jax.jit` takes into account besides a function's arguments.

    JAX says itself which settings these are: each has part in the keys of its caches. It leaves out
    what random keys are made of by default, and whether numbers are checked.
    """
    with _SETTING, at(EVAL), trace_cache_key(None):
        try:
            devices = jax.sharding.get_mesh()
        except ValueError:  # inside of a map with a named axis
            devices = None
        return _number(_FUNCTION, devices, key_maker(), numbers_are_checked())


def table_for_settings() -> dict[Any, Any]:
    """Return a dict that is for JAX's settings now; to be called where `EVAL` is current.

    It is empty again after `jax.clear_caches()`.
    """
    return _table(_FUNCTION, key_maker())


def key_maker() -> str:
    """Return what random keys are made of by default."""
    return jax.config.jax_default_prng_impl  # pyright: ignore[reportAttributeAccessIssue] - made by JAX as it is imported


NAN_CHECK: Any = jax.debug_nans
INF_CHECK: Any = jax.debug_infs
is_on: Callable[[Any], bool] = type(NAN_CHECK).value.fget
"""Returns whether one of them is on; the property's own function takes a third of its time."""


def numbers_are_checked() -> bool:
    """Return whether JAX raises for a NaN or infinity that a program has computed, after its run.

    >>> with jax.debug_nans(True):
    ...     numbers_are_checked()
    True
    """
    return is_on(NAN_CHECK) or is_on(INF_CHECK)

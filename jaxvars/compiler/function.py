"""`compile`: trace a function once for each signature, and run it as one XLA program.

    @jv.compile
    def step(x, y):
        ...

A `Function` is a cache of compiled pure functions (`compiler/executable.py`) and a rule about
creating variables. A call finds its entry in one of two ways:

- *fast*: one of the last few calls was like this one: a function written for it checks just
  that and runs the program (`compiler/fast_path.py`);
- *slow*: the arguments are taken apart (`compiler/signature.py`), and the entry is found by the
  key, or made. Under a tape, a transform or in another function, this is always the way.

Rules this file keeps:
- a body runs once for a signature, twice if it creates variables on its first call;
- variables may be created only until the function has succeeded once for the objects it is
  called with: later, whose value should they have?
- a call that fails leaves no entry behind and no variable changed.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Generator, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Self, TypeAlias, final, overload

import jax

from jaxvars.advice import EXPLANATIONS, instead_of
from jaxvars.compiler.concrete_function import ConcreteFunction, paths_from
from jaxvars.compiler.creation import ProgramSource, give_late, stage_body
from jaxvars.compiler.executable import Executable, cells_of
from jaxvars.compiler.fast_path import MISS, FastPaths, Rest
from jaxvars.compiler.flags import Flags
from jaxvars.compiler.program import (
    NotTopLevel,
    Placement,
    ShapeMismatch,
    SignatureMismatch,
    is_about_deleted,
)
from jaxvars.compiler.signature import (
    Call,
    Key,
    Signature,
    Static,
    ask_parts,
    check_result,
    is_spec,
    lower_spec,
    object_ids,
)
from jaxvars.core.cells import ASKED, FROZEN
from jaxvars.core.frame import FAST_PATH_BLOCKERS, TRACING, FastPathBlocker, Switch
from jaxvars.core.frames import LOCAL
from jaxvars.core.staging import Staged
from jaxvars.core.store import fail, refuse_to_wait
from jaxvars.errors import CompileError, UninitializedError, line_of_function, warn_of_retraces
from jaxvars.objects.identity import told_by_equality
from jaxvars.objects.key_order import ordered_like
from jaxvars.objects.sending import Sent
from jaxvars.objects.trace_counts import TraceCounts
from jaxvars.tensors.spec import TensorSpec
from jaxvars.tensors.wrapping import boxing
from jaxvars.tracing import context
from jaxvars.tracing.capture import describe
from jaxvars.tracing.context import Scoped
from jaxvars.tracing.guards import GUARDS, TAKE, ask
from jaxvars.typing import Array, P, Q, R
from jaxvars.views import Table, Viewed, view

_Names: TypeAlias = list[tuple[str, str]]  # of traced leaves: the argument's, and its own


@final
class Function(Sent, Viewed, Generic[P, R]):
    """A compiled function: made by `jv.compile`.

    Attributes:
        python_function: the function as it was written.
        body: the function as it is traced: converted before, where there is a converter.
        source: makes the program of a call from that of another one, where it can, and gives the
            context to trace a call in.
        placement: the class that says where the values of programs are, for all functions.
    """

    __slots__ = {
        "__call__": "Call the function.",  # not a method: Python calls what is here at once
        "__dict__": "Its attributes.",
        "__weakref__": "References that do not keep it.",
        **dict.fromkeys((  # which `functools.wraps` does not copy
            "_counts", "_entries", "_flags", "_in_progress", "_initialized", "_last_key", "_log",
            "_paths", "_signature", "body",
        )),
    }  # fmt: skip
    __call__: Callable[P, R]
    __wrapped__: Callable[P, R]
    __name__: str
    source: ProgramSource = ProgramSource()
    placement: type[Placement] = Placement

    def __init__(
        self, fn: Callable[..., Any], *, static_argnames: Sequence[str], donate: bool | str,
        input_signature: Sequence[TensorSpec] | None, in_shardings: Any,
        guard: Callable[[str, str], None] | None = None,
        convert: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    ) -> None:  # fmt: skip
        functools.update_wrapper(self, fn, updated=())
        self._stand_for(fn, {
            "static_argnames": tuple(static_argnames), "input_signature": input_signature,
            "in_shardings": in_shardings, "donate": donate, "guard": guard, "convert": convert,
        })  # fmt: skip
        self._begin(static_argnames, input_signature)
        self.placement.check(in_shardings, self._signature.parameters, self._signature.name)
        self.body = fn if convert is None else convert(fn)
        self._in_progress: set[Key] = set()
        self._log: list[tuple[str, str, float]] = []
        self._counts = TraceCounts()

    def _begin(self, static: Sequence[str], specs: Sequence[TensorSpec] | None) -> None:
        """Begin without programs, for the code that the function has now."""
        self._signature = Signature(self.python_function, static, specs)
        self._entries: dict[Key, Executable] = {}
        rest = Rest(self._call, self._mend)
        self._paths = FastPaths(rest, self._slow_call, self._install)
        self._flags = Flags(self._paths.cool)
        self._initialized: set[tuple[int, ...]] = set()
        self._last_key: Key | None = None
        self.source.begin()

    def _follow_source(self) -> None:
        """Forget all programs if the function's code was replaced in place: autoreload does so."""
        known = self._signature
        if not known.source.is_current:
            with TRACING:
                if self._signature is known:  # else another thread was first
                    self._begin(tuple(known.static), known.specs)

    if not TYPE_CHECKING:  # a checker would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError; what there is has been found before."""
            raise _no_attribute(self, name)

    def _install(self, path: Callable[..., Any]) -> None:
        self.__call__ = path

    def _call(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function, where no fast path for positional arguments could."""
        __tracebackhide__ = True
        if FAST_PATH_BLOCKERS:
            return self._slow_call(*args, **kwargs)
        try:
            result = self._paths.tree(args, kwargs)
            if result is not MISS:
                return result
            again = self._slow_call
        except BaseException as error:  # noqa: BLE001 - raised again if it is the user's
            again = self._mend(error, args, **kwargs)
        return again(*args, **kwargs)

    def _mend(self, error: BaseException, args: Any, /, **kwargs: Any) -> Callable[..., Any]:
        """Return what to call after an error of a fast path; raise it if it is the user's."""
        if isinstance(error, SignatureMismatch):
            has_another = self._paths.miss(by_shape=isinstance(error, ShapeMismatch))
            return self if has_another else self._slow_call
        if not isinstance(error, NotTopLevel):
            for entry in tuple(self._entries.values()):
                entry.broke_off = True
            if not self.placement.is_about(error) and not is_about_deleted(error):
                with context.restoring():
                    self._explain(error, args, kwargs)
                    raise error
        return self._slow_call

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: Function[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> BoundFunction[Q, R]: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else BoundFunction(self, instance)

    # ------------------------------------------------------------ looking inside
    def trace(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Trace for one signature without running, unless that has been done.

        Args:
            *args: arguments as for a call; `TensorSpec` or `jax.ShapeDtypeStruct` in place of
                arrays. None are needed where there is an `input_signature`.
            **kwargs: the same.

        Raises:
            CompileError: when a spec has an unknown dimension (None).
        """
        self._follow_source()
        args = self._signature.completed(args)
        given = args, kwargs
        args, kwargs = ordered_like(given, jax.tree.map(lower_spec, given, is_leaf=is_spec))
        call = self._signature.bind(args, kwargs)
        entry = self._executable(call)
        named = {**dict(zip(self._signature.parameters, args, strict=False)), **kwargs}
        signature, bind = self._signature.describe(entry.key), self._signature.bind
        paths = paths_from(self.python_function, named, entry)
        return ConcreteFunction(entry, signature, bind, paths, entry.specs(call.values))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Separate the traced arguments of a call from what rebuilds the call of other values."""
        return self._signature.bind(args, kwargs)

    @property
    def __isabstractmethod__(self) -> bool:
        """Whether it is a method that subclasses have to write: `abc.abstractmethod` says so."""
        return getattr(self.python_function, "__isabstractmethod__", False)

    @property
    def traces(self) -> Table:
        """A row for each time the body was traced: signature, why, seconds."""
        return view(self, "traces")

    @property
    def trace_count(self) -> int:
        """How many signatures have been traced."""
        return len(self._log)

    # ------------------------------------------------------------ the slow way
    def _slow_call(self, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if GUARDS:
            ask(f"{self._signature.name} is called")
        if EAGER.on:
            return self.python_function(*args, **kwargs)
        self._follow_source()
        with context.restoring():
            while True:
                call = self._signature.bind(args, kwargs)
                entry = self._executable(call)
                try:
                    result = entry.run(call.given())
                    break
                except NotTopLevel:
                    return entry.inline(call.given())
                except SignatureMismatch:  # another thread changed a shape, or the body a setting
                    continue
                except (ValueError, RuntimeError) as error:
                    if not (isinstance(error, UninitializedError) and give_late()):
                        entry.explain(error, call.values)
                        raise
            self._add_path(entry, call, args, kwargs)
            return result

    def _add_path(self, entry: Executable, call: Call, args: Any, kwargs: Any) -> None:
        """Let calls like this one take a fast path, if there can be one."""
        parts = None if FROZEN.value else entry.parts
        is_plain = self._signature.is_plain and not call.is_foreign
        if parts is not None and is_plain and not any(call.key.parts):
            more = self._signature.conditions(args, kwargs, call.key.settings)
            self._paths.add(parts, args, kwargs, call.values, more)
            if not self._flags.hold(entry.key):  # set by another thread meanwhile
                self._paths.cool()

    def _explain(self, error: BaseException, args: Any, kwargs: Any) -> None:
        """Raise an error that says what one from jit's fast path means, if that is known."""
        if isinstance(error, OverflowError):  # an integer that does not fit: nothing has run
            self._signature.bind(args, kwargs)
        fail(self._signature.name, error)

    def _executable(self, call: Call) -> Executable:
        entry = self._find(call)
        if entry is None:
            refuse_to_wait()  # before the lock: another thread that traces may wait for this step
            with TRACING:  # another thread may have been first
                entry = self._find(call) or self._make(call)
        self._flags.ask_again(entry.key)
        return entry

    def _find(self, call: Call) -> Executable | None:
        """Return the program for a call, for the variables that are trainable now."""
        return self._entries.get(self._flags.extend(call.key))

    def _make(self, call: Call) -> Executable:
        self._refuse_recursion(call)
        start, objects = time.perf_counter(), object_ids(call.key)
        names = self._signature.traced_names(call.key)
        try:
            self._in_progress.add(call.key)
            with ASKED.set(set()) as asked:
                staged = known = self.source.find(call, self._stage_other)
                if staged is None:
                    run, may_create = self._run_body(call, names), objects not in self._initialized
                    name = self._signature.name
                    staged = stage_body(run, call, name, self.source, may_create=may_create)
                    self._initialized.add(objects)
        finally:
            self._in_progress.discard(call.key)
        call = call.settled()
        entry = self._build(call, staged, asked, names)
        changed = any(isinstance(x, Static) and x.has_changed for x in call.key.leaves)
        entry.is_stale = changed or call.key.parts != ask_parts()  # which another thread has set
        if not entry.is_stale:
            self._entries[entry.key] = entry
        if known is None:
            self._note(entry, call.objects, time.perf_counter() - start)
        if changed:  # an object got variables: from now on it is known by identity
            self._flags.forget(entry.key, self._entries)
            self._initialized.discard(object_ids(call.key))
            self._last_key = None
        return entry

    def _refuse_recursion(self, call: Call) -> None:
        if call.key in self._in_progress:
            raise CompileError(
                f"{self._signature.name} calls itself with arguments of the same types "
                f"({self._signature.describe(call.key)}), so tracing it would never end. A "
                "Python number that counts down is traced: name it in static_argnames, or use a "
                "loop."
            )

    def _build(
        self, call: Call, staged: Staged, asked: set[int] | None, names: _Names
    ) -> Executable:
        """Return what runs a program, and forgets it when an object of the call is gone."""
        staged.rebuild.weaken(call.objects)
        if GUARDS:
            ask(TAKE, [*staged.reads, *staged.writes])
        entry = Executable(
            self._flags.note(call.key, asked, staged.shapes), staged, self._signature.name,
            donate=self._options["donate"] is not False,
            place=lambda leaves: self.placement(self._options["in_shardings"], names, leaves),
        )  # fmt: skip
        self._check_donation(entry)
        entry.watch(call.objects, self._evict, self._paths.cool)
        return entry

    def _stage_other(self, call: Call) -> Staged:
        return self._executable(call)._whole

    def _run_body(self, call: Call, names: _Names) -> Callable[..., Any]:
        """Return the body as a function of the traced arguments of a call."""

        def run(*values: Array) -> Any:
            args, kwargs = call.rebuild(values)
            try:
                with boxing(None):
                    result = self.body(*args, **kwargs)
            except Exception as error:
                for explain in EXPLANATIONS:
                    explain(error)
                raise
            check_result(result, self._signature.name)
            if (guard := self._options["guard"]) is not None:
                guard(self._signature.name, line_of_function(self.python_function))
            return result

        called = f"{self._signature.name} at {line_of_function(self.python_function)}"
        describe(run, called, [name for _, name in names])
        setattr(run, "__wrapped__", self.python_function)  # noqa: B010 - pyright knows no such name
        return run

    def _check_donation(self, entry: Executable) -> None:
        if self._options["donate"] is True and entry.has_callbacks:
            raise CompileError(
                f"{self._signature.name} calls back into Python (a debug print, io_callback or "
                "pure_callback), so its variables cannot be donated: an error in the callback "
                'could not be undone. Use donate="auto" or donate=False.'
            )

    def _evict(self, entry: Executable) -> None:
        """Forget an entry: something that it refers to is gone."""
        self._flags.forget(entry.key, self._entries)
        self._paths.cool()
        self._initialized.discard(object_ids(entry.key))
        self._counts.let_go()

    def _note(self, entry: Executable, objects: Sequence[Any], seconds: float) -> None:
        """Log a trace, and warn of a function that is traced again and again."""
        why, key, last = "first call", entry.key, self._last_key
        if last is not None:
            why = self._signature.difference(last, key)
        has_new = last is None or last == key or object_ids(last) != object_ids(key)
        self._last_key = key
        self._log.append((self._signature.describe(key), why, seconds))
        if not LOCAL.frame.is_plan:
            cells = cells_of(entry) if objects else ()  # what they have in common
            owners = self._signature.owners(key, objects)
            count = self._counts.add((cell.key for cell in cells), owners)
            warn_of_retraces(self._signature.name, count, why, has_new_objects=has_new)


@told_by_equality
@final
class BoundFunction(Viewed, Generic[P, R]):
    """A compiled method of one object."""

    __slots__ = ("__self__", "__weakref__", "function")
    __wrapped__: Callable[P, R]
    __name__: str

    def __init__(self, function: Function[..., Any], instance: object) -> None:
        self.function = function
        self.__self__ = instance

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return what tools read from a function: its name, and through it its signature."""
            if name in ("_anchor", "_sender"):  # a method of a class is sent by its name
                return getattr(self.function, name)
            if name not in ("__name__", "__qualname__", "__wrapped__"):
                raise _no_attribute(self, name)
            method = MethodType(self.function.python_function, self.__self__)
            return method if name == "__wrapped__" else getattr(method, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundFunction, (self.function, self.__self__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundFunction) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[int, int]:
        return id(self.function), id(self.__self__)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the method."""
        __tracebackhide__ = True
        return self.function(self.__self__, *args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Trace the method for one signature; see `Function.trace`."""
        return self.function.trace(self.__self__, *args, **kwargs)

    @property
    def python_function(self) -> Callable[..., Any]:
        """The method as it was written."""
        return functools.partial(self.function.python_function, self.__self__)

    @property
    def traces(self) -> Table:
        """A row for each trace of the method, of any object."""
        return self.function.traces

    @property
    def trace_count(self) -> int:
        """How many signatures have been traced, of any object."""
        return self.function.trace_count


def _no_attribute(fn: Any, name: str) -> AttributeError:
    """Return the error for an attribute that a compiled function does not have."""
    hint = instead_of(name, "Function")
    return AttributeError(f"{type(fn).__name__!r} object has no attribute {name!r}.{hint}")


# ---------------------------------------------------------------- Python instead of programs
@final
class EagerMode:
    """A setting of this process, and one of a thread or coroutine for a while."""

    def __init__(self) -> None:
        self.everywhere = Switch()
        self.here = Scoped(False)

    @property
    def on(self) -> bool:
        """Whether compiled functions run their Python bodies here and now."""
        return self.everywhere.on or (bool(FAST_PATH_BLOCKERS) and self.here.value)


EAGER = EagerMode()


def run_eagerly(enabled: bool = True) -> None:
    """Run the Python bodies of compiled functions (True), or the compiled programs (False).

    For debugging: print, breakpoints and exceptions are then Python's own.

    Args:
        enabled: True for Python, in all threads, until it is called with False.

    >>> import jaxvars as jv
    >>> run_eagerly(True)
    >>> jv.compile(lambda x: x + 1)(1)
    2
    >>> run_eagerly(False)
    """
    EAGER.everywhere.set(enabled)


@contextlib.contextmanager
def running_eagerly() -> Generator[None]:
    """Run the Python bodies of compiled functions inside."""
    blocker = FastPathBlocker()
    blocker.begin()
    try:
        with EAGER.here.set(True):
            yield
    finally:
        blocker.end()

"""Look at what a trace that has succeeded has left behind.

A trace is gone when it has succeeded: nothing refers to it but its tracers. So if a weak reference
to it is dead no tracer is alive, and nothing more is done. Else the user's code is searched for
tracers of the trace (`holders.py`).

Rules this file keeps:
- what the user's code cannot reach is not told of: values in the closures of custom derivatives,
  tapes, generators, cycles that wait to be collected;
- it is told before the program runs; attributes of Modules have their old values again then, and
  also where a trace has failed.
"""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from types import MemberDescriptorType
from typing import Any, NamedTuple, TypeAlias, final

from jaxvars.autograph.operators.watch import PUT_BACK
from jaxvars.compiler.creation import WATCH
from jaxvars.compiler.signature import Call
from jaxvars.core.frames import LOCAL
from jaxvars.errors import CompileError, LeakWarning, find_user_frame, warn_user
from jaxvars.leaks import draws
from jaxvars.leaks.holders import Place, Search, attribute, attributes
from jaxvars.leaks.messages import Leak
from jaxvars.leaks.statements import Line
from jaxvars.modules.functionalize import PURE
from jaxvars.modules.module import SETTING, Module
from jaxvars.tracing import context
from jaxvars.tracing.around import AROUND

_Test: TypeAlias = Callable[[object], bool]

_MISSING = object()  # an attribute that is not there
_MOST = 3  # leaks that are told of at a time

RAISES: context.Scoped[bool] = context.Scoped(False)
"""Whether what would be a warning is raised here; a filter of warnings holds for all threads."""


class _Set(NamedTuple):
    """An attribute of a Module that was set while a function was traced: what it was, and where.

    The module is not kept: a function that makes variables which nothing keeps is told so.
    """

    module: weakref.ref[Module]
    name: str
    old: object
    line: Line | None

    def find(self, is_wanted: _Test) -> list[tuple[Place, Any]]:
        """Return the values of a kind that are in it now."""
        if (module := self.module()) is None:
            return []
        value = attributes(module).get(self.name)
        return Search(is_wanted).within(attribute(module, self.name), value)

    def set_back(self) -> None:
        """Give it its old value."""
        if self.old is not _MISSING:
            object.__setattr__(self.module(), self.name, self.old)
        else:
            object.__delattr__(self.module(), self.name)


@final
class _Local(threading.local):
    """The innermost function that this thread traces."""

    watch: _Watch | None = None


_LOCAL = _Local()


@final
class _Watch:
    """A function that is being traced: its traces, and what is set meanwhile."""

    def __init__(self, run: Callable[..., Any], call: Call | None, name: str) -> None:
        self._function = getattr(run, "__wrapped__", run)
        self._objects = [] if call is None else call.objects
        self._name = name
        self._traces: list[weakref.ref[context.Trace]] = []
        self._sets: dict[tuple[int, str], _Set] = {}
        self._told: list[weakref.ref[Any]] = []
        self._outer: _Watch | None = None
        self._states, self._has_drawn = draws.states(), False

    def __enter__(self) -> Callable[[], None]:
        self._outer = None if LOCAL.frame is LOCAL.eager else _LOCAL.watch
        _LOCAL.watch = self
        return self.look

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        _LOCAL.watch = outer = self._outer
        if error is not None:
            self._set_back(self._tester())
        elif self._has_drawn and (said := draws.explain(self._name, self._function, self._objects)):
            _warn(said)
        if outer is not None:
            outer._sets = {**self._sets, **outer._sets}  # the first old value of each
            outer._told += self._told

    def note_trace(self) -> None:
        """Take note of a trace that begins."""
        self._traces.append(weakref.ref(context.strip(context.current())))

    def note_set(self, module: Module, name: str) -> None:
        """Take note of an attribute that is about to be set."""
        key, frame = (id(module), name), find_user_frame()
        if not _is_decided_by_class(module, name):
            known = self._sets.get(key)
            if known is not None and known.module() is module:  # ids are used again
                old = known.old
            else:
                old = attributes(module).get(name, _MISSING)
            line = None if frame is None else (frame.f_code, frame.f_lineno)
            self._sets[key] = _Set(weakref.ref(module), name, old, line)

    def note_put_back(self, module: Module, name: str) -> None:
        """Take note of an attribute that has its old value, if it was set without our notice."""
        known = self._sets.get((id(module), name))
        if known is None or known.module() is not module:
            self.note_set(module, name)

    def _tester(self) -> _Test | None:
        """Return what says whether a value is a tracer of the traces; None if none is alive."""
        alive = [trace for ref in self._traces if (trace := ref()) is not None]
        return functools.partial(context.is_of, traces=alive) if alive else None

    def look(self) -> None:
        """Raise or warn if a trace that has succeeded has left a tracer behind."""
        is_wanted = self._tester()
        if is_wanted is not None:
            self._tell(is_wanted)
        self._traces.clear()
        # Those of the first trace may be first values of variables, which a second one follows.
        before, self._states = self._states, draws.states()
        self._has_drawn = before != self._states

    def _tell(self, is_wanted: _Test) -> None:
        modules = [each.module() for each in self._sets.values()]
        given = [*modules, *self._objects]
        leaks = find_leaks(self._function, given, is_wanted, self._sets)
        leaks = [leak for leak in leaks if not any(ref() is leak.value for ref in self._told)]
        errors = [leak for leak in leaks if leak.is_error]
        if errors:
            back = self._set_back(is_wanted)
            left = [leak for leak in errors if leak.key not in back]
            raise CompileError(errors[0].explain_error(left))
        if leaks:
            self._told += [weakref.ref(leak.value) for leak in leaks]
            _warn("\n".join(x.explain(self._name) for x in leaks[:_MOST]))

    def warn(self) -> None:
        """Warn of attributes of Modules that have tracers now, of whichever trace."""
        for each in self._sets.values():
            for place, value in each.find(context.is_tracer)[:1]:
                leak = Leak(place, value, [], each.line if not place.path else None)
                _warn(leak.explain(self._name))

    def _set_back(self, is_wanted: _Test | None) -> set[tuple[int, str]]:
        """Give attributes that hold tracers their old values; return which did."""
        if is_wanted is None:
            return set()
        held = {key: each for key, each in self._sets.items() if each.find(is_wanted)}
        for each in held.values():
            each.set_back()
        return set(held)


def find_leaks(
    fn: object, objects: Iterable[object], is_wanted: _Test = context.is_tracer,
    sets: dict[tuple[int, str], _Set] | None = None,
) -> list[Leak]:  # fmt: skip
    """Return the places that a function's code can reach and that have tracers, each once.

    Args:
        fn: the function.
        objects: what it is called with.
        is_wanted: returns whether a value is a tracer that counts.
        sets: the attributes that are known to have been set.
    """
    search, known = Search(is_wanted), sets or {}
    roots = [
        (attribute(None, "function"), fn),
        *((Place("argument", None, "arguments"), x) for x in objects),
    ]
    found: dict[Any, Leak] = {}
    for place, value in search.run(roots):
        line = known[key].line if (key := (id(place.owner), place.name)) in known else None
        at, of = None if place.path else line, str(getattr(fn, "__module__", ""))
        leak = Leak(place, value, search.functions, at, of)
        found.setdefault((*leak.key, place.kind), leak)
    return list(found.values())


def _warn(said: str) -> None:
    if RAISES.value:
        raise LeakWarning(said)
    warn_user(said, LeakWarning)


def _is_decided_by_class(module: Module, name: str) -> bool:
    """Return whether setting an attribute does something else, as it does for a property."""
    declared = inspect.getattr_static(type(module), name, None)
    return hasattr(type(declared), "__set__") and not isinstance(declared, MemberDescriptorType)


@final
class _Pure:
    """A function that runs as a pure one, and is traced by JAX: in no compiled function.

    That trace goes on when it has returned. So only attributes of Modules are looked at.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        is_outermost = _LOCAL.watch is None or LOCAL.frame is LOCAL.eager
        is_traced = is_outermost and not context.is_eager()
        self._watch = _Watch(fn, None, getattr(fn, "__name__", "a function")) if is_traced else None

    def __enter__(self) -> None:
        if self._watch is not None:
            _LOCAL.watch = self._watch

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        if self._watch is not None:
            _LOCAL.watch = None
            if error is None:
                self._watch.warn()


def _note_trace() -> AbstractContextManager[object]:
    if _LOCAL.watch is not None:
        _LOCAL.watch.note_trace()
    return nullcontext()


def _note_set(module: Module, name: str) -> None:
    watch = _LOCAL.watch  # which may be over, if Ctrl-C came as it ended
    if watch is not None and LOCAL.frame is not LOCAL.eager:
        watch.note_set(module, name)


def _note_put_back(owner: object, name: str) -> None:
    if _LOCAL.watch is not None and isinstance(owner, Module):
        _LOCAL.watch.note_put_back(owner, name)


def install() -> None:
    """Have each trace that has succeeded looked at."""
    WATCH[0] = _Watch
    AROUND.append(_note_trace)
    SETTING.append(_note_set)
    PUT_BACK.append(_note_put_back)
    PURE[0] = _Pure

"""All that jaxvars knows of JAX's tracing machinery, and the only file that may.

JAX keeps one *current trace* per thread: whoever it is decides what binding a primitive
means (run it, stage it, differentiate it, batch it). Three things are built on that here:

- **Place**: `current`, `strip`, `is_staging`, `at` ask and set which trace we are in. Frames
  (`core/frames.py`) compare traces by identity to tell their own from a foreign transform.
- **Capture**: `read_variable` stages "the value of variable i" as an equation of a trace;
  `capture` traces a function and turns those equations into inputs of the jaxpr.
- **Recorder**: a pass-through trace. It runs each primitive under its parent, hands the
  values back untouched (they are never wrapped) and tells a listener. So a listener sees any
  JAX code, with concrete values and ordinary Python control flow.

Rules this file keeps:
- nothing from `jax._src`; `jax.core` and `jax.extend.core` are imported here and nowhere else;
- four conventions of JAX that its documentation does not promise live here alone: `subfuns=` in
  the bind of custom-derivative calls, `requires_low = False` on a pass-through trace, that a
  staging trace has a frame that makes a jaxpr of equations and constants, and that
  `jax.clear_caches()` clears a `linear_util.cache` by its `cache_clear`;
- a value that a recorded primitive hands back is never the same object as one it was given.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ContextDecorator, nullcontext, suppress
from pathlib import Path
from types import FunctionType
from typing import Any, Protocol, TypeAlias, final

import jax
import jax.core
import numpy as np
from jax.extend import core as jex
from jax.extend import linear_util
from jax.extend.core.primitives import copy_p, remat_p

from jaxvars.tracing.identity import Same, exact, held

Value: TypeAlias = Any  # a jax.Array or a tracer: JAX's own types are only partly public

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


def strip(trace: Trace) -> Trace:
    """Return `trace` without the recorders around it."""
    while isinstance(trace, Recorder):
        trace = trace.parent
    return trace


def is_staging() -> bool:
    """Tell whether operations are being staged into a program instead of run."""
    if strip(current()) is EVAL or put_back():
        return False
    return isinstance(copy_p.bind(_PROBE), Tracer)


def put_back() -> bool:
    """Return whether JAX was left in a trace that is over, and make the one before current again.

    An exception that comes while JAX enters or leaves a trace (Ctrl-C does) can leave it current.
    A trace is over if no function of JAX is under way.
    """
    trace, frame = place(None), sys._getframe(1)
    if strip(trace) is EVAL:
        return False
    while frame is not None:
        if frame.f_code.co_filename.startswith(_JAX_FOLDER):
            return False
        frame = frame.f_back
    at(_ROOTS.innermost()).__enter__()
    return True


_JAX_FOLDER = str(Path(jax.__file__).parent) + os.sep


def restored(error: BaseException) -> BaseException:
    """Return what was raised, and leave no trace of JAX's behind that it broke off.

    JAX makes an error of its own of whatever is raised while it compares what it knows programs by,
    or calls back to compile one, such as a KeyboardInterrupt: that is returned instead. So is what
    ends the program in a callback of the user's; JAX's error is as good for his other exceptions.
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
            return kinds[0](*filter(None, [_told(kinds[0], message.strip())])) if kinds else error
    return error


def _told(kind: type[BaseException], message: str) -> Any:
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
class restoring(ContextDecorator):  # noqa: N801 - used as a statement, `with restoring()`
    """Have what is raised go through `restored`: by a statement, or by a function."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None = None, *__: object) -> None:
        if error is not None and (found := restored(error)) is not error:
            raise found from error


def evaluating() -> AbstractContextManager[object]:
    """Return a context in which a signal handler computes that came in the middle of a bind."""
    return at(EVAL) if place(None) is None else nullcontext()


def is_differentiated() -> bool:
    """Tell whether what runs now is itself recorded, or differentiated or batched as it runs."""
    return isinstance(current(), Recorder) or (current() is not EVAL and not is_staging())


def is_tracer(value: object) -> bool:
    """Tell whether `value` stands for a value that is not known yet."""
    return isinstance(value, Tracer)


def is_known(value: object) -> bool:
    """Tell whether Python can decide by `value`: it is no tracer, or one with a value."""
    return not isinstance(value, Tracer) or value.to_concrete_value() is not None


_PROBE = 0.0


@restoring()
def fresh(value: Value) -> Value:
    """Return the same value as a new object: a copy when run, free in a compiled program."""
    return copy_p.bind(value)


_copy = jax.jit(copy_p.bind)  # JAX runs it faster than the operation alone


def copied(value: Value) -> Value:
    """Return a value that is known in memory of its own; strings, which never change, as it is."""
    if not isinstance(value, jax.Array):
        return value
    with at(EVAL):  # unseen by tapes
        return _copy(value)


def aval_of(value: Value) -> Any:
    """Return the abstract value of `value`, as a strongly typed one."""
    aval = jax.typeof(value)
    return aval.update(weak_type=False) if getattr(aval, "weak_type", False) else aval


remembering = jax.make_user_context(None)
"""A context manager: what JAX remembers of inner functions under one key is used under no other.

JAX keeps the traces of jitted and checkpointed functions and of scan bodies by function and
shapes. Such a trace holds the values of variables that were read in it, as constants.
"""


_COUNT = itertools.count(1)
_KEPT = 4096  # settings that are known at a time
_FUNCTION = linear_util.wrap_init(
    lambda: None, debug_info=jex.DebugInfo("settings", "settings", (), None)
)
_SETTING = threading.RLock()  # so that two threads give the same settings the same number


def _new_number(*_: Any) -> int:
    number = next(_COUNT)
    if number % _KEPT == 0:
        _forget()
    return number


_number: Any = linear_util.cache(_new_number)  # JAX keeps one for each state of its settings
_forget, _number.cache_clear = _number.cache_clear, lambda: None  # `jax.clear_caches()` keeps them


def settings() -> int:
    """Return a number for all that `jax.jit` takes into account besides a function's arguments.

    JAX says itself which settings these are: each has part in the keys of its caches. It leaves out
    what random keys are made of by default, and whether numbers are checked.
    """
    with _SETTING, at(EVAL), remembering(None):
        try:
            devices = jax.sharding.get_mesh()
        except ValueError:  # inside of a map with a named axis
            devices = None
        return _number(_FUNCTION, devices, key_maker(), numbers_are_checked())


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


new_primitive = jex.Primitive


# ---------------------------------------------------------------- capture
read_variable_p = new_primitive("read_variable")
read_variable_p.def_abstract_eval(lambda *, index, aval: aval)


def read_variable(trace: Trace, index: int, aval: Any) -> Value:
    """Stage the value of variable `index` in `trace`, whatever trace is current."""
    with at(trace):
        return read_variable_p.bind(index=index, aval=aval)


@restoring()
def capture(fn: Callable[..., Any], specs: Sequence[Any]) -> tuple[Any, list[int]]:
    """Trace `fn` once and make the variables that it read the first inputs.

    Args:
        fn: takes values like `specs`, positionally; returns a pytree of arrays.
        specs: arrays, numbers or `jax.ShapeDtypeStruct`.

    Returns:
        The closed jaxpr with one input per variable before those of `specs`, and the
        indices of these variables, as given to `read_variable`.
    """
    return _with_variables(jax.make_jaxpr(fn)(*specs))


@final
class Resumed:
    """What is needed to make a program of a trace that was broken off, even after its body.

    Args:
        trace: that stages, before anything is staged in it.
    """

    def __init__(self, trace: Any) -> None:
        self._trace = trace
        self._held = trace.frame.tracing_eqns, trace.frame.constvar_to_val  # JAX lets go of them

    def capture(self, values: Sequence[Value]) -> tuple[Any, list[int]]:
        """Return what `capture` would return for a function with these results."""
        frame = self._trace.frame
        frame.tracing_eqns, frame.constvar_to_val = self._held
        outputs = [self._trace.to_jaxpr_tracer(x, None) for x in values]
        info = frame.debug_info._replace(result_paths=None)
        jaxpr, consts = frame.to_jaxpr(self._trace, outputs, info, None)
        if hasattr(jaxpr, "with_consts"):  # pragma: no cover - JAX 0.12 made them one class
            return _with_variables(jaxpr.with_consts(consts))
        return _with_variables(jex.ClosedJaxpr(jaxpr, consts))  # pragma: no cover - before


def _with_variables(closed: Any) -> tuple[Any, list[int]]:
    jaxpr = open_jaxpr(closed)
    reads = [eqn for eqn in jaxpr.eqns if eqn.primitive is read_variable_p]
    names = tuple(f"variable_{eqn.params['index']}" for eqn in reads)
    info = jaxpr.debug_info
    eqns = [eqn for eqn in jaxpr.eqns if eqn.primitive is not read_variable_p]
    opened = jaxpr.replace(
        invars=[*(eqn.outvars[0] for eqn in reads), *jaxpr.invars],
        eqns=_needed(eqns, jaxpr.outvars)[0],
        debug_info=info._replace(arg_names=names + tuple(info.arg_names or ())),
    )
    return _closed(closed, opened), [eqn.params["index"] for eqn in reads]


def last_outputs(closed: Any, count: int) -> tuple[Any, list[bool]]:
    """Return a closed jaxpr of the last `count` outputs, and which inputs it still has."""
    jaxpr = open_jaxpr(closed)
    outputs = jaxpr.outvars[len(jaxpr.outvars) - count :]
    eqns, needed = _needed([e for e in jaxpr.eqns if not e.effects], outputs)
    used = [var in needed for var in jaxpr.invars]
    return _closed(closed, _sliced(jaxpr, used, eqns, outputs, result_paths=None)), used


def _sliced(jaxpr: Any, used: list[bool], eqns: Any, outputs: Any, **changes: Any) -> Any:
    """Return a jaxpr with some of its inputs, and other equations and outputs."""
    info = jaxpr.debug_info
    names = info.arg_names and tuple(itertools.compress(info.arg_names, used))
    return jaxpr.replace(
        invars=list(itertools.compress(jaxpr.invars, used)),
        eqns=eqns,
        outvars=outputs,
        debug_info=info._replace(arg_names=names, **changes),
    )


def without(closed: Any, primitive: Any, count: int) -> tuple[Any, list[bool]]:
    """Take an operation that hands its first input on out of a program.

    Returns:
        The closed jaxpr, and which of its first `count` inputs it still has: the others are
        not needed any more.
    """
    jaxpr = open_jaxpr(closed)
    if not any(eqn.primitive is primitive for eqn in jaxpr.eqns):
        return closed, [True] * count
    same: dict[Any, Any] = {}
    eqns: list[Any] = []
    for old in jaxpr.eqns:
        eqn = old.replace(invars=[_same(var, same) for var in old.invars])
        if eqn.primitive is primitive:
            same[eqn.outvars[0]] = eqn.invars[0]
        else:
            eqns.append(eqn)
    outputs = [_same(var, same) for var in jaxpr.outvars]
    eqns, needed = _needed(eqns, outputs)
    kept = [var in needed for var in jaxpr.invars[:count]] + [True] * len(jaxpr.invars[count:])
    return _closed(closed, _sliced(jaxpr, kept, eqns, outputs)), kept[:count]


def _closed(like: Any, jaxpr: Any) -> Any:
    return jaxpr if open_jaxpr(like) is like else like.replace(jaxpr=jaxpr)


def _needed(eqns: Sequence[Any], outputs: Sequence[Any]) -> tuple[list[Any], set[Any]]:
    """Return the equations that outputs or effects depend on, and the variables they use."""
    needed = {var for var in outputs if not isinstance(var, jex.Literal)}
    kept: list[Any] = []
    for eqn in reversed(eqns):
        if eqn.effects or any(var in needed for var in eqn.outvars):
            kept.append(eqn)
            needed.update(var for var in eqn.invars if not isinstance(var, jex.Literal))
    return kept[::-1], needed


def _same(var: Any, same: dict[Any, Any]) -> Any:
    return var if isinstance(var, jex.Literal) else same.get(var, var)


def _value_key(value: Any) -> Any:
    """Return what stands for an input of an operation: a number by its type and bits."""
    if isinstance(value, jax.Array) or np.ndim(value):
        return Same(value)
    return jax.typeof(value), np.asarray(value).tobytes()


def _program_key(program: Any) -> Any:
    """Return what two programs that compute the same, in the same order, have in common."""
    jaxpr = open_jaxpr(program)
    numbers: dict[Any, int] = {}

    def number(var: Any) -> Any:
        if isinstance(var, jex.Literal):
            return var.aval, _value_key(var.val)
        return numbers.setdefault(var, len(numbers)), var.aval

    rows: list[Any] = [tuple(map(Same, getattr(program, "consts", ())))]
    rows.append(tuple(map(number, [*jaxpr.constvars, *jaxpr.invars])))
    for eqn in jaxpr.eqns:
        params = tuple((name, _param_key(value)) for name, value in eqn.params.items())
        ends = tuple(map(number, eqn.invars)), tuple(map(number, eqn.outvars))
        rows.append((eqn.primitive, params, *ends, eqn.ctx))
    return (*rows, tuple(map(number, jaxpr.outvars)))


def _param_key(value: Any) -> Any:
    is_program = hasattr(open_jaxpr(value), "eqns")
    return _program_key(value) if is_program else exact(value, held)


def closure(
    fn: Callable[..., Any], specs: Sequence[Any]
) -> tuple[Callable[..., list[Value]], list[Value]]:
    """Return `fn`, traced, as a function of (what it closed over, arguments), and the former."""
    return opened(jax.make_jaxpr(fn)(*specs))


def opened(closed: Any) -> tuple[Callable[..., list[Value]], list[Value]]:
    """Return a closed jaxpr as a function of (what it closed over, arguments), and the former."""
    jaxpr = _without_constants(closed)
    return lambda consts, args: jax.core.eval_jaxpr(jaxpr, consts, *args), list(closed.consts)


def _without_constants(closed: Any) -> Any:
    """Return the jaxpr inside a closed one, which keeps nothing of what it closed over."""
    jaxpr = open_jaxpr(closed)
    return jaxpr if jaxpr is not closed else jaxpr.replace(consts=[])


def open_jaxpr(closed: Any) -> Any:
    """Return the jaxpr inside a closed one (JAX 0.12 made them one class)."""
    return getattr(closed, "jaxpr", closed)


def jaxpr_function(closed: Any) -> Callable[..., list[Value]]:
    """Return a closed jaxpr as a function from flat inputs to a list of outputs."""
    return jex.jaxpr_as_fun(closed)


def flat_function(closed: Any) -> Callable[..., list[Value]]:
    """Return a closed jaxpr as a function that runs what stands twice in it once.

    Inner jitted functions are opened. XLA divides a program among devices before it merges what is
    equal, and would have the devices exchange the same data twice.
    """

    def run(*values: Value) -> list[Value]:
        return _run_flat(closed, values, {})

    return run


def _run_flat(closed: Any, values: Iterable[Value], known: dict[Any, Any]) -> list[Value]:
    jaxpr = open_jaxpr(closed)
    found: dict[Any, Value] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    found.update(zip(jaxpr.invars, values, strict=True))
    for eqn in jaxpr.eqns:
        inputs = [x.val if isinstance(x, jex.Literal) else found[x] for x in eqn.invars]
        if eqn.primitive.name == "jit" and _asks_nothing(eqn.params):
            outputs = _run_flat(eqn.params["jaxpr"], inputs, known)
        else:
            outputs = _run_once(eqn, inputs, known)
        found.update(zip(eqn.outvars, outputs, strict=True))
    return [x.val if isinstance(x, jex.Literal) else found[x] for x in jaxpr.outvars]


def _asks_nothing(params: dict[str, Any]) -> bool:
    """Tell whether a jitted function says nothing of shardings or options."""
    places = [*params.get("in_shardings", ()), *params.get("out_shardings", ())]
    return not params.get("compiler_options_kvs") and all(
        type(place).__name__ == "UnspecifiedValue" for place in places
    )


CUSTOM = frozenset({"custom_jvp_call", "custom_vjp_call"})
"""The operations with a derivative of their own."""


def _run_once(eqn: Any, inputs: list[Value], known: dict[Any, Any]) -> Sequence[Value]:
    single = eqn.effects or is_single(eqn.primitive.name, eqn.params)
    key = None if single else _call_key(eqn, inputs)
    if key is None or key not in known:
        scope = str(eqn.source_info.name_stack)
        with jax.named_scope(scope) if scope else nullcontext(), eqn.ctx.manager:
            made = eqn.primitive.bind(*inputs, **eqn.primitive.get_bind_params(eqn.params))
        outputs = made if eqn.primitive.multiple_results else [made]
        if key is None:
            return outputs
        known[key] = outputs
    return known[key]


def _call_key(eqn: Any, inputs: list[Value]) -> Any:
    """Return what names the results of an operation; it keeps its inputs, known by identity."""
    is_custom = eqn.primitive.name in CUSTOM  # the same if it computes the same: nobody derives it
    params = _program_key(eqn.params["call_jaxpr"]) if is_custom else exact(eqn.params, held)
    return eqn.primitive, tuple(map(_value_key, inputs)), params, eqn.ctx


def is_single(name: str, params: dict[str, Any]) -> bool:
    """Return whether an operation that stands twice has to run twice: it draws, or has effects."""
    inside = [open_jaxpr(jaxpr) for jaxpr in inner_jaxprs(params)]
    draws = "rng_uniform" in {name}.union(*map(primitives_in, inside))
    return draws or any(jaxpr.effects for jaxpr in inside)


def has_users_rule(closed: Any) -> bool:
    """Return whether a function with a rule of a user's is called in a program, or in its jits."""
    eqns = open_jaxpr(closed).eqns
    jits = (eqn.params["jaxpr"] for eqn in eqns if eqn.primitive.name == "jit")
    return any(map(runs_users_code, eqns)) or any(map(has_users_rule, jits))


def with_rules(
    closed: Any,
    values: Iterable[Value],
    call: Callable[[Callable[..., Any], Any, int], Sequence[Value]],
) -> list[Value]:
    """Run a program, but for the functions with a rule of a user's.

    Args:
        closed: the program.
        values: its inputs.
        call: takes such a function, a list of its inputs, and how many of them, the first ones, it
            has closed over; returns its results.
    """
    jaxpr = open_jaxpr(closed)
    found: dict[Any, Value] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    found.update(zip(jaxpr.invars, values, strict=True))
    for eqn in jaxpr.eqns:
        inputs = [x.val if isinstance(x, jex.Literal) else found[x] for x in eqn.invars]
        bind = functools.partial(_bind, eqn)
        if runs_users_code(eqn):
            outputs = call(bind, inputs, eqn.params["num_consts"])
        elif eqn.primitive.name == "jit" and has_users_rule(eqn.params["jaxpr"]):
            outputs = with_rules(eqn.params["jaxpr"], inputs, call)
        else:
            outputs = bind(*inputs)
        found.update(zip(eqn.outvars, outputs, strict=True))
    return [x.val if isinstance(x, jex.Literal) else found[x] for x in jaxpr.outvars]


def _bind(eqn: Any, *inputs: Value) -> Sequence[Value]:
    with eqn.ctx.manager:
        made = eqn.primitive.bind(*inputs, **eqn.primitive.get_bind_params(eqn.params))
    return made if eqn.primitive.multiple_results else [made]


def inner_jaxprs(params: dict[str, Any]) -> Iterable[Any]:
    """Yield the jaxprs that an equation's parameters hold."""
    return jex.jaxprs_in_params(params)


_PRIMITIVES: weakref.WeakKeyDictionary[Any, frozenset[str]] = weakref.WeakKeyDictionary()


def primitives_in(program: Any) -> frozenset[str]:
    """Return the names of all primitives in a jaxpr and in those it contains."""
    jaxpr = open_jaxpr(program)
    if jaxpr not in _PRIMITIVES:
        names = {eqn.primitive.name for eqn in jaxpr.eqns}
        inside = (inner for eqn in jaxpr.eqns for inner in inner_jaxprs(eqn.params))
        _PRIMITIVES[jaxpr] = frozenset(names.union(*map(primitives_in, inside)))
    return _PRIMITIVES[jaxpr]


def largest_value(jaxpr: Any) -> int:
    """Return the bytes of the largest value that a jaxpr, or one that it contains, computes."""
    largest, todo = 0, [open_jaxpr(jaxpr)]
    while todo:
        for eqn in todo.pop().eqns:
            shaped = [var.aval for var in eqn.outvars if hasattr(var.aval, "dtype")]
            largest = max([largest, *(aval.size * aval.dtype.itemsize for aval in shaped)])
            todo.extend(map(open_jaxpr, inner_jaxprs(eqn.params)))
    return largest


def has_primitive(program: Any, wanted: Callable[[str], bool], *, outside: str) -> bool:
    """Return whether a program has an operation of a wanted name outside of a named scope."""
    return any(
        wanted(eqn.primitive.name)
        or any(has_primitive(p, wanted, outside=outside) for p in inner_jaxprs(eqn.params))
        for eqn in open_jaxpr(program).eqns
        if outside not in str(eqn.source_info.name_stack)
    )


def integers_in(jaxpr: Any) -> set[int]:
    """Return the single integers that are constants of a jaxpr or of those it contains."""
    found: set[int] = set()
    todo = [jaxpr]
    while todo:
        closed = todo.pop()
        known = [var.val for eqn in open_jaxpr(closed).eqns for var in _literals(eqn)]
        known += getattr(closed, "consts", ())
        found.update(int(x) for x in known if _is_integer(x))
        for eqn in open_jaxpr(closed).eqns:
            todo += inner_jaxprs(eqn.params)
    return found


def _literals(eqn: Any) -> list[Any]:
    return [var for var in eqn.invars if isinstance(var, jex.Literal)]


def _is_integer(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return isinstance(value, int) or (kind in ("i", "u") and not value.shape)


_ITERATING = frozenset({"while", "scan", "cond", "custom_vjp_call", "pure_callback"})


def is_light(program: Any, limit: int) -> bool:
    """Tell whether a program is at most `limit` operations, without effects, loops or branches."""
    jaxpr = open_jaxpr(program)
    todo, count = [jaxpr], 0
    while todo and not jaxpr.effects:
        for eqn in todo.pop().eqns:
            inner = [open_jaxpr(found) for found in inner_jaxprs(eqn.params)]
            todo += inner
            count += not inner
            if eqn.primitive.name in _ITERATING:
                return False
    return count <= limit and not jaxpr.effects


def carried_by_scan(params: dict[str, Any]) -> slice:
    """Return which inputs of a scan are its carry."""
    if "ft_in" in params:  # pragma: no cover - from JAX 0.12 on
        sizes = [len(list(part)) for part in params["ft_in"].unpack()[:2]]
    else:  # pragma: no cover - before
        sizes = [params["num_consts"], params["num_carry"]]
    return slice(sizes[0], sum(sizes))


def while_loops(name: str, params: dict[str, Any]) -> list[str]:
    """Return "f at file.py:12" of the condition of each while loop in an operation."""
    found = []
    if name == "while":
        info = open_jaxpr(params["cond_jaxpr"]).debug_info
        function, _, line = (info.func_src_info or "").partition(" at ")
        found = [f"{function} at {Path(line).name}" if line else function]
    for jaxpr in inner_jaxprs(params):
        for eqn in open_jaxpr(jaxpr).eqns:
            found += while_loops(eqn.primitive.name, eqn.params)
    return found


def run_inside(equation: Equation, listener: Listener) -> list[Value]:
    """Run an operation such that a listener sees what runs inside of it.

    A jitted function becomes a part of the program around it. The blocks of JAX's loops and
    branches are traced again; those of other operations are not seen.
    """
    name, params = equation.name, equation.params
    if name in ("jit", remat_p.name):
        with recording(listener):
            return _evaluated(params["jaxpr"], equation.inputs)
    if name not in ("cond", "scan", "while"):
        return list(equation.function(*equation.inputs))

    def heard(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(heard, value))
        if not hasattr(open_jaxpr(value), "eqns"):
            return value

        def run(*values: Value) -> list[Value]:
            with recording(listener):
                return _evaluated(value, values)

        return jax.make_jaxpr(run)(*value.in_avals)

    params = {name: heard(value) for name, value in params.items()}
    return list(equation.function(*equation.inputs, **params))


def _evaluated(program: Any, values: Sequence[Value]) -> list[Value]:
    return jax.core.eval_jaxpr(open_jaxpr(program), getattr(program, "consts", ()), *values)


# ---------------------------------------------------------------- recorder
class Listener(Protocol):
    """Who a Recorder tells of the primitives that pass."""

    def wants(self, inputs: Sequence[Value]) -> bool:
        """Tell whether an operation on `inputs` is of interest."""
        ...

    def run(self, equation: Equation, staged: bool) -> list[Value]:
        """Run an equation of interest (the parent trace is current); return its outputs."""
        ...


@final
class Equation:
    """One primitive as it ran: a pure function of `inputs`.

    Attributes:
        name: the primitive's name.
        function: takes values like `inputs`, returns the list of outputs. That of a loop or
            branch takes other parameters, too.
        inputs: the values that it was applied to.
        params: the primitive's parameters.
    """

    __slots__ = ("function", "inputs", "name", "params")

    def __init__(
        self,
        name: str,
        function: Callable[..., list[Value]],
        inputs: Sequence[Value],
        params: dict[str, Any],
    ) -> None:
        self.name = name
        self.function = function
        self.inputs = inputs
        self.params = params

    def key(self) -> tuple[Any, ...]:
        """Return what names the function: equal keys, same function of the inputs."""
        params = tuple((name, _hashable(value)) for name, value in self.params.items())
        return (self.name, len(self.inputs), params)


def _hashable(value: Any) -> object:
    """Return what stands for a parameter in a key; a program or function is not kept alive."""
    if isinstance(value, tuple) and any(hasattr(part, "transforms") for part in value):
        return tuple(map(_function_key, value))
    if callable(value) or hasattr(value, "eqns"):
        return _reference(value)
    return exact(value, held)


def _function_key(wrapped: Any) -> object:
    """Return what names one of the functions of a custom-derivative call."""
    steps = tuple((rule, tuple(map(_given_key, given))) for rule, given in wrapped.transforms)
    return (_reference(wrapped.f), steps)


def _given_key(given: Any) -> object:
    if isinstance(given, tuple):  # arguments that are not differentiated, each in a wrapper
        return tuple(_hashable(getattr(part, "val", part)) for part in given)
    return _hashable(given)


_RULES = ("subfuns", "jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd")


def runs_users_code(equation: Any) -> bool:
    """Return whether to differentiate an operation may run Python that reads what it likes."""
    return not all(_is_jaxs_own(equation.params.get(name)) for name in _RULES)


def _is_jaxs_own(part: Any) -> bool:
    """Return whether what a custom-derivative call holds calls no function but JAX's own."""
    if isinstance(part, tuple | list):
        return all(map(_is_jaxs_own, part))
    if hasattr(part, "transforms"):
        return _is_jaxs_own(part.f) and _is_jaxs_own(part.transforms)
    if not callable(part) or isinstance(part, type):
        return True
    if not isinstance(part, FunctionType):
        inner = getattr(part, "__wrapped__", None)
        return inner is not None and _is_jaxs_own(inner)
    held = [cell.cell_contents for cell in part.__closure__ or ()]
    return part.__code__.co_filename.startswith(_JAX_FOLDER) and _is_jaxs_own(held)


def _reference(value: Any) -> object:
    if getattr(value, "__qualname__", "").startswith("transformation_with_aux"):
        return None  # JAX makes one for each call, to say what form the outputs had
    try:
        return weakref.ref(value)
    except TypeError:
        return Same(value)


@final
class Recorder(Trace):
    """A trace that runs everything under `parent` and lets a listener see it."""

    __slots__ = ("_child", "listener", "parent")

    def __init__(self, parent: Trace) -> None:
        super().__init__()
        self.parent = parent
        self.listener: Any = None
        self._child: Recorder | None = None
        self.requires_low = False  # pass calls on whole; the parent lowers what it must

    def child(self) -> Recorder:
        """Return the recorder to put on this one."""
        if self._child is None:
            self._child = Recorder(self)
        return self._child

    def stage_value(self, val: Value) -> Value:
        """Lift a value as the parent would."""
        return self.parent.stage_value(val)

    def process_primitive(self, primitive: Any, tracers: Any, params: dict[str, Any], /) -> Any:
        """Run a primitive."""
        if primitive.name == "jit":
            return self._process_jit(primitive, tracers, params)
        if primitive.multiple_results:
            self._refuse_hidden_arrays(primitive.name, params)
            return self._pass(
                primitive.name,
                lambda *xs, **other: primitive.bind(*xs, **(other or params)),
                tracers,
                params,
            )
        return self._pass(
            primitive.name, lambda *xs: [primitive.bind(*xs, **params)], tracers, params
        )[0]

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, **params: Any
    ) -> list[Value]:
        """Run a `jax.custom_jvp` function, keeping its rule."""
        params["subfuns"] = (fun, jvp)
        return self._pass(primitive.name, _Repeatable(primitive, params), tracers, params)

    def process_custom_vjp_call(
        self, primitive: Any, fun: Any, fwd: Any, bwd: Any, tracers: Any, /, **params: Any
    ) -> list[Value]:
        """Run a `jax.custom_vjp` function, keeping its rule."""
        params["subfuns"] = (fun, fwd, bwd)
        return self._pass(primitive.name, _Repeatable(primitive, params), tracers, params)

    def process_call(self, primitive: Any, f: Any, tracers: Any, params: Any, /) -> list[Value]:
        """Run the body of a call primitive, one operation after the other."""
        with at(self):
            return f.call_wrapped(*tracers)

    def process_shard_map(self, primitive: Any, fun: Any, tracers: Any, /, **params: Any) -> Any:
        """Run a shard_map as a jitted function, whose body is traced now: it is for one call."""
        form: list[Any] = []

        def call(*xs: Value) -> list[Value]:
            form[:] = [primitive.bind(*xs, subfuns=(fun,), **params)]
            return list(form[0])

        with at(strip(self)):
            closed = jax.make_jaxpr(call)(*tracers)
        program, run = _opened(closed)
        params = {"jaxpr": program}
        self._refuse_hidden_arrays("shard_map", params)
        outputs = iter(self._pass("jit", run, [*closed.consts, *tracers], params))
        return form[0].map(lambda _: next(outputs))

    def _process_jit(self, primitive: Any, args: Any, params: dict[str, Any]) -> list[Value]:
        """Run a jitted function, with the arrays it closed over as inputs if they matter."""
        closed = params["jaxpr"]
        if (hidden := _hidden_arrays(closed)) and self._follows(hidden):
            with at(self):  # one operation after the other, so that inner functions are seen
                return jax.core.eval_jaxpr(open_jaxpr(closed), closed.consts, *args)
        if closed.consts and self._follows(closed.consts):
            program, call = _opened(closed)
            return self._pass("jit", call, [*closed.consts, *args], {"jaxpr": program})
        return self._pass("jit", lambda *xs: primitive.bind(*xs, **params), args, params)

    def _refuse_hidden_arrays(self, name: str, params: dict[str, Any]) -> None:
        for jaxpr in inner_jaxprs(params):
            if (hidden := _hidden_arrays(jaxpr)) and self._follows(hidden):
                raise NotImplementedError(
                    f"A jitted function called inside a {name} closes over an array that a "
                    "GradientTape follows, where its gradient would be lost. Pass the array as "
                    "an argument:\n"
                    "    f = jax.jit(lambda x, h: x * h)    # not: jax.jit(lambda x: x * h)"
                )

    def _follows(self, values: Sequence[Value]) -> bool:
        """Tell whether what is computed from values that were closed over is of interest."""
        return getattr(self.listener, "follows", True) and self.listener.wants(values)

    def _pass(
        self, name: str, function: Callable[..., Any], inputs: Any, params: dict[str, Any]
    ) -> list[Value]:
        with at(self.parent):
            if self.listener is None or not self.listener.wants(inputs):
                return function(*inputs)
            kept = [x.copy() if isinstance(x, np.ndarray) else x for x in inputs]
            equation = Equation(name, function, kept, params)  # the caller may write to his own
            return self.listener.run(equation, strip(self.parent) is not EVAL)


@final
class recording:  # noqa: N801 - used as a statement: `with recording(listener)`
    """Let a listener see what runs from here on.

    Recorders are used again: jit keeps an entry in its cache for every trace that it has met,
    and once that cache is full every jitted call in the process takes its slow path.
    """

    __slots__ = ("_before", "_listener", "_recorder", "in_order")

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.in_order = True  # False after it was closed before one that was opened in it
        self._recorder: Recorder | None = None

    def __enter__(self) -> None:
        self._before = current()
        self._recorder = _free_recorder(self._before)
        self._recorder.listener = self._listener
        at(self._recorder).__enter__()

    def __exit__(self, *_: object) -> None:
        """Go back, also where `__enter__` was interrupted."""
        if self._recorder is not None:  # pragma: no branch - it is left again after Ctrl-C
            self.in_order = place(None) is self._recorder or not self._is_out_of_order()
            if self._recorder.listener is self._listener:  # else an outer one has closed it
                at(self._before).__enter__()
                self._recorder.listener = None
            self._recorder = None

    def _is_out_of_order(self) -> bool:
        """Close recorders that were put on this one; return whether it or they close too early."""
        trace, inner = current(), list[Recorder]()
        while isinstance(trace, Recorder) and trace is not self._recorder:
            inner.append(trace)
            trace = trace.parent
        if self._recorder is None or self._recorder.listener is not self._listener:
            return True
        for recorder in inner if trace is self._recorder else ():
            recorder.listener = None
        return trace is self._recorder and bool(inner)


@final
class _Roots(threading.local):
    """The recorder that each thread puts directly on `EVAL`."""

    def __init__(self) -> None:
        self.recorder = Recorder(EVAL)

    def innermost(self) -> Trace:
        """Return the last recorder in use, or `EVAL`."""
        trace, found = EVAL, self.recorder
        while found is not None and found.listener is not None:
            trace, found = found, found._child
        return trace


_ROOTS = _Roots()


def _free_recorder(parent: Trace) -> Recorder:
    if parent is EVAL:
        found = _ROOTS.recorder
    elif isinstance(parent, Recorder):
        found = parent.child()
    else:
        return Recorder(parent)
    return found if found.listener is None else Recorder(parent)


def _is_taken(note: Any) -> bool:
    try:
        return note.val is not note  # one of the two kinds has no other way to ask
    except Exception:  # noqa: BLE001 - JAX's own, which is private
        return False


@final
class _Repeatable:
    """A custom-derivative call that can be made more than once.

    JAX makes its functions for one call, and notes in each what form its outputs had.
    """

    __slots__ = ("_params", "_primitive")

    def __init__(self, primitive: Any, params: dict[str, Any]) -> None:
        self._primitive = primitive
        self._params = params

    def __call__(self, *inputs: Value) -> list[Value]:
        notes = [note for f in self._params["subfuns"] for note in f.stores if _is_taken(note)]
        noted = [note.val for note in notes]
        for note in notes:
            note.reset()
        try:
            return self._primitive.bind(*inputs, **self._params)
        finally:
            for note, value in zip(notes, noted, strict=True):
                if not _is_taken(note):
                    note.store(value)


_OPENED: weakref.WeakKeyDictionary[Any, tuple[Any, Any]] = weakref.WeakKeyDictionary()
_HIDDEN: weakref.WeakKeyDictionary[Any, list[Value]] = weakref.WeakKeyDictionary()


def _opened(closed: Any) -> tuple[Any, Callable[..., list[Value]]]:
    """Return a jitted function's program without constants, and it as a function of these too."""
    if closed not in _OPENED:
        program, n = _without_constants(closed), len(closed.consts)
        call = jax.jit(lambda *xs: jax.core.eval_jaxpr(program, list(xs[:n]), *xs[n:]))
        _OPENED[closed] = program, call
    return _OPENED[closed]


def _hidden_arrays(closed: Any) -> list[Value]:
    """Return the arrays that jitted functions inside of a program closed over."""
    jaxpr = open_jaxpr(closed)
    if jaxpr not in _HIDDEN:
        _HIDDEN[jaxpr] = found = []
        for eqn in jaxpr.eqns:
            if eqn.primitive.name == "jit":
                found += [x for x in eqn.params["jaxpr"].consts if isinstance(x, jax.Array)]
            for inner in inner_jaxprs(eqn.params):
                found += _hidden_arrays(inner)
    return _HIDDEN[jaxpr]

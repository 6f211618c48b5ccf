"""All that jaxvars knows of JAX's tracing machinery, and the only file that may.

JAX keeps one *current trace* per thread: whoever it is decides what binding a primitive
means (run it, stage it, differentiate it, batch it). Three things are built on that here:

- **Place**: `current`, `strip`, `is_staging`, `at` ask and set which trace we are in. Frames
  (`_frames.py`) compare traces by identity to tell their own from a foreign transform.
- **Capture**: `read_variable` stages "the value of variable i" as an equation of a trace;
  `capture` traces a function and turns those equations into inputs of the jaxpr.
- **Recorder**: a pass-through trace. It runs each primitive under its parent, hands the
  values back untouched (they are never wrapped) and tells a listener. So a listener sees any
  JAX code, with concrete values and ordinary Python control flow.

Rules this file keeps:
- nothing from `jax._src`; `jax.core` and `jax.extend.core` are imported here and nowhere else;
- two conventions of JAX that its documentation does not promise live here alone: `subfuns=`
  in the bind of custom-derivative calls, and `requires_low = False` on a pass-through trace;
- a value that a recorded primitive hands back is never the same object as one it was given.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol, TypeAlias, final

import jax
import jax.core
from jax.extend import core as jex
from jax.extend.core.primitives import copy_p

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
    if strip(current()) is EVAL:
        return False
    return isinstance(copy_p.bind(_PROBE), Tracer)


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


def fresh(value: Value) -> Value:
    """Return the same value as a new object: a copy when run, free in a compiled program."""
    return copy_p.bind(value)


def aval_of(value: Value) -> Any:
    """Return the abstract value of `value`, as a strongly typed one."""
    aval = jax.typeof(value)
    return aval.update(weak_type=False) if getattr(aval, "weak_type", False) else aval


remembering = jax.make_user_context(None)
"""A context manager: what JAX remembers of inner functions under one key is used under no other.

JAX keeps the traces of jitted and checkpointed functions and of scan bodies by function and
shapes. Such a trace holds the values of variables that were read in it, as constants.
"""


new_primitive = jex.Primitive


# ---------------------------------------------------------------- capture
read_variable_p = new_primitive("read_variable")
read_variable_p.def_abstract_eval(lambda *, index, aval: aval)


def read_variable(trace: Trace, index: int, aval: Any) -> Value:
    """Stage the value of variable `index` in `trace`, whatever trace is current."""
    with at(trace):
        return read_variable_p.bind(index=index, aval=aval)


def capture(fn: Callable[..., Any], specs: Sequence[Any]) -> tuple[Any, list[int]]:
    """Trace `fn` once and make the variables that it read the first inputs.

    Args:
        fn: takes values like `specs`, positionally; returns a pytree of arrays.
        specs: arrays, numbers or `jax.ShapeDtypeStruct`.

    Returns:
        The closed jaxpr with one input per variable before those of `specs`, and the
        indices of these variables, as given to `read_variable`.
    """
    closed = jax.make_jaxpr(fn)(*specs)
    jaxpr = open_jaxpr(closed)
    reads = [eqn for eqn in jaxpr.eqns if eqn.primitive is read_variable_p]
    names = tuple(f"variable_{eqn.params['index']}" for eqn in reads)
    info = jaxpr.debug_info
    eqns, outputs = _merged([e for e in jaxpr.eqns if e.primitive is not read_variable_p], jaxpr)
    opened = jaxpr.replace(
        invars=[*(eqn.outvars[0] for eqn in reads), *jaxpr.invars],
        eqns=_needed(eqns, outputs)[0],
        outvars=outputs,
        debug_info=info._replace(arg_names=names + tuple(info.arg_names or ())),
    )
    return _closed(closed, opened), [eqn.params["index"] for eqn in reads]


def last_outputs(closed: Any, count: int) -> tuple[Any, list[bool]]:
    """Return a closed jaxpr with the last `count` outputs only, and which inputs these need."""
    jaxpr = open_jaxpr(closed)
    outputs = jaxpr.outvars[len(jaxpr.outvars) - count :]
    eqns, needed = _needed([e for e in jaxpr.eqns if not e.effects], outputs)
    info = jaxpr.debug_info._replace(result_paths=None)
    sliced = jaxpr.replace(outvars=outputs, eqns=eqns, debug_info=info)
    return _closed(closed, sliced), [var in needed for var in jaxpr.invars]


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
    info = jaxpr.debug_info
    names = info.arg_names and tuple(itertools.compress(info.arg_names, kept))
    opened = jaxpr.replace(
        invars=list(itertools.compress(jaxpr.invars, kept)),
        eqns=eqns,
        outvars=outputs,
        debug_info=info._replace(arg_names=names),
    )
    return _closed(closed, opened), kept[:count]


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


def _merged(eqns: Sequence[Any], jaxpr: Any) -> tuple[list[Any], list[Any]]:
    """Drop copies and equations that stand there already; return the rest and the outputs.

    A tape's replay writes the forward pass a second time. XLA would merge the two, but later.
    """
    same: dict[Any, Any] = {}
    known: dict[Any, Any] = {}
    kept: list[Any] = []
    for old in eqns:
        eqn = old.replace(invars=[_same(var, same) for var in old.invars])
        key = None if eqn.effects else _equation_key(eqn)
        first = known.setdefault(key, eqn) if key is not None else eqn
        if eqn.primitive is copy_p:
            same[eqn.outvars[0]] = eqn.invars[0]
        elif first is eqn or any(isinstance(var, jex.DropVar) for var in first.outvars):
            kept.append(eqn)
        else:
            same.update(zip(eqn.outvars, first.outvars, strict=True))
    return kept, [_same(var, same) for var in jaxpr.outvars]


def _same(var: Any, same: dict[Any, Any]) -> Any:
    return var if isinstance(var, jex.Literal) else same.get(var, var)


def _equation_key(eqn: Any) -> Any:
    """Return what two equations that compute the same have in common; None if it is unclear."""
    return _key_of(eqn, eqn.invars, eqn.params)


def _key_of(eqn: Any, given: Iterable[Any], params: dict[str, Any]) -> Any:
    key = (eqn.primitive, tuple(map(_literal_key, given)), tuple(params.items()), eqn.ctx)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _literal_key(var: Any) -> Any:
    if not isinstance(var, jex.Literal):
        return var
    return var.aval, repr(var.val) if getattr(var.val, "ndim", 0) == 0 else id(var.val)  # 0. == -0.


def _program_key(program: Any) -> Any:
    """Return what two programs that compute the same, in the same order, have in common."""
    jaxpr = open_jaxpr(program)
    numbers: dict[Any, int] = {}

    def number(var: Any) -> Any:
        literal = isinstance(var, jex.Literal)
        return _literal_key(var) if literal else (numbers.setdefault(var, len(numbers)), var.aval)

    rows: list[Any] = [tuple(map(id, getattr(program, "consts", ())))]
    rows.append(tuple(map(number, [*jaxpr.constvars, *jaxpr.invars])))
    for eqn in jaxpr.eqns:
        params = tuple((name, _param_key(value)) for name, value in eqn.params.items())
        ends = tuple(map(number, eqn.invars)), tuple(map(number, eqn.outvars))
        rows.append((eqn.primitive, params, *ends, eqn.ctx))
    return (*rows, tuple(map(number, jaxpr.outvars)))


def _param_key(value: Any) -> Any:
    return _program_key(value) if hasattr(open_jaxpr(value), "eqns") else value


def closure(
    fn: Callable[..., Any], specs: Sequence[Any]
) -> tuple[Callable[..., list[Value]], list[Value]]:
    """Return `fn`, traced, as a function of (what it closed over, arguments), and the former."""
    return opened(jax.make_jaxpr(fn)(*specs))


def opened(closed: Any) -> tuple[Callable[..., list[Value]], list[Value]]:
    """Return a closed jaxpr as a function of (what it closed over, arguments), and the former."""
    jaxpr = open_jaxpr(closed)
    return lambda consts, args: jax.core.eval_jaxpr(jaxpr, consts, *args), list(closed.consts)


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
    pairs = zip(eqn.invars, inputs, strict=True)
    given = [x if isinstance(x, jex.Literal) else id(value) for x, value in pairs]
    is_custom = eqn.primitive.name in CUSTOM  # the same if it computes the same: nobody derives it
    params = {"": _program_key(eqn.params["call_jaxpr"])} if is_custom else eqn.params
    key = _key_of(eqn, given, params)
    if eqn.effects or key is None or key not in known:
        scope = str(eqn.source_info.name_stack)
        with jax.named_scope(scope) if scope else nullcontext(), eqn.ctx.manager:
            made = eqn.primitive.bind(*inputs, **eqn.primitive.get_bind_params(eqn.params))
        outputs = made if eqn.primitive.multiple_results else [made]
        if eqn.effects or key is None:
            return outputs
        known[key] = (outputs, inputs)  # the inputs live on, so that no other has their id
    return known[key][0]


def inner_jaxprs(params: dict[str, Any]) -> Iterable[Any]:
    """Yield the jaxprs that an equation's parameters hold."""
    return jex.jaxprs_in_params(params)


def primitives_in(jaxpr: Any) -> set[str]:
    """Return the names of all primitives in a jaxpr and in those it contains."""
    names: set[str] = set()
    todo = [open_jaxpr(jaxpr)]
    while todo:
        for eqn in todo.pop().eqns:
            names.add(eqn.primitive.name)
            todo.extend(map(open_jaxpr, inner_jaxprs(eqn.params)))
    return names


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
        function: takes values like `inputs`, returns the list of outputs.
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


@final
class _ById:
    """Stands for an unhashable object, and keeps it, so that its identity stays its own."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.held is self.held


def _hashable(value: Any) -> object:
    """Return what stands for a parameter in a key; a program or function is not kept alive."""
    if isinstance(value, tuple) and any(hasattr(part, "transforms") for part in value):
        return tuple(map(_function_key, value))
    if callable(value) or hasattr(value, "eqns"):
        return _reference(value)
    try:
        hash(value)
    except TypeError:
        return _ById(value)
    return (type(value), value)


def _function_key(wrapped: Any) -> object:
    """Return what names one of the functions of a custom-derivative call."""
    if not hasattr(wrapped, "transforms"):
        return _hashable(wrapped)
    steps = tuple((rule, tuple(map(_given_key, given))) for rule, given in wrapped.transforms)
    return (_reference(wrapped.f), steps)


def _given_key(given: Any) -> object:
    if isinstance(given, tuple):  # arguments that are not differentiated, each in a wrapper
        return tuple(_hashable(getattr(part, "val", part)) for part in given)
    return _hashable(given)


def _reference(value: Any) -> object:
    if getattr(value, "__qualname__", "").startswith("transformation_with_aux"):
        return None  # JAX makes one for each call, to say what form the outputs had
    try:
        return weakref.ref(value)
    except TypeError:
        return _ById(value)


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
                primitive.name, lambda *xs: primitive.bind(*xs, **params), tracers, params
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
        """Run a call primitive, whose body is a function."""
        body = {"f": f, **params}
        return self._pass(
            primitive.name, lambda *xs: primitive.bind(f, *xs, **params), tracers, body
        )

    def process_shard_map(self, *_: Any, **__: Any) -> Any:
        """Refuse an eager shard_map: its body runs device by device, out of our sight."""
        raise NotImplementedError(
            "jax.shard_map was called eagerly while a GradientTape records. Wrap it in "
            "jax.jit, or call it inside jv.compile, and the tape will see it:\n"
            "    f = jax.jit(jax.shard_map(body, ...))"
        )

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
            if not self.listener.wants(inputs):
                return function(*inputs)
            equation = Equation(name, function, list(inputs), params)
            return self.listener.run(equation, strip(self.parent) is not EVAL)


@final
class recording:  # noqa: N801 - used as a statement: `with recording(listener)`
    """Let a listener see what runs from here on.

    Recorders are used again: jit keeps an entry in its cache for every trace that it has met,
    and once that cache is full every jitted call in the process takes its slow path.
    """

    __slots__ = ("_listener", "_placed", "_recorder")

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def __enter__(self) -> None:
        self._recorder = _free_recorder(current())
        self._recorder.listener = self._listener
        self._placed = at(self._recorder)
        self._placed.__enter__()

    def __exit__(self, *error: object) -> None:
        self._placed.__exit__(*error)
        self._recorder.listener = None


@final
class _Roots(threading.local):
    """The recorder that each thread puts directly on `EVAL`."""

    def __init__(self) -> None:
        self.recorder = Recorder(EVAL)


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
        jaxpr, n = open_jaxpr(closed), len(closed.consts)
        program = jaxpr if jaxpr is not closed else jaxpr.replace(consts=[])
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

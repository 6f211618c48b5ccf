"""A trace that passes everything through, and tells a listener what it was.

It runs each primitive under its parent and returns the values untouched (they are never
wrapped). So a listener sees any JAX code, with concrete values and ordinary Python control flow.

Why it is built so: a tape that wraps values has to know each function that takes one (`jnp`, optax,
flax), and Python that asks for a type or a truth value; one that replaces functions of other
packages breaks with each release of these. JAX binds every primitive under the current trace, so
that one class sees them all, and custom derivatives stay with the calls that have them.

What does not work: an array that a jitted function closed over reaches no trace. Where it is
followed, the function is run one operation after another, and refused inside of a loop or branch.
What NumPy computes is not seen. Under a trace that is not its own JAX leaves its C++ path: a call
costs about 50 us instead of 10, of which `operations.py` and `tensors/direct.py` win some back.

Rule this file keeps: a value that a recorded primitive returns is never the same object as one
that it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, final

import jax
import jax.core
import numpy as np

from jaxvars.tracing.context import EVAL, ROOTS, PassThrough, Trace, at, current, place, strip
from jaxvars.tracing.jaxprs import hidden_arrays, inner_jaxprs, open_jaxpr, open_program
from jaxvars.tracing.operations import Operation, bound, known
from jaxvars.typing import Array


class Listener(Protocol):
    """What a Recorder tells of the primitives that pass."""

    def wants(self, inputs: Sequence[Array]) -> bool:
        """Return whether an operation on `inputs` is of interest."""
        ...

    def run(self, equation: Equation, staged: bool) -> list[Array]:
        """Run an equation of interest (the parent trace is current); return its outputs."""
        ...


class Watcher(Listener, Protocol):
    """A listener to each operation, for which what is closed over is of no interest."""

    __slots__ = ()
    follows = False

    def wants(self, inputs: Sequence[Array]) -> bool:
        """Return True: each is of interest."""
        return True


@final
class Equation:
    """One primitive as it ran: a pure function of `inputs`.

    Attributes:
        operation: the function, and what is known of it.
        inputs: the values that it was applied to.
    """

    __slots__ = ("inputs", "operation")

    def __init__(self, operation: Operation, inputs: Sequence[Array]) -> None:
        self.operation = operation
        self.inputs = inputs

    @property
    def name(self) -> str:
        """The primitive's name."""
        return self.operation.name

    @property
    def function(self) -> Callable[..., list[Array]]:
        """The operation's function."""
        return self.operation.function

    @property
    def params(self) -> dict[str, Any]:
        """The primitive's parameters."""
        return self.operation.params


@final
class Recorder(PassThrough):
    """A trace that runs everything under `parent` and lets a listener see it."""

    __slots__ = ("_staged",)

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self._staged = strip(parent) is not EVAL
        self.requires_low = False  # pass calls on whole; the parent lowers what it must

    def stage_value(self, val: Array) -> Array:
        """Lift a value as the parent would."""
        return self.parent.stage_value(val)

    def process_primitive(self, primitive: Any, tracers: Any, params: dict[str, Any], /) -> Any:
        """Run a primitive."""
        operation = known(primitive, params)
        if operation is None and primitive.name == "jit":
            return self._process_jit(primitive, tracers, params)
        if operation is None:
            self._refuse_hidden_arrays(primitive.name, params)
            operation = Operation(primitive.name, bound(primitive, params), params)
        found = self._pass(operation, tracers)
        return found if primitive.multiple_results else found[0]

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, **params: Any
    ) -> list[Array]:
        """Run a `jax.custom_jvp` function, keeping its rule."""
        params["subfuns"] = (fun, jvp)
        return self._pass(
            Operation(primitive.name, _Repeatable(primitive, params), params), tracers
        )

    def process_custom_vjp_call(
        self, primitive: Any, fun: Any, fwd: Any, bwd: Any, tracers: Any, /, **params: Any
    ) -> list[Array]:
        """Run a `jax.custom_vjp` function, keeping its rule."""
        params["subfuns"] = (fun, fwd, bwd)
        return self._pass(
            Operation(primitive.name, _Repeatable(primitive, params), params), tracers
        )

    def process_call(self, primitive: Any, f: Any, tracers: Any, params: Any, /) -> list[Array]:
        """Run the body of a call primitive, one operation after the other."""
        with at(self):
            return f.call_wrapped(*tracers)

    def process_shard_map(self, primitive: Any, fun: Any, tracers: Any, /, **params: Any) -> Any:
        """Run a shard_map as a jitted function, whose body is traced now: it is for one call."""
        form: list[Any] = []

        def call(*xs: Array) -> list[Array]:
            form[:] = [primitive.bind(*xs, subfuns=(fun,), **params)]
            return list(form[0])

        with at(strip(self)):
            closed = jax.make_jaxpr(call)(*tracers)
        program, run = open_program(closed)
        params = {"jaxpr": program}
        self._refuse_hidden_arrays("shard_map", params)
        outputs = iter(self._pass(Operation("jit", run, params), [*closed.consts, *tracers]))
        return form[0].map(lambda _: next(outputs))

    def _process_jit(self, primitive: Any, args: Any, params: dict[str, Any]) -> list[Array]:
        """Run a jitted function, with the arrays it closed over as inputs if they matter."""
        closed = params["jaxpr"]
        if (hidden := hidden_arrays(closed)) and self._follows(hidden):
            with at(self):  # one operation after the other, so that inner functions are seen
                return jax.core.eval_jaxpr(open_jaxpr(closed), closed.consts, *args)
        if closed.consts and self._follows(closed.consts):
            program, call = open_program(closed)
            operation = Operation("jit", call, {"jaxpr": program})
            return self._pass(operation, [*closed.consts, *args])
        return self._pass(Operation("jit", bound(primitive, params), params), args)

    def _refuse_hidden_arrays(self, name: str, params: dict[str, Any]) -> None:
        for jaxpr in inner_jaxprs(params):
            if (hidden := hidden_arrays(jaxpr)) and self._follows(hidden):
                raise NotImplementedError(
                    f"A jitted function called inside a {name} closes over an array that a "
                    "GradientTape follows, where its gradient would be lost. Pass the array as "
                    "an argument:\n"
                    "    f = jax.jit(lambda x, h: x * h)    # not: jax.jit(lambda x: x * h)"
                )

    def _follows(self, values: Sequence[Array]) -> bool:
        """Return whether what is computed from values that were closed over is of interest."""
        return getattr(self.listener, "follows", True) and self.listener.wants(values)

    def _pass(self, operation: Operation, inputs: Any) -> list[Array]:
        with at(self.parent):
            if self.listener is None or not self.listener.wants(inputs):
                return operation.function(*inputs)
            return self.tell(operation, inputs)

    def tell(self, operation: Operation, inputs: Sequence[Array]) -> list[Array]:
        """Have the listener run an operation of interest; the parent is current."""
        kept = [x.copy() if isinstance(x, np.ndarray) else x for x in inputs]
        equation = Equation(operation, kept)  # the caller may write to its own
        return self.listener.run(equation, self._staged)


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
        self._recorder: PassThrough | None = None

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
        trace, inner = current(), list[PassThrough]()
        while isinstance(trace, Recorder) and trace is not self._recorder:
            inner.append(trace)
            trace = trace.parent
        if self._recorder is None or self._recorder.listener is not self._listener:
            return True
        for recorder in inner if trace is self._recorder else ():
            recorder.listener = None
        return trace is self._recorder and bool(inner)


def _free_recorder(parent: Trace) -> PassThrough:
    """Return the recorder to put on a trace: the one that was there before, if it is not in use."""
    if parent is EVAL:
        found = ROOTS.recorder = ROOTS.recorder or Recorder(EVAL)
    elif isinstance(parent, Recorder):
        found = parent.child = parent.child or Recorder(parent)
    else:
        found = Recorder(parent)
    return found if found.listener is None else Recorder(parent)


def _is_taken(note: Any) -> bool:
    try:
        return note.val is not note  # one of the two kinds has no other way to tell
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

    def __call__(self, *inputs: Array) -> list[Array]:
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

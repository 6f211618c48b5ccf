"""The exceptions a user can meet, each a subclass of the builtin one would expect.

Every class shows a program that raises it, and how to fix that. Messages are built where the error
is found, by the functions that know the variable and the line.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from traceback import walk_stack
from typing import Any, final
from weakref import WeakSet

from jaxvars.tracebacks import find_user_frame, jax_calls, render, user_line
from jaxvars.tracebacks import is_library as is_library  # for the packages that raise
from jaxvars.tracebacks import line_of as line_of
from jaxvars.tracebacks import line_of_function as line_of_function
from jaxvars.tracebacks import package_of as package_of
from jaxvars.tracebacks import shown as shown

__all__ = [
    "CheckError", "CheckpointError", "CheckpointWarning", "CompileError", "ContextError",
    "ControlFlowError", "CreationError", "DeviceError", "DistributedError", "DtypeError",
    "ExecutionError", "ForeignTransformError", "GradientWarning", "InteropError", "JaxvarsError",
    "LeakWarning", "NotATensorError", "RetraceWarning", "SavedError", "ShapeError", "ShardingError",
    "StaleReadWarning", "StateError", "StringVariableError", "TapeError", "UninitializedError",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn, and blame the user's line that led here, once for each line."""
    frame = find_user_frame()
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        message, category, frame.f_code.co_filename, frame.f_lineno, registry=registry
    )


class JaxvarsError(Exception):
    """The base of jaxvars' own errors. A note below the message says how to read more of it."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        if type(self).__module__ == __name__:
            self.add_note(f'More: help("jaxvars.errors.{type(self).__name__}")')

    def _render_traceback_(self) -> list[str]:  # IPython asks for it
        return render(self)


@final
class ShapeError(JaxvarsError, ValueError):
    """A value whose shape is not the variable's.

    Raised by: `v = jv.Variable([1.0, 2.0]); v.assign([1.0, 2.0, 3.0])`.
    Fix: make a new Variable; a variable keeps its shape for life.
    """


@final
class DtypeError(JaxvarsError, TypeError, ValueError):
    """A value whose dtype is not the variable's, or that cannot be held without loss.

    Raised by: `count = jv.Variable(0); count.assign(2.5)`.
    Fix: convert it explicitly, `count.assign(int(2.5))`, or make the variable a float,
    `jv.Variable(0.0)`.
    """


@final
class NotATensorError(JaxvarsError, TypeError, ValueError):
    """Something that is not a number, array or string.

    Raised by: `jv.Variable({"a": 1})`.
    Fix: one Variable for each leaf, `jax.tree.map(jv.Variable, {"a": 1})`.
    """


@final
class CreationError(JaxvarsError, ValueError):
    """A variable created where it cannot exist.

    Raised by:

        @jv.compile
        def step(x):
            w = jv.Variable(1.0)      # a new one each call: which value should be kept?
            return w * x

    Fix: create it outside, or once, and keep it:

        w = jv.Variable(1.0)

        @jv.compile
        def step(x):
            return w * x
    """


@final
class ForeignTransformError(JaxvarsError, RuntimeError):
    """A variable or a module in a plain JAX transform, which does not track variables.

    Raised by:

        @jax.jit
        def step(x):
            w.assign_add(x)

    Fix: `@jv.compile` instead of `@jax.jit`, or make the function pure with `jv.functionalize`
    and transform that.
    """


@final
class ContextError(JaxvarsError, RuntimeError):
    """A `with` block of a thread that ends out of order, or that another coroutine is run in.

    Raised by: two coroutines that each wait inside of `with jv.transaction():`, and go on in turn.
    Fix: wait before the block or after it.

        x = await fetch()
        with jv.transaction():
            w.assign_add(x)
    """


@final
class StateError(JaxvarsError, KeyError, ValueError):
    """A State that does not hold the variable, or holds a value that does not fit.

    Raised by: `pure = jv.functionalize(step); pure(jv.State.of(model), x)` where `step` also
    writes the optimizer's variables.
    Fix: `jv.State.of(model=model, optimizer=optimizer)`.
    """

    def __str__(self) -> str:
        """Return the message as written (KeyError would show its repr)."""
        return str(self.args[0]) if self.args else ""


@final
class UninitializedError(JaxvarsError, RuntimeError):
    """A variable read before it has a value.

    Raised by: a read of a variable that was created in a traced call whose initial value could
    never be computed.
    Fix: create it again, outside the function.
    """


@final
class ExecutionError(JaxvarsError, RuntimeError):
    """A compiled function that failed while XLA ran it, as when memory runs out.

    XLA runs a program after the call has returned, so a call may succeed, and the next call or read
    that uses one of its variables raise this, in whatever thread. The message says whether values
    of variables were lost: a program that reuses their memory has nothing to restore.

    Raised by: a step whose result does not fit into memory.
    Fix: smaller batches or results; `jv.compile(donate=False)`, which keeps the old values of
    variables until the new ones are there; or assign the variables that the message names, as
    by restoring a checkpoint.

    Also raised in a process that was forked after JAX had been used, where nothing can be computed:
    use `multiprocessing.get_context("spawn")`.
    """


@final
class StringVariableError(JaxvarsError, TypeError):
    """A string variable used inside a compiled function, where there are only numbers.

    Raised by: `jv.compile(lambda: name.value)`.
    Fix: read it outside and pass `name.item()`, which is then a static argument.
    """


@final
class CompileError(JaxvarsError, TypeError, ValueError):
    """A call that cannot be compiled: a bad argument, a bad option or endless recursion.

    Raised by: `jv.compile(f)({1, 2})`: a set can be neither traced nor a cache key.
    Fix: `jv.compile(f)(frozenset({1, 2}))`.
    """


@final
class ControlFlowError(JaxvarsError, TypeError, ValueError):
    """Control flow on traced values that has no one form.

    Raised by: branches of a compiled function that return different shapes, a loop that changes
    the dtype of what it carries, or a plain `if` on a traced value:

        @jv.compile
        def step(x):
            if x > 0:
                ...

    Fix: `@jv.compile(autograph=True)`, or `jv.cond(x > 0, lambda: ..., lambda: ...)`; the same
    shape and dtype in each branch and iteration.
    """


@final
class CheckError(JaxvarsError, AssertionError, ValueError):
    """A value that failed a check when the function was run; no variable was changed by it.

    Raised by: the checks in `jv.debugging`, as `jv.debugging.assert_finite(jnp.log(0.0))`;
    `assert` in a function that is compiled with `autograph=True`; and
    `jv.compile(guard="finite")`.
    Fix: look at the value that the message names, and for the line where it became so.
    """


@final
class CheckpointError(JaxvarsError, ValueError):
    """A checkpoint that is not there, is damaged, or does not fit; no variable was changed by it.

    The message lists every difference by the path of its variable: missing, extra, another
    shape or dtype, corrupt.

    Raised by: `jv.checkpoint.Checkpoint(model=Linear(3)).restore(path)` where `path` was saved
    with `Linear(2)`.
    Fix: make the objects as they were when it was saved; of a damaged checkpoint, restore the
    one before.
    """


@final
class SavedError(JaxvarsError, ValueError):
    """A program that cannot be saved, or a file of one that cannot be loaded.

    Raised by: saving a function whose arguments were never specified, and that was never
    called:

        jv.export.save(jv.compile(f), "f.jaxvars")

    Fix: `jv.export.save(jv.compile(f), "f.jaxvars", (jv.TensorSpec((None, 3)),))`. A file that
    is damaged is saved again, or copied again from where it came from.
    """


@final
class TapeError(JaxvarsError, RuntimeError, ValueError):
    """A request that a GradientTape cannot fulfil.

    Raised by: computing a gradient twice with one tape.
    Fix: `jv.GradientTape(persistent=True)`.
    """


@final
class CheckpointWarning(UserWarning):
    """Values of a checkpoint that no variable has taken, when nothing is left that could.

    Raised by: `jv.checkpoint.Checkpoint(network=model).restore(path)` of what was saved as
    `Checkpoint(model=model)`.
    Fix: the same names; or `restore(path).expect_partial()` where only a part is wanted.
    """


@final
class StaleReadWarning(UserWarning):
    """A variable was read while a plain `jax.jit` (or scan, cond, ...) traced a function.

    The value became a constant of that program: later assignments will not reach it.

    Raised by: `jax.jit(lambda x: v * x)(1.0)`.
    Fix: `jv.compile` instead of `jax.jit`, or read the value outside and pass it as an
    argument.
    """


@final
class LeakWarning(UserWarning):
    """State of a compiled function that is not in a Variable: a global, an entry of a dict or list.

    Python runs once, when the function is traced: all calls use the value that was there before,
    and what has been assigned is a tracer, which nothing can use. An attribute of a Module raises
    CompileError instead; `warnings.simplefilter("error", jv.errors.LeakWarning)` has all raise,
    before the program runs.

    Raised by:

        mean = 0.0

        @jv.compile
        def step(x):
            global mean
            mean = 0.9 * mean + 0.1 * x

    Fix: a Variable, which is assigned.

        mean = jv.Variable(0.0)

        @jv.compile
        def step(x):
            mean.assign(0.9 * mean + 0.1 * x)
    """


@final
class RetraceWarning(UserWarning):
    """A compiled function was traced again and again; the message names what changed.

    Raised by: `for n in range(100): step(jnp.ones(n))`, which compiles 100 programs; or
    `step(x, Options(rate=0.1))`, where the class `Options` makes a new object for each call.
    Fix: pad to a few shapes; keep the object, or make `Options` a frozen dataclass, which counts by
    value.
    """


@final
class GradientWarning(UserWarning):
    """A gradient that is None for a reason one may not expect.

    Raised by: computing the gradient with respect to `jv.Variable(3)`, an integer.
    Fix: a float, `jv.Variable(3.0)`.
    """


@final
class InteropError(JaxvarsError, ValueError):
    """A flax module that cannot be used as requested.

    Raised by: a module that needs random keys that are not passed:

        model = jv.interop.from_flax(Noisy(), x, rngs={"params": 0})

    Fix: name each stream, `rngs={"params": 0, "noise": 1}`.
    """


@final
class DeviceError(JaxvarsError, ValueError):
    """A device that does not exist, or a name that names none.

    Raised by: `jv.device("GPU:7")` on a machine with one GPU and soft placement off.
    Fix: one of `jv.config.list_devices()`.
    """


@final
class ShardingError(JaxvarsError, ValueError):
    """A value that cannot be sharded over devices as requested, or values placed apart.

    Raised by: `jv.Variable(jnp.zeros(7), sharding=jax.P("data"))` on a mesh whose axis "data"
    has 4 devices, or a step that uses variables of two meshes.
    Fix: pad the dimension; and one mesh, `with jv.use_mesh({"data": 4}): ...`, for all that a
    step uses.
    """


@final
class DistributedError(JaxvarsError, RuntimeError):
    """Processes that cannot be connected, or that differ where they must not.

    Also a value that is sharded over several processes, requested by one of them.

    Raised by:

        model = Model()                   # JAX looks for its devices here
        jv.parallel.initialize()       # too late to find those of the other processes

    Fix: `jv.parallel.initialize()` at the top of the program.
    """


# ---------------------------------------------------------------- reads and writes of variables
CALLED: list[Callable[[Any], str]] = [lambda cell: cell.name]
"""What returns what a variable, whose cell is given, is called in messages."""


def called(cell: Any) -> str:
    """Return what a variable is called in messages, by its cell; a name as it is."""
    return cell if isinstance(cell, str) else CALLED[0](cell)


def word_for(cell: Any) -> str:
    """Return what programs in messages call a variable: its name, if that is one of Python's."""
    return name if (name := called(cell)).isidentifier() else "v"


@final
class Phrase:
    """Words with what a variable is called, which is looked for when they are shown."""

    def __init__(self, words: str, cell: Any) -> None:
        self._words, self._cell = words, cell

    def __str__(self) -> str:
        return self._words.format(called(self._cell))


_FORMS = {  # functions of JAX that run a body, by their names on the stack
    **{
        name: (f"jax.lax.{name}", f"jv.{name}")
        for name in ("scan", "cond", "switch", "while_loop", "fori_loop")
    },
    "map": ("jax.lax.map", "jv.map_fn"),
    "fun_remat": ("jax.checkpoint", "jv.recompute"),
}
_TRANSFORMS = {*_FORMS, "vmap_f", "vjp", "jvp", "cache_miss"}  # the last is jax.jit's


def _find_form() -> tuple[str, str] | None:
    """Return JAX's function whose body runs, and jaxvars' form of it; None for a transform."""
    for run in jax_calls():
        names = [name for name in run if name in _TRANSFORMS]
        if names and names[0] != "map":  # which is that of jax.tree
            inside = names[0] in ("scan", "while_loop") and names[1:2] in (["map"], ["fori_loop"])
            return _FORMS.get(names[1 if inside else 0])
    return None


def out_of_order_error(what: str) -> ContextError:
    return ContextError(
        f"`with {what}:` ends at {user_line()} out of order, and what was open in it ends with it. "
        "Blocks that are open in a thread at the same time end there, in the reverse order of "
        "opening. That is not so for one that stays open over an `await` or `yield`, while other "
        "code opens another one. Wait before the block or after it:\n"
        f"    x = await fetch()\n    with {what}:\n        step(x)"
    )


def _is_imported_twice() -> bool:
    """Return whether code of a jaxvars that was imported before this one, or since, runs here."""
    below = (frame.f_globals for frame, _ in walk_stack(sys._getframe()))
    parts = [x for x in below if x.get("__name__") in (__name__, "jaxvars.core.staging")]
    return any(x is not vars(sys.modules.get(x["__name__"], sys)) for x in parts)


def _imported_twice_error(name: str) -> ForeignTransformError:
    return ForeignTransformError(
        f"Variable {name!r} is used at {user_line()} by a function of another copy of jaxvars: it "
        "has been imported twice in this process, and taken out of sys.modules in between, from "
        f"{sys.modules['jaxvars'].__file__} the last time. A Variable of the one is an array for "
        "the other. Start the process again, or make variables, models and functions again after "
        "the last import."
    )


def foreign_write_error(cell: Any) -> ForeignTransformError:
    if _is_imported_twice():
        return _imported_twice_error(called(cell))
    where, form = f"Variable {called(cell)!r} is written at {user_line()}", _find_form()
    if form is not None:
        return ForeignTransformError(
            f"{where}, in the body of {form[0]}, which does not track variables: the new value "
            f"would leak out of it. Use {form[1]}, which does."
        )
    return ForeignTransformError(
        f"{where}, inside a plain JAX transform, which does not track variables (jax.jit, grad, "
        "vmap, ...): the new value would leak out of it. Use @jv.compile instead of jax.jit; for "
        "the others, return the new value and assign it outside, or transform a pure function:\n"
        "    pure = jv.functionalize(f)\n"
        "    result, state = jax.vmap(pure, in_axes=(None, 0))(jv.State.of(model), xs)"
    )


def not_in_state_error(cell: Any) -> StateError:
    return StateError(
        f"Variable {called(cell)!r} is written at {user_line()}, but the State that was passed "
        "does not hold it. Make the State of everything that the function writes, for example "
        "jv.State.of(model=model, optimizer=optimizer)."
    )


def creation_in_transform_error(name: str) -> CreationError:
    return CreationError(
        f"Variable {name!r} is created at {user_line()} while a plain JAX transform "
        "(jax.jit, scan, grad, ...) traces the function: its value would be a tracer. Create it "
        "outside, or use @jv.compile, which may create variables on its first call."
    )


def flag_set_in_trace_error(cell: Any) -> ForeignTransformError:
    return ForeignTransformError(
        f"`trainable` of variable {called(cell)!r} is set at {user_line()} in a compiled function "
        "or JAX transform, which would do so once, when it is traced. Set it outside, or freeze "
        "the variable for a part of the function:\n"
        "    with jv.freeze(v):\n"
        "        loss = step(x)"
    )


_TOLD: WeakSet[Any] = WeakSet()


def warn_stale(cell: Any, trace: Any) -> None:
    """Warn at the first variable that a trace reads: what is said holds for the others."""
    if trace in _TOLD:
        return
    if _is_imported_twice():
        raise _imported_twice_error(called(cell))
    _TOLD.add(trace)
    warn_user(
        f"Variable {called(cell)!r} was read while a plain JAX transform (jax.jit, scan, cond, "
        "...) traced the function. Its value becomes a constant of that program: later assignments "
        "will not reach it. Use @jv.compile instead of jax.jit, or read it outside and pass the "
        "value as an argument. The same holds for every other variable that is read there.",
        StaleReadWarning,
    )


def read_by_kept_rule_error(cell: Any) -> TapeError:
    return TapeError(
        f"Variable {called(cell)!r} is read at {user_line()} by the rule of a derivative, for a "
        "function that is called inside jax.jit, or a loop or branch of JAX's own. JAX runs the "
        "rule once and keeps the result: later assignments would not reach it. Use @jv.compile, "
        "jv.scan, jv.cond or jv.while_loop instead, or pass the value to the function as an "
        "argument."
    )


def string_in_program_error(cell: Any) -> StringVariableError:
    return StringVariableError(
        f"Variable {called(cell)!r} holds strings and is used at {user_line()} inside a compiled "
        "function, where there are only numbers. Read it outside and pass the string, which "
        f"is then a static argument: step(x, {word_for(cell)}.item())."
    )


_WARN_AFTER = 5


def warn_of_retraces(name: str, count: int, why: str, *, has_new_objects: bool = False) -> None:
    """Warn of a function that is traced again and again, at every fifth time."""
    cure = "Keep an object that is passed, or have it count by value: a frozen dataclass. "
    if count > _WARN_AFTER and count % _WARN_AFTER == 1:
        warn_user(
            f"{name} has been traced {count} times; the last time because of {why}. Tracing and "
            "compiling are slow. Pass Python values that change often as numbers or arrays, and "
            f"pad arrays to one shape. {cure * has_new_objects}See {name}.traces.",
            RetraceWarning,
        )

"""Functions with custom derivatives: `stop_gradient`, `custom_gradient`, `recompute`.

Rules this file keeps:
- the variables that a function reads are found by tracing it, and become arguments of the
  differentiated function like any other: nothing is closed over;
- what a gradient function closes over becomes data of the backward pass, so that it may be
  called in another trace than the one it was made in.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, overload

import jax
import jax.numpy as jnp

from jaxvars.core.cells import Cell, without_signals
from jaxvars.core.frames import LOCAL, BoundFrame, CaptureFrame, entered
from jaxvars.core.staging import PyTreeTemplate, Staged, is_own_array, stage
from jaxvars.core.variable import Variable
from jaxvars.derivatives.dependencies import aside_p
from jaxvars.errors import JaxvarsError, SavedError, TapeError, called
from jaxvars.objects.key_order import ordered_like
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tracing import context, jaxprs
from jaxvars.tracing.capture import describe_call, describe_like
from jaxvars.tracing.signals import attempt
from jaxvars.typing import Array, P, R


@context.restoring()
@overload
def stop_gradient(value: Array) -> Array: ...
@overload
def stop_gradient(value: Any) -> Any: ...
def stop_gradient(value: Any) -> Any:
    """Return the value, or pytree of values, as a constant of differentiation.

    Args:
        value: an array, a variable, or a pytree of them.

    >>> from jaxvars import GradientTape
    >>> w = Variable(3.0)
    >>> with GradientTape() as tape:
    ...     y = w * stop_gradient(w)
    >>> float(tape.gradient(y, w))
    3.0
    """
    return ordered_like(value, jax.lax.stop_gradient(value))


def custom_gradient(fn: Callable[P, tuple[R, Any]]) -> Callable[P, R]:
    """Give a function a custom gradient.

    Args:
        fn: returns `(result, grad)`. `grad(upstream)`, with one argument for each array in the
            result, returns the gradient of each positional argument of `fn`, None for none. If
            `fn` reads trainable variables, `grad` takes `variables=` too, a list of them, and
            returns `(argument_gradients, variable_gradients)`. What `grad` alone reads is
            none of them.

    Returns:
        A function of the same arguments that returns `result` alone.

    Raises:
        TapeError: (when called) if `fn` assigns variables, or reads trainable ones and
            `grad` takes no `variables=`.
        CreationError: (when called) if `fn` creates variables.

    >>> @custom_gradient
    ... def log1pexp(x):
    ...     e = jnp.exp(x)
    ...     return jnp.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))
    >>> float(jax.grad(log1pexp)(100.0))
    1.0
    """

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, treedef = jax.tree.flatten(args)
        active = [i for i, leaf in enumerate(leaves) if _is_active(leaf)]

        def run(*values: Array) -> tuple[Any, Callable[..., Any]]:
            new = jaxprs.replace_values(leaves, active, values)
            return fn(*ordered_like(args, jax.tree.unflatten(treedef, new)), **kwargs)

        describe_call(run, fn, jax.tree.structure((args, {})), active, "jv.custom_gradient")
        return _call_custom(run, fn, [leaves[i] for i in active], (treedef, len(leaves), active))

    call.form = custom_gradient  # pyright: ignore[reportAttributeAccessIssue] - for autograph
    return call


def _is_active(leaf: Any) -> bool:
    return is_own_array(leaf) and (isinstance(leaf, jax.Array) or is_inexact(leaf))


_CREATES = (
    "A custom_gradient function tried to create a variable: create it outside, or call the layer "
    "that makes it once before."
)


@context.restoring()
def _call_custom(run: Any, fn: Any, values: list[Array], form: Any) -> Any:
    own: set[int] = set()

    def whole(*xs: Array) -> Any:
        return _run_whole(run, form, fn, own, xs)

    describe_like(whole, run)
    touched = stage(whole, values, _CREATES)
    if names := [called(cell) for cell in without_signals(touched.writes)]:
        raise TapeError(f"The custom_gradient function {fn.__name__} assigns {names}: return the "
                        "new values and assign them outside.")  # fmt: skip
    reads = without_signals(touched.reads)
    used = [cell for cell in reads if cell.key in own]
    aside = [cell for cell in reads if cell.key not in own]
    cells = [*used, *aside]
    outer, forward = [], _run_forward(run, fn, form, cells)
    if not context.is_eager():  # maybe differentiated elsewhere
        traced = attempt(functools.partial(_trace, forward, cells, len(aside), values))
        outer, forward = traced or (outer, forward)  # it raises again if a gradient is requested
    outer = [*map(LOCAL.frame.read, aside), *outer]
    read = list(map(LOCAL.frame.read, used))
    return touched.rebuild(_rule(forward, len(outer))(outer, read, values))


def _rule(forward: Callable[..., Any], closed_over: int) -> Callable[..., list[Array]]:
    """Return a function with a custom pullback.

    Args:
        forward: takes what was closed over, first the values of cells that only the pullback
            reads, the values of cells and the arguments; returns the results, and what makes the
            pullback.
        closed_over: how many values the function has closed over.
    """
    again = _pass_on(forward, closed_over)

    def primal(outer: Any, cell_values: Any, xs: Any) -> list[Array]:
        return forward([aside_p.bind(x) for x in outer], cell_values, xs)[0]

    primal.closed_over = closed_over  # pyright: ignore[reportFunctionMemberAccess] - for `derivatives/dependencies.py`
    rule = jax.custom_vjp(primal)
    rule.defvjp(
        lambda *given: _run_with_pullback(forward, again, given), lambda pull, ct: (None, *pull(ct))
    )
    return rule


def _pass_on(forward: Callable[..., Any], closed_over: int) -> Callable[..., list[Array]]:
    """Return what passes results on that are known, and then takes what `_rule` does."""

    def same(arrays: Any, outer: Any, *_: Any) -> list[Array]:
        return [aside_p.bind(*arrays[i:], *arrays[:i], *outer) for i in range(len(arrays))]

    def call(arrays: Any, *given: Any) -> list[Array]:
        same.closed_over = len(arrays) + closed_over  # pyright: ignore[reportFunctionMemberAccess]
        return again(arrays, *given)

    again = jax.custom_vjp(same)
    again.defvjp(
        lambda _, *given: _run_with_pullback(forward, call, given),
        lambda pull, ct: (None, None, *pull(ct)),
    )
    return call


def _run_with_pullback(forward: Any, again: Any, given: Any) -> tuple[list[Array], Any]:
    arrays, pull = forward(*given)
    pulled = pull()
    if context.current() is not context.EVAL:  # differentiated again, it has the same rule
        arrays = again(arrays, *given)
    return arrays, pulled


def _run_forward(run: Any, fn: Any, form: Any, cells: Sequence[Cell]) -> Callable[..., Any]:
    """Return what runs a function, whose variables have some values, and gives its pullback.

    Args:
        run: the function.
        fn: the user's function.
        form: of its arguments.
        cells: of the variables: those that only the pullback reads are the last.
    """
    frame, keys = LOCAL.frame, [cell.key for cell in cells]

    def forward(outer: Any, cell_values: Any, xs: Any) -> tuple[list[Array], Any]:
        values = dict(zip(keys, [*cell_values, *outer], strict=True))
        own = cells[: len(cell_values)]
        with entered(BoundFrame(values, frame)):
            result, grad = run(*xs)
        arrays = [jnp.asarray(x) for x in PyTreeTemplate(result).arrays]

        def pull() -> Any:
            with entered(BoundFrame(values, frame)):
                return _close_over(functools.partial(_find_gradients, grad, own, form, fn), arrays)

        return arrays, pull

    return forward


def _trace(
    forward: Callable[..., Any], cells: Sequence[Cell], aside: int, values: Sequence[Array]
) -> tuple[list[Array], Callable[..., Any]]:
    """Return what a `forward` and its pullback close over, and it as a function of that, too."""

    def run(*xs: Array) -> Any:
        read = list(map(LOCAL.frame.read, cells))
        own = len(cells) - aside
        arrays, pull = forward(read[own:], read[:own], xs)
        return arrays, pull()

    return _open_staged(stage(run, values, None), cells)


def _open_staged(staged: Staged, cells: Sequence[Cell]) -> tuple[list[Array], Callable[..., Any]]:
    """Return what a traced `forward` closes over, and it as a function of that, too."""
    program, outer = jaxprs.take_out_constants(staged.program)
    keys = [cell.key for cell in cells]

    def forward(outer: Any, cell_values: Any, xs: Any) -> Any:
        aside = len(cells) - len(cell_values)
        by_key = dict(zip(keys, [*cell_values, *outer[:aside]], strict=True))
        reads = [by_key[cell.key] for cell in staged.reads]
        arrays, pull = staged.rebuild(program(outer[aside:], [*reads, *xs]))
        return arrays, lambda: pull

    return outer, forward


def _run_whole(run: Any, form: Any, fn: Any, own: set[int], xs: Sequence[Array]) -> Any:
    """Run the function and its gradient, so that what either reads is found; return the result.

    What the function itself reads is put into `own`.
    """
    result, grad = run(*xs)
    upstream = [jnp.zeros_like(x) for x in PyTreeTemplate(result).arrays]
    frame = LOCAL.frame
    cells = list(frame.cells) if isinstance(frame, CaptureFrame) else []
    own.update(cell.key for cell in cells)
    with contextlib.suppress(Exception):  # it is raised again if a gradient is requested
        _find_gradients(grad, cells, form, fn, upstream)
    return result


def _find_gradients(
    grad: Any, cells: Sequence[Cell], form: Any, fn: Any, upstream: Sequence[Array]
) -> tuple[list[Array | None], list[Array | None]]:
    """Return the gradients of the cells and of the differentiable arguments."""
    treedef, n, active = form
    trainable = [v for c in cells if isinstance(v := c.owner(), Variable) and v.trainable]
    if trainable:
        given, of_variables = _with_variables(grad, upstream, trainable, fn)
    else:
        given, of_variables = grad(*upstream), []
    several = isinstance(given, list | tuple) and treedef.num_nodes > 2
    tree = tuple(given) if several else (given,)
    leaves = jax.tree.leaves(tree, is_leaf=lambda x: x is None)
    if len(leaves) != n:
        raise TapeError(
            f"The gradient function of {fn.__name__} returned {len(leaves)} gradients for {n} "
            "arguments: return one for each, None where there is none."
        )
    by_key = {v._cell.key: g for v, g in zip(trainable, of_variables, strict=True)}
    return [by_key.get(cell.key) for cell in cells], [leaves[i] for i in active]


def _with_variables(
    grad: Any, upstream: Sequence[Array], variables: list[Variable], fn: Any
) -> tuple[Any, Any]:
    parameters = inspect.signature(grad).parameters.values()
    if not any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters):
        names = [called(v._cell) for v in variables]
        raise TapeError(
            f"{fn.__name__} reads the trainable variables {names}, so its gradient function must "
            "say what their gradients are:\n"
            "    def grad(upstream, variables=None):\n"
            "        return argument_gradients, variable_gradients"
        )
    return grad(*upstream, variables=variables)


# ---------------------------------------------------------------- rules that read variables
def with_explicit_rules(staged: Staged) -> Staged:
    """Return a program whose inputs are also the variables that rules of derivatives read.

    JAX runs a rule when it differentiates the program, and keeps what came out.
    """
    if not jaxprs.has_users_rule(staged.program):
        return staged

    def run(*xs: Array) -> list[Array]:
        reads = [*map(LOCAL.frame.read, staged.reads)]
        made = _run_with_rules(staged.program, [*reads, *xs], call)
        results, new = staged.split(made)
        LOCAL.frame.write_all(staged.writes, new)
        return list(results)

    def call(bind: Callable[..., Any], inputs: list[Array], closed_over: int) -> list[Array]:
        return _with_explicit_rule(bind, inputs, closed_over, staged.writes)

    avals = staged.program.in_avals[len(staged.reads) :]
    specs = [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in avals]
    found = stage(run, specs, None)
    return replace(staged, program=found.program, reads=found.reads)


def _run_with_rules(
    closed: Any,
    values: Sequence[Array],
    call: Callable[[Callable[..., Any], Any, int], Sequence[Array]],
) -> list[Array]:
    """Run a program, but for the functions with a rule of a user's.

    Args:
        closed: the program.
        values: its inputs.
        call: takes such a function, a list of its inputs, and how many of them, the first ones, it
            has closed over; returns its results.
    """

    def run(eqn: Any, inputs: list[Array]) -> Sequence[Array]:
        if jaxprs.runs_users_code(eqn):
            return call(functools.partial(jaxprs.bind, eqn), inputs, eqn.params["num_consts"])
        if eqn.primitive.name == "jit" and jaxprs.has_users_rule(eqn.params["jaxpr"]):
            return _run_with_rules(eqn.params["jaxpr"], inputs, call)
        return jaxprs.bind(eqn, *inputs)

    return jaxprs.interpret(closed, values, run)


def _with_explicit_rule(
    bind: Callable[..., Any], inputs: list[Array], closed_over: int, writes: Sequence[Cell]
) -> list[Array]:
    """Call a function with a rule; the variables that this reads are arguments if it reads any."""
    inputs = list(map(jnp.asarray, inputs))  # a rule may index a constant, which is NumPy's here
    floats = [i for i in range(closed_over, len(inputs)) if is_inexact(inputs[i])]
    staged, active = _stage_rule(bind, inputs, floats)
    if not staged.reads:
        return bind(*inputs)
    given = [inputs[i] for i in active]
    made = bind(*map(jax.lax.stop_gradient, inputs))
    outer, taken = _open_staged(staged, staged.reads)
    if both := [called(cell) for cell in staged.reads if cell in writes]:
        taken = functools.partial(_refuse, both)
    again = _pass_on(taken, len(outer))
    values = list(map(LOCAL.frame.read, staged.reads))
    moved = iter(again([x for x in made if is_inexact(x)], outer, values, given))
    return [next(moved) if is_inexact(x) else x for x in made]


_CLOSED_OVER = "CustomVJPException"
"""What JAX, which exports no such class, raises for a derivative by what a function closed over."""


def _stage_rule(
    bind: Callable[..., Any], inputs: list[Array], active: list[int]
) -> tuple[Staged, list[int]]:
    """Return a function with a rule and its pullback, traced, and by which inputs there is one.

    There is none by what was closed over: an input like others where another program calls it; nor
    by what the function refuses (equinox's do), which JAX says if a derivative is requested.
    """

    def forward(*xs: Array) -> Any:
        def run(*xs: Array) -> list[Array]:
            given = dict(enumerate(inputs)) | dict(zip(active, xs, strict=True))
            return [x for x in bind(*given.values()) if is_inexact(x)]

        arrays, pull = jax.vjp(run, *xs)
        return arrays, _close_over(lambda given: (None, list(pull(list(given)))), arrays)

    try:
        return stage(forward, [inputs[i] for i in active], None), active
    except Exception as error:
        is_own = isinstance(error, JaxvarsError) and not isinstance(error, SavedError)
        if not active or is_own:  # a SavedError: what was loaded has no derivative
            raise
        refusal = None if type(error).__name__ == _CLOSED_OVER else error
    half = len(active) // 2
    parts = (active[:half], active[half:]) if half else ()
    found = [_stage_rule(bind, inputs, part) for part in parts]
    if refusal is not None and any(staged.reads for staged, _ in found):
        raise refusal  # what is refused would have no derivative, in silence
    good = [i for _, by in found for i in by]
    return _stage_rule(bind, inputs, good if good != active else [])


def _refuse(names: Sequence[str], *_: Any) -> Any:
    raise TapeError(
        f"The rule of a derivative reads the variables {names}, which the compiled function, "
        "branch or loop around it assigns: the value of which time is it to take? Read them where "
        "the function is called, and pass the values to it as arguments."
    )


def _close_over(function: Callable[..., Any], arrays: Sequence[Array]) -> Any:
    """Return a function of upstream gradients as a pytree: what it closed over are its leaves.

    So it may be called in another trace than the one it was made in.
    """
    specs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
    form: list[Any] = []

    def flat(*upstream: Array) -> list[Array]:
        leaves, treedef = jax.tree.flatten(function(upstream), is_leaf=lambda x: x is None)
        form[:] = treedef, [leaf is not None for leaf in leaves]
        return [leaf for leaf in leaves if leaf is not None]

    run, consts = jaxprs.take_out_constants(jax.make_jaxpr(flat)(*specs))
    treedef, given = form

    def call(consts: Any, upstream: Sequence[Array]) -> Any:
        values = iter(run(consts, upstream))
        return jax.tree.unflatten(treedef, [next(values) if here else None for here in given])

    return jax.tree_util.Partial(call, consts)


def recompute(fn: Callable[P, R]) -> Callable[P, R]:
    """Make a function compute its intermediate values again in the backward pass.

    Saves memory for time.

    Args:
        fn: a function of arrays, or pytrees of them; it may read and assign variables. Python's
            numbers and bools among its arguments stay what they are.

    Returns:
        A function of the same arguments and results.

    Raises:
        CreationError: (when called) if `fn` creates variables.

    >>> from jaxvars import GradientTape
    >>> w = Variable(2.0)
    >>> @recompute
    ... def block(x):
    ...     return jnp.sin(w * x)
    >>> with GradientTape() as tape:
    ...     y = block(1.0)
    >>> bool(jnp.allclose(tape.gradient(y, w), jnp.cos(2.0)))
    True

    Source: Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016
    (https://arxiv.org/abs/1604.06174).
    """
    body: Callable[..., Any] = fn

    @functools.wraps(fn)
    @context.restoring()
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves = PyTreeTemplate((args, kwargs), numbers=False)
        values, leaves.arrays = leaves.arrays, []

        def run(*xs: Array) -> Any:
            inner_args, inner_kwargs = leaves(xs)
            return body(*inner_args, **inner_kwargs)

        active = [i for i, constant in enumerate(leaves.constants()) if constant is None]
        describe_call(run, fn, leaves.treedef, active, "jv.recompute")
        refusal = "A recomputed function tried to create variables."
        staged = with_explicit_rules(stage(run, values, refusal))
        program = jax.checkpoint(staged.function())
        return staged.apply(lambda reads, xs: program(*reads, *xs), values)

    call.form = recompute  # pyright: ignore[reportAttributeAccessIssue] - for autograph
    return call

"""Functions with a derivative of their own: `stop_gradient`, `custom_gradient`, `recompute_grad`.

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
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from jaxvars import _trace
from jaxvars._frames import LOCAL, BoundFrame, CaptureFrame, entered
from jaxvars._record import is_inexact
from jaxvars._staging import Rebuild, stage
from jaxvars._store import Cell
from jaxvars._variable import Variable
from jaxvars.errors import TapeError

Value: TypeAlias = Any


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
    return jax.lax.stop_gradient(value)


def custom_gradient(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function a gradient of its own.

    Args:
        fn: returns `(result, grad)`. `grad(upstream)`, with one argument for each array in the
            result, returns the gradient of each positional argument of `fn`, None for none. If
            `fn` reads trainable variables, `grad` takes `variables=` too, a list of them, and
            returns `(argument_gradients, variable_gradients)`.

    Returns:
        A function of the same arguments that returns `result` alone.

    Raises:
        TapeError: (when called) if `fn` assigns variables, or reads trainable ones and
            `grad` takes no `variables=`.

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
        moving = [i for i, leaf in enumerate(leaves) if _is_moving(leaf)]

        def run(*values: Value) -> tuple[Any, Callable[..., Any]]:
            new = list(leaves)
            for i, value in zip(moving, values, strict=True):
                new[i] = value
            return fn(*jax.tree.unflatten(treedef, new), **kwargs)

        return _call_custom(run, fn, [leaves[i] for i in moving], (treedef, len(leaves), moving))

    return call


def _is_moving(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | float | complex) or is_inexact(leaf)


def _call_custom(run: Any, fn: Any, values: list[Value], form: Any) -> Any:
    touched = stage(lambda *xs: _whole(run, form, fn, xs), values, None)
    if touched.writes:
        names = [cell.name for cell in touched.writes]
        raise TapeError(f"The custom_gradient function {fn.__name__} assigns {names}: return the "
                        "new values and assign them outside.")  # fmt: skip
    cells = touched.reads
    frame = LOCAL.frame
    rebuild = touched.rebuild

    def bound(cell_values: Any) -> Any:
        return entered(
            BoundFrame(dict(zip([c.key for c in cells], cell_values, strict=True)), frame)
        )

    @jax.custom_vjp
    def rule(cell_values: Any, xs: Any) -> list[Value]:
        with bound(cell_values):
            return Rebuild(run(*xs)[0]).arrays

    def forward(cell_values: Any, xs: Any) -> tuple[list[Value], Any]:
        with bound(cell_values):
            result, grad = run(*xs)
            arrays = [jnp.asarray(x) for x in Rebuild(result).arrays]
            pull = _closed(functools.partial(_gradients, grad, cells, form, fn), arrays)
        if _trace.is_differentiated():
            arrays = rule(cell_values, xs)  # who differentiates this again finds the same rule
        return arrays, pull

    rule.defvjp(forward, lambda grads, upstream: grads(upstream))
    return rebuild(rule([frame.read(cell) for cell in cells], values))


def _whole(run: Any, form: Any, fn: Any, xs: Sequence[Value]) -> Any:
    """Run the function and its gradient, so that what either reads is found; return the result."""
    result, grad = run(*xs)
    upstream = [jnp.zeros_like(x) for x in Rebuild(result).arrays]
    frame = LOCAL.frame
    cells = list(frame.cells) if isinstance(frame, CaptureFrame) else []
    with contextlib.suppress(Exception):  # it is raised again if a gradient is asked for
        _gradients(grad, cells, form, fn, upstream)
    return result


def _gradients(
    grad: Any, cells: Sequence[Cell], form: Any, fn: Any, upstream: Sequence[Value]
) -> tuple[list[Value | None], list[Value | None]]:
    """Return the gradients of the cells and of the moving arguments."""
    treedef, n, moving = form
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
    by_key = {v.cell.key: g for v, g in zip(trainable, of_variables, strict=True)}
    return [by_key.get(cell.key) for cell in cells], [leaves[i] for i in moving]


def _with_variables(
    grad: Any, upstream: Sequence[Value], variables: list[Variable], fn: Any
) -> tuple[Any, Any]:
    parameters = inspect.signature(grad).parameters.values()
    if not any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters):
        names = [v.name for v in variables]
        raise TapeError(
            f"{fn.__name__} reads the trainable variables {names}, so its gradient function must "
            "say what their gradients are:\n"
            "    def grad(upstream, variables=None):\n"
            "        return argument_gradients, variable_gradients"
        )
    return grad(*upstream, variables=variables)


def with_pullback(
    values: Sequence[Value], inputs: Sequence[Value], pull: Callable[..., Sequence[Value | None]]
) -> list[Value]:
    """Return what has been computed as the results of one operation, whose pullback is known.

    Args:
        values: the results.
        inputs: floats that they count as computed from.
        pull: takes a cotangent for each result, returns one for each input, or None.
    """

    @jax.custom_vjp
    def rule(*_: Value) -> list[Value]:
        return list(map(_trace.fresh, values))

    def forward(*again: Value) -> tuple[list[Value], None]:
        return (rule(*again) if _trace.is_differentiated() else list(values)), None

    rule.defvjp(forward, lambda _, upstream: tuple(pull(*upstream)))
    return rule(*inputs)


def _closed(function: Callable[..., Any], arrays: Sequence[Value]) -> Any:
    """Return a function of upstream gradients as a pytree: what it closed over are its leaves.

    So it may be called in another trace than the one it was made in.
    """
    specs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
    form: list[Any] = []

    def flat(*upstream: Value) -> list[Value]:
        leaves, treedef = jax.tree.flatten(function(upstream), is_leaf=lambda x: x is None)
        form[:] = treedef, [leaf is not None for leaf in leaves]
        return [leaf for leaf in leaves if leaf is not None]

    run, consts = _trace.closure(flat, specs)
    treedef, given = form

    def call(consts: Any, upstream: Sequence[Value]) -> Any:
        values = iter(run(consts, upstream))
        return jax.tree.unflatten(treedef, [next(values) if here else None for here in given])

    return jax.tree_util.Partial(call, consts)


def recompute_grad(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function compute its intermediate values again in the backward pass.

    Saves memory for time.

    Args:
        fn: a function of arrays, or pytrees of them; it may read and assign variables.

    Returns:
        A function of the same arguments and results.

    Raises:
        CreationError: (when called) if `fn` creates variables.

    >>> from jaxvars import GradientTape
    >>> w = Variable(2.0)
    >>> @recompute_grad
    ... def block(x):
    ...     return jnp.sin(w * x)
    >>> with GradientTape() as tape:
    ...     y = block(1.0)
    >>> bool(jnp.allclose(tape.gradient(y, w), jnp.cos(2.0)))
    True

    Source: Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016
    (https://arxiv.org/abs/1604.06174).
    """

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves = Rebuild((args, kwargs))
        values, leaves.arrays = leaves.arrays, []

        def run(*xs: Value) -> Any:
            inner_args, inner_kwargs = leaves(xs)
            return fn(*inner_args, **inner_kwargs)

        staged = stage(run, values, "A recomputed function tried to create variables.")
        program = jax.checkpoint(staged.function())
        return staged.apply(lambda reads, xs: program(*reads, *xs), values)

    return call


recompute = recompute_grad  # JAX's manner of naming; TensorFlow's is the other

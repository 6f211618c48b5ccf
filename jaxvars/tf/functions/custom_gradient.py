"""Custom derivatives: those of `jaxvars.derivatives`, for functions of Tensors and Variables."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, final

import jax
import numpy as np

from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.derivatives import custom_gradient as _custom
from jaxvars.tf import nest
from jaxvars.tf.autodiff.tape import conjugate
from jaxvars.tf.control.branches import arrays_of
from jaxvars.tf.control.callbacks import IN_RULE
from jaxvars.tf.functions.arguments import is_traced
from jaxvars.tf.functions.eager_gradient import call_now, runs_now
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.slices import IndexedSlices
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.tensor import Tensor, wrap
from jaxvars.tf.variables.variable import Variable, face_of


def stop_gradient(input: Any, name: str | None = None) -> Any:
    """Return a tensor as a constant of differentiation.

    Args:
        input: a tensor.
        name: of no effect.

    >>> from jaxvars import tf
    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * tf.stop_gradient(x)
    >>> float(tape.gradient(y, x))
    3.0
    """
    if isinstance(input, IndexedSlices | RaggedTensor | SparseTensor):
        return input.with_values(stop_gradient(input.values))
    return Tensor(jax.lax.stop_gradient(to_array(input)))


def custom_gradient(f: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Give a function a custom gradient.

    Differs from TensorFlow: None among the gradients that `grad` returns is a gradient of zeros.

    Args:
        f: takes tensors, returns `(result, grad)`. `grad(*upstream)` returns the gradient of each
            positional argument. If `f` reads variables, it takes `variables=`, a list, too, and
            returns `(argument_gradients, variable_gradients)`.

    Returns:
        A function that returns `result` alone; a decorator without `f`.

    Raises:
        TypeError: (when called) if `f` reads variables and `grad` takes no `variables=`.

    >>> from jaxvars import tf
    >>> @tf.custom_gradient
    ... def clip_gradient(x):
    ...     return x, lambda upstream: tf.clip_by_value(upstream, -1.0, 1.0)
    >>> x = tf.constant(2.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = 5.0 * clip_gradient(x)
    >>> float(tape.gradient(y, x))
    1.0
    """
    if f is None:
        return custom_gradient

    return _Custom(f)


@final
class _Custom:
    """A function with a custom gradient; the object of a method is none of its arguments."""

    def __init__(self, f: Callable[..., Any]) -> None:
        functools.update_wrapper(self, f)
        self._f = f

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result alone."""
        given = tuple(nest.map_structure(_to_differentiable, x) for x in args)
        if runs_now(nest.flatten(given)):
            pull = functools.partial(_with_variables, self._f)
            return call_now(self._f, args, given, kwargs, pull)
        core = _custom.custom_gradient(_for_core(self._f, kwargs))
        return _call_in_rule(core, given, {})

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else _Custom(types.MethodType(self._f, instance))


def _to_differentiable(leaf: Any) -> Any:
    return to_array(leaf) if is_traced(leaf) or isinstance(leaf, int | float | Variable) else leaf


def _for_core(f: Callable[..., Any], kwargs: Any) -> Callable[..., Any]:
    """Return the function of arrays that the core gives a custom gradient."""

    @functools.wraps(f)
    def run(*arrays: Any) -> Any:
        result, grad = f(*map(wrap, arrays), **kwargs)
        return arrays_of(result), _make_pullback(grad, f)

    return run


def _make_pullback(grad: Callable[..., Any], f: Callable[..., Any]) -> Callable[..., Any]:
    def pull(*upstream: Any, variables: list[CoreVariable] | None = None) -> Any:
        ups = [Tensor(conjugate(x)) for x in upstream]
        if variables is None:
            found = grad(*ups)
            return _to_core_gradients(found)
        found, of_variables = _with_variables(f, grad, ups, list(map(face_of, variables)))
        return _to_core_gradients(found), list(_to_core_gradients(tuple(of_variables)))

    return pull


def _with_variables(
    f: Callable[..., Any], grad: Callable[..., Any], upstream: list[Tensor], faces: list[Variable]
) -> Any:
    """Return gradients of arguments and variables."""
    if not _takes_variables(grad):
        raise TypeError(
            "If using @custom_gradient with a function that uses variables, then grad_fn must "
            f"accept a 'variables' keyword argument: that of {f.__name__} does not."
        )
    return grad(*upstream, variables=faces)


def _takes_variables(grad: Callable[..., Any]) -> bool:
    parameters = inspect.signature(grad).parameters.values()
    return any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters)


def _to_core_gradients(found: Any) -> Any:
    made = nest.map_structure(lambda g: None if g is None else conjugate(to_array(g)), found)
    return tuple(made) if isinstance(made, list) else made


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function whose gradient is that of returning its arguments.

    Args:
        f: takes tensors, returns one of the form of its first argument.
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        result = f(*args, **kwargs)
        made = [stop_gradient(x) for x in nest.flatten(result)]

        @custom_gradient
        def passed(*both: Any) -> Any:
            return list(both[: len(made)]), lambda *upstream: [None] * len(made) + list(upstream)

        return nest.pack_sequence_as(result, passed(*made, *args))

    return decorated


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function compute its intermediate values again in the backward pass.

    Args:
        f: takes and returns tensors; may read and assign variables. Numbers and bools of Python
            and NumPy among its arguments stay what they are.
    """
    core: Callable[..., Any] = _custom.recompute(
        lambda *args, **kwargs: _recompute(f, args, kwargs)
    )

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        given = [nest.map_structure(_to_core_argument, x) for x in args]
        named = {key: nest.map_structure(_to_core_argument, x) for key, x in kwargs.items()}
        return _call_in_rule(core, given, named)

    return decorated


def _to_core_argument(leaf: Any) -> Any:
    if isinstance(leaf, Variable):
        return _Kept(leaf)
    is_array = is_traced(leaf) and not isinstance(leaf, np.generic)  # which stays a number
    return to_array(leaf) if is_array else leaf


@final
class _Kept:
    """A variable among arguments, which is not to be read."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable


def _recompute(f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    def seen(leaf: Any) -> Any:
        return leaf.variable if isinstance(leaf, _Kept) else wrap(leaf)

    return arrays_of(f(*nest.map_structure(seen, args), **nest.map_structure(seen, kwargs)))


def _call_in_rule(core: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    # A function of this module, which cloudpickle sends by name: it cannot send what this uses.
    with IN_RULE.set(True):
        return wrap(core(*args, **kwargs))

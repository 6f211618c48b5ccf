"""`tf.linalg.experimental`: equations solved step by step."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxvars.control.loops import while_loop
from jaxvars.tf.linalg.operators.declare import array_of
from jaxvars.tf.linalg.operators.operator import LinearOperator
from jaxvars.tf.tensors.tensor import wrap
from jaxvars.typing import Array


class ConjugateGradientState(NamedTuple):
    """Where the method of conjugate gradients is.

    Attributes:
        i: how many steps were taken.
        x: the solution so far.
        r: what is left of the right-hand side.
        p: the direction of the next step.
        gamma: the product of `r` and what the preconditioner makes of it.
    """

    i: Array
    x: Array
    r: Array
    p: Array
    gamma: Array


def conjugate_gradient(
    operator: LinearOperator,
    rhs: Any,
    preconditioner: LinearOperator | None = None,
    x: Any = None,
    tol: float = 1e-05,
    max_iter: int = 20,
    name: str = "conjugate_gradient",
) -> Any:
    """Return the solution of A x = rhs by the method of conjugate gradients.

    Args:
        operator: A, self-adjoint and positive definite.
        rhs: of shape [..., n].
        preconditioner: an operator near the inverse of A.
        x: where to start; zeros when None.
        tol: how small what is left is, relative to `rhs`, when it ends.
        max_iter: how many steps are taken at most.
        name: of no effect.

    Returns:
        `i`, `x`, `r`, `p` and `gamma`: the number of steps, the solution, and the rest.

    Raises:
        ValueError: when the operators are not known to be self-adjoint and positive definite.

    >>> from jaxvars import tf
    >>> a = tf.linalg.LinearOperatorFullMatrix(
    ...     [[4.0, 1.0], [1.0, 3.0]], is_self_adjoint=True, is_positive_definite=True
    ... )
    >>> [f"{x:.4f}" for x in conjugate_gradient(a, [1.0, 2.0]).x.numpy()]
    ['0.0909', '0.6364']

    Source: https://en.wikipedia.org/wiki/Conjugate_gradient_method
    """
    for op, what in ((operator, "operator"), (preconditioner, "preconditioner")):
        if op is not None and not (op.is_self_adjoint and op.is_positive_definite):
            raise ValueError(f"Expected a self-adjoint, positive definite {what}.")
    b = array_of(rhs, operator.dtype)[..., None]
    start = _make_start(operator, preconditioner, b, x)
    limit = tol * jnp.linalg.norm(b, axis=(-2, -1))

    def goes_on(state: ConjugateGradientState) -> Array:
        left = jnp.linalg.norm(state.r, axis=(-2, -1))
        return jnp.any(left > limit)

    def step(state: ConjugateGradientState) -> ConjugateGradientState:
        return _step_once(operator, preconditioner, state)

    end = while_loop(goes_on, step, start, max_iterations=int(max_iter))
    return wrap(end._replace(x=end.x[..., 0], r=end.r[..., 0], p=end.p[..., 0]))


def _make_start(
    operator: LinearOperator, preconditioner: LinearOperator | None, b: Array, x: Any
) -> ConjugateGradientState:
    batch = jnp.broadcast_shapes(b.shape[:-2], operator.sizes[:-2])
    b = jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
    if x is None:
        start, rest = jnp.zeros_like(b), b
    else:
        start = jnp.broadcast_to(array_of(x, operator.dtype)[..., None], b.shape)
        rest = b - operator.product(start)
    direction = rest if preconditioner is None else preconditioner.product(rest)
    return ConjugateGradientState(
        jnp.asarray(0, jnp.int32), start, rest, direction, _dot(rest, direction)
    )


def _step_once(
    operator: LinearOperator, preconditioner: LinearOperator | None, state: ConjugateGradientState
) -> ConjugateGradientState:
    i, x, r, p, gamma = state
    image = operator.product(p)
    alpha = (gamma / _dot(p, image))[..., None, None]
    x, r = x + alpha * p, r - alpha * image
    q = r if preconditioner is None else preconditioner.product(r)
    new = _dot(r, q)
    return ConjugateGradientState(i + 1, x, r, q + (new / gamma)[..., None, None] * p, new)


def _dot(x: Array, y: Array) -> Array:
    return jnp.sum(jnp.conj(x) * y, (-2, -1))

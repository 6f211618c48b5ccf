"""`tf.test.compute_gradient`: derivatives from the tape, and from differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxvars.tf.autodiff.tape import GradientTape, UnconnectedGradients
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.test.case import as_array


def compute_gradient(
    f: Callable[..., Any], x: Any, delta: float | None = None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the derivatives of a function as matrices: from the tape, and from differences.

    Args:
        f: a function of tensors that returns one.
        x: the list of its arguments.
        delta: the step of the differences; that of the type when None.

    Returns:
        For each argument a matrix of one row for each element of the result, twice. A complex
        number counts as two.

    >>> from jaxvars import tf
    >>> exact, near = compute_gradient(lambda x: x * x, [tf.constant([1.0, 2.0])])
    >>> exact[0].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    arguments = [Tensor(to_array(part)) for part in x]
    exact: list[np.ndarray] = []
    near: list[np.ndarray] = []
    for i, argument in enumerate(arguments):
        with GradientTape(persistent=True) as tape:
            tape.watch(argument)
            y = f(*arguments)
        exact.append(_derivatives(tape, Tensor(to_array(y)), argument))
        near.append(_differences(f, arguments, i, delta))
    return exact, near


def _derivatives(tape: GradientTape, y: Tensor, x: Tensor) -> np.ndarray:
    """Return a matrix of one row for each real number in `y`, one column for each in `x`."""
    shape = _reals(as_array(y)).size, _reals(as_array(x)).size
    if not (y.dtype.is_complex or x.dtype.is_complex):
        jacobian = tape.jacobian(y, x)
        return np.zeros(shape) if jacobian is None else as_array(jacobian).reshape(shape)
    rows: list[np.ndarray] = []
    for i in range(shape[0]):
        weights = np.zeros(as_array(y).shape, as_array(y).dtype)
        _reals(weights)[i] = 1
        row = tape.gradient(y, x, Tensor(to_array(weights)), UnconnectedGradients.ZERO)
        rows.append(_reals(as_array(row)))
    return np.stack(rows) if rows else np.zeros(shape)


def _reals(array: np.ndarray) -> np.ndarray:
    """Return an array in one dimension; a complex number is two real ones."""
    flat = np.atleast_1d(array).reshape(-1)
    return flat.view(np.real(flat).dtype)


def _differences(
    f: Callable[..., Any], arguments: list[Tensor], which: int, delta: float | None
) -> np.ndarray:
    base = as_array(arguments[which])
    step = delta or float(np.finfo(base.dtype).eps) ** (1 / 3)
    columns: list[np.ndarray] = []
    for i in range(_reals(base).size):
        sides: list[np.ndarray] = []
        for sign in (1, -1):
            moved = base.copy()
            _reals(moved)[i] += sign * step
            given = [*arguments[:which], Tensor(to_array(moved)), *arguments[which + 1 :]]
            sides.append(_reals(as_array(f(*given))))
        columns.append((sides[0] - sides[1]) / (2 * step))
    rows = _reals(as_array(f(*arguments))).size
    return np.stack(columns, -1) if columns else np.zeros((rows, 0))

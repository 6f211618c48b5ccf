"""Linear operators to compare with TensorFlow: one or two of each class, of fixed values."""

from __future__ import annotations

from typing import Any

import numpy as np


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Return random values, the same each time."""
    stream = np.random.default_rng([seed, *shape])
    return stream.standard_normal(shape).astype(np.float32)


def complexes(*shape: int) -> np.ndarray:
    """Return random complex values."""
    return (numbers(*shape) + 1j * numbers(*shape, seed=1)).astype(np.complex64)


def positive(*shape: int) -> np.ndarray:
    """Return random positive values, for diagonals."""
    return np.abs(numbers(*shape, seed=2)) + np.float32(0.5)


def definite(*shape: int) -> np.ndarray:
    """Return positive definite matrices."""
    x = numbers(*shape, shape[-1], seed=3)
    return x @ np.swapaxes(x, -1, -2) + 2 * np.eye(shape[-1], dtype=np.float32)


def strong(*shape: int) -> np.ndarray:
    """Return three diagonals, of which the middle is the largest."""
    return numbers(3, *shape) + np.array([[0], [5], [0]], np.float32)


def operators(tf: Any) -> dict[str, Any]:
    """Return functions that make operators, by name; `tf` is TensorFlow, or stands for it."""
    k = tf.linalg
    full, diag = k.LinearOperatorFullMatrix, k.LinearOperatorDiag
    return {
        "diag": lambda: diag(positive(3), is_positive_definite=True),
        "diag of a batch": lambda: diag(numbers(2, 3)),
        "diag complex": lambda: diag(complexes(3)),
        "identity": lambda: k.LinearOperatorIdentity(3, batch_shape=[2]),
        "scaled identity": lambda: k.LinearOperatorScaledIdentity(3, positive(2)),
        "zeros": lambda: k.LinearOperatorZeros(3),
        "full": lambda: full(numbers(2, 3, 3)),
        "full, wide": lambda: full(numbers(2, 3)),
        "full complex": lambda: full(complexes(3, 3), is_non_singular=True),
        "definite": lambda: full(definite(3), is_self_adjoint=True, is_positive_definite=True),
        "triangle": lambda: k.LinearOperatorLowerTriangular(
            numbers(3, 3) + 3 * np.eye(3, dtype=np.float32)
        ),
        "tridiag": lambda: k.LinearOperatorTridiag(strong(4)),
        "tridiag list": lambda: k.LinearOperatorTridiag(
            list(strong(4)), diagonals_format="sequence"
        ),
        "toeplitz": lambda: k.LinearOperatorToeplitz(
            np.array([5, 1, 2], np.float32), np.array([5, 3, 4], np.float32)
        ),
        "permutation": lambda: k.LinearOperatorPermutation(np.array([2, 0, 1], np.int32)),
        "householder": lambda: k.LinearOperatorHouseholder(numbers(3)),
        "circulant": lambda: k.LinearOperatorCirculant(
            np.fft.fft(positive(3)).astype(np.complex64), input_output_dtype=tf.float32
        ),
        "circulant complex": lambda: k.LinearOperatorCirculant(complexes(2, 3)),
        "circulant 2d": lambda: k.LinearOperatorCirculant2D(complexes(2, 2)),
        "circulant 3d": lambda: k.LinearOperatorCirculant3D(positive(2, 1, 2)),
        "adjoint": lambda: k.LinearOperatorAdjoint(full(complexes(3, 3))),
        "inversion": lambda: k.LinearOperatorInversion(full(definite(3))),
        "composition": lambda: k.LinearOperatorComposition(
            [full(numbers(3, 3)), diag(positive(2, 3)), full(definite(3))]
        ),
        "low rank": lambda: k.LinearOperatorLowRankUpdate(
            diag(positive(3), is_positive_definite=True), numbers(3, 2)
        ),
        "low rank, two sides": lambda: k.LinearOperatorLowRankUpdate(
            full(definite(3)), numbers(3, 2), positive(2), numbers(3, 2, seed=4)
        ),
        "kronecker": lambda: k.LinearOperatorKronecker([full(definite(2)), diag(positive(2))]),
        "blocks": lambda: k.LinearOperatorBlockDiag([full(definite(2)), diag(positive(2, 2))]),
        "blocks below": lambda: k.LinearOperatorBlockLowerTriangular(
            [[full(definite(2))], [full(numbers(1, 2)), full(definite(1))]]
        ),
    }


HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")


def facts(op: Any) -> dict[str, Any]:
    """Return what is compared: values, what is known of it, and what is refused, by name."""
    columns, rows = (int(op.shape[axis]) for axis in (-1, -2))
    dtype = op.dtype.as_numpy_dtype
    x, y = numbers(columns).astype(dtype), numbers(rows).astype(dtype)
    calls = {
        "to_dense": op.to_dense,
        "matvec": lambda: op.matvec(x),
        "matvec of the adjoint": lambda: op.matvec(y, adjoint=True),
        "solvevec": lambda: op.solvevec(y),
        "solvevec of the adjoint": lambda: op.solvevec(x, adjoint=True),
        "diag_part": op.diag_part,
        "trace": op.trace,
        "determinant": op.determinant,
        "log_abs_determinant": op.log_abs_determinant,
        "cond": op.cond if op.name != "LinearOperatorZeros" else op.trace,
    }
    made: dict[str, Any] = {name: getattr(op, name) for name in HINTS}
    made |= {"name": op.name, "shape": list(op.shape)}
    return made | {name: value(call) for name, call in calls.items()}


def value(call: Any) -> Any:
    """Return what a call gives, as what JSON can say; the name of what it raises."""
    try:
        found = call().numpy()
    except Exception as error:  # noqa: BLE001 - whatever it raises is compared
        return type(error).__name__
    parts = [found.real, found.imag] if found.dtype.kind == "c" else [found]
    numbers = [[float(f"{x:.6g}") for x in part.ravel()] for part in parts]
    return {"dtype": found.dtype.name, "shape": list(found.shape), "parts": numbers}

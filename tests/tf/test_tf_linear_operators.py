"""`tf.linalg.LinearOperator*`, compared with TensorFlow's; see `make_tf_goldens.py`."""

from __future__ import annotations

import json
from pathlib import Path

import linear_operator_cases as cases
import numpy as np
import pytest

from jaxvars import tf

GOLDENS = json.loads(
    (Path(__file__).parent.parent / "goldens" / "tf_linear_operators.json").read_text()
)
OPERATORS = cases.operators(tf)
kinds = tf.linalg
DEFINITE = [[4.0, 1.0], [1.0, 3.0]]


OFTEN = {  # of the others in the long run: compiling takes its time
    "diag of a batch", "scaled identity", "full, wide", "tridiag", "low rank, two sides",
    "permutation", "householder", "circulant 2d",
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in OFTEN else pytest.mark.slow) for n in OPERATORS]
)
def test_operators_are_tensorflows(name):
    found = cases.facts(OPERATORS[name]())
    for fact, wanted in GOLDENS[name].items():
        if not isinstance(wanted, dict):
            assert found[fact] == wanted, fact
            continue
        got = found[fact]
        assert isinstance(got, dict), f"{fact}: {got}"
        assert [got["dtype"], got["shape"]] == [wanted["dtype"], wanted["shape"]], fact
        np.testing.assert_allclose(
            got["parts"], wanted["parts"], rtol=2e-3, atol=2e-4, err_msg=fact
        )


@pytest.mark.parametrize("name", ["full complex", "blocks below"])
def test_matrices_and_made_operators_agree(name):
    op = OPERATORS[name]()
    dense = op.to_dense().numpy()
    other = dense.conj().swapaxes(-1, -2)
    x = cases.numbers(2, dense.shape[-1]).astype(dense.dtype)
    near = {"rtol": 1e-3, "atol": 1e-3}
    np.testing.assert_allclose(op.matmul(x, adjoint_arg=True), dense @ x.T, **near)
    np.testing.assert_allclose(op.H.to_dense(), other, **near)
    np.testing.assert_allclose(op.inverse().to_dense(), np.linalg.inv(dense), **near)
    np.testing.assert_allclose(op.solve(x, True, True), np.linalg.solve(other, x.T), **near)
    np.testing.assert_allclose((op @ op).to_dense(), dense @ dense, **near)
    np.testing.assert_allclose(op.solve(op).to_dense(), np.eye(len(dense)), **near)
    np.testing.assert_allclose(op.add_to_tensor(np.eye(len(dense), dtype=dense.dtype)),
                               dense + np.eye(len(dense)), **near)  # fmt: skip


def test_simple_kinds_stay_simple():
    diag, twice = kinds.LinearOperatorDiag([1.0, 2.0]), kinds.LinearOperatorScaledIdentity(2, 2.0)
    one = kinds.LinearOperatorIdentity(2)
    full = kinds.LinearOperatorFullMatrix(DEFINITE)
    low = kinds.LinearOperatorLowerTriangular(DEFINITE)
    circulant = kinds.LinearOperatorCirculant(tf.constant([1.0, 2.0]))
    blocks = kinds.LinearOperatorBlockDiag([diag, one])
    assert isinstance(diag @ twice, kinds.LinearOperatorDiag)
    assert isinstance(diag.solve(twice), kinds.LinearOperatorDiag)
    assert (diag.solve(twice)).diag_part().numpy().tolist() == [2.0, 1.0]
    assert isinstance(twice @ twice, kinds.LinearOperatorScaledIdentity)
    assert one @ full is full
    assert full @ one is full
    assert isinstance(diag @ low, kinds.LinearOperatorLowerTriangular)
    assert isinstance(circulant @ circulant, kinds.LinearOperatorCirculant)
    assert isinstance(blocks @ blocks, kinds.LinearOperatorBlockDiag)
    assert isinstance(full @ diag, kinds.LinearOperatorComposition)
    assert isinstance(full @ kinds.LinearOperatorZeros(2), kinds.LinearOperatorZeros)
    assert isinstance(diag.inverse(), kinds.LinearOperatorDiag)
    assert isinstance(full.inverse().inverse(), kinds.LinearOperatorFullMatrix)
    assert isinstance(full.H.H, kinds.LinearOperatorFullMatrix)
    assert isinstance(blocks.inverse(), kinds.LinearOperatorBlockDiag)


def test_factors():
    for op in (
        kinds.LinearOperatorFullMatrix(DEFINITE, is_self_adjoint=True, is_positive_definite=True),
        kinds.LinearOperatorDiag([4.0, 9.0], is_positive_definite=True),
        kinds.LinearOperatorScaledIdentity(2, 4.0, is_positive_definite=True),
        kinds.LinearOperatorIdentity(2),
    ):
        factor = op.cholesky().to_dense().numpy()
        np.testing.assert_allclose(factor @ factor.T, op.to_dense(), rtol=1e-5)
        np.testing.assert_allclose(
            np.sort(op.eigvals()), np.linalg.eigvalsh(op.to_dense()), rtol=1e-5
        )
    with pytest.raises(ValueError, match="Not a positive definite self adjoint"):
        kinds.LinearOperatorFullMatrix(DEFINITE).cholesky()
    with pytest.raises(NotImplementedError, match="Only self-adjoint"):
        kinds.LinearOperatorFullMatrix(DEFINITE).eigvals()


def test_lists_of_blocks():
    op = OPERATORS["blocks below"]()
    dense = op.to_dense().numpy()
    x = [tf.constant([1.0, 2.0]), tf.constant([3.0])]
    whole = dense @ np.array([1.0, 2.0, 3.0])
    parts = op.matvec(x)
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-4)
    back = op.solvevec(parts)
    np.testing.assert_allclose(np.concatenate(back), [1.0, 2.0, 3.0], rtol=1e-3)
    columns = op.matmul([part[:, None] for part in x], adjoint=True)
    np.testing.assert_allclose(
        np.concatenate(columns)[:, 0], dense.T @ [1.0, 2.0, 3.0], rtol=1e-4, atol=1e-4
    )


def test_variables_are_parameters_and_train():
    scale = tf.Variable([2.0, 4.0], name="scale")
    op = kinds.LinearOperatorDiag(scale)
    assert op.trainable_variables == (scale,)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(op.solvevec([1.0, 1.0])) + op.log_abs_determinant()
    np.testing.assert_allclose(tape.gradient(loss, scale), [-1 / 4 + 1 / 2, -1 / 16 + 1 / 4])
    scale.assign([1.0, 1.0])
    assert op.matvec([3.0, 4.0]).numpy().tolist() == [3.0, 4.0]


def test_compiled_functions_take_and_return_operators():
    runs = []

    @tf.function
    def solved(op, rhs):
        runs.append(type(op).__name__)
        return op.solvevec(rhs), op.inverse()

    for factor in (2.0, 4.0):
        x, inverse = solved(kinds.LinearOperatorDiag(tf.constant([factor, 1.0])), tf.ones(2))
        assert x.numpy().tolist() == [1 / factor, 1.0]
        assert isinstance(inverse, kinds.LinearOperatorDiag)
        assert inverse.diag.numpy().tolist() == [1 / factor, 1.0]
    assert runs == ["LinearOperatorDiag"]  # compiled once for both

    scale = tf.Variable([2.0, 4.0])

    @tf.function
    def gradient(op):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(op.matvec([1.0, 1.0]))
        scale.assign_add([1.0, 1.0])
        return tape.gradient(loss, scale), op.matvec([1.0, 1.0])

    found, after = gradient(kinds.LinearOperatorDiag(scale))
    assert found.numpy().tolist() == [1.0, 1.0]
    assert after.numpy().tolist() == scale.numpy().tolist() == [3.0, 5.0]


def test_one_of_ones_own():
    class Twice(kinds.LinearOperator):
        def _shape(self):
            return tf.TensorShape([2, 2])

        def _matmul(self, x, adjoint=False, adjoint_arg=False):
            return 2.0 * (tf.linalg.adjoint(x) if adjoint_arg else tf.identity(x))

    op = Twice(tf.float32, is_self_adjoint=True, is_positive_definite=True)
    assert op.name == "Twice"
    assert op.to_dense().numpy().tolist() == [[2.0, 0.0], [0.0, 2.0]]
    np.testing.assert_allclose(op.solvevec([1.0, 2.0]), [0.5, 1.0])
    np.testing.assert_allclose(op.determinant(), 4.0, rtol=1e-6)
    with pytest.raises(TypeError, match="abstract"):
        kinds.LinearOperator(tf.float32)


@pytest.mark.parametrize(("make", "error", "words"), [
    (lambda: kinds.LinearOperatorFullMatrix(DEFINITE, is_square=False, is_non_singular=True),
     ValueError, "A non-singular matrix is always square"),
    (lambda: kinds.LinearOperatorFullMatrix([[1.0, 2.0]], is_self_adjoint=True).is_square,
     ValueError, "User set is_square hint to True"),
    (lambda: kinds.LinearOperatorDiag([1.0], is_self_adjoint=False), ValueError,
     "real diagonal operator is always self adjoint"),
    (lambda: kinds.LinearOperatorIdentity(2).matvec([1.0, 2.0, 3.0]), ValueError,
     "Dimensions 2 and 3 are not compatible"),
    (lambda: kinds.LinearOperatorZeros(2).solvevec([1.0, 2.0]), NotImplementedError,
     "expected to be singular"),
    (lambda: kinds.LinearOperatorFullMatrix([[1.0, 2.0]]).determinant(), NotImplementedError,
     "expected to not be square"),
    (lambda: kinds.LinearOperatorDiag([1.0]) @ kinds.LinearOperatorIdentity(2), ValueError,
     "Operators are incompatible"),
    (lambda: kinds.LinearOperatorDiag([1.0, 0.0]).assert_non_singular(),
     tf.errors.InvalidArgumentError, "Diagonal contained zero values"),
    (lambda: kinds.LinearOperatorDiag([1.0, -1.0]).assert_positive_definite(),
     tf.errors.InvalidArgumentError, "not positive definite"),
    (lambda: kinds.LinearOperatorFullMatrix([[1.0, 2.0], [0.0, 1.0]]).assert_self_adjoint(),
     tf.errors.InvalidArgumentError, "not equal to its adjoint"),
    (lambda: kinds.LinearOperatorFullMatrix(tf.ones([2, 2])).assert_non_singular(),
     tf.errors.InvalidArgumentError, "Singular matrix up to precision"),
    (lambda: kinds.LinearOperatorComposition([]), ValueError, "non-empty list of operators"),
    (lambda: kinds.LinearOperatorIdentity(2.5), TypeError, "must be integer type"),
    (lambda: kinds.LinearOperatorDiagonal, AttributeError, "no attribute"),
])  # fmt: skip
def test_what_cannot_be_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_conjugate_gradient():
    matrix = tf.Variable(DEFINITE)
    hints = {"is_self_adjoint": True, "is_positive_definite": True}
    op = kinds.LinearOperatorFullMatrix(matrix, **hints)
    solve = tf.linalg.experimental.conjugate_gradient
    with tf.GradientTape() as tape:
        found = solve(op, [1.0, 2.0])
        loss = tf.reduce_sum(found.x)
    np.testing.assert_allclose(found.x, np.linalg.solve(DEFINITE, [1.0, 2.0]), rtol=1e-4)
    assert found.i.numpy() == 2
    inverse = np.linalg.inv(DEFINITE)
    wanted = -np.outer(inverse.T @ [1.0, 1.0], inverse @ [1.0, 2.0])
    slope = tape.gradient(loss, matrix).numpy()  # the method takes A for symmetric
    np.testing.assert_allclose(slope + slope.T, wanted + wanted.T, rtol=1e-3)
    near = solve(op, [1.0, 2.0], preconditioner=kinds.LinearOperatorIdentity(2), x=[0.1, 0.6])
    np.testing.assert_allclose(near.x, np.linalg.solve(DEFINITE, [1.0, 2.0]), rtol=1e-4)
    with pytest.raises(ValueError, match="self-adjoint, positive definite operator"):
        solve(kinds.LinearOperatorFullMatrix(DEFINITE), [1.0, 2.0])

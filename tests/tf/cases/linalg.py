"""Examples of `tf.linalg`."""

from __future__ import annotations

EXAMPLES = {
    "linalg.adjoint": (
        "linalg.adjoint(r(2, 3))", "linalg.adjoint(z(2, 1, 2))", "linalg.adjoint(i(2, 1))",
    ),
    "linalg.band_part": (
        "linalg.band_part(r(3, 3), 1, 0)", "linalg.band_part(i(2, 2, 3), -1, 0)",
        "linalg.band_part(r(1, 3), 5, 0)",
    ),
    "linalg.banded_triangular_solve": (
        "linalg.banded_triangular_solve(p(2, 4), r(4, 2))",
        "linalg.banded_triangular_solve(p(2, 3), r(3, 1), lower=False)",
        "linalg.banded_triangular_solve(p(2, 3), r(3, 1), adjoint=True)",
    ),
    "linalg.cholesky": (
        "linalg.cholesky(tf.eye(3) * 4.0 + r(3, 3) * 0.5)",
        "linalg.cholesky([[2.0, 9.0], [1.0, 2.0]])", "linalg.cholesky(r(2, 3))",
    ),
    "linalg.cholesky_solve": (
        "linalg.cholesky_solve(p(3, 3), r(3, 2))", "linalg.cholesky_solve(p(2, 2, 2), r(2, 2, 1))",
        "linalg.cholesky_solve(p(2, 2), r(2))",
    ),
    "linalg.cross": (
        "linalg.cross(r(2, 3), r(2, 3))", "linalg.cross(i(3), i(3))", "linalg.cross(r(2), r(2))",
    ),
    "linalg.det": (
        "linalg.det(r(2, 3, 3))", "linalg.det(np.zeros((0, 0), 'f'))", "linalg.det(r(2, 3))",
    ),
    "linalg.diag": (
        "linalg.diag(r(2, 3))", "linalg.diag([1, 2], k=1)",
        "linalg.diag([[1, 2, 3], [4, 5, 0]], k=(-1, 0), align='LEFT_RIGHT', padding_value=9)",
        "linalg.diag(r(2), num_rows=3, num_cols=2)", "linalg.diag([1, 2], num_rows=1)",
        "linalg.diag(1)",
    ),
    "linalg.diag_part": (
        "linalg.diag_part(r(2, 2, 3))", "linalg.diag_part(r(2, 3), k=(-1, 1))",
        "linalg.diag_part(i(3, 3), k=(0, 2), align='LEFT_LEFT', padding_value=-1)",
        "linalg.diag_part(r(2, 3), k=5)", "linalg.diag_part([1])",
    ),
    "linalg.eig": (
        "linalg.eig(p(2, 2))[0]", "linalg.eig(tf.constant([[2.0, 1.0], [1.0, 3.0]]))[0]",
        "linalg.eig(r(2, 3))",
    ),
    "linalg.eigh": (
        "linalg.eigh(r(3, 3))[0]", "abs(tf.linalg.eigh(r(2, 2, 2))[1])", "linalg.eigh(r(2, 3))",
    ),
    "linalg.eigh_tridiagonal": (
        "linalg.eigh_tridiagonal([1.0, 2.0, 4.0], [0.5, -1.0])",
        "linalg.eigh_tridiagonal([1.0, 2.0, 4.0], [1.0, 1.0], select='i', select_range=(1, 2))",
        "abs(tf.linalg.eigh_tridiagonal([1.0, 2.0, 4.0], [1.0, 2.0], eigvals_only=False)[1])",
        "linalg.eigh_tridiagonal([1.0, 2.0], [1.0], select='v', select_range=(0.0, 1.0))",
    ),
    "linalg.eigvals": (
        "linalg.eigvals(p(2, 2))", "linalg.eigvals(tf.constant([[2.0, 1.0], [1.0, 3.0]]))",
        "linalg.eigvals(r(2, 3))",
    ),
    "linalg.eigvalsh": (
        "linalg.eigvalsh(r(3, 3))", "linalg.eigvalsh([[2.0, 9.0], [1.0, 3.0]])",
        "linalg.eigvalsh(z(2, 2))",
    ),
    "linalg.expm": ("linalg.expm(r(2, 2, 2))", "linalg.expm(r(0, 0))", "linalg.expm(i(2, 2))"),
    "linalg.global_norm": (
        "linalg.global_norm([r(2), None, r(2, 3)])", "linalg.global_norm([None])",
        "linalg.global_norm(r(2))",
    ),
    "linalg.inv": (
        "linalg.inv(r(2, 3, 3))", "linalg.inv([[1.0, 2.0], [2.0, 4.0]])",
        "linalg.inv(z(2, 2), adjoint=True)", "linalg.inv(r(2, 3))", "linalg.inv(i(2, 2))",
    ),
    "linalg.logdet": (
        "linalg.logdet(tf.linalg.diag(p(2, 3)))", "linalg.logdet([[2.0, 1.0], [1.0, 2.0]])",
        "linalg.logdet(r(2, 3))",
    ),
    "linalg.logm": ("linalg.logm(z(2, 2))", "linalg.logm(z(2, 2, 2))", "linalg.logm(r(2, 2))"),
    "linalg.lstsq": (
        "linalg.lstsq(r(3, 2), r(3, 1))", "linalg.lstsq(r(2, 3), r(2, 1), l2_regularizer=0.5)",
        "linalg.lstsq(r(3, 2), r(3, 1), fast=False)", "linalg.lstsq(r(3, 2), r(2, 1))",
    ),
    "linalg.lu": (
        "linalg.lu(r(3, 3))", "linalg.lu(r(2, 3, 3), np.int64)",
        "linalg.lu([[1.0, 2.0], [2.0, 4.0]])", "linalg.lu(r(2, 3))",
    ),
    "linalg.lu_matrix_inverse": (
        "linalg.lu_matrix_inverse(p(3, 3), [2, 0, 1])",
        "linalg.lu_matrix_inverse(*tf.linalg.lu(r(2, 2, 2)))",
        "linalg.lu_matrix_inverse(i(2, 2), [1, 0])",
    ),
    "linalg.lu_reconstruct": (
        "linalg.lu_reconstruct(r(3, 3), [2, 0, 1])",
        "linalg.lu_reconstruct(*tf.linalg.lu(r(2, 3, 3)))",
        "linalg.lu_reconstruct(i(2, 2), [1, 0])",
    ),
    "linalg.lu_solve": (
        "linalg.lu_solve(p(3, 3), [2, 0, 1], r(3, 2))",
        "linalg.lu_solve(p(2, 2), [0, 1], r(3, 2, 1))", "linalg.lu_solve(i(2, 2), [1, 0], i(2, 1))",
    ),
    "linalg.matrix_rank": (
        "linalg.matrix_rank(r(2, 2, 3))", "linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])",
        "linalg.matrix_rank(i(2, 2))",
    ),
    "linalg.matrix_transpose": (
        "linalg.matrix_transpose(r(2, 2, 3))", "linalg.matrix_transpose(z(1, 2), conjugate=True)",
        "linalg.matrix_transpose([1])",
    ),
    "linalg.matvec": (
        "linalg.matvec(r(2, 3), r(3))", "linalg.matvec(z(2, 3), z(2), adjoint_a=True)",
        "linalg.matvec(r(2, 3), r(2))", "linalg.matvec(r(2, 2, 3), r(2, 3))",
    ),
    "linalg.norm": (
        "norm(r(2, 3), axis=1)", "norm(r(2, 3), ord=1, axis=[0, 1])",
        "norm(r(2, 3, 2), 2, axis=(0, 2), keepdims=True)", "norm([[3.0, -4.0]], np.inf, (-2, -1))",
        "norm(r(2, 3), 3, axis=-1)", "norm(z(3))", "norm(r(2), 'fro')", "norm(i(2))",
        "norm(r(2, 3), 3, [0, 1])", "norm(r(2, 3), 'fro', [0, 1])", "norm(r(3), np.inf)",
    ),
    "linalg.normalize": (
        "linalg.normalize(r(2, 3), axis=1)", "linalg.normalize(r(3), ord=1)",
        "linalg.normalize([0.0, 0.0])",
    ),
    "linalg.pinv": (
        "linalg.pinv(r(2, 3))", "linalg.pinv([[1.0, 2.0], [2.0, 4.0]])", "linalg.pinv(i(2, 2))",
    ),
    "linalg.qr": (
        "linalg.qr(r(3, 2))", "linalg.qr(r(2, 3), full_matrices=True)", "linalg.qr(r(2))",
    ),
    "linalg.set_diag": (
        "linalg.set_diag(r(2, 2, 3), r(2, 2))", "linalg.set_diag(i(2, 3), [7, 8, 9])",
        "linalg.set_diag(i(2, 3), [[8, 9], [7, 0]], k=(0, 1))",
    ),
    "linalg.slogdet": (
        "linalg.slogdet(r(3, 3))", "linalg.slogdet([[0.0, 1.0], [0.0, 0.0]])",
        "linalg.slogdet(z(2, 2))",
    ),
    "linalg.solve": (
        "linalg.solve(r(3, 3), r(3, 2))", "linalg.solve([[1.0, 2.0], [2.0, 4.0]], r(2, 1))",
        "linalg.solve(z(2, 2), z(2, 1), adjoint=True)", "linalg.solve(r(2, 2), r(2))",
    ),
    "linalg.sqrtm": (
        "linalg.sqrtm(p(2, 2) + tf.eye(2) * 3.0)", "linalg.sqrtm([[-1.0, 0.0], [0.0, -1.0]])",
        "linalg.sqrtm(z(2, 2, 2))", "linalg.sqrtm(r(2, 3))",
    ),
    "linalg.svd": (
        "linalg.svd(r(2, 3, 2))[0]", "linalg.svd(r(2, 3), compute_uv=False)",
        "abs(tf.linalg.svd([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], full_matrices=True)[1])",
        "abs(tf.linalg.svd(r(3, 2))[2])", "linalg.svd(r(2))",
    ),
    "linalg.tensor_diag": (
        "linalg.tensor_diag(r(3))", "linalg.tensor_diag(i(2, 2))", "linalg.tensor_diag(1.0)",
    ),
    "linalg.tensor_diag_part": (
        "linalg.tensor_diag_part(r(3, 3))", "linalg.tensor_diag_part(i(2, 2, 2, 2))",
        "linalg.tensor_diag_part(r(2, 3))",
    ),
    "linalg.tensordot": (
        "tensordot(r(2, 3), r(3, 2), 1)", "tensordot(r(2, 3), r(3, 2), [[0, 1], [1, 0]])",
        "tensordot(i(2), i(3), 0)", "tensordot(r(2), r(3), 1)", "tensordot(r(2), r(2), 2)",
        "tensordot(r(2, 2), r(2, 2), [0, 1])",
    ),
    "linalg.trace": ("linalg.trace(r(2, 3, 3))", "linalg.trace(i(2, 3))", "linalg.trace([1])"),
    "linalg.triangular_solve": (
        "linalg.triangular_solve(p(3, 3), r(3, 2))",
        "linalg.triangular_solve(p(2, 3, 3), r(3, 1), lower=False, adjoint=True)",
        "linalg.triangular_solve(p(2, 2), r(2))",
    ),
    "linalg.tridiagonal_matmul": (
        "linalg.tridiagonal_matmul(p(3, 4), r(4, 2))",
        "linalg.tridiagonal_matmul(p(2, 3, 3), r(2, 3, 1))",
        "linalg.tridiagonal_matmul(p(3, 3), r(3, 2), diagonals_format='matrix')",
    ),
    "linalg.tridiagonal_solve": (
        "linalg.tridiagonal_solve(p(3, 4), r(4, 2))",
        "linalg.tridiagonal_solve((p(3), p(4), p(3)), r(4), diagonals_format='sequence')",
        "linalg.tridiagonal_solve(p(3, 3), r(2, 3), 'matrix', transpose_rhs=True)",
    ),
}  # fmt: skip

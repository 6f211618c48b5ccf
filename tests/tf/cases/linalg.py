"""Examples of `tf.linalg`."""

from __future__ import annotations

EXAMPLES = """
adjoint: r(2, 3) | z(2, 1, 2) | i(2, 1)
band_part: r(3, 3), 1, 0 | i(2, 2, 3), -1, 0 | r(1, 3), 5, 0
cholesky: tf.eye(3) * 4.0 + r(3, 3) * 0.5 | [[2.0, 9.0], [1.0, 2.0]] | r(2, 3)
cholesky_solve: p(3, 3), r(3, 2) | p(2, 2, 2), r(2, 2, 1) | p(2, 2), r(2)
cross: r(2, 3), r(2, 3) | i(3), i(3) | r(2), r(2)
det: r(2, 3, 3) | np.zeros((0, 0), 'f') | r(2, 3)
diag: r(2, 3) | [1, 2], k=1 | r(2), num_rows=3, num_cols=2 | [1, 2], num_rows=1 | 1
diag_part: r(2, 2, 3) | r(2, 3), k=1 | i(3, 3), k=-1 | r(2, 3), k=5 | [1]
eig: = linalg.eig(p(2, 2))[0] | = linalg.eig(tf.constant([[2.0, 1.0], [1.0, 3.0]]))[0] | r(2, 3)
eigh: = linalg.eigh(r(3, 3))[0] | = abs(tf.linalg.eigh(r(2, 2, 2))[1]) | r(2, 3)
eigvals: p(2, 2) | tf.constant([[2.0, 1.0], [1.0, 3.0]]) | r(2, 3)
eigvalsh: r(3, 3) | [[2.0, 9.0], [1.0, 3.0]] | z(2, 2)
expm: r(2, 2, 2) | r(0, 0) | i(2, 2)
global_norm: [r(2), None, r(2, 3)] | [None] | r(2)
inv: r(2, 3, 3) | [[1.0, 2.0], [2.0, 4.0]] | z(2, 2), adjoint=True | r(2, 3) | i(2, 2) |
    tf.constant([[2, 1], [1, 3]], 'float16')
logdet: tf.linalg.diag(p(2, 3)) | [[2.0, 1.0], [1.0, 2.0]] | r(2, 3)
logm: z(2, 2) | z(2, 2, 2) | r(2, 2)
lstsq: r(3, 2), r(3, 1) | r(2, 3), r(2, 1), l2_regularizer=0.5 | r(3, 2), r(3, 1), fast=False |
    r(3, 2), r(2, 1)
lu: r(3, 3) | r(2, 3, 3), np.int64 | [[1.0, 2.0], [2.0, 4.0]] | r(2, 3)
matrix_rank: r(2, 2, 3) | [[1.0, 2.0], [2.0, 4.0]] | i(2, 2)
matrix_transpose: r(2, 2, 3) | z(1, 2), conjugate=True | [1]
matvec: r(2, 3), r(3) | z(2, 3), z(2), adjoint_a=True | r(2, 3), r(2) | r(2, 2, 3), r(2, 3)
norm: = norm(r(2, 3), axis=1) | = norm(r(2, 3), ord=1, axis=[0, 1]) |
    = norm(r(2, 3, 2), 2, axis=(0, 2), keepdims=True) | = norm([[3.0, -4.0]], np.inf, (-2, -1)) |
    = norm(r(2, 3), 3, axis=-1) | = norm(z(3)) | = norm(r(2), 'fro') | = norm(i(2)) |
    = norm(r(2, 3), 3, [0, 1]) | = norm(r(2, 3), 'fro', [0, 1]) | = norm(r(3), np.inf)
normalize: r(2, 3), axis=1 | r(3), ord=1 | [0.0, 0.0]
pinv: r(2, 3) | [[1.0, 2.0], [2.0, 4.0]] | i(2, 2)
qr: r(3, 2) | r(2, 3), full_matrices=True | r(2) | tf.constant([[2, 1], [1, 3]], 'float16')
set_diag: r(2, 2, 3), r(2, 2) | i(2, 3), [7, 8, 9] | i(2, 3), [8, 9], k=1
slogdet: r(3, 3) | [[0.0, 1.0], [0.0, 0.0]] | z(2, 2)
solve: r(3, 3), r(3, 2) | [[1.0, 2.0], [2.0, 4.0]], r(2, 1) | z(2, 2), z(2, 1), adjoint=True |
    r(2, 2), r(2)
sqrtm: p(2, 2) + tf.eye(2) * 3.0 | [[-1.0, 0.0], [0.0, -1.0]] | z(2, 2, 2) | r(2, 3)
svd: = linalg.svd(r(2, 3, 2))[0] | r(2, 3), compute_uv=False |
    = abs(tf.linalg.svd([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], full_matrices=True)[1]) |
    = abs(tf.linalg.svd(r(3, 2))[2]) | r(2)
tensor_diag: r(3) | i(2, 2) | 1.0
tensor_diag_part: r(3, 3) | i(2, 2, 2, 2) | r(2, 3)
tensordot: = tensordot(r(2, 3), r(3, 2), 1) | = tensordot(r(2, 3), r(3, 2), [[0, 1], [1, 0]]) |
    = tensordot(i(2), i(3), 0) | = tensordot(r(2), r(3), 1) | = tensordot(r(2), r(2), 2) |
    = tensordot(r(2, 2), r(2, 2), [0, 1])
trace: r(2, 3, 3) | i(2, 3) | [1]
triangular_solve: p(3, 3), r(3, 2) | p(2, 3, 3), r(3, 1), lower=False, adjoint=True | p(2, 2), r(2)
"""

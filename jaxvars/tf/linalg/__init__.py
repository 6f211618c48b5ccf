"""`tf.linalg`: matrices.

diagonals   diagonals, bands, transposes
solve       inverses, equations, determinants, ranks
factors     Cholesky, LU, least squares
spectral    QR, singular values, eigenvalues, functions of matrices
norms       norms, products
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxvars.tf.linalg.matrices.norms import einsum as einsum
from jaxvars.tf.listing import HOMES
from jaxvars.tf.registry.rows import operations

if TYPE_CHECKING:
    from jaxvars.tf.linalg.operations import *  # noqa: F403
else:
    __getattr__ = operations(__name__, others=("einsum",))

HOMES["einsum"] = HOMES["linalg.einsum"] = f"{__name__}:einsum"

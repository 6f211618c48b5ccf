"""`tf.linalg`: matrices.

_linalg_diagonals   diagonals, bands, transposes
_linalg_solve       inverses, equations, determinants, ranks
_linalg_factors     Cholesky, LU, least squares
_linalg_bands       matrices of a few diagonals
_linalg_spectral    QR, singular values, eigenvalues, functions of matrices
_linalg_norms       norms, products
_linear_operator    LinearOperator, and 20 kinds of them
"""

from __future__ import annotations

import importlib
from typing import Any

from jaxvars.tf.linalg.matrices.norms import einsum as einsum
from jaxvars.tf.listing import HOMES, defined, lister
from jaxvars.tf.registry.rows import operations

_rows = operations(__name__, others=("einsum", "LinearOperator", "experimental"))


def __getattr__(name: str) -> Any:
    if name.startswith("LinearOperator"):
        found = getattr(importlib.import_module("jaxvars.tf.linalg.operators"), name, None)
        return _rows(name) if found is None else found
    if name == "experimental":
        return importlib.import_module("jaxvars.tf.linalg.experimental")
    return _rows(name)


def __dir__() -> list[str]:
    operators = importlib.import_module("jaxvars.tf.linalg.operators")
    return lister(__name__, ["experimental", *defined(operators.__name__)])()


HOMES["einsum"] = HOMES["linalg.einsum"] = f"{__name__}:einsum"

"""`tf.linalg`: matrices.

diagonals   diagonals, bands, transposes
solve       inverses, equations, determinants, ranks
factors     Cholesky, LU, least squares
bands       matrices of a few diagonals
spectral    QR, singular values, eigenvalues, functions of matrices
norms       norms, products
operators   LinearOperator, and 20 kinds of them
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

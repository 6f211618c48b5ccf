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

from jaxvars.tf.linalg.matrices import bands as _linalg_bands
from jaxvars.tf.linalg.matrices import diagonals as _linalg_diagonals
from jaxvars.tf.linalg.matrices import factors as _linalg_factors
from jaxvars.tf.linalg.matrices import norms as _linalg_norms
from jaxvars.tf.linalg.matrices import solve as _linalg_solve
from jaxvars.tf.linalg.matrices import spectral as _linalg_spectral
from jaxvars.tf.linalg.matrices.norms import einsum as einsum
from jaxvars.tf.listing import HOMES, defined, lister
from jaxvars.tf.math import clip as _clip
from jaxvars.tf.registry.rows import operations

ROWS = [
    *_linalg_diagonals.ROWS,
    *_linalg_solve.ROWS,
    *_linalg_factors.ROWS,
    *_linalg_bands.ROWS,
    *_linalg_spectral.ROWS,
    *_linalg_norms.ROWS,
    *_clip.LINALG,
]

_rows = operations(__name__, ROWS, others=("einsum", "LinearOperator", "experimental"))


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

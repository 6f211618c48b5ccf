"""`tf.math`: arithmetic, element by element and along axes.

_math_basic      what operators are made of
_math_elements   functions of one element        _math_pairs   functions of two
_math_gamma      gamma, beta, zeta, erf          _math_special `tf.math.special`
_math_reduce     sums, means, extremes           _math_scan    running sums, argmax, top_k
_math_segments   sums of groups of rows          _math_counts  bincount, confusion_matrix
"""

from __future__ import annotations

from jaxvars.tf import (
    _math_basic,
    _math_counts,
    _math_elements,
    _math_gamma,
    _math_pairs,
    _math_reduce,
    _math_scan,
    _math_segments,
    _math_special,
)
from jaxvars.tf._math_scan import approx_min_k as approx_min_k
from jaxvars.tf.registry.rows import operations

special = _math_special

ROWS = [
    *_math_basic.ROWS,
    *_math_elements.ROWS,
    *_math_gamma.ROWS,
    *_math_pairs.ROWS,
    *_math_reduce.ROWS,
    *_math_scan.ROWS,
    *_math_segments.ROWS,
    *_math_counts.ROWS,
]

__getattr__ = operations(__name__, ROWS, others=("approx_min_k", "special"))

"""`tf.math`: arithmetic, element by element and along axes.

_math_basic      what operators are made of
_math_elements   functions of one element        _math_pairs   functions of two
_math_gamma      gamma, beta, zeta, erf          _math_special `tf.math.special`
_math_reduce     sums, means, extremes           _math_scan    running sums, argmax, top_k
_math_segments   sums of groups of rows          _math_counts  bincount, confusion_matrix
"""

from __future__ import annotations

from jaxvars.tf.math import basic as _math_basic
from jaxvars.tf.math import clip, products  # noqa: F401 - their rows are tf's
from jaxvars.tf.math import counts as _math_counts
from jaxvars.tf.math import elements as _math_elements
from jaxvars.tf.math import gamma as _math_gamma
from jaxvars.tf.math import pairs as _math_pairs
from jaxvars.tf.math import reduce as _math_reduce
from jaxvars.tf.math import scan as _math_scan
from jaxvars.tf.math import segments as _math_segments
from jaxvars.tf.math import special as _math_special
from jaxvars.tf.math.scan import approx_min_k as approx_min_k
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

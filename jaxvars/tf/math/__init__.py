"""`tf.math`: arithmetic, element by element and along axes.

_math_basic      what operators are made of
_math_elements   functions of one element        _math_pairs   functions of two
_math_gamma      gamma, beta, zeta, erf          _math_special `tf.math.special`
_math_reduce     sums, means, extremes           _math_scan    running sums, argmax, top_k
_math_segments   sums of groups of rows          _math_counts  bincount, confusion_matrix
"""

from __future__ import annotations

from jaxvars.tf.math import (
    basic,
    clip,
    counts,
    elements,
    gamma,
    pairs,
    products,
    reduce,
    scan,
    segments,
)
from jaxvars.tf.math import special as special
from jaxvars.tf.math.scan import approx_min_k as approx_min_k
from jaxvars.tf.registry.rows import operations

_PARTS = (basic, clip, counts, elements, gamma, pairs, products, reduce, scan, segments)
"""Imported: their operations are in the table."""

__getattr__ = operations(__name__, others=("approx_min_k", "special"))

"""`tf.math`: arithmetic, element by element and along axes.

basic      what operators are made of
elements   functions of one element        pairs   functions of two
gamma      gamma, beta, zeta, erf          special `tf.math.special`
reduce     sums, means, extremes           scan    running sums, argmax, top_k
segments   sums of groups of rows          counts  bincount, confusion_matrix
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxvars.tf.math import basic, clip, counts, elements, gamma, pairs, reduce, scan, segments
from jaxvars.tf.math import special as special
from jaxvars.tf.registry.rows import operations

_PARTS = (basic, clip, counts, elements, gamma, pairs, reduce, scan, segments)
"""Imported: their operations are in the table."""

if TYPE_CHECKING:
    from jaxvars.tf.math.operations import *  # noqa: F403
else:
    __getattr__ = operations(__name__, others=("special",))

"""Examples of `tf.math.special`."""

from __future__ import annotations

EXAMPLES = """
bessel_i0: p(2, 3) | [5.0, 20.0] | 1
bessel_i0e: p(2, 3) | [5.0, 20.0] | 1
bessel_i1: p(2, 3) | [5.0, 20.0] | 1
bessel_i1e: p(2, 3) | [5.0, 20.0] | 1
bessel_j0: p(2, 3) | [5.0, 20.0] | 1
bessel_j1: p(2, 3) | [5.0, 20.0] | 1
bessel_k0: p(2, 3) | [5.0, 20.0] | 1
bessel_k0e: p(2, 3) | [5.0, 20.0] | 1
bessel_k1: p(2, 3) | [5.0, 20.0] | 1
bessel_k1e: p(2, 3) | [5.0, 20.0] | 1
bessel_y0: p(2, 3) | [5.0, 20.0] | 1
bessel_y1: p(2, 3) | [5.0, 20.0] | 1
dawsn: p(2, 3) | [5.0, 20.0] | 1
expint: p(2, 3) | [5.0, 20.0] | 1
fresnel_cos: p(2, 3) | [5.0, 20.0] | 1
fresnel_sin: p(2, 3) | [5.0, 20.0] | 1
spence: p(2, 3) | [5.0, 20.0] | 1
"""

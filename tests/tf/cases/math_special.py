"""Examples of `tf.math.special`."""

from __future__ import annotations

EXAMPLES = {
    "math.special.bessel_i0": (
        "math.special.bessel_i0(p(2, 3))", "math.special.bessel_i0([5.0, 20.0])",
        "math.special.bessel_i0(1)",
    ),
    "math.special.bessel_i0e": (
        "math.special.bessel_i0e(p(2, 3))", "math.special.bessel_i0e([5.0, 20.0])",
        "math.special.bessel_i0e(1)",
    ),
    "math.special.bessel_i1": (
        "math.special.bessel_i1(p(2, 3))", "math.special.bessel_i1([5.0, 20.0])",
        "math.special.bessel_i1(1)",
    ),
    "math.special.bessel_i1e": (
        "math.special.bessel_i1e(p(2, 3))", "math.special.bessel_i1e([5.0, 20.0])",
        "math.special.bessel_i1e(1)",
    ),
    "math.special.bessel_j0": (
        "math.special.bessel_j0(p(2, 3))", "math.special.bessel_j0([5.0, 20.0])",
        "math.special.bessel_j0(1)",
    ),
    "math.special.bessel_j1": (
        "math.special.bessel_j1(p(2, 3))", "math.special.bessel_j1([5.0, 20.0])",
        "math.special.bessel_j1(1)",
    ),
    "math.special.bessel_k0": (
        "math.special.bessel_k0(p(2, 3))", "math.special.bessel_k0([5.0, 20.0])",
        "math.special.bessel_k0(1)",
    ),
    "math.special.bessel_k0e": (
        "math.special.bessel_k0e(p(2, 3))", "math.special.bessel_k0e([5.0, 20.0])",
        "math.special.bessel_k0e(1)",
    ),
    "math.special.bessel_k1": (
        "math.special.bessel_k1(p(2, 3))", "math.special.bessel_k1([5.0, 20.0])",
        "math.special.bessel_k1(1)",
    ),
    "math.special.bessel_k1e": (
        "math.special.bessel_k1e(p(2, 3))", "math.special.bessel_k1e([5.0, 20.0])",
        "math.special.bessel_k1e(1)",
    ),
    "math.special.bessel_y0": (
        "math.special.bessel_y0(p(2, 3))", "math.special.bessel_y0([5.0, 20.0])",
        "math.special.bessel_y0(1)",
    ),
    "math.special.bessel_y1": (
        "math.special.bessel_y1(p(2, 3))", "math.special.bessel_y1([5.0, 20.0])",
        "math.special.bessel_y1(1)",
    ),
    "math.special.dawsn": (
        "math.special.dawsn(p(2, 3))", "math.special.dawsn([5.0, 20.0])", "math.special.dawsn(1)",
    ),
    "math.special.expint": (
        "math.special.expint(p(2, 3))", "math.special.expint([5.0, 20.0])",
        "math.special.expint(1)",
    ),
    "math.special.fresnel_cos": (
        "math.special.fresnel_cos(p(2, 3))", "math.special.fresnel_cos([5.0, 20.0])",
        "math.special.fresnel_cos(1)",
    ),
    "math.special.fresnel_sin": (
        "math.special.fresnel_sin(p(2, 3))", "math.special.fresnel_sin([5.0, 20.0])",
        "math.special.fresnel_sin(1)",
    ),
    "math.special.spence": (
        "math.special.spence(p(2, 3))", "math.special.spence([5.0, 20.0])",
        "math.special.spence(1)",
    ),
}  # fmt: skip

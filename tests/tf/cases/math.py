"""Examples of `tf.math`."""

from __future__ import annotations

EXAMPLES = {
    "math.abs": ("math.abs(r(2, 3))", "math.abs([3 + 4j])", "math.abs(-3)", "math.abs(b(2))"),
    "math.accumulate_n": (
        "math.accumulate_n([r(2, 3), r(2, 3), r(2, 3)])", "math.accumulate_n([i(2)])",
        "math.accumulate_n([r(2), r(3)])",
    ),
    "math.acos": ("math.acos(r(2, 3) * 0.3)", "math.acos([-1.0, 0.0, 1.0, 2.0])", "math.acos(1)"),
    "math.acosh": ("math.acosh(p(2, 3) + 1.0)", "math.acosh([1.0, 0.5, inf])", "math.acosh(z(2))"),
    "math.add": (
        "math.add(r(2, 3), r(3))", "math.add(i(4), 2)", "math.add(r(0), 1.0)",
        "math.add(['a', 'b'], 'c')", "math.add(b(2), b(2))", "math.add(r(2), r(3))",
        "math.add(r(2), i(2))",
    ),
    "math.add_n": ("add_n([r(2), r(2), r(2)])", "add_n([i(3)])", "add_n([r(2), r(3)])"),
    "math.angle": ("math.angle(z(2, 3))", "math.angle(r(3))", "math.angle(i(2))"),
    "math.approx_max_k": (
        "math.approx_max_k(r(2, 3), 2)", "math.approx_max_k(r(4), 1)", "math.approx_max_k(i(4), 2)",
    ),
    "math.argmax": (
        "math.argmax(r(2, 3), axis=1)", "math.argmax([[1, 3, 3]], -1, np.int32)",
        "math.argmax([nan, 1.0, 2.0])", "math.argmax(r(0, 3))", "math.argmax(r(2), axis=1)",
    ),
    "math.argmin": (
        "math.argmin(r(2, 3), axis=1)", "math.argmin(i(4), output_type=np.float32)",
        "math.argmin([nan, 2.0, 1.0])",
    ),
    "math.asin": ("math.asin(r(2, 3) * 0.3)", "math.asin([-1.0, 0.0, 1.0, 2.0])", "math.asin(1)"),
    "math.asinh": ("math.asinh(r(2, 3))", "math.asinh([-inf, 0.0, 1e8])", "math.asinh(z(2))"),
    "math.atan": ("math.atan(r(2, 3))", "math.atan([-inf, 0.0, inf])", "math.atan(z(2))"),
    "math.atan2": (
        "math.atan2(r(2, 3), r(3))", "math.atan2([0.0, 1.0, -1.0], [-1.0, 0.0, 0.0])",
        "math.atan2(1, 1)",
    ),
    "math.atanh": ("math.atanh(r(2, 3) * 0.3)", "math.atanh([-1.0, 1.0, 2.0])", "math.atanh(z(2))"),
    "math.betainc": (
        "math.betainc(2.0, [0.5, 3.0], p(2) * 0.4)", "math.betainc([1.0, 2.0], 2.0, [0.0, 2.0])",
        "math.betainc(1, 1, 1)",
    ),
    "math.bincount": (
        "math.bincount([1, 2, 2], minlength=5)", "math.bincount([[1, 2], [2, 2]], axis=-1)",
        "math.bincount([0, 2, 1, 2], p(4), maxlength=2)", "math.bincount([-1])",
        "math.bincount([[3, 0], [0, 0]], axis=-1, binary_output=True)", "math.bincount([])",
    ),
    "math.ceil": ("math.ceil(r(2, 3))", "math.ceil([-0.5, inf, nan])", "math.ceil(1)"),
    "math.confusion_matrix": (
        "math.confusion_matrix([1, 2], [1, 1], num_classes=3)",
        "math.confusion_matrix([0, 2], [2, 2], weights=[0.5, 1.0], dtype=np.float32)",
        "math.confusion_matrix([1, 3], [1, 1], 2)", "math.confusion_matrix([-1], [1])",
        "math.confusion_matrix([[1], [0]], [1, 0])",
    ),
    "math.conj": ("math.conj(z(2, 3))", "math.conj(r(3))", "math.conj(i(2))"),
    "math.cos": ("math.cos(r(2, 3))", "math.cos([0.0, inf])", "math.cos(i(2))"),
    "math.cosh": ("math.cosh(r(2, 3))", "math.cosh([100.0, -inf])", "math.cosh(z(2))"),
    "math.count_nonzero": (
        "math.count_nonzero(i(2, 3), axis=1)", "math.count_nonzero(['a', ''])",
        "math.count_nonzero([[1.0, nan, 0.0]], 0, True, np.int32)",
    ),
    "math.cumprod": (
        "math.cumprod(r(2, 3), axis=-1)", "math.cumprod(i(4), exclusive=True, reverse=True)",
        "math.cumprod(1.0)",
    ),
    "math.cumsum": (
        "math.cumsum(r(2, 3), axis=1)", "math.cumsum(i(4), exclusive=True, reverse=True)",
        "math.cumsum(r(2), axis=1)", "math.cumsum(r(0, 2))",
    ),
    "math.cumulative_logsumexp": (
        "math.cumulative_logsumexp(r(2, 3), axis=1)",
        "math.cumulative_logsumexp(r(3), exclusive=True, reverse=True)",
        "math.cumulative_logsumexp(i(4))",
    ),
    "math.digamma": ("math.digamma(p(2, 3))", "math.digamma([-1.5, 1.0, 20.0])", "math.digamma(1)"),
    "math.divide": (
        "math.divide(r(2, 3), p(3))", "math.divide(i(4), 2)", "math.divide(1.0, [2.0, 0.0])",
        "math.divide(i(2), 1.5)",
    ),
    "math.divide_no_nan": (
        "math.divide_no_nan(r(2, 3), p(3))", "math.divide_no_nan([0.0, 1.0], 0.0)",
        "math.divide_no_nan(i(3), [1, 0, 2])",
    ),
    "math.equal": (
        "math.equal([1.0, nan], [1.0, nan])", "math.equal(i(2, 3), 2)",
        "math.equal(['a', 'b'], 'a')", "math.equal(i(2), i(3))", "math.equal(b(3), True)",
    ),
    "math.erf": ("math.erf(r(2, 3))", "math.erf([-inf, 0.0, 9.0])", "math.erf(1)"),
    "math.erfc": ("math.erfc(r(2, 3))", "math.erfc([-inf, 0.0, 5.0])", "math.erfc(1)"),
    "math.erfcinv": ("math.erfcinv(p(2, 3))", "math.erfcinv([0.0, 2.0, 1.0])", "math.erfcinv(1)"),
    "math.erfinv": (
        "math.erfinv(r(2, 3) * 0.3)", "math.erfinv([-1.0, 0.0, 1.0])", "math.erfinv(1)",
    ),
    "math.exp": ("math.exp(r(2, 3))", "math.exp([-inf, 0.0, 100.0])", "math.exp(1)"),
    "math.expm1": ("math.expm1(r(2, 3))", "math.expm1([1e-8, -inf])", "math.expm1(z(2))"),
    "math.floor": ("math.floor(r(2, 3))", "math.floor([-0.5, inf, nan])", "math.floor(1)"),
    "math.floordiv": (
        "math.floordiv(i(6), 3)", "math.floordiv(7.5, [2.0, -2.0])", "math.floordiv(i(2), 0)",
        "math.floordiv([1.0, -1.0], 0.0)",
    ),
    "math.floormod": (
        "math.floormod(i(6), -3)", "math.floormod(r(3), p(3))", "math.floormod(i(2), 0)",
    ),
    "math.greater": (
        "math.greater(r(4), r(4))", "math.greater(i(2, 3), 2)", "math.greater(z(2), 1)",
    ),
    "math.greater_equal": (
        "math.greater_equal([1.0, nan], 1.0)", "math.greater_equal(i(2, 3), 2)",
        "math.greater_equal(r(2), r(3))",
    ),
    "math.igamma": (
        "math.igamma(p(2, 3), p(3))", "math.igamma([-1.0, 1.0], 1.0)", "math.igamma(1, 2)",
    ),
    "math.igammac": (
        "math.igammac(p(2, 3), p(3))", "math.igammac([-1.0, 1.0], 1.0)", "math.igammac(1, 2)",
    ),
    "math.imag": ("math.imag(z(2, 3))", "math.imag([1.0, 2.0])", "math.imag(i(2))"),
    "math.in_top_k": (
        "math.in_top_k([0, 1, 2], r(3, 3), 2)",
        "math.in_top_k([1, 5], [[0.5, 0.5], [0.0, 1.0]], 1)",
        "math.in_top_k([0, 0], [[1.0, nan], [inf, 0.0]], 2)", "math.in_top_k([0], r(2, 2), 1)",
    ),
    "math.invert_permutation": (
        "math.invert_permutation([2, 0, 1])", "math.invert_permutation([2, 0, 0])",
        "math.invert_permutation([1.0, 0.0])",
    ),
    "math.is_finite": (
        "math.is_finite(r(2, 3))", "math.is_finite([inf, nan])", "math.is_finite(1)",
    ),
    "math.is_inf": ("math.is_inf(r(2, 3))", "math.is_inf([inf, -inf, nan])", "math.is_inf(1)"),
    "math.is_nan": ("math.is_nan(r(2, 3))", "math.is_nan([inf, -inf, nan])", "math.is_nan(1)"),
    "math.is_non_decreasing": (
        "math.is_non_decreasing(r(4))", "math.is_non_decreasing([[1, 1], [2, 3]])",
        "math.is_non_decreasing([])",
    ),
    "math.is_strictly_increasing": (
        "math.is_strictly_increasing(r(4))", "math.is_strictly_increasing([1, 1])",
        "math.is_strictly_increasing([1.0])",
    ),
    "math.l2_normalize": (
        "math.l2_normalize(r(2, 3), 1)", "math.l2_normalize([0.0, 0.0])", "math.l2_normalize(i(2))",
        "math.l2_normalize(z(4))",
    ),
    "math.lbeta": ("math.lbeta(p(2, 3))", "math.lbeta(np.zeros(0, 'f'))", "math.lbeta(i(2))"),
    "math.less": ("math.less(r(4), r(4))", "math.less(i(2, 3), 2)", "math.less(b(2), b(2))"),
    "math.less_equal": (
        "math.less_equal([1.0, nan], 1.0)", "math.less_equal(i(2, 3), 2)",
        "math.less_equal(i(2), 1.5)",
    ),
    "math.lgamma": (
        "math.lgamma(p(2, 3))", "math.lgamma([0.0, -1.0, -1.5, 20.0])", "math.lgamma(1)",
    ),
    "math.log": ("math.log(p(2, 3))", "math.log([0.0, -1.0, inf])", "math.log(z(2))"),
    "math.log1p": ("math.log1p(p(2, 3))", "math.log1p([1e-8, -1.0])", "math.log1p(i(2))"),
    "math.log_sigmoid": (
        "math.log_sigmoid(r(2, 3))", "math.log_sigmoid([-200.0, 200.0])", "math.log_sigmoid(1)",
    ),
    "math.logical_and": (
        "math.logical_and(b(4), b(4))", "math.logical_and(b(2, 3), True)",
        "math.logical_and(i(2), i(2))",
    ),
    "math.logical_not": (
        "math.logical_not(b(4))", "math.logical_not([True, False])", "math.logical_not(i(2))",
    ),
    "math.logical_or": (
        "math.logical_or(b(4), b(4))", "math.logical_or(b(2, 3), False)",
        "math.logical_or(1, b(2))",
    ),
    "math.logical_xor": (
        "math.logical_xor(b(4), b(4))", "math.logical_xor(b(2, 3), True)",
        "math.logical_xor(r(2), r(2))",
    ),
    "math.maximum": (
        "math.maximum(r(2, 3), 0.0)", "math.maximum([nan, 1, 2], [1, nan, 2.0])",
        "math.maximum(z(2), 1)",
    ),
    "math.minimum": (
        "math.minimum(r(2, 3), r(3))", "math.minimum([nan, 1, 2], [1, nan, 2.0])",
        "math.minimum(i(2), 1.5)",
    ),
    "math.multiply": (
        "math.multiply(r(2, 3), r(3))", "math.multiply(i(4), 2)", "math.multiply(z(2), z(2))",
    ),
    "math.multiply_no_nan": (
        "math.multiply_no_nan(r(2, 3), r(3))",
        "math.multiply_no_nan([nan, inf, 2.0], [0.0, 0.0, nan])", "math.multiply_no_nan(1, 1)",
    ),
    "math.ndtri": ("math.ndtri(p(2, 3) * 0.45)", "math.ndtri([0.0, 1.0, 0.5])", "math.ndtri(1)"),
    "math.negative": ("math.negative(r(2, 3))", "math.negative([1, -2])", "math.negative(b(2))"),
    "math.nextafter": (
        "math.nextafter(r(2, 3), r(3))", "math.nextafter([0.0, 1.0, inf], [1.0, 1.0, 0.0])",
        "math.nextafter(i(2), i(2))",
    ),
    "math.not_equal": (
        "math.not_equal([1.0, nan], [1.0, nan])", "math.not_equal(i(2, 3), 2)",
        "math.not_equal(['a', 'b'], 'a')",
    ),
    "math.polygamma": (
        "math.polygamma([1.0, 2.0, 3.0], 1.5)", "math.polygamma(1.0, p(2, 3))",
        "math.polygamma(1, 2)",
    ),
    "math.polyval": (
        "math.polyval([r(1), r(3), 2.0], r(2, 3))", "math.polyval([], r(2))",
        "math.polyval([z(2)], z(2))",
    ),
    "math.pow": (
        "math.pow(p(2, 3), r(3))", "math.pow(i(4), 2)", "math.pow(i(2), -1)",
        "math.pow([-2.0, 0.0, 3.0], 2.0)",
    ),
    "math.real": ("math.real(z(2, 3))", "math.real(r(3))", "math.real(i(2))"),
    "math.reciprocal": (
        "math.reciprocal(p(2, 3))", "math.reciprocal([0.0, -inf])", "math.reciprocal(i(2))",
    ),
    "math.reciprocal_no_nan": (
        "math.reciprocal_no_nan(p(2, 3))", "math.reciprocal_no_nan([0.0, -2.0])",
        "math.reciprocal_no_nan([0])",
    ),
    "math.reduce_all": (
        "math.reduce_all(b(2, 3), 1)", "math.reduce_all(b(0))", "math.reduce_all(i(2))",
    ),
    "math.reduce_any": (
        "math.reduce_any(b(2, 3), 1)", "math.reduce_any(b(0))", "math.reduce_any(i(2))",
    ),
    "math.reduce_euclidean_norm": (
        "math.reduce_euclidean_norm(r(2, 3), 1)", "math.reduce_euclidean_norm([3, 4])",
        "math.reduce_euclidean_norm(z(4))",
    ),
    "math.reduce_logsumexp": (
        "math.reduce_logsumexp(r(2, 3), 1)", "math.reduce_logsumexp([-inf, -inf])",
        "math.reduce_logsumexp(i(2))", "math.reduce_logsumexp(r(0, 2), 0)",
    ),
    "math.reduce_max": (
        "math.reduce_max(r(2, 3), axis=1)", "math.reduce_max(i(0, 2), 0)",
        "math.reduce_max([[1.0, nan]])", "math.reduce_max(b(2))", "math.reduce_max(r(0, 2), 0)",
    ),
    "math.reduce_mean": (
        "math.reduce_mean(r(2, 3), axis=0)", "math.reduce_mean([1, 2, -4])",
        "math.reduce_mean(np.zeros(0, 'f'))",
    ),
    "math.reduce_min": (
        "math.reduce_min(r(2, 3), axis=1)", "math.reduce_min(i(0, 2), 0)",
        "math.reduce_min(r(2, 3), axis=2)",
    ),
    "math.reduce_prod": (
        "math.reduce_prod(r(2, 3), 1)", "math.reduce_prod(i(2, 3), axis=-1, keepdims=True)",
        "math.reduce_prod(r(0, 3), axis=[0])",
    ),
    "math.reduce_std": (
        "math.reduce_std(r(2, 3), 1)", "math.reduce_std(z(4))", "math.reduce_std(i(2))",
    ),
    "math.reduce_sum": (
        "math.reduce_sum(r(2, 3))", "math.reduce_sum(i(2, 3), axis=-1, keepdims=True)",
        "math.reduce_sum(r(2, 0, 3), axis=[0, 1])", "math.reduce_sum(b(2))",
    ),
    "math.reduce_variance": (
        "math.reduce_variance(r(2, 3), 1)", "math.reduce_variance(z(4))",
        "math.reduce_variance(i(2))",
    ),
    "math.rint": ("math.rint(r(2, 3))", "math.rint([0.5, 1.5, -2.5])", "math.rint(1)"),
    "math.round": ("math.round(r(2, 3))", "math.round([0.5, 1.5, -2.5])", "math.round(i(2))"),
    "math.rsqrt": ("math.rsqrt(p(2, 3))", "math.rsqrt([0.0, -1.0, inf])", "math.rsqrt(4)"),
    "math.scalar_mul": (
        "scalar_mul(2.0, r(3))", "scalar_mul(2, i(2, 2))", "scalar_mul(r(2), r(2))",
    ),
    "math.segment_max": (
        "math.segment_max(r(4, 2), [0, 0, 1, 3])", "math.segment_max(i(3), [0, 2, 2])",
        "math.segment_max(r(3), [0, 1, 0])",
    ),
    "math.segment_mean": (
        "math.segment_mean(r(4, 2), [0, 0, 1, 3])", "math.segment_mean(i(3), [0, 2, 2])",
        "math.segment_mean(r(3), [0, 1, 0])",
    ),
    "math.segment_min": (
        "math.segment_min(r(4, 2), [0, 0, 1, 3])", "math.segment_min(i(3), [0, 2, 2])",
        "math.segment_min(r(3), [0, 1, 0])",
    ),
    "math.segment_prod": (
        "math.segment_prod(r(4, 2), [0, 0, 1, 3])", "math.segment_prod(i(3), [0, 2, 2])",
        "math.segment_prod(r(3), [0, 1, 0])",
    ),
    "math.segment_sum": (
        "math.segment_sum(r(4, 2), [0, 0, 1, 3])", "math.segment_sum(i(3), [0, 2, 2])",
        "math.segment_sum(r(3), [0, 1, 0])",
    ),
    "math.sigmoid": (
        "math.sigmoid(r(2, 3))", "math.sigmoid([-inf, 0.0, 100.0])", "math.sigmoid(1)",
    ),
    "math.sign": ("math.sign(r(2, 3))", "math.sign([3 + 4j, 0j])", "math.sign(b(2))"),
    "math.sin": ("math.sin(r(2, 3))", "math.sin([0.0, inf])", "math.sin(i(2))"),
    "math.sinh": ("math.sinh(r(2, 3))", "math.sinh([100.0, -inf])", "math.sinh(z(2))"),
    "math.sobol_sample": (
        "math.sobol_sample(2, 5)", "math.sobol_sample(7, 3, skip=10)",
        "math.sobol_sample(1, 4, 2, np.float64)",
    ),
    "math.softplus": (
        "math.softplus(r(2, 3))", "math.softplus([-200.0, 200.0])", "math.softplus(1)",
    ),
    "math.softsign": ("math.softsign(r(2, 3))", "math.softsign([-1e9, 0.0])", "math.softsign(1)"),
    "math.sqrt": ("math.sqrt(p(2, 3))", "math.sqrt([0.0, -1.0, inf])", "math.sqrt(4)"),
    "math.square": ("math.square(r(2, 3))", "math.square(i(4))", "math.square(b(2))"),
    "math.squared_difference": (
        "math.squared_difference(r(2, 3), r(3))", "math.squared_difference(i(4), 3)",
        "math.squared_difference(z(2), z(2))",
    ),
    "math.subtract": (
        "math.subtract(r(2, 3), r(3))", "math.subtract(i(4), 2)", "math.subtract(1.0, r(2))",
        "math.subtract(i(4), 1.5)",
    ),
    "math.tan": ("math.tan(r(2, 3))", "math.tan([0.0, inf])", "math.tan(z(2))"),
    "math.tanh": ("math.tanh(r(2, 3))", "math.tanh([-inf, 0.0, inf, nan])", "math.tanh(z(2))"),
    "math.top_k": (
        "math.top_k(r(2, 3), k=2)", "math.top_k([1, 3, 3], 2, index_type=np.int64)",
        "math.top_k(r(2), 3)",
    ),
    "math.truediv": (
        "math.truediv(tf.constant([4, 5], tf.int8), 3)", "math.truediv(7, 2)",
        "math.truediv(b(2), b(2))", "math.truediv(r(2), r(3))",
    ),
    "math.unsorted_segment_max": (
        "math.unsorted_segment_max(r(4, 2), [2, 0, 2, -1], 4)",
        "math.unsorted_segment_max(i(2, 2), [[0, 1], [1, 0]], 3)",
        "math.unsorted_segment_max(r(2), [0, 3], 2)",
    ),
    "math.unsorted_segment_mean": (
        "math.unsorted_segment_mean(r(4, 2), [2, 0, 2, -1], 4)",
        "math.unsorted_segment_mean(i(2, 2), [[0, 1], [1, 0]], 3)",
        "math.unsorted_segment_mean(r(2), [0, 3], 2)",
    ),
    "math.unsorted_segment_min": (
        "math.unsorted_segment_min(r(4, 2), [2, 0, 2, -1], 4)",
        "math.unsorted_segment_min(i(2, 2), [[0, 1], [1, 0]], 3)",
        "math.unsorted_segment_min(r(2), [0, 3], 2)",
    ),
    "math.unsorted_segment_prod": (
        "math.unsorted_segment_prod(r(4, 2), [2, 0, 2, -1], 4)",
        "math.unsorted_segment_prod(i(2, 2), [[0, 1], [1, 0]], 3)",
        "math.unsorted_segment_prod(r(2), [0, 3], 2)",
    ),
    "math.unsorted_segment_sqrt_n": (
        "math.unsorted_segment_sqrt_n(r(4, 2), [2, 0, 2, -1], 4)",
        "math.unsorted_segment_sqrt_n(r(2, 2), [[0, 1], [1, 0]], 3)",
        "math.unsorted_segment_sqrt_n(r(2), [0, 3], 2)",
    ),
    "math.unsorted_segment_sum": (
        "math.unsorted_segment_sum(r(4, 2), [2, 0, 2, -1], 4)",
        "math.unsorted_segment_sum(i(2, 2), [[0, 1], [1, 0]], 3)",
        "math.unsorted_segment_sum(r(2), [0, 3], 2)",
    ),
    "math.xdivy": (
        "math.xdivy(r(2, 3), p(3))", "math.xdivy([0.0, 1.0, -1.0], 0.0)", "math.xdivy(1, 1)",
    ),
    "math.xlog1py": (
        "math.xlog1py(p(2, 3), p(3))", "math.xlog1py([0.0, 1.0], -1.0)", "math.xlog1py(1, 1)",
    ),
    "math.xlogy": (
        "math.xlogy(p(2, 3), p(3))", "math.xlogy([0.0, 0.0, 1.0], [0.0, -1.0, 0.0])",
        "math.xlogy(1, 1)",
    ),
    "math.zero_fraction": (
        "math.zero_fraction(i(2, 3))", "math.zero_fraction([0.0, nan])", "math.zero_fraction(r(0))",
    ),
    "math.zeta": ("math.zeta([2.0, 3.5], 1.0)", "math.zeta(2.5, p(2, 3))", "math.zeta(2, 1)"),
}  # fmt: skip

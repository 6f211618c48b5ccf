"""Examples of `tf.math`."""

from __future__ import annotations

EXAMPLES = """
abs: r(2, 3) | [3 + 4j] | -3 | b(2)
acos: r(2, 3) * 0.3 | [-1.0, 0.0, 1.0, 2.0] | 1
acosh: p(2, 3) + 1.0 | [1.0, 0.5, inf] | z(2)
add: r(2, 3), r(3) | i(4), 2 | r(0), 1.0 | ['a', 'b'], 'c' | b(2), b(2) | r(2), r(3) | r(2), i(2)
add_n: = add_n([r(2), r(2), r(2)]) | = add_n([i(3)]) | = add_n([r(2), r(3)]) |
    = add_n(x for x in [r(2), r(2)]) | = add_n({1.0, 2.0})
angle: z(2, 3) | r(3) | i(2)
argmax: r(2, 3), axis=1 | [[1, 3, 3]], -1, np.int32 | [nan, 1.0, 2.0] | r(0, 3) | r(2), axis=1
argmin: r(2, 3), axis=1 | i(4), output_type=np.float32 | [nan, 2.0, 1.0]
asin: r(2, 3) * 0.3 | [-1.0, 0.0, 1.0, 2.0] | 1
asinh: r(2, 3) | [-inf, 0.0, 1e8] | z(2)
atan: r(2, 3) | [-inf, 0.0, inf] | z(2)
atan2: r(2, 3), r(3) | [0.0, 1.0, -1.0], [-1.0, 0.0, 0.0] | 1, 1
atanh: r(2, 3) * 0.3 | [-1.0, 1.0, 2.0] | z(2)
betainc: 2.0, [0.5, 3.0], p(2) * 0.4 | [1.0, 2.0], 2.0, [0.0, 2.0] | 1, 1, 1
bincount: [1, 2, 2], minlength=5 | [[1, 2], [2, 2]], axis=-1 | [0, 2, 1, 2], p(4), maxlength=2 |
    [-1] | [[3, 0], [0, 0]], axis=-1, binary_output=True | []
ceil: r(2, 3) | [-0.5, inf, nan] | 1
confusion_matrix: [1, 2], [1, 1], num_classes=3 |
    [0, 2], [2, 2], weights=[0.5, 1.0], dtype=np.float32 | [1, 3], [1, 1], 2 | [-1], [1] |
    [[1], [0]], [1, 0]
conj: z(2, 3) | r(3) | i(2)
cos: r(2, 3) | [0.0, inf] | i(2)
cosh: r(2, 3) | [100.0, -inf] | z(2)
count_nonzero: i(2, 3), axis=1 | ['a', ''] | [[1.0, nan, 0.0]], 0, True, np.int32
cumprod: r(2, 3), axis=-1 | i(4), exclusive=True, reverse=True | 1.0
cumsum: r(2, 3), axis=1 | i(4), exclusive=True, reverse=True | r(2), axis=1 | r(0, 2)
cumulative_logsumexp: r(2, 3), axis=1 | r(3), exclusive=True, reverse=True | i(4)
digamma: p(2, 3) | [-1.5, 1.0, 20.0] | 1
divide: r(2, 3), p(3) | i(4), 2 | 1.0, [2.0, 0.0] | i(2), 1.5
divide_no_nan: r(2, 3), p(3) | [0.0, 1.0], 0.0 | i(3), [1, 0, 2] | i(2), r(2) |
    tf.constant([4, 5], tf.int64), i(2)
equal: [1.0, nan], [1.0, nan] | i(2, 3), 2 | ['a', 'b'], 'a' | i(2), i(3) | b(3), True
erf: r(2, 3) | [-inf, 0.0, 9.0] | 1
erfc: r(2, 3) | [-inf, 0.0, 5.0] | 1
erfcinv: p(2, 3) | [0.0, 2.0, 1.0] | 1
erfinv: r(2, 3) * 0.3 | [-1.0, 0.0, 1.0] | 1
exp: r(2, 3) | [-inf, 0.0, 100.0] | 1
expm1: r(2, 3) | [1e-8, -inf] | z(2)
floor: r(2, 3) | [-0.5, inf, nan] | 1
floordiv: i(6), 3 | 7.5, [2.0, -2.0] | i(2), 0 | [1.0, -1.0], 0.0
floormod: i(6), -3 | r(3), p(3) | i(2), 0
greater: r(4), r(4) | i(2, 3), 2 | z(2), 1
greater_equal: [1.0, nan], 1.0 | i(2, 3), 2 | r(2), r(3)
igamma: p(2, 3), p(3) | [-1.0, 1.0], 1.0 | 1, 2
igammac: p(2, 3), p(3) | [-1.0, 1.0], 1.0 | 1, 2
imag: z(2, 3) | [1.0, 2.0] | i(2)
in_top_k: [0, 1, 2], r(3, 3), 2 | [1, 5], [[0.5, 0.5], [0.0, 1.0]], 1 |
    [0, 0], [[1.0, nan], [inf, 0.0]], 2 | [0], r(2, 2), 1
invert_permutation: [2, 0, 1] | [2, 0, 0] | [1.0, 0.0]
is_finite: r(2, 3) | [inf, nan] | 1
is_inf: r(2, 3) | [inf, -inf, nan] | 1
is_nan: r(2, 3) | [inf, -inf, nan] | 1
is_non_decreasing: r(4) | [[1, 1], [2, 3]] | []
is_strictly_increasing: r(4) | [1, 1] | [1.0]
l2_normalize: r(2, 3), 1 | [0.0, 0.0] | i(2) | z(4)
lbeta: p(2, 3) | np.zeros(0, 'f') | i(2)
less: r(4), r(4) | i(2, 3), 2 | b(2), b(2)
less_equal: [1.0, nan], 1.0 | i(2, 3), 2 | i(2), 1.5
lgamma: p(2, 3) | [0.0, -1.0, -1.5, 20.0] | 1
log: p(2, 3) | [0.0, -1.0, inf] | z(2)
log1p: p(2, 3) | [1e-8, -1.0] | i(2)
log_sigmoid: r(2, 3) | [-200.0, 200.0] | 1
logical_and: b(4), b(4) | b(2, 3), True | i(2), i(2)
logical_not: b(4) | [True, False] | i(2)
logical_or: b(4), b(4) | b(2, 3), False | 1, b(2)
logical_xor: b(4), b(4) | b(2, 3), True | r(2), r(2)
maximum: r(2, 3), 0.0 | [nan, 1, 2], [1, nan, 2.0] | z(2), 1
minimum: r(2, 3), r(3) | [nan, 1, 2], [1, nan, 2.0] | i(2), 1.5
multiply: r(2, 3), r(3) | i(4), 2 | z(2), z(2)
multiply_no_nan: r(2, 3), r(3) | [nan, inf, 2.0], [0.0, 0.0, nan] | 1, 1
ndtri: p(2, 3) * 0.45 | [0.0, 1.0, 0.5] | 1
negative: r(2, 3) | [1, -2] | b(2)
nextafter: r(2, 3), r(3) | [0.0, 1.0, inf], [1.0, 1.0, 0.0] | i(2), i(2)
not_equal: [1.0, nan], [1.0, nan] | i(2, 3), 2 | ['a', 'b'], 'a'
polygamma: [1.0, 2.0, 3.0], 1.5 | 1.0, p(2, 3) | 1, 2
polyval: [r(1), r(3), 2.0], r(2, 3) | [], r(2) | [z(2)], z(2)
pow: p(2, 3), r(3) | i(4), 2 | i(2), -1 | [-2.0, 0.0, 3.0], 2.0
real: z(2, 3) | r(3) | i(2)
reciprocal: p(2, 3) | [0.0, -inf] | i(2)
reciprocal_no_nan: p(2, 3) | [0.0, -2.0] | [0]
reduce_all: b(2, 3), 1 | b(0) | i(2)
reduce_any: b(2, 3), 1 | b(0) | i(2)
reduce_euclidean_norm: r(2, 3), 1 | [3, 4] | z(4)
reduce_logsumexp: r(2, 3), 1 | [-inf, -inf] | i(2) | r(0, 2), 0
reduce_max: r(2, 3), axis=1 | i(0, 2), 0 | [[1.0, nan]] | b(2) | r(0, 2), 0
reduce_mean: r(2, 3), axis=0 | [1, 2, -4] | np.zeros(0, 'f')
reduce_min: r(2, 3), axis=1 | i(0, 2), 0 | r(2, 3), axis=2
reduce_prod: r(2, 3), 1 | i(2, 3), axis=-1, keepdims=True | r(0, 3), axis=[0]
reduce_std: r(2, 3), 1 | z(4) | i(2)
reduce_sum: r(2, 3) | i(2, 3), axis=-1, keepdims=True | r(2, 0, 3), axis=[0, 1] | b(2)
reduce_variance: r(2, 3), 1 | z(4) | i(2)
rint: r(2, 3) | [0.5, 1.5, -2.5] | 1
round: r(2, 3) | [0.5, 1.5, -2.5] | i(2)
rsqrt: p(2, 3) | [0.0, -1.0, inf] | 4
scalar_mul: = scalar_mul(2.0, r(3)) | = scalar_mul(2, i(2, 2)) | = scalar_mul(r(2), r(2))
segment_max: r(4, 2), [0, 0, 1, 3] | i(3), [0, 2, 2] | r(3), [0, 1, 0]
segment_mean: r(4, 2), [0, 0, 1, 3] | i(3), [0, 2, 2] | r(3), [0, 1, 0]
segment_min: r(4, 2), [0, 0, 1, 3] | i(3), [0, 2, 2] | r(3), [0, 1, 0]
segment_prod: r(4, 2), [0, 0, 1, 3] | i(3), [0, 2, 2] | r(3), [0, 1, 0]
segment_sum: r(4, 2), [0, 0, 1, 3] | i(3), [0, 2, 2] | r(3), [0, 1, 0]
sigmoid: r(2, 3) | [-inf, 0.0, 100.0] | 1
sign: r(2, 3) | [3 + 4j, 0j] | b(2)
sin: r(2, 3) | [0.0, inf] | i(2)
sinh: r(2, 3) | [100.0, -inf] | z(2)
softplus: r(2, 3) | [-200.0, 200.0] | 1
softsign: r(2, 3) | [-1e9, 0.0] | 1
sqrt: p(2, 3) | [0.0, -1.0, inf] | 4
square: r(2, 3) | i(4) | b(2)
squared_difference: r(2, 3), r(3) | i(4), 3 | z(2), z(2)
subtract: r(2, 3), r(3) | i(4), 2 | 1.0, r(2) | i(4), 1.5
tan: r(2, 3) | [0.0, inf] | z(2)
tanh: r(2, 3) | [-inf, 0.0, inf, nan] | z(2)
top_k: r(2, 3), k=2 | [1, 3, 3], 2, index_type=np.int64 | r(2), 3
truediv: tf.constant([4, 5], tf.int8), 3 | 7, 2 | b(2), b(2) | r(2), r(3)
unsorted_segment_max: r(4, 2), [2, 0, 2, -1], 4 | i(2, 2), [[0, 1], [1, 0]], 3 | r(2), [0, 3], 2
unsorted_segment_mean: r(4, 2), [2, 0, 2, -1], 4 | i(2, 2), [[0, 1], [1, 0]], 3 | r(2), [0, 3], 2
unsorted_segment_min: r(4, 2), [2, 0, 2, -1], 4 | i(2, 2), [[0, 1], [1, 0]], 3 | r(2), [0, 3], 2
unsorted_segment_prod: r(4, 2), [2, 0, 2, -1], 4 | i(2, 2), [[0, 1], [1, 0]], 3 | r(2), [0, 3], 2
unsorted_segment_sum: r(4, 2), [2, 0, 2, -1], 4 | i(2, 2), [[0, 1], [1, 0]], 3 | r(2), [0, 3], 2
xdivy: r(2, 3), p(3) | [0.0, 1.0, -1.0], 0.0 | 1, 1
xlog1py: p(2, 3), p(3) | [0.0, 1.0], -1.0 | 1, 1
xlogy: p(2, 3), p(3) | [0.0, 0.0, 1.0], [0.0, -1.0, 0.0] | 1, 1
zero_fraction: i(2, 3) | [0.0, nan] | r(0)
zeta: [2.0, 3.5], 1.0 | 2.5, p(2, 3) | 2, 1
"""

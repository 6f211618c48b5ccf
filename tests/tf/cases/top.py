"""Examples of operations at the top level, by the file of their goldens."""

from __future__ import annotations

ARRAYS = """
argsort: r(5) | [1, 3, 1, 3, 2], direction='DESCENDING', stable=True | [[2, 1], [1, 1]], axis=0
batch_to_space: r(4, 1, 2, 1), [2, 2], [[0, 0], [1, 0]] | i(2, 2), [2], [[0, 0]] |
    r(3, 2, 1), [2], [[0, 0]]
boolean_mask: r(3, 2), [True, False, True] | r(2, 2), [[True, False], [False, True]] |
    i(2, 3), [False, True, True], axis=1 | r(2), [False, False]
broadcast_to: r(3), [2, 3] | 1, (2,) | r(3), [2]
concat: [r(2, 1), r(2, 3)], 1 | [i(2), [7]], axis=-1 | [r(0, 2), r(1, 2)], 0 | [r(2), i(2)], 0 |
    [r(2, 2), r(1, 3)], 0 | [['a'], ['b', 'c']], 0
dynamic_partition: r(4), [0, 1, 1, 0], 3 | r(2, 2), [[0, 1], [1, 0]], 2 | r(2), [0, 2], 2
dynamic_stitch: [[0, 2], [1]], [r(2, 2), r(1, 2)] | [0, [3, 0]], [1, [2, 3]] | [[0, 1]], [r(3)]
ensure_shape: r(2, 3), [None, 3] | i(0, 3), [0, 3] | r(2, 3), [2, 2]
expand_dims: r(2, 3), 0 | i(2), -1 | r(2), 3
gather: r(3, 2), [2, 0, 2] | r(2, 3), [[0, 1], [2, 2]], axis=-1 |
    r(2, 3), [[0], [2]], batch_dims=1 | r(3), [3] | r(3), -1 | i(2, 2, 2), [1], axis=2, batch_dims=0
gather_nd: r(2, 3), [[0, 1], [1, 2]] | r(2, 3), [[1]] | r(2, 3), [[1], [2]], batch_dims=1 |
    i(2, 2), [[0, 2]]
identity_n: [r(2), i(1)] | [1, 2.5] | [r(0)]
one_hot: i(3), 3 | [0, 2, -1, 5], 3, 5, 1, axis=0 | [[1]], 2, on_value=True, off_value=False |
    [0.5], 2 | [], 3
pad: r(2, 2), [[1, 0], [0, 2]], constant_values=7 | r(3), [[2, 1]], 'reflect' |
    r(3), [[2, 3]], 'SYMMETRIC' | r(3), [[3, 0]], 'REFLECT' | b(2), [[1, 1]] |
    b(2), [[1, 0]], constant_values=True | i(2), [[1, 1]], 'CONSTANT', 1.5 | ['a'], [[1, 1]]
repeat: r(2, 2), 2, axis=0 | r(2, 2), [1, 3], axis=-1 | i(2, 2), 2
reverse: r(2, 3), [1] | i(2, 2), [-1, 0] | r(2), 0
reverse_sequence: r(2, 3), [2, 3], seq_axis=1 | r(3, 2), [1, 3], seq_axis=0, batch_axis=1 |
    r(2, 3), [1], 1
roll: r(5), 2, 0 | i(2, 3), [1, -1], [0, 1] | r(4), [1, 2], [0, 0]
scatter_nd: [[1], [3], [1]], r(3), [4] | [[0, 1]], r(1, 2), [2, 2, 2] | [[4]], r(1), [4] |
    [[0]], r(2), [3] | [[2], [0], [2]], [False, True, True], [4] |
    [[0], [2], [0]], ['a', 'b', 'c'], [3]
searchsorted: [1.0, 3.0, 5.0], r(4) | [[1, 3], [2, 4]], [[3, 0], [2, 9]], side='right' |
    [1, 2], [2], out_type=tf.int64 | [[1, 2]], [1]
sequence_mask: i(3), 4 | [[1, 3], [0, 2]] | [2, 5], 3, dtype=tf.float32
slice: r(3, 4), [1, 0], [2, -1] | i(3), [3], [0] | r(3), [1], [3]
sort: r(5) | i(3, 2), axis=0, direction='DESCENDING' | [[3, 1], [2, 2]], direction='DESCENDING'
space_to_batch: r(1, 2, 3, 1), [2, 2], [[0, 0], [1, 0]] | i(1, 4), [2], [[0, 0]] |
    r(1, 3, 1), [2], [[0, 0]]
split: r(4, 2), 2 | r(2, 5), [1, -1, 2], axis=1 | i(3), [3, 0], -1 | r(4), 3 | r(4), [1, 2]
squeeze: r(1, 2, 1) | i(1, 2, 1), [-1] | r(2, 1), 0
stack: [r(2), r(2)], axis=1 | [1, 2, 3] | [r(2), r(3)] | [1, 2.0] | [[1], [np.float32(2.5)]] |
    [1, 2**40] | [] | [[1, 2], [3]] | [True, 1]
strided_slice: r(3, 4), [0, 1], [3, 4], [2, 2] |
    r(3, 4), [1, 0, -1], [0, 0, -3], [1, 1, -1], new_axis_mask=2, shrink_axis_mask=1 |
    i(4), [5], [9], shrink_axis_mask=1
tensor_scatter_nd_add: r(4), [[1], [1]], r(2) | i(2, 2), [[0, 1]], [5] | r(2), [[2]], r(1)
tensor_scatter_nd_max: p(4), [[1], [0]], r(2) | i(4), [[0], [0]], [5, 6] | r(2), [[0]], r(2)
tensor_scatter_nd_min: p(4), [[1], [0]], r(2) | i(4), [[0], [0]], [5, 6] | r(2), [[0]], i(1)
tensor_scatter_nd_sub: r(4), [[1], [1]], r(2) | i(2, 2), [[1]], [[5, 6]] | r(2), [[-1]], r(1)
tensor_scatter_nd_update: r(4), [[1], [3]], r(2) | i(2, 2), [[1]], [[5, 6]] |
    r(2, 2), [[0, 2]], r(1) | ['a', 'b'], [[1]], ['c']
tile: r(2, 1), [1, 3] | i(2), [0] | r(2, 1), [2]
transpose: r(2, 3) | r(2, 1, 3), perm=[1, 2, 0] | z(2, 2), conjugate=True | r(2, 2), [0, 0]
unique: [1, 1, 2, 4, 2, 0] | ['b', 'a', 'b'], tf.int64 | [[1, 2]]
unique_with_counts: [3, 1, 3] | r(0) | 1
unstack: r(2, 3) | i(2, 3), axis=-1 | r(2), 2
where: b(2, 3), r(2, 3), 0.0 | [[True], [False]], r(2), r(2, 1) | b(2, 3) | [0.0, 2.0, nan] |
    b(2), r(2), i(2) | [True, False], r(2), r(3)
"""

ARRAYS_PLACES = """
unravel_index: [7, 2], [3, 3] | 7, [3, 3] | [9], [3, 3] | [2], [3, 0]
"""

CLIP = """
clip_by_global_norm: [r(2), None, r(2, 3)], 1.0 | [r(2)], 5.0, use_norm=tf.constant(10.0) |
    [[inf], [1.0]], 1.0 | r(2), 1.0
clip_by_norm: r(2, 3), 1.0 | r(2, 3), 0.5, axes=[1] | [0.0, 0.0], 1.0
clip_by_value: r(2, 3), -0.5, 0.5 | [1.0, nan, 3.0], 1.0, [1, 1, 2.0] | i(4), 0, 3 | i(2), 0.0, 1.5
complex: r(2, 3), r(3) | 1.0, [2.0, -0.5] | i(2), i(2)
histogram_fixed_width: r(9), [-1.0, 1.0], 4 |
    [-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5 | r(4), [1.0, 1.0], 4
histogram_fixed_width_bins: r(2, 3), [-1.0, 1.0], 4 | [-1.0, 0.0, 5.0], [0.0, 5.0], nbins=5 |
    r(4), [1.0, 1.0], 4
saturate_cast: r(2, 3), np.float16 | [300.0, -1.0, 7.9], np.uint8 | [3e9, -inf, inf], np.int32 |
    [-1, 70000], np.int16
"""

CREATION = """
cast: [1.7, -1.7, 0.0], tf.int32 | i(4), tf.bool | b(3), tf.float32 | z(2), tf.float32 |
    [-1.5, 300.0], tf.uint8 | r(2), 'complex64' | 'a', tf.int32 | r(2), tf.bfloat16
eye: 2 | 2, 3, dtype=tf.int32 | 1, num_columns=2, batch_shape=[2] | -1
fill: [2, 3], 9 | [2], 'a' | [], 1.0 | [2], [1, 2] | [-1], 1.0 | [2.0], 1 | [2], r(1)[0]
identity: r(2, 3) | [1, 2] | ['a']
linspace: 0.0, 1.0, 3 | [0.0, 5.0], [10.0, 40.0], 5, axis=-1 | 0, 1, 3 | 0.0, 1.0, 1 |
    0.0, tf.cast(1.0, 'float64'), 2 | r(2), r(2), 3
ones: (2, 3) | 2, tf.bool | 0 | 2, tf.string
ones_like: r(2, 3) | ['a'] | [1, 2], dtype='float64'
range: 5 | 3, 18, 3 | 3, 1, -0.5 | 0, 1, 0.1 | 3, tf.constant(5, tf.int64) |
    1, 5, dtype=tf.float32 | 5, 2 | 1, 5, 0 | [1, 2] | 0
rank: r(2, 3) | 1 | [['a']]
reshape: r(2, 3), [3, -1] | i(4), [] | r(4), [-1, 3] | r(0, 2), [0, -1] | ['a', 'b'], (2, 1) |
    r(4), -1 | r(4), [2.0, 2.0] | r(4), [-1, -1] | r(4), [None, 2]
shape: r(2, 3) | 1.0, tf.int64 | [['a'], ['b']]
size: r(2, 3) | [], out_type=tf.int64 | 'a'
zeros: (2, 3) | [], tf.int64 | 2, tf.string | -1 | [2, i(1)[0] * 0] | 2.5 | None |
    tf.constant([1, 2]), tf.bool
zeros_like: r(2, 3) | ['a'] | [1, 2], tf.float64
"""

OPERATORS = """
realdiv: r(3), p(3) | 1.0, [2.0, 0.0] | z(2), z(2)
truncatediv: i(6), -3 | i(6), 4 | [7.5, -7.5], 2.0
truncatemod: i(6), -3 | r(3), p(3) | 7, -2
"""

PRODUCTS = """
matmul: r(2, 3), r(3, 2) | r(2, 2, 3), r(4, 3), transpose_b=True |
    z(2, 3), z(2, 3), adjoint_a=True | i(2, 3), i(3, 2) | r(2, 3), r(2, 3) | r(3), r(3, 3) |
    r(0, 3), r(3, 2) | r(2, 2), r(2, 2), transpose_a=True, adjoint_a=True |
    i(2, 2), tf.ones([2, 2], 'int8') |
    tf.constant([[-128]], 'int8'), tf.constant([[255]], 'uint8'), output_type=tf.int32 |
    tf.constant([[1]], 'int8'), tf.constant([[2]], 'uint8') |
    tf.constant([[2.0]], 'bfloat16'), r(1, 2)
"""

"""Examples of operations at the top level, by the file of their goldens."""

from __future__ import annotations

ARRAYS = {
    "argsort": (
        "argsort(r(5))", "argsort([1, 3, 1, 3, 2], direction='DESCENDING', stable=True)",
        "argsort([[2, 1], [1, 1]], axis=0)",
    ),
    "batch_to_space": (
        "batch_to_space(r(4, 1, 2, 1), [2, 2], [[0, 0], [1, 0]])",
        "batch_to_space(i(2, 2), [2], [[0, 0]])", "batch_to_space(r(3, 2, 1), [2], [[0, 0]])",
    ),
    "boolean_mask": (
        "boolean_mask(r(3, 2), [True, False, True])",
        "boolean_mask(r(2, 2), [[True, False], [False, True]])",
        "boolean_mask(i(2, 3), [False, True, True], axis=1)", "boolean_mask(r(2), [False, False])",
    ),
    "broadcast_to": (
        "broadcast_to(r(3), [2, 3])", "broadcast_to(1, (2,))", "broadcast_to(r(3), [2])",
    ),
    "concat": (
        "concat([r(2, 1), r(2, 3)], 1)", "concat([i(2), [7]], axis=-1)",
        "concat([r(0, 2), r(1, 2)], 0)", "concat([r(2), i(2)], 0)", "concat([r(2, 2), r(1, 3)], 0)",
        "concat([['a'], ['b', 'c']], 0)",
    ),
    "dynamic_partition": (
        "dynamic_partition(r(4), [0, 1, 1, 0], 3)",
        "dynamic_partition(r(2, 2), [[0, 1], [1, 0]], 2)", "dynamic_partition(r(2), [0, 2], 2)",
    ),
    "dynamic_stitch": (
        "dynamic_stitch([[0, 2], [1]], [r(2, 2), r(1, 2)])",
        "dynamic_stitch([0, [3, 0]], [1, [2, 3]])", "dynamic_stitch([[0, 1]], [r(3)])",
    ),
    "ensure_shape": (
        "ensure_shape(r(2, 3), [None, 3])", "ensure_shape(i(0, 3), [0, 3])",
        "ensure_shape(r(2, 3), [2, 2])",
    ),
    "expand_dims": ("expand_dims(r(2, 3), 0)", "expand_dims(i(2), -1)", "expand_dims(r(2), 3)"),
    "gather": (
        "gather(r(3, 2), [2, 0, 2])", "gather(r(2, 3), [[0, 1], [2, 2]], axis=-1)",
        "gather(r(2, 3), [[0], [2]], batch_dims=1)", "gather(r(3), [3])", "gather(r(3), -1)",
        "gather(i(2, 2, 2), [1], axis=2, batch_dims=0)",
    ),
    "gather_nd": (
        "gather_nd(r(2, 3), [[0, 1], [1, 2]])", "gather_nd(r(2, 3), [[1]])",
        "gather_nd(r(2, 3), [[1], [2]], batch_dims=1)", "gather_nd(i(2, 2), [[0, 2]])",
    ),
    "identity_n": ("identity_n([r(2), i(1)])", "identity_n([1, 2.5])", "identity_n([r(0)])"),
    "one_hot": (
        "one_hot(i(3), 3)", "one_hot([0, 2, -1, 5], 3, 5, 1, axis=0)",
        "one_hot([[1]], 2, on_value=True, off_value=False)", "one_hot([0.5], 2)",
    ),
    "pad": (
        "pad(r(2, 2), [[1, 0], [0, 2]], constant_values=7)", "pad(r(3), [[2, 1]], 'reflect')",
        "pad(r(3), [[2, 3]], 'SYMMETRIC')", "pad(r(3), [[3, 0]], 'REFLECT')",
    ),
    "parallel_stack": (
        "parallel_stack([r(2), r(2)])", "parallel_stack([i(2)])", "parallel_stack([1, 2])",
    ),
    "repeat": (
        "repeat(r(2, 2), 2, axis=0)", "repeat(r(2, 2), [1, 3], axis=-1)", "repeat(i(2, 2), 2)",
    ),
    "reverse": ("reverse(r(2, 3), [1])", "reverse(i(2, 2), [-1, 0])", "reverse(r(2), 0)"),
    "reverse_sequence": (
        "reverse_sequence(r(2, 3), [2, 3], seq_axis=1)",
        "reverse_sequence(r(3, 2), [1, 3], seq_axis=0, batch_axis=1)",
        "reverse_sequence(r(2, 3), [1], 1)",
    ),
    "roll": ("roll(r(5), 2, 0)", "roll(i(2, 3), [1, -1], [0, 1])", "roll(r(4), [1, 2], [0, 0])"),
    "scatter_nd": (
        "scatter_nd([[1], [3], [1]], r(3), [4])", "scatter_nd([[0, 1]], r(1, 2), [2, 2, 2])",
        "scatter_nd([[4]], r(1), [4])", "scatter_nd([[0]], r(2), [3])",
    ),
    "searchsorted": (
        "searchsorted([1.0, 3.0, 5.0], r(4))",
        "searchsorted([[1, 3], [2, 4]], [[3, 0], [2, 9]], side='right')",
        "searchsorted([1, 2], [2], out_type=tf.int64)", "searchsorted([[1, 2]], [1])",
    ),
    "sequence_mask": (
        "sequence_mask(i(3), 4)", "sequence_mask([[1, 3], [0, 2]])",
        "sequence_mask([2, 5], 3, dtype=tf.float32)",
    ),
    "shape_n": ("shape_n([r(2, 3), r(1)])", "shape_n([i(0)], tf.int64)", "shape_n([r()])"),
    "slice": ("slice(r(3, 4), [1, 0], [2, -1])", "slice(i(3), [3], [0])", "slice(r(3), [1], [3])"),
    "sort": (
        "sort(r(5))", "sort(i(3, 2), axis=0, direction='DESCENDING')",
        "sort([[3, 1], [2, 2]], direction='DESCENDING')",
    ),
    "space_to_batch": (
        "space_to_batch(r(1, 2, 3, 1), [2, 2], [[0, 0], [1, 0]])",
        "space_to_batch(i(1, 4), [2], [[0, 0]])", "space_to_batch(r(1, 3, 1), [2], [[0, 0]])",
    ),
    "split": (
        "split(r(4, 2), 2)", "split(r(2, 5), [1, -1, 2], axis=1)", "split(i(3), [3, 0], -1)",
        "split(r(4), 3)", "split(r(4), [1, 2])",
    ),
    "squeeze": ("squeeze(r(1, 2, 1))", "squeeze(i(1, 2, 1), [-1])", "squeeze(r(2, 1), 0)"),
    "stack": ("stack([r(2), r(2)], axis=1)", "stack([1, 2, 3])", "stack([r(2), r(3)])"),
    "strided_slice": (
        "strided_slice(r(3, 4), [0, 1], [3, 4], [2, 2])",
        ("strided_slice(r(3, 4), [1, 0, -1], [0, 0, -3], [1, 1, -1], new_axis_mask=2, "
        "shrink_axis_mask=1)"),
        "strided_slice(i(4), [5], [9], shrink_axis_mask=1)",
    ),
    "tensor_scatter_nd_add": (
        "tensor_scatter_nd_add(r(4), [[1], [1]], r(2))",
        "tensor_scatter_nd_add(i(2, 2), [[0, 1]], [5])", "tensor_scatter_nd_add(r(2), [[2]], r(1))",
    ),
    "tensor_scatter_nd_max": (
        "tensor_scatter_nd_max(p(4), [[1], [0]], r(2))",
        "tensor_scatter_nd_max(i(4), [[0], [0]], [5, 6])",
        "tensor_scatter_nd_max(r(2), [[0]], r(2))",
    ),
    "tensor_scatter_nd_min": (
        "tensor_scatter_nd_min(p(4), [[1], [0]], r(2))",
        "tensor_scatter_nd_min(i(4), [[0], [0]], [5, 6])",
        "tensor_scatter_nd_min(r(2), [[0]], i(1))",
    ),
    "tensor_scatter_nd_sub": (
        "tensor_scatter_nd_sub(r(4), [[1], [1]], r(2))",
        "tensor_scatter_nd_sub(i(2, 2), [[1]], [[5, 6]])",
        "tensor_scatter_nd_sub(r(2), [[-1]], r(1))",
    ),
    "tensor_scatter_nd_update": (
        "tensor_scatter_nd_update(r(4), [[1], [3]], r(2))",
        "tensor_scatter_nd_update(i(2, 2), [[1]], [[5, 6]])",
        "tensor_scatter_nd_update(r(2, 2), [[0, 2]], r(1))",
    ),
    "tile": ("tile(r(2, 1), [1, 3])", "tile(i(2), [0])", "tile(r(2, 1), [2])"),
    "transpose": (
        "transpose(r(2, 3))", "transpose(r(2, 1, 3), perm=[1, 2, 0])",
        "transpose(z(2, 2), conjugate=True)", "transpose(r(2, 2), [0, 0])",
    ),
    "unique": (
        "unique([1, 1, 2, 4, 2, 0])", "unique(['b', 'a', 'b'], tf.int64)", "unique([[1, 2]])",
    ),
    "unique_with_counts": (
        "unique_with_counts([3, 1, 3])", "unique_with_counts(r(0))", "unique_with_counts(1)",
    ),
    "unstack": ("unstack(r(2, 3))", "unstack(i(2, 3), axis=-1)", "unstack(r(2), 2)"),
    "where": (
        "where(b(2, 3), r(2, 3), 0.0)", "where([[True], [False]], r(2), r(2, 1))", "where(b(2, 3))",
        "where([0.0, 2.0, nan])", "where(b(2), r(2), i(2))", "where([True, False], r(2), r(3))",
    ),
}  # fmt: skip

ARRAYS_PLACES = {
    "approx_top_k": (
        "approx_top_k(r(5), 2)", "approx_top_k(r(2, 3), 1)",
        "approx_top_k(r(2, 4), 3, recall_target=0.5)",
    ),
    "extract_volume_patches": (
        "extract_volume_patches(r(1, 2, 2, 2, 2), [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], 'VALID')",
        "extract_volume_patches(r(1, 2, 2, 1, 1), [1, 2, 2, 1, 1], [1, 1, 2, 1, 1], 'SAME')",
        "extract_volume_patches(r(2, 2), [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], 'VALID')",
    ),
    "guarantee_const": ("guarantee_const([1, 2])", "guarantee_const(r(2))", "guarantee_const('a')"),
    "unravel_index": (
        "unravel_index([7, 2], [3, 3])", "unravel_index(7, [3, 3])", "unravel_index([9], [3, 3])",
        "unravel_index([2], [3, 0])",
    ),
}  # fmt: skip

CLIP = {
    "clip_by_global_norm": (
        "clip_by_global_norm([r(2), None, r(2, 3)], 1.0)",
        "clip_by_global_norm([r(2)], 5.0, use_norm=tf.constant(10.0))",
        "clip_by_global_norm([[inf], [1.0]], 1.0)", "clip_by_global_norm(r(2), 1.0)",
    ),
    "clip_by_norm": (
        "clip_by_norm(r(2, 3), 1.0)", "clip_by_norm(r(2, 3), 0.5, axes=[1])",
        "clip_by_norm([0.0, 0.0], 1.0)",
    ),
    "clip_by_value": (
        "clip_by_value(r(2, 3), -0.5, 0.5)", "clip_by_value([1.0, nan, 3.0], 1.0, [1, 1, 2.0])",
        "clip_by_value(i(4), 0, 3)", "clip_by_value(i(2), 0.0, 1.5)",
    ),
    "complex": ("complex(r(2, 3), r(3))", "complex(1.0, [2.0, -0.5])", "complex(i(2), i(2))"),
    "histogram_fixed_width": (
        "histogram_fixed_width(r(9), [-1.0, 1.0], 4)",
        "histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5)",
        "histogram_fixed_width(r(4), [1.0, 1.0], 4)",
    ),
    "histogram_fixed_width_bins": (
        "histogram_fixed_width_bins(r(2, 3), [-1.0, 1.0], 4)",
        "histogram_fixed_width_bins([-1.0, 0.0, 5.0], [0.0, 5.0], nbins=5)",
        "histogram_fixed_width_bins(r(4), [1.0, 1.0], 4)",
    ),
    "saturate_cast": (
        "saturate_cast(r(2, 3), np.float16)", "saturate_cast([300.0, -1.0, 7.9], np.uint8)",
        "saturate_cast([3e9, -inf, inf], np.int32)", "saturate_cast([-1, 70000], np.int16)",
    ),
}  # fmt: skip

CREATION = {
    "cast": (
        "cast([1.7, -1.7, 0.0], tf.int32)", "cast(i(4), tf.bool)", "cast(b(3), tf.float32)",
        "cast(z(2), tf.float32)", "cast([-1.5, 300.0], tf.uint8)", "cast(r(2), 'complex64')",
        "cast('a', tf.int32)", "cast(r(2), tf.bfloat16)",
    ),
    "eye": (
        "eye(2)", "eye(2, 3, dtype=tf.int32)", "eye(1, num_columns=2, batch_shape=[2])", "eye(-1)",
    ),
    "fill": (
        "fill([2, 3], 9)", "fill([2], 'a')", "fill([], 1.0)", "fill([2], [1, 2])",
        "fill([-1], 1.0)", "fill([2.0], 1)", "fill([2], r(1)[0])",
    ),
    "identity": ("identity(r(2, 3))", "identity([1, 2])", "identity(['a'])"),
    "linspace": (
        "linspace(0.0, 1.0, 3)", "linspace([0.0, 5.0], [10.0, 40.0], 5, axis=-1)",
        "linspace(0, 1, 3)", "linspace(0.0, 1.0, 1)", "linspace(0.0, tf.cast(1.0, 'float64'), 2)",
        "linspace(r(2), r(2), 3)",
    ),
    "ones": ("ones((2, 3))", "ones(2, tf.bool)", "ones(0)", "ones(2, tf.string)"),
    "ones_like": ("ones_like(r(2, 3))", "ones_like(['a'])", "ones_like([1, 2], dtype='float64')"),
    "range": (
        "range(5)", "range(3, 18, 3)", "range(3, 1, -0.5)", "range(0, 1, 0.1)",
        "range(3, tf.constant(5, tf.int64))", "range(1, 5, dtype=tf.float32)", "range(5, 2)",
        "range(1, 5, 0)", "range([1, 2])", "range(0)",
    ),
    "rank": ("rank(r(2, 3))", "rank(1)", "rank([['a']])"),
    "reshape": (
        "reshape(r(2, 3), [3, -1])", "reshape(i(4), [])", "reshape(r(4), [-1, 3])",
        "reshape(r(0, 2), [0, -1])", "reshape(['a', 'b'], (2, 1))", "reshape(r(4), -1)",
        "reshape(r(4), [2.0, 2.0])", "reshape(r(4), [-1, -1])", "reshape(r(4), [None, 2])",
    ),
    "shape": ("shape(r(2, 3))", "shape(1.0, tf.int64)", "shape([['a'], ['b']])"),
    "size": ("size(r(2, 3))", "size([], out_type=tf.int64)", "size('a')"),
    "zeros": (
        "zeros((2, 3))", "zeros([], tf.int64)", "zeros(2, tf.string)", "zeros(-1)",
        "zeros([2, i(1)[0] * 0])", "zeros(2.5)", "zeros(None)",
        "zeros(tf.constant([1, 2]), tf.bool)",
    ),
    "zeros_like": ("zeros_like(r(2, 3))", "zeros_like(['a'])", "zeros_like([1, 2], tf.float64)"),
}  # fmt: skip

NN_TOP = {
    "required_space_to_batch_paddings": (
        "required_space_to_batch_paddings([4, 5], [2, 2])",
        "required_space_to_batch_paddings([4, 5], [2, 3], [[1, 0], [0, 2]])",
        "required_space_to_batch_paddings([6], [3])",
    ),
}  # fmt: skip

OPERATORS = {
    "realdiv": ("realdiv(r(3), p(3))", "realdiv(1.0, [2.0, 0.0])", "realdiv(z(2), z(2))"),
    "truncatediv": (
        "truncatediv(i(6), -3)", "truncatediv(i(6), 4)", "truncatediv([7.5, -7.5], 2.0)",
    ),
    "truncatemod": ("truncatemod(i(6), -3)", "truncatemod(r(3), p(3))", "truncatemod(7, -2)"),
}  # fmt: skip

PRODUCTS = {
    "matmul": (
        "matmul(r(2, 3), r(3, 2))", "matmul(r(2, 2, 3), r(4, 3), transpose_b=True)",
        "matmul(z(2, 3), z(2, 3), adjoint_a=True)", "matmul(i(2, 3), i(3, 2))",
        "matmul(r(2, 3), r(2, 3))", "matmul(r(3), r(3, 3))", "matmul(r(0, 3), r(3, 2))",
        "matmul(r(2, 2), r(2, 2), transpose_a=True, adjoint_a=True)",
    ),
}  # fmt: skip

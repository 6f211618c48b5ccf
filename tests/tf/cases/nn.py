"""Examples of `tf.nn`."""

from __future__ import annotations

EXAMPLES = {
    "nn.atrous_conv2d": (
        "nn.atrous_conv2d(r(1, 5, 5, 1), r(2, 2, 1, 1), 2, 'VALID')",
        "nn.atrous_conv2d(r(1, 4, 4, 1), r(2, 2, 1, 1), 2, 'SAME')",
        "nn.atrous_conv2d(r(1, 3, 3, 1), r(2, 2, 1, 2), 1, 'SAME')",
    ),
    "nn.atrous_conv2d_transpose": (
        "nn.atrous_conv2d_transpose(r(1, 3, 3, 1), r(2, 2, 2, 1), [1, 5, 5, 2], 2, 'VALID')",
        "nn.atrous_conv2d_transpose(r(1, 4, 4, 1), r(2, 2, 1, 1), [1, 4, 4, 1], 2, 'SAME')",
        "nn.atrous_conv2d_transpose(r(1, 3, 3, 2), r(2, 2, 1, 2), [1, 3, 3, 1], 1, 'SAME')",
    ),
    "nn.avg_pool": (
        "nn.avg_pool(r(1, 4, 4, 1), 2, 2, 'VALID')",
        "nn.avg_pool(r(1, 3, 4, 2), [2, 3], [1, 2], 'SAME')",
        "nn.avg_pool(r(1, 4, 2), 3, 1, 'SAME')",
    ),
    "nn.avg_pool1d": (
        "nn.avg_pool1d(r(2, 4, 2), 2, 2, 'VALID')", "nn.avg_pool1d(r(1, 5, 1), 3, 2, 'SAME')",
        "nn.avg_pool1d(r(1, 4, 1), [2], [1], 'SAME')",
    ),
    "nn.avg_pool2d": (
        "nn.avg_pool2d(r(1, 4, 4, 1), 2, 2, 'VALID')",
        "nn.avg_pool2d(r(1, 3, 3, 2), [1, 2, 2, 1], [1, 1, 1, 1], 'SAME')",
        "nn.avg_pool2d(r(1, 3, 3, 1), 3, 1, 'SAME')",
    ),
    "nn.avg_pool3d": (
        "nn.avg_pool3d(r(1, 2, 2, 4, 1), 2, 2, 'VALID')",
        "nn.avg_pool3d(r(1, 2, 3, 2, 1), 2, 1, 'SAME')",
        "nn.avg_pool3d(r(1, 1, 2, 2, 2), [1, 2, 1], 1, 'VALID')",
    ),
    "nn.batch_norm_with_global_normalization": (
        "nn.batch_norm_with_global_normalization(r(1, 2, 2, 3), r(3), p(3), r(3), p(3), 0.1, True)",
        ("nn.batch_norm_with_global_normalization(r(1, 2, 2, 3), r(3), p(3), r(3), p(3), 0.1, "
        "False)"),
        ("nn.batch_norm_with_global_normalization(r(1, 1, 1, 2), r(2), 0.0 * p(2), r(2), p(2), "
        "0.5, True)"),
    ),
    "nn.batch_normalization": (
        "nn.batch_normalization(r(2, 3), r(3), p(3), r(3), p(3), 1e-3)",
        "nn.batch_normalization(r(2, 3), r(3), p(3), None, None, 1e-3)",
        "nn.batch_normalization(r(2, 3), 0.5, p(3), r(3), scale=None, variance_epsilon=1)",
    ),
    "nn.bias_add": (
        "nn.bias_add(r(2, 3), r(3))", "nn.bias_add(r(1, 2, 2, 2), r(2), data_format='NCHW')",
        "nn.bias_add(r(2, 3), r(2))", "nn.bias_add(i(2, 3), [1, 2, 3])",
    ),
    "nn.collapse_repeated": (
        "nn.collapse_repeated([[1, 1, 2, 2, 1], [3, 3, 3, 1, 1]], [5, 4])",
        "nn.collapse_repeated([[4, 4]], [2])", "nn.collapse_repeated([[1, 2, 2, 3]], [1])",
    ),
    "nn.compute_average_loss": (
        "nn.compute_average_loss(r(4))", "nn.compute_average_loss(r(4), p(4), 8)",
        "nn.compute_average_loss(r(2, 2), global_batch_size=2)",
    ),
    "nn.conv1d": (
        "nn.conv1d(r(1, 5, 2), r(3, 2, 2), 1, 'SAME')",
        "nn.conv1d(r(2, 5, 1), r(2, 1, 2), stride=2, padding='VALID')",
        "nn.conv1d(r(1, 6, 1), r(2, 1, 1), 1, 'VALID', dilations=2)",
    ),
    "nn.conv1d_transpose": (
        "nn.conv1d_transpose(r(1, 3, 2), r(3, 1, 2), [1, 6, 1], 2)",
        "nn.conv1d_transpose(r(1, 3, 1), r(2, 2, 1), [1, 4, 2], 1, 'VALID')",
        "nn.conv1d_transpose(r(1, 3, 1), r(2, 2, 1), [1, 5, 2], [1, 2, 1])",
    ),
    "nn.conv2d": (
        "nn.conv2d(r(1, 4, 5, 2), r(3, 2, 2, 1), 1, 'SAME')",
        "nn.conv2d(r(1, 4, 4, 1), r(2, 2, 1, 2), [1, 2, 2, 1], 'VALID')",
        "nn.conv2d(r(1, 3, 3, 1), r(2, 2, 1, 1), 2, [[0, 0], [1, 0], [0, 2], [0, 0]])",
        "nn.conv2d(r(1, 5, 5, 1), r(2, 2, 1, 1), 1, 'SAME', dilations=[2, 1])",
        "nn.conv2d(r(1, 3, 3, 2), r(2, 2, 3, 1), 1, 'SAME')",
    ),
    "nn.conv2d_transpose": (
        "nn.conv2d_transpose(r(1, 2, 2, 2), r(3, 3, 1, 2), [1, 4, 4, 1], 2)",
        "nn.conv2d_transpose(r(1, 2, 3, 1), r(2, 2, 2, 1), [1, 3, 4, 2], 1, 'VALID')",
        "nn.conv2d_transpose(r(1, 2, 2, 1), r(2, 2, 1, 1), [1, 3, 5, 1], [1, 2, 3, 1], 'SAME')",
    ),
    "nn.conv3d": (
        "nn.conv3d(r(1, 2, 3, 3, 1), r(2, 2, 2, 1, 1), [1, 1, 1, 1, 1], 'SAME')",
        "nn.conv3d(r(1, 3, 3, 3, 1), r(2, 2, 2, 1, 1), [1, 2, 2, 2, 1], 'VALID')",
        "nn.conv3d(r(1, 2, 2, 2, 1), r(1, 1, 1, 1, 2), [1, 1, 1, 1, 1], 'VALID')",
    ),
    "nn.conv3d_transpose": (
        "nn.conv3d_transpose(r(1, 1, 2, 1, 1), r(2, 2, 2, 1, 1), [1, 2, 4, 2, 1], 2)",
        "nn.conv3d_transpose(r(1, 1, 1, 1, 1), r(2, 2, 2, 2, 1), [1, 2, 2, 2, 2], 1, 'VALID')",
        "nn.conv3d_transpose(r(1, 1, 1, 2, 1), r(1, 1, 2, 1, 1), [1, 1, 1, 4, 1], [1, 1, 2])",
    ),
    "nn.conv_transpose": (
        "nn.conv_transpose(r(1, 3, 1), r(2, 1, 1), [1, 6, 1], 2)",
        "nn.conv_transpose(r(1, 2, 2, 1), r(2, 2, 1, 1), [1, 3, 3, 1], 1, 'VALID')",
        "nn.conv_transpose(r(1, 2, 1), r(2, 2, 1), output_shape=[1, 2, 2], strides=1)",
    ),
    "nn.convolution": (
        "nn.convolution(r(1, 5, 1), r(2, 1, 2))",
        "nn.convolution(r(1, 4, 4, 1), r(2, 2, 1, 1), strides=2, padding='SAME')",
        "nn.convolution(r(1, 5, 4, 1), r(2, 2, 1, 1), dilations=[2, 1])",
    ),
    "nn.crelu": ("nn.crelu(r(2, 3))", "nn.crelu(r(2, 3), axis=0)", "nn.crelu(i(3))"),
    "nn.ctc_loss": (
        "nn.ctc_loss([[1, 2], [2, 0]], r(4, 2, 3), [2, 1], [4, 3])",
        "nn.ctc_loss([[1, 0]], r(1, 3, 3), [2], [3], logits_time_major=False, blank_index=-1)",
        "nn.ctc_loss([[1, 1]], r(3, 1, 2), [2], [3], blank_index=0)",
    ),
    "nn.ctc_unique_labels": (
        "nn.ctc_unique_labels([[1, 2, 3, 3], [4, 4, 5, 0]])", "nn.ctc_unique_labels(i(2, 4))",
        "nn.ctc_unique_labels([[7]])",
    ),
    "nn.depth_to_space": (
        "nn.depth_to_space(r(1, 1, 2, 4), 2)", "nn.depth_to_space(i(1, 2, 1, 12), 2)",
        "nn.depth_to_space(r(1, 1, 1, 3), 2)",
    ),
    "nn.depthwise_conv2d": (
        "nn.depthwise_conv2d(r(1, 3, 4, 2), r(2, 2, 2, 2), [1, 1, 1, 1], 'SAME')",
        "nn.depthwise_conv2d(r(1, 4, 4, 2), r(2, 2, 2, 1), [1, 2, 2, 1], 'VALID')",
        "nn.depthwise_conv2d(r(1, 4, 4, 1), r(2, 2, 1, 1), [1] * 4, 'VALID', dilations=[2, 2])",
    ),
    "nn.depthwise_conv2d_backprop_filter": (
        ("nn.depthwise_conv2d_backprop_filter(r(1, 4, 4, 1), [2, 2, 1, 2], r(1, 4, 4, 2), [1, "
        "1, 1, 1], 'SAME')"),
        ("nn.depthwise_conv2d_backprop_filter(r(1, 4, 4, 2), [2, 2, 2, 1], r(1, 2, 2, 2), [1, "
        "2, 2, 1], 'VALID')"),
        ("nn.depthwise_conv2d_backprop_filter(r(1, 3, 3, 1), [3, 3, 1, 1], r(1, 1, 1, 1), [1, "
        "1, 1, 1], 'VALID')"),
    ),
    "nn.depthwise_conv2d_backprop_input": (
        ("nn.depthwise_conv2d_backprop_input([1, 4, 4, 1], r(2, 2, 1, 2), r(1, 4, 4, 2), [1, 1, "
        "1, 1], 'SAME')"),
        ("nn.depthwise_conv2d_backprop_input([1, 4, 4, 2], r(2, 2, 2, 1), r(1, 2, 2, 2), [1, 2, "
        "2, 1], 'VALID')"),
        ("nn.depthwise_conv2d_backprop_input([1, 3, 3, 1], r(3, 3, 1, 1), r(1, 1, 1, 1), [1, 1, "
        "1, 1], 'VALID')"),
    ),
    "nn.dilation2d": (
        "nn.dilation2d(r(1, 4, 4, 1), r(2, 2, 1), [1, 1, 1, 1], 'SAME', 'NHWC', [1, 1, 1, 1])",
        "nn.dilation2d(r(1, 5, 5, 2), r(2, 2, 2), [1, 2, 2, 1], 'VALID', 'NHWC', [1, 2, 2, 1])",
        "nn.dilation2d(i(1, 3, 3, 1), i(2, 2, 1), [1, 1, 1, 1], 'SAME', 'NHWC', [1, 1, 1, 1])",
    ),
    "nn.elu": ("nn.elu(r(2, 3))", "nn.elu([-1e30, 0.0, nan])", "nn.elu(i(3))"),
    "nn.embedding_lookup": (
        "nn.embedding_lookup(r(4, 2), [3, 0, 3])",
        "nn.embedding_lookup(r(3, 2), [[1], [2]], max_norm=0.5)",
        "nn.embedding_lookup(r(3, 2), [0, 3])",
    ),
    "nn.erosion2d": (
        "nn.erosion2d(r(1, 4, 4, 1), r(2, 2, 1), [1, 1, 1, 1], 'SAME', 'NHWC', [1, 1, 1, 1])",
        "nn.erosion2d(r(1, 5, 5, 2), r(2, 2, 2), [1, 2, 2, 1], 'VALID', 'NHWC', [1, 2, 2, 1])",
        "nn.erosion2d(i(1, 3, 3, 1), i(2, 2, 1), [1, 1, 1, 1], 'SAME', 'NHWC', [1, 1, 1, 1])",
    ),
    "nn.gelu": ("nn.gelu(r(2, 3))", "nn.gelu(r(2, 3), approximate=True)", "nn.gelu(i(3))"),
    "nn.isotonic_regression": (
        "nn.isotonic_regression(r(2, 5))", "nn.isotonic_regression([3.0, 1.0, 2.0], False)",
        "nn.isotonic_regression(i(4), axis=0)",
    ),
    "nn.l2_loss": ("nn.l2_loss(r(2, 3))", "nn.l2_loss(r(0))", "nn.l2_loss(3.0)"),
    "nn.leaky_relu": (
        "nn.leaky_relu(r(2, 3))", "nn.leaky_relu(i(4), alpha=0.5)",
        "nn.leaky_relu([-1.0, 0.0, 2.0])",
    ),
    "nn.local_response_normalization": (
        "nn.local_response_normalization(r(1, 1, 2, 4))", "nn.lrn(r(1, 2, 1, 4), 1, 2, 0.5, 0.75)",
        "nn.lrn(r(1, 1, 1, 3), depth_radius=2)",
    ),
    "nn.log_poisson_loss": (
        "nn.log_poisson_loss(p(4), r(4))", "nn.log_poisson_loss(3.0 * p(4), r(4), True)",
        "nn.log_poisson_loss(p(0), r(0))",
    ),
    "nn.log_softmax": (
        "nn.log_softmax(r(2, 3))", "nn.log_softmax(r(2, 3, 2), axis=1)",
        "nn.log_softmax([1000.0, 0.0])",
    ),
    "nn.max_pool": (
        "nn.max_pool(r(1, 4, 4, 1), 2, 2, 'VALID')",
        "nn.max_pool(r(1, 3, 4, 2), [2, 3], [1, 2], 'SAME')",
        "nn.max_pool(r(1, 4, 2), 3, 1, 'SAME')", "nn.max_pool(i(1, 4, 4, 1), 2, 2, 'VALID')",
    ),
    "nn.max_pool1d": (
        "nn.max_pool1d(r(2, 4, 2), 2, 2, 'VALID')", "nn.max_pool1d(r(1, 5, 1), 3, 2, 'SAME')",
        "nn.max_pool1d(r(1, 4, 1), [2], [1], 'SAME')",
    ),
    "nn.max_pool2d": (
        "nn.max_pool2d(r(1, 4, 4, 1), 2, 2, 'VALID')",
        "nn.max_pool2d(r(1, 3, 3, 1), 2, 1, [[0, 0], [1, 0], [0, 1], [0, 0]])",
        "nn.max_pool2d(0.0 * r(1, 2, 4, 1), 2, 2, 'SAME')",
    ),
    "nn.max_pool3d": (
        "nn.max_pool3d(r(1, 2, 2, 4, 1), 2, 2, 'VALID')",
        "nn.max_pool3d(r(1, 2, 3, 2, 1), 2, 1, 'SAME')",
        "nn.max_pool3d(r(1, 1, 2, 2, 2), [1, 2, 1], 1, 'VALID')",
    ),
    "nn.max_pool_with_argmax": (
        "nn.max_pool_with_argmax(r(1, 4, 4, 1), 2, 2, 'VALID')",
        "nn.max_pool_with_argmax(r(2, 3, 3, 2), 2, 2, 'SAME')",
        "nn.max_pool_with_argmax(r(2, 2, 2, 1), 2, 1, 'VALID', include_batch_in_index=True)",
    ),
    "nn.moments": (
        "nn.moments(r(2, 3), axes=[0])", "nn.moments(r(2, 3), [0, 1], keepdims=True)",
        "nn.moments(tf.cast(r(2, 3), 'float16'), -1)",
    ),
    "nn.normalize_moments": (
        "nn.normalize_moments(4.0, r(3), p(3), None)",
        "nn.normalize_moments(4.0, r(3), p(3), shift=r(3))",
        "nn.normalize_moments(p(2), r(2), p(2), 1.0)",
    ),
    "nn.pool": (
        "nn.pool(r(1, 4, 4, 1), [2, 2], 'AVG')",
        "nn.pool(r(1, 5, 2), [2], 'MAX', strides=[2], padding='SAME')",
        "nn.pool(r(1, 5, 1), [2], 'AVG', dilations=[2])",
    ),
    "nn.relu": ("nn.relu(r(2, 3))", "nn.relu(i(4))", "nn.relu([-1.0, 0.0, nan, inf])"),
    "nn.relu6": ("nn.relu6(4.0 * r(2, 3))", "nn.relu6(i(6))", "nn.relu6(r(0))"),
    "nn.scale_regularization_loss": (
        "nn.scale_regularization_loss(r(4))", "nn.scale_regularization_loss(2.0)",
        "nn.scale_regularization_loss([1.0, 2.0])",
    ),
    "nn.selu": ("nn.selu(r(2, 3))", "nn.selu([-1e30, 0.0, nan])", "nn.selu(0.0 * r(2))"),
    "nn.separable_conv2d": (
        "nn.separable_conv2d(r(1, 3, 3, 2), r(2, 2, 2, 1), r(1, 1, 2, 2), [1] * 4, 'SAME')",
        "nn.separable_conv2d(r(1, 4, 4, 1), r(2, 2, 1, 2), r(1, 1, 2, 1), [1] * 4, 'SAME')",
        "nn.separable_conv2d(r(1, 3, 3, 1), r(2, 2, 1, 1), r(1, 1, 1, 3), [1] * 4, 'VALID')",
    ),
    "nn.sigmoid_cross_entropy_with_logits": (
        "nn.sigmoid_cross_entropy_with_logits(labels=p(2, 3), logits=r(2, 3))",
        "nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 0.0], logits=[0.0, -90.0])",
        "nn.sigmoid_cross_entropy_with_logits(labels=p(3), logits=r(2))",
    ),
    "nn.silu": ("nn.silu(r(2, 3))", "nn.silu(r(3), 2.0)", "nn.swish([-100.0, 0.0, 100.0])"),
    "nn.softmax": (
        "nn.softmax(r(2, 3)) * r(2, 3)", "nn.softmax(r(2, 3), axis=0)",
        "nn.softmax([1000.0, 0.0, -inf])", "nn.softmax(r(0, 3))",
    ),
    "nn.softmax_cross_entropy_with_logits": (
        "nn.softmax_cross_entropy_with_logits(labels=p(2, 3), logits=r(2, 3))",
        "nn.softmax_cross_entropy_with_logits(p(3, 2), r(3, 2), axis=0)",
        "nn.softmax_cross_entropy_with_logits(p(2, 3), tf.cast(r(2, 3), 'float16'))",
        "nn.softmax_cross_entropy_with_logits(p(2, 3), r(2, 4))",
    ),
    "nn.space_to_depth": (
        "nn.space_to_depth(r(1, 4, 2, 1), 2)", "nn.space_to_depth(i(1, 2, 2, 3), 2)",
        "nn.space_to_depth(r(1, 3, 4, 1), 2)",
    ),
    "nn.sparse_softmax_cross_entropy_with_logits": (
        "nn.sparse_softmax_cross_entropy_with_logits(labels=[2, 0], logits=r(2, 3))",
        "nn.sparse_softmax_cross_entropy_with_logits(labels=[[0, 1]], logits=r(1, 2, 2))",
        "nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 3], logits=r(2, 3))",
        "nn.sparse_softmax_cross_entropy_with_logits(labels=i(2, 3), logits=r(2, 3))",
    ),
    "nn.sufficient_statistics": (
        "nn.sufficient_statistics(r(2, 3), [0])",
        "nn.sufficient_statistics(r(2, 3), [0, 1], shift=1.5)",
        "nn.sufficient_statistics(r(2, 3), [-1], keepdims=True)",
    ),
    "nn.weighted_cross_entropy_with_logits": (
        "nn.weighted_cross_entropy_with_logits(p(2, 3), r(2, 3), 2.5)",
        "nn.weighted_cross_entropy_with_logits(labels=p(2), logits=r(2), pos_weight=p(2))",
        "nn.weighted_cross_entropy_with_logits(p(2), r(3), 2.0)",
    ),
    "nn.weighted_moments": (
        "nn.weighted_moments(r(2, 3), [1], p(2, 3))", "nn.weighted_moments(r(2, 3), 0, 2.0)",
        "nn.weighted_moments(r(2, 3), [0, 1], p(2, 1), keepdims=True)",
    ),
}  # fmt: skip

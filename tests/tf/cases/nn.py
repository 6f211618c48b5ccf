"""Examples of `tf.nn`."""

from __future__ import annotations

EXAMPLES = """
avg_pool: r(1, 4, 4, 1), 2, 2, 'VALID' | r(1, 3, 4, 2), [2, 3], [1, 2], 'SAME' |
    r(1, 4, 2), 3, 1, 'SAME'
avg_pool1d: r(2, 4, 2), 2, 2, 'VALID' | r(1, 5, 1), 3, 2, 'SAME' | r(1, 4, 1), [2], [1], 'SAME'
avg_pool2d: r(1, 4, 4, 1), 2, 2, 'VALID' | r(1, 3, 3, 2), [1, 2, 2, 1], [1, 1, 1, 1], 'SAME' |
    r(1, 3, 3, 1), 3, 1, 'SAME'
avg_pool3d: r(1, 2, 2, 4, 1), 2, 2, 'VALID' | r(1, 2, 3, 2, 1), 2, 1, 'SAME' |
    r(1, 1, 2, 2, 2), [1, 2, 1], 1, 'VALID'
batch_normalization: r(2, 3), r(3), p(3), r(3), p(3), 1e-3 | r(2, 3), r(3), p(3), None, None, 1e-3 |
    r(2, 3), 0.5, p(3), r(3), scale=None, variance_epsilon=1
bias_add: r(2, 3), r(3) | r(1, 2, 2, 2), r(2), data_format='NCHW' | r(2, 3), r(2) |
    i(2, 3), [1, 2, 3]
compute_average_loss: r(4) | r(4), p(4), 8 | r(2, 2), global_batch_size=2
conv1d: r(1, 5, 2), r(3, 2, 2), 1, 'SAME' | r(2, 5, 1), r(2, 1, 2), stride=2, padding='VALID' |
    r(1, 6, 1), r(2, 1, 1), 1, 'VALID', dilations=2
conv1d_transpose: r(1, 3, 2), r(3, 1, 2), [1, 6, 1], 2 |
    r(1, 3, 1), r(2, 2, 1), [1, 4, 2], 1, 'VALID' | r(1, 3, 1), r(2, 2, 1), [1, 5, 2], [1, 2, 1]
conv2d: r(1, 4, 5, 2), r(3, 2, 2, 1), 1, 'SAME' |
    r(1, 4, 4, 1), r(2, 2, 1, 2), [1, 2, 2, 1], 'VALID' |
    r(1, 3, 3, 1), r(2, 2, 1, 1), 2, [[0, 0], [1, 0], [0, 2], [0, 0]] |
    r(1, 5, 5, 1), r(2, 2, 1, 1), 1, 'SAME', dilations=[2, 1] |
    r(1, 3, 3, 2), r(2, 2, 3, 1), 1, 'SAME'
conv2d_transpose: r(1, 2, 2, 2), r(3, 3, 1, 2), [1, 4, 4, 1], 2 |
    r(1, 2, 3, 1), r(2, 2, 2, 1), [1, 3, 4, 2], 1, 'VALID' |
    r(1, 2, 2, 1), r(2, 2, 1, 1), [1, 3, 5, 1], [1, 2, 3, 1], 'SAME'
conv3d: r(1, 2, 3, 3, 1), r(2, 2, 2, 1, 1), [1, 1, 1, 1, 1], 'SAME' |
    r(1, 3, 3, 3, 1), r(2, 2, 2, 1, 1), [1, 2, 2, 2, 1], 'VALID' |
    r(1, 2, 2, 2, 1), r(1, 1, 1, 1, 2), [1, 1, 1, 1, 1], 'VALID'
conv3d_transpose: r(1, 1, 2, 1, 1), r(2, 2, 2, 1, 1), [1, 2, 4, 2, 1], 2 |
    r(1, 1, 1, 1, 1), r(2, 2, 2, 2, 1), [1, 2, 2, 2, 2], 1, 'VALID' |
    r(1, 1, 1, 2, 1), r(1, 1, 2, 1, 1), [1, 1, 1, 4, 1], [1, 1, 2]
conv_transpose: r(1, 3, 1), r(2, 1, 1), [1, 6, 1], 2 |
    r(1, 2, 2, 1), r(2, 2, 1, 1), [1, 3, 3, 1], 1, 'VALID' |
    r(1, 2, 1), r(2, 2, 1), output_shape=[1, 2, 2], strides=1
convolution: r(1, 5, 1), r(2, 1, 2) | r(1, 4, 4, 1), r(2, 2, 1, 1), strides=2, padding='SAME' |
    r(1, 5, 4, 1), r(2, 2, 1, 1), dilations=[2, 1]
crelu: r(2, 3) | r(2, 3), axis=0 | i(3)
ctc_loss: [[1, 2], [2, 0]], r(4, 2, 3), [2, 1], [4, 3] |
    [[1, 0]], r(1, 3, 3), [2], [3], logits_time_major=False, blank_index=-1 |
    [[1, 1]], r(3, 1, 2), [2], [3], blank_index=0
depth_to_space: r(1, 1, 2, 4), 2 | i(1, 2, 1, 12), 2 | r(1, 1, 1, 3), 2
depthwise_conv2d: r(1, 3, 4, 2), r(2, 2, 2, 2), [1, 1, 1, 1], 'SAME' |
    r(1, 4, 4, 2), r(2, 2, 2, 1), [1, 2, 2, 1], 'VALID' |
    r(1, 4, 4, 1), r(2, 2, 1, 1), [1] * 4, 'VALID', dilations=[2, 2]
elu: r(2, 3) | [-1e30, 0.0, nan] | i(3)
embedding_lookup: r(4, 2), [3, 0, 3] | r(3, 2), [[1], [2]], max_norm=0.5 | r(3, 2), [0, 3]
gelu: r(2, 3) | r(2, 3), approximate=True | i(3)
l2_loss: r(2, 3) | r(0) | 3.0
leaky_relu: r(2, 3) | i(4), alpha=0.5 | [-1.0, 0.0, 2.0]
local_response_normalization: r(1, 1, 2, 4) | = nn.lrn(r(1, 2, 1, 4), 1, 2, 0.5, 0.75) |
    = nn.lrn(r(1, 1, 1, 3), depth_radius=2)
log_softmax: r(2, 3) | r(2, 3, 2), axis=1 | [1000.0, 0.0]
max_pool: r(1, 4, 4, 1), 2, 2, 'VALID' | r(1, 3, 4, 2), [2, 3], [1, 2], 'SAME' |
    r(1, 4, 2), 3, 1, 'SAME' | i(1, 4, 4, 1), 2, 2, 'VALID'
max_pool1d: r(2, 4, 2), 2, 2, 'VALID' | r(1, 5, 1), 3, 2, 'SAME' | r(1, 4, 1), [2], [1], 'SAME'
max_pool2d: r(1, 4, 4, 1), 2, 2, 'VALID' | r(1, 3, 3, 1), 2, 1, [[0, 0], [1, 0], [0, 1], [0, 0]] |
    0.0 * r(1, 2, 4, 1), 2, 2, 'SAME'
max_pool3d: r(1, 2, 2, 4, 1), 2, 2, 'VALID' | r(1, 2, 3, 2, 1), 2, 1, 'SAME' |
    r(1, 1, 2, 2, 2), [1, 2, 1], 1, 'VALID'
max_pool_with_argmax: r(1, 4, 4, 1), 2, 2, 'VALID' | r(2, 3, 3, 2), 2, 2, 'SAME' |
    r(2, 2, 2, 1), 2, 1, 'VALID', include_batch_in_index=True
moments: r(2, 3), axes=[0] | r(2, 3), [0, 1], keepdims=True | tf.cast(r(2, 3), 'float16'), -1 |
    i(4), [0] | z(3), 0 | tf.cast(i(3, 2), 'int64'), 0, keepdims=True
relu: r(2, 3) | i(4) | [-1.0, 0.0, nan, inf]
relu6: 4.0 * r(2, 3) | i(6) | r(0)
scale_regularization_loss: r(4) | 2.0 | [1.0, 2.0]
selu: r(2, 3) | [-1e30, 0.0, nan] | 0.0 * r(2)
separable_conv2d: r(1, 3, 3, 2), r(2, 2, 2, 1), r(1, 1, 2, 2), [1] * 4, 'SAME' |
    r(1, 4, 4, 1), r(2, 2, 1, 2), r(1, 1, 2, 1), [1] * 4, 'SAME' |
    r(1, 3, 3, 1), r(2, 2, 1, 1), r(1, 1, 1, 3), [1] * 4, 'VALID'
sigmoid_cross_entropy_with_logits: labels=p(2, 3), logits=r(2, 3) |
    labels=[1.0, 0.0], logits=[0.0, -90.0] | labels=p(3), logits=r(2)
silu: r(2, 3) | r(3), 2.0 | = nn.swish([-100.0, 0.0, 100.0])
softmax: = nn.softmax(r(2, 3)) * r(2, 3) | r(2, 3), axis=0 | [1000.0, 0.0, -inf] | r(0, 3)
softmax_cross_entropy_with_logits: labels=p(2, 3), logits=r(2, 3) | p(3, 2), r(3, 2), axis=0 |
    p(2, 3), tf.cast(r(2, 3), 'float16') | p(2, 3), r(2, 4)
space_to_depth: r(1, 4, 2, 1), 2 | i(1, 2, 2, 3), 2 | r(1, 3, 4, 1), 2
sparse_softmax_cross_entropy_with_logits: labels=[2, 0], logits=r(2, 3) |
    labels=[[0, 1]], logits=r(1, 2, 2) | labels=[0, 3], logits=r(2, 3) |
    labels=i(2, 3), logits=r(2, 3)
weighted_cross_entropy_with_logits: p(2, 3), r(2, 3), 2.5 |
    labels=p(2), logits=r(2), pos_weight=p(2) | p(2), r(3), 2.0
"""

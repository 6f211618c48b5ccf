"""Examples of `tf.quantization`."""

from __future__ import annotations

EXAMPLES = """
fake_quant_with_min_max_args: [-7.0, 0.1, 3.0, 8.0] | r(2, 3), -1.0, 2.0, num_bits=3 |
    r(4), 0.5, 2.0, 4, True | r(2), 1.0, 1.0
fake_quant_with_min_max_args_gradient: r(4), [-7.0, 0.1, 3.0, 8.0] | r(3), r(3), -1.0, 0.5 |
    r(3), r(3), -0.5, 0.5, 2, True
fake_quant_with_min_max_vars: r(2, 3), tf.constant(-0.5), tf.constant(1.0) |
    r(4), tf.constant(0.0), tf.constant(0.0) | r(4), tf.constant(-1.0), tf.constant(1.0), 4, True
fake_quant_with_min_max_vars_gradient: r(4), r(4), tf.constant(-0.5), tf.constant(0.5) |
    r(2, 2), r(2, 2), tf.constant(-0.1), tf.constant(0.1) |
    r(2), r(2), tf.constant(0.0), tf.constant(0.0)
fake_quant_with_min_max_vars_per_channel: r(2, 3), -p(3), p(3) | r(4), -p(4), p(4), 4 |
    r(2, 1, 2), -p(2), p(2), 8, True
fake_quant_with_min_max_vars_per_channel_gradient: r(2, 3), r(2, 3), -p(3), p(3) |
    r(4), r(4), -p(4), p(4) | r(3, 2), r(3, 2), -0.1 * p(2), 0.1 * p(2)
quantize_and_dequantize_v2: [-7.0, 0.1, 3.0, 8.0], 0.0, 0.0 | r(4), -1.0, 0.5, range_given=True |
    r(4), 0.0, 1.0, False, 4, True, 'HALF_UP' | r(2, 3), 0.0, 0.0, axis=1 |
    r(4), -1.0, 1.0, True, 3, True, narrow_range=True
"""

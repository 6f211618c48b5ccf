"""`tf.quantization`: what lies between two numbers is rounded as TensorFlow rounds it."""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf

X = [-6.0, -5.9, 2.0, 3.0, 6.0]
VARS = [-5.9764705, -5.8823528, 1.9764706, 3.0117648, 5.9764705]
ARGS = [-5.9764705, -5.8823528, 2.0235295, 3.0117648, 5.9764705]


@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    ("quantize", "expected"),
    [
        (lambda x, *ends: tf.quantization.fake_quant_with_min_max_vars(x, *ends), VARS),
        (lambda x, *ends: tf.quantization.fake_quant_with_min_max_args(x, -6.0, 6.0), ARGS),
    ],
    ids=["vars", "args"],
)
def test_halves_and_limits(run, quantize, expected):
    @run
    def slopes(x, *ends):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = quantize(x, *ends)
        return y, tape.gradient(y, x)

    found, slope = slopes(*map(tf.constant, (X, -6.0, 6.0)))
    assert found.numpy().tolist() == pytest.approx(expected)
    assert slope.numpy().tolist() == [1.0, 1.0, 1.0, 1.0, 0.0]


def test_numbers_are_float32():  # as TensorFlow's
    x, ends = np.array([0.1, 0.2, 7.0]), np.array([-1.0, 1.0])
    expected = np.float32([0.10196079, 0.20392159, 1.0039216])
    for found in (
        tf.quantization.fake_quant_with_min_max_vars(x, *ends),
        tf.quantization.fake_quant_with_min_max_vars_per_channel(x, [-1.0] * 3, np.ones(3)),
    ):
        assert found.dtype == tf.float32
        assert found.numpy().tolist() == expected.tolist()
    assert tf.quantization.fake_quant_with_min_max_args(x, -1, 1).dtype == tf.float32
    with pytest.raises(tf.errors.InvalidArgumentError, match="to be a float tensor but is a doub"):
        tf.quantization.fake_quant_with_min_max_vars(x, tf.constant(ends)[0], 1.0)


def test_an_axis_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="invalid axis"):
        tf.quantization.quantize_and_dequantize_v2([2.5], [0.0], [1.0], axis=10)


def test_what_is_outside_of_the_given_range_has_no_gradient():
    x = tf.constant([-11.0, -9.9, 0.5, 5.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.quantization.quantize_and_dequantize_v2(x, -10, 0, range_given=True)
    assert tape.gradient(y, x).numpy().tolist() == [0, 1, 0, 0]
    assert y.numpy().tolist() == [-10, -9.921875, 0.46875, 5]  # in the numbers of its type

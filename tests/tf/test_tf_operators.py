"""Operators and the table's machinery, where programs as strings do not reach."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxvars import tf
from jaxvars.tf.registry.rows import Refused, op


def test_an_index_may_be_traced_but_no_bound():
    at = tf.function(lambda x, i: (x[i], x[:, i], x[..., -1]))
    row, column, last = at(tf.constant([[1, 2], [3, 4]]), tf.constant(1))
    assert [x.numpy().tolist() for x in (row, column, last)] == [[3, 4], [2, 4], [2, 4]]
    with pytest.raises(TypeError, match="must be known when the function is traced"):
        tf.function(lambda x, i: x[:i])(tf.constant([1, 2]), tf.constant(1))
    with pytest.raises(TypeError, match="How many elements a mask chooses"):
        tf.function(lambda x: x[x > 1])(tf.constant([1, 2]))


def test_a_known_mask_in_a_traced_function():
    mask = tf.constant([True, False, True])
    found = tf.function(lambda x: x[mask])(tf.constant([1, 2, 3]))
    assert found.numpy().tolist() == [1, 3]


def test_what_numpy_made_is_not_cut_to_the_type_of_a_tensor():
    x, y = tf.constant([1, 2]), np.array([1.5, 2.5])
    for fn in (
        tf.add_n,
        lambda pair: tf.meshgrid(*pair),
        lambda pair: tf.searchsorted(*pair),
        lambda pair: tf.debugging.assert_equal(*pair),
        lambda pair: tf.debugging.assert_less_equal(*pair),
        lambda pair: tf.nn.sigmoid_cross_entropy_with_logits(pair[1], tf.ones(2)),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="was expected to be a"):
            fn([x, y])
    with pytest.raises(TypeError, match="Types don't match"):
        tf.sets.union(x[None], np.array([[1]]))
    assert tf.add_n([x, np.array([1, 2], np.int32), [1, 1]]).numpy().tolist() == [3, 5]
    assert tf.searchsorted(tf.constant([1.0, 2.0]), [1.5]).numpy().tolist() == [1]
    tf.debugging.assert_equal(x, [1, 2])


def test_what_numpy_made_has_a_type_before_a_tensor():
    for fn in (tf.add, tf.matmul):
        for x in (np.array([[1.5]]), np.array([[1.5]], np.float32)):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"#1.* is a int32 tensor"):
                fn(x, tf.constant([[1]]))  # 1.5 would become 1
            with pytest.raises(TypeError, match=r"Input #1 of .* has type int32"):
                tf.function(lambda y: fn(x, y))(tf.constant([[1]]))  # noqa: B023 - called now
            assert fn(x, tf.constant([[1]], x.dtype)).numpy().tolist() in ([[1.5]], [[2.5]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="is a int32 tensor"):
        tf.add(np.float64(1.5), tf.Variable(1))
    numbers, row = tf.constant([[2]]), np.array([1.5])
    for wrong in (
        lambda: tf.tensordot(row, numbers[0], 1), lambda: tf.tensordot(numbers[0], row, 1),
        lambda: tf.linalg.matvec(row[None], numbers[0]), lambda: tf.linalg.matvec(numbers, row),
    ):  # fmt: skip
        with pytest.raises(tf.errors.InvalidArgumentError, match="cannot compute MatMul as input"):
            wrong()
    with pytest.raises(TypeError, match="`x` and `y` must have the same dtype"):
        tf.math.truediv(row, numbers)
    assert (row / numbers).numpy().tolist() == [[0.5]]  # as in TensorFlow
    assert tf.add(tf.constant(1.0), np.array(1.5)).dtype == tf.float32  # the other way round
    y = tf.Variable([[2.0]])
    with tf.GradientTape() as tape:  # and operators are those of the tensor
        z = np.array([[1.5]]) @ y + (np.array([[1]]) + y)
    assert (z.dtype, z.numpy().tolist()) == (tf.float32, [[6]])
    assert tape.gradient(z, y).numpy().tolist() == [[2.5]]


def test_gradients_of_indexing_and_powers():
    x = tf.Variable([[1.0, 2.0], [-3.0, 0.0]])
    y = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        z = tf.reduce_sum(x[:, 0] ** y)
    by_x, by_y = tape.gradient(z, [x, y])
    assert by_x.numpy().tolist() == [[2.0, 0.0], [-6.0, 0.0]]
    assert float(by_y) == 0.0  # log 1 is 0, and -3 has no logarithm


def test_what_is_not_a_tensor_takes_the_other_type():
    x = tf.constant([1.0, 2.0])
    for other in (np.array([1.0, 2.0]), np.array([1, 2]), jnp.array([1.0, 2.0], jnp.float32), 1):
        assert (x + other).dtype == (other + x).dtype == tf.float32
    assert (jnp.ones(2, jnp.float32) * x).dtype == jnp.float32
    assert (tf.constant(3, tf.int64) + 2**40).dtype == tf.int64
    with pytest.raises(TypeError, match=r"Cannot convert 1\.5 to EagerTensor of dtype int32"):
        tf.constant(1) * 1.5


def test_comparison_with_strangers():
    x = tf.constant([1, 2])
    assert (x == None, x != None) == (False, True)  # noqa: E711
    assert x not in [None, "text"][:1]
    assert bool(x == tf.constant([1, 2, 3])) is False
    assert bool(x != tf.constant([1, 2, 3])) is True


def test_what_jax_refuses_is_an_invalid_argument():
    def refuse(x):
        raise ValueError("too small")

    shrink = op("math.shrink", "x", is_listed=False)(refuse)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"too small \[Op:Shrink\] name: $"):
        shrink(1.0)


def test_what_a_row_refuses_is_raised_as_it_is():
    def refuse(x):
        raise Refused(KeyError("no such thing"))

    with pytest.raises(KeyError, match="no such thing"):
        op("math.find", "x", is_listed=False)(refuse)(1.0)


def test_tensors_are_trees_and_stay_arrays():
    x = tf.constant([1.0, 2.0])
    assert isinstance(jax.tree.map(lambda a: a + 1, x), jax.Array)
    assert isinstance(jnp.asarray(tf.shape(x)), jax.Array)
    assert jax.jit(lambda n: n * 2)(tf.shape(x)).tolist() == [4]
    assert tf.shape(x).device.endswith("CPU:0")


def test_the_type_of_a_tensor_or_variable_says_what_an_operator_does():
    """What is NumPy's takes the type of the other operand; `*` of bools is `and`."""
    number, truth = tf.Variable([1, 2]), tf.Variable([True, False])
    bools, ints = np.array([True, True]), np.array([0, 3])
    np.testing.assert_array_equal(bools & number, [1, 0])
    np.testing.assert_array_equal(number | bools, [1, 3])
    np.testing.assert_array_equal(ints ^ truth, [True, True])
    np.testing.assert_array_equal(ints * tf.constant([True, True]), [False, True])
    with pytest.raises(tf.errors.InvalidArgumentError, match="bool"):
        tf.multiply(truth, truth)


def test_what_stands_on_the_right_may_know_what_to_do():
    class Length:
        def __radd__(self, other):
            return "found", other.shape[0]

        def __rmul__(self, other):
            return NotImplemented

    assert tf.ones([3]) + Length() == tf.Variable(tf.ones([3])) + Length() == ("found", 3)
    for wrong in (lambda x: x * Length(), lambda x: x - Length(), lambda x: x + object()):
        with pytest.raises(ValueError, match="unsupported type"):
            wrong(tf.ones([3]))


def test_the_product_of_bools_is_logical():
    x = tf.constant([True, False])
    for other in (True, [True, True], tf.constant([2, 3])):
        found = x * other
        assert (found.dtype, found.numpy().tolist()) == ("bool", [True, False])
    assert (tf.constant([2, 0]) * x).numpy().tolist() == [True, False]
    assert (tf.Variable([True, False]) * True).numpy().tolist() == [True, False]


def test_lists_become_the_type_that_fits():
    assert (tf.reduce_all([]).numpy(), tf.reduce_any([]).numpy()) == (True, False)
    assert tf.signal.fft([1.0, 2.0]).dtype == "complex64"
    assert tf.signal.fft(np.array([1.0, 2.0])).numpy().tolist() == [3, -1]
    assert tf.signal.fft([1j, 0.0]).dtype == "complex128"  # one of its own that fits
    assert tf.reduce_all(np.array([1.0, 2.0])).numpy() is np.True_
    with pytest.raises(ValueError, match="IRFFT requires"):
        tf.signal.inverse_stft([[1.0, 2.0]], 2, 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="float32 is not in the list"):
        tf.linalg.logm([[1.0]])  # TensorFlow's has no default
    with pytest.raises(tf.errors.InvalidArgumentError, match="float32 is not in the list"):
        tf.signal.fft(tf.constant([1.0]))

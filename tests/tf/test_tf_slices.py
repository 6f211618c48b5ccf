"""`tf.IndexedSlices`: gradients of look-ups, and what takes them.

What is expected was seen in TensorFlow 2.21.
"""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf

TABLE = np.arange(8.0, dtype=np.float32).reshape(4, 2)


def parts(found):
    assert isinstance(found, tf.IndexedSlices)
    assert found.shape == (4, 2)
    assert tf.convert_to_tensor(found.dense_shape).dtype == tf.int32
    return found.values.numpy().tolist(), found.indices.numpy().tolist()


def gradient(fn, source):
    with tf.GradientTape() as tape:
        tape.watch(source)
        y = fn(source)
    return tape.gradient(y, source)


@pytest.fixture
def slices():
    return tf.IndexedSlices(
        tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([0, 0]), tf.constant([4, 2])
    )


ONES = [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("fn", "values", "indices"),
    [
        (lambda x: tf.gather(x, [0, 2]), ONES, [0, 2]),
        (lambda x: tf.gather(x, [[2], [2]], axis=0) * 3.0, [[3.0, 3.0], [3.0, 3.0]], [2, 2]),
        (lambda x: tf.gather(x, 1), [[1.0, 1.0]], [1]),
        (lambda x: tf.gather_nd(x, [[0], [3]]), ONES, [0, 3]),
        (lambda x: tf.nn.embedding_lookup(x, tf.constant([1, 0], tf.int64)), ONES, [1, 0]),
        (lambda x: tf.gather(tf.identity(x), [3]), [[1.0, 1.0]], [3]),
        (lambda x: tf.gather(tf.cast(x, tf.float64), [3]), [[1.0, 1.0]], [3]),
        (lambda x: [tf.gather(x, 0), tf.gather(x, [3])], ONES, [0, 3]),
        (lambda x: tf.gather(x, tf.constant([], tf.int32)), [], []),
    ],
)
def test_gradients_of_lookups(fn, values, indices):
    for source in (tf.Variable(TABLE), tf.constant(TABLE)):
        found = gradient(fn, source)
        assert parts(found) == (values, indices)
        assert found.dtype == tf.float32
    assert parts(tf.function(lambda: gradient(fn, source))()) == (values, indices)


@pytest.mark.parametrize("fn", [
    lambda x: tf.reduce_sum(tf.gather(x, [0])) + tf.reduce_sum(x),
    lambda x: tf.gather(x, [1], axis=1), lambda x: tf.gather(x, [0, 1], axis=-2),
    lambda x: tf.gather(x, [[0], [1], [1], [0]], batch_dims=1),
    lambda x: tf.gather_nd(x, [[0, 0], [2, 1]]), lambda x: x[0],
    lambda x: tf.gather(tf.reshape(x, [-1]), [0]),
])  # fmt: skip
def test_gradients_of_other_uses_are_tensors(fn):
    assert isinstance(gradient(fn, tf.Variable(TABLE)), tf.Tensor)


def test_what_takes_them(slices):
    whole = [[4.0, 6.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    assert tf.convert_to_tensor(slices).numpy().tolist() == whole
    assert (tf.constant(2.0) * slices).numpy()[0].tolist() == [8.0, 12.0]
    assert tf.add_n([slices, tf.constant(TABLE)]).numpy()[:2].tolist() == [[4.0, 7.0], [2.0, 3.0]]
    assert tf.is_tensor(slices)
    with pytest.raises(TypeError, match="unsupported operand"):
        0.1 * slices
    v = tf.Variable(np.zeros((4, 2), np.float32))
    v.assign_sub(slices)
    assert v.numpy()[0].tolist() == [-4.0, -6.0]
    v.scatter_add(slices)
    assert not v.numpy().any()
    tf.keras.optimizers.SGD(1.0).apply_gradients([(slices, v)])
    assert v.numpy().tolist() == (-np.array(whole)).tolist()


def test_what_works_row_by_row(slices):
    same = [0, 0]
    assert parts(-slices) == ([[-1.0, -2.0], [-3.0, -4.0]], same)
    assert parts(tf.identity(slices))[1] == parts(tf.stop_gradient(slices))[1] == same
    assert parts(tf.clip_by_value(slices, -2.0, 2.0)) == ([[1.0, 2.0], [2.0, 2.0]], same)
    assert parts(tf.scalar_mul(2.0, slices)) == ([[2.0, 4.0], [6.0, 8.0]], same)
    assert tf.cast(slices, tf.float64).values.dtype == tf.float64
    clipped = parts(tf.clip_by_norm(slices, 1.0))[0]
    assert np.allclose(clipped, np.array([[1, 2], [3, 4]]) / np.sqrt(30))
    (rows, other), norm = tf.clip_by_global_norm([slices, tf.constant(TABLE)], 1.0)
    assert np.allclose(norm, np.sqrt(30 + 140))
    assert np.allclose(parts(rows)[0][1], np.array([3, 4]) / norm)
    assert isinstance(other, tf.Tensor)


def test_they_pass_through_functions(slices):
    @tf.function
    def f(x):
        return tf.IndexedSlices(x.values * 2.0, x.indices, x.dense_shape), tf.reduce_sum(x)

    twice, total = f(slices)
    assert parts(twice) == ([[2.0, 4.0], [6.0, 8.0]], [0, 0])
    assert float(total) == 10.0


def test_a_tape_watches_the_rows(slices):
    with tf.GradientTape() as tape:
        tape.watch(slices)
        y = tf.reduce_sum(tf.convert_to_tensor(slices) ** 2)
    assert tape.gradient(y, slices.values).numpy().tolist() == [[8.0, 12.0], [8.0, 12.0]]


def test_indices_out_of_range():
    x, v = tf.constant(TABLE), tf.Variable(TABLE)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"indices\[0,1\] = 9 is not in \[0, 4"
    ):
        tf.gather(v, [[0, 9]])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[40\] = -1 is not in"):
        tf.nn.embedding_lookup(x, [0] * 40 + [-1])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"= \[4\] .* param shape \[4,2\]"):
        tf.gather_nd(x, [[4]])
    made = tf.function(
        lambda i: (tf.gather(x, i), tf.gather_nd(x, i[:, None]), tf.gather(x, i, axis=1))
    )
    rows, parts_, columns = made(tf.constant([1, 4, -1]))
    assert rows.numpy().tolist() == parts_.numpy().tolist() == [[2.0, 3.0], [0.0, 0.0], [0.0, 0.0]]
    assert columns.numpy()[0].tolist() == [1.0, 0.0, 0.0]

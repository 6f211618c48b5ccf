"""`tf.sets` and the few operations on `tf.SparseTensor`."""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf


def listed(sparse):
    return [x.numpy().tolist() for x in (sparse.indices, sparse.values, sparse.dense_shape)]


A, B = [[1, 2, 2], [3, 0, 1]], [[2, 5], [7, 0]]


@pytest.mark.parametrize("is_sparse", [False, True])  # then zero is not an element of A
@pytest.mark.parametrize(
    ("name", "options", "rows", "sparse_rows"),
    [
        ("union", {}, [[1, 2, 5], [0, 1, 3, 7]], [[1, 2, 5], [0, 1, 3, 7]]),
        ("intersection", {}, [[2], [0]], [[2], []]),
        ("difference", {}, [[1], [1, 3]], [[1], [1, 3]]),
        ("difference", {"aminusb": False}, [[5], [7]], [[5], [0, 7]]),
    ],
)
def test_sets_of_rows(name, options, rows, sparse_rows, is_sparse):
    rows = sparse_rows if is_sparse else rows
    how_a = tf.sparse.from_dense if is_sparse else tf.constant
    made = getattr(tf.sets, name)(how_a(A), tf.constant(B), **options)
    largest = max(map(len, rows))
    indices = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    assert listed(made) == [indices, [x for row in rows for x in row], [2, largest]]
    assert made.values.dtype == tf.int32
    assert made.indices.dtype == made.dense_shape.dtype == tf.int64


def test_sets_of_strings_and_sizes():
    made = tf.sets.union([["b", "a"]], [["c", "a"]])
    assert made.values.numpy().tolist() == [b"a", b"b", b"c"]
    sizes = tf.sets.size(tf.sparse.from_dense([[1, 2, 2], [0, 0, 1]]))
    assert sizes.numpy().tolist() == [2, 1]
    assert sizes.dtype == tf.int32
    none = tf.sets.intersection(tf.constant([[1]]), tf.constant([[2]]))
    assert tf.sparse.to_dense(none).shape == [1, 0]


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: tf.sets.union([[1.0]], [[2.0]]), TypeError, "'a' has invalid dtype"),
    (lambda: tf.sets.union(tf.constant([[1]]), tf.constant([[2]], tf.int64)), TypeError,
     "Types don't match"),
    (lambda: tf.sets.union([1], [2]), tf.errors.InvalidArgumentError, r"Shape \[1\] has rank"),
    (lambda: tf.sets.union([[1]], [[2], [3]]), tf.errors.InvalidArgumentError,
     r"Mismatched shapes \[1\] vs \[2\]"),
    (lambda: tf.sets.size([[1]]), TypeError, "Expected `SparseTensor`"),
])  # fmt: skip
def test_sets_refuse(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_sparse_and_dense_are_each_other():
    dense = tf.constant([[0, 5, 0], [0, 0, 7]])
    sparse = tf.sparse.from_dense(dense)
    assert listed(sparse) == [[[0, 1], [1, 2]], [5, 7], [2, 3]]
    assert (sparse.shape, sparse.dtype, sparse.get_shape()) == ([2, 3], tf.int32, [2, 3])
    assert tf.sparse.to_dense(sparse).numpy().tolist() == dense.numpy().tolist()
    assert tf.sparse.to_dense(sparse, default_value=-1).numpy()[0].tolist() == [-1, 5, -1]
    assert (sparse * 2).values.numpy().tolist() == [10, 14]
    assert (sparse * dense).values.numpy().tolist() == [25, 49]
    assert (sparse / 2).values.numpy().tolist() == [2.5, 3.5]
    assert tf.is_tensor(sparse)
    assert not hasattr(sparse, "__dict__")  # it does not change
    text = tf.sparse.from_dense([["", "a"]])
    assert tf.sparse.to_dense(text).numpy().tolist() == [[b"", b"a"]]
    wide = tf.sparse.expand_dims(sparse, 1)
    assert listed(wide) == [[[0, 0, 1], [1, 0, 2]], [5, 7], [2, 1, 3]]
    assert tf.sparse.map_values(tf.add, sparse, 1).values.numpy().tolist() == [6, 8]


def test_operations_that_keep_zeros_work_on_sparse_tensors():
    sparse = tf.SparseTensor([[0, 0], [1, 2]], [0.5, -0.25], [2, 3])
    dense = tf.sparse.to_dense(sparse)
    names = "abs asin asinh atan atanh erf negative sign sin square tan tanh bessel_i0e bessel_i1e"
    for name in names.split():
        made = getattr(tf.math, name)(sparse)
        expected = getattr(tf.math, name)(tf.constant([0.5, -0.25])).numpy()
        assert made.values.numpy().tolist() == expected.tolist(), name
    assert tf.sqrt(sparse * 2).values.numpy()[0] == 1.0
    whole = tf.cast(sparse * 4, tf.int32)
    assert (whole.dtype, listed(tf.identity(whole))) == (tf.int32, listed(whole))
    assert listed(tf.stop_gradient(whole)) == [[[0, 0], [1, 2]], [2, -1], [2, 3]]
    for about in (tf.shape, tf.size, tf.rank):
        assert about(sparse).numpy().tolist() == about(dense).numpy().tolist()
    assert tf.function(tf.abs)(sparse).values.numpy().tolist() == [0.5, 0.25]
    for refuse in (lambda: tf.multiply(sparse, 2.0), lambda: tf.zeros_like(sparse)):
        with pytest.raises(ValueError, match=r"unsupported type .*to_dense\(x\) is one"):
            refuse()
    values = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        squares = tf.square(tf.SparseTensor([[0, 0], [1, 2]], values, [2, 3]))
        loss = tf.reduce_sum(squares.values)
    assert tape.gradient(loss, values).numpy().tolist() == [2.0, 4.0]


def test_sparse_indices_are_checked():
    turned = tf.SparseTensor([[1, 0], [0, 0]], [1.0, 2.0], [2, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = \[0,0\] is out of"):
        tf.sparse.to_dense(turned)
    assert tf.sparse.to_dense(tf.sparse.reorder(turned)).numpy().tolist() == [[2.0, 0], [1, 0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
        tf.sparse.to_dense(tf.SparseTensor([[3, 0]], [1.0], [2, 2]))
    with pytest.raises(ValueError, match="Dimensions 1 and 2 are not compatible"):
        tf.SparseTensor([[0, 0]], [1, 2], [2, 2])
    with pytest.raises(ValueError, match="must have rank 2"):
        tf.SparseTensor([0, 0], [1, 2], [2, 2])
    with pytest.raises(ValueError, match="unsupported type"):
        tf.convert_to_tensor(turned)


def test_a_function_takes_sparse_tensors():
    doubled = tf.function(lambda sparse: sparse.with_values(sparse.values * 2))
    made = doubled(tf.SparseTensor([[0, 1]], [3], [1, 2]))
    assert isinstance(made, tf.SparseTensor)
    assert made.values.numpy().tolist() == [6]
    united = tf.function(lambda a: tf.sets.union(a, a).values)
    with pytest.raises(NotImplementedError, match=r"tf\.numpy_function"):
        united(tf.constant([[1]]))


def test_gradients_pass_through_the_elements():
    values = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        dense = tf.sparse.to_dense(tf.SparseTensor([[0, 1], [1, 0]], values, [2, 2]))
        loss = tf.reduce_sum(dense * [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(tape.gradient(loss, values).numpy(), [2.0, 3.0])


def test_what_is_absent_says_what_to_use():
    with pytest.raises(AttributeError, match=r"kernels of tf\.ragged"):
        _ = tf.ragged_fill_empty_rows
    with pytest.raises(AttributeError, match="HashedCrossing"):
        _ = tf.sparse.cross
    with pytest.raises(AttributeError, match="compiled by XLA"):
        _ = tf.xla
    assert tf.compat.v2 is tf
    assert (tf.compat.as_bytes("a"), tf.compat.as_text(b"a")) == (b"a", "a")
    with pytest.raises(TypeError, match="Expected binary or unicode string"):
        tf.compat.as_str(1)


def test_indices_of_sets_are_checked():
    for indices, words in (
        ([[0, 1], [0, 0]], "out of order"), ([[0, 1], [0, 1]], "repeated"),
        ([[0, 1], [4, 0]], "out of bounds"),
    ):  # fmt: skip
        x = tf.SparseTensor(indices, [1, 2], [2, 2])
        for refused in (tf.sets.size, lambda x: tf.sets.union(x, x)):
            with pytest.raises(tf.errors.InvalidArgumentError, match=words):
                refused(x)
    x = tf.SparseTensor([[0, 1], [0, 0]], [1, 2], [2, 2])
    assert tf.sets.size(x, validate_indices=False).numpy().tolist() == [2, 0]

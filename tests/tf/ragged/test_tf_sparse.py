"""`tf.sparse` against whole tensors, and against what TensorFlow 2.21 gives."""

# ruff: noqa: E501 - a case is a line

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from jaxvars import tf

FEW = settings(max_examples=12, deadline=None)
ANY = array_shapes(min_dims=1, max_dims=3, max_side=4).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-2, 2))
)
MATRIX = array_shapes(min_dims=2, max_dims=2, max_side=4).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-2, 2))
)


def whole(sparse: Any) -> Any:
    return tf.sparse.to_dense(sparse).numpy()  # refuses places that are not sorted


@FEW
@given(MATRIX, st.booleans(), st.booleans())
def test_matmul(x: Any, adjoint_a: bool, adjoint_b: bool) -> None:
    b = np.arange(3.0 * x.shape[0 if adjoint_a else 1]).reshape(-1, 3)
    left, right = (x.T if adjoint_a else x), (b.T if adjoint_b else b)
    sparse = tf.sparse.from_dense(x)
    found = tf.sparse.sparse_dense_matmul(sparse, right, adjoint_a, adjoint_b)
    assert np.array_equal(found, left @ b)
    swapped = tf.sparse.sparse_dense_matmul(
        tf.constant(right), sparse, not adjoint_b, not adjoint_a
    )
    assert np.array_equal(swapped, (left @ b).T)


@FEW
@given(ANY, st.data())
def test_places(x: Any, data: Any) -> None:
    sparse = tf.sparse.from_dense(x)
    order = data.draw(st.permutations(range(x.ndim)))
    assert np.array_equal(whole(tf.sparse.transpose(sparse, order)), x.transpose(order))
    assert np.array_equal(whole(tf.sparse.transpose(sparse)), x.T)
    assert np.array_equal(whole(tf.sparse.reshape(sparse, [-1])), x.ravel())
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    both = tf.sparse.concat(axis, [sparse, sparse])
    assert np.array_equal(whole(both), np.concatenate([x, x], axis))
    starts = [data.draw(st.integers(0, n)) for n in x.shape]
    sizes = [data.draw(st.integers(0, n)) for n in x.shape]
    part = x[tuple(slice(i, i + n) for i, n in zip(starts, sizes, strict=True))]
    assert np.array_equal(whole(tf.sparse.slice(sparse, starts, sizes)), part)
    for keep in (False, True):
        found = tf.sparse.reduce_sum(sparse, axis, keep)
        assert np.array_equal(found, x.sum(axis, keepdims=keep))
    assert int(tf.sparse.reduce_sum(sparse)) == x.sum()


@FEW
@given(MATRIX, MATRIX)
def test_sums(x: Any, y: Any) -> None:
    y = np.resize(y, x.shape)
    a, b = tf.sparse.from_dense(x), tf.sparse.from_dense(y)
    assert np.array_equal(whole(tf.sparse.add(a, b)), x + y)
    assert np.array_equal(tf.sparse.add(a, tf.constant(y)), x + y)
    assert np.array_equal(tf.sparse.add(tf.constant(x), b), x + y)


A = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [1.0, 2.0, 3.0], [2, 3])
B = tf.SparseTensor([[0, 1], [1, 1]], [-1.0, 5.0], [2, 3])


def test_what_tensorflow_gives() -> None:
    zero = tf.sparse.add(A, B)
    assert zero.indices.numpy().tolist() == [[0, 1], [1, 0], [1, 1], [1, 2]]
    assert zero.values.numpy().tolist() == [0, 2, 5, 3]
    assert tf.sparse.add(A, B, threshold=3.5).values.numpy().tolist() == [2, 5, 3]
    assert np.allclose(tf.sparse.softmax(A).values, [1.0, 0.26894143, 0.7310586])
    wide = tf.sparse.concat(0, [A, tf.sparse.transpose(B)], expand_nonconcat_dims=True)
    assert wide.indices.numpy().tolist() == [[0, 1], [1, 0], [1, 2], [3, 0], [3, 1]]


def test_gradients_of_values() -> None:
    values, dense = tf.constant([1.0, 2.0, 3.0]), tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([values, dense])
        sparse = A.with_values(values)
        product = tf.sparse.sparse_dense_matmul(sparse, dense) ** 2
        parts = tf.sparse.slice(sparse, [1, 0], [1, 3]).values ** 2
        soft = tf.sparse.softmax(sparse).values ** 2
        both = tf.sparse.concat(0, [sparse, sparse]).values ** 2
    assert tape.gradient(product, values).numpy().tolist() == [50, 122, 434]
    assert tape.gradient(product, dense).numpy().tolist() == [[68, 88], [6, 8], [102, 132]]
    assert tape.gradient(parts, values).numpy().tolist() == [0, 4, 6]
    assert np.allclose(tape.gradient(soft, values), [0.0, -0.18171549, 0.18171555])
    assert tape.gradient(both, values).numpy().tolist() == [4, 8, 12]


@pytest.mark.parametrize(
    "make",
    [
        tf.sparse.from_dense,
        lambda x: tf.sparse.expand_dims(tf.sparse.from_dense(x), 0),
        lambda x: tf.sparse.slice(tf.sparse.from_dense(x), [0, 0], [2, 2]),
        lambda x: tf.sparse.reorder(tf.SparseTensor([[1, 0], [0, 1]], [x[1, 0], x[0, 1]], [2, 2])),
        lambda x: tf.RaggedTensor.from_row_lengths([x[0, 1], x[1, 0]], [1, 1]).to_sparse(),
    ],
)
def test_what_picks_elements_has_gradients(make: Any) -> None:
    x = tf.constant([[0.0, 2.0], [3.0, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.sparse.to_dense(make(x)) ** 2)
    assert tf.convert_to_tensor(tape.gradient(y, x)).numpy().tolist() == [[0.0, 4.0], [6.0, 0.0]]


def test_a_function_multiplies_where_the_shape_is_known() -> None:
    @tf.function
    def known(values: Any, dense: Any) -> Any:
        return tf.sparse.sparse_dense_matmul(tf.SparseTensor([[0, 1]], values, [1, 2]), dense)

    assert known(tf.constant([2.0]), tf.constant([[1.0], [3.0]])).numpy().tolist() == [[6.0]]
    with pytest.raises(NotImplementedError, match=r"tf\.sparse\.transpose cannot be part"):
        tf.function(tf.sparse.transpose)(A)


def test_a_function_knows_the_shape_of_its_argument() -> None:
    count = [0]

    @tf.function
    def product(sparse: Any, dense: Any) -> Any:
        count[0] += 1
        assert sparse.shape == [2, 3]
        return sparse, tf.sparse.sparse_dense_matmul(sparse, dense)

    values = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        same, made = product(A.with_values(values), tf.ones([3, 2]))
    assert made.numpy().tolist() == [[1, 1], [5, 5]]
    assert same.dense_shape.numpy().tolist() == [2, 3]
    assert tape.gradient(made, values).numpy().tolist() == [2, 2, 2]
    product(A, tf.zeros([3, 2]))
    assert count == [1]
    concrete = product.get_concrete_function(A, tf.ones([3, 2]))
    assert concrete(A, tf.ones([3, 2]))[1].numpy().tolist() == [[1, 1], [5, 5]]
    with pytest.raises(TypeError, match="Can not cast TensorSpec"):
        concrete(tf.ones([2, 3]), tf.ones([3, 2]))

    @tf.function(input_signature=[tf.SparseTensorSpec([None, 3], tf.float32)])
    def total(sparse: Any) -> Any:
        return tf.sparse.reduce_sum(sparse)

    assert float(total(A)) == 6.0
    with pytest.raises(TypeError, match="Can not cast SparseTensorSpec"):
        total(tf.SparseTensor([[0, 0]], [1], [1, 3]))


def test_the_greatest_and_strings() -> None:
    found = tf.SparseTensor([[0, 1], [2, 0]], [-1.0, -3.0], [3, 3])
    assert float(tf.sparse.reduce_max(found)) == -1.0
    assert tf.sparse.reduce_max(found, axis=0).numpy().tolist() == [-3, -1, 0]
    assert tf.sparse.reduce_max(found, 1, keepdims=True).numpy().tolist() == [[-1], [0], [-3]]
    assert int(tf.function(tf.sparse.reduce_max)(tf.sparse.from_dense([-5, 0, -3]))) == -3
    one, other = tf.sparse.from_dense([["a", ""]]), tf.sparse.from_dense([["", "b"]])
    assert whole(tf.sparse.concat(0, [one, other])).tolist() == [[b"a", b""], [b"", b"b"]]


def test_datasets_of_sparse_tensors() -> None:
    dataset = tf.data.Dataset.from_tensor_slices({"a": A, "b": [1, 2]})
    assert dataset.element_spec["a"] == tf.SparseTensorSpec([3], tf.float32)
    assert [x["a"].indices.numpy().tolist() for x in dataset] == [[[1]], [[0], [2]]]
    batches = dataset.map(lambda x: x["a"] * 2).batch(2)
    assert [whole(x).tolist() for x in batches] == [[[0, 2, 0], [4, 0, 6]]]
    assert [x.tolist() for x in batches.unbatch().as_numpy_iterator()] == [[0, 2, 0], [4, 0, 6]]
    wider = tf.data.Dataset.from_tensors(tf.SparseTensor([[0, 4]], [1.0], [1, 5]))
    both = tf.data.Dataset.from_tensors(A).concatenate(wider)
    assert both.element_spec == tf.SparseTensorSpec([None, None], tf.float32)
    assert next(iter(both.batch(2))).shape == [2, 2, 5]
    spec = tf.type_spec_from_value(A)
    made = tf.data.Dataset.from_generator(lambda: iter([A]), output_signature=spec)
    assert [whole(x).tolist() for x in made] == [whole(A).tolist()]
    values = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        kept = next(iter(tf.data.Dataset.from_tensors(A.with_values(values * 2)))).values
    assert tape.gradient(kept, values) is None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x: list(x.padded_batch(2)), r"tf.sparse.to_dense\(x\) for each"),
        (lambda x: list(x.unbatch()), "Rank of input SparseTensor should be > 1"),
        (lambda x: x.concatenate(tf.data.Dataset.from_tensors([1.0])), "Incompatible dataset"),
    ],
)
def test_what_datasets_of_sparse_tensors_refuse(wrong: Any, words: str) -> None:
    with pytest.raises((TypeError, tf.errors.OpError), match=words):
        wrong(tf.data.Dataset.from_tensor_slices(A))


OUTSIDE = tf.SparseTensor([[5]], [1.0], [2])


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        (lambda: tf.sparse.add(1, 2), TypeError, "do you mean to use tf.add"),
        (lambda: tf.sparse.transpose(A, [0]), ValueError, "Dimensions 1 and 2 are not compatible"),
        (lambda: tf.sparse.reshape(A, [4, 2]), tf.errors.InvalidArgumentError, "Input to reshape"),
        (lambda: tf.sparse.concat(2, [A, B]), tf.errors.InvalidArgumentError, "Concat dimension must"),
        (lambda: tf.sparse.sparse_dense_matmul(A, tf.ones([2, 2])), tf.errors.InvalidArgumentError, "Cannot multiply A and B"),
        (lambda: tf.sparse.sparse_dense_matmul(A, tf.constant([[1]])), tf.errors.InvalidArgumentError, "expected to be a float tensor but is a int32"),
        (lambda: tf.sparse.sparse_dense_matmul(A, [1.0]), tf.errors.InvalidArgumentError, "'b' is not a matrix"),
        (lambda: tf.sparse.concat(0, [A, tf.cast(A, tf.int32)]), tf.errors.InvalidArgumentError, "cannot compute SparseConcat"),
        (lambda: tf.sparse.add(A, [[1.0]]), tf.errors.InvalidArgumentError, "differ"),
        (lambda: tf.sparse.slice(A, [0], [1]), tf.errors.InvalidArgumentError, "Expected 2 starts and sizes"),
        (lambda: tf.sparse.reduce_sum(OUTSIDE), tf.errors.InvalidArgumentError, "indices[0] = [5] is out of bounds"),
        (lambda: OUTSIDE * [1.0, 2.0], tf.errors.InvalidArgumentError, "is out of bounds"),
        (lambda: tf.SparseTensor([[0.5]], [1], [1]), TypeError, "to EagerTensor of dtype int64"),
    ],
)  # fmt: skip
def test_errors(wrong: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind) as error:
        wrong()
    assert words in str(error.value)


def test_a_tensor_times_a_sparse_one_is_sparse() -> None:
    sparse = tf.sparse.from_dense([[1.0, 0.0], [2.0, 3.0]])
    column, row = tf.constant([[2.0], [3.0]]), tf.Variable([2.0, 3.0])
    for product, values in ((column * sparse, [2, 6, 9]), (row * sparse, [2, 4, 9])):
        assert isinstance(product, tf.SparseTensor)
        assert product.values.numpy().tolist() == values
    assert tf.function(lambda d, s: d * s)(column, sparse).values.numpy().tolist() == [2, 6, 9]
    with tf.GradientTape() as tape:
        loss = tf.sparse.reduce_sum(row * sparse)
    assert tape.gradient(loss, row).numpy().tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match="SparseTensor"):
        tf.multiply(column, sparse)


def test_some_elements_are_kept() -> None:
    sparse = tf.sparse.from_dense([[1.0, 0.0], [2.0, 3.0]])
    assert whole(tf.sparse.retain(sparse, [True, False, True])).tolist() == [[1, 0], [0, 3]]
    with tf.GradientTape() as tape:
        tape.watch(sparse.values)
        loss = tf.reduce_sum(tf.sparse.retain(sparse, [False, True, True]).values ** 2)
    assert tape.gradient(loss, sparse.values).numpy().tolist() == [0, 4, 6]
    with pytest.raises(ValueError, match="not compatible"):
        tf.sparse.retain(sparse, [True])


def test_other_sizes() -> None:
    sparse = tf.SparseTensor([[0, 1]], [5], [3, 4])
    sparse.set_shape([3, None])
    with pytest.raises(ValueError, match="incompatible"):
        sparse.set_shape([2, 4])
    assert tf.SparseTensor.from_value(sparse) is sparse


def test_a_product_keeps_the_shape() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="broadcasts dense to sparse only"):
        tf.sparse.from_dense([-1, 0, 4, 0]) * tf.ones([3])

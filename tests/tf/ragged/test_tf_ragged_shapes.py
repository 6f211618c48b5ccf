"""The shapes of ragged tensors, and what is cut, joined and multiplied by them, as in TensorFlow."""

# ruff: noqa: E501 - a case is a line

from __future__ import annotations

import types
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxvars import tf

Shape = tf.experimental.DynamicRaggedShape
ROWS = tf.ragged.constant([[1, 2], [3], [], [4, 5, 6]])
PAIRS = tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], ragged_rank=1)
DEEP = tf.ragged.constant([[[1], []], [[3, 4]]])
REGULAR = tf.RaggedTensor.from_uniform_row_length(tf.ragged.constant([[1], [2, 3], [], [4]]), 2)
OF_ROWS = "<DynamicRaggedShape lengths=[4, (2, 1, 0, 3)] num_row_partitions=1>"


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (lambda: tf.shape(ROWS), OF_ROWS),
        (lambda: tf.shape(PAIRS), "<DynamicRaggedShape lengths=[2, (1, 2), 2] num_row_partitions=1>"),
        (lambda: tf.shape(DEEP), "<DynamicRaggedShape lengths=[2, (2, 1), (1, 0, 2)] num_row_partitions=2>"),
        (lambda: tf.shape(REGULAR), "<DynamicRaggedShape lengths=[2, 2, (1, 2, 0, 1)] num_row_partitions=2>"),
        (lambda: tf.shape(ROWS).static_lengths(ragged_lengths=False), "[4, None]"),
        (lambda: tf.shape(PAIRS).inner_shape, "<tf.Tensor: shape=(2,), dtype=int32, numpy=array([3, 2], dtype=int32)>"),
        (lambda: (tf.shape(PAIRS).rank, tf.shape(PAIRS).inner_rank, tf.shape(DEEP).num_row_partitions), "(3, 2, 2)"),
        (lambda: [tf.shape(REGULAR).is_uniform(axis) for axis in range(3)], "[True, True, False]"),
        (lambda: tf.shape(ROWS, out_type=tf.int64).dtype, "tf.int64"),
        (lambda: tf.shape(PAIRS)[-1], "<tf.Tensor: shape=(), dtype=int32, numpy=2>"),
        (lambda: tf.shape(DEEP)[:2], "<DynamicRaggedShape lengths=[2, (2, 1)] num_row_partitions=1>"),
        (lambda: tf.shape(tf.RaggedTensor.from_tensor(tf.ones([2, 3, 4]), ragged_rank=2))[1:], "<DynamicRaggedShape lengths=[3, 4] num_row_partitions=0>"),
        (lambda: Shape.from_lengths([4, (2, 1, 0, 8), 12]), "<DynamicRaggedShape lengths=[4, (2, 1, 0, 8), 12] num_row_partitions=1>"),
        (lambda: Shape.from_lengths([4, 3, 2], num_row_partitions=1), "<DynamicRaggedShape lengths=[4, 3, 2] num_row_partitions=1>"),
        (lambda: Shape.from_lengths([]), "<DynamicRaggedShape lengths=[] num_row_partitions=0>"),
        (lambda: Shape.from_tensor(tf.ones([2, 3])), "<DynamicRaggedShape lengths=[2, 3] num_row_partitions=0>"),
        (lambda: tf.shape(ROWS) == tf.shape(ROWS), "True"),
        (lambda: Shape.from_tensor(ROWS) == tf.shape(ROWS), "False"),  # int64 and int32
        (lambda: tf.reshape(tf.range(6), tf.shape(ROWS)), "<tf.RaggedTensor [[0, 1], [2], [], [3, 4, 5]]>"),
        (lambda: tf.reshape(ROWS, [-1]).numpy().tolist(), "[1, 2, 3, 4, 5, 6]"),
        (lambda: tf.reshape(PAIRS, Shape.from_lengths([2, (2, 4)])), "<tf.RaggedTensor [[1.0, 2.0], [3.0, 4.0, 5.0, 6.0]]>"),
        (lambda: tf.broadcast_to([[1], [2]], tf.shape(tf.ragged.constant([[1, 2], [3]]))), "<tf.RaggedTensor [[1, 1], [2]]>"),
        (lambda: tf.broadcast_to(5, tf.shape(ROWS)), "<tf.RaggedTensor [[5, 5], [5], [], [5, 5, 5]]>"),
        (lambda: tf.broadcast_to(ROWS, Shape.from_lengths([2, 4, (2, 1, 0, 3) * 2])), "<tf.RaggedTensor [[[1, 2], [3], [], [4, 5, 6]],\n [[1, 2], [3], [], [4, 5, 6]]]>"),
        (lambda: tf.broadcast_dynamic_shape(tf.shape(ROWS), tf.constant([4, 1])), OF_ROWS),
        (lambda: tf.broadcast_dynamic_shape(Shape.from_lengths([1, 1]), tf.shape(ROWS)), OF_ROWS),
        (lambda: tf.broadcast_dynamic_shape(tf.shape(PAIRS), Shape.from_lengths([2, 1, 1])), "<DynamicRaggedShape lengths=[2, (1, 2), 2] num_row_partitions=1>"),
        (lambda: tf.zeros(tf.shape(ROWS), tf.int32), "<tf.RaggedTensor [[0, 0], [0], [], [0, 0, 0]]>"),
        (lambda: tf.ones(tf.shape(PAIRS)).shape, "TensorShape([2, None, 2])"),
        (lambda: tf.fill(tf.shape(ROWS), 3), "<tf.RaggedTensor [[3, 3], [3], [], [3, 3, 3]]>"),
        (lambda: tf.split(ROWS, [1, 3]), "[<tf.RaggedTensor [[1, 2]]>, <tf.RaggedTensor [[3], [], [4, 5, 6]]>]"),
        (lambda: tf.split(ROWS, 2), "[<tf.RaggedTensor [[1, 2], [3]]>, <tf.RaggedTensor [[], [4, 5, 6]]>]"),
        (lambda: [x.to_list() for x in tf.split(PAIRS, 2, axis=2)], "[[[[1.0]], [[3.0], [5.0]]], [[[2.0]], [[4.0], [6.0]]]]"),
        (lambda: tf.matmul(PAIRS, tf.ones([2, 2, 3])).to_list(), "[[[3.0, 3.0, 3.0]], [[7.0, 7.0, 7.0], [11.0, 11.0, 11.0]]]"),
        (lambda: tf.matmul(PAIRS, tf.ones([2, 2, 3])).shape, "TensorShape([2, None, 3])"),
        (lambda: tf.matmul(PAIRS, PAIRS, transpose_b=True), "<tf.RaggedTensor [[[5.0]], [[25.0, 39.0], [39.0, 61.0]]]>"),
        (lambda: tf.matmul(tf.RaggedTensor.from_uniform_row_length(PAIRS, 1), tf.ones([2, 1, 2, 3])).to_list(), "[[[[3.0, 3.0, 3.0]]], [[[7.0, 7.0, 7.0], [11.0, 11.0, 11.0]]]]"),
        (lambda: tf.matmul(tf.ragged.constant([[1.0, 2.0], [3.0, 4.0]]), tf.ones([2, 2])).numpy().tolist(), "[[3.0, 3.0], [7.0, 7.0]]"),
        (lambda: tf.matmul(PAIRS[:0], tf.ones([0, 2, 3])).to_list(), "[]"),
    ],
)  # fmt: skip
def test_what_tensorflow_shows(made: Any, shown: str) -> None:
    assert repr(made()) == shown


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        (lambda: tf.shape(ROWS)[1], ValueError, "Index 1 is not uniform"),
        (lambda: tf.shape(DEEP)[-1], ValueError, "Index 2 is not uniform"),
        (lambda: tf.shape(ROWS)[1:], ValueError, "All relevant dimensions must be uniform"),
        (lambda: tf.shape(ROWS)[::2], IndexError, "Cannot stride through a shape"),
        (lambda: tf.shape(ROWS)[5], IndexError, "Expected axis=5 < rank=2"),
        (lambda: tf.shape(ROWS)[tf.constant(0)], TypeError, "not an int or a slice"),
        (lambda: tf.shape(ROWS).is_uniform(2), IndexError, "Expected axis=2 < rank=2"),
        (lambda: hash(tf.shape(ROWS)), TypeError, "unhashable"),
        (lambda: Shape.from_lengths([4, (2, 1)]), ValueError, "2 lengths, but 4 rows"),
        (lambda: Shape.from_lengths([(1, 2)]), ValueError, "must have rank 1"),
        (lambda: Shape.from_lengths([2, (1, 2)], num_row_partitions=0), ValueError, "does not fit the lengths"),
        (lambda: tf.reshape(ROWS, Shape.from_lengths([3, (2, 2, 1)])), tf.errors.InvalidArgumentError, "6 values, but the requested shape has 5"),
        (lambda: tf.broadcast_to(tf.ones([4, 2]), tf.shape(ROWS)), tf.errors.InvalidArgumentError, "rows of the lengths"),
        (lambda: tf.broadcast_to(ROWS, Shape.from_lengths([1, 1])), tf.errors.InvalidArgumentError, "Cannot broadcast"),
        (lambda: tf.broadcast_to(ROWS, [2, 4, 3]), tf.errors.InvalidArgumentError, "see tf.shape"),
        (lambda: tf.eye(tf.shape(ROWS)), ValueError, "no one size"),
        (lambda: tf.split(ROWS, 2, axis=1), ValueError, "Cannot split a ragged dimension"),
        (lambda: tf.split(ROWS, 3), tf.errors.InvalidArgumentError, "its size is 4"),
        (lambda: tf.split(ROWS, [5, -1]), tf.errors.InvalidArgumentError, "its size is 4"),
        (lambda: tf.matmul(PAIRS, tf.ones([2, 3])), ValueError, "must have the same rank"),
        (lambda: tf.matmul(PAIRS, tf.ones([2, 2, 3], tf.int32)), ValueError, "must have the same dtype"),
        (lambda: tf.matmul(PAIRS, PAIRS), tf.errors.InvalidArgumentError, "In\\[0\\]: \\[1,2\\]"),
        (lambda: tf.matmul(PAIRS, tf.ones([3, 2, 3])), tf.errors.InvalidArgumentError, "2 is not 3"),
        (lambda: tf.matmul(DEEP, DEEP), tf.errors.InvalidArgumentError, "ragged in their innermost"),
    ],
)  # fmt: skip
def test_errors(wrong: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        wrong()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.data())
def test_a_shape_is_what_a_tensor_of_it_has(lengths: list[int], data: Any) -> None:
    shape = Shape.from_lengths([len(lengths), tuple(lengths)], dtype=tf.int32)
    made = tf.reshape(tf.range(sum(lengths)), shape)
    assert tf.shape(made) == shape
    assert [len(row) for row in made.to_list()] == lengths
    column = (
        np.array(
            data.draw(st.lists(st.integers(), min_size=len(lengths), max_size=len(lengths))), object
        )
        % 9
    )
    rows = tf.broadcast_to(column.astype(int)[:, None], shape)
    assert rows.to_list() == [[int(x)] * n for x, n in zip(column, lengths, strict=True)]


def test_they_are_known_in_a_function() -> None:
    @tf.function
    def scale(rows: Any, weights: Any) -> Any:
        shape = tf.shape(rows)
        return (
            rows * tf.broadcast_to(weights, shape),
            tf.zeros([shape[0], rows.bounding_shape(out_type=tf.int32)[1]]),
            tf.matmul(PAIRS, PAIRS, transpose_b=True),
        )

    made, zeros, products = scale(ROWS, tf.constant([[1], [2], [3], [4]]))
    assert made.to_list() == [[1, 2], [6], [], [16, 20, 24]]
    assert zeros.shape == [4, 3]
    assert products.to_list() == [[[5.0]], [[25.0, 39.0], [39.0, 61.0]]]


def test_gradients_go_through_products_and_parts() -> None:
    w = tf.Variable(tf.ones([2, 2, 1]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul(PAIRS, w)) + tf.reduce_sum(tf.split(PAIRS * w[0, 0], 2)[1])
    grad = tape.gradient(loss, w).numpy()
    assert grad[..., 0].tolist() == [[1.0 + 18.0, 2.0], [8.0, 10.0]]
    assert jax.tree.leaves(PAIRS)[0].shape == (3, 2)


def test_composite_tensors_are_expanded_when_asked_for() -> None:
    sparse, slices = (
        tf.sparse.from_dense([[0, 7]]),
        tf.IndexedSlices(tf.ones([1]), tf.constant([0])),
    )
    whole = {"b": [ROWS, 1], "a": (sparse, slices)}
    leaves = tf.nest.flatten(whole, expand_composites=True)
    found = [np.asarray(x).tolist() for x in leaves]
    assert found == [
        [[0, 1]], [7], [1, 2], [1.0], [0], [1, 2, 3, 4, 5, 6], [0, 2, 3, 3, 6], 1
    ]  # fmt: skip
    packed = tf.nest.pack_sequence_as(whole, [x * 1 for x in leaves], expand_composites=True)
    assert packed["b"][0].to_list() == ROWS.to_list()
    assert tf.sparse.to_dense(packed["a"][0]).numpy().tolist() == [[0, 7]]
    twice = tf.nest.map_structure(lambda x: x * 2, [sparse.values, slices], expand_composites=True)
    assert twice[1].values.numpy().tolist() == [2.0]
    assert len(tf.nest.flatten(whole)) == 4
    other = types.SimpleNamespace(_components=[1, 2])  # a name is not what decides
    assert tf.nest.flatten([other], expand_composites=True) == [other]
    with pytest.raises(ValueError, match="Structure had 2 atoms, but flat_sequence had 1 items"):
        tf.nest.pack_sequence_as(ROWS, [tf.range(6)], expand_composites=True)
    with pytest.raises(ValueError, match="same number of elements"):
        tf.nest.assert_same_structure(ROWS, DEEP, expand_composites=True)
    tf.nest.assert_same_structure(ROWS, DEEP)

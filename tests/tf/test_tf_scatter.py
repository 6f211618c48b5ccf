"""Writes of rows and elements of a `tf.Variable` by index, eager and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import jaxvars as jv
from jaxvars import tf

INVALID = tf.errors.InvalidArgumentError


def scatter(v, method, indices, updates):
    """Call a method that takes slices, or indices and updates."""
    change = getattr(v, method)
    return change(indices, updates) if "nd" in method else change(
        tf.IndexedSlices(updates, indices)
    )  # fmt: skip


def matrix():
    return tf.Variable(np.arange(12.0, dtype=np.float32).reshape(3, 4), name="m")


@pytest.mark.parametrize(("method", "indices", "updates", "expected"), [
    ("scatter_update", [0, 2], [7.0, 8.0], [7, 2, 8]),
    ("scatter_update", 1, 7.0, [1, 7, 3]), ("scatter_update", [0, 1], 7.0, [7, 7, 3]),
    ("scatter_update", np.zeros(0, int), np.zeros(0, np.float32), [1, 2, 3]),
    ("scatter_add", [0, 0, 2], [1.0, 2.0, 3.0], [4, 2, 6]),
    ("scatter_sub", [0, 0, 2], [1.0, 2.0, 3.0], [-2, 2, 0]),
    ("scatter_mul", [0, 0, 2], [2.0, 3.0, 4.0], [6, 2, 12]),
    ("scatter_div", [0, 0, 2], [2.0, 4.0, 3.0], [0.125, 2, 1]),
    ("scatter_max", [0, 0, 2], [4.0, 5.0, 0.0], [5, 2, 3]),
    ("scatter_min", [0, 2, 2], [4.0, 1.0, 0.0], [1, 2, 0]),
    ("scatter_nd_update", [[0], [2]], [7.0, 8.0], [7, 2, 8]),
    ("scatter_nd_add", [[0], [0]], [1.0, 2.0], [4, 2, 3]),
    ("scatter_nd_sub", [[0], [0]], [1.0, 2.0], [-2, 2, 3]),
    ("scatter_nd_max", [[0], [1]], [5.0, 0.0], [5, 2, 3]),
    ("scatter_nd_min", [[0], [1]], [5.0, 0.0], [1, 0, 3]),
    ("batch_scatter_update", [0, 2], [7.0, 8.0], [7, 2, 8]),
])  # fmt: skip
@pytest.mark.parametrize("compiled", [False, True])
def test_scattering(method, indices, updates, expected, compiled):
    v = tf.Variable([1.0, 2.0, 3.0])
    run = tf.function(scatter) if compiled else scatter
    run(v, method, tf.constant(indices), tf.constant(updates))
    assert v.numpy().tolist() == expected


@pytest.mark.parametrize(("method", "indices", "updates", "index"), [
    ("scatter_update", [2, 0], [[1, 2, 3, 4], [5, 6, 7, 8]], ([2, 0],)),
    ("scatter_update", [[2], [0]], [[[1, 2, 3, 4]], [[5, 6, 7, 8]]], ([[2], [0]],)),
    ("scatter_nd_update", [[0, 1], [2, 3]], [50, 60], ([0, 2], [1, 3])),
    ("scatter_nd_update", [[1]], [[1, 2, 3, 4]], ([1],)),
    ("batch_scatter_update", [[0, 1], [1, 2], [3, 0]], [[9, 8], [7, 6], [5, 4]],
     ([[0], [1], [2]], [[0, 1], [1, 2], [3, 0]])),
])  # fmt: skip
def test_scattering_in_a_matrix(method, indices, updates, index):
    m, expected = matrix(), matrix().numpy()
    expected[index] = updates
    scatter(m, method, tf.constant(indices), tf.constant(updates, tf.float32))
    np.testing.assert_array_equal(m, expected)


def test_batch_scattering_with_two_batch_dimensions():
    v = tf.Variable(tf.zeros((2, 2, 3)))
    indices = tf.constant([[[0], [1]], [[2], [0]]])
    scatter(v, "batch_scatter_update", indices, tf.constant([[[1.0], [2.0]], [[3.0], [4.0]]]))
    assert v.numpy().tolist() == [[[1, 0, 0], [0, 2, 0]], [[0, 0, 3], [4, 0, 0]]]


OUTSIDE = "is outside of variable 'm', which has"


@pytest.mark.parametrize(("method", "indices", "updates", "message"), [
    ("scatter_update", [3], 1.0, f"Index 3 {OUTSIDE} 3 rows"),
    ("scatter_add", [0, -4], 1.0, "index -4 is below 0"),
    ("scatter_nd_update", [[0, 4]], [1.0], f"Index 4 {OUTSIDE} 4 rows"),
    ("batch_scatter_update", [[4], [0], [0]], 1.0, f"Index 4 {OUTSIDE} 4 rows"),
    ("scatter_update", [0.0], 1.0, "'m' are integers, not float32"),
    ("scatter_update", [True], 1.0, "'m' are integers, not bool"),
    ("scatter_update", [0], [[1.0, 2.0]], r"has shape \(1, 2\), and \(1, 4\)"),
    ("scatter_nd_update", [[0, 0, 0]], 1.0, r"\(1, 3\), must have at most 2"),
    ("scatter_nd_update", 0, 1.0, r"'m' of shape \(3, 4\)"),
    ("batch_scatter_update", [[0], [0]], 1.0, r"indices have shape \(2, 1\)"),
    ("batch_scatter_update", [[0]] * 4, 1.0, r"indices have shape \(4, 1\)"),
    ("batch_scatter_update", np.zeros((3, 4, 1), int), 1.0, r"\(3, 4, 1\)"),
    ("batch_scatter_update", 0, 1.0, r"indices have shape \(\)"),
])  # fmt: skip
def test_scattering_refuses_what_does_not_fit(method, indices, updates, message):
    m = matrix()
    with pytest.raises(ValueError, match=message):
        scatter(m, method, tf.constant(indices), tf.constant(updates))
    assert m.numpy().sum() == 66


@pytest.mark.parametrize("method", ["scatter_add", "scatter_nd_add", "batch_scatter_update"])
def test_a_scalar_has_nothing_to_scatter_to(method):
    with pytest.raises(ValueError, match="'s'"):
        scatter(tf.Variable(1.0, name="s"), method, tf.constant([[0]]), tf.constant([1.0]))


def test_integers_are_divided_towards_zero():
    v = tf.Variable([7, 12, -7])
    scatter(v, "scatter_div", tf.constant([0, 2, 0]), tf.constant([2, 2, 3]))
    assert (v.dtype, v.numpy().tolist()) == (tf.int32, [1, 12, -3])
    tf.function(scatter)(v, "scatter_div", tf.constant([1]), tf.constant([5]))
    assert (v.dtype, v.numpy().tolist()) == (tf.int32, [1, 2, -3])


def test_divisors_whose_product_wraps():
    v, w = tf.Variable([1_000_000]), tf.Variable([[100, 7], [3, 4]], dtype=tf.int8)
    scatter(v, "scatter_div", tf.constant([0, 0]), tf.constant([65536, 65536]))
    scatter(w, "scatter_div", tf.constant([0, 0]), tf.constant([[16, 16], [16, 16]], tf.int8))
    scatter(w, "scatter_div", tf.constant([[1]]), tf.constant([[[2, 2]]], tf.int8))
    assert (v.numpy().tolist(), w.numpy().tolist()) == ([0], [[0, 0], [1, 2]])


@pytest.mark.parametrize("index", [tf.constant([1]), np.array([1])])
def test_known_indices_in_a_function(index):
    v, new = tf.Variable([1.0, 2.0]), tf.constant([5.0])
    tf.function(lambda: scatter(v, "scatter_add", index, new))()
    with pytest.raises(INVALID, match="Index 2 is outside"):
        tf.function(lambda: scatter(v, "scatter_add", [2], new))()
    assert v.numpy().tolist() == [1.0, 7.0]


@pytest.mark.parametrize(("method", "indices"), [
    ("scatter_nd_update", [[3, 0]]), ("batch_scatter_update", [[4], [0], [0]]),
])  # fmt: skip
def test_indices_out_of_range_fail_where_they_are_checked(method, indices):
    m = matrix()
    jv.debugging.check_indices(True)
    try:
        change = tf.function(lambda i: scatter(m, method, i, tf.constant(1.0)))
        with pytest.raises(INVALID, match="outside of axis"):
            change(tf.constant(indices))
    finally:
        jv.debugging.check_indices(False)
    assert m.numpy().sum() == 66

"""What the table of operations cannot say about `tf.linalg` and `tf.signal`."""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]], np.float32)


def same(found, wanted, tolerance=1e-5):
    np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=tolerance)


# ---------------------------------------------------------------- factors
def test_singular_vectors_give_the_matrix():
    s, u, v = tf.linalg.svd(A[:, :2])
    same(u @ tf.linalg.diag(s) @ tf.transpose(v), A[:, :2])
    _, u, v = tf.linalg.svd(A[:, :2], full_matrices=True)
    assert (tuple(u.shape), tuple(v.shape)) == ((3, 3), (2, 2))


def test_eigenvectors_are_scaled():
    values, vectors = tf.linalg.eigh(A)
    same(tf.constant(A) @ vectors, (vectors * values).numpy(), 1e-4)
    values, vectors = tf.linalg.eig(tf.constant(A))
    same(tf.cast(A, tf.complex64) @ vectors, (vectors * values).numpy(), 1e-4)


def test_a_root_and_a_logarithm_give_the_matrix():
    root = tf.linalg.sqrtm(A)
    same(root @ root, A)
    same(tf.linalg.expm(tf.linalg.logm(tf.cast(A, tf.complex64))), A, 1e-4)


def test_factors_give_the_matrix():
    q, r = tf.linalg.qr(A)
    same(q @ r, A)


def test_a_matrix_without_inverse():
    singular = tf.constant([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
        tf.linalg.inv(singular)
    assert not np.isfinite(tf.function(tf.linalg.inv)(singular).numpy()).all()


# ---------------------------------------------------------------- einsum
def test_einsum():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    same(tf.einsum("ij,jk->ik", tf.constant(x), tf.constant(y)), x @ y)
    same(tf.einsum("...i->...", tf.constant(x)), x.sum(-1))
    assert tf.einsum("ii->i", tf.constant([[1, 2], [3, 4]])).numpy().tolist() == [1, 4]
    assert tf.linalg.einsum is tf.einsum


def test_einsum_of_what_does_not_fit():
    x = tf.ones((2, 3))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.einsum("ij,jk->ik", x, x)
    with pytest.raises(ValueError, match="label k not present"):
        tf.einsum("ij->ik", x)
    with pytest.raises(ValueError, match="Got 1 inputs"):
        tf.einsum("ij,jk->ik", x)
    with pytest.raises(TypeError, match="Invalid keyword arguments"):
        tf.einsum("ij->i", x, wrong=1)


def test_einsum_has_a_gradient():
    w = tf.Variable([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        y = tf.einsum("ij,j->", w, tf.constant([3.0, 4.0]))
    assert tape.gradient(y, w).numpy().tolist() == [[3.0, 4.0]]


# ---------------------------------------------------------------- signals
def test_a_spectrogram_gives_the_signal_back():
    x = np.sin(np.arange(16.0)).astype(np.float32)
    inverse = tf.signal.inverse_stft_window_fn(2)
    found = tf.signal.inverse_stft(tf.signal.stft(x, 4, 2), 4, 2, window_fn=inverse)
    same(found[2:-2], x[2:-2])


def test_types_of_transforms():
    assert tf.signal.rfft(np.ones(3)).dtype == tf.complex128
    assert tf.signal.rfft(np.ones(3, np.float32)).dtype == tf.complex64
    assert tf.signal.irfft(np.ones(3, np.complex64)).dtype == tf.float32


def test_einsum_and_tensordot_check_what_they_are_told():
    for wrong in ("a0->a", "ij.->i", "i->j", "...i->i"):
        with pytest.raises(ValueError, match="ubscripts"):
            tf.einsum(wrong, tf.ones([2, 2]))
    with pytest.raises(IndexError):
        tf.tensordot(tf.ones([2, 2]), tf.ones([2, 2]), [[0], [7]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid reduction dimension"):
        tf.norm(tf.ones([2]), axis=1)


def test_what_matrices_are_given_with_is_checked():
    invalid = tf.errors.InvalidArgumentError
    with pytest.raises(invalid, match="Input matrix is not invertible"):
        tf.linalg.solve(tf.ones([2, 2]), tf.ones([2, 1]))
    with pytest.raises(ValueError, match="tuple of 2 unique integers"):
        tf.norm(tf.ones([2, 2]), axis=[[0], [1]])
    assert tf.linalg.matrix_rank(tf.eye(2), tol=[0.5]).numpy() == 2
    for perm, words in (([0, 2], "2 is out of range"), ([0], "size 1"), ([1, 1], "0 is missing")):
        with pytest.raises(invalid, match=words):
            tf.transpose(tf.ones([2, 2]), perm)

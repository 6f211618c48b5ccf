"""`tf.experimental.numpy`: functions of `jax.numpy` that take and give Tensors."""

from __future__ import annotations

import numpy as np
import pytest

import jaxvars.tf.experimental.numpy as tnp
from jaxvars import tf


def test_results_are_tensors_of_the_types_of_numpy():
    for made, dtype in [
        (tnp.ones(3), tf.float64),
        (tnp.array([1, 2]), tf.int64),
        (tnp.add(1, 2.5), tf.float64),
        (tnp.zeros((2,), dtype=tf.float32), tf.float32),
        (tnp.zeros((2,), tnp.float32), tf.float32),
    ]:
        assert isinstance(made, tf.Tensor)
        assert made.dtype == dtype


def test_tensors_and_variables_are_taken_alone_and_in_lists():
    v = tf.Variable([1.0, 2.0])
    made = tnp.concatenate([v, tf.constant([3.0]), np.ones(1, np.float32)])
    assert made.numpy().tolist() == [1.0, 2.0, 3.0, 1.0]
    assert [x.numpy().tolist() for x in tnp.split(tnp.arange(4), 2)] == [[0, 1], [2, 3]]
    assert int(tnp.argmax(tnp.array([1, 3, 2]))) == 1


def test_it_is_differentiated_and_compiled():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tnp.sum(tnp.multiply(x, x))
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]
    assert tf.function(lambda x: tnp.cumsum(x), autograph=False)(x).numpy().tolist() == [1.0, 3.0]


def test_constants():
    assert tnp.pi == np.pi
    assert tnp.newaxis is None
    assert tf.experimental.numpy is tnp


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("summ", "Did you mean"),
        ("random", "Use tf.random"),
        ("experimental_enable_numpy_behavior", "no methods of NumPy"),
    ],
)
def test_what_is_missing(name, message):
    with pytest.raises(AttributeError, match=message):
        getattr(tnp, name)
    with pytest.raises(AttributeError, match=r"tf\.experimental\.numpy"):
        _ = tf.experimental.dtensor

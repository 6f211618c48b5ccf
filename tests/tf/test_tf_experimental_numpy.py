"""`tf.experimental.numpy`: functions of `jax.numpy` that take and give Tensors."""

from __future__ import annotations

import numpy as np
import pytest

import jaxvars.tf.experimental.numpy as tnp
from jaxvars import tf
from jaxvars.tf.tensors import tensor as _tensor


def test_results_are_tensors():
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


def test_what_is_missing():
    with pytest.raises(AttributeError, match="Did you mean"):
        _ = tnp.summ
    with pytest.raises(AttributeError, match=r"tf\.experimental has no attribute"):
        _ = tf.experimental.dtensor


@pytest.fixture
def semantics():
    operations, methods = dict(_tensor.OPERATIONS), dict(_tensor.NUMPY_METHODS)
    tnp.experimental_enable_numpy_behavior()
    yield
    _tensor.OPERATIONS.update(operations)
    _tensor.NUMPY_METHODS.clear()
    _tensor.NUMPY_METHODS.update(methods)


def test_tensors_have_methods_of_numpy_when_asked_for(semantics):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert x.T.numpy().tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert x.reshape(-1).shape == x.reshape((4,)).shape == x.ravel().shape == [4]
    assert x.reshape(1, -1).shape == [1, 4]
    assert (x.size, x.tolist(), x.max(0).tolist()) == (4, [[1.0, 2.0], [3.0, 4.0]], [3.0, 4.0])
    assert (x.astype(tf.int32).dtype, x.clip(2, 3).tolist()[0]) == (tf.int32, [2.0, 2.0])
    assert float(tf.function(lambda x: x.mean() + x.T[0, 1])(x)) == 5.5
    tnp.experimental_enable_numpy_behavior()
    assert (x + 1).dtype == tf.float32
    with pytest.raises(AttributeError, match=r"Did you mean jnp\.asarray\(x\)\.sum"):
        _ = x.sum
    with pytest.raises(NotImplementedError):
        tnp.experimental_enable_numpy_behavior(prefer_float32=True)


def test_operators_promote_when_asked_for(semantics):
    i, f, h = tf.constant([1, 2]), tf.constant([1.0, 2.0]), tf.constant([1.0], tf.float16)
    both = [1, 2]
    for made, dtype in [
        (i + 2.5, tf.float64), (f + 2.5, tf.float32), (i + f, tf.float32), (h + 1.5, tf.float16),
        (i + tf.constant([1], tf.int64), tf.int64), (f + np.float64(1), tf.float64),
        (np.ones(2) + f, tf.float64), (tf.constant(True) + 1, tf.int64), (f + 1j, tf.complex64),
        (tf.Variable([1.0]) + i, tf.float32), (i < 1.5, tf.bool), (f + both, tf.float32),
        (tf.cast(f, tf.bfloat16) + f, tf.float32),
    ]:  # fmt: skip
        assert made.dtype == dtype
    with tf.GradientTape() as tape:
        tape.watch(f)
        y = i * f
    assert tape.gradient(y, f).numpy().tolist() == [1.0, 2.0]


def test_indices_pick_when_asked_for(semantics):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert x[[0, 1], [1, 0]].numpy().tolist() == [2.0, 3.0]
    assert x[:, (True, False)].numpy().tolist() == [[1.0], [3.0]]
    assert x[tf.constant([1, 1])].shape == [2, 2]
    assert x[tf.constant([1, 1]), tf.constant(0)].numpy().tolist() == [3.0, 3.0]
    assert x[x > 2].numpy().tolist() == [3.0, 4.0]
    assert float(x[0, 1]) == 2.0
    for wrong in ([0, 5], (..., [2]), [-3]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
            x[wrong]


def test_types_and_arguments_are_those_of_jax():
    i, f = tf.constant([1, 2]), tf.constant([1.0, 2.0])
    for made in (tnp.add(i, f), tnp.stack([i, f]), tnp.sqrt(f), tnp.einsum("i,i->", i, f)):
        assert made.dtype == tf.float32
    assert (tnp.add(f, np.float64(1)).dtype, tnp.sqrt(i).dtype) == (tf.float64, tf.float32)
    assert tnp.cumprod(i, dtype=tf.int8).dtype == tf.int8
    assert tnp.result_type(i, f) == tnp.promote_types(tf.int32, tf.float32) == np.float32
    assert tnp.shape(f) == (2,)
    with pytest.raises(TypeError, match="ndarray or scalar"):
        tnp.sum([1, 2])


def test_random_values():
    tnp.random.seed(1)
    first = tnp.random.randn(3)
    tnp.random.seed(1)
    assert tnp.random.randn(3).numpy().tolist() == first.numpy().tolist()
    assert first.dtype == tnp.random.rand(2).dtype == tnp.random.random().dtype == tf.float64
    whole = tnp.random.randint(3, size=(20,)).numpy()
    assert (set(whole.tolist()) <= {0, 1, 2}, whole.dtype) == (True, np.int64)
    assert tnp.random.standard_normal(2).shape == tnp.random.poisson(2.0, (2,)).shape
    assert 1 <= float(tnp.random.uniform(1.0, 2.0)) < 2

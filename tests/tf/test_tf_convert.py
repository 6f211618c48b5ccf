"""What becomes a tensor, where `tests/tf/programs/convert.txt` does not reach."""

from __future__ import annotations

import sys
from array import array
from collections import UserDict, UserList, deque

import jax
import numpy as np
import pytest

from jaxvars import tf
from jaxvars.tf.tensors import convert as _convert


class Meters:
    def __init__(self, value):
        self.value = value


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(_convert, "CONVERSIONS", [])
    from jaxvars.tf.tensors import components as _components

    monkeypatch.setattr(_components, "CONVERSIONS", _convert.CONVERSIONS)


def meters(value, dtype=None, name=None, as_ref=False):
    return tf.constant(value.value, dtype)


def test_a_users_class_has_tensors(registered):
    tf.register_tensor_conversion_function(Meters, meters)
    assert (tf.constant([1.0]) + Meters(2.0)).numpy().tolist() == [3.0]
    assert tf.convert_to_tensor(Meters(1), tf.float64).dtype == tf.float64
    assert tf.convert_to_tensor(Meters(1), dtype_hint=tf.int64).dtype == tf.int64
    assert tf.Variable(Meters(3.0)).numpy() == 3.0
    assert tf.function(lambda x: x + Meters(3.0))(tf.constant(1.0)).numpy() == 4.0
    tf.register_tensor_conversion_function(deque, lambda *a, **k: tf.constant(1))
    with pytest.raises(ValueError, match="requested dtype"):
        tf.convert_to_tensor(deque(), tf.float32)


def test_of_several_the_lowest_priority_is_asked_first(registered):
    def never(value, dtype=None, name=None, as_ref=False):
        return NotImplemented

    tf.register_tensor_conversion_function(Meters, meters, priority=200)
    tf.register_tensor_conversion_function((Meters, deque), lambda *a, **k: tf.constant(7.0))
    assert tf.square(Meters(2.0)).numpy() == 49.0
    tf.register_tensor_conversion_function(Meters, never, priority=1)
    assert tf.square(Meters(2.0)).numpy() == 49.0


@pytest.mark.parametrize(
    "wrong", [(int, meters), (np.ndarray, meters), (tf.Tensor, meters), (3, meters), (Meters, 3)]
)
def test_what_can_not_be_registered(registered, wrong):
    with pytest.raises(TypeError):
        tf.register_tensor_conversion_function(*wrong)
    assert _convert.CONVERSIONS == []


def test_nan_is_not_an_integer():
    for bad in (np.array([1.0, np.nan]), np.float32(np.inf), np.array([1j * np.inf])):
        with pytest.raises(TypeError, match="NaN and Inf"):
            tf.constant(bad, tf.int32)
    assert tf.constant(np.array([1.75, -1.75]), tf.int32).numpy().tolist() == [1, -1]


def test_an_array_is_copied_and_a_string_is_plain_bytes():
    for numbers in (np.arange(3), np.arange(3.0, dtype=np.float32)):
        made = tf.constant(numbers)
        numbers[0] = 9
        assert made.numpy()[0] == 0
    assert [type(x) for x in tf.constant(np.array([b"a", "b"])).numpy()] == [bytes, bytes]
    assert tf.constant(np.array([1, 2], ">i4")).numpy().tolist() == [1, 2]
    assert tf.as_dtype(np.dtype(">f8")) is tf.float64
    for wrong in (list, type, b"float32", (tf.int32, tf.float32)):
        with pytest.raises(TypeError):
            tf.as_dtype(wrong)


def test_a_large_array_may_be_changed_at_once():
    for _ in range(10):  # JAX copies in the background
        numbers = np.ones(4_000_000, np.float32)
        tensor = tf.constant(numbers)
        numbers[:] = 9
        assert (tensor.numpy() == 1).all()


def test_a_table_is_an_array():
    class Series:
        def __array__(self, dtype=None, copy=None):
            return np.asarray([1.0, 2.0], dtype=dtype)

    assert tf.reduce_sum(Series()).numpy() == 3.0
    assert (tf.constant([1.0, 2.0]) * Series()).dtype == tf.float32
    assert tf.constant(deque([1, 2])).numpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match="unsupported type"):
        tf.constant([Series()])


def test_any_sequence_is_a_list():
    assert tf.constant(UserList([1, 2])).numpy().tolist() == [1, 2]
    assert tf.constant([array("i", [1, 2]), [3, 4]]).numpy().tolist() == [[1, 2], [3, 4]]
    assert (tf.ones(2) + UserList([1, 2.5])).dtype == tf.float32
    for other in ({0: 1}, UserDict({0: 1}), {1, 2}, iter([1])):
        with pytest.raises(ValueError, match="unsupported type"):
            tf.constant(other)


def test_what_is_too_large_is_a_value_error():
    for call in (lambda: tf.constant(10**310, tf.float64), lambda: tf.constant([2**70])):
        with pytest.raises(ValueError, match="out-of-range integer"):
            call()
    with pytest.raises(ValueError, match=r"dimension is too large.*int64"):
        tf.convert_to_tensor(tf.TensorShape([2**31]), tf.int32)


def test_a_string_as_an_array_of_numpy():
    for made in (np.asarray(tf.constant("ab")), np.array(tf.constant("ab"))):
        assert (made.shape, made.dtype, made.item()) == ((), object, b"ab")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python asks for __buffer__ from 3.12 on")
def test_a_tensor_has_a_buffer_that_can_be_read():
    view = memoryview(tf.constant([1.0, 2.0]))
    assert (view.readonly, list(view)) == (True, [1.0, 2.0])


def test_unknown_shapes_have_parts():
    unknown = tf.TensorShape(None)
    assert unknown[1:4].as_list() == [None] * 3
    assert unknown[1:].rank is None
    assert unknown[-2:].rank is None


def test_a_number_that_is_64_bits_wide_says_that_those_are_off():
    v = tf.Variable(1, dtype=tf.int64)
    with jax.enable_x64(False), pytest.raises(tf.errors.InvalidArgumentError, match="bit numbers"):
        v + 1  # the number would be int32

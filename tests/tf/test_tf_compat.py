"""What programs of TensorFlow 2 still take from TensorFlow 1, as TensorFlow 2.21 has it eagerly."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from jaxvars import tf

v1 = tf.compat.v1


def test_what_is_so_from_the_start() -> None:
    for name in ("enable_eager_execution", "enable_v2_behavior", "global_variables_initializer"):
        assert getattr(v1, name)() is None
    assert v1.executing_eagerly()
    assert v1.executing_eagerly_outside_functions()


def test_the_seed_is_tensorflows() -> None:
    v1.set_random_seed(3)
    first = tf.random.uniform([3]).numpy()
    tf.random.set_seed(3)
    np.testing.assert_array_equal(tf.random.uniform([3]), first)


def test_variables_are_assigned() -> None:
    v = tf.Variable([5.0, 5.0])
    assert v1.assign(v, [1.0, 2.0]).numpy().tolist() == [1.0, 2.0]
    assert v1.assign_add(v, [1.0, 1.0]).numpy().tolist() == [2.0, 3.0]
    assert v1.assign_sub(v, [2.0, 0.0], use_locking=True).numpy().tolist() == [0.0, 3.0]
    with pytest.raises(ValueError, match="incompatible"):
        v1.assign(v, [1.0])
    assert v.numpy().tolist() == [0.0, 3.0]


@pytest.mark.parametrize(
    ("made", "name", "dtype", "value"),
    [
        (lambda: v1.get_variable("w", [2], None, tf.ones_initializer()), "w:0", "float32", [1, 1]),
        (lambda: v1.get_variable("w", initializer=[1.0, 2.0]), "w:0", "float32", [1, 2]),
        (lambda: v1.get_variable("w", [2], tf.int32), "w:0", "int32", [0, 0]),
        (lambda: v1.get_variable("w", initializer=tf.constant(3)), "w:0", "int32", 3),
    ],
)  # fmt: skip
def test_variables_are_made(made: Any, name: str, dtype: str, value: Any) -> None:
    v = made()
    assert (v.name, v.dtype.name, v.numpy().tolist()) == (name, dtype, value)


def test_variables_are_drawn_without_an_initializer() -> None:
    v = v1.get_variable("w", [200, 300], trainable=False, collections=["mine"])
    assert v.shape == [200, 300]
    assert not v.trainable
    limit = np.sqrt(6 / 500)
    assert limit * 0.99 < np.abs(v.numpy()).max() <= limit


def test_names_begin_with_the_scopes() -> None:
    with v1.variable_scope("s") as outer:
        with v1.variable_scope("t", reuse=v1.AUTO_REUSE):
            a, b = (v1.get_variable("w", [2]) for _ in range(2))
            assert tf.Variable(1.0).name == "s/t/Variable:0"
        assert outer.name == "s"
    assert a is not b
    assert a.name == b.name == "s/t/w:0"
    with v1.variable_scope(None, "d"), v1.variable_scope(outer):
        assert v1.get_variable("w", [1]).name == "s/w:0"
    with tf.name_scope("n"):
        assert v1.get_variable("w", [1]).name == "w:0"
    with v1.name_scope(None, "d", [1]) as name:
        assert name == "d/"
    assert v1.get_variable("w", [1]).name == "w:0"


def test_tensors_and_sizes() -> None:
    sparse = tf.sparse.from_dense([0, 1])
    assert v1.convert_to_tensor_or_sparse_tensor(sparse) is sparse
    assert v1.convert_to_tensor_or_sparse_tensor([1], tf.float32).dtype == tf.float32
    assert v1.placeholder_with_default([1.0], [None]).numpy().tolist() == [1.0]
    casts = {
        "to_float": "float32",
        "to_double": "float64",
        "to_int32": "int32",
        "to_int64": "int64",
    }
    assert {name: getattr(v1, name)([1]).dtype.name for name in casts} == casts
    assert [v1.dimension_value(x) for x in (v1.Dimension(3), 4, None)] == [3, 4, None]
    assert v1.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next() == 0


def test_files_logs_and_flags(tmp_path: Any) -> None:
    with v1.gfile.Open(str(tmp_path / "a"), "w") as file:
        file.write("x")
    assert v1.gfile.Exists(str(tmp_path / "a"))
    before = logging.getLogger("tensorflow").level
    v1.logging.set_verbosity(v1.logging.ERROR)
    assert v1.logging.get_verbosity() == logging.ERROR
    logging.getLogger("tensorflow").setLevel(before)
    assert v1.flags.FLAGS is not None


def test_sizes_are_dimensions() -> None:
    shape = tf.TensorShape([3, None])
    assert shape.dims is not None
    a, n = shape.dims
    found = [a + 2, 2 + a, a + n, 5 - a, a * 2, a // 2, 7 // a, a % 2, 7 % a, a.merge_with(n)]
    assert str(found) == (
        "[Dimension(5), Dimension(5), Dimension(None), Dimension(2), Dimension(6), Dimension(1), "
        "Dimension(2), Dimension(1), Dimension(1), Dimension(3)]"
    )
    assert [a == 3, a == n, n == None, a != 4, a < 4, a >= 3, a == "x", a in [3]] == [  # noqa: E711
        True, None, None, True, True, True, False, True
    ]  # fmt: skip
    assert (int(a), str(n), bool(a), bool(n), list(range(a))) == (3, "?", True, False, [0, 1, 2])
    assert tf.TensorShape([a, 2, n]) == tf.TensorShape([3, 2, None])
    assert (tf.TensorShape(None).dims, tf.TensorShape([]).dims) == (None, [])
    assert repr(tf.compat.dimension_at_index(shape, 1)) == "Dimension(None)"
    assert tf.zeros(tf.TensorShape([2]).dims).shape == [2]
    assert tf.reshape(tf.range(3), [a]).shape == [3]
    assert tf.constant(a).dtype == tf.int32
    assert a.is_compatible_with(n)
    for wrong, kind, words in (
        (lambda: a - 5, ValueError, "Dimension -2 must be >= 0"),
        (lambda: a.merge_with(4), ValueError, "Dimensions 3 and 4 are not compatible"),
        (lambda: v1.Dimension(2.5), TypeError, "must be integer or None"),
        (lambda: a + "x", TypeError, "unsupported operand"),
        (lambda: hash(a), TypeError, "unhashable"),
    ):
        with pytest.raises(kind, match=words):
            wrong()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: v1.Session, "operations run at once. Call a @tf.function where TensorFlow 1 has"),
        (lambda: v1.reduce_sum, "use tf.reduce_sum"),
        (lambda: v1.nonsense, "TensorFlow 1 is not here"),
        (lambda: v1.get_variable("w"), "did not get an initializer, so its `shape`"),
        (lambda: v1.get_variable("w", [1], initializer=[3]), "do not specify shape"),
        (lambda: v1.get_variable("w", [1], regularizer=abs), "takes no regularizer here"),
        (lambda: v1.get_variable("w", [1], custom_getter=abs), "takes no custom_getter here"),
        (lambda: v1.variable_scope("s", initializer=abs).__enter__(), "takes no initializer here"),
    ],
)
def test_errors(wrong: Any, words: str) -> None:
    with pytest.raises((AttributeError, ValueError, NotImplementedError), match=words):
        wrong()


def test_where_chooses_rows_by_a_condition_of_one_dimension():
    x = tf.constant([[1, 2], [3, 4]])
    where = tf.compat.v1.where
    assert where([True, False], x, -x).numpy().tolist() == [[1, 2], [-3, -4]]
    assert where(x > 2, x, -x).numpy().tolist() == [[-1, -2], [3, 4]]
    assert where([False, True]).numpy().tolist() == [[1]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \(1, 2\) chooses nothing"):
        where([[True, False]], x, -x)

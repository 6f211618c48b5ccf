"""Tensors as messages; what is expected is TensorFlow 2.21's."""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf


@pytest.mark.parametrize(
    ("values", "options", "data"),
    [
        (1, {}, b"\x08\x03\x12\x00:\x01\x01"),
        (-5, {}, b"\x08\x03\x12\x00:\n\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ([1.0, 2.0], {}, b'\x08\x01\x12\x04\x12\x02\x08\x02"\x08\x00\x00\x80?\x00\x00\x00@'),
        ([b"a", "b"], {}, b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x01b"),
        (np.zeros((0, 3)), {}, b"\x08\x02\x12\x06\x12\x00\x12\x02\x08\x03"),
        ([True, False], {}, b"\x08\n\x12\x04\x12\x02\x08\x02Z\x02\x01\x00"),
        (np.array([1, 0], np.uint16), {}, b"\x08\x11\x12\x04\x12\x02\x08\x02:\x02\x01\x00"),
        (np.float16([1, 2]), {}, b'\x08\x13\x12\x04\x12\x02\x08\x02"\x04\x00<\x00@'),
        (1.5, {"dtype": tf.float16}, b"\x08\x13\x12\x00j\x02\x80|"),
        (1.5, {"dtype": tf.bfloat16}, b"\x08\x0e\x12\x00j\x02\xc0\x7f"),
        (1.0, {"dtype": tf.dtypes.experimental.float8_e5m2}, b"\x08\x18\x12\x00\x92\x01\x01<"),
        ([1 + 2j], {"dtype": "complex64"},
         b"\x08\x08\x12\x04\x12\x02\x08\x01J\x08\x00\x00\x80?\x00\x00\x00@"),
        (3, {"shape": [2, 2]}, b"\x08\x03\x12\x08\x12\x02\x08\x02\x12\x02\x08\x02:\x01\x03"),
        ([1, 2], {"shape": [3]}, b"\x08\x03\x12\x04\x12\x02\x08\x03:\x02\x01\x02"),
        (7, {"shape": [3], "allow_broadcast": True}, b"\x08\x03\x12\x04\x12\x02\x08\x03:\x01\x07"),
        (np.uint64(2**63), {}, b"\x08\x17\x12\x00\x8a\x01\n" + b"\x80" * 9 + b"\x01"),
        (tf.constant([1.5]), {"dtype": tf.float64},
         b"\x08\x02\x12\x04\x12\x02\x08\x012\x08\x00\x00\x00\x00\x00\x00\xf8?"),
    ],
)  # fmt: skip
def test_tensors(values, options, data):
    proto = tf.make_tensor_proto(values, **options)
    assert proto.SerializeToString() == data
    found = tf.make_ndarray(proto)
    expected = np.asarray(tf.constant(values, options.get("dtype")) if not isinstance(
        values, tf.Tensor) else values)  # fmt: skip
    if "shape" in options:
        count = int(np.prod(options["shape"]))
        flat = np.ravel(expected)
        expected = np.append(flat, [flat[-1]] * (count - flat.size)).reshape(options["shape"])
    assert found.tolist() == expected.tolist()
    kind = tf.as_dtype(options.get("dtype", expected.dtype)).as_numpy_dtype
    assert found.dtype == kind
    assert found.flags.writeable


def test_each_type_comes_back():
    for name in ("int4", "uint2", "float4_e2m1fn", "float8_e4m3fn"):
        dtype = getattr(tf.dtypes.experimental, name)
        for values in (1, [1, 0], []):
            given = np.array(values).astype(dtype.as_numpy_dtype)
            found = tf.make_ndarray(tf.make_tensor_proto(given))
            assert (found.dtype, found.tolist()) == (given.dtype, given.tolist()), name


def test_a_message_is_taken_as_it_is_and_read_by_parse_tensor():
    proto = tf.make_tensor_proto([[1, 2]])
    assert tf.make_tensor_proto(proto) is proto
    assert str(proto).startswith("dtype: DT_INT32\ntensor_shape {\n  dim {\n    size: 1\n  }\n")
    parsed = tf.io.parse_tensor(proto.SerializeToString(), tf.int32)
    assert parsed.numpy().tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("values", "options", "error", "message"),
    [
        ([1, 2, 3], {"shape": [2]}, ValueError, "Takes at most 2, but got 3"),
        (7, {"shape": [3], "verify_shape": True}, TypeError, r"Expected .* shape: \(3,\), .* \(\)"),
        (
            [1, 2],
            {"shape": [2, 2], "allow_broadcast": True},
            TypeError,
            r"\(2, 2\), but got \(2,\)",
        ),
        (1, {"allow_broadcast": True, "verify_shape": True}, ValueError, "not both allowed"),
        (None, {}, ValueError, "None values not supported"),
        (1.5, {"dtype": tf.int32}, TypeError, "int32"),
        (1, {"dtype": tf.dtypes.experimental.float8_e5m2fnuz}, TypeError, "Element type not supp"),
    ],
)
def test_what_cannot_be_a_message_is_refused(values, options, error, message):
    with pytest.raises(error, match=message):
        tf.make_tensor_proto(values, **options)


def test_a_tensor_of_a_function_has_no_message():
    with pytest.raises(TypeError, match="Expected any non-tensor type"):
        tf.function(tf.make_tensor_proto)(tf.constant(1))


def test_more_values_than_the_shape_has_are_refused():
    proto = tf.make_tensor_proto(1)
    proto.int_val.append(2)
    with pytest.raises(ValueError, match=r"2 values for shape \[\]"):
        tf.make_ndarray(proto)

"""Shapes, types, specs and tensors as messages; what is expected is TensorFlow 2.21's."""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf


# ---------------------------------------------------------------- shapes, types, specs
@pytest.mark.parametrize(
    ("sizes", "text", "data"),
    [
        (
            [2, None],
            "dim {\n  size: 2\n}\ndim {\n  size: -1\n}\n",
            b"\x12\x02\x08\x02\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ),
        (None, "unknown_rank: true\n", b"\x18\x01"),
        ([], "", b""),
        ([0], "dim {\n}\n", b"\x12\x00"),
    ],
)
def test_shapes(sizes, text, data):
    shape = tf.TensorShape(sizes)
    proto = shape.as_proto()
    assert (str(proto), proto.SerializeToString()) == (text, data)
    assert proto == shape.experimental_as_proto()
    assert [repr(tf.TensorShape(proto)), repr(tf.TensorShape.experimental_from_proto(proto))] == [
        repr(shape)
    ] * 2
    assert (type(proto).DESCRIPTOR.full_name, proto.unknown_rank) == (
        "tensorflow.TensorShapeProto", sizes is None,
    )  # fmt: skip
    assert isinstance(proto, tf.TensorShape.experimental_type_proto())


def test_a_message_of_a_shape_is_looked_into():
    proto = tf.TensorShape([4, None]).as_proto()
    assert [dim.size for dim in proto.dim] == [4, -1]
    proto.dim[1].size = -2
    with pytest.raises(ValueError, match="Dimension -2 must be >= 0"):
        tf.TensorShape(proto)


def test_types():
    proto = tf.float16.experimental_as_proto()
    assert (str(proto), proto.SerializeToString()) == ("datatype: DT_HALF\n", b"\x08\x13")
    assert tf.DType.experimental_from_proto(proto) is tf.float16
    assert tf.bfloat16.experimental_as_proto().datatype == 14


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            tf.TensorSpec([2], tf.int64, "x"),
            'name: "x"\nshape {\n  dim {\n    size: 2\n  }\n}\ndtype: DT_INT64\n',
        ),
        (tf.TensorSpec(None), "shape {\n  unknown_rank: true\n}\ndtype: DT_FLOAT\n"),
        (tf.TensorSpec([], tf.string), "shape {\n}\ndtype: DT_STRING\n"),
    ],
)
def test_specs(spec, text):
    proto = spec.experimental_as_proto()
    assert str(proto) == text
    assert repr(tf.TensorSpec.experimental_from_proto(proto)) == repr(spec)


# ---------------------------------------------------------------- tensors
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


def test_messages_are_compared_by_a_test_case():
    case, proto = tf.test.TestCase(), tf.TensorShape([2]).as_proto()
    case.assertProtoEquals("dim { size: 2 }", proto)
    case.assertProtoEquals(tf.TensorShape(2).as_proto(), proto)
    with pytest.raises(AssertionError):
        case.assertProtoEquals("dim { size: 3 }", proto)
    with pytest.raises(NotImplementedError, match="leave out the tolerance"):
        case.assertProtoEquals(proto, proto, relative_tolerance=0.1)

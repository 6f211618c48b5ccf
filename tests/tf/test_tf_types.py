"""`tf.types.experimental`: what is one, and objects that say what a program is compiled for."""

from __future__ import annotations

import pytest

from jaxvars import tf

types = tf.types.experimental

double = tf.function(lambda x: x * 2)


class Scale(tf.Module):
    @tf.function
    def __call__(self, x):
        return x * 2


def test_functions_are_of_their_classes():
    concrete = double.get_concrete_function(tf.constant(1.0))
    for function in (double, Scale().__call__):
        assert isinstance(function, types.GenericFunction)
        assert isinstance(function, types.PolymorphicFunction)
        assert isinstance(function, types.Callable)
        assert not isinstance(function, types.ConcreteFunction)
    assert isinstance(concrete, types.ConcreteFunction)
    assert isinstance(concrete, types.Callable)
    assert not isinstance(concrete, types.GenericFunction)
    assert not isinstance(len, types.Callable)


def test_tensor_like():
    assert isinstance(tf.constant(1), types.TensorLike)
    assert isinstance([1], types.TensorLike)
    assert not isinstance(None, types.TensorLike)


class Size(types.TraceType):
    """Counts by its number, whatever the color is."""

    def __init__(self, number):
        self.number = number

    def is_subtype_of(self, other):
        return self == other

    def most_specific_common_supertype(self, others):
        return self if all(self == other for other in others) else None

    def placeholder_value(self, placeholder_context):
        return Box(self.number, "unknown")

    def __eq__(self, other):
        return isinstance(other, Size) and self.number == other.number

    def __hash__(self):
        return hash(self.number)


class Box:
    def __init__(self, number, color):
        self.number, self.color = number, color

    def __tf_tracing_type__(self, context):
        return Size(self.number)


def test_a_program_is_compiled_for_each_trace_type():
    seen = []

    @tf.function
    def times(box, x):
        seen.append((box.number, box.color))
        return x * box.number

    x = tf.constant(2.0)
    boxes = Box(2, "red"), Box(2, "blue"), Box(3, "red")
    assert [times(box, x).numpy() for box in boxes] == [4, 4, 6]
    assert seen == [(2, "unknown"), (3, "unknown")]
    assert isinstance(Box(1, "red"), types.SupportsTracingProtocol)
    assert not isinstance(1, types.SupportsTracingProtocol)


def test_a_trace_type_has_all_methods():
    class Half(types.TraceType):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Half()


def test_types_of_few_bits():
    int4 = tf.dtypes.experimental.int4
    assert tf.cast([300, -1], int4).numpy().tolist() == [-4, -1]
    assert tf.constant([1, 2], int4).dtype == int4
    assert (int4.min, int4.max, int4.size) == (-8, 7, 1)
    float4 = tf.dtypes.experimental.float4_e2m1fn
    assert (float4.min, float4.max, float4.as_datatype_enum) == (-6, 6, 33)
    small = tf.cast([1.0, 2.6, -3.0], tf.dtypes.experimental.float8_e5m2)
    assert tf.cast(small, tf.float32).numpy().tolist() == [1.0, 2.5, -3.0]

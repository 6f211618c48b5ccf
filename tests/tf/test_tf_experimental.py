"""`tf.experimental`: extension types, DLPack, and names that are not there."""

from __future__ import annotations

import typing
from collections.abc import Mapping

import numpy as np
import pytest

from jaxvars import tf


class Masked(tf.experimental.ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor
    power: int = 1

    def __validate__(self):
        self.values.shape.assert_is_compatible_with(self.mask.shape)

    def total(self):
        return tf.reduce_sum(tf.where(self.mask, self.values, 0))

    def __add__(self, other):
        return Masked(self.values + other, self.mask, self.power)


class Many(tf.experimental.ExtensionType):
    one: Masked
    some: typing.Tuple[tf.Tensor, ...]  # noqa: UP006 - as in TensorFlow's guide
    named: typing.Mapping[str, tf.Tensor]
    size: tf.TensorSpec([2], tf.float32)
    maybe: tf.Tensor | None = None
    kind: typing.Literal["a", "b"] = "a"


def many(**options):
    one = Masked([1, 2], [True, False])
    return Many(one, ([1.0], [2, 3]), {"x": 4}, [1, 2], **options)


def test_fields_are_converted_and_do_not_change():
    x = Masked([1, 2, 3], [True, False, True])
    assert repr(x).startswith("Masked(values=<tf.Tensor: shape=(3,), dtype=int32")
    assert (x.values.dtype, x.mask.dtype, x.power) == (tf.int32, tf.bool, 1)
    for change in (lambda: setattr(x, "values", 1), lambda: delattr(x, "power")):
        with pytest.raises(AttributeError, match="outside the custom constructor"):
            change()
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    y = many(maybe=5)
    assert y.size.dtype == tf.float32
    assert [t.dtype for t in y.some] == [tf.float32, tf.int32]
    assert (y.named["x"].numpy(), y.maybe.numpy(), many().maybe) == (4, 5, None)
    assert tf.experimental.extension_type.as_dict(x)["power"] == 1


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Masked([1], [True], "x"), TypeError, "power: expected 'int', got 'str'"),
        (lambda: Masked([1, 2]), TypeError, "missing a required argument: 'mask'"),
        (lambda: Masked([1, 2], [True]), ValueError, "are incompatible"),
        (lambda: Masked(object(), [True]), TypeError, "values: expected a Tensor"),
        (lambda: many(kind="c"), TypeError, "kind: expected"),
        (lambda: many(maybe=object()), TypeError, "maybe: expected one of"),
    ],
)
def test_wrong_fields_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_a_field_of_the_class_itself():
    class Node(tf.experimental.ExtensionType):
        value: tf.Tensor
        children: tuple[typing.ForwardRef("Node"), ...] = ()

    tree = Node(3, [Node(5), Node(2)])
    assert [int(child.value) for child in tree.children] == [5, 2]


def test_classes_are_checked():
    with pytest.raises(TypeError, match="Unsupported type annotation"):

        class Lists(tf.experimental.ExtensionType):
            x: list

    with pytest.raises(ValueError, match="'Spec' is reserved"):

        class Specs(tf.experimental.ExtensionType):
            Spec: int

    class Sum(tf.experimental.ExtensionType):
        a: tf.Tensor

        def __init__(self, x, y):
            if x is not None:
                self.a = tf.constant(x) + y

    assert Sum(1, 2).a.numpy() == 3
    with pytest.raises(ValueError, match="is missing field a"):
        Sum(None, 2)


def test_subclasses_have_more_fields():
    class Colored(Masked):
        color: str = "red"

    x = Colored([1], [True], color="blue")
    assert (x.color, x.power, x.total().numpy()) == ("blue", 1, 1)
    assert isinstance(x, Masked)


def test_equality():
    x = Masked([1, 2], [True, False])
    assert bool(x == Masked([1, 2], [True, False]))
    assert isinstance(x == Masked([1, 3], [True, False]), tf.Tensor)
    assert not bool(x == Masked([1, 3], [True, False]))
    assert bool(x != Masked([1, 3], [True, False]))
    assert (x == Masked([1], [True])) is False
    assert (x == Masked([1, 2], [True, False], 2)) is False
    assert (x == 1) is False


def test_functions_and_control_flow_take_them():
    runs = []

    @tf.function
    def next_of(x):
        runs.append(x.power)
        return x + 1

    for n in (1, 5):
        made = next_of(Masked([n, 2], [True, False]))
        assert isinstance(made, Masked)
        assert made.total().numpy() == n + 1
    assert runs == [1]
    next_of(Masked([1, 2], [True, False], 3))
    assert runs == [1, 3]

    @tf.function
    def chosen(pred, x):
        made = tf.cond(pred, lambda: x + 10, lambda: x)
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + 1), (0, made))[1]

    x = Masked([1, 2], [True, False])
    assert chosen(tf.constant(True), x).values.numpy().tolist() == [14, 15]
    assert chosen(tf.constant(False), x).values.numpy().tolist() == [4, 5]
    through = tf.function(lambda y: y)
    back = through(many())
    assert isinstance(back, Many)
    assert back.named["x"].numpy() == 4
    assert back.maybe is None
    assert bool(back == many())


def test_gradients_pass_through():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = Masked(w * 3.0, [True, False]).values
        loss = tf.reduce_sum(loss)
    assert tape.gradient(loss, w).numpy().tolist() == [3.0, 3.0]


def test_specs():
    x = Masked([1, 2], [True, False])
    spec = Masked.Spec(tf.TensorSpec([2], tf.int32), tf.TensorSpec([None], tf.bool))
    assert spec.is_compatible_with(x)
    assert not spec.is_compatible_with(Masked([1.0], [True]))
    assert (spec.values, spec.power) == (tf.TensorSpec([2], tf.int32), 1)
    assert Masked.Spec.from_value(x) == tf.type_spec_from_value(x)
    assert repr(spec).startswith("Masked.Spec(values=TensorSpec(shape=(2,), dtype=tf.int32")
    assert tf.type_spec_from_value(tf.constant([1.0])) == tf.TensorSpec([1])


def test_dlpack():
    x = tf.constant([1.0, 2.0])
    assert tf.experimental.dlpack.from_dlpack(
        tf.experimental.dlpack.to_dlpack(x)
    ).numpy().tolist() == [1.0, 2.0]
    assert tf.experimental.dlpack.from_dlpack(np.arange(3)).numpy().tolist() == [0, 1, 2]


def test_what_is_not_there_says_why():
    assert tf.experimental.float8_e5m2 is tf.dtypes.experimental.float8_e5m2
    for name, words in (
        ("dispatch_for_api", "not dispatched"),
        ("StructuredTensor", "tf.RaggedTensor is here"),
        ("ExtensionTyp", "Did you mean"),
    ):
        with pytest.raises(AttributeError, match=words):
            getattr(tf.experimental, name)


class _Tree(tf.experimental.ExtensionType):
    value: tf.Tensor
    parts: tuple[_Tree, ...] = ()


class _Mixed(tf.experimental.ExtensionType):
    pair: tuple[tf.Tensor, int]
    named: Mapping[str, tf.Tensor | str]


def test_numbers_beside_tensors_stay_numbers():
    runs = []

    @tf.function
    def f(x, count):
        runs.append(x.pair[1])
        for _ in tf.range(count):
            x = _Mixed((x.pair[0] * x.pair[1], x.pair[1]), x.named)
        return x

    made = f(_Mixed((3, 2), {"b": [1.0], "a": "text"}), tf.constant(2))
    assert (int(made.pair[0]), made.pair[1]) == (12, 2)
    assert made.named["a"] == "text"
    f(_Mixed((5, 2), {"b": [2.0], "a": "text"}), tf.constant(1))
    f(_Mixed((5, 3), {"b": [2.0], "a": "text"}), tf.constant(1))
    assert runs == [2, 3]


def test_annotations_may_name_what_comes_later():
    class Before(tf.experimental.ExtensionType):
        x: _NoSuchName  # noqa: F821 - that is the point

    tree = _Tree(1, (_Tree(2), _Tree(3)))
    total = tf.function(lambda x: x.value + sum(part.value for part in x.parts))
    assert int(total(tree)) == 6
    with pytest.raises(TypeError, match="_NoSuchName"):
        Before(1)


def test_specs_of_extension_types_in_signatures():
    spec = Masked.Spec(tf.TensorSpec([2], tf.float32), tf.TensorSpec([2], tf.bool), 1)
    given, other = Masked([1.0, 2.0], [True, False]), Masked([1, 2], [True, False])
    concrete = tf.function(lambda x: x.total()).get_concrete_function(spec)
    assert concrete(given).numpy() == 1.0
    f = tf.function(lambda x: x["a"][0].total(), input_signature=[{"a": [spec]}])
    assert f({"a": [given]}).numpy() == 1.0
    for call in (lambda: concrete(other), lambda: f({"a": [other]}), lambda: f({"a": [1.0]})):
        with pytest.raises(TypeError, match="Can not cast"):
            call()

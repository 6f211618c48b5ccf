"""`tf.train.Example` and its parts; the bytes were written by TensorFlow 2.21."""

from __future__ import annotations

import pytest

from jaxvars import tf

train = tf.train


def example(**lists):
    features = {name: train.Feature(**part) for name, part in lists.items()}
    return train.Example(features=train.Features(feature=features))


@pytest.mark.parametrize(
    ("kind", "list_of", "values", "written"),
    [
        (
            "bytes_list", "BytesList", [b"Hello", b""],
            "0a120a100a0161120b0a090a0548656c6c6f0a00",
        ),
        ("float_list", "FloatList", [1.5, -2.0], "0a130a110a0161120c120a0a080000c03f000000c0"),
        (
            "int64_list", "Int64List", [3, -1, 300],
            "0a180a160a016112111a0f0a0d03ffffffffffffffffff01ac02",
        ),
    ],
)  # fmt: skip
def test_the_bytes_are_tensorflows(kind, list_of, values, written):
    made = example(a={kind: getattr(train, list_of)(value=values)})
    assert made.SerializeToString().hex() == written
    read = train.Example.FromString(bytes.fromhex(written))
    assert read == made
    assert list(getattr(read.features.feature["a"], kind).value) == values
    assert read.features.feature["a"].WhichOneof("kind") == kind


def test_sequences():
    made = train.SequenceExample(
        context=train.Features(feature={"n": train.Feature(int64_list=train.Int64List(value=[2]))}),
        feature_lists=train.FeatureLists(
            feature_list={
                "x": train.FeatureList(
                    feature=[
                        train.Feature(float_list=train.FloatList(value=[0.5])),
                        train.Feature(),
                    ]
                )
            }
        ),
    )
    written = "0a0c0a0a0a016e12051a030a010212130a110a0178120c0a0812060a040000003f0a00"
    assert made.SerializeToString().hex() == written
    read = train.SequenceExample()
    read.ParseFromString(bytes.fromhex(written))
    assert read == made


def test_messages_are_filled_in_place_and_refuse_other_types():
    made = train.Example()
    made.features.feature["q"].int64_list.value.extend([1, 2])
    assert made.SerializeToString().hex() == "0a0d0a0b0a017112061a040a020102"
    assert "int64_list" in str(made)
    with pytest.raises(TypeError, match="float"):
        train.Int64List(value=[1.5])
    with pytest.raises(TypeError, match="expected bytes"):
        train.BytesList(value=["text"])


def test_unknown_names_have_a_hint():
    with pytest.raises(AttributeError, match=r"tf\.train has no attribute 'Exampl'.*Example"):
        _ = tf.train.Exampl


def test_a_message_in_sight_of_a_loop():
    known = example(a={"int64_list": train.Int64List(value=[3])})

    @tf.function
    def f(n):
        total = 0
        for i in tf.range(n):
            total += i
        return total, len(known.features.feature)

    assert [int(x) for x in f(tf.constant(4))] == [6, 1]

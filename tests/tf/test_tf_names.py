"""Names at the top level that are not operations, like specs, the time, scopes."""

from __future__ import annotations

import copy
import functools
import itertools
import logging
import pickle
import re
import types

import pytest

from jaxvars import tf
from jaxvars.tf.registry.absent import WHY

WIDE = tf.TensorShape([None, 2])
SLICES = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1, "TensorSpec(shape=(), dtype=tf.int32, name=None)"),
        ("a", "TensorSpec(shape=(), dtype=tf.string, name=None)"),
        ([1.0, 2.0], "TensorSpec(shape=(2,), dtype=tf.float32, name=None)"),
        (None, "NoneTensorSpec()"),
        (SLICES, f"IndexedSlicesSpec({WIDE!r}, tf.float32, tf.int32, None, TensorShape([1]))"),
        (
            tf.TensorArray(tf.float32, 2),
            "TensorArraySpec(TensorShape(None), tf.float32, False, True)",
        ),
        (
            tf.data.Dataset.from_tensors(1.0),
            "DatasetSpec(TensorSpec(shape=(), dtype=tf.float32, name=None), TensorShape([]))",
        ),
    ],
)  # fmt: skip
def test_specs_of_values(value, words):
    spec = tf.type_spec_from_value(value)
    assert repr(spec) == words
    if isinstance(spec, tf.TypeSpec):
        assert spec.is_compatible_with(value)
        assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec
        assert hash(copy.deepcopy(spec)) == hash(spec)


def test_what_has_no_spec():
    with pytest.raises(TypeError, match="Could not build a TypeSpec"):
        tf.type_spec_from_value(object())


def test_the_most_specific_spec_that_two_fit():
    two, three = tf.TensorSpec([2], name="x"), tf.TensorSpec([3], name="x")
    assert two.most_specific_compatible_type(three) == tf.TensorSpec([None], name="x")
    assert two.most_specific_common_supertype([tf.TensorSpec([2], tf.int32)]) is None
    assert two.most_specific_common_supertype([tf.TensorSpec([2], name="y")]) is None
    assert tf.TensorSpec([2]).is_subtype_of(two)
    assert not two.is_subtype_of(tf.TensorSpec([2], name="y"))
    shapes = [tf.TensorShape([2, 4]), tf.TensorShape([2, 3])]
    assert tf.TensorShape([2, 3]).most_specific_common_supertype(shapes) == [2, None]
    assert tf.TensorShape([2]).most_specific_common_supertype(shapes).rank is None
    assert tf.float32.is_subtype_of(tf.float32)
    assert tf.float32.most_specific_common_supertype([tf.float32]) is tf.float32
    assert tf.float32.most_specific_common_supertype([tf.float32, tf.int32]) is None
    with pytest.raises(ValueError, match="No TypeSpec"):
        two.most_specific_compatible_type(tf.NoneTensorSpec())
    wide = tf.IndexedSlicesSpec([3, 2]).most_specific_common_supertype(
        [tf.IndexedSlicesSpec([5, 2])]
    )
    assert wide == tf.IndexedSlicesSpec([None, 2])
    assert tf.IndexedSlicesSpec([3, 2]).is_subtype_of(wide)
    assert not wide.is_subtype_of(tf.IndexedSlicesSpec([3, 2]))
    assert not wide.is_compatible_with(tf.TensorArraySpec())
    assert not wide.is_compatible_with(3)
    assert tf.TensorArraySpec([2]).value_type is tf.TensorArray
    assert isinstance(two, tf.TypeSpec)


def test_the_time_is_that_of_the_run(monkeypatch):
    from jaxvars.tf.control import environment as _environment

    clock = types.SimpleNamespace(time=itertools.count(1.5e9).__next__)
    monkeypatch.setattr(_environment, "time", clock)
    now = tf.function(lambda: tf.timestamp())
    times = [float(now()), float(now()), float(tf.timestamp())]
    assert times[0] + 1 == times[1] == times[2] - 1 > 1.5e9
    assert now().dtype == tf.float64


def test_scopes_loggers_and_symbols():
    with tf.name_scope("a"), tf.name_scope("b"):
        assert tf.get_current_name_scope() == "a/b"
    assert tf.get_current_name_scope() == ""
    assert tf.get_logger() is logging.getLogger("tensorflow")
    seen = []
    tf.function(lambda x: seen.append(tf.is_symbolic_tensor(x)))(tf.constant(1.0))
    assert seen == [True]
    assert not tf.is_symbolic_tensor(tf.constant(1.0))
    assert not tf.is_symbolic_tensor(1.0)


def test_a_tuple_of_tensors():
    made = tf.tuple([1, None, SLICES])
    assert (int(made[0]), made[1], made[2]) == (1, None, SLICES)
    assert tf.tuple([None]) == [None]
    with pytest.raises(ValueError, match="at least one tensor"):
        tf.function(lambda: tf.tuple([None]))()


INSTEAD = {
    "tpu": r"tf\.distribute\.MirroredStrategy\(\) uses all", "get_variable": r"tf\.Module",
    "layers": r"tf\.keras\.layers", "placeholder": r"tf\.TensorSpec",
    "global_variables_initializer": "leave it out", "estimator": r"tf\.keras\.Model",
    "contrib": r"tf\.keras", "Session": r"@tf\.function", "app.flags": "argparse",
    "logging": r"tf\.get_logger\(\)", "compat.v1.train": "use tf.train",
    "distribute.experimental.ParameterServerStrategy": "MultiWorkerMirroredStrategy",
    "linalg.LinearOperatorDiag": r"tf\.linalg\.solve, .*substrates\.jax\.tf2jax\.linalg",
    "linalg.experimental.conjugate_gradient": r"jax\.scipy\.sparse\.linalg\.cg",
    "raw_ops.AddV2": r"tf\.math\.add for AddV2",
    "quantization.fake_quant_with_min_max_args": r"model\.quantize .* tf\.stop_gradient\(",
    "train.AdamOptimizer": r"tf\.keras\.optimizers\.Adam", "train.Saver": r"tf\.train\.Checkpoint",
}  # fmt: skip


@pytest.mark.parametrize("name", INSTEAD)
def test_what_is_not_there_says_what_to_write_instead(name):
    with pytest.raises(AttributeError, match=INSTEAD[name]):
        functools.reduce(getattr, name.split("."), tf)


@pytest.mark.parametrize("name", WHY)
def test_each_name_that_is_absent_says_what_to_write_instead(name):
    with pytest.raises(AttributeError, match=f": {re.escape(WHY[name])}$"):
        functools.reduce(getattr, name.split("."), tf)


def test_what_is_named_as_a_cure_is_there():
    cures = re.findall(r"tf\.[\w.]*\w", " ".join(WHY.values()))
    for cure in {*cures, "tf.keras.optimizers.RMSprop", "tf.keras.optimizers.Ftrl"}:
        functools.reduce(getattr, cure.split(".")[1:], tf)

"""`jaxvars.tf` where JAX's 64-bit numbers are off: 32 bits, or a refusal that says so."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxvars import tf
from jaxvars.tensors import dtypes
from jaxvars.tf.random import streams

pytestmark = pytest.mark.filterwarnings("error:.*requested dtype")  # JAX's, of what it cuts
OFF = "64-bit numbers are off(?s:.*)jax_enable_x64"
BIG = 2**40


@pytest.fixture(autouse=True)
def _numbers_of_64_bits():
    with jax.enable_x64(False):
        yield


def example(value):
    features = {"a": tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))}
    text = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
    return tf.io.parse_single_example(text, {"a": tf.io.FixedLenFeature([], tf.int64)})["a"]


def table(value):
    pairs = tf.lookup.KeyValueTensorInitializer(["a"], [value], value_dtype=tf.int64)
    return tf.lookup.StaticHashTable(pairs, -1).lookup(tf.constant(["a"]))


@pytest.mark.parametrize("make", [
    lambda: tf.constant(1.0, tf.float64),
    lambda: tf.constant(1.0, "double"),
    lambda: tf.convert_to_tensor(np.ones(2), tf.float64),
    lambda: tf.Variable(1.0, dtype=tf.float64),
    lambda: tf.cast(tf.constant(1.0), tf.float64),
    lambda: tf.cast([1.0], tf.complex128),
    lambda: tf.zeros([2], np.float64),
    lambda: tf.zeros([2], np.ones(2).dtype),
    lambda: tf.constant([1, 2], np.dtype("float64")),
    lambda: tf.Variable(1.0, dtype=np.dtype("complex128")),
    lambda: tf.one_hot([1], 3, dtype=tf.float64),
    lambda: tf.random.normal([2], dtype=tf.float64),
    lambda: tf.random.stateless_uniform([2], [1, 2], dtype=tf.float64),
    lambda: tf.TensorSpec([2], tf.float64),
    lambda: tf.strings.to_number("0.1", tf.float64),
    lambda: tf.io.decode_raw(b"12345678", tf.float64),
    lambda: tf.io.decode_csv(["0.1"], [tf.float64]),
    lambda: tf.bitcast([1, 2], tf.int64),
    lambda: tf.timestamp(),
    lambda: tf.numpy_function(np.float64, [1.0], tf.float64),
    lambda: tf.keras.metrics.Mean(dtype="float64"),
    lambda: tf.function(lambda x: tf.cast(x, tf.float64))(tf.constant(1.0)),
])  # fmt: skip
def test_what_is_requested_with_64_bits_is_refused(make):
    with pytest.raises(Exception, match=OFF):
        make()


@pytest.mark.parametrize("make", [
    lambda: tf.constant(BIG),
    lambda: tf.constant(BIG, tf.int64),
    lambda: tf.constant([1, BIG]),
    lambda: tf.constant(np.array([BIG])),
    lambda: tf.constant(np.array([BIG]), tf.int64),
    lambda: tf.constant(np.array([2**32], np.uint64)),
    lambda: tf.constant(np.array([1e300])),
    lambda: tf.cast(BIG, tf.float32),
    lambda: tf.Variable(1, dtype=tf.int64).assign(BIG),
    lambda: tf.strings.to_number("3000000000", tf.int64),
    lambda: tf.strings.to_hash_bucket_fast("a", BIG),
    lambda: tf.io.decode_raw(b"12345678", tf.int64),
    lambda: tf.io.decode_csv(["3000000000"], [tf.int64]),
    lambda: example(BIG),
    lambda: table(BIG),
    lambda: tf.data.Dataset.from_tensor_slices(np.array([BIG])),
    lambda: list(tf.data.Dataset.range(1).enumerate(BIG)),
    lambda: tf.random.Generator.from_seed(BIG),
    lambda: tf.random.stateless_uniform([2], [BIG, 1]),
    lambda: tf.SparseTensor([[BIG]], [1.0], [BIG + 1]),
    lambda: tf.function(lambda x: x)(np.array([BIG])),
    lambda: tf.function(lambda: tf.constant(BIG))(),
])  # fmt: skip
def test_a_number_that_has_more_bits_is_refused(make):
    with pytest.raises(Exception, match=f"outside of .*{OFF}"):
        make()


@pytest.mark.parametrize("make", [
    lambda: tf.constant(np.array([1, 2])),
    lambda: tf.constant(1, tf.int64),
    lambda: tf.constant(1, np.dtype("int64")),
    lambda: tf.random.uniform([2], 0, 10, np.dtype("int64")),
    lambda: tf.Variable(1, dtype=tf.int64),
    lambda: tf.argmax([1.0, 2.0]),
    lambda: tf.where([True]),
    lambda: tf.size([1.0], out_type=tf.int64),
    lambda: tf.math.count_nonzero([1]),
    lambda: tf.range(3, dtype=tf.int64),
    lambda: tf.ragged.constant([[1], [2, 3]]).row_splits,
    lambda: tf.ragged.constant([[1], [2, 3]]).row_lengths() + tf.constant(1, tf.int64),
    lambda: tf.sparse.from_dense([[1.0, 0.0]]).indices,
    lambda: next(iter(tf.data.Dataset.range(3))),
    lambda: tf.data.Dataset.range(3).element_spec,
    lambda: tf.data.Dataset.range(3).cardinality(),
    lambda: tf.random.uniform([2], 0, 10, tf.int64),
    lambda: tf.random.Generator.from_seed(1).make_seeds(2),
    lambda: tf.strings.to_number("3", tf.int64),
    lambda: tf.io.decode_raw(b"\1\0\0\0\0\0\0\0", tf.int64),
    lambda: tf.io.parse_tensor(tf.io.serialize_tensor(tf.constant(1, tf.int64)), tf.int64),
    lambda: example(7),
    lambda: table(7),
    lambda: tf.numpy_function(np.int64, [1.0], tf.int64),
    lambda: tf.function(lambda x: tf.numpy_function(np.int64, [x], tf.int64))(tf.constant(1.0)),
    lambda: tf.function(lambda x: x, [tf.TensorSpec([None], "int64")])(np.arange(2)),
])  # fmt: skip
def test_int64_is_int32(make):
    assert make().dtype == tf.int32


def test_numpys_float64_becomes_float32_as_in_jax():
    given = tf.data.Dataset.from_tensor_slices(np.array([0.5, 0.25]))
    for made in (tf.constant(np.array([0.5])), tf.divide(1, 2), next(iter(given)), 1j * 0.5):
        assert tf.convert_to_tensor(made).dtype in (tf.float32, tf.complex64)
    assert given.element_spec == tf.TensorSpec((), tf.float32)


def test_types_stay_themselves():
    assert tf.int64 == "int64"
    assert tf.int64 != "int32"
    assert pickle.loads(pickle.dumps(tf.float64)) is tf.float64
    assert tf.as_dtype(np.arange(2).dtype) is tf.int32  # as of np.int64


def test_float32_is_drawn_as_with_64_bits():
    def draws():
        tf.random.set_seed(5)
        generator = tf.random.Generator.from_seed(3)
        made = [tf.random.normal([7]), tf.random.uniform([2, 3]), generator.truncated_normal([5])]
        logits = tf.math.log([[0.1, 0.7, 0.2]])
        return [*(x.numpy() for x in made), tf.random.categorical(logits, 40).numpy()]

    with jax.enable_x64(True):
        wide = draws()
    for x, y in zip(draws(), wide, strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_seed_is_set_for_functions_that_were_traced_with_64_bits():
    draw = tf.function(lambda: tf.random.uniform([]))
    with jax.enable_x64(True):
        tf.random.set_seed(5)
        first = draw()
    tf.random.set_seed(5)
    with jax.enable_x64(True):
        assert draw() == first != draw()


def test_a_stream_never_goes_back():
    old = jax.numpy.zeros(3, np.int32)
    seen = [old]
    for count in (1, 2**23, 2**24, 2**24, 2**30, 2**31 - 1):
        seen.append(streams.advance(seen[-1], np.asarray(count)))
    low, high = (np.array([np.asarray(x)[i] for x in seen], np.int64) for i in (0, 1))
    places = (high << 32) + (low & 0xFFFFFFFF)
    assert (np.diff(places) == 256 * np.array([1, 2**23, 2**24, 2**24, 2**30, 2**31 - 1])).all()


def test_the_door_says_once_that_an_accelerator_emulates(run_python):
    code = "import jax; jax.default_backend = lambda: 'tpu'\n"
    code += "import jaxvars.tf as tf\ntf.square(2.0); tf.sqrt(2.0); tf.add(1, 2)"
    wide = run_python("-c", code, JAX_ENABLE_X64="1").stderr
    assert wide.count("this program runs on a tpu. A TPU emulates them") == 1
    assert "JAX_ENABLE_X64=0 in the environment leaves them off" in wide
    assert run_python("-c", code, JAX_ENABLE_X64="0").stderr == ""


def test_a_cpu_is_no_accelerator(caplog):
    dtypes.note_platform.cache_clear()
    with jax.enable_x64(True):
        dtypes.note_platform("cpu")
    assert not caplog.records


def test_the_environment_is_respected_and_so_is_jax_after_the_import(run_python):
    code = "import jax, jaxvars.tf as tf\nprint(jax.config.jax_enable_x64)"
    code += "\njax.config.update('jax_enable_x64', False)\nprint(tf.constant(1, tf.int64).dtype)"
    env = {"JAX_ENABLE_X64": "0"}
    assert run_python("-c", code, **env).stdout.split("\n")[0] == "False"
    unset = "import os; os.environ.pop('JAX_ENABLE_X64')\n"
    assert run_python("-c", unset + code).stdout == "True\n<dtype: 'int32'>\n"


def test_every_operation_is_right_or_refused_in_a_process_of_its_own(run_python):
    program = Path(__file__).with_name("narrow_program.py")
    done = run_python(str(program), "1", JAX_ENABLE_X64="0", timeout=1200)
    assert done.stdout, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {}

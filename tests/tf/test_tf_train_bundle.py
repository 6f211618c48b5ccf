"""Checkpoints that TensorFlow 2.21 and Keras 2 wrote (`tests/goldens/make_tf_checkpoints.py`)."""

from __future__ import annotations

import json
import os
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

import jaxvars.tf as tf
from jaxvars.tf.io.records import masked_crc32c

FOLDER = Path(__file__).resolve().parents[1] / "goldens" / "tf_checkpoints"
WRITTEN = json.loads((FOLDER / "values.json").read_text("utf-8"))
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def value(prefix, key):
    return tf.train.load_variable(FOLDER / prefix, key)


# ---------------------------------------------------------------- values
@pytest.mark.parametrize("prefix", WRITTEN)
def test_values_are_those_that_tensorflow_reads(prefix):
    reader, expected = tf.train.load_checkpoint(str(FOLDER / prefix)), WRITTEN[prefix]
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    assert types.keys() - {"_CHECKPOINTABLE_OBJECT_GRAPH"} == expected.keys()
    for key, (name, shape, values) in expected.items():
        found = reader.get_tensor(key)
        assert (types[key].name, shapes[key]) == (name, shape), key
        assert str(found if isinstance(found, bytes) else found.tolist()) == values, key
        assert reader.has_tensor(key)
    listed = tf.train.list_variables(FOLDER / prefix)
    assert listed == sorted((key, shapes[key]) for key in shapes)


def test_one_call_reads_both_kinds(tmp_path):
    own = tf.train.Checkpoint(w=tf.Variable([1.0, 2.0])).write(tmp_path / "own")
    for path in (own, str(FOLDER / "run" / "ckpt-3")):
        assert tf.train.load_checkpoint(path).has_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")
    assert value("run", f"save_counter{VALUE}") == 3  # a folder: its latest
    with pytest.raises(tf.errors.NotFoundError, match="Key m/x not found in checkpoint"):
        value("run", "m/x")


def test_an_iterators_state_is_left_over_and_named():
    key, v = "it/.ATTRIBUTES/ITERATOR_STATE", tf.Variable(0)
    reader = tf.train.load_checkpoint(FOLDER / "iterator")
    assert reader.has_tensor(key)
    with pytest.raises(tf.errors.DataLossError, match=f"{key}: it has a type that jaxvars has not"):
        reader.get_tensor(key)
    status = tf.train.Checkpoint(v=v).read(str(FOLDER / "iterator")).expect_partial()
    assert v.numpy() == -7
    with pytest.raises(AssertionError, match=f"no variable has taken the value {key}"):
        status.assert_consumed()


# ---------------------------------------------------------------- damage
def copy_of(prefix, folder):
    for path in FOLDER.glob(f"{prefix}.*"):
        shutil.copy(path, folder)
    return folder / prefix


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("prefix", ["types", "shards"])
def test_each_flipped_bit_of_the_values_is_an_error_that_names_the_tensor(prefix, tmp_path):
    for data in sorted(FOLDER.glob(f"{prefix}.data*")):
        for place in range(0, data.stat().st_size, 7):
            path = copy_of(prefix, tmp_path)
            flip(tmp_path / data.name, place)
            reader = tf.train.load_checkpoint(path)
            errors = [error_of(reader, key) for key in reader.get_variable_to_shape_map()]
            assert sum(map(bool, errors)) == 1, (data.name, place)


def error_of(reader, key):
    try:
        reader.get_tensor(key)
    except tf.errors.DataLossError as error:
        return key in str(error)


def test_each_flipped_bit_of_the_index_is_an_error(tmp_path):
    size = (FOLDER / "types.index").stat().st_size
    for place in [*range(0, size - 42, 3), *range(size - 8, size)]:  # zeros are between them
        path = copy_of("types", tmp_path)
        flip(tmp_path / "types.index", place)
        with pytest.raises(tf.errors.DataLossError, match="is damaged"):
            tf.train.load_checkpoint(path)


def test_what_is_cut_off_or_gone_is_named(tmp_path):
    path = copy_of("shards", tmp_path)
    (tmp_path / "shards.data-00001-of-00003").unlink()
    with pytest.raises(
        tf.errors.DataLossError, match=r"large.*the file .*00001-of-00003.* does not exist"
    ):
        tf.train.load_variable(path, f"large{VALUE}")
    path = copy_of("types", tmp_path)
    data = tmp_path / "types.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:5])
    v = tf.Variable([0.0, 0.0], dtype=tf.float64)
    checkpoint = tf.train.Checkpoint(float64=v)
    with pytest.raises(tf.errors.DataLossError, match="ends before it"):
        tf.train.load_variable(path, f"string{VALUE}")
    with pytest.raises(tf.errors.DataLossError, match="is damaged: _CHECKPOINTABLE_OBJECT_GRAPH"):
        checkpoint.read(path)
    index = tmp_path / "types.index"
    index.write_bytes(index.read_bytes()[:100])
    with pytest.raises(tf.errors.DataLossError, match="not the index of a checkpoint"):
        tf.train.load_checkpoint(path)


def test_a_compressed_index_is_refused(tmp_path):
    path = copy_of("types", tmp_path)
    index = tmp_path / "types.index"
    data = bytearray(index.read_bytes())
    place = data.index(struct.pack("<I", masked_crc32c(bytes(data[:-48])[: first_block(data)])))
    data[place - 1] = 1
    data[place : place + 4] = struct.pack("<I", masked_crc32c(bytes(data[:place])))
    index.write_bytes(data)
    with pytest.raises(tf.errors.DataLossError, match="its index is compressed"):
        tf.train.load_checkpoint(path)


def first_block(data):
    """Return the size of the first block and its kind."""
    ends = range(4, len(data) - 52)
    return next(
        end for end in ends
        if struct.unpack_from("<I", data, end)[0] == masked_crc32c(bytes(data[:end]))
    )  # fmt: skip


# ---------------------------------------------------------------- objects
def test_objects_are_matched_by_the_graph():
    module = tf.Module()
    module.w, module.layers = tf.Variable([0.0, 0.0]), [tf.Variable(0)]
    checkpoint = tf.train.Checkpoint(m=module)
    checkpoint.restore(str(FOLDER / "run" / "ckpt-2")).assert_consumed()
    assert (module.w.numpy().tolist(), module.layers[0].numpy()) == ([3.0, 4.0], 3)
    assert checkpoint.save_counter.numpy() == 2
    for path in (FOLDER / "saved", FOLDER / "saved" / "variables" / "variables"):
        module.w.assign([0.0, 0.0])
        tf.train.Checkpoint(module).read(str(path)).expect_partial().assert_nontrivial_match()
        assert module.w.numpy().tolist() == [4.0, 5.0]
    assert tf.train.CheckpointView(str(FOLDER / "run" / "ckpt-2")).children(0)["m"]


def test_all_types_are_restored():
    rows = {k: row for k, row in WRITTEN["types"].items() if not k.startswith("nest")}
    made = {
        key.removesuffix(VALUE): tf.Variable(tf.zeros(shape, name) if name != "string" else
                                             tf.fill(shape, ""), dtype=name)
        for key, (name, shape, _) in rows.items()
    }  # fmt: skip
    status = tf.train.Checkpoint(**made, nest=[{"x": made["int32"]}]).read(str(FOLDER / "types"))
    status.assert_consumed()
    for name, variable in made.items():
        assert str(variable.numpy().tolist()) == rows[f"{name}{VALUE}"][2], name


def test_bytes_that_are_not_text_and_a_state_that_no_object_takes():
    words = tf.Variable(["", ""])
    status = tf.train.Checkpoint(words=words).read(str(FOLDER / "state")).expect_partial()
    assert words.numpy().tolist() == [b"\xfe", "\U0010fffe".encode()]
    with pytest.raises(AssertionError, match=r"\(root\)\.state: .* state/\.ATTRIBUTES/py_state\.$"):
        status.assert_consumed()


def test_a_variable_in_parts_is_restored():
    large = tf.Variable(tf.zeros([20, 6]))
    status = tf.train.Checkpoint(large=large).read(str(FOLDER / "shards")).expect_partial()
    assert large.numpy().tolist() == np.arange(120.0).reshape(20, 6).tolist()
    with pytest.raises(AssertionError, match=rf"\(root\).small: .* small{VALUE}"):
        status.assert_consumed()
    with pytest.raises(ValueError, match="incompatible tensor with shape"):
        tf.train.Checkpoint(large=tf.Variable([1.0])).read(str(FOLDER / "shards"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"tensor_name = large{VALUE}; "):
        tf.train.Checkpoint(large=tf.Variable(tf.zeros([20, 6], tf.float64))).read(
            str(FOLDER / "shards")
        )


def test_a_savers_checkpoint_is_matched_by_names():
    w, table = (
        tf.Variable(tf.zeros([2, 2]), name="net/w"),
        tf.Variable(tf.zeros([7, 3]), name="table"),
    )
    step = tf.Variable(0, name="global_step", dtype=tf.int64)
    status = tf.train.Checkpoint(a=w, b=[table]).read(str(FOLDER / "saver")).expect_partial()
    assert w.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert str(table.numpy().tolist()) == WRITTEN["saver"]["table"][2]
    status.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match=r"the value global_step\.$"):
        status.assert_consumed()
    all_of_it = tf.train.Checkpoint(a=w, b=[table], step=step)
    all_of_it.read(str(FOLDER / "saver")).assert_consumed()
    two = tf.train.Checkpoint(a=w, b=tf.Variable(tf.zeros([2, 2]), name="net/w"))
    with pytest.raises(AssertionError, match="2 Python objects that were not bound"):
        two.read(str(FOLDER / "saver")).expect_partial().assert_existing_objects_matched()


# ---------------------------------------------------------------- optimizers
def test_a_keras_model_and_its_optimizer():
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Input((3,)), layers.Dense(4, "relu"), layers.Dropout(0.5), layers.Dense(2)]
    )
    optimizer = tf.keras.optimizers.Adam(0.5)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    checkpoint.restore(str(FOLDER / "keras-1"))
    optimizer.build(model.trainable_variables)
    status = checkpoint.restore(str(FOLDER / "keras-1"))
    with pytest.raises(AssertionError, match=r"1 Python objects that .*seed_generator_state"):
        status.assert_consumed()  # TensorFlow does not save that one
    key = "optimizer/_trainable_variables/2"
    assert model.layers[-1].kernel.numpy().tolist() == value("keras-1", f"{key}{VALUE}").tolist()
    slots = {v.path if hasattr(v, "path") else v.name: v for v in optimizer.variables}
    assert (optimizer.iterations.numpy(), optimizer.learning_rate.numpy()) == (1, 0.25)
    found = sorted(str(v.numpy().tolist()) for v in slots.values())
    wanted = sorted(
        row[2] for key, row in WRITTEN["keras-1"].items()
        if key.startswith(("optimizer/_variables", "optimizer/_it", "optimizer/_learn"))
    )  # fmt: skip
    assert found == wanted


def test_the_optimizer_of_a_compiled_model():
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Input((3,)), layers.Dense(4, "relu"), layers.Dropout(0.5), layers.Dense(2)]
    )
    optimizer = tf.keras.optimizers.Adam(0.5)
    model.compile(optimizer, "mse")
    optimizer.build(model.trainable_variables)
    path = str(FOLDER / "keras-1")
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    status = checkpoint.restore(path).expect_partial()
    assert (optimizer.iterations.numpy(), optimizer.learning_rate.numpy()) == (1, 0.25)
    for number in range(2, 10):
        saved = value("keras-1", f"optimizer/_variables/{number}{VALUE}").tolist()
        assert saved in [v.numpy().tolist() for v in optimizer.variables]
    with pytest.raises(AssertionError, match="not bound to checkpointed values"):
        status.assert_consumed()  # TensorFlow saves no seed, and Keras's loss


def trained(optimizer):
    """Return where a variable is after two steps of Keras 2, the first in the checkpoint."""
    w = tf.Variable([1.0, 2.0], name="w")
    for _ in range(2):
        optimizer.apply_gradients([(tf.constant([1.0, 2.0]), w)])
    return w.numpy()


def test_a_keras_optimizer_of_variables_of_tensorflow():
    v, w, optimizer = tf.Variable([0.0, 0.0]), tf.Variable(0.0), tf.keras.optimizers.Adam()
    checkpoint = tf.train.Checkpoint(v=v, w=w, optimizer=optimizer)
    status = checkpoint.read(str(FOLDER / "module"))
    optimizer.build([w, v])  # another order
    status.assert_consumed()
    for number, own in zip((2, 3, 4, 5), (4, 5, 2, 3), strict=True):
        saved = value("module", f"optimizer/_variables/{number}{VALUE}")
        np.testing.assert_array_equal(optimizer.variables[own].numpy(), saved)


def test_slots_of_keras_2_are_restored_and_the_rest_is_named():
    w, optimizer = tf.Variable([0.0, 0.0], name="w"), tf.keras.optimizers.Adam(0.5)
    optimizer.build([w])
    status = tf.train.Checkpoint(w=w, optimizer=optimizer).read(str(FOLDER / "old_adam"))
    status.expect_partial().assert_existing_objects_matched()
    assert optimizer.iterations.numpy() == 1
    optimizer.apply_gradients([(tf.constant([1.0, 2.0]), w)])
    np.testing.assert_allclose(w, trained(tf.keras.optimizers.Adam(0.25)), rtol=1e-5)
    with pytest.raises(AssertionError, match=r"optimizer.beta_1: "):
        status.assert_consumed()


@pytest.mark.parametrize("name", ["old_new", "old_one"])
def test_slots_that_mean_something_else_are_left_over(name):
    w = tf.Variable([0.0, 0.0], name="w")
    kinds = {"old_new": tf.keras.optimizers.Adam(0.5), "old_one": tf.keras.optimizers.SGD(0.5, 0.5)}
    kinds[name].build([w])
    checkpoint = tf.train.Checkpoint(w=w, optimizer=kinds[name])
    status = checkpoint.read(str(FOLDER / name)).expect_partial()
    with pytest.raises(AssertionError, match=r"not bound.*momentum:0.*0\., 0\."):
        status.assert_consumed()
    assert w.numpy().tolist() == value(name, f"w{VALUE}").tolist()


# ---------------------------------------------------------------- folders
def test_a_program_goes_on_in_a_folder_of_tensorflows(tmp_path):
    shutil.copytree(FOLDER / "run", tmp_path / "훈련")
    folder = str(tmp_path / "훈련")
    assert tf.train.latest_checkpoint(folder) == f"{folder}/ckpt-3"
    state = tf.train.get_checkpoint_state(folder)
    assert state.model_checkpoint_path == f"{folder}/ckpt-3"
    module = tf.Module()
    module.w, module.layers = tf.Variable([0.0, 0.0]), [tf.Variable(0)]
    checkpoint = tf.train.Checkpoint(m=module)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=1)
    assert manager.restore_or_initialize() == f"{folder}/ckpt-3"
    assert manager.save() == manager.latest_checkpoint == f"{folder}/ckpt-4"
    assert manager.save() == tf.train.latest_checkpoint(folder) == f"{folder}/ckpt-5"
    assert {path.name for path in tmp_path.rglob("ckpt-*")} > {"ckpt-2.index", "ckpt-3.index"}


def test_the_file_that_lists_checkpoints_may_have_quoted_and_whole_paths(tmp_path):
    for end in ("index", "data-00000-of-00001"):
        shutil.copy(FOLDER / f"types.{end}", tmp_path / f"모델-1.{end}")
        shutil.copy(FOLDER / f"types.{end}", tmp_path / f"a-2.{end}")
    quoted = "".join(f"\\{byte:o}" for byte in "모델-1".encode())
    note = tmp_path / "checkpoint"
    note.write_text(
        f'model_checkpoint_path: "/there/is/none/{quoted}"\n'
        'all_model_checkpoint_paths: "gone-1"\nall_model_checkpoint_paths: "a-2"\n'
    )
    assert tf.train.latest_checkpoint(tmp_path) == f"{tmp_path}/모델-1"
    note.write_text("")
    assert tf.train.latest_checkpoint(tmp_path) is None


def test_damage_changes_nothing(tmp_path):
    module = tf.Module()
    module.w, module.layers = tf.Variable([0.0, 0.0]), [tf.Variable(0)]
    checkpoint = tf.train.Checkpoint(m=module)
    for key in (f"save_counter{VALUE}", f"m/w{VALUE}"):
        shutil.copytree(FOLDER / "run", tmp_path / "run", dirs_exist_ok=True)
        path, data = str(tmp_path / "run" / "ckpt-3"), tmp_path / "run/ckpt-3.data-00000-of-00001"
        flip(data, data.read_bytes().index(value(path, key).tobytes()))
        with pytest.raises(tf.errors.DataLossError, match=f"{key}: corrupt: its checksum is 0x"):
            checkpoint.restore(path)
        assert (module.w.numpy().tolist(), checkpoint.save_counter.numpy()) == ([0.0, 0.0], 0)


def test_of_two_kinds_with_one_prefix_the_later_is_read(tmp_path):
    path = copy_of("types", tmp_path)
    tf.train.Checkpoint(int32=tf.Variable(5)).write(path)
    for time_ns, number in ((1, 5), (2**62, -7)):
        os.utime(f"{path}.index", ns=(time_ns, time_ns))
        assert tf.train.load_variable(path, f"int32{VALUE}") == number


# ---------------------------------------------------------------- the first format
def test_a_checkpoint_of_the_first_format_is_restored_and_is_a_folders_latest(tmp_path):
    for path in FOLDER.glob("first*"):
        shutil.copy(path, tmp_path)
    table = tf.Variable(tf.zeros([7, 3]), name="net/table")
    path = str(tmp_path / "first")
    tf.train.Checkpoint(table).read(path).assert_existing_objects_matched().expect_partial()
    assert table.numpy().tolist() == value("saver", "table").tolist()
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "first"\n')
    assert tf.train.latest_checkpoint(tmp_path) == path
    shards = f"{tmp_path}/first_shards-?????-of-00002"
    (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "{shards}"\n')
    assert tf.train.latest_checkpoint(tmp_path) == shards
    (tmp_path / "first_shards-00001-of-00002").unlink()
    with pytest.raises(tf.errors.DataLossError, match="there are 1 of its 2 files"):
        tf.train.load_checkpoint(shards)


@pytest.mark.parametrize("at", [0, 60, 200, 800, -60, -48, -1])
def test_a_damaged_byte_of_the_first_format_is_found(tmp_path, at):
    data = bytearray((FOLDER / "first").read_bytes())
    data[at] ^= 4
    (tmp_path / "x").write_bytes(data)
    with pytest.raises((tf.errors.DataLossError, tf.errors.NotFoundError)):
        tf.train.load_checkpoint(str(tmp_path / "x"))

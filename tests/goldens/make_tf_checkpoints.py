"""Write checkpoints as TensorFlow does, and what is in them, into tests/goldens/tf_checkpoints.

    python tests/goldens/make_tf_checkpoints.py    # needs TensorFlow 2.21 and tf_keras

Rules of this file:
- it is run manually; TensorFlow is not a dependency, and no test needs it.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
FOLDER = Path(__file__).resolve().parent / "tf_checkpoints"
TYPES = {
    "bfloat16": [1.5, -2.0], "float16": [0.5, 65504.0], "float32": [[1.0, 2.0], [3.0, 4.0]],
    "float64": 0.1, "bool": [True, False, True], "int8": [-128, 127], "uint16": [0, 65535],
    "int32": -7, "int64": [2**40, -1], "uint64": 2**63, "complex64": [1 + 2j],
    "complex128": 3 - 4j, "string": [["a", "가나"], ["", "long " * 60]],
}  # fmt: skip


FIRST = ["first", "first_shards-?????-of-00002"]
NOT_FIRST = ("bfloat16", "uint64")  # which its first format has not


def main() -> None:
    import tensorflow as tf

    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    write_types(tf)
    write_state(tf)
    write_run(tf)
    write_keras(tf)
    write_module(tf)
    write_old_keras(tf)
    write_saver(tf)
    write_first_saver(tf)
    found = sorted(FOLDER.rglob("*.index"))
    prefixes = [str(path.relative_to(FOLDER)).removesuffix(".index") for path in found] + FIRST
    rows = {prefix: list_values(tf, prefix) for prefix in prefixes}
    lines = [f"{json.dumps(prefix)}: {json.dumps(values)}" for prefix, values in rows.items()]
    (FOLDER / "values.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def list_values(tf, prefix):
    """Return what TensorFlow reads: type, shape and values, by key."""
    reader = tf.train.load_checkpoint(str(FOLDER / prefix))
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    return {
        key: [types[key].name, shape, str(to_lists(read(tf, prefix, key, types[key]).numpy()))]
        for key, shape in sorted(shapes.items())
        if key != "_CHECKPOINTABLE_OBJECT_GRAPH" and types[key].name != "variant"
    }


def to_lists(value):
    return value if isinstance(value, bytes) else value.tolist()


def read(tf, prefix, key, dtype):
    """Return a value; the reader has not all types of the first format."""
    return tf.raw_ops.RestoreV2(
        prefix=str(FOLDER / prefix), tensor_names=[key], shape_and_slices=[""], dtypes=[dtype]
    )[0]


def write_types(tf):
    made = {name: tf.Variable(tf.constant(x, name), name=name) for name, x in TYPES.items()}
    empty = tf.Variable(tf.zeros([0, 3]))
    large = tf.Variable(tf.reshape(tf.range(120.0), [20, 6]))
    checkpoint = tf.train.Checkpoint(**made, empty=empty, large=large, nest=[{"x": made["int32"]}])
    checkpoint.write(str(FOLDER / "types"))
    iterator = iter(tf.data.Dataset.range(5))
    tf.train.Checkpoint(it=iterator, v=made["int32"]).write(str(FOLDER / "iterator"))
    policy = tf.train.experimental.MaxShardSizePolicy(max_shard_size=200)  # parts of `large`
    options = tf.train.CheckpointOptions(experimental_sharding_callback=policy)
    parts = tf.train.Checkpoint(large=large, small=made["float32"])
    parts.write(str(FOLDER / "shards"), options)


def write_state(tf):
    class State(tf.train.experimental.PythonState):
        def serialize(self):
            return b"\xff\x00a"

        def deserialize(self, string_value):
            pass

    words = tf.Variable([b"\xfe", "\U0010fffe".encode()])  # the first is not UTF-8
    tf.train.Checkpoint(state=State(), words=words).write(str(FOLDER / "state"))


def write_run(tf):
    module = tf.Module()
    module.w, module.layers = tf.Variable([1.0, 2.0]), [tf.Variable(3)]
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(m=module), FOLDER / "run", 2)
    for _ in range(3):
        module.w.assign_add([1.0, 1.0])
        manager.save()
    tf.saved_model.save(module, FOLDER / "saved")
    for path in ("saved_model.pb", "fingerprint.pb", "assets"):
        whole = FOLDER / "saved" / path
        shutil.rmtree(whole) if whole.is_dir() else whole.unlink(missing_ok=True)


def write_keras(tf):
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Input((3,)), layers.Dense(4, "relu"), layers.Dropout(0.5), layers.Dense(2)]
    )
    optimizer = tf.keras.optimizers.Adam(0.25)
    train(tf, model, optimizer)
    tf.train.Checkpoint(model=model, optimizer=optimizer).save(str(FOLDER / "keras"))


def write_module(tf):
    """Write variables of TensorFlow, one without a name, and their optimizer, of Keras."""
    v, w = tf.Variable([1.0, 2.0]), tf.Variable(3.0, name="w")
    optimizer = tf.keras.optimizers.Adam()
    optimizer.apply_gradients([(tf.constant([1.0, 2.0]), v), (tf.constant(4.0), w)])
    tf.train.Checkpoint(v=v, w=w, optimizer=optimizer).write(str(FOLDER / "module"))


def write_old_keras(tf):
    import tf_keras

    optimizers = {
        "adam": tf_keras.optimizers.legacy.Adam(0.25),
        "new": tf_keras.optimizers.Adam(0.25),
        "one": tf.compat.v1.train.MomentumOptimizer(0.25, 0.5),
    }
    for name, optimizer in optimizers.items():
        w = tf.Variable([1.0, 2.0], name="w")
        optimizer.apply_gradients([(tf.constant([1.0, 2.0]), w)])
        tf.train.Checkpoint(w=w, optimizer=optimizer).write(str(FOLDER / f"old_{name}"))
    model = tf_keras.Sequential([tf_keras.layers.Dense(2, input_shape=(3,))])
    model.save_weights(str(FOLDER / "old_model"))
    (FOLDER / "checkpoint").unlink()


def train(tf, model, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(tf.ones((4, 3)), training=True) ** 2)
    found = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(found, model.trainable_variables, strict=True))


def write_saver(tf):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("net", use_resource=True):
            v1.get_variable("w", initializer=tf.constant([[1.0, 2.0], [3.0, 4.0]]))
        split = v1.fixed_size_partitioner(3)
        start = v1.random_uniform_initializer(seed=1)
        v1.get_variable("table", [7, 3], partitioner=split, initializer=start)
        v1.train.get_or_create_global_step()
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(FOLDER / "saver"), write_meta_graph=False)
    (FOLDER / "checkpoint").unlink()


def write_first_saver(tf):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        named = {name: tf.constant(x, name) for name, x in TYPES.items() if name not in NOT_FIRST}
        made = {name: v1.get_variable(name, initializer=x) for name, x in named.items()}
        made["empty"] = v1.get_variable("empty", initializer=tf.zeros([0, 3]))
        split = v1.fixed_size_partitioner(3)
        start = v1.random_uniform_initializer(seed=1)
        table = v1.get_variable("table", [7, 3], partitioner=split, initializer=start)
        session.run(v1.global_variables_initializer())
        for name, saved in (
            ("first", {**made, "net/table": table}),
            ("first_shards-00000-of-00002", {"x": made["int64"]}),
            ("first_shards-00001-of-00002", {"y": made["string"], "net/table": table}),
        ):
            saver = v1.train.Saver(saved, write_version=v1.train.SaverDef.V1)
            saver.save(session, str(FOLDER / name), write_meta_graph=False)
    (FOLDER / "checkpoint").unlink()


if __name__ == "__main__":
    main()

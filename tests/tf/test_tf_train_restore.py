"""`tf.train.Checkpoint.restore`: which object gets which value, and when."""

from __future__ import annotations

import copy
import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxvars as jv
import jaxvars.tf as tf
from jaxvars.errors import CheckpointWarning

VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class Thing:
    """A plain object."""

    v: Any


def thing(value: Any) -> Thing:
    made = Thing()
    made.v = tf.Variable(value)
    return made


# ---------------------------------------------------------------- variables and time
def test_a_variable_that_is_older_has_its_value_when_it_is_attached(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).save(tmp_path / "c")
    old, unrelated = tf.Variable(0.0), tf.Variable(5.0)
    checkpoint = tf.train.Checkpoint(a=tf.Variable(0.0))
    status = checkpoint.restore(path)
    old.assign(-1.0)
    checkpoint.b = old
    assert old.numpy() == 2.0
    status.assert_consumed()
    assert unrelated.numpy() == 5.0


def test_the_last_restore_counts_whichever_is_found_first(tmp_path: Path) -> None:
    saved = tf.train.Checkpoint(dep=thing(12.0))
    paths = [saved.save(tmp_path / "a")]
    saved.dep.v.assign(13.0)
    paths.append(saved.save(tmp_path / "b"))
    for order in ([0, 1], [1, 0]):
        roots = [tf.train.Checkpoint(), tf.train.Checkpoint()]
        statuses = {i: roots[i].restore(paths[i]) for i in order}
        dep = thing(0.0)
        for i in (0, 1):
            roots[i].dep = dep
            statuses[i].assert_consumed()
        assert dep.v.numpy() == (12.0, 13.0)[order[-1]]


def trained(steps: int) -> tuple[Any, Any]:
    made = thing([1.0, 1.0]), jv.optimizers.SGD(0.1, momentum=0.9)
    for _ in range(steps):
        step(*made)
    return made


def step(model: Any, optimizer: Any) -> list[float]:
    optimizer.apply_gradients([(model.v.numpy(), model.v.aliased)])
    return model.v.numpy().tolist()


@pytest.mark.parametrize("order", [["m", "o"], ["o", "m"], ["mo", "m"]])
def test_a_model_and_its_optimizer_may_have_checkpoints_of_their_own(
    tmp_path: Path, order: list[str]
) -> None:
    saved, objects = trained(3), trained(0)
    path = tf.train.Checkpoint(m=saved[0], o=saved[1]).write(str(tmp_path / "c"))
    for names in order:  # a restore of the model alone does not end what waits for slots
        restored = {name: objects["mo".index(name)] for name in names}
        tf.train.Checkpoint(**restored).read(path).expect_partial()
    assert step(*objects) == step(*saved)


# ---------------------------------------------------------------- objects
def test_one_object_can_be_several_that_were_saved(tmp_path: Path) -> None:
    one, two = Thing(), Thing()
    one.v, vars(two)["w"] = tf.Variable(1.0), tf.Variable(2.0)
    path = tf.train.Checkpoint(one=one, two=two).save(tmp_path / "c")
    both = Thing()
    both.v, vars(both)["w"] = tf.Variable(0.0), tf.Variable(0.0)
    tf.train.Checkpoint(one=both, two=both).restore(path).assert_consumed()
    assert (both.v.numpy(), vars(both)["w"].numpy()) == (1.0, 2.0)
    shared = tf.Variable(0.0)  # one variable, two values: the first
    path = tf.train.Checkpoint(a=tf.Variable(3.0), b=tf.Variable(4.0)).save(tmp_path / "d")
    tf.train.Checkpoint(a=shared, b=shared).restore(path).assert_consumed()
    assert shared.numpy() == 3.0


def test_what_is_not_a_variable_any_more_is_named(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).save(tmp_path / "c")
    checkpoint = tf.train.Checkpoint(a=Thing(), b=tf.Variable(0.0))
    status = checkpoint.restore(path).expect_partial()
    with pytest.raises(AssertionError, match=r"Unused attributes[^$]*\(root\).a"):
        status.assert_consumed()


def test_a_nontrivial_match_is_any_variable(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(a=tf.Variable(1.0)).write(tmp_path / "c")
    tf.train.Checkpoint(a=tf.Variable(0.0)).read(path).assert_nontrivial_match()
    status = tf.train.Checkpoint(b=tf.Variable(0.0)).read(path).expect_partial()
    with pytest.raises(AssertionError, match="Nothing except the root object matched"):
        status.assert_nontrivial_match()


def test_the_root(tmp_path: Path) -> None:
    root = thing(1.0)
    with pytest.raises(ValueError, match=r"keyword argument v if root.v already exists"):
        tf.train.Checkpoint(root, v=tf.Variable(2.0))
    tf.train.Checkpoint(root, v=root.v)
    checkpoint = tf.train.Checkpoint(weakref.ref(root))
    path = checkpoint.save(tmp_path / "c")
    root.v.assign(2.0)
    checkpoint.restore(path).assert_consumed()
    assert root.v.numpy() == 1.0
    assert checkpoint.root is root
    gone = weakref.ref(root)
    del root
    gc.collect()
    assert gone() is None


def test_a_copy_has_separate_objects(tmp_path: Path) -> None:
    v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(v=v)
    checkpoint.save(tmp_path / "a")
    copied = copy.deepcopy(checkpoint)
    copied.v.assign(2.0)
    assert v.numpy() == 1.0
    path = copied.save(tmp_path / "b")
    assert path.endswith("b-2")
    checkpoint.restore(path).assert_consumed()
    assert v.numpy() == 2.0


# ---------------------------------------------------------------- in functions, of saved models
def test_a_function_writes_each_time_it_is_run(tmp_path: Path) -> None:
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))

    @tf.function
    def step(prefix: Any) -> Any:
        checkpoint.v.assign_add(1.0)
        return checkpoint.write(prefix)

    prefix = str(tmp_path / "c")
    for value in (2.0, 3.0):
        assert step(tf.constant(prefix)).numpy() == prefix.encode()
        assert tf.train.load_variable(prefix, f"v{VALUE}") == value
    assert tf.train.latest_checkpoint(tmp_path) is None
    loaded = tf.train.Checkpoint(v=tf.Variable(0.0))
    loaded.read(prefix).assert_consumed()
    assert loaded.v.numpy() == 3.0
    with pytest.raises(tf.errors.NotFoundError, match="No such file or directory"):
        step(tf.constant(str(tmp_path / "none" / "c")))
    with pytest.raises(NotImplementedError, match=r"write\(prefix\)"):
        tf.function(lambda: checkpoint.save(prefix))()


def test_a_saved_model_is_restored_like_a_checkpoint(tmp_path: Path) -> None:
    model = tf.Module()
    model.a, model.b = tf.Variable([1.0, 2.0]), [tf.Variable(3)]
    tf.saved_model.save(model, tmp_path / "m")
    new = tf.Module()
    new.a = tf.Variable([0.0, 0.0])
    status = tf.train.Checkpoint(new).read(str(tmp_path / "m"))
    np.testing.assert_array_equal(new.a.numpy(), [1, 2])
    new.b = [tf.Variable(0)]
    assert new.b[0].numpy() == 3
    status.assert_existing_objects_matched()
    file = tmp_path / "m" / "saved_model.jaxvars"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(tf.errors.DataLossError, match="damaged"):
        tf.train.Checkpoint(new).restore(tmp_path / "m")


# ---------------------------------------------------------------- folders
def test_a_manager_goes_on_from_what_others_saved(tmp_path: Path) -> None:
    prefix = tmp_path / "unusual"
    first = tf.train.Checkpoint()
    others = [first.save(prefix), first.save(prefix)]
    checkpoint = tf.train.Checkpoint()
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
    assert manager.latest_checkpoint == others[1]
    assert manager.checkpoints == []
    checkpoint.restore(manager.latest_checkpoint).assert_consumed()
    paths = [manager.save() for _ in range(3)]
    assert manager.checkpoints == paths[1:] == [f"{tmp_path}/ckpt-4", f"{tmp_path}/ckpt-5"]
    state = tf.train.get_checkpoint_state(tmp_path)
    assert state is not None
    assert state.all_model_checkpoint_paths == paths[1:]
    assert sorted(state.all_model_checkpoint_timestamps) == state.all_model_checkpoint_timestamps
    assert all(Path(f"{path}.npz").exists() for path in others)
    fewer = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=1)
    assert fewer.checkpoints == paths[1:]  # until it saves
    assert fewer.save() == fewer.latest_checkpoint
    assert fewer.checkpoints == [f"{tmp_path}/ckpt-6"]


def test_what_reads_a_variable_to_say_its_children_is_found(tmp_path: Path) -> None:
    from jaxvars.tf.train.graph import Node

    class Reader(Node):
        """It reads its variable when its children are requested."""

        def __init__(self) -> None:
            self.own = tf.Variable(0.0)

        def children(self) -> Any:
            yield "own", self.own
            if float(self.own) < 0:
                yield "other", tf.Variable(0.0)

    path = tf.train.Checkpoint(reader=Reader(), late=tf.Variable(3.0)).save(tmp_path / "c")
    checkpoint = tf.train.Checkpoint(reader=Reader())
    checkpoint.restore(path)
    late = tf.Variable(0.0)
    checkpoint.late = late
    assert late.numpy() == 3.0


def test_a_checkpoint_of_another_model_restores_what_fits_and_says_the_rest(tmp_path: Path) -> None:
    tf.train.CheckpointManager(tf.train.Checkpoint(model=thing(1.0)), tmp_path, 3).save()
    other, called = Thing(), []
    other.other = tf.Variable(5.0)  # type: ignore[attr-defined]
    checkpoint = tf.train.Checkpoint(model=other)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, 3, init_fn=lambda: called.append(1))
    assert str(manager.restore_or_initialize()).endswith("ckpt-1")  # TensorFlow does the same
    assert (float(other.other), int(checkpoint.save_counter), called) == (5.0, 1, [])
    status = checkpoint.restore(manager.latest_checkpoint)
    with pytest.raises(AssertionError, match="Found 1 Python objects that were not bound"):
        status.assert_consumed()
    del manager, other, status
    with pytest.warns(CheckpointWarning, match="these values were never used: model/v"):
        del checkpoint


def test_a_function_writes_tables_and_iterators_as_they_are_when_it_is_run(tmp_path: Path) -> None:
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
    iterator = iter(tf.data.Dataset.range(10))
    checkpoint = tf.train.Checkpoint(table=table, iterator=iterator)

    @tf.function
    def save(key: Any) -> None:
        table.insert(key, tf.constant(7, tf.int64))
        checkpoint.write(str(tmp_path / "c"))

    save(tf.constant("a"))
    next(iterator)
    save(tf.constant("b"))
    table.remove(["a", "b"])
    next(iterator)
    checkpoint.read(str(tmp_path / "c")).assert_consumed()
    assert table.lookup(["a", "b"]).numpy().tolist() == [7, 7]
    assert next(iterator).numpy() == 1

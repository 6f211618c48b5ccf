"""`tf.train.experimental.PythonState`; what is expected was seen in TensorFlow 2.21."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import jaxvars.tf as tf

VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
STATE = "/.ATTRIBUTES/py_state"


class Place(tf.train.experimental.PythonState):
    """Keeps what it is given; knows what it was asked for."""

    def __init__(self, place: Any) -> None:
        self.place = place
        self.calls: list[Any] = []

    def serialize(self) -> Any:
        self.calls.append("serialize")
        return self.place

    def deserialize(self, string_value: Any) -> None:
        self.calls.append(string_value)
        self.place = string_value


@pytest.fixture
def path(tmp_path: Path) -> str:
    return tf.train.Checkpoint(s=Place("abc"), v=tf.Variable(1.0)).save(tmp_path / "c")


def test_the_keys_are_tensorflows(path: str, tmp_path: Path) -> None:
    keys = ["_CHECKPOINTABLE_OBJECT_GRAPH", f"s{STATE}", f"save_counter{VALUE}", f"v{VALUE}"]
    assert tf.train.list_variables(path) == [(key, []) for key in keys]
    assert tf.train.load_variable(path, f"s{STATE}") == b"abc"
    assert tf.train.load_checkpoint(path).get_variable_to_dtype_map()[f"s{STATE}"] == tf.string
    alone = tf.train.Checkpoint(Place(b"root")).write(tmp_path / "r")
    assert tf.train.load_variable(alone, STATE) == b"root"


@pytest.mark.parametrize(
    ("state", "given"),
    [("\u00e9", b"\xc3\xa9"), (b"\xff\x00", b"\xff\x00"), ("\U0010fffe", "\U0010fffe".encode())],
)
def test_the_state_is_given_as_the_bytes_that_were_written(
    state: Any, given: bytes, tmp_path: Path
) -> None:
    path = tf.train.Checkpoint(s=Place(state)).save(tmp_path / "c")
    tf.train.Checkpoint(s=(place := Place(""))).restore(path).assert_consumed()
    assert place.calls == [given]  # at once, and once


def test_each_restore_gives_the_state_again(path: str) -> None:
    checkpoint = tf.train.Checkpoint(s=(place := Place("")), v=tf.Variable(0.0))
    for _ in range(2):
        checkpoint.restore(path).assert_consumed()
        assert place.place == b"abc"
        place.place = b"trained"
    assert place.calls == [b"abc", b"abc"]


def test_one_that_is_put_in_later_has_its_state_when_it_is_used(path: str) -> None:
    checkpoint = tf.train.Checkpoint()
    status = checkpoint.restore(path)
    with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint \(root\)\.s: "):
        status.assert_consumed()
    place = Place("old")
    for _ in range(9):
        assert place.place == "old"
    checkpoint.s = place
    place.calls.append("new")  # not before the state
    assert place.calls == [b"abc", "new"]
    assert place.place == b"abc"
    place.place = "newer"
    checkpoint.v = tf.Variable(0.0)
    status.assert_consumed()
    assert place.place == "newer"


def test_one_that_is_not_in_the_checkpoint_is_named(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(v=tf.Variable(1.0)).save(tmp_path / "c")
    status = tf.train.Checkpoint(v=tf.Variable(0.0), s=(place := Place("own"))).restore(path)
    message = r"Found 1 Python objects that were not bound .* \[<.*\.Place object at"
    with pytest.raises(AssertionError, match=message):
        status.assert_consumed()
    status.assert_nontrivial_match()
    assert place.calls == []


def test_in_modules_lists_and_dicts_with_a_manager(tmp_path: Path) -> None:
    def make(words: str) -> Any:
        module = tf.Module()
        module.one, module.more = Place(f"1{words}"), [{"x": Place(f"2{words}")}]
        return module

    module, other = make("a"), make("b")
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(m=module), tmp_path, 1)
    manager.save()
    module.one.place = "3"
    path = manager.save()
    assert module.variables == ()
    tf.train.Checkpoint(m=other).restore(path).assert_consumed()
    assert (other.one.place, other.more[0]["x"].place) == (b"3", b"2a")
    assert tf.train.load_variable(path, f"m/more/0/x{STATE}") == b"2a"


def test_a_copy_has_a_state_of_its_own(path: str) -> None:
    first = Place("1")
    tf.train.Checkpoint(s=first).restore(path).expect_partial()
    second = copy.copy(first)
    second.place = "2"
    saved = tf.train.Checkpoint(a=first, b=second).write(f"{path}-both")
    found = [tf.train.load_variable(saved, f"{name}{STATE}") for name in "ab"]
    assert found == [b"abc", b"2"]


def test_a_program_writes_what_the_state_is_when_it_runs(tmp_path: Path) -> None:
    checkpoint = tf.train.Checkpoint(s=Place("1"), v=tf.Variable(1.0))

    @tf.function
    def step() -> None:
        checkpoint.v.assign_add(1.0)
        checkpoint.write(str(tmp_path / "c"))

    step()
    checkpoint.s.place = "2"
    step()
    found = [tf.train.load_variable(tmp_path / "c", key) for key in (f"s{STATE}", f"v{VALUE}")]
    assert found == [b"2", 3.0]


def test_what_is_no_string_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"Place\.serialize\(\) must return a string or bytes"):
        tf.train.Checkpoint(s=Place(5)).save(tmp_path / "c")
    assert not list(tmp_path.iterdir())


def test_an_error_of_deserialize_is_raised(path: str) -> None:
    class Broken(Place):
        def deserialize(self, string_value: Any) -> None:
            raise KeyError("bad")

    with pytest.raises(KeyError, match="bad"):
        tf.train.Checkpoint(s=Broken(""), v=tf.Variable(0.0)).restore(path)


def test_a_base_without_its_methods_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="abstract"):
        tf.train.experimental.PythonState()  # pyright: ignore[reportAbstractUsage] - that is tested
    with pytest.raises(AttributeError, match="a checkpoint is one file"):
        tf.train.experimental.MaxShardSizePolicy  # noqa: B018 - it is asked for

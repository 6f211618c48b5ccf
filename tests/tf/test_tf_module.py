"""`tf.Module` and `tf.name_scope`, where `tests/tf/programs/module.txt` does not reach."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import jaxvars as jv
from jaxvars import tf


class Layer(tf.Module):
    def __init__(self, size, name=None):
        super().__init__(name=name)
        with self.name_scope:
            self.w = tf.Variable(tf.ones(size), name="w")


class Plain:
    def __init__(self):
        self.hidden = tf.Variable(1.0)


class Model(tf.Module):
    _TF_MODULE_IGNORED_PROPERTIES = frozenset({"ignored"})

    def __init__(self):
        super().__init__()
        self.layers = {"b": [Layer(2), Layer(3, name="second")], "a": (tf.Variable(0.0),)}
        self.again = self.layers["b"][0]
        self.ignored = Layer(7)
        self.plain = Plain()
        self.core = jv.Variable(5.0, name="core")


def test_what_is_listed():
    model = Model()
    names = [v.name for v in model.variables]
    assert names == ["core:0", "Variable:0", "layer/w:0", "second/w:0"]
    assert [m.name for m in model.submodules] == ["layer", "second"]
    paths = [path for path, _ in model._flatten(predicate=tf.is_tensor, with_path=True)]
    inner = [("layers", "b", i, "w") for i in (0, 1)]
    assert paths == [("layers", "a", 0), ("again", "w"), *inner]
    assert not list(model._flatten(recursive=False, predicate=lambda x: x is model.again.w))


def test_variables_are_the_same_objects_each_time():
    model = Model()
    assert model.variables[2] is model.again.w
    assert model.variables[0] is model.variables[0]
    model.variables[0].assign(6.0)
    assert model.core.value == 6.0


def test_scopes_are_those_of_the_place_where_it_was_made():
    with tf.name_scope("outer"):
        inner = Layer(1)
    assert inner.w.name == "outer/layer/w:0"
    with tf.name_scope("elsewhere"), inner.name_scope as scope:
        assert tf.Variable(0.0, name="late").name == "outer/layer/late:0"
    assert scope == "outer/layer/"
    with tf.name_scope("a"), tf.name_scope("b/"), tf.name_scope("c"):
        assert tf.Variable(0.0).name == "b/c/Variable:0"
    with tf.name_scope("a"), tf.name_scope(""):
        assert tf.Variable(0.0).name == "Variable:0"


def test_it_is_a_module_of_jaxvars():
    model = Model()
    state = jv.State.of(model)
    model.again.w.assign([4.0, 4.0])
    state.commit()
    assert model.again.w.numpy().tolist() == [1.0, 1.0]
    assert isinstance(model, jv.Module)
    assert "layers/b/1/w" in model.named_variables
    assert "_name_scope" not in repr(model)


@pytest.mark.parametrize("name", ["a/b", "1a", "a b", ""])
def test_names_are_identifiers(name):
    with pytest.raises(ValueError, match="not a valid module name"):
        tf.Module(name=name)


def test_paths_show_each_way_to_a_variable():
    model = tf.Module()
    model.w = tf.Variable(1.0)
    model.inner = tf.Module()
    model.inner.w = [{"k": model.w}]
    model.again, model.inner.up = model.inner, model
    found = dict(
        model._flatten(with_path=True, predicate=lambda leaf: isinstance(leaf, tf.Variable))
    )
    assert set(found) == {("w",), ("inner", "w", 0, "k"), ("again", "w", 0, "k")}
    assert len(model.variables) == 1


def test_a_dict_that_has_no_order_is_named():
    model = tf.Module()
    model.layers = {object(): None, object(): None}
    with pytest.raises(ValueError, match="Error processing property 'layers'"):
        model.variables  # noqa: B018


def test_the_scope_is_one_object_for_all_threads():
    model = tf.Module(name="model")
    assert model.name_scope is model.name_scope
    inside, outside = threading.Event(), threading.Event()
    names = []

    def other():
        with tf.name_scope("other"), model.name_scope:
            inside.set()
            outside.wait(10)
        names.append(tf.Variable(0.0, name="v").name)

    thread = threading.Thread(target=other)
    with model.name_scope:
        thread.start()
        inside.wait(10)
    outside.set()
    thread.join()
    assert (names, tf.Variable(0.0, name="v").name) == (["v:0"], "v:0")


def test_initializers_make_parts_and_check_what_they_are_given():
    part = {"partition_shape": (1, 2), "partition_offset": (0, 0)}
    for make in (tf.zeros_initializer(), tf.ones_initializer(), tf.random_normal_initializer()):
        assert make((4, 2), **part).shape == (1, 2)
        with pytest.raises(TypeError, match="Received: dtpye"):
            make((2,), dtpye="float32")
        with pytest.raises(ValueError, match="dtype"):
            make((2,), dtype="string")
    with pytest.raises(ValueError, match="partition"):
        tf.constant_initializer(1)((4, 2), **part)
    with pytest.raises(TypeError, match="Invalid type for initial value"):
        tf.constant_initializer(tf.constant(1))
    assert tf.constant_initializer("a")((2,)).numpy().tolist() == [b"a", b"a"]


def test_parts_that_are_made_as_they_are_read_are_all_found():
    class Fresh(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            return [super().__getitem__(key), object()]

    module = tf.Module()
    for i in range(20):
        setattr(module, f"part{i:02}", Fresh(v=i))
    assert sum(isinstance(leaf, int) for leaf in module._flatten()) == 20
    assert sum(type(leaf) is object for leaf in module._flatten()) == 20


def test_a_subclass_may_have_its_own_list_of_variables():
    class Guarded(tf.Module):
        @property
        def variables(self):  # pyright: ignore[reportIncompatibleMethodOverride] - as programs do
            raise ValueError("not built")

    module = Guarded()
    assert module.trainable_variables == module.non_trainable_variables == ()


def test_the_scope_comes_with_super_init():
    class Bare(tf.Module):
        def __init__(self):
            pass

    with pytest.raises(AttributeError, match="_name_scope"):
        Bare().name_scope  # noqa: B018 - it raises

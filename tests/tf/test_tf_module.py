"""`tf.Module` and `tf.name_scope`, where `tests/tf/programs/module.txt` does not reach."""

from __future__ import annotations

import copy

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
    assert paths == [("layers", "a", 0), ("again", "w"), ("layers", "b", 1, "w")]
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
    assert "_scope_name" not in repr(model)


def test_a_copy_has_variables_of_its_own():
    layer = Layer(2)
    copied = copy.deepcopy(layer)
    copied.w.assign([7.0, 7.0])
    assert layer.w.numpy().tolist() == [1.0, 1.0]
    assert copied.w.name == layer.w.name


@pytest.mark.parametrize("name", ["a/b", "1a", "a b", ""])
def test_names_are_identifiers(name):
    with pytest.raises(ValueError, match="not a valid module name"):
        tf.Module(name=name)

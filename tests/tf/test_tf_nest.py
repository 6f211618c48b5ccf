"""`tf.nest`: structures. What is expected was seen in TensorFlow 2.21."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from jaxvars import tf

Pair = collections.namedtuple("Pair", "x y")
Other = collections.namedtuple("Other", "x y")
ordered = collections.OrderedDict([("b", 1), ("a", 2)])
filled = collections.defaultdict(list, {"a": 1})


@pytest.mark.parametrize(("structure", "leaves"), [
    ({"b": [1, (2, 3)], "a": {"c": 4}}, [4, 1, 2, 3]), (None, [None]), ([], []), ("abc", ["abc"]),
    (Pair(1, [2]), [1, 2]), ({1, 2}, [{1, 2}]), (ordered, [2, 1]), (range(3), [0, 1, 2]),
    (filled, [1]),
])  # fmt: skip
def test_flatten_and_back(structure, leaves):
    assert tf.nest.flatten(structure) == leaves
    packed = tf.nest.pack_sequence_as(structure, leaves)
    assert packed == (list(structure) if isinstance(structure, range) else structure)


def test_is_nested():
    things = [1, "a", [1], (1,), {}, Pair(1, 2), {1}, np.ones(2), None, range(2), tf.constant([1])]
    found = [tf.nest.is_nested(x) for x in things]
    assert [i for i, nested in enumerate(found) if nested] == [2, 3, 4, 5, 9]


def test_map_structure():
    made = tf.nest.map_structure(lambda a, b: a + b, [1, {"a": 2}], [3, {"a": 4}])
    assert made == [4, {"a": 6}]
    assert tf.nest.map_structure(lambda a: -a, Pair(1, 2)) == Pair(-1, -2)
    assert list(tf.nest.map_structure(lambda a: a, ordered)) == ["b", "a"]
    assert tf.nest.map_structure(lambda a: a, filled).default_factory is list
    made = tf.nest.map_structure(lambda a, b: a + b, [1, 2], (1, 2), check_types=False)
    assert made == [2, 4]


@pytest.mark.parametrize(
    ("ask", "error", "why"),
    [
        (lambda n: n.map_structure(lambda: 1), ValueError, "at least one structure"),
        (lambda n: n.map_structure(lambda a: a, [1], foo=1), ValueError, "not: `foo`"),
        (lambda n: n.map_structure(1, [1]), TypeError, "func must be callable, got: 1"),
        (lambda n: n.map_structure(max, [1, 2], [1]), ValueError, "same number of elements"),
        (lambda n: n.map_structure(max, [1], (1,)), TypeError, "same sequence type"),
        (lambda n: n.assert_same_structure(Pair(1, 2), Other(1, 2)), TypeError, "sequence type"),
        (lambda n: n.assert_same_structure({"a": 1}, {"b": 1}), ValueError, "same set of keys"),
        (lambda n: n.assert_same_structure(1, [1]), ValueError, "is a sequence, while"),
        (lambda n: n.pack_sequence_as([1, 2], [1]), ValueError, "Structure had 2 atoms, but"),
        (lambda n: n.pack_sequence_as([1, 2], "ab"), TypeError, "Attempted to pack value"),
        (lambda n: n.flatten({1: 2, "a": 3}), TypeError, "sortable keys"),
    ],
)
def test_refusals(ask, error, why):
    with pytest.raises(error, match=why):
        ask(tf.nest)


def test_same_structure():
    same = tf.nest.assert_same_structure
    same({"a": 1}, collections.OrderedDict(a=1))
    same("abc", "ab")
    same([1], (1,), check_types=False)
    same({"a": 1}, {"b": 1}, check_types=False)
    with pytest.raises(ValueError, match=r"First structure: type=dict str=\{'a': \[1, 2\]\}"):
        same({"a": [1, 2]}, {"a": [1]})

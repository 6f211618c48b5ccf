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


class Masked:
    """What consists of a tensor, and of something else."""

    def __init__(self, mask, value):
        self.mask, self.value = mask, value

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, leaves):
        return cls(*metadata, *leaves)


def test_objects_that_say_of_what_they_consist():
    one, other = Masked(True, 1), Masked(False, 2)
    assert tf.nest.is_nested(one)
    assert tf.nest.flatten([one, {"a": other}]) == [1, 2]
    made = tf.nest.map_structure(lambda a, b: a + b, one, other)
    assert (made.mask, made.value) == (True, 3)
    tf.nest.assert_same_structure(one, other)
    with pytest.raises(TypeError, match="same sequence type"):
        tf.nest.assert_same_structure(one, [1])


@pytest.mark.parametrize("mode", [lambda f: f, tf.function])
def test_such_objects_in_loops_branches_and_functions(mode):
    given = Masked(True, tf.constant([1.0, 2.0]))
    double = lambda i, x: (i + 1, Masked(x.mask, x.value * 2.0))  # noqa: E731 - one use
    loop = mode(lambda x: tf.while_loop(lambda i, x: i < 3, double, (0, x))[1])
    assert loop(given).value.numpy().tolist() == [8.0, 16.0]
    branch = mode(lambda p, x: tf.cond(p, lambda: x, lambda: Masked(x.mask, -x.value)))
    assert branch(tf.constant(False), given).value.numpy().tolist() == [-1.0, -2.0]
    rows = mode(lambda x: tf.map_fn(lambda row: Masked(row.mask, row.value + 1.0), x))
    assert rows(given).value.numpy().tolist() == [2.0, 3.0]
    with tf.GradientTape() as tape:
        tape.watch(given)
        y = loop(given).value
    assert tape.gradient(y, given).value.numpy().tolist() == [8.0, 8.0]


def test_signatures_of_such_objects():
    f = tf.function(lambda x: Masked(x.mask, x.value + 1.0))
    f(Masked(True, tf.constant(1.0)))
    f(Masked(True, tf.constant(2.0)))
    assert f.experimental_get_tracing_count() == 1
    concrete = f.get_concrete_function(Masked(True, tf.TensorSpec([], tf.float32)))
    assert concrete(Masked(True, tf.constant(2.0))).value.numpy() == 3.0


def test_extension_types_are_expanded_as_composite():
    class Rows(tf.experimental.ExtensionType):
        count: int
        rows: tf.RaggedTensor

    rows = Rows(2, tf.ragged.constant([[1], [2, 3]]))
    assert tf.nest.flatten(rows) == [rows]
    values, splits = tf.nest.flatten(rows, expand_composites=True)
    assert (values.numpy().tolist(), splits.numpy().tolist()) == ([1, 2, 3], [0, 1, 3])
    made = tf.nest.map_structure(lambda x: x, rows, expand_composites=True)
    assert (made.count, made.rows.to_list()) == (2, [[1], [2, 3]])
    assert tf.function(lambda x: x.rows + 1)(rows).to_list() == [[2], [3, 4]]


def test_named_tuples_are_the_same_by_their_names():
    same = collections.namedtuple("Pair", "x y")
    tf.nest.assert_same_structure(Pair(1, same(2, 3)), same(4, Pair(5, 6)))


def test_the_first_difference_is_what_is_said():
    with pytest.raises(ValueError, match="is a sequence, while substructure"):
        tf.nest.assert_same_structure(((1, 2), 3, 4), ("a", "b"))

"""`display/pretty.py`: what values look like over several lines."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxvars.display.pretty import Layout, Planner, Slot


def pretty(value: Any, *, spec: str = "", summarize: int = 3, before: str = "") -> str:
    planner = Planner(lambda x: x)
    plan = planner.top(value, spec)
    arrays = [np.asarray(x) for x in planner.arrays]
    return Layout(arrays, summarize).join([before, plan])


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Point:
    x: Any
    y: Any
    hidden: Any = dataclasses.field(default=0, repr=False)


@jax.tree_util.register_pytree_with_keys_class
class Node:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def tree_flatten_with_keys(self):
        key = jax.tree_util.GetAttrKey
        return ((key("a"), self.a), (key("b"), self.b)), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


class Plain:
    def __repr__(self):
        return "<plain>"


@pytest.mark.parametrize(("value", "text"), [
    ("text", "text"), (["text"], "['text']"), (None, "None"), (2.5, "2.5"), (True, "True"),
    ([True, None, 1, 2.5], "[True, None, 1, 2.5]"), ((1,), "(1,)"), ((), "()"), ([], "[]"),
    ({}, "{}"), (set(), "set()"), ({3, 1}, "{1, 3}"), (frozenset({1}), "frozenset({1})"),
    (OrderedDict(a=1), "OrderedDict({'a': 1})"), (Pair(1, "b"), "Pair(left=1, right='b')"),
    (Point(1, [2]), "Point(x=1, y=[2])"), (Node(1, np.zeros(2)), "Node(a=1, b=[0. 0.])"),
    (Plain(), "<plain>"), ([Plain(), max, int], "[<plain>, max, int]"), (np.float32(0.1), "0.1"),
    ([np.float32(0.1)], "[0.1]"), (jnp.bfloat16(1.5), "1.5"),
    (np.array([True, False]), "[ True False]"), (np.zeros((0, 3)), "[]"),
    (np.array([1 + 2j]), "[1.+2.j]"), (np.array("a", np.dtypes.StringDType()), "a"),
    ([np.array("a", np.dtypes.StringDType())], "['a']"), (np.array(["a", "b"]), "['a' 'b']"),
    (b"bytes", "b'bytes'"),
])  # fmt: skip
def test_what_values_look_like(value, text):
    assert pretty(value) == text


def test_random_keys_show_their_kind_and_data():
    assert pretty({"key": jax.random.key(7)}) == "{'key': key<fry>[0 7]}"


def test_arrays_are_short_in_the_middle_of_each_dimension():
    assert pretty(np.arange(7)) == "[0 1 2 ... 4 5 6]"
    assert pretty(np.arange(6)) == "[0 1 2 3 4 5]"
    assert pretty(np.arange(7), summarize=1) == "[0 ... 6]"
    assert pretty(np.arange(7), summarize=-1) == "[0 1 2 3 4 5 6]"
    assert pretty(np.zeros((9, 9)), summarize=1) == "[[0. ... 0.]\n ...\n [0. ... 0.]]"


def test_rows_of_an_array_stand_below_each_other():
    assert pretty(np.eye(2), before="w: ") == "w: [[1. 0.]\n    [0. 1.]]"


def test_a_structure_that_fits_is_one_line_and_one_that_does_not_is_indented():
    assert pretty({"w": np.eye(2)}) == "{'w': [[1. 0.] [0. 1.]]}"
    value = {"layers": [{"w": np.zeros((30, 20)), "b": np.zeros(3)}], "step": 3}
    assert pretty(value, before="model: ", summarize=2) == (
        "model: {\n"
        "  'layers': [\n"
        "    {\n"
        "      'w': [[0. 0. ... 0. 0.]\n"
        "            [0. 0. ... 0. 0.]\n"
        "            ...\n"
        "            [0. 0. ... 0. 0.]\n"
        "            [0. 0. ... 0. 0.]],\n"
        "      'b': [0. 0. 0.],\n"
        "    },\n"
        "  ],\n"
        "  'step': 3,\n"
        "}"
    )


def test_lines_of_a_part_stand_below_each_other():
    class Lines:
        def __repr__(self):
            return "Lines(\n)"

    assert pretty([[Lines()]]) == "[\n  [\n    Lines(\n    ),\n  ],\n]"


@pytest.mark.parametrize("count", [1, 5, 12, 13, 14, 40])
def test_no_line_is_longer_than_88(count):
    value = {"numbers": list(range(100, 100 + count)), "deep": {"deeper": [["x" * 9] * count]}}
    assert max(map(len, pretty(value).split("\n"))) <= 88


def test_long_vectors_are_wrapped_below_their_beginning():
    first, second, *_ = pretty(np.full(40, 123456.0), summarize=-1, before="x = ").split("\n")
    assert first.startswith("x = [123456.")
    assert second.startswith("     123456.")
    assert len(first) <= 88


def test_a_format_is_for_each_number():
    value = {"a": np.array([0.123, 4.0]), "n": 2, "t": "text", "on": True, "z": np.float32(1)}
    assert (
        pretty(value, spec=".1f") == "{'a': [0.1 4.0], 'n': 2.0, 't': 'text', 'on': True, 'z': 1.0}"
    )
    assert pretty(jnp.ones(2, jnp.bfloat16), spec="5.2f") == "[ 1.00  1.00]"
    assert pretty("ab", spec=">4") == "  ab"


@pytest.mark.parametrize("value", [np.float32(1), np.ones(2), 1.0, [1.0], {"a": jnp.ones(2)}])
def test_a_format_that_does_not_suit_raises_at_once(value):
    with pytest.raises(ValueError, match="Unknown format code 'd'"):
        Planner(lambda x: x).top(value, "d")


def test_circles_end():
    value: list[Any] = [1]
    value.append(value)
    assert pretty(value) == "[1, [...]]"


def test_the_same_object_twice_is_not_a_cycle():
    part = [1]
    assert pretty([part, part]) == "[[1], [1]]"


def test_the_text_does_not_depend_on_print_options():
    with np.printoptions(precision=1, threshold=2, suppress=True):
        assert pretty(np.array([0.123, 4.0, 1e-9])) == "[1.23e-01 4.00e+00 1.00e-09]"


def test_traced_arrays_are_slots():
    def f(x):
        planner = Planner(lambda x: x)
        assert planner.plan([x, 1]).items == (("", Slot(0, "", "", True)), ("", "1"))
        assert planner.arrays == [x]
        return x

    jax.make_jaxpr(f)(1.0)

"""Objects are found once, by path, in a stable order, wherever they are."""

from __future__ import annotations

import copy
import pickle
import sys
from collections import ChainMap, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace as Bag

import numpy as np
import pytest
from flax.core import FrozenDict

import jaxvars as jv
from jaxvars.core.cells import Cell
from jaxvars.objects.traversal import Holder, Proxy, Tie, reaches, walk, walk_again


class Leaf:
    __slots__ = ("inner",)

    def __init__(self, inner=None):
        self.inner = inner


class Box(Holder):
    def __init__(self, **contents):
        vars(self).update(contents)


@dataclass
class Pair:
    second: object
    first: object


@dataclass(frozen=True, slots=True)
class Slotted:
    second: object
    first: object


class OneSlot:
    __slots__ = "only"

    def __init__(self, only):
        self.only = only


class Derived(Slotted):
    pass


Named = namedtuple("Named", "second first")


def paths(root):
    return ["/".join(path) for path, _ in walk(root, Leaf)]


@pytest.mark.parametrize(("root", "expected"), [
    (Leaf(), [""]), ([Leaf(), 3, Leaf()], ["0", "2"]), ((Leaf(), [Leaf()]), ["0", "1/0"]),
    ([Leaf() for _ in range(11)], [str(i) for i in range(11)]),
    ({"b": Leaf(), "a": Leaf()}, ["a", "b"]), (OrderedDict(b=Leaf(), a=Leaf()), ["a", "b"]),
    (defaultdict(list, b=[Leaf()]), ["b/0"]), (ChainMap({"a": Leaf()}), ["a"]),
    ({2: Leaf(), 1: Leaf()}, ["1", "2"]),
    ({3: Leaf(), "x": Leaf(), None: Leaf()}, ["3", "None", "x"]),
    (Bag(b=Leaf(), a=Leaf()), ["a", "b"]), (Pair(Leaf(), Leaf()), ["first", "second"]),
    (Slotted(Leaf(), Leaf()), ["first", "second"]), (Derived(Leaf(), Leaf()), ["first", "second"]),
    (OneSlot(Leaf()), ["only"]), (Named(Leaf(), Leaf()), ["second", "first"]), ({Leaf()}, ["0"]),
    (deque([Leaf(), [Leaf()]]), ["0", "1/0"]), ({"a": Leaf()}.values(), ["0"]),
    (partial(print, Leaf(), a=Leaf()), ["args/0", "keywords/a"]),
    (np.array([[1, Leaf()]], object), ["0/1"]), (Leaf(Leaf()), ["", "inner"]),
    (Box(a=Box(x=Leaf()), b=Leaf()), ["b", "a/x"]),
    (Box(a=[Box(x=Leaf()), Leaf()], b=Leaf()), ["a/1", "b", "a/0/x"]),
    (Box(a=Box(b=Box(c=Leaf()), z=Leaf()), d=Box(e=Leaf())), ["a/z", "a/b/c", "d/e"]),
])  # fmt: skip
def test_paths_and_order(root, expected):
    assert paths(root) == expected


@pytest.mark.parametrize("root", [
    None, "text", b"bytes", 3, 2.5, np.ones(3), Leaf, sys, lambda: Leaf(), [].append, [], {}, Bag(),
    object(),
])  # fmt: skip
def test_where_nothing_is_found(root):
    assert paths(root) == []


def test_each_object_is_found_once_under_the_first_path():
    leaf = Leaf()
    assert paths({"b": leaf, "a": [leaf, leaf]}) == ["a/0"]
    shared = Box(x=leaf)
    assert paths(Box(p=shared, q=shared)) == ["p/x"]


def test_the_elements_of_a_set_have_no_number():
    assert paths({Leaf(Leaf()), Leaf()}) in (["0", "0/inner", "0"], ["0", "0", "0/inner"])


def test_equal_objects_are_different_ones():
    assert paths([Pair(Leaf(), 1), Pair(Leaf(), 1)]) == ["0/second", "1/second"]


def test_cycles_end():
    ring = [Leaf()]
    ring.append(ring)
    box = Box(v=Leaf())
    box.me = box
    box.child = Box(parent=box, v=Leaf())
    assert paths(ring) == ["0"]
    assert paths(box) == ["v", "child/v"]


def test_it_is_lazy():
    found = walk(Box(a=Leaf(), b=Leaf()), Leaf)
    assert next(found)[0] == ("a",)


def test_an_alias_is_entered_under_its_own_path():
    class ArrayProxy(Proxy):
        def __init__(self, leaf):
            self.leaf = leaf

        @property
        def aliased(self):
            return self.leaf

    leaf = Leaf()
    face = ArrayProxy(leaf)
    assert list(walk({"a": face, "b": leaf}, Leaf)) == [(("a",), leaf)]
    assert list(walk({"a": face}, ArrayProxy)) == [(("a",), face)]


class Fresh(Mapping[str, object]):
    """Makes its parts as they are read."""

    def __init__(self, *leaves: object) -> None:
        self.leaves = leaves

    def __getitem__(self, key: str) -> object:
        return [self.leaves[int(key)]]

    def __iter__(self) -> Iterator[str]:
        return map(str, range(len(self)))

    def __len__(self) -> int:
        return len(self.leaves)


def test_parts_that_are_made_as_they_are_read_are_not_taken_for_others_that_are_gone():
    leaves = [Leaf() for _ in range(20)]
    assert [leaf for _, leaf in walk([Fresh(leaf) for leaf in leaves], Leaf)] == leaves
    assert reaches([Fresh(1) for _ in range(20)] + [Fresh("x")], lambda value: value == "x")


def test_a_variable_is_not_entered_and_what_a_class_below_adds_is_found():
    class Slotted(jv.Variable):
        __slots__ = ("more",)

    class Noted(jv.Variable):
        pass

    slotted, noted = Slotted(1.0), Noted(2.0)
    slotted.more, noted.note = [Leaf()], Leaf()
    assert paths({"a": slotted, "b": noted}) == ["a/more/0", "b/note"]
    assert list(walk(jv.Variable(0.0), object))[1:] == []
    assert not reaches(jv.Variable(0.0), lambda value: isinstance(value, Cell))


class Hiding:
    """Its slot is called `_Hiding__held` by Python."""

    __slots__ = ("__dict__", "__held", "__weakref__")

    def __init__(self, held: object) -> None:
        self.__held = held


class Words(dict):
    pass


class Points(list):
    pass


class Far(Named):  # with attributes, which a named tuple has not
    pass


class Table(Holder, Mapping[str, object]):
    def __init__(self, **inner: object) -> None:
        self._inner = inner

    def __getitem__(self, key: str) -> object:
        return self._inner[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._inner)

    def __len__(self) -> int:
        return len(self._inner)


class Open(dict[str, object]):
    def __init__(self, **inner: object) -> None:
        super().__init__(inner)
        self.__dict__ = self


def with_attributes(box, **given):
    vars(box).update(given)
    return box


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (with_attributes(Words(b=Leaf()), a=Leaf()), ["b", "a"]),
        (with_attributes(Points([Leaf()]), a=[Leaf()]), ["0", "a/0"]),
        (with_attributes(Far(Leaf(), 1), a=Leaf()), ["second", "a"]),
        (with_attributes(Table(b=Leaf()), a=Leaf()), ["b", "a"]),
        (with_attributes(Table(b=Box(x=Leaf())), a=Box(x=Leaf()), c=Leaf()), ["b/x", "a/x", "c"]),
        ([with_attributes(Table(b=Leaf()), a=Leaf()), Leaf()], ["1", "0/b", "0/a"]),
        (Open(a=Leaf(), b=Open(c=Leaf())), ["a", "b/c"]),
    ],
)
def test_attributes_of_what_has_entries_come_last(root, expected):
    assert paths(root) == expected
    assert other_paths(root) == []
    *_, (_, last) = walk(root, Leaf)
    assert reaches(root, lambda value: value is last)


def test_attributes_of_what_has_entries_change_no_path():
    model = Box(first=Points(), second=Box(x=Leaf()))
    with_attributes(model.first, all=model, next=model.second)
    assert paths(model) == ["second/x"]
    assert other_paths(model) == []


def test_entries_alone_are_found_in_what_is_not_a_holder_or_a_class_below_one_of_python():
    tied = Leaf()
    for box in (Fresh(tied), ChainMap({"0": [tied]}), FrozenDict({"0": [tied]})):
        assert paths(box) == ["0/0"]
        assert other_paths(box) == []


def test_a_slot_that_begins_with_two_underscores_is_found():
    assert paths(Hiding(Leaf())) == ["_Hiding__held"]

    class Net(jv.Module):
        __slots__ = ("__w",)

        def __init__(self):
            self.__w = jv.Variable(1.0)

    assert list(Net().named_variables) == ["_Net__w"]


def other_paths(root):
    return ["/".join(path) for path, _ in walk_again(root, Leaf)]


def test_what_is_shared_has_other_paths():
    leaf = Leaf()
    assert other_paths({"b": leaf, "a": [leaf, leaf], "c": Leaf()}) == ["b", "a/1"]
    shared = Box(x=Box(y=leaf))
    assert other_paths(Box(p=shared, q=shared, r=[shared.x])) == ["q/x/y", "r/0/y"]
    assert other_paths(Box(a=Leaf(), b=[Leaf()])) == []
    assert other_paths(leaf) == other_paths(3) == []


def test_other_paths_are_made_of_several_shared_parts():
    inner = Box(leaf=Leaf())
    outer = Box(p=inner, q=inner)
    root = Box(a=outer, b=outer)
    assert paths(root) == ["a/p/leaf"]
    assert sorted(other_paths(root)) == ["a/q/leaf", "b/p/leaf", "b/q/leaf"]


def test_no_path_leads_through_an_object_twice():
    root = Box(head=Leaf())
    root.layers = [Box(parent=root, w=Leaf()) for _ in range(2)]
    assert paths(root) == ["head", "layers/0/w", "layers/1/w"]
    assert other_paths(root) == []
    root.layers[1].before, root.layers[0].after = root.layers
    assert paths(root) == ["head", "layers/0/w", "layers/0/after/w"]
    assert other_paths(root) == ["layers/1/before/w", "layers/1/w"]


def test_of_exponentially_many_paths_the_shortest_are_found():
    box = Box(leaf=Leaf())
    for _ in range(30):
        box = Box(a=box, b=box)
    found = other_paths([box, Box(near=box.a)])
    assert len(found) == 64 == len(set(found))
    assert min(map(len, found)) == len(found[0])


def test_what_is_in_a_set_too_is_not_taken_for_its_neighbour():
    one, other = Box(leaf=Leaf()), Box(leaf=Leaf())
    root = [{one, other}, one]
    assert paths(root) == ["0/0/leaf"] * 2
    assert other_paths(root) == []


# ---------------------------------------------------------------- ties
def test_a_tie_is_copied_with_its_object_and_else_keeps_the_original():
    box = Box(name="box")
    tie = Tie(box)
    twins = copy.deepcopy([tie, box])
    assert twins[0]() is twins[1] is not box
    alone, pair = copy.deepcopy(tie), copy.deepcopy([tie, box])
    assert copy.deepcopy(alone)() is alone() is box
    del pair[1]
    assert pair[0]() is box  # nothing had followed it before the copy was gone
    del twins[1]
    assert twins[0]() is None
    assert not any(t.is_lost for t in (tie, alone, *twins, *pair))


def test_a_tie_that_is_unpickled_without_its_object_is_lost():
    box = Box(name="box")
    tie = Tie(box)
    twins = pickle.loads(pickle.dumps([tie, box]))
    assert twins[0]() is twins[1]
    assert not twins[0].is_lost
    lost = pickle.loads(pickle.dumps(tie))
    assert lost() is None
    assert lost.is_lost
    assert copy.deepcopy(lost).is_lost
    assert pickle.loads(pickle.dumps(lost)).is_lost
    del box
    assert not pickle.loads(pickle.dumps(tie)).is_lost

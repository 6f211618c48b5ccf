"""What tells values apart in a cache: a number's bits, a value's type, an object itself."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import functools
import gc
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxvars.objects.identity import (
    Form,
    Inexact,
    Same,
    Weak,
    by_identity,
    exact,
    form_of,
    held,
    told_by_equality,
)


class Level(enum.IntEnum):
    LOW = 1


class Name(str):
    __slots__ = ()


class Labelled(str):
    def __init__(self, _: str) -> None:
        self.label = object()


class Pair(NamedTuple):
    a: Any
    b: Any = 0


@dataclass(frozen=True)
class Config:
    value: Any

    @functools.cached_property
    def late(self) -> float:
        return 1.0


@dataclass(frozen=True)
class Noted:
    value: Any = field(compare=False)


@dataclass(frozen=True)
class Other:
    value: Any


class Liar:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


NOON = dt.datetime(2000, 1, 1, 12, tzinfo=dt.UTC)
TWINS: list[tuple[Any, Any]] = [
    (1, True), (1, 1.0), (1.0, 1 + 0j), (0.0, -0.0), (0j, complex(-0.0, 0.0)),
    (1.0, np.float64(1.0)), (np.float32(0.0), np.float32(-0.0)),
    (np.float32(1e-9), np.float32(2e-9)), (1, Level.LOW), ("a", np.str_("a")), ("a", Name("a")),
    (decimal.Decimal("1.0"), decimal.Decimal("1.00")), (NOON, NOON.replace(fold=1)),
    (NOON, NOON.astimezone(dt.timezone(dt.timedelta(hours=1)))),
    (range(0), range(1, 1)), (Config(1), Other(1)),
]  # fmt: skip
INSIDE: dict[str, Callable[[Any], Any]] = {
    "alone": lambda x: x, "tuple": lambda x: ((x,), 2), "list in a dict": lambda x: {"a": [x]},
    "key of a dict": lambda x: {x: 1}, "frozenset": lambda x: frozenset({x}),
    "named tuple": lambda x: Pair(1, x), "dataclass": Config, "field that isn't compared": Noted,
    "partial": lambda x: functools.partial(max, x),
}  # fmt: skip


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("twins", TWINS, ids=repr)
def test_what_is_equal_to_python_is_told_apart(twins: Any, inside: str) -> None:
    one, other = map(INSIDE[inside], twins)
    assert exact(one) != exact(other)


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("make", [
    lambda: float("nan"), lambda: str(np.str_("ab")), lambda: np.float32(2.5), lambda: Name("a"),
    lambda: Config((1, (2.0, "x"))), lambda: decimal.Decimal("1.5"), lambda: jnp.float32,
    lambda: np.dtype("float32"), lambda: jax.P("x"), lambda: NOON.replace(hour=3),
])  # fmt: skip
def test_the_same_value_made_again_is_the_same(make: Any, inside: str) -> None:
    one, other = (INSIDE[inside](make()) for _ in range(2))
    assert exact(one) == exact(other)
    assert hash(exact(one)) == hash(exact(other))


def test_methods_are_those_of_an_object_itself() -> None:
    one, other = Liar(), Liar()
    assert exact(one.__eq__) == exact(one.__eq__) != exact(other.__eq__)


@pytest.mark.parametrize("inside", [name for name in INSIDE if "key" not in name])
@pytest.mark.parametrize("make", [Liar, object, lambda: jnp.ones(1), lambda: Labelled("a")])
def test_what_says_that_it_is_equal_is_not_believed(make: Any, inside: str) -> None:
    if not (inside == "frozenset" and isinstance(value := make(), jax.Array)):
        with pytest.raises(Inexact):
            exact(INSIDE[inside](make()))
    value = make()
    assert exact(value, Same) != exact(make(), Same)
    assert exact(value, Same) == exact(value, Same)


def test_a_class_whose_equality_is_what_it_is_for_is_believed() -> None:
    class Kind(Liar):
        pass

    told_by_equality(Kind)
    assert exact(Kind()) == exact(Kind()) != exact(1)


def test_attributes_of_a_frozen_dataclass_count_but_not_what_it_computed_late() -> None:
    one, other = Config(1), Config(1)
    assert one.late == 1.0
    assert exact(one) == exact(other)
    object.__setattr__(one, "hidden", 2)
    assert exact(one) != exact(other)


def test_what_stands_for_an_object_keeps_it() -> None:
    assert held(liar := Liar()) == (Liar, liar)
    assert held(thing := object()) == Same(thing) != Same(object())


def test_things_made_for_objects_are_for_each_its_own() -> None:
    made = by_identity(lambda x: [x], 2)
    one, other = Liar(), Liar()
    assert made(one) is made(one) is not made(other)
    assert made(other)[0] is other


def test_a_weak_reference_is_known_by_its_object() -> None:
    one, other = Liar(), Liar()
    known: dict[Weak, str] = {}
    for name, x in (("one", one), ("other", other)):
        known[Weak(x, lambda ref: known.pop(ref, None))] = name  # pyright: ignore[reportArgumentType]
    assert (known[Weak(one)], known[Weak(other)]) == ("one", "other")
    del one
    gc.collect()
    assert list(known.values()) == ["other"]


# ---------------------------------------------------------------- structures
@jax.tree_util.register_dataclass
@dataclass
class Static:
    x: Any
    n: Any = field(metadata={"static": True})


STRUCTURES: dict[str, Callable[[Any], Any]] = {
    "dict": lambda key: {key: 1.0},
    "in a list": lambda key: [(2.0, {key: 1.0})],
    "ordered dict": lambda key: OrderedDict({key: 1.0}),
    "static field": lambda key: Static(1.0, key),
    "static field in a tuple": lambda key: Static(1.0, ("a", (key,))),
}


@pytest.mark.parametrize("made", STRUCTURES)
def test_structures_are_told_apart_by_their_keys_and_static_parts(made: str) -> None:
    keys = [1, True, 1.0, np.float32(1)]
    forms = [form_of(jax.tree.structure(STRUCTURES[made](key))) for key in keys]
    found = dict(zip(forms, keys, strict=True))
    assert len(found) == len(keys)
    for key, form in zip(keys, forms, strict=True):
        again = jax.tree.structure(STRUCTURES[made](key))
        assert found[form_of(again)] is key
        assert found[again] is key  # as a hot path looks it up
        assert {form: 1}.get(again) == 1


def test_structures_with_names_alone_stand_for_themselves() -> None:
    for tree in ({"a": (1, [2, None])}, Pair(1), [], Static(1.0, "relu"), Static(1.0, len_of)):
        assert form_of(treedef := jax.tree.structure(tree)) is treedef
    assert isinstance(form_of(jax.tree.structure({1: 2})), Form)


def len_of(x: Any) -> int:
    return len(x)


def test_a_function_in_a_structure_is_not_kept() -> None:
    gone = weakref.ref(fn := lambda: None)
    treedef = jax.tree.structure(Static(1.0, fn))
    assert form_of(treedef) is treedef
    del fn, treedef
    gc.collect()
    assert gone() is None

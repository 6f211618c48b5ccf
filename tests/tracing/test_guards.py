"""Guards: what is asked before values are used, and what it is like where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import jaxvars as jv
from jaxvars.tracing.guards import GUARDS, READ, READ_AS, SHOW, TAKE, WRITE, ask

Asked = list[tuple[str, list[str]]]


@pytest.fixture
def asked() -> Iterator[Asked]:
    """What a guard is asked, which lets everything happen."""
    found: Asked = []
    GUARDS[7] = lambda doing, cells: found.append((doing, [cell.name for cell in cells]))
    yield found
    del GUARDS[7]


def test_there_is_none():
    assert GUARDS == {}
    ask(READ)


@pytest.mark.parametrize(
    ("use", "doings"),
    [
        (lambda v: v.value, [READ, TAKE]),
        (lambda v: v * 2, [READ, TAKE]),
        (float, [SHOW, TAKE]),
        (lambda v: v.numpy(), [SHOW, TAKE]),
        (lambda v: v.__array__(), [SHOW, TAKE]),
        (repr, [SHOW]),
        (lambda v: v.sharding, [SHOW]),
        (lambda v: v.assign(2.0), ["Variable 'v' is written", WRITE]),
        (lambda v: v.assign_add(2.0), [WRITE]),
        (jv.State.of, [READ, READ, TAKE]),
        (lambda v: v.name, []),
    ],
)
def test_it_is_asked_before_values_are_used(asked: Asked, use: Any, doings: list[str]):
    v = jv.Variable(1.0, name="v")
    asked.clear()
    use(v)
    assert [str(doing) for doing, _ in asked] == doings
    assert all(cells == ["v"] for doing, cells in asked if doing in (READ, TAKE, SHOW, WRITE))


def test_a_value_may_have_to_be_taken_as_it_is(asked: Asked):
    v = jv.Variable(1.0)
    GUARDS[8] = lambda doing, cells: True
    try:
        with jv.GradientTape() as tape:
            assert v.value == 1.0
    finally:
        del GUARDS[8]
    assert tape.watched_variables() == ()
    with tape:
        assert v.value == 1.0
    assert tape.watched_variables() == (v,)


def test_a_transaction_asks_too(asked: Asked):
    v = jv.Variable(1.0, name="v")
    with jv.transaction():
        asked.clear()
        assert float(v) == 1.0
        assert [doing for doing, _ in asked] == [SHOW, TAKE]


def test_the_cells_of_a_program_are_named_when_it_is_traced(asked: Asked):
    v, w = jv.Variable(1.0, name="v"), jv.Variable(2.0, name="w")
    step = jv.compile(lambda: w.assign_add(v.value))
    step()
    assert (TAKE, ["w", "v", "w"]) in asked or (TAKE, ["v", "w", "w"]) in asked
    asked.clear()
    step()
    assert asked == []  # the fast path asks nothing


def test_one_that_raises_leaves_all_as_it_was():
    def refuse(doing: str, cells: Any) -> None:
        if doing == WRITE:
            raise RuntimeError("refused")

    v, w = jv.Variable(1.0), jv.Variable(2.0)
    GUARDS[7] = refuse
    try:
        for use in (lambda: v.assign(3.0), lambda: v.assign_add(1.0), jv.State.of(v, w).commit):
            with pytest.raises(RuntimeError, match="refused"):
                use()
    finally:
        del GUARDS[7]
    assert (float(v), float(w)) == (1.0, 2.0)


def test_the_lowest_rank_is_asked_first():
    found: list[int] = []
    for rank in (9, 8):
        GUARDS[rank] = lambda doing, cells, rank=rank: found.append(rank)
    try:
        ask("A test")
    finally:
        del GUARDS[8], GUARDS[9]
    assert found == [8, 9]


def test_a_value_is_read_as_something_else():
    v, w = jv.Variable(1.0, name="v"), jv.Variable(2.0, name="w")
    assert READ_AS == []
    READ_AS.append(lambda cell, value: value + 10 if cell.name == "v" else value)
    try:
        assert (float(v), float(v * 2), float(w)) == (11.0, 22.0, 2.0)
        assert list(map(float, jv.State.of(v, w).values())) == [11.0, 2.0]
        assert v.assign_add(1.0) is v
    finally:
        READ_AS.clear()
    assert float(v) == 2.0

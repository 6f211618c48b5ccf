"""`lookup`, and the gradients of tables that were only looked up in."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.derivatives.sparse_rows import Rows, lookup, take

TABLE = np.arange(8.0, dtype=np.float32).reshape(4, 2)


def rows(fn, table, indices=((0, 2),)):
    given = [jnp.asarray(i) for i in indices]
    with jv.GradientTape() as tape:
        if not isinstance(table, jv.Variable):
            tape.watch(table)
        y = fn(table, *given)
    return tape.row_gradients(y, [table])[0]


def test_take_gives_zeros_out_of_range():
    found = take(jnp.asarray(TABLE), jnp.asarray([[3, 4], [-1, 0]]), 0)
    assert found.tolist() == [[[6.0, 7.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]]
    assert take(jnp.asarray(TABLE), jnp.asarray([1]), 1).tolist() == [[1.0], [3.0], [5.0], [7.0]]
    assert take(jnp.zeros((0, 2)), jnp.asarray([0, 1]), 0).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert take(jnp.zeros((0, 2)), jnp.zeros((0,), int), 0).shape == (0, 2)


def test_rows_are_of_all_lookups_in_their_order():
    def two(table, i, j):
        return lookup(table, i).sum() + 3.0 * lookup(table, j).sum()

    for table in (jnp.asarray(TABLE), jv.Variable(TABLE)):
        found = rows(two, table, ([0, 2], [[1], [2]]))
        assert isinstance(found, Rows)
        assert found.indices.tolist() == [0, 2, 1, 2]
        assert found.values.tolist() == [[1.0, 1.0], [1.0, 1.0], [3.0, 3.0], [3.0, 3.0]]
        dense = jax.grad(two)(jnp.asarray(TABLE), jnp.asarray([0, 2]), jnp.asarray([[1], [2]]))
        assert jnp.array_equal(found.whole(), dense)


def test_rows_out_of_range_are_not_of_the_whole():
    found = Rows(jnp.ones((3, 2)), jnp.asarray([-1, 4, 1]), (4, 2))
    assert found.whole().sum(axis=1).tolist() == [0.0, 2.0, 0.0, 0.0]


@pytest.mark.parametrize("fn", [
    lambda t, i: lookup(t, i).sum() + jnp.sum(t), lambda t, i: lookup(t * 2.0, i),
    lambda t, i: [lookup(t, i), t * 1.0],
    lambda t, i: lookup(jnp.asarray(t).astype(int), i) * t[0],
], ids=["used otherwise", "of a result", "a target besides", "of integers"])  # fmt: skip
def test_whole_where_the_table_is_used_otherwise(fn):
    table = jv.Variable(TABLE)
    found = rows(fn, table)
    with jv.GradientTape() as tape:
        y = fn(table, jnp.asarray([0, 2]))
    assert not isinstance(found, Rows)
    assert jnp.array_equal(found, tape.gradient(y, table))


def test_what_is_not_used_for_the_target_does_not_count():
    table = jnp.asarray(TABLE)
    with jv.GradientTape(persistent=True) as tape:
        tape.watch(table)
        y, z, other = lookup(table, jnp.asarray([1])), lookup(table, jnp.asarray([2])), table.sum()
    assert tape.row_gradients(y, [table])[0].indices.tolist() == [1]
    assert tape.row_gradients([z, y], [table])[0].indices.tolist() == [1, 2]
    assert tape.row_gradients([z, other], [table])[0].shape == (4, 2)
    assert tape.row_gradients(table, [table])[0].tolist() == np.ones((4, 2)).tolist()
    # A result of a look-up may be asked for at the same time, and what the table came from.
    rows_of_table, of_row = tape.row_gradients(y * y, [table, y])
    assert rows_of_table is None
    assert of_row is None  # y * y was computed after the tape


def test_copies_and_sources_before_and_behind():
    first = jv.Variable(TABLE)
    with jv.GradientTape(persistent=True) as tape:
        table = (first * 2.0).astype(jnp.bfloat16)
        row = lookup(jnp.copy(table), jnp.asarray([1, 1]))
        inner = lookup(row, jnp.asarray([0]))
        loss = (inner.astype(jnp.float32) ** 2).sum()
    whole, of_table, of_row = tape.row_gradients(loss, [first, table, row])
    assert whole.tolist() == [[0.0, 0.0], [16.0, 24.0], [0.0, 0.0], [0.0, 0.0]]
    assert isinstance(of_table, Rows)
    assert of_table.values.dtype == jnp.bfloat16
    assert of_table.values.tolist() == [[8.0, 12.0], [0.0, 0.0]]
    assert of_row.indices.tolist() == [0]
    assert of_row.values.tolist() == [[8.0, 12.0]]


def test_rows_compiled_and_twice():
    table = jv.Variable(TABLE)

    @jv.compile
    def step(i):
        with jv.GradientTape() as tape:
            loss = (lookup(table, i) ** 3).sum()
        (found,) = tape.row_gradients(loss, [table])
        return found

    found = step(jnp.asarray([3, 0]))
    assert isinstance(found, Rows)
    assert found.values.tolist() == [[108.0, 147.0], [0.0, 3.0]]
    with jv.GradientTape() as outer:
        with jv.GradientTape() as tape:
            loss = (lookup(table, jnp.asarray([2, 2])) ** 3).sum()
        whole = tape.row_gradients(loss, [table])[0].whole()
    assert outer.gradient(whole, table).tolist()[2] == [48.0, 60.0]

"""`jv.diff`: which variables changed, and by how much."""

from __future__ import annotations

import math
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.errors import StateError


def row(a: Any, b: Any, **how: Any) -> Any:
    """The row for one variable of these values, or None."""
    table = jv.diff({"v": jv.Variable(a, **how)}, {"v": jv.Variable(b, **how)})
    return table[0][1:] if table else None


def nan(bits: int) -> np.ndarray:
    return np.array([bits], np.uint32).view(np.float32)


ROWS = {
    "same": (1.5, 1.5, None),
    "float": ([1.0, 2.0], [1.0, 4.0], ("value", 1, 2, 2.0, 0.5, 0)),
    "minus zero": ([0.0, 1.0], [-0.0, 1.0], ("value", 1, 2, 0.0, 0.0, 0)),
    "nan": ([math.nan, 1.0], [math.nan, 1.0], None),
    "other bits of nan": (nan(0x7FC00000), nan(0x7FC00001), ("value", 1, 1, None, None, 0)),
    "new nan": ([1.0, 2.0], [math.nan, 1.0], ("value", 2, 2, 1.0, 0.5, 1)),
    "no nan any more": ([math.nan], [1.0], ("value", 1, 1, None, None, 0)),
    "infinity": ([1.0, 0.0], [math.inf, 0.0], ("value", 1, 2, math.inf, math.inf, 0)),
    "both infinite": ([-math.inf], [math.inf], ("value", 1, 1, math.inf, math.inf, 0)),
    "from zero": ([0.0], [3.0], ("value", 1, 1, 3.0, 1.0, 0)),
    "int": ([1, 2, 3], [1, 5, 3], ("value", 1, 3, 3, 0.6, 0)),
    "far ints": ([-(2**31)], [2**31 - 1], ("value", 1, 1, 2**32 - 1, (2**32 - 1) / 2**31, 0)),
    "uint8": (np.array([3], "u1"), np.array([250], "u1"), ("value", 1, 1, 247, 0.988, 0)),
    "bool": ([True, False], [True, True], ("value", 1, 2, None, None, None)),
    "string": (["a", "b"], ["a", "c"], ("value", 1, 2, None, None, None)),
    "same string": (["a", ""], ["a", ""], None),
    "complex": ([3 + 4j], [0j], ("value", 1, 1, 5.0, 1.0, 0)),
    "empty": (np.zeros((0, 2), "f4"), np.zeros((0, 2), "f4"), None),
    "shape": ([1.0], [1.0, 2.0], ("shape (1,) -> (2,)", None, 2, None, None, None)),
    "dtype": ([1.0], [1], ("dtype float32 -> int32", None, 1, None, None, None)),
    "both": ([1.0], 1, ("shape (1,) -> (), dtype float32 -> int32", None, 1, None, None, None)),
}


@pytest.mark.parametrize(("a", "b", "wanted"), ROWS.values(), ids=ROWS)
def test_a_row_says_how_it_changed(a: Any, b: Any, wanted: Any):
    assert row(a, b) == wanted


def test_keys_and_narrow_floats():
    keys = jax.random.split(jax.random.key(0), 3)
    assert row(keys, keys) is None
    assert row(keys, keys.at[1].set(keys[0])) == ("value", 1, 3, None, None, None)
    assert row(jax.random.key(0), jax.random.key(0, impl="rbg"))[0].startswith("dtype key<fry>")
    half = jnp.ones(2, jnp.bfloat16)
    assert row(half, half.at[0].set(-3)) == ("value", 1, 2, 4.0, 4 / 3, 0)


def test_integers_of_64_bits_are_exact():
    with jax.enable_x64(True):
        wide = np.array([2**62, 5], np.int64)
        assert row(wide, wide + np.array([1, 0]))[3] == 1
        ends = np.array([-(2**63)]), np.array([2**63 - 1])
        assert row(*ends)[3] == 2**64 - 1


def test_modules_states_and_paths_that_are_missing():
    model, other = {"w": jv.Variable([1.0]), "b": jv.Variable(2.0)}, {"w": jv.Variable([1.0])}
    table = jv.diff(model, other)
    assert list(table) == [("b", "only before", None, 1, None, None, None)]
    assert list(jv.diff(other, model)) == [("b", "only after", None, 1, None, None, None)]
    assert not jv.diff(jv.State.of(model), model)
    assert table.footer[0][0] == "1 of 2 changed"
    assert "only before" in table._repr_html_()
    saved = pickle.loads(pickle.dumps(jv.State.of(model)))
    model["b"].assign(3.0)
    assert jv.diff(saved, model).column("path") == ["b"]
    with pytest.raises(StateError, match="has no Variable"):
        jv.diff({}, model)

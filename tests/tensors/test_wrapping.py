"""What converted code passes to the user's code: arrays, or boxes while boxing is on."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import jaxvars as jv
from jaxvars.tensors.array_like import BOXES
from jaxvars.tensors.wrapping import (
    TensorWrapping,
    boxed,
    boxing,
    is_box,
    is_boxing,
    settled_numbers,
    type_for,
)


class Box:
    def __init__(self, array):
        self.array = array


def _box(value):
    return jax.tree.map(lambda x: Box(x) if isinstance(x, jax.Array) else x, value)


SEMANTICS = TensorWrapping(_box, lambda x: jnp.asarray(x, jnp.int16))


def test_nothing_is_boxed_by_itself():
    x = jnp.ones(2)
    assert boxed(x) is x
    assert not is_boxing()
    assert settled_numbers((1, x)) == (1, x)
    assert type_for(int, np.int64) is np.int64


def test_boxes_inside(monkeypatch):
    monkeypatch.setitem(BOXES, Box, lambda box: box.array)
    with boxing(SEMANTICS):
        made = boxed((jnp.ones(2), "a"))
        assert is_box(made[0])
        assert made[1] == "a"
        assert settled_numbers([1, True])[0].dtype == jnp.int16
        assert settled_numbers([1, True])[1] is True
        assert type_for(int, None) == jnp.int16
        with boxing(None):
            assert not is_box(made[0])
    assert not is_boxing()


def test_a_compiled_function_sees_arrays():
    seen = []

    @jv.compile(autograph=True)
    def f(x):
        if x > 0:
            x = x + 1
        seen.append(type(x))
        return x

    with boxing(SEMANTICS):
        assert float(f(jnp.float32(1.0))) == 2.0
    assert seen[0] is not Box

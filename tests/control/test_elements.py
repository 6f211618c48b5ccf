"""`control/elements.py`: indices that are known and traced, and what may become an element."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.control.elements import element_of, known_size, place_of, places_of, put, row, rows_of

F32 = np.dtype("float32")


@pytest.mark.parametrize(
    "index", [2, np.int64(2), np.array(2), jnp.int32(2), jnp.uint8(2), jv.Variable(2)], ids=repr
)
def test_an_index_that_is_known(index):
    assert place_of(index) == 2
    assert type(place_of(index)) is int


@pytest.mark.parametrize(
    "index", [True, 2.0, "2", None, jnp.float32(2), jnp.ones(2, int)], ids=repr
)
def test_no_index(index):
    with pytest.raises(TypeError, match="The index of an element is a whole number, not"):
        place_of(index)


@pytest.mark.parametrize("index", [2.0, jnp.ones(2, int), np.bool_(True)], ids=repr)
def test_no_traced_index(index):
    with pytest.raises(TypeError, match="The index of an element is a whole number"):
        jax.jit(place_of)(index)


def test_indices():
    assert places_of([2, 0]) == [2, 0]
    assert places_of([]) == []
    assert places_of(jnp.arange(3)) == [0, 1, 2]
    jax.jit(lambda i: i + jnp.asarray(places_of(i)))(jnp.arange(3))


@pytest.mark.parametrize("indices", [3, [1.5], [[1]], [True]], ids=repr)
def test_no_indices(indices):
    with pytest.raises(TypeError, match="Indices of elements are a vector of whole numbers, not"):
        places_of(indices)


def test_sizes():
    assert known_size(np.int32(3)) == 3
    assert known_size(jnp.int32(3)) == 3
    with pytest.raises(ValueError, match="cannot be -1"):
        known_size(-1)
    for size in (2.5, None, "3", True):
        with pytest.raises(TypeError, match="is a whole number that is known"):
            known_size(size)
    with pytest.raises(TypeError, match=r"take it from a shape, x\.shape\[0\], or give an upper"):
        jax.jit(known_size)(3)


@pytest.mark.parametrize("index", range(-3, 6))
def test_a_traced_index_reads_the_nearest_and_writes_nothing_outside(index):
    x = np.arange(3.0, dtype=F32)
    assert jax.jit(row)(x, index) == x[np.clip(index, 0, 2)]
    want = x.copy()
    if 0 <= index < 3:
        want[index] = 9
    np.testing.assert_array_equal(jax.jit(put)(x, index, np.float32(9)), want)


def test_a_buffer_without_elements():
    with pytest.raises(IndexError, match="has no elements"):
        jax.jit(row)(np.zeros((0, 2), F32), 0)
    assert jax.jit(put)(np.zeros((0, 2), F32), 0, np.ones(2, F32)).shape == (0, 2)


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.float64(1), jnp.float32(1)], ids=repr)
def test_what_becomes_an_element(value):
    element = element_of(value, 0, F32, None)
    assert element.dtype == F32
    assert not element.weak_type


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (jnp.int32(1), "float32", "Element 3 of a TensorArray is int32, but its dtype is float32"),
        (np.ones(2, np.int32), "float32", r"jnp.asarray\(value, 'float32'\)"),
        (jnp.float32(1), "int32", "is float32, but its dtype is int32"),
        (1.5, "int32", "Element 3 of a TensorArray"),
    ],
    ids=repr,
)
def test_another_dtype_is_refused(value, dtype, message):
    with pytest.raises(jv.errors.DtypeError, match=message):
        element_of(value, 3, np.dtype(dtype), None)


@pytest.mark.parametrize("value", [None, {"a": 1}, [[1], [1, 2]], object()])
def test_no_element(value):
    with pytest.raises(jv.errors.NotATensorError, match="Element 3 of a TensorArray"):
        element_of(value, 3, F32, None)


def test_another_shape_is_refused():
    with pytest.raises(
        jv.errors.ShapeError, match=r"Element 3 has shape \(2,\).*have shape \(3,\)"
    ):
        element_of([1.0, 2.0], 3, F32, (3,))
    with pytest.raises(jv.errors.ShapeError, match=r"A row has shape \(\)"):
        rows_of([1.0, 2.0], F32, (3,))
    with pytest.raises(jv.errors.ShapeError, match="rows of an array, not as a scalar"):
        rows_of(1.0, F32, None)
    assert element_of([1.0, 2.0], 3, F32, (None,)).shape == (2,)

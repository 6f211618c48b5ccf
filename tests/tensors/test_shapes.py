"""`tensors/shapes.py`: patterns of shapes."""

from __future__ import annotations

from typing import Any

import pytest

from jaxvars.tensors.shapes import misfit


@pytest.mark.parametrize(
    ("shape", "pattern"),
    [
        ((), ()), ((3,), (3,)), ((3, 4), (None, ".")), ((3, 4), ("n", "m")), ((3, 3), ("n", "n")),
        ((2, 3, 4), (..., 4)), ((2, 3, 4), ("*", "n", 4)), ((2, 3, 4), (2, ...)), ((4,), (..., 4)),
        ((), (...,)), ((1, 2), (...,)), ((8, 5, 5, 3), "NHHC"), ((8, 5), ["n", 5]),
    ],
    ids=repr,
)  # fmt: skip
def test_shapes_that_match(shape, pattern):
    assert misfit("x", shape, pattern, {}) is None


@pytest.mark.parametrize(("shape", "pattern", "why"), [
    ((3,), (), "it should have rank 0"), ((3, 4), (3,), "it should have rank 1"),
    ((4,), (..., 3, 4), "it should have rank 2 or more"),
    ((3, 4), (3, 5), "dimension 1 of x should be 5"),
    ((2, 3, 4), (..., 5), "dimension 2 of x should be 5"),
    ((2, 3, 4), (3, ...), "dimension 0 of x should be 3"),
    ((3, 4), ("n", "n"), "n is 3 (dimension 0 of x), but dimension 1 of x is 4"),
], ids=repr)  # fmt: skip
def test_shapes_that_do_not(shape, pattern, why):
    assert misfit("x", shape, pattern, {}) == why


def test_names_are_the_same_sizes_everywhere():
    sizes: dict[str, tuple[int, str]] = {}
    assert misfit("x", (8, 3), ("batch", "n"), sizes) is None
    assert misfit("w", (3, 5), ("n", "m"), sizes) is None
    assert (
        misfit("b", (4,), ("m",), sizes) == "m is 5 (dimension 1 of w), but dimension 0 of b is 4"
    )


@pytest.mark.parametrize(
    "pattern", [(1.5,), (..., 3, ...), (3, ..., 4), ((3,),), ("a", "*", 3)], ids=repr
)
def test_no_patterns(pattern: Any):
    with pytest.raises(TypeError, match="is not a pattern of a shape: sizes are numbers, names"):
        misfit("x", (1, 2, 3), pattern, {})

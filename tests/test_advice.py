"""Notes on errors of JAX and Python; the programs of users are in `mistake_programs.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.advice import INSTEAD, explain, instead_of, name_shapes


class MyError(TypeError):
    """An error of the user's."""


def test_a_note_is_added_once_and_to_errors_of_python_and_jax_alone() -> None:
    words = "'ArrayImpl' object is not callable"
    theirs, mine, other = TypeError(words), MyError(words), RuntimeError(words)
    for error in (theirs, theirs, mine, other, None):
        explain(error)
    assert len(theirs.__notes__) == 1
    assert not hasattr(mine, "__notes__")
    assert not hasattr(other, "__notes__")


@pytest.mark.parametrize(
    ("error", "is_of_array"),
    [
        (TypeError("unsupported operand type(s) for -: 'list' and 'float'"), True),
        (TypeError("unsupported operand type(s) for *: 'DynamicJaxprTracer' and 'list'"), True),
        (TypeError("unsupported operand type(s) for -: 'str' and 'list'"), False),
        (TypeError("unsupported operand type(s) for -: 'list' and 'set'"), False),
        (TypeError("expected a path, got <class 'list'>"), False),
        (ValueError("unsupported operand type: the rule 'list'"), False),
        (AttributeError("'list' object has no attribute 'T'"), True),
        (AttributeError("'list' object has no attribute 'TTL'"), False),
    ],
)
def test_lists_are_advised_against_where_numbers_were_meant(error, is_of_array) -> None:
    explain(error)
    notes = getattr(error, "__notes__", [])
    assert any("list" in note for note in notes) == is_of_array
    assert not any("None" in note for note in notes)


def test_variables_are_named_by_the_shapes_in_a_message() -> None:
    error = TypeError("incompatible shapes: (2,), (3, 4)")
    name_shapes(error, [("a", (2,)), ("b", (4,)), ("c", (3, 4)), ("d", ()), ("e", (2, 3))])
    assert error.__notes__ == ["Variables of such shapes: 'a' (2,), 'c' (3, 4)."]


def test_nested_functions_name_a_variable_once() -> None:
    v = jv.Variable(jnp.ones(3), name="w")
    inner = jv.compile(lambda x: jnp.dot(x, v))
    with pytest.raises(TypeError, match="contracting") as caught:
        jv.compile(lambda x: v.sum() + inner(x))(jnp.ones(2))
    notes = [note for note in caught.value.__notes__ if "Variable" in note]  # JAX adds others
    assert notes == ["Variables of such shapes: 'w' (3,)."]


def test_errors_without_shapes_have_no_note() -> None:
    def fail(x: jax.Array) -> jax.Array:
        raise ValueError("mine, of (3,)")

    with pytest.raises(ValueError, match="mine") as caught:
        jv.compile(fail)(jnp.ones(3))
    assert not any("Variable" in note for note in getattr(caught.value, "__notes__", ()))


@pytest.mark.parametrize("owner", INSTEAD)
def test_each_name_is_absent_where_it_is_advised_against(owner: str) -> None:
    objects = {
        "jaxvars": jv,
        "Variable": jv.Variable(1.0),
        "Module": jv.Module(),
        "Function": jv.compile(abs),
        "jaxvars.config": jv.config,
        "Optimizer": jv.optimizers.SGD(0.1),
        "Metric": jv.metrics.Mean(),
        "jaxvars.checkpoint": jv.checkpoint,
        "jaxvars.losses": jv.losses,
        "jaxvars.optimizers": jv.optimizers,
        "jaxvars.metrics": jv.metrics,
        "jaxvars.random": jv.random,
        "jaxvars.initializers": jv.initializers,
    }
    for name in INSTEAD[owner]:
        with pytest.raises(AttributeError, match=" Use "):
            getattr(objects[owner], name)
        assert instead_of(name, owner).startswith(" Use ")
    assert instead_of("nothing", owner) == ""


_COMPUTE: dict[str, Any] = {
    "update": lambda _, new: new, "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "div": np.divide, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
_INDICES = {
    "scatter": ([2, 0], [[1.0, 2.0], [3.0, 4.0]]),
    "nd": ([[0, 1], [2, 0]], [5.0, 6.0]),
    "batch": ([[1], [0], [1]], [[1.0], [2.0], [3.0]]),
}


@pytest.mark.parametrize("name", [name for name in INSTEAD["Variable"] if "scatter" in name])
def test_what_is_advised_for_scatter_methods_does_the_same(name: str) -> None:
    kind = "nd" if "nd" in name else name.partition("_")[0]
    given, updates = map(np.asarray, _INDICES[kind])
    want = np.arange(6.0, dtype="float32").reshape(3, 2)
    v = jv.Variable(want)
    names = {"v": v, "jnp": jnp, "rows": jnp.asarray(given), "indices": jnp.asarray(given)}
    cure = instead_of(name, "Variable").removeprefix(" Use ").removesuffix(".")
    eval(cure, {**names, "updates": jnp.asarray(updates, "float32")})
    for i, (index, update) in enumerate(zip(given, updates, strict=True)):
        at = {"nd": tuple(index.flat), "batch": (i, index), "scatter": index}[kind]
        want[at] = _COMPUTE[name.rpartition("_")[2]](want[at], update)
    assert v.numpy().tolist() == want.tolist()

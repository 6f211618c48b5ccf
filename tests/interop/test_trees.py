"""`jv.variables`: a pytree of Variables, read and assigned as a whole."""

from __future__ import annotations

import copy
import dataclasses
import functools
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxvars as jv
from jaxvars.errors import StateError


@functools.partial(jax.tree_util.register_dataclass, data_fields=["w", "b"], meta_fields=["size"])
@dataclasses.dataclass
class Linear:
    """What modules of equinox are like."""

    w: Any
    b: Any
    size: int

    def __call__(self, x: Any) -> Any:
        return x @ self.w + self.b


class Pair(NamedTuple):
    """A named tuple."""

    mu: Any
    nu: Any


@jax.tree_util.register_pytree_node_class
class Hidden:
    """A pytree whose parts are not attributes that are looked at."""

    def __init__(self, *parts: Any) -> None:
        self.parts = lambda: parts

    def tree_flatten(self) -> tuple[Any, None]:
        return self.parts(), None

    @classmethod
    def tree_unflatten(cls, _: None, parts: Any) -> Hidden:
        return cls(*parts)


ADAM = optax.chain(optax.clip(1.0), optax.adam(0.1))
TREES = {
    "optax": lambda: ADAM.init({"w": jnp.ones(2), "b": jnp.zeros(())}),
    "dataclass": lambda: Linear(jnp.ones((2, 3)), np.zeros(3, np.float32), 3),
    "named tuple": lambda: Pair(jnp.ones(2), [None, jnp.zeros(1)]),
    "keys": lambda: {"key": jax.random.key(3), "old": jax.random.PRNGKey(1)},
    "scalars": lambda: {"z": np.float32(2.0), "lr": 0.1, "on": True, "n": 3, "f": max, "s": "x"},
    "bfloat16": lambda: [jnp.ones(2, jnp.bfloat16), (jnp.arange(2), ())],
    "hidden": lambda: Hidden(jnp.ones(2), {"a": jnp.zeros(3)}),
    "array": lambda: jnp.ones(2),
    "none": lambda: {"a": None, "w": jnp.ones(1)},
}
ALL = pytest.mark.parametrize("make", TREES.values(), ids=TREES)


def same(a: Any, b: Any) -> bool:
    """Whether two trees have the same structure and leaves."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    equal = all(x is y or bool(jnp.all(jnp.asarray(x == y))) for x, y in pairs)
    return equal and jax.tree.structure(a) == jax.tree.structure(b)


@ALL
def test_a_tree_comes_back_and_is_assigned(make: Any):
    tree = make()
    held = jv.variables(tree)
    assert type(held.value) is type(tree)
    assert same(held.value, tree)
    other = jax.tree.map(
        lambda x: x + x if isinstance(x, jax.Array) and x.dtype == float else x, tree
    )
    assert held.assign(other) is held
    assert same(held.value, other)
    assert same(jv.variables(held.value).value, held.value)
    assert held.assign(held) is held


@ALL
def test_the_variables_are_found_under_its_paths(make: Any):
    model = jv.Module()
    model.part = jv.variables(make())
    found = jax.tree_util.tree_flatten_with_path(make())[0]
    paths = {
        "/".join(filter(None, ("part", jax.tree_util.keystr(path, simple=True, separator="/"))))
        for path, leaf in found
        if isinstance(leaf, jax.Array | np.ndarray | np.generic)
    }
    assert set(jv.State.of(model)) == set(model.named_variables) == paths
    inexact = {path for path, v in model.named_variables.items() if v.trainable}
    assert all(jnp.issubdtype(model.named_variables[p].dtype, jnp.inexact) for p in inexact)


@ALL
def test_a_checkpoint_keeps_it(make: Any, tmp_path: Path):
    held = jv.variables(make())
    saved = jv.checkpoint.Checkpoint(tree=held).save(tmp_path / "c.npz")
    other = jv.variables(
        jax.tree.map(lambda x: x * 0 if hasattr(x, "at") and x.dtype == float else x, make())
    )
    jv.checkpoint.Checkpoint(tree=other).restore(saved)
    assert same(other.value, make())


def test_leaves_are_copied_and_variables_stay():
    x, v = np.ones(2, np.float32), jv.Variable(1.0)
    held = jv.variables({"x": x, "v": v})
    x[0] = 7.0
    assert held.value["x"].tolist() == [1.0, 1.0]
    assert held.tree["v"] is v
    assert list(held.value) == ["x", "v"]
    assert jv.interop.from_pytree({"v": v})["v"] is v
    assert repr(held).startswith("variables({'x': <Variable 'x' float32[2] [1. 1.]>")


def test_a_copy_shares_no_variables_of_modules_in_the_tree():
    class Scale(jv.Module):
        def __init__(self):
            self.w = jv.Variable(1.0)

    held = jv.variables({"scale": Scale(), "a": jnp.ones(2)})
    made = copy.deepcopy(held)
    made.tree["scale"].w.assign(3.0)
    assert float(held.tree["scale"].w) == 1.0
    assert list(jv.State.of(made)) == list(jv.State.of(held)) == ["a", "scale/w"]


def test_an_assignment_that_does_not_fit_lists_all_and_changes_nothing():
    held = jv.variables({"a": jnp.ones(2), "b": jnp.ones(3), "n": 3, "f": max, "z": 0.0})
    bad = {"a": jnp.zeros(2), "b": jnp.zeros(4), "n": 4, "f": min, "z": -0.0}
    with pytest.raises(StateError) as error:
        held.assign(bad)
    lines = str(error.value).splitlines()
    assert lines[0] == "Nothing was assigned:"
    assert [line.split(":")[0].strip() for line in lines[1:] if line[2] != " "] == list("bfnz")
    assert "it is 3, not an array, and so cannot become 4" in str(error.value)
    assert held.value["a"].tolist() == [1.0, 1.0]
    with pytest.raises(StateError, match=r"assigned at .* has another structure"):
        held.assign({"a": jnp.zeros(2)})


def test_optax_trains_with_it_in_a_compiled_step():
    params = jv.variables(Linear(jnp.ones((2, 1)), jnp.zeros(1), 1))
    state = jv.variables(ADAM.init(params.value))
    plain, plain_state = params.value, state.value
    x = jnp.ones((4, 2))

    def loss(model: Any) -> Any:
        return jnp.mean(model(x) ** 2)

    @jv.compile
    def step() -> None:
        updates, new = ADAM.update(jax.grad(loss)(params.value), state.value, params.value)
        params.assign(optax.apply_updates(params.value, updates))
        state.assign(new)

    @jax.jit
    def plain_step(plain: Any, state: Any) -> Any:
        updates, state = ADAM.update(jax.grad(loss)(plain), state, plain)
        return optax.apply_updates(plain, updates), state

    for _ in range(3):
        step()
        plain, plain_state = plain_step(plain, plain_state)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), params.value, plain)
    assert int(optax.tree.get(state.value, "count")) == 3
    with jv.GradientTape() as tape:
        y = loss(params.value)
    assert tape.gradient(y, params.tree.w).shape == (2, 1)
    jv.place(params, jax.P(), mesh=jv.mesh({"x": 1}, jax.devices()[:1]))
    assert params.tree.w.sharding.spec == jax.P()

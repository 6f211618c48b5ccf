"""Modules of other libraries in ours are refused with the line that adapts them, or found."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from flax import linen, nnx

import jaxvars as jv
from jaxvars.checkpoint import Checkpoint
from jaxvars.errors import InteropError
from jaxvars.modules import module
from jaxvars.objects import traversal


class _Equinox:
    """As equinox's Module: the class of frozen dataclasses that are pytrees."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Affine(_Equinox):
    weight: Any
    bias: Any

    def __call__(self, x: Any) -> Any:
        return self.weight @ x + self.bias


class _Layer:
    """As a layer of Keras: it has a list of variables."""

    def __init__(self, *variables: object):
        self.variables = list(variables)


@pytest.fixture(autouse=True)
def _imported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "equinox", SimpleNamespace(Module=_Equinox))  # pyright: ignore[reportArgumentType] - all that is asked for
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(Layer=_Layer))  # pyright: ignore[reportArgumentType] - all that is asked for


def affine() -> Affine:
    return Affine(jnp.ones((2, 3)), jnp.arange(2.0))


def around(part: object) -> jv.Module:
    module = jv.Module()
    module.w, module.parts = jv.Variable(1.0), {"net": part}
    return module


MODULES = [
    (lambda: linen.Dense(3), r"jv\.interop\.from_flax\(net, example_input\)"),
    (lambda: linen.Dense(3).bind({"params": {}}), r"self\.apply = net\.apply"),
    (lambda: nnx.Linear(2, 3, rngs=nnx.Rngs(0)), r"jv\.interop\.from_flax\(net\)"),
    (
        lambda: nnx.Optimizer(nnx.Linear(2, 3, rngs=nnx.Rngs(0)), optax.adam(0.1), wrt=nnx.Param),
        r"jv\.optimizers\.Optax\(transformation\)",
    ),
    (lambda: nnx.Rngs(0), r"jv\.interop\.from_flax\(net\)"),
    (lambda: nnx.Param(jnp.ones(3)), r"jv\.Variable\(net\[\.\.\.\]\)"),
    (affine, r"jv\.interop\.from_equinox\(net\)"),
    (lambda: _Layer(object()), r"jv\.interop\.from_keras\(net\)"),
]


@pytest.mark.parametrize(("make", "line"), MODULES)
def test_a_module_of_another_library_is_refused_wherever_variables_are_looked_for(make, line):
    module = around(make())
    optimizer = jv.optimizers.SGD(0.1)
    for look in (
        lambda: module.variables,
        lambda: module.trainable_variables,
        lambda: module.named_variables,
        module.table,
        lambda: jv.State.of(module),
        lambda: jv.State.of(model=module, w=jv.Variable(1.0)),
        lambda: Checkpoint(model=module),
        lambda: Checkpoint(model=jv.Variable(1.0), nested={"a": [module]}),
        lambda: optimizer.build(module),
        lambda: jv.place(module, jax.P()),
    ):
        with pytest.raises(InteropError, match=rf"at 'parts/net'.*Variables.*Adapt it: .*{line}"):
            look()


class _Alike(type):
    """A class of classes that are all equal."""

    def __eq__(cls, _: object):
        return True

    def __hash__(cls):
        return 0


def test_a_class_is_not_taken_for_an_equal_one():
    kind = _Alike("Plain", (), {})
    module = jv.Module()
    module.plain = kind()
    module.layer = _Alike("Layer", (_Layer,), {})(jnp.ones(2))
    with pytest.raises(InteropError, match="of Keras"):
        jv.State.of(model=module)


def test_what_was_adapted_or_holds_no_state_does_not_matter():
    scale = jv.interop.from_pytree(affine())
    assert list(around(scale).named_variables) == ["parts/net/bias", "parts/net/weight", "w"]
    assert scale(jnp.ones(3)).tolist() == [3.0, 4.0]
    dense = jv.interop.from_flax(linen.Dense(2), jnp.ones((1, 3)))
    assert len(around(dense).trainable_variables) == 3
    for stateless in (Affine(jax.nn.relu, None), nnx.BatchNorm.__call__, _Layer()):
        assert len(around(stateless).variables) == 1
    apply = linen.Dense(3).apply  # the function alone
    assert len(around(apply).variables) == 1


def test_a_pytree_of_variables_trains_and_reads_as_arrays():
    tree = jv.interop.from_pytree({"w": jnp.ones(2), "n": jnp.int32(3), "act": jax.nn.relu})
    assert [v.trainable for v in (tree["w"], tree["n"])] == [True, False]
    assert tree["act"] is jax.nn.relu
    module = around(tree)
    optimizer = jv.optimizers.SGD(0.5)
    optimizer.minimize(lambda: (tree["w"] ** 2).sum(), module.trainable_variables[:1])
    assert tree["w"].numpy().tolist() == [0.0, 0.0]
    assert jv.interop.from_pytree(tree)["w"] is tree["w"]


def test_arrays_of_equinox_in_a_checkpoint_are_a_tree(tmp_path):
    checkpoint = Checkpoint(net=affine())
    path = checkpoint.write(tmp_path / "c.npz")
    again = Checkpoint(net=Affine(jnp.zeros((2, 3)), jnp.zeros(2)))
    again.restore(path).assert_consumed()
    assert again.net(jnp.ones(3)).tolist() == [3.0, 4.0]
    assert [v.name for v in again.variables] == ["save_counter"]


def test_nothing_is_refused_where_nothing_is_plugged_in(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(traversal, "WALKS", [])
    monkeypatch.setattr(module, "SET", [])
    made = jv.Module()
    made.w, made.net = jv.Variable(1.0), nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    assert made.variables == (made.w,)

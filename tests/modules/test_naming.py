"""What messages call variables that were given no name."""

from __future__ import annotations

import shelve

import jax
import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars.errors import GradientWarning, StaleReadWarning
from jaxvars.modules import naming


class Dense(jv.Module):
    def __init__(self):
        self.w, self.b = jv.Variable(jnp.ones(2)), jv.Variable(jnp.zeros(2), name="bias")

    def __call__(self, x):
        return x * self.w + self.b


class Net(jv.Module):
    def __init__(self):
        self.layers = [Dense(), Dense()]

    def __call__(self, x):
        return self.layers[1](self.layers[0](x))


@pytest.fixture
def net():
    return Net()


def test_a_path_is_that_in_the_outermost_module(net):
    class Trainer(jv.Module):
        def __init__(self):
            self.model = net

    trainer = Trainer()
    assert [naming.called(v._cell) for v in net.variables] == [
        "bias", "model/layers/0/w", "bias", "model/layers/1/w",
    ]  # fmt: skip
    assert trainer.model is net


def test_a_variable_in_no_module_has_its_name():
    with jv.name_scope("encoder"):
        v = jv.Variable(0.0)
    assert naming.called(v._cell) == "encoder/Variable"


def test_a_stale_read_names_the_path(net):
    with pytest.warns(StaleReadWarning, match="'layers/0/w' was read") as caught:
        jax.jit(lambda x: net(x))(jnp.ones(2))
    assert len(caught) == 1


def test_missing_gradients_name_paths_and_the_reason(net):
    optimizer = jv.optimizers.SGD(0.1)
    loss = lambda: jnp.sum(net.layers[0](1.0))  # noqa: E731
    variables = [net.layers[1].w, net.layers[1].b, net.layers[0].w]
    with pytest.warns(GradientWarning) as caught:
        optimizer.minimize(loss, variables)
    (said,) = [str(each.message) for each in caught]
    assert "['layers/1/w', 'bias'], which keep their values" in said
    assert said.endswith(
        "Of the first: Variable 'layers/1/w' was not read while the tape recorded."
    )
    with jv.GradientTape() as tape:
        value = loss()
    with pytest.warns(GradientWarning, match=r"'layers/1/w'.*tape.explain\(loss, variable\)"):
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
    assert optimizer.iterations.item() == 2


def test_what_an_optimizer_refuses_has_a_path(net):
    net.count = jv.Variable(0)
    with pytest.raises(TypeError, match="Variable 'count' is int32, which cannot be trained"):
        jv.optimizers.SGD(0.1).minimize(lambda: 0.0, [net.count])


def test_a_path_is_where_a_variable_is_now(net):
    w = net.layers[1].w
    assert naming.called(w._cell) == "layers/1/w"
    del net.layers[0]
    assert naming.called(w._cell) == "layers/0/w"
    net.layers = None
    assert naming.called(w._cell) == "Variable"


def test_a_module_that_cannot_be_looked_into_is_passed_over(net, tmp_path):
    other = Net()
    other.cache = shelve.open(tmp_path / "cache")  # noqa: SIM115
    other.cache.close()
    with pytest.raises(ValueError, match="closed shelf"):
        other.variables  # noqa: B018
    assert naming.called(net.layers[0].w._cell) == "layers/0/w"
    assert naming.called(other.layers[0].w._cell) == "w"

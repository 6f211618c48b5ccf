"""What messages call variables: those of Modules by their paths."""

from __future__ import annotations

import shelve

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.errors import GradientWarning, StaleReadWarning, called


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
    assert [called(v._cell) for v in net.variables] == [
        "model/layers/0/b", "model/layers/0/w", "model/layers/1/b", "model/layers/1/w",
    ]  # fmt: skip
    assert trainer.model is net


def test_a_variable_in_no_module_has_its_name():
    with jv.name_scope("encoder"):
        v = jv.Variable(0.0)
    assert called(v._cell) == "encoder/Variable"


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
    assert "['layers/1/w', 'layers/1/b'], which keep their values" in said
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
    assert called(w._cell) == "layers/1/w"
    del net.layers[0]
    assert called(w._cell) == "layers/0/w"
    net.layers = None
    assert called(w._cell) == "Variable"


def test_a_module_that_cannot_be_looked_into_is_passed_over(net, tmp_path):
    other = Net()
    other.cache = shelve.open(tmp_path / "cache")  # noqa: SIM115
    other.cache.close()
    with pytest.raises(ValueError, match="closed shelf"):
        other.variables  # noqa: B018
    assert called(net.layers[0].w._cell) == "layers/0/w"
    assert called(other.layers[0].w._cell) == "w"


def test_a_name_that_says_more_than_the_path_stays():
    with jv.name_scope("encoder"):
        kernel = jv.Variable(0.0, name="kernel")

    class Holder(jv.Module):
        def __init__(self):
            self.kernel = kernel

    holder = Holder()
    assert called(kernel._cell) == "encoder/kernel"
    assert called(jv.optimizers.Adam(0.1).learning_rate._cell) == "adam/learning_rate"
    assert holder.kernel is kernel


def _assign_in(transform):
    return lambda v: transform(lambda x: v.assign(x))(jnp.ones(2))


def _donate(v):
    v.value.delete()
    v.numpy()


def _explain(v):
    x = jnp.ones(2)
    with jv.GradientTape() as tape:
        tape.watch(x)
        v.assign(x * 2)
        loss = jnp.sum(v)
    raise ValueError(tape.explain(loss, x))


def _set_trainable(v):
    v.trainable = False


def _rule(v):
    @jv.custom_gradient
    def double(x):
        v.assign(x)
        return x * 2, lambda upstream: upstream

    double(jnp.ones(2))


def _switch(v):
    wide = jnp.ones(2, jnp.int32)
    jv.compile(lambda c: jv.cond(c, lambda: v.assign(wide), lambda: None))(True)


OTHER = jv.State.of(other=jv.Variable(0.0))
REFUSED = {
    "a shape": lambda v: v.assign(jnp.ones(3)),
    "a dtype": lambda v: v.assign(jnp.ones(2, jnp.int32)),
    "no tensor": lambda v: v.assign({}),
    "NumPy": lambda v: v.assign(np.array([1.0, 1e300])),
    "strings": lambda v: v.assign("abc"),
    "a sum of another shape": lambda v: v.assign_add(jnp.ones(3)),
    "a part": lambda v: v[:1].assign(jnp.ones(3)),
    "an index": lambda v: v[7],
    "+= of another dtype": lambda v: v.__iadd__(jnp.ones(2, jnp.complex64)),
    "+= of no tensor": lambda v: v.__iadd__({}),
    "the value, set": lambda v: setattr(v, "value", 1.0),
    "a jit": _assign_in(jax.jit),
    "a grad": _assign_in(lambda f: jax.grad(lambda x: f(x).sum())),
    "a map": lambda v: jv.vectorized_map(lambda x: v.assign(x), jnp.ones((3, 2))),
    "a scan": lambda v: jax.lax.scan(lambda c, x: (c, v.assign(x)), 0.0, jnp.ones((3, 2))),
    "a State without it": lambda v: jv.functionalize(lambda: v.assign(jnp.ones(2)))(OTHER),
    "another State": lambda v: jv.functionalize(lambda: v + 0)(OTHER),
    "the flag, in a trace": lambda v: jv.compile(lambda: _set_trainable(v))(),
    "a guard": lambda v: jv.compile(lambda: v.assign(v / 0), guard="finite")(),
    "a custom gradient": _rule,
    "a branch": _switch,
    "a gradient of another shape": lambda v: jv.optimizers.SGD(0.1).apply_gradients(
        [(jnp.ones(3), v)]
    ),
    "a tape": _explain,
    "a value that is gone": _donate,
}


@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize(("layer", "path"), [("w", "layers/1/w"), ("b", "layers/1/b")])
def test_what_is_refused_names_the_path(net, refused, layer, path):
    with pytest.raises(Exception, match=f"'{path}'") as caught:
        REFUSED[refused](getattr(net.layers[1], layer))
    assert "'bias'" not in str(caught.value)


def test_a_part_of_a_linen_module_is_passed_over_without_a_read():
    class Pair(nn.Module):
        def setup(self):
            self.first, self.second = nn.Dense(2), nn.Dense(2)

        def __call__(self, x):
            return self.second(self.first(x))

    class Holder(jv.Module):
        def __init__(self):
            self.whole = jv.interop.from_flax(Pair(), jnp.ones((1, 2)), rngs=0)
            self.part = self.whole.first
            self.w = jv.Variable(jnp.ones(2))

    holder = Holder()
    with pytest.raises(ValueError, match="to variable 'w' of dtype"):
        holder.w += jnp.ones(2, jnp.complex64)
    holder.variables  # noqa: B018
    other = Holder()
    other.variables  # noqa: B018
    with pytest.raises(ValueError, match="to variable 'w' of dtype"):
        other.w += jnp.ones(2, jnp.complex64)

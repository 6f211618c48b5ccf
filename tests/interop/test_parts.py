"""Parts of adopted flax modules: callable modules that share the variables of the whole."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import jaxvars as jv
from jaxvars import interop
from jaxvars.errors import InteropError

X = jax.random.normal(jax.random.key(3), (8, 3))


def same(ours, theirs):
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


class Encoder(nnx.Module):
    def __init__(self, rngs):
        self.linear = nnx.Linear(3, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        return self.drop(self.norm(self.linear(x)))

    def doubled(self, x):
        return 2 * self.linear(x)


class Net(nnx.Module):
    def __init__(self, rngs):
        self.encoder = Encoder(rngs)
        self.layers = nnx.List([nnx.Linear(4, 4, rngs=rngs) for _ in range(2)])
        self.heads = nnx.Dict(a=nnx.Linear(4, 2, rngs=rngs))
        self.last = self.layers[1]
        self.table = jnp.arange(3.0)
        self.act = nnx.relu
        self.pair = nnx.data((nnx.Param(jnp.ones(2)), 0.5))

    def __call__(self, x):
        x = self.encoder(x)
        for layer in self.layers:
            x = self.act(layer(x))
        return self.heads["a"](x)

    @property
    def shifted(self):
        return self.encoder.linear.bias[...] + 1

    def get(self):
        return self.encoder


def make() -> tuple[Any, Any]:
    return interop.from_flax(Net(nnx.Rngs(0))), Net(nnx.Rngs(0))


# ---------------------------------------------------------------- parts of nnx
def test_parts_have_what_the_original_has():
    model, net = make()
    same(model.encoder(X), net.encoder(X))  # streams and statistics go on together
    same(model(X), net(X))
    same(model.encoder.norm.mean.value, net.encoder.norm.mean[...])
    same(model.encoder.doubled(X), net.encoder.doubled(X))
    h = jnp.ones((1, 4))
    same(model.layers[0](h), net.layers[0](h))
    same([layer(h) for layer in model.layers[-2:]], [layer(h) for layer in net.layers])
    same(model.heads["a"](h), net.heads["a"](h))
    assert list(model.heads) == ["a"]
    assert len(model.layers) == 2
    assert isinstance(model.encoder.linear.bias, jv.Variable)
    assert model.encoder.linear["bias"] is model.encoder.linear.bias
    assert (model.encoder.linear.in_features, model.encoder.drop.rate) == (3, 0.5)
    assert model.encoder.name == "encoder"
    assert model.act is nnx.relu
    assert model.table.name == "table"  # not the method of that name
    assert isinstance(model.pair[0], jv.Variable)
    assert model.pair[1] == 0.5
    same(model.shifted, jnp.ones(4))
    assert model.get() is model.encoder is model.encoder
    assert model.last is model.layers[1]
    assert "encoder" in dir(model)
    with pytest.raises(AttributeError, match="Linear has an attribute 'wheight'"):
        _ = model.encoder.linear.wheight


def test_parts_share_the_variables_of_the_whole():
    model, _ = make()
    paths = list(model.named_variables)
    assert [p for p in paths if "layers" in p] == [
        "layers/0/bias", "layers/0/kernel", "layers/1/bias", "layers/1/kernel",
    ]  # fmt: skip
    assert list(model.encoder.named_variables) == [
        p.removeprefix("encoder/") for p in paths if p.startswith("encoder/")
    ]
    assert {*paths} == {*jv.State.of(model)}
    model.last.bias.assign(jnp.full(4, 7.0))
    assert interop.to_flax(model)["layers"][1]["bias"][0] == 7
    same(interop.to_flax(model.last)["bias"][...], jnp.full(4, 7.0))
    with jv.GradientTape() as tape:
        loss = jv.compile(lambda: model.layers[1](jnp.ones((1, 4))).sum())()
    same(tape.gradient(loss, model.last.bias), jnp.ones(4))
    with jv.freeze(model.encoder):
        assert not [p for p, v in model.named_variables.items() if v.trainable and "enc" in p]


def test_a_part_is_an_argument_and_part_of_a_module():
    model, _ = make()
    run = jv.compile(lambda part, x: part(x))
    run(model.encoder, X), run(model.encoder, X)
    assert run.trace_count == 1

    class Both(jv.Module):
        def __init__(self):
            self.model, self.encoder = interop.from_flax(Encoder(nnx.Rngs(0))), None
            self.encoder = self.model.linear

    both = Both()
    assert list(both.named_variables)[:2] == ["encoder/bias", "encoder/kernel"]
    for other in (copy.deepcopy(both), pickle.loads(pickle.dumps(both))):
        assert other.encoder is other.model.linear
        assert not {*other.variables} & {*both.variables}


def test_attributes_are_set_in_the_module():
    model, net = make()
    model.encoder.drop.rate = net.encoder.drop.rate = 0.9
    same(model(X), net(X))
    for name, value in (("bias", jnp.ones(4)), ("bias", jv.Variable(jnp.ones(4)))):
        with pytest.raises(AttributeError, match=r"model\.bias\.assign\(value\)"):
            setattr(model.encoder.linear, name, value)
    with pytest.raises(AttributeError, match=r"to_flax\(model, bound=True\)"):
        model.encoder = nnx.Linear(3, 4, rngs=nnx.Rngs(0))


# ---------------------------------------------------------------- modes
def test_compiled_functions_follow_the_mode():
    model, _ = make()
    whole, part = jv.compile(lambda x: model(x)), jv.compile(lambda x: model.encoder(x))
    outer = jv.compile(lambda x: whole(x) + 1)
    runs = (whole, part, outer)

    def are_still() -> list[bool]:
        return [bool((run(X) == run(X)).all()) for run in runs]

    assert are_still() == [False] * 3
    for _ in range(2):
        model.eval()
        assert are_still() == [True] * 3
        model.train()
        assert are_still() == [False] * 3
    assert [run.trace_count for run in runs] == [2] * 3
    model.encoder.eval()
    assert are_still() == [True] * 3
    assert [run.trace_count for run in runs] == [2] * 3  # the same attributes as before
    model.encoder.drop.rate = 0.1
    model.train()
    np.testing.assert_allclose((part(X) == 0).mean(), 0.1, atol=0.15)


def test_a_function_that_is_first_traced_in_eval_follows_too():
    model, net = make()
    run = jv.compile(model)
    model.eval(), net.eval()
    np.testing.assert_allclose(run(X), net(X), rtol=1e-6)
    model.train(), net.train()
    np.testing.assert_allclose(run(X), net(X), rtol=1e-5)
    assert run.trace_count == 2


def test_a_mode_is_not_set_inside():
    model, _ = make()

    def late(x):
        model.eval()
        return model(x)

    with pytest.raises(InteropError, match=r"eval at .*when this is traced.*outside"):
        jv.compile(late)(X)
    assert not model.encoder.drop.deterministic
    model.eval()
    same(jv.compile(late)(X), jv.compile(model)(X))  # it changes nothing


# ---------------------------------------------------------------- kinds of variables
def test_variables_are_selected_by_the_kinds_of_nnx():
    class Tuned(nnx.Module):
        def __init__(self, rngs):
            self.base = nnx.LoRALinear(3, 2, lora_rank=1, rngs=rngs)
            self.norm = nnx.BatchNorm(2, rngs=rngs)

    model = interop.from_flax(Tuned(nnx.Rngs(0)))
    assert list(model.select(nnx.BatchStat)) == ["norm/mean", "norm/var"]
    assert list(model.select(nnx.LoRAParam)) == ["base/lora/lora_a", "base/lora/lora_b"]
    assert len(model.select(nnx.BatchNorm)) == 4
    outer = jv.Module()
    outer.net = model
    with jv.freeze(jv.select(outer, nnx.Param, but=nnx.LoRAParam)):
        assert list(outer.select(trainable=True)) == ["net/base/lora/lora_a", "net/base/lora/lora_b"]


# ---------------------------------------------------------------- many models, raw modules
class LinenNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(x)


def test_a_model_made_in_a_map_is_refused_with_programs_that_work():
    x = X
    makes = {
        "nnx": lambda key: interop.from_flax(nnx.Linear(3, 2, rngs=nnx.Rngs(key)))(x),
        "linen": lambda key: interop.from_flax(LinenNet(), x, rngs=key)(x),
    }
    for make in makes.values():
        with pytest.raises(InteropError, match=r"jax\.vmap.*one more axis") as caught:
            jax.vmap(make)(jax.random.split(jax.random.key(0), 5))
    lines = [inspect.cleandoc(line) for line in str(caught.value).split("\n")]
    names: dict[str, Any] = {"x": x, "nnx": nnx, "jax": jax, "jnp": jnp, "jv": jv}
    exec("\n".join(lines[1:4]), names | {"Net": functools.partial(nnx.Linear, 3, 2)} | names)  # noqa: S102 - what it says

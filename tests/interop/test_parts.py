"""Parts of adopted flax modules: callable modules that share the variables of the whole."""

from __future__ import annotations

import copy
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

X = jnp.asarray(np.random.default_rng(3).standard_normal((8, 3), np.float32))


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
        self.tail = self.layers[1]
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
    assert model.tail is model.layers[1]
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
    model.tail.bias.assign(jnp.full(4, 7.0))
    assert interop.to_flax(model)["layers"][1]["bias"][0] == 7
    same(interop.to_flax(model.tail)["bias"][...], jnp.full(4, 7.0))
    with jv.GradientTape() as tape:
        loss = jv.compile(lambda: model.layers[1](jnp.ones((1, 4))).sum())()
    same(tape.gradient(loss, model.tail.bias), jnp.ones(4))
    pure, state = jv.functionalize(model.tail), jv.State.of(model.tail)  # no other is read
    same(jax.jit(pure)(state, jnp.zeros((1, 4)))[0], jnp.full((1, 4), 7.0))
    with jv.freeze(model.encoder):
        assert not [p for p, v in model.named_variables.items() if v.trainable and "enc" in p]


def test_a_part_is_an_argument_and_part_of_a_module():
    model, _ = make()
    run = jv.compile(lambda part, x: part(x))
    run(model.encoder, X), run(model.encoder, X)
    assert run.trace_count == 1

    both = jv.Module()
    both.model = interop.from_flax(Encoder(nnx.Rngs(0)))
    both.encoder = both.model.linear
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


def scanned(model):
    pure = jv.functionalize(model)

    def run(state, x):
        state, y = jax.lax.scan(lambda s, x: pure(s, x)[::-1], state, x[None])
        return y, state

    return run


PURE = {
    "whole": jv.functionalize,
    "part": lambda model: jv.functionalize(lambda x: model.encoder(x)),
    "compiled": lambda model: jv.functionalize(jv.compile(lambda x: model(x))),
    "scan": scanned,
}
STATES = {
    "model": jv.State.of,
    "in a dict": lambda model: jv.State.of({"net": [model]}),
    "variables": lambda model: jv.State.of(list(model.variables)),
}


@pytest.mark.parametrize(("kind", "of"), [*((kind, "model") for kind in PURE),
                                          *(("whole", of) for of in [*STATES][1:])])  # fmt: skip
def test_pure_functions_under_jit_follow_the_mode(kind, of):
    model, _ = make()
    pure = PURE[kind](model)
    traced: list[None] = []
    run = jax.jit(lambda state, x: [traced.append(None), pure(state, x)][1])
    state = STATES[of](model)

    def is_still() -> bool:
        first, later = run(state, X)  # of a State from before
        second, later = run(later, X)
        run(STATES[of](model), X)
        return bool((first == second).all())

    assert [is_still(), len(traced)] == [False, 1]
    model.eval()
    assert [is_still(), len(traced)] == [True, 2]
    for _ in range(2):
        model.train()
        assert [is_still(), len(traced)] == [False, 3]  # where it is known that it may be another
        model.eval()
        assert [is_still(), len(traced)] == [True, 3]


def test_a_view_in_a_pure_function_is_one_program():
    model, _ = make()
    traced: list[None] = []

    def both(x):
        traced.append(None)
        return model(x), model.view(deterministic=True, use_running_average=True)(x)

    run, state = jax.jit(jv.functionalize(both)), jv.State.of(model)
    for _ in range(3):
        (noisy, still), state = run(state, X)
        assert (noisy == 0).any()
        assert not (still == 0).all()
    assert len(traced) == 1
    model.eval()
    (first, _), state = run(state, X)
    (second, _), _ = run(state, X)
    same(first, second)
    assert len(traced) == 2


def test_a_program_that_was_compiled_ahead_refuses_another_mode():
    model, _ = make()
    run, state = jax.jit(jv.functionalize(model)), jv.State.of(model)
    ahead = run.lower(state, X).compile()
    ahead(state, X)
    model.eval()
    with pytest.raises(TypeError, match="compiled with"):
        ahead(state, X)


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


class Watched(nnx.Module):
    def __init__(self, during):
        self.scale, self.deterministic, self.calls = nnx.Param(jnp.ones(())), False, 0
        self.rates, self.during, self.call = [1.0], during, 5

    def __call__(self, x):
        self.during()
        return x * self.scale * self.rates[0]

    def counted(self, x):
        self.calls += 1
        return x * self.calls

    def grown(self, x):
        self.kept = nnx.Cache(x)
        return x


@pytest.mark.parametrize("change", ["eval", "grown"])
def test_a_running_call_takes_back_nothing_that_is_changed_meanwhile(change):
    model = interop.from_flax(Watched(lambda: None))

    def during():
        model.eval() if change == "eval" else model.grown(X)

    interop.NnxModule.call(model, lambda net, x: (during(), net(x)), X)
    assert model.deterministic == (change == "eval")
    assert ("kept" in model.named_variables) == (change == "grown")
    same(model(X), X)
    assert model.call == 5


def test_an_attribute_that_every_call_changes_is_refused_where_it_would_change_once():
    model = interop.from_flax(Watched(lambda: None))
    same([model.counted(X), model.counted(X)], [X, 2 * X])
    with pytest.raises(InteropError, match=r"counted at .* is compiled.*like a counter, is an nnx"):
        jv.compile(model.counted)(X)
    assert model.calls == 2
    same(jv.compile(model.grown)(X), X)  # state may be made there
    same(model.kept.value, X)
    with pytest.raises(TypeError):
        model.rates[0] = 5.0  # of a copy


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
    with pytest.raises(TypeError, match=r"Not.*is a filter of nnx: give a class"):
        model.select(nnx.Not(nnx.Param))
    outer = jv.Module()
    outer.net = model
    with jv.freeze(jv.select(outer, nnx.Param, but=nnx.LoRAParam)):
        assert list(outer.select(trainable=True)) == [
            "net/base/lora/lora_a",
            "net/base/lora/lora_b",
        ]


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
    programs = [line.strip() for line in str(caught.value).splitlines() if line[:4] == "    "]
    names: dict[str, Any] = {"x": x, "nnx": nnx, "jax": jax, "jnp": jnp, "jv": jv}
    names["Net"] = lambda rngs: nnx.Linear(3, 2, rngs=rngs)
    exec("\n".join(programs[:3]), names)  # what the message says
    assert names["y"].shape == (5, 8, 2)
    names["Net"] = LinenNet
    exec("\n".join(programs[3:]), names)
    np.testing.assert_allclose(names["y"][2], names["made"][2](x), rtol=1e-5)


def test_many_models_in_one_train_as_in_nnx():
    nets = nnx.vmap(lambda key: Encoder(nnx.Rngs(key)))(jax.random.split(jax.random.key(0), 3))
    models = interop.from_flax(nets)
    run = nnx.vmap(lambda net, x: net(x), in_axes=(0, None))
    theirs = nnx.Optimizer(nets, optax.sgd(0.1), wrt=nnx.Param)
    ours = jv.optimizers.SGD(0.1)
    for _ in range(3):
        theirs.update(nets, nnx.grad(lambda nets: (run(nets, X) ** 2).sum())(nets))
        ours.minimize(lambda: (models.call(run, X) ** 2).sum(), models.trainable_variables)
    np.testing.assert_allclose(models.linear.kernel.value, nets.linear.kernel[...], rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "cure"),
    [
        (lambda: nnx.Linear(3, 2, rngs=nnx.Rngs(0)), r"from_flax\(encoder\)"),
        (LinenNet, r"from_flax\(encoder, example_input\)"),
        (lambda: nnx.Param(jnp.ones(2)), r"jv\.Variable\(encoder\[\.\.\.\]\)"),
    ],
)
def test_a_raw_module_as_an_attribute_is_refused_at_once(make, cure):
    module = jv.Module()
    with pytest.raises(InteropError, match=rf"at 'encoder'.*{cure}"):
        module.encoder = make()
    module.drop = nnx.Dropout(0.5)  # has no state
    assert not module.variables
    mixed = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    mixed.ours = jv.Module()
    mixed.ours.scale = jv.Variable(1.0)
    module.inside = [mixed]
    with pytest.raises(InteropError, match="The Linear at 'inside/0', of flax nnx"):
        _ = module.variables


# ---------------------------------------------------------------- parts of linen
class LinenEncoder(nn.Module):
    size: int

    def setup(self):
        self.dense = nn.Dense(self.size)
        self.norm = nn.BatchNorm(use_running_average=False)
        self.drop = nn.Dropout(0.5, deterministic=False)

    def __call__(self, x):
        return self.drop(self.norm(self.dense(x)))

    def doubled(self, x):
        return 2 * self.dense(x)


class LinenWhole(nn.Module):
    head: nn.Module

    def setup(self):
        self.encoder = LinenEncoder(4)
        self.layers = [nn.Dense(4), nn.Dense(4)]
        self.named = {"a": nn.Dense(2)}

    def __call__(self, x):
        x = self.encoder(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x), self.named["a"](x)


def test_parts_of_linen_have_what_the_bound_module_has():
    model: Any = interop.from_flax(LinenWhole(nn.Dense(2)), X, rngs=0)
    bound = interop.to_flax(model, bound=True)
    h = jnp.ones((1, 4))
    same(model.encoder.doubled(X), bound.encoder.doubled(X))
    same(model.encoder.dense(X), bound.encoder.dense(X))
    for ours, theirs in (
        (model.layers[1], bound.layers[1]), (model.named["a"], bound.named["a"]),
        (model.head, bound.head),
    ):  # fmt: skip
        same(ours(h), theirs(h))
    assert model.encoder.size == 4
    assert model.encoder.params["dense"]["bias"] is model.params["encoder"]["dense"]["bias"]
    assert list(model.encoder.dense.named_variables) == ["params/bias", "params/kernel"]
    before = model.batch_stats["encoder"]["norm"]["mean"].numpy()
    run = jv.compile(lambda part, x: part.doubled(x))
    same(run(model.encoder, X), run(model.encoder, X))
    assert run.trace_count == 1
    other = copy.deepcopy(model)
    other.encoder.params["dense"]["bias"].assign(jnp.full(4, 9.0))
    assert (model.encoder.params["dense"]["bias"].numpy() != 9.0).all()
    assert (other.params["encoder"]["dense"]["bias"].numpy() == 9.0).all()
    first, second = (jv.compile(model.encoder)(X) for _ in range(2))
    assert (first != second).any()
    assert (model.batch_stats["encoder"]["norm"]["mean"] != before).all()
    with jv.GradientTape() as tape:
        loss = model.encoder.doubled(X).sum()
    same(tape.gradient(loss, model.params["encoder"]["dense"]["bias"]), jnp.full(4, 16.0))
    with pytest.raises(AttributeError, match="LinenEncoder has an attribute 'dens'"):
        _ = model.encoder.dens
    with pytest.raises(AttributeError, match=r"mode of linen is .*: model\(x, train=False\)"):
        model.encoder.eval()
    late = interop.from_flax(LinenWhole(nn.Dense(2)), rngs=0)
    with pytest.raises(AttributeError, match="'encoder' yet: the first call makes the parts"):
        _ = late.encoder

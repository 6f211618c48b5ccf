"""`from_equinox`: equinox modules as Modules, beside equinox itself."""

from __future__ import annotations

import collections
import copy
import functools
import pickle
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxvars as jv
from jaxvars.errors import ForeignTransformError, InteropError
from jaxvars.interop import from_equinox, to_equinox

KEY = jax.random.key(0)
RANDOM = np.random.default_rng(0)  # JAX's would be compiled as the file is imported
XS = jnp.asarray(RANDOM.standard_normal((16, 2), np.float32))
IMAGES = jnp.asarray(RANDOM.standard_normal((16, 1, 8, 8), np.float32))
LABELS = jnp.asarray(RANDOM.integers(0, 3, 16))


def mlp(**kwargs: Any) -> Any:
    return eqx.nn.MLP(2, 1, 8, 2, key=KEY, **kwargs)


class CNN(eqx.Module):
    conv: eqx.nn.Conv2d
    norm: eqx.nn.BatchNorm
    hidden: eqx.nn.SpectralNorm
    dropout: eqx.nn.Dropout
    value: eqx.nn.Linear  # a name that Modules have, too
    steps: jax.Array
    name: str

    def __init__(self, key: Any, mode: Any = "batch"):
        keys = jax.random.split(key, 4)
        self.conv = eqx.nn.Conv2d(1, 4, 3, key=keys[0])
        self.norm = eqx.nn.BatchNorm(4, "batch", mode=mode)
        linear = eqx.nn.Linear(36, 8, key=keys[1])
        self.hidden = eqx.nn.SpectralNorm(linear, "weight", key=keys[2])
        self.dropout = eqx.nn.Dropout(0.2)
        self.value = eqx.nn.Linear(8, 3, key=keys[3])
        self.steps, self.name = jnp.arange(2), "mine"

    def encode(self, x: Any) -> Any:
        return eqx.nn.MaxPool2d(2, 2)(jax.nn.relu(self.conv(x)))

    def __call__(self, x: Any, state: Any, key: Any = None) -> Any:
        x, state = self.norm(self.encode(x), state)
        x, state = self.hidden(x.ravel(), state)
        return self.value(self.dropout(jax.nn.relu(x), key=key)), state

    @property
    def count(self) -> Any:
        return self.steps.sum()


def cnn(mode: str = "batch") -> Any:
    return eqx.nn.make_with_state(CNN)(KEY, mode)


def map_cnn(module: Any, state: Any, images: Any, keys: Any = None) -> Any:
    axes = (0, None, None if keys is None else 0)
    return jax.vmap(module, axes, (0, None), axis_name="batch")(images, state, keys)


def cnn_loss(module: Any, state: Any, images: Any, labels: Any, keys: Any) -> Any:
    scores, state = map_cnn(module, state, images, keys)
    return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean(), state


def mlp_loss(module: Any, xs: Any) -> Any:
    return jnp.mean((jax.vmap(module)(xs) - xs[:, :1] ** 2) ** 2)


def assert_close(a: Any, b: Any, rtol: float = 1e-5) -> None:
    a, b = eqx.filter((a, b), eqx.is_array)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol, 1e-6), a, b)


def test_it_computes_what_equinox_does_wherever_it_is_called():
    plain, model = mlp(), from_equinox(mlp())
    expected = jax.vmap(plain)(XS)
    pure = jv.functionalize(lambda: jax.vmap(model)(XS))
    compiled = jv.compile(lambda: jax.vmap(model)(XS))
    assert_close(model(XS[0]), plain(XS[0]))
    assert_close(jax.vmap(model)(XS), expected)
    assert_close(compiled(), expected)
    assert_close(jax.jit(pure)(jv.State.of(model))[0], expected)
    with jv.GradientTape() as tape:
        loss = mlp_loss(model, XS)
    gradients = tape.gradient(loss, model.trainable_variables)
    plain_gradients = eqx.filter_grad(mlp_loss)(plain, XS)
    named = dict(zip(model.named_variables, gradients, strict=True))
    assert_close(named["layers/1/weight"], plain_gradients.layers[1].weight)
    model.layers[2].bias.assign_add([1.0])
    assert_close(compiled(), expected + 1)
    assert_close(jax.jit(pure)(jv.State.of(model))[0], expected + 1)


def test_its_attributes_are_the_modules_and_paths_are_equinoxs():
    module, state = cnn()
    model = from_equinox(module, state)
    assert list(model.named_variables) == [
        "steps", "conv/bias", "conv/weight", "hidden/layer/bias", "hidden/layer/weight",
        "hidden/uv_index/init/0", "hidden/uv_index/init/1", "norm/bias", "norm/weight",
        "norm/batch_counter/init", "norm/batch_state_index/init/0", "norm/batch_state_index/init/1",
        "value/bias", "value/weight",
    ]  # fmt: skip
    assert [v.name for v in model.variables] == list(model.named_variables)
    trained = {path for path, v in model.named_variables.items() if v.trainable}
    assert trained == {path for path in model.named_variables if path.endswith(("weight", "bias"))}
    assert model.conv.weight is model.named_variables["conv/weight"]
    assert_close(model.conv(IMAGES[0]), module.conv(IMAGES[0]))
    assert_close(model.encode(IMAGES[0]), module.encode(IMAGES[0]))
    assert (int(model.count), model.dropout.p, model.norm.axis_name) == (1, 0.2, "batch")
    assert (model.name, vars(model)["name"]) == ("cnn", "mine")
    assert isinstance(model.value, CNN)
    assert vars(model)["value"].weight is model.named_variables["value/weight"]
    with pytest.raises(AttributeError, match="has an attribute 'decode'"):
        _ = model.decode
    assert "conv=EquinoxModule(" in repr(model)


FILTERS = [
    (None, {"layers/0/bias", "layers/0/weight", "layers/1/bias", "layers/1/weight"}),
    (lambda x: eqx.is_array(x) and x.ndim == 2, {"layers/0/weight", "layers/1/weight"}),
    (False, set()),
    (
        eqx.tree_at(
            lambda m: m.layers[1],
            jax.tree.map(lambda _: False, eqx.filter_eval_shape(eqx.nn.MLP, 2, 1, 8, 1, key=KEY)),
            replace=True,
        ),
        {"layers/1/bias", "layers/1/weight"},
    ),
]


@pytest.mark.parametrize(("chosen", "trained"), FILTERS)
def test_a_filter_says_which_are_trainable(chosen, trained):
    model = from_equinox(eqx.nn.MLP(2, 1, 8, 1, key=KEY), filter=chosen)
    assert {path for path, v in model.named_variables.items() if v.trainable} == trained
    assert len(model.variables) == 4


class Leaves(eqx.Module):
    half: Any
    key: Any
    old: Any
    number: Any
    ints: Any
    f: Any
    none: Any
    tree: Any
    static: str = eqx.field(static=True)


def leaves() -> Leaves:
    tree = {"z": (jnp.ones(1), "s"), "a": [jnp.complex64(1j), True]}
    old = jax.random.PRNGKey(1)
    return Leaves(jnp.ones(2, jnp.bfloat16), KEY, old, 0.5, np.arange(3), max, None, tree, "static")


class Tied(eqx.Module):
    shared: eqx.nn.Shared

    def __init__(self, key: Any):
        pair = (eqx.nn.Embedding(4, 2, key=key), eqx.nn.Linear(2, 4, key=key))
        self.shared = eqx.nn.Shared(pair, lambda p: p[1].weight, lambda p: p[0].weight)

    def __call__(self, i: Any) -> Any:
        embedding, linear = self.shared()
        return linear(embedding(i))


MODULES = {
    "mlp": mlp,
    "scan": lambda: eqx.nn.MLP(2, 1, 8, 3, key=KEY, scan=True),
    "leaves": leaves,
    "tied": functools.cache(lambda: Tied(KEY)),  # its functions are equal to themselves only
    "empty": lambda: eqx.nn.Identity(),
    "attention": lambda: eqx.nn.MultiheadAttention(2, 4, key=KEY),
    "gru": lambda: eqx.nn.GRUCell(2, 3, key=KEY),
}


@pytest.mark.parametrize("make", MODULES.values(), ids=MODULES)
def test_it_goes_back_leaf_for_leaf(make):
    plain, model = make(), from_equinox(make())
    for made in (to_equinox(model), model.value, copy.deepcopy(model).value):
        assert eqx.tree_equal(jax.tree.map(_data, made), jax.tree.map(_data, plain))
        assert type(made) is type(plain)


def _data(x: Any) -> Any:
    """NumPy's arrays come back as JAX's, and keys have no ==."""
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(x)
    return jnp.asarray(x) if isinstance(x, np.ndarray) else x


def test_of_shared_arrays_there_is_one_variable():
    model = from_equinox(Tied(KEY))
    assert [p for p in model.named_variables if "weight" in p] == ["shared/pytree/0/weight"]
    before = model(1)
    model.shared.pytree[0].weight.assign(2 * model.shared.pytree[0].weight)
    assert not np.allclose(before, model(1))
    assert_close(to_equinox(model)(1), model(1))


def test_training_an_mlp_is_what_equinox_does():
    plain, model, adam = mlp(), from_equinox(mlp()), optax.adam(0.01)
    state, optimizer = adam.init(eqx.filter(plain, eqx.is_inexact_array)), jv.optimizers.Optax(adam)

    @eqx.filter_jit
    def plain_step(plain: Any, state: Any) -> Any:
        loss, gradients = eqx.filter_value_and_grad(mlp_loss)(plain, XS)
        updates, state = adam.update(gradients, state)
        return eqx.apply_updates(plain, updates), state, loss

    step = jv.compile(lambda: optimizer.minimize(lambda: mlp_loss(model, XS), model))
    for _ in range(100):
        plain, state, expected = plain_step(plain, state)
        np.testing.assert_allclose(step(), expected, rtol=1e-4)
    assert expected < 0.8
    assert_close(model.value, plain, 1e-3)


@pytest.mark.parametrize("mode", ["batch", "ema"])
def test_training_a_stateful_cnn_is_what_equinox_does(mode):
    (plain, state), adam = cnn(mode), optax.adam(0.01)
    model, optimizer = from_equinox(plain, state), jv.optimizers.Optax(adam)
    moments = adam.init(eqx.filter(plain, eqx.is_inexact_array))

    @eqx.filter_jit
    def plain_step(plain: Any, state: Any, moments: Any, keys: Any) -> Any:
        compute = eqx.filter_value_and_grad(cnn_loss, has_aux=True)
        (loss, state), gradients = compute(plain, state, IMAGES, LABELS, keys)
        updates, moments = adam.update(gradients, moments)
        return eqx.apply_updates(plain, updates), state, moments, loss

    @jv.compile
    def step(keys: Any) -> Any:
        return optimizer.minimize(lambda: model.with_state(cnn_loss, IMAGES, LABELS, keys), model)

    for i in range(100):
        keys = jax.random.split(jax.random.key(i), 16)
        plain, state, moments, expected = plain_step(plain, state, moments, keys)
        np.testing.assert_allclose(step(keys), expected, rtol=1e-3, atol=1e-6)
    assert expected < 0.5
    assert_close(to_equinox(model), (plain, state), 1e-3)
    test_mode = eqx.nn.inference_mode(plain)
    assert_close(
        jax.vmap(model.view(eqx.nn.inference_mode), axis_name="batch")(IMAGES),
        map_cnn(test_mode, state, IMAGES)[0],
        1e-3,
    )


def test_state_is_kept_by_a_call_and_refused_in_a_plain_vmap():
    linear = eqx.nn.Linear(2, 3, key=KEY)
    layer, state = eqx.nn.make_with_state(eqx.nn.SpectralNorm)(linear, "weight", key=KEY)
    model = from_equinox(layer, state)
    expected, state = layer(XS[0], state)
    assert_close(model(XS[0]), expected)
    assert_close(to_equinox(model), (layer, state))
    out, new = jv.functionalize(model)(jv.State.of(model), XS[0])
    expected, after = layer(XS[0], _clone(state))
    assert_close((out, new["uv_index/init/0"]), (expected, jax.tree.leaves(after)[0]))
    same, handed = model(XS[0], to_equinox(model)[1])  # a state of the caller's is not kept
    assert_close((same, handed), (expected, after))
    assert_close(to_equinox(model), (layer, state))
    norm = from_equinox(eqx.nn.BatchNorm(2, "batch", mode="batch"))
    with pytest.raises(ForeignTransformError, match="batch_counter"):
        jax.vmap(norm, axis_name="batch")(XS)
    assert int(norm.batch_counter.init) == 0
    with pytest.raises(InteropError, match=r"must return \(result, new_state\)"):
        norm.with_state(lambda module, state: 1)
    with pytest.raises(ValueError, match="old state"):
        norm.with_state(
            lambda module, state: (state.set(module.batch_counter, jnp.int32(1)), state)
        )
    assert int(norm.batch_counter.init) == 0


def _clone(state: Any) -> Any:
    return jax.tree.map(lambda x: x, state)  # `set` makes the old one useless


class Twice(eqx.Module):
    """One state in two places."""

    first: eqx.nn.StateIndex
    again: eqx.nn.StateIndex

    def __init__(self):
        self.first = self.again = eqx.nn.StateIndex(jnp.array(0))

    def __call__(self, state: Any) -> Any:
        state = state.set(self.first, state.get(self.first) + 1)
        return state.get(self.again), state.get(self.first), state


def test_a_state_in_two_places_is_one_variable():
    model = from_equinox(Twice())
    assert list(model.named_variables) == ["again/init"]
    assert [int(x) for x in model()] == [1, 1]
    assert [int(x) for x in jv.compile(model)()] == [2, 2]


def test_a_mode_is_changed_by_a_view_and_nothing_else_can_be_set():
    model = from_equinox(eqx.nn.Sequential([eqx.nn.Dropout(0.5), eqx.nn.Linear(2, 1, key=KEY)]))
    run = jv.compile(lambda model: model(XS[0], key=jax.random.key(1)))
    evaluating = model.view(eqx.nn.inference_mode)
    training = run(model)
    assert_close(run(evaluating), evaluating.layers[1](XS[0]))
    assert not np.allclose(training, run(evaluating))
    assert_close(run(model), training)
    assert evaluating.layers[1].weight is model.layers[1].weight
    for change in (eqx.nn.inference_mode, lambda m: eqx.nn.inference_mode({"net": [m]})):
        with pytest.raises(InteropError, match=r"model\.view\(eqx\.nn\.inference_mode\)"):
            change(model)
    outer = jv.Module()
    outer.net = model
    with pytest.raises(InteropError, match=r"test_equinox.py:\d+.*view\(eqx\.nn\.inference_mode"):
        eqx.nn.inference_mode(outer)
    assert not hasattr(outer, "inference")
    with pytest.raises(AttributeError, match=r"'inference' .* at .*test_equinox.py:\d+"):
        model.layers[0].inference = True
    with pytest.raises(AttributeError, match="'weight' of an equinox module"):
        del model.layers[1].weight
    with pytest.raises(ValueError, match="PyTree structure"):
        eqx.nn.inference_mode(model.layers[0])
    model.layers[1].bias += 1.0
    assert_close(run(evaluating), evaluating.layers[1](XS[0]))
    other = model.view(lambda m: eqx.tree_at(lambda m: m.layers[1].bias, m, jnp.zeros(1)))
    assert other.layers[1].bias is not model.layers[1].bias
    assert (other.layers[1].bias.trainable, other.layers[1].bias.name) == (True, "layers/1/bias")


class Stack(eqx.Module):
    layers: list[Any]
    scales: dict[str, Any]  # or an OrderedDict

    def __call__(self, x: Any) -> Any:
        return self.layers[0](x) * self.scales["a"]


def test_lists_and_dicts_in_a_module_cannot_be_changed_in_vain():
    scales = collections.OrderedDict(a=jnp.ones(2))
    model = from_equinox(Stack([eqx.nn.Linear(2, 2, key=KEY)], scales))
    for made in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with pytest.raises(TypeError):
            made.layers[0] = from_equinox(eqx.nn.Linear(2, 2, key=KEY))
        with pytest.raises(TypeError):
            made.scales["a"] = jv.Variable(jnp.zeros(2))
        made.scales["a"].assign([0.0, 0.0])
        assert_close(made(XS[0]), jnp.zeros(2))
    assert list(model.named_variables) == ["scales/a", "layers/0/bias", "layers/0/weight"]
    held = pickle.loads(pickle.dumps([model, model.layers[0]]))
    assert held[1].weight is held[0].layers[0].weight


def test_it_is_found_where_variables_are_looked_for(tmp_path: Path):
    class Net(jv.Module):
        def __init__(self, key: Any):
            self.body = from_equinox(eqx.nn.MLP(2, 1, 8, 1, key=key))
            self.scale = jv.Variable(1.0)

    net = Net(KEY)
    paths = ["scale", *(f"body/{path}" for path in net.body.named_variables)]
    assert list(net.named_variables) == list(jv.State.of(net)) == paths
    assert list(jv.select(net, "body/layers/0/*")) == ["body/layers/0/bias", "body/layers/0/weight"]
    assert list(jv.select(net, eqx.nn.Linear)) == paths[1:]
    assert list(net.body.layers[1].select(eqx.nn.Linear)) == ["bias", "weight"]
    with pytest.raises(AttributeError, match=r"mode: model\.view\(eqx\.nn\.inference_mode\)"):
        net.body.eval()
    saved = jv.checkpoint.Checkpoint(net=net).save(tmp_path / "c.npz")
    other = Net(jax.random.key(5))
    jv.checkpoint.Checkpoint(net=other).restore(saved).assert_consumed()
    assert eqx.tree_equal(other.body.value, net.body.value)
    jv.place(net, jax.P(), mesh=jv.mesh({"x": 1}, jax.devices()[:1]))
    assert net.body.layers[0].weight.sharding.spec == jax.P()
    before = net.body.layers[0].weight.numpy()
    with jv.freeze(net.body.select("layers/0/*")):
        jv.optimizers.Adam(0.1).minimize(lambda: mlp_loss(net.body, XS), net.body)
    assert (net.body.layers[0].weight.numpy() == before).all()
    assert not eqx.tree_equal(other.body.value, net.body.value)
    assert net.astype("bfloat16").body.value.layers[0].weight.dtype == jnp.bfloat16


def test_a_copy_and_a_pickle_are_other_variables():
    model = from_equinox(eqx.nn.BatchNorm(2, "batch", mode="batch"))
    for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert made.batch_counter.init is not model.batch_counter.init
        made.with_state(lambda m, s: jax.vmap(m, (0, None), (0, None), axis_name="batch")(XS, s))
        assert (int(made.batch_counter.init), int(model.batch_counter.init)) == (1, 0)
        assert int(made.value.eps * 1e5) == 1
    held = copy.deepcopy(jv.variables(mlp()))  # with static fields, which have no copies
    assert eqx.tree_equal(held.value, mlp())


def test_what_is_not_a_module_is_refused_and_a_module_alone_in_ours_too():
    for wrong in (eqx.nn.MLP, [mlp()], jv.Module(), None):
        with pytest.raises(InteropError, match=r"takes a module of equinox, at .*test_equinox"):
            from_equinox(wrong)
    with pytest.raises(InteropError, match=r"from_equinox\(module, state\)"):
        from_equinox(cnn()[0])
    with pytest.raises(InteropError, match=r"from_equinox\(module, state\)"):
        from_equinox(cnn()[0], eqx.nn.State(mlp()))
    with pytest.raises(InteropError, match="takes what from_equinox made, not MLP"):
        to_equinox(mlp())
    net = jv.Module()
    for body in (mlp(), Stack([mlp()], {"a": jv.Variable(1.0)})):  # a Variable among arrays
        net.body = body
        with pytest.raises(InteropError, match=r"Adapt it: jv\.interop\.from_equinox\(body\)"):
            _ = net.variables

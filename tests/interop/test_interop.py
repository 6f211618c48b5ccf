from __future__ import annotations

import contextlib
import copy
import functools
import pickle
import warnings
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest
from flax import nnx, serialization
from threads import run_in_threads

import jaxvars as jv
from jaxvars import interop
from jaxvars.errors import (
    CreationError,
    DtypeError,
    ForeignTransformError,
    GradientWarning,
    InteropError,
    ShapeError,
    StateError,
)

RNG = np.random.default_rng(1)
X = jnp.asarray(RNG.normal(size=(8, 4, 4, 1)), jnp.float32)
Y = jnp.asarray(RNG.integers(0, 3, 8))
FLAT = jnp.asarray(RNG.normal(size=(4, 3)), jnp.float32)


def loss_of(logits, y):
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


class LinenNet(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        x = nn.Conv(4, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        x = nn.relu(x).reshape(len(x), -1)
        x = nn.Dropout(0.3, deterministic=not train)(x)
        return nn.Dense(3)(x)


class NnxNet(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(1, 4, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.drop = nnx.Dropout(0.3, rngs=rngs)
        self.out = nnx.Linear(64, 3, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.conv(x))).reshape(len(x), -1)
        return self.out(self.drop(x))


class Small(nn.Module):
    """With all that matters, and small."""

    @nn.compact
    def __call__(self, x, train=False):
        x = nn.BatchNorm(use_running_average=not train)(nn.Dense(4)(x))
        return nn.Dropout(0.5, deterministic=not train)(x)

    def doubled(self, x):
        return 2 * x


class SmallNnx(nnx.Module):
    def __init__(self, rngs):
        self.dense = nnx.Linear(3, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.rate = 0.5

    def __call__(self, x):
        return self.drop(self.norm(self.dense(x)))

    def doubled(self, x):
        return 2 * x


@functools.cache
def small_variables() -> Any:
    """What `init` makes of seeds 0 and 1; compiled once for all tests."""
    return jax.jit(Small().init)({"params": jax.random.key(0), "dropout": jax.random.key(1)}, FLAT)


def small() -> interop.LinenModule:
    made = interop.from_flax(Small(), rngs={"dropout": 1}, variables=small_variables())
    assert isinstance(made, interop.LinenModule)
    return made


def small_nnx(**options: Any) -> interop.NnxModule:
    made = interop.from_flax(SmallNnx(nnx.Rngs(0)), **options)
    assert isinstance(made, interop.NnxModule)
    return made


def train_step(model, optimizer, *args, **kwargs):
    def step(x, y):
        with jv.GradientTape() as tape:
            loss = loss_of(model(x, *args, **kwargs), y)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    return step


def same(ours, theirs):
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def drawn(model):
    return int(model.rngs["dropout"].state.numpy()[3])


# ---------------------------------------------------------------- flax's values
def test_a_linen_model_trains_as_in_flax_to_the_bit():
    net, tx = LinenNet(), optax.adam(1e-2)
    variables = net.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, X)
    optimizer = jv.optimizers.Optax(tx)
    model = interop.from_flax(net, X, rngs={"params": 0, "dropout": 1})
    same(interop.to_flax(model), variables)

    @jax.jit
    def theirs(params, stats, state, key, x, y):
        def loss(params):
            collections = {"params": params, "batch_stats": stats}
            logits, new = net.apply(
                collections, x, train=True, rngs={"dropout": key}, mutable=["batch_stats"]
            )
            return loss_of(logits, y), new["batch_stats"]

        (value, stats_), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        updates, state = tx.update(gradients, state, params)
        return optax.apply_updates(params, updates), stats_, state, value

    ours = jv.compile(train_step(model, optimizer, train=True))
    params, stats = variables["params"], variables["batch_stats"]
    state = tx.init(params)
    for i in range(100):
        key = jax.random.fold_in(jax.random.key(1), i)
        params, stats, state, loss = theirs(params, stats, state, key, X, Y)
        assert float(ours(X, Y)) == float(loss), i
    same(interop.to_flax(model), {"params": params, "batch_stats": stats})
    assert ours.trace_count == 1
    assert float(loss) < 0.2


def test_an_nnx_model_trains_as_in_flax_to_the_bit():
    net = NnxNet(nnx.Rngs(0))
    model = interop.from_flax(net)
    theirs_optimizer = nnx.Optimizer(net, optax.adam(1e-2), wrt=nnx.Param)

    @nnx.jit
    def theirs(net, optimizer, x, y):
        loss, gradients = nnx.value_and_grad(lambda net: loss_of(net(x), y))(net)
        optimizer.update(net, gradients)
        return loss

    ours = jv.compile(train_step(model, jv.optimizers.Optax(optax.adam(1e-2))))
    for i in range(100):
        loss = theirs(net, theirs_optimizer, X, Y)
        assert float(ours(X, Y)) == float(loss), i
    same(words(interop.to_flax(model)), words(nnx.state(net)))
    assert ours.trace_count == 1
    assert float(loss) < 0.2


def words(state):
    """The leaves of an nnx state, keys as their raw data."""
    return [
        jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x
        for x in jax.tree.leaves(state)
    ]


@pytest.mark.parametrize("make", [lambda: (small(), {"train": True}), lambda: (small_nnx(), {})])
def test_eager_compiled_and_pure_are_one(make):
    model, mode = make()
    optimizer = jv.optimizers.SGD(0.1)
    step = train_step(model, optimizer, **mode)
    optimizer.build(model.trainable_variables)
    begin = jv.State.of(model, optimizer)
    y = jnp.array([0, 1, 2, 3])
    results = []
    for run in (step, jv.compile(step)):
        begin.commit()
        results.append((run(FLAT, y), dict(jv.State.of(model, optimizer))))
    begin.commit()
    loss, state = jax.jit(jv.functionalize(step))(begin, FLAT, y)
    results.append((loss, dict(state)))
    for loss, state in results[1:]:
        np.testing.assert_allclose(loss, results[0][0], rtol=1e-5)
        for path, value in results[0][1].items():
            np.testing.assert_allclose(state[path], value, rtol=1e-5, atol=1e-6, err_msg=path)
    assert any((state[path] != begin[path]).any() for path in begin if "norm" in path.lower())


def test_pure_models_train_side_by_side():
    model = small()
    pure = jv.functionalize(lambda x: model(x, train=True).sum())
    state = jv.State.of(model)
    scales = jnp.array([1.0, 2.0])
    many = jax.vmap(lambda s: state.replace({"params/BatchNorm_0/scale": s * jnp.ones(4)}))(scales)
    sums, _ = jax.jit(jax.vmap(pure, in_axes=(0, None)))(many, FLAT)
    np.testing.assert_allclose(sums[1], 2 * sums[0], rtol=1e-5)


# ---------------------------------------------------------------- what is where
def test_paths_are_those_of_linen():
    model = small()
    assert {p: v.trainable for p, v in model.named_variables.items()} == {
        "batch_stats/BatchNorm_0/mean": False,
        "batch_stats/BatchNorm_0/var": False,
        "params/BatchNorm_0/bias": True,
        "params/BatchNorm_0/scale": True,
        "params/Dense_0/bias": True,
        "params/Dense_0/kernel": True,
        "rngs/dropout/state": False,
    }
    assert model.params["Dense_0"]["kernel"].name == "Dense_0/kernel"
    assert model["params"] is model.params
    assert model.batch_stats["BatchNorm_0"]["mean"].name == "batch_stats/BatchNorm_0/mean"
    assert "params" in dir(model)
    assert "doubled" in dir(model)
    assert model.name == "small"
    assert repr(model).startswith("LinenModule(\n  'Small',\n  batch_stats={")
    with pytest.raises(KeyError, match=r"This model has no 'parms'; .*'batch_stats', 'params'"):
        model["parms"]


def test_paths_are_those_of_nnx():
    model = small_nnx()
    assert {p: v.trainable for p, v in model.named_variables.items()} == {
        "dense/bias": True,
        "dense/kernel": True,
        "norm/bias": True,
        "norm/mean": False,
        "norm/scale": True,
        "norm/var": False,
        "drop/rngs/state": False,
    }
    assert model.dense["kernel"].name == "dense/kernel"
    assert isinstance(model.drop["rngs"], jv.random.Generator)
    assert model.rate == 0.5


def test_a_model_is_part_of_a_module():
    class Two(jv.Module):
        def __init__(self):
            self.first = interop.from_flax(nn.Dense(2), FLAT, rngs=0)
            self.second = interop.from_flax(nnx.Linear(2, 1, rngs=nnx.Rngs(0)))

        def __call__(self, x):
            return self.second(self.first(x))

    two = Two()
    assert list(two.named_variables) == [
        "first/params/bias", "first/params/kernel", "second/bias", "second/kernel",
    ]  # fmt: skip
    assert jv.compile(two)(FLAT).shape == (4, 1)


class Conditional(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        return nn.Dropout(0.5, deterministic=False)(x) if train else nn.Dense(2)(x)


class Computed(nn.Module):
    """Its layer is named by a string, which no look at the code can follow."""

    layer: str = "Dropout"

    @nn.compact
    def __call__(self, x, train=False):
        return getattr(nn, self.layer)(0.5)(nn.Dense(8)(x), deterministic=not train)


STREAM = "rngs/dropout/state"


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.Dense(2), False), (nn.Sequential([nn.Dense(2), nn.relu]), False),
        (nn.BatchNorm(use_running_average=True), False), (nn.Dropout(0.5), True),
        (nn.Sequential([nn.Dropout(0.5, deterministic=True)]), True),
        (nn.MultiHeadDotProductAttention(1), True), (Conditional(), True), (Computed(), False),
        (nn.remat(Conditional)(), True),
    ],
)  # fmt: skip
def test_a_stream_that_the_code_cannot_ask_for_is_no_variable(module, expected):
    options = {"deterministic": True} if isinstance(module, nn.Dropout) else {}
    model = interop.from_flax(module, FLAT, rngs=0, **options)
    assert (STREAM in model.named_variables) is expected
    assert STREAM in interop.from_flax(module, FLAT, rngs={"dropout": 0}, **options).named_variables
    assert isinstance(model.rngs["dropout"], jv.random.Generator)
    assert STREAM in model.named_variables


def test_a_stream_is_found_from_when_it_is_asked_for():
    model, named = (
        interop.from_flax(Computed(), FLAT, rngs=r) for r in (0, {"params": 0, "dropout": 0})
    )
    copied = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    run = jv.compile(lambda x, train: model(x, train=train), static_argnames="train")
    run(FLAT, train=False)
    assert STREAM not in model.named_variables
    first = run(FLAT, train=True)
    assert STREAM in model.named_variables
    same(first, named(FLAT, train=True))
    same(copied(FLAT, train=True), first)
    assert not np.array_equal(run(FLAT, train=True), first)
    assert run.trace_count == 2


def test_a_state_without_the_stream_is_refused_once():
    model = interop.from_flax(Computed(), FLAT, rngs=0)
    pure = jv.functionalize(lambda x: model(x, train=True))
    with pytest.raises(StateError, match=f"'{STREAM}' is written"):
        pure(jv.State.of(model), FLAT)
    result, state = pure(jv.State.of(model), FLAT)
    same(result, model(FLAT, train=True))
    assert int(state[STREAM][3]) == 1


@pytest.mark.parametrize("module", [Computed(), nn.Dense(2)])
def test_a_checkpoint_that_has_the_stream_gives_it(module, tmp_path):
    def make():
        return interop.from_flax(module, FLAT, rngs=0)

    options = {"train": True} if isinstance(module, Computed) else {}
    before, after = make(), make()
    before.rngs["dropout"].skip(3)
    path = jv.checkpoint.Checkpoint(model=before).save(tmp_path / "c")
    jv.checkpoint.Checkpoint(model=after).restore(path).assert_consumed()
    assert STREAM in after.named_variables
    same(after(FLAT, **options), before(FLAT, **options))


def test_another_variable_can_take_the_place_of_one():
    a = interop.from_flax(nn.Dense(4), FLAT, rngs=0)
    b = interop.from_flax(nn.Dense(4), FLAT, rngs=1)
    b.params["kernel"] = a.params["kernel"]  # tied
    a.params["kernel"].assign(jnp.ones((3, 4)))
    same(a(FLAT), b(FLAT))
    b.params["kernel"] = jnp.ones((3, 4))
    with pytest.raises(InteropError, match=r"At 'kernel' .*ArrayImpl.*params.*assign\(value\)"):
        b(FLAT)


@pytest.mark.parametrize("make", [small, small_nnx])
def test_copies_and_pickles_share_nothing(make):
    model = make()
    begin = jv.State.of(model)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert not set(other.variables) & set(model.variables)
        all_equal(other, begin)
        for v in other.trainable_variables:
            v.assign_add(1.0)
        assert (other(FLAT) != model(FLAT)).any()


def test_models_of_a_lazy_kind_can_be_pickled_before_their_first_call():
    model = pickle.loads(pickle.dumps(interop.from_flax(Small(), rngs={"params": 0, "dropout": 1})))
    same(model(FLAT), small()(FLAT))


# ---------------------------------------------------------------- making it
def test_seeds_are_those_of_flax():
    theirs = jax.jit(Small().init)(jax.random.key(7), FLAT)
    key = jax.random.key(7)
    for rngs in (7, key, {"params": [0, 7]}):
        same(interop.to_flax(interop.from_flax(Small(), FLAT, rngs=rngs)), theirs)


def test_a_generator_gives_a_key_by_a_draw():
    generator = jv.random.Generator(7)
    model = interop.from_flax(Small(), FLAT, rngs=generator)
    same(interop.to_flax(model), Small().init(jax.random.fold_in(jax.random.key(7), 0), FLAT))
    assert model.rngs["dropout"] is generator
    ours = model(FLAT, train=True)
    key = jax.random.fold_in(jax.random.key(7), 1)
    variables = Small().init(jax.random.fold_in(jax.random.key(7), 0), FLAT)
    theirs, _ = Small().apply(
        variables, FLAT, train=True, rngs={"dropout": key}, mutable=["batch_stats"]
    )
    same(ours, theirs)


def test_without_a_seed_the_global_one_decides():
    made = []
    for _ in range(2):
        jv.random.set_seed(3)
        made.append(interop.from_flax(Small(), FLAT))
    made.append(interop.from_flax(Small(), FLAT))
    first, again, other = (m(FLAT, train=True) for m in made)
    same(first, again)
    assert (first != other).any()
    assert made[0].rngs["dropout"] is not jv.random.get_global_generator()


def test_specs_are_enough():
    model = interop.from_flax(Small(), jax.ShapeDtypeStruct((1, 3), jnp.float32), rngs=0)
    other = interop.from_flax(Small(), jv.TensorSpec((1, 3)), rngs=0)
    same(interop.to_flax(model), interop.to_flax(other))
    same(interop.to_flax(model), Small().init(jax.random.key(0), FLAT))


def test_the_first_call_makes_the_state():
    model = interop.from_flax(Small(), rngs={"params": 0, "dropout": 1})
    assert list(model.named_variables) == ["rngs/dropout/state"]
    with pytest.raises(InteropError, match="made by its first call"):
        interop.to_flax(model)
    same(model(FLAT), small()(FLAT))
    same(interop.to_flax(model), interop.to_flax(small()))


def test_the_first_call_may_be_compiled():
    model = interop.from_flax(Small(), rngs={"params": 0, "dropout": 1})
    step = jv.compile(lambda x: model(x, train=True))
    eager = small()
    for _ in range(2):
        np.testing.assert_allclose(step(FLAT), eager(FLAT, train=True), rtol=1e-5, atol=1e-6)
    assert drawn(model) == drawn(eager) == 2
    late = interop.from_flax(Small(), rngs=0)
    with pytest.raises(CreationError, match="functionalized"):
        jv.functionalize(late)(jv.State.of(model), FLAT)


def test_weights_that_are_there_are_kept():
    variables = Small().init(jax.random.key(3), FLAT)
    model = interop.from_flax(Small(), variables=variables)
    same(interop.to_flax(model), variables)
    np.testing.assert_allclose(model(FLAT), Small().apply(variables, FLAT), rtol=1e-6)
    variables["params"]["Dense_0"]["kernel"].delete()  # the model has separate memory
    assert model(FLAT).shape == (4, 4)
    net = SmallNnx(nnx.Rngs(0))
    net.dense.kernel[...] = jnp.ones((3, 4))
    assert (interop.from_flax(net).dense["kernel"].value == 1).all()


class Peeking(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2 if x.sum() > 0 else 3)(x)  # Python needs a value


def test_a_module_that_looks_at_values_is_initialized_with_them():
    assert interop.from_flax(Peeking(), jnp.ones((1, 3)))(jnp.ones((1, 3))).shape == (1, 2)
    assert interop.from_flax(Peeking(), -jnp.ones((1, 3))).params["Dense_0"]["bias"].shape == (3,)


# ---------------------------------------------------------------- random values
def test_a_stream_moves_only_when_it_is_used():
    model = small()
    model(FLAT)
    assert drawn(model) == 0
    model(FLAT, train=True)
    assert drawn(model) == 1
    evaluate, train = jv.compile(model), jv.compile(lambda x: model(x, train=True))
    evaluate(FLAT), train(FLAT)
    assert drawn(model) == 2
    writes = train.trace(FLAT).jaxpr.out_avals
    assert len(writes) == 1 + 2 + 1  # the result, two statistics, one generator
    assert len(evaluate.trace(FLAT).jaxpr.out_avals) == 1


def test_a_stream_does_not_advance_when_the_call_raises():
    model = small()
    before = dict(jv.State.of(model))
    with pytest.raises(InteropError, match="other sizes"):
        model(FLAT[:, :2], train=True)
    with pytest.raises(TypeError, match="unexpected keyword"):
        model(FLAT, trian=True)
    same(dict(jv.State.of(model)), before)


class Streams(nn.Module):
    names: tuple[str, ...]

    @nn.compact
    def __call__(self, x, use):
        del x
        return {name: jax.random.bits(self.make_rng(name)) for name in use}


def test_streams_can_share_a_generator():
    generator = jv.random.Generator(3)
    rngs = {"params": 0, "a": generator, "b": generator, "c": 7}
    model = interop.from_flax(Streams(("a", "b", "c")), rngs=rngs, variables={})
    keys = [jax.random.fold_in(jax.random.key(3), i) for i in range(8)]

    def bits(**rngs):
        return Streams(()).apply({}, 0, tuple(rngs), rngs=rngs)

    for run in (model, jv.compile(model)):
        generator.reset_from_seed(3)
        same(run(0, ("b",)), bits(b=keys[1]))
        same(run(0, ("a",)), bits(a=keys[2]))  # b's draw went back
        same(run(0, ("a", "b")), bits(a=keys[3], b=keys[4]))
        run(0, ("c",))
        assert int(generator.state.numpy()[3]) == 5


def test_threads_are_not_given_the_same_key():
    model = interop.from_flax(Streams(("a",)), rngs={"params": 0, "a": 1}, variables={})

    def run():
        return [int(model(0, ("a",))["a"]) for _ in range(20)]

    found = [n for drawn in run_in_threads(*[run] * 4) for n in drawn]
    assert len(set(found)) == len(found) == 80
    assert int(model.rngs["a"].state.numpy()[3]) == 80


def test_a_key_of_ones_own_is_used_instead():
    model = small()
    key = jax.random.key(9)
    theirs, _ = Small().apply(
        interop.to_flax(model), FLAT, train=True, rngs={"dropout": key}, mutable=["batch_stats"]
    )
    same(model(FLAT, train=True, rngs={"dropout": key}), theirs)
    assert drawn(model) == 0


class Blocks(nn.Module):
    """Dropout in a scan over layers, rematerialized."""

    @nn.compact
    def __call__(self, x, train=False):
        class Block(nn.Module):
            @nn.compact
            def __call__(self, x):
                x = nn.BatchNorm(use_running_average=not train)(nn.Dense(3)(x))
                return nn.Dropout(0.5, deterministic=not train)(x), None

        layers = nn.scan(
            nn.remat(Block),
            variable_axes={"params": 0, "batch_stats": 0},
            split_rngs={"params": True, "dropout": True},
            length=2,
        )
        return layers()(x)[0]


def test_lifted_transforms_work_and_their_draws_are_seen():
    model = interop.from_flax(Blocks(), FLAT, rngs={"params": 0, "dropout": 1})
    assert model.params[
        "ScanBlock_0" if "ScanBlock_0" in model.params else next(iter(model.params))
    ]
    step = jv.compile(train_step(model, jv.optimizers.SGD(0.1), train=True))
    step(FLAT, jnp.array([0, 1, 2, 0]))
    assert drawn(model) == 1
    model(FLAT)
    assert drawn(model) == 1


class Jitted(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        drop = nn.jit(nn.Dropout, static_argnames=("deterministic",))(0.5)
        return drop(x, deterministic=not train)


def test_a_part_that_nn_jit_has_compiled_draws_anew():
    model = interop.from_flax(Jitted(), rngs=0, variables={})
    model(FLAT)
    first, second = model(FLAT, train=True), model(FLAT, train=True)
    assert (first != second).any()


class Sharing(nn.Module):
    inner: nn.Module

    def setup(self):
        self.again = self.inner
        self.drop = nn.Dropout(0.5)

    def __call__(self, x, train=False):
        return self.drop(self.again(self.inner(x)), deterministic=not train)


def test_modules_inside_can_be_shared():
    net = Sharing(nn.Dense(3))
    model = interop.from_flax(net, FLAT, rngs={"params": 0, "dropout": 1})
    assert list(model.params) == ["inner"]
    theirs = net.apply(
        interop.to_flax(model), FLAT, train=True,
        rngs={"dropout": jax.random.fold_in(jax.random.key(1), 0)},
    )  # fmt: skip
    same(model(FLAT, train=True), theirs)
    assert drawn(model) == 1


def test_examples_of_a_map_draw_different_values():
    linen = interop.from_flax(nn.Dropout(0.5), rngs=0, variables={})
    net = interop.from_flax(nnx.Dropout(0.5, rngs=nnx.Rngs(0)))
    ones = jnp.ones((4, 32))
    for model in (lambda x: linen(x, deterministic=False), net):
        rows = {tuple(row) for row in jv.vectorized_map(model, ones).tolist()}
        assert len(rows) == 4
    assert int(linen.rngs["dropout"].state.numpy()[3]) == 1
    assert int(net.rngs.state.numpy()[3]) == 1


def test_loops_and_branches_draw_as_python_does():
    linen = interop.from_flax(nn.Dropout(0.5), rngs=0, variables={})
    net = interop.from_flax(nnx.Dropout(0.5, rngs=nnx.Rngs(0)))
    begin, xs = jv.State.of(linen, net), jnp.ones((3, 8))

    def dropped(x):
        return linen(x, deterministic=False) + 10 * net(x)

    @jv.compile
    def staged(xs):
        ys = jv.scan(lambda _, x: (None, dropped(x)), None, xs)[1]
        return ys, jv.cond(xs[0, 0] > 0, dropped, lambda x: x, xs[0])

    ys, y = staged(xs)
    end = jv.State.of(linen, net)
    begin.commit()
    same([*ys, y], [dropped(x) for x in (*xs, xs[0])])
    same(dict(end), dict(jv.State.of(linen, net)))


def test_a_plain_gradient_works_where_nothing_is_written():
    model = small()
    gradient = jax.grad(lambda x: model(x).sum())(FLAT)
    assert gradient.shape == FLAT.shape
    with pytest.raises(ForeignTransformError, match="batch_stats/BatchNorm_0/mean"):
        jax.grad(lambda x: model(x, train=True).sum())(FLAT)
    dropping = interop.from_flax(nn.Dropout(0.5), rngs=0, variables={})
    with pytest.raises(ForeignTransformError, match="'rngs/dropout/state' is written at"):
        jax.grad(lambda x: dropping(x, deterministic=False).sum())(FLAT)
    net = small_nnx()
    net.eval()
    same(jax.grad(lambda x: net(x).sum())(FLAT).shape, FLAT.shape)


def test_a_map_reads_a_model():
    model = small()
    same(jv.vectorized_map(lambda x: model(x[None])[0], FLAT).shape, (4, 4))


# ---------------------------------------------------------------- linen's ways
class Autoencoder(nn.Module):
    def setup(self):
        self.encoder = nn.Dense(2)
        self.decoder = nn.Dense(3)

    def __call__(self, x):
        return self.decode(self.encode(x))

    def encode(self, x):
        return self.encoder(x)

    def decode(self, z):
        self.sow("intermediates", "code", z)
        return self.decoder(z)


def test_other_methods():
    model = interop.from_flax(Autoencoder(), FLAT, rngs=0)
    z = model.encode(FLAT)
    assert z.shape == (4, 2)
    same(z, model(FLAT, method="encode"))
    same(z, model.call("encode", FLAT))
    same(z, model(FLAT, method=Autoencoder.encode))
    same(z, model(FLAT, method=Autoencoder().encode))
    same(z, model(FLAT, method=lambda m, x: m.encoder(x)))
    same(z, model.call("encoder", FLAT))
    same(model.decode(z), model(FLAT))
    encoder = interop.from_flax(Autoencoder(), FLAT, rngs=0, method="encode")
    assert list(encoder.params) == ["encoder"]
    same(encoder(FLAT).shape, (4, 2))


def test_fields_can_be_read_and_what_is_flaxs_own_is_refused():
    model = interop.from_flax(Streams(("a",)), rngs=0, variables={})
    assert model.names == ("a",)
    with pytest.raises(AttributeError, match=r"'init' is for linen's own use.*interop.to_flax"):
        _ = model.init
    with pytest.raises(AttributeError, match=r"Streams has an attribute 'nmaes'"):
        _ = model.nmaes
    with pytest.raises(AttributeError, match="no attribute '_secret'"):
        _ = model._secret


def test_intermediates():
    model = interop.from_flax(Autoencoder(), FLAT, rngs=0)
    y, made = model(FLAT, mutable=["intermediates"])
    same(made["intermediates"]["code"][0], model.encode(FLAT))
    z, captured = jv.compile(lambda x: model(x, capture_intermediates=True))(FLAT)
    assert set(captured["intermediates"]) == {"__call__", "code", "decoder", "encoder"}
    same(y, z)
    assert not hasattr(model, "intermediates")
    frozen = small()
    assert frozen(FLAT, train=True, mutable=["batch_stats"])[1]["batch_stats"]
    with pytest.raises(InteropError, match=r"writes a collection.*mutable="):
        frozen(FLAT, train=True, mutable=False)


class Odd(nn.Module):
    @nn.compact
    def __call__(self, x):
        count = self.variable("odd", "count", lambda: 1)
        self.variable("odd", "note", lambda: "text")
        count.value = count.value + 1
        return x * count.value


def test_numbers_become_variables_and_strings_stay_with_flax():
    model = interop.from_flax(Odd(), FLAT, rngs=0)
    assert {p: v.dtype for p, v in model.named_variables.items()}["odd/count"] == jnp.int32
    same(jv.compile(model)(FLAT), 3 * FLAT)
    assert interop.to_flax(model)["odd"]["note"] == "text"
    assert model.odd["count"].item() == 3


class Sowing(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(2)(x)
        self.sow("losses", "penalty", jnp.abs(x).sum())
        state = self.variable("pair", "both", lambda: (jnp.zeros(2), jnp.ones(())))
        state.value = (state.value[0] + 1, state.value[1] * 2)
        return x


def test_what_is_sown_is_not_kept_and_tuples_are():
    model = interop.from_flax(Sowing(), FLAT, rngs=0)
    assert [p for p in model.named_variables if "params" not in p] == [
        "pair/both/0", "pair/both/1",
    ]  # fmt: skip
    y, made = jv.compile(lambda x: model(x, mutable=["losses", "pair"]))(FLAT)
    np.testing.assert_allclose(made["losses"]["penalty"][0], jnp.abs(y).sum(), rtol=1e-6)
    assert model.pair["both"]["0"].numpy().tolist() == [2.0, 2.0]  # init called it, too
    model(FLAT)
    assert model.pair["both"]["1"].item() == 8.0


class Growing(nn.Module):
    @nn.compact
    def __call__(self, x, remember=False):
        x = nn.Dense(2)(x)
        self.variable("cache", "count", lambda: jnp.zeros((), jnp.int32)).value += 1
        if remember:
            self.variable("cache", "last", lambda: jnp.zeros_like(x)).value = x
        return x


def test_state_that_a_later_call_makes_becomes_variables():
    model = interop.from_flax(Growing(), FLAT, rngs=0)
    assert list(model.cache) == ["count"]
    y = jv.compile(lambda x: model(x, remember=True))(FLAT)
    np.testing.assert_allclose(model.cache["last"], y, rtol=1e-6)
    assert model.cache["count"].item() == 2
    assert not model.cache["last"].trainable
    assert set(interop.to_flax(model)["cache"]) == {"count", "last"}


class Boxed(nn.Module):
    @nn.compact
    def __call__(self, x):
        init = nn.with_partitioning(nn.initializers.ones, (None, "model"))
        return nn.Dense(2, kernel_init=init)(x)


def test_boxes_are_kept_and_not_in_the_paths():
    model = interop.from_flax(Boxed(), FLAT, rngs=0)
    assert list(model.named_variables)[:2] == ["params/Dense_0/bias", "params/Dense_0/kernel"]
    step = jv.compile(train_step(model, jv.optimizers.SGD(0.1)))
    step(FLAT, jnp.array([0, 1, 0, 1]))
    kernel = interop.to_flax(model)["params"]["Dense_0"]["kernel"]
    assert isinstance(kernel, nn.Partitioned)
    assert kernel.names == (None, "model")
    same(kernel.value, model.params["Dense_0"]["kernel"].value)
    again = interop.from_flax(Boxed(), variables=interop.to_flax(model))
    same(again(FLAT), model(FLAT))


def test_a_box_with_a_mesh_says_where():
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    class Wide(nn.Module):
        @nn.compact
        def __call__(self, x):
            init = nn.with_partitioning(nn.initializers.ones, (None, "model"), mesh=mesh)
            return nn.Dense(8, kernel_init=init)(x)

    model = interop.from_flax(Wide(), FLAT, rngs=0)
    wanted = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, "model"))
    kernel = model.params["Dense_0"]["kernel"]
    assert kernel.sharding == wanted
    kernel.assign(2 * kernel)
    jv.compile(lambda: kernel.assign_add(1.0))()
    assert kernel.sharding == wanted
    np.testing.assert_allclose(model(FLAT), 3 * FLAT.sum(1, keepdims=True) * jnp.ones(8), rtol=1e-5)


def test_a_bound_module_is_given_back():
    model = small()
    same(interop.to_flax(model, bound=True)(FLAT), model(FLAT))
    net = small_nnx()
    net.eval()
    given = interop.to_flax(net, bound=True)
    assert isinstance(given, SmallNnx)
    same(given(FLAT), net(FLAT))


def test_a_cell_carries():
    cell = interop.from_flax(nn.GRUCell(4), jnp.zeros((4, 4)), FLAT, rngs=0)
    carry = cell.initialize_carry(jax.random.key(0), FLAT.shape)
    carry, ys = jv.scan(lambda c, x: cell(c, x), carry, jnp.stack([FLAT, FLAT]))
    theirs = jnp.zeros((4, 4))
    for i in range(2):
        theirs, y = nn.GRUCell(4).apply(interop.to_flax(cell), theirs, FLAT)
        np.testing.assert_allclose(ys[i], y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(carry, theirs, rtol=1e-5, atol=1e-6)


class Noisy(nn.Module):
    @nn.compact
    def __call__(self, x, noise=False):
        y = nn.Dense(2)(x)
        return y + jax.random.normal(self.make_rng("noise"), y.shape) if noise else y


class Cast(nn.Module):
    @nn.compact
    def __call__(self, x, grow=False):
        v = self.variable("memory", "m", lambda: jnp.zeros(2))
        w = self.variable("memory", "a", lambda: jnp.zeros(2))
        w.value = w.value + 1
        v.value = jnp.zeros(3) if grow else jnp.zeros(2, jnp.int32)
        return x


def test_linens_errors_come_with_a_cure():
    model = interop.from_flax(Noisy(), FLAT, rngs=0)
    with pytest.raises(InteropError, match=r'needs PRNG for "noise"(.|\n)*rngs=\{"params": 0'):
        model(FLAT, noise=True)
    with pytest.raises(InteropError, match=r"variables=\{\"params\": weights\}"):
        interop.from_flax(nn.Dense(4), variables=interop.to_flax(model)["params"])(FLAT)
    with pytest.raises(InteropError, match=r"dict of collections.*'kernel': 'ArrayImpl'"):
        interop.from_flax(nn.Dense(4), variables=interop.to_flax(model)["params"]["Dense_0"])
    with pytest.raises(InteropError, match="is bound to variables already"):
        interop.from_flax(interop.to_flax(model, bound=True), FLAT)
    with pytest.raises(InteropError, match=r"not a class: from_flax\(Noisy\(...\), x\)"):
        interop.from_flax(Noisy, FLAT)
    with pytest.raises(InteropError, match="not function"):
        interop.from_flax(loss_of)
    with pytest.raises(InteropError, match="to_flax takes what from_flax made, not Generator"):
        interop.to_flax(jv.random.Generator(0))
    with pytest.raises(TypeError, match="is not a seed"):
        interop.from_flax(nn.Dense(4), FLAT, rngs="0")


def test_a_change_of_shape_or_dtype_changes_nothing():
    model = interop.from_flax(Cast(), variables={"memory": {"m": jnp.zeros(2), "a": jnp.zeros(2)}})
    for grow, error in ((True, ShapeError), (False, DtypeError)):
        with pytest.raises(error, match="memory/m"):
            model(FLAT, grow=grow)
    assert model.memory["a"].numpy().tolist() == [0.0, 0.0]


def test_names_that_a_model_needs_are_refused():
    with pytest.raises(InteropError, match="state called 'rngs'"):
        interop.from_flax(nn.Dense(4), variables={"params": {}, "rngs": {"x": jnp.zeros(2)}})
    odd = interop.from_flax(nn.Dense(4), variables={"variables": {"x": jnp.zeros(2)}})
    assert odd["variables"]["x"].name == "variables/x"
    assert list(odd.named_variables)[-1] == "variables/x" or "variables/x" in odd.named_variables


# ---------------------------------------------------------------- nnx's ways
def test_modes_pass_through():
    model, net = small_nnx(), SmallNnx(nnx.Rngs(0))
    assert model.eval() is None
    net.eval()
    same(model(FLAT), net(FLAT))
    assert int(model.drop["rngs"].state.numpy()[3]) == 0
    model.train()
    model(FLAT)
    assert int(model.drop["rngs"].state.numpy()[3]) == 1


def test_a_view_is_of_the_same_variables():
    model = small_nnx()
    quiet = model.view(deterministic=True, use_running_average=True)
    run = jv.compile(lambda m, x: m(x))
    run(model, FLAT)
    for _ in range(2):
        same(run(quiet, FLAT), run(quiet, FLAT))
    assert (run(model, FLAT) == 0).any()
    assert run.trace_count == 2
    assert quiet.dense["kernel"] is model.dense["kernel"]
    with pytest.raises(ValueError, match="detreministic"):
        model.view(detreministic=True)


def test_an_nnx_call_that_raises_changes_nothing():
    model = small_nnx()
    begin = jv.State.of(model)

    def fails(m, x):
        m(x)
        m.eval()
        m.norm.mean.set_value(jnp.zeros(5))
        return x

    with pytest.raises(ShapeError, match="norm/mean"):
        model.call(fails, FLAT)
    with pytest.raises(ZeroDivisionError):
        model.call(lambda m, x: (m(x), 1 / 0), FLAT)
    all_equal(model, begin)
    assert (model(FLAT) == 0).any()  # as before, it drops


def test_methods_and_functions_of_an_nnx_module():
    model = small_nnx()
    same(model.doubled(FLAT), 2 * FLAT)
    same(model.call(lambda m, x: m.dense(x), FLAT), model.call("dense", FLAT))
    assert model.call(lambda m: m) is model
    with pytest.raises(AttributeError, match=r"SmallNnx has an attribute 'daily'"):
        _ = model.daily


class Counting(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(3, 3, rngs=rngs)
        self.again = nnx.Linear(3, 3, rngs=rngs)
        self.again.kernel = self.first.kernel  # one variable at two places
        self.table = jnp.arange(3.0)
        self.pair = nnx.Variable((jnp.zeros(2), jnp.ones(())))
        self.calls = 0

    def __call__(self, x, grow=False):
        self.calls += not grow
        self.pair.set_value((self.pair.get_value()[0] + 1, self.pair.get_value()[1]))
        if grow:
            self.last = nnx.Cache(x)
        return self.again(self.first(x)) + self.table


def test_an_nnx_module_of_many_kinds_of_state():
    net = Counting(nnx.Rngs(0))
    model = interop.from_flax(net)
    assert {p for p, v in model.named_variables.items() if v.trainable} == {
        "again/bias", "again/kernel", "first/bias",
    }  # fmt: skip
    assert {p for p, v in model.named_variables.items() if not v.trainable} == {
        "pair/0", "pair/1", "table",
    }  # fmt: skip
    same(model(FLAT), net(FLAT))
    assert model.pair[0].numpy().tolist() == [1.0, 1.0]
    assert model.calls == 1
    with jv.GradientTape() as tape:
        loss = model(FLAT).sum()
    theirs = nnx.grad(lambda net: net(FLAT).sum())(net)
    np.testing.assert_allclose(
        tape.gradient(loss, model.again["kernel"]), theirs["again"]["kernel"][...], rtol=1e-5
    )
    jv.compile(lambda x: model(x, grow=True))(FLAT)
    same(model.last.value, FLAT)
    assert not model.last.trainable
    model.call(lambda m: delattr(m, "last"))
    assert "last" not in model.named_variables


class SowingNnx(nnx.Module):
    def __init__(self, rngs):
        self.dense = nnx.Linear(3, 2, rngs=rngs)

    def __call__(self, x):
        x = self.dense(x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self.sow(nnx.Intermediate, "h", x)
        return x


def test_what_an_nnx_module_sows_can_be_taken():
    model = interop.from_flax(SowingNnx(nnx.Rngs(0)))
    model(FLAT)
    assert list(model.named_variables) == ["dense/bias", "dense/kernel"]

    def caught(m, x):
        return m(x), nnx.pop(m, nnx.Intermediate)["h"].get_value()[0]

    y, h = jv.compile(lambda x: model.call(caught, x))(FLAT)
    same(y, h)


def test_what_an_nnx_module_sows_has_a_gradient_where_it_was_called():
    net = SowingNnx(nnx.Rngs(0))
    model = interop.from_flax(net)

    def gradient(x):
        with jv.GradientTape() as tape:
            model(x)
            loss = (model.h.get_value()[0] ** 2).sum()
        return tape.gradient(loss, model.dense["kernel"])

    theirs = nnx.grad(lambda net: (net(FLAT) ** 2).sum())(net)["dense"]["kernel"][...]
    np.testing.assert_allclose(gradient(FLAT), theirs, rtol=1e-5)
    same(model.sown["h"].get_value()[0], model(FLAT))
    np.testing.assert_allclose(jv.compile(gradient)(FLAT), theirs, rtol=1e-5)
    for read in (lambda: model.h, lambda: model.sown):  # what the program computed is not here
        with pytest.raises((AttributeError, InteropError), match=r"'h'|return y, model\.sown"):
            read()
    same(model(FLAT), model.h.get_value()[0])
    assert not copy.deepcopy(model).sown
    assert not pickle.loads(pickle.dumps(model)).sown


class KeepingNnx(nnx.Module):
    def __init__(self, rngs):
        self.dense = nnx.Linear(3, 2, rngs=rngs)
        self.penalty = nnx.Variable(jnp.zeros(()))

    def __call__(self, x):
        x = self.dense(x)
        self.penalty.set_value((x**2).sum())
        return x


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile])
def test_a_loss_that_an_nnx_module_keeps_has_a_gradient_through_the_assign(wrap):
    net = KeepingNnx(nnx.Rngs(0))
    model = interop.from_flax(net)

    @wrap
    def gradient(x):
        with jv.GradientTape(through_assigns=True) as tape:
            loss = model(x).sum() + model.penalty
        return tape.gradient(loss, model.dense["kernel"])

    theirs = nnx.grad(lambda net: net(FLAT).sum() + net.penalty.get_value())(net)
    np.testing.assert_allclose(gradient(FLAT), theirs["dense"]["kernel"][...], rtol=1e-5)

    @wrap
    def part_of_it(x):
        with jv.GradientTape() as tape:
            loss = model(x).sum() + model.penalty
        return tape.gradient(loss, model.dense["kernel"])

    with pytest.warns(GradientWarning, match=r"A part of .* 'penalty' .*through_assigns=True"):
        part_of_it(FLAT)


def test_streams_of_nnx_go_on_and_can_begin_anew():
    net = NnxNet(nnx.Rngs(0, dropout=5))
    net.drop(X), net.drop(X)
    ours = interop.from_flax(net)
    same(ours(X), net(X))
    assert int(ours.drop["rngs"].state.numpy()[3]) == 3
    for rngs in (4, {"dropout": 4}, {"default": jv.random.Generator(4)}, jv.random.Generator(4)):
        ours = interop.from_flax(net, rngs=rngs)
        key = jax.random.fold_in(jax.random.key(4), 0)
        same(ours.drop["rngs"].state.numpy()[:2], jax.random.key_data(key))
    with pytest.raises(InteropError, match=r"streams \['noise'\].*\['dropout'\]"):
        interop.from_flax(net, rngs={"noise": 1})
    with pytest.raises(InteropError, match=r"streams of this Linear are \[\]"):
        interop.from_flax(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), rngs=1)


def test_streams_that_no_generator_can_hold_are_variables():
    class Many(nnx.Module):
        def __init__(self):
            self.streams = nnx.Rngs(0).split(2)

        def __call__(self):
            return jax.vmap(jax.random.bits)(nnx.vmap(lambda rngs: rngs.default())(self.streams))

    model, net = interop.from_flax(Many()), Many()
    assert set(model.named_variables) == {"streams/default/count", "streams/default/key"}
    for _ in range(2):
        same(jv.compile(model)(), net())


def test_metrics_of_nnx():
    accuracy = interop.from_flax(nnx.metrics.Accuracy())
    update = jv.compile(lambda logits, y: accuracy.update(logits=logits, labels=y))
    update(jnp.eye(3), jnp.array([0, 1, 1]))
    assert accuracy.compute() == pytest.approx(2 / 3)
    accuracy.reset()
    update(jnp.eye(3), jnp.array([0, 1, 2]))
    assert accuracy.compute() == 1.0


def test_nnx_modules_that_cannot_be_used():
    with pytest.raises(InteropError, match="nothing more than rngs="):
        interop.from_flax(SmallNnx(nnx.Rngs(0)), FLAT)
    with nnx.var_defaults(ref=True):
        net = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    with pytest.raises(InteropError, match=r"mutable array .*ref=False"):
        interop.from_flax(net)


# ---------------------------------------------------------------- State, elsewhere
class Everything(jv.Module):
    def __init__(self, scale=1.0):
        self.layers = [jv.Variable(scale * jnp.ones((2, 3)), name="w"), jv.Variable(True)]
        self.half = jv.Variable(jnp.ones(3, jnp.bfloat16) * scale)
        self.small = jv.Variable(jnp.ones(3, ml_dtypes.float8_e4m3fn) * 0.5)
        self.text = jv.Variable([["a", "bé"]] if scale == 1 else [["", "x"]])
        self.wave = jv.Variable(1j * scale)
        self.key = jv.Variable(jax.random.key(int(scale)), trainable=False)
        self.rng = jv.random.Generator(int(scale))


def all_equal(a, b):
    one, two = interop.to_numpy(a), interop.to_numpy(b)
    assert one.keys() == two.keys()
    for path in one:
        assert one[path].dtype == two[path].dtype, path
        np.testing.assert_array_equal(one[path], two[path], err_msg=path)


@pytest.mark.parametrize("way", ["dict", "numpy", "bytes", "flax"])
def test_there_and_back(way):
    source, target = Everything(), Everything(2.0)
    if way == "dict":
        state = interop.from_dict(target, interop.to_dict(source))
    elif way == "numpy":
        state = interop.from_numpy(target, interop.to_numpy(source))
    elif way == "bytes":
        state = interop.from_bytes(target, interop.to_bytes(source))
    else:
        data = serialization.to_bytes(jv.State.of(source))
        state = serialization.from_bytes(jv.State.of(target), data)
        assert data == interop.to_bytes(source)
    assert isinstance(state, jv.State)
    all_equal(target, Everything(2.0))  # nothing has changed yet
    state.commit()
    all_equal(target, source)


def test_nested_dicts_have_the_paths():
    source = Everything()
    nested = interop.to_dict(source)
    assert nested["layers"]["0"] is source.layers[0].value
    assert set(interop.to_numpy(source)) == set(source.named_variables)
    mixed = {**nested, "layers/0": [[1, 2, 3], [4, 5, 6]], "layers": {"1": False}}
    assert interop.from_dict(source, mixed)["layers/0"].tolist() == [[1, 2, 3], [4, 5, 6]]


def test_numpy_files(tmp_path):
    source, target = Everything(), Everything(2.0)
    arrays = {p: a for p, a in interop.to_numpy(source).items() if p != "text"}
    np.savez(tmp_path / "weights.npz", **arrays)
    with np.load(tmp_path / "weights.npz") as file:
        state = interop.from_numpy(target, {**file, "text": source.text.value})
    state.commit()
    all_equal(target, source)
    arrays["layers/0"][:] = 7  # separate memory
    assert source.layers[0].numpy().max() == 1


def test_flax_reads_the_bytes_and_the_other_way_round():
    model = interop.from_flax(nn.Dense(2), FLAT, rngs=0)
    params = interop.to_flax(model)["params"]
    restored = serialization.msgpack_restore(interop.to_bytes({"params": model.params}))
    same(restored["params"], params)
    other = interop.from_flax(nn.Dense(2), FLAT, rngs=1)
    interop.from_bytes(
        {"params": other.params}, serialization.to_bytes({"params": params})
    ).commit()
    same(interop.to_flax(other)["params"], params)


def test_all_differences_are_in_one_error():
    target = Everything()
    values = interop.to_numpy(target)
    del values["half"]
    values |= {"wave": np.float32(1), "layers/0": np.ones((3, 2), np.float32), "new": 1.0,
               "rng/state": "text", "key": np.zeros(3, np.uint32)}  # fmt: skip
    with pytest.raises(StateError) as caught:
        interop.from_numpy(target, values)
    lines = str(caught.value).splitlines()
    assert lines[0] == "The values do not fit the variables:"
    assert [line.split(":")[0].strip() for line in lines[1:7]] == [
        "half", "key", "layers/0", "new", "rng/state", "wave",
    ]  # fmt: skip
    assert "the variable is float32[2, 3], the value float32[3, 2]" in str(caught.value)
    assert "half: no value is given" in str(caught.value)
    assert "new: no variable has this path" in str(caught.value)
    all_equal(target, Everything())


def test_dtypes_are_not_cast():
    target = {"w": jv.Variable([1.0, 2.0]), "b": jv.Variable(jnp.ones(2, jnp.bfloat16))}
    for values in ({"w": np.ones(2), "b": jnp.ones(2, jnp.bfloat16)},
                   {"w": np.ones(2, np.float32), "b": np.ones(2, np.float16)}):  # fmt: skip
        with pytest.raises(StateError, match=r"the variable is .*, the value .*\. cast=True of"):
            interop.from_dict(target, values)
        interop.from_dict(target, values, cast=True)
    with pytest.raises(StateError, match=r"the value float64\[3\]\nMore"):
        interop.from_dict(target, {"w": np.ones(3)}, partial=True)


def test_a_path_that_is_a_value_and_more_is_refused():
    state = jv.State.of(a=jv.Variable(1.0), **{"a/b": jv.Variable(2.0)})
    with pytest.raises(StateError, match=r"'a/b' does not go into dicts"):
        interop.to_dict(state)
    assert set(interop.to_numpy(state)) == {"a", "a/b"}


def hostile() -> list[bytes]:
    good = interop.to_bytes(Everything())
    ext = serialization.msgpack_serialize({"w": np.ones(3, np.float32)})
    cases = [b"", b"\xc1", b"\x93\x01\x02\x03", b"\xdd\xff\xff\xff\xff", b"\x91" * 3000, good[:-7],
             good[: len(good) // 2], good + b"x", b"\x81\x93\x01\x02\x03\x04",
             ext.replace(b"float32", b"object_"), ext.replace(b"float32", b"floaT32"),
             ext.replace(b"\x91\x03", b"\x91\x7f"), pickle.dumps({"w": 1})]  # fmt: skip
    cases.append(serialization.msgpack_serialize({"__msgpack_chunked_array__": True}))
    cases.append(serialization.msgpack_serialize({"text": {"__text__": 3}}))
    cases.append(serialization.msgpack_serialize({"text": {"__text__": ["a"], "shape": ["x"]}}))
    cases.append(serialization.msgpack_serialize({1: {2: 3}}))
    return cases


def test_bad_bytes_are_one_clear_error():
    target = Everything()
    for data in hostile():
        with pytest.raises(StateError, match=r"are not a State|do not fit|are a dict by path"):
            interop.from_bytes(target, data)
    good = bytearray(interop.to_bytes(target))
    random = np.random.default_rng(0)
    for _ in range(200):
        bad = good.copy()
        for i in random.integers(0, len(bad), 3):
            bad[i] ^= 1 << int(random.integers(8))
        with contextlib.suppress(StateError):  # anything else fails the test
            interop.from_bytes(target, bytes(bad))
    with pytest.raises(StateError, match="takes bytes, not str"):
        interop.from_bytes(target, "text")
    all_equal(target, Everything())


def test_values_of_other_kinds_are_refused():
    with pytest.raises(StateError, match="a dict by path, not list"):
        interop.from_dict(Everything(), [1])
    with pytest.raises(StateError, match="no Variable"):
        interop.to_dict({})

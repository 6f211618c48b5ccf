"""Keras 3 on JAX: a variable has one value, eagerly, in compiled functions and in Keras."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.errors import DtypeError, InteropError, StaleReadWarning

os.environ.setdefault("KERAS_BACKEND", "jax")
keras = pytest.importorskip("keras")
layers = keras.layers
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ impl:DeprecationWarning", "ignore:.*build.. was called on layer"
)

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(16, 8, 8, 1)).astype("float32"), RNG.integers(0, 4, 16).astype("int32")
ROWS = X.reshape(16, 64)[:, :8]


@pytest.fixture(autouse=True, scope="module")
def adopted() -> None:
    """Adopt something, from when on what is not adopted yet is found, too."""
    jv.interop.from_keras(keras.metrics.Mean())


def convnet() -> Any:
    keras.utils.set_random_seed(3)
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(4),
        ]
    )


class Block(layers.Layer):
    """A layer of the user's, with a generator in it."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(6, kernel_regularizer="l2")
        self.seed = keras.random.SeedGenerator(1)

    def call(self, x: Any, training: bool = False) -> Any:
        noise = keras.random.normal((6,), seed=self.seed) if training else 0.0
        return keras.ops.tanh(self.dense(x) + 0.1 * noise)


class Net(keras.Model):
    """A model of the user's."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [Block(), Block()]
        self.head = layers.Dense(4)

    def build(self, shape: Any) -> None:
        self.offset = self.add_weight(shape=(4,), initializer="zeros", name="offset")

    def call(self, x: Any, training: bool = False) -> Any:
        for block in self.blocks:
            x = block(x, training=training)
        return self.head(x) + self.offset


def net() -> Any:
    keras.utils.set_random_seed(3)
    made = Net()
    made(ROWS)
    return made


def sequential(*, is_functional: bool = False) -> Any:
    keras.utils.set_random_seed(4)
    parts = [layers.Dense(6), layers.Dropout(0.5), layers.BatchNormalization(), layers.Dense(4)]
    if not is_functional:
        return keras.Sequential([keras.Input((8,)), *parts])
    given = x = keras.Input((8,))
    for part in parts:
        x = part(x)
    return keras.Model(given, x)


def loss_of(y: Any, logits: Any) -> Any:
    return keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True).mean()


def step_of(model: Any, optimizer: Any, metric: Any = None) -> Any:
    def step(x: Any, y: Any) -> Any:
        with jv.GradientTape() as tape:
            logits = model(x, training=True)
            loss = loss_of(y, logits) + sum(model.losses)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        if metric is not None:
            metric.update_state(y, logits)
        return loss

    return step


def hand_written(model: Any, optimizer: Any, metric: Any, x: Any, y: Any, count: int) -> Any:
    """Return the losses, weights and metric of the loop that Keras's guide writes."""
    optimizer.build(model.trainable_variables)

    def compute(trainable: Any, other: Any, x: Any, y: Any) -> Any:
        logits, other, losses = model.stateless_call(
            trainable, other, x, training=True, return_losses=True
        )
        return loss_of(y, logits) + sum(losses), (logits, other)

    @jax.jit
    def step(trainable: Any, other: Any, slots: Any, sums: Any, x: Any, y: Any) -> Any:
        (loss, (logits, other)), gradients = jax.value_and_grad(compute, has_aux=True)(
            trainable, other, x, y
        )
        trainable, slots = optimizer.stateless_apply(slots, gradients, trainable)
        sums = metric.stateless_update_state(sums, y, logits)
        return loss, trainable, other, slots, sums

    lists = (
        model.trainable_variables, model.non_trainable_variables, optimizer.variables,
        metric.variables,
    )  # fmt: skip
    state = [[v.value for v in listed] for listed in lists]
    losses = []
    for _ in range(count):
        loss, *state = step(*state, x, y)
        losses.append(loss)
    return losses, [*state[0], *state[1]], metric.stateless_result(state[3])


def parts() -> tuple[Any, Any]:
    return keras.optimizers.Adam(0.01), keras.metrics.SparseCategoricalAccuracy()


# ---------------------------------------------------------------- steps
@pytest.mark.parametrize(("make", "x"), [(convnet, X), (net, ROWS)])
@pytest.mark.parametrize(("decorate", "count"), [(jv.compile, 100), (lambda fn: fn, 5)])
def test_a_step_is_that_of_the_hand_written_stateless_loop(make, x, decorate, count):
    expected, weights, accuracy = hand_written(make(), *parts(), x, Y, count)
    model, (optimizer, metric) = jv.interop.from_keras(make()), parts()
    step = decorate(step_of(model, optimizer, metric))
    losses = [step(x, Y) for _ in range(count)]
    np.testing.assert_allclose(losses, expected, rtol=1e-3, atol=1e-5)
    found = [*model.trainable_variables, *model.non_trainable_variables]
    for variable, value in zip(found, weights, strict=True):
        np.testing.assert_allclose(variable.value, value, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(metric.result(), accuracy)
    assert int(optimizer.iterations.value) == count


def test_variables_of_tf_keras_and_of_keras_are_told_apart():
    from jaxvars import tf

    theirs, layer = tf.keras.layers.Dense(1), jv.interop.from_keras(layers.Dense(1))
    theirs.build((None, 2)), layer.build((None, 2))
    jv.compile(layer)(jnp.ones((1, 2)))
    layer.trainable = False
    assert [isinstance(x.kernel * 2, tf.Tensor) for x in (theirs, layer)] == [True, False]
    assert [v.trainable for v in jv.select(layer).values()] == [False, False]


def frozen_moves(model: Any, batch_norm: Any, call: Any) -> list[bool]:
    """Return for each call whether the statistics have moved: thawed, frozen, and so on."""
    moved: list[bool] = []
    for flag in (True, False, False, True):
        model.trainable = flag
        before = np.array(batch_norm.moving_mean)
        call(ROWS)
        moved.append(bool((before != batch_norm.moving_mean).any()))
    return moved


@pytest.mark.parametrize("way", ["compiled", "nested", "scanned", "pure"])
def test_a_compiled_forward_pass_follows_the_flag_of_a_layer(way):
    model = jv.interop.from_keras(sequential())
    forward = lambda x: model(x, training=True)  # noqa: E731 - a layer in a function
    inner, pure = jv.compile(forward), jax.jit(jv.functionalize(forward))
    call = {
        "compiled": inner,
        "nested": jv.compile(lambda x: inner(x)),
        "scanned": jv.compile(lambda x: jv.scan(lambda c, x: (c, forward(x)), 0, x[None])[1]),
        "pure": lambda x: pure(jv.State.of(model), x)[1].commit(),
    }[way]
    assert frozen_moves(model, model.layers[2], call) == [True, False, False, True]
    if way == "compiled":
        assert inner.traces.column("why")[1:] == ["other variables are trainable"]


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW", "Lion"])
def test_optimizers_of_jaxvars_train_the_weights_that_are_trainable(optimizer):
    model = jv.interop.from_keras(sequential())
    model.layers[0].trainable = False
    made = getattr(jv.optimizers, optimizer)(0.1)
    step = jv.compile(lambda x, y: made.minimize(lambda: loss_of(y, model(x)), model))
    before = model.get_weights()
    step(ROWS, Y), step(ROWS, Y)
    changed = [(a != b).any() for a, b in zip(before, model.get_weights(), strict=True)]
    assert changed == [False] * 2 + [True] * 2 + [False] * 2 + [True] * 2
    with jv.freeze(model.layers[3]):
        assert len(model.trainable_variables) == 2


def test_accumulated_gradients_and_averages_are_keras_s():
    options = {"gradient_accumulation_steps": 2, "use_ema": True, "ema_overwrite_frequency": 3}
    makers = [lambda: keras.optimizers.Adam(0.05, **options)] * 3
    metric = keras.metrics.SparseCategoricalAccuracy()
    expected, _, _ = hand_written(sequential(), makers[0](), metric, ROWS, Y, 6)
    for decorate, make in zip((jv.compile, lambda fn: fn), makers, strict=False):
        step = decorate(step_of(sequential(), make()))
        np.testing.assert_allclose([step(ROWS, Y) for _ in range(6)], expected, rtol=1e-4)


def test_what_keras_assigns_the_next_step_sees_and_the_other_way_round(tmp_path: Path):
    model = sequential()
    run = jv.compile(lambda x: model(x))  # adopted by the first trace
    before, kernel = run(ROWS), model.layers[0].kernel
    kernel.assign(kernel.value * 2.0)
    assert (run(ROWS) != before).any()
    np.testing.assert_allclose(run(ROWS), model.predict(ROWS, verbose=0), rtol=1e-5, atol=1e-6)
    optimizer = keras.optimizers.SGD(0.1)
    step = jv.compile(step_of(model, optimizer))
    step(ROWS, Y)
    state = jv.State.of(model)
    for value, path in zip(model.get_weights(), [p for p in PATHS if "seed" not in p], strict=True):
        assert (value == state[path]).all()
    model.save_weights(tmp_path / "m.weights.h5")
    saved = model.get_weights()
    step(ROWS, Y)
    model.load_weights(tmp_path / "m.weights.h5")
    np.testing.assert_allclose(run(ROWS), model.predict(ROWS, verbose=0), rtol=1e-5, atol=1e-6)
    optimizer.learning_rate = 0.0
    step(ROWS, Y)
    assert (model.layers[0].kernel.value == saved[0]).all()


def test_fit_and_compiled_steps_take_turns():
    model = jv.interop.from_keras(sequential())
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    run = jv.compile(lambda x: model(x))
    for _ in range(2):
        before = run(ROWS)
        model.fit(ROWS, Y, verbose=0)
        assert (run(ROWS) != before).any()
        np.testing.assert_allclose(run(ROWS), model(ROWS), rtol=1e-5, atol=1e-6)
        step_of(model, model.optimizer)(ROWS, Y)
    assert "optimizer/dense/kernel/momentum" in jv.State.of(model)


def test_masks_differ_from_step_to_step_in_scans_and_maps_of_states():
    model = sequential()
    run = jv.compile(lambda x: jv.scan(lambda c, x: (c, model(x, training=True)), 0, x)[1])
    first, second = run(jnp.stack([ROWS, ROWS])), run(jnp.stack([ROWS, ROWS]))
    masks = [*first, *second]
    assert all((a != b).any() for i, a in enumerate(masks) for b in masks[:i])
    pure, state = jv.functionalize(lambda x: model(x, training=True)), jv.State.of(model)
    result, new = jax.jit(pure)(state, ROWS)
    assert (result != jax.jit(pure)(new, ROWS)[0]).any()
    assert (model.layers[2].moving_mean.value != new["batch_normalization/moving_mean"]).any()


@pytest.mark.parametrize(
    "make", [pytest.param(layers.GRU, marks=pytest.mark.slow), "cell", "remat"]
)
def test_scans_of_keras_s_own_are_differentiated_and_never_stale(make):
    class Cell(layers.Layer):
        state_size = 3

        def build(self, shape: Any) -> None:
            self.kernel = self.add_weight(shape=(8, 3))

        def call(self, x: Any, states: Any = None) -> Any:
            if states is None:
                return x @ self.kernel
            return (x @ self.kernel + states[0],) * 2

    if make == "remat":
        with keras.RematScope(mode="full"):
            layer = Cell()
    else:
        layer = layers.RNN(Cell()) if make == "cell" else make(3)
    x = np.stack([ROWS, ROWS], 1)
    layer(x)

    def gradient() -> Any:
        with jv.GradientTape() as tape:
            total = keras.ops.sum(layer(x) ** 2)
        return tape.gradient(total, layer.trainable_variables)

    def total_of(values: Any, others: Any) -> Any:
        return keras.ops.sum(layer.stateless_call(values, others, x)[0] ** 2)

    compiled = jv.compile(gradient)
    for _ in range(2):
        values = [v.value for v in layer.trainable_variables]
        others = [v.value for v in layer.non_trainable_variables]
        expected = jax.grad(total_of)(values, others)
        for found in (gradient(), compiled()):
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        layer.trainable_variables[0].assign(values[0] * 2)


def test_what_would_be_stale_warns():
    w = jv.interop.from_keras(keras.Variable(2.0, name="w"))

    def body(carry: Any, x: Any) -> Any:
        return carry + w * x, carry

    class Kept(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.inner = layers.Dense(2)
            self.inner.build((None, 8))
            self.jitted = jax.jit(self.inner.call)

        def call(self, x: Any) -> Any:
            return self.jitted(x)

    model = jv.interop.from_keras(sequential())
    kept = jv.interop.from_keras(Kept())
    for run in (
        lambda: jax.jit(lambda x: model(x))(ROWS),
        lambda: keras.ops.scan(body, jnp.zeros(()), jnp.ones(3)),
        lambda: kept(ROWS),
    ):
        with pytest.raises(StaleReadWarning):
            run()


# ---------------------------------------------------------------- paths
PATHS = [
    "dense/kernel", "dense/bias", "dropout/seed_generator/seed_generator_state",
    "batch_normalization/gamma", "batch_normalization/beta", "batch_normalization/moving_mean",
    "batch_normalization/moving_variance", "dense_1/kernel", "dense_1/bias",
]  # fmt: skip


def test_paths_are_keras_s_whatever_was_made_before():
    keras.utils.clear_session()
    for is_functional in (False, True, False):
        model = sequential(is_functional=is_functional)
        assert list(jv.State.of(model)) == PATHS
    keras.utils.clear_session()
    model = sequential()
    named = dict(zip(jv.State.of(sequential=model), jv.State.of(model), strict=True))
    assert {v.path for v in model.weights} == {path for path in named if "seed" not in path}
    explicit = keras.Sequential([keras.Input((2,)), layers.Dense(2, name="a_7"), layers.Dense(1)])
    assert list(jv.State.of(explicit))[::2] == ["a_7/kernel", "dense/kernel"]


def test_paths_of_models_of_the_users():
    model = net()
    for block in model.blocks:
        block.scale = jv.Variable(1.0, name="scale")  # of jaxvars
    paths = list(jv.State.of(model))
    block = ["seed_generator/seed_generator_state", "dense/kernel", "dense/bias", "scale"]
    blocks = [f"{name}/{path}" for name in ("block", "block_1") for path in block]
    assert paths == ["offset", *blocks, "dense/kernel", "dense/bias"]
    attention = layers.MultiHeadAttention(2, 2, dropout=0.1)
    attention(X[:, 0], X[:, 0])
    assert "dropout/seed_generator/seed_generator_state" in jv.State.of(attention)
    last = sequential().layers[-1]
    assert list(jv.State.of(last)) == ["kernel", "bias"]  # not what is before it in the model
    assert len(jv.State.of(jv.interop.from_keras(keras.random.SeedGenerator(1)))) == 1
    assert list(jv.State.of(jv.interop.from_keras(keras.metrics.Mean()))) == ["total", "count"]


@pytest.mark.parametrize("is_built", [True, False])
def test_a_checkpoint_is_restored_in_a_twin_that_is_made_in_another_way(tmp_path, is_built):
    model, optimizer = sequential(), keras.optimizers.Adam(0.1)
    step = jv.compile(step_of(model, optimizer))
    step(ROWS, Y), step(ROWS, Y)
    path = jv.checkpoint.Checkpoint(model=model, optimizer=optimizer).save(tmp_path / "c")
    expected = [step(ROWS, Y) for _ in range(3)]
    twin, optimizer = sequential(is_functional=True), keras.optimizers.Adam(0.1)
    if is_built:
        optimizer.build(twin.trainable_variables)
    jv.checkpoint.Checkpoint(model=twin, optimizer=optimizer).restore(path)
    step = jv.compile(step_of(twin, optimizer))
    np.testing.assert_array_equal([step(ROWS, Y) for _ in range(3)], expected)


# ---------------------------------------------------------------- modules
class Holder(jv.Module):
    """A Module with a raw layer of Keras."""

    def __init__(self) -> None:
        self.dense = layers.Dense(2)
        self.dense.build((None, 8))

    def __call__(self, x: Any) -> Any:
        return self.dense(x)


def test_a_raw_layer_in_a_module_is_found_and_trained():
    module, optimizer = Holder(), jv.optimizers.SGD(0.1)
    assert jv.compile(module)(ROWS).shape == (16, 2)
    assert list(module.named_variables) == ["dense/kernel", "dense/bias"]
    before = np.asarray(module.dense.kernel.value)
    jv.compile(lambda: optimizer.minimize(lambda: (module(ROWS) ** 2).mean(), module))()
    assert (module.dense.kernel.value != before).any()


def test_a_raw_layer_is_refused_before_one_was_adopted_which_leaves_tf_and_64_bits_off(run_python):
    program = """
import os, sys; os.environ["KERAS_BACKEND"] = "jax"
import keras, jax, jaxvars as jv
m = jv.Module()
m.net = keras.layers.Dense(2)
m.net.build((None, 3))
try:
    m.variables
except jv.errors.InteropError as error:
    print("jv.interop.from_keras(net)" in str(error))
net = jv.interop.from_keras(m.net)
print(len(m.variables), jv.compile(net)(jax.numpy.ones((1, 3))).shape)
print("jaxvars.tf" in sys.modules, jax.config.jax_enable_x64)
"""
    assert run_python("-c", program).stdout == "True\n2 (1, 2)\nFalse False\n"


def test_another_backend_is_refused_with_the_line_that_helps(run_python):
    program = (
        "import os; os.environ['KERAS_BACKEND'] = 'numpy'; import keras, jaxvars as jv;"
        "layer = keras.layers.Dense(2); layer.build((None, 3));"
        "\ntry: jv.interop.from_keras(layer)"
        "\nexcept jv.errors.InteropError as error: print(error)"
        "\nw = jv.Variable(1.0)\nwith jv.GradientTape() as tape: y = w * w"
        "\nprint(tape.gradient(y, w), jv.compile(lambda: w + 1)())"
    )
    printed = run_python("-c", program).stdout
    assert "Keras runs on numpy" in printed
    assert 'os.environ["KERAS_BACKEND"] = "jax"' in printed
    assert printed.endswith("2.0 2.0\n")


def test_what_is_nothing_of_keras_s_is_refused():
    for thing in (layers.Dense, 3, jv.Variable(1.0), keras.Input((2,))):
        with pytest.raises(InteropError, match="from_keras takes a layer, model, optimizer"):
            jv.interop.from_keras(thing)


def test_copies_are_separate_and_astype_says_what_it_cannot():
    kernel = jv.interop.from_keras(Holder().dense).kernel
    for copied in (copy.copy(kernel), copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        before = np.asarray(copied.value)
        kernel.assign(kernel.value + 1.0)
        assert (copied.value == before).all()
    together = copy.deepcopy([kernel, jv.interop.from_keras(kernel)])
    assert together[0] is together[1]
    with pytest.raises(DtypeError, match=r"'dense/bias'.*Make it with the dtype"):
        Holder().astype("bfloat16")


def test_private_names_that_are_used_are_those_of_this_keras():
    model, optimizer = sequential(), keras.optimizers.SGD(0.1)
    variable = keras.Variable(1.0)
    for name in ("_value", "_initializer", "_shape", "_dtype", "_trainable"):
        assert name in vars(variable), name
    for owner, name in (
        (variable, "_convert_to_tensor"), (variable, "_deferred_initialize"),
        (optimizer, "_trainable_variables"), (model, "_flatten_layers"),
        (model, "_inbound_nodes"), (model, "_outbound_nodes"),
    ):  # fmt: skip
        assert hasattr(owner, name), name
    with keras.StatelessScope() as scope:
        assert scope.original_scope is None

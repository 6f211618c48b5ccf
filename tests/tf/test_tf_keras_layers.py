"""Layers and models of Keras in TensorFlow code: custom loops, fit, checkpoints."""

from __future__ import annotations

import copy
import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from interrupts import sweep

import jaxvars as jv
from jaxvars import tf

pytestmark = pytest.mark.usefixtures("keras_on_jax")


def data(*shape, shift=0):
    return np.cos(np.arange(np.prod(shape)) * 0.37 + shift).reshape(shape).astype("float32")


def filled(model):
    for i, variable in enumerate(model.weights):
        if "seed" not in variable.path:
            value = np.sin(np.arange(np.prod(variable.shape)) * 0.7 + i) * 0.3
            variable.assign(value.reshape(variable.shape) + ("variance" in variable.path))
    return model


def dense_model(*layers):
    layers = layers or (tf.keras.layers.Dense(1),)
    return filled(tf.keras.Sequential([tf.keras.Input((3,)), *layers]))


def step_of(model, optimizer, x, y):
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(y - model(x, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


def close(x, y):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-5, atol=1e-6)


# ---------------------------------------------------------------- loops
def test_a_loop_of_ones_own_is_gradient_descent_eager_and_compiled():
    x, y = data(8, 3), data(8, 1, shift=2)
    w, b = (np.asarray(v) for v in dense_model().weights)
    losses = []
    for _ in range(3):
        error = x @ w + b - y
        losses.append(np.mean(error**2))
        w, b = w - 0.2 * x.T @ error / 8, b - 0.2 * error.mean(0)
    for decorate in (lambda f: f, tf.function):
        model = dense_model()
        step = decorate(step_of(model, tf.keras.optimizers.SGD(0.1), x, y))
        close([step() for _ in range(3)], losses)
        close(model.get_weights()[0], w)
        close(model.get_weights()[1], b)


def test_a_model_is_built_in_the_first_call_of_a_function():
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first = tf.keras.layers.Dense(4, activation="relu")
            self.norm = tf.keras.layers.BatchNormalization()
            self.last = tf.keras.layers.Dense(1)
            self.runs = []

        def call(self, x, training=False):
            self.runs.append(type(x).__name__)
            return self.last(self.norm(self.first(x), training=training))

    net = Net()
    step = tf.function(step_of(net, tf.keras.optimizers.Adam(0.01), data(8, 3), data(8, 1)))
    before = float(step())
    traced = len(net.runs)
    for _ in range(20):
        after = float(step())
    assert after < before
    assert len(net.runs) == traced
    assert set(net.runs) == {"Tensor"}
    assert np.abs(net.norm.moving_mean.numpy()).max() > 0
    assert [v.shape for v in net.trainable_variables] == [(3, 4), (4,), (4,), (4,), (4, 1), (1,)]


def test_what_a_call_changes_is_changed_by_functions_and_by_fit_alike():
    layers = [tf.keras.layers.Dropout(0.5), tf.keras.layers.BatchNormalization()]
    model = dense_model(*layers)
    call = tf.function(lambda x: model(x, training=True))
    x = tf.ones([64, 3])
    first, second = call(x).numpy(), call(x).numpy()
    assert (first != second).any()  # the seed advances
    mean = model.layers[1].moving_mean.numpy()
    assert (mean != 0).all()
    model.compile(loss="mse")
    model.fit(np.ones((64, 3), "float32"), np.ones((64, 3), "float32"), verbose=0, epochs=50)
    assert (model.layers[1].moving_mean.numpy() > mean).all()
    assert (call(x).numpy() != second).any()


@pytest.mark.parametrize("decorate", [lambda f: f, tf.function])
def test_a_step_that_is_interrupted_anywhere_leaves_no_scope(decorate):
    model = dense_model()

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(data(2, 3)))
        return tape.gradient(loss, model.trainable_variables)

    def check():
        with keras.StatelessScope(initialize_variables=False) as probe:
            assert probe.original_scope is None

    import keras

    step()
    assert sweep(check, lambda: decorate(step)(), check, count=60, among="jaxvars") >= 60


def test_losses_of_layers_are_there_in_the_tape_and_after_it():
    class Noted(tf.keras.layers.Layer):
        def call(self, x):
            self.add_loss(tf.reduce_sum(x))
            return x

    dense = tf.keras.layers.Dense(2, kernel_regularizer=tf.keras.regularizers.l2(0.5))
    model = dense_model(dense, Noted())
    x = data(4, 3)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(model(x))
        loss = tf.add_n(model.losses)
    kernel = dense.kernel.numpy()
    close(loss, total.numpy() + 0.5 * np.sum(kernel**2))
    close(sum(model.losses), loss)
    gradient = tape.gradient(loss, dense.kernel)
    close(gradient, kernel + x.sum(0)[:, None])
    model(x)
    assert len(model.losses) == 2  # those of the last call


def test_what_the_user_writes_and_keras_calls_has_tensors():
    seen = []

    class Penalty(tf.keras.regularizers.Regularizer):
        def __call__(self, x):
            seen.append(type(tf.abs(x) * 2.0))
            return tf.reduce_sum(tf.abs(x))

    class Halved(tf.keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            seen.append(type(step))
            return 1.0 / (tf.cast(step, tf.float32) + 1.0)

    dense = tf.keras.layers.Dense(
        2,
        kernel_initializer=tf.keras.initializers.Ones(),
        kernel_regularizer=Penalty(),
        kernel_constraint=tf.keras.constraints.MaxNorm(1.0),
    )
    model = tf.keras.Sequential([tf.keras.Input((3,)), dense])
    model.compile(tf.keras.optimizers.SGD(Halved()), "mse")
    close(model.losses[0], 6.0)
    model.fit(data(4, 3), data(4, 2), verbose=0)
    assert np.linalg.norm(dense.kernel.numpy(), axis=0) == pytest.approx(1.0, abs=1e-5)
    assert set(seen) == {tf.Tensor}
    given = tf.keras.Input((3,))
    for activation in (tf.keras.activations.relu, tf.keras.activations.gelu):
        assert tf.keras.Model(given, activation(given))(data(4, 3)).shape == (4, 3)


@pytest.mark.parametrize(
    "made",
    [
        lambda: tf.keras.initializers.HeNormal(seed=3),
        lambda: tf.keras.regularizers.L1(0.5),
        lambda: tf.keras.constraints.UnitNorm(),
        lambda: tf.keras.optimizers.schedules.CosineDecay(0.1, 10),
    ],
)
def test_objects_are_copied_pickled_and_made_again(made):
    one = made()
    restored = pickle.loads(pickle.dumps(one))
    for again in (restored, copy.deepcopy(one), type(one).from_config(one.get_config())):
        assert type(again) is type(one)
        assert again.get_config() == one.get_config()


@pytest.mark.slow
def test_recurrent_layers_and_masks_under_tapes():
    embed = tf.keras.layers.Embedding(7, 4, mask_zero=True)
    lstm = tf.keras.layers.LSTM(3, activation=tf.nn.tanh)
    ids = np.array([[1, 2, 0], [3, 0, 0]])

    def gradients():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(lstm(embed(ids))))
        return tape.gradient(loss, lstm.trainable_variables)

    lstm(embed(ids))
    filled(lstm), filled(embed)
    eager, compiled = gradients(), tf.function(gradients)()
    assert len(eager) == 3
    for a, b in zip(eager, compiled, strict=True):
        assert np.abs(a.numpy()).max() > 0
        close(a, b)
    short = lstm(embed(ids[1:, :1]))
    close(lstm(embed(ids))[1:], short)  # what is masked does not count


def test_the_users_code_has_tensors_and_keras_arrays():
    seen = []

    def doubled(x):
        seen.append(type(x))
        return tf.nn.relu(x) * 2.0

    class Mine(tf.keras.layers.Dense):
        def call(self, x):
            made = super().call(x)
            seen.extend([type(x), type(made), type(self.kernel * 2.0)])
            return made + tf.cast(tf.shape(x)[0], tf.float32)

    model = dense_model(
        Mine(2, activation=doubled), tf.keras.layers.Lambda(doubled), tf.keras.layers.Dense(1)
    )
    result = model(data(4, 3))
    assert set(seen) == {tf.Tensor}
    assert isinstance(result, tf.Tensor)
    assert isinstance(tf.keras.layers.add([result, result]), tf.Tensor)
    assert isinstance(model.layers[0], tf.keras.layers.Layer)
    assert issubclass(tf.keras.layers.LSTM, tf.keras.layers.RNN)
    assert issubclass(tf.keras.Sequential, tf.keras.Model)


def test_variables_of_keras_in_operations():
    kernel = dense_model().layers[0].kernel
    value = kernel.numpy()
    for result in (kernel * 2.0, 2.0 * kernel, kernel @ tf.ones([1, 1]), kernel[0], -kernel):
        assert isinstance(result, tf.Tensor)
    close(tf.nn.l2_loss(kernel), np.sum(value**2) / 2)
    kernel.assign_sub(0.5 * tf.ones_like(kernel))
    close(kernel, value - 0.5)
    for copied in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        kernel.assign_add(tf.ones([3, 1]))
        close(copied, value - 0.5)
        kernel.assign_sub(tf.ones([3, 1]))


def test_a_model_that_was_not_called_has_no_gradients():
    model, other = dense_model(), dense_model()
    with tf.GradientTape() as outer, tf.GradientTape() as tape:
        y = tf.reduce_sum(model(data(2, 3)))
    found = tape.gradient(y, [*model.trainable_variables, *other.trainable_variables])
    assert [g is None for g in found] == [False, False, True, True]
    close(outer.gradient(y, model.trainable_variables)[1], [2.0])


def test_what_is_frozen_is_not_in_the_lists_and_watched_all_the_same():
    model = dense_model(tf.keras.layers.Dense(2), tf.keras.layers.Dense(1))
    model.layers[0].trainable = False
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(model(data(2, 3)))
    assert len(model.trainable_variables) == 2
    assert all(g is not None for g in tape.gradient(y, model.variables))


def test_tapes_and_functions_of_the_core_see_them_too():
    model = dense_model()
    x, kernel = data(4, 3), model.layers[0].kernel

    @jv.compile
    def step():
        with jv.GradientTape() as tape:
            loss = jnp.sum(jnp.asarray(model(x)))
        kernel.assign_sub(tape.gradient(loss, kernel))
        return loss

    before = kernel.numpy()
    step(), step()
    close(kernel, before - 2 * x.sum(0)[:, None])


# ---------------------------------------------------------------- fit
def test_fit_and_loops_take_turns_with_one_optimizer():
    x, y = data(8, 3), data(8, 1, shift=2)
    reference, model = dense_model(), dense_model()
    theirs, ours = tf.keras.optimizers.Adam(0.1), tf.keras.optimizers.Adam(0.1)
    losses = [float(step_of(reference, theirs, x, y)()) for _ in range(5)]
    metric = tf.keras.metrics.MeanSquaredError()
    model.compile(ours, loss=tf.keras.losses.MeanSquaredError(), metrics=[metric])
    found = model.fit(x, y, batch_size=8, epochs=2, verbose=0).history["loss"]
    assert int(ours.iterations) == 2
    close(metric.result(), found[-1])
    found.append(float(tf.function(step_of(model, ours, x, y))()))
    found += model.fit(x, y, batch_size=8, epochs=1, verbose=0).history["loss"]
    found.append(float(model.train_on_batch(x, y)[0]))
    close(found, losses)
    for a, b in zip(model.get_weights(), reference.get_weights(), strict=True):
        close(a, b)
    close(model.evaluate(x, y, verbose=0)[0], np.mean((y - model.predict(x, verbose=0)) ** 2))
    model.optimizer.learning_rate = 0.0
    assert float(ours.learning_rate) == 0.0


def test_a_train_step_of_the_users():
    class Net(tf.keras.Model):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.seen = tf.keras.metrics.Sum(name="seen")

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=y, y_pred=self(x, training=True))
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            self.seen.update_state(tf.ones_like(y) + 0.0 * tf.random.normal(tf.shape(y)))
            return {"mine": loss, "seen": self.seen.result()}

    inputs = tf.keras.Input((3,))
    model = filled(Net(inputs, tf.keras.layers.Dense(1)(inputs)))
    assert isinstance(model, Net)
    assert not issubclass(Net, type(tf.keras.Model(inputs, inputs)))  # the class is as it was
    model.compile("sgd", "mse")
    history = model.fit(data(8, 3), data(8, 1), epochs=3, batch_size=8, verbose=0).history
    assert history["mine"][-1] < history["mine"][0]
    assert history["seen"] == [8.0, 8.0, 8.0]  # begun again in each epoch


def test_a_train_step_as_keras_has_it_on_jax_is_keras_s():
    class Net(tf.keras.Sequential):
        def train_step(self, state, data):
            return super().train_step(state, data)

    model = filled(Net([tf.keras.Input((3,)), tf.keras.layers.Dense(1)]))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(model(data(2, 3)))
    assert tape.gradient(y, model.variables)[0] is not None
    model.compile("sgd", "mse")
    before = model.get_weights()[0]
    model.fit(data(8, 3), data(8, 1), verbose=0)
    after = model.get_weights()[0]
    assert (after != before).any()
    close(model(np.eye(3)) - model(np.zeros((1, 3))), after)


@pytest.mark.slow
def test_fit_takes_data_sets_and_tensors():
    x, y = data(8, 3), (data(8, 1) > 0).astype("float32")
    pairs = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
    model = dense_model(tf.keras.layers.Dense(1, activation="sigmoid"))
    model.compile(tf.keras.optimizers.SGD(0.0), tf.keras.losses.BinaryCrossentropy())
    plain = model.fit(x, y, verbose=0).history["loss"]
    close(model.fit(pairs, epochs=2, verbose=0).history["loss"], plain * 2)
    close(model.fit(tf.constant(x), tf.constant(y), verbose=0).history["loss"], plain)
    weights = {0: 0.0, 1: 2.0}
    close(
        model.fit(pairs, class_weight=weights, verbose=0).history["loss"],
        model.fit(x, y, class_weight=weights, verbose=0).history["loss"],
    )
    close(model.predict(pairs.map(lambda x, y: x), verbose=0), model(x))
    close(model.evaluate(pairs.repeat(), steps=2, verbose=0), plain[0])


# ---------------------------------------------------------------- files
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ impl:DeprecationWarning")  # Keras's own variables
def test_models_are_saved_loaded_and_cloned(tmp_path):
    model = dense_model(tf.keras.layers.Dense(2, activation=tf.nn.relu), tf.keras.layers.Dense(1))
    model.compile(
        tf.keras.optimizers.Adam(0.1),
        tf.keras.losses.MeanSquaredError(),
        metrics=[tf.keras.metrics.Precision()],
    )
    model.fit(data(8, 3), data(8, 1) > 0, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, tf.keras.Sequential)
    close(loaded(data(2, 3)), model(data(2, 3)))
    assert isinstance(loaded(data(2, 3)), tf.Tensor)
    for each in (model, loaded):  # with the loss, and the state of the optimizer
        each.fit(data(8, 3), data(8, 1) > 0, batch_size=8, verbose=0)
    for a, b in zip(model.get_weights(), loaded.get_weights(), strict=True):
        close(a, b)
    model.save_weights(tmp_path / "model.weights.h5")
    cloned = tf.keras.models.clone_model(model)
    cloned.load_weights(tmp_path / "model.weights.h5")
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(cloned(data(2, 3)))
    close(y, tf.reduce_sum(model(data(2, 3))))
    assert all(g is not None for g in tape.gradient(y, cloned.trainable_variables))


def test_a_class_of_the_users_is_saved_as_it_is_whatever_its_name():
    class Mean(tf.keras.metrics.Mean):
        pass

    model = dense_model()
    model.compile("sgd", "mse", metrics=[Mean(), tf.keras.metrics.Sum()])
    mine, keras_own = model.get_compile_config()["metrics"]
    assert (mine["module"], keras_own["module"]) == (__name__, "keras.metrics")


def test_a_checkpoint_holds_model_and_optimizer(tmp_path):
    x, y = data(8, 3), data(8, 1)

    def made():
        model = dense_model(tf.keras.layers.Dense(2), tf.keras.layers.BatchNormalization())
        optimizer = tf.keras.optimizers.Adam(0.1)
        return step_of(model, optimizer, x, y), tf.train.Checkpoint(net=model, optimizer=optimizer)

    step, checkpoint = made()
    step()
    path = checkpoint.save(tmp_path / "c")
    expected = [float(step()), float(step())]
    step, checkpoint = made()
    checkpoint.restore(path).assert_existing_objects_matched()
    close([step(), step()], expected)


def test_keras_is_imported_when_layers_are_used(run_python):
    program = (
        "import sys; from jaxvars import tf; tf.GradientTape().__enter__();"
        "tf.keras.losses.MeanSquaredError(); tf.keras.optimizers.Adam();"
        "print('keras' in sys.modules); tf.keras.layers.Dense; print('keras' in sys.modules)"
    )
    assert run_python("-c", program).stdout.split() == ["False", "True"]


def test_metrics_in_lists_and_dicts_are_the_layers_too():
    class Counting(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.first = tf.keras.metrics.Mean(name="a")
            self.others = [self.first, {"b": tf.keras.metrics.Mean(name="b")}]

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.inner, self.ends = Counting(), (tf.keras.layers.Dense(1), Counting())

        def call(self, x):
            self.inner.first.update_state(x)
            return self.ends[0](x)

    model = Model()
    model.compile("sgd", "mse", metrics=[tf.keras.metrics.MeanAbsoluteError(name="mae")])
    assert [m.name for m in model.inner.metrics] == ["a", "b"]
    assert sorted(m.name for m in model.metrics) == ["a", "a", "b", "b", "compile_metrics", "loss"]
    assert model.metrics[0].name == "loss"
    assert set(model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0).history) == {
        "a",
        "b",
        "mae",
        "loss",
    }
    model.reset_metrics()
    assert float(model.inner.first.result()) == 0.0


# ---------------------------------------------------------------- shapes that Keras infers
def users_layer(call):
    class Layer(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.calls, self.scale = tf.Variable(0.0, trainable=False), tf.Variable(2.0)

        def call(self, x):
            return call(self, x)

    return Layer()


def with_batch(x):
    return tf.random.normal((tf.shape(x)[0], tf.shape(x)[1]))


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda self, x: x + tf.exp(0.5 * x) * with_batch(x), (3,)),
        (lambda self, x: x + tf.random.uniform(tf.shape(x)), (3,)),
        (lambda self, x: tf.nn.dropout(x, 0.5) * self.scale, (3,)),
        (lambda self, x: x + self.calls.assign_add(1.0), (3,)),
        (lambda self, x: tf.reshape(x, [tf.shape(x)[0], 3, 1]), (3, 1)),
        (lambda self, x: tf.tile(tf.ones((1, 3)), [tf.shape(x)[0], 1]) + x, (3,)),
        (lambda self, x: tf.concat([x, tf.zeros((tf.shape(x)[0], 2))], 1), (5,)),
        (lambda self, x: x + tf.cast(tf.range(tf.shape(x)[0]), tf.float32)[:, None], (3,)),
    ],
)
def test_layers_of_the_users_draw_assign_and_use_sizes(batch, call, shape):
    inputs, layer = tf.keras.Input((3,), batch_size=batch), users_layer(call)
    for outputs in (layer(inputs), tf.keras.layers.Lambda(lambda x: call(layer, x))(inputs)):
        assert outputs.shape == (batch, *shape)
        model = tf.keras.Model(inputs, outputs)
        assert model(np.ones((4, 3), "float32")).shape == (4, *shape)


def test_inference_of_shapes_changes_nothing():
    def call(layer, x):
        return x * layer.calls.assign_add(1.0) + with_batch(x)

    tf.random.set_seed(1)
    first = tf.random.normal(())
    tf.random.set_seed(1)
    layer, inputs = users_layer(call), tf.keras.Input((3,))
    model = tf.keras.Model(inputs, layer(inputs))
    assert (float(layer.calls), float(tf.random.normal(()))) == (0.0, float(first))
    model(np.ones((4, 3), "float32"))
    assert float(layer.calls) == 1.0


def test_layers_in_layers_are_built_while_shapes_are_inferred():
    class Inner(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.dense, self.drop = tf.keras.layers.Dense(5), tf.keras.layers.Dropout(0.5)

        def call(self, x):
            return self.drop(self.dense(x) + with_batch(self.dense(x)))

    inputs = tf.keras.Input((3,))
    model = tf.keras.Model(inputs, Inner()(inputs))
    model.compile("sgd", "mse")
    model.fit(data(8, 3), data(8, 5), batch_size=4, verbose=0)
    assert (model.output_shape, len(model.trainable_weights)) == ((None, 5), 2)
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="Python `bool`"):
        users_layer(lambda self, x: x if tf.reduce_sum(x) > 0.0 else -x)(inputs)
    with pytest.raises(jv.errors.CreationError, match="is created"):
        users_layer(lambda self, x: x + tf.Variable(1.0))(inputs)

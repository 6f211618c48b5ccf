"""`tf.keras`: the values of TensorFlow, Tensors in and out, training loops, models of Keras.

The goldens were computed by TensorFlow; see `tests/goldens/make_tf_goldens.py`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras_cases
import numpy as np
import pytest

import jaxvars as jv
from jaxvars import tf
from jaxvars.errors import GradientWarning
from jaxvars.optimizers.checks import list_options

GOLDENS = json.loads((Path(__file__).parent.parent / "goldens" / "tf_keras.json").read_text())


def close(got, wanted):
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("expression", keras_cases.EXPRESSIONS)
def test_expressions(expression):
    dtypes, wanted = GOLDENS[expression]  # if it is missing: run make_tf_goldens.py
    got_dtypes, got = keras_cases.evaluate(tf, expression)
    assert got_dtypes == dtypes
    for x, y in zip(got, wanted, strict=True):
        close(x, y)


# ---------------------------------------------------------------- optimizers
def test_a_step_in_a_function():
    v = tf.Variable([1.0, 2.0])
    optimizer = tf.keras.optimizers.SGD(0.5, momentum=0.5)
    mean = tf.keras.metrics.Mean()

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v)
        optimizer.apply_gradients(zip(tape.gradient(loss, [v]), [v], strict=True))
        mean(loss)
        return loss

    losses = [float(step()), float(step())]
    assert losses == [5.0, 0.0]
    assert float(mean.result()) == 2.5
    close(v.numpy(), [-0.5, -1.0])
    assert int(optimizer.iterations) == 2
    assert [x.name for x in optimizer.variables[:2]] == ["sgd/iterations:0", "sgd/learning_rate:0"]
    assert len(optimizer.variables) == 3


NOT_OURS = {  # Keras's way to write an optimizer, and to pass its state on
    "add_optimizer_variables", "add_variable", "add_variable_from_reference", "assign",
    "assign_add", "assign_sub", "built", "from_config", "load_own_variables", "save_own_variables",
    "stateless_apply", "update_step",
}  # fmt: skip


def wrapper_of(kind: str, name: str, **options: Any) -> Any:
    """Return an optimizer, one around it, or what Keras is given for either."""
    optimizer = getattr(tf.keras.optimizers, name)(0.5, **options)
    if "scaled" in kind:
        optimizer = tf.keras.optimizers.LossScaleOptimizer(optimizer, 1.0)
    if "keras" not in kind:
        return optimizer
    keras = pytest.importorskip("keras")
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    assert isinstance(model.optimizer, keras.optimizers.Optimizer)
    return model.optimizer


@pytest.mark.parametrize("kind", ["alone", "scaled", "keras", "keras scaled"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Ftrl"])
def test_options_are_those_of_the_wrapped_optimizer(name: str, kind: str):
    core, optimizer = (
        getattr(jv.optimizers, name),
        wrapper_of(kind, name, clipnorm=2.0, use_ema=True),
    )
    for option in list_options(core):
        assert getattr(optimizer, option) == getattr(core(clipnorm=2.0, use_ema=True), option)
    optimizer.clipnorm = 3.0
    assert optimizer.clipnorm == 3.0
    optimizer.build([tf.Variable(1.0)])
    with pytest.raises(ValueError, match=rf"{name}\.clipnorm is set to 4.0"):
        optimizer.clipnorm = 4.0
    assert optimizer.clipnorm == 3.0
    optimizer.learning_rate = 0.25
    assert float(optimizer.learning_rate) == 0.25
    with pytest.raises(AttributeError, match="no attribute 'clipnrom'"):
        _ = optimizer.clipnrom


@pytest.mark.parametrize("kind", ["alone", "scaled", "keras", "keras scaled"])
def test_each_public_method_is_that_of_the_wrapped_optimizer(kind: str):
    optimizer = wrapper_of(kind, "SGD", weight_decay=0.5, use_ema=True)
    v, w = tf.Variable([1.0], name="v"), tf.Variable([2.0], name="w")
    optimizer.exclude_from_weight_decay(var_names=["w"])
    optimizer.build([v, w])
    w.assign([3.0])
    assert float(optimizer.scale_loss(tf.constant(2.0))) == 2.0
    optimizer.apply([tf.constant([0.0])], [v])
    assert (v.numpy()[0], int(optimizer.iterations)) == (0.75, 1)
    optimizer.finalize_variable_values([w])
    assert w.numpy()[0] == 3.0
    optimizer.apply_gradients([(tf.constant([0.0]), v)])
    v.assign([9.0])
    optimizer.finalize_variable_values([v])
    np.testing.assert_allclose(v.numpy(), [0.99 * 0.75 + 0.01 * 0.75 * 0.75], rtol=1e-6)
    optimizer.minimize(lambda: 4.0 * w, [w])
    assert (w.numpy()[0], int(optimizer.iterations)) == (1.0, 3)
    optimizer.apply([tf.constant([1.0]), tf.constant([1.0])])
    assert w.numpy()[0] == 0.5
    if "keras" in kind:
        values = [np.asarray(x) for x in optimizer.variables]
        optimizer.set_weights([x + 1 for x in values])
        assert [np.asarray(x).tolist() for x in optimizer.variables] == [
            (x + 1).tolist() for x in values
        ]
        names = {n for n in dir(pytest.importorskip("keras").optimizers.SGD()) if n[0] != "_"}
        ours = {n for c in type(optimizer).__mro__[:3] for n in vars(c)} | vars(optimizer).keys()
        assert names - NOT_OURS - list_options(jv.optimizers.SGD) <= ours


@pytest.mark.parametrize("kind", ["alone", "scaled"])
def test_fit_ends_with_the_averages_and_leaves_what_was_not_updated(kind: str):
    pytest.importorskip("keras")

    class Layer(tf.keras.layers.Layer):
        def build(self, _: Any):
            self.kernel = self.add_weight(shape=(2, 1), initializer="ones")
            self.unused = self.add_weight(shape=(1,), initializer="ones")

        def call(self, x: Any) -> Any:
            return x @ self.kernel

    model = tf.keras.Sequential([tf.keras.Input((2,)), Layer()])
    model.compile(wrapper_of(kind, "SGD", use_ema=True, ema_momentum=0.9), "mse")
    model.optimizer.learning_rate = 0.1
    with pytest.warns(GradientWarning, match="no gradients for the variables"):
        model.fit(np.ones((8, 2)), np.zeros((8, 1)), batch_size=2, verbose=0)
    np.testing.assert_allclose(model.weights[0].numpy(), [[0.49896]] * 2, rtol=1e-5)  # as Keras
    assert model.weights[1].numpy() == 1.0


def test_the_learning_rate_is_assigned():
    v = tf.Variable(1.0)
    optimizer = tf.keras.optimizers.SGD(0.5)
    optimizer.learning_rate = 0.25
    optimizer.apply_gradients([(tf.constant(1.0), v)])
    assert float(v) == 0.75
    optimizer.learning_rate.assign(0.5)
    optimizer.apply_gradients([(tf.constant(1.0), v)])
    assert float(v) == 0.25
    assert optimizer.get_config()["learning_rate"] == 0.5
    fixed = tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.InverseTimeDecay(0.1, 1, 1.0))
    with pytest.raises(TypeError, match="LearningRateSchedule"):
        fixed.learning_rate = 0.1
    assert float(fixed.learning_rate) == pytest.approx(0.1)
    again = tf.keras.optimizers.SGD.from_config(fixed.get_config())
    assert float(again.learning_rate) == pytest.approx(0.1)


@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "function"])
def test_the_count_of_updates_is_int64(run):
    v, optimizer = tf.Variable([1.0, 2.0]), tf.keras.optimizers.Adam(0.1)

    @run
    def step():
        count = optimizer.apply_gradients([(tf.ones_like(v), v)])
        is_first = tf.equal(optimizer.iterations, tf.constant(1, tf.int64))
        odd = optimizer.iterations % tf.constant(2, tf.int64)
        return is_first, odd, count + tf.constant(1), count * 0.5  # as those of Keras's variables

    for expected in ([True, 1, 2, 0.5], [False, 0, 3, 1.0]):
        found = step()
        assert [x.numpy() for x in found] == expected
        assert [x.dtype for x in found] == [tf.bool, tf.int64, tf.int64, tf.float32]
    kept = tf.Variable(0, dtype=tf.int64)
    kept.assign(optimizer.iterations)
    optimizer.iterations.assign(tf.constant(7, tf.int64))
    optimizer.iterations.assign_add(1)
    optimizer.iterations.assign_sub(kept)
    assert (int(kept), int(optimizer.iterations)) == (2, 6)
    assert {x.dtype for x in (optimizer.iterations, optimizer.variables[0])} == {tf.int64}
    assert optimizer.iterations.aliased.dtype == np.int32  # as it is saved
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a int64"):
        tf.minimum(optimizer.iterations, tf.constant(1))


def test_a_schedule_gets_the_count_and_the_count_is_int32_without_64_bits(run_python):
    seen = []
    v = tf.Variable(1.0)

    class Schedule(tf.keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            seen.append(step.dtype)
            return 0.5 / (1.0 + tf.cast(step, tf.float32))

    optimizer = tf.keras.optimizers.SGD(Schedule())
    for _ in range(2):
        optimizer.apply_gradients([(tf.constant(1.0), v)])
    assert (float(v), set(seen)) == (0.25, {tf.int32})
    program = (
        "from jaxvars import tf\n"
        "optimizer, v = tf.keras.optimizers.SGD(0.5), tf.Variable(1.0)\n"
        "print((optimizer.apply_gradients([(tf.constant(1.0), v)]) + 1).dtype.name)\n"
    )
    assert run_python("-c", program, JAX_ENABLE_X64="0").stdout.split() == ["int32"]


def test_minimize():
    v = tf.Variable(2.0)
    optimizer = tf.optimizers.SGD(0.25)
    optimizer.minimize(lambda: v * v, [v])
    assert float(v) == 1.0
    with tf.GradientTape() as tape:
        loss = v * v
    optimizer.minimize(loss, [v], tape=tape)
    assert float(v) == 0.5
    with pytest.raises(ValueError, match="`tape` is required"):
        optimizer.minimize(loss, [v])


def test_constraints_and_lists():
    v = tf.Variable([1.0, -1.0], constraint=lambda x: tf.abs(x))
    optimizer = tf.keras.optimizers.get("sgd")
    optimizer.build([v])
    optimizer.apply([tf.constant([0.0, 0.0])])
    assert v.numpy().tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="1 gradients for 2"):
        optimizer.apply([tf.constant([0.0, 0.0])], [v, v])


def test_no_gradients():
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        tf.keras.optimizers.Adam().apply_gradients([(None, tf.Variable(1.0))])


@pytest.mark.parametrize("space", ["optimizers", "losses", "metrics", "initializers"])
def test_names(space):
    module = getattr(tf.keras, space)
    assert getattr(tf, space) is module
    with pytest.raises(AttributeError, match=f"tf.keras.{space} has no attribute 'Nothing'"):
        module.Nothing  # noqa: B018 - asked for to be refused
    with pytest.raises(ValueError, match="Could not interpret"):
        module.get("nothing")


def test_metrics_and_optimizers_take_any_string_as_a_name():
    metric = tf.keras.metrics.MeanSquaredError(name="Brier score")
    assert (metric.name, metric.get_config()["name"]) == ("Brier score", "Brier score")
    assert next(v.name for v in metric.variables).startswith("Brier score/")
    assert tf.keras.metrics.Mean(name="").name == "mean"
    optimizer = tf.keras.optimizers.SGD(name="2nd one")
    variable = tf.Variable(1.0)
    optimizer.apply_gradients([(tf.constant(1.0), variable)])
    assert optimizer.name == "2nd one"


def test_classes():
    assert isinstance(tf.keras.optimizers.Adam(), tf.keras.optimizers.Optimizer)
    assert isinstance(tf.keras.losses.MeanSquaredError(), tf.keras.losses.Loss)
    assert isinstance(tf.keras.metrics.Mean(), tf.keras.metrics.Metric)
    assert isinstance(tf.keras.initializers.Zeros(), tf.keras.initializers.Initializer)
    assert tf.keras.losses.get("MeanSquaredError").name == "mean_squared_error"


def test_losses_and_metrics_that_are_keras_s_own_take_and_return_tensors():
    true, pred = tf.constant([[1.0, 1.0]]), tf.constant([[1.0, 0.0]])
    loss = tf.keras.losses.get("Tversky")
    assert isinstance(loss, tf.keras.losses.Loss)
    for found in (loss(true, pred), tf.keras.losses.tversky(true, pred)):
        assert isinstance(found, tf.Tensor)
        close(found, 1 / 3)
    saved = tf.keras.losses.serialize(tf.keras.losses.Tversky(alpha=0.3))
    assert tf.keras.losses.deserialize(saved).get_config()["alpha"] == 0.3

    metric = tf.keras.metrics.get({"class_name": "MeanIoU", "config": {"num_classes": 2}})
    assert isinstance(metric, tf.keras.metrics.Metric)
    update = tf.function(lambda *args: metric(*args))
    labels, guesses = tf.constant([0, 0, 1, 1]), tf.constant([0, 1, 0, 0])
    for found in (update(labels, guesses), update(labels, guesses), metric.result()):
        assert isinstance(found, tf.Tensor)
        close(found, 1 / 8)
    assert metric.variables[0].numpy().tolist() == [[2, 2], [4, 0]]
    metric.reset_state()
    assert float(metric.result()) == 0.0
    assert {"MeanIoU", "pearson_correlation", "R2Score"} < set(dir(tf.keras.metrics))
    close(tf.keras.metrics.get("r2_score")(tf.constant([[1.0], [4.0]]), [[1.0], [4.0]]), 1.0)
    close(tf.keras.losses.dice(true, pred), 1 / 3)


def test_a_model_is_compiled_with_losses_and_metrics_that_are_keras_s_own():
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, kernel_initializer="ones")])
    metrics = [tf.keras.metrics.OneHotMeanIoU(num_classes=2), tf.keras.metrics.pearson_correlation]
    model.compile("sgd", tf.keras.losses.Tversky(), metrics=metrics)
    labels = np.eye(2, dtype=np.float32)[[0, 0, 0, 1]]
    history = model.fit(np.ones((4, 3), np.float32), labels, verbose=0).history
    close(history["one_hot_mean_io_u"], [0.375])
    assert set(history) == {"loss", "one_hot_mean_io_u", "pearson_correlation"}


def masked(loss: Any) -> Any:
    """Return a class of losses that leaves out what is labelled 0, as for text."""

    class Masked(loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            values = super().call(y_true, y_pred)
            mask = tf.cast(tf.not_equal(y_true, 0), values.dtype)
            return tf.reduce_sum(values * mask, -1) / tf.reduce_sum(mask, -1)

    return Masked


def doubled(loss: Any) -> Any:
    class Doubled(loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return 2 * super().call(y_true, y_pred)

    return Doubled


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MeanSquaredError", 0.01333333),
        ("BinaryCrossentropy", 1.1721139),
        ("CategoricalCrossentropy", 1.9981558),
        ("Huber", 0.00666667),
        ("KLDivergence", 0.0705570),
        ("CosineSimilarity", -1.9543742),
        ("BinaryFocalCrossentropy", 0.2225397),
    ],
)
def test_the_call_of_a_subclass_of_a_loss_is_what_computes(name, expected):
    true, pred = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], [[0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]
    loss = doubled(getattr(tf.keras.losses, name))()
    for run in (loss, tf.function(loss)):
        close(run(tf.constant(true), tf.constant(pred)), expected)
    assert loss.get_config()["name"] == loss.name != "Doubled"
    assert loss(true, pred, [1.0, 3.0]).shape == ()
    assert type(loss)(reduction="none")(true, pred).shape == (2,)


def test_a_masked_loss_has_the_options_of_what_it_is_made_from():
    scores = np.sin(np.arange(18.0, dtype="float32")).reshape(2, 3, 3)
    loss = masked(tf.keras.losses.SparseCategoricalCrossentropy)(from_logits=True, name="mine")
    close(loss(tf.constant([[1, 2, 0], [2, 0, 0]]), tf.constant(scores)), 1.5924509)
    assert (loss.name, loss.get_config()["from_logits"]) == ("mine", True)


@pytest.mark.usefixtures("keras_on_jax")
def test_a_model_is_fitted_with_the_loss_of_a_subclass():
    class Sum(tf.keras.losses.MeanSquaredError):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return tf.reduce_sum((y_true - y_pred) ** 2, -1)

    layers = [tf.keras.Input((2,)), tf.keras.layers.Dense(3, kernel_initializer="ones")]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", Sum())
    x, y = np.ones((4, 2), np.float32), np.zeros((4, 3), np.float32)
    close(model.fit(x, y, epochs=2, verbose=0).history["loss"], [12.0, 10.6032])
    close(model.weights[0], np.full((2, 3), 0.9224))


# ---------------------------------------------------------------- optimizers of a program's own
def lion() -> Any:
    """Return a class that is written from the base."""

    class Lion(tf.keras.optimizers.Optimizer):
        def __init__(self, learning_rate=0.1, beta=0.5, **options):
            super().__init__(learning_rate=learning_rate, **options)
            self.beta = beta

        def build(self, variables):
            if self.built:
                return
            super().build(variables)
            self.means = [self.add_variable_from_reference(v, name="mean") for v in variables]
            both = self.add_optimizer_variables(variables, ["one", "other"], initializer="ones")
            self.ones = both[0]
            self.count = self.add_variable((), name="count")

        def update_step(self, gradient, variable, learning_rate):
            place = self._get_variable_index(variable)
            mean, step = self.means[place], tf.cast(self.iterations + 1, variable.dtype)
            self.assign(mean, self.beta * mean + gradient / step)
            self.assign_add(self.count, 1)
            change = learning_rate * tf.sign(mean) * self.ones[place] + mean * 0.01
            self.assign_sub(variable, change)

        def get_config(self):
            return {**super().get_config(), "beta": self.beta}

    return Lion


def written_optimizers() -> dict[str, Any]:
    """Return classes that write one part of an update each, or all of it."""
    made = tf.keras.optimizers

    class Sign(made.SGD):
        def update_step(self, gradient, variable, learning_rate):
            self.assign_sub(variable, learning_rate * tf.sign(gradient))

    class NanSafe(made.Adam):
        def apply(self, grads, trainable_variables=None):
            safe = [tf.where(tf.math.is_nan(g), tf.zeros_like(g), g) for g in grads]
            super().apply(safe, trainable_variables)

    class Central(made.Adam):
        def update_step(self, gradient, variable, learning_rate):
            super().update_step(gradient - tf.reduce_mean(gradient), variable, learning_rate)

    class Clip(made.SGD):
        def _clip_gradients(self, grads):
            return [2 * g for g in super()._clip_gradients(grads)]

    class Back(made.RMSprop):
        def _backend_update_step(self, grads, trainable_variables, learning_rate):
            negative = [-g for g in grads]
            super()._backend_update_step(negative, trainable_variables, learning_rate)

    return {kind.__name__: kind for kind in (Sign, NanSafe, Central, Clip, Back, lion())}


@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "function"])
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("Sign", {}, [0.7, 2.3, 2.3]),
        ("Sign", {"loss_scale_factor": 2.0}, [0.7, 2.3, 2.3]),
        ("NanSafe", {}, [0.7076838, 2.2923160, 2.3000023]),
        ("Central", {}, [0.7076838, 2.2923160, 2.5]),
        ("Central", {"weight_decay": 0.1, "clipnorm": 1.0}, [0.6732920, 2.2376053, 2.4502499]),
        ("Clip", {"clipvalue": 1.0}, [0.4, 2.6, 2.3]),
        (
            "Clip",
            {"momentum": 0.9, "nesterov": True, "global_clipnorm": 1.0},
            [0.0367004, 3.2843995, 2.4296470],
        ),
        ("Back", {"momentum": 0.5}, [2.2410340, 0.7589663, 2.5]),
        ("Lion", {}, [0.5725, 2.47, 2.2908332]),
        ("Lion", {"weight_decay": 0.1}, [0.5468360, 2.4062123, 2.2421331]),
    ],
)
def test_what_a_class_of_optimizers_writes_is_called(name, options, expected, run):
    v = tf.Variable([1.0, 2.0])
    w = tf.Variable([[3.0]], constraint=lambda x: tf.minimum(x, 2.5))
    optimizer = written_optimizers()[name](0.1, **options)

    @run
    def step(a, b):
        return optimizer.apply_gradients([(a, v), (b, w)])

    for i in range(3):
        step(tf.constant([3.0, -4.0]) * (i + 1), tf.constant([[0.5]]))
    close([*v.numpy(), *w.numpy()[0]], expected)  # TensorFlow's
    assert int(optimizer.iterations) == 3


def test_an_optimizer_leaves_out_what_is_no_number():
    v = tf.Variable([1.0, 2.0])
    optimizer = written_optimizers()["NanSafe"](0.1)
    for update in (
        lambda g: optimizer.apply_gradients([(g, v)]),
        lambda g: optimizer.apply([g], [v]),
        lambda g: optimizer.apply([g]),
    ):
        update(tf.constant([np.nan, 1.0]))
    close(v, [1.0, 1.7])
    optimizer.minimize(lambda: tf.reduce_sum(v * [np.nan, 1.0]), [v])
    close(v, [1.0, 1.6])


@pytest.mark.usefixtures("keras_on_jax")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Sign", [36.0, 20.160097, 9.985595]),
        ("NanSafe", [36.0, 20.160189, 10.221861]),
        ("Clip", [36.0, 3235.335, 7.6197457e9]),
        ("Lion", [36.0, 5.9204607, 0.3455860]),
    ],
)
def test_a_model_is_fitted_with_an_optimizer_of_the_program_s_own(name, expected):
    dense = [tf.keras.layers.Dense(n, kernel_initializer="ones") for n in (3, 1)]
    model = tf.keras.Sequential([tf.keras.Input((2,)), *dense])
    model.compile(written_optimizers()[name](0.1), "mse")
    history = model.fit(np.ones((4, 2)), np.zeros((4, 1)), epochs=3, verbose=0).history
    close(history["loss"], expected)
    assert int(model.optimizer.iterations) == 3


def test_the_state_of_a_written_optimizer_is_saved_and_made_outside_of_loops(tmp_path):
    kind = written_optimizers()["Lion"]
    optimizer, v = kind(0.1, 0.25), tf.Variable([1.0, 2.0], name="v")

    @tf.function
    def steps(n):
        for _ in tf.range(n):
            optimizer.apply_gradients([(v * 2.0, v)])

    steps(tf.constant(2))
    path = tf.train.Checkpoint(optimizer=optimizer, v=v).save(str(tmp_path / "x"))
    other, w = kind.from_config(optimizer.get_config()), tf.Variable([0.0, 0.0], name="v")
    other.build([w])
    tf.train.Checkpoint(optimizer=other, v=w).restore(path)
    assert (other.name, other.beta, int(other.iterations)) == ("lion", 0.25, 2)
    assert float(other.count) == 2.0
    for each in (optimizer, other):
        each.apply_gradients([(tf.constant([1.0, 1.0]), v if each is optimizer else w)])
    close(v, w)
    assert {x.name for x in other.variables} >= {"lion/v_mean:0", "lion/v_one:0", "lion/count:0"}
    with pytest.raises(ValueError, match="Unknown variable: w"):
        other.apply_gradients([(tf.constant(1.0), tf.Variable(1.0, name="w"))])


def test_parts_of_an_update_that_would_not_be_called_are_refused():
    made, written = tf.keras.optimizers, written_optimizers()
    pair = [(tf.constant(1.0), tf.Variable(1.0))]
    with pytest.raises(NotImplementedError, match=r"has a method update_step\(self, gradient"):
        type("Bad", (made.Optimizer,), {})(0.1).apply_gradients(pair)
    with pytest.raises(TypeError, match="write a class that is made from it"):
        made.Optimizer(0.1)
    old = type("Old", (made.Optimizer,), {"_resource_apply_dense": lambda *_: None})
    with pytest.raises(TypeError, match=r"Old has \['_resource_apply_dense'\].*Write update_step"):
        old(0.1)
    for name, part in (("Sign", "update_step"), ("NanSafe", "apply")):
        with pytest.raises(TypeError, match=rf"around {name} would not call \['{part}'\]"):
            made.LossScaleOptimizer(written[name](0.1))
    with pytest.raises(NotImplementedError, match=r"writes \['update_step'\] itself.*'use_ema'"):
        written["Sign"](0.1, use_ema=True).apply_gradients(pair)
    twice = {"update_step": lambda self, g, v, rate: made.Nadam.update_step(self, 2 * g, v, rate)}
    with pytest.raises(NotImplementedError, match="Nadam keeps state of all variables together"):
        type("Twice", (made.Nadam,), twice)(0.1).apply_gradients(pair)


def test_a_loss_may_be_a_function_without_a_module():  # as exec makes them
    def binary_crossentropy(y_true, y_pred):
        return tf.reduce_mean(tf.square(y_true - y_pred))

    def ramp(x):
        return tf.nn.relu(x)

    loss = binary_crossentropy
    loss.__module__ = ramp.__module__ = None
    layer = tf.keras.layers.Dense(1, activation=ramp, kernel_initializer="ones")
    for given in (loss, tf.keras.losses.MeanSquaredError()):
        model = tf.keras.Sequential([layer])
        model.compile("sgd", given, metrics=[loss])
        history = model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0, epochs=2).history
        assert history["loss"] == history["binary_crossentropy"]
    assert tf.keras.activations.get(ramp) is ramp
    assert tf.keras.losses.get(loss) is loss


# ---------------------------------------------------------------- metrics and initializers
def test_a_written_metric():
    class Count(tf.keras.metrics.Metric):
        def __init__(self, name="count", **kwargs):
            super().__init__(name=name, **kwargs)
            self.seen = self.add_weight(name="seen", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.seen.assign_add(tf.reduce_sum(tf.ones_like(y_true)))

        def result(self):
            return self.seen

    metric = Count()
    assert float(metric(tf.constant([1.0, 2.0]), None)) == 2.0
    assert [v.name for v in metric.variables] == ["count/seen:0"]
    metric.reset_state()
    assert float(metric.result()) == 0.0


def test_parts_of_a_metric():
    mean = tf.keras.metrics.Mean(name="loss")
    mean.update_state([1.0, 3.0])
    assert (mean.name, float(mean.total), float(mean.count)) == ("loss", 4.0, 2.0)
    other = tf.keras.metrics.Mean()
    other.merge_state([mean])
    mean.reset_state()
    assert (float(mean.result()), float(other.result())) == (0.0, 2.0)


def test_initializers_draw():
    made = tf.keras.initializers.GlorotUniform(seed=7)
    assert made((3, 4)).numpy().tolist() == made((3, 4)).numpy().tolist()
    assert np.abs(made((3, 3)).numpy()).max() <= 1.0
    tf.random.set_seed(3)
    first = tf.random_normal_initializer()((2,)), tf.initializers.HeNormal()((2, 2))
    tf.random.set_seed(3)
    again = tf.random_normal_initializer()((2,)), tf.initializers.HeNormal()((2, 2))
    for x, y in zip(first, again, strict=True):
        assert x.numpy().tolist() == y.numpy().tolist()
    drawn = tf.random_uniform_initializer(2, 5)((50,), dtype=tf.int32).numpy()
    assert set(drawn) == {2, 3, 4}
    with pytest.raises(TypeError, match="has 2 elements"):
        tf.constant_initializer([1, 2])((3,))

    with pytest.raises(ValueError, match="must be > 0"):
        tf.keras.optimizers.schedules.ExponentialDecay(0.1, 0, 0.5)


def test_activations_that_keras_has_otherwise():
    close(tf.keras.activations.sparsemax([0.6, 0.5, 0.0]), [0.55, 0.45, 0.0])
    assert tf.keras.activations.tanh(tf.constant(0.5, tf.float64)).dtype == tf.float64


def test_settings():
    assert tf.keras.backend.epsilon() == 1e-7
    with pytest.raises(ValueError, match="Unknown `floatx`"):
        tf.keras.backend.set_floatx("int32")
    tf.keras.backend.set_floatx("float64")
    try:
        assert tf.keras.initializers.Ones()((1,)).dtype == tf.float64
        assert tf.keras.losses.MeanSquaredError()([[1.0]], [[2.0]]).dtype == tf.float64
    finally:
        tf.keras.backend.set_floatx("float32")


# ---------------------------------------------------------------- models of Keras
def test_without_keras():
    program = (
        "import sys; sys.modules['keras'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'keras' else find(name, *rest)\n"
        "from jaxvars import tf\n"
        "tf.keras.layers\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(
        r'AttributeError: tf.keras.layers.*pip install "jaxvars\[keras\]"', done.stderr
    )


def test_keras_that_is_imported_after_the_door_runs_on_jax(run_python):
    program = (
        "import os; os.environ.pop('KERAS_BACKEND', None)\n"
        "from jaxvars import tf\n"
        "import keras\n"
        "layer = keras.layers.Dense(2)\n"
        "with tf.GradientTape() as tape:\n"
        "    loss = tf.reduce_sum(layer(tf.ones([3, 4])))\n"
        "print(tape.gradient(loss, layer.bias).numpy(), keras.config.backend())\n"
    )
    done = run_python("-c", program)
    assert done.stdout == "[3. 3.] jax\n", done.stderr


# ---------------------------------------------------------------- slopes at corners
@pytest.mark.parametrize(
    ("fn", "x", "expected"),
    [
        (tf.keras.activations.selu, 0.0, 1.0507009873554805),
        (tf.keras.activations.leaky_relu, 0.0, 0.2),
        (lambda x: tf.keras.activations.relu(x, max_value=1.0), 1.0, 1.0),
        (lambda x: tf.keras.activations.relu(x, max_value=6.0), 6.0, 0.0),
        (lambda x: tf.keras.regularizers.L1(1.0)(x), 0.0, 0.0),
        (lambda x: tf.keras.losses.KLDivergence()([1.0], x), 1.0, -1.0),
    ],
)
def test_slopes_of_activations_at_corners(fn, x, expected):
    given = tf.constant([x])
    with tf.GradientTape() as tape:
        tape.watch(given)
        y = fn(given)
    assert float(tape.gradient(y, given)[0]) == pytest.approx(expected)


def test_relu_keeps_nan():
    relu = tf.keras.activations.relu
    x = [float("nan"), -1.0, 2.0]
    for found in (relu(x), relu(x, max_value=6.0), relu(x, negative_slope=0.5)):
        assert np.isnan(found.numpy()).tolist() == [True, False, False]


@pytest.mark.parametrize("alpha", [0.25, [0.2, 0.3]])
def test_a_loss_has_the_type_of_the_predictions(alpha):
    loss = tf.keras.losses.CategoricalFocalCrossentropy(alpha=alpha)
    assert loss(tf.constant([[0.0, 1.0]]), tf.constant([[0.3, 0.7]])).dtype == tf.float32


def test_slots_are_made_where_the_first_update_is_in_a_loop_or_a_branch():
    def updated(wrap):
        w = tf.Variable([1.0, 2.0])
        adam, sgd = tf.keras.optimizers.Adam(0.1), tf.keras.optimizers.SGD(0.1, momentum=0.9)

        def program(n):
            for i in tf.range(n):
                adam.apply_gradients([(w * tf.cast(i + 1, tf.float32), w)])
            if n > 2:
                sgd.apply_gradients([(w * 2.0, w)])

        compiled = wrap(program)
        for n in (2, 3, 3):
            compiled(tf.constant(n))
        return w.numpy(), int(adam.iterations), int(sgd.iterations)

    found, expected = updated(tf.function), updated(lambda fn: fn)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    assert found[1:] == expected[1:] == (8, 2)


# ---------------------------------------------------------------- float16
@pytest.fixture
def float16():
    pytest.importorskip("keras")
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    yield
    tf.keras.mixed_precision.set_global_policy("float32")


def small_model():
    last = tf.keras.layers.Dense(1, dtype="float32")
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4, "tanh"), last])
    for i, v in enumerate(model.weights):
        v.assign((np.sin(np.arange(np.prod(v.shape)) * 0.7 + i) * 0.3).reshape(v.shape))
    return model


X = np.cos(np.arange(24) * 0.37).reshape(8, 3).astype("float32")
Y = np.sin(np.arange(8.0)).reshape(8, 1).astype("float32")


def test_a_model_of_float16_is_trained_with_the_losses_of_tensorflow(float16):
    for optimizer, losses in (
        ("adam", [0.3852, 0.3825, 0.3803, 0.3781]),
        (tf.keras.optimizers.SGD(0.1), [0.4205, 0.3883, 0.3583, 0.3288]),
    ):
        model = small_model()
        model.compile(optimizer, "mse")
        history = model.fit(X, Y, epochs=4, batch_size=4, shuffle=False, verbose=0).history
        np.testing.assert_allclose(history["loss"], losses, atol=2e-4)
        assert float(model.optimizer.dynamic_scale) == 2.0**15
        assert int(model.optimizer.step_counter) == int(model.optimizer.iterations) == 8
    made = tf.keras.optimizers.LossScaleOptimizer(tf.keras.optimizers.SGD(0.25), 8.0)
    twin = tf.keras.optimizers.deserialize(tf.keras.optimizers.serialize(made))
    assert twin.get_config() == made.get_config()
    assert float(twin.dynamic_scale) == 8.0
    assert float(twin.learning_rate) == 0.25


@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "function"])
def test_a_step_that_is_not_finite_is_skipped_and_halves_the_scale(float16, run):
    model = small_model()
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(
        tf.keras.optimizers.SGD(0.1), initial_scale=16.0, dynamic_growth_steps=2
    )

    @run
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(y - model(x, training=True)))
            scaled = optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    losses, scales = [], []
    for factor in (1, 1, np.inf, 1, 1, 1):
        losses.append(float(step(tf.constant(X * np.float32(factor)), tf.constant(Y))))
        scales.append(float(optimizer.dynamic_scale))
    expected = [0.3849, 0.3702, np.nan, 0.356, 0.3422, 0.3282]
    np.testing.assert_allclose(losses, expected, atol=2e-4)
    assert scales == [16, 32, 16, 16, 32, 32]
    assert int(optimizer.iterations) == 5


def test_an_optimizer_of_keras_itself_names_bfloat16(float16):
    import keras

    with pytest.raises(TypeError, match="mixed_bfloat16"):
        small_model().compile(keras.optimizers.SGD(), "mse")


# ---------------------------------------------------------------- shapes that differ
def test_weights_of_a_column_give_a_column_of_losses():
    y, p, w = np.array([0.0, 1, 0]), np.array([[0.5], [0.5], [1]]), np.array([[1.0], [2], [3]])
    reduction = tf.keras.losses.Reduction
    loss = tf.keras.losses.MeanAbsoluteError(reduction=reduction.NONE)
    reduction.validate(reduction.SUM)
    with pytest.raises(
        ValueError, match=r"Invalid Reduction Key: mean\. Expected keys are \"\('auto"
    ):
        reduction.validate("mean")
    assert loss(y, p, w).numpy().tolist() == [[0.5], [1.0], [3.0]]
    assert loss(y, p, w[:, 0]).numpy().tolist() == [0.5, 1.0, 3.0]
    assert float(tf.keras.losses.MeanAbsoluteError()(y, p, w)) == 1.5


def test_metrics_and_functions_of_hinges_broadcast_as_those_of_tensorflow():
    y, p = np.array([0, 1, 0], "float32"), np.array([[0.87866], [0.83556], [0.30087]], "float32")
    np.testing.assert_allclose(tf.keras.losses.hinge(y, p), [1.2929, 1.2785, 1.1003], 1e-3)
    for given in ((y, p), ()):
        metric = tf.keras.metrics.Hinge()
        metric.update_state(*given, **({} if given else {"y_true": y, "y_pred": p}))
        np.testing.assert_allclose(float(metric.result()), 1.2239, 1e-4)
    assert float(tf.keras.metrics.MeanAbsoluteError()(y, p)) < 0.5  # this one does not


# ---------------------------------------------------------------- datasets
def test_the_spec_of_a_dataset_changes_no_layer_and_no_variable():
    flip, count = tf.keras.layers.RandomFlip(seed=1), tf.Variable(0)
    images = np.arange(24.0, dtype="float32").reshape(2, 2, 2, 3)

    def augment(x):
        count.assign_add(1)
        return flip(x, training=True)

    dataset = tf.data.Dataset.from_tensor_slices(images).map(augment)
    before = np.asarray(flip.generator.state.value).tolist()
    assert dataset.element_spec == tf.TensorSpec([2, 2, 3], tf.float32)
    assert (np.asarray(flip.generator.state.value).tolist(), int(count)) == (before, 0)
    assert flip(images, training=True).shape == images.shape
    assert len(list(dataset)) == int(count) == 2


# ---------------------------------------------------------------- sparse tensors
def test_models_take_sparse_tensors():
    given = tf.keras.Input(shape=(4,), sparse=True)
    model = tf.keras.Model(given, tf.keras.layers.Dense(3)(given))
    sparse = tf.SparseTensor([(0, 0), (0, 2), (2, 3)], [1.0, 2.0, -1.0], (3, 4))
    dense = tf.sparse.to_dense(sparse)
    found = []
    for x in (sparse, dense):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x) ** 2)
        found.append([loss, *tape.gradient(loss, model.trainable_variables)])
    for one, other in zip(*found, strict=True):
        close(one, other)
    for call in (tf.function(model), lambda x: model.predict(x, verbose=0)):
        close(call(sparse), model(dense))
    assert isinstance(tf.keras.layers.Identity()(sparse), tf.SparseTensor)
    model.compile("sgd", "mse")
    pairs = [tf.data.Dataset.from_tensors((x, tf.ones((3, 3)))) for x in (sparse, dense)]
    close(*[model.evaluate(pair, verbose=0) for pair in pairs])

    class Widths(tf.keras.layers.Layer):
        def call(self, x):
            assert isinstance(x, tf.SparseTensor)
            return tf.sparse.reduce_sum(x, axis=1)

    assert Widths()(sparse).numpy().tolist() == [3.0, 0.0, -1.0]


# ---------------------------------------------------------------- callbacks
def fit_with(callbacks, metrics=(), optimizer="sgd"):
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer, "mse", metrics=[*metrics])
    x = np.ones((4, 2), np.float32)
    given = {"validation_data": (x, x[:, :1]), "epochs": 2, "verbose": 0}
    model.fit(x, x[:, :1], callbacks=callbacks, **given)
    return model


@pytest.mark.usefixtures("keras_on_jax")
@pytest.mark.parametrize(
    ("name", "options", "direction"),
    [
        ("BinaryCrossentropy", {"from_logits": True}, "less"),
        ("AUC", {"curve": "PR"}, "greater"),
        ("R2Score", {}, "greater"),
        ("MeanSquaredError", {}, "less"),
        ("TruePositives", {}, None),
    ],
)
def test_a_callback_knows_which_way_a_metric_is_better(name, options, direction):
    metric = getattr(tf.keras.metrics, name)(name="one of them", **options)
    callback = tf.keras.callbacks.EarlyStopping(monitor="val_one of them", patience=5)
    if direction is None:
        with pytest.raises(ValueError, match="Pass `mode='max'`"):
            fit_with([callback], [metric])
        return
    fit_with([callback], [metric])
    assert callback.monitor_op.__name__ == direction


@pytest.mark.usefixtures("keras_on_jax")
def test_a_callback_sees_and_sets_the_learning_rate():
    seen = []

    class Look(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(float(self.model.optimizer.learning_rate.numpy()))

    halved = tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    model = fit_with([halved, Look()], optimizer=tf.keras.optimizers.Adam(0.5))
    assert seen == [0.25, 0.125]
    assert isinstance(model.optimizer.learning_rate, tf.Variable)
    model.optimizer.learning_rate.assign(0.75)
    assert float(model.optimizer.learning_rate) == 0.75
    rate = tf.keras.optimizers.schedules.ExponentialDecay(0.5, 1, 0.5)
    fit_with([Look()], optimizer=tf.keras.optimizers.SGD(rate))
    assert seen[2:] == [0.25, 0.125]

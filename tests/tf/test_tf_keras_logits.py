"""Cross-entropies of what a sigmoid or softmax returned: they know the logits."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from jaxvars import tf
from jaxvars.tf.keras.adapter import logits

pytestmark = pytest.mark.usefixtures("keras_on_jax")

X = np.array([[40.0], [-40.0], [2.0]], np.float32)
ONE_HOT = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], np.float32)
LABELS = np.array([1, 0, 0])
Y = np.array([[0.0], [1.0], [1.0]], np.float32)


def softmax_layer() -> Any:
    layer = tf.keras.layers.Dense(2, activation="softmax", name="two")
    layer.build((None, 1))
    layer.set_weights([np.array([[1.0, -1.0]]), np.zeros(2)])
    return layer


def sigmoid_layer() -> Any:
    return tf.keras.layers.Dense(1, activation="sigmoid", kernel_initializer="ones")


def close(x: Any, y: Any) -> None:
    np.testing.assert_allclose(np.asarray(x), y, rtol=1e-4)


# The numbers are TensorFlow's.
@pytest.mark.parametrize(
    ("name", "options", "labels", "layer", "expected"),
    [
        ("BinaryCrossentropy", {}, Y, sigmoid_layer, 26.709),
        ("BinaryCrossentropy", {"label_smoothing": 0.1}, Y, sigmoid_layer, 25.409),
        ("BinaryCrossentropy", {"dtype": "float64"}, Y, sigmoid_layer, 10.7877),
        ("BinaryCrossentropy", {}, ONE_HOT, softmax_layer, 26.709),
        ("BinaryFocalCrossentropy", {}, Y, sigmoid_layer, 26.6673),
        ("CategoricalCrossentropy", {}, ONE_HOT, softmax_layer, 53.3394),
        ("CategoricalFocalCrossentropy", {}, ONE_HOT, softmax_layer, 2.6863),
        ("SparseCategoricalCrossentropy", {"from_logits": True}, LABELS, softmax_layer, 53.3394),
        ("SparseCategoricalCrossentropy", {"ignore_class": -1}, LABELS, softmax_layer, 10.7514),
    ],
)
def test_losses_of_known_logits(
    name: str, options: Any, labels: Any, layer: Any, expected: float
) -> None:
    loss, made = getattr(tf.keras.losses, name)(**options), layer()
    close(loss(labels, made(X)), expected)
    close(tf.function(lambda x: loss(labels, made(x)))(X), expected)


def test_a_saturated_probability_has_a_slope() -> None:
    for layer, labels, loss, slope in (
        (sigmoid_layer(), Y, tf.keras.losses.BinaryCrossentropy(), [[26.5872]]),
        (
            softmax_layer(),
            LABELS,
            tf.keras.losses.SparseCategoricalCrossentropy(),
            [[26.6547, -26.6547]],
        ),
    ):
        with tf.GradientTape() as tape:
            value = loss(labels, layer(tf.constant(X)))
        close(tape.gradient(value, layer.trainable_variables[0]), slope)


def test_only_what_the_activation_returned_has_logits() -> None:
    loss, layer = tf.keras.losses.CategoricalCrossentropy(), softmax_layer()
    scores = tf.concat([X, -X], 1)
    for found in (
        tf.keras.activations.softmax(scores),
        tf.keras.layers.Softmax()(scores),
        tf.keras.layers.Activation("softmax")(scores),
        tf.keras.layers.Activation(tf.keras.activations.softmax)(scores),
    ):
        close(loss(ONE_HOT, found), 53.3394)
    close(loss(ONE_HOT, tf.identity(layer(X)) * 1.0), 10.7514)
    smooth = tf.keras.losses.categorical_crossentropy(ONE_HOT, layer(X), True, 0.1)
    close(tf.reduce_mean(smooth), 50.7394)
    mask = tf.constant([[True, True]] * 3)
    close(loss(ONE_HOT, tf.keras.layers.Softmax()(scores, mask=mask)), 10.7514)
    assert layer.get_config()["activation"] == "softmax"
    close(tf.keras.losses.binary_crossentropy(Y, sigmoid_layer()(X)), [40.0, 40.0, 0.126928])
    del found
    gc.collect()
    assert not logits._KNOWN


@pytest.mark.parametrize(
    ("loss", "labels", "layer", "expected"),
    [
        ("binary_crossentropy", Y, sigmoid_layer, 26.709),
        ("binary_crossentropy", Y[:, 0], sigmoid_layer, 26.709),
        ("binary_focal_crossentropy", Y, sigmoid_layer, 26.6673),
        (tf.keras.losses.BinaryCrossentropy(), Y, sigmoid_layer, 26.709),
        (tf.keras.losses.sparse_categorical_crossentropy, LABELS, softmax_layer, 53.3394),
        (["categorical_crossentropy"], ONE_HOT, softmax_layer, 53.3394),
    ],
)
def test_compiled_losses(loss: Any, labels: Any, layer: Any, expected: float) -> None:
    model = tf.keras.Sequential([tf.keras.Input((1,)), layer()])
    model.compile("sgd", loss)
    close(model.evaluate(X, labels, verbose=0), expected)


@pytest.mark.filterwarnings("ignore:__array__ impl:DeprecationWarning")  # Keras's own variables
def test_metrics_and_loaded_models(tmp_path: Any) -> None:
    model = tf.keras.Sequential([tf.keras.Input((1,)), softmax_layer()])
    metric = tf.keras.metrics.CategoricalCrossentropy(name="q")
    model.compile("sgd", "categorical_crossentropy", metrics=["categorical_crossentropy", metric])
    model.save(tmp_path / "model.keras")
    for one in (model, tf.keras.models.load_model(tmp_path / "model.keras")):
        close(one.evaluate(X, ONE_HOT, verbose=0), [53.3394] * 3)


def test_a_loss_of_the_users_with_the_name_of_one_is_theirs() -> None:
    def categorical_crossentropy(y_true: Any, y_pred: Any) -> Any:
        return tf.reduce_sum(y_pred, axis=-1) + 1.0

    model = tf.keras.Sequential([tf.keras.Input((1,)), softmax_layer()])
    model.compile("sgd", categorical_crossentropy)
    close(model.evaluate(X, ONE_HOT, verbose=0), 2.0)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("BinaryCrossentropy", ONE_HOT),
        ("BinaryFocalCrossentropy", ONE_HOT),
        ("CategoricalCrossentropy", ONE_HOT),
        ("SparseCategoricalCrossentropy", LABELS),
    ],
)
def test_what_is_no_probability_is_cut_as_by_keras(name: str, labels: Any) -> None:
    import keras

    given = np.array([[-1.0, 3.0], [0.2, 0.8], [0.4, 0.5]], np.float32)
    wanted = getattr(keras.losses, name)()(labels, given)
    close(getattr(tf.keras.losses, name)()(labels, given), wanted)
    close(tf.function(getattr(tf.keras.losses, name)())(labels, tf.constant(given)), wanted)

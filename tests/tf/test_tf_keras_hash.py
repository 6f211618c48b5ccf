"""Hashing and HashedCrossing: the numbers are TensorFlow's."""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf

pytestmark = pytest.mark.usefixtures("keras_on_jax")

WORDS = [["A"], ["B"], ["longer string of words"], [""]]
NUMBERS = [[1], [-5], [7000], [0]]


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        (WORDS, {}, [[4], [3], [4], [3]]),
        (WORDS, {"mask_value": ""}, [[1], [1], [4], [0]]),
        (WORDS, {"salt": [3, 4]}, [[1], [1], [3], [1]]),
        (WORDS[:2], {"output_mode": "one_hot"}, [[0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]),
        (NUMBERS, {"mask_value": 0}, [[2], [1], [3], [0]]),
        (NUMBERS, {"salt": 133}, [[0], [0], [2], [0]]),
        ([["A", "B", "A"]], {"output_mode": "multi_hot"}, [[0, 0, 0, 1, 1]]),
    ],
)
def test_values_become_bins(values, options, expected):
    given, layer = tf.constant(values), tf.keras.layers.Hashing(5, **options)
    assert layer(given).numpy().tolist() == expected
    assert tf.function(layer)(given).numpy().tolist() == expected


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ((WORDS, NUMBERS), {}, [[544822], [120777], [491891], [644345]]),
        ((["A", "B"], [1, -5]), {}, [544822, 120777]),
        ((WORDS, NUMBERS, WORDS), {}, [[611291], [14960], [349444], [690041]]),
        ((WORDS[1:3], NUMBERS[1:3]), {"num_bins": 3, "output_mode": "one_hot"},
         [[0, 0, 1], [1, 0, 0]]),
    ],
)  # fmt: skip
def test_combinations_become_bins(values, options, expected):
    layer = tf.keras.layers.HashedCrossing(**{"num_bins": 1000003, **options})
    given = list(map(tf.constant, values))
    assert layer(given).numpy().tolist() == expected
    assert tf.function(lambda *x: layer(x))(*given).numpy().tolist() == expected


def test_rows_of_hashes():
    rows = tf.ragged.constant([["a", "b"], ["c"]])
    assert tf.keras.layers.Hashing(7)(rows).to_list() == [[5, 2], [5]]
    counts = tf.keras.layers.Hashing(7, output_mode="count")(rows)
    assert counts.dtype == tf.float32
    assert counts.numpy().tolist() == [[0, 0, 1, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1, 0]]
    one = tf.keras.layers.Hashing(7, dtype="int32")("a")
    assert (one.numpy(), one.dtype) == (5, tf.int32)


@pytest.mark.filterwarnings("ignore:__array__ impl:DeprecationWarning")  # Keras's own variables
def test_a_model_of_hashes_is_trained_saved_and_loaded(tmp_path):
    layers = tf.keras.layers
    words, numbers = tf.keras.Input((1,), dtype="string"), tf.keras.Input((1,), dtype="int64")
    hashed = layers.Hashing(8, output_mode="one_hot", salt=3)(words)
    crossed = layers.HashedCrossing(6, output_mode="one_hot")((words, numbers))
    both = layers.Concatenate()([hashed, crossed])
    model = tf.keras.Model([words, numbers], layers.Dense(1)(both))
    model.compile("sgd", "mse", weighted_metrics=["mae"])
    given, targets = [tf.constant(WORDS), tf.constant(NUMBERS)], np.ones((4, 1), np.float32)
    weighted = (given, targets, np.zeros(4))
    history = model.fit(given, targets, 2, 2, verbose=0, validation_data=weighted).history
    assert history["loss"][-1] < history["loss"][0]
    assert history["val_loss"] == [0.0, 0.0]
    found = model.predict(given, batch_size=3, verbose=0)
    model.save(tmp_path / "model.keras")
    again = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again(given), found, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda k: k.Hashing(0), "`num_bins` cannot be"),
        (lambda k: k.Hashing(3, output_mode="x"), "Unknown value for `output_mode`"),
        (lambda k: k.Hashing(3, salt=[1]), "can only be a tuple of size 2"),
        (lambda k: k.Hashing(3, dtype="float32"), "`dtype` should be an integer"),
        (lambda k: k.HashedCrossing(3)([["a"], [["b"]]]), "of equal shape"),
        (lambda k: k.HashedCrossing(3)([["a"], [1.0]]), "an integer or string dtype"),
    ],
)
def test_wrong_arguments(make, words):
    with pytest.raises(ValueError, match=words):
        make(tf.keras.layers)

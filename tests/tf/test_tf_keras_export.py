"""Models of `tf.keras` as programs: `tf.saved_model.save` and `Model.export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxvars.tf as tf
from jaxvars.errors import SavedError


def _is_served(model: Any, folder: Path, *inputs: Any) -> Any:
    """Save a model, and compare what is served with what the model returns; return the former."""
    tf.saved_model.save(model, folder)
    served = tf.saved_model.load(folder).signatures["serving_default"]
    given = dict(zip(served.structured_input_signature[1], inputs, strict=True))
    first, *more = inputs
    wanted = model([first, *more] if more else first)
    np.testing.assert_allclose(served(**given)["output_0"], wanted, rtol=1e-5)
    return served


def _inputs(shape: list[Any]) -> dict[str, Any]:
    return {"inputs": tf.TensorSpec(shape, name="inputs")}


def test_a_model_of_keras_is_served(tmp_path: Path) -> None:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [tf.keras.Input((3,)), layers.Dense(2), layers.BatchNormalization(), layers.Dropout(0.5)]
    )
    model.compile("sgd", "mse")
    model.fit(tf.ones((4, 3)), tf.ones((4, 2)), verbose=0)
    served = _is_served(model, tmp_path, tf.ones((5, 3)))
    assert served.structured_input_signature[1] == _inputs([None, 3])
    assert served.structured_outputs == {"output_0": tf.TensorSpec([None, 2], name="output_0")}
    a, b = tf.keras.Input((3,), name="a"), tf.keras.Input((2,), name="b")
    model = tf.keras.Model([a, b], layers.Concatenate()([a, b]))
    served = _is_served(model, tmp_path, tf.ones((5, 3)), tf.ones((5, 2)))
    assert list(served.structured_input_signature[1]) == ["inputs", "inputs_1"]
    model = tf.keras.Sequential(
        [tf.keras.Input(batch_shape=(2, 4, 5)), layers.LSTM(3, stateful=True)]
    )
    tf.saved_model.save(model, tmp_path)
    served = tf.saved_model.load(tmp_path).signatures["serving_default"]
    assert served.structured_outputs == {"output_0": tf.TensorSpec([2, 3], name="output_0")}


class Doubled(tf.keras.Model):
    """A model that runs for each row, if it is asked to."""

    def __init__(self, by_row: bool) -> None:
        super().__init__()
        self.dense, self.by_row = tf.keras.layers.Dense(2), by_row

    def call(self, x: Any) -> Any:
        if not self.by_row:
            return tf.reshape(self.dense(x), [tf.shape(x)[0], 2, 1])
        return tf.concat([self.dense(x[i : i + 1]) for i in range(x.shape[0])], 0)


def test_a_model_of_the_user_is_served_for_what_it_was_built_for(tmp_path: Path) -> None:
    tf.saved_model.save(Doubled(False), tmp_path)
    assert list(tf.saved_model.load(tmp_path).signatures) == []  # it was not built
    for by_row, count in ((False, None), (True, 4)):
        model = Doubled(by_row)
        model(tf.ones((4, 3)))
        served = _is_served(model, tmp_path, tf.ones((count or 7, 3)))
        assert served.structured_input_signature[1] == _inputs([count, 3])
        tf.saved_model.save(model, tmp_path, signatures={})
        assert list(tf.saved_model.load(tmp_path).signatures) == []
    words = tf.keras.layers.TextVectorization(vocabulary=["a", "b"])
    model = tf.keras.Sequential([tf.keras.Input((), dtype="string"), words])
    with pytest.raises(SavedError, match="works on strings") as caught:
        tf.saved_model.save(model, tmp_path)
    assert "With signatures={} it is saved, and nothing is served." in caught.value.__notes__


def test_a_model_of_keras_is_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(2), layers.BatchNormalization()])
    with pytest.raises(ValueError, match="has not yet been built"):
        model.export(tmp_path)
    x = tf.ones((4, 3))
    wanted = model(x)
    model.export(tmp_path)
    assert f"Saved artifact at '{tmp_path}'" in capsys.readouterr().out
    loaded = tf.saved_model.load(tmp_path)
    np.testing.assert_allclose(loaded.serve(x), wanted)
    assert list(loaded.signatures) == ["serve", "serving_default"]
    assert [len(loaded.variables), len(loaded.trainable_variables)] == [6, 4]
    assert len(loaded.non_trainable_variables) == 2
    model.export(tmp_path, verbose=False, input_signature=[tf.TensorSpec([8, 3], name="q")])
    served = tf.saved_model.load(tmp_path).signatures["serve"]
    assert served.structured_input_signature == ((), {"q": tf.TensorSpec([8, 3], name="q")})
    assert not capsys.readouterr().out
    with pytest.raises(TypeError, match="Options of other formats"):
        model.export(tmp_path, is_static=True)

"""Make `losses.json`: what TensorFlow's Keras losses are, and their gradients.

Run it where TensorFlow is installed, `python tests/goldens/make_loss_goldens.py`; the tests only
read the file. Keras and TensorFlow are imported inside the functions, as pytest imports all files
to look for doctests.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from draws import RNG, C, N, bits, classes, digits, distributions, numbers, one_hot, positive, short


def probabilities(*shape: int) -> Any:
    return RNG.uniform(0.05, 0.95, size=shape)


def signs(*shape: int) -> Any:
    return 2 * bits(*shape) - 1


# loss: options, makers of y_true and y_pred
CASES: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("MeanSquaredError", {}, numbers, numbers),
    ("MeanAbsoluteError", {}, numbers, numbers),
    ("MeanAbsolutePercentageError", {}, numbers, numbers),
    ("MeanSquaredLogarithmicError", {}, positive, positive),
    ("CosineSimilarity", {}, numbers, numbers),
    ("CosineSimilarity", {"axis": 0}, numbers, numbers),
    ("Huber", {}, numbers, numbers),
    ("Huber", {"delta": 0.3}, numbers, numbers),
    ("LogCosh", {}, numbers, numbers),
    ("Poisson", {}, positive, positive),
    ("BinaryCrossentropy", {}, bits, probabilities),
    ("BinaryCrossentropy", {"from_logits": True, "label_smoothing": 0.2}, bits, numbers),
    ("BinaryFocalCrossentropy", {"gamma": 1.5}, bits, probabilities),
    ("BinaryFocalCrossentropy", {"from_logits": True, "apply_class_balancing": True}, bits,
     numbers),
    ("CategoricalCrossentropy", {}, one_hot, distributions),
    ("CategoricalCrossentropy", {"label_smoothing": 0.3}, one_hot, distributions),
    ("CategoricalCrossentropy", {"from_logits": True}, distributions, numbers),
    ("CategoricalFocalCrossentropy", {}, one_hot, distributions),
    ("CategoricalFocalCrossentropy", {"from_logits": True, "alpha": 0.5, "gamma": 1.0}, one_hot,
     numbers),
    ("SparseCategoricalCrossentropy", {}, classes, distributions),
    ("SparseCategoricalCrossentropy", {"from_logits": True}, classes, numbers),
    ("SparseCategoricalCrossentropy", {"from_logits": True, "ignore_class": 1}, classes, numbers),
    ("KLDivergence", {}, distributions, distributions),
    ("Hinge", {}, bits, numbers),
    ("Hinge", {}, signs, numbers),
    ("SquaredHinge", {}, bits, numbers),
    ("CategoricalHinge", {}, one_hot, numbers),
]  # fmt: skip


def main() -> None:
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras
    import tensorflow as tf

    made = {
        "made_with": f"tensorflow {tf.__version__}, keras {keras.__version__}",
        "cases": [case(*row) for row in CASES for _ in range(3)],
        "functions": {name: function(*row) for name, *row in FUNCTIONS},
    }
    Path(__file__).with_name("losses.json").write_text(json.dumps(made) + "\n")


def case(name: str, options: dict[str, Any], make_true: Any, make_pred: Any) -> dict[str, Any]:
    """One loss: its value and gradient, for each reduction, without and with weights."""
    y_true, y_pred = short(make_true(N, C)), short(make_pred(N, C))
    values, _ = valued(name, {**options, "reduction": "none"}, y_true, y_pred, None)
    weight = short(RNG.uniform(0.2, 2.0, size=np.shape(values)[:1] or (N,)))
    results = []
    for reduction in ("sum_over_batch_size", "sum", "mean_with_sample_weight", "none"):
        for w in (None, weight):
            value, gradient = valued(name, {**options, "reduction": reduction}, y_true, y_pred, w)
            if reduction != "sum_over_batch_size":
                gradient = None
            results.append([reduction, w is not None, value, gradient])
    given = {"y_true": digits(y_true), "y_pred": digits(y_pred), "weight": digits(weight)}
    return {"loss": name, "options": options, **given, "results": results}


def valued(name: str, options: dict[str, Any], y_true: Any, y_pred: Any, weight: Any) -> Any:
    import keras
    import tensorflow as tf

    pred = tf.constant(y_pred)
    with tf.GradientTape() as tape:
        tape.watch(pred)
        value = getattr(keras.losses, name)(**options)(y_true, pred, sample_weight=weight)
        total = tf.reduce_sum(value)
    return digits(value.numpy()), digits(tape.gradient(total, pred).numpy())


# function: arguments, options
FUNCTIONS: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    ("a missing axis", "mean_squared_error", [[1.0, 2.0, 4.0], [[1.0], [1.0], [1.0]]], {}),
    ("no samples", "mean_squared_error", [np.zeros((0, 3)), np.zeros((0, 3))], {}),
    ("three axes", "mean_squared_error", [numbers(2, 3, 2), numbers(2, 3, 2)], {}),
    ("sure and wrong", "binary_crossentropy", [[[1.0, 0.0]], [[0.0, 1.0]]], {}),
    ("large logits", "binary_crossentropy", [[[1.0, 0.0]], [[-300.0, 300.0]]],
     {"from_logits": True}),
    ("one class alone", "categorical_crossentropy", [[[0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]]], {}),
    ("not normal", "categorical_crossentropy", [[[0.0, 1.0, 0.0]], [[3.0, 2.0, 1.0]]], {}),
    ("not normal, sparse", "sparse_categorical_crossentropy", [[1], [[0.3, 0.2, 0.1]]], {}),
    ("pixels", "sparse_categorical_crossentropy", [[[0, 2], [1, 1]], distributions(2, 2, 3)], {}),
    ("labels with an axis", "sparse_categorical_crossentropy", [[[0], [2]], distributions(2, 3)],
     {}),
    ("all ignored", "sparse_categorical_crossentropy", [[1, 1], distributions(2, 3)],
     {"ignore_class": 1}),
    ("zero vectors", "cosine_similarity", [[[0.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]], {}),
    ("zero labels", "mean_absolute_percentage_error", [[[0.0, 1.0]], [[0.5, 1.0]]], {}),
    ("zero counts", "poisson", [[[0.0, 3.0]], [[0.0, 2.0]]], {}),
    ("no overlap", "kl_divergence", [[[1.0, 0.0]], [[0.0, 1.0]]], {}),
    ("large errors", "log_cosh", [[[0.0, 0.0]], [[100.0, -100.0]]], {}),
    ("NaN", "mean_absolute_error", [[[0.0], [1.0]], [[float("nan")], [3.0]]], {}),
]  # fmt: skip


def function(name: str, arguments: list[Any], options: dict[str, Any]) -> dict[str, Any]:
    import keras

    y_true, y_pred = np.asarray(arguments[0]), np.asarray(arguments[1], np.float32)
    y_true = y_true.astype(np.float32) if y_true.dtype.kind == "f" else y_true
    value = getattr(keras.losses, name)(y_true, y_pred, **options).numpy()
    return {
        "function": name, "y_true": digits(y_true), "y_pred": digits(y_pred),
        "shapes": [y_true.shape, y_pred.shape], "options": options, "value": digits(value),
    }  # fmt: skip


if __name__ == "__main__":
    main()

"""Make `metrics.json`: what TensorFlow's Keras metrics say after each of some updates.

Run it where TensorFlow is installed, `python tests/goldens/make_metric_goldens.py`; the tests only
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
    return RNG.uniform(0.01, 0.99, size=shape)


def coarse(*shape: int) -> Any:
    """Scores with ties, some equal to thresholds."""
    return RNG.integers(0, 5, size=shape) / 4


def labels(*shape: int) -> Any:
    return RNG.integers(0, C, size=shape)


def all_one_class(*shape: int) -> Any:
    return np.ones(shape, np.int64)


SCORES = [
    ("MeanSquaredError", {}, numbers, numbers),
    ("RootMeanSquaredError", {}, numbers, numbers),
    ("MeanAbsoluteError", {}, numbers, numbers),
    ("MeanAbsolutePercentageError", {}, numbers, numbers),
    ("MeanSquaredLogarithmicError", {}, positive, positive),
    ("CosineSimilarity", {}, numbers, numbers),
    ("CosineSimilarity", {"axis": 1}, numbers, numbers),
    ("Poisson", {}, positive, positive),
    ("KLDivergence", {}, distributions, distributions),
    ("BinaryCrossentropy", {}, bits, probabilities),
    ("BinaryCrossentropy", {"from_logits": True, "label_smoothing": 0.1}, bits, numbers),
    ("CategoricalCrossentropy", {"label_smoothing": 0.1}, one_hot, distributions),
    ("CategoricalCrossentropy", {"from_logits": True}, one_hot, numbers),
    ("SparseCategoricalCrossentropy", {}, classes, distributions),
    ("SparseCategoricalCrossentropy", {"from_logits": True}, classes, numbers),
    ("Hinge", {}, bits, numbers),
    ("SquaredHinge", {}, bits, numbers),
    ("CategoricalHinge", {}, one_hot, numbers),
    ("Accuracy", {}, labels, labels),
    ("BinaryAccuracy", {}, bits, coarse),
    ("BinaryAccuracy", {"threshold": 0.25}, bits, coarse),
    ("CategoricalAccuracy", {}, one_hot, coarse),
    ("SparseCategoricalAccuracy", {}, classes, coarse),
    ("TopKCategoricalAccuracy", {"k": 2}, one_hot, coarse),
    ("SparseTopKCategoricalAccuracy", {"k": 2}, classes, coarse),
    ("SparseTopKCategoricalAccuracy", {"k": 1}, classes, numbers),
    ("SparseTopKCategoricalAccuracy", {"k": 2, "from_sorted_ids": True}, classes, labels),
    ("F1Score", {}, one_hot, coarse),
    ("F1Score", {"average": "macro", "threshold": 0.5}, bits, coarse),
]  # fmt: skip

THRESHOLDED = [
    ("TruePositives", {}, bits, coarse),
    ("FalsePositives", {"thresholds": [0.25, 0.75]}, bits, coarse),
    ("TrueNegatives", {"thresholds": [0.0, 0.25, 0.5, 0.75, 1.0]}, bits, coarse),
    ("FalseNegatives", {"thresholds": 0.3}, bits, probabilities),
    ("Precision", {}, bits, coarse),
    ("Precision", {"thresholds": [0.8, 0.2]}, bits, probabilities),
    ("Precision", {"top_k": 2}, bits, probabilities),
    ("Precision", {"top_k": 2, "thresholds": 0.4, "class_id": 1}, bits, coarse),
    ("Recall", {}, bits, coarse),
    ("Recall", {"class_id": 2, "thresholds": [0.1, 0.9]}, bits, probabilities),
    ("Recall", {"top_k": 1}, one_hot, distributions),
    ("AUC", {}, bits, probabilities),
    ("AUC", {"num_thresholds": 5, "summation_method": "majoring"}, bits, coarse),
    ("AUC", {"curve": "PR"}, bits, probabilities),
    ("AUC", {"curve": "PR", "summation_method": "minoring", "thresholds": [0.3, 0.1]}, bits,
     coarse),
    ("AUC", {"curve": "PRGAIN", "num_thresholds": 20}, bits, probabilities),
    ("AUC", {"multi_label": True, "num_labels": C}, bits, probabilities),
    ("AUC", {"multi_label": True, "label_weights": [1.0, 2.0, 0.5, 0.0], "curve": "PR"}, bits,
     coarse),
    ("AUC", {"label_weights": [1.0, 2.0, 0.5, 0.0], "from_logits": True}, bits, numbers),
    ("AUC", {}, all_one_class, probabilities),
    ("Precision", {}, all_one_class, probabilities),
]  # fmt: skip


def main() -> None:
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras
    import tensorflow as tf

    rows = [*SCORES, *THRESHOLDED]
    made = {
        "made_with": f"tensorflow {tf.__version__}, keras {keras.__version__}",
        "cases": [case(*row) for row in rows for _ in range(3)]
        + [sums(n) for n in ("Mean", "Sum")],
        "edges": {name: edge(*row) for name, *row in EDGES},
        "confusion_matrix": matrix(),
    }
    Path(__file__).with_name("metrics.json").write_text(json.dumps(made) + "\n")


def case(name: str, options: dict[str, Any], make_true: Any, make_pred: Any) -> dict[str, Any]:
    """A metric after three updates: without weights, and with them."""
    import keras

    updates = [(short(make_true(N, C)), short(make_pred(N, C))) for _ in range(3)]
    steps: list[Any] = [[digits(t), digits(p), None] for t, p in updates]
    for step in steps[1:]:
        step[2] = digits(short(RNG.uniform(0.2, 2.0, size=N)))
    metric = getattr(keras.metrics, name)(**options)
    return {"metric": name, "options": options, "steps": ran(metric, steps)}


def ran(metric: Any, steps: list[Any]) -> list[Any]:
    done = []
    for true, pred, weight in steps:
        w = None if weight is None else np.asarray(weight, np.float32)
        metric.update_state(arrays(true), arrays(pred), sample_weight=w)
        done.append([true, pred, weight, digits(np.asarray(metric.result()))])
    return done


def sums(name: str) -> dict[str, Any]:
    import keras

    metric = getattr(keras.metrics, name)()
    shapes = [((), None), ((3,), (3,)), ((3, 2), (3,)), ((3, 2), (3, 2)), ((3, 2), ()),
              ((3, 2, 2), (3, 1)), ((3, 1), (3,)), ((0,), None), ((2, 2), None)]  # fmt: skip
    steps = []
    for shape, weights in shapes:
        values = short(numbers(*shape))
        w = None if weights is None else short(RNG.uniform(0.2, 2.0, size=weights))
        metric.update_state(values, sample_weight=w)
        steps.append([digits(values), None if w is None else digits(w),
                      digits(metric.result().numpy())])  # fmt: skip
    return {"metric": name, "options": {}, "sums": steps}


NAN = float("nan")
EDGES: list[tuple[str, str, dict[str, Any], Any, Any, Any]] = [
    ("no samples", "MeanSquaredError", {}, np.zeros((0, 2)), np.zeros((0, 2)), None),
    ("no positives", "Precision", {}, [0, 0], [0.1, 0.2], None),
    ("no yes", "Recall", {}, [0, 0], [0.9, 0.2], None),
    ("no negatives", "AUC", {}, [1, 1], [0.9, 0.2], None),
    ("weights of zero", "Mean", {}, [1.0, 2.0], None, [0.0, 0.0]),
    ("NaN", "Mean", {}, [1.0, NAN], None, None),
    ("infinity", "Sum", {}, [1.0, float("inf")], None, None),
    ("ties in top-k", "SparseTopKCategoricalAccuracy", {"k": 2}, [0, 1, 2],
     [[0.5, 0.5, 0.5], [0.1, 0.1, 0.9], [0.4, 0.4, 0.1]], None),
    ("NaN in top-k", "SparseTopKCategoricalAccuracy", {"k": 1}, [0], [[NAN, 0.1, 0.2]], None),
    ("ties in argmax", "SparseCategoricalAccuracy", {}, [0, 1], [[0.5, 0.5], [0.5, 0.5]], None),
    ("labels with an axis", "SparseCategoricalAccuracy", {}, [[0], [1]], [[0.9, 0.1], [0.2, 0.8]],
     [1.0, 3.0]),
    ("sequences", "SparseCategoricalAccuracy", {}, [[0, 1], [1, 0]],
     [[[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]]], [[1.0, 2.0], [0.5, 0.0]]),
    ("a missing axis", "BinaryAccuracy", {}, [1, 0, 1], [[0.9], [0.8], [0.2]], None),
    ("nothing predicted", "F1Score", {"threshold": 0.5}, [[1.0, 0.0]], [[0.1, 0.2]], None),
    ("scores beyond 0 and 1", "AUC", {}, [0, 1, 1], [-3.0, 2.0, 0.5], None),
    ("zero and one", "AUC", {"curve": "PR"}, [0, 1, 1, 0], [0.0, 1.0, 0.0, 1.0], None),
]  # fmt: skip


def edge(name: str, options: dict[str, Any], true: Any, pred: Any, weight: Any) -> dict[str, Any]:
    import keras

    metric = getattr(keras.metrics, name)(**options)
    given = [arrays(true)] if pred is None else [arrays(true), arrays(pred)]
    w = None if weight is None else np.asarray(weight, np.float32)
    metric.update_state(*given, sample_weight=w)
    return {
        "metric": name, "options": options, "given": [digits(x) for x in given],
        "shapes": [x.shape for x in given], "weight": weight,
        "result": digits(np.asarray(metric.result())),
    }  # fmt: skip


def matrix() -> list[Any]:
    import tensorflow as tf

    true, pred, weight = labels(20), labels(20), RNG.integers(0, 4, size=20)
    plain = tf.math.confusion_matrix(true, pred)
    weighed = tf.math.confusion_matrix(true, pred, num_classes=5, weights=weight)
    return [digits(x) for x in (true, pred, weight, plain.numpy(), weighed.numpy())]


def arrays(x: Any) -> Any:
    x = np.asarray(x)
    return x.astype(np.float32) if x.dtype.kind == "f" else x


if __name__ == "__main__":
    main()

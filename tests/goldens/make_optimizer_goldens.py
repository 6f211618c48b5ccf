"""Make `optimizers.json`: what TensorFlow's Keras optimizers do to two variables.

Run it where TensorFlow is installed, `python tests/goldens/make_optimizer_goldens.py`; the tests
only read the file. Each case holds the values after each of the steps. TensorFlow is imported
inside the functions, as pytest imports all files to look for doctests.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

STEPS = 6
CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"learning_rate": 0.1}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"learning_rate": 0.1, "clipnorm": 0.5}),
    ("SGD", {"learning_rate": 0.1, "clipvalue": 0.3}),
    ("SGD", {"learning_rate": 0.1, "global_clipnorm": 0.5}),
    ("SGD", {"learning_rate": 0.1, "weight_decay": 0.05}),
    ("SGD", {"learning_rate": 0.1, "use_ema": True, "ema_momentum": 0.8,
             "ema_overwrite_frequency": 3}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "gradient_accumulation_steps": 2}),
    ("Adam", {"learning_rate": 0.05}),
    ("Adam", {"learning_rate": 0.05, "epsilon": 0.1, "beta_1": 0.8, "beta_2": 0.95}),
    ("Adam", {"learning_rate": 0.05, "amsgrad": True}),
    ("Adam", {"learning_rate": 0.05, "gradient_accumulation_steps": 3, "clipnorm": 0.5}),
    ("AdamW", {"learning_rate": 0.05}),
    ("AdamW", {"learning_rate": 0.05, "weight_decay": 0.1, "amsgrad": True}),
    ("RMSprop", {"learning_rate": 0.05}),
    ("RMSprop", {"learning_rate": 0.05, "momentum": 0.9, "epsilon": 0.01}),
    ("RMSprop", {"learning_rate": 0.05, "centered": True, "momentum": 0.5, "epsilon": 0.01}),
    ("Adagrad", {"learning_rate": 0.1}),
    ("Adadelta", {"learning_rate": 1.0, "epsilon": 0.01}),
    ("Adamax", {"learning_rate": 0.05}),
    ("Adamax", {"learning_rate": 0.05, "epsilon": 0.1}),
    ("Nadam", {"learning_rate": 0.05}),
    ("Nadam", {"learning_rate": 0.05, "epsilon": 0.1}),
    ("Ftrl", {"learning_rate": 0.1}),
    ("Ftrl", {"learning_rate": 0.1, "l1_regularization_strength": 0.05,
              "l2_regularization_strength": 0.1, "l2_shrinkage_regularization_strength": 0.01,
              "beta": 0.2, "learning_rate_power": -0.4, "initial_accumulator_value": 0.3}),
    ("Lion", {"learning_rate": 0.05}),
    ("Lamb", {"learning_rate": 0.05}),
    ("Lamb", {"learning_rate": 0.05, "weight_decay": 0.1}),
    ("Adafactor", {"learning_rate": 0.05}),
    ("Adafactor", {"learning_rate": 0.9, "clip_threshold": 0.5, "beta_2_decay": -0.6}),
]  # fmt: skip


def main() -> None:
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras
    import tensorflow as tf

    rng = np.random.default_rng(0)
    start = [rng.normal(size=shape).astype(np.float32) for shape in ((3, 2), (4,))]
    grads = [[rng.normal(size=x.shape).astype(np.float32) for x in start] for _ in range(STEPS)]
    made = {
        "made_with": f"tensorflow {tf.__version__}, keras {keras.__version__}",
        "start": [x.tolist() for x in start],
        "grads": [[g.tolist() for g in step] for step in grads],
        "cases": [case(name, kwargs, start, grads) for name, kwargs in CASES],
    }
    Path(__file__).with_name("optimizers.json").write_text(json.dumps(made) + "\n")


def case(name: str, kwargs: dict[str, Any], start: Any, grads: Any) -> dict[str, Any]:
    import keras

    variables = [keras.Variable(x, name=n) for x, n in zip(start, "wb", strict=True)]
    optimizer = getattr(keras.optimizers, name)(**kwargs)
    after = []
    for step in grads:
        optimizer.apply_gradients(zip(step, variables, strict=True))
        after.append([v.numpy().tolist() for v in variables])
    return {"optimizer": name, "arguments": kwargs, "after": after}


if __name__ == "__main__":
    main()

"""`tf.keras`: optimizers, losses, metrics, initializers of jaxvars; layers and models of Keras.

What training loops need is here, over jaxvars: `optimizers`, `losses`, `metrics`,
`initializers`, `activations`, `regularizers`, `constraints`, `utils`, `backend`. Everything else,
like `layers`, `Model`, `Sequential`, `Input`, `applications`, is that of Keras 3 on JAX, if it is
installed:

    pip install "jaxvars[keras]"

    model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))

Layers take and return Tensors (`_layers.py`); tapes, `tf.function`, optimizers and checkpoints see
Keras's variables (`_shared.py`); `fit` runs `train_step` as a `tf.function` (`_training.py`).

Differs from TensorFlow: layers draw their first weights, and dropout its masks, from JAX's values;
the shapes and types of Keras's variables are a tuple and a string.
"""

from __future__ import annotations

import importlib
from typing import Any

from jaxvars.tf.listing import lister

_HERE = (
    "activations",
    "backend",
    "constraints",
    "initializers",
    "losses",
    "metrics",
    "optimizers",
    "regularizers",
    "utils",
)
_CLASSES = {
    "Constraint": "constraints",
    "Initializer": "initializers",
    "Loss": "losses",
    "Metric": "metrics",
    "Optimizer": "optimizers",
    "Regularizer": "regularizers",
}


def __getattr__(name: str) -> Any:
    if name in _HERE:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _CLASSES:
        return getattr(importlib.import_module(f"{__name__}.{_CLASSES[name]}"), name)
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return importlib.import_module("jaxvars.tf.keras.spaces").find(name)
    except ImportError as error:
        raise AttributeError(f"tf.keras.{name}: {error}") from error


__dir__ = lister(__name__, {*_HERE, *_CLASSES})

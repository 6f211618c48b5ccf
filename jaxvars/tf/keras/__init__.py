"""`tf.keras`: optimizers, losses, metrics, initializers of jaxvars; layers and models of Keras.

What training loops need is here, over jaxvars: `optimizers`, `losses`, `metrics`,
`initializers`, `activations`, `regularizers`, `utils`, `backend`. Everything else, like `layers`,
`Model`, `Sequential`, `Input`, `applications`, is that of Keras 3 on JAX, if it is installed:

    pip install "jaxvars[keras]"

A model of Keras has variables of its own kind, which tapes do not see, and its results are arrays
of JAX. `tf.keras.adopt(model)` returns it with Tensors in and out, and with tf.Variables, which
tapes, `tf.function`, optimizers and checkpoints see (`_adopted.py`):

    net = tf.keras.adopt(tf.keras.Sequential([tf.keras.layers.Dense(10)]), tf.zeros([1, 4]))
    with tf.GradientTape() as tape:
        loss = loss_of(labels, net(images, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), ...))
"""

from __future__ import annotations

import importlib
from typing import Any

_HERE = (
    "activations",
    "backend",
    "initializers",
    "losses",
    "metrics",
    "optimizers",
    "regularizers",
    "utils",
)
_CLASSES = {
    "Initializer": "initializers",
    "Loss": "losses",
    "Metric": "metrics",
    "Optimizer": "optimizers",
    "Regularizer": "regularizers",
    "adopt": "_adopted",
}


def __getattr__(name: str) -> Any:
    if name in _HERE:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _CLASSES:
        return getattr(importlib.import_module(f"{__name__}.{_CLASSES[name]}"), name)
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return getattr(importlib.import_module(f"{__name__}._keras").keras(), name)
    except ImportError as error:
        raise AttributeError(f"tf.keras.{name}: {error}") from error

"""`tf.keras`: Keras 3 on JAX, of Tensors; optimizers, losses and metrics are those of jaxvars.

    pip install "jaxvars[keras]"

    model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))

`optimizers` (fused updates, slots that checkpoints find by their variables), `losses` (TensorFlow's
slopes where Keras on JAX has others, or NaN) and `metrics` (sums that count on after 2**24) do not
need Keras; all else does. Its layers, initializers, regularizers, constraints, schedules and
functions take and return Tensors (`layer_bridge.py`, `additions.py`); tapes, `tf.function`,
optimizers and checkpoints see its variables (`interop/keras.py`); `fit` runs `train_step` as a
`tf.function` (`training.py`), and eagerly on strings. `StringLookup`, `IntegerLookup`, `Hashing`,
`HashedCrossing`, `TextVectorization`, and the datasets of the strings, images and sounds in a
directory are written here (`lookup_layers.py`, `hash_layers.py`, `text_layer.py`,
`directories.py`): Keras's need TensorFlow. Its callback `TensorBoard` writes by `tf.summary`
(`tensorboard.py`).

Differs from TensorFlow: layers draw their first weights, and dropout its masks, from JAX's values;
the shapes and types of Keras's variables are a tuple and a string.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

from jaxvars.objects.interpreter import load
from jaxvars.tf.keras.spaces import SPACES, Space, find
from jaxvars.tf.listing import lister

_HERE = ("losses", "metrics", "optimizers")
_ALIASES = {"Constraint": "constraints.Constraint"}
_CLASSES = {"Loss": "losses", "Metric": "metrics", "Optimizer": "optimizers"}

sys.modules.update({f"{__name__}.{path}": Space(path) for path in SPACES})  # for `import`


def __getattr__(name: str) -> Any:
    if name in _HERE:
        return load(f"{__name__}.{name}")
    if name in _CLASSES:
        return getattr(load(f"{__name__}.{_CLASSES[name]}"), name)
    if name.startswith("_"):
        raise AttributeError(name)
    return find(_ALIASES.get(name, name))


_THERE = {*SPACES} - {"optimizers.schedules"} if importlib.util.find_spec("keras") else ()
__dir__ = lister(__name__, {*_HERE, *_CLASSES, *_THERE})

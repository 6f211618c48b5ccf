"""`tf.keras.callbacks.TensorBoard`: Keras's, which writes by `tf.summary`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from jaxvars.objects.interpreter import load
from jaxvars.tf.keras.adapter.keras import keras


@functools.cache
def tensorboard_class() -> Any:
    """Return the class of callbacks that write what TensorBoard shows."""
    base: Any = keras().callbacks.TensorBoard

    class TensorBoard(base):
        """Writes the losses and metrics of each epoch, and what else is asked for.

        See `keras.callbacks.TensorBoard`.

        Differs from TensorFlow: no graph is written, whatever `write_graph` is.
        """

        @property
        def summary(self) -> Any:
            """What writes."""
            return load("jaxvars.tf.summary")

        def _write_keras_model_summary(self) -> None:
            """Write nothing: graphs are not kept."""

        _write_keras_model_train_graph = _write_keras_model_summary

        def _collect_learning_rate(self, logs: dict[str, Any]) -> dict[str, Any]:
            optimizer = self.model.optimizer
            optimizer = getattr(optimizer, "inner_optimizer", optimizer)
            return {**logs, "learning_rate": float(np.asarray(optimizer.learning_rate))}

    TensorBoard.__qualname__, TensorBoard.__module__ = "TensorBoard", "keras.callbacks"
    return TensorBoard

"""Keras 3, on its JAX backend, if it is installed."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from typing import Any

from jaxvars.tf.keras.adapter.operators import box_variables

_CURE = 'pip install "jaxvars[keras]"'


@functools.cache
def keras() -> Any:
    """Return the `keras` package.

    Raises:
        ImportError: when it is not installed, or runs on another backend.
    """
    if importlib.util.find_spec("keras") is None:
        raise ImportError(
            "tf.keras has its own optimizers, losses and metrics; layers, models and all else are "
            f"those of Keras, which is not installed: {_CURE}"
        )
    made = importlib.import_module("keras")
    if made.config.backend() != "jax":
        raise ImportError(
            f"Keras runs on {made.config.backend()}, and jaxvars on JAX. Set the environment "
            "variable KERAS_BACKEND=jax before keras is imported, or import jaxvars.tf first."
        )
    box_variables()
    return made

"""What probabilities were computed from: cross-entropies take the logits where they are known.

So do TensorFlow's, since a probability that has become 0 or 1 knows its logit no more, and has no
slope: a network of inputs up to 255 would learn nothing.

Rules this file keeps:
- logits are known of the array that a sigmoid or softmax of `tf.keras` returned, for as long as it
  exists, and of no other: of a slice of it, or a product, there are none.
"""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Callable
from typing import Any

import jax

from jaxvars import losses
from jaxvars.losses.inputs import ARE_CUT
from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.typing import Array

CROSS_ENTROPIES = frozenset(
    "binary_crossentropy binary_focal_crossentropy categorical_crossentropy "  # noqa: SIM905 - shorter
    "sparse_categorical_crossentropy bce BCE".split()
)
"""The functions that take logits, by Keras's names."""

_KNOWN: dict[int, tuple[Any, Array]] = {}
"""By the id of an array: a weak reference, which removes this, and the logits."""


def remember(found: Any, logits: Any) -> Any:
    """Return probabilities; `logits_of` knows their logits from now on."""
    if isinstance(found, jax.Array):
        key = id(found)
        _KNOWN[key] = weakref.ref(found, lambda _: _KNOWN.pop(key, None)), logits
    return found


def logits_of(probabilities: Any) -> Array | None:
    """Return the logits of an array of probabilities; None if they are not known."""
    return _KNOWN.get(id(probabilities), (None, None))[1]


def sigmoid(x: Any) -> Any:
    """Return `1 / (1 + exp(-x))`, whose logits cross-entropies know."""
    return remember(keras().activations.sigmoid(x), x)


def softmax(x: Any, axis: int = -1) -> Any:
    """Return `exp(x)` by its sum along an axis, whose logits cross-entropies know."""
    return remember(keras().activations.softmax(x, axis=axis), x)


def keep_logits(layer: Any) -> None:
    """Have the activation of a layer of Keras's remember the logits."""
    for fn in (sigmoid, softmax):
        if vars(layer).get("activation") is getattr(keras().activations, fn.__name__):
            layer.activation = fn


def by_logits(core: Any) -> Any:
    """Return a function of arrays, or a class of one, that takes logits where they are known.

    Args:
        core: a function of the core's or of Keras's, or a loss or metric of the core that is one;
            what is not a cross-entropy of theirs is returned as it is.
    """
    is_class = isinstance(core, type)
    fn = getattr(core, "fn", getattr(core, "_fn", None)) if is_class else core
    if not isinstance(fn, types.FunctionType) or fn.__name__ not in CROSS_ENTROPIES:
        return core
    home = keras().losses if str(fn.__module__).startswith("keras.") else losses
    if getattr(home, fn.__name__, None) is not fn:  # one of the user's
        return core
    call = _by_logits(fn)
    return types.new_class(core.__name__, (core,), {"fn": call}) if is_class else call


def _by_logits(fn: Callable[..., Any]) -> Callable[..., Any]:
    of_logits = getattr(losses, fn.__name__)
    names = [*inspect.signature(fn).parameters][2:]

    @functools.wraps(fn)
    def call(y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        logits = logits_of(y_pred) if given.get("ignore_class") is None else None
        if logits is None:
            with ARE_CUT.set(True):  # as TensorFlow's
                return fn(y_true, y_pred, *args, **kwargs)
        return of_logits(y_true, logits, **{**given, "from_logits": True})

    return call

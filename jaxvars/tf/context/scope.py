"""Where code runs: eagerly, or while a `tf.function` is traced; and `tf.init_scope`.

Rules this file keeps:
- inside of a function the core's converted code returns Tensors (`tensors/wrapping.py`);
- what runs in `init_scope`, or is called back by a program, runs eagerly, whatever called it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, final

import jax

from jaxvars.core.frames import LOCAL, entered
from jaxvars.tensors.wrapping import ErrorVocabulary, TensorWrapping, boxing
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import wrap
from jaxvars.tracing import context


def _box(value: Any) -> Any:
    """Return a structure with Tensors; JAX's weak types become those of TensorFlow's numbers."""
    return wrap(jax.tree.map(_settled, value, is_leaf=lambda x: not _is_container(x)))


def _is_container(x: Any) -> bool:
    return isinstance(x, list | tuple | dict)


def _settled(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array) and getattr(leaf, "weak_type", False):
        kind = {"i": "int32", "f": "float32"}.get(leaf.dtype.kind)
        return jax.lax.convert_element_type(leaf, kind or leaf.dtype)
    return leaf


SEMANTICS = TensorWrapping(
    _box, to_array, ErrorVocabulary("tf.cast(x, ...)", "tf.zeros({shape}, tf.{dtype})")
)


@final
class _Place(threading.local):
    """How many functions are being traced in this thread, since the last `init_scope`."""

    depth = 0
    notes: dict[str, Any] | None = None


_PLACE = _Place()


def notes_of_trace() -> dict[str, Any]:
    """Return what has been noted for the function that is being traced, to be added to."""
    return {} if _PLACE.notes is None else _PLACE.notes


@contextmanager
def inside_function() -> Generator[None]:
    """Mark that a `tf.function` is being traced."""
    _PLACE.depth += 1
    if _PLACE.depth == 1:
        _PLACE.notes = {}
    try:
        with boxing(SEMANTICS):
            yield
    finally:
        _PLACE.depth -= 1


@contextmanager
def outside_functions() -> Generator[None]:
    """Mark that code runs eagerly."""
    depth, _PLACE.depth = _PLACE.depth, 0
    try:
        with boxing(None):
            yield
    finally:
        _PLACE.depth = depth


def executing_eagerly() -> bool:
    """Return whether operations run at once: not in a `tf.function`.

    >>> executing_eagerly()
    True
    """
    return not _PLACE.depth


def inside(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function as the body of a `tf.function`."""
    with inside_function():
        return fn(*args, **kwargs)


@contextmanager
def init_scope() -> Generator[None]:
    """Lift what runs inside out of the functions that are being traced: it runs now, eagerly.

    Values that are only known when the function runs cannot be used in it. Variables that are
    made in it are made as outside.

    >>> with init_scope():
    ...     executing_eagerly()
    True
    """
    with context.at(context.EVAL), entered(LOCAL.eager), outside_functions():
        yield

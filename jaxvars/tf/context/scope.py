"""Where code runs: eagerly, or while a `tf.function` is traced; and `tf.init_scope`.

Rules this file keeps:
- inside of a function the core's converted code returns Tensors (`tensors/wrapping.py`);
- what runs in `init_scope`, or is called back by a program, runs eagerly, whatever called it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

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


_NOTES: context.Scoped[dict[str, Any] | None] = context.Scoped(None)
"""What has been noted for the function that is being traced; None where none is."""


def notes_of_trace() -> dict[str, Any]:
    """Return what has been noted for the function that is being traced, to be added to."""
    return {} if _NOTES.value is None else _NOTES.value


@contextmanager
def inside_function() -> Generator[None]:
    """Mark that a `tf.function` is being traced."""
    with _NOTES.set({} if _NOTES.value is None else _NOTES.value), boxing(SEMANTICS):
        yield


@contextmanager
def outside_functions() -> Generator[None]:
    """Mark that code runs eagerly."""
    with _NOTES.set(None), boxing(None):
        yield


def executing_eagerly() -> bool:
    """Return whether operations run at once: not in a `tf.function`.

    >>> executing_eagerly()
    True
    """
    return _NOTES.value is None


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

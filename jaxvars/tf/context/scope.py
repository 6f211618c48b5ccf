"""Where code runs: eagerly, or while a `tf.function` is traced; `tf.init_scope`, `tf.name_scope`.

Rules this file keeps:
- inside of a function the core's converted code returns Tensors (`tensors/wrapping.py`);
- what runs in `init_scope`, or is called back by a program, runs eagerly, whatever called it;
- one name scope may be entered by several threads and coroutines, and again while it is open.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, final

import jax

from jaxvars.core.cells import NAMES
from jaxvars.core.frames import LOCAL, entered
from jaxvars.objects.key_order import map_leaves
from jaxvars.tensors.tensor import is_weak
from jaxvars.tensors.wrapping import ErrorVocabulary, TensorWrapping, boxing
from jaxvars.tf.attributes import getter
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.handles import lift
from jaxvars.tf.tensors.tensor import wrap
from jaxvars.tracing import context


def _box(value: Any) -> Any:
    """Return a structure with Tensors; JAX's weak types become those of TensorFlow's numbers."""
    return wrap(
        map_leaves(_drop_weak_type, value, is_leaf=lambda x: not isinstance(x, list | tuple | dict))
    )


def _drop_weak_type(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array) and is_weak(leaf):
        kind = {"i": "int32", "f": "float32"}.get(leaf.dtype.kind)
        return jax.lax.convert_element_type(leaf, kind or leaf.dtype)
    return leaf


SEMANTICS = TensorWrapping(
    _box,
    lambda x: lift(to_array(x)),
    ErrorVocabulary(
        "tf.cast(x, ...)",
        "tf.zeros({shape}, tf.{dtype})",
        "have the same number, type, and overall structure of return values, and the same shapes",
        "tf.reduce_any(x), tf.reduce_all(x), tf.size(x) > 0",
    ),
)


_NOTES: context.Scoped[dict[str, Any] | None] = context.Scoped(None)
"""What has been noted for the function that is being traced; None where none is."""


IN_DATASET: context.Scoped[bool] = context.Scoped(False)
"""Whether a function of a dataset runs, which TensorFlow would trace; here it runs eagerly."""


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


# ---------------------------------------------------------------- names
_OPEN: ContextVar[tuple[object, ...]] = ContextVar("open", default=())
"""What objects have opened in this thread or coroutine."""


class Reusable(ABC):
    """A context that may be entered again, also while it is open, and by several threads."""

    def __init__(self) -> None:
        self._opened: list[AbstractContextManager[Any]] = []

    @abstractmethod
    def _open(self) -> AbstractContextManager[Any]:
        """Return a context for one use."""

    def __enter__(self) -> Any:
        scope = self._open()
        value = scope.__enter__()
        self._opened.append(scope)
        _OPEN.set((*_OPEN.get(), scope))
        return value

    def __exit__(self, *error: Any) -> None:
        here = [scope for scope in self._opened if scope in _OPEN.get()]
        scope = (here or self._opened)[-1]
        self._opened.remove(scope)
        _OPEN.set(tuple(known for known in _OPEN.get() if known is not scope))
        scope.__exit__(*error)


@final
class name_scope(Reusable):  # noqa: N801 - TensorFlow's name
    """A context in which the names of new variables begin with `name/`.

    Args:
        name: the string; "" for no scope; ending with "/" for a whole scope.

    Raises:
        ValueError: when it is not a string.

    >>> from jaxvars import tf
    >>> with tf.name_scope("block") as scope:
    ...     tf.Variable(0.0, name="bias").name, scope
    ('block/bias:0', 'block/')

    Differs from TensorFlow: operations have no names.
    """

    name = getter("_name", "The string it was made with.")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        super().__init__()
        self._name = name

    @contextmanager
    def _open(self) -> Generator[str]:
        parts = tuple(filter(None, self._name.split("/")))
        is_whole = not self._name or self._name.endswith("/")
        with NAMES.change(lambda outer: parts if is_whole else (*outer, *parts)):
            yield whole_scope()


def whole_scope() -> str:
    """Return the scopes that are open, as one name that ends with "/"; "" for none."""
    return "".join(f"{word}/" for word in NAMES.value)

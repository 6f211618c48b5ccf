"""`Metric`: a number, or array, that sums up everything seen so far.

A metric is mutable state that is threaded through compiled steps, which is what Variables are
for. clu and metrax have metrics as immutable values that the caller merges; they come with flax, a
training loop and TensorBoard, and count in float32.

Rules this file keeps:
- a metric's state is Variables that begin at zero, sums of them Tallies, which count exactly
  beyond 2**24;
- updates are nothing that a tape differentiates, or takes note of;
- what is divided by nothing is 0.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable
from jaxvars.display.docstrings import complete, complete_by
from jaxvars.initializers import get as find_initializer
from jaxvars.losses.inputs import float_dtype
from jaxvars.metrics.sums import Tally, take_all
from jaxvars.modules.absent import advised
from jaxvars.modules.module import BORDER, Late, Module
from jaxvars.objects.traversal import walk
from jaxvars.random.seeds import Shape, as_shape
from jaxvars.tensors.dtypes import as_dtype
from jaxvars.tracing import context
from jaxvars.tracing.guards import ask
from jaxvars.typing import Array, DTypeLike

_DOCS = {
    "dtype": "of the result, a float; float32 when None.",
    "num_classes": "how many there are.",
    "ignore_class": "a label that does not count.",
    "axis": "the axis of the classes, for one-hot labels and scores.",
    "thresholds": "scores above mean yes: a number, or several; 0.5 when None.",
    "top_k": "the k best scores of each sample mean yes, if they are above the threshold, when "
    "there is one.",
    "class_id": "count this class alone, an index into the last axis.",
    "average": 'None for a score for each output; "micro" for one of all outputs together, "macro" '
    'for their mean, "weighted" for their mean by how often each is true.',
    "threshold": "scores above it mean yes; the largest of a sample when None.",
}
_UPDATE = {
    "sample_weight": "a number, or weights along the first axes.",
    "raise": "ShapeError: when the shapes do not go together.",
}

F = TypeVar("F", bound=Callable[..., None])


@advised("Metric")
class Metric(Module, ABC):
    """The base of metrics: subclass it and write `update_state` and `result`.

    Args:
        dtype: of the result, a float; float32 when None. Sums are kept in float32 or wider.
        name: what it is called; the class name in snake case when None.

    Raises:
        DtypeError: when the dtype is not a float.

    Example:
        >>> class Largest(Metric):
        ...     def __init__(self, name=None):
        ...         super().__init__(name=name)
        ...         self.largest = self.add_variable((), name="largest")
        ...
        ...     def update_state(self, values):
        ...         self.largest.assign(jnp.maximum(self.largest, jnp.max(jnp.asarray(values))))
        ...
        ...     def result(self):
        ...         return self.largest.value
        >>> metric = Largest()
        >>> metric.update_state([1.0, 5.0])
        >>> float(metric([2.0]))
        5.0

    Differs from TensorFlow:
        Variables are found in attributes: keep what `add_variable` returns. A narrow `dtype`
        narrows the result, not the sums.
    """

    _takes_any_name = True  # it is the key of a result

    def __init__(self, dtype: DTypeLike | None = None, name: str | None = None) -> None:
        super().__init__(name)
        self.dtype = float_dtype(dtype, type(self).__name__)

    # ------------------------------------------------------------ what to write
    @abstractmethod
    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Take something into account."""

    @abstractmethod
    def result(self) -> Array:
        """Return what comes of everything so far; changes nothing."""

    # ------------------------------------------------------------ what there is
    def __call__(self, *args: Any, **kwargs: Any) -> Array:
        """Update, and return the result of everything so far."""
        self.update_state(*args, **kwargs)
        return self.result()

    @context.restoring()
    def reset_state(self) -> None:
        """Forget everything: all variables become zero."""
        ask("A metric is reset")
        cells = [variable._cell for variable in self.variables]
        zeros = [jnp.zeros(cell.aval.shape, cell.aval.dtype) for cell in cells]
        LOCAL.frame.write_all(cells, zeros, held=[])

    def merge_state(self, metrics: Iterable[Metric]) -> None:
        """Take into account what other metrics have seen: their variables are added to these.

        A metric whose state is another thing, like the largest value, writes this method, too.

        Args:
            metrics: of the same class and options; they stay as they are.

        Raises:
            TypeError: when one is of another class.
            ValueError: when one has other options.

        >>> from jaxvars.metrics import Mean
        >>> here, there = Mean(), Mean()
        >>> here.update_state([1.0, 2.0])
        >>> there.update_state([6.0])
        >>> here.merge_state([there])
        >>> float(here.result())
        3.0
        """
        listed = list(metrics)
        for other in listed:
            self._check_alike(other)
        for other in listed:
            if other.variables:
                self._merge(other)

    def add_variable(
        self, shape: Shape = (), initializer: Any = "zeros", dtype: DTypeLike | None = None,
        name: str = "variable",
    ) -> Variable:  # fmt: skip
        """Make a Variable for the state; keep it in an attribute.

        Args:
            shape: integers.
            initializer: a name or function of shape and dtype; `reset_state` makes it zeros.
            dtype: that of the metric when None.
            name: what comes after the metric's name.
        """
        kind = self.dtype if dtype is None else as_dtype(dtype)
        make: Any = find_initializer(initializer)
        sizes = as_shape(shape)
        return Variable(lambda: make(sizes, kind), trainable=False, name=f"{self.name}/{name}")

    add_weight = add_variable  # Keras's other name

    def add_tally(self, name: str, shape: Shape = ()) -> Tally:
        """Make a sum for the state that counts exactly beyond 2**24; keep it in an attribute.

        Args:
            name: what comes after the metric's name.
            shape: integers.
        """
        return Tally(as_shape(shape), self.dtype, f"{self.name}/{name}")

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with, by name."""
        return {name: getattr(self, name) for name in arguments_of(type(self))}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Metric:
        """Return a new metric with these arguments."""
        return cls(**config)

    # ------------------------------------------------------------ helpers
    def _merge(self, other: Any) -> None:
        """Add another metric's sums to those of this one, in one step."""
        mine, theirs = _by_path(self, Tally), _by_path(other, Tally)
        changes = {t.parts._cell: t.taking(theirs[path].parts.value)[1] for path, t in mine.items()}
        given = _by_path(other, Variable)
        for path, variable in _by_path(self, Variable).items():
            changes.setdefault(variable._cell, functools.partial(jnp.add, given[path].value))
        LOCAL.frame.modify_all(*changes.items())

    def _check_alike(self, other: Any) -> None:
        if type(other) is not type(self):
            raise TypeError(
                f"A {type(self).__name__} merges others of its kind, not {type(other).__name__}."
            )
        mine, theirs = self.get_config(), other.get_config()
        pairs = {n: (mine.get(n), theirs.get(n)) for n in {**mine, **theirs} if n != "name"}
        unlike = {name: pair for name, pair in pairs.items() if not _is_same(*pair)}
        if unlike:
            here, there = map(list, zip(*unlike.values(), strict=True))
            raise ValueError(
                f"The {type(self).__name__} metrics have different {', '.join(unlike)}: "
                f"{here} here, {there} there."
            )

    @context.restoring()
    def _to_dtype(self, value: Array) -> Array:
        """Return a result in the metric's dtype."""
        return value.astype(self.dtype)

    def __rich_repr__(self) -> Iterator[Any]:
        for name in arguments_of(type(self)):
            yield name, getattr(self, name), None
        yield from self.named_variables.items()


class KnownMetric(Metric, ABC):
    """A metric of this package, whose docstring is completed by what many of them take."""

    def __init_subclass__(cls, **docs: str) -> None:
        super().__init_subclass__()
        name = BORDER.sub("_", cls.__name__).lower()
        named = f'what it is called; "{name}" when None.'
        if cls.__doc__:
            complete(cls, {**_DOCS, "name": named, **docs})


class LateCounts(KnownMetric, Late, ABC):
    """A metric of tallies, one for each kind of answer, which are made at the first update.

    Attributes:
        counts: the Tallies, by kind; none before they are made.
    """

    _kinds: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, kinds: tuple[str, ...] = ()) -> None:
        super().__init_subclass__()
        cls._kinds = kinds or cls._kinds

    def __init__(self, dtype: DTypeLike | None, name: str | None) -> None:
        super().__init__(dtype, name)
        self.counts: dict[str, Tally] = {}

    @property
    def is_built(self) -> bool:
        """Whether the state is there."""
        return bool(self.counts)

    def _make(self, shape: tuple[int, ...]) -> None:
        self.counts = {kind: self.add_tally(kind, shape) for kind in self._kinds}

    def _take(self, found: Iterable[Any]) -> None:
        take_all((self.counts[k], parts) for k, parts in zip(self._kinds, found, strict=True))

    def _parts(self) -> list[Array]:
        return [self.counts[kind].parts.value for kind in self._kinds]

    def _merge(self, other: LateCounts) -> None:
        if not self.counts:
            self.build((1, *other.counts[self._kinds[0]].shape)[-1])
        super()._merge(other)


def describe_update(y_true: str = "", y_pred: str = "", **docs: str) -> Callable[[F], F]:
    """Return a decorator that completes the docstring of `update_state`."""
    return complete_by({**_UPDATE, "y_true": y_true, "y_pred": y_pred, **docs})


def unseen(compute: Callable[[], Array]) -> Array:
    """Compute without a tape taking note of it, or differentiating it."""
    return context.unseen(lambda: jax.lax.stop_gradient(compute()), "A metric is updated")


def arguments_of(cls: type) -> list[str]:
    """Return the names of the arguments that a class is made with."""
    parameters = inspect.signature(cls).parameters.values()
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def _by_path(root: Any, kind: type) -> dict[tuple[str, ...], Any]:
    return dict(walk(root, kind))


def _is_same(a: Any, b: Any) -> bool:
    is_array = hasattr(a, "shape") or hasattr(b, "shape")
    return bool(np.array_equal(a, b)) if is_array else bool(a == b)

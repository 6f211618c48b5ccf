"""Strings in a program: each element is a number, of a string in a table that the call has.

Rules this file keeps:
- a call makes a table, and waits for its program; the table is gone with the last of its numbers
  outside of programs, which a tape keeps;
- a string has one number in a table, and a number of a table that is gone is never that of another;
- an array of them has a type of its own (a kind of JAX's keys): nothing computes with it, while
  what moves elements (loops, branches, gather, reshape) does;
- what reads or makes strings is called back, with the table's number: functions of their arguments
  alone, unless it is said that they have an order.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import jax
import jax.experimental
import numpy as np

from jaxvars.console.host_calls import drop_gradient
from jaxvars.core.checks import Raised
from jaxvars.core.frames import LOCAL, entered
from jaxvars.tensors.wrapping import boxing
from jaxvars.tf.errors import InvalidArgumentError, OpError
from jaxvars.tf.tensors.dtypes import HANDLE, IMPL
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

SCOPE: context.Scoped[Array | bool | None] = context.Scoped(False)
"""The number of the table, in the `tf.function` that is being traced; True if it can be given one.

False outside of one; None where strings must be known: they are constants of the program.
"""

SCOPE_SPEC = jax.ShapeDtypeStruct((2,), np.uint32)
"""What the number of a table is as an array."""

RECORDING: context.Scoped[Recording | None] = context.Scoped(None)
"""The strings of the call that a `tf.function` is being traced for, where sizes depend on them."""

_PARTS = b"0 0,0;0|0-0_0/0:0.0\t0\n0"
SAMPLES = [(b"", 0), (_PARTS, 1), (b"0", 1), (b"0" * 64, 1), (b"0" * 4096, 1)]
"""What functions are called with, for the shapes of their results: strings, and numbers."""

TABLES: dict[int, Table] = {}
"""The tables of the calls that are under way, or that a tape may repeat."""

_NUMBERS = itertools.count(1)

Step: TypeAlias = tuple[Callable[..., Any], list[int], Any]
"""A function that was called, which of the arrays so far it got, and the kinds of what it made."""


@final
class NeedsStrings(BaseException):
    """Signals that a function must be traced again, with a table of strings; is never seen."""


@final
class NeedsKnown(BaseException):
    """Signals that a function cannot be traced for all strings, for an error; is never seen."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


@final
class Table:
    """The strings of a call, each with a number.

    Attributes:
        frame: where the values of variables are that the call reads.
        assigned: the variables that it has assigned, and what, by the keys of their cells.
    """

    def __init__(self, number: int) -> None:
        self.number, self.frame = number, LOCAL.eager
        self.assigned: dict[int, tuple[Any, np.ndarray]] = {}
        self._key = (number >> 32, number & 0xFFFFFFFF)
        self._strings: list[bytes] = []
        self._places: dict[bytes, int] = {}
        self._lock = threading.Lock()

    def put(self, strings: np.ndarray) -> np.ndarray:
        """Return the numbers of strings."""
        made = np.empty((*strings.shape, 3), np.uint32)
        made[..., :2] = self._key
        with self._lock:
            for index, string in np.ndenumerate(strings):
                place = self._places.setdefault(string, len(self._strings))
                if place == len(self._strings):
                    self._strings.append(string)
                made[(*index, 2)] = place
        return made

    def take(self, numbers: np.ndarray) -> np.ndarray:
        """Return the strings that numbers stand for."""
        if (numbers[..., :2] != self._key).any():
            raise RuntimeError("A string of another call is in a program of tf.function.")
        made = np.empty(numbers.shape[:-1], object)
        for index in np.ndindex(made.shape):
            made[index] = self._strings[numbers[(*index, 2)]]
        return made


@final
class Sizes:
    """The sizes that strings have parts of: programs are traced for them, and run for no others.

    Attributes:
        is_taken: a call uses them: what it traces may depend on more sizes, so others may not.
    """

    def __init__(self, name: str) -> None:
        self.name, self.is_taken = name, False
        self.traces: list[list[Step]] = []

    def fit(self, strings: Sequence[np.ndarray]) -> bool:
        """Return whether the strings of a call have parts of these sizes."""
        return all(_fit(steps, list(strings)) for steps in self.traces)


def _fit(steps: list[Step], values: list[np.ndarray]) -> bool:
    try:
        for run, places, kinds in steps:
            made = run([values[i] for i in places])
            if _kinds(made) != kinds:
                return False
            values += made[0]
    except Exception:  # noqa: BLE001 - the call says what it is, of a program of its own
        return False
    return True


@final
class Recording:
    """What is known of strings while a function is traced for their sizes."""

    def __init__(self, strings: Sequence[np.ndarray]) -> None:
        self._values, self._count = list(strings), 0
        self._steps: list[Step] = []
        self.arrays: list[Array] = []
        self._is_started = False

    @property
    def steps(self) -> list[Step]:
        """The steps that sizes depend on, and those before them."""
        return self._steps[: self._count]

    def start(self, arrays: list[Array]) -> bool:
        """Begin with the strings that a function gets; return whether they are known."""
        if not self._is_started:
            self._is_started = True
            self.arrays += arrays
        return bool(arrays) and self.places_of(arrays) is not None

    def places_of(self, operands: Sequence[Array]) -> list[int] | None:
        """Return where the values of traced arrays are; None if one is not known."""
        places = {id(array): i for i, array in enumerate(self.arrays)}
        found = [places.get(id(x), -1) for x in operands]
        return None if -1 in found else found

    def add(self, run: Callable[..., Any], operands: list[Array], sample: Any) -> Any:
        """Return what a function returns for the strings of this call, if they are known."""
        places = self.places_of(operands)
        try:
            made = None if places is None else run([self._values[i] for i in places])
        except Exception:  # noqa: BLE001 - it is raised when the program runs
            made = None
        if places is None or made is None:
            return None
        self._steps.append((run, places, _kinds(made)))
        self._values += made[0]
        try:
            is_same = _kinds(sample()) == _kinds(made)
        except Exception:  # noqa: BLE001 - not for all strings
            is_same = False
        self._count = self._count if is_same else len(self._steps)
        return made


def new_table() -> tuple[Table, Array]:
    """Return a table, and its number as an array, with which it is dropped."""
    number = next(_NUMBERS)
    with context.at(context.EVAL):
        scope = jax.numpy.array([number >> 32, number & 0xFFFFFFFF], np.uint32)
    TABLES[number] = table = Table(number)
    weakref.finalize(scope, TABLES.pop, number, None).atexit = False
    return table, scope


def table_of(scope: Value) -> Table:
    """Return the table of a number."""
    high, low = np.asarray(scope).tolist()
    return TABLES[high << 32 | low]


# ---------------------------------------------------------------- arrays of numbers
def is_handles(array: Any) -> bool:
    """Return whether an array is of numbers that stand for strings."""
    dtype = getattr(array, "dtype", None)  # to compare one of NumPy takes long
    return type(dtype) is type(HANDLE) and dtype == HANDLE


def to_data(array: Array) -> Array:
    """Return what a callback is given for an array: numbers in place of strings."""
    return jax.random.key_data(array) if is_handles(array) else drop_gradient(array)


def from_data(data: Value) -> Array:
    """Return an array of strings in a program, of what a callback has returned."""
    return jax.random.wrap_key_data(data, impl=IMPL)


def taker(arrays: Sequence[Array]) -> Callable[[Sequence[Any]], list[Any]]:
    """Return what makes the arrays of the data that a callback is given for some."""
    strings = [is_handles(x) for x in arrays]

    def take(values: Sequence[Any]) -> list[Any]:
        pairs = zip(map(np.asarray, values), strings, strict=True)
        return [_find(x) if is_string else x for x, is_string in pairs]

    return take


def _find(numbers: np.ndarray) -> np.ndarray:
    """Return strings; empty ones for zeros, which an index out of range gives."""
    made = np.full(numbers.shape[:-1], b"", object)
    own = numbers[..., :2].any(axis=-1)
    if own.any():
        made[own] = table_of(numbers[own][0, :2]).take(numbers[own])
    return made


def require_scope() -> Array:
    """Return the number of the table; raise NeedsStrings for the function to be given one."""
    if SCOPE.value is True:
        raise NeedsStrings
    if SCOPE.value is False or SCOPE.value is None:
        raise InvalidArgumentError(
            None, None, "Strings that are known when a program runs are worked on in a "
            "tf.function only, not in one of jv.compile or jax.jit; and where an operation must "
            "know strings while the tf.function is traced, all must be known.",
        )  # fmt: skip
    return SCOPE.value


def lift(array: Array) -> Array:
    """Return strings that are known as strings in the program; other arrays as they are."""
    return array if not is_text(array) else stage(lambda: array)


def is_text(array: Any) -> bool:
    """Return whether an array is one of NumPy with strings."""
    return isinstance(array, np.ndarray) and array.dtype == object


# ---------------------------------------------------------------- callbacks
def on_strings(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls another one, or has it called when the program runs."""

    def run(*args: Any, **kwargs: Any) -> Any:
        is_staged = any(map(context.is_tracer, jax.tree.leaves((args, kwargs))))
        return stage(call, *args, **kwargs) if is_staged else call(*args, **kwargs)

    return run


def stage(
    call: Callable[..., Any], *args: Any, ordered: bool = False, like: Any = None, **kwargs: Any
) -> Any:
    """Have a function of strings and numbers called when the program runs.

    Args:
        call: returns strings or numbers, or a structure of them, whose shapes do not depend on
            values: for these it is called with a few samples.
        *args: what it takes, some of which is traced.
        ordered: whether it is called once, in the order of the program.
        like: an array like the result, if there are no samples.
        **kwargs: the same.
    """
    scope = require_scope()
    leaves, form = jax.tree.flatten((args, kwargs))
    traced = [i for i, x in enumerate(leaves) if context.is_tracer(x)]
    operands = [leaves[i] for i in traced]
    leaves = [None if context.is_tracer(x) else x for x in leaves]  # which are kept

    def run(values: Sequence[Any]) -> tuple[list[np.ndarray], Any]:
        found = dict(zip(traced, values, strict=True))
        some, others = form.unflatten(found.get(i, x) for i, x in enumerate(leaves))
        with context.at(context.EVAL), entered(LOCAL.eager), boxing(None):
            made, kind = jax.tree.flatten(call(*some, **others))
            return list(map(np.asarray, made)), kind

    name = getattr(call, "__name__", "this")
    sample = functools.partial(_sample, run, operands, name)
    if like is not None:
        sample = lambda: ([like], jax.tree.structure(0))  # noqa: E731 - as the other one
    recording = None if ordered or like is not None else RECORDING.value
    recorded = None if recording is None else recording.add(run, operands, sample)
    results, kind = recorded or sample()
    take, structs = taker(operands), [struct_of(x) for x in results]
    kinds = _kinds((results, kind))

    def on_host(scope: Array, *values: Array) -> list[np.ndarray]:
        try:
            made, form = run(take(values))
            if _kinds((made, form)) != kinds:
                raise _refuse_sizes(name, {"found": _kinds((made, form)), "expected": kinds})
            return [table_of(scope).put(x) if is_text(x) else x for x in made]
        except Exception as error:  # of which XLA would pass on the message alone
            Raised.error = raised = _translate(error)
            raise raised from error

    data = [scope, *map(to_data, operands)]
    if ordered:
        found = jax.experimental.io_callback(on_host, structs, *data, ordered=True)
    else:
        found = jax.pure_callback(on_host, structs, *data, vmap_method="sequential")
    pairs = zip(found, results, strict=True)
    made = [from_data(x) if is_text(old) else x for x, old in pairs]
    if recording and recorded:
        recording.arrays += made
    return kind.unflatten(made)


def struct_of(x: np.ndarray) -> Any:
    """Return what a callback returns for an array: numbers in place of strings."""
    return jax.ShapeDtypeStruct((*x.shape, 3), np.uint32) if is_text(x) else jax.typeof(x)


def _sample(run: Callable[..., Any], operands: Sequence[Array], name: str) -> Any:
    """Return results of the shapes that all have, and their structure."""
    found, error = [], None
    for string, number in SAMPLES if operands else SAMPLES[:1]:
        try:
            found.append(run([_filled(x, string, number) for x in operands]))
        except Exception as why:  # noqa: BLE001 - if all samples raise, it is told
            error = why
        if len(found) == 2:  # longer ones, of many elements, take memory
            break
    if not found:
        raise error or RuntimeError
    if any(_kinds(made) != _kinds(found[0]) for made in found):
        raise _refuse_sizes(name)
    return found[0]


def _refuse_sizes(name: str, sizes: Any = None) -> InvalidArgumentError:
    """Return the error of a function whose results have other sizes than its program is for."""
    return InvalidArgumentError(
        None, None,
        f"How many elements {name} gives depends on the strings, which are known when the "
        "tf.function runs: XLA compiles for fixed shapes. Call it outside of tf.function.", sizes,
    )  # fmt: skip


def _filled(x: Array, string: bytes, number: int) -> np.ndarray:
    return np.full(x.shape, string, object) if is_handles(x) else np.full(x.shape, number, x.dtype)


def _kinds(made: tuple[Sequence[np.ndarray], Any]) -> Any:
    """Return the types and structure of arrays; rows of other lengths are another structure."""
    return [(x.shape, x.dtype) for x in made[0]], made[1]


def _translate(error: Exception) -> Exception:
    """Return an error as TensorFlow's programs raise it."""
    error = getattr(error, "error", error)  # of what is refused by an operation
    if isinstance(error, OpError):
        return error
    return InvalidArgumentError(None, None, f"{type(error).__name__}: {error}")

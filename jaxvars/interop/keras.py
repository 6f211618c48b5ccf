"""Variables of Keras whose values are jaxvars': tapes, functions and checkpoints see them.

A variable of Keras keeps its value in an attribute. The first time that a tape or a function that
is traced meets one, a `jaxvars.Variable` is made of the value, and the variable of Keras becomes
one of a subclass that reads and writes that. It remains the same object: layers, models, optimizers
and savers of Keras go on using it, eagerly or in separate programs.

A tape, or a trace, meets the variables through Keras's own `StatelessScope`, which is called for
every value that is read and for every one that is assigned. That is public; what is used of Keras
besides is, here alone: `_value`, `_initializer`, `_shape`, `_dtype`, `_convert_to_tensor`,
`_deferred_initialize` and `_trainable` of variables, and `original_scope` of scopes.

Rules this file keeps:
- a variable has one value, that of its cell, and is trainable if its cell is;
- inside of a scope of Keras (the steps of `fit`, for example) the values are that scope's;
- a variable that is made inside of a tape or a function gets its first value eagerly;
- nothing here costs anything before Keras is imported.
"""

from __future__ import annotations

import copy
import functools
import importlib
import operator
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any, final

import numpy as np

from jaxvars.core.cells import is_trainable
from jaxvars.core.frames import LOCAL, outside
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.errors import InteropError
from jaxvars.interop.keras_paths import parts_of
from jaxvars.objects.traversal import PARTS, PROXIES
from jaxvars.tensors.array_like import BOXES
from jaxvars.tracebacks import package_of
from jaxvars.tracing import context
from jaxvars.typing import Array

_BINDING = threading.Lock()
_NOT_ON_JAX = (
    "Keras runs on {backend}, and jaxvars on JAX. Set the environment before keras is imported: "
    'import os; os.environ["KERAS_BACKEND"] = "jax"; and leave KERAS_NNX_ENABLED unset.'
)


@final
class _Made:
    """How variables become jaxvars'; `jaxvars.tf` has operators of its own, and a scope."""

    operators: Callable[[], tuple[type, ...]] = tuple
    run_eagerly: Callable[[Callable[[], Any]], Any] = staticmethod(outside)


MADE = _Made()


def adopt(thing: Any) -> Any:
    """Return an object of Keras, with all of its variables adopted; see `from_keras`."""
    keras = sys.modules.get("keras")
    if keras is None or not isinstance(
        thing, (*_holders(keras), keras.random.SeedGenerator, keras.Variable)
    ):
        raise InteropError(
            "from_keras takes a layer, model, optimizer, metric, seed generator or variable of "
            f"Keras 3, not {thing if isinstance(thing, type) else type(thing)!r}."
        )
    if not is_on_jax():
        raise InteropError(_NOT_ON_JAX.format(backend=_backend(keras)))
    watch()
    is_holder = isinstance(thing, _holders(keras))
    for variable in thing.variables if is_holder else [getattr(thing, "state", thing)]:
        shared(variable)
    return thing


def _holders(keras: Any) -> tuple[type, ...]:
    return keras.Layer, keras.metrics.Metric, keras.optimizers.Optimizer


def is_on_jax() -> bool:
    """Return whether Keras has been imported and runs on JAX, with variables of its own."""
    return _backend(sys.modules.get("keras")) == "jax"


def _backend(keras: Any) -> str:
    if not hasattr(keras, "StatelessScope"):  # or it is being imported
        return "no backend"
    on_nnx = getattr(keras.config, "is_nnx_enabled", bool)()
    return "flax's nnx" if on_nnx else keras.config.backend()


def shared(variable: Any) -> CoreVariable:
    """Return the variable of jaxvars that one of Keras has its value in; make it if need be."""
    if isinstance(variable, Adopted):
        return variable._cell_variable

    def make() -> CoreVariable:
        first = variable._value
        if first is None:  # made in a scope, which leaves the first value for later
            first = variable._initializer(variable._shape, dtype=variable._dtype)
            first = variable._convert_to_tensor(first, dtype=variable._dtype)
        return CoreVariable(first, trainable=variable.trainable, name=variable.path)

    made = MADE.run_eagerly(make)
    with _BINDING:  # another thread may have come first
        return variable._cell_variable if isinstance(variable, Adopted) else bind(variable, made)


def bind(variable: Any, core: CoreVariable) -> CoreVariable:
    """Have a variable of Keras take its value from one of jaxvars, and return that."""
    variable._cell_variable, variable._is_away = core, False
    operators = variable._operators = vars(variable).get("_operators") or MADE.operators()
    variable.__class__ = _class_of(operators)
    variable.__dict__.pop("_value", None)
    variable._initializer = None
    return core


class _Classes:
    """The classes below those of Keras."""

    def __init__(self) -> None:
        keras = importlib.import_module("keras")
        self.known = keras.Variable
        self.scope, self.probe = _scope_class(keras.StatelessScope), keras.StatelessScope
        self.layer = keras.Layer


@functools.cache
def _classes() -> _Classes:
    return _Classes()


# ---------------------------------------------------------------- variables
class Adopted:
    """A variable of Keras whose value is that of a variable of jaxvars."""

    _cell_variable: CoreVariable
    _is_away: bool
    value: Array

    @property
    def _value(self) -> Array | None:
        return None if self._is_away else _read(self._cell_variable)

    @_value.setter
    def _value(self, value: Array | None) -> None:
        self._is_away = value is None  # `fit` takes the values out of a model, and puts others
        if value is not None:
            self._cell_variable.assign(value)

    @property
    def trainable(self) -> bool:
        """Whether it is trained."""
        return self._cell_variable.trainable

    @trainable.setter
    def trainable(self, new: bool) -> None:
        if bool(new) != self.trainable:
            self._trainable = self._cell_variable.trainable = bool(new)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.value, dtype=dtype)

    def _deferred_initialize(self) -> None:
        """Do nothing: it has a value."""

    def __copy__(self) -> Any:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        core = copy.deepcopy(self._cell_variable, memo)
        return memo.setdefault(id(self), _restored(_plain(self), core))

    def __reduce__(self) -> Any:
        return _restored, (_plain(self), self._cell_variable)


@functools.cache
def _class_of(operators: tuple[type, ...]) -> Any:
    made = type("Variable", (*operators, Adopted, _classes().known), {"__module__": __name__})
    _register(made)
    return made


def _read(variable: CoreVariable) -> Array:
    frame = LOCAL.frame
    if frame is LOCAL.eager and context.is_staging() and _is_of_keras():
        with context.at(frame.trace):
            return frame.read(variable._cell)
    return frame.read(variable._cell)


def _is_of_keras() -> bool:
    """Return whether all that JAX is tracing is Keras's: a scan of an RNN, which runs at once.

    A function of the user's that JAX calls may have been traced before, and its value be stale;
    the steps of `fit` are kept by Keras.
    """
    frame, layer = sys._getframe(2), _classes().layer
    was_jax, was_own, is_operand = False, True, False
    while frame is not None:
        package = package_of(frame.f_globals)
        is_jax, is_own = package == "jax", package == "keras"
        is_operand = frame.f_code.co_name == "__jax_array__" or (is_operand and is_jax)
        if package != "contextlib" and not (is_operand and is_jax):
            is_own = is_own and "trainer" not in frame.f_code.co_filename
            if is_jax != was_jax and not (was_own if is_jax else is_own):
                return False
            was_jax, was_own = is_jax, is_own or _is_call(frame, layer)
        frame = frame.f_back
    return True


def _is_call(frame: FrameType, layer: type) -> bool:
    """Return whether a layer's `call` runs: a bound method, which is a new object each time."""
    return frame.f_code.co_name == "call" and isinstance(frame.f_locals.get("self"), layer)


def _plain(variable: Any) -> dict[str, Any]:
    """Return the attributes that a variable of Keras has by itself."""
    mine = ("_cell_variable", "_is_away")
    return {name: value for name, value in vars(variable).items() if name not in mine}


def _restored(attributes: dict[str, Any], core: CoreVariable) -> Any:
    made = object.__new__(_classes().known)
    vars(made).update(attributes, _dtype=str(core.dtype))
    bind(made, core)
    return made


# ---------------------------------------------------------------- scopes
def _scope_class(base: Any) -> Any:
    class Scope(base):
        """What Keras says to tapes, or to a trace."""

        def __init__(self, outer: Any) -> None:
            super().__init__(collect_losses=True)
            self.outer = self.original_scope = outer
            self.users: list[_Use] = []

        def get_current_value(self, variable: Any) -> Array:
            """Return the value; let the tapes see it."""
            given = None if self.outer is None else self.outer.get_current_value(variable)
            core = shared(variable)
            is_trainable(core._cell)  # layers look at a flag of Keras's own, set with this one
            if given is None:
                return _read(core)
            for tape in LOCAL.frame.observers:
                tape._saw(core._cell, given)
            return given

        def add_update(self, update: Any) -> None:
            """Assign a variable."""
            if self.outer is not None:
                self.outer.add_update(update)
            else:
                shared(update[0]).assign(update[1])

    return Scope


@final
class _Use:
    """The use of a scope by one tape or trace; the last to end closes it. See `around`."""

    def __init__(self, used: Any) -> None:
        self._used = used

    def __enter__(self) -> None:
        self._used.users.append(self)
        if len(self._used.users) == 1:
            self._used.__enter__()

    def __exit__(self, *error: object) -> None:
        if self in self._used.users:
            if len(self._used.users) == 1:
                MADE.run_eagerly(lambda: self._used.__exit__(*error))
            self._used.users.remove(self)


def scope() -> AbstractContextManager[Any]:
    """Return a context in which the variables of Keras are seen by tapes and functions."""
    if not is_on_jax():
        return nullcontext()
    watch()
    current = _current()
    return _Use(current if _is_ours(current) else _classes().scope(current))


def is_in_scope() -> bool:
    """Return whether the variables of Keras are seen by tapes or functions."""
    return _is_ours(_current())


def _is_ours(current: Any) -> bool:
    return isinstance(current, _classes().scope)


def _current() -> Any:
    """Return the scope of Keras that is open, or None."""
    probe = _classes().probe(initialize_variables=False)
    try:
        with probe:
            return probe.original_scope
    except BaseException:  # Ctrl-C: the probe must not stay
        if hasattr(probe, "original_scope"):
            probe.__exit__()
        raise


@functools.cache
def watch() -> None:
    """Have the variables of Keras found, wherever variables are looked for."""
    made, keras = _classes(), importlib.import_module("keras")
    _register(made.known)
    for kind in (*_holders(keras), keras.KerasTensor):
        PARTS[kind] = parts_of


def _register(kind: Any) -> None:
    BOXES[kind], PROXIES[kind] = operator.attrgetter("value"), shared

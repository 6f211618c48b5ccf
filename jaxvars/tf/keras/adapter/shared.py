"""Variables of Keras whose values are jaxvars': tapes, functions and checkpoints see them.

A variable of Keras keeps its value in an attribute. The first time that a tape or a function that
is traced meets one, a `jaxvars.Variable` is made of the value, and the variable of Keras becomes
one of a subclass that reads and writes that. It remains the same object: layers, models, optimizers
and savers of Keras go on using it, eagerly or in separate programs.

A tape, or a trace, meets the variables through Keras's own `StatelessScope`, which is called for
every value that is read and for every one that is assigned.

Rules this file keeps:
- a variable has one value, that of its cell;
- inside of a scope of Keras (the steps of `fit`, for example) the values are that scope's;
- a variable that is made inside of a tape or a function gets its first value eagerly;
- tapes go on watching the variables of a layer whose `trainable` is set to False, as in TensorFlow:
  that is about the lists of variables;
- nothing here costs anything before Keras is imported.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

import numpy as np

from jaxvars.core.frames import LOCAL
from jaxvars.core.traversal import PROXIES
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.tensors.array_like import BOXES
from jaxvars.tf.context.scope import init_scope
from jaxvars.tf.keras.adapter.semantics import PLACE
from jaxvars.tf.tensors.tensor import OPERATIONS
from jaxvars.tracing import context
from jaxvars.tracing.around import AROUND, RECORDING
from jaxvars.typing import Array


def shared(variable: Any) -> CoreVariable:
    """Return the variable of jaxvars that a variable of Keras has its value in; make it if need be.

    Args:
        variable: of Keras.
    """
    classes = _classes()
    if type(variable) is classes.variable:
        return variable._cell_variable
    with init_scope():
        first = variable._value
        if first is None:  # made in a scope, which leaves the first value for later
            first = variable._initializer(variable._shape, dtype=variable._dtype)
            first = variable._convert_to_tensor(first, dtype=variable._dtype)
        made = CoreVariable(first, trainable=variable.trainable, name=variable.path)
    return bind(variable, made)


def bind(variable: Any, core: CoreVariable) -> CoreVariable:
    """Have a variable of Keras take its value from one of jaxvars, and return that."""
    variable.__dict__.pop("_value", None)
    variable._initializer = None
    variable.__class__ = _classes().variable
    variable._cell_variable, variable._is_away = core, False
    return core


class _Classes:
    """The classes below those of Keras."""

    def __init__(self) -> None:
        keras = importlib.import_module("keras")
        self.known = keras.Variable
        self.variable = _variable_class(keras.Variable)
        self.scope, self.probe = _scope_class(keras.StatelessScope), keras.StatelessScope


@functools.cache
def _classes() -> _Classes:
    return _Classes()


# ---------------------------------------------------------------- variables
_TWO_SIDED = "add sub mul truediv floordiv mod pow matmul and or xor".split()  # noqa: SIM905 - shorter
_ONE_SIDED = "neg abs invert".split()  # noqa: SIM905
_COMPARED = "lt le gt ge eq ne getitem".split()  # noqa: SIM905


class Boxed:
    """The operators: they give Tensors in the user's code, arrays in Keras's."""

    __hash__ = object.__hash__


def _operator(name: str, method: str, *, swapped: bool = False) -> Callable[..., Any]:
    def operate(self: Any, *other: Any) -> Any:
        if PLACE.is_in_keras:
            return getattr(super(Boxed, self), method)(*other)
        return OPERATIONS[name](*other, self) if swapped else OPERATIONS[name](self, *other)

    operate.__name__ = method
    return operate


for _name in (*_TWO_SIDED, *_ONE_SIDED, *_COMPARED):
    setattr(Boxed, f"__{_name}__", _operator(_name, f"__{_name}__"))
for _name in _TWO_SIDED:
    setattr(Boxed, f"__r{_name}__", _operator(_name, f"__r{_name}__", swapped=True))


def _variable_class(base: Any) -> Any:
    class Variable(Boxed, base):
        """A variable of Keras whose value is that of a variable of jaxvars."""

        @property
        def _value(self) -> Array:
            return None if self._is_away else _read(self._cell_variable)

        @_value.setter
        def _value(self, value: Array) -> None:
            self._is_away = value is None  # `fit` takes the values out of a model, and puts others
            if value is not None:
                self._cell_variable.assign(value)

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            return np.array(self.value, dtype=dtype)

        def _deferred_initialize(self) -> None:
            """Do nothing: it has a value."""

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            return memo.setdefault(id(self), _copy(self))

        def __reduce__(self) -> Any:
            return _restored, ({**_plain(self), "_value": self._value},)

    Variable.__qualname__, Variable.__module__ = "Variable", __name__
    return Variable


def _read(variable: CoreVariable) -> Array:
    frame = LOCAL.frame
    if frame is LOCAL.eager and PLACE.is_run_at_once:
        with context.at(frame.trace):  # a scan of Keras's own: it runs now, and is not kept
            return frame.read(variable._cell)
    return frame.read(variable._cell)


def _plain(variable: Any) -> dict[str, Any]:
    """Return the attributes that a variable of Keras has by itself."""
    mine = ("_cell_variable", "_is_away")
    return {name: value for name, value in vars(variable).items() if name not in mine}


def _restored(attributes: dict[str, Any]) -> Any:
    made = object.__new__(_classes().known)
    vars(made).update(attributes)
    return made


def _copy(variable: Any) -> Any:
    return _restored({**_plain(variable), "_value": variable._value})


# ---------------------------------------------------------------- scopes
def _scope_class(base: Any) -> Any:
    class Scope(base):
        """What tapes, or a trace, are told by Keras."""

        def __init__(self, outer: Any) -> None:
            super().__init__(collect_losses=True)
            self.outer = self.original_scope = outer
            self.users: list[_Use] = []

        def get_current_value(self, variable: Any) -> Array:
            """Return the value; let the tapes see it."""
            given = None if self.outer is None else self.outer.get_current_value(variable)
            core = shared(variable)
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
                with init_scope():
                    self._used.__exit__(*error)
            self._used.users.remove(self)


def scope() -> AbstractContextManager[Any]:
    """Return a context in which the variables of Keras are seen by tapes and functions."""
    if "keras" not in sys.modules:
        return nullcontext()
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
    """Have all tapes and functions see the variables of Keras from now on."""
    made = _classes()
    AROUND.append(scope)
    RECORDING.append(scope)
    for kind in (made.known, made.variable):
        BOXES[kind] = _value_of
        PROXIES[kind] = shared


def _value_of(variable: Any) -> Array:
    return variable.value

"""What is known of an operation besides its inputs, found again when it runs again.

Eager code applies few operations many times. Of each, a recorder looks up what names it and what
depends on what, rather than to work that out at every call.

Rules this file keeps:
- an operation is found by the objects that are its parameters, which it keeps, or by what tells
  plain parameters apart; nothing else has its key, also once it is forgotten;
- programs are kept if they are small, closed over no array and run no code but JAX's own; other
  operations are made at each call.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, final

import jax

from jaxvars.objects.identity import Inexact, Same, exact, held
from jaxvars.tracing import jaxprs
from jaxvars.tracing.context import EVAL, place
from jaxvars.typing import Array

_KNOWN: OrderedDict[Hashable, Operation] = OrderedDict()
_KNOWN_LIMIT = 1024
_SMALL: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
FEW = 20  # operations of what JAX compiles itself, like `jnp.mean`
_OFTEN = 256  # calls after which a program of its own is worth the tens of milliseconds it costs
_SINCE = [0]  # calls since the last one was made, so that no step of a loop waits for all of them


@final
class Operation:
    """A primitive with its parameters: a pure function.

    Attributes:
        name: the primitive's name.
        function: takes the inputs, returns the list of outputs. That of a loop or branch takes
            other parameters, too.
        params: the primitive's parameters.
        paths: which results depend on which inputs, as far as that was asked.
    """

    def __init__(
        self, name: str, function: Callable[..., list[Array]], params: dict[str, Any]
    ) -> None:
        self.name = name
        self.function = function
        self.params = params
        self.paths: dict[Hashable, list[int]] = {}

    @functools.cached_property
    def key(self) -> Hashable:
        """What names the function: equal keys, same function of as many inputs."""
        params = tuple((name, _hashable(value)) for name, value in self.params.items())
        return self.name, params

    @functools.cached_property
    def inner(self) -> list[Any]:
        """The programs that the parameters hold."""
        return list(jaxprs.inner_jaxprs(self.shown_params))

    @property
    def shown_params(self) -> dict[str, Any]:
        """The parameters without functions that are made for one call."""
        return {k: v for k, v in self.params.items() if k != "subfuns"}

    @functools.cached_property
    def is_single(self) -> bool:
        """Whether it has to run as often as it stands there: it draws, or has effects."""
        return jaxprs.is_single(self.name, self.shown_params)

    @functools.cached_property
    def runs_users_code(self) -> bool:
        """Whether to differentiate it may run Python that reads what it likes."""
        return jaxprs.runs_users_code(self)

    @functools.cached_property
    def is_light(self) -> bool:
        """Whether it has few operations, and neither loops nor effects."""
        return all(jaxprs.is_light(program, FEW) for program in self.inner)

    @functools.cached_property
    def holds_arrays(self) -> bool:
        """Whether programs in it closed over arrays, which would be kept with it."""
        closed = any(getattr(value, "consts", ()) for value in self.params.values())
        return closed or any(map(jaxprs.hidden_arrays, self.inner))


def known(primitive: Any, params: dict[str, Any]) -> Operation | None:
    """Return the operation that a primitive is; None for one that is made at each call."""
    is_jit = primitive.name == "jit"
    key = (*params, *map(id, params.values())) if is_jit else _plain_key(primitive, params)
    try:
        found = _KNOWN[key]
        _KNOWN.move_to_end(key)
    except KeyError:
        if key is None or not (_is_small_call(params) if is_jit else _is_plain(params)):
            return None
        make = _Jitted if is_jit else bound
        found = Operation(primitive.name, make(primitive, params), params)
        found.key = new_key()
        _KNOWN[key] = found
        while len(_KNOWN) > _KNOWN_LIMIT:
            _KNOWN.popitem(last=False)
    return found


def _plain_key(primitive: Any, params: dict[str, Any]) -> Hashable:
    """Return what tells an operation by what its parameters hold, or None."""
    try:
        return (primitive, *[(name, exact(value)) for name, value in params.items()])
    except Inexact:
        return None


def _is_plain(params: dict[str, Any]) -> bool:
    """Return whether parameters are neither functions nor programs."""
    return not any(map(callable, params.values())) and not any(jaxprs.inner_jaxprs(params))


def is_small(closed: Any) -> bool:
    """Return whether a program is nothing but a few operations of JAX's own."""
    if closed not in _SMALL:
        _SMALL[closed] = (
            jaxprs.is_light(closed, FEW)
            and not closed.consts
            and not jaxprs.hidden_arrays(closed)
            and not jaxprs.has_users_rule(closed)
        )
    return _SMALL[closed]


def _is_small_call(params: dict[str, Any]) -> bool:
    """Return whether a jitted function is a small program and nothing else."""
    donates = any(params["donated_invars"])
    return is_small(params["jaxpr"]) and jaxprs.asks_nothing(params) and not donates


def bound(primitive: Any, params: dict[str, Any]) -> Callable[..., list[Array]]:
    """Return a primitive with its parameters, or others, as a function to a list of outputs."""
    if primitive.multiple_results:
        return lambda *xs, **other: primitive.bind(*xs, **(other or params))
    return lambda *xs: [primitive.bind(*xs, **params)]


@final
class _Jitted:
    """A small jitted function, for which JAX does not look among all that it knows every time."""

    __slots__ = ("_calls", "_compiled", "_params", "_primitive")

    def __init__(self, primitive: Any, params: dict[str, Any]) -> None:
        self._primitive = primitive
        self._params = params
        self._calls = 0
        self._compiled: Callable[..., list[Array]] | None = None

    def __call__(self, *inputs: Array) -> list[Array]:
        if place(None) is EVAL:
            if self._compiled is not None:
                return self._compiled(*inputs)
            self._calls += 1
            _SINCE[0] += 1
            if self._calls >= _OFTEN <= _SINCE[0]:
                _SINCE[0] = 0
                self._compiled = self._program()
        return self._primitive.bind(*inputs, **self._params)

    def _program(self) -> Callable[..., list[Array]]:
        def run(*inputs: Array) -> list[Array]:
            return jaxprs.evaluate(self._params["jaxpr"], inputs)

        run.__name__ = self._params["name"]
        return jax.jit(run)


# ---------------------------------------------------------------- keys
new_key: Callable[[], int] = itertools.count().__next__
"""Returns a key that no other operation has."""


def _hashable(value: Any) -> object:
    """Return what stands for a parameter in a key; a program or function is not kept alive."""
    if isinstance(value, tuple) and any(hasattr(part, "transforms") for part in value):
        return tuple(map(_function_key, value))
    if callable(value) or hasattr(value, "eqns"):
        return _reference(value)
    return exact(value, held)


def _function_key(wrapped: Any) -> object:
    """Return what names one of the functions of a custom-derivative call."""
    steps = tuple((rule, tuple(map(_key_of_inputs, given))) for rule, given in wrapped.transforms)
    return (_reference(wrapped.f), steps)


def _key_of_inputs(given: Any) -> object:
    if isinstance(given, tuple):  # arguments that are not differentiated, each in a wrapper
        return tuple(_hashable(getattr(part, "val", part)) for part in given)
    return _hashable(given)


def _reference(value: Any) -> object:
    if getattr(value, "__qualname__", "").startswith("transformation_with_aux"):
        return None  # JAX makes one for each call, to say what form the outputs had
    try:
        return weakref.ref(value)
    except TypeError:
        return Same(value)

"""What the core compiles for a `tf.function`: its body, with TensorFlow's arguments and results.

The arguments have names, and the body must not change them. What is kept of a trace keeps no object
alive.
"""

from __future__ import annotations

import functools
import inspect
import logging
import re
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import jax

from jaxvars.autograph.calls import as_written, convert_function, function_in, rewrite_function
from jaxvars.autograph.calls import call as converted_call
from jaxvars.autograph.operators.copies import Watched
from jaxvars.errors import line_of
from jaxvars.symbolic.propagate import NeedsSizes, follow_constants
from jaxvars.tf import nest
from jaxvars.tf.autograph import staged as _staged  # noqa: F401  # pyright: ignore[reportUnusedImport] - converted code calls it
from jaxvars.tf.context.scope import inside_function, notes_of_trace
from jaxvars.tf.errors import OperatorNotAllowedInGraphError
from jaxvars.tf.functions import strings
from jaxvars.tf.functions.arguments import convert_result, keep_dict_order, to_body
from jaxvars.tf.functions.gradients import NeedsTape, graph_tape
from jaxvars.tf.random.streams import NeedsStreams
from jaxvars.tf.tensors.components import Components, has_components, take_apart
from jaxvars.tf.tensors.convert import dtype_of
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable

ONLY_ONCE = (
    "tf.function only supports singleton tf.Variables created on the first call. Make sure the "
    "tf.Variable is only created once or created outside tf.function. "
)
NO_BOOL = (
    "Using a symbolic `tf.Tensor` as a Python `bool` is not allowed at {line}: its value is known "
    "when the function runs, not while it is traced. AutoGraph converts `if`, `while` and the "
    "like in functions whose source it sees, unless they are decorated with do_not_convert or "
    "@tf.function(autograph=False). There, use tf.cond, tf.while_loop or tf.where."
)

_NOT_CONVERTED = (
    "AutoGraph could not transform %s and will run it as it is: %s. An `if`, `while` or `for` on "
    "a tensor is not converted in it: define it in a file or a cell of a notebook, or use tf.cond "
    "and tf.while_loop. @tf.autograph.experimental.do_not_convert silences this."
)
_AS_WRITTEN: weakref.WeakSet[CodeType] = weakref.WeakSet()  # that was warned of

_KEPT = (TensorSpec, bool, int, float, complex, str, bytes, type(None))


def make_body(function: Any, *, has_strings: bool) -> Callable[..., Any]:
    """Return what the core compiles for a `Function`, which it does not keep alive."""
    fn, this = function.python_function, weakref.ref(function)
    names = names_of(function._signature)
    converts = function._options["autograph"]

    def program(*args: Any, **kwargs: Any) -> Any:
        scope, _ = kwargs.pop(strings.SCOPE_NAME, None), kwargs.pop(strings.SIZES_NAME, None)
        strings.refuse_strings(scope, (args, kwargs))
        tracing = strings.tracing(scope, (args, kwargs))
        args = tuple(map(to_body, args))
        kwargs = {key: to_body(value) for key, value in kwargs.items()}
        shown = names(len(args))
        check = guard_changes(shown, args, kwargs)
        made_for = this()
        met = set() if made_for is None else made_for._met
        taped = graph_tape(is_needed=NeedsTape in met)
        follow = follow_constants(is_needed=NeedsSizes in met)
        with inside_function(), taped, tracing, follow, Watched():
            name_arguments(shown, args, kwargs)
            try:
                result = (_convert(fn) if converts else fn)(*args, **kwargs)
            except jax.errors.TracerBoolConversionError as error:
                raise OperatorNotAllowedInGraphError(
                    NO_BOOL.format(line=line_of(error))
                ).with_traceback(error.__traceback__) from None
            made = keep_dict_order(take_apart(result, functools.partial(convert_result, fn)))
            if made_for is not None and "streams" in notes_of_trace():
                made_for._met.add(NeedsStreams)
                made_for._is_careful = True
        check(program.__name__)
        if (traced := this()) is not None:
            _note_trace(traced, args, kwargs, specs_of(made))
        return made if scope is None else (made, scope + 1)

    program.__name__ = function.__name__
    if function._signature is not None:
        signature = strings.core_signature(function._signature, has_strings=has_strings)
        setattr(program, "__signature__", signature)  # noqa: B010 - pyright knows no such name
        setattr(program, "__wrapped__", fn)  # noqa: B010 - whose code may be replaced in place
    return program


def _convert(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with its control flow converted; as it is where that cannot be done."""
    function, given = function_in(fn)
    if function is None or as_written(function) is not function:
        return lambda *args, **kwargs: converted_call(fn, args, kwargs, "")
    new = convert_function(function)
    if new is None:
        _warn_once(function)
    return fn if new is None else functools.partial(new, *given)


def _warn_once(function: FunctionType) -> None:
    """Warn that a function's control flow is Python's, at its first trace, as TensorFlow does."""
    if function.__code__ not in _AS_WRITTEN:
        _AS_WRITTEN.add(function.__code__)
        why = rewrite_function(function)
        logging.getLogger("tensorflow").warning(_NOT_CONVERTED, function.__qualname__, why)


# ---------------------------------------------------------------- arguments
def name_arguments(names: list[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Give tensors among the arguments the names of their parameters: x:0, x_1:0, ..."""
    _check_names(kwargs)
    for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
        if type(value) is Tensor or nest.is_nested(value):
            tensors = [part for part in nest.flatten(value) if type(part) is Tensor]
            for i, tensor in enumerate(tensors):
                tensor._name = f"{name}_{i}:0" if i else f"{name}:0"
                notes_of_trace().setdefault("arguments", []).append((tensor._array, tensor._name))


def _check_names(kwargs: Mapping[str, Any]) -> None:
    sane = {re.sub(r"[^a-zA-Z0-9_]", "_", name) for name in kwargs}
    if len(sane) < len(kwargs):
        raise ValueError(
            "Name collision after sanitization. Please rename tf.function input parameters. "
            f"Original: {sorted(kwargs)}, Sanitized: {sorted(sane)}"
        )


def guard_changes(
    names: list[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[[str], None]:
    """Return what raises ValueError if lists or dicts among the arguments have changed since."""
    given = [*zip(names, args, strict=False), *kwargs.items()]
    before = [(name, value, _copy(value)) for name, value in given if nest.is_nested(value)]

    def check(function: str) -> None:
        changed = [name for name, value, old in before if not _is_same(value, old)]
        if changed:
            raise ValueError(
                f"{function}({', '.join(name for name, _ in given)}) should not modify its Python "
                "input arguments. Modifying a copy is allowed. The following parameter(s) were "
                f"modified: {', '.join(changed)}"
            )

    return check


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(part) for key, part in value.items()}
    return list(map(_copy, nest._parts(value))) if nest.is_nested(value) else value


def _is_same(value: Any, old: Any) -> bool:
    if isinstance(value, Mapping):
        return list(value) == list(old) and all(_is_same(value[key], old[key]) for key in old)
    if not nest.is_nested(value):
        return value is old
    parts = nest._parts(value)
    return isinstance(old, list) and len(parts) == len(old) and all(map(_is_same, parts, old))


def names_of(signature: inspect.Signature | None) -> Callable[[int], list[str]]:
    """Return what gives the names of some positional arguments."""
    parameters = list(signature.parameters.values()) if signature is not None else []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    many = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return lambda count: [*plain, *(f"{many}_{i}" for i in range(count - len(plain)))][:count]


# ---------------------------------------------------------------- traces
def count_run(runs: Counter[int], args: tuple[Any, ...]) -> int:
    """Count a run of the body, under the object that a method belongs to; return its number."""
    is_method = args and hasattr(args[0], "__dict__") and not _is_of_tensors(args[0])
    number = id(args[0]) if is_method else 0
    if number and number not in runs:
        try:
            weakref.finalize(args[0], runs.pop, number, None).atexit = False
        except TypeError:
            number = 0
    runs[number] += 1
    return number


def _is_of_tensors(value: Any) -> bool:
    return isinstance(value, Variable) or has_components(value) or type(value) in nest.COMPOSITES


class Seen(NamedTuple):
    """A trace: what returns its arguments, and its result with specs for tensors."""

    own: Callable[[], Any]  # the object of a method, in a tuple
    args: Callable[[], Any]
    kwargs: Callable[[], Any]
    result: Any

    def given(self) -> tuple[Any, Any, Any] | None:
        """Return what it was traced for; None if something of that is gone."""
        try:
            return self.own(), self.args(), self.kwargs()
        except ReferenceError:
            return None


def _note_trace(function: Any, args: tuple[Any, ...], kwargs: Any, result: Any) -> None:
    own = args[:1] if count_run(function._runs, args) else ()
    rest = hold_weakly(args[len(own) :])
    function._seen.append(Seen(hold_weakly(own), rest, hold_weakly(kwargs), result))


def specs_of(result: Any) -> Any:
    """Return a result with specs for its tensors."""
    return nest.map_structure(
        lambda x: TensorSpec(x.shape, dtype_of(x)) if hasattr(x, "shape") else x, result
    )


def hold_weakly(value: Any) -> Callable[[], Any]:
    """Return what gives a structure with specs for its tensors."""
    held = take_apart(value, _hold_leaf)
    return lambda: _release(held)


def _release(held: Any) -> Any:
    if isinstance(held, Components):
        return held.object(_release)
    if nest.is_nested(held):
        return nest._like(held, list(map(_release, nest._parts(held))))
    return held()


def _hold_leaf(leaf: Any) -> Callable[[], Any]:
    if type(leaf) is Tensor:
        spec = TensorSpec(leaf.shape, leaf.dtype)
        return lambda: spec
    if isinstance(leaf, _KEPT):
        return lambda: leaf
    try:
        reference = weakref.ref(leaf)
    except TypeError:
        return lambda: leaf

    def there() -> Any:
        value = reference()
        if value is None:
            raise ReferenceError
        return value

    return there

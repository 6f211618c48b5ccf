"""`tf.function`: a Python function as one program, by TensorFlow's rules for signatures.

Rules this file keeps:
- a call whose arguments are Tensors costs little more than one of `jv.compile`;
- a method belongs to its object: each has its variables and traces.
"""

from __future__ import annotations

import copy
import functools
import inspect
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn, final

import jax

from jaxvars.autograph.calls import as_written, convert_function, function_in
from jaxvars.autograph.calls import call as converted_call
from jaxvars.compiler.decorator import compile as _compile
from jaxvars.compiler.eager_mode import EAGER
from jaxvars.core.frame import TRACING
from jaxvars.errors import CheckError, CompileError, CreationError, JaxvarsError, line_of
from jaxvars.tf import nest
from jaxvars.tf.attributes import getter
from jaxvars.tf.autograph import staged as _staged  # noqa: F401  # pyright: ignore[reportUnusedImport] - converted code calls it
from jaxvars.tf.context.scope import executing_eagerly, inside_function
from jaxvars.tf.errors import OperatorNotAllowedInGraphError
from jaxvars.tf.functions import strings
from jaxvars.tf.functions.arguments import convert_result, keep_dict_order, to_body, to_core
from jaxvars.tf.functions.concrete_function import ConcreteFunction
from jaxvars.tf.functions.gradients import NeedsTape, graph_tape, names_gradients
from jaxvars.tf.functions.signature import InputSignature, binding_error, signature_of
from jaxvars.tf.functions.traced_arguments import (
    NO_BOOL,
    ONLY_ONCE,
    Seen,
    count_run,
    guard_changes,
    hold_weakly,
    name_arguments,
    names_of,
    specs_of,
)  # fmt: skip
from jaxvars.tf.functions.unknown_sizes import OpenSizes
from jaxvars.tf.tensors.handles import NeedsStrings
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import ARRAYS, OUT_OF_SCOPE, Tensor, wrap


@final
class Function:
    """A compiled function; made by `tf.function`.

    Attributes:
        python_function: the function as it was written.
    """

    def __init__(
        self,
        python_function: Callable[..., Any],
        *,
        autograph: bool,
        input_signature: Any,
        reduce_retracing: bool = False,
    ) -> None:
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self.__name__ = getattr(python_function, "__name__", type(python_function).__name__)
        self._autograph = autograph
        self._signature = signature_of(python_function)
        self._specs = (
            None if input_signature is None else InputSignature(input_signature, self._signature)
        )
        self._reduce_retracing = reduce_retracing
        self._has_tape = names_gradients(python_function)
        self._runs: Counter[int] = Counter()  # of the body, by the object of a method
        self.clear_cache()

    def _make_program(self, has_strings: bool) -> Callable[..., Any]:
        """Return what the core compiles."""
        fn, this = self.python_function, weakref.ref(self)
        names = names_of(self._signature)
        converts = self._autograph

        def program(*args: Any, **kwargs: Any) -> Any:
            scope = kwargs.pop(strings.SCOPE_NAME, None)
            strings.refuse_strings(scope, (args, kwargs))
            args = tuple(map(to_body, args))
            kwargs = {key: to_body(value) for key, value in kwargs.items()}
            shown = names(len(args))
            check = guard_changes(shown, args, kwargs)
            made_for = this()
            has_tape = made_for is not None and made_for._has_tape
            tracing = strings.tracing(scope, (args, kwargs))
            with inside_function(), graph_tape(is_needed=has_tape), tracing:
                name_arguments(shown, args, kwargs)
                try:
                    result = (_convert(fn) if converts else fn)(*args, **kwargs)
                except jax.errors.TracerBoolConversionError as error:
                    raise OperatorNotAllowedInGraphError(
                        NO_BOOL.format(line=line_of(error))
                    ).with_traceback(error.__traceback__) from None
                made = keep_dict_order(
                    nest.map_structure(functools.partial(convert_result, fn), result)
                )
            check(program.__name__)
            if (function := this()) is not None:
                function._note(args, kwargs, specs_of(made))
            return made if scope is None else (made, scope + 1)

        program.__name__ = self.__name__
        if self._signature is not None:
            signature = strings.core_signature(self._signature, has_strings=has_strings)
            setattr(program, "__signature__", signature)  # noqa: B010 - pyright knows no such name
        return program

    def _note(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Take note of a trace."""
        own = args[:1] if count_run(self._runs, args) else ()
        rest = hold_weakly(args[len(own) :])
        self._seen.append(Seen(hold_weakly(own), rest, hold_weakly(kwargs), result))

    # ------------------------------------------------------------ calling
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it; the first call of a signature traces and compiles it.

        Raises:
            TypeError: when the arguments do not fit the function, or its `input_signature`.
            ValueError: when it creates variables on any call but its first.
        """
        if kwargs or self._is_careful or EAGER.on:
            return self._careful_call(args, kwargs)
        given = [x._array if type(x) is Tensor else to_core(x) for x in args]
        try:
            result = self._core(*given)
        except (JaxvarsError, TypeError) as error:
            self._explain(error, args, kwargs)
        except (NeedsTape, NeedsStrings) as need:
            return self._trace_again(need, self, args, kwargs)
        return Tensor(result) if type(result) in ARRAYS else wrap(result)

    def _careful_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if EAGER.on:
            return self.python_function(*args, **kwargs)
        new, named = (args, kwargs) if self._specs is None else self._specs.fit(args, kwargs)
        given = {key: to_core(value) for key, value in named.items()}
        try:
            return wrap(self._called(*map(to_core, new), **given))
        except (JaxvarsError, TypeError) as error:
            self._explain(error, args, kwargs)
        except (NeedsTape, NeedsStrings) as need:
            return self._trace_again(need, self, args, kwargs)

    def _trace_again(self, need: BaseException, call: Any, args: Any, kwargs: Any) -> Any:
        """Call once more, traced with a tape, or with a table of strings."""
        if isinstance(need, NeedsTape):
            self._has_tape = True
        elif self._has_strings and not executing_eagerly():
            raise need  # the function that calls it is traced again
        else:
            with TRACING:
                if not self._has_strings:
                    self._make_core(has_strings=True)
        return call(*args, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """Call what is compiled, with what it needs."""
        try:
            if self._has_strings:
                return strings.call_with_strings(self, args, kwargs)
            return self._core(*args, **kwargs)
        except (NeedsTape, NeedsStrings) as need:
            return self._trace_again(need, self._run, args, kwargs)

    def _explain(self, error: Exception, args: Any, kwargs: Any) -> NoReturn:
        """Raise what TensorFlow does."""
        if isinstance(error, CheckError):
            raise refused(str(error)) from None
        if isinstance(error, jax.errors.UnexpectedTracerError):
            raise TypeError(OUT_OF_SCOPE) from error
        if isinstance(error, CreationError):
            raise CreationError(ONLY_ONCE + str(error)).with_traceback(
                error.__traceback__
            ) from None
        may_not_fit = isinstance(error, CompileError) or not isinstance(error, JaxvarsError)
        if may_not_fit and self._signature is not None:
            try:
                self._signature.bind(*args, **kwargs)
            except TypeError as why:
                raise binding_error(str(why), args, kwargs, self._signature) from None
        raise error

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        """Return a compiled function of the copied function (a method of the copied object)."""
        return Function(
            copy.deepcopy(self.python_function, memo),
            autograph=self._autograph,
            input_signature=self.input_signature,
            reduce_retracing=self._reduce_retracing,
        )

    def __reduce__(self) -> Any:
        options = (self._autograph, self.input_signature, self._reduce_retracing)
        return _unpickled, (self.python_function, *options)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundFunction(self, instance)

    # ------------------------------------------------------------ looking inside
    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the program for one signature, traced if it has not been.

        Args:
            *args: arguments as for a call; `tf.TensorSpec` in place of tensors. None are needed
                where there is an `input_signature`.
            **kwargs: the same.

        Raises:
            TypeError: when the arguments do not fit the function.
        """
        return self._find_concrete((), args, kwargs)

    def _find_concrete(
        self, own: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> ConcreteFunction:
        """Return the concrete function, the same for the same signature; `own`: of a method."""
        bound = self._bind((*own, *args), kwargs)
        with TRACING:
            try:
                made = ConcreteFunction(self, bound, self._open, own)
            except (NeedsTape, NeedsStrings) as need:
                return self._trace_again(need, self._find_concrete, (own, args, kwargs), {})
            for known in self._list_requested(own):
                if known.is_for(made):
                    return known
            self._known.append(made)
        return made

    def _list_requested(self, own: tuple[Any, ...] = ()) -> list[ConcreteFunction]:
        """Return the concrete functions that were requested; those of one object, if given."""
        self._known = [made for made in self._known if made.is_alive]
        return [made for made in self._known if not own or made.belongs_to(own)]

    def _list_traces(self, own: tuple[Any, ...] = ()) -> list[ConcreteFunction]:
        """Return the concrete functions that there are, in the order of their traces."""
        found: list[ConcreteFunction] = []
        for seen in tuple(self._seen):
            given = seen.given()
            if given is not None and (not own or any(x is own[0] for x in given[0])):
                made = self._find_concrete(*given)
                made.learn(seen.result)
                found += [] if any(made is one for one in found) else [made]
        asked = self._list_requested(own)
        return [*found, *(made for made in asked if all(made is not one for one in found))]

    def clear_cache(self) -> None:
        """Forget all traces: the next call is a first one."""
        self._known: list[ConcreteFunction] = []
        self._seen: list[Seen] = []
        self._runs.clear()
        self._make_core(has_strings=False)

    def _make_core(self, *, has_strings: bool) -> None:
        self._open = OpenSizes(self.input_signature, reduces=self._reduce_retracing)
        core = _compile(self._make_program(has_strings))
        core.open_axes = self._open
        self._core = core  # before it is said how to call it: it is called so from other threads
        self._has_strings, self.must_know_strings = has_strings, False
        this: Any = weakref.proxy(self)
        self._called = functools.partial(Function._run, this) if has_strings else core
        self._is_careful = self._specs is not None or has_strings

    def _bind(self, args: Any, kwargs: Any) -> inspect.BoundArguments:
        if self._specs is not None:
            args, kwargs = self._specs.complete(args, kwargs)
        signature = self._signature or inspect.signature(lambda *args, **kwargs: None)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as why:
            raise binding_error(str(why), args, kwargs, signature) from None
        bound.apply_defaults()
        return bound

    def experimental_get_tracing_count(self) -> int:
        """Return how often the body has been traced."""
        return sum(self._runs.values())

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """Return the signatures that there are traces for, as a string."""
        return _format_signatures(self._list_traces(), verbose)

    def experimental_get_compiler_ir(self, *args: Any, **kwargs: Any) -> Callable[..., str]:
        """Return a function of a stage ("hlo", "optimized_hlo") that returns XLA's program."""
        made = self.get_concrete_function(*args, **kwargs)

        def text(stage: str = "hlo") -> str:
            lowered = made.core.lower()
            return lowered.compile().as_text() if "optimized" in stage else lowered.as_text()

        return text

    @property
    def input_signature(self) -> Any:
        """The specs that it was given."""
        return None if self._specs is None else self._specs.given

    name = getter("__name__", "What the function is called.")
    function_type = getter("_signature", "The parameters.")

    def __repr__(self) -> str:
        return f"<tf.function {getattr(self, '__qualname__', self.python_function)}>"


@final
class BoundFunction:
    """A compiled method of one object."""

    def __init__(self, function: Function, instance: Any) -> None:
        self._function = function
        self.__self__ = instance
        self.__wrapped__ = function.python_function
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        return self._function(self.__self__, *args, **kwargs)

    @property
    def python_function(self) -> Callable[..., Any]:
        """The method as it was written."""
        return functools.partial(self._function.python_function, self.__self__)

    input_signature = getter("_function.input_signature", "The specs that it was given.")

    name = getter("__name__", "What the method is called.")

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the program for one signature; see `Function.get_concrete_function`."""
        return self._function._find_concrete((self.__self__,), args, kwargs)

    def experimental_get_tracing_count(self) -> int:
        """Return how often the body has been traced for this object."""
        return self._function._runs[id(self.__self__)]

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """Return the signatures that there are traces for, as a string."""
        return _format_signatures(self._function._list_traces((self.__self__,)), verbose)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BoundFunction)
            and other._function is self._function
            and other.__self__ is self.__self__
        )

    def __hash__(self) -> int:
        return hash((id(self._function), id(self.__self__)))

    def __repr__(self) -> str:
        return f"<{self._function!r} of {type(self.__self__).__name__}>"


def _unpickled(fn: Callable[..., Any], autograph: bool, specs: Any, reduces: bool) -> Function:
    return Function(fn, autograph=autograph, input_signature=specs, reduce_retracing=reduces)


def _convert(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with its control flow converted; as it is where that cannot be done."""
    function, given = function_in(fn)
    if function is None or as_written(function) is not function:
        return lambda *args, **kwargs: converted_call(fn, args, kwargs, "")
    new = convert_function(function)
    return fn if new is None else functools.partial(new, *given)


def _format_signatures(traces: list[ConcreteFunction], verbose: bool) -> str:
    return "\n\n".join(made.pretty_printed_signature(verbose) for made in traces)


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Any:
    """Compile a Python function into one program.

    Python's `if`, `while`, `for` and the like on tensors become parts of the program; whatever
    else Python does in the body happens once for each trace.

    Args:
        func: the function; without it, a decorator is returned.
        input_signature: a `tf.TensorSpec`, or structure of them, for each argument.
        autograph: convert Python's control flow.
        jit_compile: accepted, and of no effect: everything is compiled by XLA.
        reduce_retracing: trace once for all sizes that have differed between calls.
        experimental_implements: accepted, and of no effect.
        experimental_autograph_options: accepted, and of no effect.
        experimental_attributes: accepted, and of no effect.
        experimental_relax_shapes: the old name of `reduce_retracing`.
        experimental_compile: accepted, and of no effect.
        experimental_follow_type_hints: accepted, and of no effect.

    Raises:
        TypeError: when `input_signature` is not a list, or does not fit the function.

    >>> from jaxvars import tf
    >>> @tf.function
    ... def relu(x):
    ...     if x > 0:
    ...         return x
    ...     return tf.zeros_like(x)
    >>> relu(tf.constant(-1.0))
    <tf.Tensor: shape=(), dtype=float32, numpy=0.0>

    Differs from TensorFlow: the body is traced once for all sizes where a size is None in
    `input_signature`, but XLA's program is made for each; a body that must know its sizes is traced
    for each, too, and so is one that is given a size of 0, or sizes of one place in a shape that
    are equal in one call and not in another. A body that must know strings (how many
    tf.strings.split gives, what is in a file) is traced for each tensor of them. An `if` on a
    tensor whose value is known while the function is traced (a constant, a shape) is decided then;
    1, 1.0 and True differ, and so do 0.0 and -0.0. A Variable as an argument counts as itself:
    another one, even of its shape and type, is traced for, and so is a dict whose keys are in
    another order. With `reduce_retracing` each rank has a trace; strings are traced for each size.
    A `graph` is a view of JAX's program: what XLA has no operation for has another type, variables
    are read by what uses them, and nothing is exported.
    """

    def decorate(func: Callable[..., Any]) -> Function:
        if not callable(func):
            raise TypeError(f"{func!r} is not a callable object")
        func = func.python_function if isinstance(func, Function | BoundFunction) else func
        return Function(
            func,
            autograph=autograph,
            input_signature=input_signature,
            reduce_retracing=bool(reduce_retracing or experimental_relax_shapes),
        )

    return decorate if func is None else decorate(func)

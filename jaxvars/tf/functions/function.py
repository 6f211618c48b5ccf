"""`tf.function`: a Python function as one program, by TensorFlow's rules for signatures.

Rules this file keeps:
- a call whose arguments are Tensors costs little more than one of `jv.compile`;
- a method belongs to its object: each has its variables and traces.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any, Concatenate, Generic, NoReturn, Self, final, overload

import jax

from jaxvars.compiler.decorator import compile as _compile
from jaxvars.compiler.function import EAGER
from jaxvars.core.frame import TRACING
from jaxvars.errors import CheckError, CompileError, CreationError, JaxvarsError
from jaxvars.objects.identity import told_by_equality
from jaxvars.objects.sending import Sent
from jaxvars.planning.plan import tracer_of
from jaxvars.programs.open_sizes import OpenCalls
from jaxvars.symbolic.propagate import NeedsSizes
from jaxvars.tf.attributes import getter
from jaxvars.tf.context.scope import IN_DATASET, executing_eagerly
from jaxvars.tf.functions import strings
from jaxvars.tf.functions.arguments import to_core
from jaxvars.tf.functions.body import ONLY_ONCE, Seen, make_body
from jaxvars.tf.functions.concrete_function import ConcreteFunction
from jaxvars.tf.functions.gradients import NeedsTape, names_gradients
from jaxvars.tf.functions.signature import InputSignature, binding_error, signature_of
from jaxvars.tf.functions.unknown_sizes import OpenSizes
from jaxvars.tf.random.streams import NeedsStreams, note_streams
from jaxvars.tf.tensors.handles import NeedsStrings
from jaxvars.tf.tensors.static import failed
from jaxvars.tf.tensors.tensor import ARRAYS, OUT_OF_SCOPE, Tensor, wrap
from jaxvars.typing import P, Q, R

NEEDS = (NeedsTape, NeedsStrings, NeedsSizes, NeedsStreams)
"""What a trace raises that needs more: it is traced again, by a function that has met this."""


@final
class Function(Sent, Generic[P, R]):
    """A compiled function; made by `tf.function`.

    Attributes:
        python_function: the function as it was written.
    """

    __slots__ = (
        "__dict__", "__weakref__", "_body", "_called", "_core", "_is_careful", "_known", "_met",
        "_open", "_runs", "_seen", "_signature", "_specs", "_strings",
    )  # fmt: skip

    def __init__(
        self, python_function: Callable[..., Any], *, autograph: bool, input_signature: Any,
        reduce_retracing: bool = False,
    ) -> None:  # fmt: skip
        self._begin(python_function, {
            "autograph": autograph, "input_signature": input_signature,
            "reduce_retracing": reduce_retracing,
        })  # fmt: skip

    def _begin(self, python_function: Callable[..., Any], options: dict[str, Any]) -> None:
        """Make all that belongs to a body, which nothing is traced of."""
        input_signature = options["input_signature"]
        functools.update_wrapper(self, python_function)
        self._stand_for(python_function, options)
        self.__name__ = getattr(python_function, "__name__", type(python_function).__name__)
        self._signature = signature_of(python_function)
        self._specs = (
            None if input_signature is None else InputSignature(input_signature, self._signature)
        )
        self._runs: Counter[int] = Counter()  # of the body, by the object of a method
        self._known: list[ConcreteFunction] = []
        self._seen: list[Seen] = []
        has_tape = names_gradients(python_function)
        self._met: set[type[BaseException]] = {NeedsTape} if has_tape else set()
        self._make_core(has_strings=False)

    # ------------------------------------------------------------ calling
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
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
        except NEEDS as need:
            return self._trace_again(need, self, args, kwargs)
        return Tensor(result) if type(result) in ARRAYS else wrap(result)  # pyright: ignore[reportReturnType] - as annotated

    def _careful_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if EAGER.on:
            return self.python_function(*args, **kwargs)
        if NeedsStreams in self._met:
            if executing_eagerly() and IN_DATASET.value:
                return self.python_function(*args, **kwargs)
            note_streams()
        new, named = (args, kwargs) if self._specs is None else self._specs.fit(args, kwargs)
        given = {key: to_core(value) for key, value in named.items()}
        try:
            return wrap(self._called(*map(to_core, new), **given))
        except (JaxvarsError, TypeError) as error:
            self._explain(error, args, kwargs)
        except NEEDS as need:
            return self._trace_again(need, self, args, kwargs)

    def _trace_again(self, need: BaseException, call: Any, args: Any, kwargs: Any) -> Any:
        """Call once more, traced with what was needed."""
        with TRACING:
            if isinstance(need, NeedsStrings):
                if NeedsStrings not in self._met:
                    self._make_core(has_strings=True)
                elif not executing_eagerly():
                    raise need  # the function that calls it is traced again
            self._met.add(type(need))  # what is called by other threads is there already
            self._is_careful |= isinstance(need, NeedsStreams)
            if isinstance(need, NeedsStreams) and not executing_eagerly():
                raise need
        return call(*args, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """Call what is compiled, with what it needs."""
        try:
            if NeedsStrings in self._met:
                return strings.call_with_strings(self, args, kwargs)
            return self._core(*args, **kwargs)
        except NEEDS as need:
            return self._trace_again(need, self._run, args, kwargs)

    def _explain(self, error: Exception, args: Any, kwargs: Any) -> NoReturn:
        """Raise what TensorFlow does."""
        if isinstance(error, CheckError):
            raise failed(error) from None
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

    def _decorate(  # pyright: ignore[reportUnusedFunction] - libraries of modules call it
        self, decorator: Callable[..., Any]
    ) -> None:
        """Put a decorator around the body, in place: what libraries of modules do to methods."""
        if self._core.trace_count:
            raise ValueError("Functions cannot be decorated after they have been traced.")
        self._begin(decorator(self.python_function), self._options)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: Function[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> BoundFunction[Q, R]: ...
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
            except NEEDS as need:
                return self._trace_again(need, self._find_concrete, (own, args, kwargs), {})
            for known in self._list_requested(own):
                if known.is_for(made):
                    return known
            self._known.append(made)
        return made

    def _show_ir(self, own: tuple[Any, ...], args: Any, kwargs: Any) -> Callable[..., str]:
        made, bound = self._find_concrete(own, args, kwargs), self._bind((*own, *args), kwargs)
        core = made.core_for(bound)

        def show(stage: str = "hlo") -> str:
            lowered = core.lower()
            return lowered.compile().as_text() if "optimized" in stage else lowered.as_text()

        return show

    def _trace_planned(self, own: tuple[Any, ...], args: Any, kwargs: Any) -> Any:
        """Return the concrete function of jaxvars for the tensors of a call, of known sizes.

        Raises:
            CompileError: when they are not.
        """
        made = self._find_concrete(own, args, kwargs)
        if made._is_open:
            raise CompileError(
                f"jv.plan of {self.__name__} takes tensors of known sizes, and some of "
                f"{made._specs()} are None: give them, as in tf.TensorSpec((32, 64))."
            )
        return made.core_for(self._bind((*own, *args), kwargs))

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

    def _make_core(self, *, has_strings: bool) -> None:
        self._open = OpenSizes(self.input_signature, reduces=self._options["reduce_retracing"])
        self._body = make_body(self, has_strings=has_strings)
        core = _compile(self._body)
        core.source = OpenCalls(self._open)
        self._core = core  # before it is said how to call it: it is called so from other threads
        self._strings = strings.Programs()
        this: Any = weakref.proxy(self)
        self._called = functools.partial(Function._run, this) if has_strings else core
        self._is_careful = self._specs is not None or has_strings or NeedsStreams in self._met

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
        return self._show_ir((), args, kwargs)

    @property
    def input_signature(self) -> Any:
        """The specs that it was given."""
        return None if self._specs is None else self._specs.given

    name = getter("__name__", "What the function is called.")
    function_type = getter("_signature", "The parameters.")

    def __repr__(self) -> str:
        return f"<tf.function {getattr(self, '__qualname__', self.python_function)}>"


@told_by_equality
@final
class BoundFunction(Generic[P, R]):
    """A compiled method of one object."""

    def __init__(self, function: Function[..., Any], instance: Any) -> None:
        self._function = function
        self.__self__ = instance
        self.__wrapped__ = function.python_function
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundFunction, (self._function, self.__self__)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the method."""
        return self._function(self.__self__, *args, **kwargs)

    @property
    def python_function(self) -> Callable[..., Any]:
        """The method as it was written."""
        return functools.partial(self._function.python_function, self.__self__)

    _anchor = getter("_function._anchor", "Under its name a method of a class is sent.")
    _sender = getter("_function._sender", "The same.")

    input_signature = getter("_function.input_signature", "The specs that it was given.")

    function_type = getter("_function.function_type", "The parameters.")

    name = getter("__name__", "What the method is called.")

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the program for one signature; see `Function.get_concrete_function`."""
        return self._function._find_concrete((self.__self__,), args, kwargs)

    def experimental_get_compiler_ir(self, *args: Any, **kwargs: Any) -> Callable[..., str]:
        """Return a function of a stage ("hlo", "optimized_hlo") that returns XLA's program."""
        return self._function._show_ir((self.__self__,), args, kwargs)

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


def _format_signatures(traces: list[ConcreteFunction], verbose: bool) -> str:
    return "\n\n".join(made.pretty_printed_signature(verbose) for made in traces)


@tracer_of.register(Function)
def _(function: Function[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: function._trace_planned((), args, kwargs)


@tracer_of.register(BoundFunction)
def _(method: BoundFunction[..., Any]) -> Callable[..., Any]:
    own = (method.__self__,)
    return lambda *args, **kwargs: method._function._trace_planned(own, args, kwargs)

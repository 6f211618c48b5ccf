"""`tf.py_function`, `tf.numpy_function`: Python that is called when the program runs.

Rules this file keeps:
- run eagerly the function is just called;
- XLA must know the shapes of what comes back: while a function is traced, the Python function is
  called once with zeros of the arguments' shapes, or with ones if that raises, unless it returns
  nothing; what that changes in Python objects of the user is undone;
- in a program it is called each time, in the order of the program; in a loop that a tape
  differentiates, and in a function with a gradient of its own, as a function of its arguments;
- what is called back runs eagerly, with Tensors (`py_function`) or NumPy arrays; where TensorFlow
  traces, in functions of datasets also, with NumPy's scalars and bytes for arrays without axes;
- what it raises is raised by the program, as the exception of `tf.errors` that TensorFlow makes of
  it; but for those of a `numpy_function` that runs eagerly.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, final

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np

from jaxvars.autograph.operators.world import World
from jaxvars.console.host_calls import CALLS, drop_gradient
from jaxvars.core.checks import Raised
from jaxvars.core.frames import LOCAL, entered
from jaxvars.derivatives.callbacks import CalledBack
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tf import nest
from jaxvars.tf.autodiff.tape import GradientTape
from jaxvars.tf.context.scope import IN_DATASET, outside_functions
from jaxvars.tf.errors import (
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)
from jaxvars.tf.tensors.convert import is_tensor_like, is_text, to_array
from jaxvars.tf.tensors.dtypes import DType, as_dtype
from jaxvars.tf.tensors.handles import is_handles, stage, taker, to_data
from jaxvars.tf.tensors.python_values import fitting
from jaxvars.tf.tensors.specs import TensorSpec, TypeSpec
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

_KINDS: list[tuple[tuple[type[Exception], ...], type[OpError]]] = [
    ((TypeError, ValueError), InvalidArgumentError),
    ((StopIteration,), OutOfRangeError),
    ((MemoryError,), ResourceExhaustedError),
    ((NotImplementedError,), UnimplementedError),
]
"""What becomes of an exception in a callback; all others are an UnknownError."""

IN_RULE: context.Scoped[bool] = context.Scoped(False)
"""Whether a function with a gradient of its own is traced, in which JAX has no order of calls."""


def py_function(
    func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Call a Python function with Tensors, when the program runs. It has gradients.

    Args:
        func: takes Tensors with values, returns one, or a list, or nothing; without it, a decorator
            of one is returned: `@tf.py_function(Tout=tf.float32)`.
        inp: its arguments, a list, or one tensor.
        Tout: the type of what it returns, a list of types, or [] for nothing.
        name: of no effect.

    Returns:
        A Tensor, or a list of them.

    Raises:
        InvalidArgumentError: when the function returns something else than it declares, or raises a
            ValueError or TypeError; other exceptions of `tf.errors` for others that it raises.
        TypeError: without `Tout`, or with only one of `func` and `inp`.

    >>> from jaxvars import tf
    >>> f = tf.function(lambda x: py_function(lambda y: y.numpy() + 1, [x], tf.float32))
    >>> f(tf.constant(1.0))
    <tf.Tensor: shape=(), dtype=float32, numpy=2.0>

    Differs from TensorFlow: in a compiled function the result has the shape that `func` gives for
    zeros, or for ones if it raises for zeros: with these it is called while the function is traced.
    """
    return _call_or_decorate(func, inp, Tout, eager=True)


def numpy_function(
    func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None,
    stateful: bool = True, name: str | None = None,
) -> Any:  # fmt: skip
    """Call a Python function with NumPy arrays, when the program runs. It has no gradients.

    Args:
        func: takes NumPy arrays, returns one, or a list, or nothing; without it, a decorator of
            one is returned. In a `tf.function`, and in a function of a dataset, it takes NumPy's
            scalars, and bytes, for arrays without axes.
        inp: its arguments, a list, or one tensor.
        Tout: the type of what it returns, a list of types, or [] for nothing.
        stateful: whether it is called each time, in the order of the program; a function of its
            arguments alone may be called less often.
        name: of no effect.

    Returns:
        A Tensor, or a list of them.

    Raises:
        InvalidArgumentError: when the function returns something else than it declares.
        TypeError: without `Tout`, or with only one of `func` and `inp`.

    Differs from TensorFlow: as for `tf.py_function`; and in a loop that a tape differentiates it is
    not called if its result is not used.
    """
    return _call_or_decorate(func, inp, Tout, eager=False, stateful=stateful)


def _call_or_decorate(func: Any, inp: Any, tout: Any, *, eager: bool, stateful: bool = True) -> Any:
    """Call a function with some arguments; without both of them return a decorator."""
    name = "tf.py_function" if eager else "tf.numpy_function"
    if tout is None:
        raise TypeError(
            f"Missing required argument: 'Tout', the type of what {name} returns, [] for nothing: "
            f"{name}(func, [x], tf.float32), or by name as a decorator, @{name}(Tout=tf.float32)."
        )
    if (func is None) != (inp is None):
        raise TypeError(
            f"Missing argument `{'func' if func is None else 'inp'}`: {name}(func, [x], Tout) "
            f"calls a function, and @{name}(Tout=Tout), without both, makes one of tensors."
        )
    if func is not None:
        return _run_call(_Call(func, tout, eager=eager, stateful=stateful), _list_inputs(inp))

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def call(*args: Any) -> Any:
            return _run_call(_Call(func, tout, eager=eager, stateful=stateful), args)

        return call

    return decorate


def _list_inputs(inp: Any) -> list[Any]:
    return [inp] if _is_composite(inp) or is_tensor_like(inp) else list(inp)


@final
class _Call:
    """A Python function that returns arrays of certain types."""

    def __init__(
        self, func: Callable[..., Any], tout: Any, *, eager: bool, stateful: bool = True
    ) -> None:
        self.is_list = isinstance(tout, list | tuple)
        given = list(tout) if self.is_list else [tout]
        self.dtypes: list[Any] = list(map(_wanted_of, given))
        self.func = func
        self.eager = eager
        self.what = "tf.py_function" if eager else "tf.numpy_function"
        self.in_order = stateful and not IN_RULE.value
        self.forms: list[tuple[Any, int]] = []

    def take(self, inp: Sequence[Any]) -> list[Array]:
        """Return the arrays that its arguments consist of."""
        parts = [nest.flatten(x, expand_composites=True) if _is_composite(x) else [x] for x in inp]
        self.forms = [(x, len(found)) for x, found in zip(inp, parts, strict=True)]
        return [to_array(x) for found in parts for x in found]

    def _call(self, given: Sequence[Any]) -> Any:
        """Call it with arguments that consist of some tensors."""
        rest = iter(given)
        args = [
            nest.pack_sequence_as(x, list(islice(rest, n)), expand_composites=True)
            if _is_composite(x)
            else next(rest)
            for x, n in self.forms
        ]
        return self.func(*args)

    def tensors(self, *values: Array, is_traced: bool = True) -> list[Array]:
        """Call it with arrays; return what it returned as arrays."""
        given: list[Any] = [Tensor(_device(x)) if self.eager else np.asarray(x) for x in values]
        if is_traced and not self.eager:
            given = [x[()] for x in given]
        with IN_DATASET.set(False):
            found = self._call(given)
        parts = found if isinstance(found, list | tuple) else [] if found is None else [found]
        if not self.dtypes:
            return []
        if len(parts) != len(self.dtypes):
            raise refused(
                f"pyfunc returned {len(parts)} values, but expects to see {len(self.dtypes)} "
                "values."
            )
        return [self._to_dtype(x, dtype) for x, dtype in zip(parts, self.dtypes, strict=True)]

    def _to_dtype(self, value: Any, dtype: Any) -> Any:
        if not isinstance(dtype, DType):
            if not dtype.is_compatible_with(value):
                raise refused(f"pyfunc returns {value}, but expects {dtype}")
            return value
        if dtype.is_string:
            return to_array(value, dtype)
        if not self.eager:
            value = fitting(np.asarray(value))  # a float is a float64
            if value.dtype != dtype.dtype:
                raise refused(f"pyfunc returns {value.dtype}, but expects {dtype.name}")
        array = to_array(value)
        return array if array.dtype == dtype.dtype else array.astype(dtype.dtype)

    def on_host(self, *values: Value) -> list[np.ndarray]:
        """Call it, as the program does."""
        try:
            with context.at(context.EVAL), entered(LOCAL.eager), outside_functions():
                return [np.asarray(x) for x in self.tensors(*values)]
        except Exception as error:  # of which XLA would pass on the message alone
            Raised.error = raised = _translate(error)
            raise raised from error

    def pull_back(self, *values: Array) -> list[np.ndarray]:
        """Return the gradient of each argument, given these and the gradients of the results."""
        count = len(values) - len(self.dtypes)
        with context.at(context.EVAL), entered(LOCAL.eager), outside_functions():
            xs = [Tensor(_device(x)) for x in values[:count]]
            with GradientTape() as tape:
                for x in filter(_is_float, xs):
                    tape.watch(x)
                found = self._call(xs)
            results = list(found) if isinstance(found, list | tuple) else [found]
            ups = [Tensor(_device(x)) for x in values[count:]]
            pairs = [(y, up) for y, up in zip(results, ups, strict=True) if isinstance(y, Tensor)]
            grads = [None] * count
            if pairs:
                ys, given = map(list, zip(*pairs, strict=True))
                grads = tape.gradient(ys, xs, output_gradients=given)
            return [
                np.zeros(x.shape, x.dtype) if g is None else np.asarray(to_array(g))
                for x, g in zip(values, grads, strict=False)
            ]


def _translate(error: Exception) -> OpError:
    """Return what TensorFlow makes of an exception in a callback; its own stay as they are."""
    if isinstance(error, OpError):
        return error
    kinds = (made for kinds, made in _KINDS if isinstance(error, kinds))
    return next(kinds, UnknownError)(None, None, f"{type(error).__name__}: {error}")


def _device(x: Array) -> Array:
    return x if isinstance(x, jax.Array) or is_text(x) else jnp.asarray(np.asarray(x))


def _is_composite(x: Any) -> bool:
    return type(x) in nest.COMPOSITES


def _wanted_of(given: Any) -> Any:
    """Return the type that something says, or a spec of what consists of tensors."""
    if isinstance(given, TypeSpec):
        return given.dtype if isinstance(given, TensorSpec) else given
    return as_dtype(given)


def _is_float(x: Tensor) -> bool:
    return x.dtype.is_floating


def _run_call(call: _Call, inp: Sequence[Any]) -> Any:
    arrays = call.take(inp)
    if not any(map(context.is_tracer, arrays)) and not context.is_staging():
        found = _run_eagerly(call, arrays)
    elif not call.dtypes:
        take, data = taker(arrays), map(to_data, arrays)
        with jax.named_scope(f"{CALLS}{call.what}"):
            jax.experimental.io_callback(
                lambda *xs: call.on_host(*take(xs)), [], *data, ordered=True
            )  # fmt: skip
        return []
    elif not all(isinstance(wanted, DType) for wanted in call.dtypes):
        raise refused(
            f"{call.dtypes} cannot be what is called back returns in a tf.function, where XLA must "
            "know the shapes: return the tensors that it consists of, and make it of these"
        )
    elif any(map(is_handles, arrays)) or any(dtype.is_string for dtype in call.dtypes):
        found = stage(call.tensors, *arrays)
    else:
        found = _stage_call(call, arrays)
    if not call.dtypes:
        return []
    tensors = [x if _is_composite(x) else Tensor(x) for x in found]
    return tensors if call.is_list else tensors[0]


def _run_eagerly(call: _Call, arrays: Sequence[Array]) -> list[Array]:
    if not call.eager:
        return call.tensors(*arrays, is_traced=IN_DATASET.value)
    try:
        return call.tensors(*arrays)
    except Exception as error:
        raise _translate(error) from error


def _specs_of_results(call: _Call, arrays: Sequence[Array]) -> list[jax.ShapeDtypeStruct]:
    """Call it for the shapes that it returns; what that changes in the user's objects is undone."""
    objects = World([call.func])
    try:
        examples = call.on_host(*[np.zeros(x.shape, x.dtype) for x in arrays])
    except OpError:  # for example of a division by them
        examples = call.on_host(*[np.ones(x.shape, x.dtype) for x in arrays])
    finally:
        objects.undo()
    return list(map(_spec_of, examples))


def _stage_call(call: _Call, arrays: Sequence[Array]) -> list[Array]:
    specs = _specs_of_results(call, arrays)
    data = list(map(drop_gradient, arrays))
    if call.in_order:
        on_host = CalledBack(call.on_host, call.what)
        found = jax.experimental.io_callback(on_host, specs, *data, ordered=True)
    else:
        found = jax.pure_callback(call.on_host, specs, *data)
    return _with_gradient(call, list(found), arrays) if call.eager else list(found)


def _with_gradient(call: _Call, found: list[Array], arrays: Sequence[Array]) -> list[Array]:
    """Return what a function has returned for some arrays, as differentiable by these."""
    specs, given = list(map(_spec_of, found)), list(map(_spec_of, arrays))
    run = jax.custom_vjp(lambda found, _: found)

    def backward(xs: Sequence[Array], ups: Sequence[Array]) -> Any:
        ups = [_zeros(s) if u.dtype == jax.dtypes.float0 else u
               for u, s in zip(ups, specs, strict=True)]  # fmt: skip
        grads = jax.pure_callback(call.pull_back, given, *xs, *ups)
        grads = [g if is_inexact(x) else _no_gradient(x) for x, g in zip(given, grads, strict=True)]
        return list(map(_no_gradient, specs)), grads

    run.defvjp(lambda found, xs: (found, xs), backward)
    return run(found, list(arrays))


def _spec_of(x: Value) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def _zeros(spec: jax.ShapeDtypeStruct) -> Array:
    return jnp.zeros(spec.shape, spec.dtype)


def _no_gradient(spec: jax.ShapeDtypeStruct) -> Value:
    return _zeros(spec) if is_inexact(spec) else np.zeros(spec.shape, jax.dtypes.float0)

"""Which numbers are sizes, while a function is traced with unknown dimensions.

There `x.shape[0]` is an expression, and `2 * x.shape[0]` another one. As a value, in the program,
it is a traced array. To be used as a size again (`zeros([n, 3])`) it must be known which expression
it is. So a listener to the operations works out here for each what the expressions become.

Rules this file keeps:
- a value is said to be an expression only if it is that for all sizes;
- what is not followed (an operation that has no rule here) is a number as any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.symbolic.specialize import is_open
from jaxvars.tracing import context, jaxprs, recorder
from jaxvars.tracing.around import AROUND
from jaxvars.typing import Array

Sizes: TypeAlias = Any  # a NumPy array of ints and expressions

_LARGEST = 64  # of how many sizes are recorded


@final
class _Followed:
    """Knows which values are sizes: a `recorder.Listener`."""

    __slots__ = ("_known",)
    follows = False  # what is closed over is of no interest

    def __init__(self) -> None:
        self._known: dict[
            int, tuple[Array, Sizes]
        ] = {}  # keeps the values: an id is not used again

    def note(self, value: Array, sizes: Sizes) -> None:
        """Say what a value is."""
        self._known[id(value)] = value, sizes

    def sizes(self, value: Array) -> Sizes | None:
        """Return what a value is, or None."""
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        if context.is_tracer(value) or np.size(value) > _LARGEST:
            return None
        return np.asarray(value)

    def wants(self, inputs: Sequence[Array]) -> bool:
        """Return whether sizes are among the inputs, or all inputs are known."""
        return any(id(x) in self._known for x in inputs) or not any(map(context.is_tracer, inputs))

    def run(self, equation: recorder.Equation, staged: bool) -> list[Array]:
        """Run an operation, and work out what sizes it gives."""
        outputs = list(equation.function(*equation.inputs))
        given = list(map(self.sizes, equation.inputs))
        if all(x is not None for x in given) and all(map(_is_small, outputs)):
            found = _compute(equation.name, equation.params, equation.function, given)
            for value, sizes in zip(outputs, found or (), strict=False):
                if sizes is not None:
                    self.note(value, sizes)
        return outputs


def _is_small(value: Array) -> bool:
    shape, kind = np.shape(value), getattr(value, "dtype", None)
    return kind is not None and not any(map(is_open, shape)) and math.prod(shape) <= _LARGEST


_CURRENT: context.Scoped[_Followed | None] = context.Scoped(None)


@contextmanager
def follow_sizes() -> Generator[None]:
    """Keep book of sizes inside, in functions that are traced there."""
    with _CURRENT.set(_Followed()):
        yield


def _record_if_followed() -> AbstractContextManager[None]:
    followed = _CURRENT.value
    return nullcontext() if followed is None else recorder.recording(followed)


AROUND.append(_record_if_followed)


@final
class NeedsSizes(BaseException):
    """Signals that a function must be traced again, and what is computed of constants followed.

    It passes through `except Exception`, and is never seen.
    """


_MAY_ASK: context.Scoped[bool] = context.Scoped(False)


@contextmanager
def follow_constants(*, is_needed: bool) -> Generator[None]:
    """Keep book of what is computed of constants, in the function that is being traced.

    Args:
        is_needed: whether to; if not, `ask_for_sizes` raises NeedsSizes inside.
    """
    if _CURRENT.value is not None:
        yield
    elif is_needed:
        with follow_sizes(), _record_if_followed():
            yield
    else:
        with _MAY_ASK.set(True):
            yield


def ask_for_sizes() -> None:
    """Raise NeedsSizes where constants could be followed and are not."""
    if _CURRENT.value is None and _MAY_ASK.value:
        raise NeedsSizes


def array_of(sizes: Sequence[Any], dtype: Any) -> Array:
    """Return sizes, some of which are open, as an array."""
    value = jnp.stack([jnp.asarray(size).astype(dtype) for size in sizes])
    if _CURRENT.value is not None:
        _CURRENT.value.note(value, _to_objects(sizes))
    return value


def number_of(size: Any, dtype: Any) -> Array:
    """Return an unknown dimension as an array without dimensions."""
    value = jnp.asarray(size).astype(dtype)
    if _CURRENT.value is not None:
        _CURRENT.value.note(value, _to_objects([size]).reshape(()))
    return value


def sizes_of(value: Any) -> Sizes | None:
    """Return the sizes that an array holds; None if it is not known to hold any."""
    return None if _CURRENT.value is None else _CURRENT.value.sizes(value)


def _to_objects(sizes: Sequence[Any]) -> Sizes:
    made = np.empty(len(sizes), object)
    made[:] = sizes
    return made


# ---------------------------------------------------------------- what operations do
def _compute(
    name: str, params: Mapping[str, Any], run: Callable[..., Any], given: Sequence[Sizes]
) -> Sequence[Sizes | None] | None:
    """Return what an operation makes of sizes; None if that is not known."""
    try:
        if (name in _OF_KNOWN or name in _MOVES) and all(x.dtype != object for x in given):
            with context.at(context.EVAL):
                return list(map(np.asarray, run(*given)))
        if name == "jit":
            return _of_program(params, given)
        if name in _ARITHMETIC:
            return [np.asarray(_ARITHMETIC[name](*map(_to_exact, given)), object)]
        if name in _MOVES:
            return [_move_by_index(run, given, _MOVES[name])]
        if name in _REDUCTIONS:
            made = _REDUCTIONS[name](_to_exact(given[0]), axis=tuple(params["axes"]))
            return [np.asarray(made, object)]
        if name == "convert_element_type" and np.dtype(params["new_dtype"]).kind in "iu":
            return [_to_exact(given[0])]
    except (TypeError, ValueError, NotImplementedError, jax.errors.InconclusiveDimensionOperation):
        pass  # it depends on how large the sizes are
    return None


def _to_exact(sizes: Sizes) -> Sizes:
    """Return sizes with Python's numbers, which do not overflow."""
    if sizes.dtype != object and sizes.dtype.kind not in "iu":
        raise TypeError("not integers")
    return sizes.astype(object)


_OF_KNOWN = frozenset({
    "abs", "add", "ceil", "clamp", "convert_element_type", "copy", "div", "eq", "exp", "floor",
    "ge", "gt", "integer_pow", "iota", "le", "log", "lt", "max", "min", "mul", "ne", "neg", "pow",
    "reduce_max", "reduce_min", "reduce_prod", "reduce_sum", "rem", "round", "select_n", "sign",
    "sqrt", "square", "stop_gradient", "sub",
})  # fmt: skip
"""Operations that are run for numbers that are known; for sizes that are not there are rules."""
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "copy": np.asarray,
    "stop_gradient": np.asarray,
}
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "reduce_sum": np.add.reduce,
    "reduce_prod": np.multiply.reduce,
}
_MOVES: dict[str, int | None] = {  # how many of the first inputs are moved; None: all
    "broadcast_in_dim": 1,
    "concatenate": None,
    "dynamic_slice": 1,
    "expand_dims": 1,
    "gather": 1,
    "reshape": 1,
    "rev": 1,
    "slice": 1,
    "squeeze": 1,
    "stack": None,
    "transpose": 1,
}
_WHOLE: dict[str, Callable[..., Any]] = {  # jitted functions that compare signs on their way
    "floor_divide": np.floor_divide,
    "remainder": np.mod,
}


def _move_by_index(run: Callable[..., Any], given: Sequence[Sizes], count: int | None) -> Sizes:
    """Return what an operation makes that only rearranges numbers: it gets their positions."""
    count = len(given) if count is None else count
    starts = [sum(x.size for x in given[:i]) for i in range(count)]
    places = [
        np.arange(start, start + x.size, dtype=np.int32).reshape(x.shape)
        for start, x in zip(starts, given[:count], strict=True)
    ]
    with context.at(context.EVAL):
        (found,) = run(*places, *given[count:])
    pool = _to_objects([size for x in given[:count] for size in _to_exact(x).reshape(-1)])
    return (
        pool[np.asarray(found)] if np.ndim(found) else _to_objects([pool[int(found)]]).reshape(())
    )


def _of_program(params: Mapping[str, Any], given: Sequence[Sizes]) -> list[Sizes | None]:
    """Return what a jitted function makes of sizes."""
    if params.get("name") in _WHOLE:
        return [np.asarray(_WHOLE[params["name"]](*map(_to_exact, given)), object)]
    found = jaxprs.interpret(params["jaxpr"], given, _of_equation)
    return [None if x is None else np.asarray(x) for x in found]


def _of_equation(eqn: Any, inputs: Sequence[Any]) -> Sequence[Sizes | None]:
    if eqn.primitive.name == "dim_as_value":
        return [_to_objects([eqn.params["dim"]]).reshape(())]
    if any(x is None for x in inputs):
        return [None] * len(eqn.outvars)

    def run(*values: Array) -> Sequence[Array]:
        made = eqn.primitive.bind(*values, **eqn.primitive.get_bind_params(eqn.params))
        return made if eqn.primitive.multiple_results else [made]

    sizes = list(map(np.asarray, inputs))
    found = _compute(eqn.primitive.name, eqn.params, run, sizes)
    return [None] * len(eqn.outvars) if found is None else found

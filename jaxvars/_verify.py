"""`verify`: run a function in each way that there is, and say where the results part.

Rules this file keeps:
- the reference is Python: the function's body run with concrete values, nothing compiled in it;
- all ways start from the same values, and these are what the variables hold at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars._compile import BoundFunction, Function, compile, running_eagerly
from jaxvars._display import Table
from jaxvars._face import plain
from jaxvars._frames import Owner
from jaxvars._signature import name_of
from jaxvars._state import State, functionalize
from jaxvars._tape import GradientTape
from jaxvars.errors import CheckError

Value: TypeAlias = Any
Named: TypeAlias = dict[str, Any]

_STEPS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6)
_DIRECTIONS = 2


def verify(
    fn: Callable[..., Any],
    *args: Any,
    calls: int = 2,
    gradients: bool = True,
    rtol: float | None = None,
    **kwargs: Any,
) -> Table:
    """Check that a function does the same eagerly, compiled and as a pure function.

    The function is run from the values that its variables have now: by Python, by `jv.compile`
    and as `jax.jit` of the pure function, `calls` times in a row. Results and variables must
    agree. Then gradients: those of a tape around the function, run by Python and compiled, and the
    derivative of the pure function against finite differences. In the end the variables have
    the values that they had.

    Args:
        fn: a function, plain or compiled, or a compiled method.
        *args: what it is called with.
        calls: how often; what Python keeps between calls (a counter, a list) shows at the second.
        gradients: whether to check gradients, where the results have any.
        rtol: the relative difference that counts as none, of the largest element of an array; when
            None 1e-4 for 32-bit numbers, 1e-9 for 64-bit, 2e-2 for those of 16 bits.
        **kwargs: what it is called with.

    Returns:
        A table of what was compared, and the largest relative difference of each.

    Raises:
        CheckError: where two ways part: which ways, which result or variable, which element.
        Exception: what the function raises, when it raises by Python.

    >>> import jaxvars as jv
    >>> w = jv.Variable([1.0, 2.0], name="w")
    >>> def step(x):
    ...     w.assign_sub(0.1 * x)
    ...     return jnp.sum(w * x)
    >>> len(verify(step, jnp.ones(2)).rows)
    5
    >>> calls = []
    >>> def counting(x):
    ...     calls.append(x)
    ...     return x * len(calls)
    >>> verify(counting, jnp.ones(2))
    Traceback (most recent call last):
    jaxvars.errors.CheckError: verify(counting): call 1: result, element [0], is 1.0 compiled, ...
    """
    return _Check(fn, args, kwargs, calls, rtol).run(gradients=gradients)


@final
class _Check:
    """One function, its arguments, and what is compared."""

    def __init__(
        self, fn: Any, args: Sequence[Any], kwargs: dict[str, Any], calls: int, rtol: float | None
    ) -> None:
        is_compiled = isinstance(fn, Function | BoundFunction)
        self._python: Callable[..., Any] = fn.python_function if is_compiled else fn
        self._compiled: Function | BoundFunction = fn if is_compiled else compile(fn)
        self._calls = calls
        self._rtol = rtol
        self._title = f"verify({name_of(self._python)})"
        self._rows: list[tuple[str, str, float]] = []
        self._leaves, self._tree = jax.tree.flatten((args, kwargs), is_leaf=_is_owner)
        self._variables = self._compiled.trace(*args, **kwargs).captured
        self._state = State.of(*self._variables)

    def run(self, *, gradients: bool) -> Table:
        """Compare all ways."""
        with running_eagerly():
            expected = self._run_pure(self._pure)
        try:
            self._compare("compiled", self._run_compiled(), expected)
            arrays = {name: x for name, x in expected.items() if _is_array(x)}
            self._compare("pure under jax.jit", self._run_pure(jax.jit(self._pure_arrays)), arrays)
            if gradients:
                self._check_tapes()
                self._check_slopes()
        finally:
            self._state.commit()
        columns = ("way", "compared with", "largest relative difference")
        return Table(title=self._title, columns=columns, rows=self._rows)

    # ------------------------------------------------------------ the ways
    def _call(self, fn: Callable[..., Any], arrays: Sequence[Value]) -> Named:
        """Call a function with other arrays in its arguments; return the result by path."""
        new = iter(arrays)
        leaves = [next(new) if _is_array(x) else x for x in self._leaves]
        args, kwargs = jax.tree.unflatten(self._tree, leaves)
        found = jax.tree.leaves_with_path(fn(*args, **kwargs), is_leaf=_is_owner)
        return {f"result{jax.tree_util.keystr(path)}": plain(x) for path, x in found}

    def _arrays(self) -> list[Value]:
        return [x for x in self._leaves if _is_array(x)]

    def _pure(self, state: State, arrays: Sequence[Value]) -> tuple[Named, State]:
        """Run the function's Python body once, on these values."""
        return functionalize(lambda: self._call(self._python, arrays))(state)

    def _pure_arrays(self, state: State, arrays: Sequence[Value]) -> tuple[Named, State]:
        result, state = self._pure(state, arrays)
        return {name: x for name, x in result.items() if _is_array(x)}, state

    def _run_pure(self, run: Callable[..., tuple[Named, State]]) -> Named:
        state, found = self._state, {}
        for i in range(self._calls):
            result, state = run(state, self._arrays())
            found |= _numbered(i, result)
        return found | _by_variable(state)

    def _run_compiled(self) -> Named:
        found: Named = {}
        for i in range(self._calls):
            found |= _numbered(i, self._call(self._compiled, self._arrays()))
        return found | _by_variable(State.of(*self._variables))

    # ------------------------------------------------------------ gradients
    def _check_tapes(self) -> None:
        with running_eagerly():
            expected = self._gradients(self._python)
        self._compare("by a tape around compiled code", self._gradients(self._compiled), expected)

    def _gradients(self, fn: Callable[..., Any]) -> Named:
        """Return what a tape around one call finds for the variables and arguments."""
        self._state.commit()
        arrays = [jnp.asarray(x) if _is_float(x) else x for x in self._arrays()]
        named = zip(self._state, self._variables, strict=True)  # names may be shared
        sources: Named = {f"the gradient of variable {name!r}": v for name, v in named}
        sources |= {f"the gradient of array {i} of the arguments": x for i, x in enumerate(arrays)}
        sources = {name: x for name, x in sources.items() if _is_float(x)}
        with GradientTape() as tape:
            tape.watch(list(sources.values()))
            loss = _total(self._call(fn, arrays))
        if loss is None or not sources:
            return {}
        found = tape.gradient(loss, list(sources.values()), unconnected_gradients="zero")
        return dict(zip(sources, found, strict=True))

    def _check_slopes(self) -> None:
        """Compare derivatives in random directions with finite differences."""
        leaves, tree = jax.tree.flatten((self._state, self._arrays()))
        start = [jnp.asarray(x) for x in leaves if _is_float(x)]

        def loss(*values: Value) -> Value:
            new = iter(values)
            moved = [next(new) if _is_float(x) else x for x in leaves]
            return _total(self._pure_arrays(*jax.tree.unflatten(tree, moved))[0])

        if not start or jax.eval_shape(loss, *start) is None:
            return
        random = np.random.default_rng(0)
        for _ in range(_DIRECTIONS):
            way = [random.standard_normal(x.shape).astype(x.dtype) for x in start]
            self._check_slope(jax.jit(loss), start, way)

    def _check_slope(self, loss: Callable[..., Value], start: list[Value], way: list[Any]) -> None:
        slope = _slope(loss, start, way)
        if slope is None:
            return

        def at(step: float) -> float:
            moved = [x + jnp.asarray(step, x.dtype) * w for x, w in zip(start, way, strict=True)]
            return float(loss(*moved))

        found = [(at(step) - at(-step)) / (2 * step) for step in _STEPS]
        # Two neighbours that are close: neither rounding nor curvature decides there.
        gap, numerical = min((abs(a - b), b) for a, b in itertools.pairwise(found))
        scale = max(abs(numerical), abs(slope), 1e-3 * max(map(abs, found)), 1e-6)
        if not abs(slope - numerical) <= 10 * gap + 0.02 * scale:
            raise CheckError(
                f"{self._title}: the derivative of the pure function, in a random direction, is "
                f"{slope:.6g}, and {numerical:.6g} by finite differences. Is there a rule of its "
                "own (custom_jvp, custom_vjp, custom_gradient), a stop_gradient or a rounding in "
                "it? Then call verify(..., gradients=False)."
            )
        self._rows.append(("slope", "finite differences", abs(slope - numerical) / scale))

    # ------------------------------------------------------------ comparing
    def _compare(self, way: str, found: Named, expected: Named) -> None:
        if list(found) != list(expected):
            raise self._parting("the structure of the result", way, list(found), list(expected))
        worst = [self._distance(way, name, x, expected[name]) for name, x in found.items()]
        if worst:
            self._rows.append((way, "Python", float(f"{max(worst):.2g}")))

    def _distance(self, way: str, name: str, found: Any, expected: Any) -> float:
        """Return the largest relative difference of two values; raise if it is too large."""
        one, two = _known(found), _known(expected)
        if not isinstance(one, np.ndarray) or not isinstance(two, np.ndarray):
            if type(one) is not type(two) or one != two:
                raise self._parting(name, way, _described(one), _described(two))
            return 0.0
        if (one.shape, one.dtype) != (two.shape, two.dtype):
            raise self._parting(name, way, _described(one), _described(two))
        gaps = _gaps(one, two)
        if not gaps.size or gaps.max() <= self._slack(two.dtype):
            return float(gaps.max(initial=0.0))
        index = np.unravel_index(int(gaps.argmax()), gaps.shape)
        where = f", element [{', '.join(map(str, index))}]," if index else ""
        raise self._parting(name + where, way, one[index], two[index])

    def _slack(self, dtype: Any) -> float:
        if not jnp.issubdtype(dtype, jnp.inexact):
            return 0.0
        return self._rtol or {16: 2e-2, 32: 1e-4, 64: 1e-9}.get(jnp.finfo(dtype).bits, 0.5)

    def _parting(self, name: str, way: str, found: object, expected: object) -> CheckError:
        cure = "" if name.startswith("the gradient") else _CURE
        return CheckError(
            f"{self._title}: {name} is {found} {way}, and {expected} by Python.{cure}"
        )


_CURE = (
    " The Python code of a compiled function runs once, when it is traced: values must come from "
    "arguments and Variables, and not from Python objects that change, np.random or the time."
)


def _numbered(i: int, result: Named) -> Named:
    return {f"call {i + 1}: {name}": x for name, x in result.items()}


def _by_variable(state: State) -> Named:
    return {f"variable {name!r}": x for name, x in state.items()}


def _known(value: Any) -> Any:
    """Return a number or array as a NumPy array, and all else as it is."""
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(jnp.asarray(value)) if _is_array(value) else value


def _is_array(value: object) -> bool:
    """Return whether a leaf is a number or an array of numbers, known or traced."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind not in "OSUT"
    return isinstance(value, jax.Array | bool | int | float | complex)


def _is_owner(value: object) -> bool:
    return isinstance(value, Owner)


def _described(value: Any) -> str:
    is_array = isinstance(value, np.ndarray)
    return f"{value.dtype}{list(value.shape)}" if is_array else repr(value)


def _gaps(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return how far two arrays are apart, relative to the largest element of the second."""
    if not jnp.issubdtype(expected.dtype, jnp.inexact):
        return (found != expected).astype(float)
    one, two = (x.astype(np.result_type(x.dtype, np.float64)) for x in (found, expected))
    scale = np.abs(two[np.isfinite(two)]).max(initial=0.0) or 1.0
    with np.errstate(invalid="ignore"):
        gaps = np.abs(one - two) / scale
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    return np.where(same, 0.0, np.where(np.isfinite(gaps), gaps, np.inf))


def _is_float(value: Any) -> bool:
    """Return whether a leaf is an array of floats: what can be moved a little."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jnp.floating)


def _total(result: Named) -> Value | None:
    """Return a smooth number that depends on every float of a result; None if it has none."""
    floats = [x for x in result.values() if _is_float(x)]
    parts = [jnp.sum(jnp.sin(x.astype(jnp.promote_types(x.dtype, jnp.float32)))) for x in floats]
    return sum(parts[1:], parts[0]) if parts else None


def _slope(loss: Callable[..., Value], start: list[Value], way: list[Any]) -> float | None:
    """Return the derivative in a direction; None if JAX has neither way to it."""
    try:
        return float(jax.jvp(loss, start, [jnp.asarray(w) for w in way])[1])
    except TypeError:  # a custom_vjp has no forward mode
        pass
    try:
        _, pull = jax.vjp(loss, *start)
    except ValueError:  # a while loop has no reverse mode
        return None
    return float(sum(jnp.vdot(g, w) for g, w in zip(pull(1.0), way, strict=True)))

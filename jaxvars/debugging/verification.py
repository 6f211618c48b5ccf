"""`verify`: run a function in each way that there is, and say where the results part.

Rules this file keeps:
- the reference is Python: the function's body run with concrete values, nothing compiled in it;
- all ways start from the same values, and these are what the variables hold at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.autodiff.tape import GradientTape
from jaxvars.compiler.concrete_function import ConcreteFunction
from jaxvars.compiler.decorator import compile
from jaxvars.compiler.function import BoundFunction, Function, running_eagerly
from jaxvars.compiler.signature import name_of
from jaxvars.core.frame import Owner
from jaxvars.display.repr import Table
from jaxvars.errors import CheckError, LeakWarning
from jaxvars.leaks.watch import RAISES, find_leaks
from jaxvars.modules.functionalize import functionalize
from jaxvars.modules.state import State, require_values
from jaxvars.tensors.array_like import BOXES, ArrayProxy, unwrap
from jaxvars.tensors.dtypes import is_inexact, is_key
from jaxvars.typing import Array

Named: TypeAlias = dict[str, Any]


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
    and as `jax.jit` of the pure function, `calls` times in a row. Results, variables and what the
    function changes in its arguments must agree, and so must the gradients of a tape around the
    function, run by Python and compiled. In the end the variables have the values that they had.
    (Whether a custom rule of derivatives is right is what `jax.test_util.check_grads` says.)

    Args:
        fn: a function, plain or compiled, or a compiled method.
        *args: what it is called with.
        calls: how often; what Python keeps between calls (a counter, a list) shows at the second.
        gradients: whether to check gradients, where the results have any.
        rtol: the relative difference that counts as none, of the largest element of an array; when
            None 1e-4 for 32-bit numbers, 1e-9 for 64-bit, 2e-2 for those of 16 bits. A gradient of
            less than 16 units in the last place of the largest one counts as rounding.
        **kwargs: what it is called with.

    Returns:
        A table of what was compared, and the largest relative difference of each.

    Raises:
        ValueError: when `calls` is less than 1.
        CheckError: where two ways part: which ways, which result or variable, which element; or
            when it keeps state outside of Variables: where.
        CompileError: when it keeps state in an attribute of a Module that is no Variable.
        Exception: what the function raises, when it raises by Python.

    >>> import jaxvars as jv
    >>> w = jv.Variable([1.0, 2.0], name="w")
    >>> def step(x):
    ...     w.assign_sub(0.1 * x)
    ...     return jnp.sum(w * x)
    >>> len(verify(step, jnp.ones(2)).rows)
    3
    >>> calls = []
    >>> def counting(x):
    ...     calls.append("once more")
    ...     return x * len(calls)
    >>> verify(counting, jnp.ones(2))
    Traceback (most recent call last):
    jaxvars.errors.CheckError: verify(counting): call 1: result, element [0], is 1.0 compiled, ...
    """
    try:
        return _Check(fn, args, kwargs, calls, rtol).run(gradients=gradients)
    except jax.errors.UnexpectedTracerError as error:  # what an earlier call has left behind
        raise next(_explain_leaks(fn, (args, kwargs)), error) from error.__cause__


def _explain_leaks(fn: Any, given: object) -> Iterator[CheckError]:
    """Yield errors that say which tracers a function can reach."""
    name = getattr(fn, "__name__", type(fn).__name__)
    for leak in find_leaks(fn, [given]):
        yield CheckError(f"verify({name}): {leak.explain(name)}")


@final
class _Check:
    """One function, its arguments, and what is compared."""

    def __init__(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], calls: int, rtol: float | None
    ) -> None:
        if calls < 1:
            raise ValueError(f"verify calls the function calls={calls} times, and needs one call.")
        if isinstance(fn, BoundFunction):
            fn, args = fn.function, (fn.__self__, *args)
        self._compiled: Function[..., Any] = fn if isinstance(fn, Function) else compile(fn)
        self._python: Callable[..., Any] = self._compiled.python_function
        self._calls = calls
        self._rtol = rtol
        self._title = f"verify({name_of(self._python)})"
        self._rows: list[tuple[str, str, float]] = []
        self._bound = self._compiled.bind(args, kwargs)
        self._variables = self._trace(args, kwargs).captured
        self._state = require_values(State.of(*self._variables))
        self._expected: Named = {}

    def _trace(self, args: Any, kwargs: Any) -> ConcreteFunction:
        """Return the function as it is compiled; raise if it leaves tracers behind."""
        with RAISES.set(True):
            try:
                return self._compiled.trace(*args, **kwargs)
            except LeakWarning as leak:
                raise CheckError(f"{self._title}: {leak}") from None

    def run(self, *, gradients: bool) -> Table:
        """Compare all ways."""
        with running_eagerly():
            expected = self._run(self._run_pure)
        self._expected = {name: _to_numpy(x) for name, x in expected.items()}
        try:
            self._compare("compiled", self._run(self._run_impure), expected)
            arrays = {name: x for name, x in expected.items() if _is_array(x)}
            self._compare("pure under jax.jit", self._run(jax.jit(self._run_pure_arrays)), arrays)
            if gradients:
                self._check_tapes()
        finally:
            try:
                self._state.commit()
            except BaseException:  # Ctrl-C: again, or the variables would keep what was tried
                self._state.commit()
                raise
        columns = ("way", "compared with", "largest relative difference")
        return Table(title=self._title, columns=columns, rows=self._rows)

    # ------------------------------------------------------------ the ways
    def _call(self, fn: Callable[..., Any], arrays: Sequence[Array]) -> Named:
        """Call a function with these arrays in its arguments; return what comes of it by path.

        That is the result, and what the function has put into lists and dicts that it was given.
        """
        args, kwargs = self._bound.rebuild(arrays)
        given = _by_path("argument", (args, kwargs))
        result = fn(*args, **kwargs)
        after = _by_path("argument", (args, kwargs))
        changed = {p: unwrap(x) for p, x in after.items() if p not in given or given[p] is not x}
        found = {path: unwrap(x) for path, x in _by_path("result", result).items()}
        kinds = _list_kinds(jax.tree.structure(result, is_leaf=_is_leaf))
        return found | changed | {"the structure of the result": kinds}

    def _copy_arrays(self) -> list[Array]:
        """Return the arrays in the arguments; NumPy's as copies, which the function may change."""
        return [x.copy() if isinstance(x, np.ndarray) else x for x in self._bound.values]

    def _run_pure(self, state: State, arrays: Sequence[Array]) -> tuple[Named, State]:
        """Run the function's Python body once, on these values."""
        return functionalize(lambda: self._call(self._python, arrays))(state)

    def _run_pure_arrays(self, state: State, arrays: Sequence[Array]) -> tuple[Named, State]:
        run = functionalize(lambda: self._call(self._compiled.body, arrays))
        result, state = run(state)
        return {name: x for name, x in result.items() if _is_array(x)}, state

    def _run_impure(self, state: State, arrays: Sequence[Array]) -> tuple[Named, State]:
        """Call the compiled function, which finds the state in the variables."""
        return self._call(self._compiled, arrays), State.of(*self._variables)

    def _run(self, step: Callable[..., tuple[Named, State]]) -> Named:
        """Return what some calls in a row give, do to NumPy's arrays, and leave in variables."""
        state, arrays, found = self._state, self._copy_arrays(), {}
        for i in range(self._calls):
            result, state = step(state, arrays)
            found |= {f"call {i + 1}: {name}": x for name, x in result.items()}
        for i, x in enumerate(arrays):
            if isinstance(x, np.ndarray):
                found[f"array {i} of the arguments"] = x
        return found | {f"variable {name!r}": x for name, x in state.items()}

    # ------------------------------------------------------------ gradients
    def _check_tapes(self) -> None:
        with running_eagerly():
            expected = self._find_gradients(self._python)
        found = self._find_gradients(self._compiled)
        self._compare("by a tape around compiled code", found, expected, size=_largest(expected))

    def _find_gradients(self, fn: Callable[..., Any]) -> Named:
        """Return what a tape around one call finds for the variables and arguments."""
        self._state.commit()
        arrays = [jnp.asarray(x) if _is_float(x) else x for x in self._copy_arrays()]
        named = zip(self._state, self._variables, strict=True)  # names may be shared
        sources: Named = {f"the gradient of variable {name!r}": v for name, v in named}
        sources |= {f"the gradient of array {i} of the arguments": x for i, x in enumerate(arrays)}
        sources = {name: x for name, x in sources.items() if _is_float(x)}
        with GradientTape() as tape:
            tape.watch(list(sources.values()))
            loss = self._weigh_all(self._call(fn, arrays))
        if loss is None or not sources:
            return {}
        found = tape.gradient(loss, list(sources.values()), unconnected_gradients="zero")
        return dict(zip(sources, found, strict=True))

    def _weigh_all(self, result: Named) -> Array | None:
        """Return a number in which every float of a result has its weight; None if it has none."""
        floats = {f"call 1: {name}": jnp.asarray(x) for name, x in result.items() if _is_float(x)}
        parts = [_weigh(x, self._expected[name]) for name, x in floats.items()]
        return sum(parts[1:], parts[0]) if parts else None

    # ------------------------------------------------------------ comparing
    def _compare(self, way: str, found: Named, expected: Named, *, size: float = 0.0) -> None:
        """Compare with what Python gives, by name.

        `size` is that of the numbers which all come of, as gradients of one loss do: where these
        cancel, their rounding is left.
        """
        if list(found) != list(expected):
            raise self._error_for("the structure of the result", way, list(found), list(expected))
        worst = [self._measure(way, name, x, expected[name], size) for name, x in found.items()]
        if worst:
            self._rows.append((way, "Python", float(f"{max(worst):.2g}")))

    def _measure(self, way: str, name: str, found: Any, expected: Any, size: float) -> float:
        """Return the largest relative difference of two values; raise if it is too large."""
        one, two = _to_numpy(found), _to_numpy(expected)
        arrays = isinstance(one, np.ndarray) and isinstance(two, np.ndarray)
        if not arrays or (one.shape, one.dtype) != (two.shape, two.dtype):
            if arrays or type(one) is not type(two) or one != two:
                raise self._error_for(name, way, _describe(one), _describe(two))
            return 0.0
        slack = self._find_slack(two.dtype)
        gaps = _measure_gaps(one, two, size * _estimate_rounding(two.dtype, slack))
        if not gaps.size or gaps.max() <= slack:
            return float(gaps.max(initial=0.0))
        index = np.unravel_index(int(gaps.argmax()), gaps.shape)
        where = f", element [{', '.join(map(str, index))}]," if index else ""
        raise self._error_for(name + where, way, one[index], two[index])

    def _find_slack(self, dtype: Any) -> float:
        if not jnp.issubdtype(dtype, jnp.inexact):
            return 0.0
        if self._rtol is not None:
            return self._rtol
        return {16: 2e-2, 32: 1e-4, 64: 1e-9}.get(jnp.finfo(dtype).bits, 0.5)

    def _error_for(self, name: str, way: str, found: object, expected: object) -> CheckError:
        cure = "" if name.startswith("the gradient") else _CURE
        return CheckError(
            f"{self._title}: {name} is {found} {way}, and {expected} by Python.{cure}"
        )


_CURE = (
    " The Python code of a compiled function runs once, when it is traced: values must come from "
    "arguments and Variables, and not from Python objects that change, np.random or the time."
)


def _by_path(name: str, tree: Any) -> Named:
    found = jax.tree.leaves_with_path(tree, is_leaf=_is_leaf)
    return {f"{name}{jax.tree_util.keystr(path)}": x for path, x in found}


def _list_kinds(form: Any) -> Any:
    """Return the classes of the nodes of a tree."""
    node = form.node_data()
    return node and (node[0].__name__, *map(_list_kinds, form.children()))


def _to_numpy(value: Any) -> Any:
    """Return a number or array as a NumPy array, and all else as it is."""
    if isinstance(value, jax.Array) and is_key(value):
        value = jax.random.key_data(value)
    if not _is_array(value) or (type(value) is int and _is_too_large(value)):
        return value
    return np.asarray(jnp.asarray(value))


def _is_too_large(value: int) -> bool:
    bounds = jnp.iinfo(jax.dtypes.canonicalize_dtype(np.int64))
    return not bounds.min <= value <= bounds.max


def _is_array(value: object) -> bool:
    """Return whether a leaf is a number or an array of numbers, known or traced."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind not in "OSUT"
    return isinstance(value, jax.Array | bool | int | float | complex)


def _is_leaf(value: object) -> bool:
    return isinstance(value, Owner | ArrayProxy) or type(value) in BOXES


def _describe(value: Any) -> str:
    is_array = isinstance(value, np.ndarray)
    return f"{value.dtype}{list(value.shape)}" if is_array else repr(value)


def _largest(named: Named) -> float:
    """Return the largest size of a finite number in some arrays."""
    sizes = (np.abs(_to_numpy(x)).astype(float) for x in named.values())
    return max((x[np.isfinite(x)].max(initial=0.0) for x in sizes), default=0.0)


def _estimate_rounding(dtype: Any, slack: float) -> float:
    """Return a few units of the last place of 1, in terms of what differences may be."""
    return min(16 * float(jnp.finfo(dtype).eps) / slack, 1.0) if slack else 0.0


def _measure_gaps(found: np.ndarray, expected: np.ndarray, least: float) -> np.ndarray:
    """Return how far two arrays are apart, relative to the largest element expected, or `least`."""
    if not is_inexact(expected):
        return (found != expected).astype(float)
    one, two = (x.astype(np.result_type(x.dtype, np.float64)) for x in (found, expected))
    scale = np.abs(two[np.isfinite(two)]).max(initial=least) or 1.0
    with np.errstate(invalid="ignore"):
        gaps = np.abs(one - two) / scale
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    return np.where(same, 0.0, np.where(np.isfinite(gaps), gaps, np.inf))


def _is_float(value: Any) -> bool:
    """Return whether a leaf is a float, or an array of them, real or complex."""
    dtype = getattr(value, "dtype", type(value))
    return isinstance(value, float | complex) or jnp.issubdtype(dtype, jnp.inexact)


def _weigh(value: Array, before: np.ndarray) -> Array:
    """Return the sum of the elements, with weights; what was not finite before is left out."""
    seen = np.isfinite(before)
    random = np.random.default_rng(before.size)
    weights = [random.standard_normal(before.shape) for _ in ("real", "imag")]
    scale = np.abs(before[seen]).max(initial=1.0)
    wide = jnp.where(seen, value, 0).astype(jnp.promote_types(value.dtype, jnp.float32))
    parts = (wide.real, wide.imag) if jnp.iscomplexobj(wide) else (wide,)
    total: Any = sum(jnp.sum(x * (w / scale).astype(x.dtype)) for x, w in zip(parts, weights))  # noqa: B905
    return total

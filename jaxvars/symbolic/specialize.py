"""A program with unknown dimensions, and the same program for sizes that are known.

JAX can trace a function whose arguments have symbolic sizes: `f32[b, 3]`. What comes out is a
program in which sizes are expressions, `2*b + 1`. Here they are filled in: `at_sizes` runs it
operation by operation with numbers in their place, and has JAX write down what that does.

Rules this file keeps:
- what is made has no symbolic size left, inner programs and derivative rules included;
- what cannot be filled in raises: the caller traces the function itself.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, final

import jax

from jaxvars.objects.interpreter import parse_source
from jaxvars.tracing import jaxprs
from jaxvars.tracing.context import Scoped
from jaxvars.typing import Array, Aval

Size: TypeAlias = Any  # an int, or a symbolic expression

MAY_CHECK: Scoped[bool] = Scoped(False)
"""Whether a function is traced in which what must hold of unknown dimensions may be checked when it
runs, which takes time."""

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max,
    "min": min,
}
_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}

_RULES = frozenset({"jvp_jaxpr_fun", "fwd_jaxpr_thunk"})
"""What JAX calls the rules that it traces later. The rule for going backward is Python's, and is
given arrays of known sizes anyway."""


def is_open(size: Any) -> bool:
    """Return whether a size is symbolic."""
    if type(size) is int:
        return False
    from jax import export

    return export.is_symbolic_dim(size)


@functools.cache
def symbol(name: str) -> Size:
    """Return the symbol of a name: always the same, so that programs with it go together."""
    from jax import export

    (made,) = export.symbolic_shape(name, scope=_scope())
    return made


@functools.cache
def _scope() -> Any:
    from jax import export

    return export.SymbolicScope()


def at_sizes(closed: Any, sizes: Mapping[str, Size]) -> Any:
    """Return a program for known sizes.

    Args:
        closed: a closed jaxpr with symbolic sizes.
        sizes: the number for each symbol.

    >>> from jax import export
    >>> (b,) = export.symbolic_shape("b")
    >>> program = jax.make_jaxpr(lambda x: x * x.shape[0])(jax.ShapeDtypeStruct((b,), "float32"))
    >>> at_sizes(program, {"b": 3}).out_avals
    [ShapedArray(float32[3])]
    """
    made = _Filling(sizes).program(closed)
    jaxpr, info = jaxprs.open_jaxpr(made), jaxprs.open_jaxpr(closed).debug_info
    opened = jaxpr.replace(debug_info=info)
    return opened if jaxpr is made else made.replace(jaxpr=opened)


def size_at(size: Size, sizes: Mapping[str, Size]) -> Size:
    """Return what a size is when the symbols in it are known.

    >>> from jax import export
    >>> b, c = export.symbolic_shape("b, c")
    >>> size_at(2 * b + c // 3, {"b": 3, "c": 7})
    8
    """
    if type(size) is int:
        return size
    return _evaluate(parse_source(str(size).replace("^", "**"), mode="eval").body, sizes)


def _evaluate(node: ast.expr, sizes: Mapping[str, Size]) -> Size:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_evaluate(node.operand, sizes))
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left, sizes), _evaluate(node.right, sizes)
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _FUNCTIONS[node.func.id](*(_evaluate(part, sizes) for part in node.args))
    raise NotImplementedError(f"A size is {ast.unparse(node)}, which is not a number.")


@final
class _Filling:
    """Puts numbers in the place of symbols."""

    def __init__(self, sizes: Mapping[str, Size]) -> None:
        self._size = functools.cache(lambda size: size_at(size, sizes))

    def program(self, program: Any) -> Any:
        """Return a jaxpr, closed or not, for known sizes."""
        specs = [self._spec(var.aval) for var in jaxprs.open_jaxpr(program).invars]
        made = jax.make_jaxpr(lambda *xs: jaxprs.interpret(program, xs, self._run))(*specs)
        if hasattr(program, "consts"):
            return made
        if made.consts:
            raise NotImplementedError("An inner program would close over arrays.")
        return jaxprs.open_jaxpr(made)

    def _spec(self, aval: Aval) -> Any:
        shape = tuple(map(self._size, aval.shape))
        return jax.ShapeDtypeStruct(shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))

    def _run(self, eqn: Any, inputs: Sequence[Array]) -> Sequence[Array]:
        if eqn.primitive.name == "dim_as_value":
            return [jax.numpy.asarray(self._size(eqn.params["dim"]), eqn.outvars[0].aval.dtype)]
        params = {
            name: _Rule(value, self) if name in _RULES else self._param(value)
            for name, value in eqn.params.items()
        }
        return jaxprs.bind_in_scope(eqn.replace(params=params), inputs)

    def _param(self, value: Any) -> Any:
        """Return a parameter of an operation for known sizes."""
        if isinstance(value, int | float | str | bool | None):
            return value
        if is_open(value):
            return self._size(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self._param, value))
        if isinstance(value, tuple | list):
            return type(value)(map(self._param, value))
        if hasattr(jaxprs.open_jaxpr(value), "eqns"):
            return self.program(value) if _mentions(value) else value
        if any(map(is_open, getattr(value, "shape", ()))):  # what kind of array it is
            return value.update(shape=tuple(map(self._size, value.shape)))
        return value


@final
class _Rule:
    """A derivative rule of an operation, which JAX traces when it is needed."""

    def __init__(self, rule: Any, filling: _Filling) -> None:
        self._rule = rule
        self._filling = filling
        self.debug_info = rule.debug_info

    def call_wrapped(self, *zeros: Any) -> Any:
        """Return the rule's program, its constants, and what it says besides."""
        program, *rest = self._rule.call_wrapped(*zeros)
        return self._filling.program(program), *rest


def _mentions(value: Any) -> bool:
    """Return whether symbolic sizes are in a program, or in a parameter of an operation."""
    if isinstance(value, tuple | list):
        return any(map(_mentions, value))
    jaxpr = jaxprs.open_jaxpr(value)
    if not hasattr(jaxpr, "eqns"):
        return is_open(value) or any(map(is_open, getattr(value, "shape", ())))
    variables = [*jaxpr.invars, *(var for eqn in jaxpr.eqns for var in eqn.outvars)]
    if any(is_open(size) for var in variables for size in getattr(var.aval, "shape", ())):
        return True
    return any(_mentions(part) for eqn in jaxpr.eqns for part in eqn.params.values())

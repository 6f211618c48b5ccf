"""Run a program in each way that jaxvars offers, and compare.

Rules this file keeps:
- the reference is the eager run with nothing compiled;
- a way that raises where the reference does not has failed, unless the error is a documented
  refusal (`REFUSALS`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxvars as jv

from .grammar import PRELUDE

REFUSALS = ("Reverse-mode differentiation does not work", "rule of a derivative")
"""Beginnings of errors that say that something cannot be done, and are right."""

_PULLED = ("f_vjp", "f_read", "f_custom")  # have no forward mode
_PUSHED = ("jv.while_loop(",)  # have no reverse mode in JAX
_CUT = ("stop_gradient", "m.mean", "f_read", "bfloat16", "Tape", "acc_")
"""What makes another derivative than that of the numbers: the program says so, or a tape does."""

_WATCHED = ("a", "b", "inner/w")
_SOURCES = ("x", "a", "b", "s", "k", "w")


class Difference(Exception):  # noqa: N818 - what is looked for, not an error of the program
    """Two ways do not agree."""


class Program:
    """A program as source code, and the numbers that it runs on.

    Args:
        source: a module with a class `M` and a function `program(m, x)`.
        wide: whether to run with 64-bit floats.
    """

    def __init__(self, source: str, *, wide: bool) -> None:
        self.dtype = "float64" if wide else "float32"
        self.tolerance = 1e-9 if wide else 3e-4
        self.wide = wide
        self.body = source.removeprefix(PRELUDE)
        self._code = compile(source, "<program>", "exec")
        self.inputs = [np.array(x, self.dtype) for x in ([0.5, -0.9, 0.3], [-0.2, 0.7, 0.1])]

    def fresh(self, compiled: Callable[..., Any]) -> tuple[Any, Callable[..., Any]]:
        """Return a new module, and the program; `compiled` decorates its inner functions."""
        names: dict[str, Any] = {"compiled": compiled, "__name__": "program"}
        exec(self._code, names)
        return names["M"](self.dtype), names["program"]

    # ------------------------------------------------------------ the ways
    def eager(self) -> Any:
        module, program = self.fresh(lambda f: f)
        outputs = [program(module, x) for x in self.inputs]
        return outputs, finals(module)

    def eager_around_compiled(self) -> Any:
        module, program = self.fresh(jv.compile)
        outputs = [program(module, x) for x in self.inputs]
        return outputs, finals(module)

    def compiled(self) -> Any:
        module, program = self.fresh(jv.compile)
        step = jv.compile(program)
        outputs = [step(module, x) for x in self.inputs]
        if step.trace_count != 1:
            raise Difference(f"traced {step.trace_count} times: {step.traces}")
        return outputs, finals(module)

    def pure(self) -> Any:
        module, program = self.fresh(jv.compile)
        before = finals(module)
        run = jax.jit(jv.functionalize(lambda x: program(module, x)))
        state, outputs = jv.State.of(module), []
        for x in self.inputs:
            result, state = run(state, x)
            outputs.append(result)
        agree("variables that a pure function must not change", finals(module), before, 0.0)
        return outputs, dict(state)

    def mapped(self) -> Any:
        """Run over two states at once; return what came out for the second."""
        module, program = self.fresh(lambda f: f)
        states = [jv.State.of(module), moved(jv.State.of(module))]
        both = jax.tree.map(lambda *values: jnp.stack(values), *states)
        run = jax.jit(jax.vmap(jv.functionalize(lambda x: program(module, x)), in_axes=(0, None)))
        return jax.tree.map(lambda value: value[1], run(both, self.inputs[0]))

    def eager_moved(self) -> Any:
        module, program = self.fresh(lambda f: f)
        moved(jv.State.of(module)).commit()
        return program(module, self.inputs[0]), finals(module)

    def gradients(self, compiled: Callable[..., Any], outer: Callable[..., Any]) -> Any:
        """Return what a tape around the program finds."""
        module, program = self.fresh(compiled)
        step = outer(program)
        found = []
        for x in self.inputs:
            with jv.GradientTape() as tape:
                tape.watch(x)
                loss = total(step(module, x))
            sources = [x, module.a, module.b, module.s, module.k, module.inner.w]
            found.append(dict(zip(_SOURCES, tape.gradient(loss, sources), strict=True)))
        return found

    def slopes(self) -> Any:
        """Return the derivative of the pure function in one direction, in three ways."""
        module, program = self.fresh(jv.compile)
        pure = jv.functionalize(lambda x: program(module, x))
        state = jv.State.of(module)

        def along(t: Any) -> Any:
            return total(pure(moved(state, t), self.inputs[0] + t)[0])

        run, step = jax.jit(along), 1e-5
        numerical = (run(step) - run(-step)) / (2 * step)
        if not self._uses(_PULLED):
            forward = jax.jit(lambda t: jax.jvp(along, (t,), (1.0,))[1])(0.0)
            agree("forward derivative and finite differences", forward, numerical, 1e-5)
        if not self._uses(_PUSHED):
            reverse = jax.jit(jax.grad(along))(0.0)
            agree("reverse derivative and finite differences", reverse, numerical, 1e-5)

    def assigns(self, outer: Callable[..., Any]) -> None:
        """Compare a tape that goes through assigns with the gradient of the pure function."""
        module, program = self.fresh(jv.compile)
        step, x, whole = outer(program), self.inputs[0], jv.State.of(module)
        pure = jv.functionalize(lambda x: total(program(module, x)))
        part = {name: whole[name] for name in _WATCHED}
        wanted = jax.jit(jax.grad(lambda part: pure(whole.replace(part), x)[0]))(part)
        with jv.GradientTape(through_assigns=True) as tape:
            loss = total(step(module, x))
        sources = [module.a, module.b, module.inner.w]
        grads = tape.gradient(loss, sources, unconnected_gradients="zero")
        agree("a tape", dict(zip(_WATCHED, grads, strict=True)), wanted, self.tolerance)

    def _uses(self, words: tuple[str, ...]) -> bool:
        return any(word in self.body for word in words)

    # ------------------------------------------------------------ the comparison
    def check(self, ways: set[str]) -> None:
        """Compare some ways with the reference.

        Raises:
            Difference: naming the way, and what differs.
        """
        with warnings.catch_warnings(), jax.enable_x64(self.wide):
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", jv.errors.GradientWarning)  # None where that is right
            self.inputs = list(map(jnp.asarray, self.inputs))
            expected = attempt("eager", self.eager)
            for way in ("compiled", "pure", "eager_around_compiled"):
                if way in ways:
                    agree(way, attempt(way, getattr(self, way)), expected, self.tolerance)
            if "mapped" in ways:
                found, wanted = attempt("mapped", self.mapped), self.eager_moved()
                agree("mapped", (found[0], dict(found[1])), wanted, self.tolerance)
            if "gradients" in ways:
                self._check_gradients()
            if "assigns" in ways and not self._uses((*_CUT, *_PUSHED)):
                attempt("assigns, eager", lambda: self.assigns(lambda f: f))
                attempt("assigns, compiled", lambda: self.assigns(jv.compile))
            if "slopes" in ways and self.wide and not self._uses(_CUT):
                attempt("slopes", self.slopes)

    def _check_gradients(self) -> None:
        plain = lambda f: f  # noqa: E731 - one name for the ways below
        expected = attempt("eager tape", lambda: self.gradients(plain, plain))
        for name, ways in {
            "tape around compiled parts": (jv.compile, plain),
            "tape around compiled": (jv.compile, jv.compile),
        }.items():
            agree(name, attempt(name, lambda ways=ways: self.gradients(*ways)), expected,
                  self.tolerance)  # fmt: skip


# ---------------------------------------------------------------- parts
def attempt(way: str, run: Callable[[], Any]) -> Any:
    """Run; make an error a Difference, but for a refusal."""
    try:
        return run()
    except Difference as error:
        raise Difference(f"{way}: {error}") from None
    except Exception as error:
        if any(refusal in str(error) for refusal in REFUSALS):
            raise
        raise Difference(f"{way} raised {type(error).__name__}: {str(error)[:600]}") from error


def finals(module: Any) -> dict[str, Any]:
    return {path: np.asarray(value) for path, value in jv.State.of(module).items()}


def moved(state: Any, by: Any = 0.25) -> Any:
    """Return a state with every float shifted by a number, those of 16 bits excepted."""

    def move(value: Any) -> Any:
        is_wide = jnp.issubdtype(value.dtype, jnp.floating) and value.dtype.itemsize > 2
        return value + jnp.asarray(by, value.dtype) if is_wide else value

    return jax.tree.map(move, state)


def total(outputs: Any) -> Any:
    return sum(jnp.sum(jnp.sin(value)) for value in outputs)


def agree(way: str, found: Any, expected: Any, tolerance: float) -> None:
    """Raise Difference unless two trees are equal, None or zeros, only where the other one is."""
    is_none = lambda x: x is None  # noqa: E731 - said once
    one, other = (jax.tree.leaves_with_path(t, is_leaf=is_none) for t in (found, expected))
    if len(one) != len(other):
        raise Difference(f"{way}: {len(one)} values for {len(other)}")
    for (path, a), (_, b) in zip(one, other, strict=True):
        where = f"{way}: {jax.tree_util.keystr(path)}"
        if a is None or b is None:
            if any(np.any(np.asarray(value)) for value in (a, b) if value is not None):
                raise Difference(f"{where} is {a}, and {b} eagerly")
        elif np.asarray(a).dtype != np.asarray(b).dtype:
            raise Difference(f"{where} is {a.dtype}, and {b.dtype} eagerly")
        else:
            one_, two = (np.asarray(v).astype(np.float64) for v in (a, b))
            if not np.allclose(one_, two, rtol=tolerance, atol=tolerance):
                raise Difference(f"{where} is {one_.tolist()}, and {two.tolist()} eagerly")

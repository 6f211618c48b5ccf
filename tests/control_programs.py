"""Programs with loops and branches over variables, to be run in every way there is.

Each makes its variables again and returns (variables, function, arguments). Rules of this file:
- a program gives the same eagerly, compiled, under a tape and as a pure function;
- one that no reverse gradient goes through (a loop of unknown length) says `@program(False)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxvars as jv


class Case(NamedTuple):
    """A program: what makes it, and whether a reverse gradient goes through it."""

    make: Callable[[], tuple[Any, Callable[..., Any], tuple[Any, ...]]]
    differentiable: bool

    @property
    def name(self) -> str:
        return self.make.__name__


PROGRAMS: list[Case] = []


def program(differentiable: bool = True) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def keep(make: Callable[[], Any]) -> Callable[[], Any]:
        PROGRAMS.append(Case(make, differentiable))
        return make

    return keep


# ---------------------------------------------------------------- branches
@program()
def cond_assigns_in_one_branch():
    v = jv.Variable(2.0, name="v")

    def f(x: Any) -> Any:
        y = jv.cond(x > 0, lambda: v.assign_add(x * v) * 2, lambda: x * v)
        return y + v

    return [v], f, (jnp.float32(1.5),)


@program()
def cond_that_does_not_hold():
    v = jv.Variable(2.0, name="v")

    def f(x: Any) -> Any:
        return jv.cond(x < 0, lambda: v.assign_add(1.0), lambda: x * v) + v * x

    return [v], f, (jnp.float32(1.5),)


@program()
def cond_on_a_variable():
    on, v = jv.Variable(True, name="on"), jv.Variable(1.0, name="v")

    def f(x: Any) -> Any:
        def first() -> Any:
            on.assign(False)
            return v.assign(x * 3)

        return jv.cond(on, first, lambda: v * x)

    return [on, v], f, (jnp.float32(2.0),)


@program()
def cond_with_operands():
    v = jv.Variable([1.0, 2.0], name="v")

    def f(x: Any) -> Any:
        def add(variable: Any, value: Any) -> Any:
            variable.assign_add(value["a"])
            return {"sum": variable + value["b"]}

        def keep(variable: Any, value: Any) -> Any:
            return {"sum": variable * value["b"]}

        return jv.cond(x[0] > 0, add, keep, v, {"a": x, "b": 2.0})

    return [v], f, (jnp.array([1.0, -1.0]),)


@program()
def switch_over_three():
    a, b = jv.Variable(1.0, name="a"), jv.Variable(2.0, name="b")
    index = jv.Variable(0, name="index")

    def f(x: Any) -> Any:
        branches = [lambda: a.assign_add(x), lambda: b.assign(a * x), lambda: a * b]
        y = jv.switch(index, branches)
        index.assign_add(2)
        return y * a

    return [a, b, index], f, (jnp.float32(3.0),)


@program()
def swap_in_a_branch():
    a, b = jv.Variable(1.0, name="a"), jv.Variable(2.0, name="b")

    def f(x: Any) -> Any:
        def swap() -> Any:
            old = a.value
            a.assign(b)
            b.assign(old)
            return a - b

        return jv.cond(x > 0, swap, lambda: x) * a

    return [a, b], f, (jnp.float32(3.0),)


@program()
def branches_that_return_nothing():
    v = jv.Variable(1.0, name="v")

    def f(x: Any) -> Any:
        def change() -> None:
            v.assign(x * x)

        result = jv.cond(x > 0, change, lambda: None)
        assert result is None
        return v * x

    return [v], f, (jnp.float32(3.0),)


# ---------------------------------------------------------------- while
@program(False)
def while_over_a_variable():
    n, steps = jv.Variable(6, name="n"), jv.Variable(0, name="steps")

    def f(x: Any) -> Any:
        def body(total: Any) -> Any:
            n.assign(jnp.where(n % 2 == 0, n // 2, 3 * n + 1))
            steps.assign_add(1)
            return total + n

        return jv.while_loop(lambda _: n != 1, body, x)

    return [n, steps], f, (jnp.int32(0),)


@program(False)
def while_whose_condition_assigns():
    asked, v = jv.Variable(0, name="asked"), jv.Variable(1.0, name="v")

    def f(x: Any) -> Any:
        def test(y: Any) -> Any:
            asked.assign_add(1)
            return y < 50.0

        def body(y: Any) -> Any:
            v.assign(v * 1.5)
            return y * v + 1.0

        return jv.while_loop(test, body, x) + v

    return [asked, v], f, (jnp.float32(2.0),)


@program()
def bounded_while():
    v = jv.Variable(1.5, name="v")

    def f(x: Any) -> Any:
        def body(y: Any) -> Any:
            v.assign_add(0.25 * y)
            return y * v

        return jv.while_loop(lambda y: y < 30.0, body, x, max_iterations=8)

    return [v], f, (jnp.float32(2.0),)


@program()
def bounded_while_that_meets_its_bound():
    v, asked = jv.Variable(1.5, name="v"), jv.Variable(0, name="asked")

    def f(x: Any) -> Any:
        def test(y: Any) -> Any:
            asked.assign_add(1)
            return y < 1e9

        return jv.while_loop(test, lambda y: y * v.assign_add(0.1), x, max_iterations=3)

    return [v, asked], f, (jnp.float32(2.0),)


@program()
def while_that_does_not_run():
    v = jv.Variable(1.5, name="v")

    def f(x: Any) -> Any:
        return jv.while_loop(lambda y: y < 0, lambda y: v.assign_add(y), x, max_iterations=4) * v

    return [v], f, (jnp.float32(2.0),)


# ---------------------------------------------------------------- fori
@program()
def fori_assigns_and_reads():
    v = jv.Variable(1.0, name="v")

    def f(x: Any) -> Any:
        def body(i: Any, total: Any) -> Any:
            v.assign_add(x * i)
            v.assign(v * 1.1)
            return total + v * x

        return jv.fori_loop(1, 5, body, 0.0)

    return [v], f, (jnp.float32(0.5),)


@program()
def fori_unrolled():
    v = jv.Variable(1.0, name="v")
    body = lambda i, total: total * v.assign_add(i * 0.5)  # noqa: E731

    return [v], lambda x: jv.fori_loop(-2, 3, body, x, unroll=2), (jnp.float32(0.5),)


@program()
def fori_without_iterations():
    v = jv.Variable(1.0, name="v")

    def f(x: Any) -> Any:
        never = jv.fori_loop(3, 1, lambda i, y: v.assign_add(y), x)
        return jv.fori_loop(0, 0, lambda i, y: v.assign_add(y), never) * v

    return [v], f, (jnp.float32(0.5),)


@program(False)
def fori_with_traced_bounds():
    v, n = jv.Variable(1.0, name="v"), jv.Variable(4, name="n")

    def f(x: Any) -> Any:
        y = jv.fori_loop(-1, n, lambda i, y: y + v.assign_add(x) * i, x)
        n.assign_sub(7)
        return y

    return [v, n], f, (jnp.float32(0.5),)


# ---------------------------------------------------------------- scan
@program()
def scan_rnn_cell():
    w, b = jv.Variable([[0.5, -0.2], [0.1, 0.3]], name="w"), jv.Variable([0.1, 0.2], name="b")
    seen = jv.Variable(0, name="seen")

    def f(xs: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            seen.assign_add(1)
            h = jnp.tanh(h @ w + x + b)
            return h, h.sum()

        return jv.scan(cell, jnp.zeros(2), xs)

    return [w, b, seen], f, (jnp.arange(6.0).reshape(3, 2) / 5,)


@program()
def scan_in_reverse():
    v = jv.Variable(1.0, name="v")

    def f(xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            v.assign(v + x["a"])
            return c * x["b"], {"y": c + v, "none": None}

        return jv.scan(step, 1.0, {"a": xs, "b": xs * 2}, reverse=True)

    return [v], f, (jnp.array([1.0, 2.0, 0.5]),)


@program()
def scan_with_a_length():
    v = jv.Variable(0.5, name="v")
    step = lambda c, _: (c * v.assign_add(0.5), c)  # noqa: E731

    return [v], lambda x: jv.scan(step, x, None, length=4, unroll=2), (jnp.float32(2.0),)


@program()
def scan_over_nothing():
    v = jv.Variable(0.5, name="v")

    def f(x: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            return c * v.assign_add(1.0) + row.sum(), row * c

        return jv.scan(step, x, jnp.zeros((0, 3)))

    return [v], f, (jnp.float32(2.0),)


@program()
def scan_with_python_numbers():
    v = jv.Variable(0.5, name="v")

    def f(xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            count, total = c
            return (count + 1, total + x * v), 1

        return jv.scan(step, (0, 0), xs)

    return [v], f, (jnp.array([1.0, 2.0]),)


@program()
def scan_over_keys():
    v = jv.Variable(0.5, name="v")
    key = jv.Variable(jax.random.key(7), name="key")

    def f(x: Any) -> Any:
        keys = jax.random.split(key.value, 3)

        def step(c: Any, k: Any) -> Any:
            new, draw = jax.random.split(key.value)
            key.assign(new)
            y = c + v * jax.random.normal(k) * jax.random.uniform(draw)
            return y, (y, jax.random.key_data(k))

        return jv.scan(step, x, keys)[1][0]

    return [v, key], f, (jnp.float32(2.0),)


@program()
def collects_what_it_assigns():
    v = jv.Variable([1.0, 2.0], name="v")

    def f(xs: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            v.assign_add(x * v)
            return None, v * 2

        return jv.scan(step, None, xs)[1]

    return [v], f, (jnp.array([0.5, -1.0, 2.0]),)


# ---------------------------------------------------------------- maps
@program()
def map_with_an_assign():
    v = jv.Variable(1.0, name="v")

    return [v], lambda xs: jv.map_fn(lambda x: v.assign_add(x) * x, xs), (jnp.arange(4.0),)


@program()
def map_in_batches():
    v = jv.Variable(3.0, name="v")

    def f(xs: Any) -> Any:
        return jv.map_fn(lambda x: {"y": v * x["a"] ** 2}, {"a": xs}, batch_size=2)

    return [v], f, (jnp.arange(5.0),)


@program()
def vectorized_over_two_axes():
    v = jv.Variable([1.0, 2.0, 3.0], name="v")

    def f(xs: Any) -> Any:
        def one(x: Any) -> Any:
            return x["a"] * v + x["b"], jnp.sum(x["a"] * v)

        elems = {"a": xs, "b": 2.0}
        return jv.vectorized_map(one, elems, in_axes={"a": 1, "b": None}, out_axes=(1, 0))

    return [v], f, (jnp.arange(6.0).reshape(3, 2),)


@program()
def loops_inside_a_vectorized_map():
    v = jv.Variable(0.5, name="v")

    def f(xs: Any) -> Any:
        def one(x: Any) -> Any:
            y = jv.scan(lambda c, i: (c * v + i, c), x, jnp.arange(3.0))[0]
            return jv.cond(y > 1, lambda: y * v, lambda: x)

        return jv.vectorized_map(one, xs)

    return [v], f, (jnp.array([-1.0, 0.5, 4.0]),)


@program()
def recomputed_with_an_assign():
    v, calls = jv.Variable(0.5, name="v"), jv.Variable(0, name="calls")

    @jv.recompute
    def block(x: Any) -> Any:
        calls.assign_add(1)
        return jnp.sin(v * x)

    return [v, calls], lambda x: block(x) + block(2 * x), (jnp.float32(1.5),)


# ---------------------------------------------------------------- nested
@program()
def three_deep():
    v, hits = jv.Variable(1.0, name="v"), jv.Variable(0, name="hits")

    def f(xs: Any) -> Any:
        def outer(c: Any, x: Any) -> Any:
            def inner(i: Any, y: Any) -> Any:
                def yes() -> Any:
                    hits.assign_add(1)
                    return v.assign_add(0.1 * x) * y

                return jv.cond(y + i > 1.03, yes, lambda: y * 0.5 + v)

            return c + jv.fori_loop(0, 3, inner, x), v * x

        return jv.scan(outer, 0.0, xs)

    return [v, hits], f, (jnp.array([0.1, 1.0, -2.0]),)


@program(False)
def while_in_a_branch_in_a_while():
    v, n = jv.Variable(1.0, name="v"), jv.Variable(0, name="n")

    def f(x: Any) -> Any:
        def inner(y: Any) -> Any:
            n.assign_add(1)
            return y * 2

        def outer(y: Any) -> Any:
            def grow() -> Any:
                return jv.while_loop(lambda y: y < 4 * v, inner, y)

            return jv.cond(n < 6, grow, lambda: v.assign_add(1.0) * 10 + y) + 1

        return jv.while_loop(lambda y: y < 40, outer, x)

    return [v, n], f, (jnp.float32(0.25),)


@program()
def cond_in_recompute_in_scan():
    v = jv.Variable(1.0, name="v")

    def f(xs: Any) -> Any:
        @jv.recompute
        def block(c: Any, x: Any) -> Any:
            return jv.cond(x > 0, lambda: jnp.sin(c * v), lambda: v.assign_add(x) * c)

        return jv.scan(lambda c, x: (block(c, x), c), 0.5, xs)

    return [v], f, (jnp.array([1.0, -0.5, 2.0]),)


@program()
def compiled_functions_in_a_loop():
    v = jv.Variable(1.0, name="v")

    @jv.compile
    def inner(x: Any) -> Any:
        v.assign_add(x)
        return jv.cond(v > 2.03, lambda: v * x, lambda: x)

    return [v], lambda xs: jv.map_fn(lambda x: inner(x) + inner(-x / 2), xs), (jnp.arange(4.0),)


# ---------------------------------------------------------------- tapes inside
@program()
def descent_in_a_loop():
    w = jv.Variable([1.0, -1.0], name="w")

    def f(xs: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            with jv.GradientTape() as tape:
                loss = jnp.sum((w * x - 1) ** 2)
            w.assign_sub(0.1 * tape.gradient(loss, w))
            return None, loss

        return jv.scan(step, None, xs)[1]

    return [w], f, (jnp.array([[1.0, 2.0], [0.5, 0.1], [1.0, 1.0]]),)


@program()
def tape_around_a_loop_inside():
    w = jv.Variable(0.5, name="w")

    def f(xs: Any) -> Any:
        with jv.GradientTape() as tape:
            y = jv.scan(lambda c, x: (jnp.tanh(c * w + x), c), 0.0, xs)[0]
        grad = tape.gradient(y, w)
        return w.assign_sub(grad) * grad

    return [w], f, (jnp.array([0.3, -0.2, 0.5]),)


@program(False)
def descent_in_a_while():
    w, n = jv.Variable(5.0, name="w"), jv.Variable(0, name="n")

    def f(x: Any) -> Any:
        def step(_: Any) -> Any:
            n.assign_add(1)
            with jv.GradientTape() as tape:
                loss = (w - x) ** 2
            w.assign_sub(0.3 * tape.gradient(loss, w))
            return loss

        return jv.while_loop(lambda loss: loss > 1e-2, step, jnp.inf)

    return [w, n], f, (jnp.float32(1.0),)


# ---------------------------------------------------------------- dtypes
def _counter_of(dtype: Any, start: Any) -> Callable[[], Any]:
    def make() -> Any:
        v = jv.Variable(jnp.asarray(start, dtype), name="v")

        def f(x: Any) -> Any:
            def body(_: Any, n: Any) -> Any:
                jv.cond(n == 1, lambda: v.assign(v * v), lambda: v.value)
                return n + 1

            n = jv.fori_loop(0, 3, body, 0)
            return v.value, n, x * 2

        return [v], f, (jnp.float32(1.0),)

    make.__name__ = f"variable_of_{jnp.dtype(dtype).name}"
    return make


for _dtype, _start in [
    (jnp.int32, 3), (jnp.uint8, [2, 3]), (jnp.bool_, [True, False]), (jnp.bfloat16, 1.5),
    (jnp.float16, [0.5, 2.0]), (jnp.complex64, [1 + 2j, 0.5]),
]:  # fmt: skip
    program()(_counter_of(_dtype, _start))

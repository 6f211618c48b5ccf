"""Random programs over the variables of a module, as source code.

A program is a list of statements; a statement has expressions and blocks of statements in it. Each
block carries one vector, `{r}`, on; what a statement computes is mixed into that. Values stay in
[-1, 1], so that nothing overflows, and comparisons are made with odd numbers, so that rounding
decides none of them, nor an optimizer's step. A rule of a program's own gives the derivative of its
function: of others, the second derivative depends on who differentiates what. What a branch or loop
gives is computed with before a tape watches it: run by Python it may be the very object that went
in.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

PRELUDE = """
import jax, jax.numpy as jnp, jaxvars as jv

def bounded(value):
    return jnp.tanh(value)

@jax.custom_jvp
def f_jvp(v):
    return jnp.sin(v)
f_jvp.defjvps(lambda t, out, v: t * jnp.cos(v))

@jax.custom_vjp
def f_vjp(v):
    return jnp.sin(v)
f_vjp.defvjp(lambda v: (jnp.sin(v), v), lambda v, g: (g * jnp.cos(v),))

def f_read(m, v):
    @jax.custom_vjp
    def f(v, t):
        return t * jnp.sin(v)
    f.defvjp(
        lambda v, t: (t * jnp.sin(v), v), lambda v, g: (g * jnp.cos(v) * m.t.value, None))
    return f(v, jax.lax.stop_gradient(m.t.value))

def f_custom(m, v):
    @jv.custom_gradient
    def f(v):
        s = m.s.value
        def grad(up, variables):
            return up * s * jnp.cos(v), [jnp.sum(up * jnp.sin(v))]
        return s * jnp.sin(v), grad
    return f(v)

class Inner(jv.Module):
    def __init__(self, dtype):
        self.w = jv.Variable([0.3, -0.2, 0.7], dtype=dtype, name="w")

class M(jv.Module):
    def __init__(self, dtype):
        self.a = jv.Variable([0.1, 0.4, -0.3], dtype=dtype, name="a")
        self.b = jv.Variable([-0.6, 0.2, 0.5], dtype=dtype, name="b")
        self.s = jv.Variable(0.8, dtype=dtype, name="s")
        self.k = jv.Variable([[0.2, 0.1, 0.0], [0.3, -0.4, 0.1], [0.0, 0.5, 0.2]], dtype=dtype)
        self.t = jv.Variable(0.9, dtype=dtype, trainable=False, name="t")
        self.h = jv.Variable([0.5, 0.25, -0.5], dtype="bfloat16", name="h")
        self.n = jv.Variable(2, name="n")
        self.flag = jv.Variable(True, name="flag")
        self.inner = Inner(dtype)
        self.gen = jv.random.Generator(7)
        self.mean = jv.metrics.Mean()
        self.opt = jv.optimizers.Adam(0.1, epsilon=1e-3)
        self.opt.build([self.a, self.inner.w])
"""


@dataclass(frozen=True)
class Expression:
    """A template with a place for each argument, and {r} for the vector carried on."""

    template: str
    arguments: tuple[Expression, ...] = ()

    def render(self, r: str) -> str:
        return self.template.format(*(e.render(r) for e in self.arguments), r=r)


@dataclass(frozen=True)
class Statement:
    """Lines with places for expressions, and `<0>` where a block of statements goes."""

    lines: tuple[str, ...]
    expressions: tuple[Expression, ...] = ()
    blocks: tuple[Block, ...] = ()
    is_apart: bool = False  # a function at the top of the module, and a call of it in the last line


Block = tuple[Statement, ...]


# ---------------------------------------------------------------- expressions
_VECTORS = [
    *["x", "{r}", "{r}", "m.a.value", "m.b", "m.inner.w", "m.s * jnp.ones_like(x)"],
    *["m.h.astype(x.dtype)", "m.n.astype(x.dtype) / 7 + 0 * x", "0.25 + 0 * x", "m.a[::-1]"],
    *["m.gen.normal((3,), dtype=x.dtype)", "m.k.value[m.n.value % 3]", "m.t * x"],
]
_UNARY = [
    *["jnp.sin({0})", "bounded({0})", "({0})[::-1]", "jnp.cumsum({0}) / 3", "jax.nn.silu({0})"],
    *["jnp.sum({0}) / 3 + 0 * x", "m.k @ ({0})", "f_jvp({0})", "f_vjp({0})", "f_read(m, {0})"],
    *["f_custom(m, {0})", "jax.lax.stop_gradient({0})", "jax.nn.softmax({0})"],
    "jax.vmap(lambda e: jnp.sin(e) * m.s.value)({0})",
    "jax.lax.scan(lambda c, e: (bounded(c + e), c), m.s.value, {0})[1]",
    "jax.jit(lambda v: jnp.sin(v) * 0.5)({0})",
]
_BINARY = ["({0}) + ({1})", "({0}) - ({1})", "({0}) * ({1})"]
_TESTS = ["jnp.sum({0}) > 0.12345", "m.flag.value", "m.n.value % 2 == 0", "jnp.max({0}) < 0.4321"]
_INDICES = ["0", "1", "-1", "m.n.value % 3"]


class Writer:
    """Writes random programs."""

    def __init__(self, seed: object) -> None:
        self.random = random.Random(str(seed))

    def program(self) -> Block:
        return self.block(self.random.randint(1, 4), 0)

    def block(self, size: int, depth: int) -> Block:
        return tuple(self.statement(depth) for _ in range(size))

    def vector(self, depth: int = 0) -> Expression:
        kind = self.random.random()
        if depth > 2 or kind < 0.4:
            return Expression(self.random.choice(_VECTORS))
        if kind < 0.7:
            return Expression(self.random.choice(_UNARY), (self.vector(depth + 1),))
        if kind < 0.95:
            both = self.vector(depth + 1), self.vector(depth + 1)
            return Expression(self.random.choice(_BINARY), both)
        parts = self.test(), self.vector(depth + 1), self.vector(depth + 1)
        return Expression("jnp.where({0}, {1}, {2})", parts)

    def test(self) -> Expression:
        return Expression(self.random.choice(_TESTS), (self.vector(2),))

    def index(self) -> Expression:
        return Expression(self.random.choice(_INDICES))

    def name(self) -> Expression:
        return Expression(self.random.choice(["m.a", "m.b", "m.inner.w"]))

    def statement(self, depth: int) -> Statement:
        """Return a statement; one with blocks in it less often the deeper it is."""
        nested = self.random.random() < (0.6, 0.3, 0.0)[min(depth, 2)]
        kind = self.random.choice(NESTED if nested else SIMPLE)
        holes = {"v": self.vector, "p": self.test, "i": self.index, "n": self.name}
        found = tuple(holes[hole]() for hole in kind.holes)
        blocks = tuple(self.block(self.random.randint(1, 2), depth + 1) for _ in range(kind.blocks))
        return Statement(kind.lines, found, blocks, kind.is_apart)


# ---------------------------------------------------------------- statements
@dataclass(frozen=True)
class Kind:
    """A kind of statement: v, p, i, n in `holes` are a vector, test, index, variable."""

    lines: tuple[str, ...]
    holes: str = ""
    blocks: int = 0
    is_apart: bool = False


def _kind(source: str, holes: str = "", blocks: int = 0, *, is_apart: bool = False) -> Kind:
    return Kind(tuple(source.strip("\n").splitlines()), holes, blocks, is_apart)


def _kinds(text: str) -> list[Kind]:
    """Return the kinds of a text: each after a line of its holes (or -), blocks and `apart`."""
    kinds: list[Kind] = []
    for part in text.strip("\n").removeprefix("# ").split("\n# "):
        head, _, source = part.partition("\n")
        holes, *more = head.split()
        blocks = int(more[0]) if more else 0
        kinds.append(_kind(source, holes.strip("-"), blocks, is_apart="apart" in more))
    return kinds


SIMPLE = [
    _kind("{r} = bounded({r} + {0})", "v"),
    _kind("{0}.assign(bounded({1}))", "nv"),
    _kind("{0}.assign_add(0.3 * bounded({1}))", "nv"),
    _kind("{0}.assign_sub(0.3 * bounded({1}))", "nv"),
    _kind("{0}[{1}].assign(bounded({2})[0])", "niv"),
    _kind("{0}[{1}].assign_add(0.2 * bounded({2})[1])", "niv"),
    _kind("{0}[jnp.array([0, 2, 2])].assign_add(0.1 * bounded({1}))", "nv"),
    _kind("m.s.assign(jnp.sum(bounded({0})) / 3)", "v"),
    _kind("m.t.assign_add(0.1 * bounded({0})[0])", "v"),
    _kind("m.h.assign(bounded({0}).astype(jnp.bfloat16))", "v"),
    _kind("m.n.assign((m.n * 3 + 1) % 5)"),
    _kind("m.n.assign_add(jnp.where({0}, 1, 2))", "p"),
    _kind("m.flag.assign({0})", "p"),
    _kind("m.k[{0}].assign(bounded({1}))", "iv"),
    _kind("m.mean.update_state(bounded({0}))\n{r} = bounded({r} + m.mean.result())", "v"),
    _kind("{r} = bounded({r} + jv.vectorized_map(lambda e: e * m.s.value, {0}))", "v"),
    _kind("for _ in range(2):\n    m.b.assign(bounded(m.b * 0.5 + {0}))", "v"),
    *_kinds("""
# nv
with jv.GradientTape() as tape_{k}:
    loss_{k} = jnp.sum(jnp.sin({1}))
{0}.assign_sub(0.2 * tape_{k}.gradient(loss_{k}, {0}, unconnected_gradients="zero"))
# vv
with jv.GradientTape() as outer_{k}:
    with jv.GradientTape() as tape_{k}:
        loss_{k} = jnp.sum(jnp.sin({0}) * {1})
    slope_{k} = tape_{k}.gradient(loss_{k}, m.a, unconnected_gradients="zero")
    total_{k} = jnp.sum(slope_{k} ** 2)
{r} = bounded({r} + outer_{k}.gradient(total_{k}, m.a, unconnected_gradients="zero"))
# v
with jv.ForwardAccumulator(m.a, jnp.ones_like(x)) as acc_{k}:
    moved_{k} = {0}
{r} = bounded({r} + acc_{k}.jvp(moved_{k}, unconnected_gradients="zero"))
# v
with jv.GradientTape(persistent=True) as tape_{k}:
    tape_{k}.watch({r})
    value_{k} = jnp.sin({0})
{r} = bounded({r} + tape_{k}.gradient(value_{k}, {r}, unconnected_gradients="zero"))
{r} = bounded({r} + tape_{k}.jacobian(value_{k}, m.a, unconnected_gradients="zero")[0])
"""),
]

NESTED = _kinds("""
# p 2
def then_{k}():
    {R} = {r}
    <0>
    return {R}
def other_{k}():
    {R} = {r}
    <1>
    return {R}
{r} = bounded(jv.cond({0}, then_{k}, other_{k}))
# - 1
def one_{k}(v):
    {R} = v
    <0>
    return {R}
def two_{k}(v):
    return jnp.sin(v)
{r} = bounded(jv.switch(m.n.value % 3, [two_{k}, one_{k}, lambda v: v], {r}))
# - 1
def more_{k}(c):
    return c[0] < m.n.value % 3
def body_{k}(c):
    {R} = c[1]
    <0>
    return c[0] + 1, {R}
{r} = bounded(jv.while_loop(more_{k}, body_{k}, (jnp.int32(0), {r}), max_iterations=6)[1])
# - 1
def more_{k}(c):
    return (c[0] < 3) & (jnp.sum(c[1]) < 1.2345)
def body_{k}(c):
    {R} = c[1]
    <0>
    return c[0] + 1, {R}
{r} = bounded(jv.while_loop(more_{k}, body_{k}, (jnp.int32(0), {r}))[1])
# - 1
def body_{k}(i, v):
    {R} = v * jnp.cos(i)
    <0>
    return {R}
{r} = bounded(jv.fori_loop(0, 3, body_{k}, {r}))
# v 1
def body_{k}(c, e):
    {R} = bounded(c + e)
    <0>
    return {R}, {R} * e
{r}, ys_{k} = jv.scan(body_{k}, {r}, {0})
{r} = bounded({r} + ys_{k}[1])
# v 1
def each_{k}(e):
    {R} = e * jnp.ones_like(x)
    <0>
    return {R}
{r} = bounded(jnp.sum(jv.map_fn(each_{k}, {0}), axis=0))
# - 1
def again_{k}(v):
    {R} = v
    <0>
    return {R}
{r} = bounded(jv.recompute(again_{k})({r}))
# - 1 apart
@compiled
def call_{k}(m, x, v):
    {R} = v
    <0>
    return {R}
{r} = bounded(call_{k}(m, x, {r}))
# - 1 apart
def method_{k}(m, x, v):
    {R} = v
    <0>
    return {R}
M.method_{k} = compiled(method_{k})
{r} = bounded(m.method_{k}(x, {r}))
# - 1
with jv.GradientTape() as tape_{k}:
    {R} = {r}
    <0>
    loss_{k} = jnp.sum(jnp.sin({R}))
grads_{k} = tape_{k}.gradient(loss_{k}, [m.a, m.inner.w], unconnected_gradients="zero")
m.opt.apply_gradients(zip(grads_{k}, [m.a, m.inner.w]))
""")


# ---------------------------------------------------------------- source code
def source_of(program: Block) -> str:
    """Return the program as a module with a function `program(m, x)`."""
    apart: list[str] = []
    numbers = count()
    body = list(_lines_of(program, "r", numbers, apart, record=True))
    # Not x itself: a loop that runs eagerly would pass on that very array, which a tape watches.
    inside = ["r, out = x + 0.0, []", *body, "return out"]
    return "\n".join([PRELUDE, *apart, "def program(m, x):", *("    " + s for s in inside), ""])


def _lines_of(
    block: Block, r: str, numbers: Iterator[int], apart: list[str], *, record: bool
) -> Iterator[str]:
    for statement in block:
        yield from _statement(statement, r, numbers, apart)
        if record:
            yield f"out.append({r})"


def _statement(
    statement: Statement, r: str, numbers: Iterator[int], apart: list[str]
) -> Iterator[str]:
    k = next(numbers)
    inner = f"r_{k}"
    arguments = [e.render(r) for e in statement.expressions]
    lines: list[str] = []
    for line in statement.lines:
        text = line.lstrip()
        space = line[: len(line) - len(text)]
        if text.startswith("<"):
            block = statement.blocks[int(text[1])]
            found = list(_lines_of(block, inner, numbers, apart, record=False)) or ["pass"]
        else:
            found = [text.format(*arguments, k=k, r=r, R=inner)]
        lines += [space + part for part in found]
    if statement.is_apart:
        apart.extend(lines[:-1])
        lines = lines[-1:]
    yield from lines


# ---------------------------------------------------------------- smaller programs
def smaller(block: Block) -> Iterator[Block]:
    """Yield programs with a statement less, or something simpler in one."""
    for i, statement in enumerate(block):
        yield block[:i] + block[i + 1 :]
        for inner in statement.blocks:
            yield block[:i] + inner + block[i + 1 :]
        for new in _simpler(statement):
            yield (*block[:i], new, *block[i + 1 :])


def _simpler(statement: Statement) -> Iterator[Statement]:
    for j, block in enumerate(statement.blocks):
        for new in smaller(block):
            blocks = (*statement.blocks[:j], new, *statement.blocks[j + 1 :])
            yield replace(statement, blocks=blocks)
    for j, expression in enumerate(statement.expressions):
        for part in _parts(expression):
            parts = (*statement.expressions[:j], part, *statement.expressions[j + 1 :])
            yield replace(statement, expressions=parts)


def _parts(expression: Expression) -> Iterator[Expression]:
    if expression.template.partition("(")[0] in ("jnp.sum", "jnp.max"):  # a test, not a vector
        return
    if "m.n.value" not in expression.template and "m.flag" not in expression.template:
        yield from (e for e in expression.arguments if not _is_test(e))
    for j, argument in enumerate(expression.arguments):
        for part in _parts(argument):
            parts = (*expression.arguments[:j], part, *expression.arguments[j + 1 :])
            yield replace(expression, arguments=parts)


def _is_test(expression: Expression) -> bool:
    return expression.template in _TESTS

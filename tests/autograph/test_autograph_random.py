"""Random programs: run by Python, converted and run by Python, and compiled, they do the same."""

from __future__ import annotations

import itertools
import linecache
import random

import jax.numpy as jnp
import pytest

import jaxvars as jv

NAMES = "abcd"


class Writer:
    """Writes a function of `if`, `while`, `for`, `break`, `continue`, `return`, `try`, ..."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.counters = itertools.count()

    def pick(self, *options):
        return self.random.choice(options)

    def number(self, depth=0):
        kind = self.random.random()
        if depth > 2 or kind < 0.35:
            return self.pick(*NAMES)
        if kind < 0.5:
            return str(self.random.randint(-3, 5))
        one, other = self.number(depth + 1), self.number(depth + 1)
        if kind < 0.9:
            return f"({one} {self.pick('+', '-', '*')} {other}) % 97"
        return f"({one} if {self.test(depth + 1)} else {other})"

    def test(self, depth=0):
        kind = self.random.random()
        if depth > 2 or kind < 0.5:
            operator = self.pick("<", ">", "==", "!=", "<=")
            return f"{self.number(depth + 1)} {operator} {self.number(depth + 1)}"
        if kind < 0.8:
            return f"({self.test(depth + 1)} {self.pick('and', 'or')} {self.test(depth + 1)})"
        if kind < 0.9:
            return f"not ({self.test(depth + 1)})"
        return " < ".join(self.number(depth + 1) for _ in range(3))

    def block(self, depth, in_loop, count=None):
        count = count or self.random.randint(1, 3)
        lines = [line for _ in range(count) for line in self.statement(depth, in_loop)]
        return ["    " + line for line in lines]

    def statement(self, depth, in_loop):
        kinds = [self.simple] * 4
        if depth < 3:
            kinds += [self.branch] * 2 + [self.leave] + [self.loop] * 3 + [self.attempt]
        return self.pick(*kinds)(depth, in_loop)

    def simple(self, depth, in_loop):
        return self.pick(
            [f"{self.pick(*NAMES)} = {self.number()}"],
            [f"{self.pick(*NAMES)} += {self.number()}"],
            [f"v.assign_add({self.number()})"],
            [f"a, b = b, {self.number()}"],
            [f"box.x = {self.number()}", "c = box.x"],
            ["count()"],
        )

    def branch(self, depth, in_loop):
        lines = [f"if {self.test()}:", *self.block(depth + 1, in_loop)]
        if self.pick(True, False):
            lines += [f"elif {self.test()}:", *self.block(depth + 1, in_loop)]
        return [*lines, "else:", *self.block(depth + 1, in_loop)] if self.pick(0, 1) else lines

    def leave(self, depth, in_loop):
        ways = [f"return {self.number()}", *(["break", "continue"] if in_loop else [])]
        return [f"if {self.test()}: {self.pick(*ways)}"]

    def loop(self, depth, in_loop):
        k = f"k{next(self.counters)}"
        first, head = self.pick(
            (f"{self.pick(*NAMES)} += x", "for x in xs:"),
            (f"{self.pick(*NAMES)} += i", "for i in range(n):"),
            (f"{self.pick(*NAMES)} += i", f"for i in range({self.random.randint(2, 5)}):"),
            (f"{k} += 1", f"while {k} < {self.random.randint(2, 5)} and {self.test()}:"),
        )
        lines = [f"{k} = 0", head, f"    {first}", *self.block(depth + 1, True)]
        return [*lines, "else:", *self.block(depth + 1, in_loop)] if self.pick(0, 0, 1) else lines

    def attempt(self, depth, in_loop):
        return ["try:", *self.block(depth + 1, in_loop), "finally:", "    d = d + 1"]


START = """
def f(v, box, a, b, n, xs):
    c, d = 1, a
    def count():
        nonlocal d
        d = d + 1
"""
END = "    return (a + b * 3 + c * 5 + d * 7) % 9973\n"


class Box:
    x = 0


def function(seed):
    lines = Writer(seed).block(0, False, count=4)
    text, name = START + "\n".join(lines) + "\n" + END, f"<random program {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = {}
    exec(compile(text, name, "exec"), scope)
    return scope["f"], text


def outcome(run):
    v = jv.Variable(0)
    args = (jnp.int32(3), jnp.int32(-2), jnp.int32(3), jnp.array([2, -1, 4], jnp.int32))
    return int(run(v)(Box(), *args)), int(v)


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 200))]
)
@pytest.mark.filterwarnings("ignore::jaxvars.errors.LeakWarning")  # objects are not set back
def test_random_programs(seed):
    f, text = function(seed)
    expected = outcome(lambda v: lambda *args: f(v, *args))
    assert outcome(lambda v: lambda *args: jv.autograph.convert(f)(v, *args)) == expected, text
    staged = outcome(lambda v: jv.compile(lambda *args: f(v, *args), autograph=True))
    assert staged == expected, text

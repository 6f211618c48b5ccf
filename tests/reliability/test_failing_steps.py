"""Random programs of steps of which some fail: what a variable has after them, and what it says.

Rules of this file:
- a step that fails is given a value that cannot be computed, and that is not known yet;
- what is expected is computed in NumPy, call by call: a call that went through has all its
  effects, or has lost all that it assigns; one that raised has none.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from failing import failing_number

import jaxvars as jv
from jaxvars.errors import ExecutionError

NAMES = "abcd"
SAID = re.compile(r"step\d( or step\d)* failed when it ran: Out of memory .* bytes\. ")
ROOT = jnp.eye(600)


class Step(NamedTuple):
    """A step that assigns numbers made of what it reads; all it assigns at once, or nothing."""

    name: str
    reads: Sequence[str]
    writes: Sequence[str]
    donates: bool
    is_large: bool

    def compile(self, variables: dict[str, jv.Variable]) -> Any:
        def step(x: Any) -> None:
            total = x + sum(variables[name].value.sum() for name in self.reads)
            if self.is_large:
                total += ((ROOT * x) @ ROOT)[0, 1]
            for i, name in enumerate(self.writes):
                variables[name].assign(jnp.full(3, total % 100 + i))

        step.__name__ = step.__qualname__ = self.name
        return jv.compile(step, donate=self.donates)

    def run(self, values: dict[str, Any], x: Any) -> dict[str, Any]:
        """Return what it assigns; None for what has no value afterwards."""
        read = [x, *(values[name] for name in self.reads)]
        if any(value is None for value in read):
            return dict.fromkeys(self.writes) if self.donates else {}
        total = np.float32(sum(np.sum(value) for value in read))
        return {name: np.full(3, total % 100 + i) for i, name in enumerate(self.writes)}


class Program:
    """Variables and steps, and the values that the variables should have."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.values: dict[str, Any] = dict.fromkeys(NAMES, np.zeros(3))
        self.variables = {name: jv.Variable(jnp.zeros(3), name=name) for name in NAMES}
        self.steps = [self._make_step(f"step{i}") for i in range(3)]
        self.compiled = [step.compile(self.variables) for step in self.steps]
        for call in self.compiled * 3:
            call(jnp.float32(0.0))
        for name in NAMES:
            self.assign(name)

    def _make_step(self, name: str) -> Step:
        reads = self.rng.sample(NAMES, self.rng.randint(0, 3))
        writes = self.rng.sample(NAMES, self.rng.randint(1, 3))
        return Step(name, reads, writes, self.rng.random() < 0.7, self.rng.random() < 0.7)

    def call(self, x: Any) -> None:
        i = self.rng.randrange(len(self.steps))
        step, known = self.steps[i], None if x is None else np.float32(x)
        self.compiled[i](failing_number(1000) if x is None else jnp.float32(x))
        self.values.update(step.run(self.values, known))

    def assign(self, name: str) -> None:
        self.variables[name].assign(jnp.full(3, 5.0))
        self.values[name] = np.full(3, 5.0)

    def add(self, name: str) -> None:
        self.variables[name].assign_add(jnp.ones(3))
        self.values[name] = self.values[name] + 1

    def read(self, name: str) -> None:
        np.testing.assert_array_equal(self.variables[name].numpy(), self.values[name])

    def read_all(self, _: str) -> None:
        found = jv.State.of(self.variables)
        for name in NAMES:
            np.testing.assert_array_equal(found[name], self.values[name])

    def commit(self, name: str) -> None:
        jv.State.of({name: self.variables[name]}).replace({name: jnp.full(3, 6.0)}).commit()
        self.values[name] = np.full(3, 6.0)

    def transact(self, name: str) -> None:
        other = self.rng.choice(NAMES)
        with jv.transaction():
            self.variables[name].assign(jnp.full(3, 7.0))
            self.variables[other].assign(self.variables[name] + 1)
        self.values.update({name: np.full(3, 7.0), other: np.full(3, 8.0)})

    def part(self, name: str) -> None:
        self.variables[name][1].assign(9.0)
        self.values[name] = np.array([self.values[name][0], 9.0, self.values[name][2]])

    def show(self, name: str) -> None:
        text = repr(self.variables[name])
        assert self.values[name] is None or f" {self.values[name].astype(int)[0]}." in text, text

    def do_anything(self) -> None:
        """Call a step, or touch a variable; what has failed may be said by it."""
        touches = [self.assign, self.add, self.read, self.read_all, self.commit, self.transact]
        action = self.rng.choice([*[self.call] * 10, *touches, self.part, self.show])
        argument = self.rng.choice([None, 0.0, 1.0] if action == self.call else NAMES)
        try:
            action(argument)
        except ExecutionError as error:
            said = str(error)
        else:
            return
        assert SAID.match(said)

    def has(self, name: str) -> bool:
        """Return whether a variable has a value, the right one; it says why not."""
        for _ in range(len(self.steps) + 1):  # each step that has failed may be said once
            try:
                self.read(name)
            except ExecutionError as error:
                said = str(error)
            else:
                return True
            assert SAID.match(said)
        assert f"'{name}'" in said
        return False


@pytest.mark.parametrize("seed", range(20))
def test_steps_that_fail_change_nothing_or_lose_what_they_say(seed: int):
    for i in range(10):
        program = Program(random.Random(10 * seed + i))
        for _ in range(program.rng.randint(2, 10)):
            program.do_anything()
        names = program.rng.sample(NAMES, len(NAMES)) * 2
        assert [program.has(name) for name in names] == [
            program.values[name] is not None for name in names
        ]
        for name in NAMES:
            program.assign(name)
        for _ in range(3):
            program.call(1.0)
        assert all(map(program.has, NAMES))

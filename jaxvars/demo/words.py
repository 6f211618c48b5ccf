"""`python -m jaxvars tour`: the words of the library, one after another, each as a program.

Rule of this file: a program uses what the ones before it made, `jv`, `jax` and `jnp`, and shows
something; it is read before it runs.
"""

from __future__ import annotations

import linecache
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.markdown import Markdown
from rich.syntax import Syntax

import jaxvars as jv


class Stop(NamedTuple):
    """A word of the library.

    Attributes:
        word: what it is called.
        text: what it is for, in a sentence or two.
        program: what shows it.
    """

    word: str
    text: str
    program: str


STOPS = (
    Stop(
        "Variable",
        "A JAX array never changes. A `Variable` holds one, is read like one, and is assigned in "
        "place.",
        """
w = jv.Variable([1.0, 2.0], name="w")
w.assign_add([10.0, 10.0])
print(w)
print(jnp.sum(w) * 2)
""",
    ),
    Stop(
        "compile",
        "`jv.compile` finds the variables that a function reads and assigns, and runs it as one "
        "XLA program. Python's part of it, like the `print`, runs once, while it is traced.",
        """
total = jv.Variable(0.0, name="total")

@jv.compile
def add(x):
    print("tracing")
    total.assign_add(x)
    return total * 2

print(add(1.0), add(2.0), total)
""",
    ),
    Stop(
        "GradientTape",
        "A tape records what is computed from variables, and gives the gradients.",
        """
with jv.GradientTape() as tape:
    loss = jnp.sum(w**2)
print(tape.gradient(loss, w))
""",
    ),
    Stop(
        "Module",
        "A Module is an object with variables in its attributes. They are found, with their paths.",
        """
class Line(jv.Module):
    def __init__(self):
        self.slope = jv.Variable(0.0, name="slope")
        self.offset = jv.Variable(0.0, name="offset")

    def __call__(self, x):
        return self.slope * x + self.offset

line = Line()
print(list(line.named_variables))
""",
    ),
    Stop(
        "A training step",
        "These four make a training step. Optimizers, losses, metrics and checkpoints are there as "
        "well: `jv.optimizers`, `jv.losses`, `jv.metrics`, `jv.checkpoint`.",
        """
x = jnp.linspace(-1.0, 1.0, 32)
y = 3.0 * x + 0.5
adam = jv.optimizers.Adam(0.1)

@jv.compile
def step(x, y):
    with jv.GradientTape() as tape:
        loss = jnp.mean((line(x) - y) ** 2)
    adam.minimize(loss, line, tape)
    return loss

for _ in range(200):
    loss = step(x, y)
print(line.slope, line.offset, loss)
""",
    ),
    Stop(
        "State",
        "The values of all variables of an object, as a pytree: a value that can be kept, changed "
        "and committed back.",
        """
state = jv.State.of(line)
print(dict(state))
line.slope.assign(-100.0)
state.commit()  # as it was
print(line.slope)
""",
    ),
    Stop(
        "functionalize",
        "The same function in pure form, (state, arguments) -> (result, new state), for any JAX "
        "transform. Here: the model with five slopes at once, and none of them assigned.",
        """
pure = jv.functionalize(line)
slopes = jnp.arange(5.0)
states = jax.vmap(lambda slope: state.replace({"slope": slope}))(slopes)
results, _ = jax.vmap(pure, in_axes=(0, None))(states, jnp.float32(2.0))
print(results)
print(line.slope)
""",
    ),
    Stop(
        "cond, while_loop, scan",
        "Branches and loops in a compiled function; their functions may assign variables. With "
        "`jv.compile(autograph=True)` Python's own `if`, `while` and `for` become these.",
        """
rises = jv.Variable(0, name="rises")

@jv.compile(autograph=True)
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
            rises.assign_add(1)
        steps += 1
    return steps

print(collatz(27), rises)
""",
    ),
    Stop(
        "mesh, place",
        "A mesh is an array of devices. `jv.place` shards the variables of a model over it by "
        "rules from paths to specs; compiled functions stay as they are.",
        """
mesh = jv.mesh({"data": min(2, jax.device_count())})
print(jv.place(line, {"**": jax.P()}, optimizer=adam, mesh=mesh))
with jv.use_mesh(mesh):
    print(step(*jv.shard((x, y), jax.P("data"))))
""",
    ),
    Stop(
        "plan",
        "What a step will take on each device, before it is run, and without the memory for it.",
        """
print(jv.plan(step, x, y))
""",
    ),
)


def run(console: Console | None = None) -> None:
    """Lead through the words: show each program, and run it. In a terminal, wait in between.

    Args:
        console: what to print on; the terminal when None.
    """
    console = console or Console()
    names = {"jv": jv, "jax": jax, "jnp": jnp}
    for number, stop in enumerate(STOPS, 1):
        console.rule(f"{number} of {len(STOPS)}: {stop.word}")
        console.print(Markdown(stop.text))
        console.print(Syntax(stop.program.strip(), "python", background_color="default"))
        _wait(console, "Enter runs it")
        program, file = stop.program.lstrip(), f"<{stop.word}>"
        linecache.cache[file] = len(program), None, program.splitlines(keepends=True), file
        exec(compile(program, file, "exec"), names)  # autograph reads the lines
    console.print("Next: the notebooks, from 01_variables.ipynb on.")


def _wait(console: Console, what: str) -> None:
    if console.is_terminal and sys.stdin.isatty():
        console.input(f"[dim]{what}[/dim] ")

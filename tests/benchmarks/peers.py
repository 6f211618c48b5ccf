"""The same small programs with jaxvars, plain JAX, flax, equinox, brainstate, TensorFlow, torch.

    python tests/benchmarks/peers.py

What is not installed is left out: `pip install equinox brainstate tensorflow-cpu torch` for all of
it. `python -m tests.benchmarks --readme` prints the README's table of the figures.

Rules of this file:
- a step adds `x` to each of n variables of 8 floats and returns the sum of the first: next to
  nothing to compute, so that the time is what the library itself takes for a call;
- each is written as its library's documentation has it, with donation where there is any;
- a ratio in the README is the median of those of two turns in one round.
"""

from __future__ import annotations

import re
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, final

from measuring import Effort, Found, Row, Step, compared, nnx_ways, run_jobs

COUNTS = (1, 10, 50, 200)
THREADS, UPDATES = 8, 200
LEFT = "left to the caller"


class Peer(ABC):
    """One library's way to write the programs."""

    name: str
    package: ClassVar[str]
    compiler: ClassVar[str]
    keeps_state = True  # in variables, and not passed and returned

    @abstractmethod
    def adder(self, n: int) -> tuple[Step, Step]:
        """Return a step over n variables, and a function that takes the first one's value."""

    @abstractmethod
    def variable(self) -> tuple[Step, Step]:
        """Return a function that reads a variable, 1.0, and one that makes it 2.0."""

    def compiled(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function compiled, by the function that is called so."""
        return resolve_name(self.compiler)(fn)

    def traces_of(self, arguments: range) -> int:
        """Return how often a function of one Python number is traced for some numbers."""
        traces = 0

        def f(i: Any) -> Any:
            nonlocal traces
            traces += 1
            return i * 2

        compiled = self.compiled(f)
        for i in arguments:
            compiled(i)
        return traces


@final
class Jaxvars(Peer):
    name, package = "jaxvars", "jaxvars"
    compiler = "jaxvars:compile"

    def adder(self, n: int) -> tuple[Step, Step]:
        import jax.numpy as jnp

        import jaxvars as jv

        variables, x = [jv.Variable(jnp.zeros(8)) for _ in range(n)], jnp.ones(8)

        @jv.compile
        def step(x: Any) -> Any:
            for v in variables:
                v.assign_add(x)
            return variables[0].value.sum()

        return lambda: step(x), lambda: variables[0].value

    def variable(self) -> tuple[Step, Step]:
        import jaxvars as jv

        v = jv.Variable(1.0)
        return lambda: v * 1.0, lambda: v.assign(2.0)


class Arrays(Peer):
    """State is in arrays, which are passed and returned."""

    keeps_state = False

    def variable(self) -> tuple[Step, Step]:
        import jax.numpy as jnp

        box = {"v": jnp.asarray(1.0)}
        return lambda: box["v"] * 1.0, lambda: box.update(v=jnp.asarray(2.0))


@final
class PlainJax(Arrays):
    name, package = "jax.jit", "jax"
    compiler = "jax:jit"

    def adder(self, n: int) -> tuple[Step, Step]:
        import jax
        import jax.numpy as jnp

        @partial(jax.jit, donate_argnums=0)
        def step(values: Any, x: Any) -> Any:
            values = tuple(v + x for v in values)
            return values[0].sum(), values

        held, x = tuple(jnp.zeros(8) for _ in range(n)), jnp.ones(8)

        def run() -> Any:
            nonlocal held
            out, held = step(held, x)
            return out

        return run, lambda: held[0]


@final
class Equinox(Arrays):
    name, package = "eqx.filter_jit", "equinox"
    compiler = "equinox:filter_jit"

    def adder(self, n: int) -> tuple[Step, Step]:
        import equinox as eqx
        import jax
        import jax.numpy as jnp

        class Model(eqx.Module):
            vs: list[jax.Array]

        @partial(eqx.filter_jit, donate="all-except-first")
        def step(x: Any, model: Any) -> Any:
            model = jax.tree.map(lambda v: v + x, model)
            return model.vs[0].sum(), model

        held, x = Model([jnp.zeros(8) for _ in range(n)]), jnp.ones(8)

        def run() -> Any:
            nonlocal held
            out, held = step(x, held)
            return out

        return run, lambda: held.vs[0]


@final
class Nnx(Peer):
    """Flax's modules, in one of the ways that its documentation has to call them faster."""

    package = "flax"

    def __init__(self, name: str, call: Callable[..., Step]) -> None:
        self.name = name
        self.call = call

    def adder(self, n: int) -> tuple[Step, Step]:
        import jax.numpy as jnp
        from flax import nnx

        class Model(nnx.Module):
            def __init__(self) -> None:
                self.vs = nnx.List([nnx.Param(jnp.zeros(8)) for _ in range(n)])

        def step(model: Any, x: Any) -> Any:
            for v in model.vs:
                v[...] = v[...] + x
            return model.vs[0][...].sum()

        model, x = Model(), jnp.ones(8)
        run = self.call(step, model)
        return lambda: run(x), lambda: model.vs[0][...]

    def variable(self) -> tuple[Step, Step]:
        import jax.numpy as jnp
        from flax import nnx

        v = nnx.Variable(jnp.asarray(1.0))
        return lambda: v[...] * 1.0, lambda: v.__setitem__(..., jnp.asarray(2.0))

    def compiled(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return self.call(fn)


@final
class Brainstate(Peer):
    name, package = "brainstate.transform.jit", "brainstate"
    compiler = "brainstate.transform:jit"

    def adder(self, n: int) -> tuple[Step, Step]:
        import jax.numpy as jnp
        from brainstate import State

        states, x = [State(jnp.zeros(8)) for _ in range(n)], jnp.ones(8)

        def step(x: Any) -> Any:
            for state in states:
                state.value = state.value + x
            return states[0].value.sum()

        run = self.compiled(step)
        return lambda: run(x), lambda: states[0].value

    def variable(self) -> tuple[Step, Step]:
        import jax.numpy as jnp
        from brainstate import State

        state = State(jnp.asarray(1.0))
        return lambda: state.value * 1.0, lambda: setattr(state, "value", jnp.asarray(2.0))


@final
class TensorFlow(Peer):
    name, package = "tf.function", "tensorflow"
    compiler = "tensorflow:function"

    def adder(self, n: int) -> tuple[Step, Step]:
        import tensorflow as tf

        variables, x = [tf.Variable(tf.zeros(8)) for _ in range(n)], tf.ones(8)

        @tf.function
        def step(x: Any) -> Any:
            for v in variables:
                v.assign(v + x)
            return tf.reduce_sum(variables[0])

        return lambda: step(x), lambda: variables[0].value()

    def variable(self) -> tuple[Step, Step]:
        import tensorflow as tf

        v = tf.Variable(1.0)
        return lambda: v * 1.0, lambda: v.assign(2.0)


@final
class Torch(Peer):
    package = "torch"

    def __init__(self, name: str, *, compiles: bool) -> None:
        self.name = name
        self.compiles = compiles

    def adder(self, n: int) -> tuple[Step, Step]:
        import torch

        tensors, x = [torch.zeros(8) for _ in range(n)], torch.ones(8)

        def step(x: Any) -> Any:
            for tensor in tensors:
                tensor.add_(x)
            return tensors[0].sum()

        run = self.compiled(step)
        return lambda: run(x), lambda: tensors[0]

    def variable(self) -> tuple[Step, Step]:
        import torch

        v = torch.ones(())
        return lambda: v * 1.0, lambda: v.fill_(2.0)

    def compiled(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        import torch

        return torch.compile(fn) if self.compiles else fn

    def traces_of(self, arguments: range) -> int:
        """Count the graphs: what a compiled function does to `traces` it does in each call."""
        import torch

        graphs: list[Any] = []
        one = torch.ones(())
        if self.compiles:
            keep = lambda graph, _: graphs.append(graph) or graph.forward  # noqa: E731
            compiled = torch.compile(lambda i: one * i, backend=keep)
            for i in arguments:
                compiled(i)
        return len(graphs)


def installed() -> list[Peer]:
    """Return who takes part; torch where TensorFlow is not: a process with both LLVMs ends."""
    nnx = [Nnx(*way) for way in nnx_ways().items()] if find_spec("flax") else []
    torch = [Torch("torch, eager", compiles=False), Torch("torch.compile", compiles=True)]
    last = [TensorFlow()] if find_spec("tensorflow") else torch
    peers = [PlainJax(), Jaxvars(), *nnx, Equinox(), Brainstate(), *last]
    return [peer for peer in peers if find_spec(peer.package)]


# ---------------------------------------------------------------- measures
def times(effort: Effort) -> list[Row]:
    """Return the microseconds of each one's step, and the ratios to the first one's."""
    rows: list[Row] = []
    for n in COUNTS[: (4, 4, 1)[effort]]:
        steps = {peer.name: peer.adder(n)[0] for peer in installed()}
        found = compared(steps, *((41, 100), (11, 30), (1, 1))[effort])
        rows += [{"variables": n, **row} for row in found]
    return rows


def semantics(effort: Effort) -> list[Row]:
    """Return what each one does with threads, with values that are held, and with constants."""
    return [
        {
            "way": peer.name,
            **lost_updates(peer, (UPDATES, UPDATES, 5)[effort]),
            "a value taken before": held_value(peer),
            "a captured variable": captured_value(peer),
            "traces": peer.traces_of(range(20)),
        }
        for peer in installed()
    ]


def lost_updates(peer: Peer, updates: int) -> Row:
    """Return how many of the updates of several threads the variable misses."""
    if not peer.keeps_state:
        return {"updates lost": LEFT}
    step, value = peer.adder(1)
    step()

    def work() -> None:
        for _ in range(updates):
            step()

    errors: list[str] = []
    before = threading.excepthook
    threading.excepthook = lambda args: errors.append(args.exc_type.__name__)
    try:
        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        threading.excepthook = before
    lost = 1 + THREADS * updates - round(float(value()[0]))
    return {"updates lost": lost, "raised": " ".join(sorted(set(errors)))}


def held_value(peer: Peer) -> str:
    """Return whether a value taken before a step can be read after it."""
    step, value = peer.adder(1)
    step()
    before = value()
    step()
    try:
        return "as it was" if float(before[0]) == 1.0 else "changed"
    except RuntimeError as error:
        return "deleted" if "delete" in str(error) else str(error)


def captured_value(peer: Peer) -> str:
    """Return whether a compiled function sees that a variable it captured was changed."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        read, change = peer.variable()
        read = peer.compiled(read)
        read()
        change()
        new = float(read()) == 2.0
    return "is seen" if new else "is not" + (", with a warning" if told else "")


# ---------------------------------------------------------------- the README's table
README = Path(__file__).parents[2] / "README.md"
COLUMNS = {  # how the ways of a column begin
    "jaxvars": "jaxvars", "TensorFlow 2": "tf.", "flax nnx": "nnx.", "equinox": "eqx.",
    "brainstate": "brainstate", "torch": "torch", "plain JAX": "jax.jit",
}  # fmt: skip
ROWS = {"captured": "a captured variable", "lost": "updates lost",
        "taken before": "a value taken before", "traces": "traces"}  # fmt: skip


def readme(found: Found) -> str:
    """Return the README's table, with the measured rows, marked *, of these figures."""
    lines = iter(README.read_text(encoding="utf-8").split("\n"))
    head = next(line for line in lines if line.startswith("| | jaxvars"))
    columns = _cells(head)[1:]
    table = [head]
    while (line := next(lines)).startswith("|"):
        label = _cells(line)[0]
        if label.endswith("*"):
            measured = [_figure(found, label, COLUMNS[column]) for column in columns]
            line = f"| {' | '.join([label, *measured])} |"
        table.append(line)
    return "\n".join(table)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _figure(found: Found, label: str, way: str) -> str:
    if count := re.search(r"(\d+) variable", label):
        key = "median ratio"
        rows = [row for row in found["times"] if row["variables"] == int(count[1])]
    else:
        key = next(key for word, key in ROWS.items() if word in label)
        rows = found["semantics"]
    rows = [row for row in rows if row["way"].startswith(way)]
    figures = sorted(row[key] for row in rows)
    said = list(dict.fromkeys(map(_rounded, figures[:: max(1, len(figures) - 1)])))
    errors = key == "updates lost" and any(row.get("raised") for row in rows)
    return (" to ".join(said) or "not measured") + (", and errors" if errors else "")


def _rounded(figure: Any) -> str:
    if isinstance(figure, float):
        return f"{figure:.1f}" if figure < 2 else f"{figure:.2g}"
    return f"{figure:,}" if isinstance(figure, int) else figure


if __name__ == "__main__":
    run_jobs(__doc__, {"times": times, "semantics": semantics})

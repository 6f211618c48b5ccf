"""The same small programs with jaxvars, plain JAX, flax nnx, equinox and TensorFlow 2.

    python tests/benchmarks/peers.py

Prints what the README's table says. What is not installed is left out:
`pip install equinox tensorflow-cpu` for all of it.

Rules of this file:
- a step adds `x` to each of n variables of 8 floats and returns the sum of the first: next to
  nothing to compute, so that the time is what the library itself takes for a call;
- each is written as its library's documentation has it, with donation where there is any;
- steps are timed in turns, in one process, and compared round by round with the plain one.
"""

from __future__ import annotations

import statistics
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, final

from measuring import turn

COUNTS = (1, 10, 50, 200)
ROUNDS, STEPS = 41, 100
THREADS, UPDATES = 8, 200


class Peer(ABC):
    """One library's way to write the programs."""

    name: str
    package: ClassVar[str]
    keeps_state = True  # in variables, and not passed and returned

    @abstractmethod
    def adder(self, n: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
        """Return a step over n variables, and a function that takes the first one's value."""

    @abstractmethod
    def captured(self) -> tuple[Callable[[], Any], Callable[[], None]]:
        """Return a compiled function that reads a variable, 1.0, and one that makes it 2.0."""

    @abstractmethod
    def traces_of(self, arguments: range) -> int:
        """Return how often a function of one Python number is traced for some numbers."""


@final
class Jaxvars(Peer):
    name = "jaxvars"
    package = "jaxvars"

    def adder(self, n: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
        import jax.numpy as jnp

        import jaxvars as jv

        variables, x = [jv.Variable(jnp.zeros(8)) for _ in range(n)], jnp.ones(8)

        @jv.compile
        def step(x: Any) -> Any:
            for v in variables:
                v.assign_add(x)
            return variables[0].value.sum()

        return lambda: step(x), lambda: variables[0].value

    def captured(self) -> tuple[Callable[[], Any], Callable[[], None]]:
        import jaxvars as jv

        v = jv.Variable(1.0)
        read = jv.compile(lambda: v * 1.0)
        return read, lambda: v.assign(2.0)

    def traces_of(self, arguments: range) -> int:
        import jaxvars as jv

        return count_traces(jv.compile, arguments)


@final
class PlainJax(Peer):
    name, package = "jax.jit", "jax"
    keeps_state = False

    def adder(self, n: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
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

    def captured(self) -> tuple[Callable[[], Any], Callable[[], None]]:
        import jax
        import jax.numpy as jnp

        box = {"v": jnp.asarray(1.0)}
        return jax.jit(lambda: box["v"] * 1.0), lambda: box.update(v=jnp.asarray(2.0))

    def traces_of(self, arguments: range) -> int:
        import jax

        return count_traces(jax.jit, arguments)


@final
class Nnx(Peer):
    """Flax's modules, in one of the ways that its documentation has to call them faster."""

    package = "flax"

    def __init__(self, name: str, *, cached: bool = False, **options: Any) -> None:
        self.name = name
        self.cached = cached
        self.options = options

    def adder(self, n: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
        import jax.numpy as jnp
        from flax import nnx

        class Model(nnx.Module):
            def __init__(self) -> None:
                self.vs = nnx.List([nnx.Param(jnp.zeros(8)) for _ in range(n)])

        @partial(nnx.jit, donate_argnums=0, **self.options)
        def step(model: Any, x: Any) -> Any:
            for v in model.vs:
                v[...] = v[...] + x
            return model.vs[0][...].sum()

        model, x = Model(), jnp.ones(8)
        run = nnx.cached_partial(step, model) if self.cached else partial(step, model)
        return lambda: run(x), lambda: model.vs[0][...]

    def captured(self) -> tuple[Callable[[], Any], Callable[[], None]]:
        import jax.numpy as jnp
        from flax import nnx

        v = nnx.Variable(jnp.asarray(1.0))
        read = nnx.jit(lambda: v[...] * 1.0, **self.options)
        return read, lambda: v.__setitem__(..., jnp.asarray(2.0))

    def traces_of(self, arguments: range) -> int:
        from flax import nnx

        return count_traces(partial(nnx.jit, **self.options), arguments)


@final
class Equinox(Peer):
    name, package = "eqx.filter_jit", "equinox"
    keeps_state = False

    def adder(self, n: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
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

    def captured(self) -> tuple[Callable[[], Any], Callable[[], None]]:
        import equinox as eqx
        import jax.numpy as jnp

        box = {"v": jnp.asarray(1.0)}
        return eqx.filter_jit(lambda: box["v"] * 1.0), lambda: box.update(v=jnp.asarray(2.0))

    def traces_of(self, arguments: range) -> int:
        import equinox as eqx

        return count_traces(eqx.filter_jit, arguments)


@final
class TensorFlow(Peer):
    name, package = "tf.function", "tensorflow"

    def adder(self, n: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
        import tensorflow as tf

        variables, x = [tf.Variable(tf.zeros(8)) for _ in range(n)], tf.ones(8)

        @tf.function
        def step(x: Any) -> Any:
            for v in variables:
                v.assign(v + x)
            return tf.reduce_sum(variables[0])

        return lambda: step(x), lambda: variables[0].value()

    def captured(self) -> tuple[Callable[[], Any], Callable[[], None]]:
        import tensorflow as tf

        v = tf.Variable(1.0)
        read = tf.function(lambda: v * 1.0)
        return read, lambda: v.assign(2.0)

    def traces_of(self, arguments: range) -> int:
        import tensorflow as tf

        return count_traces(tf.function, arguments)


PEERS: tuple[Peer, ...] = (
    PlainJax(), Jaxvars(), Nnx("nnx.jit"), Nnx("nnx.jit, cached_partial", cached=True),
    Nnx("nnx.jit, graph=False", graph=False), Equinox(), TensorFlow(),
)  # fmt: skip


def count_traces(compile: Callable[..., Any], arguments: range) -> int:
    traces = 0

    def f(i: Any) -> Any:
        nonlocal traces
        traces += 1
        return i * 2

    compiled = compile(f)
    for i in arguments:
        compiled(i)
    return traces


# ---------------------------------------------------------------- measures
def times(peers: list[Peer], n: int) -> dict[str, tuple[float, float]]:
    """Return the microseconds of each one's step, and the ratio to the first one's."""
    steps = {peer.name: peer.adder(n)[0] for peer in peers}
    for step in steps.values():
        for _ in range(20):
            float(step())
    rounds = [[turn(step, STEPS) for step in steps.values()] for _ in range(ROUNDS)]
    found: dict[str, tuple[float, float]] = {}
    for i, name in enumerate(steps):
        ratio = statistics.median(each[i] / each[0] for each in rounds)
        found[name] = statistics.median(each[i] for each in rounds), ratio
    return found


def lost_updates(peer: Peer) -> str:
    """Return how many of the updates of several threads the variable misses."""
    if not peer.keeps_state:
        return "-"
    step, value = peer.adder(1)
    step()

    def work() -> None:
        for _ in range(UPDATES):
            step()

    errors: list[str] = []
    with _collected(errors):
        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lost = 1 + THREADS * UPDATES - round(float(value()[0]))
    return f"{lost} of {THREADS * UPDATES}" + (f", raised {errors[0]}" if errors else "")


class _collected:  # noqa: N801 - used as a statement
    """Collect the names of the exceptions that threads end with."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __enter__(self) -> None:
        self.before = threading.excepthook
        threading.excepthook = lambda args: self.names.append(args.exc_type.__name__)

    def __exit__(self, *_: object) -> None:
        threading.excepthook = self.before


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
        read, change = peer.captured()
        read()
        change()
        new = float(read()) == 2.0
    return "the new value" if new else f"the old value{', warned' if told else ''}"


def main() -> None:
    peers = [peer for peer in PEERS if find_spec(peer.package) is not None]
    packages = dict.fromkeys(peer.package for peer in peers if peer.package != "jaxvars")
    versions = [f"{name} {import_module(name).__version__}" for name in packages]
    print("versions:", ", ".join(versions), "\n")
    for n in COUNTS:
        for name, (microseconds, ratio) in times(peers, n).items():
            print(f"{n:>4} variables  {name:<24} {microseconds:>8.1f} us  {ratio:>6.2f}x")
        print()
    for peer in peers:
        print(peer.name)
        print("   updates lost by threads:     ", lost_updates(peer))
        print("   a value taken before a step: ", held_value(peer))
        print("   a captured variable, changed:", captured_value(peer))
        print("   traces for 20 Python ints:   ", peer.traces_of(range(20)))


if __name__ == "__main__":
    main()

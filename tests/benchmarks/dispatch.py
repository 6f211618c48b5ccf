"""What a call of a compiled step costs over the same step hand-written with `jax.jit`.

    python tests/benchmarks/dispatch.py [--quick] [--json PATH]

The step adds `x` to n variables of one float each, next to nothing to compute, so that the time
is that of the call. Hand-written, it is `values, result = step(values, x)` over a flat tuple that
is donated. `nnx.jit` over a Module of the same variables is measured, too, where flax is installed.

Rules of this file:
- everything is compared within one run, each candidate apart with the hand-written step: the two
  take turns, round by round (of three, the one in the middle finds the caches emptiest, and looks
  up to 1.15 times slower than it is); the ratio of the least times and the median of all are shown;
- first calls and imports are timed in separate processes, in turns;
- the garbage collector is off while a turn is timed.
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from measuring import Step, run_jobs

COUNTS = (1, 10, 50, 200, 1000)
TARGETS = {1: 1.15, 10: 1.05, 50: 1.05, 200: 1.05, 1000: 1.05}
FIRST_CALL_TARGET, IMPORT_TARGET = 1.3, 0.15


# ---------------------------------------------------------------- the steps
def by_hand(n: int) -> Step:
    """Return the step as one writes it with jax.jit: a flat tuple, donated."""
    import jax
    import jax.numpy as jnp

    def body(values: tuple[Any, ...], x: Any) -> tuple[tuple[Any, ...], Any]:
        values = tuple(value + x for value in values)
        return values, values[0] * 2

    jitted = jax.jit(body, donate_argnums=0)
    state = tuple(jnp.zeros(()) + i for i in range(n))
    x = jnp.ones(())

    def step() -> Any:
        nonlocal state
        state, result = jitted(state, x)
        return result

    return step


def _variables(n: int) -> list[Any]:
    import jax.numpy as jnp

    import jaxvars as jv

    return [jv.Variable(jnp.zeros(()) + i) for i in range(n)]


def _add(variables: Sequence[Any], x: Any) -> Any:
    for variable in variables:
        variable.assign_add(x)
    return variables[0] * 2


def closure(n: int) -> Step:
    """Return `step(x)`, whose variables are found in its closure."""
    import jax.numpy as jnp

    import jaxvars as jv

    variables, x = _variables(n), jnp.ones(())
    compiled = jv.compile(lambda x: _add(variables, x))
    return lambda: compiled(x)


def model_argument(n: int) -> Step:
    """Return `step(model, x)`, whose variables are found in the model."""
    import jax.numpy as jnp

    import jaxvars as jv

    model, x = jv.Module(), jnp.ones(())
    model.variables_ = _variables(n)  # pyright: ignore[reportAttributeAccessIssue]
    compiled = jv.compile(lambda model, x: _add(model.variables_, x))
    return lambda: compiled(model, x)


def nnx_jit(n: int) -> Step:
    """Return the step with flax: `nnx.jit` over a Module."""
    import jax.numpy as jnp
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self) -> None:
            self.params = nnx.List([nnx.Param(jnp.zeros(()) + i) for i in range(n)])

    @nnx.jit
    def compiled(model: Model, x: Any) -> Any:
        for param in model.params:
            param[...] = param[...] + x
        return model.params[0][...] * 2

    model, x = Model(), jnp.ones(())
    return lambda: compiled(model, x)


# ---------------------------------------------------------------- timing calls
def turn(step: Step, calls: int) -> float:
    """Return the seconds that one call takes, in a row of `calls`."""
    gc.disable()
    start = time.perf_counter()
    for _ in range(calls):
        result = step()
    taken = time.perf_counter() - start
    result.block_until_ready()
    gc.enable()
    return taken / calls


def ratios(base: Step, others: dict[str, Step], rounds: int, calls: int) -> dict[str, Any]:
    """Time steps in turns; return for each its least time, and its ratios to `base`."""
    for step in (base, *others.values()):
        for _ in range(4):
            step()
    times: dict[str, list[float]] = {name: [] for name in ("hand-written", *others)}
    for i in range(rounds):
        order = [("hand-written", base), *others.items()]
        for name, step in order if i % 2 else reversed(order):
            times[name].append(turn(step, calls))
    return {name: _summary(taken, times["hand-written"]) for name, taken in times.items()}


def _summary(taken: Sequence[float], base: Sequence[float]) -> dict[str, float]:
    each = [mine / its for mine, its in zip(taken, base, strict=True)]
    return {
        "microseconds": min(taken) * 1e6,
        "ratio of minima": min(taken) / min(base),
        "median ratio": statistics.median(each),
    }


def dispatch(quick: bool) -> list[dict[str, Any]]:
    """Return a row for each number of variables and way to write the step."""
    rows: list[dict[str, Any]] = []
    for n in COUNTS:
        calls = max(5, min(100, 2000 // (n + 10)))
        rounds = 61 if quick else 301
        found = {}
        for name, make in {"step(x)": closure, "step(model, x)": model_argument}.items():
            found |= ratios(by_hand(n), {name: make(n)}, rounds, calls)
        if find_spec("flax") and n <= 200:
            found |= {"nnx.jit": ratios(by_hand(n), {"nnx.jit": nnx_jit(n)}, 9, 5)["nnx.jit"]}
        rows += [{"variables": n, "step": name, **row} for name, row in found.items()]
    return rows


# ---------------------------------------------------------------- in fresh processes
_PROGRAMS = """
import sys, time
import jax, jax.numpy as jnp
kind, layers, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
import jaxvars as jv
jnp.ones(2).block_until_ready()
weights = [jnp.full((width, width), 0.01 + i / 1000) for i in range(layers)]
x = jnp.ones((8, width))

def loss_of(weights, x):
    for w in weights:
        x = jax.nn.relu(x @ w)
    return jnp.mean(x ** 2)

if kind == "jit":
    def train(weights, x):
        loss, grads = jax.value_and_grad(loss_of)(weights, x)
        return [w - 0.1 * g for w, g in zip(weights, grads)], loss
    step = jax.jit(train, donate_argnums=0)
    run = lambda: step(weights, x)[1]
else:
    variables = [jv.Variable(w) for w in weights]
    def train(x):
        with jv.GradientTape() as tape:
            loss = loss_of([v.value for v in variables], x)
        for v, g in zip(variables, tape.gradient(loss, variables)):
            v.assign_sub(0.1 * g)
        return loss
    step = jv.compile(train)
    run = lambda: step(x)
start = time.perf_counter()
run().block_until_ready()
print(time.perf_counter() - start)
"""

_IMPORT = "import time; s = time.perf_counter(); import jax{}; print(time.perf_counter() - s)"


def _fresh(*args: str) -> float:
    """Run a program in a separate process; return the number that it prints.

    With bytecode, which is there when a package has been installed.
    """
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", *args]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
    return float(done.stdout.split()[-1])


def _in_turns(programs: Sequence[Sequence[str]], times: int) -> list[list[float]]:
    found: list[list[float]] = [[] for _ in programs]
    for _ in range(times):
        for i, program in enumerate(programs):
            found[i].append(_fresh(*program))
    return found


def first_calls(quick: bool) -> list[dict[str, Any]]:
    """Return how long first calls take, for a small step and one of a hundred layers."""
    rows: list[dict[str, Any]] = []
    for name, layers, width in (("2 layers", "2", "16"), ("100 layers", "100", "32")):
        programs = [(_PROGRAMS, kind, layers, width) for kind in ("jit", "compile")]
        base, ours = _in_turns(programs, 3 if quick else 7)
        rows.append({"first call": name, "seconds": min(ours), **_ratio(ours, base)})
    return rows


def _ratio(ours: Sequence[float], base: Sequence[float]) -> dict[str, float]:
    each = [mine / its for mine, its in zip(ours, base, strict=True)]
    return {"ratio of minima": min(ours) / min(base), "median ratio": statistics.median(each)}


def imports(quick: bool) -> dict[str, float]:
    """Return the seconds that `import jaxvars` takes over `import jax`."""
    programs = [(_IMPORT.format(more),) for more in ("", "; import jaxvars")]
    base, ours = _in_turns(programs, 5 if quick else 15)
    each = [mine - its for mine, its in zip(ours, base, strict=True)]
    return {"of minima": min(ours) - min(base), "median": statistics.median(each)}


# ---------------------------------------------------------------- the report
def report(found: dict[str, Any]) -> None:
    """Print what was measured beside what is aimed at."""
    print("variables  step             us a call   ratio of minima  median ratio  target")
    for row in found.get("dispatch", []):
        target = TARGETS[row["variables"]] if row["step"].startswith("step") else ""
        print(
            f"{row['variables']:9}  {row['step']:15}  {row['microseconds']:9.1f}   "
            f"{row['ratio of minima']:15.3f}  {row['median ratio']:12.3f}  {target}"
        )
    for row in found.get("first calls", []):
        print(
            f"first call, {row['first call']}: {row['seconds']:.3f} s, ratio of minima "
            f"{row['ratio of minima']:.2f}, median ratio {row['median ratio']:.2f} "
            f"(target {FIRST_CALL_TARGET})"
        )
    if cost := found.get("import"):
        print(
            f"import jaxvars over import jax: {cost['of minima']:.3f} s of minima, "
            f"{cost['median']:.3f} s median (target {IMPORT_TARGET})"
        )


def main() -> None:
    """Measure everything and print it."""
    jobs = {"dispatch": dispatch, "first calls": first_calls, "import": imports}
    run_jobs("What jv.compile costs over jax.jit.", jobs, report)


if __name__ == "__main__":
    main()

"""What a call of a compiled step costs over the same step hand-written with `jax.jit`.

    python tests/benchmarks/dispatch.py [--quick] [--json PATH]

The step adds `x` to n variables of one float each, next to nothing to compute, so that the time
is that of the call. Hand-written, it is `values, result = step(values, x)` over a flat tuple that
is donated. `nnx.jit` over a Module of the same variables is measured, too, where flax is installed,
and both with arguments of five shapes in turn, as batches of several lengths are.

Each candidate takes turns with the hand-written step alone: of three, the one in the middle finds
the caches emptiest, and looks up to 1.15 times slower than it is. A call has ended when it returns.
"""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from measuring import Effort, Row, Step, compared, fresh, ratios, run_jobs

COUNTS = (1, 10, 50, 200, 1000)
TARGETS = {1: 1.15, 10: 1.05, 50: 1.05, 200: 1.05, 1000: 1.05}
FIRST_CALL_TARGET, IMPORT_TARGET = 1.3, 0.15
_SHAPES = 5  # of arguments that come in turn


# ---------------------------------------------------------------- the steps
def _batches(shapes: int) -> Iterator[Any]:
    """Yield arguments of several shapes in turn, without end."""
    import jax.numpy as jnp

    return itertools.cycle([jnp.ones((1,) * rank) for rank in range(shapes)])


def by_hand(n: int, *, looks: bool = False, shapes: int = 1) -> Step:
    """Return the step as one writes it with jax.jit, of a flat tuple that is donated."""
    import jax
    import jax.numpy as jnp

    def body(values: tuple[Any, ...], x: Any) -> tuple[tuple[Any, ...], Any]:
        values = tuple(value + x.sum() for value in values)
        return values, values[0] * 2

    jitted = jax.jit(body, donate_argnums=0)
    state = tuple(jnp.zeros(()) + i for i in range(n))
    xs = _batches(shapes)

    def step() -> Any:
        nonlocal state
        state, result = jitted(state, next(xs))
        return state if looks else result

    return step


def _variables(n: int) -> list[Any]:
    import jax.numpy as jnp

    import jaxvars as jv

    return [jv.Variable(jnp.zeros(()) + i) for i in range(n)]


def _add(variables: Sequence[Any], x: Any) -> Any:
    for variable in variables:
        variable.assign_add(x.sum())
    return variables[0] * 2


def closure(n: int, shapes: int = 1) -> Step:
    """Return `step(x)`, whose variables are found in its closure."""
    import jaxvars as jv

    variables, xs = _variables(n), _batches(shapes)
    compiled = jv.compile(lambda x: _add(variables, x))
    return lambda: compiled(next(xs))


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


def dispatch(effort: Effort) -> list[Row]:
    """Return a row for each number of variables and way to write the step."""
    rows: list[Row] = []
    rounds = (301, 61, 3)[effort]
    for n in COUNTS[: (5, 5, 2)[effort]]:
        in_turn = functools.partial(closure, shapes=_SHAPES)
        ways = {"step(x)": closure, "step(model, x)": model_argument, "shapes in turn": in_turn}
        if find_spec("flax") and n <= 200:
            ways["nnx.jit"] = nnx_jit
        for name, make in ways.items():
            few = name == "nnx.jit"
            repeats = (9, 5) if few else (rounds, max(5, min(100, 2000 // (n + 10))))
            shapes = _SHAPES if name == "shapes in turn" else 1
            steps = {"hand-written": by_hand(n, shapes=shapes), name: make(n)}
            row = compared(steps, *repeats, waits=False)[1]
            rows.append(
                {"variables": n, **row, "target": TARGETS[n] if name.startswith("step") else ""}
            )
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


def first_calls(effort: Effort) -> list[Row]:
    """Return how long first calls take, for a small step and one of a hundred layers."""
    rows: list[Row] = []
    for layers, width in ((2, 16), (100, 32))[: (2, 2, 1)[effort]]:
        programs = [(_PROGRAMS, kind, str(layers), str(width)) for kind in ("jit", "compile")]
        base, ours = fresh(programs, (7, 3, 1)[effort])
        row = {"layers": layers, "seconds": min(ours), **ratios(ours, base)}
        rows.append({**row, "target": FIRST_CALL_TARGET})
    return rows


def imports(effort: Effort) -> list[Row]:
    """Return the seconds that `import jaxvars` takes over `import jax`."""
    programs = [(_IMPORT.format(more),) for more in ("", "; import jaxvars")]
    base, ours = fresh(programs, (15, 5, 1)[effort])
    each = [mine - its for mine, its in zip(ours, base, strict=True)]
    seconds = {"of minima": min(ours) - min(base), "median": statistics.median(each)}
    return [{**seconds, "target": IMPORT_TARGET}]


if __name__ == "__main__":
    jobs = {"dispatch": dispatch, "first calls": first_calls, "import": imports}
    run_jobs(__doc__, jobs)

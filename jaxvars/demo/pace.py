"""How fast compiled steps are beside hand-written ones, for `python -m jaxvars check-accelerator`.

Rules this file keeps:
- two steps take turns, round by round in alternating order, and the ratio is the median of rounds
  (of a time alone the least is shown: other programs only add to it);
- both compute the same: their results are compared, and no time decides whether a row passes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

import jaxvars as jv
from jaxvars.demo.accelerator import Row, judge

Step: TypeAlias = Callable[[], Any]  # what it returns is waited for
Loss: TypeAlias = Callable[[Any, Any], Any]
_RATE, _MOMENTUM, _DECAY, _EPSILON = 1e-3, 0.9, 0.999, 1e-7


def _measure(base: Step, step: Step, rounds: int, calls: int, waits: bool) -> tuple[float, float]:
    """Return the least seconds of a call of the second step, and the ratio to the first one's."""
    times: list[tuple[float, float]] = []
    for i in range(-1, rounds):  # the first round compiles
        found = {each: _time(each, calls, waits) for each in (base, step)[:: 1 if i % 2 else -1]}
        times.append((found[step], found[step] / found[base]))
    seconds, ratios = zip(*times[1:], strict=True)
    return min(seconds), statistics.median(ratios)


def _time(step: Step, calls: int, waits: bool) -> float:
    """Return the seconds of a call, of some in a row; maybe with what the last one computes."""
    result, start = None, time.perf_counter()
    for _ in range(calls):
        result = step()
    returned = time.perf_counter()
    jax.block_until_ready(result)
    return ((time.perf_counter() if waits else returned) - start) / calls


# ---------------------------------------------------------------- next to nothing to compute
def dispatch(quick: bool) -> Iterator[Row]:
    """Compare calls of steps over few and many variables with donated tuples, and with nnx."""
    rounds = 21 if quick else 101
    for n in (1, 50, 200):
        start = [float(i) for i in range(n)]
        base, step = _add_by_hand(start), _add_to_variables(start)
        seconds, ratio = _measure(base, step, rounds, 20, False)
        found = f"{seconds * 1e6:.1f} us a call, {ratio:.2f} of hand-written"
        if find_spec("flax"):
            others = _add_by_hand(start), _add_with_nnx(start)
            found += f"; nnx.jit: {_measure(*others, 5, 5, False)[1]:.1f}"
        yield judge(f"call, variables: {n}", found, float(base()) == float(step()))


def _add_by_hand(start: list[float]) -> Step:
    @partial(jax.jit, donate_argnums=0)
    def add(values: tuple[Any, ...], x: Any) -> tuple[tuple[Any, ...], Any]:
        values = tuple(value + x for value in values)
        return values, sum(values) / len(values)

    held, x = tuple(map(jnp.float32, start)), jnp.float32(1.0)

    def step() -> Any:
        nonlocal held
        held, result = add(held, x)
        return result

    return step


def _add_to_variables(start: list[float]) -> Step:
    variables, x = [jv.Variable(i) for i in start], jnp.float32(1.0)

    @jv.compile
    def add(x: Any) -> Any:
        for variable in variables:
            variable.assign_add(x)
        return sum(variable.value for variable in variables) / len(variables)

    return lambda: add(x)


def _add_with_nnx(start: list[float]) -> Step:
    from flax import nnx

    @nnx.jit
    def add(params: Any, x: Any) -> Any:
        for param in params:
            param[...] = param[...] + x
        return params[0][...]

    params, x = nnx.List([nnx.Param(jnp.float32(i)) for i in start]), jnp.float32(1.0)
    return lambda: add(params, x)


# ---------------------------------------------------------------- training steps
def training(quick: bool) -> Iterator[Row]:
    """Compare training steps of a dense network and of a decoder with hand-written ones."""
    width, depth, length, words = (64, 2, 64, 256) if quick else (1024, 8, 1024, 32_000)
    dense = {"up": (width, 4 * width), "down": (4 * width, width)}
    weights = _draw(dense, jnp.float32)
    x = 32 * _draw({"x": (8 * length, width)}, jnp.float32)["x"]
    yield _compare("dense network", _dense_loss, weights, x, quick)
    layers = {"qkv": (width, 3 * width), "out": (width, width)} | dense
    shapes = {name: (depth, *shape) for name, shape in layers.items()} | {"words": (words, width)}
    weights = _draw(shapes, jnp.float32 if quick else jnp.bfloat16)
    tokens = jnp.arange(4 * length).reshape(4, length) ** 2 % words
    yield _compare("decoder", _decoder_loss, weights, tokens, quick)


def _draw(shapes: dict[str, tuple[int, ...]], dtype: Any) -> dict[str, Any]:
    draw = np.random.default_rng(0).standard_normal
    return {k: jnp.asarray(draw(shape, np.float32) / 32, dtype) for k, shape in shapes.items()}


def _dense_loss(w: Any, x: Any) -> Any:
    return jnp.mean((jax.nn.relu(x @ w["up"]) @ w["down"]) ** 2)


def _decoder_loss(w: Any, tokens: Any) -> Any:
    import optax

    def layer(y: Any, each: Any) -> Any:
        qkv, out, up, down = each
        heads = (y @ qkv).reshape(*y.shape[:2], 3, -1, 32)
        mixed = jax.nn.dot_product_attention(*jnp.moveaxis(heads, 2, 0), is_causal=True)
        y = y + mixed.reshape(y.shape) @ out
        return y + jax.nn.gelu(y @ up) @ down, None

    weights = [jnp.asarray(w[name]) for name in ("qkv", "out", "up", "down")]
    y, _ = jax.lax.scan(jax.checkpoint(layer), w["words"][tokens], weights)
    logits = (y @ w["words"].T).astype(jnp.float32)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:])
    return losses.mean()


def _update(state: Iterable[Any], g: Any) -> tuple[Any, Any, Any]:
    """Return what Adam makes of a weight and its moments."""
    w, m, v = state
    m, v = _MOMENTUM * m + (1 - _MOMENTUM) * g, _DECAY * v + (1 - _DECAY) * g * g
    return w - (_RATE * m / (jnp.sqrt(v) + _EPSILON)).astype(w.dtype), m, v


def _train_by_hand(loss: Loss, weights: dict[str, Any], x: Any) -> Step:
    @partial(jax.jit, donate_argnums=0)
    def train(state: Any, x: Any) -> Any:
        value, grads = jax.value_and_grad(loss)({k: each[0] for k, each in state.items()}, x)
        return {k: _update(each, grads[k]) for k, each in state.items()}, value

    state: Any = {k: [jnp.copy(w), *jnp.zeros((2, *w.shape), w.dtype)] for k, w in weights.items()}

    def step() -> Any:
        nonlocal state
        state, value = train(state, x)
        return value

    return step


def _train_variables(loss: Loss, weights: dict[str, Any], x: Any) -> Step:
    start = {k: (w, *jnp.zeros((2, *w.shape), w.dtype)) for k, w in weights.items()}
    state: Any = {k: [jv.Variable(each) for each in values] for k, values in start.items()}
    model = {k: each[0] for k, each in state.items()}

    @jv.compile
    def train(x: Any) -> Any:
        with jv.GradientTape() as tape:
            value = loss(model, x)
        for k, grad in tape.gradient(value, model).items():
            for variable, new in zip(state[k], _update(state[k], grad), strict=True):
                variable.assign(new)
        return value

    return lambda: train(x)


def _compare(check: str, loss: Loss, weights: dict[str, Any], x: Any, quick: bool) -> Row:
    base, step = (make(loss, weights, x) for make in (_train_by_hand, _train_variables))
    losses = [(float(base()), float(step())) for _ in range(3)]
    difference = max(abs(ours / other - 1) for other, ours in losses)
    seconds, ratio = _measure(base, step, 3 if quick else 21, 5, True)
    told = f"{seconds * 1e3:.2f} ms a step, {ratio:.2f} of hand-written; losses differ by "
    return judge(check, f"{told}{difference:.1e} at most, relatively", difference < 1e-2)

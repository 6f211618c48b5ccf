"""What is compiled quickly, and what is not: by shapes, platform, trace and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.initializers import initializer as module_of_initializers
from jaxvars.tensors import quick_jit as module
from jaxvars.tensors.quick_jit import SMALL, QuickJit, quick_jit

X = jnp.arange(6.0)
LARGE = jnp.ones(SMALL + 1)


@pytest.fixture(autouse=True)
def optimized(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let XLA optimize, as users do; the suite has it switched off."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def _counted(**settings: Any) -> tuple[Callable[..., Any], Callable[[], tuple[int, int]]]:
    """Return a function, and how many programs of it there are: usual ones, quick ones."""
    usual = jax.jit(lambda x: x * 2.0 + 1.0, **settings)
    made = QuickJit(lambda x: x * 2.0 + 1.0, usual, module._all_small, **settings)
    quick: Any = made
    return made, lambda: (usual._cache_size(), quick.quick._cache_size())


@pytest.mark.parametrize("kind", [jnp.asarray, np.asarray])
def test_small_arrays_take_the_quick_way_and_large_ones_the_usual_one(kind: Any) -> None:
    function, programs = _counted()
    np.testing.assert_array_equal(function(kind(X)), X * 2 + 1)
    function(kind(np.ones(SMALL, np.float32)))
    assert programs() == (0, 2)
    function(kind(np.ones(SMALL + 1, np.float32)))
    assert programs() == (1, 2)


def test_which_way_depends_on_shapes_alone_and_not_on_what_ran_before() -> None:
    for order in ([X, LARGE], [LARGE, X]):
        function, programs = _counted()
        for x in order:
            function(x)
        assert programs() == (1, 1)


@pytest.mark.parametrize(
    "under",
    [
        lambda f: jax.jit(f)(X),
        lambda f: jax.vmap(f)(X),
        lambda f: jax.grad(lambda x: f(x).sum())(X),
        lambda f: jax.lax.scan(lambda c, x: (f(c), x), X, X)[0],
        lambda f: jax.make_jaxpr(f)(X),
        lambda f: jv.compile(f)(X),
    ],
    ids=["jit", "vmap", "grad", "scan", "make_jaxpr", "compile"],
)
def test_under_a_trace_it_is_the_usual_function(under: Callable[[Any], Any]) -> None:
    function, programs = _counted()
    under(function)
    assert programs()[1] == 0


def test_a_concrete_array_in_a_trace_takes_the_usual_way() -> None:
    function, programs = _counted()
    assert jax.jit(lambda x: x + function(X))(X).tolist() == (X * 3 + 1).tolist()
    assert programs()[1] == 0


def test_under_a_tape_it_is_differentiated() -> None:
    function = quick_jit(lambda x: x**3)
    with jv.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = function(X).sum()
    np.testing.assert_allclose(tape.gradient(y, X), 3 * X**2, rtol=1e-6)


@pytest.mark.parametrize("why", ["platform", "flags", "setting", "unknown to XLA"])
def test_what_the_user_sets_comes_first(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, _ = _counted()
    if why == "platform":
        monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    elif why == "flags":
        monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=1")
    elif why == "setting":
        jax.config.update("jax_disable_most_optimizations", True)
    else:
        monkeypatch.setattr(module, "_is_known_to_xla", lambda: False)
    quick: Any = function
    assert quick.quick is quick._usual
    np.testing.assert_array_equal(function(X), X * 2 + 1)


def test_options_that_xla_does_not_know_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    module._is_known_to_xla.cache_clear()
    monkeypatch.setattr(module, "OPTIONS", {"xla_cpu_no_such_option": True})
    assert not module._is_known_to_xla()
    module._is_known_to_xla.cache_clear()
    monkeypatch.undo()
    assert module._is_known_to_xla()


def test_static_arguments_and_names() -> None:
    @quick_jit
    def twice(x: Any) -> Any:
        """Return it twice."""
        return jnp.concatenate([x, x])

    assert (twice.__name__, twice.__doc__) == ("twice", "Return it twice.")
    tiled = quick_jit(lambda x, n, add: jnp.tile(x, n) + add, static_argnames=("n", "add"))
    assert tiled(jnp.ones(1), 3, add=1).tolist() == [2.0, 2.0, 2.0]


def _step(scale: float) -> list[Any]:
    w, b = jv.Variable(jnp.full((5, 3), scale)), jv.Variable(jnp.zeros(3))
    optimizer = jv.optimizers.Adam(0.1)
    for _ in range(2):
        with jv.GradientTape() as tape:
            loss = jnp.square(jnp.tanh(jnp.ones((4, 5)) @ w + b)).mean()
        gradients = tape.gradient(loss, [w, b])
        optimizer.apply_gradients(zip(gradients, [w, b], strict=True))
    return [w.numpy(), b.numpy()]


def test_training_gives_what_it_gives_with_the_usual_programs() -> None:
    found = _step(0.1)
    jax.config.update("jax_disable_most_optimizations", True)
    for one, other in zip(found, _step(0.1), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize("shape", [(3,), (64, 10), (400, 400)])
@pytest.mark.parametrize("initializer", [jv.initializers.GlorotUniform, jv.initializers.HeNormal])
def test_initial_values_are_those_of_jax(initializer: Any, shape: tuple[int, ...]) -> None:
    drawn = initializer(seed=7)(shape)
    fan_in, fan_out = (shape[0], shape[-1])
    key, size = jax.random.key(7), (1, int(np.prod(shape)))
    scale, fans = (
        (1.0, (fan_in + fan_out) / 2) if "Uniform" in initializer.__name__ else (2.0, fan_in)
    )
    kind: Any = "uniform" if "Uniform" in initializer.__name__ else "truncated_normal"
    one = jax.nn.initializers.variance_scaling(scale / fans, "fan_in", kind)
    np.testing.assert_array_equal(drawn, one(key, size, jnp.float32).reshape(shape))


def test_a_program_of_initial_values_is_for_any_variance() -> None:
    make: Any = jv.initializers.VarianceScaling
    make(1.0, seed=1)((7, 9))
    noise: Any = module_of_initializers._NOISE["truncated_normal"]
    before = noise.quick._cache_size()
    for scale in (2.0, 3.5, jnp.float32(2.0), jv.Variable(2.0)):
        make(scale, seed=1)((7, 9))
    assert noise.quick._cache_size() == before
    found, want = make(jnp.float32(2.0), seed=1)((7, 9)), make(2.0, seed=1)((7, 9))
    np.testing.assert_array_equal(found, want)


def test_slots_are_where_their_variable_is() -> None:
    place = jax.devices()[-1]
    for make in (jv.optimizers.Adam, lambda rate: jv.optimizers.SGD(rate, momentum=0.9)):
        v = jv.Variable(jax.device_put(jnp.ones(3), place))
        optimizer = make(0.1)
        optimizer.build([v])
        slots = [s.value for s in optimizer.variables if s.shape == (3,)]
        assert slots
        assert all(x.committed and x.devices() == {place} for x in slots)

"""Generators: the same stream everywhere, again each time; the distributions are what they say."""

from __future__ import annotations

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from scipy import stats

import jaxvars as jv
from jaxvars import random
from jaxvars.errors import DtypeError, ForeignTransformError, ShapeError, StateError
from jaxvars.random import draws as core
from jaxvars.random.generator import _Global

G = random.Generator


def numbers(seed=7, n=6):
    """The first draws of a seed, by JAX's own means."""
    keys = [jax.random.fold_in(jax.random.key(seed), i) for i in range(n)]
    return [float(jax.random.normal(key, dtype=jnp.float32)) for key in keys]


def draws(draw, n=6):
    return [float(draw()) for _ in range(n)]


@pytest.fixture(autouse=True)
def _own_global_generator():
    before = random.get_global_generator()
    random.set_global_generator(G(0))
    yield
    random.set_global_generator(before)


# ---------------------------------------------------------------- one stream
def in_scan(rng):
    return jv.scan(lambda c, _: (c, rng.normal(())), 0, length=6)[1]


def in_fori_loop(rng):
    start = jnp.zeros(6)
    return jv.fori_loop(0, 6, lambda i, out: out.at[i].set(rng.normal(())), start)


def in_while_loop(rng):
    def body(c):
        return c[0] + 1, c[1].at[c[0]].set(rng.normal(()))

    return jv.while_loop(lambda c: c[0] < 6, body, (0, jnp.zeros(6)))[1]


def in_map_fn(rng):
    return jv.map_fn(lambda x: rng.normal(()) + 0 * x, jnp.zeros(6))


def in_branches(rng):
    draw = lambda: rng.normal(())  # noqa: E731
    return jv.map_fn(lambda x: jv.cond(x > 0, draw, draw), jnp.zeros(6))


def in_a_python_loop(rng):
    return jnp.stack([rng.normal(()) for _ in range(6)])


def in_a_recomputed_function(rng):
    return jnp.stack([jv.recompute(lambda: rng.normal(()))() for _ in range(6)])


PLACES = [
    in_a_python_loop, in_a_recomputed_function, in_branches, in_fori_loop, in_map_fn, in_scan,
    in_while_loop,
]  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_the_same_stream_everywhere(place, compiled):
    rng = G.from_seed(7)
    run = jv.compile(place) if compiled else place
    np.testing.assert_allclose(run(rng), numbers(), rtol=1e-6)
    assert rng.state.numpy().tolist() == [0, 7, 0, 6]
    np.testing.assert_allclose(run(rng), numbers(n=12)[6:], rtol=1e-6)


def test_in_a_loop_converted_by_autograph():
    rng = G(7)

    @jv.compile(autograph=True)
    def total(n):
        found = jnp.zeros(())
        for _ in range(n):
            found = found + rng.normal(())
        return found

    np.testing.assert_allclose(total(jnp.asarray(6)), np.sum(numbers()), rtol=1e-5)
    assert rng.state.numpy().tolist() == [0, 7, 0, 6]


def test_a_compiled_function_draws_anew_each_time_and_is_traced_once():
    rng = G(7)
    step = jv.compile(lambda x: x + rng.normal(()))
    found = [float(step(0.0)) for _ in range(50)]
    np.testing.assert_allclose(found, numbers(n=50), rtol=1e-6)
    assert step.trace_count == 1
    assert [v.name for v in step.trace(0.0).captured] == ["generator"]


class Noisy(jv.Module):
    """Makes a variable of random numbers when it is called, beside others that it draws."""

    def __init__(self, draw, *, breaks_off=False):
        super().__init__()
        self.draw, self.w, self.breaks_off = draw, None, breaks_off

    def __call__(self):
        noise = self.draw()
        if self.w is None:
            self.w = jv.Variable(self.draw())
        if self.breaks_off:
            self.breaks_off = False
            raise RuntimeError("broken off")
        return noise


@pytest.mark.parametrize("how", ["called", "planned", "inside", "broken off", "on a mesh"])
def test_what_a_first_value_is_drawn_from_is_drawn_no_second_time(how):
    made = G(7)
    model = Noisy(lambda: made.normal((4,)), breaks_off=how == "broken off")
    step = jv.compile(model)
    outer = jv.compile(lambda: step()) if how == "inside" else step
    if how == "planned":
        jv.plan(step)
    if how == "on a mesh":
        with jv.use_mesh(jv.mesh({"data": 2}, jax.devices()[:2])):
            step()
    if how == "broken off":
        with pytest.raises(RuntimeError, match="broken off"):
            step()
    drawn = [outer().tolist() for _ in range(3)]
    drawn += [made.normal((4,)).tolist(), model.w.numpy().tolist()]
    assert len({*map(tuple, drawn)}) == 5


def test_a_stream_goes_on_as_it_was_restored_where_first_values_are_restored_too(tmp_path):
    def made():
        rng = G(7)
        model = Noisy(lambda: rng.normal((4,)))
        model.rng = rng
        return model, jv.compile(model), jv.checkpoint.Checkpoint(model=model)

    _, step, checkpoint = made()
    step()
    path = checkpoint.write(tmp_path / "c.npz")
    model, again, checkpoint = made()
    checkpoint.restore(path)
    assert [again().tolist() for _ in range(2)] == [step().tolist() for _ in range(2)]
    assert model.rng.state.numpy().tolist() == [0, 7, 0, 5]


def test_first_values_that_are_not_drawn_leave_a_stream_as_it_is():
    rng, again = G(7), G(7)
    kept = []

    @jv.compile
    def step():
        if not kept:
            kept.append(jv.Variable([0.0]))
        return rng.normal((4,))

    assert [step().tolist() for _ in range(2)] == [again.normal((4,)).tolist() for _ in range(2)]


def test_eager_and_compiled_draws_may_alternate():
    rng = G(7)
    draw = jv.compile(lambda: rng.normal(()))
    found = [float(draw() if i % 2 else rng.normal(())) for i in range(6)]
    np.testing.assert_allclose(found, numbers(), rtol=1e-6)


def test_a_generator_as_an_argument_and_in_a_module():
    class Dropout(jv.Module):
        def __init__(self):
            self.rng = G(7)

        @jv.compile
        def __call__(self, x):
            return x * self.rng.normal(())

    layer = Dropout()
    assert [*layer.named_variables] == ["rng/state"]
    assert layer.trainable_variables == ()
    np.testing.assert_allclose([float(layer(1.0)) for _ in range(6)], numbers(), rtol=1e-6)


def test_made_on_the_first_call_of_a_compiled_function():
    made = []

    @jv.compile
    def draw():
        if not made:
            made.append(G(7))
        return made[0].normal(())

    np.testing.assert_allclose(draws(draw), numbers(), rtol=1e-6)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_go_on_by_themselves(again):
    rng = G(7)
    draws(lambda: rng.normal(()), 2)
    other = again(rng)
    assert draws(lambda: other.normal(()), 4) == draws(lambda: rng.normal(()), 4)
    assert other.state is not rng.state
    np.testing.assert_allclose(draws(lambda: other.normal(()), 1), numbers(n=7)[6:], rtol=1e-6)


def test_a_state_takes_it_back():
    rng = G(7)
    state = jv.State.of(rng)
    first = draws(jv.compile(lambda: rng.normal(())))
    state.commit()
    assert draws(lambda: rng.normal(())) == pytest.approx(first, rel=1e-6)


def test_as_a_pure_function():
    rng = G(7)
    pure = jax.jit(jv.functionalize(lambda: rng.normal(())))
    state, found = jv.State.of(rng), []
    for _ in range(6):
        x, state = pure(state)
        found.append(float(x))
    np.testing.assert_allclose(found, numbers(), rtol=1e-6)
    assert rng.state.numpy().tolist() == [0, 7, 0, 0]


def test_the_state_must_hold_it():
    rng, w = G(7), jv.Variable(1.0)
    with pytest.raises(StateError, match=r"Variable 'generator' is written .* does not hold it"):
        jv.functionalize(lambda: w * rng.normal(()))(jv.State.of(w))


def test_many_training_runs_with_separate_streams():
    rng = G(7)
    pure = jv.functionalize(lambda: rng.normal(()))
    gens = rng.split(3)
    state = jv.State.of(rng)
    states = state.replace({"state": jnp.stack([g.state.value for g in gens])})
    found, _ = jax.vmap(pure)(states)
    np.testing.assert_allclose(found, [float(g.normal(())) for g in gens], rtol=1e-6)


@pytest.mark.parametrize("wrap", [jax.jit, jax.vmap, lambda f: jax.grad(lambda x: f(x))])
def test_a_draw_in_a_foreign_transform_is_refused(wrap):
    rng = G(7)
    with pytest.raises(ForeignTransformError, match="Variable 'generator' is written"):
        wrap(lambda x: x * rng.normal(()))(jnp.ones(2) if wrap is jax.vmap else 1.0)
    assert float(rng.normal(())) == pytest.approx(numbers()[0])


def test_a_failed_step_draws_nothing():
    rng = G(7)

    @jv.compile
    def step(x):
        y = rng.normal(())
        jv.debugging.assert_finite(x)
        return y

    step(1.0)
    with pytest.raises(jv.errors.CheckError):
        step(jnp.inf)
    assert float(step(1.0)) == pytest.approx(numbers()[1])


def test_threads_never_draw_the_same():
    rng = G(7)
    compiled = jv.compile(lambda: rng.uniform_full_int(()))
    compiled()

    def work(i):
        return [int(compiled() if i % 2 else rng.uniform_full_int(())) for _ in range(50)]

    with ThreadPoolExecutor(4) as pool:
        found = [x for part in pool.map(work, range(4)) for x in part]
    assert len(set(found)) == 200
    assert rng.state.numpy().tolist() == [0, 7, 0, 201]


# ---------------------------------------------------------------- derivatives
@pytest.mark.parametrize("compiled", [False, True])
def test_parameters_have_gradients_and_noise_none(compiled):
    rng, mean, stddev = G(7), jv.Variable(1.0), jv.Variable(2.0)

    def run():
        with jv.GradientTape() as tape:
            x = rng.normal((), mean, stddev)
            y = x * x
        return x, tape.gradient(y, [mean, stddev])

    noise = numbers()[0]
    x, grads = (jv.compile(run) if compiled else run)()
    np.testing.assert_allclose(x, 1 + 2 * noise, rtol=1e-5)
    np.testing.assert_allclose(grads, [2 * x, 2 * x * noise], rtol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
def test_gamma_is_differentiated_by_its_shape_parameter(compiled):
    alpha = jv.Variable(2.0)

    def run():
        with jv.GradientTape() as tape:
            x = core.gamma(7, (1000,), alpha)
            y = x.mean()
        return tape.gradient(y, alpha)

    assert float((jv.compile(run) if compiled else run)()) == pytest.approx(1.0, abs=0.1)


def test_uniform_follows_its_bounds():
    low, high = jv.Variable(1.0), jv.Variable(3.0)
    with jv.GradientTape() as tape:
        y = core.uniform(7, (), low, high)
    u = (float(y) - 1) / 2
    np.testing.assert_allclose(tape.gradient(y, [low, high]), [1 - u, u], rtol=1e-5)


# ---------------------------------------------------------------- state
@pytest.mark.parametrize(("low", "delta", "expected"), [
    (0, 3, [0, 3]), (2**32 - 1, 1, [1, 0]), (2**32 - 2, 5, [1, 3]), (7, 2**33 + 1, [2, 8]),
    (7, 0, [0, 7]),
])  # fmt: skip
@pytest.mark.parametrize("compiled", [False, True])
def test_skip_carries(low, delta, expected, compiled):
    rng = G(7)
    rng.reset(np.array([0, 7, 0, low], np.uint32))
    skip = jv.compile(lambda: rng.skip(delta)) if compiled else (lambda: rng.skip(delta))
    skip()
    assert rng.state.numpy().tolist() == [0, 7, *expected]


def test_the_counter_goes_beyond_32_bits():
    rng = G(7)
    rng.reset(np.array([0, 7, 0, 2**32 - 1], np.uint32))
    last, first = rng.uniform_full_int(()), rng.uniform_full_int(())
    assert rng.state.numpy().tolist() == [0, 7, 1, 1]
    assert int(first) not in {int(last), int(G(7).uniform_full_int(()))}


def test_skip_by_a_traced_number_is_draws():
    rng = G(7)
    jv.compile(rng.skip)(jnp.asarray(3))
    assert float(rng.normal(())) == pytest.approx(numbers()[3])


@pytest.mark.parametrize(
    ("delta", "error"), [(-1, ValueError), (2**64, ValueError), (1.5, TypeError)]
)
def test_skip_refuses(delta, error):
    with pytest.raises(error):
        G(7).skip(delta)


def test_reset_in_place():
    rng = G(7)
    draw = jv.compile(lambda: rng.normal(()))
    draws(draw, 3)
    rng.reset_from_seed(7)
    np.testing.assert_allclose(draws(draw), numbers(), rtol=1e-6)
    rng.reset(G(8).state)
    np.testing.assert_allclose(draws(draw), numbers(8), rtol=1e-6)
    with pytest.raises(ShapeError, match=r"'generator' of shape \(4,\)"):
        rng.reset([1, 2])


def test_without_a_seed_each_is_another():
    assert len({tuple(G().state.numpy().tolist()) for _ in range(5)}) == 5


def test_split_gives_other_streams_and_advances_once():
    rng = G(7)
    gens = [rng, *rng.split(3), *rng.split(2)]
    assert rng.state.numpy().tolist() == [0, 7, 0, 2]
    assert len({int(g.uniform_full_int(())) for g in gens}) == 6
    again = [g.normal(()).item() for g in G(7).split(3)]
    assert again == [g.normal(()).item() for g in G(7).split(3)]


def test_keys_for_jax():
    rng = G(7)
    keys = [rng.next_key() for _ in range(3)]
    expected = [jax.random.fold_in(jax.random.key(7), i) for i in range(3)]
    assert all(bool(a == b) for a, b in zip(keys, expected, strict=True))


def test_a_name_and_a_picture():
    rng = G(7, name="noise")
    assert rng.name == "noise"
    assert "uint32[4]" in repr(rng)


# ---------------------------------------------------------------- seeds
@pytest.mark.parametrize(("seed", "words"), [
    (7, [0, 7]), (-1, [2**32 - 1, 2**32 - 1]), (2**40 + 3, [256, 3]),
    (2**64 - 1, [2**32 - 1, 2**32 - 1]), (np.int32(-1), [2**32 - 1, 2**32 - 1]), ([1, 2], [1, 2]),
    ((1, -1), [1, 2**32 - 1]), (np.array([1, 2], np.int64), [1, 2]), (jax.random.key(7), [0, 7]),
    (jax.random.PRNGKey(7), [0, 7]),
])  # fmt: skip
def test_seeds(seed, words):
    assert G(seed).state.numpy().tolist() == [*words, 0, 0]


@pytest.mark.parametrize("seed", [7, -1, [1, 2], [1, -2]])
def test_a_traced_seed_is_the_same(seed):
    draw = jv.compile(lambda s: core.normal(s, (2,)))
    expected = core.normal(seed, (2,))
    np.testing.assert_allclose(draw(jnp.asarray(seed)), expected, rtol=1e-6)
    variable = jv.Variable(seed)
    np.testing.assert_allclose(core.normal(variable, (2,)), expected)


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        ("seven", TypeError, r"'seven' is not a seed. A seed is an integer, a pair"),
        (1.5, TypeError, r"1.5 is not a seed"),
        (True, TypeError, r"True is not a seed"),
        ([1, 2, 3], TypeError, r"\[1, 2, 3\] is not a seed"),
        (None, TypeError, r"from_seed needs a seed; Generator\(\) takes one"),
        (2**64, ValueError, r"has more than 64 bits"),
        ([2**32, 1], ValueError, r"numbers of more than 32 bits"),
    ],
)
def test_what_is_not_a_seed(seed, error, message):
    with pytest.raises(error, match=message):
        G.from_seed(seed)


def test_keys_that_do_not_fit():
    with pytest.raises(ShapeError, match=r"one key, not keys of shape \(3,\)"):
        G(jax.random.split(jax.random.key(7), 3))
    with pytest.raises(TypeError, match=r"takes a Threefry key, not one of .*rbg"):
        G(jax.random.key(7, impl="rbg"))


@pytest.mark.usefixtures("x64")
def test_64_bits_change_no_stream():
    rng = G(7)
    np.testing.assert_allclose(draws(lambda: rng.normal(())), numbers(), rtol=1e-6)
    assert rng.normal(3, dtype="float64").dtype == jnp.float64
    assert rng.uniform_full_int(3, dtype="uint64").dtype == jnp.uint64
    assert G(2**40 + 3).state.numpy().tolist() == [256, 3, 0, 0]
    assert rng.randint((), 0, 10).dtype == jnp.int32


# ---------------------------------------------------------------- the global generator
def test_set_seed_and_the_functions():
    random.set_seed(7)
    np.testing.assert_allclose(draws(lambda: random.normal(())), numbers(), rtol=1e-6)
    random.set_seed(7)
    np.testing.assert_allclose(draws(jv.compile(lambda: random.normal(()))), numbers(), rtol=1e-6)


def test_compiled_functions_see_set_seed():
    draw = jv.compile(lambda: random.normal(()))
    draws(draw, 2)
    random.set_seed(7)
    np.testing.assert_allclose(draws(draw), numbers(), rtol=1e-6)
    assert draw.trace_count == 1


def test_set_seed_in_a_compiled_function():
    @jv.compile
    def draw(seed):
        random.set_seed(seed)
        return random.normal(())

    assert float(draw(7)) == pytest.approx(numbers(7)[0])
    assert float(draw(8)) == pytest.approx(numbers(8)[0])


CALLS = [
    ("normal", (3, 1.0, 2.0), {}), ("truncated_normal", (3, 1.0, 2.0), {}),
    ("uniform", (3, 1.0, 2.0), {}), ("uniform", (3,), {"maxval": 9, "dtype": "int32"}),
    ("uniform_full_int", (3,), {}), ("randint", (3, 0, 10), {}), ("bernoulli", (3, 0.3), {}),
    ("binomial", (3, 10, 0.3), {}), ("poisson", (3, 4.0), {}), ("exponential", (3, 2.0), {}),
    ("gamma", (3, 2.0, 3.0), {}), ("permutation", (5,), {}), ("shuffle", ([1, 2, 3],), {}),
    ("choice", ([1, 2, 3], 2), {"replace": False}), ("categorical", ([[0.0, 1.0, 2.0]], 3), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS)
def test_global_generator_and_functions_of_a_key_agree(name, args, kwargs):
    expected = getattr(G(7), name)(*args, **kwargs)
    random.set_seed(7)
    found = getattr(random, name)(*args, **kwargs)
    seed = jax.random.fold_in(jax.random.key(7), 0)
    for other in (found, getattr(core, name)(seed, *args, **kwargs)):
        np.testing.assert_array_equal(other, expected)
    assert random.get_global_generator().state.numpy().tolist() == [0, 7, 0, 1]


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS)
def test_every_draw_is_the_same_compiled(name, args, kwargs):
    rng = G(7)
    draw = jv.compile(lambda: getattr(rng, name)(*args, **kwargs))
    np.testing.assert_allclose(draw(), getattr(G(7), name)(*args, **kwargs), rtol=1e-5)
    assert rng.state.numpy().tolist() == [0, 7, 0, 1]


def _under(scope, use):
    with scope:
        use(())


@pytest.mark.parametrize("use", [
    jv.compile(lambda: random.normal(())),
    jv.compile(lambda: jv.scan(lambda c, _: (c, random.normal(())), 0, length=3)),
    jv.compile(lambda: random.get_global_generator().state + 0),
    lambda: _under(jv.device("cpu:3"), random.normal),
    lambda: _under(jv.GradientTape(), random.normal),
])  # fmt: skip
def test_first_used_anywhere(use, monkeypatch):
    monkeypatch.setattr(_Global, "generator", None)
    use()
    found = []
    for _ in range(2):
        random.set_seed(1)
        found.append(random.normal(3).tolist())
    assert found[0] == found[1]
    assert random.get_global_generator().state._cell.sharding is None


INTERRUPTED = """
import os, signal
import jaxvars as jv
from jaxvars import tf

def interrupted(n, own=os.urandom):  # it gives the seed of the global generator
    os.urandom = own
    os.kill(os.getpid(), signal.SIGUSR1)
    return own(n)

for get in (jv.random.get_global_generator, tf.random.get_global_generator):
    found, os.urandom = [], interrupted
    signal.signal(signal.SIGUSR1, lambda *_: found.append(get()))
    print([get()] == found)
"""


def test_a_handler_may_draw_while_the_global_generator_is_made(run_python):
    assert run_python("-c", INTERRUPTED, timeout=60).stdout.split() == ["True", "True"]


def test_set_global_generator():
    mine = G(7)
    random.set_global_generator(mine)
    assert random.get_global_generator() is mine
    np.testing.assert_allclose(draws(lambda: random.normal(())), numbers(), rtol=1e-6)
    with pytest.raises(TypeError, match=r"7 is not a Generator; for a seed use .*set_seed\(7\)"):
        random.set_global_generator(7)


# ---------------------------------------------------------------- replicas
@pytest.fixture
def mesh():
    return jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


def test_sharded_over_devices_every_value_differs(mesh):
    rng = G(7)
    expected = G(7).normal((8, 16))
    spread = NamedSharding(mesh, P("data"))
    draw = jv.compile(lambda: jax.lax.with_sharding_constraint(rng.normal((8, 16)), spread))
    x = draw()
    assert len(x.sharding.device_set) == 8
    np.testing.assert_allclose(x, expected, rtol=1e-6)
    assert len(np.unique(np.asarray(x))) == 128


def test_replicas_draw_with_separate_keys(mesh):
    rng = G(7)

    def replica(key):
        own = jax.random.fold_in(key, jax.lax.axis_index("data"))
        return jax.random.normal(own, (4,))

    @jv.compile
    def draw():
        run = jax.shard_map(replica, mesh=mesh, in_specs=P(), out_specs=P("data"))
        return run(rng.next_key())

    first, second = draw(), draw()
    assert len(np.unique(np.concatenate([first, second]))) == 64


def test_a_variable_of_several_devices_and_a_generator_of_one(mesh):
    w = jv.Variable(jnp.zeros(8), sharding=NamedSharding(mesh, P("data")))
    rng = G(7)
    step = jv.compile(lambda: w.assign_add(rng.normal((8,)), read_value=False))
    step()
    step()
    other = G(7)
    np.testing.assert_allclose(w.numpy(), other.normal((8,)) + other.normal((8,)), rtol=1e-5)


# ---------------------------------------------------------------- distributions
def in_a_scan_of_2000(g):
    return jv.scan(lambda c, _: (c, g.normal(())), 0, length=2000)[1]


N = 20_000
LEAST = 1e-3  # of these fixed seeds; a wrong distribution gives p-values of 1e-10 and less


@pytest.mark.parametrize(
    ("draw", "cdf"),
    [
        (lambda g: g.normal((N,)), stats.norm().cdf),
        (lambda g: g.normal((N,), 3.0, 2.0), stats.norm(3, 2).cdf),
        (lambda g: g.truncated_normal((N,), 3.0, 2.0), stats.truncnorm(-2, 2, 3, 2).cdf),
        (lambda g: g.uniform((N,)), stats.uniform().cdf),
        (lambda g: g.uniform((N,), -2.0, 5.0), stats.uniform(-2, 7).cdf),
        (lambda g: g.exponential((N,), 2.0), stats.expon(scale=0.5).cdf),
        (lambda g: g.gamma((N,), 2.5, 2.0), stats.gamma(2.5, scale=0.5).cdf),
        (lambda g: g.gamma((N,), 0.5), stats.gamma(0.5).cdf),
        (lambda g: g.uniform_full_int((N,)) / 2.0**32, stats.uniform().cdf),
        (lambda g: jv.compile(lambda: g.normal((N,)))(), stats.norm().cdf),
        (in_a_scan_of_2000, stats.norm().cdf),
        (jv.compile(in_a_scan_of_2000), stats.norm().cdf),
    ],
)
def test_kolmogorov_smirnov(draw, cdf):
    assert stats.kstest(np.asarray(draw(G(7)), np.float64), cdf).pvalue > LEAST


def test_the_tests_can_fail():
    x = np.asarray(G(7).normal((N,), 0.0, 1.1), np.float64)
    assert stats.kstest(x, stats.norm().cdf).pvalue < LEAST


def counts(x, n):
    return np.bincount(np.asarray(x).ravel(), minlength=n)


@pytest.mark.parametrize(
    ("draw", "p"),
    [
        (lambda g: g.randint((N,), 3, 13) - 3, np.full(10, 0.1)),
        (lambda g: g.uniform((N,), maxval=7, dtype="int32"), np.full(7, 1 / 7)),
        (lambda g: g.bernoulli((N,), 0.3).astype(int), [0.7, 0.3]),
        (lambda g: g.categorical(jnp.log(jnp.array([[0.2, 0.5, 0.3]])), N), [0.2, 0.5, 0.3]),
        (lambda g: g.choice(4, N, p=[0.1, 0.2, 0.3, 0.4]), [0.1, 0.2, 0.3, 0.4]),
        (lambda g: g.choice(jnp.array([3, 0, 1, 2]), N), np.full(4, 0.25)),
        (lambda g: g.binomial((N,), 5, 0.4), stats.binom(5, 0.4).pmf(range(6))),
        (lambda g: jnp.minimum(g.poisson((N,), 2.0), 8),
         [*stats.poisson(2).pmf(range(8)), stats.poisson(2).sf(7)]),
        (lambda g: jnp.stack([g.permutation(3)[0] for _ in range(600)]), np.full(3, 1 / 3)),
        (lambda g: jnp.stack([g.choice(3, 2, replace=False)[1] for _ in range(600)]),
         np.full(3, 1 / 3)),
    ],
)  # fmt: skip
def test_chi_square(draw, p):
    found = counts(draw(G(7)), len(p))
    assert len(found) == len(p)
    assert stats.chisquare(found, np.asarray(p) * found.sum()).pvalue > LEAST


def test_consecutive_draws_are_not_correlated():
    rng = G(7)
    x = np.asarray(jv.compile(in_a_scan_of_2000)(rng))
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.08
    y = np.asarray(G(8).normal((2000,)))
    assert abs(np.corrcoef(x, y)[0, 1]) < 0.08


# ---------------------------------------------------------------- shapes and dtypes
@pytest.mark.parametrize("shape", [(), 3, (3,), [2, 3], np.array([2, 3]), jnp.array([2, 3]), (0,)])
def test_shapes_of_draws(shape):
    expected = (3,) if isinstance(shape, int) else tuple(int(i) for i in shape)
    for name in ("normal", "uniform", "truncated_normal", "exponential", "uniform_full_int"):
        assert getattr(G(7), name)(shape).shape == expected
    assert G(7).randint(shape, 0, 2).shape == expected


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", jnp.float32, float])
@pytest.mark.parametrize("name", ["normal", "uniform", "truncated_normal", "exponential"])
def test_dtypes(name, dtype):
    expected = jnp.float32 if dtype is float else jnp.dtype(dtype)
    assert getattr(G(7), name)((4,), dtype=dtype).dtype == expected


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_integers(dtype):
    for x in (G(7).uniform_full_int((1000,), dtype), G(7).randint((1000,), 0, 100, dtype)):
        assert x.dtype == jnp.dtype(dtype)
    info = jnp.iinfo(dtype)
    x = np.asarray(G(7).uniform_full_int((1000,), dtype), np.float64)
    assert x.min() < info.min + 0.02 * (info.max - info.min)
    assert x.max() > info.max - 0.02 * (info.max - info.min)


def test_parameters_broadcast():
    x = G(7).normal(
        (2, 3), mean=jnp.array([0.0, 100.0, 1000.0]), stddev=jv.Variable([[1.0], [2.0]])
    )
    assert x.shape == (2, 3)
    assert bool(jnp.all(jnp.abs(x - jnp.array([0.0, 100.0, 1000.0])) < 20))
    assert G(7).poisson((2, 3), lam=jnp.array([1.0, 2.0, 3.0])).shape == (2, 3)


def test_uniform_stays_below_its_bound():
    x = G(7).uniform((100_000,), 0.0, 0.1, dtype="bfloat16")
    assert bool(jnp.all((x >= 0) & (x < jnp.asarray(0.1, jnp.bfloat16))))


def test_choices_of_rows():
    rows = jnp.arange(12).reshape(4, 3)
    assert G(7).choice(rows, (5,)).shape == (5, 3)
    assert G(7).choice(rows).shape == (3,)
    shuffled = G(7).shuffle(rows)
    assert sorted(map(tuple, shuffled.tolist())) == sorted(map(tuple, rows.tolist()))
    columns = G(7).permutation(rows, axis=1)
    assert sorted(columns[0].tolist()) == [0, 1, 2]
    assert np.ptp(np.asarray(columns) - np.asarray(rows), axis=0).tolist() == [0, 0, 0]
    assert G(7).shuffle(jv.Variable([1.0, 2.0])).shape == (2,)


def test_categorical_of_batches():
    logits = jnp.where(jnp.eye(3) > 0, 0.0, -jnp.inf)
    assert G(7).categorical(logits, 4).tolist() == [[0] * 4, [1] * 4, [2] * 4]
    assert G(7).categorical(jnp.zeros(5), 4).shape == (4,)
    assert G(7).categorical(jnp.zeros((2, 3, 5)), 4, dtype="int8").shape == (2, 3, 4)


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda g: g.normal("ab"), ShapeError, r"'ab' is not a shape: write integers"),
        (lambda g: g.normal((2.5,)), ShapeError, r"\(2.5,\) is not a shape"),
        (lambda g: g.normal((-1,)), ShapeError, r"\(-1,\) has a negative size"),
        (lambda g: g.normal((2,), jnp.ones(3)), ShapeError, r"mean of shape \(3,\) does not broad"),
        (lambda g: g.normal((), stddev=jnp.ones(3)), ShapeError, r"stddev of shape \(3,\)"),
        (lambda g: g.normal((2,), dtype="int32"), DtypeError, r"cannot have dtype int32"),
        (lambda g: g.normal((2,), dtype="float64"), DtypeError, r"jax_enable_x64"),
        (lambda g: g.normal((2,), dtype="flaot"), TypeError, r"'flaot' is not a dtype"),
        (lambda g: g.uniform((2,), dtype="int32"), ValueError, r"Integers need a maxval"),
        (lambda g: g.uniform((2,), dtype="bool"), DtypeError, r"cannot have dtype bool"),
        (
            lambda g: g.randint((2,), 3, 3),
            ValueError,
            r"No integer exists from minval 3 to maxval 3",
        ),
        (lambda g: g.randint((2,), 0, 300, "uint8"), DtypeError, r"uint8 does not reach"),
        (lambda g: g.randint((2,), 0, 2.5), DtypeError, r"given by integers, not 0 and 2.5"),
        (lambda g: g.bernoulli((2,), 1.5), ValueError, r"p is a probability, from 0 to 1, not 1.5"),
        (lambda g: g.binomial((2,), 3, -1.0), ValueError, r"probs is a probability"),
        (lambda g: g.shuffle(3.0), ShapeError, r"A scalar cannot be shuffled"),
        (lambda g: g.shuffle([1, 2], axis=1), ShapeError, r"Axis 1 does not exist in shape \(2,\)"),
        (lambda g: g.choice(3, 4, replace=False), ValueError, r"draw 4 of 3 elements without"),
        (lambda g: g.choice(0, 4), ValueError, r"draw 4 of 0 elements"),
        (lambda g: g.choice(3, 4, p=[0.5, 0.5]), ShapeError, r"p has shape \(2,\), and there "),
        (lambda g: g.categorical(1.0, 2), ShapeError, r"logits have a last axis"),
    ],
)
def test_what_is_refused_draws_nothing(draw, error, message):
    rng = G(7)
    with pytest.raises(error, match=message):
        draw(rng)
    assert rng.state.numpy().tolist() == [0, 7, 0, 0]


def test_a_shape_that_is_traced():
    rng = G(7)
    with pytest.raises(ShapeError, match=r"only known when the compiled.*static_argn"):
        jv.compile(lambda n: rng.normal((n,)))(3)
    assert jv.compile(static_argnames="n")(lambda n: rng.normal((n,)))(3).shape == (3,)


# ---------------------------------------------------------------- the namespace
def test_the_names():
    kinds = {name for name, *_ in CALLS}
    expected = kinds | {"Generator", "get_global_generator", "set_global_generator", "set_seed"}
    assert set(dir(random)) == expected
    for kind in kinds:
        assert callable(getattr(G, kind))


@pytest.mark.parametrize("number", [int, np.int64, lambda x: np.array([x])])
def test_the_end_of_a_range_may_be_one_more_than_the_largest(number):
    for dtype, low, high in (
        ("uint32", 0, 2**32), ("uint32", 2**31, 2**32), ("int32", 0, 2**31),
        ("int32", -(2**31), 2**31), ("uint32", 2**31, 2**32 - 1), ("uint8", 0, 256),
    ):  # fmt: skip
        x = np.asarray(G(7).randint((1000,), number(low), number(high), dtype), np.float64)
        assert low <= x.min() < low + 0.02 * (high - low)
        assert high > x.max() > high - 0.02 * (high - low)


def test_the_last_integers_of_a_dtype():
    x = np.asarray(G(7).randint((100,), 2**32 - 3, 2**32, "uint32"))
    assert set(x.tolist()) == {2**32 - 3, 2**32 - 2, 2**32 - 1}


@pytest.mark.parametrize("p", [np.float16(1e-4), jnp.bfloat16(1e-3), jnp.bfloat16(0.996)])
def test_a_probability_of_few_bits_is_that_probability(p):
    found = float(core.bernoulli(1, (1_000_000,), p).mean())
    assert found == pytest.approx(float(p), abs=5 * math.sqrt(float(p) / 1e6))


def test_logits_of_few_bits_prefer_no_class():
    draw = core.categorical
    assert float((draw(1, jnp.zeros((1, 1000), jnp.bfloat16), 100_000) < 500).mean()) == (
        pytest.approx(0.5, abs=0.01)
    )
    with pytest.raises(DtypeError, match="uint8 does not hold 300 classes"):
        draw(1, jnp.zeros((1, 300)), 3, dtype="uint8")


@pytest.mark.parametrize(("dtype", "end"), [("float16", 6e4), ("float32", 3e38)])
def test_a_range_may_be_wider_than_the_largest_number(dtype, end):
    x = np.asarray(core.uniform(1, (1000,), -end, end, dtype), np.float64)
    assert -end <= x.min() < -0.9 * end
    assert 0.9 * end < x.max() < end


def test_weights_of_choices_are_checked():
    draw = core.choice
    for p, replace, match in (
        ([1.0, 0.0, 0.0], False, "Only 1 elements have a p above 0, of 3"),
        ([0.0, 0.0, 0.0], True, "Only 0 elements"),
        ([1.0, -1.0, 1.0], True, "weights from 0 on"),
        ([1.0, math.nan, 1.0], True, "weights from 0 on"),
    ):
        with pytest.raises(ValueError, match=match):
            draw(1, 3, 3, replace=replace, p=p)
    assert sorted(draw(1, 3, 2, replace=False, p=[1.0, 1.0, 0.0]).tolist()) == [0, 1]

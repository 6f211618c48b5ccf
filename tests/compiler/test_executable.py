"""A compiled program and the variables' values: aliases, donation, placement, transforms.

Rules of this file:
- a value that was taken before a step is read after it: nothing a user holds is ever deleted;
- `address` looks at memory without taking the value, which would mark it as held.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from buffers import address
from jax.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding

import jaxvars as jv
from jaxvars.core.cells import CALLBACKS, STORE
from jaxvars.errors import CompileError, StaleReadWarning

N = 1000


def adder(*variables: jv.Variable, **options: Any) -> jv.Function:
    def body(x: Any = 1.0) -> Any:
        for v in variables:
            v.assign_add(x * jnp.ones(v.shape))
        return variables[0] * 2

    return jv.compile(body, **options)


# ---------------------------------------------------------------- values that are held elsewhere
def test_held_values_stay_readable():
    v = jv.Variable(jnp.zeros(N))
    step = adder(v)
    held: list[tuple[float, Any]] = []
    for i in range(8):
        held.append((float(i), v.value))
        step()
        if i % 2:
            step(0.0)
    for value, array in held:
        assert not array.is_deleted()
        assert array.tolist() == [value] * N


def test_numpy_views_and_slices_stay_readable():
    v = jv.Variable(jnp.zeros(N))
    step = adder(v)
    step()
    held = [np.asarray(v), v.numpy(), np.asarray(v.value), v[2:5], v.value[1:3], memoryview(v)
            if hasattr(v, "__buffer__") else v.numpy()]  # fmt: skip
    copies = [np.array(x) for x in held]
    for _ in range(4):
        step()
    for before, now in zip(copies, held, strict=True):
        np.testing.assert_array_equal(np.asarray(now), before)


def test_views_taken_at_each_step_stay_readable():
    v = jv.Variable(jnp.zeros(N))
    step = adder(v)
    views = []
    for _ in range(6):
        step()
        views.append(np.asarray(v.value))
    assert [view[0] for view in views] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_an_assigned_array_stays_the_givers():
    v = jv.Variable(jnp.zeros(N))
    step = adder(v)
    for give in (lambda x: v.assign(x), lambda x: v[:].assign(x), lambda x: v[...].assign(x)):
        x = jnp.full(N, 5.0)
        step()
        give(x)
        step()
        step()
        assert x.tolist() == [5.0] * N
        assert v.numpy().tolist() == [7.0] * N


def test_one_array_in_two_variables():
    a, b = jv.Variable(jnp.zeros(N)), jv.Variable(jnp.zeros(N))
    step = adder(a, b)
    for _ in range(3):
        x = jnp.ones(N)
        a.assign(x)
        b.assign(x)
        step()
        step()
        assert a.numpy()[0] == b.numpy()[0] == 3.0
        assert x[0] == 1.0


def test_one_result_in_two_variables():
    a, b = jv.Variable(jnp.ones(N)), jv.Variable(jnp.ones(N))

    @jv.compile
    def step() -> Any:
        y = a + b
        a.assign(y)
        b.assign(y)
        return y

    results = [step() for _ in range(6)]
    assert [float(y[0]) for y in results] == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    assert float(a[0]) == float(b[0]) == 64.0


def test_swapped_variables():
    a, b = jv.Variable(jnp.zeros(N)), jv.Variable(jnp.ones(N))

    @jv.compile
    def swap() -> None:
        old = a.value
        a.assign(b)
        b.assign(old)

    held = []
    for i in range(5):
        if i == 2:
            held.append(a.value)  # a value is held for the rest of the time
        swap()
    assert (float(a[0]), float(b[0])) == (1.0, 0.0)
    assert float(held[0][0]) == 0.0
    a.assign(b)
    swap()
    assert (float(a[0]), float(b[0])) == (0.0, 0.0)


def test_results_that_are_variables_values_stay_readable():
    v, w = jv.Variable(jnp.zeros(N)), jv.Variable(jnp.full(N, 9.0))

    @jv.compile
    def step() -> Any:
        v.assign_add(jnp.ones(N))
        return v, v.value, w, w.value

    bump = adder(w)
    results = []
    for _ in range(5):
        results.append(step())
        bump()
    for i, result in enumerate(results):
        assert [float(x[0]) for x in result] == [i + 1.0, i + 1.0, i + 9.0, i + 9.0]


def test_arguments_that_become_values_stay_readable():
    v, w = jv.Variable(jnp.zeros(N)), jv.Variable(jnp.zeros(N))

    @jv.compile
    def step(x: Any) -> Any:
        v.assign(x)
        return x

    bump = adder(v, w)
    given = []
    for i in range(5):
        given.append(jnp.full(N, float(i)))
        given.append(step(given[-1]))
        bump()
    assert [float(x[0]) for x in given] == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]


def test_a_variables_value_as_an_argument():
    v = jv.Variable(jnp.ones(N))
    step = jv.compile(lambda x: v.assign_add(x))
    for i in range(5):
        x = v.value
        step(x)
        assert float(x[0]) == 2.0**i
    assert float(v[0]) == 32.0


def test_a_state_taken_before_a_step_is_its_own():
    v = jv.Variable(jnp.zeros(N), name="v")
    step = adder(v)
    step()
    for copy in (True, False):
        state = jv.State.of(v, copy=copy)
        step()
        assert state["v"][0] + 1 == v[0] + 0
        state.commit()
        step()
        assert state["v"][0] + 1 == v[0] + 0


def test_pickles_and_copies_taken_between_steps():
    import copy
    import pickle

    v = jv.Variable(jnp.zeros(N))
    step = adder(v)
    for i in range(3):
        step()
        for other in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
            step()
            step(-1.0)
            assert other.numpy()[0] == i + 1.0


# ---------------------------------------------------------------- donation
def test_memory_is_used_again():
    v = jv.Variable(jnp.zeros(N))
    step = adder(v)
    for _ in range(3):
        step()
    where = {address(v)}
    for _ in range(6):
        step()
        where.add(address(v))
    assert len(where) == 1


def test_without_donation_memory_is_not_used_again():
    v = jv.Variable(jnp.zeros(N))
    step = adder(v, donate=False)
    for _ in range(3):
        step()
    before = address(v)
    step()
    assert address(v) != before
    assert v.numpy()[0] == 4.0
    assert "tf.aliasing_output" not in step.trace(1.0).stablehlo


def test_a_value_read_once_costs_one_copy():
    v = jv.Variable(jnp.zeros(N))
    step = adder(v)
    for _ in range(3):
        step()
    assert v.numpy()[0] == 3.0
    step()
    where = address(v)
    step()
    assert address(v) == where


def test_what_is_only_read_is_not_copied():
    w, v = jv.Variable(jnp.ones(N)), jv.Variable(jnp.zeros(N))
    step = jv.compile(lambda: v.assign_add(w))
    step()
    before = address(w)
    for _ in range(4):
        step()
    assert address(w) == before


@pytest.mark.parametrize("donate", [True, False, "auto"])
def test_donation_changes_no_number(donate: Any):
    a, b = jv.Variable(jnp.zeros(N)), jv.Variable(0)

    @jv.compile(donate=donate)
    def step(x: Any) -> Any:
        b.assign_add(1)
        return a.assign(a * 2 + x * b.astype(jnp.float32) if hasattr(b, "astype") else a * 2 + x)

    for _ in range(5):
        step(1.0)
    assert int(b) == 5
    assert np.isfinite(a.numpy()).all()


def test_donation_with_callbacks_is_refused_or_left_out():
    v = jv.Variable(0.0)

    def body(x: Any) -> Any:
        jax.debug.callback(lambda _: None, x)
        return v.assign_add(x)

    with pytest.raises(CompileError, match=r"body calls back into Python.*Use donate=\"auto\""):
        jv.compile(body, donate=True)(1.0)
    assert float(v) == 0.0
    for donate in ("auto", False):
        assert float(jv.compile(body, donate=donate)(1.0)) > 0.0


# ---------------------------------------------------------------- nothing outlives its use
def test_values_are_freed_with_their_variables():
    gc.collect()
    before = len(jax.live_arrays())
    v = jv.Variable(jnp.zeros(N))
    step = adder(v)
    for _ in range(3):
        step()
    ref = weakref.ref(v)
    key = v._cell.key
    del v, step
    gc.collect()
    assert ref() is None
    assert key not in STORE
    assert len(jax.live_arrays()) <= before


def test_values_are_freed_while_the_function_lives_on():
    holder = {"v": jv.Variable(jnp.zeros(N))}
    step = jv.compile(lambda: holder["v"].assign_add(jnp.ones(N)))
    for _ in range(3):
        step()
    gc.collect()
    before = len(jax.live_arrays())
    del holder["v"]
    gc.collect()
    assert len(jax.live_arrays()) < before
    holder["v"] = jv.Variable(jnp.ones(N))
    assert float(step()[0]) == 2.0


# ---------------------------------------------------------------- inside other things
def test_under_jit_a_read_warns_that_it_is_stale():
    w = jv.Variable(3.0, name="w")
    read = jv.compile(lambda x: w * x)
    read(1.0)
    with pytest.warns(StaleReadWarning, match=r"'w' was read while a plain JAX transform.*jv.com"):
        assert float(jax.jit(lambda x: read(x))(2.0)) == 6.0


def test_vmap_grad_and_scan_over_a_compiled_function():
    w = jv.Variable(3.0)
    read = jv.compile(lambda x: w * x**2)
    assert jax.vmap(read)(jnp.arange(3.0)).tolist() == [0.0, 3.0, 12.0]
    assert float(jax.grad(read)(2.0)) == 12.0
    assert float(jax.grad(jax.grad(read))(2.0)) == 6.0
    outer = jv.compile(lambda xs: jax.lax.scan(lambda c, x: (c + read(x), x), 0.0, xs)[0])
    assert float(outer(jnp.arange(3.0))) == 15.0


def test_under_a_tape_reads_are_seen_and_writes_happen():
    v = jv.Variable(2.0)

    @jv.compile
    def step(x: Any) -> Any:
        y = v * v * x
        v.assign_add(1.0)
        return y

    step(1.0)
    with jv.GradientTape() as tape:
        y = step(5.0)
    assert float(y) == 45.0
    assert float(tape.gradient(y, v)) == 30.0
    assert float(v) == 4.0


def test_functionalized_it_is_pure():
    v = jv.Variable(jnp.zeros(3), name="v")
    step = adder(v)
    step()
    pure = jv.functionalize(step)
    state = jv.State.of(v)
    for transform in (lambda f: f, jax.jit):
        result, new = transform(pure)(state)
        assert result.tolist() == [4.0] * 3
        assert new["v"].tolist() == [2.0] * 3
    assert v.numpy().tolist() == [1.0] * 3
    stacked = jax.tree.map(lambda x: jnp.stack([x, 10 * x]), state)
    assert jax.vmap(pure)(stacked)[1]["v"].tolist() == [[2.0] * 3, [11.0] * 3]
    (_, scanned), _ = jax.lax.scan(
        lambda c, _: ((c[0], pure(c[1])[1]), None), (0, state), None, length=4
    )
    assert scanned["v"].tolist() == [5.0] * 3


def test_a_callback_that_failed_leaves_nothing_in_the_way():
    v = jv.Variable(0.0)

    @jv.compile
    def step(x: Any) -> Any:
        jax.debug.callback(lambda y: 1 // int(y), x)
        return v.assign_add(x)

    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match="ZeroDivisionError"):
            step(0.0)
        assert not CALLBACKS
    assert float(step(2.0)) == 2.0


def test_programs_that_call_back_can_be_nested():
    v = jv.Variable(0.0)
    seen: list[float] = []

    @jv.compile
    def inner(x: Any) -> Any:
        jax.debug.callback(lambda y: seen.append(float(y)), v.value)
        return v.assign_add(x)

    outer = jv.compile(lambda x: inner(x) + inner(x))
    for _ in range(2):
        outer(1.0)
    jax.effects_barrier()
    assert seen == [0.0, 1.0, 2.0, 3.0]


# ---------------------------------------------------------------- placement
@pytest.fixture
def mesh() -> jax.sharding.Mesh:
    if len(jax.devices()) < 8:
        pytest.skip("needs eight devices")
    return jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


@pytest.mark.usefixtures("empty_jit_cache")
def test_sharded_variables_keep_their_sharding_and_compile_once(mesh: jax.sharding.Mesh):
    split = NamedSharding(mesh, PartitionSpec("data"))
    whole = NamedSharding(mesh, PartitionSpec())
    w = jv.Variable(jnp.zeros((16, 4)), sharding=split)
    b = jv.Variable(jnp.zeros(4), sharding=whole)

    @jv.compile
    def step(x: Any) -> Any:
        b.assign_add(w.value.sum(0))  # left to itself XLA might shard this
        w.assign(w + x)
        return w.value.sum()

    for _ in range(5):
        step(jnp.ones((16, 4)))
    entry = next(iter(step._entries.values()))
    assert entry._jitted._cache_size() == 1
    assert (w.sharding, b.sharding) == (split, whole)
    assert len(w.value.addressable_shards) == 8
    assert float(step(jnp.ones((16, 4)))) == 6.0 * 64
    assert b.numpy().tolist() == [240.0] * 4


def test_variables_on_another_device_stay_there():
    device = jax.devices()[-1]
    v = jv.Variable(jnp.zeros(3), sharding=device)
    with jv.device("CPU:0"):
        here = jv.Variable(0.0)
    step = jv.compile(lambda x: v.assign_add(x))
    for _ in range(4):
        result = step(np.ones(3, np.float32))
    assert v.device == device
    assert result.device == device
    assert v.sharding == SingleDeviceSharding(device)
    assert v.numpy().tolist() == [4.0] * 3
    assert here.device == jax.devices()[0]


def test_variables_on_two_devices_in_one_program_are_refused_and_unchanged():
    if len(jax.devices()) < 2:
        pytest.skip("needs two devices")
    a = jv.Variable(1.0, sharding=jax.devices()[0])
    b = jv.Variable(2.0, sharding=jax.devices()[1])
    step = jv.compile(lambda: a.assign_add(b))
    for _ in range(2):
        with pytest.raises(ValueError, match="incompatible devices"):
            step()
    assert (float(a), float(b)) == (1.0, 2.0)
    a.assign_add(1.0)
    assert float(a) == 2.0


def test_the_end_of_the_interpreter_is_silent(run_python):
    done = run_python(
        "-c",
        "import jaxvars as jv, jaxvars.compiler.function as module\n"
        "w = jv.Variable(1.0)\n"
        "step = jv.compile(lambda x: w.assign_add(x))\n"
        "step(1.0)\n"
        "exec('other = jv.compile(lambda x: w * x); other(1.0)')\n"
        "kept = module.Function.__call__\n",
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_step_that_overwrites_one_and_updates_another_runs_again_without_jits_caches():
    overwritten, updated = jv.Variable(2.0), jv.Variable(1.0)

    @jv.compile
    def step():
        overwritten.assign(updated * 3.0)
        updated.assign_add(1.0)

    other = adder(updated)
    for _ in range(2):
        step()
        other()
    jax.clear_caches()
    step()
    assert (float(overwritten), float(updated)) == (15.0, 6.0)

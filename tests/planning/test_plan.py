"""`planning/plan.py`, `planning/figures.py` and `planning/elsewhere.py`.

Memory and communication of programs, known before they run.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.core.cells import STORE
from jaxvars.errors import CompileError, ShardingError, StateError
from jaxvars.planning.elsewhere import Elsewhere
from jaxvars.planning.figures import Plan

pytestmark = pytest.mark.skipif(
    len(jv.config.list_devices("cpu")) < 8, reason="needs 8 CPU devices: see conftest.py"
)
WIDTH, HIDDEN, BATCH = 64, 256, 32
F32 = 4


class Net(jv.Module):
    def __init__(self):
        kernel = jv.initializers.HeNormal(seed=1)
        shards = [jax.P(None, "model"), jax.P("model", None)]
        self.up = jv.Variable(lambda: kernel((WIDTH, HIDDEN)), sharding=shards[0], name="up")
        self.down = jv.Variable(lambda: kernel((HIDDEN, WIDTH)), sharding=shards[1], name="down")

    def __call__(self, x):
        return jax.nn.relu(x @ self.up) @ self.down


def build():
    net, adam = Net(), jv.optimizers.Adam(1e-3)

    @jv.compile(in_shardings=jax.P("data"))
    def step(x):
        with jv.GradientTape() as tape:
            loss = jnp.mean(net(x) ** 2)
        weights = net.trainable_variables
        adam.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    adam.build(net.trainable_variables)
    return net, adam, step


@pytest.fixture(scope="module")
def planned():
    with jv.use_mesh({"data": 4, "model": 2}):
        net, adam, step = jv.abstract(build)
        return net, adam, jv.plan(step, jv.TensorSpec((BATCH, WIDTH)))


def test_memory_on_each_device(planned):
    _, _, plan = planned
    weights = 2 * WIDTH * HIDDEN * F32 // 2  # in two parts
    assert plan.devices == 8
    assert plan.memory["trainable variables"] == weights
    assert 2 * weights < plan.memory["other variables"] < 2 * weights + 100  # Adam's, and numbers
    assert plan.memory["arguments"] == BATCH * WIDTH * F32 // 4
    parts = [size for name, size in plan.memory.items() if name != "total"]
    assert plan.memory["total"] == sum(parts)
    assert plan.memory["results"] < 1000  # what is assigned takes the place of what was there


def test_nothing_was_made(planned):
    net, adam, _ = planned
    assert not {v._cell.key for v in (*net.variables, *adam.variables)} & set(STORE)


def test_communication(planned):
    """Sums of activations along "model", of gradients along "data", and nothing else."""
    _, _, plan = planned
    kinds = {(one.kind, one.devices) for one in plan.collectives}
    assert kinds == {("all-reduce", 2), ("all-reduce", 4)}
    along = {n: sum(c.bytes for c in plan.collectives if c.devices == n) for n in (2, 4)}
    activations, gradients = BATCH // 4 * WIDTH * F32, 2 * WIDTH * HIDDEN // 2 * F32
    assert along[2] == activations  # once, though the tape runs it again
    assert gradients <= along[4] < gradients + 100
    assert plan.communication == sum(along.values())


def test_flops(planned):
    _, _, plan = planned
    products = 5 * 2 * BATCH * WIDTH * HIDDEN / 8  # two forward, three backward
    assert products <= plan.flops < 1.5 * products + 20 * 2 * WIDTH * HIDDEN


def test_it_is_shown_as_a_table(planned):
    _, _, plan = planned
    text = repr(plan)
    assert text.startswith("step on 8 devices (figures per device)\n")
    assert "trainable variables" in text
    assert "all-reduce of 4 devices" in text
    assert "<table" in plan._repr_html_()


def test_it_is_what_runs():
    """The planned step, with values, gives what one device gives."""
    x = np.random.default_rng(0).standard_normal((BATCH, WIDTH)).astype(np.float32)
    with jv.use_mesh({"data": 4, "model": 2}):
        _, _, step = build()
        spread = [float(step(x)) for _ in range(3)]
    with jv.use_mesh({"data": 1, "model": 1}):
        _, _, step = build()
        alone = [float(step(x)) for _ in range(3)]
    np.testing.assert_allclose(spread, alone, rtol=1e-5)


def test_a_plan_changes_nothing_and_costs_no_second_trace():
    v = jv.Variable(1.0)
    add = jv.compile(lambda x: v.assign_add(x).value)
    plan = jv.plan(add, jv.TensorSpec(()))
    assert (plan.devices, float(v)) == (1, 1.0)
    assert plan.collectives == {}
    assert float(add(jnp.float32(2.0))) == 3.0
    assert add.trace_count == 1


# ---------------------------------------------------------------- of its own arguments and places
def sharded(mesh, *spec):
    return jax.sharding.NamedSharding(mesh, jax.P(*spec))


def like(mesh, *spec):
    """Return what stands for a batch that is placed."""
    return jax.ShapeDtypeStruct((64, 64), "float32", sharding=sharded(mesh, *spec))


def square(mesh):
    return jv.Variable(np.ones((64, 64), np.float32), sharding=sharded(mesh))


def test_each_plan_is_of_its_own_arguments():
    mesh = jv.mesh({"data": 8})
    w = square(mesh)
    step = jv.compile(lambda x: (x @ w).sum())
    specs = [("data",), (), (None, "data"), ("data",)]
    plans = [jv.plan(step, like(mesh, *spec)) for spec in specs]
    assert [plan.memory["arguments"] for plan in plans] == [2048, 16384, 2048, 2048]
    kinds = [{one.kind for one in plan.collectives} for plan in plans]
    assert kinds == [{"all-reduce"}, set(), {"all-gather"}, {"all-reduce"}]
    assert step.trace_count == 1
    traced = step.trace(like(mesh, "data"))
    step.trace(like(mesh))
    assert "all-reduce" in traced.lower().compile().as_text()


def test_arguments_are_planned_where_they_will_be():
    mesh = jv.mesh({"data": 8})
    w = square(mesh)
    step = jv.compile(lambda x: (x @ w).sum(), in_shardings=jax.P("data"))
    expected = jv.plan(step, jv.TensorSpec((64, 64))).memory
    assert expected["arguments"] == 2048
    for given in (like(mesh), like(mesh, None, "data"), np.ones((64, 64), np.float32)):
        assert jv.plan(step, given).memory == expected
        assert float(step(jnp.ones((64, 64)))) == 64.0**3


def test_a_plan_is_of_where_variables_are_by_now():
    eight, four = jv.mesh({"data": 8}), jv.mesh({"data": 4}, jax.devices()[:4])
    w, x = square(eight), np.ones((64, 64), np.float32)
    step = jv.compile(lambda x: (x @ w).sum(), in_shardings=jax.P("data"))
    for has_run in (False, True):
        for mesh in (eight, four, eight):
            jv.place(w, jax.P(), mesh=mesh)
            plan = jv.plan(step, x)
            assert plan.devices == mesh.size
            assert plan.memory["arguments"] == 64 * 64 * F32 // mesh.size
            assert not has_run or float(step(x)) == 64.0**3
    assert step.trace_count == 1


def test_what_is_placed_in_the_memory_of_the_host_is_not_on_the_devices():
    mesh = jv.mesh({"data": 4}, jax.devices()[:4])
    here, host = (
        jax.NamedSharding(mesh, jax.P("data"), memory_kind=kind)
        for kind in ("device", "pinned_host")
    )
    w = jv.Variable(jax.device_put(jnp.ones((64, 64)), here))
    slot = jv.Variable(jax.device_put(jnp.zeros((64, 64)), host), trainable=False)

    @jv.compile
    def step():
        new = jax.device_put(slot.value, here) * 0.9 + w
        slot.assign(jax.device_put(new, host))
        w.assign_sub(new)

    memory = jv.plan(step).memory
    used = [x for name, x in memory.items() if name not in ("total", "variables on the host")]
    assert memory["trainable variables"] == memory["variables on the host"] == 64 * 64
    assert memory["other variables"] == memory["arguments"] == 0
    assert memory["total"] == sum(used)
    step()
    assert slot.value.sharding.memory_kind == "pinned_host"


def test_a_program_that_has_run_is_compiled_for_looks_into_it_once():
    w, x = square(jv.mesh({"data": 8})), np.ones((64, 64), np.float32)
    step = jv.compile(lambda x: (x @ w).sum(), in_shardings=jax.P("data"))
    step(x)
    concrete = step.trace(x)
    made: list[str] = []
    listen = lambda name, *_, **__: made.append(name)  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        looks = [(concrete.cost, concrete.stablehlo, jv.plan(step, x).memory) for _ in range(3)]
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert looks[0] == looks[1] == looks[2]
    assert sum(name.endswith("backend_compile_duration") for name in made) <= 1


def test_what_is_not_a_compiled_function():
    with pytest.raises(CompileError, match=r"not function: plan\(jv\.compile\(f\), x\)"):
        jv.plan(lambda x: x, 1.0)


# ---------------------------------------------------------------- what a plan creates
class Scale(jv.Module):
    def __init__(self):
        self.w = None

    def __call__(self, x):
        if self.w is None:
            self.w = jv.Variable(jnp.full(x.shape[-1], 2.0), name="w")
            self.mean = jv.Variable(x.mean(0), name="mean")
        return x * self.w


def test_what_a_planned_function_creates_has_values_then():
    scale, x = Scale(), jnp.ones((3, 2))
    call = jv.compile(scale)
    jv.plan(call, x)
    assert scale.w.numpy().tolist() == [2.0, 2.0]
    assert scale.mean.numpy().tolist() == [1.0, 1.0]
    np.testing.assert_array_equal(call(x), 2 * x)
    assert call.trace_count == 1


def trained(*, plan: bool, is_abstract: bool) -> float:
    """The value after two steps of an optimizer that is not built before."""
    make = jv.abstract if is_abstract else lambda fn: fn()
    w, adam = make(lambda: (jv.Variable(jnp.ones(3), name="w"), jv.optimizers.Adam(0.1)))
    step = jv.compile(lambda: adam.minimize(lambda: (w * w).sum(), [w]))
    if is_abstract:
        adam = jv.optimizers.Adam(0.1)
    if plan:
        jv.plan(step)
    if is_abstract:
        assert w._cell.key not in STORE
        assert not any(v._cell.key in STORE for v in adam.slots.get("w", {}).values())
        w.assign(jnp.ones(3))
    step()
    step()
    return float(w[0])


@pytest.mark.parametrize("is_abstract", [False, True])
def test_a_plan_with_an_optimizer_that_is_not_built_changes_nothing(is_abstract):
    planned = trained(plan=True, is_abstract=is_abstract)
    assert planned == trained(plan=False, is_abstract=is_abstract) < 0.85


def test_variables_of_a_plan_that_is_refused_have_their_values():
    made, calls = jv.Module(), []

    @jv.compile
    def call(x):
        calls.append(None)
        if len(calls) == 1:
            made.w = jv.Variable(2.0)
        if len(calls) == 2:
            made.late = jv.Variable(3.0)
        return x * made.w

    with pytest.raises(jv.errors.CreationError, match="create variables on non-first call"):
        jv.plan(call, 1.0)
    assert (float(made.w), float(call(4.0))) == (2, 8)
    assert not hasattr(made, "late")


def test_variables_of_a_plan_that_the_body_breaks_off_have_their_values():
    made = jv.Module()

    @jv.compile
    def call(x, fails):
        if not hasattr(made, "w"):
            made.w = jv.Variable(np.float32(2.0))
        if fails:
            raise ValueError
        return x * made.w

    with pytest.raises(ValueError):
        jv.plan(call, 1.0, True)
    assert (float(made.w), float(call(4.0, False))) == (2, 8)


# ---------------------------------------------------------------- on another mesh
def make_layers(sharded: bool = False):
    """Return a model on one device, and its step, with an optimizer that is not built."""
    net, adam = jv.Module(), jv.optimizers.Adam(1e-3)
    net.up = jv.Variable(np.ones((WIDTH, HIDDEN), np.float32), name="up")
    net.down = jv.Variable(np.ones((HIDDEN, WIDTH), np.float32), name="down")

    @jv.compile(in_shardings=jax.P("data"))
    def step(x):
        with jv.GradientTape() as tape:
            loss = jnp.mean((jax.nn.relu(x @ net.up) @ net.down) ** 2)
        weights = net.trainable_variables
        adam.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    if sharded:
        rules = {"up": jax.P(None, "model"), "down": jax.P("model", None)}
        jv.place(net, rules, mesh=jv.mesh({"data": 1, "model": 1}, jax.devices()[:1]))
    return net, adam, step


AXES = {"data": 4, "model": 2}
X = jv.TensorSpec((BATCH, WIDTH))


@pytest.mark.parametrize("sharded", [False, True])
def test_a_plan_for_another_mesh_is_that_of_the_model_there(sharded):
    net, adam, step = make_layers(sharded)
    plan = jv.plan(step, X, mesh=AXES)
    with jv.use_mesh(AXES):
        there, _, placed = make_layers()
        if sharded:
            jv.place(there, {"up": jax.P(None, "model"), "down": jax.P("model", None)})
        own = jv.plan(placed, X)
    assert (plan.devices, plan.memory, plan.flops) == (8, own.memory, own.flops)
    assert plan.collectives == own.collectives
    assert dict(plan.mesh.shape) == AXES
    for v in (*net.variables, *adam.variables):
        assert len(v.value.sharding.device_set) == 1  # nothing has moved
    with jv.use_mesh({"data": 1}):
        assert float(step(jnp.ones((BATCH, WIDTH)))) == float((WIDTH * HIDDEN) ** 2)


def test_a_program_for_another_mesh_is_the_one_that_its_body_makes_there():
    seen = []

    @jv.compile
    def call(x):
        found = jax.sharding.get_abstract_mesh()
        seen.append(dict(found.shape))
        return jv.shard(x, jax.P("data")) * 2 if seen[-1] else x * 2

    assert jv.plan(call, X, mesh={"data": 8}).devices == 8
    assert seen == [{}, {"data": 8}]
    call(jnp.ones((BATCH, WIDTH)))
    assert seen == [{}, {"data": 8}]


def test_what_is_sharded_along_an_axis_that_is_not_there_is_refused():
    _, _, step = make_layers(sharded=True)
    with pytest.raises(
        ShardingError, match=r"Variable 'up' cannot be sharded as .*'model'"
    ) as info:
        jv.plan(step, X, mesh={"data": 8})
    assert "planned for a mesh of {'data': 8}" in info.value.__notes__[-1]
    with pytest.raises(ShardingError, match=r"Argument x of shape \(30, 64\) .* not a multiple of"):
        jv.plan(make_layers()[2], jv.TensorSpec((30, WIDTH)), mesh={"data": 8})


def test_meshes_are_compared_in_a_table():
    _, _, step = make_layers(sharded=True)
    plans = jv.plan(step, X, meshes=[{"data": 8, "model": 1}, {"data": 1, "model": 8}])
    assert [plan.memory["trainable variables"] for plan in plans] == [131072, 16384]
    assert plans[0].communication > plans[1].communication
    text = repr(plans)
    assert text.startswith("step on 8 devices (figures per device)\n")
    assert "data 8, model 1" in text
    table, picture = plans._repr_html_().split("memory of a device:")
    assert "<table" in table
    assert "width:320px" not in table
    assert picture.count('title="trainable variables: ') == 2
    assert 'title="trainable variables: 16.0 KiB"' in picture


def test_plans_for_other_meshes_are_no_retraces():
    _, _, step = make_layers(sharded=True)
    sizes = [(8, 1), (4, 2), (2, 4), (1, 8)] * 2
    jv.plan(step, X, meshes=[{"data": a, "model": b} for a, b in sizes])  # no RetraceWarning
    assert step.trace_count == 5  # for each mesh once, and here


def test_a_variable_that_is_fixed_to_a_device_is_on_each_device_there():
    with jv.device("CPU:0"):
        count = jv.Variable(np.zeros(16, np.float32), trainable=False)
    plan = jv.plan(jv.compile(lambda x: x.sum() * count.assign_add(1.0)), X, mesh={"data": 8})
    assert (plan.devices, plan.memory["other variables"]) == (8, 64)


def test_a_step_that_calls_back_keeps_both_values():
    count = jv.Variable(0.0)

    def call(x):
        jax.debug.callback(lambda: None)
        return count.assign_add(x.sum()).value

    plan = jv.plan(jv.compile(call), X)
    assert plan.notes == ["it calls back into Python: variables are not donated"]


def test_a_loop_of_unknown_length_is_said_to_be_one():
    def call(x):
        double = lambda y: jv.shard(y, jax.P()) @ jnp.full((WIDTH, WIDTH), 2.0)  # noqa: E731
        return jax.lax.while_loop(lambda y: y.sum() < 1e9, double, x)

    with jv.use_mesh({"data": 8}):
        plan = jv.plan(jv.compile(call, in_shardings=jax.P("data")), jv.TensorSpec((64, WIDTH)))
    assert "a loop of unknown length counts once" in plan.notes


# ---------------------------------------------------------------- what XLA for TPUs says
TOO_LARGE = (
    "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO "
    "temporaries (72.00G) exceeds available HBM (15.75G)."
)


class Refused:
    """A program that XLA for TPUs has no room for, in its words."""

    def __init__(self, concrete, message):
        self.name, self.captured, self.jaxpr = concrete.name, concrete.captured, concrete.jaxpr
        self.message = message

    def lower(self, **_):
        return self

    def compile(self):
        raise jax.errors.JaxRuntimeError(self.message)


@pytest.mark.parametrize(
    ("message", "excess", "total"),
    [
        (TOO_LARGE, int(56.25 * 2**30), 72 * 2**30),
        ("RESOURCE_EXHAUSTED: something else", None, None),
    ],
)
def test_a_program_that_does_not_fit_is_a_plan_that_says_so(message, excess, total):
    w = jv.Variable(np.ones((64, 64), np.float32))
    concrete = jv.compile(lambda x: x @ w).trace(X)
    plan = Plan(Refused(concrete, message))
    assert (plan.fits, plan.excess, plan.memory.get("total")) == (False, excess, total)
    assert plan.memory["trainable variables"] == 64 * 64 * F32
    assert "it does not fit" in repr(plan)
    assert ("56.2 GiB too much" in repr(plan)) == (excess is not None)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        Plan(Refused(concrete, "INTERNAL: no"))


# ---------------------------------------------------------------- what others did not think of
class Here(jv.Module):
    """A weight, and a step that says how arguments are sharded."""

    def __init__(self):
        self.w = jv.Variable(np.ones((WIDTH, WIDTH), np.float32), name="w")

    @jv.compile(in_shardings=jax.P("data"))
    def step(self, x):
        return (x @ self.w).sum()


def test_a_plan_under_a_tape_for_another_mesh():
    here, y = Here(), jv.Variable(3.0)
    with jv.GradientTape() as tape:
        z = y * y
        plan = jv.plan(here.step, X, mesh={"data": 8})
        z = z * y
    assert plan.memory["arguments"] == BATCH * WIDTH * F32 // 8
    assert float(tape.gradient(z, y)) == 27.0
    assert jax.sharding.get_mesh().empty


@pytest.mark.parametrize("given", [{}, {"mesh": {"data": 8}}, {"meshes": [{"data": 8}]}])
def test_a_plan_in_a_compiled_function_is_refused_by_its_name(given):
    here = Here()
    outer = jv.compile(lambda x: jv.plan(here.step, X, **given) and x)
    with pytest.raises(
        jv.errors.ForeignTransformError, match=r"^jv\.plan is called at .*test_plan"
    ):
        outer(1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mesh": {"data": 2}, "meshes": [{"data": 8}]}, "mesh= or meshes=, and both are given"),
        ({"meshes": {"data": 8}}, r"\{'data': 8\} is not a list of meshes: write mesh="),
        ({"meshes": "data"}, "'data' is not a list of meshes"),
        ({"meshes": 8}, "8 is not a list of meshes"),
        ({"topology": 8}, "8 does not name a topology"),
    ],
)
def test_what_is_not_clear_is_refused(given, message):
    with pytest.raises(jv.errors.DeviceError, match=message):
        jv.plan(Here().step, X, **given)
    with pytest.raises(jv.errors.DeviceError, match="is not a list of meshes"):
        jv.plan(Here().step, X, meshes=jv.mesh({"data": 8}))


def test_a_mesh_of_other_devices_than_those_of_the_topology_is_refused(monkeypatch):
    devices = {"one:8": jax.devices(), "one:4": jax.devices()[:4]}
    monkeypatch.setattr("jaxvars.planning.plan.devices_of", devices.__getitem__)
    mesh = jv.mesh({"data": 8})
    assert jv.plan(Here().step, X, topology="one:8", mesh=mesh).devices == 8
    with pytest.raises(jv.errors.DeviceError, match=r"8 cpu devices, and 'one:4' names 4 others"):
        jv.plan(Here().step, X, topology="one:4", mesh=mesh)


def test_values_that_are_sharded_themselves_are_sharded_there_before_and_after_a_call():
    one = jv.mesh({"data": 1}, jax.devices()[:1])
    w = jv.Variable(jax.device_put(np.ones((WIDTH, WIDTH), np.float32), sharded(one, "data")))
    step = jv.compile(lambda x: (x @ w).sum())
    before = jv.plan(step, X, mesh={"data": 8}).memory
    step(np.ones((BATCH, WIDTH), np.float32))
    assert before == jv.plan(step, X, mesh={"data": 8}).memory
    assert before["trainable variables"] == WIDTH * WIDTH * F32 // 8


def test_what_is_in_the_memory_of_the_host_stays_there_elsewhere():
    host = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
    value = np.ones((WIDTH, WIDTH), np.float32)
    w = jv.Variable(jax.device_put(value, host), trainable=False)
    step = jv.compile(lambda x: jax.device_put(w.value, jax.memory.Space.Device) + x.sum())
    memory = jv.plan(step, X, mesh={"data": 8}).memory
    assert (memory["variables on the host"], memory["other variables"]) == (WIDTH * WIDTH * F32, 0)
    one = jv.compile(lambda x: jax.device_put(x, jax.memory.Space.Device) + 1)
    move = partial(Elsewhere, mesh=jv.mesh({"data": 8}))
    places = one.trace(jax.device_put(value, host)).lower(move).compile().input_shardings
    assert {place.memory_kind for place in jax.tree.leaves(places)} == {"pinned_host"}


def test_a_variable_that_will_be_moved_is_planned_where_it_will_be():
    mesh = jv.mesh(AXES)
    up, down = (
        jv.Variable(np.ones(shape, np.float32), sharding=sharded(mesh, *spec))
        for shape, spec in [((64, 128), ("data", "model")), ((128, 64), ("model", "data"))]
    )
    bias = jv.Variable(np.zeros(64, np.float32), name="bias")

    @jv.compile(in_shardings=jax.P("data"))
    def step(x):
        y = jnp.mean((jax.nn.relu(x @ up) @ down + bias) ** 2)
        bias.assign_add(x.sum(0))
        return y

    before = jv.plan(step, X)
    assert len(bias.value.sharding.device_set) == 1
    step(np.ones((BATCH, WIDTH), np.float32))
    after = jv.plan(step, X)
    assert before.memory["arguments"] == BATCH * WIDTH * F32 // 4
    assert (before.memory, before.collectives) == (after.memory, after.collectives)
    assert step.trace_count == 1


def test_what_is_not_placed_together_is_named():
    w = square(jv.mesh({"data": 8}))
    w_of_four = square(jv.mesh({"data": 4}, jax.devices()[:4]))
    step = jv.compile(lambda x: x @ w @ w_of_four)
    for call in (jv.plan, lambda step, x: step.trace(x).lower()):
        with pytest.raises(
            ShardingError, match=r"(?s)incompatible devices:\n.*'data': 8.*'data': 4"
        ):
            call(step, X)
    with pytest.raises(ShardingError, match=r"Argument x: P\('data',\) on a mesh of {'data': 8}"):
        jv.plan(jv.compile(lambda x: x @ w_of_four), like(jv.mesh({"data": 8}), "data"))
    assert jv.plan(step, X, mesh={"data": 2}).devices == 2


def test_a_body_that_names_devices_is_refused_elsewhere():
    two = jv.mesh({"data": 2}, jax.devices()[:2])
    step = jv.compile(lambda x: jv.shard(x, jax.P("data"), mesh=two) * 2)
    with pytest.raises(ShardingError, match=r"places values on certain devices.* jv\.shard\(x,"):
        jv.plan(step, X, mesh={"data": 8})


def test_a_condition_is_said_to_decide():
    w = jv.Variable(np.ones((WIDTH, WIDTH), np.float32))
    both = jv.compile(lambda x: jv.cond(x.sum() > 0, lambda: x @ w, lambda: x @ w @ w))
    small = jv.compile(lambda x: jv.cond(x.sum() > 0, lambda: x * 2, lambda: x) @ w)
    assert jv.plan(both, X).notes == ["a condition decides what runs: not all that counts does"]
    assert jv.plan(small, X).notes == []


class Uncompiled(Refused):
    """A program that JAX has no rule for."""

    def compile(self):
        raise self.message


def test_what_cannot_be_compiled_for_other_devices_is_refused_with_why():
    concrete = jv.compile(lambda x: (jax.debug.callback(lambda: None), x * 2)[1]).trace(X)
    for error in (RuntimeError("Unknown backend: 'gpu'"), NotImplementedError("no rule")):
        with pytest.raises(
            jv.errors.DeviceError, match=rf"calls back into Python.* JAX says: {error}"
        ):
            Plan(Uncompiled(concrete, error), jv.mesh({"data": 8}))
        with pytest.raises(type(error)):
            Plan(Uncompiled(concrete, error))


def test_bfloat16_on_cpus_is_said_to_be_no_estimate():
    note = "CPUs compute bfloat16 in float32: temporaries and collectives are no estimate"
    w = jv.Variable(jnp.ones((8, 8), jnp.bfloat16))
    plan = jv.plan(jv.compile(lambda x: x @ w), jv.TensorSpec((8, 8), jnp.bfloat16))
    assert plan.notes == [note]
    assert note in repr(plan)
    assert not jv.plan(jv.compile(lambda x: x @ x), jv.TensorSpec((8, 8))).notes


class Small(jv.Module):
    def __init__(self):
        self.w = jv.Variable(lambda: jnp.ones((8, 4)), sharding=jax.P(None, "model"), name="w")
        self.n = jv.Variable(0, name="n")

    def __call__(self, x):
        self.n.assign_add(1)
        return jnp.sum(x @ self.w)


@pytest.fixture
def structs():
    with jv.use_mesh({"data": 4, "model": 2}):
        model = jv.abstract(Small)
    return model, jv.functionalize(model), jv.State.of(model)


def test_a_state_without_values_is_of_structs(structs):
    _, pure, state = structs
    assert isinstance(state["w"], jax.ShapeDtypeStruct)
    assert (state["w"].shape, state["w"].dtype) == ((8, 4), np.float32)
    assert state["w"].sharding.spec == jax.P(None, "model")
    loss, after = jax.eval_shape(pure, state, jnp.ones((2, 8)))
    assert (loss.shape, after["n"].dtype) == ((), np.int32)
    lowered = jax.jit(pure).lower(state, jax.ShapeDtypeStruct((8, 8), np.float32))
    assert lowered.compile().input_shardings[0][0]["w"].spec == jax.P(None, "model")


def test_a_state_has_the_values_that_there_are(structs):
    model, _, _ = structs
    model.n.assign(3)
    state = jv.State.of(model)
    assert int(state["n"]) == 3
    assert isinstance(state["w"], jax.ShapeDtypeStruct)


def test_a_state_without_values_is_planned(structs):
    _, pure, state = structs
    plan = jv.plan(pure, state, jv.TensorSpec((8, 8)))
    assert plan.memory["arguments"] == 8 * 2 * F32 + 4 + 8 * 8 * F32  # half of w on each
    assert plan.devices == 8
    other = jv.plan(pure, state, jv.TensorSpec((8, 8)), mesh={"model": 4})
    assert other.memory["arguments"] == 8 * F32 + 4 + 8 * 8 * F32


def test_a_state_without_values_is_not_committed_or_run(structs):
    model, pure, state = structs
    with pytest.raises(StateError, match=r"(?s)changed nothing.*w: the State has no value, only "):
        state.commit()
    with pytest.raises(StateError, match=r"(?s)no values.*jax\.jit\(pure\)\.lower\(state, x\)"):
        pure(state, jnp.ones((2, 8)))
    for use in (jv.interop.to_dict, lambda m: jv.diff(m, m), jv.parallel.check_same):
        with pytest.raises(StateError, match="shapes and dtypes, and no values"):
            use(model)
    assert model.w._cell.key not in STORE
    with pytest.raises(CompileError, match="takes a compiled function, not func"):
        jv.plan(lambda x: x, 1.0)

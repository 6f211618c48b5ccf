"""Steps compiled for TPUs and GPUs that are not here, beside hand-written ones.

Run with `pytest -m topology`. It needs the compilers, and none of the devices:
`pip install "jaxvars[tpu]"` or `pip install "jaxvars[plan-gpu]"` with JAX_PLATFORMS=cpu.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars.planning.hlo import collectives_in, count_products, passes_of

pytestmark = pytest.mark.topology
for_tpu = pytest.mark.skipif(find_spec("libtpu") is None, reason="needs jaxvars[tpu]")
for_gpu = pytest.mark.skipif(
    find_spec("jax_cuda12_plugin") is None, reason="needs jaxvars[plan-gpu]"
)
P = jax.P
RATE, MOMENTUM, DECAY, EPSILON = 1e-3, 0.9, 0.999, 1e-7
LAYOUT = ("NHWC", "HWIO", "NHWC")
Loss = Callable[[Any, Any], Any]


# ---------------------------------------------------------------- models: weights, specs, loss
def mlp(w: Any, x: Any) -> Any:
    return jnp.mean((jax.nn.relu(x @ w["up"]) @ w["down"]) ** 2)


def decoder(w: Any, x: Any) -> Any:
    def layer(y: Any, each: Any) -> Any:
        return y + (jax.nn.gelu(y @ each[0]) @ each[1]), None

    y, _ = jax.lax.scan(jax.checkpoint(layer), x, (w["up"], w["down"]))
    return jnp.mean(y.astype(jnp.float32) ** 2)


def cnn(w: Any, x: Any) -> Any:
    y = jax.lax.conv_general_dilated(
        x, jnp.asarray(w["kernel"]), (1, 1), "SAME", dimension_numbers=LAYOUT
    )
    mean, var = y.mean((0, 1, 2)), y.var((0, 1, 2))
    return jnp.mean(jax.nn.relu((y - mean) * jax.lax.rsqrt(var + 1e-3) * w["scale"]) ** 2)


def rnn(w: Any, x: Any) -> Any:
    def turn(h: Any, each: Any) -> Any:
        return jnp.tanh(each @ w["in"] + h @ w["again"]), None

    h, _ = jax.lax.scan(turn, jnp.zeros((x.shape[0], w["again"].shape[0])), x.swapaxes(0, 1))
    return jnp.mean(h**2)


def f32(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def bf16(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


ALONG = P(None, "model")
CASES = {
    "mlp": (
        mlp,
        f32(256, 512),
        {"up": (f32(512, 2048), ALONG), "down": (f32(2048, 512), P("model"))},
    ),
    "decoder": (
        decoder,
        bf16(256, 512),
        {
            "up": (bf16(4, 512, 2048), P(None, "data", "model")),
            "down": (bf16(4, 2048, 512), P(None, "model", "data")),
        },
    ),
    "cnn": (
        cnn,
        f32(64, 32, 32, 16),
        {"kernel": (f32(3, 3, 16, 128), P(None, None, *ALONG)), "scale": (f32(128), P("model"))},
    ),
    "rnn": (rnn, f32(64, 32, 128), {"in": (f32(128, 256), ALONG), "again": (f32(256, 256), ALONG)}),
}


def update(w: Any, m: Any, v: Any, g: Any, n: Any) -> tuple[Any, Any, Any]:
    """Return what Adam makes of a weight and its moments."""
    m, v = MOMENTUM * m + (1 - MOMENTUM) * g, DECAY * v + (1 - DECAY) * g * g
    rate = RATE * jnp.sqrt(1 - DECAY**n) / (1 - MOMENTUM**n)
    return w - (rate * m / (jnp.sqrt(v) + EPSILON)).astype(w.dtype), m, v


def with_variables(loss: Loss, x: Any, weights: Any, mesh: Any) -> Any:
    """Compile the step of a model without values."""

    def build() -> Any:
        new = lambda spec, name: jv.Variable(jnp.zeros(spec.shape, spec.dtype), name=name)  # noqa: E731
        kinds = ("w", "m", "v")
        return {k: {n: new(s, n) for n, (s, _) in weights.items()} for k in kinds}, jv.Variable(0.0)

    with jv.use_mesh(mesh):
        state, count = jv.abstract(build)
        for each in state.values():
            jv.place(each, {name: spec for name, (_, spec) in weights.items()})

        @jv.compile(in_shardings=P("data"))
        def step(x: Any) -> Any:
            with jv.GradientTape() as tape:
                value = loss(state["w"], x)
            grads = tape.gradient(value, state["w"])
            n = count.assign_add(1.0).value
            for name, grad in grads.items():
                old = [state[k][name] for k in ("w", "m", "v")]
                for variable, new in zip(old, update(*old, grad, n), strict=True):
                    variable.assign(new)
            return value

        return step.trace(jv.TensorSpec(x.shape, x.dtype)).lower().compile()


def hand_written(loss: Loss, x: Any, weights: Any, mesh: Any) -> Any:
    """Compile the step as a pure function."""

    def step(state: Any, x: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(state["w"], x)
        n = state["n"] + 1
        new = {k: update(*(state[s][k] for s in "wmv"), grads[k], n) for k in weights}
        return {"n": n, **{s: {k: new[k][i] for k in new} for i, s in enumerate("wmv")}}, value

    place = lambda spec, where: spec.update(sharding=jax.NamedSharding(mesh, where))  # noqa: E731
    state: Any = {s: {k: place(*each) for k, each in weights.items()} for s in "wmv"}
    state["n"] = place(f32(), P())
    shardings = jax.tree.map(lambda s: s.sharding, state)
    jitted = jax.jit(step, donate_argnums=0, out_shardings=(shardings, None))
    return jitted.lower(state, place(x, P("data"))).compile()


def sent_by(compiled: Any) -> tuple[int, int]:
    """Return how many collectives run, and the bytes of them."""
    found = collectives_in(passes_of(compiled.as_text()))
    return found.total(), sum(one.bytes * count for one, count in found.items())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "topology", [pytest.param("v5e:2x2", marks=for_tpu), pytest.param("h100:4", marks=for_gpu)]
)
def test_a_step_with_variables_is_like_a_hand_written_one(topology, case):
    mesh = jv.mesh({"data": 2, "model": 2}, topology)
    ours, hand = (make(*CASES[case], mesh) for make in (with_variables, hand_written))
    mine, theirs = ours.memory_analysis(), hand.memory_analysis()
    assert mine.argument_size_in_bytes == theirs.argument_size_in_bytes
    assert mine.alias_size_in_bytes == theirs.alias_size_in_bytes > 0
    assert abs(mine.temp_size_in_bytes - theirs.temp_size_in_bytes) <= 2**16
    assert sent_by(ours) <= sent_by(hand)
    assert count_products(passes_of(ours.as_text())) == count_products(passes_of(hand.as_text()))
    if topology.startswith("v"):  # for GPUs XLA counts none
        flops = [compiled.cost_analysis()["flops"] for compiled in (ours, hand)]
        assert flops[0] == pytest.approx(flops[1], rel=0.01)


# ---------------------------------------------------------------- plans of a topology
def make_step(loss: Loss, weights: Any) -> tuple[Any, Any]:
    net = {n: jv.Variable(jnp.zeros(s.shape, s.dtype), name=n) for n, (s, _) in weights.items()}
    adam = jv.optimizers.Adam(1e-3)

    @jv.compile(in_shardings=P("data"))
    def step(x: Any) -> Any:
        with jv.GradientTape() as tape:
            value = loss(net, x)
        adam.apply_gradients(zip(tape.gradient(value, [*net.values()]), net.values(), strict=True))
        return value

    return net, step


@for_tpu
def test_a_model_with_values_is_planned_for_a_pod():
    loss, _, weights = CASES["decoder"]
    net, step = make_step(loss, weights)
    specs = {name: spec for name, (_, spec) in weights.items()}
    jv.place(net, specs, mesh=jv.mesh({"data": 1, "model": 1}, jax.devices()[:1]))
    x = jv.TensorSpec((1024, 512), "bfloat16")
    plan = jv.plan(step, x, topology="v5e:16x16", mesh={"data": 16, "model": 16})
    assert (plan.devices, plan.kind, plan.fits) == (256, "TPU v5 lite", True)
    assert plan.memory["trainable variables"] == 2 * 4 * 512 * 2048 * 2 // 256
    kinds = {one.kind for one in plan.collectives}
    assert {"all-gather", "all-reduce"} <= kinds
    assert not plan.notes  # each loop's length is known
    assert set(plan.seconds) == {"arithmetic", "memory", "communication"}
    products = 7 * 4 * 2 * 1024 * 512 * 2048 / 256  # two forward, one again, four backward
    assert products <= plan.flops < 1.3 * products
    assert all(v.value.sharding.device_set == {jax.devices()[0]} for v in net.values())
    table = repr(plan)
    assert table.startswith("step on 256 TPU v5 lite devices (figures per device)\n")
    assert "it fits" in table
    assert "at least" in table


@for_tpu
def test_a_model_without_values_and_one_device():
    loss, x, weights = CASES["mlp"]
    _, step = jv.abstract(lambda: make_step(loss, weights))
    with pytest.raises(jv.errors.ShardingError) as info:
        jv.plan(step, x, topology="v5e:2x2")  # `in_shardings` name an axis, and there is no mesh
    assert "jv.plan(..., mesh=...)" in info.value.__notes__[-1]
    plan = jv.plan(step, x, topology="v6e:2x2", mesh={"data": 4})
    assert (plan.devices, plan.kind) == (4, "TPU v6 lite")
    one = jv.plan(jv.compile(lambda x: x @ x), f32(64, 64), topology="v5e:2x2")
    assert (one.devices, one.fits) == (1, True)


@for_tpu
def test_what_does_not_fit_is_a_plan_that_says_by_how_much():
    big = jv.abstract(lambda: jv.Variable(lambda: jnp.zeros((2**16, 2**17)), name="big"))
    step = jv.compile(lambda x: big.assign_add(x @ big))
    plan = jv.plan(step, f32(2**16, 2**16), topology="v5e:2x2", mesh={"data": 4})
    assert plan.fits is False
    assert plan.excess > 2**34
    assert "GiB too much" in repr(plan)


@for_tpu
def test_a_model_on_a_mesh_keeps_its_axes():
    loss, x, weights = CASES["mlp"]
    with jv.use_mesh(jv.mesh({"data": 2, "model": 2}, "v5e:2x2")):
        net, step = jv.abstract(lambda: make_step(loss, weights))
        jv.place(net, {name: spec for name, (_, spec) in weights.items()})
        here = jv.plan(step, x)
    there = jv.plan(step, x, topology="v5p:2x2x1")
    assert (here.kind, there.kind) == ("TPU v5 lite", "TPU v5")
    assert here.memory["trainable variables"] == there.memory["trainable variables"]
    with pytest.raises(jv.errors.ShardingError, match=r"'v5e:2x4' has 8 devices\. Say how"):
        jv.plan(step, x, topology="v5e:2x4")


@for_tpu
def test_a_state_without_values_is_planned_for_a_pod():
    loss, x, weights = CASES["mlp"]
    with jv.use_mesh({"data": 2, "model": 2}):
        net = jv.abstract(lambda: make_step(loss, weights))[0]
        jv.place(net, {name: spec for name, (_, spec) in weights.items()})
        state = jv.State.of(net)
    pure = jv.functionalize(lambda x: loss(net, x))
    spec = jax.ShapeDtypeStruct(x.shape, x.dtype)
    plan = jv.plan(pure, state, spec, topology="v5e:2x2")  # the mesh is that of the State
    assert (plan.devices, plan.kind, plan.fits) == (4, "TPU v5 lite", True)
    assert plan.collectives  # what is split along "model" is summed
    wide = jv.plan(pure, state, spec, topology="v5e:4x4", mesh={"data": 4, "model": 4})
    assert wide.memory["arguments"] < plan.memory["arguments"]


@for_tpu
def test_a_tf_function_is_planned():
    import jaxvars.tf as tf

    w = tf.Variable(tf.ones((64, 64)))

    class Layer(tf.Module):
        @tf.function
        def __call__(self, x: Any) -> Any:
            return tf.matmul(x, w)

    for function in (tf.function(lambda x: tf.matmul(x, w)), Layer().__call__):
        plan = jv.plan(function, tf.ones((8, 64)), topology="v5e:2x2")
        assert (plan.devices, plan.memory["trainable variables"]) == (1, 64 * 64 * 4)


@for_gpu
def test_a_plan_for_gpus():
    loss, x, weights = CASES["mlp"]
    net, step = make_step(loss, weights)
    plan = jv.plan(step, x, topology="a100:16", mesh={"data": 16})
    assert (plan.devices, plan.kind, plan.fits) == (16, "NVIDIA A100-SXM4-80GB", True)
    assert plan.memory["trainable variables"] == 2 * 512 * 2048 * 4
    products = 5 * 2 * 256 * 512 * 2048 / 16
    assert products <= plan.flops < 1.1 * products
    assert set(plan.seconds) == {"arithmetic", "memory", "communication"}
    assert len(net["up"].value.sharding.device_set) == 1
    big = jv.abstract(lambda: jv.Variable(lambda: jnp.zeros((2**17, 2**18)), name="big"))
    large = jv.plan(jv.compile(lambda: big.assign_add(big)), topology="h100:1")
    assert large.fits is False
    assert large.excess == large.memory["total"] - 84942979072 > 2**34
    for name in ("h100:0", "h100:12"):
        with pytest.raises(jv.errors.DeviceError, match="1 to 8 of them, or a multiple of 8"):
            jv.mesh({"data": -1}, name)


# ---------------------------------------------------------------- what is not on the devices
HERE = jax.devices()[0]


@for_tpu
def test_an_argument_in_the_memory_of_the_host_is_not_on_the_devices():
    host = jax.sharding.SingleDeviceSharding(HERE, memory_kind="pinned_host")
    double = jv.compile(lambda x: jax.device_put(x, jax.memory.Space.Device) * 2)
    x = jax.device_put(jnp.ones((64, 64)), host)
    plan = jv.plan(double, x, topology="v5e:2x2", mesh={"data": 4})
    assert plan.memory["arguments"] == 0


@for_gpu
def test_what_a_plan_for_gpus_cannot_know_it_says():
    host = jax.sharding.SingleDeviceSharding(HERE, memory_kind="pinned_host")
    w = jv.Variable(jax.device_put(jnp.ones((64, 64)), host))
    use = jv.compile(lambda x: x @ jax.device_put(w.value, jax.memory.Space.Device))
    notes = jv.plan(use, f32(64, 64), topology="h100:4").notes
    assert [note.split(":")[0] for note in notes] == [
        "JAX knows no memory of the host of such devices",
        "of operations only matrix products are counted",
    ]
    loud = jv.compile(lambda x: (jv.print(x), x * 2)[1])
    with pytest.raises(jv.errors.DeviceError, match=r"calls back into Python, as jv\.print does"):
        jv.plan(loud, f32(64, 64), topology="h100:4")

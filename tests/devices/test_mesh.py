"""Meshes: many devices do what one does, compiled once, and communicate no more than plain JAX.

Rule of this file: a step in which devices talk is waited for, by reading its result. XLA's virtual
CPU devices share a few threads, and with many such programs on the way they wait for each other.
"""

from __future__ import annotations

import copy
import pickle

import jax
import jax.numpy as jnp
import mesh_programs as programs
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding

import jaxvars as jv
from jaxvars.errors import DeviceError, ShardingError

P = jax.P
pytestmark = [
    pytest.mark.skipif(jax.device_count() < 8, reason="needs 8 devices: see conftest.py"),
    pytest.mark.usefixtures("empty_jit_cache"),
]


@pytest.fixture(scope="module")
def grid():
    return jv.mesh({"data": 4, "model": 2})


def entry_of(function):
    (entry,) = function._entries.values()
    return entry


def compiles_of(function):
    return entry_of(function)._jitted._cache_size()


def specs_of(variables):
    return {v.name: v.sharding.spec for v in variables}


def ones(*shape):
    return np.ones(shape, np.float32)


# ---------------------------------------------------------------- the same as one device
STEPS = 10


@pytest.fixture(scope="module")
def one_device():
    model, optimizer = programs.Block(), jv.optimizers.Adam(0.01)
    step = programs.make_step(model, optimizer)
    losses = [float(step(*programs.batch(i))) for i in range(STEPS)]
    return losses, [v.numpy() for v in [*model.variables, *optimizer.variables]]


@pytest.mark.parametrize("layout", programs.LAYOUTS)
def test_a_transformer_block_trains_as_on_one_device(layout, one_device):
    axes, rules = programs.LAYOUTS[layout]
    mesh = jv.mesh(axes)
    model, optimizer = programs.Block(), jv.optimizers.Adam(0.01)
    jv.place(model, rules, mesh=mesh)
    declared = specs_of(model.variables)
    step = programs.make_step(model, optimizer, in_shardings=P("data"))

    losses = [float(step(*programs.batch(i))) for i in range(STEPS)]

    expected_losses, expected = one_device
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-6)
    for v, value in zip([*model.variables, *optimizer.variables], expected, strict=True):
        np.testing.assert_allclose(v.numpy(), value, atol=3e-6, err_msg=v.name)
    assert (step.trace_count, compiles_of(step)) == (1, 1)
    assert specs_of(model.variables) == declared
    for v in model.variables:  # the slots follow
        for slot in ("momentum", "velocity"):
            assert optimizer.get_slot(v, slot).sharding == v.sharding
    assert optimizer.iterations.sharding == NamedSharding(mesh, P())

    text = step.trace(*programs.batch(0)).lower().compile().as_text()
    shardings = {path: v.sharding for path, v in model.params.items()}
    mine, by_hand = map(programs.collectives, (text, programs.by_hand(shardings, mesh)))
    assert mine
    assert all(mine[name] <= by_hand[name] for name in mine), (mine, by_hand)


def test_variables_are_donated_and_an_older_value_stays_readable(grid):
    with jv.use_mesh(grid):
        v = jv.Variable(ones(8, 4), sharding=P("data", "model"))
    step = jv.compile(lambda x: v.assign_add(x, read_value=False))
    for _ in range(3):
        step(1.0)
    entry = entry_of(step)
    (inside,) = entry._write_back.values
    step(1.0)
    assert inside.is_deleted()
    kept = v.value
    step(1.0)
    np.testing.assert_array_equal(kept, ones(8, 4) * 5)
    assert float(v[0, 0].value) == 6
    text = step.trace(1.0).lower().compile().as_text()
    assert "input_output_alias" in text


def test_gradients_are_accumulated_as_on_one_device(grid):
    def train(rules):
        w = {"kernel": jv.Variable(np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4))}
        if rules:
            jv.place(w, rules, mesh=grid)
        optimizer = jv.optimizers.SGD(0.1, momentum=0.9, gradient_accumulation_steps=2)

        @jv.compile
        def step(x):
            with jv.GradientTape() as tape:
                loss = jnp.mean((x @ w["kernel"]) ** 2)
            optimizer.apply_gradients([(tape.gradient(loss, w["kernel"]), w["kernel"])])
            return loss

        rng = np.random.default_rng(0)
        losses = [float(step(rng.normal(size=(8, 8)).astype(np.float32))) for _ in range(4)]
        return losses, w["kernel"], optimizer, step

    losses, w, _, _ = train(None)
    spread, v, optimizer, step = train([("kernel", P("data", "model"))])
    np.testing.assert_allclose(spread, losses, rtol=2e-6)
    np.testing.assert_allclose(v.numpy(), w.numpy(), atol=1e-6)
    assert compiles_of(step) == 1
    assert optimizer.get_slot(v, "gradient_accumulator").sharding == v.sharding


# ---------------------------------------------------------------- making meshes
def test_a_mesh_has_the_axes_asked_for():
    made = jv.mesh({"data": 4, "model": -1})
    assert dict(made.shape) == {"data": 4, "model": 2}
    assert made.axis_types == (AxisType.Auto, AxisType.Auto)
    assert jv.mesh({"data": 2}).size == 2
    back = jax.devices()[::-1]
    assert list(jv.mesh({"a": 2, "b": 4}, back).devices.flat) == back


@pytest.mark.parametrize(
    ("axes", "given", "words"),
    [
        ({"data": 16}, None, r"needs 16 devices, and there are 8\..*\n.*device_count=16 python"),
        ({"data": -1, "model": 3}, None, r"needs a multiple of 3 devices, and there are 8\."),
        ({"data": 4}, 8, r"has 4 devices, and 8 are given"),
        ({}, None, r"\{\} is not a mesh: name at least one axis"),
        ({"data": -1, "model": -1}, None, r"one -1 at most"),
        ({"data": 0}, None, r"each of size 1 or more"),
        ({"data": 2.0}, None, r"each of size 1 or more"),
    ],
)
def test_meshes_that_cannot_be(axes, given, words):
    with pytest.raises(DeviceError, match=words):
        jv.mesh(axes, None if given is None else jax.devices()[:given])


def test_explicit_axes_are_refused():
    explicit = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Explicit,))
    words = r"must be Auto(.|\n)*jv.mesh\(\{'data': 8\}\)"
    with pytest.raises(ShardingError, match=words), jv.use_mesh(explicit):
        pass
    with pytest.raises(ShardingError, match="must be Auto"):
        jv.Variable(ones(8), sharding=NamedSharding(explicit, P("data")))


# ---------------------------------------------------------------- variables
def test_variables_in_the_scope_of_a_mesh(grid):
    with jv.use_mesh(grid) as inside:
        spread = jv.Variable(ones(8, 4), sharding=P("data", "model"))
        whole = jv.Variable([1.0, 2.0])
        text = jv.Variable("text")
        drawn = jv.random.Generator.from_seed(1)
    assert inside is grid
    assert spread.sharding == NamedSharding(grid, P("data", "model"))
    assert whole.sharding == NamedSharding(grid, P())
    assert text.item() == "text"
    assert all(v.sharding.device_set == set(jax.devices()) for v in drawn.variables)
    assert jv.Variable(1.0).device is not None

    for v in (spread, copy.deepcopy(spread), pickle.loads(pickle.dumps(spread))):
        v.assign(jnp.zeros((8, 4)))
        v.assign_add(1)
        v[0].assign(5.0)
        assert v.sharding == NamedSharding(grid, P("data", "model"))
        assert float(v.value.sum()) == 7 * 4 + 5 * 4


def test_a_mesh_of_jax_itself_is_in_force_too(grid):
    with jax.set_mesh(grid):
        assert jv.Variable(ones(4), sharding=P("data")).sharding == NamedSharding(grid, P("data"))
        assert jv.Variable(ones(4)).sharding == NamedSharding(grid, P())


def test_values_from_elsewhere_become_variables_on_the_mesh(grid):
    there = jax.device_put(ones(4), jax.devices()[3])
    with jv.use_mesh(grid):
        assert jv.Variable(there, sharding=P("data")).sharding.spec == P("data")
        assert jv.Variable(lambda: there).sharding == NamedSharding(grid, P())
    np.testing.assert_array_equal(there, ones(4))


@pytest.mark.parametrize(
    ("shape", "spec", "words"),
    [
        ((7, 4), P("data"), r"dimension 0 has size 7, not a multiple of the 4 devices along"),
        ((4, 4), P(("data", "model")), r"not a multiple of the 8 devices along 'data' and 'model'"),
        ((4,), P("data", "model"), r"of shape \(4,\) has 1 dimensions, and P.* is for 2"),
        ((4,), P("modle"), r"over a mesh of {'data': 4, 'model': 2}: .*'modle'"),
        ((4, 4), P("data", "data"), r"'data' is there twice"),
        ((4,), "data", r"'data' is not a placement\. Give a PartitionSpec"),
    ],
)
def test_variables_that_do_not_fit_a_mesh(grid, shape, spec, words):
    with jv.use_mesh(grid), pytest.raises(ShardingError, match=words) as error:
        jv.Variable(ones(*shape), name="w", sharding=spec)
    assert str(error.value).startswith("Variable 'w'")


def test_a_spec_needs_a_mesh():
    with pytest.raises(ShardingError, match=r"no mesh is in force\.(.|\n)*with jv.use_mesh"):
        jv.Variable(ones(4), sharding=P("data"))


def test_a_compiled_function_creates_variables_on_the_mesh(grid):
    made = []

    @jv.compile
    def step(x):
        if not made:
            made.append(jv.Variable(lambda: jnp.ones((4, 4)), sharding=P(None, "model")))
            made.append(jv.Variable(0.0))
        made[1].assign_add(x.sum())
        return x @ made[0]

    with jv.use_mesh(grid):
        for _ in range(3):
            step(ones(8, 4))
    assert made[0].sharding == NamedSharding(grid, P(None, "model"))
    assert made[1].sharding == NamedSharding(grid, P())
    assert float(made[1]) == 3 * 32
    assert compiles_of(step) == 1


def test_what_was_placed_nowhere_moves_to_the_mesh_once(grid):
    count = jv.Variable(0, name="count")
    bias = jv.Variable(ones(4), name="bias")
    with jv.use_mesh(grid):
        w = jv.Variable(ones(4, 4), sharding=P(None, "model"))
    alone = jv.compile(lambda: count.assign_add(1, read_value=False))
    alone()
    alone()

    @jv.compile
    def step(x):
        count.assign_add(1)
        return x @ w + bias

    for _ in range(3):
        np.testing.assert_array_equal(step(ones(8, 4)), ones(8, 4) * 5)
    assert compiles_of(step) == 1
    assert count.sharding == bias.sharding == NamedSharding(grid, P())
    alone()  # compiled again, not traced again
    alone()
    assert (int(count), alone.trace_count, compiles_of(alone)) == (7, 1, 1)
    assert count.sharding == NamedSharding(grid, P())


def test_control_flow_and_eager_updates_keep_shardings(grid):
    with jv.use_mesh(grid):
        w = jv.Variable(ones(4, 4), sharding=P("data"))
        total = jv.Variable(0.0)

    @jv.compile
    def loop(xs):
        def body(carry, x):
            total.assign_add(x)
            w.assign(w * x)
            return carry + x, total.value

        return jv.scan(body, 0.0, xs)

    for _ in range(2):
        loop(np.array([1.0, 2.0], np.float32))
    assert (float(total), float(w.value.sum()), compiles_of(loop)) == (6, 64, 1)
    assert w.sharding.spec == P("data")

    with jv.GradientTape() as tape:
        loss = (w.value**2).sum()
    optimizer = jv.optimizers.Adafactor(0.1)
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    assert w.sharding.spec == P("data")
    for slot in optimizer.slots[next(iter(optimizer.slots))].values():
        assert slot.sharding.device_set == set(jax.devices())
        assert slot._cell.sharding.spec == (P("data") if slot.shape == w.shape else P())


# ---------------------------------------------------------------- what is on different devices
def test_a_program_of_local_and_mesh_variables_is_refused(grid):
    with jv.use_mesh(grid):
        w = jv.Variable(ones(4), name="w", sharding=P("data"))
    with jv.device("CPU:3"):
        local = jv.Variable(ones(4), name="local")
    step = jv.compile(lambda: w.assign_add(local, read_value=False))
    for _ in range(2):
        with pytest.raises(ShardingError, match="incompatible devices") as error:
            step()
        assert "Variable 'w': P('data',) on a mesh of {'data': 4, 'model': 2}" in str(error.value)
        assert "Variable 'local': CPU:3" in str(error.value)
    np.testing.assert_array_equal(w, ones(4))
    jv.place(local, {"**": P()}, mesh=grid)
    step()
    np.testing.assert_array_equal(w, ones(4) * 2)


def test_an_argument_from_elsewhere_is_refused_at_any_call(grid):
    with jv.use_mesh(grid):
        w = jv.Variable(ones(4), name="w", sharding=P("data"))
    elsewhere = {"x": jax.device_put(ones(4), jax.devices()[1])}
    step = jv.compile(lambda batch: w.assign_add(batch["x"]))
    for call in range(4):
        with pytest.raises(ShardingError) as error:
            step(elsewhere)
        assert "Argument batch['x']: CPU:1" in str(error.value)
        step({"x": ones(4)})
        assert float(w[0].value) == 2 + call
    step(jv.shard(elsewhere, P("data"), mesh=grid))


# ---------------------------------------------------------------- arguments
def test_arguments_are_sharded_as_they_arrive(grid):
    with jv.use_mesh(grid):
        w = jv.Variable(ones(4, 4), sharding=P(None, "model"))
    step = jv.compile(lambda x, scale: (x * scale) @ w, in_shardings=P("data"))
    assert "f32[2,4]" in step.trace(ones(8, 4), 2.0).lower().compile().as_text()
    for x in (ones(8, 4), jnp.ones((8, 4)), jax.device_put(ones(8, 4), jax.devices()[2])):
        assert step(x, 2.0).sharding.spec == P("data", "model")
        assert step(x, 2.0).sharding.spec == P("data", "model")
    with pytest.raises(ShardingError, match=r"Argument x of shape \(7, 4\) cannot be sharded"):
        step(ones(7, 4), 2.0)
    assert "f32[2,4]" in step.trace(ones(8, 4), 2.0).lower().compile().as_text()


def test_arguments_are_sharded_by_name_and_in_other_functions(grid):
    with jv.use_mesh(grid):
        w = jv.Variable(ones(4, 4))

        @jv.compile(in_shardings={"batch": P("data")})
        def inner(batch, other):
            return batch["x"] @ w + other

        outer = jv.compile(lambda x: inner({"x": x}, x))
        assert outer(ones(8, 4)).sharding.spec[0] == "data"
        assert inner({"x": ones(8, 4)}, ones(8, 4)).sharding.spec[0] == "data"
        with jv.GradientTape() as tape:
            loss = inner({"x": ones(8, 4)}, ones(8, 4)).sum()
        np.testing.assert_array_equal(tape.gradient(loss, w), ones(4, 4) * 8)


def test_arguments_without_separate_names_are_sharded(grid):
    with jv.use_mesh(grid):
        w = jv.Variable(ones(4))
    inputs = {"args": P("data"), "y": P(None, "model")}

    @jv.compile(in_shardings=inputs)
    def step(*args, **more):
        return [x * w for x in [*args, *more.values()]]

    first, second, y = step(ones(4, 4), ones(8, 4), y=ones(2, 4))
    assert [x.sharding.spec[0] for x in (first, second)] == ["data", "data"]
    assert y.sharding.spec == P(None, "model")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("data",), r"is a PartitionSpec for all arrays, or a dict"),
        ({"z": P()}, r"names \['z'\], but step has \['x'\]"),
        ({"x": "data"}, r"no PartitionSpec for \['x'\]"),
    ],
)
def test_in_shardings_that_are_none(given, words):
    def step(x):
        return x

    with pytest.raises(jv.errors.CompileError, match=words):
        jv.compile(step, in_shardings=given)


def test_shard(grid):
    v = jv.Variable(ones(8, 2), name="v")
    tree = {"x": ones(8), "v": v, "n": np.float64(2)}
    spread = jv.shard(tree, {"x": P("data"), "v": P("model"), "n": None}, mesh=grid)
    assert [spread[k].sharding.spec for k in "xvn"] == [P("data"), P("model"), P()]
    assert spread["n"].dtype == jnp.float32
    assert v.device is not None

    @jv.compile
    def halves(x):
        return jv.shard(x * 2, P("model", "data"), mesh=grid), jax.grad(
            lambda x: jv.shard(x, P("data"), mesh=grid).sum()
        )(x)

    assert halves(ones(8, 4))[0].sharding.spec == P("model", "data")
    with jv.use_mesh(grid), pytest.raises(ShardingError, match=r"^array\['x'\] of shape \(7,\)"):
        jv.shard({"x": ones(7)}, P("data"))


# ---------------------------------------------------------------- rules
def model_of_two():
    return {
        "layers": [
            {"kernel": jv.Variable(ones(4, 8)), "bias": jv.Variable(ones(8))},
            {"kernel": jv.Variable(ones(8, 4)), "bias": jv.Variable(ones(4))},
        ],
        "label": jv.Variable("text"),
    }


def test_one_spec_is_for_all_variables(grid):
    model = {"a": jv.Variable(ones(8, 2), name="a"), "b": jv.Variable(ones(4), name="b")}
    jv.place(model, P("data"), mesh=grid)
    assert specs_of(model.values()) == {"a": P("data"), "b": P("data")}
    jv.place(model, jv.parallel.fully_sharded("model"), mesh=grid)
    assert specs_of(model.values()) == {"a": P("model"), "b": P("model")}


def test_variables_without_values_are_placed(grid):
    v = jv.abstract(lambda: jv.Variable(lambda: jnp.ones((10**6, 10**6)), name="large"))
    table = jv.place(v, {"**": P(None, "model")}, mesh=grid)
    assert table[0][-2:] == ("P(None, 'model')", 2 * 10**12)


def test_rules_place_a_model(grid):
    model = model_of_two()
    rules = [("**/0/kernel", P(None, "model")), ("**/kernel", P("model")), ("**", P())]
    table = jv.place(model, rules, mesh=grid)
    assert table.column("path") == [
        "layers/0/bias", "layers/0/kernel", "layers/1/bias", "layers/1/kernel"
    ]  # fmt: skip
    assert table.column("sharding") == ["P()", "P(None, 'model')", "P()", "P('model',)"]
    assert table.column("bytes per device") == [32, 64, 16, 64]
    assert table.footer[0][-1] == 176


def test_rules_place_a_shared_variable_by_each_of_its_paths(grid):
    kernel = jv.Variable(jnp.ones((4, 4)))
    model = {"decoder": {"kernel": kernel}, "embed": {"kernel": kernel}}
    jv.place(model, {"embed/**": P("model"), "**": P()}, mesh=grid)
    assert kernel.sharding.spec == P("model")
    jv.place(model, {"embed/**": P("data"), "decoder/**": P("data")}, mesh=grid)
    assert kernel.sharding.spec == P("data")
    with pytest.raises(ShardingError) as error:
        jv.place(model, {"embed/**": P("model"), "decoder/**": P()}, mesh=grid)
    assert str(error.value) == (
        "jv.place moved nothing:\n  Variable 'decoder/kernel' has several paths, and rules that "
        "differ: 'embed/**' for 'embed/kernel', 'decoder/**' for 'decoder/kernel'. Put a rule "
        "before them whose pattern is one of these paths."
    )
    assert kernel.sharding.spec == P("data")


@pytest.mark.parametrize(("rules", "message"), [
    ("data", "is given 'data' as rules"), (3, "is given 3 as rules"),
    ([("**", P(), 1)], "as rules. Give one spec"), ("mesh", r"Mesh.* is not a placement"),
    ({"**": "mesh"}, r"'mesh' is not a placement"),
])  # fmt: skip
def test_rules_that_are_none_are_refused(grid, rules, message):
    with pytest.raises(ShardingError, match=message):
        jv.place(model_of_two(), grid if rules == "mesh" else rules, mesh=grid)


def test_rules_that_do_not_fit_move_nothing(grid):
    model = model_of_two()
    rules = {"**/kernel": P("data", "modle"), "**/0/bias": P(("data", "model"), None)}
    with pytest.raises(ShardingError) as error:
        jv.place(model, rules, mesh=grid)
    lines = str(error.value).splitlines()
    assert lines[0] == "jv.place moved nothing:"
    assert [line.split("'")[1] for line in lines[1:]] == [
        "layers/0/bias", "layers/0/kernel", "layers/1/bias", "layers/1/kernel"
    ]  # fmt: skip
    assert "has no rule: its path matches none of ['**/kernel', '**/0/bias']" in lines[3]
    assert all(v.device is not None for v in jax.tree.leaves(
        model["layers"], is_leaf=lambda x: isinstance(x, jv.Variable)))  # fmt: skip


def test_placing_anew_moves_slots_along_and_is_kept(grid):
    w = jv.Variable(ones(8, 4), name="w")
    optimizer = jv.optimizers.Adam(0.1)
    step = jv.compile(lambda x: optimizer.minimize(lambda: ((x @ w) ** 2).sum(), [w]))
    x = ones(2, 8)
    for spec in (P("data"), P("model", "data"), P()):
        jv.place(w, [("w", spec)], mesh=grid, optimizer=optimizer)
        assert float(step(x)) > float(step(x))
        assert w.sharding.spec == spec
        assert compiles_of(step) == 1
        for slot in ("momentum", "velocity"):
            assert optimizer.get_slot(w, slot).sharding == w.sharding
    assert step.trace_count == 1
    assert optimizer.iterations.sharding == NamedSharding(grid, P())
    assert int(optimizer.iterations) == 6


def test_placing_leaves_values_that_were_taken(grid):
    v = jv.Variable(ones(8))
    taken = v.value
    jv.place(v, {"**": P()}, mesh=grid)
    step = jv.compile(lambda: v.assign_add(1, read_value=False))
    step()
    step()
    np.testing.assert_array_equal(taken, ones(8))


def test_a_concrete_function_outlives_its_function_and_a_placing(grid):
    v = jv.Variable(ones(8))
    concrete = jv.compile(lambda: v.assign_add(1, read_value=False)).trace()
    concrete()
    jv.place(v, {"**": P("data")}, mesh=grid)
    concrete()
    np.testing.assert_array_equal(v, 3 * ones(8))
    assert v.sharding.spec == P("data")


def test_placing_is_refused_while_a_function_is_traced(grid):
    v = jv.Variable(ones(8))
    for transform in (jv.compile, jax.jit):
        with pytest.raises(jv.errors.ForeignTransformError, match=r"jv.place moves variables"):
            transform(lambda: jv.place(v, {"**": P("data")}, mesh=grid))()
    assert v.device is not None


def test_fully_sharded(grid):
    rule = jv.parallel.fully_sharded("data", minimum=8)
    shapes = [(8, 4), (4, 8), (3, 4), (3, 5), (4,), (), (0, 8), (12, 12)]
    specs = [rule(shape, grid) for shape in shapes]
    expected = [P("data"), P(None, "data"), P(None, "data"), P(), P(), P(), P(), P("data")]
    assert specs == expected
    both = jv.parallel.fully_sharded(("data", "model"))
    assert both((4, 16), grid) == P(None, ("data", "model"))
    with pytest.raises(ShardingError, match="needs a mesh"):
        rule((8,), None)


def test_a_state_commits_to_where_variables_live(grid):
    v = jv.Variable(ones(8))
    jv.place(v, {"**": P("data")}, mesh=grid)
    state = jv.State.of(v)
    pure = jv.functionalize(lambda: v.assign_add(1, read_value=False))
    _, state = jax.jit(pure)(state)
    jax.tree.map(np.asarray, state).commit()
    assert v.sharding == NamedSharding(grid, P("data"))
    assert isinstance(grid, Mesh)
    assert float(v[0].value) == 2

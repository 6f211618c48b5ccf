"""Devices by name, device scopes, soft placement, and shardings that survive pickling."""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

import jaxvars as jv
from jaxvars.devices.device import dump_sharding, find_device, load_sharding, scope_sharding
from jaxvars.errors import DeviceError

CPUS = jv.config.list_devices("cpu")
pytestmark = pytest.mark.skipif(len(CPUS) < 8, reason="needs 8 CPU devices: see conftest.py")


@pytest.fixture
def hard_placement():
    jv.config.set_soft_device_placement(False)
    yield
    jv.config.set_soft_device_placement(True)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("CPU:0", 0), ("cpu:3", 3), ("/CPU:2", 2), ("/cpu:7", 7), ("CPU", 0), ("CPU:*", 0),
        ("/device:CPU:1", 1), ("/job:localhost/replica:0/task:0/device:CPU:4", 4),
    ],
)  # fmt: skip
def test_names(name, index):
    assert find_device(name) == CPUS[index]


@pytest.mark.parametrize("name", ["", "CPU:x", "CPU:-1", "cpu 0", "/job:a/CPU:0:1", "3", 3])
def test_malformed_names(name):
    with pytest.raises(DeviceError, match=r"is not a device name; write 'CPU:0', 'GPU:1'") as error:
        find_device(name)
    assert repr(name) in str(error.value)


def test_list_devices():
    assert set(jv.config.list_devices("cpu")) == set(CPUS)
    assert jv.config.list_devices("CPU") == jv.config.list_devices("cpu")
    assert jv.config.list_devices("abacus") == []
    assert set(CPUS) <= set(jv.config.list_devices())
    assert jax.devices()[0] in jv.config.list_devices()


# ---------------------------------------------------------------- scopes
def test_a_scope_places_variables_and_operations():
    with jv.device("CPU:3") as device:
        v = jv.Variable([1.0, 2.0])
        x = jnp.ones(2)
        assert scope_sharding() == SingleDeviceSharding(CPUS[3])
    assert device == v.device == CPUS[3]
    assert x.devices() == {CPUS[3]}
    assert v.sharding == SingleDeviceSharding(CPUS[3])


def test_a_variable_stays_where_it_was_placed():
    with jv.device("CPU:3"):
        v = jv.Variable([1.0, 2.0])
    v.assign([3.0, 4.0])
    assert v.device == CPUS[3]
    v.assign(jax.device_put(jnp.ones(2), CPUS[5]))
    assert v.device == CPUS[3]
    v.assign_add(1)
    assert v.device == CPUS[3]
    v[0].assign(7.0)
    assert v.device == CPUS[3]
    jv.State.of(v).replace({"Variable": jnp.zeros(2)}).commit()
    assert (v.device, v.numpy().tolist()) == (CPUS[3], [0, 0])


def test_an_inner_scope_wins_and_ends():
    with jv.device("CPU:1"):
        with jv.device("CPU:2"):
            inner = jv.Variable(1.0)
        outer = jv.Variable(1.0)
        with jv.device(None):
            default = jv.Variable(1.0)
    after = jv.Variable(1.0)
    found = [v.device for v in (inner, outer, default, after)]
    assert found == [CPUS[2], CPUS[1], jax.devices()[0], jax.devices()[0]]


def test_a_scope_ends_with_an_error():
    with pytest.raises(KeyError), jv.device("CPU:1"):
        raise KeyError
    assert scope_sharding() is None


def test_a_device_itself_may_be_given():
    with jv.device(CPUS[6]) as device:
        assert device == CPUS[6]
        assert jv.Variable(1.0).device == CPUS[6]
        assert jv.Variable(1.0, sharding=CPUS[2]).device == CPUS[2], "an argument wins"
    assert jv.Variable(1.0, sharding=CPUS[2]).device == CPUS[2]


def test_a_copy_goes_where_the_scope_says():
    v = jv.Variable([1.0], sharding=CPUS[2])
    with jv.device("CPU:1"):
        assert jv.Variable(v).device == CPUS[1]
    assert v.device == CPUS[2]


def pinned(values, device):
    """A variable whose value was committed to its device, so that JAX would not copy it."""
    v = jv.Variable(jnp.zeros(len(values)), sharding=device)
    v.assign(jnp.array(values))
    return v


def test_variables_of_other_devices_are_read_as_copies_on_the_scopes():
    a, b = pinned([1.0, 2.0], CPUS[1]), pinned([3.0, 4.0], CPUS[3])
    with jv.device("CPU:2"):
        products = [a * b, jnp.multiply(a, b), a.value * b[:]]
        assert a.device == CPUS[1]
    assert [p.tolist() for p in products] == [[3.0, 8.0]] * 3
    assert [p.devices() for p in products] == [{CPUS[2]}] * 3
    assert (a.device, b.device) == (CPUS[1], CPUS[3])
    assert (a * 2).devices() == {CPUS[1]}, "outside of a scope"


def test_gradients_across_devices():
    a, b = pinned([1.0, 2.0], CPUS[1]), pinned([3.0, 4.0], CPUS[3])
    at_home = pinned([1.0, 2.0], CPUS[0]), pinned([3.0, 4.0], CPUS[0])
    for v, w in [(a, b), at_home, at_home, (a, b), (a, b)]:  # known, or not; together, or not
        with jv.device("CPU:2"):
            with jv.GradientTape() as tape:
                y = jnp.sum(v * w * v)
            grads = tape.gradient(y, [v, w])
        assert [g.tolist() for g in grads] == [[6.0, 16.0], [1.0, 4.0]]


def test_gradients_across_devices_after_the_same_on_one():
    def gradients(v: jv.Variable, w: jv.Variable, scope: str) -> list[list[float]]:
        with jv.device(scope), jv.GradientTape() as tape:
            y = jnp.sum(jnp.sin(v) * w)
        return [g.tolist() for g in tape.gradient(y, [v, w])]

    on_one = [pinned([1.0, 2.0], CPUS[0]) for _ in range(2)]
    apart = [pinned([1.0, 2.0], device) for device in (CPUS[1], CPUS[3])]
    expected = [gradients(*on_one, "CPU:0") for _ in range(3)]
    assert [gradients(*apart, "CPU:2") for _ in range(3)] == expected


def test_a_part_of_another_devices_variable_may_be_assigned():
    a, b = pinned([1.0, 2.0], CPUS[1]), pinned([3.0, 4.0], CPUS[3])
    a.assign_add(b.value)
    assert a.numpy().tolist() == [4.0, 6.0]
    a[0].assign(b.value[1])
    a[1:2].assign_add(b.value[:1])
    assert a.numpy().tolist() == [4.0, 9.0]
    assert a.device == CPUS[1]


def test_a_compiled_function_runs_in_the_scope_that_it_is_called_in():
    double = jv.compile(lambda x: x * 2)
    assert double(jnp.ones(2)).devices() == {CPUS[0]}
    with jv.device("CPU:2"):
        assert double(jnp.ones(2)).devices() == {CPUS[2]}
    v = jv.Variable([1.0, 2.0], sharding=CPUS[3])
    add = jv.compile(lambda x: v.assign_add(x).value)
    for _ in range(3):
        with jv.device("CPU:2"):
            assert add(1.0).devices() == {CPUS[3]}
    assert (v.device, add.trace_count) == (CPUS[3], 1)


def test_a_scope_in_a_compiled_function_places_what_is_created():
    made = []

    @jv.compile
    def scaled(x):
        if not made:
            with jv.device("CPU:3"):
                made.append(jv.Variable(jnp.ones(3)))
        return made[0] * x

    assert scaled(2.0).devices() == {CPUS[3]}
    assert made[0].device == CPUS[3]


def test_strings_are_on_the_host():
    with jv.device("CPU:1"):
        v = jv.Variable("text")
    assert (v.device, v.sharding) == (None, None)


# ---------------------------------------------------------------- soft placement
def test_soft_placement_falls_back_and_says_so_once():
    with pytest.warns(
        UserWarning, match=r"Device 'TPU:41' does not exist; there are: .*CPU:0.*soft placement"
    ):
        assert find_device("TPU:41") == jax.devices()[0]
    assert find_device("TPU:41") == jax.devices()[0]  # a second warning would be an error


def test_soft_placement_blames_the_users_line():
    with pytest.warns(UserWarning, match="TPU:42") as caught, jv.device("TPU:42"):
        pass
    assert caught[0].filename == __file__


@pytest.mark.usefixtures("hard_placement")
@pytest.mark.parametrize("name", ["CPU:8", "TPU:0", "/job:x/replica:0/task:0/device:GPU:99"])
def test_without_it_a_missing_device_is_refused_with_a_list(name):
    assert not jv.config.get_soft_device_placement()
    with pytest.raises(
        DeviceError, match=r"Device .* does not exist; there are: CPU:0, CPU:1"
    ) as error:
        find_device(name)
    assert repr(name) in str(error.value)
    assert "jv.config.set_soft_device_placement(True)" in str(error.value)


# ---------------------------------------------------------------- shardings
def mesh(*shape):
    names = ("x", "y")[: len(shape)]
    types = (jax.sharding.AxisType.Auto,) * len(shape)
    return jax.make_mesh(shape, names, axis_types=types)


@pytest.mark.parametrize(
    "sharding",
    [
        lambda: None,
        lambda: SingleDeviceSharding(CPUS[5]),
        lambda: NamedSharding(mesh(8), PartitionSpec("x")),
        lambda: NamedSharding(mesh(8), PartitionSpec()),
        lambda: NamedSharding(mesh(4, 2), PartitionSpec("y", "x")),
        lambda: NamedSharding(mesh(2, 2), PartitionSpec(("x", "y"), None)),
        lambda: NamedSharding(mesh(8), PartitionSpec("x"), memory_kind="unpinned_host"),
    ],
)
def test_a_sharding_survives_pickling(sharding):
    words = pickle.loads(pickle.dumps(dump_sharding(sharding())))
    assert load_sharding(words) == sharding()


def test_a_sharding_on_devices_that_are_not_here():
    words = ("device", ("cpu", 999), None)
    with pytest.raises(DeviceError, match="saved on device CPU:999, which is not in this process"):
        load_sharding(words)

"""A Variable does not share its memory, is copied and pickled whole, and is freed."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import jaxvars as jv
from jaxvars.core.cells import SHARED, STORE
from jaxvars.errors import CreationError, NotATensorError, UninitializedError

V = jv.Variable


def vector():
    return V([1.0, 2.0, 3.0], name="v")


ROUND_TRIPS = [copy.deepcopy, copy.copy, lambda v: pickle.loads(pickle.dumps(v))]
round_trips = pytest.mark.parametrize("trip", ROUND_TRIPS, ids=["deepcopy", "copy", "pickle"])


# ---------------------------------------------------------------- separate memory
@pytest.mark.parametrize("size", [3, 1_000_000])  # JAX copies large arrays in the background
def test_numpy_memory_may_be_changed_afterwards(size):
    source = np.zeros(size, np.float32)
    v, called, assigned = V(source), V(lambda: source), V(jnp.ones(size))
    assigned.assign(source)
    source[:] = 9
    for variable in (v, called, assigned):
        assert not variable.numpy().any()


def test_numpy_memory_assigned_to_a_part():
    v, source = vector(), np.zeros(2, np.float32)
    v[1:].assign(source)
    source[:] = 9
    assert v.numpy().tolist() == [1, 0, 0]


@pytest.mark.parametrize("of", [lambda a: a, lambda a: a[...], lambda a: lambda: a])
def test_a_variable_made_from_another_is_a_copy(of):
    a = vector()
    b = V(of(a))
    assert a.value.unsafe_buffer_pointer() != b.value.unsafe_buffer_pointer()
    a.assign([0.0, 0.0, 0.0])
    b.assign_add(1)
    assert (a.numpy().tolist(), b.numpy().tolist()) == ([0, 0, 0], [2, 3, 4])


def test_variables_that_were_assigned_one_array_stay_apart():
    a, b, x = vector(), vector(), jnp.zeros(3)
    a.assign(x)
    b.assign(a)
    jv.compile(lambda: a.assign_add(1).value)()
    jv.compile(lambda: b.assign_sub(1).value)()
    assert (a.numpy()[0], b.numpy()[0], x[0]) == (1, -1, 0)


class Holding:
    """Stands for an array, as layers' parameters of other libraries do."""

    def __init__(self, array):
        self.array = array

    def __jax_array__(self):
        return self.array


def donate(x):
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()


def recorded(v, x):
    with jv.GradientTape():
        jv.compile(lambda x: v.assign(x).value)(x)


DOORS = {
    "Variable": lambda v, x: V(x),
    "Variable, called": lambda v, x: V(lambda: x),
    "Variable, __jax_array__": lambda v, x: V(Holding(x)),
    "assign": lambda v, x: v.assign(x),
    "assign, another array of the memory": lambda v, x: v.assign(x.addressable_shards[0].data),
    "assign, __jax_array__": lambda v, x: v.assign(Holding(x)),
    "assign, a part": lambda v, x: v[...].assign(x),
    "assign_add": lambda v, x: v.assign_add(x),
    "rows": lambda v, x: v[jnp.arange(1000)].assign(x),
    "commit": lambda v, x: jv.State.of(v).replace({"v": x}).commit(),
    "cond": lambda v, x: jv.cond(True, lambda: v.assign(x).value, lambda: v.value),
    "cond, both": lambda v, x: jv.cond(jnp.bool_(1), lambda: v.assign(x), lambda: v.assign(x)),
    "compiled": lambda v, x: jv.compile(lambda x: v.assign(x).value)(x),
    "compiled, recorded": recorded,
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_an_array_that_the_user_donates_afterwards(door):
    v, x = V(jnp.zeros(1000), name="v"), jnp.ones(1000)
    made = door(v, x)
    donate(x)
    assert (made if type(made) is V else v).numpy().sum() == 1000


def test_a_variable_that_was_assigned_has_memory_that_nothing_else_holds():
    v, w = vector(), V([7.0, 8.0, 9.0], name="w")
    v.assign(w)
    assert v._cell.key not in SHARED  # the next step need not copy it
    donate(w.value)
    assert v.numpy().tolist() == [7, 8, 9]


@pytest.mark.parametrize("warm", [False, True])
def test_an_array_that_was_read_and_donated_is_named(warm):
    v, kept = vector(), V(2.0, name="kept")
    step = jv.compile(lambda: v.assign(v * kept).value)
    for _ in range(3 * warm):
        step()
    named = (
        r"Variable '{}' is used at .*\.py:\d+, in .* has no value any more: .*\(donate_argnums\)"
    )
    donate(kept.value)
    with pytest.raises(UninitializedError, match=named.format("kept")):
        step()
    kept.assign(1.0)
    step()
    donate(v.value)
    for use in (step, v.numpy, lambda: v + 1, lambda: v.assign_add(1), lambda: jv.State.of(v)):
        with pytest.raises(UninitializedError, match=named.format("v")):
            use()
    assert "without a value" in repr(v)
    v.assign([1.0, 2.0, 3.0])
    assert step().tolist() == [1, 2, 3]


def test_a_value_that_was_read_stays_readable():
    v = vector()
    held, state, part = v.value, jv.State.of(v, copy=False), v[0]
    step = jv.compile(lambda: v.assign_add(1).value.sum())
    for _ in range(3):
        step()
    assert held.tolist() == state["v"].tolist() == [1, 2, 3]
    assert part.item() == 1
    assert v.numpy().tolist() == [4, 5, 6]


# ---------------------------------------------------------------- copies and pickles
@round_trips
@pytest.mark.parametrize(
    "value",
    [[1.0, 2.0], True, 5 + 4j, "text", ["a", "b"], jnp.ones(2, jnp.bfloat16), np.zeros((0, 3))],
    ids=str,
)
def test_copies_keep_value_name_and_trainable(trip, value):
    v = V(value, name="v", trainable=False)
    w = trip(v)
    assert w is not v
    assert (w.name, w.trainable, w.dtype, w.shape) == ("v", False, v.dtype, v.shape)
    assert w.numpy().tolist() == v.numpy().tolist()


@round_trips
@pytest.mark.parametrize("flag", [True, False])
def test_copies_are_not_frozen_because_they_are_made_while_others_are(trip, flag):
    v = V([1.0], trainable=flag)
    with jv.freeze(v):
        w, module = trip(v), jv.Module()
        module.v = v
        half = module.astype("bfloat16")
    assert (v.trainable, w.trainable, half.v.trainable) == (flag,) * 3


@round_trips
def test_copies_are_apart(trip):
    v = vector()
    w = trip(v)
    v.assign_add(1)
    w.assign_sub(1)
    assert (v.numpy().tolist(), w.numpy().tolist()) == ([2, 3, 4], [0, 1, 2])


@round_trips
def test_copies_of_random_keys(trip):
    v = V(jax.random.key(3, impl="rbg"))
    assert str(trip(v).dtype) == "key<rbg>"
    np.testing.assert_array_equal(jax.random.key_data(trip(v).value), jax.random.key_data(v.value))


@round_trips
def test_copies_do_not_take_the_open_name_scope(trip):
    v = vector()
    with jv.name_scope("a"):
        assert trip(v).name == "v"


def eight():
    return jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))


@pytest.mark.skipif(jax.device_count() < 8, reason="needs 8 devices: see conftest.py")
@round_trips
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(
    "where", [lambda: jax.devices()[3], lambda: NamedSharding(eight(), PartitionSpec("x"))]
)
def test_copies_keep_the_sharding(trip, where, declared):
    x = jnp.arange(16.0)
    v = V(x, sharding=where()) if declared else V(jax.device_put(x, where()))
    w = trip(v)
    assert w.sharding == v.sharding
    assert v.sharding.device_set == jax.device_put(x, where()).sharding.device_set
    np.testing.assert_array_equal(w.value, x)
    if declared:
        assert w.assign(jnp.zeros(16)).sharding == v.sharding
        jv.compile(lambda: w.assign_add(1.0).value)()
        assert w.sharding == v.sharding


@pytest.mark.skipif(jax.device_count() < 8, reason="needs 8 devices: see conftest.py")
def test_device_and_sharding():
    v = V(jnp.zeros(8), sharding=NamedSharding(eight(), PartitionSpec("x")))
    assert (v.device, len(v.sharding.device_set)) == (None, 8)
    assert V(1.0).device == jax.devices()[0]
    inside = []
    jv.compile(lambda: inside.append((v.device, v.sharding)))()
    assert inside == [(None, None)]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_protocols(protocol):
    assert pickle.loads(pickle.dumps(vector(), protocol)).numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize("trip", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_one_variable_in_two_places_stays_one(trip):
    v = vector()
    again = trip({"a": v, "b": [v]})
    assert again["a"] is again["b"][0]
    assert again["a"] is not v


# ---------------------------------------------------------------- lifetime
def taped(v):
    with jv.GradientTape() as tape:
        y = v * 2.0
    return tape.gradient(y, v)


def used(use):
    """Use a variable, drop it, and return what it has left behind."""
    v = vector()
    use(v)
    return weakref.ref(v), weakref.ref(v.value), v._cell.key


@pytest.mark.parametrize("use", [
    lambda v: None, lambda v: v.assign_add(1), lambda v: v[0].assign(1.0), lambda v: repr(v),
    lambda v: jv.State.of(v).commit(),
    lambda v: jv.functionalize(lambda: v + 1)(jv.State.of(v)),
    lambda v: taped(v),
])  # fmt: skip
def test_it_is_freed_at_once_when_nothing_refers_to_it(use):
    gc.disable()  # by reference counts alone
    try:
        gone, memory, key = used(use)
        assert gone() is None
        assert memory() is None
        assert key not in STORE
        assert key not in SHARED
    finally:
        gc.enable()


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_a_compiled_function_does_not_keep_it_alive(calls):
    step = jv.compile(lambda v: v.assign_add(1).value.sum())
    gone, memory, key = used(lambda v: [step(v) for _ in range(calls)])
    assert gone() is None
    gc.collect()
    assert memory() is None
    assert key not in STORE


def test_it_is_freed_with_its_owner():
    class Layer:
        def __init__(self):
            self.w, self.me = vector(), self  # a cycle

    layer = Layer()
    gone, keys = weakref.ref(layer.w), len(STORE)
    del layer
    gc.collect()
    assert gone() is None
    assert len(STORE) < keys


def test_a_part_keeps_its_variable():
    part = V([1.0, 2.0])[0]
    assert part.assign(5.0).numpy().tolist() == [5, 2]


def test_a_refused_variable_leaves_nothing_behind():
    gc.collect()
    before = len(STORE)
    with pytest.raises(NotATensorError):
        V(None)
    with pytest.raises(CreationError):
        jax.jit(lambda x: V(x).value)(1.0)
    gc.collect()
    assert len(STORE) == before

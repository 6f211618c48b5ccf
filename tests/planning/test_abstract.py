"""`planning/abstract.py`: variables without values, and that nothing else happens."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars.core.cells import STORE
from jaxvars.errors import ForeignTransformError, UninitializedError


class Large(jv.Module):
    """More than any machine holds: 4 TB."""

    def __init__(self):
        self.w = jv.Variable(lambda: jnp.ones((10**6, 10**6)), name="w")
        self.seen = jv.Variable(jnp.zeros((), jnp.int32), trainable=False, name="seen")


def test_it_has_names_shapes_and_dtypes_and_takes_no_memory():
    model = jv.abstract(Large)
    assert [(v.name, v.shape, v.dtype, v.trainable) for v in model.variables] == [
        ("seen", (), jnp.int32, False),
        ("w", (10**6, 10**6), jnp.float32, True),
    ]
    assert not {v._cell.key for v in model.variables} & set(STORE)
    assert repr(model.w) == "<Variable 'w' float32[1000000,1000000] without a value>"
    assert "(1000000, 1000000)" in str(model.table())


def test_reading_says_why_there_is_no_value():
    model = jv.abstract(Large)
    with pytest.raises(UninitializedError, match=r"'w' has no value: .*jv\.abstract made it"):
        model.w.read_value()
    with pytest.raises(UninitializedError, match="'seen' has no value"):
        jv.compile(lambda: model.seen + 1)()
    assert model.w.sharding is None
    assert model.w.device is None


def test_a_value_may_be_assigned_later():
    model = jv.abstract(Large)
    model.seen.assign(3)
    assert int(model.seen) == 3
    assert int(jv.compile(lambda: model.seen.assign_add(1).value)()) == 4


def test_inside_a_variable_is_shown_without_a_value():
    shown = []
    jv.abstract(lambda: shown.append(repr(jv.Variable(1.0, name="v"))))
    assert shown == ["<Variable 'v' float32[] (traced)>"]


def test_what_exists_is_not_changed():
    v, rng = jv.Variable(1.0), jv.random.Generator(7)
    before = rng.state.numpy().tolist()

    def build():
        v.assign_add(1.0)
        drawn = rng.normal(3)
        return jv.Variable(lambda: drawn * v, name="new")

    new = jv.abstract(build)
    assert new.shape == (3,)
    assert float(v) == 1.0
    assert rng.state.numpy().tolist() == before


def test_initial_values_are_not_drawn():
    rng = jv.random.Generator(7)
    before = rng.state.numpy().tolist()
    kernel = jv.initializers.GlorotNormal(seed=1)
    made = jv.abstract(lambda: jv.Variable(lambda: kernel((4, 2)) + rng.normal((4, 2))))
    assert made.shape == (4, 2)
    assert rng.state.numpy().tolist() == before


def test_optimizers_and_compiled_functions_in_it():
    def build():
        w = jv.Variable(jnp.ones(3), name="w")
        adam = jv.optimizers.Adam(0.1)

        @jv.compile
        def step(x):
            with jv.GradientTape() as tape:
                loss = jnp.sum(w * x)
            adam.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        step(jnp.ones(3))
        return w, adam, step

    w, adam, step = jv.abstract(build)
    assert {slot.shape for slot in adam.slots["w"].values()} == {(3,)}
    for v in (w, *adam.variables):
        v.assign(jnp.zeros(v.shape, v.dtype))
    assert float(step(jnp.ones(3))) == 0.0
    assert int(adam.iterations) == 1


def test_an_error_leaves_nothing_behind():
    def build():
        jv.Variable(1.0)
        raise KeyError("no")

    with pytest.raises(KeyError):
        jv.abstract(build)
    assert float(jv.Variable(2.0)) == 2.0


def test_shardings_are_kept():
    with jv.use_mesh({"data": 2}) as mesh:
        v = jv.abstract(lambda: jv.Variable(jnp.ones(4), sharding=jax.P("data")))
    assert v.sharding == jax.sharding.NamedSharding(mesh, jax.P("data"))
    v.assign(jnp.arange(4.0))
    assert [s.data.shape for s in v.value.addressable_shards] == [(2,), (2,)]


def test_not_inside_a_trace():
    with pytest.raises(ForeignTransformError, match=r"jv\.abstract is called at test_abstract\.py"):
        jv.compile(lambda: jv.abstract(Large).w)()

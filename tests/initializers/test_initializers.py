"""Initializers: Keras's names and fans, JAX's values, the variances they promise."""

from __future__ import annotations

import copy
import json
import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxvars as jv
from jaxvars import initializers as I  # noqa: N812 - I.Zeros reads well
from jaxvars.errors import DtypeError, ShapeError
from jaxvars.initializers.initializer import fans

G = jv.random.Generator

SCALED = {
    "GlorotNormal": (1.0, "fan_avg", "truncated_normal"),
    "GlorotUniform": (1.0, "fan_avg", "uniform"),
    "HeNormal": (2.0, "fan_in", "truncated_normal"),
    "HeUniform": (2.0, "fan_in", "uniform"),
    "LecunNormal": (1.0, "fan_in", "truncated_normal"),
    "LecunUniform": (1.0, "fan_in", "uniform"),
}
RANDOM = [*SCALED, "Orthogonal", "RandomNormal", "RandomUniform", "TruncatedNormal",
          "VarianceScaling"]  # fmt: skip
ALL = [*RANDOM, "Constant", "Identity", "Ones", "Zeros"]
SNAKE = {name: "".join(f"_{c.lower()}" if c.isupper() else c for c in name)[1:] for name in ALL}


@pytest.fixture(autouse=True)
def _own_global_generator():
    before = jv.random.get_global_generator()
    jv.random.set_global_generator(G(0))
    yield
    jv.random.set_global_generator(before)


def counter():
    return jv.random.get_global_generator().state.numpy().tolist()[3]


def test_arrays_of_arguments_are_compared_by_their_numbers():
    one, other = I.Constant(jnp.array([1.0, 2.0])), I.Constant(jnp.array([1.0, 3.0]))
    assert one == I.Constant(jnp.array([1.0, 2.0])) != other
    assert len({one, I.Constant(jnp.array([1.0, 2.0])), other, I.Constant([1.0])}) == 3
    keys = [I.RandomNormal(seed=jax.random.key(seed)) for seed in (7, 7, 8)]
    assert keys[0] == keys[1] != keys[2]
    assert len(set(keys)) == 2


# ---------------------------------------------------------------- values
def test_known_values():
    assert I.Zeros()((2,)).tolist() == [0, 0]
    assert I.Ones()((2,), "int32").tolist() == [1, 1]
    assert I.Ones()((2,), "bool").tolist() == [True, True]
    assert I.Constant(2.5)(()).item() == 2.5
    assert I.Constant([1, 2])((3, 2)).tolist() == [[1, 2]] * 3
    assert I.Constant(7)((2,), "int8").dtype == jnp.int8
    assert I.Identity()((2, 2)).tolist() == [[1, 0], [0, 1]]
    assert I.Identity(gain=3)((2, 3), "int32").tolist() == [[3, 0, 0], [0, 3, 0]]


@pytest.mark.parametrize("shape", [(3, 3), (7, 3), (3, 7), (3, 3, 8, 16), (2, 5, 20)])
@pytest.mark.parametrize("gain", [1.0, 2.5])
def test_orthogonal(shape, gain):
    x = np.asarray(I.Orthogonal(gain, seed=7)(shape)).reshape(-1, shape[-1])
    rows, columns = x.shape
    square = x.T @ x if rows >= columns else x @ x.T
    np.testing.assert_allclose(square, gain**2 * np.eye(min(rows, columns)), atol=1e-4)


def test_orthogonal_of_small_dtypes():
    assert I.Orthogonal(seed=7)((3, 3), "bfloat16").dtype == jnp.bfloat16
    assert I.Orthogonal(seed=7)((0, 3)).shape == (0, 3)


@pytest.mark.parametrize(
    ("init", "distribution"),
    [
        (I.RandomNormal(1.0, 2.0, seed=7), stats.norm(1, 2)),
        (I.RandomNormal(seed=7), stats.norm(0, 0.05)),
        (I.RandomUniform(-1.0, 3.0, seed=7), stats.uniform(-1, 4)),
        (I.RandomUniform(seed=7), stats.uniform(-0.05, 0.1)),
        (I.TruncatedNormal(1.0, 2.0, seed=7), stats.truncnorm(-2, 2, 1, 2)),
        (I.TruncatedNormal(seed=7), stats.truncnorm(-2, 2, 0, 0.05)),
    ],
)
def test_distributions(init, distribution):
    x = np.asarray(init((100, 200)), np.float64).ravel()
    assert stats.kstest(x, distribution.cdf).pvalue > 1e-3


def distribution_of(kind, variance):
    if kind == "uniform":
        limit = math.sqrt(3 * variance)
        return stats.uniform(-limit, 2 * limit)
    if kind == "untruncated_normal":
        return stats.norm(0, math.sqrt(variance))
    return stats.truncnorm(-2, 2, 0, math.sqrt(variance) / stats.truncnorm(-2, 2).std())


@pytest.mark.parametrize(("kind", "mode"), [
    ("truncated_normal", "fan_in"), ("untruncated_normal", "fan_out"), ("uniform", "fan_avg"),
    ("uniform", "fan_geo_avg"),
])  # fmt: skip
@pytest.mark.parametrize("shape", [(50, 400), (3, 3, 20, 100), (20_000,)])
def test_variance_scaling(kind, mode, shape):
    n_in, n_out = fans(shape)
    n = {"fan_in": n_in, "fan_out": n_out, "fan_avg": (n_in + n_out) / 2}.get(
        mode, math.sqrt(n_in * n_out)
    )
    x = np.asarray(I.VarianceScaling(3.0, mode, kind, seed=7)(shape), np.float64).ravel()
    assert x.var() == pytest.approx(3.0 / n, rel=0.05)
    assert stats.kstest(x, distribution_of(kind, 3.0 / n).cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("shape", [(100, 300), (3, 3, 30, 100), (2, 5, 30, 100)])
def test_the_named_ones_are_variance_scaling(name, shape):
    x = getattr(I, name)(seed=7)(shape)
    np.testing.assert_array_equal(x, I.VarianceScaling(*SCALED[name], seed=7)(shape))
    scale, mode, _ = SCALED[name]
    n = fans(shape)[0] if mode == "fan_in" else sum(fans(shape)) / 2
    assert float(x.var()) == pytest.approx(scale / n, rel=0.05)


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("shape", [(4, 6), (3, 3, 4, 6)])
def test_the_numbers_are_jaxs(name, shape):
    theirs = getattr(jax.nn.initializers, SNAKE[name])()(jax.random.key(7), shape)
    np.testing.assert_allclose(getattr(I, name)(seed=7)(shape), theirs, rtol=1e-6)


def test_orthogonal_is_jaxs():
    theirs = jax.nn.initializers.orthogonal(2.0)(jax.random.key(7), (4, 3))
    np.testing.assert_array_equal(I.Orthogonal(2.0, seed=7)((4, 3)), theirs)


@pytest.mark.parametrize(("shape", "expected"), [
    ((), (1, 1)), ((5,), (5, 5)), ((3, 4), (3, 4)), ((2, 3, 4), (6, 8)), ((3, 3, 8, 16), (72, 144)),
    ((2, 3, 5, 7, 11), (210, 330)), ((0, 4), (0, 4)),
])  # fmt: skip
def test_fans(shape, expected):
    assert fans(shape) == expected


@pytest.mark.parametrize("shape", [(), (1,), (5,), (0,), (0, 4), (4, 0), (2, 1, 3, 1, 2)])
def test_any_rank(shape):
    x = I.VarianceScaling(seed=7)(shape)
    assert x.shape == shape
    assert bool(jnp.all(jnp.isfinite(x)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("kind", ["truncated_normal", "untruncated_normal", "uniform"])
def test_dtypes(kind, dtype):
    x = I.VarianceScaling(distribution=kind, seed=7)((40, 50), dtype=dtype)
    assert x.dtype == jnp.dtype(dtype)
    wide = x.astype(jnp.promote_types(dtype, jnp.float32))
    assert float(jnp.var(wide)) == pytest.approx(1 / 40, rel=0.1)


@pytest.mark.usefixtures("x64")
def test_64_bits():
    assert I.GlorotUniform(seed=7)((3, 4)).dtype == jnp.float32
    assert I.GlorotUniform(seed=7)((3, 4), "float64").dtype == jnp.float64


# ---------------------------------------------------------------- seeds
def made(name, seed=None):
    return getattr(I, name)(seed=seed)


@pytest.mark.parametrize("name", RANDOM)
def test_an_integer_gives_the_same_each_time(name):
    init = made(name, 7)
    first = init((3, 4))
    np.testing.assert_array_equal(init((3, 4)), first)
    np.testing.assert_array_equal(made(name, 7)((3, 4)), first)
    assert not np.array_equal(made(name, 8)((3, 4)), first)
    assert counter() == 0


@pytest.mark.parametrize("name", RANDOM)
def test_without_a_seed_each_call_draws_anew(name):
    init = made(name)
    first, second = init((3, 4)), init((3, 4))
    assert not np.array_equal(first, second)
    assert counter() == 2
    jv.random.set_seed(0)
    np.testing.assert_array_equal(init((3, 4)), first)


@pytest.mark.parametrize("name", RANDOM)
def test_a_generator_as_seed(name):
    rng = G(7)
    init = made(name, rng)
    first, second = init((3, 4)), init((3, 4))
    assert not np.array_equal(first, second)
    assert rng.state.numpy().tolist() == [0, 7, 0, 2]
    assert counter() == 0


@pytest.mark.parametrize("seed", [[1, 2], jax.random.key(7), np.int32(3)])
def test_other_seeds(seed):
    init = I.GlorotUniform(seed=seed)
    np.testing.assert_array_equal(init((3, 4)), init((3, 4)))


def test_a_wrong_seed():
    with pytest.raises(TypeError, match="'seven' is not a seed"):
        I.GlorotUniform(seed="seven")((3, 4))


# ---------------------------------------------------------------- in programs
@pytest.mark.parametrize("name", RANDOM)
def test_for_variables(name):
    init = made(name)
    w = jv.Variable(lambda: init((3, 4)), name="w")
    assert w.shape == (3, 4)
    assert counter() == 1


def test_on_the_first_call_of_a_compiled_function():
    class Dense(jv.Module):
        w = None

        @jv.compile
        def __call__(self, x):
            if self.w is None:
                self.w = jv.Variable(lambda: I.glorot_uniform()((x.shape[-1], 3)))
            return x @ self.w

    layer = Dense()
    y = layer(jnp.eye(4))
    layer(jnp.eye(4))
    assert counter() == 1
    jv.random.set_seed(0)
    expected = I.GlorotUniform()((4, 3))
    np.testing.assert_allclose(layer.w.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_a_variable_from_a_value_on_the_first_call():
    kept = []

    @jv.compile
    def f():
        if not kept:
            kept.append(jv.Variable(I.HeNormal()((2, 3))))
        return kept[0] + 0

    np.testing.assert_allclose(f(), f())
    assert len(np.unique(kept[0].numpy())) == 6


def test_called_in_a_compiled_function_draws_anew():
    draw = jv.compile(lambda: I.GlorotUniform()((2, 3)))
    first, second = draw(), draw()
    assert not np.array_equal(first, second)
    assert counter() == 2
    assert draw.trace_count == 1
    jv.random.set_seed(0)
    np.testing.assert_allclose(I.GlorotUniform()((2, 3)), first, rtol=1e-6)


# ---------------------------------------------------------------- configuration
@pytest.mark.parametrize("name", ALL)
def test_configuration_there_and_back(name):
    init = getattr(I, name)()
    config = json.loads(json.dumps(init.get_config()))
    assert type(init).from_config(config) == init
    assert I.get({"class_name": name, "config": config}) == init
    assert pickle.loads(pickle.dumps(init)) == init
    assert copy.deepcopy(init) == init
    assert hash(init) == hash(getattr(I, name)())
    assert repr(init).startswith(f"{name}(")


def test_what_a_configuration_holds():
    assert I.RandomNormal(1.0, 2.0, seed=3).get_config() == {"mean": 1.0, "stddev": 2.0, "seed": 3}
    assert I.VarianceScaling(mode="fan_out").get_config() == {
        "scale": 1.0,
        "mode": "fan_out",
        "distribution": "truncated_normal",
        "seed": None,
    }
    assert I.Constant(np.array([1, 2])) == I.Constant([1, 2])
    assert I.HeNormal(seed=7) == I.HeNormal(7) != I.HeNormal(8)
    assert I.HeNormal(seed=7) != I.LecunNormal(seed=7)


@pytest.mark.parametrize("name", ALL)
def test_names(name):
    cls = getattr(I, name)
    assert getattr(I, SNAKE[name]) is cls
    assert I.get(name) == I.get(SNAKE[name]) == I.get(cls) == cls()


def test_get():
    init = I.HeNormal(seed=7)
    assert I.get(init) is init
    assert I.get(None) is None
    assert I.get("he_normal", seed=7) == init
    assert I.get(I.HeNormal, seed=7) == init
    assert I.get("normal") == I.RandomNormal()
    assert I.get("zero") == I.Zeros()
    mine = lambda shape, dtype=None: jnp.ones(shape)  # noqa: E731 - a user's initializer
    assert I.get(mine) is mine


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: I.get("glorot_unifrom"), ValueError, r"no initializer 'glorot_unifrom'\. Did "),
        (lambda: I.get("GlorotUnifrom"), ValueError, r"Did you mean 'glorot_uniform'"),
        (lambda: I.get("xyzzy"), ValueError, r"'xyzzy'\. There are: constant, glorot_normal, glor"),
        (lambda: I.get(3), TypeError, r"3 is not an initializer: give a name like \"glorot_u"),
        (lambda: I.get(I.Zeros(), seed=7), TypeError, r"not an initializer that takes arguments"),
        (lambda: I.get("zeros", seed=7), TypeError, r"Zeros\(\) takes no arguments"),
        (lambda: I.VarianceScaling(mode="fanin"), ValueError,
         r"There is no mode of VarianceScaling 'fanin'\. Did you mean 'fan_in'"),
        (lambda: I.VarianceScaling(mode="x"), ValueError, "There are: fan_avg, fan_geo_avg"),
        (lambda: I.VarianceScaling(distribution="unifrm"), ValueError,
         r"There is no distribution of VarianceScaling 'unifrm'\. Did you mean 'uniform'"),
        (lambda: I.VarianceScaling(0.0), ValueError, r"VarianceScaling is positive, not 0.0"),
        (lambda: I.Identity()((3,)), ShapeError, r"matrices, like \(3, 3\), not the shape \(3,\)"),
        (lambda: I.Orthogonal()((3,)), ShapeError, r"matrices, like \(3, 4\), not the shape"),
        (lambda: I.Constant([1, 2])((3,)), ShapeError, r"shape \(2,\), which does not broadcast"),
        (lambda: I.Constant(2.5)((3,), "int32"), DtypeError, r"Constant is of Python type "),
        (lambda: I.Zeros()("ab"), ShapeError, r"'ab' is not a shape"),
        (lambda: I.Zeros()((2, None)), ShapeError, r"\(2, None\) is not a shape"),
        (lambda: I.Zeros()((2, -1)), ShapeError, r"has a negative size"),
        (lambda: I.GlorotUniform()((2, 3), "int32"), DtypeError, r"GlorotUniform has no values of"),
        (lambda: I.Orthogonal()((2, 3), "int32"), DtypeError, r"Orthogonal has no values of dtype"),
        (lambda: I.RandomNormal()((2, 3), "int32"), DtypeError, r"cannot have dtype int32"),
        (lambda: I.GlorotUniform()((2, 3), "float64"), DtypeError, r"jax_enable_x64"),
    ],
)  # fmt: skip
def test_errors_teach_and_nothing_is_drawn(make, error, message):
    with pytest.raises(error, match=message):
        make()
    assert counter() == 0


def test_normal_is_the_old_name_of_truncated_normal():
    assert I.VarianceScaling(distribution="normal") == I.VarianceScaling()


def test_one_of_your_own():
    class Twos(I.Initializer):
        def _make(self, shape, dtype):
            return jnp.full(shape, 2, dtype)

    assert Twos()((2,), "int32").tolist() == [2, 2]
    assert (Twos().get_config(), repr(Twos())) == ({}, "Twos()")
    with pytest.raises(TypeError, match="abstract"):
        I.Initializer()


def test_a_variance_may_be_smaller_than_the_dtype_holds():
    x = I.VarianceScaling(1e-3, seed=1)((40_000, 10), "float16")
    assert x.dtype == jnp.float16
    assert float(x.astype(jnp.float32).std()) == pytest.approx(1.58e-4, rel=0.02)

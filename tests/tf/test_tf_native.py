"""Tests of programs on their way from TensorFlow to JAX: parts of both kinds in one program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxvars as jv
import jaxvars.tf as tf

X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
Y = np.array([[1.0], [0.0]], np.float32)
GRADIENT = 2 * X.T @ (X @ [[1.0], [2.0]] - Y) / 2

VARIABLES = {
    "tf": lambda: tf.Variable([[1.0], [2.0]], name="w"),
    "jv": lambda: jv.Variable(jnp.array([[1.0], [2.0]], jnp.float32), name="w"),
}
COMPILERS: dict[str, Any] = {"eager": lambda fn: fn, "jv": jv.compile, "tf": tf.function}


@pytest.fixture(params=sorted(VARIABLES))
def variable(request: Any) -> Any:
    return VARIABLES[request.param]()


def loss_of(variable: Any) -> Any:
    return tf.reduce_mean((tf.constant(X) @ variable - Y) ** 2)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("tape", [jv.GradientTape, tf.GradientTape])
def test_each_tape_knows_variables_of_both_kinds(variable, tape, compiler):
    def gradient() -> Any:
        with tape() as recorded:
            loss = loss_of(variable)
        return recorded.gradient(loss, {"w": variable})["w"]

    np.testing.assert_allclose(np.asarray(COMPILERS[compiler](gradient)()), GRADIENT, rtol=1e-6)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("optimizer", [jv.optimizers.SGD, tf.keras.optimizers.SGD])
def test_each_optimizer_updates_variables_of_both_kinds(variable, optimizer, compiler):
    rule = optimizer(0.1)

    def step() -> None:
        with tf.GradientTape() as tape:
            loss = loss_of(variable)
        rule.apply_gradients(zip(tape.gradient(loss, [variable]), [variable], strict=True))

    COMPILERS[compiler](step)()
    expected = [[1.0], [2.0]] - 0.1 * GRADIENT
    np.testing.assert_allclose(np.asarray(variable.numpy()), expected, rtol=1e-6)


def test_a_jacobian_and_a_forward_derivative_of_a_tf_variable():
    v = tf.Variable([1.0, 2.0])
    with jv.GradientTape() as tape:
        y = v * v
    np.testing.assert_array_equal(np.asarray(tape.jacobian(y, v)), [[2.0, 0.0], [0.0, 4.0]])
    with jv.ForwardAccumulator(v, tf.constant([1.0, 0.0])) as forward:
        y = v * v
    np.testing.assert_array_equal(np.asarray(forward.jvp(y)), [2.0, 0.0])


class Both(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = VARIABLES["tf"]()
        self.b = jv.Variable(jnp.float32(0.5), name="b")

    def __call__(self, x: Any) -> Any:
        return x @ self.w + self.b


def test_a_module_holds_variables_of_both_kinds_and_they_are_saved(tmp_path: Path):
    module = Both()
    assert [v.name for v in module.trainable_variables] == ["b:0", "w:0"]
    checkpoint = jv.checkpoint.Checkpoint(module=module)
    saved = checkpoint.save(str(tmp_path / "c"))
    module.w.assign([[0.0], [0.0]])
    module.b.assign(7.0)
    checkpoint.restore(saved)
    assert module.w.numpy().tolist() == [[1.0], [2.0]]
    assert float(module.b) == 0.5


def test_control_flow_of_the_core_takes_tensors():
    w = VARIABLES["tf"]()

    @jv.compile
    def signed(x: Any) -> Any:
        return jv.cond(x > 0, lambda: tf.reduce_sum(w) + x, lambda: tf.reduce_sum(w) - x)

    assert float(signed(tf.constant(1.0))) == 4.0
    assert float(signed(tf.constant(-1.0))) == 4.0
    last, all_of_them = jv.scan(
        lambda c, x: (c + x, c * x), tf.constant(0.0), tf.constant([1.0, 2.0])
    )
    assert (float(last), np.asarray(all_of_them).tolist()) == (3.0, [0.0, 2.0])


def test_jax_takes_tensors_and_variables():
    x, w = tf.constant(X), VARIABLES["tf"]()
    np.testing.assert_array_equal(jnp.dot(x, w), X @ [[1.0], [2.0]])
    np.testing.assert_array_equal(jax.jit(lambda a: a * 2)(x), 2 * X)
    np.testing.assert_array_equal(jax.vmap(jnp.sum)(x), X.sum(1))


def test_what_is_not_a_variable_is_refused_with_its_type():
    with pytest.raises(TypeError, match=r"An optimizer updates Variables, not Tensor:"):
        jv.optimizers.SGD(0.1).apply_gradients([(tf.constant(1.0), tf.constant(1.0))])


_AFTER_IMPORT = """
import jax, jax.numpy as jnp, numpy as np
{before}
import jaxvars.tf, jaxvars as jv
import jaxvars.tf
given = 1.0, [1.0], 1, [1, 2], 1j, True, np.ones(2), jnp.zeros(2)
made = [*map(jv.Variable, given), jaxvars.tf.constant(1.0), jv.Variable(1, dtype="int64")]
print(*[jnp.dtype(v.dtype) for v in made])
"""


@pytest.mark.parametrize(
    ("before", "expected", "said"),
    [
        ("", "float32 float32 int32 int32 complex64 bool float64 float64 float32 int64", 1),
        (
            'jax.config.update("jax_enable_x64", True)',
            "float64 float64 int64 int64 complex128 bool float64 float64 float32 int64",
            0,
        ),
    ],
)
def test_the_import_leaves_pythons_numbers_as_they_are_in_jv(before, expected, said):
    environment = {k: v for k, v in os.environ.items() if k != "JAX_ENABLE_X64"}
    found = subprocess.run(
        [sys.executable, "-c", _AFTER_IMPORT.format(before=before)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.split() == expected.split()
    assert found.stderr.count("has switched JAX's 64-bit numbers on") == said


def test_losses_of_optax_take_tensors_and_variables():
    x, y = tf.constant([1.0, 3.0]), np.float32([1.0, 1.0])
    for predictions in (x, tf.Variable(x)):
        assert jnp.asarray(optax.squared_error(predictions, y)).tolist() == [0.0, 4.0]
        assert optax.huber_loss(predictions, tf.constant(y)).tolist() == [0.0, 1.5]
    dtypes = {name: np.dtype(tf.zeros(1, name)) for name in ("bfloat16", "int8", "string")}
    assert dtypes == {"bfloat16": jnp.bfloat16, "int8": np.int8, "string": np.dtype(object)}

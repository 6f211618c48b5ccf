"""GradientTape, statement by statement, as a sceptical newcomer would try it.

More: test_tape_unconnected.py (None, and why; reads and assigns), test_tape_anywhere.py (nested,
compiled, in transforms, on any JAX code), test_tape_rules.py (stop_gradient and its relatives,
forward mode); test_recording.py has what is recorded and how it is replayed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars.errors import GradientWarning, TapeError

pytestmark = pytest.mark.filterwarnings("ignore:All gradients are None")


def vector() -> jax.Array:
    return jnp.asarray([1.0, -2.0, 3.0])


# ---------------------------------------------------------------- what is watched


def test_other_variables_are_not() -> None:
    w, frozen = jv.Variable(3.0), jv.Variable(2.0, trainable=False)
    with jv.GradientTape() as tape:
        y = w * frozen
    assert tape.watched_variables() == (w,)
    dw, df = tape.gradient(y, [w, frozen])
    assert (dw, df) == (2.0, None)


def test_a_variable_may_be_watched_manually() -> None:
    frozen = jv.Variable(2.0, trainable=False)
    with jv.GradientTape() as tape:
        tape.watch(frozen)
        y = frozen**3
    assert tape.gradient(y, frozen) == 12.0


def test_an_array_is_watched_manually() -> None:
    x = jnp.asarray(3.0)
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x) == 6.0


def test_a_structure_is_watched_leaf_by_leaf() -> None:
    x = {"a": jnp.asarray(2.0), "b": [jnp.asarray(3.0)]}
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = x["a"] * x["b"][0]
    assert tape.gradient(y, x) == {"a": 3.0, "b": [2.0]}


def test_watching_after_the_computation_is_too_late() -> None:
    x = jnp.asarray(3.0)
    with jv.GradientTape() as tape:
        y = x * x
        tape.watch(x)
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize("value", [3.0, np.float32(3.0), np.ones(2), "text"])
def test_what_cannot_be_followed_is_refused(value: Any) -> None:
    tape = jv.GradientTape()
    with pytest.raises(TapeError, match=rf"Cannot watch a {type(value).__name__}.*jnp\.asarray"):
        tape.watch(value)


def test_watching_integers_warns() -> None:
    with pytest.warns(GradientWarning, match=r"dtype int32 is watched.*astype\(jnp\.float32\)"):
        jv.GradientTape().watch(jnp.asarray([1, 2]))


def test_nothing_is_watched_where_accessed_variables_are_not() -> None:
    a, b = jv.Variable(2.0), jv.Variable(3.0)
    with jv.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(a)
        y = a * b
    assert tape.watched_variables() == (a,)
    assert tape.gradient(y, [a, b]) == [3.0, None]


def test_variables_read_by_a_compiled_function_are_seen() -> None:
    w, frozen = jv.Variable(3.0), jv.Variable(2.0, trainable=False)
    f = jv.compile(lambda x: w * frozen * x)
    for _ in range(3):  # the first call, and the fast path
        with jv.GradientTape() as tape:
            y = f(5.0)
        assert tape.watched_variables() == (w,)
        assert tape.gradient(y, w) == 10.0


def test_a_read_before_the_tape_is_a_constant_beside_a_read_in_it() -> None:
    w = jv.Variable(3.0)
    before = w.value
    with jv.GradientTape(persistent=True) as tape:
        through, beside = w * 2, before * 5
        both = through + beside
    assert tape.gradient(beside, w) is None
    assert [tape.gradient(y, w) for y in (through, both)] == [2.0, 2.0]


def test_a_read_through_an_operator_method_or_function_is_a_read() -> None:
    w = jv.Variable([1.0, 4.0])
    reads: list[Callable[[], Any]] = [
        lambda: w.value,
        lambda: w.read_value(),
        lambda: w + 0,
        lambda: +w,
        lambda: w[:],
        lambda: w[jnp.asarray([0, 1])],
        lambda: jnp.asarray(w),
        lambda: jnp.stack([w[0], w[1]]),
        lambda: w.reshape(2),
        lambda: w.T,
        lambda: jax.nn.relu(w),
        lambda: jnp.where(w > 0, w, 0.0),
        lambda: jax.tree.map(lambda x: x, [w])[0],
        lambda: w.astype(jnp.float32),
    ]
    for read in reads:
        with jv.GradientTape() as tape:
            y = read() * 3
        assert tape.gradient(y, w).tolist() == [3.0, 3.0]


# ---------------------------------------------------------------- use
def test_a_second_use_is_refused() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape() as tape:
        y = w * w
    assert tape.gradient(y, w) == 6.0
    message = r"non-persistent GradientTape can only be used once.*persistent=True"
    for again in (tape.gradient, tape.jacobian, tape.batch_jacobian):
        with pytest.raises(TapeError, match=message) as caught:
            again(y, w)
        assert isinstance(caught.value, RuntimeError)  # as in TensorFlow


def test_a_persistent_tape_is_used_often() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape(persistent=True) as tape:
        y = w * w
        z = y * y
    assert [tape.gradient(t, w) for t in (z, y, z)] == [108.0, 6.0, 108.0]
    assert tape.gradient(z, y) == 18.0
    assert tape.jacobian(z, w) == 108.0


def test_a_tape_may_be_entered_again() -> None:
    w = jv.Variable(3.0)
    tape = jv.GradientTape()
    with tape:
        y = w * w
    z = y + 100.0 * w  # not recorded
    with tape:
        z = y * 2.0
    assert tape.gradient(z, w) == 12.0


def test_stop_recording() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape(persistent=True) as tape:
        y = w * w
        with tape.stop_recording():
            hidden = w * y
        seen = y + w
    assert tape.gradient(hidden, w) is None
    assert tape.gradient(seen, w) == 7.0


def test_reset_forgets() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape(persistent=True) as tape:
        old = w * w
        tape.reset()
        new = w * 5.0
    assert tape.gradient(old, w) is None
    assert tape.gradient(new, w) == 5.0


def test_reset_forgets_what_was_watched_and_that_it_was_used() -> None:
    x = jnp.asarray(2.0)
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert tape.gradient(y, x) == 4.0
        tape.reset()
        y = x * x
    assert tape.watched_variables() == ()
    assert tape.gradient(y, x) is None


def test_values_under_a_tape_are_concrete_and_python_decides() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape() as tape:
        y = w * 1.0
        while y < 100:
            y = y * w
        assert isinstance(float(y), float)
        assert np.asarray(y) == 243.0
    assert tape.gradient(y, w) == 5 * 3.0**4


# ---------------------------------------------------------------- targets and sources
def test_sources_give_the_structure() -> None:
    a, b = jv.Variable(2.0), jv.Variable(3.0)
    with jv.GradientTape(persistent=True) as tape:
        y = a * b
    assert tape.gradient(y, a) == 3.0
    assert tape.gradient(y, [a, b]) == [3.0, 2.0]
    assert tape.gradient(y, (b, a)) == (2.0, 3.0)
    assert tape.gradient(y, {"a": a, "rest": (b, [a])}) == {"a": 3.0, "rest": (2.0, [3.0])}
    assert tape.gradient(y, [a, a]) == [3.0, 3.0]
    assert tape.gradient(y, []) == []


def test_the_gradient_of_several_targets_is_that_of_their_sum() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape(persistent=True) as tape:
        y, z = w * w, 5 * w
    assert tape.gradient([y, z], w) == 11.0
    assert tape.gradient({"y": y, "z": (z, z)}, w) == 16.0


def test_an_intermediate_value_is_a_source() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape(persistent=True) as tape:
        h = w * w
        y = h * h + w
    assert tape.gradient(y, h) == 18.0
    assert tape.gradient(y, [w, h]) == [109.0, 18.0]  # as if each varied by itself
    assert tape.gradient(h, h) == 1.0


def test_what_stops_is_a_constant_unless_it_is_a_source() -> None:
    x = jnp.asarray(2.0)
    with jv.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * 3.0
        z = x * y
    assert tape.row_gradients(z, [x], stops=[y]) == [6.0]
    assert tape.row_gradients(z, [x, y], stops=[y]) == [6.0, 2.0]
    assert tape.row_gradients(z, [x]) == [12.0]


def test_a_loop_that_jax_recomputes_inside_of_a_function_that_closed_over_an_array() -> None:
    def scaled(w: Any) -> Any:
        inner = jax.jit(lambda x: jnp.sin(x) * w)

        @jax.checkpoint
        def loop(x: Any) -> Any:
            return jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=3)[0]

        return jax.jit(lambda x: jax.grad(loop)(x) + inner(x))

    w, x = jnp.asarray(2.0), jnp.asarray(1.0)
    f = scaled(w)
    with jv.GradientTape() as tape:
        tape.watch([w, x])
        y = f(x)
    want = jax.grad(lambda w, x: scaled(w)(x), argnums=(0, 1))(w, x)
    np.testing.assert_allclose(tape.gradient(y, [w, x]), want, rtol=1e-6)


def test_the_target_may_be_the_source() -> None:
    w, x = jv.Variable(3.0), jnp.asarray(2.0)
    with jv.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = w.value
    assert tape.gradient(y, w) == 1.0
    assert tape.gradient(w, w) == 1.0
    assert tape.gradient(x, x) == 1.0


def test_a_part_of_a_variable_is_a_target() -> None:
    w = jv.Variable(vector())
    with jv.GradientTape() as tape:
        part = w[1:] * 2
    assert tape.gradient(part, w).tolist() == [0.0, 2.0, 2.0]


def test_a_target_that_is_not_an_array_is_refused() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape(persistent=True) as tape:
        y = float(w * w)
    with pytest.raises(TapeError, match=r"target is a float \(9\.0\), not the array that was"):
        tape.gradient(y, w)


def test_gradients_have_the_shape_and_dtype_of_the_source() -> None:
    w = jv.Variable(jnp.ones((2, 3), jnp.bfloat16))
    with jv.GradientTape() as tape:
        y = jnp.sum(w.astype(jnp.float32) ** 2)
    grad = tape.gradient(y, w)
    assert (grad.shape, grad.dtype) == ((2, 3), jnp.bfloat16)


def test_a_target_that_is_wider_than_new_arrays_is_refused() -> None:
    with jax.enable_x64(True):
        x = jnp.asarray(0.1)
        with jv.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = jnp.sin(x)
    with jax.enable_x64(False):
        for ask in (tape.gradient, tape.jacobian):
            with pytest.raises(TapeError, match=r"(?s)float64, and 64-bit .*enable_x64\(True\)"):
                ask(y, x)
    with jax.enable_x64(True):
        assert abs(float(tape.gradient(y, x)) - np.cos(0.1)) < 1e-15


def test_complex_gradients_follow_jax() -> None:
    z = jv.Variable(1.0 + 2.0j)
    with jv.GradientTape() as tape:
        y = jnp.abs(z * z)
    assert tape.gradient(y, z) == jax.grad(lambda z: jnp.abs(z * z))(z.value)


# ---------------------------------------------------------------- output gradients
def test_output_gradients_multiply() -> None:
    w = jv.Variable(vector())
    with jv.GradientTape(persistent=True) as tape:
        y = w * w
    grad = tape.gradient(y, w, output_gradients=jnp.asarray([1.0, 10.0, 0.0]))
    assert grad.tolist() == [2.0, -40.0, 0.0]


def test_output_gradients_for_several_targets_and_none_for_ones() -> None:
    w = jv.Variable(3.0)
    with jv.GradientTape(persistent=True) as tape:
        y, z = w * w, 5 * w
    assert tape.gradient([y, z], w, output_gradients=[jnp.asarray(10.0), None]) == 65.0
    assert tape.gradient([y, z], w, output_gradients=[jv.Variable(0.0), jnp.asarray(2.0)]) == 10.0


def test_output_gradients_must_fit() -> None:
    w = jv.Variable(vector())
    with jv.GradientTape(persistent=True) as tape:
        y = w * w
    with pytest.raises(TapeError, match=r"output_gradient has shape \(2,\), its target \(3,\)"):
        tape.gradient(y, w, output_gradients=jnp.ones(2))
    with pytest.raises(TapeError, match="There are 1 targets, but 2 output_gradients"):
        tape.gradient(y, w, output_gradients=[jnp.ones(3), jnp.ones(3)])


# ---------------------------------------------------------------- Jacobians
def test_jacobian_of_a_variable_and_a_structure() -> None:
    w, b = jv.Variable(vector()), jv.Variable(2.0)
    with jv.GradientTape(persistent=True) as tape:
        y = jnp.outer(w, w)[:2] * b
    jw, jb = tape.jacobian(y, [w, b])
    want_w, want_b = jax.jacrev(lambda w, b: jnp.outer(w, w)[:2] * b, (0, 1))(w.value, b.value)
    assert jw.shape == (2, 3, 3)
    assert np.array_equal(jw, want_w)
    assert np.array_equal(jb, want_b)


def test_jacobian_of_a_scalar_target_is_the_gradient() -> None:
    w = jv.Variable(vector())
    with jv.GradientTape() as tape:
        y = jnp.sum(w**2)
    assert tape.jacobian(y, w).tolist() == [2.0, -4.0, 6.0]


def test_jacobian_of_what_is_not_connected() -> None:
    w, other = jv.Variable(vector()), jv.Variable(jnp.ones((2, 2)))
    with jv.GradientTape(persistent=True) as tape:
        y = w * w
    assert tape.jacobian(y, other) is None
    zeros = tape.jacobian(y, [w, other], unconnected_gradients="zero")[1]
    assert (zeros.shape, float(jnp.sum(zeros))) == ((3, 2, 2), 0.0)


def test_jacobians_of_a_variable_that_no_tape_follows() -> None:
    w = jv.Variable([[2.0]])
    fixed = jv.Variable(jnp.ones((1, 3)), trainable=False)
    with jv.GradientTape(persistent=True) as tape:
        tape.watch(x := jnp.ones((1, 2)))
    assert tape.jacobian(fixed, w) is None
    assert tape.jacobian(fixed, w, unconnected_gradients="zero").shape == (1, 3, 1, 1)
    assert tape.batch_jacobian(fixed, x) is None


def test_a_hessian_from_a_jacobian_of_a_gradient() -> None:
    w = jv.Variable(vector())
    with jv.GradientTape() as outer:
        with jv.GradientTape() as inner:
            y = jnp.sum(w**3) + w[0] * w[1]
        grad = inner.gradient(y, w)
    hessian = jax.hessian(lambda w: jnp.sum(w**3) + w[0] * w[1])(w.value)
    assert np.allclose(outer.jacobian(grad, w), hessian)


def test_batch_jacobian() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    f = lambda row: jnp.stack([jnp.sum(row**2), row[0] * row[1]])  # noqa: E731 - one use
    with jv.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = jax.vmap(f)(x)
    assert tape.batch_jacobian(y, x).shape == (2, 2, 3)
    assert np.allclose(tape.batch_jacobian(y, x), jax.vmap(jax.jacrev(f))(x))


def test_batch_jacobian_of_one_number_per_example() -> None:
    x = jnp.asarray([1.0, 2.0])
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.batch_jacobian(y, x).tolist() == [2.0, 4.0]


def test_batch_jacobian_checks_the_batch() -> None:
    x = jnp.ones((2, 3))
    with jv.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = jnp.sum(x, 0)
    with pytest.raises(TapeError, match=r"same first dimension, not \(3,\) and \(2, 3\).*jacobian"):
        tape.batch_jacobian(y, x)


def test_batch_jacobian_of_what_is_not_connected() -> None:
    x, z = jnp.ones((2, 3)), jnp.ones((2, 4))
    with jv.GradientTape(persistent=True) as tape:
        tape.watch([x, z])
        y = x * 2
    assert tape.batch_jacobian(y, z) is None
    assert tape.batch_jacobian(y, z, unconnected_gradients="zero").shape == (2, 3, 4)


@pytest.mark.parametrize("how", [lambda f: f, jv.compile])
def test_a_variable_as_the_target_depends_on_itself(how):
    v, u = jv.Variable([2.0, 3.0]), jv.Variable(1.0)

    def chosen():
        with jv.GradientTape() as tape:
            result = v  # not read: the variable itself
        return tape.gradient(result, [v, u])

    grad, none = how(chosen)()
    assert grad.tolist() == [1.0, 1.0]
    assert none is None


def test_an_output_gradient_with_a_mask_is_refused():
    v = jv.Variable([1.0, 2.0])
    with jv.GradientTape() as tape:
        y = v * 2.0
    with pytest.raises(TapeError, match="a masked array, and a tensor has no mask"):
        tape.gradient(y, v, output_gradients=np.ma.array([1.0, 2.0], mask=[0, 1]))


def test_a_tape_is_closed_where_it_was_opened():
    x, refused = jnp.asarray(3.0), list[str]()
    tape = jv.GradientTape()

    def close() -> None:
        try:
            tape.__exit__(None, None, None)
        except TapeError as error:
            refused.append(str(error))

    with tape:
        tape.watch(x)
        run_in_threads(close)
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0
    close()
    cure = r" A tape sees what its own thread computes: open and close it there, each time once, by"
    closed = r"A tape is closed at test_tape.py:\d+, in close in a thread that has not opened it"
    assert re.match(f"{closed}, and stays open in the one that has\\.{cure}", refused[0])
    assert re.match(f"{closed}\\.{cure}", refused[1])


@pytest.mark.parametrize("multiply", [lambda w, x: w * x, lambda w, x: jnp.multiply(w.value, x)])
def test_a_numpy_array_may_be_written_to_before_the_gradient_is_asked_for(
    multiply: Any, batch: Any
) -> None:
    w = jv.Variable(jnp.zeros(batch.shape))
    with jv.GradientTape() as tape:
        y = multiply(w, batch)
    batch[:] = 7
    found = tape.gradient(y, w)
    assert set(found.tolist()) == {1.0}
    batch[:] = 1
    with jv.ForwardAccumulator(w, batch) as forward:
        y = w * 1.0
    batch[:] = 7
    assert set(forward.jvp(y).tolist()) == {1.0}

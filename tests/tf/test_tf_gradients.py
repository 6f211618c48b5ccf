"""`tf.gradients`, in functions.

What is expected was seen in TensorFlow 2.21.
"""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf

CUBE = 3.0


def values(found):
    return [None if x is None else x.numpy().tolist() for x in found]


def test_gradients_of_what_a_function_computed():
    v, u = tf.Variable([1.0, 2.0]), tf.Variable(3.0, trainable=False)

    @tf.function
    def f(x, unused):
        y = v * u * x
        z = tf.reduce_sum(y)
        (second,) = tf.gradients(tf.gradients(z * z, x)[0], x)
        assert tf.gradients(z, [x, unused])[1] is None
        zero = tf.gradients(z, unused, unconnected_gradients="zero")
        return [second, *tf.gradients(z, [v, u, x, y]), *zero, *tf.gradients([z, x], x)]

    found = f(tf.constant(2.0), tf.constant([1.0, 1.0]))
    assert values(found) == [162.0, [6.0, 6.0], 6.0, 9.0, [1.0, 1.0], [0.0, 0.0], 10.0]


def test_weights_constants_and_lookups():
    table = tf.Variable([[1.0], [2.0], [3.0]])

    @tf.function
    def f(a):
        b = 2.0 * a
        rows = tf.gradients(tf.gather(table, [2]) * a, table)[0]
        return (
            tf.gradients(a + b, [a, b], stop_gradients=[a, b]),
            tf.gradients(a + b, [a, b], stop_gradients=b),
            tf.gradients([a, b], a, grad_ys=[tf.constant(5.0), None]),
            rows,
        )

    *found, rows = f(tf.constant(1.0))
    assert list(map(values, found)) == [[1.0, 1.0], [1.0, 1.0], [7.0]]
    assert isinstance(rows, tf.IndexedSlices)
    assert rows.indices.numpy().tolist() == [2]


def test_a_function_that_hides_the_call_is_traced_once_more():
    runs = []

    def hidden(y, x):
        return getattr(tf, "gradients")(y, x)[0]  # noqa: B009 - so that no code names it

    @tf.function
    def inner(x):
        runs.append(1)
        return hidden(x**CUBE, x)

    outer = tf.function(lambda x: inner(x) * x)
    assert outer(tf.constant(2.0)).numpy() == 24.0
    assert len(runs) == 2
    assert inner(tf.constant([1.0])).numpy().tolist() == [3.0]
    assert len(runs) == 3


def test_where_there_is_no_graph():
    x = tf.constant(1.0)
    with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"):
        tf.gradients(x, x)

    @tf.function
    def loop(x):
        return tf.while_loop(lambda y: y < 9.0, lambda y: tf.gradients(y * y, y), [x])

    with pytest.raises(RuntimeError, match=r"in a loop or branch of a tf\.function"):
        loop(x)
    complex_one = tf.function(lambda z: tf.gradients(z * z, z))
    with pytest.raises(TypeError, match=r"must set grad_ys \(y\.dtype = complex64\)"):
        complex_one(tf.constant(1j, tf.complex64))


def test_custom_gradient_of_a_method_and_passing_through():
    class Model:
        @tf.custom_gradient
        def product(self, a, b):
            return a * b, lambda up: (up * a, up * b)

    a, b, v = tf.constant(3.0), tf.constant(5.0), tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([a, b])
        y = Model().product(a, b)
        z = tf.grad_pass_through(v.assign)(a * a)
        other = tf.grad_pass_through(lambda x: v * x)(a)
    assert values(tape.gradient(y, [a, b])) == [3.0, 5.0]
    assert tape.gradient(z, a).numpy() == 6.0
    assert tape.gradient(other, v) is None
    assert v.numpy() == 9.0


def test_custom_gradients_run_at_once_with_values():
    v, seen = tf.Variable(2.0), []

    @tf.custom_gradient
    def f(x, n):
        seen.append((bool(x > 0.0), x.numpy(), n))
        e = tf.exp(x)

        def grad(up, integer, variables):
            seen.append((up.numpy(), integer.dtype, variables[0] is v))
            return (up * e * v, None), [3.0 * up]

        return (e * v, tf.constant([n])), grad

    x = tf.constant(0.0)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, _ = f(x, 7)
        slopes = tape.gradient(y, [x, v])
    assert seen == [(False, 0.0, 7), (1.0, tf.int32, True)]
    assert values(slopes) == [2.0, 3.0]
    assert values(outer.gradient(slopes[0], [x, v])) == [2.0, 1.0]
    assert f(x, 1)[0].numpy() == 2.0


def test_gradients_of_custom_gradients():
    @tf.custom_gradient
    def f(x):
        def grad(up):
            slope = tf.custom_gradient(lambda _: (-1.1, lambda up: -2.1 * up))
            return up * slope(x)

        return x + 10.0, grad

    def second(c):
        with tf.GradientTape() as outer:
            outer.watch(c)
            with tf.GradientTape() as tape:
                tape.watch(c)
                d = f(c) ** 4.0
            slope = tape.gradient(d, c)
        return outer.gradient(slope, c)

    expected = pytest.approx(12.0 * 11**2 * 1.1**2 - 2.1 * 4.0 * 11**3, rel=1e-5)
    c = tf.constant(1.0)
    assert float(second(c)) == float(tf.function(second)(c)) == expected


def test_custom_gradients_of_wrong_number():
    f = tf.custom_gradient(lambda x: (x, lambda up: []))
    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = f(v)
    with pytest.raises(ValueError, match="expected to return 1 gradients, but returned 0"):
        tape.gradient(y, v)


# ---------------------------------------------------------------- where there is a corner
def _slopes(fn, x):
    """Return the gradients of a function of a tensor, eagerly and compiled."""
    found = []
    for run in (fn, tf.function(fn)):
        given = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(given)
            y = run(given)
        found.append(tape.gradient(y, given))
    return [g if g is None else g.numpy().tolist() for g in found]


@pytest.mark.parametrize(
    ("fn", "x", "expected"),
    [
        (tf.abs, [0.0, -0.0, 2.0, -1.0], [0.0, 0.0, 1.0, -1.0]),
        (abs, [0.0, 2.0], [0.0, 1.0]),
        (lambda x: tf.norm(x, 1), [0.0, 1.0], [0.0, 1.0]),
        (lambda x: tf.norm(x, np.inf), [0.0, 0.0], [0.0, 0.0]),
        (lambda x: tf.keras.regularizers.L1(1.0)(x), [0.0, 1.0], [0.0, 1.0]),
        (tf.nn.relu6, [0.0, 3.0, 6.0, 7.0], [0.0, 1.0, 0.0, 0.0]),
        (lambda x: tf.image.total_variation(x[..., None]), [[1.0, 1.0], [1.0, 2.0]],
         [[0.0, -1.0], [-1.0, 2.0]]),
        (lambda x: x // 2.0, [1.0, 3.0], None),
        (lambda x: x // 2.0 + x, [1.0, 3.0], [1.0, 1.0]),
    ],
)  # fmt: skip
def test_slopes_at_corners_are_those_of_tensorflow(fn, x, expected):
    assert _slopes(fn, x) == [expected, expected]


def test_a_loss_of_candidates_has_a_slope_at_logits_of_0():
    bias, weights = tf.Variable(tf.zeros([4])), tf.zeros([4, 2])
    drawn = (tf.constant([2, 3], tf.int64), tf.constant([[1.0]]), tf.constant([1.0, 1.0]))
    with tf.GradientTape() as tape:
        loss = tf.nn.nce_loss(
            weights, bias, tf.constant([[0]], tf.int64), tf.constant([[1.0, 2.0]]), 2, 4,
            sampled_values=drawn,
        )  # fmt: skip
    found = tf.convert_to_tensor(tape.gradient(loss, bias))
    assert found.numpy().tolist() == [-0.5, 0.0, 0.5, 0.5]


@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "function"])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float16])
@pytest.mark.parametrize(
    ("fn", "x", "slope"),
    [
        (tf.nn.relu, 2.0, 1.0),
        (tf.nn.relu, -2.0, 0.0),
        (tf.nn.leaky_relu, 2.0, 1.0),
        (tf.nn.leaky_relu, -2.0, 0.2),
        (tf.nn.relu6, 2.0, 1.0),
        (tf.nn.relu6, -2.0, 0.0),
    ],
)
def test_the_slope_of_what_is_cut_has_a_slope_of_0(fn, x, slope, dtype, run):
    v, b, given = (
        tf.Variable(2.0, dtype=dtype),
        tf.Variable(1.0, dtype=dtype),
        tf.constant(x, dtype),
    )

    @run
    def twice():
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(given)
                y = fn(v * given + b)
            first = inner.gradient(y, given)
        return outer.gradient(first, [v, b])

    by_v, by_b = twice()
    assert (float(by_v), float(by_b)) == (pytest.approx(slope, abs=1e-3), 0.0)


def test_a_penalty_of_slopes_moves_a_bias_by_its_momentum():
    v, b, x = tf.Variable([2.0]), tf.Variable([1.0]), tf.constant([2.0])
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    for is_penalty in (False, True, True):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.nn.leaky_relu(v * x + b)
            loss = inner.gradient(y, x) ** 2 if is_penalty else y**2
        optimizer.apply_gradients(zip(outer.gradient(loss, [v, b]), [v, b], strict=True))
    np.testing.assert_allclose([*v.numpy(), *b.numpy()], [-3.4056, -1.71], rtol=1e-5)


def test_values_at_corners():
    edges = [-np.inf, np.inf, np.nan, -0.0, 6.0, -0.5]
    np.testing.assert_array_equal(tf.nn.relu6(edges), [0.0, 6.0, np.nan, 0.0, 6.0, 0.0])
    found = tf.abs(edges).numpy()
    np.testing.assert_array_equal(found, np.abs(np.float32(edges)))
    assert not np.signbit(found[3])
    assert tf.abs(tf.constant([-128], tf.int8)).numpy().tolist() == [-128]

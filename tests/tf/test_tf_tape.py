"""`tf.GradientTape`, `tf.autodiff`, and custom gradients.

What is expected was seen in TensorFlow 2.21.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jaxvars import tf
from jaxvars.errors import GradientWarning


def numbers(x):
    return None if x is None else np.asarray(tf.convert_to_tensor(x).numpy()).tolist()


def gradient(f, *xs):
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return [numbers(g) for g in tape.gradient(y, xs)]


@pytest.fixture
def linear():
    w, b = tf.Variable([[1.0, 2.0], [3.0, 4.0]]), tf.Variable([0.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        z = tf.constant([[1.0, 2.0]]) @ w + b
        loss = tf.reduce_sum(z * z)
    return tape, w, b, z, loss


def test_sources_and_targets(linear):
    tape, w, b, z, loss = linear
    assert numbers(tape.gradient(loss, {"w": w, "b": b})["b"]) == [14.0, 22.0]
    assert numbers(tape.gradient(loss, [w, b])[0]) == [[14.0, 22.0], [28.0, 44.0]]
    assert numbers(tape.gradient({"a": loss, "b": z}, b)) == [15.0, 23.0]
    assert numbers(tape.gradient(z, b, output_gradients=tf.constant([[1.0, 5.0]]))) == [1.0, 5.0]
    assert numbers(tape.jacobian(z, b)) == [[[1.0, 0.0], [0.0, 1.0]]]
    assert [v is w for v in tape.watched_variables()] == [True, False]
    other = tf.Variable([1.0, 1.0])
    assert tape.gradient(loss, other) is None
    for zero in ("zero", tf.UnconnectedGradients.ZERO):
        assert numbers(tape.gradient(loss, other, unconnected_gradients=zero)) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("target", "sources", "error", "why"),
    [
        (None, "w", TypeError, "Argument `target` should be a list"),
        ("a", "w", TypeError, "Argument `target` is a tensor"),
        ("loss", None, TypeError, "Argument `sources` is a tensor"),
        ("loss", 1.0, TypeError, "Argument `sources` is a tensor"),
    ],
)
def test_what_is_not_a_tensor(linear, target, sources, error, why):
    tape, w, _, _, loss = linear
    with pytest.raises(error, match=why):
        tape.gradient(loss if target == "loss" else target, w if sources == "w" else sources)


def test_refusals(linear):
    tape, w, b, z, loss = linear
    with pytest.raises(tf.errors.InvalidArgumentError, match="output_gradients has shape"):
        tape.gradient(z, b, output_gradients=tf.constant([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients"):
        tape.gradient(loss, w, unconnected_gradients="other")
    with pytest.raises(ValueError, match=r"Passed in object 3\.0 of type 'float', not tf\.Tensor"):
        tape.watch(3.0)
    with pytest.raises(ValueError, match="must have rank at least 2"):
        tape.batch_jacobian(b, z)
    with pytest.raises(ValueError, match="Need first dimension of target shape"):
        tape.batch_jacobian(z, tf.ones([3, 2]))
    once = tf.GradientTape()
    with once, pytest.raises(ValueError, match="Tape is still recording"):
        once.__enter__()
    once.gradient(z, b)
    with pytest.raises(RuntimeError, match="can only be used to compute one set of gradients"):
        once.gradient(z, b)


def test_reasons_for_none():
    watched, untrained = tf.Variable(3.0), tf.Variable(3.0, trainable=False)
    no_variable, constant = tf.Variable(2.0) + 1.0, tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = watched**2 + untrained**2 + no_variable**2 + constant
    found = tape.gradient(y, [watched, untrained, no_variable, constant])
    assert [numbers(g) for g in found] == [6.0, None, None, None]
    with tf.GradientTape() as tape:
        y = tf.reduce_mean(watched.numpy() ** 2)
    assert tape.gradient(y, watched) is None
    state = tf.Variable(0.0)
    with tf.GradientTape() as tape:
        state.assign_add(watched)
        y = state**2
    assert tape.gradient(y, watched) is None
    whole = tf.Variable(10)
    with tf.GradientTape() as tape:
        y = whole * whole
    with pytest.warns(GradientWarning, match="int32"):
        assert tape.gradient(y, whole) is None


def test_what_is_recorded():
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        with tape.stop_recording():
            z = x * x
    assert (numbers(tape.gradient(y, x)), tape.gradient(z, x)) == (6.0, None)
    with tf.GradientTape() as tape:
        y = x * x
        tape.reset()
        z = x * 5.0
    assert numbers(tape.gradient(z, x)) == 5.0
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = x * x
    assert tape.gradient(y, x) is None


def test_higher_derivatives_and_batches():
    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x * x * x
        first = inner.gradient(y, x)
    assert (numbers(first), numbers(outer.gradient(first, x))) == (12.0, 12.0)
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(rows)
        y = rows * rows
    assert numbers(tape.batch_jacobian(y, rows)) == [
        [[2.0, 0.0], [0.0, 4.0]],
        [[6.0, 0.0], [0.0, 8.0]],
    ]
    assert numbers(tape.batch_jacobian(tf.ones([2, 1]), rows)) == [[[0.0, 0.0]], [[0.0, 0.0]]]


def test_gradients_of_rows_are_tensors():
    e = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(e, [0, 2, 0]))
    assert numbers(tape.gradient(y, e)) == [[2.0, 2.0], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]


# ---------------------------------------------------------------- custom gradients
def test_custom_gradients():
    @tf.custom_gradient
    def two(a, b):
        return a * b, lambda up: (up * 10.0, up * 20.0)

    @tf.custom_gradient
    def several(a):
        return (a, a * 2), lambda up, other: up + other

    assert gradient(two, tf.constant(2.0), tf.constant(3.0)) == [10.0, 20.0]
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y, z = several(x)
        total = y * 3.0 + z
    assert numbers(tape.gradient(total, x)) == 4.0
    assert isinstance(y, tf.Tensor)
    f = tf.function(lambda a: gradient_tensor(two, a))
    assert numbers(f(tf.constant(2.0))) == 30.0


def gradient_tensor(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, x)
    return tape.gradient(y, x)


def test_variables_that_only_the_gradient_function_reads_are_none_of_a_custom_gradient():
    lam, w = tf.Variable(3.0), tf.Variable(2.0)
    reversal = tf.custom_gradient(lambda x: (tf.identity(x), lambda up: -lam * up))

    def program():
        with tf.GradientTape() as tape:
            y = reversal(w) ** 2
        return tape.gradient(y, [w, lam])

    for way in (lambda f: f, tf.function):
        dw, dlam = way(program)()
        assert (numbers(dw), dlam) == (-12.0, None)


def test_custom_gradients_with_variables():
    w = tf.Variable(2.0)

    @tf.custom_gradient
    def scaled(a):
        def grad(up, variables=None):
            assert variables[0] is w
            return up * w, [up * a * 100.0 for _ in variables]

        return a * w, grad

    careless = tf.custom_gradient(lambda a: (a * w, lambda up: up))
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scaled(x)
    assert [numbers(g) for g in tape.gradient(y, [x, w])] == [2.0, 300.0]
    with tf.GradientTape() as tape, pytest.raises((TypeError, RuntimeError), match="variables"):
        tape.gradient(careless(x), w)


def test_wrappers():
    x, w = tf.constant(3.0), tf.Variable(2.0)
    assert gradient(lambda a: a * tf.stop_gradient(a), x) == [3.0]
    assert gradient(tf.grad_pass_through(lambda a: a**2), x) == [1.0]
    with tf.GradientTape() as tape:
        y = tf.recompute_grad(lambda a, v: a * v * v)(x, w)
    assert numbers(tape.gradient(y, w)) == 12.0


@pytest.mark.parametrize("count", [2, np.int64(2)])
def test_numbers_and_bools_stay_what_they_are_where_a_function_is_recomputed(count):
    def block(a, n, training):
        for _ in range(n):
            a = a * a if training else a
        return a

    f = tf.recompute_grad(block)
    for call in (f, tf.function(lambda a, n, training: f(a, count, training=True))):
        x = tf.constant([3.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = call(x, count, training=True)
        assert numbers(y) == [81.0]
        assert numbers(tape.gradient(y, x)) == [108.0]


# ---------------------------------------------------------------- forward
def test_forward_accumulator():
    v, b = tf.Variable([1.0, 2.0]), tf.Variable([0.0, 0.0])
    tangents = [tf.constant([1.0, 0.0]), tf.constant([0.0, 1.0])]
    with tf.autodiff.ForwardAccumulator([v, b], tangents) as acc:
        y, z, other = v * v, b * 3.0, tf.constant(1.0)
    found = acc.jvp([y, {"z": z}])
    assert (numbers(found[0]), numbers(found[1]["z"])) == ([2.0, 0.0], [0.0, 3.0])
    assert acc.jvp(other) is None
    assert numbers(acc.jvp(other, unconnected_gradients="zero")) == 0.0
    with tf.autodiff.ForwardAccumulator(v, tangents[0]) as acc:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v**3)
        g = tape.gradient(loss, v)
    assert numbers(acc.jvp(g)) == [6.0, 0.0]
    with pytest.raises(ValueError, match="A tangent is float64"):
        tf.autodiff.ForwardAccumulator(v, tf.constant([1.0, 0.0], tf.float64))


def test_complex_gradients_are_tensorflows():
    z, w = tf.Variable(1 + 2j, dtype=tf.complex64), tf.constant(3 - 1j, tf.complex64)
    times_w = tf.custom_gradient(lambda x: (x * w, lambda up: up * tf.math.conj(w)))
    with tf.GradientTape(persistent=True) as tape:
        size, y, custom = tf.math.real(z * tf.math.conj(z)), z * w, times_w(z)
        both = tf.stack([z * z, y])
    assert tape.gradient(size, z).numpy() == 2 + 4j
    given = tf.constant(2 + 1j, tf.complex64)
    assert tape.gradient(y, z, given).numpy() == tape.gradient(custom, z, given).numpy() == 5 + 5j
    assert tape.jacobian(both, z).numpy().tolist() == [2 - 4j, 3 + 1j]
    slope = tf.function(lambda: tf.gradients(tf.math.real(z * w), z)[0])
    assert slope().numpy() == 3 + 1j


sine = tf.custom_gradient(lambda x: (tf.sin(x), lambda up: up * tf.cos(x)))


def test_forward_through_gradients_of_ones_own():
    x, direction = tf.constant([0.1, 0.2]), tf.constant([1.0, 2.0])
    expected = [0.19933385, 0.7893653]

    def pushed(x):
        with tf.autodiff.ForwardAccumulator(x, direction) as acc:
            y = sine(x) * x
        return acc.jvp(y)

    assert np.allclose(pushed(x), expected)
    assert np.allclose(tf.function(pushed)(x), expected)
    compiled = tf.function(lambda x: sine(x) * x)
    with tf.autodiff.ForwardAccumulator(x, direction) as acc:
        y = compiled(x)
    assert np.allclose(acc.jvp(y), expected)
    with tf.autodiff.ForwardAccumulator(x, direction) as acc:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = sine(x)
        slope = tape.gradient(y, x)
    assert np.allclose(acc.jvp(slope), -np.sin([0.1, 0.2]) * [1.0, 2.0])


def test_accumulators_are_entered_one_at_a_time():
    x = tf.constant(-2.0)
    with pytest.raises(ValueError, match="multiple times"):
        tf.autodiff.ForwardAccumulator([x, x], [1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, 1.5) as acc:
        y = 4.0 * x
        with pytest.raises(ValueError, match="already recording"), acc:
            pass
    z = 4.0 * x
    assert acc.jvp(z) is None
    with acc:
        square = y * y
    assert acc.jvp(square).numpy() == -96.0


def floats(found):
    return [None if x is None else float(x) for x in found]


def test_tangents_are_seen_by_what_was_open_around_the_operations():  # with TensorFlow's numbers
    x, one = tf.Variable(3.0), tf.constant(1.0)
    outer, inner = (tf.autodiff.ForwardAccumulator(x, one) for _ in range(2))
    with tf.GradientTape() as tape, outer, inner:
        y = x * x * x
    first = inner.jvp(y)
    second = outer.jvp(first)
    assert floats([first, second, inner.jvp(first), tape.gradient(second, x)]) == [27, 18, None, 6]
    assert inner.jvp(outer.jvp(y)) is None

    with tf.GradientTape(persistent=True) as tape:
        with tf.autodiff.ForwardAccumulator(x, one) as forward:
            y = x * x * x
        with tape.stop_recording():
            tangent = forward.jvp(y)
    with tf.GradientTape() as late:
        z = forward.jvp(y) * x
    assert floats([tape.gradient(tangent, x), late.gradient(z, x)]) == [18, 27]

    @tf.function
    def powers(x):
        outer, inner = (tf.autodiff.ForwardAccumulator(x, one) for _ in range(2))
        with outer, inner:
            y = one
            for _ in tf.range(3):
                y *= x
        return y, inner.jvp(y), outer.jvp(inner.jvp(y))

    assert floats(powers(tf.constant(3.0))) == [27, 27, 18]


def test_strings_have_no_gradient():
    s, x = tf.constant("word"), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([s, x])
        y = x * x
    with pytest.warns(GradientWarning):
        found = tape.gradient([y, s], [x, s])
    assert list(map(numbers, found)) == [6.0, None]


def test_rows_one_by_one_need_a_persistent_tape():
    x = tf.constant([[1.0, 2.0]])
    for name in ("jacobian", "batch_jacobian"):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        with pytest.raises(RuntimeError, match=f"persistent=True to compute the {name}"):
            getattr(tape, name)(y, x, experimental_use_pfor=False)


def test_a_variable_moves_with_itself_once():
    v = tf.Variable([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(v, tf.constant([1.0, 3.0])) as acc:
        assert numbers(acc.jvp(v)) == [1.0, 3.0]
    with tf.GradientTape(persistent=True) as tape:
        assert numbers(tape.gradient(v, v)) == [1.0, 1.0]


COMPLEX = np.array([[1.0 - 2j, 0.3 + 1j, -0.7j], [0.2 + 0.1j, -1.5 + 1j, 2.0], [1j, 0.4, 3.0 - 1j]])


@pytest.mark.parametrize("function", [
    tf.abs, tf.math.angle, tf.math.conj, tf.exp, tf.math.log, tf.sqrt, tf.tanh, tf.sign, tf.square,
    tf.math.reciprocal, tf.linalg.det, tf.linalg.inv, tf.linalg.adjoint, tf.signal.fft,
    tf.signal.ifft2d, tf.math.cumprod, tf.linalg.eigvalsh, lambda x: tf.abs(tf.linalg.eigh(x)[1]),
    lambda x: tf.abs(tf.linalg.eig(x)[1]), lambda x: tf.matmul(x, x, adjoint_a=True),
    lambda x: tf.pow(x, x), lambda x: tf.math.xlogy(x, x + 1.0), tf.math.reduce_euclidean_norm,
])  # fmt: skip
def test_gradients_of_complex_numbers_are_conjugated(function):
    def loss(x):
        y = tf.cast(function(tf.constant(x)), tf.complex128)
        weights = (1 + 0.5j) * np.arange(1, y.numpy().size + 1).reshape(y.shape)
        return tf.reduce_sum(y * weights)

    x = tf.constant(COMPLEX)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loss(x)
    slopes, step = np.zeros(9, complex), 1e-6
    for i, way in itertools.product(range(9), (1, 1j)):
        change = step * way * np.eye(9)[i].reshape(3, 3)
        difference = loss(COMPLEX + change) - loss(COMPLEX - change)
        slopes[i] += way * difference.numpy().real / (2 * step)
    np.testing.assert_allclose(tape.gradient(y, x).numpy().ravel(), slopes, rtol=1e-5, atol=1e-6)


def test_the_sign_of_a_complex_zero_has_the_slope_0():
    x = tf.constant([0j, 2j])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sign(x)
    assert y.numpy().tolist() == [0, 1j]
    assert tape.gradient(y, x).numpy().tolist() == [0, 0.5]


def test_a_target_is_1_by_itself_watched_or_not():
    x, other = tf.ones([2]), tf.ones([2])
    with tf.GradientTape(persistent=True) as tape:
        y = x * 3
    assert tape.gradient(x, x).numpy().tolist() == [1.0, 1.0]
    assert tape.gradient([x, x], x, [other, 2 * other]).numpy().tolist() == [3.0, 3.0]
    assert tape.gradient(y, y).numpy().tolist() == [1.0, 1.0]
    assert tape.gradient(x, [other, y]) == [None, None]
    assert tape.gradient(tf.stop_gradient(x), x) is None
    assert tf.function(lambda x: tf.GradientTape().gradient(x, x))(x).numpy().tolist() == [1.0, 1.0]


def test_what_consists_of_tensors_is_watched():
    class Masked(tf.experimental.ExtensionType):
        values: tf.Tensor
        mask: tf.Tensor

    sparse = tf.sparse.from_dense([[1.0, 0.0], [0.0, 2.0]])
    masked = Masked(tf.constant([1.0, 2.0]), tf.constant([True, False]))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch({"a": [sparse], "b": masked})
        y, z = tf.sparse.reduce_sum(sparse), masked.values * 2.0
    assert numbers(tape.gradient(y, sparse.values)) == [1.0, 1.0]
    assert numbers(tape.gradient(z, masked.values)) == [2.0, 2.0]


def test_watched_variables_come_in_the_order_of_their_creation():
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        _ = w * v
    assert [x is y for x, y in zip(tape.watched_variables(), (v, w), strict=True)] == [True] * 2


def test_a_custom_gradient_takes_variables_as_they_are():
    v, w = tf.Variable(2.0), tf.Variable(5.0)

    @tf.custom_gradient
    def f(x):
        x.assign_add(3.0)
        return x * w, lambda up, variables: (2.0 * up, [up * len(variables)])

    with tf.GradientTape() as tape:
        y = f(v)
    assert numbers(y) == 25.0
    assert [numbers(g) for g in tape.gradient(y, [v, w])] == [2.0, 1.0]

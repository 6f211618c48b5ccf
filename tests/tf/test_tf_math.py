"""What the table of operations cannot say about `tf.math`, `tf.bitwise`, and clipping."""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf


def gradient(function, *values):
    tensors = list(map(tf.constant, values))
    with tf.GradientTape() as tape:
        for x in tensors:
            tape.watch(x)
        result = function(*tensors)
    return [None if g is None else g.numpy().tolist() for g in tape.gradient(result, tensors)]


def test_a_name_that_is_not_there_is_told():
    with pytest.raises(
        AttributeError, match=r"tf\.math has no attribute 'reduce_men'.*reduce_mean"
    ):
        tf.math.reduce_men  # noqa: B018 - it raises


# ---------------------------------------------------------------- gradients at the edges
def test_the_greater_of_two_equals_is_the_first():
    assert gradient(tf.maximum, [1.0, 2.0], [1.0, 3.0]) == [[1.0, 0.0], [0.0, 1.0]]
    assert gradient(tf.minimum, [1.0, 2.0], [1.0, 3.0]) == [[1.0, 1.0], [0.0, 0.0]]


def test_a_value_at_a_limit_keeps_its_gradient():
    assert gradient(lambda x: tf.clip_by_value(x, -1.0, 1.0), [-1.0, 1.0, 2.0]) == [[1.0, 1.0, 0.0]]


def test_equal_extremes_share_the_gradient():
    assert gradient(tf.reduce_max, [2.0, 2.0, 1.0]) == [[0.5, 0.5, 0.0]]
    found = gradient(lambda x: tf.math.segment_max(x, [0, 0, 1]), [2.0, 2.0, 1.0])
    assert found == [[0.5, 0.5, 1.0]]


def test_a_product_with_zeros_has_a_gradient():
    def product(x):
        return tf.math.unsorted_segment_prod(x, [0, 0, 1, 1], 2)

    assert gradient(product, [0.0, 3.0, 0.0, 0.0]) == [[3.0, 0.0, 0.0, 0.0]]


def test_no_gradient_of_nothing():
    assert gradient(lambda x, y: tf.math.xlogy(x, y), [0.0], [0.0]) == [[0.0], [0.0]]
    assert gradient(tf.math.divide_no_nan, [1.0], [0.0]) == [[0.0], [0.0]]


def test_bessel_functions_are_differentiated_twice():
    x = tf.constant(1.5)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.math.special.bessel_j0(x)
        slope = inner.gradient(y, x)
    # J0'' = -J0' / x - J0
    wanted = -slope.numpy() / 1.5 - y.numpy()
    np.testing.assert_allclose(outer.gradient(slope, x).numpy(), wanted, rtol=1e-5)


# ---------------------------------------------------------------- slopes that are infinite or NaN
RUNS = pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "compiled"])
INF, NAN = float("inf"), float("nan")


def slopes(function, x, upstream):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x, output_gradients=upstream * tf.ones_like(y)).numpy()


@RUNS
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sqrt", [INF, 0.5, 0.25, 0.0, NAN, NAN]),
        ("rsqrt", [-INF, -0.5, -0.0625, 0.0, NAN, NAN]),
        ("reciprocal", [-INF, -1.0, -0.0625, 0.0, -1.0, NAN]),
    ],
)
def test_a_gradient_of_zero_stays_zero(run, name, expected):
    function, x = run(getattr(tf.math, name)), [0.0, 1.0, 4.0, INF, -1.0, NAN]
    np.testing.assert_array_equal(slopes(function, x, 1.0), expected)
    np.testing.assert_array_equal(slopes(function, x, 0.0), np.zeros(6))

    def masked(x):
        return tf.where(x == 4.0, function(x), 0.0)

    np.testing.assert_array_equal(slopes(masked, x, 1.0), [0, 0, expected[2], 0, 0, 0])


@RUNS
@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (tf.reduce_max, [1.0, NAN, 3.0], [NAN, NAN, NAN]),
        (tf.reduce_min, [[1.0, NAN], [2.0, 1.0]], [[NAN, NAN], [NAN, NAN]]),
        (lambda x: tf.reduce_max(x, 1), [[1.0, NAN], [2.0, 2.0]], [[NAN, NAN], [0.5, 0.5]]),
        (lambda x: tf.reduce_max(x, (0, 2), keepdims=True), [[[1.0, 3.0]], [[3.0, 0.0]]],
         [[[0.0, 0.5]], [[0.5, 0.0]]]),
        (lambda x: tf.maximum(x, [1.0, 1.0, NAN]), [NAN, 1.0, 5.0], [0.0, 1.0, 0.0]),
        (lambda x: tf.minimum([1.0, NAN, 1.0], x), [NAN, 5.0, 1.0], [1.0, 1.0, 0.0]),
        (lambda x: tf.clip_by_value(x, 0.0, 2.0), [NAN, 2.0, 3.0, 0.0], [0.0, 1.0, 0.0, 1.0]),
        (lambda y: tf.pow([0.0, 0.0, -1.0, NAN, 2.0], y), [0.0, -1.0, 0.5, 0.0, 1.0],
         [0.0, NAN, NAN, 0.0, 2 * np.log(2)]),
        (lambda x: tf.pow(x, [0.0, 2.0, 3.0, -1.0]), [2.0, 0.0, -2.0, 0.0], [0, 0, 12, -INF]),
        (tf.acosh, [0.0, -2.0, 1.0, INF, 2.0], [NAN, NAN, INF, 0.0, 3**-0.5]),
        (tf.math.ndtri, [0.0, 1.0, 0.5, -1.0], [INF, INF, np.sqrt(2 * np.pi), NAN]),
        (tf.math.erfcinv, [0.0, 1.0, 3.0], [-INF, -np.sqrt(np.pi) / 2, NAN]),
    ],
)  # fmt: skip
def test_slopes_where_there_is_no_value(run, function, x, expected):
    np.testing.assert_allclose(slopes(run(function), x, 1.0), np.float32(expected), 1e-6)


def test_slopes_of_extremes_and_powers_are_differentiated_in_turn():
    def second(function, x):
        x = tf.constant(x)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = function(x)
            slope = inner.gradient(y, x)
        return outer.gradient(slope, x).numpy().tolist()

    assert second(lambda x: tf.reduce_max(x) ** 2, [1.0, 3.0]) == [0.0, 2.0]
    assert second(lambda x: tf.maximum(x, 2.0) ** 2, [1.0, 3.0]) == [0.0, 2.0]
    assert second(lambda x: tf.pow(x, 3.0), [1.0, 2.0]) == [6.0, 12.0]


@RUNS
@pytest.mark.parametrize(
    "norm",
    [
        tf.norm, tf.math.reduce_std, lambda x: tf.linalg.global_norm([x]),
        lambda x: tf.norm(x, ord="fro", axis=(0, 1)),
        lambda x: tf.sqrt(tf.reduce_sum((x[:, None] - x[None]) ** 2, -1)),
    ],
    ids=["norm", "std", "global_norm", "frobenius", "distances"],
)  # fmt: skip
def test_norms_of_zeros(run, norm):
    zeros = [[0.0, 0.0], [0.0, 0.0]]
    np.testing.assert_array_equal(slopes(run(norm), zeros, 0.0), zeros)
    assert np.isnan(slopes(run(norm), zeros, 1.0)).all()


def test_constant_images_and_variances_of_zero():
    image = np.ones((1, 2, 2, 3), np.float32)
    found = slopes(tf.image.per_image_standardization, image, 1.0)
    np.testing.assert_array_equal(found, np.zeros_like(image))

    def normalize(variance):
        return tf.nn.batch_normalization([[1.0, 2.0]], [1.0, 1.0], variance, None, None, 0.0)

    np.testing.assert_array_equal(slopes(normalize, [0.0, 4.0], 0.0), [0.0, 0.0])


def test_second_derivatives_of_roots():
    x = tf.constant([0.0, 1.0, 4.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.sqrt(x)
        slope = inner.gradient(y, x)
    assert outer.gradient(slope, x).numpy().tolist() == [-INF, -0.25, -0.03125]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.rsqrt(x + 1.0) * tf.math.reciprocal(x + 1.0)
    expected = np.diag([-1.5, -1.5 * 2**-2.5, -1.5 * 5**-2.5])
    np.testing.assert_allclose(tape.jacobian(y, x).numpy(), expected, rtol=1e-6)
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0, 2.0])) as forward:
        y = tf.sqrt(x)
    assert forward.jvp(y).numpy().tolist() == [INF, 0.0, 0.5]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bessel_i0", [0.0, -2670.9883, 2670.9883, NAN]),
        ("bessel_i0e", [0.0, 0.0065707, -0.0065707, NAN]),
        ("bessel_i1", [0.5, 2548.6178, 2548.6178, NAN]),
        ("bessel_i1e", [0.5, -0.0055556, -0.0055556, NAN]),
    ],
)
def test_slopes_of_bessel_functions(name, expected):
    function = getattr(tf.math, name)
    found = slopes(function, [0.0, -10.0, 10.0, NAN], 1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    if name == "bessel_i0":  # where it overflows
        assert slopes(function, [-100.0, 100.0], 1.0).tolist() == [-INF, INF]


def test_softsign_is_flat_at_infinity():
    found = slopes(tf.math.softsign, [-INF, -1.0, 0.0, 3.0, INF], 1.0)
    assert found.tolist() == [0.0, 0.25, 1.0, 0.0625, 0.0]


def test_the_exponential_integral_at_zero():
    assert tf.math.special.expint(0.0).numpy() == -INF
    np.testing.assert_allclose(slopes(tf.math.special.expint, [0.0, 1.0], 1.0), [INF, np.e])


# ---------------------------------------------------------------- compiled functions
def test_the_number_of_segments_must_be_known():
    with pytest.raises(tf.errors.InvalidArgumentError, match="unsorted_segment_sum"):
        tf.function(tf.math.segment_sum)(tf.constant([1.0, 2.0]), tf.constant([0, 1]))


def test_compiled_unsorted_segments_leave_out_what_is_out_of_range():
    add = tf.function(lambda x, ids: tf.math.unsorted_segment_sum(x, ids, 2))
    assert add(tf.constant([1.0, 2.0]), tf.constant([0, 5])).numpy().tolist() == [1.0, 0.0]


def test_the_bins_of_a_compiled_bincount_must_be_known():
    with pytest.raises(tf.errors.InvalidArgumentError, match="maxlength=10"):
        tf.function(tf.math.bincount)(tf.constant([1, 2]))
    count = tf.function(lambda x: tf.math.bincount(x, minlength=4, maxlength=4))
    assert count(tf.constant([1, 2, 2])).numpy().tolist() == [0, 1, 2, 0]


def test_a_compiled_confusion_matrix_needs_its_classes():
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_classes=10"):
        tf.function(tf.math.confusion_matrix)(tf.constant([1]), tf.constant([1]))


# ---------------------------------------------------------------- values
def test_nan_is_not_an_extreme():
    nan, inf = float("nan"), float("inf")
    assert tf.argmax([nan, -inf]).numpy() == 0
    assert tf.argmax([[nan, 1.0], [2.0, nan]], axis=1).numpy().tolist() == [1, 0]


def test_nan_equals_nothing():
    values, indices, counts = tf.unique_with_counts([NAN, 1.0, NAN, 1.0])
    np.testing.assert_array_equal(values, [NAN, 1.0, NAN])
    assert (indices.numpy().tolist(), counts.numpy().tolist()) == ([0, 1, 2, 1], [1, 2, 1])


def test_a_norm_that_is_not_finite_is_noticed():
    (clipped,), norm = tf.clip_by_global_norm([[float("inf"), 1.0]], 1.0)
    assert np.isnan(clipped.numpy()).all()
    assert norm.numpy() == float("inf")


def test_top_k_is_a_named_tuple():
    values, indices = found = tf.math.top_k([1.0, 3.0], k=1)
    assert type(found).__name__ == "TopKV2"
    assert (found.values is values, found.indices is indices) == (True, True)


def test_saturated_complex_numbers_have_saturated_parts():
    most = np.finfo(np.float32).max
    found = tf.saturate_cast(tf.constant([1e300 - 1e300j]), tf.complex64)
    assert found.numpy().tolist() == [complex(most, -most)]
    assert tf.saturate_cast(tf.constant(1e300, tf.float64), tf.complex64).numpy() == most


@pytest.mark.parametrize("source", ["float64", "float32", "bfloat16", "int64"])
@pytest.mark.parametrize("target", ["int32", "uint8", "float16", "int64"])
def test_saturated_values_are_the_limits(source, target):
    ends = np.array([-1e30, 1e30]) if source != "int64" else np.array([-(2**63), 2**63 - 1])
    found = tf.saturate_cast(tf.cast(tf.constant(ends), source), target).numpy().tolist()
    if target == "float16":
        wanted = 65280.0 if source == "bfloat16" else 65504.0  # what both types hold
        assert found == [-wanted, wanted]
    else:
        limits = np.iinfo(target)
        assert found[0] == limits.min
        # The greatest float that fits may be less than the greatest integer.
        assert limits.max * 0.99 <= found[1] <= limits.max


@pytest.mark.parametrize("run", [lambda f: f, tf.function])
def test_means_of_integers_do_not_wrap(run):
    mean = run(tf.reduce_mean)
    for dtype, values, expected in (
        (tf.int32, [2**30] * 3, 2**30), (tf.uint8, [200] * 3, 200), (tf.int8, [100, 100], 100),
        (tf.int8, [-128, -127], -127), (tf.int64, [2**40, 2**40 + 2], 2**40 + 1),
    ):  # fmt: skip
        found = mean(tf.constant(values, dtype))
        assert (found.dtype, int(found)) == (dtype, expected)
    image = tf.fill([2, 100, 100], tf.constant(200, tf.uint8))
    assert tf.reduce_mean(image, [1, 2]).numpy().tolist() == [200, 200]


def test_largest_of_equal_zeros_is_the_first():
    found = tf.math.top_k([-0.0, 0.0, -1.0], k=2)
    assert found.indices.numpy().tolist() == [0, 1]
    assert gradient(lambda x: tf.math.top_k(x, k=1).values, [0.0, -0.0]) == [[1.0, 0.0]]


# ---------------------------------------------------------------- sums of short floats
@RUNS
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_short_floats_are_added_up_in_longer_ones(run, dtype):
    ones = tf.ones([5000], dtype)
    expected = 4992.0 if dtype == "bfloat16" else 5000.0
    ids = np.zeros(5000, np.int32)
    assert float(run(tf.reduce_sum)(ones)) == expected
    assert float(run(tf.cumsum)(ones)[-1]) == expected
    assert float(run(lambda x: tf.math.unsorted_segment_sum(x, ids, 1))(ones)[0]) == expected
    assert float(run(lambda x: tf.math.unsorted_segment_mean(x, ids, 1))(ones)[0]) == 1.0
    assert float(run(tf.nn.l2_loss)(ones)) == (2496.0 if dtype == "bfloat16" else 2500.0)
    image = tf.ones([1, 64, 64, 1], dtype)
    assert float(run(lambda x: tf.nn.avg_pool2d(x, 64, 64, "VALID"))(image)[0, 0, 0, 0]) == 1.0
    assert run(tf.reduce_sum)(ones).dtype == dtype


def test_short_floats_of_both_signs():
    values = np.random.default_rng(0).normal(size=3000).astype(np.float32)
    x = tf.cast(values, "bfloat16")
    exact = x.numpy().astype(np.float64)
    for found, expected in (
        (tf.reduce_sum(x), exact.sum()),
        (tf.math.reduce_euclidean_norm(x), (exact**2).sum() ** 0.5),
        (tf.reduce_prod(1 + x / 64), np.prod((1 + x / 64).numpy().astype(np.float64))),
    ):  # fmt: skip
        np.testing.assert_allclose(float(found), expected, rtol=2**-8)


def test_integers_divide_as_floats():
    ends = tf.constant([0, 10], tf.uint8)
    found = tf.linspace(ends[0], ends[1], 5)
    assert (found.dtype, found.numpy().tolist()) == ("float32", [0.0, 2.5, 5.0, 7.5, 10.0])
    assert tf.linspace(0, 10, 5).dtype == "float64"
    for source, target in (("int8", "float32"), ("int32", "float64")):
        x = tf.constant([100, 101], source)
        mean = tf.math.unsorted_segment_mean(x, [0, 0], 1)
        assert (mean.dtype, mean.numpy().tolist()) == (target, [100.5])


# ---------------------------------------------------------------- axes, and rows of any lengths
@pytest.mark.parametrize("name", ["sum", "mean", "max", "logsumexp", "std", "euclidean_norm"])
def test_an_axis_to_reduce_must_be_there_once(name):
    reduce = getattr(tf.math, f"reduce_{name}")
    for axis, words in ((-3, r"dimension \(-3 for input with 2 dim"), ([1, -1], "duplicate dim")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            reduce(tf.ones([2, 3]), axis)


def test_logsumexp_of_rows():
    rows = tf.ragged.constant([[500.0, 500.0], [], [-np.inf]])
    found = tf.reduce_logsumexp(rows, axis=1).numpy()
    np.testing.assert_allclose(found, [500 + np.log(2), -np.inf, -np.inf])


def test_extremes_of_no_short_floats_are_finite():
    for dtype in ("float16", "bfloat16"):
        x = tf.ones([1], dtype)
        assert tf.math.unsorted_segment_max(x, [0], 2)[1] == x.dtype.min
        assert tf.math.unsorted_segment_min(x, [0], 2)[1] == x.dtype.max


def test_too_many_segments_do_not_end_the_process():
    with pytest.raises(tf.errors.InvalidArgumentError, match="do not fit into memory"):
        tf.math.segment_sum(tf.ones([1, 8]), [2**60])


def test_arguments_of_counts_and_axes_are_scalars():
    with pytest.raises(tf.errors.InvalidArgumentError, match="axis must be a scalar"):
        tf.cumsum([1.0, 2.0], [0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="nbins should be a scalar"):
        tf.histogram_fixed_width([1.0], [0.0, 1.0], nbins=[1, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="vector of 2 elements"):
        tf.histogram_fixed_width([1.0], [0.0, 1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="slice index 1 of dimension 0"):
        tf.sort([2.0, 1.0], axis=1)


def test_windows_are_floats_and_frames_of_nothing_have_their_axes():
    with pytest.raises(ValueError, match="floating point type"):
        tf.signal.hann_window(4, dtype=tf.int32)
    assert tf.signal.frame(tf.zeros([3, 0]), 2, 1).shape == (3, 0, 2)


def test_limits_broadcast_but_do_not_widen():
    x = tf.constant([[3.0, 4.0], [6.0, 8.0]])
    found = tf.clip_by_norm(x, [[1.0], [2.0]], axes=[1]).numpy()
    np.testing.assert_allclose(found, [[0.6, 0.8], [1.2, 1.6]], rtol=1e-6)
    for clip in (tf.clip_by_norm, lambda t, limit: tf.clip_by_value(t, -limit, limit)):
        with pytest.raises(ValueError, match="are incompatible"):
            clip(tf.ones([2, 1]), tf.constant([1.0, 2.0]))
    assert np.isnan(tf.math.igamma(0.0, 1.0))
    assert np.isnan(tf.math.igammac(0.0, 1.0))


def test_polynomials_of_integers_have_integer_coefficients():
    assert tf.math.polyval([1, 2], tf.constant([3, 4])).numpy().tolist() == [5, 6]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not integers"):
        tf.math.polyval([1.5, 2.0], tf.constant(3))
    with pytest.raises(tf.errors.InvalidArgumentError, match="string"):
        tf.reduce_sum([1, 2], axis="0")


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_powers_of_integers_are_right_modulo_their_bits(dtype):
    bits = 8 * np.dtype(dtype).itemsize
    bases, exponents = [0, 1, -1, 2, 3, -7], [0, 1, 2, 5, 63, 64, 65, 100, 127]
    found = tf.constant(bases, dtype)[:, None] ** tf.constant(exponents, dtype)
    right = [[pow(x, y, 2**bits) for y in exponents] for x in bases]
    assert (found.numpy().astype(object) % 2**bits).tolist() == right


def test_a_numpy_array_to_clip_is_not_cut_to_the_type_of_its_limits():
    x = np.array([1.5, -2.5])
    assert tf.clip_by_value(x, -1, 1.25).numpy().tolist() == [1.25, -1.0]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="to be a double tensor but is a int32"
    ):
        tf.clip_by_value(x, tf.constant(-1), 1)

"""`tf.nn`: what the table of operations can't say: layouts, dropout, compiled programs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jaxvars import tf


def noise(*shape):
    values = np.random.default_rng(len(shape)).standard_normal(shape, np.float32)
    return tf.constant(values)  # no program is compiled for it


def close(x, y):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, name, f: tf.nn.conv2d(x, noise(2, 2, 2, 3), 2, "SAME", data_format=name),
        lambda x, name, f: tf.nn.conv2d(x, noise(2, 2, 2, 1), f([1, 2, 1, 1]), "VALID", name),
        lambda x, name, f: tf.nn.conv2d_transpose(
            x, noise(2, 2, 3, 2), f([1, 8, 8, 3]), 2, data_format=name
        ),
        lambda x, name, f: tf.nn.depthwise_conv2d(x, noise(2, 2, 2, 2), [1] * 4, "SAME", name),
        lambda x, name, f: tf.nn.max_pool2d(x, 2, 2, "VALID", data_format=name),
        lambda x, name, f: tf.nn.avg_pool2d(x, f([1, 2, 3, 1]), 1, "SAME", data_format=name),
        lambda x, name, f: tf.nn.max_pool_with_argmax(x, f([1, 2, 3, 1]), 1, "SAME", name)[0],
        lambda x, name, f: tf.nn.space_to_depth(x, 2, data_format=name),
        lambda x, name, f: tf.nn.bias_add(x, [1.0, 2.0], data_format=name),
    ],
)
def test_channels_may_come_first(call):
    x = noise(1, 4, 4, 2)
    last = call(x, "NHWC", lambda sizes: sizes)
    first = call(
        tf.transpose(x, [0, 3, 1, 2]), "NCHW", lambda sizes: [sizes[i] for i in (0, 3, 1, 2)]
    )
    close(tf.transpose(first, [0, 2, 3, 1]), last)


def test_several_batch_axes():
    x, filters = noise(2, 3, 4, 4, 1), noise(2, 2, 1, 2)
    found = tf.nn.conv2d(x, filters, 1, "SAME")
    assert found.shape == (2, 3, 4, 4, 2)
    close(found[1], tf.nn.conv2d(x[1], filters, 1, "SAME"))


def test_groups():
    x, filters = noise(1, 3, 3, 4), noise(2, 2, 2, 6)
    found = tf.nn.conv2d(x, filters, 1, "VALID")
    parts = [
        tf.nn.conv2d(x[..., 2 * i : 2 * i + 2], filters[..., 3 * i : 3 * i + 3], 1, "VALID")
        for i in range(2)
    ]
    close(found, tf.concat(parts, -1))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tf.nn.conv2d(noise(1, 3, 3, 1), noise(2, 2, 1, 1), [1, 2, 3], "SAME"), "length"),
        (lambda: tf.nn.conv2d(noise(1, 3, 3, 1), noise(2, 2, 1, 1), [2, 1, 1, 1], "SAME"), "batch"),
        (lambda: tf.nn.conv2d(noise(1, 3, 3, 1), noise(2, 2, 1, 1), 1, "HALF"), "'SAME' or"),
        (lambda: tf.nn.conv2d(noise(3, 3, 1), noise(2, 2, 1, 1), 1, "SAME"), "must have 4 axes"),
        (lambda: tf.nn.conv1d(noise(1, 3, 1), noise(2, 1, 1), 1, "SAME", "NHWC"), "data_format"),
        (lambda: tf.nn.max_pool(noise(1, 3, 3, 1), 2, 1, [[1, 0]] * 4), "Explicit padding"),
        (lambda: tf.nn.avg_pool(noise(1, 3, 3, 1), 2, 1, [[0, 0]] * 4), "max pools"),
        (lambda: tf.nn.conv2d_transpose(noise(1, 2, 2, 1), noise(2, 2, 1, 1), [1], 1), "length"),
        (lambda: tf.nn.space_to_depth(noise(1, 2, 2, 1), 1), "of 1 must be at least minimum 2"),
        (lambda: tf.nn.dropout([1.0], 1.5), r"range \[0, 1\)"),
        (lambda: tf.nn.dropout([1, 2], 0.5), "floating point"),
    ],
)
def test_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_size_that_does_not_belong():
    with pytest.raises(tf.errors.InvalidArgumentError, match="computed"):
        tf.nn.conv2d_transpose(noise(1, 2, 2, 1), noise(2, 2, 1, 1), [1, 9, 9, 1], 1)


def test_labels_that_are_not_classes():
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits
    with pytest.raises(tf.errors.InvalidArgumentError, match="label value of 3"):
        loss(labels=[0, 3], logits=noise(2, 3))
    found = tf.function(lambda labels: loss(labels=labels, logits=noise(2, 3)))(tf.constant([0, 3]))
    assert np.isnan(found.numpy()).tolist() == [False, True]


def test_an_index_out_of_range():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[0,1\] = 4 is not in"):
        tf.nn.embedding_lookup(noise(3, 2), [[0, 4]])
    found = tf.function(lambda ids: tf.nn.embedding_lookup(noise(3, 2), ids))(tf.constant([4]))
    assert found.numpy().tolist() == [[0.0, 0.0]]


def test_a_loss_differentiates_twice():
    x = tf.Variable([[0.5, -1.0, 2.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            loss = tf.nn.softmax_cross_entropy_with_logits([[1.0, 0.0, 0.0]], x)
        gradient = tape.gradient(loss, x)
    p = tf.nn.softmax(x).numpy()[0]
    close(gradient[0], p - [1.0, 0.0, 0.0])
    close(outer.jacobian(gradient, x)[0, :, 0, :], np.diag(p) - np.outer(p, p))


# ---------------------------------------------------------------- pools
def first_of_equals(x, sizes, steps, pads, gaps):
    """Return the largest elements of windows, and how often each element is the first of them."""
    padded = np.pad(x.astype("f8"), pads, constant_values=-np.inf)
    far = [(size - 1) * gap + 1 for size, gap in zip(sizes, gaps, strict=True)]
    starts = [
        range(0, n - m + 1, step) for n, m, step in zip(padded.shape, far, steps, strict=True)
    ]
    made, counts = [], np.zeros(padded.shape)
    for start in itertools.product(*starts):
        where = tuple(slice(i, i + m, gap) for i, m, gap in zip(start, far, gaps, strict=True))
        made.append(padded[where].max())
        counts[where].flat[padded[where].argmax()] += 1
    inside = tuple(slice(low, low + n) for (low, _), n in zip(pads, x.shape, strict=True))
    return np.reshape(made, [len(each) for each in starts]), counts[inside]


@pytest.mark.parametrize(
    ("dtype", "compiled"), [("float32", False), ("float16", True), ("bfloat16", True)]
)
@pytest.mark.parametrize(
    ("shape", "sizes", "steps", "pads", "gaps", "pool"),
    [
        ((2, 4, 6, 2), (2, 2), (2, 2), (0, 0), (1, 1), lambda x: tf.nn.max_pool(x, 2, 2, "VALID")),
        ((2, 7, 5, 3), (3, 3), (2, 2), (1, 1), (1, 1), lambda x: tf.nn.max_pool(x, 3, 2, "SAME")),
        ((1, 9, 8, 1), (7, 5), (1, 2), (2, 1), (1, 1),
         lambda x: tf.nn.max_pool2d(x, [7, 5], [1, 2], [[0, 0], [2, 2], [1, 1], [0, 0]])),
        ((1, 9, 8, 1), (9, 8), (9, 8), (0, 0), (1, 1),
         lambda x: tf.nn.max_pool_with_argmax(x, [9, 8], [9, 8], "VALID")[0]),
        ((2, 5, 5, 2), (3, 3), (1, 1), (1, 1), (1, 1),
         lambda x: tf.nn.max_pool_with_argmax(x, 3, 1, "SAME")[0]),
        ((2, 11, 2), (6,), (3,), (0,), (1,), lambda x: tf.nn.max_pool1d(x, 6, 3, "VALID")),
        ((1, 4, 4, 3, 2), (2, 2, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1),
         lambda x: tf.nn.max_pool3d(x, 2, 1, "VALID")),
    ],
)  # fmt: skip
def test_the_first_of_equals_has_the_derivative(
    shape, sizes, steps, pads, gaps, pool, dtype, compiled
):
    x = np.random.default_rng(1).integers(0, 3, shape)
    everywhere = [(1, *each, 1) for each in (sizes, steps, gaps)]
    pairs = [(0, 0), *((n, n) for n in pads), (0, 0)]
    wanted, counts = first_of_equals(x, *everywhere[:2], pairs, everywhere[2])

    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = pool(x)
        return made, tape.gradient(made, x)

    made, gradient = (tf.function(both) if compiled else both)(tf.constant(x, dtype))
    close(tf.cast(made, tf.float64), wanted)
    close(tf.cast(gradient, tf.float64), counts)


def test_a_pool_differentiates_in_both_modes_and_twice():
    x, direction = noise(2, 5, 5, 1), noise(2, 5, 5, 2)[..., :1]
    v = tf.Variable(x)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            made = tf.reduce_sum(tf.nn.max_pool2d(v, 3, 2, "SAME") ** 3)
        gradient = tape.gradient(made, v)
    second = outer.gradient(gradient, v, direction)
    with tf.autodiff.ForwardAccumulator(v, direction) as forward:
        largest = tf.nn.max_pool2d(v, 3, 2, "SAME")
    moved = forward.jvp(largest)
    close(tf.reduce_sum(3 * largest**2 * moved), tf.reduce_sum(gradient * direction))
    close(tf.reduce_sum(second * direction), tf.reduce_sum(6 * largest * moved**2))
    each = tf.vectorized_map(lambda x: tf.nn.max_pool2d(x[None], 3, 2, "SAME")[0], x)
    close(each, largest)


@pytest.mark.parametrize("size", [4, 6])
def test_nan_is_the_largest(size):
    x = tf.constant([[[3.0], [np.nan], [5.0], [np.nan], [-np.inf], [1.0]]])[:, :size]
    with tf.GradientTape() as tape:
        tape.watch(x)
        made = tf.nn.max_pool1d(x, size, 1, "VALID")
    assert np.isnan(made.numpy()).all()
    assert tape.gradient(made, x).numpy().ravel().tolist() == [0, 1, 0, 0, 0, 0][:size]


def test_pools_of_integers():
    x = tf.constant([[[-5], [-7], [3], [-128]]], tf.int8)
    made = tf.nn.max_pool1d(x, 2, 2, [[0, 0], [1, 1], [0, 0]])
    assert made.numpy().ravel().tolist() == [-5, 3, -128]


def test_the_derivative_of_a_pool_scatters_nothing():
    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = tf.nn.max_pool2d(x, 3, 2, "SAME")
        return tape.gradient(made, x)

    program = gradient.experimental_get_compiler_ir(tf.ones([2, 8, 8, 1]))("hlo")
    assert "stablehlo.select" in program
    assert "scatter" not in program


# ---------------------------------------------------------------- dropout
def test_dropout():
    tf.random.set_seed(1)
    x = tf.Variable(tf.ones([40, 50]))
    with tf.GradientTape() as tape:
        found = tf.nn.dropout(x, 0.25)
    kept = found.numpy() != 0
    assert abs(kept.mean() - 0.75) < 0.05
    close(found.numpy()[kept], np.full(kept.sum(), 1 / 0.75))
    close(tape.gradient(found, x), found)  # the same elements
    tf.random.set_seed(1)
    assert (tf.nn.dropout(x, 0.25).numpy() == found.numpy()).all()
    assert tf.nn.dropout(x, 0).numpy().all()


def test_dropout_of_whole_rows():
    found = tf.nn.dropout(tf.ones([20, 3]), 0.5, noise_shape=[None, 1]).numpy()
    assert {tuple(row) for row in found} == {(0.0, 0.0, 0.0), (2.0, 2.0, 2.0)}


def test_dropout_in_a_function():
    drop = tf.function(lambda x, rate: tf.nn.dropout(x, rate))
    first, second = (drop(tf.ones([50]), tf.constant(0.5)).numpy() for _ in range(2))
    assert (first != second).any()
    seeded = tf.nn.experimental.stateless_dropout(tf.ones([50]), 0.5, [1, 2]).numpy()
    again = tf.nn.experimental.stateless_dropout(tf.ones([50]), 0.5, [1, 2]).numpy()
    assert (seeded == again).all()


def test_labels_of_one_byte():
    labels, logits = tf.constant([1, 255], tf.uint8), tf.zeros([2, 300])
    np.testing.assert_array_equal(tf.reduce_sum(tf.one_hot(labels, 300), 1), [1.0, 1.0])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    np.testing.assert_allclose(losses, np.log([300.0, 300.0]), rtol=1e-6)


def test_units_of_nan_that_are_masked_have_no_gradient():
    x = tf.constant([float("nan"), -1.0, 0.0, 2.0])
    for unit, expected in (
        (tf.nn.elu, [0.0, 0.36787944, 1.0, 1.0]),
        (tf.nn.selu, [0.0, 0.64676863, 1.050701, 1.050701]),
    ):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.where(tf.math.is_nan(x), 0.0, unit(x))
        close(tape.gradient(y, x), expected)


def test_standardized_images_are_float32():
    for dtype in ("float16", "bfloat16", "float64", "uint8"):
        image = tf.cast(tf.reshape(tf.range(12), [2, 2, 3]), dtype)
        assert tf.image.per_image_standardization(image).dtype == tf.float32


@pytest.mark.parametrize(("call", "message"), [
    (lambda: tf.nn.softmax_cross_entropy_with_logits([[0, 1]], [[2, 3]]), "must be floating"),
    (lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([1], [[2, 3]]), "must be floating"),
    (lambda: tf.nn.conv2d_transpose(noise(1, 2, 2, 1), noise(2, 2, 3, 1), [1, 4, 4, 2], 2),
     "the channels of the filters"),
    (lambda: tf.nn.conv2d(noise(1, 4, 4, 1), noise(2, 2, 1, 1), 1, [[-1, 1], [0, 0]]),
     "must not be negative"),
    (lambda: tf.nn.bias_add(noise(1, 2, 3), noise(3), data_format="HWC"), "must be of the form"),
    (lambda: tf.nn.max_pool(noise(3, 4), 2, 2, "SAME"), "of rank 2"),
    (lambda: tf.nn.dropout(noise(3), [0.5, 0.5]), "`rate` must be a scalar"),
    (lambda: tf.nn.dropout(noise(3), None), "`rate` must be a scalar"),
    (lambda: tf.nn.nce_loss(noise(3, 2), noise(3), [[3]], noise(1, 2), 1, 3), "3 is not in"),
])  # fmt: skip
def test_what_would_be_lost_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_batch_of_an_output_shape_may_be_left_out():
    x, filters = noise(2, 2, 2, 1), noise(2, 2, 3, 1)
    found = tf.nn.conv2d_transpose(x, filters, [-1, 4, 4, 3], 2)
    close(found, tf.nn.conv2d_transpose(x, filters, [2, 4, 4, 3], 2))


def test_a_bias_of_channels_first_has_any_layouts_name():
    for name, shape in (("NCHW", (2, 3, 4)), ("NCW", (2, 3, 4, 5)), ("NC", (2, 3))):
        found = tf.nn.bias_add(tf.zeros(shape), [1.0, 2.0, 3.0], data_format=name)
        assert found.numpy().reshape(2, 3, -1)[:, :, 0].tolist() == [[1, 2, 3]] * 2

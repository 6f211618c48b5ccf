"""Array operations: what the table can't say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from jaxvars import tf

Refused = tf.errors.InvalidArgumentError


def compiled(func, *args):
    return tf.function(func, autograph=False)(*args)


# ---------------------------------------------------------------- what has no row
def test_meshgrid():
    x, y = tf.meshgrid([1, 2], [3, 4, 5])
    assert x.numpy().tolist() == [[1, 2]] * 3
    assert y.numpy().tolist() == [[3, 3], [4, 4], [5, 5]]
    x, y = tf.meshgrid([1.0, 2.0], [3.0], indexing="ij", name="grid")
    assert x.numpy().tolist() == [[1.0], [2.0]]
    assert y.dtype == tf.float32
    assert tf.meshgrid() == []
    with pytest.raises(ValueError, match="'xy' or 'ij'"):
        tf.meshgrid([1], indexing="yx")
    with pytest.raises(TypeError, match="'sparse' is an invalid keyword"):
        tf.meshgrid([1], sparse=True)


def test_shapes_that_are_broadcast():
    found = tf.broadcast_static_shape(tf.TensorShape([2, 1, None]), tf.TensorShape([3, 4]))
    assert found.as_list() == [2, 3, 4]
    assert tf.broadcast_static_shape(tf.TensorShape(None), tf.TensorShape([3])).rank is None
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        tf.broadcast_static_shape(tf.TensorShape([2]), tf.TensorShape([3]))
    made = tf.broadcast_dynamic_shape(tf.constant([2, 1]), tf.constant([3]))
    assert made.dtype == tf.int32
    assert made.numpy().tolist() == [2, 3]
    with pytest.raises(Refused, match="Incompatible shapes"):
        tf.broadcast_dynamic_shape([2], [3])


def test_bitcast():
    assert int(tf.bitcast(tf.constant(1.0), tf.int32)) == 1065353216
    assert tf.bitcast([1, 256], tf.uint8).numpy().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]
    assert tf.bitcast(tf.constant([[1, 2]], tf.uint16), tf.uint32).numpy().tolist() == [131073]
    with pytest.raises(Refused, match="Bitcast"):
        tf.bitcast(tf.constant([1, 2, 3], tf.uint8), tf.uint16)


def test_static_value():
    assert tf.get_static_value(tf.constant([1, 2])).tolist() == [1, 2]
    seen = []

    def look(x):
        seen.extend([tf.get_static_value(x), tf.get_static_value(tf.constant(3))])
        return x

    compiled(look, tf.constant(1))
    assert seen == [None, 3]


# ---------------------------------------------------------------- in a function
@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda x: tf.tile(x, x), "multiples must be known while the function is traced"),
        (lambda x: tf.one_hot(x, x[0]), "depth must be known"),
        (lambda x: tf.boolean_mask(x, x > 1), r"mask \(use tf.where\(mask, x, 0\), which keeps"),
        (lambda x: tf.where(x > 1), r"condition \(give x and y, too"),
        (lambda x: tf.unique(x), "x must be known"),
        (lambda x: tf.sequence_mask(x), "maxlen must be known"),
    ],
)
def test_what_must_be_known_in_a_function(program, message):
    with pytest.raises(Refused, match=message):
        compiled(program, tf.constant([1, 2]))


def test_begin_of_a_slice_may_depend_on_an_argument():
    x = tf.range(6)
    made = compiled(lambda x, i: tf.slice(x, [i], [2]), x, tf.constant(3))
    assert made.numpy().tolist() == [3, 4]
    with pytest.raises(Refused, match="size must be known"):
        compiled(lambda x, i: tf.slice(x, [i], [-1]), x, tf.constant(3))


def test_indices_out_of_range_in_a_function():
    x, bad = tf.constant([1, 2, 3]), tf.constant([5, -1])
    assert compiled(tf.gather, x, bad).numpy().tolist() == [0, 0]
    assert compiled(tf.gather_nd, x, bad[:, None]).numpy().tolist() == [0, 0]
    truths = compiled(tf.gather_nd, tf.constant([True]), bad[:, None])
    assert (truths.dtype, truths.numpy().tolist()) == (tf.bool, [False, False])
    added = compiled(tf.tensor_scatter_nd_add, x, bad[:, None], tf.constant([10, 20]))
    assert added.numpy().tolist() == [1, 2, 3]
    with pytest.raises(Refused, match=r"indices\[0\] = 5 is not in \[0, 3\)"):
        compiled(lambda x: tf.gather(x, [5, -1]), x)  # a constant can be seen


@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "compiled"])
@pytest.mark.parametrize(("write", "written"), [
    (lambda bad, **how: tf.gather_nd([1, 2], bad, **how), [0, 1]),
    (lambda bad, **how: tf.gather_nd(["a", "b"], bad, **how), [b"", b"a"]),
    (lambda bad, **how: tf.scatter_nd(bad, [1, 2], [3], **how), [2, 0, 0]),
    (lambda bad, **how: tf.scatter_nd(bad, ["a", "b"], [3], **how), [b"b", b"", b""]),
    (lambda bad, **how: tf.tensor_scatter_nd_add([1, 2], bad, [5, 6], **how), [7, 2]),
    (lambda bad, **how: tf.tensor_scatter_nd_sub([1, 2], bad, [5, 6], **how), [-5, 2]),
    (lambda bad, **how: tf.tensor_scatter_nd_max([1, 2], bad, [5, 6], **how), [6, 2]),
    (lambda bad, **how: tf.tensor_scatter_nd_min([1, 2], bad, [0, 0], **how), [0, 2]),
])  # fmt: skip
def test_the_policy_of_bad_indices(write, written, run):
    for bad in ([[7], [0]], [[-1], [0]]):
        found = run(lambda bad=bad: write(bad, bad_indices_policy="IGNORE"))()
        assert found.numpy().tolist() == written
        for policy in ("", "DEFAULT", "ERROR", None):
            with pytest.raises(Refused, match=r"indices\[0\] = \[(7|-1)\] does not index into"):
                run(lambda bad=bad, policy=policy: write(bad, bad_indices_policy=policy))()
    with pytest.raises(Refused, match="'ERROR', 'IGNORE' or 'DEFAULT', which is 'ERROR', got 'x'"):
        run(lambda: write([[0], [0]], bad_indices_policy="x"))()


# ---------------------------------------------------------------- messages
def test_strings_keep_zero_characters_at_their_end():
    assert tf.fill([2], "a\0").numpy().tolist() == [b"a\0", b"a\0"]
    sparse = tf.sparse.SparseTensor([[1]], ["a\0"], [2])
    assert tf.sparse.to_dense(sparse, "b\0").numpy().tolist() == [b"b\0", b"a\0"]


def test_what_must_be_booleans_is_made_of_numpys_numbers_alone():  # as TensorFlow's
    run, given = tf.function(lambda x: tf.where(np.array([2, 0]), x, 0)), np.array([1.0, 0.0])
    assert run([1, 2]).numpy().tolist() == tf.where(given, [1, 2], 0).numpy().tolist() == [1, 0]
    assert tf.compat.v1.where(given, [1, 2], [3, 4]).numpy().tolist() == [1, 4]
    assert (tf.logical_and(True, given).numpy().tolist(), bool(tf.reduce_any(given))) == (
        [True, False], True,
    )  # fmt: skip
    same = tf.function(lambda x: tf.reshape(x, tf.where(tf.shape(x) == [1, 1], 1, tf.shape(x))))
    assert same(tf.ones([1, 2])).shape == (1, 2)
    for compute, number in (
        (lambda x: tf.where(x, 1, 2), 0), (tf.logical_not, 0), (tf.reduce_all, 0),
        (lambda x: tf.logical_or([True], x), 1),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"Cannot convert \[1\] to EagerTensor of dtype bool"):
            compute([1])
        words = f"as input #{number}.zero-based. was expected to be a bool tensor but is a int32"
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            compute(tf.constant([1]))
        with pytest.raises(TypeError, match=f"#{number} .*type int32 that does not match expected"):
            tf.function(compute)(tf.constant([1]))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: tf.where(True), "WhereOp : Unhandled input dimensions: 0"),
    (lambda: tf.boolean_mask([1, 2], ["a", ""]), "'T' of string is not in the list of allowed"),
    (lambda: tf.gather([1, 2, 3], [[0, 3]]), r"indices\[0,1\] = 3 is not in \[0, 3\)"),
    (lambda: tf.gather_nd([[1, 2]], [[0, 2]]),
     r"indices\[0\] = \[0, 2\] does not index into param shape \[1,2\]"),
    (lambda: tf.squeeze(tf.ones([2, 1]), 0), r"Can not squeeze dim\[0\], expected a dimension"),
    (lambda: tf.split(tf.ones(4), 3), "Number of ways to split should evenly divide"),
    (lambda: tf.concat([tf.ones(2), tf.ones([1, 2])], 0), "ConcatOp : Dimension mismatch"),
    (lambda: tf.stack([tf.ones(2), tf.ones(3)]), "Shapes of all inputs must match"),
    (lambda: tf.expand_dims(1, 2), r"axis = 2 not in range \[-1, 1\)"),
    (lambda: tf.pad(tf.ones(2), [[1, 1]], "edge"), "'CONSTANT', 'REFLECT' or 'SYMMETRIC'"),
    (lambda: tf.where([True], [1]), "both be non-None or both be None"),
    (lambda: tf.stack([tf.ones(2)], 4), r"Argument `axis` = 4 not in range \[-2, 2\)"),
    (lambda: tf.gather([1], 0, axis=-2), "Shape must be at least rank 2 but is rank 1"),
    (lambda: tf.reverse_sequence([[1, 2]], [2], seq_axis=0), "batch_dim == seq_dim == 0"),
    (lambda: tf.reverse_sequence([[1, 2]], [2], seq_axis=2), "seq_dim must be < input rank"),
    (lambda: tf.reverse_sequence([[1, 2]], [[2]], seq_axis=1), "seq_lengths must be 1-dim"),
    (lambda: tf.reverse_sequence([[1, 2]], [-1], seq_axis=1), r"must be in \[0, 2\]"),
    (lambda: tf.batch_to_space(tf.ones([4, 1]), [4], [[3, 2]]), "at most"),
    (lambda: tf.batch_to_space(tf.ones([4, 1]), [4], [[-1, 0]]), "non-negative"),
    (lambda: tf.gather_nd([[1]], [[0]], batch_dims=-1), "batch_dims = -1 must be in"),
    (lambda: tf.gather_nd([[1]], [[0]], batch_dims=2), "batch_dims = 2 must be in"),
    (lambda: tf.sequence_mask([1], -1), "maxlen must be non-negative"),
    (lambda: tf.pad([1], [[1.0, 0]]), "paddings must be integers"),
    (lambda: tf.gather([1], 0.5), "of float is not in the list of allowed values: int16, int32"),
    (lambda: tf.split(tf.ones(4), [-2, 6]), "Split size at index 0 must be >= 0. Got: -2"),
    (lambda: tf.split(tf.ones(4), [2, 2], num=3), "num = 3 is not the number of size_splits: 2"),
    (lambda: tf.dynamic_stitch([[-3], [8]], [[1], [2]]), r"indices\[0\] = -3 is out of range"),
    (lambda: tf.fill([[2, 2]], 0), "must be a vector of sizes"),
    (lambda: tf.zeros([2**40, 2**40]), "too many elements"),  # XLA would end the process
    (lambda: tf.broadcast_to(1, [2**62]), "too many elements"),
    (lambda: tf.eye(2**33), "too many elements"),
    (lambda: tf.range(2**61), "too many elements"),
    (lambda: tf.linspace(0.0, 1.0, 2**61), "too many elements"),
    (lambda: tf.tile([1.0, 2.0], [2**61]), r"Shape \[4611686018427387904\] has too many"),
    (lambda: tf.pad([1.0], [[0, 2**61]]), "too many elements"),
    (lambda: tf.repeat([1.0, 2.0], 2**60), "too many elements"),
    (lambda: tf.repeat([1.0, 2.0], [0, 2**61]), "too many elements"),
    (lambda: tf.scatter_nd([[0]], [1.0], [2**61]), "too many elements"),
    (lambda: tf.sequence_mask([1], 2**61), "too many elements"),
    (lambda: tf.random.normal([2**31, 2**31]), "too many elements"),
    (lambda: tf.random.uniform(tf.constant([2**61], tf.int64)), "too many elements"),
    (lambda: tf.zeros_initializer()([2**61]), "too many elements"),
    (lambda: tf.sparse.to_dense(tf.sparse.SparseTensor([[0]], [1.0], [2**61])), "too many elem"),
    (lambda: tf.image.resize(tf.ones([1, 1, 1]), [2**30, 2**30]), "too many elements"),
    (lambda: tf.image.resize_with_pad(tf.ones([1, 1, 1]), 2**30, 2**30), "too many elements"),
    (lambda: tf.image.resize_with_crop_or_pad(tf.ones([1, 1, 1]), 2**30, 2**30), "too many elem"),
    (lambda: tf.image.pad_to_bounding_box(tf.ones([1, 1, 1]), 0, 0, 2**30, 2**30), "too many el"),
    (lambda: tf.image.crop_and_resize(tf.ones([1, 1, 1, 1]), tf.ones([1, 4]), [0], [2**30] * 2),
     "too many elements"),
    (lambda: tf.broadcast_to([1, 2], [3]), r"Unable to broadcast tensor of shape \[2\] to \[3\]"),
    (lambda: tf.pad([1], [[-1, 0]]), "Paddings must be non-negative"),
    (lambda: tf.pad([1], [0, 1]), "must be a matrix with 2 columns"),
    (lambda: tf.constant(1)[:], "Attempting to slice scalar input"),
    (lambda: tf.scatter_nd([[0]], [1], [0]), "Indices and updates specified for empty output"),
    (lambda: tf.scatter_nd([[0], [1]], [1], [3]), r"\[0,1\) of indices\[shape=\[2, 1\]\]"),
    (lambda: tf.scatter_nd([[0]], [[1]], [3]), r"Dimensions \[1,1\) of input\[shape=\[3\]\]"),
])  # fmt: skip
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_lengths_are_whole_numbers():
    assert tf.sequence_mask([1.5, 2.0], 3).numpy().tolist() == [[1, 0, 0], [1, 1, 0]]
    assert tf.sequence_mask([2.5, 1.0]).numpy().tolist() == [[1, 1, 1], [1, 0, 0]]


def test_values_of_one_hot_are_of_one_type():
    one = tf.constant(1.0)
    for values in ({"off_value": np.float64(0)}, {"dtype": tf.int32}):
        with pytest.raises(TypeError, match="dtype"):
            tf.one_hot([0], 2, one, **values)
    with pytest.raises(TypeError, match="give off_value, too"):
        tf.one_hot([0], 2, "yes")


def test_a_limit_of_a_slice_may_be_an_unknown_dimension():
    unknown = tf.compat.v1.Dimension(None)
    assert tf.constant([1, 2])[unknown:unknown].numpy().tolist() == [1, 2]


def test_strings_are_moved_as_numbers_are():
    x = tf.constant([["a", "b"], ["c", "d"]])
    assert tf.transpose(x).numpy().tolist() == [[b"a", b"c"], [b"b", b"d"]]
    assert tf.gather(x, [1]).numpy().tolist() == [[b"c", b"d"]]
    assert tf.gather_nd(x, [[0, 1]]).numpy().tolist() == [b"b"]
    assert tf.gather_nd(x, [[1], [0]], batch_dims=1).numpy().tolist() == [b"b", b"c"]
    assert tf.gather(x, [[1], [0]], batch_dims=1).numpy().tolist() == [[b"b"], [b"c"]]
    assert compiled(lambda n: (n, tf.gather(x, [1, 0], batch_dims=1)), 1)[1].shape == (2,)
    assert compiled(lambda n: (n, tf.scatter_nd([[1]], ["a"], [2])), 1)[1].numpy()[1] == b"a"
    assert tf.one_hot([1], 2, "y", "n").numpy().tolist() == [[b"n", b"y"]]
    assert tf.boolean_mask(x, [False, True]).numpy().tolist() == [[b"c", b"d"]]
    assert tf.where([True, False], x, "").numpy().tolist() == [[b"a", b""], [b"c", b""]]
    assert [y.numpy().tolist() for y in tf.unstack(x)] == [[b"a", b"b"], [b"c", b"d"]]
    assert tf.pad(x[0], [[1, 0]], constant_values="z").numpy().tolist() == [b"z", b"a", b"b"]
    assert tf.reshape(tf.tile(x, [1, 1]), [-1]).shape == (4,)


def test_sort_is_stable_and_keeps_types():
    assert tf.argsort([1, 1, 0, 1]).numpy().tolist() == [2, 0, 1, 3]
    assert tf.argsort([1, 1, 0, 1], direction="DESCENDING").numpy().tolist() == [0, 1, 3, 2]
    assert tf.argsort([1.0]).dtype == tf.int32
    with pytest.raises(ValueError, match="'ASCENDING' or 'DESCENDING'"):
        tf.sort([1], direction="UP")


# ---------------------------------------------------------------- images by chance
def test_random_flips_are_of_each_image_for_itself():
    images = tf.reshape(tf.range(128), [64, 1, 2, 1])
    tf.random.set_seed(1)
    made = tf.image.random_flip_left_right(images).numpy()[:, 0, :, 0]
    is_turned = made[:, 0] > made[:, 1]
    assert 15 < is_turned.sum() < 50
    np.testing.assert_array_equal(np.sort(made, 1), np.arange(128).reshape(64, 2))
    again = tf.image.stateless_random_flip_up_down(images, (1, 2))
    assert again.numpy().tolist() == images.numpy().tolist()  # of one row


def test_random_crop_is_a_part():
    tf.random.set_seed(1)
    image = tf.reshape(tf.range(30), [6, 5, 1])
    found = {tuple(tf.image.random_crop(image, [2, 3, 1]).numpy().ravel()) for _ in range(20)}
    parts = {tuple(image.numpy()[i : i + 2, j : j + 3].ravel()) for i in range(5) for j in range(3)}
    assert found <= parts
    assert len(found) > 3


def test_random_brightness_adds_one_number_of_its_range():
    tf.random.set_seed(1)
    added = [tf.image.random_brightness([[[0.5]]], 0.2).numpy().item() - 0.5 for _ in range(20)]
    assert all(-0.2 <= x <= 0.2 for x in added)
    assert min(added) < -0.02 and max(added) > 0.02  # noqa: PT018
    with pytest.raises(ValueError, match="max_delta must be non-negative"):
        tf.image.random_brightness([[[0.5]]], -0.2)


def test_resize_method():
    assert tf.image.ResizeMethod.NEAREST_NEIGHBOR == "nearest"
    with pytest.raises(ValueError, match="largest"):
        tf.image.resize(tf.ones([2, 2, 1]), [1, 1], "largest")


def test_resizing_to_the_same_size_blurs_where_the_method_does():
    x = tf.reshape(tf.constant([0.0, 1.0, 0.0, 0.0, 0.0, 4.0]), [2, 3, 1])
    found = tf.image.resize(x, [2, 3], "gaussian").numpy().ravel()
    np.testing.assert_allclose(found[:3], [0.10499, 0.74396, 0.52497], atol=1e-5)
    assert (tf.image.resize(x, [2, 3], "lanczos3").numpy() == x.numpy()).all()


def test_axes_that_are_not_there_are_named():
    x = tf.ones((2, 3))
    for wrong, words in [
        (lambda: tf.reverse(x, [2]), "'axis'[0] = 2 is out of valid range [0, 1]"),
        (lambda: tf.reverse(x, [0, -2]), "axis 0 specified more than once"),
        (lambda: tf.expand_dims(x, [0, 1]), "must be a tensor with a single value"),
        (lambda: tf.strided_slice(tf.constant(3), [0], [1]), "Attempting to slice scalar input"),
        (lambda: tf.sequence_mask([1], [1, 2]), "`maxlen` must be scalar"),
        (lambda: tf.reshape([[1]], [1] * 254), "too many dimensions"),
        (lambda: tf.reverse_sequence(x, [7, 1], 1), "must be in [0, 3]"),
    ]:
        with pytest.raises(Refused, match=re.escape(words)):
            wrong()


def test_scalars_and_nothing():
    assert tf.repeat(3, 2, axis=0).numpy().tolist() == [3, 3]
    for rows, columns in ((0, 3), (3, 0)):
        found = tf.searchsorted(tf.ones((2, rows)), tf.ones((2, columns)))
        assert found.numpy().tolist() == np.zeros((2, columns)).tolist()
        assert found.dtype == tf.int32


# ---------------------------------------------------------------- an index twice
@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "compiled"])
def test_each_update_of_one_place_has_the_gradient(run):
    replace = run(lambda x, new: tf.tensor_scatter_nd_update(x, [[1], [1], [2]], new))
    x, new = tf.constant([1.0, 2.0, 3.0, 4.0]), tf.constant([5.0, 6.0, 7.0])
    with tf.GradientTape() as outer:
        outer.watch(new)
        with tf.GradientTape() as tape:
            tape.watch([x, new])
            y = tf.reduce_sum(replace(x, new * new) * [1.0, 10.0, 100.0, 1000.0])
        by_x, by_new = tape.gradient(y, [x, new])
    assert replace(x, new).numpy().tolist() == [1.0, 6.0, 7.0, 4.0]
    assert by_x.numpy().tolist() == [1.0, 0.0, 0.0, 1000.0]
    assert by_new.numpy().tolist() == [100.0, 120.0, 1400.0]
    assert outer.gradient(by_new, new).numpy().tolist() == [20.0, 20.0, 200.0]
    rows = tf.vectorized_map(lambda row: replace(row, new), tf.stack([x, x + 1.0]))
    assert rows.numpy().tolist() == [[1.0, 6.0, 7.0, 4.0], [2.0, 6.0, 7.0, 5.0]]
    whole = tf.tensor_scatter_nd_update(tf.constant([1, 2]), [[0]], [3])
    assert whole.numpy().tolist() == [3, 2]


@pytest.mark.parametrize(
    "pick",
    [
        lambda x: tf.gather(x, 1), lambda x: tf.gather_nd(x, [1]), lambda x: tf.unstack(x)[1],
        lambda x: tf.strided_slice(x, [1], [2], shrink_axis_mask=1),
    ],
)  # fmt: skip
def test_one_string_is_a_tensor(pick):
    words = tf.constant(["a", "b\0"])
    for picked in (pick(words), tf.function(pick)(words)):
        assert (picked.dtype, picked.shape, picked.numpy()) == (tf.string, (), b"b\0")


def test_strings_that_are_arguments_are_put_into_known_ones():
    words = tf.constant(["a", "b"])
    put = tf.function(lambda i, x: tf.tensor_scatter_nd_update(words, [[i]], [x]))
    assert put(tf.constant(1), tf.constant("c")).numpy().tolist() == [b"a", b"c"]
    put = tf.function(lambda i: tf.tensor_scatter_nd_update(words, [[i]], ["d"]))
    assert put(tf.constant(0)).numpy().tolist() == [b"d", b"b"]

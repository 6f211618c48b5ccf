"""`tf.cond`, `tf.while_loop`, `tf.map_fn` and the like, eagerly and compiled; `tf.TensorArray`.

What is expected was seen in TensorFlow 2.21.
"""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf
from jaxvars.errors import ControlFlowError

MODES = [lambda f: f, tf.function]


def numbers(x):
    return tf.nest.map_structure(lambda leaf: np.asarray(leaf.numpy()).tolist(), x)


# ---------------------------------------------------------------- branches
@pytest.mark.parametrize("mode", MODES)
def test_cond(mode):
    v = tf.Variable(1.0)
    f = mode(lambda x: tf.cond(x > 0, lambda: v.assign_add(x), lambda: v * 0.0))
    assert [numbers(f(tf.constant(x)) * 1.0) for x in (2.0, -2.0)] == [3.0, 0.0]
    assert numbers(v.value()) == 3.0


def test_cond_refuses():
    with pytest.raises(TypeError, match="'true_fn' argument required"):
        tf.cond(True, None, lambda: 1)
    with pytest.raises(ValueError, match="truth value"):
        tf.cond(tf.constant([True, False]), lambda: 1, lambda: 2)
    f = tf.function(lambda p: tf.cond(p, lambda: 1, lambda: 2.0))
    words = "do not agree.* must have the same number, type, and overall structure of return values"
    with pytest.raises(TypeError, match=words):
        f(tf.constant(True))


@pytest.mark.parametrize("mode", MODES)
def test_case_and_switch_case(mode):
    def f(a, b):
        pairs = [(a, lambda: tf.constant(1)), (b, lambda: tf.constant(2))]
        return tf.case(pairs, default=lambda: tf.constant(3)), tf.case(pairs)

    case = mode(f)
    assert numbers(case(tf.constant(False), tf.constant(True))) == (2, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions evaluated"):
        case(tf.constant(False), tf.constant(False))
    branches = {0: lambda: tf.constant(10), 1: lambda: tf.constant(11)}
    switch = mode(
        lambda i: (
            tf.switch_case(i, branches, default=lambda: tf.constant(-1)),
            tf.switch_case(i, list(branches.values())),
        )
    )
    found = [numbers(switch(tf.constant(i))) for i in (0, 1, 5, -1)]
    assert found == [(10, 10), (11, 11), (-1, 11), (-1, 11)]


def test_branches_that_are_wrong():
    with pytest.raises(TypeError, match="'branch_index' must be an integer"):
        tf.switch_case(tf.constant(1.0), [lambda: 1])
    with pytest.raises(ValueError, match=r"contiguous range of \[0 to 2\) but found \{0,2\}"):
        tf.switch_case(tf.constant(1), {0: lambda: 1, 2: lambda: 2})
    with pytest.raises(ValueError, match="at least one item in 'branch_fns'"):
        tf.switch_case(tf.constant(1), [])
    with pytest.raises(TypeError, match="must be a 2-tuple"):
        tf.case([1])


# ---------------------------------------------------------------- loops
@pytest.mark.parametrize("mode", MODES)
def test_while_loop(mode):
    f = mode(
        lambda n: tf.while_loop(
            lambda i, d: i < n, lambda i, d: [i + 1, {"a": d["a"] * 2}], [0, {"a": 1.0}]
        )
    )
    assert numbers(f(tf.constant(4))) == [4, {"a": 16.0}]
    g = mode(lambda m: tf.while_loop(lambda i: True, lambda i: i + 1, (0,), maximum_iterations=m))
    assert numbers(g(3)) == numbers(g(tf.constant(3))) == (3,)


@pytest.mark.parametrize("start", [[], ()])
def test_while_loop_of_variables_alone(start):
    def body():
        v.assign_add(1)
        return start

    v = tf.Variable(0)
    f = tf.function(lambda most: tf.while_loop(lambda: v < 3, body, start, maximum_iterations=most))
    assert (f(2), v.numpy()) == (start, 2)
    assert (f(None), v.numpy()) == (start, 3)
    v.assign(0)
    assert (f(tf.constant(2)), v.numpy()) == (start, 2)
    with pytest.raises(ValueError, match="'loop_vars' must be provided"):
        tf.while_loop(lambda: v < 3, body, start)
    with pytest.raises(TypeError, match="The body returned None for 0 loop variables"):
        tf.function(lambda: tf.while_loop(lambda: v < 3, lambda: None, []))()


def test_while_loop_has_gradients_with_a_bound():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            (y,) = tf.while_loop(lambda y: y < 50.0, lambda y: y * x, [x], maximum_iterations=9)
        return tape.gradient(y, x)

    assert numbers(f(tf.constant(10.0))) == 20.0


def test_while_loop_refuses():
    with pytest.raises(TypeError, match="'cond' must be callable"):
        tf.while_loop(1, lambda i: i, [0])
    with pytest.raises(ValueError, match="'loop_vars' must be provided"):
        tf.while_loop(lambda: False, lambda: (), [])
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        tf.while_loop(lambda i, j: i < 5, lambda i, j: (i + 1,), (0, 1))
    grows = lambda i, x: (i + 1, tf.concat([x, x], 0))  # noqa: E731
    start = (tf.constant(0), tf.ones([1]))
    assert tf.while_loop(lambda i, x: i < 3, grows, start)[1].shape == (8,)
    f = tf.function(lambda n: tf.while_loop(lambda i, x: i < n, grows, start))
    with pytest.raises(ValueError, match=r"has shape \(1,\) before the loop"):
        f(tf.constant(3))


@pytest.mark.parametrize("mode", MODES)
def test_functions_over_rows(mode):
    x = tf.constant([1.0, -2.0, 3.0])

    def f(x):
        return (
            tf.map_fn(lambda a: tf.cond(a > 0, lambda: a, lambda: -a), x),
            tf.map_fn(
                lambda p: tf.cast(p[0] + p[1], tf.int32), (x, x), fn_output_signature=tf.int32
            ),
            tf.scan(lambda t, a: t + a, x),
            tf.scan(lambda t, a: (t[0] + a, t[1] - a), x, (0.0, 10.0), reverse=True),
            tf.foldl(lambda t, a: t - a, x),
            tf.foldr(lambda t, a: t - a, x, 10.0),
            tf.vectorized_map(lambda p: p[0] * p[1], (x, tf.constant([2.0]))),
        )

    assert numbers(mode(f)(x)) == (
        [1.0, 2.0, 3.0], [2, -4, 6], [1.0, -1.0, 2.0], ([2.0, 1.0, 3.0], [8.0, 9.0, 7.0]),
        0.0, 8.0, [2.0, -4.0, 6.0],
    )  # fmt: skip


def test_functions_over_rows_refuse():
    x = tf.constant([1.0, 2.0])
    assert tf.map_fn(lambda a: a * 2, tf.zeros([0, 2])).shape[0] == 0
    with pytest.raises(ValueError, match=r"must be 1\+ dimensional"):
        tf.map_fn(lambda a: a, 1.0)
    with pytest.raises(ValueError, match="does not contain any Tensors"):
        tf.map_fn(lambda a: a, [])
    with pytest.raises(ValueError, match="Dimensions 2 and 3 are not compatible"):
        tf.map_fn(lambda a: a[0], (x, tf.zeros([3])))
    with pytest.raises(tf.errors.InvalidArgumentError, match="dtype is float32 but Op is trying"):
        tf.map_fn(lambda a: tf.cast(a, tf.int32), x)
    with pytest.raises(ValueError, match="same nested structure"):
        tf.map_fn(lambda a: (a, a), x)
    with pytest.raises(tf.errors.OutOfRangeError):
        tf.scan(lambda a, b: a + b, tf.zeros([0]))


def test_order():
    called = []
    with tf.control_dependencies([lambda: called.append(1), tf.constant(1)]):
        assert tf.no_op() is None
    assert called == [1]
    assert tf.group(tf.constant(1), name="g") is None
    with pytest.raises(ValueError, match="Unknown keyword"):
        tf.group(other=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"data: 1, 2, 3, \.\.\.\nb'm'"):
        tf.Assert(tf.constant(False), [tf.constant([1, 2, 3, 4]), "m"])


# ---------------------------------------------------------------- TensorArray
def test_tensor_array():
    ta = tf.TensorArray(tf.float32, size=2)
    assert ta.write(0, 1.0).write(1, 2.0) is ta
    assert numbers((ta.stack(), ta.size(), ta.read(0))) == ([1.0, 2.0], 2, 1.0)
    assert (ta.element_shape, ta.dtype, ta.dynamic_size) == (tf.TensorShape([]), tf.float32, False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not read index 0 twice"):
        ta.read(0)
    grown = tf.TensorArray(tf.int32, size=0, dynamic_size=True).unstack([1, 2, 3])
    assert numbers((grown.gather([0, 2]), grown.stack())) == ([1, 3], [1, 2, 3])
    other = tf.TensorArray(tf.int32, size=3).scatter([0, 2], [[5], [6]])
    assert numbers((other.stack(), other.concat())) == ([[5], [0], [6]], [5, 0, 6])
    assert numbers(tf.TensorArray(tf.int32, size=2).split([1, 2], [1, 1]).read(1)) == [2]
    assert tf.TensorArray(tf.int32, size=0).stack().shape == (0,)


@pytest.mark.parametrize(("ask", "error", "why"), [
    (lambda ta: ta.read(9), tf.errors.OutOfRangeError, "read from index 9 but array size is: 2"),
    (lambda ta: ta.write(9, 1), tf.errors.OutOfRangeError, "not resizeable and size is: 2"),
    (lambda ta: ta.write(-1, 1), tf.errors.OutOfRangeError, "negative indices"),
    (lambda ta: ta.write(0, tf.constant(1.0)), tf.errors.InvalidArgumentError, "write dtype"),
    (lambda ta: ta.write(0, 1).write(1, [1, 2]), ValueError, "Incompatible shape"),
    (lambda ta: ta.unstack([1, 2, 3]), ValueError, "Cannot unstack 3 tensors"),
    (lambda _: tf.TensorArray(tf.int32), ValueError, "Size must be declared"),
])  # fmt: skip
def test_tensor_array_refuses(ask, error, why):
    with pytest.raises(error, match=why):
        ask(tf.TensorArray(tf.int32, size=2))


def test_tensor_arrays_in_functions():
    @tf.function
    def sums(xs, n):
        ta = tf.TensorArray(tf.float32, size=3)
        total = tf.constant(0.0)
        for i in tf.range(n):
            total = total + xs[i]
            ta = ta.write(i, total)
        return ta, ta.stack()

    ta, stacked = sums(tf.constant([1.0, 2.0, 3.0]), tf.constant(2))
    assert numbers(stacked) == numbers(ta.stack()) == [1.0, 3.0, 0.0]
    assert numbers(tf.function(lambda ta: ta.stack())(ta)) == [1.0, 3.0, 0.0]


# ---------------------------------------------------------------- strings, and odd shapes
def test_map_fn_of_texts():
    texts = tf.constant(["a", "bc"])
    assert numbers(tf.map_fn(tf.strings.length, texts, fn_output_signature=tf.int32)) == [1, 2]
    joined = tf.map_fn(
        lambda x: (x, tf.strings.join([x, "!"])), texts, dtype=(tf.string, tf.string)
    )
    assert numbers(joined) == ([b"a", b"bc"], [b"a!", b"bc!"])
    spec = tf.TensorSpec([2], tf.string)
    none = tf.map_fn(
        lambda x: tf.stack([x, x]), tf.constant([], tf.string), fn_output_signature=spec
    )
    assert none.shape == (0, 2)
    assert none.dtype == tf.string


def test_map_fn_wants_the_structure_that_was_said():
    with pytest.raises(TypeError, match="same nested structure"):
        tf.map_fn(lambda x: (x, x), tf.constant([1]), dtype=[tf.int32, tf.int32])


@pytest.mark.parametrize("mode", MODES)
def test_a_tensor_array_of_different_shapes(mode):
    @mode
    def run():
        ta = tf.TensorArray(tf.float32, size=2, dynamic_size=True, infer_shape=False)
        ta = ta.write(0, [[1.0, 2.0], [3.0, 4.0]])
        ta = ta.write(2, [[5.0, 6.0]]).write(1, tf.zeros((0, 2)))
        return ta.concat(), ta.size(), ta.split([7.0, 8.0, 9.0], [2, 0, 1]).read(0)

    assert numbers(run()) == ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], 3, [7.0, 8.0])


@pytest.mark.parametrize(("call", "message"), [
    (lambda ta: ta.split([1.0, 2.0], 2), "Expected lengths to be a vector"),
    (lambda ta: ta.split([1.0, 2.0], [1, 0]), "sum of lengths is 1 and value's shape"),
    (lambda ta: ta.split(1.0, [1, 0]), "value to be at least a vector"),
    (lambda ta: ta.split([1.0], [1]), r"size of lengths \(2 vs. 1\)"),
    (lambda ta: ta.write(0, 1.0).write(1, [1.0]).concat(), "scalar shape at index 0"),
])  # fmt: skip
def test_pieces_that_are_no_pieces(call, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call(tf.TensorArray(tf.float32, size=2, infer_shape=False))


def test_elements_of_different_shapes_have_the_shape_that_was_said():
    ta = tf.TensorArray(tf.float32, size=2, infer_shape=False, element_shape=[None, 3])
    ta = ta.write(0, tf.ones([2, 3]))
    with pytest.raises(ValueError, match="Incompatible shape"):
        ta.write(1, tf.ones([2, 2]))
    assert ta.write(1, tf.ones([1, 3])).concat().shape == (3, 3)


def test_an_array_that_would_grow_by_what_is_not_known_says_what_to_write():
    def program(x, size):
        ta = tf.TensorArray(tf.float32, size=size, dynamic_size=not size)
        for i in tf.range(5):
            ta = ta.write(i, tf.cast(i, tf.float32))
            if i >= x:
                break
        return ta.stack()

    assert numbers(tf.function(program)(tf.constant(1), 5)) == [0.0, 1.0, 0.0, 0.0, 0.0]
    assert numbers(program(tf.constant(1), 0)) == [0.0, 1.0]
    with pytest.raises(ControlFlowError, match=r"(?s)might have to grow.*tf\.TensorArray.*\[:n\]"):
        tf.function(program)(tf.constant(1), 0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="size=largest"):
        tf.function(lambda n: tf.TensorArray(tf.float32, size=n).stack())(tf.constant(2))


@pytest.mark.parametrize("mode", MODES)
def test_an_array_grows_by_what_follows_from_a_known_range(mode):
    @mode
    def run(x):
        after, square, even = (tf.TensorArray(tf.int32, size=0, dynamic_size=True) for _ in "123")
        for i in tf.range(3):
            after = after.write(i + 1, x)
            if i % 2 == 0:
                even = even.write(even.size(), 2 * i)
            for j in tf.range(2):
                square = square.write(i * 2 + j, x * i)
        return after.stack(), even.stack(), square.stack()

    assert numbers(run(tf.constant(7))) == ([0, 7, 7, 7], [0, 4], [0, 0, 7, 7, 14, 14])


def test_what_is_computed_with_sizes_is_known():
    @tf.function
    def run(x):
        n = tf.shape(x)[0]
        return tf.zeros(n + 1), "one" if n == 3 else "other", n + n != 6, 1 + n

    assert run.get_concrete_function(tf.zeros(3)).structured_outputs[0].shape == (4,)
    assert int((tf.constant([2]) + 1)[0]) == 3
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.constant(["a"]) + 1


def test_a_tensor_array_of_strings():
    ta = tf.TensorArray(tf.string, size=3, clear_after_read=False).unstack(["a", "b", "c"])
    assert numbers(ta.write(1, "x").stack()) == [b"a", b"x", b"c"]
    assert numbers(ta.gather([2, 0])) == [b"c", b"a"]
    assert numbers(tf.TensorArray(tf.string, size=2).write(0, "a").stack()) == [b"a", b""]
    assert tf.TensorArray(tf.string, size=0).stack().shape == (0,)


def test_what_a_tensor_array_cannot_do():
    ta = tf.TensorArray(tf.float32, size=2, infer_shape=False)
    ta = ta.write(0, [1.0]).write(1, [1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="unequal elements"):
        ta.stack()
    with pytest.raises(tf.errors.InvalidArgumentError, match="indices that are known"):
        tf.function(lambda i: ta.read(i))(tf.constant(1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="its shape is not known"):
        tf.TensorArray(tf.string, size=1).read(0)


def test_numpy_functions_of_strings():
    joined = tf.numpy_function(
        lambda x, y: x + y, [tf.constant(["a"]), tf.constant(["b"])], tf.string
    )
    assert numbers(joined) == [b"ab"]
    assert tf.numpy_function(lambda: "é", [], tf.string).numpy() == "é".encode()


def test_texts_are_printed_in_quotes_unless_they_are_all(capsys):
    import sys

    tf.print(tf.constant("a"), output_stream=sys.stdout)
    tf.print("x:", tf.constant("a"), [tf.constant("b")], output_stream=sys.stdout)
    assert capsys.readouterr().out == 'a\nx: "a" ["b"]\n'


def test_ranks_are_integer_scalars():
    for check, rank in (
        (tf.debugging.assert_rank, 0.5),
        (tf.debugging.assert_rank_at_least, 0.5),
        (tf.debugging.assert_rank_in, (1, 0.5)),
    ):
        with pytest.raises(TypeError, match=r"must be of type tf\.int32"):
            check([1], rank)
    with pytest.raises(ValueError, match="said Rank must be a scalar"):
        tf.debugging.assert_rank([1], [1], message="said")


def test_errors_keep_payloads():
    error = tf.errors.NotFoundError(None, None, "gone", {b"key": b"value"})
    assert error.experimental_payloads == {b"key": b"value"}
    assert error.error_code == tf.errors.NOT_FOUND
    assert tf.errors.OpError(None, None, "x", 13).error_code == 13


def test_map_fn_over_rows_of_sparse_tensors():
    sparse = tf.sparse.from_dense([[1, 0], [0, 2], [0, 0]])
    same = tf.map_fn(lambda row: row, sparse)
    assert numbers(tf.sparse.to_dense(same)) == [[1, 0], [0, 2], [0, 0]]
    dense = tf.map_fn(lambda row: tf.sparse.to_dense(row)[::-1], sparse, tf.int32)
    assert numbers(dense) == [[0, 1], [2, 0], [0, 0]]
    spec = tf.SparseTensorSpec([None], tf.int32)
    back = tf.map_fn(tf.sparse.from_dense, dense, fn_output_signature=spec)
    assert numbers(tf.sparse.to_dense(back)) == numbers(dense)
    assert tf.map_fn(lambda row: row, tf.sparse.from_dense(np.zeros((0, 2), int))).shape[0] == 0
    with pytest.raises(ValueError, match="not what fn_output_signature"):
        tf.map_fn(lambda row: row, dense, fn_output_signature=spec)


def test_an_assertion_in_a_branch_is_of_that_branch():
    wrong = lambda: tf.debugging.Assert(False, ["wrong branch"])  # noqa: E731 - one use
    f = tf.function(lambda p: tf.cond(p, tf.no_op, wrong))
    f(tf.constant(True))
    with pytest.raises(tf.errors.InvalidArgumentError, match="wrong branch"):
        f(tf.constant(False))


@pytest.mark.parametrize("mode", MODES)
def test_exclusive_cases(mode):
    def run(x):
        pairs = [(x > 0, lambda: 1), (x > 1, lambda: 2)]
        return tf.case(pairs, default=lambda: 3, exclusive=True)

    f = mode(run)
    assert [numbers(f(tf.constant(x)) * 1) if mode is tf.function else f(tf.constant(x))
            for x in (0, 1)] == [3, 1]  # fmt: skip
    with pytest.raises(tf.errors.InvalidArgumentError, match="exclusive=True"):
        f(tf.constant(2))


def test_what_is_no_branch():
    for given, message in (([(1.5, len)], "must be a Python `int`"), ([(0, 1.0)], "callable")):
        with pytest.raises(TypeError, match=message):
            tf.switch_case(tf.constant(0), given)
    rows = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    f = tf.function(lambda p: tf.cond(p, lambda: rows, lambda: rows.values))
    row = tf.ragged.constant([[1.0]])
    ragged = tf.function(lambda p: tf.cond(p, lambda: row, lambda: 1.0))
    with pytest.raises(
        TypeError, match=r"RaggedTensor\(values=float32\[1\], .* but float32\[\] if"
    ):
        ragged(tf.constant(True))
    with pytest.raises(TypeError, match="do not agree: the result is IndexedSlices"):
        f(tf.constant(True))

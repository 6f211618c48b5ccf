"""Python's control flow on tensors in a `tf.function`: what it computes, and what it refuses.

What is expected was seen in TensorFlow 2.21, or is what Python does.
"""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf
from jaxvars.errors import ControlFlowError


def same(f, *args):
    """Check that a function gives, compiled, what Python gives."""
    plain, staged = (tf.nest.map_structure(_number, g(*args)) for g in (f, tf.function(f)))
    assert staged == plain
    return staged


def _number(x):
    return np.asarray(x.numpy() if isinstance(x, tf.Tensor) else x).tolist()


# ---------------------------------------------------------------- results
def test_returns_in_try_and_finally():
    def from_try(x):
        try:
            if x > 0:
                return x
            return -x
        finally:
            x = x + 1

    def from_finally(x):
        try:
            return x
        finally:
            if x > 0:
                return 2 * x  # noqa: B012 - that is what is tested
            return 3 * x  # noqa: B012, SIM107

    for x in (2.0, -2.0):
        assert same(from_try, tf.constant(x)) == 2.0
        assert same(from_finally, tf.constant(x)) == (4.0 if x > 0 else -6.0)


# ---------------------------------------------------------------- things with parts
def test_a_loop_that_puts_something_new_into_a_dict():
    def last(n):
        found = {}
        i = 0
        while i < n:
            found["square"] = i * i
            i += 1
        return found

    assert same(last, tf.constant(3)) == {"square": 4}
    with pytest.raises(tf.errors.InvalidArgumentError, match="initialize found\\['square'\\]"):
        tf.function(last)(tf.constant(0))


# ---------------------------------------------------------------- what is refused
def in_one_branch(c):
    if c:
        i = 1
    return i


def part_in_one_branch(c):
    x = {}
    if c:
        pass
    else:
        x["a"] = 1
    return x


def other_dtype(xs):
    n = tf.constant(0)
    while n < xs[0]:
        n = tf.constant(1.0)
    return n


def other_shape(xs):
    t = tf.constant([1])
    while t[0] < xs[0]:
        t = tf.constant([1, 1])
    return t


def other_structure(xs):
    s = [tf.constant(0)]
    while s[0] < xs[0]:
        s = [*s, tf.constant(0)]
    return s


def none_in_one_branch(c):
    i = 1
    if c:
        pass
    else:
        i = None
    return i


@pytest.mark.parametrize(
    ("f", "arg", "error", "message"),
    [
        (in_one_branch, True, ValueError, "'i' must also be initialized in the else branch"),
        (part_in_one_branch, True, ValueError, r"'x\['a'\]' must also be initialized in the main"),
        (other_dtype, [3], TypeError, "'n' has dtype int32 before the loop, but dtype float32"),
        (other_shape, [3], ValueError, r"'t' has shape \(1,\) before the loop, but shape \(2,\)"),
        (other_structure, [3], TypeError, "'s' does not have the same nested structure"),
        (none_in_one_branch, True, ValueError, r"'i' is None if false.*tf.cast"),
    ],
)
def test_refused(f, arg, error, message):
    with pytest.raises(error, match=message):
        tf.function(f)(tf.constant(arg))


# ---------------------------------------------------------------- loops of a known length
def test_loops_that_change_a_shape_are_written_out():
    def grown(xs):
        rows = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        seen = tf.zeros([1])
        for x in xs:
            seen = tf.concat([seen, [x]], 0)
            rows = rows.write(rows.size(), tf.reduce_sum(seen))
        return seen, rows.stack()

    assert same(grown, tf.constant([1.0, 2.0])) == ([0.0, 1.0, 2.0], [1.0, 3.0])
    with pytest.raises(ValueError, match="'rows' does not have the same nested structure"):
        tf.function(grown)(tf.zeros([300]))


# ---------------------------------------------------------------- gradients
def test_gradients_through_loops_that_end_when_they_do():
    w = tf.Variable(3.0)

    @tf.function
    def slopes(x, n):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x
            for i in tf.range(n):
                if i % 2 == 0:
                    y = y * w
                else:
                    y = y + w
        return y, tape.gradient(y, x), tape.gradient(y, w)

    assert [float(z) for z in slopes(tf.constant(2.0), tf.constant(3))] == [27.0, 9.0, 18.0]
    assert [float(z) for z in slopes(tf.constant(2.0), tf.constant(1))] == [6.0, 3.0, 2.0]

    square = tf.function(lambda x: tf.while_loop(lambda v: v < 8.0, lambda v: v * v, [x])[0])
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = square(x)
    assert float(tape.gradient(y, x)) == 32.0
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as forward:
        y = square(x)
    assert float(forward.jvp(y)) == 32.0


def test_a_case_that_is_exclusive():
    case = tf.function(
        lambda a, b: tf.case([(a, lambda: 1), (b, lambda: 2)], lambda: 3, exclusive=True)
    )
    assert int(case(tf.constant(False), tf.constant(True))) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 1 conditions"):
        case(tf.constant(True), tf.constant(True))


def test_a_gather_out_of_range_that_is_not_needed():
    @tf.function
    def rows(x, needed):
        found = tf.gather(x, [1])
        return (x, found) if needed else x

    x = tf.constant([2.0])
    assert rows(x, False).numpy() == [2.0]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"indices\[0\] = 1 is not in \[0, 1\)"
    ):
        rows(x, True)


def test_a_branch_that_does_not_run_changes_no_module():
    m = tf.Module()
    m.items = [0.0]

    def put(x):
        m.items[0] = x

    @tf.function
    def run(x):
        m.items[0] = 0.0
        if x > 0.0:
            put(x)
        result = m.items[0] + 0.0
        m.items[0] = 0.0
        return result

    assert [float(run(tf.constant(x))) for x in (3.0, -1.0)] == [3.0, 0.0]


@pytest.mark.parametrize(
    "use", [lambda x: x == 1, lambda x: 2 * x, lambda x: -x, lambda x: x[0], lambda x: 1 in x]
)
def test_a_range_of_unknown_length_is_for_loops_alone(use):
    with pytest.raises(ControlFlowError, match=r"at test_tf_autograph.py:\d+, in <lambda> where"):
        tf.function(lambda n: use(tf.range(n)))(tf.constant(3))


def test_not_is_of_each_element():  # as TensorFlow's in a function
    negate = tf.function(lambda x: not x)
    assert negate(tf.constant([True, False])).numpy().tolist() == [False, True]
    assert negate(tf.constant([True])).shape == (1,)
    assert tf.function(lambda x: not tf.shape(x) == [1, 3])(tf.ones([1, 2]))[1].numpy()  # noqa: SIM201
    for f in (lambda x: 1 if not x else 2, lambda x: not tf.cast(x, tf.int32), bool):
        with pytest.raises(ControlFlowError, match=r"shape \(2,\) is .* tf.reduce_any\(x\), tf.re"):
            tf.function(lambda x: f(x))(tf.constant([[True, False]])[0])  # noqa: B023


def test_a_function_without_a_source_is_warned_of_once(caplog: pytest.LogCaptureFixture):
    namespace: dict[str, object] = {"tf": tf}
    exec("def positive(x):\n    if x > 0:\n        return x\n    return -x", namespace)
    function = tf.function(namespace["positive"])
    for x in (tf.constant(1.0), tf.constant([1.0])):
        with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="in positive"):
            function(x)
    (told,) = caplog.messages
    assert told.startswith("AutoGraph could not transform positive and will run it as it is: ")
    assert "its source is not available" in told
    assert "tf.cond" in told

    silent = tf.autograph.experimental.do_not_convert(namespace["positive"])
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="in positive"):
        tf.function(silent)(tf.constant(1.0))
    assert len(caplog.messages) == 1

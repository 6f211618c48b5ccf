"""Python's control flow on tensors in a `tf.function`: what it computes, and what it refuses.

What is expected was seen in TensorFlow 2.21, or is what Python does.
"""

from __future__ import annotations

import numpy as np
import pytest

from jaxvars import tf


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

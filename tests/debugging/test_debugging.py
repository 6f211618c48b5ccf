"""`jv.debugging`: what the checks accept, what they say, and that a failed step changes nothing."""

from __future__ import annotations

import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars import debugging
from jaxvars.debugging import (
    assert_equal,
    assert_finite,
    assert_greater,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_negative,
    assert_non_negative,
    assert_non_positive,
    assert_none_equal,
    assert_positive,
    assert_rank,
    assert_shapes,
    assert_type,
    check_numerics,
)
from jaxvars.errors import CheckError, DtypeError, ShapeError

A = np.array([1.0, 2.0, 3.0], np.float32)

HOLD = [
    (assert_equal, (A, A)), (assert_equal, ([1, 1], 1)), (assert_equal, ("a", "a")),
    (assert_none_equal, (A, A + 1)), (assert_none_equal, (["a", "b"], ["b", "a"])),
    (assert_less, (A, 4)), (assert_less_equal, (A, [1, 2, 3])), (assert_greater, (A, 0)),
    (assert_greater_equal, (A, [[1], [0]])), (assert_near, (A, A + 1e-7)),
    (assert_near, (np.inf, np.inf)), (assert_near, (3, 3)),
    (assert_near, (np.uint8(3), np.uint8(5), 0, 2)), (assert_near, (1.0, 2.0, np.inf)),
    (assert_near, (1.0, 1.1, 0.0, 0.2)), (assert_positive, (A,)), (assert_negative, (-A,)),
    (assert_non_negative, (A - 1,)), (assert_non_positive, (1 - A,)),
    (assert_positive, (np.zeros(0),)), (assert_finite, (A,)), (check_numerics, (A,)),
]  # fmt: skip

FAIL = [
    (assert_equal, (A, [1.0, 2.0, 4.0]),
     "x == y does not hold: 1 of 3 elements, the first at [2]: x = 3.0, y = 4.0"),
    (assert_equal, (np.nan, np.nan), "nan == nan does not hold"),
    (assert_none_equal, (A, 2), "x != 2 does not hold: 1 of 3 elements, the first at [1]: x = 2.0"),
    (assert_less, (A, [[4.0], [3.0]]),
     "x < y does not hold: 1 of 6 elements, the first at [1, 2]: x = 3.0, y = 3.0"),
    (assert_less_equal, (A, 1), "x <= 1 does not hold: 2 of 3 elements, the first at [1]: x = 2.0"),
    (assert_greater, (A, 1), "x > 1 does not hold: 1 of 3 elements, the first at [0]: x = 1.0"),
    (assert_greater_equal, (A, 2), "x >= 2 does not hold: 1 of 3 elements"),
    (assert_near, (A, A + 1), "x near y does not hold (rtol 1.19e-06, atol 1.19e-06): 3 of 3"),
    (assert_near, (A, np.nan), "x near nan does not hold"),
    (assert_near, (3, 4), "3 near 4 does not hold (rtol 0, atol 0)"),
    (assert_positive, (A - 1,), "x > 0 does not hold: 1 of 3 elements, the first at [0]: x = 0.0"),
    (assert_negative, (np.int32(3),), "x < 0 does not hold: x = 3"),
    (assert_non_negative, (-A,), "x >= 0 does not hold: 3 of 3"),
    (assert_non_positive, (A,), "x <= 0 does not hold: 3 of 3"),
    (assert_finite, (np.array([1, np.inf]),),
     "x is not finite: 1 of 2 elements, the first at [1]: x = inf"),
    (check_numerics, (np.float32(np.nan),), "x is not finite: x = nan"),
]  # fmt: skip


def name(value):
    return getattr(value, "__name__", None) or repr(value)[:30]


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize(("check", "args"), HOLD, ids=name)
def test_what_holds(check, args, wrap):
    wrap(lambda *arrays: check(*arrays))(*args)


@pytest.mark.parametrize(
    "args",
    [(2.0, np.inf), (np.inf, 2.0), (np.inf, -np.inf), (1.0, np.inf, np.inf, np.inf),
     (complex(np.inf, 0), complex(0, np.inf)), (np.nan, np.nan, np.inf),
     (np.int8(-128), np.int8(127), 0, 2), (np.int32(2**31 - 1), np.int32(-(2**31)), 0, 2)],
)  # fmt: skip
def test_what_is_infinitely_far_is_not_near(args):
    for assert_in in (assert_near, jv.compile(assert_near)):
        with pytest.raises(CheckError, match=r" near .* does not hold"):
            assert_in(*args)


@pytest.mark.parametrize(("check", "args", "message"), FAIL, ids=name)
def test_what_fails_says_what(check, args, message):
    with pytest.raises(CheckError) as caught:
        check(*args, message="the reason")
    assert str(caught.value).startswith(f"the reason: {message}")
    assert re.search(
        r" \(test_debugging\.py:\d+, in test_what_fails_says_what\)\.$", str(caught.value)
    )


@pytest.mark.parametrize(("check", "args", "message"), FAIL[::5], ids=name)
def test_a_compiled_step_that_fails_changes_nothing(check, args, message):
    v = jv.Variable(np.ones(3), name="v")
    arrays = [np.asarray(x, np.float32) if isinstance(x, list) else x for x in args]

    @jv.compile
    def step(ok, *values):
        v.assign_add([1.0, 1.0, 1.0])
        picked = [jnp.where(ok, y, x) for x, y in zip(arrays, values, strict=True)]
        check(*picked)
        v.assign_add([1.0, 1.0, 1.0])

    for _ in range(2):
        with pytest.raises(CheckError, match=r"does not hold|is not finite") as caught:
            step(False, *arrays)
        assert "in step)." in str(caught.value)
    assert v.numpy().tolist() == [1, 1, 1]


def test_variables_are_named():
    v, w = jv.Variable(A, name="v"), jv.Variable(A + 1, name="layer/w")
    with pytest.raises(CheckError) as caught:
        jv.compile(lambda: assert_less(w, v))()
    assert str(caught.value).startswith(
        "Variable 'layer/w' < Variable 'v' does not hold: 3 of 3 elements, the first at [0]: "
        "Variable 'layer/w' = 2.0, Variable 'v' = 1.0 (test_debugging.py:"
    )
    with pytest.raises(CheckError, match="Variable 'v' > 1 does not hold"):
        assert_greater(v, 1)
    assert_less(v, w)
    with pytest.raises(CheckError, match=r"'v' \(x\) = 1\.0, Variable 'v' \(y\) = 2\.0 \("):
        assert_equal(v, jv.Variable(A + 1, name="v"))


def test_strings():
    with pytest.raises(CheckError, match=r"x == y does not hold: 1 of 2 .* at \[1\]: 'b', 'c' \("):
        assert_equal(["a", "b"], ["a", "c"])
    with pytest.raises(CheckError, match=r"x != y does not hold: 'a', 'a' \("):
        assert_none_equal("a", "a")
    with pytest.raises(CheckError, match="strings are equal or not, and have no order"):
        assert_less("a", "b")


def test_shapes_that_cannot_be_compared():
    with pytest.raises(
        ShapeError, match=r"x has shape \(3,\) and y \(2,\): they cannot be compared"
    ):
        jv.compile(assert_equal)(A, A[:2])


def test_what_a_failed_step_would_only_assign_is_kept():
    v = jv.Variable([1.0, 2.0])

    @jv.compile
    def step(x):
        debugging.assert_positive(x)
        v.assign(x)

    for first in (1.0, 2.0, 3.0):  # cold, warm and hot
        step(jnp.asarray([first, 4.0]))
        with pytest.raises(CheckError):
            step(jnp.asarray([-first, 4.0]))
        assert v.numpy().tolist() == [first, 4.0]


def test_the_first_failure_is_told():
    @jv.compile
    def step(x):
        assert_less(x, 5, "first")
        assert_less(x, 3, "second")

    with pytest.raises(CheckError, match=r"^first"):
        step(7)
    with pytest.raises(CheckError, match=r"^second"):
        step(4)
    step(2)


def test_in_loops_and_branches():
    v = jv.Variable(0.0, name="v")

    def once(i, x):
        v.assign_add(1.0)
        assert_less(v, 3, "in the loop")
        return x

    step = jv.compile(lambda n: jv.fori_loop(0, n, once, 0))
    step(2)
    assert v.item() == 2
    with pytest.raises(CheckError, match=r"in the loop: Variable 'v' < 3 does not hold: .*= 3\.0"):
        step(5)
    assert v.item() == 2
    branch = jv.compile(lambda x: jv.cond(x > 0, lambda: assert_less(x, 3), lambda: None))
    branch(-5), branch(2)
    with pytest.raises(CheckError, match="x < 3 does not hold: x = 4"):
        branch(4)


def test_plain_jit():
    def run():
        jax.jit(lambda x: (assert_positive(x), x)[1])(-1).block_until_ready()
        jax.effects_barrier()

    with pytest.raises(Exception, match="x > 0 does not hold: x = -1"):
        run()
    jax.jit(assert_positive)(1)
    jax.effects_barrier()


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
def test_checks_change_no_gradient(wrap):
    w = jv.Variable(3.0, name="w")

    def slope():
        with jv.GradientTape() as tape:
            assert_positive(w)
            loss = check_numerics(w * w, "the loss")
            assert_near(loss, 9.0)
        return tape.gradient(loss, w)

    assert wrap(slope)() == 6
    assert jax.grad(lambda x: (assert_positive(x), check_numerics(x * x))[1])(3.0) == 6


# ---------------------------------------------------------------- NaN and infinities
def test_what_is_finite_is_returned():
    x = jnp.ones(2)
    assert check_numerics(x, "a message") is x
    assert check_numerics(3) == 3
    v = jv.Variable(A, name="v")
    assert check_numerics(v) is v.value or isinstance(check_numerics(v), jax.Array)
    tree = {"a": x, "text": "t", "n": 3, "none": None}
    assert check_numerics(tree) is tree


class Layer(jv.Module):
    def __init__(self, values):
        self.w = jv.Variable(values, name="w")
        self.steps = jv.Variable(3, name="steps")


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
def test_modules_and_trees(wrap):
    good, bad = Layer(A), Layer([1.0, np.inf])
    wrap(lambda: assert_finite([good, {"m": good}]))()
    with pytest.raises(CheckError, match=r"the model: Variable 'w' is not finite: 1 of 2 .*= inf"):
        wrap(lambda: assert_finite(bad, "the model"))()
    with pytest.raises(CheckError, match=r"x\['grads'\]\[1\] is not finite: 1 of 2 .* = nan"):
        wrap(lambda x: assert_finite({"grads": [x, jnp.log(x)]}))(jnp.asarray([1.0, -1.0]))


def test_integers_are_finite():
    assert_finite(jnp.arange(3))
    assert_finite([True, 2, "text", None])


# ---------------------------------------------------------------- shapes and dtypes
def test_rank():
    assert_rank(A, 1)
    assert_rank(3.0, 0)
    assert_rank(jv.Variable(A), [0, 1])
    with pytest.raises(
        ShapeError, match=r"^why: x has shape \(3,\), of rank 1, not 2 or 3 \(test_deb"
    ):
        assert_rank(A, (2, 3), "why")
    with pytest.raises(ShapeError, match=r"Variable 'v' has shape \(3,\), of rank 1, not 0"):
        jv.compile(lambda v: assert_rank(v, 0))(jv.Variable(A, name="v"))


def test_type():
    assert_type(A, "float32")
    assert_type(3, int)
    assert_type("text", str)
    with pytest.raises(DtypeError, match=r"^why: x is float32, not int32 \(test_debugging"):
        assert_type(A, jnp.int32, "why")
    with pytest.raises(DtypeError, match="Variable 'v' is float32, not bfloat16"):
        assert_type(jv.Variable(A, name="v"), jnp.bfloat16)


def test_shapes():
    x, w = np.ones((8, 3)), jv.Variable(np.ones((3, 5)), name="w")
    assert_shapes([(x, ("batch", "n")), (w, ("n", "m")), (1.0, ())])
    assert_shapes({w: ("n", None)})
    assert_shapes([(x, (..., "n")), (w, "nm")])
    with pytest.raises(ShapeError) as caught:
        assert_shapes([(x, ("n", None)), (w, ("n", None))], "why")
    assert str(caught.value).startswith(
        "why: Variable 'w' has shape (3, 5): n is 8 (dimension 0 of array 0), but dimension 0 of "
        "Variable 'w' is 3 (test_debugging.py:"
    )
    with pytest.raises(ShapeError, match=r"array 0 has shape \(8, 3\): it should have rank 1"):
        jv.compile(lambda x: assert_shapes([(x, (8,))]))(x)
    with pytest.raises(TypeError, match="is not a pattern of a shape"):
        assert_shapes([(x, (1.5, 2))])


# ---------------------------------------------------------------- integers of several dtypes
LARGEST = np.uint32(2**32 - 1)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("check", "args", "holds"),
    [
        ("less", (LARGEST, 1), False), ("equal", (LARGEST, -1), False),
        ("greater", (LARGEST, -1), True), ("negative", (LARGEST,), False),
        ("positive", (LARGEST,), True), ("equal", (2**31, np.uint32(2**31)), True),
        ("less", (LARGEST, np.int32(5)), False), ("less", (np.int32(5), LARGEST), True),
        ("less", (np.int32(-5), LARGEST), True), ("greater", (np.int32(-5), LARGEST), False),
        ("less", (np.uint8(200), 300), True), ("greater", (np.uint8(3), -5), True),
        ("equal", (np.int8(3), np.uint8(3)), True), ("less", (np.uint8(3), 3.5), True),
        ("equal", (jnp.int4(3), 3), True), ("equal", (257, jnp.bfloat16(256)), False),
        ("equal", (np.int32(257), jnp.bfloat16(256)), False),
        ("equal", (np.int32(256), jnp.bfloat16(256)), True),
    ],
)  # fmt: skip
def test_comparisons_are_those_of_the_numbers(check: str, args: Any, holds: bool, compiled: bool):
    run = getattr(jv.debugging, f"assert_{check}")
    if compiled and isinstance(args[0], int) and args[0] > 2**31 - 1:
        pytest.skip("an argument that JAX does not take")
    call = jv.compile(lambda x: run(x, *args[1:])) if compiled else lambda x: run(x, *args[1:])
    if holds:
        call(args[0])
    else:
        with pytest.raises(CheckError, match="does not hold"):
            call(args[0])


def test_distances_are_those_of_the_numbers():
    near = functools.partial(jv.debugging.assert_near, rtol=0)
    near(np.uint32(1), -1, atol=2)
    for pair in ((LARGEST, 0), (LARGEST, -1), (np.int32(257), jnp.bfloat16(256))):
        with pytest.raises(CheckError, match="does not hold"):
            near(*pair, atol=0.5)


def test_what_is_shown_of_an_unsigned_integer():
    with pytest.raises(CheckError, match="x = 4294967295"):
        jv.debugging.assert_less(LARGEST, 1)

"""Variables and their slices read as arrays: every operator and conversion, on either side."""

from __future__ import annotations

import math
import operator as op

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv

X, Y = np.array([3.0, -4.0, 5.5], np.float32), np.array([2.0, 3.0, -1.5], np.float32)
M, N = np.array([3, 12, 7]), np.array([1, 2, 3])
P, Q = np.array([True, True, False]), np.array([True, False, False])

ARITHMETIC = [op.add, op.sub, op.mul, op.truediv, op.floordiv, op.mod, divmod]
COMPARISON = [op.eq, op.ne, op.lt, op.le, op.gt, op.ge]
BITS = [op.and_, op.or_, op.xor]
INTEGER = [*ARITHMETIC, *COMPARISON, *BITS, op.pow, op.lshift, op.rshift]
CASES = [
    *((f, X, Y) for f in ARITHMETIC + COMPARISON),
    *((f, M, N) for f in INTEGER),
    *((f, P, Q) for f in [*BITS, op.eq, op.ne]),
    (op.pow, abs(X), Y),
    (op.matmul, X, Y),
    (op.matmul, np.ones((2, 3), np.float32), Y),
]
# What may stand on the other side of the variable.
OTHERS = {
    "variable": jv.Variable,
    "slice": lambda y: jv.Variable(y)[...],
    "jax": jnp.asarray,
    "numpy": np.asarray,
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(
    ("f", "x", "y"), CASES, ids=[f"{f.__name__}-{x.dtype}-{x.shape}" for f, x, _ in CASES]
)
def test_operators(f, x, y, other):
    expected = f(jnp.asarray(x), jnp.asarray(y))
    on_the_left = f(jv.Variable(x), OTHERS[other](y))
    on_the_right = f(OTHERS[other](x), jv.Variable(y))
    for found in (on_the_left, on_the_right):
        assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(found))
        jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.parametrize("f", [*ARITHMETIC, *COMPARISON, op.pow])
@pytest.mark.parametrize("number", [2, 2.5, np.float32(2), np.int64(2)], ids=repr)
def test_operators_with_numbers(f, number):
    x = abs(X)
    for found, expected in [
        (f(jv.Variable(x), number), f(jnp.asarray(x), number)),
        (f(number, jv.Variable(x)), f(number, jnp.asarray(x))),
    ]:
        jax.tree.map(np.testing.assert_array_equal, found, expected)
        assert jax.tree.leaves(found)[0].dtype == jax.tree.leaves(expected)[0].dtype


@pytest.mark.parametrize("f", [op.add, op.sub, op.mul, op.truediv, op.pow, op.lt, op.eq])
def test_operators_with_traced_values(f):
    v = jv.Variable(abs(X))
    x, y = abs(X), abs(Y)
    found = jv.compile(lambda y: (f(v, y), f(y, v)))(y)
    np.testing.assert_allclose(found[0], f(x, y), rtol=1e-6)
    np.testing.assert_allclose(found[1], f(y, x), rtol=1e-6)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (op.neg, X),
        (op.pos, X),
        (abs, X),
        (op.invert, M),
        (op.invert, P),
        (round, X),
        (lambda v: round(v, 1), X),
        (lambda v: v.T, X.reshape(1, 3)),
        (lambda v: v.reshape(3, 1), X),
        (lambda v: v.reshape((3, 1)), X),
        (lambda v: jnp.reshape(v, (3, 1), order="F"), X),  # jnp calls the method
        (lambda v: v.astype("int32"), X),
    ],
)
def test_unary_operators_and_methods(f, x):
    v = jv.Variable(x)
    for found in (f(v), f(v[...])):
        assert isinstance(found, jax.Array)
        np.testing.assert_array_equal(found, f(jnp.asarray(x)))


def test_the_result_is_not_a_view_of_the_variable():
    v = jv.Variable([1.0, 2.0])
    before = +v
    v.assign([5.0, 5.0])
    assert before.tolist() == [1, 2]


@pytest.mark.parametrize(("convert", "value", "expected"), [
    (int, 3.7, 3), (float, 3, 3.0), (complex, 2.0, 2 + 0j), (bool, 1.0, True), (bool, [0.0], False),
    (bool, "a", True), (bool, "", False), (len, [1, 2, 3], 3), (list, [1, 2], [1, 2]),
    (sum, [1, 2], 3), (max, [1, 2], 2), (sorted, [2, 1], [1, 2]), (math.sqrt, 4.0, 2.0),
    (math.floor, 2.5, 2), (lambda v: list(range(v)), 3, [0, 1, 2]), (lambda v: "abcd"[v], 2, "c"),
    (lambda v: f"{v:.2f}", 3.14159, "3.14"),
    (lambda v: f"{v}", 1.5, "<Variable 'Variable' float32[] 1.5>"),
    (lambda v: v.item(), 1.5, 1.5), (lambda v: 2.0 in v, [1.0, 2.0], True),
    (lambda v: 5.0 in v, [1.0, 2.0], False),
    (lambda v: (v.shape, v.ndim, v.size), [[1, 2, 3]], ((1, 3), 2, 3)),
])  # fmt: skip
def test_conversions(convert, value, expected):
    found = convert(jv.Variable(value))
    assert found == expected
    assert type(found) is type(expected) or isinstance(found, jax.Array)


@pytest.mark.parametrize(
    ("convert", "value", "error", "message"),
    [
        (bool, [1.0, 2.0], ValueError, r"shape \(2,\) is ambiguous.*jnp\.any\(v\), jnp\.all"),
        (bool, [], ValueError, r"shape \(0,\) is ambiguous"),
        (lambda v: not v, [1, 2], ValueError, "is ambiguous"),
        (lambda v: v and 1, [1, 2], ValueError, "is ambiguous"),
        (len, 1.0, TypeError, r"scalar variable has no len\(\)"),
        (list, 1.0, TypeError, "scalar variable cannot be iterated"),
        (lambda v: [1, 2][v], 1.0, TypeError, "integer"),
        (lambda v: v.men(), [1.0], AttributeError, "no attribute 'men'"),
        (lambda v: v.assing(1), 1.0, AttributeError, "Did you mean 'assign'"),
        (lambda v: setattr(v, "foo", 1), 1.0, AttributeError, "foo"),
        (lambda v: setattr(v, "value", 1), 1.0, AttributeError, "value"),
        (lambda v: setattr(v, "shape", (1,)), 1.0, AttributeError, "shape"),
    ],
)
def test_what_has_no_single_answer_is_refused_with_advice(convert, value, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        convert(jv.Variable(value))


def test_equality_is_elementwise_and_hash_is_identity():
    v, w = jv.Variable([1, 2]), jv.Variable([1, 2])
    assert (v == w).tolist() == [True, True]
    assert (v != [1, 2][0]).tolist() == [False, True]
    assert hash(v) != hash(w)
    assert len({v, w, v}) == 2
    assert {v: "v", w: "w"}[w] == "w"


@pytest.mark.parametrize("other", [None, "text", object()])
def test_equality_with_what_is_not_an_array(other):
    v = jv.Variable([1, 2])
    assert (v == other) is False
    assert (v != other) is True


# ---------------------------------------------------------------- NumPy
def test_numpy_reads_it():
    v = jv.Variable(X)
    assert isinstance(np.add(Y, v), np.ndarray)
    np.testing.assert_array_equal(np.add(Y, v), X + Y)
    np.testing.assert_array_equal(np.array(v, np.float64), X)
    assert np.mean(v) == X.mean()
    assert np.asarray(v).dtype == np.float32


def test_numpy_gets_separate_memory():
    v = jv.Variable([1.0, 2.0])
    mine = v.numpy()
    mine[:] = 9
    assert v.numpy().tolist() == [1, 2]
    assert np.array(v).flags.writeable
    assert not np.asarray(v).flags.writeable  # a view, which cannot change the variable


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
@pytest.mark.parametrize("digits", [(), (0,), (1,)])
def test_rounding(dtype, digits):
    v = jv.Variable(jnp.asarray(2.64, dtype))
    ours, theirs = round(v, *digits), round(v.value, *digits)
    assert (ours.dtype, float(ours)) == (theirs.dtype, float(theirs))


@pytest.mark.parametrize("act", [lambda v, x: v * x, lambda v, x: x * v, lambda v, x: v > 1 - x])
def test_an_operand_may_be_written_to_afterwards(act, batch):
    v = jv.Variable(jnp.ones(batch.shape))
    for _ in range(20):
        batch[:] = 1
        found = act(v, batch)
        batch[:] = -7
        assert set(found.tolist()) == {1.0}


@pytest.mark.parametrize("other", [np.int64(2**32), np.array([1, -(2**31) - 1]), np.uint64(2**32)])
@pytest.mark.parametrize("f", [op.add, op.sub, op.eq, op.lt, op.mul, divmod])
def test_an_operand_that_jax_would_cut_is_refused(f, other):
    v = jv.Variable([0, 0])
    for way in (lambda g: g, jv.compile):
        for act in (lambda: f(v, other), lambda: f(other, v), lambda: f(v[0], other)):
            with pytest.raises(jv.errors.DtypeError, match="64-bit numbers are off"):
                way(act)()
    with jax.enable_x64(True):
        assert (jv.Variable([0, 0]) + np.int64(2**32)).tolist() == [2**32, 2**32]
    assert (v + np.array([1, 2])).tolist() == [1, 2]


# ---------------------------------------------------------------- an array's own methods
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sum(),
        lambda x: x.mean(axis=0),
        lambda x: x.at[0].set(7.0),
        lambda x: x.max() - x.min(),
        lambda x: x.flatten(),
        lambda x: x.dot(x),
        lambda x: x.nbytes,
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_methods_of_arrays(f, compiled):
    v = jv.Variable(X)
    for given in (v, v[1:]):
        got = jv.compile(lambda given=given: f(given))() if compiled else f(given)
        np.testing.assert_allclose(got, f(jnp.asarray(X if given is v else X[1:])))
    np.testing.assert_allclose(v.value, X)  # they change nothing


def test_methods_of_arrays_are_differentiated():
    v = jv.Variable(X)
    with jv.GradientTape() as tape:
        y = v.sum() * v.max()
    np.testing.assert_allclose(tape.gradient(y, v), [X.max(), X.max(), X.max() + X.sum()])


def test_a_method_that_is_kept_has_the_value_that_it_was_made_of():
    v = jv.Variable(X)
    total = v.sum
    v.assign(X * 0)
    assert float(total()) == X.sum()


def test_what_arrays_alone_have_variables_and_their_parts_have():
    v = jv.Variable(X)
    assert v.tolist() == X.tolist()
    assert v[1:].tolist() == X[1:].tolist()
    assert v.tobytes() == X.tobytes()
    assert isinstance(v.block_until_ready(), jax.Array)
    assert v.devices() == v.value.devices()
    assert jv.Variable(["a", "b"]).tolist() == ["a", "b"]


def test_jax_takes_variables_as_their_values():
    v = jv.Variable(X)
    for read in (jax.device_put(v), np.asarray(v), *jax.tree.leaves([v]), *map(jnp.asarray, [v])):
        np.testing.assert_array_equal(read, X)
    assert jax.block_until_ready(v) is v
    assert jax.tree.map(jnp.shape, {"v": v}) == {"v": X.shape}


@pytest.mark.parametrize("name", ["shape", "dtype", "name", "value"])
def test_what_is_fixed_is_not_set(name):
    v = jv.Variable(X, name="w")
    with pytest.raises(AttributeError, match=rf"The {name} of variable 'w' cannot be set at test_"):
        setattr(v, name, None)
    assert v.tolist() == X.tolist()


def test_what_arrays_do_not_have_variables_do_not_have():
    v = jv.Variable(X)
    assert not hasattr(v, "delete")
    assert not hasattr(v, "aval")
    assert not hasattr(v, "__cuda_array_interface__")


# ---------------------------------------------------------------- operators of plain operands
_NUMBERS = [0, 1, -7, 2**31 - 1, 2**31, 2**70, 0.0, -0.0, 0.1, 1e-45, 1e300, float("nan"), True, 1j]
_OPERATORS = [op.add, op.sub, op.mul, op.truediv, op.lt, op.ge]


def outcome(compute, *operands):
    try:
        result = compute(*operands)
    except (TypeError, OverflowError, ValueError) as error:
        return type(error), str(error)[:60]  # then the name of an argument
    return result.dtype, result.weak_type, result.shape, np.asarray(result).tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["int8", "int32", "bfloat16", "float32", "bool"])
@pytest.mark.parametrize("compute", _OPERATORS, ids=lambda o: o.__name__)
def test_an_operator_gives_exactly_what_it_gives_for_the_array(dtype, compute):
    array = jnp.asarray([0, 1, 3]).astype(dtype)
    v = jv.Variable(array)
    others = [jnp.asarray([2, 0, 5]).astype(d) for d in ("int32", "bfloat16", "float32")]
    for other in [*_NUMBERS, *others, jnp.ones((2, 1)), jnp.ones(2), jnp.asarray(2.0)]:
        assert outcome(compute, v, other) == outcome(compute, array, other)
        assert outcome(compute, other, v) == outcome(compute, other, array)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_an_operator_gives_the_same_under_a_tape(dtype):
    v = jv.Variable(jnp.asarray([0, 1, 3]).astype(dtype))
    for compute in (op.mul, op.truediv, op.matmul, op.lt):
        for other in [*_NUMBERS, jnp.asarray([2, 0, 5], jnp.bfloat16), jnp.ones(2)]:
            with jv.GradientTape():
                found = outcome(compute, v, other), outcome(compute, other, v)
            assert found == (outcome(compute, v, other), outcome(compute, other, v))

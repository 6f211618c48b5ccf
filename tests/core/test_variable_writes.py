"""A Variable is changed as a whole, by parts and by rows; what does not fit is refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars.core.frames import LOCAL
from jaxvars.errors import DtypeError, ForeignTransformError, NotATensorError, ShapeError

V = jv.Variable


def vector():
    return V([1.0, 2.0, 3.0], name="v")


def matrix():
    return V(jnp.arange(12.0).reshape(3, 4), name="m")


# ---------------------------------------------------------------- assigning
@pytest.mark.parametrize(("method", "value", "expected"), [
    ("assign", [4, 5, 6], [4, 5, 6]), ("assign", np.array([4.0, 5.0, 6.0]), [4, 5, 6]),
    ("assign", jnp.array([4.0, 5.0, 6.0]), [4, 5, 6]), ("assign", V([4.0, 5.0, 6.0]), [4, 5, 6]),
    ("assign", [V(4.0), jnp.float32(5), 6], [4, 5, 6]), ("assign_add", [1.0, 1.0, 1.0], [2, 3, 4]),
    ("assign_add", 1, [2, 3, 4]), ("assign_add", V(1.0), [2, 3, 4]),
    ("assign_sub", [1.0, 1.0, 1.0], [0, 1, 2]), ("assign_sub", np.float64(1), [0, 1, 2]),
], ids=repr)  # fmt: skip
def test_assigning(method, value, expected):
    v = vector()
    assert getattr(v, method)(value) is v  # so that it reads as the updated variable
    assert v.numpy().tolist() == expected
    assert v.value.weak_type is False
    w = vector()
    assert getattr(w, method)(value, read_value=False) is None
    assert w.numpy().tolist() == expected


IN_PLACE = {
    "+": ([5, 7], 2, [7, 9]), "-": ([5, 7], 2, [3, 5]), "*": ([5, 7], [2, 3], [10, 21]),
    "/": ([5.0, 7.0], 2, [2.5, 3.5]), "//": ([5.0, 7.0], np.float32(2), [2.0, 3.0]),
    "%": ([5, 7], 4, [1, 3]), "**": ([5, 7], 2, [25, 49]),
    "@": ([[1.0, 2.0], [3.0, 4.0]], jnp.array([[0.0, 1.0], [1.0, 0.0]]), [[2.0, 1.0], [4.0, 3.0]]),
    "&": ([5, 7], 6, [4, 6]),
    "|": ([True, False], np.array([False, False]), [True, False]),
    "^": ([5, 7], 1, [4, 6]), "<<": ([5, 7], 1, [10, 14]), ">>": ([5, 7], V(1), [2, 3]),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("operator", IN_PLACE)
def test_operators_that_assign(operator, compiled):
    initial, operand, expected = IN_PLACE[operator]
    names = {"v": V(initial), "x": operand}
    v = names["v"]

    def run():
        exec(f"v {operator}= x", names)

    (jv.compile(run) if compiled else run)()
    assert names["v"] is v
    assert v.numpy().tolist() == expected
    assert not v.value.weak_type


@pytest.mark.parametrize(
    ("initial", "operator", "operand", "error", "message"),
    [
        ([1, 2], "+", 0.5, DtypeError, "a value of dtype float32 to variable 'v' of dtype int32"),
        ([1, 2], "/", 2, DtypeError, "a value of dtype float32 to variable 'v' of dtype int32"),
        ([1.0], "+", 1e300, DtypeError, "1e\\+300, outside of float32"),
        ([1.0], "+", [[1.0], [2.0]], ShapeError, "of shape \\(2, 1\\) to variable 'v' of shape"),
        ([[1.0]], "@", [1.0], ShapeError, "of shape \\(1,\\) to variable 'v' of shape \\(1, 1\\)"),
        ([1.0], "&", 1, TypeError, "does not accept dtype float32"),
        ([1.0], "+", None, NotATensorError, "the value for variable 'v' is NoneType"),
        ([1.0], "*", np.ma.array([1.0], mask=[True]), NotATensorError, "A masked array of NumPy"),
    ],
)
def test_operators_that_assign_refuse_what_assign_refuses(
    initial, operator, operand, error, message
):
    names = {"v": V(initial, name="v"), "x": operand}
    with pytest.raises(error, match=message):
        exec(f"v {operator}= x", names)
    assert names["v"].numpy().tolist() == initial


def test_operators_that_assign_in_code_of_others():
    v = V(0.0)
    with pytest.raises(ForeignTransformError, match=r"written at .* inside a plain JAX transform"):
        jax.jit(lambda x: v.__iadd__(x))(1.0)

    @jv.compile(autograph=True)
    def step(x):
        w = v
        if x > 0:
            w += x
        while w < 8:
            w *= 2
        return w.value

    assert (step(1.0), v.numpy()) == (8, 8)

    def add():
        for _ in range(50):
            v.__iadd__(1)

    run_in_threads(*[add] * 4)
    assert v.numpy() == 208


def test_assigning_its_own_value():
    v = vector()
    assert v.assign(v).assign(v[::-1]).assign_add(v).numpy().tolist() == [6, 4, 2]
    assert v.read_value().tolist() == [6, 4, 2]


REFUSED = [
    ("assign", [1.0, 2.0], ShapeError, r"shape \(2,\) to variable 'v' of shape \(3,\)"),
    ("assign", 1.0, ShapeError, r"shape \(\) to variable 'v' of shape \(3,\)"),
    ("assign", jnp.ones((3, 1)), ShapeError, r"shape \(3, 1\) to variable 'v' of shape \(3,\)"),
    ("assign", [1j, 2, 3], DtypeError, "dtype complex128 to variable 'v' of dtype float32"),
    ("assign", np.arange(3), DtypeError, "dtype int64 to variable 'v' of dtype float32"),
    ("assign", ["a"] * 3, DtypeError, "dtype string to variable 'v' of dtype float32"),
    ("assign", None, NotATensorError, "the value for variable 'v' is NoneType"),
    ("assign", {"a": 1}, NotATensorError, "the value for variable 'v' is dict"),
    ("assign", object(), NotATensorError, "the value for variable 'v' is object"),
    ("assign", lambda: [1.0] * 3, NotATensorError, "the value for variable 'v' is function"),
    ("assign", [1e300] * 3, DtypeError, "variable 'v' reaches .* outside of float32"),
    ("assign_add", [1.0, 2.0], ShapeError, r"'v' of shape \(3,\): the update has shape \(2,\)"),
    ("assign_add", jnp.ones((2, 3)), ShapeError, r"'v' of shape \(3,\).*has shape \(2, 3\)"),
    ("assign_sub", 1j, DtypeError, "a Python complex to variable 'v' of dtype float32"),
    ("assign_sub", None, NotATensorError, "the value for variable 'v' is NoneType"),
]


@pytest.mark.parametrize(("method", "value", "error", "message"), REFUSED)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_wrong_value_is_refused_and_nothing_changes(method, value, error, message, compiled):
    v = vector()

    def write():
        getattr(v, method)(value)

    with pytest.raises(error, match=message):
        jv.compile(write)() if compiled else write()
    assert v.numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (lambda: V(1, name="v"), 1.5, "a Python float to variable 'v' of dtype int32"),
        (lambda: V(1, name="v"), True, "bool to variable 'v' of dtype int32"),
        (lambda: V(True, name="v"), 1, "a Python int to variable 'v' of dtype bool"),
        (lambda: V(np.uint8(1), name="v"), 256, "'v' is 256, outside of uint8"),
        (lambda: V(np.uint8(1), name="v"), -1, "outside of uint8"),
        (lambda: V(1, name="v"), 2**40, "outside of int32.*jax_enable_x64"),
    ],
)
def test_no_assignment_drops_information(variable, value, message):
    v = variable()
    before = v.item()
    for method in (v.assign, v.assign_add, v[...].assign):
        with pytest.raises(DtypeError, match=f"(?s){message}"):
            method(value)
    assert v.item() == before


def test_a_variable_of_64_bits_takes_no_number_where_these_are_off():
    with jax.enable_x64(True):
        variable = jv.Variable(1, dtype="int64")
    with pytest.raises(
        DtypeError, match=r"dtype int64.*64-bit numbers are off in JAX at test_variable_w"
    ):
        variable.assign(2**40)
    assert variable.dtype == variable.value.dtype == np.int64


def test_no_change_is_lost_between_threads():
    v = V(0)
    run_in_threads(*[lambda: [v.assign_add(1) for _ in range(100)]] * 8)
    assert v.item() == 800


def test_random_keys_are_values():
    v = V(jax.random.key(0), name="key")
    old, new = jax.random.split(v.value)
    v.assign(new)
    assert jax.random.normal(old) != jax.random.normal(v.value)
    with pytest.raises(DtypeError, match="a Python float to variable 'key' of dtype key<fry>"):
        v.assign(1.0)


# ---------------------------------------------------------------- parts
PARTS = [
    0, -1, slice(1, 3), slice(None, None, -2), (1, 2), (slice(None), 1), (..., 0), None, True,
    np.array([0, 2]), jnp.array([0, -1]), np.array([True, False, True]),
    (np.array([0, 1]), np.array([3, 0])),
]  # fmt: skip


def in_variables(part):
    """The same index, with variables in it."""
    if isinstance(part, tuple):
        return tuple(map(in_variables, part))
    if isinstance(part, slice):
        return slice(*(x if x is None else V(x) for x in (part.start, part.stop, part.step)))
    return V(part) if isinstance(part, int | np.ndarray | jax.Array) else part


@pytest.mark.parametrize("part", PARTS, ids=repr)
@pytest.mark.parametrize("of", [lambda part: part, in_variables], ids=["plain", "variables"])
def test_parts_read_and_change_as_in_numpy(part, of):
    m, expected = matrix(), np.arange(12.0, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(m[of(part)].value, expected[part])
    assert m[of(part)].shape == expected[part].shape
    assert m[of(part)].assign_add(1.0) is m
    expected[part] += 1
    np.testing.assert_array_equal(m.value, expected)
    m[of(part)].assign_sub(2.0)
    expected[part] -= 2
    np.testing.assert_array_equal(m.value, expected)
    m[of(part)] = 7
    expected[part] = 7
    np.testing.assert_array_equal(m.value, expected)


def test_parts_take_what_broadcasts():
    m = matrix()
    assert m[1:3].assign([[1.0], [2.0]]).numpy()[:, 0].tolist() == [0, 1, 2]
    assert m[0].assign(5, read_value=False) is None
    m[0, 1] += 1
    assert m.numpy()[0].tolist() == [5, 6, 5, 5]


def test_a_part_keeps_the_value_it_was_taken_with():
    v = vector()
    part = v[0]
    v.assign([9.0, 9.0, 9.0])
    assert part.item() == 1
    assert repr(part) == repr(part.value)
    assert part.numpy() == 1
    assert v[1:][0] == 9


@pytest.mark.parametrize(("part", "message"), [
    (3, "index 3 is out of bounds for axis 0 with size 3"),
    (-4, "index -4 is out of bounds"),
    ((0, 4), "index 4 is out of bounds for axis 1 with size 4"),
    (np.array([0, 7]), "index 7 is out of bounds"), (jnp.array([0, 7]), "index 7 is out of bounds"),
    (V(7), "index 7 is out of bounds"), ((0, 0, 0), "too many indices"),
    (np.array([True, False]), "boolean index did not match"),
    (1.0, "valid indices"), ("a", "valid indices"),
], ids=str)  # fmt: skip
def test_parts_out_of_bounds_are_refused(part, message):
    m = matrix()
    with pytest.raises(IndexError, match=rf"Variable 'm' of shape \(3, 4\): .*{message}"):
        m[part]
    with pytest.raises(IndexError, match="Variable 'm'"):
        m[part] = 0.0
    assert m.numpy().sum() == 66


@pytest.mark.parametrize(("value", "error", "message"), [
    ([1.0, 2.0, 3.0], ShapeError, r"'v' of shape \(3,\): the update has shape \(3,\), and \(2,"),
    (1j, DtypeError, "a Python complex to variable 'v' of dtype float32"),
    (None, NotATensorError, "variable 'v' is NoneType"),
])  # fmt: skip
def test_a_part_refuses_what_does_not_fit(value, error, message):
    v = vector()
    with pytest.raises(error, match=message):
        v[:2].assign(value)
    assert v.numpy().tolist() == [1, 2, 3]


def test_indices_of_few_bits_that_count_from_the_end():
    v = jv.Variable(jnp.arange(300.0))
    for index in (jnp.int8(-1), np.int8(-1)):
        assert float(v[index].value) == float(jv.compile(lambda i: v[i] * 1)(index)) == 299.0
        v[index].assign(5.0)
        jv.compile(lambda i: v[i].assign(v[i] + 1))(index)
        v[index[None]].assign_add([293.0])
    assert v.numpy().tolist()[-2:] == [298.0, 299.0]


def test_lists_of_nothing_have_any_dtype():
    for dtype in ("int32", "bool", "complex64"):
        v = jv.Variable([], dtype=dtype)
        assert v.assign([]).value.dtype == dtype


@pytest.mark.parametrize("exponent", [np.uint8(200), np.int64(2), 3])
@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "int4", "float32"])
def test_powers_in_place_are_those_of_a_known_exponent(dtype, exponent):
    v, w = V([1, 2, 3], dtype=dtype), V([1, 2, 3], dtype=dtype)
    if dtype == "float32" and exponent == 200:
        return  # infinite

    @jv.compile
    def step():
        w.__ipow__(exponent)

    step()
    v **= exponent
    wanted = jnp.array([1, 2, 3], dtype) ** exponent
    assert v.numpy().tolist() == w.numpy().tolist() == wanted.tolist()


def test_strings_in_place_are_refused_by_numbers():
    v = vector()
    with pytest.raises(DtypeError, match="Cannot assign a value of dtype string to variable 'v'"):
        v += "s"


# ---------------------------------------------------------------- 64 bits, where they are off
BIG = 2**40 + 1


def wide():
    with jax.enable_x64(True):
        return V(np.int64(BIG), name="n"), V(np.array([1 + 1e-12, BIG]), name="f")


def in_transaction(n, f):
    with jv.transaction():
        n.assign_add(1)


def in_pure(n, f):
    jv.functionalize(lambda: n.assign_add(1))(jv.State.of(n=n))


def of_state(n, f):
    jax.tree.map(lambda x: x + 1, jv.State.of(n=n, f=f)).commit()


def by_optimizer(n, f):
    jv.optimizers.SGD(0.1, momentum=0.9).apply_gradients([(jnp.ones(2), f)])


NARROW_WRITES = {
    "assign": lambda n, f: n.assign(1),
    "assign of NumPy": lambda n, f: f.assign(np.array([1.0, 2.0])),
    "assign of a result": lambda n, f: n.assign(n + 1),
    "assign_add": lambda n, f: n.assign_add(1),
    "assign_sub": lambda n, f: f.assign_sub([1.0, 1.0]),
    "in place": lambda n, f: f.__imul__(2),
    "slice": lambda n, f: f[0].assign(1.0),
    "part": lambda n, f: f[0].assign_add(1.0),
    "State": of_state,
    "pure": in_pure,
    "transaction": in_transaction,
    "compiled": lambda n, f: jv.compile(lambda: n.assign_add(1))(),
    "scan": lambda n, f: jv.compile(
        lambda xs: jv.scan(lambda c, x: (c, n.assign_add(1).value), 0, xs)
    )(jnp.ones(2)),
    "cond": lambda n, f: jv.compile(
        lambda x: jv.cond(x > 0, lambda: n.assign_add(1).value * 0, lambda: n * 0)
    )(1.0),
    "optimizer": by_optimizer,
}


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype:UserWarning")  # JAX's own
@pytest.mark.parametrize("write", NARROW_WRITES.values(), ids=NARROW_WRITES)
def test_what_has_32_bits_is_not_written_to_64(write):
    n, f = wide()
    with pytest.raises((DtypeError, jv.errors.StateError)) as caught:
        write(n, f)
    shown = str(caught.value)
    assert "the variable is int64[], the value int32[]" in shown or (
        f"variable {'f' if 'float64' in shown else 'n'!r} of dtype" in shown
        and "64-bit numbers are off in JAX at test_variable_writes.py:" in shown
        and "    with jax.enable_x64(True):\n" in shown
    )
    assert [n.item(), *f.tolist()] == [BIG, 1 + 1e-12, BIG]
    assert (n.value.dtype, f.value.dtype) == ("int64", "float64")


def test_64_bits_are_kept_by_writes_that_have_them():
    n, f = wide()
    n.assign(n)
    f.assign(f.value)
    f **= 2  # which keeps the dtype
    keep = jv.compile(lambda: n.assign(-n.value).value)
    assert [int(keep()) for _ in range(3)] == [-BIG, BIG, -BIG]
    assert f.numpy()[1] == BIG**2


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype:UserWarning")  # JAX's own
def test_a_step_is_refused_where_64_bits_are_off_and_goes_on_where_they_are_on():
    n, _ = wide()
    step = jv.compile(lambda: n.assign_add(1).value)
    for _ in range(3):
        with jax.enable_x64(True):
            step()
            step()
        with pytest.raises(DtypeError, match="variable 'n' of dtype int64"):
            step()
    assert n.numpy() == BIG + 6


def test_what_has_64_bits_is_not_written_to_32():
    _, f = wide()
    v = V([1.0, 2.0], name="v")
    for write in (v.assign, v.assign_add, lambda x: v[:2].assign_add(x)):
        with pytest.raises(DtypeError, match="float64 to variable 'v' of dtype float32"):
            write(f.value)
    assert v.value.dtype == "float32"
    assert v.tolist() == [1.0, 2.0]


def test_none_of_several_writes_is_made_if_one_does_not_fit():
    n, _ = wide()
    m = V(0, name="m")
    state = jv.State.of(m=m, n=n)

    def both():
        with pytest.raises(DtypeError, match="variable 'n'"):
            LOCAL.frame.modify_all(
                (m._cell, lambda x: x + 1), (n._cell, lambda x: x.astype("int32"))
            )

    _, after = jv.functionalize(both)(state)
    both()
    assert int(after["m"]) == int(m) == 0

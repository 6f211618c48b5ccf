"""What becomes a tensor, with which dtype, and what is refused instead of changed."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.errors import DtypeError, NotATensorError, ShapeError
from jaxvars.random import draws
from jaxvars.tensors.dtypes import as_dtype, bytes_per_device, is_string, nbytes, string
from jaxvars.tensors.spec import TensorSpec
from jaxvars.tensors.tensor import fit, to_tensor


# ---------------------------------------------------------------- dtypes
@pytest.mark.parametrize(("given", "name"), [
    (float, "float32"), (int, "int32"), (complex, "complex64"), (bool, "bool"),
    ("bfloat16", "bfloat16"), (jnp.float16, "float16"), (np.uint8, "uint8"),
    (np.dtype("int8"), "int8"), (jnp.float8_e4m3fn, "float8_e4m3fn"),
])  # fmt: skip
def test_as_dtype(given, name):
    assert as_dtype(given).name == name


@pytest.mark.parametrize("make", [
    lambda: jnp.zeros(16, jnp.int4), lambda: jax.random.split(jax.random.key(0), 16),
    lambda: jnp.zeros((16, 0)), lambda: jnp.zeros((16, 3)),
], ids=["int4", "keys", "empty", "float32"])  # fmt: skip
def test_bytes_are_those_of_jax_also_of_one_device_part(make):
    v = jv.Variable(make(), sharding=jv.shard(make(), jax.P("d"), mesh=jv.mesh({"d": 8})).sharding)
    assert nbytes(v) == v.value.nbytes
    assert bytes_per_device(v) == v.value.addressable_shards[0].data.nbytes
    assert bytes_per_device(jv.Variable(make())) == v.value.nbytes
    assert bytes_per_device(jv.Variable("text")) == 0


@pytest.mark.parametrize("given", [str, bytes, "string", string, np.dtype("<U3"), np.dtype("S2")])
def test_dtypes_of_strings(given):
    assert is_string(as_dtype(given))


WIDE = ["float64", "int64", "uint64", "complex128"]


@pytest.mark.parametrize("wide", [*WIDE, *map(np.dtype, WIDE)])  # np.dtype("float64") == float
def test_64_bit_asked_for_is_refused_with_the_cure(wide):
    with pytest.raises(DtypeError, match=f"(?s){wide} was requested.*jax_enable_x64.*or use"):
        as_dtype(wide)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("wide", ["float64", "int64", "uint64", "complex128", float, int])
def test_64_bit_is_given_where_it_is_on(wide):
    assert as_dtype(wide).itemsize >= 8
    assert to_tensor(1, wide).dtype == as_dtype(wide)


@pytest.mark.parametrize("given", ["floaty", object, np.longdouble, "datetime64[s]", 7])
def test_what_is_no_dtype(given):
    with pytest.raises(NotATensorError, match=r"is not a dtype of tensors; examples: jnp\.float32"):
        as_dtype(given)


def test_the_dtype_of_random_keys():
    key = jax.random.key(0)
    assert as_dtype(key.dtype) == key.dtype
    assert to_tensor(key, key.dtype) is key


# ---------------------------------------------------------------- what becomes a tensor
class Jaxy:
    def __jax_array__(self):
        return jnp.arange(3)


class Numpyish:
    def __array__(self, dtype=None, copy=None):
        return np.arange(3)


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (3.14, "float32", ()),
        (1, "int32", ()),
        (True, "bool", ()),
        (5 + 4j, "complex64", ()),
        (float("inf"), "float32", ()),
        ([1, 2, 3], "int32", (3,)),
        ([1, 2.5], "float32", (2,)),
        ((True, False), "bool", (2,)),
        ([[1, 2], [3, 4]], "int32", (2, 2)),
        (range(4), "int32", (4,)),
        ([], "float32", (0,)),
        (np.float64(2), "float32", ()),
        (np.arange(3), "int32", (3,)),
        (np.ones(2, np.uint64), "uint32", (2,)),
        (np.ones(2, np.float16), "float16", (2,)),
        (np.int8(3), "int8", ()),
        (jnp.ones(2, jnp.bfloat16), "bfloat16", (2,)),
        ([jnp.ones(2), jnp.zeros(2)], "float32", (2, 2)),
        ([1.0, jnp.float32(2)], "float32", (2,)),
        (Jaxy(), "int32", (3,)),
        (Numpyish(), "int32", (3,)),
        (jnp.asarray(1.0), "float32", ()),  # weakly typed before
    ],
)
def test_to_tensor(value, dtype, shape):
    found = to_tensor(value)
    assert isinstance(found, jax.Array)
    assert (found.dtype.name, found.shape, found.weak_type) == (dtype, shape, False)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "bfloat16"])
def test_integers_of_more_than_32_bits_become_floats(dtype: str):
    for found in (fit([2**31, -(2**33)], (2,), jnp.dtype(dtype), "w"),
                  to_tensor([2**31, -(2**33)], dtype)):  # fmt: skip
        assert found.dtype == dtype
        assert found.tolist() == [2.0**31, -(2.0**33)]


@pytest.mark.parametrize(("value", "text"), [
    ("abc", "abc"), (b"abc", "abc"), ("", ""), ("hé 世界\n", "hé 世界\n"),
    (["a", "long text"], ["a", "long text"]), ([["a"], [b"b"]], [["a"], ["b"]]),
    (np.array(["a", "b"]), ["a", "b"]), (np.array(["a", "b"], object), ["a", "b"]),
    (np.array(["a"], string), ["a"]), ("a\0", "a\0"), ([["a\0"], [b"\0"]], [["a\0"], ["\0"]]),
])  # fmt: skip
def test_strings_become_numpy_strings_that_cannot_be_changed(value, text):
    found = to_tensor(value)
    assert found.tolist() == text
    assert is_string(found.dtype)
    assert not found.flags.writeable


@pytest.mark.parametrize("value", [
    None, {}, {"a": 1}, {1}, frozenset(), object(), len, [None], [1, None], [object()], iter([1]),
    np.array([None]), np.array(["a", 1], object),
])  # fmt: skip
def test_what_is_no_tensor(value):
    with pytest.raises(NotATensorError, match=r"^the thing is \w+, which is not a tensor"):
        to_tensor(value, what="the thing")


def test_a_dict_is_refused_with_the_cure():
    with pytest.raises(NotATensorError, match=r"jax\.tree\.map\(jv\.Variable, tree\)"):
        to_tensor({"a": 1})


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([[1], [1, 2]], NotATensorError, "its rows have 1 and 2 elements"),
        ([jnp.ones(2), jnp.ones(3)], NotATensorError, "cannot become a tensor"),
        ([300, jnp.int8(1)], NotATensorError, "cannot become a tensor: .* out of bounds"),
        ([1, "a"], NotATensorError, r"mixes strings and numbers.*str\(\)"),
        ([["a"], [2.5]], NotATensorError, "mixes strings and numbers"),
        (b"\xff", NotATensorError, "not valid UTF-8.*frombuffer"),
        (np.datetime64("2020-01-01"), NotATensorError, r"datetime64\[D\].*astype"),
        (np.array([5], "m8[s]"), NotATensorError, r"timedelta64\[s\]"),
        (2**31, DtypeError, "2147483648.*outside of int32.*jax_enable_x64"),
        (2**70, DtypeError, "more than 64 bits"),
        (np.array([2**40]), DtypeError, "outside of int32.*jax_enable_x64"),
        (1e300, DtypeError, "1e[+]300.*outside of float32.*jax_enable_x64"),
    ],
    ids=repr,
)
def test_what_else_is_refused(value, error, message):
    with pytest.raises(error, match=f"(?s)^the thing .*{message}"):
        to_tensor(value, what="the thing")


@pytest.mark.parametrize(("value", "dtype"), [
    (1, "float32"), (True, "float32"), (True, "int8"), (2, "complex64"), (3, "int4"),
    (255, "uint8"), (1.5, "bfloat16"), (3.4028235e38, "float32"), (float("nan"), "float16"),
    (np.arange(3), "int8"), (np.arange(3.0), "float16"), (jnp.arange(3), "float32"),
    (jnp.arange(3), "uint8"), (jnp.ones(2), "float16"),
])  # fmt: skip
def test_a_dtype_asked_for_is_given(value, dtype):
    found = to_tensor(value, dtype)
    assert found.dtype == dtype
    np.testing.assert_allclose(np.asarray(found, complex), np.asarray(value, complex))


@pytest.mark.parametrize(("value", "dtype", "message"), [
    (1.5, "int32", "is of Python type float, and dtype int32 cannot hold it without loss"),
    (1.5, "int4", "cannot hold it without loss"),
    ([1.5], "int32", r"np\.asarray\(value\)\.astype\('int32'\)"),  # a list has no astype
    (float("nan"), "int32", "cannot hold it without loss"),
    (1j, "float32", "type complex, and dtype float32"), (2, "bool", "type int, and dtype bool"),
    (np.ones(2), "int32", "is float64, and dtype int32"),
    (jnp.ones(2), "int32", "float32, and dtype int32"),
    ("a", "float32", "string, but dtype float32 was requested"),
    (1, "string", r"dtype string was requested: use str\(\)"),
    (300, "uint8", r"is 300, outside of uint8 \(0 to 255\)"),
    ([1, 300], "uint8", r"reaches from 1 to 300, outside of uint8"),
    (-1, "uint32", "outside of uint32"), (9, "int4", "outside of int4"),
    (jnp.arange(3) * 1000, "int8", "from 0 to 2000, outside of int8"),
    (jnp.asarray(-1), "uint8", "outside of uint8"), (1e10, "float16", "outside of float16"),
    (1e6, "float8_e4m3fn", "outside of float8_e4m3fn"),
    (jnp.float32(1e10), "float16", "outside of float16"),
    (jax.random.key(0), "float32", "key<fry>, and dtype float32"),
], ids=repr)  # fmt: skip
def test_nothing_is_lost_to_a_dtype_asked_for(value, dtype, message):
    with pytest.raises(DtypeError, match=f"^it .*{message}") as error:
        to_tensor(value, dtype, what="it")
    assert "x64" not in str(error.value)  # that would be no cure here


# ---------------------------------------------------------------- memory
MASKED = np.ma.array([1.0, 2.0], mask=[False, True])


class Masking:
    def __array__(self, dtype=None, copy=None):
        return MASKED


@pytest.mark.parametrize(
    "value",
    [MASKED, MASKED.astype(np.float32), np.ma.array([1, 2]), [MASKED], [[1.0, np.ma.masked]],
     (jnp.ones(2), MASKED), np.ma.masked, Masking()],
    ids=lambda x: type(x).__name__,
)  # fmt: skip
@pytest.mark.parametrize(
    "convert", [lambda x: to_tensor(x, what="x"), lambda x: fit(x, (2,), np.dtype("f4"), "w")]
)
def test_masked_arrays_are_refused(convert, value):
    message = r"masked array of NumPy was given as (x|the value .*'w'): .*x\.filled\(0\)"
    with pytest.raises(NotATensorError, match=message):
        convert(value)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: jv.ForwardAccumulator(jv.Variable([1.0, 2.0]), x),
        lambda x: jv.cond(x[1] > 0, lambda: 1, lambda: 2),
        lambda x: jv.compile(lambda: jv.while_loop(lambda n: x[1] > 0, lambda n: n, 0))(),
        lambda x: jv.fori_loop(0, x[1].astype(int), lambda i, n: n, 0),
        lambda x: draws.normal(x.astype(int), ()),
        lambda x: draws.choice(0, 2, (), p=x / 2),
    ],
)
def test_masked_arrays_are_refused_where_they_are_not_tensors(use):
    with pytest.raises(NotATensorError, match=r"masked array of NumPy was given as (a|the) "):
        use(np.ma.array([1.0, 1.0], mask=[0, 1]))


SMALL = [
    (np.array([1.0, 1e-60]), None, "float32, which become 0: 1 of 2, for example 1e-60. 64-bit"),
    (1e-60, None, "float32, which become 0: 1 of 1"),
    ([0.0, 1e-9], "float16", "float16, which become 0: 1 of 2, for example 1e-09. Use a wider"),
    (np.float32(1e-9), "float16", r"float16, .* yourself: np.asarray\(value\).astype\('float16'\)"),
    (np.float32([1e-42]), "bfloat16", "bfloat16, which become 0"),
    (jnp.float32(1e-4), "float8_e4m3fn", "float8_e4m3fn, which become 0"),
    (np.array([1 + 1e-60j, 1e-60]), None, "complex64, which become 0: 2 of 2"),
]


@pytest.mark.parametrize(("value", "dtype", "message"), SMALL)
def test_a_number_that_becomes_0_is_said(value, dtype, message):
    with pytest.warns(RuntimeWarning, match=f"x has numbers too small for {message}"):
        to_tensor(value, dtype, what="x")


def test_assign_drops_no_number_that_becomes_0():
    with pytest.raises(DtypeError, match="the value for variable 'w' has numbers too small for"):
        fit(np.array([1.0, 1e-60]), (2,), np.dtype("float32"), "w")
    with pytest.warns(RuntimeWarning, match="the value for variable 'w' has numbers too small"):
        fit([1.0, 1e-60], (2,), np.dtype("float32"), "w")
    assert fit(np.array([0.0, 1e-40]), (2,), np.dtype("float32"), "w").shape == (2,)
    assert fit(np.float32([0.0, np.nan]), (2,), np.dtype("float32"), "w").shape == (2,)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("size", [3, 1_000_000])
def test_numpy_memory_is_copied_at_once(size, dtype):
    source = np.zeros(size, dtype)
    one, two = to_tensor(source), fit(source, (size,), to_tensor(source).dtype, "v")
    source[:] = 9
    assert not one.any()
    assert not two.any()


def test_numpy_strings_are_copied():
    source = np.array(["a", "b"], string)
    found = to_tensor(source)
    source[0] = "changed"
    assert found.tolist() == ["a", "b"]


# ---------------------------------------------------------------- what fits a variable
F32, I32, U8 = np.dtype("float32"), np.dtype("int32"), np.dtype("uint8")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (3, F32),
        (2.5, F32),
        (np.float64(2.5), F32),
        (np.float32(2.5), F32),
        (jnp.asarray(3), F32),  # weakly typed: a number without a requested dtype
        (3, I32),
        (np.int64(3), I32),
        (255, U8),
        (2.5, np.dtype("complex64")),
        (1.5, np.dtype(jnp.bfloat16)),
        (True, np.dtype("bool")),
    ],
)
def test_what_fits(value, dtype):
    found = fit(value, (), dtype, "v")
    assert (found.dtype, found.weak_type) == (dtype, False)
    assert found == value


def test_an_array_that_fits_is_not_copied():
    array = jnp.ones(3)
    assert fit(array, (3,), F32, "v") is array


_AS_FLOAT, _AS_INT = "asarray(value, 'float32')", "jnp.round(value).astype('int32')"


@pytest.mark.parametrize(("value", "dtype", "have", "cure"), [
    (2.5, I32, "Python float", _AS_INT), (2.0, I32, "Python float", _AS_INT),
    (np.float32(2), I32, "value of dtype float32", _AS_INT),
    (1j, F32, "Python complex", "jnp.real(value)"), (True, I32, "Python bool", "'int32')"),
    (1, np.dtype("bool"), "Python int", "value != 0"),
    (np.arange(3), F32, "value of dtype int64", _AS_FLOAT),
    (np.float16(1), F32, "value of dtype float16", _AS_FLOAT),
    (jnp.float16(1), F32, "value of dtype float16", _AS_FLOAT),
    (jnp.arange(3), F32, "value of dtype int32", _AS_FLOAT),
    (jnp.ones(2), np.dtype("float16"), "value of dtype float32", "'float16')"),
    ("a", F32, "value of dtype string", "astype('float32')"),
    (1, string, "value of dtype int64", "astype(str)"),
    (jax.random.key(0), F32, "value of dtype key<fry>", "jax.random.key_data(value)"),
    (1.0, jax.random.key(0).dtype, "Python float", "jax.random.key(1)"),
], ids=repr)  # fmt: skip
def test_another_dtype_is_refused(value, dtype, have, cure):
    want = "string" if is_string(dtype) else str(dtype)
    words = f"Cannot assign a {have} to variable 'v' of dtype {want}: .*{re.escape(cure)}"
    with pytest.raises(DtypeError, match=words):
        fit(value, (), dtype, "v")


@pytest.mark.parametrize(("value", "dtype"), [
    (256, U8), (-1, U8), (2**40, I32), (np.int64(2**40), I32), (1e300, F32), (jnp.asarray(-1), U8),
])  # fmt: skip
def test_a_number_out_of_range_is_refused(value, dtype):
    with pytest.raises(DtypeError, match=f"the value for variable 'v' is .*outside of {dtype}"):
        fit(value, (), dtype, "v")


@pytest.mark.parametrize(("value", "cure"), [
    (1.0, "jnp.broadcast_to(value, (2,))"), ([1.0], "jnp.broadcast_to(value, (2,))"),
    ([1.0, 2.0, 3.0], "Take the part of the value that fits"), ([], "v[:0].assign(value)"),
    ([[1.0, 2.0]], "jnp.reshape(value, (2,))"), (jnp.ones((2, 1)), "jnp.reshape(value, (2,))"),
])  # fmt: skip
def test_another_shape_is_refused(value, cure):
    shape = np.shape(value)
    with pytest.raises(ShapeError) as error:
        fit(value, (2,), F32, "v")
    assert str(error.value).startswith(
        f"Cannot assign a value of shape {shape} to variable 'v' of shape (2,)"
    )
    assert cure in str(error.value)


# ---------------------------------------------------------------- TensorSpec
def test_spec():
    spec = TensorSpec([None, 3], "float32", "x")
    assert (spec.shape, spec.dtype, spec.name) == ((None, 3), F32, "x")
    assert str(spec) == "float32[?,3]"
    assert not spec.is_static
    assert spec == TensorSpec((None, 3), jnp.float32, "x")
    assert hash(spec) == hash(TensorSpec((None, 3), jnp.float32, "x"))
    assert TensorSpec(4).shape == (4,)
    assert TensorSpec.of(jnp.ones((2, 3))) == TensorSpec((2, 3))


@pytest.mark.parametrize(("value", "matches"), [
    (jnp.ones((5, 3)), True), (jnp.ones((0, 3)), True), (jnp.ones((5, 4)), False),
    (jnp.ones(3), False), (jnp.ones((1, 5, 3)), False), (jnp.ones((5, 3), jnp.int32), False),
])  # fmt: skip
def test_spec_matches(value, matches):
    assert TensorSpec((None, 3)).matches(value) is matches


def test_a_spec_of_64_bit_is_refused():
    with pytest.raises(DtypeError, match="float64 was requested"):
        TensorSpec((2,), "float64")


# ---------------------------------------------------------------- integers of 64 bits
WIDE_INTEGERS = np.array([2**40, 1])
CUTS = {
    "argument": lambda x: jv.compile(lambda y: y + 1)(x),
    "scalar argument": lambda x: jv.compile(lambda y: y + 1)(x[0]),
    "unsigned argument": lambda x: jv.compile(lambda y: y + 1)(x.astype(np.uint64)),
    "argument in a dict": lambda x: jv.compile(lambda d: d["a"] + 1)({"a": x}),
    "result": lambda x: jv.compile(lambda: x)(),
    "scan": lambda x: jv.scan(lambda c, y: (c, y), 0, x),
    "scan's state": lambda x: jv.scan(lambda c, y: (c, y), x, jnp.arange(2)),
    "fori_loop": lambda x: jv.fori_loop(0, 2, lambda i, y: y, x),
    "while_loop": lambda x: jv.while_loop(lambda y: False, lambda y: y, x),
    "cond": lambda x: jv.cond(True, lambda y: y, lambda y: y, x),
    "compiled cond": lambda x: jv.compile(lambda p: jv.cond(p, lambda: x, lambda: x))(True),
    "map_fn": lambda x: jv.map_fn(lambda y: y, x),
    "map_fn in batches": lambda x: jv.map_fn(lambda y: y, x, batch_size=2),
    "vectorized_map": lambda x: jv.vectorized_map(lambda y: y, x),
    "shuffle": lambda x: jv.random.shuffle(x),
    "choice": lambda x: jv.random.choice(x),
    "shard": lambda x: jv.shard(x, jax.NamedSharding(jv.mesh({"d": 1}), jax.P("d"))),
    "global_batch": lambda x: jv.parallel.global_batch(
        x, jax.NamedSharding(jv.mesh({"d": 1}), jax.P("d"))
    ),
    "broadcast": jv.parallel.broadcast,
    "all_gather": lambda x: jv.parallel.all_gather({"seed": int(x[0])}),
}


@pytest.mark.parametrize("name", CUTS)
def test_wide_integers_are_not_cut(name: str):
    with pytest.raises(DtypeError, match=r"1099511627776, outside of u?int32"):
        CUTS[name](WIDE_INTEGERS)
    CUTS[name](WIDE_INTEGERS % 1000)


def test_wide_integers_are_not_cut_on_the_hot_path():
    step = jv.compile(lambda x, n: x + n)
    for _ in range(3):
        assert step(np.array([1, 2]), np.int64(3)).tolist() == [4, 5]
    for x, n in [(WIDE_INTEGERS, np.int64(3)), (np.array([1, 2]), WIDE_INTEGERS[0])]:
        with pytest.raises(DtypeError, match=r"argument [xn] of <lambda> .* outside of int32"):
            step(x, n)
    assert step(np.array([1, 2]), np.int64(3)).tolist() == [4, 5]
    with jax.enable_x64(True):
        for _ in range(3):
            assert step(WIDE_INTEGERS, np.int64(3)).tolist() == [2**40 + 3, 4]
    with pytest.raises(DtypeError, match="outside of int32"):
        step(WIDE_INTEGERS, np.int64(3))
    assert step.trace_count == 2

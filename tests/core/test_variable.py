"""A Variable: what it starts from, its name, its use as an array, strings, and how it is shown."""

from __future__ import annotations

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars.core.initial import PLACES, Places
from jaxvars.errors import (
    DtypeError,
    NotATensorError,
    ShapeError,
    StringVariableError,
    UninitializedError,
)

V = jv.Variable


def vector():
    return V([1.0, 2.0, 3.0], name="v")


# ---------------------------------------------------------------- initial values
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: lambda: x, V], ids=["", "call", "var"])
@pytest.mark.parametrize(("value", "dtype", "shape"), [
    (3.14, "float32", ()), ([1, 2, 3], "int32", (3,)), (True, "bool", ()),
    (5 + 4j, "complex64", ()), ([[1.0, 2.0]], "float32", (1, 2)), (np.arange(3), "int32", (3,)),
    (np.ones((2, 0)), "float32", (2, 0)), (np.float16(1), "float16", ()),
    (jnp.ones(2, jnp.bfloat16), "bfloat16", (2,)),
], ids=str)  # fmt: skip
def test_initial_values(value, dtype, shape, wrap):
    v = V(wrap(value), name="v")
    assert (str(v.dtype), v.shape, v.ndim, v.name, v.trainable) == (
        dtype,
        shape,
        len(shape),
        "v",
        True,
    )
    assert isinstance(v.value, jax.Array)
    np.testing.assert_array_equal(v.value, jnp.asarray(value))


def test_a_part_of_a_variable_is_an_initial_value_too():
    assert V(vector()[1:]).numpy().tolist() == [2, 3]


def test_an_initializer_is_called_once():
    calls = []
    v = V(lambda: calls.append(1) or jnp.ones(3))
    assert (calls, v.shape) == ([1], (3,))


def test_an_initializer_may_use_an_argument_of_a_compiled_function():
    made = []

    @jv.compile
    def first(x):
        if not made:
            made.append(V(lambda: x * 2))
        return made[0] * x

    assert float(first(3.0)) == 18.0
    assert float(made[0]) == 6.0


@pytest.mark.parametrize(
    ("value", "dtype"), [(1, "float32"), (1.5, "bfloat16"), (V(2), "float16"), (lambda: 1, "int8")]
)
def test_a_dtype_may_be_given(value, dtype):
    assert V(value, dtype=dtype).dtype == dtype


@pytest.mark.parametrize("dtype", ["float64", jnp.int64, np.complex128])
@pytest.mark.parametrize("value", [1, lambda: 1])
def test_64_bit_asked_for_is_refused_with_the_cure(value, dtype):
    with pytest.raises(DtypeError, match=r"(?s)was requested, but 64-bit numbers are off.*x64"):
        V(value, dtype=dtype)


@pytest.mark.usefixtures("x64")
def test_64_bit_where_it_is_on():
    assert V(1.0, dtype="float64").dtype == "float64"
    assert V(2**40).numpy() == 2**40
    assert V(np.ones(2)).assign_add(1e300).numpy()[0] == 1e300


def test_64_bit_everywhere(run_python):
    program = "import jaxvars as jv; print(jv.Variable(3.14).dtype, jv.Variable([1]).dtype)"
    assert run_python("-c", program, JAX_ENABLE_X64="1").stdout == "float64 int64\n"


def test_a_shape_may_be_given():
    assert V(0.5, shape=(2, 3)).numpy().tolist() == [[0.5] * 3] * 2
    assert V("a", shape=(2,)).numpy().tolist() == ["a", "a"]
    with pytest.raises(ShapeError, match=r"variable 'w' has shape \(2,\).*requested shape, \(3,\)"):
        V([1.0, 2.0], shape=(3,), name="w")


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "NoneType"), ({"a": 1}, "dict"), (object(), "object"), ({1}, "set"), ([None], "list")],
)
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: lambda: x], ids=["", "call"])
def test_what_is_not_a_tensor_is_refused(value, kind, wrap):
    with pytest.raises(
        NotATensorError, match=f"the initial value of variable 'w' is {kind}, which is not a tensor"
    ):
        V(wrap(value), name="w")


def test_a_lossy_dtype_is_refused():
    with pytest.raises(DtypeError, match=r"value of variable 'w' is of Python type float, and"):
        V(1.5, dtype="int32", name="w")


# ---------------------------------------------------------------- names
def test_names():
    assert V(1.0).name == "Variable"
    assert [V(1.0, name="a").name for _ in range(2)] == ["a", "a"]
    assert V(1.0, name="any text: ü/0").name == "any text: ü/0"
    with pytest.raises(TypeError, match="The name of a variable is a string, not 3"):
        V(1.0, name=3)


def test_name_scopes():
    with jv.name_scope("a") as a:
        with jv.name_scope("b/c") as b:
            inner = V(1.0, name="x")
        outer = V(1.0)
    assert (a, b, inner.name, outer.name) == ("a", "a/b/c", "a/b/c/x", "a/Variable")
    assert V(1.0).name == "Variable"


def test_trainable():
    assert not V(1.0, trainable=False).trainable
    v = V(1.0)
    v.trainable = False
    with jv.GradientTape() as tape:
        y = v * 2.0
    assert tape.gradient(y, v, unconnected_gradients="zero") == 0.0


# ---------------------------------------------------------------- use in JAX code
@pytest.mark.parametrize("use", [
    jnp.argmax, lambda v: jnp.matmul(v, v), lambda v: jnp.stack([v, v[::-1]]),
    lambda v: jnp.where(v > 1, v, 0), lambda v: jnp.einsum("i,j->ij", v, v),
    lambda v: jnp.linalg.norm(v), lambda v: jnp.sum(v[1:]), jnp.asarray, jnp.ones_like, jax.nn.relu,
    jax.nn.softmax, lambda v: jax.nn.one_hot(v[0].astype(int), 3),
    lambda v: optax.l2_loss(v, jnp.ones(3)),
    lambda v: optax.softmax_cross_entropy_with_integer_labels(v, jnp.asarray(1)),
    lambda v: optax.tree.norm({"v": v}),
    lambda v: jax.random.permutation(jax.random.key(0), v),
    lambda v: jax.lax.exp(v.value if isinstance(v, V) else v),
    lambda v: jax.tree.map(lambda x: 2 * x, {"a": v})["a"],
    lambda v: jax.jit(lambda x: x + 1)(v), lambda v: jax.vmap(lambda x: x + 1)(v),
    lambda v: jax.grad(lambda x: (x**2).sum())(v), lambda v: jax.jvp(jnp.sin, (v,), (v,))[1],
    lambda v: jax.lax.scan(lambda c, x: (c + x, c), 0.0, v)[0],
    lambda v: jax.lax.cond(True, jnp.sin, jnp.cos, v), lambda v: jax.eval_shape(jnp.sin, v),
    lambda v: optax.adam(0.1).init([v])[0].mu[0],
])  # fmt: skip
def test_jax_takes_it_for_an_array(use):
    v = vector()
    found, expected = use(v), use(v.value)
    assert type(found) is type(expected)
    assert found == expected if found is None else True
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if isinstance(found, jax.Array):
        np.testing.assert_array_equal(found, expected)


def test_as_a_pytree_it_reads_and_becomes_a_plain_array():
    v = vector()
    leaves, treedef = jax.tree.flatten(v)
    assert leaves[0] is v.value
    assert jax.tree.unflatten(treedef, [7.0]) == 7.0
    assert jax.tree.flatten(v[0])[0] == [1.0]


# ---------------------------------------------------------------- strings
def test_strings_are_created_read_compared_and_assigned():
    v = V(["abc", "de"], name="names")
    assert (v.dtype, v.shape, v.size) == (np.dtypes.StringDType(), (2,), 2)
    assert isinstance(v.value, np.ndarray)
    assert v.numpy().tolist() == ["abc", "de"]
    assert (v == "abc").tolist() == [True, False]
    assert (v < V(["b", "b"])).tolist() == [True, False]
    assert v[0] == "abc"
    assert v.assign(["a longer text", b"bytes"]) is v
    assert list(v) == ["a longer text", "bytes"]
    assert "bytes" in v
    assert V("scalar").item() == "scalar"
    assert V("a") + "b" == "ab"
    assert "a" + V("b") == "ab"


def test_strings_are_printed():
    assert repr(V("abc", name="s")) == "<Variable 's' string[] 'abc'>"
    assert str(V(["a", "b"])) == "<Variable 'Variable' string[2] ['a' 'b']>"


def test_strings_under_a_tape_are_read_as_they_are():
    v = V(["a", "b"])
    with jv.GradientTape():
        assert v.value is v.value
        assert v.value.tolist() == ["a", "b"]


def test_strings_cannot_be_changed_behind_the_variable():
    v = V(["a", "b"])
    with pytest.raises(ValueError, match="read-only"):
        v.value[0] = "changed"
    mine, copied = v.numpy(), V(v)
    mine[0] = "changed"
    copied.assign(["x", "y"])
    assert v.numpy().tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("one", ShapeError, r"shape \(\) to variable 's' of shape \(2,\)"),
        ([1, 2], DtypeError, r"int64 to variable 's' of dtype string: .*astype\(str\)"),
        (None, NotATensorError, "variable 's' is NoneType"),
        (["a", 1], NotATensorError, "mixes strings and numbers"),
    ],
)
def test_strings_refuse_what_does_not_fit(value, error, message):
    v = V(["a", "b"], name="s")
    with pytest.raises(error, match=message):
        v.assign(value)
    assert v.numpy().tolist() == ["a", "b"]


@pytest.mark.parametrize("change", [
    lambda v: v.assign_add("x"), lambda v: v[0].assign("x"), lambda v: v[:1].assign(["x"]),
])  # fmt: skip
def test_strings_change_as_a_whole(change):
    v = V(["a", "b"], name="s")
    with pytest.raises(NotATensorError, match="Variable 's' holds strings: only assign changes it"):
        change(v)


@pytest.mark.parametrize("use", [lambda v: v.value, lambda v: v == "a", lambda v: v.assign(["b"])])
def test_strings_are_refused_in_compiled_code(use):
    v = V(["a"], name="s")
    with pytest.raises(StringVariableError, match=r"'s' holds strings.*test_variable\.py.*s\.item"):
        jv.compile(lambda x: (use(v), x)[1])(1.0)
    assert v.numpy().tolist() == ["a"]


# ---------------------------------------------------------------- display
@pytest.mark.parametrize(
    ("variable", "text"),
    [
        (lambda: V(1.5), "<Variable 'Variable' float32[] 1.5>"),
        (lambda: V([1, 2], name="n"), "<Variable 'n' int32[2] [1 2]>"),
        (lambda: V(True, trainable=False), "<Variable 'Variable' bool[] trainable=False True>"),
        (lambda: V(jnp.zeros((1, 2), jnp.bfloat16)), "<Variable 'Variable' bfloat16[1,2] [[0 0]]>"),
        (lambda: V(jax.random.key(0)), "<Variable 'Variable' key<fry>[] [0 0]>"),
    ],
)
def test_repr(variable, text):
    assert repr(variable()) == str(variable()) == text


def test_a_large_value_is_cut():
    assert len(repr(V(jnp.zeros((1000, 1000))))) < 200


def test_a_part_is_printed_as_an_array_is():
    part = V([1.0, 2.0])[0]
    assert (str(part), f"{part}", repr(part)) == ("1.0", "1.0", repr(jnp.float32(1.0)))


def test_repr_in_compiled_code_shows_no_value():
    v, shown = vector(), []
    jv.compile(lambda: shown.append(repr(v)))()
    assert shown == ["<Variable 'v' float32[3] (traced)>"]


# ---------------------------------------------------------------- Python numbers
@pytest.mark.parametrize("dtype", ["int8", "int32", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
def test_a_number_counts_as_a_list_of_it(dtype, method):
    def outcome(shape, given):
        v = jv.Variable(jnp.ones(shape).astype(dtype), name="v")
        try:
            getattr(v, method)(given)
        except (DtypeError, RuntimeWarning) as error:  # too small for float16
            return str(error)[:13]
        return v.dtype, v.numpy().tobytes()

    small = [0, 1, -3, 2**24 + 1, 2**53 + 1, 2**31, -(2**31), 2**40, 0.0, -0.0, 0.1, 1e-38, 1e38]
    for number in [*small, float("nan"), float("inf"), 1e39, True]:
        assert outcome((), number) == outcome((1,), [number])


def test_numbers_are_added_by_threads_and_in_compiled_functions():
    v = jv.Variable(0, name="v")
    step = jv.compile(lambda: v.assign_add(1))

    def add():
        for _ in range(200):
            v.assign_add(1)
            step()

    run_in_threads(*[add] * 4)
    assert int(v) == 1600


def test_a_donated_value_is_not_added_to():
    v = jv.Variable(jnp.ones(3), name="v")
    jax.jit(lambda x: x + 1, donate_argnums=0)(v.value)
    with pytest.raises(UninitializedError, match=r"'v' is used at .*then donated"):
        v.assign_add(1.0)
    with pytest.raises(UninitializedError, match=r"'v' is used at .*then donated"):
        v + 1.0
    assert v.assign(jnp.ones(3)).assign_add(1.0).numpy().tolist() == [2.0] * 3


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v)), V,
        lambda v: V(v.value), lambda v: V(lambda: v.value),
    ],
)  # fmt: skip
def test_copies_keep_64_bits_where_they_are_off(copied):
    with jax.enable_x64(True):
        variables = [V(np.int64(2**40 + 1)), V(1 + 1e-12), V(np.uint64(7)), V(1j * 2.0**-1000)]
    for v in variables:
        new = copied(v)
        assert new.dtype == new.value.dtype == v.dtype
        assert new.numpy().tobytes() == v.numpy().tobytes()


@pytest.mark.skipif(len(jax.devices("cpu")) < 2, reason="needs 2 CPU devices: see conftest.py")
def test_without_places_a_variable_is_nowhere_in_particular():
    device = jax.devices("cpu")[1]
    placed = jv.Variable(1.0, sharding=device)
    assert placed._cell.sharding is not None
    assert pickle.loads(pickle.dumps(placed)).device == device
    plugged_in, PLACES[0] = PLACES[0], Places()
    try:
        with jv.device("CPU:1"):
            v = jv.Variable(2.0)
        copied = pickle.loads(pickle.dumps(placed))
    finally:
        PLACES[0] = plugged_in
    assert v._cell.sharding is None
    assert copied._cell.sharding is None
    assert (float(v), float(copied)) == (2.0, 1.0)


def test_completion_lists_what_an_array_has_and_each_is_there():
    v = jv.Variable([[1.0, 2.0]])
    assert {"assign", "at", "mean", "sum", "tolist", "value"} <= {*dir(v)}
    missing = [name for name in dir(v) if name[0] != "_" and not hasattr(v, name)]
    assert missing == []
    assert {"sum", "assign"} <= {*dir(v[:1])}


def test_one_element_is_an_item_and_a_cast_takes_what_that_of_an_array_does():
    v = jv.Variable([[1.0, 2.0]])
    assert (v.item(1), v.item(0, 1), v[0, 1].item()) == (2.0, 2.0, 2.0)
    assert v.astype(jnp.int32, copy=True).tolist() == [[1, 2]]


def test_a_generic_compiled_function_is_an_annotation_when_it_is_evaluated():
    annotation = jv.Function[[jax.Array], jax.Array]
    assert annotation.__origin__ is jv.Function
    assert annotation.__args__ == ((jax.Array,), jax.Array)

"""What is an array though it is neither JAX's nor NumPy's, and how its numbers are read."""

from __future__ import annotations

import array
import ctypes
import enum
import mmap
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.errors import NotATensorError, UninitializedError
from jaxvars.objects.identity import Weak
from jaxvars.tensors.foreign_arrays import in_numpy, is_foreign_array, read, with_numbers
from jaxvars.tensors.tensor import own_copy


class ByArray:
    """An array by `__array__`, which cannot be told by `==` or a hash, like `tf.Variable`."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.numbers, dtype)

    def __eq__(self, other):
        raise TypeError("elementwise")

    def __hash__(self):
        raise TypeError("Variable is unhashable")


class ByDLPack:
    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def __dlpack__(self, **options):
        return self.numbers.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.numbers.__dlpack_device__()


class ByInterface:
    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    @property
    def __array_interface__(self):
        return self.numbers.__array_interface__


class OnItself:
    """One whose protocol is an attribute of the object, as NumPy's documentation shows it."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers
        self.__array_interface__ = numbers.__array_interface__


KINDS = [ByArray, ByDLPack, ByInterface, OnItself, memoryview]


def ones(count: int) -> np.ndarray:
    return np.ones(count, np.float32)


def key_of(value: Any) -> Any:
    return with_numbers(("a", frozenset({Weak(value)})))


# ---------------------------------------------------------------- what is one
@pytest.mark.parametrize("kind", KINDS)
def test_what_numpy_or_dlpack_understands_is_one(kind):
    given = ones(3)
    value = kind(given)
    assert is_foreign_array(value)
    found = read(value, "x")
    np.testing.assert_array_equal(found, given, strict=True)
    given[0] = 5
    assert np.asarray(found)[0] == 5  # it was not copied


@pytest.mark.parametrize("value", [
    array.array("d", [1, 2]), (ctypes.c_float * 2)(1, 2), ctypes.c_int(3), mmap.mmap(-1, 2),
    memoryview(b"ab"), memoryview(np.ones((2, 2), complex)),
])  # fmt: skip
def test_buffers_of_numbers_are(value):
    assert is_foreign_array(value)
    np.testing.assert_array_equal(read(value, "x"), np.asarray(value), strict=True)


class AnyAttribute:
    def __getattr__(self, name):
        return self


class AnyAttributeOfItsClass(type):
    def __getattr__(cls, name):
        return cls


class Shy:
    __array__ = None


class Words(enum.Enum):
    ONE = ByArray(ones(1))

    def __array__(self, *_, **__):
        return ones(1)


class Frozen:
    __slots__ = ()


@jax.tree_util.register_static
class Registered(ByArray):
    pass


class Holding(jv.Module):
    def __array__(self, *_, **__):
        return ones(1)


@pytest.mark.parametrize("value", [
    jnp.ones(2), ones(2), np.float32(1), 1, 1.5, 2j, True, None, "one", b"one", bytearray(b"one"),
    [1.0], (1.0,), {"a": 1.0}, {1}, range(3), object(), ByArray, np.ndarray, np.dtype("float32"),
    np.poly1d([1, 2]), AnyAttribute(), AnyAttributeOfItsClass("Made", (), {})(), Shy(), Words.ONE,
    Frozen(), Registered(ones(1)), Holding(), np, ctypes.c_void_p(1),
    array.array("u", "ab"), memoryview(np.array(["ab"])), jax.ShapeDtypeStruct((2,), jnp.float32),
    jv.TensorSpec((2,)), jv.Variable([1.0, 2.0]), jv.Variable([1.0, 2.0])[:1], jax.random.key(0),
], ids=lambda x: type(x).__name__)  # fmt: skip
def test_what_is_none(value):
    assert not is_foreign_array(value)
    assert value is own_copy(value, "x") or isinstance(value, np.ndarray)


def test_a_released_buffer_is_none():
    view = memoryview(b"ab")
    view.release()
    assert not is_foreign_array(view)


# ---------------------------------------------------------------- what it holds
class Failing:
    error: BaseException = KeyError("page 3")

    def __array__(self, *_, **__):
        raise self.error


def test_what_cannot_be_read_is_refused_with_the_reason():
    with pytest.raises(NotATensorError, match=r"v cannot become a tensor: at test_foreign.*Failing "
                       r"that NumPy and DLPack cannot read \('page 3'\)"):  # fmt: skip
        read(Failing(), "v")
    value = Failing()
    value.error = UninitializedError("read too early")
    with pytest.raises(UninitializedError, match="too early"):
        read(value, "v")
    value.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        read(value, "v")


def test_numbers_that_numpy_does_not_have_come_by_dlpack():
    for dtype in ("bfloat16", "float8_e5m2"):
        found = in_numpy(ByDLPack(jnp.full((2, 3), 1.5, dtype)))
        assert (found.dtype, found.shape, float(found[0, 0])) == (dtype, (2, 3), 1.5)
    strided = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    np.testing.assert_array_equal(in_numpy(ByDLPack(strided)), strided)


def test_contents_are_known_by_all_bits():
    value = ByArray(np.zeros(2))
    before = key_of(value)
    assert before == key_of(ByArray(np.zeros(2)))
    value.numbers[0] = -0.0
    assert before != key_of(value)
    assert before != key_of(ByArray(np.zeros(2, np.float32)))
    assert before != key_of(ByArray(np.zeros((2, 1))))
    words = ByArray(np.array(["a", "b"], object))
    assert key_of(words) == key_of(ByArray(np.array(["a", "b"], object)))
    assert key_of(words) != key_of(ByArray(np.array(["a", "c"], object)))
    for unknown in (ByArray(np.array([1, {}], object)), Failing()):
        assert key_of(unknown) != key_of(unknown)
    other = Shy()
    assert key_of(other) == ("a", frozenset({Weak(other)}))


def test_contents_that_are_traced_count_by_identity():
    @jax.jit
    def check(x):
        value = ByArray(x)
        assert key_of(value) == ("a", frozenset({Weak(value)}))

    check(1.0)


# ---------------------------------------------------------------- where they are taken eagerly
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_handed_to_the_library_is_copied(kind):
    given = ones(3)
    v, w, mean = jv.Variable(kind(given)), jv.Variable(ones(3)), jv.metrics.Mean()
    w.assign_add(kind(given))
    mean.update_state(kind(given))
    total = w + kind(given)
    state = jv.State.of(w=w).replace({"w": kind(given)})
    jv.optimizers.SGD(1.0).apply_gradients([(kind(given), v)])
    given[:] = 9
    found = [v.numpy(), w.numpy(), np.asarray(total), np.asarray(state["w"]), float(mean.result())]
    assert [np.unique(x).tolist() for x in found] == [[0], [2], [3], [1], [1]]


def test_variables_are_compared_with_them_by_element():
    v = jv.Variable([1.0, 2.0])
    for kind in KINDS:
        assert (v == kind(ones(2))).tolist() == [True, False]
        assert (v != kind(ones(2))).tolist() == [False, True]


def test_specs_of_them():
    for kind in KINDS:
        assert jv.TensorSpec.of(kind(ones(3))) == jv.TensorSpec((3,))
    assert jv.TensorSpec.of(jv.Variable([1.0])) == jv.TensorSpec((1,))


def test_objects_are_refused_with_the_cure():
    for numbers, match in [([1, "a"], "of Python's objects.*such as 1:.*np.asarray"),
                           ([{}, 2.0], "such as {}")]:  # fmt: skip
        with pytest.raises(NotATensorError, match=match):
            jv.Variable(ByArray(np.array(numbers, object)))


# ---------------------------------------------------------------- PyTorch
@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def test_tensors_of_pytorch_are_read_as_they_are(torch):
    z = torch.tensor([1 + 2j, 3 - 4j])
    for value in (
        torch.ones(2, 3), torch.arange(3), torch.ones(3) > 0, torch.ones(3, 4).t()[::2],
        torch.ones(1).expand(4), torch.ones(0, 3), torch.tensor(2.0), z, torch.ones(2).double(),
        torch.ones(2, dtype=torch.uint16),
    ):  # fmt: skip
        assert is_foreign_array(value)
        np.testing.assert_array_equal(in_numpy(value), value.numpy(), strict=True)
    assert in_numpy(z.conj()).tolist() == [1 - 2j, 3 + 4j]
    assert in_numpy(z.conj().imag).tolist() == [-2, 4]  # whose sign is a mark of its own
    assert in_numpy(torch.ones(2).bfloat16()).dtype == jnp.bfloat16
    assert in_numpy(torch.ones(2).to(torch.float8_e4m3fn)).dtype == jnp.float8_e4m3fn


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_tensors_of_pytorch_without_numbers_are_refused(torch):
    for value, cure in [
        (torch.eye(3).to_sparse(), r"Pass x\.to_dense\(\)"),
        (torch.ones(3, device="meta"), "no numbers: a jv.TensorSpec stands for it"),
        (torch.ones(2, dtype=torch.complex32), "in an array of NumPy or JAX"),
    ]:
        for use in (jv.Variable, jv.Variable([1.0, 2.0, 3.0]).assign):
            with pytest.raises(NotATensorError, match=cure):
                use(value)
    module = torch.nn.Linear(2, 2)
    assert not is_foreign_array(module)
    assert jv.Variable(module.bias).shape == (2,)  # its value: nothing is said of gradients


def test_no_library_is_imported(run_python):
    code = """
import array, sys
import jaxvars as jv
print(jv.compile(lambda x: x.sum())(array.array("f", [1.0, 2.0])))
print({"torch", "pandas", "xarray", "PIL", "tensorflow"} & {*sys.modules})
"""
    done = run_python("-c", code)
    assert (done.stdout, done.returncode) == ("3.0\nset()\n", 0), done.stderr


def test_a_library_that_is_half_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", type(sys)("torch"))
    assert in_numpy(ByDLPack(ones(2))).tolist() == [1, 1]

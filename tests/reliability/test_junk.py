"""What makes no sense is refused with a clear error, and leaves everything as it was."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxvars as jv
from jaxvars.core.frame import FAST_PATH_BLOCKERS
from jaxvars.core.frames import LOCAL
from jaxvars.errors import CompileError, JaxvarsError, NotATensorError, StateError, TapeError
from jaxvars.tracing import context

counter = jv.Variable(0, name="counter")


@jv.compile
def count() -> Any:
    counter.assign_add(1)
    return counter * 1


class Model(jv.Module):
    def __init__(self) -> None:
        self.n = jv.Variable(0.0)

    @jv.compile
    def add(self, x: Any) -> Any:
        self.n.assign_add(x)
        return self.n * 1


class Claims:
    """Says that it is an array, and is not."""

    def __jax_array__(self) -> Any:
        return "no"


def endless() -> list[Any]:
    junk: list[Any] = [1.0]
    junk.append(junk)
    return junk


# ---------------------------------------------------------------- values
VALUES: dict[str, tuple[Callable[[], Any], str]] = {
    "endless": (endless, "is a list that contains itself"),
    "claims": (Claims, "a Claims, whose __jax_array__ returned a str"),
    "big-endian": (lambda: np.arange(3, dtype=">f4"), "dtype >f4, which JAX does not have"),
    "structured": (lambda: np.zeros(3, [("a", "f4")]), r"JAX does not have .*x\['a'\], one of its"),
    "dict inside": (lambda: [{"a": (jnp.ones(()), 1)}], "it contains a dict"),
    "void": (lambda: np.zeros(3, "V4"), "which JAX does not have"),
}


@pytest.mark.parametrize("name", VALUES)
def test_what_is_not_a_tensor_is_refused_by_name(name: str):
    make, message = VALUES[name]
    with pytest.raises(NotATensorError, match=rf"variable 'v' .*{message}"):
        jv.Variable(make(), name="v")
    v = jv.Variable(jnp.zeros(3), name="v")
    with pytest.raises((NotATensorError, jv.errors.DtypeError), match="variable 'v'"):
        v.assign(make())
    assert v.numpy().tolist() == [0.0, 0.0, 0.0]


# ---------------------------------------------------------------- values of any kind
class Subclass(np.ndarray):
    """An array of a class that NumPy does not know."""


def dtype_of(name: str) -> Any:
    return np.dtype(name) if name[0] in ">SOM" else jnp.dtype(name)


FORMS: list[Callable[[np.ndarray], Any]] = [
    lambda x: x,
    lambda x: np.broadcast_to(x, x.shape),  # read-only
    lambda x: np.stack([x, x], -1)[..., 0],  # not contiguous
    lambda x: np.ma.masked_array(x, mask=True),
    lambda x: x.view(Subclass),
    lambda x: x.reshape(-1)[:1].view([("a", x.dtype)]) if x.size and x.dtype != "O" else x,
    lambda x: x[()],
    lambda x: jnp.asarray(x) if x.dtype.isnative and x.dtype.kind in "biufc" else x,
]
DTYPES = ["bool", "int8", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64",
          "complex64", "int4", "float8_e5m2", ">f4", "S2", "O", "M8[s]"]  # fmt: skip
SHAPES = [(), (1,), (2,), (0,), (2, 2)]
arrays = st.builds(
    lambda shape, dtype, form: form(np.ones(shape).astype(dtype_of(dtype))),
    st.sampled_from(SHAPES), st.sampled_from(DTYPES), st.sampled_from(FORMS),
)  # fmt: skip
numbers = [0, 1, -3, 300, 2**70, -(2**31) - 1, 0.5, -0.0, 1e39, np.nan, np.inf, 3j, True]
objects = [
    None, object(), len, int, jnp.float32, Claims(), endless(), {1, 2}, range(2), ..., "x", b"",
]  # fmt: skip
junk: st.SearchStrategy[Any] = st.recursive(
    st.one_of(arrays, st.sampled_from(numbers), st.sampled_from(objects)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    ),
    max_leaves=4,
)
kept = [
    jv.Variable(jnp.full(shape, 2, dtype), name=f"v{i}")
    for i, (shape, dtype) in enumerate([((2,), "float32"), ((), "int8"), ((1,), "complex64")])
]
UPDATES: list[Callable[[jv.Variable, Any], Any]] = [
    lambda v, x: v.assign(x),
    lambda v, x: v[...].assign(x),
    lambda v, x: jv.State.of({v.name: v}).replace({v.name: x}).commit(),
    lambda v, x: v.assign(x if callable(x) else jv.Variable(x, name=v.name)),
]

unchanged = jv.compile(lambda x: x)


def refusal(action: Callable[[], Any]) -> JaxvarsError | None:
    try:
        action()
    except JaxvarsError as error:
        return error
    return None


def is_accepted_or_refused(v: jv.Variable, update: Callable[..., Any], x: Any) -> None:
    """Check that a value is taken exactly, or refused with the variable's name."""
    before = v.numpy()
    if error := refusal(lambda: update(v, x)):
        assert v.name in str(error), error
        assert v.numpy().tobytes() == before.tobytes()
    else:
        given = np.asarray(x)
        assert given.shape == before.shape or update is UPDATES[1]  # a part is broadcast to
        assert given.dtype.kind in "biufcV"
        given = np.broadcast_to(given, before.shape)
        assert np.array_equal(v.numpy(), given.astype(before.dtype), equal_nan=True)
        assert np.allclose(v.numpy().astype(complex), given.astype(complex), equal_nan=True)
    assert v.numpy().dtype == before.dtype
    v.assign(jnp.asarray(before))


def is_returned_or_refused(x: Any) -> None:
    """Check that an argument goes through a compiled function as it is, or not at all."""
    results: list[Any] = []
    if error := refusal(lambda: results.append(unchanged(x))):
        assert "rgument" in str(error), error
    else:
        assert jax.tree.structure(results[0]) == jax.tree.structure(x)
        for one, other in zip(jax.tree.leaves(results), jax.tree.leaves(x), strict=True):
            if isinstance(one, jax.Array):
                assert np.array_equal(one, np.asarray(other).astype(one.dtype), equal_nan=True)
            else:
                assert type(one) is type(other)
    assert unchanged(1.5) == 1.5


def is_taken_or_refused(count: int) -> Any:
    @pytest.mark.filterwarnings(
        "ignore::jaxvars.errors.RetraceWarning", "ignore:overflow encountered in cast"
    )
    @settings(max_examples=count)
    @given(x=junk, v=st.sampled_from(kept), update=st.sampled_from(UPDATES))
    def test(x: Any, v: jv.Variable, update: Any) -> None:
        is_accepted_or_refused(v, update, x)
        is_returned_or_refused(x)

    return test


test_junk_is_taken_exactly_or_refused = is_taken_or_refused(100)
test_much_junk_is_taken_exactly_or_refused = pytest.mark.slow(is_taken_or_refused(10_000))


def test_an_argument_that_contains_itself_is_refused_and_python_can_still_recurse():
    step = jv.compile(lambda x: x)
    for junk in (endless(), {"a": endless()}, (endless(),)):
        with pytest.raises(CompileError, match="contains itself, or is nested too deeply"):
            step(junk)

    def deep(n: int) -> int:
        return n and deep(n - 1)

    assert deep(300) == 0
    assert step(1) == 1


def test_a_state_is_replaced_by_a_mapping():
    state = jv.State.of(jv.Variable(1.0, name="w"))
    for junk in ([], None, 3.0):
        with pytest.raises(StateError, match=f"takes a dict .* not {type(junk).__name__}"):
            state.replace(junk)  # pyright: ignore[reportArgumentType]


# ---------------------------------------------------------------- pickles
def test_a_compiled_function_of_a_module_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(count)) is count
    assert copy.copy(count) is count
    with pytest.raises((pickle.PicklingError, AttributeError), match=r"<lambda>|local"):
        pickle.dumps(jv.compile(lambda: 1))


def test_a_compiled_method_is_pickled_with_its_object():
    model = Model()
    model.add(2.0)
    again = pickle.loads(pickle.dumps(model.add))
    assert float(again(1.0)) == 3.0
    assert float(model.n) == 2.0


def test_a_state_is_pickled_by_paths_and_put_into_other_variables():
    model = Model()
    model.add(2.0)
    loaded = pickle.loads(pickle.dumps(jv.State.of(model)))
    assert dict(loaded) == {"n": 2.0}
    pure = jv.functionalize(model.add)
    for use in (loaded.commit, lambda: pure(loaded, 1.0)):
        with pytest.raises(StateError, match=r"came out of a pickle(.|\n)*replace\(state\)"):
            use()
    other = Model()
    jv.State.of(other).replace(loaded).commit()
    assert float(other.n) == 2.0


# ---------------------------------------------------------------- tapes
def is_clean() -> bool:
    return (
        context.current() is context.EVAL and not FAST_PATH_BLOCKERS and not LOCAL.frame.observers
    )


def test_tapes_closed_out_of_order_say_so_and_leave_nothing_open():
    w = jv.Variable(2.0)
    outer, inner = jv.GradientTape(), jv.GradientTape()
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(TapeError, match=r"closed at test_junk.py:\d+, in .* out of order"):
        outer.__exit__(None, None, None)
    assert float(w * w) == 4.0  # there are no listeners
    with pytest.raises(TapeError, match="reverse order of opening"):
        inner.__exit__(None, None, None)
    assert is_clean()
    with jv.GradientTape() as tape:
        y = w * w
    assert float(tape.gradient(y, w)) == 4.0


def test_tapes_that_stay_open_over_await():
    w = jv.Variable(2.0)

    async def gradient(turns: int) -> float:
        with jv.GradientTape() as tape:
            y = w * 3.0
            for _ in range(turns):
                await asyncio.sleep(0)
            y = y * w
        return float(tape.gradient(y, w))

    async def several(*turns: int) -> list[Any]:
        return await asyncio.gather(*map(gradient, turns), return_exceptions=True)

    for turns in ((1, 1), (1, 3, 2)):
        results = asyncio.run(several(*turns))
        assert all(x == 12.0 or isinstance(x, TapeError) for x in results), results
        assert any(isinstance(x, TapeError) and "await" in str(x) for x in results)
        assert is_clean()
    assert asyncio.run(several(2)) == [12.0]
    assert asyncio.run(several(3, 1)) == [12.0, 12.0]  # one inside the other

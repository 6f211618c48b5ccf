"""What a call looks like to the cache: traced, static or itself, and the same by any spelling.

Rules of this file:
- a function under test counts its traces by appending to a list: Python runs only then.
"""

from __future__ import annotations

import array
import enum
import functools
import gc
import re
import weakref
from collections import Counter, UserDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars.compiler.signature import (
    Itself,
    Signature,
    Static,
    Traced,
    content_of,
    leaf_of,
    name_of,
)
from jaxvars.errors import CompileError, DtypeError, NotATensorError, RetraceWarning


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2


@dataclass(frozen=True)
class Config:
    scale: float
    name: str = "c"


class Pair(NamedTuple):
    a: Any
    b: Any


def counted(fn: Callable[..., Any], **options: Any) -> tuple[jv.Function, list[None]]:
    """Compile `fn`; the list grows by one for each trace."""
    runs: list[None] = []

    def body(*args: Any, **kwargs: Any) -> Any:
        runs.append(None)
        return fn(*args, **kwargs)

    body.__signature__ = Signature(fn, (), None)._signature
    return jv.compile(body, **options), runs


# ---------------------------------------------------------------- leaves
def test_numbers_and_arrays_are_traced():
    for value in (1, 1.5, 2j, np.float32(1), np.ones(3), jnp.ones(3), np.bool_(True)):
        assert isinstance(leaf_of(value), Traced), value


def test_a_number_is_weak_and_an_array_is_not():
    assert leaf_of(1.5) == Traced((), jnp.dtype("float32"), True)
    assert leaf_of(jnp.float32(1.5)) == Traced((), jnp.dtype("float32"), False)
    assert leaf_of(np.float64(1.5)) == Traced((), jnp.dtype("float32"), False)


def test_static_values_of_other_types_differ_even_if_equal():
    assert leaf_of(True) != leaf_of(1)
    assert Static(1) != Static(1.0)
    assert Static(0.0) != Static(-0.0)
    assert Static(float("nan")) == Static(float("nan"))
    assert leaf_of(Config(1)) != leaf_of(Config(True))


class Steps:
    @jv.compile
    def step(self) -> Any:
        return self.w.assign_add(1.0)


class Liar(Steps):
    """Equal to all of its kind."""

    def __init__(self, name: str = "") -> None:
        self.w = jv.Variable(0.0)
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Liar)

    def __hash__(self) -> int:
        return 1


@dataclass(frozen=True)
class Frozen(Steps):
    name: str
    w: Any = field(default_factory=lambda: jv.Variable(0.0), compare=False)


@dataclass(frozen=True)
class Deep(Steps):
    parts: Any
    act: Any = jnp.tanh

    @property
    def w(self) -> jv.Variable:
        return self.parts[0]["w"]


@dataclass(frozen=True)
class FrozenModule(Steps, jv.Module):
    title: str
    w: Any = field(default_factory=lambda: jv.Variable(0.0), compare=False)


@dataclass(frozen=True)
class Lazy:
    """Has its variable from the first call on, against the rules of its kind."""

    name: str

    @jv.compile
    def step(self) -> Any:
        if not hasattr(self, "w"):
            object.__setattr__(self, "w", jv.Variable(0.0))
        return self.w.assign_add(1.0)  # pyright: ignore[reportAttributeAccessIssue]


class Layer:
    """Told by identity, like a function, were it not for its variable."""

    def __init__(self) -> None:
        self.w = jv.Variable(0.0)

    def __getitem__(self, name: str) -> jv.Variable:
        return self.w

    def __call__(self, x: Any) -> Any:
        return self.w * x


HOLDERS: dict[str, Callable[[], Any]] = {
    "class with an __eq__": Liar,
    "frozen dataclass": lambda: Frozen("a"),
    "variable deep inside": lambda: Deep(({"w": jv.Variable(0.0)},)),
    "callable with a variable": lambda: Deep((Layer(),)),
    "module": lambda: FrozenModule("a"),
    "variable on the first call": lambda: Lazy("a"),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_two_equal_objects_with_variables_are_two_objects(name: str):
    one, other = HOLDERS[name](), HOLDERS[name]()
    for _ in range(4):
        one.step()
        other.step()
        other.step()
    assert (float(one.w), float(other.w)) == (4.0, 8.0)
    step = jv.compile(lambda model, x: model.w.assign_add(x))
    for _ in range(3):
        step(one, 1.0)
        step(model=other, x=2.0)
    assert (float(one.w), float(other.w)) == (7.0, 14.0)


@pytest.mark.parametrize("name", HOLDERS)
def test_a_key_does_not_keep_an_object_with_variables(name: str):
    thing, kind = HOLDERS[name](), type(HOLDERS[name]())
    for _ in range(3):
        thing.step()
    gone = weakref.ref(thing)
    del thing
    gc.collect()
    assert gone() is None
    assert not [e for e in kind.step._entries.values() if e.is_stale]


@dataclass
class Scaling:
    """Has an `==`, no hash and no variable: a function like any other."""

    factor: float

    def __call__(self, x: Any) -> Any:
        return x * self.factor


SCALING = Scaling(2.0)


def test_a_config_made_for_each_call_is_traced_once():
    step, runs = counted(lambda x, config: config.act(x * float(config.parts[0])))
    for part, act, traces in [
        (1.0, jnp.tanh, 1), (1, jnp.tanh, 2), (True, jnp.tanh, 3), (1.0, jnp.sin, 4),
        (1.0, jnp.tanh, 4), (1.0, SCALING, 5),
    ]:  # fmt: skip
        for _ in range(3):
            step(1.0, Deep((part, {"a": [Config(2.0)]}), act))
        assert len(runs) == traces


@pytest.mark.parametrize("keys", [(1, True, 1.0), (0.0, -0.0)])
def test_keys_of_dicts_are_told_apart_by_their_types(keys: Any):
    step, runs = counted(lambda tree: [repr(key) for key in tree])
    for _ in range(3):
        for key in keys:
            for _ in range(3):
                assert step({key: jnp.ones(1)}) == [repr(key)]
    assert len(runs) == len(keys)


def test_an_unhashable_dataclass_stays_itself():
    @dataclass
    class Bag:
        w: jv.Variable

    bag = Bag(jv.Variable(1.0))
    assert leaf_of(bag) == Itself(Bag, id(bag), content_of(bag)) == leaf_of(bag)
    before = leaf_of(bag)
    bag.w = jv.Variable(1.0)
    assert leaf_of(bag) == before._replace(content=content_of(bag)) != before


@pytest.mark.parametrize(
    "value", [{1, 2}, bytearray(b"x"), memoryview(np.array(["x"])), memoryview(b"x").cast("c")]
)
def test_unhashable_builtins_are_refused_with_the_cure(value: Any):
    step = jv.compile(lambda x: 1)
    with pytest.raises(CompileError, match=f"is a {type(value).__name__}.*pass a tuple"):
        step(value)


def test_names_of_functions():
    class Caller:
        def __call__(self) -> None: ...

    assert name_of(Caller()) == "Caller"
    assert name_of(jnp.sum) == "sum"


# ---------------------------------------------------------------- one trace or several
def test_twenty_ints_are_one_trace():
    step, runs = counted(lambda x: x * 2)
    assert [int(step(i)) for i in range(20)] == list(range(0, 40, 2))
    assert (len(runs), step.trace_count) == (1, 1)


def test_an_int_a_float_and_a_complex_are_three_traces():
    step, runs = counted(lambda x: x * 2)
    assert [step(x).dtype.kind for x in (1, 1.0, 1j)] == ["i", "f", "c"]
    assert len(runs) == 3


def test_position_name_and_default_share_a_trace():
    step, runs = counted(lambda x, y=2.0, *, z=3.0: x + 10 * y + 100 * z)
    results = [
        step(1.0),
        step(1.0, 2.0),
        step(x=1.0),
        step(y=2.0, x=1.0),
        step(1.0, y=2.0, z=3.0),
        step(z=3.0, x=1.0, y=2.0),
    ]
    assert [float(r) for r in results] == [321.0] * 6
    assert len(runs) == 1


def test_keyword_order_does_not_matter():
    step, runs = counted(lambda **kw: kw["a"] - kw["b"])
    assert float(step(a=3.0, b=1.0)) == float(step(b=1.0, a=3.0)) == 2.0
    assert len(runs) == 1


def test_varargs_count_by_their_number():
    step, runs = counted(lambda *xs: sum(xs))
    assert [float(step(1.0)), float(step(1.0, 2.0)), float(step(3.0, 4.0))] == [1.0, 3.0, 7.0]
    assert len(runs) == 2


@pytest.mark.parametrize(
    "tree",
    [[1.0, 2.0], (1.0, {"a": 2.0}), {"b": 1.0, "a": [2.0, 3.0]}, Pair(1.0, (2.0,)), [1.0, None]],
)
def test_pytrees_of_numbers_keep_their_form(tree: Any):
    step, runs = counted(lambda t: jax.tree.map(lambda x: x * 2, t))
    for k in (1.0, 2.0, 3.0):
        given = jax.tree.map(lambda x, k=k: x * k, tree)
        result = step(given)
        assert jax.tree.map(float, result) == jax.tree.map(lambda x: x * 2, given)
        assert type(result) is type(tree)
    assert len(runs) == 1


def test_a_state_can_be_an_argument():
    w = jv.Variable([1.0, 2.0], name="w")
    step, runs = counted(lambda s: jax.tree.map(lambda x: x * 2, s))
    assert step(jv.State.of(w))["w"].tolist() == step(jv.State.of(w))["w"].tolist() == [2.0, 4.0]
    assert len(runs) == 1


def test_shape_dtype_and_weak_type_each_make_a_trace():
    step, runs = counted(lambda x: x + 1)
    weak = jnp.asarray(2.0)
    assert weak.weak_type
    for x in (jnp.ones(2), jnp.ones(3), jnp.ones(2, jnp.int32), weak, jnp.float32(2)):
        for _ in range(3):
            assert step(x).dtype == (x + 1).dtype
    assert len(runs) == 5


def test_numpy_and_jax_arrays_share_a_trace():
    step, runs = counted(lambda x: x + 1)
    arrays = (np.ones(3, np.float32), jnp.ones(3), np.ones(3), np.ones((6,), "f4")[::2])
    assert [step(x).tolist() for x in arrays for _ in range(3)] == [[2.0] * 3] * 12
    assert len(runs) == 1


@pytest.mark.parametrize(("first", "second"), [
    (True, False), ("a", "b"), (None, "a"), (Mode.TRAIN, Mode.TEST), (Config(1.0), Config(2.0)),
    (jnp.sin, jnp.cos), (len, sum), (b"a", b"b"), (jnp.float32, jnp.int32),
    (np.dtype("f4"), np.dtype("i4")), (frozenset({1}), frozenset({2})), (slice(1), slice(2)),
])  # fmt: skip
def test_each_static_value_has_its_own_trace(first: Any, second: Any):
    seen: list[Any] = []
    step, _ = counted(lambda x, option: seen.append(option) or x)
    for option in (first, second, first, first, second, second):
        step(1.0, option)
    assert seen == [first, second]


def test_slices_of_equal_bounds_share_a_trace():
    step, runs = counted(lambda x, part: x[part])
    sizes = [step(jnp.arange(5), slice(1, stop)).size for stop in (3, 3, 2, 3)]
    assert sizes == [2, 2, 1, 2]
    assert len(runs) == 2


def test_an_equal_frozen_dataclass_shares_the_trace():
    step, runs = counted(lambda x, c: x * c.scale)
    assert [float(step(2.0, Config(3.0))) for _ in range(4)] == [6.0] * 4
    assert len(runs) == 1


def test_a_bool_inside_a_pytree_is_static():
    step, runs = counted(lambda d: d["x"] if d["flag"] else -d["x"])
    assert [float(step({"x": 1.0, "flag": f})) for f in (True, False, True)] == [1.0, -1.0, 1.0]
    assert len(runs) == 2


# ---------------------------------------------------------------- static_argnames
def test_static_numbers_are_python_numbers_inside():
    step, runs = counted(lambda x, n: x.reshape(n, -1), static_argnames="n")
    x = jnp.ones(6)
    assert [step(x, n).shape for n in (2, 3, 2, 3, 3)] == [(2, 3), (3, 2), (2, 3), (3, 2), (3, 2)]
    assert step(x, n=2).shape == (2, 3)
    assert len(runs) == 2


def test_static_pytrees_count_leaf_by_leaf_and_type_by_type():
    step, runs = counted(lambda x, s: x * s[0], static_argnames=["s"])
    x = jnp.ones(2, jnp.int32)
    for _ in range(3):
        assert step(x, (2,)).dtype == jnp.int32
        assert step(x, (2.0,)).dtype == jnp.float32
    assert len(runs) == 2


def test_a_static_list_that_was_changed_is_another_value():
    step, runs = counted(lambda x, s: x * s[0], static_argnames="s")
    scale = [2.0]
    assert [float(step(1.0, scale)) for _ in range(3)] == [2.0] * 3
    scale[0] = 3.0
    assert float(step(1.0, scale)) == 3.0
    assert len(runs) == 2


def test_a_static_variable_is_itself():
    a, b = jv.Variable([1.0, 2.0]), jv.Variable([1.0, 2.0])
    step, runs = counted(lambda x, v: x + v, static_argnames="v")
    for _ in range(3):
        assert step(0.0, a).tolist() == [1.0, 2.0]
    b.assign([5.0, 6.0])
    assert step(0.0, b).tolist() == [5.0, 6.0]
    assert len(runs) == 2


def test_a_static_array_is_refused_with_the_cure():
    step = jv.compile(lambda x, s: x, static_argnames="s")
    with pytest.raises(CompileError, match="not hashable: pass a tuple"):
        step(1.0, np.ones(2))


ARGUMENTS: dict[str, tuple[Any, type[Exception], str]] = {
    "integer": (2**31, DtypeError, "is 2147483648, outside of int32"),
    "long integer": (2**70, DtypeError, "integers of more than 64 bits"),
    "big-endian": (np.ones(2, ">f4"), NotATensorError, r">f4, .*x.astype\('float32'\)"),
    "structured": (np.ones(2, [("a", "f4")]), NotATensorError, r"x\['a'\], one of its fields"),
    "dates": (np.zeros(2, "M8[s]"), NotATensorError, r"datetime64\[s\], which is not a tensor"),
    "masked": (np.ma.masked_array([1.0], [True]), NotATensorError, "masked array"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_jax_cannot_take_is_refused_by_name(name: str):
    value, kind, message = ARGUMENTS[name]
    total = jv.Variable(0.0)
    step = jv.compile(lambda x, y: total.assign_add(1.0 * jnp.sum(x) + jnp.sum(y["a"])))
    for given in (1, np.ones(2, np.float32)):
        for _ in range(2):  # cold, and warm
            for x, y, argument in [(given, value, "y['a']"), (value, given, "x")]:
                with pytest.raises(kind, match=message) as info:
                    step(x, {"a": y})
                assert f"argument {argument} of <lambda>" in str(info.value)
            step(given, {"a": given})
    assert float(total) == 2 * 2 + 2 * 4


def test_a_warm_call_with_a_list_that_contains_itself_is_refused():
    step = jv.compile(lambda x, scale=1: x[0] * scale)
    for _ in range(2):
        assert step([1.0, 2.0], scale=2) == 2.0
    junk: list[Any] = [1.0]
    junk.append(junk)
    with pytest.raises(CompileError, match="contains itself"):
        step(junk, scale=2)
    with pytest.raises(CompileError, match="contains itself"):
        step([1.0, 2.0], scale=junk)
    assert step([1.0, 2.0], scale=2) == 2.0
    by_name = jv.compile(lambda *, x: x[0])
    with pytest.raises(CompileError, match="contains itself"):
        by_name(x=junk)


@pytest.mark.parametrize(
    ("fn", "static", "expected"),
    [
        (lambda n, *xs, k: (n, xs, k), "k", [False, False, False, True]),
        (lambda n, *xs, k: (n, xs, k), "n", [True, False, False, False]),
        (lambda n, *xs, k: (n, xs, k), "xs", [False, True, True, False]),
        (lambda n, *xs, **more: (n, xs, more), "more", [False, False, False, True]),
        (lambda n, *xs, **more: (n, xs, more), "k", [False, False, False, True]),
    ],
)
def test_static_arguments_among_others(fn: Any, static: str, expected: list[bool]):
    seen: list[Any] = []
    is_static = lambda *args, **kwargs: [isinstance(x, float) for x in (*args, kwargs["k"])]  # noqa: E731
    body = lambda *args, **kwargs: seen.append(is_static(*args, **kwargs))  # noqa: E731
    body.__signature__ = Signature(fn, (), None)._signature
    step = jv.compile(body, static_argnames=static)
    step(1.0, 2.0, 3.0, k=4.0)
    assert seen == [expected]


def test_a_builtin_without_a_signature():
    make = jv.compile(dict, static_argnames="k")
    result = make({"a": 1.0}, b=2.0, k=3)
    assert jax.tree.map(float, result) == {"a": 1.0, "b": 2.0, "k": 3.0}
    assert make.traces[0][0] == "args[0]['a']: float32[], b: float32[], k: 3"


def test_unknown_static_names_are_refused():
    with pytest.raises(CompileError, match=r"names \['m'\], but .* has the arguments \['x', 'n'\]"):
        jv.compile(lambda x, n: x, static_argnames=("n", "m"))


def test_static_options_leave_arguments_passed_by_name_traced():
    step, runs = counted(lambda x, **options: x * options["n"], static_argnames="options")
    assert [int(step(x=x, n=n)) for x, n in [(2, 3), (4, 3), (4, 5)]] == [6, 12, 20]
    assert len(runs) == 2  # one for each n


# ---------------------------------------------------------------- input_signature
def test_input_signature_of_a_method_is_enough_to_trace_it():
    class Doubling(jv.Module):
        @jv.compile(input_signature=[jv.TensorSpec((2,))])
        def run(self, x):
            return x * 2

    model = Doubling()
    assert model.run.trace() is not None
    assert model.run([1.0, 2.0]).tolist() == [2.0, 4.0]
    assert model.run.trace_count == 1


def test_an_object_in_the_place_of_a_tensor_is_not_that_of_a_method():
    step = jv.compile(lambda mode, x: x, input_signature=[jv.TensorSpec(()), jv.TensorSpec(())])
    with pytest.raises(NotATensorError, match="argument 0 of <lambda> is Module, which is no"):
        step(jv.Module(), 1.0)


def test_input_signature_converts_numbers_and_lists():
    step, runs = counted(lambda x: x * 2, input_signature=[jv.TensorSpec((2,))])
    for x in ([1, 2], np.array([1.0, 2.0]), jnp.array([1.0, 2.0]), (1.0, 2)):
        assert step(x).tolist() == [2.0, 4.0]
    assert len(runs) == 1


def test_input_signature_with_open_sizes_traces_each_size_once():
    step, runs = counted(lambda x: x.sum(), input_signature=[jv.TensorSpec((None, 3))])
    assert [float(step(jnp.ones((n, 3)))) for n in (1, 2, 1, 2, 2)] == [3.0, 6.0, 3.0, 6.0, 6.0]
    assert len(runs) == 2


def test_input_signature_refuses_what_does_not_fit():
    step = jv.compile(lambda x: x, input_signature=[jv.TensorSpec((None, 3))])
    with pytest.raises(CompileError, match=r"Argument 0 of .* is float32\[2, 4\].*float32\[\?,3\]"):
        step(jnp.ones((2, 4)))
    with pytest.raises(CompileError, match=r"input_signature of 1 tensors, but .* 2 arguments"):
        jv.compile(lambda *xs: xs, input_signature=[jv.TensorSpec(())])(1.0, 2.0)


def test_input_signature_leaves_defaults_as_they_are():
    def body(x: jax.Array, negate: bool = False, double: bool = True) -> jax.Array:
        return (-x if negate else x) * (2 if double else 1)

    step = jv.compile(body, input_signature=[jv.TensorSpec((2,))])
    for args in ((), (False,), (False, True)):
        assert step([1, 2], *args).tolist() == [2.0, 4.0]
    for args in ((True,), (False, False), (1.0,)):  # True is the default of the other one
        with pytest.raises(CompileError, match="body has an input_signature of 1 tensors, but was"):
            step([1, 2], *args)


def test_a_trace_takes_the_input_signature_where_no_argument_is_given():
    step = jv.compile(lambda x: x * 2, input_signature=[jv.TensorSpec((2,))])
    for args in ((), (jnp.ones(2),)):
        assert step.trace(*args)(jnp.ones(2)).tolist() == [2.0, 2.0]
    assert step.trace_count == 1


def test_input_signature_takes_arrays_as_specs_and_refuses_the_rest():
    step = jv.compile(lambda x: x, input_signature=[jnp.ones(2)])
    assert step([1, 2]).dtype == jnp.float32
    for wrong in ([jv.TensorSpec(())], jnp.float32, np.dtype("f4")):
        with pytest.raises(CompileError, match="a TensorSpec for each argument, and not a"):
            jv.compile(lambda x: x, input_signature=[wrong])


# ---------------------------------------------------------------- as strings
def test_binding_errors_are_pythons_own():
    step = jv.compile(lambda x, y: x + y)
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        step(1.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        step(1.0, 1.0, z=2.0)


def test_a_signature_as_a_string():
    step = jv.compile(lambda x, flag, *rest, **more: x)
    step(jnp.ones((2, 3)), True, 1.0, k={"a": 1})
    assert step.traces[0][0] == ("x: float32[2,3], flag: True, rest[0]: float32[], k['a']: int32[]")


def test_a_function_that_has_no_signature():
    assert jv.compile(getattr)(jnp.ones((2, 3)), "T").shape == (3, 2)
    step = jv.compile(dict)
    assert step(a=1.0) == {"a": 1.0}
    assert step.traces[0][0] == "a: float32[]"


@dataclass(frozen=True)
class Secret:
    number: int = field(repr=False)


@pytest.mark.parametrize(("first", "second", "why"), [
    ((1.0, jnp.ones(2)), (1.0, jnp.ones(3)), "y: float32[2] -> float32[3]"),
    ((1.0, 1), (1.0, 1.0), "y: int32[] -> float32[]"), ((1.0, "a"), (1.0, "b"), "y: 'a' -> 'b'"),
    ((1.0, Secret(1)), (1.0, Secret(2)),
     "y: Secret() -> Secret() (another one that prints the same)"),
    ((1.0, True), (2.0, False), "y: True -> False"),
    ((1.0, jnp.float32(1)), (1.0, 1.0), "y: float32[] -> float32[] (weakly typed)"),
    ((1.0, 1.0), (1.0, jnp.float32(1)), "y: float32[] -> float32[] (strongly typed)"),
    ((1.0, {"a": 1.0}), (1.0, {"a": "x"}), "y['a']: float32[] -> 'x'"),
    ((1.0, None), (1.0, 2.0), "y: the structure changed"),
    ((1.0, [1.0]), (1.0, [1.0, 2.0]), "y: the structure changed"),
])  # fmt: skip
def test_why_it_was_traced_names_the_argument(first: Any, second: Any, why: str):
    step = jv.compile(lambda x, y: x)
    step(*first)
    step(*second)
    assert [row[1] for row in step.traces] == ["first call", why]


def test_why_it_was_traced_names_arguments_that_come_and_go():
    step = jv.compile(lambda x, **options: x)
    step(1.0, a=1.0)
    step(1.0, b=1.0)
    assert step.traces[1][1] == "a: the structure changed; b: the structure changed"


# ---------------------------------------------------------------- arrays of other libraries
class Elsewhere:
    """An array in the memory of another library, with a hash of its own, as PyTorch's tensors."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = np.array(numbers, np.float32)

    def __array__(self, dtype=None, copy=None):
        return self.numbers

    def __eq__(self, other):
        return Elsewhere(self.numbers == other)

    def __hash__(self):
        return id(self)

    def fill_(self, value: float) -> None:
        self.numbers[...] = value


class ByDLPack(Elsewhere):
    __array__: Any = None

    def __dlpack__(self, **options):
        return self.numbers.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.numbers.__dlpack_device__()


class InMemory(Elsewhere):
    def __init__(self, numbers: Any) -> None:
        super().__init__(numbers)
        self.__array_interface__ = self.numbers.__array_interface__

    __array__: Any = None


def tensor(numbers: Any) -> Any:
    return pytest.importorskip("torch").tensor(numbers, dtype=pytest.importorskip("torch").float32)


FOREIGN = pytest.mark.parametrize("make", [Elsewhere, ByDLPack, InMemory, tensor])


def jax_of(x: Any) -> Any:
    return jnp.asarray(np.asarray(getattr(x, "numbers", x)).copy())


@FOREIGN
@pytest.mark.parametrize("wrap", [
    lambda x: ((x,), {}), lambda x: ((), {"x": x}), lambda x: (([x],), {}),
    lambda x: (({"a": (x,)},), {}), lambda x: ((Pair(1.0, x),), {}),
])  # fmt: skip
def test_they_count_by_value_at_the_time_of_the_call(make, wrap):
    step, runs = counted(lambda x: jax.tree.leaves(x)[-1] * 2)
    x = make([0.0, 0.0])
    args, kwargs = wrap(x)
    found = []
    for value in range(5):
        x.fill_(value)
        found.append(step(*args, **kwargs))
        x.fill_(-1)
    assert [y.tolist() for y in found] == [[2 * i] * 2 for i in range(5)]
    for other in (make([3.0, 3.0]), jnp.full(2, 3.0, "float32"), np.full(2, 3, np.float32)):
        args, kwargs = wrap(other)
        assert step(*args, **kwargs).tolist() == [6, 6]
    assert len(runs) == 1
    args, kwargs = wrap(make([1.0]))
    assert step(*args, **kwargs).tolist() == [2]
    assert len(runs) == 2


@FOREIGN
def test_they_share_fast_paths_with_nothing(make):
    v = jv.Variable([1.0, 1.0])
    step, runs = counted(lambda x: v.assign_add(x))
    x = make([1.0, 1.0])
    for _ in range(4):  # in turns with a fast path's calls
        step(x)
        step(jnp.ones(2))
        x.fill_(x[0] + 1 if make is tensor else float(x.numbers[0]) + 1)
    assert (v.numpy().tolist(), len(runs)) == ([15, 15], 1)


@FOREIGN
def test_they_are_not_kept_and_not_read_after_the_call(make):
    step, _ = counted(lambda x: x.sum())
    big = make(np.zeros(1_000_000, np.float32))
    found = []
    for value in range(8):
        big.fill_(value)
        found.append(step(big))
        big.fill_(-1)
    assert [float(y) for y in found] == [1e6 * i for i in range(8)]
    there = weakref.ref(big)
    del big
    gc.collect()
    assert there() is None


def test_what_lends_its_memory_has_it_back_after_the_call():
    step, runs = counted(lambda x: x.sum())
    numbers = array.array("f", [1.0, 2.0])
    for extra in (3.0, 4.0):
        step(numbers)
        numbers.append(extra)  # which is refused while its buffer is used
    assert (float(step(numbers)), len(runs)) == (10, 3)
    assert float(step(memoryview(b"ab"))) == 195


@FOREIGN
def test_they_count_by_value_in_methods_and_defaults(make):
    x = make([1.0, 1.0])

    class Scaled(jv.Module):
        def __init__(self) -> None:
            self.w = jv.Variable(2.0)

        @jv.compile
        def __call__(self, a, scale=x, *, more=x):
            return a * scale * self.w + more

    found = []
    one = Scaled()
    for value in (1.0, 2.0, 3.0):
        x.fill_(value)
        found += [one(jnp.ones(2)).tolist(), one(x, more=jnp.zeros(2)).tolist()]
    assert found == [[3, 3], [2, 2], [6, 6], [8, 8], [9, 9], [18, 18]]
    assert Scaled.__call__.trace_count == 1


@FOREIGN
def test_they_are_arrays_in_the_midst_of_a_trace(make):
    w = jv.Variable([1.0, 1.0], name="w")
    x = make([2.0, 2.0])
    inner, runs = counted(lambda y: y * w)
    outer = jv.compile(lambda y: inner(x) + inner(y))
    assert outer(jnp.ones(2)).tolist() == [3, 3]
    assert len(runs) == 1
    in_branch = jv.compile(lambda y: jv.cond(y > 0, lambda: inner(x), lambda: inner(x) * 0))
    assert in_branch(1.0).tolist() == [2, 2]
    in_loop = jv.compile(lambda: jv.scan(lambda c, _: (c + inner(x), None), jnp.zeros(2), length=3))
    assert in_loop()[0].tolist() == [6, 6]
    state = jv.State.of(w=w)
    for pure in (jv.functionalize(inner), lambda s, y: jax.jit(jv.functionalize(outer))(s, y)):
        assert pure(state, jax_of(x))[0].tolist() in ([2, 2], [4, 4])
    assert jv.functionalize(inner)(state, x)[0].tolist() == [2, 2]
    assert jax.vmap(lambda y: inner(x) + y)(jnp.ones((3, 2))).tolist() == [[3, 3]] * 3
    assert jax.grad(lambda y: jv.compile(lambda a, b: (a * b).sum())(y, x))(jnp.ones(2)).sum() == 4
    with jv.GradientTape() as tape:
        total = inner(x).sum()
    assert tape.gradient(total, [w])[0].tolist() == [2, 2]


@FOREIGN
def test_traces_and_plans_of_them(make):
    step, runs = counted(lambda x: x * 2)
    x = make([1.0, 2.0])
    one = step.trace(x)
    assert (one.signature, jv.plan(step, x).memory["arguments"]) == ("x: float32[2]", 8)
    x.fill_(3.0)
    assert (one(x).tolist(), len(runs)) == ([6, 6], 1)
    with pytest.raises(TypeError, match=r"takes \(x: float32\[2\]\)"):
        one(make([1.0]))


@FOREIGN
def test_an_input_signature_takes_them(make):
    step, runs = counted(lambda x: x + 1, input_signature=[jv.TensorSpec((None,))])
    x = make([1.0, 2.0])
    y = step(x)
    x.fill_(9.0)
    assert (y.tolist(), step(jnp.zeros(2)).tolist(), len(runs)) == ([2, 3], [1, 1], 1)
    with pytest.raises(CompileError, match=r"Argument 0 of body is float32\[1, 1\]"):
        step(make([[1.0]]))
    if make is tensor:
        by_example, _ = counted(lambda x: x + 1, input_signature=[make([1.0, 2.0])])
        assert by_example(x).tolist() == [10, 10]


@FOREIGN
def test_they_count_by_their_numbers_in_what_is_static(make):
    x = make([1.0, 1.0])
    for keep in (Unregistered, Config, lambda y: SimpleNamespace(loss=y), lambda y: UserDict(a=y),
                 lambda y: functools.partial(max, y)):  # fmt: skip
        step, runs = counted(
            lambda _: jnp.asarray(np.asarray(getattr(x, "numbers", x)).copy()).sum()
        )
        kept = keep(x)
        found = []
        for value in (1.0, 2.0, 1.0):
            x.fill_(value)
            found += [float(step(kept)), float(step(kept))]
        assert (found, len(runs)) == ([2, 2, 4, 4, 2, 2], 2), kept


@FOREIGN
def test_they_count_by_their_numbers_in_defaults_that_are_static(make):
    x = make([1.0, 1.0])

    def body(y, kept=Unregistered(x)):  # noqa: B008 - what is tried
        return jnp.asarray(np.asarray(getattr(kept.loss, "numbers", kept.loss)).copy()) * y

    step, found = jv.compile(body), []
    for value in (1.0, 2.0, 1.0):
        x.fill_(value)
        found += [step(jnp.ones(2)).tolist(), step(jnp.ones(2)).tolist()]
    assert (found, step.trace_count) == ([[1, 1]] * 2 + [[2, 2]] * 2 + [[1, 1]] * 2, 2)


class Unreadable(Elsewhere):
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("it is on another device")


def test_what_cannot_be_read_is_another_one_each_time_in_what_is_static():
    step, runs = counted(lambda _: 1)
    kept = Unregistered(Unreadable([1.0]))
    for _ in range(3):
        step(kept)
    assert len(runs) == 3


class Strings(Elsewhere):
    def __array__(self, dtype=None, copy=None):
        return np.array(["a", "b"], object)


class Objects(Elsewhere):
    def __array__(self, dtype=None, copy=None):
        return np.array(["a", 1.5], object)


class Dates(Elsewhere):
    def __array__(self, dtype=None, copy=None):
        return np.array(["2020-01-01"], "datetime64[s]")


class Masked(Elsewhere):
    def __array__(self, dtype=None, copy=None):
        return np.ma.masked_array([1.0, 2.0], [True, False])


class Huge(Elsewhere):
    def __array__(self, dtype=None, copy=None):
        return np.array([2**40])


def make_requiring_grad(numbers: Any) -> Any:
    return tensor(numbers).requires_grad_()


@pytest.mark.parametrize(("make", "error", "match"), [
    (Strings, NotATensorError, r"NAME is a Strings of strings, at LINE.*Pass tuple\(PATH\)"),
    (Objects, NotATensorError,
     r"NAME is a Objects of Python's objects, at LINE.*as 1.5.*np.asarray\(PATH, 'float32'\)"),
    (Dates, NotATensorError, r"NAME is datetime64.*astype\('int32'\)"),
    (Masked, NotATensorError, "masked array.* as NAME"),
    (Huge, DtypeError, "NAME reaches from 1099511627776"),
    (Unreadable, NotATensorError, "NAME cannot become a tensor: at LINE.*Unreadable.*other device"),
    (lambda _: memoryview(np.ones(2, ">f4")), NotATensorError,
     r"NAME has NumPy's dtype >f4.*np.asarray\(PATH, 'float32'\)"),
    (make_requiring_grad, NotATensorError,
     r"NAME is a tensor of PyTorch that requires grad, at LINE.*Pass its value, PATH.detach\(\)"),
])  # fmt: skip
def test_what_a_program_cannot_take_is_refused_by_name_before_the_body_runs(make, error, match):
    path = r"y\['a'\]\[0\]"
    match = match.replace("NAME", "argument PATH of body").replace("PATH", path)
    step, runs = counted(lambda x, y: x)
    with pytest.raises(error, match=match.replace("LINE", r"test_signature.py:\d+, in test_what")):
        step(1.0, {"a": [make([1.0])]})
    assert runs == []


def test_a_gradient_of_pytorch_does_not_end_in_silence():
    step, runs = counted(lambda x: x * 2, input_signature=[jv.TensorSpec((None,))])
    x = make_requiring_grad([1.0])
    with pytest.raises(NotATensorError, match=r"argument x of body.*requires grad.*x.detach\(\)"):
        step(x)
    with pytest.raises(NotATensorError, match=r"an operand is a tensor of PyTorch that requires"):
        jv.Variable([1.0]) * x
    assert (step(x.detach()).tolist(), len(runs)) == ([2], 1)


@FOREIGN
def test_a_static_argument_is_no_array(make):
    step, runs = counted(lambda x, n: x, static_argnames="n")
    with pytest.raises(CompileError, match=r"A static argument holds .*Arrays are not static"):
        step(1.0, make([1.0]))
    assert runs == []


class Readable(Elsewhere):
    """An array of JAX by JAX's own protocol, which may be traced."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def __jax_array__(self):
        return self.numbers


def test_what_stands_for_an_array_of_jax_is_that_array():
    step, runs = counted(lambda x: x * 2)
    assert [step(Readable(jnp.ones(2))).tolist(), step(jnp.ones(2)).tolist()] == [[2, 2]] * 2
    assert jax.jit(lambda x: step(Readable(x)))(3 * jnp.ones(2)).tolist() == [6, 6]
    assert len(runs) == 1
    by_numbers, _ = counted(lambda x: x.loss.numbers * 2)
    kept = Unregistered(Readable(jnp.ones(2)))
    assert jax.jit(lambda x: by_numbers(Unregistered(Readable(x))))(jnp.ones(2)).tolist() == [2, 2]
    assert by_numbers(kept).tolist() == [2, 2]
    kept.loss.numbers = jnp.full(2, 4.0)
    assert by_numbers(kept).tolist() == [8, 8]


def test_what_may_be_called_stays_itself():
    step, _ = counted(lambda p, x: p(2.0) * x + len(p.coeffs))
    assert float(step(np.poly1d([1.0, 2.0]), 3.0)) == 14


def test_tables_of_pandas_are_arrays():
    pandas = pytest.importorskip("pandas")
    step, runs = counted(lambda x: x.sum())
    numbers = pandas.Series([1.0, 2.0])
    assert float(step(numbers)) == 3
    numbers[0] = 5.0
    assert float(step(numbers)) == 7
    assert float(step(pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}))) == 5
    assert len(runs) == 2
    for words in (pandas.Series(["a", "b"]), pandas.DataFrame({"a": [1], "b": ["x"]})):
        with pytest.raises(NotATensorError, match=r"(of strings|of Python's objects)"):
            step(words)


# ---------------------------------------------------------------- the retrace warning
def test_retracing_again_and_again_warns_and_names_the_argument():
    step, _ = counted(lambda x, batch: batch.sum() + x)
    for n in range(1, 6):
        step(1.0, jnp.ones(n))
    with pytest.warns(RetraceWarning) as caught:
        step(1.0, jnp.ones(6))
    message = str(caught[0].message)
    assert "body has been traced 6 times" in message
    assert "batch: float32[5] -> float32[6]" in message
    assert "pad arrays to one shape" in message
    assert caught[0].filename == __file__


def test_new_functions_as_arguments_warn_too():
    step, runs = counted(lambda f, x: f(x))

    def call_with_new_functions() -> None:
        for i in range(8):
            assert float(step(lambda x, i=i: x + i, 1.0)) == 1.0 + i

    with pytest.warns(RetraceWarning, match=r"because of (f: <function|.*: f or a variable)"):
        call_with_new_functions()
    assert len(runs) == 8


def test_a_trace_for_each_of_many_objects_is_not_a_reason_to_warn():
    step, runs = counted(lambda m, x: m.w * x)

    class M(jv.Module):
        def __init__(self) -> None:
            self.w = jv.Variable(2.0)

    models = [M() for _ in range(12)]
    assert [float(step(m, 3.0)) for m in models] == [6.0] * 12
    assert len(runs) == 12


class Tuning:
    def __init__(self, rate: float = 1.0) -> None:
        self.rate = rate


class Model(jv.Module):
    def __init__(self) -> None:
        self.w = jv.Variable(2.0)


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"a": [x]}])
def test_new_objects_as_arguments_warn(wrap):
    step, runs = counted(lambda m, o, x: m.w * jax.tree.leaves(o)[0].rate * x)
    model, kept = Model(), [Tuning() for _ in range(6)]
    for _ in range(5):
        step(model, wrap(Tuning()), 1.0)
    with pytest.warns(RetraceWarning, match=r"traced 6 times.*a frozen dataclass\. See") as caught:
        step(model, wrap(Tuning()), 1.0)
    assert caught[0].filename == __file__
    other, runs = counted(lambda o, x: jax.tree.leaves(o)[0].rate * x)
    for options in kept[:5]:
        other(wrap(options), 1.0)
    with pytest.warns(RetraceWarning, match=r"because of o.*: <Tuning object .*> -> <Tuning"):
        other(wrap(kept[5]), 1.0)
    assert len(runs) == 6


def test_a_warning_speaks_of_objects_only_where_there_are_new_ones():
    step, _ = counted(lambda m, x: m.w * x.sum())
    model = Model()
    for n in range(1, 6):
        step(model, jnp.ones(n))
    with pytest.warns(RetraceWarning, match="x: float32") as caught:
        step(model, jnp.ones(6))
    assert "frozen dataclass" not in str(caught[0].message)


class Squared:
    @jv.compile
    def __call__(this, x):  # noqa: N805 - any name will do
        return x * x


class Silent(jv.Module):
    pass


def test_traces_of_objects_that_are_there_are_no_reason_to_warn():
    kept = [Squared() for _ in range(12)]
    assert [float(each(2.0)) for each in kept] == [4.0] * 12
    step, runs = counted(lambda m, x: x)
    silent = [Silent() for _ in range(12)]
    assert [float(step(each, 2.0)) for each in silent] == [2.0] * 12
    for _ in range(12):  # an object at a time
        Squared()(2.0)
        step(Silent(), 2.0)
    search, more = counted(lambda m, x: m.w * x)
    for _ in range(12):  # a model at a time, in a search for the best one
        search(Model(), 2.0)
    assert (len(runs), len(more)) == (24, 12)


@dataclass
class Unregistered:
    loss: Any


@pytest.mark.parametrize(
    "make",
    [Unregistered, lambda x: {"a": deque([x])}, lambda x: [UserDict(a=(x,))],
     lambda x: functools.partial(max, x), lambda x: ("a", SimpleNamespace(a=Unregistered(x)))],
)  # fmt: skip
def test_a_result_that_would_leak_traced_values_is_refused(make):
    v = jv.Variable(1.0)

    @jv.compile
    def step(x):
        v.assign_add(x)
        return make(x)

    with pytest.raises(CompileError, match=r"that holds traced values.*register"):
        step(1.0)
    assert v == 1.0
    known = jv.compile(lambda x: make(3.0))  # the same for all calls, as any object
    assert repr(known(1.0)) == repr(make(3.0))


# ---------------------------------------------------------------- what Python changes in place
@dataclass
class Options:
    part: Any


@jax.tree_util.register_dataclass
@dataclass
class Registered:
    part: Any
    flag: bool = field(default=True, metadata={"static": True})


def replace_item(new: Any) -> Any:
    return lambda x: x.__setitem__(0 if isinstance(x, list) else "part", new)


def set_part(new: Any) -> Any:
    return lambda x: setattr(x, "part", new)


def flip(x: Any) -> None:
    x.flag = False


CHANGED: dict[str, tuple[Any, Any, Any]] = {  # what makes it, changes it, and uses it
    "number in a dict": (lambda: {"part": 2.0}, replace_item(3.0), lambda x: x["part"]),
    "bool in a dict": (lambda: {"part": True}, replace_item(False), lambda x: 1 + x["part"]),
    "new key": (dict, replace_item(3.0), lambda x: 1 + len(x)),
    "array in a dict": (
        lambda: {"part": jnp.ones(2)}, replace_item(jnp.zeros(2)), lambda x: x["part"].sum()
    ),
    "number in a list": (lambda: [2.0], replace_item(3.0), lambda x: x[0]),
    "longer list": (list, lambda x: x.append(3.0), lambda x: 1 + sum(x)),
    "list in a tuple": (lambda: ([2.0],), lambda x: x[0].append(1.0), lambda x: sum(x[0])),
    "array of NumPy": (lambda: np.ones(2), lambda x: x.fill(3.0), lambda x: x.sum()),
    "strings of NumPy": (
        lambda: np.array(["a"]), lambda x: x.fill("b"), lambda x: 1.0 + (x[0] == "a")
    ),
    "dataclass": (lambda: Options(2.0), set_part(3.0), lambda x: x.part),
    "list in a dataclass": (
        lambda: Options([2.0]), lambda x: x.part.append(1.0), lambda x: sum(x.part)
    ),
    "array in a dataclass": (
        lambda: Options(np.ones(2)), lambda x: x.part.fill(3.0), lambda x: x.part.sum()
    ),
    "JAX's array in a dataclass": (
        lambda: Options(jnp.ones(2)), set_part(jnp.zeros(2)), lambda x: x.part.sum()
    ),
    "array in a frozen dataclass": (
        lambda: Config(np.ones(2)), lambda x: x.scale.fill(3.0), lambda x: x.scale.sum()
    ),
    "beside a Variable": (
        lambda: Options([jv.Variable(1.0), 2.0]), lambda x: x.part.append(3.0),
        lambda x: x.part[0] * len(x.part),
    ),
    "set in a frozen dataclass": (
        lambda: Config({2.0}), lambda x: x.scale.add(3.0), lambda x: sum(x.scale)
    ),
    "registered dataclass": (lambda: Registered(2.0), set_part(3.0), lambda x: x.part),
    "static field": (lambda: Registered(2.0), flip, lambda x: x.part * (2 + x.flag)),
    "namespace": (lambda: SimpleNamespace(part=2.0), set_part(3.0), lambda x: x.part),
    "deque": (lambda: deque([2.0]), lambda x: x.append(3.0), sum),
    "Counter": (lambda: Counter("a"), lambda x: x.update("a"), lambda x: 1.0 * x["a"]),
    "partial": (
        lambda: functools.partial(sum, [2.0]), lambda x: x.args[0].append(1.0), lambda x: x()
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", ["default", "keyword-only default", "positional", "in a tuple"])
@pytest.mark.parametrize("name", CHANGED)
def test_what_is_changed_in_place_is_seen_by_each_kind_of_call(name: str, way: str):
    make, change, use = CHANGED[name]
    value = make()
    given = {"positional": (value,), "in a tuple": ((value,),)}.get(way, ())
    f: Any = {
        "default": lambda x, part=value: x * use(part),
        "keyword-only default": lambda x, *, part=value: x * use(part),
        "positional": lambda x, part: x * use(part),
        "in a tuple": lambda x, parts: x * use(parts[0]),
    }[way]
    step = jv.compile(f)

    def in_a_tape() -> Any:
        with jv.GradientTape():
            return step(1.0, *given)

    seen: list[list[float]] = []
    for _ in range(2):
        calls = [lambda: step(1.0, *given)] * 3 + [in_a_tape, lambda: f(1.0, *given)]
        seen.append([float(call()) for call in calls])
        change(value)
    assert [len(set(results)) for results in seen] == [1, 1], seen
    assert seen[0] != seen[1]


def test_a_static_partial_that_was_changed_is_another_one():
    act = functools.partial(sum, [2.0])
    step = jv.compile(lambda x, act: x * act(), static_argnames="act")
    assert [float(step(1.0, act)) for _ in range(3)] == [2.0] * 3
    act.args[0].append(1.0)
    assert [float(step(1.0, act)) for _ in range(3)] == [3.0] * 3


def test_what_a_function_itself_changes_is_changed_when_it_is_traced():
    options, runs = Options(0), []

    @jv.compile
    def step(x: Any, options: Options) -> Any:
        runs.append(0.0)
        options.part += 1
        return x + options.part

    for _ in range(2):
        assert [float(step(0.0, options)) for _ in range(3)] == [len(runs)] * 3
        with jv.GradientTape():
            assert float(step(0.0, options)) == len(runs) == options.part
        options.part = 1
        runs[:] = [0.0]
    assert step.trace_count == 1
    options.part = 5
    assert float(step(0.0, options)) == 6.0
    whys = [row[1] for row in step.traces.rows]
    assert re.fullmatch(r"options: <Options object 0x\w+> was changed", whys[1])


def test_an_object_that_cannot_say_what_it_holds_is_known_by_identity():
    class Mute:
        __hash__ = None  # pyright: ignore[reportAssignmentType]
        part = 2.0

        def __eq__(self, other: object) -> bool:
            return True

        def __reduce_ex__(self, _: Any) -> Any:
            raise RuntimeError("no")

    value, other = Mute(), Mute()
    other.part = 3.0
    step, runs = counted(lambda x, mute: x * mute.part)
    assert [float(step(1.0, x)) for x in (value, value, other, value)] == [2.0, 2.0, 3.0, 2.0]
    assert len(runs) == 2
    loop = Options(None)
    loop.part = loop
    assert [float(step(1.0, x)) for x in (value, value)] == [2.0, 2.0]
    assert float(jv.compile(lambda x, loop: x)(1.0, loop)) == 1.0


# ---------------------------------------------------------------- another code in its place
def doubled(x: Any, n: float = 1.0) -> Any:
    return x * 2 * n


def tripled(x: Any, n: float = 1.0) -> Any:
    return x * 3 * n


class Scaled:
    def __call__(self, x: Any, n: float = 1.0) -> Any:
        return x * 2 * n

    def other(self, x: Any, n: float = 1.0) -> Any:
        return x * 3 * n


@pytest.mark.parametrize("call", [
    lambda step: step(1.0), lambda step: step(x=1.0), lambda step: step(jnp.float32(1.0), n=1.0),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["function", "partial", "object", "method", "wrapped"])
def test_code_that_was_replaced_in_place_is_compiled(kind: str, call: Any):
    before, after = (
        (Scaled.__call__, Scaled.other) if kind in ("object", "method") else (doubled, tripled)
    )
    fn: Any = {
        "function": doubled, "partial": functools.partial(doubled), "object": Scaled(),
        "method": Scaled().__call__,
        "wrapped": functools.wraps(doubled)(lambda *args, **kwargs: doubled(*args, **kwargs)),
    }[kind]  # fmt: skip
    step, code = jv.compile(fn), before.__code__
    try:
        assert [float(call(step)) for _ in range(3)] == [2.0] * 3
        before.__code__ = after.__code__
        assert [float(call(step)) for _ in range(3)] == [3.0] * 3
        with jv.GradientTape():
            assert float(call(step)) == 3.0
    finally:
        before.__code__ = code
    assert float(call(step)) == 2.0
    assert step.trace_count == 3


def test_code_that_takes_other_arguments_is_called_with_them():
    def old(x: Any) -> Any:
        return x * w

    def new(x: Any, by: float = 5.0) -> Any:
        return w.assign_add(x * by)

    w = jv.Variable(2.0)
    step = jv.compile(old)
    assert [float(step(1.0)) for _ in range(2)] == [2.0, 2.0]
    old.__code__, old.__defaults__ = new.__code__, new.__defaults__
    assert [float(step(1.0)) for _ in range(3)] == [7.0, 12.0, 17.0]
    assert [float(step(1.0, by=1.0)) for _ in range(2)] == [18.0, 19.0]
    old.__defaults__ = (0.0,)
    assert step.trace(1.0)(1.0) == 19.0


def test_a_compiled_method_is_an_argument_by_its_object():
    class Model(jv.Module):
        def __init__(self, w: float) -> None:
            super().__init__()
            self.w = jv.Variable(w)

        @jv.compile
        def loss(self, x: Any) -> Any:
            return self.w * x

        @jv.compile
        def other(self, x: Any) -> Any:
            return self.w + x

    train = jv.compile(lambda loss, x: loss(x) * 2.0)
    one, two = Model(2.0), Model(3.0)
    found = [float(train(m.loss, 1.0)) for m in (one, two, one, two)]
    assert (found, train.trace_count) == ([4.0, 6.0, 4.0, 6.0], 2)
    assert float(train(one.other, 1.0)) == 6.0
    assert one.loss == one.loss
    assert len({one.loss, one.loss, two.loss, one.other}) == 3

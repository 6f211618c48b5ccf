"""Reads and writes are answered by the frame of the function that runs: a plain JAX transform
cannot take a value away from it, nor put a stale one into its program silently."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars.core.frames import LOCAL
from jaxvars.core.staging import PyTreeTemplate
from jaxvars.errors import CreationError, ForeignTransformError, StaleReadWarning

V = jv.Variable
TWO = jnp.ones(2)

# Each calls a function of one array, of shape [2], inside a transform of JAX.
TRANSFORMS = {
    "jit": lambda f: jax.jit(f)(TWO),
    "grad": lambda f: jax.grad(lambda x: jnp.sum(f(x)))(TWO),
    "jvp": lambda f: jax.jvp(f, (TWO,), (TWO,)),
    "vjp": lambda f: jax.vjp(f, TWO),
    "vmap": lambda f: jax.vmap(f)(jnp.ones((3, 2))),
    "vmap of grad": lambda f: jax.vmap(jax.grad(lambda x: jnp.sum(f(x))))(jnp.ones((3, 2))),
    "scan": lambda f: jax.lax.scan(lambda c, x: (c, f(x)), 0.0, jnp.ones((3, 2))),
    "map": lambda f: jax.lax.map(f, jnp.ones((3, 2))),
    "cond": lambda f: jax.lax.cond(True, f, lambda x: x, TWO),
    "while": lambda f: jax.lax.while_loop(lambda x: x[0] < 3, lambda x: f(x) + x + 1, TWO),
    "fori": lambda f: jax.lax.fori_loop(0, 3, lambda i, x: f(x) * 1.0, TWO),
    "checkpoint": lambda f: jax.checkpoint(f)(TWO),
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(TWO),
    "eval_shape": lambda f: jax.eval_shape(f, TWO),
}
transforms = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
CONCRETE = ("grad", "jvp", "vjp", "vmap", "vmap of grad")  # these run what they transform
STAGING = {name: t for name, t in TRANSFORMS.items() if name not in CONCRETE}
staging = pytest.mark.parametrize("transform", STAGING.values(), ids=STAGING)

WRITES = {
    "assign": lambda v, x: v.assign(x),
    "assign a constant": lambda v, x: v.assign([5.0, 5.0]),
    "assign_add": lambda v, x: v.assign_add(x),
    "assign_sub": lambda v, x: v.assign_sub(1.0),
    "rows": lambda v, x: v[jnp.array([0])].assign(x[:1]),
    "part": lambda v, x: v[0].assign(x[0]),
}
# How the transform is called.
PLACES = {
    "eager": lambda f, v: f(),
    "compiled": lambda f, v: jv.compile(f)(),
    "pure": lambda f, v: jv.functionalize(f)(jv.State.of(v)),
}
places = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)


# ---------------------------------------------------------------- foreign writes
@transforms
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.filterwarnings("ignore::jaxvars.errors.StaleReadWarning")  # a part is read first
def test_a_write_is_refused(transform, write):
    v = V([1.0, 2.0], name="v")

    def body(x):
        write(v, x)
        return x

    with pytest.raises(ForeignTransformError) as error:
        transform(body)
    message = str(error.value)
    assert message.startswith("Variable 'v' is written at test_frames.py:")
    if "in the body of" not in message:  # tests/test_errors.py has the advice for a body
        assert "@jv.compile instead of jax.jit" in message
        assert "pure = jv.functionalize(f)" in message
    assert v.numpy().tolist() == [1, 2]
    assert v.assign_add(1.0).numpy().tolist() == [2, 3]


@transforms
@places
def test_a_write_is_refused_wherever_the_transform_is(transform, place):
    v = V([1.0, 2.0], name="v")

    with pytest.raises(ForeignTransformError, match="Variable 'v' is written"):
        place(lambda: jax.tree.leaves(transform(lambda x: v.assign(x).value))[0] * 0, v)
    assert v.numpy().tolist() == [1, 2]


def test_a_compiled_function_that_writes_is_refused_too():
    v = V([1.0, 2.0], name="v")
    step = jv.compile(lambda x: v.assign(x).value.sum())
    for transform in (jax.jit, jax.grad):
        with pytest.raises(ForeignTransformError, match="Variable 'v' is written"):
            transform(step)(TWO)
    assert step(TWO) == 2


def test_a_tracer_that_leaked_is_refused():
    v, leaked = V([1.0, 2.0], name="v"), []
    jax.jit(lambda x: (leaked.append(x), x)[1])(TWO)
    with pytest.raises(ForeignTransformError, match="Variable 'v' is written"):
        v.assign(leaked[0])
    assert v.numpy().tolist() == [1, 2]


def test_writes_outside_of_the_transform_are_fine():
    v = V([1.0, 2.0])
    x = jax.vmap(lambda x: x + 1)(TWO)
    jv.compile(lambda: v.assign(jax.vmap(lambda x: v.value[0] * x)(x)).value)()
    assert v.numpy().tolist() == [2, 2]


@pytest.mark.parametrize("name", ["jit", "scan", "make_jaxpr"])
@pytest.mark.parametrize("value", [lambda x: x, lambda x: 1.0], ids=["traced", "constant"])
def test_creating_a_variable_is_refused(name, value):
    with pytest.raises(CreationError, match=r"'new' is created at test_frames\.py.*@jv\.compile"):
        TRANSFORMS[name](lambda x: V(value(x), name="new") * x)


class Layer(jv.Module):
    """Makes its variables at its first call, which is compiled."""

    def __init__(self) -> None:
        self.w: jv.Variable | None = None

    @jv.compile
    def __call__(self, x):
        if self.w is None:
            self.w = jv.Variable(jnp.full(2, 3.0), name="w")
            self.bias = jv.Variable(lambda: jnp.ones(2), name="bias")
        return x * self.w + self.bias


REFUSING = {
    **STAGING,
    "functionalize": lambda f: jv.functionalize(f)(jv.State.of(V(1.0)), TWO),
    "vectorized_map": lambda f: jv.vectorized_map(f, jnp.ones((3, 2))),
    "recompute": lambda f: jv.recompute(f)(TWO),
    "compiled cond": lambda f: jv.compile(
        lambda x: jv.cond(x[0] > 0, lambda: f(x), lambda: x))(TWO),
    "compiled scan": lambda f: jv.compile(
        lambda: jv.scan(lambda c, x: (c, f(x)), 0.0, jnp.ones((3, 2))))(),
    "custom_gradient": lambda f: jv.custom_gradient(lambda x: (f(x), lambda g: g))(TWO),
    "another compiled function": lambda f: second_call(f),
}  # fmt: skip


def second_call(f):
    both = jv.compile(lambda x, is_second: f(x) if is_second else x)
    both(TWO, False)
    both(TWO, True)


@pytest.mark.parametrize("name", REFUSING)
def test_a_first_call_that_is_refused_leaves_nothing(name):
    layer = Layer()
    with pytest.raises(CreationError, match=r"'w'.*test_frames\.py:\d+, in __call__"):
        REFUSING[name](layer)
    assert layer.w is None
    assert layer.variables == ()
    assert layer(TWO).tolist() == [4.0, 4.0]


@pytest.mark.parametrize("name", ["grad", "vmap"])
def test_a_first_call_in_a_transform_that_runs_makes_variables(name):
    layer = Layer()
    TRANSFORMS[name](layer)
    assert layer.w.numpy().tolist() == [3.0, 3.0]


# ---------------------------------------------------------------- reads
@staging
def test_a_read_that_becomes_a_constant_warns(transform):
    v = V([1.0, 2.0], name="v")
    with pytest.warns(StaleReadWarning) as caught:
        transform(lambda x: v * x)
    assert caught[0].filename == __file__
    for words in ("Variable 'v' was read", "becomes a constant", "@jv.compile instead of jax.jit"):
        assert words in str(caught[0].message)


@staging
def test_many_reads_warn_once_for_each_trace(transform):
    variables = [V([1.0, 2.0], name=f"v{i}") for i in range(3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            transform(lambda x: sum(v * x for v in variables))
    (one, two) = [str(each.message) for each in caught if each.category is StaleReadWarning]
    assert one == two
    assert one.startswith("Variable 'v0' was read")
    assert one.endswith("The same holds for every other variable that is read there.")


@pytest.mark.parametrize("name", CONCRETE)
def test_a_read_that_does_not_become_one_is_silent(name):
    v = V([1.0, 2.0])
    f = lambda x: v * x  # noqa: E731
    TRANSFORMS[name](f)
    v.assign([3.0, 4.0])
    assert jax.grad(lambda x: jnp.sum(f(x)))(TWO).tolist() == [3, 4]


@pytest.mark.parametrize(
    "use",
    [
        lambda v: jax.jit(lambda x: 2 * x)(v),  # an argument is read outside
        lambda v: jax.jit(lambda: jnp.zeros(v.shape, v.dtype))(),
        lambda v: jax.jit(lambda: (v.name, v.ndim, v.size, v.trainable) and 1)(),
        lambda v: jnp.sum(v),  # jitted inside JAX
        lambda v: jax.lax.scan(lambda c, x: (c, x), 0.0, v),
    ],
)
def test_reading_no_value_inside_is_silent(use):
    use(V([1.0, 2.0]))


WITH_RESULTS = [TRANSFORMS[n] for n in TRANSFORMS if n not in ("make_jaxpr", "eval_shape")]


@pytest.mark.parametrize("transform", WITH_RESULTS)
@pytest.mark.parametrize("name", ["compiled", "pure"])
def test_a_read_in_a_transform_in_our_frames_is_not_a_constant(transform, name):
    v = V([1.0, 2.0], name="v")

    def call():
        return jax.tree.leaves(transform(lambda x: v * x))[-1]

    compiled, pure = jv.compile(call), jax.jit(jv.functionalize(call))
    for value in ([1.0, 2.0], [3.0, 4.0]):
        v.assign(value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StaleReadWarning)
            expected = call()
        result = compiled() if name == "compiled" else pure(jv.State.of(v))[0]
        assert result.tolist() == expected.tolist()


# Functions that JAX traces once and then knows by their identity.
REUSED = {
    "jit": lambda f: jax.jit(f),
    "scan": lambda f: lambda x: jax.lax.scan(lambda c, x: (c, f(x)), 0.0, x[None])[1][0],
    "cond": lambda f: lambda x: jax.lax.cond(x[0] > 0, f, jnp.cos, x),
    "checkpoint": lambda f: jax.checkpoint(f),
    "grad of jit": lambda f: jax.grad(jax.jit(lambda x: jnp.sum(f(x)))),
    "grad of checkpoint": lambda f: jax.grad(jax.checkpoint(lambda x: jnp.sum(f(x)))),
    "vmap of jit": lambda f: lambda x: jax.vmap(jax.jit(f))(x[None])[0],
}


@pytest.mark.parametrize("reused", REUSED.values(), ids=REUSED)
@pytest.mark.filterwarnings("ignore::jaxvars.errors.StaleReadWarning")
def test_an_inner_function_that_is_used_again_reads_again(reused):
    v = V([1.0, 2.0], name="v")
    inner = reused(lambda x: v * x)

    def twice(x):
        before = inner(x)
        v.assign_add(10.0)
        return before, inner(x)

    for f in (jv.compile(twice), jv.compile(lambda x: twice(x))):
        v.assign([1.0, 2.0])
        assert [x.tolist() for x in f(TWO)] == [[1, 2], [11, 12]]
        assert [x.tolist() for x in f(TWO)] == [[11, 12], [21, 22]]
    for pure in (jv.functionalize(twice), jax.jit(jv.functionalize(twice))):
        result, state = pure(jv.State.of(v), TWO)
        assert [x.tolist() for x in result] == [[21, 22], [31, 32]]
        assert state["v"].tolist() == [31, 32]
    assert inner(TWO).tolist() == [21, 22]  # eagerly, and not with a tracer of before


def test_an_inner_function_that_reads_nothing_is_traced_once():
    v, traces = V([1.0, 2.0]), []
    inner = jax.jit(lambda x: (traces.append(None), 2 * x)[1])

    def assign_between(x):
        for _ in range(3):
            v.assign_add(inner(v.value))
        return v + x

    assert jv.compile(assign_between)(TWO).tolist() == [28, 55]
    assert len(traces) == 1


# ---------------------------------------------------------------- frames
def test_each_thread_has_its_own_stack():
    v = V(1.0, name="v")

    def in_another_thread():
        assert run_in_threads(lambda: v.assign_add(1.0).item()) == [2.0]
        return v * 10

    result, state = jv.functionalize(in_another_thread)(jv.State.of(v))
    assert (result, state["v"], v.item()) == (10, 1, 2)


@places
def test_the_frame_is_left_after_an_exception(place):
    v = V(1.0, name="v")

    def fail():
        v.assign(2.0)
        raise OSError

    with pytest.raises(OSError):
        place(fail, v)
    assert LOCAL.frame is LOCAL.eager
    assert v.item() == (2 if place is PLACES["eager"] else 1)


@pytest.mark.parametrize(("result", "arrays", "plain"), [
    (jnp.float32(2), [2], True), ({"a": 1.0, "b": [2, None]}, [1, 2], True),
    ({"a": 1.0, "t": "text"}, [1], False), (V(3.0), [3], True), (None, [], True),
])  # fmt: skip
def test_rebuild(result, arrays, plain):
    rebuild = PyTreeTemplate(result)
    assert (rebuild.arrays, rebuild.is_plain) == (arrays, plain)
    again = rebuild([10 * x for x in arrays])
    if isinstance(result, dict):
        known = {"a": 10, "b": [20, None], "t": "text"}
        assert again == {key: known[key] for key in result}

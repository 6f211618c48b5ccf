"""`State` is a pytree of the variables' values by path; `functionalize` makes code on variables
a pure function of it, for every JAX transform."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxvars as jv
from jaxvars.errors import CreationError, DtypeError, ForeignTransformError, ShapeError, StateError

V, State = jv.Variable, jv.State


class Inner(jv.Module):
    def __init__(self):
        self.b = V(0.5, name="b")
        self.layers = [V(1.0), {"k": V(2.0)}]


class Net(jv.Module):
    def __init__(self):
        self.w = V([1.0, 2.0], name="w")
        self.inner = Inner()


NET = ["w", "inner/b", "inner/layers/0", "inner/layers/1/k"]


class Line:
    """y = w x + b, a count of the steps, and one step of gradient descent."""

    def __init__(self, w=0.0):
        self.w, self.b = V(w, name="w"), V(0.0, name="b")
        self.steps = V(0, name="steps", trainable=False)

    def __call__(self, x):
        return self.w * x + self.b

    def loss(self, x, y):
        return jnp.mean((self(x) - y) ** 2)

    def step(self, x, y):
        with jv.GradientTape() as tape:
            loss = self.loss(x, y)
        for v, g in zip((self.w, self.b), tape.gradient(loss, [self.w, self.b]), strict=True):
            v.assign_sub(0.1 * g)
        self.steps.assign_add(1)
        return loss


X = jnp.arange(4.0)
Y = 2 * X + 1


def by_hand(params, x=X, y=Y):
    """The step of `Line` in plain JAX."""

    def loss(params):
        return jnp.mean((params["w"] * x + params["b"] - y) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def many_by_hand(params, n):
    losses = []
    for _ in range(n):
        loss, params = by_hand(params)
        losses.append(loss)
    return jnp.stack(losses), params


def start(w=0.0):
    return {"w": jnp.float32(w), "b": jnp.float32(0)}


# ---------------------------------------------------------------- State.of
@pytest.mark.parametrize(("state", "paths"), [
    (lambda: State.of(V(1.0, name="w")), ["w"]),
    (lambda: State.of(V(1.0, name="scope/w")), ["scope/w"]),
    (lambda: State.of(Net()), NET), (lambda: State.of([V(1.0), V(2.0)]), ["0", "1"]),
    (lambda: State.of({"x": V(1.0), "y": {"z": V(2.0)}}), ["x", "y/z"]),
    (lambda: State.of(Net(), V(1.0, name="v")), [*(f"net/{p}" for p in NET), "v"]),
    (lambda: State.of(Net(), Net()), [*(f"net/{p}" for p in NET), *(f"net_1/{p}" for p in NET)]),
    (lambda: State.of(V(1.0, name="a"), V(2.0, name="a")), ["a", "a_1"]),
    (lambda: State.of(model=Net(), rate=V(1.0)), [*(f"model/{p}" for p in NET), "rate"]),
    (lambda: State.of(Net(), rate=V(1.0)), [*(f"net/{p}" for p in NET), "rate"]),
    (lambda: State.of({1: V(1.0), "1": V(2.0)}), ["1", "1_1"]),
    (lambda: State.of({"a/b": V(1.0), "a": {"b": V(2.0)}}), ["a/b", "a/b_1"]),
])  # fmt: skip
def test_paths(state, paths):
    assert sorted(state()) == sorted(paths)
    if len(paths) > 1 and paths[0] != "a/b":
        assert list(state()) == paths


def test_slots_are_under_the_paths_of_their_variables():
    model, optimizer = [Net(), V([0.0, 0.0], name="w")], jv.optimizers.SGD(0.1, momentum=0.9)
    optimizer.apply_gradients([([2.0, 2.0], model[1]), ([1.0, 1.0], model[0].w)])
    slots = {p: v for p, v in State.of(m=model, o=optimizer).items() if "slots" in p}
    assert list(slots) == ["o/slots/m/1/momentum", "o/slots/m/0/w/momentum"]
    np.testing.assert_allclose(slots["o/slots/m/1/momentum"], [-0.2, -0.2])
    assert [p for p in State.of(optimizer) if "slots" in p] == [
        "slots/w/momentum", "slots/w_1/momentum"
    ]  # fmt: skip
    for untold in (optimizer, State.of(optimizer), {V(1.0), V(2.0)}):
        with pytest.raises(StateError, match=r"do not tell apart .*Take the State with the model"):
            jv.interop.to_bytes(untold)
    kept = jv.interop.to_numpy(State.of(m=model, o=optimizer))
    again, other = [Net(), V([0.0, 0.0], name="w")], jv.optimizers.SGD(0.1, momentum=0.9)
    other.build([again[0].w, again[1]])
    jv.interop.from_numpy(State.of(m=again, o=other), kept).commit()
    np.testing.assert_allclose(other.get_slot(again[1], "momentum"), [-0.2, -0.2])


def test_a_variable_in_two_places_is_held_once():
    v = V(1.0, name="v")
    assert list(State.of(v, v)) == ["v"]
    assert list(State.of(a=v, b=[v])) == ["a"]


@pytest.mark.parametrize("thing", [3.0, [], {}, jv.Module(), "text", jnp.ones(2)])
def test_what_holds_no_variable_is_refused(thing):
    with pytest.raises(StateError, match=f"This {type(thing).__name__} has no Variable"):
        State.of(thing)
    with pytest.raises(StateError, match="has no Variable"):
        State.of(model=V(1.0), other=thing)


def test_it_is_a_mapping():
    state = State.of(Net())
    assert len(state) == 4
    assert "inner/b" in state
    assert state["w"].tolist() == [1, 2]
    assert state.get("nope", 7) == 7
    assert {path: float(jnp.sum(x)) for path, x in state.items()} == {
        "w": 3,
        "inner/b": 0.5,
        "inner/layers/0": 1,
        "inner/layers/1/k": 2,
    }
    with pytest.raises(StateError, match=r"No variable at 'nope'; there are \['w', 'inner/b'"):
        state["nope"]
    with pytest.raises(TypeError):
        state["w"] = 1


def test_it_shows_paths_and_values():
    assert repr(State.of(V([1.0, 2.0], name="w"), V(3, name="n"))) == (
        "State(\n  w: [1. 2.]\n  n: 3\n)"
    )


def test_it_is_a_pytree():
    state = State.of(Net())
    doubled = jax.tree.map(lambda x: 2 * x, state)
    assert isinstance(doubled, State)
    assert doubled["w"].tolist() == [2, 4]
    assert state["w"].tolist() == [1, 2]
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(state)]
    assert paths == [f"[{path!r}]" for path in NET]


def test_states_of_the_same_variables_have_the_same_structure():
    net = Net()
    assert jax.tree.structure(State.of(net)) == jax.tree.structure(State.of(net))
    assert jax.tree.structure(State.of(net)) != jax.tree.structure(State.of(Net()))
    total = jax.tree.map(jnp.add, State.of(net), State.of(net))
    assert total["w"].tolist() == [2, 4]
    layouts = [jax.tree.structure(State.of(net)).node_data()[1] for _ in range(2)]
    assert len(set(layouts)) == 1  # JAX needs it to be hashable
    twins = [State.of(V(1.0, name="v")) for _ in range(2)]
    with pytest.raises(ValueError, match=r"different pytree metadata[^#]*\n    variables v\n"):
        jax.tree.map(jnp.add, *twins)


def test_optax_takes_it():
    state = State.of(Net())
    optimizer = optax.sgd(0.5)
    grads = jax.tree.map(jnp.ones_like, state)
    updates, _ = optimizer.update(grads, optimizer.init(state), state)
    assert optax.apply_updates(state, updates)["w"].tolist() == [0.5, 1.5]


def test_replace():
    state = State.of(Net())
    other = state.replace({"w": jnp.zeros(2)})
    assert (other["w"].tolist(), state["w"].tolist()) == ([0, 0], [1, 2])
    assert other["inner/b"] is state["inner/b"]
    with pytest.raises(StateError, match=r"No variable at \['v'\]; there are \['w'"):
        state.replace({"v": 1})


@pytest.mark.parametrize("root", [{1: V(1.0), "1": V(2.0)}, {"a/b": V(1.0), "a": {"b": V(2.0)}}])
def test_what_paths_do_not_tell_apart_is_not_replaced(root):
    state = State.of(root, rate=V(3.0)) if 1 in root else State.of(root)
    name = next(iter(state))
    for path in (name, f"{name}_1"):
        with pytest.raises(
            StateError, match=r"Several variables have the path of \['.*'\], as in a"
        ):
            state.replace({path: jnp.zeros(())})
    with pytest.raises(StateError, match=r"which of them is meant at test_state\.py:\d+"):
        state.replace(pickle.loads(pickle.dumps(state)))
    doubled = state.replace(jax.tree.map(lambda x: 2 * x, state))
    assert doubled[name] == 2 * state[name]
    if 1 in root:
        assert float(state.replace({"rate": jnp.ones(())})["rate"]) == 1.0


def test_it_does_not_change_with_the_variables():
    v = V([1.0], name="v")
    state = State.of(v)
    v.assign([2.0])
    assert state["v"].tolist() == [1]


def test_donating_it_does_not_take_the_variables_values():
    v = V(jnp.ones(1000), name="v")
    state = State.of(v)
    double = jax.jit(lambda s: jax.tree.map(lambda x: 2 * x, s), donate_argnums=0)
    state = double(state)
    assert v.numpy().sum() == 1000
    state.commit()
    state = double(state)
    assert v.numpy().sum() == 2000
    state.commit(copy=False)
    assert v.value is state["v"]
    assert State.of(v, copy=False)["v"] is v.value


def test_strings_are_held_too():
    v = V("a", name="v")
    state = State.of(v)
    state.replace({"v": np.array("b", np.dtypes.StringDType())}).commit()
    assert v.item() == "b"
    with pytest.raises(ValueError, match="read-only"):
        v.value[...] = "c"


def test_a_shallow_copy_refers_to_the_variables_and_a_deep_one_to_none():
    net = Net()
    copy.copy(State.of(net).replace({"w": jnp.array([5.0, 6.0])})).commit()
    assert net.w.numpy().tolist() == [5, 6]
    with pytest.raises(StateError, match="came out of a pickle or deep copy: it refers to no var"):
        copy.deepcopy(State.of(net)).commit()


# ---------------------------------------------------------------- commit
def test_commit():
    net = Net()
    jax.tree.map(lambda x: x + 1, State.of(net)).commit()
    assert [v.numpy().tolist() for v in net.variables] == [[2, 3], 1.5, 2, 3]


def test_commit_is_all_or_nothing_and_lists_every_problem():
    net, dead = Net(), V(1.0, name="dead")
    state = State.of(net, dead)
    del dead
    wrong = state.replace(
        {
            "net/w": jnp.zeros(3),
            "net/inner/b": jnp.zeros((), int),
            "net/inner/layers/0": None,
            "net/inner/layers/1/k": jnp.float32(9),
        }
    )
    with pytest.raises(StateError) as error:
        wrong.commit()
    assert str(error.value).splitlines() == [
        "State.commit() changed nothing:",
        "  net/w: the variable is float32[2], the value float32[3]",
        "  net/inner/b: the variable is float32[], the value int32[]",
        "  net/inner/layers/0: the variable is float32[], the value NoneType",
        "  dead: the variable is gone. State.of(...) takes the values of those there are",
    ]
    assert [v.numpy().tolist() for v in net.variables] == [[1, 2], 0.5, 1, 2]


def test_numpy_values_are_copied():
    v, source = V([1.0, 2.0], name="v"), np.zeros(2, np.float32)
    State.of(v).replace({"v": source}).commit()
    source[:] = 9
    assert v.numpy().tolist() == [0, 0]
    assert isinstance(v.value, jax.Array)


def test_values_become_strongly_typed():
    v = V(1.0, name="v")
    State.of(v).replace({"v": jnp.asarray(2.0)}).commit()
    assert not v.value.weak_type


def test_commit_in_compiled_code():
    v = V([1.0], name="v")
    jv.compile(lambda: jax.tree.map(lambda x: 3 * x, State.of(v)).commit())()
    assert v.numpy().tolist() == [3]


def test_commit_in_a_plain_transform_is_refused():
    v = V([1.0], name="v")
    with pytest.raises(ForeignTransformError, match="Variable 'v' is written"):
        jax.jit(lambda state: state.commit())(State.of(v))
    assert v.numpy().tolist() == [1]


def test_it_does_not_keep_the_variables_alive():
    v = V([1.0])
    gone, state = weakref.ref(v), State.of(v)
    del v
    gc.collect()
    assert gone() is None
    assert state["Variable"].tolist() == [1]


# ---------------------------------------------------------------- functionalize
@pytest.mark.parametrize("compiled", [False, True])
def test_pure_equals_eager_and_changes_nothing(compiled):
    line, eager = Line(), Line()
    step = jv.compile(line.step) if compiled else line.step
    loss, state = jv.functionalize(step)(State.of(line), X, Y)
    assert [v.item() for v in (line.w, line.b, line.steps)] == [0, 0, 0]
    assert loss == eager.step(X, Y)
    assert state == State.of(eager)
    state.commit()
    assert [v.item() for v in (line.w, line.b, line.steps)] == [eager.w.item(), eager.b.item(), 1]


def test_results_are_plain():
    v = V([1.0], name="v")
    result, _ = jv.functionalize(lambda: {"v": v, "part": v[0], "text": "t", "none": None})(
        State.of(v)
    )
    assert isinstance(result["v"], jax.Array)
    assert isinstance(result["part"], jax.Array)
    assert (result["text"], result["none"]) == ("t", None)


def test_keyword_arguments_and_the_name_pass():
    def scale(x, *, by=2.0):
        return v * x * by

    v = V(1.0, name="v")
    pure = jv.functionalize(scale)
    assert pure.__name__ == "scale"
    assert pure(State.of(v), 3.0, by=4.0)[0] == 12


def test_other_variables_are_read_from_outside():
    v, w = V(2.0, name="v"), V(3.0, name="w")
    assert jv.functionalize(lambda: v * w)(State.of(v))[0] == 6


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["", "compile"])
@pytest.mark.parametrize("use", [
    lambda pure, state: pure(state, 2.0), lambda pure, state: jax.vmap(pure, (None, 0))(state, X),
    lambda pure, state: jax.grad(lambda s: pure(s, 2.0)[0], allow_int=True)(state),
])  # fmt: skip
def test_the_state_of_another_model_is_refused(wrap, use):
    """Else the values of this one would be used, and mapped over and differentiated in vain."""
    one, other = Line(3.0), Line(5.0)
    pure = jv.functionalize(wrap(one.__call__))
    with pytest.raises(StateError, match=r"test_state.py:\d+.* holds none .* such as 'w', but .*"):
        use(pure, State.of(other))
    given = State.of(one).replace(State.of(other))
    assert pure(given, 2.0)[0] == 10


def test_a_state_is_that_of_the_function_if_one_variable_is_used():
    v, w = V(2.0, name="v"), V(3.0, name="w")
    inner = jax.jit(lambda x: v * x)  # its trace may be used again

    def write_only():
        v.assign(7.0)
        return w + 0

    for _ in range(3):
        assert jv.functionalize(lambda: inner(1.0) * w)(State.of(v))[0] == 6
        assert jv.functionalize(write_only)(State.of(v))[1]["v"] == 7
        assert jv.functionalize(lambda: 1)(State.of(v))[0] == 1


@pytest.mark.parametrize("write", [
    lambda w, _: w.assign([1.0]), lambda w, _: w.assign_add(1.0),
    lambda w, _: w.assign_sub(1.0), lambda _, state: state.commit(),
])  # fmt: skip
@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile, jax.jit], ids=["", "compile", "jit"])
def test_writing_what_the_state_does_not_hold_names_it(write, wrap):
    v, w = V(2.0, name="v"), V([3.0], name="the other")
    other = State.of(w)

    def f():
        write(w, other)
        return v + 0

    pure = jv.functionalize(wrap(f) if wrap is jv.compile else f)
    pure = jax.jit(pure) if wrap is jax.jit else pure
    with pytest.raises(StateError, match=r"'the other' is written.*State .* does not hold it"):
        pure(State.of(v))
    assert w.item() == 3


@pytest.mark.parametrize("wrong", [{"w": 1.0}, None, 3.0, [1.0]])
def test_the_first_argument_must_be_a_state(wrong):
    pure = jv.functionalize(lambda: None)
    with pytest.raises(StateError, match=r"must be a State, not \w+: pure\(jv\.State\.of\(model"):
        pure(wrong)


def test_creating_a_variable_is_refused():
    v = V(1.0, name="v")
    with pytest.raises(CreationError, match=r"Variable 'new' is created at test_state\.py:\d+"):
        jv.functionalize(lambda: V(1.0, name="new"))(State.of(v))


def test_an_exception_leaves_everything_as_it_was():
    v = V([1.0, 2.0], name="v")

    def fail():
        v.assign([5.0, 5.0])
        v.assign([1.0])

    state = State.of(v)
    with pytest.raises(ShapeError):
        jv.functionalize(fail)(state)
    assert (v.numpy().tolist(), state["v"].tolist()) == ([1, 2], [1, 2])
    assert v.assign_add(1).numpy().tolist() == [2, 3]  # the frame is gone


def test_nested():
    v = V(1.0, name="v")

    def inner():
        return v.assign_add(1.0) * 10

    def outer():
        result, state = jv.functionalize(inner)(State.of(v))
        return result, v + 0, state["v"]

    assert jv.functionalize(outer)(State.of(v))[0] == (20, 1, 2)


# ---------------------------------------------------------------- under JAX's transforms
@pytest.mark.usefixtures("empty_jit_cache")
def test_under_jit():
    line = Line()
    pure = jax.jit(jv.functionalize(line.step))
    state, losses = State.of(line), []
    for _ in range(5):
        loss, state = pure(state, X, Y)
        losses.append(loss)
    expected, params = many_by_hand(start(), 5)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(state["w"], params["w"], rtol=1e-5)
    assert state["steps"] == 5
    assert pure._cache_size() == 1


def test_arguments_are_found_by_name_and_place_behind_the_state():
    w = V([1.0, 2.0], name="w")

    def scaled(x, mode="half"):
        return w * x * (0.5 if mode == "half" else 2.0)

    pure, state, x = jv.functionalize(scaled), State.of(w), jnp.full(2, 4.0)
    for static in ({"static_argnames": "mode"}, {"static_argnums": 2}):
        jitted = jax.jit(pure, **static, donate_argnames="x")
        assert jitted(state, jnp.copy(x), "half")[0].tolist() == [2.0, 4.0]
        assert jitted(state, jnp.copy(x), mode="twice")[0].tolist() == [8.0, 16.0]
    jitted(state, x)
    assert x.is_deleted()
    assert state["w"].tolist() == [1.0, 2.0]
    jax.jit(jv.functionalize(lambda: w + 1), donate_argnums=0)(state)
    custom = jax.custom_jvp(jv.functionalize(lambda x: w * x))
    custom.defjvp(lambda primals, tangents: (custom(*primals), custom(*primals)))
    assert custom(State.of(w), 2.0)[0].tolist() == [2.0, 4.0]


def test_under_vmap_an_ensemble_of_training_runs():
    line, starts = Line(), [-1.0, 0.0, 1.0, 5.0]
    states = State.of(line)
    ensemble = jax.tree.map(lambda x: jnp.stack([x] * 4), states).replace({"w": jnp.array(starts)})
    step = jax.jit(jax.vmap(jv.functionalize(line.step), in_axes=(0, None, None)))
    for _ in range(3):
        losses, ensemble = step(ensemble, X, Y)
    for i, w in enumerate(starts):
        expected, params = many_by_hand(start(w), 3)
        np.testing.assert_allclose(losses[i], expected[-1], rtol=1e-5)
        np.testing.assert_allclose(ensemble["w"][i], params["w"], rtol=1e-5)
    assert ensemble["steps"].tolist() == [3] * 4
    assert line.w.item() == 0


def test_under_vmap_over_the_data_only():
    line = Line(1.0)
    losses, _ = jax.vmap(jv.functionalize(line.loss), in_axes=(None, 0, 0))(State.of(line), X, Y)
    np.testing.assert_allclose(losses, (X - Y) ** 2)


def test_under_grad_with_respect_to_the_whole_state():
    line = Line(1.0)
    pure = jv.functionalize(line.loss)
    grads = jax.grad(lambda s: pure(s, X, Y)[0], allow_int=True)(State.of(line))
    expected = jax.grad(lambda p: jnp.mean((p["w"] * X + p["b"] - Y) ** 2))(start(1.0))
    assert isinstance(grads, State)
    assert (grads["w"], grads["b"]) == (expected["w"], expected["b"])


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile, jax.jit], ids=["", "compile", "jit"])
def test_under_grad_through_three_training_steps(wrap):
    line = Line()
    pure, first = jv.functionalize(line.step), State.of(line)

    def after_three(w):
        state = first.replace({"w": w})
        for _ in range(3):
            loss, state = pure(state, X, Y)
        return loss

    expected = jax.grad(lambda w: many_by_hand(start() | {"w": w}, 3)[0][-1])(jnp.float32(0.3))
    np.testing.assert_allclose(wrap(jax.grad(after_three))(jnp.float32(0.3)), expected, rtol=1e-5)


def test_under_scan_over_steps():
    line = Line()
    pure = jv.functionalize(line.step)

    def body(state, batch):
        loss, state = pure(state, *batch)
        return state, loss

    batches = (jnp.stack([X] * 6), jnp.stack([Y] * 6))
    state, losses = jax.lax.scan(body, State.of(line), batches)
    expected, params = many_by_hand(start(), 6)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(state["b"], params["b"], rtol=1e-5)
    state.commit()
    assert line.steps.item() == 6


def test_under_eval_shape_and_checkpoint():
    line = Line()
    pure = jv.functionalize(line.step)
    loss, state = jax.eval_shape(pure, State.of(line), X, Y)
    assert (loss.shape, state["steps"].dtype) == ((), "int32")
    assert jax.checkpoint(pure)(State.of(line), X, Y)[0] == pure(State.of(line), X, Y)[0]


@pytest.mark.skipif(jax.device_count() < 8, reason="needs 8 devices: see conftest.py")
def test_under_jit_on_many_devices():
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    v = V(jnp.arange(16.0), name="v", sharding=sharding)
    pure = jax.jit(jv.functionalize(lambda: v.assign_add(jnp.ones(16)).value.sum()))
    total, state = pure(State.of(v))
    assert total == 136
    assert state["v"].sharding == sharding
    state.commit()
    assert v.sharding == sharding


# ---------------------------------------------------------------- values of NumPy
def test_values_of_numpy_are_copied_before_code_runs_on_them():
    v, saved = jv.Variable([0.0, 0.0], name="v"), np.array([1.0, 2.0], np.float32)

    def change_a_local():
        local = v.value
        local += 10.0
        return local.sum()

    state = jv.State.of(v).replace({"v": saved})
    result, new = jv.functionalize(change_a_local)(state)
    assert float(result) == 23.0
    for values in (saved, state["v"], new["v"]):
        assert np.asarray(values).tolist() == [1.0, 2.0]


def test_a_state_that_was_fetched_runs_as_before():
    v, n = jv.Variable([0.0, 0.0], name="v"), jv.Variable(3, name="n")

    def step():
        v[0].assign(5.0)
        return n / 2

    state = jax.device_get(jv.State.of([v, n]))
    half, new = jv.functionalize(step)(state)
    assert (half.dtype, float(half)) == (jnp.float32, 1.5)
    assert [x.tolist() for x in new.values()] == [[5.0, 0.0], 3]


def test_a_state_taken_under_a_tape_and_a_device_scope_has_the_values():
    name, w = V("a", name="name"), V([1.0, 2.0], name="w")
    device = w.device
    with jv.GradientTape() as tape, jv.device("CPU:3"):
        taken = State.of(name=name, w=w, copy=False)
        y = (taken["w"] ** 2).sum()
    assert str(taken["name"]) == "a"
    assert {d.id for d in taken["w"].devices()} == {3}
    assert tape.gradient(y, w).tolist() == [2.0, 4.0]
    taken.replace({"w": jnp.array([3.0, 4.0])}).commit()
    assert w.device == device
    assert w.numpy().tolist() == [3.0, 4.0]


def test_a_masked_array_is_refused():
    state = State.of(V([1.0, 2.0], name="w"))
    with pytest.raises(StateError, match=r"The values of \['w'\] are masked arrays"):
        state.replace({"w": np.ma.array([1.0, 2.0], mask=[0, 1])})


@pytest.mark.parametrize("value", [np.array([1e300, 1.0]), np.array([2**40, 1])])
def test_a_pure_function_is_given_no_value_that_jax_would_cut(value):
    v = V(np.zeros(2, np.float32 if value.dtype.kind == "f" else np.int32), name="v")
    state = State.of(v).replace({"v": value})
    with pytest.raises(DtypeError, match=r"a value of the State reaches from .* outside of"):
        jv.functionalize(lambda: v * 1)(state)


def test_a_replaced_value_is_no_longer_the_array_that_was_given():
    v = jv.Variable(jnp.zeros(2))
    batch = np.ones(2, np.float32)
    state = jv.State.of(v).replace({"Variable": batch})
    batch[:] = 5
    state.commit()
    assert v.numpy().tolist() == [1.0, 1.0]


# ---------------------------------------------------------------- 64 bits, where they are off
def test_states_keep_64_bits_where_they_are_off():
    big = 2**40 + 1
    with jax.enable_x64(True):
        n, f = jv.Variable(np.int64(big), name="n"), jv.Variable(np.array([1 + 1e-12]), name="f")
    state = jv.State.of(n=n, f=f)
    for taken in (state, jv.State.of(n=n, f=f, copy=False)):
        taken.commit()
    for made in (copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
        assert [made["n"].dtype, made["f"].dtype] == ["int64", "float64"]
        state.replace(made).commit()
    assert [n.item(), f[0].item()] == [big, 1 + 1e-12]
    given = state.replace({"n": np.int64(big + 1), "f": np.array([2.0])})
    read, after = jv.functionalize(lambda: (n.value, f.value))(given)
    assert int(read[0]) == int(after["n"]) == big + 1
    after.commit()
    assert [n.item(), f.value.dtype] == [big + 1, "float64"]


def test_a_pure_function_under_jit_follows_the_flag_of_another_variable():
    v, other = V(1.0), V(1.0)
    run = jax.jit(jv.functionalize(lambda: v * (2 if other.trainable else 3)))
    state = jv.State.of(v)
    for _ in range(2):
        assert run(state)[0] == 2
        other.trainable = False
        assert run(state)[0] == 3
        other.trainable = True
        with jv.freeze([other]):
            assert run(state)[0] == 3
    assert run._cache_size() == 2


def test_flags_that_were_asked_for_are_kept_as_long_as_a_state_of_the_variables():
    w, other = jv.Variable(1.0), jv.Variable(1.0)
    state, again = jv.State.of(w), jv.State.of(w)
    jv.functionalize(lambda: w * float(other.trainable))(state)
    assert again._layout.asked is state._layout.asked
    assert again._layout.asked == {other._cell.key: False}
    del state, again
    gc.collect()
    assert jv.State.of(w)._layout.asked == {}

from __future__ import annotations

import copy
import gc
import json
import math
import pickle
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxvars as jv
from jaxvars import optimizers
from jaxvars.errors import CreationError, DtypeError, GradientWarning, ShapeError, StateError
from jaxvars.optimizers.checks import list_options

GOLDENS = json.loads((Path(__file__).parents[1] / "goldens" / "optimizers.json").read_text())
MAKERS: dict[str, Any] = {
    name: getattr(optimizers, name)
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam",
                 "Ftrl", "Lion", "Lamb", "Adafactor")
}  # fmt: skip
RNG = np.random.default_rng(1)


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [RNG.normal(size=shape).astype(np.float32) for shape in shapes]


class Model(jv.Module):
    def __init__(self):
        w, b = np.linspace(-1, 1, 6).reshape(3, 2), np.array([0.5, -0.5])
        self.w = jv.Variable(w.astype(np.float32), name="w")
        self.b = jv.Variable(b.astype(np.float32), name="b")

    def __call__(self, x):
        return x @ self.w + self.b


X, Y = arrays((5, 3), (5, 2))


def train_step(model, optimizer):
    def step(x, y):
        return optimizer.minimize(lambda: ((model(x) - y) ** 2).mean(), model.trainable_variables)

    return step


def counted(fn, runs):
    def body(x, y):
        runs.append(1)
        return fn(x, y)

    return body


def values(*objects):
    return [v.numpy() for o in objects for v in o.variables]


def same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


# ---------------------------------------------------------------- TensorFlow's values
@pytest.mark.parametrize("how", ["eager", "compiled"])
@pytest.mark.parametrize(
    "case", GOLDENS["cases"], ids=lambda c: f"{c['optimizer']}-{'-'.join(c['arguments'])}"
)
def test_the_updates_are_those_of_tensorflow(case, how):
    start, grads = GOLDENS["start"], GOLDENS["grads"]
    variables = [jv.Variable(x, name=n) for n, x in zip("wb", start, strict=True)]
    optimizer = MAKERS[case["optimizer"]](**case["arguments"])

    def step(gs):
        optimizer.apply_gradients(zip(gs, variables, strict=True))

    run = jv.compile(step) if how == "compiled" else step
    for gs, after in zip(grads, case["after"], strict=True):
        run([jnp.asarray(g, jnp.float32) for g in gs])
        for v, expected in zip(variables, after, strict=True):
            np.testing.assert_allclose(v.numpy(), expected, rtol=2e-5, atol=2e-6)


def test_every_optimizer_has_a_golden():
    assert {case["optimizer"] for case in GOLDENS["cases"]} == set(MAKERS)


# ---------------------------------------------------------------- optax's values
def optax_trained(tx, params, grads):
    state = tx.init(params)

    @jax.jit
    def step(params, state, gs):
        updates, state = tx.update(gs, state, params)
        return optax.apply_updates(params, updates), state

    for gs in grads:
        params, state = step(params, state, gs)
    return params, state


ANY_OPTAX = {
    "adam": lambda: optax.adam(1e-2),
    "adamw": lambda: optax.adamw(1e-2, mask=lambda params: {n: n == "w" for n in params}),
    "sgd": lambda: optax.sgd(optax.cosine_decay_schedule(0.1, 10), momentum=0.9),
    "clipped": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-2)),
    "by label": lambda: optax.multi_transform(
        {"w": optax.adam(0.1), "b": optax.sgd(0.1)}, lambda params: {n: n for n in params}
    ),
    "injected": lambda: optax.inject_hyperparams(optax.adam)(learning_rate=0.1, b1=0.8),
    "lookahead-like": lambda: optax.chain(optax.trace(0.9), optax.ema(0.5), optax.scale(-0.1)),
    "adafactor": lambda: optax.adafactor(0.1, min_dim_size_to_factor=2),
    "noise": lambda: optax.chain(optax.add_noise(0.1, 0.5, 7), optax.sgd(0.1)),
    "multistep": lambda: optax.MultiSteps(optax.adam(0.1), 2).gradient_transformation(),
}


@pytest.mark.parametrize("how", ["eager", "compiled"])
@pytest.mark.parametrize("name", ANY_OPTAX)
def test_the_updates_are_those_of_optax_to_the_bit(name, how):
    start = dict(zip("wb", arrays((3, 2), (4,)), strict=True))
    grads = [dict(zip("wb", arrays((3, 2), (4,)), strict=True)) for _ in range(5)]
    variables = {n: jv.Variable(x, name=n) for n, x in start.items()}
    optimizer = optimizers.Optax(ANY_OPTAX[name]())

    def step(gs):
        optimizer.apply_gradients([(gs[n], v) for n, v in variables.items()])

    run = jv.compile(step) if how == "compiled" else step
    for gs in grads:
        run(gs)
    params, _ = optax_trained(ANY_OPTAX[name](), start, grads)
    same([v.numpy() for v in variables.values()], [params[n] for n in variables])


def test_the_state_is_optax_own_too():
    start = dict(zip("wb", arrays((3, 2), (4,)), strict=True))
    grads = [dict(zip("wb", arrays((3, 2), (4,)), strict=True)) for _ in range(3)]
    variables = {n: jv.Variable(x, name=n) for n, x in start.items()}
    optimizer = optimizers.Optax(optax.adam(0.1))
    for gs in grads:
        optimizer.apply_gradients([(gs[n], v) for n, v in variables.items()])
    _, (adam, _) = optax_trained(optax.adam(0.1), start, grads)
    assert list(optimizer.named_variables) == [
        "iterations", "shared/0/count", "slots/b/0/mu", "slots/b/0/nu", "slots/w/0/mu",
        "slots/w/0/nu",
    ]  # fmt: skip
    same([optimizer.get_slot(v, "0/nu") for v in variables.values()], [adam.nu[n] for n in "wb"])
    assert int(optimizer.shared["0/count"]) == int(adam.count) == 3


def test_a_variable_may_be_called_like_a_part_of_the_state():
    variables = [jv.Variable(1.0, name=n) for n in ("b1", "momentum", "learning_rate", "w")]
    for make in (
        lambda: optimizers.Optax(ANY_OPTAX["injected"]()),
        lambda: optimizers.SGD(0.1, 0.9),
        lambda: MAKERS["Nadam"](),
    ):
        optimizer = make()
        optimizer.apply_gradients([(1.0, v) for v in variables])
        assert all(optimizer.slots[v.name] for v in variables)
        assert all(
            slots.keys() == optimizer.slots["w"].keys() for slots in optimizer.slots.values()
        )


def test_extra_arguments_reach_the_transformation():
    v = jv.Variable(1.0)
    tx = optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau(factor=0.5, patience=1))
    optimizer = optimizers.Optax(tx)
    for _ in range(4):
        optimizer.apply_gradients([(0.0, v)], value=jnp.float32(1.0))
    assert float(optimizer.shared["1/scale"]) < 1.0


def test_a_function_may_be_an_extra_argument():
    v = jv.Variable(np.array([1.0, -2.0], np.float32), name="v")

    def loss(params):
        return (params["v"] ** 2).sum()

    optimizer = optimizers.Optax(optax.lbfgs())
    for _ in range(3):
        params = {"v": v.value}
        value, grads = jax.value_and_grad(loss)(params)
        optimizer.apply_gradients([(grads["v"], v)], value=value, grad=grads, value_fn=loss)
    np.testing.assert_allclose(v.numpy(), 0, atol=1e-6)


# ---------------------------------------------------------------- compiled steps
@pytest.mark.parametrize("name", MAKERS)
def test_a_compiled_step_is_traced_once_and_does_what_an_eager_one_does(name):
    results = []
    for wrap in (lambda f: f, jv.compile):
        model, optimizer, runs = Model(), MAKERS[name](0.05), list[int]()

        step = wrap(counted(train_step(model, optimizer), runs))
        losses = [float(step(X, Y)) for _ in range(4)]
        made = any(optimizer.slots.values())
        assert len(runs) == (1 + made if wrap is jv.compile else 4)
        results.append((losses, values(model, optimizer)))
    (losses, eager), (compiled_losses, compiled) = results
    np.testing.assert_allclose(losses, compiled_losses, rtol=1e-5)
    for a, b in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert losses[-1] < losses[0]


def test_a_step_is_a_pure_function_too():
    model, optimizer = Model(), optimizers.Adam(0.1)
    optimizer.build(model.trainable_variables)
    pure = jax.jit(jv.functionalize(train_step(model, optimizer)))
    state = jv.State.of(model=model, optimizer=optimizer)
    for _ in range(3):
        _, state = pure(state, X, Y)
    assert int(optimizer.iterations) == 0
    step = jv.compile(train_step(model, optimizer))
    for _ in range(3):
        step(X, Y)
    now = jv.State.of(model=model, optimizer=optimizer)
    for path, value in state.items():
        np.testing.assert_allclose(value, now[path], rtol=1e-5, atol=1e-7, err_msg=path)


def test_steps_go_into_a_scan():
    looped, one_by_one = Model(), Model()
    first, second = optimizers.Adam(0.1), optimizers.Adam(0.1)
    step = train_step(looped, first)
    first.build(looped.trainable_variables)
    xs = jnp.stack([X] * 4)
    jv.compile(lambda xs: jv.scan(lambda c, x: (c, step(x, Y)), 0, xs))(xs)
    for _ in range(4):
        train_step(one_by_one, second)(X, Y)
    for a, b in zip(values(looped, first), values(one_by_one, second), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_variable_met_too_late_is_refused_and_build_is_the_cure():
    a, b = jv.Variable(1.0, name="a"), jv.Variable(1.0, name="b")
    optimizer = optimizers.Adam(0.1)

    def body(both):
        optimizer.apply_gradients([(1.0, v) for v in ([a, b] if both else [a])])

    step = jv.compile(body, static_argnames=["both"])
    step(False)
    with pytest.raises(CreationError, match="adam/b/momentum"):
        step(True)
    optimizer.build([b])
    step(True)
    assert float(b) < 1.0


@pytest.mark.parametrize(
    "form",
    [
        lambda step: jv.fori_loop(0, 2, lambda i, c: c + step(), 0.0),
        lambda step: jv.scan(lambda c, x: (c + step(), x), 0.0, jnp.arange(2.0))[0],
        lambda step: jv.while_loop(lambda c: c < 2, lambda c: c + step(), 0.0),
        lambda step: jv.cond(jnp.array(True), step, lambda: 1.0),
        lambda step: jv.recompute(step)(),
        lambda step: jv.functionalize(step)(jv.State.of(NO_STATE))[0],
    ],
)
def test_a_first_update_in_a_loop_or_branch_is_refused_and_build_is_the_cure(form):
    w, optimizer = jv.Variable(1.0, name="w"), optimizers.Adam(0.1)
    step = jv.compile(lambda: form(lambda: optimizer.minimize(lambda: w * w, [w])))
    with pytest.raises(
        CreationError, match=r"'adam/w/(?s:.)*for the first time(?s:.)*\.build\(var"
    ):
        step()
    if "NO_STATE" not in form.__code__.co_names:
        optimizer.build([w])
        assert float(step()) > 0


NO_STATE = jv.Variable(0.0, name="another")


def test_a_first_call_that_fails_leaves_an_optimizer_that_works():
    v, optimizer, fail = jv.Variable(1.0, name="v"), optimizers.SGD(0.5, 0.9), [True]

    @jv.compile
    def step():
        optimizer.apply_gradients([(1.0, v)])
        if fail[0]:
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        step()
    assert (float(v), int(optimizer.iterations)) == (1.0, 0)
    fail[0] = False
    step()
    assert (float(v), float(optimizer.get_slot(v, "momentum"))) == (0.5, -0.5)


# ---------------------------------------------------------------- learning rates
def test_the_learning_rate_is_assigned_without_a_new_trace():
    v, optimizer, runs = jv.Variable(0.0), optimizers.SGD(1.0), []

    @jv.compile
    def step():
        runs.append(1)
        optimizer.apply_gradients([(1.0, v)])

    step()
    optimizer.learning_rate = 10.0
    step()
    optimizer.learning_rate.assign(100.0)
    step()
    assert (float(v), len(runs)) == (-111.0, 1)


def test_a_schedule_is_a_function_of_the_updates_so_far():
    v = jv.Variable(0.0)
    optimizer = optimizers.SGD(optax.piecewise_constant_schedule(1.0, {2: 10.0}))
    step = jv.compile(lambda: optimizer.apply_gradients([(1.0, v)]) * 1)
    assert [int(step()) for _ in range(3)] == [1, 2, 3]
    assert (float(v), float(optimizer.learning_rate)) == (-12.0, 10.0)
    with pytest.raises(TypeError, match="a schedule and cannot be assigned"):
        optimizer.learning_rate = 1.0


def test_a_learning_rate_can_be_shared():
    rate, v = jv.Variable(1.0), jv.Variable(0.0)
    one, other = optimizers.SGD(rate), optimizers.Optax(optax.identity(), rate)
    rate.assign(2.0)
    one.apply_gradients([(1.0, v)])
    other.apply_gradients([(1.0, v)])
    assert float(v) == -4.0


# ---------------------------------------------------------------- lists of variables
def test_variables_without_a_gradient_keep_everything_and_one_warning_names_them():
    variables = [jv.Variable(1.0, name=n) for n in "abc"]
    optimizer = optimizers.Adam(0.1)
    optimizer.apply_gradients([(1.0, v) for v in variables])
    before = [v.numpy() for v in (variables[1], *optimizer.slots["b"].values())]
    with pytest.warns(GradientWarning, match=r"the variables \['b', 'c'\]") as caught:
        optimizer.apply_gradients(zip([1.0, None, None], variables, strict=True))
    assert len(caught) == 1
    same(before, [v.numpy() for v in (variables[1], *optimizer.slots["b"].values())])
    assert float(variables[0]) < 0.85


def test_parts_of_the_variables_have_their_own_state():
    a, b = jv.Variable(1.0, name="a"), jv.Variable(1.0, name="b")
    both, apart = optimizers.Optax(optax.trace(0.9)), optimizers.Optax(optax.trace(0.9))
    for _ in range(2):
        both.apply_gradients([(1.0, a), (2.0, b)])
        apart.apply_gradients([(1.0, a)])
        apart.apply_gradients([(2.0, b)])
    assert (
        float(apart.get_slot(a, "trace")) == float(both.get_slot(a, "trace")) == pytest.approx(1.9)
    )
    assert float(apart.get_slot(b, "trace")) == float(both.get_slot(b, "trace"))


def test_variables_with_one_name_are_told_apart():
    one, other = jv.Variable(1.0, name="v"), jv.Variable([1.0, 1.0], name="v")
    optimizer = optimizers.SGD(1.0, momentum=0.5)
    optimizer.apply_gradients([(1.0, one), ([2.0, 3.0], other)])
    assert list(optimizer.named_variables) == [
        "iterations", "learning_rate", "slots/v/momentum", "slots/v_1/momentum"
    ]  # fmt: skip
    assert optimizer.get_slot(other, "momentum").name == "sgd/v_1/momentum"
    assert optimizer.get_slot(other, "momentum").numpy().tolist() == [-2.0, -3.0]


def test_walking_an_optimizer_does_not_find_the_model():
    model, optimizer = Model(), optimizers.Adam(0.1)
    train_step(model, optimizer)(X, Y)
    assert not {id(v) for v in optimizer.variables} & {id(v) for v in model.variables}
    assert not optimizer.trainable_variables


def test_the_state_of_variables_that_are_gone_goes_too():
    optimizer = optimizers.SGD(0.1, momentum=0.9)
    for _ in range(3):
        optimizer.apply_gradients([(1.0, jv.Variable(1.0, name="v"))])
    assert list(optimizer.slots) == ["v"]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Nadam", "Adafactor"])
def test_copies_of_model_and_optimizer_stay_tied(name, copied):
    model, optimizer = Model(), MAKERS[name](0.05, use_ema=True)
    train_step(model, optimizer)(X, Y)
    twin, twins = copied((model, optimizer))
    before = values(model, optimizer)
    train_step(twin, twins)(X, Y)
    same(before, values(model, optimizer))
    assert list(twins.named_variables) == list(optimizer.named_variables)
    train_step(model, optimizer)(X, Y)
    same(values(model, optimizer), values(twin, twins))


def test_a_copy_of_an_optax_optimizer_and_a_pickle_that_is_refused():
    model, optimizer = Model(), optimizers.Optax(optax.adam(0.1))
    train_step(model, optimizer)(X, Y)
    twin, twins = copy.deepcopy((model, optimizer))
    train_step(model, optimizer)(X, Y)
    train_step(twin, twins)(X, Y)
    same(values(model, optimizer), values(twin, twins))
    with pytest.raises((AttributeError, pickle.PicklingError), match="local object"):
        pickle.dumps(optimizer)


@pytest.mark.parametrize("begun", [True, False])
def test_a_pickle_of_an_optimizer_alone_is_refused_where_it_meets_a_variable(begun):
    v, gone = jv.Variable(1.0, name="v"), jv.Variable(1.0, name="gone")
    optimizer = optimizers.SGD(1.0, momentum=0.5, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_list=[v, gone])
    if begun:
        optimizer.apply_gradients([(0.0, v), (0.0, gone)])
    del gone
    what = r"has slots for \['v'\]" if begun else "keeps weight decay from some variables"
    loaded = pickle.loads(pickle.dumps(optimizer))
    for again in (loaded, pickle.loads(pickle.dumps(loaded)), copy.deepcopy(loaded)):
        with pytest.raises(StateError, match=rf"'sgd' {what}, and was pickled without them: ") as e:
            again.apply_gradients([(1.0, v)])
        assert "whether 'v' is one of these. Pickle both together:\n    pickle.d" in str(e.value)
        with pytest.raises(StateError, match=what):
            again.get_slot(v, "momentum")
        assert int(again.iterations) == begun


def test_a_copy_of_an_optimizer_alone_goes_on_with_the_same_variables():
    v, optimizer = jv.Variable(0.0, name="v"), optimizers.SGD(1.0, momentum=0.5, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_list=[v])
    gc.disable()
    try:
        copied = copy.deepcopy(optimizer)
        optimizer.apply_gradients([(1.0, v)])
        copies = [copied, *(copy.deepcopy(optimizer) for _ in range(2))]
        copies.append(copy.deepcopy(copies[-1]))
        slots = [c.get_slot(v, "momentum") for c in copies[1:]]
        assert [float(slot) for slot in slots] == [-1.0, -1.0, -1.0]
        found = []
        for each in copies:
            v.assign(8.0)
            each.apply_gradients([(1.0, v)])
            found.append(float(v))
        assert found == [7.0, 6.5, 6.5, 6.5]
        assert float(optimizer.get_slot(v, "momentum")) == -1.0
    finally:
        gc.enable()
    assert [list(c.slots) for c in copies] == [["v"]] * 4
    del v
    w = jv.Variable(0.0, name="w")
    copied.apply_gradients([(1.0, w)])
    assert list(copied.slots) == ["w"]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("order", [1, -1])
def test_in_a_copy_of_both_the_slots_are_those_of_the_copied_variables(order, copied):
    v, optimizer = jv.Variable(0.0, name="v"), optimizers.SGD(1.0, momentum=0.5)
    optimizer.apply_gradients([(1.0, v)])
    twin, twins = copied((v, optimizer)[::order])[::order]
    twins.apply_gradients([(1.0, twin)])
    assert (float(v), float(twin)) == (-1.0, -2.5)
    del twin
    twins.apply_gradients([(1.0, v)])
    assert (float(v), list(twins.slots)) == (-2.0, ["v"])


def test_gradients_are_applied_on_one_way_only():
    v, optimizer = jv.Variable(0.0, name="v"), optimizers.SGD(1.0, momentum=0.5)
    optimizer.build([v])

    @jv.compile
    def step(good):
        jv.cond(good, lambda: optimizer.apply_gradients([(1.0, v)]) * 1, lambda: 0)

    step(jnp.bool_(False))
    assert (float(v), int(optimizer.iterations)) == (0.0, 0)
    step(jnp.bool_(True))
    assert (float(v), int(optimizer.iterations)) == (-1.0, 1)


def test_a_value_taken_before_a_step_stays_readable():
    v, optimizer = jv.Variable(jnp.zeros(1000)), optimizers.Adam(0.1)
    step = jv.compile(lambda: optimizer.minimize(lambda: ((v - 1) ** 2).sum(), [v]))
    step()
    kept = v.value
    before = np.array(kept)
    for _ in range(3):
        step()
    same([before], [kept])


# ---------------------------------------------------------------- options
def test_weight_decay_leaves_out_what_it_is_told_to():
    kernel, bias, scale = (jv.Variable(1.0, name=n) for n in ("kernel", "bias", "scale"))
    optimizer = optimizers.AdamW(0.5, weight_decay=0.5)
    optimizer.exclude_from_weight_decay([scale], ["^bias$"])
    optimizer.apply_gradients([(0.0, v) for v in (kernel, bias, scale)])
    assert [float(v) for v in (kernel, bias, scale)] == [0.75, 1.0, 1.0]
    with pytest.raises(ValueError, match="before the first update"):
        optimizer.exclude_from_weight_decay([kernel])


# ---------------------------------------------------------------- by path
def test_masks_labels_and_patterns_go_by_path_after_building_for_a_model():
    model = {"dense": {"kernel": jv.Variable(1.0), "bias": jv.Variable(1.0)}, "n": jv.Variable(3)}
    dense = model["dense"]
    zeros = [(0.0, dense["kernel"]), (0.0, dense["bias"])]
    decay = optimizers.AdamW(0.5, weight_decay=0.5)
    decay.exclude_from_weight_decay(var_names=["dense/bias$"])
    decay.build(model)
    decay.build(model)
    decay.apply_gradients(zeros)
    assert [float(v) for _, v in zeros] == [0.75, 1.0]
    assert list(decay.slots) == ["dense/bias", "dense/kernel"]

    def labels(params):
        return {path: "frozen" if path.endswith("bias") else "free" for path in params}

    by_label = {"free": optax.sgd(1.0), "frozen": optax.set_to_zero()}
    labelled = optimizers.Optax(optax.multi_transform(by_label, labels))
    labelled.build(model)
    labelled.apply_gradients([(1.0, v) for v in dense.values()])
    assert float(dense["kernel"]) == -0.25
    assert float(dense["bias"]) == 1.0


def test_patterns_for_variables_without_a_name_or_path_are_refused():
    v = jv.Variable(1.0)
    optimizer = optimizers.SGD(0.5, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    with pytest.raises(ValueError, match=r"'Variable' of shape \(\) was not .*build\(model\)"):
        optimizer.apply_gradients([(0.0, v)])
    assert float(v) == 1.0
    optimizer.build({"bias": v})
    optimizer.apply_gradients([(0.0, v)])
    assert float(v) == 1.0


def test_state_that_joins_variables_of_one_name_is_refused():
    def flat() -> optimizers.Optimizer:
        return optimizers.Optax(optax.flatten(optax.adam(0.1)))

    model = {"a": jv.Variable([1.0]), "b": jv.Variable([1.0])}
    with pytest.raises(ValueError, match=r"joins all variables.*'Variable', 'Variable_1'.*build"):
        flat().build(list(model.values()))
    optimizer = flat()
    optimizer.build(model)
    optimizer.apply_gradients([([1.0], model["b"]), ([2.0], model["a"])])
    mu = next(v for path, v in optimizer.named_variables.items() if path.endswith("mu"))
    np.testing.assert_allclose(mu, [0.2, 0.1])


def test_paths_that_cannot_be_kept_apart_are_refused():
    first, second, optimizer = Model(), Model(), optimizers.SGD(0.1, momentum=0.5)
    optimizer.build(first)
    with pytest.raises(ValueError, match=r"Two variables have the path .*build\(\{'generator'"):
        optimizer.build(second)
    late = optimizers.SGD(0.1)
    late.build([jv.Variable(1.0), w := jv.Variable(1.0)])
    with pytest.raises(ValueError, match="'w' was built or updated before as 'Variable_1'"):
        late.build({"w": w})
    with pytest.raises(ValueError, match=r"This Module has no trainable variable.*call it once"):
        late.build(jv.Module())


def test_averages_are_swapped_in_and_back_even_after_an_error():
    v = jv.Variable(0.0, name="v")
    optimizer = optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    step = jv.compile(lambda: optimizer.apply_gradients([(-1.0, v)]) * 1)
    for _ in range(3):
        step()

    def evaluate():
        with optimizer.averaged():
            assert float(v) == 2.25
            raise KeyError

    with pytest.raises(KeyError):
        evaluate()
    assert float(v) == 3.0
    optimizer.finalize_variable_values([v])
    assert float(v) == 2.25
    with pytest.raises(ValueError, match="use_ema=True"):
        optimizers.SGD(1.0).swap_averages()


def test_a_variable_met_while_averages_are_in_is_not_swapped_out():
    early, late = jv.Variable(0.0, name="early"), jv.Variable(8.0, name="late")
    optimizer = optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    optimizer.apply_gradients([(-1.0, early)])
    with optimizer.averaged():
        optimizer.apply_gradients([(4.0, late)])
    assert (float(early), float(late)) == (1.0, 4.0)


def test_the_average_of_a_variable_met_later_begins_with_its_value():
    early, late = jv.Variable(0.0, name="early"), jv.Variable(8.0, name="late")
    optimizer = optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    optimizer.apply_gradients([(0.0, early)])
    optimizer.apply_gradients([(4.0, late)])
    assert float(optimizer.get_slot(late, "average")) == 6.0


def make_untrainable(v, step):
    v.trainable = False
    step()
    v.trainable = True


def freeze(v, step):
    with jv.freeze(v):
        step()


@pytest.mark.parametrize("freeze", [make_untrainable, freeze])
@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile])
@pytest.mark.parametrize("around", [lambda o: o, lambda o: optimizers.LossScaleOptimizer(o, 1.0)])
def test_the_average_of_a_frozen_variable_is_its_value(freeze, wrap, around):
    model = {"body": jv.Variable(1.0, name="body"), "head": jv.Variable(2.0, name="head")}
    optimizer = around(optimizers.SGD(0.5, use_ema=True, ema_momentum=0.5))
    optimizer.build(model)
    step = wrap(lambda: optimizer.minimize(lambda: model["body"] + model["head"], model))
    for value in (7.0, 8.0):  # it is loaded once before the first update, and once after
        model["body"].assign(value)
        freeze(model["body"], step)
        with optimizer.averaged():
            assert float(model["body"]) == value
        assert float(model["body"]) == value
    optimizer.swap_averages()
    assert (float(model["body"]), float(model["head"])) == (8.0, 1.25)
    optimizer.swap_averages()
    assert (float(model["body"]), float(model["head"])) == (8.0, 1.0)
    step()
    assert [float(v) for v in model.values()] == [7.5, 0.5]
    optimizer.finalize_variable_values(list(model.values()))
    assert [float(v) for v in model.values()] == [7.75, 0.875]


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), "saved"]
)
def test_that_an_average_has_not_begun_is_copied_and_saved(copied, tmp_path):
    v, other = jv.Variable(1.0, name="v"), jv.Variable(0.0, name="other")
    optimizer = optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    optimizer.build([v, other])
    optimizer.apply_gradients([(1.0, other)])
    if copied == "saved":
        path = jv.checkpoint.Checkpoint(v=v, optimizer=optimizer).save(tmp_path / "here")
        v, optimizer = (
            jv.Variable(0.0, name="v"),
            optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5),
        )
        jv.checkpoint.Checkpoint(v=v, optimizer=optimizer).restore(path).expect_partial()
        optimizer.build([v])
    else:
        v, optimizer = copied((v, optimizer))
    v.assign(9.0)
    with optimizer.averaged():
        assert float(v) == 9.0
    optimizer.apply_gradients([(2.0, v)])
    assert float(optimizer.get_slot(v, "average")) == 8.0


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile])
def test_an_average_of_negative_zeros_is_an_average(wrap):
    v = jv.Variable([-4.0, 8.0], name="v")
    optimizer = optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    step = wrap(lambda: optimizer.apply_gradients([(jnp.zeros(2), v)]) * 1)
    v.assign(v * jnp.zeros(2))  # pruned: the first is negative zero
    step(), step()
    v.assign([-4.0, 8.0])
    step()
    with optimizer.averaged():
        assert v.numpy().tolist() == [-2.0, 4.0]
    v.assign(-jnp.zeros(2))
    swap = wrap(lambda: optimizer.swap_averages())
    swap()
    assert v.numpy().tolist() == [-2.0, 4.0]
    swap()
    assert v.numpy().tolist() == [0.0, 0.0]
    assert optimizer.get_slot(v, "average").numpy().tolist() == [-2.0, 4.0]
    v.assign([-0.0, 1.0])
    with optimizer.averaged():
        pass
    assert np.signbit(v.numpy()).tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_average_of_a_narrow_variable_is_float32(dtype):
    v = jv.Variable(jnp.ones(1, dtype), name="v")
    optimizer = optimizers.SGD(0.0, use_ema=True, ema_momentum=0.999)
    optimizer.apply_gradients([(jnp.zeros(1), v)])
    v.assign(jnp.full(1, 2, dtype))
    for _ in range(100):
        optimizer.apply_gradients([(jnp.zeros(1), v)])
        with optimizer.averaged():
            assert v.dtype == dtype
    average = optimizer.get_slot(v, "average")
    np.testing.assert_allclose(average.numpy(), 2 - 0.999**100, rtol=1e-5)
    with pytest.raises(
        DtypeError, match=rf"'v' is {dtype}, and its average float32: .*averaged\(\)"
    ):
        optimizer.swap_averages()
    optimizer.finalize_variable_values([v])
    assert v.numpy() == average.numpy().astype(dtype)


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile(static_argnames=["which"])])
@pytest.mark.parametrize("calls", [2, 3])
def test_a_sum_of_gradients_is_part_of_one_window(wrap, calls):
    some = [jv.Variable(0.0, name=name) for name in "abc"]
    optimizer = optimizers.SGD(1.0, gradient_accumulation_steps=calls)
    optimizer.build(some)
    choices = [[0], [0, 1], [0, 1, 2], [2]]

    def body(which, x):
        return optimizer.apply_gradients([(x * (i + 1), some[i]) for i in choices[which]]) * 1

    step, rng = wrap(body), np.random.default_rng(calls)
    values, sums = np.zeros(3), np.zeros(3)
    for call in range(1, 31):
        which, x = int(rng.integers(len(choices))), float(rng.integers(1, 9) * calls)
        step(which=which, x=x)
        sums[choices[which]] += x * (np.array(choices[which]) + 1)
        if call % calls == 0:
            values[choices[which]] -= sums[choices[which]] / calls
            sums[:] = 0
        assert [float(v) for v in some] == values.tolist()
    assert int(optimizer.iterations) == 30 // calls


def test_half_a_sum_is_not_part_of_the_window_after_a_restore(tmp_path):
    v, optimizer = jv.Variable(0.0), optimizers.SGD(1.0, gradient_accumulation_steps=2)
    checkpoint = jv.checkpoint.Checkpoint(v=v, optimizer=optimizer)
    path = checkpoint.write(tmp_path / "first.npz")  # no slots
    optimizer.apply_gradients([(100.0, v)])
    checkpoint.restore(path)
    for _ in range(2):
        optimizer.apply_gradients([(1.0, v)])
    assert float(v) == -1


@pytest.mark.parametrize("windows", [0, 2])
def test_a_sum_of_a_variable_that_took_no_part_since_a_restore_is_dropped(tmp_path, windows):
    v, w = jv.Variable(0.0, name="v"), jv.Variable(0.0, name="w")
    optimizer = optimizers.SGD(1.0, gradient_accumulation_steps=2)
    path = jv.checkpoint.Checkpoint(optimizer=optimizer).write(tmp_path / "first.npz")  # no slots
    for _ in range(2 * windows):
        optimizer.apply_gradients([(0.0, v)])
    optimizer.apply_gradients([(100.0, v), (100.0, w)])
    jv.checkpoint.Checkpoint(optimizer=optimizer).restore(path).expect_partial()
    for _ in range(2 * windows + 1):
        optimizer.apply_gradients([(0.0, v)])
    optimizer.apply_gradients([(0.0, v), (1.0, w)])
    assert float(w) == -0.5


def test_a_fixed_loss_scale_is_divided_away():
    v = jv.Variable(3.0)
    optimizer = optimizers.SGD(0.5, loss_scale_factor=1024.0)
    assert float(optimizer.minimize(lambda: v * v, [v])) == 9.0
    assert float(v) == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clipnorm": 1.0, "clipvalue": 1.0}, "clipped in one way"),
        ({"global_clipnorm": -1.0}, "positive number"),
        ({"ema_momentum": 2.0}, "between 0 and 1, not 2.0"),
        ({"ema_overwrite_frequency": 0}, "ema_overwrite_frequency is an integer of at least 1"),
        ({"gradient_accumulation_steps": 1}, "at least 2, not 1"),
        ({"momentum": 1.5}, "momentum is between 0 and 1"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        optimizers.SGD(0.1, **options)


def test_ftrl_and_optax_check_their_arguments():
    with pytest.raises(ValueError, match="no other negative"):
        optimizers.Ftrl(0.1, beta=-1.0)
    with pytest.raises(TypeError, match=r"like optax.adam\(1e-3\), not 0.1"):
        optimizers.Optax(0.1)
    with pytest.raises(ValueError, match=r"optax\.add_decayed_weights"):
        optimizers.Optax(optax.adam(0.1), weight_decay=0.1)


# ---------------------------------------------------------------- mistakes
def test_a_gradient_of_another_shape_is_refused_by_name():
    v = jv.Variable([1.0, 2.0], name="v")
    with pytest.raises(ShapeError, match=r"gradient of variable 'v' has shape \(3,\), .* \(2,\)"):
        optimizers.SGD(0.1).apply_gradients([(jnp.ones(3), v)])


def test_mistakes_in_the_list_are_explained():
    v, optimizer = jv.Variable(1.0, name="v"), optimizers.SGD(0.1)
    with pytest.raises(ValueError, match=r"no pairs\. An iterator"):
        optimizer.apply_gradients([])
    with pytest.raises(ValueError, match=r"No gradient for any variable, of \['v'\]"):
        optimizer.apply_gradients([(None, v)])
    with pytest.raises(ValueError, match="'v' comes twice"):
        optimizer.apply_gradients([(1.0, v), (2.0, v)])
    with pytest.raises(TypeError, match="Gradients come first"):
        optimizer.apply_gradients([(v, 1.0)])
    with pytest.raises(DtypeError, match="'n' is int32"):
        optimizer.apply_gradients([(1.0, jv.Variable(1, name="n"))])
    with pytest.raises(ValueError, match="list of variables is empty"):
        optimizer.build([])
    with pytest.raises(TypeError, match="a function that computes the loss"):
        optimizer.minimize(1.0, [v])
    assert float(v) == 1.0
    assert not optimizer.slots


@pytest.mark.parametrize("name", MAKERS)
def test_updates_are_computed_where_dtypes_are_not_mixed(name):
    v = jv.Variable([1.0, 2.0])
    optimizer = MAKERS[name]()
    with jax.numpy_dtype_promotion("strict"):
        optimizer.apply_gradients([(jnp.ones(2), v)])
    assert np.isfinite(v.numpy()).all()
    assert (v.numpy() != [1.0, 2.0]).any()


def test_unknown_variables_and_slots_are_named():
    known, unknown = jv.Variable(1.0, name="known"), jv.Variable(1.0, name="unknown")
    optimizer = optimizers.SGD(0.1, momentum=0.9)
    optimizer.build([known])
    with pytest.raises(StateError, match=r"does not know variable 'unknown'.*\['known'\]"):
        optimizer.get_slot(unknown, "momentum")
    with pytest.raises(StateError, match=r"No slot 'velocity'; there are \['momentum'\]"):
        optimizer.get_slot(known, "velocity")


def test_minimize_takes_a_loss_and_its_tape():
    v, optimizer = jv.Variable(3.0), optimizers.SGD(0.5, loss_scale_factor=8.0)
    with jv.GradientTape() as tape:
        loss = v * v
    optimizer.minimize(loss, [v], tape=tape)
    assert float(v) == 0.0


def test_minimize_takes_a_model():
    class Model(jv.Module):
        def __init__(self):
            self.w, self.steps = jv.Variable(3.0), jv.Variable(0, trainable=False)

    model = Model()
    assert float(optimizers.SGD(0.5).minimize(lambda: model.w**2, model)) == 9.0
    assert (float(model.w), int(model.steps)) == (0.0, 0)


# ---------------------------------------------------------------- dtypes
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("name", MAKERS)
def test_gradients_of_small_floats_update_float32(name, dtype):
    v = jv.Variable([[1.0, -1.0], [2.0, 0.5]], name="v")
    optimizer = MAKERS[name](100.0 if name == "Adadelta" else 0.05)

    @jv.compile
    def step():
        with jv.GradientTape() as tape:
            loss = (v.value.astype(dtype) ** 2).sum()
        gradient = tape.gradient(loss, v)
        optimizer.apply_gradients([(gradient.astype(dtype), v)])
        return loss

    losses = [float(step()) for _ in range(4)]
    assert losses[-1] < losses[0]
    assert v.dtype == jnp.float32
    assert {x.dtype.name for x in optimizer.variables} <= {"float32", "int32"}


def test_variables_of_float64(x64):
    v = jv.Variable(np.array([1.0, 2.0]))
    optimizer = optimizers.Adam(0.1)
    optimizer.apply_gradients([(np.array([1.0, 1.0]), v)])
    assert (v.dtype, optimizer.get_slot(v, "momentum").dtype) == (jnp.float64, jnp.float64)


def test_slots_are_placed_where_their_variables_are():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    v = jv.Variable(jnp.ones((4, 2)), sharding=split)
    optimizer = optimizers.Adam(0.1)
    step = jv.compile(lambda: optimizer.minimize(lambda: (v * v).sum(), [v]))
    for _ in range(2):
        step()
    assert v.sharding == split
    assert optimizer.get_slot(v, "velocity").sharding == split


# ---------------------------------------------------------------- options
@pytest.mark.parametrize("name", MAKERS)
def test_options_are_not_set_after_the_first_update(name):
    v, optimizer = jv.Variable(1.0, name="v"), MAKERS[name](0.1)
    for option in list_options(MAKERS[name]):
        setattr(optimizer, option, getattr(optimizer, option))
    optimizer.build([v])
    for option in list_options(MAKERS[name]):
        old = getattr(optimizer, option)
        with pytest.raises(
            ValueError, match=rf"{name}\.{option} is set to 3 at .*go on with {old}.*{option}=3\)"
        ):
            setattr(optimizer, option, 3)
        assert getattr(optimizer, option) == old
    optimizer.learning_rate = 0.5


def test_options_that_are_set_before_count_and_are_checked():
    v, optimizer = jv.Variable(0.0), optimizers.SGD(1.0)
    optimizer.gradient_accumulation_steps = 2
    with pytest.raises(ValueError, match="at least 2, not 1"):
        optimizer.gradient_accumulation_steps = 1
    optimizer.clipvalue = 3.0
    with pytest.raises(ValueError, match="clipped in one way"):
        optimizer.clipnorm = 1.0
    for _ in range(2):
        optimizer.apply_gradients([(9.0, v)])
    assert float(v) == -3.0
    rules = {"**": 0.5}
    optimizer = optimizers.SGD(1.0, weight_decay=rules)
    rules["**"] = 0.0
    assert optimizer.weight_decay == {"**": 0.5}
    twin = pickle.loads(pickle.dumps(optimizer))
    twin.nesterov = True
    transformation = optimizers.Optax(optax.sgd(0.1))
    transformation.build([v])
    with pytest.raises(ValueError, match=r"Optax\.transformation is set"):
        transformation.transformation = optax.adam(0.1)


# ---------------------------------------------------------------- loss scaling
@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile])
def test_steps_with_infinite_gradients_are_skipped_and_the_scale_adapts(wrap):
    v = jv.Variable(0.0, name="v")
    inner = optimizers.SGD(1.0, momentum=0.5)
    optimizer = optimizers.LossScaleOptimizer(inner, 8.0, dynamic_growth_steps=2)
    step = wrap(lambda g: optimizer.apply_gradients([(g * optimizer.dynamic_scale, v)]))
    seen = []
    for g in (1.0, math.inf, 1.0, 1.0, math.nan):
        step(jnp.float32(g))
        seen.append([float(v), float(optimizer.dynamic_scale), int(optimizer.step_counter)])
    assert seen == [[-1, 8, 1], [-1, 4, 0], [-2.5, 4, 1], [-4.25, 8, 0], [-4.25, 4, 0]]
    assert int(optimizer.iterations) == 3
    assert float(optimizer.get_slot(v, "momentum")) == -1.75


def test_scaling_saves_gradients_of_float16_that_would_be_zero():
    def trained(optimizer):
        v = jv.Variable(1.0, name="v")

        def loss():
            return v.value.astype(jnp.float16) * jnp.float16(1e-4) * jnp.float16(1e-4)

        optimizer.minimize(loss, [v])
        return float(v)

    assert trained(optimizers.SGD(1e6)) == 1.0
    assert trained(optimizers.LossScaleOptimizer(optimizers.SGD(1e6))) < 1.0


def test_a_scaled_optimizer_leaves_out_what_it_is_told_to():
    v = jv.Variable(1.0, name="v")
    optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(0.5, weight_decay=0.5), 2.0)
    optimizer.exclude_from_weight_decay([v])
    optimizer.apply_gradients([(0.0, v)])
    assert float(v) == 1.0


def test_what_cannot_be_scaled_is_refused():
    with pytest.raises(TypeError, match="around another optimizer"):
        optimizers.LossScaleOptimizer(optax.adam(0.1))
    with pytest.raises(ValueError, match="loss_scale_factor itself"):
        optimizers.LossScaleOptimizer(optimizers.SGD(0.1, loss_scale_factor=2.0))


# ---------------------------------------------------------------- narrow and complex variables
@pytest.mark.parametrize("scale", [2.0**15, 2.0**16, 2.0**20])
def test_a_scale_may_be_beyond_the_dtype_of_a_variable(scale: float):
    for make in (
        lambda: optimizers.LossScaleOptimizer(optimizers.SGD(1.0), initial_scale=scale),
        lambda: optimizers.SGD(1.0, loss_scale_factor=scale),
    ):
        w = jv.Variable(jnp.ones(1, jnp.float16))
        make().minimize(lambda w=w: (w.value.astype(jnp.float32) * 0.01).sum(), [w])
        assert w.numpy().tolist() == [np.float16(0.99)]


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_narrow_variable_takes_the_step_of_a_wide_one(name: str, dtype: str):
    def step(dtype: Any) -> float:
        w = jv.Variable(jnp.ones(2, dtype))
        MAKERS[name](0.1).apply_gradients([(jnp.full(2, 300.0, dtype), w)])
        assert w.dtype == dtype
        return float(w.numpy()[0])

    assert step(dtype) == pytest.approx(step("float32"), rel=0.01)


def test_a_norm_is_that_of_more_numbers_than_a_narrow_dtype_counts():
    w = jv.Variable(jnp.ones(70_000, jnp.float16))
    optimizers.Lamb(0.1).apply_gradients([(jnp.full(70_000, 0.1, jnp.float16), w)])
    assert w.numpy()[0] == np.float16(0.9)


def test_a_transformation_of_optax_computes_in_the_dtype_of_the_variable():
    w = jv.Variable(jnp.ones(2, jnp.bfloat16))
    theirs, gradient = optax.adam(0.1), jnp.full(2, 0.3, jnp.bfloat16)
    optimizers.Optax(theirs).apply_gradients([(gradient.astype(jnp.float32), w)])
    updates, _ = theirs.update(gradient, theirs.init(jnp.ones(2, jnp.bfloat16)))
    np.testing.assert_array_equal(w.numpy(), jnp.ones(2, jnp.bfloat16) + updates)


@pytest.mark.parametrize("make", [lambda: optimizers.SGD(0.1), lambda: optimizers.Adam(0.1)])
def test_minimize_goes_downhill_over_complex_variables(make: Any):
    z, target, optimizer = jv.Variable(1 + 1j), -1 + 0.5j, make()
    for _ in range(60):
        loss = optimizer.minimize(lambda: jnp.abs(z - target) ** 2, [z])
    assert float(loss) < 0.1


def test_complex_gradients_are_squared_as_by_optax():
    z, theirs = jv.Variable(1 + 1j), optax.adam(0.1)
    optimizers.Adam(0.1).apply_gradients([(2j, z)])
    updates, _ = theirs.update(jnp.array(2j), theirs.init(jnp.array(1 + 1j)))
    np.testing.assert_allclose(z.numpy(), 1 + 1j + updates, rtol=1e-5)


@pytest.mark.parametrize("name", ["Nadam", "Adamax", "Adafactor"])
def test_a_step_by_a_complex_gradient_goes_its_way(name: str):
    z = jv.Variable(1 + 1j)
    MAKERS[name](0.1).apply_gradients([(2j, z)])
    assert z.numpy().real == 1.0
    assert 0.8 < z.numpy().imag < 1.0


def test_gradients_of_narrow_variables_add_up():
    for dtype, gradient, calls in (("bfloat16", 1.0, 512), ("float16", 10_000.0, 8)):
        w = jv.Variable(jnp.zeros((), dtype))
        optimizer = optimizers.SGD(1.0, gradient_accumulation_steps=calls)
        for _ in range(calls):
            optimizer.apply_gradients([(jnp.asarray(gradient, dtype), w)])
        assert float(w) == -gradient


@pytest.mark.parametrize("name", ["clipnorm", "global_clipnorm"])
@pytest.mark.parametrize("limit", [1.0, math.inf])
@pytest.mark.parametrize("gradient", [[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
def test_limits_of_norms(name: str, limit: float, gradient: Any):
    w = jv.Variable([0.0, 0.0])
    options: Any = {name: limit}
    optimizers.SGD(1.0, **options).apply_gradients([(jnp.array(gradient), w)])
    norm = math.hypot(*gradient)
    wanted = -np.array(gradient) * (min(1, limit / norm) if norm else 1)
    np.testing.assert_allclose(w.numpy(), wanted, rtol=1e-6)


def test_a_loss_scale_stays_of_use():
    w = jv.Variable(1.0)
    optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(0.1), dynamic_growth_steps=1)
    for gradient, limit in ((0.0, 2.0**127), (math.inf, 1.0)):
        for _ in range(180):
            optimizer.apply_gradients([(gradient, w)])
        assert float(optimizer.dynamic_scale) == limit


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("lr", "Set optimizer.learning_rate."), ("wd", "Set optimizer.weight_decay."),
        ("beta1", "Set optimizer.beta_1."), ("epsilons", "Did you mean 'epsilon'"), ("decoy", ""),
    ],
)  # fmt: skip
def test_an_attribute_that_would_do_nothing_is_refused(name, cure):
    optimizer = jv.optimizers.Adam(0.1)
    with pytest.raises(AttributeError, match=f"Adam.{name} is set at .*nothing would change") as e:
        setattr(optimizer, name, 0.5)
    assert cure in str(e.value)
    assert name not in vars(optimizer)


def test_an_optimizer_of_the_users_may_have_attributes_of_its_own():
    class Mine(jv.optimizers.Optimizer):
        def __init__(self):
            super().__init__(0.1)
            self.history = []

        def _transformation(self):
            return optax.identity()

    mine = Mine()
    mine.note = "kept"
    assert (mine.history, mine.note) == ([], "kept")

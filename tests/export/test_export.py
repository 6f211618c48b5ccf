"""Saved programs: what comes back is what was saved, in values, gradients and assignments."""

from __future__ import annotations

import collections
import copy
import json
import os
import pickle
import shutil
import threading
import warnings
import zipfile
from pathlib import Path

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from saved_programs import BATCH, LABELS, Net, Trainer, X, Y, loss_and_gradients

import jaxvars as jv
from jaxvars.errors import CheckError, CompileError, SavedError
from jaxvars.export.forms import from_json

GOLDEN = Path(__file__).parents[1] / "goldens" / "saved.jaxvars"
SCALAR = jv.TensorSpec(())
DAMAGED = r"is damaged, or no file of jv\.export\.save"


def values_of(module):
    return {path: np.array(v) for path, v in module.named_variables.items()}


def assert_same(a, b, tolerance=1e-6):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, tolerance, tolerance), a, b)


def round_trip(obj, path, *args, **kwargs):
    jv.export.save(obj, path, *args, **kwargs)
    return jv.export.load(path)


@pytest.fixture(scope="module")
def net_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "net.jaxvars"
    signatures = {"__call__": [(BATCH,), {"x": BATCH, "training": True}]}
    digest = jv.export.save(Net(), path, signatures, platforms=("cpu", "cuda", "tpu"))
    return path, digest


@pytest.fixture
def net(net_file):
    return jv.export.load(net_file[0])


@pytest.fixture(scope="module")
def scale_file(tmp_path_factory):
    """The smallest file: one variable, one program, no gradient."""
    path = tmp_path_factory.mktemp("saved") / "scale.jaxvars"
    w = jv.Variable(2.0, name="w")

    jv.export.save(lambda x: w * x, path, (jv.TensorSpec((2,)),), vjp_order=0)
    return path


# ---------------------------------------------------------------- round trips
def test_values_gradients_and_assignments_come_back(net):
    model = Net()
    for rows in (X, X[:1], X[:3]):  # of any batch size
        assert_same(net(rows), model(rows))
    weights = model.trainable_variables
    expected = loss_and_gradients(model, X, weights)
    assert_same(loss_and_gradients(net, X, net.trainable_variables), expected)
    assert_same(net(X, training=True), model(X, training=True))
    assert values_of(net)["mean"].any()
    assert_same(values_of(net), values_of(model))
    assert_same(net(X), model(X))


def test_what_is_saved_while_it_is_frozen_is_not_frozen_for_ever(tmp_path):
    w, fixed = jv.Variable(2.0, name="w"), jv.Variable(3.0, name="fixed", trainable=False)
    path = tmp_path / "f.jaxvars"
    with jv.freeze(w):
        jv.export.save(lambda x: w * x * fixed, path, (jv.TensorSpec((2,)),), vjp_order=0)
    assert {v.name: v.trainable for v in jv.export.load(path).variables} == {
        "w": True,
        "fixed": False,
    }


def test_the_variables_are_those_that_were_saved(net):
    model = Net()
    assert list(net.named_variables) == list(model.named_variables)
    assert [(v.name, v.trainable) for v in net.variables] == [
        (v.name, v.trainable) for v in model.variables
    ]
    assert list(jv.State.of(net)) == list(jv.State.of(model))
    assert net.layers[2]["w"] is net["layers/2/w"] is net.variables[1]
    assert net.mean is net["mean"]
    assert net.name == "net"
    with pytest.raises(AttributeError, match=r"net has no 'maen'\. Did you mean 'mean'\?"):
        _ = net.maen
    with pytest.raises(KeyError, match="net has no variable 'layers/1/w'"):
        net["layers/1/w"]
    with pytest.raises(KeyError, match="net has no 'layers/7'"):
        net.layers[7]


def test_a_training_step_goes_on_as_the_one_that_was_saved(tmp_path):
    trainer = Trainer()
    trainer.step(X, Y)
    loaded = round_trip(trainer, tmp_path / "t", {"step": (BATCH, LABELS)}, vjp_order=0)
    assert str(loaded.signatures["step"]) == (
        "step(x: float32[batch,3], y: int32[batch]) -> {'loss': float32[], 'steps': int32[]}"
    )
    for _ in range(3):
        assert_same(loaded.step(X, Y), trainer.step(X, Y))
    assert_same(values_of(loaded), values_of(trainer))
    before = values_of(loaded)
    with pytest.raises(CheckError, match=r"step would make Variable '\S+' not finite: \d+ of"):
        loaded.step(np.nan * X, Y)
    assert_same(values_of(loaded), before, 0)
    with pytest.raises(SavedError, match=r"trainer was saved without __call__. There are: step\."):
        loaded(X)


def test_what_was_loaded_trains_as_the_original(net):
    def trained(model):
        optimizer = jv.optimizers.SGD(0.1, momentum=0.9)

        @jv.compile
        def step(x):
            with jv.GradientTape() as tape:
                loss = jnp.square(model(x, training=True) - 1).mean()
            weights = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return loss

        return [step(X) for _ in range(4)]

    model = Net()
    assert_same(trained(net), trained(model))
    assert_same(values_of(net), values_of(model))


def test_a_fresh_process_needs_no_source(net_file, run_python):
    path, digest = net_file
    model = Net()
    code = f"""
import numpy as np
import jaxvars as jv
loaded = jv.export.load({str(path)!r}, digest={digest!r})
x = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)
with jv.GradientTape() as tape:
    y = loaded(x, training=True)
gradient = tape.gradient(y, loaded.layers[0].w)
print([*y.ravel().tolist(), *gradient.ravel().tolist(), *loaded.mean.numpy().tolist()])
"""
    done = run_python("-c", code)
    assert not done.returncode, done.stderr
    with jv.GradientTape() as tape:
        y = model(X, training=True)
    weights = model.layers[0]["w"]
    expected = [*y.ravel(), *np.ravel(tape.gradient(y, weights)), *np.array(model.mean)]
    assert_same(json.loads(done.stdout), [float(x) for x in expected])


def test_a_golden_file_of_the_oldest_jax_loads(tmp_path):
    loaded = jv.export.load(GOLDEN)
    model = Net()
    assert_same(loaded(X), model(X))
    expected = loss_and_gradients(model, X, model.trainable_variables)
    assert_same(loss_and_gradients(loaded, X, loaded.trainable_variables), expected)


# ---------------------------------------------------------------- everywhere
def test_it_runs_wherever_a_compiled_function_does(tmp_path):
    model = Net()
    loaded = round_trip(model, tmp_path / "f", (jv.TensorSpec((3,)),))
    expected = np.array(model(X))
    assert_same(jax.vmap(lambda row: loaded(row))(X), expected)
    assert_same(jv.compile(lambda x: loaded(x) + 1)(X[0]), expected[0] + 1)
    pure, state = jv.functionalize(loaded), jv.State.of(loaded)
    loss = lambda state, row: jnp.square(pure(state, row)[0]).sum()  # noqa: E731
    each = jax.vmap(jax.grad(loss), (None, 0))(state, X)
    whole = jax.grad(lambda s: jax.vmap(loss, (None, 0))(s, X).sum())(state)
    weights = model.trainable_variables
    _, (_, *gradients) = loss_and_gradients(model, X, weights)
    assert_same([each["layers/0/w"].sum(0), each["layers/2/w"].sum(0)], gradients)
    assert_same([whole["layers/0/w"], whole["layers/2/w"]], gradients)
    jv.config.run_eagerly(True)
    try:
        assert_same(loaded(X[0]), expected[0])
    finally:
        jv.config.run_eagerly(False)


def test_a_call_that_fails_changes_nothing_and_one_compiles_once(net):
    before = values_of(net)
    function = net.signatures["__call__"].function
    for _ in range(3):
        net(X, training=True)
    assert function.trace_count == 1
    assert np.any(values_of(net)["mean"] != before["mean"])


def test_copies_have_separate_variables(net):
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        other.mean.assign_add(1.0)
        assert not np.allclose(other(X), net(X))
        other.mean.assign(net.mean)
        assert_same(other(X), net(X))
    assert copy.copy(net).mean is net.mean


def test_it_is_saved_again_alone_and_as_a_part(net, tmp_path):
    net.mean.assign_add(1.0)
    assert_same(round_trip(net, tmp_path / "again")(X), net(X))

    class Head(jv.Module):
        def __init__(self):
            self.base, self.w = net, jv.Variable([2.0, -1.0], name="w")

        @jv.compile
        def __call__(self, x, n):
            return self.base(x) @ self.w, n + 1

    head = Head()
    loaded = round_trip(head, tmp_path / "head", (BATCH, LABELS))
    assert_same(loaded(X, Y), head(X, Y))
    assert list(loaded.named_variables) == list(head.named_variables)

    def first(model):
        return lambda x: model(x, Y)[0]

    expected = loss_and_gradients(first(head), X, head.trainable_variables)
    assert_same(loss_and_gradients(first(loaded), X, loaded.trainable_variables), expected)


def test_an_assigned_variable_is_differentiated_as_a_tape_does(tmp_path):
    w = jv.Variable(3.0, name="w")

    @jv.compile
    def f(x):
        w.assign(w * x)
        return w * 2

    f(1.0)
    loaded = round_trip(f, tmp_path / "f")
    with jv.GradientTape() as tape:
        y = loaded(5.0)
    assert (float(y), float(loaded.w), float(tape.gradient(y, loaded.w))) == (30.0, 15.0, 2.0)


def test_gradients_are_as_many_as_were_saved(tmp_path):
    w = jv.Variable(3.0, name="w")
    loaded = round_trip(lambda x: x * w * w, tmp_path / "f", (SCALAR,), vjp_order=2)
    with jv.GradientTape() as outer:
        with jv.GradientTape() as tape:
            y = loaded(5.0)
        slope = tape.gradient(y, loaded.w)
    assert (float(slope), float(outer.gradient(slope, loaded.w))) == (30.0, 10.0)
    once = round_trip(lambda x: x * x, tmp_path / "f", (SCALAR,))
    assert float(jax.grad(once)(3.0)) == 6.0
    with pytest.raises(SavedError, match=r"of order 1, and is differentiated once more.*=2\)"):
        jax.grad(jax.grad(once))(3.0)


def test_what_has_no_gradient_says_why_when_it_is_asked_for(tmp_path):
    def doubled(x):
        return jv.while_loop(lambda x: x < 10, lambda x: x * 2, x)

    loaded = round_trip(doubled, tmp_path / "f", (SCALAR,))
    assert float(loaded(3.0)) == 12.0
    with pytest.raises(SavedError, match=r"doubled was saved without a gradient: .*while_loop"):
        jax.grad(lambda x: loaded(x))(3.0)
    with pytest.raises(SavedError, match=r"gradient of doubled cannot .* vjp_order=0"):
        jv.export.save(doubled, tmp_path / "f", (SCALAR,), vjp_order=1)


# ---------------------------------------------------------------- arguments
Pair = collections.namedtuple("Pair", "a b")


def test_structures_names_and_constants_come_back(tmp_path):
    w, v = jv.Variable(2.0, name="w"), jv.Variable(1.0, name="w")

    @jv.compile
    def f(d, t, *rest, option=None, **more):
        v.assign_add(1.0)
        return (
            Pair(d["a"] * w, [t[1].a]),
            {"z": rest[0] + more["q"], "k": {3: w}},
            "text",
            None,
            True,
        )

    one = jnp.ones(2)
    call = lambda g: g({"a": one, "b": [one]}, (one, Pair(one, one)), one, q=one)  # noqa: E731
    expected = call(f)
    loaded = round_trip(f, tmp_path / "f")
    result = call(loaded)
    assert result[2:4] == ("text", None)
    assert result[0]._fields == ("a", "b")
    assert type(result[0]).__name__ == "Pair"
    assert_same(jax.tree.leaves((tuple(result[0]), result[1], result[4])),
                jax.tree.leaves((tuple(expected[0]), expected[1], expected[4])))  # fmt: skip
    assert sorted(loaded.named_variables) == ["w", "w_1"]


def test_objects_are_part_of_the_program_and_static_values_choose_one(tmp_path):
    model = Net()

    @jv.compile(static_argnames="times")
    def step(model, x, act=jax.nn.relu, times=1, mode="sum"):
        y = act(model(x)) * times
        return y.sum() if mode == "sum" else y

    expected = [step(model, X), step(model, X, times=3), step(model, X, mode="all")]
    loaded = round_trip(step, tmp_path / "f", vjp_order=0)
    assert_same([loaded(X), loaded(X, times=3), loaded(X, mode="all")], expected)
    with pytest.raises(CompileError, match=r"(?s)were saved:\n  step\(x: .*times is 2, not 1"):
        loaded(X, times=2)
    jv.export.save(model, tmp_path / "f", {"go": step.trace(model, X)}, vjp_order=0)
    assert_same(jv.export.load(tmp_path / "f").go(X), expected[0])
    other = Net()
    step(other, X)
    with pytest.raises(SavedError, match="Two programs of __call__ differ in objects"):
        jv.export.save(step, tmp_path / "f")
    f = jv.compile(jnp.sin)
    for precision in ("default", "highest"):
        with jax.default_matmul_precision(precision):
            f(X)
    with pytest.raises(SavedError, match="programs of f differ in the settings of JAX"):
        jv.export.save(model, tmp_path / "f", {"f": f})


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([[1.0, 2.0]],), r"x.shape\[1\] is 2, not 3"),
        ((X[0],), r"x is float32\[3\], not float32\[batch,3\]"),
        ((X[:0],), r"x.shape\[0\] is 0, and must be 1 or more"),
        (("text",), "x is a string, but dtype float32"),
        ((1j * X,), "x is complex64, and dtype float32 cannot hold it"),
        ((X, None), "training is None, not False"),
    ],
)
def test_other_arguments_are_refused_with_the_signature(net, args, message):
    program = (
        r"were saved:\n  __call__\(x: float32\[batch,3\], training: False\) -> float32\[batch,2\]"
    )
    with pytest.raises(CompileError, match=f"(?s){program}.*{message}"):
        net(*args)


def test_sizes_of_one_name_must_agree_and_others_need_not(tmp_path):
    def f(x, y, z):
        return x * y + z.sum()

    spec = jv.TensorSpec((None,))
    loaded = round_trip(f, tmp_path / "f", (spec, spec, jv.TensorSpec((2, None))), vjp_order=0)
    assert loaded([1, 2], [3.0, 4.0], np.ones((2, 5))).tolist() == [13.0, 18.0]
    with pytest.raises(CompileError, match=r"y.shape\[0\] is 3, but x.shape\[0\] is 2"):
        loaded([1.0, 2.0], [3.0, 4.0, 5.0], np.ones((2, 5)))


def test_sizes_may_be_related_as_jax_writes_it(tmp_path):
    n, twice = jax.export.symbolic_shape("n, 2*n")
    specs = [jax.ShapeDtypeStruct((size,), jnp.float32) for size in (n, twice)]
    loaded = round_trip(lambda x, y: jnp.tile(x, 2) + y, tmp_path / "f", tuple(specs), vjp_order=0)
    assert loaded([1, 2], [0, 0, 3, 3]).tolist() == [1.0, 2.0, 4.0, 5.0]
    with pytest.raises(
        CompileError, match=r"not fit together:\n  <lambda>\(x: float32\[n\], y: .*2\*n"
    ):
        loaded([1, 2], [0, 0, 3])


@pytest.mark.parametrize("autograph", [False, True])
@pytest.mark.parametrize(
    "is_one", [lambda x: x.shape[0] == 1, lambda x: {(1, 3): True}.get(x.shape, False)]
)
def test_a_branch_that_depends_on_an_open_size_is_refused(is_one, autograph, tmp_path):
    @jv.compile(autograph=autograph)
    def f(x):
        if is_one(x):
            x = x * 100
        return x * 2

    with pytest.raises(SavedError, match=r"(?s)test_export.py:\d+.* asks whether .*save the sizes"):
        jv.export.save(f, tmp_path / "f", (jv.TensorSpec((None, 3)),))
    signatures = [(jv.TensorSpec((n, 3)),) for n in (1, 4)]
    loaded = round_trip(f, tmp_path / "f", signatures)
    for n in (1, 4):
        assert_same(loaded(jnp.ones((n, 3))), f(jnp.ones((n, 3))))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: x * {1: 3.0}.get(len(x), 1.0), "'OpenSize' object cannot be .* an integer"),
        (lambda x: x + np.zeros(x.shape), "'OpenSize' object cannot be .* an integer"),
        (lambda x: jnp.split(x, x.shape[0]), "with a symbolic number of sections is not .*"),
        (lambda x: x * float(np.prod(x.shape)), "a real number, not 'OpenSize'"),
        (lambda x: x.reshape(2, -1), "Cannot divide evenly .*"),
        (lambda x: sum(x), ""),
        (lambda x: jnp.squeeze(x), "is not supported with shape polymorphism"),
    ],
)
def test_what_needs_a_size_as_a_number_says_where_and_what_to_do(f, message, tmp_path):
    where = r" \(test_export.py:\d+, in .*\)\. What depends on .*save the sizes apart"
    with pytest.raises(
        SavedError, match=f"cannot be traced with an unknown dimension: .*{message}{where}"
    ):
        jv.export.save(f, tmp_path / "f", (jv.TensorSpec((None, 3)),))


def test_errors_that_are_not_about_sizes_are_left_alone(tmp_path):
    with pytest.raises(TypeError, match="unsupported operand"):
        jv.export.save(lambda x: x + "a", tmp_path / "f", (jv.TensorSpec((None, 3)),))


def test_a_rule_that_depends_on_an_open_size_gives_no_gradient(tmp_path):
    f = jax.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * 100 if x.shape[0] == 1 else g,))
    loaded = round_trip(f, tmp_path / "f", (jv.TensorSpec((None,)),))
    assert_same(loaded(jnp.ones(2)), jnp.full(2, 2.0))
    with pytest.raises(
        SavedError, match=r"(?s)without a gradient.* asks whether the unknown dimension"
    ):
        jax.grad(lambda x: loaded(x).sum())(jnp.ones(2))


@pytest.mark.parametrize("sizes", [(None, 3), (3, None)])
def test_a_program_for_the_very_size_goes_before_an_open_one(sizes, tmp_path):
    f = jv.compile(lambda x: "exact" if isinstance(x.shape[0], int) else "open")
    loaded = round_trip(f, tmp_path / "f", [(jv.TensorSpec((n,)),) for n in sizes])
    assert [loaded(x) for x in (jnp.ones(3), [1, 2, 3], jnp.ones(2))] == ["exact", "exact", "open"]


def test_integers_keep_their_value_or_are_refused(tmp_path):
    def loaded(dtype):
        return round_trip(lambda x: x + 0, tmp_path / dtype, (jv.TensorSpec((), dtype),))

    single, byte = loaded("float32"), loaded("uint8")
    for f, value, message in (
        (single, np.int64(2**31), r"x holds 2147483648, which int32 cannot hold \(JAX makes int32"),
        (single, 2**31, "x holds 2147483648, which int32"),
        (single, 2**24 + 1, "x holds 16777217, which float32 cannot hold"),
        (byte, 300, "x is 300, outside of uint8"),
        (byte, np.array(-1), "x is -1, outside of uint8"),
        (byte, jnp.array(300), "x is 300, outside of uint8"),
        (jax.jit(byte), jnp.array(300), r"x is int32, and uint8 may not hold it.*astype\('uint8'"),
    ):
        with pytest.raises(CompileError, match=f"(?s)arguments are not those.*{message}"):
            f(value)
    assert [int(byte(x)) for x in (200, np.int64(200), jnp.array(200))] == [200] * 3
    assert float(single(np.int64(2**30))) == 2.0**30


def test_the_program_runs_whose_dtype_is_nearest(tmp_path):
    names = ["float16", "int8", "complex64", "float32", "int32"]
    double = jv.compile(lambda x: x * 2)
    loaded = round_trip(double, tmp_path / "f", [(jv.TensorSpec((), name),) for name in names])
    for value, dtype in [
        (100, "int32"),
        (np.int64(100), "int32"),
        (np.int16(100), "float32"),
        (np.int8(1), "int8"),
        (0.1, "float32"),
        (np.float64(0.1), "float32"),
        (np.array(1.0), "float32"),
        (jnp.bfloat16(0.1), "float32"),
        (True, "float16"),
    ]:
        assert str(loaded(value).dtype) == dtype
        assert_same(loaded(value), jnp.asarray(value) * 2)
    for value in ("a", None, jax.random.key(0)):
        with pytest.raises(CompileError, match=r"(?s)arguments are not those.*x is "):
            loaded(value)


def test_an_ordered_dict_keeps_its_order(tmp_path):
    first = jv.compile(lambda d: next(iter(d.values())))
    spec = jv.TensorSpec(())
    ordered = round_trip(first, tmp_path / "f", (collections.OrderedDict(b=spec, a=spec),))
    plain = round_trip(first, tmp_path / "g", ({"b": spec, "a": spec},))
    one, other = collections.OrderedDict(b=1.0, a=2.0), collections.OrderedDict(a=2.0, b=1.0)
    assert [ordered(one), ordered({**one}), plain(one), plain({**one})] == [1.0] * 4
    assert plain({**other}) == 1.0  # by its keys: it is the program of the order that was saved
    live = jv.compile(lambda d: next(iter(d.values())))
    assert [live(one), live(other), live({**one}), live({**other})] == [1.0, 2.0, 1.0, 2.0]
    for loaded, given, names in [
        (ordered, other, r"\['a', 'b'\], in another order than \['b', 'a'\]"),
        (ordered, {**other}, r"\['a', 'b'\], in another order than \['b', 'a'\]"),
        (plain, other, r"\['a', 'b'\], in another order than \['b', 'a'\]"),
    ]:
        with pytest.raises(CompileError, match=rf"d is a dict of {names}"):
            loaded(given)


def test_what_becomes_0_is_told_and_what_is_kept_is_not(tmp_path):
    single = round_trip(lambda x: x + 0, tmp_path / "f", (jv.TensorSpec((None,)),))
    with pytest.warns(RuntimeWarning, match=r"x has numbers too small for float32, .* 1 of 2"):
        assert_same(single(np.array([1e-300, 2.0])), jnp.array([0.0, 2.0]))
    complex_ = round_trip(lambda x: x + 0, tmp_path / "f", (jv.TensorSpec((), "complex64"),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert complex(complex_(-1)) == -1
    with pytest.raises(CompileError, match="x holds 16777217, which complex64 cannot hold"):
        complex_(2**24 + 1)


def test_weak_types_and_the_order_of_dicts_come_back(tmp_path):
    def f(x):
        return {"z": jnp.where(x > 0, 1.0, 2.0), "a": [{"q": x, "b": x.shape[0] * 2}], "k": "text"}

    compiled, x = jv.compile(f), jnp.ones(3)
    result = round_trip(compiled, tmp_path / "f", (jv.TensorSpec((None,)),))(x)
    for found in (result, round_trip(round_trip(f, tmp_path / "f", (x,)), tmp_path / "g")(x)):
        assert str(found) == str(f(x) | {"a": [{"q": x, "b": jnp.asarray(6)}]})
    assert jax.tree.map(jax.typeof, result | {"k": 0}) == jax.tree.map(
        jax.typeof, compiled(x) | {"k": 0}
    )
    double = jv.compile(lambda x: x * 2)
    double(2.0)
    double(jnp.float32(2.0))
    loaded = round_trip(double, tmp_path / "f")
    assert [loaded(x).weak_type for x in (2.0, jnp.float32(2.0), np.float32(2.0))] == [
        True,
        False,
        False,
    ]


def test_loops_maps_and_checks_take_open_sizes(tmp_path):
    total = jv.Variable(0.0, name="total")

    @jv.compile(autograph=True)
    def f(xs):
        for x in xs:
            if x > 0:
                total.assign_add(x)
        jv.debugging.assert_less(xs, 9.0, message="too large")
        sums, _ = jv.scan(lambda carry, x: (carry + x, carry), 0.0, xs)
        return jv.map_fn(lambda x: x * 2, xs), sums + total

    loaded = round_trip(f, tmp_path / "f", (jv.TensorSpec((None,)),))
    assert_same(loaded([1.0, -2.0, 3.0]), f(np.array([1.0, -2.0, 3.0])))
    assert float(loaded.total) == 4.0
    with jv.GradientTape() as tape:
        _, y = loaded([1.0])
    assert float(tape.gradient(y, loaded.total)) == 1.0
    with pytest.raises(CheckError, match=r"^too large: .*test_export.py:\d+, in f\)\.\n"):
        loaded([1.0, 10.0])
    assert float(loaded.total) == 5.0


def test_an_input_signature_is_enough(tmp_path):
    class Model(jv.Module):
        def __init__(self):
            self.w = jv.Variable([1.0, 2.0], name="w")

        @jv.compile(input_signature=[jv.TensorSpec((None, 2))])
        def __call__(self, x):
            return x @ self.w

        @jv.compile
        def other(self, x):
            return x

    loaded = round_trip(Model(), tmp_path / "f", vjp_order=0)
    assert loaded(np.ones((3, 2))).tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(AttributeError, match="'other' of model was not saved: it was not called"):
        _ = loaded.other


def test_a_method_alone_is_saved_with_its_module(tmp_path):
    model = Net()
    loaded = round_trip(model.__call__, tmp_path / "f", (BATCH,), platforms="cpu", vjp_order=0)
    assert list(loaded.named_variables) == list(model.named_variables)
    assert loaded.name == "net"
    assert_same(loaded(X), model(X))
    fixed = jv.TensorSpec((4, 3))
    again = round_trip(loaded, tmp_path / "f", {"__call__": (fixed,)}, vjp_order=0)
    assert str(again.signatures["__call__"]).startswith(
        "__call__(x: float32[4,3], training: False)"
    )
    assert_same(again(X), model(X))
    with pytest.raises(
        SavedError, match=r"platforms is some of cpu, .* not cpu, gpu: a GPU is cuda"
    ):
        jv.export.save(model, tmp_path / "f", (BATCH,), platforms=("cpu", "gpu"))


def test_saving_again_traces_nothing_anew(tmp_path):
    model = Net()
    counts = []
    for _ in range(3):
        jv.export.save(model, tmp_path / "f", (BATCH,), vjp_order=0)
        counts.append(Net.__call__.trace_count)
    assert len(set(counts)) == 1


# ---------------------------------------------------------------- values
def test_every_dtype_comes_back_bit_for_bit(tmp_path):
    class Many(jv.Module):
        def __init__(self):
            self.made = {
                "text": jv.Variable(["a", "ü"], trainable=False),
                "key": jv.Variable(jax.random.key(3), trainable=False),
                "bf16": jv.Variable(jnp.array([1.5, -2], jnp.bfloat16)),
                "int4": jv.Variable(jnp.array([1, -3], jnp.int4), trainable=False),
                "f8": jv.Variable(jnp.ones(3, jnp.float8_e4m3fn), trainable=False),
                "c64": jv.Variable(jnp.ones(2, jnp.complex64)),
                "bool": jv.Variable(True, trainable=False),
                "empty": jv.Variable(jnp.zeros((0, 3))),
            }

        @jv.compile
        def __call__(self, key):
            self.made["key"].assign(jax.random.split(self.made["key"].value)[0])
            small = self.made["int4"].value.astype("float32").sum()
            return jnp.sum(self.made["bf16"]) + jax.random.normal(key) + small, self.made["key"]

    many, key = Many(), jax.random.key(5)
    loaded = round_trip(many, tmp_path / "f", (jv.TensorSpec((), key.dtype),))
    for path, variable in many.named_variables.items():
        other = loaded[path]
        assert (other.dtype, other.shape) == (variable.dtype, variable.shape)
    assert loaded.made["text"].numpy().tolist() == ["a", "ü"]
    assert_same(np.array(loaded["made/bf16"]), np.array(many.made["bf16"]), 0)
    (a, key_a), (b, key_b) = loaded(key), many(key)
    assert a == b
    assert key_a == key_b == loaded["made/key"].value


def test_64_bit_values_are_refused_where_they_are_off(tmp_path, x64):
    w = jv.Variable(np.float64(2.0), name="w")
    jv.export.save(lambda x: w * x, tmp_path / "f", (jv.TensorSpec((), "float64"),), vjp_order=0)
    assert jv.export.load(tmp_path / "f")(3.0).dtype == "float64"
    with jax.enable_x64(False), pytest.raises(SavedError, match=r"float64.*64-bit numbers are off"):
        jv.export.load(tmp_path / "f")


def test_sharded_variables_are_saved_whole(tmp_path):
    mesh = jax.sharding.Mesh(jax.devices(), "x")
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    w = jv.Variable(np.arange(8.0), name="w", sharding=sharding)
    loaded = round_trip(lambda x: w * x, tmp_path / "f", (SCALAR,), vjp_order=0)
    assert loaded.w.numpy().tolist() == list(range(8))
    assert loaded(2.0).tolist() == list(range(0, 16, 2))

    def spread(x):
        return jax.lax.with_sharding_constraint(x + 1, sharding)

    with pytest.raises(SavedError, match="spread is a program for 8 devices"):
        jv.export.save(spread, tmp_path / "g", (jv.TensorSpec((8,)),), vjp_order=0)


# ---------------------------------------------------------------- what cannot be saved
def test_what_cannot_be_saved_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    class Own:
        pass

    jax.tree_util.register_pytree_node(Own, lambda _: ((1.0,), None), lambda *_: Own())

    def computes(x):
        return jax.pure_callback(np.sin, x, x)

    def decides(x):
        return x if x.shape[0] > 3 else -x

    def gives(x):
        return Own()

    path = tmp_path / "f"
    for obj, signatures, message in [
        (computes, (SCALAR,), r"computes computes with what it calls back into Python for \(pure"),
        (
            decides,
            (BATCH,),
            "decides cannot be traced with an unknown dimension: Symbolic dimension",
        ),
        (gives, (SCALAR,), "The result of gives holds a Own, which a file cannot hold"),
        (decides, None, "not known what arguments decides takes"),
        (Net(), None, r"not known what arguments Net \(__call__\) takes"),
        (Net(), {"run": (BATCH,)}, "This Net has no function 'run'"),
        (3, None, "int has no compiled method to save"),
    ]:
        with pytest.raises(SavedError, match=message):
            jv.export.save(obj, path, signatures)
    w = jv.Variable(1.0)
    with monkeypatch.context() as patch:
        patch.setattr("jax.export.Exported.serialize", lambda _: {}["float3"])
        with pytest.raises(SavedError, match="<lambda> cannot be written by this JAX: 'float3'"):
            jv.export.save(lambda x: w * x, path, (SCALAR,))
    with pytest.raises(SavedError, match="outside of compiled functions"):
        jv.compile(lambda x: jv.export.save(lambda y: w * y, path, (SCALAR,)))(1.0)
    assert not list(tmp_path.iterdir())


def test_calls_for_their_effect_are_left_out_with_one_warning(tmp_path, capfd):
    v = jv.Variable(1.0)

    @jax.custom_vjp
    def noisy(x):
        jv.print("noisy", x)
        return x * x

    noisy.defvjp(lambda x: (noisy(x), x), lambda x, up: (jv.print("back") or 2 * x * up,))

    def step(x):
        jv.print("start", x)
        v.assign_add(1.0)
        jv.debugging.assert_positive(x)

        def body(total, one):
            jax.debug.callback(lambda value: None, one)
            return jax.lax.cond(one > 2, lambda: jv.print("big") or total, lambda: total + one), one

        return jax.lax.scan(body, noisy(x[0]), x)[0]

    with pytest.warns(UserWarning, match="^step is saved without .*callback, jv.print: no") as told:
        loaded = round_trip(
            step, tmp_path / "f", [(jv.TensorSpec((None,)),), (jv.TensorSpec((3,)),)]
        )
    assert len(told) == 1
    x = jnp.array([3.0, 1.0])
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = loaded(x)
    assert (float(y), tape.gradient(y, x).tolist(), float(loaded.Variable)) == (10, [6, 1], 2)
    with pytest.raises(CheckError, match=r"x > 0"):
        loaded(-x)
    assert capfd.readouterr().out == ""


def test_a_call_for_its_result_is_refused_also_if_another_is_not(tmp_path):
    def draws(x):
        jv.print(x)
        return x + jax.experimental.io_callback(np.sin, x, x)

    with pytest.raises(SavedError, match=r"draws computes with what it calls .*\(io_callback\)"):
        jv.export.save(draws, tmp_path / "f", (SCALAR,))
    jv.export.save(lambda x: [jax.pure_callback(np.sin, x, x), x][1], tmp_path / "g", (SCALAR,))


def test_strings_that_a_function_returns(tmp_path):
    names = np.array([[b"cat", b"d\xff\0"]], object)
    w = jv.Variable(2.0)
    path = tmp_path / "f"
    jv.export.save(lambda x: (w * x, {"names": names, "empty": names[:0]}), path, (SCALAR,))
    loaded = jv.export.load(path)
    y, found = loaded(3.0)
    assert (float(y), found["names"].tolist()) == (6.0, names.tolist())
    assert (found["empty"].shape, found["empty"].dtype) == ((0, 2), object)
    assert "'names': string[1,2]" in repr(loaded)
    for data in ({"strings": ["YQ=="], "shape": [2]}, {"strings": ["YQ=="], "shape": [-1, -1]}):
        with pytest.raises(ValueError, match="no strings"):
            from_json(data)


def test_variables_are_saved_as_they_were_at_one_moment(tmp_path):
    a, b = jv.Variable(0.0, name="a"), jv.Variable(0.0, name="b")

    @jv.compile
    def step():
        a.assign_add(1.0)
        b.assign_add(1.0)

    step()
    done = threading.Event()

    def go_on():
        while not done.is_set():
            step()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        loaded = [round_trip(step, tmp_path / "f", vjp_order=0) for _ in range(10)]
    finally:
        done.set()
        thread.join()
    assert all(float(one.a) == float(one.b) for one in loaded)
    assert len({float(one.a) for one in loaded}) > 1


def test_a_failed_save_leaves_the_file_that_was_there(scale_file, tmp_path, monkeypatch):
    path = tmp_path / "f"
    shutil.copy(scale_file, path)

    def full(*_):
        raise OSError("disk full")

    os.link(path, tmp_path / "reader")
    jv.export.save(lambda x: x, path, (SCALAR,), vjp_order=0)
    assert (tmp_path / "reader").read_bytes() == scale_file.read_bytes()  # another file by now
    (tmp_path / "reader").replace(path)
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        jv.export.save(lambda x: x, path, (SCALAR,))
    assert path.read_bytes() == scale_file.read_bytes()
    assert list(tmp_path.iterdir()) == [path]


def test_a_program_for_another_platform_says_so(tmp_path):
    loaded = round_trip(lambda x: x, tmp_path / "f", (SCALAR,), platforms=["tpu"], vjp_order=0)
    with pytest.raises(SavedError, match="was saved for tpu, and is run elsewhere"):
        loaded(1.0)


# ---------------------------------------------------------------- damaged files
def rewritten(path, out, change):
    """Write a file again, as a forger would: with checksums that are right."""
    from jaxvars.export import files as _saved_files

    words, members = _saved_files.read(path, None)
    change(words, members)
    versions = {key: words.pop(key) for key in ("format", "jaxvars", "jax")}
    _saved_files.write(out, words | versions, members)
    return out


def what_loads(path):
    """The value of a file's variable; None if it is refused, with a message that names the file."""
    try:
        return float(jv.export.load(path).w)
    except SavedError as error:
        if str(path) not in str(error):
            raise
        return None


def test_any_bit_that_changes_is_noticed(scale_file, tmp_path):
    data = scale_file.read_bytes()
    path = tmp_path / "f"
    found = []
    for i in range(0, len(data), max(1, len(data) // 60)):
        path.write_bytes(data[:i] + bytes([data[i] ^ 4]) + data[i + 1 :])
        found.append(what_loads(path))
    assert set(found) <= {None, 2.0}  # 2.0: in the bookkeeping of the archive, which says nothing
    assert found.count(None) > len(found) / 2
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(SavedError, match=DAMAGED):
        jv.export.load(path)


def test_another_file_has_another_digest(net_file, scale_file, tmp_path):
    _, digest = net_file
    with pytest.raises(SavedError, match=f"and not {digest}: it is another file"):
        jv.export.load(scale_file, digest=digest)
    with pytest.raises(SavedError, match="There is nothing at"):
        jv.export.load(tmp_path / "none")
    with pytest.raises(SavedError, match="There is a folder at"):
        jv.export.load(tmp_path)


def no_program(words, members):
    members["programs/0.bin"] = b"nothing"


def other_shape(words, members):
    words["variables"]["w"]["shape"] = [3]


def huge(words, members):
    words["variables"]["w"].update(shape=[2**40], stored=[[2**40], "float32"])


def missing_variable(words, members):
    words["variables"].clear()


def other_argument(words, members):
    words["functions"]["__call__"]["programs"][0]["arguments"]["x"]["shape"] = [3]


def other_convention(words, members):
    words["functions"]["__call__"]["programs"][0]["calling_convention"] = 99


def bad_name(words, members):
    words["functions"]["__call__"]["parameters"][0]["name"] = "x; import os"


def deep(words, members):
    form = None
    for _ in range(250):
        form = {"list": [form]}
    words["functions"]["__call__"]["programs"][0]["outputs"] = form


def bad_check(words, members):
    words["functions"]["__call__"]["programs"][0]["checks"] = {"1": {"message": "m"}}


def other_variable(words, members):
    from jaxvars.checkpoint.checksum import encode
    from jaxvars.export.files import to_npy

    array, entry = encode(np.zeros(3, np.float32))
    words["variables"]["w"].update(entry.to_json())
    members[words["variables"]["w"]["file"]] = to_npy(array)


def newer_stablehlo(words, members):
    words["jax"] = "99.0"
    blob = members["programs/0.bin"]
    assert blob.count(b"ML\xefR") == 1  # how MLIR's bytecode begins
    members["programs/0.bin"] = blob.replace(b"ML\xefR", b"ML\xefS")


CHANGES = [
    bad_check, bad_name, deep, huge, missing_variable, newer_stablehlo, no_program,
    other_argument, other_convention, other_shape, other_variable,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_forged_file_is_one_clear_error(change, scale_file, tmp_path):
    path = rewritten(scale_file, tmp_path / "f", change)
    expected = {
        "other_convention": f"calling convention 99, .*JAX {jax.__version__}",
        "newer_stablehlo": rf"\(it was saved with JAX 99.0, and this is JAX {jax.__version__}\)",
        "no_program": f"cannot be read by this JAX .*{jax.__version__}",
    }.get(change.__name__, DAMAGED)
    with pytest.raises(SavedError, match=expected):
        jv.export.load(path)


def test_a_newer_format_needs_a_newer_version(scale_file, tmp_path, monkeypatch):
    monkeypatch.setattr("jaxvars.export.files.FORMAT", 2)
    path = rewritten(scale_file, tmp_path / "f", lambda words, _: words.update(format=2))
    monkeypatch.undo()
    with pytest.raises(SavedError, match=r"has format 2.*reads formats up to 1: install a newer"):
        jv.export.load(path)


def test_members_that_were_exchanged_or_claim_to_be_long_are_refused(scale_file, tmp_path):
    path = tmp_path / "f"
    with zipfile.ZipFile(scale_file) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data[::-1] if name == "programs/0.bin" else data)
    with pytest.raises(SavedError, match=r"programs/0\.bin is not what was written"):
        jv.export.load(path)
    data = bytearray(scale_file.read_bytes())
    sizes = data.rindex(b"digest.txt") - 26  # in the central directory
    data[sizes : sizes + 8] = b"\xff\xff\xff\x7f" * 2
    path.write_bytes(data)
    with pytest.raises(SavedError, match="members are longer than the file"):
        jv.export.load(path)


def test_programs_keep_the_version_of_the_jax_that_made_them(scale_file, tmp_path):
    path = rewritten(scale_file, tmp_path / "f", lambda words, _: words.update(jax="0.10.99"))
    loaded = round_trip(jv.export.load(path), tmp_path / "g")
    assert loaded.parts.manifest["jax"] == "0.10.99"
    assert loaded([1.0, 2.0]).tolist() == [2.0, 4.0]


def test_compressed_doubled_and_extra_members_are_refused(scale_file, tmp_path):
    path = tmp_path / "f"
    with zipfile.ZipFile(scale_file) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    for extra, kind, message in [
        ([], zipfile.ZIP_DEFLATED, "compressed members"),
        ([("../evil", b"x")], zipfile.ZIP_STORED, "does not hold what its manifest says"),
    ]:
        with zipfile.ZipFile(path, "w", kind) as archive:
            for name, data in [*members, *extra]:
                archive.writestr(name, data)
        with pytest.raises(SavedError, match=message):
            jv.export.load(path)


def test_a_file_is_open_to_other_tools_and_tells_nothing_of_the_machine(net_file):
    path, _ = net_file
    data = path.read_bytes()
    assert b"saved_programs" not in data
    assert str(Path(__file__).parent).encode() not in data
    with np.load(path, allow_pickle=False) as arrays:
        assert "variables/0.npy" in arrays.files or "variables/0" in arrays.files
    from jax import export

    with zipfile.ZipFile(path) as archive:
        program = export.deserialize(bytearray(archive.read("programs/0.bin")))
    state = {path: v.value for path, v in jv.export.load(path).named_variables.items()}
    results, new = program.call(state, [X])
    assert_same(results[0], Net()(X))
    assert new == {}


def test_the_same_model_makes_the_same_file(net_file, tmp_path):
    path, digest = net_file
    assert jv.export.save(jv.export.load(path), tmp_path / "f") == digest
    assert (tmp_path / "f").read_bytes() == path.read_bytes()


def test_a_named_tuple_with_two_fields_of_one_name_is_refused():
    with pytest.raises(ValueError, match="duplicate field name: 'a'"):
        from_json({"named": "P", "items": [["a", None], ["a", None]]})


@pytest.mark.parametrize("how", [
    jv.compile, jax.jit, lambda f: lambda x: jv.vectorized_map(f, x[None])[0],
    lambda f: lambda x: jv.cond(True, f, f, x),
])  # fmt: skip
def test_what_was_saved_without_a_gradient_runs_everywhere_else(how, tmp_path):
    loaded = round_trip(lambda x: x * 2.0, tmp_path / "f", (SCALAR,), vjp_order=0)
    assert float(how(lambda x: loaded(x))(jnp.float32(3.0))) == 6.0
    x = jnp.float32(3.0)
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = jv.compile(lambda x: loaded(x))(x)
    with pytest.raises(SavedError, match="without a gradient"):
        tape.gradient(y, x)


def test_a_number_of_python_goes_with_an_unknown_size(tmp_path):
    loaded = round_trip(lambda x, by=2.0: x * by, tmp_path / "f", (jv.TensorSpec((None,)),))
    for size in (2, 3):
        assert loaded(jnp.ones(size)).tolist() == [2.0] * size

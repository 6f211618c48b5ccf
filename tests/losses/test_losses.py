from __future__ import annotations

import copy
import inspect
import json
import math
import pickle
import re
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from arrays import array, close

import jaxvars as jv
from jaxvars import losses
from jaxvars.errors import DtypeError, ShapeError

GOLDENS = json.loads((Path(__file__).parents[1] / "goldens" / "losses.json").read_text())
NAMES = {name: getattr(losses, name) for name in losses.__all__ if name not in ("Loss", "get")}
CLASSES: dict[str, Any] = {name: thing for name, thing in NAMES.items() if inspect.isclass(thing)}
FUNCTIONS: dict[str, Any] = {n: x for n, x in NAMES.items() if inspect.isfunction(x)}


# ---------------------------------------------------------------- TensorFlow's values
def configurations() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for case in GOLDENS["cases"]:
        options = "-".join(f"{k}={v}" for k, v in case["options"].items())
        dtype = "int" if array(case["y_true"]).dtype.kind == "i" else "float"
        least = "signed" if array(case["y_true"]).min() < 0 else "plain"
        found.setdefault(f"{case['loss']}-{options}-{dtype}-{least}", []).append(case)
    return found


CONFIGURATIONS = configurations()


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_values_and_gradients_are_those_of_tensorflow(name):
    cases = CONFIGURATIONS[name]
    make, options = CLASSES[cases[0]["loss"]], cases[0]["options"]
    derived = jax.jit(jax.grad(lambda p, t, w: make(**options)(t, p, w).sum()))
    for case in cases:
        true, pred, weight = (array(case[x]) for x in ("y_true", "y_pred", "weight"))
        for reduction, weighted, value, gradient in case["results"]:
            loss = make(**options, reduction=reduction)
            close(loss(true, pred, weight if weighted else None), value)
            if weighted and gradient is not None:
                close(derived(pred, true, weight), gradient)


@pytest.mark.parametrize("name", GOLDENS["functions"])
def test_the_functions_are_those_of_tensorflow(name):
    case = GOLDENS["functions"][name]
    given = [array(case[x]) for x in ("y_true", "y_pred")]
    given = [x.reshape(shape) for x, shape in zip(given, case["shapes"], strict=True)]
    found = FUNCTIONS[case["function"]](*given, **case["options"])
    assert found.shape == np.shape(case["value"])
    close(found, case["value"])


def test_every_loss_has_a_golden_and_a_function():
    assert {case["loss"] for case in GOLDENS["cases"]} == set(CLASSES)
    assert {cls.fn for cls in CLASSES.values()} == set(FUNCTIONS.values())
    for cls in CLASSES.values():
        assert {case["function"] for case in GOLDENS["functions"].values()} <= set(FUNCTIONS)
        options = set(inspect.signature(cls).parameters) - {"reduction", "name", "dtype"}
        known = set(inspect.signature(cls.fn).parameters) - {"y_true", "y_pred"}
        assert options <= known


def test_optax_is_what_computes_them():
    logits, labels = jnp.array([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0]]), jnp.array([0, 2])
    found = losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    expected = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    close(found, expected, rtol=1e-6)


# ---------------------------------------------------------------- in every situation
def test_a_loss_is_the_same_eagerly_compiled_and_under_a_tape():
    w, x, y = jv.Variable([[1.0], [2.0]], name="w"), jnp.ones((3, 2)), jnp.zeros((3, 1))
    loss_fn = losses.LogCosh()

    def step():
        with jv.GradientTape() as tape:
            loss = loss_fn(y, x @ w)
        return loss, tape.gradient(loss, w)

    pure = jax.jit(jv.functionalize(step))
    results = [step(), jv.compile(step)(), pure(jv.State.of(w))[0]]
    for loss, gradient in results:
        close(loss, np.log(np.cosh(3.0)))
        close(gradient, np.full((2, 1), np.tanh(3.0)))


def test_variables_lists_and_numpy_arrays_are_taken():
    v = jv.Variable([[1.0, 2.0]], name="v")
    assert float(losses.MeanAbsoluteError()(v, [[2.0, 4.0]])) == 1.5
    assert float(losses.MeanAbsoluteError()(np.array([[1.0]]), v[:, :1])) == 0.0


def test_a_loss_is_a_value():
    huber = losses.Huber(delta=2.0)
    assert huber == losses.Huber(2.0) != losses.Huber(3.0)
    assert len({huber, losses.Huber(2.0)}) == 1
    assert copy.deepcopy(huber) == huber == pickle.loads(pickle.dumps(huber))
    assert huber.get_config() == {
        "delta": 2.0, "reduction": "sum_over_batch_size", "name": "huber_loss", "dtype": None,
    }  # fmt: skip
    assert losses.Huber.from_config(huber.get_config()) == huber
    with pytest.raises(FrozenInstanceError):
        huber.delta = 1.0


def test_a_loss_of_ones_own_has_reductions_and_weights():
    class Distance(losses.Loss):
        def __init__(self, power, **options):
            super().__init__(**options)
            self.power = power

        def call(self, y_true, y_pred):
            return abs(y_true - y_pred) ** self.power

    y_true, y_pred = jnp.array([0.0, 0.0]), jnp.array([1.0, 3.0])
    assert float(Distance(2)(y_true, y_pred)) == 5.0
    assert float(Distance(2, reduction="sum")(y_true, y_pred, [1.0, 0.5])) == 5.5
    assert Distance(1, name="d").get_config()["name"] == "d"


# ---------------------------------------------------------------- weights
@pytest.mark.parametrize(
    ("shape", "weight", "expected"),
    [
        ((2, 2, 3), [1.0, 3.0], [1.0, 1.0, 3.0, 3.0]),  # not along the last axis that fits
        ((2, 2, 3), [[1.0], [3.0]], [1.0, 1.0, 3.0, 3.0]),
        ((2, 2, 3), [[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0, 3.0, 4.0]),
        ((2, 2, 3), 2.0, [2.0, 2.0, 2.0, 2.0]),
        ((4, 3), [[1.0], [2.0], [3.0], [4.0]], [1.0, 2.0, 3.0, 4.0]),
    ],
)
def test_weights_go_with_samples(shape, weight, expected):
    loss = losses.MeanSquaredError(reduction=None)
    found = loss(np.zeros(shape), np.ones(shape), sample_weight=weight)
    assert found.reshape(-1).tolist() == expected


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 2)])
def test_weights_that_fit_no_samples_are_refused(shape):
    message = rf"sample_weight of mean_squared_error has shape {re.escape(str(shape))}"
    with pytest.raises(ShapeError, match=message):
        losses.MeanSquaredError()(np.zeros((2, 2, 3)), np.zeros((2, 2, 3)), np.ones(shape))


def test_what_is_ignored_does_not_count_in_a_mean():
    logits = np.array([[0.0, 1.0], [0.0, 1.0], [5.0, 5.0]], np.float32)
    kept = losses.SparseCategoricalCrossentropy(from_logits=True)([0, 1], logits[:2])
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    close(loss([0, 1, -1], logits), kept)
    close(loss([[0], [1], [-1]], logits), kept)
    weighted = loss([0, 1, -1], logits, sample_weight=[1.0, 1.0, 7.0])
    close(weighted, kept)
    mean = losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=-1, reduction="mean_with_sample_weight"
    )
    close(mean([0, 1, -1], logits, [3.0, 3.0, 7.0]), kept)


def test_the_mean_of_nothing_is_zero():
    nothing = np.zeros((0, 3), np.float32)
    assert float(losses.MeanSquaredError()(nothing, nothing)) == 0.0
    one = losses.MeanSquaredError(reduction="mean_with_sample_weight")
    assert float(one(np.zeros((2, 1)), np.ones((2, 1)), [0.0, 0.0])) == 0.0
    ignored = losses.SparseCategoricalCrossentropy(ignore_class=0)
    gradient = jax.jit(jax.grad(lambda p: ignored([0, 0], p)))(jnp.full((2, 2), 0.5))
    assert gradient.tolist() == [[0.0, 0.0], [0.0, 0.0]]


# ---------------------------------------------------------------- numbers
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_computed_with_in_float32(dtype):
    pred = jnp.array([[1.0, 0.0]], dtype)  # where 1 - 1e-7 is 1, and its logarithm minus infinity
    loss = losses.BinaryCrossentropy()
    derived = jax.jit(jax.value_and_grad(lambda p: loss(jnp.array([[1.0, 0.0]], dtype), p)))
    value, gradient = derived(pred)
    assert value.dtype == jnp.float32
    assert 0 < float(value) < 1e-6
    assert gradient.dtype == pred.dtype
    assert (
        float(losses.MeanSquaredError()(jnp.array([[0.0]], dtype), jnp.full((1, 1), 300.0, dtype)))
        > 8e4
    )
    assert losses.MeanSquaredError(dtype="float16")(pred, pred).dtype == jnp.float16


def test_wider_floats_stay_wide(x64):
    pred = jnp.array([[1.0 + 1e-12]], "float64")
    found = losses.mean_absolute_error(np.ones((1, 1)), pred)
    assert found.dtype == jnp.float64
    close(found, [1e-12], rtol=1e-3, atol=0)


def test_a_float64_loss_rounds_nothing_to_float32(x64):
    x = np.array([[1_700_000_001], [1_700_000_003]], np.int32)
    assert float(losses.MeanAbsoluteError(dtype="float64")(x, x + 5)) == 5
    assert float(losses.MeanAbsoluteError()(x, x + 5)) == 0
    assert float(losses.MeanAbsoluteError(dtype="float64")(x, x.astype("float32"))) == 2

    class First(losses.Loss):
        def call(self, y_true, y_pred):
            return y_true

    assert float(First(dtype="float64")(x, x)) == 1_700_000_002
    labels, logits = np.array([0, 1]), np.eye(2, dtype=np.float32)
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, dtype="float64")
    close(loss(labels, logits), np.log1p(np.exp(-1)), rtol=1e-15, atol=0)


def test_large_logits_overflow_nowhere():
    y_true, big = np.eye(2, dtype=np.float32), jnp.array([[1e4, -1e4], [1e4, -1e4]])
    for loss in (
        losses.BinaryCrossentropy(True), losses.CategoricalCrossentropy(True),
        losses.BinaryFocalCrossentropy(from_logits=True),
        losses.CategoricalFocalCrossentropy(from_logits=True),
    ):  # fmt: skip
        value, gradient = jax.jit(jax.value_and_grad(lambda p, f=loss: f(y_true, p)))(big)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("logit", [1e4, 1e8, -1e20])
def test_equal_logits_are_equal_chances_however_large(logit):
    logits = jnp.full((1, 4), logit)
    sparse = losses.SparseCategoricalCrossentropy(from_logits=True)
    close(sparse([1], logits), math.log(4))
    close(
        losses.CategoricalCrossentropy(from_logits=True)([[0.0, 1.0, 0.0, 0.0]], logits),
        math.log(4),
    )
    close(jax.grad(lambda x: sparse([1], x))(logits), [[0.25, -0.75, 0.25, 0.25]])


def test_a_class_that_is_ruled_out_costs_nothing():
    logits = jnp.array([[0.0, -jnp.inf, 0.0]])
    loss = losses.CategoricalCrossentropy(from_logits=True)
    derived = jax.jit(jax.value_and_grad(lambda p: loss([[1.0, 0.0, 0.0]], p)))
    value, gradient = derived(logits)
    close(value, np.log(2.0))
    close(gradient, [[-0.5, 0.0, 0.5]])


def test_an_error_of_zero_has_no_gradient():
    for loss in (losses.mean_absolute_error, losses.mean_absolute_percentage_error):
        gradient = jax.grad(lambda p, f=loss: f(jnp.ones((1, 2)), p).sum())(jnp.ones((1, 2)))
        assert gradient.tolist() == [[0.0, 0.0]]


def test_a_label_that_is_not_a_class_is_an_error_or_nan():
    logits = jnp.zeros((2, 3))
    for label in (3, -1):
        with pytest.raises(IndexError, match=rf"3 classes, 0 to 2.*has a label {label}"):
            losses.sparse_categorical_crossentropy([0, label], logits)
        compiled = jv.compile(lambda t: losses.sparse_categorical_crossentropy(t, logits))
        assert np.isnan(compiled(np.array([0, label]))).tolist() == [False, True]


LOGITS = [[2.0, -3.0, 1.0]]
OF_PROBABILITIES = {
    losses.sparse_categorical_crossentropy: [2],
    losses.categorical_crossentropy: [[0.0, 0.0, 1.0]],
    losses.categorical_focal_crossentropy: [[0.0, 0.0, 1.0]],
    losses.binary_crossentropy: [[0.0, 0.0, 1.0]],
    losses.binary_focal_crossentropy: [[0.0, 0.0, 1.0]],
}


@pytest.mark.parametrize("loss", OF_PROBABILITIES)
def test_logits_for_probabilities_are_an_error_or_nan(loss):
    labels = OF_PROBABILITIES[loss]
    with pytest.raises(ValueError, match=r"probabilities, but y_pred has .*from_logits=True"):
        loss(labels, LOGITS)
    compiled = jv.compile(lambda y: loss(labels, y))
    assert np.isnan(compiled(jnp.asarray(LOGITS))).all()
    assert np.isfinite(loss(labels, LOGITS, from_logits=True)).all()
    probabilities = jax.nn.softmax(jnp.asarray(LOGITS, "bfloat16"))
    close(compiled(probabilities), loss(labels, probabilities))


def test_scores_that_are_divided_by_their_sum_may_be_larger_than_1():
    scores = jnp.array([[2.0, 3.0, 5.0]])
    close(losses.categorical_crossentropy([[0.0, 0.0, 1.0]], scores), [np.log(2.0)])
    with pytest.raises(ValueError, match="y_pred has 2"):
        losses.sparse_categorical_crossentropy([2], scores)


def test_alpha_may_be_one_for_each_class():
    y_true, y_pred = [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]
    one = losses.categorical_focal_crossentropy(y_true, y_pred, alpha=1.0)
    both = losses.CategoricalFocalCrossentropy(alpha=(0.25, 0.5), reduction="none")(y_true, y_pred)
    close(both, one * np.array([0.25, 0.5]))
    hash(losses.CategoricalFocalCrossentropy(alpha=(0.25, 0.5)))


# ---------------------------------------------------------------- mistakes
def test_shapes_that_merely_broadcast_are_refused():
    with pytest.raises(ShapeError, match=r"y_true has shape \(3,\) and y_pred \(8, 3\)"):
        losses.mean_squared_error(np.zeros(3), np.zeros((8, 3)))
    with pytest.raises(ShapeError, match="at least one axis"):
        losses.mean_squared_error(1.0, 2.0)
    with pytest.raises(ShapeError, match="begins with 'sparse'"):
        losses.CategoricalCrossentropy()([1, 0], np.zeros((2, 3)))


def test_one_hot_labels_and_swapped_arguments_are_pointed_out():
    with pytest.raises(ShapeError, match="one-hot, use the function without 'sparse'"):
        losses.sparse_categorical_crossentropy(np.eye(3), np.zeros((3, 3)))
    with pytest.raises(ShapeError, match="swapped"):
        losses.sparse_categorical_crossentropy(np.zeros((4, 3)), np.array([0, 1, 2, 0]))
    with pytest.raises(DtypeError, match=r"are integers, but y_true has 0.5.*swapped"):
        losses.sparse_categorical_crossentropy(np.array([0.5]), np.zeros((1, 3)))


def test_options_that_are_wrong_are_named():
    with pytest.raises(ValueError, match=r"'summ' is not a reduction.*'sum'"):
        losses.MeanSquaredError(reduction="summ")
    with pytest.raises(DtypeError, match="a float, not int32"):
        losses.MeanSquaredError(dtype="int32")
    with pytest.raises(TypeError, match="axis of sparse_categorical_crossentropy is an integer"):
        losses.sparse_categorical_crossentropy([0], np.zeros((1, 3)), axis=True)
    losses.categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]], axis=1)  # which True is equal to
    with pytest.raises(TypeError, match="axis of categorical_crossentropy is an integer"):
        losses.categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]], axis=True)
    with pytest.raises(ShapeError, match="has no axis 2"):
        losses.sparse_categorical_crossentropy([0], np.zeros((1, 3)), axis=2)
    with pytest.raises(DtypeError, match="has dtype string"):
        losses.mean_squared_error(["a"], ["b"])


# ---------------------------------------------------------------- by name
def test_losses_are_found_by_name():
    for name, cls in CLASSES.items():
        assert losses.get(name) == cls()
    for name, function in FUNCTIONS.items():
        assert losses.get(name) is function
    assert losses.get("bce") is losses.binary_crossentropy
    assert losses.get(None) is None
    assert losses.get(losses.Huber) == losses.Huber()
    assert losses.get(max) is max
    with pytest.raises(ValueError, match=r"no loss 'mean_squared_eror'.*'mean_squared_error'"):
        losses.get("mean_squared_eror")
    with pytest.raises(TypeError, match="3 is not a loss"):
        losses.get(3)


def test_a_class_to_ignore_is_none_of_a_narrow_dtype():
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    logits = jnp.zeros((2, 256))
    assert float(loss(np.array([0, 255], np.uint8), logits)) == float(loss([0, 255], logits))


@pytest.mark.parametrize("name", ["hinge", "categorical_hinge"])
def test_the_slope_at_a_margin_is_that_of_keras(name: str):
    loss = getattr(losses, name)
    slope = jax.grad(lambda x: loss(jnp.array([[0.0, 1.0]]), x).sum())(jnp.array([[0.0, 1.0]]))
    assert slope.tolist() == {"hinge": [[0.5, -0.5]], "categorical_hinge": [[0.5, -1.0]]}[name]


@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "categorical_hinge"])
def test_no_number_stays_none(name: str):
    assert np.isnan(getattr(losses, name)([[0.0, 1.0]], [[0.5, math.nan]])).all()

from __future__ import annotations

import copy
import functools
import inspect
import json
import pickle
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arrays import array, close
from threads import run_in_threads

import jaxvars as jv
from jaxvars import metrics
from jaxvars.errors import DtypeError, ShapeError
from jaxvars.metrics.sums import Tally, group_sums, sum_to_parts
from jaxvars.modules.module import BORDER

GOLDENS = json.loads((Path(__file__).parents[1] / "goldens" / "metrics.json").read_text())
NAMES = {name: getattr(metrics, name) for name in metrics.__all__}
CLASSES: dict[str, Any] = {
    name: thing
    for name, thing in NAMES.items()
    if inspect.isclass(thing) and thing not in (metrics.Metric, metrics.MeanMetricWrapper)
}


def configurations() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for case in GOLDENS["cases"]:
        if "steps" in case:
            options = "-".join(f"{k}={v}" for k, v in case["options"].items())
            found.setdefault(f"{case['metric']}-{options}", []).append(case)
    return found


CONFIGURATIONS = configurations()
OURS = {"ConfusionMatrix": {"num_classes": 4, "normalize": "true"}}
"""Options of the metrics that TensorFlow does not have."""


def examples() -> dict[str, tuple[dict[str, Any], list[Any]]]:
    """Options of each class, and arguments of an update."""
    values = [np.array([1.0, 2.0, 4.0], np.float32)]
    found = {name: ({}, values) for name in ("Mean", "Sum")}
    for case in GOLDENS["cases"]:
        if "steps" in case:
            given = [array(x) for x in case["steps"][2][:3]]
            found.setdefault(case["metric"], (case["options"], given))
    labels = [np.array([0, 1, 3, 2]), np.array([0, 1, 2, 2])]
    return {**found, **{name: (options, labels) for name, options in OURS.items()}}


EXAMPLES = examples()


def make(name: str) -> Any:
    return CLASSES[name](**EXAMPLES[name][0])


# ---------------------------------------------------------------- TensorFlow's values
def by_haste() -> list[Any]:
    """The configurations, of which those beyond two of a class are slow."""
    seen: dict[str, int] = {}
    marked = []
    for name in CONFIGURATIONS:
        cls = name.split("-")[0]
        seen[cls] = seen.get(cls, 0) + 1
        marks = [pytest.mark.slow] if seen[cls] > 2 else []
        marked.append(pytest.param(name, marks=marks, id=name))
    return marked


@pytest.mark.parametrize("name", by_haste())
def test_results_are_those_of_tensorflow(name):
    for case in CONFIGURATIONS[name]:
        metric = CLASSES[case["metric"]](**case["options"])
        for y_true, y_pred, weight, result in case["steps"]:
            metric.update_state(array(y_true), array(y_pred), array(weight))
            assert metric.result().shape == np.shape(result)
            close(metric.result(), result)


@pytest.mark.parametrize("case", [c for c in GOLDENS["cases"] if "sums" in c])
def test_sums_and_means_are_those_of_tensorflow(case):
    metric = CLASSES[case["metric"]]()
    for values, weight, result in case["sums"]:
        close(metric(array(values), array(weight)), result)


@pytest.mark.parametrize("name", GOLDENS["edges"])
def test_edges_are_those_of_tensorflow(name):
    case = GOLDENS["edges"][name]
    shaped = zip(case["given"], case["shapes"], strict=True)
    metric = CLASSES[case["metric"]](**case["options"])
    metric.update_state(*[array(x).reshape(s) for x, s in shaped], sample_weight=case["weight"])
    close(metric.result(), case["result"])


def test_every_metric_has_goldens_or_is_ours():
    assert {case["metric"] for case in GOLDENS["cases"]} | set(OURS) == set(CLASSES)
    assert set(EXAMPLES) == set(CLASSES)


# ---------------------------------------------------------------- in every situation
@pytest.fixture(scope="module")
def eager() -> Any:
    """Return a function that gives a metric after two updates, and what it said at each."""

    @functools.cache
    def updated(name: str) -> Any:
        metric = make(name)
        return metric, [metric(*EXAMPLES[name][1]) for _ in range(2)]

    return updated


def every(all_: dict[str, Any], data: Any) -> dict[str, Any]:
    return {name: metric(*data[name]) for name, metric in all_.items()}


def test_compiled_they_do_what_they_do_eagerly(eager):
    all_, runs = {name: make(name) for name in CLASSES}, []
    data = {name: given for name, (_, given) in EXAMPLES.items()}
    for metric in all_.values():
        if not metric.variables:
            metric.build(4)

    @jv.compile
    def step(data):
        runs.append(1)
        return every(all_, data)

    for i in range(2):
        found = step(data)
        for name, result in found.items():
            close(result, eager(name)[1][i], err_msg=name)
    assert len(runs) == 1
    for name, metric in all_.items():
        for mine, theirs in zip(metric.variables, eager(name)[0].variables, strict=True):
            close(mine, theirs, err_msg=name)


FAMILIES = [
    "Mean", "RootMeanSquaredError", "BinaryCrossentropy", "SparseTopKCategoricalAccuracy",
    "Precision", "ConfusionMatrix", "F1Score",
]  # fmt: skip


@pytest.mark.parametrize(
    "names", [FAMILIES, pytest.param(list(CLASSES), marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_as_a_pure_function_they_do_the_same_and_change_nothing(eager, names):
    all_ = {name: copy.deepcopy(eager(name)[0]) for name in names}
    for metric in all_.values():
        metric.reset_state()
    data = {name: given for name, (_, given) in EXAMPLES.items()}
    pure = jv.functionalize(lambda data: every(all_, data))

    @jax.jit
    def twice(state, data):
        def one(state, _):
            result, state = pure(state, data)
            return state, result

        return jax.lax.scan(one, state, None, length=2)

    _, results = twice(jv.State.of(all_), data)
    for name, result in results.items():
        for found, expected in zip(result, eager(name)[1], strict=True):
            close(found, expected, err_msg=name)
    assert all(not v.numpy().any() for metric in all_.values() for v in metric.variables)


def test_they_go_into_loops_branches_and_guards():
    mean, hits = metrics.Mean(), metrics.SparseCategoricalAccuracy()
    logits = np.eye(3, dtype=np.float32)

    @jv.compile(guard="finite")
    def run(labels):
        def body(i, carry):
            mean.update_state(i.astype(jnp.float32))
            jv.cond(i % 2 == 0, lambda: hits.update_state(labels, logits), lambda: None)
            return carry

        return jv.fori_loop(0, 4, body, 0)

    run(np.array([0, 1, 0]))
    assert (float(mean.result()), float(mean.count.value)) == (1.5, 4.0)
    assert (round(float(hits.result()), 4), float(hits.count.value)) == (0.6667, 6.0)


def test_nothing_differentiates_them():
    w, mean = jv.Variable([1.0, 2.0], name="w"), metrics.MeanSquaredError()
    with jv.GradientTape() as tape:
        y = w * 3.0
        loss = (y**2).sum() + mean(jnp.zeros((1, 2)), y[None])
    assert tape.gradient(loss, w).tolist() == [18.0, 36.0]
    assert float(mean.result()) == 22.5

    @jv.compile
    def step():
        with jv.GradientTape() as tape:
            loss = mean(jnp.zeros((1, 2)), w[None] * 3.0)
        return tape.gradient(loss, w)

    with pytest.warns(jv.errors.GradientWarning, match="All gradients are None"):
        assert step() is None
    pure, state = jv.functionalize(lambda y: mean(jnp.zeros((1, 2)), y)), jv.State.of(mean)
    assert jax.grad(lambda y: pure(state, y)[0])(jnp.ones((1, 2))).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("name", CLASSES)
def test_reset_copy_pickle_and_merge(name, eager):
    (metric, expected), given = eager(name), EXAMPLES[name][1]
    for copied in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        np.testing.assert_array_equal(copied.result(), metric.result())
        assert not set(map(id, copied.variables)) & set(map(id, metric.variables))
    copied.reset_state()
    assert all(not v.numpy().any() for v in copied.variables)
    assert np.isfinite(copied.result()).all()
    close(copied(*given), expected[0])
    other = make(name)
    other.merge_state([copied, copied])
    close(other.result(), expected[1])
    assert type(metric).from_config(metric.get_config()).get_config() == metric.get_config()
    assert not any(v.trainable for v in metric.variables)


def test_no_update_of_a_thread_is_lost():
    mean = metrics.Mean()
    mean.update_state(1.0)

    def work():
        for _ in range(50):
            mean.update_state(1.0)

    run_in_threads(*[work] * 4)
    assert float(mean.count.value) == 201.0


def test_a_dict_of_metrics_is_walked():
    class Trainer(jv.Module):
        def __init__(self):
            self.metrics = {"loss": metrics.Mean("loss"), "auc": metrics.AUC(num_thresholds=3)}

    trainer = Trainer()
    assert list(trainer.named_variables) == [
        "metrics/auc/counts/false_negatives/parts", "metrics/auc/counts/false_positives/parts",
        "metrics/auc/counts/true_negatives/parts", "metrics/auc/counts/true_positives/parts",
        "metrics/loss/count/parts", "metrics/loss/total/parts",
    ]  # fmt: skip
    assert trainer.metrics["loss"].total.parts.name == "loss/total"


# ---------------------------------------------------------------- exact sums
def test_counts_go_on_where_float32_stands_still():
    mean, share, hits = metrics.Mean(), metrics.Precision(), metrics.TruePositives()
    ones = np.ones(2**20, np.float32)

    @jv.compile
    def many():
        def big(c, _):
            mean.update_state(ones, sample_weight=ones)
            return c, None

        return jv.scan(big, 0, None, length=32)[0]

    @jv.compile
    def few():
        def one(c, _):
            mean.update_state([3.0], sample_weight=[1.0])
            hits.update_state([1.0], [1.0])
            return c, None

        return jv.scan(one, 0, None, length=1000)[0]

    many()
    few()
    high, low = mean.count.parts.numpy().astype(int)
    assert high + low == 2**25 + 1000
    high, low = mean.total.parts.numpy().astype(int)
    assert high + low == 2**25 + 3000
    assert float(np.float32(2**25) + np.float32(1)) == 2**25  # what a plain sum would do
    share.true_positives.add(np.array([2**24]))
    for _ in range(3):
        share.update_state([1, 0], [0.9, 0.9])
    assert int(share.true_positives.parts.numpy().astype(int).sum()) == 2**24 + 3
    assert float(hits.result()) == 1000.0


def weighted_answers(weights):
    """Return an update of metrics by weighted answers, these, and what float64 makes of them."""
    rng = np.random.default_rng(1)
    n = len(weights)
    true, guess, pred = rng.integers(0, 2, n), rng.integers(0, 3, n), rng.random(n, np.float32)
    wide = np.asarray(weights, np.float64)

    found = {
        "tn": metrics.TrueNegatives([0.3, 0.7]),
        "precision": metrics.Precision(),
        "auc": metrics.AUC(num_thresholds=5),
        "matrix": metrics.ConfusionMatrix(3),
        "f1": metrics.F1Score(threshold=0.5),
        "mean": metrics.Mean(),
    }
    found["f1"].build(2)

    def update(true, guess, pred, weights):
        two = lambda x: jnp.stack([x, 1 - x], 1)  # noqa: E731
        for key in ("tn", "precision", "auc"):
            found[key].update_state(true, pred, weights)
        found["matrix"].update_state(true, guess, weights)
        found["f1"].update_state(two(true), two(pred), weights)
        found["mean"].update_state(pred, weights)
        return {key: metric.result() for key, metric in found.items()}

    yes, matrix = pred > 0.5, np.zeros((3, 3))
    np.add.at(matrix, (true, guess), wide)
    sums = lambda chosen: wide[chosen].sum()  # noqa: E731
    tp, fp, fn = sums(yes & (true == 1)), sums(yes & (true == 0)), sums(~yes & (true == 1))
    tn = sums(~yes & (true == 0))
    at = np.array([-1.0, 0.25, 0.5, 0.75, 2.0])[:, None]
    rates = [(wide * ((true == k) & (pred > at))).sum(1) / sums(true == k) for k in (0, 1)]
    expected = {
        "tn": [sums((pred <= at) & (true == 0)) for at in np.float32([0.3, 0.7])],
        "precision": tp / (tp + fp),
        "auc": -np.trapezoid(rates[1], rates[0]),
        "matrix": matrix,
        "f1": [2 * tp / (2 * tp + fp + fn), 2 * tn / (2 * tn + fp + fn)],
        "mean": (pred * wide).sum() / wide.sum(),
    }
    return update, (true, guess, pred, weights), expected


@pytest.mark.parametrize("kind", ["equal", pytest.param("wide", marks=pytest.mark.slow)])
def test_one_large_batch_is_summed_as_in_float64(kind):
    n = 2**18
    weights = np.full(n, 0.1, np.float32)
    if kind == "wide":
        weights = (10.0 ** np.random.default_rng(2).uniform(-6, 3, n)).astype(np.float32)
    update, data, expected = weighted_answers(weights)
    mesh = jax.sharding.Mesh(jax.devices(), "x")
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    compiled = jv.compile(update)
    for many in (1, 2) if kind == "equal" else (1,):  # on one device, then on all of them
        for key, found in compiled(*data).items():
            factor = many if key in ("tn", "matrix") else 1
            close(found, factor * np.array(expected[key]), rtol=6e-7, atol=0)
        data = jax.device_put(data, spread)


def test_large_numbers_of_one_batch_do_not_swallow_small_ones():
    n = 2**12
    weights = np.r_[np.float32(2**24), np.ones(n - 1, np.float32)]
    ones, zeros = np.ones(n, np.float32), np.zeros(n, np.int32)

    def exact(tally):
        return tally.parts.numpy().astype(np.float64).sum(0).max()

    mean, hits, matrix = metrics.Mean(), metrics.TruePositives(), metrics.ConfusionMatrix(2)
    score = metrics.F1Score(average="micro", threshold=0.5)
    mean.update_state(ones, weights)
    hits.update_state(ones, ones, weights)
    matrix.update_state(zeros, zeros, weights)
    score.update_state(ones[:, None], ones[:, None], weights)
    hit = score.counts["true_positives"]
    for tally in (mean.total, mean.count, hits.true_positives, matrix.total_cm, hit):
        assert exact(tally) == 2**24 + n - 1
    sum_ = metrics.Sum()
    sum_.update_state(np.float32([2**24, 1.0, 1.0, 1.0]))
    both = metrics.Sum()
    both.merge_state([sum_, sum_])
    assert exact(both.total) == 2 * (2**24 + 3)
    lanes = jax.vmap(lambda w: group_sums(w, [zeros], (1,)))(jnp.stack([weights, 3 * weights]))
    assert np.float64(lanes).sum(1).ravel().tolist() == [2**24 + n - 1, 3 * (2**24 + n - 1)]
    np.testing.assert_array_equal(
        group_sums(jnp.array([1, np.inf, 2, np.nan]), [jnp.array([0, 1, 0, 2])], (3,))[0],
        [3, np.inf, np.nan],
    )


def test_sums_of_constants_are_not_computed_by_the_compiler():
    ones = jnp.ones(2**18)
    program = jax.jit(lambda: (sum_to_parts(ones), group_sums(ones, [jnp.zeros(2**18, int)], (1,))))
    assert [float(x[0].reshape(())) for x in program()] == [2**18, 2**18]
    assert "reduce" in program.lower().compile().as_text()


def test_a_tally_is_exact():
    tally = Tally((2,))
    added = [[1, 2**30 + 1], [2**31 - 1, -7], [-3, 12345]]
    for delta in added:
        tally.add(np.array(delta, np.int32))
    exact = tally.parts.numpy().astype(np.float64).sum(0)
    assert exact.tolist() == np.sum(np.array(added, np.int64), 0).tolist()
    both = Tally((2,))
    for _ in range(2):
        both.take(tally.parts.value)
    assert both.parts.numpy().astype(np.float64).sum(0).tolist() == (2 * exact).tolist()
    rng = np.random.default_rng(0)
    numbers = (rng.normal(size=300) * 10.0 ** rng.integers(-3, 6, size=300)).astype(np.float32)
    small = Tally()
    for x in numbers:
        small.add(x)
    close(
        small.parts.numpy().astype(np.float64).sum(), numbers.astype(np.float64).sum(), rtol=1e-11
    )
    with pytest.raises(ShapeError, match=r"shape \(3,\) to 'tally', a sum of shape \(2,\)"):
        tally.add(np.ones(3))


def test_infinity_and_nan_are_those_of_a_plain_sum():
    for added, expected in [([np.inf, 1.0], np.inf), ([np.nan, 1.0], np.nan),
                            ([np.inf, -np.inf], np.nan), ([1.0, -np.inf], -np.inf)]:  # fmt: skip
        tally = Tally()
        for x in added:
            tally.add(np.float32(x))
        np.testing.assert_array_equal(tally.value, expected)


def test_wide_numbers_keep_what_float32_drops(x64):
    tally = Tally()
    tally.add(np.float64(1 + 1e-10))
    assert tally.parts.dtype == np.float32
    close(tally.parts.numpy().astype(np.float64).sum(), 1 + 1e-10, rtol=1e-14, atol=0)
    wide = metrics.Mean(dtype="float64")
    assert wide(1 + 1e-12).dtype == np.float64
    close(wide.result(), 1 + 1e-12, rtol=1e-15, atol=0)


def test_integers_are_added_exactly():
    sum_, mean = metrics.Sum(), metrics.Mean()
    for values in ([2**24 + 1], [-(2**24)]):
        sum_.update_state(np.array([values], np.int32))
        mean.update_state(np.array(values, np.int32))
    assert (float(sum_.result()), float(mean.result())) == (1, 0.5)
    for kind in ("bool", "int8", "uint8", "int16", "uint32"):
        assert float(metrics.Sum()(np.ones((2, 3), kind))) == 6
        assert float(metrics.Mean()(np.array([[1, 0], [1, 1]], kind))) == 0.75
        tally = Tally((2,))
        tally.add(np.ones(2, kind))
        assert tally.value.tolist() == [1, 1]


def test_a_float64_metric_rounds_nothing_to_float32(x64):
    x = np.array([1_700_000_001, 1_700_000_003], np.int32)
    assert float(metrics.Mean(dtype="float64")(x)) == 1_700_000_002
    assert float(metrics.Mean(dtype="float64")(x[None])) == 1_700_000_002
    assert float(metrics.Mean(dtype="float64")(x, sample_weight=[1, 3])) == 1_700_000_002.5
    assert float(metrics.Mean()(x)) == 1_700_000_000
    for kind in (metrics.MeanAbsoluteError, metrics.RootMeanSquaredError):
        assert float(kind(dtype="float64")(x[:, None], x[:, None] + 5)) == 5
        assert float(kind()(x[:, None], x[:, None] + 5)) == 0
    ids = np.array([2**53 + 1])
    assert float(metrics.Accuracy()(ids, ids - 1)) == 0
    assert float(metrics.Accuracy(dtype="float64")(ids, ids - 1)) == 0


# ---------------------------------------------------------------- dtypes
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_narrow_the_result_only(dtype):
    mean = metrics.MeanSquaredError(dtype=dtype)
    mean.update_state(np.zeros((4096, 1)), jnp.full((4096, 1), 3.0, dtype))
    mean.update_state(np.zeros((1, 1)), jnp.zeros((1, 1), dtype))
    assert mean.result().dtype == mean.dtype == jnp.dtype(dtype)
    assert mean.count.parts.dtype == jnp.float32
    assert float(mean.count.value) == 4097.0


def test_a_dtype_that_is_not_a_float_is_refused():
    for wrong in ("int32", "string", bool):
        with pytest.raises(DtypeError, match="dtype of Mean is that of its result, a float"):
            metrics.Mean(dtype=wrong)


# ---------------------------------------------------------------- custom metrics
def test_thresholds_come_in_any_order():
    y_true, y_pred = [0, 1, 1, 0, 1], [0.1, 0.35, 0.8, 0.6, 0.6]
    one = metrics.Recall([0.2, 0.5, 0.7])(y_true, y_pred)
    other = metrics.Recall([0.7, 0.2, 0.5])(y_true, y_pred)
    assert one.tolist() == [other[1], other[2], other[0]]
    close(one, [1.0, 2 / 3, 1 / 3])


def test_nan_is_never_above_a_threshold():
    counts = metrics.FalsePositives([0.0, 0.5, 1.0])
    assert counts([0, 0], [np.nan, 0.7]).tolist() == [1.0, 1.0, 0.0]


def test_confusion_matrices():
    y_true, y_pred, weight, plain, weighed = map(np.array, GOLDENS["confusion_matrix"])
    np.testing.assert_array_equal(metrics.confusion_matrix(y_true, y_pred), plain)
    found = metrics.confusion_matrix(y_true, y_pred, num_classes=5, weights=weight)
    np.testing.assert_array_equal(found, weighed)
    assert found.dtype == np.int32
    for how, axis in (("true", 1), ("pred", 0), ("all", None)):
        parts = metrics.ConfusionMatrix(4, normalize=how)(y_true, y_pred)
        close(parts, plain / plain.sum(axis, keepdims=True))
    compiled = jv.compile(lambda t, p: metrics.confusion_matrix(t, p, 2))
    assert compiled([0, 1, 5], [0, 0, 1]).tolist() == [[1, 0], [1, 0]]
    with pytest.raises(ValueError, match="needs num_classes in compiled code"):
        jv.compile(lambda t: metrics.confusion_matrix(t, t))([0, 1])
    with pytest.raises(IndexError, match="prediction is 5, but the classes are 0 to 1"):
        metrics.confusion_matrix([0, 1], [0, 5], num_classes=2)
    with pytest.raises(ShapeError, match=r"y_true has shape \(2,\) and y_pred \(3,\)"):
        metrics.confusion_matrix([0, 1], [0, 1, 1])


def test_a_matrix_of_regions_and_weights():
    regions = metrics.ConfusionMatrix(3)
    weights = [[0.5, 0.0], [2.0, 3.0]]
    found = regions([[0, 1], [2, 5]], [[0, 0], [1, 2]], sample_weight=weights)
    close(found, [[0.5, 0, 0], [0, 0, 0], [0, 2.0, 0]])  # 5 is not a class


def test_what_is_ignored_does_not_count():
    logits = np.array([[0.0, 1.0], [0.0, 1.0], [5.0, 0.0]], np.float32)
    expected = metrics.SparseCategoricalCrossentropy(from_logits=True)([0, 1], logits[:2])
    for weight in (None, [1.0, 1.0, 9.0]):
        metric = metrics.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
        close(metric([0, 1, -1], logits, sample_weight=weight), expected)


def test_wrapped_functions_may_read_variables():
    scale = jv.Variable(2.0, name="scale")

    def scaled(y_true, y_pred, power):
        return abs(y_true - scale * y_pred) ** power

    metric = metrics.MeanMetricWrapper(scaled, name="scaled", power=2)
    y_true, y_pred = np.array([1.0, 2.0], np.float32), np.array([1.0, 2.0], np.float32)
    assert float(metric(y_true, y_pred)) == 2.5
    scale.assign(1.0)
    assert float(metric(y_true, y_pred)) == 1.25
    assert metric.get_config()["power"] == 2


def test_a_metric_of_ones_own():
    class Positives(metrics.Metric):
        def __init__(self, name="positives", **options):
            super().__init__(name=name, **options)
            self.largest = self.add_weight(shape=(), initializer="zeros", name="largest")
            self.count = self.add_tally("count")

        def update_state(self, values):
            self.largest.assign(jnp.maximum(self.largest, jnp.max(values)))
            self.count.add((values > 0).sum())

        def result(self):
            return {"largest": self.largest.value, "count": self.count.value}

    metric = Positives()
    step = jv.compile(lambda x: metric(x))
    step(np.array([1.0, -1.0], np.float32))
    found = step(np.array([3.0, 2.0], np.float32))
    assert (float(found["largest"]), float(found["count"])) == (3.0, 3.0)
    assert [v.name for v in metric.variables] == ["positives/largest", "positives/count"]
    metric.reset_state()
    assert float(metric.result()["largest"]) == 0.0


def test_build_makes_the_state_beforehand():
    for metric in (metrics.F1Score(), metrics.AUC(multi_label=True)):
        assert np.isfinite(metric.result()).all()
        metric.build(3)
        known = metric.variables
        metric.update_state(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32))
        assert metric.variables == known
        with pytest.raises(ShapeError, match="was made for 3"):
            metric.update_state(np.eye(2), np.eye(2))


def test_a_compiled_function_may_make_the_state_in_its_first_call():
    metric = metrics.F1Score(average="macro")
    step = jv.compile(lambda y: metric(y, y))
    assert [round(float(step(np.eye(2, dtype=np.float32))), 4) for _ in range(2)] == [1.0, 1.0]
    assert float(metric.counts["true_positives"].value[0]) == 2.0


# ---------------------------------------------------------------- mistakes
def test_mistakes_are_named_and_change_nothing():
    accuracy = metrics.SparseCategoricalAccuracy()
    logits = np.zeros((4, 3), np.float32)
    for wrong, message in [
        ((logits, np.array([0, 1, 2, 0])), "swapped"),
        ((np.eye(4, 3), logits), "one-hot, use the function without 'sparse'"),
        ((np.array([0.5, 1, 2, 0]), logits), r"are integers, but y_true has 0.5.*swapped"),
        ((np.zeros(3, int), logits), r"labels of shape \(4,\) for predictions of shape \(4, 3\)"),
    ]:
        with pytest.raises((ShapeError, DtypeError), match=message):
            accuracy.update_state(*wrong)
    with pytest.raises(ShapeError, match=r"sample_weight of sparse_categorical_accuracy.*\(3,\)"):
        accuracy.update_state(np.zeros(4, int), logits, sample_weight=np.ones(3))
    for metric in (metrics.AUC(), metrics.Precision()):
        with pytest.raises(ShapeError, match=r"y_true has shape \(4,\) and y_pred \(4, 3\)"):
            metric.update_state(np.zeros(4), logits)
        with pytest.raises(ShapeError, match=r"sample_weight of \w+ has shape \(3,\)"):
            metric.update_state(np.zeros(4), np.zeros(4), np.ones(3))
        assert not any(v.numpy().any() for v in metric.variables)
    with pytest.raises(ShapeError, match=r"shape \[samples, outputs\].*\(4,\)"):
        metrics.F1Score().update_state(np.zeros(4), np.zeros(4))
    with pytest.raises(ShapeError, match="class_id=3 takes scores"):
        metrics.Recall(class_id=3).update_state(logits, logits)
    with pytest.raises(ShapeError, match="top_k=4 takes scores"):
        metrics.Recall(top_k=4).update_state(logits, logits)
    assert not any(v.numpy().any() for v in accuracy.variables)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: metrics.AUC(curve="rok"), "There is no curve 'ROK'.*'ROC'"),
        (lambda: metrics.AUC(summation_method="minor"), "no summation method.*'minoring'"),
        (lambda: metrics.AUC(num_thresholds=1), "at least 2, not 1"),
        (lambda: metrics.AUC(num_thresholds=2.5), "at least 2, not 2.5"),
        (lambda: metrics.AUC(num_labels=3), "multi_label=True"),
        (lambda: metrics.Precision(1.5), "from 0 to 1, not 1.5"),
        (lambda: metrics.Precision(top_k=0), "top_k is an integer of at least 1"),
        (
            lambda: metrics.top_k_categorical_accuracy([[1, 0]], [[1.0, 0.0]], k=True),
            "k is an integer of at least 1, not True",
        ),
        (lambda: metrics.F1Score("mikro"), "There is no average 'mikro'.*'micro'"),
        (lambda: metrics.F1Score(threshold=2.0), "at most 1, not 2.0"),
        (lambda: metrics.ConfusionMatrix(0), "at least 1"),
        (lambda: metrics.ConfusionMatrix(2, "rows"), "There is no normalization"),
        (lambda: metrics.get("acuracy"), "no metric 'acuracy'.*'accuracy'|'Accuracy'"),
        (lambda: metrics.Mean().merge_state([metrics.Mean(dtype="float16")]), "different dtype"),
    ],
)
def test_options_that_are_wrong_are_named(wrong, message):
    metrics.top_k_categorical_accuracy([[1, 0]], [[1.0, 0.0]], k=1)  # which True is equal to
    with pytest.raises(ValueError, match=message):
        wrong()


def test_only_metrics_of_a_kind_are_merged():
    with pytest.raises(TypeError, match="A Mean merges others of its kind, not Sum"):
        metrics.Mean().merge_state([metrics.Sum()])


# ---------------------------------------------------------------- by name
def test_metrics_are_found_by_name():
    for name, cls in CLASSES.items():
        if "num_classes" not in inspect.signature(cls).parameters:
            assert type(metrics.get(name)) is cls
            assert type(metrics.get(BORDER.sub("_", name).lower())) is cls
    assert type(metrics.get("mse")) is metrics.MeanSquaredError
    assert metrics.get(None) is None
    assert metrics.get(metrics.AUC).name == "auc"
    assert metrics.get({"class_name": "ConfusionMatrix", "config": {"num_classes": 2}})
    with pytest.raises(TypeError, match="3 is not a metric"):
        metrics.get(3)


def test_default_names_are_those_of_keras():
    assert metrics.F1Score().name == "f1_score"
    assert metrics.SparseTopKCategoricalAccuracy().name == "sparse_top_k_categorical_accuracy"


def test_a_metric_shows_its_options_and_variables():
    text = repr(metrics.TopKCategoricalAccuracy(k=3, name="top"))
    assert text.startswith("TopKCategoricalAccuracy(")
    assert "k=3" in text
    assert "total/parts=<Variable 'top/total'" in text


# ---------------------------------------------------------------- narrow dtypes
NARROW = ("float16", "bfloat16", "uint8", "int8", "bool")


@pytest.mark.parametrize("dtype", NARROW)
def test_weights_of_a_narrow_dtype_count_as_they_are(dtype: str):
    true = np.repeat([0, 1], [2000, 1000])
    pred = np.roll(true, 500)
    weights = jnp.ones(3000, dtype)
    wanted = [[1500, 500], [500, 500]]
    assert metrics.ConfusionMatrix(2)(true, pred, sample_weight=weights).tolist() == wanted
    for kind in ("int32", "float32", "float16"):
        matrix = metrics.confusion_matrix(true, pred, weights=weights, dtype=kind)
        assert matrix.tolist() == wanted
        assert matrix.dtype == kind
    for make in (metrics.AUC, metrics.Precision, metrics.Mean):
        args = (true,) if make is metrics.Mean else (true, pred.astype(np.float32))
        assert float(make()(*args, sample_weight=weights)) == float(make()(*args))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_labels_of_a_narrow_dtype_are_below_any_number_of_classes(dtype: str):
    labels = np.array([0, 1, np.iinfo(dtype).max], dtype)
    assert int(metrics.confusion_matrix(labels, labels).sum()) == 3
    assert int(metrics.confusion_matrix(labels, labels, num_classes=300).sum()) == 3
    assert float(metrics.ConfusionMatrix(300)(labels, labels).sum()) == 3.0


def test_a_class_to_ignore_is_none_of_a_narrow_dtype():
    logits = np.zeros((2, 256), np.float32)
    logits[1, 255] = 3.0
    labels = np.array([0, 255])
    make = lambda: metrics.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)  # noqa: E731
    assert float(make()(labels.astype(np.uint8), logits)) == float(make()(labels, logits))


def test_a_root_is_rounded_once():
    assert float(metrics.RootMeanSquaredError(dtype="float16")([[0.0]], [[300.0]])) == 300.0


def test_functions_with_other_options_are_not_merged():
    def right(true: Any, pred: Any, at: float = 0.5) -> Any:
        return (true == (pred > at)).astype(jnp.float32)

    one, other = metrics.MeanMetricWrapper(right), metrics.MeanMetricWrapper(right, at=0.9)
    for mine, theirs in ((one, other), (other, one)):
        with pytest.raises(ValueError, match="different at"):
            mine.merge_state([theirs])


def test_labels_and_predictions_of_regions_have_one_shape():
    with pytest.raises(ShapeError, match=r"y_true has shape \(2, 3\)"):
        metrics.ConfusionMatrix(2)([[0, 1, 1], [0, 0, 1]], [[0, 1], [1, 0], [0, 1]])


def test_labels_are_compared_as_the_numbers_they_are():
    accuracy = lambda *args: float(metrics.Accuracy()(*args))  # noqa: E731
    assert accuracy(jnp.array([257]), jnp.array([256], jnp.bfloat16)) == 0.0
    assert accuracy(jnp.array([2049]), jnp.array([2048], jnp.float16)) == 0.0
    top = metrics.SparseTopKCategoricalAccuracy(k=2, from_sorted_ids=True)
    assert float(top(jnp.array([2049]), jnp.array([[2048, 1]], jnp.float16))) == 0.0

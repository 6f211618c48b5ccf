"""Which checkpoints are kept: the rules, without files."""

from __future__ import annotations

import json
import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxvars as jv
from jaxvars.checkpoint.retention import Policy, Record


def policy(max_to_keep=5, *, keep_every=None, hours=None, best=None, keep_best=1):
    metric, mode = best or (None, None)
    return Policy(max_to_keep, keep_every, hours, metric, mode, keep_best)


def saved(rules, steps, *, times=None, losses=None):
    """The records that are left after a save at each step, and all that ever were."""
    left, ever = [], []
    for i, step in enumerate(steps):
        now = times[i] if times else 1e6 + i
        metrics = {} if losses is None or losses[i] is None else {"loss": losses[i]}
        previous = left[-1] if left else None
        record = rules.record(i + 1, step, metrics, now, previous=previous, started=1e6)
        left.append(record)
        ever.append(record)
        gone = rules.superfluous(left)
        left = [r for r in left if r not in gone]
    return left, ever


def numbers(records):
    return [r.number for r in records]


@pytest.mark.parametrize(("rules", "left"), [
    (policy(3), [8, 9, 10]), (policy(1), [10]), (policy(None), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    (policy(2, keep_every=4), [4, 8, 9, 10]), (policy(2, best=("loss", "min")), [3, 9, 10]),
    (policy(2, best=("loss", "max")), [5, 9, 10]),
    (policy(1, best=("loss", "min"), keep_best=3), [2, 3, 9, 10]),
    (policy(1, keep_every=6, best=("loss", "max"), keep_best=2), [5, 6, 8, 10]),
    (policy(1, hours=1 / 3600 * 4), [5, 9, 10]),
])  # fmt: skip
def test_what_is_left_of_ten(rules, left):
    losses = [0.9, 0.3, 0.1, None, 1.0, 0.6, math.nan, 0.95, 0.2, 0.5]
    assert numbers(saved(rules, range(1, 11), losses=losses)[0]) == left


# Computed with tf.train.CheckpointManager of TensorFlow 2.21, its clock replaced.
TENSORFLOW = [
    (2, 1.0, [1200] * 12, [3, 6, 9, 11, 12]),
    (3, 2.0, [3600] * 10, [2, 4, 6, 8, 9, 10]),
    (1, 0.5, [600, 600, 2400, 100, 100, 1900, 1700, 50, 3600, 10], [3, 6, 9, 10]),
    (2, 1.0, [4000, 100, 100, 3500, 3500, 100, 8000, 10, 10, 10], [1, 4, 6, 7, 9, 10]),
]


@pytest.mark.parametrize(("keep", "hours", "gaps", "left"), TENSORFLOW)
def test_hours_are_kept_as_tensorflow_keeps_them(keep, hours, gaps, left):
    times = (1e6 + np.cumsum(gaps)).tolist()
    rules = policy(keep, hours=hours)
    assert numbers(saved(rules, range(1, len(gaps) + 1), times=times)[0]) == left


def test_of_irregular_steps_the_first_at_or_after_each_multiple_is_kept_for_ever():
    steps = [300, 600, 900, 1200, 1500, 1800, 2000, 2300, 5100, 5200, 5300]
    left, _ = saved(policy(1, keep_every=1000), steps)
    assert [r.step for r in left] == [1200, 2000, 5100, 5300]


def test_a_step_counter_or_a_clock_that_goes_back_changes_no_order():
    left, _ = saved(policy(2), [100, 200, 300, 150, 160], times=[50.0, 60.0, 70.0, 1.0, 2.0])
    assert [r.step for r in left] == [150, 160]
    left, _ = saved(policy(1, hours=1.0), [1, 2, 3, 4], times=[2e6, 2e6 + 1, 5.0, 3606.0])
    assert numbers(left) == [1, 4], "an hour after the clock was set back"


def test_a_manager_without_options_deletes_nothing_that_was_promised_for_ever():
    left, _ = saved(policy(1, keep_every=2), range(1, 7))
    assert numbers(policy(1).superfluous(left)) == []
    assert numbers(left) == [2, 4, 6]


def test_the_best_of_equals_is_the_oldest_and_nan_is_never_best():
    rules = policy(best=("loss", "min"))
    _, ever = saved(rules, range(1, 6), losses=[math.nan, 0.5, 0.5, math.inf, -0.0])
    assert numbers(rules.best(ever)) == [5, 2, 3, 4]
    assert numbers(policy(best=("loss", "max")).best(ever)) == [4, 2, 3, 5]
    assert policy().best(ever) == []


@given(
    keep=st.integers(1, 4),
    every=st.none() | st.integers(1, 5),
    mode=st.none() | st.sampled_from(["min", "max"]),
    keep_best=st.integers(1, 3),
    losses=st.lists(st.none() | st.integers(-3, 3).map(float), min_size=1, max_size=25),
)
def test_exactly_the_promised_ones_are_kept(keep, every, mode, keep_best, losses):
    rules = policy(keep, keep_every=every, best=mode and ("loss", mode), keep_best=keep_best)
    left, ever = saved(rules, range(1, len(losses) + 1), losses=losses)
    # What is among the best of all ever saved was among the best at each save, and stays.
    promised = {r.number for r in ever[-keep:]}
    promised |= {r.number for r in ever if every and r.step % every == 0}
    promised |= {r.number for r in rules.best(ever)[:keep_best]}
    assert set(numbers(left)) >= promised
    assert len(left) <= keep + keep_best + (len(losses) // every if every else 0)
    assert {r.number for r in left if not r.forever} <= promised
    assert numbers(left) == sorted(numbers(left))


@pytest.mark.parametrize("value", [0.25, math.inf, -math.inf, math.nan])
def test_a_record_comes_back_from_strict_json(value):
    record = Record(7, 3, 700, 1.5, {"loss": value}, forever=True, clock=2.5)
    text = json.dumps(record.to_json(), allow_nan=False)
    assert repr(Record.from_json(json.loads(text))) == repr(record)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_to_keep": 0}, "max_to_keep is a positive integer or None, not 0. To keep all"),
        ({"max_to_keep": -1}, "not -1"),
        ({"max_to_keep": 2.5}, r"not 2\.5"),
        ({"max_to_keep": True}, "not True"),
        ({"keep_every": 0}, "keep_every is a positive integer or None, not 0"),
        ({"hours": 0}, "keep_checkpoint_every_n_hours is a positive number or None, not 0"),
        ({"hours": math.nan}, "not nan"),
        ({"best": ("loss", None)}, "best_metric='val_loss', best_mode='min'"),
        ({"best": (None, "min")}, "go together"),
        ({"best": ("loss", "least")}, "best_mode is 'min' or 'max', not 'least'"),
        ({"keep_best": 0}, "keep_best is a positive integer"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        policy(**options)


def test_metrics_are_numbers_of_any_kind():
    loss = jv.Variable(2.0)
    given_ = {"a": 1, "b": np.float64(0.5), "c": jnp.bfloat16(1.5), "d": loss, "e": jnp.ones((1,))}
    found = policy().check_metrics(given_)
    assert found == {"a": 1.0, "b": 0.5, "c": 1.5, "d": 2.0, "e": 1.0}
    assert {type(value) for value in found.values()} == {float}
    assert policy(best=("loss", "min")).check_metrics(None) == {}


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ({"val_lose": 1.0}, ValueError, r"'val_loss', which is not .* \['val_lose'\].*val_lose"),
        ([1.0], TypeError, "metrics are a dict"),
        ({3: 1.0}, TypeError, "name of a metric is a string, not 3"),
        ({"val_loss": "low"}, TypeError, "Metric 'val_loss' is one number, not 'low'"),
        ({"val_loss": "3.5"}, TypeError, "one number"),
        ({"val_loss": np.ones(2)}, TypeError, "one number"),
        ({"val_loss": None}, TypeError, "one number, not None"),
        ({"val_loss": 1j}, TypeError, "one number"),
    ],
)
def test_metrics_that_are_none_are_refused(metrics, error, message):
    with pytest.raises(error, match=message):
        policy(best=("val_loss", "min")).check_metrics(metrics)

"""`tf.distribute`: what strategies return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jaxvars.tf as tf


def _strategies() -> list[Any]:
    some = tf.distribute
    return [
        some.get_strategy(), some.OneDeviceStrategy("/cpu:0"), some.MirroredStrategy(["/cpu:0"]),
        some.experimental.CentralStorageStrategy(["/cpu:0"], "/cpu:0"),
    ]  # fmt: skip


def test_a_list_is_reduced_as_one_tensor() -> None:
    for strategy in _strategies():
        assert strategy.reduce("SUM", [1.0, 2.0], axis=0).numpy() == 3
        rows = [tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])]
        np.testing.assert_array_equal(strategy.reduce("MEAN", rows, axis=0), [2, 3])
        np.testing.assert_array_equal(strategy.reduce("SUM", tuple(rows), axis=1), [3, 7])
        with pytest.raises(ValueError, match="axis 0 is out of bounds"):
            strategy.reduce("SUM", 1.0, axis=0)
        with pytest.raises(ValueError, match="PRODUCT"):
            strategy.reduce("PRODUCT", 1.0, axis=None)


def test_there_is_nothing_to_reduce_on_one_device() -> None:
    for strategy in _strategies()[:2]:
        for value in (1.0, None, [1.0], {"a": 2}, tf.constant(3.0)):
            assert strategy.reduce("SUM", value, axis=None) is value
    for strategy in _strategies()[2:]:
        assert strategy.reduce("SUM", {"a": 2}, axis=None)["a"].dtype == tf.int32


def test_variables_of_one_device_are_those_of_all() -> None:
    strategy = tf.distribute.experimental.CentralStorageStrategy()
    with strategy.scope():
        v = tf.Variable(2.0)
    assert strategy.num_replicas_in_sync == tf.distribute.MirroredStrategy().num_replicas_in_sync

    @tf.function
    def step(x: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(lambda x: x * v, args=(x,)), axis=None)

    assert step(tf.constant(3.0)).numpy() == 6

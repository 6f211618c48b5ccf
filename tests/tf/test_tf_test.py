"""`tf.test`: the checks hold and fail where they should."""

from __future__ import annotations

import contextlib
import unittest
from pathlib import Path

import numpy as np
import pytest

from jaxvars import tf


class Case(tf.test.TestCase):
    def runTest(self):  # noqa: N802 - unittest's name
        pass


@pytest.fixture
def case():
    made = Case()
    made.setUp()
    yield made
    made.doCleanups()


HOLD = {
    "assertAllEqual": (tf.constant([1.0, np.nan]), [1.0, np.nan]),
    "assertAllClose": ({"a": [1.0, tf.constant([2.0])]}, {"a": (1.0, np.array([2.0 + 1e-7]))}),
    "assertAllCloseAccordingToType": (np.float16([1.0]), np.float16([1.001])),
    "assertNotAllClose": ([1.0], [1.1]), "assertNotAllEqual": ([1, 2], [1, 3]),
    "assertNear": (1.0, 1.05, 0.1), "assertArrayNear": ([1.0, 2.0], [1.05, 2.0], 0.1),
    "assertNDArrayNear": ([[1.0, 2.0]], [[1.05, 2.0]], 0.1),
    "assertAllGreater": (tf.constant([1, 2]), 0), "assertAllGreaterEqual": ([1, 2], 1),
    "assertAllLess": ([1, 2], 3), "assertAllLessEqual": ([1, 2], 2),
    "assertAllInRange": ([0.0, 1.0], 0.0, 1.0), "assertAllInSet": ([1, 2, 1], {1, 2}),
    "assertDTypeEqual": (np.zeros(1, np.float32), tf.float32),
    "assertDeviceEqual": ("/cpu:0", "/device:CPU:0"), "assertLen": ([1, 2], 2),
    "assertEmpty": ([],), "assertNotEmpty": ([1],),
}  # fmt: skip
FAIL = {
    "assertAllEqual": (tf.constant([1, 2]), [1, 3]), "assertAllClose": ({"a": [1.0]}, {"a": [1.1]}),
    "assertAllCloseAccordingToType": (np.float32([1.0]), np.float32([1.001])),
    "assertNotAllClose": ([1.0], [1.0]), "assertNotAllEqual": ("text", "text"),
    "assertNear": (1.0, 1.2, 0.1), "assertArrayNear": ([1.0], [1.2], 0.1),
    "assertNDArrayNear": ([[1.0, 2.0]], [[1.08, 2.08]], 0.1),
    "assertAllGreater": ([1, 0], 0), "assertAllGreaterEqual": ([1, 0], 1),
    "assertAllLess": ([1, 3], 3), "assertAllLessEqual": ([1, 3], 2),
    "assertAllInRange": ([0.0, 1.0], 0.0, 1.0, True), "assertAllInSet": ([1, 3], {1, 2}),
    "assertDTypeEqual": (np.zeros(1), tf.float32), "assertDeviceEqual": ("/cpu:1", "/device:CPU:0"),
    "assertLen": ([1, 2], 3), "assertEmpty": ([1],), "assertNotEmpty": ([],),
}  # fmt: skip


@pytest.mark.parametrize("name", HOLD)
def test_a_check_holds_and_fails(case, name):
    getattr(case, name)(*HOLD[name])
    with pytest.raises(AssertionError):
        getattr(case, name)(*FAIL[name])


def test_errors_of_operations(case):
    with case.assertRaisesOpError("Incompatible shapes"):
        tf.constant([1, 2]) + tf.constant([1, 2, 3])
    with (
        pytest.raises(AssertionError, match="does not match"),
        case.assertRaisesWithPredicateMatch(ValueError, "nothing of the kind"),
    ):
        tf.constant([1, 2]) + tf.constant([1, 2, 3])


def test_values_folders_and_sessions(case):
    with case.cached_session() as session:
        found = session.evaluate({"x": tf.constant([1, 2]), "y": tf.Variable(3.0)})
    assert (found["x"].tolist(), found["y"]) == ([1, 2], 3.0)
    assert Path(case.get_temp_dir()).is_dir()


def test_numbers_start_from_one_seed():
    drawn = []

    class Drawn(tf.test.TestCase):
        def runTest(self):  # noqa: N802 - unittest's name
            drawn.append(tf.random.uniform([2]).numpy().tolist())

    for _ in range(2):
        assert Drawn().run().wasSuccessful()
    assert drawn[0] == drawn[1]


def test_derivatives_agree_with_differences(case):
    x = [tf.constant([[1.0, 2.0]], tf.float64), tf.constant([3.0, 4.0], tf.float64)]
    exact, near = tf.test.compute_gradient(lambda a, b: tf.exp(a) * b, x)
    for a, b in zip(exact, near, strict=True):
        case.assertAllClose(a, b, rtol=1e-6, atol=1e-6)
    assert exact[1].shape == (2, 2)


def test_steps_of_differences_are_numbers_of_each_type():
    x = tf.constant(1.0, tf.float64)
    assert tf.test.compute_gradient(lambda x: tf.cast(x, tf.float32), [x])[1][0] == [[1.0]]


def test_arrays_are_near_by_their_norm(case):
    case.assertNDArrayNear([3.0, 0.0], [0.0, 4.0], 5.0)
    with pytest.raises(AssertionError):
        case.assertNDArrayNear([3.0, 0.0], [0.0, 4.0], 4.9)
    with case.test_session() as session:
        assert session.evaluate(tf.constant(1)) == 1


def test_what_there_is():
    assert not tf.test.is_gpu_available()
    assert (tf.test.gpu_device_name(), tf.test.is_built_with_cuda()) == ("", False)
    assert tf.test.is_built_with_xla()
    assert not tf.test.is_built_with_gpu_support()


def test_what_is_there_and_what_is_not() -> None:
    import platform

    assert tf.test.is_cpu_target_available({"amd64": "x86_64"}.get(m := platform.machine(), m))
    assert not tf.test.is_built_with_rocm()
    assert tf.test.with_eager_op_as_function(tf.test.TestCase) is tf.test.TestCase
    called: list[int] = []
    for pred in (True, False):
        run = tf.test.disable_with_predicate(lambda pred=pred: pred, "no")(lambda: called.append(1))
        with contextlib.suppress(unittest.SkipTest):
            run()
    assert called == [1]
    with pytest.raises(AttributeError, match=r"jaxvars\.profiler\.profile"):
        tf.test.Benchmark  # noqa: B018 - it raises


def test_functions_and_dicts_are_compared_as_they_are_and_shapes_are_refused():
    case = tf.test.TestCase()
    case.assertAllEqual((print, len), (print, len))
    with pytest.raises(AssertionError):
        case.assertAllEqual((print, len), (print, print))
    case.assertAllEqual({"a": [1, None]}, {"a": [1, None]})
    case.assertAllEqual({"b", "a"}, {"a", "b"})
    with pytest.raises(AssertionError, match="not equal"):
        case.assertAllEqual({"a": "x"}, {"a": "y"})
    with case.assertRaisesIncompatibleShapesError():
        tf.ones([2]) + tf.ones([3])


def test_ragged_tensors_and_doubles_are_compared() -> None:
    case = tf.test.TestCase()
    rows = tf.ragged.constant([[1.0, 2.0], [3.0]])
    case.assertAllEqual(rows, [[1.0, 2.0], [3.0]])
    case.assertAllClose([[1.0, 2.0], [3.0 + 1e-9]], rows)
    assert case.evaluate({"a": rows})["a"].to_list() == [[1, 2], [3]]
    case.assertAllEqual(tf.constant(0.1, tf.float64), 0.1)
    case.assertAllEqual(tf.constant([0.1, 1e300], tf.float64), [0.1, 1e300])
    for check in (case.assertAllEqual, case.assertAllClose):
        with pytest.raises(AssertionError):
            check(rows, [[1.0, 2.0], [4.0]])
        with pytest.raises(AssertionError):
            check(rows, [[1.0], [2.0, 3.0]])


def test_the_checks_of_absl_are_there(case, tmp_path):
    case.assertSameElements([1, 2, 2], [2, 1])
    case.assertBetween(2, 1, 3)
    case.assertStartsWith("jaxvars", "jax")
    with pytest.raises(AssertionError, match="Missing elements"):
        case.assertContainsSubset([3], [1, 2])

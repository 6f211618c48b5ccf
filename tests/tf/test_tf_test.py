"""`tf.test`: the checks hold and fail where they should."""

from __future__ import annotations

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
    "assertNear": (1.0, 1.05, 0.1), "assertShapeEqual": (np.zeros(2), tf.ones(2)),
    "assertAllGreater": (tf.constant([1, 2]), 0), "assertAllGreaterEqual": ([1, 2], 1),
    "assertAllLess": ([1, 2], 3), "assertAllLessEqual": ([1, 2], 2),
    "assertAllInRange": ([0.0, 1.0], 0.0, 1.0), "assertAllInSet": ([1, 2, 1], {1, 2}),
    "assertDTypeEqual": (np.zeros(1, np.float32), tf.float32),
    "assertLen": ([1, 2], 2),
    "assertEmpty": ([],), "assertNotEmpty": ([1],),
}  # fmt: skip
FAIL = {
    "assertAllEqual": (tf.constant([1, 2]), [1, 3]), "assertAllClose": ({"a": [1.0]}, {"a": [1.1]}),
    "assertAllCloseAccordingToType": (np.float32([1.0]), np.float32([1.001])),
    "assertNotAllClose": ([1.0], [1.0]), "assertNotAllEqual": ("text", "text"),
    "assertNear": (1.0, 1.2, 0.1), "assertShapeEqual": (np.zeros(2), tf.ones(1)),
    "assertAllGreater": ([1, 0], 0), "assertAllGreaterEqual": ([1, 0], 1),
    "assertAllLess": ([1, 3], 3), "assertAllLessEqual": ([1, 3], 2),
    "assertAllInRange": ([0.0, 1.0], 0.0, 1.0, True), "assertAllInSet": ([1, 3], {1, 2}),
    "assertDTypeEqual": (np.zeros(1), tf.float32),
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
        case.assertRaisesOpError("nothing of the kind"),
    ):
        tf.constant([1, 2]) + tf.constant([1, 2, 3])
    with case.assertRaisesOpError(lambda error: error.message.startswith("Incompatible shapes")):
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


def test_what_there_is():
    assert not tf.test.is_gpu_available()
    assert (tf.test.gpu_device_name(), tf.test.is_built_with_cuda()) == ("", False)
    assert tf.test.is_built_with_xla()
    assert not tf.test.is_built_with_gpu_support()

    assert not tf.test.is_built_with_rocm()


def test_what_is_not_there_says_what_to_use() -> None:
    with pytest.raises(AttributeError, match=r"'compute_gradient': use jax\.test_util"):
        tf.test.compute_gradient  # noqa: B018 - it raises
    with pytest.raises(AttributeError, match=r"jaxvars\.profiler\.profile"):
        tf.test.Benchmark  # noqa: B018 - it raises


def test_functions_and_dicts_are_compared_as_they_are():
    case = tf.test.TestCase()
    case.assertAllEqual((print, len), (print, len))
    with pytest.raises(AssertionError):
        case.assertAllEqual((print, len), (print, print))
    case.assertAllEqual({"a": [1, None]}, {"a": [1, None]})
    case.assertAllEqual({"b", "a"}, {"a", "b"})
    with pytest.raises(AssertionError, match="not equal"):
        case.assertAllEqual({"a": "x"}, {"a": "y"})


def test_ragged_tensors_and_doubles_are_compared() -> None:
    case = tf.test.TestCase()
    rows = tf.ragged.constant([[1.0, 2.0], [3.0]])
    case.assertAllEqual(rows, [[1.0, 2.0], [3.0]])
    case.assertAllClose([[1.0, 2.0], [3.0 + 1e-9]], rows)
    case.assertAllClose({"a": [rows]}, {"a": [[[1.0, 2.0], [3.0]]]})
    case.assertAllClose([{"a": 1.0}], [{"a": tf.constant(1.0)}])
    case.assertAllEqual(tf.constant(["a", "é"]), ["a", "é".encode()])
    case.assertAllEqual(np.array(["a", "é"]), tf.constant(["a", "é"]))
    case.assertNotAllEqual([b"a\0"], tf.constant([b"a"]))
    assert case.evaluate({"a": rows})["a"].to_list() == [[1, 2], [3]]
    case.assertAllEqual(tf.constant(0.1, tf.float64), 0.1)
    case.assertAllEqual(tf.constant([0.1, 1e300], tf.float64), [0.1, 1e300])
    for check in (case.assertAllEqual, case.assertAllClose):
        with pytest.raises(AssertionError):
            check(rows, [[1.0, 2.0], [4.0]])
        with pytest.raises(AssertionError):
            check(rows, [[1.0], [2.0, 3.0]])
        with pytest.raises(AssertionError, match="here"):
            check([1.0], [1.0, 1.0], msg="here")
        with pytest.raises(AssertionError, match="here"):
            check([1.0], [2.0], msg="here")
    for wrong in ({"a": 1.0, "b": 2.0}, {"b": 1.0}, 1.0, {"a": [1.0, 2.0]}, {"a": [[1.0], 2.0]}):
        with pytest.raises(AssertionError):
            case.assertAllClose({"a": 1.0}, wrong)
        with pytest.raises(AssertionError):
            case.assertAllClose(wrong, {"a": 1.0})


def test_the_checks_of_absl_are_there(case, tmp_path):
    case.assertSameElements([1, 2, 2], [2, 1])
    case.assertBetween(2, 1, 3)
    case.assertStartsWith("jaxvars", "jax")
    with pytest.raises(AssertionError, match="Missing elements"):
        case.assertContainsSubset([3], [1, 2])

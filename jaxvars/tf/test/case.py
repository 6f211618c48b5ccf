"""`tf.test.TestCase`: the checks of absl and NumPy, of tensors."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
from absl.testing import absltest

from jaxvars.tf import nest
from jaxvars.tf.errors import OpError
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor


class TestCase(absltest.TestCase):
    """A test case that compares tensors, variables, arrays, lists of them and structures.

    It has the checks of `unittest` and absl, too.

    Differs from TensorFlow: there are no graphs or sessions; `cached_session()` and `session()`
    give a context with the test case, whose `evaluate` gives values. Random numbers start from one
    seed for each test. Checks of devices, messages and arrays by their norm are not there:
    `assertAllClose` has tolerances.
    """

    def setUp(self) -> None:
        """Start random values from one seed."""
        super().setUp()
        from jaxvars.tf import random

        random.set_seed(87654321)
        np.random.seed(87654321)  # noqa: NPY002 - what a test may draw from

    def evaluate(self, tensors: Any) -> Any:
        """Return a structure of tensors as one of NumPy arrays; ragged tensors stay."""
        return nest.map_structure(_evaluate, tensors)

    @contextlib.contextmanager
    def session(self, *args: Any, **kwargs: Any) -> Generator[TestCase]:
        """Return a context with the test case, whose `evaluate` gives values."""
        yield self

    cached_session = session

    def get_temp_dir(self) -> str:
        """Return a folder of the test, which is removed after it."""
        if not hasattr(self, "_folder"):
            self._folder = tempfile.TemporaryDirectory()
            self.addCleanup(self._folder.cleanup)
        return self._folder.name

    # ------------------------------------------------------------ equality
    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Check that shapes and all elements are equal; NaN equals NaN."""
        if isinstance(a, RaggedTensor) or isinstance(b, RaggedTensor):
            self.assertEqual(_to_rows(a), _to_rows(b), msg)
            return
        x, y = _to_array(a), _to_array(b)
        self.assertEqual(x.shape, y.shape, msg)
        np.testing.assert_array_equal(x, y, msg or "")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Check that something differs."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertAllEqual(a, b)

    def assertAllClose(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Check that |a - b| <= atol + rtol |b| in tensors, lists, dicts and structures of them."""
        a, b = _to_rows(a), _to_rows(b)
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            self.assertIsInstance(a, Mapping, msg)
            self.assertIsInstance(b, Mapping, msg)
            self.assertEqual(set(a), set(b), msg)
            a, b = list(a.values()), [b[key] for key in a]
        try:
            x, y = _to_array(a), _to_array(b)
        except ValueError:  # the parts have several shapes
            self.assertIsInstance(a, list | tuple, msg)
            x = y = np.array(None)
        if isinstance(a, list | tuple) and x.dtype == object:
            self.assertLen(b, len(a), msg)
            for part, other in zip(a, b, strict=True):
                self.assertAllClose(part, other, rtol, atol, msg)
            return
        self.assertEqual(x.shape, y.shape, msg)
        wide = (z if z.dtype.kind in "fcO" else z.astype(np.float64) for z in (x, y))
        np.testing.assert_allclose(*wide, rtol=rtol, atol=atol, err_msg=msg or "")

    def assertNotAllClose(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Check that something is not close."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertAllClose(a, b, rtol, atol)

    def assertAllCloseAccordingToType(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, float_rtol: float = 1e-6,
        float_atol: float = 1e-6, half_rtol: float = 1e-3, half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2, bfloat16_atol: float = 1e-2, msg: str | None = None,
    ) -> None:  # fmt: skip
        """Check that values are close, with the tolerance of the less precise type."""
        names = {_to_array(x).dtype.name for x in (a, b)}
        for kinds, r, t in (
            ({"float32", "complex64"}, float_rtol, float_atol),
            ({"float16"}, half_rtol, half_atol),
            ({"bfloat16"}, bfloat16_rtol, bfloat16_atol),
        ):
            if kinds & names:
                rtol, atol = max(rtol, r), max(atol, t)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:  # noqa: N802
        """Check that |f1 - f2| <= err."""
        self.assertAlmostEqual(f1, f2, msg=msg, delta=err)

    # ------------------------------------------------------------ bounds
    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Check that all elements are greater."""
        self.assertGreater(np.min(_to_array(a)), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Check that all elements are greater or equal."""
        self.assertGreaterEqual(np.min(_to_array(a)), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Check that all elements are less."""
        self.assertLess(np.max(_to_array(a)), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Check that all elements are less or equal."""
        self.assertLessEqual(np.max(_to_array(a)), comparison_target)

    def assertAllInRange(  # noqa: N802
        self, target: Any, lower_bound: Any, upper_bound: Any, open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:  # fmt: skip
        """Check that all elements are between two numbers, which count unless they are open."""
        above = self.assertAllGreater if open_lower_bound else self.assertAllGreaterEqual
        below = self.assertAllLess if open_upper_bound else self.assertAllLessEqual
        above(target, lower_bound)
        below(target, upper_bound)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:  # noqa: N802
        """Check that all elements are in a set."""
        self.assertContainsSubset(_to_array(target).ravel().tolist(), expected_set)

    # ------------------------------------------------------------ shapes, types, errors
    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Check that two arrays have one shape."""
        self.assertEqual(tuple(input_a.shape), tuple(input_b.shape), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:  # noqa: N802
        """Check the type of the elements."""
        self.assertEqual(as_dtype(_to_array(target).dtype), as_dtype(expected_dtype))

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:  # noqa: N802
        """Check that an operation fails, by a regular expression of its message or a predicate."""
        wanted = expected_err_re_or_predicate
        if callable(wanted):
            return self.assertRaisesWithPredicateMatch(OpError, wanted)
        return self.assertRaisesRegex(OpError, wanted)


def _evaluate(leaf: Any) -> Any:
    return leaf.numpy() if hasattr(leaf, "numpy") and not isinstance(leaf, RaggedTensor) else leaf


def _to_rows(value: Any) -> Any:
    return value.to_list() if isinstance(value, RaggedTensor) else value


def _to_array(value: Any) -> np.ndarray:
    """Return a value as a NumPy array; strings as objects: bytes."""
    parts = nest.map_structure(_to_part, value)
    of_text = any(isinstance(part, bytes) for part in nest.flatten(parts))
    made = np.array(parts, object if of_text else None)
    return np.strings.encode(made, "utf-8").astype(object) if made.dtype.kind == "U" else made


def _to_part(leaf: Any) -> Any:
    value = _to_rows(_evaluate(leaf))
    return value.encode() if isinstance(value, str) else value

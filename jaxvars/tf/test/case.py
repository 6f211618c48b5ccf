"""`tf.test.TestCase`, and `compute_gradient`: derivatives from the tape, and from differences.

Rules this file keeps:
- values are compared as NumPy arrays: tensors, variables, lists of them and structures;
- a failed check is an AssertionError that shows both values.
"""

from __future__ import annotations

import contextlib
import math
import re
import tempfile
from collections.abc import Callable, Generator, Mapping, Set
from typing import Any

import numpy as np
from absl.testing import absltest

from jaxvars.tf import nest
from jaxvars.tf.autodiff.tape import GradientTape, UnconnectedGradients
from jaxvars.tf.errors import InvalidArgumentError, OpError
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.tensor import Tensor


class TestCase(absltest.TestCase):
    """A test case that compares tensors.

    Differs from TensorFlow: there are no graphs or sessions; `cached_session()` and `session()`
    give a context with the
    test case, whose `evaluate` gives values. Random
    numbers start from one seed for each test.
    """

    def setUp(self) -> None:
        """Start random values from one seed."""
        super().setUp()
        from jaxvars.tf import random

        random.set_seed(87654321)
        np.random.seed(87654321)  # noqa: NPY002 - what a test may draw from

    # ------------------------------------------------------------ values
    def evaluate(self, tensors: Any) -> Any:
        """Return a structure of tensors as one of NumPy arrays; ragged tensors stay."""
        return nest.map_structure(_evaluate, tensors)

    @contextlib.contextmanager
    def session(self, *args: Any, **kwargs: Any) -> Generator[TestCase]:
        """Return a context with the test case, whose `evaluate` gives values."""
        yield self

    cached_session = session

    @property  # a method of this name would be run as a test
    def test_session(self) -> Callable[..., Any]:
        """Return `session`, by its older name."""
        return self.session

    def get_temp_dir(self) -> str:
        """Return a folder of the test, which is removed after it."""
        if not hasattr(self, "_folder"):
            self._folder = tempfile.TemporaryDirectory()
            self.addCleanup(self._folder.cleanup)
        return self._folder.name

    # ------------------------------------------------------------ equality
    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Check that shapes and all elements are equal; NaN equals NaN."""
        a, b = _rows(a), _rows(b)
        if isinstance(a, list | tuple) and isinstance(b, list | tuple) and _is_ragged(a, b):
            self.assertEqual(len(a), len(b), _describe(msg, f"lengths differ: {a} and {b}"))
            for x, y in zip(a, b, strict=True):
                self.assertAllEqual(x, y, msg)
            return
        of_objects = Mapping, Set  # compared as a whole
        x, y = (np.array(v, object) if isinstance(v, of_objects) else as_array(v) for v in (a, b))
        self.assertEqual(
            x.shape, y.shape, _describe(msg, f"Shapes differ: {x.shape} and {y.shape}")
        )
        equal = np.equal(x, y)
        if x.dtype.kind in "fc" and y.dtype.kind in "fc":
            equal = equal | (np.isnan(x) & np.isnan(y))
        if not np.all(equal):
            at = np.argwhere(~np.asarray(equal))[:5].tolist()
            raise AssertionError(_describe(msg, f"not equal at {at}:\na = {x}\nb = {y}"))

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Check that something differs."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise AssertionError(_describe(msg, "The two values are equal at all elements."))

    def assertAllClose(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Check that |a - b| <= atol + rtol |b| in tensors, lists, dicts and structures of them."""
        self._close(a, b, rtol, atol, msg, "")

    def _close(self, a: Any, b: Any, rtol: float, atol: float, msg: str | None, path: str) -> None:
        a, b = _rows(a), _rows(b)
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            self.assertEqual(set(a), set(b), _describe(msg, f"keys differ at {path or 'the top'}"))
            for key in a:
                self._close(a[key], b[key], rtol, atol, msg, f"{path}[{key!r}]")
            return
        if isinstance(a, list | tuple) and isinstance(b, list | tuple) and _is_ragged(a, b):
            self.assertEqual(
                len(a), len(b), _describe(msg, f"lengths differ at {path or 'the top'}")
            )
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                self._close(x, y, rtol, atol, msg, f"{path}[{i}]")
            return
        _check_close(as_array(a), as_array(b), rtol, atol, _describe(msg, path))

    def assertAllCloseAccordingToType(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, float_rtol: float = 1e-6,
        float_atol: float = 1e-6, half_rtol: float = 1e-3, half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2, bfloat16_atol: float = 1e-2, msg: str | None = None,
    ) -> None:  # fmt: skip
        """Check that values are close, with the tolerance of the less precise type."""
        names = {as_array(x).dtype.name for x in (a, b)}
        for kinds, r, t in (
            ({"float32", "complex64"}, float_rtol, float_atol),
            ({"float16"}, half_rtol, half_atol),
            ({"bfloat16"}, bfloat16_rtol, bfloat16_atol),
        ):
            if kinds & names:
                rtol, atol = max(rtol, r), max(atol, t)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNotAllClose(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Check that something is not close."""
        try:
            self.assertAllClose(a, b, rtol, atol)
        except AssertionError:
            return
        raise AssertionError(_describe(msg, "The two values are close at all elements."))

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:  # noqa: N802
        """Check that |f1 - f2| <= err."""
        if not (f1 == f2 or math.fabs(f1 - f2) <= err):
            raise AssertionError(_describe(msg, f"{f1} is not within {err} of {f2}"))

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: Any = None) -> None:  # noqa: N802
        """Check that all elements are within `err` of each other."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for x, y in zip(farray1, farray2, strict=True):
            self.assertNear(float(x), float(y), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: Any = None) -> None:  # noqa: N802
        """Check that the norm of the difference is at most `err`."""
        away = float(np.linalg.norm(as_array(ndarray1) - as_array(ndarray2)))
        self.assertLessEqual(away, err, _describe(msg, f"{ndarray1} and {ndarray2} are not near"))

    # ------------------------------------------------------------ bounds
    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Check that all elements are greater."""
        self._all(as_array(a) > comparison_target, a, f"> {comparison_target}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Check that all elements are greater or equal."""
        self._all(as_array(a) >= comparison_target, a, f">= {comparison_target}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Check that all elements are less."""
        self._all(as_array(a) < comparison_target, a, f"< {comparison_target}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Check that all elements are less or equal."""
        self._all(as_array(a) <= comparison_target, a, f"<= {comparison_target}")

    def assertAllInRange(  # noqa: N802
        self, target: Any, lower_bound: Any, upper_bound: Any, open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:  # fmt: skip
        """Check that all elements are between two numbers, which count unless they are open."""
        x = as_array(target)
        low = x > lower_bound if open_lower_bound else x >= lower_bound
        high = x < upper_bound if open_upper_bound else x <= upper_bound
        self._all(low & high, x, f"between {lower_bound} and {upper_bound}")

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:  # noqa: N802
        """Check that all elements are in a set."""
        x = as_array(target)
        self._all(np.isin(x, list(expected_set)), x, f"in {expected_set}")

    def _all(self, good: np.ndarray, value: Any, condition: str) -> None:
        if not np.all(good):
            at = np.argwhere(~np.asarray(good))[:5].tolist()
            raise AssertionError(
                f"Not all elements are {condition}: those at {at} of {as_array(value)}"
            )

    # ------------------------------------------------------------ shapes, types, errors
    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Check that two arrays have one shape."""
        self.assertEqual(tuple(input_a.shape), tuple(input_b.shape), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:  # noqa: N802
        """Check the type of the elements."""
        self.assertEqual(as_dtype(as_array(target).dtype), as_dtype(expected_dtype))

    def assertDeviceEqual(self, device1: str, device2: str, msg: str | None = None) -> None:  # noqa: N802
        """Check that two names are of one device."""
        from jaxvars.tf.config.devices import DeviceSpec

        first, second = map(DeviceSpec.from_string, (device1, device2))
        self.assertEqual(first.to_string(), second.to_string(), msg)

    @contextlib.contextmanager
    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Generator[None]:  # noqa: N802
        """Check that an operation fails, by its message or a predicate."""
        with self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate):
            yield

    def assertRaisesIncompatibleShapesError(  # noqa: N802
        self, exception_type: Any = InvalidArgumentError
    ) -> Any:
        """Check that shapes are refused, by the message."""
        return self.assertRaisesWithPredicateMatch(
            exception_type,
            "Incompatible shapes|Dimensions must be equal|required broadcastable shapes",
        )

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride] - as TensorFlow has it
        self, exception_type: Any, expected_err_re_or_predicate: str | Callable[[Any], bool]
    ) -> Generator[None]:
        """Check what is raised, by its message or a predicate."""
        wanted = expected_err_re_or_predicate
        with self.assertRaises(exception_type) as caught:
            yield
        error = caught.exception
        fits = wanted(error) if callable(wanted) else re.search(wanted, str(error))
        if not fits:
            raise AssertionError(f"{error!r} does not match {wanted!r}.")


# ---------------------------------------------------------------- helpers
def _evaluate(leaf: Any) -> Any:
    return leaf.numpy() if hasattr(leaf, "numpy") and not isinstance(leaf, RaggedTensor) else leaf


def as_array(value: Any) -> np.ndarray:
    """Return a value as a NumPy array; strings as bytes."""
    if isinstance(value, str | bytes):
        return np.array(value.encode() if isinstance(value, str) else value, dtype=object)
    if isinstance(value, np.ndarray) and value.dtype.kind != "U":
        return value
    if value is None or (isinstance(value, list | tuple) and any(x is None for x in value)):
        return np.array(value, dtype=object)
    if callable(value) or (isinstance(value, list | tuple) and any(map(callable, value))):
        return np.array(value)  # of objects, as NumPy has it
    if isinstance(value, list | tuple | float):  # of float64, as NumPy has it
        made = np.array(value)
        if made.dtype.kind in "biufc":
            return made
    found = Tensor(to_array(value)).numpy()
    return np.array(found, object) if isinstance(found, bytes) else np.asarray(found)


def _rows(value: Any) -> Any:
    return value.to_list() if isinstance(value, RaggedTensor) else value


def _is_ragged(a: Any, b: Any) -> bool:
    """Return whether lists are structures to compare part by part, and not tensors."""
    try:
        for part in (a, b):
            as_array(part)
    except (ValueError, TypeError):
        return True
    return False


def _check_close(x: np.ndarray, y: np.ndarray, rtol: float, atol: float, where: str) -> None:
    if x.shape != y.shape:
        raise AssertionError(f"{where} Shapes differ: {x.shape} and {y.shape}")
    wide = [part.astype(np.float64) if part.dtype.kind not in "fcO" else part for part in (x, y)]
    try:
        np.testing.assert_allclose(*wide, rtol=rtol, atol=atol, err_msg=where)
    except AssertionError as error:
        raise AssertionError(f"{error}\nExpected close with rtol {rtol} and atol {atol}") from None


def _describe(msg: str | None, problem: str) -> str:
    return f"{msg}: {problem}" if msg else problem


# ---------------------------------------------------------------- derivatives
def compute_gradient(
    f: Callable[..., Any], x: Any, delta: float | None = None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the derivatives of a function as matrices: from the tape, and from differences.

    Args:
        f: a function of tensors that returns one.
        x: the list of its arguments.
        delta: the step of the differences; 1/1024 when None.

    Returns:
        For each argument a matrix of one row for each element of the result, twice. A complex
        number counts as two.

    >>> from jaxvars import tf
    >>> exact, near = compute_gradient(lambda x: x * x, [tf.constant([1.0, 2.0])])
    >>> exact[0].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    arguments = [Tensor(to_array(part)) for part in x]
    exact: list[np.ndarray] = []
    near: list[np.ndarray] = []
    for i, argument in enumerate(arguments):
        with GradientTape(persistent=True) as tape:
            tape.watch(argument)
            y = f(*arguments)
        exact.append(_derivatives(tape, Tensor(to_array(y)), argument))
        near.append(_differences(f, arguments, i, delta))
    return exact, near


def _derivatives(tape: GradientTape, y: Tensor, x: Tensor) -> np.ndarray:
    """Return a matrix of one row for each real number in `y`, one column for each in `x`."""
    shape = _reals(as_array(y)).size, _reals(as_array(x)).size
    if not (y.dtype.is_complex or x.dtype.is_complex):
        jacobian = tape.jacobian(y, x)
        return np.zeros(shape) if jacobian is None else as_array(jacobian).reshape(shape)
    rows: list[np.ndarray] = []
    for i in range(shape[0]):
        weights = np.zeros(as_array(y).shape, as_array(y).dtype)
        _reals(weights)[i] = 1
        row = tape.gradient(y, x, Tensor(to_array(weights)), UnconnectedGradients.ZERO)
        rows.append(_reals(as_array(row)))
    return np.stack(rows) if rows else np.zeros(shape)


def _reals(array: np.ndarray) -> np.ndarray:
    """Return an array in one dimension; a complex number is two real ones."""
    flat = np.atleast_1d(array).reshape(-1)
    return flat.view(np.real(flat).dtype)


def _differences(
    f: Callable[..., Any], arguments: list[Tensor], which: int, delta: float | None
) -> np.ndarray:
    base = as_array(arguments[which])
    step = delta or 1 / 1024
    columns: list[np.ndarray] = []
    for i in range(_reals(base).size):
        sides: list[np.ndarray] = []
        for sign in (1, -1):
            moved = base.copy()
            _reals(moved)[i] += sign * step
            given = [*arguments[:which], Tensor(to_array(moved)), *arguments[which + 1 :]]
            sides.append(_reals(as_array(f(*given))))
        columns.append((sides[0] - sides[1]) / (2 * step))
    rows = _reals(as_array(f(*arguments))).size
    return np.stack(columns, -1) if columns else np.zeros((rows, 0))

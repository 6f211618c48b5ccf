"""`tf.debugging`: checks of values, shapes and types; over `jaxvars.debugging`.

Rules this file keeps:
- values are checked when they are there: in a compiled function, when it runs;
- what is wrong with a value is an InvalidArgumentError in TensorFlow's words; shapes and types
  are known at once: ValueError and TypeError.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars import debugging as _debugging
from jaxvars.core.checks import require
from jaxvars.debugging.watchers import disable_check_numerics as disable_check_numerics
from jaxvars.debugging.watchers import enable_check_numerics as _enable_check_numerics
from jaxvars.errors import ShapeError
from jaxvars.tf.control.branches import Assert as Assert
from jaxvars.tf.debugging.comparisons import assert_equal as assert_equal
from jaxvars.tf.debugging.comparisons import assert_greater as assert_greater
from jaxvars.tf.debugging.comparisons import assert_greater_equal as assert_greater_equal
from jaxvars.tf.debugging.comparisons import assert_less as assert_less
from jaxvars.tf.debugging.comparisons import assert_less_equal as assert_less_equal
from jaxvars.tf.debugging.comparisons import assert_near as assert_near
from jaxvars.tf.debugging.comparisons import assert_negative as assert_negative
from jaxvars.tf.debugging.comparisons import assert_non_negative as assert_non_negative
from jaxvars.tf.debugging.comparisons import assert_non_positive as assert_non_positive
from jaxvars.tf.debugging.comparisons import assert_none_equal as assert_none_equal
from jaxvars.tf.debugging.comparisons import assert_positive as assert_positive
from jaxvars.tf.debugging.placement import get_log_device_placement as get_log_device_placement
from jaxvars.tf.debugging.placement import set_log_device_placement as set_log_device_placement
from jaxvars.tf.listing import namespace
from jaxvars.tf.tensors.convert import dtype_of, to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable
from jaxvars.tracing import context


# ---------------------------------------------------------------- NaN and infinities
def check_numerics(tensor: Any, message: str, name: Any = None) -> Tensor:
    """Check that no element is NaN or infinite, and return the tensor.

    Args:
        tensor: floats.
        message: what to say first if one is.
        name: of no effect.

    Raises:
        InvalidArgumentError: when one is; from a compiled function, when it is run.
    """
    array = to_array(tensor)
    if not dtype_of(array).is_floating:
        raise refused(
            f"Value for attr 'T' of {dtype_of(array).name} is not in the list of allowed values: "
            "bfloat16, half, float, double [Op:CheckNumerics] name: "
        )
    good = jnp.isfinite(jax.lax.stop_gradient(array))
    if context.is_tracer(good):
        require(good, f"{message} : Tensor had NaN or Inf values", {"x": array})
    elif not np.all(good):
        what = [w for w, has in (("Inf", jnp.isinf), ("NaN", jnp.isnan)) if has(array).any()]
        found = f"{message} : Tensor had {' and '.join(what)} values [Op:CheckNumerics]"
        raise refused(found)
    return tensor if isinstance(tensor, Tensor) else Tensor(array)


def assert_all_finite(x: Any, message: str, name: Any = None) -> Tensor:
    """Check that no element is NaN or infinite, and return the tensor; see `check_numerics`."""
    return check_numerics(x, message)


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Check the results of all operations of this thread for NaN and infinities.

    Args:
        stack_height_limit: of no effect.
        path_length_limit: of no effect.

    Raises:
        RuntimeError: inside a tape, a compiled function or a transform.

    Differs from TensorFlow: an operation that gives one raises `jaxvars.errors.CheckError`.
    """
    _enable_check_numerics()


# ---------------------------------------------------------------- shapes and types
def assert_rank(x: Any, rank: Any, message: str | None = None, name: Any = None) -> None:
    """Check the number of dimensions; raise ValueError when it is another one."""
    wanted = _rank(rank, message)
    _check_rank_in(x, [wanted], f"must have rank {wanted}", message)


def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: Any = None) -> None:
    """Check the number of dimensions; raise ValueError when it is less."""
    least, shape = _rank(rank, message), to_array(x).shape
    allowed = range(least, max(len(shape), least) + 1)
    _check_rank_in(x, allowed, f"must have rank at least {least}", message)


def assert_rank_in(
    x: Any, ranks: Iterable[Any], message: str | None = None, name: Any = None
) -> None:
    """Check the number of dimensions; raise ValueError when it is none of some."""
    allowed = tuple(_rank(rank, message) for rank in ranks)
    _check_rank_in(x, allowed, f"must have rank in {allowed}", message)


def _rank(rank: Any, message: str | None) -> int:
    """Return a number of dimensions.

    Raises:
        ValueError: when it is not a scalar.
        TypeError: when it is not an integer.
    """
    array = to_array(rank)
    first = f"{message} " if message else ""
    if array.ndim:
        raise ValueError(f"{first}Rank must be a scalar.")
    if not jnp.issubdtype(array.dtype, jnp.integer):
        have = dtype_of(array)
        raise TypeError(f"{first}tensor: rank must be of type tf.int32; got {have!r}")
    return int(array)


def _check_rank_in(x: Any, allowed: Sequence[int], expected: str, message: str | None) -> None:
    shape = to_array(x).shape
    if len(shape) not in allowed:
        first = f"{message}.  " if message else ""
        named = x.name if isinstance(x, Variable) else ""
        raise ValueError(
            f"{first}Tensor {named} {expected}.  Received rank {len(shape)}, shape {tuple(shape)}"
        )


def assert_scalar(tensor: Any, message: str | None = None, name: Any = None) -> Tensor:
    """Check that a tensor has no dimensions, and return it; raise ValueError if it has some."""
    array = to_array(tensor)
    if array.ndim:
        first = f"{message}. " if message else ""
        raise ValueError(f"{first}Expected scalar shape, saw shape: {TensorShape(array.shape)}.")
    return tensor if isinstance(tensor, Tensor) else Tensor(array)


def assert_shapes(
    shapes: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: Any = None,
) -> None:  # fmt: skip
    """Check shapes, and that sizes of one name are equal.

    Args:
        shapes: pairs of a tensor and its shape: numbers, names, None or "." for any size, "*" or
            `...` at an end for any number of sizes; or a string, one letter for each size.
        data: of no effect.
        summarize: of no effect.
        message: what to say first.
        name: of no effect.

    Raises:
        ValueError: when a shape is another one, or a name has two sizes.

    >>> assert_shapes([([[1, 2]], ("n", "k")), ([0, 0], ("k",))])
    """
    pairs = shapes.items() if hasattr(shapes, "items") else shapes
    given = [(to_array(x), _pattern(sizes)) for x, sizes in pairs]
    try:
        _debugging.assert_shapes(given, message)
    except ShapeError as error:
        raise ValueError(str(error)) from error


def _pattern(sizes: Any) -> Any:
    if isinstance(sizes, int):
        return (sizes,)
    if isinstance(sizes, TensorShape):
        return tuple(sizes)
    return tuple(None if size == "." else size for size in sizes)


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: Any = None) -> None:
    """Check the type of the elements; raise TypeError when it is another one."""
    have, want = dtype_of(to_array(tensor)), as_dtype(tf_type)
    if have != want:
        first = f"{message}  " if message else ""
        raise TypeError(f"{first}tensor must be of type {want!r}; got {have!r}")


def assert_integer(x: Any, message: str | None = None, name: Any = None) -> None:
    """Check that a tensor has integers; raise TypeError if it has not."""
    have = dtype_of(to_array(x))
    if not have.is_integer:
        first = f"{message}. " if message else ""
        raise TypeError(f'{first}Expected "x" to be integer type.  Found: tensor of dtype {have!s}')


def is_numeric_tensor(tensor: Any) -> bool:
    """Return whether something is a tensor of numbers.

    >>> is_numeric_tensor(1.0)
    False
    """
    return isinstance(tensor, Tensor | Variable) and tensor.dtype.is_numeric


# ---------------------------------------------------------------- tracebacks
def enable_traceback_filtering() -> None:
    """Leave JAX's frames out of tracebacks."""
    jax.config.update("jax_traceback_filtering", "auto")


def disable_traceback_filtering() -> None:
    """Keep JAX's frames in tracebacks."""
    jax.config.update("jax_traceback_filtering", "off")


def is_traceback_filtering_enabled() -> bool:
    """Return whether JAX's frames are left out of tracebacks.

    >>> is_traceback_filtering_enabled()
    True
    """
    value: Any = jax.config.values["jax_traceback_filtering"]
    return value != "off"


__getattr__, __dir__ = namespace(__name__)

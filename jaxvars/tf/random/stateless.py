"""`tf.random.stateless_*`: the same values for the same seed, always.

Rules this file keeps:
- a seed is two integers; as 32-bit and as 64-bit numbers they are the same seed.
"""

from __future__ import annotations

import enum
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.random.seeds import unseen
from jaxvars.tf.random import bits as bits
from jaxvars.tf.random import draws as draws
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable
from jaxvars.typing import Array


def start_of(seed: Any, alg: Any = "auto_select") -> Array:
    """Return what a seed stands for: a start (`random/bits.py`)."""
    numbers = to_array(seed)
    if numbers.dtype.kind not in "iu":
        raise refused(
            f"Value for attr 'Tseed' of {as_dtype(numbers.dtype).name} is not in the list of "
            "allowed values: int32, int64",
            "StatelessRandomGetKeyCounter",
        )
    if numbers.shape != (2,):
        raise refused(
            f"seed must have shape [2], not {list(numbers.shape)}", "StatelessRandomGetKeyCounter"
        )
    check_algorithm(alg)
    return unseen(lambda: bits.scramble(numbers))


def stateless_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32",
    name: str | None = None, alg: Any = "auto_select",
) -> Tensor:  # fmt: skip
    """Draw normally distributed values of a seed.

    >>> stateless_normal([2], [1, 2]).numpy().tolist() == stateless_normal(
    ...     [2], [1, 2]
    ... ).numpy().tolist()
    True
    """
    return draws.normal(start_of(seed, alg), shape, mean, stddev, dtype)


def stateless_truncated_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32",
    name: str | None = None, alg: Any = "auto_select",
) -> Tensor:  # fmt: skip
    """Draw normally distributed values of a seed, within two deviations of the mean."""
    return draws.truncated_normal(start_of(seed, alg), shape, mean, stddev, dtype)


def stateless_uniform(
    shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32",
    name: str | None = None, alg: Any = "auto_select",
) -> Tensor:  # fmt: skip
    """Draw uniformly distributed values of a seed; all integers if both bounds are None.

    Raises:
        ValueError: for a type that is not there, or integers with one bound.
    """
    kind = as_dtype(dtype)
    check_type(kind, draws.WIDE)
    if kind.is_integer and (minval is None) != (maxval is None):
        raise ValueError(
            f"For integer `dtype` argument {kind}, argument `minval` and `maxval` must be both "
            f"None or not None. Got `minval`={minval} and `maxval`={maxval}."
        )
    return draws.uniform(start_of(seed, alg), shape, minval, maxval, kind)


def check_type(kind: Any, known: tuple[str, ...]) -> None:
    """Raise ValueError for a type that an operation does not draw."""
    if kind.name not in known:
        names = ", ".join(f"tf.{name}" for name in known)
        raise ValueError(
            f"Argument `dtype` got invalid value {kind}. Accepted dtypes are ({names})."
        )


def stateless_binomial(
    shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = "int32",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Draw how many of `counts` trials succeed, of a seed.

    Differs from TensorFlow: a seed gives other values.
    """
    return draws.binomial(start_of(seed), shape, counts, probs, output_dtype)


def stateless_poisson(
    shape: Any, seed: Any, lam: Any, dtype: Any = "int32", name: str | None = None
) -> Tensor:
    """Draw Poisson distributed counts of a seed; the shape ends with that of `lam`.

    Differs from TensorFlow: a seed gives other values.
    """
    return draws.poisson(start_of(seed), draws.sizes(shape), to_array(lam), dtype)


def stateless_gamma(
    shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = "float32",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Draw gamma distributed values of a seed; the shape ends with that of the parameters.

    Differs from TensorFlow: a seed gives other values.
    """
    kind = as_dtype(dtype)
    scale = to_array(1.0 if beta is None else beta, kind)
    return draws.gamma(start_of(seed), draws.sizes(shape), to_array(alpha, kind), scale, kind)


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = "int64", name: str | None = None
) -> Tensor:
    """Draw classes for each row of logits, of a seed."""
    return draws.categorical(start_of(seed), logits, num_samples, dtype)


def stateless_shuffle(
    value: Any, seed: Any, alg: Any = "auto_select", name: str | None = None
) -> Tensor:
    """Return the slices of a tensor along the first axis in random order, of a seed.

    Differs from TensorFlow: a seed gives other values.
    """
    return draws.shuffle(start_of(seed), value)


def split(seed: Any, num: int = 2, alg: Any = "auto_select") -> Tensor:
    """Make seeds of a seed: as many rows of two numbers.

    >>> split([1, 2], 3).numpy().tolist()
    [[1105988140, 1738052849], [-335576002, 370444179], [10670227, -246211131]]
    """
    dtype = as_dtype(to_array(seed).dtype)
    return draws.uniform(start_of(seed, alg), [int(num), 2], None, None, dtype)


def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """Make a seed of a seed and a number, like that of a step.

    >>> fold_in([1, 2], 3).numpy().tolist()
    [1105988140, 3]
    """
    number = to_array(data)
    first = draws.uniform(start_of(seed, alg), [], None, None, as_dtype(number.dtype))
    return Tensor(jnp.stack([first._array, number]))


class Algorithm(enum.Enum):
    """The algorithm that random bits are made with: Philox."""

    PHILOX = 1
    AUTO_SELECT = 3


def check_algorithm(alg: Any) -> None:
    """Raise ValueError unless a name, a number or an `Algorithm` stands for Philox."""
    if isinstance(alg, Algorithm):
        return
    if isinstance(alg, str):
        is_known = alg.strip().lower().replace("-", "_") in ("philox", "auto_select")
    elif isinstance(alg, int | np.integer | Tensor | Variable):
        is_known = int(alg) in {one.value for one in Algorithm}
    else:
        raise TypeError(
            f"Can't convert argument `alg` (of value {alg} and type {type(alg)}) to int."
        )
    if not is_known:
        raise ValueError(
            f"Argument `alg` got unsupported value {alg}. Philox is the only algorithm here: give "
            "alg='philox', or leave it out. The values of jax.random are Threefry's."
        )

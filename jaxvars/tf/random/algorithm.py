"""`tf.random.Algorithm`: how random bits are made, by names and numbers."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable


class Algorithm(enum.Enum):
    """The algorithms that random bits are made with; AUTO_SELECT is Philox."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def algorithm_of(alg: Any) -> int:
    """Return the number of an algorithm.

    Raises:
        ValueError: when there is none of that name or number.
        TypeError: when it is neither.
    """
    if isinstance(alg, Algorithm):
        return alg.value
    if isinstance(alg, str):
        plain = alg.strip().lower().replace("-", "").replace("_", "")
        found = {one.name.lower().replace("_", ""): one.value for one in Algorithm}.get(plain)
    elif isinstance(alg, int | np.integer | Tensor | Variable):
        found = int(alg) if int(alg) in {one.value for one in Algorithm} else None
    else:
        raise TypeError(
            f"Can't convert argument `alg` (of value {alg} and type {type(alg)}) to int."
        )
    if found is None:
        raise ValueError(
            f"Argument `alg` got unsupported value {alg}. Supported values are philox for the "
            "Philox algorithm, threefry for the ThreeFry algorithm, and auto_select for "
            "auto-selection."
        )
    return found

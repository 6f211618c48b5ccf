"""What the losses and metrics of the goldens are given: random arrays, and how they are written."""

from __future__ import annotations

from typing import Any

import numpy as np

RNG = np.random.default_rng(0)
N, C = 5, 4


def numbers(*shape: int) -> Any:
    return RNG.normal(size=shape)


def positive(*shape: int) -> Any:
    return RNG.uniform(0.1, 3.0, size=shape)


def distributions(*shape: int) -> Any:
    x = np.round(RNG.dirichlet(np.full(shape[-1], 2.0), size=shape[:-1]), 3)
    x[..., -1] = 1 - x[..., :-1].sum(-1)  # TensorFlow's gradients take it that the sum is 1
    return x


def bits(*shape: int) -> Any:
    return RNG.integers(0, 2, size=shape)


def classes(*shape: int) -> Any:
    return RNG.integers(0, shape[-1], size=shape[:-1])


def one_hot(*shape: int) -> Any:
    return np.eye(shape[-1])[classes(*shape)]


def short(x: Any) -> Any:
    """An array as float32, with a few digits; integers as they are."""
    x = np.asarray(x)
    return np.round(x, 3).astype(np.float32) if x.dtype.kind == "f" else x


def digits(x: Any) -> Any:
    """An array as lists, with as many digits as float32 has."""
    if x.ndim:
        return [digits(part) for part in x]
    return float(f"{x:.8g}") if x.dtype.kind == "f" else int(x)

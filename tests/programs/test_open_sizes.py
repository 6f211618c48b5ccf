"""Calls with unknown dimensions: what is known of them lasts as long as the function's code."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars.compiler.creation import ProgramSource
from jaxvars.programs.open_sizes import OpenCalls


def total(x: Any) -> Any:
    return x.sum()


def total_by_size(x: Any) -> Any:
    return x.sum() if x.shape[0] != 3 else -x.sum()


def test_a_function_whose_code_was_replaced_is_tried_again_for_open_sizes() -> None:
    def run(x: Any) -> Any:
        return 0.0

    run.__code__ = total_by_size.__code__
    step = jv.compile(run)
    step.source = OpenCalls(lambda call: [[True]])
    assert [float(step(jnp.ones(n))) for n in (2, 3, 4)] == [2.0, -3.0, 4.0]
    assert step.trace_count == 3  # for each size: it asks for it
    run.__code__ = total.__code__  # as autoreload does
    assert [float(step(jnp.ones(n))) for n in (2, 3, 4)] == [2.0, 3.0, 4.0]
    assert step.trace_count == 4


def test_without_a_source_each_size_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jv.Function, "source", ProgramSource())
    step = jv.compile(total)
    assert [float(step(jnp.ones(n))) for n in (2, 3)] == [2.0, 3.0]
    assert step.trace_count == 2


def test_a_call_with_symbols_is_traced_as_the_source_says() -> None:
    (n,) = jax.export.symbolic_shape("n")
    spec = jax.ShapeDtypeStruct((n,), jnp.float32)
    step = jv.compile(total_by_size)
    with pytest.raises(jax.errors.InconclusiveDimensionOperation, match="is 3, and that is not"):
        step.trace(spec)
    step.source = ProgramSource()  # JAX takes them for different
    assert step.trace(spec).structured_outputs.shape == ()

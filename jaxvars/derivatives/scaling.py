"""`scale`: a product that is 0 where its first factor is 0, whatever the second one is.

TensorFlow's gradients of roots and reciprocals are made so: an incoming gradient of 0 stays 0 where
the slope is infinite or NaN, so that `where(x > 0, sqrt(x), 0)` has a gradient. It is an operation,
since a function of a tangent must be linear to be run backwards, and a comparison is not.

`reads_nothing` marks the rules that such derivatives are made of, so that a tape need not look what
they read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax import lax
from jax.interpreters import ad, batching, mlir

from jaxvars.tracing import capture
from jaxvars.tracing.assigned_read import batch_whole
from jaxvars.typing import Array


def scale(x: Array, factor: Array) -> Array:
    """Return x * factor, and 0 where `x` is 0; both are of one shape and type."""
    return scale_p.bind(x, factor)


def reads_nothing(rule: Any) -> Any:
    """Say of a rule of a derivative that it uses its arguments alone, as JAX's own rules do."""
    rule.reads_nothing = True
    return rule


def _run(x: Array, factor: Array) -> Array:
    return lax.select(x == 0, lax.full_like(x, 0), x * factor)


def _jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    x, factor = primals
    made, (by_x, by_factor) = scale(x, factor), tangents
    parts = [] if type(by_x) is ad.Zero else [scale(by_x, factor)]
    parts += [] if type(by_factor) is ad.Zero else [scale(x, by_factor)]
    return made, sum(parts[1:], parts[0])


def _transpose(gradient: Array, x: Any, factor: Any) -> tuple[Any, Any]:
    if ad.is_undefined_primal(x):
        return scale(gradient, factor), None
    return None, scale(gradient, x)


scale_p = capture.new_primitive("scale")
scale_p.def_impl(jax.jit(_run))
scale_p.def_abstract_eval(lambda x, factor: x)
ad.primitive_jvps[scale_p] = _jvp
ad.primitive_transposes[scale_p] = _transpose
batching.primitive_batchers[scale_p] = batch_whole(scale_p)
mlir.register_lowering(scale_p, mlir.lower_fun(_run, multiple_results=False))

"""Programs lowered for accelerators, which takes none: what would not run there is refused."""

from __future__ import annotations

import re
from typing import Any

import jax

from jaxvars.tracing.jaxprs import inner_jaxprs, jaxpr_function, open_jaxpr, primitives_in

PLATFORMS = ("cuda", "rocm", "tpu")
CALLBACKS = {"pure_callback", "io_callback"}
_CALL = re.compile(r"custom_call @([\w.$]+)")
# Of JAX's own rules for these platforms: solvers' libraries, and what a TPU's compiler expands.
_KNOWN = re.compile(
    r"cu(solver|hybrid|blas)?_|hip(solver|hybrid|blas)?_|Sharding|Eigh$|Qr$|LuDecomposition$|"
    "ProductOfElementaryHouseholderReflectors$"
)


def calls_host(concrete: Any) -> bool:
    """Return whether a program calls back into Python for a value."""
    return bool(CALLBACKS & primitives_in(concrete.jaxpr))


def float64_in(concrete: Any) -> set[str]:
    """Return what makes float64 in a program that is given none, and returns none."""
    program, found, todo = concrete.jaxpr, set(), [open_jaxpr(concrete.jaxpr)]
    wide = lambda avals: any(str(x.dtype) in ("float64", "complex128") for x in avals)  # noqa: E731
    if wide([*program.in_avals, *program.out_avals]):
        return found
    while todo:
        for eqn in todo.pop().eqns:
            if wide(var.aval for var in eqn.outvars if hasattr(var.aval, "dtype")):
                found.add(eqn.primitive.name)
            todo += map(open_jaxpr, inner_jaxprs(eqn.params))
    return found


def unknown_calls(concrete: Any) -> dict[str, list[str] | str]:
    """Return what a program calls that is not known to be there, or why it is refused."""
    program = concrete.jaxpr
    specs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in program.in_avals]
    traced = jax.jit(jaxpr_function(program)).trace(*specs)
    found: dict[str, list[str] | str] = {}
    for platform in PLATFORMS:
        try:
            names = _CALL.findall(traced.lower(lowering_platforms=(platform,)).as_text())
        except NotImplementedError as error:
            found[platform] = str(error)
        else:
            if unknown := [name for name in names if not _KNOWN.match(name)]:
                found[platform] = unknown
    return found

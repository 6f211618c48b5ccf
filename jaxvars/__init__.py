"""Mutable variables for JAX: TensorFlow 2's way of writing programs, compiled by `jax.jit`.

A `Variable` holds an array that is read like one and assigned in place; `compile` makes a function
that reads and assigns variables one XLA program, and `GradientTape` differentiates what ran.

    import jax.numpy as jnp
    import jaxvars as jv

    w = jv.Variable(0.0)

    @jv.compile
    def step(x, y):
        with jv.GradientTape() as tape:
            loss = jnp.mean((w * x - y) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

Variables       Variable, Module, State, functionalize, select, freeze, transaction, diff,
                variables, name_scope, abstract, TensorSpec
Programs        compile, Function, ConcreteFunction, custom_gradient, recompute, stop_gradient
Gradients       GradientTape, ForwardAccumulator
Control flow    cond, switch, while_loop, fori_loop, scan, map_fn, vectorized_map, TensorArray
Devices         mesh, use_mesh, shard, place, plan, device
Console         print, progress

Namespaces      autograph, checkpoint, config, debugging, errors, export, initializers, interop,
                losses, metrics, optimizers, parallel, profiler, random, tensorboard
TensorFlow      jv.tf: TensorFlow 2's own names, for programs that are to run as they are

Everything else in this package is internal: users import `jaxvars` and `jaxvars.tf` only.
"""

from __future__ import annotations

import sys as _sys
import typing as _typing
from contextlib import nullcontext as _nullcontext
from typing import Any as _Any

from jaxvars import requirements as _requirements  # noqa: F401  # pyright: ignore[reportUnusedImport] - refuses wrong versions, before the others fail

# isort: split
from jaxvars import autograph, errors
from jaxvars import foreign as _foreign
from jaxvars import sketches as _sketches
from jaxvars.autodiff.tape import GradientTape
from jaxvars.compiler.concrete_function import ConcreteFunction
from jaxvars.compiler.decorator import compile
from jaxvars.compiler.function import Function
from jaxvars.console import host_calls as _host_calls
from jaxvars.console.print import print
from jaxvars.control import forked as _forked
from jaxvars.control.branches import cond, switch
from jaxvars.control.loops import fori_loop, scan, while_loop
from jaxvars.control.maps import map_fn, vectorized_map
from jaxvars.control.tensor_array import TensorArray
from jaxvars.control.transaction import transaction
from jaxvars.core.cells import name_scope
from jaxvars.core.variable import Variable
from jaxvars.derivatives import install as _derivatives
from jaxvars.derivatives.custom_gradient import custom_gradient, recompute, stop_gradient
from jaxvars.derivatives.forward import ForwardAccumulator
from jaxvars.derivatives.freeze import freeze
from jaxvars.devices.device import device
from jaxvars.devices.mesh import mesh, shard, use_mesh
from jaxvars.leaks import watch as _leaks
from jaxvars.modules import naming as _naming
from jaxvars.modules.functionalize import functionalize
from jaxvars.modules.module import Module, select
from jaxvars.modules.state import State
from jaxvars.objects.interpreter import load as _load
from jaxvars.planning.abstract import abstract
from jaxvars.programs import open_sizes as _open_sizes
from jaxvars.programs import placement as _placement
from jaxvars.tensors.spec import TensorSpec
from jaxvars.tracing import around as _around

_forked.install()
_derivatives.install()
_host_calls.install()
_foreign.install()
_sketches.install()
_open_sizes.install()
_placement.install()
_leaks.install()
_naming.install()


def _keras_scope() -> _Any:
    """Return what has tapes and functions see the variables of Keras, if that is imported."""
    if "keras" not in _sys.modules:
        return _nullcontext()
    return _load("jaxvars.interop.keras").scope()


_around.AROUND.append(_keras_scope)
_around.RECORDING.append(_keras_scope)

if _typing.TYPE_CHECKING:  # imported when they are first used, so that `import jaxvars` is quick
    from jaxvars import (
        checkpoint,
        config,
        debugging,
        export,
        initializers,
        interop,
        losses,
        metrics,
        optimizers,
        parallel,
        profiler,
        random,
        tensorboard,
    )
    from jaxvars import tf as tf
    from jaxvars.console.progress import progress
    from jaxvars.interop.differences import diff
    from jaxvars.interop.trees import variables
    from jaxvars.parallel.placement import place
    from jaxvars.planning.plan import plan

    __version__: str

__all__ = [
    "ConcreteFunction", "ForwardAccumulator", "Function", "GradientTape", "Module", "State",
    "TensorArray", "TensorSpec", "Variable", "abstract", "autograph", "checkpoint", "compile",
    "cond", "config", "custom_gradient", "debugging", "device", "diff", "errors", "export",
    "fori_loop", "freeze", "functionalize", "initializers", "interop", "losses", "map_fn",
    "mesh", "metrics", "name_scope", "optimizers", "parallel", "place", "plan", "print", "profiler",
    "progress", "random", "recompute", "scan", "select", "shard", "stop_gradient", "switch",
    "tensorboard", "transaction", "use_mesh", "variables", "vectorized_map", "while_loop",
]  # fmt: skip

_LATER = {
    "diff": "jaxvars.interop.differences",
    "place": "jaxvars.parallel.placement",
    "plan": "jaxvars.planning.plan",
    "progress": "jaxvars.console.progress",
    "variables": "jaxvars.interop.trees",
}
"""Functions that are imported when they are first used, as namespaces are, with their files."""


def _find(name: str) -> _Any:
    if name == "tf" or name in __all__:
        found = _load(_LATER.get(name, f"jaxvars.{name}"))
        globals()[name] = found = getattr(found, name) if name in _LATER else found
        return found
    if name == "__version__":  # read when asked for: importlib.metadata takes time
        from importlib.metadata import version

        return version("jaxvars")
    raise errors.shown(AttributeError(f"jaxvars has no attribute {name!r}.{_advise(name)}"))


if not _typing.TYPE_CHECKING:  # a checker would take any name for an attribute
    __getattr__ = _find


def _advise(name: str) -> str:
    from jaxvars.advice import instead_of
    from jaxvars.display.strings import did_you_mean

    return instead_of(name, "jaxvars") or _found_elsewhere(name) or did_you_mean(name, __all__)


def _found_elsewhere(name: str) -> str:
    if name[0] == "_":
        return ""
    import jax

    spaces = ("random", "optimizers", "losses", "metrics", "initializers", "parallel")
    spaces += ("checkpoint", "interop", "debugging", "config", "export", "autograph")
    places = {"jnp": jax.numpy, "jax.nn": jax.nn, "jax": jax}
    places |= {f"jv.{space}": _find(space) for space in spaces}
    short = name.removeprefix("reduce_")
    found = [place for place, module in places.items() if short in dir(module)]
    return f" Use {found[0]}.{short}." if found else ""


def __dir__() -> list[str]:  # without tf: help(jv) and `import *` would switch 64-bit numbers on
    return __all__

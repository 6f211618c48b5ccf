"""`python -m jaxvars doctor`: what is installed here, what it runs on, and what makes it slow."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from shutil import which
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

import jaxvars as jv
from jaxvars.display.repr import Table
from jaxvars.requirements import RANGES, fits, installed

Row: TypeAlias = tuple[str, str, str]

_SHOWN = ("jaxvars", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "keras")
_SLOW = {
    "jax_disable_jit": "nothing is compiled",
    "jax_debug_nans": "each call waits for its result, and nothing is donated",
    "jax_debug_infs": "each call waits for its result, and nothing is donated",
    "jax_check_tracer_leaks": "functions are traced again and again",
}
_CALLS, _BUSY = 200, 50e-6  # seconds of a call that computes next to nothing


def report() -> Table:
    """Return what there is, with what to do about it where something is slow or wrong.

    >>> print(report())  # doctest: +ELLIPSIS
    jaxvars here
    what ...
    """
    rows = [*_versions(), *_devices(), *_settings(), *_speed()]
    return Table(title="jaxvars here", columns=("what", "found", "to do"), rows=rows)


def _versions() -> Iterator[Row]:
    yield "Python", f"{platform.python_version()} on {platform.system()}", ""
    found = {name: installed(name) for name in (*_SHOWN, *RANGES)}
    for name, version in found.items():
        wrong = name in RANGES and not fits(name, version)
        cure = f'pip install "{name}{RANGES[name]}"' if wrong else ""
        if name == "jaxlib" and version != found["jax"]:
            cure = "install jax's version"
        if cure or name in _SHOWN:
            yield name, version, cure


def _devices() -> Iterator[Row]:
    devices, backend = jax.local_devices(), jax.default_backend()
    lacks_plugin = backend == "cpu" and which("nvidia-smi") is not None
    cure = "JAX does not see the GPU: docs.jax.dev/en/latest/installation.html"
    yield "devices", f"{len(devices)} x {backend}", cure if lacks_plugin else ""
    cores = count_cores()
    share = backend == "cpu" and len(devices) > cores
    yield "processor cores", f"{cores}", "devices share cores: look at each result" if share else ""


def count_cores() -> int:
    """Return on how many processor cores this process may run."""
    known = getattr(os, "sched_getaffinity", None)
    return len(known(0)) if known else os.cpu_count() or 1


def _settings() -> Iterator[Row]:
    config: Any = jax.config
    yield "64-bit numbers", "on" if config.jax_enable_x64 else "off", ""
    cache = config.jax_compilation_cache_dir
    cure = "" if cache else "jv.config.compilation_cache(folder) keeps programs for other processes"
    yield "compilation cache", cache or "off", cure
    for name, what in _SLOW.items():
        if getattr(config, name):
            yield name, "on", f"slow: {what}"
    if sys.gettrace() is not None:
        yield "a debugger or coverage", "attached", "slow: each line of Python is looked at"
    if flags := os.environ.get("XLA_FLAGS"):
        yield "XLA_FLAGS", flags, ""


def _speed() -> Iterator[Row]:
    v = jv.Variable(jnp.zeros(()))
    step = jv.compile(lambda: v.assign_add(1.0, read_value=False))
    start = time.perf_counter()
    step()
    jax.block_until_ready(v.value)
    yield "first call of a step", f"{time.perf_counter() - start:.2f} s", ""
    seconds = min(_time_of_call(step) for _ in range(5))
    cure = "slow: other programs use these cores, or see above" if seconds > _BUSY else ""
    yield "each further call", f"{seconds * 1e6:.1f} us", cure


def _time_of_call(step: jv.Function[..., Any]) -> float:
    start = time.perf_counter()
    for _ in range(_CALLS):
        step()
    return (time.perf_counter() - start) / _CALLS
